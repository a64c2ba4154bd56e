"""What people's devices and shufflers get from an experiment, and what they send to it.

All of this runs in the thread of the owner, within a batch; only what ``opening`` returns does not.

Guarantee: what the service replies, and when it releases, depends on a report or a batch only in
whether a randomiser, or a shuffler, could have made it.

* A report that no randomiser makes is refused.  The refusal repeats no value.
* A sealed record that does not open counts as zeros (``shuffle.sealing``), and nothing tells of it.
* Whether a report of a person is learned from depends on how many they have sent.
"""

from __future__ import annotations

import hashlib
import json
import os
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, BudgetExhausted
from ..shuffle import Messages
from ..shuffle.protocols import Protocol, Shares
from ..shuffle.sealing import ServerKey, label_of, open_batch, sealed_size
from ..stores.files import sync_folder, write_anew
from ..stores.locks import locked
from ..stores.witness import state_folder
from .messages import BatchRequest, ReportRequest
from .problems import Problem
from .trail import Trail

LEARNED, ENOUGH, SENT_ALL = range(3)  # what comes of a report or a batch
WHY = {
    LEARNED: None,
    ENOUGH: "the experiment takes no more",
    SENT_ALL: "this person has sent all their reports",
}

NOTHING = Messages(np.zeros(0, np.int64), 0)


class Round(NamedTuple):
    """What devices need for the reports that they send now.

    Attributes:
        label: of the reports; it has a digest of ``text``.
        text: chooser or arm, and protocol or randomiser, as JSON.
    """

    label: str
    text: str


class Parties:
    """The side of an experiment that faces devices and shufflers.

    Args:
        name: of the experiment.
        policy: which takes reports or messages.
        public_key: with which devices seal; empty where nothing is sealed.
        trail: of the experiment, which tells of changes of the arms.

    A label never returns once it was replaced, because a shuffler makes one output for a label.
    Hence it depends on the last change of the arms, and on the life that a restored backup begins.
    """

    def __init__(self, name: str, policy: Any, public_key: bytes, trail: Trail) -> None:
        self._trail = trail
        self._name, self._policy, self._public_key = name, policy, public_key
        self._key: ServerKey | None = None
        self._known: tuple[Any, Round] | None = None

    def round(self) -> dict[str, Any]:
        """What devices need for the reports that they send now."""
        made = self._round()
        return {"label": made.label, "round": made.text, "public_key": self._told_key}

    def config(self) -> dict[str, Any]:
        """What a device is shipped with, and trusts.  Only its chooser or arm changes."""
        policy = self._policy
        told: dict[str, Any] = {
            "chooser": json.loads(policy.chooser().to_json()),
            "reports": policy.max_rounds or 1,
        }
        if policy.card.hides_contexts:
            with suppress(ArgumentError):  # only Python runs these devices
                told = json.loads(policy.device().to_json())
        elif not policy._serving:
            told |= {**policy._round()[1], "sees": policy.sees}
        if policy._serving == "messages":
            told["most"] = policy._largest_batch
        return {"name": self._name, "public_key": self._told_key, **told}

    def report(self, sent: ReportRequest) -> int:
        """Learn from a report, and return what came of it."""
        policy = self._policy
        report = policy._checked_report(sent.report)
        if sent.unit is not None and not self._counts(sent.unit):
            return SENT_ALL
        return self._learned(report)

    def opening(self, sent: BatchRequest) -> Callable[[], Messages]:
        """What opens the output of a shuffler, in any thread."""
        self._refuse_stale(sent.label)
        protocol, label = self._policy.protocol, sent.label
        total, sealed = _total(sent, protocol), _sealed(sent, protocol)
        given = protocol, self._secret(), label, self._name, total, sealed
        return lambda: Messages(open_batch(*given), int(label.partition(":")[0]))

    def batch(self, label: str, opened: Messages) -> int:
        """Learn from the output of a shuffler, and return what came of it."""
        self._refuse_stale(label)  # another may have come meanwhile
        return self._learned(opened)

    def _refuse_stale(self, label: str) -> None:
        if label != self._round().label:
            raise Problem(409, "stale", "The label must be that of the coming batch.")

    def _learned(self, sent: Any) -> int:
        try:
            return LEARNED if self._policy.receive(sent) else ENOUGH
        except BudgetExhausted:
            return ENOUGH

    def _counts(self, unit: str | int) -> bool:
        """Count a report of a person; whether they may send it."""
        session, most = self._policy.session, self._policy.max_rounds or 1
        number = session.rounds.recorded
        return session.rounds.users.count(session.seal.alias(unit), most, None, number, number)

    def _round(self) -> Round:
        policy = self._policy
        state = policy.ledger.releases, policy.session.rounds.recorded, self._trail.arms_changed
        if self._known is None or self._known[0] != state:
            try:
                number, told = policy._round()
            except ArgumentError as error:  # it has found its arm
                raise Problem(409, "stopped", f"{error}"[:1].upper() + f"{error}"[1:]) from None
            told |= {"life": policy._first_life, "arms_changed": self._trail.arms_changed}
            text = json.dumps(told, separators=(",", ":"))
            self._known = state, Round(label_of(number, text), text)
        return self._known[1]

    @property
    def _told_key(self) -> str | None:
        return b64encode(self._public_key).decode() if self._public_key else None

    def _secret(self) -> ServerKey:
        if self._key is None:
            self._key = read_key(self._public_key)
        return self._key

    def end(self) -> None:
        """Destroy the key, for good."""
        self._key = None
        if self._public_key:
            destroy_key(self._public_key)


