"""The table of bounds, what a policy is promised, and how bounds are drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpbandits import ZCDP, ApproxDP, ArgumentError, PureDP, simulate
from dpbandits.algorithms import LDPIMED, AdaCOFUL, MergedIMED
from dpbandits.environments import (
    Bernoulli,
    BoundedGaussian,
    Delay,
    Gaussian,
    GaussianContexts,
    LinearArms,
    SwitchingBest,
)
from dpbandits.papers.concentrated import AdaCGOPE, AdaCUCB, AdaPKLUCB
from dpbandits.papers.concentrated.theory import adac_ucb, gope
from dpbandits.papers.dgs import LinUCBDGS
from dpbandits.papers.others import DPSE, DPSEBAI, AdaPTT
from dpbandits.policies import registered
from dpbandits.theory import BOUNDS, bound, bound_curves, label_of, promises

ARMS = LinearArms([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]], [0.5, 0.5], rewards="bounded")


def names(policy, world, horizon=10**6):
    return [one.bound.name for one in promises(policy, world, [horizon])]


def test_a_name_is_taken_once_and_a_gap_is_told():
    def adac_ucb(horizon):
        return horizon

    with pytest.raises(ArgumentError, match="already"):
        bound("upper", source="nobody")(adac_ucb)
    for holds, because in (("void", ""), ("proved", "of a mistake")):
        with pytest.raises(ArgumentError, match="because"):
            bound("upper", source="nobody", holds=holds, because=because)(lambda horizon: horizon)
    assert "<lambda>" not in BOUNDS


@pytest.mark.parametrize("one", BOUNDS.values(), ids=lambda one: one.name)
def test_every_bound_is_documented(one):
    assert one.source
    assert len(one.summary) > 20
    assert BOUNDS[one.name].function is one.function
    assert one.is_binding == (one.constants == "explicit" and one.holds != "void")


# arguments at which every bound with a horizon says something
ARGUMENTS = {
    "horizon": np.array([10**4, 10**6]),
    "rounds": np.array([10**4, 10**6]),
    "gaps": [0.0, 0.2, 0.4],
    "means": [0.9, 0.7, 0.5],
    "n_arms": 3,
    "dimension": 3,
    "rho": 0.1,
    "epsilon": 0.5,
    "delta": 1e-6,
    "beta": 4.0,
    "alpha": 4.0,
    "zeta": 0.1,
    "eigenvalue": 0.2,
    "sigma": 0.5,
    "noise": 3.0,
    "failure_probability": 0.01,
    "gap": 0.001,
    "size": 0.001,
}
OVER_TIME = [
    one
    for one in BOUNDS.values()
    if {"horizon", "rounds"} & set(one.parameters)
    and one.required <= ARGUMENTS.keys()
    and one.of.endswith(("regret", "signs", "environments"))
]
LOOSER = {"rho": 10.0, "epsilon": 50.0, "noise": 0.3}


@pytest.mark.parametrize("one", OVER_TIME, ids=lambda one: one.name)
def test_bounds_grow_with_the_horizon_and_with_privacy(one):
    known = {name: value for name, value in ARGUMENTS.items() if name in one.parameters}
    values = one(**known)
    assert values.shape == (2,)
    assert (values > 0.0).all()
    assert np.isfinite(values).all()
    # what hides in a pair of worlds is found out at last
    assert values[0] < values[1] or one.name in ("two_coins", "hidden_signs")
    single = one(**{**known, **{n: v[1] for n, v in known.items() if isinstance(v, np.ndarray)}})
    assert float(single) == pytest.approx(values[1])
    for name, looser in LOOSER.items():
        if name in known:
            less = one(**{**known, name: looser})
            assert ((less <= values + 1e-12) | np.isinf(less)).all()  # infinite: not covered


# Promises ------------------------------------------------------------------------------------


def test_a_policy_reads_its_own_parameters():
    policy = AdaCUCB(2, budget=ZCDP(0.1), beta=4.0, reward_range=(-1.0, 3.0))
    found = {p.bound.name: p for p in promises(policy, Bernoulli([0.9, 0.5]), [1000, 2000])}
    assert list(found) == ["adac_ucb", "adac_ucb_minimax", "lai_robbins"]
    # a gap of 0.4 is a tenth of the range, in which regret is counted
    expected = 4 * adac_ucb(np.array([1000, 2000]), [0.1], 0.1, 4.0)
    assert found["adac_ucb"].values == pytest.approx(expected)


def test_noise_of_any_budget_is_that_of_a_rho():
    private = AdaCUCB(2, budget=ApproxDP(1.0, 1e-5), beta=4.0)
    rho = 0.5 / private.noise_scale**2
    (one, *_) = promises(private, [0.0, 0.4], [1000])
    assert one.arguments["rho"] == pytest.approx(rho)
    (free, *_) = promises(AdaCUCB(2, budget=None, beta=4.0), [0.0, 0.4], [1000])
    assert free.values[0] == pytest.approx(8 * 4 * math.log(1000) / 0.4 + 8)


def test_outside_of_its_theorem_a_policy_is_promised_nothing():
    world = Bernoulli([0.9, 0.5])
    assert not promises(AdaCUCB(2, budget=ZCDP(0.1)), world, [1000])[0].says_something  # beta = 1
    kept = AdaCUCB(2, budget=ZCDP(0.1), beta=4.0, forget=False)
    assert names(kept, world) == ["lai_robbins"]
    drifting = SwitchingBest(2, best=[0, 1], switches=[500], horizon=1000)
    assert names(AdaCUCB(2, budget=ZCDP(0.1), beta=4.0), drifting) == []


def test_clipped_and_late_rewards_are_promised_nothing_from_above():
    policy = AdaCUCB(2, budget=ZCDP(0.1), beta=4.0)
    above = ["adac_ucb", "adac_ucb_minimax"]
    assert names(policy, BoundedGaussian([0.6, 0.5])) == above
    assert names(policy, Gaussian([0.6, 0.5])) == []
    assert names(policy, Bernoulli([0.6, 0.5]).delayed(Delay("fixed", 5))) == ["lai_robbins"]
    narrow = AdaCUCB(2, budget=ZCDP(0.1), beta=4.0, reward_range=(0.0, 0.5))
    assert names(narrow, Bernoulli([0.6, 0.5])) == ["lai_robbins"]


@pytest.mark.parametrize(
    ("policy", "world", "expected"),
    [
        (lambda: MergedIMED(2, budget=PureDP(0.5)), Bernoulli([0.6, 0.5]), ["pure_asymptotic"]),
        (lambda: LDPIMED(2, budget=PureDP(0.5)), Bernoulli([0.6, 0.5]), ["local_asymptotic"]),
        (lambda: AdaPKLUCB(2, budget=PureDP(0.5)), [0.0, 0.1], ["adap_ucb"]),
        (lambda: DPSE(2, horizon=1000, budget=PureDP(1.0)), [0.0, 0.1], ["dpse"]),
        (
            lambda: DPSEBAI(2, failure_probability=0.1, budget=PureDP(1.0)),
            [0.0, 0.1],
            ["dpse_search", "search_error"],
        ),
        (lambda: AdaPTT(2, failure_probability=0.1, budget=PureDP(1.0)), None, ["search_error"]),
        (
            lambda: AdaCGOPE(ARMS.features, budget=ZCDP(0.1), reward_range=(-1, 1)),
            ARMS,
            ["adac_gope", "gope"],
        ),
        (
            lambda: AdaCOFUL(3, 2, horizon=100, budget=ZCDP(0.1), reward_range=(-1, 1)),
            GaussianContexts(3, [0.6, 0.8], rewards="bounded"),
            ["adac_oful"],
        ),
        (
            lambda: LinUCBDGS(
                3, 2, horizon=1000, smallest_eigenvalue=0.1, budget=ApproxDP(1.0, 0.1)
            ),
            None,
            ["dgs"],
        ),
    ],
)
def test_policies_have_the_bounds_of_their_papers(policy, world, expected):
    assert sorted(names(policy(), world)) == expected


def test_what_is_promised_of_a_search_has_no_horizon():
    search = DPSEBAI(2, failure_probability=0.1, budget=PureDP(1.0), reward_range=(0.0, 2.0))
    found = {p.bound.name: p.values.tolist() for p in promises(search, [0.0, 0.1], [10, 1000])}
    assert found["search_error"] == [0.1, 0.1]  # a probability has no unit
    assert len(set(found["dpse_search"])) == 1


@pytest.mark.parametrize("cls", registered().values(), ids=lambda cls: cls.__name__)
def test_any_policy_may_be_asked(cls):
    (budget, *_) = [*cls.example_budgets(), None]
    policy = cls(**cls.example, budget=budget, noise="simulation")
    for world in (None, np.linspace(0.0, 0.5, policy.n_arms)):
        for one in promises(policy, world, [100, 10_000]):
            assert one.values.shape == (2,)
            assert not np.isnan(one.values).any()


# Drawings ------------------------------------------------------------------------------------


def test_bounds_are_drawn_beside_what_was_measured():
    world = Bernoulli([0.9, 0.5])
    policies = [AdaCUCB(2, budget=ZCDP(0.1), beta=4.0), AdaCUCB(2, budget=ZCDP(1.0), beta=4.0)]
    result = simulate(policies, world, horizon=1000, runs=3, seed=1)
    table = bound_curves(policies, world, result.frame["round"].unique())
    kinds = table.groupby("budget")["bound"].agg(lambda column: sorted(set(column)))
    assert kinds.tolist() == [["adac_ucb", "adac_ucb_minimax", "lai_robbins"]] * 2
    plain, drawn = result.plot(), result.plot(bounds=table)
    assert [len(ax.lines) for ax in drawn.axes] == [len(ax.lines) + 3 for ax in plain.axes]
    for ax in drawn.axes:
        top = max(line.get_ydata().max() for line in ax.lines)
        assert ax.get_ylim()[1] > top  # all of it is seen
    last = table[(table["round"] == 1000) & (table["bound"] == "adac_ucb")]
    assert last["value"].tolist() == pytest.approx(
        [float(adac_ucb(1000, [0.4], rho, 4.0)) for rho in (0.1, 1.0)]
    )
    legend = {text.get_text().replace("\n", " ") for text in drawn.legends[0].get_texts()}
    assert {"Azize & Basu (2024), Theorem 10 (upper)"} <= legend


def test_labels_say_how_far_a_bound_holds():
    assert label_of(BOUNDS["linpriv_printed"]).endswith("(upper; order only; proof void)")
    assert label_of(BOUNDS["adac_gope"]).endswith("(upper; order only; corrected)")
    assert label_of(BOUNDS["lai_robbins"]).endswith("(lower; as T grows)")


def test_bounds_that_say_nothing_are_left_out():
    policy = AdaCUCB(2, budget=ZCDP(0.1))  # beta = 1
    table = bound_curves(policy, Bernoulli([0.9, 0.5]), [100])
    assert table["bound"].tolist() == ["lai_robbins"]
    assert bound_curves(policy, Bernoulli([0.5, 0.5]), [100]).empty


def test_gope_is_promised_with_the_lengths_that_it_plays():
    policy = AdaCGOPE(ARMS.features, budget=ZCDP(0.1), variant="published", reward_range=(-1, 1))
    one = next(p for p in promises(policy, ARMS, [10**6]) if p.bound.name == "gope")
    assert one.arguments["published"]
    again = gope(10**6, 2, 3, np.sqrt(5.0), 0.001, published=True)
    assert one.values[0] == pytest.approx(2.0 * float(again))
