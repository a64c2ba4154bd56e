"""Save and load: one file per state, one living holder per policy, and a journal of what was
released since.

The file is an npz archive of the arrays and a JSON header; the archive's comment is the SHA-256 of
all bytes before it.  It appears complete or not at all, holds nothing that could be executed, and
no generator of secure noise.  It does hold raw statistics: guard it.

*One holder.* Two living copies of a policy would release the same raw data twice with fresh noise,
so that each record would lose more than the ledgers say.  Every life of a policy, from its
construction or loading on, has a name of its own.  ``load`` claims the name in the file, by a file
in the user's state folder (``$DPBANDITS_STATE_DIR`` replaces it) that only one process can create;
the loaded policy starts a new life, and saves itself under it to the same path before ``load``
returns.  While it lives, nobody else can load that file; after a crash, or once the policy has
saved itself again, the next one can.  Of all the files that one life saved, only the last can be
loaded, and once; whoever goes on with the original after that is refused at its next release or
save.  Claims and announcements of one life exclude each other by a lock (``fcntl.flock``; where
Python has no ``fcntl``, on Windows, a release that begins in the very moment of a load may escape,
and a file that was loaded can be loaded again).  A forked process neither releases nor saves.  What
the state folder cannot see is for people to prevent: a state loaded under two state folders, and an
original that was never saved again and has no budget.

*Written ahead.*  After a ``save`` or ``load``, every release under a budget is announced in
``<path>.journal`` with its ledger line before it is made, and its noisy values follow before they
are used.  If the process dies, ``load`` counts all announced lines as spent, made or not, and drops
the raw statistics of the file, because those lines may cover their records.  Each dropped round of
an episode that goes on counts as ``default_reward``.  Without a ``save`` a policy lives in memory
only.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import weakref
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import platformdirs

from ..errors import ArgumentError, ClaimError, MissingExtra, StateFileError
from ..privacy.budgets import RDP, ZCDP, ApproxDP, Budget, PureDP
from ..privacy.ledger import grown, write
from .decisions import Decision, Progress
from .policy import Policy
from .protocol import registered

try:
    import fcntl
except ImportError:  # not on POSIX
    fcntl = None  # type: ignore[assignment]

_FORMAT, _VERSION = "dpbandits-state", 2
_DIGEST = 64  # hexadecimal digits of SHA-256
_NOTIONS: dict[str, type[Budget]] = {
    notion.__name__: notion for notion in (PureDP, ApproxDP, ZCDP, RDP)
}
# of the progress: dictionaries with integer keys, which JSON has not
_COUNTS = (
    "pending",
    "booked",
)
_FEATURES = ("contexts", "weights")  # of the progress: arrays
_WHY = "two copies would release the same raw data twice with fresh noise"


def save(policy: Policy, path: str | Path) -> Path:
    """Write the whole state of a policy, pending decisions included; the caller holds its lock.

    Raises:
        ArgumentError: ``path`` is no path of a file.
        StateFileError: the state folder cannot be used.
        ClaimError: an earlier save of this object has been loaded, so that another object carries
            on, or this process is a fork.
        OSError: the file cannot be written.
    """
    path = _checked_path(path)
    if os.getpid() != policy._process:
        raise ClaimError(
            f"{path} was not written: this process is a fork; save in the process that made the"
            f" policy; {_WHY}"
        )
    with _locked(policy._id):
        if _claim_file(policy._id).exists():
            raise ClaimError(
                f"{path} was not written: an earlier save of this policy has been loaded and"
                f" carries on; {_WHY}"
            )
        content = _encode(policy, policy._serial + 1)
        _replace(path, content)
        policy._serial += 1  # from here on the new file counts, whatever else fails
        if policy.budget is not None:
            policy._journal = Journal(path, policy._id, policy._serial, content[-_DIGEST:])
        _sync_folder(path.parent)
        _note(policy._id, policy._serial, released=False)
        if policy._living is not None:  # whoever saves, offers the file to the next load
            policy._living()
    return path


def load(path: str | Path, *, simulation: bool = False) -> Policy:
    """Continue a saved policy, exactly where it stood.

    The loaded policy saves itself to the same file before it is returned, so that the next crash is
    survived like this one.

    Args:
        path: what ``Policy.save`` wrote, with its journal beside it.
        simulation: True to load a copy for an experiment, as often as wanted, without claiming it;
            simulated noise only.

    Raises:
        ArgumentError: ``path`` is no path of a file.
        StateFileError: the file or its journal is damaged, not ours, or from a newer version, or
            the state folder cannot be used. Nothing was claimed.
        ClaimError: the state has been loaded before, a later one was saved, or the policy that was
            loaded from the file is alive.
        FileNotFoundError: there is no such file.
        OSError: the file cannot be written again.  Nothing was claimed.

    Example:
        >>> import tempfile, dpbandits as dpb
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = dpb.AdaCUCB(2, budget=dpb.ZCDP(1.0), seed=1).save(folder + "/trial.dpb")
        ...     dpb.load(path, simulation=True)
        AdaCUCB(n_arms=2, beta=1.0, forget=True, budget=ZCDP(rho=1.0), seed=1)
    """
    path = _checked_path(path)
    header, arrays = _decode(path)
    try:
        policy, holder, serial = (
            _rebuilt(header, arrays),
            str(header["holder"]),
            int(header["serial"]),
        )
    except MissingExtra:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise StateFileError(f"{path} does not hold a policy of this version: {error!r}") from error
    if simulation:
        if policy._noise.secure:
            raise ClaimError(
                f"{path} holds a policy with secure noise, which is never copied for a simulation:"
                f" {_WHY}"
            )
        _replay(policy, _journalled(_journal_path(path), holder, serial)[0])
        return policy
    with _locked(holder):
        _refuse_living(path, holder)
        released = _refuse_old(path, holder, serial)
        _claim(path, holder)
        try:
            begun, end = _journalled(_journal_path(path), holder, serial)
            if released and not end:
                raise StateFileError(
                    f"{_journal_path(path)} is missing; it tells what was released since {path} was"
                    " saved"
                )
            _replay(policy, begun)
            save(policy, path)
        except BaseException:
            if policy._serial == 0:  # the file is still the old one
                _claim_file(holder).unlink()
            raise
        policy._living = _hold(policy)
    return policy


# The journal ---------------------------------------------------------------------------------


class Journal:
    """The releases since one save: checksummed lines of JSON, each on disk before the next step is
    taken.

    ``digest`` is the end of the state file, by which it is known.
    """

    def __init__(self, path: Path, holder: str, serial: int, digest: bytes) -> None:
        self._state, self._path, self._digest = path, _journal_path(path), digest
        self._holder, self._serial, self._end = holder, serial, 0
        self._last: tuple[Any, ...] | None = (
            None  # ledger line that was announced, and where in the file
        )
        self._start = 0

    def begin(self, line: tuple[Any, ...]) -> None:
        """Announce a release by the arguments of its ledger line.

        Announced again, because the first attempt failed, a line is not charged twice.

        Raises:
            ClaimError: the saved state has been loaded, and whoever did may release the same
                records; or another policy was saved to the same file.
        """
        with _locked(self._holder):
            if _claim_file(self._holder).exists():
                raise ClaimError(
                    "no release is made: a save of this policy has been loaded and carries on;"
                    f" {_WHY}"
                )
            if self._state.exists() and _digest_of(self._state) != self._digest:
                raise ClaimError(
                    f"no release is made: {self._state} was overwritten by another save; save this"
                    " policy elsewhere"
                )
            if self._end == 0:
                self._start_anew()
            if line != self._last:
                self._last, self._start = line, self._end
            self._end = self._start
            self._append({"begin": line})

    def _start_anew(self) -> None:
        self._path.write_bytes(b"")
        try:
            self._append({"holder": self._holder, "serial": self._serial})
            _sync_folder(self._path.parent)
            _note(self._holder, self._serial, released=True)
        except BaseException:
            self._end = 0
            raise

    def done(self, release: np.ndarray) -> None:
        """Record the noisy values of the release that was announced last."""
        self._append({"done": release.tolist()})

    def _append(self, entry: dict[str, Any]) -> None:
        text = json.dumps(entry).encode()
        with open(self._path, "r+b") as file:
            file.truncate(self._end)  # what an earlier failure, or a crash, left half-written
            file.seek(self._end)
            file.write(_line_digest(text) + b" " + text + b"\n")
            file.flush()
            os.fsync(file.fileno())
            self._end = file.tell()


def _journalled(path: Path, holder: str, serial: int) -> tuple[list[Any], int]:
    """The ledger lines announced since a save, and where the sound part of the journal ends; 0 if
    there is none of that save.
    """
    content = path.read_bytes() if path.exists() else b""
    lines = content.split(b"\n")[:-1]  # a last line without its end was never used
    entries: list[dict[str, Any]] = []
    for line in lines:
        digest, _, text = line.partition(b" ")
        if digest != _line_digest(text):
            raise StateFileError(f"{path} is damaged in line {len(entries) + 1}")
        entries.append(json.loads(text))
    if not entries or (entries[0].get("holder"), entries[0].get("serial")) != (holder, serial):
        return [], 0
    return [entry["begin"] for entry in entries if "begin" in entry], sum(
        len(line) + 1 for line in lines
    )


def _replay(policy: Policy, begun: list[Any]) -> None:
    """Book the announced lines, and forget every record that they may cover."""
    if not begun:
        return
    for line in begun:
        policy._make_room()
        write(policy._wall.ledger, *line)
    policy._raw, _, fresh = policy.new_state()
    if policy._wall.base.size:
        # The noise of a running sum goes on in memory that has been lost: later records get a
        # running sum of their own, on top of what was last released.
        policy._wall = policy._wall._replace(
            running=fresh.running, base=policy._wall.release.copy()
        )
        policy._restart_sum()
    progress, wall = policy._progress, policy._wall
    policy._recollect()
    past = max(progress.rounds, 1 + max(int(line[1]) for line in begun))
    # One round that nobody contributes to, so that a release that was due at the save covers a span
    # that is not empty.
    wall.opened[:], progress.rounds = past, past + 1
    progress.pending.clear()
    progress.contexts.clear()
    progress.closed = progress.pulls
    if policy._privacy_rng is not None:
        # its next numbers have been released
        cast(np.random.PCG64, policy._privacy_rng.bit_generator).advance(1 << 64)


def _journal_path(path: Path) -> Path:
    return path.with_name(path.name + ".journal")


def _line_digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:16].encode()


# Claims --------------------------------------------------------------------------------------


def _claims() -> Path:
    chosen = os.environ.get("DPBANDITS_STATE_DIR")
    return (
        Path(chosen) if chosen else Path(platformdirs.user_state_dir("dpbandits", appauthor=False))
    ) / "claims"


@contextmanager
def _locked(holder: str) -> Iterator[None]:
    """Let nobody else look at a life's claim, or at what was released in it, until this is done."""
    try:
        _claims().mkdir(parents=True, exist_ok=True)
        handle = os.open(_claims() / f"{holder}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise StateFileError(
            f"the state folder {_claims()} cannot be used: {error.strerror}; set"
            " DPBANDITS_STATE_DIR to a folder that can be written"
        ) from error
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)  # which unlocks