def _total(sent: BatchRequest, protocol: Protocol) -> np.ndarray | None:
    """The sum of what the shuffler saw."""
    if not isinstance(protocol, Shares):
        if sent.sum is not None:
            raise ArgumentError("sum must be null, because devices seal whole reports", "sum")
        return None
    most = protocol.modulus - 1
    if sent.sum is None or len(sent.sum) != protocol.dimension or max(sent.sum) > most:
        what = f"{protocol.dimension} integers between 0 and {most}"
        raise ArgumentError(f"sum must have {what}", "sum")
    return np.array(sent.sum, np.int64)


def _sealed(sent: BatchRequest, protocol: Protocol) -> list[bytes]:
    size = sealed_size(protocol)
    if len(sent.sealed) != protocol.batch or any(len(one) != size for one in sent.sealed):
        what = f"{protocol.batch} sealed records of {size} bytes each"
        raise ArgumentError(f"sealed must have {what}", "sealed")
    return sent.sealed


# Keys of experiments --------------------------------------------------------------------------


def new_key() -> bytes:
    """Make a key that opens what devices seal, keep it in the state folder, and return the public
    half.
    """
    key = ServerKey.make()
    path = _path(key.public)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret = key.to_bytes()
    write_anew(path, lambda file: _write(file, secret))
    return key.public


def read_key(public: bytes) -> ServerKey:
    """The key of a public half.

    Raises:
        Problem: it is not in the state folder.
    """
    try:
        return ServerKey(_path(public).read_bytes())
    except (OSError, ArgumentError):
        raise Problem(
            503, "no-key", "The key of the experiment is not in the state folder of the service."
        ) from None


def destroy_key(public: bytes) -> None:
    """Overwrite a key, and remove it."""
    path = _path(public)
    if path.exists():
        with locked(path) as file:
            file.write(bytes(len(file.read())), 0)
            os.fsync(file.handle)
        path.unlink()
        sync_folder(path.parent)


def _path(public: bytes) -> Path:
    return state_folder() / "hpke" / hashlib.sha256(public).hexdigest()[:32]


def _write(file: IO[bytes], content: bytes) -> None:
    file.write(content)
