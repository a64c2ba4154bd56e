"""Stamps: a place that somebody has edited is refused, before a number in it can do harm.

Every head and row carries a keyed hash of itself, its kind and its key.  The key lies with the
witness in the state folder.  Where that is lost, contents cannot be checked this way: only their
ranges are.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator

from ..errors import StateFileError
from .store import Row

_BYTES = 8  # a forger without the key needs 2**64 tries


class Stamps:
    """The stamps of one policy.

    Args:
        secret: the key; None where the state folder is lost, and nothing is checked.
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
        told, stamp = content[:-_BYTES], content[-_BYTES:]
        if self._secret is not None and not hmac.compare_digest(
            stamp, self._stamp(row.kind, row.key, told)
        ):
            raise StateFileError(f"{place} was edited: the stamp of a row does not fit")
        return row._replace(content=told)

    def all_checked(self, rows: Iterator[Row], place: object) -> Iterator[Row]:
        """All rows, each as by ``checked``."""
        return (self.checked(row, place) for row in rows)

    def _stamp(self, kind: str, key: bytes, content: bytes) -> bytes:
        whole = b"\0".join([kind.encode(), key, content])
        return hmac.digest(self._secret or b"", whole, "sha256")[:_BYTES]
