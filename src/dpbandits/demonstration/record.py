"""The demonstration: three parties play, and all that they stored is searched."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..privacy import ApproxDP
from .comparison import Curve, curves
from .opening import opened_rows
from .parties import (
    BATCHES,
    DEVICES,
    NAME,
    SERVICE,
    SHUFFLER,
    Parties,
    Secrets,
    Told,
    started,
    store_of,
    words,
)
from .people import People
from .search import KINDS, PARTS, Hit, Needles, write_list

_LIST = "list"  # folder of the list, which no party has


class Found(NamedTuple):
    """How many people's needles of a kind are where.  Arms count in rows of people.

    Attributes:
        kind: of needles.
        needles: how many were looked for.
        people: of whom there are needles.
        listed: found in a list that the demonstration wrote, where all are.
        devices: found on the devices.
        service, shuffler: found there, where none may be.
    """

    kind: str
    needles: int
    people: int
    listed: int
    devices: int
    service: int
    shuffler: int


@dataclass(frozen=True)
class Record:
    """What there is to report.

    Attributes:
        people, batch, seed: as it was played.
        ends: the number of people at the end of each batch.
        regret: curves by their labels.
        found: a row for each kind of needles.
        open_parts: masked parts that the shuffler held in the middle of a batch.
        alone: the budget that a person's messages keep by themselves.
        told: by the service at the end.
        seconds: that all took.
    """

    people: int
    batch: int
    seed: int
    ends: np.ndarray
    regret: Mapping[str, Curve]
    found: list[Found]
    open_parts: int
    alone: ApproxDP
    told: Told
    seconds: float

    @property
    def leaks(self) -> list[Found]:
        """What a party knows that it must not know."""
        return [one for one in self.found if one.service or one.shuffler]

    @property
    def blind(self) -> list[Found]:
        """What the search did not find where it is."""
        return [one for one in self.found if one.listed < one.people]

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON has it."""
        return {
            "people": self.people,
            "batch": self.batch,
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "regret": {label: round(curve.final, 2) for label, curve in self.regret.items()},
            "found": [one._asdict() for one in self.found],
            "open_parts": self.open_parts,
            "alone": str(self.alone),
            **self.told._asdict(),
        }


def demonstrate(folder: Path, count: int, seed: int, say: Callable[[str], None]) -> Record:
    """Let the parties play in a folder that exists, and search what they have stored.

    Args:
        say: called with each step.

    Raises:
        PartyError: a process does not start, or ends too early.
    """
    began, people = time.perf_counter(), People.drawn(count, seed)
    say("Starting the service and the shuffler.")
    with started(folder, people) as parties:
        say(f"{count:,} people come in {BATCHES} batches.")
        search = _Search(folder, people, parties)
        for batch in range(BATCHES):
            middle = batch == BATCHES // 2
            search.secrets += parties.play(batch, search.in_the_middle if middle else _nothing)
        needles = search.running()
        told = parties.told()
    say("Searching what they have stored.")
    found = search.ended(needles)
    say("Playing the same people in one process.")
    size = count // BATCHES
    ends = np.arange(size, count + 1, size)
    arms = np.array([one.arm for one in search.secrets])
    return Record(
        people=count,
        batch=size,
        seed=seed,
        ends=ends,
        regret=curves(people, arms, ends, words(count), seed),
        found=found,
        open_parts=search.open_parts,
        alone=_alone(parties.policy),
        told=told,
        seconds=time.perf_counter() - began,
    )


def _alone(policy: Any) -> ApproxDP:
    """What a person's messages keep by themselves, with an epsilon that is rounded up."""
    delta = policy.budget.delta
    epsilon = policy.protocol.epsilon_at(delta, 1, "local")
    return ApproxDP(math.ceil(10.0 * epsilon) / 10.0, delta)


def _nothing(came: list[Secrets]) -> None: ...


class _Search:
    """Searches the folders of the parties while they run, and when they have ended.

    Attributes:
        secrets: of the people of all batches that are over.
        open_parts: as ``Record`` has it.
    """

    def __init__(self, folder: Path, people: People, parties: Parties) -> None:
        self._folder, self._people = folder, people
        modulus = parties.policy.protocol.modulus
        self._width = -(-(modulus - 1).bit_length() // 8)
        self.secrets: list[Secrets] = []
        self.open_parts = 0
        self._service, self._shuffler = set[Hit](), set[Hit]()

    def in_the_middle(self, came: list[Secrets]) -> None:
        """Search while a batch is open, and the shuffler has the masked parts of these people."""
        over, everybody = len(self.secrets), [*self.secrets, *came]
        needles = self._needles(everybody)
        self._service |= needles.in_folder(self._folder / SERVICE)
        held = needles.in_folder(self._folder / SHUFFLER)
        allowed = {hit for hit in held if hit.kind == PARTS and hit.person >= over}
        self._shuffler |= held - allowed
        self.open_parts = len(allowed)

    def running(self) -> Needles:
        """Search while the processes run, and their databases have logs; return all needles."""
        needles = self._needles(self.secrets)
        self._look(needles)
        return needles

    def ended(self, needles: Needles) -> list[Found]:
        """Search the folders at the end, and count people."""
        self._look(needles)
        address = f"{store_of(self._folder)}#default.{NAME}"
        self._service |= needles.within(opened_rows(self._folder / SERVICE, address))
        write_list(self._folder / _LIST, self._people, self.secrets)
        listed, devices = (needles.in_folder(self._folder / one) for one in (_LIST, DEVICES))
        places = needles.hits, listed, devices, self._service, self._shuffler
        return [
            Found(kind, needles.count(kind), *(sum(h.kind == kind for h in one) for one in places))
            for kind in KINDS
        ]

    def _look(self, needles: Needles) -> None:
        self._service |= needles.in_folder(self._folder / SERVICE)
        self._shuffler |= needles.in_folder(self._folder / SHUFFLER)

    def _needles(self, secrets: list[Secrets]) -> Needles:
        return Needles(self._people, secrets, self._width)
