"""Base of policies with a linear model: arguments, statistic, and the size of its noise.

The statistic is the sum of x * reward, the only sum behind the wall: V = lambda I + sum of x x^T is
public.  A record moves it by at most (hi - lo) |x|, which is (hi - lo) * context_bound for features
that are scaled to that bound.

With one model per arm the statistic has a block for each: the sums over the rounds of that arm,
which are public.  All blocks cross as one vector.  A record moves one block, so the sensitivity
does not change.  In estimates and releases the blocks stand one after another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from ...constraints import Choice, Constraints, Integer, Real
from ...errors import ArgumentError
from ...glm.links import LINK_NAME, Conditioning, Link, link_of
from ...kernel import Kernel, Vector, bind, inlined, kernel
from ...policies import Kernels, Options, Statistic
from ...privacy.budgets import Budget
from ...privacy.continual import Counter
from ..exploration import Optimism
from ..maths.confidence import coordinate_quantile, noise_norm
from ..maths.ridge import WIDE, most_optimistic_of_few, most_optimistic_of_many
from .contextual import ContextualPolicy
from .counter_choice import MOST_ROUNDS, RUNNING_SUM, Plan, counter_for, secure_counter

MODEL: dict[str, Any] = {"ridge": 1.0, "subgaussian": None, "context_bound": 1.0}
RADIUS: dict[str, Any] = {"parameter_bound": 1.0, "failure_probability": 0.001, "radius_scale": 1.0}
_ULP = 2.0**-52
# Relative to squared features: a smaller ridge is lost in rounding when these are added.
_LEAST_RIDGE = 1e-13
RIDGE = Real(0.0, 1e12, strict=True, as_given=True)


class ModelOptions(Options, total=False):
    """Arguments of policies with a linear model, beside their own and those of ``Options``.

    ridge: lambda, the regulariser.  Default 1, or see the class.
    subgaussian: s, how far rewards scatter around their mean.  Default: half the reward range.
    context_bound: longer features are scaled to it, and noise is proportional to it.  Default 1.
    """

    ridge: float | None
    subgaussian: float | None
    context_bound: float


class LinearOptions(ModelOptions, total=False):
    """Arguments of policies with a confidence radius, too, beside those of ``ModelOptions``.

    parameter_bound: the largest norm of the unknown parameter.  Default 1.
    failure_probability: the probability that the radius is too small at some time.  Default 0.001.
    radius_scale: a factor of the radius.  Below 1 no coverage is claimed, but regret is mostly
        lower.  Default 1.
    """

    parameter_bound: float
    failure_probability: float
    radius_scale: float


@lru_cache(64)
def _conditioning(link: Link, reach: float) -> Conditioning:
    return link.conditioning(reach)


@dataclass(frozen=True)
class Linked:
    """A link, for all <x, theta> that the bounds on features and parameter allow."""

    link: Link  # nu
    context_bound: float
    parameter_bound: float
    reward_range: tuple[float, float]

    @cached_property
    def conditioning(self) -> Conditioning:
        """Bounds on its slopes; ArgumentError if it is flat or undefined for some <x, theta>."""
        reach = self.context_bound * self.parameter_bound
        if not reach > 0.0:
            raise ArgumentError(
                f"parameter_bound must be above 0 for a link, got {self.parameter_bound!r}",
                "parameter_bound",
            )
        if reach > self.link.farthest:
            raise ArgumentError(
                f"parameter_bound times context_bound must be at most {self.link.farthest:g} with"
                f" link={self.link.name!r}, got {reach!r}",
                "parameter_bound",
            )
        return _conditioning(self.link, reach)

    @property
    def slopes(self) -> dict[str, Any]:
        """Slopes as parameters of kernels."""
        found = self.conditioning
        return {
            "flattest": found.least_slope,
            "steepest": found.largest_slope,
            "curvature": found.curvature,
        }

    @cached_property
    def residual(self) -> float:
        """A bound on |nu(t) - r|: how far an outcome may be from its mean, anywhere.

        Means outside of their range are not cut to it: nothing would draw estimates back.

        >>> round(Linked(link_of("logistic"), 1.0, 1.0, (0.0, 1.0)).residual, 4)
        0.7311
        """
        lo, hi = self.reward_range
        reach = self.conditioning.reach
        return max(self.link.mean(reach) - lo, hi - self.link.mean(-reach))


@inlined
def on_grid(value: float, grid: float) -> float:
    """A record's number, rounded to the grid where secure noise needs exact sums; 0 for no grid."""
    return np.rint(value / grid) * grid if grid > 0.0 else value


@inlined
def model_of(params: Any, arm: int) -> int:
    """The arm's own model, or the one of all arms."""
    return arm if params.n_models > 1 else 0


@inlined
def block_of(model: int, size: int) -> slice:
    """Position of a model's numbers among those of all models."""
    return slice(model * size, (model + 1) * size)


