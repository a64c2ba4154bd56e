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
    """How far the estimate is from the parameter, in units of the radius, and of what the radius
    would be without noise; the farthest of all rounds and models.
    """
    matrices, errors, radii, models = [], [], [], policy.n_models
    for _ in range(ROUNDS):
        x = np.abs(rng.standard_normal((5, 5)))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        decision = policy.pull(x)
        policy.update(float(rng.random() < x[decision] @ THETA), decision)
        public = public_of(policy)
        standing = getattr(public, "standing", None)
        v = public.precision.copy() if standing is None else np.linalg.inv(standing)
        matrices.append(v.reshape(models, 5, 5))
        errors.append(public.estimate.reshape(models, 5) - THETA)
        radii.append(public.facts[facts.radius].copy().reshape(models))
    distance = np.sqrt(np.einsum("tmi,tmij,tmj->tm", errors, matrices, errors))
    silent = 0.5 * np.sqrt(policy.params.log_odds + np.linalg.slogdet(matrices)[1]) + 1
    return (distance / radii).max(), (distance / silent).max()


@pytest.mark.parametrize(
    ("cls", "budget", "facts", "own"),
    [
        (PrivateLinUCB, ZCDP(0.5), linucb.FACTS, {}),
        (PrivateLinUCB, ZCDP(0.5), linucb.FACTS, {"models": "disjoint"}),
        pytest.param(PrivateLinUCB, PureDP(5.0), linucb.FACTS, {}, marks=pytest.mark.long),
        pytest.param(AdaCOFUL, ZCDP(0.5), oful.FACTS, {}, marks=pytest.mark.long),
        pytest.param(LinUCBJDP, ZCDP(0.5), model.FACTS, {}, marks=pytest.mark.long),
        pytest.param(
            LinUCBJDP, ZCDP(0.5), model.FACTS, {"models": "disjoint"}, marks=pytest.mark.long
        ),
        pytest.param(LinUCBLDP, ZCDP(0.5), model.FACTS, {}, marks=pytest.mark.long),
    ],
    ids=["linucb", "disjoint", "laplace", "oful", "joint", "joint-disjoint", "local"],
)
def test_the_safe_radius_covers_the_parameter_in_all_rounds(cls, budget, facts, own):
    """At most a share of 0.1 of the runs may ever miss theta; a radius without its noise misses in
    most of them.
    """
    rng = np.random.default_rng(4)
    options = {"horizon": ROUNDS, "failure_probability": FAILURE, **own}
    policies = [cls(5, 5, budget=budget, seed=seed, **options) for seed in range(RUNS)]
    missed, without_noise = np.transpose([distances(p, facts, rng) for p in policies]) > 1
    assert stats.binomtest(int(missed.sum()), RUNS, FAILURE, "greater").pvalue > 1e-4
    assert without_noise.sum() > RUNS / 2
