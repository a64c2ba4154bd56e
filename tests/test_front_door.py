"""The front door: what each setting gets, what is said of mistakes, and what mypy sees."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits import ArgumentError, bandit
from dpbandits.policies import DEFAULTS, load

BOTH: dict[str, Any] = {"protects": "contexts and rewards", "horizon": 500}
FEATURES = [[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]]
PURE, ZCDP, APPROX = dpb.PureDP(1.0), dpb.ZCDP(0.5), dpb.ApproxDP(1.0, 1e-6)

SETTINGS = [
    ({"budget": ZCDP}, dpb.Arms, "MergedIMED"),
    ({"budget": None}, dpb.Arms, "MergedIMED"),
    ({"budget": {"zcdp": 0.5}}, dpb.Arms, "MergedIMED"),
    ({"budget": {"approx": [1.0, 1e-6]}}, dpb.Arms, "MergedIMED"),
    ({"budget": ZCDP, "drift": 5000, "max_rounds": 3}, dpb.Arms, "DiscountedIMED"),
    ({"budget": ZCDP, "drift": "any"}, dpb.Adversarial, "HTINF"),
    ({"budget": PURE, "trust": "shuffle"}, dpb.ArmsShuffled, "MergedIMEDSDP"),
    ({"budget": PURE, "trust": "local"}, dpb.ArmsLocal, "LDPIMED"),
    ({"budget": ZCDP, "goal": "best arm"}, dpb.BestArm, "MergedTopTwo"),
    ({"budget": ZCDP, "goal": "best arm", "horizon": 500}, dpb.BestArm, "SequentialHalving"),
    ({"budget": PURE, "goal": "best arm", "trust": "shuffle"}, dpb.BestArmShuffled, "MergedTopTwoSDP"),
    ({"budget": PURE, "goal": "best arm", "trust": "shuffle", "horizon": 500}, dpb.BestArmShuffled, "SequentialHalvingSDP"),
    ({"budget": ZCDP, "goal": "best arm", "trust": "local"}, dpb.algorithms.LDPTopTwo, "LDPTopTwo"),
    ({"budget": ZCDP, "features": FEATURES}, dpb.FixedLinear, "MergedLinearIMED"),
    ({"budget": ZCDP, "features": 2, "horizon": 500}, dpb.Linear, "RSLinearIMED"),
    ({"budget": ZCDP, "person": 2, "horizon": 500}, dpb.Linear, "LinearIMED"),
    ({"budget": ZCDP, "features": 2, **BOTH}, dpb.HiddenLinear, "LinearIMEDJDP"),
    ({"budget": ZCDP, "person": 2, **BOTH}, dpb.HiddenLinear, "LinearIMEDJDP"),
    ({"budget": ZCDP, "features": 2, **BOTH, "trust": "local"}, dpb.HiddenLinearLocal, "LinearIMEDLDP"),
    ({"budget": APPROX, "features": 2, **BOTH, "trust": "shuffle"}, dpb.HiddenLinearShuffled, "LinearIMEDSDP"),
    ({"budget": ZCDP, "features": 2, "link": "logistic", "horizon": 500}, dpb.GLM, "GLMThompson"),
    ({"budget": ZCDP, "features": 2, "link": "identity", "horizon": 500}, dpb.Linear, "RSLinearIMED"),
    ({"budget": ZCDP, "features": 2, "link": "probit", **BOTH}, dpb.HiddenGLM, "GLMThompsonJDP"),
    ({"budget": ZCDP, "features": 2, "link": "logistic", **BOTH, "trust": "local"}, dpb.HiddenGLMLocal, "LDPSGD"),
    ({"budget": ZCDP, "experts": 4, "horizon": 500}, dpb.Experts, "ExpertConversion"),
    ({"budget": ZCDP, "experts": 4, "horizon": 500, "trust": "local"}, dpb.ExpertsLocal, "LocalEXP4"),
]  # fmt: skip


def shown(policy: dpb.Policy, words: dict[str, Any]) -> tuple[Any, ...]:
    if "experts" in words:
        return (np.full((4, 3), 1 / 3),)
    if "person" in words:
        return (np.full(2, 0.5),)
    return (np.eye(3)[:, :2],) if words.get("features") == 2 else ()


@pytest.mark.parametrize(("words", "cls", "name"), SETTINGS, ids=lambda one: str(one)[:60])
def test_a_setting_gets_its_default(words: dict[str, Any], cls: type, name: str, tmp_path: Path):
    policy = bandit(["a", "b", "c"], **words, seed=3)
    assert (type(policy), policy.preset, policy.arm_names) == (cls, name, ("a", "b", "c"))
    user = {"user": "ann"} if "max_rounds" in words else {}
    assert policy.pull(*shown(policy, words), **user).name in ("a", "b", "c")
    names = {one: getattr(dpb, one) for one in dpb.__all__} | {cls.__name__: cls}
    assert repr(eval(repr(policy), {**names, **vars(dpb.parts)})) == repr(policy)
    again = load(policy.save(str(tmp_path / "one.dpb")), simulation=True)
    assert (type(again), again.config) == (cls, policy.config)


def test_every_default_is_reached():
    reached = {name for _, _, name in SETTINGS}
    assert {one.policy for one in DEFAULTS} <= reached


def test_it_builds_what_the_setting_says():
    words = {"features": 2, "protects": "contexts and rewards", "trust": "local"}
    default = dpb.Setting(3, **words).default
    policy = bandit(3, ZCDP, **words, horizon=500, seed=1)
    assert policy.stream_key == default.build(3, budget=ZCDP, horizon=500, dimension=2).stream_key
    assert "regret was compared" in default.why


@pytest.mark.parametrize(
    ("setting", "given"),
    [
        ({"drift": 500}, {}),
        ({"goal": "best arm", "horizon": 500}, {"horizon": 500}),
        ({"person": 2}, {"dimension": 2, "horizon": 500}),
        ({"features": 2, "link": "probit"}, {"dimension": 2, "horizon": 500}),
    ],
    ids=str,
)
def test_settings_and_the_door_take_one_default(setting: dict[str, Any], given: dict[str, Any]):
    default = dpb.Setting(3, **setting).default
    horizon = {} if "dimension" not in given else {"horizon": 500}
    door = bandit(3, ZCDP, **setting, **horizon)
    assert door.stream_key == default.build(3, budget=ZCDP, **given).stream_key
    assert default.why.endswith(".")


def test_a_reason_is_given_for_the_policy_that_is_taken():
    assert "model of its own" in dpb.Setting(3, person=2).default.why
    assert "regret was compared" in dpb.Setting(3, features=2).default.why


def test_numbers_of_numpy_are_numbers():
    policy = bandit(np.int64(3), ZCDP, drift=np.int64(500))
    assert policy.config == bandit(3, ZCDP, drift=500).config


def test_own_parts_stand_beside_what_was_said():
    policy = bandit(3, ZCDP, drift=500, index="KLUCB")
    assert policy.config["memory"] == dpb.parts.Discount(rounds_per_change=500)
    assert policy.config["index"] == dpb.parts.KLUCB()


def test_what_is_refused_is_not_offered():
    with pytest.raises(TypeError, match="known: ") as found:
        bandit(3, ZCDP, context_bound=2)
    offered = str(found.value).partition("known: ")[2].split(", ")
    assert {"alpha", "drift", "index"} <= set(offered)
    assert not {"options", "patience", "n_arms", "arm_names"} & set(offered)


@pytest.mark.parametrize("word", ["seed", "noise", "reward_range", "calibration", "default_reward"])
def test_all_other_options_reach_the_policy(word: str):
    value = {"seed": 4, "noise": "simulation", "reward_range": (0.0, 5.0), "calibration": "paper"}
    given = value.get(word, 0.5)
    assert bandit(2, APPROX, **{word: given}).config[word] == given


def test_answers_may_come_late():
    assert bandit(2, ZCDP, answers_within=200).answers_within == 200
    assert bandit(2, ZCDP, answers_within=None).answers_within is None


def test_a_file_says_the_same():
    text = """
    [bandit]
    arms = ["a", "b"]
    budget = {pure = 1.0}
    trust = "local"
    index = {kind = "KLUCB", alpha = 1.5}
    seed = 1
    """
    words = tomllib.loads(text)["bandit"]
    made = bandit(**words)
    assert made.config["index"] == dpb.parts.KLUCB(alpha=1.5)
    assert made.budget == PURE


MISTAKES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({}, ArgumentError, r"^arms must be given"),
    (
        {"arms": 3},
        ArgumentError,
        r"^budget must be given, as one of PureDP\(epsilon=1.0\), .* None for no",
    ),
    ({"arms": 3, "epsilon": 1.0}, ArgumentError, r"^epsilon must be part of a budget"),
    ({"arms": 3, "rho": 0.5}, ArgumentError, r"^rho must be part of a budget"),
    (
        {"arms": 3, "budget": 1.0},
        ArgumentError,
        r"^budget must be one like PureDP.*, or None, or a dict like {'zcdp': 0.5}, got 1.0$",
    ),
    (
        {"arms": 3, "budget": "zcdp"},
        ArgumentError,
        r"^budget must be one like PureDP.* got 'zcdp'$",
    ),
    ({"arms": 3, "budget": {"zdcp": 1}}, ArgumentError, r"^budget must be one like PureDP"),
    ({"arms": 3, "budget": {"zcdp": -1}}, ArgumentError, r"rho must be"),
    ({"arms": "abc", "budget": ZCDP}, ArgumentError, r"^arms must be a number, or a list of names"),
    ({"arms": 0, "budget": ZCDP}, ArgumentError, r"^arms must be an integer between 1"),
    ({"arms": ["a", "a"], "budget": ZCDP}, ArgumentError, r"^arms must differ"),
    ({"arms": [], "budget": ZCDP}, ArgumentError, r"^arms must hold at least one name"),
    ({"arms": {"a"}, "budget": ZCDP}, ArgumentError, r"^arms must be a number, or a list of names"),
    ({"arms": np.array(["a"]), "budget": ZCDP}, ArgumentError, r"^arms must be a number, .*shape"),
    (
        {"arms": 3, "budget": ZCDP, "person": 2},
        ArgumentError,
        r"^horizon must be given for .*, as the largest number",
    ),
    (
        {"arms": 3, "budget": ZCDP, "alpha": 3.0, "index": "KLUCB"},
        ArgumentError,
        r"^index must not be given with alpha, got 'KLUCB': .* give alpha to your index instead$",
    ),
    (
        {"arms": 3, "budget": ZCDP, "drift": 500, "memory": "Forget"},
        ArgumentError,
        r"^memory must not be given with drift, ",
    ),
    ({"arms": ["a", 3], "budget": ZCDP}, ArgumentError, r"^arms must be a text"),
    (
        {"arms": 3, "budget": ZCDP, "trust": "shuffle"},
        ArgumentError,
        r"^budget must be of the kind PureDP",
    ),
    ({"arms": 3, "budget": ZCDP, "features": 2}, ArgumentError, r"^horizon must be given"),
    ({"arms": 3, "budget": ZCDP, "trust": "nobody"}, ArgumentError, r"^trust must be one of"),
    ({"arms": 3, "budget": ZCDP, "goal": "regert"}, ArgumentError, r"^goal must be one of"),
    (
        {"arms": 3, "budget": ZCDP, "drift": "often"},
        ArgumentError,
        r"^drift must be the number of rounds",
    ),
    ({"arms": 3, "budget": ZCDP, "drift": True}, ArgumentError, r"^drift must be"),
    ({"arms": 3, "budget": ZCDP, "answers_within": "3 d"}, ArgumentError, r"^answers_within must"),
    ({"arms": 3, "budget": ZCDP, "horizon": 0}, ArgumentError, r"^horizon must be an integer"),
    ({"arms": 3, "budget": ZCDP, "features": [[1, 2]]}, ArgumentError, r"^features must have 3"),
    (
        {"arms": 3, "budget": ZCDP, "seeed": 1},
        TypeError,
        r"^bandit takes no argument seeed .*seed\?",
    ),
    ({"arms": 3, "budget": ZCDP, "n_arms": 3}, TypeError, r"^bandit takes no argument n_arms"),
]


@pytest.mark.parametrize(("words", "kind", "told"), MISTAKES, ids=str)
def test_a_mistake_is_answered_in_one_sentence(words: dict[str, Any], kind: type, told: str):
    with pytest.raises(kind, match=told) as found:
        bandit(**words)
    assert str(found.value).count(". ") == 0


TYPED = """
from dpbandits import PureDP, ZCDP, ApproxDP, bandit

