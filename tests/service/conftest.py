import pytest
from services import Clock, Served

from dpbandits.stores.addresses import store_at


@pytest.fixture(autouse=True)
def state_folder(tmp_path, monkeypatch):
    """Claims of a test stay in its own folder."""
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path):
    return store_at(f"sqlite:///{tmp_path}/policies.db")


@pytest.fixture
def served(store, clock):
    with Served(store, clock) as one:
        yield one
