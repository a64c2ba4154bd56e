"""Open channel: without noise the regret is that of the textbook algorithm, and with noise that of
the published private one.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from references import REFERENCES, adac_ucb
from references_in_context import TABLES, WORLD
from references_with_advice import ADVICE, ARGUMENTS, HORIZON, PLAYS, REWARDS
from scipy.stats import ks_2samp
from suite import ADVISED, CASES, CONTEXTUAL, FIRST_OF_CLASS, INFORMED, Case, over, scaled

import dpbandits
from dpbandits import ZCDP, PureDP
from dpbandits.environments import AdviceTable, Bernoulli, ContextTable
from dpbandits.privacy import Budget
from dpbandits.simulation import simulate

pytestmark = pytest.mark.compiled

ALPHA = 1e-4
MEANS = np.array([0.75, 0.6, 0.3])
WRITTEN_DOWN = [
    case for case in CASES if isinstance(case.budget, ZCDP | PureDP | None) and case not in INFORMED
]
WRITTEN_DOWN += [
    case.under(scaled(case.budget, 0.1))
    for case in WRITTEN_DOWN
    if case.budget and case in FIRST_OF_CLASS
]


def sizes(case: Case) -> tuple[int, int]:
    """Horizon, and runs of the reference: episodes that grow are cheap, rounds are not."""
    if case.cls.__name__ == "DiscountedIMED":
        return 2000, 300
    return (
        (1200, 300) if case.cls.card.learns_at_once or case.cls.card.randomised else (20_000, 400)
    )


def test_every_registered_class_has_a_reference():
    assert {case.name for case in CASES} <= {*REFERENCES, *TABLES, *PLAYS}


@over(WRITTEN_DOWN, short=["AdaCUCB"])
def test_regret_has_the_law_of_the_textbook(case: Case):
    horizon, runs = sizes(case)
    policy, budget = case.make(), case.budget
    ours = simulate(
        policy, Bernoulli(MEANS), horizon=horizon, runs=4 * runs, seed=5, record=[horizon]
    ).runs["regret"]
    assert np.isfinite(ours).all()  # an index that is no number shows here
    theirs = REFERENCES[case.name](budget, MEANS, horizon, runs, np.random.default_rng(6))
    assert ks_2samp(ours.round(6), theirs.round(6)).pvalue > ALPHA, (ours.mean(), theirs.mean())


def test_the_comparison_has_power():
    # A nearly right alternative for AdaC-UCB at rho = 0.05: half the budget.
    runs = simulate(
        dpbandits.papers.concentrated.AdaCUCB(3, budget=ZCDP(0.05)),
        Bernoulli(MEANS),
        horizon=20_000,
        runs=1600,
        seed=5,
        record=1,
    ).runs
    wrong = adac_ucb(ZCDP(0.025), MEANS, 20_000, 400, np.random.default_rng(6))
    assert ks_2samp(runs["regret"], wrong).pvalue < ALPHA


# Policies that take contexts meet a fixed table, in which only noise and their own randomness vary:
# without either the regret is exact.
# Noise and its law are the same in all variants of a class: those are walked under one budget.
IN_CONTEXT = [
    case
    for case in CONTEXTUAL
    if isinstance(case.budget, (ZCDP,) if case.variant else (ZCDP, PureDP, type(None)))
]
# Under noise on features, too, bounds are so wide that only generous budgets show its size.
TIMES = {
    case.name: 1000.0 if case.cls.card.hides_contexts and not case.cls.card.randomised else 10.0
    for case in IN_CONTEXT
}
IN_CONTEXT += [
    case.under(scaled(case.budget, TIMES[case.name])) for case in IN_CONTEXT if case.budget
]

# The laws of WeightedGLMLDP at a budget and at a tenth of it are 0.2 apart: p is about 1e-4 with
# 100 runs of the wrong one, and 1e-10 with 400.  Those of LinearIMEDJDP are 0.25 apart.
RUNS_OF_THE_WRONG = {"WeightedGLMLDP": 400, "LinearIMEDJDP": 400}


def regrets(case: Case, budget: ZCDP | PureDP | None, runs: int) -> np.ndarray:
    table, horizon = ContextTable(*WORLD), len(WORLD.rewards)
    policy = case.under(budget).make(**TABLES[case.name].arguments(budget, horizon))
    return (
        simulate(policy, table, horizon=horizon, runs=runs, seed=5, record=[horizon])
        .runs["regret"]
        .to_numpy()
        .round(6)
    )


@over(IN_CONTEXT, short=[])
def test_regret_in_context_has_the_law_of_the_textbook(case: Case):
    ours = regrets(case, case.budget, 1000 if varies(case) else 2)
    theirs = textbook(case, case.budget)
    if not varies(case):
        assert set(ours) == set(theirs)
        return
    assert ks_2samp(ours, theirs).pvalue > ALPHA, (ours.mean(), theirs.mean())
    if case.budget == ZCDP(5.0 if TIMES[case.name] == 10.0 else 500.0):
        # And not that of a tenth of the budget: sqrt(10) times the noise.
        wrong = textbook(case, scaled(case.budget, 0.1), RUNS_OF_THE_WRONG.get(case.name, 100))
        assert ks_2samp(ours, wrong).pvalue < ALPHA / 100  # and not by luck


def varies(case: Case) -> bool:
    return case.budget is not None or case.cls.card.randomised


def textbook(case: Case, budget: Budget | None, runs: int = 100) -> np.ndarray:
    return played_by_the_textbook(case.name, budget, runs if varies(case) else 1)


@cache
def played_by_the_textbook(name: str, budget: Budget | None, runs: int) -> np.ndarray:
    reference, rng = TABLES[name].play, np.random.default_rng(6)
    return np.array([reference(budget, rng) for _ in range(runs)]).round(6)


# Policies that hear experts meet a fixed table, too.
WITH_ADVICE = [case for case in ADVISED if isinstance(case.budget, ZCDP | PureDP | None)]
WITH_ADVICE += [case.under(scaled(case.budget, 10.0)) for case in WITH_ADVICE if case.budget]


def regrets_with_advice(case: Case) -> np.ndarray:
    policy, table = case.make(**ARGUMENTS[case.name]), AdviceTable(ADVICE, REWARDS)
    return (
        simulate(policy, table, horizon=HORIZON, runs=3000, seed=5, record=[HORIZON])
        .runs["regret"]
        .to_numpy()
        .round(6)
    )


@over(WITH_ADVICE, short=[])
def test_regret_with_advice_has_the_law_of_the_textbook(case: Case):
    ours, textbook = regrets_with_advice(case), PLAYS[case.name]
    theirs = textbook(case.budget, 1500, np.random.default_rng(6)).round(6)
    assert ks_2samp(ours, theirs).pvalue > ALPHA, theirs.mean()
    if case.budget == ZCDP(5.0):
        # and not that of a tenth of the budget: sqrt(10) times the noise
        wrong = textbook(ZCDP(0.5), 4000, np.random.default_rng(6)).round(6)
        assert ks_2samp(ours, wrong).pvalue < ALPHA / 100  # and not by luck
