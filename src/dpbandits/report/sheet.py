"""Sheet: draws the figures of a page, and marks its policies alike everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

from ..html import Html, picture, tag, text
from ..plotting.drawing import Drawing, png, svg
from ..plotting.looks import NARROW, WIDE
from ..plotting.styles import Styles
from . import figures

DASH = (
    "A dash means that no two runs differ, or that the interval is narrower than the digits shown."
)


class Sheet:
    """Figures, marks and rows of one page.

    Attributes:
        gallery: the folder of its figures.
        styles: the style of each policy.
    """

    def __init__(self, gallery: Path, styles: Styles) -> None:
        self.gallery, self.styles = gallery, styles

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
        draw: Callable[[float], Drawing],
        alt: str,
        caption: str,
        *,
        half: bool = False,
        prefix: str = "",
    ) -> Html:
        """A figure under its heading in the page, on paper on ``half`` its width, and in files
        whose names begin with ``prefix``.
        """
        wide = draw(WIDE)
        drawn = svg(wide)
        (self.gallery / f"{prefix}{name}.svg").write_bytes(drawn)
        (self.gallery / f"{prefix}{name}.png").write_bytes(png(wide))
        for ending in ("csv", "dat"):
            wide.save_data(self.gallery / f"{prefix}{name}.{ending}")
        narrow = svg(draw(NARROW))
        shown = picture(drawn, narrow, alt, half=half)
        figure = tag("figure", shown, tag("figcaption", caption))
        return tag("div", *([tag("h3", heading)] if heading else []), figure, class_="shown")
