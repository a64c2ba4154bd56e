"""Reading a log: every row is checked before a policy learns from one.

Errors give the row of a wrong entry, and never the entry.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..policies import Policy
from ..tables import (
    Frame,
    Manner,
    TableLike,
    blocks,
    column,
    column_names,
    flat,
    is_missing,
    listed,
    numbered,
)
from ..tables import manners as known
from .folders import (
    is_of_decisions,
    one_row_each,
    read_table,
    refuse_returning,
    refuse_unrecorded,
)


class Log(NamedTuple):
    """The records for a policy to learn from."""

    arms: np.ndarray  # that were played, shape (n,), int64
    rewards: np.ndarray  # shape (n,); NaN where there is none
    # What ``pull`` takes, for each record; None for policies that take none.
    contexts: Sequence[ArrayLike] | np.ndarray | None
    replaced: int = 0  # how many private ones were none that the policy takes

    def shown(self, i: int) -> ArrayLike | None:
        """The argument of ``pull`` for a record."""
        return None if self.contexts is None else self.contexts[i]

    def only(self, records: np.ndarray) -> Log:
        """This log restricted to some records; for policies that take no contexts."""
        return Log(self.arms[records], self.rewards[records], None)


def as_table(frame: str | os.PathLike[str] | Frame, *, private: bool) -> Frame:
    """A table with one row for each decision, from a folder of ``DecisionLog`` or a table."""
    given: Any = frame
    if isinstance(frame, str | os.PathLike):
        given = read_table("frame", frame, fit=True)
    table = one_row_each(given)
    if private:
        refuse_returning("frame", given)
        refuse_unrecorded(table)
    return table


def read(
    policy: Policy,
    frame: Frame,
    arm: str,
    reward: str,
    features: TableLike | None,
    *,
    private: bool,
) -> Log:
    """The log, as the policy takes it."""
    arms = _arms(policy, frame, arm)
    manner = known.LOGGED_REWARDS if policy.clip else known.UNCLIPPED_REWARDS
    given = column(frame, reward, by="reward")
    rewards = flat("reward", given, manner, at=f"column {reward!r}", rows=arms.size)
    hidden = private and policy.card.hides_contexts
    manner = known.PRIVATE if hidden else known.PUBLIC_FEATURES
    contexts = _contexts(policy, frame, features, manner, arms.size)
    if contexts is None:
        return Log(arms, rewards, None)
    return Log(arms, rewards, *_fitting(policy, contexts, arms, hidden=hidden))


def propensities(frame: Frame, name: str, rows: int) -> np.ndarray:
    """The probabilities with which arms were drawn, shape (n,)."""
    given = column(frame, name, by="propensity")
    return flat("propensity", given, known.PROPENSITIES, at=f"column {name!r}", rows=rows)


def _arms(policy: Policy, frame: Frame, name: str) -> np.ndarray:
    given, place = column(frame, name, by="arm"), f"column {name!r}"
    arms = _by_name(policy, frame, name, given) if policy.arm_names is not None else None
    if arms is None:
        arms = flat("arm", given, known.arms(policy.n_arms), at=place).astype(np.int64)
    retired = np.isin(arms, policy.retired)
    if retired.any():
        more = f", and in {retired.sum() - 1:,} more" if retired.sum() > 1 else ""
        raise ArgumentError(
            f"arm ({place}) must hold no retired arm, got a retired arm in row"
            f" {retired.argmax()}{more}",
            "arm",
        )
    return arms


def _by_name(policy: Policy, frame: Frame, name: str, given: TableLike) -> np.ndarray | None:
    """The arms by names in the column, or in the one beside it; None where there are none."""
    names, place = list(policy.arm_names or ()), f"column {name!r}"
    beside = None if name != "arm" else _names_beside(names, frame)
    if beside is None or any(isinstance(one, str) for one in listed(given)):
        return numbered("arm", given, names, at=place, source="arm_names")
    numbers = flat("arm", given, known.PRIVATE_RECORD, at=place, rows=len(beside))
    if nameless := [i for i, one in enumerate(beside) if is_missing(one)]:
        numbered("arm", numbers, names, at=place, source="arm_names")
        named = dict(enumerate(names))
        for i in nameless:  # there the number counts
            beside[i] = named.get(numbers[i])
    return numbered("arm", beside, names, at="column 'name'", source="arm_names")


def _names_beside(names: list[str], frame: Frame) -> list[Any] | None:
    """The column ``name``; None without one, or where another table has something else in it."""
    if "name" not in (column_names(frame) or ()):
        return None
    beside = listed(frame["name"])
    named = {one for one in beside if isinstance(one, str)}
    if not named or not (is_of_decisions(frame) or named.intersection(names)):
        return None
    return beside


def _contexts(
    policy: Policy,
    frame: Frame,
    features: TableLike | None,
    manner: Manner,
    rows: int,
) -> Any:
    taken = bool(policy.sees)
    if features is None:
        if taken:
            raise ArgumentError(
                f"features must be given for {policy.preset}, as names of columns or an array for"
                " each record. A log of decisions has features in the column 'features'",
                "features",
            )
        return None
    if not taken:
        raise ArgumentError(
            f"features must not be given: {policy.preset} takes no contexts", "features"
        )
    if isinstance(features, dict):
        raise ArgumentError(
            "features must be names of columns, or an array for each record, got a dict: put its"
            " columns into frame, and give their names",
            "features",
        )
    if isinstance(features, str):
        given = column(frame, features, by="features")
        return blocks("features", given, manner, at=f"column {features!r}", rows=rows)
    if _are_names(features):
        if len(features) == rows and not set(features).issubset(column_names(frame) or ()):
            raise ArgumentError(  # what stands there may be data
                "features must be names of columns, or an array for each record, got a text for"
                " each record",
                "features",
            )
        each = [
            flat("features", column(frame, name), manner, at=f"column {name!r}", rows=rows)
            for name in map(str, features)
        ]
        return np.column_stack(each)
    return blocks("features", features, manner, rows=rows)


def _are_names(features: object) -> TypeGuard[Sequence[str]]:
    if hasattr(features, "columns") or not np.iterable(features):
        return False
    entries = list(features)
    return len(entries) > 0 and all(isinstance(one, str) for one in entries)


def _fitting(policy: Policy, contexts: Any, arms: np.ndarray, *, hidden: bool) -> tuple[Any, int]:
    """The contexts, if the policy takes them and they cover the played arms; and the number that
    were replaced by zeros.  Those are private contexts of a wrong shape, which an error would
    reveal.  If no context fits, it is the wrong column, which is public.
    """
    errors = {}
    for i, (one, arm) in enumerate(zip(contexts, arms.tolist(), strict=True)):
        if (error := _unfit(policy, one, arm, i)) is not None:
            if not hidden:
                raise error
            errors[i] = error
    if not errors:
        return contexts, 0
    if len(errors) == len(arms):
        raise errors[0]
    nothing = np.full((policy.n_arms, policy.config["dimension"]), np.nan)
    return [nothing if i in errors else one for i, one in enumerate(contexts)], len(errors)


def _unfit(policy: Policy, one: Any, arm: int, i: int) -> ArgumentError | None:
    """Why the contexts of a record cannot have led to its arm."""
    try:
        shown = seen_aside(policy, one)
    except ArgumentError as error:
        told = str(error).removeprefix("contexts ")
        return ArgumentError(f"features {told} in row {i}", "features")
    if arm >= len(shown):
        return ArgumentError(
            f"features must have a row for the arm that was played, got {len(shown)} rows of"
            f" features for record {i}",
            "features",
        )
    return None


def seen_aside(policy: Policy, contexts: ArrayLike | None) -> Any:
    """Contexts of ``pull`` as ``choose`` sees them; leaves the session's counters unchanged."""
    rounds = policy.session.rounds
    policy.session.rounds = replace(rounds)  # whose counters change, and nothing else
    try:
        return policy.seen(contexts)
    finally:
        policy.session.rounds = rounds
