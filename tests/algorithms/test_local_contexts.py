"""LinUCB under local trust: devices choose and report, and the server never sees features."""

from __future__ import annotations

import json
import pickle

import linear_walks as walks
import numpy as np
import pytest
from scipy import stats
from sides import tireless

import dpbandits as dpb
from dpbandits import ZCDP, ApproxDP, ArgumentError, BudgetExhausted, UpdateError
from dpbandits.algorithms import LinUCBLDP
from dpbandits.environments import ContextTable
from dpbandits.privacy import accounting

ALPHA = 1e-4
X = np.array([[0.6, 0.8], [1.0, 0.0]])


def server(**options) -> LinUCBLDP:
    options = {"budget": ZCDP(0.5), "horizon": 4000, "reports": True, "seed": 1} | options
    return LinUCBLDP(2, 2, **options)


def test_reports_are_the_record_with_noise_of_its_own():
    """A report of (x, r): [x r ; x_1^2, x_2^2, sqrt(2) x_1 x_2], each with N(0, 4.5) noise at rho =
    1/2; a tenth less noise would be rejected.
    """
    device, found = tireless(server().device()), []
    for _ in range(6000):
        arm = device.choose(X)
        found.append(device.report(0.5))
    x = X[arm]
    record = [*(0.5 * x), x[0] ** 2, x[1] ** 2, np.sqrt(2) * x[0] * x[1]]
    noise = np.array(found) - record
    for i in range(5):
        assert stats.kstest(noise[:, i], stats.norm(0, np.sqrt(4.5)).cdf).pvalue > ALPHA
    pooled = noise.ravel()
    assert stats.kstest(pooled, stats.norm(0, np.sqrt(4.5)).cdf).pvalue > ALPHA
    assert stats.kstest(pooled, stats.norm(0, 0.9 * np.sqrt(4.5)).cdf).pvalue < ALPHA
    assert np.abs(np.corrcoef(noise.T)[np.triu_indices(5, 1)]).max() < 0.06


def of_nothing(device) -> np.ndarray:
    return np.mean([device.report(1.0) for _ in range(2000)], axis=0)


def test_a_report_of_no_choice_is_noise_alone():
    assert np.abs(of_nothing(server().device())).max() < 5 * np.sqrt(4.5 / 2000)


def test_every_device_has_noise_of_its_own():
    one = server()
    first, second = one.device(), one.device()
    assert not np.array_equal(first.report(1.0), second.report(1.0))
    assert np.array_equal(first.report(1.0), server().device().report(1.0)) is False
    again = server().device()
    again.report(1.0)
    assert np.array_equal(server().device().report(1.0), server().device().report(1.0))


def test_a_device_enforces_its_own_bound_whatever_chooser_it_is_sent():
    one = server()
    device = tireless(one.device())
    data = json.loads(one.chooser().to_json())
    data["arguments"]["context_bound"] = 1e6
    with pytest.raises(ArgumentError, match=r"^chooser must come from the policy"):
        device.use(json.dumps(data))
    with pytest.raises(ArgumentError, match=r"^chooser must come from the policy"):
        device.use(server(budget=ZCDP(5.0)).chooser())
    # Even if that were not noticed: what is reported is as long as the device's own noise expects.
    device.chooser = dpb.policies.Chooser.from_json(json.dumps(data))
    found = []
    for _ in range(2000):
        device.choose(np.array([[500.0, 0.0], [0.0, 0.0]]))
        found.append(device.report(1.0))
    assert np.abs(np.mean(found, axis=0)).max() < 1.0 + 5 * np.sqrt(4.5 / 2000)


def test_a_grid_on_which_reports_are_not_exact_is_refused_at_once():
    with pytest.raises(ArgumentError, match=r"^grid must be"):
        server(noise="secure", seed=None, context_bound=1e5, grid=2.0**-40)


def test_what_the_server_knows_is_the_sum_of_reports():
    one, rng = server(batch=3), np.random.default_rng(2)
    reports = [rng.normal(size=5) for _ in range(7)]
    for report in reports:
        assert one.receive(report)
    state = one.session.state
    assert state.wall.release == pytest.approx(np.sum(reports, axis=0))
    # Looked at after six reports; V holds their sum, whatever else was added to its diagonal.
    known, precision = np.sum(reports[:6], axis=0), state.public.precision[0]
    assert precision[0, 1] == pytest.approx(known[4] / np.sqrt(2))
    spread = precision[0, 0] - precision[1, 1]
    assert spread == pytest.approx(known[2] - known[3])
    assert one.rounds == 7


