"""Common functions of all figures: looks, panels, legends, axes, and files.

Figures are matplotlib ``Figure`` objects without any state of ``pyplot``.  Each can be drawn in any
width, for desktop screens and for phones.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count as counting
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import Formatter, FuncFormatter, LogLocator, NullLocator

from ..errors import ArgumentError
from .behind import Behind
from .dark import with_dark_colours
from .looks import STYLE, look_of
from .numbers import abbreviated, number, places_for, with_places
from .styles import PlotStyle

DASHES: Any = (0, (4, 3))

_BETWEEN = 0.07  # inches above and below panels: titles of a row keep off the ticks of the last
_LEGEND = 0.25  # share of a figure's height; a legend that needs more makes the figure higher
_LINE = 1.5 / 72  # inches that a line of one point takes
_LETTER = 0.0096  # inches that a letter of one point takes, and a little more


def svg(figure: Figure) -> bytes:
    """The figure as SVG with text as paths, and with colours for dark screens; equal figures give
    equal bytes.
    """
    return with_dark_colours(_saved(figure, format="svg", metadata={"Date": None, "Creator": None}))


def png(figure: Figure) -> bytes:
    """The figure as PNG for slides and documents."""
    return _saved(figure, format="png", dpi=160, metadata={"Software": None})


def _saved(figure: Figure, **options: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, **options)
    return buffer.getvalue()


class Drawing(Figure):
    """A figure that shows itself in a notebook, which without ``pyplot`` others do not, and that
    is saved in the look in which it was begun.
    """

    behind: Behind | None = None  # its numbers
    side: Text | None = None  # the label of all vertical axes

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.look: Any = {name: matplotlib.rcParams[name] for name in STYLE}

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure; see matplotlib."""
        by_latex = "pgf" in (str(fname)[-3:], options.get("format"), options.get("backend"))
        with matplotlib.rc_context(self.look):
            engine = self.get_layout_engine()
            # Matplotlib draws once to lay out, and once more.  Only LaTeX knows its own letters.
            if engine is not None and self.axes and not by_latex:
                engine.execute(self)
                self.set_layout_engine(None)
            super().savefig(fname, **options)

    def save_data(self, path: str | Path) -> Path:
        """Write the numbers behind the figure: ``.csv``, or ``.dat`` for pgfplots.

        Raises:
            ArgumentError: the path ends in neither, or no numbers are known.
        """
        if self.behind is None:
            raise ArgumentError("figure must show numbers, got an empty figure")
        return self.behind.save(Path(path))

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return png(self), {"width": round(96 * self.get_figwidth())}


def empty_figure(width: float, height: float) -> Drawing:
    """A figure of so many inches, laid out when it is drawn."""
    figure = Drawing(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def blank_axes(style: str) -> Axes:
    """Axes in a figure of their own, as wide as a column; see ``looks.LOOKS``."""
    width, settings = look_of(style)
    with matplotlib.rc_context(settings):
        return empty_figure(width, 0.62 * min(width, 5.5)).add_subplot()


def is_narrow(width: float) -> bool:
    """Whether a figure of so many inches is for a phone."""
    return width < 6


def grouped_panels(
    counts: list[int], width: float, *, height: float
) -> tuple[Drawing, list[list[Axes]]]:
    """Groups of so many panels, each group in rows of its own that fill the width."""
    columns = 1 if width < 4.5 else 2 if is_narrow(width) else 3
    split = [
        [len(row) for row in np.array_split(range(count), math.ceil(count / columns))]
        for count in counts
    ]
    rows = sum(map(len, split))
    scale = matplotlib.rcParams["font.size"] / STYLE["font.size"]
    figure = empty_figure(width, scale * (height * rows + 0.7))
    figure.set_layout_engine("constrained", h_pad=_BETWEEN, w_pad=_BETWEEN)
    grid, row, groups = figure.add_gridspec(rows, 6), counting(), []
    for sizes in split:
        group: list[Axes] = []
        for size in sizes:
            at, step = next(row), 6 // size
            group += [figure.add_subplot(grid[at, i * step : (i + 1) * step]) for i in range(size)]
        groups.append(group)
    return figure, groups


def label_axes(figure: Drawing, x: str = "", y: str = "") -> None:
    """Label the axes of all panels."""
    settings = matplotlib.rcParams
    looks: Any = {"fontsize": settings["axes.labelsize"], "color": settings["axes.labelcolor"]}
    figure.supxlabel(x, **looks)
    figure.side = figure.supylabel(y, **looks)


def log_x_axis(ax: Axes) -> None:
    """A logarithmic axis of round numbers, such as rounds."""
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(numticks=6))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: abbreviated(x)))
    ax.xaxis.set_minor_locator(NullLocator())


