"""Generalised linear bandits under local differential privacy: a record stays on its device.

Guarantee:

* Protected: the record of one person, from the server, which sees one draw per person.
* Adjacency: any two records.  A report is a function of the person's record and of public values,
  randomised once.
* Sensitivity: ``gradients`` defines reports, and bounds their difference.

The server picks link, bounds and noise in advance, and point and chooser from earlier reports
alone.  So it sees one draw per person, from a channel that is calibrated for any two records (local
privacy with sequential interaction; Duchi, Jordan & Wainwright 2018, Section 2.1).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, ClassVar, Unpack

import numpy as np

from ...constraints import Constraints, Real
from ...errors import ArgumentError
from ...glm.links import Link, link_of
from ...policies import Card, Options, Statistic, composed, preset
from ...policies.presets import Composition
from ...privacy.budgets import Budget
from ...privacy.channels import Hemisphere
from ..bases.contextual import LONGEST, SHORTEST
from ..bases.errata import GLM_REPORTS
from ..hidden.choosing_devices import Device
from ..hidden.local import LocalPolicy
from .gradients import DescentParams, descending, look_with, of_reports, project
from .joint import bounds_on_records, moved_by_replacement

PROOF = (
    "sensitivity: module dpbandits.algorithms.glm.{}; privacy of a single report: module"
    " dpbandits.algorithms.glm.local"
)
HAN = "Han, Liang, Wang & Zhang (2021), Generalized Linear Bandits with Local Differential Privacy"
_ULP = 2.0**-52
_IN_JAVASCRIPT = ("identity", "logistic")  # which has no erfc


class ScoringDevice(Device):
    """Device of ``HiddenGLMLocal``, whose report is the record's gradient at a public point."""

    _params: Any
    _looks_from = "public.estimate"
    _look_with = staticmethod(look_with)

    def _model(self) -> dict[str, Any]:
        link, own = self.chooser.arguments.get("link", "logistic"), self._params
        if self._look_with is not look_with or link not in _IN_JAVASCRIPT:
            raise ArgumentError(
                "a device in JavaScript must come from HiddenGLMLocal with the link"
                f" {' or '.join(map(repr, _IN_JAVASCRIPT))}, got the link {link!r}"
            )
        gradient = {"link": link, **self._told(("reach", "longest", "parameter_bound", "grid"))}
        gradient["residual"] = own.residual if own.residual < math.inf else None
        told = self._told(("dimension", "n_arms", "context_bound", "grid"))
        return {**told, "n_models": 1, "explore": {"class": "Greedy"}, "gradient": gradient}

    def _point(self) -> np.ndarray:
        """The point at which a record's gradient is taken: the chooser's, as finite numbers."""
        point = np.array(self.chooser.public[self._looks_from], dtype=np.float64).reshape(-1)
        # The server is not trusted with the point: a NaN would show in a report through any noise.
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


class HiddenGLMLocalOptions(Options, total=False):
    """Constructor arguments of ``HiddenGLMLocal``, beside its own and those of ``Options``.

    context_bound: longer feature vectors are scaled to this length.  Default 1.
    parameter_bound: the largest norm of the unknown parameter.  Default 1.
    """

    context_bound: float
    parameter_bound: float


@cache
def _composition(link: Link, *, reports: bool) -> Composition:
    card = Card(
        title="stochastic gradients of a generalised linear model, local DP",
        source=f"{HAN}, LDP-SGD",
        proof=f"{PROOF.format('gradients')}; randomiser: module dpbandits.privacy.channels",
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
    """Stochastic gradient descent on gradients that every person's device has randomised.  Plays
    the best arm for the present estimate (Han, Liang, Wang & Zhang 2021).

    Mean rewards are ``nu(<x, theta>)``.  A device reports ``(nu(<x, p>) - r) x``, randomised, with
    ``p`` the estimate.  Under ``PureDP`` it uses the l2-ball randomiser of Duchi, Jordan &
    Wainwright, whose report is only a direction.  The server moves ``p`` against the mean of a
    batch.

    With ``reports=True`` this is the server of devices, as ``HiddenLinearLocal`` is; reports have
    shape (d,).

    Unlike the published mechanism it cuts gradients to a bound, which its privacy needs; it keeps
    the estimate within ``parameter_bound``; and it fits steps to the noise.

    Args:
        n_arms, dimension: as in ``Linear``.
        budget: ``PureDP`` (as published) or another notion (Gaussian noise), for each report; None
            for the non-private counterpart.
        link: as in ``GLM``.
        step: a; the t-th update moves by a / t times the gradient.  Published: 5.  Default None: by
            S / (2 G sqrt(t)), with S the parameter bound and G a bound on the root mean square of
            reports.
        weight_decay: lambda, by which lambda * p is added to the gradient.  Published: 0.05.
        gradient_bound: C; longer gradients are cut to this length.  Default: the longest possible
            one.  Noise is proportional to C, and cutting makes estimates biased.
        batch: number of reports of an update, which uses their mean.
        reports: whether this is the server of devices.
        **options: see ``HiddenGLMLocalOptions``.

    When to choose: no party may be trusted, and features are diverse.  It never explores: if the
    best arms of most people show only part of the space, it may never learn the rest.

    Raises:
        ArgumentError: as for ``GLM``.

    Example:
        >>> import numpy as np
        >>> from dpbandits import PureDP
        >>> server = HiddenGLMLocal(2, 3, budget=PureDP(1.0), reports=True, seed=1)
        >>> device = server.device()
        >>> device.choose([[1, 0, 0], [0, 1, 0]])
        0
        >>> report = device.report(1.0)
        >>> round(float(np.linalg.norm(report)), 3)
        4.328
        >>> server.receive(report)
        True
    """

    learns_off_policy = False
    constraints: ClassVar[Constraints] = {
        "step": Real(0.0, 1e12, strict=True) | None,
        "weight_decay": Real(0.0, 1e12),
        "gradient_bound": Real(SHORTEST, LONGEST) | None,
    }
    _counter: Any = None  # every report is released by itself
    _device = ScoringDevice
    _options: ClassVar[dict[str, Any]] = {"context_bound": 1.0, "parameter_bound": 1.0}

    @classmethod
    def composition(
        cls, *, link: str = "logistic", reports: bool = False, **_: object
    ) -> Composition:
        """Kernels and card of a link, for records or reports."""
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
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "link": link,
            "step": step,
            "weight_decay": weight_decay,
            "gradient_bound": gradient_bound,
            "batch": batch,
            "reports": reports,
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
        found = moved_by_replacement(self, self.context_bound)
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
            **bounds_on_records(self, self._linked.residual),
            size=self.dimension,
            longest=self.gradient_bound,
            parameter_bound=self._parameter_bound,
            weight_decay=self.config["weight_decay"],
            step=planned if step is None else step,
            decay=0.5 if step is None else 1.0,
            batch=self.config["batch"],
            grid=self.grid if self._rounds_gradients else 0.0,
        )


LDPSGD = preset(
    "LDPSGD",
    HiddenGLMLocal,
    "n_arms dimension link step weight_decay gradient_bound batch context_bound parameter_bound"
    " reports",
    """Stochastic gradient descent on randomised gradients (Han, Liang, Wang & Zhang 2021).""",
)
