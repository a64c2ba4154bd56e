"""What each address promises, replies that repeat, and orders of calls."""

import itertools
import json
import threading

import pytest
from services import ARMS, KINDS, NOISY, NONE, START, Served, asked_of


@pytest.fixture
def trial(served):
    return served.declare(**ARMS)


# Repeated requests -------------------------------------------------------------------------


def test_a_repeated_request_gets_the_same_bytes_also_after_a_restart(store, clock):
    body = {"decision_id": "one", "unit": "Ann", "available": ["a", "b"], "deferred": True}
    with Served(store, clock) as served:
        trial = served.declare(**ARMS)
        first = trial.post("/decisions", 200, **body)
        clock.now += 5.0
        assert trial.post("/decisions", 200, **body).content == first.content
        trial.post("/activate", 200, decision_id="one")
        assert trial.post("/decisions", 200, **body).content == first.content
        pulls = served.experiment().policy.session.rounds.pulls
    with Served(store, clock) as served:
        again = served.client()
        assert again.post("/decisions", 200, **body).content == first.content
        assert served.experiment().policy.session.rounds.pulls == pulls == 1
        assert again.decide(409, **{**body, "unit": "Bob"})["type"] == "id-reused"
        assert again.reward(1.0, decision_id="one") == {"learned": True, "why": None}


def test_an_id_is_compared_with_all_of_the_request(trial):
    trial.decide(decision_id="one", unit=1)
    for other in ({}, {"unit": "1"}, {"unit": 1, "deferred": True}, {"unit": 1, "available": [0]}):
        assert trial.decide(409, decision_id="one", **other)["type"] == "id-reused"
    trial.decide(decision_id="one", unit=1)


def test_clients_that_send_one_id_at_once_get_one_decision(served, trial):
    url, body = trial.at + "/decisions", {"decision_id": "one"}
    replies = served.http.at_once([(url, body)] * 16)
    assert {reply.status_code for reply in replies} == {200}
    assert len({reply.content for reply in replies}) == 1
    assert served.experiment().policy.session.rounds.pulls == 1


def test_an_id_is_known_until_the_deadline_and_for_the_time_of_retries(served, clock):
    trial = served.declare(**ARMS, answers_within="1h", retries_for="10min")
    first = trial.decide(decision_id="one")
    assert first["answer_by"] == "2027-01-15T09:00:00+00:00"
    served.pass_time(3600 + 590)
    assert trial.decide(decision_id="one") == first
    served.pass_time(20)
    assert trial.decide(decision_id="one")["token"] != first["token"]


# Rewards -----------------------------------------------------------------------------------


def test_every_reward_before_the_deadline_gets_one_reply(served, trial):
    made = trial.decide(decision_id="one")
    sent = [0.25, 0.75, None, -3.0, 1e300]
    for value, name in itertools.product(sent, ({"decision_id": "one"}, {"token": made["token"]})):
        reply = trial.post("/rewards", 202, reward=value, **name)
        assert reply.content == b'{"learned":true,"why":null}'
    served.pass_time(3601)
    assert trial.get("/estimates").told["means"] == [0.25, None, None]  # the first alone counts


@pytest.mark.parametrize(("sent", "kept"), [(-3, 0.0), (7.5, 1.0), (1e308, 1.0), (None, 0.0)])
def test_rewards_are_clipped(served, trial, sent, kept):
    trial.decide(decision_id="one")
    trial.reward(sent, decision_id="one")
    served.pass_time(3601)
    assert trial.get("/estimates").told["means"] == [kept, None, None]


def test_after_the_deadline_every_reward_is_late(served, trial):
    for name in ("answered", "silent", "expired"):
        trial.decide(decision_id=name)
    trial.reward(1.0, decision_id="answered")
    trial.reward(None, decision_id="expired")
    served.clock.now += 3601  # before the owner has noticed
    late = [
        trial.post("/rewards", 410, reward=0.5, decision_id=name)
        for name in ("answered", "silent", "expired")
    ]
    served.pass_time(1)
    late += [
        trial.post("/rewards", 410, reward=None, decision_id=name)
        for name in ("answered", "silent")
    ]
    assert len({one.content for one in late}) == 1
    assert late[0].told["type"] == "too-late"
    assert trial.reward(0.5, 404, decision_id="nobody")["type"] == "unknown-decision"


