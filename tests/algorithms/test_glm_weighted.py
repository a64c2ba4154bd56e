"""Bandits on information-weighted regression: what a record can move, widths, and what is learned."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sides import tireless

import dpbandits as dpb
from dpbandits import ZCDP
from dpbandits.environments import ContextTable
from dpbandits.glm import link_of
from dpbandits.papers.glm import WeightedGLMJDP, WeightedGLMLDP
from dpbandits.papers.glm.kernels import LENS, look_with

BOTH = [WeightedGLMJDP, WeightedGLMLDP]
THETA = np.array([0.6, -0.3, 0.7])


def lens(point: np.ndarray, matrix: np.ndarray, damping: float) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    root = (vectors * np.sqrt(values)) @ vectors.T
    ones = np.ones_like(point)
    return np.vstack([point, values[-1] * ones, damping * ones, matrix, root])


def record(policy, through: np.ndarray, x, outcome: float) -> np.ndarray:
    found = np.zeros(policy.statistic.size)
    look = look_with(link_of(policy.config["link"]))
    look(policy.params, through, np.asarray(x, float), outcome, found)
    return found


# What a record moves ---------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32 - 1),
    cls=st.sampled_from(BOTH),
    link=st.sampled_from(["logistic", "identity"]),
    d=st.sampled_from([1, 2, 3]),
    bound=st.sampled_from([0.5, 1.0, 2.0]),
    weight=st.sampled_from([0.1, 1.0, 5.0]),
)
@settings(max_examples=80)
def test_no_record_moves_the_sums_farther_than_the_bound_whatever_the_lens(
    seed, cls, link, d, bound, weight
):
    policy = cls(
        2, d, budget=ZCDP(0.5), horizon=100, link=link, context_bound=bound, reward_weight=weight
    )
    rng, most = np.random.default_rng(seed), policy.statistic.max_sensitivity
    turned = np.linalg.qr(rng.standard_normal((d, d)))[0]
    matrix = (turned * np.exp(rng.uniform(-8, 8, d))) @ turned.T
    through = lens(rng.standard_normal(d) * rng.choice([0.0, 1.0, 1e3]), matrix, rng.exponential())
    records = []
    for _ in range(12):
        x = rng.standard_normal(d) * np.exp(-8 * rng.choice([0.0, 1.0], d))
        x *= bound * rng.choice([1.0, rng.random()]) / np.linalg.norm(x)
        records += [record(policy, through, x, y) for y in (-1e9, 1e9)]
    farthest = max(np.linalg.norm(a - b) for a, b in itertools.combinations(records, 2))
    assert farthest <= most
    largest = max(np.abs(one).max() for one in records)
    assert largest <= policy.statistic.max_abs_contribution * (1 + 1e-12)


@pytest.mark.parametrize("cls", BOTH)
def test_both_parts_of_the_bound_are_attained(cls):
    """Scores by certain outcomes of the same features, information by orthogonal ones."""
    policy = cls(2, 2, budget=ZCDP(0.5), horizon=100, link="identity")
    through = lens(np.zeros(2), 3.0 * np.eye(2), 0.7)
    one, other = (record(policy, through, [1.0, 0.0], y) for y in (1.0, 0.0))
    assert one[:2] - other[:2] == pytest.approx([1.0, 0.0])
    far = lens(np.array([-1.0, 0.0]), 3.0 * np.eye(2), 0.7)  # where the outcome 1 is 2 away
    assert record(policy, far, [1.0, 0.0], 1.0)[0] == pytest.approx(2.0)
    across = record(policy, through, [1.0, 0.0], 0.0) - record(policy, through, [0.0, 1.0], 0.0)
    assert np.linalg.norm(across) == pytest.approx(math.sqrt(2))
    assert policy.statistic.max_sensitivity == pytest.approx(math.sqrt(4 * 2.0**2 + 2))


def longest(policy) -> float:
    """A bound on one report."""
    steepest = policy._linked.conditioning.largest_slope
    return math.hypot(policy._weight * policy._linked.residual, steepest) * (1 + 1e-12)


def device_of(server, through: np.ndarray | None = None):
    device = tireless(server.device())
    if through is not None:
        data = json.loads(server.chooser().to_json())
        data["public"]["public.lens"] = through.tolist()
        device.use(json.dumps(data))
    device._randomise = np.copy
    return device


def reports_of(device, rows) -> list[np.ndarray]:
    found = []
    for x, reward in itertools.product(rows, (0.0, 1.0)):
        device.choose(np.array([x, x]))
        found.append(device.report(reward))
    return found


LINKS = ["logistic", "identity"]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("size", [math.nan, 0.0, 1e-320, 1.5e-162, 1e-150, 1.0, 1e99, math.inf])
def test_no_lens_makes_a_device_tell_more(size, link):
    server = WeightedGLMLDP(2, 10, budget=ZCDP(0.5), horizon=100, link=link, reports=True, seed=1)
    rng = np.random.default_rng(1)
    rows = [*np.eye(10)[:2], *rng.uniform(-0.3, 0.3, (2, 10)), np.full(10, 1e-200), np.zeros(10)]
    for _ in range(5):
        through = rng.standard_normal((LENS.matrix + 20, 10))
        through[LENS.matrix :] *= size
        for report in reports_of(device_of(server, through), rows):
            assert np.isfinite(report).all()
            assert np.linalg.norm(report) <= longest(server)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("d", [1, 3, pytest.param(50, marks=pytest.mark.long)])
def test_features_whose_squares_are_no_numbers_tell_no_more(d: int, link):
    """Squares below the least float are lost, and a length with them."""
    server = WeightedGLMLDP(2, d, budget=ZCDP(0.5), horizon=100, link=link, reports=True, seed=1)
    device = device_of(server)
    rows = np.geomspace(1e-164, 1e-160, 120)[:, np.newaxis] * np.ones(d)
    rows[:, 0] *= 1.24
    assert max(np.linalg.norm(report) for report in reports_of(device, rows)) <= longest(server)


# What follows ----------------------------------------------------------------------------------


def world(
    rounds: int, seed: int = 1, scales=(1.0, 1.0, 1.0), size: float = 1.0, link: str = "logistic"
) -> ContextTable:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rounds, 3, 3))
    x *= np.asarray(scales) / np.linalg.norm(x, axis=2, keepdims=True)
    means = 1 / (1 + np.exp(-size * x @ THETA))
    if link == "identity":
        x[x @ THETA < 0.0] *= -1.0
        means = x @ THETA
    return ContextTable(x, (rng.random(means.shape) < means).astype(float), means)


def played(policy, table: ContextTable):
    """Yields the sums after every change of the estimate."""
    before = policy.estimates.coefficients
    for x, r in zip(table.state.contexts, table.state.rewards, strict=True):
        policy.update(r[policy.pull(x).arm])
        if (policy.estimates.coefficients != before).any():
            before = policy.estimates.coefficients
            yield policy


@pytest.mark.parametrize("budget", [None, ZCDP(0.5)], ids=str)
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.long
def test_the_width_covers_the_parameter_in_all_epochs_and_directions(cls, link, budget):
    """|<x, error>| <= B |T x| for all x: |T^-T error| <= B."""
    missed = {1.0: 0, 0.001: 0}
    for scale, seed in itertools.product(missed, range(3)):
        policy = cls(
            3,
            3,
            budget=budget,
            horizon=3000,
            batch=50,
            link=link,
            radius_scale=scale,
            seed=seed,
        )
        epochs = 0
        for _ in played(policy, world(3000, seed, link=link)):
            epochs += 1
            model = policy.session.state.public.linear
            error = np.linalg.solve(model.inverse[0].T, policy.estimates.coefficients - THETA)
            missed[scale] += bool(np.linalg.norm(error) > model.facts[2, 0])
        assert epochs == 6
    assert missed[1.0] == 0
    assert missed[0.001] > 0


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.long
def test_weightings_make_all_directions_count_alike(cls):
    """A B A + b A = I, with B of the rounds that were played, for features of which one is small."""
    scales = (1.0, 1.0, 0.1)
    policy = cls(3, 3, budget=None, horizon=20_000, link="identity", radius_scale=0.0)
    table = world(20_000, scales=scales)
    *_, last = played(policy, table)
    matrix = last.weighting
    values = np.linalg.eigvalsh(matrix)
    x = table.state.contexts.reshape(-1, 3)
    length = np.linalg.norm(x @ matrix, axis=1)
    weights = 1 / length if cls is WeightedGLMLDP else np.ones_like(length)
    b = (x * weights[:, None]).T @ x / len(x)
    assert matrix @ b @ matrix == pytest.approx(np.eye(3), abs=0.2)
    assert values[-1] / values[0] > 4


@pytest.mark.parametrize(("cls", "share"), [(BOTH[0], 0.12), (BOTH[1], 0.7)])
@pytest.mark.long
def test_regret_is_far_below_that_of_uniform_play(cls, share):
    table = world(8000, size=3.0)
    uniform = (table.state.means.max(axis=1) - table.state.means.mean(axis=1)).sum()
    policy = cls(3, 3, budget=ZCDP(0.5), horizon=8000, parameter_bound=3.0, radius_scale=0.001)
    runs = dpb.simulate(policy, table, horizon=8000, runs=10, seed=1, record=[8000]).runs
    assert runs["regret"].mean() < share * uniform


def test_devices_and_the_simulated_policy_are_one_algorithm():
    """Under hardly any noise arm by arm, and number by number."""
    table = world(80)
    given = {"budget": ZCDP(1e13), "batch": 4, "horizon": 80, "seed": 1}
    alone = WeightedGLMLDP(3, 3, **given)
    server = WeightedGLMLDP(3, 3, reports=True, **given)
    device = tireless(server.device())
    for x, r in zip(table.state.contexts, table.state.rewards, strict=True):
        arm = alone.pull(x).arm
        alone.update(r[arm])
        device.use(server.chooser().to_json())
        assert device.choose(x) == arm
        assert server.receive(device.report(r[arm]))
        assert server.estimates.coefficients == pytest.approx(
            alone.estimates.coefficients, abs=1e-3
        )
    assert np.abs(alone.estimates.coefficients).max() > 0.01


def test_an_epoch_is_forgotten_when_it_is_over():
    policy = WeightedGLMJDP(3, 3, budget=ZCDP(0.5), horizon=100, batch=10, seed=1)
    list(played(policy, world(41)))
    raw = policy.session.state.raw
    assert raw.kept[0] == 1
    assert not raw.features[1:].any()
    assert not raw.outcomes[1:].any()
    assert policy.ledger.releases == 3
    assert set(policy.ledger.frame["sensitivity"]) == {policy.statistic.max_sensitivity}
    assert policy.ledger.spent() == ZCDP(0.5)
