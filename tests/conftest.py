"""Which tests share a process, which run without a compiler, and which examples are tried.

Two processes that come to the same kernels at the same time compile them twice.  So the tests of a
file stay together, but for those that say with whom they run: those of one class of policies, in
whatever file.

A test that plays a few hundred rounds takes longer to compile than to play.  So `make test` runs
the folders of ``INTERPRETED`` without numba, but for tests that are marked ``compiled``.
`make test-all` runs them again, compiled, but for those of ``ONCE``.
"""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same command tries the same examples; `--hypothesis-profile=searching` looks for others.
settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("searching", deadline=None)
settings.load_profile("fixed")

# The former have one name, and the latter registers a policy.
collect_ignore_glob = ["conftest.py", "*/conftest.py", "testing/explore_then_commit.py"]

INTERPRETED = {
    f"tests/{folder}"
    for folder in (
        "algorithms",
        "cli",
        "client",
        "conclusions",
        "conformance",
        "demonstration",
        "evaluation",
        "finite",
        "inference",
        "logs",
        "policies",
        "presets",
        "privacy",
        "service",
        "session",
        "shuffler",
        "simulation",
        "stores",
        "studies",
        "test_front_door.py",
        "test_no_data_in_messages.py",
        "testing",
    )
} | {"src/dpbandits"}

# Rooms that keep, send and show what policies did: they have no kernels, and compiling changes nothing.
ONCE = {
    f"tests/{folder}"
    for folder in (
        "cli",
        "client",
        "conclusions",
        "evaluation",
        "finite",
        "logs",
        "service",
        "shuffler",
        "stores",
        "studies",
    )
}


@pytest.hookimpl(tryfirst=True)  # before the marks are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        path = item.path.relative_to(item.config.rootpath)
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(path)))
        if "/".join(path.parts[:2]) in INTERPRETED and not item.get_closest_marker("compiled"):
            item.add_marker(pytest.mark.interpreted)
            if "/".join(path.parts[:2]) in ONCE:
                item.add_marker(pytest.mark.once)


@pytest.fixture(scope="session")
def published():
    """``published(name)``: the folder of a data set, in ``$DPBANDITS_DATA`` or in a folder of data
    beside the repository.
    """

    def find(name):
        beside = Path(__file__).resolve().parents[2] / "shared" / "data"
        folder = Path(os.environ.get("DPBANDITS_DATA", beside)) / name
        if not folder.is_dir():
            pytest.skip(
                f"{name} is not in {folder.parent}; DPBANDITS_DATA may name the folder that"
                " holds it"
            )
        return folder

    return find
