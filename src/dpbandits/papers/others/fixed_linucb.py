"""LinUCB for arms that stay the same (Abbasi-Yadkori, Pal & Szepesvari 2011), at a cost per round
in proportion to K d + d^2.

The mean reward of arm a is <theta, x_a>.  With V = lambda I + sum of x x^T of the played features,
LinUCB needs the estimated mean m_a and the squared width w_a = |x_a|^2_{V^-1} of every arm. Playing
arm b changes them by one product: with g = X V^-1 x_b,

    w <- w - g^2 / (1 + w_b)        m <- m + g (r - m_b) / (1 + w_b)        (Sherman & Morrison).

Updates lose digits, so all is recomputed from the counts and the sums of rewards now and then.

Nothing is private: every reward crosses the wall as it is.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ...algorithms.bases.fixed_features import FixedFeaturesPolicy
from ...algorithms.bases.linear import estimate
from ...algorithms.bases.sums import EVERY_ROUND
from ...algorithms.maths.dense import factorise, invert
from ...algorithms.maths.ridge import add_outer, combine, dot, multiply
from ...calls import is_open
from ...constraints import Constraints, Real
from ...kernel import Generator, Vector, kernel
from ...policies import ArmEstimates, Card, Kernels, Options, register
from ...protocol import Contexts
from ...tables import features

_SOONEST = 64  # rounds between two recomputations, which cost no more than that many updates
_LARGEST = 1e50  # feature: its square is a number
_ROUNDING = 1e-12


class FixedLinUCBParams(NamedTuple):
    n_arms: int
    arms: np.ndarray  # (K, d)
    columns: np.ndarray  # (d, K) the same, along which loops over arms run
    ridge: float  # lambda
    subgaussian: float  # s: how far rewards scatter around their mean
    log_odds: float  # 2 ln(1/p)
    bias: float  # sqrt(lambda) times the bound on |theta|
    radius_scale: float
    width: float  # hi - lo


class FixedLinUCBRaw(NamedTuple):
    total: np.ndarray  # (1,) the reward of the last round


class FixedLinUCBPublic(NamedTuple):
    means: np.ndarray  # (K,) <x_a, estimate>
    widths: np.ndarray  # (K,) |x_a|^2_{V^-1}
    plays: np.ndarray  # (K,) float64: rewards learned from
    sums: np.ndarray  # (K,) of those rewards
    inverse: np.ndarray  # (d, d) of V
    factor: np.ndarray  # (d, d) of V at the last recomputation
    estimate: np.ndarray  # (d,) at the last recomputation
    facts: np.ndarray  # (2,)
    clock: np.ndarray  # (4,)
    scratch: np.ndarray  # (2, max(d, K))


class Facts(NamedTuple):
    """Slots of ``FixedLinUCBPublic.facts``."""

    log_det: int = 0  # ln(det V / lambda^d)
    radius: int = 1


class Clock(NamedTuple):
    """Slots of ``FixedLinUCBPublic.clock``: those of ``bases.sums``, and one more."""

    rounds: int = 0
    arm: int = 1
    fresh: int = 2
    refresh: int = 3  # round of the next recomputation


FACTS, CLOCK = Facts(), Clock()


@kernel
def recompute(params: FixedLinUCBParams, public: FixedLinUCBPublic) -> None:
    """V, its inverse, the estimate, and every arm's mean and width, from counts and sums."""
    d, moment = params.arms.shape[1], public.scratch[0]
    for i in range(d):
        moment[i] = 0.0
        for j in range(d):
            public.factor[i, j] = params.ridge if i == j else 0.0
    for a in range(params.n_arms):
        x = params.arms[a]
        for i in range(d):
            moment[i] += public.sums[a] * x[i]
        if public.plays[a] > 0.0:
            add_outer(public.factor, public.plays[a], x)
    factorise(public.factor, 0.0, public.factor, d)
    invert(public.factor, public.inverse, d)
    multiply(public.inverse, moment[:d], public.estimate)
    combine(params.columns, public.estimate, public.means)
    for a in range(params.n_arms):
        x = params.arms[a]
        multiply(public.inverse, x, public.scratch[1])
        public.widths[a] = dot(x, public.scratch[1])


@kernel
def set_radius(params: FixedLinUCBParams, public: FixedLinUCBPublic) -> None:
    sampling = params.subgaussian * np.sqrt(params.log_odds + public.facts[FACTS.log_det])
    public.facts[FACTS.radius] = params.radius_scale * (sampling + params.bias)


def init(params: FixedLinUCBParams) -> tuple[FixedLinUCBRaw, FixedLinUCBPublic]:
    k, d = params.arms.shape
    public = FixedLinUCBPublic(
        means=np.zeros(k),
        widths=np.zeros(k),
        plays=np.zeros(k),
        sums=np.zeros(k),
        inverse=np.zeros((d, d)),
        factor=np.zeros((d, d)),
        estimate=np.zeros(d),
        facts=np.zeros(2),
        clock=np.array([0, 0, 0, _SOONEST]),
        scratch=np.zeros((2, max(d, k))),
    )
    recompute(params, public)
    set_radius(params, public)
    return FixedLinUCBRaw(np.zeros(1)), public


