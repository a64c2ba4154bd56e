"""Linear bandits under local differential privacy: a record stays on its device.

Guarantee:

* Protected: features, arm and reward of one person.  The wall stands around each person.
* Adjacency: any two records of a person, who sends one report.
* Sensitivity: [x r ; svec(x x^T)] crosses the wall in the block of its model, all with normal noise
  of its own.  ``model`` bounds the difference of two records.
* Assumed: the arm stays on the device.  A server that delivered it would learn it.

The server sums the reports, and uses the sum once in a batch.  The device chooses with the server's
published chooser.
"""

from __future__ import annotations

import json
import math
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ...constraints import Constraints, Flag
from ...errors import ArgumentError
from ...policies import Composition, composed
from ...privacy.budgets import ApproxDP, Budget
from ...privacy.channels import PublishedGaussian
from ...privacy.randomiser import VectorRandomiser
from ...session.options import WILDEST
from ...tables import as_numbers
from ..bases.contextual import bounded_features, influence_through
from ..bases.counter_choice import MOST_ROUNDS
from ..exploration import Divergence, Optimism, Sampling
from .choosing_devices import Device
from .kernels import of_reports, on_arrival
from .model import Params, joint_sensitivity
from .policy import (
    HiddenOptions,
    HiddenPolicy,
    asks_for_published,
    composed_for,
    refuse_unpublished,
)


class LocalPolicy(HiddenPolicy):
    """Base class of servers for devices that choose, and randomise their reports."""

    constraints: ClassVar[Constraints] = {"reports": Flag()}
    _device: ClassVar[type[Device]] = Device
    _devices = 0

    def __init__(self, config: dict[str, Any], *, budget: Budget | None, **options: Any) -> None:
        super().__init__(config, budget=budget, **options)
        if self.takes_reports and budget is not None:
            self._randomiser(0)  # which may refuse the grid

    @property
    def _counting(self) -> str | None:
        return "independent"

    def device(self) -> Device:
        """Program for a person's device, with the present chooser.

        A device that does not trust the server makes it from a policy of its own, with the same
        arguments.  It then calls ``use`` on the choosers that the server sends as JSON.

        Raises:
            ArgumentError: the policy has no budget.
        """
        if self.budget is None:
            raise ArgumentError("budget must not be None for a device", "budget")
        self._devices += 1
        return self._device(
            self.chooser(),
            self.params,
            self._randomiser(self._devices),
            self.reward_range,
            self.default_reward,
            self.max_rounds or 1,
        )

    def _randomiser(self, number: int) -> VectorRandomiser:
        """With simulated noise that no other device of this policy has."""
        return VectorRandomiser(
            self.channel,
            self.statistic.max_sensitivity,
            self.statistic.max_abs_contribution,
            noise=self.config["noise"],
            grid=self.config["grid"],
            seed=self.config["seed"],
            number=number,
        )

    def _round(self) -> tuple[int, dict[str, Any]]:
        return self.ledger.releases, {"chooser": json.loads(self.chooser().to_json())}

    def receive(self, report: ArrayLike) -> bool:
        """Take in a report of this policy's devices.  With a linear model it has shape (d + d (d +
        1) / 2,); with one model per arm it is K times as long.

        Returns:
            Whether the policy learns from it: False once ``horizon`` reports were taken.

        Raises:
            ArgumentError: this policy takes no reports, or the report is not one of its devices'.
            BudgetExhausted: the planned number of reports has been taken.
            ClaimError: as in ``update`` of other policies.
        """
        return self._received(self._checked_report(report))

    def _checked_report(self, report: ArrayLike) -> np.ndarray:
        if not self.takes_reports:
            raise ArgumentError(
                "reports must be True for a policy that receives reports, got False", "reports"
            )
        taken, size, most = as_numbers(report), self.statistic.size, self._most_reported
        if taken.shape != (size,) or not (np.abs(taken) <= most).all():
            raise ArgumentError(
                f"report must hold {size} numbers between {-most:.6g} and {most:.6g}, like the"
                " reports that devices send",
                "report",
            )
        return taken.astype(np.float64)

    @property
    def _most_reported(self) -> float:
        return self.statistic.max_abs_contribution + WILDEST * self.noise_scale

    def _assumed(self) -> list[str]:
        if not self.takes_reports:
            return super()._assumed()
        sent = "one report" if self.max_rounds in (None, 1) else f"{self.max_rounds} reports"
        return [
            bounded_features(self.context_bound, "the device"),
            "the arm is carried out on the person's device, and nobody else sees it",
            influence_through("reports"),
            "the time of a report does not depend on its content",
            f"a person has one device, which sends {sent} in all",
            "no older copy of a device is used again",
        ]


