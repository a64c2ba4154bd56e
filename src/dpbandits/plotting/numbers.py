"""Formats of numbers in figures and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise


def number(value: float, digits: int = 3) -> str:
    """About ``digits`` significant digits, with thousands separators.

    >>> number(12345.6), number(0.05678), number(-3.0), number(float("nan"))
    ('12,346', '0.0568', '−3', '–')
    """
    if not math.isfinite(value):
        return "∞" if value == math.inf else "–"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    if places > 6:
        return f"{value:.{digits}g}".replace("-", "−")
    text = f"{value:,.{places}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")


def number_near_one(value: float) -> str:
    """As ``number``, but near 1 with three digits of the distance from 1: a ratio of 0.9962 is not
    1.

    >>> [number_near_one(value) for value in (0.99621, 1.000123, 1.0, 1.25, -0.05678)]
    ['0.99621', '1.000123', '1', '1.25', '−0.0568']
    """
    distance = abs(value - 1.0)
    if not 1e-9 < distance < 0.1:
        return number(value)
    return f"{value:.{2 - math.floor(math.log10(distance))}f}".rstrip("0").rstrip(".")


def places_for(ticks: Sequence[float]) -> int:
    """The number of decimals that evenly spaced ticks need.  All labels get the same number, to be
    as far apart as the ticks.

    >>> places_for([45.0, 47.5, 50.0]), places_for([0.0, 20.0]), places_for([0.1, 0.125])
    (1, 0, 3)
    """
    places = sorted(ticks)
    step = min((b - a for a, b in pairwise(places) if b > a), default=1.0)
    needed = (
        count
        for count in range(10)
        if all(abs(round(one, count) - one) <= 1e-3 * step for one in places)
    )
    return next(needed, 10)


def with_places(value: float, places: int) -> str:
    """A number with so many decimals, and thousands separators.

    >>> with_places(12345.6, 0), with_places(-2.5, 2), with_places(-0.0, 1)
    ('12,346', '−2.50', '0.0')
    """
    return f"{value + 0.0:,.{places}f}".replace("-", "−")


def abbreviated(value: float) -> str:
    """A round number on an axis.

    >>> abbreviated(100), abbreviated(20_000), abbreviated(1e7)
    ('100', '20k', '10M')
    """
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{sign}"
    return f"{value:g}"


def per_thousand(value: float) -> str:
    """A count of people out of 1,000, to one decimal."""
    return f"{value:,.1f}".replace("-", "−")


def reward_amount(value: float) -> str:
    """A sum of rewards, such as a regret: whole from ten on."""
    return number(value, 2) if abs(value) < 10 else f"{value:,.0f}".replace("-", "−")


def signed_per_thousand(value: float) -> str:
    """A difference in people out of 1,000, with its sign."""
    return ("+" if value > 0 else "") + per_thousand(value)


def percent(share: float, places: int = 0) -> str:
    """A share in percent."""
    return f"{100 * share:.{places}f} %"


def probability_in_words(probability: float) -> str:
    """A small probability in words.

    >>> probability_in_words(1e-6), probability_in_words(0.02)
    ('one in a million', 'one in 50')
    """
    words = {1e3: "a thousand", 1e6: "a million", 1e9: "a billion"}
    whole = float(f"{1 / probability:.3g}")
    return f"one in {words.get(whole) or number(whole)}"


def duration(elapsed: float) -> str:
    """A duration as people say it."""
    if elapsed < 90:
        return f"{number(elapsed, 2)} s"
    return f"{elapsed / 60:.1f} min" if elapsed < 5400 else f"{elapsed / 3600:.1f} h"
