"""What a page says of who did best, on results whose truth is known: what is told apart here was
made different, and what is not was made equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from dpbandits import ZCDP, PureDP, simulate
from dpbandits.algorithms import MergedTopTwo, SequentialHalving
from dpbandits.environments import Bernoulli
from dpbandits.papers.concentrated import AdaCUCB
from dpbandits.report.contests import (
    findings_in_regret,
    findings_in_searches,
    findings_on_promises,
)
from dpbandits.report.summaries import environment_summaries
from dpbandits.simulation import Result
from dpbandits.simulation.settings import policy_styles

RUNS, HORIZON = 40, 20
BUDGETS = {f"{rho:g}-zCDP": ZCDP(rho) for rho in (0.01, 0.1, 1.0)}

Regrets = Mapping[tuple[str, str], np.ndarray]


def around(mean: float) -> np.ndarray:
    """Regrets of a known mean, with a standard deviation of one."""
    noise = np.random.default_rng(round(mean)).normal(size=RUNS)
    return mean + (noise - noise.mean()) / noise.std()


def played(regrets: Regrets, runs: int = RUNS, releases: Mapping[str, int] | None = None) -> Result:
    """A result in which policies have these regrets at the end of their runs."""
    names = list(dict.fromkeys(name for name, _ in regrets))
    policies = [
        AdaCUCB(2, beta=1.0 + names.index(name), budget=BUDGETS.get(budget), name=name)
        for name, budget in regrets
    ]
    result = simulate(policies, Bernoulli([0.9, 0.1]), horizon=HORIZON, runs=runs, record=1)

    def written(table):
        keys = zip(table["policy"], table["budget"], table["run"], strict=True)
        return table.assign(regret=[regrets[name, budget][run] for name, budget, run in keys])

    counted = written(result.runs)
    counted["releases"] = counted["policy"].map(releases or {}).fillna(5).astype(int)
    return replace(result, frame=written(result.frame), runs=counted)


def told(result: Result) -> list[str]:
    (summary,) = environment_summaries(result)
    return findings_in_regret(summary, policy_styles(result.settings))


def test_a_clear_winner_is_named_with_its_lead_and_its_price() -> None:
    regrets = {
        ("ours", "0.1-zCDP"): around(30.0),
        ("theirs", "0.1-zCDP"): around(50.0),
        ("ours", "none"): around(25.0),
        ("theirs", "none"): around(12.0),
    }
    free, private = told(played(regrets))
    assert free.startswith(
        "Without privacy, “theirs” had the least mean regret of 2 policies: 12 ("
    )
    assert private.startswith(
        "At 0.1-zCDP, “ours” had the least mean regret of 2 private policies: 30 (95 % interval 30 to 30)"
    )
    assert "The next, “theirs”, lost 20 more (20 to 20)." in private
    assert "Against “theirs” without privacy it lost 18 more (18 to 18)." in private
    assert "separate" not in private
    assert "undecided" not in private


def test_leads_are_paired_run_by_run() -> None:
    """Runs that differ by 100 and are always 2 apart are told apart only as pairs."""
    hard = np.linspace(0.0, 100.0, RUNS)
    regrets = {("ours", "0.1-zCDP"): hard, ("theirs", "0.1-zCDP"): hard + 2.0}
    (private,) = told(played(regrets))
    assert "The next, “theirs”, lost 2 more (2 to 2)." in private
    shuffled = {**regrets, ("theirs", "0.1-zCDP"): hard[::-1] + 2.0}
    (private,) = told(played(shuffled))
    assert "The runs do not separate it from “theirs”." in private


def test_a_tie_is_undecided() -> None:
    same = around(30.0)
    regrets = {
        ("ours", "0.1-zCDP"): same,
        ("theirs", "0.1-zCDP"): np.roll(same, 1) + 0.01,
        ("far", "0.1-zCDP"): around(90.0),
        ("ours", "none"): np.roll(same, 2),
    }
    _, private = told(played(regrets))
    assert (
        "The runs do not separate it from “theirs”. The next, “theirs”, lost 0.01 more" in private
    )
    assert private.count("undecided: −") == 2, "the second, and what privacy costs"
    assert "“far”" not in private


def test_privacy_may_cost_nothing_or_less() -> None:
    regrets = {("ours", "0.1-zCDP"): around(30.0), ("ours", "none"): around(40.0)}
    free, private = told(played(regrets))
    assert free.startswith("Without privacy, “ours” had a mean regret of 40 (")
    assert private.startswith("At 0.1-zCDP, “ours” had a mean regret of 30 (95 %")
    assert "Against itself without privacy it lost 10 less (" in private


def test_budgets_of_one_verdict_share_a_sentence() -> None:
    regrets = {
        **{("ours", name): around(30.0 - i) for i, name in enumerate(BUDGETS)},
        **{("theirs", name): around(60.0 - i) for i, name in enumerate(BUDGETS)},
    }
    (private,) = told(played(regrets))
    assert private.startswith("From 0.01-zCDP to 1-zCDP (3 budgets), “ours” had the least mean")
    assert "at 0.01-zCDP, 28 (95 % interval" in private
    turned = {**regrets, ("theirs", "1-zCDP"): around(10.0)}
    first, second = told(played(turned))
    assert first.startswith("At 0.01-zCDP and 0.1-zCDP, “ours”")
    assert second.startswith(
        "At 1-zCDP, “theirs” had the least mean regret of 2 private policies: 10"
    )


def test_one_policy_in_one_run_has_a_regret_and_no_more() -> None:
    assert told(played({("ours", "0.1-zCDP"): np.array([31.0])}, runs=1)) == [
        "At 0.1-zCDP, “ours” had a mean regret of 31."
    ]


def test_who_released_nothing_does_not_compete() -> None:
    regrets = {("ours", "0.1-zCDP"): around(30.0), ("idle", "0.1-zCDP"): around(1.0)}
    private, idle = told(played(regrets, releases={"idle": 0}))
    assert private.startswith("At 0.1-zCDP, “ours” had a mean regret of 30")
    assert idle.startswith("“idle” released nothing in any run at 0.1-zCDP:")


def test_who_promises_nothing_does_not_compete() -> None:
    policies = [
        AdaCUCB(2, budget=ZCDP(1.0)),
        AdaCUCB(2, budget=ZCDP(1.0), clip=False, name="bare"),
    ]
    result = simulate(policies, Bernoulli([0.9, 0.1]), horizon=50, runs=3, record=1)
    (private,) = told(result)
    assert private.startswith("At 1-zCDP, AdaCUCB had a mean regret of")
    (void,) = findings_on_promises(result.settings, policy_styles(result.settings))
    assert void.startswith("“bare” (no guarantee) promises nothing")
    kept = {key: one for key, one in result.settings.items() if one.holds is not None}
    assert findings_on_promises(kept, policy_styles(kept)) == []


@pytest.fixture(scope="module")
def searched() -> Result:
    searches = [
        MergedTopTwo(2, failure_probability=asked, budget=budget, name=name)
        for name, asked in (("quick", 0.05), ("slow", 0.04))
        for budget in (PureDP(1.0), None)
    ]
    halving = SequentialHalving(2, horizon=60, budget=PureDP(1.0))
    world = Bernoulli([0.99, 0.01])
    return simulate([*searches, halving], world, horizon=400, runs=10, record=1)


def in_searches(result: Result, stopped: Sequence[float], wrong: int = 0) -> list[str]:
    """What is said where searches end after so many rounds: "quick", "slow", private ones later."""
    runs = result.runs.copy()
    for name, rounds in zip(("quick", "slow"), stopped, strict=True):
        mine = runs["policy"] == name
        runs.loc[mine, "stopped"] = rounds + 50.0 * (runs.loc[mine, "budget"] != "none")
    runs["wrong"] = 0.0
    runs.loc[runs.index[:wrong], "wrong"] = 1.0
    (summary,) = environment_summaries(replace(result, runs=runs))
    styles = policy_styles(result.settings)
    assert findings_in_regret(summary, styles) == [], "searches do not play for reward"
    return findings_in_searches(summary, styles)


@pytest.mark.long
def test_searches_are_compared_by_rounds_and_errors(searched: Result) -> None:
    free, private, quick, slow, halving = in_searches(searched, (100.0, 180.0), wrong=3)
    assert free.startswith("Without privacy, “quick” needed the fewest rounds on average of 2")
    assert private.startswith(
        "At 1-DP, “quick” needed the fewest rounds on average of 2 private searches: 150 ("
    )
    assert "The next, “slow”, needed 80 more (80 to 80)." in private
    assert private.endswith("Against itself without privacy it needed 50 more (50 to 50).")
    assert quick == (
        "“quick” named a wrong arm in 3 of 20 runs, at all budgets together; it was asked for at"
        " most 5 % of them."
    )
    assert slow.startswith("“slow” named a wrong arm in 0 of 20 runs")
    assert "asked" not in halving


def test_searches_that_did_not_end_do_not_compete(searched: Result) -> None:
    _, private, quick, *_ = in_searches(searched, (np.nan, 180.0))
    assert private.startswith("At 1-DP, “slow” needed this many rounds on average: 230 (")
    assert quick.endswith("20 did not end.")
