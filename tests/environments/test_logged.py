"""Logs of randomised trials: what they say about themselves, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dpbandits import ArgumentError
from dpbandits.environments import LoggedTrial


def test_a_log_describes_itself():
    trial = LoggedTrial([0, 2, 1, 0], [1.0, -2.0, 0.5, 0.0])
    assert (len(trial), trial.n_arms, trial.counts.tolist()) == (4, 3, [2, 1, 1])
    assert trial.means().tolist() == [0.5, 0.5, -2.0]
    assert trial.mean() == -0.125
    assert trial.arm_names == ["arm 0", "arm 1", "arm 2"]
    assert repr(trial) == "LoggedTrial(4 records, 3 arms, content a1280d03)"


def test_a_log_is_a_copy_that_nobody_can_change():
    arms, rewards = np.array([0, 1]), np.array([0.0, 1.0])
    trial = LoggedTrial(arms, rewards)
    arms[0], rewards[0] = 1, 5.0
    assert (trial.arms.tolist(), trial.rewards.tolist()) == ([0, 1], [0.0, 1.0])
    with pytest.raises(ValueError):
        trial.arms[0] = 1


def test_a_table_holds_the_records_of_every_arm_in_their_order():
    table = LoggedTrial([0, 1, 1, 0, 1, 0], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).reward_table()
    assert np.diff(table.state.prefix, axis=0) == pytest.approx(
        np.array([[0.1, 0.2], [0.4, 0.3], [0.6, 0.5]])
    )
    shorter = LoggedTrial([1, 0, 1, 2, 1, 2], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).reward_table()
    assert shorter.state.prefix.tolist() == [[0.0, 0.0, 0.0], [2.0, 1.0, 4.0]]


def test_contexts_are_one_vector_for_all_arms_or_one_for_each():
    alike = LoggedTrial([0, 1], [1.0, 0.0], [[3.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
    assert (alike.dimension, alike.context_bound, alike.contexts.shape) == (3, 5.0, (2, 2, 3))
    assert alike.contexts[0].tolist() == [[3.0, 4.0, 0.0]] * 2
    assert repr(alike) == "LoggedTrial(2 records, 2 arms, dimension 3, content 407a4fe2)"
    each = LoggedTrial([0, 1], [1.0, 0.0], [[[1.0], [2.0]], [[3.0], [4.0]]])
    assert (each.dimension, each.contexts[:, :, 0].tolist()) == (1, [[1.0, 2.0], [3.0, 4.0]])
    none = LoggedTrial([0, 1], [1.0, 0.0])
    assert (none.dimension, none.contexts) == (None, None)


@pytest.mark.parametrize("bad", [[1.0, 2.0], [[1.0]], [[[1.0]]] * 2, [[np.nan]] * 2, [["a"]], 3])
def test_bad_contexts_are_refused(bad):
    with pytest.raises(ArgumentError, match=r"^contexts must"):
        LoggedTrial([0, 1], [1.0, 0.0], bad)


@pytest.mark.parametrize(
    "bad",
    [[], [0.5, 1.0], [[0, 1]], [0, -1], ["a", 1], None, [0j, 1], [0, 0], [0, 10**12]],
    ids=repr,
)
def test_bad_arms_are_refused(bad):
    """The one with two records of arm 0 has no fault but its length."""
    with pytest.raises(ArgumentError, match=r"^arms "):
        LoggedTrial(bad, [1.0, 0.0, 1.0] if bad == [0, 0] else [1.0, 0.0])


@pytest.mark.parametrize("bad", [[1.0], [1.0, np.nan], [[1.0, 2.0]], ["a", "b"]], ids=repr)
def test_bad_rewards_are_refused(bad):
    with pytest.raises(ArgumentError, match="rewards"):
        LoggedTrial([0, 1], bad)


def test_a_missing_arm_is_refused():
    with pytest.raises(ArgumentError, match=r"every arm from 0 to 2, got counts \[2, 0, 1\]"):
        LoggedTrial([0, 2, 0], [1.0, 1.0, 1.0])


def test_shares_that_are_clearly_not_equal_are_refused():
    """55 to 45 of 2,000 is 4.5 standard deviations from even and may pass; 60 to 40 is 9."""
    LoggedTrial([0] * 1100 + [1] * 900, np.zeros(2000))
    with pytest.raises(ArgumentError, match="uniformly at random"):
        LoggedTrial([0] * 1200 + [1] * 800, np.zeros(2000))
