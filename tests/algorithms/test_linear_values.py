"""Linear and generalised linear policies as values: which name they have, and what means nothing."""

import pytest

import dpbandits as dpb
from dpbandits import GLM, ZCDP, ArgumentError, FixedLinear, Linear, PureDP, algorithms
from dpbandits.parts import Divergence, EveryAnswer, Optimism, Sampling, Switching
from dpbandits.policies import load

SHAPE = {"n_arms": 3, "dimension": 2, "horizon": 100, "budget": ZCDP(0.5)}
OPEN = {"n_arms": 3, "dimension": 2, "budget": None}
ARMS = [[1.0, 0.0], [0.0, 1.0]]
HEURISTIC = Optimism(radius="heuristic")
LOOSE = Optimism(radius_scale=0.2, parameter_bound=2.0)
PUBLISHED = Optimism(radius="published", smallest_eigenvalue=0.1)


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (Linear(**SHAPE), algorithms.RSLinearIMED(**SHAPE)),
        (
            Linear(**SHAPE, explore=Divergence(alpha=2.0)),
            algorithms.RSLinearIMED(**SHAPE, alpha=2.0),
        ),
        (Linear(**SHAPE, updates=EveryAnswer()), algorithms.LinearIMED(**SHAPE)),
        (
            Linear(**SHAPE, updates="EveryAnswer", models="disjoint"),
            algorithms.LinearIMED(**SHAPE, models="disjoint"),
        ),
        (
            Linear(**SHAPE, explore="Sampling", updates={"kind": "EveryAnswer"}),
            algorithms.LinearThompson(**SHAPE),
        ),
        (
            Linear(**SHAPE, explore=LOOSE, updates=EveryAnswer()),
            algorithms.PrivateLinUCB(**SHAPE, radius_scale=0.2, parameter_bound=2.0),
        ),
        (
            Linear(**SHAPE, explore=HEURISTIC, updates=EveryAnswer()),
            algorithms.PrivateLinUCB(**SHAPE, radius="heuristic"),
        ),
        (Linear(**SHAPE, explore=Optimism()), algorithms.AdaCOFUL(**SHAPE)),
        (
            Linear(**SHAPE, explore=PUBLISHED, updates=Switching(0.5)),
            algorithms.AdaCOFUL(**SHAPE, variant="published", smallest_eigenvalue=0.1, growth=0.5),
        ),
        (Linear(**OPEN, explore=Optimism()), algorithms.RSOFUL(**OPEN)),
        (Linear(**OPEN, explore=Optimism(), updates=EveryAnswer()), algorithms.LinUCB(**OPEN)),
        (FixedLinear(ARMS, budget=ZCDP(0.5)), algorithms.MergedLinearIMED(ARMS, budget=ZCDP(0.5))),
        (GLM(**SHAPE), algorithms.GLMThompson(**SHAPE)),
        (GLM(**SHAPE, explore=Optimism()), algorithms.GLMUCB(**SHAPE)),
    ],
    ids=lambda policy: policy.label.partition("(")[0],
)
def test_equal_values_have_the_name_and_the_random_numbers_of_their_preset(made, named):
    assert type(made) is type(named)
    assert repr(made) == repr(named)
    assert made.preset == named.preset != type(made).__name__
    assert made.stream_key == named.stream_key
    assert made.card == named.card
    scope = {**{one: getattr(dpb, one) for one in dpb.__all__}, **vars(dpb.parts)}
    assert eval(repr(made), scope).stream_key == named.stream_key


def test_a_combination_without_a_name_says_so_and_is_saved(tmp_path):
    policy = Linear(**SHAPE, explore=Sampling(), updates=Switching(2.0), seed=1)
    assert policy.preset == "Linear"
    assert "no theorem" in policy.card.source
    assert policy.regret_guarantee.startswith("none")
    again = load(policy.save(tmp_path / "state.dpb"), simulation=True)
    assert repr(again) == repr(policy)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"models": "disjoint"}, r"models must be 'shared' with updates=Switching\(\)"),
        ({"models": "own"}, "models must be one of"),
        ({"explore": "IMED"}, r"explore must be one of Optimism\(\), Sampling\(\), Divergence\(\)"),
        ({"updates": "Often"}, r"updates must be one of EveryAnswer\(\), Switching\(\)"),
        (
            {"horizon": None},
            r"^horizon, .* must be given if updates=Switching\(\) and there is a budget",
        ),
        ({"horizon": None, "counter": "hybrid"}, "counter must be one of 'tree', .* got 'hybrid'"),
        ({"explore": Divergence(parameter_bound=2.0)}, "parameter_bound must be None for Div"),
        (
            {"explore": Divergence(share=0.5), "updates": EveryAnswer()},
            r"share must be None for Divergence with EveryAnswer\(\), got 0.5",
        ),
        (
            {"explore": Optimism(smallest_eigenvalue=0.1), "updates": EveryAnswer()},
            "smallest_eigenvalue must be None",
        ),
        (
            {"explore": Optimism(radius="published"), "updates": EveryAnswer()},
            "radius must be one of 'safe', 'heuristic', got 'published'",
        ),
        (
            {"explore": PUBLISHED, "budget": PureDP(1.0)},
            "radius must not be 'published' for a PureDP budget",
        ),
        ({"explore": PUBLISHED, "counter": "tree"}, "counter must be None with radius='published'"),
    ],
)
def test_what_means_nothing_is_refused_by_name(given, told):
    with pytest.raises(ArgumentError, match=f"^{told}"):
        Linear(**{**SHAPE, **given})


@pytest.mark.parametrize(
    ("explore", "told"),
    [
        (Divergence(), r"explore must be one of Optimism\(\), Sampling\(\)"),
        (Optimism(parameter_bound=2.0), "parameter_bound must be None for GLM"),
        (Optimism(radius="heuristic"), "radius must be None for GLM"),
    ],
)
def test_a_link_has_two_ways_to_explore(explore, told):
    with pytest.raises(ArgumentError, match=f"^{told}"):
        GLM(**SHAPE, explore=explore)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Optimism(failure_probability=1.0), "failure_probability must be"),
        (lambda: Optimism(radius="wide"), "radius must be one of"),
        (lambda: Sampling(inflation=-1.0), "inflation must be"),
        (lambda: Divergence(margin=0.5), "margin must be"),
        (lambda: Switching(growth=0.0), "growth must be"),
        (
            lambda: algorithms.LinearIMED(**SHAPE, alpha=None),
            "alpha must have the type of the default 1.5",
        ),
        (
            lambda: algorithms.LinUCB(3, 2, budget=ZCDP(1.0)),
            "budget must be None for LinUCB, got ZCDP",
        ),
    ],
)
def test_arguments_out_of_range_are_refused(make, told):
    with pytest.raises(ArgumentError, match=f"^{told}"):
        make()