class TickLabels(Formatter):
    """Labels with as many decimals as the ticks need; ``unit`` is the value written as 1."""

    def __init__(self, write: Callable[[float, int], str] = with_places, unit: float = 1.0) -> None:
        self._write, self._unit = write, unit

    def __call__(self, x: float, pos: int | None = None) -> str:
        return self.format_ticks([x])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """The labels of all ticks of the axis."""
        places = places_for([float(tick) / self._unit for tick in values])
        return [self._write(float(tick), places) for tick in values]


def regret_scale(finals: pd.Series) -> str:
    """Logarithmic where final regrets differ more than twentyfold."""
    return "log" if finals.min() > 0 and finals.max() > 20 * finals.min() else "linear"


def share_regret_axis(axes: list[Axes], finals: pd.Series, yscale: str) -> None:
    """Use one scale for all panels, to make heights comparable."""
    for ax in axes:
        ax.set_yscale(yscale)
    # against a fixed table a policy may beat the best column
    lowest = min(0.0, *(ax.dataLim.y0 for ax in axes))
    top, bottom = max(ax.get_ylim()[1] for ax in axes), min(ax.get_ylim()[0] for ax in axes)
    for ax in axes:
        log = FuncFormatter(lambda y, _: number(y, 4))
        written = log if yscale == "log" else TickLabels()
        ax.set_ylim(max(bottom, finals.min() / 10) if yscale == "log" else lowest, 1.04 * top)
        ax.yaxis.set_major_formatter(written)
        ax.yaxis.set_minor_locator(
            LogLocator(subs=(2.0, 5.0)) if yscale == "log" else NullLocator()
        )
        ax.yaxis.set_minor_formatter(written)
        ax.grid(True, axis="y", which="both")
        spec = ax.get_subplotspec()
        ax.tick_params(which="both", labelleft=spec is None or spec.is_first_col())


def policy_legend(
    figure: Drawing,
    styles: Iterable[PlotStyle],
    width: float,
    extra: Mapping[str, Line2D] | None = None,
) -> None:
    """A legend of policies, and of further entries."""
    handles = {
        style.label: Line2D([], [], color=style.colour, marker=style.marker) for style in styles
    }
    legend(figure, {**handles, **(extra or {})}, width)


def letter() -> float:
    """Inches that a letter of a legend takes."""
    return float(_LETTER * matplotlib.rcParams["legend.fontsize"])


def legend(figure: Drawing, handles: Mapping[str, Any], width: float) -> None:
    """Above the axes, in as many columns as fit; a long one makes the figure higher."""
    labels = [folded(label, int((width - 0.55) / letter())) for label in handles]
    longest = max(len(line) for label in labels for line in label.split("\n"))
    columns = max(1, min(len(handles), int(width / (longest * letter() + 0.55))))
    lines = math.ceil(len(labels) / columns) * max(label.count("\n") + 1 for label in labels)
    tall = _LINE * matplotlib.rcParams["legend.fontsize"] * lines
    height = figure.get_figheight()
    if tall > _LEGEND * height:
        height += tall - _LEGEND * height
        figure.set_figheight(height)
        if figure.side is not None:
            figure.side.set_y(0.5 * (1.0 - tall / height))  # the middle of the panels
    figure.legend(
        list(handles.values()), labels, loc="outside upper left", ncols=columns, borderaxespad=0.2
    )


def folded(text: str, length: int, lines: int = 2) -> str:
    """Users' text in lines of ``length`` letters at most, cut to so many, without mathematics."""
    wrapped = textwrap.wrap(text, length, max_lines=lines, placeholder="…")
    return "\n".join(wrapped).replace("$", r"\$")
