"""A policy at work: its state, and the steps that all its rounds share."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from ..errors import ArgumentError, BudgetExhausted
from ..privacy.ledger import WHOLE, Line
from ..protocol import Card, nothing_to_undo, one_round, stands, stays_empty
from ..stores import User
from ..stores.tokens import Seal
from .choices import Choices
from .deadlines import Deadlines
from .decisions import Decision
from .exchange import Exchange, Made
from .gate import Gate
from .intake import Intake
from .open_arms import Arms
from .options import Settings
from .rounds import VOID, Booked, Choice, Pending, Rounds
from .rows import Rows
from .state import State


@dataclass(repr=False)
class Running:
    """What the rounds of ``arrivals`` and of ``episodes`` work on."""

    card: Card
    settings: Settings
    arms: Arms
    gate: Gate
    default_reward: float  # what an answer that never came counts as
    state: State
    rounds: Rounds = field(default_factory=Rounds)  # with the deadlines of ``settings``
    life: str = field(default_factory=lambda: uuid.uuid4().hex)  # see ``stores``
    former: dict[str, int] = field(default_factory=dict)  # lives, and how many pulls they knew
    last: Decision | None = None  # that is answered by default
    seal: Seal = field(default_factory=Seal)  # by which tokens are known
    told: tuple[str, ...] = ()  # what has to be true of logs and workers it has learned from
    exchange: Exchange = field(default_factory=Exchange)  # with other workers
    restored: int = 0  # how often it went on from a copy that lacked what came later
    older_noise: bool = False  # whether an earlier version has drawn secure noise of it
    notes: Rows[tuple[str, bytes], bytes] = field(default_factory=Rows)  # of a service around it

    def __post_init__(self) -> None:
        self.rounds.deadlines = Deadlines.of(self.settings.answers_within)
        self.intake = Intake(self.gate, self.state, self.settings, self.default_reward)
        self.choices = Choices(self.gate, self.state, self.card.randomised)

    def coming(self) -> tuple[Choice, int]:
        """The coming choice without contexts, and for how many rounds it stands."""
        return self.choices.fresh(0, self.arms.open(None, self.rounds.retired, self.arms.count))

    def counts(self, user: User | None, arm: int) -> bool:
        """Whether a round of the arm is recorded, which then counts against its user."""
        most = self.settings.max_rounds
        if most is None:
            return True
        assert user is not None  # or ``pull`` was refused
        alias, number = self.seal.alias(user), self.rounds.recorded
        if self.card.learns_at_once:
            return self.rounds.users.count(alias, most, None, number, number)
        part = arm if self.gate.statistic.parts else WHOLE
        first = int(self.state.wall.first_unreleased[part])
        return self.rounds.users.count(alias, most, part, number, first)

    def pending(self, choice: Choice, weights: Any, shown: Any) -> Pending:
        """A recorded round, which waits for its answer."""
        # Of the other arms nothing is asked later, unless a person may openly take one.
        return Pending(choice.arm, weights, shown if self.settings.choices_public else 0)

    def release(self) -> None:
        """Release the episode that is over."""
        self.refuse_overspending()
        kept = self.gate.statistic.sums_of
        booked = self.rounds.booked_of(self.gate.part(self.state)) if kept else {}
        self.gate.release(self.state, self.rounds.recorded)
        self.released(self.state.memo, booked)

    def refuse_overspending(self) -> None:
        """Refuse the coming release where it may not be made; then nothing more is recorded."""
        rounds = self.rounds
        try:
            self.gate.refuse_overspending(self.state, rounds.recorded, len(rounds.flights))
        except (BudgetExhausted, ArgumentError):
            rounds.exhausted = True
            raise

    def give_up(self, *lines: Line) -> None:
        """Charge releases that may have been made and that nobody saw, and drop every record that
        they may cover.

        No dropped round counts in a later release: episodes that are not released begin anew.  The
        features of dropped rounds stay counted, as if each reward had been as estimated.
        """
        state, rounds, kernels = self.state, self.rounds, self.gate.kernels
        for line in lines:
            state.charge(line)
        past = max([rounds.recorded, *(line.last + 1 for line in lines)])
        self._drop(past)
        self._withdraw()
        if kernels.restart is not stays_empty:
            kernels.restart(self.gate.params, state.raw, state.public)
        if kernels.rebase is not stands:
            kernels.rebase(self.gate.params, state.public, state.wall.earlier)
        rounds.lose(past)
        if rounds.left > 0:  # by which the next loss knows the arm that is held
            rounds.book(rounds.current_choice.arm, 0, 0, len(self.exchange.made))
        self.fill()

    def _withdraw(self) -> None:
        """Count the rounds of episodes that are not released no more, on the public side."""
        rounds, gate, public = self.rounds, self.gate, self.state.public
        if gate.kernels.withdraw is not nothing_to_undo:
            for flight in reversed(rounds.flights.values()):
                gate.kernels.withdraw(gate.params, public, flight.ended.memo)
        for arm, (n, weights, _) in rounds.unreleased.items():
            # Of features only their sum is known, so all but them is taken back.
            self.advance(arm, np.zeros_like(weights) if np.ndim(weights) else 0, -n)
        self._hold_on()

    def _hold_on(self) -> None:
        """Where one arm is held for an episode, let its choice stand for all of it."""
        rounds, parts = self.rounds, self.gate.statistic.parts
        arm = rounds.current_choice.arm
        held = rounds.unreleased.get(arm)
        others = any(one.rounds for other, one in rounds.unreleased.items() if other != arm)
        anew = self.gate.kernels.hold_rounds is one_round  # each person gets a draw of their own
        if parts or held is None or np.ndim(held.weights) or others or anew:
            rounds.left = 0
        else:
            rounds.left = min(rounds.left + held.rounds, rounds.held)

    def advance(self, arm: int, x: Any, n: int) -> bool:
        """Count n rounds on the public side; whether its episode is over."""
        gate = self.gate
        return bool(gate.steps.advance(gate.params, self.state.public, arm, x, n))

    def fill(self) -> None:
        """End the episode of a retired arm with rounds of the default reward, which contain no
        person's data.  Where each arm has its own episodes, that of the retired arm may wait.
        """
        rounds, arm = self.rounds, self.rounds.current_choice.arm
        n = rounds.left
        if n == 0 or arm not in rounds.retired:
            return
        rounds.left = 0
        if rounds.exhausted or self.gate.statistic.parts > 0:
            return
        rounds.release_due = self.advance(arm, 0, n)
        rounds.recorded, rounds.filled = rounds.recorded + n, rounds.filled + n
        rounds.book(arm, 0, n, VOID)
        self.intake.fill(arm, n)

    def released(self, memo: np.ndarray, booked: dict[int, Booked]) -> None:
        """Keep the latest release, of rounds that were ``booked``, if it is one of sums.  Stop
        where a search has found its arm.
        """
        if self.gate.statistic.sums_of:
            values = tuple(self.state.wall.release.tolist())
            self.exchange.made.append(
                Made(self.life, tuple(memo.tolist()), values, self._of(booked))
            )
        self.end_search()

    def end_search(self) -> None:
        """Record nothing more where a search has found its arm, and drop all unreleased rewards."""
        rounds, found = self.rounds, self.choices.found()
        if found is not None:
            rounds.exhausted, rounds.current_choice, rounds.left = True, found, 0
            self._drop(rounds.recorded)
            rounds.lose(rounds.recorded)

    def _drop(self, past: int) -> None:
        """Forget every reward of a record up to round ``past`` that was not released."""
        self.state.lose(self.gate.new_state(simulated=False), past)
        self.gate.forget()

    def _of(self, booked: dict[int, Booked]) -> tuple[tuple[int, int, int], ...]:
        """The batches of a release.  How many there are does not depend on noise."""
        if self.gate.statistic.sums_of == "arms":
            known = [(arm, booked.get(arm, Booked(0, 0))) for arm in range(self.arms.count)]
        else:
            known = list(booked.items())
        return tuple((a, 0 if one.known == VOID else one.rounds, one.known) for a, one in known)


_NUMBERS, _TIMES = attrgetter(*Rounds.__slots__), attrgetter(*Deadlines.__slots__)


class AllOrNothing:
    """Undo a step that fails or is interrupted.  A second interrupt during that is not covered.

    A release that fails after secure noise was drawn for it is not made anew: choosing among draws
    would be rejection sampling.  It counts as spent, and its records are dropped.
    """

    def __init__(self, running: Running) -> None:
        self.running, self.made = running, len(running.exchange.made)
        rounds = running.rounds
        self.state = running.state.copied()
        self.numbers, self.times = _NUMBERS(rounds), _TIMES(rounds.deadlines)
        # The one that a step may release; its statistic is cleared by that.
        landing = rounds.next_flight
        self.landing = None if landing is None else landing.ended
        self.statistic = None if self.landing is None else self.landing.statistic.copy()
        # So many changes were noted; from now on all are. None if nobody has asked for them.
        self.marks = []
        for rows in rounds.rows:
            noted = rows.changes
            self.marks.append((rows, None if noted is None else len(noted)))
            if noted is None:
                rows.changes = []
        running.gate.drawn = None

    def __enter__(self) -> None: ...

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if error is not None:
            self._undo(error)
        for rows, mark in self.marks:
            if mark is None:
                rows.changes = None

    def _undo(self, error: BaseException) -> None:
        running, rounds = self.running, self.running.rounds
        # A policy that had to refuse a release stays as it is then.
        refused = isinstance(error, BudgetExhausted | ArgumentError) and rounds.exhausted
        # First: values of a release that is made anew would be those of a second one.
        del running.exchange.made[self.made :]
        running.state.restore(self.state)
        running.gate.forget()
        for rows, mark in self.marks:
            rows.take_back(mark or 0)
        for held, values in ((rounds, self.numbers), (rounds.deadlines, self.times)):
            for name, value in zip(held.__slots__, values, strict=True):
                setattr(held, name, value)
        rounds.exhausted |= refused
        if self.landing is not None:
            self.landing.statistic[:] = self.statistic
        if running.gate.drawn is not None:
            running.give_up(running.gate.drawn)
