"""Wishart noise: its loss against densities, its level against simulated losses and quadrature, and
its sampler against that of scipy.
"""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from dpbandits import ApproxDP, ArgumentError
from dpbandits.papers.shuffle.wishart_noise import WishartNoise, _Losses
from dpbandits.privacy.channels import CERTIFIED
from dpbandits.privacy.continual import WishartTree, mechanism_from_python, smat

ALPHA = 1e-4


def losses_by_densities(v, other, freedom: int, n: int, rng) -> np.ndarray:
    """ln f(W) / f(W + M) of n draws."""
    p, moved = len(v), np.outer(v, v) - np.outer(other, other)
    noise = stats.wishart(freedom, np.eye(p)).rvs(n, random_state=rng)
    inside = np.linalg.eigvalsh(noise + moved)[:, 0] > 0.0
    log_ratio = np.linalg.slogdet(noise + moved)[1] - np.linalg.slogdet(noise)[1]
    loss = np.trace(moved) / 2 - (freedom - p - 1) / 2 * log_ratio
    return np.where(inside, loss, np.inf)


def losses(a: float, b: float, excess: int, n: int, rng, more: int = 0) -> np.ndarray:
    """The same in three variables, for M = diag(a, -b); ``more`` freedom of one is wrong."""
    x, w, g = rng.chisquare(excess + 3 + more, n), rng.chisquare(excess + 2, n), rng.normal(size=n)
    second = 1 - b / w + g**2 * a / (w * (x + a))
    with np.errstate(invalid="ignore"):
        loss = (a - b) / 2 - excess / 2 * (np.log1p(a / x) + np.log(second))
    return np.where(second > 0.0, loss, np.inf)


def delta_of(loss: np.ndarray, epsilon: float) -> tuple[float, float]:
    """The delta that is lost at epsilon, and its standard error."""
    lost = np.clip(-np.expm1(epsilon - loss), 0.0, 1.0)
    return float(lost.mean()), float(lost.std() / math.sqrt(lost.size))


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_three_variables_have_the_law_of_the_loss_whatever_the_records(seed: int):
    """And not with one degree of freedom more in one of them."""
    rng, p, excess, n = np.random.default_rng(seed), 4, 6, 100_000
    v, other = (x / np.linalg.norm(x) * rng.uniform(0.6, 1.0) for x in rng.normal(size=(2, p)))
    values = np.linalg.eigvalsh(np.outer(v, v) - np.outer(other, other))
    a, b = values[-1], -values[0]
    assert 0.0 < a <= 1.0
    assert 0.0 < b <= 1.0
    true = np.nan_to_num(losses_by_densities(v, other, excess + p + 1, n, rng), posinf=1e9)
    ours, wrong = (np.nan_to_num(losses(a, b, excess, n, rng, m), posinf=1e9) for m in (0, 1))
    assert stats.ks_2samp(true, ours).pvalue > ALPHA
    assert stats.ks_2samp(true, wrong).pvalue < ALPHA


@pytest.mark.long
@pytest.mark.parametrize(("excess", "releases", "epsilon"), [(8, 1, 1.0), (20, 1, 0.5), (40, 4, 1)])
def test_no_pair_of_records_loses_more_than_is_proved(excess: int, releases: int, epsilon: float):
    """For noise that is told apart from Gaussian noise of its variance, which would lose less."""
    rng, n = np.random.default_rng(1), 200_000
    proved = WishartNoise(3, releases).delta(epsilon, excess + 4)
    found = {}
    for a in (0.0, 0.4, 0.8, 1.0):
        for b in (0.0, 0.4, 0.8, 1.0):
            total = sum(losses(a, b, excess, n, rng) for _ in range(releases))
            found[a, b], error = delta_of(total, epsilon)
            assert found[a, b] - 4 * error < proved
    worst, gaussian = max(found.values()), math.sqrt(releases / excess)
    assert proved < 10 * worst
    assert worst > 2 * stats_delta(epsilon, gaussian)


@pytest.mark.long
@pytest.mark.parametrize("shape", [(6, 4, 1), (3, 15, 1), (3, 15, 3)])
@pytest.mark.parametrize("budget", [(1.0, 0.01), (1.0, 1e-6), (0.1, 1e-3), (5.0, 0.3)])
def test_the_least_freedom_keeps_the_delta_that_was_asked_for(shape, budget):
    """And one degree less does not, but for a few degrees in all, where cutting off decides."""
    noise, (epsilon, delta) = WishartNoise(*shape), budget
    freedom = noise.least_freedom(epsilon, delta)
    assert noise.delta(epsilon, freedom) <= delta
    if freedom > 30:
        assert noise.delta(epsilon, freedom - 1) > delta


