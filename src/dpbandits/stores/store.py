"""Stores keep policies: a place for each, in which one commit puts a batch of changes.

*One holder.*  Two running copies of a policy would release the same raw data twice with fresh
noise.  Each record would then lose more than the ledgers say.  Every life of a policy, from its
construction or loading on, has a name of its own, and each place has one holder: a life.  Loading
makes the loaded policy's life the holder.  The commits of all other lives are refused from then on.

*Output commit.*  A policy works in memory, and nothing that it computed leaves before the commit
returns: no decision, no acknowledgement, no released value.  So noise whose batch never became
durable was seen by nobody, and costs nothing.  That holds only if failures do not depend on the
noise: batches have the same length whatever was drawn, and a commit that failed is repeated with
the same bytes.  It leaves one assumption, which guarantees list: no process dies because of the
values of its noise.

*Opaque rows.*  A store knows nothing of policies.  It keeps bytes: a head, which every batch
replaces, and rows, each with a kind and a key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..errors import ClaimError

OTHER_FORMAT = (  # of a saved policy: what to do about it
    "this version of dpbandits reads formats 5 and 6. If the file is newer, update dpbandits; if it"
    " is older, save it again with a version that reads it and writes format 5 or 6"
)
WHY = (
    "two copies of a policy would release the same raw data twice with fresh noise, and could"
    " exceed the budget"
)

User = str | int


class Row(NamedTuple):
    """One row of a place: a pull that waits, an answer, a user, a line of the ledger.

    Attributes:
        kind: a short word; rows of several kinds may have the same key.
        key: at most 80 bytes, by which rows of a kind are sorted.
        content: the bytes; None takes the row away.
    """

    kind: str
    key: bytes
    content: bytes | None


class Batch(NamedTuple):
    """The changes of one commit.

    Attributes:
        number: 1 for the first batch of a policy, and one more for each later one.
        head: takes the place of the head before.
        rows: rows that are new, changed or taken away; at most one of a kind and key.
        whole: whether ``rows`` are all rows of the policy: whatever else is there is removed.
        new: whether a whole batch is refused where anything was committed before.
    """

    number: int
    head: bytes
    rows: Sequence[Row]
    whole: bool = False
    new: bool = False


class Mark(NamedTuple):
    """Who holds a place, and the number of the last batch in it."""

    life: str
    number: int


class Held(NamedTuple):
    """All that a place holds; ``rows`` come in the order of kind and key, and can be read once."""

    mark: Mark
    head: bytes
    rows: Iterator[Row]


class Place(ABC):
    """The base of all places.  One place keeps one policy.

    What a method writes is durable when it returns.  Calls of several processes exclude each other.
    ``str`` of a place is shown in messages; it holds no password.

    Attributes:
        store: the store that commits several of its places at once; None for a place by itself.
        sealed: whether private bytes are sealed before they come here (``stores.sealing``).
    """

    store: Store | None = None
    sealed = False

    @abstractmethod
    def mark(self) -> Mark | None:
        """Tell who holds the place, and the number of the last batch.

        Returns:
            A ``Mark``; None where nothing was committed.

        Raises:
            StoreError: the store cannot be read.
            StateFileError: the place is damaged, or holds something else.
        """

    @abstractmethod
    def read(self) -> Held | None:
        """Read everything, as of one moment.

        Returns:
            A ``Held``; None where nothing was committed.

        Raises:
            StoreError, StateFileError: as ``mark``.
        """

    @abstractmethod
    def claim(self, held: Mark, heir: str) -> None:
        """Make another life the holder; the content stays.

        Raises:
            ClaimError: the place is not, or no longer, as ``held`` says.
            StoreError: nothing was written, or it is not known whether it was: ``mark`` tells.
            StateFileError: as ``mark``.
        """

    @abstractmethod
    def commit(self, batch: Batch, life: str) -> None:
        """Write all of a batch, or nothing.

        A whole batch may replace what another policy has left, or what an earlier batch of its own
        life has.  Any other has to follow the last batch of its own life.  A life that lost the
        place, to an heir or to another policy, does not get it back by a whole batch.

        Raises:
            ClaimError: another life holds the place, or the number does not follow.
            StoreError: nothing was written, or it is not known whether it was: ``mark`` tells.
            StateFileError: as ``mark``.
        """

    def release(self, life: str) -> None:  # noqa: B027 - most places have nothing to end
        """Say that a life has ended cleanly: another may claim the place at once.

        Places whose holder has it for a time only, until a lease ends, override this.  Of a life
        that does not hold the place, nothing happens.

        Raises:
            StoreError: the store cannot be written; the lease ends by itself.
        """

    def renew(self, life: str) -> None:  # noqa: B027 - as in ``release``
        """Say that a life goes on, though it commits nothing.

        Raises:
            StoreError: the store cannot be written.
        """

    @property
    def lease_left(self) -> float:
        """For how many seconds nobody else can claim the place, whether its holder lives or not.

        Raises:
            StoreError: the store cannot be read.
        """
        return 0.0

    @property
    def wants_whole(self) -> bool:
        """Whether the next batch should be a whole one, because changes have piled up."""
        return False


class Store(ABC):
    """The base of all stores: a folder or a database with a place for each of many policies."""

    @abstractmethod
    def place(self, key: str) -> Place:
        """The place of that name, which need not hold anything yet.

        Raises:
            ArgumentError: ``key`` is no text of 1 to 60 printable characters.
        """

    @abstractmethod
    def keys(self) -> list[str]:
        """The names of all places that hold something, sorted."""

    @abstractmethod
    def commit_all(self, batches: Sequence[tuple[Place, Batch, str]]) -> list[BaseException | None]:
        """Commit batches of several places with one durable write.

        A batch that is refused leaves the others alone.

        Returns:
            For each batch None, or the error that its ``commit`` would raise.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""


def taken_over(place: Place) -> ClaimError:
    """The error for a policy whose place another life has taken."""
    return ClaimError(
        f"{place} was not written: another policy was saved there, or a copy of this one was loaded"
        " from there and carries on. Save each policy in a place of its own, and load each save"
        f" once: {WHY}"
    )
