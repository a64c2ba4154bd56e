"""Figures on dark screens, and how often they are drawn."""

from __future__ import annotations

from io import BytesIO
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from dpbandits.plotting.dark import DARK
from dpbandits.plotting.drawing import empty_figure, png, svg
from dpbandits.plotting.looks import INK, PAPER, SOFT
from dpbandits.plotting.styles import COLOURS


def luminance(colour: str) -> float:
    """As WCAG 2.1 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colour", [*(one.lower() for one in COLOURS), INK, SOFT])
def test_dark_colours_can_be_seen_on_dark_paper(colour: str) -> None:
    # WCAG asks for 3 of graphics, and for 4.5 of text
    least = 4.5 if colour in (INK, SOFT) else 3.0
    assert (luminance(DARK[colour]) + 0.05) / (luminance(DARK[PAPER]) + 0.05) >= least


def test_no_two_policies_have_one_dark_colour() -> None:
    assert len({DARK[one.lower()] for one in COLOURS}) == len(COLOURS)


def small() -> Figure:
    figure = empty_figure(3.0, 2.0)
    figure.add_subplot().plot([0.0, 1.0], color=COLOURS[0])
    return figure


def test_rules_name_colours_that_the_figure_has() -> None:
    root = ElementTree.fromstring(svg(small()))
    style = "".join(one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}style"))
    drawn = [one.get("style", "") for one in root.iter()]
    assert f'[style*="stroke: {COLOURS[0].lower()}"]{{stroke:{DARK[COLOURS[0].lower()]}' in style
    assert COLOURS[1].lower() not in style
    assert any(f"fill: {PAPER}" in one for one in drawn)
    assert any(f"stroke: {COLOURS[0].lower()}" in one for one in drawn)


@pytest.mark.parametrize("save", [svg, png])
def test_saving_draws_once(save, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    draw = Figure.draw
    monkeypatch.setattr(
        Figure, "draw", lambda self, renderer: calls.append(1) or draw(self, renderer)
    )
    save(small())
    assert len(calls) == 1
    plain = Figure(layout="constrained")
    plain.add_subplot()
    plain.savefig(BytesIO(), format="png")
    assert len(calls) == 3, "matplotlib alone draws twice"
