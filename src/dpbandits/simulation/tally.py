"""The state of a run in the compiled loops, and the reasons why they end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# What a loop returns: at its end; at a pause; when the ledger is full; and when an algorithm has
# declared a sensitivity that is no bound.
DONE, PAUSED, LEDGER_FULL, BAD_SENSITIVITY = range(4)


class Cursor(NamedTuple):
    """Slots of ``Tally.cursor``."""

    round: int = 0  # rounds played
    mark: int = 1  # the next one
    arm: int = 2  # that stands
    left: int = 3  # rounds for which it does
    stopped: int = 4  # the round after which a search for the best arm was over; 0: it is not


CURSOR = Cursor()


class Tally(NamedTuple):
    """The position of a run, from which a loop continues, and its measurements so far."""

    cursor: np.ndarray  # (5,) int64
    marks: np.ndarray  # (M,) int64: rounds after which regret is recorded, increasing
    curve: np.ndarray  # (M,) cumulative expected regret at the marks
    sums: np.ndarray  # (2,) regret and reward so far
    counts: np.ndarray  # (K,) int64: rounds of each arm
    # (M,) from the estimated to the true parameter at the marks; (0,) where there is none
    distance: np.ndarray
    trace: np.ndarray  # (T,) int64: the arm of every round; (0,) where nobody asked

    def __reduce__(self) -> Any:
        # As bytes: a tenth of the time that arrays take, which is not little beside a short run.
        cursor, marks, *others = self
        kinds = [one.dtype.str for one in others]
        return _unpacked, (marks, kinds, cursor.tobytes(), *(one.tobytes() for one in others))


def _unpacked(marks: np.ndarray, kinds: list[str], cursor: bytes, *others: bytes) -> Tally:
    arrays = (np.frombuffer(one, kind) for one, kind in zip(others, kinds, strict=True))
    return Tally(np.frombuffer(cursor, np.int64), marks, *arrays)


def new_tally(marks: np.ndarray, n_arms: int, *, distances: bool = False, trace: int = 0) -> Tally:
    """The start of a run; ``trace`` is for how many rounds to record the arm."""
    return Tally(
        cursor=np.zeros(len(CURSOR), np.int64),
        marks=marks,
        curve=np.zeros(marks.size),
        sums=np.zeros(2),
        counts=np.zeros(n_arms, np.int64),
        distance=np.full(marks.size if distances else 0, np.nan),
        trace=np.zeros(trace, np.int64),
    )
