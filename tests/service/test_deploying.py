"""The files of ``deploy/`` fit the commands, and each other."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer
import yaml

from dpbandits.cli import app
from dpbandits.service.declaration import read_file
from dpbandits.service.parties import Parties
from dpbandits.service.trail import Trail
from dpbandits.shuffle.sealing import ServerKey
from dpbandits.shuffler.config import Config

DEPLOY = Path(__file__).parents[2] / "deploy"
IMAGE = (DEPLOY / "Containerfile").read_text()
COMPOSED = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(DEPLOY.glob("*.yaml"))}
UNITS = sorted(DEPLOY.glob("*.service"))


def in_containers():
    """What containers run: the default of the image, and commands of compose files."""
    commands = [listed("CMD")]
    for composed in COMPOSED.values():
        commands += [one["command"] for one in composed["services"].values() if "command" in one]
    return [[*listed("ENTRYPOINT"), *command] for command in commands]


def listed(word):
    return json.loads(re.search(rf"^{word} (.*)$", IMAGE, re.MULTILINE)[1])


def in_units():
    starts = r"^ExecStart=/opt/dpbandits/bin/(.*)$"
    return [shlex.split(re.search(starts, one.read_text(), re.MULTILINE)[1]) for one in UNITS]


@pytest.mark.parametrize("words", [*in_containers(), *in_units()], ids=" ".join)
def test_commands_have_words_that_dpbandits_knows(words):
    program, name, *rest = words
    assert program == "dpbandits"
    command = typer.main.get_command(app).commands[name]
    read = command.make_context(name, list(rest)).params
    assert read["experiments" if name == "serve" else "file"] is not None


def test_containers_listen_where_the_image_looks_for_them():
    inside = re.search(r"http://127\.0\.0\.1:(\d+)/healthz", IMAGE)[1]
    for composed in COMPOSED.values():
        for one in composed["services"].values():
            for published in one.get("ports", []):
                host, _, port = published.split(":")
                assert (host, port) == ("127.0.0.1", inside)  # TLS is the proxy's
    *_, shuffler = in_containers()
    assert shuffler[shuffler.index("--port") + 1] == inside


def test_the_shuffler_shares_nothing_with_the_service():
    service, shuffler = COMPOSED["compose"], COMPOSED["shuffler"]
    for word in ("services", "volumes"):
        assert service[word].keys().isdisjoint(shuffler[word])
    given = [set(one["environment"]) for one in service["services"].values()]
    assert set.union(*given).isdisjoint(shuffler["services"]["shuffler"]["environment"])
    for composed in COMPOSED.values():
        named = {
            mount.split(":")[0]
            for one in composed["services"].values()
            for mount in one["volumes"]
            if not mount.startswith(".")
        }
        assert named == composed["volumes"].keys()


def test_the_shuffler_shuffles_what_the_service_declares(tmp_path, monkeypatch):
    (declared,) = [
        one for one in read_file(DEPLOY / "experiments.toml") if one.words.get("messages")
    ]
    policy = declared.build()
    parties = Parties(declared.name, policy, ServerKey.make().public, Trail(policy.notes))
    (tmp_path / "texts.json").write_text(json.dumps(parties.config()))
    shutil.copy(DEPLOY / "shuffler.toml", tmp_path)
    (variable,) = COMPOSED["shuffler"]["services"]["shuffler"]["environment"]
    monkeypatch.setenv(variable, "dpb_secret")
    config = Config.read(tmp_path / "shuffler.toml")
    assert config.key == "dpb_secret"
    found = config.experiments[declared.name].announced(parties.round())
    assert found.protocol.batch == declared.words["batch"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd")
def test_systemd_knows_the_words_of_units(unit, tmp_path):
    text = unit.read_text().replace("/opt/dpbandits/bin/dpbandits", "/bin/true")
    (tmp_path / unit.name).write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", tmp_path / unit.name]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
