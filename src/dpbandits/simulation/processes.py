"""Work that is shared among processes of this machine: this one, and helpers that it starts.

Short work is played here alone.  When it has taken a while, and enough is left, helpers start,
which import this package and so join some seconds later.  This process plays all the time, and
plays again what a helper is late with.  So a helper that is slow or dies costs time only.  Units
have random numbers of their own: who plays one does not matter.

Processes, not threads, because a run of a millisecond spends most of it in Python, which one thread
at a time can run.
"""

from __future__ import annotations

import pickle
import queue
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

from ..compiling import COMPILING
from ..errors import JobsWarning
from . import helpers
from .helpers import Helper, rest, rested
from .tasks import Piece, Task, dumped_for_others, packed, played

_SOON = 0.3  # seconds of work before helpers are started
_STARTUP = 2.0  # that a helper takes to start
_JOINING = 0.5  # that it takes at most to begin with another task
_PIECE = 0.25  # that a piece takes
_TICK = 0.02  # between looks at whether helpers pay
_LATE = 2.0  # times its own time: a piece that takes longer is late
_PATIENCE = 60.0  # seconds more for a piece of a group whose time is not known
_MOST_PARTS = 16  # pieces of a group for a cluster


# Plays pieces of a pickled task in the place of helpers, such as a cluster.
Elsewhere = Callable[[bytes, Sequence[Piece]], Iterable[tuple[Piece, list[Any]]]]
ELSEWHERE: ContextVar[Elsewhere | None] = ContextVar("ELSEWHERE", default=None)

_TOLD: dict[Any, Any] = {}  # warnings of helpers


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
    for piece, results in shared(task, counts, n_jobs):
        found[piece.group][piece.units.start : piece.units.stop] = results
        report(piece)
    return found


def shared(
    task: Task, counts: Sequence[int], n_jobs: int, usual: float | None = None
) -> Iterator[tuple[Piece, list[Any]]]:
    """``shared_out``, with pieces and their results as they come.  ``usual`` is the seconds that a
    unit takes of a group that nobody has played; None for the mean of other groups.
    """
    if (elsewhere := ELSEWHERE.get()) is not None:
        pieces = [Piece(i, part) for i, count in enumerate(counts) for part in _parts(count)]
        yield from elsewhere(dumped_for_others(task), pieces)
        return
    players = min(sum(counts), _cores() if n_jobs == -1 else n_jobs)
    schedule = _Schedule(counts, players, usual)
    crew = _Crew(task, schedule, players - 1) if players > 1 else None
    try:
        while not schedule.over:
            own = schedule.take() or schedule.late()
            if own is not None:
                started = time.perf_counter()
                results = played(task, own)
                if schedule.finish(own, time.perf_counter() - started):
                    yield own, results
            for piece, results in () if crew is None else crew.arrived(wait=own is None):
                if schedule.finish(piece):
                    yield piece, results
    except BaseException:
        if crew is not None:
            crew.kill()
        raise
    if crew is not None:
        crew.over.set()


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

    def __init__(self, counts: Sequence[int], players: int, assumed: float | None = None) -> None:
        self._lock, self._players, self._assumed = threading.Lock(), players, assumed
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
        """The seconds assumed, else the mean of the known ones, else infinity."""
        if self._assumed is not None:
            return self._assumed
        known = list(self._seconds.values())
        return sum(known) / len(known) if known else float("inf")


class _Crew:
    """The helpers of one call, each with a thread here that sends and receives for it."""

    def __init__(self, task: Task, schedule: _Schedule, most: int) -> None:
        self._task, self._schedule, self._most = task, schedule, most
        self._joined: list[Helper] = []
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
                self._fail("another process fails at the work, or cannot send the results")
            else:
                results, told = pickle.loads(answer)
                for message, category, file, line in told:
                    warnings.warn_explicit(message, category, file, line, registry=_TOLD)
            yield piece, results

    def kill(self) -> None:
        """End the helpers in the middle of their work."""
        self.over.set()
        for helper in self._joined:
            helper.kill()

    def _gather(self) -> None:
        """Find helpers as soon as they pay."""
        start, compiled, sent = time.perf_counter(), COMPILING.seconds, b""
        while not self.over.wait(_TICK):
            worked = time.perf_counter() - start - (COMPILING.seconds - compiled)
            while not COMPILING.now and self._pays(
                worked, _JOINING if helpers.RESTING else _STARTUP
            ):
                try:
                    helper = rested() or Helper()  # which starts meanwhile
                except OSError as error:
                    self._fail(f"no process can be started: {error}")
                    return
                try:
                    sent = sent or packed(self._task)
                except Exception as error:  # of any object within
                    self._fail(f"the work cannot be sent to another process: {error}")
                    rest(helper)
                    return
                self._joined.append(helper)
                threading.Thread(target=self._attend, args=(helper, sent), daemon=True).start()

    def _pays(self, worked: float, delay: float) -> bool:
        """Whether another helper pays, which comes with this delay."""
        units, seconds = self._schedule.left()
        joined = len(self._joined)
        if joined >= min(self._most, units) or delay > seconds / (joined + 1):
            return False
        if worked < _SOON and seconds == float("inf"):
            return False
        # Of those that live, others may still be starting for an earlier call.
        return bool(helpers.RESTING) or (worked >= _SOON and len(helpers.LIVING) < self._most)

    def _attend(self, helper: Helper, task: bytes) -> None:
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
            rest(helper)

    def _fail(self, reason: str) -> None:
        if not self.over.is_set():
            self.over.set()
            self._answers.put(reason)
