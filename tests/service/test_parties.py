"""Reports of devices and batches of shufflers over HTTP."""

import json
import math

import numpy as np
import pytest
from people import (
    ADVICE,
    ARMS,
    KINDS,
    LOCAL,
    REWARDS,
    SUMS,
    Collecting,
    changed,
    device_of,
    policy_of,
    report_of,
)
from services import Client, Served

import dpbandits as dpb
from dpbandits.policies import Policy
from dpbandits.service.access import Keys
from dpbandits.service.parties import Parties, read_key
from dpbandits.stores.addresses import store_at
from dpbandits.stores.witness import state_folder


def declared(served, **words):
    return served.declare(name="trial", **words)


# Local trust ----------------------------------------------------------------------------------


def test_reports_are_learned_from_once(served):
    client = declared(served, **LOCAL)
    report = report_of(client)
    for _ in range(2):
        sent = client.post("/reports", 202, report_id="one", report=report)
        assert sent.told == {"report_id": "one", "learned": True, "why": None}
    assert client.get().told["recorded"] == 1
    other = [value + 1.0 for value in report]
    assert client.post("/reports", 409, report_id="one", report=other).told["type"] == "id-reused"
    client.post("/reports", 202, report_id="two", report=other)
    assert client.get().told["recorded"] == 2


def test_reports_are_the_policys_own(served):
    """What the server has learned is what the policy would have learned in one process."""
    client = declared(served, **LOCAL, batch=2)
    alone = policy_of(client.get("/config").told)
    for i in range(4):
        report = report_of(client, i % 2)
        client.post("/reports", 202, report_id=f"{i}", report=report)
        alone.receive(report)
    told = json.loads(client.get("/randomiser").told["round"])["chooser"]
    assert told == json.loads(alone.chooser().to_json())
    assert told["release"] == 4


@pytest.mark.parametrize(
    "report", [[], [0.0] * 4, [0.0] * 6, [1e300] * 5, [None] * 5, ["0"] * 5, "0", [[0.0]] * 5, None]
)
def test_what_no_randomiser_makes_is_refused_and_not_shown(served, report):
    client = declared(served, **LOCAL)
    told = client.post("/reports", 422, report_id="one", report=report, unit="Ann").told
    assert "e+300" not in told["detail"]
    assert client.get().told["recorded"] == 0
    good = client.post("/reports", 202, report_id="one", report=report_of(client), unit="Ann")
    assert good.told["learned"]


def test_a_person_has_so_many_reports(served):
    client = declared(served, **LOCAL, max_rounds=2)
    report = report_of(client)
    learned = [
        client.post("/reports", 202, report_id=f"{i}", report=report, unit="Ann").told["learned"]
        for i in range(3)
    ]
    assert learned == [True, True, False]
    told = client.post("/reports", 202, report_id="2", report=report, unit="Ann").told
    assert told["why"] == "this person has sent all their reports"
    assert client.post("/reports", 202, report_id="3", report=report, unit="Bob").told["learned"]
    assert client.get().told["recorded"] == 3


def test_after_the_planned_number_nothing_is_learned(served):
    client = declared(served, **{**LOCAL, "horizon": 2}, batch=1)
    report = report_of(client)
    learned = [
        client.post("/reports", 202, report_id=f"{i}", report=report).told["learned"]
        for i in range(4)
    ]
    assert learned == [True, True, False, False]


def test_reports_are_forgotten_by_time_alone(served):
    client = declared(served, **LOCAL, retries_for="10s")
    report = report_of(client)
    client.post("/reports", 202, report_id="one", report=report)
    served.pass_time(9.0)
    client.post("/reports", 202, report_id="one", report=report)
    assert client.get().told["recorded"] == 1
    served.pass_time(1.0)
    assert not any(kind == "receipt" for kind, _ in served.experiment().policy.notes)


def test_reports_survive_a_restart(store, clock, tmp_path):
    with Served(store, clock) as served:
        client = declared(served, **LOCAL)
        report = report_of(client)
        client.post("/reports", 202, report_id="one", report=report, unit="Ann")
    with Served(store_at(f"sqlite:///{tmp_path}/policies.db"), clock) as served:
        client = served.client()
        client.post("/reports", 202, report_id="one", report=report, unit="Ann")
        assert client.get().told["recorded"] == 1
        more = client.post("/reports", 202, report_id="two", report=report, unit="Ann")
        assert not more.told["learned"]


