"""G-optimal designs: certificates, known optima and degenerate arms."""

import math

import numpy as np
import pytest

from dpbandits import ArgumentError
from dpbandits.papers.concentrated.design import _thin_out, find_span, g_optimal, new_space, refresh


def sphere(k, d, seed=0):
    arms = np.random.default_rng(seed).normal(size=(k, d))
    return arms / np.linalg.norm(arms, axis=1, keepdims=True)


def ragged(k, d, seed=0):
    """Arms of different lengths, for which the optimal weights are unique: on the sphere any with V
    = I / d are optimal.
    """
    return sphere(k, d, seed) * np.random.default_rng(seed).uniform(0.5, 1.0, size=(k, 1))


def widths(arms, weights):
    """|a|^2_{V^+}, in an orthonormal basis of the span."""
    basis = np.linalg.svd(arms, full_matrices=False)[2][: np.linalg.matrix_rank(arms)]
    x = arms @ basis.T
    return np.einsum("ai,ij,aj->a", x, np.linalg.inv((x.T * weights) @ x), x)


def titterington(arms, steps=10_000):
    """The multiplicative algorithm: slow, monotone, and nothing like Frank-Wolfe."""
    weights = np.full(len(arms), 1 / len(arms))
    for _ in range(steps):
        inverse = np.linalg.inv((arms.T * weights) @ arms)
        weights *= ((arms @ inverse) * arms).sum(axis=1) / arms.shape[1]
    return weights


@pytest.mark.parametrize(("k", "d"), [(4, 2), (10, 3), (30, 4), (12, 6)])
def test_it_agrees_with_brute_force(k, d):
    arms = ragged(k, d, seed=k)
    design, brute = g_optimal(arms, 1e-9), titterington(arms)
    moments = [(arms.T * weights) @ arms for weights in (design.weights, brute)]
    assert design.weights == pytest.approx(brute, abs=1e-3)
    assert moments[0] == pytest.approx(moments[1], abs=1e-4)
    assert np.linalg.slogdet(moments[0])[1] >= np.linalg.slogdet(moments[1])[1] - 1e-9


