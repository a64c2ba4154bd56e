"""A regression on rarely released sums: AdaC-OFUL (Azize & Basu 2024, Algorithm 3), or tighter.

Estimates change only when det V has grown by the factor 1 + C since the last change.  Here V =
lambda I + sum of x x^T over played arms.  Contexts, and so V and the rounds of all changes, are
public.

Guarantee:

* Protected: one person's reward, from all who see or override decisions, but for the operator.
  Contexts are public.
* Adjacency: one record is another.  One person contributes one reward to one increment, the sum of
  one episode.
* Sensitivity: at every change, the running sum of x * reward crosses the wall, with the noise of a
  counter over the changes.  A record moves its increment as far as in ``every_answer``.

The end of an episode depends on V, hence on contexts and on earlier releases (Azize & Basu 2024,
Theorem 3 and Appendix D).  All else is post-processing, with any exploration.

As published, every increment has its own noise, and that of the sum grows with their number.  The
number of changes is at most n = d ln(1 + T L^2 / (lambda d)) / ln(1 + C), which is public.  Noise
that is correlated over n releases costs the same budget and is far smaller.

**Divergence.**  A sum that is released d ln T times has a few times less noise than one that is
released after every answer.  That noise lasts long, and an arm hidden by it does not come back by
itself.  With ``share = 0``, 25 of 400 runs are lost on two axes at 1-zCDP, and with ``share = 1``
none.  So its whole variance is part of w^2:

    w^2 = alpha (r^4 / (r^2 + n^2) + share n^2) ,     r = s_x |x|_{V^-1} ,  n = v |V^-1 x| ,

with v the standard deviation of a release's noise.  More rewards would remove r^4 / (r^2 + n^2)
from the variance of a mean; n^2 of it is noise.  Up to r^2 n^2 / (r^2 + n^2), w^2 is the variance
of the released mean.  An arm that looks worse is explored until that is certain in spite of the
noise.

V counts all rounds, not only those before the last release.  An arm tried in an episode is known
better after the next release, so others come first until then.  An error also lasts until then.  A
larger C makes it last longer; a smaller C adds noise.

*Ridge.*  Let g be an eigenvalue of V - lambda I, theta_i the parameter along it, and rewards
scatter by s.  The estimate there has the mean squared error

    (lambda^2 theta_i^2 + g s^2 + v^2) / (g + lambda)^2 ,

the square of the shrinkage, and the variances of rewards and noise.  It is least in lambda at s^2 /
theta_i^2 + v^2 / (g theta_i^2), the variances over that of the parameter.  That of the prior is
taken as S^2 / d, the mean over directions for |theta| = S = max(|lo|, |hi|) / L: the longest theta
for which features of length L have means within the bounds of rewards.  For large g the ridge
hardly matters, for g << lambda the estimate is near 0 with any.  So it is chosen for g = lambda:

    lambda^2 = (lambda s^2 + v^2) d / S^2 ,   hence   lambda >= d s^2 / (2 S^2) + sqrt(d) v / S .

The right side is at least half of lambda, and lambda itself as noise grows.  The rule multiplies
the part of noise by 1 - 1 / d, or by 1 / 2 if d is 1.  With two directions more shrinkage has more
regret on close pairs, and more lost runs; with many it has less regret (``benchmarks/ridges.py``).
It is at least L^2, the weight of one round: without noise, less had up to 1.1 times the regret.  v
depends on the number of releases, and so on lambda: it is taken at lambda = d s^2 / S^2, or L^2.
All these numbers are known in advance, so the ridge says nothing about data.

**Sampling.**  The draw uses the estimate of the last change, with its V.  Regret is 5 to 27 % below
that of a release after every answer.  It is similar for C = 0.1, 0.4 and 1 (20 arms, 5 features,
20,000 rounds, 0.1- and 1-zCDP).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...kernel import Generator, Matrix, Vector, kernel, unbound
from ..bases.sums import Sums
from ..exploration import Divergence, Optimism, Sampling
from ..maths.dense import factorise, invert
from ..maths.ridge import (
    add_observation,
    dot,
    inverse_norm_bound,
    least_divergent_at_once,
    multiply,
    prepare_draw,
    smallest_eigenvalue,
)
from . import every_answer
from .every_answer import LinearParams, radius_of, tightness_of


class OFULPublic(NamedTuple):
    precision: np.ndarray  # (d, d) V
    inverse: np.ndarray  # (d, d)
    standing: np.ndarray  # (d, d) inverse at the last change
    estimate: np.ndarray  # (d,)
    factor: np.ndarray  # (d, d) of V at the last change
    facts: np.ndarray  # (7,)
    clock: np.ndarray  # (2,)
    scratch: np.ndarray  # (3, max(d, K))


class Facts(NamedTuple):  # slots of ``OFULPublic.facts``; all but ``grown`` as of the last change
    log_det: int = 0  # ln(det V / lambda^d)
    grown: int = 1  # the factor by which det V has grown since
    radius: int = 2
    longest: int = 3  # see ``inverse_norm_bound``
    scatter: int = 4  # of IMED, as what follows: sqrt(alpha) s
    noise: int = 5  # see ``least_divergent_at_once``
    spread: int = 6  # 0: noise is in w


class Clock(NamedTuple):  # slots of ``OFULPublic.clock``
    rounds: int = 0  # booked
    releases: int = 1


FACTS, CLOCK = Facts(), Clock()

most_optimistic = unbound  # of few or of many features


@kernel
def set_radius(params: LinearParams, public: OFULPublic, eigenvalue: float, rounds: float) -> None:
    facts, clock = public.facts, public.clock
    noise = params.noise_norm
    if params.adds_up:
        noise *= np.sqrt(float(clock[CLOCK.releases]))
    if not np.isnan(params.eigenvalue):
        # The bound of Gentile, Li & Zappella (2014); while it is negative, lambda alone counts.
        log = np.log(rounds + 3.0) + params.log_rounds
        least = 0.25 * params.eigenvalue * rounds - 8.0 * log - 2.0 * np.sqrt(rounds * log)
        eigenvalue = params.ridge + max(least, 0.0)
    facts[FACTS.radius] = radius_of(params, facts[FACTS.log_det], eigenvalue, noise)


def init(params: LinearParams) -> tuple[Sums, OFULPublic]:
    d, ridge = params.dimension, params.ridge
    public = OFULPublic(
        precision=np.eye(d) * ridge,
        inverse=np.eye(d) / ridge,
        standing=np.eye(d) / ridge,
        estimate=np.zeros(d),
        factor=np.eye(d) * np.sqrt(ridge),
        facts=np.zeros(len(FACTS)),
        clock=np.zeros(2, np.int64),
        scratch=np.zeros((3, max(d, params.n_arms))),
    )
    facts = public.facts
    facts[FACTS.grown], facts[FACTS.noise] = 1.0, params.noise
    facts[FACTS.scatter] = params.subgaussian * math.sqrt(params.log_odds)
    facts[FACTS.longest] = inverse_norm_bound(public.precision, ridge)
    set_radius(params, public, ridge, 0.0)
    return Sums(np.zeros(d)), public


@kernel
def choose_optimistic(
    params: LinearParams, public: OFULPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """Arg max of <x, estimate> + radius |x|_{V^-1}, all three of the last change."""
    believed, inverse, work = public.estimate, public.standing, public.scratch
    longest, radius = public.facts[FACTS.longest], public.facts[FACTS.radius]
    spread = params.radius_scale * params.spread
    return most_optimistic(contexts, believed, inverse, longest, radius, spread, work), 1.0


@kernel
def choose_sampled(
    params: LinearParams, public: OFULPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The best arm for one draw from N(estimate, s^2 V^-1 + v^2 V^-2), V of the last change."""
    sample, noise = public.scratch[0, : params.dimension], public.scratch[1, : params.dimension]
    scatter, spread = public.facts[FACTS.radius], params.radius_scale * params.spread
    prepare_draw(
        public.estimate, public.factor, public.standing, scatter, spread, sample, noise, rng
    )
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        index = dot(contexts[a], sample)
        if index > best:
            best, arm = index, a
    return arm, np.nan


