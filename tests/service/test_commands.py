"""The commands ``dpbandits serve`` and ``dpbandits keys``, as a shell runs them."""

import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import serve_kills
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits.cli import app
from dpbandits.service.server import Settings, serve
from dpbandits.stores.addresses import store_at

RUN = CliRunner()


def test_keys_are_made_listed_and_revoked(tmp_path):
    file = ["--file", str(tmp_path / "keys.json")]
    made = RUN.invoke(app, ["keys", "add", "--role", "decide", "--experiment", "shop-*", *file])
    assert made.exit_code == 0
    secret = made.stdout.strip()
    assert re.fullmatch(r"dpb_[\w-]{43}", secret)
    key = re.search(r"id: (\w+)", made.stderr)[1]
    listed = RUN.invoke(app, ["keys", "list", *file]).output
    assert key in listed
    assert "shop-*" in listed
    assert secret not in listed
    assert RUN.invoke(app, ["keys", "revoke", key, *file]).exit_code == 0
    assert RUN.invoke(app, ["keys", "revoke", key, *file]).exit_code != 0
    assert key not in RUN.invoke(app, ["keys", "list", *file]).output
    assert RUN.invoke(app, ["keys", "add", "--role", "root", *file]).exit_code != 0


def test_it_does_not_serve_others_without_keys(tmp_path):
    for host in ("0.0.0.0", "192.0.2.1", "::", "example.org"):
        with pytest.raises(
            ValueError,
            match=r"^host must be an address of this machine, .* if there are no keys, got",
        ):
            serve(Settings(f"sqlite:///{tmp_path}/p.db", host))
    told = RUN.invoke(app, ["serve", "--keys", str(tmp_path / "none.json")])
    assert told.exit_code != 0
    assert "dpbandits keys add" in " ".join(told.output.split())
    assert not (tmp_path / "p.db").exists()


def test_mistakes_of_a_file_come_all_at_once(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text('[[experiments]]\nname = "A"\n[[experiments]]\nname = "b"\nretries_for = 5\n')
    told = RUN.invoke(app, ["serve", str(path), "--insecure"])
    assert told.exit_code != 0
    assert "name must have" in told.output
    assert "retries_for must be" in told.output


def test_a_process_serves_stops_and_goes_on(tmp_path):
    service = serve_kills.Service(f"sqlite:///{tmp_path}/policies.db", tmp_path)
    replies = []
    for how in (signal.SIGTERM, signal.SIGINT):
        service.start()
        service.await_ready()
        url = service.address + "/v1/experiments/trial"
        reply = httpx.post(url + "/decisions", json={"decision_id": "one"})
        assert "server" not in reply.headers
        replies.append(reply.content)
        service.kill(how)
        assert service.process.returncode == 0
        assert [json.loads(line)["event"] for line in service.log().splitlines()][-1] == "stopped"
    assert replies[0] == replies[1]


def test_only_commands_of_the_service_import_it():
    code = "import dpbandits, dpbandits.cli, sys; print('starlette' in sys.modules)"
    source = str(Path(__file__).parents[2] / "src")
    told = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": source}, capture_output=True
    )
    assert told.stdout.strip() == b"False"


def test_all_places_of_a_database_are_restored(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    address = f"sqlite:///{tmp_path}/p.db"
    store = store_at(address)
    for key in ("default.shop", "my own"):
        policy = dpb.bandit(2, None, seed=1)
        policy.save(store.place(key))
        policy.close()
        del policy
    gc.collect()
    refused = RUN.invoke(app, ["restore", address])
    assert refused.exit_code != 0
    assert "default.shop, my own" in " ".join(refused.output.split())
    told = RUN.invoke(app, ["restore", address, "--all"]).output
    assert told.count("Load it there.") == 2
    assert f"{address}#my%20own" in told
    dpb.load(store.place("my own")).close()
    told = json.loads(RUN.invoke(app, ["restore", address, "--all", "--json"]).stdout)
    assert [one["place"] for one in told] == [f"{address}#default.shop", f"{address}#my%20own"]
    assert dpb.load(store.place("my own")).session.restored == 2


def test_all_lines_on_standard_error_are_json(tmp_path):
    """Also those of libraries: here the port is taken; and warnings."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code = (
            "import warnings, logging; from dpbandits.service import log, server;"
            f"server.tune = lambda: None; log.take_all_over(); warnings.warn('odd');"
            f"server.run(None, '127.0.0.1', {taken.getsockname()[1]})"
        )
        source = str(Path(__file__).parents[2] / "src")
        told = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": source},
            capture_output=True,
        )
    lines = [json.loads(line) for line in told.stderr.splitlines()]
    assert told.returncode
    assert {"warning", "logged"} <= {one["event"] for one in lines}
    assert any("address already in use" in str(one.get("detail")).lower() for one in lines)