@pytest.mark.long
def test_devices_and_the_simulated_policy_play_the_same_game():
    """The same people, once seen by the policy, once by devices: equal regret."""
    rng = np.random.default_rng(5)
    contexts = rng.normal(size=(60, 4, 2)) / 3
    rewards = (rng.random((60, 4)) < 0.5 + contexts[..., 0] / 2).astype(float)

    def seen(seed: int) -> float:
        policy = LinUCBLDP(4, 2, budget=ZCDP(50.0), horizon=60, batch=6, seed=seed)
        total = 0.0
        for x, r in zip(contexts, rewards, strict=True):
            arm = policy.pull(x).arm
            policy.update(r[arm])
            total += r[arm]
        return total

    def reported(seed: int) -> float:
        policy = LinUCBLDP(4, 2, budget=ZCDP(50.0), horizon=60, batch=6, reports=True, seed=seed)
        device, total = tireless(policy.device()), 0.0
        for t, (x, r) in enumerate(zip(contexts, rewards, strict=True)):
            if t % 6 == 0:
                device.use(policy.chooser().to_json())
            arm = device.choose(x)
            policy.receive(device.report(r[arm]))
            total += r[arm]
        return total

    one, other = ([play(seed) for seed in range(60)] for play in (seen, reported))
    assert stats.ks_2samp(one, other, method="asymp").pvalue > ALPHA


def test_a_device_forgets_and_always_has_something_to_send():
    one = server(default_reward=0.25)
    device = pickle.loads(pickle.dumps(tireless(one.device())))
    assert one.receive(device.report())  # before any choice
    device.choose(X)
    assert device.report("much").shape == (5,)  # as no reward: an error would tell
    assert device._features is None
    device.choose(np.full((2, 2), np.nan))  # counts as 0, and is not told
    assert one.receive(device.report(np.inf))
    device.choose(X)
    with pytest.raises(ArgumentError, match=r"^contexts must"):
        device.choose(X[0])
    assert device._features is None  # or an old choice would be reported with a new reward
    assert "0.6" not in repr(device)


@pytest.mark.parametrize(
    "report",
    [
        None,
        1.0,
        [1.0] * 4,
        [1.0] * 6,
        [np.nan] * 5,
        [np.inf] * 5,
        [1e9] * 5,
        "report",
        [10**400] * 5,
        [1j] * 5,
        ["1"] * 5,
    ],
)
def test_what_no_device_sends_is_refused(report):
    one = server()
    with pytest.raises(ArgumentError, match=r"^report must hold 5 numbers"):
        one.receive(report)
    assert one.rounds == 0


def test_a_server_sees_no_person():
    one = server()
    with pytest.raises(ArgumentError, match=r"^reports must be False"):
        one.pull(X)
    with pytest.raises(UpdateError):
        one.update(1.0)
    with pytest.raises(ArgumentError, match=r"^reports must be True"):
        server(reports=False).receive([0.0] * 5)
    with pytest.raises(ArgumentError, match=r"^budget must not be None"):
        server(budget=None).device()


def test_planned_reports_end():
    one = server(horizon=3)
    for _ in range(3):
        assert one.receive([0.0] * 5)
    with pytest.raises(BudgetExhausted):
        one.receive([0.0] * 5)
    assert one.session.rounds.pending == {}
    assert one.receive([0.0] * 5) is False
    assert one.device().choose(X) in (0, 1)


def test_guarantees_say_where_the_wall_stands():
    assert server().guarantee.trust_model == "local"
    assert server(reports=False).guarantee.trust_model == "central"
    assert server(reports=False).guarantee_in_simulations.trust_model == "local"
    assert "carried out on the person's device" in str(server().guarantee)
    assert server().guarantee.protects == "contexts and rewards"


def test_a_saved_server_goes_on(tmp_path):
    one = server()
    device = tireless(one.device())
    device.choose(X)
    one.receive(device.report(1.0))
    path = one.save(tmp_path / "server.dpb")
    again = dpb.load(path)
    device.choose(X)
    assert again.receive(device.report(1.0))
    assert again.rounds == 2


