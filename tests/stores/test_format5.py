"""Files that versions before 0.2 have saved, with the releases that they announced since.

``told.json`` is what the version that wrote them knew: of the save, of a copy that went on from it,
and at its end.  The journals announce releases that were made, but for none of which the file has
the values.
"""

import io
import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from clinic import CONTEXTS, fail, journal, lost_rounds_count_no_more, signed, state_in, state_of

import dpbandits as dpb
from dpbandits.errors import StateFileError
from dpbandits.stores import FilePlace
from dpbandits.stores.format5 import is_format5, read5

FOLDER = Path(__file__).parent / "format5"
TOLD = json.loads((FOLDER / "told.json").read_text())
NAMES = ["ann", 7, "7"]
WITH_JOURNAL = pytest.mark.parametrize("name", ["episodic", "at_once", "users"])


def brought(tmp_path, name, *, announced=True):
    """A copy of a file, with or without the journal of what came later."""
    path = Path(shutil.copy(FOLDER / f"{name}.dpb", tmp_path))
    if announced and (FOLDER / f"{name}.dpb.journal").exists():
        shutil.copy(FOLDER / f"{name}.dpb.journal", tmp_path)
    return path


def pull(policy, number):
    if policy.sees:
        return policy.pull(CONTEXTS[number])
    if policy.max_rounds:
        return policy.pull(user=[*NAMES, f"user {number % 17}"][number % 4])
    return policy.pull()


def frame_of(policy):
    return {name: list(column) for name, column in policy.ledger.frame.to_dict("list").items()}


@pytest.mark.parametrize("name", ["episodic", "users", "flights"])
@pytest.mark.parametrize("simulation", [False, True])
def test_without_announcements_it_goes_on_exactly(name, simulation, tmp_path):
    path, told = brought(tmp_path, name, announced=False), TOLD[name]
    policy = dpb.load(path, simulation=simulation)
    rounds = policy.session.rounds
    assert (policy.ledger.releases, policy.rounds, rounds.pulls, len(rounds.flights)) == (
        told["releases"],
        told["rounds"],
        told["pulls"],
        told["flights"],
    )
    assert sorted(rounds.pending) == told["pending"]
    assert policy.session.state.public.estimate.tolist() == told["estimates"]
    assert policy.ledger.total() == told["spent"]
    arms = []
    for number in range(told["pulls"], told["pulls"] + 100):
        decision = pull(policy, number)
        arms.append(decision.arm)
        policy.update(number % 5 / 4, decision)
    assert arms == told["arms"]


def test_at_once_with_secure_noise_the_saved_sum_goes_on(tmp_path):
    path, told = brought(tmp_path, "at_once", announced=False), TOLD["at_once"]
    with pytest.raises(dpb.ClaimError, match="never copied"):
        dpb.load(path, simulation=True)
    policy = dpb.load(path)
    assert (policy.ledger.releases, policy.rounds) == (told["releases"], told["rounds"])
    assert policy.session.state.public.estimate.tolist() == told["estimates"]
    assert any(array.any() for array in policy.session.state.exact)
    for number in range(40):
        policy.update(0.5, pull(policy, number))
    assert policy.ledger.releases == told["releases"] + 40
    assert policy.ledger.spent() == policy.budget


@WITH_JOURNAL
def test_what_was_announced_is_charged_and_its_records_are_dropped(name, tmp_path):
    path, told = brought(tmp_path, name), TOLD[name]
    seen = dpb.inspect(path)
    policy = dpb.load(path)
    made = told["releases"] + told["announced"]
    assert told["announced"] > 0
    assert seen.ledger.releases == policy.ledger.releases == made
    assert frame_of(seen) == frame_of(policy) == told["lines"]
    assert seen.ledger.total() == policy.ledger.total() == told["spent_later"]
    assert seen.rounds == told["rounds"]
    assert not policy.session.rounds.pending
    last = max(told["lines"]["last"])
    assert policy.rounds > last
    assert policy.session.state.wall.first_unreleased[-1] > last
    assert lost_rounds_count_no_more(policy) or name == "at_once"
    for number in range(60):
        policy.update(0.5, pull(policy, number))
    assert policy.ledger.releases > made or name == "at_once"
    frame = policy.ledger.frame
    assert (frame["first"].to_numpy()[1:] > frame["last"].to_numpy()[:-1]).all()
    assert policy.ledger.total() <= policy.meter.limit * (1 + 1e-9)


def test_a_running_sum_begins_anew_on_top_of_what_was_released(tmp_path):
    path = brought(tmp_path, "at_once")
    header, arrays, announced = read5(path)
    policy = dpb.load(path)
    wall = policy.session.state.wall
    assert len(announced) == 30
    assert wall.earlier.tolist() == arrays["wall.release"].tolist()
    assert int(wall.running.clock[0]) == 0
    exact = policy.session.state.exact
    assert not any(array.any() for array in exact)
    assert header["class"] == "PrivateLinUCB"


