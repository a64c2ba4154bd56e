"""The device in JavaScript, in V8, against the one in Python: the same arms, the same reports."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from py_mini_racer import JSEvalException, MiniRacer
from scipy import stats
from sides import tireless

import dpbandits as dpb
from dpbandits.algorithms.hidden.choosing_devices import Device, ShuffledDevice
from dpbandits.algorithms.hidden.drawing import draw
from dpbandits.parts import Divergence, Optimism, Sampling
from dpbandits.policies import Chooser
from dpbandits.privacy import exact
from dpbandits.shuffle import BitSum, GaussianReports, Messages, ModularSum, Randomizer

ALPHA = 1e-4
PLAIN = 100  # contexts without ties
HELPERS = """
let device;
const given = (hex) => { let at = 0; return (n) => hex.slice(2 * at, 2 * (at += n))
    .match(/../g)?.map((byte) => parseInt(byte, 16)) ?? []; };
const make = (config, hex) => { device = new dpbandits.Device(config, given(hex)); return true; };
const use = (chooser) => { device.use(chooser); return true; };
const choose = (contexts) => device.choose(contexts);
const report = (...reward) => device.report(...reward);
const play = (tables) => tables.map((contexts) => [device.choose(contexts), device._chosen.features]);
const reports = (n, contexts, reward) =>
    Array.from({ length: n }, () => { device.choose(contexts); return device.report(reward); });
const encoded = (protocol, vectors, hex) => { const take = given(hex);
    return vectors.map((vector) => dpbandits.encode(protocol, vector, take)); };
const normals = (n, hex) => { const take = given(hex);
    return Array.from({ length: n }, () => dpbandits.standardNormal(take)); };
const draws = (name, [a, b], n, hex) => { const take = given(hex); return Array.from({ length: n },
    () => String(dpbandits[name](BigInt(a), BigInt(b), take))); };
"""
CRYPTO = """let state = 1;
globalThis.crypto = { getRandomValues: (bytes) => {
    if (bytes.length > 65536) throw new Error("QuotaExceededError");
    bytes.forEach((_, i) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        bytes[i] = state >>> 24;
    });
    return bytes; } };"""


@pytest.fixture(scope="module")
def js() -> MiniRacer:
    engine = MiniRacer()
    engine.eval(Device.javascript())
    engine.eval(HELPERS + "true")
    return engine


def server(n_arms=4, dimension=3, reports=30, **options) -> dpb.HiddenLinearLocal:
    """One that has learned from noise, so that its public numbers are as odd as any."""
    options = {"budget": dpb.ZCDP(0.5), "horizon": 1000, "noise": "secure"} | options
    options = {"explore": Optimism()} | options
    made = dpb.HiddenLinearLocal(n_arms, dimension, reports=True, **options)
    rng = np.random.default_rng(7)
    for _ in range(reports):
        made.receive(rng.normal(scale=made.noise_scale, size=made.statistic.size))
    return made


def pair(js: MiniRacer, made: dpb.HiddenLinearLocal, size: int = 2**16) -> Device:
    """A device in Python; one in JavaScript is given the same bytes."""
    device, stream = tireless(made.device()), np.random.default_rng(1).bytes(size)
    device.chooser.take = device._randomise._noise._take = io.BytesIO(stream).read
    js.call("make", device.to_json(), stream.hex())
    return device


def use(js: MiniRacer, device: Device, chooser: Chooser) -> None:
    """In both; with the same bytes as before."""
    chooser.take = device.chooser.take
    device.use(chooser)
    js.call("use", chooser.to_json())


# Arms --------------------------------------------------------------------------------------------


EXPLORATIONS = [Optimism(), Sampling(), Divergence()]


def tables(k: int, d: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Contexts of all lengths, ``PLAIN`` of them, and such whose best arms differ in the last bits,
    or not at all.
    """
    found = [rng.normal(size=(k, d)) * 10.0 ** rng.integers(-8, 3) for _ in range(PLAIN)]
    for _ in range(300):
        near = np.tile(rng.normal(size=d) / 3, (k, 1))
        found.append(near * (1 + 2.0**-52 * rng.integers(-2, 3, (k, d))))  # nearly the same
        found.append(near * rng.choice([-1.0, 1.0], (k, 1)))
        found.append(np.array([rng.permutation(row) for row in near]))
    odd = [0.0, -0.0, 5e-324, -1e-310, 1e-200, 9.9e99, 1e100, -1e308, math.nan, math.inf, -math.inf]
    found += [rng.choice([*odd, 0.5, -0.25], (k, d)) for _ in range(200)]
    return [*found, np.zeros((k, d)), np.full((k, d), math.nan), np.ones((k, d))]


