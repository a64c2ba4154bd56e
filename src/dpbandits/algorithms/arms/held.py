"""Arms held for batches: one arm is played for a batch, whose noisy sum is released at its end.

Guarantee:

* Protected: one person's reward, from all who see or override decisions, but for the operator.
* Adjacency: one record is another.  A person contributes one reward to one batch.
* Sensitivity: when a batch ends, the sum of its rewards crosses the wall.  A record moves one sum
  by at most ``hi - lo``.

Batches are disjoint sets of records: each sum may spend the whole budget.  The batch of a record,
and its length, depend only on sums released earlier (Azize & Basu 2024, Theorem 12).  Index, memory
and lengths of batches are functions of released sums.  Hence the proof covers all of them.

**Curvature.**  With ``variance="released"`` the sum of r (1 - r) crosses beside the sum of r, for
rewards scaled to [0, 1].  A record that changes from r to r', |r - r'| = d, moves the second by d
|1 - r - r'|, and r + r' is between d and 2 - d: at most d (1 - d).  So it moves both by at most d +
d (1 - d) = 1 - (1 - d)^2 <= 1 in the L1 norm, hence in the L2 norm: no more than the sum alone.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...kernel import Kernel, bind, kernel, unbound
from ...policies import Kernels
from ...protocol import Row
from ..bases.episodes import CLOCK, record_pull_of, release_due
from ..bases.linear import on_grid, sensitivity
from ..bases.sums import Sums, accumulate, summarise
from .batches import batch_rounds
from .indices import Index
from .kept import nothing_kept
from .memories import ROWS, Memory


class ArmsParams(NamedTuple):
    n_arms: int
    constant: float  # of the index
    horizon: int  # that the index knows; 0 for none
    highest: float  # mean that an arm is compared with
    decay: float  # -ln of the discount of a round
    forgets: bool  # whether estimates rest on the last batch alone
    growth: float  # of batches, where rewards scatter more than noise
    growth_in_noise: float
    first: int
    longest: int  # batch
    noise_scale: float  # s
    laplace: bool  # whether noise is Laplace's
    curved: bool  # whether the sum of r (1 - r) is released
    low: float
    width: float  # hi - lo
    movement: float  # the most that a record moves the statistic
    grid: float  # to which r (1 - r) is rounded; 0 for none


class HeldPublic(NamedTuple):
    estimate: np.ndarray  # (K,) merged values, as rewards are measured
    merged: np.ndarray  # (10, K) see ``law.Merged`` and ``memories.Aged``: of released batches
    awaited: np.ndarray  # (10, K) of finished batches, as the memory has it
    ended: np.ndarray  # (K,) when an arm's last batch ended, under a discount
    pulls: np.ndarray  # (K,) rounds in all finished batches
    clock: np.ndarray  # (4,) see ``bases.episodes``; batches are episodes
    cache: np.ndarray  # (20, K) see ``kept``


def init(params: ArmsParams) -> tuple[Sums, HeldPublic]:
    k = params.n_arms
    public = HeldPublic(
        estimate=np.zeros(k),
        merged=np.zeros((ROWS, k)),
        awaited=np.zeros((ROWS, k)),
        ended=np.zeros(k, np.int64),
        pulls=np.zeros(k, np.int64),
        clock=np.zeros(len(CLOCK), np.int64),
        cache=nothing_kept(k),
    )
    # Of the running batch: the sum of rewards, and where released of r (1 - r).
    return Sums(np.zeros(2 if params.curved else 1)), public


rounds_of = unbound  # of the memory


@kernel
def hold_rounds(params: Any, public: Any, arm: int) -> int:
    return min(batch_rounds(params, rounds_of(params, public, arm)), params.longest)


@kernel
def curvature(params: Any, reward: float, n: int) -> float:
    """The sum of r (1 - r), in the units of rewards, of n equal rewards of that sum."""
    above = reward / n - params.low
    return n * on_grid(above * (1.0 - above / params.width), params.grid)


@kernel
def accumulate_curved(params: Any, raw: Any, arm: int, x: Row, reward: float, n: int) -> None:
    """The sum of rewards, and where it is released that of r (1 - r)."""
    accumulate(params, raw, arm, x, reward, n)
    if params.curved:
        raw.total[1] += curvature(params, reward, n)


def held_kernels(index: Index, memory: Memory) -> Kernels:
    """Of policies that hold an arm for a batch."""
    kinds: Any = (type(index), type(memory))
    return _held_kernels(*kinds)


@cache
def _held_kernels(index: Any, memory: Any) -> Kernels:
    hold: Kernel = bind(hold_rounds, rounds_of=memory.rounds_of)
    return Kernels(
        init=init,
        choose=index.choosing(memory),
        hold_rounds=hold,
        record_pull=record_pull_of(hold),
        accumulate=accumulate_curved,
        release_due=release_due,
        sensitivity=sensitivity,
        close=memory.close,
        summarise=summarise,
        publish=memory.publish,
        absorb=memory.absorb,
        withdraw=memory.withdraw,
        skips_closed=True,
    )
