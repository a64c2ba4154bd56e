"""Rewards that follow no law: means that are fixed in advance and change over time, without a table
of T x K numbers.

Regret is against the best fixed arm in hindsight: the arm of the largest sum of means over all of
``horizon``.  A window may have negative regret, since that arm need not be the best one there.
With ``regret="dynamic"`` it is against the best arm of every round, and never negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError
from ...kernel import Generator, kernel
from ...tables import array
from ...tables.manners import parameters
from ...validation import choice, flag, integer, real, shortest
from ..arrays import vector
from ..base import ArmsKernels, KnownMeans

REGRETS = ("static", "dynamic")

# Piecewise constant means --------------------------------------------------------------------


class PiecewiseState(NamedTuple):
    """Pieces of constant means, with prefix sums; any window is a difference of two of them."""

    starts: np.ndarray  # (S + 1,) int64: first round of every piece; the last entry is the horizon
    means: np.ndarray  # (S, K), or (S, K + 1): last what dynamic regret is against
    prefix: np.ndarray  # the same shape: sums of the means over the pieces before
    best: np.ndarray  # (1,) int64: the column that regret is against
    random: np.ndarray  # (1,) bool: rewards are 0 or 1; else the means themselves


@kernel
def _piece(state: PiecewiseState, t: int) -> int:
    """The piece that round t lies in; the last one for the horizon."""
    return min(np.searchsorted(state.starts, t, "right"), state.means.shape[0]) - 1


@kernel
def _sum_to(state: PiecewiseState, arm: int, t: int) -> float:
    """The sum of the arm's means over the first t rounds."""
    piece = _piece(state, t)
    return state.prefix[piece, arm] + (t - state.starts[piece]) * state.means[piece, arm]


@kernel
def _draw_piecewise(state: PiecewiseState, arm: int, start: int, n: int, rng: Generator) -> float:
    if not state.random[0]:
        return _sum_to(state, arm, start + n) - _sum_to(state, arm, start)
    total, t, end, piece = 0.0, start, start + n, _piece(state, start)
    while t < end:
        length = min(end, state.starts[piece + 1]) - t
        mean = state.means[piece, arm]
        if length == 1:
            total += 1.0 if rng.random() < mean else 0.0
        else:
            total += rng.binomial(length, mean)
        t += length
        piece += 1
    return total


@kernel
def _piecewise_regret(state: PiecewiseState, arm: int, start: int, n: int) -> float:
    best = state.best[0]
    gained = _sum_to(state, best, start + n) - _sum_to(state, best, start)
    return gained - (_sum_to(state, arm, start + n) - _sum_to(state, arm, start))


class Piecewise(KnownMeans):
    """Means that are constant over pieces of time; the sum over a window is one binomial draw per
    piece.

    Args:
        means: shape (S, K), in [0, 1]: one row per piece.
        starts: the first round of every piece, shape (S,): 0 at first, then increasing.
        horizon: number of rounds.
        random: rewards are 0 or 1 with those means; False gives the means themselves.
        regret: against the best fixed arm, "static", or the best arm of every round, "dynamic".

    Raises:
        ArgumentError: an argument is out of range.

    >>> Piecewise([[0.9, 0.1], [0.1, 0.9]], [0, 600], horizon=1000).means().round(2).tolist()
    [0.58, 0.42]
    """

    kernels = ArmsKernels(_draw_piecewise, _piecewise_regret)

    def __init__(
        self,
        means: ArrayLike,
        starts: ArrayLike,
        *,
        horizon: int,
        random: bool = True,
        regret: str = "static",
    ) -> None:
        self.horizon: int = integer("horizon", horizon, 1)
        rows = array("means", means, parameters(0.0, 1.0), "pieces, arms")
        first = vector("starts", starts, 0, self.horizon - 1).astype(np.int64)
        if first.size != len(rows) or first[0] != 0 or not np.all(np.diff(first) > 0):
            raise ArgumentError(
                f"starts must hold {len(rows)} increasing rounds from 0, got {first.tolist()}",
                "starts",
            )
        self.n_arms, self.support = rows.shape[1], (0.0, 1.0)
        self.regret_is_dynamic = choice("regret", regret, REGRETS) == "dynamic"
        if self.regret_is_dynamic:
            rows = np.column_stack([rows, rows.max(axis=1)])
        bounds = np.append(first, self.horizon)
        sums = np.cumsum(rows * np.diff(bounds)[:, None], axis=0)
        self._means = sums[-1, : self.n_arms] / self.horizon
        prefix = np.vstack([np.zeros(rows.shape[1]), sums[:-1]])
        best = np.array([self.n_arms if self.regret_is_dynamic else int(sums[-1].argmax())])
        drawn = np.array([flag("random", random)])
        self.state = PiecewiseState(bounds, rows, prefix, best, drawn)

    def _arguments(self) -> str:
        pieces = zip(self.state.starts[:-1], self.state.means[:, : self.n_arms], strict=True)
        rows = "; ".join(f"from {start}: {', '.join(map(shortest, row))}" for start, row in pieces)
        return f"{rows}; horizon={self.horizon}, {_told(self)}"


