"""The command ``dpbandits shuffle`` and its file."""

import json
import signal

import pytest
from parties import KEY, NAME, Person, Server, arms, linear, listening, until, written
from shuffle_kills import Process
from typer.testing import CliRunner

from dpbandits import ApproxDP, ArgumentError
from dpbandits.algorithms import LinUCBLDP
from dpbandits.cli import app
from dpbandits.errors import StateFileError
from dpbandits.shuffle.sealing import ServerKey
from dpbandits.shuffler.config import Config
from dpbandits.shuffler.tickets import Tickets

RUN = CliRunner()


def test_a_process_takes_messages_and_ends(tmp_path):
    server = Server(linear())
    http, address = listening(server)
    file, tickets, _ = written(tmp_path, server, address)
    issued = RUN.invoke(app, ["shuffle", "--ticket", "user-0", str(file)])
    assert issued.exit_code == 0
    assert issued.stdout.strip() == tickets.issue(NAME, "user-0")
    assert issued.stderr.strip() == f"experiment: {NAME}"
    shuffler = Process(file)
    shuffler.start()
    until(lambda: shuffler.address, 60.0)
    for i in range(4):
        person = Person(server, tickets, f"user-{i}").make()

        def taken(person=person):
            reply = _post(shuffler.address, person)
            return reply.status_code == 202

        until(taken)
    until(lambda: server.taken)
    shuffler.stop(signal.SIGTERM)
    assert shuffler.process.returncode == 0
    assert json.loads(shuffler.log[-1])["event"] == "stopped"
    http.shutdown()
    http.server_close()


def _post(address, person):
    import httpx

    url = f"{address}/v1/experiments/{NAME}/messages"
    return httpx.post(url, json=person.body, headers=person.headers())


# The file -------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    return written(tmp_path, Server(linear()))[0]


def changed(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return file


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('server = "http://server.example"\n', "", "server must be given"),
        ("server =", "servers =", "a word of .* must be one of"),
        ("http://server.example", "server.example", "url must be the address"),
        ('{ file = "key" }', '"dpb_secret"', "key must be { env = NAME }"),
        ('{ file = "key" }', '{ env = "NO_SUCH_VARIABLE" }', "key must name"),
        ('{ file = "key" }', '{ file = "none" }', "key must name"),
        ("least = 4", "least = 1", "least must be an integer"),
        ("least = 4", 'least = "4"', "least must be an integer"),
        ("least = 4\n", "", "least must be given"),
        ("least = 4", "least = 51", "least must be an integer"),
        ('closes = "full"', "", "closes or every must be given, and not both"),
        ('closes = "full"', 'closes = "full"\nevery = "1h"', "closes or every must be given, and"),
        ('closes = "full"', 'closes = "soon"', "closes must be one of 'full'"),
        ('closes = "full"', 'every = "1 h"', "every must be a time"),
        ('name = "study"', 'name = "other"', "name must equal the entry 'name' in"),
        ("study.json", "none.json", "config must name a file that configures"),
        ("[[experiments]]", "[experiments]", "experiments must be tables"),
        ("[[experiments]]", "[[experiments", "cannot be read"),
        ('"tickets"', '"none"', "tickets must name the file"),
    ],
)
def test_mistakes_of_the_file_are_told_in_a_sentence(file, old, new, message):
    told = RUN.invoke(app, ["shuffle", "--port", "0", str(changed(file, old, new))])
    assert told.exit_code == 2
    with pytest.raises(ArgumentError, match=message):
        raise ArgumentError(" ".join(told.output.split()))
    assert KEY not in told.output


def test_two_experiments_have_two_names(file):
    text = file.read_text()
    file.write_text(text + text[text.index("[[") :])
    with pytest.raises(ArgumentError, match="name must differ"):
        Config.read(file)


def test_keys_come_from_the_environment_or_a_file(file, monkeypatch):
    assert Config.read(file).key == KEY
    monkeypatch.setenv("SHUFFLER_KEY", "dpb_other")
    changed(file, '{ file = "key" }', '{ env = "SHUFFLER_KEY" }')
    assert Config.read(file).key == "dpb_other"
    changed(file, 'key = { env = "SHUFFLER_KEY" }\n', "")
    assert Config.read(file).key is None


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda: linear(protocol="bits"), "protocol must be 'modular' or 'reports' over HTTP"),
        (lambda: linear(noise="simulation"), "noise='secure'"),
        (lambda: linear(messages=False, noise="simulation"), "messages=True and a budget"),
        (
            lambda: LinUCBLDP(2, 2, budget=ApproxDP(1.0, 1e-4), horizon=9, reports=True),
            "messages=True and a budget",
        ),
    ],
    ids=["bits", "simulation", "central", "local"],
)
def test_policies_that_are_not_shuffled_like_this(tmp_path, policy, message):
    with pytest.raises(ArgumentError, match=message):
        written(tmp_path, Server(policy()))


def test_configurations_that_are_none(tmp_path):
    server = Server(arms())
    file, _, _ = written(tmp_path, server)
    good = server.config()
    for bad in (
        {**good, "public_key": "AAAA"},
        {**good, "public_key": "*"},
        {**good, "chooser": {}},
        {**good, "chooser": {"arguments": {"class": "NoSuchPolicy"}}},
        {**good, "chooser": {"arguments": {"class": "MergedIMEDSDP", "n_arms": 2, "hm": 1}}},
        {**good, "name": "a b"},
        [],
    ):
        (tmp_path / "study.json").write_text(json.dumps(bad))
        with pytest.raises(ArgumentError, match=r"must|there is no policy"):
            Config.read(file)
    (tmp_path / "study.json").write_text(json.dumps(good))
    assert Config.read(file).experiments[NAME].public_key == ServerKey(server.key.to_bytes()).public


@pytest.mark.parametrize(("make", "most"), [(linear, 4), (arms, 10**5)])
def test_a_configuration_without_most_has_that_of_the_policy(tmp_path, make, most):
    server = Server(make())
    file, _, _ = written(tmp_path, server)
    given = server.config()
    assert given.pop("most") != most
    (tmp_path / "study.json").write_text(json.dumps(given))
    [pinned] = Config.read(file).experiments.values()
    assert pinned.most == most


def test_the_secret_of_tickets_is_its_owners_alone(tmp_path):
    path = tmp_path / "tickets"
    made, again = Tickets.at(path), Tickets.at(path)
    assert made.issue(NAME, "ann") == again.issue(NAME, "ann") != made.issue("other", "ann")
    path.chmod(0o640)
    with pytest.raises(StateFileError, match="chmod 600"):
        Tickets(path)
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(ArgumentError, match="32 bytes"):
        Tickets(path)
    for name in ("", " ", "a\n", "x" * 201):
        with pytest.raises(ArgumentError, match="printable characters"):
            made.issue(NAME, name)


def test_hashes_of_users_differ_between_experiments_and_secrets(tmp_path):
    one, two = Tickets.at(tmp_path / "one"), Tickets.at(tmp_path / "two")
    found = {
        tickets.user_of(name, tickets.issue(name, "ann"))
        for tickets in (one, two)
        for name in (NAME, "other")
    }
    assert len(found) == 4
    assert None not in found
