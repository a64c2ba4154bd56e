"""Local privacy: the wall stands where the reward arises, on the person's side."""

from __future__ import annotations

from typing import Any, ClassVar

from ...constraints import Constraints, Flag
from ...errors import ArgumentError
from ...policies import Policy
from ...privacy.randomiser import Randomiser


class LocalPolicy(Policy):
    """Base class of policies that learn from rewards that were randomised one by one."""

    constraints: ClassVar[Constraints] = {"reports": Flag()}

    def randomiser(self) -> Randomiser:
        """Randomiser that a person's device applies to a reward, with this policy's channel, range
        and noise.

        Raises:
            ArgumentError: the policy has no budget.
        """
        if self.budget is None:
            raise ArgumentError("budget must not be None for a randomiser")
        lo, hi = self.reward_range
        return Randomiser(
            self.channel,
            (lo, hi),
            noise=self.config["noise"],
            grid=self.config["grid"],
            default_reward=self.default_reward,
            seed=self.config["seed"],
        )

    def _round(self) -> tuple[int, dict[str, Any]]:
        return self.ledger.releases, {"randomiser": self.randomiser().to_dict()}
