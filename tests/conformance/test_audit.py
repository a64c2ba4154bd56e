"""Audit: what an attack on the releases, or on the arms alone, can measure stays below the claim; planted bugs do not.

Two worlds differ in the row of the first person, all lo or all hi; in every other row the arms tie.  The white-box attacker sees the
first releases, the black-box attacker how often each arm was played.  The runs are enough to see half the noise: it doubles the loss,
and the bounds reach about nine tenths of the truth.
"""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from audits import Bound, epsilon_bound, lower_bound, mu_bound
from suite import PRIVATE, ROUNDS, Case, gaussian_mu_of, over

import dpbandits
from dpbandits import ZCDP, ApproxDP, PureDP
from dpbandits.environments import RewardTable
from dpbandits.kernel import Kernel, bind, kernel
from dpbandits.policies import Policy, steps
from dpbandits.privacy.ledger import RELEASES
from dpbandits.simulation import loops

ALPHA = 1e-4
RUNS = 5000  # per world; half of them choose the threshold
SEEN = 3  # releases that the white-box attacker sees, where there are so many
LATER = 40  # rounds after the first release over which the black-box attacker counts arms


def claim(policy: Policy) -> tuple[float, Bound]:
    """What is promised, and the bound that refutes it."""
    if isinstance(policy.budget, PureDP):
        return policy.budget.epsilon, epsilon_bound
    return gaussian_mu_of(policy.budget), mu_bound


@kernel
def one_scalar_for_all(family, scale, statistic, release, rng):
    noise = scale * rng.laplace(0.0, 1.0)
    for i in range(statistic.size):
        release[i] = statistic[i] + noise


@kernel
def forgets_nothing(params, raw, public, statistic):
    statistic[0] = raw.total[0]


def audible(case: Case) -> Policy:
    """A policy with a claim of a size that so many runs can test: (1, 1e-5)-DP is mu = 0.27 only."""
    budget = ApproxDP(5.0, 1e-5) if isinstance(case.budget, ApproxDP) else case.budget
    return case.under(budget).make()


def loop_of(policy: Policy, perturb: Kernel | None) -> Kernel:
    """The compiled loop over tables, with another mechanism at the wall where one is planted."""
    k, world = policy.kernels._asdict(), RewardTable.kernels
    if perturb is None:
        return loops.arms_loop(policy.kernels, world)
    names = ("sensitivity", "part", "summarise", "publish")
    cross = bind(steps._cross, **{name: k[name] for name in names}, perturb=perturb)
    own = {name: k[name] for name in ("choose", "hold", "note", "collect", "due")}
    return bind(loops._arms, **own, cross=cross, clipped=bind(loops._clipped, draw=world.draw), regret=world.regret)


@cache
def canary(n_arms: int) -> tuple[RewardTable, RewardTable]:
    table = np.full((ROUNDS, n_arms), 0.5)
    worlds = []
    for value in (0.0, 1.0):
        table[0] = value
        worlds.append(RewardTable(table))
    return worlds[0], worlds[1]


def observe(policy: Policy, seen: int, later: int, perturb: Kernel | None = None) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """For both worlds: the first releases of every run, shape (RUNS, seen * n), and the arms' shares, shape (RUNS, K)."""
    loop, released, counted = loop_of(policy, perturb), [], []
    rngs = [np.random.default_rng([7, k]) for k in range(3)]
    bounds = (False, *policy.reward_range)
    marks = np.array([ROUNDS])
    for world in canary(policy.n_arms):
        releases = np.zeros((RUNS, seen, policy._wall.statistic.size))
        counts = np.zeros((RUNS, policy.n_arms))
        for run in range(RUNS):
            raw, public, wall = policy.new_state()
            tally = loops.new_tally(marks, policy.n_arms)

            def go_on(until: int, horizon: int = ROUNDS) -> None:
                loop(policy.params, raw, public, wall, world.state, tally, bounds, horizon, until, 1 << 62, *rngs)  # noqa: B023

            for k in range(seen):
                while wall.ledger.head[RELEASES] == k:
                    go_on(int(tally.cursor[0]) + 1)
                releases[run, k] = wall.release
            if later:
                reached = int(tally.cursor[0])
                go_on(reached + later, reached + later)
            counts[run] = tally.counts
        released.append(releases.reshape(RUNS, -1))
        counted.append(counts)
    return released, counted


def how_many(policy: Policy) -> int:
    """Releases to look at: long epochs allow one."""
    return SEEN if policy._wall.statistic.size == 1 else 1


@over(PRIVATE)
def test_attacks_stay_below_the_claim(case: Case):
    policy = audible(case)
    promised, bound = claim(policy)
    released, counted = observe(policy, how_many(policy), LATER)
    white, black = lower_bound(*released, bound, ALPHA), lower_bound(*counted, bound, ALPHA)
    assert white <= promised
    assert black <= promised
    assert white > 0.5 * promised, "the attack has lost its power"


HALVED = [case for case in PRIVATE if isinstance(case.budget, ZCDP | PureDP)]


@over(HALVED)
def test_half_the_noise_is_caught(case: Case):
    policy = audible(case)
    promised, bound = claim(policy)
    vars(policy)["channel"] = dataclasses.replace(policy.channel, multiplier=policy.channel.multiplier / 2)
    released, _ = observe(policy, 1, 0)
    assert lower_bound(*released, bound, ALPHA) > promised


def test_a_record_that_is_released_again_with_fresh_noise_is_caught():
    policy = dpbandits.AdaCUCB(3, budget=ZCDP(0.5))
    vars(policy)["kernels"] = policy.kernels._replace(summarise=forgets_nothing)
    released, _ = observe(policy, SEEN, 0)
    assert lower_bound(*released, mu_bound, ALPHA) > 1.0


def test_one_scalar_of_noise_for_all_arms_is_caught():
    policy = next(case for case in PRIVATE if case.cls is dpbandits.DPSE).make()
    released, _ = observe(policy, 1, 0, perturb=one_scalar_for_all)
    assert lower_bound(*released, epsilon_bound, ALPHA) > 3 * policy.budget.epsilon


@pytest.mark.parametrize("bound", [epsilon_bound, mu_bound])
def test_equal_worlds_show_no_loss(bound: Bound):
    rng = np.random.default_rng(1)
    worlds = rng.normal(size=(2, RUNS, 4))
    assert lower_bound(*worlds, bound, ALPHA) == 0.0


def test_bounds_cover_and_reach_the_truth():
    # mu = 1 and epsilon = 1 by construction; 100 audits of each at alpha = 0.05 fail more than 17 times with probability below 1e-5.
    rng = np.random.default_rng(2)
    failures, tight = {"mu": 0, "epsilon": 0}, {"mu": 0.0, "epsilon": 0.0}
    for _ in range(100):
        for name, noise, bound in (("mu", rng.normal, mu_bound), ("epsilon", rng.laplace, epsilon_bound)):
            world_0, world_1 = noise(size=(2, 2000, 1))
            found = lower_bound(world_0, world_1 + 1.0, bound, 0.05)
            failures[name] += found > 1.0
            tight[name] += found / 100
    assert max(failures.values()) <= 17
    assert min(tight.values()) > 0.7
