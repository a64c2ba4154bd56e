"""``dpbandits reproduce``, with a report, and with a kill in the middle."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import dpbandits.report
from dpbandits.cli import app
from dpbandits.report.claims import RULES
from dpbandits.simulation import Result as Simulated
from dpbandits.studies import cells

SOURCE = Path(dpbandits.report.__path__[0]).parents[1]
SMALL = ["--quick", "--runs", "4", "--horizon", "3000", "--jobs", "1"]

# The report is left out: it has tests of its own, and takes longest.
PROGRAM = """
import dpbandits.report
dpbandits.report.write = lambda folder, record, n_jobs: (folder / "report.html").write_text("x")
from dpbandits.cli import main
main()
"""


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def started(folder: Path, output: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        "reproduce",
        "concentrated",
        *SMALL,
        "--output",
        output,
    ]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finished_cells(folder: Path) -> list[Path]:
    return sorted(folder.glob(".dpbandits-*.cells/*.parquet"))


@pytest.mark.long
def test_a_killed_study_continues_with_what_is_missing(tmp_path: Path) -> None:
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    broken.mkdir()
    whole.mkdir()
    process = started(broken, "out")
    deadline = time.monotonic() + 60
    while (
        len(finished_cells(broken)) < 20 and process.poll() is None and time.monotonic() < deadline
    ):
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = finished_cells(broken)
    assert 20 <= len(kept) < 43, "the kill came too late or the study was too slow"
    assert not (broken / "out").exists()

    times = {path.name: path.stat().st_mtime_ns for path in kept}
    again = started(broken, "out")
    unchanged = None
    while again.poll() is None:
        with contextlib.suppress(FileNotFoundError):  # the study removes them at its end
            left = {
                path.name: path.stat().st_mtime_ns
                for path in finished_cells(broken)
                if path.name in times
            }
            unchanged = left or unchanged
        time.sleep(0.05)
    assert again.returncode == 0, again.communicate()[1]
    assert unchanged is None or unchanged.items() <= times.items()  # nothing was computed twice
    unbroken = started(whole, "out")
    unbroken.communicate()
    one, other = (Simulated.load(folder / "out" / "results.parquet") for folder in (broken, whole))
    pd.testing.assert_frame_equal(one.frame, other.frame)
    pd.testing.assert_frame_equal(one.runs, other.runs)
    assert (broken / "out" / "claims.csv").read_text() == (whole / "out" / "claims.csv").read_text()
    assert list(broken.glob(".*")) == []  # what was kept is gone


@pytest.mark.long
def test_two_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    both = [started(tmp_path, output) for output in ("one", "other")]
    for process in both:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    one, other = (
        Simulated.load(tmp_path / output / "results.parquet") for output in ("one", "other")
    )
    pd.testing.assert_frame_equal(one.frame, other.frame)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other"]


class Headings(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._inside = tag == "h2"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found.append(data)
            self._inside = False


@pytest.mark.long
@pytest.mark.parametrize(
    "paper",
    [
        "concentrated",
        *(pytest.param(p, marks=pytest.mark.long) for p in ("adversarial", "dgs", "shuffle")),
    ],
)
def test_a_small_study_leaves_a_report_that_begins_with_its_claims(
    paper: str, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    found = call(
        "reproduce",
        paper,
        "--quick",
        "--runs",
        2,
        "--horizon",
        150,
        "--jobs",
        1,
        "--output",
        output,
    )
    assert found.exit_code == 0, found.output  # whatever the verdicts
    claims = pd.read_csv(output / "claims.csv")
    assert set(claims["verdict"]) <= set(RULES)
    fail = int(claims["verdict"].eq("does not hold").sum())
    assert f"Of {len(claims)} claims" in found.output
    assert f"{fail} {'does' if fail == 1 else 'do'} not hold" in found.output
    assert Headings((output / "report.html").read_text("utf-8")).found[:3] == [
        "Claims",
        "Figures to the claims",
        "Findings in detail",
    ]
    assert {path.suffix for path in (output / "figures").iterdir()} == {
        ".svg",
        ".png",
        ".csv",
        ".dat",
    }
    assert any(path.stem.startswith("figure-") for path in (output / "figures").iterdir())
    assert {path.name for path in output.iterdir()} >= {
        "results.parquet",
        "summary.csv",
        "manifest.json",
    }
    again = call("reproduce", paper, "--quick", "--output", output)
    assert again.exit_code == 2
    assert "--force" in again.output
    assert list(tmp_path.iterdir()) == [output]


def test_an_interrupt_says_that_the_same_command_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate, calls = cells.simulate, []

    def interrupted(*args: object, **options: object) -> Simulated:
        calls.append(args)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return simulate(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(cells, "simulate", interrupted)
    found = call("reproduce", "concentrated", *SMALL, "--output", tmp_path / "out")
    assert found.exit_code == 130
    assert "the same command continues" in found.output
    assert len(finished_cells(tmp_path)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nobody"],
            "there is no 'nobody'; known: adversarial, concentrated, dgs, equal-budget, glm, shuffle",
        ),
        (["concentrated", "--runs", "0"], "--runs"),
        (["dgs", "--quick", "--data", "nowhere"], "folder must hold artists.dat"),
        (
            ["adversarial", "--quick", "--data", "nowhere"],
            "data must name a folder with the files of MovieLens or Last.fm",
        ),
    ],
)
@pytest.mark.long
def test_wrong_arguments_end_in_a_sentence(arguments: list[str], message: str) -> None:
    found = call("reproduce", *arguments)
    assert found.exit_code == 2
    assert message in " ".join(found.output.replace("│", " ").split())
