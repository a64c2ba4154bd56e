"""A small demonstration: what it says, what it leaves behind, and how it fails."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from dpbandits.cli import app
from dpbandits.demonstration import parties as module
from dpbandits.demonstration.parties import BATCHES, started
from dpbandits.demonstration.people import People
from dpbandits.demonstration.processes import PartyError, running
from dpbandits.demonstration.record import demonstrate

SOURCE = Path(module.__file__).parents[2]


@pytest.fixture(autouse=True)
def source(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "own"))


def command(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "dpbandits", "demo-parties", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def left_in(folder):
    """Processes whose command names the folder."""
    listed = ["ps", "-eww", "-o", "args"]  # of any length
    found = subprocess.run(listed, capture_output=True, text=True, check=True)
    return [line for line in found.stdout.splitlines() if f"{folder}" in line]


@pytest.mark.long
def test_a_small_demonstration(tmp_path):
    output = tmp_path / "out"
    process = command("--people", "60", "--seed", "3", "--json", "--output", str(output))
    told, steps = process.communicate(timeout=300)
    assert process.returncode == 0, steps
    assert "Starting the service and the shuffler." in steps
    record = json.loads(told)
    assert record == json.loads((output / "manifest.json").read_text())
    assert (record["people"], record["batch"]) == (60, 3)
    assert record["open_parts"] == 1
    people = People.drawn(60, 3)
    assert record["regret"]["chance"] == round(float(people.regrets_of_chance.sum()), 2)
    assert len(record["regret"]) == 5
    for one in record["found"]:
        assert one["listed"] == one["people"] > 0
        assert one["service"] == one["shuffler"] == 0
    on_devices = {one["kind"] for one in record["found"] if one["devices"]}
    assert on_devices == {"features", "rewards", "names", "tickets"}
    assert record["summary"]["releases"] == BATCHES
    assert record["ledger"]["spent"] == record["summary"]["budget"] == "(1, 1e-05)-DP"
    assert sorted(path.name for path in output.iterdir()) == [
        "figures",
        "manifest.json",
        "report.html",
    ]
    page = (output / "report.html").read_text()
    assert record["guarantee"]["in_words"].partition(".")[0] in page
    assert [path.name for path in tmp_path.iterdir()] == ["out"]  # no hidden folder is left
    assert left_in(tmp_path) == []


@pytest.mark.long
def test_a_leak_is_found_and_told(tmp_path, monkeypatch):
    """Somebody writes a person's features beside the service's store while it ends."""
    people = People.drawn(40, 1)

    def leak(step):
        if step.startswith("Searching"):
            (tmp_path / "service" / "cache").write_bytes(b"-" + people.contexts[11].tobytes())
            (tmp_path / "shuffler" / "log").write_text(f"refused {people.names[5]}")

    record = demonstrate(tmp_path, 40, 1, leak)
    monkeypatch.setattr("dpbandits.demonstration.record.demonstrate", lambda *_: record)
    told = CliRunner().invoke(app, ["demo-parties", "--output", str(tmp_path / "out")])
    assert told.exit_code == 1
    for sentence in (
        "LEAK: the service stored features of people.",
        "LEAK: the shuffler stored names of people.",
    ):
        assert sentence in told.output
        assert sentence in (tmp_path / "out" / "report.html").read_text()
    leaked = {one.kind: (one.service, one.shuffler) for one in record.leaks}
    assert leaked == {"features": (1, 0), "names": (0, 1)}
    assert record.blind == []


@pytest.mark.long
@pytest.mark.parametrize("party", ["service", "shuffler"])
def test_a_party_that_dies_ends_the_demonstration(tmp_path, party):
    began = time.monotonic()
    with started(tmp_path, People.drawn(40, 1)) as parties:
        parties.play(0, lambda came: None)
        died, other = (getattr(parties, name) for name in ("service", "shuffler"))
        died, other = (died, other) if party == "service" else (other, died)
        died.process.kill()
        with pytest.raises(PartyError, match=f"the {party} has ended with exit code -9"):
            parties.play(1, lambda came: None)
    assert time.monotonic() - began < 60.0
    assert other.process.returncode == 0
    for one in (died, other):
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{one.address}/healthz")
    assert left_in(tmp_path) == []


def test_a_party_that_does_not_start_says_why(tmp_path):
    serving = ["serve", f"{tmp_path}/missing.toml", "--insecure"]
    said = r"the service has ended with exit code 2: .*missing\.toml"
    with (
        pytest.raises(PartyError, match=said),
        running("service", tmp_path / "service", serving),
    ):
        pass


@pytest.mark.long
def test_sigterm_leaves_nothing(tmp_path):
    output = tmp_path / "out"
    process = command("--people", "2000", "--output", str(output))
    assert process.stderr is not None
    while "people come" not in (line := process.stderr.readline()):
        assert line, "it has ended"
    time.sleep(0.5)
    assert len(left_in(tmp_path / ".dpbandits")) == 2
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []
    assert left_in(tmp_path) == []


def test_people_come_in_whole_batches(tmp_path):
    process = command("--people", "50", "--output", str(tmp_path / "out"))
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "people must be a multiple of 20, got 50" in said
    assert list(tmp_path.iterdir()) == []


def test_people_are_drawn_by_the_seed():
    one, same, other = (People.drawn(500, seed) for seed in (1, 1, 2))
    assert one.names == same.names != other.names
    assert np.array_equal(one.rewards, same.rewards)
    assert np.linalg.norm(one.contexts, axis=2).max() <= 1.0 + 1e-12
    assert 0.9 <= np.abs(one.rewards).min() <= np.abs(one.rewards).max() <= 1.0
    errors = (one.rewards - one.means).mean(axis=0)
    assert np.abs(errors).max() < 4.0 / 500**0.5
    chance = np.mean([one.regrets(np.full(500, arm)) for arm in range(3)], axis=0)
    assert np.allclose(chance, one.regrets_of_chance)
