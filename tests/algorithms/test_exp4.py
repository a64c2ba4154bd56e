"""EXP4 and its releases: estimates by enumeration, tunings and bounds, the published parameters,
edges, and secure noise.
"""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sides import lose_raw_side, public_of, published, release_of, summarised

from dpbandits import ZCDP, ApproxDP, ArgumentError, PureDP, simulate
from dpbandits.algorithms import EXP4, BatchedEXP4, FrozenEXP4, LocalEXP4
from dpbandits.algorithms.exp4.values import Noise, tune
from dpbandits.environments import AdviceTable
from dpbandits.papers.adversarial.exp4 import theorem_6, theorem_8
from dpbandits.papers.adversarial.theory import exp4_regret

RNG = np.random.default_rng(3)
K, N = 3, 4
ADVICE = RNG.dirichlet(np.ones(K), N)
LOSSES = np.array([0.2, 0.9, 0.4])
CLASSES = [EXP4, BatchedEXP4, FrozenEXP4, LocalEXP4]


def made(cls, budget=None, *, n_arms=K, n_experts=N, horizon=2000, **options):
    return cls(n_arms, n_experts, budget=budget, horizon=horizon, **options)


def book(policy, state, x, arm):
    """Record a round; what its reward will be multiplied by."""
    policy.kernels.record_pull(policy.params, state.public, arm, x, 1)
    weights = x.copy()
    policy.kernels.weigh(policy.params, state.public, arm, weights)
    return weights


def answered(policy, state, x, arm, reward):
    """A round with its reward."""
    weights = book(policy, state, x, arm)
    policy.kernels.accumulate(policy.params, state.raw, arm, weights, reward, 1)


def released(policy, rounds):
    """The public side after a batch without noise; ``rounds`` are (advice, arm, loss)."""
    state = policy.new_state()
    public = state.public
    public.losses[:] = [0.0, 3.0, 1.0, 2.0]
    published(policy, state, np.zeros_like(state.wall.statistic))  # and now P is not uniform
    before = public.losses.copy()
    probability = public.probability.copy()
    lo, hi = policy.reward_range
    for advice, arm, loss in rounds:
        contexts = np.ascontiguousarray(advice.T)
        policy.kernels.prepare(policy.params, public, contexts, RNG)
        answered(policy, state, contexts[arm], arm, hi - (hi - lo) * loss)
    published(policy, state, summarised(policy, state))
    moved = public.losses - before
    return moved - moved[0], probability


@pytest.mark.long
@pytest.mark.parametrize(
    ("cls", "options"),
    [
        (EXP4, {}),
        (BatchedEXP4, {}),
        (BatchedEXP4, {"variant": "improved"}),
        (FrozenEXP4, {}),
        (LocalEXP4, {}),
    ],
    ids=str,
)
@pytest.mark.parametrize("reward_range", [(0.0, 1.0), (-2.0, 3.0)])
def test_estimates_of_what_experts_lose_are_unbiased(cls, options, reward_range):
    # All pairs of arms of a batch of two rounds; what stands frozen is the first advice.
    batch = 1 if cls is LocalEXP4 else 2
    own = {"rate": 0.3, "mixing": 0.1, **({} if cls is LocalEXP4 else {"batch": 2}), **options}
    policy = made(cls, reward_range=reward_range, **own)
    other = ADVICE if cls is FrozenEXP4 else np.roll(ADVICE, 1, axis=1)
    advices, losses = [ADVICE, other][:batch], [LOSSES, LOSSES[::-1]][:batch]
    expected, weights = np.zeros(N), 0.0
    for arms in np.ndindex(*[K] * batch):
        moved, p = released(
            policy,
            zip(advices, arms, [one[a] for one, a in zip(losses, arms, strict=True)], strict=True),
        )
        q = np.prod([(0.9 * p @ x + 0.1 / K)[a] for x, a in zip(advices, arms, strict=True)])
        expected, weights = expected + q * moved, weights + q
    truth = np.mean([x @ loss for x, loss in zip(advices, losses, strict=True)], axis=0)
    assert np.ptp(p) > 0.01
    assert weights == pytest.approx(1.0)
    assert expected == pytest.approx(truth - truth[0], abs=1e-12)


