"""Decision logs: one row for each decision, whatever was written when, and by whom."""

from __future__ import annotations

import gc
import math
import os
import re
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import dpbandits as dpb
from dpbandits import ZCDP, ArgumentError, DecisionLog, fit_logs
from dpbandits.algorithms import LinearIMED, MergedIMED
from dpbandits.errors import UpdateError
from dpbandits.logs import read_logs
from dpbandits.logs.folders import COLUMNS


def test_what_a_policy_decided_is_written_and_can_be_learned_from(tmp_path):
    policy = LinearIMED(3, 2, budget=ZCDP(1.0), horizon=100, seed=1)
    contexts = np.random.default_rng(1).uniform(-0.7, 0.7, (25, 3, 2))
    arms = []
    with DecisionLog(tmp_path, policy, rewards=True, features=True, rows=10) as log:
        for i in range(25):
            decision = policy.pull(contexts[i])
            policy.update(1.0, decision)
            arms.append(decision.arm)
            log.write(decision, reward=1.0, contexts=contexts[i], at=float(i))
            assert len(list(tmp_path.iterdir())) == (i + 1) // 10
    table = pd.read_parquet(tmp_path)
    assert table["arm"].tolist() == arms
    assert table["number"].tolist() == table["time"].tolist() == list(range(25))
    assert np.array([list(map(list, one)) for one in table["features"]]) == pytest.approx(contexts)
    other = LinearIMED(3, 2, budget=None, horizon=100)
    given = np.array([list(map(list, one)) for one in table["features"]])
    assert fit_logs(other, table, features=given).used.sum() == 25


def test_a_second_log_in_a_folder_goes_on(tmp_path):
    policy = MergedIMED(2, budget=None)
    for _ in range(2):
        with DecisionLog(tmp_path, policy) as log:
            log.write(policy.pull())
    table = pd.read_parquet(tmp_path)
    assert table["number"].tolist() == [0, 1]
    assert table["reward"].isna().all()


def test_logs_hold_no_more_than_they_were_made_for(tmp_path):
    policy = MergedIMED(2, budget=None)
    log = DecisionLog(tmp_path, policy)
    with pytest.raises(ArgumentError, match="reward must not be given"):
        log.write(policy.pull(), reward=1.0)
    hidden = dpb.algorithms.LinUCBJDP(2, 1, budget=ZCDP(1.0), horizon=100)
    with pytest.raises(ArgumentError, match="features must be False"):
        DecisionLog(tmp_path, hidden, features=True)
    log.flush()
    assert not list(tmp_path.iterdir())


def test_a_decision_log_of_two_writers_is_read_back(tmp_path):
    policy, world = dpb.algorithms.LinUCB(3, 2), np.random.default_rng(1)
    logs = [dpb.DecisionLog(tmp_path, policy, rewards=True, features=True, rows=7) for _ in "ab"]
    for i in range(60):
        shown = world.uniform(-0.5, 0.5, (3, 2))
        decision = policy.pull(shown)
        policy.update(0.5, decision)
        logs[i % 2].write(decision, reward=0.5, contexts=shown)
    for log in logs:
        log.flush()
    (tmp_path / ".decisions-draft.parquet").write_bytes(b"left by a crash")
    frame = pd.read_parquet(tmp_path)
    assert sorted(frame["number"]) == list(range(60))
    assert fit_logs(dpb.algorithms.LinUCB(3, 2), frame, features="features").used.sum() == 60


# One row for each decision -----------------------------------------------------------------------


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize("by_token", [False, True])
def test_what_is_written_later_completes_what_was_written_before(tmp_path, flushed, by_token):
    policy = MergedIMED(2, budget=None, arm_names=["no", "yes"])
    decisions = [policy.pull() for _ in range(4)]
    log = DecisionLog(tmp_path, policy, rewards=True)
    for decision in decisions:
        log.write(decision, at=float(decision.number))
    if flushed:
        log.flush()
    for decision in reversed(decisions[1:]):
        log.write(decision.token if by_token else decision, reward=0.25 * decision.number, at=99.0)
    log.flush()
    assert len(list(tmp_path.iterdir())) == 1 + flushed
    found = read_logs(tmp_path)
    assert list(found.columns) == list(COLUMNS)
    assert found["number"].tolist() == found["time"].tolist() == [0, 1, 2, 3]
    assert math.isnan(found["reward"][0])
    assert found["reward"].tolist()[1:] == [0.25, 0.5, 0.75]
    assert math.isnan(found["answered"][0])
    assert found["answered"].tolist()[1:] == [99.0] * 3
    assert found["arm"].tolist() == [one.arm for one in decisions]
    assert found["name"].tolist() == [one.name for one in decisions]
    assert found["recorded"].all()


