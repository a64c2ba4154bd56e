"""Classifiers as experts, and the persons whose class they are to guess."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...environments.arrays import content, distributions, settled, whole_numbers
from ...environments.base import AdviceEnvironment, ContextKernels
from ...environments.datasets.classification import DATA_SETS
from ...environments.simulated.pools import draw_below
from ...errors import ArgumentError, MissingExtra
from ...kernel import Generator, Matrix, kernel
from ...validation import choice, flag, integer, real


class PersonsState(NamedTuple):
    """Persons, their classes, and every expert's advice on them."""

    advice: np.ndarray  # (P, K, N)
    labels: np.ndarray  # (P,)
    order: np.ndarray  # (P,): who comes in which round; empty where anyone may come in any
    best: np.ndarray  # (1,) int64


@kernel
def _show_person(state: PersonsState, t: int, contexts: Matrix, rng: Generator) -> int:
    person = state.order[t] if state.order.size > 0 else draw_below(state.labels.size, rng)
    for a in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            contexts[a, j] = state.advice[person, a, j]
    return person


@kernel
def _answer_person(
    state: PersonsState, t: int, contexts: Matrix, hidden: int, arm: int, rng: Generator
) -> tuple[float, float]:
    label = state.labels[hidden]
    reward = 1.0 if arm == label else 0.0
    return reward, state.advice[hidden, label, state.best[0]] - reward


class ClassifierAdvice(AdviceEnvironment):
    """Guess the class of persons, with advice of classifiers trained on other persons.  The reward
    is 1 for the right class, else 0.

    Args:
        advice: shape (P, N, K): the probability that each expert gives each class of each person.
        labels: the class of each person, shape (P,); 0 to K - 1.
        once: everybody comes once, in the order given, and the horizon is P; by default every round
            draws a random person.
        names: of the classes.

    Raises:
        ArgumentError: an argument is outside its range, or shapes do not fit.

    >>> ClassifierAdvice([[[0.9, 0.1]], [[0.2, 0.8]]], [0, 1]).n_experts
    1
    """

    kernels = ContextKernels(_show_person, _answer_person)

    def __init__(
        self,
        advice: ArrayLike,
        labels: ArrayLike,
        *,
        once: bool = False,
        names: list[str] | None = None,
    ) -> None:
        table = distributions("advice", advice, "P, N, K")
        _, self.n_arms, self.dimension = table.shape
        classes = whole_numbers("labels", labels)
        if classes.max() >= self.n_arms:
            raise ArgumentError(
                f"labels must be whole numbers from 0 to {self.n_arms - 1}, got another number in"
                f" row {int(classes.argmax())}",
                "labels",
            )
        if classes.size != len(table):
            raise ArgumentError(
                f"labels must hold {len(table)} classes, one per person, got {classes.size}",
                "labels",
            )
        self._name_arms("names", names, "class")
        order = np.arange(classes.size if flag("once", once) else 0)
        self.horizon = classes.size if once else None
        self.support = (0.0, 1.0)
        correct = table[np.arange(classes.size), classes].mean(axis=0)
        self.state = PersonsState(table, classes, order, np.array([int(correct.argmax())]))
        self._digest = content(table, classes)

    @property
    def accuracies(self) -> np.ndarray:
        """The rate at which each expert's draw is right, shape (N,)."""
        rows = np.arange(self.state.labels.size)
        return np.asarray(self.state.advice[rows, self.state.labels].mean(axis=0))

    def _arguments(self) -> str:
        once = ", once" if self.horizon else ""
        return (
            f"{self.state.labels.size} persons, {self.n_arms} classes, {self.n_experts}"
            f" experts{once}, {self._content}"
        )


def classifier_advice(
    name: str = "digits",
    n_experts: int = 16,
    *,
    share: float = 0.05,
    once: bool = False,
    seed: int = 0,
) -> ClassifierAdvice:
    """Classifiers of scikit-learn as experts on a data set that comes with it.

    Half of the persons are for training: every expert sees a random slice of them.  Logistic
    regressions, naive Bayes, decision trees and nearest neighbours take turns.  The other half come
    to be classified; an expert's advice is its probability of each class.

    Args:
        name: ``"digits"``, 10 classes; or ``"breast_cancer"``, 2 classes.
        n_experts: the number of trained classifiers.
        share: the share of the training half that each of them sees.
        once: as for ``ClassifierAdvice``; the order is drawn by ``seed``.
        seed: of halves, slices and order.

    Raises:
        ArgumentError: an argument is outside its range.
        MissingExtra: scikit-learn is not installed.

    >>> classifier_advice("breast_cancer", 4, share=0.2).arm_names
    ['malignant', 'benign']
    """
    choice("name", name, DATA_SETS)
    share = real("share", share, 0.01, 1.0)
    rng = np.random.default_rng(integer("seed", seed, 0))
    n = integer("n_experts", n_experts, 1, 1000)
    try:
        from sklearn import datasets
    except ImportError as error:
        raise MissingExtra(
            "classifier_advice needs scikit-learn: pip install 'dpbandits[datasets]'"
        ) from error
    data = datasets.load_digits() if name == "digits" else datasets.load_breast_cancer()
    order = rng.permutation(len(data.target))
    learned, met = order[: len(order) // 2], order[len(order) // 2 :]
    k, size = int(data.target.max()) + 1, max(2, round(share * len(learned)))
    advice = np.zeros((len(met), n, k))
    for j in range(n):
        slice_ = rng.choice(learned, size, replace=False)
        seen = np.unique(data.target[slice_])
        if seen.size == 1:
            advice[:, j, seen[0]] = 1.0
        else:
            expert = _classifier(j, size).fit(data.data[slice_], data.target[slice_])
            advice[:, j, expert.classes_] = expert.predict_proba(data.data[met])
    advice = settled(advice)
    made = ClassifierAdvice(
        advice / advice.sum(axis=2, keepdims=True),
        data.target[met],
        once=once,
        names=[str(c) for c in data.target_names],
    )
    made.origin = f"{name}, share={share:g}, seed={seed}"
    return made


def _classifier(j: int, size: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    kinds = (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        GaussianNB(var_smoothing=1e-3),
        DecisionTreeClassifier(max_depth=6, random_state=j),
        KNeighborsClassifier(n_neighbors=min(5, size)),
    )
    return kinds[j % len(kinds)]
