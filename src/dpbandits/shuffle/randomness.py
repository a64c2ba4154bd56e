"""Randomness of devices and shufflers: integers made of random bytes, by exact methods.

People and experiments use one code; only the source of the bytes differs.  Under ``noise="secure"``
the operating system provides them.  Under ``noise="simulation"`` a seeded generator does: an
attacker with its state can remove the noise, so it protects no person.
"""

from __future__ import annotations

import os

import numpy as np

from ..errors import ArgumentError
from ..kernel import Matrix, Vector, kernel
from ..privacy.exact import discrete_gaussian
from ..privacy.noise import SimulationNoise
from ..validation import choice, integer

_WORD = 2**64 - 1


class Source:
    """Random bits, integers and orders: "secure", or of a seeded "simulation"."""

    def __init__(self, noise: str, seed: int | None) -> None:
        self.secure = choice("noise", noise, ("simulation", "secure")) == "secure"
        if self.secure and seed is not None:
            raise ArgumentError(f"seed must be None with noise='secure', got {seed!r}", "seed")
        seed = seed if seed is None else integer("seed", seed, 0)
        self._rng = None if self.secure else SimulationNoise(seed).generator("reports")
        self.caveats = () if self.secure else SimulationNoise.caveats

    def words(
        self, shape: tuple[int, ...], kind: type[np.unsignedinteger] = np.uint32
    ) -> np.ndarray:
        """Uniform unsigned integers."""
        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        return np.frombuffer(self._take(size), kind).reshape(shape)

    def _take(self, size: int) -> bytes:
        return os.urandom(size) if self._rng is None else self._rng.bytes(size)

    def quarters(self, shape: tuple[int, int, int]) -> np.ndarray:
        """Bits that are 1 with probability 1/4: each is the "and" of two random ones."""
        count = int(np.prod(shape))
        fair = self.words((2, -(-count // 8)), np.uint8)
        return np.unpackbits(fair[0] & fair[1], count=count).reshape(shape)

    def heads(self, shape: tuple[int, int], tosses: int) -> np.ndarray:
        """Number of heads of the given number of fair coins, for each entry."""
        fair = self.words((*shape, -(-tosses // 8)), np.uint8)
        # Of the last byte only as many bits as there are coins left.
        last = np.bitwise_count(fair[..., -1] >> np.uint8(8 * fair.shape[-1] - tosses))
        return np.bitwise_count(fair[..., :-1]).sum(axis=-1, dtype=np.int64) + last

    def gaussians(self, std: int, shape: tuple[int, int]) -> np.ndarray:
        """Discrete Gaussian integers; in simulations rounded normals, which look the same."""
        if self._rng is not None:
            return np.rint(self._rng.normal(0.0, std, shape)).astype(np.int64)
        noise = [discrete_gaussian(std * std, 1, self._take) for _ in range(int(np.prod(shape)))]
        return np.array(noise, np.int64).reshape(shape)

    def below(self, ends: np.ndarray) -> np.ndarray:
        """Uniform integers from 0 to just below each of these positive ends."""
        ends = ends.astype(np.uint64)
        even = (np.uint64(_WORD) // ends) * ends  # words below name all integers equally often
        drawn = self.words(ends.shape, np.uint64)
        while (again := drawn >= even).any():
            drawn = np.where(again, self.words(ends.shape, np.uint64), drawn)
        return (drawn % ends).astype(np.int64)

    def polyas(self, scale: int, people: int, shape: tuple[int, ...]) -> np.ndarray:
        """Polya variables with parameter 1 / people: those of ``people`` people add up exactly to
        geometric variables with weights exp(-k / scale).

        Each is made from a geometric variable, divided into the cycles of a random permutation.
        Every cycle is kept with probability 1 / people.  The numbers of cycles of all lengths are
        independent Poisson variables (Shepp & Lloyd 1966), and stay so when divided among people.
        The cycle of the first of k elements has each length from 1 to k equally often.
        """
        left = self._geometrics(scale, int(np.prod(shape)))
        kept = np.zeros_like(left)
        while (rest := np.flatnonzero(left)).size:
            cycle = 1 + self.below(left[rest])
            left[rest] -= cycle
            kept[rest] += cycle * (self.below(np.full(rest.size, people)) == 0)
        return kept.reshape(shape)

    def _geometrics(self, scale: int, size: int) -> np.ndarray:
        """Integers k >= 0 with weights exp(-k / scale): Canonne, Kamath & Steinke (2020)."""
        fine, rest = np.zeros(size, np.int64), np.arange(size)
        while rest.size:
            fine[rest] = self.below(np.full(rest.size, scale))
            rest = rest[~self._survive(fine[rest], scale)]
        coarse, rest = np.zeros(size, np.int64), np.arange(size)
        while rest.size:
            rest = rest[self._survive(np.full(rest.size, scale), scale)]
            coarse[rest] += 1
        return fine + scale * coarse

    def _survive(self, ages: np.ndarray, scale: int) -> np.ndarray:
        """Heads with probability exp(-age / scale) for each age of at most the scale.  It is heads
        if coins accept an even number of consecutive factors of age^k / (scale^k k!).
        """
        factors, rest = np.zeros(ages.size, np.int64), np.arange(ages.size)
        while rest.size:
            rest = rest[self.below(scale * (factors[rest] + 1)) < ages[rest]]
            factors[rest] += 1
        return factors % 2 == 0

    def order(self, n: int) -> np.ndarray:
        """A uniform permutation of 0..n-1: the order of n random keys that all differ."""
        while True:
            keys = self.words((n,), np.uint64)
            order = np.argsort(keys)
            # Equal keys would be ordered by the sort, not by chance.
            if not np.any(np.diff(keys[order]) == 0):
                return order

    def permuted_bits(self, bits: np.ndarray) -> np.ndarray:
        """A copy of a table of bits, each row in a uniformly random order of its own.

        An order is a choice of the places of the rarer bits: places are drawn uniformly, those that
        are taken already are passed over.
        """
        n, ones = bits.shape[1], bits.sum(axis=1, dtype=np.int64)
        rare = (2 * ones <= n).astype(np.uint8)  # the bit that is placed
        permuted = np.repeat(1 - rare[:, None], n, axis=1)
        left = np.minimum(ones, n - ones)
        while left.any():
            words = (len(left), int(1.5 * left.max()) + 16)
            _place(permuted, rare, self.words(words, np.uint16 if n <= 2**14 else np.uint32), left)
        return permuted


def seed_of(*words: int) -> int:
    """One seed of a simulation, computed from several numbers."""
    return int(np.random.SeedSequence(words).generate_state(1)[0])


@kernel
def _place(table: Matrix, bits: Vector, words: Matrix, left: Vector) -> None:
    """Write ``left`` bits to each row, at free places its words name; ``left``: who found none."""
    n = table.shape[1]
    even = (2 ** (8 * words.itemsize) // n) * n  # words below name all places equally often
    for i in range(left.size):
        for word in words[i]:
            if left[i] == 0:
                break
            place = int(word) % n
            if word < even and table[i, place] != bits[i]:
                table[i, place] = bits[i]
                left[i] -= 1
