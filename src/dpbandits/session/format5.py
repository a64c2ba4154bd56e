"""Continue a session that a version before 0.2 has saved; see ``stores.format5``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..privacy.channels import GAUSSIAN
from ..privacy.discrete import hidden, longest_step
from ..privacy.ledger import HEAD, NOISE, SPAN, LedgerArrays, Line
from ..privacy.secure import NOISE_LAW, GridNoise
from ..stores import User
from ..stores.tokens import Seal
from .deadlines import Deadlines
from .decisions import Decision
from .exchange import Exchange
from .rounds import Booked, Choice, Flight, Flown, Pending, Rounds, Seen
from .rows import Rows
from .session import Session
from .state import Ended, Span

Announced = list[tuple[Line, list[tuple[User, int]]]]


def restore(session: Session, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Go on where another life was saved.  A ``ValueError``, ``KeyError`` or ``TypeError`` for
    another policy's data.
    """
    session.seal = Seal(bytes.fromhex(header["key"]))
    _fill_ledger(session, arrays)
    session.rounds = _rounds(session, dict(header["rounds"]), arrays)
    session.state.fill(arrays)
    life, _ = header["life"]
    session.former = {**header["former"], life: session.rounds.pulls}
    session.exchange, session.told = Exchange.restored(header), tuple(header["told"])
    session.exchange.older = _has_released(session)
    session.last = None
    if header["last"] is not None:
        name = session.arms.name(header["last"][0])
        session.last = Decision(*(*header["last"], name)).sealed(session.seal)
    for name, stood in header["streams"].items():
        session.state.streams[name].bit_generator.state = stood


