"""What the policies with a generalised linear model share: the link, and ever longer epochs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

from ...errors import ArgumentError
from ...glm.links import Conditioning, Link, link_of
from ...policies import Kernels
from ...privacy.budgets import Budget
from ...validation import integer, real
from ..bases.contextual import ContextualPolicy
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.linear import LinearPolicy
from ..private_contexts.model import next_release
from .bounds import conditioning_of, largest_residual

_MOST_KEPT = 10**8  # features of an epoch


class LinkPolicy(ContextualPolicy):
    """The base of policies whose mean rewards are ``nu(<x, theta>)``.

    A subclass sets ``_link`` and ``_parameter_bound``.
    """

    learns_off_policy = False

    _link: Link
    _parameter_bound: float

    @property
    def condition_number(self) -> float:
        """Of the link, over all <x, theta> that the bounds allow: largest over least slope."""
        return self._conditioning.number

    @cached_property
    def _conditioning(self) -> Conditioning:
        return conditioning_of(self._link, self.context_bound, self._parameter_bound)

    @property
    def _residual(self) -> float:
        """How far an outcome may be from its mean, anywhere."""
        return largest_residual(self._link, self._conditioning.reach, self.reward_range)


class LinkedPolicy(LinkPolicy, LinearPolicy):
    """The base of those that learn at the end of epochs that are fixed in advance."""

    _kernels_of: ClassVar[Callable[[Link], Kernels]]
    _horizon: int
    _growth: float
    _batch: int

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
        self._link = link_of(link)
        self.kernels = type(self)._kernels_of(self._link)
        self._batch = integer("batch", batch, 1, MOST_ROUNDS)
        self._growth = real("growth", growth, 0.01, 1e6)
        own = {"link": link, "batch": self._batch, "growth": self._growth}
        super().__init__({**config, **own}, budget=budget, **options)

    def _model(self) -> dict[str, Any]:
        """Outcomes scatter so far in the norm of the information."""
        flattest = self._conditioning.least_slope
        return {**super()._model(), "subgaussian": self._scatter / math.sqrt(flattest)}

    def _linked(self) -> dict[str, Any]:
        """What the parameters of all kernels have in common."""
        return {
            "flattest": self._conditioning.least_slope,
            "steepest": self._conditioning.largest_slope,
            "curvature": self._conditioning.curvature,
        }

    @property
    def _ends(self) -> list[int]:
        """After how many rounds each epoch ends."""
        rounds, found = self._batch, []
        while rounds <= self._horizon:
            found.append(rounds)
            rounds = next_release(rounds, self._batch, self._growth, math.inf)
        return found

    @property
    def _releases(self) -> int:
        return max(1, len(self._ends))

    @property
    def _longest_epoch(self) -> int:
        ends = [0, *self._ends]
        epochs = [end - start for start, end in pairwise(ends)]
        return max([min(self._batch, self._horizon), *epochs])

    def _memory(self) -> dict[str, int]:
        """How many records are kept of the longest epoch, and after how many rounds none.

        Raises:
            ArgumentError: they are too many.
        """
        room = self._longest_epoch * self.dimension
        if room > _MOST_KEPT:
            raise ArgumentError(
                f"horizon must be lower, or growth, for features of {self.dimension} numbers: the"
                f" longest epoch would keep {room} of them, and at most {_MOST_KEPT} fit",
                "horizon",
            )
        return {"capacity": self._longest_epoch, "last": max(self._ends, default=0)}
