"""The few pieces of HTML that pages, and objects in notebooks, are made of.  Text is escaped where
it enters; only ``Html`` goes through as it is.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

NONE = "none"  # in the place of a number
_ROWS = 20  # that a notebook shows of a table


class Html(str):
    """Text that is HTML already."""


def text(value: str) -> Html:
    """Any text as HTML; a number and its percent sign stay on one line."""
    return value if isinstance(value, Html) else Html(escape(value).replace(" %", "&nbsp;%"))


def tag(name: str, /, *content: str, **attributes: str) -> Html:
    """An element; ``class_`` stands for ``class``."""
    return Html(f"<{name}{_written(attributes)}>{''.join(text(part) for part in content)}</{name}>")


def void(name: str, /, **attributes: str) -> Html:
    """An element that has no content and no end, such as ``img``."""
    return Html(f"<{name}{_written(attributes)}>")


def written(value: float) -> str:
    """A number in a table."""
    return NONE if math.isnan(value) else f"{value:.4g}"


_STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --soft: #52606d; --rule: #d9dee4; --paper: #fff;
  --accent: #0b4f7d; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --soft: #9aa5b1; --rule: #3e4c59; --paper: #161b22; --accent: #6cb2e4; }
}
body { max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink);
  background: var(--paper); overflow-wrap: anywhere;
  font: 15px/1.5 -apple-system, "Segoe UI", Roboto, Arial, "Liberation Sans", sans-serif; }
h1 { font-size: 1.7rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 1.4rem 0 .4rem; border-bottom: 2px solid var(--accent); }
code { font-size: .9em; color: var(--soft); }
ul { margin: .3rem 0; padding-left: 1.2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--rule); }
th, :not(.facts) > tbody td + td { overflow-wrap: normal; }
.facts td:first-child { width: 11rem; font-weight: 600; }
.plot { display: grid; grid-template-columns: fit-content(12rem) 1fr; gap: .35rem .8rem;
  margin: .8rem 0; }
.plot p { position: relative; margin: 0; min-height: 1.3rem; border-left: 1px solid var(--rule);
  border-right: 1px solid var(--rule); }
.plot p > * { position: absolute; top: 50%; print-color-adjust: exact;
  -webkit-print-color-adjust: exact; }
.plot i { height: 3px; margin-top: -1.5px; background: var(--accent); }
.plot b { width: 9px; height: 9px; margin: -4.5px 0 0 -4.5px; border-radius: 50%;
  background: var(--accent); }
.plot u { top: 0; bottom: 0; border-left: 1px dashed var(--soft); }
.plot .axis { display: flex; justify-content: space-between; color: var(--soft); border: 0; }
.plot .axis > * { position: static; }
@media (max-width: 640px) {
  table { font-size: .8rem; }
  th, td { padding-right: .4rem; }
  .facts td:first-child { width: 6.5rem; }
}
@page { margin: 14mm; }
@media print {
  body { max-width: none; margin: 0; padding: 0; font-size: 8pt; line-height: 1.25; columns: 2;
    column-gap: 6mm; }
  h1, h1 + p { column-span: all; }
  h2 { margin-top: .5rem; break-after: avoid; }
  th, td { padding: .1rem .4rem .1rem 0; }
  .facts td:first-child { width: 6.5rem; }
  tr, li, .plot { break-inside: avoid; }
}
"""


def page(title: str, *content: str) -> Html:
    """A page of its own, which needs no other file and prints."""
    return document(title, tag("style", Html(_STYLE)), tag("body", *content))


def document(title: str, style: Html, body: Html) -> Html:
    """A whole page, as wide as its screen."""
    wide = void("meta", name="viewport", content="width=device-width, initial-scale=1")
    head = tag("head", void("meta", charset="utf-8"), tag("title", title), style, wide)
    return Html(f"<!DOCTYPE html>{tag('html', head, body, lang='en')}")


