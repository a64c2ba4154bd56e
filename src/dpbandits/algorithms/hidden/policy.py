"""What the policies with private contexts share: sensitivity, noise and schedule of ``model``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ...errors import ArgumentError
from ...policies import Statistic
from ...privacy.budgets import ApproxDP, Budget
from ...privacy.channels import Certified
from ...privacy.continual import Independent
from ...validation import choice, real
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.linear import MODEL, RADIUS, LinearOptions, LinearPolicy, ModelOptions
from ..bases.schedules import Schedule
from ..maths.confidence import gaussian_norm, planned_walk, symmetric_norm
from .model import DIVERGENT, SAMPLED, joint_sensitivity
from .state import Params, statistic_size

_ULP = 2.0**-52
_SHARES = (0.1, 0.1, 0.8)  # of failures, which help most where noise is largest
_SHARE = 0.07  # of noise and shift in the widths of IMED
_STEPS = 1024  # for which sums of noise are planned where nothing else is
_NOTHING = 1e-6  # the multiplier of Gaussian noise that hides nothing

REPAIR: dict[str, Any] = {"repair": "shift", "switch": 0.0}


class PrivateModelOptions(ModelOptions, total=False):
    """Constructor arguments of policies with private features, beside their own and those of
    ``ModelOptions``.

    repair: how V, whose noise may take away more than was seen, is made positive definite: "shift"
        (default) adds a multiple of the identity, "clip" lifts those eigenvalues alone that are too
        small.  See ``regression``.
    switch: s; estimates are kept until the information in some direction has grown by a factor of
        more than 1 + s, so that devices rarely need a new chooser.  Default 0: never kept.
    """

    repair: str
    switch: float


class PrivateIMEDOptions(PrivateModelOptions, total=False):
    """Those of ``PrivateModelOptions``, and one more.

    parameter_bound: on the norm of the unknown parameter, towards which what is not known yet may
        lie.  Default 1.
    """

    parameter_bound: float


class PrivateLinearOptions(LinearOptions, PrivateModelOptions, total=False):
    """Those of ``LinearOptions`` and of ``PrivateModelOptions``."""


def asks_for_published(options: Mapping[str, object], budget: Budget | None) -> bool:
    """Whether noise is to be that of a paper, all of which have it for (epsilon, delta)."""
    return options.get("calibration") == "paper" and isinstance(budget, ApproxDP)


def chosen_bounds(bounds: str, noise_as_published: bool) -> tuple[bool, dict[str, str]]:
    """Whether shift and radius are the published ones, and what ``config`` says of that: nothing
    where they belong to the noise, which keeps the random numbers of such policies.
    """
    exact = choice("bounds", bounds, ("exact", "published")) == "exact"
    return noise_as_published and not exact, (
        {"bounds": bounds} if noise_as_published and exact else {}
    )


def refuse_unpublished(
    options: Mapping[str, object], published: str = "calibration='paper'"
) -> None:
    """Raise ArgumentError for options of which no published radius knows."""
    for name, default in {"clip": True, **REPAIR}.items():
        if (given := options.get(name, default)) != default:
            raise ArgumentError(
                f"{name} must be {default!r} with {published}, whose radius knows of"
                f" nothing else, got {given!r}",
                name,
            )


class AsPublished:
    """In the place of a channel: noise that was not calibrated for the budget, and keeps its
    epsilon with another delta.

    Args:
        delta_at: that delta; it may be computed after the policy has been configured.
    """

    name, takes = Certified.name, Certified.takes

    def __init__(self, delta_at: Callable[[ApproxDP], float]) -> None:
        self._delta_at = delta_at

    def calibrated(self, budget: ApproxDP, **_: Any) -> Certified:
        delta = self._delta_at(budget)
        if delta >= 0.999:
            return Certified(_NOTHING)
        return Certified(1.0 / ApproxDP(budget.epsilon, max(delta, 1e-300)).mu)


class PrivateContextPolicy(LinearPolicy):
    """The base of policies with a linear model whose features are behind the wall.

    A subclass says when it releases: ``_schedule``.
    """

    _options: ClassVar[dict[str, Any]] = {**MODEL, **RADIUS, **REPAIR}
    _weight: float = 1.0
    _diagonal: float = 1.0
    _published: bool = False

    def __init__(self, config: dict[str, Any], *, budget: Budget | None, **options: Any) -> None:
        choice("repair", options.get("repair", "shift"), ("shift", "clip"))
        super().__init__(config, budget=budget, **options)

    @property
    def _schedule(self) -> Schedule:
        """When releases are made."""
        return Schedule(self.config["batch"])

    @property
    def _holds(self) -> bool:
        return super()._holds and not self._published

    @property
    def _releases(self) -> int | None:
        if self._horizon is None or self.card.learns_at_once:
            return self._horizon
        return self._schedule.releases(self._horizon)

    @property
    def tuned_for(self) -> int | None:
        """The most rounds that are planned for; None if there is no limit."""
        return self._horizon

    @property
    def _smallest_range(self) -> float:
        lo, hi = self.reward_range
        return min(hi - lo, self._diagonal * self.context_bound**2)

    @property
    def _most_moved(self) -> float:
        """The most that a record moves the statistic."""
        size, bound, reward = self._size, self.context_bound, self._largest
        moved = self._moved(reward, bound)
        if self.grid > 0.0:
            # Rounding to the grid moves a coordinate of each record by half a step; before it,
            # floats move each by less than some parts in 2**52.  Records in two blocks are
            # sqrt(2) times closer to what they were.
            self._refuse_rounding(math.sqrt(size) * self.grid, moved)
            moved += math.sqrt(size) * self.grid
            moved += 8.0 * _ULP * self.dimension * bound * (reward + bound)
        return moved

    @property
    def _size(self) -> int:
        """How many numbers are released of one model."""
        return statistic_size(self.dimension)

    @property
    def _largest(self) -> float:
        """A bound on w |r|."""
        return self._weight * max(map(abs, self.reward_range))

    def _statistic(self) -> Statistic:
        bound, (batch, growth, most) = self.context_bound, self._schedule
        longest = batch if growth == 0.0 else min(self._horizon or math.inf, most)
        if self.card.learns_at_once:
            longest = 1
        return Statistic(
            size=self.n_models * self._size,
            max_sensitivity=self._most_moved,
            max_abs_contribution=bound * max(self._largest, self._diagonal * bound),
            max_records=0 if longest == math.inf else int(longest),
            counter=self._counter,
        )

    def _params(self) -> Any:
        private = self.budget is not None
        # Of rewards, the norm of N, and that of z.
        shares = [max(share * self._each_failure, 1e-300) for share in _SHARES]
        d, releases = self.dimension, self._releases or MOST_ROUNDS
        adds_up = isinstance(self._counter, Independent)
        std = 0.0
        if private:
            std = self.noise_scale if adds_up else self._noise_std
        along, across = (
            std * math.hypot(1.0 / self._weight, self._parameter_bound * part)
            for part in (1.0, math.sqrt(0.5))
        )
        steps = 0.5 * (self._releases or _STEPS)
        matrix_norm = self._matrix_norm(std, releases, shares[1])
        params = Params(
            **self._model(),
            n_models=self.n_models,
            weight=self._weight,
            diagonal=self._diagonal,
            published=self._published,
            adds_up=adds_up,
            matrix_norm=matrix_norm,
            spread=along,
            vector_norm=self._vector_norm(across, releases, shares[2], along),
            walk=planned_walk(d, along**2, across**2, steps, shares[2]),
            base=self._ridge + matrix_norm * (math.sqrt(steps) if adds_up else 1.0),
            log_odds=-2.0 * math.log(shares[0] if private else self._each_failure),
            parameter_bound=self._parameter_bound,
            radius_scale=self._radius_scale,
            clips=self.config.get("repair") == "clip",
            switch=float(self.config.get("switch", 0.0)),
            **self._schedule._asdict(),
            movement=self.statistic.max_sensitivity,
        )
        return self._with_published_bounds(params) if self._published else params

    def _matrix_norm(self, std: float, releases: int, probability: float) -> float:
        """What the norms of N stay below in so many releases with 1 - ``probability``."""
        return symmetric_norm(self.dimension, std, releases, probability)

    def _vector_norm(self, std: float, releases: int, probability: float, axis: float) -> float:
        """The same of |n - N theta|, for standard deviations along theta and across."""
        return gaussian_norm(self.dimension, std, releases, probability, axis)

    def _moved(self, reward: float, length: float) -> float:
        """By how much a record moves the statistic, for bounds on weighted rewards and features.

        With squares as heavy as products it is sqrt(2) times the upper triangle, which moves no
        farther than x x^T, and as far where the difference of two records is diagonal.
        """
        return self._diagonal * joint_sensitivity(reward / self._diagonal, length)

    def _with_published_bounds(self, params: Params) -> Params:
        return params


class ThompsonPolicy(PrivateContextPolicy):
    """The base of those that choose by a draw of theta: there is no radius."""

    kernels = SAMPLED
    _options: ClassVar[dict[str, Any]] = {**MODEL, **REPAIR}

    def _inflated(self, inflation: float) -> dict[str, float]:
        """Check and keep what multiplies the spread of the draw."""
        self._inflation = real("inflation", inflation, 0.0, 1e12)
        return {"inflation": self._inflation}

    def _params(self) -> Any:
        return super()._params()._replace(radius_scale=self._inflation)


class IMEDPolicy(PrivateContextPolicy):
    """The base of those that choose by minimum empirical divergence: there is no radius."""

    kernels = DIVERGENT
    _options: ClassVar[dict[str, Any]] = {**MODEL, **REPAIR, "parameter_bound": 1.0}
    _share_adding_up: ClassVar[float] = 0.15  # of noise that changes slowly

    def _weighed(self, alpha: float, margin: float) -> dict[str, float]:
        """Check and keep the constants of the index."""
        self._optimism = real("alpha", alpha, 1e-3, 1e3)
        self._margin = real("margin", margin, 1.0, 1e6)
        return {"alpha": self._optimism, "margin": self._margin}

    def _params(self) -> Any:
        params = super()._params()
        adds_up = params.adds_up and self.budget is not None
        return params._replace(
            radius_scale=math.sqrt(self._optimism),
            **self._for_imed(),
            share=self._share_adding_up if adds_up else _SHARE,
            margin=math.log(self._margin),
        )
