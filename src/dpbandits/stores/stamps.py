"""Stamps: a place that was damaged or edited is refused, before a number in it can do harm.

Every head and row carries a checksum and a keyed hash of itself, its kind and its key.  The key
lies with the witness in the state folder.  Where that is lost, the checksum tells damage, and
nothing tells who has edited a row and its checksum.
"""

from __future__ import annotations

import hmac
import struct
import zlib
from collections.abc import Iterator

from ..errors import StateFileError
from .store import Row

_CHECKSUM = 4  # bytes
_STAMP = struct.Struct("<I8s")  # with a hash for which a forger needs 2**64 tries


class Stamps:
    """The stamps of one policy.

    Args:
        secret: the key; None where the state folder is lost, and only checksums are checked.
    """

    def __init__(self, secret: bytes | None) -> None:
        self._secret = secret

    def stamped(self, row: Row) -> Row:
        """The row with its stamp; one that is to be removed has none."""
        if row.content is None:
            return row
        return row._replace(content=row.content + self._stamp(row.kind, row.key, row.content))

    def checked(self, row: Row, place: object) -> Row:
        """The row without its stamp.

        Raises:
            StateFileError: the stamp does not fit.
        """
        content = row.content or b""
        told, stamp = content[: -_STAMP.size], content[-_STAMP.size :]
        fitting = self._stamp(row.kind, row.key, told)
        known = _CHECKSUM if self._secret is None else _STAMP.size
        if not hmac.compare_digest(stamp[:known], fitting[:known]):
            raise StateFileError(f"{place} was edited or damaged: the stamp of a row does not fit")
        return row._replace(content=told)

    def all_checked(self, rows: Iterator[Row], place: object) -> Iterator[Row]:
        """All rows, each as by ``checked``."""
        return (self.checked(row, place) for row in rows)

    def _stamp(self, kind: str, key: bytes, content: bytes) -> bytes:
        whole = b"\0".join([kind.encode(), key, content])
        keyed = hmac.digest(self._secret or b"", whole, "sha256")[:8]
        return _STAMP.pack(zlib.crc32(whole), keyed)
