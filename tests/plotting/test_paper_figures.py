"""Figures for papers: several results on one pair of axes, columns, and the numbers behind them."""

from __future__ import annotations

import io
import shutil
import subprocess

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_pgf import FigureCanvasPgf
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from dpbandits import ZCDP, simulate
from dpbandits.environments import Bernoulli
from dpbandits.errors import ArgumentError
from dpbandits.papers.concentrated import AdaCUCB
from dpbandits.plotting.behind import Behind
from dpbandits.plotting.drawing import blank_axes
from dpbandits.plotting.ends import end_labels, label_end
from dpbandits.simulation import Result


@pytest.fixture(scope="module")
def results() -> list[Result]:
    world = Bernoulli([0.9, 0.1])
    private = [AdaCUCB(2, budget=ZCDP(rho)) for rho in (0.1, 1.0)]
    return [
        simulate(one, world, horizon=200, runs=4, seed=1)
        for one in (private, AdaCUCB(2, budget=None))
    ]


@pytest.fixture
def drawn(results: list[Result]) -> Figure:
    ax = Result.axes("ieee")
    for one in results:
        figure = one.plot(ax=ax)
    return figure


def test_private_and_open_share_one_scale_and_no_mark(drawn: Figure, results) -> None:
    (ax,) = drawn.axes
    labels = end_labels(ax)
    assert [one.get_text() for one in labels] == [
        "AdaCUCB, 0.1-zCDP",
        "AdaCUCB, 1-zCDP",
        "AdaCUCB, no privacy",
    ]
    assert len({to_hex(one.line.get_color()) for one in labels}) == 3
    assert [one.line.get_linestyle() for one in labels] == ["-", "-", "--"]
    finals = [
        one.frame[one.frame["round"] == 200].groupby("budget", sort=False)["regret"].mean()
        for one in results
    ]
    ends = [float(np.asarray(one.line.get_ydata())[-1]) for one in labels]
    assert ends == pytest.approx(np.concatenate(finals))
    assert ax.get_ylim()[1] >= max(ends)


def test_labels_of_lines_that_end_together_keep_apart_and_inside() -> None:
    ax = blank_axes("ieee")
    for y in (1.0, 1.001, 1.002, 5.0, np.nan):
        (line,) = ax.plot([0.0, 1.0], [0.0, y])
        label_end(line, f"a line to {y}")
    figure = ax.figure
    figure.savefig(io.BytesIO(), format="png", dpi=figure.dpi)
    renderer = figure.canvas.get_renderer()
    boxes = [super(type(one), one).get_tightbbox(renderer) for one in end_labels(ax)]
    texts = [matplotlib.text.Text.get_window_extent(one, renderer) for one in end_labels(ax)]
    assert all(box.x1 <= figure.bbox.x1 + 1 for box in boxes)
    for i, one in enumerate(texts):
        assert one.x0 > ax.bbox.x1
        assert not any(one.overlaps(other) for other in texts[:i])
    # the one that ends alone stays where its line ends
    (x, y), alone = end_labels(ax)[3].xy, texts[3]
    assert (alone.y0 + alone.y1) / 2 == pytest.approx(ax.transData.transform((x, y))[1], abs=2.5)


# IEEEtran, acmart (sigconf) and neurips.sty: \columnwidth and \textwidth in TeX points.
@pytest.mark.parametrize(
    ("style", "points"),
    [
        *(("ieee", 252.0), ("ieee-wide", 516.0)),
        *(("acm", 241.147), ("acm-wide", 506.295), ("neurips", 397.485)),
    ],
)
def test_a_figure_is_as_wide_as_a_column(style: str, points: float, results) -> None:
    assert Result.axes(style).figure.get_figwidth() == pytest.approx(points / 72.27)
    panels = results[0].plot(style=style)
    assert panels.get_figwidth() == Result.axes(style).figure.get_figwidth()
    assert panels.axes[0].get_xticklabels()[0].get_fontfamily() == ["STIXGeneral"]


def test_pdf_has_the_fonts_that_publishers_take(drawn: Figure) -> None:
    written = io.BytesIO()
    drawn.savefig(written, format="pdf")
    assert b"/Type3" not in written.getvalue()
    assert b"STIXGeneral" in written.getvalue()


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no LaTeX")
def test_a_column_in_latex_holds_the_figure(drawn: Figure, tmp_path) -> None:
    drawn.savefig(tmp_path / "a.pgf")
    with matplotlib.rc_context(drawn.look):  # type: ignore[attr-defined]
        renderer = FigureCanvasPgf(drawn).get_renderer()
        ends = matplotlib.text.Text.get_window_extent
        texts = [ends(one, renderer) for one in end_labels(drawn.axes[0])]
    assert all(one.x1 <= drawn.bbox.x1 + 1 for one in texts)
    drawn.savefig(tmp_path / "b.pdf")
    begin = r"\documentclass{article}\usepackage{pgf,graphicx}\textwidth252pt\begin{document}"
    shown = r"\noindent\input{a.pgf}\par\noindent\includegraphics{b.pdf}\end{document}"
    (tmp_path / "paper.tex").write_text(begin + shown)
    command = ["pdflatex", "-interaction=batchmode", "paper.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert (tmp_path / "paper.pdf").exists()
    assert "Overfull" not in (tmp_path / "paper.log").read_text()


def test_numbers_behind_are_those_of_all_results(drawn: Figure, results, tmp_path) -> None:
    read = pd.read_csv(drawn.save_data(tmp_path / "a.csv"))
    told = pd.concat([one.summary() for one in results], ignore_index=True)
    for name in ("round", "mean", "low", "high"):
        np.testing.assert_allclose(read[name], told[name], rtol=1e-12)
    assert read["budget"].unique().tolist() == ["0.1-zCDP", "1-zCDP", "no privacy"]
    wide = pd.read_csv(drawn.save_data(tmp_path / "a.dat"), sep=" ")
    assert wide["round"].is_monotonic_increasing
    one = read[read["budget"] == "no privacy"]
    column = wide["bernoulli-2-arms-adacucb-no-privacy-high"]
    np.testing.assert_allclose(column, one["high"], rtol=1e-12)
    assert wide.shape == (read["round"].nunique(), 1 + 3 * 3)


def test_names_of_rows_are_safe_for_tex(tmp_path) -> None:
    table = pd.DataFrame({"policy": ["a_b {50 %}"], "rate": [0.5], "rate_low": [np.nan]})
    written = Behind(table).save(tmp_path / "a.dat").read_text()
    assert written == "name rate rate-low\n{a b  50   } 0.5 nan\n"


def test_wrong_arguments_are_refused(results, tmp_path) -> None:
    with pytest.raises(ArgumentError, match=r"style must be one of page, ieee, .*, got 'nature'"):
        results[0].plot(style="nature")
    with pytest.raises(ArgumentError, match="ax must not be given together with bounds or width"):
        results[0].plot(ax=Result.axes(), width=3.0)
    two = Result.combined(
        [
            results[1],
            simulate(AdaCUCB(2, budget=None), Bernoulli([0.5, 0.1]), horizon=200, runs=4, seed=1),
        ]
    )
    with pytest.raises(
        ArgumentError,
        match="ax must be given only for results of one environment, got results of 2",
    ):
        two.plot(ax=Result.axes())
    with pytest.raises(ArgumentError, match=r"path must end in \.csv or \.dat, got 'a.txt'"):
        results[0].plot().save_data(tmp_path / "a.txt")
    with pytest.raises(ArgumentError, match="figure must show numbers"):
        Result.axes().figure.save_data(tmp_path / "a.csv")
