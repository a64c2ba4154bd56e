"""Places in files: a snapshot, and a journal of the batches since.

Both begin with a line that names the format, and go on with frames: a length, a digest, and the
bytes of a batch or a claim.  A batch is appended and synchronised once.  A whole batch replaces the
snapshot, and the journal begins anew; frames that the snapshot includes are skipped by number.  The
journal ends before its first frame that is not whole: it was never acknowledged, or the witness
misses it.

Both files are their owner's alone.  They are not sealed: guard them like raw data.
"""

from __future__ import annotations

import hashlib
import heapq
import os
import re
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import IO, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from ..errors import ArgumentError, ClaimError, StateFileError, StoreError
from ..validation import printable, shown
from .format5 import is_format5
from .locks import locked
from .store import WHY, Batch, Held, Mark, Place, Row, Store, taken_over

MAGIC = b"dpbandits place 6\n"
_FRAME = struct.Struct("<Q16s")  # length and digest of the bytes that follow
_HEAD = struct.Struct("<c32sQQ")  # kind, life, number, length of the head
_BATCH, _WHOLE, _CLAIM = b"b", b"w", b"c"
_NONE = 2**32 - 1  # stands for the length of a row that is taken away
_ROW = struct.Struct("<BBI")  # lengths of kind, key and content
_FULL = 2**20  # bytes of a journal that may be folded
_SUFFIX = ".dpb"
_ATTEMPTS = 20  # to read files that are written all the time
T = TypeVar("T")
_FORMER = ""  # the kind of rows that only this module sees, and the first of a frame
_JOURNAL5 = re.compile(rb"[0-9a-f]{16} \{")


class _GapError(StateFileError):
    """The journal goes on from another snapshot."""


class _Seen(NamedTuple):
    """How the files stood when they were last looked at."""

    snapshot: bytes  # its beginning, with its digest: inodes are used again
    end: int  # of the last whole frame of the journal
    mark: Mark
    former: frozenset[bytes]  # lives that have lost the place


