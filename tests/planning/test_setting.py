"""What is to be decided: what an environment shows of it, and what does not go together."""

from __future__ import annotations

import numpy as np
import pytest

from dpbandits import ArgumentError
from dpbandits.environments import (
    Advised,
    Bernoulli,
    DoctorReplay,
    GaussianContexts,
    GLMContexts,
    LinearArms,
    RewardTable,
    SineDrift,
    SwitchingBest,
)
from dpbandits.planning import Setting

PAIR = Bernoulli([0.5, 0.75])
ARMS = LinearArms(np.eye(3), [0.2, 0.5, 0.1], rewards="bounded")
SHOWN = [
    (PAIR, {"contexts": "none", "rewards": "law"}),
    (ARMS, {"contexts": "fixed", "rewards": "law"}),
    (GLMContexts(4, [0.5, 0.1]), {"contexts": "public", "dimension": 2, "link": "logistic"}),
    (GaussianContexts(4, [0.5, 0.1, 0.0]), {"contexts": "public", "dimension": 3}),
    (Advised.constant(PAIR, 6, horizon=10), {"experts": 6, "contexts": "none"}),
    (SwitchingBest(3, best=[0, 1], switches=[5], horizon=10), {"rewards": "any"}),
    (RewardTable([[0.1, 0.2]]), {"rewards": "any"}),
    (
        SineDrift([0.5, 0.5], amplitude=0.2, period=5, horizon=10, regret="dynamic"),
        {"rewards": "changing"},
    ),
    (DoctorReplay(), {"contexts": "none"}),
]


@pytest.mark.parametrize(("world", "shown"), SHOWN, ids=lambda one: type(one).__name__)
def test_an_environment_shows_its_setting(world, shown):
    setting = Setting.of(world)
    assert setting.n_arms == world.n_arms
    assert {name: getattr(setting, name) for name in shown} == shown


def test_gaps_and_features_are_those_of_the_environment():
    assert Setting.of(PAIR).gaps.tolist() == [0.25, 0.0]
    assert np.array_equal(Setting.of(ARMS).features, np.eye(3))


def test_what_is_told_comes_before_what_is_seen():
    world = GLMContexts(4, [0.5, 0.1])
    secret = Setting.of(world, protects="contexts and rewards", trust="local")
    assert (secret.contexts, secret.dimension, secret.trust) == ("private", 2, "local")
    assert Setting.of(RewardTable([[0.1, 0.2]]), drift=None).rewards == "law"


def test_of_gaps_coins_around_one_half_are_simulated():
    assert Setting(3, gaps=[0.2, 0.0, 0.1]).simulated.means() == pytest.approx([0.4, 0.6, 0.5])
    assert Setting(3).simulated is None
    assert Setting.of(DoctorReplay()).simulated is None  # a log


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"arms": 0}, "arms"),
        ({"arms": "abc"}, "arms"),
        ({"trust": "nobody"}, "trust"),
        ({"protects": "nothing"}, "protects"),
        ({"goal": "fame"}, "goal"),
        ({"features": 0}, "features"),
        ({"person": 0}, "person"),
        ({"features": 2, "person": 2}, "person"),
        ({"protects": "contexts and rewards"}, "features"),
        ({"features": np.eye(3), "protects": "contexts and rewards"}, "features"),
        ({"features": np.eye(2)}, "features"),
        ({"link": "logistic"}, "link"),
        ({"drift": "often"}, "drift"),
        ({"drift": 0}, "drift"),
        ({"experts": 3, "drift": "any"}, "drift"),
        ({"experts": 3, "goal": "best arm"}, "goal"),
        ({"standing_advice": True}, "standing_advice"),
        ({"drift": "any", "features": 3}, "drift"),
        ({"drift": "any", "goal": "best arm"}, "drift"),
        ({"changing": True, "features": 3}, "changing"),
        ({"changing": True, "goal": "best arm"}, "changing"),
        ({"goal": "best arm", "failure_probability": 1.0}, "failure_probability"),
        ({"gaps": [0.1, 0.2, 0.3]}, "gaps"),
        ({"gaps": [0.0, 0.2]}, "gaps"),
        ({"gaps": "few"}, "gaps"),
        ({"gaps": [0.0, 0.1, 0.2], "experts": 3}, "gaps"),
        ({"gaps": [0.0, 0.1, 0.2], "features": 2}, "gaps"),
        ({"environment": PAIR}, "environment"),
        ({"arms": 2, "environment": PAIR, "experts": 2}, "environment"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(given, argument):
    with pytest.raises(ArgumentError) as error:
        Setting(**{"arms": 3, **given})
    assert error.value.argument == argument


def test_names_of_arms_say_how_many_there_are():
    named = Setting(["blue", "green"])
    assert (named.n_arms, named.arm_names) == (2, ("blue", "green"))


def test_what_is_known_of_a_person_is_public_unless_it_is_protected():
    public = Setting(3, person=4)
    private = Setting(3, person=4, protects="contexts and rewards")
    assert (public.contexts, public.dimension, private.contexts) == ("public", 4, "private")
