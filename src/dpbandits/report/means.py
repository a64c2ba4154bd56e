"""Means over runs with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..plotting.numbers import number
from ..simulation.results import bootstrap_band

CONFIDENCE = 0.95
RESAMPLES = 2000


class Estimate(NamedTuple):
    """A mean over runs with its interval; both ends are NaN where there is one run only."""

    mean: float
    low: float
    high: float


def estimate(values: np.ndarray) -> Estimate:
    """Mean and percentile bootstrap interval of one number per run."""
    if values.size < 2:
        return Estimate(float(values.mean()) if values.size else np.nan, np.nan, np.nan)
    low, high = bootstrap_band(values[:, None], CONFIDENCE, RESAMPLES, seed=0)
    return Estimate(float(values.mean()), float(low[0]), float(high[0]))


def estimate_of(row: pd.Series, name: str) -> Estimate:
    """A mean of a table with its interval, in the columns ``name``, ``name_low``, ``name_high``."""
    return Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"])


def interval_in_words(value: Estimate, show: Callable[[float], str] = number) -> str:
    """The interval alone, in brackets; empty where one run gives none."""
    if math.isnan(value.low):
        return ""
    return f" (95 % interval {show(value.low)} to {show(value.high)})"
