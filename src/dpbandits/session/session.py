"""A session: one living policy, which pulls, takes answers, and releases when it is due."""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import ArgumentError, BudgetExhausted, UpdateError
from ..privacy.ledger import WHOLE
from ..protocol import NO_ARM, Card, never, nothing_to_note, own_alone
from ..stores import Life, User
from ..stores.tokens import Seal
from .arms import Arms, Mask, row, stand_in
from .decisions import Decision
from .exchange import Exchange, Release
from .gate import Gate
from .intake import Intake
from .options import Settings
from .rounds import Choice, Pending, Rounds
from .state import State


@dataclass(repr=False)
class Session:
    """A session: the state and the steps behind ``pull`` and ``update``."""

    card: Card
    settings: Settings
    arms: Arms
    gate: Gate
    default_reward: float  # what an answer that never came counts as
    state: State
    rounds: Rounds = field(default_factory=Rounds)
    life: Life = field(default_factory=lambda: Life(uuid.uuid4().hex, 0))  # see ``stores``
    former: dict[str, int] = field(default_factory=dict)  # lives, and how many pulls they knew
    last: Decision | None = None  # that is answered by default
    seal: Seal = field(default_factory=Seal)  # by which tokens are known
    told: tuple[str, ...] = ()  # what has to be true of logs and workers it has learned from
    exchange: Exchange = field(default_factory=Exchange)  # with other workers
    older_noise: bool = False  # whether an earlier version has drawn secure noise of it

    @cached_property
    def intake(self) -> Intake:
        return Intake(self.gate, self.state, self.settings, self.default_reward)

    # Pulls ------------------------------------------------------------------------------------

    def pull(self, shown: Any, user: User | None, open_arms: Mask = None) -> Decision:
        """Make the decision for a person with the contexts ``shown``: a matrix of its own, or 0.
        ``user`` is None where a person contributes one round.  ``open_arms`` is None where all arms
        may be served.
        """
        if self.card.learns_at_once:
            return self._pull_alone(shown, user, open_arms)
        if self._is_waiting() or not self._may_record(open_arms):
            return self._decide(self._standing(shown, open_arms), None)
        return self._pull_in_episode(shown, user, open_arms)

    def _pull_alone(self, shown: Any, user: User | None, open_arms: Mask) -> Decision:
        """A decision whose answer is learned from by itself."""
        rounds = self.rounds
        self._take_in(rounds.pulls - (self.settings.patience or 0))
        choice, _ = self._fresh(shown, open_arms)
        if rounds.exhausted or not self._counts(user, choice.arm):
            return self._decide(choice, None)
        return self._decide(choice, self._wait(choice, row(shown, choice.arm), shown))

    def _is_waiting(self) -> bool:
        """Release the episodes that are due; whether one still waits for answers."""
        rounds = self.rounds
        self._land(rounds.pulls)
        if not rounds.release_due or rounds.exhausted:
            return False
        if self._goes_on:
            self._take_off()
            return False
        if rounds.is_waiting(self.gate.part(self.state), self.settings.patience):
            return True
        self._end_episode()
        return False

    def _may_record(self, open_arms: Mask) -> bool:
        """Whether the running episode, or a new one, may have a record of this person."""
        rounds = self.rounds
        return not rounds.exhausted and (rounds.left == 0 or self._stands(open_arms))

    def _pull_in_episode(self, shown: Any, user: User | None, open_arms: Mask) -> Decision:
        """A decision whose answer is released with those of its episode."""
        rounds = self.rounds
        choice, left = rounds.current_choice, rounds.left
        if left == 0:
            choice, left = self._fresh(shown, open_arms)
        if not self._counts(user, choice.arm):
            return self._decide(choice, None)
        if rounds.left == 0:
            rounds.held = left
        rounds.current_choice, rounds.left = choice, left - 1
        x = row(shown, choice.arm)
        rounds.release_due = self._advance(choice.arm, x, 1)
        rounds.recorded += 1
        if not self.card.hides_contexts:
            rounds.book(choice.arm, x, 1)
        return self._decide(choice, self._wait(choice, x, shown))

    def finish(self) -> bool:
        """Release all that is over, and wait for no other pull; whether there was anything."""
        rounds = self.rounds
        due = rounds.release_due and not rounds.exhausted
        waiting = bool(rounds.flights or (self._in_turn and rounds.pending))
        self._take_in(rounds.pulls)
        self._land(math.inf)
        if due and not self.rounds.exhausted:
            self._end_episode()
        return due or waiting

    def choose(self, shown: Any, open_arms: Mask = None) -> tuple[int, Any]:
        """Choose an arm for a person without a record, and return it with its row of contexts."""
        found = self._found()
        if found is None or (open_arms is not None and not open_arms[found.arm]):
            found = self._aside(shown, open_arms)
        return found.arm, row(shown, found.arm)

    def _fresh(self, shown: Any, open_arms: Mask) -> tuple[Choice, int]:
        """A choice among open arms from released values, and for how many rounds it stands."""
        steps, rng = self.gate.steps, self.state.choice_rng
        sides = (self.gate.params, self.state.public)
        if open_arms is None:
            arm, propensity, rounds = steps.decide(*sides, shown, rng)
        elif isinstance(shown, np.ndarray):
            arm, propensity, rounds = steps.decide(*sides, stand_in(shown, open_arms), rng)
            arm = arm if open_arms[arm] else open_arms.argmax()
        else:
            arm, propensity, rounds = steps.decide_among(*sides, open_arms, rng)
        # Without numba both may come as integers of NumPy, which are no index and no JSON.
        return Choice(int(arm), propensity), int(rounds)

    def _aside(self, shown: Any, open_arms: Mask) -> Choice:
        """A choice without a record; the public side keeps nothing that it prepares."""
        restore = self.state.restorable_public() if self.card.randomised else lambda: None
        choice, _ = self._fresh(shown, open_arms)
        restore()
        return choice

    def _counts(self, user: User | None, arm: int) -> bool:
        """Whether a round of the arm is recorded, which then counts against its user."""
        most = self.settings.max_rounds
        if most is None:
            return True
        assert user is not None  # or ``pull`` was refused
        part = arm if self.gate.statistic.parts else WHOLE
        return self.rounds.users.count(user, most, None if self.card.learns_at_once else part)

    def _stands(self, open_arms: Mask) -> bool:
        """Whether the arm of the current choice may be served."""
        return open_arms is None or bool(open_arms[self.rounds.current_choice.arm])

    def _standing(self, shown: Any, open_arms: Mask) -> Choice:
        """The decision while nothing is recorded; new contexts get a choice of their own."""
        if isinstance(shown, np.ndarray):
            return self._fresh(shown, open_arms)[0]
        if self._stands(open_arms):
            return self.rounds.current_choice
        return self._aside(shown, open_arms)

    def _wait(self, choice: Choice, weights: Any, shown: Any) -> Pending:
        # Of the other arms nothing is asked later, unless a person may openly take one.
        return Pending(choice.arm, weights, shown if self.settings.choices_public else 0)

    def _decide(self, choice: Choice, pending: Pending | None) -> Decision:
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

    def _advance(self, arm: int, x: Any, n: int) -> bool:
        return bool(self.gate.steps.advance(self.gate.params, self.state.public, arm, x, n))

    # Arms -------------------------------------------------------------------------------------

    def retire(self, arm: int) -> None:
        """Serve an arm no more; an ``ArgumentError`` if no other is left."""
        retired = tuple(sorted({*self.rounds.retired, arm}))
        if len(retired) == self.arms.count:
            raise ArgumentError(f"arm must not be the last one that is open, got {arm}", "arm")
        self.rounds.retired, self.rounds.chosen_among = retired, True
        self._fill()

    def add(self, arm: int) -> None:
        """Serve an arm that was retired again."""
        self.rounds.retired = tuple(one for one in self.rounds.retired if one != arm)

    def _fill(self) -> None:
        """End the episode of a retired arm with rounds of the default reward, which contain no
        person's data.  Where each arm has its own episodes, that of the retired arm may wait.
        """
        rounds, (arm, _) = self.rounds, self.rounds.current_choice
        n = rounds.left
        if n == 0 or arm not in rounds.retired:
            return
        rounds.left = 0
        if rounds.exhausted or self.gate.statistic.parts > 0:
            return
        rounds.release_due = self._advance(arm, 0, n)
        rounds.recorded += n
        rounds.book(arm, 0, n)
        self.intake.fill(arm, n)

    # Releases ---------------------------------------------------------------------------------

    @property
    def _goes_on(self) -> bool:
        """Whether the next episode begins while the last one waits for answers."""
        return bool(self.settings.patience) and self.gate.kernels.close is not nothing_to_note

    def _end_episode(self) -> None:
        self.gate.refuse_fork()
        part, rounds = self.gate.part(self.state), self.rounds
        for number in rounds.awaited(part):
            # Taken out first: an interrupt may lose a default, and may not let one enter twice.
            self.intake.take(rounds.pending.pop(number), self.intake.substitute())
        rounds.close(rounds.pulls)
        with _AllOrNothing(self):
            self._release()
            self.rounds.cover(part)

    def _take_off(self) -> None:
        """End the episode, and leave it open for answers."""
        self.gate.refuse_fork()
        with _AllOrNothing(self):
            self._refuse_overspending()
            ended = self.gate.end(self.state, self.rounds.recorded)
            self.rounds.take_off(ended, self.settings.patience or 0)

    def _land(self, pulls: float) -> None:
        """Release the episodes that were open for answers until so many pulls."""
        while self.rounds.flights and self.rounds.flights[0].deadline <= pulls:
            self.gate.refuse_fork()
            flight = self.rounds.flights[0]
            self.rounds.close(flight.before)
            while flight.pending:
                pending = flight.pending.popitem()[1]
                self.intake.take_late(flight, pending, self.intake.substitute())
            with _AllOrNothing(self):
                flight = self.rounds.flights[0]
                self.gate.cross(self.state, flight.ended, self.rounds.users.announcement)
                self.rounds.land()
                self._released(flight.ended.memo)

    def _release(self) -> None:
        self._refuse_overspending()
        self.gate.release(self.state, self.rounds.recorded, self.rounds.users.announcement)
        self._released(self.state.memo)

    def learn_from(self, release: Release) -> bool:
        """Take in a release of another worker, and return whether it was new."""
        if not self.exchange.is_new(release, {self.life.name, *self.former}):
            return False
        with _AllOrNothing(self):
            # Noted first: an interrupt may lose a release, and may not let one enter twice.
            self.exchange.note(release)
            told = np.array(release.memo, float), np.array(release.values, float)
            self.gate.kernels.absorb(self.gate.params, self.state.public, *told)
        return True

    def _refuse_overspending(self) -> None:
        rounds = self.rounds
        try:
            self.gate.refuse_overspending(self.state, rounds.recorded, len(rounds.flights))
        except (BudgetExhausted, ArgumentError):
            rounds.exhausted = True
            raise

    def _released(self, memo: np.ndarray) -> None:
        rounds, found = self.rounds, self._found()
        if self.gate.kernels.absorb is not own_alone:
            self.exchange.share(self.life.name, memo, self.state.wall.release)
        rounds.users.announced()
        if found is not None:
            rounds.exhausted, rounds.current_choice = True, found
            # Never released, as what was open then.
            rounds.flights, rounds.pending = [], {}
            rounds.close(rounds.pulls)

    def _found(self) -> Choice | None:
        """The arm that a search for the best arm has found; None without a search, or while it
        runs.
        """
        kernels, public = self.gate.kernels, self.state.public
        if kernels.stop is never or not kernels.stop(self.gate.params, public):
            return None
        return Choice(int(kernels.recommend(self.gate.params, public)), 1.0)

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
        pending = found
        deviates, openly = done not in (None, pending.arm), self.settings.choices_public
        if deviates and openly and np.isnan(row(pending.contexts, int(done))).any():  # type: ignore[arg-type]
            raise ArgumentError(f"arm must be one of those shown to the person, got {done}", "arm")
        if deviates and not openly:
            value = None
        if self.card.learns_at_once:
            if deviates and openly:
                arm = int(done)  # type: ignore[arg-type]
                pending = pending._replace(arm=arm, weights=row(pending.contexts, arm))
            if not self._in_turn:
                return self._learn(decision.number, pending, value)
            rounds.pending[decision.number] = pending
            rounds.answers[decision.number] = self.intake.entering(value, self.rounds)
            return not rounds.exhausted
        del rounds.pending[decision.number]
        if deviates and openly:
            self._take_back(pending)
            return False
        self.intake.take(pending, self.intake.entering(value, self.rounds))
        return True

    @property
    def _in_turn(self) -> bool:
        """Whether answers are taken in the order of pulls."""
        return self.card.learns_at_once and bool(self.settings.patience)

    def _take_in(self, before: int) -> None:
        """Learn from pulls before this one, with answer or default, if that goes in their order."""
        rounds = self.rounds
        while self._in_turn and rounds.pending and (number := next(iter(rounds.pending))) < before:
            rounds.close(number + 1)
            # As it entered when it came: to clip and round it once more changes nothing.
            self._learn(number, rounds.pending[number], rounds.answers.get(number))
            rounds.answers.pop(number, None)

    def receive(self, report: np.ndarray) -> bool:
        """Take in a report from the device of a person without a pull.  Returns whether the policy
        learns from it.
        """
        number = self.rounds.pulls
        self.rounds.pulls += 1
        pending = Pending(NO_ARM, report)
        self.rounds.pending[number] = pending
        try:
            return self._learn(number, pending, 0.0)
        finally:
            self.rounds.pending.pop(number, None)  # which a refused one would stay in

    def coming(self) -> tuple[Choice, int]:
        """The coming choice without contexts, and for how many rounds it stands."""
        return self._fresh(0, self.arms.open(None, self.rounds.retired, self.arms.count))

    def receive_sum(self, total: float) -> bool:
        """Take in the noisy sum of all rounds of the coming choice; whether it is learned from."""
        self.gate.refuse_fork()
        if self.rounds.exhausted:
            return False
        with _AllOrNothing(self):
            choice, n = self.coming()
            due = self._advance(choice.arm, 0, n)
            self.rounds.recorded += n
            self.rounds.book(choice.arm, 0, n)
            self.intake.take(Pending(choice.arm), total, n)
            if due:
                self._end_episode()
        return True

    def _learn(self, number: int, pending: Pending, value: float | None) -> bool:
        self.gate.refuse_fork()
        rounds, state, gate = self.rounds, self.state, self.gate
        if rounds.exhausted:
            del rounds.pending[number]
            return False
        if gate.needs_care(state):
            with _AllOrNothing(self):
                self._absorb(number, pending, value)
        else:
            del rounds.pending[number]
            rounds.recorded += 1
            answer = (*pending[:2], self.intake.entering(value, self.rounds))
            gate.absorb_and_release(state, answer, rounds.recorded)
            rounds.users.cover(WHOLE)
            rounds.users.announced()
        return True

    def _absorb(self, number: int, pending: Pending, value: float | None) -> None:
        del self.rounds.pending[number]
        self.rounds.recorded += 1
        x = pending.weights
        x = x.copy() if isinstance(x, np.ndarray) else x  # which ``weigh`` may change
        sides = self.gate.params, self.state.raw, self.state.public
        value = self.intake.entering(value, self.rounds)
        if self.gate.steps.absorb(*sides, pending.arm, x, value):
            self._release()
            self.rounds.users.cover(WHOLE)

    def _take_back(self, pending: Pending) -> None:
        """The person publicly did something else: the episode lasts one round longer."""
        arm = pending.arm
        x = row(pending.contexts, arm)
        self.rounds.release_due = self._advance(arm, x, -1)
        # The next pull of a policy with contexts sees other ones, and chooses anew.
        self.rounds.take_back(arm, pending.weights, anew=isinstance(x, np.ndarray))
        self._fill()


class _AllOrNothing:
    """Undo a step that fails or is interrupted.  A second interrupt during that is not covered."""

    def __init__(self, session: Session) -> None:
        self.session, self.shared = session, len(session.exchange.shared)
        self.state, self.rounds = session.state.copied(), session.rounds.copied()

    def __enter__(self) -> None: ...

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if error is None:
            return
        session, rounds = self.session, self.rounds
        if isinstance(error, BudgetExhausted | ArgumentError):  # which it stays
            rounds.exhausted = session.rounds.exhausted
        # First: values of a release that is made anew would be those of a second one.
        del session.exchange.shared[self.shared :]
        session.state.restore(self.state)
        session.gate.forget()
        session.rounds = rounds
