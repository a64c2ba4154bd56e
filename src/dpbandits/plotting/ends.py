"""Labels at the right ends of lines, in the place of a legend."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.transforms import IdentityTransform
from scipy.optimize import isotonic_regression

_BESIDE = 1.03  # where labels begin, in widths of the axes
_APART = 1.15  # between labels, in their heights


class EndLabel(Annotation):
    """The label of a line, beside its last point and apart from the labels of others."""

    def __init__(self, line: Line2D, text: str) -> None:
        self.line = line
        x, y = np.asarray(line.get_xydata())[-1]
        stem = {"arrowstyle": "-", "color": line.get_color(), "linewidth": 0.6, "shrinkB": 0}
        looks: Any = {"color": line.get_color(), "fontsize": rcParams["legend.fontsize"]}
        super().__init__(
            text,
            (x, y),
            xytext=(_BESIDE, 0.0),
            textcoords=("axes fraction", "figure pixels"),
            va="center",
            annotation_clip=False,
            arrowprops={**stem, "relpos": (0.0, 0.5)},
            **looks,
        )
        self.set_transform(IdentityTransform())  # that of data has no place for it on log axes

    def update_positions(self, renderer: RendererBase) -> None:
        """Take the place that is free, as the axes are now."""
        assert isinstance(self.axes, Axes)
        _spread(self.axes, renderer)
        super().update_positions(renderer)


def label_end(line: Line2D, text: str) -> None:
    """Write a label at the right end of a line."""
    assert line.axes is not None
    line.axes.add_artist(EndLabel(line, text)).set_clip_on(False)


def end_labels(ax: Axes) -> list[EndLabel]:
    """The labels of lines of the axes, from the first to the last."""
    return [one for one in ax.texts if isinstance(one, EndLabel)]


def _spread(ax: Axes, renderer: RendererBase) -> None:
    """Move labels as little as keeps them apart, in the sense of least squares."""
    labels = end_labels(ax)
    wanted = np.array([ax.transData.transform(one.xy)[1] for one in labels])
    low, high = ax.bbox.y0, ax.bbox.y1
    wanted = np.clip(np.where(np.isfinite(wanted), wanted, low), low, high)
    order = np.argsort(wanted, kind="stable")
    heights = [
        renderer.points_to_pixels(_APART * labels[i].get_fontsize())
        * (labels[i].get_text().count("\n") + 1)
        for i in order
    ]
    offsets = np.cumsum(heights) - np.array(heights) / 2
    places = isotonic_regression(wanted[order] - offsets).x + offsets
    for i, y in zip(order, places, strict=True):
        labels[i].xyann = (_BESIDE, float(y))


def fits(labels: list[str], width: float, letter: float) -> bool:
    """Whether labels beside axes leave them most of a width; ``letter`` is that of a letter."""
    return max(map(len, labels), default=0) * letter <= 0.4 * width
