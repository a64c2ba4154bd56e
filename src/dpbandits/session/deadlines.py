"""Deadlines of answers: which pulls are past theirs.

A deadline is a number of pulls, or a wait by the clock.  By the clock it is the first point of a
grid that is not before the pull plus the wait.  The grid has the multiples of wait / 60, or of a
second if that is longer.  Hence few deadlines are kept here, however many pulls there were.

Times never run backwards: an earlier time than the last one counts as that.  Deadlines come in the
order of pulls: none is before that of an earlier pull.

All of this is public.  It depends on pulls, ticks and their times, and on no answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..validation import seconds_of

ASSUMED = "times of pull() and tick() are public, and depend on rewards only through releases"
ASSUMED_OF_CHANGES = "when deadlines of answers change depends on rewards only through releases"
_POINTS = 60  # of the grid, within a wait
_DAY = 86_400


class Due(NamedTuple):
    """The deadline of all pulls from one on."""

    first: int  # the number of that pull
    pulls: int | None  # so many pulls later; None: by the clock
    point: float = 0.0  # of the grid, in seconds since the epoch


@dataclass(repr=False, slots=True)
class Deadlines:
    """The deadlines of pulls that are not past them, and how many pulls are."""

    within: int | str | None = 0  # of coming pulls; None: without a deadline
    coming: int | str | None = None  # ``within`` from the next episode on; None: as it is
    passed: int = 0  # so many of the first pulls are past their deadline
    late: int = 0  # answers to pulls before this one come too late, by the clock
    now: float | None = None  # the latest time that was given
    finishing: bool = False  # whether a time of day has come that releases all that is over
    due: tuple[Due, ...] = ()  # in the order of pulls

    @classmethod
    def of(cls, within: int | str | None) -> Deadlines:
        """Those of a new policy."""
        return cls(within, due=(Due(0, within),) if isinstance(within, int) else ())

    @property
    def latest(self) -> int | str | None:
        """The deadline that was asked for last."""
        return self.within if self.coming is None else self.coming

    @property
    def uses_clock(self) -> bool:
        """Whether a deadline, or a coming one, is by the clock."""
        if isinstance(self.within, str) or isinstance(self.coming, str):
            return True
        # Before the first time that was given, no pull got such a deadline.
        return self.now is not None and any(one.pulls is None for one in self.due)

    def change(self, within: int | str, *, at_once: bool) -> None:
        """Other deadlines from the next pull on, or from the next episode on."""
        if at_once:
            self.within, self.coming = within, None
        else:
            self.coming = within

    def begin_episode(self) -> None:
        """The pulls after this belong to another episode."""
        if self.coming is not None:
            self.within, self.coming = self.coming, None

    def count(self, number: int) -> None:
        """Give the pull of this number its deadline."""
        within, last = self.within, self.due[-1] if self.due else None
        if within is None or (last is not None and last.pulls == within):
            return
        if isinstance(within, str):
            assert self.now is not None  # every such pull has ticked
            point = _point(self.now, seconds_of(within))
            if last is None or last.pulls is not None or last.point < point:
                self.due = (*self.due, Due(number, None, point))
        else:
            self.due = (*self.due, Due(number, within))

    def wait(self, at: float | None) -> float:
        """How many seconds there are to the deadline of the last pull; inf if that is no time."""
        last = self.due[-1] if self.due else None
        if at is None or last is None or last.pulls is not None:
            return math.inf
        return last.point - at

    def latest_time(self, at: float) -> float:
        """The time ``at``, which never runs backwards."""
        return at if self.now is None else max(self.now, at)

    def advance(self, at: float | None, pulls: int, finish_at: Sequence[str] | None) -> None:
        """Pass all deadlines up to a time, after so many pulls; None where none is by the clock."""
        due = self.due
        if len(due) == 1 and (later := due[0].pulls) is not None and at is None:
            self.passed = max(self.passed, pulls - later)  # as in nearly every round
            return
        self.see(at, finish_at)
        self.passed, self.late, self.due = self._passed_by(self.now, pulls)

    def see(self, at: float | None, finish_at: Sequence[str] | None) -> None:
        """Note a time, and pass no deadline."""
        if at is not None:
            self.finishing |= self.finishes(at, finish_at)
            self.now = self.latest_time(at)

    def has_news(self, at: float, pulls: int, finish_at: Sequence[str] | None) -> bool:
        """Whether ``advance`` to a time would pass a deadline, or a time of day."""
        passed, late, _ = self._passed_by(self.latest_time(at), pulls)
        finishing = self.finishing or self.finishes(at, finish_at)
        return finishing or (passed, late) != (self.passed, self.late)

    def is_late(self, number: int, at: float, pulls: int) -> bool:
        """Whether the answer to a pull comes too late by the clock."""
        return number < self._passed_by(self.latest_time(at), pulls)[1]

    def finishes(self, at: float, finish_at: Sequence[str] | None) -> bool:
        """Whether one of these times of day comes after the latest time, and not after ``at``."""
        if self.now is None or finish_at is None:
            return False
        return any(
            (at - second) // _DAY > (self.now - second) // _DAY
            for second in map(second_of_day, finish_at)
        )

    def _passed_by(self, now: float | None, pulls: int) -> tuple[int, int, tuple[Due, ...]]:
        """``passed``, ``late`` and ``due`` at a time, after so many pulls."""
        passed, late, due = self.passed, self.late, self.due
        while due:
            until = due[1].first if len(due) > 1 else pulls
            if (later := due[0].pulls) is not None:
                passed = max(passed, min(until, pulls - later))
                if passed < until or len(due) == 1:
                    break
            elif now is None or due[0].point > now:
                break
            else:
                passed = late = max(passed, until)
            due = due[1:]
        return passed, late, due


def second_of_day(time: str) -> int:
    """The second of a day at which a time such as "04:00" comes."""
    hours, minutes = time.split(":")
    return 3600 * int(hours) + 60 * int(minutes)


def _point(now: float, wait: int) -> float:
    """The first point of the grid that is not before the end of a wait."""
    step = max(1.0, wait / _POINTS)
    return math.ceil((now + wait) / step) * step