@kernel
def accumulate(params: Any, raw: Any, arm: int, x: Vector, reward: float, n: int) -> None:
    """Add x * reward, rounded to ``params.grid`` where secure noise needs exact sums."""
    first = arm * x.size if raw.total.size > x.size else 0  # of the arm's model
    for i in range(x.size):
        # Each record is rounded on its own, so that the sum is exactly on the grid.
        raw.total[first + i] += on_grid(x[i] * reward, params.grid)


@kernel
def sensitivity(params: Any, public: Any, norm: int) -> float:
    return params.movement


@kernel
def estimate(params: Any, public: Any, i: int) -> float:
    return public.estimate[i]


@cache
def _searching(kernels: Kernels, search: Kernel) -> Kernels:
    return replace(kernels, choose=bind(kernels.choose, most_optimistic=search))


class LinearPolicy(ContextualPolicy):
    """Base class of policies that release the running sum of x * reward with a counter.

    All that it knows stands in ``config``: the arguments in ``_options``, and what subclasses pass
    of ``models``, ``link``, ``explore``, ``horizon`` and ``counter``.
    """

    learns_off_policy = True
    constraints: ClassVar[Constraints] = {
        "ridge": RIDGE,
        "subgaussian": Real(0.0, 1e12, as_given=True) | None,
        "parameter_bound": Real(0.0, 1e12, as_given=True),
        "failure_probability": Real(0.0, 1.0, strict=True, as_given=True),
        "radius_scale": Real(0.0, 1e12, as_given=True),
        "models": Choice("shared", "disjoint"),
        **RUNNING_SUM,
        "batch": Integer(1, MOST_ROUNDS),
        "reward_weight": Real(1e-6, 1e6, as_given=True),
        "link": LINK_NAME,
    }

    _options: ClassVar[dict[str, Any]] = {**MODEL, **RADIUS}  # with their defaults
    _covers: ClassVar[bool] = False  # whether its radius, as it is by default, is proved to hold

    def __init__(self, config: dict[str, Any], *, budget: Budget | None, **options: Any) -> None:
        own = {name: options.pop(name, default) for name, default in self._options.items()}
        super().__init__({**config, **own}, budget=budget, **options)
        least = _LEAST_RIDGE * self.context_bound**2
        if "ridge" in own and self._ridge < least:
            raise ArgumentError(
                f"ridge must be at least {least:g} with context_bound={self.context_bound:g},"
                f" got {self._ridge!r}",
                "ridge",
            )

    # What was given ---------------------------------------------------------------------------

    def _argument(self, name: str) -> float:
        """A number that was given: to the policy, to its way to explore, or else the default."""
        explore = self.config.get("explore")
        for given in (self.config.get(name), getattr(explore, name, None)):
            if given is not None:
                return float(given)
        return float({**MODEL, **RADIUS}[name])

    @property
    def _ridge(self) -> float:
        return self._argument("ridge")

    @property
    def _parameter_bound(self) -> float:
        return self._argument("parameter_bound")

    @property
    def _failure(self) -> float:
        return self._argument("failure_probability")

    @property
    def _radius_scale(self) -> float:
        return self._argument("radius_scale")

    @cached_property
    def models(self) -> str:
        """The kind of models: "shared", or "disjoint"."""
        return str(self.config.get("models", "shared"))

    @cached_property
    def _takes_one_row(self) -> bool:
        return self.models == "disjoint"

    @cached_property
    def _linked(self) -> Linked:
        """The link of the model, within its bounds."""
        link = link_of(self.config.get("link", "identity"))
        return Linked(link, self.context_bound, self._parameter_bound, self.reward_range)

    @property
    def condition_number(self) -> float:
        """Condition number of the link: largest over least slope, over all <x, theta> within the
        bounds.
        """
        return self._linked.conditioning.number if "link" in self.config else 1.0

    # The running sum --------------------------------------------------------------------------

    @property
    def _horizon(self) -> int | None:
        return self.config.get("horizon")

    @property
    def _releases(self) -> int | None:
        """How many releases are planned for; None for any number."""
        return self._horizon

    @property
    def _counting(self) -> str | None:
        """Which counter was asked for."""
        return self.config.get("counter")

    @property
    def _secure_needs(self) -> tuple[str, str]:
        return secure_counter(self._counting if self.budget is not None else None)

    @cached_property
    def _counter(self) -> Counter:
        size, secure = self.n_models * self._size, self.grid > 0.0
        return counter_for(self._counting, self._releases, self.channel, secure=secure, size=size)

    @property
    def _size(self) -> int:
        """How many numbers are released of one model."""
        return self.dimension

    @property
    def _noise_std(self) -> float:
        """The largest standard deviation of the noise on a coordinate of the running sum."""
        plan = Plan(self._counter, self._releases)
        return plan.noise_std(self.channel, self.statistic.max_sensitivity)

    # What follows -----------------------------------------------------------------------------

    @property
    def _searches(self) -> bool:
        """Whether ``choose`` has a place for ``most_optimistic``."""
        return False

    @property
    def driven(self) -> Kernels:
        """The kernels, with the search for the best of few or of many features."""
        kernels, few = super().driven, self.dimension < WIDE
        if not self._searches:
            return kernels
        return _searching(kernels, most_optimistic_of_few if few else most_optimistic_of_many)

    @property
    def regret_guarantee(self) -> str:
        """Proved bound on regret, which is independent of the privacy guarantee.

        >>> from dpbandits.algorithms import LinUCB
        >>> print(LinUCB(2, 3, radius_scale=0.1).regret_guarantee)
        none, because no theorem covers this confidence radius
        """
        if not self._has_radius:
            return "none, because no theorem covers this policy"
        if not self._holds:
            return "none, because no theorem covers this confidence radius"
        return (
            f"assume that means are linear in features of length at most {self.context_bound:g},"
            f" |theta| is at most {self._parameter_bound:g}, rewards scatter by at most"
            f" {self._scatter:g} and no reward was lost. Then, with probability at least"
            f" {1.0 - self._failure:g}, the confidence radius holds in all rounds, and no round"
            " loses more than twice the width of the arm that was played"
        )

    @property
    def _has_radius(self) -> bool:
        """Whether arms are chosen by a radius which, as it is by default, is proved to hold."""
        return self._covers and isinstance(self.config.get("explore", Optimism()), Optimism)

    @property
    def _holds(self) -> bool:
        return self._has_radius and self._radius_scale >= 1.0

    @property
    def n_models(self) -> int:
        """Number of estimated parameters: one, or with ``models="disjoint"`` one per arm."""
        return self.n_arms if self.models == "disjoint" else 1

    @property
    def _each_failure(self) -> float:
        """The failure probability of one model, for all together to keep the requested one."""
        return self._failure / self.n_models

    def _model(self) -> dict[str, Any]:
        """Parameters that all kernels share."""
        return {
            "n_arms": self.n_arms,
            "dimension": self.dimension,
            "context_bound": self.effective_bound,
            "ridge": self._ridge,
            "subgaussian": self._scatter,
            "grid": self.grid,
        }

    @property
    def _coefficients(self) -> tuple[int, ...]:
        own = (self.n_models,) if self.models == "disjoint" else ()
        return (*own, self.dimension)

    def _statistic(self) -> Statistic:
        (lo, hi), bound = self.reward_range, self.context_bound
        longest = 1 if self.card.learns_at_once else self._horizon
        return Statistic(
            size=self.n_models * self._size,
            max_sensitivity=self._max_sensitivity(hi - lo, bound),
            max_abs_contribution=max(-lo, hi) * bound,
            max_records=longest or 0,
            counter=self._counter,
        )

    def _max_sensitivity(self, width: float, bound: float) -> float:
        # x * (r - r') with |x|_2 <= bound; in the L1 norm at most sqrt(d) times that.
        reach, step, d = width * bound, self.grid, self.dimension
        if step > 0.0:
            # Rounding to the grid moves a coordinate of each record by half a step; before it,
            # floats make |x| longer than the bound by less than one part in 2**52 / d, and move
            # each product by less than one in 2**53.
            reach += _ULP * bound * (d * width + max(map(abs, self.reward_range)))
        root = math.sqrt(d)
        return reach * root + d * step if self.channel.norm == 1 else reach + root * step

    @property
    def _scatter(self) -> float:
        """Subgaussian constant of rewards: (hi - lo) / 2 for rewards in [lo, hi] (Hoeffding)."""
        lo, hi = self.reward_range
        given = self.config.get("subgaussian")
        return (hi - lo) / 2 if given is None else float(given)

    @property
    def _least_scatter(self) -> float:
        """``_scatter`` as a divisor: slightly above 0 for constant rewards."""
        lo, hi = self.reward_range
        return max(self._scatter, 1e-6 * (hi - lo))

    def _for_imed(self) -> dict[str, Any]:
        """Parameters of IMED about rewards and rounds; see ``least_divergent_at_once``."""
        lo, hi = self.reward_range
        return {
            "subgaussian": self._least_scatter,
            "middle": (lo + hi) / 2,
            "half": (hi - lo) / 2,
            "horizon": float(self._horizon or math.inf),
        }

    @property
    def _bias(self) -> float:
        """Bound on the estimate's bias by regularisation, in the norm of V."""
        return math.sqrt(self._ridge) * self._parameter_bound

    def _noise_norm(self, probability: float) -> float:
        """Bound on the L2 norm of the noise of all releases, in one model."""
        if self.budget is None:
            return 0.0
        plan = Plan(self._counter, self._releases)
        widest, releases = plan.widest(self.channel, self.noise_scale), plan.releases or MOST_ROUNDS
        norm, std = self.channel.norm, self._noise_std
        return noise_norm(norm, self.dimension, std, widest, releases, probability)

    def _spread(self, probability: float) -> float:
        """Bound on the noise of all releases in the direction of every arm, if the arms of one
        model were independent of it.  For many arms in few dimensions, a bound on its norm.
        """
        if self.budget is None:
            return 0.0
        directions = self.n_arms // self.n_models * (self._releases or MOST_ROUNDS)
        along = coordinate_quantile(self._noise_std, directions, probability)
        return min(along, self._noise_norm(probability))
