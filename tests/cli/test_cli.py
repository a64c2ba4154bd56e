"""The command ``dpbandits``, in this process and in others that are interrupted and killed."""

from __future__ import annotations

import html
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text
from typer.testing import CliRunner, Result

import dpbandits.report
import dpbandits.studies
import dpbandits.studies.cells
from dpbandits import __version__
from dpbandits.cli import app
from dpbandits.cli.progress import Pace, StudyProgress
from dpbandits.policies import DEFAULTS, registered
from dpbandits.theory import BOUNDS

SOURCE = Path(dpbandits.report.__path__[0]).parents[1]

STUDY = """
title = "Two arms"
runs = 4
horizon = 300
budgets.zcdp = [0.5]

[[environments]]
kind = "Bernoulli"
means = [0.9, 0.1]

[[policies]]
kind = "AdaCUCB"
"""

SLOW = """
title = "Four arms"
runs = 5
horizon = 100_000
budgets.zcdp = [0.1, 0.2, 0.5, 1.0]

[[environments]]
kind = "Beta"
means = [0.9, 0.1, 0.5, 0.3]

[[environments]]
kind = "DoctorReplay"

[[policies]]
kind = "AdaCUCB"

[[policies]]
kind = "AdaCUCB"
forget = false
"""

# In place of the true report, which would make these tests slow; {} is what happens while it is
# written. A runner in the background may have told its children to ignore the interrupt.
PROGRAM = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import dpbandits.report
def write(folder, record, n_jobs):
    (folder / "report.html").write_text("half")
    {}
dpbandits.report.write = write
from dpbandits.cli import main
main()
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(
        dpbandits.report, "write", lambda folder, *_: (folder / "report.html").write_text("x")
    )
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE)}


def started(during: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM.format(during), *arguments]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finished_cells(folder: Path) -> list[Path]:
    return sorted(folder.glob(".dpbandits-*.cells/*.parquet"))


def wait_for(folder: Path, pattern: str) -> Path:
    for _ in range(600):
        found = list(folder.glob(pattern))
        if found:
            return found[0]
        time.sleep(0.1)
    raise AssertionError(f"no {pattern} in {list(folder.iterdir())}")


# What there is -------------------------------------------------------------------------------


def test_list_shows_every_policy() -> None:
    rows = json.loads(call("list", "--json").stdout)
    assert [row["policy"] for row in rows] == list(registered())
    ada = next(row for row in rows if row["policy"] == "AdaCUCB")
    assert ada["budgets"] == ["zcdp", "approx", "rdp", "gdp"]
    assert (ada["trust_model"], ada["protects"], ada["view"]) == (
        "central",
        "rewards",
        "interactive",
    )
    assert "Azize & Basu (2024)" in ada["source"]
    assert ada["default_for"] == []
    merged = next(row for row in rows if row["policy"] == "MergedIMED")
    assert merged["default_for"] == ["finite arms, central trust"]


def test_the_list_fits_a_terminal() -> None:
    shown = CliRunner().invoke(app, ["list"], env={"COLUMNS": "80", "FORCE_COLOR": "1"})
    lines = Text.from_ansi(shown.stdout).plain.splitlines()
    assert max(map(len, lines)) <= 80
    end = lines.index("")
    starts = [line.split()[0] for line in lines[1:end] if not line.startswith(" ")]
    assert starts == list(registered())
    assert end <= 2 * len(starts) + 1
    marked = {line.split()[0] for line in lines[1:end] if " * " in line}
    assert marked == {one.policy for one in DEFAULTS}
    assert lines[end + 1] == "* the default for this setting and trust model"
    assert [line.rpartition(": ")[2] for line in lines[end + 2 :]] == [one.call for one in DEFAULTS]
    # a file has room for the whole line
    assert "Auer, Cesa-Bianchi & Fischer (2002)" in call("list").stdout


