"""Linear bandits under joint differential privacy: features and rewards are behind the wall
together, and whoever runs the policy is trusted with both.

What crosses the wall: at rounds that are fixed in advance, the running sum of [x r ; svec(x x^T)]
of all that was played, with a block for each model, as a continual sum.  One person contributes one
record to one increment; ``model`` says how far it moves that.  Estimate, radius and V are
post-processing.

**Why this is joint privacy.**  A person's arm is a function of her own features, of what was
released before her, and of random numbers that are independent of everything (the billboard lemma:
Hsu, Huang, Roth, Roughgarden & Wu 2014, Lemma 1).  Everybody else's arms are therefore functions of
the releases and of their own data, and the schedule of releases, the number of rounds and every
return value but her own decision do not depend on her record at all.  The releases are those of an
adaptive sum of increments, one of which holds her record: features and rewards of later people may
depend on earlier releases in any way.
"""

from __future__ import annotations

import math
from typing import Unpack

from ...errors import ArgumentError
from ...policies import Card, register
from ...privacy.budgets import RDP, ZCDP, ApproxDP
from ...privacy.channels import PublishedGaussian
from ...validation import integer, real
from ..bases.counter_choice import MOST_ROUNDS, running_sum
from ..bases.errata import ADAC_OFUL, JOINT
from ..bases.linear import modelled
from ..bases.schedules import Schedule
from .model import OPTIMISTIC
from .policy import (
    PrivateContextPolicy,
    PrivateLinearOptions,
    asks_for_published,
    chosen_bounds,
    refuse_unpublished,
)
from .state import Params

SOURCE = (
    "Shariff & Sheffet (2018), Differentially Private Contextual Linear Bandits; continual sums:"
    " dpbandits.privacy.continual"
)
PROOF = "dpbandits.algorithms.hidden: sensitivity in model, billboard lemma in joint"


def _published(budget: ApproxDP) -> float:
    """Z' has the variance 16 m L^4 ln(4 / delta)^2 / epsilon^2 at m levels of a tree, that is
    sqrt(m) times 4 ln(4 / delta) / epsilon for a sensitivity of L^2.
    """
    return 4.0 * math.log(4.0 / budget.delta) / budget.epsilon


