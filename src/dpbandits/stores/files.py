"""A store in a file, with a journal beside it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import platformdirs

from ..errors import ArgumentError, ClaimError, StateFileError
from ..privacy.ledger import Line
from ..validation import shown
from .snapshots import DIGEST, as_json
from .store import WHY, Announcement, Life, Store

try:
    import fcntl
except ImportError:  # not on POSIX
    fcntl = None  # type: ignore[assignment]


class FileStore(Store):
    """A file with a journal beside it, ``<path>.journal``; claims lie in the user's state folder.

    The file appears complete or not at all.  Claims are files that only one process can create.
    They lie in the platform's folder for states, or in ``$DPBANDITS_STATE_DIR``.  Claims refer to
    the life in a file, so they also cover copies of the file.  A claim whose process was killed
    before the policy was loaded counts for nothing.  Claims and announcements of one life exclude
    each other by a lock (``fcntl.flock``).  On Windows, Python has no ``fcntl``: a release that
    begins in the moment of a load may escape, a loaded file can be loaded again, and the claim of
    a killed process stands.  The state
    folder cannot detect two cases, which the operator has to prevent: a state loaded under two
    state folders, and an original that was never saved again and has no budget.

    Raises:
        ArgumentError: ``path`` names no file.
    """

    def __init__(self, path: Path) -> None:
        if not isinstance(path, Path) or not path.name:
            raise ArgumentError(f"path must name a file, as a Path, got {shown(path)}", "path")
        self.path, self._journal = path, path.with_name(path.name + ".journal")
        self._snapshot_digest = b""  # of the snapshot that this object saved last
        self._end = self._start = 0  # of the journal, and of its last announcement
        self._last: Line | None = None
        self._taken: _Claims | None = None  # while a life is claimed

    def __str__(self) -> str:
        return str(self.path)

    def read(self) -> bytes:
        try:
            return self.path.read_bytes()
        except IsADirectoryError:
            raise StateFileError(f"{self.path} is a folder, not a saved policy") from None

    def write(self, snapshot: bytes, life: Life) -> None:
        with _Claims(life.name).locked() as claims:
            if claims.stand():
                raise ClaimError(
                    f"{self.path} was not written: an earlier save of this policy has been loaded"
                    f" and carries on; {WHY}"
                )
            if self._taken is not None:  # before the file appears, from which this life may go on
                self._taken.name_heir(self.path, life.name)
            _replace(self.path, snapshot)
            # From here on the new file counts, whatever else fails.
            self.life = life
            self._snapshot_digest, self._end, self._last = snapshot[-DIGEST:], 0, None
            _sync_folder(self.path.parent)
            claims.note(life, announced=False)

    def announce(self, coming: Announcement) -> None:
        life = cast(Life, self.life)
        with _Claims(life.name).locked() as claims:
            if claims.stand():
                raise ClaimError(
                    "no release is made: a save of this policy has been loaded and carries on;"
                    f" {WHY}"
                )
            if self.path.exists() and _last_bytes(self.path) != self._snapshot_digest:
                raise ClaimError(
                    f"no release is made: {self.path} was overwritten by another save; save this"
                    " policy elsewhere"
                )
            if self._end == 0:
                self._begin(life, claims)
            if coming.line != self._last:
                self._last, self._start = coming.line, self._end
            self._end = self._start
            self._append({"begin": coming.line, "users": coming.users})

    def _begin(self, life: Life, claims: _Claims) -> None:
        # It has noisy values, and names of users: like the snapshot it is the owner's alone.
        handle = os.open(self._journal, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        try:
            if os.name == "posix":
                os.fchmod(handle, 0o600)  # also of a file that an earlier version began
        finally:
            os.close(handle)
        try:
            self._append({"holder": life.name, "serial": life.saves})
            _sync_folder(self._journal.parent)
            claims.note(life, announced=True)
        except BaseException:
            self._end = 0
            raise

    def confirm(self, values: np.ndarray) -> None:
        self._append({"done": values.tolist()})

    def _append(self, entry: dict[str, Any]) -> None:
        text = json.dumps(entry, default=as_json).encode()
        with open(self._journal, "r+b") as file:
            file.truncate(self._end)  # what an earlier failure, or a crash, left half-written
            file.seek(self._end)
            file.write(_line_digest(text) + b" " + text + b"\n")
            file.flush()
            os.fsync(file.fileno())
            self._end = file.tell()

    def announced(self, life: Life) -> list[Announcement]:
        content = self._journal.read_bytes() if self._journal.exists() else b""
        entries: list[dict[str, Any]] = []
        for line in content.split(b"\n")[:-1]:  # a last line without its end was never used
            digest, _, text = line.partition(b" ")
            if digest != _line_digest(text):
                raise StateFileError(f"{self._journal} is damaged in line {len(entries) + 1}")
            entries.append(json.loads(text))
        if entries and (entries[0].get("holder"), entries[0].get("serial")) == life:
            return [
                Announcement(Line(*entry["begin"]), [(user, n) for user, n in entry["users"]])
                for entry in entries
                if "begin" in entry
            ]
        if _Claims(life.name).latest() == (life.saves, True):
            raise StateFileError(
                f"{self._journal} is missing; it lists the releases since {self.path} was saved"
            )
        return []

    @contextmanager
    def claim(self, life: Life) -> Iterator[None]:
        with _Claims(life.name).locked() as claims:
            claims.refuse(life, self.path)
            claims.take(self.path)
            before, self._taken = _last_bytes(self.path), claims
            try:
                yield
            except BaseException:
                if _last_bytes(self.path) == before:  # the file is still the old one
                    claims.claimed.unlink()
                raise
            finally:
                self._taken = None

    def superseded(self, life: Life) -> bool:
        claims = _Claims(life.name)
        latest = claims.latest()
        return claims.stand() or (latest is not None and latest[0] > life.saves)

    def hold(self) -> Callable[[], None]:
        if fcntl is None:
            return super().hold()
        handle = os.open(_Claims(cast(Life, self.life).name).living, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        return partial(os.close, handle)


class _Claims:
    """The claim and the releases of one life in the state folder."""

    def __init__(self, life: str) -> None:
        if not re.fullmatch(r"[\w -]{1,64}", life):  # it names files
            raise StateFileError(f"the file is no saved policy: its life is named {shown(life)}")
        chosen = os.environ.get("DPBANDITS_STATE_DIR")
        home = chosen or platformdirs.user_state_dir("dpbandits", appauthor=False)
        self.folder = Path(home) / "claims"
        self.lock, self.living, self.claimed, self.saved = (
            self.folder / f"{life}.{kind}" for kind in ("lock", "living", "claimed", "latest")
        )

    @contextmanager
    def locked(self) -> Iterator[_Claims]:
        """Lock the life's claim and releases against all other processes."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.lock, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise StateFileError(
                f"the state folder {self.folder} cannot be used: {error.strerror}; set"
                " DPBANDITS_STATE_DIR to a folder that can be written"
            ) from error
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield self
        finally:
            os.close(handle)  # which unlocks

    def note(self, life: Life, *, announced: bool) -> None:
        _replace(self.saved, json.dumps([life.saves, announced]).encode())
        _sync_folder(self.folder)

    def latest(self) -> tuple[int, bool] | None:
        """The data stored by ``note``; None for a life of another machine."""
        with suppress(FileNotFoundError):
            saves, announced = json.loads(self.saved.read_bytes())
            return saves, announced
        return None

    def refuse(self, life: Life, path: Path) -> None:
        """Refuse a snapshot whose policy lives, that was claimed, or was saved again."""
        if fcntl is not None and self.living.exists():
            handle = os.open(self.living, os.O_RDWR)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ClaimError(
                    f"{path} has been loaded, and the loaded policy still runs in a process; {WHY}"
                ) from None
            finally:
                os.close(handle)
        if self.stand():
            raise ClaimError(
                f"{path} has been loaded before, or another save of the same policy has; {WHY}"
            )
        latest = self.latest()
        if latest is not None and life.saves < latest[0]:
            raise ClaimError(
                f"{path} is save {life.saves} of a policy that was saved {latest[0]} times; only"
                f" the last one can be loaded; {WHY}"
            )

    def stand(self) -> bool:
        """Whether the life has been claimed, and may go on in another.

        A process that was killed during its claim has released nothing.  Its heir lives only if the
        heir's own save was noted, or claimed in turn.
        """
        claim = self._claim()
        if claim is None or claim.get("void"):
            return claim is not None
        if fcntl is None or "heir" not in claim:  # an earlier version did not name heirs
            return True
        if claim["heir"] is None:
            return False
        heir = _Claims(claim["heir"])
        later = heir._claim()
        return heir.saved.exists() or (later is not None and not later.get("void"))

    def _claim(self) -> dict[str, Any] | None:
        """The content of the claim; None if there is none."""
        try:
            text = self.claimed.read_bytes()
        except FileNotFoundError:
            return None
        if not text:  # the process was killed before it wrote
            return {"heir": None}
        return cast(dict[str, Any], json.loads(text)) if text.startswith(b"{") else {}

    def take(self, path: Path) -> None:
        claim = self._claim()
        if claim is not None and not self.stand():
            if claim["heir"]:  # it is dead, and no copy of its save may be loaded beside this one
                _replace(_Claims(claim["heir"]).claimed, json.dumps({"void": True}).encode())
            self.claimed.unlink()
        try:
            os.close(os.open(self.claimed, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise ClaimError(f"{path} is being loaded by another process; {WHY}") from None
        try:
            self.name_heir(path, None)
        except BaseException:
            self.claimed.unlink()
            raise

    def name_heir(self, path: Path, heir: str | None) -> None:
        """Note who claims the life, and under which name it will go on."""
        _replace(self.claimed, json.dumps({"path": str(path.absolute()), "heir": heir}).encode())
        _sync_folder(self.folder)


def _line_digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:16].encode()


def _last_bytes(path: Path) -> bytes:
    """The digest with which a snapshot ends."""
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - DIGEST))
        return file.read()


def _replace(path: Path, content: bytes) -> None:
    """Write a file that appears complete or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _sync_folder(folder: Path) -> None:
    """Make new names in a folder outlast a loss of power."""
    if os.name == "posix":  # elsewhere folders cannot be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def store_at(where: Store | str | os.PathLike[str]) -> Store:
    """Take a store, or the file of a name.

    Returns:
        ``where``, or a ``FileStore`` of that path.

    Raises:
        ArgumentError: ``where`` is neither a store nor the path of a file.
    """
    if isinstance(where, Store):
        return where
    if not isinstance(where, str | os.PathLike) or isinstance(os.fspath(where), bytes):
        raise ArgumentError(f"path must name a file, got {shown(where)}", "path")
    return FileStore(Path(where))
