"""ACTG 175: the shipped table, its derivation, and the two environments made of it."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpbandits import ZCDP, AdaCUCB, simulate
from dpbandits.environments import DoctorBandit, DoctorReplay, actg175
from dpbandits.environments.datasets.doctor import TREATMENTS, compact

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
