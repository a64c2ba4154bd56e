"""The Last.fm loader: on small files of its own, and on the published ones where they are at hand."""

from __future__ import annotations

import numpy as np
import pytest

from dpbandits import ArgumentError
from dpbandits.environments import lastfm

NAME = "hetrec2011-lastfm-2k"

FILES = {
    "artists.dat": (
        (
            'id\tname\turl\tpictureURL\n1\tSigur Rós\tu\tp\n3\t"The"'
            " Who\tu\tp\n7\tNA\tu\t\n9\tnull\tu\tp\n4\tnobody tagged\tu\tp\n8\tnor me\tu\tp\n"
        ).encode()
    ),
    "tags.dat": "tagID\ttagValue\r\n1\tpost-rock\r\n2\tcafé\r\n5\tnull\r\n".encode("latin-1"),
    "user_artists.dat": (
        b"userID\tartistID\tweight\r\n2\t1\t13\r\n2\t7\t1\r\n40\t3\t99\r\n40\t9\t2\r\n"
    ),
    "user_taggedartists.dat": (
        b"userID\tartistID\ttagID\tday\tmonth\tyear\r\n"
        b"2\t1\t1\t1\t4\t2009\r\n40\t1\t1\t1\t4\t2009\r\n2\t1\t2\t1\t4\t2009\r\n2\t3\t2\t1\t5\t2010\r\n"
        b"40\t7\t5\t1\t5\t2010\r\n2\t9\t1\t1\t5\t2010\r\n2\t1000\t2\t1\t5\t1956\r\n"
    ),
}


@pytest.fixture
def folder(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_tables_are_read_as_they_are(folder):
    data = lastfm(folder, check=False)
    assert data.artists["name"].tolist() == [
        "Sigur Rós",
        '"The" Who',
        "NA",
        "null",
        "nobody tagged",
        "nor me",
    ]
    assert data.artists["id"].tolist() == [1, 3, 7, 9, 4, 8]
    assert data.tags["tagValue"].tolist() == ["post-rock", "café", "null"]
    assert data.listening.to_numpy().tolist() == [[2, 1, 13], [2, 7, 1], [40, 3, 99], [40, 9, 2]]
    assert data.assignments.shape == (7, 6)
    assert repr(data) == "LastFM(2 users, 6 artists, 4 listening rows, 7 tag assignments, 3 tags)"


def test_features_come_from_the_tags_of_listed_artists(folder):
    features = lastfm(folder, check=False).features(3)
    # the tag on artist 1000 is nowhere
    counts = np.array([[2, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 0, 0], [0, 0, 0]])
    weighted = counts * (np.log(7 / (1 + np.array([2, 2, 1]))) + 1)
    words = weighted / np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-9)
    assert np.array_equal(features[4], features[5])
    distances, expected = (np.linalg.norm(x[:, None] - x[None], axis=2) for x in (features, words))
    scale = np.linalg.norm(words - words.mean(axis=0), axis=1).max()
    assert distances * scale == pytest.approx(expected, abs=5e-6)


def test_listened_artists_are_rewarded(folder, play):
    environment = lastfm(folder, check=False).environment(components=3, per_round=4)
    features = environment.features
    rounds = play(environment, np.zeros(300), seed=1)
    for context, place in zip(rounds.contexts, rounds.hidden, strict=True):
        shown = [int(np.abs(features - row).sum(axis=1).argmin()) for row in context]
        listened = {0: {0, 2}, 2: {0, 2}, 1: {1, 3}, 3: {1, 3}}[shown[place]]
        assert not set(np.delete(shown, place)) & listened


VISITS = (
    b"userID\tartistID\ttagID\tday\tmonth\tyear\r\n"
    b"2\t1\t1\t1\t5\t2009\r\n2\t3\t1\t1\t5\t2009\r\n2\t1\t2\t3\t4\t2009\r\n"
    b"40\t1\t1\t1\t5\t2009\r\n41\t7\t5\t2\t6\t2008\r\n40\t7\t5\t3\t4\t2009\r\n"
)
LISTENERS = b"userID\tartistID\tweight\r\n2\t7\t13\r\n2\t1\t1\r\n40\t3\t99\r\n40\t7\t2\r\n"


def test_visitors_reward_the_artists_they_listen_to_in_the_order_of_time(folder):
    """Users 41 (who listens to nobody), 2, 40, 2 and 40; artist 7 has two listeners, 1 and 3 have
    one, and 9 has none.
    """
    (folder / "user_taggedartists.dat").write_bytes(VISITS)
    (folder / "user_artists.dat").write_bytes(LISTENERS)
    data = lastfm(folder, check=False)
    table = data.reward_table(artists=3)
    assert table.arm_names == ["NA", "Sigur Rós", '"The" Who']
    of_2, of_40 = [1, 1, 0], [1, 0, 1]
    assert np.diff(table.state.prefix, axis=0).astype(int).tolist() == [
        [0, 0, 0],
        of_2,
        of_40,
        of_2,
        of_40,
    ]
    assert data.reward_table(artists=1).arm_names == ["NA"]
    with pytest.raises(ArgumentError, match="artists must be an integer between 1 and 3, got 4"):
        data.reward_table(artists=4)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named_with_what_to_do(folder, name):
    (folder / name).unlink()
    with pytest.raises(
        ArgumentError, match=rf"folder must hold {name}.*hetrec2011-lastfm-2k.*GroupLens"
    ):
        lastfm(folder, check=False)