def test_a_pause_an_end_and_an_archive_refuse_reports(served):
    client = declared(served, **LOCAL)
    report = report_of(client)
    client.post("/reports", 202, report_id="one", report=report)
    client.because("/pause")
    assert client.post("/reports", 409, report_id="two", report=report).told["type"] == "paused"
    client.post("/reports", 202, report_id="one", report=report)  # repeated
    client.because("/resume")
    client.post("/reports", 202, report_id="two", report=report)
    assert client.because("/archive")["finished"]
    assert client.post("/reports", 410, report_id="three", report=report).told["type"] == "archived"
    assert client.get("/randomiser", 410).told["type"] == "archived"


@pytest.mark.parametrize("kind", KINDS)
def test_each_experiment_takes_what_is_its_own(served, kind):
    client, own = declared(served, **KINDS[kind]), KINDS[kind]
    takes = {"reports"} if kind == "local" else {"batches"} if "messages" in own else {"decisions"}
    bodies = {
        "decisions": {"advice": [[0.5, 0.5]] * 2} if kind == "advice" else {},
        "reports": {"report_id": "one", "report": [0.0] * 5},
        "batches": {"batch_id": "one", "label": "0:", "sum": None, "sealed": []},
    }
    for what, body in bodies.items():
        told = client.post(f"/{what}", **body).told
        assert (told.get("type") in ("on-devices", "not-taken")) == (what not in takes), what
        assert what in takes or told["detail"].startswith(("People's devices", "The experiment"))


def test_pages_tell_nothing_of_arms_where_contexts_are_private(served):
    for kind in ("local", "sums"):
        client = served.declare(name=kind, **KINDS[kind])
        page = served.http.get(f"/console/{kind}")
        told = client.get().told
        assert told["recommendation"] is told["answers_within"] is None
        assert told["takes"] in page.text
        assert "devices choose" in page.text
        assert page.status_code == 200, page.text
        estimates = client.get("/estimates").told
        assert estimates["means"] is estimates["rounds"] is None
        client.get("/card")


# Finite arms under local trust ----------------------------------------------------------------


@pytest.mark.parametrize("words", [REWARDS, ADVICE])
def test_the_server_decides_and_devices_randomise_rewards(served, words):
    client = declared(served, **words)
    told = json.loads(client.get("/randomiser").told["round"])["randomiser"]
    numerator, denominator = map(int, told["parameter"])
    assert told["noise"] == "Laplace"
    assert numerator / denominator * told["grid"] == pytest.approx(1.0)
    randomise = policy_of(client.get("/config").told).randomiser()
    asked = {"advice": [[0.5, 0.5]] * 2} if "experts" in words else {}
    for i in range(5):
        client.decide(decision_id=f"{i}", **asked)
        assert client.reward(randomise(1.0), decision_id=f"{i}")["learned"]
    client.decide(decision_id="far", **asked)
    assert client.reward(1e6, 422, decision_id="far")["word"] == "reward"


# Batches --------------------------------------------------------------------------------------


def filled(served, tmp_path, words, people=3, **more):
    """An experiment, and a shuffler that has the messages of some people."""
    client = declared(served, **words, **more)
    shuffler = Collecting(client)
    for person in range(people):
        with device_of(client, tmp_path / f"{person}", shuffler=shuffler) as device:
            device.choose([[0.6, 0.0], [0.0, 0.6]] if words is not ARMS else None)
            device.report(1.0)
            device.send()
    return client, shuffler


@pytest.mark.parametrize("protocol", ["modular", "reports"])
def test_a_batch_is_the_sum_of_its_people(served, tmp_path, protocol):
    client, shuffler = filled(served, tmp_path, SUMS, protocol=protocol, level="local")
    batch = shuffler.batch()
    for _ in range(2):
        told = client.post("/batches", 202, **batch).told
        assert told == {"batch_id": "b", "learned": True, "why": None}
    assert client.get().told["releases"] == 1
    chooser = json.loads(client.get("/randomiser").told["round"])["chooser"]
    assert chooser["release"] == 1
    old = client.post("/batches", 409, **{**batch, "batch_id": "c"}).told
    assert old["type"] == "stale"
    assert client.post("/batches", 409, **{**batch, "label": "1:"}).told["type"] == "id-reused"


def test_what_the_server_opens_is_what_devices_reported(served, tmp_path, monkeypatch):
    received = []
    client, shuffler = filled(served, tmp_path, SUMS)
    monkeypatch.setattr(Parties, "_learned", lambda self, sent: received.append(sent) or 0)
    client.post("/batches", 202, **shuffler.batch())
    protocol = served.experiment().policy.protocol
    total = protocol.total(received[0].values) * protocol.step
    exact = 3 * np.array([0.6, 0.0, 0.36, 0.0, 0.0])  # x r, and x x^T
    assert np.abs(total - exact).max() < 8.0 * protocol.noise_std + 3.0 * protocol.step


