"""Sealed rows: bytes under keys that lie outside the store, and are destroyed after a release.

A store keeps more than its present content: a write-ahead log, free pages, backups of last month.
Successive private states differ by single rewards.  So private bytes are sealed (AES-GCM, under a
random nonce) before they reach the store.  Their keys lie in the state folder.  Whenever an episode
ends, later bytes are sealed under a new key.  A key that nothing present needs is destroyed.  From
then on all copies of the old bytes tell nothing.

Sealed bytes cannot be moved: the name of the policy, the kind and the key of a row are
authenticated with it.
"""

from __future__ import annotations

import os
import secrets
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from ..errors import MissingExtra, StateFileError, StoreError
from .files import sync_folder
from .locks import Lock, locked
from .witness import checked_life, state_folder

_LEAD = struct.Struct(">Q12s")  # number of the key, and the nonce
_SLOT = struct.Struct(">Q32s")  # of the file of keys: number and key, or zeros
_EMPTY = bytes(_SLOT.size)


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
        self._used: dict[tuple[str, bytes], int] = {}  # rows, and the keys that they need
        self._current = 0  # no key of this object yet
        with suppress(FileNotFoundError):
            for slot, number, secret in _stored(self.path.read_bytes()):
                self._slots[number], self._keys[number] = slot, secret

    def seal(self, kind: str, key: bytes, content: bytes) -> bytes:
        """Seal the content of a row, under the newest key."""
        if not self._current:
            self.rotate()
        nonce = secrets.token_bytes(12)
        self._used[kind, key] = self._current
        cipher = _cipher(self._key(self._current))
        sealed: bytes = cipher.encrypt(nonce, content, self._about(kind, key))
        return _LEAD.pack(self._current, nonce) + sealed

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
                f"a {kind} was changed, or belongs to another policy: its seal does not fit"
            ) from None
        self._used[kind, key] = number
        return content

    def forget(self, kind: str, key: bytes) -> None:
        """A row is gone, and needs its key no longer."""
        self._used.pop((kind, key), None)

    def begin(self) -> None:
        """Everything will be sealed anew, under a new key, or is left in the clear from now on."""
        self._used, self._current = {}, 0

    def used(self) -> dict[tuple[str, bytes], int]:
        """The keys that rows need, to go back to."""
        return dict(self._used)

    def use(self, used: dict[tuple[str, bytes], int]) -> None:
        """Go back to what ``used`` has returned."""
        self._used = used

    def rotate(self) -> None:
        """Seal under a new key from now on.  It is durable before anything needs it.

        Its number is drawn, and its slot is one that is free on the disk: a former holder of the
        policy, which does not know yet that it is refused, leaves the keys of its heir alone.
        """
        number, secret = secrets.randbits(63) + 1, secrets.token_bytes(32)
        try:
            with self._locked() as file:
                taken = {slot for slot, _, _ in _stored(file.read())}
                slot = next(slot for slot in count() if slot not in taken)
                file.write(_SLOT.pack(number, secret), slot * _SLOT.size)
                os.fsync(file.handle)
        except OSError as error:
            raise StoreError(f"{self.path} could not be written: {error.strerror}") from error
        self._slots[number], self._keys[number], self._current = slot, secret, number

    def destroy(self) -> None:
        """Destroy all keys that nothing present needs.

        The next ``rotate`` synchronises that.  If it fails, the next call repeats it.
        """
        needed = {self._current, *self._used.values()}
        gone = [number for number in self._slots if number not in needed]
        if not gone:
            return
        with suppress(OSError), self._locked() as file:
            content = file.read()
            for number in gone:
                at = self._slots[number] * _SLOT.size
                if content[at : at + 8] == number.to_bytes(8, "big"):
                    file.write(_EMPTY, at)
                del self._slots[number], self._keys[number]

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
                f" {error.strerror}; remove it"
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
                f"{self.path} has no key {number}, with which this was sealed: bring the state"
                " folder along, or use dpbandits restore"
            )
        return self._keys[number]

    def _about(self, kind: str, key: bytes) -> bytes:
        return b"\0".join([self._policy.encode(), kind.encode(), key])


def _stored(content: bytes) -> list[tuple[int, int, bytes]]:
    """Slots, numbers and keys of a file."""
    whole = content[: len(content) // _SLOT.size * _SLOT.size]
    slots = enumerate(_SLOT.iter_unpack(whole))
    return [(slot, number, secret) for slot, (number, secret) in slots if number]


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise MissingExtra(
            "sealed rows need cryptography: pip install 'dpbandits[serve]'"
        ) from error
    return AESGCM(key)
