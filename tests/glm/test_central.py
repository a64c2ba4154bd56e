"""PrivateGLM: what it estimates without noise and with it, what it promises, what it survives."""

import itertools
import math
import pickle
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import optimize, sparse, stats
from sklearn.base import clone
from worlds import logistic

from dpbandits import RDP, ZCDP, ApproxDP, ArgumentError, DPBanditsError, PureDP
from dpbandits.glm import LocalGLM, PrivateGLM, links, register_link
from dpbandits.glm.estimator import TYPES_ARE_PUBLIC
from dpbandits.papers.glm import InformationWeightedGLM
from dpbandits.privacy import accounting

BUDGET = ApproxDP(1.0, 1e-6)
METHODS = ("newton", "gradient", "objective")


# Without noise ----------------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["logistic", "probit", "identity"])
@pytest.mark.long
def test_without_noise_it_is_the_estimate_of_statsmodels(link: str):
    api = pytest.importorskip("statsmodels.api")
    features, outcomes, _ = logistic(3000, 4, 2.0)
    theirs = {
        "logistic": lambda: api.Logit(outcomes, features).fit(disp=False, tol=1e-12),
        "probit": lambda: api.GLM(
            outcomes, features, api.families.Binomial(api.families.links.Probit())
        ).fit(tol=1e-13),
        "identity": lambda: api.OLS(outcomes, features).fit(),
    }[link]()
    model = PrivateGLM(link, budget=None, parameter_bound=6.0).fit(features, outcomes)
    assert model.coef_ == pytest.approx(theirs.params, abs=1e-6)
    assert model.predict(features) == pytest.approx(theirs.predict(features), abs=1e-6)
    if link != "identity":  # whose variance statsmodels estimates
        assert model.confidence_intervals(0.9) == pytest.approx(theirs.conf_int(0.1), abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_without_noise_all_methods_end_at_the_minimum(method: str):
    features, outcomes, _ = logistic(500, 2, 1.0)

    def loss(theta):
        t = features @ theta
        return np.sum(np.logaddexp(0.0, t) - outcomes * t) + 1.5 * theta @ theta

    least = optimize.minimize(loss, np.zeros(2), tol=1e-12).x
    model = PrivateGLM(budget=None, method=method, ridge=3.0, parameter_bound=5.0)
    assert model.fit(features, outcomes).coef_ == pytest.approx(least, abs=1e-5)


@pytest.mark.parametrize("link", ["logistic", "probit", "identity"])
def test_beyond_the_ball_it_is_the_best_on_its_surface(link: str):
    features, outcomes, _ = logistic(500, 3, 5.0)
    model = PrivateGLM(link, budget=None, parameter_bound=0.5).fit(features, outcomes)
    assert np.linalg.norm(model.coef_) == pytest.approx(0.5)
    score = model._score(bounded=False)
    gradient = score.add_up(features, outcomes, model.coef_)
    direction = gradient / np.linalg.norm(gradient)
    assert direction == pytest.approx(-model.coef_ / 0.5, abs=1e-5)


# With noise -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [BUDGET, ZCDP(0.1), RDP(4.0, 0.4)], ids=str)
def test_the_ledger_spends_the_budget_and_the_guarantee_says_so(method: str, budget):
    features, outcomes, _ = logistic(300, 2, 1.0)
    if method == "objective" and budget is not BUDGET:
        with pytest.raises(ArgumentError, match=r"^budget must be ApproxDP"):
            PrivateGLM(budget=budget, method=method)
        return
    model = PrivateGLM(budget=budget, method=method, seed=1).fit(features, outcomes)
    assert model.ledger.spent() == model.guarantee.holds == budget
    assert model.guarantee.simulated
    said = str(model.guarantee)
    assert "features and outcomes of one person" in said
    assert "anyone who sees what is published" in said
    assert "SIMULATION" in said
    frame = model.ledger.frame
    assert list(frame["first"]) == [0] * len(frame)
    assert list(frame["last"]) == [299] * len(frame)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_gaussian_steps_add_up_to_the_mu_of_the_budget(steps: int):
    features, outcomes, _ = logistic(300, 2, 1.0)
    model = PrivateGLM(budget=BUDGET, steps=steps, seed=1).fit(features, outcomes)
    squares = (1.0 / model.ledger.frame["multiplier"] ** 2).sum()
    assert math.sqrt(squares) == pytest.approx(BUDGET.mu)
    assert len(model.ledger) == steps


def test_noise_has_the_law_of_the_ledger_and_not_a_tenth_less():
    """Of the first release, at zero, in every coordinate."""
    features, outcomes, _ = logistic(50, 2, 1.0)
    model = PrivateGLM(budget=ZCDP(0.1), steps=1).fit(features, outcomes)
    exact = model._score().add_up(features, outcomes, np.zeros(2))
    scale, found = float(model.ledger.frame["noise_scale"].iloc[0]), []
    for seed in range(400):
        release = model.set_params(seed=seed).fit(features, outcomes)._releases[0]
        found += [(release.gradient - exact) / release.std]
        assert release.std == pytest.approx(scale)
    assert stats.kstest(np.ravel(found), "norm").pvalue > 1e-4
    squares, freedom = float(np.sum(np.square(found))), 2 * len(found)
    assert 1e-4 < stats.chi2.sf(squares, freedom) < 1 - 1e-4
    assert stats.chi2.sf(squares / 0.9**2, freedom) < 1e-4


def test_published_noise_is_said_with_what_it_gives():
    features, outcomes, _ = logistic(200, 2, 1.0)
    budget = ApproxDP(0.5, 0.01)
    model = PrivateGLM(budget=budget, steps=1, calibration="paper", seed=1).fit(features, outcomes)
    multiplier = 2.0 * math.sqrt(math.log(1.25 / 0.01)) / 0.5
    assert model.ledger.frame["multiplier"].tolist() == pytest.approx([multiplier])
    delta = accounting.gaussian_delta(0.5, 1.0 / multiplier)
    assert model.guarantee.holds == model.ledger.spent() == ApproxDP(0.5, delta)
    assert delta < 0.01
    wild = PrivateGLM(budget=ApproxDP(20.0, 0.5), steps=1, calibration="paper")
    assert wild.guarantee.holds.delta > 0.5
    assert "but provides the guarantee" in str(wild.guarantee)
    assert PrivateGLM(budget=ZCDP(1.0), calibration="paper").guarantee.holds == ZCDP(1.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("length", [1.0, 4.0])
@pytest.mark.long
def test_estimates_are_near_the_truth_where_people_are_many(method: str, length: float):
    features, outcomes, theta = logistic(40_000, 3, length)
    model = PrivateGLM(budget=BUDGET, method=method, parameter_bound=length, seed=3)
    model.fit(features, outcomes)
    assert np.linalg.norm(model.coef_ - theta) < (0.12 if length == 1.0 else 0.5)
    assert np.linalg.norm(model.coef_) <= length * (1 + 1e-12)


@patch.dict(links._LINKS)
def test_registered_links_and_other_ranges_are_fitted():
    register_link(
        "tanh",
        lambda t: math.tanh(t),
        lambda t: 1.0 - math.tanh(t) ** 2,
        least_slope=0.41,
        largest_slope=1.0,
    )
    features, _, theta = logistic(20_000, 2, 0.9)
    means, rng = np.tanh(features @ theta), np.random.default_rng(1)
    outcomes = np.where(rng.random(20_000) < (1 + means) / 2, 1.0, -1.0)
    model = PrivateGLM("tanh", budget=ZCDP(0.5), outcome_range=(-1, 1), seed=1)
    assert model.fit(features, outcomes).coef_ == pytest.approx(theta, abs=0.06)
    with pytest.raises(DPBanditsError, match=r"^predict_proba needs the link"):
        model.predict_proba(features)


# Whatever the data ------------------------------------------------------------------------------

ODD = {
    "separable": (np.array([[-0.5], [0.5]] * 20), np.array([0.0, 1.0] * 20)),
    "one class": (np.ones((30, 2)) / 2, np.ones(30)),
    "one person": (np.array([[0.3, 0.1, 0.2]]), np.array([1.0])),
    "no features": (np.zeros((10, 3)), np.ones(10)),
    "no numbers": (np.full((10, 3), np.nan), np.full(10, np.nan)),
    "infinite": (np.full((10, 3), np.inf), np.full(10, -np.inf)),
    "words": ([["a", None], [10**400, 1j], [0.1, 0.2]], ["yes", object(), 1.0]),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(
    ("method", "budget"), [*itertools.product(METHODS, [BUDGET]), ("newton", None)]
)
def test_no_data_make_an_error_or_another_number_of_releases(name: str, method: str, budget):
    X, y = ODD[name]
    model = PrivateGLM(budget=budget, method=method, seed=1, parameter_bound=2.0).fit(X, y)
    assert np.all(np.isfinite(model.coef_))
    assert np.linalg.norm(model.coef_) <= 2.0 * (1 + 1e-9)
    assert model.coef_.shape == (np.shape(X)[1],)
    assert np.all(np.isfinite(model.predict(X)))
    planned = {"newton": 3 if budget else 30, "gradient": 60, "objective": 1}[method]
    assert model.ledger.releases == planned
    if method == "newton":
        intervals = model.confidence_intervals()
        assert np.all((intervals >= -2.0) & (intervals <= 2.0))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((2, 2)), ["yes", "no"], "y must hold numbers, got text only"),
        (np.zeros((2, 2)), [None, None], "y must hold numbers, got missing values only"),
        ([["a", 1.0], ["b", 2.0]], [0.0, 1.0], r"X \(column 0\) must hold numbers, got text only"),
        (
            pd.DataFrame({"when": pd.to_datetime(["2020", "2021"]), "x": [1.0, 2.0]}),
            [0.0, 1.0],
            r"X \(column 'when'\) must hold numbers, got dates only",
        ),
        (sparse.eye(2), [0.0, 1.0], r"X must be dense, got a sparse table: pass X.toarray\(\)"),
    ],
)
def test_a_column_without_a_number_is_refused_by_name(X, y, message):
    model = PrivateGLM(budget=BUDGET, seed=1)
    with pytest.raises(ArgumentError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "coef_")
    assert TYPES_ARE_PUBLIC in model.guarantee.assumptions


