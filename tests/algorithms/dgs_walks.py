"""LinUCB-DGS as Wang, Zhao & Wang (2022) write it, in plain NumPy."""

import math

import numpy as np


def blocks(t, hybrid):
    """The dyadic blocks (first, last, factor of the scale) that make up 1..t."""
    found, start = [], 0
    if hybrid:
        power = 1
        while power <= t:
            found.append((power // 2 + 1 if power > 1 else 1, power, 2.0))
            start, power = power, 2 * power
        depth = t.bit_length() - 1
    while start < t:
        size = 1 << ((t - start).bit_length() - 1)
        found.append((start + 1, start + size, 2.0 * max(1, depth) if hybrid else None))
        start += size
    return found


def walk(contexts, rewards, *, epsilon, draw, delta, horizon, radius, ridge=1.0):
    """Algorithms 1 and 2, with the noise of each block drawn when it ends; arms and released
    estimates.
    """
    rounds, _, d = contexts.shape
    a, b, theta, arms, noise, estimates = ridge * np.eye(d), np.zeros(d), np.zeros(d), [], {}, []
    for t in range(1, rounds + 1):
        inverse = np.linalg.inv(a)
        width = np.sqrt(np.einsum("ki,ij,kj->k", contexts[t - 1], inverse, contexts[t - 1]))
        arm = int(np.argmax(contexts[t - 1] @ theta + radius(t) * width))
        x = contexts[t - 1, arm]
        a, b = a + np.outer(x, x), b + x * rewards[t - 1, arm]
        theta = np.linalg.solve(a, b)
        for first, last, factor in blocks(t, horizon is None):
            if (first, last) not in noise:
                assert last == t
                levels = factor if horizon is None else np.log2(horizon)
                noise[first, last] = delta(t, a) * levels / epsilon * draw(d)
            theta = theta + noise[first, last]
        arms.append(arm)
        estimates.append(theta)
    return arms, np.array(estimates)


def eq_4(t, *, horizon, epsilon, d, zeta, ridge=1.0, bound=1.0, size=1.0, scatter=1.0):
    noise = (
        size
        * bound
        / epsilon
        * math.log(horizon or t)
        * math.sqrt(math.log(t))
        * math.log(1 / zeta)
        / math.sqrt(t)
    )
    return (
        noise
        + scatter * math.sqrt(d * math.log((1 + t * bound**2 * ridge) / zeta))
        + math.sqrt(ridge)
    )
