"""What a person's device runs under local trust: it chooses for her, and reports."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...policies import Chooser
from ...privacy.randomiser import VectorRandomiser
from ...shuffle import Messages, Randomizer
from ...validation import number_or_nan
from ..bases.contextual import within_bound
from .model import Params, add_record, choose_optimistic, statistic_size

# Parameters that a device in JavaScript is told.
_TOLD = ("dimension", "n_arms", "n_models", "context_bound", "weight", "diagonal", "grid")


class Device:
    """Chooses with what the server has published, and turns what came of it into a report.

    Features, arm and reward stay here, and are forgotten with the report.

    ``HiddenLinearLocal.device()`` makes it.  A device always sends, at a time that owes nothing to
    the reward, and ``report()`` where none came: silence would tell.

    Args:
        chooser: the public half of the policy.
        params: of its algorithm.
        randomise: the wall.
        reward_range: rewards outside are clipped to it.
        default_reward: what is reported where no reward came, or one that is not a number.
        reports: how many may be of its person, over its whole life.  ``left`` counts them down; a
            copy counts for itself, so that no older one may be used again.
    """

    def __init__(
        self,
        chooser: Chooser,
        params: Params,
        randomise: Callable[[np.ndarray], Any],
        reward_range: tuple[float, float],
        default_reward: float,
        reports: int,
    ) -> None:
        self.chooser, self._params, self._randomise = chooser, params, randomise
        self._reward_range, self._default_reward = reward_range, default_reward
        self.left = reports  # of these
        self._arm = 0
        self._features: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"<Device with release {self.chooser.release}, contents not shown>"

    def use(self, chooser: Chooser | str) -> None:
        """Choose with this chooser, or its JSON, from now on.

        Raises:
            ArgumentError: it is that of another policy, or no chooser.
        """
        chooser = Chooser.from_json(chooser) if isinstance(chooser, str) else chooser
        if chooser.arguments != self.chooser.arguments:
            raise ArgumentError("chooser must be of the policy that made the device", "chooser")
        self.chooser = chooser

    @staticmethod
    def javascript() -> str:
        """The same devices as a script for browsers, Node and workers, which defines
        ``dpbandits.Device``; of the same bytes it makes the same arms, reports and messages.
        """
        return resources.files(__package__).joinpath("device.js").read_text("utf-8")

    def to_json(self) -> str:
        """All that a device in JavaScript is made of, the chooser included; nothing of a person.

        Raises:
            ArgumentError: the noise is simulated, an arm is retired, or arms are not those of
                highest upper confidence bound (Thompson sampling, IMED).
        """
        if self.chooser.retired:
            raise ArgumentError("a device in JavaScript chooses among all arms")
        if self.chooser.kernels.choose is not choose_optimistic:
            raise ArgumentError("a device in JavaScript plays upper confidence bounds only")
        return json.dumps(
            {
                **{name: getattr(self._params, name) for name in _TOLD},
                "reports": self.left,
                "reward_range": self._reward_range,
                "default_reward": self._default_reward,
                "chooser": json.loads(self.chooser.to_json()),
                **self._wall(),
            }
        )

    def choose(self, contexts: Any) -> int:
        """The arm for features of every arm, shape (K, d), or as ``pull`` takes them.

        Raises:
            ArgumentError: the contexts have another shape.
        """
        self._features = None
        arm, x = self.chooser.decide(contexts)
        # By the device's own bound, on which its noise rests.
        self._arm, self._features = arm, np.empty((1, x.size))
        within_bound(self._params, x[np.newaxis], self._features, None)
        return arm

    def report(self, reward: float | None = None) -> Any:
        """The report of what was chosen and came of it, as long as ``HiddenLinearLocal.receive``
        says; of nobody if nothing was chosen since the last report, or all reports of its person
        have been sent, so that there always is something to send.

        What is no number counts as no reward: an error would tell of it.
        """
        value, (lo, hi) = number_or_nan(reward), self._reward_range
        value = self._default_reward if math.isnan(value) else min(max(value, lo), hi)
        arm, features = self._arm, self._features
        self._arm, self._features = 0, None
        if features is not None and self.left == 0:
            arm, features, value = 0, None, self._default_reward
        elif features is not None:
            self.left -= 1
        x = np.zeros(self._params.dimension) if features is None else features[0]
        return self._sent(self._record(arm, x, value))

    def _record(self, arm: int, x: np.ndarray, reward: float) -> np.ndarray:
        """What is randomised, shape (M (d + d (d + 1) / 2),)."""
        record = np.zeros(self._params.n_models * statistic_size(self._params.dimension))
        add_record(self._params, record, arm, x, reward)
        return record

    def _sent(self, record: np.ndarray) -> Any:
        return self._randomise(record)

    def _wall(self) -> dict[str, Any]:
        """What makes the noise of a device in JavaScript."""
        assert isinstance(self._randomise, VectorRandomiser)
        # In grid units, as numerator and denominator, which no float could hold.
        sigma_squared = self._randomise.sigma_squared.as_integer_ratio()
        return {"sigma_squared": [str(part) for part in sigma_squared]}


class ShuffledDevice(Device):
    """The same in the shuffle model: a report are messages for the shuffler, labelled by the
    chooser that was used.

    ``HiddenLinearShuffled.device()`` makes it.
    """

    def __init__(
        self,
        chooser: Chooser,
        params: Params,
        randomizer: Randomizer,
        reward_range: tuple[float, float],
        default_reward: float,
        reports: int,
    ) -> None:
        super().__init__(chooser, params, randomizer.encode, reward_range, default_reward, reports)
        self._randomizer, self._version = randomizer, chooser.release

    def choose(self, contexts: Any) -> int:
        self._version = self.chooser.release
        return super().choose(contexts)

    def report(self, reward: float | None = None) -> Any:
        if self._features is None:  # of nobody, who chose by nothing
            self._version = self.chooser.release
        return super().report(reward)

    def _sent(self, record: np.ndarray) -> Messages:
        return replace(self._randomise(record / self._params.diagonal), version=self._version)

    def _wall(self) -> dict[str, Any]:
        return {"protocol": self._randomizer.to_dict()}