def test_the_last_reward_of_a_decision_counts(tmp_path):
    policy = MergedIMED(2, budget=None)
    decision = policy.pull()
    log = DecisionLog(tmp_path, policy, rewards=True)
    for reward in (0.0, 0.5, math.nan, 1.0):
        log.write(decision, reward=reward)
        log.write(decision)  # which takes nothing back
        if reward == 0.5:
            log.flush()
    log.flush()
    assert read_logs(tmp_path)["reward"].tolist() == [1.0]


def test_a_folder_is_one_table_whatever_its_logs_were_made_for(tmp_path):
    plain = MergedIMED(2, budget=None)
    linear = dpb.algorithms.LinUCB(3, 2)
    shown = np.full((3, 2), 0.5)
    for policy, options, given in (
        (plain, {}, {}),
        (plain, {"rewards": True}, {"reward": 0.5}),
        (linear, {"features": True}, {"contexts": shown}),
        (linear, {"features": True, "rewards": True}, {"contexts": shown, "reward": 1.0}),
    ):
        with DecisionLog(tmp_path, policy, **options) as log:
            log.write(policy.pull(*([shown] if policy is linear else [])), **given)
    by_pandas = pd.read_parquet(tmp_path)
    assert list(by_pandas.columns) == list(COLUMNS)
    assert by_pandas["reward"].tolist()[1::2] == [0.5, 1.0]
    assert by_pandas["reward"].isna().tolist() == [True, False, True, False]
    kinds = {parquet.read_schema(path).remove_metadata() for path in tmp_path.iterdir()}
    assert len(kinds) == 1
    assert read_logs(tmp_path)["number"].tolist() == [0, 1, 0, 1]


def test_lives_of_a_policy_do_not_collide(tmp_path):
    """The log of each has its name."""
    folder, path = tmp_path / "log", tmp_path / "policy.dpb"
    policy = MergedIMED(2, budget=ZCDP(1.0), seed=1)
    policy.pull()
    policy.save(path)
    first = DecisionLog(folder, policy)
    first.write(policy.pull())
    first.flush()
    del policy  # a crash; the log, which is still there, does not keep the policy from being loaded
    policy = dpb.load(path)
    with DecisionLog(folder, policy) as second:
        second.write(policy.pull())
    found = read_logs(folder)
    assert found["number"].tolist() == [1, 2]
    assert found["life"].nunique() == 2
    with pytest.raises(UpdateError, match="must come from the policy of this log"):
        first.write("x")


def test_folders_of_earlier_versions_are_read(tmp_path):
    """Their files have fewer columns, other ones in each log, and no lives."""
    old = {"number": [0, 1, 1], "time": [0.0, 1.0, 2.0], "arm": [0, 1, 1]}
    old |= {"propensity": [1.0, None, None], "recorded": [True] * 3}
    table = pa.table(old)
    parquet.write_table(
        table, tmp_path / "decisions-00000000000000000001-aaaaaaaa-00000000.parquet"
    )
    table = table.append_column("reward", pa.array([0.5, None, 1.0]))
    parquet.write_table(
        table, tmp_path / "decisions-00000000000000000002-bbbbbbbb-00000000.parquet"
    )
    found = read_logs(tmp_path)
    assert list(found.columns) == list(COLUMNS)
    assert found["number"].tolist() == [0, 1, 0, 1]
    assert found["reward"].tolist()[2:] == [0.5, 1.0]
    policy = MergedIMED(2, budget=ZCDP(1.0), seed=1)
    fitted = fit_logs(policy, tmp_path)
    assert (fitted.used + fitted.left).tolist() == [2, 2]


def test_rewards_without_their_decisions_are_left_out_and_counted(tmp_path, caplog):
    policy = MergedIMED(2, budget=None)
    log = DecisionLog(tmp_path, policy, rewards=True)
    for i in range(6):
        decision = policy.pull()
        if i != 3:  # which a crash has lost
            log.write(decision)
        log.write(decision.token, reward=1.0)
        log.flush()
    assert read_logs(tmp_path)["number"].tolist() == [0, 1, 2, 4, 5]
    assert "1 rewards of a log of decisions were left out" in caplog.text


