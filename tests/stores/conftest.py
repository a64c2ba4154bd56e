import pytest


@pytest.fixture(autouse=True)
def state_folder(tmp_path, monkeypatch):
    """Claims of a test stay in its own folder."""
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"
