"""Learners over experts: who is followed and for how long, what the learner is told, and that arms
are drawn from advice.
"""

import math

import numpy as np
import pytest
from scipy.stats import chisquare
from sides import lose_raw_side, public_of, published, release_of, summarised

from dpbandits import ZCDP, ApproxDP, ArgumentError, PureDP, simulate
from dpbandits.algorithms import EXP3, FTPL, HTINF, ExpertConversion
from dpbandits.algorithms.adversarial.conversion import CLOCK
from dpbandits.environments import AdviceTable, Advised, Bernoulli

ALPHA = 1e-4
RNG = np.random.default_rng(8)
ADVICE = RNG.dirichlet(np.ones(3), 4)
ALONE = {"htinf": HTINF, "exp3": EXP3, "ftpl": FTPL}
LEARNERS = list(ALONE)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("budget", [None, PureDP(0.3), ZCDP(0.01)], ids=str)
@pytest.mark.long
def test_the_learner_plays_as_it_does_alone_with_experts_for_arms(learner, budget):
    alone = (
        ALONE[learner](4, budget=budget, horizon=1000 if learner != "htinf" else None)
        if learner != "htinf"
        else HTINF(4, budget=budget)
    )
    over = ExpertConversion(
        3, 4, budget=budget, learner=learner, horizon=None if learner == "htinf" else 1000
    )
    assert over.batch_size == alone.batch_size
    states = [policy.new_state() for policy in (alone, over)]
    rngs = [np.random.default_rng(1) for _ in range(2)]
    contexts = np.ascontiguousarray(ADVICE.T)
    for loss in RNG.normal(0.5, 1.0, 300):
        rngs[1].bit_generator.state = rngs[0].bit_generator.state
        for policy, state, rng in zip((alone, over), states, rngs, strict=True):
            policy.kernels.prepare(policy.params, state.public, contexts, rng)
        arm = alone.kernels.choose(alone.params, states[0].public, 0, rngs[0])[0]
        assert states[1].public.clock[CLOCK.arm] == arm
        for policy, state in zip((alone, over), states, strict=True):
            policy.kernels.record_pull(
                policy.params,
                state.public,
                arm if policy is alone else 0,
                contexts[0],
                policy.batch_size,
            )
            summarised(policy, state)
            published(policy, state, np.array([policy.batch_size * (1.0 - loss)]))
        assert np.array_equal(states[0].public.losses, states[1].public.losses)


def test_arms_are_drawn_from_the_advice_of_the_expert_who_is_followed():
    # Power: 40,000 draws see a probability that is off by 0.02.
    policy = ExpertConversion(3, 4, budget=None, batch=10**6, seed=1)
    first = policy.pull(ADVICE)
    expert = int(public_of(policy).clock[CLOCK.arm])
    assert first.propensity == pytest.approx(ADVICE[expert, first.arm])
    public, decide = public_of(policy), policy.session.gate.steps.decide
    contexts, rng = np.ascontiguousarray(ADVICE.T), np.random.default_rng(2)
    arms = [decide(policy.params, public, contexts, rng)[0] for _ in range(40_000)]
    assert public.clock[CLOCK.arm] == expert
    counts = np.bincount(arms, minlength=3)
    assert chisquare(counts, 40_000 * ADVICE[expert]).pvalue > ALPHA


@pytest.mark.parametrize(
    ("learner", "constants"),
    [
        ("htinf", {"sigma": 1.0}),
        ("exp3", {"mixing": 0.0}),
        ("exp3", {"rate": 0.5}),
        ("ftpl", {"tries": 10**9}),
    ],
    ids=str,
)
def test_there_is_no_bound_for_constants_outside_the_proof(learner, constants):
    def bound(**own):
        return ExpertConversion(
            3, 5, budget=PureDP(0.1), horizon=10**6, learner=learner, **own
        ).regret_bound

    assert bound() < math.inf
    # Given without the mixing that it needs, a rate has one that is cut off.
    assert bound(**constants) == math.inf


def test_a_learner_takes_no_constants_of_another():
    with pytest.raises(
        ArgumentError,
        match=r"^rate must be None for learner='htinf', got 0.1: only 'exp3' or 'ftpl' takes rate",
    ):
        ExpertConversion(3, 5, budget=None, rate=0.1)
    with pytest.raises(ArgumentError, match=r"^sigma must be None for learner='exp3'"):
        ExpertConversion(3, 5, budget=None, learner="exp3", sigma=2.0)


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_expert_is_followed_for_a_batch(learner):
    policy = ExpertConversion(
        4,
        4,
        budget=PureDP(0.1),
        learner=learner,
        horizon=None if learner == "htinf" else 400,
        seed=2,
    )
    assert policy.batch_size == 10
    followed = []
    for _ in range(400):
        decision = policy.pull(np.eye(4))
        followed.append(decision.arm)
        policy.update(0.5, decision)
    blocks = np.reshape(followed, (40, 10))
    assert (blocks == blocks[:, :1]).all()
    assert len(set(blocks[:, 0])) > 1


