"""The gate: one release, within the budget, written ahead, simulated or secure."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import ArgumentError, BudgetExhausted, ClaimError, DPBanditsError
from ..kernel import Kernel
from ..privacy.channels import HEMISPHERE, Channel
from ..privacy.continual import SINGLE, mechanism_of, release_exactly, release_replaced
from ..privacy.grids import refuse_wide_noise
from ..privacy.ledger import WHOLE, Ledger, Line, Meter
from ..privacy.noise import EXACT, NoiseSource
from ..privacy.secure import GridNoise, SecureNoise
from ..privacy.secure_sum import SecureSum, row_scale
from ..protocol import Kernels, Statistic
from .state import Ended, Span, State, wall_of
from .steps import Steps, called_from_python, cross_by, steps_of

# Passed where nothing is drawn, so that all budgets of an algorithm share its compiled code.
_UNUSED = np.random.default_rng(0)
_NO_BOUND = (
    "a record moved the policy's sum by more than the declared sensitivity. This is a bug in the"
    " policy's class"
)


@dataclass
class Gate:
    """The gate at which the statistics of one policy cross the wall."""

    kernels: Kernels  # of the algorithm, as drivers run it
    params: Any
    statistic: Statistic
    channel: Channel  # calibrated for one release to spend the budget
    noise: NoiseSource
    meter: Meter | None  # None without a limit
    ledger_family: int  # that ledger lines name
    private: bool  # whether there is a budget
    reports: bool  # whether rewards arrive with their noise, and this wall adds none
    simulated: bool = False  # in the law of the noise source, even if that is secure
    drawn: Line | None = None  # the release for which secure noise was drawn in this step
    _process: int = field(default_factory=os.getpid)

    def __post_init__(self) -> None:
        # Without parts, each release covers the rounds since the last one: no two lines meet, and
        # one alone decides.
        self.always_within_budget = self.meter is None or (
            self.statistic.parts == 0
            and self.meter.allows(self.meter.cost(self.ledger_family, self.channel.multiplier))
        )
        # Refused at once, and not at the first release.
        if self.sum is not None:
            scale = self.channel.scale(self.statistic.max_sensitivity)
            self.sum.refuse_wide_noise(self.channel, scale)
        elif self.secure:
            refuse_wide_noise(self.statistic.noise_scale(self.channel), self._grid)
        if self.secure and self.statistic.max_records > self.most_records:
            raise ArgumentError(
                f"grid must be coarser than {self._grid!r}, or counter must be 'tree': a release"
                f" may cover {self.statistic.max_records} rounds, but sums are exact for at most"
                f" {math.floor(self.most_records)} rewards of this range",
                "grid",
            )

    @cached_property
    def secure(self) -> bool:
        """Whether releases need the secure source."""
        return self.private and self.noise.secure and not (self.reports or self.simulated)

    @cached_property
    def sum(self) -> SecureSum | None:
        """The running sum in integers; None where there is none."""
        counter = self.statistic.counter
        if counter is None or not isinstance(self.noise, SecureNoise) or not self.secure:
            return None
        return SecureSum(counter, self.statistic.size, self.noise.grid, self.noise)

    @property
    def mechanism(self) -> Kernel:
        """The mechanism for releases in simulations, where reports get their noise at the wall,
        too.
        """
        counter = self.statistic.counter
        if counter is None and self.channel.family == HEMISPHERE:
            return release_replaced
        return mechanism_of(SINGLE if counter is None else counter.kind)

    @cached_property
    def steps(self) -> Steps:
        """The compiled steps behind ``pull`` and ``update``."""
        mechanism = release_exactly if self.reports else self.mechanism
        return called_from_python(steps_of(self.kernels, mechanism))

    def new_state(self, *, simulated: bool = True) -> State:
        """An empty state, and ledger; ``simulated`` noise has the law of secure noise, if any."""
        raw, public = self.kernels.init(self.params)
        exact = None if simulated or self.sum is None else self.sum.start()
        wall = wall_of(
            self.statistic,
            self.channel,
            self.ledger_family,
            in_integers=exact is not None,
            grid=self._grid / row_scale(self.statistic.counter),
        )
        return State(raw, public, np.zeros(self.statistic.memo), wall, exact)

    def forget(self) -> None:
        """Drop the data that calls have kept of an abandoned state."""
        self.__dict__.pop("steps", None)
        self.__dict__.pop("_spare", None)  # which may hold an answer

    def part(self, state: State) -> int:
        """The part whose records the coming release covers."""
        if self.statistic.parts == 0:
            return WHOLE
        return int(self.steps.partition(self.params, state.public))

    def needs_care(self, state: State) -> bool:
        """Whether a release of one round may be refused, or fail."""
        return self.secure or not self.always_within_budget or self._is_spent(state)

    def release(self, state: State, rounds: int) -> None:
        """End the episode that is over after so many recorded rounds, and release it.

        A failure leaves a state that has to be restored.  Whether the release is allowed has been
        asked before: ``refuse_overspending``.
        """
        if self.secure:
            self.cross(state, self._end(state, rounds, state.memo, state.wall.statistic))
            return
        # Compiled code writes the line and cannot allocate.
        state.make_room()
        sides = (self.params, state.raw, state.public, state.memo, state.wall)
        if not self.steps.release(*sides, rounds, state.noise_rng or _UNUSED):
            raise DPBanditsError(_NO_BOUND)

    def end(self, state: State, rounds: int) -> Ended:
        """End that episode, and release nothing yet."""
        size, memo = self.statistic.size, self.statistic.memo
        return self._end(state, rounds, np.zeros(memo), np.zeros(size))

    def _end(self, state: State, rounds: int, memo: np.ndarray, statistic: np.ndarray) -> Ended:
        sides = (self.params, state.raw, state.public, memo, state.wall, statistic)
        first, part, bound = self.steps.end(*sides, rounds)
        if bound < 0.0:
            raise DPBanditsError(_NO_BOUND)
        return Ended(Span(int(first), rounds - 1, int(part)), float(bound), memo, statistic)

    def take_late(
        self,
        state: State,
        ended: Ended,
        arm: int,
        weights: np.ndarray | int,
        value: float,
        n: int = 1,
    ) -> None:
        """Take the answers of n rounds into an episode that has ended."""
        spare, alone = self._spare
        sides = (self.params, spare, state.public, ended.memo, ended.statistic, alone)
        self.steps.answer_late(*sides, arm, weights, value, n)

    @cached_property
    def _spare(self) -> tuple[Any, np.ndarray]:
        """An empty raw side and a statistic, for the time of a call."""
        return self.kernels.init(self.params)[0], np.zeros(self.statistic.size)

    def cross(self, state: State, ended: Ended) -> None:
        """Release an episode that has ended; see ``release``."""
        state.make_room()
        crossing = self._securely(state) if self.secure else self.steps.cross
        sides = (self.params, state.public, ended.memo, state.wall, ended.statistic)
        crossing(*sides, *ended.span, ended.sensitivity, state.noise_rng or _UNUSED)

    def absorb_and_release(self, state: State, answer: tuple[int, Any, float], rounds: int) -> None:
        """Take in arm, weights and reward of a round, and release; if the state needs no care."""
        state.make_room()
        sides = (self.params, state.raw, state.public, state.memo, state.wall)
        rng = state.noise_rng or _UNUSED
        if not self.steps.absorb_and_release(*sides, *answer, rounds, rng):
            raise DPBanditsError(_NO_BOUND)

    def _securely(self, state: State) -> Callable[..., None]:
        """The crossing in plain Python, around a source that no kernel can call."""

        def note(*line: Any) -> None:
            self.drawn = Line(*(np.array(number).item() for number in line))

        def securely(running: Any, _: int, scale: float, exact: Any, noisy: Any, rng: Any) -> None:
            if self.sum is None or state.exact is None:
                self.noise.add_noise(self.channel, scale, exact, noisy, rng)
            else:
                noisy[:] = self.sum.add(state.exact, exact, self.channel, scale)
                # The sum itself is kept in integers; the wall's own only counts releases.
                running.clock[0] += 1

        return cross_by(self.kernels, securely, note)

    # What is refused --------------------------------------------------------------------------

    def refuse_fork(self) -> None:
        """Refuse a release in a forked process, which holds the raw data of its parent."""
        if self.is_fork and self.private:
            raise ClaimError(
                "no release is made in a forked process: the fork and its parent would release the"
                " same raw data twice with fresh noise. Save the policy in the process that made"
                " it, and load the saved state here instead"
            )

    @property
    def is_fork(self) -> bool:
        """Whether this process is not the one that made the policy."""
        return os.getpid() != self._process

    def refuse_overspending(self, state: State, rounds: int, waiting: int = 0) -> None:
        """Refuse a release after so many rounds, while others are ``waiting`` for their deadline.
        Raises ``BudgetExhausted`` if it exceeds the budget or the planned number of releases.
        Raises ``ArgumentError`` if its sum could be too large for exact secure noise.
        """
        if self._is_spent(state, waiting):
            raise BudgetExhausted(
                f"horizon is used up: all {state.wall.running.limit} planned releases of the"
                " running sum were made. The policy goes on, but learns no more"
            )
        if self.always_within_budget and self.most_records == math.inf:
            return
        which = self.part(state)
        first = int(state.wall.first_unreleased[which])
        if self.meter is not None and not self.always_within_budget:
            ledger = Ledger(state.wall.ledger, self.meter)
            line = (first, rounds - 1, which, self.ledger_family, self.channel.multiplier)
            if not ledger.allows(*line):
                raise BudgetExhausted(
                    f"a release over rounds {first} to {rounds - 1} would exceed"
                    f" {self.meter.budget}; spent so far: {ledger.spent() or 'nothing'}"
                )
        if rounds - first > self.most_records:
            raise ArgumentError(
                f"grid must be coarser than {self._grid!r} for a release over {rounds - first}"
                f" rounds, because sums are exact for at most {math.floor(self.most_records)}"
                " rewards of this range"
            )

    @cached_property
    def most_records(self) -> float:
        """Over how many records a sum is exact under secure noise."""
        most = self.noise.most_records / self.statistic.max_weight
        if not self.secure or not isinstance(self.noise, GridNoise):
            return most
        largest = EXACT - 1 if self.sum is None else min(self.sum.largest, EXACT - 1)
        # Rounding to the grid may add a step to each.
        each = self.statistic.max_abs_contribution / self._grid + 1.0
        return min(most, largest / each)

    def _is_spent(self, state: State, waiting: int = 0) -> bool:
        running = state.wall.running
        return running.limit > 0 and int(running.clock[0]) + waiting >= running.limit

    @property
    def _grid(self) -> float:
        return self.noise.grid if isinstance(self.noise, GridNoise) else 0.0
