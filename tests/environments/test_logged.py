"""Logs of randomised trials: what they say about themselves, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import chisquare

from dpbandits import ArgumentError
from dpbandits.environments import LoggedTrial
from dpbandits.environments.datasets.logged import _evenness


def test_a_log_describes_itself():
    trial = LoggedTrial([0, 2, 1, 0], [1.0, -2.0, 0.5, 0.0])
    assert (len(trial), trial.n_arms, trial.counts.tolist()) == (4, 3, [2, 1, 1])
    assert trial.means().tolist() == [0.5, 0.5, -2.0]
    assert trial.mean() == -0.125
    assert trial.arm_names == ["arm 0", "arm 1", "arm 2"]
    assert repr(trial) == "LoggedTrial(4 records, 3 arms, content a1280d03)"


def test_a_log_is_a_copy_that_nobody_can_change():
    arms, rewards = np.array([0, 1]), np.array([0.0, 1.0])
    trial = LoggedTrial(arms, rewards)
    arms[0], rewards[0] = 1, 5.0
    assert (trial.arms.tolist(), trial.rewards.tolist()) == ([0, 1], [0.0, 1.0])
    with pytest.raises(ValueError):
        trial.arms[0] = 1


def test_a_table_holds_the_records_of_every_arm_in_their_order():
    table = LoggedTrial([0, 1, 1, 0, 1, 0], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).reward_table()
    assert np.diff(table.state.prefix, axis=0) == pytest.approx(
        np.array([[0.1, 0.2], [0.4, 0.3], [0.6, 0.5]])
    )
    shorter = LoggedTrial([1, 0, 1, 2, 1, 2], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).reward_table()
    assert shorter.state.prefix.tolist() == [[0.0, 0.0, 0.0], [2.0, 1.0, 4.0]]


def test_contexts_are_one_vector_for_all_arms_or_one_for_each():
    alike = LoggedTrial([0, 1], [1.0, 0.0], [[3.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
    assert (alike.dimension, alike.context_bound, alike.contexts.shape) == (3, 5.0, (2, 2, 3))
    assert alike.contexts[0].tolist() == [[3.0, 4.0, 0.0]] * 2
    assert repr(alike) == "LoggedTrial(2 records, 2 arms, dimension 3, content 407a4fe2)"
    each = LoggedTrial([0, 1], [1.0, 0.0], [[[1.0], [2.0]], [[3.0], [4.0]]])
    assert (each.dimension, each.contexts[:, :, 0].tolist()) == (1, [[1.0, 2.0], [3.0, 4.0]])
    none = LoggedTrial([0, 1], [1.0, 0.0])
    assert (none.dimension, none.contexts) == (None, None)


@pytest.mark.parametrize("bad", [[1.0, 2.0], [[1.0]], [[[1.0]]] * 2, [[np.nan]] * 2, [["a"]], 3])
def test_bad_contexts_are_refused(bad):
    with pytest.raises(ArgumentError, match=r"^contexts must"):
        LoggedTrial([0, 1], [1.0, 0.0], bad)


@pytest.mark.parametrize(
    "bad",
    [[], [0.5, 1.0], [[0, 1]], [0, -1], ["a", 1], None, [0j, 1], [0, 0], [0, 10**12]],
    ids=repr,
)
def test_bad_arms_are_refused(bad):
    """The one with two records of arm 0 has no fault but its length."""
    with pytest.raises(ArgumentError, match=r"^arms "):
        LoggedTrial(bad, [1.0, 0.0, 1.0] if bad == [0, 0] else [1.0, 0.0])


@pytest.mark.parametrize("bad", [[1.0], [1.0, np.nan], [[1.0, 2.0]], ["a", "b"]], ids=repr)
def test_bad_rewards_are_refused(bad):
    with pytest.raises(ArgumentError, match="rewards"):
        LoggedTrial([0, 1], bad)


def test_a_missing_arm_is_refused():
    with pytest.raises(ArgumentError, match=r"every arm from 0 to 2, got counts \[2, 0, 1\]"):
        LoggedTrial([0, 2, 0], [1.0, 1.0, 1.0])


def test_shares_that_are_clearly_not_equal_are_refused():
    """55 to 45 of 2,000 is 4.5 standard deviations from even and may pass; 60 to 40 is 9."""
    LoggedTrial([0] * 1100 + [1] * 900, np.zeros(2000))
    with pytest.raises(ArgumentError, match="uniformly at random"):
        LoggedTrial([0] * 1200 + [1] * 800, np.zeros(2000))


def test_evenness_is_pearsons_test():
    for counts in ([55, 45], [10, 20, 30], [1000, 1001, 999, 1000], [7] * 9):
        expected = chisquare(counts).pvalue
        assert _evenness(np.array(counts)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "columns",
    [
        (pd.Series([0, 1, 1, 0]), pd.Series([1, 0, 1, 1])),
        (pd.Series([0, 1, 1, 0], dtype="Int64"), pd.Series([1, 0, 1, 1], dtype="boolean")),
        (pa.array([0, 1, 1, 0]), pa.array([1.0, 0.0, 1.0, 1.0])),
        ([0.0, 1.0, 1.0, 0.0], [Decimal(1), Fraction(0), True, 1.0]),
        (np.array([[0], [1], [1], [0]])[:, 0], [1, 0, 1, 1]),
    ],
    ids=["pandas", "nullable", "arrow", "lists", "view"],
)
def test_columns_of_all_kinds_are_one_log(columns):
    plain = LoggedTrial([0, 1, 1, 0], [1.0, 0.0, 1.0, 1.0])
    assert repr(LoggedTrial(*columns)) == repr(plain)


def test_a_log_keeps_no_hold_of_what_it_was_given():
    rewards, contexts = np.array([1.0, 0.0]), np.ones((2, 2))
    trial = LoggedTrial([0, 1], rewards, contexts)
    rewards[0] = contexts[0] = 5.0
    assert trial.rewards.tolist() == [1.0, 0.0]
    assert trial.contexts.max() == 1.0
    assert not trial.rewards.flags.writeable


def test_arms_may_have_names():
    given = ["placebo", "drug", "drug", "placebo"]
    trial = LoggedTrial(given, [1.0, 0.0, 1.0, 1.0])
    assert (trial.arm_names, trial.arms.tolist()) == (["drug", "placebo"], [1, 0, 0, 1])
    ordered = LoggedTrial(given, [1.0, 0.0, 1.0, 1.0], arm_names=["placebo", "drug"])
    assert (ordered.arm_names, ordered.arms.tolist()) == (["placebo", "drug"], [0, 1, 1, 0])
    numbered = LoggedTrial([0, 1], [1.0, 0.0], arm_names=["a", "b"])
    assert numbered.reward_table().arm_names == ["a", "b"]
    with pytest.raises(ArgumentError, match=r"^arms must hold names of arm_names .* row 1"):
        LoggedTrial(given, [1.0, 0.0, 1.0, 1.0], arm_names=["placebo", "other"])
    with pytest.raises(ArgumentError, match=r"^arm_names must hold 2 names"):
        LoggedTrial([0, 1], [1.0, 0.0], arm_names=["a"])


@pytest.mark.parametrize(
    ("arms", "told"),
    [
        (
            ["drug", "control"] * 50 + [None],
            r"names of arm_names \('control', 'drug'\); row 100 \(from 0\) holds nothing",
        ),
        (
            ["drug", "control"] * 50 + [3],
            r"names of arm_names \('control', 'drug'\); row 100 \(from 0\) holds no text",
        ),
        ([0, 1] * 50 + ["drug"], r"whole numbers .* got text in row 100"),
        ([0, 1] * 50 + [None], r"whole numbers .* got NaN or nothing in row 100"),
    ],
)
def test_the_arm_that_is_wrong_is_blamed_and_not_all_others(arms, told):
    with pytest.raises(ArgumentError, match=rf"^arms must hold {told}") as error:
        LoggedTrial(arms, np.zeros(len(arms)))
    assert "more" not in str(error.value)


def test_numbers_that_may_be_names_are_refused():
    """``read_csv`` makes numbers of the names '1' and '0'."""
    for names in (["1", "0"], ["1", "2"], ["True", "False"]):
        with pytest.raises(ArgumentError, match=r"^arms must hold names as text"):
            LoggedTrial([0, 1], [1.0, 0.0], arm_names=names)
    for names in (["0", "1"], ["20", "10"], ["False", "True"]):
        assert LoggedTrial([0, 1], [1.0, 0.0], arm_names=names).arms.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ([1.0, np.nan, 0.5, np.nan], "got NaN or nothing in row 1, and in 1 more cell"),
        (np.ma.array([1.0, 0.25, 0.5, 0.5], mask=[0, 0, 1, 0]), "got NaN or nothing in row 2"),
        ([1.0, 0.25, "0.5", 0.5], "got text in row 2"),
        (np.array([1.0, 0.25, 0.5j, 0.5]), "got complex numbers in row 0, and in 3 more"),
        (pd.Series(pd.date_range("2020", periods=4)), "got dates in row 0, and in 3 more"),
        (np.array([1, 2, 3, 4], "m8[s]"), "got durations in row 0"),
        ([1.0, 0.25, np.inf, 0.5], "got an infinite number in row 2"),
        ([[1.0, 0.25], [0.5]], "got rows of different lengths"),
    ],
    ids=["nan", "masked", "text", "complex", "dates", "durations", "infinite", "ragged"],
)
def test_rewards_that_are_no_numbers_are_named_by_their_row(rewards, message):
    with pytest.raises(ArgumentError) as caught:
        LoggedTrial([0, 1, 1, 0], rewards)
    assert str(caught.value).startswith("rewards must")
    assert message in str(caught.value)
    assert "0.25" not in str(caught.value)
    assert len(str(caught.value)) < 150


def test_contexts_of_a_data_frame_are_named_by_their_column():
    frame = pd.DataFrame({"age": [1.0, 2.0], "weight": [3.0, None]})
    with pytest.raises(ArgumentError, match="got NaN or nothing in row 1 of column 'weight'"):
        LoggedTrial([0, 1], [1.0, 0.0], frame)
    assert LoggedTrial([0, 1], [1.0, 0.0], frame.fillna(0.0)).contexts.shape == (2, 2, 2)
