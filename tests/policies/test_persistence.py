import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.policies import AdvicePolicy, ViewingPolicy, persistence
from dpbandits.policies.protocol import example_policies
from dpbandits.privacy.ledger import FIRST, LAST, PART

REWARDS = np.random.default_rng(3).random((400, 3))
LATE = 2  # rounds until an answer comes


def makers(**options):
    """One parameter per registered class and budget; a fresh policy for every test."""
    options = {"seed": 11, "patience": 3} | options
    for i, policy in enumerate(example_policies(**options)):
        yield pytest.param(
            lambda i=i: list(example_policies(**options))[i],
            id=f"{type(policy).__name__}-{policy.budget}",
        )


EVERY = pytest.mark.parametrize("make", list(makers()))
EVERY_PRIVATE = pytest.mark.parametrize("make", [p for p in makers() if not p.id.endswith("None")])


def ada(**options):
    return dpb.AdaCUCB(3, budget=dpb.ZCDP(0.5), **({"seed": 11, "patience": 3} | options))


@pytest.fixture(autouse=True)
def state_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


CONTEXTS = np.random.default_rng(4).uniform(-0.6, 0.6, (400, 3, 2))
ADVICE = np.random.default_rng(5).dirichlet(np.ones(3), (400, 4))


def pull(policy):
    if not isinstance(policy, ViewingPolicy):
        return policy.pull()
    shown = ADVICE if isinstance(policy, AdvicePolicy) else CONTEXTS
    return policy.pull(shown[policy._progress.pulls % len(shown)])


class Clinic:
    """Plays a policy: answers come late, every seventh never."""

    def __init__(self, policy):
        self.policy, self.waiting, self.arms, self.t = policy, [], [], 0

    def play(self, rounds):
        for _ in range(rounds):
            try:
                decision = pull(self.policy)
            except dpb.BudgetExhausted:
                decision = pull(self.policy)
            self.arms.append(decision.arm)
            self.waiting.append((self.t, decision))
            if len(self.waiting) > LATE:
                t, due = self.waiting.pop(0)
                if t % 7:
                    self.policy.update(REWARDS[t % len(REWARDS), due], due)
            self.t += 1
        return self

    def until_release(self):
        before = self.policy.ledger.releases
        while self.policy.ledger.releases == before:
            self.play(1)
        return self


def state_of(policy):
    arrays = {name: array.tolist() for name, array in persistence._arrays(policy)}
    # as text, because a propensity may be nan
    progress = json.dumps(vars(policy._progress), default=persistence._as_json)
    return arrays, progress, policy.ledger.spent()


def claims(folder):
    return list(folder.rglob("*.claimed"))


def journal(path):
    return Path(f"{path}.journal")