@pytest.mark.parametrize("explore", EXPLORATIONS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    ("k", "d", "bound", "models"),
    [(2, 1, 1.0, "shared"), (5, 3, 0.7, "shared"), (3, 9, 30.0, "shared"), (3, 2, 1.0, "disjoint")],
)
def test_both_choose_the_same_arm_and_see_the_same_features(js, explore, k, d, bound, models):
    """IMED takes a logarithm, whose last bit differs for one number in twenty.  That decides only
    between indices that are equal up to a few last bits, as those of one table in 500 here.
    """
    options = {"explore": explore, "context_bound": bound, "models": models}
    made, shown = server(k, d, reports=40, **options), tables(k, d, np.random.default_rng(d))
    device, fresh = pair(js, made, 2**21), server(k, d, reports=0, **options).chooser()
    for chooser in (fresh, made.chooser()):
        use(js, device, chooser)
        theirs = js.call("play", [table.tolist() for table in shown])
        ours = [[device.choose(table), device._features[0].tolist()] for table in shown]
        differ = [i for i, both in enumerate(zip(ours, theirs, strict=True)) if both[0] != both[1]]
        assert len(differ) <= (len(shown) // 500 if explore == Divergence() else 0)
        assert min(differ, default=PLAIN) >= PLAIN
        assert {arm for arm, _ in ours} == set(range(k))


@pytest.mark.parametrize("explore", EXPLORATIONS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("retired", [[0], [4], [0, 1, 3], [1, 2, 3, 4]])
def test_both_choose_no_retired_arm(js, explore, retired):
    made, rng = server(5, 2, explore=explore), np.random.default_rng(5)
    device = pair(js, made, 2**19)
    for arm in retired:
        made.retire(arm)
    use(js, device, made.chooser())
    shown = rng.normal(size=(300, 5, 2)) / 3
    shown[:100] = shown[:100, :1]  # where all indices are equal
    theirs = js.call("play", shown.tolist())
    assert theirs == [[device.choose(table), device._features[0].tolist()] for table in shown]
    assert {arm for arm, _ in theirs} == set(range(5)) - set(retired)


def test_arms_with_models_of_their_own_may_see_the_same_features(js):
    device, rng = pair(js, server(4, 3, models="disjoint")), np.random.default_rng(2)
    for _ in range(50):
        x = rng.normal(size=3)
        arm = device.choose(x)
        assert [js.call("choose", shown) for shown in (x.tolist(), [x.tolist()])] == [arm, arm]
    assert device.choose([None, 0.3, 0.4]) == js.call("choose", [None, 0.3, 0.4])
    js.call("make", server(4, 3).device().to_json(), "")
    with pytest.raises(JSEvalException, match="contexts must have shape"):
        js.call("choose", x.tolist())


@contextlib.contextmanager
def backwards(js: MiniRacer) -> Iterator[None]:
    """Sums of floats are added up from the right."""
    js.eval("""Array.prototype.straight = Array.prototype.reduce; Array.prototype.reduce =
        function (f, start) { return start === undefined ? this.straight(f) : typeof start ===
        "bigint" ? this.straight(f, start) : this.reduceRight(f, start); }; true""")
    try:
        yield
    finally:
        js.eval("Array.prototype.reduce = Array.prototype.straight; true")


def test_one_part_in_two_to_the_52_would_be_noticed(js):
    """Another order of additions, as a compiler may take that does not keep to it."""
    made = server(2, 9)
    device, shown = pair(js, made), tables(2, 9, np.random.default_rng(9))
    with backwards(js):
        theirs = js.call("play", [table.tolist() for table in shown])
    differ = [device.choose(x) != arm for x, (arm, _) in zip(shown, theirs, strict=True)]
    assert 0 < sum(differ) < len(shown) / 2


# Noise -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [
        ("discreteGaussian", a, b)
        for a, b in [
            (1, 1),
            (1, 2**20),
            (9, 4),
            (24, 1),
            (25, 1),
            (10**6 + 1, 7),
            (2**82 + 5, 3**9),
        ]
    ]
    + [("discreteLaplace", a, b) for a, b in [(1, 1), (7, 3), (256, 1), (257, 1), (2**61 + 1, 99)]],
)
def test_both_make_the_same_integers_of_the_same_bytes(js, name, a, b):
    stream = np.random.default_rng(a % 1000).bytes(2**15)
    take = io.BytesIO(stream).read
    draw = exact.discrete_gaussian if name == "discreteGaussian" else exact.discrete_laplace
    ours = [draw(a, b, take) for _ in range(150)]
    assert [int(y) for y in js.call("draws", name, [str(a), str(b)], 150, stream.hex())] == ours


