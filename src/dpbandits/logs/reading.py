"""Reading a log: every row is looked at before anything is learned from one.

Errors tell whoever holds the log in which row it is wrong, and never what stands there.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError
from ..policies import Policy
from ..tables import Manner, blocks, column, flat
from ..tables import manners as known
from .folders import one_row_each, read_table

_NAMED = 20  # names of arms in a message


class Log(NamedTuple):
    """The records that a policy is to learn from.

    Attributes:
        arms: that were played, shape (n,), int64.
        rewards: shape (n,); NaN where there is none.
        contexts: what ``pull`` takes, for each record; None for policies that take none.
    """

    arms: np.ndarray
    rewards: np.ndarray
    contexts: Any

    def shown(self, i: int) -> Any:
        """What ``pull`` is given for a record."""
        return None if self.contexts is None else self.contexts[i]

    def only(self, records: np.ndarray) -> Log:
        """Of these records alone; for policies that take no contexts."""
        return Log(self.arms[records], self.rewards[records], None)


def as_table(frame: Any) -> Any:
    """A table with one row for each decision, from a folder of ``DecisionLog`` or a table."""
    if isinstance(frame, str | os.PathLike):
        return read_table("frame", frame, rewards=True)
    return one_row_each(frame)


def read(policy: Policy, frame: Any, arm: str, reward: str, features: Any, *, private: bool) -> Log:
    """The log, as the policy takes it."""
    arms = _arms(policy, column(frame, arm), f"column {arm!r}")
    manner = known.LOGGED_REWARDS if policy.clip else known.UNCLIPPED_REWARDS
    place = f"column {reward!r}"
    rewards = flat("reward", column(frame, reward), manner, at=place, rows=arms.size)
    hidden = private and policy.card.hides_contexts
    manner = known.PRIVATE if hidden else known.PUBLIC_FEATURES
    contexts = _contexts(policy, frame, features, manner, arms.size)
    if contexts is not None:
        _look_at(policy, contexts, arms)
    return Log(arms, rewards, contexts)


def propensities(frame: Any, name: str, rows: int) -> np.ndarray:
    """The probabilities with which arms were drawn, shape (n,)."""
    given = column(frame, name)
    return flat("propensity", given, known.PROPENSITIES, at=f"column {name!r}", rows=rows)


def _arms(policy: Policy, given: Any, place: str) -> np.ndarray:
    """By number, or by name where arms have names."""
    plain = given.to_pylist() if hasattr(given, "to_pylist") else given
    try:
        entries = list(plain)
    except TypeError:  # one arm and no column, which ``flat`` refuses
        entries = []
    if policy.arm_names is not None and any(isinstance(one, str) for one in entries):
        numbers = {name: number for number, name in enumerate(policy.arm_names)}
        arms = np.array(
            [numbers.get(one, -1) if isinstance(one, str) else -1 for one in entries], np.int64
        )
        names = ", ".join(map(repr, policy.arm_names[:_NAMED]))
        _refuse_rows(arms < 0, f"arm ({place}) must hold names of arms, {names}, got another")
    else:
        arms = flat("arm", given, known.arms(policy.n_arms), at=place).astype(np.int64)
    retired = np.isin(arms, policy.retired)
    _refuse_rows(retired, f"arm ({place}) must hold arms that are not retired, got one that is")
    return arms


def _refuse_rows(bad: np.ndarray, message: str) -> None:
    if bad.any():
        more = f", and in {bad.sum() - 1:,} more" if bad.sum() > 1 else ""
        raise ArgumentError(f"{message} in row {bad.argmax()}{more}", "arm")


def _contexts(policy: Policy, frame: Any, features: Any, manner: Manner, rows: int) -> Any:
    taken = type(policy).seen is not Policy.seen
    if features is None:
        if taken:
            raise ArgumentError(
                f"features must be given, for {type(policy).__name__} takes contexts: names of"
                " columns, or an array for each record; a log of decisions has them in the column"
                " 'features'",
                "features",
            )
        return None
    if not taken:
        raise ArgumentError(
            f"features must not be given: {type(policy).__name__} takes no contexts", "features"
        )
    if isinstance(features, str):
        given = column(frame, features)
        return blocks("features", given, manner, at=f"column {features!r}", rows=rows)
    if _are_names(features):
        each = (
            flat("features", column(frame, name), manner, at=f"column {name!r}", rows=rows)
            for name in features
        )
        return np.column_stack(list(each))
    return blocks("features", features, manner, rows=rows)


def _are_names(features: Any) -> bool:
    """Whether it is a list of names, or the columns of a data frame."""
    if hasattr(features, "columns") or not np.iterable(features):
        return False
    entries = list(features)
    return len(entries) > 0 and all(isinstance(one, str) for one in entries)


def _look_at(policy: Policy, contexts: Any, arms: np.ndarray) -> None:
    """Whether the policy takes them, and they tell of the arms that were played."""
    for i, (one, arm) in enumerate(zip(contexts, arms.tolist(), strict=True)):
        try:
            shown = seen_aside(policy, one)
        except ArgumentError as error:
            told = str(error).removeprefix("contexts ")
            raise ArgumentError(f"features {told} in row {i}", "features") from None
        if arm >= len(shown):
            raise ArgumentError(
                f"features must have a row for the arm that was played, got {len(shown)} rows"
                f" in row {i}",
                "features",
            )


def seen_aside(policy: Policy, contexts: Any) -> Any:
    """What ``choose`` sees, of contexts that ``pull`` is given, too, and alone counts."""
    rounds = policy.session.rounds
    policy.session.rounds = replace(rounds)  # whose counters change, and nothing else
    try:
        return policy.seen(contexts)
    finally:
        policy.session.rounds = rounds
