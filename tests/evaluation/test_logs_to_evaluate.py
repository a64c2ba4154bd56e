"""Which logs are read, which are refused, and which targets there are."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpbandits as dpb
from dpbandits import ArgumentError, evaluate
from dpbandits.evaluation import Evaluation
from dpbandits.logs import read_logs
from dpbandits.logs.folders import FILE

N = 400
RNG = np.random.default_rng(1)
P = np.array([0.5, 0.3, 0.2])
ARMS = RNG.choice(3, N, p=P)
REWARDS = (RNG.random(N) < np.array([0.2, 0.5, 0.7])[ARMS]).astype(float)
CONTEXTS = RNG.uniform(-1, 1, (N, 2))
LOG = {"arm": ARMS, "reward": REWARDS, "propensity": P[ARMS]}


@pytest.fixture(autouse=True)
def _state(monkeypatch, tmp_path):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))


# Formats -----------------------------------------------------------------------------------------


def test_tables_and_files_of_one_log_tell_one_value(tmp_path):
    frame, expected = pd.DataFrame(LOG), evaluate(LOG, 1)
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    renamed = frame.rename(columns={"arm": "a", "reward": "r", "propensity": "p"})
    logs = [frame, pa.Table.from_pandas(frame), tmp_path / "log.csv", tmp_path / "log.parquet"]
    found = [evaluate(log, 1) for log in logs]
    found.append(evaluate(renamed, 1, arm="a", reward="r", propensity="p"))
    assert [one.to_dict() for one in found] == [expected.to_dict()] * 5
    assert expected.value == REWARDS[ARMS == 1].mean()


def test_a_cell_that_is_no_number_is_found(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,propensity\n1,1,.5\nx,0,.5\n0,much,.5\n")
    with pytest.raises(ArgumentError, match=r"got text in row 2$"):
        evaluate(path, "1")
    path.write_bytes(path.read_bytes() + b"\xff")
    with pytest.raises(ArgumentError, match="UTF-8"):
        evaluate(path, "1")
    (tmp_path / "log.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ArgumentError, match="something else on line 1"):
        evaluate(tmp_path / "log.json", "1")
    with pytest.raises(ArgumentError, match="features must"):
        evaluate(LOG, 1, features=[])


def test_arms_may_have_names():
    named = {**LOG, "arm": np.array(["tea", "coffee", "water"])[ARMS]}
    assert evaluate(named, "coffee").value == evaluate(LOG, 1).value
    with pytest.raises(ArgumentError, match="the log's arms are 'coffee', 'tea', 'water'"):
        evaluate(named, "milk")


def events(**changes):
    """Lines as a decision service of Vowpal Wabbit writes them: the drawn action comes first."""
    context = {
        "User": [{"timeofday": "Morning"}],
        "_multi": [{"_tag": t, "i": {"constant": 1, "id": t}} for t in ("Latte", "Tea", "Mocha")],
    }
    drawn = [(3, 0.05, -0.0), (1, 0.8999999761581421, -1.0), (2, 0.05000000074505806, -1.0)]
    lines = ["[1,2,3]\n"]
    for number, (action, p, cost) in enumerate(drawn):
        others = [a for a in (1, 2, 3) if a != action]
        every = {1: 0.9, 2: 0.05, 3: 0.05}
        event = {
            "_label_cost": cost,
            "_label_probability": p,
            "_label_Action": action,
            "_labelIndex": action - 1,
            "o": [{"v": -cost, "EventId": f"e{number}", "ActionTaken": False}],
            "Timestamp": "2024-02-04T16:31:29.2460000Z",
            "Version": "1",
            "EventId": f"e{number}",
            "a": [action, *others],
            "c": context,
            "p": [every[a] for a in (action, *others)],
            "VWState": {"m": "ff07/550c"},
            "_original_label_cost": cost,
        }
        lines.append(json.dumps({**event, **changes}) + "\n")
    lines.append('{"RewardValue":1.0,"EnqueuedTimeUtc":"2024-02-05T00:00:00Z","EventId":"lost"}\n')
    return lines


def kind(context):
    return [one["_tag"] for one in context["_multi"]].index("Latte")


@pytest.mark.filterwarnings("ignore:The effective sample", "ignore:The mean weight")
def test_lines_of_vowpal_wabbit_are_decisions(tmp_path):
    path = tmp_path / "log.dsjson"
    path.write_text("".join(events()))
    found = evaluate(path, [0.5, 0.25, 0.25], estimator="IPS")
    expected = (0.5 / 0.8999999761581421 + 0.25 / 0.05000000074505806) / 3
    assert found.value == pytest.approx(expected, abs=1e-9)
    assert found.diagnostics.n == 3
    assert evaluate(path, kind).value == 1.0  # the function gets what stands in "c"
    q = [0.5, 0.5, 0.5]
    cab = evaluate(path, [0.5, 0.25, 0.25], estimator="CAB", clip=2.0, q=q)
    lost = 2 * (0.25 - 2 * 0.05)
    rewarded = 0.5 / 0.8999999761581421 + 2.0
    assert cab.value == pytest.approx(rewarded / 3 + 0.5 * lost, abs=1e-6)


def test_decisions_that_were_not_carried_out_are_left_out(tmp_path):
    path = tmp_path / "log.dsjson"
    path.write_text("".join(events() * 40 + events(_skipLearn=True)[1:2]))
    with pytest.warns(UserWarning, match=r"Rows left out \(not recorded\): 1"):
        assert evaluate(path, [0.9, 0.05, 0.05]).diagnostics.n == 120


@pytest.mark.parametrize(
    "changes",
    [{"a": [1, 1, 2]}, {"p": [0.5, 0.5]}, {"_label_probability": 0.5}, {"c": 1, "p": "x"}],
)
def test_other_lines_are_refused_without_their_entries(tmp_path, changes):
    path = tmp_path / "log.dsjson"
    path.write_text("".join(events(**changes)))
    with pytest.raises(ArgumentError, match="got something else on line 2 of"):
        evaluate(path, 0)


def test_slots_and_uneven_dropping_are_refused(tmp_path):
    path = tmp_path / "log.dsjson"
    path.write_text('{"Timestamp":"2024","_outcomes":[{"_label_cost":0}],"c":{}}\n')
    with pytest.raises(ArgumentError, match="several slots on line 1"):
        evaluate(path, 0)
    path.write_text("".join(events() + events(pdrop=0.5)))
    with pytest.raises(ArgumentError, match=r"the same value of .pdrop."):
        evaluate(path, 0)


# Logs of decisions -------------------------------------------------------------------------------


def play(policy, folder, rounds, *, cancel=(), reload=None):
    """Log decisions of a policy; draws that a pull repeats are counted by the policy's own rule."""
    for i in range(rounds):
        decision = policy.pull()
        with dpb.DecisionLog(folder, policy, rewards=True) as log:
            log.write(decision, reward=float(decision.arm == 1))
        if i in cancel:
            policy.cancel(decision)
        else:
            policy.update(float(decision.arm == 1), decision)
        if reload is not None and i % 7 == 6:
            policy.save(reload)
            policy = dpb.load(reload)
    return policy


