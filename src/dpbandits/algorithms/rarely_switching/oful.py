"""Rarely switching OFUL on privately released sums: AdaC-OFUL (Azize & Basu 2024, Algorithm 3), and
a tighter form of it.

The estimate changes only when det V has grown by the factor 1 + C since the last change, with V =
lambda I + sum of x x^T of what was played.  Contexts, and so V and the rounds of all changes, are
public.

What crosses the wall: at every change, the running sum of x * reward, with the noise of a counter
over the changes.  One person contributes one reward to one increment, the sum of one episode, and
moves it by at most (hi - lo) * context_bound for features no longer than ``context_bound``, which
scaling enforces.  When an episode ends depends on V, hence on contexts and on what was released
before (Azize & Basu 2024, Theorem 3 and Appendix D).

As published, every increment has noise of its own, so that the noise of the sum grows with the
number of changes.  The number of changes is at most n = d ln(1 + T L^2 / (lambda d)) / ln(1 + C),
which is public: noise that is correlated over n releases costs a record the same and is several
times smaller (``variant="tight"``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple, Unpack

import numpy as np

from ...errors import ArgumentError
from ...kernel import Generator, Matrix, Vector, kernel, unbound
from ...policies import Card, Kernels, Statistic, register
from ...privacy.budgets import Budget
from ...validation import choice, integer, real
from ..bases.contextual import within_bound
from ..bases.errata import ADAC_OFUL
from ..bases.linear import LinearOptions, LinearPolicy, accumulate, estimate, sensitivity
from ..bases.sums import summarise
from ..maths.dense import factorise, invert
from ..maths.ridge import (
    add_observation,
    inverse_norm_bound,
    multiply,
    smallest_eigenvalue,
)


class OFULParams(NamedTuple):
    n_arms: int
    dimension: int
    context_bound: float
    ridge: float  # lambda
    growth: float  # 1 + C
    subgaussian: float  # s: how far rewards scatter around their mean
    log_odds: float  # 2 ln(1/p)
    bias: float  # sqrt(lambda) times the bound on |theta|
    noise_norm: (
        float  # bound on the norm of the noise of every release, or of the first one if it adds up
    )
    adds_up: bool  # whether the noise is that of all releases so far
    spread: float  # the bound in one direction; instead of ``noise_norm``
    # lambda_0, the least eigenvalue of E[x x^T], where a bound on V stands for V; nan otherwise
    eigenvalue: float
    log_rounds: float  # ln(d / p), of that bound
    radius_scale: float
    movement: float  # the most that a record moves an increment, in the channel's norm
    grid: float  # to which increments are rounded; 0 for none
    noise: float = 0.0  # the variance of a release over s^2: of IMED, as what follows
    share: float = 0.0  # of that variance which explores
    margin: float = 0.0  # its logarithm
    middle: float = 0.0  # of the range of rewards
    half: float = 0.0  # half its width
    horizon: float = math.inf  # of IMED: rounds in which learning may pay


class OFULRaw(NamedTuple):
    total: np.ndarray  # (d,) sum of x * reward of the running episode


class OFULPublic(NamedTuple):
    precision: np.ndarray  # (d, d) V
    inverse: np.ndarray  # (d, d)
    standing: np.ndarray  # (d, d) inverse at the last change
    estimate: np.ndarray  # (d,)
    factor: np.ndarray  # (d, d) of V at the last change
    facts: np.ndarray  # (7,)
    clock: np.ndarray  # (2,)
    scratch: np.ndarray  # (3, max(d, K))


class Facts(NamedTuple):
    """Slots of ``OFULPublic.facts``; all but ``grown`` as of the last change."""

    log_det: int = 0  # ln(det V / lambda^d)
    grown: int = 1  # the factor by which det V has grown since
    radius: int = 2
    longest: int = 3  # see ``inverse_norm_bound``
    scatter: int = 4  # of IMED, as what follows: sqrt(alpha) s
    noise: int = 5  # see ``least_divergent_at_once``
    spread: int = 6  # 0: noise is in w


class Clock(NamedTuple):
    """Slots of ``OFULPublic.clock``."""

    rounds: int = 0  # booked
    releases: int = 1


FACTS, CLOCK = Facts(), Clock()
COUNTERS = ("tree", "honaker", "toeplitz", "buffered", "independent")

most_optimistic = unbound  # of few or of many features


@kernel
def set_radius(params: OFULParams, public: OFULPublic, eigenvalue: float, rounds: float) -> None:
    facts, clock = public.facts, public.clock
    noise = params.noise_norm
    if params.adds_up:
        noise *= np.sqrt(float(clock[CLOCK.releases]))
    if not np.isnan(params.eigenvalue):
        # The bound of Gentile, Li & Zappella (2014) on the eigenvalues of sums, which is negative
        # for long: then lambda alone.
        log = np.log(rounds + 3.0) + params.log_rounds
        least = 0.25 * params.eigenvalue * rounds - 8.0 * log - 2.0 * np.sqrt(rounds * log)
        eigenvalue = params.ridge + max(least, 0.0)
    sampling = params.subgaussian * np.sqrt(params.log_odds + facts[FACTS.log_det]) + params.bias
    facts[FACTS.radius] = params.radius_scale * (sampling + noise / np.sqrt(eigenvalue))


def init(params: OFULParams) -> tuple[OFULRaw, OFULPublic]:
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
    return OFULRaw(np.zeros(d)), public


@kernel
def choose(
    params: OFULParams, public: OFULPublic, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The arm of highest <x, estimate> + radius |x|_{V^-1}, with estimate, radius and V of the last
    change.
    """
    spread = params.radius_scale * params.spread
    longest, radius = public.facts[FACTS.longest], public.facts[FACTS.radius]
    return (
        most_optimistic(
            contexts, public.estimate, public.standing, longest, radius, spread, public.scratch
        ),
        1.0,
    )


