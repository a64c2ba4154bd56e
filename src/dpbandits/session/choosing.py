"""How the public side chooses: for somebody who is recorded, or for nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .arms import stand_in
from .gate import Gate
from .rounds import Choice
from .state import State

Mask = np.ndarray | None  # which arms may be served, shape (K,); None: all


@dataclass(frozen=True, repr=False)
class Choosing:
    """Choices among open arms, by what was released, as a gate's kernels make them."""

    gate: Gate
    state: State
    randomised: bool  # whether they draw

    def choose(self, shown: Any, open_arms: Mask = None) -> tuple[Choice, int]:
        """A fresh choice among open arms, and for how many rounds it stands."""
        gate, state = self.gate, self.state
        sides, rng = (gate.params, state.public), state.choice_rng
        if open_arms is None:
            arm, propensity, rounds = gate.steps.decide(*sides, shown, rng)
        elif isinstance(shown, np.ndarray):
            arm, propensity, rounds = gate.steps.decide(*sides, stand_in(shown, open_arms), rng)
            arm = arm if open_arms[arm] else open_arms.argmax()
        else:
            arm, propensity, rounds = gate.steps.decide_among(*sides, open_arms, rng)
        # Without numba an arm may come as a NumPy integer, which is no index.
        return Choice(int(arm), propensity), rounds

    def aside(self, shown: Any, open_arms: Mask) -> Choice:
        """A choice for which nothing is recorded, and of what it prepares nothing stays."""
        prepared = self.state.restorable_public() if self.randomised else lambda: None
        choice, _ = self.choose(shown, open_arms)
        prepared()
        return choice


def row(shown: Any, arm: int) -> Any:
    """The row of an arm, of its own; 0 where nothing is shown."""
    return shown[arm].copy() if isinstance(shown, np.ndarray) else 0
