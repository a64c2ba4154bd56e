"""Places keep policies: recovery is exact, a call is one commit, nothing leaves before it returns,
and what was sealed or dropped tells nothing.
"""

import shutil
import sqlite3
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from clinic import ADVICE, Clinic, Recording, ada, contents, fail, state_of, whole

import dpbandits as dpb
from dpbandits.errors import StateFileError, StoreError
from dpbandits.papers.concentrated import AdaCUCB
from dpbandits.papers.others import AdaPTT
from dpbandits.policies.batches import batch_of
from dpbandits.session.keeping import Keeper
from dpbandits.session.packing import key_of
from dpbandits.session.running import AllOrNothing
from dpbandits.session.saved_head import private_part, public_part
from dpbandits.session.saved_rows import whole_rows
from dpbandits.stores import FilePlace
from dpbandits.stores.addresses import place_at
from dpbandits.stores.sealing import Sealer

pytestmark = pytest.mark.compiled
CONTEXTS = np.random.default_rng(4).uniform(-0.5, 0.5, (400, 3, 2))
BUDGET = dpb.ZCDP(0.5)
MAKERS = {
    "users": lambda **o: dpb.algorithms.MergedIMED(3, budget=BUDGET, max_rounds=3, **o),
    "parts": lambda **o: AdaPTT(
        3, failure_probability=0.1, max_rounds=9, budget=dpb.PureDP(9.0), **o
    ),
    "every round": lambda **o: dpb.algorithms.HTINF(3, budget=BUDGET, **o),
    "late": lambda **o: dpb.algorithms.MergedIMED(3, budget=BUDGET, answers_within=9, **o),
    "clock": lambda **o: AdaCUCB(3, budget=BUDGET, answers_within="1min", **o),
    "features": lambda **o: dpb.algorithms.RSLinearIMED(3, 2, horizon=900, budget=BUDGET, **o),
    "sums": lambda **o: dpb.algorithms.PrivateLinUCB(3, 2, horizon=900, budget=BUDGET, **o),
    "hidden": lambda **o: dpb.algorithms.LinearIMEDJDP(3, 2, horizon=900, budget=BUDGET, **o),
    "advice": lambda **o: dpb.algorithms.EXP4(3, 4, horizon=900, budget=BUDGET, **o),
}
EVERY = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
SEEDED = {"seed": 5}


