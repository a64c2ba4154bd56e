"""Indices: choose the arm to play from released sums.

Each is a formula of an arm's merged value m, its weight W and the law of its noise (``law``), after
the memory has discounted them.  All of it is post-processing of releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...calls import is_open
from ...constraints import Choice, Constraints, Integer, Real
from ...kernel import Generator, Kernel, bind_places, inlined, kernel, unbound
from ...policies import Erratum, Part
from ...protocol import Contexts
from ..bases.episodes import CLOCK
from ..bases.horizon import doubt_of, rounds_worth
from .batches import weight_of
from .kept import (
    forget_changed,
    forget_nothing,
    kept_ceiling,
    kept_divergence,
    kept_logarithm,
)
from .law import MERGED, noise_variance, upper_bound_of
from .memories import AGED, Memory, Merge

columns = standing = unbound  # of the memory
index = ceiling = forget = unbound  # of the index


@kernel
def seen(public: Any, a: int) -> tuple[int, float, float]:
    """Of an arm: how often it was played, the rounds that its index knows of, its value."""
    known = columns(public.merged, public.awaited)
    return public.pulls[a], known[AGED.rounds, a], public.merged[MERGED.value, a]


@kernel
def choose_least(params: Any, public: Any, contexts: Contexts, rng: Generator) -> tuple[int, float]:
    """The arm of least index, against the highest value; arms never played come first."""
    target = 0.0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        pulls, _, value = seen(public, a)
        if pulls == 0:
            return a, 1.0
        target = max(target, value)
    # Noise may carry a value beyond [0, 1], where the exponent is not defined.
    target, best, arm = min(target, params.highest), np.inf, 0
    forget(params, public)
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        found = index(params, public, a, target)
        if found < best:
            best, arm = found, a
    return arm, 1.0


@kernel
def choose_largest(
    params: Any, public: Any, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """The arm of largest index at the level alpha ln t; of equals the one with fewer rounds."""
    for a in range(params.n_arms):
        # Without a round there is no law, and no divisor.
        if is_open(contexts, a) and seen(public, a)[0] == 0:
            return a, 1.0
    level = params.constant * np.log(public.clock[CLOCK.rounds] + 1.0)
    best, arm = -np.inf, 0
    forget(params, public)
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        rounds, most = seen(public, a)[1], ceiling(params, public, a, level)
        if most < best or (most == best and rounds >= seen(public, arm)[1]):
            continue
        found = index(params, public, a, level)
        if found > best or (found == best and rounds < seen(public, arm)[1]):
            best, arm = found, a
    return arm, 1.0


@kernel
def imed(params: Any, public: Any, a: int, target: float) -> float:
    """The index of ``IMED``."""
    weight, share = standing(params, public, a)
    distance, rounds = 0.0, rounds_worth(params, public)
    if share > 0.0:
        known = columns(public.merged, public.awaited)
        found = kept_divergence(params, public.cache, public.merged, known, a, target)
        distance = share * found
    found, own = distance / params.constant, kept_logarithm(public.cache, a, weight)
    if np.isinf(rounds):
        return found + own
    most = weight_of(params, rounds)  # of the rounds that are left
    return doubt_of(found) + (own if weight <= most else np.log(most))


@kernel
def kl_ucb(params: Any, public: Any, a: int, level: float) -> float:
    """The largest q with D(m, q) <= level."""
    _, share = standing(params, public, a)
    if share == 0.0:
        # With a memory that fades, nothing of this arm is released yet: no mean is ruled out.
        return 1.0
    merged, known = public.merged[:, a], columns(public.merged, public.awaited)[:, a]
    return upper_bound_of(params, merged, known, merged[MERGED.value], level / share)


@kernel
def no_ceiling(params: Any, public: Any, a: int, level: float) -> float:
    """For indices without a bound."""
    return np.inf


@kernel
def kl_ceiling(params: Any, public: Any, a: int, level: float) -> float:
    """A bound on ``kl_ucb``."""
    _, share = standing(params, public, a)
    if share == 0.0:
        return 1.0
    known = columns(public.merged, public.awaited)
    return kept_ceiling(params, public.cache, public.merged, known, a, level / share)


@kernel
def ucb(params: Any, public: Any, a: int, level: float) -> float:
    """m + sqrt(2 level Var(m)), where Var(m) is the sum of a_j^2 (n_j / 4 + v)."""
    _, share = standing(params, public, a)
    if share == 0.0:
        return np.inf
    column = columns(public.merged, public.awaited)[:, a]
    weight = column[MERGED.weight]
    squares = 0.25 * column[MERGED.squares] + noise_variance(params) * column[MERGED.noise]
    variance = squares / (weight * weight)
    return public.merged[MERGED.value, a] + np.sqrt(2.0 * level * variance / share)


NOTHING_KEPT: dict[str, Kernel] = {"forget": forget_nothing, "ceiling": no_ceiling}
# By kernels and not by classes, as a derived class may have another index.
_KEPT: dict[Kernel | None, dict[str, Kernel]] = {
    imed: {"forget": forget_changed},
    kl_ucb: {"forget": forget_changed, "ceiling": kl_ceiling},
}


@dataclass(frozen=True, repr=False)
class Index(Part, base=True):
    """Base class of indices.

    An index of your own provides ``loop``, the kernel ``choose`` with three placeholders.
    ``index`` becomes ``each``, the index of one arm.  ``columns(merged, awaited)`` returns the
    columns with a known law.  ``standing(params, public, a)`` returns the present weight of an arm,
    and the share left of its exponent.  An index that needs a ``memory`` names it, and gives the
    reason in ``because``.
    """

    title: ClassVar[str] = ""
    source: ClassVar[str] = "this package"
    loop: ClassVar[Kernel] = choose_least
    each: ClassVar[Kernel | None] = None
    randomised: ClassVar[bool] = False
    memory: ClassVar[type[Memory] | None] = None  # the only one that it goes with; None: all do
    because: ClassVar[str] = ""  # why
    errata: ClassVar[tuple[Erratum, ...]] = ()  # of its publication

    @property
    def constant(self) -> float:
        """Parameters of the index for kernels, as ``params.constant``."""
        return 1.0

    @property
    def learns_variance(self) -> bool:
        """Whether the sum of r (1 - r) is released beside the sum of rewards r."""
        return False

    @property
    def known_horizon(self) -> int:
        """The number of rounds that the index plans for, as ``params.horizon``; 0 for none."""
        return 0

    @classmethod
    def choosing(cls, memory: type[Memory]) -> Kernel:
        """``choose`` for a memory."""
        own = {"seen": seen, **NOTHING_KEPT, **_KEPT.get(cls.each, {})}
        if cls.each is not None:
            own["index"] = cls.each
        bound = {name: inlined(bind_places(one, memory.places)) for name, one in own.items()}
        return bind_places(cls.loop, {**memory.places, **bound})


@dataclass(frozen=True, repr=False)
class _Exponent(Index, base=True):
    """An index that knows the exponent D of ``law``."""

    alpha: float = 1.0
    variance: str = "bound"

    constraints: ClassVar[Constraints] = {
        "alpha": Real(1e-3, 1e3),
        "variance": Choice("bound", "released"),
    }

    @property
    def constant(self) -> float:
        return self.alpha

    @property
    def learns_variance(self) -> bool:
        return self.variance == "released"


@dataclass(frozen=True, repr=False)
class IMED(_Exponent):
    """Indexed minimum empirical divergence (Honda & Takemura 2015): the arm with the least ``D(m,
    max m) / alpha + ln W``.  Let an arm's mean be the best estimate: exp(-D) bounds the probability
    of an estimate as low as the arm's, given the law of its noise (``law``).

    With a horizon of T rounds, of which t are over: the arm with the least ``g(D / alpha) + ln
    min(W, M)``.  M is the weight of 3 (T - t) rounds: a trial must repay in the rounds that are
    left.  g is increasing and near the identity.  It keeps the probability of losing the best arm
    for good as low as without a horizon (``bases.horizon``).  After T rounds the index is that
    without a horizon.

    Args:
        alpha: optimism; the lower, the more seldom an arm that looks worse is tried.
        variance: of rewards: "bound" takes that of a coin.  "released" learns it from a second sum,
            of ``(r - lo) (hi - r)``, which costs no privacy and no noise.  Use it for rewards that
            are seldom at the ends of their range.
        horizon: the planned number of rounds that the policy learns from; None where it is unknown.

    When to choose: it is the default, with the least regret where rewards are random.

    >>> IMED(alpha=1.3, horizon=10_000)
    IMED(alpha=1.3, horizon=10000)
    """

    horizon: int | None = None

    title: ClassVar[str] = "IMED"
    source: ClassVar[str] = (
        "Honda & Takemura (2015), Non-asymptotic Analysis of a New Bandit Algorithm for"
        " Semi-bounded Rewards"
    )
    loop: ClassVar[Kernel] = choose_least
    each: ClassVar[Kernel | None] = imed
    constraints: ClassVar[Constraints] = {"horizon": Integer(1) | None}

    @property
    def known_horizon(self) -> int:
        return self.horizon or 0


@dataclass(frozen=True, repr=False)
class KLUCB(_Exponent):
    """KL-UCB (Cappe et al. 2013): the arm with the largest q such that ``D(m, q) <= alpha ln t``.
    This q is an upper confidence bound of level t^-alpha on the arm's mean.

    Args:
        alpha: optimism.
        variance: see ``IMED``.

    When to choose: as ``IMED``, if you want an index that is an upper confidence bound.
    """

    title: ClassVar[str] = "KL-UCB"
    source: ClassVar[str] = (
        "Cappe, Garivier, Maillard, Munos & Stoltz (2013), Kullback-Leibler Upper Confidence Bounds"
        " for Optimal Sequential Allocation"
    )
    loop: ClassVar[Kernel] = choose_largest
    each: ClassVar[Kernel | None] = kl_ucb


@dataclass(frozen=True, repr=False)
class Thompson(_Exponent):
    """Thompson sampling (Thompson 1933): draws a mean for every arm from a law with tails exp(-D),
    and plays the arm with the largest (``interleaved``).

    Args:
        alpha: the lower, the closer draws are to the merged values.
        variance: see ``IMED``.

    When to choose: as ``IMED``, if choices should be random.  Propensities have no closed form.
    """

    title: ClassVar[str] = "Thompson sampling"
    source: ClassVar[str] = (
        "Thompson (1933), On the Likelihood that One Unknown Probability Exceeds Another; draws"
        " from the exponent"
    )
    randomised: ClassVar[bool] = True
    memory: ClassVar[type[Memory] | None] = Merge
    because: ClassVar[str] = "its draws are computed when a sum is released, and do not fade"


@dataclass(frozen=True, repr=False)
class UCB(Index):
    """UCB (Auer, Cesa-Bianchi & Fischer 2002) with the variance of a noisy mean: the arm with the
    largest ``m + sqrt(2 alpha ln t Var(m))``.

    Args:
        alpha: optimism.

    When to choose: a textbook index is wanted.  ``IMED`` has less regret.
    """

    alpha: float = 1.0

    title: ClassVar[str] = "UCB"
    source: ClassVar[str] = (
        "Auer, Cesa-Bianchi & Fischer (2002), Finite-time Analysis of the Multiarmed Bandit Problem"
    )
    loop: ClassVar[Kernel] = choose_largest
    each: ClassVar[Kernel | None] = ucb

    constraints: ClassVar[Constraints] = {"alpha": Real(0.0, strict=True)}

    @property
    def constant(self) -> float:
        return self.alpha