class FilePlace(Place):
    """A file with a journal beside it, ``<path>.journal``.

    Args:
        path: of the file; its folder has to exist.

    Raises:
        ArgumentError: ``path`` names no file.
    """

    def __init__(self, path: Path) -> None:
        if not isinstance(path, Path) or not path.name:
            raise ArgumentError(
                f"path must be a pathlib.Path that names a file, got {shown(path)}", "path"
            )
        self.path, self.journal = path, path.with_name(path.name + ".journal")
        self._seen: _Seen | None = None

    def __str__(self) -> str:
        return str(self.path)

    def mark(self) -> Mark | None:
        return self._as_of_one_moment(self._mark)

    def read(self) -> Held | None:
        return self._as_of_one_moment(self._read)

    def _as_of_one_moment(self, look: Callable[[], T]) -> T:
        """Look again where the holder has folded the journal meanwhile."""
        for _ in range(_ATTEMPTS):
            try:
                return look()
            except _GapError:
                continue
        return look()

    def _mark(self) -> Mark | None:
        with self._stored("read"), self._reading() as file:
            return None if file is None else self._look(file).mark

    def _read(self) -> Held | None:
        with self._stored("read"), self._reading() as file:
            if file is None:
                return None
            first = _first(file, self.path)
            mark, head, changes = first.mark, first.head, dict[tuple[str, bytes], bytes | None]()
            for frame in self._frames(mark):
                mark = frame.mark
                if frame.kind != _CLAIM:
                    head = frame.head
                    changes.update(((row.kind, row.key), row.content) for row in frame.rows())
            # The open file stays as it is, whatever replaces its name.
            return Held(mark, head, _merged(first, os.dup(file.fileno()), changes))

    def claim(self, held: Mark, heir: str) -> None:
        with self._writing() as file:
            found = None if file is None else self._look(file)
            if found is None or found.mark != held:
                raise ClaimError(f"{self} is being loaded by another process; {WHY}")
            lost = Row(_FORMER, held.life.encode(), b"")
            self._append(found, _framed(_CLAIM, Mark(heir, held.number), b"", [lost]), lost.key)

    def commit(self, batch: Batch, life: str) -> None:
        mark = Mark(life, batch.number)
        with self._writing() as file:
            older = file is not None and batch.whole and is_format5(self.path)
            found = None if file is None or older else self._look(file)
            if batch.new and file is not None:
                raise taken_over(self)
            if batch.whole:
                return self._replace(found, batch, mark)
            if found is None or found.mark.life != life:
                raise taken_over(self)
            _refuse_gap(self, found.mark, batch.number, whole=False)
            self._append(found, _framed(_BATCH, mark, batch.head, batch.rows))

    @property
    def wants_whole(self) -> bool:
        if self._seen is None or self._seen.end < _FULL:
            return False
        try:
            return self._seen.end > 2 * self.path.stat().st_size
        except OSError:
            return False

    # Reading ----------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[IO[bytes] | None]:
        with ExitStack() as opened:
            file = None
            try:
                file = opened.enter_context(open(self.path, "rb"))
            except FileNotFoundError:
                pass  # nothing was committed
            except IsADirectoryError:
                raise StateFileError(f"{self.path} is a folder, not a saved policy") from None
            yield file

    @contextmanager
    def _stored(self, verb: str) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{self} could not be {verb}: {error.strerror or error}") from error

    def _look(self, file: IO[bytes]) -> _Seen:
        """How the files stand; without reading them where they stand as before."""
        snapshot, size = _beginning(file), self._size()
        if self._seen is not None and (snapshot, size) == self._seen[:2]:
            return self._seen
        first = _first(file, self.path)
        mark, end, former = first.mark, 0, _former(first)
        for frame in self._frames(mark):
            mark, end = frame.mark, frame.end
            former |= _former(frame) if frame.kind == _CLAIM else frozenset()
        self._seen = _Seen(snapshot, end, mark, former)
        return self._seen

    def _size(self) -> int:
        try:
            return self.journal.stat().st_size
        except FileNotFoundError:
            return 0

    def _frames(self, after: Mark) -> Iterator[_Frame]:
        """The whole frames of the journal that follow the snapshot."""
        if not self._size():
            return
        with open(self.journal, "rb") as file:
            start = file.read(len(MAGIC))
            if start != MAGIC:
                if MAGIC.startswith(start) or _JOURNAL5.match(start):
                    return  # torn at its beginning, or of an earlier version's snapshot
                raise StateFileError(f"{self.journal} is not the journal of a saved policy")
            last = after
            while (frame := _frame_at(file)) is not None:
                begin, number = frame.begin, frame.mark.number
                claims = frame.kind == _CLAIM
                if number < after.number or (number == after.number and not claims):
                    frame.skip()
                    continue  # the snapshot includes it
                former = (
                    last.life.encode() in _former(frame) if claims else frame.mark.life == last.life
                )
                if not former:
                    return  # of another policy, which the snapshot has replaced
                if number != last.number + (not claims):
                    raise _GapError(
                        f"{self.journal} does not follow {self.path}: one of them is an older copy."
                        " Copy both files together"
                    )
                last = frame.mark
                yield frame._replace(begin=begin)
                frame.skip()

    # Writing ----------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[IO[bytes] | None]:
        """The snapshot, while all other processes wait."""
        with self._stored("written"), locked(self.journal) as lock:
            if os.name == "posix":
                os.fchmod(lock.handle, 0o600)
            with self._reading() as file:
                yield file

    def _append(self, found: _Seen, frame: bytes, *lost: bytes) -> None:
        start = found.end
        with open(self.journal, "r+b", buffering=0) as file:
            if start < len(MAGIC):
                frame, start = MAGIC + frame, 0
            try:
                file.truncate(start)  # of what an earlier failure, or a crash, left half written
                file.seek(start)
                _write_all(file, frame)
                os.fsync(file.fileno())
            except BaseException:
                self._seen = None
                _shorten(file, start)
                raise
        if start == 0:
            sync_folder(self.journal.parent)
        mark = _HEAD.unpack_from(frame, (len(MAGIC) if start == 0 else 0) + _FRAME.size)
        now = Mark(_life(mark[1]), mark[2])
        self._seen = _Seen(found.snapshot, start + len(frame), now, found.former.union(lost))

    def _replace(self, found: _Seen | None, batch: Batch, mark: Mark) -> None:
        former: frozenset[bytes] = frozenset()
        if found is not None:
            if found.mark.life == mark.life:
                _refuse_gap(self, found.mark, batch.number, whole=True)
            elif mark.life.encode() in found.former:
                raise taken_over(self)
            former = (found.former | {found.mark.life.encode()}) - {mark.life.encode()}
        self._seen = None
        rows = [*(Row(_FORMER, life, b"") for life in former), *batch.rows]
        write_anew(self.path, lambda file: _write_whole(file, batch._replace(rows=rows), mark))
        with open(self.journal, "r+b", buffering=0) as file:
            file.truncate(0)  # were it to stay: its frames are skipped
            os.fsync(file.fileno())
        sync_folder(self.path.parent)
        with open(self.path, "rb") as written:
            self._seen = _Seen(_beginning(written), 0, mark, former)


