"""A policy at work: its state, and the steps that all its rounds share."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import ArgumentError, BudgetExhausted
from ..privacy.ledger import WHOLE
from ..protocol import Card, own_alone
from ..stores import Life, User
from ..stores.tokens import Seal
from .choices import Choices
from .decisions import Decision
from .exchange import Exchange
from .gate import Gate
from .intake import Intake
from .open_arms import Arms
from .options import Settings
from .rounds import Choice, Pending, Rounds
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

    @cached_property
    def choices(self) -> Choices:
        return Choices(self.gate, self.state, self.card.randomised)

    def coming(self) -> tuple[Choice, int]:
        """The coming choice without contexts, and for how many rounds it stands."""
        return self.choices.fresh(0, self.arms.open(None, self.rounds.retired, self.arms.count))

    def counts(self, user: User | None, arm: int) -> bool:
        """Whether a round of the arm is recorded, which then counts against its user."""
        most = self.settings.max_rounds
        if most is None:
            return True
        assert user is not None  # or ``pull`` was refused
        part = arm if self.gate.statistic.parts else WHOLE
        return self.rounds.users.count(user, most, None if self.card.learns_at_once else part)

    def pending(self, choice: Choice, weights: Any, shown: Any) -> Pending:
        """A recorded round, which waits for its answer."""
        # Of the other arms nothing is asked later, unless a person may openly take one.
        return Pending(choice.arm, weights, shown if self.settings.choices_public else 0)

    def release(self) -> None:
        """Release the episode that is over."""
        self.refuse_overspending()
        self.gate.release(self.state, self.rounds.recorded, self.rounds.users.announcement)
        self.released(self.state.memo)

    def refuse_overspending(self) -> None:
        """Refuse the coming release where it may not be made; then nothing more is recorded."""
        rounds = self.rounds
        try:
            self.gate.refuse_overspending(self.state, rounds.recorded, len(rounds.flights))
        except (BudgetExhausted, ArgumentError):
            rounds.exhausted = True
            raise

    def released(self, memo: np.ndarray) -> None:
        """Share what was released just now, and stop where a search has found its arm."""
        rounds, found = self.rounds, self.choices.found()
        if self.gate.kernels.absorb is not own_alone:
            self.exchange.share(self.life.name, memo, self.state.wall.release)
        rounds.users.announced()
        if found is not None:
            rounds.exhausted, rounds.current_choice = True, found
            # Never released, as what was open then.
            rounds.flights, rounds.pending = [], {}
            rounds.close(rounds.pulls)


class AllOrNothing:
    """Undo a step that fails or is interrupted.  A second interrupt during that is not covered."""

    def __init__(self, running: Running) -> None:
        self.running, self.shared = running, len(running.exchange.shared)
        self.state, self.rounds = running.state.copied(), running.rounds.copied()

    def __enter__(self) -> None: ...

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if error is None:
            return
        running, rounds = self.running, self.rounds
        if isinstance(error, BudgetExhausted | ArgumentError):  # which it stays
            rounds.exhausted = running.rounds.exhausted
        # First: values of a release that is made anew would be those of a second one.
        del running.exchange.shared[self.shared :]
        running.state.restore(self.state)
        running.gate.forget()
        running.rounds = rounds
