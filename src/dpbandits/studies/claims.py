"""The arithmetic of claims: functions of mean results, with bootstrap intervals over runs.

Runs are paired: run i of every policy meets the same instance and the same noise of the
environment.  So runs are resampled as wholes, and what all policies share cancels in differences
and ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..errors import ArgumentError
from ..report.estimates import CONFIDENCE, Estimate

Statistic = Callable[[np.ndarray], np.ndarray]

RESAMPLES = 2000


def measured(
    columns: Sequence[np.ndarray],
    statistic: Statistic,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """A function of means over runs, with its percentile bootstrap interval; no interval where
    there is one run only.

    Args:
        columns: one array of shape (runs,) per mean.
        statistic: from means of shape (..., columns) to values of shape (...).
        resamples: of the bootstrap.
        seed: of the bootstrap.

    Raises:
        ArgumentError: the columns are not equally long.

    >>> measured([np.array([1.0, 3.0]), np.array([1.0, 3.0])], lambda m: m[..., 0] / m[..., 1])
    Estimate(mean=1.0, low=1.0, high=1.0)
    """
    value, low, high = (
        float(end[0])
        for end in curve([column[:, None] for column in columns], statistic, resamples, seed)
    )
    return Estimate(value, low, high)


def largest(columns: Sequence[np.ndarray], statistic: Statistic) -> Estimate:
    """The largest of several numbers, with an interval for the largest true one.

    The largest of noisy numbers is too large, and so are those of its resamples.  So each number
    has an interval of its own, with the confidence that all of them hold together (Bonferroni): the
    largest true one lies between the largest of their lower and of their upper ends.

    Args:
        columns: one array of shape (runs,) per mean.
        statistic: from means of shape (..., columns) to values of shape (..., n).

    >>> largest([np.array([1.0, 1.0]), np.array([3.0, 3.0])], lambda means: means)
    Estimate(mean=3.0, low=3.0, high=3.0)
    """
    data = np.stack(columns, axis=-1)
    count = statistic(data.mean(axis=0)).shape[-1]
    confidence = 1.0 - (1.0 - CONFIDENCE) / count
    ends = curve(
        [column[:, None] for column in columns], statistic, RESAMPLES * count, confidence=confidence
    )
    return Estimate(*(float(end.max()) for end in ends))


def curve(
    columns: Sequence[np.ndarray],
    statistic: Statistic,
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same at many points at once: from columns of shape (runs, points) to a value, low and
    high, each of shape (points,).
    """
    runs = {len(column) for column in columns}
    if len(runs) != 1:
        raise ArgumentError(f"columns must be equally long, got {sorted(runs)}")
    count = runs.pop()
    with np.errstate(divide="ignore", invalid="ignore"):
        value = statistic(np.stack([column.mean(axis=0) for column in columns], axis=-1))
        if count < 2:
            empty = np.full_like(value, np.nan)
            return value, empty, empty
        weights = (
            np.random.default_rng(seed).multinomial(
                count, np.full(count, 1.0 / count), size=resamples
            )
            / count
        )
        drawn = statistic(np.stack([weights @ column for column in columns], axis=-1))
    tail = (1.0 - confidence) / 2.0
    # Between infinite ratios there is nothing to interpolate.
    low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0, method="inverted_cdf")
    return value, low, high


def mean(means: np.ndarray) -> np.ndarray:
    """The mean itself."""
    return means[..., 0]


def price(means: np.ndarray) -> np.ndarray:
    """The price of privacy: private minus open over open, from means (private, open)."""
    return (means[..., 0] - means[..., 1]) / means[..., 1]


def ratio(means: np.ndarray) -> np.ndarray:
    """The first mean over the second."""
    return means[..., 0] / means[..., 1]


def ratios(means: np.ndarray) -> np.ndarray:
    """The ratios of pairs, shape (..., pairs), from means (first of all pairs, then second of all
    pairs).
    """
    first, second = np.split(means, 2, axis=-1)
    return first / second


def steps(means: np.ndarray) -> np.ndarray:
    """The rises from one mean to the next, in units of the last, from means (from strict to loose,
    then open).
    """
    return np.diff(means[..., :-1], axis=-1) / means[..., -1:]
