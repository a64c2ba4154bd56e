"""``--json``: what commands print is JSON, with the facts that the text has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits.cli import app

STUDY = """
title = "small"
horizon = 300
runs = 2
record = 2
budgets = {zcdp = [1.0]}

[[environments]]
kind = "Bernoulli"
means = [0.9, 0.1]

[[policies]]
kind = "MergedIMED"
"""


def refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def told(*arguments: object, code: int = 0):
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout, parse_constant=refused)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    policy = dpb.bandit(["old", "new"], budget=dpb.ZCDP(1.0), seed=1)
    for _ in range(200):
        decision = policy.pull()
        policy.update(float(decision.arm), decision)
    return Path(policy.save(tmp_path / "trial.dpb"))


def test_a_saved_policy_is_told(kept: Path):
    seen = dpb.inspect(kept)
    found = told("inspect", kept)
    assert found["spent"] == {"notion": "ZCDP", "rho": 1.0}
    assert found["releases"] == seen.ledger.releases
    assert [one["name"] for one in found["arms"]] == ["old", "new"]
    assert [one["means"] for one in found["arms"]] == seen.estimates.means.tolist()
    (card,) = told("card", kept)
    assert card["holds"] == {"notion": "ZCDP", "rho": 1.0}
    titles = [section["title"] for section in card["sections"]]
    assert titles == [section.title for section in seen.card.sections]


def test_mistakes_of_a_study_are_told(tmp_path: Path):
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    assert told("check", study)["problems"] == []
    study.write_text(STUDY.replace("MergedIMED", "MergedIMDE"))
    (problem,) = told("check", study, code=2)["problems"]
    assert problem.startswith("policies[0].kind: ")


def test_guarantees_are_told_for_each_kind_of_budget():
    found = told("explain", "MergedIMED")
    assert len(found) == len(dpb.algorithms.MergedIMED.example_budgets())
    assert all(one["guarantee"]["holds"] == one["budget"] for one in found)


def test_an_audit_is_told_by_numbers():
    (found,) = told("audit", "MergedIMED", "--budget", "zcdp=0.5", "--runs", 50)
    assert found["verdict"] == "not refuted"
    assert 0.0 <= found["measured"] <= found["claimed"]
    assert {"score", "bound", "runs"} <= found["scores"][0].keys()


def test_results_of_studies_are_told_and_add_up(tmp_path: Path):
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    parts = [tmp_path / "one", tmp_path / "two"]
    for i, folder in enumerate(parts):
        found = told("run", study, "--output", folder, "--jobs", 1, "--first-run", 2 * i)
        assert Path(found["report"]).is_file()
        assert [one["runs"] for one in found["results"]] == [2]
    merged = told("merge", *parts, "--output", tmp_path / "both")
    assert merged["results"][0]["runs"] == 4
    assert merged["results"][0]["rounds"] == 300
    assert merged["replay"] == []


def test_keys_are_listed_without_secrets(tmp_path: Path):
    file = tmp_path / "keys.json"
    secret = CliRunner().invoke(app, ["keys", "add", "--role", "read", "--file", str(file)]).stdout
    (found,) = told("keys", "list", "--file", file)
    assert found["roles"] == ["read"]
    assert secret.splitlines()[-1] not in json.dumps(found)
