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
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..compiling import COMPILING
from ..environments.base import Environment
from ..errors import ArgumentError, DPBanditsError, JobsWarning
from ..policies import Policy

Task = Callable[[int, int], Any]  # of a group, and the number of a unit in it

_SOON = 0.3  # seconds of work before helpers are started
_STARTUP = 2.0  # that a helper takes to start
_JOINING = 0.5  # that it takes at most to begin with another task
_PIECE = 0.25  # that a piece takes
_TICK = 0.02  # between looks at whether helpers pay
_LATE = 2.0  # times its own time: a piece that takes longer is late
_PATIENCE = 60.0  # seconds more for a piece of a group whose time is not known
_MOST_PARTS = 16  # pieces of a group for a cluster
_GONE = 1.0  # between looks of a helper at whether its parent lives
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
        The results of each group, in order.  What fails in a helper is played here, and raises
        what it raises.  Warnings of helpers are given here.

    Warns:
        JobsWarning: another process cannot play the task, which is played here alone.
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
                expected = self._seconds.get(piece.group, self._usual) * len(piece.units)
                more = _TICK if piece.group in self._seconds else _PATIENCE
                if now - since > _LATE * expected + more:
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
            usual = self._usual
            seconds = [len(one.units) * self._seconds.get(one.group, usual) for one in self._rest]
            return sum(len(one.units) for one in self._rest), sum(seconds)

    @property
    def _usual(self) -> float:
        """The mean of the known seconds; infinite where there are none."""
        known = list(self._seconds.values())
        return sum(known) / len(known) if known else float("inf")


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
        while True:
            try:
                got = self._answers.get(wait, _TICK)
            except queue.Empty:
                return
            wait = False
            if isinstance(got, str):
                warnings.warn(f"n_jobs has no effect: {got}", JobsWarning, stacklevel=5)
                continue
            piece, answer = got
            if not answer:
                results = played(self._task, piece)
                self._fail("another process fails at it, or cannot send its results")
            else:
                results, told = pickle.loads(answer)
                for message, category, file, line in told:
                    warnings.warn_explicit(message, category, file, line, registry=_TOLD)
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
                    sent = sent or _sent(self._task)
                except Exception as error:  # of any object within
                    self._fail(f"it cannot be sent to another process: {error}")
                    _rest(helper)
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
                answer = helper.ask(piece)
                self._answers.put((piece, answer))
                if not answer:
                    break
                first = False
        except Exception:  # as it has died, for example
            if piece is not None:
                self._schedule.give_back(piece)
            helper.end()
        else:
            _rest(helper)

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
        self._begun = time.time()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._pipes = self._process.stdin, self._process.stdout
        self._greeted, self._of = False, _surroundings()
        self.taken = threading.Event()  # by a call, while it rested
        _LIVING.add(self)

    @property
    def is_of_today(self) -> bool:
        """Whether it lives, and a new one would have no other modules, files or places."""
        if self._process.poll() is not None or self._of != _surroundings():
            return False
        return all(_written(module) < self._begun for module in list(sys.modules.values()))

    def ask(self, what: bytes | Piece) -> bytes:
        """Send a task or a piece, and wait for the answer."""
        sent, received = self._pipes
        assert sent is not None
        assert received is not None
        pickle.dump(what, sent)
        sent.flush()
        self._greeted = self._greeted or _GREETING in received  # after what others have printed
        return _read(received)

    def kill(self) -> None:
        """End it, whatever it does.  A thread that waits for it may hold its pipes."""
        _LIVING.discard(self)
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """End one that no other thread waits for."""
        self.kill()
        for pipe in filter(None, self._pipes):
            with suppress(OSError):
                pipe.close()


_LIVING: set[_Helper] = set()
_RESTING: list[_Helper] = []  # those that have nothing to do
_TOLD: dict[Any, Any] = {}  # warnings of helpers
_GREETING = b"a helper of dpbandits\n"
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
    """A helper that rests, and is as a new one; None where none does."""
    with suppress(IndexError):
        while not (helper := _RESTING.pop()).is_of_today:
            helper.end()
        helper.taken.set()
        return helper
    return None


