"""Small policies that are worth knowing."""

from __future__ import annotations

from collections.abc import Callable

from .policy import FinitePolicy


def view_not_table() -> FinitePolicy:
    """Azize & Basu (2024), Proposition 1(e): (0.95, 0.17)-private from the view, not from the table.

    Two arms, three rounds; the numbers are the probabilities of the first arm.
    """
    first = [
        ["2/3"],
        ["1/2", "1/3", "1/4", "1/3"],
        [
            *("1/2", "1/3", "1/4", "1/5", "1/2", "2/3", "1/4", "0"),
            *("1/3", "1/7", "3/4", "2/5", "1/2", "1", "1/4", "2/3"),
        ],
    ]
    from fractions import Fraction
    return FinitePolicy([[[Fraction(p), 1 - Fraction(p)] for p in table] for table in first])


EXAMPLES: dict[str, Callable[[], FinitePolicy]] = {
    "view-not-table": view_not_table,
}
