"""What an experiment takes from people's devices and from shufflers, and tells them."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Protocol

from ..shuffle import Messages
from .declaration import Declaration
from .messages import BatchRequest, ReportRequest, encode
from .parties import NOTHING, WHY, Parties
from .problems import Problem
from .receipts import Receipt, Receipts
from .replies import MOST
from .results import Taken, reused
from .trail import SERVICE, Trail

PUBLIC_KEY = b"public key"


class Surroundings(Protocol):
    """The experiment, as far as its devices need it."""

    name: str
    policy: Any
    declaration: Declaration
    trail: Trail

    def refuse_archived(self) -> None: ...
    def fixed_arm(self, now: float) -> int | None: ...
    def digest(self, body: bytes) -> bytes: ...


class Devices:
    """The reports and batches of an experiment; see ``parties`` for the guarantee.

    Attributes:
        receipts: of those that came.
    """

    def __init__(self, experiment: Surroundings) -> None:
        self._experiment, self._policy = experiment, experiment.policy
        self.receipts = Receipts(self._policy, experiment.declaration.retries_for)
        self._chooser: tuple[Any, str] | None = None  # and the state of which it is

    def chooser(self) -> str:
        """The public half of the policy, made once for all who ask before it changes."""
        policy, rounds = self._policy, self._policy.session.rounds
        state = policy.ledger.releases, rounds.pulls, rounds.retired
        if self._chooser is None or self._chooser[0] != state:
            self._chooser = state, policy.chooser().to_json()
        return self._chooser[1]

    @cached_property
    def parties(self) -> Parties:
        """The side that faces devices and shufflers.

        Raises:
            Problem: the policy takes rewards as they are.
        """
        if not self._policy.takes_reports:
            told = "The experiment takes rewards, and adds the noise itself. It has no devices."
            raise Problem(409, "rewards", told)
        key = self._policy.notes.get((SERVICE, PUBLIC_KEY), b"")
        return Parties(self._experiment.name, self._policy, key, self._experiment.trail)

    def told(self, what: Callable[[Parties], dict[str, Any]]) -> dict[str, Any]:
        """Something for devices and shufflers."""
        self._experiment.refuse_archived()
        return what(self.parties)

    def report(self, sent: ReportRequest, now: float) -> Taken:
        """Take in the report of a device."""
        self._refuse_unless("reports")
        take = partial(self.parties.report, sent)
        return self._received("report_id", sent.report_id, sent, take, now)

    def opening(self, sent: BatchRequest, now: float) -> Callable[[], Messages]:
        """What opens the output of a shuffler, in any thread; it changes nothing."""
        self._refuse_unless("messages")
        if self.receipts.find(sent.batch_id) is not None:  # the same reply follows
            return lambda: NOTHING
        self._refuse_closed(now)
        return self.parties.opening(sent)

    def batch(self, sent: BatchRequest, opened: Messages, now: float) -> Taken:
        """Take in the output of a shuffler, which was opened."""

        def take() -> int:
            return self.parties.batch(sent.label, opened)

        return self._received("batch_id", sent.batch_id, sent, take, now)

    def _received(
        self, word: str, id_: str, sent: Any, take: Callable[[], int], now: float
    ) -> Taken:
        """Take in something that comes with an id, or repeat the reply to it."""
        digest, known = self._experiment.digest(encode(sent)), self.receipts.find(id_)
        if known is None:
            self._refuse_closed(now)
            known = Receipt(digest, now, take())
            self.receipts.add(id_, known)
        elif not hmac.compare_digest(known.digest, digest):
            raise reused(word)
        return Taken(WHY[known.outcome] is None, WHY[known.outcome])

    def _refuse_closed(self, now: float) -> None:
        """Refuse reports and batches while the experiment takes none."""
        self._experiment.refuse_archived()
        self._experiment.fixed_arm(
            now
        )  # which refuses before the start, after the end, and in a pause
        if self.receipts.is_full:
            told = f"The experiment remembers {MOST:,} requests, and has no room for more now."
            raise Problem(503, "full", told)

    def _refuse_unless(self, serving: str) -> None:
        if self._policy._serving == serving:
            return
        takes = {
            "": "decisions and rewards",
            "reports": "reports of devices",
            "messages": "batches of a shuffler",
        }
        told = f"The experiment takes only {takes[self._policy._serving]}."
        raise Problem(409, "not-taken", told)