def test_a_cancelled_decision_is_not_recorded(tmp_path):
    policy = MergedIMED(2, budget=None, seed=1)
    with DecisionLog(tmp_path, policy) as log:
        first, second, third = (policy.pull() for _ in range(3))
        for decision in (first, second, third):
            log.write(decision)
        log.write(first, cancelled=True)
        log.flush()
        log.write(second.token, cancelled=True)
    found = read_logs(tmp_path)
    assert found["recorded"].tolist() == [False, False, True]
    assert found["arm"].tolist() == [first.arm, second.arm, third.arm]
    assert [one.stat().st_mode & 0o777 for one in tmp_path.iterdir()] == [0o600] * 2


# What is not accepted ----------------------------------------------------------------------------


def test_what_a_file_could_not_hold_is_refused_at_once(tmp_path):
    policy, other = (
        LinearIMED(3, 2, budget=None, horizon=9),
        LinearIMED(3, 2, budget=None, horizon=9),
    )
    shown = np.full((3, 2), 0.5)
    log = DecisionLog(tmp_path, policy, rewards=True, features=True)
    decision = policy.pull(shown)
    foreign = other.pull(shown)
    for given, options, told in (
        (decision, {"contexts": 0.5}, "contexts must be a table"),
        (decision, {"contexts": [[0.5, 0.5], [0.5]]}, "contexts must be a table"),
        (decision, {"contexts": [["a", "b"]] * 3}, "contexts .*must hold numbers"),
        (decision, {"contexts": [[0.5, math.nan]] * 3}, "contexts .*must hold numbers"),
        (decision, {"contexts": np.full((3, 3), 0.5)}, "contexts must have the shape that pull"),
        (decision, {"contexts": np.full((4, 2), 0.5)}, "contexts must have the shape that pull"),
        (decision, {"contexts": [0.5, 0.5]}, "contexts must have the shape that pull"),
        (decision, {"reward": "0.77"}, "reward must be a number that update"),
        (decision, {"reward": 0.77j}, "reward must be a number that update"),
        (decision, {"reward": [0.77]}, "reward must be a number that update"),
        (decision, {"at": math.nan}, "at must be a number"),
        (decision, {"at": "now"}, "at must be a number"),
        (decision.arm, {}, "decision must be a decision of pull"),
        (None, {}, "decision must be a decision of pull"),
        (decision.token, {}, "a token does not name the arm"),
        (decision.token, {"contexts": shown, "reward": 1.0}, "a token does not name the arm"),
    ):
        with pytest.raises(ArgumentError, match=told) as error:
            log.write(given, **options)
        assert "77" not in str(error.value)
        assert str(error.value).startswith(str(error.value.argument))
    for given in (foreign, foreign.token, "x", decision.token.swapcase()):
        with pytest.raises(UpdateError, match="decision must come from this policy"):
            log.write(given, reward=1.0)
    log.flush()
    assert not list(tmp_path.iterdir())
    log.write(decision, contexts=shown[: decision.arm + 1], reward=1.0)
    log.flush()
    assert len(read_logs(tmp_path)) == 1


def test_advice_and_single_vectors_are_written_as_pull_takes_them(tmp_path):
    advised = dpb.algorithms.EXP4(3, 2, budget=None, horizon=10)
    one = LinearIMED(3, 2, budget=None, horizon=9, models="disjoint")
    for policy, shown in ((advised, np.full((2, 3), 1 / 3)), (one, np.array([0.5, 0.25]))):
        with DecisionLog(tmp_path / type(policy).__name__, policy, features=True) as log:
            log.write(policy.pull(shown), contexts=shown)
            with pytest.raises(ArgumentError, match="contexts must have the shape that pull"):
                log.write(policy.pull(shown), contexts=np.full((4, 4), 0.25))
        (found,) = read_logs(log.folder)["features"]
        assert np.array([list(row) for row in found]).squeeze().tolist() == shown.tolist()


def test_a_file_that_cannot_be_written_loses_nothing(tmp_path):
    policy = MergedIMED(2, budget=None)
    folder = tmp_path / "log"
    log = DecisionLog(folder, policy, rows=2)
    log.write(policy.pull())
    folder.rmdir()
    decision = policy.pull()
    with pytest.raises(OSError, match="No such file"):
        log.write(decision)
    folder.mkdir()
    log.write(decision)
    assert read_logs(folder)["number"].tolist() == [0, 1]
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("content", [None, b"no table"])
def test_a_folder_without_a_log_or_with_a_damaged_one_is_named(tmp_path, content):
    if content is not None:
        (tmp_path / "decisions-00000000000000000001-aaaaaaaa-00000000.parquet").write_bytes(content)
    with pytest.raises(ArgumentError, match="folder must"):
        read_logs(tmp_path)
    with pytest.raises(ArgumentError, match="frame must"):
        fit_logs(MergedIMED(2, budget=None), tmp_path)


