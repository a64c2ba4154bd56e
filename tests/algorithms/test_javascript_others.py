"""Devices in JavaScript of generalised linear models, and of arms that the server chooses."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest
from py_mini_racer import JSEvalException, MiniRacer
from scipy import stats
from sides import tireless

import dpbandits as dpb
from dpbandits.algorithms.hidden.choosing_devices import Device
from dpbandits.policies import Chooser
from dpbandits.privacy import exact

HELPERS = """
let device;
const given = (hex) => { let at = 0; return (n) => hex.slice(2 * at, 2 * (at += n))
    .match(/../g)?.map((byte) => parseInt(byte, 16)) ?? []; };
const make = (kind, config, hex) => { device = new dpbandits[kind](config, given(hex)); return true; };
const use = (chooser) => { device.use(chooser); return true; };
const choose = (contexts) => device.choose(contexts);
const report = (...reward) => device.report(...reward);
const reports = (n, x, reward) =>
    Array.from({ length: n }, () => { device.choose(x); return device.report(reward); });
"""
BUDGETS = [dpb.PureDP(1.0), dpb.PureDP(0.07), dpb.ZCDP(0.5), dpb.ApproxDP(8.0, 1e-6)]
REWARDS = [0.3, -5.0, 7.5, 1 / 3, math.inf, -math.inf, math.nan, None]


@pytest.fixture(scope="module")
def js() -> MiniRacer:
    engine = MiniRacer()
    engine.eval(Device.javascript())
    engine.eval(HELPERS + "true")
    return engine


def server(n_arms=4, dimension=3, **options) -> dpb.HiddenGLMLocal:
    """One that has learned from noise."""
    options = {"budget": dpb.PureDP(1.0), "noise": "secure"} | options
    made = dpb.HiddenGLMLocal(n_arms, dimension, reports=True, **options)
    for _ in range(5):
        made.receive(made.device().report())
    return made


def pair(js: MiniRacer, made: dpb.HiddenGLMLocal, seed: int = 1) -> Device:
    """A device in Python; one in JavaScript is given the same bytes."""
    device, stream = tireless(made.device()), np.random.default_rng(seed).bytes(2**16)
    device._randomise._noise._take = io.BytesIO(stream).read
    js.call("make", "Device", device.to_json(), stream.hex())
    return device


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"link": "identity", "dimension": 1},
        {"reward_range": (-2.0, 0.5), "default_reward": -1.0, "link": "identity"},
        {"gradient_bound": 0.2, "context_bound": 3.0, "parameter_bound": 2.0},
        {"dimension": 9, "n_arms": 2},
    ],
)
def test_both_choose_and_report_alike(js, budget, options):
    made, rng = server(budget=budget, **options), np.random.default_rng(4)
    device = pair(js, made)
    for reward in REWARDS * 3:
        shown = rng.normal(size=(made.n_arms, made.dimension)) * made.context_bound
        shown[rng.random(shown.shape) < 0.1] = rng.choice([0.0, math.nan, 1e99])
        assert js.call("choose", shown.tolist()) == device.choose(shown)
        assert js.call("report", reward) == device.report(reward).tolist()
    assert js.call("report") == device.report().tolist()  # of nobody
    assert device._randomise._noise._take(1) != b""


def test_the_point_is_that_of_the_server_within_its_bound(js):
    """The server is not trusted with it: a long one moves gradients no farther."""
    made = server(budget=dpb.ApproxDP(8.0, 1e-6), parameter_bound=0.5)
    device = pair(js, made)
    shown, rng = np.eye(4, 3), np.random.default_rng(3)
    for point in ([0.1, -0.2, 0.3], [30.0, -40.0, 1.0], [0.0, 1e99, 1e150]):
        told = json.loads(made.chooser().to_json())
        told["public"]["public.estimate"] = point
        device.use(Chooser.from_json(json.dumps(told)))
        js.call("use", json.dumps(told))
        for reward in rng.random(5):
            assert js.call("choose", shown.tolist()) == device.choose(shown)
            assert js.call("report", reward) == device.report(reward).tolist()
    with pytest.raises(JSEvalException, match="dimension"):
        js.call("use", {**told, "public": {**told["public"], "public.estimate": [0.0]}})


def test_both_draw_the_same_direction_where_products_are_zero(js):
    """A vector that is orthogonal to what is drawn, or nearly: exact arithmetic decides."""
    stream = np.random.default_rng(2).bytes(2**14)
    js.eval("const turned = (vectors, hex) => { const take = given(hex); return vectors.map((v) =>"
            " dpbandits.hemisphere(v, 3n, 2n, take).map(String)); }; true")  # fmt: skip
    vectors = [[0.0, 0.0], [5e-324, 0.0], [-1e-310, 1e-310], [1.0, 0.0], [0.6, -0.8], [1e-200, 0.1]]
    take, ratio = io.BytesIO(stream).read, exact.Fraction(3, 2)
    ours = [[str(u) for u in exact.hemisphere(v, ratio, take)] for v in vectors * 20]
    assert js.call("turned", vectors * 20, stream.hex()) == ours


def test_reports_have_the_law_that_the_guarantee_needs(js):
    """The share of reports on the side of the gradient; a budget larger by half would be noticed."""
    made, n = server(2, 2, budget=dpb.PureDP(1.0), parameter_bound=1e-9), 3000
    told = tireless(made.device()).to_json()
    js.call("make", "Device", told, np.random.default_rng(5).bytes(2**19).hex())
    found = np.array(js.call("reports", n, [[1.0, 0.0], [1.0, 0.0]], 1.0))
    assert np.allclose(np.linalg.norm(found, axis=1), made.channel.radius(2), rtol=1e-12)
    length = 0.5 / made.gradient_bound  # of the gradient of a reward of 1, at the point 0
    with_it = int(np.sum(found[:, 0] < 0.0))

    def p_value(epsilon):
        share = 0.5 + 0.5 * math.tanh(0.5 * epsilon) * length
        return stats.binomtest(with_it, n, share).pvalue

    assert p_value(1.0) > 1e-4 > p_value(1.5)
    assert p_value(0.5) < 1e-4


def test_what_javascript_does_not_have_stays_in_python():
    with pytest.raises(dpb.ArgumentError, match="'identity' or 'logistic'"):
        server(link="probit").device().to_json()
    made = dpb.HiddenGLMLocal(2, 2, budget=dpb.PureDP(1.0), reports=True, seed=1)
    with pytest.raises(dpb.ArgumentError, match=r"^noise must be 'secure'"):
        made.device().to_json()


# Arms that the server chooses ------------------------------------------------------------------


def config(made, reports=1):
    return json.dumps({"name": "shop", "reports": reports, **made._round()[1]})


@pytest.mark.parametrize(
    "options",
    [
        {"budget": dpb.PureDP(1.0)},
        {"budget": dpb.PureDP(0.01), "reward_range": (-3.0, 0.5), "default_reward": -1.0},
        {"budget": dpb.PureDP(1.0), "reward_range": (0.0, 1e9)},
        {"budget": dpb.PureDP(2.0), "grid": 2.0**-2, "reward_range": (0.1, 0.9)},
        {"budget": dpb.ZCDP(0.5)},
    ],
)
def test_both_randomise_rewards_alike(js, options):
    made = dpb.bandit(3, trust="local", reports=True, noise="secure", **options)
    randomise, stream = made.randomiser(), np.random.default_rng(3).bytes(2**16)
    randomise._noise._take = io.BytesIO(stream).read
    js.call("make", "RewardDevice", config(made, reports=10**6), stream.hex())
    rewards = [*REWARDS, *np.random.default_rng(1).normal(size=200).tolist()]
    assert [js.call("report", reward) for reward in rewards] == [randomise(r) for r in rewards]
    assert js.call("report") == randomise()


def test_a_person_has_so_many_true_reports(js):
    made = dpb.bandit(3, budget=dpb.PureDP(1e4), trust="local", reports=True, noise="secure")
    js.call("make", "RewardDevice", config(made, reports=2), bytes(range(256)).hex() * 64)
    assert [round(js.call("report", 1.0)) for _ in range(4)] == [1, 1, 0, 0]
    assert js.eval("device.left") == 0
    told = json.loads(config(made))
    told["randomiser"]["noise"] = "Cauchy"
    with pytest.raises(JSEvalException, match="no noise of Cauchy"):
        js.call("make", "RewardDevice", json.dumps(told), "")
