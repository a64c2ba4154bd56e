"""Witnesses: what the state folder knows of a policy, wherever its place is.

A place cannot tell that it is a copy, or a backup of last night: all that it holds is as it was.
The witness of a policy lies outside, in the platform's folder for states or in
``$DPBANDITS_STATE_DIR``.  It names the life that goes on, and the number of its last batch.  A
place that is behind its witness, or that another life has left, is not loaded.

A load notes first which life will go on, then makes it the holder of the place, and then notes that
this is done.  A process that is killed in between has committed nothing, so both the old life and
the new may be loaded; whichever is loaded first goes on, alone.

A restore keeps the new life under a witness of its own.  It ends the old life once the place has
taken the new one.

Each commit locks the witness until its number is noted, so no copy is loaded meanwhile.  After a
release the note is synchronised: what a loss of power takes back later are commits that released
nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import platformdirs

from ..errors import ClaimError, StandbyError, StateFileError, StoreError
from ..validation import shown
from .locks import Lock, locked
from .store import WHY, Mark

# Of one note: its own number, the life that goes on, the one that is to, and the last batch.
_NOTE = struct.Struct("<Q32s32sQ")
_SLOT = _NOTE.size + 16  # with a digest
_SECRET = 2 * _SLOT  # where the key of stamps begins
_LIFE = re.compile(r"[0-9a-f]{32}")


def state_folder() -> Path:
    """The folder of witnesses, ``$DPBANDITS_STATE_DIR`` or that of the platform."""
    chosen = os.environ.get("DPBANDITS_STATE_DIR")
    return Path(chosen or platformdirs.user_state_dir("dpbandits", appauthor=False))


def checked_life(name: object) -> str:
    """The name of a life, which names files; a ``StateFileError`` for anything else."""
    if isinstance(name, str) and _LIFE.fullmatch(name):
        return name
    raise StateFileError(
        f"the file is no saved policy: its entry 'life' must be a name, got {shown(name)}"
    )


class _Note(NamedTuple):
    turn: int
    life: str
    heir: str  # empty while no load is under way
    number: int


class Witness:
    """The notes about one policy, which is named by its first life.

    Raises:
        StateFileError: ``policy`` is no name of a life.
    """

    def __init__(self, policy: str) -> None:
        folder = state_folder() / "witnesses"
        checked_life(policy)
        self.path, self._living = folder / policy, folder / f"{policy}.living"
        self._last: _Note | None = None
        self._file: Lock  # while it is locked

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the policy against all others that would load, save or commit it.

        Raises:
            StateFileError: the state folder cannot be used.
        """
        with ExitStack() as lock:
            try:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                lock.enter_context(self._locked())
            except OSError as error:
                raise StateFileError(
                    f"the state folder {self.path.parent} cannot be used: {error.strerror}; set"
                    " DPBANDITS_STATE_DIR to a folder that can be written"
                ) from error
            yield

    @contextmanager
    def going_on(self, life: str, place: object) -> Iterator[None]:
        """Lock the policy for a commit and its note: no copy is loaded between the two.

        Raises:
            ClaimError: another life goes on.
            StoreError: the state folder cannot be used.
        """
        with ExitStack() as lock:
            try:
                lock.enter_context(self._locked())
            except OSError as error:
                raise StoreError(f"{self.path} cannot be used: {error.strerror}") from error
            if not self.is_of(life):
                raise ClaimError(
                    f"{place} cannot be written any more: a copy of this policy has been loaded,"
                    f" and carries on; {WHY}"
                )
            yield

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with locked(self.path) as self._file:
            self._last = _newest(self._file.read())
            yield

    def is_of(self, life: str) -> bool:
        """Whether no other life goes on; asked while locked."""
        return self._last is None or self._last.life == life

    @property
    def secret(self) -> bytes | None:
        """The key of stamps; None where nothing is known of the policy."""
        try:
            with open(self.path, "rb") as file:
                file.seek(_SECRET)
                return file.read(32) or None
        except OSError:
            return None

    def begin(self, mark: Mark) -> None:
        """Make a secret and the first note, if there is none; asked while locked."""
        if self._last is not None:
            return
        self._write(secrets.token_bytes(32), _SECRET)
        self.note(mark, durable=True)

    def refuse_living(self, place: object) -> None:
        """Refuse a place whose policy was loaded by a process that lives."""
        if not self._living.exists():
            return
        try:
            Lock(self._living, wait=False).release()
        except BlockingIOError:
            raise StandbyError(
                f"{place} has been loaded, and the loaded policy still runs in a process: end that"
                f" process first; {WHY}"
            ) from None

    def refuse(self, mark: Mark, place: object) -> None:
        """Refuse to load a place that is behind, or whose policy goes on elsewhere."""
        self.refuse_living(place)
        known = self._last
        if known is None:
            raise ClaimError(
                f"{place} cannot be loaded: the state folder {self.path.parent} has no record of"
                f" this policy. A copy may run elsewhere, and {WHY}. Copy the state folder, too, or"
                " use dpbandits restore"
            )
        if mark.life not in (known.life, known.heir):
            raise ClaimError(
                f"{place}, or another copy of it, has been loaded before: use the loaded policy, or"
                f" dpbandits restore; {WHY}"
            )
        if mark.number < known.number:
            raise ClaimError(
                f"{place} ends with batch {mark.number:,}, but the policy's last batch is"
                f" {known.number:,}: this is an older copy, or was cut. Find the newest copy, or"
                f" use dpbandits restore; {WHY}"
            )

    def is_behind(self, mark: Mark) -> bool:
        """Whether the policy is known to go on elsewhere, or to have made later batches."""
        try:
            known = _newest(self.path.read_bytes())
        except OSError:
            return False
        return known is not None and (
            mark.life not in (known.life, known.heir) or mark.number < known.number
        )

    def note(self, mark: Mark, *, heir: str = "", durable: bool) -> None:
        """Note the last batch of the life that goes on; asked while locked.

        Raises:
            StoreError: the state folder cannot be written.
        """
        turn = 0 if self._last is None else self._last.turn
        note = _Note(turn + 1, mark.life, heir, mark.number)
        body = _NOTE.pack(note.turn, note.life.encode(), note.heir.encode(), note.number)
        # Two slots in turn: a torn note leaves the one before.
        self._write(body + _digest(body), note.turn % 2 * _SLOT, durable=durable)
        self._last = note

    def _write(self, content: bytes, at: int, *, durable: bool = False) -> None:
        try:
            self._file.write(content, at)
            if durable:
                os.fsync(self._file.handle)
        except OSError as error:
            raise StoreError(f"{self.path} could not be written: {error.strerror}") from error

    @property
    def number(self) -> int:
        """The number of the last batch that is known; 0 for an unknown policy."""
        return 0 if self._last is None else self._last.number

    def end(self, heir: str) -> None:
        """Note that copies of the policy are not loaded any more, because it was restored as
        another; asked while locked.
        """
        if not self.is_of(heir):
            self.note(Mark(heir, self.number + 1), durable=True)

    def hold(self) -> Callable[[], None]:
        """Prevent loads while this process lives, where the platform can do that.

        Returns:
            A function that ends the hold.
        """
        return Lock(self._living).release


def _newest(content: bytes) -> _Note | None:
    """The last note that was written whole."""
    notes = []
    for start in (0, _SLOT):
        body, digest = content[start : start + _NOTE.size], content[start + _NOTE.size :][:16]
        if len(body) == _NOTE.size and digest == _digest(body):
            turn, life, heir, number = _NOTE.unpack(body)
            now, then = (one.rstrip(b"\0").decode() for one in (life, heir))
            notes.append(_Note(turn, now, then, number))
    return max(notes, default=None)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:16]
