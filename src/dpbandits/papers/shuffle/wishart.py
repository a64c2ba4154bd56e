"""LinUCB under joint differential privacy with the Wishart noise of Shariff & Sheffet (2018).

Every ``batch`` rounds, a binary tree releases the running sum of v v^T over records v = (x, w r),
without the square of w r.  Every node has Wishart noise, less its mean, which is public.
``wishart_noise`` proves the privacy of the releases.  Decisions are as private, by the billboard
lemma (see ``joint``).

**Several models.**  All blocks are released at once, each with its own noise.  Replacing a person's
record moves it from one block to another, or keeps it in one: see *Several sums at once* there.

**Post-processing** is that of ``hidden.model``, with bounds on the norms of N and n - N theta for
Wishart noise (``wishart_norm``).  A release holds as many nodes as its number has binary ones, m at
most.

**As published** noise is not centred, and a release has that of m nodes: N - c I has its
eigenvalues between rho_min and 2 rho_min.  Centred noise of fewer nodes and the shift m k L^2 - c
stay within the same bounds, and are the same where there are m.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Unpack

from ...algorithms.bases.counter_choice import MOST_ROUNDS
from ...algorithms.bases.errata import JOINT
from ...algorithms.bases.linear import MODEL, RADIUS, LinearOptions
from ...algorithms.hidden import policy as hidden
from ...algorithms.hidden.kernels import OPTIMISTIC
from ...algorithms.hidden.model import Params
from ...algorithms.hidden.policy import REPAIR, HiddenOptions, HiddenPolicy
from ...algorithms.maths.confidence import gaussian_norm
from ...constraints import Constraints, Integer, Real
from ...errors import ArgumentError
from ...policies import Card, register
from ...privacy.budgets import ApproxDP
from ...privacy.continual import Counter, Independent, WishartTree
from .published import AsPublished
from .wishart_noise import WishartNoise


class WishartOptions(LinearOptions, HiddenOptions, total=False):
    """Those of ``LinearOptions`` and of ``HiddenOptions``."""


@register(n_arms=3, dimension=2, horizon=30_000, batch=4)
class WishartLinUCBJDP(HiddenPolicy):
    """LinUCB with private features and rewards under joint differential privacy, with Wishart noise
    (Shariff & Sheffet 2018; here with the least proved amount).

    It plays like ``LinUCBJDP``, with another noise in every node of a binary tree: the sum of k
    outer products of normal vectors as long as a record.

    Args:
        n_arms, dimension, horizon, models: as in ``HiddenLinear``.
        budget: ``ApproxDP``; None for the non-private counterpart.
        batch: rounds between two releases.
        reward_weight: w, as in ``HiddenLinear``.
        **options: see ``WishartOptions``.  With ``calibration="paper"`` k, shift and radius
            are the published ones, and the guarantee has the budget that really holds.  No exact
            sampler of this noise is known: ``noise="secure"`` is refused.

    When to choose: to compare with the publication; ``LinUCBJDP`` needs less noise, and keeps every
    kind of budget.

    Example:
        >>> policy = WishartLinUCBJDP(2, 3, budget=ApproxDP(1.0, 1e-4), horizon=1000, seed=1)
        >>> policy.update(1.0, policy.pull([[1, 0, 0], [0, 1, 0]]))
        True
    """

    card = Card(
        title="LinUCB with private features, joint DP, Wishart noise",
        source="Shariff & Sheffet (2018), Differentially Private Contextual Linear Bandits",
        proof=(
            "noise: module dpbandits.papers.shuffle.wishart_noise; joint privacy: module"
            " dpbandits.algorithms.hidden.joint"
        ),
        noise=("certified",),
        protects="contexts and rewards",
        view="joint",
        errata=(JOINT,),
    )
    kernels = OPTIMISTIC
    constraints: ClassVar[Constraints] = {
        "horizon": Integer(1, MOST_ROUNDS),
        "reward_weight": Real(1e-6, 1e6),
    }
    _options: ClassVar[dict[str, Any]] = {**MODEL, **RADIUS, **REPAIR}

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: ApproxDP | None,
        horizon: int,
        batch: int = 1,
        reward_weight: float = 1.0,
        models: str = "shared",
        **options: Unpack[WishartOptions],
    ) -> None:
        own: dict[str, Any] = {
            "n_arms": n_arms,
            "dimension": dimension,
            "horizon": horizon,
            "batch": batch,
            "reward_weight": reward_weight,
        }
        if models != "shared":
            own["models"] = models
        if hidden.asks_for_published(options, budget):
            hidden.refuse_unpublished(options)
            hidden.refuse_weight("reward_weight", reward_weight)
            published: Any = AsPublished(self._kept)
            self.card = replace(self.card, noise=(published,))
        super().__init__(own, budget=budget, **options)

    @property
    def _secure_needs(self) -> tuple[str, str]:
        return "LinUCBJDP", "no exact sampler of Wishart noise is known"

    @property
    def _published(self) -> bool:
        return self._asks_for_published

    @property
    def _levels(self) -> int:
        """m: in how many nodes a record is, at most."""
        return (self._releases or 1).bit_length()

    @property
    def _published_levels(self) -> int:
        return ((self._releases or 1) - 1).bit_length() + 1

    @cached_property
    def freedom(self) -> int:
        """k, the degrees of freedom of the noise in a node; 0 without a budget."""
        if not isinstance(self.budget, ApproxDP):
            return 0
        epsilon, delta = self.budget.epsilon, self.budget.delta
        if self._published:
            return self._law(self._published_levels).published_freedom(epsilon, delta)
        return self._law(self._levels).least_freedom(epsilon, delta)

    def _law(self, levels: int) -> WishartNoise:
        return WishartNoise(self.dimension + 1, levels, self.max_rounds or 1)

    def _kept(self, budget: ApproxDP) -> float:
        """The delta that is proved of published noise."""
        return self._law(self._levels).delta(budget.epsilon, self.freedom)

    @property
    def _square(self) -> float:
        """L^2, of the longest (x, w r)."""
        return self.context_bound**2 + self._largest**2

    @property
    def noise_scale(self) -> float:
        """Standard deviation of a node's noise on svec(x x^T); 1 / sqrt(2) of it on w x r."""
        return self._square * math.sqrt(2.0 * self.freedom)

    @property
    def _noise_std(self) -> float:
        return self.noise_scale * math.sqrt(self._levels)

    @cached_property
    def _counter(self) -> Counter:
        if self.budget is None:
            return Independent(self._releases)
        return WishartTree(
            self._releases or 1,
            freedom=float(self.freedom),
            scale=self._square,
            dimension=self.dimension,
        )

    def _matrix_norm(self, std: float, releases: int, probability: float) -> float:
        total = float(self._levels * self.freedom)
        return self._square * wishart_norm(self.dimension, total, releases, probability)

    def _vector_norm(self, std: float, releases: int, probability: float, axis: float) -> float:
        total = float(self._levels * self.freedom)
        theta, last = self._parameter_bound, 1.0 / self._weight
        bound = wishart_image_norm(self.dimension, total, releases, probability, theta, last)
        return self._square * bound

    def _with_published_bounds(self, params: Params) -> Params:
        """The parameters with rho_min, rho_max, the shift and gamma for noise of m k degrees of
        freedom.

        Their gamma is that of noise before the shift; sqrt(least eigenvalue before / after) is by
        how much more it is after that.
        """
        releases, failure, d = self._releases or 1, self._each_failure, self.dimension
        root = math.sqrt(self._published_levels * self.freedom)
        reach, one = (
            math.sqrt(d) + math.sqrt(2.0 * math.log(logs * releases / failure)) for logs in (8, 2)
        )
        if root <= reach:
            raise ArgumentError(
                f"budget must be smaller with calibration='paper', got {self.budget!r}: the"
                " paper's bounds need more noise",
                "budget",
            )
        least = 4.0 * root * reach  # rho_min, in units of L^2
        gamma = one * (root - reach) / math.sqrt(least)
        return params._replace(
            matrix_norm=self._square * least,
            vector_norm=math.sqrt(self._square) * gamma,
            lift=1.5 - 0.25 * reach / root,
            largest=2.0,
            log_odds=2.0 * math.log(2.0 / failure),
        )