def moved_by_a_record(policy, contexts, arm):
    """By how much a reward moves the statistic of a batch of one round, and what the release takes
    for it.
    """
    statistics = []
    for reward in policy.reward_range:
        state = policy.new_state()
        policy.kernels.prepare(policy.params, state.public, contexts, RNG)
        answered(policy, state, contexts[arm], arm, reward)
        bound = policy.kernels.sensitivity(policy.params, state.public, state.wall.norm)
        statistics.append(summarised(policy, state))
    moved = np.abs(statistics[1] - statistics[0])
    largest = moved.max()
    return (largest * np.linalg.norm(moved / largest) if largest > 0.0 else 0.0), moved, bound


@pytest.mark.parametrize("options", [{}, {"variant": "improved"}], ids=str)
@pytest.mark.parametrize("width", [0.01, 1.0, 1.2, 300.0])
@pytest.mark.long
def test_hardly_any_advice_moves_no_release_without_noise(options, width):
    # Advice down to the smallest float, whose square is zero: a softmax with far logits gives it.
    cls = BatchedEXP4 if options else EXP4
    policy = made(
        cls,
        ZCDP(0.1),
        n_arms=2,
        batch=1,
        mixing=5 / 6,
        rate=0.1,
        reward_range=(0.0, width),
        **options,
    )
    rng = np.random.default_rng(9)
    for exponents in rng.uniform(-1080.0, 0.0, (500, N)):
        tiny = np.where(rng.random(N) < 0.2, 0.0, np.exp2(exponents * rng.random()))
        moved, each, bound = moved_by_a_record(policy, np.ascontiguousarray([1.0 - tiny, tiny]), 1)
        assert moved <= bound
        assert bound > 0.0 or not np.any(tiny)
        assert not options or np.all(each <= 1.0 + 1e-12)


def test_a_batch_that_is_over_follows_new_advice_though_it_stands_for_no_batch():
    policy = made(
        FrozenEXP4,
        None,
        n_arms=2,
        n_experts=2,
        batch=2,
        mixing=0.0,
        rate=0.1,
        answers_within=None,
        seed=1,
    )
    first, second = np.array([[1.0, 0.0]] * 2), np.array([[0.0, 1.0]] * 2)
    assert [policy.pull(first).arm, policy.pull(second).arm] == [0, 0]
    assert [(d.arm, d.recorded) for d in (policy.pull(second) for _ in range(5))] == [
        (1, False)
    ] * 5


def test_bounds_count_the_grid_of_secure_noise():
    for cls, times in ((EXP4, 2), (FrozenEXP4, 2), (LocalEXP4, 1)):
        fine, coarse = (
            made(cls, ZCDP(50.0), noise="secure", grid=grid, rate=0.001, mixing=0.4)
            for grid in (2.0**-20, 2.0**-2)
        )
        assert coarse.regret_bound - fine.regret_bound == pytest.approx(
            times * 2000 * 0.25, rel=1e-4
        )


# Tunings -------------------------------------------------------------------------------------

NOISES = [Noise(0.0, 1.0, 1.0), Noise(40.0, 1.0, 7.0), Noise(10.0, 2.0, 20.0)]


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize(("n", "horizon"), [(5, 10**5), (1000, 10**8)])
def test_no_other_parameters_have_a_much_smaller_bound(noise, n, horizon):
    found = tune(10, n, horizon, noise)

    def bound(logs):
        batch, rate, mixing = np.exp(logs)
        if batch < 1.0 or mixing > 0.5:
            return math.inf
        return exp4_regret(horizon, 10, n, noise, batch, rate, mixing)

    starts = [
        np.log([t, e, g])
        for t in (2.0, 100.0, 3000.0)
        for e in (1e-4, 1e-2)
        for g in (1e-3, 0.05, 0.4)
    ]
    starts.append(np.log([found.batch, found.rate, max(found.mixing, 1e-9)]))
    options = {"maxiter": 4000, "xatol": 1e-6, "fatol": 1e-6}
    best = min(
        minimize(bound, start, method="Nelder-Mead", options=options).fun
        for start in starts
        if bound(start) < math.inf
    )
    # the grid is five per cent wide, and the bound flat at its minimum
    assert exp4_regret(horizon, 10, n, noise, *found[:3]) <= 1.01 * best


