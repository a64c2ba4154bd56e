"""Recommendations: who is shown what, by brute force on small data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpbandits import ArgumentError
from dpbandits.environments import Recommendations

ALPHA = 1e-4

ITEMS = 7
LIKES = {0: [1, 3], 1: [6], 2: [0, 2, 5]}
FEATURES = np.column_stack([np.arange(ITEMS) / 10, np.ones(ITEMS)])
USERS = [user for user, liked in LIKES.items() for _ in liked]
LIKED = [item for liked in LIKES.values() for item in liked]


def small(per_round=3):
    return Recommendations(FEATURES, USERS, LIKED, per_round=per_round)


def items_of(rounds):
    return np.rint(rounds.contexts[:, :, 0] * 10).astype(int)


def law(per_round):
    """The probability of every (items in order, place of the liked one), from the definition."""
    from itertools import permutations

    chances = {}
    for liked in LIKES.values():
        others = [item for item in range(ITEMS) if item not in liked]
        orders = list(permutations(others, per_round - 1))
        for item in liked:
            for order in orders:
                for place in range(per_round):
                    key = (*order[:place], item, *order[place:], place)
                    chance = 1 / len(LIKES) / len(liked) / len(orders) / per_round
                    chances[key] = chances.get(key, 0.0) + chance
    return chances


def test_what_is_shown_has_the_stated_law(play):
    """60,000 rounds over all 270 outcomes: likes drawn uniformly from all pairs, instead of a user
    first, are rejected.
    """
    rounds = play(small(), np.zeros(60_000), seed=1)
    chances = law(3)
    assert sum(chances.values()) == pytest.approx(1.0)
    observed = dict.fromkeys(chances, 0)
    for row, place in zip(items_of(rounds), rounds.hidden, strict=True):
        observed[(*row.tolist(), int(place))] += 1
    expected = np.array(list(chances.values())) * 60_000
    assert expected.min() > 5
    assert stats.chisquare(list(observed.values()), expected).pvalue > ALPHA


def test_only_the_liked_item_is_rewarded(play):
    arms = np.random.default_rng(2).integers(0, 3, 2000)
    rounds = play(small(), arms, seed=3)
    assert rounds.rewards.tolist() == (arms == rounds.hidden).astype(float).tolist()
    assert rounds.regrets.tolist() == (1.0 - rounds.rewards).tolist()
    assert np.array_equal(rounds.contexts, play(small(), np.zeros(2000), seed=3).contexts)


def test_a_round_may_show_all_that_is_left(play):
    rounds = play(small(per_round=5), np.zeros(500), seed=4)
    for row, place in zip(items_of(rounds), rounds.hidden, strict=True):
        owners = [user for user, liked in LIKES.items() if row[place] in liked]
        assert len(set(row)) == 5
        assert any(not set(np.delete(row, place)) & set(LIKES[user]) for user in owners)


def test_one_item_per_round_is_the_liked_one(play):
    rounds = play(small(per_round=1), np.zeros(200), seed=5)
    assert rounds.rewards.tolist() == [1.0] * 200
    assert set(items_of(rounds)[:, 0]) == set(LIKED)


def test_order_and_repeats_of_the_pairs_do_not_matter():
    shuffled = Recommendations(FEATURES, [*USERS[::-1], 2, 2], [*LIKED[::-1], 5, 0], per_round=3)
    assert repr(shuffled) == repr(small())


def test_users_without_likes_do_not_come():
    """Numbers of users may have holes, where other columns of a table dropped them."""
    holes = Recommendations(FEATURES, [user * 1000 for user in USERS], LIKED, per_round=3)
    assert holes.state.starts.tolist() == [0, 2, 3, 6]


def test_it_describes_itself():
    environment = small()
    assert (environment.n_arms, environment.dimension, environment.support) == (3, 2, (0.0, 1.0))
    assert environment.context_bound == pytest.approx(np.hypot(0.6, 1.0))
    assert (environment.horizon, environment.parameter) == (None, None)
    assert repr(environment) != repr(small(per_round=2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (FEATURES, [0], [7]),
            "items must be row numbers of features, from 0 to 6, got another number in row 0",
        ),
        ((FEATURES, [0, 1], [1]), "users and items must be equally long"),
        ((FEATURES, [], []), "users must be an array of numbers of shape \\(n\\), and not empty"),
        (
            (FEATURES, [-1], [1]),
            "users must hold whole numbers of at least 0|users must hold whole",
        ),
        ((FEATURES, [0], [1.5]), "items must hold whole numbers"),
        ((np.full((3, 2), np.nan), [0], [1]), "features must hold finite numbers"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        Recommendations(*arguments, per_round=2)


def test_too_many_items_per_round_are_refused():
    with pytest.raises(
        ArgumentError,
        match="per_round must be at most 5, got 6: a user liked 3 of the 7 items",
    ):
        small(per_round=6)
    with pytest.raises(ArgumentError, match="per_round must be an integer between 1 and 7"):
        small(per_round=8)