@pytest.mark.parametrize("reload", [False, True])
def test_rounds_of_one_draw_share_an_episode(tmp_path, reload):
    policy = dpb.Adversarial(3, learner=dpb.parts.EXP3(), horizon=600, batch=5, seed=1, budget=None)
    where = tmp_path / "policy.dpb" if reload else None
    play(policy, tmp_path / "log", 103, cancel={3, 20, 21}, reload=where)
    table = read_logs(tmp_path / "log").sort_values("number")
    drawn = table.groupby("episode", sort=False)
    assert (drawn[["arm", "propensity"]].nunique() == 1).to_numpy().all()
    # A cancelled round is made up for: three more in their episodes, and the last one runs.
    sizes = drawn.size().tolist()
    assert sizes[:5] == [6, 5, 5, 7, 5]
    assert sum(sizes) == 103
    assert set(sizes[5:-1]) == {5}
    assert table["life"].nunique() == (15 if reload else 1)


def test_draws_are_told_apart_while_answers_are_late(tmp_path):
    policy = dpb.Adversarial(
        3, learner=dpb.parts.EXP3(), horizon=600, batch=4, answers_within=9, seed=1, budget=None
    )
    waiting = []
    with dpb.DecisionLog(tmp_path, policy, rewards=True) as log:
        for _ in range(80):
            waiting.append(policy.pull())
            log.write(waiting[-1])
            if len(waiting) > 6:
                decision = waiting.pop(0)
                policy.update(1.0, decision)
                log.write(decision.token, reward=1.0)
    table = read_logs(tmp_path)
    assert table["recorded"].all()
    starts = table["episode"] != table["episode"].shift()
    assert np.flatnonzero(starts).tolist() == list(range(0, 80, 4))
    assert table["episode"].nunique() == 20


