"""Choosers: the public half of a policy, which chooses as the whole does and knows no records."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.policies import Policy, registered


def shown(policy: Policy, rng: np.random.Generator):
    if policy.sees == "advice":
        return rng.dirichlet(np.ones(policy.n_arms), policy.n_experts)
    if policy.sees == "contexts":
        return rng.uniform(-0.5, 0.5, (policy.n_arms, policy.dimension))
    return None


def made(name: str, **options) -> Policy:
    cls = registered()[name]
    budget = (cls.example_budgets() or [None])[0]
    return cls(**{**cls.example, **options}, budget=budget, seed=1)


CERTAIN = [name for name, cls in registered().items() if not cls.card.randomised]


@pytest.mark.parametrize(
    "name", [name for name in CERTAIN if registered()[name].card.learns_at_once]
)
def test_it_chooses_as_its_policy_would(name: str):
    policy, rng = made(name), np.random.default_rng(3)
    for _ in range(12):
        person = shown(policy, rng)
        chooser = pickle.loads(pickle.dumps(policy.chooser()))
        decision = policy.pull(person)
        assert chooser.choose(person) == decision.arm
        policy.update(float(rng.random() < 0.5), decision)


@pytest.mark.parametrize("name", sorted(registered()))
def test_it_says_nothing_about_records(name: str):
    """Answers that were not released change no byte of it."""
    written = []
    for reward in (0.0, 1.0):
        policy, rng = made(name), np.random.default_rng(3)
        before = policy.ledger.releases
        decision = policy.pull(shown(policy, rng))
        if not policy.card.learns_at_once:
            policy.update(reward, decision)
            assert policy.ledger.releases == before
        text = policy.chooser().to_json()
        assert '"seed": null' in text
        assert "raw" not in json.loads(text)
        written.append(text)
    assert written[0] == written[1]


def test_it_is_of_one_moment():
    policy = dpb.algorithms.LinUCBLDP(2, 2, budget=dpb.ZCDP(0.5), horizon=50, seed=1)
    chooser = policy.chooser()
    before = chooser.to_json()
    for _ in range(5):
        policy.pull(np.eye(2))
        policy.update(1.0)
    assert chooser.to_json() == before
    assert (chooser.release, policy.chooser().release) == (0, 5)
    assert policy.chooser().to_json() != before


def test_its_random_numbers_are_its_own():
    policy = dpb.algorithms.LinearThompson(5, 3, budget=dpb.ZCDP(0.5), horizon=50, seed=1)
    contexts, chooser = np.random.default_rng(1).normal(size=(5, 3)), policy.chooser()
    before = str(policy.session.state.choice_rng.bit_generator.state)
    assert len({chooser.choose(contexts) for _ in range(200)}) > 1
    assert str(policy.session.state.choice_rng.bit_generator.state) == before


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"class": "Nobody", "arguments": {}}'])
def test_other_texts_are_refused(text: str):
    with pytest.raises(dpb.ArgumentError, match=r"^text must be the JSON of a chooser"):
        dpb.policies.Chooser.from_json(text)


def test_arrays_of_another_size_are_refused():
    data = json.loads(
        dpb.algorithms.LinUCBLDP(2, 2, budget=dpb.ZCDP(0.5), horizon=50).chooser().to_json()
    )
    data["public"]["public.estimate"] = [1.0, 2.0, 3.0]
    with pytest.raises(dpb.ArgumentError, match=r"^text must be the JSON of a chooser"):
        dpb.policies.Chooser.from_json(json.dumps(data))
