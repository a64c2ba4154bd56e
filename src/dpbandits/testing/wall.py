"""Checks of the wall: raw data leave only in a release, and one record moves it within its
bound.
"""

from __future__ import annotations

import inspect
import itertools
import random
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.bases.contextual import ContextualPolicy
from ..kernel import plain
from ..policies import Kernels, Policy
from ..session.state import named_arrays
from .walk import ROUNDS, Make, Walk, contexts_of, frozen, require

ARGUMENTS = {
    "init": "params",
    "prepare": "params public contexts rng",
    "choose": "params public contexts rng",
    "hold_rounds": "params public arm",
    "preprocess_contexts": "params contexts seen rng",
    "record_pull": "params public arm x n",
    "weigh": "params public arm x",
    "accumulate": "params raw arm x reward n",
    "release_due": "params public",
    "partition": "params public",
    "sensitivity": "params public norm",
    "close": "params public memo",
    "summarise": "params raw public memo statistic",
    "publish": "params public memo release",
    "estimate": "params public i",
    "absorb": "params public memo release",
    "withdraw": "params public memo",
    "restart": "params raw public",
    "rebase": "params public release",
    "stop": "params public",
    "recommend": "params public",
}
RELEASES = 5
GRID = 64  # rewards are multiples of width / 64 with dyadic ends: sums of them are exact


# The wall -------------------------------------------------------------------------------------


def kernels_take_their_arguments(kernels: Kernels) -> None:
    """Kernels that decide have no argument for raw data."""
    for name, arguments in ARGUMENTS.items():
        taken = " ".join(inspect.signature(plain(getattr(kernels, name))).parameters)
        require(taken == arguments, f"{name} takes ({taken}), where the protocol has ({arguments})")


def sides_share_no_memory(make: Make) -> None:
    """No array of a side is one of the other side, nor another one of the same."""
    policy = make()
    raw, public = policy.kernels.init(policy.params)
    arrays = [*named_arrays("raw", raw), *named_arrays("public", public)]
    require(arrays[0][0].startswith("raw."), "init: the private side has no array")
    for (name, array), (other, another) in itertools.combinations(arrays, 2):
        apart = not np.shares_memory(array, another)
        require(apart, f"init: {name} and {other} share memory")


def deciding_changes_nothing(make: Make, seed: int = 0, noise: float = 1.0) -> None:
    """Kernels that read the public side leave it as it is: the walk looks after every call."""
    walk, rng = Walk(make(), noise=noise, seed=seed), np.random.default_rng(seed)
    walk.until(4, lambda first, arm, n: [float(rng.binomial(n, 0.5))])


def nobody_reads_old_scratch(make: Make) -> None:
    """Remains of an earlier call in working memory change nothing."""
    require(_walked(make, spoil=True) == _walked(make), "a kernel reads what was left in scratch")


