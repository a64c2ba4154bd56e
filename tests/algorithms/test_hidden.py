"""Policies with hidden contexts by their values: what a preset means, combinations that have no
name, and what means nothing.
"""

from __future__ import annotations

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits import ApproxDP, ArgumentError
from dpbandits.algorithms.glm.joint import HiddenGLM
from dpbandits.algorithms.glm.local import HiddenGLMLocal
from dpbandits.algorithms.hidden.joint import HiddenLinear
from dpbandits.algorithms.hidden.local import HiddenLinearLocal
from dpbandits.algorithms.hidden.shuffled import HiddenLinearShuffled
from dpbandits.parts import Divergence, Optimism, Sampling
from dpbandits.policies import Chooser, load, registered

ZCDP, APPROX = dpb.ZCDP(0.5), ApproxDP(1.0, 1e-5)
SHAPE = {"n_arms": 3, "dimension": 2, "horizon": 2000, "seed": 3}
X = np.random.default_rng(7).normal(size=(300, 3, 2)) / 2

SAME = [
    ("LinUCBJDP", HiddenLinear, ZCDP, {"batch": 4}, {"explore": Optimism(), "growth": 0.0}),
    ("AdaCOFULJDP", HiddenLinear, ZCDP, {}, {"explore": Optimism(), "batch": 10**12}),
    (
        "LinearThompsonJDP",
        HiddenLinear,
        ZCDP,
        {"batch": 4},
        {"explore": Sampling(), "growth": 0.0},
    ),
    ("LinearIMEDJDP", HiddenLinear, ZCDP, {"batch": 50}, {}),
    ("LinUCBLDP", HiddenLinearLocal, ZCDP, {}, {"explore": "Optimism"}),
    ("LinearThompsonLDP", HiddenLinearLocal, ZCDP, {}, {"explore": {"kind": "Sampling"}}),
    ("LinearIMEDLDP", HiddenLinearLocal, ZCDP, {}, {}),
    ("LinUCBSDP", HiddenLinearShuffled, APPROX, {}, {"explore": Optimism()}),
    ("LinearThompsonSDP", HiddenLinearShuffled, APPROX, {}, {"explore": Sampling()}),
    ("LinearIMEDSDP", HiddenLinearShuffled, APPROX, {}, {}),
    ("GLMUCBJDP", HiddenGLM, ZCDP, {}, {"explore": Optimism()}),
    ("GLMThompsonJDP", HiddenGLM, ZCDP, {}, {}),
]


def played(policy, rounds: int = 40) -> list[int]:
    arms = []
    for x in X[:rounds]:
        decision = policy.pull(x)
        policy.update(float(x[decision.arm, 0] > 0.0), decision)
        arms.append(decision.arm)
    return arms


@pytest.mark.parametrize(("name", "cls", "budget", "shared", "values"), SAME)
def test_a_preset_is_its_class_and_values(name, cls, budget, shared, values):
    preset = registered()[name](**SHAPE, budget=budget, **shared)
    composed = cls(**SHAPE, budget=budget, **shared, **values)
    assert composed.preset == name
    assert composed.stream_key == preset.stream_key
    assert composed.card == preset.card == registered()[name].card
    assert type(preset) is cls
    assert isinstance(composed, registered()[name])
    assert repr(composed) == repr(preset)
    assert repr(preset).startswith(f"{cls.__name__}(n_arms=3, dimension=2, ")


COMBINED = [
    (HiddenLinear, ZCDP, {"explore": Sampling(), "batch": 20}),
    (HiddenLinear, ZCDP, {"explore": Divergence(share=0.3), "batch": 20}),
    (HiddenLinear, ZCDP, {"explore": Optimism(), "batch": 20}),
    (HiddenLinearLocal, ZCDP, {"explore": Divergence(share=0.3)}),
    (HiddenLinearShuffled, APPROX, {"explore": Divergence(share=0.3), "batch": 4}),
]


@pytest.mark.parametrize(("cls", "budget", "values"), COMBINED)
def test_a_combination_without_a_name_is_whole(cls, budget, values, tmp_path):
    policy = cls(**SHAPE, budget=budget, **values)
    assert policy.preset == cls.__name__
    assert "no theorem" in policy.card.source
    assert policy.guarantee.holds == budget
    played(policy)
    path = policy.save(str(tmp_path / "state.dpb"))
    chooser = Chooser.from_json(policy.chooser().to_json())
    assert chooser.kernels is policy.kernels
    again = load(path, simulation=True)
    assert repr(again) == repr(policy)
    assert played(again) == played(policy)


