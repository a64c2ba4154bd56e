"""Trees: a release adds up noisy nodes.  They suit Laplace noise, and integers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ...validation import integer, real
from .counters import LONGEST, Counter
from .running_sums import HONAKER, HYBRID, TREE


class _Dyadic(Counter):
    """The base of the trees: a release adds up one node for each binary one of its number."""

    def _peaks(self, n: int) -> np.ndarray:
        # Of the numbers below n with the same digits down to some one of n, and a zero there, the
        # one with ones only is worst.
        starts = [n >> bit << bit for bit in range(n.bit_length()) if n >> bit & 1]
        return np.array([n, *(start - 1 for start in starts if start > 1)])


class _Planned(_Dyadic):
    """A single tree whose nodes all get noise of one scale."""

    horizon: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", integer("horizon", self.horizon, 1, LONGEST))

    def _column(self, norm: int) -> float:
        # A record is in one node of each level, with weight 1.
        return float(self.horizon.bit_length()) ** (1 / norm)

    def _growth(self, records: int, norm: int) -> float:
        if norm == 1:
            return super()._growth(records, norm)
        # No increment is in two nodes of one level: what the records add to the nodes of level k
        # is ``records`` in all, and at most min(2^k, records) in one, so that its squares add up
        # to at most the product.
        levels = self.horizon.bit_length()
        most = sum(min(1 << level, records) for level in range(levels))
        return math.sqrt(records * most / levels)


@dataclass(frozen=True)
class BinaryTree(_Planned):
    """The binary tree (Dwork, Naor, Pitassi & Rothblum 2010; Chan, Shi & Song 2011).

    Release t draws one noise, for the node of the increments since t less its lowest binary one.
    The release adds up one such node for each binary one of t.  A record is in floor(log2 horizon)
    + 1 nodes at most.

    Args:
        horizon: the number of releases planned.
        levels: overrides the number of nodes that a record is counted in, to reproduce a published
            recipe; with too few, a record costs more than one release of the channel; see
            ``exact_column_norm``.

    Prefer it where noise must be Laplace or integer; under Gaussian noise ``SqrtToeplitz`` and
    ``BufferedToeplitz`` have a tenth of its variance.  Memory is logarithmic in the horizon.

    Example:
        >>> tree = BinaryTree(20_000)
        >>> round(tree.max_variance() / 2, 1), tree.column_norm(1)  # divided by 2 rho, at rho = 1
        (105.0, 15.0)
    """

    horizon: int
    levels: float | None = None
    kind: ClassVar[int] = TREE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.levels is not None:
            object.__setattr__(self, "levels", real("levels", self.levels, 0.0, strict=True))

    def exact_column_norm(self, norm: int = 2) -> float:
        self.column_norm(norm)
        return super()._column(norm)

    def _column(self, norm: int) -> float:
        return super()._column(norm) if self.levels is None else self.levels ** (1 / norm)

    def _row_squares(self, t: np.ndarray, norm: int) -> np.ndarray:
        return np.bitwise_count(t).astype(np.float64)

    def _encoder(self, n: int, norm: int) -> np.ndarray:
        c = np.zeros((n, n))
        for t in range(1, n + 1):
            c[t - 1, t - (t & -t) : t] = 1.0
        return c

    def _decoder(self, n: int, norm: int) -> np.ndarray:
        b = np.zeros((n, n))
        for t in range(1, n + 1):
            b[t - 1] = b[t - (t & -t) - 1] if t & (t - 1) else 0.0
            b[t - 1, t - 1] = 1.0
        return b

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        return np.zeros((1, 1)), self.horizon.bit_length()


@dataclass(frozen=True)
class HonakerTree(_Planned):
    """The binary tree with every node noised, each averaged with the sum of its halves (Honaker
    2015, from below).

    A record is in as many nodes as in ``BinaryTree``; the variance is about half.  Release t draws
    as many noises as t has trailing binary zeros, plus one.

    Args:
        horizon: the number of releases planned.

    Example:
        >>> round(HonakerTree(20_000).max_variance() / 2, 1)
        58.5
    """

    horizon: int
    kind: ClassVar[int] = HONAKER

    def _own_weights(self) -> np.ndarray:
        """(levels,) the weight of a node's own noisy sum in its estimate, also its variance."""
        return np.array([1.0 / (2.0 - 0.5**level) for level in range(self.horizon.bit_length())])

    def _row_squares(self, t: np.ndarray, norm: int) -> np.ndarray:
        return sum((t >> level & 1) * own for level, own in enumerate(self._own_weights()))

    def _encoder(self, n: int, norm: int) -> np.ndarray:
        c, row = np.zeros((2 * n - n.bit_count(), n)), 0
        for t in range(1, n + 1):
            for level in range((t & -t).bit_length()):  # of the nodes that end at t
                c[row, t - (1 << level) : t] = 1.0
                row += 1
        return c

    def _decoder(self, n: int, norm: int) -> np.ndarray:
        own, rows = self._own_weights(), 2 * n - n.bit_count()
        kept, b, row = np.zeros((own.size, rows)), np.zeros((n + 1, rows)), 0
        for t in range(1, n + 1):
            estimate, top = np.zeros(rows), (t & -t).bit_length() - 1
            for level in range(top + 1):
                if level:
                    estimate = (1.0 - own[level]) * (kept[level - 1] + estimate)
                estimate[row] = own[level]
                row += 1
            kept[top] = estimate
            b[t] = b[t - (1 << top)] + estimate
        return b[1:]

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        return self._own_weights()[None, :].copy(), self.horizon.bit_length()


