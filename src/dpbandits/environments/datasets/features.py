"""Features: of things that are described by words, TF-IDF and its principal components; of persons,
standardised columns in rows of length 1.

Functions import ``scipy.sparse`` themselves, because it takes long and few worlds need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...validation import integer
from ..arrays import settled

if TYPE_CHECKING:
    from scipy import sparse

_DENSE = 10**6  # entries up to which a matrix is simply written out


def tfidf(counts: sparse.csr_array) -> sparse.csr_array:
    """TF-IDF: word counts times (1 + ln((1 + n) / (1 + n_w))), if n_w of n texts have it.
    Rows are scaled to length 1, except rows of zeros.
    """
    from scipy import sparse

    things, words = counts.shape
    having = np.bincount(counts.indices, minlength=words)
    weighted = counts.multiply(np.log((1 + things) / (1 + having)) + 1.0).tocsr()
    lengths = sparse.linalg.norm(weighted, axis=1)
    return (sparse.diags_array(1.0 / np.where(lengths > 0.0, lengths, 1.0)) @ weighted).tocsr()


def principal_features(matrix: sparse.csr_array, components: int) -> np.ndarray:
    """The first principal components of the rows, divided by the length of the longest row.

    Components, at most min(n, m), and fewer than that where the matrix is large, are not
    standardised: lengths and angles in the leading directions stay as they are.  They are rounded,
    see ``settled``.
    """
    dense = matrix.shape[0] * matrix.shape[1] <= _DENSE
    components = integer("components", components, 1, min(matrix.shape) - (not dense))
    if dense:
        scores = dense_components(matrix.toarray(), components)
    else:
        scores = _sparse_components(matrix, components)
    return _at_most_one(settled(_at_most_one(scores)))


def _at_most_one(rows: np.ndarray) -> np.ndarray:
    """Rows divided by the length of the longest."""
    longest = np.linalg.norm(rows, axis=1).max()
    return np.ascontiguousarray(rows / longest if longest > 0.0 else rows)


def dense_components(matrix: np.ndarray, components: int) -> np.ndarray:
    """The first principal components of the rows, shape (n, components)."""
    left, values, axes = np.linalg.svd(matrix - matrix.mean(axis=0), full_matrices=False)
    return (left * values * _signs(axes))[:, :components]


def standardised(columns: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and standard deviation 1; constant ones become 0."""
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    constant = spread <= 1e-12 * np.abs(columns).max(axis=0)  # but for rounding
    return np.where(constant, 0.0, centred / np.where(constant, 1.0, spread))


def rows_with_intercept(scores: np.ndarray) -> np.ndarray:
    """Scores divided by their root mean square length and rounded, see ``settled``, then a 1 for
    the intercept, and every row divided by its length.
    """
    size = np.sqrt(np.mean(np.sum(scores**2, axis=1)))
    scores = settled(scores / size if size > 0.0 else scores)
    rows = np.column_stack([scores, np.ones(len(scores))])
    return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _signs(axes: np.ndarray) -> np.ndarray:
    """What makes the largest coefficient of every axis positive, or the first of equal ones."""
    coefficients = settled(axes)
    largest = coefficients[np.arange(len(axes)), np.abs(coefficients).argmax(axis=1)]
    return np.where(largest < 0.0, -1.0, 1.0)


def _sparse_components(matrix: sparse.csr_array, components: int) -> np.ndarray:
    from scipy.sparse.linalg import LinearOperator, svds

    centre = matrix.mean(axis=0)
    transposed = matrix.T.tocsr()
    centred = LinearOperator(
        matrix.shape,
        matvec=lambda x: matrix @ x.ravel() - centre @ x.ravel(),
        rmatvec=lambda y: transposed @ y.ravel() - centre * y.sum(),
        dtype=np.float64,
    )
    # any start does; a fixed one gives the same digits again
    start = np.random.default_rng(0).standard_normal(min(matrix.shape))
    left, values, axes = svds(centred, k=components, v0=start)
    falling = np.argsort(-values)
    return (left * values)[:, falling] * _signs(axes[falling])
