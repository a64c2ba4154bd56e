"""Intervals of policies: what they read, what they say, and what they refuse."""

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits import ZCDP, ArgumentError, Policy, PureDP
from dpbandits.algorithms import (
    Arms,
    ArmsLocal,
    ArmsShuffled,
    BestArm,
    BestArmShuffled,
    Linear,
    MergedIMED,
    MergedThompson,
    SequentialHalving,
)
from dpbandits.cli import app
from dpbandits.inference import Batches, Cells, Noise, ReleasedSums
from dpbandits.papers.others import DPSE, DPTS, AdaPTT, LazyDPTS
from dpbandits.parts import Discount, Fixed
from dpbandits.policies.registry import registered
from dpbandits.policies.sums import no_intervals
from dpbandits.privacy.channels import Channel, Gaussian, Laplace
from dpbandits.privacy.grids import drawn_scale
from dpbandits.privacy.secure import DeviceNoise
from dpbandits.testing.coverage import play

MEANS = (0.3, 0.5, 0.6)


def served(policy: Policy, rounds: int, seed: int = 0) -> Policy:
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = policy.pull()
        policy.update(float(rng.random() < MEANS[decision.arm]), decision)
    return policy


@pytest.mark.parametrize(
    "policy",
    [
        MergedIMED(3, budget=None, seed=1),
        MergedIMED(3, budget=PureDP(1.0), seed=1),
        MergedIMED(3, budget=ZCDP(0.5), variance="released", seed=1),
        MergedThompson(3, budget=ZCDP(0.5), seed=1),
        BestArm(3, failure_probability=0.1, budget=PureDP(1.0), seed=1),
        SequentialHalving(3, horizon=500, budget=PureDP(1.0), seed=1),
        BestArmShuffled(3, failure_probability=0.1, budget=PureDP(1.0), seed=1),
        DPSE(3, horizon=10_000, budget=PureDP(1.0), seed=1),
        LazyDPTS(3, budget=PureDP(1.0), seed=1),
        AdaPTT(3, failure_probability=0.1, budget=PureDP(1.0), seed=1),
        ArmsLocal(3, budget=PureDP(4.0), seed=1),
        ArmsShuffled(3, budget=PureDP(1.0), seed=1),
    ],
    ids=lambda policy: f"{policy.preset}-{policy.budget}",
)
def test_hold_the_means(policy: Policy) -> None:
    found = served(policy, 600).intervals()
    assert ((found.low <= MEANS) & (np.array(MEANS) <= found.high)).all()
    assert not policy.ledger.releases or (found.high - found.low).min() < 0.7
    estimates = policy.estimates
    np.testing.assert_array_equal(estimates.low, found.low)
    assert list(estimates.frame)[:4] == ["mean", "error", "low", "high"] or estimates.errors is None
    difference = policy.intervals(0.9, (2, 0))
    assert difference.low[0] <= 0.3 <= difference.high[0]


def test_rows_say_what_was_known_when_a_batch_began() -> None:
    """With answers that come late, batches are in flight, and less is known."""
    policy = MergedIMED(2, budget=PureDP(1.0), seed=1, answers_within=40)
    rng = np.random.default_rng(1)
    for _ in range(300):
        policy.update(float(rng.random() < 0.5), policy.pull())
    table = policy.released_sums
    assert table["rounds"].tolist() == [int(n) for _, n in (one.memo for one in policy.releases())]
    behind = table.index.to_numpy() - table["known"].to_numpy()
    assert behind.max() > 0
    assert (behind >= 0).all()
    assert (
        served(MergedIMED(3, budget=PureDP(1.0), seed=1), 300)
        .released_sums["known"]
        .is_monotonic_increasing
    )


def test_tilts_do_not_see_later_releases() -> None:
    """A row's own sum, and those after what was known, do not change its tilts."""
    table = served(MergedIMED(3, budget=PureDP(1.0), seed=1), 300).released_sums

    def variances(changed: np.ndarray) -> np.ndarray:
        arm, rounds, _, known = table.to_numpy(float).T
        return Batches(arm, rounds, changed, known).single(2, Noise(1.0, True)).variance

    sums, own = table["sum"].to_numpy(float), np.flatnonzero(table["arm"] == 2)
    for place, row in enumerate(own):
        later = np.where(np.arange(len(sums)) >= row, 1e3, sums)
        np.testing.assert_array_equal(variances(sums)[: place + 1], variances(later)[: place + 1])


