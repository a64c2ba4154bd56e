"""Checks of arguments, made once at the entrance, so the code behind it needs none."""

from __future__ import annotations

import math
import numbers
import re
import unicodedata
from collections.abc import Collection, Iterable
from contextlib import suppress
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import numpy as np

from .errors import ArgumentError

LARGEST = 2**62
_LONGEST = 100  # characters of an argument in a message
_ROUNDING = 1e-12  # relative: what sums of floats are off by, and nobody has lost


def integer(name: str, value: object, low: int, high: int = LARGEST) -> int:
    """``value`` as an int in [low, high], or an ``ArgumentError`` that names it."""
    past_the_end = False
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        if low <= int(value) <= high:
            return int(value)
        past_the_end = int(value) > high
    reach = f"between {low:,} and {high:,}" if past_the_end else reach_text(low, high)
    raise ArgumentError(f"{name} must be an integer {reach}, got {shown(value)}", name)


def real(
    name: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    strict: bool = False,
) -> float:
    """``value`` as a finite float in [low, high], or in (low, high) when ``strict``."""
    number = math.nan
    try:
        if isinstance(value, numbers.Real) and not isinstance(value, bool):
            number = float(value)
    except OverflowError:
        number = math.inf
    if math.isfinite(number) and (low < number < high if strict else low <= number <= high):
        return number
    raise ArgumentError(
        f"{name} must be a number in {interval_text(low, high, strict)}, got {shown(value)}", name
    )


def number(name: str, value: object) -> float:
    """``value`` as a float by the rule of ``numeric``, infinite or NaN where it is.

    It may be a person's reward, so messages name its type alone.
    """
    if isinstance(value, float) or type(value) is int:  # without a detour in every round
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    found = numeric(value)
    if isinstance(found, str):
        raise ArgumentError(
            f"{name} must be a number, got a value of type {type(value).__name__}", name
        )
    return found


def number_or_nan(value: object) -> float:
    """``value`` by the same rule, NaN where it is no number: for callers where an error would
    reveal data.

    >>> number_or_nan(1), number_or_nan("1")
    (1.0, nan)
    """
    found = numeric(value)
    return math.nan if isinstance(found, str) else found


def numeric(entry: object) -> float | str:
    """One entry as a float, NaN where it is missing.  For anything else than a number, the name of
    its kind, in the plural.

    Numbers are integers, floats, booleans (as 0 and 1), decimals, fractions, and arrays, tensors
    and Arrow scalars without axes that hold one of them; digits in text are none.  Missing are
    ``None``, NaN, ``pandas.NA``, ``NaT``, masked entries, and Arrow's null.
    """
    if entry is None or entry is np.ma.masked:
        return math.nan
    if isinstance(entry, np.datetime64 | np.timedelta64):  # of which the latter is an integer, too
        kind = "dates" if isinstance(entry, np.datetime64) else "durations"
        return math.nan if np.isnat(entry) else kind
    if isinstance(entry, numbers.Real | Decimal | np.bool_):
        try:
            return float(entry)
        except OverflowError:
            return math.inf if entry > 0 else -math.inf  # type: ignore[operator]
        except ValueError:  # a signalling NaN
            return math.nan
    if isinstance(entry, numbers.Complex):
        return "complex numbers"
    if isinstance(entry, str | bytes):
        return "text"
    if type(entry).__name__ in ("NAType", "NaTType"):  # of pandas, which need not be imported
        return math.nan
    if hasattr(entry, "isoformat"):
        return "dates"
    if hasattr(entry, "total_seconds"):
        return "durations"
    inner = _unwrapped(entry)
    return "other things" if inner is entry else numeric(inner)


def _unwrapped(entry: object) -> object:
    """The value in an array, tensor or Arrow scalar without axes; everything else as it is."""
    if hasattr(entry, "as_py"):
        return entry.as_py()
    if isinstance(entry, np.ndarray) and entry.ndim == 0:
        return np.ma.masked if np.ma.is_masked(entry) else entry[()]
    if getattr(entry, "shape", None) == () and hasattr(entry, "item"):
        return entry.item()
    return entry


def interval(name: str, value: object) -> tuple[float, float]:
    """``value`` as a pair lo < hi of finite floats."""
    try:
        lo, hi = iter(value)  # type: ignore[call-overload]  # of which the error is caught
    except (TypeError, ValueError):
        pass
    else:
        lo, hi = real(f"{name}[0]", lo), real(f"{name}[1]", hi)
        if lo < hi and math.isfinite(hi - lo):
            return lo, hi
    raise ArgumentError(
        f"{name} must be a pair (lo, hi) with lo < hi and a finite width hi - lo, got"
        f" {shown(value)}",
        name,
    )


def choice(name: str, value: object, allowed: Collection[str]) -> str:
    """``value``, which must be one of ``allowed``."""
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError(
            f"{name} must be one of {', '.join(map(repr, allowed))}, got {shown(value)}", name
        )
    return value


