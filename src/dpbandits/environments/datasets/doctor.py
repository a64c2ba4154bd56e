"""DoctorBandit: four treatments of HIV and the patients of ACTG 175 (Hammer et al. 1996).

A treatment succeeds if the patient's CD4 count after 20 weeks is above the one at the start.  Two
ways to use the 2,139 patients: ``DoctorBandit`` draws them with replacement, for any horizon;
``DoctorReplay`` is the log itself, for ``dpbandits.replay``.
"""

from __future__ import annotations

from importlib import resources

import numpy as np
import pandas as pd

from ..simulated.stochastic import Bernoulli
from .logged import LoggedTrial

TREATMENTS = ("zidovudine", "zidovudine + didanosine", "zidovudine + zalcitabine", "didanosine")

_KEPT = ["arms", "cd40", "cd420", "age", "wtkg", "karnof", "gender", "race", "symptom", "strat"]


def actg175() -> pd.DataFrame:
    """The patients, one row each, in the order of the published file and under its names.

    Columns: ``patient`` (running number from 0), ``arms`` (0 to 3, see ``TREATMENTS``), ``cd40``
    and ``cd420`` (CD4 cells per cubic millimetre at the start and after 20 weeks), ``age`` (years),
    ``wtkg`` (weight in kg), ``karnof`` (Karnofsky score, 0 to 100), ``gender`` (1 male), ``race``
    (1 non-white), ``symptom`` (1 symptomatic) and ``strat`` (earlier antiretroviral therapy: 1
    none, 2 up to 52 weeks, 3 longer).

    >>> len(actg175())
    2139
    """
    with (resources.files(__package__) / "data" / "actg175.csv").open() as file:
        return pd.read_csv(file)


def compact(original: pd.DataFrame) -> pd.DataFrame:
    """The table that ``actg175`` returns, made from the published one; ``docs/data.md`` shows how
    it is called.
    """
    return original[_KEPT].rename_axis("patient").reset_index()


def success(patients: pd.DataFrame) -> np.ndarray:
    """1.0 for every patient whose CD4 count rose, 0.0 for the others; shape (N,)."""
    return (patients["cd420"] > patients["cd40"]).to_numpy(dtype=np.float64)


class DoctorBandit(Bernoulli):
    """Patients of ACTG 175 with replacement: a round of an arm is a patient drawn uniformly from
    those who got it.

    The four success rates are .436, .653, .555 and .556.

    >>> DoctorBandit().arm_names[1]
    'zidovudine + didanosine'
    """

    def __init__(self) -> None:
        trial = DoctorReplay()
        super().__init__(trial.means())
        self._names = TREATMENTS
        self.reference = ("the trial's own allocation", trial.counts / len(trial))

    def _arguments(self) -> str:
        return ""


class DoctorReplay(LoggedTrial):
    """The log of ACTG 175: what each patient got, and whether the CD4 count rose.

    The trial gave the four treatments at random with equal shares (Hammer et al. 1996), which is
    what a replay needs.  Patients are in the order of their numbers in the trial; when they
    enrolled is not published.

    >>> DoctorReplay().counts.tolist()
    [532, 522, 524, 561]
    """

    def __init__(self) -> None:
        patients = actg175()
        super().__init__(patients["arms"], success(patients))
        self._names = TREATMENTS

    def _arguments(self) -> str:
        return ""
