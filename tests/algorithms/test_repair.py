"""Noisy matrices with private features: how they become positive definite, and when an estimate is
kept.
"""

from __future__ import annotations

import numpy as np
import pytest
from sides import public_of

from dpbandits import ZCDP, ApproxDP, ArgumentError
from dpbandits.algorithms import AdaCOFULJDP, LinearThompsonJDP, LinUCBJDP
from dpbandits.algorithms.hidden.kernels import publish
from dpbandits.algorithms.hidden.model import FACTS, init

D, ROOT = 3, np.sqrt(2.0)
RIDGE = 0.5


def made(cls=LinUCBJDP, **options):
    defaults = {"budget": ZCDP(0.5), "horizon": 400, "ridge": RIDGE, "seed": 1}
    return cls(2, D, **(defaults | options))


def released(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """The numbers of x r and x x^T in the order of a release."""
    upper = ROOT * matrix[np.triu_indices(D, 1)]
    return np.concatenate([vector, np.diag(matrix), upper])


def symmetric(rng: np.random.Generator, size: float) -> np.ndarray:
    z = size * rng.normal(size=(D, D))
    return (z + z.T) / 2


def after(policy, *releases: np.ndarray):
    public = init(policy.params)[1]
    for release in releases:
        publish(policy.params, public, np.zeros(0), release)
    return public


@pytest.mark.parametrize("size", [1.0, 30.0])
def test_clipping_lifts_small_eigenvalues_alone(size: float):
    policy, rng = made(repair="clip"), np.random.default_rng(3)
    wanted = 0.5 * policy.params.matrix_norm
    for _ in range(20):
        noisy, vector = symmetric(rng, size * wanted), rng.normal(size=D)
        public = after(policy, released(noisy, vector))
        values, vectors = np.linalg.eigh(noisy + RIDGE * np.eye(D))
        v = vectors * np.maximum(values, wanted) @ vectors.T
        assert public.precision[0] == pytest.approx(v, rel=1e-9, abs=1e-9 * size * wanted)
        assert public.inverse[0] @ v == pytest.approx(np.eye(D), abs=1e-9)
        assert public.estimate == pytest.approx(np.linalg.solve(v, vector), rel=1e-6)
        lifted = max(wanted - values[0], 0.0)
        added, gap = public.facts[[FACTS.added, FACTS.gap], 0]
        assert added == pytest.approx(RIDGE + lifted, rel=1e-9)
        # No multiple of the identity was added but lambda, so that none makes up for the noise.
        assert gap == policy.params.base + policy.params.matrix_norm - RIDGE


def test_a_matrix_that_needs_nothing_is_the_same_both_ways():
    rng = np.random.default_rng(4)
    release = released(symmetric(rng, 1.0) + 1e4 * np.eye(D), rng.normal(size=D))
    shifted, clipped = (after(made(repair=how), release) for how in ("shift", "clip"))
    for one, other in zip(shifted, clipped, strict=True):
        assert one == pytest.approx(other, rel=1e-12)


def test_an_estimate_is_kept_until_some_direction_has_gained_enough():
    """Against generalised eigenvalues of V' and V; determinants would decide otherwise."""
    s, rng, gram = 0.5, np.random.default_rng(5), 1000.0 * np.eye(D)
    policy = made(switch=s)
    public, kept, by_volume = init(policy.params)[1], [], []
    for _ in range(150):
        x = rng.normal(size=(20, D)) * [1.0, 1.0, 0.1]
        gram, vector = gram + x.T @ x, rng.normal(size=D)
        release = released(gram + symmetric(rng, 150.0), vector)
        old, added = public.precision[0].copy(), public.facts[FACTS.added, 0]
        publish(policy.params, public, np.zeros(0), release)
        new = after(made(), release)  # with an estimate of its own at every release
        gains = np.linalg.eigvals(np.linalg.solve(old, noisy_of(release) + added * np.eye(D))).real
        kept.append(bool((public.precision[0] == old).all()))
        assert kept[-1] == (gains.max() < 1 + s)
        by_volume.append(gains.prod() < 1 + s)
        if not kept[-1]:
            for name in ("precision", "inverse", "estimate"):
                assert getattr(public, name) == pytest.approx(getattr(new, name), rel=1e-12)
        else:
            assert public.inverse[0] @ old == pytest.approx(np.eye(D), abs=1e-6)
    assert 2 < kept.count(False) < 50
    assert kept != by_volume


def noisy_of(release: np.ndarray) -> np.ndarray:
    matrix = np.diag(release[D : 2 * D])
    upper = np.triu_indices(D, 1)
    matrix[upper] = release[2 * D :] / ROOT
    return matrix + np.triu(matrix, 1).T


@pytest.mark.parametrize("cls", [LinUCBJDP, AdaCOFULJDP, LinearThompsonJDP])
def test_devices_need_a_new_chooser_more_rarely(cls):
    own = {} if cls is AdaCOFULJDP else {"batch": 5}
    policy = made(cls, switch=0.2, budget=ZCDP(500.0), **own)
    rng, seen = np.random.default_rng(6), set()
    for _ in range(300):
        x = np.abs(rng.normal(size=(2, D)))
        policy.pull(x / np.linalg.norm(x, axis=1, keepdims=True))
        policy.update(0.5)
        seen.add(public_of(policy).estimate.tobytes())
    assert 3 < len(seen) < policy.ledger.releases


def test_lifted_eigenvalues_make_no_estimate_change():
    """The same release twice, with a lift far above what was learned: nothing has grown."""
    policy, rng = made(repair="clip", switch=0.5), np.random.default_rng(8)
    wanted = 0.5 * policy.params.matrix_norm
    noisy = np.diag([-50.0 * wanted, 2.0 * wanted, 3.0 * wanted])
    public = after(policy, released(noisy, np.ones(D)))
    first = public.estimate.copy()
    publish(policy.params, public, np.zeros(0), released(1.2 * noisy, rng.normal(size=D)))
    assert (public.estimate == first).all()
    publish(policy.params, public, np.zeros(0), released(2.0 * np.abs(noisy), np.ones(D)))
    assert (public.estimate != first).any()


def test_published_bounds_know_of_neither():
    options = {"budget": ApproxDP(1.0, 1e-3), "calibration": "paper"}
    for name, value in (("repair", "clip"), ("switch", 0.5)):
        with pytest.raises(ArgumentError, match=f"^{name} must be"):
            made(**options, **{name: value})