def _holders():
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 3, (60, 2)) / 10, rng.integers(0, 2, 60)
    frame = pd.DataFrame(x, columns=["a", "b"])
    return {
        "arrays": (x, y),
        "lists": (x.tolist(), y.tolist()),
        "a frame": (frame, pd.Series(y)),
        "nullable types": (frame.convert_dtypes(), pd.Series(y, dtype="Int64")),
        "categories": (frame.astype("category"), pd.Series(y).astype("category")),
        "arrow types": (frame.astype("double[pyarrow]"), pd.Series(y == 1, dtype="bool[pyarrow]")),
        "an arrow table": (pa.Table.from_pandas(frame), pa.array(y)),
        "decimals": (frame.map(lambda one: Decimal(str(one))), y.reshape(-1, 1)),
    }


HOLDERS = _holders()


@pytest.mark.parametrize("holder", HOLDERS)
def test_whatever_holds_the_numbers_there_is_one_estimate(holder):
    model = PrivateGLM(budget=BUDGET, seed=1)
    expected = model.fit(*HOLDERS["arrays"]).coef_.tolist()
    assert model.fit(*HOLDERS[holder]).coef_.tolist() == expected


@pytest.mark.parametrize(
    ("X", "y", "wrong"),
    [
        ([1.0, 2.0], [1.0, 0.0], "X"),
        ([[1.0], [1.0, 2.0]], [1.0, 0.0], "X"),
        (np.zeros((0, 2)), [], "X"),
        (np.zeros((3, 2)), [1.0, 0.0], "y"),
        (np.zeros((3, 2)), np.zeros((3, 2)), "y"),
    ],
)
def test_other_shapes_are_refused(X, y, wrong: str):
    with pytest.raises(ArgumentError, match=f"^{wrong} must"):
        PrivateGLM(budget=BUDGET).fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"budget": PureDP(1.0)}, "budget"),
        ({"budget": 1.0}, "budget"),
        ({"budget": ZCDP(1e-300)}, "budget"),
        ({"link": "cloglog"}, "link"),
        ({"method": "sgd"}, "method"),
        ({"steps": 0}, "steps"),
        ({"outcome_range": (1.0, 0.0)}, "outcome_range"),
        ({"outcome_range": (0.0, 1e9)}, "outcome_range"),
        ({"context_bound": 0.0}, "context_bound"),
        ({"parameter_bound": 100.0}, "reach"),
        ({"ridge": -1.0}, "ridge"),
        ({"hessian_weight": 0.0}, "hessian_weight"),
        ({"calibration": "papers"}, "calibration"),
        ({"noise": "none"}, "noise"),
        ({"noise": "secure", "seed": 1}, "seed"),
        ({"noise": "secure", "grid": 0.3}, "grid"),
        ({"method": "objective", "link": "identity"}, "link"),
        ({"method": "objective", "noise": "secure"}, "noise"),
        ({"method": "objective", "ridge": 0.0}, "ridge"),
        ({"method": "objective", "ridge": 0.1}, "ridge"),
    ],
)
def test_bad_arguments_are_named(arguments: dict, wrong: str):
    with pytest.raises(ArgumentError, match=f"^{wrong} must"):
        PrivateGLM(**{"budget": BUDGET, **arguments})


