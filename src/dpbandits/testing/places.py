"""What every place has to do.  Yours is tested by a subclass that opens it:

    class TestMine(PlaceConformance):
        def open(self, folder):
            return MyPlace(folder / "mine")

pytest gives each test a new folder, ``tmp_path``.  Every call of ``open`` with the same folder is
another process's look at the same place.
"""

from __future__ import annotations

import os
import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import ClaimError
from ..stores.store import Batch, Mark, Place, Row
from .forks import Forked, killed
from .walk import require

KILLS = 30
_LARGE = bytes(range(256)) * 4096  # a content of 1 MB

Content = dict[tuple[str, bytes], bytes | None]


class Crash(BaseException):
    """After which a process does nothing more."""


class PlaceConformance(ABC):
    """The tests of one kind of place."""

    @abstractmethod
    def open(self, folder: Path) -> Place:
        """A new object for the one place in the folder."""

    # What is written --------------------------------------------------------------------------

    def test_an_empty_place_holds_nothing_and_can_be_released(self, tmp_path: Path) -> None:
        place = self.open(tmp_path)
        place.release("nobody")
        require(place.mark() is None and place.read() is None, "an empty place holds something")
        require(refused(place, Mark("old", 1), "new"), "an empty place was claimed")
        require(place.mark() is None, "a refused claim has written")

    def test_to_renew_a_lease_changes_nothing(self, tmp_path: Path) -> None:
        place = begun(self.open(tmp_path), Row("pull", b"1", b"one"))
        before = place.mark()
        place.renew("old")
        require(place.lease_left >= 0.0, "a lease has ended and goes on")
        place.renew("a stranger")
        require(place.mark() == before, "to renew a lease has changed the place")

    def test_everybody_reads_what_was_committed(self, tmp_path: Path) -> None:
        place, rows = (
            self.open(tmp_path),
            [
                Row("pull", b"\x00\xff'\n", b"\x00 one"),
                Row("pull", b"", b""),
                Row("pull", b"\xff" * 80, _LARGE),
                Row("user", b"\x00\xff'\n", _LARGE[::-1]),
            ],
        )
        place.commit(Batch(1, b"\x00\xff head", rows, whole=True), "old")
        for look in (place, self.open(tmp_path)):
            require(look.mark() == Mark("old", 1), "mark is not what was committed")
            require_held(look, Mark("old", 1), b"\x00\xff head", rows)

    def test_rows_come_in_the_order_of_kind_and_key(self, tmp_path: Path) -> None:
        place = self.open(tmp_path)
        keys = [b"\x00", b"\x00\x00", b"\x01", b"A", b"B", b"a", b"aa", b"\x80", b"\xff"]
        rows = [Row(kind, key, b"x") for kind in ("B", "a", "ab", "b") for key in keys]
        mixed = random.Random(1).sample(rows, len(rows))
        place.commit(Batch(1, b"head", mixed[:9], whole=True), "old")
        place.commit(Batch(2, b"head", mixed[9:]), "old")
        held = self.open(tmp_path).read()
        found = [] if held is None else list(held.rows)
        require(found == sorted(rows), "rows are not in the order of kind and key")

    def test_a_batch_adds_changes_and_takes_away(self, tmp_path: Path) -> None:
        place = begun(self.open(tmp_path), Row("a", b"1", b"x"), Row("a", b"2", b"x"))
        changes = [Row("a", b"1", b"y"), Row("a", b"2", None), Row("b", b"2", b"x")]
        place.commit(Batch(2, b"second", changes), "old")
        require_held(place, Mark("old", 2), b"second", [changes[0], changes[2]])
        place.commit(Batch(3, b"third", [Row("a", b"none", None)]), "old")
        place.commit(Batch(4, b"", []), "old")
        require_held(self.open(tmp_path), Mark("old", 4), b"", [changes[0], changes[2]])

    def test_a_whole_batch_replaces_everything(self, tmp_path: Path) -> None:
        place = begun(self.open(tmp_path), Row("a", b"1", b"x"), Row("a", b"2", b"x"))
        rows = [Row("a", b"2", b"y"), Row("c", b"3", b"z")]
        place.commit(Batch(2, b"second", rows, whole=True), "old")
        require_held(self.open(tmp_path), Mark("old", 2), b"second", rows)

    def test_many_rows_are_read_as_of_one_moment(self, tmp_path: Path) -> None:
        rows = [Row("a", number.to_bytes(4, "big"), b"x" * 100) for number in range(5000)]
        place = begun(self.open(tmp_path), *rows)
        held = self.open(tmp_path).read()
        require(held is not None, "nothing is read")
        place.commit(Batch(2, b"second", [Row("a", b"new", b"")], whole=True), "old")
        require(held is None or list(held.rows) == rows, "a reader sees a later batch")
        require_held(place, Mark("old", 2), b"second", [Row("a", b"new", b"")])

    # What is refused --------------------------------------------------------------------------

    def test_the_first_batch_is_a_whole_one_of_any_number(self, tmp_path: Path) -> None:
        place = self.open(tmp_path)
        require(refuses(place, Batch(1, b"head", []), "old"), "a batch follows nothing")
        require(place.mark() is None, "a refused batch was written")
        place.commit(Batch(57, b"head", [], whole=True), "old")
        place.commit(Batch(58, b"head", []), "old")
        require(place.mark() == Mark("old", 58), "mark is not what was committed")

    def test_numbers_that_do_not_follow_are_refused(self, tmp_path: Path) -> None:
        place = begun(self.open(tmp_path), Row("a", b"1", b"x"))
        place.commit(Batch(2, b"second", []), "old")
        for batch in (
            Batch(1, b"other", [Row("a", b"1", b"y")]),
            Batch(2, b"other", [Row("a", b"1", None)]),
            Batch(2, b"other", [], whole=True),
            Batch(4, b"other", [Row("b", b"1", b"y")]),
        ):
            require(refuses(place, batch, "old"), f"batch {batch.number} was taken after 2")
            require_held(self.open(tmp_path), Mark("old", 2), b"second", [Row("a", b"1", b"x")])

    def test_a_batch_that_was_made_is_refused_again_and_mark_tells(self, tmp_path: Path) -> None:
        place, batch = begun(self.open(tmp_path)), Batch(2, b"second", [Row("a", b"1", b"x")])
        place.commit(batch, "old")
        require(refuses(self.open(tmp_path), batch, "old"), "a batch was written twice")
        require(place.mark() == Mark("old", 2), "mark does not tell that the batch was made")

    def test_another_life_is_refused(self, tmp_path: Path) -> None:
        place = begun(self.open(tmp_path), Row("a", b"1", b"x"))
        place.release("old")
        batch = Batch(2, b"second", [Row("a", b"1", b"y")])
        require(refuses(place, batch, "new"), "another life has written")
        require_held(place, Mark("old", 1), b"first", [Row("a", b"1", b"x")])

    # Who holds it -----------------------------------------------------------------------------

    def test_a_claim_hands_over_and_keeps_the_content(self, tmp_path: Path) -> None:
        former, heir = begun(self.open(tmp_path), Row("a", b"1", b"x")), self.open(tmp_path)
        former.release("old")
        heir.claim(Mark("old", 1), "new")
        require_held(former, Mark("new", 1), b"first", [Row("a", b"1", b"x")])
        require(refuses(former, Batch(2, b"second", []), "old"), "the former holder has written")
        heir.commit(Batch(2, b"second", []), "new")
        require_held(former, Mark("new", 2), b"second", [Row("a", b"1", b"x")])

    def test_a_former_holder_does_not_replace_its_heir(self, tmp_path: Path) -> None:
        former, heir = begun(self.open(tmp_path), Row("a", b"1", b"x")), self.open(tmp_path)
        former.release("old")
        heir.claim(Mark("old", 1), "new")
        heir.release("new")
        for place in (former, self.open(tmp_path)):
            whole = Batch(2, b"second", [], whole=True)
            require(refuses(place, whole, "old"), "a former holder has replaced its heir")
        require_held(heir, Mark("new", 1), b"first", [Row("a", b"1", b"x")])

    def test_a_whole_batch_replaces_another_policy(self, tmp_path: Path) -> None:
        first, second = begun(self.open(tmp_path), Row("a", b"1", b"x")), self.open(tmp_path)
        first.release("old")
        second.commit(Batch(1, b"other", [Row("b", b"2", b"y")], whole=True), "other")
        require_held(first, Mark("other", 1), b"other", [Row("b", b"2", b"y")])
        second.release("other")
        for batch in (Batch(2, b"second", []), Batch(2, b"second", [], whole=True)):
            require(refuses(first, batch, "old"), "the policy that was replaced has written")
        second.commit(Batch(2, b"third", []), "other")

    def test_a_claim_of_what_has_changed_is_refused(self, tmp_path: Path) -> None:
        place = begun(self.open(tmp_path))
        place.commit(Batch(2, b"second", []), "old")
        place.release("old")
        for held in (Mark("old", 1), Mark("old", 3), Mark("older", 2)):
            require(refused(place, held, "new"), f"a place was claimed as {held}")
        require(place.mark() == Mark("old", 2), "a refused claim has written")
        place.claim(Mark("old", 2), "new")
        place.release("new")
        require(refused(place, Mark("old", 2), "newer"), "a place was claimed twice")

    def test_of_many_claims_at_once_one_is_granted(self, tmp_path: Path) -> None:
        begun(self.open(tmp_path)).release("old")
        places, together = [self.open(tmp_path) for _ in range(4)], threading.Barrier(4)
        granted: list[str] = []

        def claim(number: int) -> None:
            together.wait()
            if not refused(places[number], Mark("old", 1), f"new {number}"):
                granted.append(f"new {number}")

        _at_once(4, claim)
        require(len(granted) == 1, f"{len(granted)} of 4 claims were granted")
        require(self.open(tmp_path).mark() == Mark(granted[0], 1), "another one holds the place")

    def test_of_many_first_batches_at_once_all_or_one_are_taken(self, tmp_path: Path) -> None:
        places, together = [self.open(tmp_path) for _ in range(4)], threading.Barrier(4)

        def begin(number: int) -> None:
            together.wait()
            rows = [Row("a", bytes([number, key]), b"x") for key in range(50)]
            refuses(places[number], Batch(1, b"first", rows, whole=True), f"life {number}")

        _at_once(4, begin)
        held = self.open(tmp_path).read()
        require(held is not None, "none of the batches was taken")
        if held is not None:
            keys, number = [row.key for row in held.rows], int(held.mark.life[-1])
            require(keys == [bytes([number, key]) for key in range(50)], "batches are mixed")

    def test_threads_may_share_a_place(self, tmp_path: Path) -> None:
        place, number, turn = begun(self.open(tmp_path)), [1], threading.Lock()

        def write(_: int) -> None:
            for _ in range(10):
                with turn:
                    number[0] += 1
                    place.commit(Batch(number[0], b"head", []), "old")
                require(place.mark() is not None, "mark tells nothing")

        _at_once(4, write)
        require(self.open(tmp_path).mark() == Mark("old", 41), "batches are lost")

    # When something fails ---------------------------------------------------------------------

    def test_a_commit_that_fails_midway_leaves_everything(self, tmp_path: Path) -> None:
        rows = [Row("a", bytes([key]), b"x") for key in range(9)]
        place, news = (
            begun(self.open(tmp_path), *rows),
            [row._replace(content=b"y") for row in rows],
        )
        for whole in (False, True):
            for step in (0, 5, 9):
                _crash(
                    partial(place.commit, Batch(2, b"second", _Failing(news, step), whole), "old")
                )
                require_held(self.open(tmp_path), Mark("old", 1), b"first", rows)
                require_held(place, Mark("old", 1), b"first", rows)
        place.commit(Batch(2, b"second", news), "old")
        require_held(self.open(tmp_path), Mark("old", 2), b"second", news)

    def test_a_killed_process_loses_nothing_that_was_acknowledged(self, tmp_path: Path) -> None:
        if not hasattr(os, "fork"):
            return
        rng, done = random.Random(7), 0
        for kill in range(KILLS):
            work = partial(self._go_on, tmp_path, f"life {kill}")
            done = max(done, killed(work, rng, early=kill % 2 == 0))
            held = self.open(tmp_path).read()
            if held is None:
                require(done == 0, f"batch {done} was acknowledged, and nothing is there")
                continue
            found = {(row.kind, row.key): row.content for row in held.rows}
            last = held.mark.number
            require(last >= done, f"batch {done} was acknowledged, and {last} is the last one")
            require(held.head == b"%d" % last and found == _after(last), f"half of batch {last}")

    def _go_on(self, folder: Path, life: str, told: Callable[[int], None]) -> None:
        """Claim the place, and commit batch after batch."""
        place, rng = self.open(folder), random.Random(life)
        number = 1 if place.mark() is None else _taken_over(place, life)
        while True:
            whole = number == 1 or rng.random() < 0.2
            rows = (_after if whole else _changes)(number)
            changes = [Row(kind, key, content) for (kind, key), content in rows.items()]
            place.commit(Batch(number, b"%d" % number, changes, whole), life)
            told(number)
            number += 1

    def test_a_forked_process_and_its_parent_do_not_disturb_each_other(
        self, tmp_path: Path
    ) -> None:
        if not hasattr(os, "fork"):
            return
        place = begun(self.open(tmp_path), Row("a", b"1", b"x"))

        def child(told: Callable[[int], None]) -> None:
            place.commit(Batch(2, b"second", []), "old")
            told(2)

        require(Forked(child).ended() == (2, False), "a forked process cannot commit")
        require(refuses(place, Batch(2, b"other", []), "old"), "a batch was written twice")
        place.commit(Batch(3, b"third", []), "old")
        require_held(self.open(tmp_path), Mark("old", 3), b"third", [Row("a", b"1", b"x")])