def test_foreign_tokens_are_unknown(served, trial):
    other = served.declare(**{**ARMS, "name": "other"})
    token = other.decide()["token"]
    forged = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
    for wrong in (token, forged, "", "é", "x" * 64):
        assert trial.reward(1.0, 404, token=wrong)["type"] == "unknown-decision"
        trial.post("/activate", 404, token=wrong)
        trial.post("/cancel", 404, token=wrong)
    other.reward(1.0, token=token)


def test_learned_follows_from_the_decision_alone(served):
    trial = served.declare(**ARMS, max_rounds=1)
    first, second = (trial.decide(unit="Ann") for _ in range(2))
    assert (first["recorded"], second["recorded"]) == (True, False)
    for value in (0.0, 1.0, None):
        assert trial.reward(value, token=first["token"])["learned"]
        told = trial.reward(value, token=second["token"])
        assert told == {"learned": False, "why": "the decision was not recorded"}


MALFORMED = [
    b"",
    b"null",
    b"[]",
    b"{}",
    b'{"reward": 1}',
    b'{"reward": 1, "decision_id": ""}',
    b'{"reward": 1, "decision_id": "one", "token": "one"}',
    b'{"reward": "1", "decision_id": "one"}',
    b'{"reward": true, "decision_id": "one"}',
    b'{"reward": NaN, "decision_id": "one"}',
    b'{"reward": 1e999, "decision_id": "one"}',
    b'{"reward": 1' + b"0" * 5000 + b', "decision_id": "one"}',
    b'{"reward": 1, "decision_id": "\xff"}',
    b'{"reward": 1, "decision_id": "\\ud800"}',
    b'{"reward": 1, "decision_id": "one", "more": 1}',
    b'{"reward": 1, "decision_id": "one", "arm": "nowhere"}',
    b'{"reward": 1, "decision_id": "one", "arm": 3}',
    b'{"reward": 1, "decision_id": "one"',
]


@pytest.mark.parametrize("answered", [False, True])
def test_malformed_rewards_are_refused_whether_one_has_come_or_not(served, trial, answered):
    trial.decide(decision_id="one")
    if answered:
        trial.reward(1.0, decision_id="one")
    for body in MALFORMED:
        reply = served.http.post(trial.at + "/rewards", content=body)
        assert reply.status_code == 422, body
        assert reply.headers["content-type"] == "application/problem+json"
        assert set(reply.json()) >= {"type", "title", "status", "detail"}
    served.pass_time(3601)
    assert trial.get("/estimates").told["means"] == [float(answered), None, None]


def test_an_arm_that_was_not_shown_is_refused_whether_a_reward_has_come_or_not(served):
    words = {"arms": 3, "features": 2, "horizon": 100, "choices_public": True, **NONE}
    trial = served.declare(name="trial", **words)
    trial.decide(decision_id="one", contexts=[[0.1, 0.2], [0.3, 0.1]])
    before = trial.post("/rewards", 422, reward=1.0, decision_id="one", arm=2)
    trial.reward(1.0, decision_id="one", arm=1)
    assert (
        trial.post("/rewards", 422, reward=1.0, decision_id="one", arm=2).content == before.content
    )


# Deferred decisions ------------------------------------------------------------------------

ACT, CANCEL, REWARD = "/activate", "/cancel", "/rewards"
STEPS = {ACT: {}, CANCEL: {}, REWARD: {"reward": 1.0}}


