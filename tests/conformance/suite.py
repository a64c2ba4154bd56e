"""What the conformance suite runs on: every registered policy, and what an algorithm may add about
itself.

A registered class is in the suite by being registered.  What the registry cannot know stands in
tables: ``REFERENCES`` in ``references.py``, where every class needs a textbook implementation, of
which ``test_open_channel`` reminds; ``SMALL``, for classes whose example releases late;
``VARIANTS``, for arguments that make another algorithm of a class; ``MAPPED``, for those whose
statistic is a linear map of sums; and ``BOUNDS``, for those with a published regret theorem.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import dpbandits  # noqa: F401  (registers the algorithms)
from dpbandits.algorithms.bases import AdvicePolicy, ContextualPolicy
from dpbandits.kernel import interpreted
from dpbandits.policies import Decision, Kernels, Policy, registered
from dpbandits.privacy import RDP, ZCDP, ApproxDP, Budget, Channel, Open, PureDP
from dpbandits.privacy.ledger import HEAD, WHOLE
from dpbandits.stores import User

# Constructor arguments that make a small instance release sooner than its example.
SMALL: dict[str, dict[str, Any]] = {
    name: {"failure_probability": 0.9}
    for name in (
        "DPSE",
        "DPSEBAI",
        "DPSESDP",
        "GOPE",
        "AdaCGOPE",
        "AdaRGOPEVar",
        "OutputGOPE",
        "HannaGOPE",
        "DPDPE",
    )
} | {name: {"batch": 4} for name in ("EXP4", "BatchedEXP4", "FrozenEXP4")}

# Arguments of further cases, in the suite as ``Class/value``.
VARIANTS: dict[str, list[tuple[str, Any]]] = {
    "AdaCGOPE": [("variant", "published")],
    "BatchedEXP4": [("variant", "improved")],
    "ExpertConversion": [("learner", "exp3"), ("learner", "ftpl")],
    # one class for each set of kernels
    "GLMUCB": [("models", "disjoint")],
    "GLMUCBJDP": [("models", "disjoint")],
    "LinUCBJDP": [("models", "disjoint")],
    "LinearIMED": [("models", "disjoint")],
    "LinearIMEDJDP": [("models", "disjoint")],
    "LinearThompson": [("models", "disjoint")],
    "LinearThompsonJDP": [("models", "disjoint")],
    "MergedIMED": [("variance", "released")],
    "MergedThompson": [("variance", "released")],
    "PrivateLinUCB": [("models", "disjoint")],
}

# Records of different arms move a linear map of sums differently far: the bound is that of the arm
# that moves it most, and is attained up to the rounding of the map.
MAPPED = {"AdaCGOPE", "AdaCGOPE/published", "OutputGOPE"}
ROUNDING = 1e-9

# What a record is in their sums follows from a public point, from which none may be worst: their
# sensitivity is attained in tests of their own.
LOOKED_AT = {
    "GLMThompsonJDP",
    "GLMUCBJDP",
    "GLMUCBJDP/disjoint",
    "WeightedGLMJDP",
    "WeightedGLMLDP",
    "LDPGLOC",
    "LDPSGD",
}

# Their sums weigh every record differently.  A realised sensitivity is that of the record of the
# batch which moves the sums farthest; a sensitivity for the worst case is attained where there is
# one.
REALISED = {"EXP4", "FrozenEXP4"}
WORST = {"BatchedEXP4", "BatchedEXP4/improved"}


ROUNDS = 30_000  # as far as a history goes


def theorem_10(policy: Policy, gaps: np.ndarray, horizon: int) -> float:
    """Azize & Basu (2024), Theorem 10, for rewards in [0, 1] and beta > 3."""
    assert isinstance(policy.budget, ZCDP)
    beta, log = policy.params.optimism, np.log(horizon)
    per_arm = (
        8 * beta / gaps * log + 8 * np.sqrt(beta / policy.budget.rho * log) + 2 * beta / (beta - 3)
    )
    return float(per_arm.sum())


class Bound(NamedTuple):
    """A published regret bound: for which arguments it holds, and its value for positive gaps."""

    arguments: dict[str, Any]
    budgets: list[Budget]
    value: Callable[[Policy, np.ndarray, int], float]


BOUNDS: dict[str, Bound] = {
    "AdaCUCB": Bound({"beta": 3.5}, [ZCDP(0.01), ZCDP(0.1), ZCDP(1.0)], theorem_10)
}


@dataclass(frozen=True)
class Case:
    """A registered class with one kind of budget."""

    cls: type[Policy]
    budget: Budget | None
    variant: tuple[tuple[str, Any], ...] = ()

    def make(self, **options: Any) -> Policy:
        given = {
            **self.cls.example,
            **SMALL.get(self.cls.__name__, {}),
            **dict(self.variant),
            **options,
        }
        return self.cls(**given, budget=self.budget)

    def under(self, budget: Budget | None) -> Case:
        """The same with another budget."""
        return dataclasses.replace(self, budget=budget)

    @property
    def name(self) -> str:
        """The class, and the value that makes the variant."""
        return "/".join([self.cls.__name__, *(str(value) for _, value in self.variant)])

    @property
    def noise(self) -> Channel:
        """What a release goes through, but for its scale; known without an instance, so that nothing
        is compiled where tests are collected.
        """
        if self.budget is None:
            return Open()
        channels: dict[Any, Any] = self.cls.card.channels
        return channels[type(self.budget)].calibrated(self.budget)

    @property
    def rounding(self) -> float:
        """How far, in proportion, a distance between statistics may be off."""
        return ROUNDING if self.name in MAPPED else 0.0

    def __str__(self) -> str:
        return f"{self.name}-{type(self.budget).__name__ if self.budget else 'open'}"


CASES = [
    Case(cls, budget, variant)
    for cls in registered().values()
    for variant in ((), *((argument,) for argument in VARIANTS.get(cls.__name__, [])))
    for budget in (*cls.example_budgets(), None)
]
# all but what is here to be reproduced without its claim
CLAIMED = [case for case in CASES if not case.cls.card.refuted_because]
PRIVATE = [case for case in CLAIMED if case.budget is not None]
FIRST_OF_CLASS = [next(case for case in CASES if case.cls is cls) for cls in registered().values()]
EPISODIC = [case for case in FIRST_OF_CLASS if not case.cls.card.learns_at_once]
AT_ONCE = [case for case in FIRST_OF_CLASS if case.cls.card.learns_at_once]


def _distinct(cases: Iterable[Case], key: Callable[[Case], Any]) -> list[Case]:
    """The first case of each kind."""
    found: dict[Any, Case] = {}
    for case in cases:
        found.setdefault(key(case), case)
    return list(found.values())


# What `make test` compiles of the tests that compile a class's loop or release: one class for each
# way to be shown something, to learn, to draw, and to release.
_KINDS = (
    "AdaCGOPE",  # phases of fixed arms
    "AdaCOFUL",  # contexts, rare releases
    "AdaCUCB",  # episodes of arms
    "EXP4",  # advice
    "HTINF",  # random batches
    "LDPUCB",  # at once, of one arm
    "LinUCBJDP",  # private contexts
    "PrivateLinUCB",  # a running sum
)
OF_KINDS = [str(case) for case in FIRST_OF_CLASS if case.cls.__name__ in _KINDS]

# One budget for each noise that an algorithm is played with, and for each norm of its sensitivity.
BY_FAMILY = _distinct(CASES, lambda case: (case.name, case.noise.family))
PRIVATE_BY_FAMILY = [case for case in BY_FAMILY if case in PRIVATE]
BY_NORM = _distinct(CLAIMED, lambda case: (case.name, case.noise.norm))


CONTEXTUAL = [case for case in CASES if issubclass(case.cls, ContextualPolicy)]
ADVISED = [case for case in CASES if issubclass(case.cls, AdvicePolicy)]
INFORMED = CONTEXTUAL + ADVISED


@cache
def _features(n_arms: int, dimension: int, corners: bool) -> np.ndarray:
    rng = np.random.default_rng([2, n_arms, dimension])
    if corners:
        return rng.choice([-1.0, 1.0], (ROUNDS, n_arms, dimension)) / np.sqrt(dimension)
    x = rng.standard_normal((ROUNDS, n_arms, dimension))
    # Shorter than one: at length one the first determinants are powers of two, and whether they
    # have doubled is a matter of rounding.
    return x / np.linalg.norm(x, axis=2, keepdims=True) * rng.uniform(0.5, 0.9, (ROUNDS, n_arms, 1))


@cache
def _advice(n_arms: int, n_experts: int, corners: bool) -> np.ndarray:
    rng = np.random.default_rng([3, n_arms, n_experts])
    if corners:
        return np.moveaxis(
            np.eye(n_arms)[rng.integers(0, n_arms, (ROUNDS, n_experts))], 1, 2
        ).copy()
    return np.moveaxis(rng.dirichlet(np.ones(n_arms), (ROUNDS, n_experts)), 1, 2).copy()


def contexts_of(policy: Policy, *, corners: bool = False) -> np.ndarray | None:
    """Public contexts for ``ROUNDS`` rounds, the same in every call: shape (ROUNDS, K, d), or None
    for policies that take none.

    ``corners`` are of length one and the longest vectors in the L1 norm, too: a reward moves x *
    reward the farthest there.  Advice stands here as kernels see it, shape (ROUNDS, K, N); at its
    corners every expert is certain.
    """
    if isinstance(policy, AdvicePolicy):
        return _advice(policy.n_arms, policy.n_experts, corners)
    return (
        _features(policy.n_arms, policy.dimension, corners)
        if isinstance(policy, ContextualPolicy)
        else None
    )


def shown(policy: Policy, contexts: np.ndarray) -> np.ndarray:
    """What a user passes to ``pull`` for these."""
    return contexts.T if isinstance(policy, AdvicePolicy) else contexts


def pull(policy: Policy, user: User | None = None) -> Decision:
    """``pull`` with the contexts of the round, where the policy takes any."""
    contexts = contexts_of(policy)
    number = policy.session.rounds.pulls % ROUNDS
    return policy.pull(None if contexts is None else shown(policy, contexts[number]), user=user)


def over(cases: Iterable[Case], *, short: Iterable[str] | None = None) -> pytest.MarkDecorator:
    """One test for each case, which are long but for those whose name, of the class or with the kind
    of budget, is in ``short``.

    One process runs all tests of a class, so that its kernels are compiled, and loaded, once.
    """
    named, marked = None if short is None else set(short), []
    for case in cases:
        marks = [pytest.mark.xdist_group(case.cls.__name__)]
        if not (named is None or {case.name, str(case)} & named):
            marks.append(pytest.mark.long)
        marked.append(pytest.param(case, marks=marks))
    return pytest.mark.parametrize("case", marked, ids=str)


class Release(NamedTuple):
    """What crossed the wall, in every world of a ``Walk``."""

    first: int
    last: int
    part: int
    bound: float
    statistics: list[np.ndarray]


@cache
def in_python(kernels: Kernels) -> Kernels:
    """The same kernels, interpreted."""
    return dataclasses.replace(
        kernels,
        **{
            field.name: interpreted(getattr(kernels, field.name))
            for field in dataclasses.fields(kernels)
            if field.type == "Kernel"
        },
    )


class Walk:
    """An algorithm driven kernel by kernel: one public side, and a private side for each of several
    worlds.

    All kernels but ``init``, ``prepare``, ``record_pull``, ``close`` and ``publish`` are held to
    leave the public side as it is.  Releases are the statistics of the first world, or where the
    policy has a counter their sum so far, plus noise, or arbitrary numbers where ``noise`` is
    large.  ``spoil`` puts NaN into working memory before every call.  Nothing is compiled: that
    compiled code does the same is for ``test_one_truth``.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        worlds: int = 1,
        noise: float = 1.0,
        seed: int = 0,
        contexts: np.ndarray | None = None,
        spoil: bool = False,
        kernels: Kernels | None = None,
    ) -> None:
        self.policy, self.params = policy, policy.params
        self.kernels = in_python(kernels or policy.driven)
        starts = [policy.new_state() for _ in range(worlds)]
        self.raws = [start.raw for start in starts]
        self.public, self.memo, self.wall = starts[0].public, starts[0].memo, starts[0].wall
        self.rng = np.random.default_rng(seed)
        self.noise, self.rounds, self.arms = noise, 0, np.zeros(0, np.int64)
        self.contexts = contexts_of(policy) if contexts is None else contexts
        self.spoil = spoil
        self.sum = np.zeros_like(self.wall.statistic)

    def step(self, rewards: Callable[[int, int, int], list[float]]) -> Release | None:
        """Play one choice to its end; ``rewards(first, arm, n)`` gives the sum of n rewards in each
        world.
        """
        choice_rng = self.rng if self.policy.card.randomised else None
        seen = self._seen(choice_rng)
        self._call("prepare", self.params, self.public, seen, choice_rng)
        arm = self._read("choose", self.params, self.public, seen, choice_rng)[0]
        n = self._read("hold_rounds", self.params, self.public, arm)
        assert n >= 1
        assert n == 1 or self.contexts is None
        n = min(n, ROUNDS - self.rounds)
        x = 0 if self.contexts is None else seen[arm]
        self._call("record_pull", self.params, self.public, arm, x, n)
        self._read("weigh", self.params, self.public, arm, x)
        together = 1 if self.policy.takes_each_reward else n
        for first in range(self.rounds, self.rounds + n, together):
            for raw, total in zip(self.raws, rewards(first, arm, together), strict=True):
                self._read("accumulate", self.params, raw, arm, x, total, together)
        self.rounds += n
        self.arms = np.append(self.arms, np.full(n, arm))
        return self._release() if self._read("release_due", self.params, self.public) else None

    def until(
        self, releases: int, rewards: Callable[[int, int, int], list[float]]
    ) -> list[Release]:
        """Play until there have been so many releases, or ``ROUNDS`` rounds; at least one release."""
        seen: list[Release] = []
        while len(seen) < releases and self.rounds < ROUNDS:
            release = self.step(rewards)
            seen += [] if release is None else [release]
        assert seen, "no release in sight"
        return seen

    def covers(self, release: Release, row: int) -> bool:
        return release.first <= row <= release.last and release.part in (WHOLE, self.arms[row])

    def _release(self) -> Release:
        bound = self._read("sensitivity", self.params, self.public, self.policy.channel.norm)
        part = int(self._read("partition", self.params, self.public))
        self._call("close", self.params, self.public, self.memo)
        statistics = []
        for raw in self.raws:
            statistic = np.full_like(self.wall.statistic, np.nan)
            self._read("summarise", self.params, raw, self.public, self.memo, statistic)
            statistics.append(statistic)
        first, self.wall.first_unreleased[part] = (
            int(self.wall.first_unreleased[part]),
            self.rounds,
        )
        adds_up = self.policy.statistic.counter is not None
        self.sum = self.sum + statistics[0] if adds_up else statistics[0]
        noisy = self.sum + self.noise * bound * self.rng.standard_normal(self.sum.size)
        self._call("publish", self.params, self.public, self.memo, noisy)
        for i in range(getattr(self.policy, "dimension", 0)):
            self._read("estimate", self.params, self.public, i)
        self._read("stop", self.params, self.public)
        self._read("recommend", self.params, self.public)
        return Release(first, self.rounds - 1, part, bound, statistics)

    def _seen(self, rng: np.random.Generator | None) -> Any:
        if self.contexts is None:
            return 0
        contexts = self.contexts[self.rounds]
        seen = np.full_like(contexts, np.nan)
        self._read("preprocess_contexts", self.params, contexts.copy(), seen, rng)
        return seen

    def _read(self, name: str, *arguments: Any) -> Any:
        before = frozen(self.public)
        answer = self._call(name, *arguments)
        assert frozen(self.public) == before, f"{name} changes the public side"
        return answer

    def _call(self, name: str, *arguments: Any) -> Any:
        if self.spoil:
            for scratch in scratch_of(self.public):
                scratch[...] = np.nan
        return getattr(self.kernels, name)(*arguments)


