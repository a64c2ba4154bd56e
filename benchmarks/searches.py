"""Searches for the best arm: mean rounds over the least that any search needs, and errors.

A search that errs in at most a share d has a mean of at least T* kl(d, 1 - d) rounds, with

    1 / T*  =  max over shares w of rounds, min over c and q of  w_b D(b, q) + w_c D(c, q) ,

b the best arm and c another.  D is kl without privacy (Garivier & Kaufmann 2016), and d_epsilon of
``theory.lower`` under epsilon-DP (Jourdan & Azize 2025).  For zCDP it is the bound without privacy,
and for shuffle and local trust that of central trust.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache

from scipy.optimize import brentq, minimize_scalar

import dpbandits as dpb
from dpbandits.algorithms import LDPTopTwo, MergedTopTwoSDP
from dpbandits.privacy import Budget
from dpbandits.theory.lower import bernoulli_kl, private_divergence

from .timing import Row, scaled

MEANS = {
    "even": (0.75, 0.625, 0.5, 0.375, 0.25),
    "high": (0.95, 0.9, 0.9, 0.9, 0.5),
    "rivals": (0.75, 0.7, 0.7, 0.7, 0.7),
    "rare": (0.02, 0.01, 0.01),
}
BUDGETS = {
    None: "<= 3.8",
    dpb.PureDP(1.0): "<= 4.5",
    dpb.PureDP(0.1): "<= 8.2",
    dpb.ZCDP(0.5): "",
    dpb.ZCDP(0.005): "",
}
FAILURE, RUNS, EQUAL = 0.05, 1000, 0.5
LOCAL = (4.0, 2.0, 1.0, 0.5)  # epsilon
LONGEST = 10**8


def rows(size: float) -> Iterator[Row]:
    runs = scaled(RUNS, size, 2)
    for name, means in MEANS.items():
        for budget, target in BUDGETS.items():
            search = dpb.BestArm(len(means), failure_probability=FAILURE, budget=budget)
            yield _search(name, search, means, target, runs)
            if isinstance(budget, dpb.PureDP):
                shuffled = MergedTopTwoSDP(len(means), failure_probability=FAILURE, budget=budget)
                yield _search(f"{name}, shuffle trust", shuffled, means, target, runs)
    for epsilon in LOCAL:
        budget = dpb.PureDP(epsilon)
        search = LDPTopTwo(5, failure_probability=FAILURE, budget=budget)
        yield _search("even, local trust", search, MEANS["even"], "", runs)
    for budget in BUDGETS:
        yield _ties(budget, scaled(4 * RUNS, size, 200))


def _search(name: str, search: dpb.Policy, means: tuple[float, ...], target: str, runs: int) -> Row:
    start = time.process_time()
    found = dpb.simulate(
        search, dpb.environments.Bernoulli(means), horizon=LONGEST, runs=runs, record=1, n_jobs=1
    ).runs
    each = 1e3 * (time.process_time() - start) / runs
    rounds = found["stopped"]
    least = characteristic_time(means, search.budget) * bernoulli_kl(FAILURE, 1.0 - FAILURE)
    remark = (
        f"{rounds.mean():,.0f} rounds, of 99 % at most {rounds.quantile(0.99):,.0f};"
        f" {int(found['wrong'].sum())} of {rounds.count()} wrong; {each:.2g} ms a search"
    )
    return Row(
        f"{name}, {search.budget or 'no budget'}", rounds.mean() / least, "x", target, remark
    )


def _ties(budget: Budget | None, runs: int) -> Row:
    """How often the second of two equal arms is named, where half may be."""
    search = dpb.BestArm(2, failure_probability=EQUAL, budget=budget)
    found = dpb.simulate(
        search, dpb.environments.Bernoulli([0.5, 0.5]), horizon=20_000, runs=runs, record=1
    ).runs
    named = int((found["stopped"].notna() & (found["recommended"] == 1)).sum())
    name = f"two equal arms, {budget or 'no budget'}: one of them named"
    return Row(name, named / runs, "", f"<= {EQUAL}", f"{named} of {runs} searches")


@cache
def characteristic_time(means: tuple[float, ...], budget: Budget | None) -> float:
    """T*, of one best arm."""
    best, *others = sorted(means, reverse=True)
    epsilon = budget.epsilon if isinstance(budget, dpb.PureDP) else None

    def divergence(p: float, q: float) -> float:
        if epsilon is None:
            return float(bernoulli_kl(p, q))
        return float(private_divergence(*((p, q) if p < q else (1.0 - p, 1.0 - q)), epsilon))

    def evidence(c: float, x: float) -> float:
        """Of a round of the best arm and x rounds of c."""

        def both(q: float) -> float:
            return divergence(best, q) + x * divergence(c, q)

        return float(minimize_scalar(both, bounds=(c, best), method="bounded").fun)

    def a_round(evident: float) -> float:
        """The evidence of a round, where all arms have as much for a round of the best."""
        shares = (brentq(lambda x, c=c: evidence(c, x) - evident, 0.0, 1e6) for c in others)
        return evident / (1.0 + sum(shares))

    most = 0.999 * divergence(best, others[0])
    found = minimize_scalar(lambda y: -a_round(y), bounds=(1e-3 * most, most), method="bounded")
    return float(-1.0 / found.fun)
