"""Results that add up: the union of some runs and of others is that of all."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbandits import ZCDP, replay, simulate
from dpbandits.algorithms import UCB1, MergedIMED
from dpbandits.environments import Bernoulli, DoctorReplay, GaussianContexts
from dpbandits.errors import ArgumentError
from dpbandits.simulation import ReplayResult, Result

RUNS = 10
WORLD = Bernoulli([0.9, 0.1])
POLICIES = [MergedIMED(2, budget=ZCDP(0.5)), UCB1(2)]


def played(first_run: int = 0, runs: int = RUNS, **changes: Any) -> Result:
    given = {"policies": POLICIES, "environment": WORLD, "horizon": 30, "seed": 4, "record": 4}
    return simulate(**{**given, "first_run": first_run, "runs": runs, **changes})


def replayed(first_run: int = 0, runs: int = RUNS) -> ReplayResult:
    policies = [MergedIMED(4, budget=ZCDP(0.5)), UCB1(4)]
    return replay(policies, DoctorReplay(), horizon=20, first_run=first_run, runs=runs, seed=4)


def bytes_of(result: Result | ReplayResult, folder: Path) -> bytes:
    return result.save(folder / "result.parquet").read_bytes()


@given(cuts=st.sets(st.integers(1, RUNS - 1)), data=st.data())
@settings(max_examples=15)
def test_parts_of_any_size_in_any_order_have_the_bytes_of_the_whole(
    cuts: set[int], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
):
    ends, folder = sorted({0, RUNS, *cuts}), tmp_path_factory.mktemp("parts")
    spans = data.draw(st.permutations([*pairwise(ends)]))
    for play in (played, replayed):
        parts = [play(begin, end - begin) for begin, end in spans]
        whole = type(parts[0]).merge(parts)
        assert bytes_of(whole, folder) == bytes_of(play(), folder)


def test_saved_parts_have_the_bytes_of_the_whole(tmp_path: Path):
    for play in (played, replayed):
        parts = []
        for n, (first, runs) in enumerate([(6, 4), (0, 6)]):
            part = play(first, runs)
            parts.append(type(part).load(part.save(tmp_path / f"{n}.parquet")))
        assert bytes_of(type(parts[0]).merge(parts), tmp_path) == bytes_of(play(), tmp_path)


def test_runs_have_the_numbers_and_the_rewards_of_those_of_the_whole():
    whole, later = played().runs, played(7, 3).runs
    assert sorted(set(later["run"])) == [7, 8, 9]
    expected = whole[whole["run"] >= 7].reset_index(drop=True)
    assert later.equals(expected)
    assert not np.array_equal(later["reward"], whole[whole["run"] < 3]["reward"])


def test_environments_and_contexts_add_up(tmp_path: Path):
    from dpbandits import Linear

    world = GaussianContexts.on_sphere(3, 2, seed=1, rewards="bounded", project=True)
    other = {
        "policies": Linear(3, 2, budget=None, horizon=30, reward_range=(-1, 1)),
        "environment": world,
    }
    both = [Result.combined([played(n, 5), played(n, 5, **other)]) for n in (5, 0)]
    whole = Result.combined([played(), played(**other)])
    assert bytes_of(Result.merge(both), tmp_path) == bytes_of(whole, tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first_run": 4}, "must not share runs, got run 4 twice"),
        ({"seed": 5}, "must have the same seed"),
        ({"horizon": 31}, "must have the same horizon"),
        ({"environment": Bernoulli([0.9, 0.2])}, "must have the same environments"),
        ({"policies": POLICIES[:1]}, "must have the same policies"),
        ({"policies": POLICIES[::-1]}, "must have the same policies"),
    ],
)
def test_results_that_are_no_parts_of_one_are_refused(changes: dict[str, Any], message: str):
    with pytest.raises(ArgumentError, match=message):
        Result.merge([played(0, 5), played(**{"first_run": 5, "runs": 5, **changes})])


def test_there_must_be_parts():
    with pytest.raises(ArgumentError, match="at least one result"):
        Result.merge([])


@pytest.mark.parametrize("first_run", [-1, 0.5, 2**31 + 1])
def test_numbers_of_runs_are_integers(first_run: Any):
    with pytest.raises(ArgumentError, match="first_run must be"):
        played(first_run)


def test_keys_are_categories_whatever_was_done_to_results(tmp_path: Path):
    """28 bytes a row: four codes, and three numbers of eight bytes."""
    results = [simulate(one, WORLD, horizon=3000, runs=RUNS) for one in POLICIES]
    together = Result.combined(results)
    loaded = Result.load(together.save(tmp_path / "result.parquet"))
    for one in (*results, together, loaded, Result.merge([loaded])):
        assert one.frame.memory_usage(deep=True).sum() < 30 * len(one.frame) + 2000
    pd.testing.assert_frame_equal(loaded.frame, together.frame, check_exact=True)
    pd.testing.assert_frame_equal(
        simulate(POLICIES, WORLD, horizon=3000, runs=RUNS).frame, together.frame
    )
