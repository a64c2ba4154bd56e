"""Additions of a study to its report: tables, and figures as numbers for ``figures.exhibit``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Series:
    """One line of a panel: arrays of shape (n,)."""

    label: str  # in the legend; it has the same colour in all exhibits of a report
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray  # of a band or bars around ``y``; NaN where there is none
    high: np.ndarray
    marks: bool = False  # whether values stand at single places, with bars, and not along a curve
    dashed: bool = False  # for what others are compared with


@dataclass(frozen=True)
class Panel:
    """One pair of axes, with a "linear", "log" or "symlog" scale each."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_scale: str = "log"
    y_scale: str = "linear"
    threshold: float = 1.0  # up to which "symlog" is linear; it is logarithmic beyond
    line: float | None = None  # height of one to compare with


@dataclass(frozen=True)
class Exhibit:
    """One figure."""

    name: str  # of its files
    heading: str  # above it
    caption: str  # below it
    alt: str  # what it shows, for those who do not see it
    panels: Sequence[Panel]  # in rows that fill the width


@dataclass(frozen=True)
class Table:
    """One table."""

    name: str  # of its file
    heading: str  # above it
    caption: str  # what its columns are
    frame: pd.DataFrame  # texts and whole numbers as they are to be read; rows by the first column
    words: Sequence[str] = ()  # columns that hold words, beside the first two
