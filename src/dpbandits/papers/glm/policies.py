"""Bandits on information-weighted regression, with private features; experimental.

``kernels`` describes the release, its sensitivity, and the estimates from it.  Lenses and estimates
are functions of earlier releases.  Every person is in one epoch, which has one release.  Joint
privacy follows as in ``joint``, local privacy as in ``local``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Unpack

import numpy as np

from ...algorithms.bases.counter_choice import MOST_ROUNDS
from ...algorithms.bases.errata import ANTICIPATING
from ...algorithms.bases.linear import MODEL, RADIUS, LinearOptions
from ...algorithms.glm.gradients import of_reports
from ...algorithms.glm.joint import DEFINITION, bounds_on_records
from ...algorithms.glm.local import ScoringDevice
from ...algorithms.glm.public import EpochPolicy
from ...algorithms.hidden.local import LocalPolicy
from ...algorithms.hidden.policy import HiddenPolicy
from ...algorithms.maths.confidence import gaussian_norm
from ...glm.links import link_of
from ...policies import Card, Statistic, register
from ...privacy.budgets import Budget
from . import kernels as weighted
from .kernels import WeightedParams

PROOF = "sensitivity: module dpbandits.papers.glm.kernels; {}: module dpbandits.algorithms.glm.{}"
_UP = 1.0 + 1e-12  # outweighs the rounding of lengths


class WeighingDevice(ScoringDevice):
    """A device of ``WeightedGLMLDP``, whose report looks at the record through a public lens."""

    _looks_from = "public.lens"
    _look_with = staticmethod(weighted.look_with)

    def _within(self, point: np.ndarray) -> np.ndarray:
        """A lens, in rows."""
        return point.reshape(-1, self._params.dimension)  # the kernel cuts what it makes of any


def _weighting(self: HiddenPolicy) -> np.ndarray:
    """A, the weighting of features, shape (d, d): a copy of public numbers."""
    first = weighted.LENS.matrix
    lens: np.ndarray = self.session.state.public.lens
    return lens[first : first + self.dimension].copy()


def _largest(self: HiddenPolicy) -> float:
    return self._weight * self._linked.residual


def _moved(self: HiddenPolicy, reward: float, length: float) -> float:
    steepest = self._linked.conditioning.largest_slope
    return math.hypot(2.0 * reward, math.sqrt(min(2, self.dimension)) * steepest) * _UP


def _statistic(self: HiddenPolicy) -> Statistic:
    steepest = math.sqrt(2.0) * self._linked.conditioning.largest_slope
    statistic = HiddenPolicy._statistic(self)
    return replace(statistic, max_abs_contribution=max(self._largest, steepest))


def _weighted(self: HiddenPolicy, capacity: int, last: int) -> WeightedParams:
    std = self.noise_scale if self.budget is not None else 0.0
    releases = self._releases or MOST_ROUNDS
    share = 0.1 * self._failure if self.budget is not None else self._failure
    return WeightedParams(
        **bounds_on_records(self, self._linked.residual),
        **self._linked.slopes,
        linear=HiddenPolicy._params(self),
        size=self._size,
        length=self.context_bound,
        scatter=self._scatter,
        odds=math.log(releases / max(share, 1e-300)),
        std=std,
        vector_norm=gaussian_norm(self.dimension, std, releases, 0.8 * self._failure),
        is_local=self.card.learns_at_once,
        capacity=capacity,
        last=last,
    )


@register(n_arms=3, dimension=2, horizon=30_000, batch=4)
class WeightedGLMJDP(EpochPolicy, HiddenPolicy):
    """Optimism on information-weighted regression with private features and rewards, under joint
    differential privacy; experimental.

    Mean rewards are ``nu(<x, theta>)``.  Features are weighted by a matrix A from earlier epochs,
    in which every direction counts as much as bounded records allow.  The policy plays arg max of
    ``<x, estimate> + B |T x|``, with T near a multiple of A, from the last epoch alone.  It
    reconstructs the idea of Chen, Li, Rakhlin & Simchi-Levi (2025), not their text.

    Args:
        n_arms, dimension, budget, horizon, reward_weight: as in ``HiddenGLM``.
        link, batch, growth: as in ``GLM``; but an estimate is made of one epoch alone.
        **options: see ``LinearOptions``.

    When to choose: to study features with small directions.  In no measurement did it beat
    ``GLMUCBJDP``, which uses all epochs: docs/papers/glm.md.

    Raises:
        ArgumentError: as for ``GLM``.

    Example:
        >>> from dpbandits import ZCDP
        >>> policy = WeightedGLMJDP(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> policy.update(1.0, policy.pull([[1, 0, 0], [0, 1, 0]]))
        True
        >>> policy.weighting.shape
        (3, 3)
    """

    card = Card(
        title="information-weighted regression in a generalised linear model, joint DP",
        source=f"{DEFINITION}; the constants, batches and steps are this package's",
        proof=PROOF.format("anticipating joint privacy", "joint"),
        noise=("Gaussian",),
        protects="contexts and rewards",
        view="anticipating joint",
        errata=(ANTICIPATING,),
    )
    kernels = weighted.of_epochs(link_of("logistic"))
    _options: ClassVar[dict[str, Any]] = {**MODEL, **RADIUS}
    weighting, _largest = property(_weighting), property(_largest)
    _moved, _statistic = _moved, _statistic

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        link: str = "logistic",
        batch: int = 1,
        growth: float = 1.0,
        reward_weight: float = 1.0,
        **options: Unpack[LinearOptions],
    ) -> None:
        self.kernels = weighted.of_epochs(link_of(link))
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "reward_weight": reward_weight,
            "horizon": horizon,
            "link": link,
            "batch": batch,
            "growth": growth,
        }
        super().__init__(own, budget=budget, **options)

    @property
    def _counting(self) -> str:
        return "independent"

    def _params(self) -> WeightedParams:
        return _weighted(self, **self._memory)


@register(n_arms=3, dimension=2, horizon=30_000)
class WeightedGLMLDP(LocalPolicy):
    """Information-weighted regression on reports that every person's device has randomised, under
    local differential privacy; experimental.

    A device reports its person's residual times weighted features, and the square of these
    features. It uses A and the estimate of the running epoch, which come with the chooser.  Reports
    of devices with an older chooser are as private, but make estimates wrong.  With
    ``reports=True`` this is the server of devices, as ``LDPSGD`` is.

    Args:
        n_arms, dimension, budget, horizon, reports: as in ``HiddenLinearLocal``.
        link, growth: as in ``GLM``; but an estimate is made of one epoch alone.
        reward_weight: as in ``HiddenGLM``.
        batch: reports of the first epoch, and of the shortest.
        **options: see ``LinearOptions``.

    When to choose: no party is trusted, and features are far smaller in some directions than in
    others, for everybody.  Elsewhere ``LDPSGD``.

    Raises:
        ArgumentError: as for ``GLM``.

    Example:
        >>> from dpbandits import ZCDP
        >>> server = WeightedGLMLDP(2, 3, budget=ZCDP(0.5), horizon=1000, reports=True, seed=1)
        >>> device = server.device()
        >>> device.choose([[1, 0, 0], [0, 1, 0]]) in (0, 1)
        True
        >>> server.receive(device.report(1.0))
        True
    """

    card = Card(
        title="information-weighted regression in a generalised linear model, local DP",
        source=f"{DEFINITION}; the constants, batches and steps are this package's",
        proof=PROOF.format("privacy of a single report", "local"),
        noise=("Gaussian",),
        trust_model="local",
        protects="contexts and rewards",
        view="joint",
        learns_at_once=True,
    )
    kernels = weighted.of_records(link_of("logistic"))
    learns_off_policy = False
    constraints = EpochPolicy.constraints
    _options: ClassVar[dict[str, Any]] = {**MODEL, **RADIUS}
    weighting, _largest = property(_weighting), property(_largest)
    _moved, _statistic, _schedule = _moved, _statistic, EpochPolicy._schedule
    _device = WeighingDevice

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        link: str = "logistic",
        batch: int = 1,
        growth: float = 1.0,
        reward_weight: float = 1.0,
        reports: bool = False,
        **options: Unpack[LinearOptions],
    ) -> None:
        kernels = weighted.of_records(link_of(link))
        self.kernels = of_reports(kernels) if reports else kernels
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "link": link,
            "growth": growth,
            "reward_weight": reward_weight,
            "horizon": horizon,
            "batch": batch,
            "reports": reports,
        }
        super().__init__(own, budget=budget, **options)

    def _params(self) -> WeightedParams:
        return _weighted(self, capacity=1, last=MOST_ROUNDS)
