"""Save a session, continue it in another life, show it, and recover it after a crash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..privacy.channels import GAUSSIAN
from ..privacy.discrete import hidden, longest_step
from ..privacy.ledger import HEAD, NOISE, SPAN, LedgerArrays
from ..privacy.secure import NOISE_LAW, GridNoise
from ..protocol import stays_empty
from ..stores import Announcement, Life
from ..stores.tokens import Seal
from .decisions import Decision
from .exchange import Exchange
from .rounds import Rounds
from .session import Session


def saved(session: Session) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """As JSON data and arrays; never with a generator of secure noise."""
    last = session.last
    streams = {} if session.gate.noise.secure else session.state.streams
    numbers, arrays = session.rounds.saved()
    header = {
        "former": session.former,
        "told": session.told,
        "key": session.seal.key.hex(),
        **session.exchange.saved(),
        "rounds": numbers,
        "last": None
        if last is None
        else [last.arm, last.propensity, last.number, last.recorded, last.life],
        "noise_law": NOISE_LAW,
        "older_noise": session.older_noise,
        "streams": {name: rng.bit_generator.state for name, rng in streams.items()},
    }
    return header, {**session.state.arrays, **arrays}


def restore(
    session: Session, header: dict[str, Any], arrays: dict[str, np.ndarray], life: Life
) -> None:
    """Go on, in a life of its own, where another life was saved; a ``ValueError``, ``KeyError`` or
    ``TypeError`` for another policy's.
    """
    session.rounds = Rounds.restored(header["rounds"], arrays)
    session.state.fill(arrays)
    if arrays:
        raise ValueError(f"unknown arrays {', '.join(arrays)}")
    session.former = {**header["former"], life.name: session.rounds.pulls}
    session.seal = Seal(bytes.fromhex(header["key"]))
    session.exchange, session.told = Exchange.restored(header), tuple(header["told"])
    session.last = None
    if header["last"] is not None:
        name = session.arms.name(header["last"][0])
        session.last = Decision.sealed(session.seal, *header["last"], name)
    for name, stood in header["streams"].items():
        session.state.streams[name].bit_generator.state = stood


def show(session: Session, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Take in the public data of another life for inspection: its releases, its ledger, and its
    number of recorded rounds.  Raises ``ValueError`` or ``KeyError`` for another policy's data.
    """
    for name, array in session.state.published.items():
        if array.shape != arrays[name].shape:
            raise ValueError(f"{name} is {arrays[name].shape} and should be {array.shape}")
        array[...] = arrays[name]
    lines = LedgerArrays(*(arrays[f"wall.ledger.{name}"] for name in LedgerArrays._fields))
    session.state.wall = session.state.wall._replace(ledger=lines)
    rounds, session.told = header["rounds"], tuple(header["told"])
    session.rounds.users.restore(rounds["users"]["recorded"])
    session.rounds.retired = tuple(rounds["retired"])
    session.rounds.chosen_among = rounds["chosen_among"]
    session.rounds.recorded = int(rounds["recorded"])


def charge(session: Session, announced: Sequence[Announcement]) -> None:
    """Charge releases that were announced, whether they were made or not."""
    for line, users in announced:
        session.state.charge(line)
        session.rounds.users.restore(users)


def replay(session: Session, announced: Sequence[Announcement]) -> None:
    """Charge releases that were announced, and forget every record that they may cover.

    Each lost round of a running episode counts as the default reward; where contexts are private,
    it counts as nothing.
    """
    if not announced:
        return
    charge(session, announced)
    past = max(session.rounds.recorded, 1 + max(line.last for line, _ in announced))
    session.state.lose(session.gate.new_state(simulated=False), past)
    session.gate.forget()
    restart = session.gate.kernels.restart
    if restart is not stays_empty:
        restart(session.gate.params, session.state.raw, session.state.public)
    rounds = session.rounds
    rounds.lose(past)
    session.state.wall.first_unreleased[:] = past + len(rounds.flights)
    session.intake.fill_lost(rounds)


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