def test_both_make_the_same_normal_variates_of_the_same_bytes(js):
    stream = np.random.default_rng(8).bytes(2**17)
    take = io.BytesIO(stream).read
    ours = [exact.standard_normal(take) for _ in range(1000)]
    assert js.call("normals", 1000, stream.hex()) == ours


def is_normal(found: np.ndarray) -> bool:
    """Whether these may be independent standard normal variates; of 6,000 not if they are 5 % too
    wide or too narrow.
    """
    n = found.size
    spread = math.sqrt(n / 2) * (np.mean(found**2) - 1)
    told = [stats.kstest(found, "norm").pvalue, 2 * stats.norm.sf(abs(spread))]
    told.append(2 * stats.norm.sf(abs(found.mean()) * math.sqrt(n)))
    return min(told) > ALPHA / 3


def test_normal_variates_have_their_law(js):
    found = np.array(js.call("normals", 10_000, np.random.default_rng(9).bytes(2**20).hex()))
    assert [is_normal(found * scale) for scale in (0.95, 1.0, 1.05)] == [False, True, False]
    assert not is_normal(found + 0.06)
    assert not is_normal(np.rint(found * 2) / 2)


@pytest.mark.parametrize("models", ["shared", "disjoint"])
def test_thetas_have_the_law_of_the_posterior(models):
    """Of devices, which draw from bytes, and of ``pull``, which draws from a generator."""
    made, rng = server(2, 3, explore=Sampling(0.7), models=models), np.random.default_rng(6)
    public, params, m = made.session.state.public, made.params, made.n_models - 1
    scatter, spread = 0.7 * params.subgaussian, 0.7 * public.facts[4, m]
    inverse, estimate = public.inverse[m].copy(), public.estimate[3 * m : 3 * m + 3].copy()
    half = np.linalg.cholesky(scatter**2 * inverse + spread**2 * inverse @ inverse)

    def whitened(prepare: Any) -> np.ndarray:
        thetas = []
        for _ in range(2000):
            prepare()
            thetas.append(public.sample[m].copy())
        return np.linalg.solve(half, np.transpose(thetas) - estimate[:, None])

    kernels = made.kernels
    for prepare in (
        lambda: draw(kernels, params, public, rng.bytes),
        lambda: kernels.prepare(params, public, 0, rng),
    ):
        found = whitened(prepare)
        assert is_normal(found.ravel())
        assert not is_normal(1.05 * found.ravel())
        # Coordinates are independent.
        crossed = np.sqrt(2000) * np.corrcoef(found)[np.triu_indices(3, 1)]
        assert (3 * 2 * stats.norm.sf(np.abs(crossed)) > ALPHA).all()


