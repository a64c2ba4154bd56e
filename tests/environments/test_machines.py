"""One seed gives one result on every machine: the BLAS kernel, which a processor chooses, changes the
last digits of what linear algebra computes, and must change nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import dpbandits
from dpbandits.environments import (
    Advised,
    AnchoredContexts,
    Bernoulli,
    CovariateArms,
    GaussianContexts,
    GLMContexts,
    LinearArms,
    LoggedTrial,
    PoolContexts,
    Recommendations,
    ReturningUsers,
)
from dpbandits.environments.arrays import settled

SOURCE = Path(dpbandits.__path__[0]).parent

# Both solvers of principal components, fitted models, and classifiers, with a learner on each.
PROGRAM = """
import hashlib, json, sys
import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_info
import dpbandits as dpb
from dpbandits.environments import DoctorContexts, Recommendations, classification
from dpbandits.environments.datasets import features
from dpbandits.papers.adversarial import classifier_advice

rng = np.random.default_rng(1)
words = sparse.csr_array(rng.poisson(0.3 * rng.exponential(size=300), size=(2000, 300)))
raw = np.linalg.svd(words.toarray() - words.mean(axis=0), full_matrices=False)[0]
found = []
for features._DENSE in (10**9, 0):
    rows = features.principal_features(features.tfidf(words), 20)
    world = Recommendations(rows, rng.integers(0, 50, 400), rng.integers(0, 2000, 400))
    found.append((world, rows, dpb.algorithms.LinUCB(25, 20)))
world = classification("breast_cancer", components=5)
found.append((world, world.state.rows, dpb.algorithms.LinUCB(2, 12)))
world = DoctorContexts()
found.append((world, world.parameter, dpb.algorithms.LinUCB(4, 10, models="disjoint")))
world = classifier_advice("digits", 8)
found.append((world, world.state.advice, dpb.algorithms.EXP4(10, 8, budget=None, horizon=300)))
json.dump({
    "kernels": [blas.get("architecture") for blas in threadpool_info()],
    "raw": hashlib.sha256(raw.tobytes()).hexdigest(),
    "found": [
        [world.stream_key, repr(world), hashlib.sha256(rows.tobytes()).hexdigest(),
         dpb.simulate(policy, world, horizon=300, seed=3).runs["regret"].tolist()]
        for world, rows, policy in found
    ],
}, sys.stdout)
"""


def on(kernel: str) -> dict:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OPENBLAS_CORETYPE": kernel}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.long
def test_two_blas_kernels_make_the_same_environments_and_the_same_regret():
    if not any(blas["internal_api"] == "openblas" for blas in threadpool_info()):
        pytest.skip("NumPy has another BLAS than OpenBLAS, whose kernel cannot be chosen")
    one, other = on("Haswell"), on("Nehalem")
    if one["kernels"] == other["kernels"]:
        pytest.skip(f"OpenBLAS takes no other kernel here: {one['kernels']}")
    assert one["raw"] != other["raw"]  # or there would be nothing to settle
    assert one["found"] == other["found"]


def test_what_was_computed_is_not_part_of_a_stream_key():
    """Last digits of what a seed draws or a file gives must not decide the random numbers."""
    for make in (
        lambda: LinearArms.on_sphere(4, 3, seed=5),
        lambda: AnchoredContexts.random(4, 3, seed=5),
        lambda: GaussianContexts.on_sphere(4, 3, seed=5),
        lambda: GLMContexts.random(4, 3, seed=5),
        lambda: CovariateArms.random(4, 3, link="logistic", seed=5),
        lambda: PoolContexts.uniform(20, 3, per_round=4, seed=5),
        lambda: ReturningUsers(2, 3, users=10, seed=5),
        lambda: Advised.constant(Bernoulli([0.6, 0.4]), 5, horizon=50, seed=5),
    ):
        world = make()
        assert world.stream_key == make().stream_key
        assert "content" not in world.stream_key
        assert "seed=5" in world.stream_key


def test_what_was_given_is():
    features = np.random.default_rng(1).normal(size=(6, 2))
    one, other = (
        Recommendations(x, [0, 1], [0, 1], per_round=2) for x in (features, features + 1e-12)
    )
    assert one.stream_key != other.stream_key
    one.origin = other.origin = "somebody's features"
    assert one.stream_key == other.stream_key
    assert LoggedTrial([0, 1], [1, 0]).stream_key != LoggedTrial([0, 1], [1, 1]).stream_key


def test_settled_numbers_forget_rounding_errors_and_the_sign_of_zero():
    numbers = np.random.default_rng(2).uniform(-1.0, 1.0, 10_000)
    noisy = numbers + 1e-15 * np.random.default_rng(3).standard_normal(10_000)
    assert not np.array_equal(numbers, noisy)
    assert settled(numbers).tobytes() == settled(noisy).tobytes()
    assert settled(numbers) == pytest.approx(numbers, abs=5e-7)
    assert settled(np.array([-1e-17])).tobytes() == np.zeros(1).tobytes()