def stats_delta(epsilon: float, mu: float) -> float:
    """Of a Gaussian release."""
    above, below = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return float(stats.norm.cdf(above) - math.exp(epsilon) * stats.norm.cdf(below))


@pytest.mark.long
def test_the_least_freedom_keeps_the_budget_and_nearly_right_ones_do_not():
    """m / mu^2, which Gaussian noise of this variance would need, and half of ours."""
    budget, releases, rng, n = ApproxDP(1.0, 0.01), 10, np.random.default_rng(2), 1_000_000
    ours = WishartNoise(3, releases).least_freedom(budget.epsilon, budget.delta) - 4
    for excess, keeps in (
        (ours, True),
        (math.ceil(releases / budget.mu**2), False),
        (ours // 2, False),
    ):
        total = sum(losses(1.0, 1.0, excess, n, rng) for _ in range(releases))
        delta, error = delta_of(total, budget.epsilon)
        assert (delta + 5 * error < budget.delta) if keeps else (delta - 5 * error > budget.delta)
    # And less is proved of one degree of freedom less.
    law = WishartNoise(3, releases)
    assert law.delta(budget.epsilon, ours + 4) <= 1.01 * budget.delta < law.delta(1.0, ours + 2)


@pytest.mark.parametrize("excess", [4, 50, 3000])
@pytest.mark.parametrize("order", [0.5, 4.0, 30.0])
def test_cells_bound_the_integrals_and_hardly_more(excess: int, order: float):
    low, high = stats.chi2.ppf(1e-9, excess + 2), stats.chi2.isf(1e-9, excess + 3)
    low = max(low, 1.001)

    def entered(x: float) -> float:
        loss = 0.5 - excess / 2 * math.log1p(1 / min(x, high))
        return math.exp(order * loss) * stats.chi2.pdf(x, excess + 3)

    def left(w: float) -> float:
        loss = -0.5 - excess / 2 * math.log1p(-1 / w)
        return math.exp(order * loss) * stats.chi2.pdf(w, excess + 2)

    middle, far = excess + 2.0, stats.chi2.isf(1e-14, excess + 3)
    for made, function, first in (
        (_Losses.entered(excess, high), entered, 1e-9),
        (_Losses.left(excess, low), left, low),
    ):
        ends = np.unique([first, min(1.2 * low, middle), middle, high, far])
        true = sum(
            quad(function, *pair, epsabs=0, epsrel=1e-9, limit=500)[0]
            for pair in np.lib.stride_tricks.sliding_window_view(ends[ends >= first], 2)
        )
        bound = made.log_moment(order)
        assert bound >= max(0.0, math.log(true) - 1e-7)
        assert bound <= max(0.0, math.log(true)) + 0.004 * (order + 1)


@pytest.mark.parametrize("b", [0.2, 0.7])
def test_shorter_records_lose_less_although_not_at_first(b: float):
    """E exp(t l2), cut off, falls before it grows; it is convex, so that the ends are enough."""
    excess, order, low = 30, 2.0, 4.0
    at = [
        quad(
            lambda w, b=b: (
                math.exp(order * (-b / 2 - excess / 2 * math.log1p(-b / w)))
                * stats.chi2.pdf(w, excess + 2)
            ),
            low,
            300.0,
        )[0]
        for b in (0.0, b, 1.0)
    ]
    assert math.log(at[1]) <= (1 - b) * math.log(at[0]) + b * math.log(at[2])


@pytest.mark.long
def test_the_published_noise_keeps_far_more_than_was_claimed_but_at_absurd_budgets():
    law = WishartNoise(6, releases=15)
    freedom = law.published_freedom(1.0, 1e-6)
    assert freedom == 6 + math.ceil(224 * 15 * math.log(8 * 15 / 1e-6) * math.log(2 / 1e-6))
    assert law.delta(1.0, freedom) < 1e-280
    assert law.delta(0.02, freedom) < 1e-6  # of the epsilon that was asked for, a fiftieth
    # At epsilon = 1000 one degree of freedom is left: a release gives the record away.
    few = law.published_freedom(1000.0, 1e-6)
    assert few == 7
    assert law.delta(1000.0, few) == 1.0
    v, other = np.eye(6)[:2]
    loss = losses_by_densities(v, other, few, 10_000, np.random.default_rng(3))
    assert np.isinf(loss).mean() > 0.25


def test_several_records_of_a_user_are_a_chain_of_single_ones():
    one, three = WishartNoise(3, 4), WishartNoise(3, 4, records=3)
    chained = one.delta(0.5, 400) * (1 + math.exp(0.5) + math.exp(1.0))
    assert three.delta(1.5, 400) == pytest.approx(chained)
    delta = 1e-3 / (1 + math.exp(0.5) + math.exp(1.0))
    assert three.least_freedom(1.5, 1e-3) == one.least_freedom(0.5, delta)


@pytest.mark.long
def test_extreme_budgets_are_refused_by_name():
    for law in (WishartNoise(3, 1), WishartNoise(3, 1, records=10**6)):
        with pytest.raises(ArgumentError, match=r"^budget must be less extreme"):
            law.least_freedom(1e-9, 1e-9)
    with pytest.raises(ArgumentError, match=r"^budget must be less extreme"):
        WishartNoise(3, 1).published_freedom(1e-9, 0.1)
    assert 2000 < WishartNoise(3, 1).least_freedom(1.0, 1e-299) < 4000


# The sampler -----------------------------------------------------------------------------------


def drawn(d: int, freedom: float, n: int, releases: int = 1, blocks: int = 1) -> np.ndarray:
    """The noise of the last of so many releases, shape (n, blocks, d + d (d + 1) / 2)."""
    size = d + d * (d + 1) // 2
    tree = WishartTree(releases, freedom=freedom, scale=2.0, dimension=d)
    rng, found = np.random.default_rng(5), np.empty((n, blocks * size))
    mechanism, nothing = mechanism_from_python(tree.kind), np.zeros(blocks * size)
    for release in found:
        running = tree.start(blocks * size)
        for _ in range(releases):
            mechanism(running, CERTIFIED, 1.0, nothing, release, rng)
    return found.reshape(n, blocks, size)


def rebuilt(noise: np.ndarray, d: int) -> np.ndarray:
    """The matrices without their last entry, which is 0 here, shape (n, d + 1, d + 1)."""
    whole = np.zeros((len(noise), d + 1, d + 1))
    for made, row in zip(whole, noise, strict=True):
        made[:d, :d] = smat(row[d:])
        made[d, :d] = made[:d, d] = row[:d]
    return whole


@pytest.mark.long
@pytest.mark.parametrize(("d", "releases"), [(1, 1), (2, 1), (4, 1), (2, 3)])
def test_noise_has_the_law_of_wishart_matrices(d: int, releases: int):
    """Eigenvalues, and a cubic form that sees how entries depend on each other; not one degree of
    freedom more.  Release 3 holds two nodes.
    """
    n, freedom, nodes = 20_000, 7, releases.bit_count()
    ours = rebuilt(drawn(d, float(freedom), n, releases)[:, 0], d)
    for more in (0, 1):
        total = nodes * (freedom + more)
        law = stats.wishart(total, 2.0 * np.eye(d + 1))
        theirs = law.rvs(n, random_state=6) - 2.0 * total * np.eye(d + 1)
        theirs[:, d, d] = 0.0
        cubes = [np.trace(m @ m @ m, axis1=1, axis2=2) for m in (ours, theirs)]
        values = [np.linalg.eigvalsh(m)[:, -1] for m in (ours, theirs)]
        pvalue = min(stats.ks_2samp(*pair).pvalue for pair in (cubes, values))
        assert (pvalue > ALPHA) == (more == 0)
    assert ours[:, range(d), range(d)].mean(axis=0) == pytest.approx(np.zeros(d), abs=0.5)


def test_every_block_has_noise_of_its_own():
    noise = drawn(2, 9.0, 4000, blocks=3)
    flat = noise.reshape(4000, -1)
    correlation = np.corrcoef(flat.T) - np.eye(15)
    assert np.abs(correlation).max() < 5 / math.sqrt(4000)
    assert flat.std(axis=0)[[0, 2, 4]] == pytest.approx([6.0, 8.49, 8.49], rel=0.06)


@pytest.mark.parametrize(
    ("shape", "name"), [((1, 5), "dimension"), ((3, 0), "releases"), ((3, 5, -1), "records")]
)
def test_bad_numbers_are_named(shape, name):
    with pytest.raises(ArgumentError, match=f"^{name} must be an integer"):
        WishartNoise(*shape)
    with pytest.raises(ArgumentError, match=r"^epsilon must be"):
        WishartNoise(3, 5).delta(0.0, 50)
