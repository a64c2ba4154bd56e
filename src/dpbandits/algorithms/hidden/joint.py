"""Linear bandits under joint differential privacy: the operator of the policy is trusted.

Guarantee:

* Protected: features, arm and reward of one person, from all who see everything but that person's
  own decision.
* Adjacency: any other record of that person.  One person contributes one record to one increment.
* Sensitivity: at rounds that are fixed in advance, the running sum of [x r ; svec(x x^T)] over all
  played arms crosses the wall.  It has a block for each model, and is released as a continual sum.
  ``model`` bounds the effect of a record.  All else is post-processing.
* Assumed: the operator of the policy is trusted.

**Why this is joint privacy.**  A person's arm is a function of their own features, of earlier
releases, and of independent random numbers (the billboard lemma: Hsu, Huang, Roth, Roughgarden & Wu
2014, Lemma 1).  Therefore all other people's arms are functions of the releases and of their own
data.  The schedule of releases, the number of rounds and all return values but the person's own
decision do not depend on the person's record.  The releases are those of an adaptive sum of
increments, and one increment holds the record.  Features and rewards of later people may depend on
earlier releases in any way.  Every exploration draws its random numbers before features are seen,
from releases, or by coins that do not depend on any record.
"""

from __future__ import annotations

import math
from typing import ClassVar, Unpack

from ...constraints import Constraints, Exactly, Real
from ...errors import ArgumentError
from ...policies import Composition, composed
from ...privacy.budgets import ApproxDP, Budget
from ...privacy.channels import PublishedGaussian
from ..bases.counter_choice import MOST_ROUNDS, running_sum
from ..bases.schedules import Schedule
from ..exploration import Divergence, Optimism, Sampling
from .model import Params
from .policy import (
    HiddenOptions,
    HiddenPolicy,
    asks_for_published,
    composed_for,
    refuse_unpublished,
    refuse_weight,
)


@PublishedGaussian
def _as_published(budget: ApproxDP) -> float:
    """Z' has the variance 16 m L^4 ln(4 / delta)^2 / epsilon^2 at m levels of a tree.  So it is
    sqrt(m) times 4 ln(4 / delta) / epsilon for a sensitivity of L^2.
    """
    return 4.0 * math.log(4.0 / budget.delta) / budget.epsilon