def _told(world: Piecewise | SineDrift) -> str:
    """What rewards and regret are, in a ``repr``."""
    dynamic = ", regret='dynamic'" if world.regret_is_dynamic else ""
    return f"random={bool(world.state.random[0])}{dynamic}"


class SwitchingBest(Piecewise):
    """One arm is better than all others by ``gap``; the best arm changes at given rounds.

    Args:
        n_arms: number of arms.
        best: the best arm of every piece.
        switches: the rounds at which the best arm changes, one fewer than entries of ``best``.
        gap: between the best arm and the others, whose mean is ``(1 - gap) / 2``.
        horizon, random, regret: as for ``Piecewise``.

    >>> SwitchingBest(3, best=[0, 2], switches=[400], horizon=1000).means().tolist()
    [0.48, 0.4, 0.52]
    """

    def __init__(
        self,
        n_arms: int,
        *,
        best: Sequence[int] | np.ndarray,
        switches: Sequence[int] | np.ndarray,
        horizon: int,
        gap: float = 0.2,
        random: bool = True,
        regret: str = "static",
    ) -> None:
        k, gap = integer("n_arms", n_arms, 1, 10**6), real("gap", gap, 0.0, 1.0)
        arms = [integer(f"best[{i}]", arm, 0, k - 1) for i, arm in enumerate(_listed("best", best))]
        means = np.full((len(arms), k), (1.0 - gap) / 2.0)
        means[np.arange(len(arms)), arms] += gap
        starts = [0, *_listed("switches", switches)]
        super().__init__(means, starts, horizon=horizon, random=random, regret=regret)


def _listed(name: str, given: Any) -> list[Any]:
    try:
        return list(given)
    except TypeError:
        raise ArgumentError(f"{name} must be a list, got {type(given).__name__}", name) from None


# Sine waves ----------------------------------------------------------------------------------


class SineState(NamedTuple):
    """Means centre + amplitude sin(2 pi (t / period + phase)) in round t."""

    centres: np.ndarray  # (K,)
    amplitude: np.ndarray  # (1,)
    phases: np.ndarray  # (K,) as fractions of a period
    period: np.ndarray  # (1,)
    best: np.ndarray  # (1,) int64
    random: np.ndarray  # (1,) bool
    crests: np.ndarray  # (period + 1,): sums of the largest mean from 0 on; (0,) for static regret


@kernel
def _angle(state: SineState, arm: int, t: int) -> float:
    # Whole periods are taken out first, so that late rounds lose no digits.
    return 2.0 * np.pi * ((t % state.period[0]) / state.period[0] + state.phases[arm])