def randomness_comes_from_rng(make: Make) -> None:
    """Kernels draw from their argument ``rng``, or not at all."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002  (what kernels would draw from)
    found = []
    try:
        for seed in (1, 2):
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            found.append(_walked(make))
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
    rule = "a kernel draws random numbers of its own: only rng, of prepare, choose and"
    require(found[0] == found[1], f"{rule} preprocess_contexts, may be drawn from")


def _walked(make: Make, *, spoil: bool = False) -> tuple[Any, ...]:
    """All that a walk leaves behind."""
    walk, rng = Walk(make(), seed=4, spoil=spoil), np.random.default_rng(4)
    seen = walk.until(6, lambda first, arm, n: [float(rng.binomial(n, 0.5))])
    return walk.arms.tolist(), [r.statistics[0].tolist() for r in seen], frozen(walk.public)


# Sensitivity ----------------------------------------------------------------------------------


class Movement(NamedTuple):
    """The distance that a changed record moves a release."""

    distance: float
    covered: bool  # whether the ledger says that the release covers it
    bound: float


def movements(
    policy: Policy,
    *,
    seed: int,
    noise: float,
    where: float,
    values: list[int],
    new: int | None,
    longer: float = 1.0,
    kernels: Kernels | None = None,
) -> list[Movement]:
    """The movements of every release when the record at the fraction ``where`` of a random history
    becomes ``new``.

    Rewards are drawn from ``values``, in grid steps above the lower end; ``new`` = None turns the
    record to the other end.  Contexts, where there are any, are ``longer`` than the policy's bound
    by this factor.
    """
    contexts = contexts_of(policy, corners=True)
    if isinstance(policy, ContextualPolicy) and contexts is not None:
        contexts = longer * policy.context_bound * contexts
    lo, hi = policy.reward_range
    step = (hi - lo) / GRID
    table = np.random.default_rng([seed, 1]).choice(values, ROUNDS)
    sums = np.concatenate([[0], np.cumsum(table)])

    def total(first: int, n: int) -> float:
        return n * lo + step * float(sums[first + n] - sums[first])

    rehearsal = Walk(policy, noise=noise, seed=seed, contexts=contexts, kernels=kernels)
    rehearsed = rehearsal.until(RELEASES, lambda first, arm, n: [total(first, n)])
    row = int(where * (rehearsed[-1].last + 1))  # a search that is over releases nothing more
    shift = step * float((GRID - table[row] if new is None else new) - table[row])

    def in_both(first: int, arm: int, n: int) -> list[float]:
        one = total(first, n)
        return [one, one + (shift if first <= row < first + n else 0.0)]

    walk = Walk(policy, worlds=2, noise=noise, seed=seed, contexts=contexts, kernels=kernels)
    moved = []
    for r in walk.until(RELEASES, in_both):
        distance = np.linalg.norm(r.statistics[1] - r.statistics[0], policy.channel.norm)
        moved.append(Movement(float(distance), walk.covers(r, row), r.bound))
    return moved


def a_record_moves_one_release(moved: list[Movement], slack: float = 0.0) -> None:
    """It is in one release, which it moves by at most the bound, and moves no other."""
    require(
        sum(one.covered for one in moved) <= 1,
        "partition: two releases cover one record, which is paid for once",
    )
    for one in moved:
        require(
            one.covered or one.distance == 0.0,
            f"summarise: a record moves a release that does not cover it, by {one.distance:g}; a"
            " released record has to be forgotten",
        )
        require(
            one.distance <= one.bound * (1 + slack) or not one.covered,
            f"sensitivity: a record moves a release by {one.distance:g}, but {one.bound:g} was"
            " declared",
        )


def records_stay_within_the_bound(make: Make, seeds: range = range(6)) -> None:
    """One reward is replaced in random histories, also by the default of a missing answer."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        low, wide = float(rng.choice([-8.0, 0.0, 0.5])), float(rng.choice([0.25, 1.0, 16.0]))
        policy = make(reward_range=(low, low + wide))
        where, noise = rng.random(), float(rng.choice([0.0, 1.0, 1e6]))
        histories = [([0, GRID], None), (list(range(GRID + 1)), 0)]  # 0: the default reward
        for values, new in histories:
            moved = movements(policy, seed=seed, noise=noise, where=where, values=values, new=new)
            a_record_moves_one_release(moved, 1e-9)


def releases_are_as_declared(make: Make) -> None:
    """Cards, plans and secure noise rely on the declarations of ``statistic`` for all releases."""
    policy = make()
    most, (lo, hi) = policy.statistic, policy.reward_range
    far = max(lo, hi, key=abs)
    walk = Walk(policy, contexts=contexts_of(policy, corners=True))
    for release in walk.until(RELEASES, lambda first, arm, n: [n * far]):
        require(
            release.bound <= most.max_sensitivity * (1 + 1e-12),
            f"max_sensitivity: a release is bounded by {release.bound:g}, but"
            f" {most.max_sensitivity:g} was declared",
        )
        rounds = release.last - release.first + 1
        require(
            most.max_records == 0 or rounds <= most.max_records,
            f"max_records: a release covers {rounds} rounds, but {most.max_records} was declared",
        )
        records = sum(walk.covers(release, row) for row in range(release.first, release.last + 1))
        largest = float(np.max(np.abs(release.statistics)))
        each = most.max_abs_contribution * most.max_weight
        require(
            largest <= each * records * (1 + 1e-9),
            f"max_abs_contribution: {records} records make a coordinate {largest:g}, but"
            f" {each:g} a record was declared",
        )


