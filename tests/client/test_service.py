"""Clients of a service that listens on a port of this machine."""

from __future__ import annotations

import math
import socket
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec
import numpy as np
import pytest

from dpbandits import client
from dpbandits.client import (
    Decision,
    DecisionRequest,
    ExperimentMethods,
    RewardReply,
    RewardRequest,
    ServiceError,
)
from dpbandits.errors import ArgumentError
from dpbandits.service import messages
from dpbandits.service.openapi import document

WORDS = {
    "arms": ["blue", "green"],
    "budget": {"zcdp": 0.5},
    "noise": "simulation",
    "seed": 1,
    "allow_simulation": True,
    "baseline": "blue",
}
NAMES = (f"shop-{number}" for number in count())


@pytest.fixture
def shop(admin: Any) -> Any:
    """A new experiment."""
    name = next(NAMES)
    admin.declare({"name": name, **WORDS}, wait=True)
    return admin.experiment(name)


def refused(call: Any, *args: Any, **words: Any) -> tuple[int | None, str]:
    with pytest.raises(ServiceError) as caught:
        call(*args, **words)
    return caught.value.status, caught.value.kind


def test_a_decision_and_its_reward(shop: Any) -> None:
    decision = shop.decide(unit="visitor 7", available=["green"])
    assert (decision.arm, decision.arm_name, decision.choice) == (1, "green", "green")
    assert (decision.recorded, decision.active, decision.is_local) == (True, True, False)
    assert timedelta(minutes=50) < decision.answer_by - datetime.now(UTC) < timedelta(minutes=70)
    assert msgspec.json.decode(msgspec.json.encode(decision), type=Decision) == decision
    for named in (decision, decision.decision_id, decision.token):
        assert shop.reward(1.0, decision) == shop.reward(0.0, named) == RewardReply(True)
    assert refused(shop.reward, 1.0, "nobody knows this") == (404, "unknown-decision")


def test_an_id_of_ones_own_names_one_request(shop: Any) -> None:
    made = shop.decide(decision_id="visit-1", available=["green", "blue"])
    assert made.decision_id == "visit-1"
    assert shop.decide(decision_id="visit-1", available=("green", "blue")) == made
    assert refused(shop.decide, decision_id="visit-1") == (409, "id-reused")
    assert shop.summary()["decisions"] == 1


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_what_is_no_number_is_not_sent(shop: Any, wrong: float) -> None:
    decision = shop.decide()
    request = RewardRequest(wrong, decision)
    for call, what in (
        (lambda: shop.reward(wrong, decision), "reward"),
        (lambda: shop.reward_many([RewardRequest(1.0, decision), request]), "reward"),
        (lambda: shop.decide(contexts=[[0.0, wrong]]), "contexts"),
        (lambda: shop.decide(advice=np.array([[0.0, wrong]])), "advice"),
        (lambda: shop.decide_many([DecisionRequest(contexts=np.array([wrong]))]), "contexts"),
    ):
        with pytest.raises(ArgumentError, match=f"^{what} must be a finite number"):
            call()
    assert shop.reward(None, decision) == RewardReply(True)


def test_items_fail_alone(shop: Any) -> None:
    asked = [
        DecisionRequest(unit=1),
        DecisionRequest(available=["purple"]),
        DecisionRequest(decision_id="third", available=["green"]),
    ]
    first, second, third = shop.decide_many(asked)
    assert isinstance(second, ServiceError)
    assert (second.status, second.kind) == (422, "invalid")
    assert "purple" in second.detail
    assert (third.decision_id, third.arm) == ("third", 1)
    replies = shop.reward_many(
        [
            RewardRequest(1.0, first),
            RewardRequest(1.0, "unknown"),
            RewardRequest(None, "third"),
            RewardRequest(1.0, Decision.fallback("local", "blue")),
            RewardRequest(0.5, third, arm="blue"),
        ]
    )
    learned = [getattr(one, "learned", None) for one in replies]
    assert learned == [True, None, True, False, True]
    assert replies[1].kind == "unknown-decision"
    assert refused(shop.decide_many, [DecisionRequest()] * 1001) == (422, "invalid")


def test_deferred_decisions_are_carried_out_or_not(shop: Any) -> None:
    shown, dropped = shop.decide(deferred=True), shop.decide(deferred=True)
    assert not shown.active
    assert refused(shop.reward, 1.0, shown) == (409, "not-active")
    assert shop.activate(shown) == shop.activate(shown.token) == RewardReply(True)
    assert shop.reward(1.0, shown).learned
    assert refused(shop.cancel, shown) == (409, "active")
    gone = RewardReply(False, "the decision is cancelled")
    assert shop.cancel(dropped) == shop.cancel(dropped.decision_id) == gone
    assert refused(shop.reward, 1.0, dropped) == (410, "cancelled")


def test_deferred_decisions_of_a_baseline_are_carried_out_too(shop: Any) -> None:
    shop.pause(reason="a sale")
    decision = shop.decide(deferred=True)
    assert (decision.choice, decision.recorded, decision.answer_by) == ("blue", False, None)
    unrecorded = RewardReply(False, "the decision was not recorded")
    assert shop.activate(decision) == shop.reward(1.0, decision) == unrecorded