def test_a_bound_is_infinite_where_the_proof_does_not_hold():
    noise = Noise(10.0, 2.0, 20.0)
    assert exp4_regret(1000, 3, 4, noise, 10, 0.01, 0.0) == math.inf
    # 0.1 * 20 * 10 / (0.1 * 10) > 1
    assert exp4_regret(1000, 3, 4, noise, 10, 0.1, 0.1) == math.inf
    assert exp4_regret(1000, 3, 4, noise, 10, 0.001, 0.1) < math.inf
    assert made(LocalEXP4, PureDP(1.0), rate=0.5, mixing=0.01).regret_bound == math.inf


def test_a_bound_belongs_to_what_was_chosen():
    found = made(LocalEXP4, PureDP(1.0), horizon=10**6)
    again = made(
        LocalEXP4,
        PureDP(1.0),
        horizon=10**6,
        rate=found.params.rate,
        mixing=1.001 * found.params.mixing,
    )
    assert again.regret_bound == pytest.approx(found.regret_bound, rel=0.05)
    budget = ApproxDP(0.5, 1e-6)
    published = made(BatchedEXP4, budget, horizon=10**9, calibration="paper")
    shorter = made(
        BatchedEXP4, budget, horizon=10**9, calibration="paper", batch=published.batch_size // 2
    )
    assert shorter.batch_size == published.batch_size // 2
    assert shorter.regret_bound != published.regret_bound


@pytest.mark.parametrize("epsilon", [1e-3, 10.0, 1e6])
def test_the_published_bound_of_local_privacy_has_no_less_noise_than_epsilon_one(epsilon):
    # With hardly any noise the bound is that of epsilon = 1, for which it was proved, and not zero.
    policy = made(LocalEXP4, PureDP(epsilon), horizon=10**6, calibration="paper")
    assert policy.regret_bound > math.sqrt(10**6 * K * math.log(N))


def adversarial(horizon):
    """The best arm changes, and an expert for each phase is right in it only; the last one is right
    a little more often.
    """
    rng = np.random.default_rng(4)
    phase = np.arange(horizon) * 7 // horizon % K
    rewards = (rng.random((horizon, K)) < 0.25 + 0.5 * (np.arange(K) == phase[:, None])).astype(
        float
    )
    advice = np.tile(np.eye(K)[[0, 1, 2, 0]], (horizon, 1, 1))
    advice[:, 3] = 0.6 * np.eye(K)[phase] + 0.4 / K
    return AdviceTable(advice, rewards)


@pytest.mark.long
@pytest.mark.parametrize(
    "policy",
    [
        made(EXP4, None, horizon=20_000),
        made(EXP4, ZCDP(50.0), horizon=20_000),
        made(BatchedEXP4, ZCDP(50.0), horizon=20_000),
        made(BatchedEXP4, ZCDP(50.0), horizon=20_000, variant="improved"),
        made(FrozenEXP4, PureDP(5.0), horizon=20_000),
        made(LocalEXP4, PureDP(2.0), horizon=20_000),
    ],
    ids=lambda p: p.label,
)
def test_regret_is_within_the_bound(policy):
    assert policy.regret_bound < 20_000
    regret = simulate(policy, adversarial(20_000), horizon=20_000, runs=8, seed=2, record=1).runs[
        "regret"
    ]
    assert regret.mean() + 5 * regret.std() / math.sqrt(8) < policy.regret_bound
    assert regret.mean() > 0.01 * policy.regret_bound


# The published parameters --------------------------------------------------------------------


