"""``dpbandits exact``."""

import json
import re

import pytest
from typer.testing import CliRunner

from dpbandits.cli import app
from dpbandits.finite import EXAMPLES, FinitePolicy


def call(*arguments):
    return CliRunner().invoke(app, ["exact", *map(str, arguments)])


def test_the_example_of_the_paper():
    shown = call("--example", "view-not-table", "--epsilon", 0.95, "--delta", 0.17)
    assert shown.exit_code == 0, shown.output
    rows = dict(re.findall(r"^(\w+) +(.*)$", shown.output, re.MULTILINE))
    assert rows["view"].split() == ["0.168784", "0.943628", "∞"]
    assert rows["table"].split() == ["0.177684", "0.983979", "∞"]
    assert rows["interactive"].split() == ["0.857143", "∞", "∞"]


def test_what_is_printed_is_enough():
    policy = EXAMPLES["view-not-table"]()
    for delta in (0.17, 0.2, 0.3, 0.5):
        shown = call("--example", "view-not-table", "--delta", delta).output
        rows = dict(re.findall(r"^(\w+) +(.*)$", shown, re.MULTILINE))
        for view in ("view", "table"):
            assert policy.delta(float(rows[view].split()[1]), view) <= delta


def test_a_file_is_read_and_json_written(tmp_path):
    after = [["3/4", "1/4"], ["1/4", "3/4"]]
    tables = {"probabilities": [[["1/2", "1/2"]] * 2, [after] * 4], "contexts": ["ill", "well"]}
    tables["probabilities"][1] = [[row, row] for row in after] * 4
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(tables))
    shown = call(path, "--json")
    assert shown.exit_code == 0, shown.output
    rows = {row["view"]: row for row in json.loads(shown.output)}
    assert len(rows) == 9
    policy = FinitePolicy(**tables)
    assert rows["table"]["epsilon"] == policy.epsilon(0.0, "table") > 1.0
    assert rows["joint anticipating"]["delta"] == policy.delta(1.0, "anticipating", joint=True)


def test_a_view_that_is_too_large_is_left_out(tmp_path):
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"probabilities": [[[0.5, 0.5]] * 4**t for t in range(6)]}))
    shown = call(path)
    assert shown.exit_code == 0, shown.output
    assert re.search(r"^interactive +– +– +–$", shown.output, re.MULTILINE)
    assert re.search(r"^view +0 +0 +0$", shown.output, re.MULTILINE)
    assert "and at most 16,777,216 are feasible" in shown.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", " must be JSON"),
        ("[" * 100_000, " must be JSON"),
        ("[]", " must be a JSON object with probabilities"),
        ('{"probabilities": [[[1, 0]]], "horizon": 3}', " must be a JSON object"),
        ('{"probabilities": "1"}', "probabilities must be a list"),
        ('{"probabilities": [[[0.5, 0.4]]]}', "sum to 1"),
        (
            '{"probabilities": [[[0.5, 0.5]]], "rewards": []}',
            "rewards must be a sequence with at least one",
        ),
    ],
)
def test_a_wrong_file_is_a_sentence(tmp_path, text, words):
    path = tmp_path / "policy.json"
    path.write_text(text)
    shown = call(path)
    assert shown.exit_code == 2
    assert re.search(r"^Error: ", shown.output, re.MULTILINE)
    assert words in shown.output


def test_wrong_calls_are_sentences(tmp_path):
    for arguments in ((), ("--example", "nothing"), (tmp_path / "none",), (tmp_path,)):
        shown = call(*arguments)
        assert (shown.exit_code, "Error: " in shown.output) == (2, True)
    shown = call("--example", "view-not-table", "--epsilon", -1)
    assert (shown.exit_code, "epsilon must be at least 0" in shown.output) == (2, True)
    (tmp_path / "latin").write_bytes(b"\xff\xfe")
    assert "UTF-8" in call(tmp_path / "latin").output