def a_file(tmp_path, **columns):
    plain = {"number": [0, 1], "time": [0.0, 1.0], "arm": [0, 1], "recorded": [True] * 2}
    table = pa.table({**plain, "life": ["a"] * 2, "reward": [0.5] * 2, **columns})
    path = tmp_path / "decisions-00000000000000000001-aaaaaaaa-00000000.parquet"
    parquet.write_table(
        table.drop_columns([name for name in columns if columns[name] is None]), path
    )
    return path


@pytest.mark.parametrize(
    ("columns", "got"),
    [
        ({"reward": ["777.25"] * 2}, "one whose column 'reward' is not as"),
        ({"reward": ["SECRET777"] * 2}, "one whose column 'reward' is not as"),
        ({"arm": ["777"] * 2}, "one whose column 'arm' is not as"),
        ({"arm": [0.5, 777.25]}, "one whose column 'arm' is not as"),
        ({"reward": pa.array([777, 1], pa.timestamp("s"))}, "one whose column 'reward' is not as"),
        ({"time": [[777.25]] * 2}, "one whose column 'time' is not as"),
        ({"features": ["777"] * 2}, "one whose column 'features' is not as"),
        ({"number": [0, None]}, "one whose rows lack a life or number"),
        ({"life": [None, None]}, "one whose rows lack a life or number"),
    ],
)
def test_a_file_that_was_written_anew_is_named_and_its_cells_are_not(tmp_path, columns, got):
    path = a_file(tmp_path, **{name: pa.array(column) for name, column in columns.items()})
    for read in (read_logs, lambda folder: fit_logs(MergedIMED(2, budget=None), folder)):
        with pytest.raises(ArgumentError, match=re.escape(got)) as error:
            read(tmp_path)
        assert str(error.value).endswith(f": {path}")
        assert "777" not in str(error.value).removesuffix(str(path))


def test_other_numbers_in_a_file_are_read(tmp_path):
    a_file(tmp_path, number=pa.array([0, 1], pa.int32()), reward=[True, False])
    assert read_logs(tmp_path)["reward"].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("name", ["number", "arm"])
def test_a_file_without_a_column_that_tells_decisions_apart_is_refused(tmp_path, name):
    path = a_file(tmp_path)
    parquet.write_table(parquet.read_table(path).drop_columns([name]), path)
    with pytest.raises(ArgumentError, match=f"one without the column '{name}': "):
        read_logs(tmp_path)


def test_a_bit_of_a_reward_that_was_flipped_is_noticed(tmp_path):
    policy, rewards = MergedIMED(2, budget=None), np.random.default_rng(1).random(20)
    with DecisionLog(tmp_path, policy, rewards=True) as log:
        for reward in rewards:
            log.write(policy.pull(), reward=reward)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    for reward in rewards[[3, 10, 17]]:  # the file's statistics hold the least and the largest
        at = content.index(reward.tobytes()) + 3
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x04]) + content[at + 1 :])
        with pytest.raises(ArgumentError, match=f"a damaged one: {path}"):
            read_logs(tmp_path)


def test_a_folder_that_is_none_is_named(tmp_path):
    policy, frame = MergedIMED(2, budget=None), pd.DataFrame({"reward": [777.25]})
    for call in (lambda: DecisionLog(frame, policy), lambda: read_logs(frame)):
        with pytest.raises(
            ArgumentError, match=r"^folder must be the path of a folder, got DataFrame$"
        ):
            call()
    file = tmp_path / "file"
    file.write_text("")
    for path in (file, file / "within"):
        with pytest.raises(ArgumentError, match=r"^folder must be a folder.* got a file: "):
            DecisionLog(path, policy)


# The end of a process ----------------------------------------------------------------------------


def run(script: str, folder) -> subprocess.CompletedProcess[str]:
    lines = f"import dpbandits as dpb, os, sys, multiprocessing\nfolder = {str(folder)!r}\n"
    given = [sys.executable, "-c", lines + textwrap.dedent(script)]
    return subprocess.run(given, capture_output=True, text=True, env=os.environ, timeout=120)


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise RuntimeError", "policy = log = None"])
def test_rows_are_written_when_a_process_ends_in_order(tmp_path, end):
    ended = run(
        f"""
        policy = dpb.algorithms.MergedIMED(2, budget=None)
        log = dpb.DecisionLog(folder, policy, rewards=True)
        for _ in range(3):
            log.write(policy.pull())
        {end}
        """,
        tmp_path,
    )
    assert "DecisionLog" not in ended.stderr
    assert read_logs(tmp_path)["number"].tolist() == [0, 1, 2]