def test_users_are_counted_up_to_the_last_announcement(tmp_path):
    path, told = brought(tmp_path, "users"), TOLD["users"]
    saved = {user: n for user, n in told["users"]}
    later = {user: n for user, n in told["later_users"]}
    announced = dict(saved)
    for _, users in read5(path).announced:
        announced |= dict(users)
    assert saved != announced
    policy = dpb.load(path)
    seen, alias = policy.session.rounds.users.seen, policy.session.seal.alias
    assert {one: known.rounds for one, known in seen.items()} == {
        alias(user): n for user, n in announced.items()
    }
    assert all(announced[user] <= n for user, n in later.items() if user in announced)
    assert policy.session.rounds.users.most == 3
    for user in NAMES:  # of names and numbers
        assert announced[user] == 3
        assert not policy.pull(user=user).recorded
    assert not any(known.latest for known in seen.values())
    assert policy.pull(user="stranger").recorded


def test_who_waits_for_a_release_waits_on(tmp_path):
    path = brought(tmp_path, "users", announced=False)
    waiting = {user for _, user in read5(path).header["rounds"]["users"]["unreleased"]}
    counted = dict(map(tuple, read5(path).header["rounds"]["users"]["recorded"]))
    policy = dpb.load(path)
    assert waiting
    for user in waiting:
        before = policy.ledger.releases
        recorded = policy.pull(user=user).recorded
        assert not recorded or (policy.ledger.releases > before and counted[user] < 3)


def test_flights_take_answers_by_their_tokens(tmp_path):
    told = TOLD["flights"]
    policy = dpb.load(brought(tmp_path, "flights"))
    waiting = len(policy.session.rounds.flown)
    assert waiting + len(policy.session.rounds.pending) == len(told["tokens"])
    assert [policy.update(1.0, token) for token in told["tokens"]] == [True] * len(told["tokens"])
    with pytest.raises(dpb.UpdateError, match="has been answered"):
        policy.update(1.0, told["tokens"][-1])


@pytest.mark.parametrize("name", list(TOLD))
def test_once_loaded_it_is_of_this_version_and_the_old_one_is_refused(name, tmp_path):
    path = brought(tmp_path, name)
    shutil.copytree(tmp_path, tmp_path.with_name("copies"), ignore=lambda *_: ["state"])
    copy = tmp_path.with_name("copies") / path.name
    try:
        policy = dpb.load(path)
        assert not is_format5(path)
        assert FilePlace(path).mark().life == policy.session.life
        with pytest.raises(dpb.ClaimError, match="still runs"):
            dpb.load(path)
        with pytest.raises(dpb.ClaimError, match="has been loaded before"):
            dpb.load(copy)
        assert dpb.inspect(copy).superseded
        assert not dpb.inspect(path).superseded
        pull(policy, 200)
        before = state_of(policy)
        del policy
        assert state_of(dpb.load(path)) == before
        (state,) = (tmp_path / "state" / "claims").iterdir()
        assert state.suffix == ".claimed"  # by which earlier versions know it, too
    finally:
        shutil.rmtree(copy.parent)


@WITH_JOURNAL
def test_a_simulation_of_it_claims_nothing(name, tmp_path):
    if name == "at_once":
        pytest.skip("secure noise is not simulated")
    path = brought(tmp_path, name)
    content = path.read_bytes()
    copies = [dpb.load(path, simulation=True) for _ in range(2)]
    assert state_of(copies[0]) == state_of(copies[1])
    assert not (tmp_path / "state").exists()
    assert path.read_bytes() == content
    policy = dpb.load(path)
    assert state_in(path) == state_of(policy)


def test_a_load_that_cannot_write_claims_nothing(tmp_path, monkeypatch):
    path = brought(tmp_path, "users")
    content = path.read_bytes(), journal(path).read_bytes()
    with monkeypatch.context() as patch:
        fail(patch, os, "replace", OSError(28, "no space left on device"))
        with pytest.raises(dpb.errors.StoreError, match="no space"):
            dpb.load(path)
    assert (path.read_bytes(), journal(path).read_bytes()) == content
    assert dpb.load(path).ledger.releases == TOLD["users"]["releases"] + 4


def test_a_load_that_is_killed_once_it_has_written_leaves_a_file_of_this_version(
    tmp_path, monkeypatch
):
    """Its journal is not truncated yet."""
    path = brought(tmp_path, "users")
    older = journal(path).read_bytes()
    policy = dpb.load(path)
    journal(path).write_bytes(older)
    before = state_of(policy)
    del policy
    policy = dpb.load(path)
    assert state_of(policy) == before
    policy.pull(user="stranger")
    before = state_of(policy)
    del policy
    assert state_of(dpb.load(path)) == before


