"""A release that fails before its noise is drawn did not happen: the policy stands where it stood,
and the next attempt is the same release.  With simulated noise that holds after the draw, too.  A
release of secure noise is charged, and its records are dropped.  A commit that fails is repeated.
"""

import pytest
from clinic import (
    Clinic,
    Recording,
    ada,
    died,
    fail,
    inside,
    lose_a_draw,
    lost_rounds_count_no_more,
    state_in,
    state_of,
)

import dpbandits as dpb
from dpbandits.protocol import own_alone
from dpbandits.session.rounds import Rounds
from dpbandits.stores import FilePlace

pytestmark = pytest.mark.compiled

BUDGETLESS = pytest.param(lambda **options: dpb.algorithms.UCB1(3, **options), id="ucb1")
WITH_BUDGET = [
    pytest.param(ada, id="ada"),
    pytest.param(lambda **o: dpb.papers.others.LDPUCB(3, budget=dpb.PureDP(1.0), **o), id="ldp"),
]
BOTH_SOURCES = pytest.mark.parametrize("noise", ["simulation", "secure"])
AFTER = pytest.mark.parametrize("after", [False, True], ids=["before", "after"])


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
@pytest.mark.parametrize("how", ["failing", "losing"])
def test_a_full_disk_at_a_release_loses_nothing(how, make, noise, tmp_path):
    """The call that releases fails; the next one writes its bytes, and no noise is drawn anew."""
    clinic = Clinic(make(noise=noise, seed=None, answers_within=0)).play(40)
    policy, place = clinic.policy, Recording(FilePlace(tmp_path / "a"))
    policy.save(place)
    clinic.until_release()
    made, failed = policy.ledger.releases, False

    def looked(moment):
        nonlocal failed
        if moment == "before" and inside(policy)[0] > made and not failed:  # noqa: F821
            failed = True
            setattr(place, how, 2 if how == "failing" else 1)

    place.looked = looked
    if how == "failing":
        with pytest.raises(dpb.errors.StoreError, match="no space left"):
            clinic.until_release()
        released = policy.session.state.wall.release.tolist()
        with pytest.raises(dpb.errors.StoreError):
            policy.pull()
        batches = place.batches[-2:]
        assert batches[0] == batches[1]
        assert FilePlace(tmp_path / "a").mark().number == batches[0].number - 1
        clinic.waiting.clear()
        _ = policy.estimates  # which is shown once the bytes are written
        assert place.batches[-1] == batches[0]
        assert policy.session.state.wall.release.tolist() == released
    else:
        clinic.until_release()
        numbers = [batch.number for batch in place.batches]
        assert len(set(numbers)) == len(numbers)
    assert failed
    assert policy.ledger.releases == made + 1
    now = state_of(policy)
    if noise == "simulation":
        assert state_in(tmp_path / "a") == now
    clinic.until_release()
    frame = policy.ledger.frame
    assert (frame["first"] <= frame["last"]).all()
    assert (frame["first"].to_numpy()[1:] > frame["last"].to_numpy()[:-1]).all()
    assert policy.ledger.total() == pytest.approx(policy.meter.limit)
    now = state_of(policy)
    del policy
    died(clinic)
    assert state_of(dpb.load(tmp_path / "a")) == now


@pytest.mark.parametrize("make", WITH_BUDGET)
@AFTER
@pytest.mark.parametrize("saved", [False, True])
def test_an_interrupted_draw_is_charged_and_its_records_are_dropped(
    after, saved, make, tmp_path, monkeypatch
):
    """To draw anew would be rejection sampling, were the interrupt to depend on the noise."""
    policy = make(noise="secure", seed=None, reward_range=(100.0, 101.0), answers_within=0)
    for _ in range(40):
        policy.update(100.5, policy.pull())
    if saved:
        policy.save(tmp_path / "a")
    releases, rounds = policy.ledger.releases, policy.rounds
    estimate = policy.session.state.public.estimate.tolist() if make is ada else None
    decision = None
    with monkeypatch.context() as patch:
        lose_a_draw(patch, policy, after=after)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            for _ in range(1000):
                decision = policy.pull()
                policy.update(100.5, decision)
    assert policy.ledger.releases == releases + 1
    assert policy.ledger.total() == pytest.approx(policy.meter.limit)
    assert not policy.session.state.wall.statistic.any()
    assert lost_rounds_count_no_more(policy)
    assert int(policy.ledger.frame["last"].max()) >= rounds - 1
    if estimate is not None:
        assert policy.session.state.public.estimate.tolist() == estimate  # nothing was published
    assert policy.update(101.0, decision) is False  # its record is gone
    now = state_of(policy)
    first = int(policy.session.state.wall.first_unreleased[-1])
    assert first > int(policy.ledger.frame["last"].max())
    while policy.ledger.releases == releases + 1:
        policy.update(100.5, policy.pull())
    assert policy.ledger.total() == pytest.approx(policy.meter.limit)
    if make is ada:  # dropped rounds count as the default, and so do not pull an estimate to 0
        assert all(abs(mean - 100.5) < 40 for mean in policy.estimates.means)
    if saved:
        later = state_of(policy)
        assert later != now
        del policy
        assert state_of(dpb.load(tmp_path / "a")) == later


