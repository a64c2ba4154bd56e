"""The head of a saved session as bytes.  Every commit replaces it.

The head has a public and a private part.  No length depends on noise that was not committed:
numbers have a fixed width.  So a full disk says nothing about them.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..privacy.secure import NOISE_LAW
from .deadlines import Deadlines, Due
from .decisions import Decision
from .holdout import Coin
from .packing import NUMBER, array, checked_arm, floats, joined, parted
from .rounds import Choice, Rounds
from .session import Session

# In this order; each whole batch lists them, so a later version may have others.
NUMBERS = (
    *("recorded", "pulls", "closed", "left", "held", "over", "release_due", "exhausted"),
    *("drawn", "filled"),
)
COUNTS = ("dropped", "late", "clipped", "missing", "blanked", "scaled")  # depend on answers
_CHOICE = struct.Struct("<qd")  # arm and propensity
_LAST = struct.Struct("<qdq?")  # arm, propensity, number, and whether it is recorded
_TIMES = struct.Struct("<24s24sqq?d")  # of deadlines: all but ``due``
_DUE = struct.Struct("<qqd")
_STREAM = struct.Struct("<16s16s?I")  # of a PCG64 generator
_MANY = 2**61  # more rounds than there are, and than the last arm of a search is held
_FLAGS = ("release_due", "exhausted")


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


def _place(name: str, values: np.ndarray) -> list[Any]:
    order = "C" if values.flags.c_contiguous else "F"
    return [name, values.dtype.str, list(values.shape), order]


# Writing -------------------------------------------------------------------------------------


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
    last = floats(wall.release if wall.earlier.size else ())
    numbers = _numbers(rounds, NUMBERS)
    return joined(
        _json(told),
        numbers,
        _deadlines(rounds.deadlines),
        NUMBER.pack(most) + head,
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


def _numbers(rounds: Rounds, names: Sequence[str]) -> bytes:
    values = [getattr(rounds, name) for name in names]
    return struct.pack(f"<{len(values)}q", *[-1 if one is None else one for one in values])


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


def _json(data: Any) -> bytes:
    return json.dumps(data).encode()


# Reading -------------------------------------------------------------------------------------


def filled_head(
    session: Session, layout: Layout, public: bytes, private: bytes
) -> dict[str, np.ndarray]:
    """Fill a new session of the same policy from its head, apart from its arrays.  Returns these by
    name, as they were saved.  A ``ValueError``, ``KeyError`` or ``TypeError`` for anything else.
    """
    block = filled_public(session, layout, public)
    told, counts, choice, streams, hidden, *held = parted(private)
    known = json.loads(told)
    if session.holdout is not None:
        within = parted(public)[-1], held[0]
        arrays = filled_head(session.holdout, layout.of_holdout, *within)
        session.holdout.state.fill(arrays)
        session.coin = coin_of(session, known)
    _take_numbers(session.rounds, layout.counts, counts)
    arm, propensity = _CHOICE.unpack_from(choice)
    session.rounds.current_choice = Choice(checked_arm(arm, session.arms.count), propensity)
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
    session.rounds.retired = tuple(checked_arm(arm, session.arms.count) for arm in known["retired"])
    session.rounds.chosen_among = bool(known["chosen_among"])
    _take_numbers(session.rounds, layout.numbers, numbers)
    session.rounds.deadlines = _deadlines_from(deadlines)
    most, *head = (one[0] for one in NUMBER.iter_unpack(more))
    session.rounds.users.most = None if most < 0 else most
    if last:
        session.state.wall.release[:] = array(last)
    session.state.wall.ledger.head[:] = head
    return block


def _take_numbers(rounds: Rounds, names: Sequence[str], content: bytes) -> None:
    values = (one[0] for one in NUMBER.iter_unpack(content))
    for name, value in zip(names, values, strict=True):
        known: Any = bool(value) if name in _FLAGS else value
        if not (-1 if name == "over" else 0) <= value < _MANY:
            raise ValueError(f"{name} is out of range")
        setattr(rounds, name, None if name == "over" and value < 0 else known)


def _deadlines_from(content: bytes) -> Deadlines:
    within, coming, passed, late, finishing, now = _TIMES.unpack_from(content)
    due = tuple(
        Due(first, None if pulls < 0 else pulls, point)
        for first, pulls, point in _DUE.iter_unpack(content[_TIMES.size :])
    )
    asked, then = (json.loads(one.rstrip(b"\0")) for one in (within, coming))
    time = None if math.isnan(now) else now
    return Deadlines(asked, then, passed, late, time, finishing, due)


def coin_of(session: Session, known: dict[str, Any]) -> Coin | None:
    """The saved coin of a holdout; None after the end of its policy."""
    coin, key = session.coin, known["coin"]
    return None if coin is None or key is None else replace(coin, key=bytes.fromhex(key))


def _decision(session: Session, made: tuple[Any, ...], life: str, held_out: bool) -> Decision:
    arm, chance, number, recorded = made
    fields = (arm, None if math.isnan(chance) else chance, number, recorded, life)
    name = session.arms.name(arm)
    return Decision(*fields, name, held_out=held_out).sealed(session.seal)


def _state(streams: bytes, i: int) -> dict[str, Any]:
    state, inc, has, uinteger = _STREAM.unpack_from(streams, i * _STREAM.size)
    both = {"state": int.from_bytes(state, "little"), "inc": int.from_bytes(inc, "little")}
    return {"bit_generator": "PCG64", "state": both, "has_uint32": int(has), "uinteger": uinteger}


def public_arrays(layout: Layout, block: bytes) -> dict[str, np.ndarray]:
    """The arrays of a public block, by name."""
    return _arrays(layout.public, block)


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
