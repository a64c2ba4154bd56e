"""Warm starts from logs: through the wall or past it, whoever chose the arms; and decision logs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpbandits as dpb
from dpbandits import ZCDP, ArgumentError, PureDP, fit_logs
from dpbandits.algorithms import LinearIMED, MergedIMED, PrivateLinUCB
from dpbandits.papers.others import DPSE
from dpbandits.policies import registered
from dpbandits.policies.kept import ASSUMED_OF_PLACES

MEANS = np.array([0.2, 0.8, 0.5])


def believed(policy, n):
    """What the model takes for the first n coefficients."""
    public = policy.session.state.public
    return np.array([policy.kernels.estimate(policy.params, public, i) for i in range(n)])


def a_log(n: int, seed: int = 1, shares=(0.5, 0.3, 0.2)) -> dict[str, np.ndarray]:
    """Arms that nobody chose well."""
    rng = np.random.default_rng(seed)
    arms = rng.choice(3, n, p=shares)
    return {"arm": arms, "reward": (rng.random(n) < MEANS[arms]).astype(float)}


def used_first(log, used) -> list[np.ndarray]:
    """The rewards of each arm's first records."""
    return [log["reward"][log["arm"] == a][:n] for a, n in enumerate(used)]


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize(
    "cls", [MergedIMED, dpb.algorithms.MergedThompson, dpb.algorithms.DiscountedIMED]
)
def test_each_record_enters_one_sum_once(cls, private):
    log = a_log(3000)
    policy = cls(3, budget=None, seed=1)
    fitted = fit_logs(policy, log, private=private)
    assert (fitted.used + fitted.left).tolist() == np.bincount(log["arm"]).tolist()
    assert fitted.used.sum() > 1500
    public = policy.session.state.public
    released = public.pulls
    if cls is not dpb.algorithms.DiscountedIMED:
        for a, rewards in enumerate(used_first(log, released)):
            assert public.estimate[a] == pytest.approx(rewards.mean())
    assert policy.rounds == (fitted.used.sum() if private else 0)
    assert (policy.ledger.releases > 0) == private
    chosen = [policy.pull().arm for _ in range(5)]
    assert set(chosen) == {1}


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize(
    "cls", [LinearIMED, PrivateLinUCB, dpb.algorithms.LinUCB, dpb.algorithms.RSOFUL]
)
def test_a_linear_model_regresses_on_the_arms_of_the_log(cls, private):
    rng, n, theta = np.random.default_rng(3), 400, np.array([0.6, -0.3])
    contexts = rng.uniform(-0.7, 0.7, (n, 3, 2))
    arms = np.where(rng.random(n) < 0.8, 2, rng.integers(0, 3, n))  # by no estimate
    x = contexts[np.arange(n), arms]
    rewards = x @ theta + rng.uniform(-0.1, 0.1, n)
    options = {} if cls in (dpb.algorithms.LinUCB, dpb.algorithms.RSOFUL) else {"budget": None}
    if cls is PrivateLinUCB or cls is LinearIMED:
        options["horizon"] = 1000
    policy = cls(3, 2, reward_range=(-1.0, 1.0), **options)
    fit_logs(policy, {"arm": arms, "reward": rewards}, private=private, features=contexts)
    if cls is not dpb.algorithms.RSOFUL:  # which releases seldom
        ridge = np.linalg.solve(np.eye(2) * policy.params.ridge + x.T @ x, x.T @ rewards)
        assert believed(policy, 2) == pytest.approx(ridge, abs=1e-9)
    assert believed(policy, 2) == pytest.approx(theta, abs=0.15)


def test_a_public_log_costs_nothing_and_stays_under_running_sums(tmp_path):
    rng, n, theta = np.random.default_rng(3), 400, np.array([0.6, -0.3])
    contexts = rng.uniform(-0.7, 0.7, (n, 3, 2))
    arms = rng.integers(0, 3, n)
    rewards = contexts[np.arange(n), arms] @ theta
    policy = PrivateLinUCB(3, 2, budget=ZCDP(50.0), horizon=500, reward_range=(-1, 1), seed=1)
    fit_logs(policy, {"arm": arms, "reward": rewards}, private=False, features=contexts)
    before = believed(policy, 2)
    assert before == pytest.approx(theta, abs=0.02)
    assert policy.ledger.releases == 0
    for i in range(50):
        decision = policy.pull(contexts[i])
        policy.update(float(contexts[i, decision.arm] @ theta), decision)
    assert policy.ledger.releases == 50
    assert believed(policy, 2) == pytest.approx(theta, abs=0.1)  # noise has come, the log stays
    policy.save(tmp_path / "a.dpb")
    again = dpb.load(tmp_path / "a.dpb", simulation=True)
    assert {*again.guarantee.assumptions} == {*policy.guarantee.assumptions} - {ASSUMED_OF_PLACES}
    assert "independent of private rewards" in str(again.guarantee)
    del policy


