"""LinUCB in the shuffle model: devices, a shuffler, and a server that sees sums."""

from __future__ import annotations

import math
import pickle
import re

import numpy as np
import pytest
from scipy import stats
from sides import public_of, published, release_of, tireless

import dpbandits as dpb
from dpbandits import ApproxDP, ArgumentError, BudgetExhausted
from dpbandits.algorithms import LinUCBSDP
from dpbandits.algorithms.hidden.model import FACTS
from dpbandits.environments import AnchoredContexts
from dpbandits.privacy.continual import mechanism_from_python
from dpbandits.shuffle import Analyzer, Messages, Randomizer, published_batch

ALPHA = 1e-4
X = np.array([[0.6, 0.8], [1.0, 0.0]])
BUDGET = ApproxDP(1.0, 1e-3)
EACH = ["modular", "bits", "reports"]
RECORD = np.array([0.3, 0.4, 0.36, 0.64, math.sqrt(2) * 0.48])  # of X[0] with reward 1/2


def server(**options) -> LinUCBSDP:
    defaults = {"budget": BUDGET, "horizon": 4000, "batch": 5, "messages": True}
    return LinUCBSDP(2, 2, **(defaults | {"noise": "simulation", "seed": 1} | options))


def simulated(**options) -> LinUCBSDP:
    return server(**({"messages": False} | options))


def batch_of(policy: LinUCBSDP, reward: float = 1.0) -> Messages:
    shuffler, device = policy.shuffler(), tireless(policy.device())
    for person in range(shuffler.protocol.batch):
        device.choose(X)
        shuffler.submit(device.report(reward), person)
    return shuffler.close()


@pytest.mark.parametrize("protocol", EACH)
@pytest.mark.long
def test_devices_and_loops_make_sums_of_one_law(protocol):
    """What the server receives, and what a simulation releases for the same records: means and
    noise of equal size, which 8 % less noise would not have.
    """
    policy = server(protocol=protocol)
    source = Randomizer(policy.protocol, noise="simulation", seed=5)
    shuffler, analyzer = policy.shuffler(), Analyzer(policy.protocol)
    batches = [shuffler.shuffle([source.encode_many([RECORD] * 5)]) for _ in range(1500)]
    sums = [analyzer.aggregate(mixed) for mixed in batches]
    loops, release = simulated(protocol=protocol, horizon=10**6, seed=3), np.zeros(5)
    drawn, last = [], np.zeros(5)
    wall, rng = loops.new_state().wall, np.random.default_rng(7)
    step = mechanism_from_python(wall.running.kind)
    for _ in range(1500):
        step(wall.running, wall.family, 1.0, 5 * RECORD, release, rng)
        drawn.append(release - last)
        last = release.copy()
    sums, drawn = np.array(sums), np.array(drawn)
    std = loops.noise_scale
    for found in (sums, drawn):
        noise = ((found - 5 * RECORD) / std).ravel()
        assert abs(noise.mean()) < 4.5 / math.sqrt(noise.size)
        spread = noise @ noise
        assert stats.chi2(noise.size).cdf(spread) > ALPHA
        assert stats.chi2(noise.size).sf(spread) > ALPHA
        assert stats.chi2(noise.size).sf(spread / 0.92**2) < ALPHA
    assert stats.ks_2samp(sums.ravel(), drawn.ravel()).pvalue > ALPHA


def test_a_server_learns_from_batches_alone():
    policy = server(budget=ApproxDP(8.0, 1e-3), batch=50, horizon=10_000)
    rng = np.random.default_rng(2)
    shuffler = policy.shuffler()
    for version in range(1, 40):
        device = tireless(policy.device())
        for person in range(50):
            arm = device.choose(X)
            shuffler.submit(device.report(float(rng.random() < (0.9, 0.1)[arm])), person)
        assert policy.receive(shuffler.close(next_version=version))
    assert policy.ledger.releases == 39
    gap = (X @ policy.estimates.coefficients)[0] - (X @ policy.estimates.coefficients)[1]
    assert gap > 0.3


