"""Channels of vectors and symmetric matrices: ranges, sizes of noise, and what they keep."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import gaussian_mechanism as peer
from scipy import stats

from dpbandits import ZCDP, ApproxDP, ArgumentError
from dpbandits.privacy import SymmetricChannel, VectorChannel

BUDGET = ApproxDP(0.7, 1e-5)


@pytest.mark.parametrize("bound", [0.5, 1.0, 3.0])
def test_noise_is_that_of_twice_the_bound(bound: float):
    exact = VectorChannel(BUDGET, bound, noise="simulation")
    expected = 2 * bound * peer.get_sigma_gaussian(0.7, 1e-5)
    assert exact.std == pytest.approx(expected, rel=1e-6)
    assert exact.holds == BUDGET
    paper = VectorChannel(BUDGET, bound, calibration="paper", noise="simulation")
    assert paper.std == pytest.approx(2 * bound * 2 * math.sqrt(math.log(1.25e5)) / 0.7)
    assert paper.holds.epsilon == 0.7
    real = peer.get_epsilon_gaussian(paper.std / (2 * bound), paper.holds.delta)
    assert real == pytest.approx(0.7, rel=1e-4)


def test_copies_have_the_law_that_is_claimed():
    channel, vector = VectorChannel(ZCDP(0.5), noise="simulation", seed=3), np.array([0.6, -0.8])
    copies = np.array([channel(vector) for _ in range(20_000)])
    for i in range(2):
        law = stats.norm(vector[i], 2.0)
        assert stats.kstest(copies[:, i], law.cdf).pvalue > 1e-4
        assert stats.kstest(copies[:, i], stats.norm(vector[i], 1.8).cdf).pvalue < 1e-4


def test_what_is_too_long_is_scaled_and_what_is_no_number_counts_as_nothing():
    quiet = {"noise": "simulation", "seed": 1}
    one, other = VectorChannel(BUDGET, **quiet), VectorChannel(BUDGET, **quiet)
    assert one(np.array([30.0, 40.0])) == pytest.approx(other(np.array([0.6, 0.8])))
    one, other = VectorChannel(BUDGET, **quiet), VectorChannel(BUDGET, **quiet)
    odd = np.array([math.nan, math.inf, 0.5])
    assert np.array_equal(one(odd), other(np.array([0.0, 0.0, 0.5])))
    one, other = SymmetricChannel(BUDGET, **quiet), SymmetricChannel(BUDGET, **quiet)
    assert one(5 * np.eye(2)) == pytest.approx(other(np.eye(2) / math.sqrt(2)))


@pytest.mark.parametrize("calibration", ["exact", "paper"])
def test_matrices_have_noise_of_their_ensemble(calibration: str):
    channel = SymmetricChannel(BUDGET, calibration=calibration, noise="simulation", seed=2)
    copies = np.array([channel(np.zeros((2, 2))) for _ in range(4000)])
    assert np.array_equal(copies, copies.transpose(0, 2, 1))
    off = channel.std * (1.0 if calibration == "paper" else math.sqrt(0.5))
    for i, j, std in ((0, 0, channel.std), (0, 1, off)):
        assert stats.kstest(copies[:, i, j], stats.norm(0, std).cdf).pvalue > 1e-4


def test_two_matrices_are_apart_by_no_more_than_the_noise_is_for():
    """-D and D on the diagonal attain it, in both forms."""
    quiet = {"noise": "simulation", "seed": 1}
    for calibration in ("exact", "paper"):
        made = [SymmetricChannel(BUDGET, calibration=calibration, **quiet) for _ in range(2)]
        far = [
            channel(sign * np.diag([1.0, 0.0])) for channel, sign in zip(made, (1, -1), strict=True)
        ]
        assert np.linalg.norm(far[0] - far[1]) == pytest.approx(2.0)


def test_secure_copies_are_on_the_grid():
    channel = VectorChannel(BUDGET, grid=2.0**-10)
    copy = channel(np.array([0.1234567, 0.5]))
    assert np.array_equal(copy, np.rint(copy * 1024) / 1024)
    assert channel.holds == BUDGET


@pytest.mark.parametrize("entry", ["a", 1j, None, {}, np.inf, np.timedelta64(1, "s")])
def test_an_entry_of_any_kind_counts_as_zero_also_where_it_is_alone(entry):
    def copies(one: object) -> list[list[float]]:
        options = {"noise": "simulation", "seed": 1}
        channel, matrices = VectorChannel(BUDGET, **options), SymmetricChannel(BUDGET, **options)
        made = channel([one]), channel([0.3, one]), matrices([[0.3, one], [0.1, 0.2]])
        return [copy.tolist() for copy in made]

    assert copies(entry) == copies(np.nan)


def test_bad_input_is_named():
    channel = VectorChannel(BUDGET, noise="simulation")
    for wrong in (np.eye(2), [], "a", None, {}):
        with pytest.raises(ArgumentError, match="vector"):
            channel(wrong)
    matrices = SymmetricChannel(BUDGET, noise="simulation")
    for wrong in (np.ones(3), np.ones((2, 3))):
        with pytest.raises(ArgumentError, match="matrix"):
            matrices(wrong)
    for name, value in {"bound": 0.0, "calibration": "none", "noise": "loud"}.items():
        with pytest.raises(ArgumentError, match=name):
            VectorChannel(BUDGET, **{"noise": "simulation", name: value})
