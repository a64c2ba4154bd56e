"""The law of a finite policy: probabilities of its decisions, given its inputs.

The policy may receive other arms than those that it recommended.  So the law has the probability of
decisions o_1, ..., o_T given contexts x, and given any received arms q and rewards r.  The digits
x_1 o_1 q_1 r_1 x_2 ... x_T o_T are the index of a probability.  For tables it is the product of
pi_t(o_t | x_1, q_1, r_1, ..., x_t).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .views import Sizes

MOST = 2**24  # probabilities of a law

_TINY = 1e-290  # below, the probability of a sequence might become 0
_ROUNDING = 1e-9  # by how much floats may miss a sum of 1


def refuse_large(sizes: Sizes, most: int = MOST) -> None:
    """Refuse a policy whose law would be too long, before anything is allocated."""
    k, r, x, t = sizes
    # The logarithm first: the number itself may have millions of digits.
    if (t - 1) * math.log(x * k * k * r) + math.log(x * k) > math.log(most) + 1e-9:
        raise ArgumentError(
            f"horizon must be shorter: {sizes} need {x * k:,} x {x * k * k * r:,}^{t - 1:,}"
            f" probabilities, and at most {most:,} are feasible",
            "horizon",
        )


def law_of(tables: Sequence[np.ndarray], sizes: Sizes) -> np.ndarray:
    """The law of tables with a row for each history and a column for each arm."""
    k, r, x, t = sizes
    law, history = np.ones(1, tables[0].dtype), np.zeros(1, np.int64)
    for done, table in enumerate(tables):
        law = law[:, np.newaxis, np.newaxis] * table.reshape(-1, x, k)[history]
        if done + 1 == t:
            break
        law = np.broadcast_to(law[..., np.newaxis], (*law.shape, k * r)).reshape(-1)
        told = np.arange(x)[:, np.newaxis, np.newaxis] * (k * r) + np.arange(k * r)
        told = np.broadcast_to(told, (x, k, k * r))  # the decision is not part of a history
        history = (history[:, np.newaxis] * (x * k * r) + told.reshape(-1)).reshape(-1)
    return law.reshape(-1)


def through(law: np.ndarray, sizes: Sizes, channel: np.ndarray) -> np.ndarray:
    """The law if rewards pass through a channel, which has a row of report probabilities for each
    reward.

    The hidden reports are summed over, round by round: a report depends on the reward of its own
    round alone.
    """
    k, r, x, t = sizes
    if channel.dtype != law.dtype:
        channel, law = channel.astype(float), law.astype(float)
    least = law[law > 0].min() * channel[channel > 0].min() ** (t - 1)
    if law.dtype != object and least < _TINY:
        raise ArgumentError(
            f"channel must have larger probabilities for {t} rounds, or only numbers of type"
            " fractions.Fraction: products of these floats are too small",
            "channel",
        )
    law = law.reshape(*(x, k, k, r) * (t - 1), x * k)
    for done in range(t - 1):
        axis = 4 * done + 3
        law = np.moveaxis(np.tensordot(channel, law, axes=(1, axis)), 0, axis)
    return law.reshape(-1)


def checked(probabilities: Sequence[object] | np.ndarray) -> list[np.ndarray]:
    """Tables of numbers as arrays with a column for each arm, of fractions if all are rational, or
    else of floats; raises ArgumentError where a row is no probability distribution.
    """
    try:
        tables = [np.array(table, dtype=object) for table in probabilities]
        wide = [table.reshape(-1, table.shape[-1]) for table in tables]
    except (TypeError, ValueError, IndexError):
        wide = []
    if not wide or wide[0].shape[1] == 0:
        raise ArgumentError(
            f"probabilities must be a table for each round, with a column for each arm, got"
            f" {probabilities!r}"[:300],
            "probabilities",
        )
    numbers = [np.frompyfunc(_number, 1, 1)(table) for table in wide]
    exact = all(isinstance(one, Fraction) for table in numbers for one in table.flat)
    return [
        _distributions(f"probabilities[{t}]", table if exact else table.astype(float), len(wide))
        for t, table in enumerate(numbers)
    ]


def _number(value: Any) -> Fraction | float:
    """A probability: text and rational numbers exactly, everything else as a float."""
    try:
        if isinstance(value, str | Rational) and not isinstance(value, bool):
            return Fraction(value)
        return float(value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise ArgumentError(
            f"probabilities must be numbers, or text like '2/3', got {value!r}", "probabilities"
        ) from None


def _distributions(name: str, table: np.ndarray, rounds: int) -> np.ndarray:
    """The table.  Each row must sum to 1; floats are divided by their sum."""
    exact = table.dtype == object
    sums = table.sum(axis=1, keepdims=True)
    wrong = ~((table >= 0).all(axis=1) & (abs(sums[:, 0] - 1) <= (0 if exact else _ROUNDING)))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ArgumentError(
            f"{name} must have rows that are not negative and sum to 1, got"
            f" {[str(one) for one in table[row]]} in row {row}",
            "probabilities",
        )
    if not exact:
        table = table / sums
        if table[table > 0.0].min() ** rounds < _TINY:
            raise ArgumentError(
                f"{name} must hold only zeros and numbers of at least"
                f" {_TINY ** (1 / rounds):.1g} for {rounds} rounds, or only fractions such as"
                " '1/3'",
                "probabilities",
            )
    return table
