"""Kills of a shuffler that listens; see ``shuffle_kills``."""

import pytest
from shuffle_kills import POINTS, History

pytestmark = pytest.mark.long


def test_kills_at_random_moments(tmp_path):
    history = History(tmp_path, seed=1)
    history.run(kills=20)
    assert history.check() > 20


def test_kills_around_all_that_is_stored_or_sent(tmp_path):
    history = History(tmp_path, seed=2)
    history.run(kills=0, points=POINTS)
    history.check()
