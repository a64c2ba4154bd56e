"""Tickets: who may send a record.

A ticket is a user's name and its HMAC under a secret of the shuffler, for one experiment.  The
shuffler keeps no list of users, and stores another keyed hash of those who came.
"""

from __future__ import annotations

import binascii
import hmac
import os
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from pathlib import Path

from ..errors import ArgumentError, StateFileError
from ..validation import printable

_BYTES = 32
_LONGEST = 200  # letters of a user's name


class Tickets:
    """The tickets of a shuffler.

    Args:
        path: the file of the secret.

    Raises:
        ArgumentError: there is no such file, or it has something else.
        StateFileError: others can read it.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._secret, mode = path.read_bytes(), path.stat().st_mode
        except OSError as error:
            raise ArgumentError(
                f"tickets must name the file of the secret, got {path}: {error.strerror}. The"
                " command dpbandits shuffle --ticket USER FILE makes this file",
                "tickets",
            ) from None
        if len(self._secret) != _BYTES:
            raise ArgumentError(f"tickets must name a file of {_BYTES} bytes, got {path}")
        if os.name == "posix" and mode & 0o077:
            raise StateFileError(f"{path} can be read by other users: chmod 600 {path}")

    @classmethod
    def at(cls, path: Path) -> Tickets:
        """The tickets of a file, which is made if there is none."""
        with suppress(FileExistsError):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(handle, "wb") as file:
                file.write(secrets.token_bytes(_BYTES))
                file.flush()
                os.fsync(file.fileno())
        return cls(path)

    def issue(self, experiment: str, user: str) -> str:
        """The ticket of a user for an experiment.

        Raises:
            ArgumentError: the name is empty, too long or not printable.
        """
        name = printable("ticket", user, _LONGEST).encode()
        return f"{_text(name)}.{_text(self._code(experiment, name))}"

    def user_of(self, experiment: str, ticket: str) -> bytes | None:
        """A hash of the user of a ticket, by which they are stored; None for no valid ticket."""
        name, _, code = ticket.partition(".")
        try:
            user, given = _bytes(name), _bytes(code)
        except (binascii.Error, ValueError):
            return None
        if not hmac.compare_digest(given, self._code(experiment, user)):
            return None
        return self._hash(b"user\0" + experiment.encode() + b"\0" + user)

    def _code(self, experiment: str, user: bytes) -> bytes:
        return self._hash(experiment.encode() + b"|" + user)

    def _hash(self, content: bytes) -> bytes:
        return hmac.digest(self._secret, content, "sha256")


def _text(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    content = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if _text(content) != text:  # each content has one text
        raise ValueError
    return content
