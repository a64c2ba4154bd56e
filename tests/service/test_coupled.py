"""Worlds that differ in rewards alone: until a release, nobody who talks to the service can tell
them apart.

The worlds draw the same names of lives and keys of tokens, so bytes can be compared.
"""

import itertools
import random
import uuid
from types import SimpleNamespace

import pytest
from services import KINDS, NOISY, Clock, Served, asked_of

from dpbandits.service import app, client_calls, views
from dpbandits.service import log as log_module
from dpbandits.stores import tokens
from dpbandits.stores.addresses import store_at

VIEWS = ("", "/ledger", "/guarantee", "/estimates", "/card", "/chooser", "/trail")
NOTIONS = {kind: {**NOISY, **words} for kind, words in KINDS.items()}
ROUNDS = 48


def first(i):
    return (7 * i % 8) / 8  # whose sums are exact in any order


def send_first(i):
    return [first(i)]


def send_other(i):
    return [1.0 - first(i)]


def send_repeated_or_none(i):
    return [[], [first(i), 0.0], [1.0, 1.0, None], [None]][i % 4]


def send_wild(i):
    return [1e300 * (-1) ** i]


WORLDS = {
    "other values": send_other,
    "repeated and missing": send_repeated_or_none,
    "out of range": send_wild,
}


class Transcript(list):
    """What a client sees, with a name for each reply; those of rewards apart, as there may be more
    of them.
    """

    def see(self, name, reply):
        headers = sorted(reply.headers.items())
        self.append((name, reply.status_code, headers, reply.content))
        return reply


def play(served, words, rewards, order):
    """Some decisions, and the rewards of each: what all clients see, and all replies to rewards."""
    seen, acknowledged = Transcript(), set()
    trial = served.declare(**words, name="trial")
    asked = asked_of(trial.get().told)
    unit = "max_rounds" in words

    def reward(i):
        for value in rewards(i):
            reply = trial.post("/rewards", reward=value, decision_id=f"{i}")
            acknowledged.add(
                (reply.status_code, tuple(sorted(reply.headers.items())), reply.content)
            )

    for i in range(ROUNDS):
        body = {**asked, **({"unit": f"{i // 3}"} if unit else {})}
        body["deferred"] = i % 6 == 5
        seen.see("decide", trial.post("/decisions", decision_id=f"{i}", **body))
        seen.see("again", trial.post("/decisions", decision_id=f"{i}", **body))
        if i % 6 == 5:
            seen.see(
                "early", trial.post("/rewards", reward=[*rewards(i), None][0], decision_id=f"{i}")
            )
            what = "/cancel" if i % 12 == 5 else "/activate"
            seen.see(what, trial.post(what, decision_id=f"{i}"))
        if i % 8 == 7:
            for j in sorted(range(i - 7, i), key=order):
                if j % 12 != 5 and j % 5:  # of every fifth nothing is sent in any world
                    reward(j)
            if i == 31:
                seen.see("erase", trial.post("/erase", unit="9", reason="asked"))
                seen.see("pause", trial.post("/pause", reason="a test"))
                seen.see("resume", trial.post("/resume", reason="a test"))
            for j, wrong in ((i, {"arm": "nowhere"}), (i - 1, {"arm": 99}), (0, {"arm": -1})):
                body = {"reward": 0.5, "decision_id": f"{j}", **wrong}
                seen.see("wrong", trial.post("/rewards", **body))
            seen.see("unknown", trial.post("/rewards", reward=0.5, decision_id="nobody"))
            if i in (23, 47):
                look(served, trial, seen)
        served.pass_time(20.0)
    return seen, acknowledged


def look(served, trial, seen):
    for view in VIEWS:
        seen.see(view, trial.get(view))
    for path in ("/v1/experiments", "/metrics", "/readyz", "/healthz"):
        seen.see(path, served.http.get(path))


def world(folder, words, rewards, monkeypatch, capsys, order=lambda j: j, waits=0):
    """Transcript, replies to rewards, and log of a world."""
    clock, names = Clock(), itertools.count(1)
    fixed = SimpleNamespace(time=clock, token_bytes=lambda n: bytes(n), compare_digest=None)
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=next(names)))
    monkeypatch.setattr(tokens, "time", fixed)
    monkeypatch.setattr(tokens, "secrets", fixed)
    monkeypatch.setattr(log_module, "time", fixed)
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(folder / "state"))
    folder.mkdir()
    capsys.readouterr()
    with Served(store_at(f"sqlite:///{folder}/p.db"), clock) as served:
        seen, acknowledged = play(served, words, rewards, order)
        releases = served.experiment().policy.ledger.releases
        for _ in range(waits):
            served.pass_time(600.0)
            seen.see("metrics", served.http.get("/metrics"))
            seen.see("estimates", served.client().get("/estimates"))
        after = served.experiment().policy.ledger.releases
    return SimpleNamespace(
        seen=seen,
        acknowledged=acknowledged,
        releases=releases,
        after=after,
        log=capsys.readouterr().err,
    )