def test_a_batch_of_rewards_is_of_the_arm_that_devices_were_told(served, tmp_path):
    client, shuffler = filled(served, tmp_path, ARMS, people=1)
    assert client.post("/batches", 202, **shuffler.batch()).told["learned"]
    summary = client.get().told
    assert (summary["releases"], summary["recorded"]) == (1, 1)
    told = json.loads(client.get("/randomiser").told["round"])
    assert told["batch"] == told["protocol"]["batch"]


def test_of_two_batches_at_once_one_counts(served, tmp_path):
    client, shuffler = filled(served, tmp_path, SUMS)
    batch = shuffler.batch()
    url = f"{client.at}/batches"
    calls = [(url, batch), (url, batch), (url, {**batch, "batch_id": "c"})]
    statuses = [reply.status_code for reply in served.http.at_once(calls)]
    assert sorted(statuses) in ([202, 202, 409], [202, 409, 409])
    assert client.get().told["releases"] == 1


def test_a_bad_ciphertext_changes_no_status(served, tmp_path):
    client, shuffler = filled(served, tmp_path, SUMS)
    batch = shuffler.batch()
    batch["sealed"][1] = changed(batch["sealed"][1])
    assert client.post("/batches", 202, **batch).told["learned"]


@pytest.mark.parametrize(
    "change",
    [
        lambda one: {**one, "sealed": one["sealed"][:-1]},
        lambda one: {**one, "sealed": [*one["sealed"], one["sealed"][0]]},
        lambda one: {**one, "sealed": [*one["sealed"][:-1], "AAAA"]},
        lambda one: {**one, "sealed": ["#"] * 3},
        lambda one: {**one, "sum": None},
        lambda one: {**one, "sum": one["sum"][:-1]},
        lambda one: {**one, "sum": [-1, *one["sum"][1:]]},
        lambda one: {**one, "sum": [2**60, *one["sum"][1:]]},
        lambda one: {**one, "sum": []},
    ],
)
def test_what_no_shuffler_makes_is_refused(served, tmp_path, change):
    client, shuffler = filled(served, tmp_path, SUMS)
    batch = shuffler.batch()
    assert client.post("/batches", 422, **change(batch)).told["type"] == "invalid"
    client.post("/batches", 202, **batch)


def test_two_choosers_under_one_number_have_two_labels(served):
    client = declared(served, **SUMS)
    first = client.get("/randomiser").told
    served.experiment().devices.parties._known = None
    assert client.get("/randomiser").told == first  # the same text again
    client.post("/retire", arm="x", reason="a test")
    second = client.get("/randomiser").told
    assert first["label"].partition(":")[0] == second["label"].partition(":")[0] == "0"
    assert first["label"] != second["label"]
    client.post("/add", arm="x", reason="a test")  # the arms are as before, and the label is new
    third = client.get("/randomiser").told["label"]
    assert third not in (first["label"], second["label"])


def test_a_label_outlives_a_restart_and_never_returns(store, clock, tmp_path):
    with Served(store, clock) as served:
        client = declared(served, **SUMS)
        first = client.get("/randomiser").told["label"]
        for call in ("/retire", "/add"):
            client.post(call, arm="x", reason="a test")
        last = client.get("/randomiser").told["label"]
    with Served(store_at(f"sqlite:///{tmp_path}/policies.db"), clock) as served:
        assert served.client().get("/randomiser").told["label"] == last != first


def test_keys_of_experiments_are_in_the_state_folder_until_they_end(served, tmp_path):
    client, shuffler = filled(served, tmp_path, SUMS)
    (path,) = (state_folder() / "hpke").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    moved = path.rename(tmp_path / "elsewhere")
    batch = shuffler.batch()
    assert client.post("/batches", 503, **batch).told["type"] == "no-key"
    moved.rename(path)
    client.post("/batches", 202, **batch)
    secret = path.read_bytes()
    client.because("/archive")
    assert not path.exists()
    assert client.post("/batches", 410, **{**batch, "batch_id": "c"}).told["type"] == "archived"
    found = [one for one in tmp_path.rglob("*") if one.is_file() and secret in one.read_bytes()]
    assert found == []


