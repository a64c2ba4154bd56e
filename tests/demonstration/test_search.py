"""The search finds what it looks for, wherever and however it is stored, and nothing else."""

import json
import sqlite3

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.demonstration.opening import opened_rows
from dpbandits.demonstration.parties import Secrets
from dpbandits.demonstration.people import People
from dpbandits.demonstration.search import KINDS, Hit, Needles, write_list

COUNT, WIDTH = 40, 2
PEOPLE = People.drawn(COUNT, 3)


def secrets_of(people):
    rng = np.random.default_rng(4)
    return [
        Secrets(
            f"{name[:12]}.{rng.bytes(16).hex()}",
            int(rng.integers(3)),
            rng.integers(2**16, size=5),
            rng.integers(2**16, size=5),
        )
        for name in people.names
    ]


SECRETS = secrets_of(PEOPLE)
NEEDLES = Needles(PEOPLE, SECRETS, WIDTH)
CONTEXTS, (TICKET, ARM, MESSAGE, MASKED) = PEOPLE.contexts[7], SECRETS[7]
REWARD = float(PEOPLE.rewards[7, ARM])
ROW = np.array([one.arm for one in SECRETS[16:32]])

# What a program could have written of person 7, and of the arms of people 16 to 31.
WRITTEN = {
    "features": [
        json.dumps(CONTEXTS.tolist()).encode(),
        CONTEXTS.tobytes(),
        CONTEXTS.astype(">f8").tobytes(),
        CONTEXTS.astype("f4").tobytes(),
        CONTEXTS[1].astype(">f4").tobytes(),
        f"x = {CONTEXTS[0, 0]:+.12f}".encode(),
    ],
    "rewards": [
        f'{{"reward":{REWARD}}}'.encode(),
        np.float64(REWARD).tobytes(),
        np.array(REWARD, ">f8").tobytes(),
        np.array([*CONTEXTS[ARM], REWARD], "f4").tobytes(),
        np.array([REWARD, *CONTEXTS[ARM]], "f4").tobytes(),
    ],
    "arms": [
        json.dumps(ROW.tolist()).encode(),
        ROW.astype("i1").tobytes(),
        ROW.tobytes(),
        ROW.astype("f8").tobytes(),
        "\n".join(map(str, ROW)).encode(),
    ],
    "names": [PEOPLE.names[7].encode(), json.dumps({"user": PEOPLE.names[7]}).encode()],
    "tickets": [f"Bearer {TICKET}".encode()],
    "messages": [
        json.dumps(MESSAGE.tolist()).encode(),
        json.dumps(MESSAGE.tolist(), separators=(",", ":")).encode(),
        MESSAGE.tobytes(),
        MESSAGE.astype("<u2").tobytes(),
    ],
    "masked parts": [json.dumps(MASKED.tolist()).encode(), MASKED.astype("<i8").tobytes()],
}
PLANTS = [
    pytest.param(kind, content, id=f"{kind}-{i}")
    for kind in KINDS
    for i, content in enumerate(WRITTEN[kind])
]


def log(folder, content):
    with (folder / "log").open("ab") as file:
        file.write(b'{"event": "failed", "why": "' + content + b'"}\n')


def state(folder, content):
    path = folder / "state" / "keys" / "a0811ca5"
    path.parent.mkdir(parents=True)
    path.write_bytes(np.random.default_rng(1).bytes(1003) + content)


def committed(folder, content):
    with sqlite3.connect(folder / "policies.db") as connection:
        connection.execute("CREATE TABLE rows (key BLOB, content BLOB)")
        connection.execute("INSERT INTO rows VALUES (?, ?)", [b"k", content])


@pytest.mark.parametrize("place", [log, state, committed])
@pytest.mark.parametrize(("kind", "content"), PLANTS)
def test_planted_needles_are_found(tmp_path, place, kind, content):
    place(tmp_path, content)
    person = 16 if kind == "arms" else 7
    assert Hit(kind, person) in NEEDLES.in_folder(tmp_path)
    others = {"features", "rewards"} if kind in ("features", "rewards") else {kind}
    others |= {"names", "tickets"} if kind in ("names", "tickets") else set()
    assert {hit.person for hit in NEEDLES.in_folder(tmp_path)} == {person}
    assert {hit.kind for hit in NEEDLES.in_folder(tmp_path)} <= others


def test_needles_in_the_log_of_a_database_are_found(tmp_path):
    connection = sqlite3.connect(tmp_path / "shuffler.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE records (masked BLOB)")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("INSERT INTO records VALUES (?)", [MASKED.tobytes()])
    connection.commit()
    assert Hit("masked parts", 7) not in NEEDLES.within((tmp_path / "shuffler.db").read_bytes())
    assert Hit("masked parts", 7) in NEEDLES.in_folder(tmp_path)
    connection.close()


def test_names_of_files_are_searched(tmp_path):
    (tmp_path / f"{PEOPLE.names[7]}.lock").touch()
    assert NEEDLES.in_folder(tmp_path) == {Hit("names", 7)}


def test_nothing_is_found_by_chance(tmp_path):
    rng = np.random.default_rng(5)
    (tmp_path / "bytes").write_bytes(rng.bytes(2_000_000))
    (tmp_path / "zeros").write_bytes(bytes(100_000))
    (tmp_path / "numbers").write_text(json.dumps(rng.standard_normal(50_000).tolist()))
    (tmp_path / "counts").write_bytes(rng.integers(3, size=20_000).astype("i1").tobytes())
    stranger = People.drawn(COUNT, 6)
    write_list(tmp_path / "strangers", stranger, secrets_of(stranger)[::-1])
    (tmp_path / "empty").touch()
    found = NEEDLES.in_folder(tmp_path)
    assert {hit for hit in found if hit.kind not in ("arms", "messages", "masked parts")} == set()
    (tmp_path / "strangers" / "list.json").unlink()
    assert NEEDLES.in_folder(tmp_path) == set()


def test_a_list_of_all_has_all(tmp_path):
    write_list(tmp_path / "list", PEOPLE, SECRETS)
    assert NEEDLES.in_folder(tmp_path) == NEEDLES.hits
    assert {hit.kind for hit in NEEDLES.hits} == set(KINDS)
    for kind in set(KINDS) - {"arms"}:
        assert {hit.person for hit in NEEDLES.hits if hit.kind == kind} == set(range(COUNT))


def test_sealed_rows_are_opened(tmp_path, monkeypatch):
    """Contexts that wait for a reward are sealed in a store: only the opened rows have them."""
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    address = f"sqlite:///{tmp_path / 'policies.db'}#shop"
    policy = dpb.bandit(
        3,
        dpb.ApproxDP(1.0, 1e-5),
        features=2,
        protects="contexts and rewards",
        horizon=100,
        answers_within=5,
        noise="simulation",
        seed=1,
    )
    policy.save(address)
    policy.pull(CONTEXTS)
    policy.close()
    assert NEEDLES.in_folder(tmp_path) == set()
    assert Hit("features", 7) in NEEDLES.within(opened_rows(tmp_path, address))