def test_roots_are_whole_numbers_below(js):
    rng = np.random.default_rng(3)
    for n in [
        0,
        1,
        2,
        3,
        4,
        8,
        9,
        2**52 - 1,
        2**104,
        2**104 - 1,
        *map(int, rng.integers(0, 2**62, 50)),
    ]:
        assert int(js.eval(f"String(dpbandits.rootOf({n}n))")) == math.isqrt(n)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dimension": 1, "reward_range": (-2.0, 0.5), "default_reward": -1.0},
        {"context_bound": 3.0, "grid": 2.0**-3, "budget": dpb.ZCDP(20.0)},
        {"grid": 1.0, "budget": dpb.ZCDP(1e3), "context_bound": 8.0},
        {"grid": 2.0**-30, "budget": dpb.ApproxDP(1.0, 1e-6)},
        {"calibration": "paper", "budget": dpb.ApproxDP(1.0, 1e-6)},
        {"models": "disjoint", "dimension": 2},
        {"reward_range": (0.0, 5000.0)},
        {"reward_range": (1e6, 1e6 + 1.0)},
        {"reward_range": (0.0, 1e9), "budget": dpb.ApproxDP(1.0, 1e-3)},
        {"reward_range": (0.0, 1e-9), "context_bound": 1e-4},
    ],
)
def test_both_send_the_same_report_of_the_same_bytes(js, options):
    made, rng = server(**options), np.random.default_rng(4)
    device = pair(js, made)
    for reward in [0.3, -5.0, 7.5, 0.5, 1 / 3, math.inf, -math.inf, math.nan]:
        contexts = rng.normal(size=(4, made.dimension)) * made.context_bound
        assert js.call("choose", contexts.tolist()) == device.choose(contexts)
        assert js.call("report", reward) == device.report(reward).tolist()
    assert js.call("report") == device.report().tolist()  # of nobody
    assert device._randomise._noise._take(1) != b""


def test_a_source_that_ends_is_noticed(js):
    js.call("make", server().device().to_json(), "0003")
    with pytest.raises(JSEvalException, match="gave 2 of 3"):
        js.call("report", 1.0)
    js.eval(f"device = new dpbandits.Device({json.dumps(server().device().to_json())}); true")
    with pytest.raises(JSEvalException):  # V8 alone has no source
        js.call("report", 1.0)


def test_reports_have_the_law_that_the_guarantee_needs(js):
    """The record, and noise of at least the joint sensitivity over sqrt(2 rho); 5 % less, or a
    record that moved, would be noticed.
    """
    made, x, n = server(2, 2, reports=0), [[0.6, 0.8], [0.0, 0.0]], 1500
    js.call("make", tireless(made.device()).to_json(), np.random.default_rng(5).bytes(2**19).hex())
    found = np.array(js.call("reports", n, x, 0.5))
    record = [0.3, 0.4, 0.36, 0.64, math.sqrt(2) * 0.48]
    noise = (found - record) / made.noise_scale
    assert made.noise_scale >= math.sqrt(4.5)
    assert np.all(found * 2.0**20 % 1 == 0)
    assert stats.kstest(noise.ravel(), "norm").pvalue > ALPHA
    assert np.abs(noise.mean(axis=0)).max() < 4.5 / math.sqrt(n)
    z = math.sqrt(noise.size / 2) * (np.mean(noise**2) / np.array([0.95, 1.0, 1.05]) ** 2 - 1)
    assert (2 * stats.norm.sf(np.abs(z)) > ALPHA).tolist() == [False, True, False]


@pytest.mark.parametrize("explore", EXPLORATIONS, ids=lambda one: type(one).__name__)
def test_a_server_learns_from_devices_in_javascript(js, explore):
    options = {"budget": dpb.ZCDP(5000.0), "horizon": 300, "batch": 10, "explore": explore}
    made = server(2, 2, reports=0, **options)
    device = tireless(made.device())
    js.call("make", device.to_json(), np.random.default_rng(6).bytes(2**18).hex())
    rng, total = np.random.default_rng(7), 0.0
    for t in range(300):
        if t % 10 == 0:
            js.call("use", made.chooser().to_json())
        contexts = rng.normal(size=(2, 2)) / 2
        arm = js.call("choose", contexts.tolist())
        reward = float(np.clip(contexts[arm, 0] + 0.5, 0, 1))
        total += reward - 0.5
        assert made.receive(js.call("report", reward))
    assert made.ledger.spent() == dpb.ZCDP(5000.0)
    first, second = made.estimates.coefficients
    assert first > 1.0 > 0.5 > abs(second)
    assert total / 300 > 0.15


# Messages for a shuffler -------------------------------------------------------------------------

EACH = ["modular", "bits", "reports"]


def shuffled(n_arms=2, dimension=2, **options) -> dpb.HiddenLinearShuffled:
    options = {"budget": dpb.ApproxDP(8.0, 1e-3), "horizon": 1000, "batch": 20} | options
    options = {"noise": "secure", "explore": Optimism()} | options
    return dpb.HiddenLinearShuffled(n_arms, dimension, messages=True, **options)


