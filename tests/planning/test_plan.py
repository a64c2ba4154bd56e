"""Plans: numbers are those of ``simulate`` and of ``theory``, advice follows from them, and nothing
is said of what was not measured.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpbandits import GDP, RDP, ZCDP, ApproxDP, ArgumentError, Holdout, PureDP, plan, simulate
from dpbandits.algorithms import MergedIMED
from dpbandits.environments import (
    Advised,
    Bernoulli,
    DoctorReplay,
    Gaussian,
    GLMContexts,
    LinearArms,
    SwitchingBest,
)
from dpbandits.planning import Setting
from dpbandits.planning import candidates as candidates_module
from dpbandits.planning.holdouts import half_width
from dpbandits.planning.measuring import Measured
from dpbandits.planning.targets import cheapest
from dpbandits.report.means import estimate
from dpbandits.theory import promises

WORLD = Bernoulli([0.3, 0.7])
LOCAL = Setting.of(WORLD, trust="local")
BUDGETS = [None, PureDP(1.0), PureDP(0.01), ZCDP(0.1), ApproxDP(1.0, 1e-6)]


@pytest.fixture(scope="module")
def made():
    return plan(LOCAL, 2000, PureDP(1.0), runs=10, seed=3)


def only(monkeypatch, *names):
    """Let plans know of nobody else, so that little has to be compiled."""
    known = candidates_module.registered()
    few = {name: known[name] for name in names}
    monkeypatch.setattr(candidates_module, "registered", lambda: few)


@pytest.fixture
def few(monkeypatch):
    only(monkeypatch, "AdaCUCB", "MergedIMED", "UCB1")


# Numbers --------------------------------------------------------------------------------------


def test_the_table_holds_what_simulate_measures(made):
    assert set(made.table["policy"]) == {"LDPIMED", "LDPUCB"}
    for row in made.table.to_dict("records"):
        policy = made.policy(row["policy"])
        runs = simulate(policy, WORLD, horizon=2000, runs=10, seed=3).runs["regret"].to_numpy()
        assert (row["mean"], row["low"], row["high"]) == tuple(estimate(runs))
        sibling = made.fitting[row["policy"]].build(LOCAL, None, 2000)
        free = simulate(sibling, WORLD, horizon=2000, runs=10, seed=3).runs["regret"].to_numpy()
        assert row["price"] == pytest.approx(runs.mean() / free.mean() - 1.0)
        assert row["price_low"] < row["price"] < row["price_high"]


def test_the_best_without_privacy_is_the_best_of_all(made):
    final = made.measured.result.runs
    final = final[final["budget"] == "none"].groupby("policy")["regret"].mean()
    assert len(final) == 5  # two siblings, and UCB1, KL-UCB and Thompson sampling
    assert made.measured.cost_without_privacy.mean == final.min()


def test_promises_are_those_of_theory():
    found = plan(WORLD, 10_000, PureDP(1.0), rounds=0)
    assert found.measured is None
    rows = found.table.set_index("policy")
    assert set(rows.index[rows["promise"].notna()]) == {"AdaPUCB", "AdaPKLUCB", "DPSE"}
    for name in ("AdaPUCB", "DPSE"):
        upper = [
            one
            for one in promises(found.policy(name), WORLD, [10_000])
            if one.bound.kind == "upper"
        ]
        assert rows.loc[name, "promise"] == upper[0].values[0]
        assert rows.loc[name, "source"].startswith(f"expected regret: {upper[0].bound.source}")
    without_gaps = plan(Setting(2), 10_000, PureDP(1.0))
    assert without_gaps.table["promise"].isna().all()


@pytest.mark.long
def test_a_bound_that_promises_nothing_is_named_and_not_counted(monkeypatch):
    only(monkeypatch, "AdaCGOPE", "AdaCOFUL")
    arms = LinearArms.on_sphere(4, 2, seed=1, rewards="bounded")
    found = plan(arms, 10_000, ZCDP(1.0), rounds=0)
    binding = {name: one.bound.is_binding for name, one in found.promises.items()}
    assert binding["AdaCGOPE"]
    assert found.rows()[0] == ["policy", "proved at most"]
    contexts = plan(GLMContexts(4, [0.5, 0.1], link="identity"), 5000, ZCDP(1.0), rounds=0)
    written = dict(contexts.rows()[1])
    assert written["AdaCOFUL"] == "order only"
    assert contexts.table.set_index("policy").loc["AdaCOFUL", "source"].endswith("order only)")


def test_the_same_seed_gives_the_same_plan_and_threads_change_nothing(made):
    again = plan(LOCAL, 2000, PureDP(1.0), runs=10, seed=3, n_jobs=2)
    pd.testing.assert_frame_equal(made.table, again.table)
    other = plan(LOCAL, 2000, PureDP(1.0), runs=10, seed=4)
    assert (made.table["mean"] != other.table["mean"]).all()


def test_no_more_is_simulated_than_was_asked_for_and_later_rounds_are_not_spoken_of():
    short = plan(LOCAL, 2000, PureDP(1.0), rounds=300, runs=4)
    assert short.rounds == 300
    assert short.measured.result.info["horizon"] == 300
    assert any(
        "The plan says nothing of later rounds, up to 2,000" in one for one in short.findings
    )
    with pytest.raises(ArgumentError, match="rounds must equal the horizon"):
        short.budget_for(100.0)


# Advice ---------------------------------------------------------------------------------------


def test_the_default_is_the_advice(made):
    assert made.best == made.usual == "LDPIMED"
    assert made.table["policy"].iloc[0] == "LDPIMED"
    assert made.table["default"].tolist() == [True, False]
    assert made.findings[0] == "Take LDPIMED: the default."


def test_the_policy_of_a_plan_is_ready(made):
    policy = made.policy(seed=1, reports=True)
    assert (policy.preset, policy.n_arms, policy.budget) == ("LDPIMED", 2, PureDP(1.0))
    assert policy.takes_reports
    assert policy.pull().arm in (0, 1)
    with pytest.raises(ArgumentError, match="title must be one of LDPIMED, LDPUCB, got 'X'"):
        made.policy("X")


def parts_of(made):
    found = made.measured
    return found.result, found.policies, found.public, found.searching


class Planted(Measured):
    """Losses of runs that a test makes up, by title."""

    def loss(self, policy):
        rng = np.random.default_rng(5)
        mean = MADE_UP[policy.preset] if policy.budget else 40.0
        return mean + rng.standard_normal(20)


MADE_UP = {"LDPIMED": 100.0, "LDPUCB": 100.0}


@pytest.mark.parametrize(
    ("loss", "best"), [(99.9, "LDPUCB"), (100.0, "LDPIMED"), (150.0, "LDPIMED")]
)
def test_another_is_the_advice_only_beyond_doubt(made, monkeypatch, loss, best):
    monkeypatch.setitem(MADE_UP, "LDPUCB", loss)
    measured = Planted(*parts_of(made))
    # noise is common to both, so that the smallest difference is beyond doubt
    assert (measured.beaten("LDPIMED", list(measured.policies)) or "LDPIMED") == best


def test_noise_of_its_own_leaves_doubt(made):
    class Apart(Planted):
        def loss(self, policy):
            rng = np.random.default_rng(policy.preset == "LDPUCB")
            return 100.0 + 40.0 * rng.standard_normal(20) - 10.0 * (policy.preset == "LDPUCB")

    measured = Apart(*parts_of(made))
    assert measured.beaten("LDPIMED", list(measured.policies)) is None


def test_both_are_named_where_the_default_is_beaten(made):
    told = replace(made, best="LDPUCB").findings[0]
    assert told.startswith("Take LDPUCB, which lost ")
    assert "or LDPIMED, the default, which lost " in told


# From when on privacy is free ------------------------------------------------------------------


def with_curves(made, private, public, rounds):
    """The plan with these mean regrets at the rounds."""

    class Drawn(Measured):
        def _curve(self, policy):
            return pd.Series(private if policy.budget else public, index=rounds)

    return replace(made, measured=Drawn(*parts_of(made)))


@pytest.mark.parametrize(
    ("private", "public", "start"),
    [
        ([1.0, 5.0, 11.0, 12.0], [1.0, 4.0, 10.0, 10.0], 100),
        ([1.0, 4.1, 11.0, 12.1], [1.0, 4.0, 10.0, 10.0], None),
        ([1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], 1),
        ([0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0], 1),
        ([2.0, -8.0, -9.0, -8.0], [1.0, -10.0, -10.0, -10.0], 10),
    ],
)
def test_free_from_is_the_first_round_after_the_last_that_costs(made, private, public, start):
    found = with_curves(made, private, public, [1, 10, 100, 1000])
    assert found.free_from == start
    said = "Privacy is not free within" if start is None else f"free from round {start} on"
    assert any(said in one for one in found.findings)


def test_with_large_gaps_and_a_loose_budget_it_is_free_and_with_a_strict_one_it_is_not(few):
    easy = plan(Bernoulli([0.2, 0.8]), 3000, ZCDP(50.0), runs=40)
    assert easy.free_from is not None
    assert easy.free_from <= 1000
    hard = plan(Bernoulli([0.45, 0.55]), 3000, ZCDP(1e-4), runs=20)
    assert hard.free_from is None
    assert "Privacy is not free within 3,000 rounds" in " ".join(hard.findings)
    assert hard.measured.times_public(hard.best).low > 1.2


# Which budget affords a regret -----------------------------------------------------------------


def test_the_budget_for_a_regret_reaches_it_and_the_next_smaller_one_does_not(few):
    made = plan(Bernoulli([0.4, 0.6]), 2000, ZCDP(1.0), runs=30)
    strict = plan(Bernoulli([0.4, 0.6]), 2000, ZCDP(0.01), runs=30).measured.cost_of("MergedIMED")
    found = made.budget_for(strict.mean, "MergedIMED")
    # at 0.01 the regret is the target itself
    assert found.low.rho <= 0.01 <= found.high.rho
    assert found.low.rho <= found.budget.rho <= found.high.rho
    tried = found.tried.set_index("value")
    assert tried.loc[found.budget.rho, "mean"] <= strict.mean
    below = tried.index[tried.index < found.budget.rho].max()
    assert below / found.budget.rho == pytest.approx(10**-0.05, rel=0.01)
    assert tried.loc[below, "mean"] > strict.mean
    again = simulate(
        made.fitting["MergedIMED"].build(made.setting, found.budget, 2000),
        made.setting.simulated,
        horizon=2000,
        runs=30,
    )
    assert tried.loc[found.budget.rho, "mean"] == pytest.approx(again.runs["regret"].mean())
    with pytest.raises(ArgumentError, match="the regret of MergedIMED without privacy"):
        made.budget_for(0.5, "MergedIMED")


@pytest.mark.parametrize("like", [PureDP(7.0), ZCDP(7.0), ApproxDP(7.0, 1e-6), RDP(4.0, 7.0)])
@pytest.mark.parametrize("target", [1.0, 30.0, 2.7])
def test_a_known_law_is_inverted(like, target):
    """Regret 1 / x, with runs that differ by a tenth: intervals hold the root, and only it."""
    spread = 1.0 + 0.1 * np.sin(np.arange(40.0))

    def losses(budget):
        if budget is None:
            return np.zeros(40)
        assert replace(budget, **{name: 7.0}) == like
        return spread / getattr(budget, name)

    name = "rho" if isinstance(like, ZCDP) else "epsilon"
    found = cheapest("X", like, target, losses)
    value, root = getattr(found.budget, name), spread.mean() / target
    assert root <= value <= 1.13 * root
    assert getattr(found.low, name) <= value <= getattr(found.high, name) <= 1.2 * root
    assert found.tried["value"].is_monotonic_increasing
    assert math.isinf(found.tried["value"].iloc[-1])
    assert len(found.tried) < 30


def test_a_target_beyond_all_budgets_is_refused_and_one_that_is_never_sure_is_told():
    with pytest.raises(ArgumentError, match=r"the regret of X at 100-DP, got 1"):
        cheapest("X", PureDP(1.0), 1.0, lambda one: np.full(9, 2.0 if one else 0.5))
    wide = cheapest("X", PureDP(1.0), 1.0, lambda one: np.array([0.0, 1.9]))
    assert wide.high is None
    assert wide.budget == wide.low == PureDP(0.001)
    assert "surely with none" in str(wide)


# Other settings --------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("n_experts", [1, 2, 100])
def test_with_experts_the_smallest_bound_is_the_advice(budget, n_experts):
    made = plan(Setting(4, experts=n_experts), 10**6, budget, seed=1)
    bounds = made.table["promise"].fillna(np.inf).to_numpy()
    assert list(bounds) == sorted(bounds)
    policy = made.policy()
    # of reports one by one there is a sharper bound, and one expert cannot be missed
    sharper = n_experts == 1 or policy.preset == "LocalEXP4"
    assert policy.regret_bound <= bounds[0] if n_experts == 1 else bounds[0] <= policy.regret_bound
    assert sharper or policy.regret_bound == bounds[0]
    assert policy.budget == budget
    assert (policy.n_arms, policy.n_experts) == (4, n_experts)
    assert len(made.table) == {PureDP: 4}.get(type(budget), 7)
    nothing = "All bounds are at least the horizon" in " ".join(made.findings)
    assert nothing == bool(bounds[0] >= 10**6)


def test_a_bound_that_is_tuned_to_a_budget_does_not_tell_when_privacy_is_free():
    made = plan(Setting(3, experts=5), 1000, ZCDP(1.0))
    open_ = plan(Setting(3, experts=5), 1000, None).table.set_index("policy")["promise"]
    assert made.best == "LocalEXP4"
    assert made.promises["LocalEXP4"].values[0] > 3 * open_["LocalEXP4"]
    assert "free" not in " ".join(made.findings)


@pytest.mark.long
def test_gaps_of_arms_with_features_are_simulated():
    setting = Setting(2, features=np.eye(2), gaps=[0.0, 0.1])
    assert plan(setting, 100, ZCDP(1.0), runs=2).rounds == 100


@pytest.mark.long
def test_arms_that_stay_say_nothing_of_arms_that_change():
    setting = Setting(2, drift=50, gaps=[0.0, 0.1])
    assert "never change" in " ".join(plan(setting, 100, ZCDP(1.0), runs=2).findings)


@pytest.mark.long
def test_a_search_takes_rounds_and_is_over_or_not():
    setting = Setting(2, goal="best arm", gaps=[0.0, 0.0])
    said = " ".join(plan(setting, 100, ZCDP(1.0), runs=2).findings)
    assert "or all where it is not" in said
    assert "MergedTopTwo took 100" in said


def test_few_experts_and_many_and_small_budgets_have_their_own_best_policies():
    def best(n_experts, epsilon, **known):
        return plan(Setting(10, experts=n_experts, **known), 10**7, PureDP(epsilon)).best

    assert best(2, 1.0).startswith("ExpertConversion")
    assert best(1000, 1.0) == "LocalEXP4"
    assert best(1000, 0.01, standing_advice=True) == "FrozenEXP4"
    assert best(1000, 0.01) == "LocalEXP4"


def test_what_cannot_have_the_other_arguments_is_left_out_with_its_reason():
    experts = Setting(4, experts=10)
    secure = plan(experts, 10**5, ZCDP(0.5), noise="secure")
    assert "noise" in secure.left_out["BatchedEXP4(variant='improved')"]
    assert "BatchedEXP4(variant='published')" in secure.fitting
    assert secure.policy().guarantee.simulated is False
    paper = plan(experts, 1000, ApproxDP(1.0, 1e-6), calibration="paper")
    assert paper.left_out["BatchedEXP4(variant='published')"].startswith("horizon must be")


@pytest.mark.long
@pytest.mark.parametrize("budget", [PureDP(1.0), ApproxDP(1.0, 1e-6)], ids=str)
def test_experts_are_measured_and_lose_less_than_is_proved(budget):
    world = Advised.constant(Bernoulli([0.6, 0.5, 0.5]), 5, horizon=20_000)
    made = plan(world, 20_000, budget, runs=5, seed=1)
    assert made.rounds == 20_000
    assert (made.table["high"] < made.table["promise"]).all()


@pytest.mark.long
def test_a_search_is_measured_in_rounds_and_one_that_promises_nothing_is_no_advice():
    made = plan(Setting.of(Bernoulli([0.2, 0.8, 0.5]), goal="best arm"), 2000, PureDP(1.0), runs=10)
    rows = made.table.set_index("policy")
    searches = simulate(made.policy(), made.setting.simulated, horizon=2000, runs=10).runs
    assert made.best == "MergedTopTwo"
    assert rows.loc["MergedTopTwo", "mean"] == searches["stopped"].mean()
    assert rows.loc["MergedTopTwo", "wrong"] == searches["wrong"].mean()
    assert rows.loc["DPSEBAI", "mean"] == 2000  # which is not over by then
    early = plan(Setting.of(Bernoulli([0.5, 0.6]), goal="best arm"), 300, ZCDP(1.0), runs=10)
    assert early.best == "MergedTopTwo"
    assert early.free_from is None
    with pytest.raises(ArgumentError, match="goal must be 'regret'"):
        early.budget_for(10.0)
    with pytest.raises(ArgumentError, match="simulated regret"):
        early.plot()


@pytest.mark.long
def test_regret_below_zero_has_no_price_in_percent():
    world = SwitchingBest(2, best=[0, 1], switches=[500], horizon=1000, gap=0.4)
    made = plan(world, 1000, PureDP(5.0), runs=5)
    assert set(made.table["policy"]) == {"EXP3", "FTPL", "HTINF"}
    free = {title: made.measured.loss(one).mean() for title, one in made.measured.public.items()}
    unknown = made.table.set_index("policy")["price"].isna()
    assert unknown.to_dict() == {title: free[title] <= 0.0 for title in unknown.index}


def test_of_a_log_and_without_an_environment_nothing_is_measured():
    log = plan(DoctorReplay(), 1000, PureDP(1.0))
    assert log.measured is None
    assert any("replayed" in one for one in log.findings)
    none = plan(Setting(3), 1000, PureDP(1.0))
    assert none.rounds == 0
    assert none.free_from is None
    assert any("Nothing was measured" in one for one in none.findings)
    with pytest.raises(ArgumentError, match="can be plotted"):
        none.plot()


def test_without_a_budget_there_is_no_price(few):
    made = plan(WORLD, 500, None, runs=3)
    assert set(made.table["policy"]) == {"AdaCUCB", "MergedIMED", "UCB1"}
    assert made.table["price"].isna().all()
    assert "price" not in made.rows()[0]
    with pytest.raises(ArgumentError, match="budget must be given"):
        made.budget_for(100.0)


@pytest.mark.long
def test_rewards_outside_of_the_range_need_one():
    with pytest.warns(match="reward_range"):
        plan(replace(LOCAL, environment=Gaussian([0.0, 5.0])), 50, PureDP(1.0), runs=2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"horizon": 0}, "horizon must be"),
        ({"runs": 1}, "runs must be"),
        ({"rounds": 2001}, "rounds must be"),
        ({"tolerance": -0.1}, "tolerance must be"),
        ({"setting": [0.1, 0.2]}, "environment must be"),
        (
            {"budget": ZCDP(1.0), "setting": Setting(3, trust="shuffle")},
            "must be None or PureDP",
        ),
        (
            {"setting": Setting(3, drift="any", trust="local")},
            "setting must be one for which there is a policy",
        ),
        ({"setting": Setting(3, trust="shuffle"), "budget": GDP(1.0)}, "^budget must be"),
        ({"answers_within": -1}, "answers_within must be"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused(changes, words):
    given = {"setting": LOCAL, "horizon": 2000, "budget": PureDP(1.0), **changes}
    with pytest.raises(ArgumentError, match=words):
        plan(**given)


# Shown -----------------------------------------------------------------------------------------


def test_a_notebook_and_a_figure_show_it(made):
    page = made._repr_html_()
    assert "LDPIMED *" in page
    assert "Take LDPIMED" in page
    figure = made.plot()
    titles = {ax.get_title(loc) for ax in figure.axes for loc in ("left", "center")}
    assert {"1-DP", "no privacy"} <= titles


@pytest.mark.parametrize("means", [[0.5, 0.4], [0.4, 0.5]])
@pytest.mark.parametrize(
    ("trust_model", "default", "elimination"),
    [
        ("shuffle", "MergedIMEDSDP", "DPSESDP"),
        pytest.param("central", "MergedIMED", "DPSE", marks=pytest.mark.long),  # plays 20 others
    ],
)
def test_who_has_learned_nothing_is_not_advised(means, trust_model, default, elimination):
    """Elimination plays the first arm in all of 300 rounds, whether it is the best or not."""
    setting = Setting.of(Bernoulli(means), trust=trust_model)
    found = plan(setting, 300, PureDP(1.0), runs=5)
    assert (found.best, found.usual) == (default, default)
    assert found.measured is not None
    assert found.measured.best_public != elimination
    (regret,) = [row[2] for row in found.rows()[1] if row[0] == elimination]
    assert regret == ("0" if means[0] > means[1] else "30")


def test_a_plan_tells_price_and_use_of_a_holdout():
    holdout = Holdout(0.2, weights=(0.25, 0.75), batch=25)
    with_it = plan(WORLD, 1000, ZCDP(0.5), runs=3, holdout=holdout)
    without = plan(WORLD, 1000, ZCDP(0.5), runs=3)
    assert with_it.table.equals(without.table)  # which is measured without it
    # 200 people, of whom a quarter gets the worse arm, 0.4 below the other.
    assert with_it.holdout.people == 200
    assert with_it.holdout.regret == pytest.approx(200 * 0.25 * 0.4)
    assert str(with_it.holdout) in with_it.findings
    policy = with_it.policy(seed=1)
    assert policy.settings.holdout == holdout
    assert without.holdout is None
    assert without.policy().holdout is None


def test_a_plan_tells_price_and_use_of_a_minimum_share(few):
    world = Bernoulli([0.2, 0.4, 0.7])
    found = plan(world, 1000, ZCDP(0.5), runs=2, holdout=Holdout(min_share=0.05)).holdout
    # 150 people, of whom a third gets each arm: 0.5, 0.3 and 0 below the best.
    assert (found.people, found.share) == (150, pytest.approx(0.15))
    assert found.least == pytest.approx(0.05)
    assert found.regret == pytest.approx(50 * 0.8)
    assert "Every arm gets at least 5 % of all people" in str(found)
    weighted = plan(WORLD, 1000, rounds=0, holdout=Holdout(0.2, weights=(0.25, 0.75)), budget=None)
    assert weighted.holdout.least == pytest.approx(0.05)


def test_a_holdout_that_does_not_fit_is_refused_before_the_simulation(few, monkeypatch):
    monkeypatch.setattr("dpbandits.planning.planner.simulate", None)
    with pytest.raises(ArgumentError, match="min_share of the holdout must be below 1 / 2"):
        plan(WORLD, 1000, ZCDP(0.5), holdout=Holdout(min_share=0.5))


@pytest.mark.parametrize(
    "own",
    [{}, {"one_sum": True}, {"targets": ["rule"], "batch": 200}],
    ids=["False", "True", "targets"],
)
def test_the_foreseen_width_is_that_of_a_holdout_of_equal_arms(own: dict[str, Any]):
    """Played at means of 1/2, and against a neighbour: half as many people."""
    people = 1200
    holdout = Holdout(0.9, **own)
    targets = {"rule": 0} if holdout.targets else None
    widths = []
    for seed in range(8):
        policy = MergedIMED(2, budget=PureDP(1.0), holdout=holdout, seed=seed)
        rng = np.random.default_rng(seed)
        while policy.holdout.rounds < people:
            policy.update(float(rng.random() < 0.5), policy.pull(targets=targets))
        policy.finish()
        found = policy.holdout.intervals(difference=(1, 0))
        widths.append(0.5 * (found.high[0] - found.low[0]))
    foreseen = half_width(policy.holdout, people)
    assert np.mean(widths) == pytest.approx(foreseen, rel=0.06)
    assert half_width(policy.holdout, people // 2) > 1.3 * foreseen
    assert math.isnan(half_width(policy.holdout, 40))