def test_are_the_same_from_a_place_and_from_a_table(tmp_path: Path) -> None:
    policy = MergedIMED(3, budget=ZCDP(0.5), arm_names=["a", "b", "c"], seed=1)
    path = policy.save(tmp_path / "trial.dpb")
    with policy.batch():
        served(policy, 300)
    told = policy.intervals().to_dict()
    assert dpb.intervals(path).to_dict() == told
    assert dpb.intervals(policy).to_dict() == told
    table = dpb.intervals(policy.released_sums, noise="Gaussian", scale=policy.noise_scale)
    np.testing.assert_allclose(table.low, policy.intervals().low, atol=1e-6)
    pair = ("c", "a")
    assert dpb.intervals(path, 0.9, pair).to_dict() == policy.intervals(0.9, pair).to_dict()
    policy.close()
    loaded = dpb.load(path)
    assert loaded.intervals().to_dict() == told
    assert json.loads(json.dumps(told))["intervals"][0]["of"] == "a"
    loaded.close()


def test_a_batch_that_a_retired_arm_fills_with_defaults_does_not_count() -> None:
    policy = MergedIMED(3, budget=None, seed=1, first=20)
    served(policy, 30)
    arm = policy.pull().arm
    policy.retire(arm)
    served(policy, 60)
    estimates, found = policy.estimates, policy.intervals()
    assert estimates.rounds is not None
    assert estimates.rounds[arm] == 20
    assert (found.rounds[arm], found.low[arm], found.high[arm]) == (0, 0.0, 1.0)


def test_a_batch_whose_answers_were_lost_does_not_count(tmp_path: Path) -> None:
    policy = MergedIMED(2, budget=None, seed=1, first=20)
    path = policy.save(tmp_path / "trial.dpb")
    with policy.batch():
        served(policy, 30)
    policy.close()
    restored = dpb.restore(path)
    with restored.batch():
        for _ in range(60):
            decision = restored.pull()
            restored.update(float(decision.arm), decision)
    assert restored.estimates.rounds is not None
    assert restored.estimates.rounds[1] >= 20
    assert restored.intervals().rounds[1] == restored.estimates.rounds[1]
    later = restored.released_sums[1:]  # none mixes two arms, or has a lost answer
    assert (later["sum"] == later["rounds"] * later["arm"]).all()
    restored.close()


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (DPTS(3, horizon=100, budget=PureDP(1.0)), "running sums is correlated"),
        (Linear(3, 2, horizon=100, budget=ZCDP(1.0)), "no interval is proved"),
        (Arms(3, budget=PureDP(1.0), memory=Discount(1000)), "expects that means change"),
        (MergedIMED(3, budget=None, clip=False), "with clip=False"),
        (dpb.Adversarial(3, budget=None, horizon=100), "this policy's kind of release"),
    ],
)
def test_refuse_what_is_not_proved(policy: Policy, why: str) -> None:
    with pytest.raises(ArgumentError, match=why):
        policy.intervals()
    assert policy.estimates.low is None
    assert "low" not in policy.estimates.frame


def test_releases_of_an_earlier_version_are_not_enough(tmp_path: Path) -> None:
    policy = MergedIMED(2, budget=PureDP(1.0), seed=1)
    policy.session.exchange.older = True  # as after a load of format 5
    path = policy.save(tmp_path / "trial.dpb")
    policy.close()
    with pytest.raises(ArgumentError, match="an earlier version has made releases"):
        dpb.intervals(path)
    with pytest.raises(ArgumentError, match="an earlier version has made releases"):
        dpb.load(path).intervals()


