"""Classification as a bandit: the features of a person come, a class is chosen, and the reward says
whether it was right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError, MissingExtra
from ...kernel import Generator, Matrix, kernel
from ...validation import choice, flag, integer
from ..arrays import content, finite_array, longest, require_equally_long, whole_numbers
from ..base import ContextEnvironment, ContextKernels
from ..simulated.pools import answer_hidden, draw_below
from .features import dense_components, rows_with_intercept, standardised

DATA_SETS = ("breast_cancer", "digits")


class ClassificationState(NamedTuple):
    rows: np.ndarray  # (N, p)
    labels: np.ndarray  # (N,)
    order: np.ndarray  # (N,): who comes in which round; empty where anyone may come in any


@kernel
def _show_person(state: ClassificationState, t: int, contexts: Matrix, rng: Generator) -> int:
    person = state.order[t] if state.order.size > 0 else draw_below(state.rows.shape[0], rng)
    width = state.rows.shape[1]
    blocks = contexts.shape[1] > width
    for a in range(contexts.shape[0]):
        for i in range(contexts.shape[1]):
            contexts[a, i] = 0.0
        for i in range(width):
            contexts[a, a * width * blocks + i] = state.rows[person, i]
    return state.labels[person]


class Classification(ContextEnvironment):
    """People with features and a class; an arm is a class, and the reward is 1 if it is the
    person's class, else 0.

    Columns are standardised and replaced by their first principal components, divided by their root
    mean square length.  Then a 1 is added for the intercept, and every row is divided by its
    length.  These steps use the features of all people in advance, and no label: contexts are
    public here, rewards are not.  Arm a sees the row x at the a-th of K places, e_a ⊗ x.  Hence a
    linear model has coefficients of its own for every class, and its decision does not depend on
    the length of x.

    Args:
        features: shape (N, m).
        labels: the class of each person, shape (N,); 0 to K - 1, every class at least once.
        components: how many principal components are kept, at most min(N, m); None for all.
        once: every person comes once, in an order drawn by ``seed``, and the horizon is N.  By
            default every round draws a person at random.
        seed: of the order.
        names: of the classes.
        blocks: as above; False shows x itself for every arm, shape (K, p), for policies with
            ``models="disjoint"``.

    Raises:
        ArgumentError: an argument is outside its range, or shapes do not fit.

    >>> environment = Classification([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1])
    >>> environment.n_arms, environment.dimension
    (2, 4)
    """

    kernels = ContextKernels(_show_person, answer_hidden)
    holds_data = True

    def __init__(
        self,
        features: ArrayLike,
        labels: ArrayLike,
        *,
        components: int | None = None,
        once: bool = False,
        seed: int = 0,
        names: Sequence[str] | None = None,
        blocks: bool = True,
    ) -> None:
        features = finite_array("features", features, "N, m")
        most = min(features.shape)
        kept = most if components is None else integer("components", components, 1, most)
        rows = rows_with_intercept(dense_components(standardised(features), kept))
        self._show(features, rows, labels, once=once, seed=seed, names=names, blocks=blocks)

    @classmethod
    def of_rows(
        cls,
        rows: ArrayLike,
        labels: ArrayLike,
        *,
        once: bool = False,
        seed: int = 0,
        names: Sequence[str] | None = None,
        blocks: bool = True,
    ) -> Classification:
        """A classification that shows its contexts, ``rows`` of shape (N, p), as they are.

        Raises:
            ArgumentError: an argument is outside its range, or shapes do not fit.

        >>> Classification.of_rows([[0.6, 0.8], [1.0, 0.0]], [0, 1], blocks=False).dimension
        2
        """
        made = cls.__new__(cls)
        given = finite_array("rows", rows, "N, p")
        made._show(given, given, labels, once=once, seed=seed, names=names, blocks=blocks)
        return made

    def _show(
        self,
        features: np.ndarray,
        rows: np.ndarray,
        labels: Any,
        *,
        once: bool,
        seed: int,
        names: Sequence[str] | None,
        blocks: bool,
    ) -> None:
        classes = whole_numbers("labels", labels)
        require_equally_long("features and labels", features, classes)
        if (found := np.unique(classes).size) != classes.max() + 1:
            raise ArgumentError(
                f"labels must number the classes 0, 1, ... without gaps, got {found} classes"
                " with other numbers",
                "labels",
            )
        self.n_arms = int(classes.max()) + 1
        self._name_arms("names", names, "class")
        shuffled = np.random.default_rng(integer("seed", seed, 0)).permutation(len(rows))
        order = shuffled if flag("once", once) else shuffled[:0]
        self.horizon = len(rows) if once else None
        self.dimension = rows.shape[1] * (self.n_arms if flag("blocks", blocks) else 1)
        self.support, self.context_bound = (0.0, 1.0), longest(rows)
        self.state = ClassificationState(rows, classes, order)
        self._digest = content(features, classes, order)

    def _arguments(self) -> str:
        shape = f"{len(self.state.rows)} persons, {self.n_arms} classes, dimension {self.dimension}"
        return f"{shape}{', once' if self.horizon else ''}, {self._content}"


def classification(
    name: str = "digits",
    *,
    components: int | None = 10,
    once: bool = False,
    seed: int = 0,
    blocks: bool = True,
) -> Classification:
    """A data set that comes with scikit-learn, as a bandit.

    Args:
        name: ``"digits"``, 1,797 handwritten digits of 64 pixels, 10 classes; or
            ``"breast_cancer"``, 569 tumours with 30 measurements, malignant or benign.
        components, once, seed, blocks: as for ``Classification``.

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
    x, y, names = data.data, data.target, data.target_names
    made = Classification(
        x, y, components=components, once=once, seed=seed, names=names, blocks=blocks
    )
    made.holds_data = False  # which are not public
    return made
