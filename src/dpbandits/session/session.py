"""A session: one living policy, which pulls, takes answers, and releases when it is due.

A policy with a holdout has two: that of the bandit, and within it that of the held-out people.
They count pulls together, so each pull has a number of its own, and share nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..errors import ArgumentError, BudgetExhausted, UpdateError
from ..protocol import NO_ARM
from ..stores import User
from ..stores.tokens import Seal
from . import arrivals, episodes
from .choices import Draw, by_generator, serves
from .decisions import Decision
from .exchange import Release
from .holdout import Coin
from .holdout_targets import matches
from .open_arms import Mask, row
from .rounds import Choice, Pending
from .running import AllOrNothing, Running


class Session(Running):
    """A session: the state and the steps behind ``pull`` and ``update``."""

    holdout: Session | None = None  # that of held-out people
    coin: Coin | None = None  # that decides who is held out

    def __post_init__(self) -> None:
        super().__post_init__()
        # The module that plays its rounds.
        self._play: Any = arrivals if self.card.learns_at_once else episodes

    @property
    def streams(self) -> Iterator[Session]:
        """This session, and that of its holdout."""
        yield self
        if self.holdout is not None:
            yield self.holdout

    def stream_of(self, decision: Decision) -> Session:
        """The session that made a decision."""
        held = self.holdout if decision.held_out else None
        return self if held is None else held

    # Pulls ------------------------------------------------------------------------------------

    def tick(self, at: float | None) -> int:
        """Release all that is past its deadline at a time, which is None without a clock.  Returns
        how many pulls have passed theirs.
        """
        before = self.rounds.deadlines.passed
        for one in self.streams:
            one._pass_time(at, self.rounds.pulls)
            one._release_passed()
        return self.rounds.deadlines.passed - before

    def _pass_time(self, at: float | None, pulls: int) -> None:
        self.rounds.pulls = pulls
        self.rounds.deadlines.advance(at, pulls, self.settings.finish_at)

    def _release_passed(self) -> None:
        deadlines = self.rounds.deadlines
        self._play.release_passed(self)
        if deadlines.finishing:
            self._play.finish(self)
            deadlines.finishing = False

    def has_news(self, at: float) -> bool:
        """Whether ``tick`` would release or pass anything."""
        pulls, finish_at = self.rounds.pulls, self.settings.finish_at
        return any(one.rounds.deadlines.has_news(at, pulls, finish_at) for one in self.streams)

    def configure(self, within: int | str) -> None:
        """Give coming pulls another deadline."""
        for one in self.streams:
            at_once = one.card.learns_at_once or self.rounds.pulls == 0
            one.rounds.deadlines.change(within, at_once=at_once)

    def pull(
        self,
        shown: Any,
        user: User | None,
        open_arms: Mask = None,
        at: float | None = None,
        targets: Sequence[int] = (),
    ) -> Decision:
        """Make the decision for a person with the contexts ``shown``: a matrix of its own, or 0.
        ``user`` is None where a person contributes one round.  ``open_arms`` is None where all arms
        may be served.  ``at`` is the time, None without a clock.  ``targets`` are the arms of the
        holdout's targets.
        """
        rounds, number, stream = self.rounds, self.rounds.pulls, self
        if self.coin is not None and self.coin.holds_out(user, number):
            assert self.holdout is not None
            stream = self.holdout
            rounds.deadlines.see(at, self.settings.finish_at)  # and nothing else
        stream._pass_time(at, number)
        stream._release_passed()
        if stream is self:
            choice, pending = self._play.pull(self, shown, user, open_arms)
        else:
            choice, pending = stream._draw(user, open_arms, targets)
            stream.rounds.deadlines.count(number)
            stream.rounds.pulls = number + 1
        if pending is not None:
            stream.rounds.pending[number] = pending
        rounds.deadlines.count(number)
        wait, held_out = stream.rounds.deadlines.wait(at), stream is not self
        stands = not held_out and choice is rounds.current_choice
        drawn = rounds.drawn if stands else number
        self.last = decision = self._decision(choice, number, pending, wait, drawn, held_out)
        rounds.pulls = number + 1
        return decision

    def _draw(
        self, user: User | None, open_arms: Mask, targets: Sequence[int]
    ) -> tuple[Choice, Pending | None]:
        """A fresh choice for a held-out person, and its round, if that is recorded."""
        if open_arms is None or self.gate.statistic.parts:
            seen = matches(targets, self.arms.count) if targets else 0
            choice, pending = self._play.pull(self, seen, user, open_arms)
            if pending is not None:
                return choice, pending
        # One sum, and targets, compare arms that were all open.  And no choice stands while answers
        # are awaited.
        return self.choices.fresh(0, open_arms)[0], None

    def _decision(
        self,
        choice: Choice,
        number: int,
        pending: Pending | None,
        wait: float = 0.0,
        drawn: int | None = None,
        held_out: bool = False,
    ) -> Decision:
        arm, chance = choice
        known = None if math.isnan(chance) else chance
        names = self.arms.names
        name = None if names is None else names[arm]
        recorded = pending is not None
        made = Decision(arm, known, number, recorded, self.life, name, drawn, held_out)
        return made.sealed(self.seal, wait)

    def choose(
        self, shown: Any, open_arms: Mask = None, draw: Draw = by_generator
    ) -> tuple[int, Any]:
        """Choose an arm for a person without a record, and return it with its row of contexts.
        ``draw`` is as in ``Choices.aside``.
        """
        found = self.choices.found()
        if found is None or not serves(found, open_arms):
            found = self.choices.aside(shown, open_arms, draw)
        return found.arm, row(shown, found.arm)

    def aside(self, choice: Choice, shown: Any, open_arms: Mask) -> Decision:
        """A decision without a record, where ``choice`` stands."""
        made = self.choices.standing(choice, shown, open_arms)
        return self._decision(made, self.rounds.pulls, None)

    def finish(self) -> bool:
        """Release all that is over, and wait for no other pull; whether there was anything."""
        return any([one._play.finish(one) for one in self.streams])

    def end(self) -> None:
        """Release all that is over, and drop everything else that is private, for good."""
        if self.holdout is not None:
            self.holdout.end()
            self.coin = None
        rounds = self.rounds
        with suppress(BudgetExhausted, ArgumentError):  # a release that may not be made
            self._play.finish(self)
        self.state.lose(self.gate.new_state(simulated=False), rounds.recorded)
        self.gate.forget()
        rounds.end()
        self.seal, self.former, self.last = Seal(), {}, None

    # Arms -------------------------------------------------------------------------------------

    def retire(self, arm: int) -> None:
        """Serve an arm no more; an ``ArgumentError`` if no other is left."""
        retired = tuple(sorted({*self.rounds.retired, arm}))
        if len(retired) == self.arms.count:
            raise ArgumentError(
                f"arm must not be the only arm left, got {self.arms.name(arm) or arm!r}: all other"
                " arms are retired",
                "arm",
            )
        for one in self.streams:
            one.rounds.retired, one.rounds.chosen_among = retired, True
            one.fill()

    def add(self, arm: int) -> None:
        """Serve an arm that was retired again."""
        retired = tuple(one for one in self.rounds.retired if one != arm)
        for stream in self.streams:
            stream.rounds.retired = retired

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
            raise UpdateError("update() needs a call of pull() before it")
        if isinstance(decision, Decision) and (
            decision.life == self.life or decision.number < self.former.get(decision.life, 0)
        ):
            return decision
        # Not its arm, which may be private.
        got = type(decision).__name__
        if isinstance(decision, Decision):
            got = f"decision {decision.number} of another policy, or from before a crash"
        hint = ". Give an arm as in arm=0" if isinstance(decision, int) else ""
        raise UpdateError(f"decision must come from this policy's pull(), got {got}{hint}")

    def _signed(self, life: str, number: int, recorded: bool, held_out: bool) -> Decision:
        """The decision that an own token stands for.  A pull lost in a crash is not recorded: a
        round counted because its answer came would show that it came.
        """
        known = life == self.life or number < self.former.get(life, 0)
        return Decision(NO_ARM, None, number, recorded and known, life, held_out=held_out)

    def take(
        self, value: float | None, decision: Decision, done: int | None, at: float | None = None
    ) -> bool:
        """Take in an answer, None for one that will not come.  ``done`` is the arm that the person
        took, None for the recommended one.  ``at`` is the time of the answer, None without a clock.
        Returns whether the policy learns from it, or counts it in the holdout.
        """
        if decision.held_out and self.holdout is not None:
            return self.holdout.take(value, decision, done, at)
        rounds = self.rounds
        flown = rounds.find_flown(decision)
        found = rounds.find(decision) if flown is None else flown.pending
        if found is None or self.is_late(decision.number, at):
            rounds.dropped += 1
            rounds.late += decision.recorded
            return False
        if flown is not None:
            flight, pending = rounds.take_out(decision.number)
            value = value if done in (None, pending.arm) else None
            self.intake.take_late(flight, pending, self.intake.entering(value, rounds))
            return True
        if done is None or done == found.arm:
            return self._play.take(self, decision.number, found, value, None)
        if not self.settings.choices_public:
            return self._play.take(self, decision.number, found, None, None)
        if np.isnan(row(found.contexts, done)).any():
            raise ArgumentError(
                f"arm must have a row in the contexts of its pull, got {done}", "arm"
            )
        return self._play.take(self, decision.number, found, value, int(done))

    def cancel(self, decision: Decision, at: float | None = None) -> bool:
        """Take back a pull whose arm was not carried out, and return whether that was possible.  In
        an episode that is over, where contexts are private, and in the holdout, it counts as
        unanswered instead.
        """
        if decision.held_out and self.holdout is not None:
            return self.holdout.cancel(decision, at)
        rounds = self.rounds
        found = None if rounds.find_flown(decision) else rounds.find(decision)
        stays = self.card.hides_contexts or decision.held_out
        if found is None or stays or self.is_late(decision.number, at):
            self.take(None, decision, None, at)
            return False
        del rounds.pending[decision.number]
        self._play.take_back(self, found)
        return True

    def erase(self, decision: Decision, at: float | None = None) -> bool:
        """Count a pull as unanswered, also where its answer has come and waits for its turn."""
        if not decision.held_out and decision.number in self.rounds.answers and decision.recorded:
            self.rounds.answers[decision.number] = self.intake.substitute()
            return True
        try:
            return self.take(None, decision, None, at)
        except UpdateError:  # its answer has entered a sum
            return False

    def is_open(self, decision: Decision, at: float | None) -> bool:
        """Whether an answer to a recorded pull comes in time, whether one has come or not."""
        if decision.held_out and self.holdout is not None:
            return self.holdout.is_open(decision, at)
        rounds, number = self.rounds, decision.number
        closed = rounds.deadlines.passed
        if not self._arms_decide:
            closed = max(closed, rounds.closed)
        return number >= closed and not self.is_late(number, at)

    def is_late(self, number: int, at: float | None) -> bool:
        """Whether an answer comes after the deadline of a pull.  When the last tick was makes no
        difference, and the answer passes no deadline.
        """
        if at is None:
            return False
        deadlines = self.rounds.deadlines
        if deadlines.is_late(number, at, self.rounds.pulls):
            return True
        if self._arms_decide or not deadlines.finishes(at, self.settings.finish_at):
            return False
        return bool(self._play.is_over(self, number))

    @property
    def _arms_decide(self) -> bool:
        """Whether the arm of a pull decides when its episode ends.  The arm is forgotten once the
        pull is answered, so only deadlines tell that an answer is late.
        """
        return self.gate.statistic.parts > 0

    def learn_from(self, release: Release) -> bool:
        """Take in a release of another worker, and return whether it was new."""
        if not self.exchange.is_new(release, {self.life, *self.former}):
            return False
        with AllOrNothing(self):
            # Noted first: an interrupt may lose a release, and may not let one enter twice.
            self.exchange.note(release)
            told = np.array(release.memo, float), np.array(release.values, float)
            self.gate.kernels.absorb(self.gate.params, self.state.public, *told)
        return True
