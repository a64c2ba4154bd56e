"""The door lets in what it says, and names what it refuses."""

import math
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpbandits.errors import ArgumentError
from dpbandits.validation import choice, flag, integer, interval, number, printable, real, shown

NOT_NUMBERS = [None, "1", b"1", True, False, np.True_, 1j, [1], np.array([1, 2]), object()]


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_integers_of_any_kind_become_int(value):
    assert type(integer("n", value, 3, 3)) is int


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 2.0, math.nan, math.inf, 0, 6, -1])
def test_integer_refuses_and_names(value):
    with pytest.raises(
        ArgumentError, match=r"^n must be an integer between 1 and 5, got "
    ) as caught:
        integer("n", value, 1, 5)
    assert shown(value) in str(caught.value)


def test_integer_says_which_end_was_missed():
    with pytest.raises(ArgumentError, match="at least 1, got 0"):
        integer("n", 0, 1)
    with pytest.raises(ArgumentError, match=f"between 1 and {2**62:,}, got {2**63}"):
        integer("n", 2**63, 1)
    assert integer("n", 2**62, 1) == 2**62


@pytest.mark.parametrize(
    "value", [1, 0.5, np.float32(0.5), np.int64(1), Fraction(1, 2), np.float64(0.0)]
)
def test_reals_of_any_kind_become_float(value):
    assert type(real("x", value, 0.0, 1.0)) is float
    assert real("x", value, 0.0, 1.0) == value


@pytest.mark.parametrize(
    "value", [*NOT_NUMBERS, math.nan, math.inf, -math.inf, 10**400, -(10**400), -0.1, 1.1]
)
def test_real_refuses_and_names(value):
    with pytest.raises(ArgumentError, match=r"^x must be a number in \[0, 1\], got "):
        real("x", value, 0.0, 1.0)


@pytest.mark.parametrize("value", [0.0, 1.0, Fraction(1, 10**400)])
def test_strict_bounds_are_outside_even_after_rounding(value):
    with pytest.raises(ArgumentError, match=r"\(0, 1\)"):
        real("x", value, 0.0, 1.0, strict=True)


def test_infinite_ends_are_shown_open():
    with pytest.raises(ArgumentError, match=r"\[0, inf\)"):
        real("x", math.inf, 0.0)


@pytest.mark.parametrize("value", [(0, 1), [-1.0, 2], np.array([0.0, 1.0])])
def test_interval_of_any_kind(value):
    assert interval("r", value) == (float(value[0]), float(value[1]))


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        (0,),
        (0, 1, 2),
        (1, 1),
        (2, 1),
        (0, math.inf),
        (math.nan, 1),
        "ab",
        ("0", "1"),
        (-1.7e308, 1.7e308),
    ],
)
def test_interval_refuses_and_names(value):
    with pytest.raises(ArgumentError, match=r"^r(\[\d\])? must be a "):
        interval("r", value)


def test_choice_and_flag():
    assert choice("c", "a", ("a", "b")) == "a"
    assert flag("f", False) is False
    for value in ("c", None, 1, [], ["a"]):
        with pytest.raises(ArgumentError, match=r"^c must be one of 'a', 'b', got "):
            choice("c", value, ("a", "b"))
    for value in (0, 1, "True", None, np.True_):
        with pytest.raises(ArgumentError, match=r"^f must be True or False, got "):
            flag("f", value)


@pytest.mark.parametrize("value", ["a", "ours, at last", "ε-greedy", " x", "x" * 10])
def test_printable_text_is_let_in(value):
    assert printable("name", value, 10 if len(value) <= 10 else 20) == value


@pytest.mark.parametrize("value", ["", " ", "a\tb", "a\u200bb", "x" * 11, None, 1, b"a"])
def test_other_text_is_refused_and_named(value):
    with pytest.raises(ArgumentError, match=r"^name must be a text of 1 to 10 printable") as caught:
        printable("name", value, 10)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (0.5, 0.5),
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (np.int8(3), 3.0),
        (Decimal("0.5"), 0.5),
        (Fraction(1, 2), 0.5),
        (np.array(0.5), 0.5),
        (pa.scalar(0.5), 0.5),
        (10**400, math.inf),
        (-(10**400), -math.inf),
        (np.ma.array(0.5, mask=False), 0.5),
    ],
    ids=str,
)
def test_numbers_of_all_kinds_are_floats(given, wanted):
    assert number("x", given) == wanted
    assert type(number("x", given)) is float


@pytest.mark.parametrize(
    "given",
    [
        None,
        math.nan,
        pd.NA,
        pd.NaT,
        np.ma.masked,
        np.ma.array(0.5, mask=True),
        pa.scalar(None),
        Decimal("sNaN"),
        np.datetime64("NaT"),
        np.array(np.datetime64("NaT", "ns")),
    ],
    ids=repr,
)
def test_what_is_missing_is_nan(given):
    assert math.isnan(number("x", given))


@pytest.mark.parametrize(
    "given",
    [
        "7919",
        b"7919",
        7919j,
        np.array([7919.0]),
        [7919],
        {},
        np.timedelta64(7919, "s"),
        np.datetime64(7919, "s"),
        datetime(2020, 1, 1),
        timedelta(7919),
        pd.Timestamp(7919),
        np.array(7919, "M8[ns]"),
        np.array(7919, "m8[ns]"),
        np.array("7919"),
        pa.scalar("7919"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_is_no_number_is_refused_and_not_told(given):
    with pytest.raises(ArgumentError, match=r"^x must be a number, got a value of type") as caught:
        number("x", given)
    assert "7919" not in str(caught.value)


def test_arguments_are_shown_shortly():
    assert shown("a" * 1000) == "'" + "a" * 99 + "..."
    assert shown(10**5000) == "a very long int"
    assert shown(np.full((3, 2), 7919.0)) == "ndarray of shape (3, 2)"
    assert shown(pd.DataFrame({"a": [7919]})) == "DataFrame of shape (1, 1)"
