"""What clients call of an experiment: decisions, and the rewards that come for them.

The commit that holds a decision also holds the reply to it, so a client that asks again gets the
same bytes.

Guarantee: no reply depends on whether a reward has come, or on its value.

* ``learned`` depends on the time of the decision and on whether it was recorded.
* A second reward gets the reply of the first, and changes nothing.
* A decision is cancelled only before it is activated, and no reward is taken before that.
"""

from __future__ import annotations

import hmac
import math
from contextlib import suppress
from typing import Any, Protocol

from ..errors import ArgumentError, BudgetExhausted, UpdateError
from ..policies import Policy
from ..session.decisions import Decision
from .declaration import Declaration
from .export import Export
from .problems import Problem
from .replies import (
    ACTIVE,
    CANCELLED,
    DEFERRED,
    HELD_OUT,
    MOST,
    NO_UNIT,
    RECORDED,
    Remembered,
    Replies,
    token_bytes,
)
from .results import Asked, Decided, Taken, cancelled, late, reused, unknown, written

_NOT_PULLED = 2**48  # no policy has so many pulls


class Surroundings(Protocol):
    """The experiment, as far as calls of clients need it."""

    policy: Policy
    declaration: Declaration
    export: Export | None

    def refuse_archived(self) -> None: ...
    def refuse_finished(self) -> None: ...
    def check_breaker(self, now: float) -> None: ...
    def fixed_arm(self, now: float) -> int | None: ...
    def digest(self, body: bytes) -> bytes: ...