def test_what_is_left_of_a_log_under_a_crash(tmp_path):
    """Everything public is."""
    policy = PrivateLinUCB(2, 1, budget=ZCDP(50.0), horizon=50, seed=1)
    log = {"arm": [0, 1] * 50, "reward": [0.5] * 100, "x": [0.9] * 100}
    contexts = np.full((100, 2, 1), 0.9)
    fit_logs(policy, log, private=False, features=contexts)
    policy.save(tmp_path / "a.dpb")
    for _ in range(10):
        policy.update(0.5, policy.pull([[0.9], [0.9]]))
    before = believed(policy, 1)
    del policy
    policy = dpb.load(tmp_path / "a.dpb")
    policy.update(0.5, policy.pull([[0.9], [0.9]]))
    assert believed(policy, 1) == pytest.approx(before, abs=0.2)
    assert believed(policy, 1)[0] > 0.3


def test_rewards_are_clipped_to_the_declared_range_and_not_to_their_own():
    for private in (True, False):
        policy = MergedIMED(2, budget=None, reward_range=(0.0, 1.0))
        log = {"arm": [0, 1] * 20, "reward": [7.0, math.nan] * 20}
        fit_logs(policy, log, private=private)
        assert policy.session.state.public.estimate.tolist() == [1.0, 0.0]
        if private:
            assert (policy.diagnostics.clipped, policy.diagnostics.missing) == (
                policy.rounds // 2,
                policy.rounds // 2,
            )


@pytest.mark.parametrize("answers_within", [0, 7, None])
def test_patience_has_nothing_to_wait_for(answers_within):
    log = a_log(500)
    policy = MergedIMED(3, budget=PureDP(1.0), answers_within=answers_within, seed=1)
    usual = MergedIMED(3, budget=PureDP(1.0), seed=1)
    assert fit_logs(policy, log).used.tolist() == fit_logs(usual, log).used.tolist()
    assert (policy.diagnostics.dropped, policy.diagnostics.missing) == (0, 0)
    for one in (policy, usual):
        assert one.ledger.spent() == PureDP(1.0)


def test_one_reward_of_a_private_log_moves_one_release(monkeypatch):
    """Two logs with the same noise, which differ in one reward: their releases do in one place."""
    seen: list[list[float]] = []
    for changed in (False, True):
        log = a_log(400)
        if changed:
            log["reward"][5] = 1.0 - log["reward"][5]
        policy = MergedIMED(3, budget=ZCDP(0.5), seed=1)
        gate, crossed = policy.session.gate, []
        usual = gate.release

        def noted(state, *rest, usual=usual, crossed=crossed):
            usual(state, *rest)
            crossed.append(float(state.wall.release[0]))

        monkeypatch.setattr(gate, "release", noted)
        fit_logs(policy, log)
        seen.append(crossed)
    moved = np.abs(np.subtract(*seen))
    assert sorted(moved)[-2:] == pytest.approx([0.0, 1.0], abs=1e-9)


def test_tables_of_all_kinds_are_read_alike():
    log = a_log(300)
    fits = []
    for frame in (log, pd.DataFrame(log), pa.table(log)):
        policy = MergedIMED(3, budget=ZCDP(0.5), seed=1)
        fit_logs(policy, frame)
        fits.append(policy.session.state.public.estimate.tolist())
    assert fits[0] == fits[1] == fits[2]
    columns = {**log, "x": np.linspace(0, 0.5, 300), "y": np.linspace(0.5, 0, 300)}
    rows = pd.DataFrame({**log, "both": list(np.column_stack([columns["x"], columns["y"]]))})
    fits = []
    for frame, features in (
        (columns, ["x", "y"]),
        (pd.DataFrame(columns), ["x", "y"]),
        (rows, "both"),
        (pa.Table.from_pandas(rows), "both"),
    ):
        policy = LinearIMED(3, 2, budget=None, models="disjoint", horizon=1000)
        fit_logs(policy, frame, features=features)
        fits.append(believed(policy, 2).tolist())
    assert fits[0] == fits[1] == fits[2] == fits[3]


def test_propensities_take_out_whom_an_arm_was_given_to():
    """The better off got arm 0: its mean in the log says so, and that of taken records does not.

    With 10,000 records or so of an arm a standard error is .005: five of them.
    """
    rng, n = np.random.default_rng(4), 60_000
    well = rng.random(n) < 0.5
    p = np.where(well, 0.8, 0.2)
    arms = (rng.random(n) >= p).astype(int)
    log = {
        "arm": arms,
        "reward": (rng.random(n) < np.where(well, 0.7, 0.3)).astype(float),
        "p": np.where(arms == 0, p, 1 - p),
    }
    for propensity, gap in ((None, 0.24), ("p", 0.0)):
        policy = MergedIMED(2, budget=None)
        fit_logs(policy, log, propensity=propensity)
        found = policy.session.state.public.estimate
        assert found[0] - found[1] == pytest.approx(gap, abs=0.035)


