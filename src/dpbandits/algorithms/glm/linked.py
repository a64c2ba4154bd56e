"""What the policies share that learn a generalised linear model from ever longer epochs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from ...glm.links import Link, link_of
from ...policies import Kernels
from ...privacy.budgets import Budget
from ...validation import integer, real
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.linear import LinearPolicy
from ..bases.schedules import Schedule


class LinkedPolicy(LinearPolicy):
    """The base of those that learn at the end of epochs that are fixed in advance."""

    learns_off_policy = False
    _kernels_of: ClassVar[Callable[[Link], Kernels]]

    def __init__(
        self,
        config: dict[str, Any],
        *,
        budget: Budget | None,
        link: str,
        batch: int,
        growth: float,
        **options: Any,
    ) -> None:
        self.kernels = type(self)._kernels_of(link_of(link))
        own = {
            "link": link,
            "batch": integer("batch", batch, 1, MOST_ROUNDS),
            "growth": real("growth", growth, 0.01, 1e6),
        }
        super().__init__({**config, **own}, budget=budget, **options)

    @property
    def _schedule(self) -> Schedule:
        return Schedule(self.config["batch"], self.config["growth"])

    @property
    def _releases(self) -> int:
        return self._schedule.releases(self.config["horizon"])

    def _model(self) -> dict[str, Any]:
        """Outcomes scatter so far in the norm of the information."""
        flattest = self._linked.conditioning.least_slope
        return {**super()._model(), "subgaussian": self._scatter / math.sqrt(flattest)}

    def _memory(self) -> dict[str, int]:
        return self._schedule.memory(self.config["horizon"], self.dimension)
