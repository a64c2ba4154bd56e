"""Inspecting a saved policy: from public quantities, of a living one, and without a trace."""

import shutil

import numpy as np
import pytest
from clinic import Clinic, Recording, ada, contents, died, rewritten, whole

import dpbandits as dpb
from dpbandits.session.packing import joined, parted
from dpbandits.stores import FilePlace


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
    before = clinic.policy.ledger.releases
    clinic.play(60)  # releases more, which only the journal knows
    policy = clinic.policy
    assert policy.ledger.releases > before
    files = everything_below(tmp_path)
    seen = [dpb.inspect(path) for _ in range(2)][-1]
    assert everything_below(tmp_path) == files
    assert seen.spent == policy.ledger.spent()
    assert seen.ledger.frame.equals(policy.ledger.frame)
    assert seen.rounds == policy.rounds
    assert seen.guarantee == policy.guarantee
    assert not seen.superseded
    np.testing.assert_array_equal(seen.estimates.means, policy.estimates.means)
    assert seen.estimates.releases == policy.ledger.releases
    clinic.until_release()  # it was not disturbed
    del policy
    died(clinic)
    dpb.load(path)  # nor claimed


def test_nothing_private_is_needed(tmp_path):
    # All that is behind the wall, who waits for an answer, and who came, is taken out of the file.
    policy = Clinic(ada(max_rounds=3)).policy
    for visit in range(40):
        decision = policy.pull(user=f"patient {visit % 20}")
        if visit % 3:
            policy.update(0.7, decision)
    path = policy.save(tmp_path / "a")
    complete = dpb.inspect(path)
    held = contents(path)
    public, _ = parted(held.head)
    rows = [row for row in held.rows if row.kind in ("about", "line")]
    whole(path, held, rows, joined(public, b""))
    shown = dpb.inspect(path)
    assert shown.facts == complete.facts
    assert shown.estimates._repr_html_() == complete.estimates._repr_html_()
    assert shown.ledger.frame.equals(complete.ledger.frame)
    assert complete.spent == policy.ledger.spent()  # grown by the rounds of whoever came most often
    assert "patient" not in complete._repr_html_() + repr(complete)
    assert "seed" not in complete.policy


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
    policy.pull()
    assert dpb.inspect(tmp_path / "earlier").superseded
    assert not dpb.inspect(path).superseded


def test_a_commit_between_two_looks_tears_nothing(tmp_path):
    """What is read is as of one moment, whatever the policy does until its rows are read."""
    clinic = Clinic(ada()).play(30)
    clinic.policy.save(tmp_path / "a")
    before = clinic.policy.ledger.frame

    class Slow(Recording):
        def read(self):
            found = self.place.read()
            clinic.until_release().policy.save(tmp_path / "a")
            clinic.until_release()
            return found

    seen = dpb.inspect(Slow(FilePlace(tmp_path / "a")))
    assert seen.ledger.frame.equals(before)
    assert seen.superseded
    assert dpb.inspect(tmp_path / "a").ledger.frame.equals(clinic.policy.ledger.frame)


def test_what_is_no_saved_policy_is_refused(tmp_path):
    path = Clinic(ada()).play(30).policy.save(tmp_path / "a")
    rewritten(path, lambda about: about.update({"class": "Nobody"}))
    with pytest.raises(dpb.errors.StateFileError, match="does not hold a policy of this version"):
        dpb.inspect(path)
    rewritten(path, lambda about: about.update({"class": "AdaCUCB"}))
    dpb.inspect(path)

    def narrower(about):
        (place,) = [one for one in about["layout"]["public"] if one[0] == "public.pulls"]
        place[1] = "<f8"

    rewritten(path, narrower)
    with pytest.raises(dpb.errors.StateFileError, match=r"public\.pulls"):
        dpb.inspect(path)
    path.write_bytes(b"something else")
    with pytest.raises(dpb.errors.StateFileError, match="damaged"):
        dpb.inspect(path)
