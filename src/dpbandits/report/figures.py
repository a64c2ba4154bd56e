"""The figures of a report: exhibits, budgets, arms and people, built on the room ``plotting``."""

from __future__ import annotations

from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from ..plotting import drawing
from ..plotting.behind import Behind
from ..plotting.dark import DARK
from ..plotting.drawing import DASHES, Drawing, folded, is_narrow, legend
from ..plotting.ends import fits, label_end
from ..plotting.labels import by_notion
from ..plotting.looks import INK, PAPER, SOFT, STYLE, WIDE
from ..plotting.numbers import number, percent, with_places
from ..plotting.rows import ABOVE, draw_dots, row_chart, rows_behind
from ..plotting.styles import COLOURS, Mark, PlotStyle, Styles, mark
from .exhibits import Exhibit, Panel, Series
from .searches import asked_for, searches_of
from .summaries import EnvironmentSummary

_ARM_COLOURS = (
    *("#77AADD", "#EE8866", "#EEDD88", "#99CCBB"),
    *("#BBAACC", "#CCBB66", "#FFBBCC", "#DDDDDD"),
)
_ON_BARS = "#10171f"  # which is dark on dark screens, too
_DOTS: Any = (0, (1, 2))


@matplotlib.rc_context(STYLE)
def exhibit(shown: Exhibit, labels: list[str], width: float = WIDE) -> Drawing:
    """Draw an additional figure of a study: panels of lines with bands, or of marks with bars.
    ``labels`` are those of all exhibits shown together, so each name has one colour.
    """
    figure, (axes,) = drawing.grouped_panels([len(shown.panels)], width, height=2.9)
    handles = {}
    for panel, ax in zip(shown.panels, axes, strict=True):
        for series in panel.series:
            its = mark(labels.index(series.label))
            handles[series.label] = _draw_series(ax, series, its, panel)
        if panel.line is not None:
            ax.axhline(panel.line, color=SOFT, linewidth=1.1, linestyle=_DOTS)
        ax.set_title(folded(panel.title, 52 if is_narrow(width) else 34, lines=3))
        ax.set_xlabel(panel.x_label)
        ax.set_ylabel(panel.y_label)
        _exhibit_axes(ax, panel)
    legend(figure, handles, width)
    figure.behind = Behind(pd.concat(map(_points, shown.panels)), "x")
    return figure


def _points(panel: Panel) -> pd.DataFrame:
    """The numbers of a panel."""
    return pd.concat(
        pd.DataFrame(
            {
                "panel": panel.title,
                "series": one.label,
                "x": np.asarray(one.x, float),
                **{"y": one.y, "low": one.low, "high": one.high},
            }
        )
        for one in panel.series
    )


def _draw_series(ax: Axes, series: Series, mark: Mark, panel: Panel) -> Line2D:
    style = DASHES if series.dashed else "-"
    seen = series.y[series.y > 0]
    lowest = seen.min() / 10 if panel.y_scale == "log" and seen.size else -np.inf
    y, low, high = (np.maximum(values, lowest) for values in (series.y, series.low, series.high))
    if series.marks:
        ax.vlines(series.x, low, high, color=mark.colour, linewidth=1.4)
        (line,) = ax.plot(series.x, y, color=mark.colour, marker=mark.marker, linestyle=style)
        return line
    ax.fill_between(series.x, low, high, color=mark.colour, alpha=0.18, linewidth=0)
    (line,) = ax.plot(series.x, y, color=mark.colour, linestyle=style)
    return line


def _exhibit_axes(ax: Axes, panel: Panel) -> None:
    if panel.x_scale == "log":
        drawing.log_x_axis(ax)
    places = sorted({float(x) for series in panel.series for x in series.x})
    if len(places) <= 6:
        ax.xaxis.set_major_locator(FixedLocator(places))
        if panel.x_scale == "linear":
            ax.margins(x=0.1)
    if panel.y_scale == "symlog":
        ax.set_yscale("symlog", linthresh=panel.threshold)
        if ax.dataLim.y0 >= 0.0:
            ax.set_ylim(bottom=-panel.threshold / 2)
    elif panel.y_scale == "log":
        ax.set_yscale("log")
        bottom, top = ax.get_ylim()
        if top < 100 * bottom:  # or there would be one tick only
            ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_minor_locator(NullLocator())
    rounded = FuncFormatter(lambda y, _: number(y, 3))
    ax.yaxis.set_major_formatter(drawing.TickLabels() if panel.y_scale == "linear" else rounded)


@matplotlib.rc_context(STYLE)
def regret_by_budget(summary: EnvironmentSummary, styles: Styles, width: float = WIDE) -> Drawing:
    """Final regret against the budget."""
    table = summary.table[summary.table["budget_label"].map(lambda label: label.private)]
    y = f"mean regret after {summary.horizon:,} rounds"
    scale = drawing.regret_scale(summary.table["regret"])
    return _by_budget(summary, table, styles, width, "regret", y, scale)


