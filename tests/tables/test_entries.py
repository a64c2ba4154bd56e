"""What a number is, whatever holds it."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import dpbandits as dpb
from dpbandits.errors import ArgumentError
from dpbandits.tables import (
    array,
    as_numbers,
    blocks,
    column,
    entries,
    flat,
    numbered,
    refuse,
    table,
)
from dpbandits.tables.manners import PRIVATE, PRIVATE_RECORD, PUBLIC, PUBLIC_FEATURES, arms

MARK = 7919.73125
NAN = float("nan")


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ([1, 2.5, True, Decimal("0.5"), Fraction(1, 4)], [1, 2.5, 1, 0.5, 0.25]),
        ([1, None, NAN, pd.NA, pd.NaT], [1, NAN, NAN, NAN, NAN]),
        (np.ma.masked_array([1.0, 9.0], [False, True]), [1, NAN]),
        (pd.Series([1, None], dtype="Int64"), [1, NAN]),
        (pd.Series([True, None], dtype="boolean"), [1, NAN]),
        (pd.Series([1, 2], dtype="int8[pyarrow]"), [1, 2]),
        (pd.Series(pd.Categorical([3, 1, None])), [3, 1, NAN]),
        (pa.array([1, None]), [1, NAN]),
        (pa.chunked_array([[True], [None]]), [1, NAN]),
        (pa.array([Decimal("1.25"), None]), [1.25, NAN]),
        (np.array([1, 2], np.uint8), [1, 2]),
        ([10**400], [np.inf]),
    ],
)
def test_numbers_and_missing_values(given, values):
    found = entries(given)
    assert np.array_equal(found.values, np.array(values, float), equal_nan=True)
    assert not found.wrong.any()
    assert found.missing.tolist() == np.isnan(found.values).tolist()


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (["1", "2"], "text"),
        (["2", 1.0], "text"),
        (np.array(["1", "2"]), "text"),
        (pd.Series(["1", "2"]), "text"),
        (pa.array(["1", "2"]), "text"),
        ([b"1", 2], "text"),
        ([1j, 2], "complex numbers"),
        (np.array([1j, 2]), "complex numbers"),
        (pd.date_range("2020", periods=2), "dates"),
        (pd.Series(pd.to_datetime(["2020", "2021"], utc=True)), "dates"),
        (pa.array([datetime.date(2020, 1, 1), None]), "dates"),
        ([datetime.datetime(2020, 1, 1), 1], "dates"),
        (pd.to_timedelta([1, 2]), "durations"),
        ([datetime.timedelta(1), 2], "durations"),
        ([np.datetime64("2020"), 2], "dates"),
        ([{}, 2], "other things"),
    ],
)
def test_what_is_no_number(given, kind):
    found = entries(given)
    assert found.wrong[0]
    assert found.kind == kind
    assert np.isnan(found.values[0])
    with pytest.raises(ArgumentError, match=f"^paid must hold finite numbers, got {kind} in row 0"):
        flat("paid", given, PUBLIC)


@pytest.mark.parametrize("given", [[[1.0], [1.0, 2.0]], pd.Series([[1], [1, 2]]), [[1, 2], 3]])
def test_rows_of_several_lengths_are_none(given):
    assert entries(given) is None


def test_a_frame_of_mixed_types_is_read_cell_by_cell():
    frame = pd.DataFrame({"a": [1, 2], "b": [True, None], "c": ["x", "y"]})
    found = entries(frame)
    assert found.values[0].tolist()[:2] == [1.0, 1.0]
    assert found.wrong.tolist() == [[False, False, True]] * 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([0, 1, 2.5], "got another number in row 2"),
        ([0, -1, 7], "got another number in row 1, and in 1 more cell"),
        ([0, None], "got NaN or nothing in row 1"),
        ([0, np.inf], "got an infinite number in row 1"),
        ([0, "1"], "got text in row 1"),
    ],
)
def test_a_refusal_names_argument_column_range_and_row(given, words):
    with pytest.raises(ArgumentError) as caught:
        flat("arm", given, arms(3), at="column 'group'")
    assert str(caught.value) == f"arm (column 'group') must hold whole numbers in [0, 2], {words}"
    assert caught.value.argument == "arm"


def test_a_table_names_row_and_column():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, np.inf]})
    with pytest.raises(ArgumentError, match="an infinite number in row 1 of column 'b'"):
        table("X", frame, PUBLIC)
    with pytest.raises(ArgumentError, match="an infinite number in row 1, column 1"):
        table("X", frame.to_numpy(), PUBLIC)
    with pytest.raises(ArgumentError, match="must be dense"):
        table("X", sparse.eye(2), PUBLIC)
    arrow = pa.table({"a": [1, 2], "b": [3, None]})
    assert np.isnan(table("X", arrow, PRIVATE)[1, 1])


def test_one_private_entry_never_raises_and_a_column_without_numbers_does():
    odd = [1.0, "x", None, np.inf, 1j]
    assert np.isnan(flat("y", odd, PRIVATE)[[1, 2, 4]]).all()
    for given in ([None, None], ["yes", "no"], pd.date_range("2020", periods=2)):
        with pytest.raises(ArgumentError, match=r"^y must hold numbers, got"):
            flat("y", given, PRIVATE)
    # The type says that these are numbers, whatever is missing; and of one person nothing is told.
    assert np.isnan(flat("y", np.array([NAN, NAN]), PRIVATE)).all()
    assert np.isnan(table("x", [["words", None]], PRIVATE_RECORD)).all()


CELLS = [
    *([1], [1.0, 2.0], (1, 2), np.ones(2), {"a": 1}, {}, {1}, "x", b"x", None, object(), 1j),
    *(np.datetime64("2020"), np.timedelta64(1, "s"), pd.Timestamp("2020"), np.complex64(1j)),
    *(pd.Series([1.0, 2.0]), np.void(b"x"), datetime.timedelta(1), pd.NaT, np.ma.masked),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda one: type(one).__name__)
def test_whatever_a_private_cell_holds_it_counts_as_nothing(cell):
    column = [1.0, 0.0, 2.0]
    column[1] = (1, 1) if isinstance(cell, list) else cell  # a row of one entry is that entry
    series = pd.Series(column, dtype=object)
    for given in (column, series, series.to_numpy()):
        assert np.array_equal(flat("y", given, PRIVATE), [1, NAN, 2], equal_nan=True)
    rows = [[1.0, 2.0], [3.0, cell]]
    for given in (rows, pd.DataFrame({"a": [1.0, 3.0], "b": pd.Series([2.0, cell], dtype=object)})):
        assert np.array_equal(table("X", given, PRIVATE), [[1, 2], [3, NAN]], equal_nan=True)
    for given in (rows, [pd.Series(row, dtype=object) for row in rows]):
        assert np.array_equal(as_numbers(given), [[1, 2], [3, NAN]], equal_nan=True)
    assert np.array_equal(as_numbers([3.0, cell]), [3, NAN], equal_nan=True)
    with pytest.raises(ArgumentError, match="in row 1, column 1"):
        refuse("X", rows, PUBLIC)


@pytest.mark.parametrize("nothing", [None, NAN, "text", {}], ids=repr)
def test_a_private_row_that_holds_no_numbers_has_no_axes(nothing):
    """By which its caller knows it, and counts it; in a table it is a row of missing numbers."""
    rows = table("X", [[1.0, 2.0], nothing], PRIVATE)
    assert np.array_equal(rows, [[1, 2], [NAN, NAN]], equal_nan=True)
    found = blocks("x", [[0.1, 0.2], nothing, [0.3, 0.4]], PRIVATE)
    assert [one.shape for one in found] == [(2,), (), (2,)]
    assert np.isnan(found[1])
    with pytest.raises(ArgumentError, match=r"row 1 \(from 0\) (is missing|holds something else)"):
        blocks("x", [[0.1, 0.2], nothing, [0.3, 0.4]], PUBLIC_FEATURES)


def test_the_type_of_one_column_is_not_that_of_another():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1j, 2.0]})
    assert entries(frame).wrong.tolist() == [[False, True]] * 2
    with pytest.raises(ArgumentError, match=r"^X \(column 'b'\) must hold numbers, got complex"):
        table("X", frame, PRIVATE)


def test_a_private_column_in_rows_may_hold_a_longer_one():
    assert np.array_equal(flat("y", [[1], [0], [1, 0]], PRIVATE), [1, 0, NAN], equal_nan=True)


@pytest.mark.parametrize(
    "given", [[MARK, "secret"], [[MARK, 1.0], ["secret", 2.0]], [MARK, None, np.inf, -MARK]]
)
def test_no_message_holds_what_stands_in_a_cell(given):
    for read, manner in ((flat, arms(2)), (table, PUBLIC_FEATURES), (flat, PUBLIC)):
        with pytest.raises(ArgumentError) as caught:
            read("x", given, manner)
        assert "7919" not in str(caught.value)
        assert "secret" not in str(caught.value)


def test_a_column_is_named_with_those_that_there_are():
    for frame in (pd.DataFrame({"a": [1]}), pa.table({"a": [1]}), {"a": [1]}):
        assert len(column(frame, "a")) == 1
        with pytest.raises(ArgumentError, match="must have a column 'b', and has 'a'"):
            column(frame, "b")


def test_what_names_a_column_may_be_the_column_itself_and_is_not_told():
    frame = {"a": [1.0]}
    for name in (pd.Series([777.25]), np.array([777.25]), [777.25], pa.array([777.25]), None):
        with pytest.raises(ArgumentError, match=r"^reward must be the name of a column") as error:
            column(frame, name, by="reward")
        assert "777" not in str(error.value)
    with pytest.raises(ArgumentError, match=r"^frame must have a column 'a', got ndarray of shape"):
        column(np.full(3, 777.25), "a")


@pytest.mark.parametrize("to", [list, np.array, pd.Series, pd.Categorical, pa.array])
def test_names_are_found_in_any_column(to):
    assert numbered("arm", to(["y", "x", "y"]), ["x", "y"]).tolist() == [1, 0, 1]
    with pytest.raises(
        ArgumentError,
        match=r"names of names \('x'\); row 0 \(from 0\) holds another name, and 1 more",
    ):
        numbered("arm", to(["y", "x", "y"]), ["x"])


def test_numbers_are_no_names_and_may_not_be_mistaken_for_them():
    assert numbered("arm", [0, 1], ["x", "y"]) is None
    assert numbered("arm", [], ["x", "y"]) is None
    assert numbered("arm", [0, 1], ["0", "1"]) is None
    for names in (["1", "0"], ["a", "0"], ["true", "x"], ["1.0", "2.0"]):
        with pytest.raises(ArgumentError, match=r"^arm must hold names as text"):
            numbered("arm", [0, 1], names)


def test_the_row_that_holds_no_name_is_told():
    for entry, got in (
        (None, "nothing"),
        (np.nan, "nothing"),
        (777.25, "no text"),
        ([1], "no text"),
    ):
        with pytest.raises(ArgumentError, match=rf"row 1 \(from 0\) holds {got}$") as error:
            numbered("arm", ["x", entry], ["x"])
        assert "777" not in str(error.value)


def test_a_table_of_arrow_is_named_by_its_columns_and_never_by_their_cells():
    given = pa.table({"x": [777.25, None], "y": [0.5, 0.5]})
    for read in (
        lambda: array("contexts", given, PUBLIC, "n, d"),
        lambda: refuse("contexts", given, PUBLIC),
        lambda: table("contexts", given, PUBLIC),
        lambda: dpb.algorithms.LinUCB(2, 2).pull(given),
    ):
        with pytest.raises(
            ArgumentError, match=r"got NaN or nothing in row 1 of column 'x'$"
        ) as error:
            read()
        assert "777" not in str(error.value)
