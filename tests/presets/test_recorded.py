"""Names of policies mean what they meant: the same arms from the same seeds, keys, and states."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from recording import ROUNDS, digest, facts, make, play

from dpbandits.errors import StateFileError
from dpbandits.policies import load, registered
from dpbandits.privacy import Budget
from kinds import KINDS

HERE = Path(__file__).parent
RECORDED: dict[str, Any] = json.loads((HERE / "recorded.json").read_text())
EVERY = pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[pytest.mark.xdist_group(name), *[pytest.mark.long] * (name not in KINDS)],
        )
        for name in RECORDED
    ],
)

# Defaults that were replaced since: with the old value, a name plays as it did.
REPLACED: dict[str, dict[str, Any]] = {"RSLinearIMED": {"ridge": 1.0}}


def of_today(label: str) -> str:
    """Labels say ``answers_within`` now; the keys of random numbers still say ``patience``."""
    return label.replace("patience=", "answers_within=")


def test_no_name_is_gone():
    assert registered().keys() >= RECORDED.keys()


@EVERY
@pytest.mark.filterwarnings("ignore")
def test_a_name_plays_as_it_did(name: str):
    for case in RECORDED[name]["cases"]:
        budget = case["budget"] and Budget.from_dict(case["budget"])
        rounds = 60 if case["given"] else ROUNDS
        given = REPLACED.get(name, {}) | case["given"]
        found = facts(make(name, given, budget), rounds)
        recorded = {key: case[key] for key in found} | {"label": of_today(case["label"])}
        assert recorded == found, (name, case["given"], budget)


@EVERY
@pytest.mark.filterwarnings("ignore")
def test_a_state_of_an_earlier_version_goes_on_as_it_would_have(name: str, tmp_path: Path):
    with zipfile.ZipFile(HERE / "states.zip") as states:
        states.extract(f"{name}.dpb", tmp_path)
    if name == "MergedTopTwo":  # whose rule to stop is another one now
        with pytest.raises(StateFileError, match="too little for the present stopping rule"):
            load(tmp_path / f"{name}.dpb", simulation=True)
        return
    policy = load(tmp_path / f"{name}.dpb", simulation=True)
    assert digest(play(policy, 60)) == RECORDED[name]["cases"][0]["after"]
    assert policy.label == of_today(RECORDED[name]["cases"][0]["label"])
