"""Generalised linear bandits by online learning to confidence sets, with private features.

The wall stands around each person.  A person releases [w g ; svec(x x^T)].  Here g = (nu(<x, p>) -
r) x is the gradient of the person's log-loss at the public point p, |p| <= S.

**Sensitivity.**  This is the statistic of a linear model with nu - r in the place of a reward
(``hidden.model``). Its proof takes any r with |r| <= R, and the kernel cuts nu - r to [-R, R].  For
the links of this package the bound is that of ``glm.replacement``, with h = 1: the kernel scales
points to |p| <= S.

The published report has (x^T p) x, too.  That is (x x^T) p, a known linear map of the reported
matrix.  So the server computes it from the noisy matrix, without separate noise, and with less
noise on the rest.  Take the published form with w = 1 and records (x, r), (x', r').  Let M = x x^T
- x' x'^T, c = cos(x, x'), |x|^2 = L^2 tau and |x'|^2 = L^2 tau'.  Then

    D^2 = |x r - x' r'|^2 + |M|_F^2 + |M p|^2 ,   |M p| <= S |M|_op .

The last two are convex in tau, and in tau', so they are largest at the ends.  With tau = tau' = 1
the eigenvalues of M are +-L^2 sqrt(1 - c^2), and the two terms are (2 + S^2) L^4 (1 - c^2).  With
tau' = 0 they are (1 + S^2) L^4; with tau = tau' = 0, zero.  The first is at most 2 R^2 L^2 (1 +
|c|), as it is for tau = tau' = 1.  So

    D^2  <=  max( a^2 J(R / a, L)^2 ,  4 R^2 L^2 + (1 + S^2) L^4 ) ,   a^2 = 1 + S^2 / 2 ,

with J the sensitivity of the linear model (``joint_sensitivity``).

**Post-processing.**  Once in a batch, the point p moves against noisy gradients, and back into the
ball of radius S in which theta lies.  p_t is the point at the t-th report, and p' their mean.  The
estimate is the ridge regression of <x_t, p_t> on x_t that is drawn to p': theta^ = p' + V^-1 sum of
(x_t x_t^T + N_t) (p_t - p').  Here V = sum of (x_t x_t^T + N_t) + lambda I + C as in
``hidden.model``.  (Drawn to 0, as published, it would change sign in directions where the noise
subtracts more than the data.) So with q_t = p_t - theta

    V (theta^ - theta)  =  sum of x_t <x_t, q_t>  +  sum of N_t q_t  +  (lambda I + C) (p' - theta).

In the norm of A^-1 the first is at most sqrt(B), B = sum of <x_t, q_t>^2.  The rest is noise and
bias, as there, with |p' - theta| <= |p'| + S.  Let the slope of nu be at least mu, eta_t the
scatter of rewards, and n_t the noise of g_t.  Then

    mu B  <=  sum of <g_t + n_t, q_t>  -  sum of <n_t, q_t>  +  sum of eta_t <x_t, q_t> .

* The first, with batches of b reports, mean gradient G_k and steps z_k that do not grow: it is at
  most b (2 S^2 / z_K + sum of z_k |G_k|^2 / 2).  For |q| <= 2 S, and projections do not lengthen q
  (Zinkevich 2003).  All of this is public.
* Take a sum of d-vectors, conditionally sub-Gaussian with proxies s_t^2 that add up to at most W.
  In all rounds at once, with probability 1 - f, it is at most sqrt(2 (W + c) (ln(1 / f) + d / 2
  ln(1 + W / c))), for any fixed c > 0 (mixture of normals; Robbins 1970).  Let s be the standard
  deviation of n_t and of N_t.  For <n_t, q_t>, d = 1, and for N_t q_t, whose covariance is v^2
  (|q|^2 I + q q^T) / 2, W = (2 S s)^2 n after n reports.  The largest W is used, and c that of one
  batch.
* For eta_t <x_t, q_t> it is s^2 B, and c = s^2 (2 S L)^2 b, L the bound on features; in the
  logarithm B <= (2 S L)^2 n.  The remaining inequality is quadratic in sqrt(B + c / s^2).

The noise of one report may have any direction: choices and points may depend on it in any way. The
omissions are those of ``hidden.model``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from ...algorithms.bases.counter_choice import MOST_ROUNDS
from ...algorithms.bases.errata import GLM_REPORTS
from ...algorithms.bases.linear import MODEL, RADIUS, LinearOptions, on_grid
from ...algorithms.bases.schedules import next_release
from ...algorithms.glm.gradients import DescentRaw, descending, of_reports, project, residual_at
from ...algorithms.glm.joint import bounds_on_records, moved_by_replacement
from ...algorithms.glm.local import HAN, ScoringDevice
from ...algorithms.glm.newton import add_products, choose_optimistic, record_pull, report_due
from ...algorithms.hidden import model as linear
from ...algorithms.hidden.kernels import add_record
from ...algorithms.hidden.local import LocalPolicy
from ...algorithms.hidden.model import CLOCK, FACTS, joint_sensitivity, regress
from ...algorithms.hidden.policy import asks_for_published, refuse_unpublished
from ...algorithms.maths.ridge import dot
from ...constraints import Constraints, Integer, Real
from ...errors import ArgumentError
from ...glm.links import Link, link_of
from ...glm.replacement import point_scale
from ...kernel import Kernel, Vector, bind, kernel, outlined
from ...policies import Card, Kernels, Statistic, register
from ...privacy.budgets import ApproxDP, Budget
from ...privacy.channels import PublishedGaussian


def published_sensitivity(residual: float, length: float, parameter: float) -> float:
    """The sensitivity of [(nu - r) x ; svec(x x^T) ; (x^T p) x], for bounds on |nu - r|, on |x| and
    on |p|; see the docstring of the module.

    >>> round(published_sensitivity(1.0, 1.0, 1.0) ** 2, 12)
    6.0
    """
    heavier = math.sqrt(1.0 + 0.5 * parameter * parameter)
    both = heavier * joint_sensitivity(residual / heavier, length)
    alone = length * length * math.hypot(1.0, parameter)
    return max(both, math.hypot(2.0 * residual * length, alone))


class OnlineParams(NamedTuple):
    linear: linear.Params
    n_arms: int
    dimension: int
    size: int  # of a report
    context_bound: float
    movement: float  # the most that a record moves the statistic
    reach: float  # <x, p> is cut to [-reach, reach]
    residual: float  # R, to which nu - r is cut
    flattest: float  # mu
    parameter_bound: float  # S
    length: float  # L, for the width
    step: float  # of the first update
    decay: float  # the t-th step is step / t^decay
    std: float  # of the noise of a report
    log_odds: float  # ln(1 / f)
    excess: float  # of the published radius: sigma sqrt(d) / mu


class OnlinePublic(NamedTuple):
    linear: linear.Public
    estimate: np.ndarray  # (d,)
    point: np.ndarray  # (d,) p
    seen: np.ndarray  # (size,) the sum of reports at the last update
    moments: np.ndarray  # (d + d (d + 1) / 2,): [w sum of <x, p> x ; svec(sum of x x^T)]
    average: np.ndarray  # (d,) p'
    travel: np.ndarray  # (2,)
    centred: np.ndarray  # (d + d (d + 1) / 2,) the moments as seen from p'


class Travel(NamedTuple):
    """Slots of ``OnlinePublic.travel``."""

    updates: int = 0
    squares: int = 1  # sum of z_k |G_k|^2 / 2


TRAVEL = Travel()


def init(params: OnlineParams) -> tuple[DescentRaw, OnlinePublic]:
    _, model = linear.init(params.linear)
    d = params.dimension
    moments = np.zeros(linear.statistic_size(d))
    public = OnlinePublic(
        linear=model,
        estimate=np.zeros(d),
        point=np.zeros(d),
        seen=np.zeros(params.size),
        moments=moments,
        average=np.zeros(d),
        travel=np.zeros(len(TRAVEL)),
        centred=np.zeros_like(moments),
    )
    _widen(params, public, 0.0)
    return DescentRaw(np.zeros(d), np.zeros(1), np.zeros(params.size)), public


# Behind the wall -------------------------------------------------------------------------------


@kernel
def look(params: OnlineParams, point: Vector, x: Vector, outcome: float, statistic: Vector) -> None:
    """Write the report of one record, as it is before noise is added."""
    for k in range(params.size):
        statistic[k] = 0.0
    residual = residual_at(params, point, x, outcome)
    # A record of the linear model, with the cut residual in the place of the reward.
    add_record(params.linear, statistic, 0, x, residual)
    if params.linear.published:
        first = params.size - params.dimension
        expected = point_scale(point, params.parameter_bound) * dot(x, point)
        for i in range(x.size):
            product = params.linear.weight * expected * x[i]
            statistic[first + i] = on_grid(product, params.linear.grid)


@outlined
def summarise(
    params: OnlineParams, raw: DescentRaw, public: OnlinePublic, memo: Vector, statistic: Vector
) -> None:
    look(params, public.point, raw.features, raw.outcome[0], statistic)
    raw.outcome[0] = 0.0
    for i in range(raw.features.size):
        raw.features[i] = 0.0


# What follows from a release -------------------------------------------------------------------


@kernel
def _within(log_odds: float, width: float, coordinates: int, batches: float) -> float:
    """An upper bound on a sum of noise of that width, the root of W."""
    shares = (1.0 + 1.0 / batches) * (2.0 * log_odds + coordinates * np.log1p(batches))
    return width * np.sqrt(shares)


@kernel
def _widen(params: OnlineParams, public: OnlinePublic, reports: float) -> None:
    """Replace the width of a linear model by the proved one for so many reports."""
    facts, scale = public.linear.facts[:, 0], params.linear.radius_scale
    if params.linear.published:
        facts[FACTS.radius] = scale * np.sqrt(params.excess * np.sqrt(max(reports, 1.0)))
        return
    away = params.parameter_bound + np.sqrt(dot(public.average, public.average))
    facts[FACTS.bias] = scale * facts[FACTS.added] * away
    if reports == 0.0:
        facts[FACTS.radius] = 0.0
        return
    batch = float(params.linear.batch)
    batches, far = reports / batch, 2.0 * params.parameter_bound
    noise = far * np.sqrt(reports) * params.std
    facts[FACTS.bias] += scale * _within(params.log_odds, noise, params.dimension, batches)
    last = params.step / public.travel[TRAVEL.updates] ** params.decay
    regret = 0.5 * far * far / last + public.travel[TRAVEL.squares]
    known = batch * regret + _within(params.log_odds, noise / params.linear.weight, 1, batches)
    most = far * params.length
    first, most = most * most * batch, most * most * reports
    odds = params.linear.subgaussian**2 * (2.0 * params.log_odds + np.log1p(batches))
    mu = params.flattest
    root = np.sqrt(odds) + np.sqrt(odds + 4.0 * mu * (known + mu * first))
    facts[FACTS.radius] = scale * np.sqrt(min((0.5 * root / mu) ** 2 - first, most))


@kernel
def _absorb(params: OnlineParams, public: OnlinePublic, release: Vector) -> None:
    """Add the reports of a batch to the moments; ``seen`` keeps their sums."""
    d, seen, moments = params.dimension, public.seen, public.moments
    for k in range(params.size):
        seen[k] = release[k] - seen[k]
    for k in range(d, moments.size):
        moments[k] += seen[k]
    if not params.linear.published:
        add_products(seen, public.point, params.linear.weight, moments)
        return
    for i in range(d):
        moments[i] += seen[moments.size + i]


@kernel
def _average(params: OnlineParams, public: OnlinePublic) -> None:
    """Take the point of the batch into their mean, and see the moments from there."""
    average, moments = public.average, public.moments
    for i in range(params.dimension):
        average[i] += (public.point[i] - average[i]) / (public.travel[TRAVEL.updates] + 1.0)
    for k in range(moments.size):
        public.centred[k] = moments[k]
    add_products(moments, average, -params.linear.weight, public.centred)


@kernel
def _move(params: OnlineParams, public: OnlinePublic) -> None:
    """Let the point go against the mean gradient of the batch."""
    d, travel, point = params.dimension, public.travel, public.point
    travel[TRAVEL.updates] += 1.0
    step = params.step / travel[TRAVEL.updates] ** params.decay
    reports = params.linear.weight * params.linear.batch
    for i in range(d):
        gradient = public.seen[i] / reports
        travel[TRAVEL.squares] += 0.5 * step * gradient * gradient
        point[i] -= step * gradient
    project(point, params.parameter_bound)


@outlined
def publish(params: OnlineParams, public: OnlinePublic, memo: Vector, release: Vector) -> None:
    clock = public.linear.clock
    clock[CLOCK.releases] += 1
    if clock[CLOCK.rounds] < clock[CLOCK.next]:
        return
    clock[CLOCK.next] = next_release(clock[CLOCK.next], params.linear.batch, 0.0, np.inf)
    reports = float(clock[CLOCK.releases])
    # Before ``_move``: the batch was looked at from the point that it replaces.
    _absorb(params, public, release)
    if not params.linear.published:
        _average(params, public)
    _move(params, public)
    for k in range(params.size):
        public.seen[k] = release[k]
    if params.linear.published:
        regress(params.linear, public.linear, 0, public.moments, reports)
    else:
        regress(params.linear, public.linear, 0, public.centred, reports)
    _widen(params, public, reports)
    for i in range(params.dimension):
        public.linear.estimate[i] += public.average[i]
        public.estimate[i] = public.linear.estimate[i]


@cache
def look_with(link: Link) -> Kernel:
    """``look`` for a link."""
    return bind(look, residual_at=bind(residual_at, mean=link.mean))


@cache
def learning(link: Link) -> Kernels:
    """The kernels for a link."""
    return replace(
        descending(link),
        init=init,
        choose=choose_optimistic,
        record_pull=record_pull,
        release_due=report_due,
        summarise=bind(summarise, look=look_with(link)),
        publish=publish,
    )


class RegressingDevice(ScoringDevice):
    """The device of ``LDPGLOC``."""

    _looks_from = "public.point"
    _look_with = staticmethod(look_with)


def _published(budget: ApproxDP) -> float:
    """6 sqrt(2 ln(3.75 / delta)) / epsilon on each number."""
    std = 6.0 * math.sqrt(2.0 * math.log(3.75 / budget.delta)) / budget.epsilon
    return std / published_sensitivity(1.0, 1.0, 1.0)


class GLOCOptions(LinearOptions, total=False):
    """Constructor arguments of ``LDPGLOC``, beside its own and those of ``LinearOptions``.

    repair: as in ``HiddenOptions``.
    """

    repair: str


@register(n_arms=3, dimension=2, horizon=30_000)
class LDPGLOC(LocalPolicy):
    """Online learning to confidence sets on reports that every person's device has randomised (Han,
    Liang, Wang & Zhang 2021, LDP-GLOC; after Jun, Bhargava, Nowak & Willett 2017).

    Mean rewards are ``nu(<x, theta>)``.  A device reports a gradient at ``p``, and ``x x^T``; the
    server moves ``p`` against gradients, regresses ``<x, p>`` on ``x``, and devices play arg max of
    ``<x, estimate> + width``.

    With ``reports=True`` this is the server of devices, as ``LDPSGD`` is.

    It differs from the published mechanism.  The gradient and the matrix share one noise, at the
    exact joint sensitivity and budget.  ``<x, p> x`` is computed from the noisy matrix instead of
    being reported with separate noise.  ``p`` stays within ``parameter_bound``, its steps fit the
    noise, and the width is proved.

    Args:
        n_arms, dimension, budget, horizon, batch, reports: as in ``HiddenLinearLocal``.
        link: as in ``GLM``.
        gradient_weight: w; the weight of gradients relative to ``x x^T``, hence their relative
            precision.
        **options: see ``GLOCOptions``.  With ``calibration="paper"`` and an ``ApproxDP`` budget
            report, noise, steps (1 / sqrt(horizon)), shift and radius are the published ones.  They
            are for features, rewards and a parameter of length 1; noise is proportional to the
            sensitivity of a report.

    When to choose: no party is trusted, and features are not diverse; elsewhere ``LDPSGD`` has far
    less regret.  The width is far above the error: ``radius_scale=0.01`` mostly plays better.

    Raises:
        ArgumentError: as for ``GLM``.

    Example:
        >>> from dpbandits import ZCDP
        >>> server = LDPGLOC(2, 3, budget=ZCDP(0.5), horizon=1000, reports=True, seed=1)
        >>> device = server.device()
        >>> device.choose([[1, 0, 0], [0, 1, 0]]) in (0, 1)
        True
        >>> server.receive(device.report(1.0))
        True
    """

    card = Card(
        title="online learning to confidence sets in a generalised linear model, local DP",
        source=f"{HAN}, LDP-GLOC",
        proof="sensitivity, and privacy of a single report: module dpbandits.papers.others.gloc",
        noise=(PublishedGaussian(_published),),
        trust_model="local",
        protects="contexts and rewards",
        view="joint",
        learns_at_once=True,
        errata=(GLM_REPORTS,),
    )
    kernels = learning(link_of("logistic"))
    learns_off_policy = False
    constraints: ClassVar[Constraints] = {
        "horizon": Integer(1, MOST_ROUNDS),
        "gradient_weight": Real(1e-6, 1e6),
    }
    _device = RegressingDevice
    _options: ClassVar[dict[str, Any]] = {**MODEL, **RADIUS, "repair": "shift"}

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        link: str = "logistic",
        batch: int = 1,
        gradient_weight: float = 1.0,
        reports: bool = False,
        **options: Unpack[GLOCOptions],
    ) -> None:
        kernels = learning(link_of(link))
        self.kernels = of_reports(kernels) if reports else kernels
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "link": link,
            "gradient_weight": gradient_weight,
            "horizon": horizon,
            "batch": batch,
            "reports": reports,
        }
        if asks_for_published(options, budget):
            refuse_unpublished(options)
            if gradient_weight != 1.0:
                raise ArgumentError(
                    f"gradient_weight must be 1 with calibration='paper', got {gradient_weight!r}",
                    "gradient_weight",
                )
        super().__init__(own, budget=budget, **options)

    @property
    def _published(self) -> bool:
        return self._asks_for_published

    @property
    def _weight(self) -> float:
        return self._diagonal if self._published else float(self.config["gradient_weight"])

    @property
    def _diagonal(self) -> float:
        return math.sqrt(2.0) if self._published else 1.0

    @property
    def _residual(self) -> float:
        lo, hi = self.reward_range
        return hi - lo if self._published else self._linked.residual

    @property
    def _largest(self) -> float:
        return self._weight * self._residual

    @property
    def _size(self) -> int:
        return super()._size + (self.dimension if self._published else 0)

    def _moved(self, reward: float, length: float) -> float:
        if not self._published:
            found = moved_by_replacement(self, length, weight=self._weight, square="one")
            whatever = super()._moved(reward, length)
            return whatever if found is None else min(found, whatever)
        moved = published_sensitivity(reward / self._diagonal, length, self._parameter_bound)
        return self._diagonal * moved

    def _statistic(self) -> Statistic:
        least = super()._statistic()
        if not self._published:
            return least
        product = self._weight * self.context_bound**2 * self._parameter_bound
        return replace(least, max_abs_contribution=max(least.max_abs_contribution, product))

    def _params(self) -> OnlineParams:
        model = super()._params()
        std = self.noise_scale if self.budget is not None else 0.0
        noise = self.dimension * (std / self._weight) ** 2 / self.config["batch"]
        most = math.hypot(self._residual * self.context_bound, math.sqrt(noise))
        step, decay = 0.5 * self._parameter_bound / most, 0.5
        if self._published:
            step, decay = 1.0 / math.sqrt(self._releases or MOST_ROUNDS), 0.0
        flattest = self._linked.conditioning.least_slope
        return OnlineParams(
            **bounds_on_records(self, self._residual),
            linear=model,
            size=self._size,
            flattest=flattest,
            parameter_bound=self._parameter_bound,
            length=self.context_bound,
            step=step,
            decay=decay,
            std=std,
            log_odds=-math.log(max(0.3 * self._failure, 1e-300)),
            excess=std / self._diagonal * math.sqrt(self.dimension) / flattest,
        )

    def _with_published_bounds(self, params: linear.Params) -> linear.Params:
        """The parameters with the shift of Han et al. (2021), for the first report."""
        d, rounds = self.dimension, self._horizon or MOST_ROUNDS
        std = self.noise_scale / self._diagonal
        bound = std * (4.0 * math.sqrt(d) + 2.0 * math.log(2.0 * rounds / self._failure))
        return params._replace(matrix_norm=bound, vector_norm=0.0, log_odds=0.0)
