"""The commands ``dpbandits serve`` and ``dpbandits keys``, as a shell runs them."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import serve_kills
from typer.testing import CliRunner

from dpbandits.cli import app
from dpbandits.service.server import Settings, serve

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
        with pytest.raises(ValueError, match="host must be of this machine without keys"):
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
