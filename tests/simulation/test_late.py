"""Environments whose answers come late, and policies that are played in them as by a service."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

import dpbandits as dpb
from dpbandits.environments import Advised, Bernoulli, Delay, GaussianContexts
from dpbandits.environments.delays import NEVER
from dpbandits.papers.others import DPSE, DPTS, LazyDPTS

ALPHA = 1e-4
ARMS = Bernoulli([0.8, 0.5, 0.3])
# of different lengths: on the sphere the first choice is among equals
SHOWN = GaussianContexts.on_sphere(3, 2, seed=1)
EXPERTS = Advised.constant(ARMS, 4, horizon=300, seed=1)
AT_ONCE = Delay("fixed", 0)


@pytest.mark.parametrize(
    ("policy", "world"),
    [
        (dpb.papers.concentrated.AdaCUCB(3, budget=dpb.ZCDP(0.5)), ARMS),
        (dpb.algorithms.MergedThompson(3, budget=dpb.PureDP(1.0)), ARMS),
        pytest.param(dpb.algorithms.HTINF(3, budget=dpb.PureDP(0.3)), ARMS, marks=pytest.mark.long),
        (dpb.papers.others.LDPUCB(3, budget=dpb.PureDP(1.0)), ARMS),
        (dpb.algorithms.UCB1(3), ARMS),
        (
            dpb.algorithms.LinUCBJDP(
                3, 2, horizon=300, batch=50, budget=dpb.ZCDP(1.0), reward_range=(-1, 1)
            ),
            SHOWN,
        ),
        (
            dpb.algorithms.LinearIMED(
                3, 2, horizon=300, budget=dpb.ZCDP(1.0), reward_range=(-1, 1)
            ),
            SHOWN,
        ),
        pytest.param(
            dpb.algorithms.BatchedEXP4(3, 4, horizon=300, budget=dpb.ZCDP(1.0)),
            EXPERTS,
            marks=pytest.mark.long,
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_without_delay_a_policy_plays_as_in_the_compiled_loop(policy, world):
    options = {"horizon": 300, "runs": 2, "seed": 5, "record": 20}
    compiled = dpb.simulate(policy, world, round_by_round=True, **options)
    played = dpb.simulate(policy, world.delayed(AT_ONCE), **options)
    assert played.frame["regret"].tolist() == pytest.approx(compiled.frame["regret"].tolist())
    columns = ["reward", "releases", "spent", "pulls_0", "pulls_1", "pulls_2"]
    # The release of an episode that ends with the horizon is made at the next pull.
    made = compiled.runs["releases"] - played.runs["releases"]
    assert made.between(0, 1).all()
    for column in set(columns) - {"releases", "spent"}:
        assert played.runs[column].tolist() == pytest.approx(compiled.runs[column].tolist())


@pytest.mark.parametrize(
    "cls",
    [
        dpb.algorithms.MergedIMED,
        dpb.papers.concentrated.AdaPUCB,
        LazyDPTS,
        dpb.algorithms.HTINF,
        DPTS,
        DPSE,
    ],
)
def test_answers_within_the_patience_are_all_learned_from(cls, monkeypatch):
    made: list[dpb.Policy] = []
    home = getattr(cls, "policy_class", cls)
    original = home.simulated

    def remembered(self, *streams):
        made.append(original(self, *streams))
        return made[-1]

    monkeypatch.setattr(home, "simulated", remembered)
    given = {"horizon": 3000} if cls in (DPTS, DPSE) else {}
    policy = cls(3, budget=dpb.PureDP(1.0), answers_within=30, **given)
    dpb.simulate(policy, ARMS.delayed(Delay("fixed", 30)), horizon=3000, seed=1)
    rounds = made[0].session.rounds
    unrecorded = rounds.pulls - rounds.recorded - (30 if cls is DPTS else 0)
    # What is dropped are answers to rounds that were served while a phase waited.
    assert rounds.dropped <= unrecorded
    assert unrecorded <= (31 * made[0].ledger.releases if cls is DPSE else 1)
    assert rounds.pulls - rounds.recorded < 300


def test_late_answers_cost_little_and_too_little_patience_costs_much():
    def regret(answers_within: int, delay: Delay) -> float:
        policy = dpb.algorithms.MergedIMED(3, budget=dpb.ZCDP(1.0), answers_within=answers_within)
        return dpb.simulate(
            policy, ARMS.delayed(delay), horizon=3000, runs=5, seed=2
        ).runs.regret.mean()

    late = Delay("fixed", 20)
    now, patient, hasty = regret(0, AT_ONCE), regret(20, late), regret(0, late)
    assert patient <= 1.25 * now + 3 * 20 * 0.5
    assert hasty > 2 * patient  # nearly every answer counts as the default


@pytest.mark.parametrize("cls", [dpb.algorithms.MergedIMED, dpb.algorithms.UCB1])
def test_a_clock_that_ticks_with_pulls_is_a_number_of_pulls(cls):
    """At ten people per second, six seconds are sixty pulls, and a second of the grid ten."""
    budget = {} if cls is dpb.algorithms.UCB1 else {"budget": dpb.ZCDP(1.0)}
    world = ARMS.delayed(Delay("fixed", 40, rate=10))
    policies = [cls(3, answers_within=within, **budget) for within in (60, 70, "6s")]
    result = dpb.simulate(policies, world, horizon=4000, runs=8, seed=3)
    fewer, more, timed = result.runs.groupby("policy", sort=False).regret.mean()
    assert 0.7 * min(fewer, more) <= timed <= 1.3 * max(fewer, more)


def test_a_clock_needs_a_rate():
    policy = dpb.algorithms.MergedIMED(3, budget=None, answers_within="6s")
    with pytest.raises(dpb.errors.ArgumentError, match="rate of the delay must be given"):
        dpb.simulate(policy, ARMS.delayed(Delay("fixed", 40)), horizon=100)
    late = Delay("fixed", 40, rate=10)
    assert repr(late) == "Delay('fixed', 40, rate=10)"
    assert late.words == "40 pulls, 10 people per second"


@pytest.mark.long
def test_half_an_hour_at_a_hundred_people_per_second_finds_the_best_arm():
    world = ARMS.delayed(Delay("geometric", 60_000, rate=100))
    policies = [
        dpb.algorithms.MergedIMED(3, budget=dpb.ZCDP(1.0), answers_within=within)
        for within in (180_000, "30min")
    ]
    result = dpb.simulate(policies, world, horizon=300_000, runs=3, seed=4)
    best = result.runs.pulls_0 > result.runs.pulls_1 + result.runs.pulls_2
    assert best.groupby(result.runs.policy).sum().nunique() == 1
    by_pulls, by_clock = result.runs.groupby("policy", sort=False).regret.mean()
    assert by_clock == pytest.approx(by_pulls, rel=0.05)


def test_worlds_are_paired_with_and_without_delay():
    late = ARMS.delayed(Delay("geometric", 10))
    assert late.stream_key == ARMS.stream_key
    assert repr(late) != repr(ARMS)
    assert (ARMS.delay, late.title) == (
        None,
        "Bernoulli, 3 arms, answers late: geometric, mean 10 pulls",
    )


def test_delays_have_the_law_they_are_named_after():
    rng, n = np.random.default_rng(6), 40_000
    assert set(Delay("fixed", 7).draw(50, rng)) == {7}
    drawn = Delay("geometric", 3).draw(n, rng)
    law = 0.25 * 0.75 ** np.arange(12)
    counts = np.bincount(np.minimum(drawn, 12), minlength=13)
    assert chisquare(counts, n * np.append(law, 1 - law.sum())).pvalue > ALPHA
    heavy = Delay("pareto", 10, tail=1.5).draw(n, rng)
    edges = np.array([0, 5, 20, 100, 1000])
    beyond = (1 + edges / 10) ** -1.5
    shares = np.append(beyond[:-1] - beyond[1:], beyond[-1])
    counts = np.histogram(heavy, [*edges, np.inf])[0]
    assert chisquare(counts, n * shares).pvalue > ALPHA
    lost = Delay("geometric", 3, lost=0.2).draw(n, rng) == NEVER
    assert chisquare([lost.sum(), n - lost.sum()], [0.2 * n, 0.8 * n]).pvalue > ALPHA


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("weekly",), "kind"),
        (("fixed", -1), "pulls"),
        (("fixed", 1.5), "pulls"),
        (("pareto", 3, 0.0), "tail"),
        (("fixed", 3, 1.5, 1.1), "lost"),
    ],
)
def test_bad_delays_are_refused(arguments, name):
    with pytest.raises(dpb.ArgumentError, match=f"^{name} must"):
        Delay(*arguments)
    with pytest.raises(dpb.ArgumentError, match=r"^delay must be a Delay"):
        ARMS.delayed(30)