@pytest.mark.parametrize(
    ("kind", "own"),
    [(LinUCBSDP, {}), (LinUCBSDP, {"bounds": "published"}), (dpb.algorithms.LinearIMEDSDP, {})],
    ids=["exact", "published", "imed"],
)
def test_a_server_stands_where_a_loop_stands_with_the_same_sums(kind, own):
    """Horizons and radii count people, and not batches, on both sides."""
    own = {"budget": BUDGET, "horizon": 4000, "batch": 5, "seed": 1, **own}
    ours = kind(2, 2, messages=True, noise="simulation", **own)
    loop = kind(2, 2, **own)
    state = loop.session.gate.new_state(simulated=True)
    for _ in range(3):
        ours.receive(batch_of(ours))
        for _ in range(5):
            assert not loop.kernels.release_due(loop.params, state.public)
            loop.kernels.record_pull(loop.params, state.public, 0, X[0], 1)
        assert loop.kernels.release_due(loop.params, state.public)
        loop.kernels.close(loop.params, state.public, state.memo)
        published(loop, state, release_of(ours))
        for found, expected in zip(public_of(ours), state.public, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_messages_of_another_chooser_are_refused():
    policy = server()
    mixed = batch_of(policy)
    assert policy.receive(mixed)
    with pytest.raises(ArgumentError, match="messages must have version 1"):
        policy.receive(mixed)
    assert policy.ledger.releases == 1
    assert policy.receive(None) is False
    assert policy.ledger.releases == 1


def test_a_device_labels_what_it_sends_by_the_chooser_it_used():
    policy = server()
    device = tireless(policy.device())
    device.choose(X)
    policy.receive(batch_of(policy))
    device.use(policy.chooser())
    assert device.report(1.0).version == 0
    device.choose(X)
    assert device.report(1.0).version == 1
    policy.receive(batch_of(policy))
    device.use(policy.chooser())
    assert device.report().version == 2  # of nobody, who chose by nothing


def test_a_device_always_has_something_to_send():
    device = tireless(server().device())
    empty, told = device.report(), device.report(0.5)
    assert empty.values.shape == told.values.shape


def test_no_two_devices_and_no_shuffler_share_noise():
    policy = server()
    words = {policy.device().report().values.tobytes() for _ in range(20)}
    for _ in range(3):
        words.add(policy.shuffler()._randomizer.encode().values.tobytes())
    assert len(words) == 23


def test_the_server_stops_after_its_horizon():
    policy = server(horizon=12)  # two batches of five
    for _ in range(2):
        assert policy.receive(batch_of(policy))
    with pytest.raises(BudgetExhausted):
        policy.receive(batch_of(policy))


@pytest.mark.parametrize("protocol", EACH)
def test_the_noise_is_the_least_that_is_proved(protocol):
    policy = server(protocol=protocol)
    protocol = policy.protocol
    assert (
        protocol.delta_at(1.0)
        <= 1e-3
        < type(protocol)(**{**vars(protocol), "noise": int(protocol.noise * 0.97)}).delta_at(1.0)
    )
    assert policy.guarantee.holds == BUDGET
    assert policy.ledger.spent() is None
    policy.receive(batch_of(policy))
    assert policy.ledger.spent() == BUDGET
    assert list(policy.ledger.frame["family"]) == ["certified"]


def test_users_who_come_back_share_the_budget_over_their_batches():
    once, often = server(), server(max_rounds=9)
    assert often.protocol.delta_at(1.0, batches=9) <= 1e-3 < often.protocol.delta_at(1.0, 10)
    assert often.noise_scale == pytest.approx(3.0 * once.noise_scale, rel=0.03)
    assert often.guarantee.unit == "user"
    often.receive(batch_of(often))
    assert often.ledger.spent() == BUDGET
    policy, recorded, spent = simulated(max_rounds=2, batch=1), [], []
    for _ in range(3):
        decision = policy.pull(X, user="Ann")
        recorded.append(decision.recorded)
        spent.append(policy.ledger.spent())
        policy.update(1.0, decision)
    assert recorded == [True, True, False]
    assert spent == [None, BUDGET, BUDGET]  # no proof says what one batch of two costs


@pytest.mark.long
def test_published_constants_keep_what_they_keep():
    """Figure 1's middle panel: both theorems overshoot; nothing here rests on amplification."""
    shape = {"budget": ApproxDP(1.0, 0.1), "batch": 20, "horizon": 20_000}
    published = simulated(protocol="bits", calibration="paper", **shape)
    assert (
        published.protocol.noise
        > 1e5 * simulated(protocol="bits", levels=9, **shape).protocol.noise
    )
    assert published.guarantee.holds.delta < 1e-30
    reports = simulated(protocol="reports", calibration="paper", **shape)
    assert reports.guarantee.holds.delta == pytest.approx(0.00102, rel=0.01)
    assert "provides the guarantee that is stated here" in str(reports.guarantee)
    weak = simulated(
        protocol="reports", calibration="paper", **shape | {"budget": ApproxDP(10.0, 0.1)}
    )
    assert weak.guarantee.holds.delta > 0.1
    nothing = {"budget": ApproxDP(1.0, 1e-4), "batch": 10**6, "horizon": 10**7}
    assert simulated(protocol="reports", calibration="paper", **nothing).guarantee.holds is None
    coarse = server(
        protocol="reports", calibration="paper", noise="secure", seed=None, grid=0.25, **shape
    )
    assert coarse.guarantee.holds.delta > reports.guarantee.holds.delta
    assert coarse.protocol.noise == reports.protocol.noise
    wide = simulated(protocol="bits", calibration="paper", max_rounds=4, **shape)
    assert wide.guarantee.holds.delta < 1e-30  # more noise than any proof goes through
    divided = simulated(protocol="reports", calibration="paper", max_rounds=4, **shape)
    logs = math.log(2.5 * 20 * 8 / 0.1) * math.log(2 * 8 / 0.1)
    budget = 1.0 / (2 * math.sqrt(8 * math.log(20)))
    step = divided.protocol.step
    assert divided.protocol.noise * step == pytest.approx(
        4 * math.sqrt(2 * logs / 20) / budget, rel=2e-3
    )
    with pytest.raises(ArgumentError, match="protocol must be 'bits' or 'reports'"):
        simulated(calibration="paper")
    with pytest.raises(ArgumentError, match="calibration must be 'exact', got 'paper', which"):
        simulated(protocol="bits", calibration="paper", reward_range=(0.0, 2.0))


@pytest.mark.parametrize("protocol", ["bits", "reports"])
def test_published_noise_is_of_one_size_on_the_upper_triangle(protocol):
    """What the server makes of it: products of features get as much noise as squares."""
    policy = simulated(protocol=protocol, calibration="paper", batch=20, horizon=4000)
    published = policy.protocol.noise_std
    wall, rng, release = policy.new_state().wall, np.random.default_rng(3), np.zeros(5)
    step, last, drawn = mechanism_from_python(wall.running.kind), np.zeros(5), []
    for _ in range(200):
        step(wall.running, wall.family, 1.0, np.zeros(5), release, rng)
        drawn.append(release - last)
        last = release.copy()
    weights = np.array([policy.params.weight] * 2 + [policy.params.diagonal] * 2 + [math.sqrt(2)])
    seen = np.std(np.array(drawn) / weights, axis=0)
    assert seen == pytest.approx(published, rel=0.25)
    large = ApproxDP(15.0, 0.4)  # for which messages are short
    device = server(protocol=protocol, calibration="paper", batch=20, budget=large).device()
    device.choose(X)
    assert device.report(1.0).values.size


def test_levels_of_trust_stand_in_the_guarantee():
    words = str(server(protocol="reports").guarantee)
    assert "(shuffle privacy)" in words
    assert "joint DP" in words
    assert "each device rounds every number with random bits of its own" in words
    assert "a person's messages alone are (0.999, 0.001)-DP (local DP)" in words
    often = server(protocol="reports", max_rounds=10)
    alone = often.protocol.epsilon_at(1e-3, 10, "local")  # all her messages together
    said = re.search(
        r"a person's messages alone are \(([^,]*), 0.001\)-DP",
        str(often.guarantee),
    )
    assert alone <= float(said[1]) < 1.011 * alone
    assert often.protocol.epsilon_at(1e-3, level="local") < 0.5 * alone
    assert "the shuffler lets a person into each batch at most once" in str(often.guarantee)
    assert "messages alone are without a proved level" in str(
        server(protocol="bits", batch=200).guarantee
    )
    central = simulated().guarantee
    assert (central.view, central.trust_model) == ("joint", "central")
    assert simulated().guarantee_in_simulations.trust_model == "shuffle"


@pytest.mark.long
def test_a_budget_for_messages_by_themselves():
    """As far as LinUCBLDP goes, and what leaves the shuffler keeps more."""
    for protocol in EACH:
        policy = server(protocol=protocol, level="local", batch=20)
        made = policy.protocol
        less = type(made)(**{**vars(made), "noise": int(made.noise * 0.97)})
        assert made.delta_at(1.0, level="local") <= 1e-3 < less.delta_at(1.0, level="local")
        assert policy.guarantee.holds == BUDGET
        words = str(policy.guarantee)
        assert "a person's messages alone are (1, 0.001)-DP (local DP)" in words
        after = float(re.search(r"leave the shuffler are \(([^,]*), 0.001\)-DP", words)[1])
        proved = min(1.0, made.epsilon_at(1e-3))
        assert proved <= after < 1.011 * proved  # rounded up, if at all
        policy.receive(batch_of(policy))
        assert policy.ledger.spent() == BUDGET
    hard = str(server(budget=ApproxDP(0.05, 1e-6), level="local").guarantee)
    assert "leave the shuffler are (0.05, 1e-06)-DP" not in hard  # but the proved one
    assert "a person's messages alone are (0.05, 1e-06)-DP" in hard
    secure = {"noise": "secure", "seed": None, "reward_range": (0.0, 4e3), "grid": 2.0**-10}
    assert server(**secure).protocol.sensitivity <= 2.0 * server(**secure).protocol.bound
    published = simulated(protocol="bits", level="local", calibration="paper", batch=20)
    assert published.guarantee.holds.delta < 1e-30
    with pytest.raises(ArgumentError, match=r"^level must be one of"):
        server(level="joint")


def test_the_template_of_the_regret_bounds():
    """Lemma A.4 from the start: the shift, and lambda_min = S, lambda_max = 3 S, nu."""
    policy, alpha = simulated(bounds="published"), 1e-3
    params, releases = policy.params, 800
    std = policy.noise_scale * math.sqrt(releases)
    bound = params.matrix_norm
    # Monte Carlo of one batch's norm, at a probability that is seen, is below a bound for all.
    rng = np.random.default_rng(4)
    z = rng.normal(size=(20_000, 2, 2)) * std
    norms = np.abs(np.linalg.eigvalsh((z + z.transpose(0, 2, 1)) / 2)).max(axis=1)
    assert norms.max() < bound < 2.0 * norms.max()
    facts = public_of(policy).facts[:, 0]
    assert facts[FACTS.added] == pytest.approx(2.0 * bound)
    growth = 2 * math.log(2 / alpha) + 2 * math.log(3.0)
    expected = 0.5 * math.sqrt(growth) + math.sqrt(3 * bound) + params.vector_norm
    assert facts[FACTS.radius] == pytest.approx(expected)
    z = rng.normal(size=(20_000, 2)) * std
    longest = np.linalg.norm(z, axis=1).max() / math.sqrt(bound)
    assert longest < params.vector_norm < 2.0 * longest
    assert simulated(bounds="published", budget=None).params == simulated(budget=None).params
    with pytest.raises(ArgumentError, match="repair must be 'shift' with bounds='published'"):
        simulated(bounds="published", repair="clip")
    with pytest.raises(ArgumentError, match=r"^bounds must be one of"):
        simulated(bounds="paper")


@pytest.mark.parametrize("protocol", EACH)
def test_published_batches(protocol):
    kind = "reports" if protocol == "reports" else "bits"
    shape = {"features": 2, "people": 4000, "protocol": kind}
    for options, rule in (
        ({}, {}),
        ({"level": "local"}, {"level": "local"}),
        ({"max_rounds": 2}, {"returning": True}),
    ):
        policy = simulated(protocol=protocol, batch="published", **options)
        expected = published_batch(BUDGET, **shape, **rule)
        assert policy.params.batch == expected
        assert policy.protocol.batch == expected
        assert "batch='published'" in repr(policy)
    free = simulated(budget=None, batch="published")
    assert free.params.batch == published_batch(None, features=2, people=4000)
    with pytest.raises(ArgumentError, match=r"^batch must be an integer .*, or 'published', got"):
        simulated(batch="best")


@pytest.mark.long
def test_sums_have_least_regret_and_reports_most():
    """At one budget: a curator's noise on sums, the shuffler's, and that of every report."""
    world, finals = AnchoredContexts.random(20, 3, seed=2), {}
    options = {"budget": ApproxDP(1.0, 1e-2), "horizon": 4000}
    policies = {
        "central": dpb.algorithms.LinUCBJDP(20, 3, batch=20, **options),
        "modular": LinUCBSDP(20, 3, **options),
        "reports": LinUCBSDP(20, 3, protocol="reports", **options),
    }
    for name, policy in policies.items():
        result = dpb.simulate(policy, world, horizon=4000, runs=40, seed=1)
        finals[name] = result.runs["regret"].to_numpy()
    assert stats.ttest_rel(finals["central"], finals["modular"], alternative="less").pvalue < ALPHA
    assert stats.ttest_rel(finals["modular"], finals["reports"], alternative="less").pvalue < ALPHA


def test_arms_may_have_models_of_their_own():
    policy = server(models="disjoint", batch=3)
    assert policy.protocol.dimension == 2 * 5
    device = policy.device()
    arm = device.choose([[0.6, 0.8]])
    assert arm in (0, 1)
    policy.receive(batch_of(policy))
    assert policy.estimates.coefficients.shape == (2, 2)
    shared = server(batch=3).protocol
    assert policy.protocol.sensitivity == shared.sensitivity


def test_devices_travel():
    device = server().device()
    again = pickle.loads(pickle.dumps(device))
    assert again.choose(X) == device.choose(X)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch": 0}, "batch must"),
        ({"protocol": "morse"}, "protocol must be one of"),
        ({"dropout": 5}, "dropout must be an integer between 0 and 4"),
        ({"levels": 0}, "levels must"),
        ({"budget": dpb.ZCDP(1.0)}, "budget must be None or ApproxDP"),
    ],
)
def test_bad_arguments_are_named(options, said):
    with pytest.raises(ArgumentError, match=said):
        server(**options)


def test_who_may_do_what():
    with pytest.raises(ArgumentError, match="messages must be False"):
        server().pull(X)
    with pytest.raises(ArgumentError, match="messages must be True"):
        simulated().device()
    with pytest.raises(ArgumentError, match="noise='secure' needs messages=True"):
        simulated(noise="secure", seed=None)
    with pytest.raises(ArgumentError, match="budget must not be None"):
        server(budget=None).shuffler()
