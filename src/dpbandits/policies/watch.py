"""The operator's log: what somebody who runs a policy has to hear of answers that go wrong.

It depends on answers, and no guarantee covers it.  Loops of simulations never write to it.
"""

from __future__ import annotations

import logging

from ..session.rounds import Rounds

LOGGER = logging.getLogger("dpbandits")
_MANY = 50  # answers
_SHARE = 0.1  # of all pulls
_CLIPPED = (
    "%d answers lay outside of reward_range %r and were clipped to it, which biases what is learned"
)
_DROPPED = (
    "%d answers to %d pulls were dropped: they came too late, for which a larger patience may help,"
    " or to rounds that were not recorded"
)


class Watch:
    """Warns once of answers outside of the reward range, and once of dropped ones."""

    def __init__(self, policy: str, reward_range: tuple[float, float]) -> None:
        self._policy, self._range = policy, reward_range
        self._said: set[str] = set()

    def silence(self) -> None:
        """Nothing is to be said, as in simulations."""
        self._said = {_CLIPPED, _DROPPED}

    def look(self, rounds: Rounds) -> None:
        """Where the policy stands after an answer."""
        if rounds.clipped >= _MANY:
            self._say(_CLIPPED, rounds.clipped, self._range)
        if rounds.dropped >= _MANY and rounds.dropped > _SHARE * rounds.pulls:
            self._say(_DROPPED, rounds.dropped, rounds.pulls)

    def _say(self, message: str, *facts: object) -> None:
        if message not in self._said:
            self._said.add(message)
            LOGGER.warning("%s: " + message + " (docs/serving.md)", self._policy, *facts)
