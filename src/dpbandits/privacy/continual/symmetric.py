"""Symmetric matrices as vectors of equal length (norm), with matching noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError
from ...tables import array
from ...tables.manners import PUBLIC

_ROOT = math.sqrt(2.0)


def svec(matrix: ArrayLike) -> np.ndarray:
    """Write a symmetric (d, d) matrix as a vector of equal length.

    The Euclidean norm of the vector is the Frobenius norm of the matrix, so sensitivities carry
    over.  Independent normal noise of standard deviation s on the vector is the Gaussian orthogonal
    ensemble on the matrix: s on the diagonal and s / sqrt(2) off it.  Rotations do not change its
    law.

    Returns:
        Shape (d (d + 1) / 2,): its diagonal, then sqrt(2) times the entries above it by rows.

    Raises:
        ArgumentError: the matrix is not square and symmetric.

    See also: ``smat``.

    >>> svec([[1.0, 2.0], [2.0, 5.0]]).round(3).tolist()
    [1.0, 5.0, 2.828]
    """
    matrix = _floats("matrix", matrix, "d, d")
    if matrix.ndim != 2 or not np.array_equal(matrix, matrix.T):
        raise ArgumentError(
            f"matrix must be square, symmetric and without NaN, got shape {matrix.shape}", "matrix"
        )
    return np.append(np.diag(matrix), _ROOT * matrix[np.triu_indices(len(matrix), 1)])


def smat(vector: ArrayLike) -> np.ndarray:
    """Read the symmetric matrix whose ``svec`` is the vector of d (d + 1) / 2 numbers.

    Returns:
        Shape (d, d).

    Raises:
        ArgumentError: no d fits the length.

    >>> smat(svec([[1.0, 2.0], [2.0, 5.0]])).tolist()
    [[1.0, 2.0], [2.0, 5.0]]
    """
    vector = _floats("vector", vector, "n")
    d = (math.isqrt(8 * vector.size + 1) - 1) // 2
    if vector.ndim != 1 or vector.size == 0 or d * (d + 1) // 2 != vector.size:
        what = "d (d + 1) / 2 coordinates for some d of at least 1"
        raise ArgumentError(f"vector must have {what}, got shape {vector.shape}", "vector")
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d, 1)] = vector[d:] / _ROOT
    return matrix + matrix.T + np.diag(vector[:d])


def _floats(name: str, given: Any, shape: str) -> np.ndarray:
    """An array of floats as it is, because running sums pass these; others are checked."""
    if type(given) is np.ndarray and given.dtype == np.float64:
        return given
    return array(name, given, PUBLIC, shape)