def shuffled_pair(js: MiniRacer, made: dpb.HiddenLinearShuffled) -> ShuffledDevice:
    device, stream = tireless(made.device()), np.random.default_rng(1).bytes(2**18)
    device.chooser.take = device._randomizer._source._take = io.BytesIO(stream).read
    js.call("make", device.to_json(), stream.hex())
    return device


def received(js: MiniRacer, *reward: float | None) -> Messages:
    return Messages.from_json(json.dumps(js.call("report", *reward)))


@pytest.mark.parametrize("d", [1, 2, 9, 40])
@pytest.mark.parametrize("kind", [ModularSum, BitSum, GaussianReports])
@pytest.mark.parametrize(
    "options",
    [
        {"bound": 1.0, "levels": 1, "noise": 1},
        {"bound": 0.3, "levels": 50, "noise": 13, "largest": 0.11},
        {"bound": 1e6, "levels": 7, "noise": 64},
    ],
)
@pytest.mark.long
def test_both_make_the_same_messages_of_the_same_bytes(js, kind, d, options):
    protocol, rng = kind(batch=5, dimension=d, **options), np.random.default_rng(d)
    vectors = rng.normal(size=(60, d)) * protocol.bound * 10.0 ** rng.integers(-9, 4, (60, 1))
    vectors[:20] *= rng.random((20, d)) < 0.5
    odd = [0.0, -0.0, 5e-324, 1e154, 1.7e308, -1e300, math.nan, math.inf, -math.inf, 0.5]
    vectors = np.concatenate([vectors, rng.choice(odd, (20, d)), np.zeros((1, d))])
    stream, randomizer = rng.bytes(2**20), Randomizer(protocol)
    randomizer._source._take = io.BytesIO(stream).read
    ours = [randomizer.encode(vector).values[0].tolist() for vector in vectors]
    assert js.call("encoded", randomizer.to_dict(), vectors.tolist(), stream.hex()) == ours
    with pytest.raises(JSEvalException, match=f"vector must have length {d}"):
        js.call("encoded", protocol.to_dict(), [[0.0] * (d + 1)], stream.hex())


@pytest.mark.parametrize("d", [1, 9, 40])
def test_both_round_up_from_the_same_word_on(js, d):
    """Which word that is depends on the last bits of a length; another order of additions would be
    noticed.
    """
    protocol = ModularSum(batch=5, dimension=d, bound=1.0, levels=2**20, noise=1)
    x = np.random.default_rng(d).normal(size=(200, d)) * 10.0
    down, up = np.zeros(x.shape, np.int64), np.full(x.shape, 2**32)
    for _ in range(32):
        middle = (down + up) // 2
        rises = protocol.rounded(x, middle) > protocol.rounded(x, down)
        down, up = np.where(rises, down, middle), np.where(rises, middle, up)

    def differ(words: np.ndarray) -> int:
        stream = b"".join(row.astype("<u4").tobytes() + bytes(d) for row in words)  # and no heads
        theirs = js.call("encoded", protocol.to_dict(), x.tolist(), stream.hex())
        return np.sum(np.array(theirs) - protocol.levels != protocol.rounded(x, words))

    up = np.minimum(up, 2**32 - 1)
    assert differ(down) == differ(up) == 0
    with backwards(js):
        assert (differ(down) + differ(up) > 0) == (d > 1)


