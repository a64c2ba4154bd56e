"""The figures of a report, as matplotlib ``Figure`` objects without any state of ``pyplot``.

Each comes in any width, so that a page can show one version to a desk and another to a phone.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping
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
from matplotlib.transforms import blended_transform_factory

from .labels import Level, Look, level, looks, number, short
from .scenes import Scene

WIDE, NARROW = 9.6, 3.75  # inches: the column of the page at a desk and on a phone

_INK, _SOFT, _RULE = "#1f2933", "#52606d", "#e4e7eb"
_ARM_COLOURS = ("#77AADD", "#EE8866", "#EEDD88", "#99CCBB", "#BBAACC", "#CCBB66", "#FFBBCC", "#DDDDDD")
_ROW = 0.24  # inches of a row in charts that have one per policy and budget
_POINTS = 60  # of a drawn curve; more would only make files larger

# DejaVu Sans comes with matplotlib: the figures are the same on every machine, whatever fonts it has.
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
    summary: pd.DataFrame, *, looks_of: Mapping[str, Look] | None = None, width: float = WIDE, yscale: str | None = None
) -> Figure:
    """Mean regret over rounds with its confidence band; one panel per budget (and environment), on common axes.

    Args:
        summary: as from ``Result.summary()``.
        looks_of: how policies are written and drawn; by default from the policies of the table.
        width: in inches.
        yscale: "linear" or "log"; by default logarithmic where final regrets differ more than twentyfold.
    """
    looks_of = looks_of or looks(summary["policy"].drop_duplicates())
    environments = list(summary["environment"].drop_duplicates())
    panels = [
        (environment, kind)
        for environment in environments
        for kind in _levels(summary.loc[summary["environment"] == environment, "budget"])
    ]
    figure, axes = _panels(len(panels), width, height=2.3)
    for ax, (environment, kind) in zip(axes, panels, strict=True):
        chosen = summary[(summary["environment"] == environment) & (summary["budget"] == kind.text)]
        for place, (policy, curve) in enumerate(chosen.groupby("policy", sort=False)):
            _curve(ax, curve, looks_of[str(policy)], place)
        title = kind.shown if len(environments) == 1 else f"{kind.shown}\n{environment}"
        ax.set_title(_plain(title, (60 if width < 6 else 40)))
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(numticks=6))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: short(x)))
        ax.xaxis.set_minor_locator(NullLocator())
    _regret_axis(axes, summary.loc[summary["round"] == summary["round"].max(), "mean"], yscale)
    lowest = axes[0].get_ylim()[0]
    if axes[0].get_yscale() == "log":  # where everything lies below the axis would be an empty stretch
        for ax in axes:
            ax.set_xlim(left=summary.loc[summary["high"] > lowest, "round"].min())
    figure.supxlabel("rounds (people), logarithmic", fontsize=8.5, color=_SOFT)
    figure.supylabel("mean regret so far", fontsize=8.5, color=_SOFT)
    _policy_legend(figure, [looks_of[p] for p in summary["policy"].drop_duplicates()], width)
    return figure


@matplotlib.rc_context(_STYLE)
def regret_by_budget(scene: Scene, looks_of: Mapping[str, Look], width: float = WIDE) -> Figure:
    """Final regret against the budget; one panel per privacy notion, because their numbers cannot be compared."""
    table = scene.table[[kind.comparable for kind in scene.table["level"]]]
    notions = list(dict.fromkeys(kind.notion for kind in sorted(table["level"], key=lambda kind: kind.order)))
    figure, axes = _panels(len(notions), width, height=3.2, columns=min(3, len(notions)))
    shown = []
    for ax, notion in zip(axes, notions, strict=True):
        chosen = table[[kind.notion == notion for kind in table["level"]]]
        for place, (policy, rows) in enumerate(chosen.groupby("policy", sort=False)):
            _budget_line(ax, scene, rows, looks_of[str(policy)], 1 + 0.03 * (place - chosen["policy"].nunique() / 2))
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
    _regret_axis(axes, scene.table["regret"], None)
    figure.supylabel(f"mean regret after {scene.horizon:,} rounds", fontsize=8.5, color=_SOFT)
    dashes = Line2D([], [], color=_SOFT, linestyle=(0, (4, 3)), linewidth=1.2)
    _policy_legend(figure, list(dict.fromkeys(shown)), width, extra={"same policy without privacy": dashes})
    return figure


@matplotlib.rc_context(_STYLE)
def arm_shares(scene: Scene, looks_of: Mapping[str, Look], width: float = WIDE) -> Figure:
    """Which share of the people each arm got, per policy and budget, beside the reference allocation."""
    names, shares, reference = _merged_arms(scene)
    figure, ax, lines = _row_chart(scene.table, looks_of, width, extra=0 if reference is None else 2)
    bars = [(-2.0, reference)] if reference is not None else []
    bars += [(y, shares[i]) for y, i in lines]
    least = 0.075 if width > 6 else 0.13
    for y, values in bars:
        left = 0.0
        for a, share in enumerate(values):
            ax.barh(y, share, left=left, height=0.78, color=_ARM_COLOURS[a], edgecolor="white", linewidth=0.7)
            if share >= least:
                ax.text(left + share / 2, y, f"{100 * share:.0f}", ha="center", va="center", fontsize=7.5)
            left += share
    if scene.reference is not None:
        _header(ax, -3.0, scene.reference[0], width)
        ax.set_ylim(ax.get_ylim()[0], -3.6)
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:.0f} %"))
    ax.set_xlabel("share of all rounds (people)")
    handles = {name: Patch(color=_ARM_COLOURS[a]) for a, name in enumerate(names)}
    _legend(figure, handles, width)
    return figure


@matplotlib.rc_context(_STYLE)
def people_helped(scene: Scene, looks_of: Mapping[str, Look], width: float = WIDE) -> Figure:
    """Expected successes per 1,000 people, more or fewer than under the baseline's allocation, with intervals."""
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
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:+,.0f}".replace("-", "−") if x else "0"))
    ax.set_xlabel(f"{scene.gained} per 1,000 people, more or fewer" if width > 6 else f"{scene.gained} per 1,000 people")
    handles = {
        f"{name}: {baseline:,.1f}": Line2D([], [], color=_INK, linewidth=1.2),
        f"always the best arm: {baseline + most:,.1f}": Line2D([], [], color=_SOFT, linewidth=1.2, linestyle=(0, (1, 2))),
    }
    _legend(figure, handles, width)
    return figure


