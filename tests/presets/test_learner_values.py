"""Learners and rules as values: what is built of them is what has its name, and refuses the rest."""

from __future__ import annotations

import pickle

import pytest
from recording import play

from dpbandits import (
    ZCDP,
    Adversarial,
    ArgumentError,
    BestArm,
    Experts,
    ExpertsLocal,
    PureDP,
    parts,
)
from dpbandits.policies import load, registered

ONE, RHO = PureDP(1.0), ZCDP(0.5)
ADVISED = {"n_arms": 3, "n_experts": 4}

# How a policy is built, its name, and the arguments of that name.
BUILT = [
    (lambda: Adversarial(3, budget=ONE, seed=1), "HTINF", {}),
    (lambda: Adversarial(3, budget=ONE, learner="EXP3", seed=1), "EXP3", {}),
    (
        lambda: Adversarial(3, budget=ONE, learner={"kind": "FTPL", "tries": 4}, batch=2, seed=1),
        "FTPL",
        {"tries": 4, "batch": 2},
    ),
    (
        lambda: Adversarial(3, budget=ONE, learner=parts.Registered("exp3", rate=0.1), seed=1),
        "BatchConversion",
        {"learner": "exp3", "rate": 0.1},
    ),
    (lambda: Adversarial(3, budget=None, learner=parts.EXP3IX(), seed=1), "EXP3IX", {}),
    (
        lambda: Experts(**ADVISED, budget=RHO, horizon=90, learner=parts.EXP4(), seed=1),
        "EXP4",
        {"horizon": 90},
    ),
    (
        lambda: Experts(
            **ADVISED, budget=ONE, horizon=90, learner=parts.FrozenEXP4(mixing=0.2), seed=1
        ),
        "FrozenEXP4",
        {"horizon": 90, "mixing": 0.2},
    ),
    (
        lambda: Experts(**ADVISED, budget=ONE, learner=parts.Registered("ftpl"), seed=1),
        "ExpertConversion",
        {"learner": "ftpl"},
    ),
    (lambda: ExpertsLocal(**ADVISED, budget=ONE, horizon=90, seed=1), "LocalEXP4", {"horizon": 90}),
    (
        lambda: BestArm(3, budget=ONE, failure_probability=0.1, seed=1),
        "MergedTopTwo",
        {"failure_probability": 0.1},
    ),
    (lambda: BestArm(3, budget=ONE, horizon=90, seed=1), "SequentialHalving", {"horizon": 90}),
]


@pytest.mark.parametrize(("build", "name", "given"), BUILT, ids=lambda one: str(one)[:20])
def test_what_is_built_of_values_has_the_name_and_the_numbers_of_its_preset(build, name, given):
    policy, preset = build(), registered()[name]
    shared = {"n_arms": 3, "budget": policy.budget, "seed": 1}
    sizes = ADVISED if "Expert" in type(policy).__name__ else {}
    called = preset(**{**sizes, **shared, **given})
    assert isinstance(policy, preset)
    assert policy.card == preset.card
    assert (policy.preset, policy.stream_key) == (name, called.stream_key)
    assert repr(policy) == repr(called)
    assert play(policy, 40) == play(called, 40)


def test_a_combination_without_a_name_is_saved_and_goes_on(tmp_path):
    policy = Experts(**ADVISED, budget=ONE, learner=parts.HTINF(sigma=2.0), seed=1)
    assert policy.preset == "Experts"
    play(policy, 20)
    again = load(policy.save(tmp_path / "policy"))
    assert again.config["learner"] == parts.HTINF(sigma=2.0)
    assert again.label == policy.label
    named = registered()["ExpertConversion"](**ADVISED, sigma=2.0, budget=ONE, seed=1)
    play(named, 20)
    assert play(again, 20) == play(named, 20)  # the generators are seeded alike


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Adversarial(3, budget=ONE, learner="UCB"), r"^learner must be one of EXP3\(\)"),
        (lambda: Adversarial(3, budget=ONE, learner=parts.EXP4()), r"^learner must be one of"),
        (
            lambda: Adversarial(3, budget=ONE, learner="TsallisINF"),
            r"^budget must be None for Adversarial",
        ),
        (
            lambda: Experts(**ADVISED, budget=RHO, learner=parts.EXP4()),
            r"^horizon must be .* got None",
        ),
        (
            lambda: Experts(**ADVISED, budget=ONE, horizon=9, learner=parts.EXP4()),
            r"^budget must be .* for Experts",
        ),
        (lambda: Experts(**ADVISED, budget=ONE, learner="EXP3IX"), r"^budget must be None"),
        (lambda: Experts(**ADVISED, budget=ONE, learner="LocalEXP4"), r"^learner must be one of"),
        (lambda: BestArm(3, budget=ONE), r"^failure_probability or horizon must be given"),
        (
            lambda: BestArm(3, budget=ONE, horizon=9, failure_probability=0.1),
            r"^horizon must be None for rule=TopTwo\(\), got 9",
        ),
        (
            lambda: BestArm(3, budget=ONE, failure_probability=0.1, rule="Halving"),
            r"^failure_probability must be None for rule=Halving\(\), got 0.1",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(build, message):
    with pytest.raises(ArgumentError, match=message):
        build()


@pytest.mark.parametrize("name", ["EXP3", "EXP4", "LocalEXP4", "MergedTopTwo"])
def test_presets_are_pickled_by_their_names(name):
    assert pickle.loads(pickle.dumps(registered()[name])) is registered()[name]