@kernel
def choose_divergent(
    params: LinearParams, public: OFULPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The arm of least index, see ``exploration``."""
    d, believed, rounds = params.dimension, public.estimate, float(public.clock[CLOCK.rounds])
    facts, inverse = public.facts.reshape((-1, 1)), public.inverse.reshape((1, d, d))
    longest, scatter = facts[FACTS.longest], facts[FACTS.scatter]
    noise, spread = facts[FACTS.noise], facts[FACTS.spread]
    arm = least_divergent_at_once(
        params, contexts, believed, inverse, longest, scatter, noise, spread, rounds
    )
    return arm, 1.0


@kernel
def record_pull(params: LinearParams, public: OFULPublic, arm: int, x: Vector, n: int) -> None:
    public.facts[FACTS.grown] *= add_observation(
        public.precision, public.inverse, x, n, public.scratch[0]
    )
    public.clock[CLOCK.rounds] += n


@kernel
def release_due(params: LinearParams, public: OFULPublic) -> bool:
    return public.facts[FACTS.grown] > params.growth


@kernel
def close(params: LinearParams, public: OFULPublic, memo: Vector) -> None:
    """Note V, how much it has grown, and the round: of later rounds the release knows nothing."""
    d = params.dimension
    for i in range(d):
        for j in range(d):
            memo[i * d + j] = public.precision[i, j]
    memo[d * d], memo[d * d + 1] = public.facts[FACTS.grown], public.clock[CLOCK.rounds]
    public.facts[FACTS.grown] = 1.0


@kernel
def withdraw(params: LinearParams, public: OFULPublic, memo: Vector) -> None:
    d = params.dimension
    public.facts[FACTS.grown] *= memo[d * d]


@kernel
def rebase(params: LinearParams, public: OFULPublic, release: Vector) -> None:
    """The estimate times V; without an estimate V begins anew."""
    d = params.dimension
    if public.clock[CLOCK.releases] == 0:
        public.precision[:] = public.inverse[:] = 0.0
        for i in range(d):
            public.precision[i, i], public.inverse[i, i] = params.ridge, 1.0 / params.ridge
        public.facts[FACTS.grown], public.clock[CLOCK.rounds] = 1.0, 0
    multiply(public.precision, public.estimate, release)


@kernel
def publish(params: LinearParams, public: OFULPublic, memo: Vector, release: Vector) -> None:
    d = params.dimension
    precision, grown, rounds = memo[: d * d].reshape((d, d)), memo[d * d], memo[d * d + 1]
    public.clock[CLOCK.releases] += 1
    public.facts[FACTS.log_det] += np.log(grown)
    eigenvalue = smallest_eigenvalue(
        precision, params.ridge, tightness_of(params), public.factor, public.scratch
    )
    public.facts[FACTS.longest] = inverse_norm_bound(precision, eigenvalue)
    late = False
    for i in range(d):
        for j in range(d):
            late |= precision[i, j] != public.precision[i, j]
    # From V itself, because updates of the inverse lose digits.
    if late:
        factorise(public.precision, 0.0, public.factor, d)
        invert(public.factor, public.inverse, d)
    # Last of the uses of ``factor``, which draws take for that of the noted V.
    factorise(precision, 0.0, public.factor, d)
    invert(public.factor, public.standing, d)
    if not late:
        for i in range(d):
            for j in range(d):
                public.inverse[i, j] = public.standing[i, j]
    multiply(public.standing, release, public.estimate)
    set_radius(params, public, eigenvalue, rounds)


_OPTIMISTIC = replace(
    every_answer.KERNELS[Optimism],
    init=init,
    choose=choose_optimistic,
    record_pull=record_pull,
    release_due=release_due,
    close=close,
    withdraw=withdraw,
    rebase=rebase,
    publish=publish,
)
KERNELS = {
    Optimism: _OPTIMISTIC,
    Sampling: replace(_OPTIMISTIC, choose=choose_sampled),
    Divergence: replace(_OPTIMISTIC, choose=choose_divergent),
}
