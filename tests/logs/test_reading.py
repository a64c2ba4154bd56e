"""What a log may hold, and what is said of what it may not: where, and never what stands there."""

from __future__ import annotations

import logging
import math
import re
import warnings
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpbandits as dpb
from dpbandits import ZCDP, ArgumentError, DecisionLog, fit_logs
from dpbandits.algorithms import LinearIMED, MergedIMED
from dpbandits.logs import read_logs
from dpbandits.papers.others import DPTS

N = 40
ARMS = np.arange(N) % 2
SECRET = "777.25"  # of which no message may tell


def fresh(**options):
    return MergedIMED(2, budget=ZCDP(0.5), seed=1, **options)


def learned(policy):
    return policy.session.state.public.estimate.tolist()


def with_one(value, *, rest=0.5, at=7):
    column = [rest] * N
    column[at] = value
    return column


NO_REWARDS = {
    "dates": pd.date_range("2020", periods=N),
    "durations": pd.to_timedelta(np.arange(N), unit="s"),
    "NumPy's dates": np.arange(N).astype("M8[s]"),
    "complex numbers": np.full(N, 1 + 1j),
    "digits": ["0.5"] * N,
    "a date": with_one(pd.Timestamp("2020")),
    "a duration": with_one(timedelta(1)),
    "a complex number": with_one(777.25j),
    "a text": with_one(SECRET),
    "an array": with_one([777.25]),
    "nothing": [None] * N,
    "one too few": [0.5] * (N - 1),
    "two columns": np.full((N, 2), 777.25),
    "Arrow's text": pa.array([SECRET] * N),
}


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("name", NO_REWARDS)
def test_rewards_are_numbers_or_missing(name, private):
    policy = fresh()
    before = str(policy.guarantee)
    with pytest.raises(ArgumentError, match=r"^reward \(column 'paid'\) must ") as error:
        fit_logs(policy, {"arm": ARMS, "paid": NO_REWARDS[name]}, reward="paid", private=private)
    assert "777" not in str(error.value)
    assert error.value.argument == "reward"
    if name in ("a date", "a duration", "a text"):
        assert "row 7" in str(error.value)
    assert (str(policy.guarantee), policy.rounds, policy.ledger.spent()) == (before, 0, None)


