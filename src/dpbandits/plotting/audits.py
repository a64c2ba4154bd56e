"""The figure of an audit."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
import pandas as pd

from .behind import Behind
from .drawing import DASHES, Drawing, empty_figure, folded, is_narrow
from .looks import INK, SOFT, look_of
from .numbers import number
from .styles import mark

_WIDTH = 6.4  # inches, of a page


def audit_bars(
    scores: Sequence[tuple[str, float, bool]],
    symbol: str,
    *,
    claimed: float,
    possible: float,
    title: str,
    width: float | None = None,
    style: str | None = None,
) -> Drawing:
    """Bounds of scores (name, bound, whether it counts), and lines at the two other numbers."""
    usual, settings = look_of(style or "page")
    with matplotlib.rc_context(settings):
        wide = width or (usual if style else _WIDTH)
        figure = _bars(scores, symbol, claimed, possible, title, wide)
    names = ["score", "bound", "counted"]
    figure.behind = Behind(pd.DataFrame(list(scores), columns=names).astype({"counted": str}))
    return figure


def _bars(
    scores: Sequence[tuple[str, float, bool]],
    symbol: str,
    claimed: float,
    possible: float,
    title: str,
    width: float,
) -> Drawing:
    figure = empty_figure(width, 1.2 + 0.3 * len(scores))
    ax = figure.add_subplot()
    for place, (_, bound, counts) in enumerate(scores):
        beyond = counts and bound > claimed
        colour = mark(1).colour if beyond else mark(0).colour if counts else "#9aa5b1"
        ax.barh(-place, bound, height=0.6, color=colour)
        ax.annotate(number(bound), (bound, -place), (4, 0), textcoords="offset points", va="center")
    ax.axvline(claimed, color=INK, label=f"claimed: {number(claimed)}")
    if possible == possible:
        told = f"to be expected of the best attack: {number(possible)}"
        ax.axvline(possible, color=SOFT, linestyle=DASHES, label=told)
    named = [name if counts else f"{name} (not counted)" for name, _, counts in scores]
    ax.set_yticks([-place for place in range(len(scores))], named)
    ax.set_xlim(0.0, 1.15 * max(claimed, *(bound for _, bound, _ in scores)))
    ax.set_xlabel(f"{symbol} is at least")
    ax.grid(axis="y", visible=False)
    figure.suptitle(
        folded(title, int(width / 0.085), 3),
        x=0.01,
        ha="left",
        fontsize=matplotlib.rcParams["axes.titlesize"],
    )
    figure.legend(loc="outside lower right", ncols=1 if is_narrow(width) else 2)
    return figure