@matplotlib.rc_context(_STYLE)
def replay_rates(table: pd.DataFrame, looks_of: Mapping[str, Look], own: tuple[str, float] | None, width: float = WIDE) -> Figure:
    """Success rates in the replay of a logged trial.

    Args:
        table: ``policy``, ``budget``, ``level``, ``rate``, ``rate_low``, ``rate_high``, rows of one policy together.
        looks_of: how policies are written and drawn.
        own: name and success rate of the trial itself; None where it is not known.
        width: in inches.
    """
    figure, ax, lines = _row_chart(table, looks_of, width)
    _dots(ax, table, lines, looks_of, "rate")
    if own is not None:
        ax.axvline(own[1], color=_INK, linewidth=1.2)
        _legend(figure, {f"{own[0]}: {100 * own[1]:.1f} %": Line2D([], [], color=_INK, linewidth=1.2)}, width)
    ax.xaxis.set_major_locator(MaxNLocator(5 if width < 6 else 9))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:.0f} %"))
    ax.set_xlabel("success rate among the counted people")
    return figure


def swatch(look: Look) -> str:
    """The mark of a policy as an SVG element, for tables."""
    mark = MarkerStyle(look.marker)
    rings = map(np.asarray, mark.get_path().transformed(mark.get_transform()).to_polygons())
    path = "".join("M" + "L".join(f"{x:.2f} {-y:.2f}" for x, y in ring) + "Z" for ring in rings)
    return f'<svg class="swatch" viewBox="-.8 -.8 1.6 1.6" aria-hidden="true"><path fill="{look.colour}" d="{path}"></path></svg>'


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


def _panels(count: int, width: float, *, height: float, columns: int = 3) -> tuple[Figure, list[Axes]]:
    columns = 1 if width < 6 else {1: 1, 2: 2, 4: 2}.get(count, columns)
    rows = math.ceil(count / columns)
    figure = _figure(width, height * rows + 0.7)
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(count)]
    return figure, axes


def _levels(budgets: Iterable[str]) -> list[Level]:
    return sorted((level(budget) for budget in dict.fromkeys(budgets)), key=lambda kind: kind.order)


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


