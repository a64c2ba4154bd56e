"""What a policy restores: it goes on as if nothing had happened, also after a crash.  A release
whose noise was drawn and lost counts as spent, and its records are not released again.
"""

import hashlib
import os
import shutil

import numpy as np
import pytest
from clinic import (
    FORKING,
    UNWARNED,
    Clinic,
    ada,
    died,
    exit_code,
    fail,
    forked,
    inside,
    lose_a_draw,
    lost_rounds_count_no_more,
    refused,
    state_of,
)

import dpbandits as dpb
from dpbandits.policies import registered
from dpbandits.privacy import Open
from dpbandits.privacy.channels import noise_for
from dpbandits.privacy.ledger import SPAN
from dpbandits.stores import FilePlace, Mark
from dpbandits.stores.addresses import place_at
from dpbandits.stores.sealing import Sealer
from dpbandits.stores.witness import Witness
from kinds import KINDS


def examples(*, private=False, **options):
    """One parameter per registered class and budget, which makes a fresh policy.

    Those of `KINDS` are short, with one budget for each noise.
    """
    options = {"seed": 11, "answers_within": 3} | options
    for name, cls in registered().items():
        families = set()
        for budget in [*cls.example_budgets(), *([] if private else [None])]:
            given = {**cls.example, "budget": budget, **options}
            family = noise_of(cls, budget).family
            marks = [pytest.mark.xdist_group(name)]  # as all tests of a class
            known = family in families or (budget is None and bool(families)) or name not in KINDS
            marks += [pytest.mark.long] if known else []
            families.add(family)
            yield pytest.param(
                lambda cls=cls, given=given: cls(**given), id=f"{name}-{budget}", marks=marks
            )


def noise_of(cls, budget):
    """What a release goes through, but for its scale; without an instance nothing is compiled."""
    return Open() if budget is None else noise_for(budget, cls.card.noise).calibrated(budget)


EVERY = pytest.mark.parametrize("make", list(examples()))


def ldp(**options):
    return dpb.papers.others.LDPUCB(3, budget=dpb.PureDP(1.0), **({"seed": 1} | options))


# Going on as before --------------------------------------------------------------------------


@EVERY
def test_a_loaded_policy_goes_on_exactly(make, tmp_path):
    """After each crash it is as it was, though it was saved once, at its beginning."""
    unbroken, broken = Clinic(make()).play(240), Clinic(make())
    assert broken.policy.save(tmp_path / "a") == tmp_path / "a"
    for rounds in (0, 1, 36, 53):
        broken.play(rounds)
        before = state_of(broken.policy)
        died(broken)
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
    policy = ada(choices_public=True, answers_within=0, grid=2.0**-10, reward_range=(-1, 2))
    for i in range(400):
        decision = policy.pull()
        policy.update(float(decision.arm == i % 3), decision)
    policy.session.state.make_room(grow=True)
    before = state_of(policy)
    loaded = dpb.load(policy.save(tmp_path / "a"))
    assert state_of(loaded) == before
    assert loaded.reward_range == (-1.0, 2.0)
    assert loaded.label == policy.label


def test_what_was_clipped_or_missing_is_remembered(tmp_path):
    policy = ada(answers_within=0)
    for reward in (2.0, float("nan"), -1.0, float("inf"), 0.5):
        while not policy.pull().recorded:
            pass
        policy.update(reward)
    assert (policy.diagnostics.clipped, policy.diagnostics.missing) == (3, 1)
    loaded = dpb.load(policy.save(tmp_path / "a"))
    assert (loaded.diagnostics.clipped, loaded.diagnostics.missing, loaded.diagnostics.dropped) == (
        3,
        1,
        policy.diagnostics.dropped,
    )


