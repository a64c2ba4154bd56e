"""Write a session as bytes: a head that every commit replaces, and rows for what may be long.

The head has a public and a private part.  No length depends on noise that was not committed:
numbers have a fixed width, and so has the content of each kind of row.  So a full disk says nothing
about them.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from ..privacy.channels import FAMILY_NAMES
from ..privacy.ledger import HEAD, SPAN, WHOLE
from ..privacy.secure import NOISE_LAW
from ..protocol import NO_ARM
from ..stores import Row
from .deadlines import Deadlines, Due
from .decisions import Decision
from .exchange import Made
from .holdout import Coin
from .rounds import Booked, Choice, Flight, Flown, Pending, Rounds, Seen
from .session import Session
from .state import Ended, Span

# In this order; each whole batch lists them, so a later version may have others.
NUMBERS = (
    *("recorded", "pulls", "closed", "left", "held", "over", "release_due", "exhausted"),
    *("drawn", "filled"),
)
REPLY = "reply"  # the kind of rows that outlive episodes
RECEIPT = "receipt"
NOTES = (REPLY, RECEIPT, "service")  # kinds of rows that a service around the policy keeps
COUNTS = ("dropped", "late", "clipped", "missing", "blanked", "scaled")  # depend on answers
HOLDOUT = "holdout "  # with which kinds of rows of held-out people begin
_LINE = struct.Struct("<5q2d")  # span and noise of a line of the ledger
_BATCH = struct.Struct("<3q")  # of a release: arm, rounds, and releases known when it began
_BOOKED = struct.Struct("<qq")  # rounds, and releases known when they began
_COUNT, _NUMBER, _REWARD = struct.Struct(">Q"), struct.Struct("<q"), struct.Struct("<d")
_CHOICE = struct.Struct("<qd")  # arm and propensity
_LAST = struct.Struct("<qdq?")  # arm, propensity, number, and whether it is recorded
_PULL = struct.Struct("<qB")  # arm, and whether it has weights and contexts
_FLIGHT = struct.Struct("<3qdq")  # span, sensitivity, and the pull at which it ended
_TIMES = struct.Struct("<24s24sqq?d")  # of deadlines: all but ``due``
_DUE = struct.Struct("<qqd")
_NOWHERE = (WHOLE - 1, -1)  # stands for a part and a round where a user has fewer
_UNREAD = ("about", "void", "unused")  # kinds of rows
_MANY = 2**61  # more rounds than there are, and than the last arm of a search is held
_FLAGS = ("release_due", "exhausted")
_STREAM = struct.Struct("<16s16s?I")  # of a PCG64 generator
_LENGTH = struct.Struct("<Q")


# Pieces --------------------------------------------------------------------------------------


def joined(*parts: bytes) -> bytes:
    """Parts of any length as one."""
    return b"".join([piece for part in parts for piece in (_LENGTH.pack(len(part)), part)])


def parted(whole: bytes) -> list[bytes]:
    """The parts that ``joined`` has joined; a ``ValueError`` for other bytes."""
    parts, at = [], 0
    while at < len(whole):
        if len(whole) - at < _LENGTH.size:
            raise ValueError("the bytes end in the middle of a length field")
        (length,) = _LENGTH.unpack_from(whole, at)
        at += _LENGTH.size
        if length > len(whole) - at:
            raise ValueError("the bytes end in the middle of a part")
        parts.append(whole[at : at + length])
        at += length
    return parts


def key_of(number: int) -> bytes:
    """A number from 0 as a key, in the order of numbers."""
    return _COUNT.pack(number)


def number_of(key: bytes) -> int:
    """The number of a key."""
    return int(_COUNT.unpack(key)[0])


def _json(data: Any) -> bytes:
    return json.dumps(data).encode()


def _floats(values: Any) -> bytes:
    return np.asarray(values, "<f8").tobytes()


def _array(content: bytes, shape: Sequence[int] = (-1,)) -> np.ndarray:
    return np.frombuffer(content, "<f8").astype(float).reshape(shape)


# The head ------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """Where the arrays of a session lie in its two blocks, which whole batches tell."""

    private: list[list[Any]]  # name, type, shape and order of each array
    public: list[list[Any]]
    numbers: list[str]
    counts: list[str]
    holdout: list[list[list[Any]]] | None = None  # ``private`` and ``public`` of a holdout

    @classmethod
    def of(cls, session: Session) -> Layout:
        """The layout of this version."""
        private, public = _places(session)
        held = None if session.holdout is None else _places(session.holdout)
        return cls(private, public, list(NUMBERS), list(COUNTS), held)

    @property
    def of_holdout(self) -> Layout:
        """That of the session of held-out people."""
        assert self.holdout is not None
        private, public = self.holdout
        return self._replace(private=private, public=public, holdout=None)


def _places(session: Session) -> list[list[list[Any]]]:
    return [[_place(*one) for one in side] for side in session.state.sides]


def _place(name: str, array: np.ndarray) -> list[Any]:
    order = "C" if array.flags.c_contiguous else "F"
    return [name, array.dtype.str, list(array.shape), order]


def public_part(session: Session) -> bytes:
    """What an officer may read: releases, ledger and facts about the policy."""
    rounds = session.rounds
    told = {
        "told": session.told,
        "retired": rounds.retired,
        "chosen_among": rounds.chosen_among,
        "noise_law": NOISE_LAW,
        "older_noise": session.older_noise,
        "restored": session.restored,
        "older_releases": session.exchange.older,
    }
    most, wall = -1 if rounds.users.most is None else rounds.users.most, session.state.wall
    head = wall.ledger.head.astype("<i8").tobytes()
    # On which a running sum goes on where its private part is lost.
    last = _floats(wall.release if wall.earlier.size else ())
    numbers = _numbers(rounds, NUMBERS)
    return joined(
        _json(told),
        numbers,
        _deadlines(rounds.deadlines),
        _NUMBER.pack(most) + head,
        last,
        session.state.blocks[1].tobytes(),
        *([] if session.holdout is None else [public_part(session.holdout)]),
    )


def _deadlines(now: Deadlines) -> bytes:
    within, coming = (json.dumps(one).encode() for one in (now.within, now.coming))
    time = math.nan if now.now is None else now.now
    times = _TIMES.pack(within, coming, now.passed, now.late, now.finishing, time)
    return times + b"".join(
        _DUE.pack(one.first, -1 if one.pulls is None else one.pulls, one.point) for one in now.due
    )


def _deadlines_from(content: bytes) -> Deadlines:
    within, coming, passed, late, finishing, now = _TIMES.unpack_from(content)
    due = tuple(
        Due(first, None if pulls < 0 else pulls, point)
        for first, pulls, point in _DUE.iter_unpack(content[_TIMES.size :])
    )
    asked, then = (json.loads(one.rstrip(b"\0")) for one in (within, coming))
    time = None if math.isnan(now) else now
    return Deadlines(asked, then, passed, late, time, finishing, due)


def _numbers(rounds: Rounds, names: Sequence[str]) -> bytes:
    values = [getattr(rounds, name) for name in names]
    return struct.pack(f"<{len(values)}q", *[-1 if one is None else one for one in values])


def _take_numbers(rounds: Rounds, names: Sequence[str], content: bytes) -> None:
    values = (one[0] for one in _NUMBER.iter_unpack(content))
    for name, value in zip(names, values, strict=True):
        known: Any = bool(value) if name in _FLAGS else value
        if not (-1 if name == "over" else 0) <= value < _MANY:
            raise ValueError(f"{name} is out of range")
        setattr(rounds, name, None if name == "over" and value < 0 else known)


def private_part(session: Session) -> bytes:
    """Counts of answers, the standing choice, generators of simulations, and the private block."""
    rounds, last = session.rounds, session.last
    streams = {} if session.gate.noise.secure else session.state.streams
    told = {
        "former": session.former,
        "life": session.life,
        "key": session.seal.key.hex(),
        "streams": list(streams),
        "last": None if last is None else last.life,
        "held_out": last is not None and last.held_out,
        "coin": None if session.coin is None else session.coin.key.hex(),
    }
    made = _LAST.pack(-1, math.nan, -1, False)
    if last is not None:
        chance = math.nan if last.propensity is None else last.propensity
        made = _LAST.pack(last.arm, chance, last.number, last.recorded)
    return joined(
        _json(told),
        _numbers(rounds, COUNTS),
        _CHOICE.pack(*rounds.current_choice) + made,
        b"".join(map(_stream, streams.values())),
        session.state.blocks[0].tobytes(),
        *([] if session.holdout is None else [private_part(session.holdout)]),
    )


def _stream(rng: np.random.Generator) -> bytes:
    whole: Any = rng.bit_generator.state
    if whole["bit_generator"] != "PCG64":
        raise TypeError(f"{whole['bit_generator']} cannot be saved")
    state, inc = (whole["state"][name].to_bytes(16, "little") for name in ("state", "inc"))
    return _STREAM.pack(state, inc, bool(whole["has_uint32"]), whole["uinteger"])


# Rows ----------------------------------------------------------------------------------------


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
        content = joined(life.encode(), _floats(memo), _floats(values), numbers)
        yield Row("release", key_of(i), content)


def _made(content: bytes) -> Made:
    life, memo, values, batches = parted(content)
    told = tuple(_array(memo).tolist()), tuple(_array(values).tolist())
    return Made(life.decode(), *told, tuple(_BATCH.iter_unpack(batches)))


def learned(worker: str, number: int) -> Row:
    """A release of another worker that was learned."""
    digest = hashlib.sha256(worker.encode()).digest()[:16]
    return Row("learned", key_of(number) + digest, worker.encode())


def pulled(number: int, pending: Pending) -> Row:
    """A pull that waits for its answer."""
    weights, contexts = pending.weights, pending.contexts
    has = isinstance(weights, np.ndarray) + 2 * isinstance(contexts, np.ndarray)
    parts = [_floats(one) for one in (weights, contexts) if isinstance(one, np.ndarray)]
    return Row("pull", key_of(number), _PULL.pack(pending.arm, has) + b"".join(parts))


def answered(number: int, value: float) -> Row:
    """An answer whose turn has not come."""
    return Row("answer", key_of(number), _REWARD.pack(value))


def booked(arm: int, one: Booked) -> Row:
    """Rounds of an arm that no release covers."""
    return Row("booked", key_of(arm), _booking(one))


def _booking(one: Booked) -> bytes:
    weights = _floats(one.weights) if np.ndim(one.weights) else b""
    return _BOOKED.pack(one.rounds, one.known) + weights


def user(session: Session, alias: bytes, seen: Seen) -> Row:
    """How often a user came.  The length does not tell whether the arms were different ones."""
    most = min(session.settings.max_rounds or 0, max(session.gate.statistic.parts, 1))
    latest = [*seen.latest, *repeat(_NOWHERE, most - len(seen.latest))]
    pairs = b"".join(_NUMBER.pack(number) for pair in latest for number in pair)
    return Row("user", alias, _NUMBER.pack(seen.rounds) + pairs)


def unrecorded(number: int) -> Iterator[Row]:
    """Rows that say nothing, as long as those of a recorded round without features."""
    for kind, length in (("void", _PULL.size), ("unused", _BOOKED.size)):
        yield Row(kind, key_of(number), bytes(length))


def flown(flight: Flight) -> Iterator[Row]:
    """An episode that is over, and open for answers; and the exact sum of those that came."""
    ended, key = flight.ended, flight_key(flight)
    numbers = _FLIGHT.pack(*ended.span, ended.sensitivity, flight.before)
    bookings = (key_of(arm) + _booking(one) for arm, one in flight.booked.items())
    yield Row("flight", key, joined(numbers, _floats(ended.memo), *bookings))
    yield Row("sum", key, _floats(ended.statistic))


def flight_key(flight: Flight) -> bytes:
    """The key of its row; parts begin at -1."""
    first, part = flight.key
    return key_of(first) + key_of(part + 1)


# Reading -------------------------------------------------------------------------------------


def filled(
    session: Session, layout: Layout, public: bytes, private: bytes, rows: Iterable[Row]
) -> dict[str, np.ndarray]:
    """Fill a new session of the same policy from head and rows, apart from its arrays.  Returns
    these by name, as they were saved.  A ``ValueError``, ``KeyError`` or ``TypeError`` for anything
    else.
    """
    arrays = _filled_head(session, layout, public, private)
    filled_rows(session, rows)
    return arrays


def _filled_head(
    session: Session, layout: Layout, public: bytes, private: bytes
) -> dict[str, np.ndarray]:
    block = filled_public(session, layout, public)
    told, counts, choice, streams, hidden, *held = parted(private)
    known = json.loads(told)
    if session.holdout is not None:
        within = parted(public)[-1], held[0]
        arrays = _filled_head(session.holdout, layout.of_holdout, *within)
        session.holdout.state.fill(arrays)
        session.coin = coin_of(session, known)
    _take_numbers(session.rounds, layout.counts, counts)
    arm, propensity = _CHOICE.unpack_from(choice)
    session.rounds.current_choice = Choice(_arm(session, arm), propensity)
    made = _LAST.unpack_from(choice, _CHOICE.size)
    session.former = dict(known["former"])
    if "life" in known:  # that wrote this; lives after it have made no decision
        session.former[known["life"]] = session.rounds.pulls
    session.seal = type(session.seal)(bytes.fromhex(known["key"]))
    if known["last"] is not None:
        held_out = bool(known.get("held_out", False))  # which earlier versions do not tell
        session.last = _decision(session, made, known["last"], held_out)
    for i, name in enumerate(known["streams"]):
        session.state.streams[name].bit_generator.state = _state(streams, i)
    return _arrays(layout.private, hidden) | public_arrays(layout, block)


def coin_of(session: Session, known: dict[str, Any]) -> Coin | None:
    """The saved coin of a holdout; None after the end of its policy."""
    coin, key = session.coin, known["coin"]
    return None if coin is None or key is None else replace(coin, key=bytes.fromhex(key))


def public_arrays(layout: Layout, block: bytes) -> dict[str, np.ndarray]:
    """The arrays of a public block, by name."""
    return _arrays(layout.public, block)


def filled_public(session: Session, layout: Layout, public: bytes) -> bytes:
    """Take in the facts of a public part, and return its block."""
    told, numbers, deadlines, more, last, block, *held = parted(public)
    if session.holdout is not None:
        own = layout.of_holdout
        arrays = public_arrays(own, filled_public(session.holdout, own, held[0]))
        session.holdout.state.fill_public(arrays)
    known = json.loads(told)
    session.told, session.older_noise = tuple(known["told"]), bool(known["older_noise"])
    session.restored = int(known["restored"])
    session.exchange.older = bool(known["older_releases"])
    session.rounds.retired = tuple(_arm(session, arm) for arm in known["retired"])
    session.rounds.chosen_among = bool(known["chosen_among"])
    _take_numbers(session.rounds, layout.numbers, numbers)
    session.rounds.deadlines = _deadlines_from(deadlines)
    most, *head = (one[0] for one in _NUMBER.iter_unpack(more))
    session.rounds.users.most = None if most < 0 else most
    if last:
        session.state.wall.release[:] = _array(last)
    session.state.wall.ledger.head[:] = head
    return block


def shown(
    session: Session, layout: Layout, public: bytes, rows: Iterable[Row]
) -> dict[str, np.ndarray]:
    """Take in the public part, ledger and releases for inspection.  Returns the public arrays by
    name.
    """
    block = filled_public(session, layout, public)
    _show_releases(session, list(rows))
    return public_arrays(layout, block)


def _show_releases(session: Session, rows: Sequence[Row]) -> None:
    if session.holdout is not None:
        _show_releases(session.holdout, _of_holdout(rows))
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


def filled_rows(session: Session, rows: Iterable[Row]) -> None:
    """Take in all rows."""
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
            rounds.unreleased[_arm(session, number_of(key))] = _booked(session, content)
        elif kind == "user":
            rounds.users.restore(key, _seen(content))
        elif kind == "flight":
            flights.append(_flight(session, key, content))
        elif kind == "sum":
            sums[key] = _array(content, (width.size,))
        elif kind in NOTES:
            session.notes[kind, key] = content
        elif kind.startswith(HOLDOUT) and session.holdout is not None:
            others.append(row)
        elif kind not in _UNREAD:
            raise ValueError(f"unknown rows {kind!r}")
    if session.holdout is not None:
        filled_rows(session.holdout, _of_holdout(others))
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


def _pending(session: Session, content: bytes) -> Pending:
    arm, has = _PULL.unpack_from(content)
    _arm(session, arm, least=NO_ARM)
    rest = content[_PULL.size :]
    contexts: Any = 0
    weights: Any = 0
    if has & 2:
        width = len(rest) // 8 // (session.arms.count + (has & 1))
        cut = 8 * width if has & 1 else 0
        contexts = _array(rest[cut:], (session.arms.count, width))
        rest = rest[:cut]
    if has & 1:
        weights = _array(rest)
    return Pending(arm, weights, contexts)


def _arm(session: Session, arm: int, least: int = 0) -> int:
    """An arm that there is."""
    if not (isinstance(arm, int) and least <= arm < session.arms.count):
        raise ValueError("an arm is out of range")
    return arm


def _booked(session: Session, content: bytes) -> Booked:
    (rounds, known), weights = _BOOKED.unpack_from(content), content[_BOOKED.size :]
    if not 0 <= rounds <= session.rounds.recorded:
        raise ValueError("more rounds wait for a release than there were")
    return Booked(rounds, _array(weights) if weights else 0, known)


def _seen(content: bytes) -> Seen:
    rounds, *latest = (one[0] for one in _NUMBER.iter_unpack(content))
    pairs = zip(latest[::2], latest[1::2], strict=True)
    return Seen(rounds, tuple(pair for pair in pairs if pair != _NOWHERE))


def _flight(session: Session, key: bytes, content: bytes) -> Flight:
    width = session.gate.statistic
    numbers, told, *bookings = parted(content)
    first, last, part, sensitivity, before = _FLIGHT.unpack(numbers)
    memo, statistic = _array(told, (width.memo,)), np.zeros(width.size)
    ended = Ended(Span(first, last, part), sensitivity, memo, statistic)
    of = {number_of(one[:8]): _booked(session, one[8:]) for one in bookings}
    return Flight(ended, before, [], of, (number_of(key[:8]), number_of(key[8:]) - 1))


def _decision(session: Session, made: tuple[Any, ...], life: str, held_out: bool) -> Decision:
    arm, chance, number, recorded = made
    fields = (arm, None if math.isnan(chance) else chance, number, recorded, life)
    name = session.arms.name(arm)
    return Decision(*fields, name, held_out=held_out).sealed(session.seal)


def _state(streams: bytes, i: int) -> dict[str, Any]:
    state, inc, has, uinteger = _STREAM.unpack_from(streams, i * _STREAM.size)
    both = {"state": int.from_bytes(state, "little"), "inc": int.from_bytes(inc, "little")}
    return {"bit_generator": "PCG64", "state": both, "has_uint32": int(has), "uinteger": uinteger}


def _arrays(layout: list[list[Any]], block: bytes) -> dict[str, np.ndarray]:
    """The arrays of a block, by name."""
    found, at = {}, 0
    for name, kind, shape, order in layout:
        dtype, size = np.dtype(kind), math.prod(shape)
        if dtype.hasobject:
            raise ValueError(f"{name} is no array of numbers")
        flat = np.frombuffer(block, dtype, size, at)
        found[name] = flat.reshape(shape, order=order).copy(order=order)
        at += -(-flat.nbytes // 8) * 8
    if at != len(block):
        raise ValueError(f"a block has {len(block)} bytes and should have {at}")
    return found
