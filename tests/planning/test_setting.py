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
    (Advised.constant(PAIR, 6, horizon=10), {"n_experts": 6, "contexts": "none"}),
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
    secret = Setting.of(GLMContexts(4, [0.5, 0.1]), contexts="private", trust_model="local")
    assert (secret.contexts, secret.dimension, secret.trust_model) == ("private", 2, "local")
    assert Setting.of(RewardTable([[0.1, 0.2]]), rewards="law").rewards == "law"


def test_of_gaps_coins_around_one_half_are_simulated():
    assert Setting(3, gaps=[0.2, 0.0, 0.1]).simulated.means() == pytest.approx([0.4, 0.6, 0.5])
    assert Setting(3).simulated is None
    assert Setting.of(DoctorReplay()).simulated is None  # a log


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"n_arms": 0}, "n_arms"),
        ({"trust_model": "nobody"}, "trust_model"),
        ({"contexts": "secret"}, "contexts"),
        ({"contexts": "public"}, "dimension"),
        ({"dimension": 3}, "dimension"),
        ({"contexts": "fixed"}, "features"),
        ({"features": np.eye(3)}, "features"),
        ({"contexts": "fixed", "features": np.eye(2)}, "features"),
        ({"n_experts": 3, "rewards": "any"}, "n_experts"),
        ({"n_experts": 3, "best_arm": True}, "n_experts"),
        ({"standing_advice": True}, "n_experts"),
        ({"rewards": "any", "contexts": "public", "dimension": 3}, "rewards"),
        ({"rewards": "any", "best_arm": True}, "rewards"),
        ({"rounds_per_change": 100}, "rounds_per_change"),
        ({"best_arm": True, "trust_model": "local"}, "best_arm"),
        ({"best_arm": True, "failure_probability": 1.0}, "failure_probability"),
        ({"gaps": [0.1, 0.2, 0.3]}, "gaps"),
        ({"gaps": [0.0, 0.2]}, "gaps"),
        ({"gaps": "few"}, "gaps"),
        ({"gaps": [0.0, 0.1, 0.2], "n_experts": 3}, "gaps"),
        ({"gaps": [0.0, 0.1, 0.2], "contexts": "public", "dimension": 2}, "gaps"),
        ({"environment": PAIR}, "environment"),
        ({"n_arms": 2, "environment": PAIR, "n_experts": 2}, "environment"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(given, argument):
    with pytest.raises(ArgumentError) as error:
        Setting(**{"n_arms": 3, **given})
    assert error.value.argument == argument
