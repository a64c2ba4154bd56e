"""Work that is shared among processes of this machine: this one, and helpers that it starts.

Short work is played here alone.  When it has taken a while, and enough is left, helpers start,
which import this package and so join some seconds later.  They stay for the next call, and end when
they have nothing to do, or their parent ends.  This process plays all the time, and plays again
what a helper is late with.  So a helper that is slow or dies costs time only.  Units have random
numbers of their own: who plays one does not matter.

Processes, not threads, because a run of a millisecond spends most of it in Python, which one thread
at a time can run.
"""

from __future__ import annotations

import atexit
import io
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..errors import ArgumentError, DPBanditsError, JobsWarning
from ..kernel import COMPILING
from ..policies import Policy

Task = Callable[[int, int], Any]  # of a group, and the number of a unit in it

_SOON = 0.3  # seconds of work before helpers are started
_STARTUP = 2.0  # that a helper takes to start
_JOINING = 0.5  # that it takes at most to begin with another task
_PIECE = 0.25  # that a piece takes
_TICK = 0.02  # between looks at whether helpers pay
_LATE = 2.0  # times its own time: a piece that takes longer is late
_MOST_PARTS = 16  # pieces of a group for a cluster
_IDLE = 30.0  # seconds after which a helper ends that has nothing to do


class Piece(NamedTuple):
    """Units of one group that are played together."""

    group: int
    units: range


# Plays pieces of a pickled task in the place of helpers, such as a cluster.
Elsewhere = Callable[[bytes, Sequence[Piece]], Iterable[tuple[Piece, list[Any]]]]
ELSEWHERE: ContextVar[Elsewhere | None] = ContextVar("ELSEWHERE", default=None)


def shared_out(
    task: Task, counts: Sequence[int], n_jobs: int, report: Callable[[Piece], None]
) -> list[list[Any]]:
    """Play ``task(group, number)`` for so many units of every group.

    Args:
        task: gives the same result in any process.
        counts: units of each group, which take about as long as each other.
        n_jobs: processes; -1 for one per core.
        report: called with each piece that is finished.

    Returns:
        The results of each group, in order.  Exceptions and warnings of helpers are raised here.

    Warns:
        JobsWarning: the task cannot be sent to another process, and is played here alone.
    """
    found: list[list[Any]] = [[None] * count for count in counts]
    if (elsewhere := ELSEWHERE.get()) is not None:
        pieces = [Piece(i, part) for i, count in enumerate(counts) for part in _parts(count)]
        for piece, results in elsewhere(_dumped_for_others(task), pieces):
            found[piece.group][piece.units.start : piece.units.stop] = results
            report(piece)
        return found
    players = min(sum(counts), _cores() if n_jobs == -1 else n_jobs)
    schedule = _Schedule(counts, players)
    crew = _Crew(task, schedule, players - 1) if players > 1 else None

    def keep(piece: Piece, results: list[Any], seconds: float | None = None) -> None:
        if schedule.finish(piece, seconds):
            found[piece.group][piece.units.start : piece.units.stop] = results
            report(piece)

    try:
        while not schedule.over:
            own = schedule.take() or schedule.late()
            if own is not None:
                started = time.perf_counter()
                results = played(task, own)
                keep(own, results, time.perf_counter() - started)
            for arrived in () if crew is None else crew.arrived(wait=own is None):
                keep(*arrived)
    except BaseException:
        if crew is not None:
            crew.kill()
        raise
    if crew is not None:
        crew.over.set()
    return found


def played(task: Task, piece: Piece) -> list[Any]:
    """The results of a piece."""
    return [task(piece.group, number) for number in piece.units]


