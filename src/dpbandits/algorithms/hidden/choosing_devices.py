"""Programs for people's devices: they choose, and send reports with noise, or messages.

Features, arm and reward stay on the device.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError
from ...policies import Chooser
from ...privacy.randomiser import VectorRandomiser
from ...shuffle import Messages, Randomizer
from ...validation import number_or_nan
from ..bases.contextual import within_bound
from .kernels import add_record, choose_divergent, choose_optimistic, choose_sampled
from .model import Params, statistic_size

# Parameters that a device in JavaScript is told.
_TOLD = ("dimension", "n_arms", "n_models", "context_bound", "weight", "diagonal", "grid")
# The exploration of a kernel, and its parameters.
_EXPLORATIONS: dict[Any, tuple[str, tuple[str, ...]]] = {
    choose_optimistic: ("Optimism", ()),
    choose_sampled: ("Sampling", ("radius_scale", "subgaussian")),
    choose_divergent: (
        "Divergence",
        ("subgaussian", "share", "margin", "middle", "half", "horizon"),
    ),
}
# Files that the script is made of.
_PARTS = (
    "noise",
    "messages",
    "exploration",
    "gradients",
    "device",
    "rewards",
    "sealing",
    "connecting",
)


class Device:
    """Program for a person's device: chooses with the server's chooser, and reports with noise.

    Features, arm and reward stay here, and are forgotten with the report.

    ``HiddenLinearLocal.device()`` makes it.  A device always sends, at a time that does not depend
    on the reward.  If no reward came it sends ``report()``: silence would reveal that.

    Args:
        chooser: the public half of the policy.
        params: of its algorithm.
        randomise: the wall.
        reward_range: rewards outside are clipped to it.
        default_reward: reported if no reward came, or one that is not a number.
        reports: maximal number of reports of its person, over its whole life.  ``left`` counts them
            down; a copy has a counter of its own, so never use an older copy again.
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
        if isinstance(chooser, str):
            chooser = Chooser.from_json(chooser, like=self.chooser)
        if chooser.arguments != self.chooser.arguments:
            raise ArgumentError("chooser must come from the policy that made the device", "chooser")
        self.chooser = chooser

    @staticmethod
    def javascript() -> str:
        """These devices as a script for browsers, Node and workers, which defines
        ``dpbandits.Device``.  From the same random bytes it makes the same arms, reports and
        messages.
        """
        folder = resources.files(__package__).joinpath("javascript")
        whole, *parts = (
            folder.joinpath(f"{name}.js").read_text("utf-8") for name in ("whole", *_PARTS)
        )
        return whole.replace("// PARTS\n", "\n".join(parts))

    def to_json(self) -> str:
        """All data for a device in JavaScript, including the chooser; none of a person.

        Raises:
            ArgumentError: the noise is simulated.
        """
        return json.dumps(
            {
                **self._model(),
                "reports": self.left,
                "reward_range": self._reward_range,
                "default_reward": self._default_reward,
                "chooser": json.loads(self.chooser.to_json()),
                **self._wall(),
            }
        )

    def _model(self) -> dict[str, Any]:
        """How a device in JavaScript chooses, and what it makes of a record."""
        kind, parameters = _EXPLORATIONS[self.chooser.kernels.choose]
        return {**self._told(_TOLD), "explore": {"class": kind, **self._told(parameters)}}

    def _told(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: getattr(self._params, name) for name in names}

    def choose(self, contexts: ArrayLike) -> int:
        """The arm for features of every arm, shape (K, d), or as ``pull`` takes them.

        Raises:
            ArgumentError: the contexts have another shape.
        """
        # First: if the choice fails, the next report is not that of the person before.
        self._features = None
        arm, x = self.chooser.decide(contexts)
        # Scaled to the device's own bound, to which its noise is calibrated.
        self._arm, self._features = arm, np.empty((1, x.size))
        within_bound(self._params, x[np.newaxis], self._features, None)
        return arm

    def report(self, reward: float | None = None) -> Any:
        """Report the last choice and its reward, with noise.

        The report holds only noise if there was no choice since the last report, or no report is
        left.  Hence there always is a report to send.  An entry that is no number counts as no
        reward: an error would reveal it.

        Returns:
            The report that the policy's side takes.  Of ``HiddenLinearLocal`` it is an array, of
            the length in ``receive``.  Of ``HiddenLinearShuffled`` it is ``Messages`` for its
            shuffler.
        """
        value, (lo, hi) = number_or_nan(reward), self._reward_range
        value = self._default_reward if math.isnan(value) else min(max(value, lo), hi)
        arm, features = self._arm, self._features
        # Forgotten before anything may fail, so that no record is reported twice.
        self._arm, self._features = 0, None
        if features is not None and self.left <= 0:
            arm, features, value = 0, None, self._default_reward
        elif features is not None:
            self.left -= 1
        x = np.zeros(self._params.dimension) if features is None else features[0]
        return self._sent(self._record(arm, x, value))

    def _record(self, arm: int, x: np.ndarray, reward: float) -> np.ndarray:
        """The record before randomisation, shape (M (d + d (d + 1) / 2),)."""
        record = np.zeros(self._params.n_models * statistic_size(self._params.dimension))
        add_record(self._params, record, arm, x, reward)
        return record

    def _sent(self, record: np.ndarray) -> Any:
        return self._randomise(record)

    def _wall(self) -> dict[str, Any]:
        """What makes the noise of a device in JavaScript."""
        assert isinstance(self._randomise, VectorRandomiser)
        return self._randomise.to_dict(self._params.dimension)


class ShuffledDevice(Device):
    """Device of ``HiddenLinearShuffled``: it reports messages, labelled by the chooser that it
    used.
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

    def choose(self, contexts: ArrayLike) -> int:
        # The chooser that chooses labels the report, even if the device gets another in between.
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
