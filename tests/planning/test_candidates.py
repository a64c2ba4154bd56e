"""Who fits: for each setting and trust the classes that are for it, by hand, and why others not."""

from __future__ import annotations

import numpy as np
import pytest

from dpbandits import GDP, RDP, ZCDP, ApproxDP, PureDP
from dpbandits.papers.concentrated import AdaCUCB
from dpbandits.planning import Setting
from dpbandits.planning.candidates import candidates, misfit, unsuited
from dpbandits.policies import DEFAULTS, registered

MERGED = {"MergedIMED", "MergedKLUCB", "MergedThompson"}
PUBLIC = {"features": 2}
PRIVATE = {"features": 2, "protects": "contexts and rewards"}
FIXED = {"features": np.eye(4)}
ARMS = MERGED | {"AdaCUCB", "DPTS", "DiscountedIMED"}
PURE = MERGED | {"DPTS", "DiscountedIMED", "AdaPUCB", "AdaPKLUCB", "DPSE", "LazyDPTS"}
LEARNERS = {f"ExpertConversion(learner='{one}')" for one in ("htinf", "exp3", "ftpl")}
JOINT = {f"{one}(batch=50)" for one in ("LinearIMEDJDP", "LinUCBJDP", "LinearThompsonJDP")}
LOCAL = {f"{one}(batch=100)" for one in ("LinearIMEDLDP", "LinUCBLDP", "LDPGLOC", "LDPSGD")}
SHUFFLED = {f"{one}(batch=500)" for one in ("LinearIMEDSDP", "LinUCBSDP", "LinearThompsonSDP")}

FITTING = [
    ({}, ZCDP(1.0), ARMS),
    ({}, PureDP(1.0), PURE | {"DPIMED", "DPKLUCB"}),
    ({}, RDP(4.0, 1.0), ARMS),
    ({}, GDP(1.0), ARMS),
    ({"trust": "shuffle"}, GDP(1.0), set()),
    ({"trust": "shuffle"}, PureDP(1.0), {"MergedIMEDSDP", "AdaPUCBSDP", "AdaPKLUCBSDP"} | {"DPSESDP"}),
    ({"trust": "shuffle"}, ZCDP(1.0), set()),
    ({"trust": "local"}, PureDP(1.0), {"LDPIMED", "LDPUCB"}),
    ({"drift": "any"}, PureDP(1.0), {"EXP3", "FTPL", "HTINF"}),
    ({"drift": "any", "trust": "local"}, PureDP(1.0), set()),
    ({"changing": True}, ZCDP(1.0), {"DiscountedIMED", "EXP3", "FTPL", "HTINF"}),
    (FIXED, ZCDP(1.0), ARMS | {"MergedLinearIMED", "AdaCGOPE", "DPDPE", "OutputGOPE", "AdaRGOPEVar"}),
    ({"experts": 3}, PureDP(1.0), LEARNERS | {"LocalEXP4"}),
    ({"experts": 3, "standing_advice": True}, PureDP(1.0), LEARNERS | {"LocalEXP4", "FrozenEXP4"}),
    ({"experts": 3, "trust": "local"}, PureDP(1.0), {"LocalEXP4"}),
    ({"experts": 3}, RDP(4.0, 1.0), LEARNERS | {"LocalEXP4", "EXP4"}),
    ({"goal": "best arm"}, PureDP(1.0), {"AdaPTT", "DPSEBAI", "MergedTopTwo", "SequentialHalving"}),
    ({"goal": "best arm"}, ZCDP(1.0), {"MergedTopTwo", "SequentialHalving"}),
    ({"goal": "best arm", "trust": "shuffle"}, PureDP(1.0), {"MergedTopTwoSDP", "SequentialHalvingSDP"}),
    ({"goal": "best arm", "trust": "local"}, ZCDP(1.0), {"LDPTopTwo"}),
]  # fmt: skip
WITH_CONTEXTS = [
    (PUBLIC, {"RSLinearIMED", "LinearIMED", "PrivateLinUCB", "AdaCOFUL", "GLMUCB"}, JOINT),
    (PRIVATE, JOINT | {"AdaCOFULJDP"}, {"LinearIMED"}),
    ({**PRIVATE, "trust": "local"}, LOCAL, JOINT | SHUFFLED),
    ({**PRIVATE, "trust": "shuffle"}, SHUFFLED, JOINT | LOCAL),
]


def titles(budget, **given):
    return {one.title for one in candidates(Setting(4, **given), budget)[0]}


def in_order(value):
    """A name of a case that is the same in every process, which the order of a set is not."""
    return ", ".join(sorted(value)) if isinstance(value, set) else str(value)