class Visits:
    """Calls of several policies, the same for each, drawn from a seed."""

    def __init__(self, *policies, seed=1, users=40):
        self.policies, self.rng, self.waiting, self.time = (
            policies,
            np.random.default_rng(seed),
            [],
            0,
        )
        self.users = users

    def play(self, calls):
        """Play so many calls, and return the arms of the first policy's decisions."""
        arms = []
        for _ in range(calls):
            kind = self.rng.random()
            if kind < 0.45 and self.waiting:
                decisions = self.waiting.pop(self.rng.integers(len(self.waiting)))
                reward = None if kind < 0.03 else self.rng.random()
                for policy, decision in zip(self.policies, decisions, strict=True):
                    policy.update(reward, decision, **self.at(policy))
            else:
                arms.append(self.pull())
        return arms

    def at(self, policy):
        return {"at": float(self.time)} if policy.settings.uses_clock else {}

    def pull(self):
        self.time += 5
        user = int(self.rng.integers(self.users))
        decisions = []
        for policy in self.policies:
            shown = {"": None, "contexts": CONTEXTS, "advice": ADVICE}[policy.sees]
            given = {"user": user} if policy.max_rounds else {}
            seen = () if shown is None else (shown[self.time // 5 % len(shown)],)
            decisions.append(policy.pull(*seen, **given, **self.at(policy)))
        if decisions[0].recorded:
            self.waiting.append(decisions)
        return decisions[0].arm


# Recovery ------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("where", ["file", "sqlite"])
def test_a_policy_is_what_it_was_after_every_stretch_of_calls(make, where, tmp_path):
    place = tmp_path / "a" if where == "file" else f"sqlite:///{tmp_path}/a.db#one"
    kept, twin = make(**SEEDED), make(**SEEDED)
    visits = Visits(kept, twin)
    visits.play(30)
    kept.save(place)
    for stretch in (1, 7, 60, 150):
        visits.play(stretch)
        before = state_of(kept)
        del kept
        visits.policies = ()
        kept = dpb.load(place)
        assert state_of(kept) == before
        # Tokens of before are those of another life, and taken.
        visits.policies = (kept, twin)
    assert state_of(kept).arrays == state_of(twin).arrays
    assert kept.ledger.releases == twin.ledger.releases > 0


@EVERY
@pytest.mark.parametrize("where", ["file", "sqlite"])
def test_of_an_ended_policy_only_what_was_released_is_left(make, where, tmp_path):
    place = tmp_path / "a" if where == "file" else f"sqlite:///{tmp_path}/a.db#one"
    kept = make(noise="secure")
    visits = Visits(kept)
    kept.save(place)
    visits.play(120)
    keys = Sealer(kept._first_life)._keys
    kept.end()
    told = repr(kept.estimates), kept.ledger.table(), str(kept.guarantee)
    rows = {row.kind for row in place_at(place).read().rows}
    assert rows <= {"about", "line", "release"}
    assert not keys.keys() & Sealer(kept._first_life)._keys.keys()
    assert not any(vars(kept.diagnostics).values())
    fresh = make(noise="secure").session.state.arrays
    arrays = kept.session.state.arrays
    hidden = [name for name in arrays if name.startswith(("raw", "exact", "wall.running"))]
    assert all((arrays[name] == fresh[name]).all() for name in hidden)
    del kept
    visits.policies = ()
    kept = dpb.load(place)
    visits.policies, visits.waiting = (kept,), []
    visits.play(60)
    assert not visits.waiting  # nothing is recorded
    kept.finish()
    assert (repr(kept.estimates), kept.ledger.table(), str(kept.guarantee)) == told


@EVERY
def test_secure_noise_comes_back_as_far_as_it_was_drawn(make, tmp_path):
    kept = make(noise="secure")
    visits = Visits(kept)
    kept.save(tmp_path / "a")
    visits.play(120)
    before = state_of(kept)
    visits.policies = ()
    del kept
    assert state_of(dpb.load(tmp_path / "a")) == before


def test_a_batch_of_several_policies_is_one_transaction(tmp_path):
    one, two = (MAKERS["late"](**SEEDED) for _ in range(2))
    for policy, key in ((one, "one"), (two, "two")):
        policy.save(f"sqlite:///{tmp_path}/a.db#{key}")
    with batch_of([one, two]):
        for policy in (one, two):
            Visits(policy).play(40)
    states = [state_of(one), state_of(two)]
    del one, two, policy
    keys = ("one", "two")
    assert [state_of(dpb.load(f"sqlite:///{tmp_path}/a.db#{key}")) for key in keys] == states


# One commit, before anything leaves ----------------------------------------------------------


@EVERY
def test_each_call_is_one_commit_and_a_block_is_one(make, tmp_path):
    place = Recording(FilePlace(tmp_path / "a"))
    policy = make(**SEEDED)
    policy.save(place)
    visits = Visits(policy)
    for _ in range(60):
        before = len(place.batches)
        visits.play(1)
        assert len(place.batches) <= before + 1
    before, releases = len(place.batches), policy.ledger.releases
    with policy.batch():
        visits.play(120)
        assert len(place.batches) == before
    assert len(place.batches) == before + 1
    assert policy.ledger.releases > releases + 1


@EVERY
def test_what_failed_is_repeated_with_the_same_bytes_and_nothing_leaves_before(make, tmp_path):
    place = Recording(FilePlace(tmp_path / "a"))
    policy = make(**SEEDED)
    policy.save(place)
    visits = Visits(policy)
    visits.play(25)
    place.failing, before = 3, len(place.batches)
    with pytest.raises(StoreError):
        visits.pull()
    for read in (policy.releases, policy.chooser):
        with pytest.raises(StoreError):
            read()
    visits.pull()
    tried = place.batches[before:-1]
    assert len(tried) == 4
    assert len(set(map(repr, tried))) == 1
    after = state_of(policy)
    visits.policies = ()
    del policy
    assert state_of(dpb.load(tmp_path / "a")) == after


@EVERY
def test_bytes_have_one_length_whatever_answers_and_noise_are(make, tmp_path):
    """With releases that no reward enters, only values differ between the two worlds."""
    from dpbandits.testing.living import with_fixed_releases

    def lengths(answer, seed):
        policy = with_fixed_releases(make(**SEEDED))
        visits, rng, found = Visits(policy), np.random.default_rng(seed), []
        for _ in range(80):
            visits.pull()
            while visits.waiting:
                (decision,) = visits.waiting.pop()
                policy.update(answer(rng), decision, **visits.at(policy))
            session = policy.session
            head = len(public_part(session)), len(private_part(session))
            found.append(
                (head, sorted((row.kind, len(row.content)) for row in whole_rows(session)))
            )
        return found

    assert lengths(lambda rng: 0.0, 1) == lengths(lambda rng: rng.random(), 2)


def sizes(batch):
    """The lengths in a batch, without the values."""
    rows = [
        (len(row.kind), len(row.key), len(row.content or b""), row.content is None)
        for row in batch.rows
    ]
    return len(batch.head), sorted(rows)


@pytest.mark.parametrize("kind", MAKERS)
def test_bytes_of_a_call_have_one_length_whatever_its_own_noise_is(kind, tmp_path):
    """From one state on, the next call draws other noise, and so may choose other arms."""
    policy, chosen, releases = MAKERS[kind](**SEEDED), [], 0
    at_once = policy.card.learns_at_once
    visits = Visits(policy, users=12)
    policy.save(tmp_path / "a")
    for _ in range(90):
        visits.play(1)
        worlds = []
        for world in range(5):
            copy = dpb.load(tmp_path / "a", simulation=True)
            copy.session.state.noise_rng = np.random.default_rng(world)
            place = Recording(FilePlace(tmp_path / "b"))
            copy.save(place)
            made, before = copy.ledger.releases, len(place.batches)
            alone = Visits(copy, seed=len(chosen), users=12)
            alone.time = visits.time
            arm = alone.pull()
            if at_once and alone.waiting:  # an answer makes the release
                copy.update(world / 4, alone.waiting[0][0])
            if copy.ledger.releases == made:
                break  # there was no noise
            worlds.append((arm, [sizes(batch) for batch in place.batches[before:]]))
        assert len({str(size) for _, size in worlds}) <= 1
        chosen.append({arm for arm, _ in worlds})
        releases += len(worlds) > 1
    assert releases > 0 or kind == "advice"  # which releases rarely
    if kind in ("users", "parts", "every round", "clock", "features"):
        assert max(map(len, chosen)) > 1  # or there would be nothing to tell


def test_what_came_and_went_within_a_batch_has_no_rows(tmp_path):
    policy, place = MAKERS["every round"](**SEEDED), Recording(FilePlace(tmp_path / "a"))
    policy.save(place)
    waiting = policy.pull()
    with policy.batch():
        policy.update(1.0, waiting)
        for _ in range(20):
            policy.update(0.5, policy.pull())
        policy.pull()
    rows = place.batches[-1].rows
    pulls = {row.key: row.content is None for row in rows if row.kind == "pull"}
    assert pulls == {key_of(0): True, key_of(21): False}
    assert len([row for row in rows if row.kind == "booked"]) == policy.n_arms
    assert dpb.load(tmp_path / "a").rounds == 22


def test_while_a_place_fails_the_last_durable_choice_is_served(tmp_path):
    place = Recording(FilePlace(tmp_path / "a"))
    policy = MAKERS["late"](**SEEDED)
    policy.save(place)
    Visits(policy).play(100)
    pulls = policy.session.rounds.pulls
    place.failing = 10**6
    served = [policy.pull(on_store_failure="serve") for _ in range(5)]
    assert not any(decision.recorded for decision in served)
    with pytest.raises(StoreError):
        policy.pull()
    place.failing = 0
    assert policy.pull().number == pulls + 1  # the pull that failed first is there, and no other


def test_a_call_takes_as_many_steps_however_many_episodes_and_sealed_rows_wait(tmp_path):
    policy, steps = dpb.algorithms.HTINF(3, budget=BUDGET, answers_within="1h", **SEEDED), []
    policy.save(f"sqlite:///{tmp_path}/a.db#one")
    for waiting in (100, 3000):
        with policy.batch():
            while policy.session.rounds.pulls < waiting:
                policy.pull(at=0.0)
        made = Counter[str]()
        sys.setprofile(lambda _, event, __, made=made: made.update([event]))
        policy.update(0.5, policy.pull(at=0.0), at=0.0)
        sys.setprofile(None)
        steps.append(made.total())
    assert len(policy.session.rounds.flights) == 3000
    assert steps[1] < steps[0] + 50


@pytest.mark.parametrize("fails", ["the commit", "what prepares it"])
def test_ledger_and_rounds_wait_for_the_commit(fails, tmp_path, monkeypatch):
    place = Recording(FilePlace(tmp_path / "a"))
    policy = MAKERS["every round"](**SEEDED)
    policy.save(place)
    policy.update(0.5, policy.pull())
    ledger, before = policy.ledger, (policy.ledger.releases, policy.rounds)
    with monkeypatch.context() as patch:
        if fails == "the commit":
            place.failing = 10**6
        else:
            patch.setattr(Keeper, "_changed", lambda self: (_ for _ in ()).throw(StoreError("x")))
        for call in (
            policy.pull,
            lambda: policy.rounds,
            lambda: policy.ledger,
            ledger.spent,
            policy.releases,
        ):
            with pytest.raises(StoreError):
                call()
    place.failing = 0
    assert (policy.ledger.releases, policy.rounds) > before
    after = policy.ledger.releases, policy.rounds
    loaded = dpb.load(tmp_path / "a")
    assert (loaded.ledger.releases, loaded.rounds) == after


def test_a_decision_that_nobody_got_is_not_waited_for(tmp_path):
    place = Recording(FilePlace(tmp_path / "a"))
    policy = AdaCUCB(2, budget=BUDGET, answers_within=None, seed=1)
    policy.save(place)
    for _ in range(20):
        policy.update(0.5, policy.pull())
        place.failing = 1
        served = policy.pull(on_store_failure="serve")
        assert not served.recorded
    rounds = policy.rounds
    for _ in range(20):
        policy.update(0.5, policy.pull())
    assert policy.rounds >= rounds + 15


def test_an_undone_release_leaves_what_waits_where_it_is():
    """Undo notes changes, and copies nothing that waits."""
    policy = dpb.algorithms.MergedIMED(3, budget=BUDGET, noise="secure", answers_within=10**6)
    for _ in range(2000):
        policy.pull()
    rounds = policy.session.rounds
    waiting, order = rounds.rows, [list(rows.items()) for rows in rounds.rows]

    def failing(*_):
        raise MemoryError

    def step():
        with AllOrNothing(policy.session):
            rounds.pending.popitem()
            rounds.pending[10**7] = None
            rounds.unreleased[99] = None
            failing()

    with pytest.raises(MemoryError):
        step()
    assert all(one is other for one, other in zip(rounds.rows, waiting, strict=True))
    assert [list(rows.items()) for rows in rounds.rows] == order
    assert all(rows.changes is None for rows in rounds.rows)


# Copies, and places that were changed -----------------------------------------------------------


def test_an_edited_place_is_refused(tmp_path):
    path = Clinic(ada()).play(40).policy.save(tmp_path / "a")
    held = contents(path)
    rows = list(held.rows)
    forged = [
        row._replace(content=row.content[:-1] + bytes([row.content[-1] ^ 1]))
        if row.kind == "pull"
        else row
        for row in rows
    ]
    assert forged != rows
    stamps = held.stamps
    held = held._replace(stamps=type(stamps)(b"another"))
    whole(path, held, forged)
    for action in (dpb.load, dpb.inspect, dpb.restore):
        with pytest.raises(StateFileError, match="was edited"):
            action(path)


@EVERY
@pytest.mark.parametrize("lost", [False, True], ids=["state folder kept", "state folder lost"])
@pytest.mark.parametrize("where", ["file", "sqlite"])
def test_a_backup_is_refused_and_restored_without_its_records(
    make, where, lost, tmp_path, monkeypatch
):
    def at(folder):
        return folder / "a" if where == "file" else f"sqlite:///{folder}/a.db#one"

    lived = tmp_path / "lived"
    lived.mkdir()
    policy = make(noise="secure")
    policy.save(at(lived))
    visits = Visits(policy)
    visits.play(90)
    policy.kept_in.store.close() if where == "sqlite" else None
    shutil.copytree(lived, tmp_path / "backup")
    tokens = [decision.token for (decision,) in visits.waiting]
    visits.play(40)
    if lost:
        monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "new"))
    with pytest.raises((dpb.ClaimError, StateFileError)):
        dpb.load(at(tmp_path / "backup"))
    restored = dpb.restore(at(tmp_path / "backup"))
    rounds = restored.session.rounds
    assert not rounds.pending
    assert not rounds.answers
    for token in tokens:
        with suppress(dpb.errors.UpdateError):  # where its key was lost, too
            assert restored.update(1.0, token) is False
    assert restored.meter.allows(restored.ledger.total())
    assert restored.ledger.spent() is not None
    told = " ".join([*restored.guarantee.assumptions, *restored.guarantee.caveats])
    assert "restored once" in told
    assert (restored.guarantee.holds == BUDGET) is (restored.max_rounds is None)
    Visits(restored, seed=2).play(60)
    before = state_of(restored)
    del restored
    assert state_of(dpb.load(at(tmp_path / "backup"))) == before


