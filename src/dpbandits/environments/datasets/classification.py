"""Classification as a bandit: the features of a person come, a class is chosen, and the reward says
whether it was right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError, MissingExtra
from ...kernel import Generator, Matrix, kernel
from ...validation import choice, flag, integer
from ..arrays import content, finite_array, settled, whole_numbers
from ..base import ContextEnvironment, ContextKernels
from ..simulated.pools import draw_below
from .features import dense_components

DATA_SETS = ("breast_cancer", "digits")


class ClassificationState(NamedTuple):
    """Persons and their classes."""

    rows: np.ndarray  # (N, p), of length 1
    labels: np.ndarray  # (N,)
    order: np.ndarray  # (N,): who comes in which round; empty where anyone may come in any


@kernel
def _show_person(state: ClassificationState, t: int, contexts: Matrix, rng: Generator) -> int:
    person = state.order[t] if state.order.size > 0 else draw_below(state.rows.shape[0], rng)
    width = state.rows.shape[1]
    for a in range(contexts.shape[0]):
        for i in range(contexts.shape[1]):
            contexts[a, i] = 0.0
        for i in range(width):
            contexts[a, a * width + i] = state.rows[person, i]
    return state.labels[person]


@kernel
def _answer_person(
    state: ClassificationState, t: int, contexts: Matrix, hidden: int, arm: int, rng: Generator
) -> tuple[float, float]:
    reward = 1.0 if arm == hidden else 0.0
    return reward, 1.0 - reward


class Classification(ContextEnvironment):
    """Persons with features and a class; an arm is a class, and the reward is 1 where it is the
    person's, else 0.

    Columns are standardised and replaced by their first principal components, which are divided by
    their root mean square length; then comes a 1 for the intercept, and every row is divided by its
    length.  Arm a sees the row x at the a-th of K places, e_a ⊗ x, so that a linear model has
    coefficients of its own for every class.  Its decision does not depend on the length of x.

    All this uses the features of everybody in advance, and no label: contexts are public here,
    rewards are not.

    Args:
        features: shape (N, m).
        labels: the class of each person, shape (N,); 0 to K - 1, every class at least once.
        components: how many principal components are kept, at most min(N, m); None for all.
        once: everybody comes once, in an order drawn by ``seed``, and the horizon is N; by default
            every round draws anyone.
        seed: of the order.
        names: of the classes.

    Raises:
        ArgumentError: an argument is outside its range, or shapes do not fit.

    >>> environment = Classification([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])
    >>> environment.n_arms, environment.dimension
    (2, 4)
    """

    kernels = ContextKernels(_show_person, _answer_person)

    def __init__(
        self,
        features: Any,
        labels: Any,
        *,
        components: int | None = None,
        once: bool = False,
        seed: int = 0,
        names: Sequence[str] | None = None,
    ) -> None:
        features, classes = (
            finite_array("features", features, "N, m"),
            whole_numbers("labels", labels),
        )
        if classes.size != len(features):
            raise ArgumentError(
                f"features and labels must be equally long, got {len(features)} and {classes.size}"
            )
        if np.unique(classes).size != classes.max() + 1:
            raise ArgumentError(
                f"labels must hold every class from 0 to {classes.max()}, got"
                f" {np.unique(classes).tolist()}",
                "labels",
            )
        self.n_arms = int(classes.max()) + 1
        self._name_arms("names", names, "class")
        most = min(features.shape)
        rows = _unit_rows(
            features, most if components is None else integer("components", components, 1, most)
        )
        shuffled = np.random.default_rng(integer("seed", seed, 0)).permutation(len(rows))
        order = shuffled if flag("once", once) else shuffled[:0]
        self.horizon = len(rows) if once else None
        self.dimension = self.n_arms * rows.shape[1]
        self.support, self.context_bound = (0.0, 1.0), 1.0
        self.state = ClassificationState(rows, classes, order)
        self._digest = content(features, classes, order)

    def _arguments(self) -> str:
        once = ", once" if self.horizon else ""
        return (
            f"{len(self.state.rows)} persons, {self.n_arms} classes, dimension"
            f" {self.dimension}{once}, {self._content}"
        )


def _unit_rows(features: np.ndarray, components: int) -> np.ndarray:
    """Principal components of standardised columns, beside an intercept, every row of length 1."""
    centred = features - features.mean(axis=0)
    spread = centred.std(axis=0)
    constant = spread <= 1e-12 * np.abs(features).max(axis=0)  # but for rounding
    standard = np.where(constant, 0.0, centred / np.where(constant, 1.0, spread))
    scores = dense_components(standard, components)
    size = np.sqrt(np.mean(np.sum(scores**2, axis=1)))
    scores = settled(scores / size if size > 0.0 else scores)
    rows = np.column_stack([scores, np.ones(len(scores))])
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def classification(
    name: str = "digits", *, components: int | None = 10, once: bool = False, seed: int = 0
) -> Classification:
    """A data set that comes with scikit-learn, as a bandit.

    Args:
        name: ``"digits"``, 1,797 handwritten digits of 64 pixels, 10 classes; or
            ``"breast_cancer"``, 569 tumours with 30 measurements, malignant or benign.
        components: as for ``Classification``.
        once: as for ``Classification``.
        seed: as for ``Classification``.

    Raises:
        ArgumentError: an argument is outside its range.
        MissingExtra: scikit-learn is not installed.

    >>> classification("breast_cancer").arm_names
    ['malignant', 'benign']
    """
    choice("name", name, DATA_SETS)
    try:
        from sklearn import datasets
    except ImportError as error:
        raise MissingExtra(
            "classification needs scikit-learn: pip install 'dpbandits[datasets]'"
        ) from error
    data = datasets.load_digits() if name == "digits" else datasets.load_breast_cancer()
    return Classification(
        data.data, data.target, components=components, once=once, seed=seed, names=data.target_names
    )