@pytest.mark.parametrize(
    ("make", "options", "told"),
    [
        (
            lambda: dpb.algorithms.EXP3(3, budget=None, horizon=10),
            {},
            "policy must be able to use rewards of arms",
        ),
        (
            lambda: DPSE(3, budget=None, horizon=10),
            {},
            "policy must be able to use rewards of arms",
        ),
        (
            lambda: dpb.papers.others.LDPUCB(3, budget=PureDP(1.0), reports=True),
            {},
            "policy must take rewards",
        ),
        (lambda: MergedIMED(3, budget=None, max_rounds=3), {}, "policy must have max_rounds=None"),
        (lambda: MergedIMED(3, budget=None), {"arm": "what"}, "frame must have a column 'what'"),
        (
            lambda: MergedIMED(2, budget=None),
            {},
            r"arm \(column 'arm'\) must hold whole numbers in \[0, 1\]",
        ),
        (
            lambda: MergedIMED(3, budget=None),
            {"reward": "name"},
            r"reward \(column 'name'\) must hold numbers, got text in row 0, and in 29",
        ),
        (
            lambda: MergedIMED(3, budget=None),
            {"propensity": "bad"},
            r"propensity \(column 'bad'\) must hold numbers in \(0, 1\]",
        ),
        (
            lambda: MergedIMED(3, budget=None),
            {"features": ["reward"]},
            "features must not be given",
        ),
        (lambda: LinearIMED(3, 2, budget=None, horizon=9), {}, "features must be given"),
        (
            lambda: LinearIMED(3, 1, budget=None, horizon=9, models="disjoint"),
            {"features": ["reward"], "propensity": "bad"},
            "propensity must not be given with features",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused_before_anything_is(make, options, told):
    log = {**a_log(30), "name": ["x"] * 30, "bad": np.full(30, 1.5)}
    policy = make()
    with pytest.raises(ArgumentError, match=told):
        fit_logs(policy, log, **options)
    assert policy.rounds == policy.ledger.releases == 0


def test_a_policy_that_has_pulled_takes_no_log():
    policy = MergedIMED(3, budget=None)
    policy.pull()
    with pytest.raises(ArgumentError, match="policy must be new"):
        fit_logs(policy, a_log(30))


def test_no_policy_that_divides_by_its_own_propensities_learns_off_policy():
    from dpbandits.algorithms.adversarial.learning import LearningPolicy

    for cls in registered().values():
        batched = issubclass(getattr(cls, "policy_class", cls), LearningPolicy)
        assert not (cls.learns_off_policy and batched)


# What must not be learned twice, or by halves ----------------------------------------------------


def test_a_log_is_not_released_again_after_a_crash(tmp_path):
    """Its people would pay twice, and the ledger would take them for others."""
    log = {"arm": [0, 1] * 50, "reward": [0.5] * 100}
    for private in (True, False):
        policy = MergedIMED(2, budget=ZCDP(0.5), seed=1)
        path = policy.save(tmp_path / f"{private}.dpb")
        fit_logs(policy, log, private=private)
        del policy  # without a save
        found = dpb.load(path)
        assert "log of 100 records" in str(found.guarantee)
        with pytest.raises(ArgumentError, match="policy must be new"):
            fit_logs(found, log, private=private)


def test_a_log_with_a_bad_row_is_refused_before_anything_is_learned():
    whole = {"arm": [0, 1, 2] * 40, "reward": [0.5] * 120, "p": [0.5] * 120}
    shown = np.full((120, 3, 2), 0.5)
    bad = [
        (MergedIMED(3, budget=ZCDP(1.0), seed=1), {"reward": [0.5] * 60}, {}),
        (MergedIMED(3, budget=ZCDP(1.0), seed=1), {"reward": [[0.5, 0.5]] * 120}, {}),
        (MergedIMED(3, budget=ZCDP(1.0), seed=1), {"p": [0.5] * 60}, {"propensity": "p"}),
        (MergedIMED(3, budget=None, clip=False), {"reward": [0.5] * 119 + [1e200]}, {}),
        (dpb.algorithms.LinUCB(3, 2), {}, {"features": shown[:, :2]}),
        (
            dpb.algorithms.LinUCBJDP(3, 2, horizon=200, batch=20, budget=None),
            {},
            {"features": shown[..., :1]},
        ),
    ]
    retired = MergedIMED(3, budget=ZCDP(1.0), seed=1)
    retired.retire(2)
    for policy, change, given in [*bad, (retired, {}, {})]:
        for private in (True, False):
            before = str(policy.guarantee), policy.rounds, policy.ledger.releases
            with pytest.raises(ArgumentError):
                fit_logs(policy, {**whole, **change}, private=private, **given)
            assert (str(policy.guarantee), policy.rounds, policy.ledger.releases) == before
        fit = {} if "features" not in given else {"features": shown}
        if policy is not retired:
            assert fit_logs(policy, whole, **fit).used.sum() > 90