def expected(steps, late):
    """The status of each step, from the contract alone."""
    state = "deferred"
    for step in steps:
        if step == REWARD:
            status = {"deferred": 409, "active": 410 if late else 202, "cancelled": 410}[state]
        elif step == ACT:
            status = {"deferred": 410 if late else 200, "active": 200, "cancelled": 410}[state]
            state = "active" if status == 200 else state
        else:
            status = 409 if state == "active" else 200
            state = "active" if state == "active" else "cancelled"
        yield status


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("by", ["decision_id", "token"])
def test_all_orders_of_three_steps_after_a_deferred_decision(served, trial, late, by):
    orders = list(itertools.product(STEPS, repeat=3))
    made = [trial.decide(decision_id=f"{i}", deferred=True) for i in range(len(orders))]
    assert not any(one["active"] for one in made)
    served.pass_time(3601 if late else 1)
    for one, steps in zip(made, orders, strict=True):
        got = [trial.post(step, **STEPS[step], **{by: one[by]}).status_code for step in steps]
        assert got == list(expected(steps, late)), steps


def test_a_cancelled_decision_counts_as_not_made(served):
    words = {"kind": "MergedIMED", "n_arms": 2, "first": 8, **NOISY, "budget": {"zcdp": 1e20}}
    trial = served.declare(name="trial", **words)
    for i in range(6):
        trial.decide(decision_id=f"{i}", deferred=True)
        told = trial.post("/cancel", 200, decision_id=f"{i}").told
        assert told == {"learned": False, "why": "the decision is cancelled"}
    for _ in range(8):
        trial.reward(1.0, token=trial.decide()["token"])
    trial.decide()
    served.pass_time(3601)
    told = trial.get("/estimates").told
    assert told["means"][0] == pytest.approx(1.0)  # no default among eight rewards
    assert any("cancelled" in one for one in trial.get("/guarantee").told["assumptions"])


@pytest.mark.parametrize("by", ["decision_id", "token"])
def test_decisions_without_a_record_can_be_activated_and_cancelled(served, by):
    trial = served.declare(**ARMS, baseline="b")
    trial.because("/pause")
    made = [trial.decide(decision_id=f"{i}", deferred=True) for i in range(3)]
    assert len({one["token"] for one in made}) == 3
    assert trial.post("/rewards", 409, reward=1.0, **{by: made[0][by]}).told["type"] == "not-active"
    told = trial.post("/activate", 200, **{by: made[0][by]}).told
    assert told == {"learned": False, "why": "the decision was not recorded"}
    trial.post("/cancel", 409, **{by: made[0][by]})
    trial.post("/cancel", 200, **{by: made[1][by]})
    trial.post("/activate", 410, **{by: made[1][by]})
    trial.post("/activate", 200, **{by: made[2][by]})


# Arms --------------------------------------------------------------------------------------


def test_masks_and_retired_arms(trial):
    for available in (["b"], [1], ["b", "b"], ["b", 1]):
        assert trial.decide(available=available)["arm_name"] == "b"
    for wrong in ([], ["z"], [3], [-1], [10**30], ["b", "z"]):
        assert trial.decide(422, available=wrong)["type"] == "invalid"
    trial.post("/retire", 200, arm="b", reason="unsafe")
    assert trial.get().told["retired"] == ["b"]
    assert "b" not in {trial.decide()["arm_name"] for _ in range(9)}
    trial.decide(422, available=["b"])
    trial.post("/retire", 200, arm=0, reason="unsafe")
    trial.post("/retire", 422, arm="c", reason="unsafe")  # the last one
    trial.post("/add", 200, arm="b", reason="safe")
    assert trial.get().told["retired"] == ["a"]
    assert [line["what"] for line in trial.get("/trail").told["lines"]] == [
        "created", "retired an arm", "retired an arm", "added an arm",
    ]  # fmt: skip


def test_units(served):
    trial = served.declare(**ARMS, max_rounds=1)
    refused = trial.decide(422)
    assert refused["word"] == "unit"
    assert "unit" in refused["detail"]
    names = ["Ann", "", 0, -7, 10**80, "7", 7]
    assert all(trial.decide(unit=name)["recorded"] for name in names)
    assert not any(trial.decide(unit=name)["recorded"] for name in names)
    for wrong in (True, 1.5, ["Ann"], {}):
        trial.decide(422, unit=wrong)


# Batches -----------------------------------------------------------------------------------


