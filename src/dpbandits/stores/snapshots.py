"""Snapshots: a JSON header and arrays as the bytes of one file.

An npz archive; its comment is the SHA-256 of all bytes before it.  It holds nothing that could be
executed.  It may hold raw statistics: guard it.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from typing import Any

import numpy as np

from ..errors import StateFileError
from ..privacy.budgets import Budget

_FORMAT, _VERSION = "dpbandits-state", 5
DIGEST = 64  # hexadecimal digits of SHA-256, with which a snapshot ends


def encode(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Header and arrays as bytes."""
    shapes = {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()}
    whole = {"format": _FORMAT, "version": _VERSION, **header, "arrays": shapes}
    text = json.dumps(whole, default=as_json).encode()
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, header=np.frombuffer(text, np.uint8), **arrays)
    # The last two bytes are the length of the comment that follows.
    archive = buffer.getvalue()[:-2] + DIGEST.to_bytes(2, "little")
    return archive + hashlib.sha256(archive).hexdigest().encode()


def decode(content: bytes, source: object) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what ``encode`` wrote; ``source`` is where the bytes come from, for messages.

    Returns:
        The header, and the arrays by name.

    Raises:
        StateFileError: the bytes are damaged, no snapshot, or one of another version.
    """
    archive, digest = content[:-DIGEST], content[-DIGEST:]
    if hashlib.sha256(archive).hexdigest().encode() != digest:
        raise StateFileError(
            f"{source} is damaged, cut short, or no saved policy: its checksum does not fit"
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            if header["format"] != _FORMAT or header["version"] != _VERSION:
                raise StateFileError(
                    f"{source} has format {header['format']} {header['version']}; this version"
                    f" reads {_VERSION}"
                )
            arrays = {name: file[name] for name in file.files if name != "header"}
    except (KeyError, TypeError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise StateFileError(f"{source} is not a saved policy: {error!r}") from error
    found = {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()}
    if found != header.get("arrays"):
        raise StateFileError(f"{source} does not hold the arrays that its header lists")
    return header, arrays


def arguments(saved: dict[str, Any]) -> dict[str, Any]:
    """Constructor arguments as they were before they became JSON."""
    return {name: _from_json(value) for name, value in saved.items()}


def as_json(value: object) -> object:
    """The JSON form of values without one; ``arguments`` restores budgets, and constructors restore
    parts.
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} cannot be saved")


def _from_json(value: Any) -> Any:
    if isinstance(value, dict) and "notion" in value:
        return Budget.from_dict(value)
    return tuple(map(_from_json, value)) if isinstance(value, list) else value
