"""Drive a policy kernel by kernel, or by hand, for checks of its behaviour."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..kernel import interpreted
from ..policies import Decision, Kernels, Policy
from ..privacy.ledger import HEAD, WHOLE
from ..session.saved_head import NUMBERS
from ..session.saved_rows import whole_rows
from ..stores import User

Make = Callable[..., Policy]  # a policy without its last arguments
ROUNDS = 30_000  # as far as a history goes


def require(true: bool, rule: str) -> None:
    """Raise an AssertionError that says which rule is broken, under ``python -O``, too."""
    if not true:
        raise AssertionError(rule)


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
    rng, shape = np.random.default_rng([3, n_arms, n_experts]), (ROUNDS, n_experts)
    certain, unsure = np.eye(n_arms), np.ones(n_arms)
    advice = certain[rng.integers(0, n_arms, shape)] if corners else rng.dirichlet(unsure, shape)
    return np.moveaxis(advice, 1, 2).copy()


def contexts_of(policy: Policy, *, corners: bool = False) -> np.ndarray | None:
    """Public contexts for ``ROUNDS`` rounds, the same in every call: shape (ROUNDS, K, d), or None
    for policies that take none.

    ``corners`` are of length one and the longest vectors in the L1 norm, too: a reward moves x *
    reward the farthest there.  Advice stands here as kernels see it, shape (ROUNDS, K, N); at its
    corners every expert is certain.
    """
    if not policy.sees:
        return None
    drawn = _advice if policy.sees == "advice" else _features
    return drawn(policy.n_arms, policy.dimension, corners)


def shown(policy: Policy, contexts: np.ndarray) -> np.ndarray:
    """The value that a user passes to ``pull`` for these contexts."""
    return contexts.T if policy.sees == "advice" else contexts


def pull(policy: Policy, user: User | None = None) -> Decision:
    """``pull`` with the contexts of the round, where the policy takes any."""
    contexts = contexts_of(policy)
    number = policy.session.rounds.pulls % ROUNDS
    return policy.pull(None if contexts is None else shown(policy, contexts[number]), user=user)


class Release(NamedTuple):
    """A release in every world of a ``Walk``."""

    first: int
    last: int
    part: int
    bound: float
    statistics: list[np.ndarray]


@cache
def in_python(kernels: Kernels) -> Kernels:
    """The kernels in plain Python."""
    fields = [field.name for field in dataclasses.fields(kernels) if field.type == "Kernel"]
    plain: Any = {name: interpreted(getattr(kernels, name)) for name in fields}
    return dataclasses.replace(kernels, **plain)


class Walk:
    """An algorithm driven kernel by kernel: one public side, and a private side for each of several
    worlds.

    Only ``init``, ``prepare``, ``record_pull``, ``close`` and ``publish`` may change the public
    side.  Releases are the statistics of the first world plus noise; with a counter, their sum so
    far plus noise.  Where ``noise`` is large, they are arbitrary numbers.  ``spoil`` puts NaN into
    working memory before every call.  Nothing is compiled; ``streams`` checks that compiled code
    gives equal results.
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
        self.fixed = frozen(self.params)
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
        """Play one choice to its end; ``rewards(first, arm, n)`` sums n rewards in each world."""
        choice_rng = self.rng if self.policy.card.randomised else None
        seen = self.seen(choice_rng)
        self.call("prepare", self.params, self.public, seen, choice_rng)
        arm = self.read("choose", self.params, self.public, seen, choice_rng)[0]
        n = self.read("hold_rounds", self.params, self.public, arm)
        require(n >= 1, "hold_rounds: a choice stands for one round at least")
        require(n == 1 or self.contexts is None, "hold_rounds: a choice with contexts is one round")
        n = min(n, ROUNDS - self.rounds)
        x = 0 if self.contexts is None else seen[arm]
        self.call("record_pull", self.params, self.public, arm, x, n)
        self.read("weigh", self.params, self.public, arm, x)
        together = 1 if self.policy.takes_each_reward else n
        for first in range(self.rounds, self.rounds + n, together):
            for raw, total in zip(self.raws, rewards(first, arm, together), strict=True):
                self.read("accumulate", self.params, raw, arm, x, total, together)
        self.rounds += n
        self.arms = np.append(self.arms, np.full(n, arm))
        return self._release() if self.read("release_due", self.params, self.public) else None

    def until(
        self, releases: int, rewards: Callable[[int, int, int], list[float]]
    ) -> list[Release]:
        """Play until there have been so many releases, one at least, or for ``ROUNDS`` rounds, or
        until it is clear that there will be no more: a search ends.
        """
        seen: list[Release] = []
        until = ROUNDS
        while len(seen) < releases and self.rounds < until:
            release = self.step(rewards)
            if release is not None:
                seen.append(release)
                until = min(ROUNDS, 100 + 8 * release.last)  # episodes may double, and more
        require(bool(seen), f"release_due: no release in {ROUNDS:,} rounds")
        return seen

    def covers(self, release: Release, row: int) -> bool:
        return release.first <= row <= release.last and release.part in (WHOLE, self.arms[row])

    def _release(self) -> Release:
        bound = self.read("sensitivity", self.params, self.public, self.policy.channel.norm)
        part = int(self.read("partition", self.params, self.public))
        self.call("close", self.params, self.public, self.memo)
        statistics = []
        for raw in self.raws:
            statistic = np.full_like(self.wall.statistic, np.nan)
            self.read("summarise", self.params, raw, self.public, self.memo, statistic)
            statistics.append(statistic)
        first = int(self.wall.first_unreleased[part])
        self.wall.first_unreleased[part] = self.rounds
        adds_up = self.policy.statistic.counter is not None
        self.sum = self.sum + statistics[0] if adds_up else statistics[0]
        noisy = self.sum + self.noise * bound * self.rng.standard_normal(self.sum.size)
        self.call("publish", self.params, self.public, self.memo, noisy)
        for i in range(self.policy.dimension):
            self.read("estimate", self.params, self.public, i)
        self.read("stop", self.params, self.public)
        self.read("recommend", self.params, self.public)
        return Release(first, self.rounds - 1, part, bound, statistics)

    def seen(self, rng: np.random.Generator | None) -> Any:
        if self.contexts is None:
            return 0
        contexts = self.contexts[self.rounds]
        seen = np.full_like(contexts, np.nan)
        self.read("preprocess_contexts", self.params, contexts.copy(), seen, rng)
        return seen

    def read(self, name: str, *arguments: object) -> Any:
        before = frozen(self.public)
        answer = self.call(name, *arguments)
        same = frozen(self.public) == before
        require(same, f"{name} changes the public side, which it may only read")
        return answer

    def call(self, name: str, *arguments: object) -> Any:
        if self.spoil:
            for scratch in scratch_of(self.public):
                scratch[...] = np.nan
        try:
            answer = getattr(self.kernels, name)(*arguments)
        except AttributeError as error:
            undeclared = not self.policy.card.randomised and "NoneType" in str(error)
            require(not undeclared, f"{name} draws, and the card has no randomised=True: {error}")
            raise
        require(frozen(self.params) == self.fixed, f"{name} changes params, which never change")
        return answer