@pytest.mark.parametrize("arguments", [["--help"], ["plan", "-h"], ["pln"], ["--version"]])
def test_help_and_typos_compute_nothing(arguments: list[str]) -> None:
    """They import no library of numbers, which takes most of a second."""
    program = (
        "import sys; from dpbandits.cli import app\n"
        f"try: app({arguments})\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True
    )
    assert done.returncode == (2 if arguments == ["pln"] else 0)
    assert not set(done.stderr.split()) & {"numpy", "numba", "scipy", "pandas", "pyarrow"}


def test_a_pipe_gets_no_spaces_at_the_ends_of_lines() -> None:
    lines = call("list").stdout.splitlines()
    assert len(lines) > 20
    assert [line for line in lines if line.endswith(" ")] == []


def test_list_brings_in_nothing_slow() -> None:
    """What takes ``list`` under a second is what it does not import; a clock would depend on the
    machine's other work.
    """
    program = (
        "import sys; from dpbandits.cli import app; app(['list'], standalone_mode=False);"
        " print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    modules = set(done.stderr.split())
    assert "numba" in modules
    assert not modules & {
        "pandas",
        "pyarrow",
        "matplotlib",
        "scipy.stats",
        "scipy.optimize",
        "dp_accounting",
        "joblib",
    }


@pytest.mark.long
def test_late_names_are_there() -> None:
    program = (
        "import sys, dpbandits as dpb\nassert 'pandas' not in sys.modules\nassert set(dpb.__all__)"
        " <= set(dir(dpb))\nfrom dpbandits import *\nassert simulate is dpb.simulation.simulate and"
        " environments.Bernoulli([0.5])\ntry:\n    dpb.nothing\nexcept AttributeError as"
        " error:\n    assert 'nothing' in str(error)\nelse:\n    raise SystemExit(1)\n"
    )
    subprocess.run([sys.executable, "-c", program], env=environment(), check=True)


def test_python_m_and_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dpbandits", "--version"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"dpbandits {__version__}\n"


def test_explain_says_the_guarantee() -> None:
    told = call("explain", "AdaCUCB", "--budget", "zcdp=0.1")
    assert told.exit_code == 0
    assert "The rewards of one round are protected with 0.1-zCDP" in told.stdout
    assert "(1, 1e-05)-DP" in call("explain", "AdaCUCB", "--budget", "approx=1,1e-5").stdout
    every = call("explain", "AdaCUCB").stdout
    assert all(notion in every for notion in ("0.5-zCDP: ", "(1, 1e-05)-DP: ", "(4, 1)-RDP: "))


def test_explain_names_the_bounds_of_a_policy() -> None:
    assert (
        "Bound: after Azize & Basu (2022), AdaP-UCB (upper): adap_ucb"
        in call("explain", "AdaPUCB").stdout
    )
    assert "Bound" not in call("explain", "AdaCUCB").stdout  # beta = 1


def test_theory_lists_describes_and_computes() -> None:
    rows = json.loads(call("theory", "--json").stdout)
    assert [row["name"] for row in rows] == list(BOUNDS)
    listed = call("theory").stdout
    assert all(name in listed for name in BOUNDS)
    told = call("theory", "linpriv_printed").stdout
    assert "linpriv_printed(horizon, dimension, n_arms, epsilon)" in told
    assert "Void: it takes sum" in told
    value = call("theory", "arms_minimax", "horizon=1e4,4e4", "n_arms=5")
    assert value.stdout == "7.40741, 14.8148\n"  # sqrt(4 T) / 27
    data = json.loads(
        call("theory", "two_coins", "horizon=10", "n_arms=2", "gap=0", "--json").stdout
    )
    assert (data["name"], data["value"]) == ("two_coins", 0.0)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["adac_ucbb"], "there is no bound 'adac_ucbb'; did you mean adac_ucb?"),
        (["arms_minimax", "horizon=5"], "must include horizon, n_arms for arms_minimax"),
        (
            ["arms_minimax", "horizon=5", "n_arms=2", "rho=1"],
            "only horizon, n_arms are allowed; got horizon",
        ),
        (["arms_minimax", "horizon=x", "n_arms=2"], "must have the form key=1.5"),
        (["arms_minimax", "horizon"], "must have the form key=1.5"),
    ],
)
def test_theory_says_what_is_wrong(arguments: list[str], complaint: str) -> None:
    told = call("theory", *arguments)
    assert told.exit_code == 2
    assert complaint in told.stderr