@kernel
def record_pull(params: OFULParams, public: OFULPublic, arm: int, x: Vector, n: int) -> None:
    public.facts[FACTS.grown] *= add_observation(
        public.precision, public.inverse, x, n, public.scratch[0]
    )
    public.clock[CLOCK.rounds] += n


@kernel
def release_due(params: OFULParams, public: OFULPublic) -> bool:
    return public.facts[FACTS.grown] > params.growth


@kernel
def close(params: OFULParams, public: OFULPublic, memo: Vector) -> None:
    """Note V, how much it has grown, and the round: of later rounds the release knows nothing."""
    d = params.dimension
    for i in range(d):
        for j in range(d):
            memo[i * d + j] = public.precision[i, j]
    memo[d * d], memo[d * d + 1] = public.facts[FACTS.grown], public.clock[CLOCK.rounds]
    public.facts[FACTS.grown] = 1.0


@kernel
def publish(params: OFULParams, public: OFULPublic, memo: Vector, release: Vector) -> None:
    d = params.dimension
    precision, grown, rounds = memo[: d * d].reshape((d, d)), memo[d * d], memo[d * d + 1]
    public.clock[CLOCK.releases] += 1
    public.facts[FACTS.log_det] += np.log(grown)
    # From V itself, because updates of the inverse lose digits.
    factorise(public.precision, 0.0, public.factor, d)
    invert(public.factor, public.inverse, d)
    eigenvalue = smallest_eigenvalue(precision, params.ridge, public.factor)
    public.facts[FACTS.longest] = inverse_norm_bound(precision, eigenvalue)
    factorise(precision, 0.0, public.factor, d)
    invert(public.factor, public.standing, d)
    multiply(public.standing, release, public.estimate)
    set_radius(params, public, eigenvalue, rounds)


KERNELS = Kernels(
    init=init,
    preprocess_contexts=within_bound,
    choose=choose,
    record_pull=record_pull,
    accumulate=accumulate,
    release_due=release_due,
    sensitivity=sensitivity,
    close=close,
    summarise=summarise,
    publish=publish,
    estimate=estimate,
)


class RarelySwitching(LinearPolicy):
    """What the policies of this folder share."""

    kernels = KERNELS
    _searches = True
    _covers = True
    _growth: float
    _variant = "tight"
    _eigenvalue: float | None = None

    @property
    def _holds(self) -> bool:
        return super()._holds and self._variant == "tight"

    @property
    def most_changes(self) -> int:
        """How often the determinant can grow by 1 + C within the horizon (determinant-trace
        inequality).

        With ``clip=False`` features may be longer than their bound, and four times its length are
        planned for.
        """
        length = self.context_bound * (1.0 if self.clip else 4.0)
        rounds = self._horizon or 1
        most = (
            self.dimension
            * math.log1p(rounds * length**2 / (self._ridge * self.dimension))
            / math.log1p(self._growth)
        )
        return min(rounds, math.floor(most) + 1)

    @property
    def _releases(self) -> int | None:
        return None if self._horizon is None else self.most_changes

    def _statistic(self) -> Statistic:
        return replace(super()._statistic(), memo=self.dimension**2 + 2)

    def _params(self) -> OFULParams:
        published = self._variant == "published"
        # The published theorem fails with probability 3 delta; the tight one splits delta over
        # sampling and noise.
        each = self._failure if published or self.budget is None else self._failure / 2
        return OFULParams(
            **self._model(),
            growth=1.0 + self._growth,
            log_odds=2.0 * math.log(1.0 / each),
            bias=self._bias,
            noise_norm=0.0 if self._variant == "heuristic" else self._noise_norm(each),
            adds_up=published,
            spread=self._spread(each) if self._variant == "heuristic" else 0.0,
            eigenvalue=math.nan if self._eigenvalue is None else self._eigenvalue,
            log_rounds=math.log(self.dimension / each),
            radius_scale=self._radius_scale,
            movement=self.statistic.max_sensitivity,
        )

    def _noise_norm(self, probability: float) -> float:
        if self.budget is not None and self._horizon is not None and self._variant == "published":
            # f(d, delta / T) of Appendix F, with ln(1 / .); the printed radius mixes ln(1 / delta)
            # and ln(T / delta).
            log = math.log(self._horizon / probability)
            return self.noise_scale * math.sqrt(
                self.dimension + 2.0 * math.sqrt(self.dimension * log) + 2.0 * log
            )
        return super()._noise_norm(probability)