def released(policy):
    return np.array([values for _, _, values, _ in policy.session.exchange.made]).ravel()


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_no_record_of_a_backup_enters_a_release_of_the_restored_policy(reward, tmp_path):
    """Where noise is next to nothing, releases show what is in them."""
    policy = dpb.algorithms.MergedIMED(2, budget=dpb.ZCDP(1e26), seed=1)
    policy.save(tmp_path / "a")
    for _ in range(40):
        policy.update(reward, policy.pull())
    shutil.copy(tmp_path / "a", tmp_path / "b")
    shutil.copy(tmp_path / "a.journal", tmp_path / "b.journal")
    policy.update(reward, policy.pull())
    restored = dpb.restore(tmp_path / "b")
    known = len(released(restored))
    for _ in range(40):
        restored.update(0.5, restored.pull())
    later = restored.session.exchange.made[known:]
    # Halves, and zeros in the place of what was dropped; nothing else.
    totals = [one.values[0] for one in later]
    assert all(abs(2 * total - round(2 * total)) < 1e-6 for total in totals)
    assert sum(totals) <= 0.5 * 40 + 1e-6


# Sealed rows ---------------------------------------------------------------------------------


def test_a_database_has_no_answer_in_the_clear_and_a_file_has(tmp_path):
    rewards = np.random.default_rng(3).random(60) * 0.5 + 0.25
    policy = MAKERS["late"](**SEEDED)
    policy.save(f"sqlite:///{tmp_path}/a.db#one")
    for reward in rewards:
        policy.update(float(reward), policy.pull())
    database = b"".join(path.read_bytes() for path in tmp_path.glob("a.db*"))
    assert not any(float(reward).hex().encode() in database for reward in rewards)
    assert not any(np.float64(reward).tobytes() in database for reward in rewards)
    plain = MAKERS["late"](**SEEDED)
    plain.save(tmp_path / "plain")
    for reward in rewards:
        plain.update(float(reward), plain.pull())
    files = b"".join(path.read_bytes() for path in tmp_path.glob("plain*"))
    assert any(np.float64(reward).tobytes() in files for reward in rewards)  # which has power