def test_the_published_parameters_are_those_of_theorem_6():
    n, k, t, epsilon, delta = 10, 5, 10**7, 0.5, 1e-7
    policy = BatchedEXP4(k, n, budget=ApproxDP(epsilon, delta), horizon=t, calibration="paper")
    log, nt = math.log(1 / delta), math.log(n * t)
    eta = (
        (n * log) ** (1 / 6)
        * nt ** (1 / 3)
        * math.log(n) ** (1 / 3)
        / (t ** (1 / 3) * k**0.5 * epsilon ** (1 / 3))
    )
    tau = (
        (n * log) ** (1 / 3)
        * nt ** (2 / 3)
        * t ** (1 / 3)
        / (epsilon ** (2 / 3) * math.log(n) ** (1 / 3))
    )
    assert policy.params.rate == pytest.approx(eta)
    assert policy.batch_size == math.ceil(tau)
    tau = policy.batch_size
    one = (
        eta ** (1 / 3)
        * (n * log) ** (1 / 3)
        * k ** (2 / 3)
        * nt ** (2 / 3)
        / (epsilon * tau) ** (2 / 3)
    )
    two = 12 * eta * k * math.sqrt(n * log) * nt / (epsilon * tau)
    assert policy.params.mixing == pytest.approx(max(one, two))
    # on the sum; the paper's, times tau
    scale = 3 * k * math.sqrt(n * log) / (policy.params.mixing * epsilon)
    assert policy.noise_scale == pytest.approx(scale, rel=1e-9)


def test_the_improved_variant_has_the_parameters_of_theorem_8():
    n, k, t, epsilon, delta = 10, 5, 10**12, 0.5, 1e-7
    options = {"budget": ApproxDP(epsilon, delta), "calibration": "paper", "variant": "improved"}
    policy = BatchedEXP4(k, n, horizon=t, **options)
    log, nt, few = math.log(1 / delta), math.log(n * t), math.log(n)
    eta = (nt * n * log * few) ** 0.4 / (epsilon * t * k) ** 0.4
    tau = eta**0.75 * math.sqrt(k * nt * n * log * t) / math.sqrt(epsilon * few)
    assert policy.params.rate == pytest.approx(eta)
    assert policy.batch_size == math.ceil(tau)
    gamma = 12 * math.sqrt(eta) * k * n * log * nt / (epsilon * policy.batch_size)
    assert policy.params.mixing == pytest.approx(gamma)
    # what the proof needs: losses above -1 / eta, and a variance that costs 15 of the 27
    assert gamma >= 12 * eta * k * math.sqrt(n * log) * nt / (epsilon * policy.batch_size)
    noise = 20 * 9 * eta * n * log * nt**2 * k * n / (gamma * (epsilon * policy.batch_size) ** 2)
    assert noise + gamma <= 27 * gamma / 12
    # at fewer rounds, and fewer experts, Theorem 6 bounds less or is proved alone
    short = {"horizon": 10**7, **options}
    published = BatchedEXP4(k, n, **{**short, "variant": "published"})
    assert BatchedEXP4(k, n, **short).params[:5] == published.params[:5]


def test_constants_that_need_small_delta_bound_nothing_without_it():
    for theorem in (theorem_6, theorem_8):
        assert theorem(2, 10, 10**9, 0.01, math.log(1 / 0.61)).bound == math.inf
        assert theorem(2, 10, 10**9, 0.01, math.log(1 / 0.59)).bound < math.inf


def test_epsilon_may_be_as_large_as_advanced_composition_allows():
    limit = 6 * (1 - math.sqrt(2 / 3)) * math.log(1e6)
    options = {"horizon": 10**9, "calibration": "paper"}
    assert (
        BatchedEXP4(5, 10, budget=ApproxDP(limit * (1 - 1e-9), 1e-6), **options).guarantee.holds
        is not None
    )
    with pytest.raises(
        ArgumentError,
        match=r"^budget must have epsilon <= 1.101 ln\(1 / delta\) = 15.21 .* got ApproxDP",
    ):
        BatchedEXP4(5, 10, budget=ApproxDP(limit * (1 + 1e-9), 1e-6), **options)
    with pytest.raises(ArgumentError, match=r"^budget must"):
        BatchedEXP4(5, 10, budget=ApproxDP(1.0, 0.41), **options)
    assert BatchedEXP4(5, 10, budget=ApproxDP(1.0, 0.40), **options).guarantee.holds is not None


@pytest.mark.parametrize(
    ("n", "k", "epsilon"), [(10, 5, 1.0), (10, 5, 0.1), (100, 10, 1.0), (1, 2, 0.5), (2, 1, 1.0)]
)
def test_a_horizon_that_is_too_short_is_refused_with_the_shortest_that_works(n, k, epsilon):
    options = {"budget": ApproxDP(epsilon, 1e-6), "calibration": "paper"}
    with pytest.raises(
        ArgumentError, match=r"^horizon must be at least \d+ for gamma <= 1/2 .* got 100"
    ) as caught:
        BatchedEXP4(k, n, horizon=100, **options)
    least = int(str(caught.value).split("at least ")[1].split()[0])
    assert BatchedEXP4(k, n, horizon=least, **options).params.mixing <= 0.5
    with pytest.raises(ArgumentError, match=f"at least {least} "):
        BatchedEXP4(k, n, horizon=least - 1, **options)
    assert BatchedEXP4(k, n, horizon=100, mixing=0.2, **options).params.mixing == 0.2