def test_every_policy_has_intervals_or_says_why_not() -> None:
    for cls in registered().values():
        policy = cls(**cls.example, budget=None)
        why = no_intervals(policy)
        assert (policy.estimates.low is None) == bool(why), cls
        if not why:
            np.testing.assert_array_equal(policy.intervals().low, policy.reward_range[0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"confidence": 1.0}, "confidence"),
        ({"difference": (0, 3)}, "difference"),
        ({"difference": (1, 1)}, "two different arms"),
        ({"difference": "01"}, "pair of arms"),
        ({"method": "exact"}, "method"),
        ({"method": "closed"}, "Laplace noise"),
    ],
)
def test_arguments_are_checked(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        MergedIMED(3, budget=PureDP(1.0)).intervals(**given)


def test_a_table_is_checked() -> None:
    good = {"arm": [0, 1], "rounds": [5, 5], "sum": [1.0, 2.0]}
    for name, column in [("arm", [0, 0.5]), ("rounds", [0, 5]), ("known", [0, 2])]:
        with pytest.raises(ArgumentError):
            dpb.intervals({**good, name: column})
    with pytest.raises(ArgumentError, match="must have a column 'sum'"):
        dpb.intervals({"arm": [0], "rounds": [1]})
    shifted = pd.DataFrame(good).assign(sum=[10.0 * 5 + 4.0, 10.0 * 5 + 8.0])
    scaled = dpb.intervals(shifted, reward_range=(10.0, 14.0))
    np.testing.assert_allclose(scaled.low, 10.0 + 4.0 * dpb.intervals(good).low)


def test_a_table_may_have_more_arms_than_rows_and_a_grid() -> None:
    table = {"arm": [0, 1], "rounds": [500, 500], "sum": [250.0, 390.0]}
    plain, many = dpb.intervals(table), dpb.intervals(table, n_arms=10)
    assert (many.low[:2] < plain.low).all()  # which ten arms share the error
    assert many.low[2:].tolist() == [0.0] * 8
    assert np.isnan(many.means[2:]).all()
    rounded = dpb.intervals(table, grid=0.25)
    np.testing.assert_allclose(rounded.low, plain.low - 0.125)
    with pytest.raises(ArgumentError, match="n_arms must be an integer"):
        dpb.intervals(table, n_arms=1)
    assert "exactly the given law" in str(plain)


def test_a_grid_that_a_table_forgets_makes_intervals_miss() -> None:
    """Rewards of .3 are all rounded to .25: only with the grid is .3 within."""
    policy = MergedIMED(2, budget=ZCDP(1.0), noise="secure", grid=0.25)
    for _ in range(3000):
        policy.update(0.3, policy.pull())
    noise = {"noise": "Gaussian", "scale": policy.noise_scale}
    forgot = dpb.intervals(policy.released_sums, **noise)
    told = dpb.intervals(policy.released_sums, **noise, n_arms=2, grid=0.25)
    assert (forgot.high < 0.3).any()
    assert ((told.low <= 0.3) & (told.high >= 0.3)).all()


def test_means_are_those_of_the_own_sums_beside_other_workers() -> None:
    one, other = (served(MergedIMED(2, budget=PureDP(1.0), seed=i), 400) for i in (1, 2))
    before = one.intervals()
    for release in other.releases():
        one.learn_from(release)
    after = one.intervals()
    assert after.to_dict()["intervals"] == before.to_dict()["intervals"]
    assert not np.allclose(one.estimates.means, after.means)
    assert "other workers" in str(after)


def test_the_command_takes_names_that_are_digits(tmp_path: Path) -> None:
    policy = served(MergedIMED(2, budget=PureDP(1.0), arm_names=["1", "0"], seed=1), 400)
    path = policy.save(tmp_path / "doses.dpb")
    ran = CliRunner().invoke(app, ["intervals", str(path), "--difference", "1", "0", "--json"])
    expected = policy.intervals(difference=("1", "0")).to_dict()
    assert json.loads(ran.output) == expected


def test_the_closed_form_is_that_of_its_definition() -> None:
    n, s, a, r = np.array([4.0, 50.0]), 2.0, 0.05, 500.0
    cells = Cells(n, np.full(2, 0.25), np.array([3.0, 1.0]), np.array([7.0, 20.0]))
    h = 1.0 / (0.25 / n + s * s / n**2)
    whole, mean = h @ cells.batches, h / n @ cells.total / (h @ cells.batches)
    e2 = 1.0 / whole
    reach = math.sqrt(e2 * (1 + r * e2) * math.log((1 + 1 / (r * e2)) / a**2))
    sums = ReleasedSums((cells,), Noise(s, False), 0.0, 1.0)
    low, high = sums.ends(0.95, "closed")
    assert (low[0], high[0]) == pytest.approx((max(mean - reach, 0.0), min(mean + reach, 1.0)))
    two = ReleasedSums((cells, cells), Noise(s, False), 0.0, 1.0).difference(0, 1, 0.95, "closed")
    wide = math.sqrt(2 * (math.log(1 / a) + math.log(1 + 1 / (r * e2))) * 2 * e2 * (1 + r * e2))
    assert two == pytest.approx((max(-wide, -1.0), min(wide, 1.0)))


def test_means_weigh_sums_by_their_precision() -> None:
    """A short batch, most of which is noise, moves the mean little."""
    n, y, s = np.array([1.0, 100.0]), np.array([9.0, 60.0]), 4.0
    precision = 1.0 / (0.25 / n + s**2 / n**2)
    table = {"arm": [0, 0], "rounds": [1, 100], "sum": y.tolist()}
    found = dpb.intervals(table, noise="Gaussian", scale=s)
    assert found.means[0] == pytest.approx(precision @ (y / n) / precision.sum())
    assert found.means[0] < 0.61 < y.sum() / n.sum()
    assert dpb.intervals(table).means[0] == pytest.approx(y.sum() / n.sum())


def test_where_there_is_no_number_it_says_none_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"arm": [0, 0], "rounds": [400, 400], "sum": [0.0, 400.0]}
    found = dpb.intervals({**table, "arm": [0, 2]}, n_arms=3)
    assert found.table()[1][1] == ["1", "none", "0", "1", "0"]
    assert "1: no mean, because nothing of it was released." in found.breaks
    contradicted = np.array([math.nan])
    monkeypatch.setattr(ReleasedSums, "ends", lambda *_: (contradicted, contradicted))
    against = dpb.intervals(table)
    assert "0: none" in repr(against)
    assert "0: no interval, because releases contradict that means stay the same." in str(against)
    assert json.loads(json.dumps(against.to_dict()))["intervals"][0]["low"] is None
    assert "–" not in f"{found} {found._repr_html_()}"


