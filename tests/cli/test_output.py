"""Output that cannot be written ends in a sentence and an exit code, in every command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpbandits

FULL = Path("/dev/full")
SOURCE = Path(dpbandits.__file__).parents[1]
FIRST = [["list"], ["--help"]]
FURTHER = [
    ["explain", "MergedIMED"],
    ["list", "--json"],
    ["explain", "--help"],
    ["card", "MergedIMED", "--budget", "zcdp=0.5"],
    ["theory"],
    ["--version"],
]
WRITTEN = [*FIRST, *(pytest.param(one, marks=pytest.mark.long) for one in FURTHER)]


def ran(arguments: list[str], **streams) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "dpbandits", *arguments],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
    )


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
@pytest.mark.parametrize("arguments", WRITTEN, ids=" ".join)
def test_a_full_disk_is_told_in_a_sentence(arguments: list[str]):
    with FULL.open("w") as full:
        told = ran(arguments, stdout=full)
    assert told.returncode == 1
    assert told.stderr.decode() == "Error: the output: No space left on device\n"


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
def test_where_errors_find_no_place_either_the_exit_code_tells():
    with FULL.open("w") as full:
        assert ran(["list"], stdout=full, stderr=full).returncode == 1


@pytest.mark.parametrize("arguments", FIRST, ids=" ".join)
def test_a_pipe_that_closes_early_is_left_in_silence(arguments: list[str]):
    """As ``| head -1`` closes it."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        told = ran(arguments, stdout=writing)
    finally:
        os.close(writing)
    assert (told.returncode, told.stderr) == (1, b"")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path):
    where = tmp_path / "missing" / "card.html"
    told = ran(["card", "MergedIMED", "--budget", "zcdp=0.5", "--html", str(where)])
    assert told.returncode == 1
    assert told.stderr.decode() == f"Error: {where}: No such file or directory\n"
