"""Reports: what a person's device sends, and what a policy makes of it."""

import pickle
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dpbandits import ZCDP, ArgumentError, PureDP
from dpbandits.algorithms import LocalEXP4
from dpbandits.papers.others import LDPUCB
from dpbandits.privacy import Hemisphere, Laplace
from dpbandits.privacy.randomiser import Randomiser


def test_reports_have_the_laplace_law_around_the_clipped_reward():
    """Noise 10 % too small would fail: 20,000 draws put the KS statistic of a wrong scale at .02,
    the critical value at 1e-4 is .0155.
    """
    randomise = Randomiser(Laplace(2.0), (0.0, 1.0), noise="simulation", seed=3)
    reports = np.array([randomise(7.0) for _ in range(20_000)])
    assert stats.kstest(reports, stats.laplace(1.0, 2.0).cdf).pvalue > 1e-4
    assert stats.kstest(reports, stats.laplace(1.0, 1.8).cdf).pvalue < 1e-4


@pytest.mark.parametrize("noise", ["simulation", "secure"])
def test_it_travels_to_the_device(noise):
    policy = LDPUCB(2, budget=PureDP(1.0), reports=True, noise=noise)
    randomise = pickle.loads(pickle.dumps(policy.randomiser()))
    for _ in range(20):
        policy.pull()
        assert policy.update(randomise(1.0))
    assert policy.ledger.spent() == PureDP(1.0)
    assert policy.ledger.releases == 20


def test_the_policy_takes_a_report_as_it_is():
    policy = LDPUCB(1, budget=ZCDP(0.5), reports=True, seed=1)
    policy.pull()
    policy.update(-17.5)  # outside the range of rewards, as reports may be
    assert policy.session.state.public.mean[0] == -17.5


def test_only_the_one_that_takes_reports_needs_no_trust():
    for cls in (LDPUCB, partial(LocalEXP4, n_experts=2, horizon=100)):
        trusting, local = (
            cls(2, budget=PureDP(1.0), reports=reports).guarantee for reports in (False, True)
        )
        assert (trusting.trust_model, local.trust_model) == ("central", "local")
        assert "is trusted with them" in str(trusting)
        assert "With reports=True" in str(trusting)
        assert "trusts their own device alone" in str(local)
        assert "With reports=True" not in str(local)


def test_a_report_that_no_randomiser_makes_is_refused():
    policy = LDPUCB(1, budget=PureDP(0.5), reports=True, seed=1)
    policy.pull()
    with pytest.raises(ArgumentError, match=r"reward must be a number in \[-2000, 2001\]"):
        policy.update(1e308)
    assert policy.update(-1999.0)


@pytest.mark.parametrize("reward", ["1", b"1", [1.0, 2.0], {}, object(), float("nan")])
def test_what_is_no_number_is_randomised_as_no_reward(reward):
    assert reports(reward) == reports(None)
    assert reports(True) == reports(1.0)


def test_bad_input():
    with pytest.raises(ArgumentError, match="budget must not be None"):
        LDPUCB(2, budget=None).randomiser()


def reports(reward, **options) -> list[float]:
    randomise = Randomiser(Laplace(1.0), (-1.0, 1.0), noise="simulation", seed=5, **options)
    return [randomise(reward) for _ in range(8)]


@pytest.mark.parametrize("nothing", [None, float("nan"), np.float32("nan")])
def test_a_device_without_a_reward_sends_a_randomised_default(nothing):
    assert reports(nothing) == reports(-1.0) != reports(0.25)
    assert reports(nothing, default_reward=0.25) == reports(0.25)
    assert len(set(reports(nothing))) == 8  # each with noise of its own
    assert Randomiser(Laplace(1.0), (-1.0, 1.0), noise="simulation")() != -1.0
    with pytest.raises(ArgumentError, match=r"^default_reward must be a number in \[-1, 1\]"):
        reports(0.0, default_reward=1.5)


def test_a_reward_beyond_all_numbers_is_clipped():
    assert reports(float("inf")) == reports(10**400) == reports(1.0)
    assert reports(float("-inf")) == reports(-1.0)


@pytest.mark.parametrize("noise", ["simulation", "secure"])
def test_reports_are_taken_as_they_are_after_saving_too(noise, tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    policy = LDPUCB(1, budget=PureDP(1.0), reports=True, noise=noise)
    policy.save(tmp_path / "policy")  # from here on releases are journalled
    for report in (-17.5, 20.5):
        policy.pull()
        assert policy.update(report)
    assert policy.session.state.public.mean[0] == 1.5
    assert (policy.ledger.releases, policy.ledger.spent()) == (2, PureDP(1.0))


@pytest.mark.parametrize("budget", [PureDP(0.7), ZCDP(0.2)], ids=["Laplace", "Gaussian"])
def test_the_law_of_secure_reports(budget):
    """60,000 draws: a scale that is 5 % off is noticed, by a chi-squared test at 1e-4, in all but 4
    of 10^9 runs.
    """

    def surprise(drawn, claimed):
        randomise = LDPUCB(2, budget=claimed, reports=True, noise="secure", grid=0.5).randomiser()
        reports, chances = randomise.law([0.3], reach=6)
        # What is cut is counted at the ends; 0.3 is rounded to the grid.
        counts = np.bincount(np.searchsorted(reports, np.clip(drawn, *reports[[0, -1]])))
        return stats.chisquare(counts, chances[0] * len(drawn)).pvalue

    made = LDPUCB(2, budget=budget, reports=True, noise="secure", grid=0.5).randomiser()
    drawn = [made(0.3) for _ in range(60_000)]
    assert surprise(drawn, budget) > 1e-8
    off = PureDP(0.735) if isinstance(budget, PureDP) else ZCDP(0.22)
    assert surprise(drawn, off) < 1e-4


def test_the_law_of_reports_is_as_private_as_they_are():
    randomise = Randomiser(Laplace(0.5), (0.0, 1.0), grid=0.25)
    reports, chances = randomise.law([0.0, 0.25, 1.0], reach=3)
    assert reports.tolist() == [0.25 * i for i in range(-3, 8)]
    assert chances.sum(axis=1) == pytest.approx(1.0, abs=1e-14)
    losses = np.log(chances[2] / chances[0])
    assert 2.0 - 1e-5 < losses.max() <= 2.0  # epsilon, to the last report
    assert 2.0 - 1e-5 < -losses.min() <= 2.0
    assert np.log(chances[1] / chances[0]).max() == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize(
    ("randomise", "words"),
    [
        (Randomiser(Laplace(1.0), (0.0, 1.0), noise="simulation"), "noise must be 'secure'"),
        (Randomiser(Laplace(1.0), (0.0, 1.0)), "grid must be coarser"),
        (Randomiser(Hemisphere(1.0), (0.0, 1.0), grid=1.0), "channel must be Gaussian or Laplace"),
    ],
)
def test_reports_that_cannot_be_listed(randomise, words):
    with pytest.raises(ArgumentError, match=words):
        randomise.law([0.0], reach=2)


def test_reports_that_no_float_tells_from_none():
    randomise = LDPUCB(2, budget=PureDP(40.0), reports=True, noise="secure", grid=1.0).randomiser()
    assert randomise.law([0.0, 1.0], reach=5)[1].min() > 0.0
    with pytest.raises(ArgumentError, match="reach must be smaller"):
        randomise.law([0.0, 1.0], reach=20)