def assert_equal(one, other):
    for mine, theirs in zip(one.seen, other.seen, strict=True):
        assert mine == theirs
    assert one.acknowledged == other.acknowledged
    assert one.log == other.log


def compared(folder, words, name, monkeypatch, capsys):
    one = world(folder / "one", words, send_first, monkeypatch, capsys)
    other = world(folder / "other", words, WORLDS[name], monkeypatch, capsys)
    assert one.releases == other.releases
    assert one.seen
    return one, other


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, "repeated and missing") for kind in NOTIONS]
    + [(kind, name) for kind in ("arms", "person") for name in ("other values", "out of range")],
)
def test_nobody_can_tell_rewards_before_a_release(kind, name, tmp_path, monkeypatch, capsys):
    words = dict(NOTIONS[kind])
    if kind == "by count":
        words["answers_within"] = 2 * ROUNDS
    one, other = compared(tmp_path, words, name, monkeypatch, capsys)
    assert one.releases == 0
    assert len(one.acknowledged) <= 2  # recorded or not
    assert_equal(one, other)


@pytest.mark.parametrize("kind", ["arms", "features", "person", "private contexts", "people"])
def test_order_and_repetition_of_rewards_never_show(kind, tmp_path, monkeypatch, capsys):
    """Also after releases: the first answers are the same."""

    def repeated(i):
        return [first(i), 1.0 - first(i), None]

    words = {**NOTIONS[kind], "answers_within": "10min"}
    given = words, send_first, monkeypatch, capsys
    one = world(tmp_path / "one", *given, waits=4)
    shuffled = random.Random(1)
    keys = {j: shuffled.random() for j in range(ROUNDS)}
    other = world(tmp_path / "other", words, repeated, monkeypatch, capsys, keys.get, waits=4)
    assert one.after > 1
    assert_equal(one, other)


SCHEDULED = {
    "one arm": {**NOISY, "kind": "MergedIMED", "n_arms": 1},  # whose turns follow no estimates
    "person": NOTIONS["person"],
    "private contexts": NOTIONS["private contexts"],
}


@pytest.mark.parametrize("kind", SCHEDULED)
def test_when_releases_come_is_the_same_whatever_was_answered(kind, tmp_path, monkeypatch, capsys):
    schedules = []
    for rewards in (send_first, send_repeated_or_none):
        words = {**SCHEDULED[kind], "answers_within": "10min"}
        made = world(tmp_path / f"{len(schedules)}", words, rewards, monkeypatch, capsys, waits=4)
        counts = [one[3] for one in made.seen if one[0].endswith("metrics")]
        schedules.append(counts)
        assert made.after > 1
    assert all(one == schedules[0] for one in schedules)


# Planted leaks -----------------------------------------------------------------------------


def leak_in_replies(monkeypatch):
    real = client_calls.ClientCalls.reward

    def reward(self, *given):
        before = self.repeats
        taken = real(self, *given)
        return taken._replace(why="again") if self.repeats > before else taken

    monkeypatch.setattr(client_calls.ClientCalls, "reward", reward)


def leak_in_status(monkeypatch):
    real = client_calls.ClientCalls.reward

    def reward(self, *given):
        before = self.repeats
        taken = real(self, *given)
        if self.repeats > before:
            raise app.Problem(409, "answered", "There is another reward.")
        return taken

    monkeypatch.setattr(client_calls.ClientCalls, "reward", reward)


def leak_in_views(monkeypatch):
    real = views.summary

    def summary(one):
        return {**real(one), "decisions": one.policy.diagnostics.clipped}

    monkeypatch.setattr(views, "summary", summary)


def leak_in_the_log(monkeypatch):
    real = client_calls.ClientCalls.reward

    def reward(self, *given):
        log_module.log("reward")
        return real(self, *given)

    monkeypatch.setattr(client_calls.ClientCalls, "reward", reward)


LEAKS = {
    leak_in_replies: "repeated and missing",
    leak_in_status: "repeated and missing",
    leak_in_views: "out of range",
    leak_in_the_log: "repeated and missing",
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_noticed(leak, tmp_path, monkeypatch, capsys):
    leak(monkeypatch)
    one, other = compared(tmp_path, NOTIONS["arms"], LEAKS[leak], monkeypatch, capsys)
    with pytest.raises(AssertionError):
        assert_equal(one, other)