reveal_type(bandit(3, PureDP(1.0)))
reveal_type(bandit(3, ZCDP(1.0), goal="best arm").recommendation)
bandit(3, PureDP(1.0), trust="shuffle").device().report(1.0)
bandit(3, PureDP(1.0), trust="shuffle").receive(None)
bandit(3, PureDP(1.0), trust="shuffle", goal="best arm").receive(None)
bandit(3, PureDP(1.0), trust="local", goal="best arm").randomiser()
bandit(3, PureDP(1.0), trust="local").randomiser()
both = bandit(3, ApproxDP(1.0, 1e-6), features=2, protects="contexts and rewards", trust="shuffle", horizon=9)
both.device(), both.receive
alone = bandit(3, ZCDP(1.0), features=2, protects="contexts and rewards", trust="local", horizon=9)
alone.device(), alone.receive
bandit(3, PureDP(1.0)).device()
"""


@pytest.mark.long
def test_mypy_sees_what_a_setting_has(tmp_path: Path):
    (tmp_path / "typed.py").write_text(TYPED)
    run = [sys.executable, "-m", "mypy", "--follow-imports=silent", "typed.py"]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    # Whoever runs a policy under central trust has no devices.
    assert len(errors) == 1, done.stdout + done.stderr
    assert 'has no attribute "device"' in errors[0]
    assert "typed.py:15:" in errors[0]
    assert "dpbandits.policies.policy.Policy" in done.stdout


def test_a_learner_that_is_a_value_replaces_the_named_one():
    """The default with experts names its learner; ``parts`` have values of it."""
    chosen = bandit(3, ZCDP, experts=4, horizon=500, learner=dpb.parts.EXP4(), seed=1)
    assert (chosen.preset, chosen.config["learner"]) == ("EXP4", dpb.parts.EXP4())
    assert bandit(3, PURE, experts=4, learner="exp3", horizon=500).preset == "ExpertConversion"
