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

Continual sums follow the same rules (``SecureSum``).  Their mechanism releases the rows of an
integer matrix times the increments in grid units, plus integer noise.  Sums are decoded from these
noisy rows alone, so no float depends on raw data otherwise.
"""

from __future__ import annotations

import functools
import math
import os
from abc import abstractmethod
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, BudgetExhausted, DPBanditsError, MissingExtra
from ..kernel import Matrix, Vector
from ..validation import choice, integer
from .channels import GAUSSIAN, HEMISPHERE, LAPLACE, OPEN, Channel, hemisphere_radius
from .continual import BinaryTree, Counter, HybridTree, Independent, SqrtToeplitz
from .discrete import raised
from .exact import Source, discrete_gaussian, discrete_laplace, hemisphere
from .noise import EXACT, NoiseSource, Rng, SimulationNoise

_UP = 1.0 + 2.0**-48  # outweighs a dozen roundings
NOISE_LAW = 2  # of this version; before, discrete Gaussian noise was ``scale / grid`` steps wide
_BATCH = 32  # noise variables drawn at once
_SCALES = 64  # for how many scales noise is kept ready
_MOST_RELEASES = 2**30  # of a continual sum
# Grid units: wider noise would end at 2**63, where it hides nothing, and sums overflow.
_WIDEST = 2.0**50
LARGEST = 2**32  # reward in grid units: at least 2**21 rewards always fit into one exact sum
_FINEST, _COARSEST = 2.0**-400, 2.0**400  # grids with which no sum or square of floats overflows
_STEPS = 20  # binary digits of the width of the rewards, in steps of the default grid
_BITS = 10  # of the rounded square root: one part in a thousand more variance than without rounding


def default_grid(reward_range: tuple[float, float]) -> float:
    """The grid of rewards in that range, with 2^20 to 2^21 steps from end to end.  There are fewer
    where sums of rewards far from zero would leave the exact floats, at least 2^11 within 10^6
    widths of zero.

    Rounding to it moves a reward by half a step at most.  So it moves a mean by less than one part
    in two million of the width; far from zero, one in four thousand.  At an end of the range that
    is no multiple of the grid it moves a reward by less than one step.

    >>> [math.log2(default_grid(ends)) for ends in [(0.0, 1.0), (0.0, 5000.0), (1e6, 1e6 + 1.0)]]
    [-20.0, -8.0, -12.0]
    """
    lo, hi = reward_range
    finest = math.frexp(hi - lo)[1] - 1 - _STEPS
    return max(math.ldexp(1.0, finest), finest_grid(max(abs(lo), abs(hi))))


def finest_grid(largest: float) -> float:
    """A grid on which at least 2^21 numbers of that size add up exactly.

    >>> math.log2(finest_grid(1.0))
    -31.0
    """
    return math.ldexp(1.0, math.frexp(largest / LARGEST)[1])


def checked_grid(grid: Any) -> float:
    """A power of two, as a float; raises ArgumentError where it is none in that range."""
    known = isinstance(grid, int | float | np.floating | np.integer) and not isinstance(grid, bool)
    if not (known and _FINEST <= grid <= _COARSEST and math.frexp(grid)[0] == 0.5):
        raise ArgumentError(
            f"grid must be a power of two between 2**-400 and 2**400, got {grid!r}", "grid"
        )
    return float(grid)


class Sampler:
    """Integer noise from OpenDP, drawn ahead; the stock of noise is neither saved nor copied."""

    def __init__(self) -> None:
        _opendp()
        self._ready: dict[tuple[int, float], list[int]] = {}
        self._process = os.getpid()

    def _draw(self, family: int, scale: float) -> int:
        """One noise variable, never given out twice; drawn in batches, because calls are slow."""
        if self._process != os.getpid():  # a forked process would give out its parent's
            self._ready, self._process = {}, os.getpid()
        if len(self._ready) > _SCALES:
            self._ready.clear()  # scales that change all the time would pile up
        ready = self._ready.setdefault((family, scale), [])
        if not ready:
            ready += _mechanism(family, scale)([0] * _BATCH)
        return int(ready.pop())

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
        "Secure noise does not hide how long a release takes to compute: timing side channels"
        " are out of scope",
    )

    def __init__(self, grid: float, reward_range: tuple[float, float]) -> None:
        self.grid = checked_grid(grid)
        lo, hi = reward_range
        # In exact arithmetic: the quotient of a tiny bound underflows to zero, outside the range.
        self._low = math.ceil(Fraction(lo) / Fraction(grid))
        self._high = math.floor(Fraction(hi) / Fraction(grid))
        if self._high <= self._low:
            what = f"two multiples within the reward range [{lo:g}, {hi:g}]"
            raise ArgumentError(f"grid must have {what}, got {grid!r}: take a finer one")
        largest = max(abs(self._low), abs(self._high))
        if largest > LARGEST:
            what = f"at least {max(-lo, hi) / LARGEST:g} for rewards in [{lo:g}, {hi:g}]"
            raise ArgumentError(f"grid must be {what}, got {grid!r}")
        self.most_records = (EXACT - 1) // largest

    @abstractmethod
    def _draw(self, family: int, scale: float) -> int:
        """One noise variable of at least that scale, in grid units, never given out twice."""

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
        for i, value in enumerate(units):
            release[i] = (int(value) + self._draw(channel.family, width)) * self.grid

    def _replace_vector(self, scale: float, statistic: np.ndarray, release: np.ndarray) -> None:
        """The release of ``Hemisphere``, in an exact direction: lengths and floats come after
        it.
        """
        # Rounded down, to what draws faster than exact numbers.
        epsilon = Fraction(math.floor(2**41 / (Fraction(scale) * Fraction(_UP))), 2**40)
        drawn = hemisphere(statistic.tolist(), epsilon, self._take)
        radius = hemisphere_radius(2.0 / scale, len(drawn)) / math.hypot(*drawn)
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
        return _squared(in_steps(GAUSSIAN, scale, self.grid))

    def law(self, channel: Channel, scale: float, reach: int) -> np.ndarray:
        """The probabilities of noise -reach, ..., reach grid units, Gaussian or Laplace."""
        units, noise = in_steps(channel.family, scale, self.grid), np.arange(-reach, reach + 1.0)
        if channel.family == GAUSSIAN:
            weights = np.exp(-(noise**2) / (2.0 * float(_squared(units))))
        elif channel.family == LAPLACE:
            weights = np.exp(-np.abs(noise) / float(_rounded_up(Fraction(units))))
        else:
            raise ArgumentError(f"channel must be Gaussian or Laplace, got {channel!r}", "channel")
        return weights / weights.sum()

    def _draw(self, family: int, scale: float) -> int:
        if scale == 0.0:
            return 0
        if family == GAUSSIAN:
            return discrete_gaussian(*_squared(scale).as_integer_ratio(), self._take)
        return discrete_laplace(*_rounded_up(Fraction(scale)).as_integer_ratio(), self._take)


def _rounded_up(value: Fraction) -> Fraction:
    """To a multiple of 2**-20: small numbers draw faster than exact ones."""
    return Fraction(math.ceil(value * 2**20), 2**20)


@functools.lru_cache(maxsize=256)
def _squared(scale: float) -> Fraction:
    return _rounded_up(Fraction(scale) ** 2)


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


class SecureState(NamedTuple):
    """All that a ``SecureSum`` knows, to be saved; private, because it holds exact sums."""

    clock: np.ndarray  # (1,) int64: releases so far
    exact: np.ndarray  # (rows, size) int64, private: what later rows still need, in grid units
    noisy: np.ndarray  # (rows, size) int64: what is released, in units of the grid over 2^bits

    def __repr__(self) -> str:
        # Sums end up in logs by way of tracebacks and debuggers.
        shape, count = self.exact.shape, self.clock[0]
        return f"<SecureState of shape {shape} after {count} releases, contents not shown>"


class SecureSum:
    """A continual sum of vectors on a grid, in integers (see ``continual`` for why it is private).

    Counters are ``BinaryTree``, ``HybridTree`` and ``Independent``, whose encoders are zeros and
    ones, and ``SqrtToeplitz``, which is rounded to ten bits where it does not say otherwise; others
    are refused.  Increments are multiples of the grid, a power of two.

    Two that continue from one ``SecureState`` release the same data twice.
    """

    def __init__(self, counter: Counter, size: int, grid: float, source: Sampler) -> None:
        self.counter, self.grid = integer_counter(counter), checked_grid(grid)
        self._shape = self.counter.start(size, 2).memory.shape
        self._source = source

    def start(self) -> SecureState:
        """An empty sum."""
        rows = np.zeros(self._shape, np.int64)
        return SecureState(np.zeros(1, np.int64), rows, rows.copy())

    def add(
        self, state: SecureState, increments: np.ndarray, channel: Channel, scale: float
    ) -> np.ndarray:
        """Add a vector of multiples of the grid, at most ``largest`` of its units each, to the sum
        in ``state``, and release the noisy sum, shape (size,).

        ``scale``: multiplier times sensitivity; the counter's column norm is applied here.

        Raises:
            BudgetExhausted: all planned releases were made.
            DPBanditsError: an increment is not on the grid, or that too fine; nothing has changed.
        """
        t = int(state.clock[0]) + 1
        if t > (self.counter.horizon or _MOST_RELEASES):
            raise BudgetExhausted(
                f"the continual sum was planned for {t - 1} releases, and all of them were made"
            )
        units = [value / self.grid for value in np.asarray(increments, np.float64).tolist()]
        if not all(abs(value) <= self.largest and value.is_integer() for value in units):
            raise DPBanditsError(
                f"the increments must be multiples of the grid, at most {self.largest} of its"
                " steps from 0"
            )
        width = scale * self.counter.column_norm(channel.norm) * self._row_scale(t, channel.norm)
        noise = self._noise(channel.family, width)
        state.clock[0] = t
        return self._advance(state, t, np.array(units, np.int64), noise) * self.grid

    @property
    def largest(self) -> int:
        """The largest increment in grid units: rows of all of them stay within 64 bits."""
        return int(2**61 / ((self.counter.horizon or _MOST_RELEASES) * self._row_scale(1, 2)))

    def refuse_wide_noise(self, channel: Channel, scale: float) -> None:
        """Refuse noise that is too wide in some planned release; ``scale`` as for ``add``."""
        # and no power of two, which ends an epoch of the hybrid
        late = max(1, (self.counter.horizon or _MOST_RELEASES) - 1)
        width = scale * self.counter.column_norm(channel.norm) * self._row_scale(late, channel.norm)
        refuse_wide_noise(width, self.grid, self.widest)

    @property
    def widest(self) -> float:
        """The widest noise in grid units for which sums stay within 64 bits."""
        if not isinstance(self.counter, Independent):  # whose sums grow with every release
            return _WIDEST
        return _WIDEST / math.sqrt(self.counter.horizon or _MOST_RELEASES)

    def _row_scale(self, t: int, norm: int) -> float:
        """The ratio of the length of the integer row that ends at release t to that of the row of
        C.
        """
        if isinstance(self.counter, HybridTree):
            return float(self.counter.scales(norm)[t.bit_length() - 1 if t & (t - 1) else 0])
        return row_scale(self.counter)

    def _noise(self, family: int, width: float) -> np.ndarray:
        size = self._shape[1]
        if family == OPEN:
            return np.zeros(size, np.int64)
        refuse_wide_noise(width, self.grid, self.widest)
        steps = in_steps(family, width, self.grid)
        return np.array([self._source._draw(family, steps) for _ in range(size)], np.int64)

    def _advance(
        self, state: SecureState, t: int, units: np.ndarray, noise: np.ndarray
    ) -> np.ndarray:
        """Make the noisy row that ends at release t, and decode the noisy rows."""
        _, exact, noisy = state
        if isinstance(self.counter, SqrtToeplitz):
            c, b = self.counter.coefficients()
            unit = self._row_scale(t, 2)
            exact[t - 1] = units
            noisy[t - 1] = (c[:t] * unit).astype(np.int64)[::-1] @ exact[:t] + noise
            return b[:t][::-1] @ noisy[:t] / unit
        if isinstance(self.counter, BinaryTree):
            return _node(t, exact, noisy, units, noise)
        inside = t & ~(1 << (t.bit_length() - 1))
        if isinstance(self.counter, HybridTree) and inside:
            return noisy[0] + _node(inside, exact[1:], noisy[1:], units, noise)
        # A block that ends an epoch, or an increment of its own: only the noisy total is kept.
        noisy[0] += exact.sum(axis=0) + units + noise
        exact[:] = 0
        return noisy[0].astype(np.float64)


def _node(t: int, exact: Matrix, noisy: Matrix, units: Vector, noise: Vector) -> np.ndarray:
    """End the node at t, which takes in those below it; the sum of the noisy nodes of 1..t."""
    level = (t & -t).bit_length() - 1
    exact[level] = exact[:level].sum(axis=0) + units
    exact[:level] = 0
    noisy[level] = exact[level] + noise
    ones = [place for place in range(t.bit_length()) if t >> place & 1]
    return noisy[ones].sum(axis=0).astype(np.float64)


def row_scale(counter: Counter | None) -> float:
    """The ratio of the lengths of the integer rows to those of C."""
    return 2.0 ** (counter.bits or 0) if isinstance(counter, SqrtToeplitz) else 1.0


def in_steps(family: int, scale: float, grid: float) -> float:
    """The parameter with which noise of that scale is drawn on the grid, in its steps; rounded up.

    >>> round(in_steps(GAUSSIAN, 1.0, 0.25), 4), round(in_steps(LAPLACE, 1.0, 0.25), 4)
    (4.0125, 4.0)
    """
    return drawn_scale(family, scale / grid, 1.0) * _UP


def drawn_scale(family: int, scale: float, grid: float) -> float:
    """The scale of noise on the grid that hides as much as noise of that scale."""
    return grid * raised(scale / grid) if family == GAUSSIAN and scale > 0.0 else scale


def refuse_wide_noise(scale: float, grid: float, widest: float = _WIDEST) -> None:
    """Raise ArgumentError where noise of that scale is too wide on the grid."""
    if scale / grid > widest:
        found = f"the noise would be {scale / grid:g} grid units wide"
        what = f"coarser: {found}, at most {widest:g} stay within 64 bits"
        raise ArgumentError(f"grid must be {what}", "grid")


def integer_counter(counter: Counter) -> Counter:
    """The counter, with factors in integers; raises ArgumentError where it has none."""
    if isinstance(counter, SqrtToeplitz):
        return counter if counter.bits is not None else SqrtToeplitz(counter.horizon, _BITS)
    whole = isinstance(counter, BinaryTree | HybridTree | Independent)
    if whole and (counter.horizon or 1) <= _MOST_RELEASES:
        return counter
    raise ArgumentError(
        "counter must be BinaryTree, HybridTree, Independent or SqrtToeplitz for secure noise,"
        f" with at most 2**30 releases, because sums are made in integers; got {counter!r}",
        "counter",
    )


@functools.cache
def _opendp() -> Any:
    try:
        import opendp.prelude as opendp
    except ImportError as error:
        raise MissingExtra(
            "noise='secure' needs OpenDP: pip install 'dpbandits[secure]'"
        ) from error
    opendp.enable_features("contrib")  # OpenDP's word for: accepted by its maintainers, with proofs
    return opendp


@functools.lru_cache(maxsize=256)
def _mechanism(family: int, scale: float) -> Any:
    """OpenDP's mechanism on vectors of integers; kept: to build it takes longer than a draw."""
    opendp = _opendp()
    domain = opendp.vector_domain(opendp.atom_domain(T="i64"))
    if family == GAUSSIAN:
        return opendp.m.make_gaussian(domain, opendp.l2_distance(T="f64"), scale=scale)
    return opendp.m.make_laplace(domain, opendp.l1_distance(T="i64"), scale=scale)