def test_explain_speaks_of_secure_noise_where_there_is_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "SIMULATION" in call("explain", "DPSE", "--noise", "simulation").stdout
    pytest.importorskip("opendp")
    for arguments in ([], ["--noise", "secure"]):
        told = call("explain", "DPSE", *arguments)
        assert told.exit_code == 0
        assert "SIMULATION" not in told.stdout
    monkeypatch.setattr("dpbandits.cli.promises.find_spec", lambda _: None)
    told = call("explain", "DPSE")
    assert "OpenDP is not installed: pip install 'dpbandits[secure]'" in told.stdout
    assert "SIMULATION" in told.stdout


def test_what_only_devices_can_secure_is_explained_with_simulated_noise() -> None:
    told = call("explain", "WishartLinUCBJDP")
    assert told.exit_code == 0
    assert "SIMULATION" in told.stdout
    assert call("explain", "WishartLinUCBJDP", "--noise", "secure").exit_code == 2


def test_card_shows_and_writes_what_explain_says(tmp_path: Path) -> None:
    page = tmp_path / "card.html"
    told = call("card", "AdaCUCB", "--budget", "zcdp=0.1", "--html", page)
    assert told.exit_code == 0
    assert "limit for each record is 0.1-zCDP" in " ".join(told.stdout.split())
    assert "not audited" in told.stdout
    promise = call("explain", "AdaCUCB", "--budget", "zcdp=0.1").stdout.partition("0.1-zCDP: ")[2]
    for text in (told.stdout, html.unescape(page.read_text())):
        assert promise.partition(".1")[0] in text
    policy = dpbandits.papers.concentrated.AdaCUCB(2, budget=dpbandits.ZCDP(0.3), seed=1)
    assert "nothing yet, because" in call("card", policy.save(tmp_path / "a.dpb")).stdout
    for arguments in ([], ["AdaCUCB", "--all", tmp_path]):
        assert "a POLICY or --all must be given" in call("card", *arguments).stderr


def test_loose_budgets_are_warned_of(study: Path) -> None:
    told = call("explain", "AdaCUCB", "--budget", "approx=20,0.1")
    assert told.exit_code == 0
    assert "Warning: The delta of (20, 0.1)-DP is not far below 1 / people" in told.stderr
    assert "(20, 0.1)-DP promises next to nothing" in told.stderr
    assert "Warning" not in call("explain", "AdaCUCB").stderr
    study.write_text(STUDY.replace("[0.5]", "[5.0]"))
    for command in (["check"], ["run", "--output", "out"]):
        shown = call(*command, study)
        assert shown.exit_code == 0
        assert shown.stderr.count("Warning: 5-zCDP promises next to nothing") == 1


def test_a_void_claim_is_told_as_such() -> None:
    rows = {row["policy"]: row for row in json.loads(call("list", "--json").stdout)}
    assert rows["LinUCBDGS"]["protects"] is None
    assert rows["PrivateLinUCB"]["protects"] == "rewards"
    assert rows["LinUCBJDP"]["protects"] == "contexts and rewards"
    assert rows["LinUCBJDP"]["view"] == "joint"
    told = call("explain", "LinUCBDGS")
    assert told.exit_code == 0
    assert "no privacy guarantee" in told.stdout