def printable(name: str, value: object, longest: int) -> str:
    """``value``, which must be a text of 1 to ``longest`` printable characters, not only spaces."""
    text = value if isinstance(value, str) else ""
    if not (text.strip() and text.isprintable() and len(text) <= longest):
        raise ArgumentError(
            f"{name} must be a text of 1 to {longest} printable characters, got {shown(value)}",
            name,
        )
    return text


_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}  # in seconds


def seconds_of(text: str) -> int:
    """The seconds of a duration such as "6h"."""
    number, unit = _duration(text)
    return number * _UNITS[unit]


def _duration(text: str) -> tuple[int, str]:
    found = re.fullmatch(r"([1-9][0-9]{0,8})(s|min|h|d)", text)
    if found is None:
        raise ValueError("no duration")
    return int(found[1]), found[2]


def duration(name: str, value: object, low: str, high: str) -> str:
    """``value``, which must be a whole number and a unit, such as "90min", from low to high."""
    with suppress(ValueError):
        if isinstance(value, str) and seconds_of(low) <= seconds_of(value) <= seconds_of(high):
            return value
    raise ArgumentError(
        f"{name} must be a time from {low!r} to {high!r}, in s, min, h or d, got {shown(value)}",
        name,
    )


_TIME_OF_DAY = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")


def times_of_day(name: str, value: object) -> tuple[str, ...]:
    """``value``, which must be times of day such as "04:00", each once, as a sorted tuple."""
    times = list(value) if isinstance(value, list | tuple) else []
    good = [isinstance(one, str) and _TIME_OF_DAY.fullmatch(one) for one in times]
    if not times or not all(good) or len(set(times)) < len(times):
        raise ArgumentError(
            f"{name} must be a list of times of day, such as ['04:00'], got {shown(value)}", name
        )
    return tuple(sorted(times))


def flag(name: str, value: object) -> bool:
    """``value``, which must be True or False."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} must be True or False, got {shown(value)}", name)
    return value


def close_name(word: str, known: Iterable[str]) -> str:
    """A hint after an unknown name: the likely name, or all known names.

    >>> close_name("adacub", ["AdaCUCB", "UCB1"]), close_name("x", ["AdaCUCB", "UCB1"])
    ('did you mean AdaCUCB?', 'known: AdaCUCB, UCB1')
    """
    import difflib  # only for mistakes

    folded = {name.lower(): name for name in known}
    if match := difflib.get_close_matches(word.lower(), folded, n=1):
        return f"did you mean {_told_apart(folded[match[0]], word)}?"
    return f"known: {', '.join(folded.values()) or 'none'}"


def _told_apart(name: str, other: str) -> str:
    """A name, escaped where it looks like the other one: by signs that are not seen, or accents."""
    seen = [
        "".join(sign for sign in unicodedata.normalize("NFKC", one) if sign.isprintable())
        for one in (name, other)
    ]
    return ascii(name) if seen[0] == seen[1] else name


def shown(value: object) -> str:
    """An argument in a message, cut where it is long.  For an array or a table it is the shape
    alone, because entries may be private.

    >>> shown(0.5), shown(np.eye(2))
    ('0.5', 'ndarray of shape (2, 2)')
    """
    if (shape := getattr(value, "shape", ())) != ():
        return f"{type(value).__name__} of shape {shape}"
    try:
        text = repr(value)
    except ValueError:  # of an integer with thousands of digits
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def shortest(number: float) -> str:
    """A number as text that reads back as it: of six digits where they do, of all where not."""
    text = f"{number:.6g}"
    return text if float(text) == number else repr(float(number))


def upward(number: float, digits: int = 6) -> float:
    """The least number of so many decimal digits that is not smaller: a bound from above stays one.
    A part in 10**12 counts as rounding, not as more.

    >>> upward(0.29999999999999993), upward(0.1234561), upward(0.30000000000000004)
    (0.3, 0.123457, 0.3)
    """
    return _to_digits(number, digits, ROUND_CEILING)


def downward(number: float, digits: int = 6) -> float:
    """The largest number of so many decimal digits that is not larger, likewise.

    >>> downward(4.2246789, 4), downward(4.9999999999999)
    (4.224, 5.0)
    """
    return _to_digits(number, digits, ROUND_FLOOR)


def _to_digits(number: float, digits: int, rounding: str) -> float:
    if not math.isfinite(number) or number == 0.0:
        return number
    nearest = float(f"{number:.{digits}g}")
    if abs(nearest - number) <= _ROUNDING * abs(number):
        return nearest
    return float(Context(prec=digits, rounding=rounding).create_decimal(number))


def reach_text(low: int, high: int) -> str:
    """The words for the integers in [low, high]."""
    return f"at least {low:,}" if high == LARGEST else f"between {low:,} and {high:,}"


def interval_text(low: float, high: float, strict: bool) -> str:
    """The interval [low, high], or (low, high) where ``strict``, in the notation of mathematics."""
    left = "(" if strict or low == -math.inf else "["
    right = ")" if strict or high == math.inf else "]"
    return f"{left}{low:g}, {high:g}{right}"
