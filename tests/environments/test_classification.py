"""Classification as a bandit: who comes, what is shown, what is rewarded."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import stats

from dpbandits import ArgumentError
from dpbandits.environments import Classification, classification
from dpbandits.errors import MissingExtra

ALPHA = 1e-4

RNG = np.random.default_rng(1)
FEATURES = RNG.normal(size=(12, 3)) * [1.0, 50.0, 0.01] + [0.0, 1000.0, 5.0]
LABELS = np.tile([2, 0, 1], 4)


def small(**options):
    return Classification(FEATURES, LABELS, **options)


def persons(environment, rounds):
    """Which row of the data every round shows."""
    first = rounds.contexts[:, 0, : environment.state.rows.shape[1]]
    return np.array([np.abs(environment.state.rows - row).sum(axis=1).argmin() for row in first])


def test_every_arm_sees_the_person_at_its_own_place(play):
    environment = small()
    rounds = play(environment, np.zeros(50), seed=2)
    for context, person in zip(rounds.contexts, persons(environment, rounds), strict=True):
        for arm in range(3):
            assert np.array_equal(
                context[arm], np.kron(np.eye(3)[arm], environment.state.rows[person])
            )


def test_only_the_class_of_the_person_is_rewarded(play):
    environment = small()
    arms = np.random.default_rng(3).integers(0, 3, 500)
    rounds = play(environment, arms, seed=4)
    right = arms == LABELS[persons(environment, rounds)]
    assert rounds.rewards.tolist() == right.astype(float).tolist()
    assert rounds.regrets.tolist() == (1.0 - right).tolist()


def test_anyone_may_come_in_any_round(play):
    environment = small()
    counts = np.bincount(
        persons(environment, play(environment, np.zeros(6000), seed=5)), minlength=12
    )
    assert stats.chisquare(counts).pvalue > ALPHA
    assert environment.horizon is None


def test_everybody_comes_once_in_the_order_of_the_seed(play):
    one, same, other = small(once=True, seed=1), small(once=True, seed=1), small(once=True, seed=2)
    assert one.horizon == 12
    order = persons(one, play(one, np.zeros(12), seed=6))
    assert sorted(order) == list(range(12))
    assert list(order) != list(range(12))
    assert list(persons(same, play(same, np.zeros(12), seed=7))) == list(order)  # whatever the run
    assert list(persons(other, play(other, np.zeros(12), seed=6))) != list(order)
    assert len({repr(one), repr(other), repr(small())}) == 3
    assert repr(one) == repr(same)


def test_rows_have_length_one_and_units_do_not_matter():
    environment = small()
    assert np.linalg.norm(environment.state.rows, axis=1) == pytest.approx(1.0)
    assert environment.context_bound == 1.0
    rescaled = Classification(FEATURES * [10.0, 0.3, 7.0] + 4.0, LABELS)
    assert rescaled.state.rows == pytest.approx(environment.state.rows, abs=5e-6)


def test_all_components_keep_all_distances():
    """Standardised rows, up to a rotation: ratios of distances are those before it."""
    rows = small().state.rows
    scores = rows[:, :-1] / rows[:, -1:]
    standard = (FEATURES - FEATURES.mean(axis=0)) / FEATURES.std(axis=0)
    ours, theirs = (np.linalg.norm(x[:, None] - x[None], axis=2) for x in (scores, standard))
    assert ours * np.sqrt(3) == pytest.approx(theirs, abs=5e-6)
    assert small(components=2).state.rows[:, :-1].shape == (12, 2)


def test_constant_columns_say_nothing():
    wide = Classification(np.column_stack([FEATURES, np.full(12, 0.1)]), LABELS, components=3)
    assert wide.state.rows == pytest.approx(small().state.rows, abs=5e-6)
    nothing = Classification(np.ones((2, 1)), [0, 1])
    assert nothing.state.rows.tolist() == [[0.0, 1.0]] * 2


def test_one_class(play):
    rounds = play(Classification([[1.0], [2.0]], [0, 0]), np.zeros(10), seed=1)
    assert rounds.rewards.tolist() == [1.0] * 10


@pytest.mark.parametrize(
    ("name", "shape"), [("digits", (1797, 10, 11)), ("breast_cancer", (569, 2, 11))]
)
def test_shipped_data(name, shape):
    environment = classification(name)
    rows, labels, _ = environment.state
    assert (len(rows), environment.n_arms, rows.shape[1]) == shape
    assert environment.dimension == shape[1] * shape[2]
    right = (rows @ np.linalg.lstsq(rows, np.eye(shape[1])[labels])[0]).argmax(axis=1) == labels
    assert right.mean() > 0.8  # a linear model of the contexts can do it
    assert classification(name, once=True).horizon == shape[0]


def test_classes_have_names():
    assert classification("digits").arm_names == list("0123456789")
    assert small().arm_names == ["arm 0", "arm 1", "arm 2"]
    assert small(names="abc").arm_names == ["a", "b", "c"]


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtra, match=r"dpbandits\[datasets\]"):
        classification("digits")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Classification([[np.nan]], [0]),
            "features must hold finite numbers, got NaN or nothing in row 0, column 0",
        ),
        (
            lambda: Classification(FEATURES, LABELS[1:]),
            "features and labels must be equally long, got 12 and 11",
        ),
        (
            lambda: Classification(FEATURES, LABELS + 1),
            "labels must number the classes 0, 1, ... without gaps, got 3",
        ),
        (
            lambda: Classification(FEATURES, LABELS - 1),
            r"labels must hold whole numbers in \[0, ",
        ),
        (
            lambda: Classification(FEATURES, LABELS / 2),
            r"labels must hold whole numbers in \[0, ",
        ),
        (lambda: small(components=4), "components must be an integer between 1 and 3"),
        (lambda: small(once=1), "once must be True or False"),
        (lambda: small(seed=-1), "seed must be an integer"),
        (lambda: small(names=["a"]), "names must hold 3 names"),
        (lambda: classification("iris"), "name must be one of 'breast_cancer', 'digits'"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