def wishart_norm(dimension: int, freedom: float, releases: int, probability: float) -> float:
    """An upper bound on the operator norms of ``releases`` matrices W - K I, with probability 1 -
    ``probability``.  W ~ Wishart(I, K), K is at most ``freedom``, and the matrices may be
    dependent.

    W = G^T G with G normal of K rows.  Its singular values are within sqrt(K) +- (sqrt(d) + t) with
    probability 1 - 2 exp(-t^2 / 2) (Davidson & Szarek 2001, Theorem II.13).  So their squares are
    at most 2 sqrt(K) (sqrt(d) + t) + (sqrt(d) + t)^2 from K.
    """
    if freedom == 0.0:
        return 0.0
    reach = math.sqrt(dimension) + math.sqrt(2.0 * math.log(2.0 * releases / probability))
    return 2.0 * math.sqrt(freedom) * reach + reach * reach


def wishart_image_norm(
    dimension: int, freedom: float, releases: int, probability: float, along: float, last: float
) -> float:
    """An upper bound on |n - N theta| with that probability.  n is ``last`` times the last column
    of W - K I, of side d + 1, without its end, and N is the rest.  ``along`` bounds |theta|.

    It is the first d coordinates of (W - K I) u, u = (-theta, last).  In the direction of u, W u /
    |u| is a chi2(K) variable q, and across sqrt(q) times d independent normal ones.  With
    probability 1 - 2 e^-t q is above K - 2 sqrt(K t) and below K + 2 sqrt(K t) + 2 t <= (sqrt(K) +
    sqrt(2 t))^2 (Laurent & Massart 2000, Lemma 1).
    """
    if freedom == 0.0:
        return 0.0
    t, root = math.log(4.0 * releases / probability), math.sqrt(freedom)
    across = (root + math.sqrt(2.0 * t)) * gaussian_norm(dimension, 1.0, releases, probability / 2)
    return along * 2.0 * (root * math.sqrt(t) + t) + math.hypot(along, last) * across
