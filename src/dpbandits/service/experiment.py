"""An experiment: a policy, and what the service remembers around it.

All of this runs in the thread of the owner, one call after the other, within a batch.  The commit
that holds a decision also holds the reply to it, so a client that asks again gets the same bytes.

Guarantee: no reply depends on whether a reward has come, or on its value.

* ``learned`` depends on the time of the decision and on whether it was recorded.
* A second reward gets the reply of the first, and changes nothing.
* A decision is cancelled only before it is activated, and no reward is taken before that.
* The baseline is served by dates, by what an operator did, or by released values.
"""

from __future__ import annotations

import hmac
import json
import math
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple, Self

from ..errors import ArgumentError, BudgetExhausted, UpdateError
from ..inference import Verdict
from ..policies import Policy
from ..policies.sums import what_breaks
from ..session.decisions import Decision
from ..stores import Row
from .declaration import Change, Declaration, as_json
from .devices import PUBLIC_KEY, Devices
from .export import Export
from .parties import new_key
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
from .results import Asked, Decided, Taken, Traffic, cancelled, late, reused, unknown, written
from .trail import SERVICE, Trail

RUNNING, PAUSED, ARCHIVED = "running", "paused", "archived"
_DECLARED, _STATE = b"declaration", b"state"
_MOST_MINUTES = 121
_NOT_PULLED = 2**48  # no policy has so many pulls


class Verdicts(NamedTuple):
    """Whether it is decided which arm is best; None where no verdict can be given."""

    bandit: Verdict | None
    holdout: Verdict | None  # of held-out people alone