def test_rows_are_written_when_a_log_is_no_longer_used(tmp_path):
    policy = MergedIMED(2, budget=None)
    DecisionLog(tmp_path, policy).write(policy.pull())
    gc.collect()
    assert len(read_logs(tmp_path)) == 1


@pytest.mark.parametrize(
    "fork",
    [
        "if os.fork() == 0: child(); sys.exit()",
        "if os.fork() == 0: child(); log = None; os._exit(0)",
        "one = multiprocessing.get_context('fork').Process(target=child); one.start(); one.join()",
        "one = multiprocessing.get_context('fork').Process(target=log.write, args=[policy.pull()]);"
        " one.start(); one.join()",
    ],
)
def test_a_fork_writes_its_own_rows_and_leaves_its_parents_to_the_parent(tmp_path, fork):
    ended = run(
        f"""
        policy = dpb.algorithms.MergedIMED(2, budget=None)
        log = dpb.DecisionLog(folder, policy)
        log.write(policy.pull())

        def child():
            log.write(policy.pull())
            log.flush()

        {fork}
        log.write(policy.pull(), at=1.0)
        """,
        tmp_path,
    )
    assert ended.stderr == ""
    assert len(list(tmp_path.iterdir())) == 2
    written, found = pd.read_parquet(tmp_path), read_logs(tmp_path)
    # A pull of the same number is another person's in each of the two.
    assert sorted(written["number"]) == sorted(found["number"])
    assert sorted(written["number"]) in ([0, 1, 1], [0, 1, 2])


def test_a_signal_that_ends_the_process_loses_nothing(tmp_path):
    """Its handler writes and flushes in the midst of another write, or of a file."""
    ended = run(
        """
        import signal
        policy = dpb.algorithms.MergedIMED(2, budget=None)
        log = dpb.DecisionLog(folder, policy, rows=3)
        for _ in range(10):
            log.write(policy.pull())
        last = policy.pull()  # a pull in the handler is refused in the midst of another one

        def stop(*_):
            log.write(last)
            log.flush()
            sys.exit(5)

        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        while True:
            log.write(policy.pull())
        """,
        tmp_path,
    )
    assert (ended.returncode, ended.stderr) == (5, "")
    found = read_logs(tmp_path)["number"].tolist()
    assert set(range(max(found))) <= set(found)


def test_a_fork_completes_what_its_parent_has_decided(tmp_path):
    ended = run(
        """
        policy = dpb.algorithms.MergedIMED(2, budget=None)
        log = dpb.DecisionLog(folder, policy, rewards=True)
        first = policy.pull()
        log.write(first)
        log.flush()
        if os.fork() == 0:
            log.write(first.token, reward=0.25)
            second = policy.pull()
            log.write(second, reward=0.5)
            sys.exit()
        os.wait()
        log.write(policy.pull(), reward=0.75)
        """,
        tmp_path,
    )
    assert ended.stderr == ""
    found = read_logs(tmp_path)
    assert sorted(zip(found["number"], found["reward"], strict=True)) == [
        (0, 0.25),
        (1, 0.5),
        (1, 0.75),
    ]


def test_threads_write_into_one_log(tmp_path):
    policy = MergedIMED(2, budget=None)
    log = DecisionLog(tmp_path, policy, rewards=True, rows=7)

    def serve():
        for _ in range(50):
            decision = policy.pull()
            log.write(decision)
            log.write(decision.token, reward=1.0)

    threads = [threading.Thread(target=serve) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    log.flush()
    found = read_logs(tmp_path)
    assert found["number"].tolist() == list(range(200))
    assert (found["reward"] == 1.0).all()


def test_a_log_tells_who_is_held_out(tmp_path):
    policy = dpb.bandit(2, budget=dpb.ZCDP(0.5), holdout=0.5, seed=1)
    made = []
    with dpb.DecisionLog(tmp_path, policy, rewards=True) as log:
        for _ in range(30):
            made.append(policy.pull())
            log.write(made[-1], reward=1.0)
    found = dpb.logs.read_logs(tmp_path)
    assert found["held_out"].tolist() == [one.held_out for one in made]
    assert set(found["propensity"][found["held_out"]]) == {0.5}
