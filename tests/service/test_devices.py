"""Connected devices: what they keep, send, and never send twice."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from people import (
    ADVICE,
    ARMS,
    KINDS,
    LOCAL,
    REWARDS,
    ROWS,
    SUMS,
    Collecting,
    Through,
    device_of,
    policy_of,
)
from services import Served

from dpbandits.client import ServiceError
from dpbandits.device import ConnectedDevice
from dpbandits.device.programs import Config, program_of
from dpbandits.errors import ArgumentError, ClaimError, StateFileError, StoreError
from dpbandits.shuffle.sealing import label_of
from dpbandits.stores.addresses import store_at

SHOWN = {"local": ROWS, "sums": ROWS, "arms": None, "rewards": None, "advice": [[0.5, 0.5]] * 2}


def state(folder):
    return json.loads((folder / "device.json").read_bytes())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_learns_of_devices(served, tmp_path, kind):
    client = served.declare(name="trial", **KINDS[kind])
    shuffler = Collecting(client) if kind in ("sums", "arms") else None
    for person in range(1 if kind == "arms" else 3):
        with device_of(client, tmp_path / f"{person}", shuffler=shuffler) as device:
            assert device.choose(SHOWN[kind]) in (0, 1)
            device.report(1.0)
            assert (device.left, device.waiting) == (0, 1)
            assert device.send() == 1
            assert (device.waiting, device.send()) == (0, 0)
    if shuffler is not None:
        assert client.post("/batches", 202, **shuffler.batch()).told["learned"]
    if kind in ("rewards", "advice"):
        served.pass_time(7200.0)
    assert client.get().told["recorded"] > 0


@pytest.mark.parametrize("kind", ["local", "sums", "arms"])
def test_a_device_with_nothing_to_say_sends_noise(served, tmp_path, kind):
    client = served.declare(name="trial", **KINDS[kind])
    shuffler = None if kind == "local" else Collecting(client)
    with device_of(client, tmp_path, shuffler=shuffler) as device:
        device.report()
        assert device.left == 1
        device.choose(SHOWN[kind])
        device.report(1.0)
        for _ in range(3):  # of a person who has no report left
            device.choose(SHOWN[kind])
            device.report(1.0)
        assert device.left == 0
        assert device.send() == 5
    with device_of(client, tmp_path, shuffler=shuffler) as device:
        assert device.left == 0


def test_true_reports_are_no_more_than_are_left(served, tmp_path, monkeypatch):
    """After those, records hold nothing but noise, however often the device starts anew."""
    records = []
    client = served.declare(name="trial", **LOCAL, max_rounds=2)
    from dpbandits.algorithms.hidden.choosing_devices import Device

    keep = Device._record

    def record(self, arm, x, reward):
        records.append(keep(self, arm, x, reward))
        return records[-1]

    monkeypatch.setattr(Device, "_record", record)
    for _ in range(4):
        with device_of(client, tmp_path) as device:
            device.choose(ROWS)
            device.report(1.0)
    assert [bool(np.any(one)) for one in records] == [True, True, False, False]


@pytest.mark.parametrize("kind", ["local", "arms"])
def test_a_device_with_less_than_no_report_left_sends_noise(served, kind):
    client = served.declare(name="trial", **KINDS[kind])
    program, seen = program_of(Config(json.dumps(client.get("/config").told)), -1), []
    program.use("", json.loads(client.get("/randomiser").told["round"]))
    program.choose(SHOWN[kind], None)
    if kind == "local":
        program._device._randomise = lambda record: seen.append(np.max(np.abs(record))) or record
        program.report(1.0)
        assert seen == [0.0]
    else:
        assert program._counted(1.0) is None
    assert program.left == -1


@pytest.mark.parametrize("broken", ["before", "after"])
def test_the_same_bytes_are_sent_until_they_have_arrived(served, tmp_path, broken):
    client = served.declare(name="trial", **LOCAL)
    through = Through(served.http)
    with device_of(client, tmp_path, through) as device:
        device.choose(ROWS)
        device.report(1.0)
        through.broken = broken
        with pytest.raises(ServiceError):
            device.send()
        assert device.waiting == 1
    again = Through(served.http)
    with device_of(client, tmp_path, again) as device:
        assert (device.left, device.send()) == (0, 1)
    assert len(set(through.bodies() + again.bodies())) == 1
    assert client.get().told["recorded"] == 1


def test_nothing_is_sent_that_was_not_kept(served, tmp_path, monkeypatch):
    client = served.declare(name="trial", **LOCAL)
    through = Through(served.http)
    with device_of(client, tmp_path, through) as device:
        device.choose(ROWS)
        with monkeypatch.context() as full:
            full.setattr("dpbandits.device.state.write_anew", disk_full)
            with pytest.raises(StoreError):
                device.report(1.0)
        assert (device.left, device.send(), through.bodies()) == (0, 0, [])
        device.report(1.0)  # of noise
        assert device.send() == 1


def disk_full(*_):
    raise OSError(28, "No space left on device")


def test_a_stale_report_is_lost_and_not_made_anew(served, tmp_path):
    client = served.declare(name="trial", **SUMS)
    shuffler = Collecting(client)
    with device_of(client, tmp_path, shuffler=shuffler) as device:
        device.choose(ROWS)
        device.report(1.0)
        shuffler.status = 409
        assert device.send() == 0
        assert (device.waiting, device.left) == (0, 0)
        shuffler.status = 202
        assert (device.send(), shuffler.bodies) == (0, [])


def test_a_new_round_is_fetched_before_each_choice(served, tmp_path):
    client = served.declare(name="trial", **SUMS)
    shuffler, label = Collecting(client), client.get("/randomiser").told["label"]
    with device_of(client, tmp_path / "new", shuffler=shuffler) as device:
        device.report()
        for person in range(3):
            with device_of(client, tmp_path / f"{person}", shuffler=shuffler) as other:
                other.report()
                other.send()
        client.post("/batches", 202, **shuffler.batch())
        device.choose(ROWS)
        device.report(1.0)
        device.send()
    labels = [one["label"] for one in shuffler.bodies]
    assert labels == [label, client.get("/randomiser").told["label"]]
    assert labels[1].startswith("1:")


def test_a_choice_keeps_its_label_while_the_round_changes(served, tmp_path):
    client = served.declare(name="trial", **SUMS)
    shuffler = Collecting(client)
    with device_of(client, tmp_path, shuffler=shuffler) as device:
        device.choose(ROWS)
        of_choice = state(tmp_path)["label"]
        client.post("/retire", arm="x", reason="a test")
        device._refresh()
        device.report(1.0)
        device.report()
        device.send()
    assert [one["label"] for one in shuffler.bodies] == [
        of_choice,
        client.get("/randomiser").told["label"],
    ]


def test_without_the_server_earlier_releases_decide(served, tmp_path):
    client = served.declare(name="trial", **LOCAL)
    through = Through(served.http)
    config = json.dumps(client.get("/config").told)
    through.broken = "before"
    with device_of(client, tmp_path, through, config=config) as device:
        assert device.choose(ROWS) in (0, 1)  # by the config
        device.report(1.0)
        with pytest.raises(ServiceError):
            device.send()
    sums = served.declare(name="sums", **SUMS)
    with device_of(sums, tmp_path / "sums", through, Collecting(sums)) as device:
        with pytest.raises(ServiceError):
            device.report()  # the batch has a label that only the server knows
        through.broken = None
        device.choose(ROWS)
        through.broken = "before"
        device.choose(ROWS)
        device.report(1.0)


@pytest.mark.parametrize("pause", [True, False])
def test_a_pause_is_waited_for_and_an_archive_is_not(served, tmp_path, pause):
    client = served.declare(name="trial", **LOCAL)
    with device_of(client, tmp_path) as device:
        device.choose(ROWS)
        device.report(1.0)
        client.because("/pause" if pause else "/archive")
        if pause:
            with pytest.raises(ServiceError, match="paused"):
                device.send()
            client.because("/resume")
        assert device.send() == pause


def test_a_device_is_one_processs(served, tmp_path):
    client = served.declare(name="trial", **LOCAL)
    with device_of(client, tmp_path) as device:
        with pytest.raises(ClaimError), device_of(client, tmp_path):
            pass
        child = os.fork()
        if child == 0:
            try:
                device._state.change(left=5)
            except ClaimError:
                os._exit(3)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        device.report()
    for name in ("device.json", "device.lock"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    with device_of(client, tmp_path):
        pass


def test_a_damaged_or_foreign_file_is_not_begun_anew(served, tmp_path):
    client = served.declare(name="trial", **LOCAL)
    other = served.declare(name="other", **LOCAL)
    with device_of(client, tmp_path) as device:
        device.report()
    with pytest.raises(StateFileError, match="belongs to a device of"), device_of(other, tmp_path):
        pass
    path = tmp_path / "device.json"
    below = json.dumps({**state(tmp_path), "left": -1}).encode()
    for damaged in (b"", b"{}", path.read_bytes()[:-9], b"[1]", below):
        path.write_bytes(damaged)
        with pytest.raises(StateFileError), device_of(client, tmp_path):
            pass
    path.unlink()
    with pytest.raises(StateFileError, match="was deleted"), device_of(client, tmp_path):
        pass


# A server that is not to be trusted -----------------------------------------------------------


class Lying(Through):
    """Changes what the server describes."""

    def __init__(self, http, change):
        super().__init__(http)
        self.change = change

    def handle_request(self, request):
        reply = super().handle_request(request)
        if request.url.path.endswith("/randomiser"):
            told = self.change(json.loads(reply.content))
            reply = type(reply)(200, json=told)
        return reply


def described(told, **changes):
    """With another round, under the label that belongs to it."""
    text = json.dumps({**json.loads(told["round"]), **changes})
    return {**told, "round": text, "label": label_of(0, text)}


def less_noise(told):
    protocol = json.loads(told["round"])["protocol"]
    return described(told, protocol={**protocol, "noise": 1})


def more_people(told):
    protocol = json.loads(told["round"])["protocol"]
    return described(told, protocol={**protocol, "batch": 99}, batch=99)


def another_policy(told):
    chooser = json.loads(told["round"]).get("chooser", {"arguments": {}})
    arguments = {**chooser["arguments"], "budget": {"notion": "ZCDP", "rho": 9.0}}
    return described(told, chooser={**chooser, "arguments": arguments})


DEEP = "[" * 200_000
LIES = {
    "less noise": less_noise,
    "more people": more_people,
    "another policy": another_policy,
    "another text": lambda told: {**told, "round": told["round"] + " "},
    "no label": lambda told: {**told, "label": "x"},
    "long label": lambda told: {**told, "label": "1" * 5000 + ":"},
    "deep JSON": lambda told: {**told, "round": DEEP, "label": label_of(0, DEEP)},
    "no round": lambda told: described(told, protocol=None),
    "no JSON": lambda told: {**told, "round": "{", "label": label_of(0, "{")},
    "something else": lambda told: {"hello": 1},
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("kind", ["sums", "arms"])
def test_a_device_believes_its_config_alone(served, tmp_path, kind, lie):
    if kind == "arms" and lie in ("another policy", "more people"):
        return  # these devices get no chooser, and shufflers hold the number of people
    client = served.declare(name="trial", **KINDS[kind])
    lying, shuffler = Lying(served.http, LIES[lie]), Collecting(client)
    with device_of(client, tmp_path, lying, shuffler) as device:
        with pytest.raises((ArgumentError, ServiceError)):
            device.choose(SHOWN[kind])
        with pytest.raises((ArgumentError, ServiceError)):
            device.report(1.0)
        assert (device.waiting, device.left) == (0, 1)


def test_no_other_policy_is_made(served, tmp_path, monkeypatch):
    """The server could name one that takes all memory."""
    client = served.declare(name="trial", **LOCAL)

    def named(told):
        monkeypatch.setattr("dpbandits.policies.chooser.find", disk_full)
        return another_policy(told)

    refused = pytest.raises(ArgumentError, match="policy that made the device")
    with device_of(client, tmp_path, Lying(served.http, named)) as device, refused:
        device.choose(ROWS)


def test_a_larger_batch_than_the_config_allows_is_refused(served, tmp_path):
    """Of more people each adds less noise, though the server may not want them to come."""
    client = served.declare(name="trial", **ARMS)
    config, shuffler = client.get("/config").told, Collecting(client)
    people = json.loads(client.get("/randomiser").told["round"])["batch"]
    assert config.pop("most") >= people
    for most in (people - 1, people, None):  # by default as many as the service allows
        given = json.dumps(config if most is None else {**config, "most": most})
        with device_of(client, tmp_path / f"{most}", None, shuffler, given) as device:
            if most == people - 1:
                with pytest.raises(ArgumentError, match="batch"):
                    device.choose()
            else:
                device.choose()


def test_what_is_sent_says_nothing_but_the_report(served, tmp_path):
    client = served.declare(name="trial", **LOCAL)
    through = Through(served.http)
    with device_of(client, tmp_path, through, unit="Ann") as device:
        device.choose(ROWS)
        device.report(0.123456789)
        device.send()
    (body,) = map(json.loads, through.bodies())
    assert body.keys() == {"report_id", "report", "unit"}
    policy = policy_of(client.get("/config").told)
    grid = policy.grid
    assert all(float(value / grid).is_integer() for value in body["report"])
    kept = state(tmp_path)
    assert (kept["left"], kept["outbox"]) == (0, [])
    assert kept.keys() == {"experiment", "left", "label", "round", "outbox"}


def test_a_reply_of_something_else_is_no_arrival(served, tmp_path):
    client = served.declare(name="trial", **LOCAL)
    portal = Through(served.http)
    with device_of(client, tmp_path, portal) as device:
        device.report()
        keep = portal.handle_request
        for content in (b"<html>", b"{}", b'{"report_id": "another"}'):
            portal.handle_request = lambda _, content=content: __import__("httpx").Response(
                200, content=content
            )
            with pytest.raises(ServiceError):
                device.send()
        portal.handle_request = keep
        assert device.send() == 1


@pytest.mark.parametrize(
    ("words", "change"),
    [
        (LOCAL, lambda config: {**config, "reports": 2}),
        (LOCAL, lambda config: {**config, "reports": -1}),
        (LOCAL, lambda config: {"name": "trial"}),
        (SUMS, lambda config: config),
        (REWARDS, lambda config: {**config, "chooser": {}}),
    ],
)
def test_wrong_configs_are_refused(served, tmp_path, words, change):
    client = served.declare(name="trial", **words)
    config = json.dumps(change(client.get("/config").told))
    with pytest.raises(ArgumentError):
        ConnectedDevice(config, tmp_path, server="http://127.0.0.1")


@pytest.mark.parametrize("kind", KINDS)
def test_simulated_noise_is_refused(served, tmp_path, kind):
    """Whoever knows the seed could subtract it."""
    config = served.declare(name="trial", **KINDS[kind]).get("/config").told
    config["chooser"]["arguments"]["noise"] = "simulation"
    addresses = {"server": "http://127.0.0.1", "shuffler": "http://127.0.0.1"}
    with pytest.raises(ArgumentError, match="noise='secure'"):
        ConnectedDevice(json.dumps(config), tmp_path, **addresses)


@pytest.mark.parametrize("key", [None, "", "AAAA", "?"])
@pytest.mark.parametrize("kind", ["sums", "arms"])
def test_messages_need_the_key_of_the_server(served, tmp_path, kind, key):
    """Before a report is made, which would count."""
    config = served.declare(name="trial", **KINDS[kind]).get("/config").told | {"public_key": key}
    addresses = {"server": "http://127.0.0.1", "shuffler": "http://127.0.0.1"}
    with pytest.raises(ArgumentError):
        ConnectedDevice(json.dumps(config), tmp_path, **addresses)


def test_where_the_server_decides_a_choice_comes_first(served, tmp_path):
    client = served.declare(name="trial", **ADVICE)
    with device_of(client, tmp_path) as device:
        with pytest.raises(ArgumentError, match="choose"):
            device.report(1.0)
        with pytest.raises(ArgumentError, match="advice"):
            device.choose()
        with pytest.raises(ServiceError):
            device.choose([[1.0]])
        with pytest.raises(ArgumentError, match="choose"):
            device.report(1.0)


# Kills ----------------------------------------------------------------------------------------

KILLED = """
import json, os, signal, sys
import httpx
from dpbandits.client import Retries
from dpbandits.device import ConnectedDevice, state

