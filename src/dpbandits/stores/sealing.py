"""Sealed rows: bytes under keys that lie outside the store, and are destroyed after a release.

A store keeps more than its present content: a write-ahead log, free pages, backups of last month.
Successive private states differ by single rewards.  So private bytes are sealed (AES-GCM, under a
random nonce) before they reach the store.  Their keys lie in the state folder.  Whenever an episode
ends, later bytes are sealed under a new key.  A key that nothing present needs is destroyed.  From
then on all copies of the old bytes tell nothing.  Rows that outlive their episode have keys of
their own, and keep no key of other rows alive.

Sealed bytes cannot be moved: the name of the policy, the kind and the key of a row are
authenticated with it.
"""

from __future__ import annotations

import os
import secrets
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ..errors import MissingExtra, StateFileError, StoreError
from .files import sync_folder
from .locks import Lock, locked
from .witness import checked_life, state_folder

_LEAD = struct.Struct(">Q12s")  # number of the key, and the nonce
_SLOT = struct.Struct(">Q32s")  # of the file of keys: number and key, or zeros
_EMPTY = bytes(_SLOT.size)
_Row = tuple[str, bytes]  # kind and key


class Sealer:
    """The keys of one policy, in a file of the state folder with a slot for each.

    Args:
        policy: its first life.

    Raises:
        MissingExtra: ``cryptography`` is not installed.
    """

    def __init__(self, policy: str) -> None:
        self._policy = checked_life(policy)
        self.path = state_folder() / "keys" / policy
        self._slots: dict[int, int] = {}  # of keys, by their numbers
        self._keys: dict[int, bytes] = {}
        self._used: dict[_Row, int] = {}  # rows, and the keys that they need
        self._rows = Counter[int]()  # how many rows need a key
        self._idle = set[int]()  # keys that may be needed no longer
        self._changes: list[tuple[_Row, int]] | None = None  # of ``_used``, and what was before
        self._current = [0, 0]  # keys, for rows that last and for others; 0: none yet
        self._free, self._size = list[int](), 0  # slots, as far as this object knows
        with suppress(FileNotFoundError):
            for slot, number, secret in _slots(self.path.read_bytes()):
                self._size = slot + 1
                if number:
                    self._slots[number], self._keys[number] = slot, secret
                    self._idle.add(number)
                else:
                    self._free.append(slot)

    def seal(self, kind: str, key: bytes, content: bytes, *, lasting: bool = False) -> bytes:
        """Seal the content of a row under the newest key.  Rows that are ``lasting`` share none
        with others.
        """
        number = self._current[lasting] or self._new_key(lasting=lasting)
        nonce = secrets.token_bytes(12)
        self._use((kind, key), number)
        cipher = _cipher(self._key(number))
        sealed: bytes = cipher.encrypt(nonce, content, self._about(kind, key))
        return _LEAD.pack(number, nonce) + sealed

    def open(self, kind: str, key: bytes, sealed: bytes) -> bytes:
        """Unseal the content of a row.

        Raises:
            StateFileError: the key was destroyed or is elsewhere, or the bytes were changed.
        """
        from cryptography.exceptions import InvalidTag

        try:
            number, nonce = _LEAD.unpack_from(sealed)
            secret = self._key(number)
            content: bytes = _cipher(secret).decrypt(
                nonce, sealed[_LEAD.size :], self._about(kind, key)
            )
        except (struct.error, InvalidTag):
            raise StateFileError(
                f"a saved {kind} was changed, or belongs to another policy: its seal does not fit"
            ) from None
        self._use((kind, key), number)
        return content

    def forget(self, kind: str, key: bytes) -> None:
        """A row is gone, and needs its key no longer."""
        self._use((kind, key), 0)

    def begin(self) -> None:
        """Everything will be sealed anew, under new keys, or is left in the clear from now on."""
        for row in list(self._used):
            self._use(row, 0)
        self._retire()

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Rows need the keys of before where a block fails."""
        self._changes = []
        try:
            yield
        except BaseException:
            changes, self._changes = self._changes, None
            for row, number in reversed(changes):
                self._use(row, number)
            raise
        finally:
            self._changes = None

    def _use(self, row: _Row, number: int) -> None:
        """A row needs the key of that number from now on, or none for 0."""
        before = self._used.pop(row, 0)
        if self._changes is not None:
            self._changes.append((row, before))
        if before:
            self._rows[before] -= 1
            if not self._rows[before]:
                del self._rows[before]
                self._idle.add(before)
        if number:
            self._used[row] = number
            self._rows[number] += 1

    def rotate(self) -> None:
        """Seal under new keys from now on."""
        self._retire()
        self._new_key(lasting=False)

    def _retire(self) -> None:
        self._idle.update(filter(None, self._current))
        self._current = [0, 0]

    def _new_key(self, *, lasting: bool) -> int:
        """A new current key.  It is durable before anything needs it.

        Its number is drawn, and its slot is one that is free on the disk: a former holder of the
        policy, which does not know yet that it is refused, leaves the keys of its heir alone.
        """
        number, secret = secrets.randbits(63) + 1, secrets.token_bytes(32)
        try:
            with self._locked() as file:
                slot = self._free_slot(file)
                file.write(_SLOT.pack(number, secret), slot * _SLOT.size)
                os.fsync(file.handle)
        except OSError as error:
            raise StoreError(f"{self.path} could not be written: {error.strerror}") from error
        self._slots[number], self._keys[number], self._current[lasting] = slot, secret, number
        return number

    def _free_slot(self, file: Lock) -> int:
        while True:
            if not self._free:
                self._free.append(self._size)
                self._size += 1
            slot = self._free.pop()
            if not any(file.read(slot * _SLOT.size, _SLOT.size)):  # or another holder took it
                return slot

    def destroy(self) -> None:
        """Destroy all keys that nothing present needs.

        The next new key synchronises that.  If it fails, the next call repeats it.
        """
        kept = (number for number in self._idle if self._rows[number] or number in self._current)
        self._idle.difference_update(list(kept))
        if not self._idle:
            return
        with suppress(OSError), self._locked() as file:
            for number in list(self._idle):
                slot = self._slots[number]
                at = slot * _SLOT.size
                if file.read(at, 8) == number.to_bytes(8, "big"):
                    file.write(_EMPTY, at)
                    self._free.append(slot)
                del self._slots[number], self._keys[number]
                self._idle.discard(number)

    def end(self) -> None:
        """Destroy all keys for good, because the policy goes on as another.

        Raises:
            StoreError: their file cannot be written.
        """
        if not self.path.exists():
            return
        try:
            with self._locked() as file:
                file.write(bytes(len(file.read())), 0)
                os.fsync(file.handle)
            self.path.unlink()
        except OSError as error:
            raise StoreError(
                f"{self.path} has keys that nothing needs, and could not be removed:"
                f" {error.strerror}. Remove this file"
            ) from error

    @contextmanager
    def _locked(self) -> Iterator[Lock]:
        new = not self.path.exists()
        if new:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self.path) as file:
            yield file
        if new:
            sync_folder(self.path.parent)

    def _key(self, number: int) -> bytes:
        if number not in self._keys:
            raise StateFileError(
                f"{self.path} lacks key {number} of a saved policy: copy the state folder, too, or"
                " use dpbandits restore"
            )
        return self._keys[number]

    def _about(self, kind: str, key: bytes) -> bytes:
        return b"\0".join([self._policy.encode(), kind.encode(), key])


def _slots(content: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Slots, numbers and keys of a file; the number of a free slot is 0."""
    whole = content[: len(content) // _SLOT.size * _SLOT.size]
    for slot, (number, secret) in enumerate(_SLOT.iter_unpack(whole)):
        yield slot, number, secret


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise MissingExtra(
            "sealed rows need cryptography: pip install 'dpbandits[serve]'"
        ) from error
    return AESGCM(key)
