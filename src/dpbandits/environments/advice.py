"""Experts who advise on the arms of an environment: probabilities for every arm, from every expert,
in every round.

Advice is shown as contexts are: a row for each arm, which holds what every expert gives it.  Regret
is against the best expert in hindsight, the one whose advice would have brought most over all of
``horizon``; a single round may have negative regret.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, MissingExtra
from ..kernel import bind, entry, kernel, unbound
from ..validation import choice, flag, integer, real
from .base import ArmsEnvironment
from .contexts import ContextEnvironment, ContextKernels, content, finite_array
from .labelled import DATA_SETS
from .pools import draw_below, whole_numbers

_TOLERANCE = 1e-6  # by which the probabilities of an expert may miss one


class AdviceEnvironment(ContextEnvironment):
    """The base of the environments with experts.

    Attributes:
        n_experts: number of experts, N.
    """

    context_bound = np.inf

    @property
    def n_experts(self) -> int:
        return self.dimension


def distributions(name: str, advice: Any, shape: str) -> np.ndarray:
    """Advice with experts in the last axis but one, as distributions over the last, and with these
    two axes exchanged.
    """
    given = finite_array(name, advice, shape)
    totals = given.sum(axis=-1, keepdims=True)
    if np.any(given < 0.0) or not np.all(np.abs(totals - 1.0) <= _TOLERANCE):
        raise ArgumentError(
            f"{name} must hold a probability for every arm in each row: none negative, and 1"
            " in all",
            name,
        )
    return np.ascontiguousarray(np.swapaxes(given / totals, -1, -2))


# On arms that anything may happen to ---------------------------------------------------------

draw = regret = unbound


class AdvisedState(NamedTuple):
    """Advice that repeats, on an environment."""

    advice: np.ndarray  # (S, K, N): of one period after the other
    period: np.ndarray  # (1,) int64: rounds
    best: np.ndarray  # (1,) int64: the best expert
    world: Any  # the environment's state


@kernel
def _piece(state, t):
    return (t // state.period[0]) % state.advice.shape[0]


@kernel
def _show_advised(state, t, contexts, rng):
    piece = _piece(state, t)
    for a in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            contexts[a, j] = state.advice[piece, a, j]
    return piece


@kernel
def _answer_advised(state, t, contexts, hidden, arm, rng):
    reward, lost = draw(state.world, arm, t, 1, rng), regret(state.world, arm, t, 1)
    for a in range(contexts.shape[0]):
        lost -= state.advice[hidden, a, state.best[0]] * regret(state.world, a, t, 1)
    return reward, lost


@entry
def _losses(state, horizon, losses):
    """What every arm loses in the rounds of each piece, shape (S, K)."""
    start = 0
    while start < horizon:
        n = min(state.period[0], horizon - start)
        for a in range(losses.shape[1]):
            losses[_piece(state, start), a] += regret(state.world, a, start, n)
        start += n


class Advised(AdviceEnvironment):
    """Experts with a plan, on any environment over arms.

    Args:
        environment: whose rewards are given.
        advice: shape (S, N, K): in S periods one after the other, what each expert advises; then
            again from the start.
        horizon: how many rounds there are.
        period: in rounds; by default the horizon, so that advice never changes where S = 1.

    Raises:
        ArgumentError: an argument is out of range, or advice does not fit the environment.

    >>> from dpbandits.environments import Bernoulli
    >>> Advised(Bernoulli([0.9, 0.1]), [[[1.0, 0.0], [0.5, 0.5]]], horizon=100).n_experts
    2
    """

    def __init__(
        self, environment: ArmsEnvironment, advice: Any, *, horizon: int, period: int | None = None
    ) -> None:
        self.environment = _over_arms(environment)
        self.horizon = integer("horizon", horizon, 1, environment.horizon or 10**12)
        table = distributions("advice", advice, "S, N, K")
        _, self.n_arms, self.dimension = table.shape
        if self.n_arms != environment.n_arms:
            raise ArgumentError(
                f"advice must be on {environment.n_arms} arms, got {self.n_arms}", "advice"
            )
        self.support = environment.support
        length = self.horizon if period is None else integer("period", period, 1)
        self.state = AdvisedState(
            table, np.array([length], dtype=np.int64), np.zeros(1, np.int64), environment.state
        )
        own = environment.kernels
        answer = bind(_answer_advised, draw=own.draw, regret=own.regret)
        self.kernels = ContextKernels(_show_advised, answer)  # type: ignore[misc]
        losses = np.zeros(table.shape[:2])
        bind(_losses, regret=own.regret)(self.state, self.horizon, losses)
        self.state.best[0] = np.einsum("sk,skn->n", losses, table).argmin()

    @property
    def arm_names(self) -> list[str]:
        return self.environment.arm_names

    @classmethod
    def constant(
        cls, environment: ArmsEnvironment, n_experts: int, *, horizon: int, seed: int = 0
    ) -> Advised:
        """Experts who never change their mind: the first always advise one arm each, the others
        uniformly random distributions.

        >>> from dpbandits.environments import Bernoulli
        >>> Advised.constant(Bernoulli([0.9, 0.1]), 5, horizon=100).state.best.tolist()
        [0]
        """
        n, k = integer("n_experts", n_experts, 1), _over_arms(environment).n_arms
        rows = np.random.default_rng(integer("seed", seed, 0)).dirichlet(np.ones(k), n)
        rows[:k] = np.eye(k)[:n]
        return cls(environment, rows[None], horizon=horizon)

    @classmethod
    def shifted(
        cls, environment: ArmsEnvironment, n_experts: int, *, period: int, horizon: int
    ) -> Advised:
        """Experts who advise one arm each and move on after every period: expert j by j // K arms,
        so that the first K stay.

        >>> from dpbandits.environments import Bernoulli
        >>> Advised.shifted(Bernoulli([0.9, 0.1]), 4, period=10, horizon=100).state.advice.shape
        (2, 2, 4)
        """
        n, k = integer("n_experts", n_experts, 1), _over_arms(environment).n_arms
        j, s = np.arange(n), np.arange(k)[:, None]
        return cls(environment, np.eye(k)[(j + s * (j // k)) % k], horizon=horizon, period=period)

    def _arguments(self) -> str:
        state = self.state
        plan = (
            f"{self.n_experts} experts, period={state.period[0]}, horizon={self.horizon}, content"
            f" {content(state.advice)}"
        )
        return f"{self.environment!r}, {plan}"


def _over_arms(environment: Any) -> ArmsEnvironment:
    if not isinstance(environment, ArmsEnvironment):
        raise ArgumentError(
            f"environment must be one over arms, got {environment!r}", "environment"
        )
    return environment


# Fixed in advance ----------------------------------------------------------------------------


class AdviceTableState(NamedTuple):
    """Advice and rewards of every round."""

    advice: np.ndarray  # (T, K, N)
    rewards: np.ndarray  # (T, K)
    best: np.ndarray  # (1,) int64


@kernel
def _show_advice(state, t, contexts, rng):
    for a in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            contexts[a, j] = state.advice[t, a, j]
    return 0


@kernel
def _answer_advice(state, t, contexts, hidden, arm, rng):
    expected = 0.0
    for a in range(contexts.shape[0]):
        expected += state.advice[t, a, state.best[0]] * state.rewards[t, a]
    return state.rewards[t, arm], expected - state.rewards[t, arm]


class AdviceTable(AdviceEnvironment):
    """Advice and potential rewards fixed in advance: for tests, audits and adversarial sequences.

    Args:
        advice: shape (T, N, K).
        rewards: shape (T, K).

    >>> AdviceTable(np.full((5, 3, 2), 0.5), np.zeros((5, 2))).n_experts
    3
    """

    kernels = ContextKernels(_show_advice, _answer_advice)

    def __init__(self, advice: Any, rewards: Any) -> None:
        table, rewards = (
            distributions("advice", advice, "T, N, K"),
            finite_array("rewards", rewards, "T, K"),
        )
        if rewards.shape != table.shape[:2]:
            raise ArgumentError(
                f"rewards must have shape {table.shape[:2]} as the advice has, got {rewards.shape}",
                "rewards",
            )
        self.horizon, self.n_arms, self.dimension = table.shape
        self.support = (float(rewards.min()), float(rewards.max()))
        self.state = AdviceTableState(
            table, rewards, np.array([int(np.einsum("tkn,tk->n", table, rewards).argmax())])
        )

    def _arguments(self) -> str:
        return (
            f"{self.horizon} rounds, {self.n_arms} arms, {self.n_experts} experts, content"
            f" {content(*self.state[:2])}"
        )


# Classifiers as experts ----------------------------------------------------------------------


class PersonsState(NamedTuple):
    """Persons, their classes, and what every expert makes of them."""

    advice: np.ndarray  # (P, K, N)
    labels: np.ndarray  # (P,)
    order: np.ndarray  # (P,): who comes in which round; empty where anyone may come in any
    best: np.ndarray  # (1,) int64


@kernel
def _show_person(state, t, contexts, rng):
    person = state.order[t] if state.order.size > 0 else draw_below(state.labels.size, rng)
    for a in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            contexts[a, j] = state.advice[person, a, j]
    return person


@kernel
def _answer_person(state, t, contexts, hidden, arm, rng):
    label = state.labels[hidden]
    reward = 1.0 if arm == label else 0.0
    return reward, state.advice[hidden, label, state.best[0]] - reward


class ClassifierAdvice(AdviceEnvironment):
    """Persons whose class is to be guessed, advised by classifiers that were trained on others;
    reward 1 for the right class, else 0.

    Args:
        advice: shape (P, N, K): the probability that each expert gives each class of each person.
        labels: the class of each person, shape (P,); 0 to K - 1.
        once: everybody comes once, in the order given, and the horizon is P; by default every round
            draws anyone.
        names: of the classes.

    Raises:
        ArgumentError: an argument is outside its range, or shapes do not fit.

    >>> ClassifierAdvice([[[0.9, 0.1]], [[0.2, 0.8]]], [0, 1]).n_experts
    1
    """

    kernels = ContextKernels(_show_person, _answer_person)

    def __init__(
        self, advice: Any, labels: Any, *, once: bool = False, names: list[str] | None = None
    ) -> None:
        table = distributions("advice", advice, "P, N, K")
        _, self.n_arms, self.dimension = table.shape
        classes = whole_numbers("labels", labels)
        if classes.max() >= self.n_arms:
            raise ArgumentError(
                f"labels must be whole numbers from 0 to {self.n_arms - 1}, got {classes.max()}",
                "labels",
            )
        if classes.size != len(table):
            raise ArgumentError(
                f"labels must hold {len(table)} classes, one per person, got {classes.size}",
                "labels",
            )
        self._names = (
            [f"arm {a}" for a in range(self.n_arms)]
            if names is None
            else [str(name) for name in names]
        )
        if len(self._names) != self.n_arms:
            raise ArgumentError(
                f"names must hold {self.n_arms} names, one per class, got {self._names}", "names"
            )
        order = np.arange(classes.size if flag("once", once) else 0)
        self.horizon = classes.size if once else None
        self.support = (0.0, 1.0)
        correct = table[np.arange(classes.size), classes].mean(axis=0)
        self.state = PersonsState(table, classes, order, np.array([int(correct.argmax())]))

    @property
    def arm_names(self) -> list[str]:
        return self._names

    @property
    def accuracies(self) -> np.ndarray:
        """How often each expert's draw is right, shape (N,)."""
        rows = np.arange(self.state.labels.size)
        return np.asarray(self.state.advice[rows, self.state.labels].mean(axis=0))

    def _arguments(self) -> str:
        advice, labels, order, _ = self.state
        once = ", once" if order.size else ""
        return (
            f"{labels.size} persons, {self.n_arms} classes, {self.n_experts} experts{once}, content"
            f" {content(advice, labels)}"
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
        n_experts: how many classifiers are trained.
        share: of the training half that each of them sees.
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
    rng, n = (
        np.random.default_rng(integer("seed", seed, 0)),
        integer("n_experts", n_experts, 1, 1000),
    )
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
    return ClassifierAdvice(
        advice, data.target[met], once=once, names=[str(c) for c in data.target_names]
    )


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
