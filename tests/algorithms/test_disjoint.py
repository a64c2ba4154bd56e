"""A model for each arm: beside one model of lifted features, and what only it has to get right."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sides import public_of, tireless

import dpbandits as dpb
from dpbandits import ZCDP, ArgumentError
from dpbandits.algorithms.hidden.kernels import add_record
from dpbandits.algorithms.hidden.model import joint_sensitivity
from dpbandits.environments import CovariateArms, GaussianContexts
from dpbandits.simulation import simulate

K, D, ROUNDS = 3, 2, 120
RNG = np.random.default_rng(4)
PEOPLE = RNG.normal(size=(ROUNDS, D)) / 2
REWARDS = RNG.random((ROUNDS, K))
HIDDEN = ["AdaCOFULJDP", "LinUCBJDP", "LinUCBLDP", "LinearThompsonJDP"]

PLANNED = [*HIDDEN, "LinearThompson", "PrivateLinUCB"]


def made(name: str, dimension: int = D, *, models: str = "disjoint", **options):
    planned = {} if name == "LinUCB" else {"horizon": ROUNDS}
    given = {"budget": None, "seed": 7, **planned, **options}
    return getattr(dpb.algorithms, name)(K, dimension, models=models, **given)


def contribution(params, arm, x, reward):
    record = np.zeros(params.n_models * (D + D * (D + 1) // 2))
    add_record(params, record, arm, x, reward)
    return record


def lifted(person: np.ndarray) -> np.ndarray:
    """Features of every arm that stand in a block of their own, shape (K, K d)."""
    return np.kron(np.eye(K), person)


def arms_played(policy, shown) -> list[int]:
    arms = []
    for x, rewards in zip(shown, REWARDS, strict=True):
        arms.append(policy.pull(x).arm)
        policy.update(rewards[arms[-1]])
    return arms


@pytest.mark.long
@pytest.mark.parametrize("name", ["LinUCB", "AdaCOFULJDP", "LinUCBJDP", "LinUCBLDP"])
def test_without_a_radius_it_plays_as_one_model_of_lifted_features(name: str):
    own = made(name, radius_scale=0.0)
    one = made(name, K * D, models="shared", radius_scale=0.0)
    assert arms_played(own, PEOPLE) == arms_played(one, map(lifted, PEOPLE))
    assert own.estimates.coefficients.ravel() == pytest.approx(
        one.estimates.coefficients, rel=1e-9, abs=1e-12
    )
    assert own.estimates.coefficients.shape == (K, D)
    assert len(np.unique(own.estimates.coefficients)) == K * D


@pytest.mark.long
@pytest.mark.parametrize("budget", [None, ZCDP(0.5)])
def test_draws_of_all_models_are_one_draw_of_the_lifted_one(budget: ZCDP | None):
    """With the same random numbers, those of the noise on all blocks among them."""
    own = made("LinearThompson", budget=budget)
    one = made("LinearThompson", K * D, models="shared", budget=budget)
    assert own.noise_scale == one.noise_scale
    assert arms_played(own, PEOPLE) == arms_played(one, map(lifted, PEOPLE))
    assert own.estimates.coefficients.ravel() == pytest.approx(
        one.estimates.coefficients, rel=1e-9, abs=1e-12
    )


@pytest.mark.long
def test_draws_of_hidden_models_are_one_draw_of_the_lifted_one():
    own = made("LinearThompsonJDP")
    one = made("LinearThompsonJDP", K * D, models="shared")
    assert arms_played(own, PEOPLE) == arms_played(one, map(lifted, PEOPLE))


@pytest.mark.parametrize("name", ["LinUCB", *PLANNED])
@pytest.mark.long
def test_one_vector_is_a_row_for_every_arm(name: str):
    once, row, rows = made(name), made(name), made(name)
    assert (
        arms_played(once, PEOPLE)
        == arms_played(row, PEOPLE[:, np.newaxis])
        == arms_played(rows, np.repeat(PEOPLE[:, np.newaxis], K, axis=1))
    )


def test_only_a_model_per_arm_takes_one_vector():
    with pytest.raises(ArgumentError, match=r"^contexts must have shape \(3, 2\), got \(2,\)"):
        made("LinUCB", models="shared").pull(PEOPLE[0])
    for wrong in (PEOPLE[0][:1], PEOPLE[:2], PEOPLE[:1].T):
        with pytest.raises(ArgumentError, match=r"^contexts must have shape \(2,\) or \(3, 2\)"):
            made("LinUCB").pull(wrong)
    with pytest.raises(ArgumentError, match=r"^contexts must be an array .* \(2,\) or \(3, 2\)"):
        made("LinUCB").pull("ab")
    for wrong in ("both", None, 3):
        with pytest.raises(ArgumentError, match=r"^models must"):
            made("LinUCB", models=wrong)
    with pytest.raises(TypeError, match="models"):
        dpb.algorithms.AdaCOFUL(K, D, budget=None, horizon=9, models="disjoint")


@pytest.mark.long
def test_one_hidden_vector_with_a_bad_number_is_blanked_once():
    policy = made("LinUCBJDP")
    for person in ([np.nan, 0.5], ["much", 0.5], np.array([1j, 0.5])):
        policy.pull(person)
    assert policy.diagnostics.blanked == 3


@pytest.mark.parametrize("name", PLANNED)
@pytest.mark.long
def test_its_chooser_chooses_as_it_does(name: str):
    policy = made(name, budget=ZCDP(50.0))
    arms_played(policy, PEOPLE)
    chooser = dpb.policies.Chooser.from_json(policy.chooser().to_json())
    assert np.shape(json.loads(chooser.to_json())["public"]["public.inverse"]) == (K, D, D)
    people, (decide, _) = np.random.default_rng(2).normal(size=(200, D)), policy.public_half()
    arms = [chooser.choose(x) for x in people]
    assert len(set(arms)) > 1
    assert policy.card.randomised or arms == [decide(x, os.urandom)[0] for x in people]


@pytest.mark.long
def test_a_device_reports_in_the_block_of_its_arm():
    server = made("LinUCBLDP", budget=ZCDP(1e12), reports=True, batch=3)
    device, x, size = tireless(server.device()), np.array([0.6, 0.8]), D + D * (D + 1) // 2
    record = [*(0.5 * x), x[0] ** 2, x[1] ** 2, np.sqrt(2) * x[0] * x[1]]
    for _ in range(6):
        device.use(server.chooser())
        arm = device.choose(x)
        report = device.report(0.5)
        assert report.shape == (K * size,)
        expected = np.zeros((K, size))
        expected[arm] = record
        assert report == pytest.approx(expected.ravel(), abs=1e-4)
        assert server.receive(report)
    assert device.report() == pytest.approx(np.zeros(K * size), abs=1e-4)
    assert np.trace(public_of(server).precision, axis1=1, axis2=2).sum() == pytest.approx(
        6 + K * D * server.params.ridge, abs=1e-3
    )


# Privacy -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "length"), [(0.5, 1.0), (1.0, 1.0), (1.5, 1.0), (3.0, 0.5)])
def test_no_change_of_arm_moves_a_record_farther_than_a_change_inside_of_it(most, length):
    """All pairs of a grid of records, the worst directions among them: two blocks move by sqrt(2
    R^2 L^2 + 2 L^4), one by the bound.
    """
    policy = made("LinUCBJDP", reward_range=(-most, most), context_bound=length, budget=ZCDP(0.5))
    cosine = max(-1.0, -(most**2) / (2 * length**2))
    angles = np.append(np.linspace(0, 2 * np.pi, 25), np.arccos(cosine))
    records, blocks = [], []
    for arm in range(K):
        for angle in angles:
            for size in (0.4 * length, length):
                for reward in (-most, 0.0, most):
                    x = size * np.array([np.cos(angle), np.sin(angle)])
                    records.append(contribution(policy.params, arm, x, reward))
                    blocks.append(arm)
    moved = cdist(records, records)
    same = np.equal.outer(blocks, blocks)
    bound = policy.statistic.max_sensitivity
    assert bound == joint_sensitivity(most, length)
    assert moved[same].max() == pytest.approx(bound, rel=1e-9)
    across = np.sqrt(2 * most**2 * length**2 + 2 * length**4)
    assert moved[~same].max() == pytest.approx(across, rel=1e-9)
    assert across < bound


def test_rounding_in_two_blocks_is_within_the_bound():
    grid = 2.0**-4
    policy = made("LinUCBJDP", budget=ZCDP(0.5), noise="secure", seed=None, grid=grid)
    rng, bound = np.random.default_rng(3), policy.statistic.max_sensitivity
    for _ in range(300):
        people = rng.normal(size=(2, D))
        people /= np.linalg.norm(people, axis=1, keepdims=True)
        one, other = (contribution(policy.params, arm, x, 1.0) for arm, x in enumerate(people))
        assert np.array_equal(one, np.rint(one / grid) * grid)
        assert np.linalg.norm(one - other) <= bound


def test_noise_is_that_of_one_model():
    for name in ("PrivateLinUCB", *HIDDEN):
        own, one = (
            made(name, models=models, budget=ZCDP(0.5)) for models in ("disjoint", "shared")
        )
        assert own.noise_scale == one.noise_scale
        assert own.statistic.size == K * one.statistic.size
        assert own.ledger.spent() == one.ledger.spent()


def test_models_share_the_failure_probability():
    """The radius of a model is that of a shared one with a third of the failure probability."""
    for name in ("LinUCB", "LinUCBJDP", "AdaCOFULJDP", "LinUCBLDP"):
        budget = None if name == "LinUCB" else ZCDP(0.5)
        own = made(name, budget=budget, failure_probability=0.03)
        one = made(name, models="shared", budget=budget, failure_probability=0.03 / K)
        assert public_of(own).facts == pytest.approx(np.repeat(public_of(one).facts, K, axis=1))


# Play ----------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("LinUCB", {"radius_scale": 0.2}),
        pytest.param(
            "PrivateLinUCB",
            {"radius_scale": 0.1, "budget": ZCDP(0.5)},
            marks=pytest.mark.long,
        ),
        pytest.param("LinearThompson", {"budget": ZCDP(0.5)}, marks=pytest.mark.long),
        ("LinearThompsonJDP", {"budget": ZCDP(5.0), "batch": 30}),
    ],
)
def test_it_beats_whatever_ignores_who_comes(name: str, options: dict):
    """The best single arm is the least that UCB1 and all others without contexts can regret."""
    world, horizon = CovariateArms.random(K, D, seed=2), 3000
    planned = {} if name == "LinUCB" else {"horizon": horizon}
    result = simulate(
        made(name, **planned, **options), world, horizon=horizon, runs=4, seed=1, record=[horizon]
    )
    best = world.parameter[:, -1] * np.sqrt(0.5)  # the mean of every arm over people
    people = np.random.default_rng(1).normal(size=100_000)
    circle = np.sqrt(0.5) * np.column_stack([np.sign(people), np.ones(people.size)])
    single = ((circle @ world.parameter.T).max(axis=1) - best.max()).mean() * horizon
    assert result.runs["regret"].max() < 0.6 * single
    assert result.frame["distance"].iloc[-1] < np.linalg.norm(world.parameter)


@pytest.mark.long
def test_distances_are_to_the_parameters_of_all_arms():
    world = GaussianContexts.on_sphere(K, D, seed=1, rewards="bounded", project=True)
    silent = made("LinUCB", reward_range=(-1, 1))
    found = simulate(silent, world, horizon=2, record=[1, 2]).frame["distance"]
    assert found.iloc[0] == pytest.approx(np.sqrt(K), abs=0.5)  # theta of length 1, K times
    shared = made("LinUCB", models="shared")
    assert "distance" not in simulate(shared, CovariateArms.random(K, D), horizon=2).frame