def test_a_restored_backup_goes_on_with_the_same_key_and_another_label(store, clock, tmp_path):
    with Served(store, clock) as served:
        client, shuffler = filled(served, tmp_path, SUMS)
        before = client.get("/randomiser").told
    store = store_at(f"sqlite:///{tmp_path}/policies.db")
    policy = dpb.restore(store.place("default.trial"))
    policy.close()
    with Served(store, clock) as served:
        client = served.client()
        shuffler.client = client
        after = client.get("/randomiser").told
        assert after["public_key"] == before["public_key"]
        assert after["label"] != before["label"]  # of which a shuffler may have made an output
        assert client.post("/batches", 409, **shuffler.batch()).told["type"] == "stale"


def test_a_restart_between_messages_and_batch_loses_nothing(store, clock, tmp_path):
    with Served(store, clock) as served:
        _, shuffler = filled(served, tmp_path, SUMS)
        batch = shuffler.batch()
    with Served(store_at(f"sqlite:///{tmp_path}/policies.db"), clock) as served:
        assert served.client().post("/batches", 202, **batch).told["learned"]


def test_the_store_has_nothing_of_people(store, clock, tmp_path):
    """Neither features, arms and rewards, nor who has sent what."""
    told = [0.123456789, 0.987654321]
    needles = [repr(value).encode() for value in told] + [np.float64(v).tobytes() for v in told]
    with Served(store, clock) as served:
        for name, words in {"local": LOCAL, "sums": SUMS}.items():
            client = served.declare(name=name, **words)
            shuffler = Collecting(client) if name == "sums" else None
            for person in range(3):
                folder, who = tmp_path / "devices" / f"{name}{person}", {"unit": f"Ann-{person}"}
                with device_of(client, folder, shuffler=shuffler, **who) as device:
                    device.choose([[told[0] / 2, 0.0], [0.0, told[0]]])
                    device.report(told[1])
                    device.send()
            if shuffler is not None:
                client.post("/batches", 202, **shuffler.batch())
        files = [one for one in tmp_path.glob("policies.db*")]
        assert len(files) > 1  # with the log
        whole = b"".join(one.read_bytes() for one in files)
    for needle in [*needles, b"Ann-"]:
        assert needle not in whole


# Declarations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ({**LOCAL, "budget": None, "allow_simulation": True}, "reports"),
        ({**SUMS, "budget": None, "allow_simulation": True}, "messages"),
        ({**LOCAL, "baseline": "x"}, "baseline"),
        ({**LOCAL, "answers_within": "2h"}, "answers_within"),
        ({**SUMS, "protocol": "bits"}, "protocol"),
        ({**LOCAL, "noise": "simulation"}, "noise"),
        ({**LOCAL, "origins": "https://shop.example"}, "origins"),
        ({**LOCAL, "origins": ["*"]}, "origins"),
        ({**LOCAL, "origins": ["https://shop.example/page"]}, "origins"),
        ({"arms": 2, "budget": None, "allow_simulation": True, "public": True}, "public"),
    ],
)
def test_what_devices_cannot_have_is_refused(served, words, word):
    reply = served.http.post("/v1/experiments", json={"name": "trial", **words})
    assert reply.status_code == 422
    assert [one["word"] for one in reply.json()["errors"]] == [word]


# Access ---------------------------------------------------------------------------------------


@pytest.fixture
def keyed(store, clock, tmp_path):
    keys = Keys(tmp_path / "keys.json")
    with Served(store, clock, keys) as one:
        yield one


def bearer(served, **words):
    _, secret = served.service.keys.add(**words)
    served.service.keys._looked = -math.inf
    return {"authorization": f"Bearer {secret}"}


def test_roles_of_devices_and_shufflers(keyed):
    admin = bearer(keyed)
    keyed.declare(admin, name="trial", **LOCAL)
    may = {}
    for role in ("report", "shuffle", "read", "decide", "reward"):
        client = Client(keyed.http, "trial", bearer(keyed, roles=[role]))
        calls = {
            "reports": client.post("/reports", report_id="one", report=[0.0] * 5),
            "batches": client.post("/batches", batch_id="b", label="", sum=None, sealed=[]),
            "randomiser": client.get("/randomiser", None),
            "config": client.get("/config", None),
        }
        may[role] = {what for what, reply in calls.items() if reply.status_code not in (401, 403)}
    assert may == {
        "report": {"reports"},
        "shuffle": {"batches"},
        "read": {"randomiser", "config"},
        "decide": set(),
        "reward": set(),
    }


