"""LinUCB under local differential privacy: features, arm and reward stay on a person's device.

What crosses the wall, which stands around each person: one report, [x r ; svec(x x^T)] in the block
of its model, all with normal noise of its own; two records of hers differ by at most as ``model``
says.  The server
adds reports up, and looks at the sum once in a batch.  The device chooses with what the server has
published, so that the arm does not leave it either: a server that delivered the arm would learn it.
"""

from __future__ import annotations

import math
from typing import Any, Unpack

from ...policies import Card, register
from ...privacy.budgets import ApproxDP, Budget
from ...privacy.channels import PublishedGaussian
from ...validation import flag, integer
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.errata import REPORTS
from ..bases.linear import modelled
from .model import OPTIMISTIC, joint_sensitivity, of_reports, on_arrival
from .policy import (
    PrivateLinearOptions,
    asks_for_published,
    chosen_bounds,
    refuse_unpublished,
)
from .reports import ReportPolicy
from .state import Params

PROOF = "dpbandits.algorithms.hidden: sensitivity in model"


def _published(budget: ApproxDP) -> float:
    """6 sqrt(2 ln(2.5 / delta)) / epsilon on x r and on the upper triangle of x x^T, together moved
    by sqrt(4.5).
    """
    std = 6.0 * math.sqrt(2.0 * math.log(2.5 / budget.delta)) / budget.epsilon
    return std / joint_sensitivity(1.0, 1.0)


class LocalPolicy(ReportPolicy):
    """The base of policies that learn a linear model from randomised reports."""

    _of_reports = staticmethod(of_reports)

    def __init__(
        self,
        config: dict[str, Any],
        *,
        budget: Budget | None,
        horizon: int,
        batch: int,
        reports: bool,
        **options: Any,
    ) -> None:
        if flag("reports", reports):
            self.kernels = self._of_reports(self.kernels)
        own = {
            "horizon": integer("horizon", horizon, 1, MOST_ROUNDS),
            "batch": integer("batch", batch, 1, MOST_ROUNDS),
        }
        super().__init__({**config, **own}, budget=budget, reports=reports, **options)

    @property
    def _counting(self) -> str:
        return "independent"


@register(n_arms=3, dimension=2, horizon=30_000)
class LinUCBLDP(LocalPolicy):
    """LinUCB on reports that every person's device has randomised (Zheng, Cai, Huang, Li & Wang
    2020; here with exact noise).

    With ``reports=True`` this is the server: ``device()`` gives what a person's device runs, which
    chooses and reports, and ``receive`` takes the reports; it has no ``pull``.  Without, whoever
    calls ``pull`` and ``update`` sees features and rewards, and is trusted with them.

    Against the published mechanism: one noise for the vector and the matrix, at the exact joint
    sensitivity and budget.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion but ``PureDP``, for each report; None for the non-private
            counterpart.
        horizon: an upper bound on the number of rounds; generous is fine.
        batch: reports between two estimates.  Batches of up to horizon^(3/4) do not change the
            order of regret bounds (Chowdhury & Zhou 2022, Remark F.2).
        reports: whether this is the server of devices.
        models: as in ``LinUCB``.
        **options: see ``PrivateLinearOptions``.  With ``calibration="paper"`` and an ``ApproxDP``
            budget noise, shift and radius are the published ones.  They are for features and
            rewards of length 1; noise is proportional to how far a record moves a report.
        bounds: as in ``LinUCBJDP``.

    When to choose: nobody may be trusted with features.  Regret is far above that of the central
    model.

    Example:
        >>> import numpy as np
        >>> server = LinUCBLDP(2, 3, budget=ZCDP(0.5), horizon=1000, reports=True, seed=1)
        >>> device = server.device()
        >>> device.choose(np.eye(3)[:2]) in (0, 1)
        True
        >>> server.receive(device.report(1.0))
        True
    """

    card = Card(
        title="LinUCB with private features, local DP",
        source=(
            "Zheng, Cai, Huang, Li & Wang (2020), Locally Differentially Private (Contextual)"
            " Bandits Learning"
        ),
        proof=PROOF,
        noise=(PublishedGaussian(_published),),
        trust_model="local",
        protects="contexts and rewards",
        view="joint",
        learns_at_once=True,
        errata=(REPORTS,),
    )
    _covers = True
    kernels = on_arrival(OPTIMISTIC)

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        batch: int = 1,
        reports: bool = False,
        models: str = "shared",
        bounds: str = "published",
        **options: Unpack[PrivateLinearOptions],
    ) -> None:
        as_published = asks_for_published(options, budget)
        self._published, chosen = chosen_bounds(bounds, as_published)
        # Exact bounds take the noise on a square for twice the variance that it has then, so they
        # hold: norms of normal noise are the smaller the less covariance it has (Anderson 1955).
        if as_published:  # the same noise on x r, squares and products
            self._weight = self._diagonal = math.sqrt(2.0)
            refuse_unpublished(options)
        super().__init__(
            {"n_arms": n_arms, "dimension": dimension, **chosen, **modelled(models)},
            budget=budget,
            horizon=horizon,
            batch=batch,
            reports=reports,
            **options,
        )

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