def _hold(policy: Policy) -> Callable[[], Any] | None:
    """Hold the file that ``load`` has written for as long as the policy lives; the result lets go
    of it.  A crash lets go, too.
    """
    if fcntl is None:
        return None
    handle = os.open(_living_file(policy._id), os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return weakref.finalize(policy, os.close, handle)


def _refuse_living(path: Path, holder: str) -> None:
    if fcntl is None or not _living_file(holder).exists():
        return
    handle = os.open(_living_file(holder), os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ClaimError(
            f"{path} has been loaded, and the policy that came of it is alive; {_WHY}"
        ) from None
    finally:
        os.close(handle)


def _living_file(holder: str) -> Path:
    return _claims() / f"{holder}.living"


def _claim_file(holder: str) -> Path:
    return _claims() / f"{holder}.claimed"


def _latest_file(holder: str) -> Path:
    return _claims() / f"{holder}.latest"


def _note(holder: str, serial: int, *, released: bool) -> None:
    """Remember the last save of one life, and whether anything was released since."""
    _replace(_latest_file(holder), json.dumps([serial, released]).encode())
    _sync_folder(_claims())


def _refuse_old(path: Path, holder: str, serial: int) -> bool:
    """Refuse a state that was claimed or saved again; tell whether anything was released since it
    was saved.
    """
    if _claim_file(holder).exists():
        raise ClaimError(
            f"{path} has been loaded before, or another save of the same policy has; {_WHY}"
        )
    try:
        latest, released = json.loads(_latest_file(holder).read_bytes())
    except FileNotFoundError:  # saved on another machine
        return False
    if serial < latest:
        raise ClaimError(
            f"{path} is save {serial} of a policy that was saved {latest} times; only the last one"
            f" can be loaded; {_WHY}"
        )
    return bool(released and serial == latest)


def _claim(path: Path, holder: str) -> None:
    try:
        handle = os.open(_claim_file(holder), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise ClaimError(f"{path} is being loaded by another process; {_WHY}") from None
    with os.fdopen(handle, "w") as file:
        file.write(f"{path.absolute()}\n")
        file.flush()
        os.fsync(handle)
    _sync_folder(_claims())


# The file ------------------------------------------------------------------------------------


def _encode(policy: Policy, serial: int) -> bytes:
    from .. import __version__

    progress = policy._progress
    views = [progress.contexts[number] for number in progress.pending] if progress.contexts else []
    arrays = {
        **dict(_arrays(policy)),
        "progress.weights": progress.weights,
        "progress.contexts": np.array(views),
    }
    streams = (
        {}
        if policy._noise.secure
        else {name: rng for name, rng in _streams(policy) if rng is not None}
    )
    last = policy._last
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "dpbandits": __version__,
        "class": type(policy).__name__,
        "config": policy._config,
        "holder": policy._id,
        "former": policy._former,
        "serial": serial,
        "progress": {
            **{
                name: value
                for name, value in vars(policy._progress).items()
                if name not in _FEATURES
            },
            **{name: list(getattr(policy._progress, name).items()) for name in _COUNTS},
        },
        "last": (
            None
            if last is None
            else [last.arm, last.propensity, last.number, last.recorded, last._owner]
        ),
        "streams": {name: rng.bit_generator.state for name, rng in streams.items()},
        "arrays": {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()},
    }
    text = json.dumps(header, default=_as_json).encode()
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, header=np.frombuffer(text, np.uint8), **arrays)
    # the length of the comment that follows
    archive = buffer.getvalue()[:-2] + _DIGEST.to_bytes(2, "little")
    return archive + hashlib.sha256(archive).hexdigest().encode()


def _decode(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        content = path.read_bytes()
    except IsADirectoryError:
        raise StateFileError(f"{path} is a folder, and no saved policy") from None
    archive, digest = content[:-_DIGEST], content[-_DIGEST:]
    if hashlib.sha256(archive).hexdigest().encode() != digest:
        raise StateFileError(
            f"{path} is damaged, cut short, or no saved policy: its checksum does not fit"
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            if header["format"] != _FORMAT or header["version"] > _VERSION:
                raise StateFileError(
                    f"{path} has format {header['format']} {header['version']}; this version reads"
                    f" {_VERSION}"
                )
            arrays = {name: file[name] for name in file.files if name != "header"}
    except (KeyError, TypeError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise StateFileError(f"{path} is no saved policy: {error!r}") from error
    if {
        name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()
    } != header.get("arrays"):
        raise StateFileError(f"{path} does not hold the arrays that its header lists")
    return header, arrays


def _digest_of(path: Path) -> bytes:
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _DIGEST))
        return file.read()


def _rebuilt(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Policy:
    config = {name: _from_json(value) for name, value in header["config"].items()}
    policy = registered()[header["class"]](**config)
    while len(policy._wall.ledger.span) < len(arrays["ledger.span"]):
        policy._wall = policy._wall._replace(ledger=grown(policy._wall.ledger))
    for name, array in _arrays(policy):
        array[...] = _fitting(name, arrays.pop(name), array)
    progress = header["progress"]
    counts = {name: dict(map(tuple, progress[name])) for name in _COUNTS}
    weights = _fitting("weights", arrays.pop("progress.weights"), policy._progress.weights)
    policy._progress = Progress(
        **{**progress, **counts, "standing": tuple(progress["standing"]), "weights": weights}
    )
    views = arrays.pop("progress.contexts")
    policy._progress.contexts = (
        dict(zip(policy._progress.pending, views, strict=True)) if len(views) else {}
    )
    if arrays:
        raise ValueError(f"unknown arrays {', '.join(arrays)}")
    policy._last = None if header["last"] is None else Decision(*header["last"])
    policy._former = {**header["former"], header["holder"]: policy._progress.pulls}
    for name, rng in _streams(policy):
        if name in header["streams"]:
            rng.bit_generator.state = header["streams"][name]
    return policy


def _fitting(name: str, saved: np.ndarray, array: np.ndarray) -> np.ndarray:
    if saved.shape != array.shape or saved.dtype != array.dtype:
        raise ValueError(
            f"{name} is {saved.dtype} {saved.shape} and should be {array.dtype} {array.shape}"
        )
    return saved


def _arrays(policy: Policy) -> Iterator[tuple[str, np.ndarray]]:
    """All arrays of the state by name; the statistic is zero between releases."""
    sides: dict[str, Any] = {
        "raw": policy._raw,
        "public": policy._public,
        "ledger": policy._wall.ledger,
        "running": policy._wall.running,
    }
    if policy._exactly is not None:
        sides["exact"] = policy._exactly.state
    for side, state in sides.items():
        for name in state._fields:
            if isinstance(getattr(state, name), np.ndarray):
                yield f"{side}.{name}", getattr(state, name)
    for name in ("opened", "base", "release"):
        yield f"wall.{name}", getattr(policy._wall, name)


def _streams(policy: Policy) -> Iterator[tuple[str, Any]]:
    yield "policy", policy._choice_rng
    yield "privacy", policy._privacy_rng


def _as_json(value: Any) -> Any:
    if isinstance(value, Budget):
        return {"notion": type(value).__name__, **vars(value)}
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} cannot be saved")


def _from_json(value: Any) -> Any:
    if isinstance(value, dict) and "notion" in value:
        numbers = dict(value)
        return _NOTIONS[numbers.pop("notion")](**numbers)
    return tuple(map(_from_json, value)) if isinstance(value, list) else value


def _checked_path(path: Any) -> Path:
    if (
        not isinstance(path, str | os.PathLike)
        or isinstance(os.fspath(path), bytes)
        or not Path(path).name
    ):
        raise ArgumentError(f"path must name a file, got {path!r}")
    return Path(path)


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