class FolderStore(Store):
    """A folder with a file for each policy, named by its key, with odd letters as %XX.

    Args:
        folder: it is made where there is none, for its owner alone.

    Raises:
        ArgumentError: ``folder`` is no path.
    """

    def __init__(self, folder: Path | str) -> None:
        if not isinstance(folder, Path | str) or not folder:
            raise ArgumentError(f"folder must be a path, got {shown(folder)}", "folder")
        self.folder = Path(folder)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def place(self, key: str) -> FilePlace:
        name = quote(printable("key", key, 60), safe=" ")  # no path
        return FilePlace(self.folder / (name + _SUFFIX))

    def keys(self) -> list[str]:
        names = (path.name.removesuffix(_SUFFIX) for path in self.folder.glob("*" + _SUFFIX))
        return sorted(map(unquote, names))

    def commit_all(self, batches: Sequence[tuple[Place, Batch, str]]) -> list[BaseException | None]:
        """Commit them one by one: files have no transaction over several."""
        outcomes: list[BaseException | None] = []
        for place, batch, life in batches:
            try:
                place.commit(batch, life)
                outcomes.append(None)
            except Exception as error:
                outcomes.append(error)
        return outcomes

    def close(self) -> None: ...


def _refuse_gap(place: Place, mark: Mark, number: int, *, whole: bool) -> None:
    if number == mark.number + 1 or (whole and number > mark.number):
        return
    raise ClaimError(
        f"{place} was not written: the place already has batch {mark.number}, and this is batch"
        f" {number}; another process may write for the same policy"
    )


# Frames --------------------------------------------------------------------------------------


def _former(frame: _Frame) -> frozenset[bytes]:
    """The lives that have lost the place, by a frame."""
    return frozenset(row.key for row in takewhile(lambda row: row.kind == _FORMER, frame.rows()))


class _Frame(NamedTuple):
    """A frame of a file, whose rows are read on demand."""

    kind: bytes
    mark: Mark
    head: bytes
    file: IO[bytes]
    begin: int  # of its rows
    end: int

    def rows(self) -> Iterator[Row]:
        return _rows(self.file, self.begin, self.end)

    def skip(self) -> None:
        self.file.seek(self.end)


