"""The MovieLens loader: on small files of its own, and on the published ones where they are at
hand.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpbandits import ArgumentError
from dpbandits.environments import movielens

NAME = "movielens-100k"

FILES = {
    "u.genre": b"unknown|0\nDrama|1\nWar|2\n\n",
    "u.item": (
        (
            "1|Léon (1994)|01-Jan-1994||u|0|1|0\n2|Das Boot"
            " (1981)|04-Apr-1997||u|0|1|1\n3|unknown||||1|0|0\n4|Other"
            " (1950)|01-Jan-1950||u|0|0|1\n"
        ).encode("latin-1")
    ),
    "u.data": b"5\t1\t4\t300\n6\t2\t3\t100\n5\t2\t5\t100\n5\t4\t1\t200\n7\t3\t5\t50\n",
}


@pytest.fixture
def folder(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_ratings_are_in_the_order_of_time_and_then_of_the_file(folder):
    ratings = movielens(folder, check=False).ratings
    assert list(ratings.columns) == ["user", "movie", "rating", "timestamp"]
    assert ratings["timestamp"].tolist() == [50, 100, 100, 200, 300]
    assert ratings["user"].tolist() == [7, 6, 5, 5, 5]
    assert ratings.index.tolist() == [0, 1, 2, 3, 4]


def test_movies_have_genres_and_years(folder):
    data = movielens(folder, check=False)
    assert data.genres == ["unknown", "Drama", "War"]
    assert data.movies["title"].tolist()[0] == "Léon (1994)"
    assert data.movies["year"].tolist() == [1994, 1997, 0, 1950]
    assert data.movies[data.genres].to_numpy().tolist() == [
        [0, 1, 0],
        [0, 1, 1],
        [1, 0, 0],
        [0, 0, 1],
    ]
    assert repr(data) == "MovieLens(3 users, 4 movies, 5 ratings)"


def test_features_do_not_depend_on_ratings(folder):
    before = movielens(folder, check=False).features(3)
    (folder / "u.data").write_bytes(b"5\t1\t1\t300\n")
    assert np.array_equal(movielens(folder, check=False).features(3), before)
    assert np.linalg.norm(before, axis=1).max() == pytest.approx(1.0)


def test_movies_rated_high_enough_are_rewarded(folder):
    data = movielens(folder, check=False)
    # of users 7 and 5
    assert data.environment(components=2, per_round=2).state.liked.tolist() == [
        2,
        0,
        1,
    ]
    assert data.environment(components=2, per_round=2, liked_from=5).state.liked.tolist() == [2, 1]
    assert data.environment(components=2, per_round=2, liked_from=1).state.liked.tolist() == [
        2,
        1,
        0,
        1,
        3,
    ]
    with pytest.raises(ArgumentError, match="liked_from must be an integer between 1 and 5"):
        data.environment(liked_from=6)


def rows(environment):
    return np.diff(environment.state.prefix, axis=0).astype(int).tolist()


def test_liked_movies_reward_all_their_genres_in_the_order_of_time(folder):
    """Movies 3 (of no genre), 2, 2, 4, 1; ratings 5, 3, 5, 1, 4."""
    data = movielens(folder, check=False)
    table = data.reward_table()
    assert table.arm_names == ["Drama", "War"]
    assert rows(table) == [[0, 0], [0, 0], [1, 1], [0, 0], [1, 0]]
    assert rows(data.reward_table(liked_from=1)) == [[0, 0], [1, 1], [1, 1], [0, 1], [1, 0]]
    with pytest.raises(ArgumentError, match="liked_from must be an integer between 1 and 5"):
        data.reward_table(liked_from=0)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named_with_what_to_do(folder, name):
    (folder / name).unlink()
    with pytest.raises(ArgumentError, match=rf"folder must hold {name}.*MovieLens 100K.*GroupLens"):
        movielens(folder, check=False)


def test_other_files_than_the_published_are_refused(folder):
    with pytest.raises(ArgumentError, match=r"u\.data as published, got .* bytes with SHA-256"):
        movielens(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        # 7\t3
        (
            "u.data",
            FILES["u.data"][:-6],
            r"u\.data with the columns user, movie, rating, timestamp",
        ),
        ("u.data", b"5\t1\t4\t300\t1\n", r"u\.data with the columns .* line 1 has 5 values"),
        ("u.data", b"", r"u\.data with the columns"),
        ("u.data", b"5\t9\t4\t300\n", r"each movie also in u\.item, got 1 that"),
        ("u.item", FILES["u.item"][:-4], r"u\.item with the columns"),
        ("u.item", b"1|x|01-Jan-1994||u|0|1|0|1\n", r"u\.item with the columns"),
        ("u.genre", b"unknown\n", r"u\.genre with the columns genre, number"),
    ],
)
def test_damaged_files_are_refused(folder, name, content, message):
    (folder / name).write_bytes(content)
    with pytest.raises(ArgumentError, match=message):
        movielens(folder, check=False)


@pytest.fixture(scope="session")
def original(published):
    return movielens(published(NAME))


def test_the_published_counts(original):
    assert original.ratings["user"].nunique() == 943
    assert len(original.movies) == 1_682
    assert len(original.ratings) == 100_000
    assert (original.ratings["rating"] >= 4).sum() == 55_375
    assert len(original.genres) == 19
    assert original.ratings["timestamp"].is_monotonic_increasing
    assert (original.movies["year"] == 0).sum() == 1


def test_the_published_data_as_a_bandit(original, play):
    """The features know something: a linear model fitted on half of the rounds finds the liked
    movie twice as often as chance.
    """
    environment = original.environment()
    assert (environment.n_arms, environment.dimension, environment.context_bound) == (25, 20, 1.0)
    rounds = play(environment, np.zeros(8000), seed=1)
    rewards = np.eye(25)[rounds.hidden]
    seen = rounds.contexts[:4000].reshape(-1, 20)
    theta = np.linalg.solve(seen.T @ seen + np.eye(20), seen.T @ rewards[:4000].ravel())
    chosen = (rounds.contexts[4000:] @ theta).argmax(axis=1)
    assert 25 * (chosen == rounds.hidden[4000:]).mean() > 2.0


def test_the_published_data_as_a_table(original):
    table = original.reward_table()
    assert (table.horizon, table.n_arms) == (100_000, 18)
    best = np.argsort(table.means())[::-1][:2]
    assert [table.arm_names[a] for a in best] == ["Drama", "Comedy"]
    assert round(float(table.means()[best[0]] * 100_000)) == 24_605  # counted with awk
