"""Stochastic gradients of generalised linear models with private features, one from each person.

Guarantee:

* Protected: features and reward of one person.  The wall stands around each person.
* Adjacency: any other record of that person.
* Sensitivity: g / C crosses the wall.  Here g = (nu(<x, p>) - r) x is the gradient of the person's
  log-loss at the public point p, cut to the length C.  It lies in the unit ball: two records of a
  person differ by at most 2, for any link, point, features and reward.

The kernel also scales points to |p| <= S.  Then two gradients differ by at most D for the links of
this package (``glm.replacement``).  Cutting vectors is a projection on a ball, which increases no
distance: they differ by at most min(2, D / C).  Secure noise needs multiples of a grid, which adds
sqrt(d) grid steps.

The point moves against the mean of a batch of noisy gradients, and is scaled back to |p| <= S.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...glm.links import Link, cut
from ...glm.replacement import point_scale
from ...kernel import Generator, Kernel, Matrix, Vector, bind, kernel, outlined, unbound
from ...policies import Kernels
from ...protocol import Row
from ..bases.contextual import within_bound
from ..bases.linear import estimate, on_grid, sensitivity
from ..maths.ridge import dot

mean = unbound  # of the link


class DescentParams(NamedTuple):
    n_arms: int
    dimension: int
    size: int  # of a report
    context_bound: float
    reach: float  # <x, p> is cut to [-reach, reach]
    residual: float  # R, to which nu - r is cut
    longest: float  # C
    parameter_bound: float  # S
    weight_decay: float
    step: float  # of the first update
    decay: float  # the t-th step is step / t^decay
    batch: int  # reports of one update
    grid: float  # to which gradients are rounded; 0 for none
    movement: float  # the most that a record moves the statistic


class DescentRaw(NamedTuple):
    features: np.ndarray  # (d,) of the record
    outcome: np.ndarray  # (1,)
    report: np.ndarray  # (d,) in the place of both, where devices send them


class DescentPublic(NamedTuple):
    estimate: np.ndarray  # (d,) p
    total: np.ndarray  # (d,) of the gradients since the last update
    clock: np.ndarray  # (3,)


class Clock(NamedTuple):  # slots of ``DescentPublic.clock``
    rounds: int = 0  # booked
    releases: int = 1
    updates: int = 2


CLOCK = Clock()


def init(params: DescentParams) -> tuple[DescentRaw, DescentPublic]:
    d = params.dimension
    raw = DescentRaw(np.zeros(d), np.zeros(1), np.zeros(d))
    return raw, DescentPublic(np.zeros(d), np.zeros(d), np.zeros(len(CLOCK), np.int64))


# Behind the wall -------------------------------------------------------------------------------


@kernel
def accumulate(
    params: DescentParams, raw: DescentRaw, arm: int, x: Vector, reward: float, n: int
) -> None:
    """Keep the record until it is released, which is at once."""
    for i in range(x.size):
        raw.features[i] = x[i]
    raw.outcome[0] = reward


@kernel
def residual_at(params: Any, point: Vector, x: Vector, outcome: float) -> float:
    """nu(<x, p>) - r, no farther from 0 than R."""
    scale = point_scale(point, params.parameter_bound)  # behind the wall, or on the device
    t = cut(scale * dot(x, point), -params.reach, params.reach)
    return cut(mean(t) - outcome, -params.residual, params.residual)


@kernel
def look(
    params: DescentParams, point: Vector, x: Vector, outcome: float, statistic: Vector
) -> None:
    """Write g / C of one record."""
    residual = residual_at(params, point, x, outcome)
    # Rounded down, so that what is written is not longer than 1 either.
    length = abs(residual) * np.sqrt(dot(x, x)) * (1.0 + 1e-14)
    # A gradient longer than C gets the length C, and all are divided by C.
    shrunk = residual / max(params.longest, length) * (1.0 - 1e-14)
    for i in range(x.size):
        statistic[i] = on_grid(shrunk * x[i], params.grid)


@outlined
def summarise(
    params: DescentParams, raw: DescentRaw, public: DescentPublic, memo: Vector, statistic: Vector
) -> None:
    look(params, public.estimate, raw.features, raw.outcome[0], statistic)
    raw.outcome[0] = 0.0
    for i in range(statistic.size):
        raw.features[i] = 0.0


@kernel
def accumulate_report(
    params: DescentParams, raw: DescentRaw, arm: int, x: Vector, reward: float, n: int
) -> None:
    """A report stands in the place of the features."""
    for i in range(x.size):
        raw.report[i] = x[i]


@kernel
def summarise_report(
    params: DescentParams, raw: DescentRaw, public: DescentPublic, memo: Vector, statistic: Vector
) -> None:
    for i in range(statistic.size):
        statistic[i] = raw.report[i]
        raw.report[i] = 0.0


# What follows from a release -------------------------------------------------------------------


@kernel
def project(point: Vector, bound: float) -> None:
    """Move a point to the nearest one of the ball."""
    length = np.sqrt(dot(point, point))
    if length > bound:
        for i in range(point.size):
            point[i] *= bound / length


@outlined
def publish(params: DescentParams, public: DescentPublic, memo: Vector, release: Vector) -> None:
    clock, point, total = public.clock, public.estimate, public.total
    clock[CLOCK.releases] += 1
    for i in range(release.size):
        total[i] += release[i]
    if clock[CLOCK.releases] % params.batch == 0:
        clock[CLOCK.updates] += 1
        step = params.step / float(clock[CLOCK.updates]) ** params.decay
        for i in range(release.size):
            # What has crossed is g / C.
            gradient = params.longest * total[i] / params.batch
            point[i] -= step * (gradient + params.weight_decay * point[i])
            total[i] = 0.0
        project(point, params.parameter_bound)


# What decides ----------------------------------------------------------------------------------


@kernel
def record_pull(params: DescentParams, public: DescentPublic, arm: int, x: Row, n: int) -> None:
    public.clock[CLOCK.rounds] += n


@kernel
def release_due(params: DescentParams, public: DescentPublic) -> bool:
    return public.clock[CLOCK.rounds] > public.clock[CLOCK.releases]


@kernel
def choose(
    params: DescentParams, public: DescentPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """Means rise with <x, theta>: the arm of highest <x, p>, of equals the first."""
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        index = dot(contexts[a], public.estimate)
        if index > best:
            best, arm = index, a
    return arm, 1.0


@cache
def look_with(link: Link) -> Kernel:
    """``look`` for a link."""
    return bind(look, residual_at=bind(residual_at, mean=link.mean))


@cache
def descending(link: Link) -> Kernels:
    """The kernels for a link."""
    return Kernels(
        init=init,
        preprocess_contexts=within_bound,
        choose=choose,
        record_pull=record_pull,
        accumulate=accumulate,
        release_due=release_due,
        sensitivity=sensitivity,
        summarise=bind(summarise, look=look_with(link)),
        publish=publish,
        estimate=estimate,
    )


@cache
def of_reports(kernels: Kernels) -> Kernels:
    """These kernels for a server that gets reports instead of records."""
    return replace(kernels, accumulate=accumulate_report, summarise=summarise_report)
