"""How often intervals miss at any of a policy's releases, by simulation.

``python -m dpbandits.testing.coverage 5000`` plays so many runs of each case.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..algorithms import MergedIMED
from ..inference import Batches, Cells, Noise
from ..policies import Policy
from ..privacy import ZCDP, Budget, PureDP
from ..session import episodes

ROUNDS = 5_000
CASES: dict[str, tuple[tuple[float, ...], Budget | None]] = {
    "two arms, no budget": ((0.6, 0.5), None),
    "two arms, 0.1-DP": ((0.6, 0.5), PureDP(0.1)),
    "five arms, 0.005-zCDP": ((0.75, 0.625, 0.5, 0.375, 0.25), ZCDP(0.005)),
    "rare rewards, 1-DP": ((0.02, 0.01, 0.01), PureDP(1.0)),
    "five equal arms, 0.5-zCDP": ((0.5,) * 5, ZCDP(0.5)),
    "five equal arms, 0.1-DP": ((0.5,) * 5, PureDP(0.1)),
}


_A = 0.05


class Missed(NamedTuple):
    """Whether 95 % intervals missed at any release of a run, and how wide one was at last."""

    means: bool  # of any arm, of intervals for all arms together
    one: bool  # of the first arm, of an interval for it alone
    difference: bool  # of the first two arms
    errors: bool  # the mean of any arm, plus or minus 1.96 errors
    half_width: float  # of the interval of the first arm alone


def play(policy: Policy, means: Sequence[float], rounds: int, seed: int) -> Policy:
    """Play all batches of a policy that end by round ``rounds``, on coins with these means."""
    rng, session = np.random.default_rng(seed), policy.session
    while True:
        choice, n = session.coming()
        if session.rounds.recorded + n > rounds:
            return policy
        episodes.receive_sum(session, float(rng.binomial(n, means[choice.arm])))


def judge(policy: Policy, means: Sequence[float]) -> Missed:
    """What the intervals of a played policy missed, at any of its releases."""
    arm, rounds, total, known = policy.released_sums.to_numpy(float).T
    sums = policy.estimates.sums
    assert sums is not None
    batches, noise = Batches(arm, rounds, total, known), sums.noise
    walks = [paths(batches, a, noise, mean) for a, mean in enumerate(means)]
    highest = np.max(walks, axis=(1, 2))
    # At the true means, which is at least the least sum over all means with their difference.
    (up, down), (other_up, other_down) = walks[:2]
    apart = max((up + other_down).max(), (other_up + down).max())
    low, high = sums.evidence[0].interval(_A)
    level = np.log(2.0 / _A)
    return Missed(
        means=bool((highest >= level + np.log(len(means))).any()),
        one=bool(highest[0] >= level),
        difference=bool(apart >= level),
        errors=any(_strays(batches.single(a, noise), noise, q) for a, q in enumerate(means)),
        half_width=0.5 * (high - low),
    )


def _strays(each: Cells, noise: Noise, q: float) -> bool:
    """Whether the merged mean of an arm is ever more than 1.96 errors from q."""
    n = each.rounds
    precision = 1.0 / (0.25 / n + noise.variance(n) / (n * n))
    off = np.cumsum(precision * (each.total / n - q)) / np.sqrt(np.cumsum(precision))
    return bool((np.abs(off) > 1.96).any())


def paths(batches: Batches, arm: int, noise: Noise, q: float) -> tuple[np.ndarray, np.ndarray]:
    """ln M_up(q) and ln M_dn(q) of an arm after each release."""
    each = batches.single(arm, noise)
    tilts = noise.tilts(each.rounds, each.variance)
    cost, released = noise.cost(tilts, each.rounds), np.flatnonzero(batches.arm == arm)
    found = []
    for total, p in ((each.rounds - each.total, 1.0 - q), (each.total, q)):
        psi = np.log1p(p * np.expm1(-tilts))
        terms = np.cumsum(-tilts * total - each.rounds * psi - cost, axis=1)
        path = np.zeros(len(batches.arm) + 1)
        path[released + 1] = np.diff(np.logaddexp.reduce(terms, axis=0), prepend=np.log(len(tilts)))
        found.append(np.cumsum(path))
    return found[0], found[1]


def measured(case: str, runs: int, rounds: int = ROUNDS) -> np.ndarray:
    """``Missed`` of each run of a case, shape (runs, 5)."""
    means, budget = CASES[case]
    found = [
        judge(play(MergedIMED(len(means), budget=budget, seed=i), means, rounds, i), means)
        for i in range(runs)
    ]
    return np.array(found, float)


def main(runs: int) -> None:
    """Print, for each case, how many per cent of runs missed, and the half width."""
    heads = "".join(f"{one:>12}" for one in ("all arms", "one arm", "difference", "1.96 errors"))
    print(f"{'missed, % of runs':30}{heads}  half width")
    for case in CASES:
        found = measured(case, runs)
        missed, width = found[:, :4].mean(axis=0), np.median(found[:, 4])
        print(f"{case:30}{''.join(f'{100 * one:12.2f}' for one in missed)}{width:12.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
