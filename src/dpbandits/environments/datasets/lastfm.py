"""Last.fm: who listened to which artists, and their tags (Cantador, Brusilovsky & Kuflik, 2011)."""

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
    "artists.dat": "c173881362c6b28551368fecb3c0be5a6a30a6cd859e1f5775413dfe46d48648",
    "tags.dat": "e95175f259be4c0c47644ae23d66131cd6d5767142a1405000e79f5584691d70",
    "user_artists.dat": "001400dc3c7d2667fca6e4ea6dc6acc31a9dd28ad5cd0f74cea988c019934d3b",
    "user_taggedartists.dat": "d31fe938fcfeed6f0059f37a36b156f63674d073fc2553e5cc9dc1595e365bc7",
}

_INSTRUCTIONS = (
    "The data set is named hetrec2011-lastfm-2k: the Last.fm part of HetRec 2011, which GroupLens,"
    " a research group of the University of Minnesota, offers on its website for non-commercial"
    " use.  Unpack it and name the folder with these files."
)


@dataclass(frozen=True, eq=False, repr=False)
class LastFM:
    """The tables of the data set, under the names of its authors and in their order.

    Attributes:
        artists: ``id``, ``name``, ``url``, ``pictureURL``; 17,632 rows.
        listening: ``userID``, ``artistID``, ``weight`` (how often they listened); 92,834 rows of
            1,892 users.
        tags: ``tagID``, ``tagValue``; 11,946 rows.
        assignments: ``userID``, ``artistID``, ``tagID``, ``day``, ``month``, ``year``; 186,479
            rows, some on artists that are not listed.
        checksum: of the files, eight digits.
    """

    artists: pd.DataFrame
    listening: pd.DataFrame
    tags: pd.DataFrame
    assignments: pd.DataFrame
    checksum: str

    def features(self, components: int = 25) -> np.ndarray:
        """Make features of every artist from tags.

        The words of an artist are the artist's tags, each as often as it was assigned.  TF-IDF and
        principal components make features of them, all divided by the length of the longest row.

        Returns:
            Shape (artists, components), rows as in ``artists``, of length at most 1.  Artists
            without tags share one row.
        """
        from scipy import sparse  # see ``features``

        artists, tags = pd.Index(self.artists["id"]), pd.Index(self.tags["tagID"])
        rows = artists.get_indexer(self.assignments["artistID"])
        listed = rows >= 0
        columns = tags.get_indexer(self.assignments["tagID"])[listed]
        entries = (np.ones(listed.sum()), (rows[listed], columns))
        counts = sparse.csr_array(entries, shape=(len(artists), len(tags)))
        return principal_features(tfidf(counts), components)

    def environment(self, *, components: int = 25, per_round: int = 25) -> Recommendations:
        """A round shows an artist whom a user listened to, with reward 1, and others without."""
        users, _ = pd.factorize(self.listening["userID"])
        items = pd.Index(self.artists["id"]).get_indexer(self.listening["artistID"])
        made = Recommendations(self.features(components), users, items, per_round=per_round)
        return made._made(f"Last.fm {self.checksum}")

    def reward_table(self, *, artists: int = 20) -> RewardTable:
        """Artists as arms and visits as rounds, in the order of time: reward 1 for every artist
        that the visitor listens to.

        A visit is a user on a date on which they tagged anything.  Most dates are the first of a
        month; within a date visits are in the order of the file, which is that of users.  Listening
        has no date in the data: rewards change over time only because visitors do.

        Args:
            artists: number of arms: the artists with most listeners; ties go to the smaller
                identifier.

        Returns:
            A ``RewardTable`` of 0 and 1 with a row per visit; its arms have the artists' names.

        Raises:
            ArgumentError: ``artists`` is not between 1 and the number of artists with listeners.
        """
        counts = self.listening.groupby("artistID")["userID"].nunique()
        by_listeners = counts.sort_values(ascending=False, kind="stable").index
        chosen = by_listeners[: integer("artists", artists, 1, len(counts))]
        dates = ["year", "month", "day"]
        visits = self.assignments.drop_duplicates(["userID", *dates])
        visits = visits.sort_values(dates, kind="stable")
        pairs = self.listening[self.listening["artistID"].isin(chosen)]
        listens = pd.crosstab(pairs["userID"], pairs["artistID"]) > 0
        rewards = listens.reindex(index=visits["userID"], columns=chosen, fill_value=False)
        names = self.artists.set_index("id")["name"]
        return RewardTable(rewards, arm_names=names[chosen].tolist(), name="Last.fm artists")

    def __repr__(self) -> str:
        people = f"{self.listening['userID'].nunique()} users, {len(self.artists)} artists"
        tags = f"{len(self.assignments)} tag assignments, {len(self.tags)} tags"
        return f"LastFM({people}, {len(self.listening)} listening rows, {tags})"


def lastfm(folder: str | os.PathLike[str], *, check: bool = True) -> LastFM:
    """The Last.fm data from the published files; ``docs/data/lastfm.md`` says how to get them.

    Args:
        folder: holds ``artists.dat``, ``tags.dat``, ``user_artists.dat`` and
            ``user_taggedartists.dat``.
        check: refuse files that are not, byte for byte, the published ones.

    Raises:
        ArgumentError: a file is missing, damaged, or refers to entries that other files do not
            list.

    >>> lastfm("no/such/folder")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    dpbandits.errors.ArgumentError: folder must hold artists.dat, got 'no/such/folder' ...
    """
    files = read_files(folder, _FILES, _INSTRUCTIONS, check=flag("check", check))
    about = {"id": int, "name": str, "url": str, "pictureURL": str}
    artists = table(files, "artists.dat", about, header=True)
    words = {"tagID": int, "tagValue": str}
    tags = table(files, "tags.dat", words, header=True, encoding="latin-1")
    counts = dict.fromkeys(("userID", "artistID", "weight"), int)
    listening = table(files, "user_artists.dat", counts, header=True)
    tagging = dict.fromkeys(("userID", "artistID", "tagID", "day", "month", "year"), int)
    assignments = table(files, "user_taggedartists.dat", tagging, header=True)
    require_known("user_artists.dat", listening["artistID"], artists["id"], "artists.dat")
    require_known("user_taggedartists.dat", assignments["tagID"], tags["tagID"], "tags.dat")
    return LastFM(artists, listening, tags, assignments, checksum(files))
