"""Data whose truth is known."""

import numpy as np
from scipy import special


def logistic(n: int, d: int, length: float, seed: int = 1):
    """Features of length at most 1, outcomes 0 and 1, and the parameter."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, d))
    features /= np.maximum(1.0, np.linalg.norm(features, axis=1, keepdims=True))
    theta = length * np.eye(d)[0] if d < 2 else length * np.array([0.6, -0.8] + [0.0] * (d - 2))
    outcomes = (rng.random(n) < special.expit(features @ theta)).astype(float)
    return features, outcomes, theta
