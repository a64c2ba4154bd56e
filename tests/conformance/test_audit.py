"""Audit: what an attack on the releases, or on the arms alone, can measure stays below the claim;
planted bugs do not.

Two worlds differ in the row of the first person, all lo or all hi, or where features are private
in her features; in every other row the arms tie.
The white-box attacker sees the first releases, all of them where noise is correlated, the black-box
attacker how often each arm was played.  The runs are enough to see half the noise: it doubles the
loss, and the bounds reach about nine tenths of the truth.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
from audits import Bound, epsilon_bound, lower_bound, mu_bound, zcdp_bound
from scipy.stats import norm
from suite import ADVISED, PRIVATE, PRIVATE_BY_FAMILY, Case, gaussian_mu_of, over

import dpbandits
from dpbandits import ZCDP, ApproxDP, PureDP
from dpbandits.algorithms.bases import AdvicePolicy, ContextualPolicy
from dpbandits.environments import AdviceTable, ContextTable, RewardTable
from dpbandits.kernel import Kernel, bind, kernel, unbound
from dpbandits.policies import Kernels, Policy
from dpbandits.policies.steps import release_of
from dpbandits.privacy import LaplaceVector
from dpbandits.privacy.channels import add_noise
from dpbandits.privacy.ledger import HEAD
from dpbandits.simulation.tally import LEDGER_FULL
from dpbandits.testing.streams import Run, loop_in
from dpbandits.testing.walk import ROUNDS, contexts_of

ALPHA = 1e-4
RUNS = 5000  # per world; half of them choose the threshold
HALVED_RUNS = 2000  # are enough to see half the noise
PLANNED: dict[str, dict[str, Any]] = {  # arguments for few releases
    "AdaCOFUL": {"horizon": 16, "growth": 0.5},
    "RSLinearIMED": {"horizon": 16},
    "DPTS": {"horizon": 16, "counter": None},
    "LinearIMED": {"horizon": 16},
    "LinearIMEDJDP": {"horizon": 16, "batch": 1},
    "LinearIMEDLDP": {"horizon": 16},
    "LinearIMEDSDP": {"horizon": 16, "batch": 1},
    "LinearThompson": {"horizon": 16},
    # Without draws: which block holds the first person's record must be the same in every run.
    "LinearThompson/disjoint": {"horizon": 16, "inflation": 0.0},
    "LinearThompsonJDP/disjoint": {"horizon": 16, "batch": 1, "inflation": 0.0},
    "PrivateLinUCB": {"horizon": 16},
    "AdaCOFULJDP": {"horizon": 16, "growth": 0.5},
    "GLMThompson": {"horizon": 16, "batch": 1},
    # Near 0 an outcome is as far from its mean as it can be where theta is short.
    "GLMThompsonJDP": {"horizon": 16, "batch": 1, "parameter_bound": 0.01},
    "GLMUCB": {"horizon": 16, "batch": 1},
    "GLMUCBJDP": {"horizon": 16, "batch": 1, "parameter_bound": 0.01},
    "LinUCBJDP": {"horizon": 16, "batch": 1},
    "LinearThompsonJDP": {"horizon": 16, "batch": 1},
    "LinUCBLDP": {"horizon": 16},
    "LinUCBSDP": {"horizon": 16, "batch": 1},
    "WeightedGLMJDP": {"horizon": 16, "batch": 1, "parameter_bound": 0.01},
    "WeightedGLMLDP": {"horizon": 16, "parameter_bound": 0.01},
    "LDPGLOC": {"horizon": 16},
    "LDPSGD": {"gradient_bound": 0.25},  # which all gradients at 0 have
    "LinearThompsonLDP": {"horizon": 16},
    "LinearThompsonSDP": {"horizon": 16, "batch": 1},
    "WishartLinUCBJDP": {"horizon": 16, "batch": 1},
    # Noise is that of the farthest possible movement, which the first person's record makes: play
    # follows the experts, who agree on an arm; and where noise is for the worst case, there is one
    # arm.
    "EXP4": {"batch": 2, "mixing": 0.0},
    "BatchedEXP4": {"batch": 2, "n_arms": 1, "mixing": 1.0},
    "FrozenEXP4": {"batch": 2, "mixing": 0.0},
}
# What an attack shows at least, as a share of the claim.  Wishart noise as audible as this is more
# than enough: what is proved of small k is loose.
POWER = {"WishartLinUCBJDP": 0.1}
PLAYED = 60  # rounds of these
BATCHES = 20_000  # of policies that hear experts, per world
FEWER = 1000  # runs of these for the black-box attacker
SHORT = ["HTINF-PureDP"]  # that `make test` audits
SEEN = 3  # releases that the white-box attacker sees, where there are so many
LATER = 40  # rounds after the first release over which the black-box attacker counts arms

mechanism = unbound


def claim(policy: Policy) -> tuple[float, Bound]:
    """What is promised, and the bound that refutes it."""
    if isinstance(policy.budget, PureDP):
        return policy.budget.epsilon, epsilon_bound
    if isinstance(policy.channel, LaplaceVector):
        return float(np.sqrt(2 * policy.meter.limit)), zcdp_bound
    return gaussian_mu_of(policy.budget), mu_bound


@kernel
def one_scalar_for_all(running, family, scale, statistic, release, rng):
    noise = scale * rng.laplace(0.0, 1.0)
    for i in range(statistic.size):
        release[i] = statistic[i] + noise


@kernel
def redraws_the_noise(running, family, scale, statistic, release, rng):
    """The right scale, and fresh noise for the whole running sum every time."""
    running.clock[0] += 1
    for i in range(statistic.size):
        running.total[i] += statistic[i]
    add_noise(family, scale * running.column_norm, running.total, release, rng)


@kernel
def forgets_the_column(running, family, scale, statistic, release, rng):
    """The right correlation, and noise as if a record were in one row only."""
    mechanism(running, family, scale / running.column_norm, statistic, release, rng)


@kernel
def forgets_nothing(params, raw, public, memo, statistic):
    statistic[0] = raw.total[0]


def audible(case: Case) -> Policy:
    """A policy with a claim of a size that so many runs can test: (1, 1e-5)-DP is mu = 0.27 only.

    Running sums are planned for few releases, all of which the attacker sees; under pure DP they
    have one coordinate, because the loss of several adds up only where all of their noises are
    extreme, which is too rare to be seen.
    """
    budget = ApproxDP(5.0, 1e-5) if isinstance(case.budget, ApproxDP) else case.budget
    options = dict(PLANNED.get(case.name, PLANNED.get(case.cls.__name__, {})))
    if options and isinstance(budget, PureDP) and case not in ADVISED:
        options["dimension" if issubclass(case.cls, ContextualPolicy) else "n_arms"] = 1
    return case.under(budget).make(**options)


def releasing(
    policy: Policy, planted: Kernel | None, kernels: Kernels | None = None
) -> Kernel | None:
    """The compiled release of a policy with another mechanism or kernels, where some are planted."""
    if planted is None and kernels is None:
        return None  # its own, in the loop that other tests compile
    return release_of(kernels or policy.kernels, planted or policy.mechanism)


@kernel
def remember(running, release):
    """Keep a release in the rows that ``observe_sums`` has added to the memory."""
    row = running.memory.shape[0] - running.limit + running.clock[0] - 1
    for i in range(release.size):
        running.memory[row, i] = release[i]


@kernel
def _remembering(running, family, scale, statistic, release, rng):
    mechanism(running, family, scale, statistic, release, rng)
    remember(running, release)


@cache
def canary(n_arms: int) -> tuple[RewardTable, RewardTable]:
    table = np.full((ROUNDS, n_arms), 0.5)
    worlds = []
    for value in (0.0, 1.0):
        table[0] = value
        worlds.append(RewardTable(table))
    return worlds[0], worlds[1]


def canary_of_sums(policy: Policy) -> list[ContextTable] | list[RewardTable]:
    """Whatever is chosen after the first person adds nothing to the sums."""
    if policy.card.hides_contexts:
        return canary_with_features(policy.n_arms, policy.dimension)
    if isinstance(policy, ContextualPolicy):
        return canary_in_context(policy.dimension)
    table = np.zeros((2, PLAYED, policy.n_arms))
    table[1, 0] = 1.0
    return [RewardTable(rewards) for rewards in table]


@cache
def canary_in_context(dimension: int) -> list[ContextTable]:
    """The first person's features are those of all arms."""
    contexts = contexts_of(dpbandits.LinUCB(3, dimension), corners=True)
    assert contexts is not None
    contexts = contexts[:PLAYED].copy()
    contexts[0] = contexts[0, 0]
    table = np.zeros((2, PLAYED, 3))
    table[1, 0] = 1.0
    return [ContextTable(contexts, rewards) for rewards in table]


