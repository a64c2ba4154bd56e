"""A session: one living policy, which pulls, takes answers, and releases when it is due."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import ArgumentError, UpdateError
from ..protocol import NO_ARM
from ..stores import User
from . import arrivals, episodes
from .choices import serves
from .decisions import Decision
from .exchange import Release
from .open_arms import Mask, row
from .running import AllOrNothing, Running


class Session(Running):
    """A session: the state and the steps behind ``pull`` and ``update``."""

    @cached_property
    def _play(self) -> Any:
        """The module that plays its rounds."""
        return arrivals if self.card.learns_at_once else episodes

    # Pulls ------------------------------------------------------------------------------------

    def pull(self, shown: Any, user: User | None, open_arms: Mask = None) -> Decision:
        """Make the decision for a person with the contexts ``shown``: a matrix of its own, or 0.
        ``user`` is None where a person contributes one round.  ``open_arms`` is None where all arms
        may be served.
        """
        choice, pending = self._play.pull(self, shown, user, open_arms)
        number = self.rounds.pulls
        propensity = None if math.isnan(choice.propensity) else choice.propensity
        recorded, name = pending is not None, self.arms.name(choice.arm)
        made = (choice.arm, propensity, number, recorded, self.life.name, name)
        decision = Decision.sealed(self.seal, *made)
        if pending is not None:
            self.rounds.pending[number] = pending
        self.last = decision
        self.rounds.pulls += 1
        return decision

    def choose(self, shown: Any, open_arms: Mask = None) -> tuple[int, Any]:
        """Choose an arm for a person without a record, and return it with its row of contexts."""
        found = self.choices.found()
        if found is None or not serves(found, open_arms):
            found = self.choices.aside(shown, open_arms)
        return found.arm, row(shown, found.arm)

    def finish(self) -> bool:
        """Release all that is over, and wait for no other pull; whether there was anything."""
        return self._play.finish(self)

    # Arms -------------------------------------------------------------------------------------

    def retire(self, arm: int) -> None:
        """Serve an arm no more; an ``ArgumentError`` if no other is left."""
        retired = tuple(sorted({*self.rounds.retired, arm}))
        if len(retired) == self.arms.count:
            raise ArgumentError(f"arm must not be the last one that is open, got {arm}", "arm")
        self.rounds.retired, self.rounds.chosen_among = retired, True
        episodes.fill(self)

    def add(self, arm: int) -> None:
        """Serve an arm that was retired again."""
        self.rounds.retired = tuple(one for one in self.rounds.retired if one != arm)

    # Answers ----------------------------------------------------------------------------------

    def own(self, decision: Any) -> Decision:
        """The given decision, that of a token, or the last one for None.  It must have been made in
        this life or before a save.  Raises ``UpdateError`` for others, and for a token that has
        expired or is another policy's.
        """
        decision = self.last if decision is None else decision
        if isinstance(decision, str):
            return self._signed(*self.seal.read(decision))
        if decision is None:
            raise UpdateError("update needs a pull before it")
        if isinstance(decision, Decision) and (
            decision.life == self.life.name or decision.number < self.former.get(decision.life, 0)
        ):
            return decision
        # Not its arm, which may be private.
        kind = type(decision).__name__
        got = f"number {decision.number}" if isinstance(decision, Decision) else kind
        hint = "; an arm is given as arm=" if isinstance(decision, int) else ""
        raise UpdateError(f"decision must come from this policy's pull(), got {got}{hint}")

    def _signed(self, life: str, number: int, recorded: bool) -> Decision:
        """The decision that an own token stands for.  A pull lost in a crash is not recorded: a
        round counted because its answer came would show that it came.
        """
        known = life == self.life.name or number < self.former.get(life, 0)
        return Decision(NO_ARM, None, number, recorded and known, life)

    def take(self, value: float | None, decision: Decision, done: int | None) -> bool:
        """Take in an answer, None for one that will not come.  ``done`` is the arm that the person
        took, None for the recommended one.  Returns whether the policy learns from it.
        """
        rounds = self.rounds
        flight = rounds.flight_of(decision)
        if flight is not None:
            pending = flight.pending.pop(decision.number)
            value = value if done in (None, pending.arm) else None
            self.intake.take_late(flight, pending, self.intake.entering(value, rounds))
            return True
        found = rounds.find(decision)
        if found is None:
            rounds.dropped += 1
            rounds.late += decision.recorded
            return False
        if done is None or done == found.arm:
            return self._play.take(self, decision.number, found, value, None)
        if not self.settings.choices_public:
            return self._play.take(self, decision.number, found, None, None)
        if np.isnan(row(found.contexts, done)).any():
            raise ArgumentError(f"arm must be one of those shown to the person, got {done}", "arm")
        return self._play.take(self, decision.number, found, value, int(done))

    def learn_from(self, release: Release) -> bool:
        """Take in a release of another worker, and return whether it was new."""
        if not self.exchange.is_new(release, {self.life.name, *self.former}):
            return False
        with AllOrNothing(self):
            # Noted first: an interrupt may lose a release, and may not let one enter twice.
            self.exchange.note(release)
            told = np.array(release.memo, float), np.array(release.values, float)
            self.gate.kernels.absorb(self.gate.params, self.state.public, *told)
        return True
