"""Two baselines that a useful policy has to beat: choosing at random, and exploring first.

**Exploring first, then staying.**  Every arm is played for m rounds, one after the other.  The K
sums of rewards cross the wall together, with the noise of one release.  From then on the arm of
the highest noisy mean is played; of equals any.

Privacy: it is public which person answers for which arm.  One person contributes one reward to one
of the K sums.  Another reward moves that sum by at most the width of the reward range, in the L1
norm as in the L2 norm, and no other sum.  One release of noise for that sensitivity spends the
whole budget, and all that follows is post-processing.  Under local trust every reward has that
noise by itself, and a sum has the noise of m rewards.

m is the best length for the setting, which is unknown beforehand.  So this is a yardstick, and no
policy.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from ..environments import ArmsEnvironment
from ..environments.base import ArmsKernels, ContextKernels, StationaryState, World
from ..kernel import Generator, Kernel, Matrix, Vector, bind, entry, inlined, unbound
from ..privacy.budgets import Budget
from ..privacy.channels import FAMILIES, Channel, Gaussian, Laplace, Open, noise_for
from ..report.intervals import curve, mean
from ..report.means import Estimate, estimate
from ..simulation.seeding import identity, stream
from .setting import Setting, gaps_of

draw = regret = show = answer = unbound

_NAME = "choosing at random"
_DRAWS = 20_000  # of sums, at every length that is tried
_LEAST, _MOST = 200, 2_000  # runs at every length
_FRESH = 5  # times as many at the best one
_MANY = 30  # Laplace variables, whose sum is drawn as a Gaussian
_APART = 1.2  # neighbours among the lengths that are tried


@cache
def _loop(played: Kernel, environment: ArmsKernels | ContextKernels) -> Kernel:
    """The compiled loop of a yardstick in one kind of environment."""
    return bind(played, **{name: inlined(step) for name, step in environment._asdict().items()})


@entry
def _choose_at_random(
    environment: Any, contexts: Matrix, horizon: int, world_rng: Generator, choice_rng: Generator
) -> float:
    lost = 0.0
    for t in range(horizon):
        hidden = show(environment, t, contexts, world_rng)
        arm = int(choice_rng.random() * contexts.shape[0])
        _, regret = answer(environment, t, contexts, hidden, arm, world_rng)
        lost += regret
    return lost


def regret_at_random(environment: World, horizon: int, *, runs: int, seed: int) -> np.ndarray:
    """The regret of choosing at random, all arms alike, in every run, shape (runs,).

    Without contexts it is exact: the mean over arms of the regret of each.  With contexts it is
    simulated, and run i meets the contexts that run i of ``simulate`` meets.
    """
    if isinstance(environment, ArmsEnvironment):
        cost = environment.kernels.regret
        lost = [cost(environment.state, arm, 0, horizon) for arm in range(environment.n_arms)]
        return np.full(runs, float(np.mean(lost)))
    loop = _loop(_choose_at_random, environment.kernels)
    contexts = np.zeros((environment.n_arms, environment.dimension))
    owners = {"environment": identity(environment.stream_key), "policy": identity(_NAME)}
    lost = []
    for run in range(runs):
        rngs = [stream(seed, name, owner, run) for name, owner in owners.items()]
        lost.append(loop(environment.state, contexts, horizon, *rngs))
    return np.array(lost)


@dataclass(frozen=True)
class Exploring:
    """Exploring first, then staying, at its best length.

    Attributes:
        length: rounds that every arm is played; 0 where it is best not to learn at all.
        cost: mean regret, with its interval.
        regrets: of the runs that ``cost`` is the mean of.
    """

    length: int
    cost: Estimate
    regrets: np.ndarray = field(repr=False, compare=False)

    @property
    def title(self) -> str:
        """Its name in tables."""
        return f"exploring first ({self.length:,} rounds an arm), then staying"


def in_reverse(setting: Setting) -> ArmsEnvironment | None:
    """The world with its arms in the reverse order; None where order is part of the setting, or
    does not matter.  A policy that first plays arms in a fixed order gains where the first is the
    best. It loses as much where the best is the last.

    >>> from dpbandits.environments import Bernoulli
    >>> in_reverse(Setting.of(Bernoulli([0.9, 0.5]))).state.gaps
    array([0.4, 0. ])
    """
    world = setting.simulated
    if setting.features is not None or not isinstance(world, ArmsEnvironment):
        return None
    if not isinstance(world.state, StationaryState):
        return None
    turned = copy.copy(world)
    turned.state = StationaryState(*(np.ascontiguousarray(one[::-1]) for one in world.state))
    return turned


def why_not_exploring(setting: Setting, reward_range: tuple[float, float]) -> str | None:
    """Why exploring first has no meaning in a setting; None where it has."""
    world = setting.simulated
    if setting.contexts in ("public", "private"):
        return "the best arm is another one in every round"
    if setting.experts is not None:
        return "what counts is the best expert, not the best arm"
    if setting.rewards != "law":
        return "the best arm may change"
    if setting.trust == "shuffle":
        return "its noise would be that of a protocol of its own"
    if world is not None and world.delay is not None:
        return "answers are late"
    (lo, hi), (low, high) = reward_range, (0.0, 0.0) if world is None else world.support
    if low < lo or high > hi:
        return "rewards may lie outside of their range, within which noise is calibrated"
    return None


@dataclass(frozen=True)
class Yardsticks:
    """The baselines that a policy has to beat.

    Attributes:
        random: regret of choosing at random, of every run, shape (runs,); the same in all where it
            is exact.
        exploring: exploring first, then staying; None where it has no meaning.
        why_not: why it has none.
    """

    random: np.ndarray
    exploring: Exploring | None
    why_not: str | None

    @property
    def at_random(self) -> Estimate:
        """Mean regret of choosing at random; an interval without length where it is exact."""
        if np.ptp(self.random) == 0.0:
            return Estimate(*[float(self.random[0])] * 3)
        return estimate(self.random)

    @property
    def by_name(self) -> dict[str, Estimate]:
        """The mean regret of each, by its name in tables."""
        found = {_NAME: self.at_random}
        if self.exploring is not None:
            found[self.exploring.title] = self.exploring.cost
        return found


def yardsticks(
    setting: Setting,
    horizon: int,
    budget: Budget | None,
    reward_range: tuple[float, float],
    *,
    runs: int,
    seed: int,
) -> Yardsticks:
    """Both yardsticks of a setting with a simulation; ``runs`` are of choosing at random."""
    world, why_not = setting.simulated, why_not_exploring(setting, reward_range)
    assert world is not None
    random = regret_at_random(world, horizon, runs=runs, seed=seed)
    if why_not is not None or not isinstance(world, ArmsEnvironment):
        return Yardsticks(random, None, why_not)
    asked: dict[str, Any] = {"trust_model": setting.trust, "reward_range": reward_range}
    return Yardsticks(random, exploring(world, horizon, budget, seed=seed, **asked), None)


@entry
def _explore(
    environment: Any, length: int, horizon: int, noise: Matrix, lost: Vector, rng: Generator
) -> None:
    """The regret of every run, shape (runs,), with the noise on its sums, shape (runs, K)."""
    n_arms = noise.shape[1]
    for run in range(lost.size):
        best, highest, cost = 0, -np.inf, 0.0
        first = int(rng.random() * n_arms)  # or of equals the first arm would win
        for i in range(n_arms):
            arm = (first + i) % n_arms
            total = draw(environment, arm, arm * length, length, rng) + noise[run, arm]
            cost += regret(environment, arm, arm * length, length)
            if total > highest:
                best, highest = arm, total
        spent = n_arms * length
        lost[run] = cost + regret(environment, best, spent, horizon - spent)


def exploring(
    world: ArmsEnvironment,
    horizon: int,
    budget: Budget | None,
    *,
    trust_model: str = "central",
    reward_range: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    least_runs: int = 0,
) -> Exploring:
    """Exploring first, then staying, at the length that costs least.

    Lengths are tried from 1 to horizon / K, 1.2 times apart, all with the same noise.  Those at
    which exploring alone costs more than all of the best run are left out.  The cost of the best
    length comes from fresh runs, at least ``least_runs``, which are independent of the choice.  The
    length is 0 unless these show that it costs less than random choice; then any arm is kept.  The
    budget is that of the one release; under "local" trust every reward has noise.

    >>> from dpbandits.environments import Bernoulli
    >>> from dpbandits import PureDP
    >>> found = exploring(Bernoulli([0.2, 0.8]), 1000, PureDP(1.0))
    >>> 5 < found.length < 50, 5.0 < found.cost.mean < 20.0
    (True, True)
    """
    loop, k, channel = _loop(_explore, world.kernels), world.n_arms, _channel(budget)
    width = reward_range[1] - reward_range[0]
    runs = int(np.clip(_DRAWS // k, _LEAST, _MOST))

    def costs(length: int, runs: int, start: int) -> np.ndarray:
        rng = stream(seed, "privacy", identity("exploring first"), start)
        noise = _noise(channel, width, length if trust_model == "local" else 1, (runs, k), rng)
        lost = np.empty(runs)
        loop(world.state, length, horizon, noise, lost, rng)
        return lost

    longest = max(horizon // k, 1)
    steps = 1 + int(np.ceil(np.log(longest) / np.log(_APART)))
    lengths = np.unique(np.geomspace(1, longest, steps).astype(int))
    means: list[float] = []
    gaps = gaps_of(world)
    for one in lengths[lengths * k <= horizon]:
        if gaps is not None and means and one * gaps.sum() > min(means):
            break  # from here on exploring alone costs more
        means.append(costs(int(one), runs, 0).mean())
    without = float(regret_at_random(world, horizon, runs=1, seed=seed)[0])
    if means:
        best = int(lengths[int(np.argmin(means))])
        regrets = costs(best, max(_FRESH * runs, least_runs), 1)
        # by Student's t: to resample so many runs would take longer than all else
        found = Estimate(*map(float, curve([regrets[np.newaxis]], mean)))
        if found.high < without:
            return Exploring(best, found, regrets)
    regrets = np.full(max(_FRESH * runs, least_runs), without)
    return Exploring(0, Estimate(without, without, without), regrets)


def _channel(budget: Budget | None) -> Channel:
    """The noise of one release."""
    kind: Any = noise_for(budget, FAMILIES) if budget else None  # one suits every notion
    return kind.calibrated(budget) if budget else Open()


def _noise(
    channel: Channel, width: float, count: int, shape: tuple[int, int], rng: np.random.Generator
) -> np.ndarray:
    """Sums of ``count`` noise variables each, from the channel.

    Many Laplace variables are drawn as one Gaussian of their variance: from 30 on the excess
    kurtosis of their sum, 3 / count, is at most a tenth.
    """
    nothing, added = np.zeros(int(np.prod(shape))), 1
    if isinstance(channel, Laplace) and count < _MANY:
        added = count
    elif isinstance(channel, Laplace):
        channel = Gaussian(np.sqrt(2.0 * count) * channel.multiplier)
    elif isinstance(channel, Gaussian):
        channel = Gaussian(np.sqrt(count) * channel.multiplier)
    return np.reshape(sum(channel.release(nothing, width, rng) for _ in range(added)), shape)
