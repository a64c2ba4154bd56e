"""An experiment: a policy, and what the service remembers around it.

All of this runs in the thread of the owner, one call after the other, within a batch.
``client_calls`` serves clients, and ``devices`` serves devices and shufflers.

Guarantee: no reply depends on whether a reward has come, or on its value.  The baseline is served
by dates, by what an operator did, or by released values.
"""

from __future__ import annotations

import hmac
import json
import math
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple, Self

from ..errors import BudgetExhausted
from ..inference import Verdict
from ..policies import Policy
from ..policies.sums import what_breaks
from ..stores import Row
from .client_calls import ClientCalls
from .declaration import Change, Declaration, as_json
from .devices import PUBLIC_KEY, Devices
from .export import Export
from .parties import new_key
from .problems import Problem
from .results import Traffic
from .trail import SERVICE, Trail

RUNNING, PAUSED, ARCHIVED = "running", "paused", "archived"
_DECLARED, _STATE = b"declaration", b"state"
_MOST_MINUTES = 121


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
        clients: the side that clients see: decisions and rewards.
        devices: the side that devices and shufflers see.
        export: writes decisions for evaluation; None if nobody asked for it.
        trail: the audit trail.
        traffic: of the last minutes, since this process began; public.
    """

    def __init__(self, tenant: str, declaration: Declaration, policy: Policy) -> None:
        self.tenant, self.declaration, self.policy = tenant, declaration, policy
        self.name = declaration.name
        self.status = RUNNING
        self.traffic: deque[Traffic] = deque(maxlen=_MOST_MINUTES)
        self.changes: list[Change] = []
        self._verdicts: tuple[object, Verdicts] | None = None
        self.tripped: float | None = None
        self.finishes: float | None = None
        self.finished: float | None = None
        self.export: Export | None = None
        self.clients = ClientCalls(self)
        self.devices = Devices(self)
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

    # What is served ---------------------------------------------------------------------------

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

    def check_breaker(self, now: float) -> None:
        """Trip the breaker if a release says that all arms are below its floor."""
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
            return now + self.declaration.retries_for
        return max([now, *(one.point for one in last)])

    def _finish_in_time(self, now: float) -> None:
        """Make the last release of an archived experiment, and drop all that is private."""
        if self.finishes is None or self.finished is not None or now < self.finishes:
            return
        self.policy.end()
        self.clients.replies.clear()
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
        """Forget the pending decisions of a person; how many were known."""
        known = self.clients.erase(unit, now)
        self.trail.add(now, who, "erased pending data of a person", reason)
        return known

    def tick(self, now: float) -> None:
        """Pass deadlines by the clock; called at times that do not depend on answers."""
        self._count_traffic(now)
        self._note_restores(now)
        self.clients.replies.forget(now)
        self.devices.receipts.forget(now)
        self._finish_in_time(now)
        policy = self.policy
        if self.finished is not None or not policy._uses_clock:
            return
        if not policy.session.has_news(now):
            return  # a commit for nothing
        with suppress(BudgetExhausted):
            self.policy.tick(now)
        self.check_breaker(now)

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

    def refuse_finished(self) -> None:
        """Refuse what a finished experiment does not take."""
        if self.finished is not None:
            self.refuse_archived()

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