@matplotlib.rc_context(STYLE)
def search_rounds(summary: EnvironmentSummary, styles: Styles, width: float = WIDE) -> Drawing:
    """Rounds until a search for the best arm was over against the budget."""
    table, y = private_searches(summary), "mean rounds until it stopped"
    return _by_budget(summary, table, styles, width, "stopped", y, "log")


def private_searches(summary: EnvironmentSummary) -> pd.DataFrame:
    """The private searches for the best arm at a confidence that were over in some run."""
    found = searches_of(summary.table)
    chosen = [
        bool(row["ended"] > 0 and asked_for(row) > 0.0 and row["budget_label"].private)
        for _, row in found.iterrows()
    ]
    return found[np.array(chosen, bool)]


def _by_budget(
    summary: EnvironmentSummary,
    table: pd.DataFrame,
    styles: Styles,
    width: float,
    column: str,
    label: str,
    yscale: str,
) -> Drawing:
    """A mean against the budget; one panel per notion, because their numbers do not compare."""
    groups = by_notion(table["budget_label"])
    figure, (axes,) = drawing.grouped_panels([len(groups)], width, height=3.2)
    drawn = [styles[policy] for policy in table["policy"].drop_duplicates()]
    at_ends = fits([style.label for style in drawn], width / len(groups), drawing.letter())
    for ax, labels in zip(axes, groups, strict=True):
        rows = table[table["budget_label"].isin(labels)]
        lines = _budget_panel(ax, summary, rows, styles, column)
        ax.set_title(labels[0].notion)
        for policy, line in lines.items() if at_ends else ():
            label_end(line, folded(styles[policy].label, 40))
    drawing.share_regret_axis(axes, table[column], yscale)
    drawing.label_axes(figure, y=label)
    dashes = Line2D([], [], color=SOFT, linestyle=DASHES, linewidth=1.2)
    handles = {"same policy without privacy": dashes}
    drawing.policy_legend(figure, [] if at_ends else drawn, width, extra=handles)
    found = {"notion": table["budget_label"].map(lambda one: one.notion)}
    found |= {"policy": table["policy"].map(lambda one: styles[one].label)}
    found |= {"budget": table["budget_label"].map(lambda one: one.value)}
    found |= {name: table[name] for name in _ends_of(column)}
    figure.behind = Behind(pd.DataFrame(found), "budget")
    return figure


def _ends_of(column: str) -> list[str]:
    return [column, f"{column}_low", f"{column}_high"]


def _budget_panel(
    ax: Axes, summary: EnvironmentSummary, table: pd.DataFrame, styles: Styles, column: str
) -> dict[str, Line2D]:
    """One line per policy at the budgets of one notion."""
    lines: dict[str, Line2D] = {}
    half = table["policy"].nunique() / 2
    for place, (policy, rows) in enumerate(table.groupby("policy", sort=False)):
        colour, marker = styles[str(policy)].colour, styles[str(policy)].marker
        # moved sideways a little, so that the bars of policies stay apart
        x = rows["budget_label"].map(lambda label: label.value) * (1 + 0.03 * (place - half))
        (lines[str(policy)],) = ax.plot(x, rows[column], color=colour, marker=marker)
        ax.vlines(x, rows[f"{column}_low"], rows[f"{column}_high"], color=colour, linewidth=1.4)
        without = summary.without_privacy(rows.iloc[0])
        if without is not None:
            ax.axhline(without[column], color=colour, linestyle=DASHES, linewidth=1.2)
    values = sorted({label.value for label in table["budget_label"]})
    ax.set_xscale("log")
    ax.set_xlabel(f"budget {table['budget_label'].iloc[0].symbol}: stricter to the left")
    ax.set_xlim(values[0] / 1.6, values[-1] * 1.6)
    if len(values) <= 8:
        ax.xaxis.set_major_locator(FixedLocator(values))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
        ax.xaxis.set_minor_locator(NullLocator())
    return lines


@matplotlib.rc_context(STYLE)
def arm_shares(summary: EnvironmentSummary, styles: Styles, width: float = WIDE) -> Drawing:
    """The share of the people of each arm, beside the reference allocation."""
    names, shares, reference = _merged_arms(summary)
    above = summary.reference.name if summary.reference else None
    chart = row_chart(summary.table, styles, width, above=above)
    heights = np.array([chart.heights[int(i)] for i in summary.table.index])
    if reference is not None:
        heights, shares = np.append(heights, ABOVE + 1), np.vstack([shares, reference])
    _stacked_bars(chart.ax, heights, shares, least=0.13 if is_narrow(width) else 0.075)
    chart.ax.set_xlim(0, 1)
    chart.ax.xaxis.set_major_formatter(drawing.TickLabels(percent, unit=0.01))
    chart.ax.set_xlabel("share of all rounds (people)")
    patches = {name: Patch(color=_ARM_COLOURS[a]) for a, name in enumerate(names)}
    legend(chart.figure, patches, width)
    told = pd.DataFrame(shares[: len(summary.table)], summary.table.index, names)
    chart.figure.behind = rows_behind(summary.table, styles, told)
    return chart.figure