class Experiment:
    """A policy and its surroundings.

    Attributes:
        tenant, name: who has it, and what it is called.
        declaration: as it was declared.
        policy: which its place keeps.
        status: "running", "paused" or "archived".
        tripped: when its breaker has tripped, in seconds since the epoch; None if it has not.
        finishes: when the last deadline of an archived one passes; None for others.
        finished: when it passed: then nothing private is left.  None before.
        changes: the words that the file of this process declares otherwise; they are not taken.
        devices: the side that devices and shufflers see.
        export: writes decisions for evaluation; None if nobody asked for it.
        trail: the audit trail.
        repeats: how many rewards came for decisions that had one, since this process began.
        traffic: of the last minutes, since this process began; public.
    """

    def __init__(self, tenant: str, declaration: Declaration, policy: Policy) -> None:
        self.tenant, self.declaration, self.policy = tenant, declaration, policy
        self.name = declaration.name
        self.status, self.repeats = RUNNING, 0
        self.traffic: deque[Traffic] = deque(maxlen=_MOST_MINUTES)
        self.changes: list[Change] = []
        self._verdicts: tuple[object, Verdicts] | None = None
        self.tripped: float | None = None
        self.finishes: float | None = None
        self.finished: float | None = None
        self._replies = Replies(policy, declaration.retries_for)
        self.devices = Devices(self)
        self.export: Export | None = None
        self.trail = Trail(policy.notes)
        self._restores = sum(line["what"] == "restored" for line in self.trail.lines)
        self._releases = -1  # that the breaker has looked at
        self._baseline = (
            None
            if declaration.baseline is None
            else policy._arms_by_name.number("baseline", declaration.baseline)
        )

    @property
    def verdicts(self) -> Verdicts:
        """The verdicts of now.  They take a while, and are kept until something changes them."""
        policy, held = self.policy, self.policy.holdout
        ledgers = [one.ledger.releases for one in (policy, held) if one is not None]
        known = ledgers, policy.retired, tuple(what_breaks(policy))
        if self._verdicts is None or self._verdicts[0] != known:
            several = held if policy.n_arms > 1 else None
            own = Verdicts(policy._verdict(), None if several is None else several.decided())
            self._verdicts = known, own
        return self._verdicts[1]

    # Beginning and ending ---------------------------------------------------------------------

    def begin(self, who: str, now: float) -> None:
        """Note a new experiment."""
        self.policy.notes[SERVICE, _DECLARED] = as_json(
            {"tenant": self.tenant, **self.declaration.given}
        )
        if self.policy._serving == "messages":
            self.policy.notes[SERVICE, PUBLIC_KEY] = new_key()
        self._keep_state()
        self.trail.add(now, who, "created", "")

    @classmethod
    def of(cls, policy: Policy) -> Self:
        """The experiment that its place has kept.

        Raises:
            KeyError: the policy was not served.
        """
        made = cls(*_declared(policy.notes[SERVICE, _DECLARED]), policy)
        state = json.loads(policy.notes[SERVICE, _STATE])
        made.status, made.tripped = state["status"], state["tripped"]
        made.finishes, made.finished = state["finishes"], state["finished"]
        made._releases = state["releases"]
        return made

    def _keep_state(self) -> None:
        state = {
            "status": self.status,
            "tripped": self.tripped,
            "finishes": self.finishes,
            "finished": self.finished,
            "releases": self._releases,
        }
        self.policy.notes[SERVICE, _STATE] = json.dumps(state).encode()

    @property
    def decisions(self) -> int:
        """How many decisions the policy has made; those that a batch of messages is of count."""
        rounds = self.policy.session.rounds
        return self.recorded if self.policy._serving == "messages" else rounds.pulls

    @property
    def recorded(self) -> int:
        """How many decisions were recorded; rounds that fill a retired arm's episode are none."""
        return self.policy.rounds - self.policy.session.rounds.filled

    # Decisions --------------------------------------------------------------------------------

    def decide(self, asked: Asked, now: float) -> Decided:
        """Make a decision, or repeat the reply to one."""
        self._refuse_devices()
        digest = self.digest(asked.body)
        if asked.decision_id is not None:
            known = self._replies.find(asked.decision_id)
            if known is not None:
                return self._again(known, digest, asked.decision_id)
        self.refuse_archived()
        if self._replies.is_full:
            told = (
                f"{MOST:,} decisions wait for their deadlines, and there is no room for more now."
            )
            raise Problem(503, "full", told)
        self._check_breaker(now)
        arm = self.fixed_arm(now)
        made = self._chosen(asked, now) if arm is None else self._by_default(asked, arm)
        if self.export is not None and arm is None:
            self.export.add_decision(made, asked.contexts, now)
        return self._remember(asked, made, digest, now)

    def _chosen(self, asked: Asked, now: float) -> Decision:
        given: dict[str, Any] = {
            "available": asked.available,
            "targets": asked.targets,
            "at": self._at(now),
        }
        if self.policy.max_rounds is not None:
            if asked.unit is None:
                raise ArgumentError("unit must be given: the experiment has max_rounds", "unit")
            given["user"] = asked.unit
        shown = self._shown(asked)
        try:
            return self.policy.pull(shown, **given)
        except BudgetExhausted:  # from now on it chooses by what was released, without a record
            return self.policy.pull(shown, **given)

    def _arms_in(self, contexts: Any) -> int:
        """How many arms a person was shown: a row for each, or one vector for all."""
        has_rows = bool(contexts) and isinstance(contexts[0], list)
        return len(contexts) if has_rows else self.policy.n_arms

    def _shown(self, asked: Asked) -> Any:
        sees = self.policy.sees
        for word, value in (("contexts", asked.contexts), ("advice", asked.advice)):
            if value is not None and word != sees:
                raise ArgumentError(f"{word} must not be given: {self._takes}", word)
            if value is None and word == sees:
                raise ArgumentError(f"{word} must be given: {self._takes}", word)
        return asked.advice if sees == "advice" else asked.contexts

    @property
    def _takes(self) -> str:
        sees = self.policy.sees
        return f"the experiment takes {sees}" if sees else "the experiment takes no contexts"

    def _by_default(self, asked: Asked, arm: int) -> Decision:
        """The baseline, without a record."""
        if asked.available is not None:
            named = [self.policy._arms_by_name.number("available", one) for one in asked.available]
            if arm not in named:
                told = "The experiment serves the baseline now, but available does not list it."
                raise Problem(409, "baseline-closed", told)
        name = self.policy._arms_by_name.name(arm)
        session = self.policy.session
        # The number makes each token another one, also than those of the policy.
        made = Decision(arm, 1.0, _NOT_PULLED + self._replies.aside, False, session.life, name)
        return made.sealed(session.seal)

    def fixed_arm(self, now: float) -> int | None:
        """The arm that is served whatever the policy says; None where the policy decides."""
        own = self.declaration
        early = own.starts is not None and now < own.starts
        over = own.ends is not None and now >= own.ends
        if not (early or over or self.status == PAUSED or self.tripped is not None):
            return None
        if self._baseline is None:
            why = "not-started" if early else "ended" if over else "paused"
            told = {"not-started": "has not started yet", "ended": "has ended"}.get(
                why, "is paused"
            )
            raise Problem(409, why, f"The experiment {told}, and has no baseline to serve.")
        return self._baseline

    def _check_breaker(self, now: float) -> None:
        breaker = self.declaration.breaker
        if breaker is None or self.tripped is not None or self.status == ARCHIVED:
            return
        releases = self.policy.ledger.releases
        if releases == self._releases:
            return
        self._releases = releases
        if releases < breaker.releases:
            return
        means = self.policy.estimates.means
        known = [] if means is None else [mean for mean in means.tolist() if not math.isnan(mean)]
        if known and max(known) < breaker.floor:
            self.tripped = now
            self._keep_state()
            self.trail.add(now, "breaker", "tripped", f"after {releases} releases")

    def _remember(self, asked: Asked, made: Decision, digest: bytes, now: float) -> Decided:
        named = made.token if asked.decision_id is None else asked.decision_id
        seal = self.policy.session.seal
        # Who is held out is known only now, and such a decision cannot be cancelled.
        state = DEFERRED if asked.deferred and not made.held_out else ACTIVE
        one = Remembered(
            token_bytes(made),
            digest,
            self._replies.alias(named),
            NO_UNIT if asked.unit is None else seal.alias(asked.unit),
            made.arm,
            math.nan if made.propensity is None else made.propensity,
            self._deadline(made) if made.recorded else math.nan,
            now,
            self._arms_in(asked.contexts),
            made.recorded * RECORDED | made.held_out * HELD_OUT | state,
        )
        self._replies.add(one, made.number, now)
        return self._reply(one, named)

    def _reply(self, one: Remembered, decision_id: str) -> Decided:
        return Decided(
            decision_id,
            one.text,
            one.arm,
            self.policy._arms_by_name.name(one.arm),
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
        due = self.policy.session.stream_of(made).rounds.deadlines.due
        return due[-1].point if due and due[-1].pulls is None else math.nan

    # Rewards ----------------------------------------------------------------------------------

    def reward(
        self,
        value: float | None,
        decision_id: str | None,
        token: str | None,
        arm: str | int | None,
        now: float,
    ) -> Taken:
        """Take in a reward; None if none will come."""
        self._refuse_finished()
        known, token = self._decision(decision_id, token)
        if known is not None and not known.is_active:
            raise cancelled(known) or Problem(
                409, "not-active", "The decision is deferred; activate it before its reward."
            )
        if not self._recorded(token):
            return Taken(False, "the decision was not recorded")
        if arm is not None:
            self._check_taken(arm, known)
        if not self.policy.is_open(token, at=self._at(now)):
            raise late()
        try:
            if value is None:
                self.policy.expire(token, at=self._at(now))
            else:
                self.policy.update(value, token, arm=arm, at=self._at(now))
        except UpdateError:
            self.repeats += 1
            return Taken(True)
        except BudgetExhausted:  # of policies that learn from every answer
            pass
        if self.export is not None and value is not None and self._is_of(known, arm):
            self.export.add_reward(token, value, now)
        return Taken(True)

    def _is_of(self, known: Remembered | None, arm: str | int | None) -> bool:
        """Whether a person took the arm of their decision."""
        if arm is None or known is None:
            return arm is None
        return self.policy._arms_by_name.number("arm", arm) == known.arm

    def _check_taken(self, arm: str | int, known: Remembered | None) -> None:
        """Refuse an arm that the person cannot have taken, whether a reward has come or not."""
        number = self.policy._arms_by_name.number("arm", arm)
        if known is None or number >= known.shown:  # nothing is known of very old decisions
            raise ArgumentError(f"arm must be one of those shown to the person, got {arm!r}", "arm")

    def activate(self, decision_id: str | None, token: str | None, now: float) -> Taken:
        """A deferred decision was carried out: its reward may come."""
        self._refuse_finished()
        known = self._deferred(decision_id, token)
        if not known.is_active:
            if known.is_recorded and not self.policy.is_open(known.text, at=self._at(now)):
                raise late()
            if (problem := cancelled(known)) is not None:
                raise problem
            self._replies.flag(known, ACTIVE)
        return Taken(True) if known.is_recorded else Taken(False, "the decision was not recorded")

    def cancel(self, decision_id: str | None, token: str | None, now: float) -> Taken:
        """A deferred decision was not carried out: it counts as not made."""
        self._refuse_finished()
        known = self._deferred(decision_id, token)
        if known.is_active:
            raise Problem(409, "active", "The decision is active, and cannot be cancelled.")
        if known.is_recorded and not known.is_cancelled:
            self.policy.cancel(known.text, at=self._at(now))
            if self.export is not None:
                self.export.add_cancelled(known.text, now)
        self._replies.flag(known, CANCELLED)
        return Taken(False, "the decision is cancelled")

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
            known = self._replies.find(decision_id)
            if known is not None:
                return known, known.text
            token = decision_id  # which it is where the client gave none
        assert token is not None
        try:
            own = self.policy.session.own(token)
        except UpdateError as error:
            raise (late() if "expired" in str(error) else unknown()) from None
        session = self.policy.session
        if own.life != session.life and own.life not in session.former:
            told = "The decision was lost, because the experiment was restored from a backup."
            raise Problem(410, "restored", told)
        known = self._replies.of_number(own.number) if own.recorded else None
        return known or self._replies.find(token), token

    def _recorded(self, token: str) -> bool:
        return self.policy.session.own(token).recorded

    def _refuse_devices(self) -> None:
        if self.policy._serving:
            raise Problem(
                409,
                "on-devices",
                "People's devices decide in this experiment. They need what /randomiser returns.",
            )

    # What an operator does --------------------------------------------------------------------

    def change_status(self, status: str, who: str, reason: str, now: float) -> None:
        """Pause, resume or archive; what was archived stays so.

        An archived experiment makes no decisions.  It takes rewards until the last deadline, and
        then finishes.
        """
        if status == self.status and (self.tripped is None or status != RUNNING):
            return  # a repeated request
        self.refuse_archived()
        if status == RUNNING:
            self.tripped, self._releases = None, self.policy.ledger.releases
        self.status = status
        if status == ARCHIVED:
            self.finishes = self._last_deadline(now)
        self._keep_state()
        self.trail.add(now, who, "resumed" if status == RUNNING else status, reason)
        self._finish_in_time(now)

    def _last_deadline(self, now: float) -> float:
        """When the last deadline passes, if there are no more decisions.

        It depends on decisions and clocks alone: whether rewards have come makes no difference.
        Deadlines in decisions would never pass, so these decisions have as long as repeated
        requests.
        """
        streams = [one.rounds for one in self.policy.session.streams]
        passed = all(one.deadlines.passed >= one.pulls for one in streams)
        if self.policy._serving or passed:
            return now
        last = [one.deadlines.due[-1] for one in streams if one.deadlines.due]
        if any(one.pulls is not None for one in last):
            return now + self._replies.retries_for
        return max([now, *(one.point for one in last)])

    def _finish_in_time(self, now: float) -> None:
        """Make the last release of an archived experiment, and drop all that is private."""
        if self.finishes is None or self.finished is not None or now < self.finishes:
            return
        self.policy.end()
        self._replies.clear()
        self.devices.receipts.clear()
        if self.policy.takes_reports:
            self.devices.parties.end()
        self.finished = now
        self._keep_state()
        self.trail.add(now, "service", "finished", "all deadlines have passed")

    def retire(self, arm: str | int, who: str, reason: str, now: float) -> None:
        """Serve an arm no more."""
        self.refuse_archived()
        number = self.policy._arms_by_name.number("arm", arm)
        if number == self._baseline:
            raise Problem(409, "baseline", "The baseline cannot be retired.")
        if number in self.policy.retired:
            return  # a repeated request
        self.policy.retire(arm)
        self.trail.add(now, who, "retired an arm", reason, arm=arm)

    def add(self, arm: str | int, who: str, reason: str, now: float) -> None:
        """Serve a retired arm again."""
        self.refuse_archived()
        if self.policy._arms_by_name.number("arm", arm) not in self.policy.retired:
            return  # a repeated request
        self.policy.add(arm)
        self.trail.add(now, who, "added an arm", reason, arm=arm)

    def erase(self, unit: str | int, who: str, reason: str, now: float) -> int:
        """Forget the pending decisions of a person; how many were known.

        Their rounds count as unanswered, which keeps the schedule.  What has entered a sum stays.
        """
        mine = self._replies.of_unit(self.policy.session.seal.alias(unit))
        for one in mine:
            if one.is_recorded and not one.is_cancelled:
                with suppress(UpdateError):  # its token has expired
                    self.policy.erase(one.text, at=self._at(now))
            self._replies.drop(one)
        self.trail.add(now, who, "erased pending data of a person", reason)
        return len(mine)

    def tick(self, now: float) -> None:
        """Pass deadlines by the clock; called at times that do not depend on answers."""
        self._count_traffic(now)
        self._note_restores(now)
        self._replies.forget(now)
        self.devices.receipts.forget(now)
        self._finish_in_time(now)
        policy = self.policy
        if self.finished is not None or not policy._uses_clock:
            return
        if not policy.session.has_news(now):
            return  # a commit for nothing
        with suppress(BudgetExhausted):
            self.policy.tick(now)
        self._check_breaker(now)

    def _note_restores(self, now: float) -> None:
        """Tell the trail of restores, which were made outside of the service."""
        while self._restores < self.policy.session.restored:
            self._restores += 1
            self.trail.add(now, "operator", "restored", "from a backup or another copy")

    def _count_traffic(self, now: float) -> None:
        minute = int(now // 60.0)
        if not self.traffic or self.traffic[-1].minute < minute:
            self.traffic.append(Traffic(minute, self.decisions, self.recorded))

    # Pieces -----------------------------------------------------------------------------------

    def refuse_archived(self) -> None:
        """Refuse what an archived experiment does not take."""
        if self.status == ARCHIVED:
            raise Problem(410, "archived", "The experiment is archived.")

    def _refuse_finished(self) -> None:
        if self.finished is not None:
            self.refuse_archived()

    def _at(self, now: float) -> float | None:
        return now if self.policy._uses_clock else None

    def digest(self, body: bytes) -> bytes:
        """A keyed hash of a request, by which it is recognised when it comes again."""
        return hmac.digest(self.policy.session.seal.key, b"request:" + body, "sha256")[:16]


def declaration_in(rows: Iterable[Row]) -> Declaration:
    """The declaration among the rows of a place, which is readable without loading the policy.

    Raises:
        KeyError: the policy was not served.
    """
    for row in rows:
        if (row.kind, row.key) == (SERVICE, _DECLARED):
            return _declared(row.content or b"")[1]
    raise KeyError(_DECLARED)


def _declared(note: bytes) -> tuple[str, Declaration]:
    """Tenant and declaration, as they were kept."""
    given = json.loads(note)
    return given.pop("tenant"), Declaration.read(given)
