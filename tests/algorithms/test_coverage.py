"""Confidence radii of the linear policies cover the parameter in all rounds at once."""

import math

import numpy as np
import pytest
from scipy import stats
from sides import public_of

from dpbandits import ZCDP, ApproxDP, PureDP
from dpbandits.algorithms import AdaCOFUL, LinUCBJDP, LinUCBLDP, PrivateLinUCB
from dpbandits.algorithms.hidden import model
from dpbandits.algorithms.linear import every_answer, switching
from dpbandits.papers.shuffle import WishartLinUCBJDP

ROUNDS, RUNS, FAILURE = 120, 40, 0.1
THETA = np.full(5, 1 / math.sqrt(5))


def distances(policy, facts, rng):
    """How far the estimate is from the parameter, in units of what is claimed, and of what the
    radius would be without noise; the farthest of all rounds and models.
    """
    shares, silent, models = [], [], policy.n_models
    for _ in range(ROUNDS):
        x = np.abs(rng.standard_normal((5, 5)))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        decision = policy.pull(x)
        policy.update(float(rng.random() < x[decision] @ THETA), decision)
        public = public_of(policy)
        standing = getattr(public, "standing", None)
        v = public.precision if standing is None else np.linalg.inv(standing)
        v, facts_of = v.reshape(models, 5, 5), public.facts.reshape(len(public.facts), -1)
        for m, error in enumerate(public.estimate.reshape(models, 5) - THETA):
            distance = math.sqrt(error @ v[m] @ error)
            radius = 0.5 * math.sqrt(policy.params.log_odds + np.linalg.slogdet(v[m])[1]) + 1
            silent.append(distance / radius)
            shares.append(distance / facts_of[facts.radius, m])
            if hasattr(facts, "bias"):  # a width for all features x: here V error and V V error
                radius, gap, bias = facts_of[[facts.radius, facts.gap, facts.bias], m]
                shares[-1] = max(
                    y
                    @ v[m]
                    @ error
                    / (radius * math.sqrt(y @ v[m] @ y + gap * y @ y) + bias * math.sqrt(y @ y))
                    for y in (error, v[m] @ error)
                )
    return max(shares), max(silent)


@pytest.mark.long
@pytest.mark.parametrize(
    ("cls", "budget", "facts", "own"),
    [
        (PrivateLinUCB, ZCDP(0.5), every_answer.FACTS, {}),
        (PrivateLinUCB, ZCDP(0.5), every_answer.FACTS, {"models": "disjoint"}),
        pytest.param(PrivateLinUCB, PureDP(5.0), every_answer.FACTS, {}, marks=pytest.mark.long),
        pytest.param(AdaCOFUL, ZCDP(0.5), switching.FACTS, {}, marks=pytest.mark.long),
        pytest.param(LinUCBJDP, ZCDP(0.5), model.FACTS, {}, marks=pytest.mark.long),
        pytest.param(
            LinUCBJDP, ZCDP(0.5), model.FACTS, {"models": "disjoint"}, marks=pytest.mark.long
        ),
        pytest.param(
            LinUCBJDP, ZCDP(0.05), model.FACTS, {"repair": "clip"}, marks=pytest.mark.long
        ),
        pytest.param(LinUCBLDP, ZCDP(0.5), model.FACTS, {}, marks=pytest.mark.long),
        pytest.param(WishartLinUCBJDP, ApproxDP(2.0, 0.1), model.FACTS, {}, marks=pytest.mark.long),
    ],
    ids=[
        "linucb",
        "disjoint",
        "laplace",
        "oful",
        "joint",
        "joint-disjoint",
        "joint-clip",
        "local",
        "wishart",
    ],
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