class ClientCalls:
    """The decisions and rewards of an experiment.

    Attributes:
        replies: the decisions that it remembers.
        repeats: how many rewards came for decisions that had one, since this process began.
    """

    def __init__(self, experiment: Surroundings) -> None:
        self._experiment, self._policy = experiment, experiment.policy
        self.replies = Replies(experiment.policy, experiment.declaration.retries_for)
        self.repeats = 0

    # Decisions --------------------------------------------------------------------------------

    def decide(self, asked: Asked, now: float) -> Decided:
        """Make a decision, or repeat the reply to one."""
        self._refuse_devices()
        digest = self._experiment.digest(asked.body)
        if asked.decision_id is not None:
            known = self.replies.find(asked.decision_id)
            if known is not None:
                return self._again(known, digest, asked.decision_id)
        self._experiment.refuse_archived()
        if self.replies.is_full:
            told = (
                f"{MOST:,} decisions wait for their deadlines, and there is no room for more now."
            )
            raise Problem(503, "full", told)
        self._experiment.check_breaker(now)
        arm = self._experiment.fixed_arm(now)
        made = self._chosen(asked, now) if arm is None else self._by_default(asked, arm)
        if self._experiment.export is not None and arm is None:
            self._experiment.export.add_decision(made, asked.contexts, now)
        return self._remember(asked, made, digest, now)

    def _chosen(self, asked: Asked, now: float) -> Decision:
        given: dict[str, Any] = {
            "available": asked.available,
            "targets": asked.targets,
            "at": self._at(now),
        }
        if self._policy.max_rounds is not None:
            if asked.unit is None:
                raise ArgumentError("unit must be given: the experiment has max_rounds", "unit")
            given["user"] = asked.unit
        shown = self._shown(asked)
        try:
            return self._policy.pull(shown, **given)
        except BudgetExhausted:  # from now on it chooses by what was released, without a record
            return self._policy.pull(shown, **given)

    def _arms_in(self, contexts: Any) -> int:
        """How many arms a person was shown: a row for each, or one vector for all."""
        has_rows = bool(contexts) and isinstance(contexts[0], list)
        return len(contexts) if has_rows else self._policy.n_arms

    def _shown(self, asked: Asked) -> Any:
        sees = self._policy.sees
        for word, value in (("contexts", asked.contexts), ("advice", asked.advice)):
            if value is not None and word != sees:
                raise ArgumentError(f"{word} must not be given: {self._takes}", word)
            if value is None and word == sees:
                raise ArgumentError(f"{word} must be given: {self._takes}", word)
        return asked.advice if sees == "advice" else asked.contexts

    @property
    def _takes(self) -> str:
        sees = self._policy.sees
        return f"the experiment takes {sees}" if sees else "the experiment takes no contexts"

    def _by_default(self, asked: Asked, arm: int) -> Decision:
        """The baseline, without a record."""
        if asked.available is not None:
            named = [self._policy._arms_by_name.number("available", one) for one in asked.available]
            if arm not in named:
                told = "The experiment serves the baseline now, but available does not list it."
                raise Problem(409, "baseline-closed", told)
        name = self._policy._arms_by_name.name(arm)
        session = self._policy.session
        # The number makes each token another one, also than those of the policy.
        made = Decision(arm, 1.0, _NOT_PULLED + self.replies.aside, False, session.life, name)
        return made.sealed(session.seal)

    def _remember(self, asked: Asked, made: Decision, digest: bytes, now: float) -> Decided:
        named = made.token if asked.decision_id is None else asked.decision_id
        seal = self._policy.session.seal
        # Who is held out is known only now, and such a decision cannot be cancelled.
        state = DEFERRED if asked.deferred and not made.held_out else ACTIVE
        one = Remembered(
            token_bytes(made),
            digest,
            self.replies.alias(named),
            NO_UNIT if asked.unit is None else seal.alias(asked.unit),
            made.arm,
            math.nan if made.propensity is None else made.propensity,
            self._deadline(made) if made.recorded else math.nan,
            now,
            self._arms_in(asked.contexts),
            made.recorded * RECORDED | made.held_out * HELD_OUT | state,
        )
        self.replies.add(one, made.number, now)
        return self._reply(one, named)

    def _reply(self, one: Remembered, decision_id: str) -> Decided:
        return Decided(
            decision_id,
            one.text,
            one.arm,
            self._policy._arms_by_name.name(one.arm),
            None if math.isnan(one.propensity) else one.propensity,
            one.is_recorded,
            not one.flags & DEFERRED,
            None if math.isnan(one.answer_by) else written(one.answer_by),
            bool(one.flags & HELD_OUT),
        )

    def _again(self, one: Remembered, digest: bytes, decision_id: str) -> Decided:
        if not hmac.compare_digest(one.digest, digest):
            raise reused("decision_id")
        return self._reply(one, decision_id)

    def _deadline(self, made: Decision) -> float:
        """Until when an answer to the last decision may come; nan without a clock."""
        due = self._policy.session.stream_of(made).rounds.deadlines.due
        return due[-1].point if due and due[-1].pulls is None else math.nan

    # What becomes of decisions ----------------------------------------------------------------

    def reward(
        self,
        value: float | None,
        decision_id: str | None,
        token: str | None,
        arm: str | int | None,
        now: float,
    ) -> Taken:
        """Take in a reward; None if none will come."""
        self._experiment.refuse_finished()
        known, token = self._decision(decision_id, token)
        if known is not None and not known.is_active:
            raise cancelled(known) or Problem(
                409, "not-active", "The decision is deferred; activate it before its reward."
            )
        if not self._recorded(token):
            return Taken(False, "the decision was not recorded")
        if arm is not None:
            self._check_taken(arm, known)
        if not self._policy.is_open(token, at=self._at(now)):
            raise late()
        try:
            if value is None:
                self._policy.expire(token, at=self._at(now))
            else:
                self._policy.update(value, token, arm=arm, at=self._at(now))
        except UpdateError:
            self.repeats += 1
            return Taken(True)
        except BudgetExhausted:  # of policies that learn from every answer
            pass
        if self._experiment.export is not None and value is not None and self._is_of(known, arm):
            self._experiment.export.add_reward(token, value, now)
        return Taken(True)

    def _is_of(self, known: Remembered | None, arm: str | int | None) -> bool:
        """Whether a person took the arm of their decision."""
        if arm is None or known is None:
            return arm is None
        return self._policy._arms_by_name.number("arm", arm) == known.arm

    def _check_taken(self, arm: str | int, known: Remembered | None) -> None:
        """Refuse an arm that the person cannot have taken, whether a reward has come or not."""
        number = self._policy._arms_by_name.number("arm", arm)
        if known is None or number >= known.shown:  # nothing is known of very old decisions
            raise ArgumentError(f"arm must be one of those shown to the person, got {arm!r}", "arm")

    def activate(self, decision_id: str | None, token: str | None, now: float) -> Taken:
        """A deferred decision was carried out: its reward may come."""
        self._experiment.refuse_finished()
        known = self._deferred(decision_id, token)
        if not known.is_active:
            if known.is_recorded and not self._policy.is_open(known.text, at=self._at(now)):
                raise late()
            if (problem := cancelled(known)) is not None:
                raise problem
            self.replies.flag(known, ACTIVE)
        return Taken(True) if known.is_recorded else Taken(False, "the decision was not recorded")

    def cancel(self, decision_id: str | None, token: str | None, now: float) -> Taken:
        """A deferred decision was not carried out: it counts as not made."""
        self._experiment.refuse_finished()
        known = self._deferred(decision_id, token)
        if known.is_active:
            raise Problem(409, "active", "The decision is active, and cannot be cancelled.")
        if known.is_recorded and not known.is_cancelled:
            self._policy.cancel(known.text, at=self._at(now))
            if self._experiment.export is not None:
                self._experiment.export.add_cancelled(known.text, now)
        self.replies.flag(known, CANCELLED)
        return Taken(False, "the decision is cancelled")

    def erase(self, unit: str | int, now: float) -> int:
        """Forget the pending decisions of a person; how many were known.

        Their rounds count as unanswered, which keeps the schedule.  What has entered a sum stays.
        """
        mine = self.replies.of_unit(self._policy.session.seal.alias(unit))
        for one in mine:
            if one.is_recorded and not one.is_cancelled:
                with suppress(UpdateError):  # its token has expired
                    self._policy.erase(one.text, at=self._at(now))
            self.replies.drop(one)
        return len(mine)

    # Pieces -----------------------------------------------------------------------------------

    def _deferred(self, decision_id: str | None, token: str | None) -> Remembered:
        known, _ = self._decision(decision_id, token)
        if known is None:
            raise unknown()
        return known

    def _decision(
        self, decision_id: str | None, token: str | None
    ) -> tuple[Remembered | None, str]:
        """What is remembered of a decision, and its token."""
        if (decision_id is None) == (token is None):
            got = "both" if token else "neither"
            told = f"The body must have either decision_id or token, and it has {got}."
            raise Problem(422, "invalid", told)
        if decision_id is not None:
            known = self.replies.find(decision_id)
            if known is not None:
                return known, known.text
            token = decision_id  # which it is where the client gave none
        assert token is not None
        try:
            own = self._policy.session.own(token)
        except UpdateError as error:
            raise (late() if "expired" in str(error) else unknown()) from None
        session = self._policy.session
        if own.life != session.life and own.life not in session.former:
            told = "The decision was lost, because the experiment was restored from a backup."
            raise Problem(410, "restored", told)
        known = self.replies.of_number(own.number) if own.recorded else None
        return known or self.replies.find(token), token

    def _recorded(self, token: str) -> bool:
        return self._policy.session.own(token).recorded

    def _refuse_devices(self) -> None:
        if self._policy._serving:
            raise Problem(
                409,
                "on-devices",
                "People's devices decide in this experiment. They need what /randomiser returns.",
            )

    def _at(self, now: float) -> float | None:
        return now if self._policy._uses_clock else None
