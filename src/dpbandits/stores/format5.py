"""Read what versions before 0.2 have saved: an npz archive, and a journal of announced releases.

The archive's comment is the SHA-256 of all bytes before it.  Nothing in it can be executed.
Releases were announced in the journal before they were made, with the users' counts.  Claims are
files in the state folder: ``<life>.claimed``, and ``<life>.latest`` with the number of saves.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import ClaimError, StateFileError
from ..privacy.ledger import Line
from ..validation import shown
from .store import OTHER_FORMAT, WHY, User
from .witness import state_folder

_FORMAT, _VERSION = "dpbandits-state", 5
_DIGEST = 64  # hexadecimal digits of SHA-256, with which a snapshot ends
_ZIP = b"PK\x03\x04"


class Saved5(NamedTuple):
    """What a file and its journal hold."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]
    announced: list[tuple[Line, list[tuple[User, int]]]]  # releases since, and users' counts


def is_format5(path: Path) -> bool:
    """Whether a file is such an archive."""
    with suppress(OSError), open(path, "rb") as file:
        return file.read(len(_ZIP)) == _ZIP
    return False


def read5(path: Path) -> Saved5:
    """Read file and journal.

    Raises:
        StateFileError: one is damaged, missing or of another version.
    """
    header, arrays = _decoded(path.read_bytes(), path)
    try:
        life, saves = header["life"]
    except (KeyError, TypeError, ValueError):
        raise StateFileError(
            f"{path} is not a saved policy: its header has no proper entry 'life'"
        ) from None
    return Saved5(header, arrays, _announced(path, life, saves))


@contextmanager
def claim5(path: Path, life: str, saves: int) -> Iterator[None]:
    """Take over the life of a file: no version loads it or a copy again.  If the block
    fails, which saves what was read, nothing was claimed.

    Raises:
        ClaimError: it has been loaded, or saved again.
    """
    claimed, latest = _claims(life)
    if claimed.exists():
        raise ClaimError(
            f"{path}, or another save of the same policy, has been loaded before; {WHY}"
        )
    if latest is not None and saves < latest[0]:
        raise ClaimError(
            f"{path} is save {saves} of a policy that was saved {latest[0]} times; only the last"
            f" save can be loaded; {WHY}"
        )
    claimed.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.close(os.open(claimed, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise ClaimError(f"{path} is being loaded by another process; {WHY}") from None
    try:
        yield
    except BaseException:
        claimed.unlink()
        raise


def is_superseded5(life: str, saves: int) -> bool:
    """Whether the policy of a file goes on elsewhere."""
    claimed, latest = _claims(life)
    return claimed.exists() or (latest is not None and latest[0] > saves)


def _claims(life: str) -> tuple[Path, tuple[int, bool] | None]:
    """The claim of a life, and its last save, with whether a release was announced since."""
    if not isinstance(life, str) or not re.fullmatch(r"[\w -]{1,64}", life):  # it names files
        raise StateFileError(
            f"the file is no saved policy: its entry 'life' must be a name, got {shown(life)}"
        )
    folder = state_folder() / "claims"
    with suppress(FileNotFoundError):
        saves, announced = json.loads((folder / f"{life}.latest").read_bytes())
        return folder / f"{life}.claimed", (saves, announced)
    return folder / f"{life}.claimed", None


def _decoded(content: bytes, path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    archive, digest = content[:-_DIGEST], content[-_DIGEST:]
    if hashlib.sha256(archive).hexdigest().encode() != digest:
        raise StateFileError(
            f"{path} is damaged, cut short, or no saved policy: its checksum does not fit"
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            if header["format"] != _FORMAT or header["version"] != _VERSION:
                raise StateFileError(
                    f"{path} has format {header['format']} {header['version']}; {OTHER_FORMAT}"
                )
            arrays = {name: file[name] for name in file.files if name != "header"}
    except (KeyError, TypeError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise StateFileError(f"{path} is not a saved policy: {error!r}") from error
    found = {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()}
    if found != header.get("arrays"):
        raise StateFileError(f"{path} does not hold the arrays that its header lists")
    return header, arrays


def _announced(path: Path, life: str, saves: int) -> list[tuple[Line, list[tuple[User, int]]]]:
    journal = path.with_name(path.name + ".journal")
    content = journal.read_bytes() if journal.exists() else b""
    entries: list[dict[str, Any]] = []
    for line in content.split(b"\n")[:-1]:  # a last line without its end was never used
        digest, _, text = line.partition(b" ")
        if digest != hashlib.sha256(text).hexdigest()[:16].encode():
            raise StateFileError(f"{journal} is damaged in line {len(entries) + 1}")
        entries.append(json.loads(text))
    if entries and (entries[0].get("holder"), entries[0].get("serial")) == (life, saves):
        return [
            (Line(*entry["begin"]), [(user, n) for user, n in entry["users"]])
            for entry in entries
            if "begin" in entry
        ]
    if _claims(life)[1] == (saves, True):
        raise StateFileError(f"{journal} is missing; it lists the releases since {path} was saved")
    return []
