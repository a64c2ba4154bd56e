"""Curves over rounds: regret, and the distance of estimates from the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from ..errors import ArgumentError
from . import drawing
from .behind import Behind
from .drawing import DASHES, Drawing, folded, is_narrow
from .ends import end_labels, label_end
from .labels import by_notion
from .looks import SOFT, STYLE, WIDE, look_of
from .numbers import number
from .styles import Mark, PlotStyle, Styles, mark

_POINTS = 60  # of a drawn curve; more would only make files larger
_THIN = 1.0  # line of a bound
_LINES: dict[str, list[Any]] = {  # of several bounds of a kind
    "upper": [DASHES, (0, (8, 3)), (0, (6, 2, 1, 2))],
    "lower": [(0, (1, 2)), (0, (1, 4))],
}
_OF_BOUNDS = ["environment", "policy", "budget_label", "round", "value", "label", "kind"]
_ROUNDS, _REGRET = "rounds (people), logarithmic", "mean regret so far"


def regret_curves(
    curves: pd.DataFrame,
    styles: Styles,
    *,
    width: float | None = None,
    yscale: str | None = None,
    bounds: pd.DataFrame | None = None,
    style: str = "page",
) -> Drawing:
    """Mean regret over rounds with its confidence band; one panel per budget, on common axes per
    notion (and environment).

    Args:
        curves: ``environment`` (its title), ``policy``, ``budget_label``, ``round``, ``mean``,
            ``low``, ``high``.
        styles: how policies are written and drawn.
        width: in inches; by default that of ``style``.
        yscale: "linear" or "log"; by default logarithmic where final regrets, or bounds, differ
            more than twentyfold.
        bounds: on regret: ``environment``, ``policy``, ``budget_label``, ``round``, ``value``,
            ``label`` and ``kind``, "upper" or "lower".
        style: a name of ``looks.LOOKS``.
    """
    usual, settings = look_of(style)
    if bounds is None:
        bounds = pd.DataFrame(columns=_OF_BOUNDS)
    with matplotlib.rc_context(settings):
        figure = _regret_panels(curves, styles, width or usual, yscale, bounds)
    figure.behind = _behind(curves, styles)
    return figure


def _regret_panels(
    curves: pd.DataFrame, styles: Styles, width: float, yscale: str | None, bounds: pd.DataFrame
) -> Drawing:
    titles = list(curves["environment"].drop_duplicates())
    finals = [_finals(curves), bounds.loc[bounds["round"] == bounds["round"].max(), "value"]]
    yscale = yscale or drawing.regret_scale(pd.concat([part for part in finals if len(part)]))
    lines_of = {
        label: _LINES[str(kind)][i % len(_LINES[str(kind)])]
        for kind, rows in bounds.groupby("kind")
        for i, label in enumerate(rows["label"].drop_duplicates())
    }
    groups = [
        (title, labels)
        for title in titles
        for labels in by_notion(curves.loc[curves["environment"] == title, "budget_label"])
    ]
    figure, axes = drawing.grouped_panels([len(labels) for _, labels in groups], width, height=2.3)
    for (title, labels), alike in zip(groups, axes, strict=True):
        rows = curves[(curves["environment"] == title) & curves["budget_label"].isin(labels)]
        promised = bounds[bounds["environment"] == title]
        for label, ax in zip(labels, alike, strict=True):
            _draw_panel(ax, rows[rows["budget_label"] == label], styles)
            _draw_bounds(ax, promised[promised["budget_label"] == label], styles, lines_of)
            where = [] if len(titles) == 1 else [folded(title, 52 if is_narrow(width) else 36)]
            ax.set_title("\n".join([label.text, *where]))
        drawing.share_regret_axis(alike, _finals(rows), yscale)
        if yscale == "log":  # where everything lies below the axis would be an empty stretch
            for ax in alike:
                ax.set_xlim(left=rows.loc[rows["high"] > ax.get_ylim()[0], "round"].min())
    drawing.label_axes(figure, _ROUNDS, _REGRET)
    lines = {
        label: Line2D([], [], color=SOFT, linestyle=line, linewidth=_THIN)
        for label, line in lines_of.items()
    }
    drawn = [styles[p] for p in curves["policy"].drop_duplicates()]
    drawing.policy_legend(figure, drawn, width, extra=lines)
    return figure


def regret_on(
    ax: Axes,
    curves: pd.DataFrame,
    styles: Styles,
    *,
    style: str | None = None,
    yscale: str | None = None,
) -> None:
    """Mean regret of all policies and budgets on axes that may have curves already, with labels at
    the ends of lines.  Lines of policies without privacy are dashed.

    Args:
        ax: the axes; further calls may add to them.
        curves, styles, yscale: as of ``regret_curves``, for one environment.
        style: a name of ``looks.LOOKS``; by default the one in which the figure was begun.

    Raises:
        ArgumentError: there are several environments.
    """
    if (several := curves["environment"].nunique()) > 1:
        raise ArgumentError(
            f"ax must be given only for results of one environment, got results of {several}"
        )
    figure = ax.figure
    own = figure.look if isinstance(figure, Drawing) else STYLE
    with matplotlib.rc_context(own if style is None else look_of(style).settings):
        for (policy, budget), curve in curves.groupby(["policy", "budget_label"], sort=False):
            place = len(end_labels(ax))
            line = _draw_curve(ax, curve, mark(place), place, "-" if budget.private else DASHES)
            label_end(line, folded(f"{styles[str(policy)].label}, {budget.text}", 28, 3))
        drawing.log_x_axis(ax)
        ax.set_xlabel(_ROUNDS)
        ax.set_ylabel(_REGRET)
        ax.autoscale(axis="y")
        finals = pd.Series([float(np.asarray(one.line.get_ydata())[-1]) for one in end_labels(ax)])
        drawing.share_regret_axis([ax], finals, yscale or drawing.regret_scale(finals))
        ax.tick_params(which="both", labelleft=True)
    if isinstance(figure, Drawing):
        figure.set_layout_engine("constrained")
        figure.behind = _behind(curves, styles, figure.behind)


def _behind(curves: pd.DataFrame, styles: Styles, others: Behind | None = None) -> Behind:
    """The numbers of curves, after those of ``others``."""
    told = curves.assign(
        policy=curves["policy"].map(lambda one: styles[str(one)].label),
        budget=curves["budget_label"].map(lambda label: label.text),
    )
    columns = ["environment", "policy", "budget", "round", "mean", "low", "high"]
    tables = [told[[name for name in columns if name in told]]]
    return Behind(pd.concat([*([others.table] if others else []), *tables]), "round")


@matplotlib.rc_context(STYLE)
def distance_curves(curves: pd.DataFrame, styles: Styles, width: float = WIDE) -> Drawing:
    """Mean distance of estimates from the truth, by round and budget; see ``regret_curves``."""
    groups = by_notion(curves["budget_label"])
    figure, axes = drawing.grouped_panels([len(labels) for labels in groups], width, height=2.3)
    for labels, alike in zip(groups, axes, strict=True):
        for label, ax in zip(labels, alike, strict=True):
            _draw_panel(ax, curves[curves["budget_label"] == label], styles)
            ax.set_title(label.text)
            ax.sharey(alike[0])
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y, 4)))
            ax.yaxis.set_minor_locator(NullLocator())
    drawing.label_axes(figure, _ROUNDS, "mean distance from the truth")
    drawing.policy_legend(figure, [styles[p] for p in curves["policy"].drop_duplicates()], width)
    figure.behind = _behind(curves, styles)
    return figure


def _finals(curves: pd.DataFrame) -> pd.Series:
    return curves.loc[curves["round"] == curves["round"].max(), "mean"]


def _draw_panel(ax: Axes, rows: pd.DataFrame, styles: Styles) -> None:
    for place, (policy, curve) in enumerate(rows.groupby("policy", sort=False)):
        _draw_curve(ax, curve, styles[str(policy)], place)
    drawing.log_x_axis(ax)


def _draw_bounds(ax: Axes, rows: pd.DataFrame, styles: Styles, lines: Mapping[str, Any]) -> None:
    """Upper bounds in the colours of their policies; lower ones hold for all."""
    for (policy, label, kind), line in rows.groupby(["policy", "label", "kind"], sort=False):
        colour = styles[str(policy)].colour if kind == "upper" else SOFT
        ax.plot(line["round"], line["value"], color=colour, linestyle=lines[label], linewidth=_THIN)


def _draw_curve(
    ax: Axes, curve: pd.DataFrame, style: PlotStyle | Mark, place: int, line: Any = "-"
) -> Line2D:
    if len(curve) > _POINTS:
        curve = curve.iloc[np.unique(np.linspace(0, len(curve) - 1, _POINTS).round().astype(int))]
    x, mean, colour = curve["round"].to_numpy(), curve["mean"].to_numpy(), style.colour
    step = max(1, len(curve) // 5)
    every = slice(len(curve) - 1 - place % step, 0, -step)  # apart from the others' markers
    ax.fill_between(x, curve["low"], curve["high"], color=colour, alpha=0.18, linewidth=0)
    (drawn,) = ax.plot(x, mean, color=colour, linestyle=line)
    ax.plot(x[every], mean[every], style.marker, color=colour)
    return drawn