def scratch_of(side: Any) -> list[np.ndarray]:
    """The working memory in nested tuples of arrays."""
    held = zip(getattr(side, "_fields", ()), side, strict=True) if isinstance(side, tuple) else ()
    return [
        array for name, one in held for array in ([one] if name == "scratch" else scratch_of(one))
    ]


def frozen(state: Any) -> tuple[bytes, ...]:
    """The bytes of arrays and numbers in nested tuples, without ``scratch``: working
    memory that nobody reads between two calls.
    """
    names = getattr(state, "_fields", [""] * len(state))
    found: list[bytes] = []
    for name, held in zip(names, state, strict=True):
        if isinstance(held, tuple):
            found += frozen(held)
        elif name != "scratch":
            found.append(np.asarray(held).tobytes())
    return tuple(found)


def snapshot(policy: Policy) -> dict[str, Any]:
    """Everything that a refused call has to leave alone."""
    session = policy.session
    state, wall = session.state, session.state.wall
    return {
        "raw": frozen(state.raw),
        "public": frozen(state.public),
        "wall": frozen(wall),
        "rounds": _comparable(session.rounds),
        "streams": {name: str(rng.bit_generator.state) for name, rng in state.streams.items()},
        "last": session.last and session.last.number,
    }


def _comparable(rounds: Any) -> dict[str, Any]:
    """Where a policy stands, with bytes in place of arrays."""
    numbers, arrays = rounds.saved()
    return {
        **copy.deepcopy(numbers),
        **{name: array.tobytes() for name, array in arrays.items()},
        "current_choice": repr(numbers["current_choice"]),
    }