def test_public_experiments_need_no_key_for_what_is_public(keyed):
    admin = bearer(keyed)
    keyed.declare(admin, name="trial", **LOCAL, public=True)
    keyed.declare(admin, name="closed", **LOCAL)
    other = bearer(keyed, tenant="shop")
    keyed.declare(other, name="theirs", **LOCAL, public=True)
    at = "/v1/experiments"
    statuses = {
        what: keyed.http.get(f"{at}/{what}").status_code
        for what in (
            "trial/randomiser",
            "trial/chooser",
            "trial/config",
            "trial/ledger",
            "closed/randomiser",
            "theirs/randomiser",
            "theirs/randomiser?tenant=shop",
            "none/randomiser",
        )
    }
    assert [what for what, status in statuses.items() if status == 200] == [
        "trial/randomiser",
        "trial/chooser",
        "theirs/randomiser?tenant=shop",
    ]
    assert set(statuses.values()) == {200, 401}
    wrong = {"authorization": "Bearer dpb_wrong"}
    assert keyed.http.get(f"{at}/trial/randomiser", headers=wrong).status_code == 401


HERE = {"origin": "https://shop.example"}


def test_pages_of_declared_origins_may_call_what_devices_need(keyed):
    admin = bearer(keyed)
    keyed.declare(admin, name="trial", **LOCAL, public=True, origins=[HERE["origin"]])
    at, key = "/v1/experiments/trial", bearer(keyed, roles=["report"])
    for what, method in {"randomiser": "GET", "chooser": "GET", "reports": "POST"}.items():
        asks = {**HERE, "access-control-request-method": method}
        reply = keyed.http.request("OPTIONS", f"{at}/{what}", headers=asks)
        assert reply.status_code == 204
        assert reply.headers["access-control-allow-origin"] == HERE["origin"]
        assert reply.headers["access-control-allow-methods"] == method
        assert "access-control-allow-credentials" not in reply.headers
        foreign = keyed.http.request(
            "OPTIONS", f"{at}/{what}", headers={"origin": "https://evil.example"}
        )
        assert "access-control-allow-origin" not in foreign.headers
    body = {"report_id": "one", "report": [0.0] * 5}
    sent = keyed.http.post(f"{at}/reports", json=body, headers={**HERE, **key})
    assert (sent.status_code, sent.headers["access-control-allow-origin"]) == (202, HERE["origin"])
    refused = keyed.http.post(f"{at}/reports", json=body, headers=HERE)
    assert (refused.status_code, "access-control-allow-origin" in refused.headers) == (401, True)
    for what in ("config", "guarantee", "ledger", ""):
        reply = keyed.http.get(f"{at}/{what}".rstrip("/"), headers={**HERE, **admin})
        assert "access-control-allow-origin" not in reply.headers
        preflight = keyed.http.request("OPTIONS", f"{at}/{what}".rstrip("/"), headers=HERE)
        assert preflight.status_code == 405


def test_without_keys_only_declared_origins_may_call(served):
    client = declared(served, **LOCAL, origins=[HERE["origin"]])
    at, evil = client.at, {"origin": "https://evil.example"}
    assert served.http.get(f"{at}/randomiser", headers=HERE).status_code == 200
    assert served.http.get(f"{at}/randomiser", headers=evil).status_code == 403
    assert served.http.get(f"{at}/config", headers=HERE).status_code == 403


def test_a_name_of_an_experiment_opens_no_address(served):
    words = {**LOCAL, "origins": [HERE["origin"]]}
    client = served.declare(name="chooser", **words)
    assert served.http.get(client.at, headers=HERE).status_code == 403
    assert served.http.get(f"{client.at}/chooser", headers=HERE).status_code == 200


def test_a_chooser_is_made_once_for_all_who_ask(served, monkeypatch):
    client, made = served.declare(name="trial", arms=2, budget={"zcdp": 1.0}), []
    keep = Policy.chooser
    monkeypatch.setattr(Policy, "chooser", lambda self: made.append(self) or keep(self))
    texts = [client.get("/chooser").text for _ in range(3)]
    assert (len(made), len(set(texts))) == (1, 1)
    client.decide()
    client.get("/chooser")
    assert len(made) == 2
    client.post("/retire", arm=0, reason="a test")
    assert client.get("/chooser").told["retired"] == [0]


def test_a_lost_key_is_told(served, tmp_path):
    client = declared(served, **SUMS)
    assert client.get("/config").told["public_key"]
    with pytest.raises(Exception, match="state folder"):
        read_key(b"none")
