"""Four treatments of HIV and the 2,139 patients of ACTG 175 (Hammer et al. 1996).

A treatment succeeds if the patient's CD4 count after 20 weeks is above the one at the start.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from ...glm.links import link_of
from ...kernel import Generator, Matrix, kernel
from ..arrays import settled
from ..base import ContextEnvironment, Environment
from ..simulated.generalised import glm_kernels, repeat_first
from ..simulated.pools import draw_below
from ..simulated.stochastic import Bernoulli
from .features import rows_with_intercept, standardised
from .logged import LoggedTrial

TREATMENTS = ("zidovudine", "zidovudine + didanosine", "zidovudine + zalcitabine", "didanosine")

COVARIATES = (
    "age",
    "weight",
    "Karnofsky score",
    "CD4 count",
    "male",
    "non-white",
    "symptomatic",
    "treated up to 52 weeks before",
    "treated longer before",
    "intercept",
)

_NEWTON_STEPS = 25  # it stands still after seven
_KEPT = ["arms", "cd40", "cd420", "age", "wtkg", "karnof", "gender", "race", "symptom", "strat"]


def actg175() -> pd.DataFrame:
    """The patients of the trial, under the names of the published file.

    Returns:
        2,139 rows, one per patient, in the order of the file.  Columns: ``patient`` (running number
        from 0), ``arms`` (0 to 3, see ``TREATMENTS``), ``cd40`` and ``cd420`` (CD4 cells per cubic
        millimetre at the start and after 20 weeks), ``age`` (years), ``wtkg`` (weight in kg),
        ``karnof`` (Karnofsky score, 0 to 100), ``gender`` (1 male), ``race`` (1 non-white),
        ``symptom`` (1 symptomatic) and ``strat`` (earlier antiretroviral therapy: 1 none, 2 up to
        52 weeks, 3 longer).

    See also: ``DoctorReplay``.

    >>> len(actg175())
    2139
    """
    with (resources.files(__package__) / "data" / "actg175.csv").open() as file:
        return pd.read_csv(file)


def compact(original: pd.DataFrame) -> pd.DataFrame:
    """The table that ``actg175`` returns, of the published one; see ``docs/data.md``."""
    return original[_KEPT].rename_axis("patient").reset_index()


def success(patients: pd.DataFrame) -> np.ndarray:
    """1.0 for every patient whose CD4 count rose, 0.0 for the others; shape (N,)."""
    return (patients["cd420"] > patients["cd40"]).to_numpy(dtype=np.float64)


def covariates(patients: pd.DataFrame) -> np.ndarray:
    """Covariates of the patients before treatment, in the order of ``COVARIATES``, shape (N, 10).
    Standardised columns are divided by 3, the root of their number; then a 1 is added for the
    intercept, and every row is divided by its length.
    """
    earlier = patients["strat"]
    columns = patients[["age", "wtkg", "karnof", "cd40", "gender", "race", "symptom"]]
    table = np.column_stack([columns.to_numpy(dtype=np.float64), earlier == 2, earlier == 3])
    return rows_with_intercept(standardised(table))


class _OfTheTrial(Environment):
    """An environment that takes no arguments, and whose arms are the treatments."""

    _names = TREATMENTS

    def _arguments(self) -> str:
        return ""


class DoctorBandit(_OfTheTrial, Bernoulli):
    """Patients of ACTG 175 with replacement, for any horizon: each round of an arm draws a patient
    uniformly from those who got it.  The four success rates are .436, .653, .555 and .556.

    >>> DoctorBandit().arm_names[1]
    'zidovudine + didanosine'
    """

    def __init__(self) -> None:
        trial = DoctorReplay()
        super().__init__(trial.means())
        self.reference = ("the trial's own allocation", trial.counts / len(trial))


@cache
def _fitted() -> tuple[np.ndarray, np.ndarray]:
    """The covariates, and the coefficients of the models that ``DoctorContexts`` describes."""
    patients = actg175()
    x, y, arms = covariates(patients), success(patients), patients["arms"].to_numpy()
    models = np.array([_newton(x[arms == a], y[arms == a]) for a in range(len(TREATMENTS))])
    x.flags.writeable = models.flags.writeable = False
    return x, models


def _newton(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    theta = np.zeros(x.shape[1])
    for _ in range(_NEWTON_STEPS):
        mean = expit(x @ theta)
        information = (x.T * (mean * (1.0 - mean))) @ x + np.eye(theta.size)
        theta = theta + np.linalg.solve(information, x.T @ (y - mean) - theta)
    return settled(theta)


class PatientsState(NamedTuple):
    features: np.ndarray  # (N, d)
    theta: np.ndarray  # (K, d)
    low: float  # the other reward than 1: 0


@kernel
def _show_patient(state: PatientsState, t: int, contexts: Matrix, rng: Generator) -> int:
    patient = draw_below(state.features.shape[0], rng)
    for i in range(contexts.shape[1]):
        contexts[0, i] = state.features[patient, i]
    repeat_first(contexts)
    return patient


class DoctorContexts(_OfTheTrial, ContextEnvironment):
    """Patients of ACTG 175 with their covariates before treatment.  Each round draws from all
    patients of the trial; a logistic model of the chosen treatment gives the probability of
    success.

    Each treatment's model was fitted once to the patients who got it in the trial, at the highest
    posterior density under a standard normal prior.  The simulated outcomes follow these models,
    not the outcomes of the trial.  Patients are shown alike to all arms, for policies with
    ``models="disjoint"``; no vector is longer than 1.  Covariates are worth little here, see
    ``docs/data.md``.

    Attributes:
        features: of the 2,139 patients, shape (2139, 10), columns as in ``feature_names``.
        feature_names: meanings of the columns.
        parameter: coefficients of the four models, shape (4, 10); up to 3.3 long.
        link: the logistic one.

    >>> world = DoctorContexts()
    >>> world.n_arms, world.dimension, world.feature_names[3]
    (4, 10, 'CD4 count')
    """

    link = link_of("logistic")
    kernels = glm_kernels(_show_patient, link)
    support, context_bound, feature_names = (0.0, 1.0), 1.0, COVARIATES
    parameter: np.ndarray

    def __init__(self) -> None:
        self.features, self.parameter = _fitted()
        self.n_arms, self.dimension = self.parameter.shape
        self.state = PatientsState(self.features, self.parameter, 0.0)


class DoctorReplay(_OfTheTrial, LoggedTrial):
    """The log of ACTG 175, for ``dpbandits.replay``: the treatment of each patient, and whether the
    CD4 count rose.  Contexts are the ``features`` of ``DoctorContexts``, known before treatment.

    The trial gave the four treatments at random with equal shares (Hammer et al. 1996), as a replay
    needs.  Patients are in the order of their numbers in the trial; dates of enrolment are not
    published.

    >>> DoctorReplay().counts.tolist()
    [532, 522, 524, 561]
    """

    def __init__(self) -> None:
        patients = actg175()
        super().__init__(patients["arms"], success(patients), covariates(patients))
