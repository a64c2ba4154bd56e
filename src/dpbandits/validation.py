"""The door: arguments are checked here once, so that everything behind it is free of checks."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

import numpy as np

from .errors import ArgumentError

_LARGEST = 2**62
_ROUNDING = 1e-12  # relative: what sums of floats are off by, and nobody has lost


def integer(name: str, value: Any, low: int, high: int = _LARGEST) -> int:
    """``value`` as an int in [low, high], or an ``ArgumentError`` that names it."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if whole and low <= int(value) <= high:
        return int(value)
    reach = (
        f"at least {low}"
        if high == _LARGEST and not (whole and value > high)
        else f"between {low} and {high}"
    )
    raise ArgumentError(f"{name} must be an integer {reach}, got {value!r}", name)


def real(
    name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, strict: bool = False
) -> float:
    """``value`` as a finite float in [low, high], or in (low, high) when ``strict``."""
    try:
        number = (
            float(value)
            if isinstance(value, numbers.Real) and not isinstance(value, bool)
            else math.nan
        )
    except OverflowError:
        number = math.inf
    if math.isfinite(number) and (low < number < high if strict else low <= number <= high):
        return number
    raise ArgumentError(
        f"{name} must be a number in {_interval(low, high, strict)}, got {value!r}", name
    )


def number(name: str, value: Any) -> float:
    """``value`` as a float, infinite or NaN where it is; takes what ``float`` takes but text."""
    try:
        if not isinstance(value, str | bytes):
            return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        pass
    raise ArgumentError(f"{name} must be a number, got {value!r}", name)


def interval(name: str, value: Any) -> tuple[float, float]:
    """``value`` as a pair lo < hi of finite floats."""
    try:
        lo, hi = value
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name} must be a pair (lo, hi) with lo < hi, got {value!r}", name
        ) from None
    lo, hi = real(f"{name}[0]", lo), real(f"{name}[1]", hi)
    if not lo < hi or not math.isfinite(hi - lo):
        raise ArgumentError(f"{name} must be a pair (lo, hi) with lo < hi, got {value!r}", name)
    return lo, hi


def features(name: str, value: Any, largest: float = 1e100) -> np.ndarray:
    """``value`` as a read-only table of shape (K, d) of numbers in [-largest, largest], K and d at
    least 1.
    """
    try:
        table = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name} must be a table of numbers of shape (K, d), got {value!r}", name
        ) from None
    if table.ndim != 2 or table.size == 0:
        raise ArgumentError(
            f"{name} must be a table of shape (K, d) with K and d at least 1, got shape"
            f" {table.shape}",
            name,
        )
    if not np.all(np.abs(table) <= largest):
        raise ArgumentError(
            f"{name} must hold numbers in [{-largest:g}, {largest:g}], got {table.tolist()}", name
        )
    table.flags.writeable = False
    return table


def choice(name: str, value: Any, allowed: Collection[str]) -> str:
    """``value``, which must be one of ``allowed``."""
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError(
            f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}", name
        )
    return value


def printable(name: str, value: Any, longest: int) -> str:
    """``value``, which must be a text of 1 to ``longest`` printable characters, not only spaces."""
    if not (
        isinstance(value, str) and value.strip() and value.isprintable() and len(value) <= longest
    ):
        raise ArgumentError(
            f"{name} must be a text of 1 to {longest} printable characters, got {value!r}", name
        )
    return value


def flag(name: str, value: Any) -> bool:
    """``value``, which must be True or False."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} must be True or False, got {value!r}", name)
    return value


def shortest(number: float) -> str:
    """A number as text that reads back as the same number: six digits where they do, all of them
    where not.
    """
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


def _interval(low: float, high: float, strict: bool) -> str:
    left, right = (
        ("(" if strict or low == -math.inf else "["),
        (")" if strict or high == math.inf else "]"),
    )
    return f"{left}{low:g}, {high:g}{right}"
