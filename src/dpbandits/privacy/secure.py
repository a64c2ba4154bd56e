"""Noise for real people: exact integer noise on a declared grid, from OpenDP and the operating system's randomness.

Floating-point noise betrays the number it was added to in its low bits (Mironov 2012; Haney et al. 2022), and sums of floats move
further than their sensitivity (Casacuberta et al. 2022).  Here nothing is rounded behind the wall:

* At the door a reward is clipped and then rounded to a multiple of ``grid``, a power of two, that lies inside the range.  Two such
  rewards differ by at most ``hi - lo``, so that rounding costs no sensitivity, and sums of them are exact below 2**53 grid units.
  Whether a release could exceed that is decided by how many records it covers, which is public, before it is made.
* In grid units the statistic is a vector of integers, and the noise on each coordinate an independent integer, drawn exactly (no
  approximation of any density) by the samplers of Canonne, Kamath & Steinke (2020).  Integers are turned into floats afterwards.
* Discrete Laplace noise of scale b on a statistic of L1 sensitivity D is (D / b)-DP.  Discrete Gaussian noise of parameter s with L2
  sensitivity D is (D^2 / 2s^2)-zCDP, hence (alpha, alpha D^2 / 2s^2)-RDP; it obeys no Gaussian-DP curve exactly, so that an
  (epsilon, delta) budget is kept in zCDP.  D and the scale are divided by the same grid, which changes neither.
* Scales are rounded up by more than all rounding errors on the way from the budget.
"""

from __future__ import annotations

import functools
import math
import os
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import ArgumentError, DPBanditsError, MissingExtra
from .channels import GAUSSIAN, OPEN, Channel
from .noise import NoiseSource

_EXACT = 2**53  # integers below it are floats
_FINEST, _COARSEST = 2.0**-40, 2.0**20
_LARGEST = 2**32  # reward in grid units: at least 2**21 rewards always fit into one exact sum
_UP = 1.0 + 2.0**-48  # outweighs a dozen roundings
_BATCH = 32  # noise variables drawn at once


class SecureNoise(NoiseSource):
    """Discrete noise that protects people.  It has no seed; what it has drawn ahead is neither saved nor copied.

    Args:
        grid: a power of two between 2**-40 and 2**20.
        reward_range: must hold at least two multiples of the grid, and none beyond 2**32 grid units.

    Raises:
        MissingExtra: OpenDP is not installed.
        ArgumentError: the grid does not fit the range.

    Example:
        >>> source = SecureNoise(2.0**-2, (0.1, 0.7))
        >>> source.to_grid(0.1), source.to_grid(0.4), source.to_grid(0.7)
        (0.25, 0.5, 0.5)
    """

    secure = True
    caveats = ("Secure noise does not hide how long a release takes to compute: timing side channels are out of scope",)

    def __init__(self, grid: float, reward_range: tuple[float, float]) -> None:
        _opendp()
        self.grid = _checked_grid(grid)
        lo, hi = reward_range
        # In exact arithmetic: the quotient of a tiny bound underflows to zero, which lies outside the range.
        self._low, self._high = math.ceil(Fraction(lo) / Fraction(grid)), math.floor(Fraction(hi) / Fraction(grid))
        if self._high <= self._low:
            raise ArgumentError(
                f"grid must have two multiples within the reward range [{lo:g}, {hi:g}], got {grid!r}: take a finer one"
            )
        largest = max(abs(self._low), abs(self._high))
        if largest > _LARGEST:
            raise ArgumentError(
                f"grid must be at least {max(-lo, hi) / _LARGEST:g} for rewards in [{lo:g}, {hi:g}], got {grid!r}"
            )
        self.most_records = (_EXACT - 1) // largest
        self._ready: dict[tuple[int, float], list[int]] = {}
        self._process = os.getpid()

    def stream(self, name: str) -> np.random.Generator:
        """A generator for exploration, seeded by the operating system.  There is none for noise."""
        if name != "policy":
            raise DPBanditsError(f"secure noise has no generator for {name!r}: it is drawn by perturb() alone")
        return np.random.default_rng()

    def to_grid(self, reward: float) -> float:
        """The multiple of the grid within the range that is nearest to a clipped reward."""
        return min(max(round(reward / self.grid), self._low), self._high) * self.grid

    def perturb(self, channel: Channel, scale: float, statistic: np.ndarray, release: np.ndarray) -> None:
        """Write the statistic plus integer noise of at least the given scale, times the grid, into ``release``.

        Raises:
            DPBanditsError: the statistic is not a vector of exact multiples of the grid, because of a bug of the algorithm.
        """
        if channel.family == OPEN:
            release[:] = statistic
            return
        units = [value / self.grid for value in statistic.tolist()]
        if not all(abs(value) < _EXACT and value.is_integer() for value in units):
            raise DPBanditsError("the statistic is not a sum of rewards on the grid: this algorithm cannot use secure noise")
        for i, value in enumerate(units):
            release[i] = (int(value) + self._draw(channel.family, scale / self.grid * _UP)) * self.grid

    def _draw(self, family: int, scale: float) -> int:
        """One noise variable, never given out twice.  They are drawn in batches, because a call of OpenDP costs more than a draw."""
        if self._process != os.getpid():  # a forked process would give out its parent's
            self._ready, self._process = {}, os.getpid()
        ready = self._ready.setdefault((family, scale), [])
        if not ready:
            ready += _mechanism(family, scale)([0] * _BATCH)
        return int(ready.pop())

    def __getstate__(self) -> dict[str, Any]:
        # A copy must not give out the same noise.
        return {**self.__dict__, "_ready": {}}


def _checked_grid(grid: Any) -> float:
    good = isinstance(grid, int | float | np.floating | np.integer) and not isinstance(grid, bool)
    good = good and _FINEST <= grid <= _COARSEST and math.frexp(grid)[0] == 0.5
    if not good:
        raise ArgumentError(f"grid must be a power of two between 2**-40 and 2**20, got {grid!r}")
    return float(grid)


@functools.cache
def _opendp() -> Any:
    try:
        import opendp.prelude as opendp
    except ImportError as error:
        raise MissingExtra("noise='secure' needs OpenDP: pip install 'dpbandits[secure]'") from error
    opendp.enable_features("contrib")  # OpenDP's word for: accepted by its maintainers, with proofs
    return opendp


@functools.lru_cache(maxsize=256)
def _mechanism(family: int, scale: float) -> Any:
    """OpenDP's mechanism on a vector of integers; kept, because to build it takes longer than a draw."""
    opendp = _opendp()
    domain = opendp.vector_domain(opendp.atom_domain(T="i64"))
    if family == GAUSSIAN:
        return opendp.m.make_gaussian(domain, opendp.l2_distance(T="f64"), scale=scale)
    return opendp.m.make_laplace(domain, opendp.l1_distance(T="i64"), scale=scale)
