"""Calls from within a call: signal handlers run between two instructions of a step."""

import signal
import time

import pytest

import dpbandits as dpb
from dpbandits.algorithms import HTINF, MergedIMED
from dpbandits.errors import ReentryError
from dpbandits.session.gate import Gate
from dpbandits.stores import FilePlace

CALLS = {
    "pull": lambda policy, folder: policy.pull(),
    "update": lambda policy, folder: policy.update(1.0),
    "expire": lambda policy, folder: policy.expire(),
    "finish": lambda policy, folder: policy.finish(),
    "retire": lambda policy, folder: policy.retire(0),
    "add": lambda policy, folder: policy.add(0),
    "save": lambda policy, folder: policy.save(folder / "within"),
    "batch": lambda policy, folder: policy.batch().__enter__(),
    "estimates": lambda policy, folder: policy.estimates,
    "chooser": lambda policy, folder: policy.chooser(),
    "card": lambda policy, folder: policy.card_page(),
}


def until_release(policy):
    before = policy.ledger.releases
    while policy.ledger.releases == before:
        policy.update(0.5, policy.pull())


@pytest.mark.parametrize("moment", [(Gate, "release"), (FilePlace, "commit")], ids=lambda m: m[1])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_from_within_a_step_or_its_commit_is_refused_and_changes_nothing(
    name, moment, tmp_path, monkeypatch
):
    def made(file):
        policy = MergedIMED(3, budget=dpb.ZCDP(0.5), seed=1)
        policy.save(tmp_path / file)
        return policy

    happen, refused = getattr(*moment), []

    def interrupted(*arguments):
        with pytest.raises(ReentryError, match="signal handler"):
            CALLS[name](disturbed, tmp_path)
        refused.append(name)
        return happen(*arguments)

    quiet, disturbed = made("quiet"), made("disturbed")
    until_release(quiet)
    with monkeypatch.context() as patch:
        patch.setattr(*moment, interrupted)
        until_release(disturbed)
    assert refused
    assert not (tmp_path / "within").exists()
    for _ in range(30):
        assert quiet.pull().arm == disturbed.pull().arm
        assert quiet.update(0.5) == disturbed.update(0.5)
    assert quiet.ledger.frame.equals(disturbed.ledger.frame)
    found = dpb.load(tmp_path / "disturbed")
    assert found.ledger.frame.equals(quiet.ledger.frame)
    assert found.pull().arm == quiet.pull().arm


def test_a_step_that_fails_gives_the_turn_back():
    policy = MergedIMED(3, budget=dpb.ZCDP(0.5), seed=1)
    with pytest.raises(dpb.UpdateError):
        policy.update(1.0)
    assert policy.pull().recorded
    with pytest.raises(dpb.ArgumentError):
        policy.pull(available=[])
    assert policy.update(1.0)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this platform")
def test_signals_at_any_time_tear_nothing(tmp_path):
    """A handler saves about every millisecond; the policy releases in every round."""
    quiet = HTINF(3, budget=dpb.PureDP(1.0), seed=1)
    policy = HTINF(3, budget=dpb.PureDP(1.0), seed=1)
    policy.save(tmp_path / "a")
    counts = {"saved": 0, "refused": 0}

    def handler(*_):
        try:
            policy.save(tmp_path / "a")
            counts["saved"] += 1
        except ReentryError:
            counts["refused"] += 1

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 3e-4, 7e-4)
    try:
        arms = []
        for _ in range(400):
            arms.append(policy.pull().arm)
            policy.update(float(arms[-1] == 1))
            time.sleep(1e-3)  # between calls, where a signal may come, too
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    for arm in arms:
        assert quiet.pull().arm == arm
        quiet.update(float(arm == 1))
    assert min(counts.values()) > 0
    assert quiet.ledger.frame.equals(policy.ledger.frame)
    loaded = dpb.load(policy.save(tmp_path / "a"))
    assert loaded.ledger.frame.equals(quiet.ledger.frame)
    assert loaded.pull().arm == quiet.pull().arm
