"""Plain walks of linear bandits through a fixed table, and dense noise of running sums: NumPy
alone, nothing of the package.

Rewards are 0 or 1, features no longer than 1, lambda = 1, |theta| <= 1, rewards 1/2-subgaussian,
and delta = 0.001.  ``models`` is 1, or the number of arms where each has a model of its own; they
share delta equally.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

DELTA = 0.001


class Problem(NamedTuple):
    contexts: np.ndarray  # (T, K, d)
    rewards: np.ndarray  # (T, K)
    means: np.ndarray  # (T, K)

    def regret(self, arms: np.ndarray) -> float:
        return float((self.means.max(axis=1) - self.means[np.arange(len(arms)), arms]).sum())


def problem(horizon: int, n_arms: int = 3, dimension: int = 2, seed: int = 5) -> Problem:
    """Features in the unit ball, and a parameter that makes means lie in [0, 1]."""
    rng = np.random.default_rng(seed)
    x = np.abs(rng.standard_normal((horizon, n_arms, dimension)))
    x *= rng.uniform(0.3, 0.95, (horizon, n_arms, 1)) / np.linalg.norm(x, axis=2, keepdims=True)
    theta = np.arange(dimension, 0, -1) / np.linalg.norm(np.arange(dimension, 0, -1))
    return Problem(x, (rng.random((horizon, n_arms)) < x @ theta).astype(float), x @ theta)


# Noise ---------------------------------------------------------------------------------------


class Noise(NamedTuple):
    values: np.ndarray  # (n, models d) on the running sums
    norm: float  # what the norms of all of them stay below with probability 1 - DELTA / 2
    std: float  # the largest of a coordinate


def toeplitz(n: int) -> np.ndarray:
    """The square root of the matrix that sums."""
    first = np.cumprod([1.0] + [1 - 1 / (2 * k) for k in range(1, n)])
    return np.array([[first[t - s] if s <= t else 0.0 for s in range(n)] for t in range(n)])


def tree(n: int) -> np.ndarray:
    """Which nodes of a binary tree, named by the release that they end at, add up to a running sum."""
    b = np.zeros((n, n))
    for t in range(1, n + 1):
        end = t
        while end:
            b[t - 1, end - 1] = 1.0
            end -= end & -end
    return b


def gaussian_noise(
    n: int,
    d: int,
    rho: float,
    rng: np.random.Generator,
    decoder: np.ndarray,
    column: float,
    models: int = 1,
) -> Noise:
    std = column / math.sqrt(2 * rho)
    widest = std * math.sqrt((decoder**2).sum(axis=1).max())
    norm = widest * (math.sqrt(d) + math.sqrt(2 * math.log(models * n / (DELTA / 2))))
    return Noise(decoder @ (std * rng.standard_normal((n, models * d))), norm, widest)


def toeplitz_noise(n: int, d: int, rho: float, rng: np.random.Generator, models: int = 1) -> Noise:
    b = toeplitz(n)
    return gaussian_noise(n, d, rho, rng, b, math.sqrt((b[:, 0] ** 2).sum()), models)


def independent_noise(n: int, d: int, rho: float, rng: np.random.Generator) -> Noise:
    return gaussian_noise(n, d, rho, rng, np.tril(np.ones((n, n))), 1.0)


def laplace_tree_noise(
    n: int, d: int, epsilon: float, rng: np.random.Generator, models: int = 1
) -> Noise:
    """A record is in as many nodes as n has binary digits, and moves a sum by sqrt(d) in the L1
    norm.
    """
    b, scale = tree(n), n.bit_length() * math.sqrt(d) / epsilon
    most = b.sum(axis=1).max()  # nodes in one sum
    odds = math.log(2 * d * models * n / (DELTA / 2))
    h = min(math.sqrt(odds / (2 * math.log(2) * most)), math.sqrt(0.5))
    norm = math.sqrt(d) * scale * (odds + 2 * math.log(2) * most * h * h) / h
    values = b @ (scale * rng.laplace(size=(n, models * d)))
    return Noise(values, norm, scale * math.sqrt(2 * most))


def silence(n: int, d: int) -> Noise:
    return Noise(np.zeros((n, d)), 0.0, 0.0)


# Walks ---------------------------------------------------------------------------------------


def linucb(world: Problem, noise: Noise, failure: float, models: int = 1) -> np.ndarray:
    """Optimism in every round; the least eigenvalue is looked at after 16 rounds and then ever more
    rarely.
    """
    k, d = world.contexts.shape[1:]
    v, total = np.tile(np.eye(d), (models, 1, 1)), np.zeros((models, d))
    least, look, rounds, arms = np.ones(models), np.full(models, 16), np.zeros(models), []
    estimate, own = total.copy(), np.arange(k) % models  # the model of every arm
    for t, x in enumerate(world.contexts):
        widths = np.sqrt(np.einsum("ki,kij,kj->k", x, np.linalg.inv(v)[own], x))
        odds = 2 * math.log(1 / (failure / models))
        radius = 0.5 * np.sqrt(odds + np.linalg.slogdet(v)[1]) + 1 + noise.norm / np.sqrt(least)
        arm = int(np.argmax((x * estimate[own]).sum(axis=1) + radius[own] * widths))
        arms.append(arm)
        m = own[arm]
        v[m] += np.outer(x[arm], x[arm])
        total[m] += x[arm] * world.rewards[t, arm]
        estimate = solved(v, total + noise.values[t].reshape(models, d))
        rounds[m] += 1
        if rounds[m] >= look[m]:
            least[m], look[m] = np.linalg.eigvalsh(v[m])[0], rounds[m] + max(16, rounds[m] // 8)
    return np.array(arms)


def solved(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.linalg.solve(matrices, vectors[..., np.newaxis])[..., 0]


def thompson(world: Problem, noise: Noise, rng: np.random.Generator, models: int = 1) -> np.ndarray:
    """The best arm for a draw from N(estimate, V^-1 / 4 + std^2 V^-2)."""
    k, d = world.contexts.shape[1:]
    v, total, arms = np.tile(np.eye(d), (models, 1, 1)), np.zeros((models, d)), []
    estimate, own = total.copy(), np.arange(k) % models
    for t, x in enumerate(world.contexts):
        sampling, spread = np.moveaxis(rng.standard_normal((models, d, 2)), 2, 0)
        root = np.linalg.cholesky(v).transpose(0, 2, 1)
        draw = estimate + solved(root, 0.5 * sampling) + solved(v, noise.std * spread)
        arm = int(np.argmax((x * draw[own]).sum(axis=1)))
        arms.append(arm)
        v[own[arm]] += np.outer(x[arm], x[arm])
        total[own[arm]] += x[arm] * world.rewards[t, arm]
        estimate = solved(v, total + noise.values[t].reshape(models, d))
    return np.array(arms)


class JointNoise(NamedTuple):
    """Noise on running sums of [x r ; x x^T], and bounds on both parts that hold with probability 1
    - 2 DELTA / 3 in all models.
    """

    vectors: np.ndarray  # (n, models, d)
    matrices: np.ndarray  # (n, models, d, d) symmetric: std on the diagonal, std / sqrt(2) off it
    vector_norm: float
    matrix_norm: float
    std: float  # the largest of a coordinate
    adds_up: bool = False  # bounds and std are those of the first release, and grow with the root


def symmetric_noise(
    n: int, d: int, rho: float, rng: np.random.Generator, decoder: np.ndarray, models: int
) -> JointNoise:
    """For features no longer than 1 and rewards in [0, 1]: a record moves both by sqrt(4.5)."""
    std = math.sqrt(4.5 / (2 * rho)) * math.sqrt((decoder[:, 0] ** 2).sum())
    widest = std * math.sqrt((decoder**2).sum(axis=1).max())
    z = std * rng.standard_normal((n, models, d, d))
    return JointNoise(
        np.einsum("ts,smi->tmi", decoder, std * rng.standard_normal((n, models, d))),
        np.einsum("ts,smij->tmij", decoder, (z + z.transpose(0, 1, 3, 2)) / 2),
        widest * (math.sqrt(d) + math.sqrt(2 * math.log(models * n / (DELTA / 3)))),
        widest * (math.sqrt(2 * d) + math.sqrt(2 * math.log(2 * models * n / (DELTA / 3)))),
        widest,
    )


def joint_noise(
    n: int, d: int, rho: float, rng: np.random.Generator, models: int = 1
) -> JointNoise:
    return symmetric_noise(n, d, rho, rng, toeplitz(n), models)


def independent_joint_noise(
    n: int, d: int, rho: float, rng: np.random.Generator, models: int = 1
) -> JointNoise:
    """The same, where every increment has noise of its own."""
    one = symmetric_noise(n, d, rho, rng, np.eye(n), models)
    return one._replace(
        vectors=one.vectors.cumsum(axis=0), matrices=one.matrices.cumsum(axis=0), adds_up=True
    )


def joint_silence(n: int, d: int, models: int = 1) -> JointNoise:
    return JointNoise(np.zeros((n, models, d)), np.zeros((n, models, d, d)), 0.0, 0.0, 0.0)


def growing(horizon: int, growth: float) -> list[int]:
    """Rounds after which a release is made, each number 1 + growth times the last."""
    rounds, found = 1, []
    while rounds <= horizon:
        found.append(rounds)
        rounds = max(rounds + 1, math.ceil(rounds * (1.0 + growth)))
    return found


def joint(
    world: Problem,
    noise: JointNoise,
    schedule: list[int],
    failure: float,
    sampling: np.random.Generator | None = None,
) -> np.ndarray:
    """Optimism, or with a generator the best arm for a draw, on noisy sums as of the last release."""
    (k, d), models = world.contexts.shape[1:], noise.vectors.shape[1]
    gram, total, arms, made = np.zeros((models, d, d)), np.zeros((models, d)), [], 0
    failure, own = failure / models, np.arange(k) % models
    if noise.adds_up:  # the bound grows, and each size of it takes a share of the failures
        failure /= len(schedule)
    noisy, grown = gram, 1.0
    for t, x in enumerate(world.contexts):
        if t == 0 or (made and t == schedule[made - 1]):  # something was released
            matrix_norm, vector_norm = grown * noise.matrix_norm, grown * noise.vector_norm
            shift = np.array([shift_of(one, matrix_norm) for one in noisy])
            v = noisy + shift[:, np.newaxis, np.newaxis] * np.eye(d)
            inverse, root = np.linalg.inv(v), np.linalg.cholesky(v)
            estimate = solved(v, total + noise.vectors[made - 1]) if made else 0.0 * total
            eigenvalue, base = 1 / np.linalg.norm(inverse, axis=(1, 2)), 1 + matrix_norm
            gap = np.maximum(base + matrix_norm - shift, 0) / eigenvalue
            log_det = np.linalg.slogdet(v)[1] + d * np.log((1 + gap) / base)
            odds = 2 * math.log(1 / failure) + np.maximum(log_det, 0)
            # The vector and the matrix times theta: together sqrt(2) times the noise of one.
            bias = (math.sqrt(2) * vector_norm + shift) / np.sqrt(eigenvalue)
            radius = 0.5 * np.sqrt((1 + gap) * odds) + bias
        if sampling is None:
            widths = np.sqrt(np.einsum("ki,kij,kj->k", x, inverse[own], x))
            index = (x * estimate[own]).sum(axis=1) + radius[own] * widths
        else:
            scatter, spread = np.moveaxis(sampling.standard_normal((models, d, 2)), 2, 0)
            draw = estimate + solved(root.transpose(0, 2, 1), 0.5 * scatter)
            draw = draw + solved(v, noise.std * math.sqrt(2) * spread)
            index = (x * draw[own]).sum(axis=1)
        arm = int(np.argmax(index))
        arms.append(arm)
        gram[own[arm]] += np.outer(x[arm], x[arm])
        total[own[arm]] += x[arm] * world.rewards[t, arm]
        if made < len(schedule) and t + 1 == schedule[made]:
            noisy = gram + noise.matrices[made]
            made += 1
            grown = math.sqrt(made) if noise.adds_up else 1.0
    return np.array(arms)


def shift_of(noisy: np.ndarray, norm: float) -> float:
    """Lambda where that leaves no eigenvalue below the bound on the noise, else found by bisection."""
    least, wanted = np.linalg.eigvalsh(noisy)[0], max(norm, 0.5)
    if least + 1 > wanted:
        return 1.0
    more = max(2 * norm, 1.0)
    while least + 1 + more <= wanted:
        more *= 2
    shift = 1 + more
    for _ in range(8):
        more /= 2
        if least + shift - more > wanted:
            shift -= more
    return shift


def changes(horizon: int, d: int, growth: float = 1.0) -> int:
    """How often the determinant can grow by 1 + growth."""
    return min(horizon, math.floor(d * math.log(1 + horizon / d) / math.log(1 + growth)) + 1)


def oful(
    world: Problem,
    noise: np.ndarray,
    radius: Callable[[np.ndarray, int, int], float],
    growth: float = 1.0,
) -> np.ndarray:
    """Optimism with estimate and V of the last doubling of det V; ``radius(V, changes, rounds)``."""
    d = world.contexts.shape[2]
    v, total, k, arms = np.eye(d), np.zeros(d), 0, []
    standing, estimate, width = np.eye(d), np.zeros(d), 1.0
    for t, x in enumerate(world.contexts):
        arm = int(
            np.argmax(
                x @ estimate
                + width * np.sqrt(np.einsum("ki,ij,kj->k", x, np.linalg.inv(standing), x))
            )
        )
        arms.append(arm)
        v += np.outer(x[arm], x[arm])
        total += x[arm] * world.rewards[t, arm]
        if np.linalg.slogdet(v)[1] > np.linalg.slogdet(standing)[1] + math.log(1 + growth):
            standing, estimate = v.copy(), np.linalg.solve(v, total + noise[k])
            k += 1
            width = radius(v, k, t + 1)
    return np.array(arms)


def sampling_radius(v: np.ndarray, failure: float) -> float:
    return 0.5 * math.sqrt(2 * math.log(1 / failure) + np.linalg.slogdet(v)[1]) + 1


def tight_radius(
    noise_norm: float, failure: float = DELTA / 2
) -> Callable[[np.ndarray, int, int], float]:
    return lambda v, k, t: (
        sampling_radius(v, failure) + noise_norm / math.sqrt(np.linalg.eigvalsh(v)[0])
    )


def published_radius(
    rho: float, horizon: int, d: int, eigenvalue: float | None = None
) -> Callable[[np.ndarray, int, int], float]:
    """Azize & Basu (2024), Appendix F: noise of k episodes, and a lower bound on V from the
    contexts' least eigenvalue.
    """
    log = math.log(horizon / DELTA)
    one = math.sqrt((d + 2 * math.sqrt(d * log) + 2 * log) / (2 * rho))

    def radius(v: np.ndarray, k: int, t: int) -> float:
        least = np.linalg.eigvalsh(v)[0]
        if eigenvalue is not None:
            odds = math.log((t + 3) * d / DELTA)
            least = 1 + max(eigenvalue * t / 4 - 8 * odds - 2 * math.sqrt(t * odds), 0)
        return sampling_radius(v, DELTA) + one * math.sqrt(k) / math.sqrt(least)

    return radius