@pytest.mark.parametrize("make", WITH_BUDGET)
def test_a_charged_draw_is_durable_when_the_interrupt_is_raised(make, tmp_path, monkeypatch):
    policy = make(noise="secure", seed=None, answers_within=0)
    policy.save(tmp_path / "a")
    with monkeypatch.context() as patch:
        lose_a_draw(patch, policy)
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            for _ in range(1000):
                policy.update(1.0, policy.pull())
    now = state_of(policy)
    assert policy.ledger.releases == 1
    del policy
    assert state_of(dpb.load(tmp_path / "a")) == now


@pytest.mark.parametrize("make", WITH_BUDGET)
def test_a_draw_of_simulated_noise_that_is_undone_is_made_anew(make, monkeypatch):
    policy, whole = make(seed=1, answers_within=0, max_rounds=None), make(seed=1, answers_within=0)

    def breaking(patch):
        fail(patch, type(policy.session), "released", KeyboardInterrupt())

    if policy.card.learns_at_once:  # it takes care under secure noise alone
        policy.session.gate.needs_care = lambda _: True
    decision = fail_in_a_release(policy, monkeypatch, breaking, KeyboardInterrupt)
    if decision is not None:
        assert policy.update(1.0, decision)
    while whole.session.rounds.pulls < policy.session.rounds.pulls:
        decision = whole.pull()
        whole.update(1.0, decision)
    assert policy.ledger.frame.equals(whole.ledger.frame)


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
        fail(patch, owner, step, KeyboardInterrupt(), after=after)

    decision = fail_in_a_release(policy, monkeypatch, breaking, KeyboardInterrupt)
    if decision is not None:
        assert policy.update(1.0, decision)
    for _ in range(1000):
        policy.update(1.0, policy.pull())


@pytest.mark.parametrize(("step", "answers_within"), [("release", 0), ("cross", 3)])
@pytest.mark.parametrize("late", [False, True])
@WITHOUT_CARE
def test_an_interrupt_before_the_noise_is_drawn_did_not_happen(
    make, late, step, answers_within, monkeypatch
):
    policy, whole = make(answers_within=answers_within), make(answers_within=answers_within)
    for _ in range(120 if late else 0):
        policy.update(1.0, policy.pull())
    interrupted(policy, monkeypatch, step, after=False)
    while whole.session.rounds.pulls < policy.session.rounds.pulls:
        whole.update(1.0, whole.pull())
    assert policy.ledger.frame.equals(whole.ledger.frame)
    assert state_of(policy).arrays == state_of(whole).arrays


@pytest.mark.parametrize(("step", "answers_within"), [("release", 0), ("cross", 3), ("cover", 0)])
@WITHOUT_CARE
def test_a_release_that_nobody_saw_is_made_anew(make, step, answers_within, monkeypatch):
    policy = make(answers_within=answers_within)
    interrupted(policy, monkeypatch, step, after=True)
    if policy.kernels.absorb is not own_alone:  # workers see one value of each release
        assert len(policy.releases()) == policy.ledger.releases
    frame = policy.ledger.frame
    assert frame["first"].tolist() == [0, *(frame["last"][:-1] + 1)]
    assert policy.ledger.total() == pytest.approx(policy.meter.limit)
    assert not policy.session.state.wall.statistic.any()


@BOTH_SOURCES
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("make", [*WITH_BUDGET, BUDGETLESS])
def test_no_exact_sum_outlasts_its_release(make, saved, noise, tmp_path):
    clinic = Clinic(make(noise=noise, seed=None)).play(20)
    if saved:
        clinic.policy.save(tmp_path / "a")
    clinic.until_release()
    assert not clinic.policy.session.state.wall.statistic.any()
