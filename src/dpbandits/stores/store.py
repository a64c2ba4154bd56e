"""Stores keep snapshots of a policy, and its announcements between two of them.

*One holder.* Two running copies of a policy would release the same raw data twice with fresh noise.
Each record would then lose more than the ledgers say.  Every life of a policy, from its
construction or loading on, has a name of its own.  A process that loads a snapshot claims the life
in it, and continues in a new life.  Only the last snapshot of a life can be claimed, and only once.
A process that continues in a claimed life is refused at the next release or save.

*Written ahead.*  From the first ``save`` on, every release under a budget is announced in the store
with its ledger line before it is made.  Its noisy values are confirmed before they are used. After
a crash all announced lines count as spent, made or not.  Without a store a policy lives in memory
only.  The line also has the number of recorded rounds of each user where it has changed.  So a
record is released only after it counts against its user permanently.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np

from ..privacy.ledger import Line

WHY = "two copies would release the same raw data twice with fresh noise"


class Life(NamedTuple):
    """A life of a policy, and how often it has been saved."""

    name: str
    saves: int


User = str | int
Counted = list[tuple[User, int]]  # users, and how many of their rounds were recorded


class Announcement(NamedTuple):
    """A coming release."""

    line: Line
    users: Counted


class Store(ABC):
    """The base of all stores.  One holds the snapshot and the announcements of one policy.

    Writes of a method are durable when it returns; calls of several processes exclude each other.

    Attributes:
        life: the policy's life and the number of the last snapshot written; None before the first.
    """

    life: Life | None = None

    @abstractmethod
    def read(self) -> bytes:
        """The last snapshot.

        Raises:
            FileNotFoundError: there is none.
        """

    def save(self, snapshot: bytes, life: Life) -> None:
        """``write``, and remember whose snapshot it is.

        ``life`` tells even where an error is raised whether the snapshot is in its place.
        """
        self.write(snapshot, life)
        self.life = life

    @abstractmethod
    def write(self, snapshot: bytes, life: Life) -> None:
        """Put a snapshot of a life in the place of the last one; nothing is announced since.

        Raises:
            ClaimError: an earlier snapshot of that life has been claimed.
        """

    @abstractmethod
    def announce(self, coming: Announcement) -> None:
        """Note a coming release; once, and as it came last, if the first attempt failed and its
        line comes again.

        Raises:
            ClaimError: the life has been claimed, or the snapshot in the store is another's.
        """

    @abstractmethod
    def confirm(self, values: np.ndarray) -> None:
        """Note the noisy values of the release that was announced last."""

    @abstractmethod
    def announced(self, life: Life) -> list[Announcement]:
        """List the announcements since the last snapshot of a life.

        Returns:
            An ``Announcement`` for each release.

        Raises:
            StateFileError: the list is damaged or missing, in stores that can tell.
        """

    @abstractmethod
    def claim(self, life: Life) -> AbstractContextManager[None]:
        """Take over the life of the last snapshot, unless the block fails before it saves another.

        Returns:
            A context manager, whose block saves another snapshot.

        Raises:
            ClaimError: it has been claimed before, a later snapshot was saved, or the policy that
                was loaded from it is alive.
        """

    def superseded(self, life: Life) -> bool:
        """Tell whether a snapshot of a life has been claimed, or another was saved after it.

        Returns:
            False, too, where the store cannot tell without writing anything.
        """
        return False

    def hold(self) -> Callable[[], None]:
        """Prevent claims of the life of this object's snapshot, where the store can do that.

        Returns:
            A function that ends the hold; the hold also ends with the process.
        """
        return lambda: None