folder, when = sys.argv[1:]
config = sys.stdin.read()

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def refused(request):
    if when == "sending" and request.method == "POST":
        open(folder + "/sent", "wb").write(request.read())
        die()
    raise httpx.ConnectError("nobody")

device = ConnectedDevice(config, folder, server="http://127.0.0.1",
    transport=httpx.MockTransport(refused), retries=Retries(limit=0.01))
device.choose([[0.6, 0.0], [0.0, 0.6]])
if when == "before keeping":
    state.write_anew = die
if when == "while keeping":
    os.replace = die
device.report(1.0)
if when == "after keeping":
    die()
device.send()
"""


@pytest.mark.parametrize("when", ["before keeping", "while keeping", "after keeping", "sending"])
def test_a_device_that_is_killed_sends_what_it_kept(served, tmp_path, when):
    client = served.declare(name="trial", **LOCAL)
    folder = tmp_path / "device"
    config = json.dumps(client.get("/config").told)
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, folder, when], input=config.encode(), check=False
    )
    assert ended.returncode == -signal.SIGKILL
    through = Through(served.http)
    with device_of(client, folder, through) as device:
        kept = when in ("after keeping", "sending")
        assert (device.left, device.waiting) == ((0, 1) if kept else (1, 0))
        assert device.send() == kept
    if when == "sending":
        assert through.bodies() == [(folder / "sent").read_bytes()]


def test_a_server_that_comes_back_knows_what_it_has_taken(store, clock, tmp_path):
    with Served(store, clock) as served:
        client = served.declare(name="trial", **LOCAL)
        through = Through(served.http)
        with device_of(client, tmp_path / "device", through) as device:
            device.choose(ROWS)
            device.report(1.0)
            through.broken = "after"
            with pytest.raises(ServiceError):
                device.send()
    with Served(store_at(f"sqlite:///{tmp_path}/policies.db"), clock) as served:
        client = served.client()
        with device_of(client, tmp_path / "device") as device:
            assert device.send() == 1
        assert client.get().told["recorded"] == 1


def test_importing_the_client_loads_no_device():
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import dpbandits.client, sys; print('dpbandits.device' in sys.modules)",
        ],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parent,
    )
    assert told.stdout.strip() == b"False"
