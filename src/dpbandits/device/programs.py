"""What a device does by itself, for each kind of policy: it chooses an arm, and makes a report."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from uuid import uuid4

from ..algorithms.bases.shuffled import RewardDevice
from ..errors import ArgumentError
from ..policies.registry import arguments_of_today, find
from ..shuffle import Messages, Protocol, Randomizer
from ..shuffle.sealing import seal, seal_record
from ..validation import integer

Ask = Callable[[str, dict[str, Any]], Any]


class Config:
    """What a device was shipped with, and trusts.

    Attributes:
        name: of the experiment.
        policy: as the experiment has it, without any record.
        chooser: the public half when the config was made.
        reports: how many true reports a person may send.
        most: people of a batch, with shuffle trust.

    Args:
        text: what the service gives at ``/config``.

    Raises:
        ArgumentError: it is something else.
    """

    def __init__(self, text: str) -> None:
        try:
            read = json.loads(text)
            self.name, self.chooser = str(read["name"]), read["chooser"]
            given = arguments_of_today(self.chooser["arguments"])
            self.policy: Any = find(given.pop("class"))(**given)
            self.reports = int(read["reports"])
            self.most, self._public_key = 0, b""
            if self.policy._serving == "messages":
                self.most = int(read.get("most", self.policy._largest_batch))
                self._public_key = b64decode(read["public_key"], validate=True)
                seal(self._public_key, "", self.name, b"")  # which refuses anything but a key
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ArgumentError(
                "config must be the unchanged reply of the service to GET /config, got other text",
                "config",
            ) from error
        most = self.policy.max_rounds or 1
        if not 0 < self.reports <= most or not self.policy.takes_reports:
            raise ArgumentError(
                "config must be of a policy that takes reports or messages, and its 'reports' must"
                f" be an integer from 1 to {most}, got {self.reports}",
                "config",
            )
        if self.policy.config["noise"] != "secure":
            raise ArgumentError("config must be of a policy with noise='secure'", "config")

    def sealed(self, protocol: Any, messages: Messages, label: str) -> dict[str, Any]:
        """The body for a shuffler of one person's messages."""
        given = self._public_key, label, self.name
        masked, sealed = seal_record(protocol, messages.values[0], *given)
        return {
            "label": label,
            "masked": None if masked is None else masked.tolist(),
            "sealed": b64encode(sealed).decode(),
        }


class Program(ABC):
    """What a device does by itself.

    Attributes:
        sends_to: the last part of the address of its reports.
        decides: whether it chooses the arm, with what the server describes.
        left: how many true reports the person may still send.

    Args:
        config: what it was shipped with.
        left: as it is now.
    """

    sends_to: ClassVar[str]
    decides: ClassVar[bool] = True
    left: int

    @abstractmethod
    def __init__(self, config: Config, left: int) -> None: ...

    @abstractmethod
    def use(self, label: str, told: Mapping[str, Any]) -> None:
        """Take in the present round, as the server describes it.

        Raises:
            ArgumentError: the config does not allow it.
        """

    @abstractmethod
    def choose(self, contexts: Any, ask: Ask) -> int:
        """The arm for the person; ``ask`` sends a request to the server."""

    @abstractmethod
    def report(self, reward: float | None) -> dict[str, Any]:
        """The body of the report on the last choice, or of one that tells of nobody."""


class Reporting(Program):
    """Has private contexts, and reports to the server."""

    sends_to = "reports"

    def __init__(self, config: Config, left: int) -> None:
        self._config, self._device = config, config.policy.device()
        self.left = self._device.left = left
        self._device.use(json.dumps(config.chooser))

    def use(self, label: str, told: Mapping[str, Any]) -> None:
        self._device.use(json.dumps(told["chooser"]))

    def choose(self, contexts: Any, ask: Ask) -> int:
        return int(self._device.choose(contexts))

    def report(self, reward: float | None) -> dict[str, Any]:
        return {"report_id": str(uuid4()), "report": self._made(reward).tolist()}

    def _made(self, reward: float | None) -> Any:
        made = self._device.report(reward)
        self.left = self._device.left
        return made