def _parts(count: int) -> list[range]:
    """So many units in pieces for a cluster."""
    parts = min(count, _MOST_PARTS)
    ends = [count * i // parts for i in range(parts + 1)]
    return [range(*ends) for ends in pairwise(ends)]


def _cores() -> int:
    from joblib import cpu_count  # heeds the limits of containers

    return int(cpu_count())


class _Schedule:
    """Hands out pieces of about ``_PIECE`` seconds, shorter ones at the end."""

    def __init__(self, counts: Sequence[int], players: int) -> None:
        self._lock, self._players = threading.Lock(), players
        self._rest = deque(Piece(i, range(count)) for i, count in enumerate(counts) if count)
        self._playing: set[Piece] = set()
        self._sent: dict[Piece, float] = {}  # those of them that helpers play, and since when
        self._seconds: dict[int, float] = {}  # that a unit of a group takes here

    @property
    def over(self) -> bool:
        with self._lock:
            return not self._rest and not self._playing

    def take(self, *, first: bool = False, sent: bool = False) -> Piece | None:
        """The next piece, one unit as the ``first`` of a helper; None where all are handed out."""
        with self._lock:
            if not self._rest:
                return None
            group, units = self._rest.popleft()
            size, seconds = 1, self._seconds.get(group)
            if seconds is not None and not first:
                share = len(units) // (2 * self._players)
                size = max(1, min(share, int(_PIECE / max(seconds, 1e-6))))
            if units[size:]:
                self._rest.appendleft(Piece(group, units[size:]))
            piece = Piece(group, units[:size])
            self._playing.add(piece)
            if sent:
                self._sent[piece] = time.perf_counter()
            return piece

    def late(self) -> Piece | None:
        """A piece that takes a helper much longer than it would take this process."""
        with self._lock:
            now = time.perf_counter()
            for piece, since in self._sent.items():
                expected = self._seconds.get(piece.group, float("inf")) * len(piece.units)
                if now - since > _LATE * expected + _TICK:
                    return piece
            return None

    def finish(self, piece: Piece, seconds: float | None = None) -> bool:
        """Note that a piece is finished, and its time here; False where it was before."""
        with self._lock:
            if seconds is not None:
                self._seconds[piece.group] = seconds / len(piece.units)
            self._sent.pop(piece, None)
            if piece not in self._playing:
                return False
            self._playing.remove(piece)
            return True

    def give_back(self, piece: Piece) -> None:
        """Take back a piece from a helper that has died."""
        with self._lock:
            if self._sent.pop(piece, None) is not None:
                self._playing.remove(piece)
                self._rest.appendleft(piece)

    def left(self) -> tuple[int, float]:
        """Units that nobody plays yet, and their seconds here: infinite where nothing is known."""
        with self._lock:
            known = list(self._seconds.values())
            usual = sum(known) / len(known) if known else float("inf")
            seconds = [len(one.units) * self._seconds.get(one.group, usual) for one in self._rest]
            return sum(len(one.units) for one in self._rest), sum(seconds)


class _Crew:
    """The helpers of one call, each with a thread here that sends and receives for it."""

    def __init__(self, task: Task, schedule: _Schedule, most: int) -> None:
        self._task, self._schedule, self._most = task, schedule, most
        self._helpers: list[_Helper] = []
        self._answers: queue.SimpleQueue[tuple[Piece, bytes] | str] = queue.SimpleQueue()
        self.over = threading.Event()
        threading.Thread(target=self._gather, daemon=True).start()

    def arrived(self, *, wait: bool) -> Iterator[tuple[Piece, list[Any]]]:
        """The results that helpers have sent; with ``wait`` for a moment until there are some."""
        with suppress(queue.Empty):
            while True:
                got = self._answers.get(wait, _TICK)
                wait = False
                if isinstance(got, str):
                    warnings.warn(f"n_jobs has no effect: {got}", JobsWarning, stacklevel=5)
                    continue
                piece, (results, error, told) = got[0], pickle.loads(got[1])
                for message, category, file, line in told:
                    warnings.warn_explicit(message, category, file, line, registry=_TOLD)
                if error is not None:
                    raise error
                yield piece, results

    def kill(self) -> None:
        """End the helpers in the middle of their work."""
        self.over.set()
        for helper in self._helpers:
            helper.kill()

    def _gather(self) -> None:
        """Find helpers as soon as they pay."""
        start, compiled, sent = time.perf_counter(), COMPILING.seconds, b""
        while not self.over.wait(_TICK):
            worked = time.perf_counter() - start - (COMPILING.seconds - compiled)
            while not COMPILING.now and self._pays(worked, _JOINING if _RESTING else _STARTUP):
                try:
                    helper = _rested() or _Helper()  # which starts meanwhile
                except OSError as error:
                    self._fail(f"no process can be started: {error}")
                    return
                try:
                    sent = sent or pickle.dumps((_FOLDERS, _dumped(self._task)))
                except Exception as error:  # of any object within
                    self._fail(f"it cannot be sent to another process: {error}")
                    _RESTING.append(helper)
                    return
                self._helpers.append(helper)
                threading.Thread(target=self._attend, args=(helper, sent), daemon=True).start()

    def _pays(self, worked: float, delay: float) -> bool:
        """Whether another helper pays, which comes with this delay."""
        units, seconds = self._schedule.left()
        helpers = len(self._helpers)
        if helpers >= min(self._most, units) or delay > seconds / (helpers + 1):
            return False
        if worked < _SOON and seconds == float("inf"):
            return False
        # Of those that live, others may still be starting for an earlier call.
        return bool(_RESTING) or (worked >= _SOON and len(_LIVING) < self._most)

    def _attend(self, helper: _Helper, task: bytes) -> None:
        """Have a helper play pieces until none is left."""
        piece, first = None, True
        try:
            if reason := helper.ask(task).decode():
                self._fail(reason)
            while not self.over.is_set():
                piece = self._schedule.take(first=first, sent=True)
                if piece is None:
                    break
                self._answers.put((piece, helper.ask(piece)))
                first = False
        except (OSError, EOFError, ValueError):  # it has died
            if piece is not None:
                self._schedule.give_back(piece)
            helper.kill()
        else:
            if helper in _LIVING:  # not killed
                _RESTING.append(helper)

    def _fail(self, reason: str) -> None:
        if not self.over.is_set():
            self.over.set()
            self._answers.put(reason)


# Helpers ---------------------------------------------------------------------------------------


class _Helper:
    """A process that plays pieces, as seen from this one."""

    def __init__(self) -> None:
        if getattr(sys, "frozen", False) or not sys.executable:
            raise OSError("this program is no Python interpreter")
        path = [str(folder) for folder in sys.path]
        code = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN);"
            f" sys.path[:] = {path!r}; from {__name__} import help_out; help_out()"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._pipes = self._process.stdin, self._process.stdout
        _LIVING.add(self)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, what: bytes | Piece) -> bytes:
        """Send a task or a piece, and wait for the answer."""
        sent, received = self._pipes
        assert sent is not None
        assert received is not None
        pickle.dump(what, sent)
        sent.flush()
        return _read(received)

    def kill(self) -> None:
        """End it, whatever it does."""
        _LIVING.discard(self)
        self._process.kill()
        self._process.wait()
        for pipe in filter(None, self._pipes):
            with suppress(OSError):
                pipe.close()