@PublishedGaussian
def _as_published(budget: ApproxDP) -> float:
    """6 sqrt(2 ln(2.5 / delta)) / epsilon on x r and the upper x x^T, which move by sqrt(4.5)."""
    std = 6.0 * math.sqrt(2.0 * math.log(2.5 / budget.delta)) / budget.epsilon
    return std / joint_sensitivity(1.0, 1.0)


@composed(n_arms=3, dimension=2, horizon=30_000)
class HiddenLinearLocal(LocalPolicy):
    """A linear bandit on reports that every person's device has randomised.

    With ``reports=True`` this is the server, which has no ``pull``.  ``device()`` makes the program
    for a person's device, which chooses and reports; ``receive`` takes the reports.  With
    ``reports=False`` the caller of ``pull`` and ``update`` sees features and rewards, and is
    trusted with them.

    Args:
        n_arms, dimension, horizon, explore, models: as in ``HiddenLinear``.
        budget: of any notion but ``PureDP``, for each report; None for the non-private
            counterpart.
        batch: reports between two estimates.  Batches of up to horizon^(3/4) keep the order of
            regret bounds (Chowdhury & Zhou 2022, Remark F.2).
        reports: whether this is the server of devices.
        bounds: as in ``HiddenLinear``, for ``Optimism``.
        **options: see ``HiddenOptions``.  With ``calibration="paper"``, an ``ApproxDP`` budget and
            ``Optimism`` noise, shift and radius are those of Zheng et al. (2020).  They are for
            features and rewards of length 1; noise is proportional to the effect of a record on a
            report.

    When to choose: no party may be trusted with features.  Regret is far above that of the central
    model.

    Unlike the published mechanism it has one noise for vector and matrix, at the exact joint
    sensitivity and budget.

    Example:
        >>> from dpbandits import ZCDP
        >>> server = HiddenLinearLocal(2, 3, budget=ZCDP(0.5), horizon=1000, reports=True, seed=1)
        >>> device = server.device()
        >>> device.choose([[1, 0, 0], [0, 1, 0]]) in (0, 1)
        True
        >>> server.receive(device.report(1.0))
        True
    """

    _covers = True
    # Exact bounds take published noise on a square for twice the variance that it has, so they
    # hold: norms of normal noise are the smaller the less covariance it has (Anderson 1955).
    _triangular = True

    @classmethod
    def composition(
        cls, *, explore: Optimism | Sampling | Divergence, reports: bool = False, **_: object
    ) -> Composition:
        """Kernels and card of an exploration, for records or reports."""
        return composed_for(
            type(explore),
            "local DP",
            of_reports if reports else on_arrival,
            proof="sensitivity: module dpbandits.algorithms.hidden.model",
            noise=(_as_published if isinstance(explore, Optimism) else "Gaussian",),
            trust_model="local",
            view="joint",
            learns_at_once=True,
        )

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        explore: Optimism | Sampling | Divergence = Divergence(),  # noqa: B008  (a value)
        batch: int = 1,
        reports: bool = False,
        models: str = "shared",
        bounds: str = "published",
        **options: Unpack[HiddenOptions],
    ) -> None:
        explore = self._explored(explore)
        if isinstance(explore, Optimism) and asks_for_published(options, budget):
            refuse_unpublished(options)
        else:
            bounds = "published"  # nothing else is known of
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "explore": explore,
            "horizon": horizon,
            "batch": batch,
            "reports": reports,
            "models": models,
            "bounds": bounds,
        }
        composition = self.composition(explore=explore, reports=reports)
        super().__init__(own, budget=budget, composition=composition, **options)

    def _with_published_bounds(self, params: Params) -> Params:
        """With the constants of Zheng et al. (2020), for the first report."""
        d, rounds = self.dimension, self._releases or MOST_ROUNDS
        std = self.noise_scale / math.sqrt(2.0)
        bound = std * (4.0 * math.sqrt(d) + 2.0 * math.log(2.0 * rounds / self._each_failure))
        return params._replace(
            matrix_norm=bound,
            vector_norm=std * math.sqrt(d / bound),
            log_odds=2.0 * math.log(rounds),
        )
