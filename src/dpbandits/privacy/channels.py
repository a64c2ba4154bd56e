"""Channels: the mechanisms at the wall, and the only place where a budget becomes noise.

A channel is a noise family with a multiplier; the noise of a release has scale ``multiplier *
sensitivity``, where the sensitivity is measured in the family's norm.  Accounting needs only these
two numbers, so a ledger line is charged without knowledge of the released values.

Guarantee: a record that moves the statistic by at most D, the sensitivity, costs by family with the
multiplier m:

* ``Gaussian``, L2: std m * D, hence (1/m)-GDP, (1 / 2m^2)-zCDP and (alpha, alpha / 2m^2)-RDP.
* ``Laplace``, L1: scale m * D in every coordinate independently, hence (1/m)-DP.
* ``LaplaceVector``, L2: Laplace noise of scale m * D in every coordinate independently, hence (1 /
  2m^2)-zCDP.  A record that moves coordinate i by v_i loses |v_i| / (m D) there in pure DP. In zCDP
  it loses half the square of that, and the squares sum to |v|^2.
* ``Hemisphere``, L2: a random vector of one of two half spheres for a vector of the unit ball,
  hence (1/m)-DP; two such vectors differ by at most D = 2.
* ``Open``: no noise, no privacy; it turns an algorithm into its non-private counterpart.

All of this holds for the discrete noise of ``secure``, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from ..errors import ArgumentError
from ..kernel import Generator, Vector, kernel, outlined
from ..validation import real, shown
from . import accounting
from .budgets import NOTIONS, ApproxDP, Budget, Currency
from .discrete import raised, simulated_gaussian, simulated_laplace

Calibration = Literal["exact", "paper"]

# PURE is of ledger lines only: releases that together are (1 / multiplier)-DP; no more is known.
OPEN, GAUSSIAN, LAPLACE, PURE, VECTOR, CERTIFIED, HEMISPHERE = range(7)


@outlined
def draw_noise(family: int, scale: float, grid: float, noise: Vector, rng: Generator) -> None:
    """Fill ``noise`` with independent variables of a family: multiples of ``grid``, in the law of
    secure noise, or any numbers where that is 0.  Simulation only: ``rng`` can be predicted.
    """
    if scale == 0.0:  # of a statistic that nobody moves
        grid = 0.0
    for i in range(noise.size):
        if grid > 0.0 and family == GAUSSIAN:
            # Discrete noise needs a tenth of a squared step more for the same cost (``discrete``).
            noise[i] = grid * simulated_gaussian(raised(scale / grid), rng)
        elif grid > 0.0 and family in (LAPLACE, VECTOR):
            noise[i] = grid * simulated_laplace(scale / grid, rng)
        elif family == GAUSSIAN:
            noise[i] = scale * rng.standard_normal()
        elif family in (LAPLACE, VECTOR):
            noise[i] = scale * rng.laplace(0.0, 1.0)
        else:  # never the statistic itself, for want of noise
            noise[i] = 0.0 if family == OPEN else np.nan


@kernel
def hemisphere_radius(epsilon: float, dimension: int) -> float:
    """The length of a release of ``Hemisphere``; see there."""
    root = math.exp(math.lgamma(0.5 * (dimension + 1)) - math.lgamma(0.5 * dimension))
    return math.sqrt(math.pi) * root / math.tanh(0.5 * epsilon)


@outlined
def draw_from_hemisphere(scale: float, statistic: Vector, release: Vector, rng: Generator) -> None:
    """Replace a vector of the unit ball as ``Hemisphere`` does; simulation only, as above."""
    # The scale is (1 / epsilon) D, with D = 2 between two vectors of the unit ball.
    epsilon = 2.0 / scale
    size = length = along = 0.0
    for i in range(statistic.size):
        release[i] = rng.standard_normal()
        size += release[i] * release[i]
        length += statistic[i] * statistic[i]
        along += release[i] * statistic[i]
    # Whatever the vector is, this lies between 1 / (1 + e^epsilon) and e^epsilon times that.
    likely = 0.5 + 0.5 * math.tanh(0.5 * epsilon) * min(math.sqrt(length), 1.0)
    radius = hemisphere_radius(epsilon, statistic.size) / math.sqrt(size)
    if (along > 0.0) != (rng.random() < likely):
        radius = -radius
    for i in range(statistic.size):
        release[i] *= radius


@kernel
def add_independent(
    family: int, scale: float, grid: float, statistic: Vector, release: Vector, rng: Generator
) -> None:
    """Write the statistic plus the noise of ``draw_noise`` into ``release``."""
    draw_noise(family, scale, grid, release, rng)
    for i in range(statistic.size):
        release[i] += statistic[i]


@kernel
def add_noise(
    family: int, scale: float, grid: float, statistic: Vector, release: Vector, rng: Generator
) -> None:
    """``add_independent``, or the replacement of the statistic in ``Hemisphere``."""
    if family == HEMISPHERE:
        draw_from_hemisphere(scale, statistic, release, rng)
    else:
        add_independent(family, scale, grid, statistic, release, rng)


@dataclass(frozen=True)
class Channel:
    """A noise family and its multiplier.  Use one of those below."""

    multiplier: float

    family: ClassVar[int]
    norm: ClassVar[int]  # in which sensitivity is measured: 1 or 2
    name: ClassVar[str]
    keeps_gdp: ClassVar[bool] = True  # whether its noise keeps Gaussian DP, or counts as such

    @classmethod
    def takes(cls, notion: Budget | type[Budget]) -> bool:
        """Whether there is such noise for the notion."""
        return cls.name in notion.noises

    @classmethod
    def calibrated(cls, budget: Budget, *, calibration: Calibration = "exact") -> Self:
        """Calibrate a channel for a budget.

        ``calibration="paper"`` uses the constants of the literature for an (epsilon, delta) budget,
        where there are some: see the class.

        Returns:
            A channel of which one release spends the whole budget.

        Raises:
            ArgumentError: there is no such noise for the notion.
        """
        if not (isinstance(budget, Budget) and cls.takes(budget)):
            kinds = [kind.__name__ for kind in NOTIONS.values() if cls.takes(kind)]
            raise ArgumentError(
                f"budget must be {' or '.join(kinds)} for {cls.name} noise, got {shown(budget)}"
            )
        if calibration == "paper" and isinstance(budget, ApproxDP):
            published = cls._published(budget)
            if published is not None:
                return cls(published)
        currency, amount = budget.kept_in(gaussian=cls.keeps_gdp)
        return cls(multiplier_of(cls.family, amount, currency, budget.order))

    @staticmethod
    def _published(budget: ApproxDP) -> float | None:
        """The multiplier that the literature has for the budget; None for no other than ours."""
        return None

    @property
    def composition_norm(self) -> int:
        """In which the multipliers of several releases grow: 1 where their epsilons add up."""
        return 1 if self.family == HEMISPHERE else self.norm

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "multiplier", real("multiplier", self.multiplier, 0.0, math.inf, strict=True)
        )

    def scale(self, sensitivity: float) -> float:
        """Scale the noise for a statistic that one record moves by at most ``sensitivity``.

        Returns:
            The scale of the noise, in units of the statistic.

        Raises:
            ArgumentError: the sensitivity is negative, infinite or not a number.
        """
        # A scale may not underflow to 0 either: the statistic would cross without noise.
        scale = self.multiplier * real("sensitivity", sensitivity, 0.0)
        if scale == math.inf or (scale == 0.0 < self.multiplier * math.inf and sensitivity > 0.0):
            raise ArgumentError(
                f"sensitivity times the multiplier must be a number above 0 for {self!r}, got"
                f" sensitivity {sensitivity!r}"
            )
        return scale

    def release(
        self, statistic: np.ndarray, sensitivity: float, rng: np.random.Generator
    ) -> np.ndarray:
        """Add noise to a vector, for simulations.

        Returns:
            A noisy copy, shape (n,).

        Raises:
            ArgumentError: the statistic is no vector of finite numbers, or as for ``scale``.

        >>> Open().release(np.array([3.0]), 1.0, np.random.default_rng(0))
        array([3.])
        """
        statistic = np.asarray(statistic, dtype=np.float64, order="C")
        if statistic.ndim != 1 or not np.all(np.isfinite(statistic)):
            raise ArgumentError(
                f"statistic must be a vector of finite numbers, got shape {statistic.shape}"
            )
        noisy = np.empty_like(statistic)
        add_noise(self.family, self.scale(sensitivity), 0.0, statistic, noisy, rng)
        return noisy

    def cost(self, currency: Currency, alpha: float = math.nan) -> float:
        """The cost of one release in the currency; ``alpha`` is the order of RDP."""
        return unit_cost(self.family, self.multiplier, currency, alpha)


@dataclass(frozen=True)
class Gaussian(Channel):
    """Normal noise of standard deviation ``multiplier`` times the L2 sensitivity.

    ``calibration="paper"`` uses the classical sqrt(2 ln(1.25 / delta)) / epsilon, as in published
    recipes.  Above epsilon = 1 its real delta is larger (0.41 instead of 0.1 at epsilon = 10).

    >>> round(Gaussian.calibrated(ApproxDP(1.0, 1e-6)).multiplier, 5)
    4.22468
    """

    family, norm, name = GAUSSIAN, 2, "Gaussian"

    @staticmethod
    def _published(budget: ApproxDP) -> float:
        return math.sqrt(2.0 * math.log(1.25 / budget.delta)) / budget.epsilon


class PublishedGaussian:
    """``Gaussian`` whose ``calibration="paper"`` has its own ``multiplier`` for ``ApproxDP``."""

    name, takes = Gaussian.name, Gaussian.takes

    def __init__(self, multiplier: Callable[[ApproxDP], float]) -> None:
        self._multiplier = multiplier

    def __repr__(self) -> str:
        return "PublishedGaussian"

    def calibrated(self, budget: Budget, *, calibration: Calibration = "exact") -> Gaussian:
        if calibration == "paper" and isinstance(budget, ApproxDP):
            return Gaussian(self._multiplier(budget))
        return Gaussian.calibrated(budget)


@dataclass(frozen=True)
class Laplace(Channel):
    """Independent Laplace noise, of scale ``multiplier`` times the L1 sensitivity."""

    family, norm, name = LAPLACE, 1, "Laplace"


@dataclass(frozen=True)
class LaplaceVector(Channel):
    """Laplace noise of scale ``multiplier`` times the L2 sensitivity, independent in every
    coordinate, for vectors that move as a whole.

    In the L1 norm n coordinates would cost up to sqrt(n) times as much.  But it keeps zCDP, not
    pure DP.  Its variance is twice that of the Gaussian noise of equal cost.  It is for algorithms
    that were published with it.

    ``calibration="paper"`` uses 3 sqrt(ln(1 / delta)) / epsilon, which is advanced composition over
    the coordinates (Faster Rates for Private Adversarial Bandits, Algorithm 2).

    >>> from dpbandits import ZCDP
    >>> round(LaplaceVector.calibrated(ZCDP(0.5)).multiplier, 5)
    1.0
    """

    family, norm, name, keeps_gdp = VECTOR, 2, "Laplace vector", False

    @staticmethod
    def _published(budget: ApproxDP) -> float:
        return 3.0 * math.sqrt(-math.log(budget.delta)) / budget.epsilon


@dataclass(frozen=True)
class Certified(Channel):
    """Noise of another law, drawn by a protocol or a counter of its own, with a proof that it keeps
    an (epsilon, delta) budget.

    ``multiplier`` is that of the Gaussian noise that costs as much at that budget.  The proof
    covers all releases of a user together, so a ledger charges the user for all at the first.
    """

    family, norm, name = CERTIFIED, 2, "certified"


@dataclass(frozen=True)
class Hemisphere(Channel):
    """The l2-ball randomiser (Duchi, Jordan & Wainwright 2018, Minimax Optimal Procedures for
    Locally Private Estimation, Section 4.2.3), for one vector of the unit ball.

    For v with |v| <= 1 it releases z = r u.  With probability 1/2 + tanh(epsilon / 2) |v| / 2, u is
    uniform on the half sphere <u, v> > 0, and else on the other one.

    **Pure DP.**  Let q be that probability.  With respect to the uniform law on the sphere, u has
    the density 2 q where <u, v> > 0.  Elsewhere it has 2 (1 - q) (for v = 0: 1 everywhere).  Both
    are between 2 / (1 + e^epsilon) and e^epsilon times that, because tanh(epsilon / 2) = (e^epsilon
    - 1) / (e^epsilon + 1).  So the densities for any two vectors have a quotient of at most
    e^epsilon.  That holds for every q in that interval.  The q of longer vectors is cut to it, so
    these void unbiasedness alone.

    **Unbiased.**  In d dimensions, E <u, e> over the half sphere around a unit vector e is k = E
    |u_1| = Gamma(d / 2) / (sqrt(pi) Gamma((d + 1) / 2)).  The part orthogonal to e cancels.  So E u
    = (2 q - 1) k v / |v| = tanh(epsilon / 2) k v.  With r = 1 / (tanh(epsilon / 2) k), E z = v.

    No noise is added, and z has length r.  Its square is at most pi d / (2 tanh(epsilon / 2)^2),
    which is d / epsilon^2 times 2 pi for small epsilon.  The multiplier is 1 / epsilon, and the
    scale for vectors of the unit ball 2 / epsilon.
    """

    family, norm, name = HEMISPHERE, 2, "hemisphere"

    def radius(self, dimension: int) -> float:
        """r, the length of the released vector.

        >>> round(Hemisphere(1.0).radius(10), 4)
        8.365
        """
        return hemisphere_radius(1.0 / self.multiplier, dimension)


@dataclass(frozen=True)
class Open(Channel):
    """No noise and no privacy."""

    multiplier: float = 0.0

    family, norm, name = OPEN, 2, "open"

    def __post_init__(self) -> None:
        if self.multiplier != 0.0:
            raise ArgumentError(
                f"multiplier must be 0 for the open channel, got {self.multiplier!r}"
            )


# The families of which there is noise for budgets, by name.
FAMILIES: dict[str, type[Channel]] = {
    kind.name: kind for kind in (Gaussian, Laplace, LaplaceVector, Certified, Hemisphere)
}
# What ledgers call a family.
FAMILY_NAMES = {kind.family: kind.name for kind in FAMILIES.values()} | {OPEN: "open", PURE: "pure"}


def noise_for(notion: Budget | type[Budget], kinds: Iterable[Any]) -> type[Channel] | None:
    """The best of these families for a notion, given by name or class; None if none suits it."""
    fitting = [kind for kind in (FAMILIES.get(one, one) for one in kinds) if kind.takes(notion)]
    order = {name: place for place, name in enumerate(notion.noises)}
    return min(fitting, key=lambda kind: order.get(kind.name, len(order)), default=None)


def multiplier_of(family: int, cost: float, currency: Currency, alpha: float = math.nan) -> float:
    """The inverse of ``unit_cost``: the multiplier with which one release costs that much."""
    if currency == "pure" and family in (LAPLACE, HEMISPHERE):
        return 1.0 / cost
    if currency == "zcdp" and family != CERTIFIED:
        return math.sqrt(0.5 / cost)
    if currency == "rdp" and family in (GAUSSIAN, VECTOR):
        return math.sqrt(0.5 * alpha / cost)
    if currency == "gdp" and family in (GAUSSIAN, CERTIFIED):
        return 1.0 / math.sqrt(cost)
    name = next(kind.name for kind in FAMILIES.values() if kind.family == family)
    raise ArgumentError(
        f"budget must be of a notion that suits {name} noise, got a notion that counts cost"
        f" in {currency!r}"
    )


def unit_cost(family: int, multiplier: float, currency: Currency, alpha: float = math.nan) -> float:
    """The cost of one release of a family with a multiplier, in a currency."""
    # Its proof is for one budget of (epsilon, delta), whose Gaussian equivalent is the multiplier.
    if family == CERTIFIED:
        return 1.0 / multiplier**2 if currency == "gdp" else math.inf
    if family in (GAUSSIAN, VECTOR):
        squared = (1.0 / multiplier) * (1.0 / multiplier)
        mu_squared = squared if family == GAUSSIAN else math.inf
        costs = {"zcdp": squared / 2, "rdp": alpha * squared / 2, "gdp": mu_squared}
        return costs.get(currency, math.inf)
    if family in (LAPLACE, PURE, HEMISPHERE):
        epsilon = 1.0 / multiplier
        if currency == "pure":
            return epsilon
        if currency == "zcdp":
            return epsilon * epsilon / 2
        if currency == "gdp":
            mu = accounting.pure_mu(epsilon)
            return mu * mu
        if family == LAPLACE:
            return accounting.laplace_rdp(epsilon, alpha)
        # Bun & Steinke (2016), Proposition 3.3
        return min(alpha * epsilon * epsilon / 2, epsilon)
    return math.inf