@register(n_arms=3, dimension=2, horizon=30_000, batch=4)
class LinUCBJDP(PrivateContextPolicy):
    """LinUCB with private features and rewards under joint differential privacy (Shariff & Sheffet
    2018; here with exact noise).

    Plays arg max of ``<x, estimate> + radius |x|_{V^-1}`` with ``estimate = V^-1 (sum x r +
    noise)`` and ``V = sum x x^T + noise + shift I``.

    Against the published mechanism: one noise for the vector and the matrix, at the exact joint
    sensitivity; correlated noise of a continual sum instead of a tree; and a shift that bounds this
    noise.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: ``ZCDP``, ``ApproxDP`` or ``RDP``; None for the non-private counterpart.
        horizon: an upper bound on the number of rounds; generous is fine.  After it nothing more is
            learned.  None with the hybrid counter.
        batch: rounds between two releases.  Batches of up to sqrt(horizon) do not change the order
            of regret bounds (Chowdhury & Zhou 2022, Remark F.4), and there is less noise.
        reward_weight: how much more of the precision falls on sums of x r than on those of x x^T.
        counter: as in ``PrivateLinUCB``; by default the one with the least noise.
        models: as in ``LinUCB``.
        **options: see ``PrivateLinearOptions``.  With ``calibration="paper"`` and an ``ApproxDP``
            budget noise, shift and radius are the published ones, for a binary tree of Gaussian
            matrices.
        bounds: with ``calibration="paper"`` "published" shift and radius, or those of this package
            for the same noise, "exact" (see ``regression``); without they are exact.

    When to choose: features are as private as rewards, whoever runs the policy is trusted with
    both, and the radius is to be one that is proved to hold; ``LinearIMEDJDP`` has less regret.

    Example:
        >>> import numpy as np
        >>> policy = LinUCBJDP(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> decision = policy.pull(np.eye(3)[:2])
        >>> policy.update(1.0)
        True
    """

    card = Card(
        title="LinUCB with private features, joint DP",
        source=SOURCE,
        proof=PROOF,
        noise=(PublishedGaussian(_published),),
        protects="contexts and rewards",
        view="joint",
        errata=(JOINT,),
    )
    _covers = True
    kernels = OPTIMISTIC

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: ZCDP | ApproxDP | RDP | None,
        horizon: int | None = None,
        batch: int = 1,
        reward_weight: float = 1.0,
        counter: str | None = None,
        models: str = "shared",
        bounds: str = "published",
        **options: Unpack[PrivateLinearOptions],
    ) -> None:
        self._weight = real("reward_weight", reward_weight, 1e-6, 1e6)
        self._noise_as_published = asks_for_published(options, budget)
        self._published, chosen = chosen_bounds(bounds, self._noise_as_published)
        if self._noise_as_published:
            counter = self._published_counter(counter, self._weight)
            refuse_unpublished(options)
            self._weight = math.sqrt(2.0)
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "batch": integer("batch", batch, 1, MOST_ROUNDS),
            "reward_weight": reward_weight,
            **chosen,
            **running_sum(horizon, counter),
            **modelled(models),
        }
        super().__init__(own, budget=budget, **options)

    def _moved(self, reward: float, length: float) -> float:
        if not self._noise_as_published:
            return super()._moved(reward, length)
        # Of (x, r) (x, r)^T, of which r^2 is not used; w = sqrt(2).
        return math.sqrt(2.0) * (length * length + 0.5 * reward * reward)

    def _with_published_bounds(self, params: Params) -> Params:
        """With the constants of Shariff & Sheffet (2018), Section 4.2, for symmetric Gaussian
        noise (Z' + Z'^T) / sqrt(2) in m levels of a tree.
        """
        d, log = (
            self.dimension,
            math.log(2.0 * (self._releases or MOST_ROUNDS) / self._each_failure),
        )
        std, levels = self.noise_scale / math.sqrt(2.0), self._counter.column_norm() ** 2
        bound = std * math.sqrt(2.0 * levels) * (4.0 * math.sqrt(d) + 2.0 * log)  # Upsilon
        gamma = std * math.sqrt(levels / bound) * (math.sqrt(d) + math.sqrt(2.0 * log))
        log_odds = 2.0 * math.log(2.0 / self._each_failure)
        return params._replace(matrix_norm=bound, vector_norm=gamma, log_odds=log_odds)

    @staticmethod
    def _published_counter(counter: str | None, weight: float) -> str:
        if weight != 1.0:
            raise ArgumentError(
                f"reward_weight must be 1 with calibration='paper', got {weight!r}", "reward_weight"
            )
        if counter not in (None, "tree"):
            raise ArgumentError(
                f"counter must be 'tree' or None with calibration='paper', got {counter!r}",
                "counter",
            )
        return "tree"


@register(n_arms=3, dimension=2, horizon=30_000)
class AdaCOFULJDP(PrivateContextPolicy):
    """Rarely switching OFUL with private features and rewards under joint differential privacy.

    Estimate, radius and V change when the number of rounds has grown by 1 + C since the last
    change: a schedule that is fixed in advance, because the determinant of V, which ``AdaCOFUL``
    waits for, would tell of features.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: ``ZCDP``, ``ApproxDP`` or ``RDP``; None for the non-private counterpart.
        horizon: an upper bound on the number of rounds; generous is fine.
        growth: C.
        counter: as in ``PrivateLinUCB``; by default the one with the least noise.
        models: as in ``LinUCB``.
        **options: see ``PrivateLinearOptions``.

    When to choose: as ``LinUCBJDP``, for a large number of rounds: the fewer releases, the less
    noise.

    Example:
        >>> import numpy as np
        >>> policy = AdaCOFULJDP(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> policy.pull(np.eye(3)[:2]).arm in (0, 1)
        True
    """

    card = Card(
        title="Rarely switching OFUL with private features, joint DP",
        source=(
            "Azize & Basu (2024), Concentrated Differential Privacy for Bandits, Algorithm 3, on a"
            " fixed schedule, with the statistic of Shariff & Sheffet (2018)"
        ),
        proof=PROOF,
        noise=("Gaussian",),
        protects="contexts and rewards",
        view="joint",
        errata=(ADAC_OFUL,),
    )
    _covers = True
    kernels = OPTIMISTIC

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: ZCDP | ApproxDP | RDP | None,
        horizon: int,
        growth: float = 0.1,
        counter: str | None = None,
        models: str = "shared",
        **options: Unpack[PrivateLinearOptions],
    ) -> None:
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "growth": real("growth", growth, 0.01, 1e6),
            **running_sum(horizon, counter),
            **modelled(models),
        }
        super().__init__(own, budget=budget, **options)

    @property
    def _schedule(self) -> Schedule:
        return Schedule(1, self.config["growth"])
