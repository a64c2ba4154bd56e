"""Information-weighted regression: the weighting, what one person can move, and estimates."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from worlds import logistic

from dpbandits import RDP, ZCDP, ApproxDP, ArgumentError, DPBanditsError, PureDP
from dpbandits.glm import PrivateGLM
from dpbandits.papers.glm import InformationWeightedGLM
from dpbandits.papers.glm.weights import (
    Weighting,
    score_sensitivity,
    square_sensitivity,
    weighting_of,
)
from dpbandits.privacy import smat, svec

DAMPINGS = [math.inf, 0.3, 0.01]  # the first is the local model


def narrow(n: int, d: int = 3, seed: int = 1) -> np.ndarray:
    """Features whose last direction is a hundredth of the first, for everybody."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, d)) * np.logspace(0, -2, d)
    return features / np.maximum(1.0, np.linalg.norm(features, axis=1, keepdims=True))


def rare(n: int, d: int = 3, seed: int = 1) -> np.ndarray:
    """Unit vectors along the axes, the last in one person of a hundred or so."""
    shares = np.logspace(0, -2, d)
    axes = np.random.default_rng(seed).choice(d, n, p=shares / shares.sum())
    return np.eye(d)[axes]


# The weighting ---------------------------------------------------------------------------------


def test_the_closed_form_solves_its_equation():
    rng = np.random.default_rng(1)
    half = rng.standard_normal((4, 2))
    for ridge in (1e-4, 0.1, 3.0):
        moments = half @ half.T  # of rank two
        a = weighting_of(moments, ridge)
        assert a @ moments @ a + ridge * a == pytest.approx(np.eye(4), abs=1e-9 / ridge)


@pytest.mark.parametrize("damping", DAMPINGS)
@pytest.mark.parametrize("design", [narrow, rare])
def test_steps_end_where_every_direction_has_the_same_information(design, damping):
    features, ridge = design(4000), 1e-3
    weighting = Weighting(np.eye(3), damping)
    for _ in range(40):
        mean = smat(weighting.squares(features).mean(axis=0))
        weighting = Weighting(weighting_of(weighting.moments(mean), ridge), damping)
    a = weighting.matrix
    lengths = np.linalg.norm(features @ a, axis=1, keepdims=True)
    w = 1 / lengths if math.isinf(damping) else 1 / (1 + damping * lengths)
    turned = features @ a
    information = (turned * w).T @ turned / len(features)
    assert information + ridge * a == pytest.approx(np.eye(3), abs=1e-9)
    if math.isinf(damping):
        assert lengths.mean() <= 3  # the trace; with A = I / ridge it would be hundreds
    assert a[2, 2] > 5 * a[0, 0]


def test_two_scales_that_can_be_solved_by_hand():
    """Half the people have (1, 0), half (0, s): u1 / 2 = 1 = u2 s / 2 as the ridge vanishes."""
    features = np.array([[1.0, 0.0], [0.0, 0.1]])
    weighting = Weighting(np.eye(2), math.inf)
    for _ in range(60):
        moments = weighting.moments(smat(weighting.squares(features).mean(axis=0)))
        weighting = Weighting(weighting_of(moments, 1e-9), math.inf)
    assert weighting.matrix == pytest.approx(np.diag([2.0, 20.0]), rel=1e-6)


# What one person can move ----------------------------------------------------------------------


def tilted(damping: float, spread: float) -> Weighting:
    """A of largest eigenvalue 1, twice, and one of ``spread``."""
    q, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))
    a = q @ np.diag([1.0, 1.0, spread]) @ q.T
    return Weighting(0.5 * (a + a.T) * 7.0, damping)


@pytest.mark.parametrize("spread", [1.0, 1e-3])
@pytest.mark.parametrize("damping", DAMPINGS)
def test_no_two_records_are_farther_apart_than_the_sensitivity_and_some_are_as_far(damping, spread):
    """By search over features in the ball; a sensitivity 1e-4 smaller fails."""
    weighting, rng = tilted(damping, spread), np.random.default_rng(1)

    def inside(at):
        x = np.reshape(at, (2, 3))
        return x / np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))

    def apart(at):
        one, other = weighting.squares(inside(at))
        return float(np.linalg.norm(one - other))

    def scores_apart(at):
        one, other = weighting.instruments(inside(at))
        return float(max(np.linalg.norm(one - other), np.linalg.norm(one + other)))

    for distance, sensitivity in (
        (apart, square_sensitivity(3)),
        (scores_apart, score_sensitivity(3)),
    ):
        starts = rng.standard_normal((600, 6)) * 2
        found = [distance(at) for at in starts]
        best = max(
            -optimize.minimize(
                lambda v, f=distance: -f(v), starts[i], method="Powell", options={"xtol": 1e-8}
            ).fun
            for i in np.argsort(found)[-3:]
        )
        assert max(*found, best) <= sensitivity
        assert best >= sensitivity * (1 - 1e-4)


