"""What stores in databases share: their places, one connection for all threads, and refusals."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ..errors import ArgumentError, ClaimError, StateFileError, StoreError
from ..validation import printable
from .store import WHY, Batch, Held, Mark, Place, Store, taken_over

LONGEST_KEY = 60


class DatabaseStore(Store):
    """The base of stores in databases.  ``str`` gives the address, without a password."""

    def place(self, key: str) -> Place:
        return DatabasePlace(self, printable("key", key, LONGEST_KEY))

    def commit_all(self, batches: Sequence[tuple[Place, Batch, str]]) -> list[BaseException | None]:
        own = [self._own(place, batch, life) for place, batch, life in batches]
        try:
            return [*self._write(own)]
        except (StoreError, StateFileError) as error:
            return [error] * len(own)

    def _own(self, place: Place, batch: Batch, life: str) -> tuple[DatabasePlace, Batch, str]:
        if not isinstance(place, DatabasePlace) or place.store is not self:
            raise ArgumentError("batches must belong to places of this store", "batches")
        return place, batch, life

    @abstractmethod
    def _mark(self, key: str) -> Mark | None:
        """As ``Place.mark``."""

    @abstractmethod
    def _read(self, key: str) -> Held | None:
        """As ``Place.read``."""

    @abstractmethod
    def _claim(self, place: DatabasePlace, held: Mark, heir: str) -> ClaimError | None:
        """As ``Place.claim``, but a refusal is returned."""

    @abstractmethod
    def _write(
        self, batches: Sequence[tuple[DatabasePlace, Batch, str]]
    ) -> Sequence[ClaimError | None]:
        """Write batches in one transaction, and return refusals; an error is all batches' own."""

    @abstractmethod
    def _release(self, key: str, life: str) -> None:
        """As ``Place.release``."""

    def _renew(self, key: str, life: str) -> None:
        """As ``Place.renew``."""

    def _lease_left(self, key: str) -> float:
        """As ``Place.lease_left``."""
        return 0.0


class DatabasePlace(Place):
    """The rows of one key.

    Attributes:
        store, key: where they are.
    """

    store: DatabaseStore
    sealed = True

    def __init__(self, store: DatabaseStore, key: str) -> None:
        self.store, self.key = store, key

    def __str__(self) -> str:
        return f"{self.store}#{self.key}"

    def mark(self) -> Mark | None:
        return self.store._mark(self.key)

    def read(self) -> Held | None:
        return self.store._read(self.key)

    def claim(self, held: Mark, heir: str) -> None:
        refused = self.store._claim(self, held, heir)
        if refused is not None:
            raise refused

    def commit(self, batch: Batch, life: str) -> None:
        (error,) = self.store.commit_all([(self, batch, life)])
        if error is not None:
            raise error

    def release(self, life: str) -> None:
        self.store._release(self.key, life)

    def renew(self, life: str) -> None:
        self.store._renew(self.key, life)

    @property
    def lease_left(self) -> float:
        return self.store._lease_left(self.key)


def batch_refused(place: Place, held: Mark | None, batch: Batch, life: str) -> ClaimError:
    """The error for a batch that a place does not take, as ``held`` says."""
    if held is None:
        return ClaimError(
            f"{place} has no saved policy, so batch {batch.number} cannot be written there"
        )
    if held.life == life:
        return ClaimError(
            f"{place} was not written: the place already has batch {held.number}, and this is batch"
            f" {batch.number}. Another process may write for the same policy"
        )
    return taken_over(place)


def claim_refused(place: Place) -> ClaimError:
    """The error for a claim of a place that is not as it was read."""
    return ClaimError(
        f"{place} has changed since it was read, or another process has loaded it: {WHY}"
    )


# Connections ----------------------------------------------------------------------------------


class Shared:
    """One connection, which each thread of a process has alone for a while.

    It is made when it is first needed, and again after an error: so a transaction that was begun
    ends.  A forked process makes its own, and never touches its parent's.

    Args:
        connect: makes a connection.
        ends_at_fork: whether the connection is closed before the process forks.
    """

    def __init__(self, connect: Callable[[], Any], *, ends_at_fork: bool = False) -> None:
        self._connect, self._ends_at_fork = connect, ends_at_fork
        self._begin()
        _ALL.add(self)

    def _begin(self) -> None:
        self._lock, self._connection, self._lent = threading.RLock(), None, False

    @contextmanager
    def alone(self) -> Iterator[Any]:
        """Lend the connection to one thread."""
        with self._lock:
            if self._connection is None:
                self._connection = self._connect()
            self._lent = True
            try:
                yield self._connection
            except BaseException:
                self._drop()
                raise
            finally:
                self._lent = False

    def close(self) -> None:
        """Close the connection; the next use makes another."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):  # it may be broken
                connection.close()

    def before_fork(self) -> bool:
        """Close the connection, if it has to end, and return whether the lock was taken."""
        if self._ends_at_fork:
            self._lock.acquire()
            if not self._lent:  # to this very thread
                self._drop()
        return self._ends_at_fork

    def after_fork(self) -> None:
        """Give the lock back."""
        self._lock.release()

    def begin_in_child(self) -> None:
        """Leave the connection to the parent, and the lock to its threads."""
        if self._connection is not None:
            keep_for_good(self._connection)
        self._begin()


def keep_for_good(connection: Any) -> None:
    """Keep a connection of the parent process from garbage collection, which would close it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


_ALL: weakref.WeakSet[Shared] = weakref.WeakSet()
_FORKING = threading.RLock()
_taken: list[Shared] = []  # while a process forks


def _before_fork() -> None:
    _FORKING.acquire()
    _taken[:] = [shared for shared in list(_ALL) if shared.before_fork()]


def _after_fork() -> None:
    for shared in _taken:
        shared.after_fork()
    _taken.clear()
    _FORKING.release()


def _begin_in_child() -> None:
    for shared in list(_ALL):
        shared.begin_in_child()
    _taken.clear()
    _FORKING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_begin_in_child
    )