def test_items_of_a_batch_fail_alone(trial):
    items = [
        {"decision_id": "one"},
        {"available": ["z"]},
        {"decision_id": "one"},
        {"decision_id": "one", "unit": 1},
    ]
    told = trial.post("/decisions/batch", 200, decisions=items).told["results"]
    assert [one["status"] for one in told] == [200, 422, 200, 409]
    assert told[0] == told[2]
    assert told[1]["problem"]["type"] == "invalid"
    rewards = [
        {"reward": 1, "decision_id": "one"},
        {"reward": 1, "token": "x"},
        {"reward": 0, "decision_id": "one"},
    ]
    told = trial.post("/rewards/batch", 200, rewards=rewards).told["results"]
    assert [one["status"] for one in told] == [202, 404, 202]
    assert told[0] == told[2]


def test_batches_have_sizes(served, trial):
    for size, status in ((0, 422), (1, 200), (1000, 200), (1001, 422)):
        trial.post("/decisions/batch", status, decisions=[{}] * size)
    assert served.experiment().policy.session.rounds.pulls == 1001
    for what, word in (("/decisions/batch", "decisions"), ("/rewards/batch", "rewards")):
        item = {} if word == "decisions" else {"reward": 1, "token": "x"}
        assert (
            served.http.post(f"/v1/experiments/none{what}", json={word: [item]}).status_code == 404
        )


# What operators do -------------------------------------------------------------------------


def test_pauses_serve_the_baseline_and_record_nothing(store, clock):
    with Served(store, clock) as served:
        trial = served.declare(**ARMS, baseline="c")
        waiting = trial.decide(decision_id="before")
        assert trial.because("/pause")["status"] == "paused"
        told = trial.decide(decision_id="during")
        assert (told["arm_name"], told["propensity"], told["recorded"]) == ("c", 1.0, False)
        assert told["answer_by"] is None
        trial.decide(409, available=["a"])
        trial.reward(1.0, token=waiting["token"])
        trial.post("/retire", 409, arm="c", reason="the baseline")
    with Served(store, clock) as served:
        trial = served.client()
        assert trial.decide()["arm_name"] == "c"
        assert trial.because("/resume")["status"] == "running"
        assert trial.decide()["recorded"]
        assert served.experiment().policy.rounds == 2


def test_without_a_baseline_a_pause_refuses(trial):
    trial.because("/pause")
    assert trial.decide(409)["type"] == "paused"
    for what in ("/pause", "/resume", "/archive"):
        trial.post(what, 422)
        trial.post(what, 422, reason="")


def test_dates(served, clock):
    words = {"starts": "2027-01-15T08:01:00Z", "ends": "2027-01-15T10:02:00+02:00"}
    trial = served.declare(**ARMS, **words)
    assert START == 1_800_000_000.0  # 2027-01-15T08:00:00Z
    assert trial.get().told["ends"] == "2027-01-15T08:02:00+00:00"
    assert trial.decide(409)["type"] == "not-started"
    clock.now += 60
    trial.decide()
    clock.now += 60
    assert trial.decide(409)["type"] == "ended"