def statistic_of(policy: Policy, features: np.ndarray, reward: float, arm: int = 0) -> np.ndarray:
    """One person's record in the statistic, after scaling and clipping."""
    state, lo_hi = policy.new_state(), policy.reward_range
    seen = policy.preprocessed(np.tile(features, (policy.n_arms, 1)))
    kernels, statistic = policy.driven, np.full(policy.statistic.size, np.nan)
    value = policy.noise_source.to_grid(float(np.clip(reward, *lo_hi)))
    kernels.accumulate(policy.params, state.raw, arm, seen[arm], value, 1)
    kernels.summarise(policy.params, state.raw, state.public, state.memo, statistic)
    return statistic


def features_stay_within_the_bound(
    policy: ContextualPolicy, rng: np.random.Generator, longer: float = 1.5, pairs: int = 20
) -> None:
    """Where features are private, any two records are no farther apart than the bound."""
    (lo, hi), bound = policy.reward_range, policy.context_bound
    most = policy.statistic.max_sensitivity
    for _ in range(pairs):
        lengths = bound * rng.choice([longer, *rng.uniform(size=2)], (2, 1))
        directions = rng.standard_normal((2, policy.dimension))
        one, other = lengths * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        rewards = rng.choice([lo, hi, rng.uniform(lo, hi)], 2)
        arms = rng.integers(0, policy.n_arms, 2)
        pair = zip((one, other), rewards, arms, strict=True)
        distance = np.subtract(*(statistic_of(policy, x, r, int(a)) for x, r, a in pair))
        moved = float(np.linalg.norm(distance))
        require(
            moved <= most * (1 + 1e-12),
            f"sensitivity: a record with its features moves a release by {moved:g}, but {most:g}"
            " was declared",
        )


class Watched(NamedTuple):
    """The public side after a history."""

    public: list[tuple[bytes, ...]]  # after every round
    ends: list[bool]  # whether a release was due then
    draws: str  # where the generator of all choices stands


def watch(policy: Policy, contexts: np.ndarray | None, reward: float, released: int = 3) -> Watched:
    """Play with these contexts, and force the same releases for all collected data."""
    walk, noisy = Walk(policy, contexts=contexts), np.random.default_rng(5)
    public: list[tuple[bytes, ...]] = []
    ends: list[bool] = []
    while sum(ends) < released and walk.rounds < ROUNDS:
        rng = walk.rng if policy.card.randomised else None
        seen = walk.seen(rng)
        walk.call("prepare", walk.params, walk.public, seen, rng)
        arm = walk.read("choose", walk.params, walk.public, seen, rng)[0]
        n = walk.read("hold_rounds", walk.params, walk.public, arm)
        x = 0 if contexts is None else seen[arm].copy()
        walk.call("record_pull", walk.params, walk.public, arm, x, n)
        walk.read("weigh", walk.params, walk.public, arm, x)
        walk.read("accumulate", walk.params, walk.raws[0], arm, x, n * reward, n)
        walk.rounds += n
        ends.append(bool(walk.read("release_due", walk.params, walk.public)))
        if ends[-1]:
            walk.call("close", walk.params, walk.public, walk.memo)
            release = 10.0 * noisy.standard_normal(policy.statistic.size)
            walk.call("publish", walk.params, walk.public, walk.memo, release)
        public.append(frozen(walk.public))
    return Watched(public, ends, str(walk.rng.bit_generator.state))


def answers_leave_no_trace(make: Make) -> None:
    """Equal releases give equal choices and schedules, for all answers."""
    lo, hi = make().reward_range
    one, other = (watch(make(), contexts_of(make()), reward) for reward in (lo, hi))
    require(one == other, "the public side, or the schedule, depends on answers")


def private_features_leave_no_trace(make: Make) -> None:
    """Equal releases give equal choices and schedules, for all people and all answers."""
    contexts = contexts_of(make())
    assert contexts is not None
    one, other = watch(make(), contexts, 0.0), watch(make(), -0.5 * contexts[::-1], 1.0)
    require(one == other, "the public side, or the schedule, depends on private features")
