"""Shared by policies with private contexts: exploration, and the arguments of ``model``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar

from ...constraints import Choice, Constraints, Real
from ...errors import ArgumentError
from ...policies import Card, Composition, Kernels, Statistic
from ...policies.parts import PartOf
from ...privacy.budgets import ApproxDP, Budget
from ...privacy.continual import Independent
from ...privacy.exact import Source
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.linear import MODEL, LinearPolicy, ModelOptions
from ..bases.schedules import Schedule
from ..exploration import EXPLORATIONS, Divergence, Optimism, Sampling, resolved
from ..maths.confidence import gaussian_norm, planned_walk, symmetric_norm
from .drawing import draw
from .kernels import DIVERGENT, OPTIMISTIC, SAMPLED
from .model import Params, joint_sensitivity, statistic_size

_ULP = 2.0**-52
_SHARES = (0.1, 0.1, 0.8)  # of failures, which help most where noise is largest
_SHARE = 0.07  # of noise and shift in the widths of IMED
_STEPS = 1024  # for which sums of noise are planned where nothing else is

REPAIR: dict[str, Any] = {"repair": "shift", "switch": 0.0}


class HiddenOptions(ModelOptions, total=False):
    """Arguments of policies with private features, beside their own and those of ``ModelOptions``.

    repair: how V is made positive definite, in spite of its noise: "shift" (default) adds a
        multiple of the identity, "clip" lifts too small eigenvalues alone.  See ``model``.
    switch: s; estimates are kept until the information in some direction has grown by a factor of
        more than 1 + s.  Then devices rarely need a new chooser.  Default 0: never kept.
    """

    repair: str
    switch: float


STATISTIC = "; released sums: Shariff & Sheffet (2018)"
UNKNOWN = "; no theorem on the regret of this combination is known"


def composed_for(
    explore: type[Any], setting: str, server: Callable[[Kernels], Kernels] | None, **said: Any
) -> Composition:
    """Kernels and card of an exploration.  ``setting`` is the card's name of the trust model,
    ``server`` adapts kernels to the server's input, and ``said`` holds further fields of the card.
    """
    kernels = {Optimism: OPTIMISTIC, Sampling: SAMPLED, Divergence: DIVERGENT}[explore]
    card = Card(
        title=f"{explore.title} with private features, {setting}",
        source=f"{explore.source}{STATISTIC}{UNKNOWN}",
        protects="contexts and rewards",
        randomised=explore is not Optimism,
        **said,
    )
    return Composition(server(kernels) if server else kernels, card)


def asks_for_published(options: Mapping[str, object], budget: Budget | None) -> bool:
    """Whether to use the noise of a paper; all papers have it for (epsilon, delta)-DP."""
    return options.get("calibration") == "paper" and isinstance(budget, ApproxDP)


def refuse_unpublished(
    options: Mapping[str, object], published: str = "calibration='paper'"
) -> None:
    """Raise ArgumentError for options that no published radius covers."""
    for name, default in {"clip": True, **REPAIR}.items():
        if (given := options.get(name, default)) != default:
            raise ArgumentError(
                f"{name} must be {default!r} with {published}, got {given!r}: no published radius"
                " covers another value",
                name,
            )


def refuse_weight(name: str, weight: float) -> None:
    """Raise ArgumentError for a weight of rewards that no paper covers."""
    if weight != 1.0:
        raise ArgumentError(f"{name} must be 1 with calibration='paper', got {weight!r}", name)


class HiddenPolicy(LinearPolicy):
    """Base class of policies with a linear model and private features."""

    constraints: ClassVar[Constraints] = {
        "repair": Choice("shift", "clip"),
        "switch": Real(0.0, 1e6, as_given=True),
        "bounds": Choice("exact", "published"),
        "explore": PartOf(*EXPLORATIONS, exactly=True),
    }
    _options: ClassVar[dict[str, Any]] = {**MODEL, **REPAIR}
    _constants: ClassVar[dict[str, Any]] = {  # of ways to explore, where none are given
        "parameter_bound": 1.0,
        "alpha": 1.3,
        "margin": 2.0,
        "share": None,  # see ``_share``
    }
    _share: ClassVar[float] = 0.15  # of noise that changes slowly
    # Whether published noise is of one size on x r and on the upper triangle of x x^T.
    _triangular: ClassVar[bool] = False

    @classmethod
    def _explored(cls, explore: Any) -> Any:
        """``explore`` with the constants of the class, where it leaves them open."""
        return resolved(explore, cls.__name__, **cls._constants)

    # What a subclass may say otherwise ----------------------------------------------------------

    @property
    def _schedule(self) -> Schedule:
        return Schedule(self.config["batch"])

    @property
    def _asks_for_published(self) -> bool:
        return asks_for_published(self.config, self.budget)

    @property
    def _noise_as_published(self) -> bool:
        """Papers have it for confidence radii, and batches of one length."""
        fixed, explore = self.config.get("growth", 0.0) == 0.0, self.config.get("explore")
        return self._asks_for_published and fixed and isinstance(explore, Optimism)

    @property
    def _published(self) -> bool:
        """Whether shift and radius are the published ones."""
        return self._noise_as_published and self.config.get("bounds") == "published"

    @property
    def _weight(self) -> float:
        """By how much more of the precision falls on rewards."""
        return self._diagonal * float(self.config.get("reward_weight", 1.0))

    @property
    def _diagonal(self) -> float:
        """The weight of squared features."""
        return math.sqrt(2.0) if self._triangular and self._noise_as_published else 1.0

    # The statistic ------------------------------------------------------------------------------

    @property
    def _holds(self) -> bool:
        return super()._holds and not self._published

    @cached_property
    def _releases(self) -> int | None:
        if self._horizon is None or self.card.learns_at_once:
            return self._horizon
        return self._schedule.releases(self._horizon)

    @property
    def tuned_for(self) -> int | None:
        """Maximal number of planned rounds; None if there is no limit."""
        return self._horizon

    @property
    def _smallest_range(self) -> float:
        lo, hi = self.reward_range
        return min(hi - lo, self._diagonal * self.context_bound**2)

    @property
    def _most_moved(self) -> float:
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

    def _moved(self, reward: float, length: float) -> float:
        """Effect of a record on the statistic, for bounds on weighted rewards and features.

        If squares weigh as much as products, the bound is sqrt(2) times that of the upper triangle.
        The triangle moves at most as far as x x^T, with equality if the difference of two records
        is diagonal.
        """
        return self._diagonal * joint_sensitivity(reward / self._diagonal, length)

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

    def _draw(self, take: Source) -> bool:
        return draw(self.kernels, self.params, self.session.state.public, take)

    # What kernels know --------------------------------------------------------------------------

    def _params(self) -> Any:
        params = self._for_regression()
        return self._with_published_bounds(params) if self._published else self._for_choice(params)

    def _for_regression(self) -> Params:
        private = self.budget is not None
        # Failure probabilities of the bounds on rewards, on the norm of N, and on that of z.
        shares = [max(share * self._each_failure, 1e-300) for share in _SHARES]
        d, releases = self.dimension, self._releases or MOST_ROUNDS
        adds_up = isinstance(self._counter, Independent)
        std = (self.noise_scale if adds_up else self._noise_std) if private else 0.0
        along, across = (
            std * math.hypot(1.0 / self._weight, self._parameter_bound * part)
            for part in (1.0, math.sqrt(0.5))
        )
        steps = 0.5 * (self._releases or _STEPS)
        matrix_norm = self._matrix_norm(std, releases, shares[1])
        return Params(
            **self._model(),
            **self._schedule._asdict(),
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
            movement=self.statistic.max_sensitivity,
        )

    def _for_choice(self, params: Params) -> Params:
        explore = self.config.get("explore")
        if isinstance(explore, Sampling):
            return params._replace(radius_scale=explore.inflation)
        if not isinstance(explore, Divergence):
            return params
        share = explore.share
        if share is None:
            share = self._share if params.adds_up and self.budget is not None else _SHARE
        return params._replace(
            **self._for_imed(),
            radius_scale=math.sqrt(explore.alpha or 1.0),
            margin=math.log(explore.margin or 1.0),
            share=share,
        )

    def _matrix_norm(self, std: float, releases: int, probability: float) -> float:
        """Bound on the norms of N in the given number of releases, with probability 1 -
        ``probability``.
        """
        return symmetric_norm(self.dimension, std, releases, probability)

    def _vector_norm(self, std: float, releases: int, probability: float, axis: float) -> float:
        """What |n - N theta| stays below, for standard deviations along theta and across it."""
        return gaussian_norm(self.dimension, std, releases, probability, axis)

    def _with_published_bounds(self, params: Params) -> Params:
        """Shift and radius of a paper.

        Raises:
            ArgumentError: no paper has bounds for this policy.
        """
        raise ArgumentError(
            f"bounds must be 'exact', got 'published': no paper has bounds for {self.preset}",
            "bounds",
        )
