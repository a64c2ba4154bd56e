"""Bernoulli divergences and the bounds that they give."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from dpbandits.algorithms.maths.bernoulli import bernoulli_kl, kl_upper_bound


def divergence(p, q):
    return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


@pytest.mark.parametrize("p", [0.0, 1e-12, 0.1, 0.5, 0.9, 1 - 1e-12])
@pytest.mark.parametrize("level", [1e-12, 1e-6, 1e-3, 0.1, 1.0, 10.0, 30.0])
def test_upper_bound_solves_the_equation_from_above(p, level):
    q = kl_upper_bound(p, level)
    top = 1 - 1e-16
    expected = (
        brentq(lambda q: divergence(p, q) - level, p, top, xtol=1e-15)
        if divergence(p, top) > level
        else top
    )
    assert q == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert p <= q <= 1.0


def test_upper_bound_at_the_ends():
    assert kl_upper_bound(1.0, 0.5) == 1.0
    assert kl_upper_bound(0.3, 0.0) == 0.3
    assert kl_upper_bound(0.0, 2.0) == pytest.approx(1 - math.exp(-2.0), rel=1e-12)


def test_divergence_at_the_ends():
    assert bernoulli_kl(0.0, 0.0) == bernoulli_kl(1.0, 1.0) == 0.0
    assert bernoulli_kl(0.5, 0.0) == bernoulli_kl(0.5, 1.0) == np.inf
    assert bernoulli_kl(0.2, 0.7) == pytest.approx(divergence(0.2, 0.7), rel=1e-14)