def test_episodes_of_a_log_are_counted(tmp_path):
    policy = dpb.Adversarial(2, learner=dpb.parts.EXP3(), horizon=400, batch=4, seed=1, budget=None)
    play(policy, tmp_path / "log", 200)
    found = evaluate(tmp_path / "log", 1)
    assert (found.diagnostics.n, found.diagnostics.episodes) == (200, 50)
    assert evaluate(read_logs(tmp_path / "log"), 1).to_dict() == found.to_dict()
    by_round = evaluate(tmp_path / "log", 1, episode="number")
    assert by_round.diagnostics.episodes == 200


def test_a_log_without_draws_asks_for_them(tmp_path):
    policy = dpb.Adversarial(2, learner=dpb.parts.EXP3(), horizon=400, batch=1, seed=1, budget=None)
    play(policy, tmp_path / "log", 60)
    table = read_logs(tmp_path / "log")
    for log in (table.drop(columns="episode"), table.assign(episode=None)):
        with pytest.raises(ArgumentError, match="episode='number'"):
            evaluate(log, 1)
        assert evaluate(log, 1, episode="number").value == evaluate(table, 1).value


def test_folders_of_an_earlier_version_have_no_episodes(tmp_path):
    policy = dpb.Adversarial(2, learner=dpb.parts.EXP3(), horizon=400, batch=1, seed=1, budget=None)
    play(policy, tmp_path / "log", 5)
    old = tmp_path / "old"
    old.mkdir()
    whole = pa.concat_tables(map(pa.parquet.read_table, sorted((tmp_path / "log").iterdir())))
    pa.parquet.write_table(whole.drop(["episode"]), old / FILE.format("1-a", 0))
    assert read_logs(old)["episode"].isna().all()
    assert read_logs(old)["arm"].tolist() == read_logs(tmp_path / "log")["arm"].tolist()


def test_policies_that_do_not_draw_show_nothing_of_others(tmp_path):
    policy = dpb.bandit(2, budget=dpb.ZCDP(0.5), seed=1)
    play(policy, tmp_path / "log", 100)
    with pytest.raises(ArgumentError, match=r"propensity 1 in \d+ of 100 rows"):
        evaluate(tmp_path / "log", 1)


def test_held_out_people_show_what_every_target_would_earn(tmp_path):
    """Arm 1 earns 1, arm 0 nothing; a mean over rows of the holdout is computed by hand."""
    policy = dpb.bandit(2, budget=dpb.ZCDP(0.5), holdout=0.3, seed=1)
    with dpb.DecisionLog(tmp_path, policy, rewards=True) as log:
        for _ in range(300):
            decision = policy.pull()
            log.write(decision, reward=float(decision.arm))
            policy.update(float(decision.arm), decision)
    with pytest.raises(ArgumentError, match="held_out=True"):
        evaluate(tmp_path, 0)
    rows = read_logs(tmp_path)
    own = rows[rows["held_out"]]
    found = evaluate(tmp_path, 1, estimator="IPS", held_out=True)
    assert found.value == pytest.approx((own["reward"] / 0.5).mean(), rel=1e-12)
    assert found.diagnostics.n == len(own) < len(rows)
    assert not any("left out" in one for one in found.breaks)
    unknown = rows.assign(held_out=rows["held_out"].astype(object).where(rows["held_out"], None))
    assert evaluate(unknown, 1, held_out=True).diagnostics.n == len(own)
    for nobody in (False, None):
        with pytest.raises(ArgumentError, match="has no held-out people"):
            evaluate(rows.assign(held_out=nobody), 1, held_out=True)


def test_policies_without_a_formula_of_their_propensity_are_refused(tmp_path):
    policy = dpb.papers.others.DPTS(2, budget=dpb.PureDP(1.0), horizon=100, seed=1)
    play(policy, tmp_path / "log", 20)
    unknown = read_logs(tmp_path / "log")["propensity"].isna().sum()
    assert unknown > 10
    with pytest.raises(ArgumentError, match=f"got none in {unknown} of 20 rows"):
        evaluate(tmp_path / "log", 1)


def test_rows_that_were_not_recorded_are_left_out(tmp_path):
    recorded = np.arange(N) % 4 != 0
    with pytest.warns(UserWarning, match=r"Rows left out \(not recorded\): 100"):
        found = evaluate({**LOG, "recorded": recorded}, 1)
    kept = {name: one[recorded] for name, one in LOG.items()}
    assert found.value == evaluate(kept, 1).value
    assert found.diagnostics.left_out == (("not recorded", 100),)
    missing = np.where(np.arange(N) < 10, np.nan, REWARDS)
    with pytest.warns(UserWarning, match=r"Rows left out \(without a reward\): 10"):
        assert evaluate({**LOG, "reward": missing}, 1).diagnostics.n == N - 10


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.5])
def test_propensities_outside_of_their_range_are_refused(wrong):
    bad = np.where(np.arange(N) == 7, wrong, LOG["propensity"])
    with pytest.raises(ArgumentError, match=r"numbers in \(0, 1\], got another number in row 7"):
        evaluate({**LOG, "propensity": bad}, 1)


