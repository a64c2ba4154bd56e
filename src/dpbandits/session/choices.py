"""Choices from released values, with a record or without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..protocol import never
from .gate import Gate
from .open_arms import Mask, stand_in
from .rounds import Choice
from .state import State

Draw = Callable[[], bool]


def by_generator() -> bool:
    """``draw`` where ``prepare`` draws."""
    return False


@dataclass(frozen=True, repr=False)
class Choices:
    """The way out: how the gate's kernels choose from the public side."""

    gate: Gate
    state: State
    randomised: bool  # whether they draw

    def fresh(self, shown: Any, open_arms: Mask, *, drawn: bool = False) -> tuple[Choice, int]:
        """A choice among open arms from released values, and for how many rounds it stands.
        ``drawn``: whether the public side holds what ``prepare`` would draw.
        """
        steps, rng = self.gate.steps, None if drawn else self.state.choice_rng
        sides = (self.gate.params, self.state.public)
        if open_arms is None:
            arm, propensity, rounds = steps.decide(*sides, shown, rng)
        elif isinstance(shown, np.ndarray):
            arm, propensity, rounds = steps.decide(*sides, stand_in(shown, open_arms), rng)
            arm = arm if open_arms[arm] else open_arms.argmax()
        else:
            arm, propensity, rounds = steps.decide_among(*sides, open_arms, rng)
        # Without numba all may come as numbers of NumPy, which are no index and no JSON.
        return Choice(int(arm), float(propensity)), int(rounds)

    def aside(self, shown: Any, open_arms: Mask, draw: Draw = by_generator) -> Choice:
        """A choice without a record; the public side keeps nothing that it prepares.  ``draw``
        fills in what ``prepare`` would draw, and tells whether it did.
        """
        restore = self.state.restorable_public() if self.randomised else lambda: None
        try:
            return self.fresh(shown, open_arms, drawn=draw())[0]
        finally:
            restore()

    def standing(self, current: Choice, shown: Any, open_arms: Mask) -> Choice:
        """The choice while nothing is recorded; new contexts get one of their own."""
        if isinstance(shown, np.ndarray):
            return self.fresh(shown, open_arms)[0]
        return current if serves(current, open_arms) else self.aside(shown, open_arms)

    def found(self) -> Choice | None:
        """The arm that a search for the best arm has found; None without a search, or while it
        runs.
        """
        kernels, public = self.gate.kernels, self.state.public
        if kernels.stop is never or not kernels.stop(self.gate.params, public):
            return None
        return Choice(int(kernels.recommend(self.gate.params, public)), 1.0)


def serves(choice: Choice, open_arms: Mask) -> bool:
    """Whether the arm of a choice may be served."""
    return open_arms is None or bool(open_arms[choice.arm])
