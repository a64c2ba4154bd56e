"""Logs of decisions that are fitted to: one record for each decision, and for each person one."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpbandits import ZCDP, ArgumentError, DecisionLog, evaluate_privately, fit_logs
from dpbandits.algorithms import MergedIMED
from dpbandits.logs import read_logs

N = 40
ARMS = np.arange(N) % 2
SECRET = "777.25"  # of which no message may tell


def fresh(**options):
    return MergedIMED(2, budget=ZCDP(0.5), seed=1, **options)


def learned(policy):
    return policy.session.state.public.estimate.tolist()


def test_a_decision_that_was_written_twice_is_one_record(tmp_path):
    """Else its person would be in two releases."""
    policy = fresh(arm_names=["no", "yes"])
    log = DecisionLog(tmp_path, policy, rewards=True, rows=5)
    for i in range(30):
        decision = policy.pull()
        policy.update(i / 30, decision)
        log.write(decision)
        log.flush()
        log.write(decision, reward=i / 30)
    log.flush()
    frame = pd.read_parquet(tmp_path)
    assert len(frame) == 60
    whole = read_logs(tmp_path)
    told = whole[["arm", "reward"]]
    fits = []
    for given in (tmp_path, frame, pa.Table.from_pandas(frame), frame.to_dict("list"), whole, told):
        new = fresh(arm_names=["no", "yes"])
        fitted = fit_logs(new, given)
        assert fitted.used.sum() + fitted.left.sum() == 30
        fits.append(learned(new))
    by_name = fresh(arm_names=["no", "yes"])
    fit_logs(by_name, tmp_path, arm="name")
    assert all(one == fits[0] for one in [*fits, learned(by_name)])


def a_decision_table(tmp_path, n=20):
    policy = fresh()
    with DecisionLog(tmp_path, policy, rewards=True) as log:
        for i in range(n):
            decision = policy.pull()
            log.write(decision, reward=i / n)
            policy.update(0.5, decision)
    return read_logs(tmp_path)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("to", [None, pa.Table.from_pandas, lambda frame: frame.to_dict("list")])
def test_records_of_another_source_stay_apart(tmp_path, to, twice):
    logged = a_decision_table(tmp_path)
    own = pd.DataFrame({"arm": [0, 1] * 50, "reward": [1.0] * 100})
    joined = pd.concat([logged, logged, own] if twice else [logged, own], ignore_index=True)
    policy = fresh()
    fitted = fit_logs(policy, joined if to is None else to(joined), private=False)
    assert (fitted.used + fitted.left).tolist() == (
        logged["arm"].value_counts().sort_index() + 50
    ).tolist()
    rewards = pd.concat([logged, own]).groupby("arm")["reward"].mean().tolist()
    assert learned(policy) == pytest.approx(rewards)
    for half in ({"life": "manual"}, {"number": 3}):
        told = r"^frame must hold both life and number .* in row (20|40)$"
        odd = pd.concat([*[logged] * (1 + twice), own.assign(**half)], ignore_index=True)
        with pytest.raises(ArgumentError, match=told):
            fit_logs(fresh(), odd if to is None else to(odd))


def test_an_own_record_without_an_arm_is_refused_and_not_left_out(tmp_path):
    own = pd.DataFrame({"arm": [0, None], "reward": [1.0] * 2})
    joined = pd.concat([a_decision_table(tmp_path), own], ignore_index=True)
    with pytest.raises(ArgumentError, match=r"^arm .* got NaN or nothing in row 21$"):
        fit_logs(fresh(), joined)


@pytest.mark.parametrize(
    ("column", "cells", "told"),
    [
        ("note", [1] * 39 + [SECRET], None),  # which nobody asked for
        ("note", [[1], None, {"x": SECRET}, 10**25] * 10, None),
        ("reward", [Decimal("0.5"), 0.5, Fraction(1, 2), None] * 10, None),
        ("reward", [0.5] * 39 + [SECRET], r"reward .* got text in row 19"),
        ("reward", [0.5] * 39 + [777.25j], r"reward .* got complex numbers in row 19"),
        ("number", [10**25 + 777] * 40, r"frame \(column 'number'\) must hold whole numbers in"),
        ("number", [SECRET] * 40, r"frame \(column 'number'\) must hold whole numbers .* text"),
        ("life", [[777.25]] * 40, r"frame \(column 'life'\) must hold text"),
        ("life", [777.25] * 40, r"frame \(column 'life'\) must hold text"),
    ],
)
@pytest.mark.parametrize("to", [None, lambda frame: frame.to_dict("list")])
def test_no_cell_of_a_table_with_decisions_written_twice_is_printed(
    tmp_path, to, column, cells, told
):
    logged = a_decision_table(tmp_path)
    twice = pd.concat([logged, logged], ignore_index=True)
    twice[column] = pd.Series(cells, dtype=object)
    given = twice if to is None else to(twice)
    if told is None:
        fitted = fit_logs(fresh(), given)
        assert (fitted.used + fitted.left).sum() == 20
        return
    with pytest.raises(ArgumentError, match=rf"^{told}") as error:
        fit_logs(fresh(), given)
    assert "777" not in str(error.value)


def test_a_column_that_is_there_twice_or_of_another_length_is_named(tmp_path):
    logged = a_decision_table(tmp_path)
    twice = pd.concat([logged, logged[["reward"]]], axis=1)
    for frame in (
        twice,
        pa.Table.from_arrays(
            [pa.array(twice.iloc[:, i]) for i in range(twice.shape[1])], names=list(twice.columns)
        ),
    ):
        with pytest.raises(ArgumentError, match=r"^frame must have columns .* got 'reward' more"):
            fit_logs(fresh(), frame)
    longer = {**logged.to_dict("list"), "reward": [0.5] * 21, "number": [1] * 20}
    with pytest.raises(ArgumentError, match=r"^frame \(column 'reward'\) must have 20 rows"):
        fit_logs(fresh(), longer)


@pytest.mark.parametrize("most", [1, 3])
def test_a_user_of_a_private_log_is_not_taken_for_several_people(tmp_path, most):
    policy = MergedIMED(2, budget=ZCDP(0.5), seed=1, max_rounds=most)
    with DecisionLog(tmp_path, policy, rewards=True) as log:
        for i in range(50):
            decision = policy.pull(user=i % 10)
            log.write(decision, reward=0.5)
            policy.update(0.5, decision)
    frame = read_logs(tmp_path)
    new = fresh()
    told = (
        r"^frame must hold each person only once .* max_rounds=3"
        if most == 3
        else (r"^frame \(column 'recorded'\) must hold no False .* in row 10, and in 39 more")
    )
    whole = parquet.read_table(tmp_path)
    for given in (tmp_path, frame, whole):
        with pytest.raises(ArgumentError, match=told):
            fit_logs(new, given)
    assert new.ledger.spent() is None
    assert fit_logs(fresh(), tmp_path, private=False).used.sum() == 50
    rows = frame[frame["recorded"]]
    for given, n in ((rows, len(rows)), (frame.drop(columns="recorded"), 50)):
        if most == 3:
            with pytest.raises(ArgumentError, match=told):
                fit_logs(new, given)
            with pytest.raises(ArgumentError, match=r"^log must hold each person only once"):
                evaluate_privately(given, 1, budget=ZCDP(1.0), largest_weight=5.0)
            del given.attrs["max_rounds"]
        fitted = fit_logs(fresh(), given)  # whoever says so knows better
        assert (fitted.used + fitted.left).sum() == n


def test_a_table_with_columns_of_these_names_is_taken_as_it_is():
    """It holds no decisions: people who live equally long are not one."""
    log = {"arm": ARMS, "reward": np.arange(N) / N, "life": [70] * N, "number": [1] * N}
    policy = fresh()
    fitted = fit_logs(policy, pd.DataFrame(log))
    assert fitted.used.sum() + fitted.left.sum() == N
