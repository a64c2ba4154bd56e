"""A release that fails, at the disk or by an interrupt, did not happen: the policy stands where it
stood, and the next attempt is the same release.
"""

import pytest
from clinic import Clinic, ada, journalled, state_of

import dpbandits as dpb
from dpbandits.protocol import own_alone
from dpbandits.session.rounds import Rounds
from dpbandits.stores import FileStore, Life

pytestmark = pytest.mark.compiled

BUDGETLESS = pytest.param(lambda **options: dpb.algorithms.UCB1(3, **options), id="ucb1")
WITH_BUDGET = [
    pytest.param(ada, id="ada"),
    pytest.param(lambda **o: dpb.papers.others.LDPUCB(3, budget=dpb.PureDP(1.0), **o), id="ldp"),
]
BOTH_SOURCES = pytest.mark.parametrize("noise", ["simulation", "secure"])
AFTER = pytest.mark.parametrize("after", [False, True], ids=["before", "after"])


def fails(monkeypatch, owner, name, error, *, after, only=""):
    """Let a method fail, before or after it has done its work."""
    method = getattr(owner, name)

    def failing(*arguments):
        if only and only not in arguments[1]:
            return method(*arguments)
        if after:
            method(*arguments)
        raise error

    monkeypatch.setattr(owner, name, failing)


def fail_in_a_release(policy, monkeypatch, breaking, error):
    """Play up to a release that fails: nothing has happened.  Returns the decision whose answer
    brought it about and is wanted again, or None if it was the next pull.
    """
    for _ in range(1000):
        decision, before = None, state_of(policy)
        with monkeypatch.context() as patch:
            breaking(patch)
            try:
                decision = policy.pull()
                before = state_of(policy)
                policy.update(1.0, decision)
            except error:
                after = state_of(policy)
                assert (after.arrays, after.spent) == (before.arrays, before.spent)
                assert decision is None or after.rounds == before.rounds
                assert not policy.session.state.wall.statistic.any()
                return decision
    raise AssertionError("no release was due")


@BOTH_SOURCES
@pytest.mark.parametrize("make", WITH_BUDGET)
@AFTER
@pytest.mark.parametrize("step", ["begin", "done"])
def test_a_full_disk_leaves_policy_and_journal_sound(
    step, after, make, noise, tmp_path, monkeypatch
):
    clinic = Clinic(make(noise=noise, seed=None, patience=0)).play(40)
    policy, path = clinic.policy, clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    rounds = policy.ledger.frame["last"].max()

    def breaking(patch):
        full = OSError("no space left on device")
        fails(patch, FileStore, "_append", full, after=after, only=step)

    decision = fail_in_a_release(policy, monkeypatch, breaking, OSError)
    announced = FileStore(path).announced(Life(policy.session.life.name, 1))
    assert (announced[-1].line.last > rounds) == (step == "done" or after)
    if noise == "simulation":  # what was announced counts as spent, made or not
        crashed = dpb.load(path, simulation=True)
        assert crashed.ledger.frame["last"].max() == announced[-1].line.last
    if decision is not None:
        assert policy.update(1.0, decision)
    clinic.waiting.clear()
    clinic.until_release()
    frame = policy.ledger.frame
    assert (frame["first"] <= frame["last"]).all()
    assert policy.ledger.total() == pytest.approx(policy.meter.limit)
    assert dpb.load(path).ledger.frame.equals(frame)