@dataclass(frozen=True)
class HybridTree(_Dyadic):
    """The hybrid mechanism for an unknown number of releases (Chan, Shi & Song 2011).

    Half of the budget is for one block between neighbouring powers of two.  The other half is for a
    tree in each epoch from 2^k to 2^(k+1) - 1, calibrated to its k levels.  A Gaussian plan with
    ``overshoot`` has less noise from the start.

    Example:
        >>> round(HybridTree().max_variance(20_000) / 2, 1)
        183.0
    """

    horizon: None = field(default=None, init=False)
    kind: ClassVar[int] = HYBRID

    def _column(self, norm: int) -> float:
        return 1.0

    def widening(self, n: int, norm: int = 2) -> float:
        return float(self.scales(norm)[n.bit_length() - 1])

    def scales(self, norm: int) -> np.ndarray:
        """Factors of the noise of a block, and of nodes in trees of 1, 2, ... levels.

        Returns:
            Shape (49,).
        """
        return (2.0 * np.maximum(1.0, np.arange(LONGEST.bit_length()))) ** (1 / norm)

    def _row_squares(self, t: np.ndarray, norm: int) -> np.ndarray:
        depth = np.frexp(t.astype(np.float64))[1] - 1
        squares = self.scales(norm) ** 2
        nodes = np.bitwise_count(t).astype(np.int64) - 1
        return (depth + 1) * squares[0] + nodes * squares[depth]

    def _encoder(self, n: int, norm: int) -> np.ndarray:
        c, scales = np.zeros((n, n)), self.scales(norm)
        for t in range(1, n + 1):
            # ``inside`` is 0 where t is a power of two, with which an epoch begins.
            depth, inside = t.bit_length() - 1, t & (t - 1)
            if inside:
                c[t - 1, t - (t & -t) : t] = 1.0 / scales[depth]
            else:
                c[t - 1, t // 2 : t] = 1.0 / scales[0]
        return c

    def _decoder(self, n: int, norm: int) -> np.ndarray:
        b, scales = np.zeros((n, n)), self.scales(norm)
        for t in range(1, n + 1):
            depth, before = t.bit_length() - 1, t & (t - 1)
            if before:
                b[t - 1] = b[before - 1]
                b[t - 1, t - 1] = scales[depth]
            else:
                b[t - 1, [(1 << k) - 1 for k in range(depth + 1)]] = scales[0]
        return b

    def _storage(self, n: int, norm: int) -> tuple[np.ndarray, int]:
        scales = self.scales(norm)
        return scales[None, :].copy(), scales.size
