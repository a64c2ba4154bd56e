"""Sheet: the figures of a page, drawn by one or more processes, and marks of its policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import matplotlib
import pandas as pd

from ..html import Html, picture, tag, text
from ..plotting.behind import Behind
from ..plotting.drawing import Drawing, png, svg
from ..plotting.looks import NARROW, WIDE
from ..plotting.styles import Styles
from ..simulation.processes import shared
from . import figures

DASH = (
    "A dash means that no two runs differ, or that the interval is narrower than the digits shown."
)

_USUAL = 0.5  # seconds that a figure takes in one width


class _Ordered(NamedTuple):
    """A figure that has a place in the page, and is not drawn yet."""

    place: Html  # what stands for it
    name: str  # of its files
    draw: Callable[..., Drawing]
    alt: str
    half: bool


class _Drawn(NamedTuple):
    """A figure in one width."""

    svg: bytes
    png: bytes = b""
    behind: Behind | None = None


@dataclass(frozen=True)
class _Drawings:
    """Figures as a task, each of which has two widths."""

    draws: tuple[Callable[..., Drawing], ...]

    def __call__(self, group: int, number: int) -> _Drawn:
        with matplotlib.rc_context():
            matplotlib.rcdefaults()  # whatever a process has set: all draw alike
            figure = self.draws[group](width=(WIDE, NARROW)[number])
            drawn = _Drawn(svg(figure))
            return drawn if number else drawn._replace(png=png(figure), behind=figure.behind)


class Sheet:
    """Figures, marks and rows of one page.

    Attributes:
        gallery: the folder of its figures.
        styles: the style of each policy.
    """

    def __init__(self, gallery: Path, styles: Styles) -> None:
        self.gallery, self.styles = gallery, styles
        self._ordered: list[_Ordered] = []

    def marked(self, policy: str) -> Html:
        """The label of a policy, after its mark."""
        style = self.styles[policy]
        return Html(figures.swatch(style) + text(style.label))

    def grouped(
        self, rows: pd.DataFrame, cells: Callable[[pd.Series], list[str]]
    ) -> Iterator[tuple[Html, list[list[str]]]]:
        """Rows of a table under the policy that they are of."""
        for policy, group in rows.groupby("policy", sort=False):
            yield self.marked(str(policy)), [cells(row) for _, row in group.iterrows()]

    def figure(
        self,
        name: str,
        heading: str,
        draw: Callable[..., Drawing],
        alt: str,
        caption: str,
        *,
        half: bool = False,
        prefix: str = "",
    ) -> Html:
        """A place for a figure under its heading in the page, on paper on ``half`` its width.

        ``draw(width=inches)`` is called by ``filled``, maybe in another process.  Names of files
        begin with ``prefix``.
        """
        # Texts of users are escaped, so they cannot contain this.
        place = Html(f"<!--figure {len(self._ordered)}-->")
        self._ordered.append(_Ordered(place, f"{prefix}{name}", draw, alt, half))
        figure = tag("figure", place, tag("figcaption", caption))
        return tag("div", *([tag("h3", heading)] if heading else []), figure, class_="shown")

    def filled(self, page: str, n_jobs: int = 1) -> str:
        """Draw all figures into their places in the page, and into files."""
        task = _Drawings(tuple(one.draw for one in self._ordered))
        svgs: dict[tuple[int, int], bytes] = {}
        for piece, several in shared(task, [2] * len(self._ordered), n_jobs, _USUAL):
            for number, drawn in zip(piece.units, several, strict=True):
                svgs[piece.group, number] = drawn.svg
                if drawn.behind is not None:
                    self._keep(self._ordered[piece.group].name, drawn, drawn.behind)
        for group, one in enumerate(self._ordered):
            shown = picture(svgs[group, 0], svgs[group, 1], one.alt, half=one.half)
            page = page.replace(one.place, shown)
        return page

    def _keep(self, name: str, wide: _Drawn, behind: Behind) -> None:
        """Write the files of a figure."""
        (self.gallery / f"{name}.svg").write_bytes(wide.svg)
        (self.gallery / f"{name}.png").write_bytes(wide.png)
        for ending in (".csv", ".dat"):
            behind.save(self.gallery / f"{name}{ending}")