@cache
def canary_with_features(n_arms: int, dimension: int) -> list[ContextTable]:
    """The first person's features, the same for all arms, turn to where a record moves the sums
    farthest: cos = -1/2 for rewards in [0, 1].  Later people have none, whose choice would tell
    nothing.
    """
    worlds = []
    for angle in (0.0, 2 * np.pi / 3):
        contexts, rewards = np.zeros((PLAYED, n_arms, dimension)), np.ones((PLAYED, n_arms))
        turned = np.array([np.cos(angle), np.sin(angle)])
        contexts[0, :, :2] = turned if dimension > 1 else np.sign(turned[0])
        worlds.append(ContextTable(contexts, rewards))
    return worlds


@cache
def canary_with_advice(
    n_arms: int, n_experts: int, batch: int, rounds: int
) -> tuple[AdviceTable, AdviceTable]:
    """The first person of every batch is a canary; all experts are certain of arm 0, and after the
    first batch each of another one.
    """
    advice = np.eye(n_arms)[np.arange(n_experts) % n_arms * np.ones((rounds, 1), int)]
    advice[: rounds if rounds > PLAYED else batch] = np.eye(n_arms)[0]
    worlds = []
    for value in (0.0, 1.0):
        rewards = np.full((rounds, n_arms), 0.5)
        rewards[::batch] = value
        worlds.append(AdviceTable(advice, rewards))
    return worlds[0], worlds[1]


