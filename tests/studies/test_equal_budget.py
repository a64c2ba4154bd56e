"""The table of defaults: who enters, what is counted, and results that were planted to make claims
fail.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpbandits import PureDP
from dpbandits.cli.tables import print_tables
from dpbandits.policies import DEFAULTS, default_for, registered
from dpbandits.policies.protocol import no_arm
from dpbandits.report.claims import FAILS, HOLDS, UNDECIDED, Claim
from dpbandits.simulation.simulating import what_is_taken
from dpbandits.studies import equal_budget
from dpbandits.studies.equal_budget.panel import CHANGING, PANEL, TRIAL, Contest, contests
from dpbandits.studies.equal_budget.ranking import lost_runs, ranking, relative
from dpbandits.studies.intervals import largest, largest_of, ratio, ratios, share
from dpbandits.studies.output import result_folder, write_results
from dpbandits.studies.plans import Findings, Plan, Size
from dpbandits.studies.reproduce import reproduce

pytestmark = pytest.mark.xdist_group("the plan of the table of defaults")
SIZE = Size(quick=True, runs=4, horizon=200)
RUNS = 5000  # of planted results: enough to be sure that fewer than one in 1,000 is lost


def small(quick: bool) -> list[Contest]:
    """One budget of each setting, on one or two instances."""
    chosen = {}
    for contest in contests(quick):
        own = (PANEL[0], TRIAL) if contest.default.random else CHANGING[-2:]
        chosen.setdefault(contest.setting, dataclasses.replace(contest, instances=own))
    return list(chosen.values())


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(equal_budget, "contests", small)
    return equal_budget.plan(SIZE)


# Who enters, and where ---------------------------------------------------------------------------


def test_every_private_policy_for_finite_arms_enters() -> None:
    entered = {entrant.cls.__name__ for one in contests(False) for entrant in one.entrants}
    expected = {
        name
        for name, cls in registered().items()
        if what_is_taken(cls) == "no contexts"
        and cls.card.channels
        and not cls.card.refuted_because
        and cls.kernels.recommend is no_arm
        and "arms" not in inspect.signature(cls).parameters  # whose features it needs
    }
    # the conversion wraps learners that enter by themselves
    assert entered == expected - {"BatchConversion"}
    assert {"MergedIMED", "AdaCUCB", "LazyDPTS", "DPTS", "HTINF", "LDPUCB", "DPSESDP"} <= entered


def test_those_who_meet_trust_the_same_people_and_keep_the_same_budget() -> None:
    for contest in contests(False):
        assert contest.champion.title in [entrant.title for entrant in contest.entrants]
        for entrant in contest.entrants:
            policy = entrant.policy(3, contest.budget, 1000)
            assert policy.card.trust_model == contest.default.trust_model
            assert policy.guarantee_in_simulations.holds == contest.budget


def test_the_panel_is_as_wide_as_it_should_be() -> None:
    assert len(PANEL) >= 16
    worlds = {one.name: one.world(one.horizon) for one in PANEL}
    assert {world.n_arms for world in worlds.values()} >= {2, 3, 4, 5, 10, 20, 50}
    assert {one.horizon for one in PANEL} >= {10**4, 10**5, 10**6}
    # nobody wins by staying with the first arm
    assert all(world.means().argmax() > 0 for world in worlds.values())
    assert all(one.world(10_000).means().argmax() > 0 for one in CHANGING)


def test_every_default_is_a_policy_of_its_setting() -> None:
    assert len({(one.trust_model, one.random) for one in DEFAULTS}) == len(DEFAULTS)
    for one in DEFAULTS:
        assert one.policy_class.card.trust_model == one.trust_model
        assert default_for(trust_model=one.trust_model, random=one.random) == one
        policy = one.build(3, budget=PureDP(1.0), horizon=1000)
        assert policy.guarantee.asked == PureDP(1.0)


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
    assert relative(regrets)["A"].tolist() == [2.0, 1.0]
    assert relative(regrets)["B"].tolist() == [1.0, 3.0]
    first, second = ranking(regrets)
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
    found = relative(nothing)
    assert (found["A"][0], found["B"][0], found["C"][0]) == (1.0, 1.0, np.inf)


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


class Planted:
    """Every policy has a regret of 100 and the default one of 10, but for what is planted."""

    def __init__(self, regrets: Mapping[str, float], spent: float = 1.0, lost: bool = False):
        self.regrets, self.spent, self.lost = regrets, spent, lost

    def final(self, key: str, column: str = "regret") -> np.ndarray:
        if column == "releases":
            return np.full((1, RUNS), 3)
        if column == "spent":
            return np.full((1, RUNS), self.spent * 1.4142)
        champions = [one.call for one in DEFAULTS] + ["open"]
        usual = 10.0 if any(f"{name}/" in key for name in champions) else 100.0
        mean = next((value for part, value in self.regrets.items() if part in key), usual)
        runs = mean * (1.0 + 0.01 * np.sin(np.arange(float(RUNS))))
        if self.lost and "/MergedIMED/" in key:
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
    assert asked(claims, "spends the same") == 4 * [HOLDS]


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


def test_where_rewards_follow_no_law_the_worst_instance_counts(plan: Plan) -> None:
    mild = claims_of(plan, {"FTPL/turning": 1.0})
    assert asked(mild, "at its worst") == [HOLDS]  # it is as bad as before on the other one
    both = claims_of(plan, {"FTPL/": 1.0})
    assert asked(both, "at its worst") == [FAILS]


def test_lost_runs_are_found_out(plan: Plan) -> None:
    claims = claims_of(plan, lost=True)
    assert asked(claims, "of MergedIMED is lost") == [FAILS]
    assert asked(claims, "of LDPIMED is lost") == [HOLDS]


@pytest.mark.parametrize("spent", [0.5, 1.001])
def test_a_budget_that_is_not_equal_is_found_out(plan: Plan, spent: float) -> None:
    assert set(asked(claims_of(plan, spent=spent), "spends the same")) == {FAILS}


# End to end --------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_small_table_from_end_to_end(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = reproduce(plan, SIZE, n_jobs=1)
    assert asked(list(record.claims), "spends the same") == 4 * [HOLDS]
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
    factors = ranks["worst factor"].to_numpy()
    assert len(ranks) == len(small(True)[0].entrants)
    assert (np.diff(factors) >= 0).all()
    with result_folder(target, force=True) as folder:  # its tables are ours to replace
        (folder / "new").touch()
    assert (target / "new").exists()
