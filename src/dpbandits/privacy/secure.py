"""Noise for real people: exact integer noise on a declared grid, from the operating system's
randomness.  OpenDP draws it where sums are released, and ``exact`` on people's devices.

Floating-point noise betrays the number it was added to in its low bits (Mironov 2012; Haney et al.
2022), and sums of floats move further than their sensitivity (Casacuberta et al. 2022).  Here no
value is rounded behind the wall:

* At the door a reward is clipped and then rounded to a multiple of ``grid``, a power of two, that
  lies inside the range.  Two such rewards differ by at most ``hi - lo``, so rounding costs no
  sensitivity, and sums of them are exact below 2**53 grid units.  The number of records, which is
  public, decides before a release whether it could exceed that.
* In grid units the statistic is a vector of integers, and the noise on each coordinate is an
  independent integer.  The samplers of Canonne, Kamath & Steinke (2020) draw it exactly, without
  approximating any density.  Integers are turned into floats afterwards.
* Discrete Laplace noise of scale b on a statistic of L1 sensitivity D is (D / b)-DP.  Discrete
  Gaussian noise of parameter s with L2 sensitivity D is (D^2 / 2s^2)-zCDP, hence (alpha, alpha D^2
  / 2s^2)-RDP.  With 1/10 of a squared grid step more in s^2 it is also (D / s)-GDP, as Gaussian
  noise is (``discrete``); so it is drawn, under every budget.  D and the scale are divided by the
  same grid, which changes nothing.
* A vector that is replaced instead (``Hemisphere``) gets a direction in integers, and the released
  floats are a function of it (``exact.hemisphere``).  It need not be on a grid.
* Scales are rounded up by more than all rounding errors on the way from the budget.

Continual sums follow the same rules (``secure_sum``).  Their mechanism releases the rows of an
integer matrix times the increments in grid units, plus integer noise.  Sums are decoded from these
noisy rows alone, so no float depends on raw data otherwise.
"""

from __future__ import annotations

import functools
import math
import os
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import ArgumentError, DPBanditsError, MissingExtra
from ..kernel import Vector
from ..validation import choice, integer
from .channels import GAUSSIAN, HEMISPHERE, LAPLACE, OPEN, Channel, hemisphere_radius
from .exact import Source, discrete_gaussian, discrete_laplace, hemisphere
from .grids import LARGEST, UP, checked_grid, in_steps, refuse_wide_noise
from .noise import EXACT, NoiseSource, Rng, SimulationNoise

NOISE_LAW = 2  # of this version; before, discrete Gaussian noise was ``scale / grid`` steps wide
_BATCH = 128  # noise variables drawn at once
_SCALES = 64  # for how many scales noise is kept ready


class Sampler:
    """Integer noise from OpenDP, drawn ahead; the stock of noise is neither saved nor copied."""

    def __init__(self) -> None:
        _opendp()
        self._ready: dict[tuple[int, float], list[int]] = {}
        self._process = os.getpid()

    def _draw(self, family: int, scale: float, count: int) -> list[int]:
        """Noise variables, never given out twice; drawn in batches, because calls are slow."""
        if self._process != os.getpid():  # a forked process would give out its parent's
            self._ready, self._process = {}, os.getpid()
        if len(self._ready) > _SCALES:
            self._ready.clear()  # scales that change all the time would pile up
        ready = self._ready.setdefault((family, scale), [])
        if len(ready) < count:
            ready += _mechanism(family, scale)([0] * max(_BATCH, count))
        left = len(ready) - count
        given = ready[left:]
        del ready[left:]
        return given

    def __getstate__(self) -> dict[str, Any]:
        # A copy must not give out the same noise.
        return {**self.__dict__, "_ready": {}}


