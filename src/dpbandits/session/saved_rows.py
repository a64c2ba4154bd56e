"""The rows of a saved session as bytes: all that may be long.  A commit writes the changed ones.

No length depends on noise that was not committed: the content of each kind of row has a fixed
width.  So a full disk says nothing about it.
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from ..privacy.channels import FAMILY_NAMES
from ..privacy.ledger import HEAD, SPAN, WHOLE
from ..protocol import NO_ARM
from ..stores import Row
from .exchange import Made
from .packing import NUMBER, array, checked_arm, floats, joined, key_of, number_of, parted
from .rounds import Booked, Flight, Flown, Pending, Rounds, Seen
from .session import Session
from .state import Ended, Span

REPLY = "reply"  # the kind of rows that outlive episodes
RECEIPT = "receipt"
NOTES = (REPLY, RECEIPT, "service")  # kinds of rows that a service around the policy keeps
HOLDOUT = "holdout "  # with which kinds of rows of held-out people begin
_LINE = struct.Struct("<5q2d")  # span and noise of a line of the ledger
_BATCH = struct.Struct("<3q")  # of a release: arm, rounds, and releases known when it began
_BOOKED = struct.Struct("<qq")  # rounds, and releases known when they began
_REWARD = struct.Struct("<d")
_PULL = struct.Struct("<qB")  # arm, and whether it has weights and contexts
_FLIGHT = struct.Struct("<3qdq")  # span, sensitivity, and the pull at which it ended
_NOWHERE = (WHOLE - 1, -1)  # stands for a part and a round where a user has fewer
_UNREAD = ("about", "void", "unused")  # kinds of rows


# Writing -------------------------------------------------------------------------------------


def whole_rows(session: Session) -> Iterator[Row]:
    """The rows of everything."""
    if session.holdout is not None:
        yield from map(of_holdout, whole_rows(session.holdout))
    rounds, exchange = session.rounds, session.exchange
    yield from lines(session, 0)
    yield from made(session, 0)
    for worker, numbers in exchange.learned.items():
        yield from (learned(worker, number) for number in sorted(numbers))
    for flight in rounds.flights.values():
        yield from flown(flight)
    yield from (pulled(number, one.pending) for number, one in rounds.flown.items())
    yield from (pulled(number, one) for number, one in rounds.pending.items())
    yield from (answered(number, value) for number, value in rounds.answers.items())
    yield from (booked(arm, one) for arm, one in rounds.unreleased.items())
    yield from (user(session, alias, seen) for alias, seen in rounds.users.seen.items())
    yield from (Row(kind, key, content) for (kind, key), content in session.notes.items())


def of_holdout(row: Row) -> Row:
    """The row of held-out people."""
    return row._replace(kind=HOLDOUT + row.kind)


def lines(session: Session, first: int) -> Iterator[Row]:
    """The lines of the ledger from that one on."""
    ledger = session.state.wall.ledger
    for i in range(max(first, 0), int(ledger.head[HEAD.lines])):
        yield Row(
            "line", key_of(i), _LINE.pack(*ledger.span[i].tolist(), *ledger.noise[i].tolist())
        )


def made(session: Session, first: int) -> Iterator[Row]:
    """The releases of sums, from that one on."""
    for i, (life, memo, values, batches) in enumerate(session.exchange.made[first:], first):
        numbers = b"".join(_BATCH.pack(*one) for one in batches)
        content = joined(life.encode(), floats(memo), floats(values), numbers)
        yield Row("release", key_of(i), content)


def learned(worker: str, number: int) -> Row:
    """A release of another worker that was learned."""
    digest = hashlib.sha256(worker.encode()).digest()[:16]
    return Row("learned", key_of(number) + digest, worker.encode())


def pulled(number: int, pending: Pending) -> Row:
    """A pull that waits for its answer."""
    weights, contexts = pending.weights, pending.contexts
    has = isinstance(weights, np.ndarray) + 2 * isinstance(contexts, np.ndarray)
    parts = [floats(one) for one in (weights, contexts) if isinstance(one, np.ndarray)]
    return Row("pull", key_of(number), _PULL.pack(pending.arm, has) + b"".join(parts))


def answered(number: int, value: float) -> Row:
    """An answer whose turn has not come."""
    return Row("answer", key_of(number), _REWARD.pack(value))


def booked(arm: int, one: Booked) -> Row:
    """Rounds of an arm that no release covers."""
    return Row("booked", key_of(arm), _booking(one))


def _booking(one: Booked) -> bytes:
    weights = floats(one.weights) if np.ndim(one.weights) else b""
    return _BOOKED.pack(one.rounds, one.known) + weights


def user(session: Session, alias: bytes, seen: Seen) -> Row:
    """How often a user came.  The length does not tell whether the arms were different ones."""
    most = min(session.settings.max_rounds or 0, max(session.gate.statistic.parts, 1))
    latest = [*seen.latest, *repeat(_NOWHERE, most - len(seen.latest))]
    pairs = b"".join(NUMBER.pack(number) for pair in latest for number in pair)
    return Row("user", alias, NUMBER.pack(seen.rounds) + pairs)


def unrecorded(number: int) -> Iterator[Row]:
    """Rows that say nothing, as long as those of a recorded round without features."""
    for kind, length in (("void", _PULL.size), ("unused", _BOOKED.size)):
        yield Row(kind, key_of(number), bytes(length))


def flown(flight: Flight) -> Iterator[Row]:
    """An episode that is over, and open for answers; and the exact sum of those that came."""
    ended, key = flight.ended, flight_key(flight)
    numbers = _FLIGHT.pack(*ended.span, ended.sensitivity, flight.before)
    bookings = (key_of(arm) + _booking(one) for arm, one in flight.booked.items())
    yield Row("flight", key, joined(numbers, floats(ended.memo), *bookings))
    yield Row("sum", key, floats(ended.statistic))


def flight_key(flight: Flight) -> bytes:
    """The key of its row; parts begin at -1."""
    first, part = flight.key
    return key_of(first) + key_of(part + 1)


# Reading -------------------------------------------------------------------------------------


def fill_rows(session: Session, rows: Iterable[Row]) -> None:
    """Take in all rows.  A ``ValueError``, ``KeyError`` or ``TypeError`` for other content."""
    rounds, exchange, width = session.rounds, session.exchange, session.gate.statistic
    waiting: dict[int, Pending] = {}
    lines: list[Row] = []
    others: list[Row] = []
    flights: list[Flight] = []
    sums: dict[bytes, np.ndarray] = {}
    for row in rows:
        kind, key, content = row.kind, row.key, row.content or b""
        if kind == "line":
            lines.append(row)
        elif kind == "release":
            exchange.made.append(_made(content))
        elif kind == "learned":
            exchange.learned.setdefault(content.decode(), set()).add(number_of(key[:8]))
        elif kind == "pull":
            waiting[number_of(key)] = _pending(session, content)
        elif kind == "answer":
            rounds.answers[number_of(key)] = _REWARD.unpack(content)[0]
        elif kind == "booked":
            arm = checked_arm(number_of(key), session.arms.count)
            rounds.unreleased[arm] = _booked(session, content)
        elif kind == "user":
            rounds.users.restore(key, _seen(content))
        elif kind == "flight":
            flights.append(_flight(session, key, content))
        elif kind == "sum":
            sums[key] = array(content, (width.size,))
        elif kind in NOTES:
            session.notes[kind, key] = content
        elif kind.startswith(HOLDOUT) and session.holdout is not None:
            others.append(row)
        elif kind not in _UNREAD:
            raise ValueError(f"unknown rows {kind!r}")
    if session.holdout is not None:
        fill_rows(session.holdout, _of_holdout(others))
    _fill_ledger(session, lines)
    flights.sort(key=lambda one: one.before)
    for number, flight in enumerate(flights):
        rounds.flights[number] = flight
        if (key := flight_key(flight)) in sums:
            flight.ended.statistic[:] = sums[key]
    ends = [flight.before for flight in flights]
    for number, one in sorted(waiting.items()):
        later = range(bisect_right(ends, number), len(ends))
        _place_pull(rounds, number, one, later)


def _place_pull(rounds: Rounds, number: int, one: Pending, later: range) -> None:
    """A pull waits in the first of the later flights that covers it, if any."""
    for at in later:
        flight = rounds.flights[at]
        if flight.ended.span.part in (WHOLE, one.arm):
            rounds.flown[number] = Flown(at, one)
            flight.pulls.append(number)
            return
    rounds.pending[number] = one


def fill_releases(session: Session, rows: Sequence[Row]) -> None:
    """Take in the ledger and the releases alone, for inspection."""
    if session.holdout is not None:
        fill_releases(session.holdout, _of_holdout(rows))
    _fill_ledger(session, [row for row in rows if row.kind == "line"])
    session.exchange.made = [_made(row.content or b"") for row in rows if row.kind == "release"]


def _of_holdout(rows: Iterable[Row]) -> list[Row]:
    """The rows of held-out people, under their own kinds."""
    held = (row for row in rows if row.kind.startswith(HOLDOUT))
    return [row._replace(kind=row.kind.removeprefix(HOLDOUT)) for row in held]


def _fill_ledger(session: Session, rows: Sequence[Row]) -> None:
    """Take in the lines of the ledger, of which none may be missing."""
    head = session.state.wall.ledger.head.copy()
    wanted = int(head[HEAD.lines])
    if [number_of(row.key) for row in rows] != list(range(len(rows))) or len(rows) != wanted:
        raise ValueError(f"the ledger has {len(rows)} lines and should have {wanted}")
    session.state.wall.ledger.head[:] = 0  # no line is there yet
    while len(session.state.wall.ledger.span) < wanted:
        session.state.make_room(grow=True)
    ledger = session.state.wall.ledger
    ledger.head[:] = head
    for i, row in enumerate(rows):
        *span, sensitivity, multiplier = _LINE.unpack(row.content or b"")
        ledger.span[i], ledger.noise[i] = span, (sensitivity, multiplier)
    families = ledger.span[:wanted, SPAN.family]
    if not (np.isin(families, list(FAMILY_NAMES)).all() and (ledger.noise[:wanted] >= 0.0).all()):
        raise ValueError("the ledger has a line that no release makes")


def _made(content: bytes) -> Made:
    life, memo, values, batches = parted(content)
    told = tuple(array(memo).tolist()), tuple(array(values).tolist())
    return Made(life.decode(), *told, tuple(_BATCH.iter_unpack(batches)))


def _pending(session: Session, content: bytes) -> Pending:
    arm, has = _PULL.unpack_from(content)
    checked_arm(arm, session.arms.count, least=NO_ARM)
    rest = content[_PULL.size :]
    contexts: Any = 0
    weights: Any = 0
    if has & 2:
        width = len(rest) // 8 // (session.arms.count + (has & 1))
        cut = 8 * width if has & 1 else 0
        contexts = array(rest[cut:], (session.arms.count, width))
        rest = rest[:cut]
    if has & 1:
        weights = array(rest)
    return Pending(arm, weights, contexts)


def _booked(session: Session, content: bytes) -> Booked:
    (rounds, known), weights = _BOOKED.unpack_from(content), content[_BOOKED.size :]
    if not 0 <= rounds <= session.rounds.recorded:
        raise ValueError("more rounds wait for a release than there were")
    return Booked(rounds, array(weights) if weights else 0, known)


def _seen(content: bytes) -> Seen:
    rounds, *latest = (one[0] for one in NUMBER.iter_unpack(content))
    pairs = zip(latest[::2], latest[1::2], strict=True)
    return Seen(rounds, tuple(pair for pair in pairs if pair != _NOWHERE))


def _flight(session: Session, key: bytes, content: bytes) -> Flight:
    width = session.gate.statistic
    numbers, told, *bookings = parted(content)
    first, last, part, sensitivity, before = _FLIGHT.unpack(numbers)
    memo, statistic = array(told, (width.memo,)), np.zeros(width.size)
    ended = Ended(Span(first, last, part), sensitivity, memo, statistic)
    of = {number_of(one[:8]): _booked(session, one[8:]) for one in bookings}
    return Flight(ended, before, [], of, (number_of(key[:8]), number_of(key[8:]) - 1))
