"""How a statistic crosses the wall behind ``pull`` and ``update``: within the budget, written
ahead, and undone where a step fails.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..errors import ArgumentError, BudgetExhausted, ClaimError
from ..privacy.budgets import Budget
from ..privacy.channels import Channel
from ..privacy.continual import draws_of
from ..privacy.ledger import LINES, Ledger, Meter, grown, write
from ..privacy.noise import EXACT, NoiseSource
from .decisions import Progress
from .protocol import Kernels, Wall
from .steps import Steps

if TYPE_CHECKING:
    from ..privacy.secure import SecureSum
    from .persistence import Journal


class Crossing:
    """The part of a policy that releases.  All state is that of ``Policy``."""

    kernels: ClassVar[Kernels]
    budget: Budget | None
    channel: Channel
    params: Any
    _takes_reports: bool
    _always_fits: bool
    _process: int
    _config: dict[str, Any]
    _steps: Steps
    _raw: Any
    _public: Any
    _wall: Wall
    _progress: Progress
    _meter: Meter | None
    _noise: NoiseSource
    _privacy_rng: np.random.Generator | None
    _journal: Journal | None  # once it has been saved under a budget
    _exactly: SecureSum | None  # the running sum in integers, where noise is secure

    @property
    def ledger(self) -> Ledger:
        """What has crossed the wall so far, and what it has cost."""
        return Ledger(lambda: self._wall.ledger, self._meter)

    @property
    def _is_spent(self) -> bool:
        """Whether the running sum has made all the releases that it was planned for."""
        running = self._wall.running
        return running.limit > 0 and int(running.clock[0]) >= running.limit

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Undo what a step that fails has done, a keyboard interrupt included: no value that it
        drew is ever used.
        """
        sides = {"_raw": self._raw, "_public": self._public, "_wall": self._wall}
        before: dict[str, Any] = {name: _copy(side) for name, side in sides.items()}
        before["_progress"] = self._progress.copy()
        exact: Any = None if self._exactly is None else _copy(self._exactly.state)
        try:
            yield
        except BaseException:
            before["_progress"].exhausted = self._progress.exhausted
            self.__dict__.update(before)
            if self._exactly is not None:
                self._exactly.state = exact
            raise

    def _release(self) -> None:
        self._refuse_overspending()
        self._refuse_inexact_sums()
        self._make_room()
        if self._is_secure or self._journal is not None:
            self._cross_slowly()
        elif not self._steps.cross(
            self.params,
            self._raw,
            self._public,
            self._wall,
            self._progress.rounds,
            self._privacy_rng,
        ):
            raise ArgumentError("sensitivity must be a number in [0, inf): the algorithm has a bug")
        self._progress.release_due = False

    def _next_line(self) -> tuple[int, int, int, int, float, float, int]:
        """The ledger line of the coming release, as ``write`` takes it."""
        wall = self._wall
        bound = float(self.kernels.sensitivity(self.params, self._public, wall.norm))
        which = int(self.kernels.partition(self.params, self._public))
        draws = wall.statistic.size * int(draws_of(wall.running)) if wall.family > 0 else 0
        return (
            int(wall.opened[which]),
            self._progress.rounds - 1,
            which,
            wall.charged,
            bound,
            wall.multiplier,
            draws,
        )

    @property
    def _is_secure(self) -> bool:
        """Whether releases need the secure source."""
        return self._noise.secure and self.budget is not None and not self._takes_reports

    def _cross_slowly(self) -> None:
        """The same release as ``steps.cross``, around a journal and a noise source that compiled
        code cannot call.
        """
        kernels, wall = self.kernels, self._wall
        _, _, which, _, bound, _, _ = line = self._next_line()
        if self._journal is not None:
            self._journal.begin(line)
        kernels.summarise(self.params, self._raw, self._public, wall.statistic)
        write(wall.ledger, *line)
        wall.opened[which] = self._progress.rounds
        if self._takes_reports:
            wall.release[:] = wall.statistic
        elif self._exactly is not None:
            wall.release[:] = self._exactly.add(
                wall.statistic, self.channel, self.channel.scale(bound)
            )
            wall.running.clock[0] += 1
        elif self._noise.secure:
            self._noise.perturb(
                self.channel, self.channel.scale(bound), wall.statistic, wall.release
            )
        else:
            self._steps.disclose(
                wall.running,
                wall.family,
                self.channel.scale(bound),
                wall.statistic,
                wall.release,
                self._privacy_rng,
            )
        if wall.base.size:
            np.add(wall.release, wall.base, out=wall.release)
        wall.statistic[:] = 0.0
        if self._journal is not None:
            self._journal.done(wall.release)
        kernels.publish(self.params, self._public, wall.release)

    def _refuse_fork(self) -> None:
        if self.budget is not None and os.getpid() != self._process:
            raise ClaimError(
                "no release is made in a forked process: it and its parent would release the same"
                " raw data twice with fresh noise; save the policy in the process that made it, and"
                " load the saved state here instead"
            )

    def _refuse_overspending(self) -> None:
        if self._is_spent:
            self._progress.exhausted = True
            raise BudgetExhausted(
                f"horizon: the running sum was planned for {self._wall.running.limit} releases,"
                " which have been made; the policy keeps serving from what is public"
            )
        if self._always_fits or self._meter is None:
            return
        wall = self._wall
        which = int(self.kernels.partition(self.params, self._public))
        first = int(wall.opened[which])
        if not self.ledger.allows(
            first, self._progress.rounds - 1, which, wall.charged, wall.multiplier
        ):
            self._progress.exhausted = True
            raise BudgetExhausted(
                f"a release over rounds {first} to {self._progress.rounds - 1} would exceed"
                f" {self._meter.budget}; spent so far: {self.ledger.spent() or 'nothing'}"
            )

    def _most_exact(self) -> float:
        """Over how many records a sum is exact under secure noise."""
        most = self._noise.most_records / self._magnification()
        if self._exactly is None:
            return most
        grid, largest = self._exactly.grid, min(self._exactly.largest, EXACT - 1)
        return min(most, largest * grid / (self._extent() + grid))

    def _refuse_inexact_sums(self) -> None:
        most = self._most_exact()
        records = self._progress.rounds - int(
            self._wall.opened[self.kernels.partition(self.params, self._public)]
        )
        if records > most:
            self._progress.exhausted = True
            raise ArgumentError(
                f"grid must be coarser than {self._config['grid']!r} for a release over {records}"
                f" rounds: sums are exact for at most {math.floor(most)} rewards of this range"
            )

    def _magnification(self) -> float:
        """By how much a statistic may weigh a reward more than a plain sum does."""
        return 1.0

    def _extent(self) -> float:
        """How far from zero a record can move a coordinate of the statistic."""
        raise TypeError(f"{type(self).__name__} does not say how large its records are")

    def _make_room(self) -> None:
        ledger = self._wall.ledger
        if ledger.head[LINES] >= len(ledger.span):
            self._wall = self._wall._replace(ledger=grown(ledger))


def _copy(side: Any) -> Any:
    """A named tuple of numbers, arrays and such tuples, with arrays of its own."""
    if isinstance(side, tuple):
        return type(side)(*map(_copy, side))
    return side.copy() if isinstance(side, np.ndarray) else side