@pytest.mark.long
@pytest.mark.parametrize(
    "learner", ["htinf", *(pytest.param(name, marks=pytest.mark.long) for name in LEARNERS[1:])]
)
def test_experts_who_are_arms_make_the_bandit(learner):
    # With one certain expert for each arm it is the learner on arms: the same law of regret.
    world = Bernoulli([0.8, 0.5, 0.2])
    over = simulate(
        ExpertConversion(3, 3, budget=PureDP(0.5), learner=learner),
        Advised(world, [np.eye(3)], horizon=2000),
        horizon=2000,
        runs=200,
        seed=1,
        record=1,
    ).runs["regret"]
    alone = simulate(
        ALONE[learner](3, budget=PureDP(0.5)), world, horizon=2000, runs=200, seed=2, record=1
    ).runs["regret"]
    error = np.sqrt(over.var() / 200 + alone.var() / 200)
    assert abs(over.mean() - alone.mean()) < 4.5 * error
    assert error < 0.1 * alone.mean()


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(("k", "n"), [(1, 1), (3, 1), (1, 3)])
def test_edges_of_sizes_and_budgets_play(learner, k, n):
    for budget in (None, PureDP(1e-3), PureDP(1e6), ApproxDP(1.0, 0.9999)):
        policy = ExpertConversion(k, n, budget=budget, learner=learner, seed=1)
        for _ in range(30):
            decision = policy.pull(np.full((n, k), 1.0 / k))
            policy.update(0.5, decision)
            assert decision.propensity == pytest.approx(1.0 / k)
        assert public_of(policy).probability.sum() == pytest.approx(1.0)


def test_a_public_deviation_takes_a_round_back():
    policy = ExpertConversion(3, 4, budget=PureDP(0.5), seed=1, choices_public=True)
    assert policy.batch_size == 2
    decision = policy.pull(ADVICE)
    assert policy.update(1.0, decision, arm=(decision.arm + 1) % 3) is False
    assert public_of(policy).clock[CLOCK.done] == 0
    for _ in range(2):
        assert policy.update(1.0, policy.pull(ADVICE))
    policy.pull(ADVICE)
    assert policy.ledger.spent() == PureDP(0.5)


def test_after_lost_rewards_the_batch_begins_anew():
    policy = ExpertConversion(3, 4, budget=PureDP(0.1), seed=1, default_reward=0.25)
    for _ in range(5):
        policy.pull(ADVICE)
    lose_raw_side(policy)
    assert policy.session.state.raw.total[0] == public_of(policy).clock[CLOCK.done] == 0


def test_secure_noise_is_taken():
    policy = ExpertConversion(3, 4, budget=PureDP(0.5), noise="secure", grid=2.0**-8)
    for _ in range(5):
        policy.update(0.3, policy.pull(ADVICE))
    release = release_of(policy)
    assert np.array_equal(np.rint(release * 256) / 256, release)
    assert policy.ledger.spent() == PureDP(0.5)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("learner", "ucb"),
        ("horizon", 0),
        ("batch", 0),
        ("rate", 0.0),
        ("mixing", 1.5),
        ("tries", 0),
        ("sigma", 0.0),
    ],
)
def test_a_bad_argument_is_named(argument, value):
    with pytest.raises(ArgumentError, match=f"^{argument} must be"):
        ExpertConversion(3, 4, budget=None, **{argument: value})


@pytest.mark.long
def test_a_good_expert_is_found():
    rewards = (np.random.default_rng(1).random((5000, 3)) < 0.5).astype(float)
    advice = np.tile(ADVICE, (5000, 1, 1))
    advice[:, 2] = np.eye(3)[rewards.argmax(axis=1)]
    regret = simulate(
        ExpertConversion(3, 4, budget=PureDP(1.0)),
        AdviceTable(advice, rewards),
        horizon=5000,
        runs=20,
        seed=1,
        record=1,
    ).runs["regret"]
    assert regret.mean() < 0.3 * 5000 * 0.375  # uniform play loses 7/8 - 1/2
