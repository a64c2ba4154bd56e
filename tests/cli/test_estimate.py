"""The command ``dpbandits estimate`` on files of people."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dpbandits import ZCDP, ApproxDP
from dpbandits.cli import app
from dpbandits.glm import PrivateGLM

QUIET = ["--noise", "simulation", "--seed", "3"]


@pytest.fixture
def people(tmp_path: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.uniform(-0.5, 0.5, (2000, 2))
    y = (rng.random(2000) < 1 / (1 + np.exp(-x @ [0.8, -0.4]))).astype(float)
    path = tmp_path / "people.csv"
    rows = "\n".join(f"{a!r},{c:g},{b!r}" for (a, b), c in zip(x.tolist(), y, strict=True))
    path.write_text(f"age,cured,dose\n{rows}\n", encoding="utf-8")
    return path, x, y


def run(*arguments: object):
    return CliRunner().invoke(app, ["estimate", *map(str, arguments)])


def test_it_is_the_estimator_on_all_other_columns(people):
    path, x, y = people
    arguments = [path, "--outcome", "cured", "--budget", "approx=1,1e-6", *QUIET]
    found = json.loads(run(*arguments, "--json").stdout)
    model = PrivateGLM(budget=ApproxDP(1.0, 1e-6), seed=3).fit(x, y)
    assert [row["feature"] for row in found["estimates"]] == ["age", "dose"]
    assert [row["estimate"] for row in found["estimates"]] == pytest.approx(model.coef_.tolist())
    assert found["guarantee"]["view"] == "non-interactive"
    words = run(*arguments).stdout
    assert "age" in words
    assert "(1, 1e-06)-DP" in words
    assert "SIMULATION" in words


def test_cells_that_are_no_numbers_count_as_nothing_and_are_not_quoted(people):
    path, x, y = people
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[1] = f"secret,{y[0]:g},{float(x[0, 1])!r}"
    path.write_text("\n".join(lines), encoding="utf-8")
    answer = run(path, "--outcome", "cured", "--budget", "zcdp=1", "--json", *QUIET)
    assert answer.exit_code == 0
    assert "secret" not in answer.output
    x[0, 0] = 0.0
    expected = PrivateGLM(budget=ZCDP(1.0), seed=3).fit(x, y).coef_
    found = [row["estimate"] for row in json.loads(answer.stdout)["estimates"]]
    assert found == pytest.approx(expected.tolist())


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (["--outcome", "weight"], "one of the columns age, cured, dose"),
        (["--budget", "pure=1"], "ZCDP or ApproxDP or RDP or GDP for Gaussian noise"),
        (["--link", "cauchit"], "link must be"),
        (["--context-bound", "0"], "context_bound must be"),
    ],
)
def test_wrong_arguments_end_in_a_sentence(people, changed, words):
    arguments = ["--outcome", "cured", "--budget", "zcdp=1", *QUIET]
    answer = run(people[0], *arguments, *changed)
    assert answer.exit_code == 2
    assert words in answer.output
    assert "Traceback" not in answer.output


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    missing = tmp_path / "nobody.csv"
    answer = run(missing, "--outcome", "cured", "--budget", "zcdp=1", *QUIET)
    assert answer.exit_code == 2
    assert "nobody.csv" in answer.output


def fitted(*arguments: object):
    """What a command finds by feature, and what it says to the operator."""
    answer = run(*arguments, "--budget", "zcdp=1", "--json", *QUIET)
    assert answer.exit_code == 0, answer.output
    rows = json.loads(answer.stdout)["estimates"]
    return {row["feature"]: row["estimate"] for row in rows}, answer.stderr


def test_every_export_of_one_table_gives_one_estimate(people, tmp_path: Path):
    path, x, y = people
    expected, said = fitted(path, "--outcome", "cured")
    assert said == ""
    rows = list(zip(x.tolist(), y, strict=True))
    dutch = "\n".join(f"{a:.17f};{c:g};{b:.17f};".replace(".", ",") for (a, b), c in rows)
    words = "\n".join(f"{a!r}\t{'YES' if c else 'no'}\t{b!r}" for (a, b), c in rows)
    index = "\n".join(f"{i},{a!r},{c:g},{b!r}" for i, ((a, b), c) in enumerate(rows))
    files = {
        "dutch": ("sep=;\r\nage;cured;dose;\r\n" + dutch, ["--decimal", ","]),
        "words": ("age\tcured\tdose\n" + words, ["--separator", "tab", "--positive", "yes"]),
        "index": (",age,cured,dose\n" + index, []),
        "wide": (f'"id, new",age,cured,dose\n{index}', ["--ignore", '"id, new"']),
        "chosen": (f"id,age,cured,dose\n{index}", ["--features", "age,dose"]),
    }
    for name, (content, options) in files.items():
        made = tmp_path / f"{name}.csv"
        made.write_text(content, encoding="utf-16" if name == "dutch" else "utf-8")
        found, _ = fitted(made, "--outcome", "cured", *options)
        assert found == pytest.approx(expected), name


def test_what_is_changed_is_counted_for_the_operator_alone(tmp_path: Path):
    path = tmp_path / "people.csv"
    rows = "3,0.1,1\n0.1,x7919,0\n0.2,0.1,NA\n1e200,,5\n"
    path.write_text(f"a,b,y\n{rows}", encoding="utf-8")
    found, said = fitted(path, "--outcome", "y")
    assert set(found) == {"a", "b"}
    assert "no guarantee covers these counts" in said
    for words in (
        "1 of 4 cells of column 'b' are no numbers, and count as 0",
        "1 of 4 cells of column 'b' are empty",
        "1 of 8 cells are beyond 1e+100",
        "1 of 4 people have no outcome",
        "1 of 4 people are longer than --context-bound 1",
        "1 of 4 outcomes lie outside",
    ):
        assert words in said
    assert "7919" not in said


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("a,y\n.1,1,\n.2,0,\n", [], "line 2"),
        ("a,y\n.1,yes\n.2,no\n", [], "got only text in 'y'. Use --positive to name"),
        (
            "a,y\nmale,1\nfemale,0\n",
            [],
            "only empty cells in the column a. Leave it out with --ignore",
        ),
        ("a,b,y\n,1,1\n,1,0\n", [], "got text or only empty cells in the column a."),
        ('a,"b, c",d,y\nx,?,1,1\nx,?,1,0\n', [], 'in the columns a, "b, c". Leave them'),
        ("a;y\n1;1\n", [], "is --separator right?"),
        ("a,y\n1,\n2,NA\n", [], "got only empty cells in 'y'"),
        ('a,y\n"8,981",1\n"8,982",0\n', [], "use --decimal or --thousands"),
        ("age,y\n1,1\n", ["--ignore", "agee"], "did you mean age?"),
        ("age,y\n1,1\n", ["--features", "y"], "neither the outcome"),
        ("y\n1\n", [], "a column of features besides 'y'"),
        ("age,y\n1,1\n", ["--features", ""], "--features must name a column, got none"),
        ("age,y\n1,1\n", ["--outcome-range", "0,100"], "two numbers with a space between"),
        ("a\u200b,y\n1,1\n", ["--features", "a"], "got 'a'; did you mean 'a\\u200b'?"),
        ("0.7919,male\n.1,yes\n", [], "got a number in the first line of"),
    ],
)
def test_a_table_that_would_count_as_nothing_is_refused(tmp_path, content, options, words):
    path = tmp_path / "people.csv"
    path.write_text(content, encoding="utf-8")
    answer = run(path, "--outcome", "y", "--budget", "zcdp=1", *options, *QUIET)
    assert answer.exit_code == 2
    assert words in answer.output


def test_a_record_is_no_header_and_a_range_may_be_negative(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("0.318,0.448,1\n0.2,0.1,-3\n", encoding="utf-8")
    answer = run(path, "--outcome", "1", "--budget", "zcdp=1", *QUIET)
    assert answer.exit_code == 2
    assert "--no-header" in answer.output
    assert "0.318" not in answer.output
    found, said = fitted(path, "--outcome", "2", "--no-header", "--outcome-range", "-1", "1")
    assert set(found) == {"0", "1"}
    assert said.count("1 of 2 outcomes lie outside of --outcome-range -1 1") == 1
    assert "PrivateGLM" not in said  # nothing is said twice


def test_a_text_that_nobody_has_is_said_and_makes_no_error(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("a,y\n.1,yes\n.2,no\n", encoding="utf-8")
    _, said = fitted(path, "--outcome", "y", "--positive", "YES!")
    assert "no cell of column 'y' is 'YES!': all outcomes count as 0" in said