@pytest.mark.parametrize(
    ("protocol", "options"),
    [(protocol, {}) for protocol in EACH]
    + [(protocol, {"models": "disjoint", "dimension": 3}) for protocol in EACH]
    + [
        ("modular", {"dimension": 1, "reward_range": (-2.0, 0.5), "default_reward": -1.0}),
        ("bits", {"context_bound": 3.0, "grid": 2.0**-3}),
        ("reports", {"calibration": "paper"}),
        ("modular", {"explore": Sampling()}),
        ("modular", {"explore": Divergence(), "models": "disjoint"}),
    ],
)
def test_both_tell_the_shuffler_the_same(js, protocol, options):
    made = shuffled(4, protocol=protocol, **options)
    rng = np.random.default_rng(4)
    device = shuffled_pair(js, made)
    for release, reward in enumerate([0.3, -5.0, 7.5, 1 / 3, math.inf, -math.inf, math.nan, None]):
        contexts = rng.normal(size=(4, made.dimension)) * made.context_bound
        contexts[rng.random(contexts.shape) < 0.1] = rng.choice([math.nan, math.inf, 1e99, 0.0])
        assert js.call("choose", contexts.tolist()) == device.choose(contexts)
        newer = {**json.loads(device.chooser.to_json()), "release": release + 1}
        use(js, device, Chooser.from_json(json.dumps(newer)))
        for told in ((reward,), ()):  # of her, by the chooser she used; of nobody, by the newer one
            ours, theirs = device.report(*told), received(js, *told)
            assert theirs.values.tolist() == ours.values.tolist()
            assert theirs.version == ours.version == release + (told == ())


