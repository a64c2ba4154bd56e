"""The state of a policy between two calls: rounds, pending answers, and deadlines.

When a release happens is public.  Most private algorithms release at the end of an episode.  The
policy does so once all rounds of the episode are past their ``deadlines``, even if rewards are
missing.  Waiting for the last reward would show when it came, and good news may come sooner than
bad.  If the algorithm notes the values that its release needs (``close``), the next episode begins
at once.  The finished episode is then in flight: closed for new rounds, and open for answers until
its deadline.  Each record is in one episode, hence in one release.

Algorithms that learn from every answer take records in order of arrival.  With ``answers_within``
they take them in the order of pulls, each at its deadline, with the answer or the default.

Nothing here knows of noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, UpdateError
from ..privacy.ledger import WHOLE
from ..stores import User
from .deadlines import Deadlines
from .decisions import Decision
from .rows import Rows
from .state import Ended


def checked_user(user: object, max_rounds: int | None) -> User | None:
    """A name that can be stored; None where a person contributes one round."""
    if max_rounds is None:
        if user is not None:
            raise ArgumentError(
                "user must be None if the policy has no max_rounds. Make the policy with"
                " max_rounds, such as max_rounds=10",
                "user",
            )
        return None
    if isinstance(user, str):
        return str.__str__(user)
    if isinstance(user, int | np.integer) and not isinstance(user, bool):
        return int(user)
    got = "nothing" if user is None else f"a value of type {type(user).__name__}"
    raise ArgumentError(
        f"user must name the person, as a string or an integer, got {got}: the policy has"
        " max_rounds",
        "user",
    )


class Choice(NamedTuple):
    """An arm, and with which probability it was drawn."""

    arm: int
    propensity: float


class Pending(NamedTuple):
    """A pull whose answer may still come."""

    arm: int  # that was recommended
    weights: Any = 0  # what its reward will be multiplied by, shape (d,); 0 for plain sums
    contexts: Any = 0  # of all arms, (K, d), where a person may openly take another; else 0


class Booked(NamedTuple):
    """Rounds of an arm, and the sum of their weights."""

    rounds: int
    weights: Any
    # How many releases had been made (``Exchange.made``) when the first round was pulled; VOID if
    # some rounds contain no person's data.
    known: int = 0


VOID = -1
_NONE = Booked(0, 0, 2**62)


class Seen(NamedTuple):
    """How many rounds of a user were recorded, and which of them may not be released yet."""

    rounds: int
    latest: tuple[tuple[int, int], ...] = ()  # parts, and the last recorded round of the user there


_STRANGER = Seen(0)


@dataclass(repr=False)
class Users:
    """The number of rounds of each user, which is public.

    A round counts when it is pulled, and its pull is committed with the count.  Nothing lowers a
    number.
    """

    # By a keyed hash of the user (``Seal.alias``).
    seen: Rows[bytes, Seen] = field(default_factory=Rows)
    most: int | None = None  # rounds of any user; None before the first

    def count(self, user: bytes, most: int, part: int | None, number: int, first: int) -> bool:
        """Count a round, the recorded one of that number, if it may be recorded.  The user must
        have fewer than ``most`` rounds, and no other record in the coming release of the part,
        which begins at round ``first``.  The part is None for a release of its own.
        """
        known = self.seen.get(user, _STRANGER)
        waiting = any(one == part and last >= first for one, last in known.latest)
        if known.rounds >= most:
            return False
        if waiting:
            if part != WHOLE:  # which depends on the arm, and lengths of commits must not
                self.seen[user] = known
            return False
        latest = known.latest
        if part is not None:
            latest = (*(one for one in latest if one[0] != part), (part, number))
        self.seen[user] = Seen(known.rounds + 1, latest)
        self.most = max(known.rounds + 1, self.most or 0)
        return True

    def restore(self, user: bytes, seen: Seen) -> None:
        """Take in the saved count of a user.  A number never falls."""
        known = self.seen.get(user, _STRANGER)
        self.seen[user] = Seen(max(known.rounds, seen.rounds), seen.latest)
        self.most = max(self.seen[user].rounds, self.most or 0)

    def forget_records(self) -> None:
        """No record waits for a release."""
        for user, known in self.seen.items():
            self.seen[user] = Seen(known.rounds)


@dataclass(repr=False)
class Flight:
    """An episode that is over, and open for answers until its deadline."""

    ended: Ended  # what will be released
    before: int  # it covers pulls before this one, and is released once all of them are past theirs
    pulls: list[int]  # those of them that were not answered when it ended, in their order
    booked: dict[int, Booked]  # its rounds, by arm
    key: tuple[int, int]  # the first round that it covered, and its part; no other flight has both


class Flown(NamedTuple):
    """A pull of an episode that is over, whose answer may still come."""

    flight: int  # the number of the flight
    pending: Pending


@dataclass(repr=False, slots=True)  # in which features wait for their answers
class Rounds:
    """The rounds, flights and pending answers of a policy.  The times of answers (``pending``,
    ``dropped``) are not public: good answers may come sooner than bad ones.
    """

    recorded: int = 0
    pulls: int = 0  # recorded or not
    filled: int = 0  # recorded ones without a pull, in episodes of retired arms
    closed: int = 0  # answers to pulls before this one, that are not awaited, come too late
    dropped: int = 0  # answers that were not used
    late: int = 0  # those of them that belong to recorded rounds
    clipped: int = 0  # answers that lay outside of the range
    missing: int = 0  # answers that were not a number
    blanked: int = 0  # private contexts with entries that were not numbers
    scaled: int = 0  # feature vectors that were longer than their bound
    left: int = 0  # rounds for which the current choice still stands
    held: int = 0  # rounds for which it was made
    drawn: int = 0  # the number of the pull at which it was made
    over: int | None = None  # how many pulls there were when the episode ended
    release_due: bool = False
    exhausted: bool = False  # nothing more is recorded
    current_choice: Choice = field(default_factory=lambda: Choice(0, 1.0))
    pending: Rows[int, Pending] = field(default_factory=Rows)  # by the number of the pull
    answers: Rows[int, float] = field(default_factory=Rows)  # whose turn has not come, likewise
    unreleased: Rows[int, Booked] = field(default_factory=Rows)  # by arm
    # By their numbers, in the order of their deadlines.  Whoever changes a flight sets it anew.
    flights: Rows[int, Flight] = field(default_factory=Rows)
    landed: int = 0  # the number of the first flight, if any
    flown: Rows[int, Flown] = field(default_factory=Rows)  # by the number of the pull
    deadlines: Deadlines = field(default_factory=Deadlines)
    users: Users = field(default_factory=Users)
    retired: tuple[int, ...] = ()  # arms
    chosen_among: bool = False  # whether some arm was ever closed

    @property
    def rows(self) -> tuple[Rows[int, Any], ...]:
        """The dictionaries that may be long."""
        return self.pending, self.answers, self.unreleased, self.flights, self.flown

    def book(self, arm: int, weights: np.ndarray | int, n: int, known: int) -> None:
        """Count n rounds of an arm, or take one back, until a release covers them.  So many
        releases are ``known``.
        """
        before = self.unreleased.get(arm, _NONE)
        added = weights if n == 1 else n * weights
        earliest = min(before.known, known)
        self.unreleased[arm] = Booked(before.rounds + n, before.weights + added, earliest)

    def booked_of(self, part: int) -> dict[int, Booked]:
        """The rounds that the coming release of a part covers, by arm."""
        arms = list(self.unreleased) if part == WHOLE else [part]
        return {arm: self.unreleased[arm] for arm in arms if arm in self.unreleased}

    def cover(self, part: int) -> dict[int, Booked]:
        """The rounds of a part are in an episode that is over: they are given back, by arm."""
        self.over, self.release_due = None, False
        self.deadlines.begin_episode()
        return {arm: self.unreleased.pop(arm) for arm in self.booked_of(part)}

    def take_off(self, ended: Ended) -> None:
        """An episode is over, and stays open for answers until its deadline."""
        first, _, part = ended.span
        number, awaited = self.landed + len(self.flights), self.awaited(part)
        for pull in awaited:
            self.flown[pull] = Flown(number, self.pending.pop(pull))
        self.flights[number] = Flight(ended, self.pulls, awaited, self.cover(part), (first, part))

    @property
    def next_flight(self) -> Flight | None:
        """The flight that is released first."""
        return self.flights.get(self.landed)

    def land(self) -> None:
        """The first flight was released."""
        del self.flights[self.landed]
        self.landed += 1

    def take_out(self, number: int) -> tuple[Flight, Pending]:
        """A pull of a flight waits no longer."""
        at, pending = self.flown.pop(number)
        self.flights[at] = flight = self.flights[at]
        return flight, pending

    def awaited(self, part: int) -> list[int]:
        """The unanswered pulls that the coming release of a part covers."""
        return [number for number, one in self.pending.items() if part in (WHOLE, one.arm)]

    def is_past_deadline(self) -> bool:
        """Whether the episode that is over is past the deadline of its last pull."""
        if self.over is None:
            self.over = self.pulls
        return self.deadlines.within is not None and self.over <= self.deadlines.passed

    def take_back(self, arm: int, weights: np.ndarray | int, *, anew: bool) -> None:
        """Unbook a round of an arm: the choice stands one longer, unless the next is ``anew``."""
        self.book(arm, weights, -1, _NONE.known)
        if not self.release_due:
            self.over = None
        if self.current_choice.arm == arm:
            self.left = 0 if anew else min(self.left + 1, self.held)

    def find(self, decision: Decision) -> Pending | None:
        """The pull of an answer; None to drop the answer, an ``UpdateError`` if one came before."""
        number = decision.number
        pending = self.pending.get(number) if decision.recorded else None
        if pending is not None and number not in self.answers:
            return pending
        if not decision.recorded or number < self.closed:
            return None
        raise UpdateError(f"decision {number} has been answered already")

    def close(self, before: int) -> None:
        """Answers to pulls before this one come too late, unless they are awaited."""
        self.closed = max(self.closed, before)

    def find_flown(self, decision: Decision) -> Flown | None:
        """The pull of an answer, if it is of a flight."""
        return self.flown.get(decision.number) if decision.recorded else None

    def end(self) -> None:
        """Record nothing more, and forget all that waits, who came, and counts of answers."""
        self.exhausted, self.left, self.release_due, self.over = True, 0, False, None
        self.close(self.pulls)
        self.landed += len(self.flights)
        self.users.seen.clear()
        for rows in self.rows:
            rows.clear()
        self.dropped = self.late = self.clipped = self.missing = self.blanked = self.scaled = 0

    def lose(self, past: int) -> None:
        """Forget the rounds that no release covers, with all records up to round ``past``."""
        self.landed += len(self.flights)
        self.recorded, self.closed = past, self.pulls
        self.over, self.release_due = None, False
        for rows in self.rows:
            rows.clear()
        self.users.forget_records()
