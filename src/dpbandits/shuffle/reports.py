"""Reports with noise of their own, in random order: P_Amp of Chowdhury & Zhou (2022).

A person sends their integers plus discrete Gaussian noise with parameter ``noise``.  The shuffler
outputs all reports in random order.  ``delta_at`` is that of a single report: amplification by
shuffling is not counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ..privacy import ApproxDP
from ..rooms import papers
from .certificates import DiscreteGaussian
from .certified import CertifiedProtocol
from .randomness import Source


@dataclass(frozen=True, kw_only=True)
class GaussianReports(CertifiedProtocol):
    """Reports with Gaussian noise of their own: the protocol P_Amp; see this module.

    When to choose: where people do not trust the others of their batch to add noise.

    Example:
        >>> budget = ApproxDP(1.0, 1e-3)
        >>> protocol = GaussianReports.calibrated(budget, batch=50, dimension=2, bound=1.0)
        >>> round(protocol.noise_std, 1)  # sqrt(50) times what a curator's Gaussian noise would be
        36.5
    """

    fineness: ClassVar[int] = 256

    @classmethod
    def published(
        cls,
        budget: ApproxDP,
        *,
        batch: int,
        features: int,
        batches: int = 1,
        level: str = "shuffle",
    ) -> Self:
        """Chowdhury & Zhou (2022), Theorem 3.2, for the same vectors as ``BitSum.published``; or at
        the local level Corollary B.3.

        It covers epsilon <= sqrt(log(2 / delta) / batch) only, and promises an unnamed multiple of
        (epsilon, delta); ``delta_at`` returns the true delta of a report.  For people in several
        ``batches`` it divides the budget by advanced composition (the proof of Theorem E.3, which
        gives log(4 batches / delta); the statement has log(2 / delta)).
        """
        made = papers("shuffle.published").for_reports(budget, batch, features, batches, level)
        return cls(**made)

    @property
    def _variance(self) -> float:
        return float(self.noise) ** 2

    def _noise_of_std(self, std: float) -> float:
        return std

    def _hiding(self, people: int) -> DiscreteGaussian:
        return DiscreteGaussian(self.noise)

    @property
    def noise_law(self) -> tuple[float, float]:
        return self.noise * math.sqrt(self.batch), 0.0

    def _noise_of_sums(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        everybody = (*shape[:-1], self.batch, shape[-1])
        return np.rint(rng.normal(0.0, self.noise, everybody)).sum(axis=-2)

    def to_dict(self) -> dict[str, Any]:
        # As numerator and denominator, which no float could hold.
        return {**super().to_dict(), "sigma_squared": [str(self.noise**2), "1"]}

    def messages(self, integers: np.ndarray, source: Source) -> np.ndarray:
        return integers + source.gaussians(self.noise, integers.shape)

    @property
    def record(self) -> tuple[tuple[int, ...], int, int]:
        most = self.levels + 64 * self.noise  # honest noise is never that large
        return (self.dimension,), -most, most

    def mixed(self, values: np.ndarray, source: Source) -> np.ndarray:
        return values[source.order(self.batch)]

    @property
    def mixed_shape(self) -> tuple[int, ...]:
        return self.batch, self.dimension

    def total(self, mixed: np.ndarray) -> np.ndarray:
        return mixed.sum(axis=0)
