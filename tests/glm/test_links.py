"""Links: their values against scipy, their slopes against differences, and what is refused."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from scipy import special, stats

from dpbandits import ArgumentError
from dpbandits.glm import link_of, links, register_link

VALUES = {"identity": lambda t: t, "logistic": special.expit, "probit": special.ndtr}


@pytest.fixture(autouse=True)
def own_links():
    with patch.dict(links._LINKS):
        yield


@pytest.mark.parametrize("name", VALUES)
def test_means_are_those_of_scipy_and_slopes_their_derivatives(name: str):
    link = link_of(name)
    for t in [-6.0, -1.0, -0.1, 0.0, 0.3, 2.0, 7.5]:
        assert link.mean(t) == pytest.approx(VALUES[name](t), rel=1e-12)
        quotient = (VALUES[name](t + 1e-5) - VALUES[name](t - 1e-5)) / 2e-5
        assert link.slope(t) == pytest.approx(quotient, rel=1e-4)


def test_nothing_overflows_where_the_logistic_link_is_flat():
    link = link_of("logistic")
    assert [link.mean(t) for t in (-1e4, -700.0, 1e4)] == [0.0, 0.0, 1.0]
    assert link.slope(1e4) == link.slope(-1e4) == 0.0


@pytest.mark.parametrize("reach", [0.0, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("name", VALUES)
def test_conditioning_bounds_slopes_and_curvature(name: str, reach: float):
    made, points = link_of(name).conditioning(reach), np.linspace(-reach, reach, 777)
    slopes = {
        "identity": np.ones(777),
        "logistic": special.expit(points) * special.expit(-points),
        "probit": stats.norm.pdf(points),
    }[name]
    assert made.least_slope <= slopes.min() * (1 + 1e-12)
    assert made.largest_slope >= slopes.max()
    assert made.largest_slope == pytest.approx(slopes.max(), rel=1e-3)
    assert made.number == pytest.approx(slopes.max() / slopes.min(), rel=1e-3)
    curvature = np.abs(np.gradient(slopes, points)).max() if reach > 0 else 0.0
    assert made.curvature >= curvature * (1 - 1e-9) - 1e-9


@pytest.mark.parametrize("name", VALUES)
def test_links_are_refused_beyond_where_their_slopes_are_numbers(name: str):
    link = link_of(name)
    assert link.conditioning(link.farthest).least_slope > 0.0
    with pytest.raises(ArgumentError, match="reach must be at most"):
        link.conditioning(1.01 * link.farthest)
    with pytest.raises(ArgumentError, match=r"^reach must be"):
        link.conditioning(-1.0)


def test_unknown_links_are_refused():
    with pytest.raises(ArgumentError, match="link must be one of"):
        link_of("logit")


def tanh() -> dict:
    return {
        "mean": lambda t: math.tanh(t),
        "slope": lambda t: 1.0 - math.tanh(t) ** 2,
        "least_slope": 0.41,
        "largest_slope": 1.0,
    }


def test_a_registered_link_is_found_and_conditioned():
    register_link("own", **tanh())
    made = link_of("own").conditioning(1.0)
    assert made.least_slope <= 1 - math.tanh(1) ** 2 == pytest.approx(made.least_slope, rel=1e-2)
    assert 1.0 <= made.largest_slope < 1.01
    assert link_of("own").mean(0.3) == pytest.approx(math.tanh(0.3))
    with pytest.raises(ArgumentError, match="reach must be at most 1"):
        link_of("own").conditioning(1.1)


@pytest.mark.parametrize(
    ("name", "changes", "wrong"),
    [
        ("logistic", {}, "name"),
        ("not a name", {}, "name"),
        (3, {}, "name"),
        ("own", {"least_slope": 0.0}, "least_slope"),
        ("own", {"least_slope": 2.0}, "largest_slope"),
        ("own", {"least_slope": 0.5}, "slope"),
        ("own", {"largest_slope": 0.9}, "slope"),
        ("own", {"mean": lambda t: 1.2 * math.tanh(t)}, "slope|mean"),
        ("own", {"mean": lambda t: math.tanh(t) + 0.5}, "mean"),
        ("own", {"mean": lambda t: math.nan}, "mean"),
        ("own", {"slope": lambda t: 0.7}, "slope"),
    ],
)
def test_what_is_no_link_is_refused_by_name(name, changes: dict, wrong: str):
    with pytest.raises(ArgumentError, match=f"^({wrong}) must"):
        register_link(name, **{**tanh(), **changes})
    assert "own" not in links._LINKS
