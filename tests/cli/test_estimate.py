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
        (["--budget", "pure=1"], "ZCDP, ApproxDP or RDP"),
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