def _beginning(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(len(MAGIC) + _FRAME.size)


def _first(file: IO[bytes], path: Path) -> _Frame:
    """The frame of a snapshot."""
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise StateFileError(
            f"{path} is damaged, cut short, or no saved policy: its first bytes are not those of a"
            " saved policy"
        )
    frame = _frame_at(file)
    if frame is None or frame.end != os.fstat(file.fileno()).st_size:
        raise StateFileError(
            f"{path} is damaged, cut short, or no saved policy: its checksum does not fit"
        )
    return frame


def _frame_at(file: IO[bytes]) -> _Frame | None:
    """The frame that begins here; None if it is not whole."""
    lead = file.read(_FRAME.size)
    if len(lead) < _FRAME.size:
        return None
    length, digest = _FRAME.unpack(lead)
    start = file.tell()
    if length < _HEAD.size or length > os.fstat(file.fileno()).st_size - start:
        return None
    found, left = hashlib.sha256(), length
    while left:
        piece = file.read(min(left, 2**20))
        if not piece:
            return None
        found.update(piece)
        left -= len(piece)
    if found.digest()[:16] != digest:
        return None
    file.seek(start)
    kind, life, number, head = _HEAD.unpack(file.read(_HEAD.size))
    content, end = file.read(min(head, length)), start + length
    if head > length - _HEAD.size:
        return None
    return _Frame(kind, Mark(_life(life), number), content, file, file.tell(), end)


def _life(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode("ascii", "replace")


def _rows(file: IO[bytes], begin: int, end: int) -> Iterator[Row]:
    at = begin
    while at < end:
        file.seek(at)
        kind_length, key_length, length = _ROW.unpack(file.read(_ROW.size))
        kind, key = file.read(kind_length).decode(), file.read(key_length)
        content = None if length == _NONE else file.read(length)
        at = file.tell()
        yield Row(kind, key, content)


def _merged(
    first: _Frame, handle: int, changes: dict[tuple[str, bytes], bytes | None]
) -> Iterator[Row]:
    """Rows of a snapshot, with the changes since, in their order."""
    with os.fdopen(handle, "rb") as file:
        kept = (
            row
            for row in _rows(file, first.begin, first.end)
            if row.kind != _FORMER and (row.kind, row.key) not in changes
        )
        later = (
            Row(kind, key, content)
            for (kind, key), content in sorted(changes.items())
            if content is not None
        )
        yield from heapq.merge(kept, later, key=lambda row: (row.kind, row.key))


def _row_bytes(row: Row) -> bytes:
    kind, content = row.kind.encode(), row.content
    length = _NONE if content is None else len(content)
    return _ROW.pack(len(kind), len(row.key), length) + kind + row.key + (content or b"")


def _framed(kind: bytes, mark: Mark, head: bytes, rows: Iterable[Row]) -> bytes:
    body = _HEAD.pack(kind, mark.life.encode(), mark.number, len(head)) + head
    body += b"".join(map(_row_bytes, rows))
    return _FRAME.pack(len(body), hashlib.sha256(body).digest()[:16]) + body


def _write_whole(file: IO[bytes], batch: Batch, mark: Mark) -> None:
    """Write a snapshot without holding it in memory twice."""
    file.write(MAGIC + _FRAME.pack(0, b""))
    start, digest = file.tell(), hashlib.sha256()
    for piece in _pieces(batch, mark):
        digest.update(piece)
        file.write(piece)
    end = file.tell()
    file.seek(len(MAGIC))
    file.write(_FRAME.pack(end - start, digest.digest()[:16]))


def _pieces(batch: Batch, mark: Mark) -> Iterator[bytes]:
    yield _HEAD.pack(_WHOLE, mark.life.encode(), mark.number, len(batch.head)) + batch.head
    for row in sorted(batch.rows, key=lambda one: (one.kind, one.key)):
        yield _row_bytes(row)


# The disk ------------------------------------------------------------------------------------


def write_anew(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file that appears complete or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(handle)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    sync_folder(path.parent)


def _write_all(file: IO[bytes], content: bytes) -> None:
    """Write everything: an unbuffered file may take less at once."""
    view = memoryview(content)
    while view:
        view = view[file.write(view) :]


def _shorten(file: IO[bytes], end: int) -> None:
    """Take back what was half written, if the disk lets us; otherwise the next batch does."""
    with suppress(OSError):
        file.truncate(end)


def sync_folder(folder: Path) -> None:
    """Make new names in a folder outlast a loss of power."""
    if os.name == "posix":  # elsewhere folders cannot be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
