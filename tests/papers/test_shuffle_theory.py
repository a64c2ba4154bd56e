"""Bounds of the paper on shuffle-private linear bandits: by hand, against each other, and against
regret."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbandits import ApproxDP, PureDP, simulate
from dpbandits.algorithms import LDPSGD, LinearIMEDJDP, LinUCBJDP, LinUCBLDP, LinUCBSDP
from dpbandits.algorithms.hidden.model import FACTS
from dpbandits.environments import AnchoredContexts
from dpbandits.papers.shuffle import WishartLinUCBJDP, theory
from dpbandits.papers.shuffle.published import divided_budget
from dpbandits.theory import promises

LIKELY = {"delta": 1e-6, "failure": 0.001}


# The template ---------------------------------------------------------------------------------


def test_lemma_a2_by_hand_and_above_what_its_proof_adds_up():
    t, d, b, least, largest, nu, failure = 10**6, 3, 50, 2.0, 6.0, 1.5, 0.01
    growth = math.log(1 + t / (d * least))
    beta = math.sqrt(2 * math.log(2 / failure) + d * growth) + math.sqrt(largest) + nu
    by_hand = d * b * growth / math.log(2) + 8 * beta * math.sqrt(d * t * growth)
    value = theory.perturbed_linucb(t, d, b, least, largest, nu, failure)
    assert value == pytest.approx(by_hand)
    # The claim A.6 counts half as many late rounds, and the elliptical potential lemma has 2 d L.
    proof = d * b * growth / (2 * math.log(2)) + 4 * beta * math.sqrt(2 * d * t * growth)
    assert 0.7 * value < proof < value
    tuned = theory.perturbed_linucb(np.array([t, 2 * t]), d, b, least, largest, nu, failure, t)
    assert tuned == pytest.approx([value, math.inf])


def test_the_norms_of_lemma_a4_hold():
    """Norms of normal noise stay below S and what stands for the vector, which are not far off."""
    rng, d, runs, failure = np.random.default_rng(5), 4, 20_000, 0.04
    upper = np.triu(rng.normal(size=(runs, d, d)))
    noise = upper + np.triu(upper, 1).transpose(0, 2, 1)
    norms = np.abs(np.linalg.eigvalsh(noise)).max(axis=1)
    bound = 2 * (math.sqrt(d) + math.sqrt(math.log(8 / failure)))
    assert (norms > bound).mean() < failure / 4
    assert np.quantile(norms, 1 - failure / 4) > 0.5 * bound
    # so that all in all that is Lemma A.2 with 2 S
    vector = math.sqrt(d) + math.sqrt(2 * math.log(8 / failure))
    given = (3.0 * bound, vector / math.sqrt(bound), failure)
    by_hand = theory.perturbed_linucb(500, d, 500, bound, *given)
    assert theory.noisy_linucb(500, d, 500, 1.0, failure) == pytest.approx(by_hand)


@pytest.mark.parametrize("d", [1, 5, 50])
@pytest.mark.parametrize("t", [10**5, 10**8, 10**12])
@pytest.mark.parametrize("power", [0.0, 0.25, 0.5])
def test_lemma_a4_has_the_order_that_is_printed(d, t, power):
    """For all sizes of noise, up to one constant."""
    std, failure, batch = t**power, 0.001, int(t**0.4)
    log = math.log(t) * math.log(t / failure)
    order = d * batch * math.log(t) + d * math.sqrt(t) * math.log(t / failure)
    order += math.sqrt(std * t) * d**0.75 * log
    assert 0.05 < theory.noisy_linucb(t, d, batch, std, failure) / order < 20.0


# Theorems -------------------------------------------------------------------------------------


def power_of(values, horizons):
    return np.diff(np.log(values)) / np.diff(np.log(horizons))


def without_logs(value, t):
    return value / (np.log(t) * np.log(t / 0.001))


def test_where_theorem_3_2_holds_it_is_no_better_than_local_privacy():
    t = np.geomspace(1e5, 1e12, 8)
    for power in (0.0, 0.3, 0.6, 0.9):
        batch = t**power
        most = np.sqrt(math.log(2 / 1e-6) / batch)
        assert np.all(theory.shuffled_reports(t, 5, batch, 1.01 * most, **LIKELY) == np.inf)
        for share in (0.999, 0.1):
            value = theory.shuffled_reports(t, 5, batch, share * most, **LIKELY)
            assert np.all(without_logs(value, t) > t**0.75)
            # what the corollary says for such batches and epsilon is less and less of that
    least = without_logs(
        theory.shuffled_reports(t, 5, t**0.6, 0.999 * np.sqrt(math.log(2e6) / t**0.6), **LIKELY), t
    )
    assert power_of(least, t) == pytest.approx(0.75, abs=0.02)


def test_batches_of_three_fifths_balance_sums_of_bits():
    t = np.geomspace(1e8, 1e14, 4)
    value = theory.shuffled_bits(t, 5, t**0.6, 1.0, **LIKELY)
    assert power_of(without_logs(value, t), t) == pytest.approx(0.6, abs=0.01)
    balanced = theory.shuffled_bits_balanced(t, 5, 1.0, 1e-6)
    assert power_of(balanced, t) == pytest.approx(0.6)
    assert np.ptp(without_logs(value, t) / balanced) < 0.1 * (without_logs(value, t) / balanced)[0]
    one_each = theory.shuffled_bits(t, 5, 1, 1.0, **LIKELY)
    assert power_of(without_logs(one_each, t), t) == pytest.approx(0.75, abs=0.001)
    at_most = theory.shuffled_bits(1e6, 5, 100, 15.0, **LIKELY)
    assert theory.shuffled_bits(1e6, 5, 100, 16.0, **LIKELY) == at_most
    assert theory.shuffled_bits(1e6, 5, 100, 1.0, 0.6, 0.001) == math.inf


def test_batches_of_two_thirds_balance_returning_users():
    t = np.geomspace(1e8, 1e14, 4)
    value = theory.returning_bits(t, 5, t ** (2 / 3), 0.5, **LIKELY)
    assert power_of(without_logs(value, t), t) == pytest.approx(2 / 3, abs=0.02)
    # of the order of a curator's, with as many rounds of a user
    joint = theory.returning_joint(t, 5, t ** (1 / 3), 0.5, 1e-6)
    assert power_of(joint, t) == pytest.approx(2 / 3, abs=0.01)
    # Theorem E.3 is in its range no better than local privacy, either.
    batch = t ** (2 / 3)
    most = 2 * math.log(2e6) * np.sqrt(2 * t) / batch
    value = theory.returning_reports(t, 5, batch, 0.999 * np.minimum(most, 1.0), **LIKELY)
    assert np.all(without_logs(value, t) > 0.05 * t**0.75)


def test_local_and_central_batches_by_hand():
    t, d, failure = 10**6, 16, 0.001
    log = math.log(1e6) ** 0.25
    local = d * 100 + (t * d) ** 0.75 * log / math.sqrt(0.5) * math.log(t / failure)
    assert theory.batched_local(t, d, 100, 0.5, **LIKELY) == pytest.approx(local)
    central = d * 100 + 1000 * (d + 8 * log / math.sqrt(0.5)) * math.log(t / failure)
    assert theory.batched_joint(t, d, 100, 0.5, **LIKELY) == pytest.approx(central)
    at_one = theory.batched_local(t, d, 100, 1.0, **LIKELY)
    assert theory.batched_local(t, d, 100, 1.1, **LIKELY) == at_one < local
    joint = d * 1000 + math.sqrt(3 / 0.5) * 8 * log * 1000
    assert theory.returning_joint(t, d, 3, 0.5, 1e-6) == pytest.approx(joint)
    # Batches of T^(3/4), and of T^(1/2), change no order.
    small, large = (theory.batched_local(t, d, b, 0.5, **LIKELY) for b in (1, t**0.75))
    assert large < 1.1 * small
    small, large = (theory.batched_joint(t, d, b, 0.5, **LIKELY) for b in (1, t**0.5))
    assert large < 1.1 * small


# Privacy --------------------------------------------------------------------------------------


def test_noise_of_the_theorems_by_hand():
    batch, delta, epsilon = 20, 0.1, 0.2
    std = 4 * math.sqrt(2 * math.log(2.5 * batch / delta) * math.log(2 / delta))
    std /= epsilon * math.sqrt(batch)
    assert theory.report_noise(batch, epsilon, delta) == pytest.approx(std, rel=2e-3)
    # Theorem E.3, with ln(4 M / delta) for one of its factors ln(2 / delta)
    batches, t = 50, 1000  # of 20
    logs = math.log(5 * t / delta) * math.log(4 * batches / delta) * math.log(2 / delta)
    several = 16 * math.sqrt(t * logs) / (epsilon * batch)
    assert theory.report_noise(batch, epsilon, delta, batches) == pytest.approx(several, rel=2e-3)
    divided = divided_budget(ApproxDP(epsilon, delta), batches)
    assert theory.report_noise(batch, divided.epsilon, divided.delta) == pytest.approx(
        several, rel=2e-3
    )
    assert theory.divided_epsilon(epsilon, delta, batches) == divided.epsilon
    g = 9
    b = 24e4 * (g * math.log(4 * 26 / delta) / epsilon) ** 2 / batch
    by_hand = math.sqrt(3 * batch * b / 16) / g
    assert theory.bit_noise(batch, 5, epsilon, delta) == pytest.approx(by_hand, rel=1e-6)
    # 10^7 in Theorem E.5 is five times what its proof needs
    b_e5 = 1e7 * math.log(2 / delta) * g**2 * t * math.log(8 * t * 26 / (batch * delta)) ** 2
    b_e5 /= batch**2  # at epsilon = 1
    by_e5 = math.sqrt(3 * batch * b_e5 / 16) / g
    assert by_e5 / theory.bit_noise(batch, 5, 1.0, delta, batches) == pytest.approx(
        math.sqrt(1e7 / 192e4), rel=1e-3
    )


def test_what_is_said_of_messages_alone():
    assert theory.report_alone(20, 1.0, 0.1) == pytest.approx(math.sqrt(20 / math.log(20)))
    assert theory.bits_alone(16, 0.5) == 2.0
    # the lemma says nothing of the experiments
    alone = theory.report_alone(20, 0.2, 0.1)
    assert theory.shuffled_epsilon(20, alone, 0.1, 0.1 / 20 / 2) == math.inf
    n, eps0, delta = 10**6, 1.0, 1e-6
    bracket = 8 * math.sqrt(math.e * math.log(4 / delta) / n) + 8 * math.e / n
    by_hand = math.log(1 + (math.e - 1) / (math.e + 1) * bracket)
    assert theory.shuffled_epsilon(n, eps0, delta) == pytest.approx(by_hand, rel=1e-6)


# What policies are promised -------------------------------------------------------------------

OPTIONS = {"budget": ApproxDP(0.5, 1e-3), "horizon": 4000}


def promised(policy, horizons=(4000,)):
    return {one.bound.name: one for one in promises(policy, None, list(horizons))}


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        (lambda: LinUCBSDP(3, 2, **OPTIONS), set()),
        (lambda: LinUCBSDP(3, 2, bounds="published", **OPTIONS), {"perturbed_linucb"}),
        (
            lambda: LinUCBSDP(
                3, 2, bounds="published", protocol="bits", calibration="paper", **OPTIONS
            ),
            {"perturbed_linucb", "shuffled_bits"},
        ),
        (
            lambda: LinUCBSDP(
                3, 2, bounds="published", protocol="reports", calibration="paper", **OPTIONS
            ),
            {"perturbed_linucb", "shuffled_reports"},
        ),
        (
            lambda: LinUCBSDP(
                3,
                2,
                bounds="published",
                protocol="reports",
                calibration="paper",
                level="local",
                **OPTIONS,
            ),
            {"perturbed_linucb", "batched_local"},
        ),
        (
            lambda: LinUCBSDP(
                3,
                2,
                bounds="published",
                protocol="bits",
                calibration="paper",
                batch=400,
                max_rounds=10,
                **OPTIONS,
            ),
            {"perturbed_linucb", "returning_bits"},
        ),
        (lambda: LinUCBSDP(3, 2, protocol="bits", calibration="paper", **OPTIONS), set()),
        (lambda: LinUCBJDP(3, 2, **OPTIONS), set()),
        (
            lambda: LinUCBJDP(3, 2, calibration="paper", **OPTIONS),
            {"perturbed_linucb", "batched_joint"},
        ),
        (
            lambda: LinUCBJDP(3, 2, calibration="paper", max_rounds=2, **OPTIONS),
            {"perturbed_linucb", "returning_joint"},
        ),
        pytest.param(
            lambda: WishartLinUCBJDP(3, 2, calibration="paper", **OPTIONS),
            {"perturbed_linucb"},
            marks=pytest.mark.long,
        ),
        (lambda: LinUCBLDP(3, 2, calibration="paper", **OPTIONS), set()),
        (lambda: LinearIMEDJDP(3, 2, **OPTIONS), set()),
        (lambda: LDPSGD(3, 2, budget=PureDP(1.0)), {"diverse_local"}),
        # other bounds than the lemma's
        (lambda: LinUCBSDP(3, 2, bounds="published", radius_scale=0.5, **OPTIONS), set()),
        (lambda: LinUCBSDP(3, 2, bounds="published", reward_range=(0.0, 2.0), **OPTIONS), set()),
        (lambda: LinUCBSDP(3, 2, bounds="published", context_bound=2.0, **OPTIONS), set()),
    ],
)
def test_the_theorems_are_promised_to_what_they_speak_of(policy, names):
    assert set(promised(policy())) == names


def test_a_server_is_promised_what_its_loop_is():
    """Of batches of people, in which a server counts as a loop does."""
    own = {"bounds": "published", "batch": 40, **OPTIONS}
    loop = promised(LinUCBSDP(3, 2, **own))["perturbed_linucb"]
    server = promised(LinUCBSDP(3, 2, messages=True, noise="simulation", **own))["perturbed_linucb"]
    assert server.arguments == loop.arguments
    assert server.values == loop.values
    assert loop.arguments["batch"] == 40


@pytest.mark.long
def test_the_promised_radius_is_at_least_the_one_that_is_played():
    world = AnchoredContexts.random(5, 2, seed=3)
    policy = LinUCBSDP(5, 2, budget=ApproxDP(10.0, 1e-2), horizon=400, bounds="published", seed=1)
    given = promised(policy, [400])["perturbed_linucb"].arguments
    rng = np.random.default_rng(2)
    contexts = np.zeros((5, 2))
    for t in range(400):
        hidden = world.kernels.show(world.state, t, contexts, rng)
        arm = policy.pull(contexts).arm
        policy.update(world.kernels.answer(world.state, t, contexts, hidden, arm, rng)[0])
    played = policy.session.state.public.facts[FACTS.radius, 0]
    growth = math.log1p(400 / (2 * given["least"]))
    beta = math.sqrt(2 * math.log(2 / given["failure"]) + 2 * growth)
    beta += math.sqrt(given["largest"]) + given["nu"]
    assert 0.5 * beta < played < beta


@pytest.mark.long
def test_regret_stays_below_the_template():
    horizon = 4 * 10**6
    policy = LinUCBSDP(
        5, 2, budget=ApproxDP(40.0, 1e-2), horizon=horizon, bounds="published", batch=1000
    )
    world = AnchoredContexts.random(5, 2, seed=3)
    lost = simulate(policy, world, horizon=horizon, runs=2, seed=4, record=1).runs["regret"]
    (one,) = promises(policy, world, [horizon])
    assert lost.max() < one.values[0] < horizon
