"""What a person's device runs under local trust: it chooses for her, and reports."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import UpdateError
from ...policies import Chooser
from ...privacy.randomiser import VectorRandomiser
from ...validation import number
from .model import Params, contribution


class Device:
    """Chooses with what the server has published, and turns what came of it into a report.

    Features, arm and reward stay here, and are forgotten with the report.

    ``LinUCBLDP.device()`` makes it.  A device always sends, at a time that owes nothing to the
    reward, and ``report()`` where none came: silence would tell.

    Args:
        chooser: the public half of the policy.
        params: of its algorithm.
        randomise: the wall.
        reward_range: rewards outside are clipped to it.
        default_reward: what is reported where no reward came, or one that is not a number.
    """

    def __init__(
        self,
        chooser: Chooser,
        params: Params,
        randomise: VectorRandomiser,
        reward_range: tuple[float, float],
        default_reward: float,
    ) -> None:
        self.chooser, self._params, self._randomise = chooser, params, randomise
        self._reward_range, self._default_reward = reward_range, default_reward
        self._features: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"<Device with release {self.chooser.release}, contents not shown>"

    def choose(self, contexts: Any) -> int:
        """The arm for features of every arm, shape (K, d).

        Raises:
            ArgumentError: the contexts have another shape.
        """
        arm, self._features = self.chooser.decide(contexts)
        return arm

    def report(self, reward: float | None = None) -> np.ndarray:
        """The report of what was chosen and came of it, shape (d + d (d + 1) / 2,).

        Raises:
            UpdateError: nothing was chosen since the last report.
            ArgumentError: the reward is no number.
        """
        value = math.nan if reward is None else number("reward", reward)
        if self._features is None:
            raise UpdateError("report needs a choice before it")
        lo, hi = self._reward_range
        value = self._default_reward if math.isnan(value) else min(max(value, lo), hi)
        features, self._features = self._features, None
        return self._randomise(contribution(self._params, features, value))