def test_regret_is_told_with_privacy_where_there_is_a_radius_or_none() -> None:
    assert (
        "Bound on regret: assume that means are linear" in call("explain", "PrivateLinUCB").stdout
    )
    assert "Bound on regret: none, because no theorem" in call("explain", "LinearIMED").stdout
    assert "Bound on regret: " not in call("explain", "MergedIMED").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "AdaCUB"], "there is no policy 'AdaCUB'; did you mean AdaCUCB?"),
        (
            ["explain", "AdaCUCB", "--budget", "zcdp=-1"],
            "rho must be a number in (0, inf), got -1.0",
        ),
        (
            ["explain", "AdaCUCB", "--budget", "zcdp=1,2"],
            "rho must be a number in (0, inf), got [1.0, 2.0]",
        ),
        (
            ["explain", "AdaCUCB", "--budget", "zcdp"],
            "--budget must look like zcdp=0.1, with one of pure, zcdp, approx, rdp",
        ),
        (
            ["explain", "AdaCUCB", "--budget", "zcdp=x"],
            "--budget must look like zcdp=0.1, with one of pure, zcdp, approx, rdp",
        ),
        (
            ["explain", "AdaCUCB", "--budget", "dp=1"],
            "--budget must look like zcdp=0.1, with one of pure, zcdp, approx, rdp",
        ),
        (
            ["explain", "AdaCUCB", "--budget", "approx=1"],
            "must be a pair [epsilon, delta], got 1.0",
        ),
        (
            ["explain", "AdaCUCB", "--budget", "pure=1"],
            "budget must be None or ApproxDP or GDP or RDP or ZCDP for AdaCUCB",
        ),
        (["explain"], "Missing argument"),
        (["lst"], "No such command"),
        (["run", "none.toml"], "there is no such file"),
        (["check", "none.toml"], "there is no such file"),
        (["run", "study.toml", "--runs", "0"], "runs: must be greater than or equal to 1, got 0"),
        (["run", "study.toml", "--seed", "-1"], "seed: must be greater than or equal to 0, got -1"),
        *(
            (
                ["run", "study.toml", "--jobs", jobs],
                f"'--jobs': must be -1, for one process per core, or between 1 and 1024, got {jobs}",
            )
            for jobs in ("-2", "0", "1025")
        ),
        (["run", "study.toml", "--runs", "many"], "--runs"),
        (["run", "study.toml", "--output", "study.toml"], "output must be a folder, got the file"),
        (
            ["run", "study.toml", "--output", "."],
            "output must not be the folder that the command runs in",
        ),
        (
            ["run", "study.toml", "--output", "study.toml/out"],
            "output must be a folder that can be written",
        ),
    ],
)
@pytest.mark.usefixtures("study")
def test_wrong_input_ends_in_a_sentence_and_2(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]


def test_check_finds_every_mistake(study: Path) -> None:
    good = call("check", study)
    assert good.exit_code == 0
    assert "is in order: 1 environment x 1 policy x 4 runs of 300 rounds." in good.stdout
    study.write_text(
        STUDY.replace("0.9", "1.9")
        .replace("runs = 4", "runs = 0")
        .replace('"AdaCUCB"', '"AdaCUCB"\nbeta = -1')
    )
    bad = call("check", study)
    assert bad.exit_code == 2
    assert "has 3 problems:" in bad.stderr
    assert all(
        f"\n  {place}: " in bad.stderr
        for place in ("runs", "environments[0].means", "policies[0].beta")
    )


# Runs ----------------------------------------------------------------------------------------


def test_run_writes_a_folder_and_says_where(study: Path) -> None:
    result = call("run", study, "--output", "out", "--jobs", "1", "--seed", "5", "--runs", "3")
    assert result.exit_code == 0, result.output
    out = study.parent / "out"
    assert {path.name for path in out.iterdir()} == {
        "report.html",
        "results.parquet",
        "summary.csv",
        "manifest.json",
    }
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["seed"], manifest["study"]["runs"], manifest["n_jobs"]) == (5, 3, 1)
    assert f"Report: {Path('out') / 'report.html'}" in result.stdout
    assert "\nAdaCUCB  0.5-zCDP " in result.stdout
    assert "Bernoulli, 2 arms: 3 of 3 runs" in result.stderr  # lines, because this is no terminal