def test_keys_of_ended_episodes_are_destroyed(tmp_path):
    policy = MAKERS["late"](**SEEDED)
    policy.save(f"sqlite:///{tmp_path}/a.db#one")
    sealer, first = policy._sealer, None
    for number in range(200):
        policy.update(0.5, policy.pull())
        if number == 5:
            first = set(sealer._keys)
    assert not first & set(sealer._keys)
    left = sealer.path.read_bytes()
    assert sum(left[i : i + 8] != bytes(8) for i in range(0, len(left), 40)) == len(sealer._keys)
    assert len(sealer._keys) < 12


def opens(policy, row):
    """Whether some key in the state folder opens a sealed row."""
    try:
        Sealer(policy._first_life).open(*row)
    except StateFileError:
        return False
    return True


def test_replies_keep_no_key_of_an_episode_that_was_released(tmp_path, monkeypatch):
    policy, sealed, seal = MAKERS["hidden"](**SEEDED), [], Sealer.seal

    def noted(self, kind, key, content, **how):
        sealed.append((kind, key, seal(self, kind, key, content, **how)))
        return sealed[-1][2]

    monkeypatch.setattr(Sealer, "seal", noted)
    policy.save(f"sqlite:///{tmp_path}/a.db#one")
    made = []
    while policy.ledger.releases < 3:
        before, earlier = policy.ledger.releases, len(sealed)
        with policy.batch():
            number = policy.pull(CONTEXTS[0]).number
            policy.notes["reply", key_of(number)] = b"served"
        if policy.ledger.releases > before:
            made.append([(row[0], opens(policy, row)) for row in sealed[:earlier]])
        policy.update(0.5)
    for rows in made:
        assert {kind for kind, opened in rows if opened} == {"reply"}
        assert {kind for kind, opened in rows if not opened} == {"head", "pull"}
    assert len(dpb.load(f"sqlite:///{tmp_path}/a.db#one", simulation=True).notes) == number + 1