def test_an_unknown_propensity_is_refused():
    bad = np.where(np.arange(N) < 3, np.nan, LOG["propensity"])
    with pytest.raises(ArgumentError, match="got none in 3 of 400 rows"):
        evaluate({**LOG, "propensity": bad}, 1)


def test_a_propensity_of_1_is_valid_only_where_the_target_agrees():
    sure = {**LOG, "propensity": np.where(ARMS == 1, 1.0, P[ARMS])}
    assert evaluate(sure, 1).diagnostics.largest_weight == 1.0
    with pytest.raises(ArgumentError, match="propensity 1 in"):
        evaluate(sure, 2)
    with pytest.raises(ArgumentError, match="propensity 1 in"):
        evaluate(sure, [0.0, 0.9, 0.1])


def test_a_target_that_never_agrees_is_refused():
    with pytest.raises(ArgumentError, match="in at least one row, got none"):
        evaluate(LOG, 3)


def test_bounds_that_the_log_exceeds_are_refused():
    with pytest.raises(ArgumentError, match="400 of 400 rewards lie outside of it"):
        evaluate({**LOG, "reward": REWARDS + 2}, 1)
    assert evaluate({**LOG, "reward": REWARDS + 2}, 1, reward_range=(2, 3)).value > 2
    with pytest.raises(ArgumentError, match="largest_weight must be at least"):
        evaluate(LOG, 2, largest_weight=4.9)
    wide = evaluate(LOG, 2, largest_weight=20)
    assert wide.high - wide.low > evaluate(LOG, 2).high - evaluate(LOG, 2).low


def test_missing_overlap_in_one_corner_is_flagged():
    rng = np.random.default_rng(3)
    n = 3000
    corner = rng.random(n) < 0.2
    drawn = (rng.random(n) < 0.5).astype(int)
    for blind in (False, True):
        # In the corner the log plays arm 0 only, and logs what it would have drawn elsewhere.
        arms = np.where(corner & blind, 0, drawn)
        log = {"arm": arms, "reward": 0.5 + 0.0 * arms, "propensity": np.full(n, 0.5)}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = evaluate(log, 1)
        assert found.diagnostics.overlap_is_missing == blind
        assert any("mean weight" in str(one.message) for one in told) == blind
        assert any("mean weight" in one for one in found.breaks) == blind
    # Where all propensities are known, exactly so.
    every = np.where(corner[:, None], [1.0, 0.0], [0.5, 0.5])
    log = {"arm": np.where(corner, 0, drawn), "reward": np.full(n, 0.5)}
    kept = {name: one[~corner] for name, one in log.items()}
    assert evaluate(kept, 1, propensities=[0.5, 0.5]).diagnostics.support == 1.0
    with pytest.raises(ArgumentError, match=f"propensity 1 in {corner.sum()} of"):
        evaluate(log, 1, propensities=every)
    third = np.where(corner[:, None], [0.5, 0.0, 0.5], [0.4, 0.3, 0.3])
    arms = np.array([rng.choice(3, p=p) for p in third])
    with pytest.warns(UserWarning, match="without support"):
        found = evaluate({"arm": arms, "reward": np.full(n, 0.5)}, 1, propensities=third)
    assert found.diagnostics.support == pytest.approx((~corner).mean())


def test_propensities_of_all_arms_must_agree_with_the_log():
    assert evaluate(LOG, 1, propensities=P).value == evaluate(LOG, 1).value
    with pytest.raises(ArgumentError, match=r"propensities must agree .* got another value in row"):
        evaluate(LOG, 1, propensities=[0.3, 0.5, 0.2])
    with pytest.raises(ArgumentError, match="add up to 1"):
        evaluate(LOG, 1, propensities=[0.3, 0.5, 0.3])


# Targets -----------------------------------------------------------------------------------------


def test_ways_to_name_a_target_agree():
    log = {**LOG, "x": list(CONTEXTS)}
    expected = evaluate(LOG, 1).value
    table = np.eye(3)[np.ones(N, int)]
    for target in (np.int64(1), [0, 1, 0], table, lambda x: 1, lambda x: np.array([0.0, 1.0, 0.0])):
        assert evaluate(log, target, features="x").value == expected
    policy = dpb.bandit(3, budget=None, seed=1)
    for _ in range(200):
        decision = policy.pull()
        policy.update(float(decision.arm == 1), decision)
    assert policy.chooser().choose() == 1
    assert evaluate(LOG, policy).value == evaluate(LOG, policy.chooser()).value == expected


