"""Fixed reward tables: every window against its plain sum."""

from __future__ import annotations

import numpy as np
import pytest

from dpbandits import ArgumentError
from dpbandits.environments import RewardTable

TABLE = np.random.default_rng(1).uniform(-1.0, 2.0, size=(12, 3))


def test_every_window_is_the_sum_of_its_rows():
    environment, rng = RewardTable(TABLE), np.random.default_rng(0)
    for start in range(12):
        for n in range(13 - start):
            for arm in range(3):
                total = environment.kernels.draw(environment.state, arm, start, n, rng)
                assert total == pytest.approx(
                    sum(TABLE[t, arm] for t in range(start, start + n)), abs=1e-12
                )


def test_regret_of_every_window_is_against_the_best_column():
    environment = RewardTable(TABLE)
    best = max(range(3), key=lambda arm: sum(TABLE[:, arm]))
    for start in range(12):
        for n in range(13 - start):
            for arm in range(3):
                lost = sum(TABLE[t, best] - TABLE[t, arm] for t in range(start, start + n))
                assert environment.kernels.regret(
                    environment.state, arm, start, n
                ) == pytest.approx(lost, abs=1e-12)


def test_drawing_uses_no_randomness():
    environment, rng = RewardTable(TABLE), np.random.default_rng(0)
    before = rng.bit_generator.state
    environment.kernels.draw(environment.state, 0, 0, 12, rng)
    assert rng.bit_generator.state == before


def test_a_table_describes_itself():
    environment = RewardTable(TABLE)
    assert (environment.horizon, environment.n_arms) == TABLE.shape
    assert environment.support == (TABLE.min(), TABLE.max())
    assert environment.means() == pytest.approx(TABLE.mean(axis=0))


def test_arms_may_have_names():
    assert RewardTable(TABLE).arm_names == ["arm 0", "arm 1", "arm 2"]
    assert RewardTable(TABLE, arm_names=["a", "b", "c"]).arm_names == ["a", "b", "c"]
    with pytest.raises(ArgumentError, match="arm_names must hold 3 names, one per column, got 2"):
        RewardTable(TABLE, arm_names=["a", "b"])


def test_later_changes_of_the_callers_array_do_not_matter():
    table = TABLE.copy()
    environment = RewardTable(table)
    table[:] = 0.0
    assert environment.kernels.draw(
        environment.state, 0, 0, 12, np.random.default_rng(0)
    ) == pytest.approx(TABLE[:, 0].sum())


@pytest.mark.parametrize(
    "bad",
    [
        [],
        [1.0, 2.0],
        [[]],
        [[1.0, np.nan]],
        [[np.inf]],
        np.zeros((2, 2, 2)),
        [["a"]],
        [[1.0], [1.0, 2.0]],
        None,
    ],
    ids=repr,
)
def test_bad_tables_are_refused(bad):
    with pytest.raises(
        ArgumentError,
        match=r"^rewards must (be an array of numbers of shape \(T, K\)|hold finite numbers)",
    ):
        RewardTable(bad)