@kernel
def choose(
    params: FixedLinUCBParams, public: FixedLinUCBPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm of highest m + radius sqrt(w), the first of equals.

    Beginning with the last arm, which is often the best, most others are seen to be below it
    without a root.
    """
    means, widths, radius = public.means, public.widths, public.facts[FACTS.radius]
    arm = public.clock[CLOCK.arm]
    best = means[arm] + radius * np.sqrt(max(widths[arm], 0.0))
    if not is_open(contexts, arm):
        best = -np.inf
    squared, below = radius * radius * (1.0 + 1e-9), best - _ROUNDING * abs(best)
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        gap = below - means[a]
        if gap > 0.0 and gap * gap > squared * widths[a]:
            continue
        index = means[a] + radius * np.sqrt(max(widths[a], 0.0))
        if index > best or (index == best and a < arm):
            best, arm = index, a
            below = best - _ROUNDING * abs(best)
    return arm, 1.0


@kernel
def publish(
    params: FixedLinUCBParams, public: FixedLinUCBPublic, memo: Vector, release: Vector
) -> None:
    means, widths, clock = public.means, public.widths, public.clock
    arm = clock[CLOCK.arm]
    image, along = public.scratch[0], public.scratch[1]
    public.plays[arm] += 1.0
    public.sums[arm] += release[0]
    multiply(public.inverse, params.arms[arm], image)
    combine(params.columns, image, along)
    # ``image`` and ``along`` are of V before this round, as Sherman & Morrison's formula has it.
    shrink = 1.0 / (1.0 + along[arm])
    step = (release[0] - means[arm]) * shrink
    for a in range(means.size):
        means[a] += step * along[a]
        widths[a] -= shrink * along[a] * along[a]
    public.facts[FACTS.log_det] -= np.log(shrink)
    clock[CLOCK.fresh] = 0
    if clock[CLOCK.rounds] >= clock[CLOCK.refresh]:
        recompute(params, public)
        clock[CLOCK.refresh] = clock[CLOCK.rounds] + max(
            _SOONEST, public.estimate.size, clock[CLOCK.rounds] // 8
        )
    else:
        add_outer(public.inverse, -shrink, image[: public.estimate.size])
    set_radius(params, public)


@register(arms=((1.0, 0.0), (0.0, 1.0), (0.9, 0.8)))
class FixedLinUCB(FixedFeaturesPolicy):
    """LinUCB for fixed arms, without privacy (Abbasi-Yadkori, Pál & Szepesvári 2011).

    It plays arg max of ``<x, estimate> + radius |x|_{V^-1}`` with the radius of their Theorem 2.
    ``LinUCB`` does so when it gets equal features in every round.  Here ``pull`` takes none, and a
    round costs K d + d^2 operations instead of K d^2.

    Args:
        arms: features, shape (K, d); the mean reward of arm a is <theta, arms[a]> for some theta.
            They need not span R^d.
        budget: None; a private relative is ``MergedLinearIMED``.
        ridge: lambda, the regulariser.
        subgaussian: s, the subgaussian deviation of rewards around their mean; by default half the
            width of the reward range.
        parameter_bound: a bound on the norm of theta.
        failure_probability: the probability that the confidence radius is too small at some time.
        radius_scale: multiplies the radius; below 1 it claims no coverage, and mostly plays better.
        **options: see ``Options``.

    Raises:
        ArgumentError: ``arms`` is no table of finite numbers, or an argument is outside its range.

    When to choose: linear rewards, arms that never change, no privacy; and to measure the price of
    it.

    Example:
        >>> FixedLinUCB([[1.0, 0.0], [0.0, 1.0], [0.9, 0.8]]).pull().arm
        2
    """

    learns_off_policy = True
    learns_means = True  # of each arm's own rewards, beside the model: its features never change

    card = Card(
        title="LinUCB for fixed arms, not private",
        source="Abbasi-Yadkori, Pál & Szepesvári (2011), Improved Algorithms for Linear Stochastic"
        " Bandits, Theorem 2",
        trust_model="none",
        learns_at_once=True,
    )
    kernels = Kernels(init=init, choose=choose, publish=publish, estimate=estimate, **EVERY_ROUND)
    constraints: ClassVar[Constraints] = {
        "ridge": Real(0.0, 1e12, strict=True),
        "subgaussian": Real(0.0, 1e12) | None,
        "parameter_bound": Real(0.0, 1e12),
        "failure_probability": Real(0.0, 1.0, strict=True),
        "radius_scale": Real(0.0, 1e12),
    }

    def __init__(
        self,
        arms: ArrayLike,
        *,
        budget: None = None,
        ridge: float = 1.0,
        subgaussian: float | None = None,
        parameter_bound: float = 1.0,
        failure_probability: float = 0.001,
        radius_scale: float = 1.0,
        **options: Unpack[Options],
    ) -> None:
        config = {
            "ridge": ridge,
            "subgaussian": subgaussian,
            "parameter_bound": parameter_bound,
            "failure_probability": failure_probability,
            "radius_scale": radius_scale,
        }
        super().__init__(features("arms", arms, _LARGEST), config, budget=budget, **options)

    @staticmethod
    def _arm_estimates(params: FixedLinUCBParams, public: FixedLinUCBPublic) -> ArmEstimates:
        errors = params.subgaussian * np.sqrt(np.maximum(public.widths, 0.0))
        own = public.sums / np.where(public.plays > 0.0, public.plays, np.nan)
        return ArmEstimates(public.means.copy(), errors, public.plays, own=own)

    def _params(self) -> FixedLinUCBParams:
        (lo, hi), config = self.reward_range, self.config
        return FixedLinUCBParams(
            n_arms=self.n_arms,
            arms=self._arms,
            columns=self._arms.T.copy(),  # never read-only, which would be another type to compile
            ridge=config["ridge"],
            subgaussian=(hi - lo) / 2 if config["subgaussian"] is None else config["subgaussian"],
            log_odds=2.0 * math.log(1.0 / config["failure_probability"]),
            bias=math.sqrt(config["ridge"]) * config["parameter_bound"],
            radius_scale=config["radius_scale"],
            width=hi - lo,
        )