def _stacked_bars(ax: Axes, heights: np.ndarray, shares: np.ndarray, least: float) -> None:
    """A bar per row of shares, those of at least ``least`` with their percentage."""
    ends = np.cumsum(shares, axis=1)
    for a, (share, end) in enumerate(zip(shares.T, ends.T, strict=True)):
        looks: Any = {"color": _ARM_COLOURS[a], "edgecolor": PAPER, "linewidth": 0.7}
        ax.barh(heights, share, 0.78, left=end - share, **looks)
        for i in np.flatnonzero(share >= least):
            at, text = end[i] - share[i] / 2, f"{100 * share[i]:.0f}"
            ax.text(at, heights[i], text, ha="center", va="center", fontsize=7.5, color=_ON_BARS)


@matplotlib.rc_context(STYLE)
def people_helped(summary: EnvironmentSummary, styles: Styles, width: float = WIDE) -> Drawing:
    """Expected successes per 1,000 people, more or fewer than the baseline's, with intervals."""
    assert summary.baseline is not None
    assert summary.means is not None
    name, baseline = summary.baseline
    chart = row_chart(summary.table, styles, width)
    draw_dots(chart, summary.table, styles, "gain")
    ax, most = chart.ax, 1000 * float(summary.means.max()) - baseline
    drawn = {f"{name}: {baseline:,.1f}": ax.axvline(0, color=INK, linewidth=1.2)}
    best = ax.axvline(most, color=SOFT, linewidth=1.2, linestyle=_DOTS)
    drawn[f"always the best arm: {baseline + most:,.1f}"] = best
    ends = summary.table[["gain", "gain_low", "gain_high"]].to_numpy(float)
    low, high = min(0.0, np.nanmin(ends)), max(most, np.nanmax(ends))
    margin = 0.06 * ((high - low) or 1.0)
    ax.set_xlim(low - margin, high + margin)
    ax.xaxis.set_major_locator(MaxNLocator(5 if is_narrow(width) else 9))

    def signed(x: float, places: int) -> str:
        return ("+" if x > 0 else "") + with_places(x, places) if x else "0"

    ax.xaxis.set_major_formatter(drawing.TickLabels(signed))
    unit = f"{summary.gained} per 1,000 people"
    ax.set_xlabel(unit if is_narrow(width) else f"{unit}, more or fewer")
    legend(chart.figure, drawn, width)
    told = summary.table[_ends_of("gain")]
    chart.figure.behind = rows_behind(summary.table, styles, told)
    return chart.figure


def swatch(style: PlotStyle) -> str:
    """The mark of a policy as an SVG element, for tables."""
    marker = MarkerStyle(style.marker)
    rings = map(np.asarray, marker.get_path().transformed(marker.get_transform()).to_polygons())
    path = "".join("M" + "L".join(f"{x:.2f} {-y:.2f}" for x, y in ring) + "Z" for ring in rings)
    return (
        '<svg class="swatch" viewBox="-.8 -.8 1.6 1.6" aria-hidden="true"><path'
        f' fill="{style.colour}" d="{path}"></path></svg>'
    )


def dark_swatches() -> str:
    """The style of swatches on dark screens."""
    rules = (f'[fill="{colour}"] {{ fill: {DARK[colour.lower()]}; }}\n' for colour in COLOURS)
    return f"@media screen and (prefers-color-scheme: dark) {{\n{''.join(rules)}}}\n"


class _ArmShares(NamedTuple):
    """Names of arms, and their shares: shape (rows, arms), and (arms,) for the reference."""

    names: list[str]
    shares: np.ndarray
    reference: np.ndarray | None


def _merged_arms(summary: EnvironmentSummary) -> _ArmShares:
    """Merge arms to at most as many as there are colours: the best ones, and all others
    together.
    """
    k = len(summary.arms)
    shares = summary.table[[f"share_{a}" for a in range(k)]].to_numpy(float)
    reference = None if summary.reference is None else summary.reference.shares
    if k <= len(_ARM_COLOURS):
        return _ArmShares(summary.arms, shares, reference)
    worth = shares.mean(axis=0) if summary.means is None else summary.means
    best = np.sort(np.argsort(-worth, kind="stable")[: len(_ARM_COLOURS) - 1])
    rest = np.setdiff1d(np.arange(k), best)
    names = [summary.arms[a] for a in best] + [f"{rest.size} other arms"]

    def merge(values: np.ndarray) -> np.ndarray:
        return np.append(values[..., best], values[..., rest].sum(axis=-1, keepdims=True), axis=-1)

    return _ArmShares(names, merge(shares), None if reference is None else merge(reference))
