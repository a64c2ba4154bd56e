"""Normal numbers by the hundred: their law down to the tail, their independence, and that plain
Python draws the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import dpbandits
from dpbandits.environments.simulated.normals import _EDGES, _TAIL, fill_normal
from dpbandits.kernel import entry

ALPHA = 1e-4


@entry
def _fill(view, rng, mean, std):
    fill_normal(view, mean, std, rng)


def drawn(shape, seed, mean=0.0, std=1.0):
    view = np.full(shape, np.nan)
    _fill(view, np.random.default_rng(seed), mean, std)
    return view


def test_the_law_is_normal():
    """A million numbers see a distribution function that is off by 0.0023: a layer of 1/256 that is
    missing, or one per cent of width.
    """
    sample = drawn((1000, 1000), 1, mean=2.0, std=3.0).ravel()
    assert stats.kstest(sample, stats.norm(2.0, 3.0).cdf).pvalue > ALPHA
    assert stats.kstest(1.01 * (sample - 2.0) + 2.0, stats.norm(2.0, 3.0).cdf).pvalue < ALPHA


@pytest.mark.long
def test_every_layer_has_its_share_and_the_tail_its_law():
    """20 million: the tail beyond 3.65 has some 5,200 of them, whose share is seen to within 6 %,
    and its law to within 0.03.
    """
    sample = drawn((4000, 5000), 2).ravel()
    edges = np.unique(np.concatenate([_EDGES[1:], -_EDGES[1:], [-np.inf, np.inf]]))
    counts = np.bincount(np.searchsorted(edges, sample) - 1, minlength=edges.size - 1)
    assert stats.chisquare(counts, np.diff(stats.norm.cdf(edges)) * sample.size).pvalue > ALPHA
    tail = sample[sample > _TAIL]
    assert stats.kstest(tail, stats.truncnorm(_TAIL, np.inf).cdf).pvalue > ALPHA
    assert stats.kstest(tail, (stats.expon(_TAIL, 1.0 / _TAIL)).cdf).pvalue < ALPHA


def test_numbers_are_independent_within_a_matrix_and_from_one_to_the_next():
    """Of a million pairs, a correlation of 0.004 is seen; of their squares, too."""
    rng, many = np.random.default_rng(3), np.empty((40_000, 5, 5))
    for view in many:
        _fill(view, rng, 0.0, 1.0)
    flat = many.reshape(len(many), 25)
    pairs = [(flat[:, :-lag].ravel(), flat[:, lag:].ravel()) for lag in (1, 2, 5)] + [
        (flat[:-1].ravel(), flat[1:].ravel())
    ]
    for one, other in pairs:
        assert stats.pearsonr(one, other).pvalue > ALPHA
        assert stats.pearsonr(one**2, other**2).pvalue > ALPHA


PLAIN = """
import numpy as np
from dpbandits.environments.simulated.normals import fill_normal

view = np.empty((40, 50))
with np.errstate(over="ignore"):  # 64 bits wrap around
    fill_normal(view, 1.0, 2.0, np.random.default_rng(4))
print(view.tolist())
"""


@pytest.mark.long
def test_plain_python_draws_the_same_numbers():
    package = str(Path(dpbandits.__file__).parents[1])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": package}
    told = subprocess.run(
        [sys.executable, "-c", PLAIN], env=environment, check=True, capture_output=True, text=True
    ).stdout
    assert np.allclose(json.loads(told), drawn((40, 50), 4, 1.0, 2.0), rtol=1e-14)


def test_a_matrix_takes_five_draws_whatever_its_size():
    after = []
    for shape in ((1, 1), (30, 30), (0, 3)):
        rng = np.random.default_rng(5)
        _fill(np.empty(shape), rng, 0.0, 1.0)
        after.append(rng.random())
    expected = np.random.default_rng(5).random(6)[-1]
    assert after == [expected] * 3