def test_estimates_say_none_too() -> None:
    assert MergedIMED(2, budget=None).estimates.table()[1][0][1:3] == ["none", "0 to 1"]


# Noise ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", [Laplace(0.7), Gaussian(0.7), Laplace(30.0), Gaussian(30.0)])
def test_moments_of_discrete_noise_are_bounded(channel: Channel) -> None:
    """The law that devices draw, on a grid as coarse as half of the scale."""
    grid, reach = 2.0 ** round(math.log2(channel.multiplier) - 1), 4000
    law = DeviceNoise(grid, (0.0, 100.0)).law(channel, channel.multiplier, reach)
    scale = drawn_scale(channel.family, channel.multiplier, grid) + 2.0**-19 * grid
    noise = Noise(scale, isinstance(channel, Laplace))
    tilts = noise.tilts(np.array([1.0, 1e4]), np.array([0.15, 0.25]))
    steps = np.arange(-reach, reach + 1) * grid
    for tilt, bound in zip(tilts.ravel(), noise.cost(tilts, np.ones(2)).ravel(), strict=True):
        terms = np.log(np.maximum(law, 1e-300)) - tilt * steps
        inside = law > 1e-250
        assert np.logaddexp.reduce(terms[inside]) <= bound + 1e-9


@pytest.mark.parametrize("noise", [Noise(2.0, False), Noise(2.0, True)])
def test_moments_of_simulated_noise_are_bounded(noise: Noise) -> None:
    rng = np.random.default_rng(1)
    draw = rng.laplace if noise.is_laplace else rng.normal
    drawn = draw(0.0, noise.scale, 10**6)
    tilts = noise.tilts(np.array([200.0]), np.array([0.25]))
    below = tilts[noise.scale * tilts < 0.4]
    for tilt in below[::6]:
        mean = math.log(np.exp(-tilt * drawn).mean())
        assert mean == pytest.approx(noise.cost(tilt, np.ones(1))[0], abs=0.01)


