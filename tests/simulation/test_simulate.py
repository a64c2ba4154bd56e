"""Runs are reproducible, independent of each other and of how they are cut up; results keep what
they say.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest

import dpbandits as dpb
from dpbandits.environments import Bernoulli, Gaussian, LinearArms, RewardTable
from dpbandits.papers.others import LazyDPTS
from dpbandits.policies import Policy
from dpbandits.privacy.ledger import HEAD, LedgerArrays, empty_arrays
from dpbandits.session.steps import release_of
from dpbandits.simulation import Result, simulate
from dpbandits.simulation.clipping import Entering
from dpbandits.simulation.late import play_late
from dpbandits.simulation.loops import arms_loop
from dpbandits.simulation.results import _KEPT, _drawn, bootstrap_band
from dpbandits.simulation.seeding import identity, stream
from dpbandits.simulation.simulating import recorded_rounds
from dpbandits.simulation.tally import DONE, LEDGER_FULL, PAUSED, new_tally

WORLD = Bernoulli([0.8, 0.5, 0.2])


def policies() -> list[Policy]:
    return [
        dpb.papers.concentrated.AdaCUCB(3, budget=dpb.ZCDP(0.5)),
        dpb.papers.concentrated.AdaCUCB(3, budget=None),
        LazyDPTS(3, budget=dpb.PureDP(1.0)),
        dpb.algorithms.ThompsonSampling(3),
    ]


def run(chosen: list[Policy], **options) -> Result:
    return simulate(
        chosen, WORLD, **{"horizon": 2000, "runs": 12, "seed": 3, "record": 10, **options}
    )


def same(one: Result, other: Result) -> None:
    pd.testing.assert_frame_equal(one.frame, other.frame)
    pd.testing.assert_frame_equal(one.runs, other.runs)


# Clipping ------------------------------------------------------------------------------------


WIDE = LinearArms([[1.0], [0.5]], [0.2], rewards="bounded")  # 1 or -1


@pytest.mark.parametrize(
    ("world", "options", "what"),
    [
        (
            WIDE,
            {},
            (
                r"AdaCUCB in .*: rewards outside \[0, 1\] are clipped: rewards of this environment"
                r" lie in \[-1, 1\]"
            ),
        ),
        (WIDE, {"reward_range": (-1.0, 1.0)}, None),
        (WIDE, {"clip": False}, None),
        (Gaussian([0.2, 0.8]), {}, None),
        (Gaussian([0.2, 1.8]), {}, r"have no bounds \(mean rewards: 0.2 to 1.8\)"),
        (Gaussian([0.2, 1.8]), {"clip": False}, None),
    ],
)
@pytest.mark.long
def test_a_range_that_could_fit_better_is_warned_of(world, options, what):
    policy = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(0.5), **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        simulate(policy, world, horizon=5)
    assert len(caught) == (what is not None)
    for warning in caught:
        assert warning.category is dpb.ClippingWarning
        assert re.search(what, str(warning.message))
        assert warning.filename == __file__


def test_several_budgets_and_runs_of_a_policy_are_warned_of_once():
    policies = [
        dpb.papers.concentrated.AdaCUCB(2, budget=budget)
        for budget in (None, dpb.ZCDP(0.5), dpb.ZCDP(1.0))
    ]
    for policy in policies:  # compiling makes Python forget what it has warned of
        with pytest.warns(dpb.ClippingWarning):
            simulate(policy, WIDE, horizon=5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for policy in policies:
            simulate(policy, WIDE, horizon=5)
    assert len(caught) == 1


# Reproducible --------------------------------------------------------------------------------


@pytest.mark.long
def test_another_seed_changes_everything():
    assert not np.allclose(run(policies()).runs["reward"], run(policies(), seed=4).runs["reward"])


def test_adding_or_reordering_policies_changes_nobody_elses_numbers():
    alone, together = run(policies()[:1]), run(policies()[::-1])
    label = policies()[0].label
    mine = together.runs[
        (together.runs["policy"] == label) & (together.runs["budget"] == str(dpb.ZCDP(0.5)))
    ]
    pd.testing.assert_frame_equal(mine.reset_index(drop=True), alone.runs)


def test_more_runs_begin_with_the_same_ones():
    few, many = run(policies()[:1], runs=5), run(policies()[:1], runs=40)
    pd.testing.assert_frame_equal(many.runs.iloc[:5], few.runs)


def test_a_policys_own_seed_and_state_are_not_used():
    used = dpb.papers.concentrated.AdaCUCB(3, budget=dpb.ZCDP(0.5), seed=99)
    used.update(1.0, used.pull())
    same(run([used]), run(policies()[:1]))
    assert used.rounds == 1


# The loop ------------------------------------------------------------------------------------


def driven(policy: Policy, every: int, room: int = 64) -> tuple:
    """The end of a run that pauses every so many rounds, with a ledger that begins with room for so
    many lines.
    """
    crossing = release_of(policy.driven, policy.mechanism)
    loop = arms_loop(policy.driven, crossing, WORLD.kernels)
    owner, state = identity(policy.stream_key), policy.new_state()
    state.wall = state.wall._replace(ledger=empty_arrays(room))
    tally = new_tally(recorded_rounds(5000, 20), policy.n_arms)
    rngs = [stream(1, name, owner, 0) for name in ("environment", "policy", "privacy")]
    sides = (policy.params, state.raw, state.public, state.memo)
    world = (WORLD.state, tally, Entering(False, 0.0, 1.0), 5000, 1 << 62)
    until, seen = every, []
    while not seen or seen[-1] != DONE:
        seen.append(loop((*sides, state.wall), (*world, until), *rngs))
        if seen[-1] == LEDGER_FULL:
            state.make_room()
        else:
            until += every
    used = _used(state.wall.ledger)
    assert int(tally.cursor[0]) == 5000
    assert int(tally.counts.sum()) == 5000
    return seen, [array.tobytes() for array in (*state.raw, *state.public, *tally[1:], *used)]


def _used(ledger: LedgerArrays) -> LedgerArrays:
    lines = ledger.head[HEAD.lines]
    return LedgerArrays(ledger.span[:lines], ledger.noise[:lines], ledger.head)


@pytest.mark.long
@pytest.mark.parametrize("policy", policies(), ids=repr)
@pytest.mark.parametrize("every", [1, 7, 1000])
def test_pauses_do_not_change_a_run(policy: Policy, every: int):
    straight, end = driven(policy, 5000)
    assert PAUSED not in straight
    paused, other = driven(policy, every)
    assert PAUSED in paused
    assert other == end


@pytest.mark.parametrize("policy", policies()[:3], ids=repr)
def test_a_full_ledger_does_not_change_a_run(policy: Policy):
    _, end = driven(policy, 5000, room=4096)
    interrupted, other = driven(policy, 5000, room=1)
    assert LEDGER_FULL in interrupted
    assert other == end


def test_rewards_outside_the_range_are_clipped_one_by_one():
    policy = dpb.papers.concentrated.AdaCUCB(1, budget=None)
    result = simulate(policy, RewardTable([[-1.0], [3.0], [0.5], [0.5]]), horizon=4, seed=1)
    assert result.runs["reward"].item() == 2.0
    loose = simulate(
        dpb.papers.concentrated.AdaCUCB(1, budget=None, clip=False),
        RewardTable([[-1.0], [3.0], [0.5], [0.5]]),
        horizon=4,
        seed=1,
    )
    assert loose.runs["reward"].item() == 3.0


# Records -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "rounds"),
    [
        (1, [1, 100]),
        (3, [1, 10, 100]),
        ([5, 50, 5], [5, 50, 100]),
        ([100], [100]),
        (10**6, list(range(1, 101))),
    ],
)
def test_recorded_rounds(record, rounds):
    assert recorded_rounds(100, record).tolist() == rounds


def test_curves_are_the_regret_at_their_rounds():
    table = RewardTable(np.tile([1.0, 0.0], (50, 1)))
    result = simulate(dpb.algorithms.UCB1(2), table, horizon=50, record=range(1, 51), seed=1)
    curve = result.frame["regret"].to_numpy()
    assert np.all(np.diff(curve) >= 0)
    assert curve[-1] == result.runs["regret"].item() == result.runs["pulls_1"].item()
    assert result.frame["round"].tolist() == list(range(1, 51))


def test_marks_within_a_hold_split_its_regret():
    result = simulate(
        dpb.papers.concentrated.AdaCUCB(2, budget=None),
        Bernoulli([0.5, 0.4]),
        horizon=500,
        record=range(1, 501),
        seed=1,
    )
    steps = np.diff(result.frame["regret"].to_numpy(), prepend=0.0).round(9)
    assert set(steps) == {0.0, 0.1}


def test_counts_and_spend_are_those_of_the_run():
    runs = run(policies()).runs
    assert (runs[["pulls_0", "pulls_1", "pulls_2"]].sum(axis=1) == 2000).all()
    private = runs[runs["budget"] != "none"]
    assert (private["draws"] == private["releases"]).all()
    assert private[private["budget"] == str(dpb.ZCDP(0.5))]["spent"].to_numpy() == pytest.approx(
        0.5
    )
    assert (runs[runs["budget"] == "none"]["draws"] == 0).all()


def test_progress_is_told_and_ends_at_the_number_of_runs():
    seen: list[tuple[int, int]] = []
    run(policies()[:2], progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (24, 24)
    assert seen == sorted(seen)


# Errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon"),
        ({"horizon": 1.5}, "horizon"),
        ({"runs": 0}, "runs"),
        ({"seed": -1}, "seed"),
        ({"seed": None}, "seed"),
        ({"n_jobs": -2}, "n_jobs"),
        ({"record": 0}, "record"),
        ({"record": [0]}, "record"),
        ({"record": [2001]}, "record"),
        ({"round_by_round": 1}, "round_by_round"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(dpb.ArgumentError, match=message):
        run(policies()[:1], **options)


def test_policies_that_do_not_fit_are_refused():
    with pytest.raises(dpb.ArgumentError, match="n_arms"):
        run([dpb.algorithms.UCB1(2)])
    with pytest.raises(dpb.ArgumentError, match="policies"):
        run([dpb.algorithms.UCB1(3, seed=1), dpb.algorithms.UCB1(3, seed=2)])
    with pytest.raises(dpb.ArgumentError, match="policies"):
        run([])
    with pytest.raises(dpb.ArgumentError, match="policies"):
        run(["UCB1"])  # type: ignore[list-item]
    with pytest.raises(dpb.ArgumentError, match="horizon must be at most 5, the environment's"):
        simulate(dpb.algorithms.UCB1(2), RewardTable(np.zeros((5, 2))), horizon=6)


def test_an_error_in_a_worker_is_not_lost():
    policy = dpb.algorithms.UCB1(3)
    vars(policy)["params"] = policy.params._replace(width=float("nan"))
    with pytest.raises(dpb.DPBanditsError, match="sensitivity"):
        run([policy], n_jobs=2)


# Results -------------------------------------------------------------------------------------


def test_results_come_back_from_a_file(tmp_path):
    result = run(policies())
    path = result.save(tmp_path / "result.parquet")
    again = Result.load(path)
    same(result, again)
    assert (again.info, again.settings) == (result.info, result.settings)
    assert [file.name for file in tmp_path.iterdir()] == ["result.parquet"]


@pytest.mark.parametrize("damage", ["cut", "foreign", "empty", "text"])
def test_what_is_no_result_is_refused(tmp_path, damage: str):
    path = run(policies()[:1]).save(tmp_path / "result.parquet")
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-200])
    elif damage == "foreign":
        pd.DataFrame({"a": [1]}).to_parquet(path)
    else:
        path.write_text("" if damage == "empty" else "regret: low")
    with pytest.raises(dpb.errors.StateFileError, match="not a saved result"):
        Result.load(path)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Result.load(tmp_path / "nothing.parquet")


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    result = run(policies()[:1])
    path = result.save(tmp_path / "result.parquet")
    before = path.read_bytes()

    write = parquet.write_table

    def fail(table, where, **options):
        write(table, where, **options)
        if isinstance(where, Path):
            raise OSError("disk full")

    monkeypatch.setattr("pyarrow.parquet.write_table", fail)
    with pytest.raises(OSError, match="disk full"):
        result.save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_runs_without_number_are_saved_in_little_room(tmp_path):
    """As JSON they were more than what readers of Parquet take for well-formed: 100 MB."""
    result = dpb.simulate(
        dpb.algorithms.UCB1(2), Bernoulli([0.9, 0.1]), horizon=2, runs=5_000, record=1
    )
    path = result.save(tmp_path / "result.parquet")
    assert path.stat().st_size < 50 * len(result.runs)
    assert Result.load(path).runs.equals(result.runs)


def test_the_summary_averages_over_runs():
    result = run(policies()[:2])
    summary = result.summary()
    last = summary[summary["round"] == 2000].set_index("budget")
    for budget, group in result.runs.groupby("budget"):
        row = last.loc[budget]
        assert row["mean"] == pytest.approx(group["regret"].mean())
        assert row["low"] < row["mean"] < row["high"]
        assert row["runs"] == 12


def test_the_band_covers_as_often_as_it_says():
    # 90 % nominal, 400 samples of 40 skewed runs: the percentile bootstrap covers some 88 %, a band
    # of half the width 59 %.
    rng = np.random.default_rng(1)
    curves = rng.exponential(size=(40, 400))
    low, high = bootstrap_band(curves, 0.9, 1000, seed=3)
    covered = np.mean((low < 1.0) & (high > 1.0))
    assert 0.80 < covered < 0.95


@pytest.mark.parametrize("runs", [999, 1000])  # on both sides of another way to draw
def test_the_band_is_that_of_the_central_limit_theorem(runs):
    rng = np.random.default_rng(2)
    curves = rng.exponential(size=(runs, 40))
    low, high = bootstrap_band(curves, 0.9, 2000, seed=3)
    mean, error = curves.mean(axis=0), curves.std(axis=0) / np.sqrt(runs)
    # Skewness moves both ends by some .05 errors, and chance by .05.
    assert (low - mean) / error == pytest.approx(np.full(40, -1.645), abs=0.25)
    assert (high - mean) / error == pytest.approx(np.full(40, 1.645), abs=0.25)
    assert all((part.sum(axis=1) == runs).all() for part in _drawn(runs, 50, seed=3))


def test_a_band_does_not_depend_on_others_beside_it():
    result = simulate(
        [dpb.algorithms.MergedIMED(2, budget=dpb.ZCDP(rho)) for rho in (0.1, 1.0)],
        Bernoulli([0.4, 0.6]),
        horizon=100,
        runs=8,
        seed=1,
    )
    both, runs = result.summary(), result.runs
    last = runs["budget"].iloc[-1]
    alone = replace(
        result,
        frame=result.frame[result.frame["budget"] == last],
        runs=runs[runs["budget"] == last],
    )
    rows = both[both["budget"] == last].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone.summary(), rows)


def test_more_resamples_than_are_kept_are_drawn_in_parts():
    runs = 10_000
    low, high = bootstrap_band(np.ones((runs, 1)), 0.9, _KEPT // runs + 1, seed=3)
    assert (low[0], high[0]) == pytest.approx((1.0, 1.0))


def test_unbounded_rewards_need_no_closed_form():
    result = simulate(
        dpb.papers.concentrated.AdaCUCB(2, budget=None, clip=False),
        Gaussian([1.0, 0.0]),
        horizon=500,
        runs=5,
        seed=1,
    )
    assert result.runs["regret"].mean() < 250


def test_a_simulation_of_a_secure_policy_says_that_it_protects_nobody():
    policy = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(1.0), noise="secure")
    assert "SIMULATION" not in str(policy.guarantee)
    result = simulate(policy, Bernoulli([0.9, 0.1]), horizon=10, runs=1)
    (setting,) = result.settings.values()
    assert "SIMULATION" in str(setting.guarantee)


def test_a_holdout_is_played_as_by_a_service():
    """Its people are in regret, pulls and releases; equal seeds play the same, saved or not."""
    arms = dpb.environments.Bernoulli([0.9, 0.5, 0.1])
    plain = dpb.algorithms.MergedIMED(3, budget=dpb.ZCDP(0.5))
    held = dpb.algorithms.MergedIMED(3, budget=dpb.ZCDP(0.5), holdout=0.3, name="held")
    result = dpb.simulate([plain, held], arms, horizon=1000, runs=4, seed=1)
    runs = result.runs[result.runs["policy"] == "held"]
    again = dpb.simulate(held, arms, horizon=1000, runs=4, seed=1, n_jobs=2).runs
    assert runs["regret"].tolist() == again["regret"].tolist()
    # 300 people get each of the arms equally often, at a mean gap of 0.4.
    assert 300 * 0.4 * 0.6 < runs["regret"].mean() < 300 * 0.4 * 1.8
    assert runs["pulls_2"].between(60, 160).all()
    assert runs["spent"].tolist() == [0.5] * 4


def test_what_has_no_simulation_with_a_holdout_is_refused():
    arms, trial = dpb.environments.Bernoulli([0.9, 0.1]), dpb.environments.DoctorReplay()
    held = dpb.bandit(2, budget=dpb.ZCDP(0.5), holdout=0.3, answers_within="1h")
    with pytest.raises(dpb.ArgumentError, match="delay with a rate"):
        dpb.simulate(held, arms, horizon=10)
    with pytest.raises(dpb.ArgumentError, match="no holdout"):
        dpb.replay(dpb.bandit(4, budget=dpb.ZCDP(0.5), holdout=0.3), trial)


# Is it decided? ------------------------------------------------------------------------------


def test_the_first_recorded_round_at_which_it_is_decided():
    """Played once more by hand, with the same people, pull by pull."""
    arms = dpb.environments.Bernoulli([0.2, 0.9])
    policy = dpb.algorithms.MergedIMED(2, budget=None, name="one")
    marks = list(range(20, 401, 20))
    asked = {"confidence": 0.9, "gap": 0.05}
    result = dpb.simulate(policy, arms, horizon=400, runs=3, seed=4, record=marks, decided=asked)
    assert result.info["decided"] == asked
    for run, found in enumerate(result.runs["decided"]):
        tally = new_tally(np.array(marks), 2)
        world = stream(4, "environment", identity(arms.stream_key), run)
        played = policy.simulated(None, stream(4, "privacy", 0, run))  # which draws no noise
        looks = []
        play_late(
            played,
            arms,
            tally,
            400,
            world,
            np.zeros(400, np.int64),
            lambda t, of=played, seen=looks: seen.append((of.decided(0.9, gap=0.05).decided, t)),
        )
        assert [t for _, t in looks] == marks
        assert found == next(t for decided, t in looks if decided)
    assert result.runs["decided"].notna().all()
    assert (result.runs["decided_wrong"] == 0.0).all()


def test_who_cannot_tell_has_no_answer():
    arms = dpb.environments.Bernoulli([0.5, 0.5])
    drifting = dpb.algorithms.DiscountedIMED(2, rounds_per_change=50, budget=None)
    holdout = dpb.Holdout(min_share=0.2, batch=20)
    held = dpb.algorithms.MergedIMED(2, budget=dpb.ZCDP(0.5), holdout=holdout)
    result = dpb.simulate([drifting, held], arms, horizon=200, runs=2, decided=0.95)
    first, second = (group for _, group in result.runs.groupby("policy", sort=False))
    assert first["decided_wrong"].isna().all()
    assert second["decided"].isna().all()  # equal arms
    assert (second[["decided_wrong", "holdout_decided_wrong"]] == 0.0).all(axis=None)
    assert "decided" not in dpb.simulate(held, arms, horizon=20).runs


def test_equal_arms_that_are_decided_are_wrong():
    """At 1 %, one of two equal arms leads after a while."""
    arms = dpb.environments.Bernoulli([0.5, 0.5])
    policy = dpb.algorithms.MergedIMED(2, budget=None)
    loose = {"confidence": 0.01}
    runs = dpb.simulate(policy, arms, horizon=600, runs=10, decided=loose).runs
    assert (runs["decided_wrong"] == runs["decided"].notna()).all()
    assert runs["decided"].notna().any()
    enough = {"confidence": 0.01, "gap": 0.2}
    runs = dpb.simulate(policy, arms, horizon=600, runs=10, decided=enough).runs
    assert runs["decided"].notna().all()
    assert (runs["decided_wrong"] == 0.0).all()


@pytest.mark.parametrize(
    "given",
    [0.0, 1.0, "95 %", {}, {"gap": 0.1}, {"confidence": 0.9, "gap": -1.0}, {"confidence": 2}],
)
def test_what_is_no_question_is_refused(given):
    arms = dpb.environments.Bernoulli([0.9, 0.1])
    policy = dpb.algorithms.MergedIMED(2, budget=None)
    with pytest.raises(dpb.ArgumentError, match="decided must be"):
        dpb.simulate(policy, arms, horizon=10, decided=given)
