"""The operator's log of answers that go wrong.

It depends on answers and on private contexts, and no guarantee covers it.  Loops of simulations
never write to it.  Of public contexts Python warns, where they are shown.
"""

from __future__ import annotations

import logging
import warnings

from ..errors import ClippingWarning
from ..session.rounds import Rounds

LOGGER = logging.getLogger("dpbandits")
_MANY = 50  # answers
_SHARE = 0.1  # of all pulls
_CLIPPED = "%d answers lay outside of reward_range %r and were clipped to it: this biases learning"
_MISSING = "%d answers to %d pulls, %.0f %%, were missing and count as default_reward"
_LATE = "%d answers to %d pulls came too late and were dropped: a larger answers_within may help"
_SCALED = (
    "feature vectors longer than context_bound=%g are shortened to this length: %d so far. Give a"
    " larger context_bound, or scale the features"
)


class Watch:
    """Warns once each of clipped, missing and late answers, and of features beyond their bound."""

    def __init__(self, policy: str, reward_range: tuple[float, float]) -> None:
        self._policy, self._range = policy, reward_range
        self._said: set[str] = set()
        self._silent = False

    def silence(self) -> None:
        """Nothing is to be said, as in simulations."""
        self._silent = True

    def look(self, rounds: Rounds) -> None:
        """The state of the policy after an answer."""
        if rounds.clipped >= _MANY:
            self._say(_CLIPPED, rounds.clipped, self._range)
        if rounds.missing >= _MANY and rounds.missing > _SHARE * rounds.pulls:
            share = 100.0 * rounds.missing / rounds.pulls
            self._say(_MISSING, rounds.missing, rounds.pulls, share)
        if rounds.late >= _MANY and rounds.late > _SHARE * rounds.pulls:
            self._say(_LATE, rounds.late, rounds.pulls)

    def look_at_features(self, scaled: int, bound: float, hidden: bool) -> None:
        """Warn of scaled features: in Python where they are public, in the log where hidden."""
        if hidden:
            if scaled >= _MANY:
                self._say(_SCALED, bound, scaled)
        elif not self._silent and _SCALED not in self._said:
            self._said.add(_SCALED)
            # Of ``pull``, by way of ``seen`` and ``_entries``.
            warnings.warn(
                f"{self._policy}: {_SCALED % (bound, scaled)}", ClippingWarning, stacklevel=5
            )

    def _say(self, message: str, *facts: object) -> None:
        if not self._silent and message not in self._said:
            self._said.add(message)
            LOGGER.warning("%s: " + message + " (docs/serving/operations.md)", self._policy, *facts)