def test_a_shuffler_without_dropouts_has_more_noise() -> None:
    policy = ArmsShuffled(2, budget=PureDP(1.0), messages=True, dropout=0.25, seed=1)
    scale, dropout = policy._noise_of_sums
    assert scale >= policy.noise_scale
    protocol = policy.protocol
    rng = np.random.default_rng(1)
    noise = Noise(scale, True, dropout)
    drawn = protocol.step * protocol._noise_of_sums((10**6,), rng)
    n = np.array([float(protocol.batch)])
    assert drawn.var() == pytest.approx(noise.variance(n)[0], rel=0.02)


def test_intervals_of_shuffled_messages_hold_the_mean() -> None:
    server = ArmsShuffled(2, budget=PureDP(1.0), messages=True, batches=Fixed(200), seed=1)
    rng = np.random.default_rng(1)
    for _ in range(6):
        device, shuffler = server.device(), server.shuffler()
        rewards = (rng.random(server.protocol.batch) < MEANS[device.arm]).astype(float)
        server.receive(shuffler.shuffle([device.report_many(rewards)]))
    found = server.intervals()
    assert ((found.low <= MEANS[:2]) & (np.array(MEANS[:2]) <= found.high)).all()
    assert found.high.max() < 1.0


def test_rounding_widens_by_half_a_step() -> None:
    plain = ReleasedSums((Cells(*np.ones((4, 1))),), Noise(0.0, False))
    rounded = ReleasedSums(plain.cells, plain.noise, rounding=0.125)
    assert rounded.ends(0.95)[0][0] == pytest.approx(max(plain.ends(0.95)[0][0] - 0.125, 0.0))
    two = (
        ReleasedSums(one.cells * 2, one.noise, 0.0, 1.0, one.rounding) for one in (plain, rounded)
    )
    near, wide = (one.difference(0, 1, 0.2) for one in two)
    assert wide[1] == pytest.approx(min(near[1] + 0.25, 1.0))


# Widths -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.9])
def test_privacy_widens_little(mean: float) -> None:
    """At 1-zCDP at most by 15 %, once an arm has 1,000 people, in the same batches."""
    policy = play(MergedIMED(1, budget=ZCDP(1.0), seed=1), (mean,), 1000, 1)
    table = policy.released_sums
    rng, plain = np.random.default_rng(1), table.copy()
    plain["sum"] = [float(rng.binomial(n, mean)) for n in table["rounds"]]
    ends = [dpb.intervals(plain), policy.intervals()]
    free, private = (float(one.high[0] - one.low[0]) for one in ends)
    assert private <= 1.15 * free


# What is shown ----------------------------------------------------------------------------------


def test_say_what_breaks_them() -> None:
    plain = MergedIMED(2, budget=PureDP(1.0), default_reward=0.5, seed=1)
    shown = str(plain.intervals())
    assert "stays the same" in shown
    assert "A missing answer counts as 0.5" in shown
    assert "cancelled" in shown
    assert "order of arrival" in str(ArmsLocal(2, budget=PureDP(1.0)).intervals())
    assert "order of arrival" not in str(ArmsLocal(2, budget=None, answers_within=5).intervals())
    assert "side by side" in str(MergedThompson(2, budget=None).intervals())
    assert "same user" in str(MergedIMED(2, budget=PureDP(1.0), max_rounds=2).intervals())
    assert "Where means change over time" in plain.intervals()._repr_html_()


def test_errors_are_not_shown_as_intervals() -> None:
    policy = served(MergedIMED(3, budget=PureDP(1.0), seed=1), 300)
    heads, rows = policy.estimates.table()
    assert heads == ["arm", "mean", "95 % interval", "rounds", ""]
    assert " to " in rows[0][2]
    assert "±" not in repr(policy.estimates)


def test_estimates_are_the_same_in_another_process() -> None:
    estimates = served(MergedIMED(3, budget=PureDP(1.0), seed=1), 300).estimates
    again = pickle.loads(pickle.dumps(estimates))
    assert (again.low.tolist(), again.high.tolist()) == (
        estimates.low.tolist(),
        estimates.high.tolist(),
    )
