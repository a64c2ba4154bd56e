"""Confidence radii of the linear policies cover the parameter in all rounds at once."""

import math

import numpy as np
import pytest
from scipy import stats
from sides import public_of

from dpbandits import ZCDP, AdaCOFUL, LinUCBJDP, LinUCBLDP, PrivateLinUCB, PureDP
from dpbandits.algorithms import linucb, oful
from dpbandits.algorithms.private_contexts import model

ROUNDS, RUNS, FAILURE = 120, 40, 0.1
THETA = np.full(5, 1 / math.sqrt(5))


def distances(policy, facts, rng):
    """How far the estimate is from the parameter, in units of what is claimed, and of what the
    radius would be without noise; the farthest of all rounds.
    """
    shares, silent = [], []
    for _ in range(ROUNDS):
        x = np.abs(rng.standard_normal((5, 5)))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        decision = policy.pull(x)
        policy.update(float(rng.random() < x[decision] @ THETA), decision)
        public = public_of(policy)
        standing = getattr(public, "standing", None)
        v = public.precision if standing is None else np.linalg.inv(standing)
        error = public.estimate - THETA
        distance = math.sqrt(error @ v @ error)
        radius = 0.5 * math.sqrt(policy.params.log_odds + np.linalg.slogdet(v)[1]) + 1
        silent.append(distance / radius)
        shares.append(distance / public.facts[facts.radius])
        if hasattr(facts, "bias"):  # a width for all features x: here V error and V V error
            radius, gap, bias = public.facts[[facts.radius, facts.gap, facts.bias]]
            shares[-1] = max(
                y
                @ v
                @ error
                / (radius * math.sqrt(y @ v @ y + gap * y @ y) + bias * math.sqrt(y @ y))
                for y in (error, v @ error)
            )
    return max(shares), max(silent)


@pytest.mark.parametrize(
    ("cls", "budget", "facts"),
    [
        (PrivateLinUCB, ZCDP(0.5), linucb.FACTS),
        pytest.param(PrivateLinUCB, PureDP(5.0), linucb.FACTS, marks=pytest.mark.long),
        pytest.param(AdaCOFUL, ZCDP(0.5), oful.FACTS, marks=pytest.mark.long),
        pytest.param(LinUCBJDP, ZCDP(0.5), model.FACTS, marks=pytest.mark.long),
        pytest.param(LinUCBLDP, ZCDP(0.5), model.FACTS, marks=pytest.mark.long),
    ],
    ids=["linucb", "laplace", "oful", "joint", "local"],
)
def test_the_safe_radius_covers_the_parameter_in_all_rounds(cls, budget, facts):
    """At most a share of 0.1 of the runs may ever miss theta; a radius without its noise misses in
    most of them.
    """
    rng, options = np.random.default_rng(4), {"horizon": ROUNDS, "failure_probability": FAILURE}
    policies = [cls(5, 5, budget=budget, seed=seed, **options) for seed in range(RUNS)]
    missed, without_noise = np.transpose([distances(p, facts, rng) for p in policies]) > 1
    assert stats.binomtest(int(missed.sum()), RUNS, FAILURE, "greater").pvalue > 1e-4
    assert without_noise.sum() > RUNS / 2