def claimed(tmp_path, name, suffix, content):
    life, saves = read5(FOLDER / f"{name}.dpb").header["life"]
    folder = tmp_path / "state" / "claims"
    folder.mkdir(parents=True)
    (folder / f"{life}.{suffix}").write_text(json.dumps(content(saves)))


def test_claims_of_earlier_versions_stand(tmp_path):
    path = brought(tmp_path, "episodic")
    claimed(tmp_path, "episodic", "claimed", lambda saves: "somewhere")
    with pytest.raises(dpb.ClaimError, match="has been loaded before"):
        dpb.load(path)
    assert dpb.inspect(path).superseded
    assert is_format5(path)


def test_an_older_save_of_an_earlier_version_is_refused(tmp_path):
    path = brought(tmp_path, "episodic")
    claimed(tmp_path, "episodic", "latest", lambda saves: [saves + 1, False])
    with pytest.raises(dpb.ClaimError, match="is save 1 of a policy that was saved 2 times"):
        dpb.load(path)
    assert dpb.inspect(path).superseded


def test_a_journal_that_is_missing_is_refused(tmp_path):
    path = brought(tmp_path, "episodic", announced=False)
    claimed(tmp_path, "episodic", "latest", lambda saves: [saves, True])
    for action in (dpb.load, dpb.inspect):
        with pytest.raises(StateFileError, match=r"\.journal is missing"):
            action(path)


def test_a_journal_cut_anywhere_counts_every_whole_announcement(tmp_path):
    path = brought(tmp_path, "episodic")
    content, before = journal(path).read_bytes(), TOLD["episodic"]["releases"]
    counted = set()
    for cut in range(0, len(content) + 1, 3):
        journal(path).write_bytes(content[:cut])
        announced = sum(b'"begin"' in line for line in content[:cut].split(b"\n")[:-1])
        assert dpb.load(path, simulation=True).ledger.releases == before + announced
        counted.add(announced)
    assert len(counted) > 3


def test_a_damaged_journal_is_refused_and_nothing_is_claimed(tmp_path):
    path = brought(tmp_path, "episodic")
    content = journal(path).read_bytes()
    for place in range(0, len(content), 11):
        flipped = bytearray(content)
        flipped[place] ^= 4
        journal(path).write_bytes(flipped)
        with pytest.raises(StateFileError, match="damaged in line"):
            dpb.load(path)
    assert not (tmp_path / "state").exists()
    journal(path).write_bytes(content)
    dpb.load(path)


def test_a_damaged_file_is_refused_and_nothing_is_claimed(tmp_path):
    path = brought(tmp_path, "episodic")
    content = path.read_bytes()
    for length in range(4, len(content), 397):
        path.write_bytes(content[:length])
        with pytest.raises(StateFileError, match="checksum"):
            dpb.load(path)
    rng = np.random.default_rng(5)
    for place in [len(content) - 1, len(content) - 65, *rng.integers(4, len(content), size=60)]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        with pytest.raises(StateFileError):
            dpb.load(path)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            lambda header: header.update(version=4),
            "has format dpbandits-state 4; .* reads formats 5 and 6",
        ),
        (lambda header: header.update(format="other"), "has format other"),
        (lambda header: header.pop("format"), "not a saved policy"),
        (lambda header: header.update({"class": "Policy"}), "does not hold a policy"),
        (lambda header: header["config"].update(n_arms=4), "should be float64"),
        (lambda header: header["arrays"].popitem(), "arrays that its header lists"),
        (lambda header: header["rounds"].update(surprise=1), "does not hold a policy"),
        (lambda header: header.update(life=["name"]), "no proper entry .life."),
        (lambda header: header.update(life=["../../x", 1]), "its entry .life. must be"),
        (lambda header: header.pop("life"), "no proper entry .life."),
    ],
)
def test_a_wrong_header_is_refused_and_nothing_is_claimed(change, complaint, tmp_path):
    path = brought(tmp_path, "episodic", announced=False)
    with np.load(io.BytesIO(path.read_bytes())) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(arrays.pop("header").tobytes())
    change(header)
    buffer = io.BytesIO()
    np.savez(buffer, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    signed(path, buffer.getvalue())
    with pytest.raises(StateFileError, match=complaint):
        dpb.load(path)
    assert not (tmp_path / "state").exists()


def test_nothing_in_an_archive_is_executed(tmp_path):
    buffer = io.BytesIO()
    np.savez(buffer, header=np.array([{"format": "dpbandits-state"}], dtype=object))
    signed(tmp_path / "a", buffer.getvalue())
    with pytest.raises(StateFileError, match="not a saved policy"):
        dpb.load(tmp_path / "a")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("something", "else")
    signed(tmp_path / "b", buffer.getvalue())
    with pytest.raises(StateFileError, match="not a saved policy"):
        dpb.load(tmp_path / "b")