class GridNoise(NoiseSource):
    """Discrete noise that protects people.  It has no seed.

    Raises:
        ArgumentError: see ``checked_grid``; or the range does not hold two multiples of the grid,
            or some beyond 2**32 units.
    """

    secure = True
    _take: Source = staticmethod(os.urandom)
    caveats = (
        "Secure noise does not hide how long a release takes to compute. The guarantee does not"
        " cover what an adversary learns by measuring this time (a timing side channel)",
    )

    def __init__(self, grid: float, reward_range: tuple[float, float]) -> None:
        self.grid = checked_grid(grid)
        lo, hi = reward_range
        # In exact arithmetic: the quotient of a tiny bound underflows to zero, outside the range.
        self._low = math.ceil(Fraction(lo) / Fraction(grid))
        self._high = math.floor(Fraction(hi) / Fraction(grid))
        if self._high <= self._low:
            what = f"at least two of its multiples lie in the reward range [{lo:g}, {hi:g}]"
            raise ArgumentError(f"grid must be finer, such that {what}, got {grid!r}")
        largest = max(abs(self._low), abs(self._high))
        if largest > LARGEST:
            what = f"at least {max(-lo, hi) / LARGEST:g} for rewards in [{lo:g}, {hi:g}]"
            raise ArgumentError(f"grid must be {what}, got {grid!r}")
        self.most_records = (EXACT - 1) // largest

    @abstractmethod
    def _draw(self, family: int, scale: float, count: int) -> list[int]:
        """Noise variables of at least that scale, in grid units, never given out twice."""

    def exploration(self) -> np.random.Generator:
        """A generator seeded by the operating system, for choices alone: no noise comes from it."""
        return np.random.default_rng()

    def generator(self, name: str) -> None:
        """None: noise is drawn by ``add_noise`` alone."""

    def to_grid(self, reward: float) -> float:
        """The multiple of the grid within the range that is nearest to a clipped reward."""
        return min(max(round(reward / self.grid), self._low), self._high) * self.grid

    def add_noise(
        self, channel: Channel, scale: float, statistic: Vector, release: Vector, rng: Rng = None
    ) -> None:
        """Write the statistic plus integer noise of at least that scale, times the grid.  Refuses a
        grid too fine for the scale, and a statistic off the grid, which is a bug of the algorithm.
        """
        if channel.family == OPEN:
            release[:] = statistic
            return
        if channel.family == HEMISPHERE:
            return self._replace_vector(scale, statistic, release)
        refuse_wide_noise(scale, self.grid)
        units = [value / self.grid for value in statistic.tolist()]
        if not all(abs(value) < EXACT and value.is_integer() for value in units):
            off = "the statistic is not a sum of rewards on the grid"
            raise DPBanditsError(f"{off}: this algorithm cannot use secure noise")
        width = in_steps(channel.family, scale, self.grid)
        noise = self._draw(channel.family, width, len(units))
        release[:] = [int(value) + drawn for value, drawn in zip(units, noise, strict=True)]
        release *= self.grid

    def _replace_vector(self, scale: float, statistic: np.ndarray, release: np.ndarray) -> None:
        """The release of ``Hemisphere``, in an exact direction: lengths and floats come after
        it.
        """
        drawn = hemisphere(statistic.tolist(), hemisphere_epsilon(scale), self._take)
        # Of an integer: JavaScript has the same length.
        radius = hemisphere_radius(2.0 / scale, len(drawn)) / math.sqrt(sum(u * u for u in drawn))
        for i, u in enumerate(drawn):
            release[i] = u * radius


class SecureNoise(Sampler, GridNoise):
    """Secure noise from OpenDP; raises ``MissingExtra`` where that is not installed."""

    def __init__(self, grid: float, reward_range: tuple[float, float]) -> None:
        Sampler.__init__(self)
        GridNoise.__init__(self, grid, reward_range)