def test_decisions_of_other_lives_are_told_apart(tmp_path):
    original = Clinic(ada()).play(40).policy
    original.save(tmp_path / "a")
    while original.session.rounds.left < 3:  # so that the next rounds are recorded
        original.update(0.5, original.pull())
    early = original.pull()
    stranger = Clinic(ada(seed=12)).play(early.number).policy.pull()
    assert stranger.number == early.number
    loaded = dpb.load(tmp_path / "a")
    new = loaded.pull()
    assert new.number == early.number + 1
    with pytest.raises(dpb.UpdateError, match="must come from this policy"):
        loaded.update(1.0, stranger)
    with pytest.raises(dpb.ClaimError):
        original.update(1.0, early)
    assert loaded.update(1.0, early)
    assert loaded.update(1.0, new)
    third = dpb.load(loaded.save(tmp_path / "b"))
    for answered in (early, new):
        with pytest.raises(dpb.UpdateError, match="has been answered"):
            third.update(1.0, answered)


@pytest.mark.parametrize("rounds", [0, 50])
def test_a_policy_with_secure_noise_goes_on_and_is_never_copied(rounds, tmp_path):
    clinic = Clinic(ada(noise="secure", seed=None)).play(rounds)
    path = clinic.policy.save(tmp_path / "a")
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


# Forks ---------------------------------------------------------------------------------------


@FORKING
@UNWARNED
@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("make", [ada, ldp])
def test_a_forked_process_reads_but_neither_releases_nor_saves(make, saved, tmp_path):
    clinic = Clinic(make()).play(30)
    if saved:
        clinic.policy.save(tmp_path / "a")
    content, before = contents(tmp_path), state_of(clinic.policy)
    releases = clinic.policy.ledger.releases
    hint = "is a fork" if saved else "load the saved state here"
    assert hint in forked(lambda: refused(clinic.until_release))
    assert "is a fork" in forked(lambda: refused(lambda: clinic.policy.save(tmp_path / "b")))
    assert contents(tmp_path) == content
    assert forked(
        lambda: f"{clinic.policy.ledger.releases} {clinic.policy.guarantee.holds}"
    ).startswith(str(releases))
    assert state_of(clinic.policy) == before
    clinic.until_release()  # the parent goes on


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@FORKING
@UNWARNED
def test_a_fork_of_a_saved_policy_makes_no_decision(tmp_path):
    """Not even one that releases nothing: the parent would give its number to another person."""
    policy = ada(answers_within=0)
    policy.save(tmp_path / "a")
    policy.pull()
    before = (tmp_path / "a.journal").read_bytes()
    for call in (policy.pull, lambda: policy.update(1.0), lambda: policy.retire(1)):
        assert "is a fork" in forked(lambda call=call: refused(call))
    assert (tmp_path / "a.journal").read_bytes() == before


@FORKING
@UNWARNED
def test_a_forked_process_can_load_and_release(tmp_path):
    path = Clinic(ada()).play(30).policy.save(tmp_path / "a")
    assert forked(lambda: refused(lambda: Clinic(dpb.load(path)).until_release())) == "allowed"


# Crashes -------------------------------------------------------------------------------------


def test_crash_after_crash_is_survived_by_loading_alone(tmp_path):
    clinic = Clinic(ada()).play(40)
    path = clinic.policy.save(tmp_path / "a")
    for _ in range(3):
        clinic.until_release().play(5)
        lost = clinic.policy.ledger.frame
        died(clinic)
        clinic.policy = dpb.load(path)
        assert clinic.policy.ledger.frame.equals(lost)
    assert clinic.policy.ledger.total() == pytest.approx(0.5)