@pytest.mark.parametrize("explore", EXPLORATIONS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("models", ["shared", "disjoint"])
def test_both_choose_alike_by_what_left_the_shuffler(js, models, explore):
    options = {"models": models, "batch": 1, "horizon": 30, "explore": explore}
    made, rng = shuffled(4, 3, **options), np.random.default_rng(3)
    for _ in range(30):
        shuffler = made.shuffler()
        shuffler._source._take = rng.bytes  # so that each arm is somebody's
        made.receive(shuffler.close())
    device, shown = shuffled_pair(js, made), tables(4, 3, rng)[:PLAIN]
    ours = [[device.choose(table), device._features[0].tolist()] for table in shown]
    assert js.call("play", [table.tolist() for table in shown]) == ours
    assert {arm for arm, _ in ours} == {0, 1, 2, 3}


@pytest.mark.parametrize("protocol", EACH)
def test_a_server_learns_from_javascript_through_a_shuffler(js, protocol):
    made = shuffled(protocol=protocol, budget=dpb.ApproxDP(30.0, 1e-2), horizon=300, batch=30)
    rng, shuffler, total = np.random.default_rng(7), made.shuffler(), 0.0
    js.call("make", tireless(made.device()).to_json(), rng.bytes(2**20).hex())
    for batch in range(10):
        js.call("use", made.chooser().to_json())
        for person in range(30):
            contexts = rng.normal(size=(2, 2)) / 2
            arm = js.call("choose", contexts.tolist())
            reward = float(np.clip(contexts[arm, 0] + 0.5, 0, 1))
            total += reward - 0.5
            shuffler.submit(received(js, reward), person)
        assert made.receive(shuffler.close(next_version=batch + 1))
    assert made.ledger.releases == 10
    assert made.estimates.coefficients[0] > 0.3 > abs(made.estimates.coefficients[1])
    assert total / 300 > 0.1


def test_the_system_is_never_asked_for_more_than_browsers_give_at_once(js):
    protocol = ModularSum(batch=5, dimension=2, bound=1.0, levels=8, noise=10**6)
    js.eval(CRYPTO)
    try:
        found = js.eval(f"dpbandits.encode({json.dumps(protocol.to_dict())}, [0, 0])")
    finally:
        js.eval("delete globalThis.crypto")
    assert np.abs(np.array(list(found)) - 8 - 10**6 / 2).max() < 5 * 10**3 / 2


# The page ----------------------------------------------------------------------------------------


def sent_by_the_page(js: MiniRacer, made: Any) -> str:
    page = (Path(__file__).parents[2] / "docs" / "private-contexts" / "devices.md").read_text()
    [script] = re.findall(r'<script type="module">\n(.*?)</script>', page, flags=re.DOTALL)
    files = {"device.json": made.device().to_json(), "/chooser": made.chooser().to_json()}
    browser = f"""(async () => {{
        const sent = [], files = {json.dumps(files)};
        {CRYPTO}
        const fetch = async (url, post) => post ? sent.push([url, post.body]) :
            {{ text: async () => files[url] }};
        const myFeatures = () => Array(5).fill([0.1, 0.2, 0.3]), show = async (arm) => 1 / (arm + 1);
        {script}
        delete globalThis.crypto;
        return JSON.stringify(sent);
    }})()"""
    [[url, body]] = json.loads(js.eval(browser).get(timeout=60))
    assert url == "/reports"
    return body


def test_the_page_of_the_guide_runs(js):
    made = server(5, 3, reports=0)
    assert made.receive(json.loads(sent_by_the_page(js, made)))


@pytest.mark.parametrize("protocol", EACH)
def test_the_same_page_sends_messages_to_a_shuffler(js, protocol):
    made = shuffled(5, 3, protocol=protocol)
    shuffler = made.shuffler()
    shuffler.submit(Messages.from_json(sent_by_the_page(js, made)), "Ann")
    assert made.receive(Messages.from_json(shuffler.close().to_json()))


# What it keeps, and refuses ----------------------------------------------------------------------


def test_it_forgets_and_always_has_something_to_send(js):
    made = server(2, 2, default_reward=0.25)
    device, x = pair(js, made), [[0.6, 0.8], [1.0, 0.0]]
    js.call("choose", x)
    for reward in ("1", [1], {}):  # an error would tell of it
        js.call("choose", x)
        device.choose(x)
        assert js.call("report", reward) == device.report(reward).tolist()
    js.call("choose", x)
    js.call("report", None)
    assert js.eval("device._chosen === null")
    for bad in (x[:1], [[0.6], [1.0]], [], [*x, x[0]]):
        js.call("choose", x)
        with pytest.raises(JSEvalException, match="contexts must have shape"):
            js.call("choose", bad)
        # Or an old choice would be reported with a new reward.
        assert js.eval("device._chosen === null")
    assert js.call("choose", [["0.6", None], [{}, True]]) in (0, 1)  # count as 0, and are not told
    assert js.eval("device._chosen.features.every((x) => x === 0)")
    before = device.to_json()
    device.choose(x)
    assert device.to_json() == before


def test_it_uses_choosers_of_its_own_policy_alone(js):
    made = server(2, 2)
    pair(js, made)
    data = json.loads(made.chooser().to_json())
    other = json.loads(server(2, 2, context_bound=10.0).chooser().to_json())
    with pytest.raises(JSEvalException, match="chooser must come from the policy"):
        js.call("use", json.dumps(other))
    for part in ({"public.estimate": [0.0] * 3}, {"public.inverse": [[[1.0]]]}):
        with pytest.raises(JSEvalException, match="dimension"):
            js.call("use", {**data, "public": {**data["public"], **part}})
    data["arguments"] = dict(reversed(data["arguments"].items()))
    assert js.call("use", {**data, "release": 8})  # parsed already, and in another order
    assert js.eval("device.release") == 8
    # Even a chooser that lies cannot make a report longer than the device's own noise expects.
    data["public"]["public.inverse"] = [(1e300 * np.eye(2)).tolist()]
    js.call("use", data)
    js.call("choose", [[500.0, 0.0], [0.0, 1e50]])
    assert js.eval("Math.hypot(...device._chosen.features)") <= 1.0


def test_simulated_noise_stays_in_python():
    for made in (server, shuffled):
        with pytest.raises(dpb.ArgumentError, match=r"^noise must be 'secure'"):
            made(noise="simulation", seed=1).device().to_json()


def test_its_parameter_is_no_smaller_than_the_guarantee_needs():
    made = server(budget=dpb.ZCDP(0.3), grid=2.0**-10)
    numerator, denominator = map(int, json.loads(made.device().to_json())["sigma_squared"])
    moved = Fraction(made.statistic.max_sensitivity) / Fraction(2) ** -10
    parameter = Fraction(numerator, denominator) - Fraction(1, 10)  # as discrete noise takes more
    spent = moved**2 / (2 * parameter)
    assert Fraction(3, 10) * (1 - Fraction(1, 10**9)) < spent <= Fraction(0.3)


def test_devices_in_javascript_count_the_reports_of_their_person(js):
    device = server(max_rounds=2, budget=dpb.ZCDP(1e9)).device()
    js.call("make", device.to_json(), np.random.default_rng(8).bytes(2**14).hex())
    contexts = np.ones((4, 3)).tolist()
    for _ in range(2):
        js.call("choose", contexts)
        js.call("report", 1.0)
    assert js.eval("device.left") == 0
    js.call("choose", contexts)
    assert np.abs(js.call("report", 1.0)).max() < 1e-3  # noise alone