@pytest.mark.parametrize("make", WITH_BUDGET)
@AFTER
@pytest.mark.parametrize("saved", [False, True])
def test_an_interrupted_draw_did_not_happen(after, saved, make, tmp_path, monkeypatch):
    policy = make(noise="secure", seed=None, reward_range=(100.0, 101.0), patience=0)
    for _ in range(40):
        policy.update(100.5, policy.pull())
    if saved:
        policy.save(tmp_path / "a")
    releases = policy.ledger.releases

    def breaking(patch):
        fails(patch, policy.noise_source, "add_noise", KeyboardInterrupt(), after=after)

    decision = fail_in_a_release(policy, monkeypatch, breaking, KeyboardInterrupt)
    assert policy.ledger.releases == releases
    wall = policy.session.state.wall
    first = wall.first_unreleased[-1]
    if decision is None:
        policy.pull()
    else:
        assert policy.update(101.0, decision)
    assert policy.ledger.releases == releases + 1
    assert policy.ledger.total() == pytest.approx(policy.meter.limit)
    wall = policy.session.state.wall
    released = wall.release[0] / (wall.first_unreleased[-1] - first)
    assert abs(released - 100.5) < 40  # of an empty-handed episode it would be about 0
    if saved:
        entries = journalled(tmp_path / "a")
        assert [next(iter(entry)) for entry in entries] == ["holder", "begin", "done"]


WITHOUT_CARE = pytest.mark.parametrize(
    "make",
    [
        ada,
        lambda **o: dpb.algorithms.MergedIMED(3, budget=dpb.PureDP(1.0), seed=1, **o),
        lambda **o: dpb.algorithms.MergedIMED(200, budget=dpb.PureDP(1.0), seed=1, **o),
        lambda **o: dpb.algorithms.HTINF(3, budget=dpb.PureDP(1.0), seed=1, **o),
    ],
    ids=["ada", "merged", "many arms", "every round"],
)


def interrupted(policy, monkeypatch, step, *, after):
    def breaking(patch):
        owner = Rounds if step == "cover" else policy.session.gate
        fails(patch, owner, step, KeyboardInterrupt(), after=after)

    decision = fail_in_a_release(policy, monkeypatch, breaking, KeyboardInterrupt)
    if decision is not None:
        assert policy.update(1.0, decision)
    for _ in range(1000):
        policy.update(1.0, policy.pull())


@pytest.mark.parametrize(("step", "patience"), [("release", 0), ("cross", 3)])
@pytest.mark.parametrize("late", [False, True])
@WITHOUT_CARE
def test_an_interrupt_before_the_noise_is_drawn_did_not_happen(
    make, late, step, patience, monkeypatch
):
    policy, whole = make(patience=patience), make(patience=patience)
    for _ in range(120 if late else 0):
        policy.update(1.0, policy.pull())
    interrupted(policy, monkeypatch, step, after=False)
    while whole.session.rounds.pulls < policy.session.rounds.pulls:
        whole.update(1.0, whole.pull())
    assert policy.ledger.frame.equals(whole.ledger.frame)
    assert state_of(policy).arrays == state_of(whole).arrays


@pytest.mark.parametrize(("step", "patience"), [("release", 0), ("cross", 3), ("cover", 0)])
@WITHOUT_CARE
def test_a_release_that_nobody_saw_is_made_anew(make, step, patience, monkeypatch):
    policy = make(patience=patience)
    interrupted(policy, monkeypatch, step, after=True)
    if policy.kernels.absorb is not own_alone:  # workers see one value of each release
        assert len(policy.releases()) == policy.ledger.releases
    frame = policy.ledger.frame
    assert frame["first"].tolist() == [0, *(frame["last"][:-1] + 1)]
    assert policy.ledger.total() == pytest.approx(policy.meter.limit)
    assert not policy.session.state.wall.statistic.any()


def test_values_are_on_disk_before_they_are_used(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(40)
    clinic.policy.save(tmp_path / "a")
    confirm, seen = FileStore.confirm, []

    def estimate():
        return clinic.policy.session.state.public.estimate.tolist()

    def watched(self, values):
        seen.append(estimate())
        confirm(self, values)

    before = estimate()
    monkeypatch.setattr(FileStore, "confirm", watched)
    clinic.until_release()
    assert seen == [before] != [estimate()]


@BOTH_SOURCES
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("make", [*WITH_BUDGET, BUDGETLESS])
def test_no_exact_sum_outlasts_its_release(make, saved, noise, tmp_path):
    clinic = Clinic(make(noise=noise, seed=None)).play(20)
    if saved:
        clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    assert not clinic.policy.session.state.wall.statistic.any()