@FORKING
@UNWARNED
@pytest.mark.parametrize("noise", ["simulation", "secure"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_is_killed_in_a_release(when, noise, tmp_path):
    """It is as before the call, whose decision nobody saw, or as after it; nothing else is lost."""
    path, told = tmp_path / "a", tmp_path / "told"

    def work():
        clinic = Clinic(ada(noise=noise, seed=None)).play(40)
        policy, commit = clinic.policy, FilePlace.commit
        policy.save(path)
        before = [inside(policy)[0], digest(policy)]

        def killing(place, batch, life):
            if inside(policy)[0] == before[0]:
                commit(place, batch, life)
                before[1] = digest(policy)
                return
            if when == "after":
                commit(place, batch, life)
                before[1] = digest(policy)
            told.write_text(f"{inside(policy)[0]} {before[1]}")
            os._exit(9)

        FilePlace.commit = killing
        clinic.until_release()

    assert exit_code(work) == 9
    releases, expected = told.read_text().split()
    shutil.copy(path, tmp_path / "copy")
    survivor = dpb.load(path)
    assert survivor.ledger.releases == int(releases) - (when == "before")
    assert digest(survivor) == expected
    assert Clinic(survivor).until_release().policy.ledger.total() == pytest.approx(0.5)
    with pytest.raises(dpb.ClaimError):
        dpb.load(tmp_path / "copy")


def digest(policy):
    return hashlib.sha256(repr(state_of(policy)).encode()).hexdigest()


# Lost draws ----------------------------------------------------------------------------------


def drawn_in_vain(policy, monkeypatch, play):
    """Play up to a release that is interrupted once its secure noise is drawn."""
    with monkeypatch.context() as patch:
        lose_a_draw(patch, policy)
        with pytest.raises(KeyboardInterrupt):
            play()


@pytest.mark.parametrize("make", list(examples(private=True, noise="secure", seed=None)))
def test_what_was_drawn_and_lost_counts_as_spent_and_is_not_released_again(
    make, monkeypatch, tmp_path
):
    try:
        clinic = Clinic(make()).play(40)
    except dpb.ArgumentError as error:
        if not str(error).startswith("noise='secure' needs "):
            raise
        pytest.skip("it has no secure noise on this side, so none is drawn in vain")
    policy, waiting = clinic.policy, list(clinic.waiting)
    path, before = policy.save(tmp_path / "a"), policy.ledger
    releases, draws = before.releases, before.draws
    drawn_in_vain(policy, monkeypatch, clinic.until_release)
    lost = policy.ledger
    assert lost.releases == releases + 1
    assert lost.draws > draws
    assert lost_rounds_count_no_more(policy)
    last = int(lost.frame["last"].max())
    assert policy.rounds > last
    assert not policy.session.rounds.pending
    assert not policy.update(1.0, waiting[-1][1])  # its record may have been released
    now = state_of(policy)
    del policy, before
    died(clinic)
    survivor = dpb.load(path)
    assert state_of(survivor) == now
    after = Clinic(survivor).until_release().until_release()
    span = survivor.session.state.wall.ledger.span[: len(survivor.ledger)]
    assert np.all(span[:, SPAN.first] <= span[:, SPAN.last])
    for part in set(span[:, SPAN.part]):
        mine = span[span[:, SPAN.part] == part]
        assert np.all(mine[1:, SPAN.first] > mine[:-1, SPAN.last])
    assert after.policy.meter is None or after.policy.meter.allows(after.policy.ledger.total())


def test_a_release_that_is_due_after_a_lost_draw_does_not_cover_an_empty_span(monkeypatch):
    clinic = Clinic(ada(noise="secure", seed=None)).until_release()
    while not clinic.policy.session.rounds.release_due:
        clinic.play(1)
    drawn_in_vain(clinic.policy, monkeypatch, clinic.until_release)
    frame = clinic.until_release().policy.ledger.frame
    assert (frame["first"] <= frame["last"]).all()
    assert clinic.policy.ledger.total() == pytest.approx(0.5)


# Restores -------------------------------------------------------------------------------------

WHERE = pytest.mark.parametrize("where", ["{}/a", "sqlite:///{}/a.db#one"], ids=["file", "sqlite"])


def kept(where, folder):
    """A place with a policy in the midst of its rounds, and what it knows."""
    place, clinic = place_at(where.format(folder)), Clinic(ada(answers_within=9)).play(40)
    clinic.policy.save(place)
    before = state_of(clinic.policy)
    died(clinic)
    return place, before


@WHERE
def test_a_policy_that_is_served_is_not_restored(where, tmp_path):
    place, _ = kept(where, tmp_path)
    served = dpb.load(place)
    before = state_of(served)
    with pytest.raises(dpb.ClaimError, match="still runs in a process: end that process first"):
        dpb.restore(place_at(where.format(tmp_path)))
    assert state_of(served) == before
    Clinic(served).play(20)
    served.close()
    assert dpb.restore(place).session.restored == 1


@WHERE
@pytest.mark.parametrize("error", [dpb.errors.StoreError("full"), KeyboardInterrupt()])
@pytest.mark.parametrize(
    ("owner", "name"),
    [("place", "mark"), ("place", "commit"), (Witness, "begin"), (Sealer, "_new_key")],
)
def test_a_restore_that_fails_leaves_the_policy_as_it_was(
    where, owner, name, error, monkeypatch, tmp_path
):
    place, before = kept(where, tmp_path)
    if owner is Sealer and not place.sealed:
        pytest.skip("its rows are not sealed")
    for _ in range(2):
        with monkeypatch.context() as patch:
            fail(patch, type(place) if owner == "place" else owner, name, error)
            with pytest.raises(type(error)):
                dpb.restore(place)
    loaded = dpb.load(place)
    assert state_of(loaded) == before
    loaded.close()
    assert dpb.restore(place).session.restored == 1


@WHERE
@pytest.mark.parametrize("again", [dpb.load, dpb.restore])
@pytest.mark.parametrize(("owner", "name"), [(Witness, "end"), (Sealer, "end")])
def test_a_restore_that_is_killed_after_its_commit_is_finished_later(
    where, owner, name, again, monkeypatch, tmp_path
):
    place, _ = kept(where, tmp_path)
    lost = place.mark().life
    with monkeypatch.context() as patch:
        fail(patch, owner, name, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            dpb.restore(place)
    restored = again(place)
    assert restored.session.restored == 1 + (again is dpb.restore)
    assert Witness(lost).is_behind(Mark(lost, 10**6))
    assert not Sealer(lost).path.exists()
    restored.close()
    assert dpb.load(place).session.restored == restored.session.restored


@FORKING
@UNWARNED
@WHERE
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_is_killed_in_a_restore(where, when, tmp_path):
    place, before = kept(where, tmp_path)

    def work():
        commit = type(place).commit

        def killing(*arguments):
            if when == "after":
                commit(*arguments)
            os._exit(9)

        type(place).commit = killing
        dpb.restore(place_at(where.format(tmp_path)))

    assert exit_code(work) == 9
    loaded = dpb.load(place)
    assert loaded.session.restored == (when == "after")
    if when == "before":
        assert state_of(loaded) == before


def test_a_second_restore_keeps_the_arm_that_is_held(tmp_path):
    policy = registered()["AdaCUCB"](6, budget=None, seed=0, answers_within=8)
    waiting = []

    def play(rounds):
        for _ in range(rounds):
            waiting.append(policy.pull())
            if len(waiting) > 2:
                decision = waiting.pop(0)
                policy.update(min((decision.arm + 1) / 4.0, 1.0), decision)

    play(12)
    path = policy.save(tmp_path / "trial.dpb")
    policy.close()
    for _ in range(2):  # the second one finds no round of the arm
        policy = dpb.restore(path)
        policy.close()
    policy = dpb.load(path)
    waiting.clear()
    play(30)
    assert policy.estimates.means.tolist() == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_a_restored_holdout_draws_anew(tmp_path):
    own = dpb.Holdout(0.4, batch=50, one_sum=True)
    policy = dpb.bandit(2, dpb.ZCDP(0.5), holdout=own, seed=1)
    while not policy.pull().held_out:
        pass
    path = policy.save(tmp_path / "trial.dpb")
    policy.close()
    restored = dpb.restore(path)
    assert restored.session.holdout.rounds.left == 0
    decisions = [restored.pull() for _ in range(40)]
    assert {one.propensity for one in decisions if one.held_out} == {0.5}