def releases(policy: Policy) -> int:
    return policy.ledger.releases


def draws(policy: Policy) -> int:
    return policy.ledger.draws


def spans(policy: Policy) -> list[list[int]]:
    ledger = policy.session.state.wall.ledger
    return ledger.span[: ledger.head[HEAD.lines]].tolist()


def play(policy: Policy, reward: Callable[[Decision], float], *, until: int) -> list[Decision]:
    """Pull and update by hand until there have been so many releases."""
    seen = []
    while releases(policy) < until:
        decision = pull(policy)
        seen.append(decision)
        if releases(policy) < until:
            policy.update(reward(decision), decision)
        assert len(seen) < ROUNDS, "no release in sight"
    return seen


def gaussian_mu_of(budget: Budget) -> float:
    """The mu of the Gaussian release that a budget allows."""
    if isinstance(budget, ZCDP):
        return float(np.sqrt(2 * budget.rho))
    if isinstance(budget, RDP):
        return float(np.sqrt(2 * budget.epsilon / budget.alpha))
    assert isinstance(budget, ApproxDP)
    return budget.mu


def scaled(budget: Budget | None, factor: float) -> Budget:
    """A budget of the same notion, ``factor`` times as large."""
    if isinstance(budget, ZCDP):
        return ZCDP(budget.rho * factor)
    assert isinstance(budget, PureDP)
    return PureDP(budget.epsilon * factor)
