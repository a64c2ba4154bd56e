"""What a study adds to its report: tables, and figures as numbers for ``figures.exhibit``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Series:
    """One line of a panel.

    Attributes:
        label: in the legend; the same label has the same colour in all exhibits of a report.
        x, y: shape (n,).
        low, high: a band or bars around ``y``, shape (n,); NaN where there is none.
        marks: whether the values stand at single places, with bars, and not along a curve with a
            band.
        dashed: for what others are compared with.
    """

    label: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    marks: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title, x_label, y_label: texts.
        series: what to draw.
        x_scale, y_scale: "linear", "log", or "symlog", which is linear up to ``threshold`` and
            logarithmic beyond.
        threshold: see there.
        line: height of a line to compare with; None for none.
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_scale: str = "log"
    y_scale: str = "linear"
    threshold: float = 1.0
    line: float | None = None


@dataclass(frozen=True)
class Exhibit:
    """One figure.

    Attributes:
        name: of its files.
        heading: above it.
        caption: below it.
        alt: what it shows, for those who do not see it.
        panels: in rows that fill the width.
    """

    name: str
    heading: str
    caption: str
    alt: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        name: of its file.
        heading: above it.
        caption: what its columns are.
        frame: texts and whole numbers, as they are to be read; the first column names the rows.
        words: columns that hold words, beside the first two.
    """

    name: str
    heading: str
    caption: str
    frame: pd.DataFrame
    words: Sequence[str] = ()


def slug(name: str) -> str:
    """A name as part of that of a file.

    >>> slug("Finite arms: 1-zCDP")
    'finite-arms-1-zcdp'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