def test_the_published_parameters_are_those_of_theorem_5():
    n, k, t, epsilon = 10, 5, 10**6, 0.5
    policy = LocalEXP4(k, n, budget=PureDP(epsilon), horizon=t, calibration="paper")
    log = math.log(k * t)
    eta = math.sqrt(math.log(n) / (3 * t * k * (1 + 10 * log**2 / epsilon**2)))
    assert policy.params.rate == pytest.approx(eta)
    assert policy.params.mixing == pytest.approx(4 * eta * k * log / epsilon)
    assert policy.regret_bound == pytest.approx(
        16 * math.sqrt(t * k * math.log(n)) * log / epsilon + 1
    )


# Edges ---------------------------------------------------------------------------------------


def budgets(cls, small, large):
    found = [
        PureDP(small),
        PureDP(large),
        ZCDP(small),
        ZCDP(large),
        ApproxDP(small, 1e-9),
        ApproxDP(large, 0.9999),
    ]
    return [None, *(budget for budget in found if cls.card.takes(budget))]


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(("k", "n", "horizon"), [(1, 1, 1), (1, 3, 10), (3, 1, 10), (2, 2, 1)])
@pytest.mark.long
def test_edges_of_sizes_and_budgets_play(cls, k, n, horizon):
    for budget in budgets(cls, 1e-6, 1e6):
        policy = cls(k, n, budget=budget, horizon=horizon, seed=1)
        batch = 1 if cls is LocalEXP4 else policy.batch_size
        advice = np.full((n, k), 1.0 / k)
        for _ in range(min(3 * batch, 60)):
            decision = policy.pull(advice)
            assert decision.propensity == pytest.approx(1.0 / k)
            policy.update(0.5, decision)
        assert public_of(policy).probability.sum() == pytest.approx(1.0)
        assert policy.regret_bound >= 0.0


@pytest.mark.long
@pytest.mark.parametrize("cls", CLASSES)
def test_a_batch_that_is_never_full_is_never_released(cls):
    if cls is not LocalEXP4:
        policy = made(cls, ZCDP(1.0), horizon=10, batch=50)
        runs = simulate(
            policy,
            AdviceTable(np.tile(ADVICE, (49, 1, 1)), np.zeros((49, K))),
            horizon=49,
            runs=2,
            record=1,
        ).runs
        assert (runs["releases"] == 0).all()


def test_a_tiny_share_of_uniform_play_still_bounds_the_worst_case():
    # The least probability of an arm is mixing / K, however small.
    policy = made(BatchedEXP4, ZCDP(1.0), mixing=1e-12)
    assert policy.params.worst >= math.sqrt(N) * K / 1e-12
    with pytest.raises(ArgumentError, match=r"^mixing must"):
        made(BatchedEXP4, ZCDP(1.0), mixing=1e-13)
    tuned = made(BatchedEXP4, ZCDP(1e40), batch=1)
    assert 0.0 < tuned.params.mixing < 1e-12
    assert tuned.params.worst >= math.sqrt(N) * K / tuned.params.mixing


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.long
def test_probabilities_sum_to_one_after_many_releases_of_noise(cls):
    policy = made(cls, None, rate=0.5, mixing=0.01, **({} if cls is LocalEXP4 else {"batch": 1}))
    state, rng = policy.new_state(), np.random.default_rng(1)
    public, contexts = state.public, np.ascontiguousarray(ADVICE.T)
    for noise in rng.normal(scale=1e6, size=(5000, state.wall.statistic.size)):
        policy.kernels.prepare(policy.params, public, contexts, rng)
        policy.kernels.record_pull(policy.params, public, 0, contexts[0], 1)
        policy.kernels.close(policy.params, public, state.memo)
        published(policy, state, noise)
    assert np.isfinite(public.losses).all()
    assert public.losses.min() == 0.0
    assert public.probability.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("cls", [EXP4, BatchedEXP4, FrozenEXP4])
