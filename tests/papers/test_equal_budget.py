"""The table of defaults: who enters, what is counted, and results that were planted to make claims
fail.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpbandits import ZCDP, ApproxDP, ArgumentError, PureDP
from dpbandits.cli.tables import print_tables
from dpbandits.papers.equal_budget import plan as equal_budget
from dpbandits.papers.equal_budget.panel import (
    CHANGING,
    DIVERSE,
    FEATURES,
    FEW,
    PANEL,
    TRIAL,
    Contest,
    contests,
)
from dpbandits.papers.equal_budget.ranking import lost_runs, ranking, relative, who_keeps_tails
from dpbandits.papers.plans import Findings, Plan, Size, largest, largest_of, ratios
from dpbandits.papers.reproduce import reproduce
from dpbandits.planning.setting import Setting
from dpbandits.planning.yardsticks import regret_at_random, yardsticks
from dpbandits.policies import DEFAULTS, default_for, registered
from dpbandits.protocol import no_arm
from dpbandits.report.claims import FAILS, HOLDS, TIE, UNDECIDED, Claim
from dpbandits.report.intervals import ratio, share
from dpbandits.simulation.simulating import what_is_taken
from dpbandits.studies.engines import Processes
from dpbandits.studies.output import result_folder, write_results

pytestmark = pytest.mark.xdist_group("the plan of the table of defaults")
SIZE = Size(quick=True, runs=4, horizon=200)
INSTANCES = (*PANEL, *CHANGING, *DIVERSE, *FEW, *FEATURES)
RUNS = 5000  # of planted results: enough to be sure that fewer than one in 1,000 is lost


def small(quick: bool) -> list[Contest]:
    """One budget of each setting without features, on one or two instances."""
    chosen = {}
    for contest in contests(quick):
        if contest.default.contexts != "none":
            continue
        own = (PANEL[0], TRIAL) if contest.default.rewards == "law" else CHANGING[-2:]
        chosen.setdefault(contest.setting, dataclasses.replace(contest, instances=own))
    return list(chosen.values())


def small_with_features(quick: bool) -> list[Contest]:
    """One budget of each setting with features, on one instance."""
    chosen: dict[str, Contest] = {}
    for contest in contests(quick):
        if contest.default.contexts != "none":
            own = dataclasses.replace(contest, instances=contest.instances[-1:])
            chosen.setdefault(contest.setting, own)
    return list(chosen.values())


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(equal_budget, "contests", small)
    return equal_budget.plan(SIZE)


@pytest.fixture
def plan_with_features(monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(equal_budget, "contests", small_with_features)
    return equal_budget.plan(SIZE)


# Who enters, and where ---------------------------------------------------------------------------


def entered_where(*contexts: str) -> set[str]:
    found = [one for one in contests(False) if one.default.contexts in contexts]
    return {entrant.cls.__name__ for one in found for entrant in one.entrants}


def test_every_private_policy_for_finite_arms_enters() -> None:
    """Those for arms with fixed features enter, too, with unit vectors."""
    entered = entered_where("none")
    expected = {
        name
        for name, cls in registered().items()
        if what_is_taken(cls) == "no contexts"
        and cls.card.noise
        and not cls.card.refuted_because
        and cls.kernels.recommend is no_arm
    }
    # the conversion wraps learners that enter by themselves
    assert entered == expected - {"BatchConversion"}
    assert {"MergedIMED", "AdaCUCB", "LazyDPTS", "DPTS", "HTINF", "LDPUCB", "DPSESDP"} <= entered


def test_every_private_policy_with_contexts_enters_where_they_are_as_secret() -> None:
    for contexts, protects in (("public", "rewards"), ("private", "contexts and rewards")):
        assert entered_where(contexts) == {
            name
            for name, cls in registered().items()
            if what_is_taken(cls) == "contexts"
            and cls.card.noise
            and not cls.card.refuted_because
            and cls.card.protects == protects
        }


def test_fixed_features_may_be_used_or_ignored() -> None:
    entered = entered_where("fixed")
    assert {"MergedLinearIMED", "AdaCGOPE", "DPDPE", "MergedIMED", "AdaCUCB"} <= entered
    assert not entered & {"HTINF", "LinearIMED", "HannaGOPE"}  # the last serves pure DP only


def test_whoever_has_a_radius_enters_with_a_small_one_too() -> None:
    entrants = {entrant for one in contests(False) for entrant in _named(one)}
    with_radius = {
        cls.__name__
        for cls in registered().values()
        if what_is_taken(cls) == "contexts"
        and "radius_scale" in inspect.signature(cls).parameters
        and cls.card.noise
        and not cls.card.refuted_because
    }
    assert len(with_radius) > 8
    for name in with_radius:
        assert {name, f"{name}(radius_scale=0.1)"} <= entrants


def _named(contest: Contest) -> list[str]:
    return [entrant.title for entrant in contest.entrants]


def test_those_who_meet_trust_the_same_people_and_keep_the_same_budget() -> None:
    for contest in contests(False):
        assert contest.champion.title in [entrant.title for entrant in contest.entrants]
        if contest.family == "few":  # those of the diverse
            continue
        world = contest.instances[0].world(1000)
        for entrant in contest.entrants:
            policy = entrant.policy(world, contest.budget, 1000)
            assert policy.card.trust_model == contest.default.trust
            assert policy.guarantee_in_simulations.holds == contest.budget
            told = entrant.arguments.get("batch", contest.default.arguments.get("batch"))
            if told and "batch" in inspect.signature(entrant.cls).parameters:
                assert f"batch={told}," in repr(policy)


def test_the_panel_is_as_wide_as_it_should_be() -> None:
    assert len(PANEL) >= 16
    worlds = {one.name: one.world(one.horizon) for one in PANEL}
    assert {world.n_arms for world in worlds.values()} >= {2, 3, 4, 5, 10, 20, 50}
    assert {one.horizon for one in PANEL} >= {10**4, 10**5, 10**6}
    # nobody wins by staying with the first arm
    assert all(world.means().argmax() > 0 for world in worlds.values())
    assert all(one.world(10_000).means().argmax() > 0 for one in CHANGING)


def test_short_instances_have_the_regret_of_their_gaps() -> None:
    """At random a round costs the mean gap: .05 with two arms, .15 with four."""
    worlds = {one.name: one for one in PANEL}
    for n_arms, cost in ((2, 0.05), (4, 0.15)):
        for horizon in (200, 500, 2000):
            one = worlds[f"{n_arms} arms, {horizon:,} rounds"]
            assert one.horizon == horizon
            (lost,) = regret_at_random(one.world(horizon), horizon, runs=1, seed=1)
            assert lost == pytest.approx(cost * horizon)
    pair = worlds["pair, 30,000 rounds"]
    (lost,) = regret_at_random(pair.world(30_000), pair.horizon, runs=1, seed=1)
    assert lost == pytest.approx(300.0)


def test_correlated_features_agree_in_sign_as_normal_ones_do() -> None:
    """Two normal numbers of correlation r have the same sign with probability 1/2 + arcsin(r) / pi
    (Sheppard 1899); division by a length leaves signs as they are.
    """
    apart = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    expected = 0.5 + np.arcsin(0.9**apart) / np.pi
    worlds = [one.world(10) for one in DIVERSE if one.name.startswith("correlated")]
    assert len(worlds) == 2
    assert repr(worlds[0]) != repr(worlds[1])
    for world in worlds:
        assert (world.dimension, world.n_arms, world.support) == (20, 20, (-1.0, 1.0))
        assert np.linalg.norm(world.features, axis=1) == pytest.approx(1.0)
        assert np.linalg.norm(world.parameter) == pytest.approx(1.0)
        signs = np.sign(world.features)
        agree = (1.0 + signs.T @ signs / len(signs)) / 2.0
        # 400 pairs, at most .5 / sqrt(2000) each: alpha 1e-4
        assert np.abs(agree - expected).max() < 5.3 * 0.5 / np.sqrt(2000)


def entrants_of(*words: str) -> dict[str, Any]:
    """Those of the first contest whose title has the words."""
    (contest, *_) = [one for one in contests(False) if all(word in one.title for word in words)]
    return {entrant.title: entrant for entrant in contest.entrants}


def test_ridges_follow_dimension_and_rewards() -> None:
    world = DIVERSE[-1].world(500)  # 20 features, rewards 1 or -1
    found = entrants_of("diverse public")
    for words, ridge in (("1.0", 1.0), ("0.5 d s^2", 10.0), ("d s^2", 20.0)):
        policy = found[f"RSLinearIMED(ridge={words})"].policy(world, ZCDP(1.0), 500)
        assert policy.config["ridge"] == ridge
    assert "RSLinearIMED" in found
    on_axes = entrants_of("finite arms, central", "1-zCDP")
    four = next(one for one in PANEL if one.name == "4 arms, 500 rounds").world(500)
    policy = on_axes["MergedLinearIMED(ridge=d s^2, arms=axes)"].policy(four, ZCDP(1.0), 500)
    assert policy.config["ridge"] == 1.0  # 4 * .5**2
    assert repr(tuple(map(tuple, np.eye(4).tolist()))) in repr(policy)


def test_who_may_be_told_the_horizon_enters_with_and_without_it() -> None:
    found = entrants_of("no law")
    world = CHANGING[0].world(500)
    for name in ("HTINF", "EXP3", "FTPL"):
        told, untold = found[name], found[f"{name}(horizon=None)"]
        assert told.policy(world, PureDP(1.0), 500).label != (
            untold.policy(world, PureDP(1.0), 500).label
        )
    for contest in contests(False):
        titles = set(_named(contest))
        for entrant in contest.entrants:
            taken = inspect.signature(entrant.cls).parameters
            may = "horizon" in taken and taken["horizon"].default is None
            if may and "counter" not in taken:
                name = entrant.cls.__name__
                assert any(one.startswith(f"{name}(horizon=None") for one in titles)


def test_batches_four_times_as_long_enter_where_contexts_are_private() -> None:
    for contest in contests(False):
        if contest.default.contexts == "private":
            longer = 4 * contest.default.arguments["batch"]
            assert f"{contest.champion.title}(batch={longer})" in _named(contest)


def test_the_small_version_is_a_part_of_the_large_one() -> None:
    large = {one.title: one for one in contests(False)}
    for contest in contests(True):
        names = [one.name for one in contest.instances]
        of_large = [one.name for one in large[contest.title].instances]
        assert names
        assert set(names) <= set(of_large)
        assert len(set(of_large)) == len(of_large)


WORDS: dict[str, dict[str, Any]] = {
    "none": {},
    "fixed": {"features": np.eye(3)},
    "public": {"features": 2},
    "private": {"features": 2, "protects": "contexts and rewards"},
    "law": {},
    "changing": {"drift": 500},
    "any": {"drift": "any"},
    "experts": {"experts": 4},
    "link": {"link": "logistic"},
    "horizon": {"horizon": 500},
    "": {},
}


def test_every_default_is_a_policy_of_its_setting() -> None:
    kinds = ("contexts", "rewards", "goal", "more")
    settings = {(one.trust, *(getattr(one, name) for name in kinds)) for one in DEFAULTS}
    assert len(settings) == len(DEFAULTS)
    for one in DEFAULTS:
        assert one.policy_class.card.trust_model == one.trust
        asked = {**WORDS[one.contexts], **WORDS[one.rewards], **WORDS[one.more], "goal": one.goal}
        found = default_for(3, trust=one.trust, **asked)
        assert (found.setting, found.policy) == (one.setting, one.policy)
        assert found.arguments.items() >= one.arguments.items()
        assert one.why.endswith(".")
        assert one.central.trust == "central"
        assert all(getattr(one.central, name) == getattr(one, name) for name in kinds)
        hidden = one.contexts == "private" or one.more == "experts"
        budget = ApproxDP(1.0, 1e-5) if hidden else PureDP(1.0)
        shapes = {"dimension": 2, "features": np.eye(3), "n_experts": 4}
        policy = one.build(3, budget=budget, horizon=1000, **shapes)
        assert policy.guarantee.asked == budget
    own = default_for(3, **WORDS["private"])
    made = own.build(3, dimension=2, budget=None, horizon=1000, batch=7)
    assert made.label.count("batch=7,") == 1  # what is asked for comes before what is usual


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"features": 2, "drift": "any"}, "drift='any' cannot be combined with features"),
        ({"features": np.eye(3), "trust": "local"}, "trust must be 'central' for fixed features"),
        ({"features": 2, "drift": 500}, "drift=500 cannot be combined with features"),
        ({"trust": "local", "drift": 500}, "trust must be 'central' for finite arms"),
        ({"features": 2, "protects": "contexts"}, "protects must be one of"),
        ({"person": 2, "features": 2}, "person must not be given with features"),
        ({"experts": 2, "goal": "best arm"}, "goal='best arm' cannot be combined with experts"),
        ({"link": "logistic"}, "link must be given with features or person"),
    ],
)
def test_no_default_is_made_up(words: dict[str, Any], told: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{told}"):
        default_for(3, **words)


def test_even_three_rounds_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_budget, "contests", small)
    cells = equal_budget.plan(Size(quick=True, runs=1, horizon=3)).cells
    assert {cell.horizon for cell in cells} == {equal_budget.SMALLEST}


# What is counted -----------------------------------------------------------------------------------


def test_ranks_by_hand() -> None:
    regrets = {
        "A": {"x": np.array([1.0, 1.0, 1.0, 13.0]), "y": np.full(4, 10.0)},
        "B": {"x": np.full(4, 2.0), "y": np.full(4, 30.0)},
    }
    assert relative(regrets, "A")["A"].tolist() == [2.0, 1.0]
    assert relative(regrets, "A")["B"].tolist() == [1.0, 3.0]
    first, second = ranking(regrets, "A")
    assert (first.title, first.worst, first.weakest, first.lost, first.runs) == (
        "A",
        2.0,
        "x",
        1,
        8,
    )
    assert (second.title, second.close, second.won, second.median) == ("B", 0.5, 0.5, 2.0)
    assert lost_runs(np.array([1.0, 1.0, 8.0])) == 0  # not above


def test_an_instance_on_which_nobody_loses_is_a_draw() -> None:
    nothing = {"A": {"x": np.zeros(2)}, "B": {"x": np.zeros(2)}, "C": {"x": np.ones(2)}}
    found = relative(nothing, "A")
    assert (found["A"][0], found["B"][0], found["C"][0]) == (1.0, 1.0, np.inf)


def test_who_loses_runs_is_not_the_best() -> None:
    steady = np.full(1000, 2.0)
    gambler = np.where(np.arange(1000) < 10, 50.0, 1.0)  # 10 of 1,000 are lost; mean 1.49
    regrets = {"steady": {"x": steady}, "gambler": {"x": gambler}, "third": {"x": 2 * steady}}
    found = relative(regrets, "steady")
    assert (found["steady"][0], found["gambler"][0], found["third"][0]) == (1.0, 0.745, 2.0)
    assert [one.title for one in ranking(regrets, "steady")] == ["steady", "third", "gambler"]
    assert [one.tails_kept for one in ranking(regrets, "steady")] == [True, True, False]
    assert [one.title for one in ranking(regrets, None)] == ["gambler", "steady", "third"]
    assert relative(regrets, None)["gambler"][0] == 1.0
    alone = {"gambler": {"x": gambler}}
    assert relative(alone, "gambler")["gambler"][0] == 1.0  # where nobody else is


def test_tails_are_judged_by_each_instance_and_by_all() -> None:
    steady, unlucky, lost = (
        np.where(np.arange(1000) < k, 50.0, 1.0)
        for k in (0, 4, 8)  # 4 of 1,000 may be chance where 1 is allowed; 16 of 4,000 are none
    )
    usual = {str(i): steady for i in range(4)}
    assert who_keeps_tails({"A": usual, "B": {**usual, "0": unlucky}}, "A") == ["A", "B"]
    assert who_keeps_tails({"A": usual, "B": dict.fromkeys(usual, unlucky)}, "A") == ["A"]
    assert who_keeps_tails({"A": usual, "B": {**usual, "0": lost}}, "A") == ["A"]
    # what would be a good run of the default is no lost one
    assert who_keeps_tails({"A": {"x": 7 * steady}, "B": {"x": lost}}, "A") == ["A", "B"]


def test_the_largest_of_many_settings_is_that_of_one_where_they_are_one() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.gamma(4.0, size=(2, 3, 1, 50))
    one = largest([*first, *second], ratios)
    many = largest_of(list(zip(first, second, strict=True)), ratio)
    assert many == pytest.approx(one)
    assert many.low < many.mean < many.high


def test_a_share_has_the_interval_of_clopper_and_pearson() -> None:
    assert share(0, 10).high == pytest.approx(1.0 - 0.0005**0.1)
    assert share(10, 10).low == pytest.approx(0.0005**0.1)
    assert share(3, 10).low < 0.3 < share(3, 10).high


# Planted results ---------------------------------------------------------------------------------


@cache
def _limit_of(title: str) -> float:
    """What the ledger of a contest's policies holds."""
    (contest,) = [one for one in contests(True) if one.title == title]
    world = contest.instances[0].world(1000)
    meter = contest.champion.policy(world, contest.budget, 1000).meter
    assert meter is not None
    return float(meter.limit)