@pytest.mark.long
def test_the_closing_tables_have_the_labels_of_the_report_and_the_replay(study: Path) -> None:
    study.write_text(
        STUDY.replace(
            'kind = "Bernoulli"\nmeans = [0.9, 0.1]',
            'kind = "DoctorBandit"\n[[environments]]\nkind = "DoctorReplay"',
        )
        + 'forget = false\n[[policies]]\nkind = "AdaCUCB"\n[[policies]]\nkind = "LDPUCB"\nbudgets ='
        " { pure = [1], open = true }\n"
    )
    shown = call("run", study, "--output", "out").stdout
    simulated, replayed = shown.split("DoctorReplay", 1)
    assert "mean success rate in the replay, 4 runs" in replayed
    for part in (simulated, replayed):
        lines = [" ".join(line.split()) for line in part.splitlines()]
        for start in (
            "AdaCUCB (forget=False) 0.5-zCDP ",
            "AdaCUCB (forget=True) ",
            "LDPUCB (local) 1-DP ",
            "LDPUCB (local) no privacy ",
        ):
            assert sum(line.startswith(start) for line in lines) == 1
    assert replayed.count(" % to ") == 4


def test_the_closing_tables_have_titles_and_names_and_no_code(study: Path) -> None:
    another = '[[environments]]\nkind = "Bernoulli"\nmeans = [0.6, 0.5]\n\n[[policies]]'
    named = STUDY.replace('"AdaCUCB"', '"AdaCUCB"\nname = "[ours]"')
    study.write_text(named.replace("[[policies]]", another))
    shown = call("run", study, "--output", "out").stdout
    for number in (1, 2):
        assert f"Bernoulli, 2 arms ({number} of 2): mean regret after 300 rounds, 4 runs" in shown
    assert shown.count("\n[ours]  0.5-zCDP ") == 2
    assert "Bernoulli(" not in shown


def test_folders_of_some_runs_merge_to_that_of_all(study: Path) -> None:
    logged = 'kind = "DoctorBandit"\n[[environments]]\nkind = "DoctorReplay"'
    study.write_text(
        STUDY.replace('kind = "Bernoulli"\nmeans = [0.9, 0.1]', logged).replace(
            "runs = 4", "runs = 4\nbounds = true"
        )
    )
    for first, runs, out in ((0, 4, "all"), (3, 1, "late"), (0, 2, "early"), (2, 1, "middle")):
        given = ("--first-run", str(first), "--runs", str(runs), "--output", out)
        assert call("run", study, *given).exit_code == 0
    told = call("merge", "late", "early", "middle", "--output", "merged")
    assert told.exit_code == 0, told.output
    assert "missing" not in told.stderr
    names = {path.name for path in (study.parent / "all").iterdir()}
    assert names == {path.name for path in (study.parent / "merged").iterdir()}
    assert {"results.parquet", "replay.parquet", "bounds.csv"} <= names
    for name in names - {"manifest.json", "report.html", "figures"}:
        one, other = (study.parent / folder / name for folder in ("all", "merged"))
        assert one.read_bytes() == other.read_bytes(), name
    configs = [
        json.loads((study.parent / one / "manifest.json").read_text())["study"]
        for one in ("all", "merged")
    ]
    assert configs[0] == configs[1]
    holes = call("merge", "late", "early", "--output", "holes")
    assert "Runs are missing: 1 of 4, the first of them 2." in holes.stderr
    for folders, said in (
        (("early", "all"), "must not share runs, got run 0 twice"),
        (("early", "nowhere"), "must be folders that `dpbandits run` wrote, got nowhere"),
    ):
        refused = call("merge", *folders)
        assert (refused.exit_code, said in refused.stderr) == (2, True), refused.stderr
    manifest = study.parent / "late" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"horizon": 300', '"horizon": 301'))
    assert "must have results of one study" in call("merge", "late", "early").stderr
    manifest.write_text(manifest.read_text().replace('"code": "', '"code": "0'))
    assert "must have results of this version of the code" in call("merge", "late", "early").stderr