@kernel
def _sine_sum(state: SineState, arm: int, start: int, n: int) -> float:
    # sum of sin(a + b t) over n rounds: sin(a + b (n - 1) / 2) sin(b n / 2) / sin(b / 2)
    half = np.pi / state.period[0]
    angle = _angle(state, arm, start)
    # Over whole periods waves cancel.
    m = n % state.period[0]
    waves = np.sin(angle + half * (m - 1.0)) * np.sin(half * m) / np.sin(half)
    return n * state.centres[arm] + state.amplitude[0] * waves


@kernel
def _draw_sine(state: SineState, arm: int, start: int, n: int, rng: Generator) -> float:
    if not state.random[0]:
        return _sine_sum(state, arm, start, n)
    total = 0.0
    for t in range(start, start + n):
        mean = state.centres[arm] + state.amplitude[0] * np.sin(_angle(state, arm, t))
        total += 1.0 if rng.random() < mean else 0.0
    return total


@kernel
def _crests_to(state: SineState, t: int) -> float:
    """The sum of the largest means of the first t rounds."""
    period = state.period[0]
    return (t // period) * state.crests[period] + state.crests[t % period]


@kernel
def _sine_regret(state: SineState, arm: int, start: int, n: int) -> float:
    lost = -_sine_sum(state, arm, start, n)
    if state.crests.size == 0:
        return lost + _sine_sum(state, state.best[0], start, n)
    return lost + _crests_to(state, start + n) - _crests_to(state, start)


class SineDrift(KnownMeans):
    """Means that swing around their centres with different phases: the best arm keeps changing.

    In round t, arm a has mean ``centres[a] + amplitude sin(2 pi (t / period + a / K))``.  With
    ``random`` = False the rewards are the means, and the time of a window does not depend on its
    length.  Rewards 0 or 1 are drawn round by round.

    Args:
        centres: shape (K,); they lie at least ``amplitude`` inside [0, 1].
        amplitude: of the swing.
        period: of the swing in rounds, at least 2.
        horizon, random, regret: as for ``Piecewise``.

    Raises:
        ArgumentError: an argument is out of range.

    >>> SineDrift([0.5, 0.4], amplitude=0.3, period=100, horizon=1000).means().round(6).tolist()
    [0.5, 0.4]
    """

    kernels = ArmsKernels(_draw_sine, _sine_regret)

    def __init__(
        self,
        centres: ArrayLike,
        *,
        amplitude: float,
        period: int,
        horizon: int,
        random: bool = True,
        regret: str = "static",
    ) -> None:
        amplitude = real("amplitude", amplitude, 0.0, 0.5)
        inside = vector("centres", centres, amplitude, 1.0 - amplitude)
        self.horizon: int = integer("horizon", horizon, 1)
        self.n_arms, self.support = inside.size, (0.0, 1.0)
        period, phases = integer("period", period, 2), np.arange(self.n_arms) / self.n_arms
        self.regret_is_dynamic = choice("regret", regret, REGRETS) == "dynamic"
        crests = np.zeros(period + 1 if self.regret_is_dynamic else 0)
        if self.regret_is_dynamic:
            angles = 2.0 * np.pi * (np.arange(period)[:, None] / period + phases)
            crests[1:] = np.cumsum((inside + amplitude * np.sin(angles)).max(axis=1))
        swing, length = np.array([amplitude]), np.array([period], dtype=np.int64)
        best, drawn = np.zeros(1, np.int64), np.array([flag("random", random)])
        self.state = SineState(inside, swing, phases, length, best, drawn, crests)
        sums = np.array([_sine_sum(self.state, a, 0, self.horizon) for a in range(self.n_arms)])
        self.state.best[0] = sums.argmax()
        self._means = sums / self.horizon

    def _arguments(self) -> str:
        state = self.state
        swing = f"amplitude={shortest(state.amplitude[0])}, period={state.period[0]}"
        told = f"horizon={self.horizon}, {_told(self)}"
        return f"{', '.join(map(shortest, state.centres))}; {swing}, {told}"