class Planted:
    """Every policy has a regret of 100 and the default one of 10, but for what is planted."""

    def __init__(self, regrets: Mapping[str, float], spent: float = 1.0, lost: str = ""):
        self.regrets, self.spent, self.lost = regrets, spent, lost

    def at_random(self, key: str) -> np.ndarray:
        (world,) = [one.world(200) for one in INSTANCES if one.name == key.split("/")[-1]]
        return regret_at_random(world, 200, runs=RUNS, seed=1)[np.newaxis]

    def final(self, key: str, column: str = "regret") -> np.ndarray:
        if column == "releases":
            return np.full((1, RUNS), 3)
        if column == "spent":
            return np.full((1, RUNS), self.spent * _limit_of(key.partition("/")[0]))
        champions = [
            one.policy
            for one in DEFAULTS
            if one.rewards != "changing" and one.goal == "regret" and not one.more
        ] + ["open"]
        usual = 10.0 if any(f"/{name}/" in f"/{key}" for name in champions) else 100.0
        mean = next((value for part, value in self.regrets.items() if part in key), usual)
        runs = mean * (1.0 + 0.01 * np.sin(np.arange(float(RUNS))))
        if any(f"/{name}/" in key for name in self.lost.split(",")):
            runs[: RUNS // 100] *= 9.0
        return runs[np.newaxis]


def findings(plan: Plan, regrets: Mapping[str, float], **planted: Any) -> Findings:
    return plan.assess(Planted(regrets, **planted))  # type: ignore[arg-type]


def claims_of(
    plan: Plan, regrets: Mapping[str, float] | None = None, **planted: Any
) -> list[Claim]:
    return list(findings(plan, regrets or {}, **planted).claims)


def asked(claims: list[Claim], *words: str) -> list[str]:
    found = [one.verdict for one in claims if all(word in one.statement for word in words)]
    assert found
    return found


def test_a_default_that_nobody_beats_holds(plan: Plan) -> None:
    claims = claims_of(plan)
    assert asked(claims, "worse than") == 4 * [HOLDS]
    assert asked(claims, "is lost") == 3 * [HOLDS]
    assert asked(claims, "spend the same") == 4 * [HOLDS]


def test_a_default_that_is_beaten_on_one_instance_is_found_out(plan: Plan) -> None:
    planted = {"LazyDPTS/ACTG": 8.0}
    claims = claims_of(plan, planted)
    assert asked(claims, "central trust", "nowhere worse") == [FAILS]
    assert asked(claims, "shuffle trust", "nowhere worse") == [HOLDS]
    tables = {one.name: one.frame for one in findings(plan, planted).tables}
    beaten = tables["beaten"]
    assert beaten[["instance", "best", "factor"]].to_numpy().tolist() == [
        ["ACTG 175", "LazyDPTS", "1.25"]
    ]
    ranks = tables["ranks-finite-arms-central-trust-1-4142-dp"]
    assert ranks["policy"].iloc[0] == "MergedIMED"
    assert ranks["where"].iloc[0] == "ACTG 175"
    close = claims_of(plan, {"LazyDPTS/ACTG": 10.0 / 1.2})
    assert asked(close, "central trust", "nowhere worse") == [UNDECIDED]


def test_yardsticks_stand_below_with_the_numbers_of_planning(plan: Plan) -> None:
    tables = {one.name: one.frame for one in findings(plan, {}).tables}
    ranks = tables["ranks-finite-arms-central-trust-1-4142-dp"]
    assert ranks["policy"].tolist()[-2:] == ["choosing at random", "exploring first"]
    budget = PureDP(1.4142)
    found = []
    for one in (PANEL[0], TRIAL):
        world = one.world(200)
        setting, known = Setting.of(world), {"runs": 4, "seed": SIZE.seed}
        found.append(yardsticks(setting, 200, budget, world.support, **known))
    # the default's planted mean regret is 10
    worst = [max(one.at_random.mean for one in found) / 10.0]
    worst += [max(one.exploring.cost.mean for one in found if one.exploring) / 10.0]
    shown = ranks["worst factor"].astype(float).tolist()[-2:]
    assert shown == pytest.approx(worst, rel=0.01)
    shuffled = tables["ranks-finite-arms-shuffle-trust-1-4142-dp"]["policy"].tolist()
    assert shuffled[-1] == "choosing at random"
    lawless = "ranks-finite-arms-rewards-that-follow-no-law-adversarial-central-trust-1-4142-dp"
    assert "choosing at random" in tables[lawless]["policy"].tolist()


def test_a_default_that_is_no_better_than_a_yardstick_is_found_out(plan: Plan) -> None:
    good = claims_of(plan, {"/MergedIMED/": 1.0})
    assert asked(good, "central", "than choosing at random") == [HOLDS]
    assert asked(good, "central", "than exploring first", "at most 2,000") == [HOLDS]
    planted = {"/MergedIMED/easy": 10.01, "/MergedIMED/": 1.0}  # at random 200 * .05
    bad = claims_of(plan, planted)
    assert asked(bad, "central", "random", "not below 1 on easy: .8, .9.") == [FAILS]
    assert asked(bad, "central", "exploring", "not below 1 on easy: .8, .9.") == [FAILS]
    assert asked(bad, "local", "than choosing at random") == [TIE]  # 10 beside 10


def test_where_rewards_follow_no_law_the_worst_instance_counts(plan: Plan) -> None:
    mild = claims_of(plan, {"FTPL/turning": 1.0})
    assert asked(mild, "at its worst") == [HOLDS]  # it is as bad as before on the other one
    both = claims_of(plan, {"FTPL/": 1.0})
    assert asked(both, "at its worst") == [FAILS]


def test_who_loses_runs_does_not_beat_a_default(plan: Plan) -> None:
    claims = claims_of(plan, {"LazyDPTS/ACTG": 5.0}, lost="LazyDPTS")
    assert asked(claims, "central trust", "nowhere worse", "for losing runs: LazyDPTS.") == [HOLDS]
    tables = {
        one.name: one.frame
        for one in findings(plan, {"LazyDPTS/ACTG": 5.0}, lost="LazyDPTS").tables
    }
    assert tables["beaten"].empty
    ranks = tables["ranks-finite-arms-central-trust-1-4142-dp"]
    last = ranks[ranks["lost"] != "–"].iloc[-1]
    assert (last["policy"], last["best"], last["lost"]) == (
        "LazyDPTS",
        "–",
        RUNS // 100,
    )  # on ACTG they are good


def test_beside_a_default_that_loses_runs_nobody_is_excused(plan: Plan) -> None:
    planted = {"LazyDPTS/ACTG": 5.0}
    claims = claims_of(plan, planted, lost="MergedIMED,LazyDPTS")
    assert asked(claims, "central trust", "nowhere worse") == [FAILS]
    found = {one.name: one.frame for one in findings(plan, planted, lost="MergedIMED").tables}
    assert found["defaults"].iloc[0]["best"] == "–"


def test_lost_runs_are_found_out(plan: Plan) -> None:
    claims = claims_of(plan, lost="MergedIMED")
    assert asked(claims, "of MergedIMED is lost") == [FAILS]
    assert asked(claims, "of LDPIMED is lost") == [HOLDS]


@pytest.mark.parametrize("spent", [0.5, 1.001])
def test_a_budget_that_is_not_equal_is_found_out(plan: Plan, spent: float) -> None:
    assert set(asked(claims_of(plan, spent=spent), "spend the same")) == {FAILS}


# With features -----------------------------------------------------------------------------------


def test_trust_is_compared_at_the_same_budget_only(plan_with_features: Plan) -> None:
    found = findings(plan_with_features, {})
    assert asked(list(found.claims), "nowhere worse") == 9 * [HOLDS]
    assert asked(list(found.claims), "spend the same") == 9 * [HOLDS]
    tables = {one.name: one.frame for one in found.tables}
    beside = tables["defaults"].set_index("setting")["beside central trust"]
    assert beside["few private contexts, local trust"] == "1"
    # at toy size the central ones are at another budget
    assert beside["few private contexts, shuffle trust"] == "–"


def test_families_of_contexts_have_claims_of_their_own(plan_with_features: Plan) -> None:
    planted = {
        "PrivateLinUCB(radius_scale=0.1)/8 axes": 5.0,
        "fixed features, central trust: 1-zCDP/MergedIMED": 2.0,  # who ignores features
    }
    claims = claims_of(plan_with_features, planted)
    assert asked(claims, "few public contexts", "nowhere worse") == [FAILS]
    assert asked(claims, "fixed features", "nowhere worse") == [FAILS]
    assert asked(claims, "diverse public contexts", "nowhere worse") == [HOLDS]
    assert asked(claims, "private contexts", "nowhere worse") == 6 * [HOLDS]


# End to end --------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_small_table_from_end_to_end(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = reproduce(plan, SIZE, engine=Processes(1))
    assert asked(list(record.claims), "spend the same") == 4 * [HOLDS]
    target = tmp_path / "out"
    with result_folder(target) as folder:
        write_results(folder, record, started=datetime.now(UTC), n_jobs=1, command=["x"])
    defaults = pd.read_csv(target / "tables" / "defaults.csv")
    assert defaults["default"].tolist() == [
        "MergedIMED",
        "HTINF",
        "MergedIMEDSDP",
        "LDPIMED",
    ]
    print_tables(record)
    told = capsys.readouterr().out
    assert "The default of each setting" in told
    assert "LDPIMED" in told
    page = (target / "report.html").read_text("utf-8")
    assert "The default of each setting" in page
    assert "How far from the best, and how often" in page
    ranks = pd.read_csv(target / "tables" / "ranks-finite-arms-central-trust-1-4142-dp.csv")
    factors = ranks["worst factor"].to_numpy()[:-2]
    assert len(factors) == len(small(True)[0].entrants)
    assert (np.diff(factors) >= 0).all()
    with result_folder(target, force=True) as folder:  # its tables are ours to replace
        (folder / "new").touch()
    assert (target / "new").exists()


@pytest.mark.long
def test_a_small_table_with_features_from_end_to_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played = [small(True)[0], *small_with_features(True)]  # the page shows curves of the trial
    monkeypatch.setattr(equal_budget, "contests", lambda quick: played)
    record = reproduce(equal_budget.plan(SIZE), SIZE, engine=Processes(1))
    assert asked(list(record.claims), "spend the same") == 10 * [HOLDS]
    target = tmp_path / "out"
    with result_folder(target) as folder:
        write_results(folder, record, started=datetime.now(UTC), n_jobs=1, command=["x"])
    defaults = pd.read_csv(target / "tables" / "defaults.csv")
    assert set(defaults["default"][1:]) == {
        one.policy for one in DEFAULTS if one.contexts != "none" and not one.more
    }
    page = (target / "report.html").read_text("utf-8")
    assert "few private contexts, shuffle trust" in page
