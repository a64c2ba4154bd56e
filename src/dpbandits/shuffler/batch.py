"""A batch: what people send, and the one output that leaves.

Guarantee:

* Every output is that of a full batch, in which at least ``least`` people were: the shuffler adds
  records of noise for those who are missing.  It has the protocol that the pinned configuration
  asks for, and one label.
* A record is in at most one output, and a person has at most one record in it.  They are in at most
  ``max_rounds`` outputs of the experiment.
* The output has a sum or an order that was drawn uniformly, and no time, name or number of people.

The shuffler knows the noise that it adds: towards it, only that of the people protects them.

All of these are held by transactions of ``store``.  One transaction makes the output, deletes the
records, counts the people, and closes the label for good.  The same bytes are sent until the server
has taken them, or has gone on without them.  A label that was closed is never opened again.
Otherwise a server that has lost or refused a batch could get a second output with the same noise:
devices may send the same bytes again.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, DPBanditsError
from ..shuffle import Protocol, Randomizer
from ..shuffle.protocols import Shares
from ..shuffle.randomness import Source
from ..shuffle.sealing import label_of, refuse_unsealable, seal_record, sealed_size

MOST_BYTES = 11 * 2**20  # of the sealed records of a batch: a request has 16 MiB in base64


class RoundError(DPBanditsError):
    """The server has announced a batch to which the shuffler gives no output."""


class Record(NamedTuple):
    """What one person sends.

    Attributes:
        masked: the part for the shuffler, as bytes; empty where there is none.
        sealed: the part for the server.
    """

    masked: bytes
    sealed: bytes


class Round(NamedTuple):
    """A batch that the server has announced, and that was found right."""

    label: str
    protocol: Protocol

    @property
    def digest(self) -> str:
        """Of the protocol: records of another do not belong to this batch."""
        told = json.dumps(self.protocol.to_dict(), sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()


@dataclass(frozen=True)
class Pinned:
    """An experiment as the people who sent devices around have described it.

    Attributes:
        name: in addresses.
        public_key: of the server, with which records are sealed.
        policy: made of the pinned arguments; it says which protocol a batch must have.
        least: people without whom no batch leaves the shuffler.
        most: people whom the server may announce; of a larger batch each adds less noise.
        every: seconds between closings; None: a batch closes when it is full.
    """

    name: str
    public_key: bytes
    policy: Any
    least: int
    most: int
    every: int | None

    @property
    def max_rounds(self) -> int:
        """The number of batches that a person may be in."""
        return self.policy.max_rounds or 1

    def round_of(self, people: int, label: str) -> Round:
        """The batch of so many people under a label.

        Raises:
            RoundError: there must be no such batch.
        """
        if people < self.least:
            least = f"and 'least' allows no fewer than {self.least:,}"
            raise RoundError(f"the server wants batches of {people:,} people, {least}")
        if people > self.most:
            most = f"and at most {self.most:,} are allowed"
            raise RoundError(f"the server wants batches of {people:,} people, {most}")
        try:
            protocol = self.policy.protocol_for(people)
            refuse_unsealable(protocol)
        except ArgumentError as error:
            raise RoundError(f"the server wants a batch that is not allowed: {error}") from None
        if people * sealed_size(protocol) > MOST_BYTES:
            raise RoundError(
                f"the server wants batches of {people:,} people, too many for one request"
            )
        return Round(label, protocol)

    def announced(self, answer: Any) -> Round:
        """The batch that an answer of the server announces.

        Raises:
            RoundError: the answer is something else, or its protocol is not the pinned one: with
                less noise people would be protected less.
        """
        try:
            label, text = answer["label"], answer["round"]
            release = int(label.partition(":")[0])
            told = json.loads(text)
            people, protocol = told["batch"], told["protocol"]
            if type(people) is not int or label != label_of(release, text):
                raise ValueError
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            raise RoundError(
                "the server has announced no batch, or a batch under a wrong label"
            ) from None
        found = self.round_of(people, label)
        if protocol != json.loads(json.dumps(found.protocol.to_dict())):
            raise RoundError("the server's protocol differs from that of the file in 'config'")
        return found

    def closing_after(self, now: float) -> float | None:
        """When a batch that opens now closes; None: when it is full.  All times are multiples of
        ``every``, so they do not depend on people.
        """
        return None if self.every is None else (math.floor(now / self.every) + 1.0) * self.every


def record_of(protocol: Protocol, masked: Sequence[int] | None, sealed: bytes) -> Record | None:
    """A person's record; None if no device of the protocol sends this."""
    if len(sealed) != sealed_size(protocol):
        return None
    if not isinstance(protocol, Shares):
        return None if masked is not None else Record(b"", sealed)
    _, low, high = protocol.record
    if masked is None or len(masked) != protocol.dimension:
        return None
    if not all(low <= value <= high for value in masked):
        return None
    return Record(np.array(masked, "<i8").tobytes(), sealed)


def output(found: Round, padding: Sequence[Record], records: Sequence[Record]) -> bytes:
    """The body for the server: of these people, and of padding in the place of others."""
    protocol, source = found.protocol, Source("secure", None)
    everybody = [*records, *padding[: protocol.batch - len(records)]]
    total = None
    if isinstance(protocol, Shares):
        total = np.zeros(protocol.dimension, np.int64)
        for one in everybody:
            total = (total + np.frombuffer(one.masked, "<i8")) % protocol.modulus
    order = source.order(protocol.batch)
    body = {
        "batch_id": secrets.token_hex(16),
        "label": found.label,
        "sum": None if total is None else total.tolist(),
        "sealed": [b64encode(everybody[i].sealed).decode() for i in order],
    }
    return json.dumps(body, separators=(",", ":")).encode()


def noise(pinned: Pinned, found: Round) -> list[Record]:
    """Records of a whole batch of people who have nothing to say, sealed as those of devices.  All
    are made, however many are missing: else the time that it takes would tell how many came.
    """
    randomizer, made = Randomizer(found.protocol), []
    for _ in range(found.protocol.batch):  # one by one, as their coins may take much memory
        [record] = randomizer.encode().values
        given = pinned.public_key, found.label, pinned.name
        masked, sealed = seal_record(found.protocol, record, *given)
        made.append(Record(b"" if masked is None else masked.astype("<i8").tobytes(), sealed))
    return made