@composed(n_arms=3, dimension=2, horizon=30_000, batch=4)
class HiddenLinear(HiddenPolicy):
    """A linear bandit with private features and rewards under joint differential privacy, on noisy
    sums that are released at rounds fixed in advance.

    Every exploration uses ``estimate = V^-1 (sum x r + noise)`` and ``V = sum x x^T + noise + shift
    I``; see ``hidden.model``.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion but ``PureDP``; None for the non-private counterpart.
        explore: ``Divergence()`` (default), ``Optimism()`` or ``Sampling()``: how released sums
            choose arms.
        horizon: an upper bound on the number of rounds.  After it the policy stops learning.
            ``Divergence`` explores longer with a longer one; for others a generous bound is fine.
            None with the hybrid counter.
        batch: maximal number of rounds between two releases, up to 10^12.  Batches of up to
            sqrt(horizon) keep the order of regret bounds (Chowdhury & Zhou 2022, Remark F.4) and
            reduce noise.
        growth: a batch is this share of the rounds before it, up to ``batch`` rounds; 0: all have
            ``batch``.
        reward_weight: precision of sums of x r, relative to that of sums of x x^T.
        counter: as in ``Linear``; by default the one with the least noise.
        models: as in ``Linear``.
        bounds: with ``calibration="paper"``, ``Optimism`` and ``growth=0``: "published" shift and
            radius, or "exact" ones of this package for the same noise (``hidden.model``).  In other
            cases they are exact.
        **options: see ``HiddenOptions``.  With ``calibration="paper"``, an ``ApproxDP`` budget,
            ``Optimism`` and ``growth=0`` noise, shift and radius are those of Shariff & Sheffet
            (2018), for a binary tree of Gaussian matrices.

    When to choose: features are as private as rewards, and the operator of the policy is trusted
    with both.  ``Divergence`` has the least regret, without a theorem; ``Optimism`` has a proved
    radius.

    It improves on the published mechanism.  Vector and matrix have one noise, at the exact joint
    sensitivity; a continual sum with correlated noise replaces the tree; and the shift bounds this
    noise.

    Example:
        >>> from dpbandits import ZCDP
        >>> policy = HiddenLinear(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> policy.update(1.0, policy.pull([[1, 0, 0], [0, 1, 0]]))
        True
    """

    _covers = True
    constraints: ClassVar[Constraints] = {"growth": Real(0.01, 1e6) | Exactly(0.0)}

    @classmethod
    def composition(
        cls, *, explore: Optimism | Sampling | Divergence, growth: float = 0.1, **_: object
    ) -> Composition:
        """Kernels and card of an exploration, with or without growing batches."""
        published = isinstance(explore, Optimism) and growth == 0.0
        return composed_for(
            type(explore),
            "joint DP",
            None,
            proof=(
                "sensitivity: module dpbandits.algorithms.hidden.model; joint privacy: module"
                " dpbandits.algorithms.hidden.joint"
            ),
            noise=(_as_published if published else "Gaussian",),
            view="joint",
        )

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        explore: Optimism | Sampling | Divergence = Divergence(),  # noqa: B008  (a value)
        horizon: int | None = None,
        batch: int = 1,
        growth: float = 0.1,
        reward_weight: float = 1.0,
        counter: str | None = None,
        models: str = "shared",
        bounds: str = "published",
        **options: Unpack[HiddenOptions],
    ) -> None:
        explore = self._explored(explore)
        if growth == 0.0 and batch == MOST_ROUNDS:
            raise ArgumentError(
                f"growth must be above 0 with batch={batch}, got 0: otherwise nothing is ever"
                " released",
                "growth",
            )
        if isinstance(explore, Optimism) and growth == 0.0 and asks_for_published(options, budget):
            refuse_weight("reward_weight", reward_weight)
            if counter not in (None, "tree"):
                raise ArgumentError(
                    f"counter must be 'tree' or None with calibration='paper', got {counter!r}",
                    "counter",
                )
            counter = "tree"
            refuse_unpublished(options)
        else:
            bounds = "published"  # nothing else is known of
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "explore": explore,
            "batch": batch,
            "growth": growth,
            "reward_weight": reward_weight,
            **running_sum(horizon, counter),
            "models": models,
            "bounds": bounds,
        }
        composition = self.composition(explore=explore, growth=growth)
        super().__init__(own, budget=budget, composition=composition, **options)

    @property
    def _schedule(self) -> Schedule:
        batch, growth = self.config["batch"], self.config["growth"]
        if growth == 0.0:
            return Schedule(batch)
        return Schedule(1, growth, math.inf if batch == MOST_ROUNDS else float(batch))

    @property
    def _weight(self) -> float:
        return math.sqrt(2.0) if self._noise_as_published else super()._weight

    def _moved(self, reward: float, length: float) -> float:
        if not self._noise_as_published:
            return super()._moved(reward, length)
        # The published bound is that of (x, r) (x, r)^T, of which r^2 is not used; w = sqrt(2).
        return math.sqrt(2.0) * (length * length + 0.5 * reward * reward)

    def _with_published_bounds(self, params: Params) -> Params:
        """Shariff & Sheffet (2018), 4.2, for (Z' + Z'^T) / sqrt(2) in m levels of a tree."""
        d, releases = self.dimension, self._releases or MOST_ROUNDS
        log = math.log(2.0 * releases / self._each_failure)
        std, levels = self.noise_scale / math.sqrt(2.0), self._counter.column_norm() ** 2
        bound = std * math.sqrt(2.0 * levels) * (4.0 * math.sqrt(d) + 2.0 * log)  # Upsilon
        gamma = std * math.sqrt(levels / bound) * (math.sqrt(d) + math.sqrt(2.0 * log))
        log_odds = 2.0 * math.log(2.0 / self._each_failure)
        return params._replace(matrix_norm=bound, vector_norm=gamma, log_odds=log_odds)