@pytest.mark.parametrize("damping", DAMPINGS)
def test_the_bound_is_that_of_the_formulas_and_reached_by_an_eigenvector(damping):
    weighting = tilted(damping, 0.1)
    axis = np.linalg.eigh(weighting.matrix)[1][:, 2:].T
    assert np.linalg.norm(weighting.instruments(axis)) == pytest.approx(1.0)
    assert np.linalg.norm(weighting.squares(axis)) == pytest.approx(1.0)
    x = np.array([[0.3, -0.2, 0.4]])
    length = np.linalg.norm(weighting.matrix @ x[0])
    w = 1 / length if math.isinf(damping) else 1 / (1 + damping * length)
    bound = 1 if math.isinf(damping) else 7 / (1 + damping * 7)
    assert weighting.bound == pytest.approx(bound)
    assert bound * weighting.instruments(x)[0] == pytest.approx(w * weighting.matrix @ x[0])
    root = np.linalg.cholesky(weighting.matrix)  # any root has the same p^T p
    assert bound * np.linalg.norm(weighting.squares(x)) == pytest.approx(
        w * np.linalg.norm(root.T @ x[0]) ** 2
    )
    mean = smat(weighting.squares(x)[0])
    assert weighting.moments(mean) == pytest.approx(w * np.outer(x, x), abs=1e-9)


NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


@given(
    one=st.lists(NUMBERS, min_size=4, max_size=4),
    other=st.lists(NUMBERS, min_size=4, max_size=4),
    damping=st.sampled_from([None, 0.2]),
    link=st.sampled_from(["identity", "logistic", "probit"]),
    secure=st.booleans(),
)
@settings(max_examples=60)
@pytest.mark.long
def test_whatever_people_enter_moves_the_sums_by_no_more(one, other, damping, link, secure):
    trust = "local" if damping is None else "central"
    model = InformationWeightedGLM(
        link,
        budget=ZCDP(1.0),
        trust_model=trust,
        damping=damping,
        outcome_range=(-1.0, 2.0),
        seed=1,
    )
    weighting = Weighting(np.diag([9.0, 1.0, 0.01]), damping or math.inf)
    moved = []
    for row in (one, other):
        people = model._people(np.array([row[:3]]), np.array(row[3:]))
        people.source, theta = None, np.array([0.5, -0.8, 0.1])
        moved.append(
            (
                svec(people.mean_square(weighting, range(1))),
                people.mean_score(weighting, theta, range(1)),
            )
        )
    (a, b), (c, d) = moved
    assert np.linalg.norm(a - c) <= square_sensitivity(3)
    assert np.linalg.norm(b - d) <= score_sensitivity(3)


# Estimates -------------------------------------------------------------------------------------


@pytest.mark.parametrize("trust", ["central", "local"])
def test_without_noise_it_is_found_that_every_weighting_has_the_same_truth(trust):
    """Outcomes without errors: the weighted equations and least squares have one solution."""
    features, theta = narrow(300), np.array([0.3, -0.4, 0.8])
    model = InformationWeightedGLM(
        "identity", budget=None, trust_model=trust, outcome_range=(-1.0, 1.0)
    ).fit(features, features @ theta)
    assert model.coef_ == pytest.approx(theta, abs=5e-4)  # the ridge, times A


def test_without_noise_and_damping_it_is_maximum_likelihood():
    features, outcomes, _ = logistic(2000, 3, 0.8)
    ordinary = PrivateGLM(budget=None).fit(features, outcomes)
    weighted = InformationWeightedGLM(budget=None).fit(features, outcomes)
    assert weighted.coef_ == pytest.approx(ordinary.coef_, abs=1e-4)
    assert np.allclose(weighted.predict(features), ordinary.predict(features), atol=1e-4)
    other = InformationWeightedGLM(budget=None, damping=5.0).fit(features, outcomes)
    assert np.abs(other.coef_ - ordinary.coef_).max() > 1e-3


@pytest.mark.parametrize("link", ["identity", "logistic", "probit"])
@pytest.mark.parametrize("trust", ["central", "local"])
def test_it_finds_what_noise_leaves_to_find(trust, link):
    """At a budget so large that it is the batches that are tested, each with its own people."""
    features, theta = narrow(30_000), np.array([0.5, -0.3, 0.8])
    means = InformationWeightedGLM(link, budget=None)._score().mean(features, theta)
    lo = -1.0 if link == "identity" else 0.0
    model = InformationWeightedGLM(
        link, budget=ZCDP(1e5), trust_model=trust, outcome_range=(lo, 1.0), seed=1
    ).fit(features * 3.0, means)
    assert np.sqrt(np.mean((features @ (3.0 * model.coef_ - theta)) ** 2)) > 0.05  # longer than 1
    model.set_params(context_bound=3.0).fit(features * 3.0, means)
    errors = features @ (3.0 * model.coef_ - theta)
    assert np.sqrt(np.mean(errors**2)) < 0.01