def test_it_has_the_manners_of_scikit_learn():
    model = PrivateGLM("probit", budget=BUDGET, seed=4, parameter_bound=2.0)
    copied = clone(model)
    assert repr(copied) == repr(model)
    assert copied.get_params() == model.get_params()
    with pytest.raises(DPBanditsError, match="call fit first"):
        copied.predict([[1.0]])
    with pytest.raises(DPBanditsError, match="call fit first"):
        copied.confidence_intervals()
    with pytest.raises(ArgumentError, match=r"^params must"):
        copied.set_params(colour=3)
    features, outcomes, _ = logistic(100, 2, 1.0)
    proba = copied.fit(features, outcomes[:, np.newaxis]).predict_proba(features)
    assert proba.sum(axis=1) == pytest.approx(np.ones(100))
    assert proba[:, 1] == pytest.approx(copied.predict(features))
    again = pickle.loads(pickle.dumps(copied))
    assert np.array_equal(again.coef_, copied.coef_)
    assert np.array_equal(clone(model).fit(features, outcomes).coef_, copied.coef_)
    with pytest.raises(
        ArgumentError, match=r"^X has 3 features, but PrivateGLM is expecting 2 features"
    ):
        copied.predict(np.zeros((2, 3)))
    copied.set_params(method="gradient").fit(features, outcomes)
    with pytest.raises(DPBanditsError, match="newton"):
        copied.confidence_intervals()