@pytest.mark.parametrize(("given", "budget", "expected"), FITTING, ids=in_order)
def test_who_fits(given, budget, expected):
    assert titles(budget, **given) == expected


@pytest.mark.parametrize(("given", "among", "not_among"), WITH_CONTEXTS, ids=in_order)
def test_who_fits_with_contexts(given, among, not_among):
    found = titles(ApproxDP(1.0, 1e-5), **given)
    assert among <= found
    assert not found & not_among
    assert "LinUCB" not in found  # which has no privacy


@pytest.mark.parametrize("one", DEFAULTS, ids=lambda one: one.call)
def test_the_default_of_a_setting_fits_it(one):
    words = {"changing": {"changing": True}, "any": {"drift": "any"}, "experts": {"experts": 3}}
    words |= {
        "horizon": {"horizon": 500},
        "link": {"link": "logistic"},
        "public": PUBLIC,
        "private": PRIVATE,
        "fixed": FIXED,
    }
    given = {}
    for said in (one.contexts, one.rewards, one.more):
        given |= words.get(said, {})
    setting = Setting(4, **given, trust=one.trust, goal=one.goal)
    found = setting.default
    assert (found.policy, found.setting, found.trust) == (one.policy, one.setting, one.trust)
    cls, budget = one.policy_class, ApproxDP(1.0, 1e-5)
    budget = budget if cls.card.takes(ApproxDP) else PureDP(1.0)
    fitting, left_out = candidates(setting, budget)
    mine = [
        found
        for found in fitting
        if found.cls is cls
        and all(found.arguments.get(name, own) == own for name, own in one.arguments.items())
    ]
    assert len(mine) == 1
    assert not {found.cls.__name__ for found in fitting} & left_out.keys()
    assert {found.cls.__name__ for found in fitting} | left_out.keys() == registered().keys()
    policy = mine[0].build(setting, budget, 1000)
    told = {name: policy.arguments[name] for name in one.arguments}
    assert told == one.arguments


@pytest.mark.parametrize(
    ("given", "budget", "name", "reason"),
    [
        ({}, ZCDP(1.0), "AdaPUCB", "takes only PureDP"),
        ({}, ZCDP(1.0), "UCB1", "has no privacy"),
        ({}, ZCDP(1.0), "LinearIMED", "takes contexts, but the setting has no contexts"),
        ({}, ZCDP(1.0), "MergedTopTwo", "searches for the best arm"),
        ({}, ZCDP(1.0), "HTINF", "is for rewards that follow no law (adversarial), at the price of"),
        ({}, ZCDP(1.0), "AdaCGOPE", "needs the features of its arms"),
        ({}, ZCDP(1.0), "LDPUCB", "also protects from the party that runs it, at the price of more noise"),
        ({"trust": "local"}, PureDP(1.0), "MergedIMEDSDP", "needs a shuffler"),
        ({"trust": "shuffle"}, PureDP(1.0), "LDPUCB", "needs no shuffler, at the price of"),
        ({"trust": "shuffle"}, PureDP(1.0), "DPSE", "the party that runs it sees raw rewards"),
        ({"goal": "best arm"}, ZCDP(1.0), "MergedIMED", "plays for reward"),
        ({"goal": "best arm", "trust": "shuffle"}, PureDP(1.0), "MergedTopTwo", "the party that runs it"),
        ({"drift": "any"}, ZCDP(1.0), "DPTS", "assumes one law for each arm"),
        ({"drift": "any"}, ZCDP(1.0), "BatchConversion", "its learners are policies of their own"),
        ({"changing": True}, ZCDP(1.0), "DPTS", "assumes one law for each arm that never"),
        (PUBLIC, ZCDP(1.0), "LinUCBJDP", "hides contexts, too, at the price of more noise"),
        (PRIVATE, ZCDP(1.0), "LinearIMED", "hides rewards, not contexts"),
        (PUBLIC, ApproxDP(1.0, 1e-5), "LinUCBDGS", "gives no guarantee: "),
        ({"experts": 2}, PureDP(1.0), "FrozenEXP4", "its bound needs advice that stays the same"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_who_does_not_fit_is_told_why(given, budget, name, reason):
    assert candidates(Setting(4, **given), budget)[1][name].startswith(reason)


def test_without_a_budget_those_without_privacy_fit_too():
    found = titles(None)
    assert {"UCB1", "KLUCB", "ThompsonSampling"} | ARMS <= found
    assert "LDPUCB" not in found


def test_fitting_and_suiting_are_told_apart():
    setting = Setting(3, drift="any")
    assert misfit(AdaCUCB, setting, ZCDP(1.0)) is None
    assert unsuited(AdaCUCB, setting) is not None