@pytest.mark.parametrize(("trust", "reports"), [("central", 1), ("local", 400)])
def test_noise_is_as_large_as_the_budget_asks(trust, reports):
    """Nobody has an outcome, so that means are noise; 5 per cent more or less fail."""
    model = InformationWeightedGLM(budget=ZCDP(0.3), trust_model=trust, seed=1)
    people = model._people(np.ones((400, 8)), np.full(400, np.nan))
    weighting = Weighting(np.diag(np.arange(1.0, 9.0)), math.inf)
    squares, scores = [], []
    for _ in range(400):
        squares.append(svec(people.mean_square(weighting, range(400))))
        scores.append(people.mean_score(weighting, np.zeros(8), range(400)))
    unit = math.sqrt(reports / 0.6) / 400
    assert np.std(squares) == pytest.approx(math.sqrt(2) * unit, rel=0.04)
    assert np.std(scores) == pytest.approx(2 * unit, rel=0.04)


@pytest.mark.parametrize("trust", ["central", "local"])
@pytest.mark.parametrize("budget", [ZCDP(0.5), ApproxDP(1.0, 1e-6), RDP(4.0, 0.5)])
def test_every_person_is_in_one_batch_that_spends_the_budget(budget, trust):
    features, outcomes, _ = logistic(700, 2, 0.5)
    model = InformationWeightedGLM(budget=budget, trust_model=trust, seed=3)
    model.fit(features, outcomes)
    ledger = model.ledger
    assert ledger.spent() == budget
    assert ledger.releases == 7
    assert model.guarantee.trust_model == trust
    assert model.guarantee.holds == budget
    finding, regressing = model._batches(700)
    people = [person for batch in finding + regressing for person in batch]
    assert people == list(range(700))


def test_bad_entries_count_as_zero_and_nothing_shows_of_them():
    features, outcomes, _ = logistic(500, 2, 0.5)
    clean, dirty, weird = features.copy(), features.copy(), outcomes.copy()
    clean[::7, 1], dirty[::7, 1] = 0.0, [math.nan, math.inf, 1e200, -math.inf] * 18
    weird[::5] = math.nan
    model = InformationWeightedGLM(budget=ZCDP(1.0), seed=1)
    assert np.array_equal(model.fit(clean, outcomes).coef_, model.fit(dirty, outcomes).coef_)
    assert np.all(np.isfinite(model.fit(dirty, weird).coef_))
    silent, gone = clean.copy(), clean.copy()
    gone[::5] = 0.0
    assert np.array_equal(model.fit(silent, weird).coef_, model.fit(gone, weird).coef_)
    nothing = np.full((500, 2), math.nan)
    assert np.all(np.isfinite(model.fit(nothing, np.full(500, math.nan)).coef_))
    assert model.ledger.releases == 7


@pytest.mark.parametrize("trust", ["central", "local"])
@pytest.mark.parametrize("rho", [1e-12, 1e8])
def test_numerics_are_safe_at_any_budget(trust, rho):
    for features in (narrow(300), rare(300), np.zeros((300, 3)), np.full((300, 1), 1e-200)):
        model = InformationWeightedGLM(budget=ZCDP(rho), trust_model=trust, seed=1)
        model.fit(features, np.ones(300))
        assert np.linalg.norm(model.coef_) <= 1.0 + 1e-9
        assert np.all(np.linalg.eigvalsh(model.weighting_) > 0.0)


@pytest.mark.parametrize("trust", ["central", "local"])
def test_secure_noise_estimates_too(trust):
    pytest.importorskip("opendp")
    features, outcomes, _ = logistic(60, 2, 0.5)
    model = InformationWeightedGLM(budget=ZCDP(1e6), trust_model=trust, noise="secure")
    assert np.all(np.isfinite(model.fit(features, outcomes).coef_))
    assert not model.guarantee.simulated
    assert model.ledger.spent() == ZCDP(1e6)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"trust_model": "shuffle"}, "trust_model"),
        ({"weight_batches": 1}, "weight_batches"),
        ({"batches": 0}, "batches"),
        ({"weight_share": 1.0}, "weight_share"),
        ({"ridge": 0.0}, "ridge"),
        ({"damping": math.inf}, "damping"),
        ({"damping": 1.0, "trust_model": "local"}, "damping"),
        ({"budget": PureDP(1.0)}, "budget"),
        ({"link": "logit"}, "link"),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(changes: dict, wrong: str):
    with pytest.raises(ArgumentError, match=wrong) as refused:
        InformationWeightedGLM(**{"budget": ZCDP(1.0), **changes})
    assert refused.value.argument in (wrong, None)


def test_shapes_are_refused():
    model = InformationWeightedGLM(budget=ZCDP(1.0))
    with pytest.raises(DPBanditsError, match="call fit first"):
        model.predict([[1.0]])
    with pytest.raises(
        ArgumentError, match="X must have at least one row for each of 7 batches, got 5"
    ):
        model.fit(np.ones((5, 2)), np.ones(5))
    with pytest.raises(ArgumentError, match="y must have 5 rows, got 4"):
        model.fit(np.ones((5, 2)), np.ones(4))
    assert repr(model) == "InformationWeightedGLM(budget=ZCDP(rho=1.0))"
