"""Servers of people's devices, which choose, and send reports that they have randomised."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...errors import ArgumentError
from ...privacy.budgets import Budget
from ...privacy.randomiser import VectorRandomiser
from ...session.options import WILDEST
from ...tables import as_numbers
from ...validation import flag
from .device import Device
from .policy import PrivateContextPolicy


class ReportPolicy(PrivateContextPolicy):
    """The base of policies that learn from randomised reports.

    A subclass sets the kernels of a server where it is one, before this constructor runs.
    """

    _devices = 0
    _device: ClassVar[type[Device]] = Device

    def __init__(
        self, config: dict[str, Any], *, budget: Budget | None, reports: bool, **options: Any
    ) -> None:
        super().__init__({**config, "reports": flag("reports", reports)}, budget=budget, **options)
        if reports and budget is not None:
            self._randomiser(0)  # which may refuse the grid

    def device(self) -> Device:
        """What a person's device runs, with all that has been published by now.

        For a device that does not trust the server, make it of a policy of the device's own, with
        the same arguments, and let it ``use`` the choosers that the server sends as JSON.

        Raises:
            ArgumentError: the policy has no budget.
        """
        if self.budget is None:
            raise ArgumentError("budget must not be None for a device", "budget")
        self._devices += 1
        return self._device(
            self.chooser(),
            self.params,
            self._randomiser(self._devices),
            self.reward_range,
            self.default_reward,
            self.max_rounds or 1,
        )

    def _randomiser(self, number: int) -> VectorRandomiser:
        """With simulated noise that no other device of this policy has."""
        return VectorRandomiser(
            self.channel,
            self.statistic.max_sensitivity,
            self.statistic.max_abs_contribution,
            noise=self.config["noise"],
            grid=self.config["grid"],
            seed=self.config["seed"],
            number=number,
        )

    def receive(self, report: Any) -> bool:
        """Take in a device's report, a vector of as many numbers as devices of this policy send:
        with a linear model, shape (d + d (d + 1) / 2,), or with one model per arm K times as long.

        Returns:
            Whether the policy learns from it: False once ``horizon`` reports were taken.

        Raises:
            ArgumentError: this policy takes no reports, or no device has made this one.
            BudgetExhausted: the planned number of reports has been taken.
            ClaimError: as in ``update`` of other policies.
        """
        if not self.takes_reports:
            raise ArgumentError("reports must be True for a policy that receives them", "reports")
        return self._received(_checked(report, self.statistic.size, self._most_reported))

    @property
    def _most_reported(self) -> float:
        """What no number of a report exceeds in size."""
        return self.statistic.max_abs_contribution + WILDEST * self.noise_scale

    def _assumed(self) -> list[str]:
        if not self.takes_reports:
            return super()._assumed()
        return [
            f"feature vectors are at most {self.context_bound:g} long, which the device enforces",
            "the arm is carried out on the person's device, and nobody else sees it",
            "the contexts of others, which arms are open among them, and their rewards owe nothing"
            " to her record and to her decision but"
            " by way of reports",
            "a report is sent at a time that owes nothing to what it holds, and a person has one"
            f" device, which sends {self.max_rounds or 'one'} in all and of which no older copy is"
            " used again",
        ]


def _checked(report: Any, size: int, most: float) -> np.ndarray:
    given = as_numbers(report)
    if given.shape != (size,) or not (np.abs(given) <= most).all():
        raise ArgumentError(
            f"report must hold {size} numbers between {-most:.6g} and {most:.6g}, as devices send",
            "report",
        )
    return given.astype(np.float64)
