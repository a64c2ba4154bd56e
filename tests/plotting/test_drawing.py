"""Axes whose labels say where their ticks are, and panels that keep apart."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

from dpbandits.plotting.drawing import TickLabels, empty_figure, grouped_panels
from dpbandits.plotting.looks import STYLE
from dpbandits.plotting.numbers import number, percent, places_for


@pytest.mark.parametrize("start", [0.45, 0.0, -0.2, 0.9])
@pytest.mark.parametrize("step", [0.1, 0.05, 0.025, 0.02, 0.0025])
def test_labels_are_as_far_apart_as_their_ticks(start: float, step: float) -> None:
    ticks = start + step * np.arange(7)
    shares = TickLabels(percent, unit=0.01).format_ticks(ticks)
    read = [float(label.removesuffix(" %")) / 100.0 for label in shares]
    assert read == pytest.approx(list(ticks), abs=1e-9)
    plain = [float(label.replace("−", "-")) for label in TickLabels().format_ticks(ticks)]
    assert plain == pytest.approx(list(ticks), abs=1e-9)
    assert len({len(label.partition(".")[2]) for label in plain and shares}) == 1


def test_no_more_decimals_than_ticks_need() -> None:
    assert TickLabels(percent, unit=0.01).format_ticks([0.4, 0.6, 0.8]) == ["40 %", "60 %", "80 %"]
    assert TickLabels().format_ticks([0.0, 20_000.0]) == ["0", "20,000"]
    assert TickLabels().format_ticks([10_000.0, 10_002.5]) == ["10,000.0", "10,002.5"]
    assert number(10_002.5, 4) == "10,002", "which would stand beside a tick at 10,002.5"
    assert places_for([]) == places_for([3.0]) == 0


def gap(height_between: float | None) -> float:
    """Points between the lowest tick label of a row and the highest title of the next."""
    figure, groups = grouped_panels([3, 3], 9.6, height=2.3)
    if height_between is not None:
        figure.get_layout_engine().set(h_pad=height_between)
    for axes in groups:
        for ax in axes:
            ax.set_title("0.1-zCDP")
            ax.plot([1.0, 10.0], [0.0, 1.0])
    figure.draw_without_rendering()
    below = min(label.get_window_extent().y0 for label in groups[0][0].get_xticklabels())
    # of the style of figures: titles stand to the left
    above = max(ax._left_title.get_window_extent().y1 for ax in groups[1])
    return float(below - above) * 72 / figure.dpi


def test_titles_of_a_row_keep_off_the_ticks_above() -> None:
    with matplotlib.rc_context(STYLE):
        assert gap(None) > 8.0
        assert gap(3 / 72) < 7.0, "matplotlib's own distance"


def test_an_axis_of_a_figure_takes_the_labels() -> None:
    with matplotlib.rc_context(STYLE):
        figure = empty_figure(5.0, 3.0)
        ax = figure.add_subplot()
        ax.set_xlim(0.44, 0.63)
        ax.xaxis.set_major_locator(matplotlib.ticker.MultipleLocator(0.025))
        ax.xaxis.set_major_formatter(TickLabels(percent, unit=0.01))
        figure.draw_without_rendering()
        shown = [label.get_text() for label in ax.get_xticklabels()]
    assert {"45.0 %", "47.5 %", "50.0 %", "52.5 %"} <= set(shown)