def glance(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> Html:
    """An object at one glance, as a notebook shows it: a title, a table in the notebook's own
    looks, of many rows the first, and a sentence below.

    >>> glance("Arms", ["<arm>"], [["0"]])[:65]
    '<div><b>Arms</b><table><thead><tr><th>&lt;arm&gt;</th></tr></thea'
    """
    rows = list(rows)
    # Notebooks write to the right, which is for numbers.
    numbers = [any(heads) and _are_numbers(column) for column in zip(*rows, strict=True)]
    sides = ["" if is_number else "text-align: left" for is_number in numbers]

    def row(name: str, cells: Sequence[str]) -> Html:
        sided = zip(cells, sides, strict=True)
        return tag("tr", *(tag(name, one, style=side) for one, side in sided))

    shown = [row("td", cells) for cells in rows[:_ROWS]]
    if len(rows) > _ROWS:
        more = f"and {len(rows) - _ROWS:,} more"
        shown.append(tag("tr", tag("td", more, colspan=str(len(sides)))))
    head = [tag("thead", row("th", heads))] if rows and any(heads) else []
    grid = [tag("table", *head, tag("tbody", *shown))] if rows else []
    below = [tag("div", note, style="max-width: 50em")] if note else []
    return tag("div", tag("b", title), *grid, *below)


def _are_numbers(column: Iterable[str]) -> bool:
    return all(cell[0].isdigit() or cell[0] in "-−–" or cell == NONE for cell in column if cell)


def items(sentences: Iterable[str]) -> Html:
    """A list of points."""
    return tag("ul", *(tag("li", sentence) for sentence in sentences))


class Section(NamedTuple):
    """A part of a page: points, a table and a figure; each may be empty."""

    title: str
    points: Sequence[str] = ()
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    figure: Html = Html("")

    def to_dict(self) -> dict[str, object]:
        """As data, without the figure."""
        table = {"heads": list(self.heads), "rows": [list(row) for row in self.rows]}
        return {"title": self.title, "points": list(self.points), **table}

    def html(self) -> Html:
        """On a page of its own."""
        found = [tag("h2", self.title), *([items(self.points)] if self.points else [])]
        if self.rows:
            head = [_row("th", self.heads)] if self.heads else []
            cells = [_row("td", row) for row in self.rows]
            found.append(tag("table", *head, *cells, class_="" if self.heads else "facts"))
        return tag("section", *found, self.figure)

    def glance(self) -> Html:
        """In a notebook."""
        table = glance(self.title, self.heads, self.rows)
        return Html(table + (items(self.points) if self.points else ""))

    def markdown(self) -> str:
        """As Markdown, without the figure."""
        parts = [f"## {self.title}"]
        if self.points:
            parts.append("\n".join(f"* {_plain(point)}" for point in self.points))
        if self.rows:
            heads = self.heads or ["", ""]
            grid = [heads, ["---"] * len(heads), *self.rows]
            parts.append("\n".join(f"| {' | '.join(map(_plain, row))} |" for row in grid))
        return "\n\n".join(parts)


def _plain(words: str) -> str:
    """Text as Markdown that means nothing but itself."""
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", words)


def _row(name: str, cells: Sequence[str]) -> Html:
    return tag("tr", *(tag(name, cell) for cell in cells))


def plot(names: Sequence[str], lines: Sequence[tuple[float, float, float]], alt: str) -> Html:
    """Intervals below each other, each with a dot, from (low, dot, high); nan where there is
    none.  A dashed line is at 0, if that is inside.
    """
    drawn = [line for line in lines if not math.isnan(line[0])]
    if not drawn:
        return Html("")
    least, most = min(line[0] for line in drawn), max(line[2] for line in drawn)
    step = 10.0 ** math.floor(math.log10(max(most - least, 1e-12)))
    first = math.floor(least / step)
    start, end = step * first, step * max(math.ceil(most / step), first + 1)

    def at(value: float) -> str:
        return f"{100.0 * (value - start) / (end - start):.2f}%"

    zero = tag("u", style=f"left: {at(0.0)}") if start < 0.0 < end else Html("")
    shown = []
    for name, (low, dot, high) in zip(names, lines, strict=True):
        marks = [zero]
        if not math.isnan(low):
            marks.append(tag("i", style=f"left: {at(low)}; right: calc(100% - {at(high)})"))
            if not math.isnan(dot):
                marks.append(tag("b", style=f"left: {at(min(max(dot, start), end))}"))
        shown += [tag("span", name), tag("p", *marks)]
    ends = tag("p", tag("span", f"{start:.6g}"), tag("span", f"{end:.6g}"), class_="axis")
    return tag("div", *shown, tag("span"), ends, class_="plot", role="img", aria_label=alt)


def picture(wide: bytes, narrow: bytes, alt: str, *, half: bool = False) -> Html:
    """An SVG within the page, with a narrow one for phones, and for paper on ``half`` the width."""
    media = f"screen and (max-width: 640px){', print' if half else ''}"
    phone = {"media": media, "srcset": _data(narrow)}
    return tag("picture", void("source", **phone), void("img", src=_data(wide), alt=alt))


def table(
    caption: str,
    heads: Sequence[str],
    groups: Iterable[tuple[str, Sequence[Sequence[str]]]],
    words: Iterable[int] = (),
) -> Html:
    """Rows in groups under a common first cell.  All columns but two, and ``words``, hold
    numbers.
    """
    kinds = ["", "budget"] + ["n"] * (len(heads) - 2)
    for column in words:
        kinds[0], kinds[column] = "budget", "words"
    names = zip(heads, kinds, strict=True)
    head = tag("tr", *(tag("th", name, scope="col", class_=kind) for name, kind in names))
    body = []
    for first, rows in groups:
        lead = [tag("th", first, scope="rowgroup", class_=kinds[0], rowspan=str(len(rows)))]
        for row in rows:
            pairs = zip(row, kinds[1:], strict=True)
            cells = [tag("td", cell, class_=kind) for cell, kind in pairs]
            body.append(tag("tr", *lead, *cells, class_="first" if lead else ""))
            lead = []
    parts = [tag("caption", caption), tag("thead", head), tag("tbody", *body)]
    return tag("table", *parts, style=f"--columns: {_columns(len(heads) - 1)}")


def _columns(cells: int) -> int:
    """The number of cells side by side on a phone, below the first one of their row: all, or rows
    of equal length.

    >>> [_columns(cells) for cells in (1, 4, 6, 7, 13)]
    [1, 4, 6, 4, 5]
    """
    return math.ceil(cells / math.ceil(cells / 6))


def _data(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def _written(attributes: dict[str, str]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
        if value
    )