@pytest.mark.parametrize("bad", [None, 3.5, "\0"], ids=repr)
def test_what_is_no_folder_is_refused(bad):
    with pytest.raises(ArgumentError, match=r"folder must hold artists\.dat"):
        lastfm(bad)


def test_other_files_than_the_published_are_refused(folder):
    with pytest.raises(
        ArgumentError, match=r"artists\.dat as published, got .* bytes with SHA-256 .*check=False"
    ):
        lastfm(folder)
    with pytest.raises(ArgumentError, match="check must be True or False"):
        lastfm(folder, check="no")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        # 40\t9
        (
            "user_artists.dat",
            FILES["user_artists.dat"][:-5],
            r"user_artists\.dat with the columns userID, artistID, weight",
        ),
        ("user_artists.dat", b"", r"user_artists\.dat with the columns"),
        ("user_artists.dat", b"userID\tartistID\r\n2\t1\r\n", "line 1 has 2 values"),
        (
            "user_artists.dat",
            b"userID\tartistID\tweight\r\n2\tx\t1\r\n",
            r"user_artists\.dat with the columns",
        ),
        ("user_artists.dat", b"userID\tartistID\tweight\r\n2\t1\t1\t1\r\n", "line 2 has 4 values"),
        (
            "user_artists.dat",
            b"userID\tartistID\tweight\r\n2\t5\t1\r\n2\t6\t1\r\n",
            r"each artistID also in artists\.dat, got 2 that artists\.dat lacks",
        ),
        (
            "artists.dat",
            FILES["artists.dat"].decode().encode("latin-1"),
            r"artists\.dat with the columns id",
        ),
        (
            "tags.dat",
            b"tagID\ttagValue\r\n1\tmetal\r\n",
            r"each tagID also in tags\.dat, got \d that",
        ),
        ("tags.dat", b"\x89PNG\r\n\x1a\n\0\0\0", r"tags\.dat with the columns tagID, tagValue"),
    ],
)
def test_damaged_files_are_refused(folder, name, content, message):
    (folder / name).write_bytes(content)
    with pytest.raises(ArgumentError, match=message):
        lastfm(folder, check=False)


@pytest.fixture(scope="session")
def original(published):
    return lastfm(published(NAME))


def test_the_published_counts(original):
    assert len(original.artists) == original.artists["id"].nunique() == 17_632
    assert original.listening["userID"].nunique() == 1_892
    assert len(original.listening) == 92_834
    assert len(original.assignments) == 186_479
    assert len(original.tags) == 11_946
    assert set(original.listening["artistID"]) == set(original.artists["id"])


def test_the_counts_that_the_documentation_names(original):
    listed = original.assignments["artistID"].isin(original.artists["id"])
    assert original.assignments["tagID"].nunique() == 9_749
    assert original.assignments["tagID"][listed].nunique() == 9_718
    assert original.assignments["artistID"][~listed].nunique() == 390
    assert len(original.artists) - original.assignments["artistID"][listed].nunique() == 5_499
    assigned = original.tags["tagID"].isin(original.assignments["tagID"])
    words = original.tags["tagValue"].str.lower().str.split(r"[\s_'-]+", regex=True)
    assert len(set(words.explode()) - {""}) == 9_233
    assert len(set(words[assigned].explode()) - {""}) == 7_678


def test_a_cut_short_copy_of_the_published_file_is_refused(original, published, tmp_path):
    for name in FILES:
        content = (published(NAME) / name).read_bytes()
        # whole lines, one too few
        (tmp_path / name).write_bytes(content[: content.rindex(b"\n", 0, -1) + 1])
    with pytest.raises(ArgumentError, match="damaged, cut short or another edition"):
        lastfm(tmp_path)


def test_the_published_data_as_a_bandit(original, play):
    """The features know something: a linear model fitted on half of the rounds finds the listened
    artist 5 times as often as chance.
    """
    environment = original.environment()
    assert (environment.n_arms, environment.dimension, environment.context_bound) == (25, 25, 1.0)
    assert (len(environment.features), environment.state.starts.size - 1) == (17_632, 1_892)
    rounds = play(environment, np.zeros(8000), seed=1)
    assert np.linalg.norm(rounds.contexts, axis=2).max() <= 1.0 + 1e-12
    rewards = np.eye(25)[rounds.hidden]
    seen = rounds.contexts[:4000].reshape(-1, 25)
    theta = np.linalg.solve(seen.T @ seen + np.eye(25), seen.T @ rewards[:4000].ravel())
    chosen = (rounds.contexts[4000:] @ theta).argmax(axis=1)
    assert 25 * (chosen == rounds.hidden[4000:]).mean() > 5.0


def test_the_published_data_as_a_table(original):
    table = original.reward_table()
    assert (table.horizon, table.n_arms) == (11_394, 20)
    assert table.arm_names[0] == "Lady Gaga"
    assert round(float(table.means()[0] * 11_394)) == 3_060  # counted with awk
    early, late = table.state.prefix[2848], table.state.prefix[-1] - table.state.prefix[-2849]
    assert [table.arm_names[int(part.argmax())] for part in (early, late)] == [
        "The Beatles",
        "Lady Gaga",
    ]
