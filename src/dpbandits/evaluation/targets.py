"""Targets of evaluation: with which probabilities a policy would have played each arm."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..policies import Policy
from ..policies.chooser import Chooser
from ..policies.registry import find
from .rows import Rows, padded, probability_table

_DIGITS = 6  # of an arm's number: no array has room for more


def probabilities(target: Any, rows: Rows, rng: np.random.Generator | None = None) -> np.ndarray:
    """The target's probability of each arm in each row, shape (n, K): of all arms of the log.

    Policies draw from ``rng``, or without one as choosers do.
    """
    return padded(_probabilities(target, rows, rng), rows.n_arms)


def _probabilities(target: Any, rows: Rows, rng: np.random.Generator | None) -> np.ndarray:
    if isinstance(target, Policy):
        target = target.chooser()
    if isinstance(target, Chooser):
        return _of_chooser(target if rng is None else target.seeded(rng), rows)
    if callable(target):
        return _of_function(target, rows)
    if isinstance(target, str | numbers.Integral) and not isinstance(target, bool):
        return rows.of_each("target", _indicators([_arm(target, rows)], rows)[0])
    found = probability_table("target", target, "K", "n, K", "n, K, positions")
    found = rows.of_each("target", found)
    if found.ndim < 3:
        return found
    if rows.positions is None or rows.positions.max() >= found.shape[2]:
        raise ArgumentError(
            "target must be a table with a row for each record and a column for each arm, got shape"
            f" {found.shape}. A third axis, for positions, is allowed only if the log has"
            " positions, and must cover them all",
            "target",
        )
    return found[np.arange(len(rows)), :, rows.positions]


def _arm(target: str | numbers.Integral, rows: Rows) -> str | numbers.Integral | int:
    """Digits are a name if the log has it, and otherwise a number."""
    if not isinstance(target, str) or target in (rows.names or ()):
        return target
    return int(target) if target.isdecimal() and len(target) <= _DIGITS else target


def _of_chooser(chooser: Chooser, rows: Rows) -> np.ndarray:
    """One draw for each row: on average over draws that is the policy's own distribution."""
    card = find(chooser.arguments["class"]).card
    names = chooser.arguments.get("arm_names")
    if not card.randomised and rows.contexts is None:
        arms = [chooser.choose()] * len(rows)
    else:
        shown = [None] * len(rows) if rows.contexts is None else rows.contexts
        arms = [chooser.choose(one) for one in shown]
    if names is not None and rows.names is not None:
        return _indicators([names[arm] for arm in arms], rows)
    return _indicators(arms, rows)


def _of_function(target: Callable[[Any], Any], rows: Rows) -> np.ndarray:
    shown = [None] * len(rows) if rows.contexts is None else rows.contexts
    answers = [target(one) for one in shown]
    if np.ndim(answers[0]) == 0:
        return _indicators(answers, rows)
    try:
        table = np.array(answers, float)
    except (TypeError, ValueError):
        raise ArgumentError(
            "target must return one arm for each context, or a probability for each arm, got rows"
            " of several lengths",
            "target",
        ) from None
    return probability_table("target", table, "n, K")


def _indicators(arms: list[Any], rows: Rows) -> np.ndarray:
    """A table with 1 at these arms, which are numbers or names."""
    known = {name: number for number, name in enumerate(rows.names or ())}
    found = np.array([known.get(one, -1) if isinstance(one, str) else _number(one) for one in arms])
    if (found < 0).any():
        told = f"; the log's arms are {', '.join(map(repr, list(known)[:20]))}" if known else ""
        raise ArgumentError(
            f"target must choose arms of the log, by number or name{told}", "target"
        )
    table = np.zeros((len(arms), max(rows.n_arms, int(found.max()) + 1)))
    table[np.arange(len(arms)), found] = 1.0
    return table


def _number(arm: Any) -> int:
    """An arm as a number; -1 for anything else, and for numbers that no array has room for."""
    if isinstance(arm, np.ndarray) and arm.ndim == 0:
        arm = arm.item()
    whole = isinstance(arm, numbers.Integral) and not isinstance(arm, bool)
    return int(arm) if whole and 0 <= arm < 10**_DIGITS else -1
