"""Tokens stand for decisions, and cannot be forged, used twice, or taken elsewhere."""

from __future__ import annotations

import pickle
from dataclasses import asdict

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.policies import Policy
from dpbandits.stores import tokens


def make(**options: object) -> Policy:
    return dpb.algorithms.MergedIMED(
        3, budget=dpb.ZCDP(0.5), **({"seed": 1, "answers_within": 4} | options)
    )


def test_a_token_answers_as_its_decision_does():
    one, other = make(), make()
    for reward in np.random.default_rng(1).random(60):
        decision, token = one.pull(), other.pull().token
        assert one.update(reward, decision) == other.update(reward, token)
    one_state, other_state = (policy.session.state for policy in (one, other))
    assert one_state.wall.release.tolist() == other_state.wall.release.tolist()
    assert other.expire(other.pull().token)


def test_a_token_is_short_and_safe_in_a_link():
    token = make().pull().token
    assert len(token) == 64
    assert all(sign.isalnum() or sign in "-_" for sign in token)


def test_every_changed_or_shortened_token_is_refused():
    policy = make()
    decision = policy.pull()
    token = decision.token
    for place in range(len(token)):
        changed = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        with pytest.raises(dpb.UpdateError, match="be the token of such a decision"):
            policy.update(1.0, changed)
    marked = "!!" + token[:5] + " \n" + token[5:]  # decoders skip what is no letter
    for wrong in (marked, "", "x", token[:-2], token + "AA", "ä" * 64, make().pull().token):
        with pytest.raises(dpb.UpdateError, match="be the token of such a decision"):
            policy.update(1.0, wrong)
    assert policy.diagnostics.pending == 1
    assert policy.update(1.0, token)


def test_a_token_is_good_once():
    policy = make(answers_within=0)
    token = policy.pull().token
    assert policy.update(1.0, token)
    with pytest.raises(dpb.UpdateError, match="has been answered"):
        policy.update(1.0, token)
    policy.pull()  # the release
    assert not policy.update(1.0, token)


def test_a_token_expires(monkeypatch):
    policy = make()
    decision = policy.pull()
    short, long_ = decision.token_for(60.0), decision.token
    now = tokens.time.time()
    monkeypatch.setattr(tokens.time, "time", lambda: now + 120)
    with pytest.raises(dpb.UpdateError, match="expired"):
        policy.update(1.0, short)
    assert policy.update(1.0, long_)
    for wrong in (0.0, float("nan"), float("inf"), 1e30, "3"):
        with pytest.raises(dpb.ArgumentError, match=r"^lifetime must"):
            decision.token_for(wrong)


@pytest.mark.parametrize(
    ("within", "days"), [("365d", 364.0), ("1h", 0.04), (5, 400.0), (None, 400.0)]
)
def test_a_token_outlives_the_deadline_of_its_pull(within, days, monkeypatch):
    """Also where a later pull, with a shorter wait, keeps the deadline of an earlier one."""
    policy = make(answers_within=within)
    asked = [policy.pull()]
    if within == "365d":
        policy.configure(answers_within="1h")
        asked = [policy.pull() for _ in range(3)]
        assert asked[-1].recorded
    answers = [one.token for one in asked]
    now = tokens.time.time()
    monkeypatch.setattr(tokens.time, "time", lambda: now + days * tokens.DAYS)
    assert policy.is_open(answers[-1])
    assert policy.update(1.0, answers[-1])


def test_a_token_expires_30_days_after_its_deadline(monkeypatch):
    policy = make(answers_within="365d")
    token, now = policy.pull().token, tokens.time.time()
    monkeypatch.setattr(tokens.time, "time", lambda: now + 380 * tokens.DAYS)
    assert not policy.update(1.0, token)
    monkeypatch.setattr(tokens.time, "time", lambda: now + 402 * tokens.DAYS)
    with pytest.raises(dpb.UpdateError, match="expired"):
        policy.update(1.0, token)


def test_tokens_outlive_a_load_and_those_of_unknown_pulls_are_dropped(tmp_path):
    policy = make()
    path = policy.save(tmp_path / "a")
    kept = [policy.pull().token for _ in range(3)]
    found = dpb.load(path)
    assert found.update(1.0, kept[0])
    with pytest.raises(dpb.ClaimError):
        policy.pull()  # it is the loaded policy's
    # Of a pull that this life has not seen, as of one that was refused, nothing is learned.
    unknown = policy.session.seal.token(policy.session.life, 3, recorded=True, lifetime=60.0)
    assert not found.update(1.0, unknown)
    assert found.diagnostics.dropped == 1
    assert found.update(1.0, found.pull().token)
    again = dpb.load(found.save(tmp_path / "b"))
    assert again.update(1.0, kept[1])
    with pytest.raises(dpb.UpdateError, match="has been answered"):
        again.update(1.0, kept[0])


def test_keys_differ_and_leave_with_no_decision():
    one, other = make(), make()
    assert one.session.seal.key != other.session.seal.key
    decision = one.pull()
    key = one.session.seal.key
    copy = pickle.loads(pickle.dumps(decision))
    assert key not in pickle.dumps(decision)
    assert "_seal" not in asdict(decision)
    assert key.hex() not in repr(decision) + repr(one) + repr(one.session.seal)
    assert one.chooser().to_json().find(key.hex()) < 0
    with pytest.raises(dpb.UpdateError, match=r"that pull\(\) returned"):
        _ = copy.token
    assert one.update(1.0, copy)


def test_a_token_does_not_tell_the_arm():
    """Of one pull the tokens of two arms are as long, and say the same but for the signature."""
    arms, bodies = set(), set()
    for seed in range(8):
        policy = dpb.algorithms.EXP3(2, horizon=10, budget=None, seed=seed)
        policy.session.life = "0" * 32
        decision = policy.pull()
        arms.add(decision.arm)
        bodies.add(decision.token[:30])  # life and number
    assert (len(arms), len(bodies)) == (2, 1)
