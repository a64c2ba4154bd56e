"""Places and stores by their addresses."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from ..errors import ArgumentError
from ..validation import shown
from .files import FilePlace, FolderStore
from .store import Place, Store

SQLITE, POSTGRESQL = "sqlite:///", ("postgresql://", "postgres://")
Address = str | os.PathLike[str]


def place_at(where: Place | Address) -> Place:
    """Take a place, or make the one at an address.

    Args:
        where: a place; the path of a file; or the address of a store, as for ``store_at``, with
            "#" and the key of the place: "sqlite:///policies.db#clinic".

    Returns:
        The place; that of a path is a ``FilePlace``.

    Raises:
        ArgumentError: ``where`` is none of these.
        MissingExtra: the extra for such a store is not installed.
    """
    if isinstance(where, Place):
        return where
    path = _path(where, "a file, or a place as in sqlite:///policies.db#key")
    if not _is_address(path):
        return FilePlace(Path(path))
    address, _, key = path.partition("#")
    if not key:
        raise ArgumentError(
            "where must name a place of the store: add # and the policy's key, as in"
            " sqlite:///policies.db#key",
            "where",
        )
    return _database(address).place(unquote(key))


def store_at(where: Store | Address) -> Store:
    """Take a store, or open the one at an address.

    Args:
        where: a store; the path of a folder; "sqlite:///" and the path of a database, relative
            ("sqlite:///policies.db") or not ("sqlite:////srv/policies.db"), in which "%23" stands
            for "#"; or "postgresql://user@host/database".

    Returns:
        The store; that of a path is a ``FolderStore``.

    Raises:
        ArgumentError: ``where`` is none of these.
        MissingExtra: the extra for such a store is not installed.
    """
    if isinstance(where, Store):
        return where
    path = _path(where, "a folder, or a database as in sqlite:///policies.db")
    if not _is_address(path):
        return FolderStore(Path(path))
    if "#" in path:
        raise ArgumentError("where must name a store, without '#' and the key of a policy", "where")
    return _database(path)


def _path(where: object, wanted: str) -> str:
    path = os.fspath(where) if isinstance(where, str | os.PathLike) else b""
    if isinstance(path, str) and path:
        return path
    raise ArgumentError(f"where must name {wanted}, got {shown(where)}", "where")


def _is_address(path: str) -> bool:
    return "://" in path


@cache
def _database(address: str) -> Store:
    """The store of an address, one for all its places.

    Messages do not show the address: it may have a password.
    """
    if address.startswith(SQLITE):
        from .sqlite import SQLiteStore

        return SQLiteStore(unquote(address.removeprefix(SQLITE)))
    if address.startswith(POSTGRESQL):
        from .postgresql import PostgreSQLStore

        return PostgreSQLStore(address)
    raise ArgumentError(
        "an address must be a path, or begin with sqlite:/// or postgresql://", "where"
    )