def test_secure_noise_is_on_the_grid_and_has_its_law():
    features, outcomes, _ = logistic(300, 2, 1.0)
    model = PrivateGLM(budget=ZCDP(0.5), noise="secure", grid=2.0**-8, steps=1)
    exact = model._score().add_up(features, outcomes, np.zeros(2), grid=2.0**-8)
    found = []
    for _ in range(300):
        release = model.fit(features, outcomes)._releases[0]
        assert np.all(release.gradient * 2**8 % 1.0 == 0.0)
        found += [(release.gradient - exact) / release.std]
    squares, freedom = float(np.sum(np.square(found))), 2 * len(found)
    assert 1e-7 < stats.chi2.sf(squares, freedom) < 1 - 1e-7  # there is no seed
    assert stats.chi2.sf(squares / 0.7**2, freedom) < 1e-7
    assert not model.guarantee.simulated
    assert model.ledger.spent() == ZCDP(0.5)
    sensitivity = float(model.ledger.frame["sensitivity"].iloc[0])
    assert sensitivity > model._score().sensitivity(0.5 * 2, dimension=2)
    approx = PrivateGLM(budget=BUDGET, noise="secure", steps=1).fit(features, outcomes)
    assert approx.ledger.spent() == BUDGET
    assert 1.0 / approx.ledger.frame["multiplier"].iloc[0] == pytest.approx(BUDGET.mu)


def test_more_people_than_exact_sums_hold_are_refused():
    model = PrivateGLM(budget=BUDGET, noise="secure", grid=2.0**-32, context_bound=0.5)
    most = model._source().most_records
    model._source = lambda: type("Source", (), {"most_records": 5, "secure": True})()
    assert most > 2**20
    with pytest.raises(ArgumentError, match=r"^grid must be coarser"):
        model.fit(np.zeros((6, 2)), np.zeros(6))


def test_what_fit_changes_is_counted_once_for_the_operator(caplog):
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-0.5, 0.5, (60, 2)), rng.integers(1, 3, 60).astype(float)
    x[:3] *= 40.0
    x[4, 0], y[5] = np.inf, np.nan
    for make in (PrivateGLM, LocalGLM, InformationWeightedGLM):
        caplog.clear()
        make(budget=BUDGET, seed=1).fit(x, y)
        (told,) = [one.getMessage() for one in caplog.records if one.name == "dpbandits"]
        for words in (
            f"{make.__name__}: in the data of 60 people, 1 cells are not numbers and count as 0",
            "the features of 3 people are longer than context_bound=1",
            "1 people have no outcome",
            f"{np.sum(y > 1.0)} outcomes lie outside of outcome_range=(0, 1)",
        ):
            assert words in told
    caplog.clear()
    PrivateGLM(budget=BUDGET, seed=1).fit(x[6:], np.clip(y[6:], 0.0, 1.0))
    assert not caplog.records
    # The type of a column decides, not what is in it: this one is fitted, and told.
    PrivateGLM(budget=BUDGET, seed=1).fit(np.column_stack([x[6:, 0], np.full(54, np.nan)]), y[6:])
    assert "1 columns hold no number" in caplog.text


@pytest.mark.parametrize("cell", [[1.0, 0.0], (1,), np.ones(2), {}, "x"])
def test_one_private_cell_of_any_kind_is_fitted_as_a_missing_one(cell):
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-0.5, 0.5, (40, 2)).tolist(), rng.integers(0, 2, 40).tolist()

    def fitted(one: Any) -> list[list[float]]:
        rows, answers = [*map(list, x)], pd.Series(y, dtype=object)
        rows[7][1] = answers[9] = one
        kinds = PrivateGLM, LocalGLM
        return [kind(budget=BUDGET, seed=1).fit(rows, answers).coef_.tolist() for kind in kinds]

    assert fitted(cell) == fitted(None)
