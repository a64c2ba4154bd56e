"""The three parties: devices, the shuffler, and the server, which sees the shuffler's output."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, SubmissionError
from ..validation import choice
from .protocols import Protocol
from .randomness import Source

Version = int | str


@dataclass(frozen=True)
class Messages:
    """Messages between the parties: integers and the label of a version, without the sender.

    Attributes:
        values: before the shuffler, one record a row; after it, the protocol's output.
        version: label that the people of a batch must share, such as that of the chooser they used.
    """

    values: np.ndarray
    version: Version

    def to_json(self) -> str:
        """These messages as JSON, in the format of devices in JavaScript."""
        return json.dumps({"values": self.values.tolist(), "version": self.version})

    @classmethod
    def from_json(cls, text: str) -> Messages:
        """Messages from the JSON of ``to_json`` or of a device.

        Raises:
            SubmissionError: the text is something else; it is not shown.
        """
        try:
            read = json.loads(text)
            return cls(np.array(read["values"]), _version(read["version"]))
        except (KeyError, TypeError, ValueError, RecursionError):
            raise SubmissionError("text must be the JSON of messages") from None


class Randomizer:
    """Program for a person's device: makes messages of their vector, with their part of the noise.

    It can be pickled, stores nothing of a vector, and raises no error that depends on its numbers.

    Args:
        protocol: the protocol of the three parties.
        version: the label of its messages.
        noise: "secure", or "simulation", which protects no person.
        seed: of simulated noise.

    Attributes:
        caveats: limits of the noise that users must know.

    Example:
        >>> from dpbandits.shuffle import ModularSum
        >>> protocol = ModularSum(batch=3, dimension=2, bound=1.0, levels=8, noise=16)
        >>> Randomizer(protocol, noise="simulation", seed=1).encode([0.6, -0.8])
        Messages(values=array([[18,  8]]), version=0)
    """

    def __init__(
        self,
        protocol: Protocol,
        *,
        version: Version = 0,
        noise: str = "secure",
        seed: int | None = None,
    ) -> None:
        self.protocol, self.version = protocol, _version(version)
        self._source = Source(noise, seed)
        self.caveats = self._source.caveats

    def encode(self, vector: ArrayLike | None = None) -> Messages:
        """Make the messages of one person; without a vector, of noise only.

        A device always sends: silence would reveal that there was no vector.

        Returns:
            ``Messages`` of one record for ``Shuffler.submit``.

        Raises:
            ArgumentError: the vector does not have shape (D,).
        """
        return self.encode_many([np.zeros(self.protocol.dimension) if vector is None else vector])

    def encode_many(self, vectors: ArrayLike | Sequence[ArrayLike]) -> Messages:
        """Make the messages of several people, for experiments.

        Args:
            vectors: shape (n, D).

        Returns:
            ``Messages``, a record a row.

        Raises:
            ArgumentError: the vectors have another shape, or there are more than ``batch``.
        """
        table = self.protocol.table(vectors)
        if table.ndim != 2:
            raise ArgumentError(f"vectors must have two axes, got shape {table.shape}", "vectors")
        integers = self.protocol.rounded(table, self._source.words(table.shape))
        return Messages(self.protocol.messages(integers, self._source), self.version)

    def to_dict(self) -> dict[str, Any]:
        """The protocol, for a program in another language that makes messages.

        Raises:
            ArgumentError: the noise is simulated.
        """
        if not self._source.secure:
            raise ArgumentError(
                "noise must be 'secure' for a device outside of this process, got 'simulation'",
                "noise",
            )
        return self.protocol.to_dict()


class Shuffler:
    """Collects the messages of a batch, and outputs them as the protocol says, without order or
    identity.

    People trust it to remove both, and not to collude with the server; then they need not trust the
    server.  The shape of its output does not depend on the number of people.

    Args:
        protocol, noise, seed: as of ``Randomizer``.
        version: of the messages of the first batch; messages of other versions are refused.
        short: treatment of a batch with fewer people than the noise was calibrated for.  "pad" adds
            records of noise only.  "discard" outputs nothing, which reveals that there were fewer.

    Attributes:
        caveats: limits of its randomness that users must know.

    Example:
        >>> from dpbandits.shuffle import ModularSum
        >>> protocol = ModularSum(batch=3, dimension=2, bound=1.0, levels=8, noise=16)
        >>> shuffler = Shuffler(protocol, noise="simulation", seed=1)
        >>> shuffler.submit(Randomizer(protocol, noise="simulation").encode([0.6, 0.8]), "Ann")
        >>> shuffler.close().values.shape
        (2,)
    """

    def __init__(
        self,
        protocol: Protocol,
        *,
        version: Version = 0,
        short: str = "pad",
        noise: str = "secure",
        seed: int | None = None,
    ) -> None:
        self.protocol, self.version = protocol, _version(version)
        self.short = choice("short", short, ("pad", "discard"))
        self._randomizer = Randomizer(protocol, noise=noise, seed=seed)
        self._source, self.caveats = self._randomizer._source, self._randomizer.caveats
        self._open: dict[Hashable, Messages] = {}

    def submit(self, messages: Messages, sender: Hashable) -> None:
        """Take in the record of one sender; senders are forgotten when the batch closes.

        Raises:
            SubmissionError: the version is not that of the batch, the values are not those of one
                record, the sender is in the batch already, or the batch is full.  Only this
                submission is refused; the decision does not depend on the numbers of others.
        """
        self._refuse_strange(messages)
        if len(messages.values) != 1:
            raise SubmissionError(
                f"a sender must submit exactly one record, got {len(messages.values)}"
            )
        if sender in self._open:
            raise SubmissionError("the sender has already submitted to this batch")
        if len(self._open) == self.protocol.batch:
            raise SubmissionError(f"the batch is full: it has {self.protocol.batch} records")
        self._open[sender] = messages

    def close(self, next_version: Version | None = None) -> Messages | None:
        """Output the submitted batch, and begin one of the next version, by default the same
        version.

        The time of the call must not depend on submissions; use a clock, for example.

        Returns:
            The messages for ``Analyzer``, or None if the batch was short and is discarded.
        """
        version = self.version if next_version is None else _version(next_version)
        mixed = self.shuffle(list(self._open.values()))
        # After the shuffle: if that fails, the batch is still there.
        self._open, self.version = {}, version
        return mixed

    def shuffle(self, batch: Sequence[Messages]) -> Messages | None:
        """Output a batch that was collected elsewhere, by a party that checked its senders.

        Returns:
            The messages for ``Analyzer``, or None if the batch was short and is discarded.

        Raises:
            SubmissionError: as for ``submit``.
        """
        # Checked again here: ``shuffle`` also takes batches that never went through ``submit``.
        for messages in batch:
            self._refuse_strange(messages)
        missing = self.protocol.batch - sum(len(messages.values) for messages in batch)
        if missing < 0:
            raise SubmissionError(f"the batch has {-missing} records too many")
        if missing and self.short == "discard":
            return None
        padding = self._randomizer.encode_many(np.zeros((missing, self.protocol.dimension)))
        # A device chooses its type of integers, which must not show in the output.
        records = [messages.values.astype(padding.values.dtype) for messages in batch]
        values = np.concatenate([*records, padding.values])
        return Messages(self.protocol.mixed(values, self._source), self.version)

    def _refuse_strange(self, messages: Messages) -> None:
        if messages.version != self.version or type(messages.version) is not type(self.version):
            raise SubmissionError(
                f"the batch takes messages of version {self.version!r}, got {messages.version!r}"
            )
        shape, low, high = self.protocol.record
        values = messages.values
        if not _integers(values) or values.shape[1:] != shape:
            raise SubmissionError(f"a record must be integers of shape {shape}")
        if values.size and (values.min() < low or values.max() > high):
            raise SubmissionError(f"the values of a record must be between {low} and {high}")


class Analyzer:
    """Program for the server: computes the noisy sum from the shuffler's output.

    Args:
        protocol: the protocol of the three parties.
    """

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol

    def aggregate(self, messages: Messages) -> np.ndarray:
        """Compute the noisy sum of the vectors of a batch.

        Returns:
            Shape (D,), unbiased, with noise of standard deviation ``protocol.noise_std`` and that
            of rounding.

        Raises:
            ArgumentError: this did not leave a shuffler of the protocol.
        """
        values, shape = messages.values, self.protocol.mixed_shape
        if not _integers(values) or values.shape != shape:
            raise ArgumentError(f"messages must hold integers of shape {shape}", "messages")
        return self.protocol.total(values) * self.protocol.step


def _integers(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.ndim > 0


def _version(version: Any) -> Version:
    if isinstance(version, Integral) and not isinstance(version, bool):
        return int(version)  # a kernel that is not compiled counts in integers of NumPy
    if isinstance(version, str):
        return version
    raise ArgumentError(f"version must be an integer or a text, got {version!r}", "version")
