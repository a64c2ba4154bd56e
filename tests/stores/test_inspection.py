"""Inspecting a saved policy: from public quantities, of a living one, and without a trace."""

import shutil

import numpy as np
import pytest
from clinic import Clinic, ada

import dpbandits as dpb
from dpbandits.stores import FileStore, decode, encode


def everything_below(folder):
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


def secure(**options):
    pytest.importorskip("opendp")
    return dpb.algorithms.MergedIMED(3, budget=dpb.PureDP(0.5), noise="secure", **options)


@pytest.mark.parametrize("make", [ada, secure])
def test_a_living_policy_is_inspected_without_a_trace(tmp_path, make):
    clinic = Clinic(make()).play(60)
    path = clinic.policy.save(tmp_path / "a")
    saved = clinic.policy.estimates
    before = clinic.policy.ledger.releases
    clinic.play(60)  # releases more, which only the journal knows
    policy = clinic.policy
    assert policy.ledger.releases > before
    files = everything_below(tmp_path)
    seen = [dpb.inspect(path) for _ in range(2)][-1]
    assert everything_below(tmp_path) == files
    assert seen.spent == policy.ledger.spent()
    assert seen.ledger.frame.equals(policy.ledger.frame)
    assert seen.since == policy.ledger.releases - before
    assert seen.guarantee == policy.guarantee
    assert not seen.superseded
    np.testing.assert_array_equal(seen.estimates.means, saved.means)
    assert seen.estimates.releases == before
    clinic.until_release()  # it was not disturbed
    del clinic, policy
    dpb.load(path)  # nor claimed


def test_nothing_private_is_needed(tmp_path):
    # All that is behind the wall, who waits for an answer, and who came, is taken out of the file.
    policy = Clinic(ada(max_rounds=3)).policy
    for visit in range(40):
        decision = policy.pull(user=f"patient {visit % 20}")
        if visit % 3:
            policy.update(0.7, decision)
    path = policy.save(tmp_path / "a")
    whole = dpb.inspect(path)
    header, arrays = decode(path.read_bytes(), path)
    public = ("public.", "wall.ledger.")
    arrays = {name: array for name, array in arrays.items() if name.startswith(public)}
    for name in ("last", "former", "streams"):
        header[name] = None
    rounds = header["rounds"]
    most = max(n for _, n in rounds["users"]["recorded"])
    kept = {name: rounds[name] for name in ("recorded", "retired", "chosen_among")}
    header["rounds"] = {**kept, "users": {"recorded": [["x", most]]}}
    path.write_bytes(encode(header, arrays))
    shown = dpb.inspect(path)
    assert shown.facts == whole.facts
    assert shown.estimates._repr_html_() == whole.estimates._repr_html_()
    assert shown.ledger.frame.equals(whole.ledger.frame)
    assert whole.spent == policy.ledger.spent()  # grown by the rounds of whoever came most often
    assert "patient" not in whole._repr_html_() + repr(whole)
    assert "seed" not in whole.policy


def test_users_of_announced_releases_count(tmp_path):
    policy = ada(max_rounds=5, patience=0)
    path = policy.save(tmp_path / "a")
    for _ in range(5):
        for user in range(6):
            policy.update(1.0, policy.pull(user=user))
    for stranger in range(100, 200):  # until all records of the six are released
        policy.update(1.0, policy.pull(user=stranger))
    seen = dpb.inspect(path)
    assert seen.since > 3
    assert seen.rounds == 0
    assert seen.spent == policy.ledger.spent() == dpb.ZCDP(0.5)


def test_private_contexts_show_no_counts_by_arm(tmp_path):
    policy = dpb.algorithms.LinUCBJDP(3, 2, horizon=1000, batch=5, budget=dpb.ZCDP(0.5), seed=1)
    rng = np.random.default_rng(2)
    for _ in range(23):
        policy.update(1.0, policy.pull(rng.uniform(-0.5, 0.5, (3, 2))))
    seen = dpb.inspect(policy.save(tmp_path / "a"))
    assert seen.estimates.means is seen.estimates.rounds is None
    assert seen.estimates.coefficients == pytest.approx(policy.estimates.coefficients)
    assert list(seen.estimates.frame.columns) == [0, 1]


def test_a_save_that_was_loaded_says_that_it_is_not_the_last_word(tmp_path):
    path = Clinic(ada()).play(30).policy.save(tmp_path / "a")
    shutil.copy(path, tmp_path / "copy")
    assert not dpb.inspect(path).superseded
    policy = dpb.load(path)
    assert dpb.inspect(tmp_path / "copy").superseded
    assert "spent more than is said here" in dpb.inspect(tmp_path / "copy").facts["warning"]
    assert not dpb.inspect(path).superseded  # that of the policy that was loaded
    shutil.copy(path, tmp_path / "earlier")
    policy.save(path)
    assert dpb.inspect(tmp_path / "earlier").superseded


def test_a_save_between_two_looks_is_noticed(tmp_path, monkeypatch):
    clinic = Clinic(ada()).play(30)
    path, announced = clinic.policy.save(tmp_path / "a"), FileStore.announced
    times = iter(range(3))

    def saving(self, life):
        found = announced(self, life)
        if next(times, None) is not None:
            clinic.play(20).policy.save(path)
        return found

    monkeypatch.setattr(FileStore, "announced", saving)
    seen = dpb.inspect(path)
    assert seen.ledger.frame.equals(clinic.policy.ledger.frame)
    times = iter(range(10**6))
    with pytest.raises(dpb.errors.StateFileError, match="more often than it can be read"):
        dpb.inspect(path)


def test_what_is_no_saved_policy_is_refused(tmp_path):
    path = Clinic(ada()).play(30).policy.save(tmp_path / "a")
    header, arrays = decode(path.read_bytes(), path)
    path.write_bytes(encode({**header, "class": "Nobody"}, arrays))
    with pytest.raises(dpb.errors.StateFileError, match="does not hold a policy of this version"):
        dpb.inspect(path)
    path.write_bytes(encode(header, {**arrays, "public.pulls": np.zeros(2, np.int64)}))
    with pytest.raises(dpb.errors.StateFileError, match=r"public\.pulls"):
        dpb.inspect(path)
    path.write_bytes(b"something else")
    with pytest.raises(dpb.errors.StateFileError, match="damaged"):
        dpb.inspect(path)
