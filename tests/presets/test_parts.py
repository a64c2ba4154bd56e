"""Parts as values, templates read both ways, and combinations that no name has."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from dpbandits import (
    ZCDP,
    ArgumentError,
    Arms,
    ArmsLocal,
    ArmsShuffled,
    BestArm,
    PureDP,
    fit_logs,
)
from dpbandits.cli import app
from dpbandits.parts import (
    IMED,
    KLUCB,
    UCB,
    Discount,
    Fixed,
    Forget,
    Growing,
    Index,
    Memory,
    Merge,
    Part,
    Thompson,
    TopTwo,
    find,
)
from dpbandits.policies import load, part, registered, registry
from dpbandits.policies.presets import Preset

INDICES = [IMED(), KLUCB(1.2), UCB(0.7), Thompson()]
MEMORIES = [Merge(), Forget(), Discount(2000)]
BATCHES = [Growing(), Growing(ratio=1.0, first=3), Fixed(20)]


def test_parts_compare_by_value_and_are_written_as_they_are_made():
    assert IMED(1.0) == IMED() != KLUCB()
    assert len({IMED(), IMED(1), Growing(), Growing(None)}) == 2
    for one in [*INDICES, *MEMORIES, *BATCHES]:
        assert eval(repr(one)) == one
        assert Part.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    with pytest.raises(AttributeError):
        IMED().alpha = 2.0  # type: ignore[misc]


@pytest.mark.parametrize("given", ["UCB", {"kind": "UCB"}, {"kind": "UCB", "alpha": 1}, UCB()])
def test_a_file_writes_a_part(given: object):
    assert part("index", given, (Index,)) == UCB()
    assert Arms(2, budget=None, index=given).config["index"] == UCB()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("ucb", r"index must be one of IMED\(\), .*UCB\(\).*, got 'ucb'"),
        (Merge(), r"index must be one of .* got Merge\(\)"),
        ({"kind": "Merge"}, "index must be one of"),
        ({"alpha": 1}, "index must be one of"),
        ({"kind": "UCB", "alhpa": 1}, "alhpa is no argument of UCB; did you mean alpha"),
        ({"kind": "UCB", "alpha": -1}, r"alpha must be a number in \(0"),
        (3, "index must be one of"),
    ],
)
def test_what_is_no_part_is_refused_by_name(given: object, told: str):
    with pytest.raises(ArgumentError, match=f"^{told}"):
        Arms(2, budget=None, index=given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Arms(2, budget=None, index=Thompson(), memory=Forget()), "memory must be Merge"),
        (lambda: Arms(2, budget=None, index=Thompson(), memory=Discount()), "memory must be Merge"),
        (
            lambda: ArmsShuffled(2, budget=None, index=Thompson()),
            "index must not draw .* Thompson",
        ),
        (
            lambda: ArmsShuffled(2, budget=None, index=IMED(variance="released")),
            "index must not draw .* IMED",
        ),
        (lambda: ArmsLocal(2, budget=None, index=Thompson()), "index must be IMED"),
        (lambda: ArmsLocal(2, budget=None, index=IMED(variance="released")), "index must be IMED"),
    ],
)
def test_a_combination_that_means_nothing_says_why(make, told: str):
    with pytest.raises(ArgumentError, match=f"^{told}"):
        make()


def test_equal_values_have_one_name_however_they_were_built():
    named = find("MergedIMED")(3, budget=ZCDP(0.5), alpha=1.3, first=2)
    made = Arms(3, budget=ZCDP(0.5), index=IMED(1.3), batches=Growing(first=2))
    assert repr(named) == repr(made)
    assert (named.stream_key, named.exchange_key, named.label) == (
        made.stream_key,
        made.exchange_key,
        made.label,
    )
    assert isinstance(made, find("MergedIMED"))
    assert not isinstance(made, find("MergedKLUCB"))


def test_every_name_finds_itself_from_the_values_of_its_class():
    for name, cls in registered().items():
        if isinstance(cls, Preset):
            budget = next(iter(cls.example_budgets()), None)
            policy = cls(**cls.example, budget=budget)
            assert (policy.preset, type(policy)) == (name, cls.policy_class)
            assert policy.card == cls.card
            again = type(policy)(**policy.config)
            assert again.stream_key == policy.stream_key


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@pytest.mark.parametrize("batches", BATCHES, ids=str)
def test_cells_are_saved_and_say_what_is_proved(index: Index, memory: Memory, batches, tmp_path):
    if isinstance(index, Thompson) and memory != Merge():
        pytest.skip("refused")
    policy = Arms(3, budget=PureDP(1.0), index=index, memory=memory, batches=batches, seed=1)
    arms = [policy.pull().arm for _ in range(1)]
    for _ in range(60):
        policy.update(float(arms[-1] == 1))
        arms.append(policy.pull().arm)
    again = load(policy.save(str(tmp_path / "one.dpb")), simulation=True)
    assert again.config == policy.config
    assert policy.guarantee.holds == PureDP(1.0)
    if policy.preset == "Arms":
        assert "no theorem on the regret of this combination is known" in policy.card.source
        assert index.title in policy.card.title
    twin = Arms(3, budget=PureDP(1.0), index=index, memory=memory, batches=batches, seed=1)
    assert [twin.pull().arm, twin.stream_key] == [arms[0], policy.stream_key]


def test_a_wrong_argument_of_a_name_is_told_by_its_own_name():
    with pytest.raises(ArgumentError, match=r"^beta must be a number in \(0"):
        find("AdaCUCB")(3, budget=ZCDP(1.0), beta=-1.0)
    with pytest.raises(ArgumentError, match=r"^growth must be a number in \[0.01"):
        find("MergedIMED")(3, budget=ZCDP(1.0), growth=0.0)
    with pytest.raises(ArgumentError, match=r"^forget must be True or False for AdaCUCB, got 1$"):
        find("AdaCUCB")(3, budget=ZCDP(1.0), forget=1)


def test_an_unknown_name_is_answered_with_a_close_one():
    with pytest.raises(ArgumentError, match="there is no policy 'MergdIMED'; did you mean MergedI"):
        find("MergdIMED")


PROGRAM = """
from dpbandits import ZCDP, Arms
from dpbandits.parts import UCB, Forget, Growing
made = Arms(3, budget=ZCDP(1.0), index=UCB(), memory=Forget(), batches=Growing(ratio=1.0))
print(made.preset, len(made.card.errata), made.exchange_key)
"""


def test_what_a_policy_is_does_not_depend_on_what_was_imported():
    run = [sys.executable, "-c"]
    plain, after = (
        subprocess.run([*run, text], capture_output=True, text=True, check=True).stdout
        for text in (PROGRAM, f"import dpbandits.papers{PROGRAM}")
    )
    assert plain == after
    assert plain.startswith("AdaCUCB 1 ")


def test_a_name_that_takes_fewer_budgets_leaves_others_to_its_class():
    parts = {"index": UCB(), "memory": Forget(), "batches": Growing(ratio=1.0)}
    assert Arms(3, budget=ZCDP(1.0), **parts).preset == "AdaCUCB"
    assert Arms(3, budget=PureDP(1.0), **parts).preset == "Arms"
    with pytest.raises(ArgumentError, match=r"^budget must be .* for AdaCUCB, as in"):
        find("AdaCUCB")(3, budget=PureDP(1.0))


def test_names_of_our_parts_cannot_be_taken():
    with pytest.raises(TypeError, match=r"^IMED is already the name of a part of this package"):
        type("IMED", (Index,), {})
    assert Arms(2, budget=None, index="IMED").config["index"] == IMED()


def test_whoever_owns_the_wall_is_no_base_of_others():
    class Loud(TopTwo):
        pass

    class Other(Thompson):
        pass

    with pytest.raises(ArgumentError, match=r"^rule must be one of"):
        BestArm(3, budget=PureDP(1.0), failure_probability=0.1, rule=Loud())
    with pytest.raises(
        ArgumentError, match=r"^index must be of a class derived from Index, not from Thompson"
    ):
        Arms(3, budget=PureDP(1.0), index=Other())
    with pytest.raises(ArgumentError, match=r"^index must be one of"):
        Arms(3, budget=PureDP(1.0), index=Index())
    with pytest.raises(ArgumentError, match=r"^longest must be at least first"):
        Growing(first=10, longest=5)
    with pytest.raises(ArgumentError, match=r"^rounds must be given for Fixed"):
        Arms(3, budget=None, batches="Fixed")


@pytest.mark.parametrize("batches", [Fixed(5), Growing(longest=5), Growing()], ids=str)
def test_a_public_log_counts_all_its_rounds_whatever_batches_are(batches):
    rng = np.random.default_rng(1)
    arms = rng.integers(0, 3, 300)
    rewards = np.clip(np.array([0.1, 0.3, 0.5])[arms] + 0.1 * rng.random(300), 0, 1)
    policy = Arms(3, budget=PureDP(1.0), batches=batches, seed=1)
    fit_logs(policy, {"arm": arms, "reward": rewards}, private=False)
    exact = [rewards[arms == arm].mean() for arm in range(3)]
    assert policy.estimates.means == pytest.approx(exact, abs=1e-6)


def test_a_class_has_the_card_of_its_default_parts():
    for name, cls in registry._COMPOSED.items():
        (budget, *_) = cls.example_budgets()
        card = cls(**cls.example, budget=budget).card
        assert (card.notions, card.trust_model, card.protects) == (
            cls.card.notions,
            cls.card.trust_model,
            cls.card.protects,
        )
        for command in ("explain", "card"):
            told = CliRunner().invoke(app, [command, name])
            assert told.exit_code == 0
            assert card.protects in told.stdout