def keys_left(folder):
    """The keys in the state folder."""
    files = [path.read_bytes() for path in (folder / "state" / "keys").glob("*")]
    slots = [content[i : i + 40] for content in files for i in range(0, len(content), 40)]
    return {slot for slot in slots if any(slot)}


def test_keys_of_a_lost_life_are_destroyed_once_it_is_restored(tmp_path):
    """They open its copies."""
    policy = MAKERS["late"](**SEEDED)
    policy.save(f"sqlite:///{tmp_path}/a.db#one")
    Visits(policy).play(40)
    policy.kept_in.store.close()
    for copy in ("b.db", "c.db"):
        shutil.copy(tmp_path / "a.db", tmp_path / copy)
    lost = keys_left(tmp_path)
    restored = dpb.restore(f"sqlite:///{tmp_path}/b.db#one")
    assert lost
    assert not lost & keys_left(tmp_path)
    assert len(keys_left(tmp_path)) == len(restored._sealer._keys)
    assert dpb.restore(f"sqlite:///{tmp_path}/c.db#one").session.restored == 1  # without any


def test_no_key_is_left_of_a_database_that_a_policy_has_left(tmp_path):
    policy = MAKERS["late"](**SEEDED)
    policy.save(f"sqlite:///{tmp_path}/a.db#one")
    Visits(policy).play(40)
    assert keys_left(tmp_path)
    policy.save(tmp_path / "file")
    assert not keys_left(tmp_path)
    policy.save(f"sqlite:///{tmp_path}/a.db#two")
    Visits(policy).play(40)
    before = state_of(policy)
    del policy
    assert state_of(dpb.load(f"sqlite:///{tmp_path}/a.db#two")) == before