def test_after_lost_rewards_the_batch_begins_anew(cls):
    policy = made(cls, ZCDP(1.0), batch=5, seed=1, default_reward=0.25, mixing=0.2)
    for t in range(3):
        policy.expire(policy.pull(np.roll(ADVICE, t, axis=1)))
    lose_raw_side(policy)
    assert not policy.session.state.raw.total.any()
    assert public_of(policy).clock[0] == 0


@pytest.mark.parametrize("cls", [EXP4, BatchedEXP4, FrozenEXP4])
@pytest.mark.long
def test_a_public_deviation_is_taken_back_and_the_bound_stays(cls):
    policy = made(cls, ZCDP(1.0), batch=3, seed=1, choices_public=True, mixing=0.2)
    decision = policy.pull(ADVICE)
    assert policy.update(1.0, decision, arm=(decision.arm + 1) % K) is False
    assert public_of(policy).clock[0] == 0
    booked = policy.session.rounds.unreleased[decision.arm]
    assert booked.rounds == 0
    assert booked.weights == pytest.approx(np.zeros(N), abs=1e-15)
    for t in range(3):
        assert policy.update(0.5, policy.pull(np.roll(ADVICE, t + 1, axis=1)))
    policy.pull(ADVICE)
    assert policy.ledger.spent() is not None


# Secure noise --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "budget"),
    [
        (EXP4, ZCDP(1.0)),
        (EXP4, ApproxDP(1.0, 1e-6)),
        (BatchedEXP4, ZCDP(1.0)),
        (FrozenEXP4, PureDP(1.0)),
        (FrozenEXP4, ZCDP(1.0)),
    ],
    ids=str,
)
@pytest.mark.long
def test_secure_noise_is_on_a_grid_and_rounding_is_within_the_bound(cls, budget):
    grid = 2.0**-8  # coarse, so that rounding is seen
    policy = made(cls, budget, noise="secure", grid=grid, batch=4, mixing=0.3)
    k, rng = policy.kernels, np.random.default_rng(7)
    for _ in range(100):
        state, other = policy.new_state(), policy.new_state()
        public, changed = state.public, rng.integers(4)
        for t in range(4):
            contexts = np.ascontiguousarray(rng.dirichlet(np.ones(K), N).T)
            k.prepare(policy.params, public, contexts, rng)
            arm = k.choose(policy.params, public, contexts, rng)[0]
            weights = book(policy, state, contexts[arm], arm)
            k.accumulate(policy.params, state.raw, arm, weights, 0.0, 1)
            k.accumulate(policy.params, other.raw, arm, weights, float(t == changed), 1)
        bound = k.sensitivity(policy.params, public, policy.channel.norm)
        one = summarised(policy, state)
        two = np.zeros_like(one)
        k.summarise(policy.params, other.raw, public, state.memo, two)
        assert np.array_equal(np.rint(one / grid) * grid, one)
        assert np.linalg.norm(one - two, policy.channel.norm) <= bound
    for _ in range(9):
        policy.update(0.3, policy.pull(ADVICE))
    assert np.array_equal(np.rint(release_of(policy) / grid) * grid, release_of(policy))
    assert policy.ledger.spent() is not None


def test_local_rewards_take_secure_noise_and_the_improved_variant_refuses_it():
    policy = made(LocalEXP4, PureDP(1.0), noise="secure")
    for _ in range(4):
        policy.update(0.3, policy.pull(ADVICE))
    assert policy.ledger.spent() == PureDP(1.0)
    with pytest.raises(ArgumentError, match=r"^noise='secure' needs variant='published'"):
        made(BatchedEXP4, ZCDP(1.0), noise="secure", variant="improved")


def test_reports_are_taken_as_they_are():
    policy = made(LocalEXP4, PureDP(1.0), reports=True, seed=1)
    decision = policy.pull(ADVICE)
    x = ADVICE[:, decision.arm]
    policy.update(-7.5, decision)
    policy.pull(ADVICE)
    expected = x / decision.propensity * 8.5
    assert public_of(policy).losses == pytest.approx(expected - expected.min())