@pytest.mark.parametrize("tolerance", [1.0, 1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize(
    ("k", "d"), [(1, 1), (1, 4), (5, 1), (10, 3), (200, 2), (100, 5), (400, 8), (25, 25)]
)
def test_the_certificate_is_true_and_the_support_small(k, d, tolerance):
    arms = ragged(k, d)
    design = g_optimal(arms, tolerance)
    assert design.rank == min(k, d)
    assert design.weights.min() >= 0.0
    assert design.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert design.value == pytest.approx(widths(arms, design.weights).max(), rel=1e-7)
    assert 0.0 <= design.gap <= tolerance * design.rank + 1e-9
    assert design.gap == max(design.value - design.rank, 0.0)
    assert np.count_nonzero(design.weights) <= design.rank * (design.rank + 1) // 2


@pytest.mark.parametrize("d", [2, 3, 5, 10, 20])
def test_a_coarse_design_plays_few_arms(d):
    for seed in range(10):
        design = g_optimal(sphere(50 * d, d, seed), 1.0)
        assert design.value <= 2 * d
        assert np.count_nonzero(design.weights) <= min(
            4 * d * math.log(math.log(d)) + 16, 2 * d + 1
        )


def test_known_designs():
    for d in (1, 2, 7):
        assert g_optimal(np.eye(d)).weights == pytest.approx(np.full(d, 1 / d))
    inner = [[1.0, 0.0], [0.0, 1.0], [0.6, -0.6], [0.0, -0.5], [0.0, 0.0]]
    assert g_optimal(inner).weights == pytest.approx([0.5, 0.5, 0.0, 0.0, 0.0])
    assert g_optimal([[2.0], [-3.0], [1.0]]).weights.tolist() == [0.0, 1.0, 0.0]


def test_evenly_spaced_directions_need_three_arms():
    """All of them evenly weighted are optimal, too: 64 arms where three or two do."""
    angles = np.arange(64) * math.pi / 64
    design = g_optimal(np.column_stack([np.cos(angles), np.sin(angles)]), 1e-9)
    assert np.count_nonzero(design.weights) <= 3
    assert design.gap < 1e-8


@pytest.mark.long
@pytest.mark.parametrize(("k", "d"), [(40, 3), (7, 3), (300, 6), (4, 2), (3, 1)])
def test_thinning_out_shortens_support_and_no_width_grows(k, d):
    arms, space = sphere(k, d, seed=d), new_space(k, d)
    space.rows[:] = np.arange(k)
    assert find_span(arms, space, k) == d
    space.weights[:] = np.random.default_rng(3).dirichlet(np.ones(k))
    before = space.weights.copy()
    refresh(space, k, d)
    assert _thin_out(space, k, d)
    assert np.count_nonzero(space.weights) <= d * (d + 1) // 2
    assert space.weights.min() >= 0.0
    assert space.weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert (widths(arms, space.weights) <= widths(arms, before) * (1 + 1e-7)).all()
    assert not _thin_out(space, k, d)


@pytest.mark.long
def test_thinning_out_copes_with_equal_arms():
    arms, space = np.repeat(np.eye(2), 5, axis=0), new_space(10, 2)
    space.rows[:] = np.arange(10)
    assert find_span(arms, space, 10) == 2
    space.weights[:] = 0.1
    refresh(space, 10, 2)
    assert _thin_out(space, 10, 2)
    assert np.count_nonzero(space.weights) <= 3
    assert arms.T @ space.weights == pytest.approx([0.5, 0.5])


def test_a_design_does_not_depend_on_coordinates():
    arms, rng = ragged(20, 3), np.random.default_rng(2)
    skewed = arms @ rng.normal(size=(3, 3)) * 1e3
    embedded = arms @ np.linalg.qr(rng.normal(size=(9, 3)))[0].T * 1e-3
    flat = arms * [1.0, 1e-3, 1e-6]
    expected = g_optimal(arms, 1e-9)
    for same in (skewed, embedded, flat):
        design = g_optimal(same, 1e-9)
        assert design.rank == 3
        assert design.weights == pytest.approx(expected.weights, abs=1e-4)
        assert design.gap < 1e-8


@pytest.mark.parametrize(
    ("arms", "rank", "support"),
    [
        ([[0.0]], 0, [0]),
        ([[0.0, 0.0], [0.0, 0.0]], 0, [0]),
        ([[1.0, 2.0]], 1, [0]),
        ([[0.0, 0.0], [0.0, -3.0]], 1, [1]),
        ([[1.0, 1.0], [2.0, 2.0], [-1.5, -1.5]], 1, [1]),
        (np.ones((6, 4)), 1, [0]),
        ([[1.0, 0.0], [1.0, 1e-8]], 2, [0, 1]),
        ([[1.0, 0.0], [1.0, 1e-13]], 1, [0]),
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]], 2, [0, 1]),
        (1e99 * np.eye(3), 3, [0, 1, 2]),
        (1e-200 * np.eye(3), 3, [0, 1, 2]),
    ],
)
def test_degenerate_arms(arms, rank, support):
    design = g_optimal(arms)
    assert design.rank == rank
    assert np.flatnonzero(design.weights).tolist() == support
    assert design.gap <= 1e-6 * rank
    assert design.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "arms", [3.0, [], [1.0], [[]], [[math.nan]], [[math.inf]], [["a"]], [[1.0], [1.0, 2.0]], None]
)
def test_what_is_no_table_is_refused(arms):
    with pytest.raises(ArgumentError, match=r"^arms must"):
        g_optimal(arms)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, math.nan, "1", None])
def test_the_tolerance_is_checked(tolerance):
    with pytest.raises(ArgumentError, match=r"^tolerance must"):
        g_optimal(np.eye(2), tolerance)
