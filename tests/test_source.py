"""The digest of the code: whatever file is edited, results of before are not found."""

import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import dpbandits
from dpbandits.source import code_digest, digest_of_files

SOURCE = Path(dpbandits.__file__).parent
ROOMS = sorted(
    {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py") if path.parent != SOURCE}
)
ALONE = sorted(path.name for path in SOURCE.glob("*.py"))


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    return Path(
        shutil.copytree(
            SOURCE,
            tmp_path_factory.mktemp("copy") / "dpbandits",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    )


def test_rooms_that_decide_numbers_are_among_those_tried():
    assert {"session", "shuffle", "privacy", "auditing", "studies"} <= set(ROOMS)
    assert {"protocol.py", "kernel.py", "calls.py"} <= set(ALONE)


@pytest.mark.parametrize("name", ROOMS + ALONE)
def test_an_edited_file_of_every_room_gives_another_digest(copy: Path, name: str):
    before = digest_of_files(copy)
    place = copy / name
    path = place if place.is_file() else sorted(place.rglob("*.py"))[-1]
    original = path.read_bytes()
    try:
        path.write_bytes(original + b"#")
        assert digest_of_files(copy) != before
    finally:
        path.write_bytes(original)
    assert digest_of_files(copy) == before == digest_of_files(SOURCE)


def test_names_and_boundaries_count(tmp_path: Path):
    def of(**contents: str) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for name, content in contents.items():
            (folder / name).write_text(content)
        return digest_of_files(folder)

    assert of(a="x", b="y") == of(b="y", a="x")
    assert len({of(a="x", b="y"), of(a="y", b="x"), of(a="xb", b=""), of(a="x"), of(c="x")}) == 5


def test_what_python_compiled_does_not_count(copy: Path):
    before = digest_of_files(copy)
    compiled = copy / "__pycache__"
    compiled.mkdir()
    (compiled / "errors.cpython-311.pyc").write_bytes(b"x")
    assert digest_of_files(copy) == before


def test_it_is_found_in_a_zip_file(copy: Path, tmp_path: Path):
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in copy.rglob("*"):
            packed.write(path, Path("dpbandits") / path.relative_to(copy))
    assert digest_of_files(zipfile.Path(archive, "dpbandits/")) == digest_of_files(copy)


def test_another_process_finds_it_again():
    told = subprocess.run(
        [sys.executable, "-c", "from dpbandits.source import code_digest; print(code_digest())"],
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == code_digest()


def test_it_takes_less_than_a_glance():
    def seconds() -> float:
        start = time.process_time()
        digest_of_files(SOURCE)
        return time.process_time() - start

    assert min(seconds() for _ in range(5)) < 0.05
