"""Generalised linear bandits with public features: one Newton step on each of ever longer epochs.

E[r | x] = nu(<x, theta>).  Features are public, and so are functions of them: the information V =
lambda I + sum of h x x^T, h = nu'(<x, p>), and the offset sum of (nu(<x, p>) - h <x, p>) x.  Here p
is the estimate at the start of the epoch.  With rewards they make a linear model of z = r - nu(<x,
p>) + h <x, p> in every epoch (``newton`` bounds its error).

Guarantee:

* Protected: one person's reward, from all who see or override decisions, but for the operator.
  Features are public.
* Adjacency: one record is another.  One person contributes to one increment.
* Sensitivity: at the end of every epoch the running sum of x * reward crosses the wall, as a
  continual sum.  One person moves one increment by at most (hi - lo) * context_bound
  (``bases.linear``), for any link, as in ``PrivateLinUCB``.  All else is post-processing.

**Width.**  The error of theta^ = V^-1 (sum of x r + n - offset) is V^-1 (u + n + sum of rho x -
lambda theta).  Here u = sum of x eta, eta is the noise of rewards, and |rho| <= M / 2 <x, theta -
p>^2.

* |u|_{V^-1} <= s / sqrt(m) sqrt(2 ln(1/p) + ln(det V / lambda^d)), with m the least slope.  This
  holds because V >= m (sum of x x^T + (lambda / m) I), by Abbasi-Yadkori, Pal & Szepesvari (2011),
  Theorem 1.
* |sum of rho x|_{V^-1} <= sqrt(sum of rho^2 / h), where |<x, theta - p>| is at most |x| times a
  bound on |theta - p|.  If p is the estimate itself, it is also at most the width of x when the
  epoch began.
* |<x, V^-1 n>| <= |V^-1 x| |n|, and |lambda theta|_{V^-1} <= sqrt(lambda) |theta|.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from ...constraints import Constraints, Integer, Real
from ...glm.links import Link, link_of
from ...kernel import Vector, bind, kernel, outlined, unbound
from ...policies import Card, Composition, Statistic, composed, given, like, preset
from ...policies.parts import PartOf
from ...privacy.budgets import Budget
from ...protocol import nothing_to_note
from ..bases.counter_choice import MOST_ROUNDS, running_sum
from ..bases.linear import MODEL, LinearPolicy, ModelOptions, accumulate, block_of, model_of
from ..bases.schedules import Schedule, next_release
from ..bases.sums import Sums
from ..exploration import Optimism, Sampling, resolved
from ..hidden.kernels import OPTIMISTIC, SAMPLED
from ..hidden.model import CLOCK, FACTS
from ..maths.dense import factorise, invert
from ..maths.ridge import dot, inverse_norm_bound, multiply

_CHAPELLE_LI = "Chapelle & Li (2011), An Empirical Evaluation of Thompson Sampling"
_FILIPPI = (
    "Filippi, Cappé, Garivier & Szepesvári (2010), Parametric Bandits: The Generalized Linear Case"
)

mean = slope = unbound  # of the link


class GLMParams(NamedTuple):
    n_arms: int
    n_models: int
    dimension: int
    context_bound: float
    ridge: float  # lambda
    subgaussian: float  # s / sqrt(m)
    grid: float
    log_odds: float  # 2 ln(1/p)
    noise_norm: float  # bound on |n| in all releases
    std: float  # of n in one direction
    parameter_bound: float
    radius_scale: float
    movement: float
    batch: int
    growth: float
    flattest: float  # m
    steepest: float
    curvature: float  # M


class GLMPublic(NamedTuple):
    precision: np.ndarray  # (M, d, d) V as of the last release
    factor: np.ndarray  # (M, d, d) of it
    inverse: np.ndarray  # (M, d, d) of it
    estimate: np.ndarray  # (M d,)
    facts: np.ndarray  # (6, M)
    clock: np.ndarray  # (3,)
    sample: np.ndarray  # (M + 1, d)
    information: np.ndarray  # (M, d, d) V of all that was booked
    offset: np.ndarray  # (M, d)
    point: np.ndarray  # (M, d)
    errors: np.ndarray  # (3, M)


class Errors(NamedTuple):  # slots of ``GLMPublic.errors``
    miss: int = 0  # bound on |p - theta|
    cut: int = 1  # whether p is not the estimate, which was too long
    remainder: int = 2  # bound on |sum of rho x|^2 in the norm of V^-1


ERRORS = Errors()


def init(params: GLMParams) -> tuple[Sums, GLMPublic]:
    models, d = params.n_models, params.dimension
    identities = np.tile(np.eye(d), (models, 1, 1))
    public = GLMPublic(
        precision=identities * params.ridge,
        factor=identities * np.sqrt(params.ridge),
        inverse=identities / params.ridge,
        estimate=np.zeros(models * d),
        facts=np.zeros((len(FACTS), models)),
        clock=np.array([0, params.batch, 0]),
        sample=np.zeros((models + 1, d)),
        information=identities * params.ridge,
        offset=np.zeros((models, d)),
        point=np.zeros((models, d)),
        errors=np.zeros((len(ERRORS), models)),
    )
    public.errors[ERRORS.miss] = params.parameter_bound
    for m in range(models):
        _measure(params, public, m)
    return Sums(np.zeros(models * d)), public


@kernel
def _width(params: GLMParams, public: GLMPublic, m: int, x: Vector) -> float:
    """A bound on |<x, theta - p>|, p being the point of the running epoch."""
    facts, miss = public.facts[:, m], public.errors[ERRORS.miss, m]
    widest = miss * np.sqrt(dot(x, x))
    # The narrow width is one around the estimate, and p is another point.
    if public.errors[ERRORS.cut, m] > 0.0:
        return widest
    inverse = public.inverse[m]
    form = length = 0.0
    for i in range(x.size):
        turned = dot(inverse[i], x)
        form += turned * x[i]
        length += turned * turned
    narrow = facts[FACTS.radius] * np.sqrt(max(form, 0.0)) + facts[FACTS.bias] * np.sqrt(length)
    return min(widest, narrow)


@kernel
def record_pull(params: GLMParams, public: GLMPublic, arm: int, x: Vector, n: int) -> None:
    m = model_of(params, arm)
    information, offset = public.information[m], public.offset[m]
    t = dot(x, public.point[m])
    # Within the bounds that the radius is proved with, whatever the link returns.
    h = min(max(slope(t), params.flattest), params.steepest)
    off = 0.5 * params.curvature * _width(params, public, m, x) ** 2
    public.errors[ERRORS.remainder, m] += n * off * off / h
    constant = n * (mean(t) - h * t)
    for i in range(x.size):
        offset[i] += constant * x[i]
        for j in range(x.size):
            information[i, j] += n * h * (x[i] * x[j])
    public.clock[CLOCK.rounds] += n


@kernel
def _measure(params: GLMParams, public: GLMPublic, m: int) -> None:
    """Inverse, radius and bias for V as it is held."""
    d, facts, errors = params.dimension, public.facts[:, m], public.errors[:, m]
    factor, inverse = public.factor[m], public.inverse[m]
    factorise(public.precision[m], 0.0, factor, d)
    invert(factor, inverse, d)
    squares, log_det = 0.0, -d * np.log(params.ridge)
    for i in range(d):
        squares += dot(inverse[i], inverse[i])
        log_det += 2.0 * np.log(factor[i, i])
    # 1 / sqrt(squares) is at most the least eigenvalue, which is at least lambda.
    least = max(1.0 / np.sqrt(squares), params.ridge)
    facts[FACTS.longest] = inverse_norm_bound(public.precision[m], least)
    bias = np.sqrt(params.ridge) * params.parameter_bound
    radius = params.subgaussian * np.sqrt(params.log_odds + max(log_det, 0.0))
    radius += np.sqrt(max(errors[ERRORS.remainder], 0.0)) + bias
    facts[FACTS.radius] = params.radius_scale * radius
    facts[FACTS.bias] = params.radius_scale * params.noise_norm
    facts[FACTS.spread] = params.std


@kernel
def _move(params: GLMParams, public: GLMPublic, m: int) -> None:
    """Let the next epoch be looked at from the estimate, or the nearest that theta may be."""
    d, facts, errors = params.dimension, public.facts[:, m], public.errors[:, m]
    believed, point = public.estimate[block_of(m, d)], public.point[m]
    bound = params.parameter_bound
    length = np.sqrt(dot(believed, believed))
    shrink = bound / length if length > bound else 1.0
    for i in range(d):
        point[i] = shrink * believed[i]
    longest = facts[FACTS.longest]
    error = (facts[FACTS.radius] + facts[FACTS.bias] * longest) * longest
    errors[ERRORS.miss] = min(error, 2.0 * bound)
    errors[ERRORS.cut] = 1.0 - shrink


@outlined
def publish(params: GLMParams, public: GLMPublic, memo: Vector, release: Vector) -> None:
    d, clock = params.dimension, public.clock
    clock[CLOCK.next] = next_release(clock[CLOCK.next], params.batch, params.growth, np.inf)
    clock[CLOCK.releases] += 1
    for m in range(params.n_models):
        block, precision = block_of(m, d), public.precision[m]
        for i in range(d):
            for j in range(d):
                precision[i, j] = public.information[m, i, j]
        # First, for the estimate needs the inverse; ``_move`` comes last, as it replaces the point.
        _measure(params, public, m)
        corrected = public.point[m]  # which is about to move
        for i in range(d):
            corrected[i] = release[m * d + i] - public.offset[m, i]
        multiply(public.inverse[m], corrected, public.estimate[block])
        _move(params, public, m)


@kernel
def rebase(params: GLMParams, public: GLMPublic, release: Vector) -> None:
    """The sum from which the same Newton step follows; without a step all is counted anew."""
    d = params.dimension
    if public.clock[CLOCK.releases] == 0:
        public.information[:] = public.precision
        public.offset[:] = 0.0
        public.errors[ERRORS.remainder] = 0.0
    for m in range(params.n_models):
        block = block_of(m, d)
        multiply(public.information[m], public.estimate[block], release[block])
        for i in range(d):
            release[m * d + i] += public.offset[m, i]


@cache
def _composed(explore: type[Any], link: Link) -> Composition:
    sampling = explore is Sampling
    kernels = replace(
        SAMPLED if sampling else OPTIMISTIC,
        init=init,
        record_pull=bind(record_pull, mean=link.mean, slope=link.slope),
        accumulate=accumulate,
        close=nothing_to_note,
        publish=publish,
        rebase=rebase,
    )
    card = Card(
        title="generalised linear Thompson sampling" if sampling else "generalised linear UCB",
        source=f"{_CHAPELLE_LI if sampling else _FILIPPI}; running sums:"
        " module dpbandits.privacy.continual",
        proof="module dpbandits.algorithms.glm.public",
        noise=("Laplace", "Gaussian"),
        randomised=sampling,
    )
    return Composition(kernels, card)


class LinkOptions(ModelOptions, total=False):
    """Constructor arguments beside those of ``ModelOptions``.

    parameter_bound: the largest norm of the unknown parameter.  Default 1.
    """

    parameter_bound: float


class EpochPolicy(LinearPolicy):
    """Base class of generalised linear models that are estimated after ever longer epochs."""

    learns_off_policy = False
    constraints: ClassVar[Constraints] = {
        "explore": PartOf(Optimism, Sampling, exactly=True),
        "horizon": Integer(1, MOST_ROUNDS),
        "growth": Real(0.01, 1e6),
    }

    @property
    def _schedule(self) -> Schedule:
        return Schedule(self.config["batch"], self.config["growth"])

    @cached_property
    def _memory(self) -> dict[str, int]:
        return self._schedule.memory(self.config["horizon"], self.dimension)

    def _model(self) -> dict[str, Any]:
        """Outcomes scatter so far in the norm of the information."""
        flattest = self._linked.conditioning.least_slope
        return {**super()._model(), "subgaussian": self._scatter / math.sqrt(flattest)}


@composed(n_arms=3, dimension=2, horizon=30_000, batch=4)
class GLM(EpochPolicy):
    """Generalised linear bandit with public features and private rewards.

    Mean rewards are ``nu(<x, theta>)``.  The estimate is one Newton step on each of ever longer
    epochs; estimate, information V and width change at the end of an epoch.  ``Optimism`` plays arg
    max of ``<x, estimate> + radius |x|_{V^-1} + bias |V^-1 x|``.  ``Sampling`` plays the best arm
    for one draw of theta from ``N(estimate, s^2 V^-1 + v^2 V^-2)``, with ``s^2`` a bound on the
    variance of rewards over the slope of the link, and ``v`` the standard deviation of the noise of
    the release (0 without a budget).

    Args:
        n_arms, dimension, counter: as in ``Linear``.
        budget: of any notion; None without privacy.
        horizon: an upper bound on the number of rounds; a generous one is fine.  After it the
            policy stops learning.
        explore: how arms are chosen: ``Optimism()`` or ``Sampling()``.
        link: nu: "logistic", "probit", "identity", or one of ``dpbandits.glm.register_link``.
        batch: rounds of the first epoch, and of the shortest.
        growth: share by which the number of rounds grows between two estimates; 1 doubles it.
        models: "shared", one parameter for all arms, or "disjoint", one for each: then ``pull`` may
            take one vector of features, shape (d,), for all of them.
        **options: see ``LinkOptions``.

    Raises:
        ArgumentError: an argument is outside its range, or the link is flat or undefined for some
            <x, theta> within ``context_bound`` and ``parameter_bound``.

    When to choose: rewards are yes or no, contexts are public.  ``Sampling`` mostly has far less
    regret, without a theorem; the width of ``Optimism`` is proved to hold.

    Example:
        >>> from dpbandits import ZCDP
        >>> policy = GLM(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> policy.update(1.0, policy.pull([[1, 0, 0], [0, 1, 0]]))
        True
    """

    card = _composed(Sampling, link_of("logistic")).card
    _options: ClassVar[dict[str, Any]] = {**MODEL, "parameter_bound": 1.0}

    @classmethod
    def composition(
        cls, *, explore: Optimism | Sampling, link: str = "logistic", **_: object
    ) -> Composition:
        """Kernels and card of a combination."""
        kind: Any = type(explore)
        return _composed(kind, link_of(link))

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        explore: Optimism | Sampling = Sampling(),  # noqa: B008  (a value)
        link: str = "logistic",
        batch: int = 1,
        growth: float = 0.1,
        counter: str | None = None,
        models: str = "shared",
        **options: Unpack[LinkOptions],
    ) -> None:
        how: Any = explore
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "explore": resolved(how, "GLM"),
            **running_sum(horizon, counter),
            "models": models,
            "link": link,
            "batch": batch,
            "growth": growth,
        }
        composition = self.composition(explore=explore, link=link)
        super().__init__(own, budget=budget, composition=composition, **options)

    @property
    def _releases(self) -> int:
        return self._schedule.releases(self.config["horizon"])

    def _statistic(self) -> Statistic:
        return replace(super()._statistic(), max_records=self._memory["capacity"])

    def _params(self) -> GLMParams:
        each = self._each_failure / (2 if self.budget is not None else 1)
        explore = self.config["explore"]
        sampling = isinstance(explore, Sampling)
        return GLMParams(
            **self._model(),
            **self._linked.slopes,
            n_models=self.n_models,
            log_odds=2.0 * math.log(1.0 / each),
            noise_norm=self._noise_norm(each),
            std=self._noise_std,
            parameter_bound=self._parameter_bound,
            radius_scale=explore.inflation if sampling else self._radius_scale,
            movement=self.statistic.max_sensitivity,
            batch=self.config["batch"],
            growth=self.config["growth"],
        )


_MODEL = "ridge subgaussian context_bound parameter_bound"
_EPOCHS = "horizon counter models link batch growth"
_MODELS = given("models", "shared", quiet=True)

GLMUCB = preset(
    "GLMUCB",
    GLM,
    f"n_arms dimension {_EPOCHS} {_MODEL} failure_probability radius_scale",
    """GLM-UCB: optimism in a generalised linear model with public features, private or not.""",
    explore=like(Optimism, "failure_probability", "radius_scale"),
    models=_MODELS,
)

GLMThompson = preset(
    "GLMThompson",
    GLM,
    f"n_arms dimension inflation {_EPOCHS} {_MODEL}",
    """Thompson sampling in a generalised linear model with public features, private or not.""",
    explore=like(Sampling, "inflation"),
    models=_MODELS,
)
