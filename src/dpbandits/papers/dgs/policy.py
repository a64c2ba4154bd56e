"""LinUCB with dynamic global sensitivity, as published (Wang, Zhao & Wang 2022, Algorithms 1 and 2)
and without its privacy claim.

Contexts are public, and so is A = lambda I + sum of x x^T of the played features.  The idea: one
reward moves the ridge estimate ``A_t^-1 sum x r`` by at most (hi - lo) |x| / lambda_min(A_t).  That
shrinks as A grows, so shrinking noise should suffice.

Every answer releases the increment of the ridge estimate, as a running sum with the Laplace noise
of a binary tree. The node that ends at round s draws its noise once, with scale Delta_s log2(T) /
epsilon in every coordinate.

This is not private as claimed.  Where the increments of a tree are ``x_t r_t``, one record is in
one of them, and in log2(T) + 1 nodes.  Here it moves the estimate at every later round, and so
*all* later increments and all nodes that hold one (``docs/errata.md``).  Hence ``guarantee.holds``
is None, and ``exact_loss`` computes the real loss of a record.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ...algorithms.bases.linear import LinearOptions, LinearPolicy
from ...constraints import Choice, Constraints, Flag, Real
from ...errors import ArgumentError
from ...policies import Card, Erratum, register
from ...privacy.budgets import ZCDP, ApproxDP, Budget, PureDP
from ...privacy.channels import Calibration, Laplace, Open
from ...privacy.continual import BinaryTree, Counter, HybridTree, Independent
from ...tables import array
from ...tables.manners import PUBLIC_FEATURES
from ...validation import real
from . import kernels as compiled
from .kernels import DEGENERATE, SENSITIVITIES, LinUCBDGSParams, published_sensitivity

_ERRATUM = Erratum(
    "LinUCB-DGS",
    (
        "The privacy theorem is false even where its assumption holds.",
        "The algorithm adds noise to partial sums, the nodes of a binary tree.",
        "The proof needs each record to be in log2(T) nodes only, but each record is in all later"
        " nodes.",
        "The proof takes too small a sensitivity of nodes.",
        "Differential privacy has to hold for every sequence of contexts, which are public and not"
        " random in Definition 1.",
        "So delta cannot include the probability that contexts break the paper's bound on"
        " eigenvalues.",
        "The paper bounds the sensitivity in the L2 norm. Laplace noise needs it in the L1 norm,"
        " which is up to sqrt(d) times as large",
    ),
)

_LARGEST = 2**27  # numbers in the inverses that ``exact_loss`` keeps


@dataclass(frozen=True)
class PublishedLaplace(Laplace):
    """Laplace noise of scale sensitivity / epsilon: delta is for a sensitivity bound that fails."""

    @classmethod
    def takes(cls, notion: Budget | type[Budget]) -> bool:
        return notion.key in (PureDP.key, ApproxDP.key)

    @classmethod
    def calibrated(
        cls, budget: Budget, *, calibration: Calibration = "exact", discrete: bool = False
    ) -> PublishedLaplace:
        assert isinstance(budget, PureDP | ApproxDP)
        return cls(1.0 / budget.epsilon)


@dataclass(frozen=True, repr=False)
class ExactLoss:
    """The privacy loss of single rewards in the released estimates, for one sequence of played
    features; ``float`` of it is ``epsilon``.

    ``epsilon`` and ``losses`` are largest ratios of likelihoods.  They hold for features that were
    fixed beforehand.  Where a policy has chosen them, they hold for the outcomes in which it chose
    exactly these.  ``rho`` and ``delta`` are means over outcomes, and hold for features that were
    fixed beforehand only: with other noise, a policy chooses others.

    Attributes:
        epsilon: the largest privacy loss of any record: no smaller pure-DP epsilon is true.
        record: the round, from 0, of a record that loses as much.
        losses: shape (T,), the largest privacy loss of the record of each round.
        rho: the releases are rho-zCDP for every record, if the features were fixed beforehand.
    """

    epsilon: float
    record: int
    losses: np.ndarray
    rho: float

    def delta(self, epsilon: float) -> float:
        """Bound the delta of (epsilon, delta)-DP, for every record and features that were fixed
        beforehand.

        Returns:
            An upper bound from 0 to 1, by way of zCDP; the truth may be several times less.

        Raises:
            ArgumentError: ``epsilon`` is negative or no number.
        """
        epsilon = real("epsilon", epsilon, 0.0)
        if epsilon >= self.epsilon:
            return 0.0
        return ZCDP(self.rho).delta_at(epsilon) if math.isfinite(self.rho) else 1.0

    def __float__(self) -> float:
        return self.epsilon

    def __repr__(self) -> str:
        return f"ExactLoss(epsilon={self.epsilon:.4g}, record={self.record}, rho={self.rho:.4g})"


VOID = (
    "No budget holds (docs/errata.md). The published proof assumes that one reward changes log2(T)"
    " noisy values. In fact the reward changes all later values, so Theorem 1 is false."
    " exact_loss(contexts) computes a record's loss. PrivateLinUCB has a guarantee"
)


@register(n_arms=3, dimension=2, horizon=30_000, smallest_eigenvalue=0.1)
class LinUCBDGS(LinearPolicy):
    """LinUCB with shrinking noise on its estimate (Wang, Zhao & Wang 2022), for reproduction only;
    *it gives no privacy guarantee*.

    It plays arg max of ``<x, estimate> + radius |x|_{A^-1}``.  ``estimate`` is the ridge estimate
    plus the noise of a binary tree.  A node draws its noise once, with scale ``Delta_s log2(T) /
    epsilon``, when it closes at round s.  The radius is eq. (4).

    Args:
        n_arms, dimension: as in ``Linear``.
        budget: the budget for calibrating the noise, ``ApproxDP`` or ``PureDP``.  It does not hold.
            None for no noise.
        horizon: T, after which the policy stops learning.  None takes the hybrid tree, as the paper
            proposes; a horizon planned with ``dpbandits.privacy.continual.overshoot`` has less
            noise.  The paper's T = 1 divides by log2(1) = 0: one level is taken.
        smallest_eigenvalue: lambda_0, the least eigenvalue of E[x x^T] of the played features; see
            ``estimate_eigenvalue``.  Needed by "published" and "lemma"; with a perturbation it is
            its variance by default (Corollary 1).
        sensitivity: Delta_t, with L = ``context_bound`` and W the width of the reward range.
            "published": 16 W L / (lambda_0 t), which is 32 L / (lambda_0 t) for rewards in [-1, 1].
            "lemma": W L / lambda', before that simplification, where lambda' is positive. "tight":
            W L / lambda_min(A_t), from the public A_t.  "as_coded": 1 / t, as in the authors' code.
        perturbation: Corollary 1: standard deviation of normal noise on every coordinate of all
            features, before they are scaled to ``context_bound``; 0 for none.
        greedy: play the highest ``<x, estimate>``: with a perturbation, the smoothed greedy
            algorithm.
        **options: see ``LinearOptions``; ``failure_probability`` is zeta.

    Raises:
        ArgumentError: an argument is out of range, lambda_0 is missing or impossible, or lambda' is
            not positive.

    When to choose: to reproduce the paper.  ``PrivateLinUCB`` puts the noise on the sum itself: it
    is private for any contexts, with less noise than the published constants require.

    Example:
        >>> options = {"horizon": 1000, "smallest_eigenvalue": 0.1, "seed": 1}
        >>> policy = LinUCBDGS(2, 3, budget=ApproxDP(2.0, 0.1), **options)
        >>> policy.update(1.0, policy.pull(np.eye(3)[:2]))
        True
        >>> policy.guarantee.holds is None
        True
        >>> policy.exact_loss(np.eye(3)[np.arange(1000) % 3])
        ExactLoss(epsilon=0.0902, record=2, rho=7.109e-05)
    """

    learns_off_policy = False

    card = Card(
        title="LinUCB with dynamic global sensitivity, not private",
        source="Wang, Zhao & Wang (2022), Dynamic Global Sensitivity for Differentially Private"
        " Contextual Bandits, Algorithm 2",
        noise=(PublishedLaplace,),
        learns_at_once=True,
        randomised=True,
        refuted_because=VOID,
        errata=(_ERRATUM,),
    )
    kernels = compiled.KERNELS
    constraints: ClassVar[Constraints] = {
        "smallest_eigenvalue": Real() | None,
        "sensitivity": Choice(*SENSITIVITIES),
        "perturbation": Real(0.0, 1e12),
        "greedy": Flag(),
    }

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: PureDP | ApproxDP | None,
        horizon: int | None = None,
        smallest_eigenvalue: float | None = None,
        sensitivity: str = "published",
        perturbation: float = 0.0,
        greedy: bool = False,
        **options: Unpack[LinearOptions],
    ) -> None:
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "horizon": horizon,
            "smallest_eigenvalue": smallest_eigenvalue,
            "sensitivity": sensitivity,
            "perturbation": perturbation,
            "greedy": greedy,
        }
        super().__init__(own, budget=budget, **options)

    @staticmethod
    def estimate_eigenvalue(contexts: ArrayLike, *, context_bound: float = 1.0) -> float:
        """The least eigenvalue of the mean of x x^T over public features.

        Args:
            contexts: feature vectors, shape (n, d), or of all arms in n rounds, shape (n, K, d).
                For a policy with ``perturbation`` add normal noise of that standard deviation to
                them, as it does.
            context_bound: longer vectors are scaled to it, as the policy does.

        Returns:
            An estimate of lambda_0, for features played at random.  A policy that plays the best
            arm of each round sees others, and may see smaller eigenvalues: nothing in the paper's
            Assumption 1 excludes that.

        Raises:
            ArgumentError: wrong shape, numbers that are not finite, or features that do not span
                all d dimensions.

        Example:
            >>> LinUCBDGS.estimate_eigenvalue(np.eye(4))
            0.25
        """
        bound = real("context_bound", context_bound, 0.0, 1e50, strict=True)
        x = array("contexts", contexts, PUBLIC_FEATURES, "n, d", "n, K, d")
        x = x.reshape(-1, x.shape[-1])
        lengths = np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.finfo(float).tiny)
        x = x * np.minimum(1.0, bound / lengths)
        values = np.linalg.eigvalsh(x.T @ x / len(x))
        if not values[0] > DEGENERATE * values[-1]:
            raise ArgumentError(
                f"contexts must span all {x.shape[1]} dimensions, got {len(x)} feature vectors that"
                " do not: give more vectors, drop features that are combinations of others, or"
                " perturb features",
                "contexts",
            )
        return float(values[0])

    def exact_loss(self, contexts: ArrayLike) -> ExactLoss:
        """The real privacy loss of single rewards in the released estimates, for features as
        played.

        The noise of the tree's nodes is independent, and the existing nodes are public.  So
        releasing all estimates is releasing all node sums with noise.  The largest privacy loss of
        record j is the sum over nodes of ``(hi - lo) |(A_t^-1 - A_p^-1) x_j|_1 / scale_t``.  Here
        the node covers the rounds p + 1 to t (without A_p for p < j).  For features that were fixed
        beforehand this is exact: some outputs reach it.  Where the policy chose them, it bounds the
        loss of every outcome in which exactly they were played.  It is in proportion to the epsilon
        of the budget.

        Args:
            contexts: the played features in order, shape (T, d), perturbed and scaled to
                ``context_bound`` as by ``pull``.  Rewards are assumed to lie in ``reward_range``.

        Returns:
            The loss of the worst record, and of all others.  Takes O(T^2 d^2) steps: seconds at T =
            4096, d = 25.

        Raises:
            ArgumentError: wrong shape, more rounds than the horizon, numbers that are not finite,
                or features that are too long.
        """
        x = self._played(contexts)
        if isinstance(self.channel, Open):
            return ExactLoss(math.inf, 0, np.full(len(x), math.inf), math.inf)
        precision = np.cumsum(x[:, :, None] * x[:, None, :], axis=0)
        precision += self._ridge * np.eye(x.shape[1])
        lo, hi = self.reward_range
        return loss_of_tree(x, precision, *self._nodes(precision), hi - lo)

    def alters(self, context_bound: float) -> bool:
        return self.config["perturbation"] > 0.0 or super().alters(context_bound)

    @property
    def noise_scale(self) -> float:
        """The scale of the noise of the first node; that of later ones shrinks."""
        if isinstance(self.channel, Open):
            return 0.0
        first = published_sensitivity(self.params, 1.0, self._ridge)
        return self.channel.scale(first) * self._levels(np.array([1]))[0]

    @property
    def _secure_needs(self) -> tuple[str, str]:
        return "PrivateLinUCB", "no noise would make LinUCBDGS private as claimed"

    @cached_property
    def _counter(self) -> Counter:
        if isinstance(self.channel, Open):
            return Independent(None)
        if self._horizon is None:
            return HybridTree()
        return BinaryTree(self._horizon, levels=max(1.0, math.log2(self._horizon)))

    def _levels(self, t: np.ndarray) -> np.ndarray:
        """(n,) the factors of the noise of the nodes that end at rounds t."""
        counter = self._counter
        if not isinstance(counter, HybridTree):
            return np.full(len(t), counter.column_norm(1))
        depth = np.frexp(t.astype(np.float64))[1] - 1
        return counter.start(1, 1).table[0, np.where(t & (t - 1), depth, 0)]

    def _nodes(self, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For the round that ends a node: the round before its first, and its noise scale, (T,)."""
        t = np.arange(1, len(precision) + 1)
        previous = t & (t - 1)
        if self._horizon is None:
            previous = np.where(previous > 0, previous, t // 2)
        tight = self.config["sensitivity"] == "tight"
        smallest = np.linalg.eigvalsh(precision)[:, 0] if tight else np.full(len(t), math.nan)
        bound = [
            published_sensitivity(self.params, float(n), float(least))
            for n, least in zip(t, smallest, strict=True)
        ]
        return previous, self.channel.multiplier * self._levels(t) * np.array(bound)

    def _played(self, contexts: Any) -> np.ndarray:
        x = array("contexts", contexts, PUBLIC_FEATURES, "n, d")
        if x.shape[1] != self.dimension:
            raise ArgumentError(
                f"contexts must have shape (T, {self.dimension}), got {x.shape}", "contexts"
            )
        if self._horizon is not None and len(x) > self._horizon:
            raise ArgumentError(
                f"contexts must have at most {self._horizon} rows, the horizon, got {len(x)}",
                "contexts",
            )
        if x.size * self.dimension > _LARGEST:
            raise ArgumentError(
                f"contexts must have at most {_LARGEST // self.dimension**2} rows, got {len(x)}",
                "contexts",
            )
        long = np.linalg.norm(x, axis=1) > self.effective_bound * (1.0 + 1e-9)
        if long.any():
            raise ArgumentError(
                "contexts must be as they were played, no longer than"
                f" context_bound={self.context_bound:g}, got a longer vector in row"
                f" {int(long.argmax())}",
                "contexts",
            )
        return x

    def _lambda_0(self) -> float:
        """The eigenvalue that the published bounds rest on; nan where they are not used."""
        sensitivity, perturbation = self.config["sensitivity"], self.config["perturbation"]
        if sensitivity not in ("published", "lemma"):
            return math.nan
        value = self.config["smallest_eigenvalue"]
        most = self.context_bound**2 / self.dimension
        if value is None and perturbation > 0.0:
            value = perturbation**2
        if value is None:
            raise ArgumentError(
                f"smallest_eigenvalue must be given for sensitivity={sensitivity!r}, got None."
                " LinUCBDGS.estimate_eigenvalue(contexts) estimates this eigenvalue from public"
                " features. Or set perturbation, or sensitivity='tight'",
                "smallest_eigenvalue",
            )
        if not value > DEGENERATE * most:
            raise ArgumentError(
                f"smallest_eigenvalue must be positive, above {DEGENERATE * most:.3g}, got"
                f" {value:.6g}. The published bound needs features that span all dimensions: drop"
                " superfluous features, or use perturbation= or sensitivity='tight'",
                "smallest_eigenvalue",
            )
        if self.clip and value > most * (1.0 + 1e-9):
            raise ArgumentError(
                f"smallest_eigenvalue must be at most context_bound^2 / dimension = {most:.6g}, got"
                f" {value:.6g}. Features within context_bound cannot have a larger eigenvalue: give"
                " a smaller one, or a larger context_bound",
                "smallest_eigenvalue",
            )
        return float(value)

    def _lemma_odds(self, eigenvalue: float) -> float:
        """ln(1/delta') of Lemma 1 for one node of the tree; nan where it is not used."""
        if self.config["sensitivity"] != "lemma":
            return math.nan
        if not isinstance(self.budget, ApproxDP):
            raise ArgumentError(
                "sensitivity must be 'published', 'tight' or 'as_coded' for the budget"
                f" {self.budget!r}, got 'lemma': the lemma may fail with probability delta. For"
                " 'lemma', give budget=ApproxDP(epsilon, delta)",
                "sensitivity",
            )
        if self._horizon is None:
            raise ArgumentError(
                "horizon must be given for sensitivity='lemma', got None: the lemma divides delta"
                " by log2(horizon)",
                "horizon",
            )
        delta = self.budget.delta / self._counter.column_norm(1)
        start = first_positive_round(eigenvalue, delta)
        if start > 1:
            raise ArgumentError(
                "sensitivity must be 'published' or 'tight' here, got 'lemma'. The lemma needs"
                f" the paper's lambda' > 0 in all rounds, 1 to {self._horizon}. For"
                f" smallest_eigenvalue={eigenvalue:g} and delta / log2(horizon) = {delta:g},"
                f" lambda' is negative up to round {start - 1}",
                "sensitivity",
            )
        return -math.log(delta)

    @property
    def _searches(self) -> bool:
        return True

    def _params(self) -> LinUCBDGSParams:
        lo, hi = self.reward_range
        eigenvalue = self._lambda_0()
        log_failure = -math.log(self._failure)
        epsilon = self.budget.epsilon if isinstance(self.budget, PureDP | ApproxDP) else math.inf
        movement = (hi - lo) * self.context_bound
        return LinUCBDGSParams(
            **self._model(),
            calibration=SENSITIVITIES[self.config["sensitivity"]],
            movement=movement,
            eigenvalue=eigenvalue,
            log_odds=self._lemma_odds(eigenvalue),
            perturbation=self.config["perturbation"],
            growth=self.context_bound**2 * self._ridge,
            log_failure=log_failure,
            bias=self._bias,
            noise=movement / 2.0 / epsilon * log_failure,
            log_horizon=math.nan if self._horizon is None else math.log(self._horizon),
            radius_scale=0.0 if self.config["greedy"] else self._radius_scale,
        )


def first_positive_round(eigenvalue: float, delta: float) -> int:
    """The round from which on lambda' of Lemma 1 is positive: lambda' / t grows with t.

    >>> first_positive_round(1.0, 0.1)
    1114
    """
    log_odds = -math.log(delta)

    def positive(t: int) -> bool:
        return bool(compiled.lemma_eigenvalue(float(t), eigenvalue, log_odds) > 0.0)

    end = 1
    while not positive(end):
        end *= 2
    return bisect_left(range(end), True, end // 2 + 1, key=positive)


def loss_of_tree(
    x: np.ndarray, precision: np.ndarray, previous: np.ndarray, scale: np.ndarray, width: float
) -> ExactLoss:
    """The loss of all records together with the noise of a tree.

    A node over the rounds p + 1 to t holds the estimate after t, A_t^-1 sum x_j r_j, minus that
    after p.  It has Laplace noise of its own in every coordinate.  If reward j changes by w, the
    node moves by w A_t^-1 x_j for p < j <= t.  For j <= p it moves by w (A_t^-1 - A_p^-1) x_j.
    Later rewards are not in it.

    Features x, shape (T, d), were played; ``precision`` is A_t after each round, (T, d, d), and
    ``previous`` and ``scale`` are those of ``_nodes``.  ``width`` is the most by which a reward can
    change.
    """
    inverse = np.linalg.inv(precision)
    losses, squares = np.zeros(len(x)), np.zeros(len(x))
    columns = np.ascontiguousarray(x.T)
    for t, (p, s) in enumerate(zip(previous, scale, strict=True), start=1):
        last = inverse[t - 1]
        spans = [(p, t, last)] if p == 0 else [(0, p, last - inverse[p - 1]), (p, t, last)]
        for first, end, change in spans:
            shift = np.abs(change @ columns[:, first:end]) * (width / s)
            losses[first:end] += shift.sum(axis=0)
            squares[first:end] += np.einsum("ij,ij->j", shift, shift)
    worst = int(np.argmax(losses))
    return ExactLoss(float(losses[worst]), worst, losses, float(squares.max()) / 2)
