"""Places that were damaged, cut or edited while the state folder is lost, which would tell: each is
refused by a named error, or holds what it held.
"""

import shutil
import sqlite3

import numpy as np
import pytest
from clinic import Clinic, ada, contents, journal, state_in, state_of, whole

import dpbandits as dpb
from dpbandits.errors import DPBanditsError, StateFileError
from dpbandits.session.packing import joined, parted
from dpbandits.stores.addresses import place_at
from dpbandits.stores.stamps import Stamps


def damaged(content, rng):
    """The bytes with up to three others, or cut."""
    changed = bytearray(content)
    if rng.random() < 0.2:
        return bytes(changed[: rng.integers(len(changed))])
    for _ in range(rng.integers(1, 4)):
        changed[rng.integers(len(changed))] ^= rng.integers(1, 256)
    return bytes(changed)


def outcomes(place):
    """What an inspection shows, and what a simulation loads; None where it is refused."""

    def shown():
        seen = dpb.inspect(place)
        return {**seen.facts, "means": seen.estimates.means.tolist()}

    for look in (shown, lambda: state_in(place)):
        try:
            yield look()
        except DPBanditsError:
            yield None


def test_a_damaged_file_is_refused_or_as_it_was(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path, rng = clinic.policy.save(tmp_path / "a"), np.random.default_rng(1)
    allowed = [[*outcomes(path)]]
    for _ in range(3):
        clinic.policy.pull()
        allowed.append([*outcomes(path)])
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "lost"))
    snapshot, log = path.read_bytes(), journal(path).read_bytes()
    for number in range(1000):
        if number % 4:
            path.write_bytes(damaged(snapshot, rng))
        else:
            path.write_bytes(snapshot)
        journal(path).write_bytes(log if number % 4 else damaged(log, rng))
        found = [*outcomes(path)]
        # A journal that is cut is as after an earlier batch.
        assert found in ([[None, None]] if number % 4 else [[None, None], *allowed]), number
        with pytest.raises(DPBanditsError):
            dpb.load(path)


@pytest.mark.parametrize("keys", [False, True], ids=["no keys", "keys"])
def test_damaged_rows_of_a_database_are_refused_or_as_they_were(keys, tmp_path, monkeypatch):
    place = place_at(f"sqlite:///{tmp_path}/a.db#one")
    clinic, rng = Clinic(ada(max_rounds=None)).play(40), np.random.default_rng(2)
    clinic.policy.save(place)
    whole_place = [*outcomes(place)]
    place.store.close()
    if keys:
        shutil.copytree(tmp_path / "state" / "keys", tmp_path / "lost" / "keys")
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "lost"))
    refused = {True: 0, False: 0}
    with sqlite3.connect(tmp_path / "a.db") as database:
        (head,) = database.execute("SELECT head FROM places").fetchone()
        rows = database.execute("SELECT kind, key, content FROM rows").fetchall()
        assert {"about", "line", "pull"} <= {kind for kind, _, _ in rows}
        change = "UPDATE rows SET content = ? WHERE (kind, key) = (?, ?)"
        for number in range(500):
            kind, key, content = rows[rng.integers(len(rows))]
            if number % 3:
                database.execute(change, [damaged(content, rng), kind, key])
            else:
                database.execute("UPDATE places SET head = ?", [damaged(head, rng)])
            database.commit()
            seen, loaded = outcomes(place)
            # Damage of a keyed hash alone changes nothing.
            refused[seen is None] += 1
            assert seen in (None, whole_place[0])
            assert loaded in (None, whole_place[1])
            with pytest.raises(DPBanditsError):
                dpb.load(place)
            database.execute(change, [content, kind, key])
            database.execute("UPDATE places SET head = ?", [head])
            database.commit()
    assert refused[True] > 10 * refused[False]
    assert [*outcomes(place)] == (whole_place if keys else [whole_place[0], None])
    assert not keys or state_of(clinic.policy) == whole_place[1]


def forged(path, change):
    """The file with other rows and head, and checksums that fit them, as if the folder was lost."""
    held = contents(path)
    head, rows = change(held.head, list(held.rows))
    whole(path, held._replace(stamps=Stamps(None)), rows, head)


def with_row(kind, content):
    """A change of the first row of a kind."""

    def change(head, rows):
        at = next(i for i, row in enumerate(rows) if row.kind == kind)
        rows[at] = rows[at]._replace(content=content(rows[at].content))
        return head, rows

    return change


def without(kind):
    def change(head, rows):
        at = next(i for i, row in enumerate(rows) if row.kind == kind)
        return head, rows[:at] + rows[at + 1 :]

    return change


def with_number(part, slot, value):
    """A change of a number in the public part of the head."""

    def change(head, rows):
        public, private = parted(head)
        parts = parted(public)
        numbers = np.frombuffer(parts[part], "<i8").copy()
        numbers[slot] = value
        parts[part] = numbers.tobytes()
        return joined(joined(*parts), private), rows

    return change


HUGE = (2**62).to_bytes(8, "little")
FORGED = {
    "rounds below 0": with_number(1, 0, -1),
    "more rounds than there are": with_number(1, 0, 2**61),
    "more lines than there are": with_number(3, 1, 2**60),
    "fewer lines than there are": with_number(3, 1, 1),
    "lines below 0": with_number(3, 1, -1),
    "a line less": without("line"),
    "an unknown family": with_row("line", lambda content: content[:32] + HUGE + content[40:]),
    "noise below 0": with_row("line", lambda content: content[:48] + b"\xff" * 8),
    "an arm too many": with_row("pull", lambda content: HUGE + content[8:]),
    "a booking of ages": with_row("booked", lambda content: HUGE + content[8:]),
    "a booking that is cut": with_row("booked", lambda content: content[:3]),
    "a flight that is cut": with_row("flight", lambda content: content[:50]),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_forged_numbers_out_of_range_are_refused_without_the_state_folder(
    change, tmp_path, monkeypatch
):
    path = Clinic(ada()).play(42).policy.save(tmp_path / "a")  # with a flight
    forged(path, change)
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "lost"))
    with pytest.raises(StateFileError, match="does not hold a policy of this version"):
        dpb.load(path, simulation=True)
    with pytest.raises((StateFileError, dpb.ClaimError)):
        dpb.load(path)
