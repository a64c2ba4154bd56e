"""The figures of a report, as matplotlib ``Figure`` objects without any state of ``pyplot``.

Each comes in any width, so that a page can show one version to a desk and another to a phone.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable, Mapping
from itertools import count as counting
from itertools import groupby
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from .exhibits import Exhibit, Panel, Series
from .labels import Level, Look, drawn, level, looks, number, short
from .scenes import Scene

WIDE, NARROW = 9.6, 3.75  # inches: the column of the page at a desk and on a phone

_INK, _SOFT, _RULE = "#1f2933", "#52606d", "#e4e7eb"
_ARM_COLOURS = (
    "#77AADD",
    "#EE8866",
    "#EEDD88",
    "#99CCBB",
    "#BBAACC",
    "#CCBB66",
    "#FFBBCC",
    "#DDDDDD",
)
_ROW = 0.24  # inches of a row in charts that have one per policy and budget
_POINTS = 60  # of a drawn curve; more would only make files larger

# DejaVu Sans comes with matplotlib: the figures are the same on every machine, whatever fonts it
# has.
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.labelcolor": _SOFT,
    "axes.edgecolor": "#9aa5b1",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": _RULE,
    "grid.linewidth": 0.7,
    "text.color": _INK,
    "xtick.color": _SOFT,
    "ytick.color": _SOFT,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "dpbandits",
}


@matplotlib.rc_context(_STYLE)
def regret_curves(
    summary: pd.DataFrame,
    *,
    looks_of: Mapping[str, Look] | None = None,
    width: float = WIDE,
    yscale: str | None = None,
) -> Figure:
    """Mean regret over rounds with its confidence band; one panel per budget, on common axes per
    notion (and environment).

    Args:
        summary: as from ``Result.summary()``.
        looks_of: how policies are written and drawn; by default from the policies of the table.
        width: in inches.
        yscale: "linear" or "log"; by default logarithmic where final regrets differ more than
            twentyfold.
    """
    looks_of = looks_of or looks(summary["policy"].drop_duplicates())
    environments = list(summary["environment"].drop_duplicates())
    last = summary[summary["round"] == summary["round"].max()]
    yscale = yscale or _scale(last["mean"])
    groups = [
        (environment, list(kinds))
        for environment in environments
        for _, kinds in groupby(
            _levels(summary.loc[summary["environment"] == environment, "budget"]),
            lambda kind: kind.notion,
        )
    ]
    figure, axes = _panels([len(kinds) for _, kinds in groups], width, height=2.3)
    for (environment, kinds), alike in zip(groups, axes, strict=True):
        budgets = [kind.text for kind in kinds]
        rows = summary[(summary["environment"] == environment) & summary["budget"].isin(budgets)]
        for kind, ax in zip(kinds, alike, strict=True):
            title = kind.shown if len(environments) == 1 else f"{kind.shown}\n{environment}"
            _curve_panel(
                ax,
                rows[rows["budget"] == kind.text],
                looks_of,
                _plain(title, (60 if width < 6 else 40)),
            )
        _regret_axis(alike, rows.loc[rows["round"] == rows["round"].max(), "mean"], yscale)
        if yscale == "log":  # where everything lies below the axis would be an empty stretch
            for ax in alike:
                ax.set_xlim(left=rows.loc[rows["high"] > ax.get_ylim()[0], "round"].min())
    figure.supxlabel("rounds (people), logarithmic", fontsize=8.5, color=_SOFT)
    figure.supylabel("mean regret so far", fontsize=8.5, color=_SOFT)
    _policy_legend(figure, [looks_of[p] for p in summary["policy"].drop_duplicates()], width)
    return figure


@matplotlib.rc_context(_STYLE)
def distance_curves(
    summary: pd.DataFrame, looks_of: Mapping[str, Look], width: float = WIDE
) -> Figure:
    """Mean distance of the estimated from the true parameter over rounds, one panel per budget;
    arguments as of ``regret_curves``.
    """
    groups = [
        list(kinds) for _, kinds in groupby(_levels(summary["budget"]), lambda kind: kind.notion)
    ]
    figure, axes = _panels([len(kinds) for kinds in groups], width, height=2.3)
    for kinds, alike in zip(groups, axes, strict=True):
        for kind, ax in zip(kinds, alike, strict=True):
            _curve_panel(ax, summary[summary["budget"] == kind.text], looks_of, kind.shown)
            ax.sharey(alike[0])
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y, 4)))
            ax.yaxis.set_minor_locator(NullLocator())
    figure.supxlabel("rounds (people), logarithmic", fontsize=8.5, color=_SOFT)
    figure.supylabel("mean distance from the truth", fontsize=8.5, color=_SOFT)
    _policy_legend(figure, [looks_of[p] for p in summary["policy"].drop_duplicates()], width)
    return figure


@matplotlib.rc_context(_STYLE)
def exhibit(shown: Exhibit, labels: list[str], width: float = WIDE) -> Figure:
    """What a study shows besides: panels of lines with bands, or of marks with bars.

    Args:
        shown: the numbers.
        labels: of the lines of all exhibits that stand together, so that a name has one colour.
        width: in inches.
    """
    figure, (axes,) = _panels([len(shown.panels)], width, height=2.9)
    handles = {}
    for panel, ax in zip(shown.panels, axes, strict=True):
        for series in panel.series:
            handles[series.label] = _draw_series(
                ax, series, drawn(labels.index(series.label)), panel
            )
        if panel.line is not None:
            ax.axhline(panel.line, color=_SOFT, linewidth=1.1, linestyle=(0, (1, 2)))
        ax.set_title("\n".join(textwrap.wrap(_plain(panel.title, 80), 52 if width < 6 else 34)))
        ax.set_xlabel(panel.x_label)
        ax.set_ylabel(panel.y_label)
        _exhibit_axes(ax, panel)
    _legend(figure, handles, width)
    return figure


def _draw_series(ax: Axes, series: Series, look: tuple[str, str], panel: Panel) -> Line2D:
    colour, marker = look
    style: Any = (0, (4, 3)) if series.dashed else "-"
    lowest = (
        np.nanmin(np.where(series.y > 0, series.y, np.nan)) / 10
        if panel.y_scale == "log" and (series.y > 0).any()
        else -np.inf
    )
    y, low, high = (np.maximum(values, lowest) for values in (series.y, series.low, series.high))
    if series.marks:
        ax.vlines(series.x, low, high, color=colour, linewidth=1.4)
        (line,) = ax.plot(series.x, y, color=colour, marker=marker, linestyle=style)
        return line
    ax.fill_between(series.x, low, high, color=colour, alpha=0.18, linewidth=0)
    (line,) = ax.plot(series.x, y, color=colour, linestyle=style)
    return line


def _exhibit_axes(ax: Axes, panel: Panel) -> None:
    if panel.x_scale == "log":
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(numticks=6))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: short(x)))
        ax.xaxis.set_minor_locator(NullLocator())
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
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y, 3)))


@matplotlib.rc_context(_STYLE)
def regret_by_budget(scene: Scene, looks_of: Mapping[str, Look], width: float = WIDE) -> Figure:
    """Final regret against the budget; one panel per privacy notion, because their numbers cannot
    be compared.
    """
    table = scene.table[[kind.comparable for kind in scene.table["level"]]]
    notions = list(
        dict.fromkeys(kind.notion for kind in sorted(table["level"], key=lambda kind: kind.order))
    )
    figure, (axes,) = _panels([len(notions)], width, height=3.2)
    shown = []
    for ax, notion in zip(axes, notions, strict=True):
        chosen = table[[kind.notion == notion for kind in table["level"]]]
        for place, (policy, rows) in enumerate(chosen.groupby("policy", sort=False)):
            _budget_line(
                ax,
                scene,
                rows,
                looks_of[str(policy)],
                1 + 0.03 * (place - chosen["policy"].nunique() / 2),
            )
            shown.append(looks_of[str(policy)])
        values = sorted({kind.value for kind in chosen["level"]})
        ax.set_title(notion)
        ax.set_xscale("log")
        ax.set_xlabel(f"budget {chosen['level'].iloc[0].symbol}: stricter to the left")
        ax.set_xlim(values[0] / 1.6, values[-1] * 1.6)
        if len(values) <= 8:
            ax.xaxis.set_major_locator(FixedLocator(values))
            ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
            ax.xaxis.set_minor_locator(NullLocator())
    _regret_axis(axes, table["regret"], _scale(scene.table["regret"]))
    figure.supylabel(f"mean regret after {scene.horizon:,} rounds", fontsize=8.5, color=_SOFT)
    dashes = Line2D([], [], color=_SOFT, linestyle=(0, (4, 3)), linewidth=1.2)
    _policy_legend(
        figure, list(dict.fromkeys(shown)), width, extra={"same policy without privacy": dashes}
    )
    return figure


@matplotlib.rc_context(_STYLE)
def arm_shares(scene: Scene, looks_of: Mapping[str, Look], width: float = WIDE) -> Figure:
    """Which share of the people each arm got, per policy and budget, beside the reference
    allocation.
    """
    names, shares, reference = _merged_arms(scene)
    figure, ax, lines = _row_chart(
        scene.table, looks_of, width, above=scene.reference[0] if scene.reference else None
    )
    bars = [(-2.0, reference)] if reference is not None else []
    bars += [(y, shares[i]) for y, i in lines]
    least = 0.075 if width > 6 else 0.13
    for y, values in bars:
        left = 0.0
        for a, share in enumerate(values):
            ax.barh(
                y,
                share,
                left=left,
                height=0.78,
                color=_ARM_COLOURS[a],
                edgecolor="white",
                linewidth=0.7,
            )
            if share >= least:
                ax.text(
                    left + share / 2,
                    y,
                    f"{100 * share:.0f}",
                    ha="center",
                    va="center",
                    fontsize=7.5,
                )
            left += share
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:.0f} %"))
    ax.set_xlabel("share of all rounds (people)")
    handles = {name: Patch(color=_ARM_COLOURS[a]) for a, name in enumerate(names)}
    _legend(figure, handles, width)
    return figure


@matplotlib.rc_context(_STYLE)
def people_helped(scene: Scene, looks_of: Mapping[str, Look], width: float = WIDE) -> Figure:
    """Expected successes per 1,000 people, more or fewer than under the baseline's allocation, with
    intervals.
    """
    assert scene.baseline is not None
    assert scene.means is not None
    name, baseline = scene.baseline
    figure, ax, lines = _row_chart(scene.table, looks_of, width)
    _dots(ax, scene.table, lines, looks_of, "gain")
    most = 1000 * float(scene.means.max()) - baseline
    ax.axvline(0, color=_INK, linewidth=1.2)
    ax.axvline(most, color=_SOFT, linewidth=1.2, linestyle=(0, (1, 2)))
    ends = scene.table[["gain", "gain_low", "gain_high"]].to_numpy(float)
    span = max(most, np.nanmax(ends)) - min(0.0, np.nanmin(ends)) or 1.0
    ax.set_xlim(min(0.0, np.nanmin(ends)) - 0.06 * span, max(most, np.nanmax(ends)) + 0.06 * span)
    ax.xaxis.set_major_locator(MaxNLocator(5 if width < 6 else 9))
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda x, _: f"{x:+,.0f}".replace("-", "−") if x else "0")
    )
    ax.set_xlabel(
        f"{scene.gained} per 1,000 people, more or fewer"
        if width > 6
        else f"{scene.gained} per 1,000 people"
    )
    handles = {
        f"{name}: {baseline:,.1f}": Line2D([], [], color=_INK, linewidth=1.2),
        f"always the best arm: {baseline + most:,.1f}": Line2D(
            [], [], color=_SOFT, linewidth=1.2, linestyle=(0, (1, 2))
        ),
    }
    _legend(figure, handles, width)
    return figure


@matplotlib.rc_context(_STYLE)
def replay_rates(
    table: pd.DataFrame,
    looks_of: Mapping[str, Look],
    own: tuple[str, float] | None,
    width: float = WIDE,
) -> Figure:
    """Success rates in the replay of a logged trial.

    Args:
        table: ``policy``, ``budget``, ``level``, ``rate``, ``rate_low``, ``rate_high``, rows of one
            policy together.
        looks_of: how policies are written and drawn.
        own: name and success rate of the trial itself; None where it is not known.
        width: in inches.
    """
    figure, ax, lines = _row_chart(table, looks_of, width)
    _dots(ax, table, lines, looks_of, "rate")
    if own is not None:
        ax.axvline(own[1], color=_INK, linewidth=1.2)
        _legend(
            figure,
            {f"{own[0]}: {100 * own[1]:.1f} %": Line2D([], [], color=_INK, linewidth=1.2)},
            width,
        )
    ax.xaxis.set_major_locator(MaxNLocator(5 if width < 6 else 9))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:.0f} %"))
    ax.set_xlabel("success rate among the counted people")
    return figure


def swatch(look: Look) -> str:
    """The mark of a policy as an SVG element, for tables."""
    mark = MarkerStyle(look.marker)
    rings = map(np.asarray, mark.get_path().transformed(mark.get_transform()).to_polygons())
    path = "".join("M" + "L".join(f"{x:.2f} {-y:.2f}" for x, y in ring) + "Z" for ring in rings)
    return (
        '<svg class="swatch" viewBox="-.8 -.8 1.6 1.6" aria-hidden="true"><path'
        f' fill="{look.colour}" d="{path}"></path></svg>'
    )


def svg(figure: Figure) -> bytes:
    """The figure as SVG with text as paths; equal figures give equal bytes."""
    return _saved(figure, format="svg", metadata={"Date": None, "Creator": None})


def png(figure: Figure) -> bytes:
    """The figure as PNG for slides and documents."""
    return _saved(figure, format="png", dpi=160, metadata={"Software": None})


@matplotlib.rc_context(_STYLE)
def _saved(figure: Figure, **options: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, **options)
    figure.set_layout_engine("none")  # it is laid out now: not again, the same, for the next format
    return buffer.getvalue()


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _panels(counts: list[int], width: float, *, height: float) -> tuple[Figure, list[list[Axes]]]:
    """Groups of panels, each in rows of its own that fill the width."""
    columns = 1 if width < 6 else 3
    split = [
        [len(row) for row in np.array_split(range(count), math.ceil(count / columns))]
        for count in counts
    ]
    rows = sum(map(len, split))
    figure = _figure(width, height * rows + 0.7)
    grid, row, groups = figure.add_gridspec(rows, 6), counting(), []
    for sizes in split:
        group: list[Axes] = []
        for size in sizes:
            at, step = next(row), 6 // size
            group += [figure.add_subplot(grid[at, i * step : (i + 1) * step]) for i in range(size)]
        groups.append(group)
    return figure, groups


def _levels(budgets: Iterable[str]) -> list[Level]:
    return sorted((level(budget) for budget in dict.fromkeys(budgets)), key=lambda kind: kind.order)


def _curve_panel(ax: Axes, rows: pd.DataFrame, looks_of: Mapping[str, Look], title: str) -> None:
    for place, (policy, curve) in enumerate(rows.groupby("policy", sort=False)):
        _curve(ax, curve, looks_of[str(policy)], place)
    ax.set_title(title)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(numticks=6))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: short(x)))
    ax.xaxis.set_minor_locator(NullLocator())


def _curve(ax: Axes, curve: pd.DataFrame, look: Look, place: int) -> None:
    if len(curve) > _POINTS:
        curve = curve.iloc[np.unique(np.linspace(0, len(curve) - 1, _POINTS).round().astype(int))]
    x, step = curve["round"].to_numpy(), max(1, len(curve) // 5)
    ax.fill_between(x, curve["low"], curve["high"], color=look.colour, alpha=0.18, linewidth=0)
    every = slice(len(curve) - 1 - place % step, 0, -step)  # apart from the others' markers
    ax.plot(x, curve["mean"], color=look.colour)
    ax.plot(x[every], curve["mean"].to_numpy()[every], look.marker, color=look.colour, markersize=4)


def _budget_line(ax: Axes, scene: Scene, rows: pd.DataFrame, look: Look, dodge: float) -> None:
    x = np.array([kind.value for kind in rows["level"]]) * dodge
    ends = rows[["regret_low", "regret_high"]].to_numpy(float)
    ax.plot(x, rows["regret"], color=look.colour, marker=look.marker)
    ax.vlines(x, ends[:, 0], ends[:, 1], color=look.colour, linewidth=1.4)
    without = scene.open_row(rows.iloc[0])
    if without is not None:
        ax.axhline(without["regret"], color=look.colour, linestyle=(0, (4, 3)), linewidth=1.2)


def _scale(finals: pd.Series) -> str:
    return "log" if finals.min() > 0 and finals.max() > 20 * finals.min() else "linear"


def _regret_axis(axes: list[Axes], finals: pd.Series, yscale: str) -> None:
    """One scale for all panels, so that heights compare."""
    for ax in axes:
        ax.set_yscale(yscale)
    # against a fixed table a policy may beat the best column
    lowest = min(0.0, *(ax.dataLim.y0 for ax in axes))
    top, bottom = max(ax.get_ylim()[1] for ax in axes), min(ax.get_ylim()[0] for ax in axes)
    shown = FuncFormatter(lambda y, _: number(y, 4))
    for ax in axes:
        ax.set_ylim(max(bottom, finals.min() / 10) if yscale == "log" else lowest, 1.04 * top)
        ax.yaxis.set_major_formatter(shown)
        ax.yaxis.set_minor_locator(
            LogLocator(subs=(2.0, 5.0)) if yscale == "log" else NullLocator()
        )
        ax.yaxis.set_minor_formatter(shown)
        ax.grid(axis="y", which="both")
        spec = ax.get_subplotspec()
        ax.tick_params(which="both", labelleft=spec is None or spec.is_first_col())


def _row_chart(
    table: pd.DataFrame, looks_of: Mapping[str, Look], width: float, above: str | None = None
) -> tuple[Figure, Axes, list[tuple[float, int]]]:
    """Empty axes with a heading per policy and a row per budget; the last value says where the rows
    of the table are.

    ``above`` is the heading, at -3, of one more row, at -2, above all others.
    """
    y, lines = 0.0, []
    headings = [] if above is None else [(-3.0, above, _INK)]
    for policy, rows in table.groupby("policy", sort=False):
        headings.append((y, looks_of[str(policy)].label, looks_of[str(policy)].colour))
        for i in rows.index:
            y += 1
            lines.append((y, int(i)))
        y += 1.15
    top = -0.6 if above is None else -3.6
    figure = _figure(width, _ROW * (y - top - 0.6) + 0.95)
    ax = figure.add_subplot()
    names = [table.loc[i, "level"].shown for _, i in lines] + [
        _folded(text, width) for _, text, _ in headings
    ]
    ax.set_yticks([at for at, _ in lines] + [at for at, _, _ in headings], names)
    for heading, (_, _, colour) in zip(ax.get_yticklabels()[len(lines) :], headings, strict=True):
        heading.set(color=colour, fontweight="bold", linespacing=1.0)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(y - 0.4, top)
    return figure, ax, lines


def _folded(text: str, width: float) -> str:
    """A heading beside the axes: on a phone in two lines."""
    length, lines = (17, 2) if width < 6 else (40, 1)
    return "\n".join(
        _plain(line, length)
        for line in textwrap.wrap(text, length, max_lines=lines, placeholder="…")
    )


def _dots(
    ax: Axes,
    table: pd.DataFrame,
    lines: list[tuple[float, int]],
    looks_of: Mapping[str, Look],
    name: str,
) -> None:
    for y, i in lines:
        row, look = table.loc[i], looks_of[table.loc[i, "policy"]]
        ax.hlines(y, row[f"{name}_low"], row[f"{name}_high"], color=look.colour, linewidth=2)
        face = look.colour if row["level"].private else "white"
        ax.plot(
            [row[name]], [y], look.marker, color=look.colour, markerfacecolor=face, markersize=5.5
        )


def _merged_arms(scene: Scene) -> tuple[list[str], np.ndarray, np.ndarray | None]:
    """Names and shares of at most as many arms as there are colours: the best ones, and all others
    together.
    """
    k = len(scene.arms)
    shares = scene.table[[f"share_{a}" for a in range(k)]].to_numpy(float)
    reference = None if scene.reference is None else scene.reference[1]
    if k <= len(_ARM_COLOURS):
        return scene.arms, shares, reference
    worth = shares.mean(axis=0) if scene.means is None else scene.means
    kept = np.sort(np.argsort(-worth, kind="stable")[: len(_ARM_COLOURS) - 1])
    rest = np.setdiff1d(np.arange(k), kept)
    names = [scene.arms[a] for a in kept] + [f"{rest.size} other arms"]

    def merge(values: np.ndarray) -> np.ndarray:
        return np.append(values[..., kept], values[..., rest].sum(axis=-1, keepdims=True), axis=-1)

    return names, merge(shares), None if reference is None else merge(reference)


def _policy_legend(
    figure: Figure, shown: list[Look], width: float, extra: Mapping[str, Line2D] | None = None
) -> None:
    handles = {
        look.label: Line2D([], [], color=look.colour, marker=look.marker)
        for look in dict.fromkeys(shown)
    }
    _legend(figure, {**handles, **(extra or {})}, width)


def _legend(figure: Figure, handles: Mapping[str, Any], width: float) -> None:
    """Above the axes, in as many columns as fit."""
    labels = [_plain(label, int((width - 0.55) / 0.082)) for label in handles]
    widest = max(len(label) for label in labels) * 0.082 + 0.55
    columns = max(1, min(len(handles), int(width / widest)))
    figure.legend(
        list(handles.values()), labels, loc="outside upper left", ncols=columns, borderaxespad=0.2
    )


def _plain(text: str, length: int) -> str:
    """Users' text as it is: no mathematics between dollar signs, and no longer than there is room
    for.
    """
    text = text if len(text) <= length else text[: length - 1] + "…"
    return text.replace("$", r"\$")
