"""The processing of answers on their way to the private side, and the default for missing ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .gate import Gate
from .options import Settings
from .rounds import Flight, Pending, Rounds
from .state import State


@dataclass(frozen=True, repr=False)
class Intake:
    """The way in: how the gate's kernels take answers into the private side."""

    gate: Gate
    state: State
    settings: Settings
    default_reward: float  # what an answer that never came counts as

    def entering(self, value: float | None, rounds: Rounds) -> float:
        """An answer as it enters the private side; diagnostics count how it was changed."""
        if value is None or value != value:  # NaN
            rounds.missing += value is not None
            return self.substitute()
        if self.gate.reports or not self.settings.clip:
            # A report has its noise already, and to clip it would bias sums.
            return value
        lo, hi = self.settings.reward_range
        rounds.clipped += not lo <= value <= hi
        # Sensitivity rests on this line, whatever callers hand over.
        return self.gate.noise.to_grid(lo if value < lo else hi if value > hi else value)

    def substitute(self) -> float:
        """The value that replaces a missing answer.  Among reports it is a report, too: from an
        exact number, an observer of decisions would learn that this person did not answer.
        """
        gate = self.gate
        if not (gate.reports and gate.private):
            return self.default_reward
        lo, hi = self.settings.reward_range
        report, default = np.empty(1), np.array([self.default_reward])
        scale, rng = gate.channel.scale(hi - lo), self.state.noise_rng
        gate.noise.add_noise(gate.channel, scale, default, report, rng)
        return float(report[0])

    def take(self, pending: Pending, value: float, n: int = 1) -> None:
        """Into the episode that runs, as the sum of n answers."""
        gate = self.gate
        gate.steps.answer(gate.params, self.state.raw, pending.arm, pending.weights, value, n)

    def take_late(self, flight: Flight, pending: Pending, value: float, n: int = 1) -> None:
        """Into an episode that is over."""
        self.gate.take_late(self.state, flight.ended, pending.arm, pending.weights, value, n)

    def fill(self, arm: int, n: int) -> None:
        """Answer n rounds that contain no person's data."""
        self.take(Pending(arm), self._substitutes(n), n)

    def _substitutes(self, n: int) -> float:
        """The sum of the defaults for n answers."""
        return sum(self.substitute() for _ in range(n))