def test_progress_is_bars_on_a_terminal_and_lines_elsewhere() -> None:
    terminal, file = io.StringIO(), io.StringIO()
    for console in (
        Console(file=terminal, force_terminal=True, width=100),
        Console(file=file, width=100),
    ):
        with StudyProgress(console, {"Beta(0.5)": 8, "[Log]": 4}) as progress:
            for done in range(1, 9):
                progress("Beta(0.5)", done, 8)
            progress("[Log]", 4, 4)
    shown = Text.from_ansi(terminal.getvalue()).plain
    assert all(words in shown for words in ("Beta(0.5)", "8/8 runs", "[Log]", "4/4 runs"))
    assert file.getvalue().splitlines() == [
        "Beta(0.5): 8 of 8 runs, less than a minute left in all",
        "[Log]: 4 of 4 runs",
    ]


def test_the_time_that_is_left_follows_the_pace_of_the_second_half() -> None:
    now = [0.0]
    pace = Pace(clock=lambda: now[0])
    left = []
    for second in range(1, 101):  # 40 runs were found finished at once, then two come a second
        now[0] = float(second)
        left.append(pace.left(40 + 2 * second, 300))
    assert left[0] is None
    assert left[1:] == pytest.approx([130 - n for n in range(2, 101)])
    now[0] = 101.0
    assert pace.left(300, 300) is None