class Sealing(Reporting):
    """Has private contexts, and reports through a shuffler."""

    sends_to = "messages"
    _label = _of_choice = ""

    def use(self, label: str, told: Mapping[str, Any]) -> None:
        _refuse_other(self._config.policy.protocol, told)
        super().use(label, told)
        self._label = label

    def choose(self, contexts: Any, ask: Ask) -> int:
        self._of_choice = ""  # as the choice before, which is over if this one fails
        arm = super().choose(contexts, ask)
        self._of_choice = self._label
        return arm

    def report(self, reward: float | None) -> dict[str, Any]:
        label, self._of_choice = self._of_choice or self._label, ""
        return self._config.sealed(self._config.policy.protocol, self._made(reward), label)


class _Rewarding(Program):
    """Reports rewards of arms that are no secret."""

    _chosen = False

    def __init__(self, config: Config, left: int) -> None:
        self._config, self.left = config, left

    def _counted(self, reward: float | None) -> float | None:
        """What may be reported of a reward; None for nothing."""
        chosen, self._chosen = self._chosen, False
        if not chosen or self.left <= 0:
            return None
        self.left -= 1
        return reward


class SealingRewards(_Rewarding):
    """Plays the arm of a batch, and reports the reward through a shuffler."""

    sends_to = "messages"

    def use(self, label: str, told: Mapping[str, Any]) -> None:
        policy = self._config.policy
        protocol = policy.protocol_for(integer("batch", told["batch"], 1, self._config.most))
        _refuse_other(protocol, told)
        arm = integer("arm", told["arm"], 0, policy.n_arms - 1)
        randomizer = Randomizer(protocol, noise=policy.config["noise"])
        device = RewardDevice(arm, randomizer, policy.reward_range, policy.default_reward)
        self._present = label, device

    def choose(self, contexts: Any, ask: Ask) -> int:
        if contexts is not None:
            raise ArgumentError("contexts must not be given: the policy takes none", "contexts")
        self._of_choice, self._chosen = self._present, True
        return self._present[1].arm

    def report(self, reward: float | None) -> dict[str, Any]:
        label, device = self._of_choice if self._chosen else self._present
        messages = device.report(self._counted(reward))
        return self._config.sealed(device.randomizer.protocol, messages, label)


class Answering(_Rewarding):
    """Plays the arm that the server chooses, and reports the reward to the server."""

    sends_to, decides = "rewards", False

    def __init__(self, config: Config, left: int) -> None:
        super().__init__(config, left)
        self._randomise, self._decision_id = config.policy.randomiser(), ""

    def use(self, label: str, told: Mapping[str, Any]) -> None:
        """The server describes nothing that the config has not."""

    def choose(self, contexts: Any, ask: Ask) -> int:
        self._chosen, sees = False, self._config.policy.sees
        if (contexts is None) == bool(sees):
            what = f"be given: the policy takes {sees}" if sees else "not be given: it takes none"
            raise ArgumentError(f"contexts must {what}", "contexts")
        decision_id = str(uuid4())
        told = ask("decisions", {"decision_id": decision_id, **({sees: contexts} if sees else {})})
        self._decision_id, self._chosen = decision_id, True
        return int(told["arm"])

    def report(self, reward: float | None) -> dict[str, Any]:
        if not self._chosen:
            raise ArgumentError(
                "choose() must be called before report(), because the server chooses the arm that"
                " the reward belongs to"
            )
        return {"decision_id": self._decision_id, "reward": self._randomise(self._counted(reward))}


def program_of(config: Config, left: int) -> Program:
    """The program for a policy."""
    policy = config.policy
    if not policy._serving:
        return Answering(config, left)
    if policy._serving == "reports":
        return Reporting(config, left)
    return (Sealing if policy.card.hides_contexts else SealingRewards)(config, left)


def _refuse_other(protocol: Protocol, told: Mapping[str, Any]) -> None:
    """Refuse a protocol that is not the config's for so many people."""
    if told["protocol"] != json.loads(json.dumps(protocol.to_dict())):
        raise ArgumentError(
            "protocol must equal the protocol in config, but the server described another one"
        )
