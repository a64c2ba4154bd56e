"""The estimators in scikit-learn's hands."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpbandits import ZCDP
from dpbandits.errors import ArgumentError, DPBanditsError
from dpbandits.glm import LocalGLM, PrivateGLM
from dpbandits.papers.glm import InformationWeightedGLM

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator

# What scikit-learn asks and these estimators refuse, each for a reason.
WORDS = "the error is raised, in words of our own"
PRIVATE = "an error would tell of one person's entry"
REFUSED = {
    "check_dont_overwrite_parameters": "the ledger belongs to every fit",
    "check_do_not_raise_errors_in_init_or_set_params": "a wrong budget is refused at once",
    "check_complex_data": WORDS,
    "check_estimators_empty_data_messages": WORDS,
    "check_fit2d_predict1d": WORDS,
    "check_requires_y_none": WORDS,
    "check_dtype_object": PRIVATE,
    "check_supervised_y_no_nan": PRIVATE,
    "check_supervised_y_2d": "a column of outcomes is what it looks like",
}
KINDS = (PrivateGLM, LocalGLM, InformationWeightedGLM)
WIDE = {"outcome_range": (-1e3, 1e3), "context_bound": 50.0}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [None, ZCDP(10.0)])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass_but_for_those_that_are_refused(kind, budget):
    if budget is not None and kind is InformationWeightedGLM:
        pytest.skip("the tables of these checks have fewer people than batches")
    model = kind("identity", budget=budget, seed=1, **WIDE)
    results = check_estimator(model, expected_failed_checks=REFUSED, on_fail=None, on_skip=None)
    found = {status: set() for status in ("passed", "failed", "xfail", "skipped")}
    for one in results:
        found[one["status"]].add(one["check_name"])
    assert len(found["passed"]) > 30
    assert found["failed"] == set()
    assert found["xfail"] == set(REFUSED)


@pytest.fixture
def people():
    rng = np.random.default_rng(1)
    x = rng.uniform(-0.5, 0.5, (3000, 3))
    y = (rng.random(3000) < 1 / (1 + np.exp(-x @ [0.9, -0.4, 0.0]))).astype(float)
    return pd.DataFrame(x, columns=["a", "b", "c"]), y


def test_it_is_searched_scored_and_put_into_pipelines(people):
    x, y = people
    model = PrivateGLM(budget=ZCDP(1.0), seed=1)
    pipeline = make_pipeline(MinMaxScaler((-0.5, 0.5)), model)
    assert cross_val_score(pipeline, x, y, cv=3).shape == (3,)
    search = GridSearchCV(model, {"parameter_bound": [0.5, 1.0]}, cv=2).fit(x, y)
    assert search.best_estimator_.parameter_bound in (0.5, 1.0)
    assert clone(model).get_params() == model.get_params()


def test_columns_are_known_by_name(people):
    x, y = people
    model = PrivateGLM(budget=ZCDP(1.0), seed=1).fit(x, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ArgumentError, match="columns that fit was given, in this order: a, b, c"):
        model.predict(x[["c", "b", "a"]])
    assert not hasattr(model.fit(x.to_numpy(), y), "feature_names_in_")


def test_probabilities_are_there_where_the_link_gives_them(people):
    x, y = people
    assert PrivateGLM(budget=None).fit(x, y).predict_proba(x).shape == (3000, 2)
    assert not hasattr(PrivateGLM("identity", budget=None), "predict_proba")


def test_an_estimator_without_an_estimate_says_so_in_both_languages():
    with pytest.raises(NotFittedError) as caught:
        PrivateGLM(budget=None).predict([[1.0]])
    assert isinstance(caught.value, DPBanditsError)


def test_the_score_is_the_share_of_variance_explained(people):
    x, y = people
    model = PrivateGLM(budget=None).fit(x, y)
    left = np.sum((y - model.predict(x)) ** 2)
    assert model.score(x, y) == pytest.approx(1.0 - left / np.sum((y - y.mean()) ** 2))
    half = np.where(np.arange(3000) < 1500, y, np.nan)
    assert model.score(x, half) == pytest.approx(model.score(x[:1500], y[:1500]))
    assert np.isnan(model.score(x, np.full(3000, np.nan)))
