"""MovieLens 100k: ratings of movies in the order of time, with genres (Harper & Konstan, 2015)."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ...validation import flag, integer
from ..simulated.pools import Recommendations
from ..tabulated import RewardTable
from .features import principal_features, tfidf
from .published import checksum, read_files, require_known, table

_FILES = {
    "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
    "u.genre": "9757e0d3e6b298159a80dd48eaf938114690e911e39af97a76949ef1663610bb",
    "u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
}

_INSTRUCTIONS = (
    "The data set is named MovieLens 100K (ml-100k); GroupLens, a research group of the University"
    " of Minnesota, offers it on its website for research.  Unpack it and name the folder with"
    " these files."
)

_ABOUT = ("movie", "title", "date", "video_date", "url")


@dataclass(frozen=True, eq=False, repr=False)
class MovieLens:
    """The tables of the data set.

    Attributes:
        ratings: ``user``, ``movie``, ``rating`` (1 to 5), ``timestamp`` (seconds of Unix time) in
            the order of time; ties keep the order of the file; 100,000 rows of 943 users.
        movies: ``movie``, ``title``, ``date`` (of release, as printed), ``year`` (of release, 0
            where it is missing), and for each genre a column of 0 and 1; 1,682 rows.
        genres: the names of the 19 genres, which are columns of ``movies``.
        checksum: of the files, eight digits.
    """

    ratings: pd.DataFrame
    movies: pd.DataFrame
    genres: list[str]
    checksum: str

    def features(self, components: int = 20) -> np.ndarray:
        """Make features of every movie from its genres and the decade of its release.

        These are its words: TF-IDF, then principal components, all divided by the length of the
        longest row.  Ratings take no part, or features would tell rewards before they are given.

        Returns:
            Shape (movies, components), rows as in ``movies``, of length at most 1.
        """
        from scipy import sparse  # see ``features``

        decades = pd.get_dummies(self.movies["year"] // 10).to_numpy(dtype=float)
        words = np.hstack([self.movies[self.genres].to_numpy(dtype=float), decades])
        return principal_features(tfidf(sparse.csr_array(words)), components)

    def environment(
        self, *, components: int = 20, per_round: int = 25, liked_from: int = 4
    ) -> Recommendations:
        """A round shows a movie that a user liked, with reward 1, and others (reward 0).

        Args:
            components: dimension of the features.
            per_round: how many movies each round shows.
            liked_from: the lowest rating that counts as liked.
        """
        liked = self.ratings[self._liked(liked_from)]
        users, _ = pd.factorize(liked["user"])
        items = pd.Index(self.movies["movie"]).get_indexer(liked["movie"])
        made = Recommendations(self.features(components), users, items, per_round=per_round)
        return made._made(f"MovieLens {self.checksum}, liked from {liked_from}")

    def reward_table(self, *, liked_from: int = 4) -> RewardTable:
        """Genres as arms and ratings as rounds, in the order of time: reward 1 if the movie was
        liked and is of the genre.

        The policy picks a genre, and the next person names the movie that they have just seen.  The
        reward is 1 if they liked the movie and it is of that genre; a movie may have several
        genres.  A genre that many watch earns more than one that few watch and like.  The data do
        not hold their opinion of other movies.  A round is one rating, hence privacy protects one
        rating.  "unknown" is no genre; where a movie has no other, all arms get 0.

        Args:
            liked_from: the lowest rating that counts as liked.

        Returns:
            A ``RewardTable`` of 0 and 1 with a row per rating; its arms are 18 genres.
        """
        genres = [name for name in self.genres if name != "unknown"]
        shown = self.movies.set_index("movie").loc[self.ratings["movie"], genres]
        rewards = shown.to_numpy(dtype=bool) & self._liked(liked_from).to_numpy()[:, None]
        return RewardTable(rewards, arm_names=genres, name="MovieLens genres")

    def _liked(self, liked_from: int) -> pd.Series:
        return self.ratings["rating"] >= integer("liked_from", liked_from, 1, 5)

    def __repr__(self) -> str:
        users, movies = self.ratings["user"].nunique(), len(self.movies)
        return f"MovieLens({users} users, {movies} movies, {len(self.ratings)} ratings)"


def movielens(folder: str | os.PathLike[str], *, check: bool = True) -> MovieLens:
    """The MovieLens 100k data from the published files; see ``docs/data/movielens.md``.

    Args:
        folder: holds ``u.data``, ``u.genre`` and ``u.item``.
        check: refuse files that are not, byte for byte, the published ones.

    Raises:
        ArgumentError: a file is missing, damaged, or refers to entries that other files do not
            list.

    >>> movielens("no/such/folder")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    dpbandits.errors.ArgumentError: folder must hold u.data, got 'no/such/folder' ...
    """
    files = read_files(folder, _FILES, _INSTRUCTIONS, check=flag("check", check))
    genres = table(files, "u.genre", {"genre": str, "number": int}, separator="|")
    names = genres.sort_values("number")["genre"].tolist()
    about = {name: int if name == "movie" else str for name in _ABOUT} | dict.fromkeys(names, int)
    movies = table(files, "u.item", about, separator="|", encoding="latin-1")
    years = pd.to_numeric(movies["date"].str[-4:], errors="coerce").fillna(0).astype(int)
    movies = movies.drop(columns=["video_date", "url"])
    movies.insert(3, "year", years)
    columns = dict.fromkeys(("user", "movie", "rating", "timestamp"), int)
    ratings = table(files, "u.data", columns)
    require_known("u.data", ratings["movie"], movies["movie"], "u.item")
    ratings = ratings.sort_values("timestamp", kind="stable", ignore_index=True)
    return MovieLens(ratings, movies, names, checksum(files))