def test_policies_see_the_contexts_of_the_log():
    policy = dpb.bandit(3, budget=None, features=2, horizon=1000, seed=1)
    for one in CONTEXTS[:200]:
        shown = 0.5 * np.array([one, -one, [one[1], one[0]]])
        decision = policy.pull(shown)
        policy.update(0.5 + 0.5 * shown[decision.arm, 0], decision)
    shown = 0.5 * np.stack([CONTEXTS, -CONTEXTS, CONTEXTS[:, ::-1]], axis=1)
    chooser = policy.chooser()
    arms = np.array([chooser.choose(one) for one in shown])
    assert len(set(arms)) > 1
    expected = evaluate(LOG, np.eye(3)[arms]).value
    assert evaluate(LOG, policy, features=shown).value == expected


def test_names_of_a_policy_are_those_of_the_log():
    policy = dpb.bandit(["water", "tea", "coffee"], budget=None, seed=1)
    for _ in range(100):
        decision = policy.pull()
        policy.update(float(decision.name == "coffee"), decision)
    named = {**LOG, "arm": np.array(["tea", "coffee", "water"])[ARMS]}
    assert evaluate(named, policy).value == evaluate(named, "coffee").value


def test_a_seed_repeats_the_draws_of_a_policy():
    policy = dpb.Adversarial(3, learner=dpb.parts.EXP3(), horizon=600, batch=5, budget=None)
    hidden = dpb.bandit(
        3, dpb.ZCDP(1.0), features=2, protects="contexts and rewards", horizon=600, seed=1
    )
    shown = np.stack([CONTEXTS, -CONTEXTS, CONTEXTS[:, ::-1]], axis=1)
    for one, contexts in ((policy, None), (hidden, shown)):
        found = [evaluate(LOG, one, features=contexts, seed=s).value for s in (0, 0, 1)]
        assert found[0] == found[1] != found[2]
    assert policy.chooser().take is hidden.chooser().take  # its own draws stay secret
    drawn = {tuple(policy.chooser().choose() for _ in range(64)) for _ in range(2)}
    assert len(drawn) == 2


def test_a_target_of_these_rewards_is_warned_of():
    table = np.eye(3)[np.where(REWARDS > 0, ARMS, (ARMS + 1) % 3)]
    found = evaluate(LOG, table)
    assert found.low > max(evaluate(LOG, a).value for a in range(3))  # overfitted
    said = "must not come from the rewards of this log"
    assert any(f"The target {said}" in one for one in found.breaks)
    for given, subject in (([0.2, 0.5, 0.7], "The target and q"), (None, "The target")):
        own = evaluate(LOG, 1, estimator="DR", q=given).breaks
        assert any(one.startswith(f"{subject} {said}") for one in own)


def test_targets_that_name_no_arm_are_refused():
    for target in (
        -1,
        True,
        "9" * 5000,
        "1.5",
        lambda x: 0.5,
        lambda x: None,
        [0.5, 0.6],
        np.ones((N - 1, 3)) / 3,
    ):
        with pytest.raises(ArgumentError, match=r"^target must"):
            evaluate(LOG, target)


# Results -----------------------------------------------------------------------------------------


def test_results_say_that_they_are_not_private():
    found = evaluate(LOG, 1)
    assert isinstance(found, Evaluation)
    said = "This result is not private."
    assert "not private" in repr(found)
    assert said in str(found)
    assert said in found._repr_html_()
    assert found.to_dict()["private"] is False
    assert said in found.to_dict()["breaks"][0]
    assert "budget of the bandit" in str(found)


def test_results_are_data():
    found = evaluate(LOG, 1)
    told = json.loads(json.dumps(found.to_dict()))
    assert told["value"] == found.value
    assert told["diagnostics"]["n"] == N
    (row,) = found.frame.to_dict("records")
    assert (row["low"], row["episodes"], row["left_out"]) == (found.low, N, 0)
    assert math.isfinite(row["effective_sample_size"])


def test_a_column_of_numbers_is_one_feature():
    rng = np.random.default_rng(2)
    log = {"arm": rng.integers(0, 2, 200), "reward": rng.random(200), "propensity": [0.5] * 200}
    log["age"] = rng.random(200)

    def target(context):
        assert context.shape == (1,)
        return int(context[0] > 0.5)

    for features in ("age", ["age"]):
        assert dpb.evaluate(log, target, features=features).diagnostics.n == 200