def test_a_folder_is_named_after_the_study_file_or_the_demo(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("run", study, "--quick").exit_code == 0
    monkeypatch.setattr(dpbandits.studies, "DEMO", study)
    assert call("demo").exit_code == 0
    assert sorted(path.name[:-15] for path in study.parent.iterdir() if path.is_dir()) == [
        "dpbandits-demo-",
        "study-",
    ]


def test_run_replaces_results_only_when_forced(study: Path) -> None:
    assert call("run", study, "--output", "out").exit_code == 0
    before = (study.parent / "out" / "results.parquet").read_bytes()
    refused = call("run", study, "--output", "out", "--seed", "9")
    assert refused.exit_code == 2
    assert "--force replaces earlier results" in refused.stderr
    assert (study.parent / "out" / "results.parquet").read_bytes() == before
    assert call("run", study, "--output", "out", "--seed", "9", "--force").exit_code == 0
    assert (study.parent / "out" / "results.parquet").read_bytes() != before


def test_forcing_spares_what_a_run_does_not_write(study: Path) -> None:
    assert call("run", study, "--output", "out").exit_code == 0
    figures = study.parent / "out" / "figures"
    figures.mkdir()
    (figures / "regret.svg").write_text("drawn")
    for mine in (study.parent / "out" / "notes.txt", figures / "letter.doc"):
        mine.write_text("mine")
        refused = call("run", study, "--output", "out", "--force")
        assert refused.exit_code == 2
        assert mine.name in refused.stderr
        assert mine.read_text() == "mine"
        mine.unlink()
    assert call("run", study, "--output", "out", "--force").exit_code == 0


@pytest.mark.compiled
@pytest.mark.parametrize("command", [["check"], ["run", "--quick", "--output", "out"]])
def test_a_cold_cache_is_announced(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("DPBANDITS_CACHE_DIR", str(tmp_path / "cache"))
    assert "compiles" not in call(command[0], "none.toml").stderr  # nothing will be compiled
    assert "later runs start at once" in call(*command, study).stderr
    (tmp_path / "cache" / "something").write_text("cached")
    assert "compiles" not in call(*command, study, *(["--force"] if command[1:] else [])).stderr


@pytest.mark.compiled
def test_a_cache_that_cannot_be_written_is_no_promise(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPBANDITS_CACHE_DIR", str(study / "cache"))
    told = call("check", study).stderr
    assert "Every run compiles the algorithms" in told
    assert "later runs" not in told


@pytest.mark.compiled
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners")
def test_a_cache_that_others_can_change_is_announced(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    (tmp_path / "shared" / "something").touch()
    monkeypatch.setenv("DPBANDITS_CACHE_DIR", str(tmp_path / "shared"))
    told = call("check", study).stderr
    assert "Every run compiles the algorithms" in told
    assert "chmod go-w" in told


# Interrupted and killed ----------------------------------------------------------------------


@pytest.fixture
def writing(study: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that has begun to write its results."""
    process = started("time.sleep(600)", study.parent, "run", "study.toml", "--output", "out")
    try:
        wait_for(study.parent, ".dpbandits-*.partial/report.html")
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
def test_a_killed_run_leaves_no_results_and_the_next_one_sweeps_up(
    writing: subprocess.Popen[str], study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.kill(writing.pid, signal.SIGKILL)
    assert writing.wait(timeout=60) == -signal.SIGKILL
    assert not (study.parent / "out").exists()
    assert len(finished_cells(study.parent)) == 1
    monkeypatch.setattr(dpbandits.studies.cells, "simulate", None)  # it is not simulated again
    assert call("run", study, "--output", "out").exit_code == 0
    assert {path.name for path in study.parent.iterdir()} == {"study.toml", "out"}


@pytest.mark.long
def test_a_killed_study_continues_with_what_is_missing(study: Path) -> None:
    """Killed in the middle: what was finished is not computed again, and the numbers are those of
    a study that nobody killed.
    """
    study.write_text(SLOW)
    broken, whole = study.parent / "broken", study.parent / "whole"
    for folder in (broken, whole):
        folder.mkdir()
    command = ["run", str(study), "--output", "out", "--jobs", "1"]
    process = started("pass", broken, *command)
    deadline = time.monotonic() + 120
    while len(finished_cells(broken)) < 3 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = finished_cells(broken)
    assert 3 <= len(kept) < 16, "the kill came too late"
    assert not (broken / "out").exists()
    times = {path.name: path.stat().st_mtime_ns for path in kept}
    again, unchanged = started("time.sleep(2)", broken, *command), {}
    while again.poll() is None and not unchanged:  # while the report is written, all are there
        if list(broken.glob(".dpbandits-*.partial/report.html")):
            unchanged = {path.name: path.stat().st_mtime_ns for path in finished_cells(broken)}
        time.sleep(0.05)
    assert len(unchanged) == 16
    assert times.items() <= unchanged.items()  # nothing was computed twice
    _, told = again.communicate()
    assert again.returncode == 0, told
    started("pass", whole, *command).communicate()
    for name in ("results.parquet", "summary.csv", "replay.csv"):
        assert (broken / "out" / name).read_bytes() == (whole / "out" / name).read_bytes()
    assert list(broken.glob(".*")) == []  # what was kept is gone


def test_an_interrupted_run_ends_with_130_and_the_same_command_continues(
    writing: subprocess.Popen[str], study: Path
) -> None:
    os.kill(writing.pid, signal.SIGINT)
    _, told = writing.communicate(timeout=60)
    assert writing.returncode == 130
    assert "the same command continues" in told
    assert "Traceback" not in told
    assert not (study.parent / "out").exists()
    assert len(finished_cells(study.parent)) == 1


@pytest.mark.long
def test_an_interrupted_simulation_ends_soon(study: Path) -> None:
    study.write_text(
        STUDY.replace("Bernoulli", "Beta").replace("horizon = 300", "horizon = 1_000_000_000")
    )
    process = started("pass", study.parent, "run", "study.toml", "--output", "out")
    try:
        wait_for(study.parent, ".dpbandits-*.partial")
        time.sleep(3.0)  # into the simulation, which would take minutes
        os.kill(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in told
    assert [path.name for path in study.parent.iterdir()] == ["study.toml"]


def test_a_failing_report_leaves_what_was_computed(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path, *_: object) -> None:
        (folder / "report.html").write_text("half")
        raise RuntimeError("no ink")

    monkeypatch.setattr(dpbandits.report, "write", fail)
    result = call("run", study, "--output", "out")
    assert result.exit_code == 1
    assert str(result.exception) == "no ink"
    assert not (study.parent / "out").exists()
    assert len(finished_cells(study.parent)) == 1
