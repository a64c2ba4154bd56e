"""Generalised linear bandits under local differential privacy: features, arm and reward stay on a
person's device.

A report is a function of her record and of what was public when it was made, randomised once: the
server picks link, bounds and noise in advance, and point and chooser from earlier reports alone.
So all that it sees of her is one draw of a channel that is calibrated for any two records (local
privacy with sequential interaction; Duchi, Jordan & Wainwright 2018, Section 2.1).  What is
reported: ``gradients``, ``online``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Unpack

import numpy as np

from ...errors import ArgumentError
from ...glm.links import Link, link_of
from ...glm.replacement import replacement_sensitivity
from ...policies import Card, Options, Statistic, composed, preset, register
from ...policies.presets import Composition
from ...privacy.budgets import ApproxDP, Budget
from ...privacy.channels import Hemisphere, PublishedGaussian
from ...validation import flag, integer, real
from ..bases.contextual import LONGEST, SHORTEST
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.errata import GLM_REPORTS
from ..bases.linear import MODEL, RADIUS, LinearOptions
from ..hidden.local import Device, LocalPolicy
from ..hidden.model import Params
from ..hidden.policy import asks_for_published, refuse_unpublished
from . import online
from .gradients import DescentParams, descending, look_with, of_reports, project

PROOF = "dpbandits.algorithms.glm: sensitivity in {}, one report of a person in local"
HAN = "Han, Liang, Wang & Zhang (2021), Generalized Linear Bandits with Local Differential Privacy"
_ULP = 2.0**-52


class ScoringDevice(Device):
    """A device whose report looks at the record from a public point.

    ``HiddenGLMLocal.device()`` makes it.
    """

    _params: Any
    _looks_from = "public.estimate"
    _look_with = staticmethod(look_with)

    def to_json(self) -> str:
        """There is none.

        Raises:
            ArgumentError: always.
        """
        raise ArgumentError("a device in JavaScript has no generalised linear models")

    def _point(self) -> np.ndarray:
        """From which the record is looked at: of the present chooser, which may be anybody's, as
        numbers of which no product is infinite, or none.
        """
        point = np.array(self.chooser.public[self._looks_from], dtype=np.float64).reshape(-1)
        point[~(np.abs(point) < 1e100)] = 0.0
        return self._within(point)

    def _within(self, point: np.ndarray) -> np.ndarray:
        """The nearest of those that a point may be."""
        project(point, self._params.parameter_bound)
        return point

    def _record(self, arm: int, x: np.ndarray, reward: float) -> np.ndarray:
        record = np.zeros(self._params.size)
        look = self._look_with(link_of(self.chooser.arguments["link"]))
        look(self._params, self._point(), x, reward, record)
        return record


class RegressingDevice(ScoringDevice):
    """The same for ``LDPGLOC``."""

    _looks_from = "public.point"
    _look_with = staticmethod(online.look_with)


class HiddenGLMLocalOptions(Options, total=False):
    """Constructor arguments of ``HiddenGLMLocal``, beside its own and those of ``Options``.

    context_bound: longer feature vectors are scaled to this length.  Default 1.
    parameter_bound: on the norm of the unknown parameter.  Default 1.
    """

    context_bound: float
    parameter_bound: float


@cache
def _composition(link: Link, *, reports: bool) -> Composition:
    card = Card(
        title="stochastic gradients of a generalised linear model, local DP",
        source=f"{HAN}, LDP-SGD",
        proof=f"{PROOF.format('gradients')}; the l2-ball randomiser in dpbandits.privacy.channels",
        noise=("hemisphere", "Gaussian"),
        trust_model="local",
        protects="contexts and rewards",
        view="joint",
        learns_at_once=True,
        errata=(GLM_REPORTS,),
    )
    kernels = descending(link)
    return Composition(of_reports(kernels) if reports else kernels, card)


@composed(n_arms=3, dimension=2)
class HiddenGLMLocal(LocalPolicy):
    """Stochastic gradient descent on gradients that every person's device has randomised, and the
    arm that is best for the present estimate (Han, Liang, Wang & Zhang 2021).

    Mean rewards are ``nu(<x, theta>)``.  A device reports ``(nu(<x, p>) - r) x``, randomised, with
    ``p`` the estimate; under ``PureDP`` by the l2-ball randomiser of Duchi, Jordan & Wainwright, of
    which a report is a direction alone.  The server moves ``p`` against the mean of a batch.

    With ``reports=True`` this is the server: ``device()`` gives what a person's device runs, which
    chooses and reports, and ``receive`` takes the reports, shape (d,); it has no ``pull``.
    Without, whoever calls ``pull`` and ``update`` sees features and rewards, and is trusted with
    them.

    Against the published mechanism: gradients are cut to a bound, on which its privacy rests; the
    estimate stays within ``parameter_bound``; and steps fit the noise.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: ``PureDP`` (as published) or another notion (Gaussian noise), for each report; None
            for the non-private counterpart.
        link: nu: "logistic", "probit", "identity", or one of ``dpbandits.glm.register_link``.
        step: a; the t-th update moves by a / t times the gradient.  Published: 5.  Default None: by
            S / (2 G sqrt(t)), with S the parameter bound and G the root of the mean square that a
            report may have.
        weight_decay: lambda, by which lambda * p is added to the gradient.  Published: 0.05.
        gradient_bound: C; longer gradients are cut to this length.  Default: the longest that there
            are.  Noise is proportional to it, and cutting makes estimates biased.
        batch: reports of one update, of which it takes the mean.
        reports: whether this is the server of devices.
        **options: see ``HiddenGLMLocalOptions``.

    When to choose: nobody may be trusted, and features are diverse.  It never explores: where the
    best arms of most people show only part of the space, it may never learn the rest.

    Raises:
        ArgumentError: an argument is outside its range, or the link is flat, or not defined, for
            some <x, theta> that ``context_bound`` and ``parameter_bound`` allow.

    Example:
        >>> from dpbandits import PureDP
        >>> import numpy as np
        >>> from dpbandits import PureDP
        >>> server = HiddenGLMLocal(2, 3, budget=PureDP(1.0), reports=True, seed=1)
        >>> device = server.device()
        >>> device.choose(np.eye(3)[:2])
        0
        >>> report = device.report(1.0)
        >>> round(float(np.linalg.norm(report)), 3)
        4.328
        >>> server.receive(report)
        True
    """

    learns_off_policy = False
    _counter: Any = None  # every report is released by itself
    _device = ScoringDevice
    _options: ClassVar[dict[str, Any]] = {"context_bound": 1.0, "parameter_bound": 1.0}

    @classmethod
    def composition(cls, *, link: str = "logistic", reports: bool = False, **_: Any) -> Composition:
        """What follows from the link, and from what arrives."""
        return _composition(link_of(link), reports=reports)

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        link: str = "logistic",
        step: float | None = None,
        weight_decay: float = 0.0,
        gradient_bound: float | None = None,
        batch: int = 1,
        reports: bool = False,
        **options: Unpack[HiddenGLMLocalOptions],
    ) -> None:
        if step is not None:
            step = real("step", step, 0.0, 1e12, strict=True)
        if gradient_bound is not None:
            gradient_bound = real("gradient_bound", gradient_bound, SHORTEST, LONGEST)
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "link": link,
            "step": step,
            "weight_decay": real("weight_decay", weight_decay, 0.0, 1e12),
            "gradient_bound": gradient_bound,
            "batch": integer("batch", batch, 1, MOST_ROUNDS),
            "reports": flag("reports", reports),
        }
        composition = self.composition(link=link, reports=reports)
        super().__init__(own, budget=budget, composition=composition, **options)

    @property
    def gradient_bound(self) -> float:
        """C, to which gradients are cut."""
        longest, given = self.context_bound * self._linked.residual, self.config["gradient_bound"]
        return longest if given is None else float(given)

    @property
    def _smallest_range(self) -> float:
        return 1.0  # of gradients in units of their bound

    @property
    def _rounds_gradients(self) -> bool:
        return self.grid > 0.0 and not isinstance(self.channel, Hemisphere)

    def _statistic(self) -> Statistic:
        moved = 2.0
        found = replacement_sensitivity(
            self._linked.link,
            self.reward_range,
            length=self.context_bound,
            parameter=self._parameter_bound,
        )
        if found is not None and not isinstance(self.channel, Hemisphere):
            moved = min(moved, found / self.gradient_bound)
        if self._rounds_gradients:
            added = math.sqrt(self.dimension) * self.grid + 8.0 * _ULP
            self._refuse_rounding(added, moved)
            moved += added
        return Statistic(
            size=self.dimension, max_sensitivity=moved, max_abs_contribution=1.0, max_records=1
        )

    @property
    def _most_reported(self) -> float:
        if isinstance(self.channel, Hemisphere):
            return self.channel.radius(self.dimension) * (1.0 + 1e-9)
        return super()._most_reported

    @property
    def _mean_size(self) -> float:
        """The root of the mean square that the mean of a batch has at most."""
        squared, d = 0.0, self.dimension
        if isinstance(self.channel, Hemisphere):
            squared = self.channel.radius(d) ** 2 - 1.0
        elif self.budget is not None:
            squared = d * self.noise_scale**2
        return self.gradient_bound * math.sqrt(1.0 + max(squared, 0.0) / self.config["batch"])

    def _params(self) -> DescentParams:
        planned, step = 0.5 * self._parameter_bound / self._mean_size, self.config["step"]
        return DescentParams(
            n_arms=self.n_arms,
            dimension=self.dimension,
            size=self.dimension,
            context_bound=self.effective_bound,
            reach=self._linked.conditioning.reach,
            residual=self._linked.residual if self.clip else math.inf,
            longest=self.gradient_bound,
            parameter_bound=self._parameter_bound,
            weight_decay=self.config["weight_decay"],
            step=planned if step is None else step,
            decay=0.5 if step is None else 1.0,
            batch=self.config["batch"],
            grid=self.grid if self._rounds_gradients else 0.0,
            movement=self.statistic.max_sensitivity,
        )


LDPSGD = preset(
    "LDPSGD",
    HiddenGLMLocal,
    "n_arms dimension link step weight_decay gradient_bound batch context_bound parameter_bound"
    " reports",
    """Stochastic gradient descent on randomised gradients (Han, Liang, Wang & Zhang 2021):
    ``HiddenGLMLocal``.
    """,
)


def _published(budget: ApproxDP) -> float:
    """6 sqrt(2 ln(3.75 / delta)) / epsilon on each number."""
    std = 6.0 * math.sqrt(2.0 * math.log(3.75 / budget.delta)) / budget.epsilon
    return std / online.published_sensitivity(1.0, 1.0, 1.0)


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

    Against the published mechanism: one noise for the gradient and the matrix, at the exact joint
    sensitivity and budget; ``<x, p> x`` is made of the noisy matrix instead of being reported with
    noise of its own; ``p`` stays within ``parameter_bound``; its steps fit the noise; and the width
    is one that is proved.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion but ``PureDP``, for each report; None for the non-private
            counterpart.
        horizon: an upper bound on the number of rounds; generous is fine.
        link: nu: "logistic", "probit", "identity", or one of ``dpbandits.glm.register_link``.
        batch: reports between two estimates.
        gradient_weight: w; how much more of the precision falls on gradients than on ``x x^T``.
        reports: whether this is the server of devices.
        **options: see ``GLOCOptions``.  With ``calibration="paper"`` and an ``ApproxDP`` budget
            report, noise, steps (1 / sqrt(horizon)), shift and radius are the published ones.  They
            are for features, rewards and a parameter of length 1; noise is proportional to how far
            a record moves a report.

    When to choose: nobody may be trusted, and features are not diverse; elsewhere ``LDPSGD`` has
    far less regret.  The width is far above the error: ``radius_scale=0.01`` mostly plays better.

    Raises:
        ArgumentError: an argument is outside its range, or the link is flat, or not defined, for
            some <x, theta> that ``context_bound`` and ``parameter_bound`` allow.

    Example:
        >>> from dpbandits import ZCDP
        >>> import numpy as np
        >>> from dpbandits import ZCDP
        >>> server = LDPGLOC(2, 3, budget=ZCDP(0.5), horizon=1000, reports=True, seed=1)
        >>> device = server.device()
        >>> device.choose(np.eye(3)[:2]) in (0, 1)
        True
        >>> server.receive(device.report(1.0))
        True
    """

    card = Card(
        title="online learning to confidence sets in a generalised linear model, local DP",
        source=f"{HAN}, LDP-GLOC",
        proof=PROOF.format("online"),
        noise=(PublishedGaussian(_published),),
        trust_model="local",
        protects="contexts and rewards",
        view="joint",
        learns_at_once=True,
        errata=(GLM_REPORTS,),
    )
    kernels = online.learning(link_of("logistic"))
    learns_off_policy = False
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
        kernels = online.learning(link_of(link))
        self.kernels = of_reports(kernels) if flag("reports", reports) else kernels
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "link": link,
            "gradient_weight": real("gradient_weight", gradient_weight, 1e-6, 1e6),
            "horizon": integer("horizon", horizon, 1, MOST_ROUNDS),
            "batch": integer("batch", batch, 1, MOST_ROUNDS),
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
            found = replacement_sensitivity(
                self._linked.link,
                self.reward_range,
                length=length,
                parameter=self._parameter_bound,
                weight=self._weight,
                square="one",
            )
            whatever = super()._moved(reward, length)
            return whatever if found is None else min(found, whatever)
        moved = online.published_sensitivity(reward / self._diagonal, length, self._parameter_bound)
        return self._diagonal * moved

    def _statistic(self) -> Statistic:
        least = super()._statistic()
        if not self._published:
            return least
        product = self._weight * self.context_bound**2 * self._parameter_bound
        return replace(least, max_abs_contribution=max(least.max_abs_contribution, product))

    def _params(self) -> online.OnlineParams:
        model = super()._params()
        std = self.noise_scale if self.budget is not None else 0.0
        noise = self.dimension * (std / self._weight) ** 2 / self.config["batch"]
        most = math.hypot(self._residual * self.context_bound, math.sqrt(noise))
        step, decay = 0.5 * self._parameter_bound / most, 0.5
        if self._published:
            step, decay = 1.0 / math.sqrt(self._releases or MOST_ROUNDS), 0.0
        flattest = self._linked.conditioning.least_slope
        return online.OnlineParams(
            linear=model,
            n_arms=self.n_arms,
            dimension=self.dimension,
            size=self._size,
            context_bound=self.effective_bound,
            movement=self.statistic.max_sensitivity,
            reach=self._linked.conditioning.reach,
            residual=self._residual if self.clip else math.inf,
            flattest=flattest,
            parameter_bound=self._parameter_bound,
            length=self.context_bound,
            step=step,
            decay=decay,
            std=std,
            log_odds=-math.log(max(0.3 * self._failure, 1e-300)),
            excess=std / self._diagonal * math.sqrt(self.dimension) / flattest,
        )

    def _with_published_bounds(self, params: Params) -> Params:
        """With the shift of Han et al. (2021), for the first report."""
        d, rounds = self.dimension, self._horizon or MOST_ROUNDS
        std = self.noise_scale / self._diagonal
        bound = std * (4.0 * math.sqrt(d) + 2.0 * math.log(2.0 * rounds / self._failure))
        return params._replace(matrix_norm=bound, vector_norm=0.0, log_odds=0.0)