@pytest.mark.parametrize("date", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_dates_that_no_calendar_of_utc_has_are_refused(served, date):
    reply = served.http.post("/v1/experiments", json={**ARMS, "starts": date})
    assert reply.status_code == 422
    assert reply.json()["errors"][0]["word"] == "starts"


def release(served, trial, value, rounds=40):
    """Let answers pass their deadlines until there is another release."""
    before = served.experiment(trial.at.split("/")[-1]).policy.ledger.releases
    for _ in range(rounds):
        made = [trial.decide()["token"] for _ in range(8)]
        trial.post("/rewards/batch", rewards=[{"reward": value, "token": one} for one in made])
        served.pass_time(4000)
        if served.experiment(trial.at.split("/")[-1]).policy.ledger.releases > before:
            return
    raise AssertionError("nothing was released")


def test_the_breaker_follows_released_values_and_stays_reset(store, clock):
    words = {"baseline": "c", "breaker": {"floor": 0.5, "releases": 1}}
    with Served(store, clock) as served:
        trial = served.declare(**ARMS, **words)
        for _ in range(3):
            trial.reward(0.0, token=trial.decide()["token"])
        assert trial.get().told["breaker_tripped"] is None  # nothing was released
        release(served, trial, 0.0)
        trial.decide()
        assert trial.get().told["breaker_tripped"] is not None
        assert not trial.decide()["recorded"]
        assert trial.because("/resume")["breaker_tripped"] is None
        assert trial.decide()["recorded"]
    with Served(store, clock) as served:
        trial = served.client()
        assert trial.decide()["recorded"]  # until another release
        release(served, trial, 0.0)
        assert not trial.decide()["recorded"]
    with Served(store, clock) as served:
        assert not served.client().decide()["recorded"]


def test_an_archived_experiment_only_shows(trial):
    made = trial.decide(decision_id="one")
    assert trial.because("/archive")["status"] == "archived"
    assert trial.decide(decision_id="one") == made
    assert trial.decide(410)["type"] == "archived"
    trial.because("/resume", 410)
    trial.post("/retire", 410, arm=0, reason="late")
    for view in ("", "/ledger", "/guarantee", "/estimates", "/card", "/chooser", "/trail"):
        trial.get(view)


def test_erasing_a_person_takes_pending_answers_and_keeps_the_schedule(served):
    worlds = {}
    words = {"arms": 2, "person": 2, "horizon": 500, **NOISY}  # answers wait for their turn
    person = {"contexts": [0.5, 0.5]}
    for name in ("kept", "erased"):
        trial = served.declare(name=name, **words)
        for i in range(4):
            trial.decide(decision_id=f"{i}", unit="Ann" if i % 2 else "Bob", **person)
        trial.reward(0.625, decision_id="1")
        trial.reward(0.375, decision_id="2")
        session = served.experiment(name).policy.session
        if name == "erased":
            assert 0.625 in session.rounds.answers.values()
            assert trial.post("/erase", 200, unit="Ann", reason="asked").told == {"decisions": 2}
            assert 0.625 not in session.rounds.answers.values()
            assert 0.375 in session.rounds.answers.values()
            assert trial.post("/erase", 200, unit="Ann", reason="asked").told == {"decisions": 0}
            trial.reward(1.0, 404, decision_id="3")
            assert 1.0 not in session.rounds.answers.values()
        for i in range(4, 60):
            trial.decide(decision_id=f"{i}", **person)
        served.pass_time(3700)
        told = trial.get().told
        worlds[name] = (
            told["releases"],
            told["decisions"],
            told["recorded"],
            trial.get("/ledger").content,
        )
    assert worlds["kept"] == worlds["erased"]
    assert worlds["kept"][0] > 0


# Declarations ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_declared_decides_learns_and_shows_itself(store, clock, kind):
    words = {**NOISY, **KINDS[kind], "name": "trial"}
    with Served(store, clock) as served:
        trial = served.declare(**words)
        told = trial.get().told
        for i in range(12):
            unit = {"unit": f"{i // 2}"} if kind == "people" else {}
            made = trial.decide(decision_id=f"{i}", **asked_of(told), **unit)
            trial.reward(i % 2, decision_id=f"{i}")
            clock.now += 600
        served.pass_time(1)
        seen = [
            trial.get(view)
            for view in ("", "/ledger", "/guarantee", "/estimates", "/card", "/chooser")
        ]
        assert seen[0].told["decisions"] == 12
        if told["private_contexts"]:
            assert seen[3].told["rounds"] is None
    with Served(store, clock) as served:
        again = served.client()
        assert again.decide(decision_id="11", **asked_of(told), **unit) == made
        for view, before in zip(("/ledger", "/estimates"), (seen[1], seen[3]), strict=True):
            assert again.get(view).content == before.content
        for extra in ({"contexts": [[1.0] * 7]}, {"advice": [[1.0]]}, {"contexts": "x"}):
            again.decide(422, **{**asked_of(told), **extra}, unit="x")


WRONG = {
    "arms": [None, 1.5, {"a": 1}, ["a", "a"], [["a"]], 10**30, []],
    "budget": ["x", {"zcdp": "x"}, {"zcdp": -1}, {"zcdp": {}}, [1], {"a": 1, "b": 2}, {}],
    "features": ["x", [[1], [2, 3]], [[1, {}]], {}, -1],
    "horizon": ["x", {}, -1],
    "kind": [1, {}, "nobody", "MergedIMED"],
    "answers_within": [0, 1.5, "x", [], True],
    "clip": [False, 1],
    "name": ["A", "", "a\n", "a" * 41, 1, None, "a.b", "../a"],
    "title": [1, "x" * 201, "a\x00b"],
    "baseline": ["z", 9, -1, 1.5, {}],
    "starts": [5, "tomorrow", []],
    "breaker": [{}, {"floor": "x"}, {"floor": 0.5}, []],
    "retries_for": [60, "60d", "0s", []],
    "allow_simulation": [1, "yes"],
    "unheard": [1],
    "reward_range": ["x", [1, 0], [[0], [1]], {}],
}


def test_wrong_words_are_refused_by_name(served):
    for word, values in WRONG.items():
        for value in values:
            reply = served.http.post("/v1/experiments", json={**ARMS, word: value})
            assert reply.status_code == 422, (word, value, reply.text)
    assert served.http.get("/v1/experiments").json() == {"experiments": []}


def test_all_mistakes_come_at_once(served):
    given = {**ARMS, "name": "A", "starts": "x", "retries_for": 5, "clip": False}
    errors = served.http.post("/v1/experiments", json=given).json()["errors"]
    assert {one["word"] for one in errors} == {"name", "starts", "retries_for", "clip"}


@pytest.mark.parametrize(
    "given", [{"budget": None}, {"budget": {"zcdp": 1.0}, "noise": "simulation"}]
)
def test_nobody_is_left_without_protection_unawares(served, given):
    words = {"name": "trial", "arms": 2, **given}
    assert served.http.post("/v1/experiments", json=words).status_code == 422


def test_a_declaration_may_be_repeated_and_not_replaced(served, trial):
    reply = served.http.post("/v1/experiments", json=ARMS)
    assert (reply.status_code, reply.json()) == (200, {"name": "trial", "status": "running"})
    trial.because("/pause")
    assert served.http.post("/v1/experiments", json=ARMS).json()["status"] == "paused"
    other = {**ARMS, "arms": 2}
    assert served.http.post("/v1/experiments", json=other).status_code == 409


def test_a_second_declaration_under_way_is_no_other_one(served):
    go = threading.Event()

    async def slow(_):
        import asyncio

        while not go.is_set():
            await asyncio.sleep(0.001)

    served.service.warm = slow
    post = served.http.post
    assert [post("/v1/experiments", json=ARMS).status_code for _ in range(2)] == [202, 202]
    assert post("/v1/experiments", json={**ARMS, "arms": 2}).status_code == 409
    assert served.client().get().told["status"] == "starting"
    go.set()
    while served.client().get().told["status"] == "starting":
        pass
    assert served.client().get().told["arms"] == ["a", "b", "c"]


def test_a_declaration_that_cannot_be_compiled_says_so_and_may_be_mended(served):
    from dpbandits.service.declaration import DeclarationError

    async def failing(_):
        raise DeclarationError([("name", "trial could not be tried: no memory")])

    good, served.service.warm = served.service.warm, failing
    assert served.http.post("/v1/experiments", json=ARMS).status_code == 202
    while (told := served.client().get().told)["status"] == "starting":
        pass
    assert told["status"] == "failed"
    assert "no memory" in told["detail"]
    served.service.warm = good
    served.declare(**ARMS).decide()
    assert [one["status"] for one in served.http.get("/v1/experiments").json()["experiments"]] == [
        "running"
    ]


def test_a_file_of_experiments_is_the_same_after_a_restart(store, clock, tmp_path):
    from dpbandits.service.declaration import read_file
    from dpbandits.service.server import begin

    path = tmp_path / "experiments.toml"
    path.write_text(
        '[[experiments]]\nname = "trial"\narms = ["a", "b"]\nallow_simulation = true\n'
        'budget.zcdp = 0.5\nnoise = "simulation"\nseed = 1\nstarts = 2027-01-01T08:00:00Z\n'
        'ends = 2028-01-01\nbaseline = "b"\nbreaker = {floor = 0.5}\n'
    )
    for _ in range(2):
        with Served(store, clock) as served:
            served.service.ready = False
            served.http.portal.call(begin, served.service, read_file(path))
            assert served.service.ready
            assert served.client().decide()["recorded"]


def test_what_is_nowhere(served, trial):
    for path in ("/v2", "/v1/experiments/trial/nothing", "/v1/experiments/trial/decisions/x"):
        reply = served.http.get(path)
        assert (reply.status_code, reply.json()["type"]) == (404, "unknown-address")
    reply = served.http.request("PUT", trial.at)
    assert (reply.status_code, reply.json()["type"]) == (405, "method")
    assert served.client("none").get(status=404).told["type"] == "unknown-experiment"
    assert json.loads(served.http.get("/readyz").content) == {"ready": True, "missing": 0}


def test_no_more_decisions_are_recorded_than_made(served, store, clock):
    trial = served.declare(name="trial", arms=["a", "b"], **NOISY)
    trial.decide()
    while served.experiment().policy.session.rounds.left < 5:
        trial.reward(1.0, token=trial.decide()["token"])
    held = served.experiment().policy.session.rounds.current_choice.arm
    trial.because("/retire", arm=held)
    told = trial.get().told
    assert 0 < told["recorded"] <= told["decisions"]
    series = f'_recorded_total{{experiment="trial",tenant="default"}} {told["recorded"]}.0'
    assert series in served.http.get("/metrics").text
    served.__exit__()
    with Served(store, clock) as again:
        assert again.client().get().told["recorded"] == told["recorded"]


def test_a_ledger_is_read_in_pieces_and_has_numbers(served):
    trial = served.declare(name="trial", arms=3, **{**NOISY, "answers_within": 1})
    while len(served.experiment().policy.ledger) < 12:
        trial.reward(1.0, token=trial.decide()["token"])
    told, frame = trial.get("/ledger").told, served.experiment().policy.ledger.frame
    assert told["total"] == len(told["lines"]) == len(frame) > 10
    for line, known in zip(told["lines"], frame.itertuples(), strict=True):
        assert (line["first"], line["last"], line["releases"]) == (
            known.first,
            known.last,
            known.repeats,
        )
        assert line["cost"] == pytest.approx(known.cost, rel=1e-6)
        assert line["cost"] >= known.cost
        assert (line["scale"], line["noise"]) == (known.noise_scale, known.family)
    some = trial.get("/ledger?first=3&count=2").told
    assert (some["lines"], some["first"]) == (told["lines"][3:5], 3)
    assert trial.get("/ledger?first=99999").told["lines"] == []
    for wrong in ("first=-1", "count=x", "count=10001", "first=1e3"):
        assert trial.get(f"/ledger?{wrong}", 422).told["type"] == "invalid"


def test_wrong_bodies_are_told_in_the_words_of_json(served, trial):
    def told(body, what="/rewards"):
        reply = served.http.post(trial.at + what, content=body)
        assert reply.status_code == 422
        return reply.json()["detail"]

    assert "Expected `number | null`, got `string` - at `$.reward`" in told('{"reward": "x"}')
    assert "Expected `string | null`" in told('{"reward": 1, "token": 5}')
    deep = '{"contexts": ' + "[" * 5000 + "]" * 5000 + "}"
    assert "JSON has neither NaN nor Infinity" in told('{"reward": NaN, "token": "x"}')
    assert "Infinity" not in told('{"reward": 1,, "token": "x"}')
    assert "too many levels" in told(deep, "/decisions")
    assert "it has neither" in told('{"reward": 1}')
    assert "it has both" in told('{"reward": 1, "token": "x", "decision_id": "y"}')