_UNREAD = ("scratch", "cache")


def scratch_of(side: object) -> list[np.ndarray]:
    """The working memory, and kept values, in nested tuples of arrays."""
    held = zip(getattr(side, "_fields", ()), side, strict=True) if isinstance(side, tuple) else ()
    parts = ([one] if name in _UNREAD else scratch_of(one) for name, one in held)
    return [array for part in parts for array in part]


def frozen(state: Sequence[object]) -> tuple[bytes, ...]:
    """The bytes in nested tuples, without ``scratch`` and ``cache``, on which no result depends."""
    names = getattr(state, "_fields", [""] * len(state))
    found: list[bytes] = []
    for name, held in zip(names, state, strict=True):
        if isinstance(held, tuple):
            found += frozen(held)
        elif name not in _UNREAD:
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
        "rounds": _comparable(session),
        "streams": {name: str(rng.bit_generator.state) for name, rng in state.streams.items()},
        "last": None if session.last is None else session.last.number,
    }


def _comparable(session: Any) -> dict[str, Any]:
    """What waits between calls, and all counts; not the lives, which a load changes."""
    rounds = session.rounds
    return {
        **{name: getattr(rounds, name) for name in NUMBERS},
        "current_choice": repr(rounds.current_choice),
        "retired": (rounds.retired, rounds.chosen_among),
        "told": session.told,
        "rows": sorted(row for row in whole_rows(session) if row.kind != "release"),
        "made": [numbers for _, *numbers in session.exchange.made],
        "order": list(rounds.pending),
    }


def releases(policy: Policy) -> int:
    """The number of releases so far."""
    return policy.ledger.releases


def spans(policy: Policy) -> list[list[int]]:
    """The rounds that the lines of the ledger cover."""
    ledger = policy.session.state.wall.ledger
    lines: list[list[int]] = ledger.span[: ledger.head[HEAD.lines]].tolist()
    return lines


def play(policy: Policy, reward: Callable[[Decision], float], *, until: int) -> list[Decision]:
    """Pull and update by hand until there have been so many releases."""
    seen = []
    while releases(policy) < until:
        decision = pull(policy)
        seen.append(decision)
        if releases(policy) < until:
            policy.update(reward(decision), decision)
        require(len(seen) < ROUNDS, f"release_due: no release in {ROUNDS:,} rounds")
    return seen