def test_what_is_public_can_be_read(shop: Any, admin: Any) -> None:
    shop.decide()
    assert shop.summary()["arms"] == ["blue", "green"]
    assert shop.summary()["decisions"] == 1
    assert "0.5-zCDP" in shop.guarantee()["in_words"]
    assert shop.ledger().keys() == {"spent", "total", "first", "lines"}
    assert shop.estimates()["releases"] == 0
    assert shop.card().startswith("# ")
    assert '"arm_names"' in shop.chooser()
    assert shop.summary() in admin.experiments()


def test_operators_act_with_a_reason(shop: Any) -> None:
    assert shop.pause(reason="a sale")["status"] == "paused"
    assert shop.resume(reason="it is over")["status"] == "running"
    assert shop.retire("green", reason="sold out")["retired"] == ["green"]
    assert {shop.decide().choice for _ in range(3)} == {"blue"}
    assert shop.add("green", reason="in stock")["retired"] == []
    shop.decide(unit="visitor 7")
    assert shop.erase("visitor 7", reason="asked to") == 1
    assert shop.erase("visitor 8", reason="asked to") == 0
    assert shop.archive(reason="decided")["status"] == "archived"
    assert refused(shop.decide, fallback="blue") == (410, "archived")
    assert refused(shop.delete) == (409, "exists")
    reasons = [
        "",
        "a sale",
        "it is over",
        "sold out",
        "in stock",
        "asked to",
        "asked to",
        "decided",
    ]
    assert [line["reason"] for line in shop.trail()] == reasons


def test_an_experiment_is_declared_once(admin: Any) -> None:
    words = {"name": next(NAMES), **WORDS}
    shop = admin.experiment(words["name"])
    assert admin.declare(words)["status"] == "starting"
    assert refused(admin.declare, {**words, "title": "x"}) == (409, "exists")
    assert admin.declare(words, wait=True) == shop.summary()
    assert shop.summary()["status"] == "running"
    assert admin.declare(words)["status"] == "running"
    assert refused(admin.declare, {**words, "baseline": "green"}) == (409, "exists")


def test_all_mistakes_of_a_declaration_are_told(admin: Any) -> None:
    with pytest.raises(ServiceError) as caught:
        admin.declare({**WORDS, "name": "A shop", "retries_for": "never"}, wait=True)
    assert [one["word"] for one in caught.value.more["errors"]] == ["name", "retries_for"]
    failing = {**WORDS, "name": next(NAMES), "title": "fails"}
    assert refused(admin.declare, failing, wait=True) == (None, "failed")


def test_keys_open_what_they_are_for(served: Any, connect: Any, shop: Any) -> None:
    for role, call, status in [
        ("decide+reward", lambda one: one.decide(), None),
        ("decide+reward", lambda one: one.summary(), 403),
        ("read", lambda one: one.summary(), None),
        ("read", lambda one: one.decide(fallback=0), 403),
    ]:
        own = connect(served.url, served.keys[role]).experiment(shop.name)
        if status is None:
            call(own)
        else:
            assert refused(call, own) == (status, "forbidden")
    stranger = connect(served.url, "dpb_unknown").experiment(shop.name)
    assert refused(stranger.decide, fallback=0) == (401, "unauthorized")
    assert refused(connect(served.url).experiments) == (401, "unauthorized")


def test_a_key_with_a_rate_is_waited_for(served: Any, connect: Any, shop: Any) -> None:
    own = connect(served.url, served.keys["slow"]).experiment(shop.name)
    ids = [own.decide().decision_id for _ in range(4)]
    assert len(set(ids)) == 4
    assert refused(lambda: [own.decide(within=0.1) for _ in range(4)]) == (429, "too-many")


def test_a_service_that_is_not_there_is_replaced(connect: Any) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        shop = connect(url).experiment("shop")
        assert shop.decide(fallback="blue", within=0.3).choice == "blue"
        assert refused(shop.decide, within=0.3) == (None, "unreachable")


def test_a_service_that_hangs_is_replaced(connect: Any) -> None:
    with socket.socket() as hanging:
        hanging.bind(("127.0.0.1", 0))
        hanging.listen()  # and does not reply
        url = f"http://127.0.0.1:{hanging.getsockname()[1]}"
        shop = connect(url).experiment("shop")
        begun = datetime.now(UTC)
        assert shop.decide(fallback="blue", within=0.3).choice == "blue"
        assert datetime.now(UTC) - begun < timedelta(seconds=5)


# The contract ---------------------------------------------------------------------------------


def test_messages_are_those_of_the_service() -> None:
    for one in ("Decision", "DecisionRequest", "RewardReply"):
        theirs = "DecisionReply" if one == "Decision" else one
        fields = [
            set(getattr(at, name).__struct_fields__)
            for at, name in ((client, one), (messages, theirs))
        ]
        assert fields[0] == fields[1]
    sent = RewardRequest(1.0, Decision.fallback("1", 0), "blue").to_dict()
    assert sent.keys() <= set(messages.RewardRequest.__struct_fields__)


def test_every_address_of_an_experiment_has_a_method() -> None:
    named = {
        "decisions": "decide",
        "decisions/batch": "decide_many",
        "rewards": "reward",
        "rewards/batch": "reward_many",
        "": "summary",
    }
    ends = [
        "delete" if method == "delete" else path.partition("{name}")[2].strip("/")
        for path, calls in document()["paths"].items()
        for method in calls
        if "{name}" in path
    ]
    methods = {name for name in vars(ExperimentMethods) if not name.startswith("_")}
    assert {named.get(end, end) for end in ends} == methods | {"reports", "batches"}
