"""Generalised linear bandits: how far a person moves what is released, what the estimate is without
noise, what the width covers, and what they learn.
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import dpbandits as dpb
from dpbandits import ZCDP, ApproxDP, ArgumentError
from dpbandits.algorithms import GLMUCB, GLMUCBJDP, GLMThompson, GLMThompsonJDP
from dpbandits.algorithms.glm.newton import add_score, score_sensitivity
from dpbandits.environments import ContextTable
from dpbandits.glm import Link, link_of, register_link
from dpbandits.glm.scores import Score
from dpbandits.kernel import interpreted, plain

CLASSES = [GLMUCB, GLMThompson, GLMUCBJDP, GLMThompsonJDP]
OPTIMISTIC = [GLMUCB, GLMUCBJDP]
THETA = np.array([0.7, -0.5, 0.3])


def logistic(t):
    return 1.0 / (1.0 + np.exp(-t))


def world(horizon: int, n_arms: int = 3, theta: np.ndarray = THETA, seed: int = 1) -> ContextTable:
    """Features on the sphere, rewards 0 or 1 by a logistic model."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((horizon, n_arms, theta.size))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    means = logistic(x @ theta)
    return ContextTable(x, (rng.random(means.shape) < means).astype(float), means)


@cache
def looking(link: Link):
    """The kernel that looks at a record, in plain Python."""
    return interpreted(add_score, mean=plain(link.mean), slope=plain(link.slope))


def score(policy, points: np.ndarray, x: np.ndarray, outcome: float, m: int = 0) -> np.ndarray:
    """What one record adds to what is released."""
    statistic = np.zeros(policy.statistic.size)
    looking(policy._linked.link)(policy.params, points, statistic, m, x, outcome)
    return statistic


# How far one person moves a release -----------------------------------------------------------


@given(
    seed=st.integers(0, 2**32 - 1),
    link=st.sampled_from(["logistic", "probit", "identity"]),
    bound=st.sampled_from([0.5, 1.0, 2.0]),
    weight=st.sampled_from([0.1, 1.0, 5.0]),
    range_=st.sampled_from([(0.0, 1.0), (-1.0, 1.0)]),
)
@settings(max_examples=60)
def test_no_record_moves_score_and_information_farther_than_the_bound(
    seed, link, bound, weight, range_
):
    policy = GLMUCBJDP(
        3,
        2,
        budget=ZCDP(0.5),
        horizon=100,
        link=link,
        reward_weight=weight,
        context_bound=bound,
        reward_range=range_,
        models="disjoint",
    )
    rng, most = np.random.default_rng(seed), policy.statistic.max_sensitivity
    points = rng.standard_normal((3, 2)) * rng.choice([0.0, 0.3, 1e3])
    turns = rng.uniform(0, 2 * np.pi, 4) if rng.random() < 0.5 else np.pi * np.arange(4) / 2
    lengths = [bound, bound * rng.random()]
    records = [
        score(policy, points, a * np.array([math.cos(t), math.sin(t)]), y, m)
        for a, t, y, m in itertools.product(lengths, turns, [range_[0], 0.3, range_[1]], [0, 1])
    ]
    farthest = max(np.linalg.norm(a - b) for a, b in itertools.combinations(records, 2))
    assert farthest <= most * (1 + 1e-12)


def test_the_bound_on_scores_is_nearly_attained():
    """Opposite features and certain outcomes at a point that says the opposite."""
    policy = GLMUCBJDP(2, 2, budget=ZCDP(0.5), horizon=100, link="identity", context_bound=1.0)
    point = np.array([[0.0, 0.0]])
    x, y = np.array([1.0, 0.0]), np.array([-0.5, math.sqrt(0.75)])
    distance = np.linalg.norm(score(policy, point, x, 1.0) - score(policy, point, y, 1.0))
    assert distance == pytest.approx(math.sqrt(4.5))
    logit = GLMUCBJDP(2, 2, budget=ZCDP(0.5), horizon=100)
    far = np.array([[-50.0, 0.0]])  # cut to where the mean of x is nu(-1)
    one, other = score(logit, far, x, 1.0), score(logit, far, x, 0.0)
    assert np.linalg.norm(one - other) == pytest.approx(1.0)
    other = score(logit, far, y, 1.0)
    widest, steepest = logistic(1.0), 0.25
    assert one[0] == pytest.approx(widest)
    # Outcomes of both signs for one <x, p>, and steep and flat records, exclude each other.
    assert logit.statistic.max_sensitivity < 0.8 * math.hypot(2 * widest, steepest)
    # opposite features that both outdo what was expected of them
    nearly = [score(logit, np.zeros((1, 2)), sign * x, 1.0) for sign in (1.0, -1.0)]
    assert np.linalg.norm(nearly[0] - nearly[1]) == pytest.approx(1.0)
    two = GLMUCBJDP(2, 2, budget=ZCDP(0.5), horizon=100, models="disjoint")
    apart = np.array([[-1.0, 0.0], [1.0, 0.0]])
    blocks = [score(two, apart, x, 1.0, 0), score(two, apart, -x, 1.0, 1)]
    assert np.linalg.norm(blocks[0] - blocks[1]) <= two.statistic.max_sensitivity