def published(epsilon: float, **options) -> LinUCBLDP:
    options = {"budget": ApproxDP(epsilon, 0.1), "horizon": 400, "calibration": "paper"} | options
    return LinUCBLDP(3, 2, **options)


@pytest.mark.long
def test_the_published_recipe_plays_as_the_textbook():
    world = walks.problem(400)

    def regrets(epsilon: float) -> np.ndarray:
        rngs = map(np.random.default_rng, range(60))
        found = [world.regret(walks.published_local(world, epsilon, 0.1, rng)) for rng in rngs]
        return np.round(found, 6)

    def ours(epsilon: float) -> np.ndarray:
        runs = dpb.simulate(
            published(epsilon), ContextTable(*world), horizon=400, runs=600, seed=5, record=[400]
        ).runs
        return runs["regret"].to_numpy().round(6)

    assert stats.ks_2samp(ours(100.0), regrets(100.0)).pvalue > ALPHA
    assert stats.ks_2samp(ours(100.0), regrets(70.0)).pvalue < ALPHA
    assert set(ours(1e5)) == set(regrets(1e5))  # hardly any noise: arm by arm the same


def test_the_published_noise_keeps_more_than_it_was_asked_for():
    """x r and the triangle have noise of one size; both together move by sqrt(4.5)."""
    policy, std = published(1.0), 6 * np.sqrt(2 * np.log(25))
    assert policy.noise_scale == pytest.approx(np.sqrt(2) * std)
    delta = accounting.gaussian_delta(1.0, np.sqrt(4.5) / std)
    assert policy.guarantee.holds.epsilon == 1.0
    assert policy.guarantee.holds.delta == pytest.approx(delta, rel=1e-9)
    assert delta < 1e-13
    device = tireless(published(1e6, reports=True, seed=1).device())
    x = np.array([[0.6, 0.8]] * 3)
    device.choose(x)
    record = np.sqrt(2) * np.array([0.3, 0.4, 0.36, 0.64, 0.48])
    assert device.report(0.5) == pytest.approx(record, abs=1e-3)


def test_the_published_statistic_moves_as_far_as_is_declared_and_no_farther():
    policy, rng, farthest = published(1.0), np.random.default_rng(3), 0.0
    for turn in [0.0, np.pi / 4 - np.pi / 3, *rng.uniform(0, np.pi, 300)]:
        for apart in [2 * np.pi / 3, *rng.uniform(0, np.pi, 5)]:
            x, y = ([np.cos(a), np.sin(a)] for a in (turn, turn + apart))
            one, other = (
                np.sqrt(2) * np.array([z[0], z[1], z[0] ** 2, z[1] ** 2, z[0] * z[1]])
                for z in (x, y)
            )
            farthest = max(farthest, np.linalg.norm(one - other))
    assert farthest == pytest.approx(policy.statistic.max_sensitivity, rel=1e-9)


def test_the_published_recipe_needs_clipping():
    with pytest.raises(ArgumentError, match=r"^clip must be True"):
        published(1.0, clip=False)


@pytest.mark.parametrize("most", [None, 3])
def test_a_device_counts_the_reports_of_its_person(most):
    """With noise for all of them together: sqrt(3) times as much."""
    budget = ZCDP(1e9)  # under which a report shows what it is of
    policy = server(max_rounds=most, budget=budget)
    once = server(budget=budget).noise_scale
    assert policy.noise_scale == pytest.approx(once * (most or 1) ** 0.5)
    assert f"which sends {f'{most} reports' if most else 'one report'} in all" in str(
        policy.guarantee
    )
    device = policy.device()
    for _ in range(most or 1):
        device.report()  # of nobody, who has no budget
        device.choose(X)
        report = device.report(1.0)
        assert np.abs(report).max() > 0.1
        policy.receive(report)
        assert policy.ledger.spent() == policy.budget
    device = pickle.loads(pickle.dumps(device))
    device.choose(X)
    sent = [device.report(1.0) for _ in range(2)]  # of nobody, though something was chosen
    assert np.abs(sent).max() < 1e-3
    assert device._features is None
    assert device.left == 0
