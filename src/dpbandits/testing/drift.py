"""What drift does to the difference of two arms: of the bandit's people, and of held-out people.

``python -m dpbandits.testing.drift 60`` plays so many runs of each cell.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from ..algorithms import MergedIMED
from ..inference import Intervals
from ..policies import Holdout, Policy
from ..privacy import ZCDP, Budget, PureDP

PEOPLE = 10_000
EFFECT = 0.05
_FIRST, _LAST = 0.3, 0.6  # mean of arm 0, which rises evenly
SHARE = 0.2
CELLS: dict[str, tuple[Budget, bool]] = {  # budget, and whether there is one sum
    "1-DP": (PureDP(1.0), False),
    "1-DP, one sum": (PureDP(1.0), True),
    "0.005-zCDP": (ZCDP(0.005), False),
    "0.005-zCDP, one sum": (ZCDP(0.005), True),
}


class Judged(NamedTuple):
    """A difference, and its 95 % interval at the end."""

    estimate: float
    missed: bool  # the true difference
    half_width: float

    @classmethod
    def of(cls, found: Intervals) -> Judged:
        """That of an interval."""
        low, high = found.low[0], found.high[0]
        return cls(float(found.means[0]), not low <= EFFECT <= high, float(0.5 * (high - low)))


class Run(NamedTuple):
    """What a run says of the difference."""

    bandit: Judged
    holdout: Judged


def play(cell: str, seed: int, people: int = PEOPLE) -> Run:
    """Play a run in which both means rise, and their difference stays."""
    budget, one_sum = CELLS[cell]
    holdout = Holdout(SHARE, one_sum=one_sum)
    policy: Policy = MergedIMED(2, budget=budget, holdout=holdout, seed=seed)
    luck = np.random.default_rng(seed).random(people)
    for t in range(people):
        decision = policy.pull()
        mean = _FIRST + (_LAST - _FIRST) * t / people + EFFECT * decision.arm
        policy.update(float(luck[t] < mean), decision)
    policy.finish()
    pair = (1, 0)
    assert policy.holdout is not None
    held = policy.holdout.intervals(difference=pair)
    return Run(Judged.of(policy.intervals(difference=pair)), Judged.of(held))


def main(runs: int) -> None:
    """Print the bias, how many per cent of intervals miss, and their half width."""
    print(f"{'':30}{'bias':>10}{'missed, %':>12}{'half width':>12}")
    for cell in CELLS:
        found = np.array([play(cell, seed) for seed in range(runs)], float)
        for who, column in (("bandit", 0), ("holdout", 1)):
            estimate, missed, width = found[:, column].T
            bias = estimate.mean() - EFFECT
            row = f"{bias:+10.3f}{100 * missed.mean():12.1f}{np.median(width):12.3f}"
            print(f"{f'{cell}: {who}':30}{row}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
