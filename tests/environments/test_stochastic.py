"""The stationary environments: sums against single rounds and closed forms, means, and what is
refused.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from dpbandits import ArgumentError
from dpbandits.environments import Bernoulli, Beta, BoundedGaussian, Gaussian
from dpbandits.kernel import bind, entry, unbound

ALPHA = 1e-4

ENVIRONMENTS = [
    Bernoulli([0.8, 0.3]),
    Gaussian([0.4, -1.0], std=2.0),
    BoundedGaussian([0.9, 0.1, 1.3], std=0.25),
    Beta([0.7, 0.2], concentration=3.0),
]


draw = unbound


@entry
def _fill(state, arm, n, rng, sums):
    for i in range(sums.size):
        sums[i] = draw(state, arm, 0, n, rng)


def sums(environment, arm, n, repeats, seed):
    """Independent sums of n rounds, each from one call of the kernel."""
    filled = np.empty(repeats)
    bind(_fill, draw=environment.kernels.draw)(
        environment.state, arm, n, np.random.default_rng(seed), filled
    )
    return filled


def rounds(environment, arm, count, seed):
    """Independent rewards, one call of the kernel per round."""
    return sums(environment, arm, 1, count, seed)


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=repr)
def test_sums_have_the_law_of_single_rounds(environment):
    """3,000 against 3,000: a standard deviation that is off by 15 %, or a round too many (a tenth
    more), is rejected.
    """
    n, repeats = 10, 3000
    whole = sums(environment, 0, n, repeats, seed=1)
    single = rounds(environment, 0, n * repeats, seed=2).reshape(repeats, n).sum(axis=1)
    assert np.mean(whole) == pytest.approx(
        np.mean(single), abs=4 * np.sqrt(2 / repeats) * np.std(single)
    )
    if isinstance(environment, Bernoulli):
        table = np.array(
            [np.bincount(sample.astype(int), minlength=n + 1) for sample in (whole, single)]
        )
        assert stats.chi2_contingency(table[:, table.sum(axis=0) > 10]).pvalue > ALPHA
    else:
        assert stats.ks_2samp(whole, single).pvalue > ALPHA


@pytest.mark.parametrize("environment", [ENVIRONMENTS[2], ENVIRONMENTS[3]], ids=repr)
def test_sums_without_closed_form_are_those_of_the_same_rounds(environment):
    assert sums(environment, 1, 50, 1, seed=5)[0] == pytest.approx(
        rounds(environment, 1, 50, seed=5).sum(), rel=1e-12
    )


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (7, 0.8), (60, 0.5), (10**7, 0.75), (10**7, 1e-6)])
def test_bernoulli_sums_are_binomial(n, p):
    """Both branches of the sampler: inversion for small n p, rejection for large; 20,000 draws in
    up to 20 equally likely cells.
    """
    law = stats.binom(n, p)
    sample = sums(Bernoulli([p]), 0, n, 20_000, seed=3)
    edges = np.unique(law.ppf(np.linspace(0.05, 0.95, 19)))
    cells = np.searchsorted(edges, sample)  # cell i holds edges[i - 1] < x <= edges[i]
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * sample.size
    kept = expected > 0
    observed = np.bincount(cells, minlength=edges.size + 1)
    assert not observed[~kept].any()
    assert stats.chisquare(observed[kept], expected[kept]).pvalue > ALPHA


def test_certain_bernoulli_arms_have_no_noise():
    assert sums(Bernoulli([0.0, 1.0]), 0, 1000, 5, seed=1).tolist() == [0.0] * 5
    assert sums(Bernoulli([0.0, 1.0]), 1, 1000, 5, seed=1).tolist() == [1000.0] * 5
    assert rounds(Bernoulli([0.0, 1.0]), 1, 100, seed=1).min() == 1.0


@pytest.mark.parametrize("n", [1, 10**6])
def test_gaussian_sums_are_normal(n):
    """5,000 draws: a standard deviation of n std instead of sqrt(n) std, or one off by 10 %, is
    rejected.
    """
    sample = sums(Gaussian([0.4], std=2.0), 0, n, 5000, seed=4)
    assert stats.kstest(sample, stats.norm(0.4 * n, 2.0 * np.sqrt(n)).cdf).pvalue > ALPHA


def test_beta_rewards_are_beta():
    sample = rounds(Beta([0.7], concentration=3.0), 0, 5000, seed=6)
    assert stats.kstest(sample, stats.beta(2.1, 0.9).cdf).pvalue > ALPHA


def test_clipped_rewards_pile_up_at_the_bounds():
    sample = rounds(BoundedGaussian([0.9], std=0.25), 0, 5000, seed=7)
    law = stats.norm(0.9, 0.25)
    assert stats.binomtest(int((sample == 1.0).sum()), sample.size, law.sf(1.0)).pvalue > ALPHA
    inside = sample[(sample > 0.0) & (sample < 1.0)]
    between = stats.truncnorm(-0.9 / 0.25, 0.1 / 0.25, loc=0.9, scale=0.25)
    assert stats.kstest(inside, between.cdf).pvalue > ALPHA


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=repr)
def test_means_are_those_of_the_rewards(environment):
    """40,000 rewards per arm: a mean that is off by 0.02 standard deviations is rejected about half
    the time, by 0.04 always.
    """
    for arm, mean in enumerate(environment.means()):
        sample = rounds(environment, arm, 40_000, seed=8 + arm)
        error = (sample.mean() - mean) / (sample.std() / np.sqrt(sample.size))
        assert abs(error) < stats.norm.isf(ALPHA / 2)


@pytest.mark.parametrize("centre", [-0.4, 0.0, 0.3, 0.97, 1.8])
@pytest.mark.parametrize("std", [0.02, 0.3, 2.0])
def test_clipped_means_equal_the_integral(centre, std):
    law = stats.norm(centre, std)
    inside, _ = integrate.quad(
        lambda x: x * law.pdf(x), 0.0, 1.0, points=[min(max(centre, 0.0), 1.0)], epsabs=1e-12
    )
    assert BoundedGaussian([centre], std=std).means()[0] == pytest.approx(
        inside + law.sf(1.0), abs=1e-9
    )


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=repr)
def test_rewards_lie_in_the_support(environment):
    lo, hi = environment.support
    for arm in range(environment.n_arms):
        sample = rounds(environment, arm, 2000, seed=12)
        assert lo <= sample.min()
        assert sample.max() <= hi


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=repr)
def test_regret_is_the_gap_of_every_round(environment):
    means = environment.means()
    for arm in range(environment.n_arms):
        regret = environment.kernels.regret(environment.state, arm, 3, 7)
        assert regret == pytest.approx(7 * (means.max() - means[arm]), abs=1e-12)


def test_state_is_not_shared_with_the_caller():
    means = np.array([0.2, 0.4])
    environment = Bernoulli(means)
    means[0] = 1.0
    assert environment.means().tolist() == [0.2, 0.4]
    with pytest.raises(ValueError):
        environment.means()[0] = 1.0


@pytest.mark.parametrize("kind", [Bernoulli, Gaussian, BoundedGaussian, Beta])
@pytest.mark.parametrize(
    "bad",
    [[], [[0.5]], 0.5, [0.5, np.nan], [np.inf], ["half"], None, [[0.1], [0.2, 0.3]]],
    ids=repr,
)
def test_bad_means_are_refused(kind, bad):
    with pytest.raises(ArgumentError, match=r"means|centres"):
        kind(bad)


@pytest.mark.parametrize(
    ("kind", "bad"), [(Bernoulli, 1.001), (Bernoulli, -0.1), (Beta, 0.0), (Beta, 1.0)]
)
def test_means_out_of_range_are_refused(kind, bad):
    with pytest.raises(ArgumentError, match="means must hold numbers in"):
        kind([0.5, bad])


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, "1", None, True], ids=repr)
@pytest.mark.parametrize(
    ("kind", "name"), [(Gaussian, "std"), (BoundedGaussian, "std"), (Beta, "concentration")]
)
def test_bad_spreads_are_refused(kind, name, bad):
    with pytest.raises(ArgumentError, match=f"{name} must be a number in"):
        kind([0.5], **{name: bad})