def show(session: Session, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Take in the public data for inspection.  Raises ``ValueError`` or ``KeyError`` for another
    policy's data.
    """
    for name, array in session.state.published.items():
        if array.shape != arrays[name].shape:
            raise ValueError(f"{name} is {arrays[name].shape} and should be {array.shape}")
        array[...] = arrays[name]
    _fill_ledger(session, arrays)
    session.exchange.older = _has_released(session)
    rounds, session.told = header["rounds"], tuple(header["told"])
    session.rounds.deadlines = Deadlines.of(session.settings.answers_within)
    _count(session, rounds["users"]["recorded"])
    session.rounds.retired = tuple(rounds["retired"])
    session.rounds.chosen_among = rounds["chosen_among"]
    session.rounds.recorded = int(rounds["recorded"])


def charge(session: Session, announced: Announced) -> None:
    """Charge releases that were announced, whether they were made or not."""
    for line, users in announced:
        session.state.charge(line)
        _count(session, users)


def replay(session: Session, announced: Announced) -> None:
    """Charge releases that were announced, and forget every record that they may cover."""
    for _, users in announced:
        _count(session, users)
    if announced:
        session.give_up(*(line for line, _ in announced))


def charge_older_noise(session: Session, header: dict[str, Any]) -> None:
    """Charge an (epsilon, delta) budget for secure noise that an earlier version has drawn.

    There a scale of s grid steps was the parameter of discrete Gaussian noise.  It hides as much as
    Gaussian noise of ``privacy.discrete.hidden(s)`` steps.  That noise was calibrated in zCDP,
    hence wider.  Yet no line is charged less than a release of today, because later rows of a
    running sum have today's noise and the same records.

    Other budgets are charged as before.  The session remembers the older noise, because its zCDP
    does not follow the exact curve.
    """
    gate, ledger = session.gate, session.state.wall.ledger
    if not isinstance(gate.noise, GridNoise) or not ledger.head[HEAD.lines]:
        return
    is_older = header.get("noise_law") != NOISE_LAW
    session.older_noise = is_older or header["older_noise"]
    if not is_older or gate.meter is None or gate.meter.currency != "gdp":
        return
    used = int(ledger.head[HEAD.lines])
    drawn = ledger.span[:used, SPAN.family] == GAUSSIAN
    kinds, which = np.unique(ledger.noise[:used][drawn], axis=0, return_inverse=True)
    growth, most = gate.meter.growth, gate.channel.multiplier
    worth = [
        min(most, growth * _worth(multiplier / growth, scale / gate.noise.grid))
        for multiplier, scale in zip(kinds[:, NOISE.multiplier], kinds.prod(axis=1), strict=True)
    ]
    ledger.noise[np.flatnonzero(drawn), NOISE.multiplier] = np.array(worth)[which.ravel()]


def _worth(multiplier: float, steps: float) -> float:
    """The multiplier of Gaussian noise that hides as much as this discrete one in steps."""
    return multiplier * (hidden(steps) if steps >= 1.0 else 1.0 / longest_step(steps)) / steps


# Pieces --------------------------------------------------------------------------------------


def _fill_ledger(session: Session, arrays: dict[str, np.ndarray]) -> None:
    lines = LedgerArrays(*(arrays.pop(f"wall.ledger.{name}") for name in LedgerArrays._fields))
    session.state.wall = session.state.wall._replace(ledger=lines)


def _has_released(session: Session) -> bool:
    return bool(session.state.wall.ledger.head[HEAD.releases])


def _count(session: Session, users: list[tuple[User, int]]) -> None:
    for user, number in users:
        session.rounds.users.restore(session.seal.alias(user), Seen(number))


def _rounds(session: Session, numbers: dict[str, Any], arrays: dict[str, np.ndarray]) -> Rounds:
    """The rounds, whose arrays are taken out of the dictionary."""
    waited = numbers.pop("waited")  # pulls since the episode ended
    numbers["over"] = numbers["pulls"] - waited if waited else None
    pending, unreleased = _taken(arrays, "rounds", numbers["pending"], numbers["unreleased"])
    flights, flown = Rows[int, Flight](), Rows[int, Flown]()
    for i, one in enumerate(numbers["flights"]):
        waiting, booked = _taken(arrays, f"flight.{i}", one["pending"], one["booked"])
        memo, statistic = (arrays.pop(f"flight.{i}.{name}") for name in ("memo", "statistic"))
        span = Span(*one["span"])
        ended, key = Ended(span, one["sensitivity"], memo, statistic), (span.first, span.part)
        flights[i] = Flight(ended, one["before"], sorted(waiting), booked, key)
        for number, pending_in_flight in waiting.items():
            flown[number] = Flown(i, pending_in_flight)
    users, last = numbers["users"], int(numbers["recorded"]) - 1
    given = {
        **numbers,
        "current_choice": Choice(*numbers["current_choice"]),
        "pending": pending,
        "answers": Rows((int(number), value) for number, value in numbers["answers"].items()),
        "unreleased": unreleased,
        "flights": flights,
        "flown": flown,
        "deadlines": Deadlines.of(session.settings.answers_within),
        "retired": tuple(numbers["retired"]),
    }
    del given["users"]
    rounds = Rounds(**given)
    waiting_of: dict[User, list[tuple[int, int]]] = {}
    for part, user in users["unreleased"]:
        waiting_of.setdefault(user, []).append((part, last))
    for user, number in users["recorded"]:
        seen = Seen(number, tuple(waiting_of.get(user, ())))
        rounds.users.restore(session.seal.alias(user), seen)
    return rounds


def _taken(
    arrays: dict[str, np.ndarray], name: str, pending: dict[str, int], booked: dict[str, int]
) -> tuple[Rows[int, Pending], Rows[int, Booked]]:
    kinds = ("weights", "contexts", "unreleased")
    weights, contexts, booked_weights = (_rows(arrays.pop(f"{name}.{kind}")) for kind in kinds)
    waiting = zip(pending.items(), weights, contexts, strict=True)
    rounds = zip(booked.items(), booked_weights, strict=True)
    return (
        Rows((int(number), Pending(arm, x, all_)) for (number, arm), x, all_ in waiting),
        Rows((int(arm), Booked(n, x)) for (arm, n), x in rounds),
    )


def _rows(array: np.ndarray) -> list[Any]:
    """Row by row; 0 where there are no features."""
    return [0] * len(array) if array.ndim == 1 else list(array)
