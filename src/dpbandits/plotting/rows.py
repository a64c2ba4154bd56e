"""Charts with a heading for each policy, and a row for each of its budgets."""

from __future__ import annotations

from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .behind import Behind
from .drawing import Drawing, TickLabels, empty_figure, folded, is_narrow, legend
from .labels import OWN_ALLOCATION
from .looks import INK, PAPER, look_of
from .numbers import percent
from .styles import Styles

_ROW = 0.24  # inches of a row
_LINE = 0.55  # rows that one more line of a heading takes
_MOST_LINES = 5  # of a heading: enough for the longest name on a phone
ABOVE = -3.0  # where the heading of a row above all others stands, counted in rows


def replay_rates(
    rates: pd.DataFrame,
    own_rate: float,
    styles: Styles,
    *,
    width: float | None = None,
    style: str = "page",
) -> Drawing:
    """Success rates in the replay of a logged trial, beside that of the trial itself.

    Args:
        rates: a row per policy and budget: ``policy``, ``budget_label``, ``rate``, ``rate_low``,
            ``rate_high``.
        own_rate: of the trial.
        styles, width, style: as of ``curves.regret_curves``.
    """
    usual, settings = look_of(style)
    wide, ends = width or usual, ["rate", "rate_low", "rate_high"]
    with matplotlib.rc_context(settings):
        chart = row_chart(rates, styles, wide)
        draw_dots(chart, rates, styles, "rate")
        line = chart.ax.axvline(own_rate, color=INK, linewidth=1.2)
        legend(chart.figure, {f"{OWN_ALLOCATION}: {percent(own_rate, 1)}": line}, wide)
        chart.ax.xaxis.set_major_locator(MaxNLocator(5 if is_narrow(wide) else 9))
        chart.ax.xaxis.set_major_formatter(TickLabels(percent, unit=0.01))
        chart.ax.set_xlabel("success rate among the counted people")
    chart.figure.behind = rows_behind(rates, styles, rates[ends])
    return chart.figure


class RowChart(NamedTuple):
    """Axes with a row for each policy and budget."""

    figure: Drawing
    ax: Axes
    heights: dict[int, float]  # of the rows of the table, by their index


def rows_behind(table: pd.DataFrame, styles: Styles, numbers: pd.DataFrame) -> Behind:
    """The numbers of a chart with a row per policy and budget."""
    names = {
        "policy": table["policy"].map(lambda one: styles[one].label),
        "budget": table["budget_label"].map(lambda one: one.text),
    }
    return Behind(pd.concat([pd.DataFrame(names), numbers], axis=1))


class _Heading(NamedTuple):
    text: str
    y: float  # of its first line
    colour: str

    @property
    def more(self) -> float:
        """The number of rows that its further lines take."""
        return _LINE * self.text.count("\n")


def row_chart(
    table: pd.DataFrame, styles: Styles, width: float, above: str | None = None
) -> RowChart:
    """Empty axes: a heading per policy, a row per budget, and one row more for ``above``."""

    def heading(text: str, y: float, colour: str) -> _Heading:
        return _Heading(folded(text, 20 if is_narrow(width) else 40, _MOST_LINES), y, colour)

    y, top, heights, headings = 0.0, -0.6, {}, []
    if above is not None:
        first = heading(above, ABOVE, INK)
        headings.append(first._replace(y=ABOVE - first.more))
        top += headings[0].y
    for policy, rows in table.groupby("policy", sort=False):
        headings.append(heading(styles[str(policy)].label, y, styles[str(policy)].colour))
        y += headings[-1].more
        for i in rows.index:
            y += 1
            heights[int(i)] = y
        y += 1.15
    figure = empty_figure(width, _ROW * (y - top - 0.6) + 0.95)
    ax = figure.add_subplot()
    ax.set_ylim(y - 0.4, top)
    # Budgets and headings instead of numbers along the vertical axis.
    budgets = {height: table.loc[i, "budget_label"].text for i, height in heights.items()}
    middles = [one.y + one.more / 2 for one in headings]
    ax.set_yticks([*budgets, *middles], [*budgets.values(), *(one.text for one in headings)])
    for label, one in zip(ax.get_yticklabels()[len(budgets) :], headings, strict=True):
        label.set(color=one.colour, fontweight="bold", linespacing=1.0)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    return RowChart(figure, ax, heights)


def draw_dots(chart: RowChart, table: pd.DataFrame, styles: Styles, name: str) -> None:
    """Means with their intervals; open marks without privacy."""
    for policy, rows in table.groupby("policy", sort=False):
        style = styles[str(policy)]
        y = np.array([chart.heights[int(i)] for i in rows.index])
        low, high = rows[f"{name}_low"], rows[f"{name}_high"]
        chart.ax.hlines(y, low, high, color=style.colour, linewidth=2)
        private = rows["budget_label"].map(lambda label: label.private).to_numpy(bool)
        for chosen, face in ((private, style.colour), (~private, PAPER)):
            looks: Any = {"color": style.colour, "markersize": 5.5, "markerfacecolor": face}
            chart.ax.plot(rows[name][chosen], y[chosen], style.marker, **looks)