def _rest(helper: _Helper) -> None:
    """Keep a helper for another call, and clear it away when none has come."""
    helper.taken.clear()
    _RESTING.append(helper)
    if helper not in _LIVING or not helper.taken.wait(_IDLE + 1.0):  # killed, or over by itself
        with suppress(ValueError):
            _RESTING.remove(helper)
            helper.end()


def _surroundings() -> tuple[str, ...]:
    """Where modules and files are looked for."""
    return os.getcwd(), *map(str, sys.path)


def _written(module: Any) -> float:
    """When a module's file was written; long ago for those that are installed."""
    with suppress(Exception):  # of any object that stands for a module
        if not module.__file__.startswith((sys.prefix, sys.base_prefix)):
            return os.stat(module.__file__).st_mtime
    return 0.0


@atexit.register
def _end() -> None:
    for helper in list(_LIVING):
        helper.kill()


def _sent(task: Task) -> bytes:
    """What a helper reads with ``_loaded``."""
    return pickle.dumps((_FOLDERS, _dumped(task)))


def _dumped(what: Any, refuse: Callable[[Any], None] | None = None) -> bytes:
    """Pickle also functions and classes of ``__main__``, and policies as the calls that make them:
    they are templates here, and have no state.  ``refuse`` is called with objects within, where
    they are for other machines, whose processors and Python may differ a little.
    """
    from cloudpickle import CloudPickler

    class Pickler(CloudPickler):
        def reducer_override(self, one: Any) -> Any:
            if refuse is not None:
                refuse(one)
            if isinstance(one, Policy):
                code = _code_of(one) if refuse is None else None
                return _made, (type(one), dict(one.config), code)
            return super().reducer_override(one)

    written = io.BytesIO()
    Pickler(written).dump(what)
    return written.getvalue()


def _dumped_for_others(task: Task) -> bytes:
    """Pickle a task for other machines, which are sent no data of people."""

    def refuse(one: Any) -> None:
        if isinstance(one, Environment) and one.holds_data:
            raise ArgumentError(
                "environment must hold no data, because data are not sent to a cluster, got"
                f" {one!r}",
                "environment",
            )

    try:
        return _dumped(task, refuse)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise ArgumentError(f"cluster cannot receive this policy or adversary: {error}") from None


def _made(policy_class: type[Policy], config: dict[str, Any], code: str | None) -> Policy:
    made = policy_class(**config)
    if code not in (None, _code_of(made)):
        name = policy_class.__name__
        raise DPBanditsError(f"it has another {name}, as when a file is changed after its import")
    return made


def _code_of(policy: Policy) -> str:
    """A digest of kernels and parameters: runs of other code are not of the same policy."""
    kernels = [getattr(one, "_digest", "") for one in vars(policy.kernels).values()]
    return sha256(repr((kernels, policy.params)).encode()).hexdigest()


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
    nothing = os.open(os.devnull, os.O_RDWR)  # and standard error, where that was closed
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what a task prints is no answer
    answers.write(b"\n" + _GREETING)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
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


def _end_with(parent: int) -> None:
    """End also in the middle of a piece, when the parent has ended and nobody waits for it."""
    while os.getppid() == parent:
        time.sleep(_GONE)
    os._exit(0)


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
    """The results of a piece, and warnings; nothing where it fails, or they cannot be sent."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            results = played(task, piece)
        except Exception:  # which is raised where it is played again
            return b""
    told = [(one.message, one.category, one.filename, one.lineno) for one in caught]
    if not told:
        with suppress(Exception):
            return pickle.dumps((results, told))
    try:
        answer = _dumped((results, told))
        pickle.loads(answer)
    except Exception:  # of any object within
        return b""
    return answer
