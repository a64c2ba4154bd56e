"""The state of a policy between two calls: rounds, pending answers, and deadlines.

When a release happens is public.  Most private algorithms release at the end of an episode.  The
policy does so at the first pull after the episode's last round plus ``patience`` pulls, even if
rewards are missing.  Waiting for the last reward would show when it came, and good news may come
sooner than bad.  If the algorithm notes the values that its release needs (``close``), the next
episode begins at once.  The finished episode is then in flight: closed for new rounds, and open for
answers until its deadline.  Each record is in one episode, hence in one release.

Algorithms that learn from every answer take records in order of arrival.  With ``patience`` they
take them in the order of pulls, each so many pulls later, with the answer or the default.

Nothing here knows of noise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, UpdateError
from ..privacy.ledger import WHOLE
from ..stores import User
from .decisions import Decision
from .state import Ended, Span


def checked_user(user: object, max_rounds: int | None) -> User | None:
    """A name that can be stored; None where a person contributes one round."""
    if max_rounds is None:
        if user is not None:
            raise ArgumentError(
                "user must not be given without max_rounds, the most recorded rounds of a user,"
                " as in a policy made with max_rounds=10",
                "user",
            )
        return None
    if isinstance(user, str):
        return str.__str__(user)
    if isinstance(user, int | np.integer) and not isinstance(user, bool):
        return int(user)
    raise ArgumentError(
        "user must be a string or an integer that names the person, because max_rounds is given,"
        f" got a value of type {type(user).__name__}",
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


@dataclass(repr=False)  # names end up in logs by way of tracebacks
class Users:
    """The number of rounds of each user, which is public.

    A round counts when it is pulled.  Its record enters a release only after the user's number was
    announced with it (see ``stores``).  So a crash can only lose counts of unreleased records.
    Nothing lowers a number.
    """

    # How many rounds were recorded; never copied, as no step is undone in it.
    recorded: dict[User, int] = field(default_factory=dict)
    # Users with a record in a running episode, after the part of that record.
    unreleased: set[tuple[int, User]] = field(default_factory=set)
    # Whose number has grown since the last release.
    unannounced: set[User] = field(default_factory=set)

    def count(self, user: User, most: int, part: int | None) -> bool:
        """Count a round, if it may be recorded.  The user must have fewer than ``most`` rounds, and
        no other record in the coming release of the part; None for a release of its own.
        """
        number = self.recorded.get(user, 0)
        if number >= most or (part, user) in self.unreleased:
            return False
        self.recorded[user] = number + 1
        self.unannounced.add(user)
        if part is not None:
            self.unreleased.add((part, user))
        return True

    @property
    def most(self) -> int | None:
        """The most rounds of any user; None before the first."""
        return max(self.recorded.values(), default=None)

    @property
    def announcement(self) -> list[tuple[User, int]]:
        """The numbers to announce with the coming release."""
        return [(user, self.recorded[user]) for user in self.unannounced]

    def cover(self, part: int) -> None:
        """The records of a part are in an episode that is over."""
        if self.recorded:
            # A new set, because a copy that may undo the release holds the old one.
            self.unreleased = {one for one in self.unreleased if part not in (WHOLE, one[0])}

    def announced(self) -> None:
        """All numbers were announced."""
        self.unannounced = set()

    def restore(self, announced: Iterable[tuple[User, int]]) -> None:
        """Take in the counts announced before a crash, in which all records were lost."""
        for user, number in announced:
            # The higher number: counts of a user may only grow.
            self.recorded[user] = max(number, self.recorded.get(user, 0))
        self.unreleased = set()


@dataclass(repr=False)
class Flight:
    """An episode that is over, and open for answers until its deadline."""

    ended: Ended  # what will be released
    deadline: int  # the number of the pull that releases it
    before: int  # it covers pulls before this one
    pending: dict[int, Pending]  # those of them that are not answered
    booked: dict[int, Booked]  # its rounds, by arm

    def copied(self) -> Flight:
        return replace(self, ended=self.ended.copied(), pending=dict(self.pending))


@dataclass(repr=False)  # in which features wait for their answers
class Rounds:
    """The rounds, flights and pending answers of a policy.  The times of answers (``pending``,
    ``dropped``) are not public: good answers may come sooner than bad ones.
    """

    recorded: int = 0
    pulls: int = 0  # recorded or not
    closed: int = 0  # answers to pulls before this one, that are not awaited, come too late
    dropped: int = 0  # answers that were not used
    late: int = 0  # those of them that belong to recorded rounds
    clipped: int = 0  # answers that lay outside of the range
    missing: int = 0  # answers that were not a number
    blanked: int = 0  # private contexts with entries that were not numbers
    scaled: int = 0  # feature vectors that were longer than their bound
    left: int = 0  # rounds for which the current choice still stands
    held: int = 0  # rounds for which it was made
    waited: int = 0  # pulls since the episode ended
    release_due: bool = False
    exhausted: bool = False  # nothing more is recorded
    current_choice: Choice = field(default_factory=lambda: Choice(0, 1.0))
    pending: dict[int, Pending] = field(default_factory=dict)  # by the number of the pull
    answers: dict[int, float] = field(default_factory=dict)  # whose turn has not come, likewise
    unreleased: dict[int, Booked] = field(default_factory=dict)  # by arm
    flights: list[Flight] = field(default_factory=list)  # in the order of their deadlines
    users: Users = field(default_factory=Users)
    retired: tuple[int, ...] = ()  # arms
    chosen_among: bool = False  # whether some arm was ever closed

    def copied(self) -> Rounds:
        """A copy with dictionaries of its own; arrays in it are never changed in place."""
        return _alike(
            self,
            pending=self.pending.copy(),
            answers=self.answers.copy(),
            unreleased=self.unreleased.copy(),
            flights=[flight.copied() for flight in self.flights],
            users=_alike(self.users),
        )

    def book(self, arm: int, weights: np.ndarray | int, n: int) -> None:
        """Count n rounds of an arm, or take one back, until a release covers them."""
        known = self.unreleased.get(arm)
        rounds, total = (0, 0) if known is None else known
        self.unreleased[arm] = Booked(rounds + n, total + n * weights)

    def cover(self, part: int) -> dict[int, Booked]:
        """The rounds of a part are in an episode that is over: they are given back, by arm."""
        arms = list(self.unreleased) if part == WHOLE else [part]
        self.users.cover(part)
        self.waited, self.release_due = 0, False
        return {arm: self.unreleased.pop(arm) for arm in arms if arm in self.unreleased}

    def take_off(self, ended: Ended, patience: int) -> None:
        """An episode is over, and stays open for answers for so many pulls."""
        part = ended.span.part
        pending = {number: self.pending.pop(number) for number in self.awaited(part)}
        booked = self.cover(part)
        self.flights.append(Flight(ended, self.pulls + patience, self.pulls, pending, booked))

    def land(self) -> None:
        """The first flight was released."""
        self.flights = self.flights[1:]  # a copy may hold the old list

    def awaited(self, part: int) -> list[int]:
        """The unanswered pulls that the coming release of a part covers."""
        return [number for number, one in self.pending.items() if part in (WHOLE, one.arm)]

    def is_waiting(self, part: int, patience: int | None) -> bool:
        """Whether the coming release waits for answers; without a deadline for all of them."""
        if patience is None:
            return bool(self.awaited(part))
        self.waited += 1
        return self.waited <= patience

    def take_back(self, arm: int, weights: np.ndarray | int, *, anew: bool) -> None:
        """Unbook a round of an arm: the choice stands one longer, unless the next is ``anew``."""
        self.book(arm, weights, -1)
        if not self.release_due:
            self.waited = 0
        if self.current_choice.arm == arm:
            self.left = 0 if anew else min(self.left + 1, self.held)

    def find(self, decision: Decision) -> Pending | None:
        """The pull of an answer; None to drop the answer, an ``UpdateError`` if one came before."""
        number = decision.number
        if decision.recorded and number in self.pending and number not in self.answers:
            return self.pending[number]
        if not decision.recorded or number < self.closed:
            return None
        raise UpdateError(f"decision number {number} has been answered")

    def close(self, before: int) -> None:
        """Answers to pulls before this one come too late, unless they are awaited."""
        self.closed = max(self.closed, before)

    def flight_of(self, decision: Decision) -> Flight | None:
        """The flight that waits for the answer."""
        if not decision.recorded:
            return None
        return next((one for one in self.flights if decision.number in one.pending), None)

    def lose(self, past: int) -> None:
        """Forget the rounds that wait for answers, with all records up to round ``past``.

        Each flight and the running episode count one round without a person's data.  So every due
        release covers a non-empty span of its own.
        """
        for i, flight in enumerate(self.flights):
            flight.pending.clear()
            flight.ended.statistic[:] = 0.0
            flight.ended.span = flight.ended.span._replace(first=past + i, last=past + i)
        self.recorded, self.closed = past + len(self.flights) + 1, self.pulls
        self.pending.clear()
        self.answers.clear()

    # Saving and restoring: numbers, and arrays with a row for each pending pull or booked arm.

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """As JSON data and arrays."""
        numbers = {**vars(self), "current_choice": list(self.current_choice)}
        numbers["pending"] = {number: one.arm for number, one in self.pending.items()}
        numbers["unreleased"] = {arm: one.rounds for arm, one in self.unreleased.items()}
        numbers["users"] = {
            "recorded": list(self.users.recorded.items()),
            "unreleased": list(self.users.unreleased),
        }
        arrays = _arrays_of("rounds", self.pending, self.unreleased)
        numbers["flights"] = []
        for i, one in enumerate(self.flights):
            numbers["flights"].append(
                {
                    "span": list(one.ended.span),
                    "sensitivity": one.ended.sensitivity,
                    "deadline": one.deadline,
                    "before": one.before,
                    "pending": {number: late.arm for number, late in one.pending.items()},
                    "booked": {arm: booked.rounds for arm, booked in one.booked.items()},
                }
            )
            arrays |= _arrays_of(f"flight.{i}", one.pending, one.booked)
            arrays |= {f"flight.{i}.memo": one.ended.memo}
            arrays |= {f"flight.{i}.statistic": one.ended.statistic}
        return numbers, arrays

    @classmethod
    def restored(cls, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> Rounds:
        """Restore from the data of ``saved``; takes its arrays out of the dictionary."""
        pending, unreleased = _taken(arrays, "rounds", numbers["pending"], numbers["unreleased"])
        flights = []
        for i, one in enumerate(numbers["flights"]):
            waiting, booked = _taken(arrays, f"flight.{i}", one["pending"], one["booked"])
            memo, statistic = (arrays.pop(f"flight.{i}.{name}") for name in ("memo", "statistic"))
            ended = Ended(Span(*one["span"]), one["sensitivity"], memo, statistic)
            flights.append(Flight(ended, one["deadline"], one["before"], waiting, booked))
        users = Users(
            recorded=dict(numbers["users"]["recorded"]),
            unreleased={(part, user) for part, user in numbers["users"]["unreleased"]},
        )
        given = {
            **numbers,
            "current_choice": Choice(*numbers["current_choice"]),
            "pending": pending,
            "answers": {int(number): value for number, value in numbers["answers"].items()},
            "unreleased": unreleased,
            "flights": flights,
            "users": users,
            "retired": tuple(numbers["retired"]),
        }
        return cls(**given)


def _alike(one: Any, **changed: Any) -> Any:
    """``dataclasses.replace`` without its checks: policies that release every round wait for it."""
    alike = object.__new__(type(one))
    alike.__dict__ = vars(one) | changed
    return alike


def _arrays_of(
    name: str, pending: dict[int, Pending], booked: dict[int, Booked]
) -> dict[str, np.ndarray]:
    """The arrays that are not stored in JSON."""
    return {
        f"{name}.weights": np.array([one.weights for one in pending.values()], float),
        f"{name}.contexts": np.array([one.contexts for one in pending.values()], float),
        f"{name}.unreleased": np.array([one.weights for one in booked.values()], float),
    }


def _taken(
    arrays: dict[str, np.ndarray], name: str, pending: dict[str, int], booked: dict[str, int]
) -> tuple[dict[int, Pending], dict[int, Booked]]:
    """A copy with those arrays, which are taken out of the dictionary."""
    kinds = ("weights", "contexts", "unreleased")
    weights, contexts, booked_weights = (_rows(arrays.pop(f"{name}.{kind}")) for kind in kinds)
    waiting = zip(pending.items(), weights, contexts, strict=True)
    rounds = zip(booked.items(), booked_weights, strict=True)
    return (
        {int(number): Pending(arm, x, all_) for (number, arm), x, all_ in waiting},
        {int(arm): Booked(n, x) for (arm, n), x in rounds},
    )


def _rows(array: np.ndarray) -> list[Any]:
    """Row by row; 0 where there are no features."""
    return [0] * len(array) if array.ndim == 1 else list(array)
