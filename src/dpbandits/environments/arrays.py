"""Arrays at the door: checked, read-only, and told apart."""

from __future__ import annotations

import math
from hashlib import sha256

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..tables import array, frozen
from ..tables.manners import PUBLIC, WHOLE_NUMBERS, parameters

_TOLERANCE = 1e-6  # by which the probabilities of an expert may miss one
_STEP = 2.0**-20  # see ``settled``


def vector(name: str, values: ArrayLike, low: float = -np.inf, high: float = np.inf) -> np.ndarray:
    """Parameters as a read-only vector of at least one finite number in [low, high]."""
    return frozen(array(name, values, parameters(low, high), "n"))


def finite_array(name: str, values: ArrayLike, *shapes: str) -> np.ndarray:
    """Data as a read-only array of finite numbers with the axes that one of ``shapes`` names."""
    return frozen(array(name, values, PUBLIC, *shapes))


def whole_numbers(name: str, values: ArrayLike) -> np.ndarray:
    """Data as a read-only vector of at least one integer from 0."""
    return frozen(array(name, values, WHOLE_NUMBERS, "n").astype(np.int64))


def require_equally_long(names: str, one: np.ndarray, other: np.ndarray) -> None:
    """Raise an error if two arrays differ in length; ``names`` are given as "x and y"."""
    if len(one) != len(other):
        raise ArgumentError(f"{names} must be equally long, got {len(one)} and {len(other)}")


def distributions(name: str, advice: ArrayLike, shape: str) -> np.ndarray:
    """Advice as distributions over its last axis, swapped with that of experts."""
    given = finite_array(name, advice, shape)
    totals = given.sum(axis=-1, keepdims=True)
    bad = (given < 0.0).any(axis=-1) | (np.abs(totals[..., 0] - 1.0) > _TOLERANCE)
    if bad.any():
        raise ArgumentError(
            f"{name} must hold a probability for every arm in each row, with a sum of 1, got other"
            f" numbers in row {tuple(np.argwhere(bad)[0].tolist())}",
            name,
        )
    return np.ascontiguousarray(np.swapaxes(given / totals, -1, -2))


def longest(features: np.ndarray) -> float:
    """The largest length of a row; exactly 1 if it is 1 up to rounding."""
    length = float(np.linalg.norm(features, axis=1).max())
    return 1.0 if math.isclose(length, 1.0, rel_tol=1e-12) else length


def content(*arrays: np.ndarray) -> str:
    """Digest of arrays for a ``repr``, of eight digits."""
    digest = sha256()
    for one in arrays:
        digest.update(np.ascontiguousarray(one).tobytes())
    return digest.hexdigest()[:8]


def settled(numbers: np.ndarray) -> np.ndarray:
    """Round computed numbers of about the size of 1 to digits on which machines agree.

    BLAS kernels add up in different orders, so results of a decomposition differ in the last few of
    15 digits.  Learners that met different digits would diverge.  Rounding keeps six digits, and
    zeros have no sign.

    >>> settled(np.array([0.1, -1e-17])).tolist()
    [0.10000038146972656, 0.0]
    """
    return np.asarray(np.round(numbers / _STEP) * _STEP + 0.0)