@register(n_arms=3, dimension=2)
class RSOFUL(RarelySwitching):
    """Rarely switching OFUL, without privacy (Abbasi-Yadkori, Pál & Szepesvári 2011, Section 5.1).

    Plays arg max of ``<x, estimate> + radius |x|_{V^-1}``; estimate, radius and V change when det V
    has grown by 1 + C.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        growth: C.
        budget: None; the private relative is ``AdaCOFUL``.
        **options: see ``LinearOptions``.

    When to choose: as ``LinUCB``, where solving for the estimate in every round takes too long.

    Example:
        >>> RSOFUL(2, 3).pull(np.eye(3)[:2]).arm
        0
    """

    card = Card(
        title="Rarely switching OFUL, not private",
        source=(
            "Abbasi-Yadkori, Pál & Szepesvári (2011), Improved Algorithms for Linear Stochastic"
            " Bandits, Section 5.1"
        ),
        trust_model="none",
    )

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        growth: float = 1.0,
        budget: None = None,
        **options: Unpack[LinearOptions],
    ) -> None:
        self._growth = real("growth", growth, 0.0, 1e6, strict=True)
        super().__init__(
            {"n_arms": n_arms, "dimension": dimension, "growth": self._growth},
            budget=budget,
            **options,
        )


@register(n_arms=3, dimension=2, horizon=30_000)
class AdaCOFUL(RarelySwitching):
    """Rarely switching OFUL on noisy sums (Azize & Basu 2024, Algorithm 3).

    Plays arg max of ``<x, estimate> + radius |x|_{V^-1}`` with ``estimate = V^-1 (sum x r +
    noise)``; estimate, radius and V change when det V has grown by 1 + C.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion; None for the non-private counterpart.
        horizon: an upper bound on the number of rounds, from which the number of changes is
            bounded; generous is fine.  What ends learning is that number, which may be reached some
            rounds later.
        variant: "tight": correlated noise over the changes, and a radius from the exact, public V
            that holds for all changes at once. "heuristic": the same noise with a radius that is
            never larger, as if noise and features were independent; it claims no coverage.
            "published": independent noise in every episode, and the radius of Appendix F.  Privacy
            is the same in all three.
        counter: another counter than the variant's own: "tree", "honaker", "toeplitz", "buffered"
            or "independent".
        smallest_eigenvalue: lambda_0 of the published radius, the least eigenvalue of E[x x^T]
            under the environment; None puts the least eigenvalue of the exact, public V in its
            place.
        growth: C.
        **options: see ``LinearOptions``.

    When to choose: contexts are public, rewards private, and the number of rounds is large: the
    least noise, and choices that stand for long.

    Example:
        >>> from dpbandits import ZCDP
        >>> policy = AdaCOFUL(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> decision = policy.pull(np.eye(3)[:2])
        >>> policy.update(1.0)
        True
    """

    card = Card(
        title="Rarely switching OFUL on noisy sums",
        source=(
            "Azize & Basu (2024), Concentrated Differential Privacy for Bandits, Theorem 3;"
            " counters: dpbandits.privacy.continual"
        ),
        noise=("Laplace", "Gaussian"),
        errata=(ADAC_OFUL,),
    )

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        variant: str = "tight",
        counter: str | None = None,
        smallest_eigenvalue: float | None = None,
        growth: float = 1.0,
        **options: Unpack[LinearOptions],
    ) -> None:
        self._horizon = integer("horizon", horizon, 1, 10**12)
        self._variant = choice("variant", variant, ("tight", "heuristic", "published"))
        without = isinstance(budget, Budget) and "Gaussian" not in budget.noises
        if self._variant == "published" and without:
            raise ArgumentError(
                f"variant must be 'tight' or 'heuristic' for a {type(budget).__name__} budget: the"
                " paper has Gaussian noise only"
            )
        if counter is not None and self._variant == "published":
            raise ArgumentError(
                "counter must be None for variant='published', which has noise of its own, got"
                f" {counter!r}",
                "counter",
            )
        if counter is not None:
            self._counting = choice("counter", counter, COUNTERS)
        elif self._variant == "published":
            self._counting = "independent"
        if smallest_eigenvalue is not None:
            self._eigenvalue = real("smallest_eigenvalue", smallest_eigenvalue, 0.0, 1e12)
        self._growth = real("growth", growth, 0.0, 1e6, strict=True)
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "horizon": self._horizon,
            "variant": self._variant,
            "counter": counter,
        }
        own |= {"smallest_eigenvalue": self._eigenvalue, "growth": self._growth}
        super().__init__(own, budget=budget, **options)