# Steps of the tests ---------------------------------------------------------------------------


def begun(place: Place, *rows: Row, life: str = "old") -> Place:
    """The place, with a first batch."""
    place.commit(Batch(1, b"first", rows, whole=True), life)
    return place


def refuses(place: Place, batch: Batch, life: str) -> bool:
    """Whether a place refuses a batch."""
    try:
        place.commit(batch, life)
    except ClaimError:
        return True
    return False


def refused(place: Place, held: Mark, heir: str) -> bool:
    """Whether a claim is refused."""
    try:
        place.claim(held, heir)
    except ClaimError:
        return True
    return False


def require_held(place: Place, mark: Mark, head: bytes, rows: Iterable[Row]) -> None:
    """Raise an AssertionError unless a place holds exactly this."""
    held = place.read()
    require(held is not None, "nothing is read")
    if held is not None:
        require(held.mark == mark, f"{held.mark} is read, not {mark}")
        require(held.head == head, f"the head {held.head[:20]!r} is read, not {head[:20]!r}")
        found = list(held.rows)
        wanted = sorted(rows, key=lambda row: row[:2])
        require(found == wanted, f"{len(found)} rows are read, not the {len(wanted)} committed")
        require(all(type(row) is Row for row in found), "rows are no Row")


def _at_once(count: int, work: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error


class _Failing(list[Row]):
    """Rows of which so many can be read."""

    def __init__(self, rows: Iterable[Row], readable: int) -> None:
        super().__init__(rows)
        self.readable = readable

    def __iter__(self) -> Iterator[Row]:
        for number in range(len(self)):
            yield self[number]
        if self.readable == len(self):
            raise Crash

    def __getitem__(self, number: Any) -> Any:
        if not isinstance(number, int) or number >= self.readable:
            raise Crash
        return super().__getitem__(number)


def _crash(action: Callable[[], None]) -> None:
    try:
        action()
    except Crash:
        return
    require(False, "a batch was written whose rows cannot be read")


# What killed processes write ------------------------------------------------------------------


def _changes(number: int) -> Content:
    """What a batch of the killed process changes."""
    here = b"%06d" % number
    content: Content = {("state", bytes([key])): here * 50 for key in range(5)}
    content["log", here] = here
    if number > 3:
        content["log", b"%06d" % (number - 3)] = None
    return content


def _after(number: int) -> Content:
    """What its place then holds."""
    content = {("log", b"%06d" % one): b"%06d" % one for one in range(max(1, number - 2), number)}
    return {**content, **{key: to for key, to in _changes(number).items() if to is not None}}


def _taken_over(place: Place, heir: str) -> int:
    """Claim the place of a process that was killed, and return the number of the next batch."""
    while True:  # the last batch of the killed process may arrive late
        mark = place.mark() or Mark("", 0)
        place.release(mark.life)
        if not refused(place, mark, heir):
            return mark.number + 1