_LIVING: set[_Helper] = set()
_RESTING: list[_Helper] = []  # those that have nothing to do
_TOLD: dict[Any, Any] = {}  # warnings of helpers
_FOLDERS: list[str] = []  # of modules that were imported from outside of the path

if hasattr(os, "register_at_fork"):  # a fork has no helpers of its own
    os.register_at_fork(after_in_child=_RESTING.clear)
    os.register_at_fork(after_in_child=_LIVING.clear)


@contextmanager
def importing_from(folder: Path) -> Iterator[None]:
    """Within it, modules are imported from a folder, too; helpers import them from there."""
    sys.path.insert(0, here := str(folder.resolve()))
    try:
        yield
    finally:
        sys.path.remove(here)
        if here not in _FOLDERS:
            _FOLDERS.insert(0, here)


def _rested() -> _Helper | None:
    """A helper that rests; None where none does."""
    with suppress(IndexError):
        while not (helper := _RESTING.pop()).is_alive:
            helper.kill()
        return helper
    return None


@atexit.register
def _end() -> None:
    for helper in list(_LIVING):
        helper.kill()


def _dumped(what: Any, refuse: Callable[[Any], None] = lambda one: None) -> bytes:
    """Pickle also functions and classes of ``__main__``, and policies as the calls that make them:
    they are templates here, and have no state.  ``refuse`` is called with objects within.
    """
    from cloudpickle import CloudPickler

    class Pickler(CloudPickler):
        def reducer_override(self, one: Any) -> Any:
            refuse(one)
            if isinstance(one, Policy):
                return _made, (type(one), dict(one.config))
            return super().reducer_override(one)

    written = io.BytesIO()
    Pickler(written).dump(what)
    return written.getvalue()


def _dumped_for_others(task: Task) -> bytes:
    """Pickle a task for other machines, which are sent no data of people."""

    def refuse(one: Any) -> None:
        if getattr(type(one), "holds_data", False):
            raise ArgumentError(
                "environment must hold no data, because data are not sent to a cluster, got"
                f" {one!r}",
                "environment",
            )

    try:
        return _dumped(task, refuse)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise ArgumentError(f"cluster cannot receive this policy or adversary: {error}") from None


def _made(policy_class: type[Policy], config: dict[str, Any]) -> Policy:
    return policy_class(**config)


def _write(answer: bytes, to: IO[bytes]) -> None:
    to.write(len(answer).to_bytes(8, "little"))
    to.write(answer)
    to.flush()


def _read(source: IO[bytes]) -> bytes:
    """What ``_write`` has written; it is unpickled later, while the helper goes on."""
    head = source.read(8)
    answer = source.read(size := int.from_bytes(head, "little"))
    if len(head) < 8 or len(answer) < size:
        raise EOFError
    return answer


def help_out() -> None:
    """Be a helper: play what standard input brings, until it ends or brings nothing for long."""
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a task prints is no answer
    task: Any = None
    with suppress(EOFError, BrokenPipeError):
        while True:
            patience = threading.Timer(_IDLE, os._exit, (0,))
            patience.daemon = True
            patience.start()
            what = pickle.load(asked)
            patience.cancel()
            if isinstance(what, bytes):
                task, reason = _loaded(what)
                _write(reason.encode(), answers)
            else:
                _write(_answered(task, what), answers)


def _loaded(text: bytes) -> tuple[Any, str]:
    """A task, and why it cannot be loaded: nothing where it can."""
    folders, task = pickle.loads(text)
    sys.path[:0] = folders
    try:
        return pickle.loads(task), ""
    except Exception as error:  # of any object within
        return None, f"another process cannot load it: {error}"
    finally:
        del sys.path[: len(folders)]


def _answered(task: Task, piece: Piece) -> bytes:
    """The results of a piece, what was raised in its place, and warnings."""
    results: list[Any] = []
    error: Exception | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            results = played(task, piece)
        except Exception as raised:
            raised.add_note(traceback.format_exc())
            error = raised
    told = [(one.message, one.category, one.filename, one.lineno) for one in caught]
    if error is None and not told:
        with suppress(Exception):
            return pickle.dumps((results, None, []))
    try:
        answer = _dumped((results, error, told))
        pickle.loads(answer)
    except Exception as fault:
        answer = pickle.dumps(([], DPBanditsError(f"{error or fault!r}"), []))
    return answer
