"""A search through everything that a party has stored, for things that it must not know.

A needle is a string of bytes that stands for something of one person, in a form in which a program
could have stored it.  Needles have eight bytes or more, so none occurs by chance:

* numbers: ten decimals as text, and the eight bytes of a float64, in both orders of bytes;
* float32: two neighbours, because the four bytes of one number do occur by chance;
* arms: those of sixteen people who came one after the other, because every file has small numbers;
* messages and their parts: all integers of one, as text, as int64, and as devices pack them;
* names and tickets: as they are, and names also as tickets have them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .parties import Secrets
from .people import People

KINDS = ("features", "rewards", "arms", "names", "tickets", "messages", "masked parts")
FEATURES, REWARDS, ARMS, NAMES, TICKETS, MESSAGES, PARTS = KINDS
_PREFIX, _DECIMALS, _ROW = 8, 10, 16  # bytes, letters, people
_BOTH = "<", ">"  # orders of bytes


class Hit(NamedTuple):
    """That a needle is of a person, or is found.

    Attributes:
        kind: one of ``KINDS``.
        person: the number of the person; of the first one for arms.
    """

    kind: str
    person: int


class Needles:
    """What is looked for.

    Args:
        people: all of them.
        secrets: of those who have come.
        width: bytes of an integer of a message, as devices pack it.

    Attributes:
        hits: what can be found.
    """

    def __init__(self, people: People, secrets: Sequence[Secrets], width: int) -> None:
        self._hits = dict[bytes, Hit]()
        self._lengths = defaultdict[bytes, set[int]](set)  # of needles, by how they begin
        for kind, person, needle in _needles(people, secrets, width):
            assert len(needle) >= _PREFIX
            self._hits[needle] = Hit(kind, person)
            self._lengths[needle[:_PREFIX]].add(len(needle))
        self._prefixes = np.sort(np.frombuffer(b"".join(self._lengths), "<u8"))

    @property
    def hits(self) -> set[Hit]:
        return set(self._hits.values())

    def count(self, kind: str) -> int:
        """The number of needles of a kind."""
        return sum(hit.kind == kind for hit in self._hits.values())

    def in_folder(self, folder: Path) -> set[Hit]:
        """What is in the files of a folder, or in their names."""
        found = set[Hit]()
        for path in folder.rglob("*"):
            found |= self.within(str(path.relative_to(folder)).encode())
            if path.is_file():
                found |= self.within(path.read_bytes())
        return found

    def within(self, content: bytes) -> set[Hit]:
        """What is in these bytes."""
        found = set[Hit]()
        for place in self._places(content):
            for length in self._lengths[content[place : place + _PREFIX]]:
                if (hit := self._hits.get(content[place : place + length])) is not None:
                    found.add(hit)
        return found

    def _places(self, content: bytes) -> Iterator[int]:
        """Where a prefix stands."""
        for offset in range(min(_PREFIX, len(content) - _PREFIX + 1)):
            whole = (len(content) - offset) // _PREFIX
            windows = np.frombuffer(content, "<u8", whole, offset)
            near = np.searchsorted(self._prefixes, windows).clip(max=self._prefixes.size - 1)
            for i in np.flatnonzero(self._prefixes[near] == windows):
                yield offset + _PREFIX * int(i)


def write_list(folder: Path, people: People, secrets: Sequence[Secrets]) -> None:
    """Write all that is known of people into files, in which the search has to find everything."""
    folder.mkdir()
    arms = np.array([one.arm for one in secrets])
    listed = {
        FEATURES: people.contexts.tolist(),
        REWARDS: people.rewards.tolist(),
        ARMS: arms.tolist(),
        NAMES: people.names,
        TICKETS: [one.ticket for one in secrets],
        MESSAGES: [one.message.tolist() for one in secrets],
        PARTS: [one.masked.tolist() for one in secrets],
    }
    (folder / "list.json").write_text(json.dumps(listed))


def _needles(
    people: People, secrets: Sequence[Secrets], width: int
) -> Iterator[tuple[str, int, bytes]]:
    for i, one in enumerate(secrets):
        contexts, reward = people.contexts[i], people.rewards[i, one.arm]
        first, last = contexts[one.arm, [0, -1]]
        of_a_person = {
            FEATURES: [*_numbers(contexts.ravel()), *_pairs(contexts)],
            REWARDS: [*_numbers([reward]), *_pairs([[last, reward], [reward, first]])],
            NAMES: [people.names[i].encode(), one.ticket.partition(".")[0].encode()],
            TICKETS: [one.ticket.encode()],
            MESSAGES: [*_integers(one.message, width)],
            PARTS: [*_integers(one.masked, width)],
        }
        yield from ((kind, i, needle) for kind, all_of in of_a_person.items() for needle in all_of)
    arms = np.array([one.arm for one in secrets])
    for first in range(0, len(arms) - _ROW + 1, _ROW):
        yield from ((ARMS, first, needle) for needle in _rows(arms[first : first + _ROW]))


def _numbers(values: Iterable[float]) -> Iterator[bytes]:
    for value in values:
        decimals = np.format_float_positional(abs(value)).partition(".")[2]
        yield f".{decimals[:_DECIMALS]:0<{_DECIMALS}}".encode()
        yield from (np.array(value, f"{order}f8").tobytes() for order in _BOTH)


def _pairs(rows: Iterable[Iterable[float]]) -> Iterator[bytes]:
    for row in rows:
        yield from (np.array(row, f"{order}f4").tobytes() for order in _BOTH)


def _integers(values: np.ndarray, width: int) -> Iterator[bytes]:
    yield from _texts(values)
    yield from (values.astype(f"{order}i8").tobytes() for order in _BOTH)
    whole = values.astype("<i8").view(np.uint8).reshape(len(values), -1)
    yield whole[:, :width].tobytes()


def _rows(arms: np.ndarray) -> Iterator[bytes]:
    yield from _texts(arms)
    yield "".join(map(str, arms)).encode()
    for kind in ("i1", *(f"{order}{size}" for order in _BOTH for size in ("i4", "i8", "f8"))):
        yield arms.astype(kind).tobytes()


def _texts(values: np.ndarray) -> Iterator[bytes]:
    yield from (between.join(map(str, values)).encode() for between in (",", ", ", "\n"))