@pytest.mark.parametrize("residual", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("steepest", [0.1, 0.25, 1.0])
def test_the_bound_is_the_largest_of_both_cases(residual: float, steepest: float):
    cosine = np.linspace(-1, 1, 20_001)
    both = 2 * residual**2 * (1 + cosine) + 2 * steepest**2 * (1 - cosine**2)
    expected = max(both.max(), 4 * residual**2 + steepest**2)
    assert score_sensitivity(residual, steepest, 1.0) ** 2 == pytest.approx(expected, rel=1e-6)


def test_nothing_rests_on_what_a_link_says_of_itself():
    """A link that is steep where nobody looked, and means beyond all bounds."""
    register_link("wild", lambda t: 0.5 * t, lambda t: 0.5, least_slope=0.5, largest_slope=0.5)
    policy = GLMUCBJDP(2, 2, budget=ZCDP(0.5), horizon=100, link="wild")
    steep = looking(link_of("identity"))
    x, point, statistic = np.array([1.0, 0.0]), np.array([[1e6, 0.0]]), np.zeros(5)
    steep(policy.params, point, statistic, 0, x, 1.0)
    assert statistic[2] == 0.5  # of a slope of 1
    assert np.abs(statistic).max() <= policy.statistic.max_sensitivity


def no_number(t):
    return math.nan if 0.0001 < t < 0.0009 else 0.5 * t


@pytest.mark.parametrize(
    "cls",
    [GLMUCBJDP, dpb.algorithms.LDPSGD, dpb.papers.others.LDPGLOC],
    ids=lambda cls: cls.__name__,
)
@pytest.mark.long
def test_a_link_that_is_no_number_between_checks_releases_numbers(cls):
    """Of one person's features only, which no noise would hide."""
    register_link("holed", no_number, lambda t: 0.5, least_slope=0.5, largest_slope=0.5)
    horizon = {} if cls is dpb.algorithms.LDPSGD else {"horizon": 100}
    policy = cls(2, 1, budget=ZCDP(0.5), link="holed", reward_range=(-1.0, 1.0), **horizon)
    state = policy.new_state()
    points = [array for name, array in state.arrays.items() if name == "public.point"]
    for point in points or [state.public.estimate]:
        point[...] = 0.5
    kernels, statistic = policy.driven, np.full(policy.statistic.size, np.nan)
    kernels.accumulate(policy.params, state.raw, 0, np.array([0.001]), 1.0, 1)
    kernels.summarise(policy.params, state.raw, state.public, state.memo, statistic)
    assert np.isfinite(statistic).all()
    assert np.abs(statistic).max() <= policy.statistic.max_sensitivity


def test_private_regression_of_such_a_link_is_a_number():
    register_link("holed", no_number, lambda t: 0.5, least_slope=0.5, largest_slope=0.5)
    score = Score("holed", (-1.0, 1.0), 1.0, 1.0)
    found = score.add_up(np.array([[0.001]]), np.array([1.0]), np.array([0.5]), weight=1.0)
    assert np.isfinite(found).all()
    beyond = score.add_up(np.array([[1.0]]), np.array([1.0]), np.array([1.0 + 1e-9]), weight=1.0)
    at = score.add_up(np.array([[1.0]]), np.array([1.0]), np.array([1.0]), weight=1.0)
    assert np.array_equal(beyond, at)


# Without noise --------------------------------------------------------------------------------


def likelihood_estimate(x: np.ndarray, r: np.ndarray, ridge: float) -> np.ndarray:
    def loss(theta):
        t = x @ theta
        return np.logaddexp(0, t).sum() - r @ t + 0.5 * ridge * theta @ theta

    found = minimize(loss, np.zeros(x.shape[1]), method="BFGS", options={"gtol": 1e-9})
    return found.x


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@pytest.mark.long
def test_without_noise_the_estimate_is_close_to_that_of_maximum_likelihood(cls):
    """One step an epoch: off by some parts of what chance leaves, which is 0.07 here."""
    table, horizon = world(4000), 3900
    policy = cls(3, 3, budget=None, horizon=4000, growth=0.5, batch=40, ridge=0.5, seed=2)
    played = np.zeros((horizon, 3)), np.zeros(horizon)
    for t in range(horizon):
        contexts = table.state.contexts[t]
        arm = policy.pull(contexts).arm
        played[0][t], played[1][t] = contexts[arm], table.state.rewards[t, arm]
        policy.update(played[1][t])
    end = int(policy.ledger.frame["last"].max()) + 1
    exact = likelihood_estimate(played[0][:end], played[1][:end], 0.5)
    assert np.linalg.norm(policy.estimates.coefficients - exact) < 0.02
    assert np.linalg.norm(policy.estimates.coefficients - THETA) < 0.35


@pytest.mark.parametrize("cls", OPTIMISTIC, ids=lambda cls: cls.__name__)
@pytest.mark.long
def test_identity_is_linear_regression(cls):
    """Then one step is exact, whatever it starts from."""
    table = world(300)
    policy = cls(
        3, 3, budget=None, horizon=300, link="identity", growth=0.3, batch=10, parameter_bound=2.0
    )
    played = []
    for t in range(290):
        contexts = table.state.contexts[t]
        arm = policy.pull(contexts).arm
        played.append((contexts[arm], table.state.rewards[t, arm]))
        policy.update(played[-1][1])
    end = int(policy.ledger.frame["last"].max()) + 1
    x, r = np.array([row for row, _ in played[:end]]), np.array([r for _, r in played[:end]])
    expected = np.linalg.solve(x.T @ x + np.eye(3), x.T @ r)
    assert policy.estimates.coefficients == pytest.approx(expected, rel=1e-9)


# The width ------------------------------------------------------------------------------------


def misses(cls, budget, scale: float, seed: int) -> bool:
    """Whether some <x, theta> was farther from its estimate than the width says, in any epoch."""
    table, directions = world(3000, theta=THETA, seed=seed), np.eye(3)
    policy = cls(
        3, 3, budget=budget, horizon=3000, growth=0.5, batch=50, radius_scale=scale, seed=seed
    )
    missed, seen = False, -1
    for t in range(3000):
        arm = policy.pull(table.state.contexts[t]).arm
        policy.update(table.state.rewards[t, arm])
        if policy.ledger.releases == seen:
            continue
        seen = policy.ledger.releases
        public = policy.session.state.public
        model = getattr(public, "linear", public)
        radius, gap, bias = model.facts[:3, 0]
        turned = directions @ model.inverse[0]
        squares = (turned**2).sum(axis=1)
        width = radius * np.sqrt((turned * directions).sum(axis=1) + gap * squares)
        width += bias * np.sqrt(squares)
        missed |= bool((np.abs(policy.estimates.coefficients - THETA) > width).any())
    return missed


@pytest.mark.parametrize("budget", [None, ZCDP(0.5)], ids=str)
@pytest.mark.parametrize("cls", OPTIMISTIC, ids=lambda cls: cls.__name__)
@pytest.mark.long
def test_the_width_covers_the_parameter_in_all_epochs(cls, budget):
    assert not any(misses(cls, budget, 1.0, seed) for seed in range(6))
    # and a hundredth of it does not
    assert any(misses(cls, budget, 0.01, seed) for seed in range(2))


# What is promised -----------------------------------------------------------------------------


def test_every_epoch_is_charged_once_and_has_the_budget():
    policy = GLMUCBJDP(2, 2, budget=ZCDP(0.5), horizon=100, batch=10, growth=1.0, seed=1)
    ends = []
    for t in range(100):
        policy.pull(np.eye(2))
        policy.update(1.0)
        if policy.ledger.releases > len(ends):
            ends.append(t)
    assert ends == [10, 20, 40, 80]
    assert policy.ledger.spent() == ZCDP(0.5)
    assert policy.guarantee.view == "anticipating joint"
    assert "override" in str(policy.guarantee)


def test_the_published_channel_keeps_more_than_was_asked():
    """sqrt(2) times the classical constant."""
    asked = ApproxDP(0.5, 1e-5)
    policy = GLMUCBJDP(2, 2, budget=asked, horizon=100, calibration="paper")
    assert policy.channel.multiplier == pytest.approx(2 * math.sqrt(math.log(1.25e5)) / 0.5)
    held = policy.effective_budget
    assert held.epsilon == asked.epsilon
    assert held.delta < 1e-12


def test_records_are_erased_with_their_epoch():
    policy = GLMUCBJDP(2, 2, budget=ZCDP(0.5), horizon=100, batch=5, seed=1)
    for t in range(6):
        policy.pull(np.eye(2))
        if t < 5:
            policy.update(1.0)
    raw = policy.session.state.raw
    assert not raw.features.any()
    assert not raw.outcomes.any()
    assert raw.kept[0] == 0
    for _ in range(100):  # none is kept that will never be released
        policy.pull(np.eye(2))
        policy.update(1.0)
    assert not policy.session.state.raw.features.any()


def test_without_clipping_it_still_explores():
    policy = GLMUCBJDP(3, 2, budget=None, horizon=100, clip=False)
    rng = np.random.default_rng(1)
    assert len({policy.pull(rng.standard_normal((3, 2))).arm for _ in range(30)}) == 3


def test_more_records_than_memory_are_refused():
    with pytest.raises(ArgumentError, match="horizon"):
        GLMUCBJDP(3, 10, budget=ZCDP(0.5), horizon=10**12)


# Edges ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize(
    "rewards",
    [lambda x: 1.0, lambda x: 0.0, lambda x: float(x.sum() > 0)],
    ids=["all of one class", "none", "separable"],
)
@pytest.mark.long
def test_certain_outcomes_leave_finite_estimates(cls, rewards):
    rng = np.random.default_rng(4)
    policy = cls(2, 1, budget=None, horizon=400, batch=5, seed=1)
    for _ in range(400):
        contexts = rng.choice([-1.0, 1.0], (2, 1))
        arm = policy.pull(contexts).arm
        policy.update(rewards(contexts[arm]))
    assert np.isfinite(policy.estimates.coefficients).all()
    assert abs(policy.estimates.coefficients[0]) < 100


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_arguments_outside_their_range_are_named(cls):
    with pytest.raises(ArgumentError, match="parameter_bound"):
        cls(2, 2, budget=None, horizon=100, parameter_bound=0.0)
    for name, value in {
        "link": "cauchit",
        "horizon": 0,
        "batch": 0,
        "growth": 0.0,
        "parameter_bound": 61.0,
    }.items():
        with pytest.raises(ArgumentError, match=name) as caught:
            cls(2, 2, budget=None, **{"horizon": 100, name: value})
        assert caught.value.argument == name
    assert cls(2, 2, budget=None, horizon=9, parameter_bound=5.0).condition_number > 30
    with pytest.raises(TypeError, match="switch"):
        cls(2, 2, budget=None, horizon=9, switch=1.0)


# What they learn ------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_privacy_costs_less_and_less_of_what_is_learned(cls):
    """Mean regret per round, against uniform play: 0.19 here."""
    horizon = 60_000
    table = world(horizon, n_arms=10, theta=np.array([0.8, -0.5, 0.3]), seed=7)
    marks, kept = [2_000, horizon], {}
    extra = {} if cls in (GLMThompson, GLMThompsonJDP) else {"radius_scale": 0.1}
    for budget in (None, ApproxDP(1.0, 1e-5)):
        policy = cls(10, 3, budget=budget, horizon=horizon, batch=20, **extra)
        played = dpb.simulate(policy, table, horizon=horizon, runs=20, seed=3, record=marks)
        curve = played.frame.groupby("round")["regret"].mean()
        kept[budget] = [curve[marks[0]] / marks[0], curve[marks[1]] / marks[1]]
    exact, private = kept[None], kept[ApproxDP(1.0, 1e-5)]
    assert exact[1] < 0.02
    assert private[1] - exact[1] < 0.25 * (private[0] - exact[0])