def rewritten(path, change):
    """The file with another header, and a checksum that fits it."""
    header, arrays = persistence._decode(path)
    change(header)
    buffer = io.BytesIO()
    np.savez(buffer, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    signed(path, buffer.getvalue())


def signed(path, archive):
    archive = archive[:-2] + (64).to_bytes(2, "little")
    path.write_bytes(archive + hashlib.sha256(archive).hexdigest().encode())


# Going on as before --------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("rounds", [0, 1, 37, 90])
def test_a_loaded_policy_goes_on_exactly(make, rounds, tmp_path):
    unbroken = Clinic(make()).play(rounds + 150)
    broken = Clinic(make()).play(rounds)
    before = state_of(broken.policy)
    assert broken.policy.save(tmp_path / "a") == tmp_path / "a"
    broken.policy = dpb.load(tmp_path / "a")
    assert state_of(broken.policy) == before
    assert repr(broken.policy) == repr(make())
    broken.play(150)
    assert broken.arms == unbroken.arms
    assert state_of(broken.policy) == state_of(unbroken.policy)
    assert broken.policy.ledger.frame.equals(unbroken.policy.ledger.frame)


def test_the_last_pull_can_be_answered_without_its_decision(tmp_path):
    policy = ada()
    policy.pull()
    loaded = dpb.load(policy.save(tmp_path / "a"))
    assert loaded.update(1.0)
    with pytest.raises(dpb.UpdateError, match="has been answered"):
        loaded.update(1.0)


def test_a_ledger_that_has_grown_comes_back(tmp_path):
    policy = ada(choices_public=True, patience=0, grid=2.0**-10, reward_range=(-1, 2))
    for i in range(20_000):
        decision = policy.pull()
        policy.update(float(decision.arm == i % 3), decision)
    policy._wall = policy._wall._replace(ledger=persistence.grown(policy._wall.ledger))
    before = state_of(policy)
    loaded = dpb.load(policy.save(tmp_path / "a"))
    assert state_of(loaded) == before
    assert loaded.reward_range == (-1.0, 2.0)
    assert loaded.label == policy.label


def test_decisions_of_other_lives_are_told_apart(tmp_path):
    original = Clinic(ada()).play(40).policy
    while original._progress.left < 3:  # so that the next rounds are recorded
        original.update(0.5, original.pull())
    early = original.pull()
    original.save(tmp_path / "a")
    lost = original.pull()
    loaded = dpb.load(tmp_path / "a")
    new = loaded.pull()
    assert new.number == lost.number
    with pytest.raises(dpb.UpdateError, match="must come from this policy"):
        loaded.update(1.0, lost)
    assert loaded.update(1.0, early)
    assert loaded.update(1.0, new)
    third = dpb.load(loaded.save(tmp_path / "b"))
    for answered in (early, new):
        with pytest.raises(dpb.UpdateError, match="has been answered"):
            third.update(1.0, answered)


# One holder ----------------------------------------------------------------------------------


def test_a_file_is_loaded_once_and_then_belongs_to_the_loaded_policy(tmp_path):
    path = Clinic(ada()).play(30).policy.save(tmp_path / "a")
    shutil.copy(path, tmp_path / "copy")
    first = Clinic(dpb.load(path))
    with pytest.raises(dpb.ClaimError, match="same raw data twice with fresh noise"):
        dpb.load(tmp_path / "copy")
    with pytest.raises(dpb.ClaimError, match="the policy that came of it is alive"):
        dpb.load(path)
    first.until_release()
    assert first.policy.save(path) == path  # who saves, offers the file to the next
    second = Clinic(dpb.load(path))
    with pytest.raises(dpb.ClaimError, match="no release is made"):
        first.until_release()
    second.until_release()


def test_crash_after_crash_is_survived_by_loading_alone(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    for _ in range(3):
        clinic.until_release().play(5)
        lost = clinic.policy.ledger.frame
        del clinic
        clinic = Clinic(dpb.load(path))
        assert clinic.policy.ledger.frame.equals(lost)
    assert clinic.policy.ledger.total() == pytest.approx(0.5)


def test_a_load_that_cannot_save_again_claims_nothing(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    content, before = path.read_bytes(), state_of(clinic.policy)

    def full(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(persistence, "_replace", full)
        with pytest.raises(OSError, match="no space"):
            dpb.load(path)
    assert path.read_bytes() == content
    assert not claims(tmp_path)
    assert state_of(dpb.load(path)) == before


@pytest.mark.skipif(persistence.fcntl is None, reason="no locks on this platform")
def test_a_load_in_the_middle_of_an_announcement_waits_and_counts_it(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    before = clinic.policy.ledger.releases
    append, loaded = persistence.Journal._append, []
    loader = threading.Thread(target=lambda: loaded.append(dpb.load(path)))

    def slow(self, entry):
        if "begin" in entry and loader.ident is None:
            loader.start()
            loader.join(0.3)
            assert not loaded
        append(self, entry)

    monkeypatch.setattr(persistence.Journal, "_append", slow)
    clinic.until_release()
    loader.join()
    assert loaded[0].ledger.releases == before + 1
    assert lost_rounds_count_as_default(loaded[0])


def test_of_two_policies_saved_to_one_file_only_the_later_goes_on(tmp_path):
    older, newer = Clinic(ada()).play(40), Clinic(ada(seed=12)).play(40)
    path = older.policy.save(tmp_path / "a")
    older.until_release()
    newer.policy.save(path)
    newer.until_release()
    content = journal(path).read_bytes()
    with pytest.raises(dpb.ClaimError, match="overwritten by another save"):
        older.until_release()
    assert journal(path).read_bytes() == content
    older.policy.save(tmp_path / "b")
    older.until_release()
    assert dpb.load(path).ledger.frame.equals(newer.policy.ledger.frame)
    assert dpb.load(tmp_path / "b").ledger.frame.equals(older.policy.ledger.frame)


def test_an_older_save_is_refused_before_and_after_the_last_was_loaded(tmp_path):
    clinic = Clinic(ada()).play(30)
    clinic.policy.save(tmp_path / "older")
    clinic.until_release().policy.save(tmp_path / "newer")
    for _ in range(2):
        with pytest.raises(dpb.ClaimError):
            dpb.load(tmp_path / "older")
        if not claims(tmp_path):
            clinic.policy = dpb.load(tmp_path / "newer")
    clinic.policy.save(tmp_path / "newest")
    for old in ("older", "newer"):
        with pytest.raises(dpb.ClaimError):
            dpb.load(tmp_path / old)
    dpb.load(tmp_path / "newest")


def test_the_original_is_refused_once_its_save_was_loaded(tmp_path):
    clinic = Clinic(ada()).play(30)
    path = clinic.policy.save(tmp_path / "a")
    loaded = Clinic(dpb.load(path))
    spent = len(clinic.policy.ledger)
    with pytest.raises(dpb.ClaimError, match="no release is made"):
        clinic.until_release()
    assert len(clinic.policy.ledger) == spent
    with pytest.raises(dpb.ClaimError, match="was not written"):
        clinic.policy.save(tmp_path / "b")
    assert not (tmp_path / "b").exists()
    loaded.until_release().policy.save(path)


def test_copies_for_simulation_are_free_and_independent(tmp_path):
    clinic = Clinic(ada()).play(30)
    path = clinic.policy.save(tmp_path / "a")
    copies = [dpb.load(path, simulation=True) for _ in range(3)]
    assert not claims(tmp_path)
    first, second, _ = (Clinic(copy).play(100) for copy in copies)
    assert first.arms == second.arms
    assert not journal(path).exists()
    clinic.until_release()  # the original is not disturbed
    dpb.load(copies[2].save(tmp_path / "b"))
    dpb.load(path)
    dpb.load(path, simulation=True)


def test_two_processes_cannot_both_release(tmp_path):
    path = Clinic(ada()).play(30).policy.save(tmp_path / "a")
    script = f"""
        import time, pathlib
        import dpbandits as dpb
        from test_persistence import Clinic
        folder, me = pathlib.Path({str(tmp_path)!r}), sys.argv[1]
        def meet(place):
            (folder / (place + me)).touch()
            while len(list(folder.glob(place + "*"))) < 2:
                time.sleep(0.001)
        meet("ready")
        try:
            clinic = Clinic(dpb.load(folder / "a"))
        except dpb.ClaimError:
            clinic = None
        meet("loaded")
        try:
            clinic and clinic.until_release()
            print("released" if clinic else "refused")
        except dpb.ClaimError:
            print("refused")
    """
    racers = [start("import sys\n" + textwrap.dedent(script), str(i)) for i in range(2)]
    assert sorted(racer.communicate(timeout=60)[0].strip() for racer in racers) == [
        "refused",
        "released",
    ]
    assert dpb.load(path).ledger.releases


def start(script, *arguments):
    source = str(Path(dpb.__file__).parents[1])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([source, str(Path(__file__).parent)]),
    }
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_the_claim_itself_decides_a_race(tmp_path, monkeypatch):
    path = ada().save(tmp_path / "a")
    shutil.copy(path, tmp_path / "copy")
    # Both racers have looked before either claims.
    monkeypatch.setattr(persistence, "_refuse_old", lambda *_: False)
    dpb.load(path)
    with pytest.raises(dpb.ClaimError, match="by another process"):
        dpb.load(tmp_path / "copy")


@pytest.mark.parametrize("rounds", [0, 50])
def test_secure_noise_is_neither_stored_nor_copied(rounds, tmp_path):
    clinic = Clinic(ada(noise="secure", seed=None)).play(rounds)
    path = clinic.policy.save(tmp_path / "a")
    assert persistence._decode(path)[0]["streams"] == {}
    assert b"PCG64" not in path.read_bytes()
    with pytest.raises(dpb.ClaimError, match="same raw data twice with fresh noise"):
        dpb.load(path, simulation=True)
    before = state_of(clinic.policy)
    shutil.copy(path, tmp_path / "copy")
    clinic.policy = dpb.load(path)
    assert state_of(clinic.policy) == before
    clinic.until_release()
    assert clinic.policy.ledger.total() == pytest.approx(0.5)
    with pytest.raises(dpb.ClaimError):
        dpb.load(tmp_path / "copy")


def forked(work):
    """What ``work`` returns in a forked child: text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()


def refused(action):
    try:
        action()
    except dpb.ClaimError as error:
        return str(error)
    return "allowed"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("make", [ada, lambda: dpb.LDPUCB(3, budget=dpb.PureDP(1.0), seed=1)])
def test_a_forked_process_reads_but_neither_releases_nor_saves(make, saved, tmp_path):
    clinic = Clinic(make()).play(30)
    if saved:
        clinic.policy.save(tmp_path / "a")
    releases = clinic.policy.ledger.releases
    assert "load the saved state here" in forked(lambda: refused(clinic.until_release))
    assert "is a fork" in forked(lambda: refused(lambda: clinic.policy.save(tmp_path / "b")))
    assert not (tmp_path / "b").exists()
    assert forked(
        lambda: f"{clinic.policy.ledger.releases} {clinic.policy.guarantee.holds}"
    ).startswith(str(releases))
    clinic.until_release()  # the parent goes on


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_can_load_and_release(tmp_path):
    path = Clinic(ada()).play(30).policy.save(tmp_path / "a")
    assert forked(lambda: refused(lambda: Clinic(dpb.load(path)).until_release())) == "allowed"


# Written ahead -------------------------------------------------------------------------------


@EVERY_PRIVATE
def test_what_was_released_after_a_save_counts_as_spent_and_is_not_released_again(make, tmp_path):
    clinic = Clinic(make()).play(40)
    waiting, path = list(clinic.waiting), clinic.policy.save(tmp_path / "a")
    assert not journal(path).exists()
    clinic.until_release().play(5).until_release()
    lost = clinic.policy.ledger
    survivor = dpb.load(path)
    assert survivor.ledger.frame.equals(lost.frame)
    assert (survivor.ledger.releases, survivor.ledger.draws) == (lost.releases, lost.draws)
    assert survivor.ledger.total() == lost.total()
    assert lost_rounds_count_as_default(survivor)
    last = int(lost.frame["last"].max())
    assert survivor.rounds > last + 1
    assert not survivor._progress.pending
    assert not survivor.update(1.0, waiting[-1][1])  # its record may have been released
    after = Clinic(survivor).until_release().until_release()
    span = survivor._wall.ledger.span[: len(survivor.ledger)]
    assert np.all(span[:, FIRST] <= span[:, LAST])
    for part in set(span[:, PART]):
        mine = span[span[:, PART] == part]
        assert np.all(mine[1:, FIRST] > mine[:-1, LAST])
    assert after.policy.meter is None or after.policy.meter.allows(after.policy.ledger.total())


def lost_rounds_count_as_default(policy):
    # its increments need a sum to go on from: the one that the released estimate has
    if isinstance(policy, dpb.LinUCBDGS):
        return policy._raw.total == pytest.approx(
            policy._public.precision @ policy._public.estimate
        )
    # which divide a loss by the probability of its arm
    if isinstance(policy, dpb.EXP4 | dpb.BatchedEXP4 | dpb.FrozenEXP4):
        loss = policy.reward_range[1] - policy.default_reward
        return policy._raw.total == pytest.approx(loss * policy._progress.weights)
    total, lost = sum(side.sum() for side in policy._raw), sum(policy._progress.booked.values())
    return total == pytest.approx(lost * policy.default_reward)


@pytest.mark.parametrize("choices_public", [False, True])
@pytest.mark.parametrize("default", [None, 100.75])
def test_lost_rounds_count_as_the_default_reward(default, choices_public, tmp_path):
    options = {
        "reward_range": (100.0, 101.0),
        "default_reward": default,
        "choices_public": choices_public,
    }
    for make in (
        lambda: dpb.AdaPUCB(3, budget=dpb.PureDP(100.0), seed=3, **options),
        lambda: dpb.DPSE(3, horizon=100, budget=dpb.PureDP(100.0), seed=3, **options),
    ):
        policy = make()
        path = answer_until(policy, 200).save(tmp_path / "a")
        released = policy.ledger.releases
        while policy.ledger.releases == released:  # made, lost, and replayed
            answer_until(policy, policy.rounds + 100)
        survivor = dpb.load(path)
        assert survivor._progress.booked
        lost, total = (
            sum(survivor._progress.booked.values()),
            sum(side.sum() for side in survivor._raw),
        )
        assert total == pytest.approx(lost * (default or 100.0))
        released = survivor.ledger.releases
        while survivor.ledger.releases < released + 3:
            answer_until(survivor, survivor.rounds + 100)
        means = (
            survivor._public.estimate
            if hasattr(survivor._public, "estimate")
            else survivor._public.mean
        )
        assert ((means > 99.0) & (means < 102.0)).all()


def answer_until(policy, rounds):
    while policy.rounds < rounds:
        decision = policy.pull()
        other = (
            (decision.arm + 1) % 3 if policy.choices_public and policy.rounds % 10 == 0 else None
        )
        policy.update(100.5, decision, arm=other)
    return policy


def test_a_release_that_was_due_at_the_save_does_not_cover_an_empty_span(tmp_path):
    clinic = Clinic(ada()).until_release()
    while not clinic.policy._progress.due:
        clinic.play(1)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    survivor = Clinic(dpb.load(path)).until_release().policy
    frame = survivor.ledger.frame
    assert (frame["first"] <= frame["last"]).all()
    assert survivor.ledger.total() == pytest.approx(0.5)


def test_the_journal_holds_the_ledger_lines_and_the_noisy_values(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    value = clinic.policy._wall.release.tolist()
    head, begin, done = (
        json.loads(line.split(" ", 1)[1]) for line in journal(path).read_text().splitlines()
    )
    assert head["serial"] == 1
    assert begin["begin"][1] == clinic.policy.ledger.frame["last"].max()
    assert done == {"done": value}


def test_a_new_save_starts_a_new_journal(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release().policy.save(path)
    before = state_of(clinic.policy)
    assert state_of(dpb.load(path, simulation=True)) == before  # the old journal is not this save's
    clinic.until_release()
    assert len(journal(path).read_text().splitlines()) == 3


@pytest.mark.parametrize("noise", ["simulation", "secure"])
@pytest.mark.parametrize("moment", ["before begin", "after begin", "before done", "after done"])
def test_a_process_that_is_killed_in_a_release(moment, noise, tmp_path):
    when, step = moment.split()
    script = f"""
        import os
        from pathlib import Path
        from test_persistence import Clinic, ada
        from dpbandits.policies.persistence import Journal
        clinic = Clinic(ada(noise={noise!r}, seed=None)).play(40)
        print(clinic.policy.ledger.releases, flush=True)
        clinic.policy.save(Path({str(tmp_path)!r}) / "a")
        step = getattr(Journal, {step!r})
        def killed(*arguments):
            if {when!r} == "after":
                step(*arguments)
            os._exit(9)
        setattr(Journal, {step!r}, killed)
        clinic.until_release()
    """
    process = start(script)
    before = int(process.communicate(timeout=60)[0])
    assert process.returncode == 9
    shutil.copy(tmp_path / "a", tmp_path / "copy")
    survivor = dpb.load(tmp_path / "a")
    begun = moment != "before begin"
    assert survivor.ledger.releases == before + begun
    assert lost_rounds_count_as_default(survivor) or not begun
    assert survivor.ledger.total() == pytest.approx(0.5)
    assert Clinic(survivor).until_release().policy.ledger.total() == pytest.approx(0.5)
    with pytest.raises(dpb.ClaimError):
        dpb.load(tmp_path / "copy")


def test_a_journal_cut_anywhere_counts_every_whole_announcement(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    before = clinic.policy.ledger.releases
    clinic.until_release().until_release()
    content = journal(path).read_bytes()
    for cut in range(0, len(content), 3):
        journal(path).write_bytes(content[:cut])
        announced = sum(b'"begin"' in line for line in content[:cut].split(b"\n")[:-1])
        assert dpb.load(path, simulation=True).ledger.releases == before + announced


def test_a_torn_line_is_overwritten_by_the_next(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    with open(journal(path), "ab") as file:
        file.write(b"half a li")
    clinic.until_release()
    holder = persistence._decode(path)[0]["holder"]
    begun, end = persistence._journalled(journal(path), holder, 1)
    assert len(begun) == 2
    assert end == journal(path).stat().st_size


def test_a_damaged_or_missing_journal_is_refused(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    content = journal(path).read_bytes()
    for place in range(0, len(content), 11):
        flipped = bytearray(content)
        flipped[place] ^= 4
        journal(path).write_bytes(flipped)
        with pytest.raises(dpb.StateFileError, match="damaged in line"):
            dpb.load(path)
    journal(path).unlink()
    with pytest.raises(dpb.StateFileError, match=r"\.journal is missing"):
        dpb.load(path)
    assert not claims(tmp_path)
    journal(path).write_bytes(content)
    dpb.load(path)


RELEASING = pytest.mark.parametrize("noise", ["simulation", "secure"])
AT_ONCE = pytest.mark.parametrize(
    "make", [ada, lambda **o: dpb.LDPUCB(3, budget=dpb.PureDP(1.0), **o)], ids=["ada", "ldp"]
)


def fails(monkeypatch, owner, name, error, *, after=False, only=""):
    """Let a method fail, before or after it has done its work."""
    method = getattr(owner, name)

    def failing(*arguments):
        if only and only not in arguments[1]:
            return method(*arguments)
        if after:
            method(*arguments)
        raise error

    monkeypatch.setattr(owner, name, failing)


@RELEASING
@AT_ONCE
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["begin", "done"])
def test_a_full_disk_leaves_policy_and_journal_sound(
    step, after, make, noise, tmp_path, monkeypatch
):
    clinic = Clinic(make(noise=noise, seed=None, patience=0)).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    rounds = clinic.policy.ledger.frame["last"].max()

    decision, answer = fail_in_a_release(
        clinic.policy,
        monkeypatch,
        lambda patch: fails(
            patch,
            persistence.Journal,
            "_append",
            OSError("no space left on device"),
            after=after,
            only=step,
        ),
        OSError,
    )
    journalled = persistence._journalled(journal(path), clinic.policy._id, 1)[0]
    crashed = dpb.load(path, simulation=True) if noise == "simulation" else None
    if crashed:  # what was announced counts as spent, made or not
        assert crashed.ledger.frame["last"].max() == journalled[-1][1]
        assert (journalled[-1][1] > rounds) == (step == "done" or after)
    if answer:
        assert clinic.policy.update(1.0, decision)
    clinic.waiting.clear()
    clinic.until_release()
    frame = clinic.policy.ledger.frame
    assert (frame["first"] <= frame["last"]).all()
    assert clinic.policy.ledger.total() == pytest.approx(clinic.policy._meter.limit)
    assert dpb.load(path).ledger.frame.equals(frame)


def fail_in_a_release(policy, monkeypatch, breaking, error):
    """Play up to a release that fails: nothing has happened.  Returns the last decision, and
    whether its answer is wanted again.
    """
    for _ in range(1000):
        before = None
        with monkeypatch.context() as patch:
            breaking(patch)
            try:
                before = (state_of(policy), None)
                decision = policy.pull()
                before = (state_of(policy), decision)
                policy.update(1.0, decision)
            except error:
                after = state_of(policy)
                assert after[0] == before[0][0]
                assert after[2] == before[0][2]
                assert not policy._wall.statistic.any()
                if before[1] is not None:
                    assert after == before[0]
                return before[1], before[1] is not None
    raise AssertionError("no release was due")


@AT_ONCE
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("saved", [False, True])
def test_an_interrupted_draw_did_not_happen(after, saved, make, tmp_path, monkeypatch):
    policy = make(noise="secure", seed=None, reward_range=(100.0, 101.0), patience=0)
    for _ in range(40):
        policy.update(100.5, policy.pull())
    if saved:
        policy.save(tmp_path / "a")
    releases = policy.ledger.releases

    def breaking(patch):
        fails(patch, policy._noise, "perturb", KeyboardInterrupt(), after=after)

    decision, answer = fail_in_a_release(policy, monkeypatch, breaking, KeyboardInterrupt)
    assert policy.ledger.releases == releases
    opened = policy._wall.opened[-1]
    if answer:
        assert policy.update(101.0, decision)
    else:
        policy.pull()
    assert policy.ledger.releases == releases + 1
    assert policy.ledger.total() == pytest.approx(policy._meter.limit)
    released = policy._wall.release[0] / (policy._wall.opened[-1] - opened)
    assert abs(released - 100.5) < 40  # of an empty-handed episode it would be about 0
    if saved:
        entries = [
            json.loads(line.split(" ", 1)[1])
            for line in journal(tmp_path / "a").read_text().splitlines()
        ]
        assert [next(iter(entry)) for entry in entries] == ["holder", "begin", "done"]


def test_values_are_on_disk_before_they_are_used(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    clinic.policy.save(tmp_path / "a")
    done, seen = persistence.Journal.done, []

    def watched(self, release):
        seen.append(clinic.policy._public.estimate.tolist())
        done(self, release)

    before = clinic.policy._public.estimate.tolist()
    monkeypatch.setattr(persistence.Journal, "done", watched)
    clinic.until_release()
    assert seen == [before] != [clinic.policy._public.estimate.tolist()]


def test_nothing_is_journalled_without_a_save_or_a_budget(tmp_path):
    unsaved = Clinic(ada()).play(100).policy
    assert unsaved._journal is None
    path = Clinic(dpb.AdaCUCB(3, budget=None, seed=1)).play(10).policy.save(tmp_path / "a")
    Clinic(dpb.load(path)).play(100)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "state"]


# Bad files -----------------------------------------------------------------------------------


def test_every_truncation_is_refused_and_nothing_is_claimed(tmp_path):
    path = Clinic(ada()).play(40).policy.save(tmp_path / "a")
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(dpb.StateFileError, match="checksum"):
            dpb.load(path)
    path.write_bytes(content + b"\n")
    with pytest.raises(dpb.StateFileError):
        dpb.load(path)
    assert not claims(tmp_path)
    path.write_bytes(content)
    dpb.load(path)


def test_every_flipped_bit_is_refused(tmp_path):
    path = Clinic(ada()).play(40).policy.save(tmp_path / "a")
    content = path.read_bytes()
    rng = np.random.default_rng(5)
    for place in [0, len(content) - 1, len(content) - 65, *rng.integers(len(content), size=200)]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        with pytest.raises(dpb.StateFileError):
            dpb.load(path)
    assert not claims(tmp_path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda header: header.update(version=3), "this version reads 2"),
        (lambda header: header.update(format="other"), "has format other"),
        (lambda header: header.pop("format"), "no saved policy"),
        (lambda header: header.update({"class": "Policy"}), "does not hold a policy"),
        (lambda header: header["config"].update(n_arms=0), "does not hold a policy"),
        (lambda header: header["config"].update(n_arms=4), "should be float64"),
        (lambda header: header["config"].update(surprise=1), "does not hold a policy"),
        (
            lambda header: header["config"]["budget"].update(notion="TrustMe"),
            "does not hold a policy",
        ),
        (lambda header: header["arrays"].popitem(), "arrays that its header lists"),
        (lambda header: header["progress"].update(surprise=1), "does not hold a policy"),
        (
            lambda header: header["streams"]["privacy"].update(bit_generator="MT19937"),
            "does not hold a policy",
        ),
        (lambda header: header.pop("serial"), "does not hold a policy"),
    ],
)
def test_a_file_with_a_fitting_checksum_and_a_wrong_header_is_refused(change, complaint, tmp_path):
    path = ada().save(tmp_path / "a")
    rewritten(path, change)
    with pytest.raises(dpb.StateFileError, match=complaint):
        dpb.load(path)
    assert not claims(tmp_path)


def test_foreign_files_are_refused_and_nothing_is_executed(tmp_path):
    path = tmp_path / "a"
    buffer = io.BytesIO()
    np.savez(buffer, header=np.array([{"format": "dpbandits-state"}], dtype=object))
    signed(path, buffer.getvalue())
    with pytest.raises(dpb.StateFileError, match="no saved policy"):
        dpb.load(path)
    signed(path, b"not even an archive")
    with pytest.raises(dpb.StateFileError, match="no saved policy"):
        dpb.load(path)
    with pytest.raises(FileNotFoundError):
        dpb.load(tmp_path / "nothing")


def test_a_save_that_fails_changes_nothing(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    content = path.read_bytes()
    clinic.until_release()

    def broken(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", broken)
        with pytest.raises(OSError, match="no space"):
            clinic.policy.save(path)
    assert path.read_bytes() == content
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "a.journal", "state"]
    assert dpb.load(path).ledger.frame.equals(clinic.policy.ledger.frame)


@pytest.mark.parametrize("step", ["_sync_folder", "_note"])
def test_a_save_that_fails_after_the_file_appeared_still_journals_for_that_file(
    step, tmp_path, monkeypatch
):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()

    def broken(*_, **__):
        raise OSError("state folder is gone")

    with monkeypatch.context() as patch:
        patch.setattr(persistence, step, broken)
        with pytest.raises(OSError, match="is gone"):
            clinic.policy.save(path)
    before = state_of(clinic.policy)
    assert state_of(dpb.load(path, simulation=True)) == before
    clinic.until_release()
    assert dpb.load(path).ledger.frame.equals(clinic.policy.ledger.frame)


def test_a_process_that_was_killed_before_its_save_was_noted_can_be_loaded(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    before = state_of(clinic.policy)
    monkeypatch.setattr(persistence, "_note", lambda *_, **__: None)
    clinic.policy.save(path)
    journal(path).unlink()
    assert state_of(dpb.load(path)) == before


@pytest.mark.parametrize("path", [None, 5, b"a", "", "/", True])
def test_a_path_has_to_name_a_file(path):
    for action in (ada().save, dpb.load):
        with pytest.raises(dpb.ArgumentError, match="path must name a file"):
            action(path)


def test_a_folder_is_no_saved_policy(tmp_path):
    with pytest.raises(dpb.StateFileError, match="is a folder"):
        dpb.load(tmp_path)
    with pytest.raises(OSError, match="directory"):
        ada().save(tmp_path)


def test_a_state_folder_that_cannot_be_used_is_named(tmp_path, monkeypatch):
    path = ada().save(tmp_path / "a")
    (tmp_path / "file").touch()
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "file" / "state"))
    for action in (lambda: ada().save(tmp_path / "b"), lambda: dpb.load(path)):
        with pytest.raises(
            dpb.StateFileError, match=r"file.state.claims cannot be used.*set DPBANDITS_STATE_DIR"
        ):
            action()
    assert not (tmp_path / "b").exists()


def test_the_file_is_private_to_its_owner(tmp_path):
    assert ada().save(tmp_path / "a").stat().st_mode & 0o077 == 0


def test_without_a_setting_claims_go_to_the_users_state_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DPBANDITS_STATE_DIR")
    monkeypatch.setattr(
        persistence.platformdirs,
        "user_state_dir",
        lambda name, appauthor: str(tmp_path / "home" / name),
    )
    dpb.load(ada().save(tmp_path / "a"))
    assert len(claims(tmp_path / "home" / "dpbandits")) == 1


@RELEASING
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(
    "make",
    [ada, lambda **o: dpb.LDPUCB(3, budget=dpb.PureDP(1.0), **o), lambda **o: dpb.UCB1(3, **o)],
)
def test_no_exact_sum_outlasts_its_release(make, saved, noise, tmp_path):
    clinic = Clinic(make(noise=noise, seed=None)).play(20)
    if saved:
        clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    assert not clinic.policy._wall.statistic.any()
