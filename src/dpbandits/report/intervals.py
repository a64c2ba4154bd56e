"""Functions of mean results, with intervals that cover the variation between seeds.

A seed decides two things: the chance in runs and, in some settings, the random instances.  Numbers
stand in arrays of shape (instances, runs).

* Of one instance, a function of means over runs has the jackknife's standard error.  Runs are
  paired: run i of every policy meets the same noise of the environment.  Each run is left out as a
  whole, so shared noise cancels in differences and ratios.
* Of several instances, the function is taken on each of them, from its own means, and averaged:
  instances are the independent units, and the error includes the variation between them.

An interval is that of Student's t with one degree of freedom less than there are units.  That of a
``Ratio`` is taken on the logarithmic scale, by the delta method: the error of log v is that of v,
over v.  So it never reaches 0, which no ratio of positive numbers does, and that of 1 / v is its
mirror image.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, stdtrit

from ..errors import ArgumentError
from .claims import VERDICT_CONFIDENCE
from .means import CONFIDENCE, Estimate

Statistic = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Ratio:
    """A statistic that is a ratio of positive numbers, less a fixed number."""

    of: Statistic
    less: float = 0.0  # is subtracted from the ratio: 1 for a price

    def __call__(self, means: np.ndarray) -> np.ndarray:
        return self.of(means)


def share(hits: int, trials: int, confidence: float = VERDICT_CONFIDENCE) -> Estimate:
    """A share with the exact interval of Clopper & Pearson.

    >>> share(0, 1000).high < 0.01
    True
    """
    tail, misses = (1.0 - confidence) / 2.0, trials - hits
    low = betaincinv(hits, misses + 1, tail) if hits else 0.0
    high = betaincinv(hits + 1, misses, 1.0 - tail) if misses else 1.0
    return Estimate(hits / trials, float(low), float(high))


def curve(
    columns: Sequence[np.ndarray], statistic: Statistic, confidence: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A function of means at many points at once: from columns of shape (instances, runs, points)
    to a value, low and high, each of shape (points,), for a figure.

    Ends are NaN where there is one run only, or where values are infinite, and where a ``Ratio``
    is not positive, as beside a regret below zero.
    """
    shapes = {column.shape for column in columns}
    if len(shapes) != 1:
        raise ArgumentError(f"columns must all have the same shape, got {sorted(shapes)}")
    data = np.stack(columns, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value, error, units = (_over_instances if len(data) > 1 else _over_runs)(data, statistic)
        half = stdtrit(units - 1, 0.5 + confidence / 2.0) * error if units > 1 else math.nan
        if not isinstance(statistic, Ratio):
            return value, value - half, value + half
        size = np.where(value + statistic.less > 0.0, value + statistic.less, np.nan)
        factor = np.exp(half / size)
        return value, size / factor - statistic.less, size * factor - statistic.less


def _over_instances(data: np.ndarray, statistic: Statistic) -> tuple[np.ndarray, np.ndarray, int]:
    each, units = statistic(data.mean(axis=1)), len(data)
    return each.mean(axis=0), each.std(axis=0, ddof=1) / math.sqrt(units), units


def _over_runs(data: np.ndarray, statistic: Statistic) -> tuple[np.ndarray, np.ndarray, int]:
    (runs,) = data
    units, means = len(runs), runs.mean(axis=0)
    # the mean of the others; a single run has none
    without = means + (means - runs) / max(units - 1, 1)
    return statistic(means), math.sqrt(units - 1) * statistic(without).std(axis=0), units


# Functions of means --------------------------------------------------------------------------


def mean(means: np.ndarray) -> np.ndarray:
    """The mean itself."""
    return means[..., 0]


# The price of privacy: private minus open over open, from means (private, open).
price = Ratio(lambda means: (means[..., 0] - means[..., 1]) / means[..., 1], less=1.0)

# The first mean over the second.
ratio = Ratio(lambda means: means[..., 0] / means[..., 1])
