"""What every store has to do, and each of its places.  Yours is tested by a subclass that opens it:

    class TestMine(StoreConformance):
        def open_store(self, folder):
            return MyStore(folder / "mine")

Every call of ``open_store`` with the same folder is another process's look at the same store.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..errors import ArgumentError, ClaimError
from ..stores.store import Batch, Mark, Place, Row, Store
from .forks import Forked
from .places import PlaceConformance, begun, require_held
from .walk import require


class StoreConformance(PlaceConformance):
    """The tests of one kind of store, and of its places."""

    @abstractmethod
    def open_store(self, folder: Path) -> Store:
        """A new object for the one store in the folder."""

    def open(self, folder: Path) -> Place:
        return self.open_store(folder).place("one")

    def test_places_of_one_store_do_not_meet(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        require(store.keys() == [], "an empty store has places")
        one, two = store.place("one"), store.place("Zwei / 2 'é%#")
        begun(one, Row("a", b"1", b"x"))
        require(two.mark() is None and two.read() is None, "a place has another's content")
        begun(two, Row("a", b"1", b"y"), life="other")
        two.commit(Batch(2, b"second", [], whole=True), "other")
        require_held(one, Mark("old", 1), b"first", [Row("a", b"1", b"x")])
        require_held(two, Mark("other", 2), b"second", [])
        require(self.open_store(tmp_path).keys() == ["Zwei / 2 'é%#", "one"], "keys are wrong")
        store.place("empty")
        store.close()
        require(self.open_store(tmp_path).keys() == ["Zwei / 2 'é%#", "one"], "keys are wrong")

    def test_keys_that_are_no_text_are_refused(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        for key in ("", "x" * 61, "a\nb", 7):
            try:
                store.place(key)  # type: ignore[arg-type]
            except ArgumentError:
                continue
            require(False, f"a place is named {key!r}")

    def test_a_batch_that_is_refused_leaves_the_others_alone(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        places = [store.place(key) for key in ("one", "two", "three", "four")]
        for place in places[:3]:
            begun(place, Row("a", b"1", b"x"))
        row = Row("a", b"2", b"y")
        errors = store.commit_all(
            [
                (places[0], Batch(2, b"second", [row]), "old"),
                (places[1], Batch(2, b"second", [row]), "another"),
                (places[2], Batch(2, b"second", [row], whole=True), "old"),
                (places[3], Batch(1, b"second", [row], whole=True), "new"),
                (places[0], Batch(3, b"third", []), "old"),
            ]
        )
        told = [None if error is None else type(error) for error in errors]
        require(told == [None, ClaimError, None, None, None], f"the batches' errors are {told}")
        store = self.open_store(tmp_path)
        require_held(store.place("one"), Mark("old", 3), b"third", [Row("a", b"1", b"x"), row])
        require_held(store.place("two"), Mark("old", 1), b"first", [Row("a", b"1", b"x")])
        require_held(store.place("three"), Mark("old", 2), b"second", [row])
        require_held(store.place("four"), Mark("new", 1), b"second", [row])
        require(store.commit_all([]) == [], "no batches have errors")

    def test_forked_processes_write_at_the_same_time(self, tmp_path: Path) -> None:
        if not hasattr(os, "fork"):
            return
        store, last = self.open_store(tmp_path), 100
        keys = ["one", "two", "three"]
        for key in keys:
            begun(store.place(key))

        def write(key: str, told: Callable[[int], None]) -> None:
            for number in range(2, last + 1):
                store.place(key).commit(Batch(number, b"head", [Row("a", b"1", b"x")]), "old")
            told(last)
            store.close()

        children = [Forked(partial(write, key)) for key in keys[1:]]
        write(keys[0], lambda number: None)
        ended = [child.ended() for child in children]
        require(ended == [(last, False)] * 2, f"of {last} batches, children wrote {ended}")
        for key in keys:
            place = self.open_store(tmp_path).place(key)
            require_held(place, Mark("old", last), b"head", [Row("a", b"1", b"x")])

    def test_a_store_that_was_closed_goes_on(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path)
        place = begun(store.place("one"))
        store.close()
        store.close()
        place.commit(Batch(2, b"second", []), "old")
        require(store.keys() == ["one"], "keys are wrong")