class DeviceNoise(GridNoise):
    """Secure noise without OpenDP, for devices: JavaScript draws the same noise of the same bytes.

    Example:
        >>> source = DeviceNoise(2.0**-2, (0.0, 1.0))
        >>> float(source.sigma_squared(0.75))  # 3 grid units and what discrete noise takes more
        9.10000...
    """

    def __init__(
        self, grid: float, reward_range: tuple[float, float], take: Source = os.urandom
    ) -> None:
        super().__init__(grid, reward_range)
        self._take = take

    def sigma_squared(self, scale: float) -> Fraction:
        """The parameter of discrete Gaussian noise, in squared grid units, rounded up."""
        return self.parameter(GAUSSIAN, scale)

    def parameter(self, family: int, scale: float) -> Fraction:
        """The parameter of discrete noise, rounded up: of Gaussian noise the variance, in squared
        grid units, and of Laplace noise the scale, in grid units.
        """
        return _parameter(family, in_steps(family, scale, self.grid))

    def law(self, channel: Channel, scale: float, reach: int) -> np.ndarray:
        """The probabilities of noise -reach, ..., reach grid units, Gaussian or Laplace."""
        if channel.family not in (GAUSSIAN, LAPLACE):
            raise ArgumentError(f"channel must be Gaussian or Laplace, got {channel!r}", "channel")
        parameter = float(self.parameter(channel.family, scale))
        noise = np.arange(-reach, reach + 1.0)
        if channel.family == GAUSSIAN:
            weights = np.exp(-(noise**2) / (2.0 * parameter))
        else:
            weights = np.exp(-np.abs(noise) / parameter)
        return weights / weights.sum()

    def _draw(self, family: int, scale: float, count: int) -> list[int]:
        if scale == 0.0:
            return [0] * count
        draw = discrete_gaussian if family == GAUSSIAN else discrete_laplace
        parameter = _parameter(family, scale).as_integer_ratio()
        return [draw(*parameter, self._take) for _ in range(count)]


def _rounded_up(value: Fraction) -> Fraction:
    """To a multiple of 2**-20: small numbers draw faster than exact ones."""
    return Fraction(math.ceil(value * 2**20), 2**20)


def hemisphere_epsilon(scale: float) -> Fraction:
    """The epsilon of ``Hemisphere``, rounded down to what draws faster than exact numbers."""
    return Fraction(math.floor(2**41 / (Fraction(scale) * Fraction(UP))), 2**40)


@functools.lru_cache(maxsize=256)
def _parameter(family: int, scale: float) -> Fraction:
    return _rounded_up(Fraction(scale) ** (2 if family == GAUSSIAN else 1))


def noise_source(
    noise: Any, seed: Any, *, grid: float, reward_range: tuple[float, float], device: bool = False
) -> NoiseSource:
    """The source that arguments ask for; ``device``: whether all noise is drawn on devices."""
    kind = choice("noise", noise, ("simulation", "secure"))
    if kind == "simulation":
        return SimulationNoise(None if seed is None else integer("seed", seed, 0))
    if seed is not None:
        raise ArgumentError(f"seed must be None with noise='secure', got {seed!r}")
    return (DeviceNoise if device else SecureNoise)(grid, reward_range)


@functools.cache
def _opendp() -> Any:
    try:  # not its prelude, which imports scikit-learn
        from opendp import domains, measurements, metrics, mod
    except ImportError as error:
        raise MissingExtra(
            "noise='secure' needs OpenDP: pip install 'dpbandits[secure]'"
        ) from error
    mod.enable_features("contrib")  # OpenDP's word for: accepted by its maintainers, with proofs
    return domains, measurements, metrics


@functools.lru_cache(maxsize=256)
def _mechanism(family: int, scale: float) -> Any:
    """OpenDP's mechanism on vectors of integers; kept: to build it takes longer than a draw."""
    domains, measurements, metrics = _opendp()
    domain = domains.vector_domain(domains.atom_domain(T="i64"))
    if family == GAUSSIAN:
        return measurements.make_gaussian(domain, metrics.l2_distance(T="f64"), scale=scale)
    return measurements.make_laplace(domain, metrics.l1_distance(T="i64"), scale=scale)
