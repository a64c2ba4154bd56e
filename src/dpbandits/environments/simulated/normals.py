"""Normal numbers by the hundred, for an environment where drawing them is most of the work.

A generator of NumPy is called through a pointer for every number, which takes as long as the rest
of drawing it.  ``fill_normal`` asks it once for a state of xoshiro256++ (Blackman & Vigna 2021).
It then draws inside the compiled loop, by the ziggurat method (Marsaglia & Tsang 2000; Doornik
2005).  Only environments use it: noise that protects people is not drawn here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...kernel import Generator, Matrix, inlined, kernel

# Where the tail begins, so that 256 layers have the same area as the tail with the block below it.
_TAIL = 3.6541528853610088


def _edges() -> np.ndarray:
    """Right ends of the layers, (257,), from below; the first has the area of the tail, too."""
    tail = math.sqrt(math.pi / 2.0) * math.erfc(_TAIL / math.sqrt(2.0))
    area = _TAIL * math.exp(-0.5 * _TAIL**2) + tail
    edges = [area / math.exp(-0.5 * _TAIL**2), _TAIL]
    while len(edges) < 256:
        edges.append(math.sqrt(-2.0 * math.log(area / edges[-1] + math.exp(-0.5 * edges[-1] ** 2))))
    return np.array([*edges, 0.0])


_EDGES = _edges()
_HEIGHTS = np.exp(-0.5 * _EDGES**2)
_STEPS = _EDGES[:-1] * 2.0**-52
# a number of fewer steps is under the curve, whatever its height
_SURE = np.floor(_EDGES[1:] / _EDGES[:-1] * 2.0**52).astype(np.int64)

_1, _8, _11, _17, _19, _23, _41, _45 = (np.uint64(n) for n in (1, 8, 11, 17, 19, 23, 41, 45))
_LAYER, _LOW = np.uint64(255), np.uint64(2**11 - 1)
_UNIT, _HALF = 2.0**-53, 2**52


@inlined
def _advance(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, ...]:
    """The next 64 bits of xoshiro256++, and its state."""
    mixed = a + d
    bits = ((mixed << _23) | (mixed >> _41)) + a
    shifted = b << _17
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    return bits, a, b, c, (d << _45) | (d >> _19)


@inlined
def _uniform(bits: Any) -> float:
    """In [0, 1)."""
    return np.int64(bits >> _11) * _UNIT


@inlined
def _beyond(layer: Any, x: float, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, ...]:
    """A number beyond the sure part of its layer: itself, one of the tail, or NaN to draw again."""
    bits, a, b, c, d = _advance(a, b, c, d)
    if layer > 0:
        height = _HEIGHTS[layer] + (_HEIGHTS[layer + 1] - _HEIGHTS[layer]) * _uniform(bits)
        return (x if height < math.exp(-0.5 * x * x) else math.nan), a, b, c, d
    while True:
        far = -math.log1p(-_uniform(bits)) / _TAIL
        bits, a, b, c, d = _advance(a, b, c, d)
        if -2.0 * math.log1p(-_uniform(bits)) > far * far:
            return math.copysign(_TAIL + far, x), a, b, c, d
        bits, a, b, c, d = _advance(a, b, c, d)


@kernel
def _word(rng: Generator, low: Any) -> Any:
    return (np.uint64(rng.random() * 2.0**53) << _11) | (low & _LOW)


@kernel
def fill_normal(contexts: Matrix, mean: float, std: float, rng: Generator) -> None:
    """Fill a matrix with independent N(mean, std^2) numbers, for five draws of ``rng``."""
    low = np.uint64(rng.random() * 2.0**53)
    a, b = _word(rng, low), _word(rng, low >> _11)
    c, d = _word(rng, low >> _11 >> _11), _word(rng, low >> _41)
    for row in range(contexts.shape[0]):
        for column in range(contexts.shape[1]):
            x = math.nan
            while x != x:
                bits, a, b, c, d = _advance(a, b, c, d)
                # The lowest 8 bits choose the layer, the upper 53 the place: none is used twice.
                layer = np.int64(bits & _LAYER)
                steps = np.int64(bits >> _11) - _HALF
                x = steps * _STEPS[layer]
                if abs(steps) >= _SURE[layer]:
                    x, a, b, c, d = _beyond(layer, x, a, b, c, d)
            contexts[row, column] = mean + std * x