@kernel
def _recording(running, family, scale, statistic, release, rng):
    """Keep every release in a row of the memory, which nobody else uses where releases are
    independent.
    """
    mechanism(running, family, scale, statistic, release, rng)
    for i in range(release.size):
        running.memory[running.clock[0], i] = release[i]
    running.clock[0] += 1


def observe_with_advice(
    policy: AdvicePolicy, planted: Kernel | None, later: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The same for policies whose batches are alike, and independent: those of one run stand for
    many first ones.
    """
    released, counted = [], []
    rngs = [np.random.default_rng([7, k]) for k in range(3)]
    recording = bind(_recording, mechanism=planted or policy.mechanism)
    loop = loop_in(policy, AdviceTable, releasing(policy, recording))
    batch, size = policy.batch, policy.statistic.size
    shape = policy.n_arms, policy.n_experts, batch
    for many, few in zip(
        canary_with_advice(*shape, BATCHES * batch), canary_with_advice(*shape, PLAYED), strict=True
    ):
        run = Run(policy, many, rngs, loop)
        wall = run.state.wall
        room = wall.running._replace(memory=np.zeros((BATCHES, size)))
        run.state.wall = wall._replace(running=room)
        while run.until(many.horizon) == LEDGER_FULL:
            run.state.make_room()
        assert room.clock[0] == BATCHES
        released.append(room.memory)
        counts = []
        for _ in range(FEWER if later else 0):
            run = Run(policy, few, rngs, loop_in(policy, AdviceTable))
            run.until(batch + later)
            counts.append(run.tally.counts)
        counted.append(np.array(counts, float))
    return released, counted


def observe(
    policy: Policy,
    seen: int,
    later: int,
    planted: Kernel | None = None,
    kernels: Kernels | None = None,
    runs: int = RUNS,
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """For both worlds: the first releases of every run, shape (runs, seen * n), and the arms'
    shares, shape (runs, K).
    """
    if policy.statistic.counter is not None:
        return observe_sums(policy, planted or policy.mechanism, runs)
    if isinstance(policy, AdvicePolicy):
        return observe_with_advice(policy, planted, later)
    released, counted = [], []
    rngs = [np.random.default_rng([7, k]) for k in range(3)]
    hidden = policy.card.hides_contexts
    worlds = canary_of_sums(policy) if hidden else canary(policy.n_arms)
    loop = loop_in(policy, type(worlds[0]), releasing(policy, planted, kernels))
    for world in worlds:
        releases = np.zeros((runs, seen, policy.statistic.size))
        counts = np.zeros((runs, policy.n_arms))
        for number in range(runs):
            run = Run(policy, world, rngs, loop)
            wall = run.state.wall
            for k in range(seen):
                while wall.ledger.head[HEAD.releases] == k:
                    run.until(run.rounds + 1)
                releases[number, k] = wall.release
            if later:
                run.until(run.rounds + later, run.rounds + later)
            counts[number] = run.tally.counts
        released.append(releases.reshape(runs, -1))
        counted.append(counts)
    return released, counted


def observe_sums(
    policy: Policy, planted: Kernel, runs: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The same for all releases of a running sum."""
    released, counted = [], []
    rngs = [np.random.default_rng([7, k]) for k in range(3)]
    remembering = bind(_remembering, mechanism=planted)
    worlds = canary_of_sums(policy)
    loop = loop_in(policy, type(worlds[0]), releasing(policy, remembering))
    for world in worlds:
        releases, counts = [], []
        for _ in range(runs):
            run = Run(policy, world, rngs, loop)
            wall = run.state.wall
            running = wall.running
            room = np.zeros((running.limit, running.total.size))
            running = running._replace(memory=np.concatenate([running.memory, room]))
            run.state.wall = wall._replace(running=running)
            run.until(PLAYED)
            assert running.clock[0] == running.limit
            releases.append(running.memory[-running.limit :].ravel())
            counts.append(run.tally.counts)
        released.append(np.array(releases))
        counted.append(np.array(counts, float))
    return released, counted


def how_many(policy: Policy) -> int:
    """Releases to look at: long epochs allow one."""
    return SEEN if policy.statistic.size == 1 else 1


# Budgets of one family of noise differ in their calibration alone, which `tests/privacy` tests: all
# of them are attacked in one class.
ATTACKED = [case for case in PRIVATE if case in PRIVATE_BY_FAMILY or case.name == "AdaCUCB"]


@over(ATTACKED, short=SHORT)
def test_attacks_stay_below_the_claim(case: Case):
    policy = audible(case)
    promised, bound = claim(policy)
    released, counted = observe(policy, how_many(policy), LATER)
    white, black = lower_bound(*released, bound, ALPHA), lower_bound(*counted, bound, ALPHA)
    assert white <= promised
    assert black <= promised
    assert white > POWER.get(case.name, 0.5) * promised, "the attack has lost its power"


HALVED = [case for case in ATTACKED if isinstance(case.budget, ZCDP | PureDP)]


@over(HALVED, short=SHORT)
def test_half_the_noise_is_caught(case: Case):
    policy = audible(case)
    promised, bound = claim(policy)
    gate = policy.session.gate
    gate.channel = dataclasses.replace(gate.channel, multiplier=gate.channel.multiplier / 2)
    released, _ = observe(policy, 1, 0, runs=HALVED_RUNS)
    assert lower_bound(*released, bound, ALPHA) > promised


@pytest.mark.long
@pytest.mark.parametrize("planted", [redraws_the_noise, forgets_the_column])
@pytest.mark.parametrize("name", ["AdaCOFUL", "PrivateLinUCB"])
def test_a_wrong_running_sum_is_caught(name: str, planted: Kernel):
    # A tree's column norm is the square root of its levels, and fresh noise multiplies the loss by
    # the root of the releases over that.
    policy = getattr(dpbandits, name)(3, 2, budget=ZCDP(0.5), counter="tree", **PLANNED[name])
    if planted is forgets_the_column:
        planted = bind(planted, mechanism=policy.mechanism)
    released, _ = observe(policy, 1, 0, planted)
    assert lower_bound(*released, mu_bound, ALPHA) > 1.0


@pytest.mark.long
def test_a_record_that_is_released_again_with_fresh_noise_is_caught():
    policy = dpbandits.AdaCUCB(3, budget=ZCDP(0.5))
    planted = dataclasses.replace(policy.kernels, summarise=forgets_nothing)
    released, _ = observe(policy, SEEN, 0, kernels=planted)
    assert lower_bound(*released, mu_bound, ALPHA) > 1.0


@pytest.mark.long
def test_one_scalar_of_noise_for_all_arms_is_caught():
    policy = next(case for case in PRIVATE if case.cls is dpbandits.DPSE).make()
    released, _ = observe(policy, 1, 0, planted=one_scalar_for_all)
    assert lower_bound(*released, epsilon_bound, ALPHA) > 3 * policy.budget.epsilon


@pytest.mark.parametrize("bound", [epsilon_bound, mu_bound, zcdp_bound])
def test_equal_worlds_show_no_loss(bound: Bound):
    rng = np.random.default_rng(1)
    worlds = rng.normal(size=(2, RUNS, 4))
    assert lower_bound(*worlds, bound, ALPHA) == 0.0


def test_a_bound_on_zcdp_covers_gaussian_noise_and_reaches_most_of_it():
    # mu = sqrt(2 rho) = 1.  An event says less than the noise: what any threshold shows of N(1, 1)
    # against N(0, 1) is about 0.79.
    assert zcdp_bound(norm.cdf(-0.5), norm.sf(0.5)) == pytest.approx(0.786, abs=0.002)
    thresholds = np.linspace(-4.0, 5.0, 200)
    assert max(zcdp_bound(norm.cdf(c - 1.0), norm.sf(c)) for c in thresholds) < 1.0


@pytest.mark.long
def test_bounds_cover_and_reach_the_truth():
    # mu = 1 and epsilon = 1 by construction; 100 audits of each at alpha = 0.05 fail more than 17
    # times with probability below 1e-5.
    rng = np.random.default_rng(2)
    failures, tight = {"mu": 0, "epsilon": 0}, {"mu": 0.0, "epsilon": 0.0}
    for _ in range(100):
        for name, noise, bound in (
            ("mu", rng.normal, mu_bound),
            ("epsilon", rng.laplace, epsilon_bound),
        ):
            world_0, world_1 = noise(size=(2, 2000, 1))
            found = lower_bound(world_0, world_1 + 1.0, bound, 0.05)
            failures[name] += found > 1.0
            tight[name] += found / 100
    assert max(failures.values()) <= 17
    assert min(tight.values()) > 0.7