def _regret_axis(axes: list[Axes], finals: pd.Series, yscale: str | None) -> None:
    """One scale for all panels, so that heights compare."""
    if yscale is None:
        yscale = "log" if finals.min() > 0 and finals.max() > 20 * finals.min() else "linear"
    for ax in axes:
        ax.set_yscale(yscale)
    lowest = min(0.0, *(ax.dataLim.y0 for ax in axes))  # against a fixed table a policy may beat the best column
    tops, bottoms = [ax.get_ylim()[1] for ax in axes], [ax.get_ylim()[0] for ax in axes]
    for ax in axes:
        ax.set_ylim(max(min(bottoms), finals.min() / 10) if yscale == "log" else lowest, 1.04 * max(tops))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(y, 4)))
        ax.yaxis.set_minor_locator(NullLocator())
        spec = ax.get_subplotspec()
        ax.tick_params(labelleft=spec is None or spec.is_first_col())


def _row_chart(
    table: pd.DataFrame, looks_of: Mapping[str, Look], width: float, extra: int = 0
) -> tuple[Figure, Axes, list[tuple[float, int]]]:
    """Empty axes with a header per policy and a row per budget; the last value says where the rows of the table are."""
    y, lines, headers = 0.0, [], []
    for policy, rows in table.groupby("policy", sort=False):
        headers.append((y, looks_of[str(policy)]))
        for i in rows.index:
            y += 1
            lines.append((y, int(i)))
        y += 1.15
    figure = _figure(width, _ROW * (y + extra) + 0.95)
    ax = figure.add_subplot()
    ax.set_yticks([at for at, _ in lines], [table.loc[i, "level"].shown for _, i in lines])
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(y - 0.4, -0.6)
    for at, look in headers:
        _header(ax, at, look.label, width, look)
    return figure, ax, lines


def _header(ax: Axes, y: float, text: str, width: float, look: Look | None = None) -> None:
    """A line of its own, from the left edge of the figure; on paper, so that no rule runs through it."""
    edge = blended_transform_factory(ax.figure.transFigure, ax.transData)
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    drawn = ax.text((0.2 if look else 0.04) / width, y + 0.08, _plain(text, int(width / 0.085)), transform=edge, bbox=paper)
    drawn.set(fontweight="bold", va="center", in_layout=False)
    if look:
        (mark,) = ax.plot([0.1 / width], [y], look.marker, color=look.colour, transform=edge, clip_on=False, markersize=5.5)
        mark.set_in_layout(False)


def _dots(ax: Axes, table: pd.DataFrame, lines: list[tuple[float, int]], looks_of: Mapping[str, Look], name: str) -> None:
    for y, i in lines:
        row, look = table.loc[i], looks_of[table.loc[i, "policy"]]
        ax.hlines(y, row[f"{name}_low"], row[f"{name}_high"], color=look.colour, linewidth=2)
        face = look.colour if row["level"].private else "white"
        ax.plot([row[name]], [y], look.marker, color=look.colour, markerfacecolor=face, markersize=5.5)


def _merged_arms(scene: Scene) -> tuple[list[str], np.ndarray, np.ndarray | None]:
    """Names and shares of at most as many arms as there are colours: the best ones, and all others together."""
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


def _policy_legend(figure: Figure, shown: list[Look], width: float, extra: Mapping[str, Line2D] | None = None) -> None:
    handles = {look.label: Line2D([], [], color=look.colour, marker=look.marker) for look in dict.fromkeys(shown)}
    _legend(figure, {**handles, **(extra or {})}, width)


def _legend(figure: Figure, handles: Mapping[str, Any], width: float) -> None:
    """Above the axes, in as many columns as fit."""
    labels = [_plain(label, int((width - 0.55) / 0.082)) for label in handles]
    widest = max(len(label) for label in labels) * 0.082 + 0.55
    columns = max(1, min(len(handles), int(width / widest)))
    figure.legend(list(handles.values()), labels, loc="outside upper left", ncols=columns, borderaxespad=0.2)


def _plain(text: str, length: int) -> str:
    """Users' text as it is: no mathematics between dollar signs, and no longer than there is room for."""
    text = text if len(text) <= length else text[: length - 1] + "…"
    return text.replace("$", r"\$")