def test_keys_that_a_kill_has_left_are_destroyed_by_the_next_load(tmp_path, monkeypatch):
    policy = MAKERS["late"](**SEEDED)
    policy.save(f"sqlite:///{tmp_path}/a.db#one")
    with monkeypatch.context() as patch:
        patch.setattr(Sealer, "destroy", lambda self: None)
        Visits(policy).play(60)
    needed, left = set(policy._sealer._used.values()), len(keys_left(tmp_path))
    del policy
    loaded = dpb.load(f"sqlite:///{tmp_path}/a.db#one")
    assert len(keys_left(tmp_path)) == len(needed) < left
    assert set(loaded._sealer._keys) == needed


def test_keys_that_cannot_be_destroyed_are_told(tmp_path, monkeypatch):
    policy = MAKERS["late"](**SEEDED)
    policy.save(f"sqlite:///{tmp_path}/a.db#one")
    del policy
    with monkeypatch.context() as patch:
        fail(patch, Path, "unlink", PermissionError(13, "not permitted"))
        with pytest.raises(StoreError, match="keys that nothing needs, and could not be removed"):
            dpb.restore(f"sqlite:///{tmp_path}/a.db#one")
    assert dpb.load(f"sqlite:///{tmp_path}/a.db#one").session.restored == 1


def test_names_of_users_are_nowhere(tmp_path):
    policy = MAKERS["users"](**SEEDED)
    policy.save(f"sqlite:///{tmp_path}/a.db#one")
    policy.save(tmp_path / "file")
    for number in range(40):
        policy.pull(user=f"Ms. Example {number % 7}")
    found = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"Example" not in found


def test_places_of_one_database_are_separate(tmp_path):
    for key in ("one", "two"):
        Clinic(ada()).play(20).policy.save(f"sqlite:///{tmp_path}/a.db#{key}")
    assert place_at(f"sqlite:///{tmp_path}/a.db#one").store.keys() == ["one", "two"]
    assert dpb.load(f"sqlite:///{tmp_path}/a.db#one").ledger.releases
    with sqlite3.connect(tmp_path / "a.db") as database:
        assert database.execute("SELECT count(*) FROM places").fetchone() == (2,)
