"""The local protocol: who sees what, the law of reports, and what is refused."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats
from worlds import logistic

from dpbandits import ApproxDP, ArgumentError, DPBanditsError
from dpbandits.glm import LocalGLM, Report
from dpbandits.glm.scores import joint_sensitivity

BUDGET = ApproxDP(1.0, 1e-6)


def played(model: LocalGLM, features, outcomes):
    """The protocol through devices, person by person."""
    curator = model.curator(*features.shape)
    for person, (x, y) in enumerate(zip(features, outcomes, strict=True)):
        curator.receive(curator.channel().device(person).report(x, y))
    return curator


def test_reports_have_the_noise_of_the_budget_and_not_a_tenth_less():
    channel = LocalGLM(budget=BUDGET, seed=3).curator(2000, 2).channel()
    x, y = np.array([0.6, -0.3]), 1.0
    exact = channel.record(x[np.newaxis], np.array([y]))
    scale = joint_sensitivity(1.0, 0.5) / BUDGET.mu
    noise = np.array([channel.device(person).report(x, y).values - exact for person in range(500)])
    squares = float(np.sum((noise / scale) ** 2))
    assert 1e-4 < stats.chi2.sf(squares, noise.size) < 1 - 1e-4
    assert stats.chi2.sf(squares / 0.9**2, noise.size) < 1e-4
    assert np.abs(np.corrcoef(noise.T) - np.eye(5)).max() < 5 / math.sqrt(500)


def test_without_noise_devices_and_fit_are_the_same_estimate():
    features, outcomes, _ = logistic(400, 2, 1.0)
    model = LocalGLM(budget=None, parameter_bound=3.0).fit(features, outcomes)
    assert played(model, features, outcomes).estimate == pytest.approx(model.coef_, abs=1e-9)


def test_devices_and_sums_of_their_reports_have_one_law():
    """And not that of a quarter less noise: all that the curator keeps is a sum."""
    features, outcomes, _ = logistic(5, 1, 1.0)
    released = {True: [], False: []}
    for seed in range(150):
        model = LocalGLM("identity", budget=BUDGET, seed=seed)
        curators = {True: played(model, features, outcomes)}
        curators[False] = model.fit(features, outcomes)._curator
        for single, curator in curators.items():
            (release,) = curator._releases
            exact = curator._score.add_up(features, outcomes, np.zeros(1))
            released[single] += [(release.gradient - exact)[0] / release.std]
    for single in (True, False):
        squares, freedom = float(np.sum(np.square(released[single]))), 150
        assert 1e-4 < stats.chi2.sf(squares, freedom) < 1 - 1e-4
        assert stats.chi2.sf(squares / 0.75**2, freedom) < 1e-4


def test_estimates_come_near_the_truth():
    features, outcomes, theta = logistic(200_000, 2, 1.0)
    model = LocalGLM(budget=ApproxDP(3.0, 1e-6), parameter_bound=2.0, seed=1)
    assert np.linalg.norm(model.fit(features, outcomes).coef_ - theta) < 0.3


def test_a_channel_follows_from_reports_alone():
    """Two worlds with the same reports and other people behind them."""
    model = LocalGLM(budget=BUDGET, batches=3, seed=1)
    reports, curators = [], [model.curator(9, 2) for _ in range(2)]
    for person in range(9):
        report = curators[0].channel().device(person).report([0.1, 0.2], 1.0)
        reports.append(report)
        curators[0].receive(report)
    for report in reports:
        assert curators[1].channel().batch == report.batch
        curators[1].receive(report)
    assert np.array_equal(curators[0].estimate, curators[1].estimate)
    assert curators[1].is_over


def test_devices_report_once_and_always_have_something_to_send():
    channel = LocalGLM(budget=BUDGET, seed=1).curator(10, 2).channel()
    odd = [({"a": 1}, 1.0), ("x", 1.0), (0.5, 1.0), ([0.1, [0.2, 0.3]], 0.5), ([0.1, 0.2], [1, 0])]
    for data in (
        *((), ([0.5, 0.5],), ([math.nan, "x"], math.inf), (["a", None], math.nan)),
        *odd,
    ):
        device = pickle.loads(pickle.dumps(channel)).device()
        report = device.report(*data)
        assert report.values.shape == (5,)
        assert np.all(np.isfinite(report.values))
        with pytest.raises(DPBanditsError, match="reports only once"):
            device.report()
    with pytest.raises(ArgumentError, match=r"^x must have shape"):
        channel.device().report([1.0], 1.0)
    # A nested cell counts as 0, and what is no vector as nobody's.
    one, other = (channel.device().report(x, 0.5) for x in ([0.1, [0.2, 0.3]], [0.1, 0.0]))
    assert np.array_equal(one.values, other.values)
    one, other = (channel.device().report(*data) for data in (({"a": 1}, 1.0), ()))
    assert np.array_equal(one.values, other.values)


def test_what_is_no_report_of_the_open_batch_is_refused():
    curator = LocalGLM(budget=BUDGET, batches=2, seed=1).curator(2, 2)
    good = curator.channel().device().report([0.1, 0.2], 1.0)
    for wrong in (
        None,
        Report(1, good.values),
        Report(0, good.values[1:]),
        Report(0, np.full(5, np.nan)),
    ):
        with pytest.raises(ArgumentError, match=r"^report must"):
            curator.receive(wrong)
    with pytest.raises(DPBanditsError, match="reports are missing"):
        curator.confidence_intervals()
    curator.receive(good)
    with pytest.raises(ArgumentError, match=r"^report must"):
        curator.receive(good)
    curator.receive(curator.channel().device(1).report())
    with pytest.raises(DPBanditsError, match="all batches have ended"):
        curator.channel()
    with pytest.raises(ArgumentError, match=r"^people must be at least 2"):
        LocalGLM(budget=BUDGET, batches=2).curator(1, 2)
    with pytest.raises(DPBanditsError, match="call fit first"):
        LocalGLM(budget=BUDGET).confidence_intervals()


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_everybody_is_in_one_batch_and_spends_the_budget_once(link: str):
    features, outcomes, _ = logistic(101, 2, 1.0)
    model = LocalGLM(link, budget=BUDGET, seed=1).fit(features, outcomes)
    frame = model.ledger.frame
    assert len(frame) == (1 if link == "identity" else 2)
    assert frame["first"].iloc[0] == 0
    assert frame["last"].iloc[-1] == 100
    assert model.ledger.spent() == model.guarantee.holds == BUDGET
    assert "trusts their own device alone" in str(model.guarantee)
    alone = LocalGLM(link, budget=BUDGET, seed=1).fit(features[:1], outcomes[:1])
    assert alone.ledger.spent() == BUDGET


def test_secure_reports_are_on_the_grid():
    model = LocalGLM(budget=BUDGET, noise="secure", grid=2.0**-8)
    features, outcomes, _ = logistic(12, 2, 1.0)
    report = model.curator(12, 2).channel().device().report(features[0], outcomes[0])
    assert np.all(report.values * 2**8 % 1.0 == 0.0)
    model.fit(features, outcomes)
    assert not model.guarantee.simulated
    assert model.ledger.spent() == BUDGET
