"""ACTG 175: the shipped table, its derivation, and the two environments made of it."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dpbandits import ZCDP, replay, simulate
from dpbandits.algorithms import LinearThompson
from dpbandits.environments import DoctorBandit, DoctorContexts, DoctorReplay, actg175
from dpbandits.environments.datasets.doctor import COVARIATES, TREATMENTS, compact
from dpbandits.papers.concentrated import AdaCUCB

RATES = [0.436, 0.653, 0.555, 0.556]


def test_the_shipped_table_is_the_published_one():
    path = os.environ.get("ACTG175_CSV")
    if path is None:
        pytest.skip("ACTG175_CSV does not name the published table")
    shipped = resources.files("dpbandits.environments") / "data" / "actg175.csv"
    assert (
        compact(pd.read_csv(Path(path))).to_csv(index=False, lineterminator="\n")
        == shipped.read_text()
    )


def test_the_derivation_keeps_values_and_order_and_drops_the_patient_number():
    original = actg175().drop(columns="patient").assign(pidnum=range(10**6, 10**6 + 2139), cens=0)
    pd.testing.assert_frame_equal(
        compact(original.sample(frac=1.0, axis=1, random_state=1)), actg175()
    )


def test_the_table_is_complete_and_plausible():
    patients = actg175()
    assert patients.shape == (2139, 11)
    assert patients["patient"].tolist() == list(range(2139))
    assert not patients.isna().any().any()
    assert patients["arms"].value_counts().sort_index().tolist() == [532, 522, 524, 561]
    assert patients["cd40"].between(0, 1200).all()
    assert patients[["cd40", "cd420"]].mean().round(3).tolist() == [350.501, 371.307]
    assert set(patients["strat"]) == {1, 2, 3}
    assert patients[["gender", "race", "symptom"]].isin([0, 1]).all().all()


def test_success_rates():
    trial = DoctorReplay()
    assert trial.means().round(3).tolist() == RATES
    assert (trial.means() * trial.counts).round(9).tolist() == [232, 341, 291, 312]
    assert trial.mean() == pytest.approx(1176 / 2139)
    assert DoctorBandit().means() == pytest.approx(trial.means())


def test_names_and_reference():
    bandit = DoctorBandit()
    name, shares = bandit.reference
    assert name == "the trial's own allocation"
    assert shares == pytest.approx(np.array([532, 522, 524, 561]) / 2139)
    assert bandit.arm_names == DoctorReplay().arm_names == list(TREATMENTS)
    assert (repr(bandit), repr(DoctorReplay())) == ("DoctorBandit()", "DoctorReplay()")
    assert (bandit.n_arms, bandit.support, bandit.horizon) == (4, (0.0, 1.0), None)


def test_arms_were_given_uniformly_and_whoever_the_patient():
    """The assumption of a replay, as far as the data can show it: equal shares, in all and within
    what was known beforehand.
    """
    patients = actg175()
    assert stats.chisquare(patients["arms"].value_counts()).pvalue > 0.01
    for column in ("strat", "gender", "race", "symptom"):
        assert stats.chi2_contingency(pd.crosstab(patients["arms"], patients[column])).pvalue > 0.01
    for column in ("age", "wtkg", "cd40"):
        assert (
            stats.kruskal(*(group for _, group in patients.groupby("arms")[column])).pvalue > 0.01
        )


def test_patients_as_a_table():
    table, patients = DoctorReplay().reward_table(), actg175()
    assert (table.horizon, table.arm_names) == (522, list(TREATMENTS))
    first = patients.groupby("arms").head(522)
    rates = (first["cd420"] > first["cd40"]).groupby(first["arms"]).mean()
    assert table.means() == pytest.approx(rates.to_numpy())


def test_any_horizon_can_be_simulated():
    result = simulate(AdaCUCB(4, budget=ZCDP(1.0)), DoctorBandit(), horizon=10**6, runs=5, seed=1)
    assert (result.runs["pulls_1"] > 800_000).all()


# With covariates -----------------------------------------------------------------------------


def outcomes():
    world = DoctorContexts()
    return expit(world.features @ world.parameter.T)


def test_covariates_are_those_of_the_table():
    features, patients = DoctorContexts().features, actg175()
    assert features.shape == (2139, len(COVARIATES))
    assert np.linalg.norm(features, axis=1) == pytest.approx(1.0)
    # before rows were divided by their lengths, the intercept was 1
    raw = features[:, :-1] / features[:, -1:]
    for i, name in enumerate(["age", "wtkg", "karnof", "cd40", "gender", "race", "symptom"]):
        assert raw[:, i] * 3.0 == pytest.approx(stats.zscore(patients[name]), abs=1e-5)
    assert raw[:, 7] * 3.0 == pytest.approx(stats.zscore(patients["strat"] == 2), abs=1e-5)
    assert raw[:, 8] * 3.0 == pytest.approx(stats.zscore(patients["strat"] == 3), abs=1e-5)


def test_models_are_those_of_scikit_learn():
    world, trial = DoctorContexts(), DoctorReplay()
    for arm in range(4):
        mine = trial.arms == arm
        theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000)
        theirs.fit(world.features[mine], trial.rewards[mine])
        assert world.parameter[arm] == pytest.approx(theirs.coef_[0], abs=1e-4)
    assert np.array_equal(world.parameter * 2**20, np.round(world.parameter * 2**20))


def test_what_covariates_are_worth():
    """The models agree with the trial on the treatments.  One for all is right for most patients,
    so that to know the patient is worth little.
    """
    means = outcomes()
    assert means.mean(axis=0).round(3).tolist() == [0.442, 0.653, 0.56, 0.554]
    assert means.mean(axis=0) == pytest.approx(RATES, abs=0.006)
    assert means.max(axis=1).mean() == pytest.approx(0.659, abs=5e-4)
    assert (means.argmax(axis=1) == 1).mean() == pytest.approx(0.817, abs=5e-4)


def test_patients_come_from_all_and_answer_by_the_model_of_the_treatment(play):
    world, arms = DoctorContexts(), np.random.default_rng(1).integers(0, 4, 20_000)
    rounds = play(world, arms, seed=2)
    counts = np.bincount(rounds.hidden.astype(int), minlength=2139)
    assert stats.chisquare(counts).pvalue > 1e-4
    assert np.array_equal(rounds.contexts[:, 3], world.features[rounds.hidden.astype(int)])
    means = outcomes()[rounds.hidden.astype(int)]
    played = means[np.arange(arms.size), arms]
    assert rounds.regrets == pytest.approx(means.max(axis=1) - played)
    for arm in range(4):
        mine = arms == arm
        score = (rounds.rewards - played)[mine].sum()
        score /= np.sqrt((played * (1.0 - played))[mine].sum())
        assert abs(score) < stats.norm.isf(1e-4 / 8)


@pytest.mark.long
def test_learning_from_covariates_beats_chance():
    """Playing at random costs .107 a round; 5,000 rounds are too few to beat one treatment for all,
    which costs .006.
    """
    policies = [
        LinearThompson(4, 10, budget=None, models="disjoint"),
        LinearThompson(4, 10, budget=None),
    ]
    runs = simulate(policies, DoctorContexts(), horizon=5000, runs=2, seed=1).runs
    disjoint = runs[runs["policy"].str.contains("disjoint")]["regret"]
    at_random = 5000 * (outcomes().max(axis=1).mean() - outcomes().mean())
    assert at_random == pytest.approx(534, abs=1)
    assert (disjoint < 0.5 * at_random).all()


@pytest.mark.long
def test_a_replay_knows_the_covariates():
    trial = DoctorReplay()
    assert (trial.dimension, trial.contexts.shape) == (10, (2139, 4, 10))
    assert np.array_equal(trial.contexts[:, 2], DoctorContexts().features)
    policy = LinearThompson(4, 10, budget=None, models="disjoint")
    row = replay(policy, trial, runs=20, seed=1).summary().loc[0]
    assert row["low"] > row["trial"]
    assert row["mean"] < row["best"]