def test_choices_of_a_combination_are_those_of_its_chooser():
    policy = HiddenLinearLocal(**SHAPE, budget=ZCDP, explore=Optimism(radius_scale=0.1))
    played(policy)
    chooser = policy.chooser()
    assert [chooser.choose(x) for x in X[:20]] == [
        policy.session.choose(policy.seen(x), None)[0] for x in X[:20]
    ]


def test_devices_of_a_combination_choose_and_report():
    server = HiddenLinearLocal(
        **SHAPE, budget=ZCDP, explore=Divergence(alpha=2.0, share=0.5), reports=True
    )
    device = server.device()
    assert device.choose(X[0]) in range(3)
    assert server.receive(device.report(1.0))
    with pytest.raises(ArgumentError, match="reports must be False for pull"):
        server.pull(X[0])


def test_published_noise_belongs_to_what_was_published():
    """Elsewhere (epsilon, delta) noise is the plain published Gaussian mechanism."""
    paper = {"budget": APPROX, "calibration": "paper", "batch": 4}
    published = HiddenLinear(**SHAPE, **paper, explore=Optimism(), growth=0.0)
    others = [
        HiddenLinear(**SHAPE, **paper, explore=Optimism()),
        HiddenLinear(**SHAPE, **paper, explore=Sampling(), growth=0.0),
    ]
    assert published.params.published
    for other in others:
        assert not other.params.published
        assert other.config["bounds"] == "published"
        assert published.noise_scale > other.noise_scale


@pytest.mark.parametrize(
    ("cls", "values", "message"),
    [
        (HiddenLinear, {"explore": "UCB"}, r"^explore must be one of Optimism\(\), Sampling\(\)"),
        (HiddenLinear, {"explore": Optimism(radius="heuristic")}, "^radius must be None"),
        (HiddenLinear, {"batch": None}, "^batch must be"),
        (HiddenLinear, {"batch": 10**12, "growth": 0.0}, "^growth must be"),
        (HiddenLinear, {"growth": 0.001}, "^growth must be"),
        (HiddenLinear, {"bounds": "tight"}, "^bounds must be"),
        (HiddenLinear, {"repair": "none"}, "^repair must be"),
        (HiddenLinear, {"switch": -1.0}, "^switch must be"),
        (HiddenLinear, {"ridge": 0.0}, "^ridge must be"),
        (HiddenGLM, {"explore": Divergence()}, r"^explore must be one of Optimism\(\), Sampling"),
        (HiddenGLM, {"explore": Optimism(parameter_bound=2.0)}, "^parameter_bound must be None"),
    ],
)
def test_what_means_nothing_is_refused_by_name(cls, values, message):
    with pytest.raises(ArgumentError, match=message):
        cls(**SHAPE, budget=ZCDP, **values)


def test_only_a_radius_may_be_published():
    with pytest.raises(ArgumentError, match=r"^bounds must be 'exact' for Sampling\(\)"):
        HiddenLinearShuffled(**SHAPE, budget=APPROX, explore=Sampling(), bounds="published")


def test_a_guarantee_of_regret_needs_a_proved_radius():
    proved = HiddenLinear(**SHAPE, budget=ZCDP, explore=Optimism())
    assert not proved.regret_guarantee.startswith("none")
    for policy in (
        HiddenLinear(**SHAPE, budget=ZCDP),
        HiddenLinear(**SHAPE, budget=ZCDP, explore=Sampling()),
        HiddenLinear(**SHAPE, budget=ZCDP, explore=Optimism(radius_scale=0.5)),
        HiddenLinearShuffled(**SHAPE, budget=APPROX, explore=Optimism()),
        HiddenGLM(**SHAPE, budget=ZCDP, explore=Optimism()),
        HiddenGLMLocal(3, 2, budget=ZCDP),
    ):
        assert policy.regret_guarantee.startswith("none")


def test_no_algorithm_has_more_than_five_classes_of_its_own():
    for one in registered().values():
        classes = getattr(one, "policy_class", one).__mro__
        own = classes[: classes.index(dpb.Policy)]
        assert len(own) <= 5, own