@pytest.mark.parametrize(
    "column",
    [
        [0.25, None] * (N // 2),
        [Decimal("0.25"), None] * (N // 2),
        np.ma.masked_array([0.25, 1.0] * (N // 2), mask=[False, True] * (N // 2)),
        pd.array([0.25, None] * (N // 2), dtype="Float64"),
        pa.array([0.25, None] * (N // 2)),
        [0.25, pd.NA] * (N // 2),
    ],
)
def test_what_is_missing_counts_as_the_default_and_is_told(column, caplog):
    policy = fresh(default_reward=0.75)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # which would tell others than the operator
        fit_logs(policy, {"arm": ARMS, "reward": column}, private=False)
    assert learned(policy) == [0.25, 0.75]
    assert "20 of the 40 rewards of the log (50 %) are missing" in caplog.text
    assert policy.diagnostics.missing == N // 2


def test_a_decision_log_without_rewards_is_refused(tmp_path):
    """Whether it was made with them is asked, and not whether there are any."""
    policy = fresh()
    for rewards in (False, True):
        with DecisionLog(tmp_path / str(rewards), policy, rewards=rewards) as log:
            log.write(policy.pull(), reward=1.0 if rewards else None)
    with pytest.raises(ArgumentError, match="frame must be a log with rewards"):
        fit_logs(fresh(), tmp_path / "False")
    assert read_logs(tmp_path / "False")["reward"].isna().all()
    fit_logs(fresh(), tmp_path / "True")


def test_a_few_missing_rewards_are_not_told(caplog):
    fit_logs(fresh(), {"arm": ARMS, "reward": with_one(None)})
    assert not caplog.records


@pytest.mark.parametrize("private", [True, False])
def test_what_is_clipped_is_counted_and_told(private, caplog):
    policy = fresh()
    n = 400
    fit_logs(policy, {"arm": np.arange(n) % 2, "reward": [50.0, 100.0] * (n // 2)}, private=private)
    assert policy.diagnostics.clipped == (policy.rounds if private else n)
    (told,) = [one for one in caplog.records if "clipped" in one.getMessage()]
    assert told.levelno == logging.WARNING


def test_arms_are_read_by_name_where_they_have_names():
    names, by_number = ["no", "yes"], fresh()
    log = {"arm": ARMS, "reward": np.arange(N) / N}
    fit_logs(by_number, log)
    given = [names[a] for a in ARMS]
    for column in (
        given,
        np.array(given),
        pd.Series(given),
        pd.Categorical(given, categories=["yes", "no"]),
        pa.array(given),
        pa.array(given).dictionary_encode(),
    ):
        policy = fresh(arm_names=names)
        fit_logs(policy, {**log, "arm": column})
        assert learned(policy) == learned(by_number)
    policy = fresh(arm_names=names)
    fit_logs(policy, log)  # numbers are taken, too
    assert learned(policy) == learned(by_number)


@pytest.mark.parametrize(
    ("column", "options", "told"),
    [
        (
            with_one(SECRET, rest="no"),
            {"arm_names": ["no", "yes"]},
            r"names of arm_names \('no', 'yes'\);",
        ),
        (
            with_one(1, rest="no"),
            {"arm_names": ["no", "yes"]},
            r"names of arm_names \('no', 'yes'\);",
        ),
        (with_one("no", rest=0), {}, r"whole numbers in \[0, 1\], got text in"),
        (with_one(777.25, rest=0), {}, r"whole numbers in \[0, 1\], got another number in"),
        (with_one(0.5, rest=0), {}, r"whole numbers in \[0, 1\], got another number in"),
        (with_one(-1, rest=0), {}, r"whole numbers in \[0, 1\], got another number in"),
        (with_one(None, rest=0), {}, r"whole numbers in \[0, 1\], got NaN or nothing in"),
        (with_one(math.inf, rest=0), {}, r"whole numbers in \[0, 1\], got an infinite number in"),
    ],
)
def test_other_arms_are_refused_with_their_row(column, options, told):
    policy = fresh(**options)
    with pytest.raises(
        ArgumentError, match=rf"^arm \(column 'group'\) must hold {told}.* row 7"
    ) as error:
        fit_logs(policy, {"group": column, "reward": [0.5] * N}, arm="group")
    assert "777" not in str(error.value)
    assert policy.ledger.spent() is None


@pytest.mark.parametrize("to", [None, "frame", "Arrow", "dict"])
def test_a_decision_log_is_joined_by_names_where_both_sides_have_them(tmp_path, to):
    """Numbers are places in another list."""
    policy = fresh(arm_names=["control", "drug"])
    with DecisionLog(tmp_path, policy, rewards=True) as log:
        for _ in range(N):
            decision = policy.pull()
            log.write(decision, reward=float(decision.name == "drug"))
            policy.update(0.5, decision)
    frame = read_logs(tmp_path)
    ways = {"frame": frame, "Arrow": pa.Table.from_pandas(frame), "dict": frame.to_dict("list")}
    given = ways.get(to, tmp_path)
    alike, swapped, positions = (
        fresh(arm_names=["control", "drug"]),
        fresh(arm_names=["drug", "control"]),
        fresh(),
    )
    for one, means in ((alike, [0.0, 1.0]), (swapped, [1.0, 0.0]), (positions, [0.0, 1.0])):
        assert fit_logs(one, given, private=False).used.sum() == N
        assert learned(one) == means
    other = fresh(arm_names=["drug", "placebo"])
    with pytest.raises(
        ArgumentError, match=r"^arm \(column 'name'\) must hold names of arm_names \('d"
    ):
        fit_logs(other, given)
    assert other.ledger.spent() is None


def test_names_beside_arms_count_in_part_of_a_log_and_other_names_do_not():
    part = {"arm": [0] * 30 + [1] * 10, "reward": [0.5] * N, "name": ["b"] * 30 + [None] * 10}
    swapped = fresh(arm_names=["a", "b"])
    fitted = fit_logs(swapped, part)  # without a name the number counts
    assert (fitted.used + fitted.left).tolist() == [0, N]
    people = {**part, "name": ["Ada", "Emmy"] * (N // 2)}
    fitted = fit_logs(fresh(arm_names=["a", "b"]), people)
    assert (fitted.used + fitted.left).tolist() == [30, 10]
    with pytest.raises(
        ArgumentError, match=r"column 'name'.* row 3 \(from 0\) holds another name$"
    ):
        fit_logs(fresh(arm_names=["a", "b"]), {**part, "name": ["a"] * 3 + ["c"] + ["b"] * 36})
    with pytest.raises(ArgumentError, match=r"^arm .* must have 39 rows, got 40"):
        fit_logs(fresh(arm_names=["a", "b"]), {**part, "name": ["b"] * 39})


@pytest.mark.parametrize("names", [["1", "0"], ["a", "0"], ["True", "False"]])
def test_numbers_that_may_be_names_are_refused(names):
    """``read_csv`` makes numbers of the names '1' and '0'."""
    arms = [name == "True" for name in names * 20] if "True" in names else ARMS
    with pytest.raises(ArgumentError, match=r"^arm \(column 'arm'\) must hold names as text"):
        fit_logs(fresh(arm_names=names), {"arm": arms, "reward": [0.5] * N})
    fit_logs(fresh(arm_names=names), {"arm": names * 20, "reward": [0.5] * N})
    fit_logs(fresh(arm_names=["0", "1"]), {"arm": ARMS, "reward": [0.5] * N})


@pytest.mark.parametrize("to", [list, np.array, pd.Series, pa.array])
@pytest.mark.parametrize("argument", ["arm", "reward", "propensity", "frame", "policy"])
def test_a_column_or_a_frame_in_the_wrong_place_is_not_printed(argument, to):
    column = to([777.25] * N)
    frame = pd.DataFrame({"arm": ARMS, "reward": 0.5})
    if argument == "policy":
        given, options = (frame.assign(x=777.25), fresh()), {}
    else:
        given = fresh(), column if argument == "frame" else frame
        options = {} if argument == "frame" else {argument: column}
    with pytest.raises(ArgumentError, match=f"^{argument} must ") as error:
        fit_logs(*given, **options)
    assert "777" not in str(error.value)
    assert error.value.argument == argument


def test_a_retired_arm_is_refused_with_its_row():
    policy = fresh()
    policy.retire(1)
    log = {"arm": [0] * 9 + [1] * 3, "reward": [0.5] * 12}
    with pytest.raises(
        ArgumentError, match=r"no retired arm, got a retired arm in row 9, and in 2 more"
    ):
        fit_logs(policy, log)


def test_rewards_that_are_not_clipped_are_bounded():
    policy = MergedIMED(2, budget=None, clip=False)
    with pytest.raises(ArgumentError, match=r"reward .* got another number in row 7"):
        fit_logs(policy, {"arm": ARMS, "reward": with_one(1e200)})
    fit_logs(policy, {"arm": ARMS, "reward": with_one(1e90)})


@pytest.mark.parametrize("private", [True, False])
def test_a_log_may_have_no_records(private):
    for policy in (
        fresh(),
        dpb.algorithms.UCB1(2),
        dpb.algorithms.DiscountedIMED(2, budget=None, rounds_per_change=9),
    ):
        fitted = fit_logs(policy, {"arm": [], "reward": []}, private=private)
        assert (fitted.used.tolist(), fitted.left.tolist()) == ([0, 0], [0, 0])
        assert policy.ledger.releases == 0


# Horizons ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda h: LinearIMED(2, 1, budget=ZCDP(1.0), horizon=h, models="disjoint", seed=1),
        lambda h: dpb.algorithms.RSLinearIMED(2, 1, budget=ZCDP(1.0), horizon=h, seed=1),
        lambda h: dpb.algorithms.LinUCBJDP(2, 1, budget=ZCDP(1.0), horizon=h, batch=7, seed=1),
        lambda h: DPTS(2, budget=dpb.PureDP(1.0), horizon=h, seed=1),
    ],
)
def test_a_log_that_is_longer_than_the_horizon_is_refused_before_anything_is_spent(make):
    policy = make(30)
    features = None if isinstance(policy, DPTS) else np.full((31, 2, 1), 0.5)
    log = {"arm": [0] * 31, "reward": [0.5] * 31}
    before = str(policy.guarantee)
    with pytest.raises(ArgumentError, match=r"frame must have at most 30 records, got 31"):
        fit_logs(policy, log, features=features)
    assert (policy.ledger.spent(), policy.rounds, str(policy.guarantee)) == (None, 0, before)
    shorter = {name: column[:30] for name, column in log.items()}
    fitted = fit_logs(policy, shorter, features=None if features is None else features[:30])
    assert fitted.used.sum() == 30
    # A public log releases nothing, so that it may be of any length.
    assert fit_logs(make(30), log, features=features, private=False).used.sum() == 31


# Features ----------------------------------------------------------------------------------------


def ragged(n=60, seed=1):
    rng = np.random.default_rng(seed)
    rows = [rng.uniform(-0.5, 0.5, (rng.integers(1, 6), 2)) for _ in range(n)]
    return rows, np.array([rng.integers(len(one)) for one in rows]), rng.random(n)


def test_candidate_sets_of_several_sizes_are_written_read_and_learned_from(tmp_path):
    rows, _, rewards = ragged()
    policy = dpb.algorithms.RSLinearIMED(5, 2, budget=ZCDP(1.0), horizon=100, seed=1)
    arms = []
    with DecisionLog(tmp_path, policy, rewards=True, features=True, rows=9) as log:
        for one, reward in zip(rows, rewards, strict=True):
            decision = policy.pull(one)
            arms.append(decision.arm)
            log.write(decision, contexts=one, reward=reward)
    frame = pd.read_parquet(tmp_path)
    nested = [one.tolist() for one in rows]
    ways = [
        ({"arm": arms, "reward": rewards}, rows),
        ({"arm": arms, "reward": rewards, "x": nested}, "x"),
        (frame, "features"),
        (pa.Table.from_pandas(frame), "features"),
        (tmp_path, "features"),
        (str(tmp_path), "features"),
        (read_logs(tmp_path), "features"),
    ]
    fits = []
    for given, features in ways:
        new = dpb.algorithms.RSLinearIMED(5, 2, budget=ZCDP(1.0), horizon=100, seed=1)
        assert fit_logs(new, given, features=features).used.sum() == 60
        fits.append([side.tolist() for side in new.session.state.public])
    assert all(one == fits[0] for one in fits)


def test_vectors_of_people_are_read_alike_wherever_they_stand(tmp_path):
    rng, arms = np.random.default_rng(1), [ARMS, ["no" if a == 0 else "yes" for a in ARMS]]
    x, rewards = rng.uniform(-0.5, 0.5, (N, 2)), rng.random(N)
    frame = pd.DataFrame({"arm": arms[1], "reward": rewards, "x": x[:, 0], "y": x[:, 1]})
    frame["both"] = list(x)

    def make():
        options = {"models": "disjoint", "arm_names": ["no", "yes"], "seed": 1}
        return LinearIMED(2, 2, budget=ZCDP(1.0), horizon=100, **options)

    policy = make()
    with DecisionLog(tmp_path, policy, rewards=True, features=True) as log:
        for one, reward in zip(x, rewards, strict=True):
            decision = policy.pull(one)
            log.write(decision, contexts=one, reward=reward)
    logged = read_logs(tmp_path)["arm"].to_numpy()
    fits = []
    for given, features in (
        (frame, ["x", "y"]),
        (frame, frame.columns[2:4]),
        (frame, frame[["x", "y"]]),
        (frame, x),
        (frame, list(x)),
        (frame, "both"),
        (pa.Table.from_pandas(frame), "both"),
        ({**frame.to_dict("list"), "arm": ARMS}, np.ma.masked_array(x)),
        ({"arm": logged, "reward": rewards}, x),
        (tmp_path, "features"),
    ):
        new = make()
        fit_logs(new, given, features=features)
        fits.append([side.tolist() for side in new.session.state.public])
    assert all(one == fits[0] for one in fits[:-2])
    assert fits[-2] == fits[-1]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows[:-1], r"must have 60 rows, got 59"),
        (lambda rows: [*rows[:9], None, *rows[10:]], r"but row 9 \(from 0\) is missing"),
        (
            lambda rows: [*rows[:9], 777.25, *rows[10:]],
            r"but row 9 \(from 0\) holds something else",
        ),
        (lambda rows: [*rows[:9], np.full((2, 3), 777.25), *rows[10:]], r"shape .* in row 9"),
        (lambda rows: [*rows[:9], np.full((6, 2), 777.25), *rows[10:]], r"shape .* in row 9"),
        (
            lambda rows: [*rows[:9], [[0.5, math.nan]], *rows[10:]],
            r"got NaN or nothing in entry \(9, 0, 1\)",
        ),
        (lambda rows: [*rows[:9], [[0.5, SECRET]], *rows[10:]], r"got text in entry \(9, 0, 1\)"),
        (
            lambda rows: [*rows[:9], [[0.5, 1e101]], *rows[10:]],
            r"got another number in entry \(9, 0",
        ),
    ],
)
def test_features_are_refused_with_their_row(change, told):
    rows, arms, rewards = ragged()
    policy = dpb.algorithms.RSLinearIMED(5, 2, budget=ZCDP(1.0), horizon=100, seed=1)
    with pytest.raises(ArgumentError, match=rf"^features .*{told}") as error:
        fit_logs(policy, {"arm": arms, "reward": rewards}, features=change(rows))
    assert "777" not in str(error.value)
    assert policy.ledger.spent() is None


def test_the_arm_that_was_played_must_be_among_the_candidates():
    rows, arms, rewards = ragged()
    arms[9] = len(rows[9])
    policy = dpb.algorithms.RSLinearIMED(6, 2, budget=ZCDP(1.0), horizon=100, seed=1)
    with pytest.raises(
        ArgumentError, match=r"features must have a row for the arm .* for record 9"
    ):
        fit_logs(policy, {"arm": arms, "reward": rewards}, features=rows)


@pytest.mark.parametrize("features", [["x", "y"], "both"])
def test_a_number_that_is_missing_among_public_features_is_refused(features):
    x = with_one(None)
    log = {"arm": ARMS, "reward": [0.5] * N, "x": x, "y": [0.1] * N}
    log["both"] = [[a, 0.1] for a in x]
    policy = LinearIMED(2, 2, budget=ZCDP(1.0), horizon=100, models="disjoint", seed=1)
    with pytest.raises(
        ArgumentError, match=r"^features \(column '(x|both)'\) .*got NaN or nothing in row 7"
    ):
        fit_logs(policy, log, features=features)


@pytest.mark.parametrize(
    "cls", [dpb.algorithms.LinUCBJDP, dpb.algorithms.LinUCBLDP]
)  # the latter learns at once
def test_private_features_that_are_no_numbers_count_as_zero_and_are_counted_once(cls):
    """An error would tell of one person's features."""
    shown = np.full((N, 2, 1), 0.5)
    fits = []
    for entry in (0.0, math.nan, math.inf):
        shown[7] = entry
        policy = cls(2, 1, budget=ZCDP(1.0), horizon=100, seed=1)
        fit_logs(policy, {"arm": ARMS, "reward": [0.5] * N}, features=shown)
        assert policy.diagnostics.blanked == (entry != 0.0)
        fits.append([side.tolist() for side in policy.session.state.public])
    assert fits[0] == fits[1] == fits[2]


@pytest.mark.parametrize("cls", [dpb.algorithms.LinUCBJDP, dpb.algorithms.LinUCBLDP])
@pytest.mark.parametrize("private", [True, False])
def test_one_person_whose_private_features_are_none_counts_as_zeros(cls, private):
    """So does one whose candidates leave out the arm that was played: how many is private."""
    fits, rows = [], [np.full((2, 2), 0.5) for _ in range(N)]
    for odd in (
        np.zeros((2, 2)),
        *(None, math.nan, SECRET, [], {"x": 1}, [[0.5], [0.5, 0.5]], [[0.5, [1]], [0.2, 0.3]]),
        *(np.ones((2, 3)), np.ones((1, 2)), np.ones(2), np.ones((1, 1, 1))),
    ):
        policy = cls(2, 2, budget=ZCDP(1.0), horizon=100, seed=1)
        features = [*rows[:7], odd, *rows[8:]]  # the arm of row 7 is 1
        log = {"arm": ARMS, "reward": [0.5] * N}
        if not private and fits:  # public ones are refused
            with pytest.raises(ArgumentError, match=r"^features .*(row 7|record 7|\(7, )"):
                fit_logs(policy, log, features=features, private=False)
            continue
        fit_logs(policy, log, features=features, private=private)
        assert policy.diagnostics.blanked == bool(fits)
        fits.append([side.tolist() for side in policy.session.state.public])
    assert all(one == fits[0] for one in fits)


@pytest.mark.parametrize(("share", "told"), [(0.09, False), (0.11, True)])
def test_the_operator_hears_of_contexts_that_were_replaced(share, told, caplog):
    policy = dpb.algorithms.LinUCBJDP(2, 1, budget=ZCDP(1.0), horizon=100, seed=1)
    rows = [None if i < 100 * share else np.full((2, 1), 0.5) for i in range(100)]
    fit_logs(policy, {"arm": [0, 1] * 50, "reward": [0.5] * 100}, features=rows)
    assert policy.diagnostics.blanked == math.ceil(100 * share)
    assert (f"{math.ceil(100 * share)} of the 100 contexts" in caplog.text) == told


def test_private_features_of_another_shape_in_every_row_are_refused():
    for odd in (None, np.ones((2, 3)), [[SECRET]]):
        policy = dpb.algorithms.LinUCBJDP(2, 2, budget=ZCDP(1.0), horizon=100, seed=1)
        with pytest.raises(ArgumentError, match=r"^features .* row 0"):
            fit_logs(policy, {"arm": ARMS, "reward": [0.5] * N}, features=[odd] * N)
        assert policy.ledger.spent() is None


@pytest.mark.parametrize("to", [list, np.array, pd.Series])
def test_a_column_of_text_is_no_list_of_names(to):
    policy = LinearIMED(2, 2, budget=ZCDP(1.0), horizon=100, models="disjoint", seed=1)
    log = {"arm": ARMS, "reward": [0.5] * N}
    with pytest.raises(
        ArgumentError, match=r"^features must be names .* got a text for each record$"
    ):
        fit_logs(policy, log, features=to([SECRET] * N))
    with pytest.raises(ArgumentError, match=r"^frame must have a column 'age', and has 'arm'"):
        fit_logs(policy, log, features=to(["age", "dose"]))


def test_a_table_of_arrow_is_features_and_a_dictionary_is_not():
    rng = np.random.default_rng(1)
    frame, fits = pd.DataFrame(rng.uniform(-0.5, 0.5, (N, 2)), columns=["x", "y"]), []
    for features in (frame, pa.Table.from_pandas(frame), frame.to_numpy()):
        policy = LinearIMED(2, 2, budget=ZCDP(1.0), horizon=100, models="disjoint", seed=1)
        fit_logs(policy, {"arm": ARMS, "reward": [0.5] * N}, features=features)
        fits.append([side.tolist() for side in policy.session.state.public])
    assert fits[0] == fits[1] == fits[2]
    policy = LinearIMED(2, 2, budget=ZCDP(1.0), horizon=100, models="disjoint", seed=1)
    with pytest.raises(ArgumentError, match=r"^features must be names of columns"):
        fit_logs(policy, frame.assign(arm=ARMS, reward=0.5), features=frame.to_dict("list"))


# Propensities ------------------------------------------------------------------------------------


def skewed(n=60_000, least=0.02, seed=5):
    """Few people of one kind get arm 0, and do well with it: arm 0 has mean 0.5 among all."""
    rng = np.random.default_rng(seed)
    rare = rng.random(n) < 0.2
    p = np.where(rare, least, 0.5)
    arms = (rng.random(n) >= p).astype(int)
    means = np.where(rare, 0.9, 0.4)
    return {
        "arm": arms,
        "reward": (rng.random(n) < means).astype(float),
        "p": np.where(arms == 0, p, 1 - p),
    }


def test_one_tiny_propensity_leaves_out_nearly_all_and_is_told(caplog):
    n = 90
    log = {"arm": [0] * n, "reward": [0.5] * n, "p": [1e-6] + [0.5] * (n - 1)}
    fitted = fit_logs(MergedIMED(2, budget=None), log, propensity="p")
    assert fitted.used.sum() == 1
    assert "89 of the 90 records of the log (99 %) are left out" in caplog.text
    caplog.clear()
    fitted = fit_logs(MergedIMED(2, budget=None), log, propensity="p", least_propensity=0.5)
    assert (fitted.used.sum() + fitted.left.sum(), "leave out" in caplog.text) == (90, False)


def test_the_bias_of_a_lower_bound_is_within_what_is_told(caplog):
    """At 0.1 the rare people, a fifth, have the weight .02 / .1 in place of 1: E[w] is .84, and the
    mean of arm 0 is (.8 x .4 + .2 x .2 x .9) / .84 = .424 in place of .5; told is .16 at most.
    Five standard errors are .02 or less; to leave the rare out would give .4.
    """
    log = skewed()
    for lowest, expected, more in ((0.0, 0.5, 0.07), (0.1, 0.4238, 0.02)):
        policy = MergedIMED(2, budget=None)
        caplog.clear()
        fit_logs(policy, log, propensity="p", least_propensity=lowest, private=False)
        assert learned(policy)[0] == pytest.approx(expected, abs=more)
        found = re.search(r"mean of arm 0 may be off by up to ([\d.]+) times", caplog.text)
        if lowest == 0.0:
            assert found is None
        else:
            assert float(found[1]) == pytest.approx(0.16, abs=0.015)
            assert abs(learned(policy)[0] - 0.5) < float(found[1])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"propensity": "none"}, r"^propensity \(column 'none'\) .*got NaN or nothing in row 7"),
        ({"propensity": "zero"}, r"^propensity \(column 'zero'\) .*got another number in row 7"),
        ({"propensity": "p", "least_propensity": 1.5}, r"^least_propensity must be a number in"),
        ({"propensity": "p", "least_propensity": "x"}, r"^least_propensity must be a number in"),
        ({"least_propensity": 0.1}, r"^least_propensity must be 0 if propensity is not given"),
        ({"propensity": "p", "seed": -1}, r"^seed must be an integer"),
    ],
)
def test_other_propensities_are_refused(options, told):
    log = {"arm": ARMS, "reward": [0.5] * N, "p": [0.5] * N}
    log |= {"none": with_one(None), "zero": with_one(0.0)}
    policy = fresh()
    with pytest.raises(ArgumentError, match=told):
        fit_logs(policy, log, **options)
    assert policy.ledger.spent() is None


@pytest.mark.parametrize("row", [None, math.nan, "x", {"a": 1.0}, [0.5, [1.0]], []])
def test_one_private_vector_of_any_kind_counts_as_zeros_and_is_counted(row):
    rows = np.random.default_rng(1).uniform(-0.5, 0.5, (N, 2)).tolist()
    column = pd.Series([*rows[:9], row, *rows[10:]])
    frame = pd.DataFrame({"arm": ARMS, "reward": 0.5, "x": column})
    for features in ("x", column.tolist()):
        options = {"budget": ZCDP(1.0), "models": "disjoint", "horizon": 100, "seed": 1}
        policy = dpb.algorithms.LinearIMEDJDP(2, 2, **options)
        assert fit_logs(policy, frame, features=features).used.sum() == N
        assert policy.diagnostics.blanked == 1
