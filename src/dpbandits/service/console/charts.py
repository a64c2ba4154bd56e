"""Charts of pages, as SVG that takes its colours from the style of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ...html import Html, tag
from ...privacy import Ledger
from ...privacy.meaning import percent_up
from ..results import Traffic

CURRENCIES = {"pure": "ε", "zcdp": "ρ", "rdp": "ε", "gdp": "μ²"}  # of ledgers
_WIDTH, _HEIGHT = 360.0, 210.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 350.0, 22.0, 168.0


def bar(share: float) -> Html:
    """The share of a budget that is spent, drawn and in percent."""
    words = percent_up(share)
    full = tag("rect", class_="track", width="100", height="10", rx="2")
    part = tag("rect", class_="fill", width=f"{100.0 * min(share, 1.0):.1f}", height="10", rx="2")
    drawn = tag("svg", full, part, class_="bar", viewBox="0 0 100 10", aria_hidden="true")
    return tag("span", drawn, " ", words, class_="share")


def spending(ledger: Ledger) -> Html:
    """The total of a ledger over its releases, and its limit."""
    assert ledger.meter is not None
    history, limit = ledger.history(), ledger.meter.limit
    most = max(history[-1][0], 1)
    top = max(limit, history[-1][1]) * 1.08
    path = [f"M{_LEFT:.1f} {_BOTTOM:.1f}"]
    before = 0
    for releases, total in history:
        # The first release of a line costs what the line costs.
        begins, ends = before / most, releases / most
        path.append(f"H{_across(begins):.1f}V{_up(total / top):.1f}H{_across(ends):.1f}")
        before = releases
    at = _up(limit / top)
    unit = CURRENCIES[ledger.meter.currency]
    parts = [
        *_axes([(0.0, "0"), (limit / 2 / top, f"{limit / 2:.3g}"), (limit / top, f"{limit:.3g}")]),
        *_ticks([(0.0, "0"), (0.5, f"{most / 2:,.0f}" if most > 1 else ""), (1.0, f"{most:,}")]),
        tag("path", class_="steps", d="".join(path)),
        _level("limit", at),
        _text(f"spent ({unit})", 4.0, 12.0),
        _text("releases", _RIGHT, _HEIGHT - 6.0, "end"),
        _text("budget", _RIGHT, at - 5.0, "end"),
    ]
    told = f"{ledger.spent() or 'Nothing'} is spent after {most:,} releases."
    return _chart(told, parts)


def traffic(minutes: Sequence[Traffic]) -> Html:
    """Decisions of each minute, and those of them that were recorded."""
    first, last = minutes[0].minute, minutes[-1].minute
    most = max(1.0, *(_rate(one, after, 1) for one, after in pairwise(minutes)))
    bars = []
    for one, after in pairwise(minutes):
        x, right = (_across((each.minute - first) / (last - first)) for each in (one, after))
        for kind, field in (("all", 1), ("fill", 2)):
            y = _up(_rate(one, after, field) / most)
            size = {"width": f"{0.85 * (right - x):.2f}", "height": f"{_BOTTOM - y:.2f}"}
            bars.append(tag("rect", class_=kind, x=f"{x:.2f}", y=f"{y:.2f}", **size))
    parts = [
        *_axes([(0.0, "0"), (1.0, f"{math.ceil(most):,}")]),
        *bars,
        *_ticks([(0.0, _clock(first)), (1.0, _clock(last))]),
        _text("decisions per minute", 4.0, 12.0),
        *_legend("fill", "recorded", 190.0),
        *_legend("all", "not recorded", 264.0),
        _text("UTC", (_LEFT + _RIGHT) / 2, _BOTTOM + 16.0, "middle"),
    ]
    made = minutes[-1].decisions - minutes[0].decisions
    told = f"{made:,} decisions from {_clock(first)} to {_clock(last)} UTC."
    return _chart(told, parts)


def _rate(one: Traffic, after: Traffic, field: int) -> float:
    return (after[field] - one[field]) / (after.minute - one.minute)


def _chart(told: str, parts: Sequence[Html]) -> Html:
    box = f"0 0 {_WIDTH:g} {_HEIGHT:g}"
    return tag("svg", *parts, class_="chart", viewBox=box, role="img", aria_label=told)


def _across(share: float) -> float:
    return _LEFT + share * (_RIGHT - _LEFT)


def _up(share: float) -> float:
    return _BOTTOM - share * (_BOTTOM - _TOP)


def _axes(marks: Sequence[tuple[float, str]]) -> list[Html]:
    """Horizontal lines, with numbers at the left."""
    drawn = []
    for share, words in marks:
        y = _up(share)
        drawn += [_level("rule", y), _text(words, _LEFT - 6.0, y + 4.0, "end")]
    return drawn


def _level(kind: str, y: float) -> Html:
    return tag("line", class_=kind, x1=f"{_LEFT}", x2=f"{_RIGHT}", y1=f"{y:.1f}", y2=f"{y:.1f}")


def _ticks(marks: Sequence[tuple[float, str]]) -> list[Html]:
    """Numbers below the chart."""
    anchors = {0.0: "start", 1.0: "end"}
    return [
        _text(words, _across(share), _BOTTOM + 16.0, anchors.get(share, "middle"))
        for share, words in marks
    ]


def _legend(kind: str, words: str, x: float) -> list[Html]:
    mark = tag("rect", class_=kind, x=f"{x}", y="3", width="10", height="10")
    return [mark, _text(words, x + 14.0, 12.0)]


def _text(words: str, x: float, y: float, anchor: str = "start") -> Html:
    return tag("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def _clock(minute: int) -> str:
    return f"{minute // 60 % 24:02}:{minute % 60:02}"
