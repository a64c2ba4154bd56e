"""Continual sums for direct use, outside of any policy."""

from __future__ import annotations

import math
import os
import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, BudgetExhausted, ClaimError
from ..tables import as_numbers
from ..validation import choice, integer, real
from .budgets import Budget, checked_budget
from .channels import Channel, Gaussian, Laplace, noise_for
from .continual import Counter, mechanism_from_python, smat, svec
from .ledger import Meter
from .noise import SimulationNoise
from .secure import Sampler
from .secure_sum import SecureSum


class ContinualSum:
    """A running sum, released with noise after every increment, for the budget of one release.

    It can be used from several threads, but neither copied nor used in a forked process: two copies
    would release the same data twice.
    It assumes that one person contributes to one increment and moves it by at most ``sensitivity``.
    That is in the L1 norm with a ``PureDP`` budget (Laplace noise), else in the L2 norm (Gaussian
    noise), for matrices the Frobenius norm.  ``bound`` enforces it.

    Args:
        counter: the mechanism, as ``BufferedToeplitz(horizon)``; ``BinaryTree``, ``HonakerTree``,
            ``HybridTree`` or ``Independent`` with a ``PureDP`` budget; ``SqrtToeplitz``,
            ``BinaryTree``, ``HybridTree`` or ``Independent`` with ``noise="secure"``.
        budget: the budget of all releases together.
        shape: ``()`` for numbers, ``(n,)`` for vectors, ``(d, d)`` for symmetric matrices (noise:
            see ``svec``).
        sensitivity: the largest distance that one person may move one increment.
        bound: shrinks every increment into the ball of this radius, at most half the sensitivity.
        noise: ``"simulation"`` (seeded, without protection) or ``"secure"`` (integers on the grid).
        grid: with secure noise, the power of two that increments are multiples of; with ``bound``
            they are rounded towards zero.  By default 2**-10, or less in proportion to a
            sensitivity below 1.
        seed: of simulated noise.

    Raises:
        ArgumentError: an argument is out of range, or the parts do not fit together.

    Example:
        >>> from dpbandits.privacy import ZCDP
        >>> from dpbandits.privacy.continual import BufferedToeplitz
        >>> counter = BufferedToeplitz(1000)
        >>> running = ContinualSum(counter, ZCDP(1.0), shape=(2,), sensitivity=1.0, seed=1)
        >>> for _ in range(3):
        ...     noisy = running.add([1.0, 0.5])
        >>> noisy.shape, running.count, running.spent()
        ((2,), 3, ZCDP(rho=1.0))
        >>> running.variance.round(2).tolist()  # of a single release without a running sum: 0.5
        [2.27, 2.27]
    """

    def __init__(
        self,
        counter: Counter,
        budget: Budget,
        *,
        sensitivity: float,
        shape: tuple[int, ...] = (),
        bound: float | None = None,
        noise: str = "simulation",
        grid: float | None = None,
        seed: int | None = None,
    ) -> None:
        if not isinstance(counter, Counter):
            what = "a counter such as BinaryTree(horizon)"
            raise ArgumentError(f"counter must be {what}, got {counter!r}", "counter")
        self.shape, size = _checked_shape(shape)
        self.sensitivity = real("sensitivity", sensitivity, 0.0, strict=True)
        self._bound = None if bound is None else real("bound", bound, 0.0, self.sensitivity / 2)
        self._secure = choice("noise", noise, ("simulation", "secure")) == "secure"
        if grid is None:
            grid = 2.0**-10 * min(1.0, math.ldexp(0.5, math.frexp(self.sensitivity)[1]))
        family = noise_for(checked_budget(budget), (Laplace, Gaussian))
        if family is None:
            what = "of a notion with Laplace or Gaussian noise"
            raise ArgumentError(f"budget must be {what}, got {budget!r}", "budget")
        self._channel: Channel = family.calibrated(budget)
        norm = self._channel.norm
        if counter.exact_column_norm(norm) > counter.column_norm(norm) * (1.0 + 1e-12):
            raise ArgumentError(
                f"counter must have noise at all its levels, got {counter!r}: otherwise releases"
                " would cost more than the budget",
                "counter",
            )
        self._meter = Meter.of(budget)
        self._scale = self._channel.scale(self.sensitivity)
        if self._secure:
            if seed is not None:
                raise ArgumentError(f"seed must be None with noise='secure', got {seed!r}", "seed")
            self._exactly = SecureSum(counter, size, grid, Sampler())
            self._state = self._exactly.start()
            self._exactly.refuse_wide_noise(self._channel, self._scale)
            counter = self._exactly.counter
        else:
            self._running = counter.start(size, norm)
            source = SimulationNoise(None if seed is None else integer("seed", seed, 0))
            self._rng = source.generator("privacy")
            self._release = mechanism_from_python(self._running.kind)
        self.counter, self._grid, self._count = counter, grid, 0
        self._lock, self._process = threading.Lock(), os.getpid()
        self.noise_scale = self._scale * counter.column_norm(norm)

    @property
    def count(self) -> int:
        """The number of added increments."""
        return self._count

    @property
    def variance(self) -> float | np.ndarray:
        """Each coordinate's variance in the latest output, in its shape; zero before the first."""
        norm = self._channel.norm
        variance = self._scale**2 * self.counter.variance(self._count, norm) if self._count else 0.0
        if len(self.shape) < 2:
            return np.full(self.shape, variance) if self.shape else variance
        return 0.5 * variance * (1.0 + np.eye(self.shape[0]))

    def spent(self) -> Budget | None:
        """The largest privacy loss of a record; None before the first release."""
        if not self._count:
            return None
        norm = self._channel.norm
        share = self.counter.column_norm(norm) / self.counter.exact_column_norm(norm)
        honest = self._channel.multiplier * share
        return self._meter.describe(self._meter.cost(self._channel.family, honest))

    def add(self, x: ArrayLike) -> float | np.ndarray:
        """Add an increment, and release the sum of all so far with noise.

        Returns:
            The noisy sum, in the shape of the increment.

        Raises:
            ArgumentError: ``x`` has another shape, is not finite, not symmetric, or not on the
                grid; nothing has changed.
            BudgetExhausted: all planned releases were made; nothing has changed.
            ClaimError: this process is a fork of the one that made the sum.
        """
        vector = self._checked(x)
        # Before the lock, which another thread of the parent may have held when it forked.
        if os.getpid() != self._process:
            raise ClaimError(
                "no release is made in a forked process: the fork and its parent would release the"
                " same data twice"
            )
        with self._lock:
            if self._count == self.counter.horizon:
                planned = f"the running sum was planned for {self._count} releases"
                raise BudgetExhausted(f"{planned}, and all of them were made")
            if self._secure:
                release = self._exactly.add(self._state, vector, self._channel, self._scale)
            else:
                release = np.empty_like(vector)
                self._release(
                    self._running, self._channel.family, self._scale, vector, release, self._rng
                )
            self._count += 1
        if len(self.shape) == 2:
            return smat(release)
        return release if self.shape else float(release[0])

    def __getstate__(self) -> Any:
        raise TypeError(
            "a ContinualSum is neither copied nor pickled: it holds exact sums, and its copy would"
            " release them again"
        )

    def _checked(self, x: Any) -> np.ndarray:
        array = as_numbers(x)
        if array.shape != self.shape or not np.all(np.isfinite(array)):
            what = f"finite numbers of shape {self.shape}, got an array of shape {array.shape}"
            raise ArgumentError(f"x must be {what}", "x")
        array = array.astype(np.float64)
        vector = svec(array) if array.ndim == 2 else np.array(array, ndmin=1)
        if self._bound is not None:
            length = float(np.linalg.norm(vector, self._channel.norm))
            # A little shorter, because lengths and products round up, beyond the bound.
            vector = vector * min(1.0, self._bound / max(length, 1e-300) * (1.0 - 1e-15))
            vector = np.trunc(vector / self._grid) * self._grid if self._secure else vector
        elif self._secure and np.any(vector / self._grid % 1.0):
            raise ArgumentError(
                f"x must hold multiples of the grid {self._grid:g}, unless bound= is given", "x"
            )
        return vector


def _checked_shape(shape: Any) -> tuple[tuple[int, ...], int]:  # and how many numbers it takes
    if not isinstance(shape, tuple) or len(shape) > 2 or (len(shape) == 2 and shape[0] != shape[1]):
        raise ArgumentError(f"shape must be (), (n,) or (d, d), got {shape!r}", "shape")
    shape = tuple(integer("shape", side, 1) for side in shape)
    return shape, shape[0] * (shape[0] + 1) // 2 if len(shape) == 2 else math.prod(shape)
