"""Plain walks of linear bandits through a fixed table, and dense noise of running sums: NumPy and
SciPy alone, nothing of the package.

Rewards are 0 or 1, features no longer than 1, lambda = 1, |theta| <= 1, rewards 1/2-subgaussian,
and delta = 0.001.  ``models`` is 1, or the number of arms where each has a model of its own; they
share delta equally.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import stats

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


@cache
def toeplitz(n: int) -> np.ndarray:
    """The square root of the matrix that sums."""
    first = np.cumprod([1.0] + [1 - 1 / (2 * k) for k in range(1, n)])
    return np.array([[first[t - s] if s <= t else 0.0 for s in range(n)] for t in range(n)])


@cache
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
    norm = widest * math.sqrt(stats.chi2.isf(DELTA / 2 / (models * n), d))
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


def paying(t: int, world: Problem) -> float:
    """The rounds so far, and at most a tenth of those that remain."""
    return min(t, 0.1 * (len(world.contexts) - t))


def divergences(
    means: np.ndarray,
    sampling: np.ndarray,
    noise: np.ndarray,
    rounds: float,
    share: float | None,
    alpha: float,
    margin: float,
) -> np.ndarray:
    """Of IMED, where rewards in [0, 1] would leave the variance ``sampling`` if that of each were
    1/4, and noise leaves its own; without a share, lacks have it added.
    """
    off = np.minimum(np.abs(means - 0.5), 0.5)
    scatter = 1 - 4 * np.maximum(off - 2 * np.sqrt(sampling + noise), 0) ** 2
    own, lack = scatter * sampling, means.max() - means
    explored = own
    if share is None:
        lack = lack + np.where(lack > 0, np.sqrt(noise), 0)
    else:
        explored = own**2 / (own + noise) + share * noise
    known = np.log(np.maximum(alpha * explored / scatter, 0.25 * alpha / max(rounds, 1)))
    behind = np.where(lack > 0, math.log(margin), 0)
    return lack**2 / (2 * alpha * explored) - known + behind


def imed(world: Problem, noise: Noise, models: int = 1) -> np.ndarray:
    """The least index, for variances |x|^2_{V^-1} / 4, and lacks that std |V^-1 x| adds to."""
    k, d = world.contexts.shape[1:]
    v, total, arms = np.tile(np.eye(d), (models, 1, 1)), np.zeros((models, d)), []
    estimate, own = total.copy(), np.arange(k) % models
    for t, x in enumerate(world.contexts):
        turned = solved(v[own], x)
        means = (x * estimate[own]).sum(axis=1)
        sampling = (x * turned).sum(axis=1) / 4
        released = noise.std**2 * (turned**2).sum(axis=1)
        arm = int(
            np.argmin(divergences(means, sampling, released, paying(t, world), None, 1.5, 2.0))
        )
        arms.append(arm)
        v[own[arm]] += np.outer(x[arm], x[arm])
        total[own[arm]] += x[arm] * world.rewards[t, arm]
        estimate = solved(v, total + noise.values[t].reshape(models, d))
    return np.array(arms)


class JointNoise(NamedTuple):
    """Noise on running sums of [x r ; x x^T], and bounds on it after 0, 1, 2, ... releases that hold
    with probability 1 - 0.9 DELTA in all models.
    """

    vectors: np.ndarray  # (n, models, d)
    matrices: np.ndarray  # (n, models, d, d) symmetric: std on the diagonal, std / sqrt(2) off it
    vector_norms: np.ndarray  # (n + 1,) of the vectors less the matrices times theta
    matrix_norms: np.ndarray  # (n + 1,)
    base: float  # c
    stds: np.ndarray  # (n + 1,), the largest of a coordinate


def symmetric_noise(
    n: int, d: int, rho: float, rng: np.random.Generator, decoder: np.ndarray, models: int
) -> JointNoise:
    """For features no longer than 1 and rewards in [0, 1]: a record moves both by sqrt(4.5)."""
    std = math.sqrt(4.5 / (2 * rho)) * math.sqrt((decoder[:, 0] ** 2).sum())
    widest = std * math.sqrt((decoder**2).sum(axis=1).max())
    z = std * rng.standard_normal((n, models, d, d))
    matrix_norm = widest * ensemble_norm(n, 0.1 * DELTA / models)
    return JointNoise(
        np.einsum("ts,smi->tmi", decoder, std * rng.standard_normal((n, models, d))),
        np.einsum("ts,smij->tmij", decoder, (z + z.transpose(0, 1, 3, 2)) / 2),
        np.full(n + 1, widest * elliptic_norm(n, 0.8 * DELTA / models)),
        np.full(n + 1, matrix_norm),
        1 + matrix_norm,
        np.full(n + 1, widest),
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
    k = np.maximum(np.arange(n + 1), 1)
    return one._replace(
        vectors=one.vectors.cumsum(axis=0),
        matrices=one.matrices.cumsum(axis=0),
        vector_norms=one.stds * walk_norms(k, n / 2, models),
        matrix_norms=np.sqrt(k) * one.matrix_norms,
        stds=np.sqrt(k) * one.stds,
        base=1 + one.matrix_norms[0] * math.sqrt(n / 2),
    )


def joint_silence(n: int, d: int, models: int = 1) -> JointNoise:
    none = np.zeros(n + 1)
    vectors, matrices = np.zeros((n, models, d)), np.zeros((n, models, d, d))
    return JointNoise(vectors, matrices, none, none, 1.0, none)


# A vector of unit noise less a matrix of it times theta: its variances, for |theta| = 1 and d = 2.
ALONG, ACROSS = 2.0, 1.5


def quantile(tail: Callable[[float], float], probability: float) -> float:
    low, high = 0.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > probability else (low, middle)
    return high


@cache
def elliptic_norm(n: int, probability: float) -> float:
    """What n such vectors stay below: in polar coordinates, for d = 2."""
    turn = 2 * np.pi * np.arange(1000) / 1000
    form = np.cos(turn) ** 2 / ALONG + np.sin(turn) ** 2 / ACROSS
    return quantile(
        lambda x: np.mean(np.exp(-form * x**2 / 2) / form) / math.sqrt(ALONG * ACROSS),
        probability / n,
    )


@cache
def ensemble_norm(n: int, probability: float) -> float:
    """What the eigenvalues of n matrices stay below: for d = 2 these are m + R and m - R, with m
    normal and R Rayleigh, both of variance 1/2 in a coordinate.
    """
    radius = np.linspace(0, 12, 2001)
    density = 2 * radius * np.exp(-(radius**2)) * (radius[1] - radius[0])
    erfc = np.vectorize(math.erfc)
    return quantile(
        lambda x: float(density @ (erfc(x - radius) + erfc(x + radius))) / 2, probability / (2 * n)
    )


def walk_norms(k: np.ndarray, planned: float, models: int) -> np.ndarray:
    """What the sum of k such vectors stays below, for all k at once; the least at ``planned``."""
    odds = 2 * math.log(models / (0.8 * DELTA))

    def bound(start: np.ndarray, k: np.ndarray | float) -> np.ndarray:
        other = ALONG / ACROSS * (planned + start) - planned
        size = np.maximum(ALONG * (k + start), ACROSS * (k + other))
        return np.sqrt(size * (odds + np.log((1 + k / start) * (1 + k / other))))

    starts = planned * np.geomspace(1e-5, 20, 20_000)
    return bound(starts[np.argmin(bound(starts, planned))], k)


def growing(horizon: int, growth: float, first: int = 1, longest: float = math.inf) -> list[int]:
    """Rounds after which a release is made, each number 1 + growth times the last, or ``first``
    more, and at most ``longest`` more.
    """
    rounds, found = first, []
    while rounds <= horizon:
        found.append(rounds)
        grown = min(math.ceil(rounds * (1.0 + growth)), rounds + longest)
        rounds = max(rounds + first, int(grown))
    return found


def joint(
    world: Problem,
    noise: JointNoise,
    schedule: list[int],
    failure: float,
    sampling: np.random.Generator | None = None,
    *,
    divergent: bool = False,
    alpha: float = 1.3,
) -> np.ndarray:
    """Optimism, or with a generator the best arm for a draw, or IMED, with a generator for any
    theta while nothing is known, on noisy sums as of the last release.
    """
    (k, d), models = world.contexts.shape[1:], noise.vectors.shape[1]
    gram, total, arms, made = np.zeros((models, d, d)), np.zeros((models, d)), [], 0
    failure, own = failure / models, np.arange(k) % models
    noisy = gram
    for t, x in enumerate(world.contexts):
        if t == 0 or (made and t == schedule[made - 1]):  # something was released
            matrix_norm = noise.matrix_norms[made]
            shift = np.array([shift_of(one, matrix_norm) for one in noisy])
            v = noisy + shift[:, np.newaxis, np.newaxis] * np.eye(d)
            inverse, root = np.linalg.inv(v), np.linalg.cholesky(v)
            estimate = solved(v, total + noise.vectors[made - 1]) if made else 0.0 * total
            gap = np.maximum(noise.base + matrix_norm - shift, 0)
            larger = (1 + gap * np.linalg.norm(inverse, axis=(1, 2))) / noise.base
            log_det = np.linalg.slogdet(v)[1] + d * np.log(larger)
            radius = 0.5 * np.sqrt(2 * math.log(1 / failure) + np.maximum(log_det, 0))
            bias = noise.vector_norms[made] + shift
        if divergent or sampling is None:
            turned = np.einsum("kij,kj->ki", inverse[own], x)
            squares = (turned**2).sum(axis=1)
        if divergent and sampling is not None and not np.any(estimate):
            index = (x * sampling.standard_normal((models, d))[own]).sum(axis=1)
        elif divergent:
            means = (x * estimate[own]).sum(axis=1)
            share = 0.15 if noise.stds[-1] > noise.stds[0] else 0.07  # where noise adds up
            renewed = (2 * noise.stds[made] ** 2 + shift[own] ** 2 / d) * squares
            fixed = (turned * x).sum(axis=1) / 4
            index = -divergences(means, fixed, renewed, paying(t, world), share, alpha, 2.0)
        elif sampling is None:
            width = radius[own] * np.sqrt((turned * x).sum(axis=1) + gap[own] * squares)
            index = (x * estimate[own]).sum(axis=1) + width + bias[own] * np.sqrt(squares)
        else:
            scatter, spread = np.moveaxis(sampling.standard_normal((models, d, 2)), 2, 0)
            draw = estimate + solved(root.transpose(0, 2, 1), 0.5 * scatter)
            draw = draw + solved(v, noise.stds[made] * math.sqrt(2) * spread)
            index = (x * draw[own]).sum(axis=1)
        arm = int(np.argmax(index))
        arms.append(arm)
        gram[own[arm]] += np.outer(x[arm], x[arm])
        total[own[arm]] += x[arm] * world.rewards[t, arm]
        if made < len(schedule) and t + 1 == schedule[made]:
            noisy = gram + noise.matrices[made]
            made += 1
    return np.array(arms)


def published_local(
    world: Problem, epsilon: float, delta: float, rng: np.random.Generator
) -> np.ndarray:
    """Zheng et al. (2020): LinUCB on reports with normal noise on x r and the triangle of x x^T."""
    (horizon, _, d), std = world.contexts.shape, 6 * math.sqrt(2 * math.log(2.5 / delta)) / epsilon
    v, u, arms = np.zeros((d, d)), np.zeros(d), []
    for t, x in enumerate(world.contexts):
        bound = std * math.sqrt(max(t, 1)) * (4 * math.sqrt(d) + 2 * math.log(2 * horizon / DELTA))
        shifted = v + 2 * bound * np.eye(d)
        radius = 2 * 0.5 * math.sqrt(d * math.log(horizon))
        errors = math.sqrt(3 * bound) + std * math.sqrt(d * max(t, 1) / bound)
        radius += errors * d * math.log(horizon)
        widths = np.sqrt(np.einsum("ki,ij,kj->k", x, np.linalg.inv(shifted), x))
        arm = int(np.argmax(x @ np.linalg.solve(shifted, u) + radius * widths))
        arms.append(arm)
        noise = np.triu(std * rng.standard_normal((d, d)))
        v += np.outer(x[arm], x[arm]) + noise + np.triu(noise, 1).T
        u += x[arm] * world.rewards[t, arm] + std * rng.standard_normal(d)
    return np.array(arms)


def shift_of(noisy: np.ndarray, norm: float) -> float:
    """Lambda where that leaves no eigenvalue below half the bound on the noise, else by bisection."""
    least, wanted = np.linalg.eigvalsh(noisy)[0], max(norm, 1) / 2
    if least + 1 > wanted:
        return 1.0
    more = 4 * wanted
    while least + 1 + more <= wanted:
        more *= 2
    shift = 1 + more
    for _ in range(8):
        more /= 2
        if least + shift - more > wanted:
            shift -= more
    return shift


def changes(horizon: int, d: int, growth: float = 1.0, ridge: float = 1.0) -> int:
    """How often the determinant can grow by 1 + growth."""
    volume = d * math.log(1 + horizon / (ridge * d))
    return min(horizon, math.floor(volume / math.log(1 + growth)) + 1)


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


def rare_thompson(
    world: Problem, noise: Noise, rng: np.random.Generator, growth: float = 1.0
) -> np.ndarray:
    """The best arm for a draw from N(estimate, V^-1 / 4 + std^2 V^-2), with estimate and V of the
    last time that det V had grown by 1 + growth.
    """
    d = world.contexts.shape[2]
    v, total, k, arms = np.eye(d), np.zeros(d), 0, []
    standing, estimate = v.copy(), np.zeros(d)
    for t, x in enumerate(world.contexts):
        sampling, spread = rng.standard_normal((d, 2)).T
        draw = np.linalg.solve(np.linalg.cholesky(standing).T, 0.5 * sampling)
        draw += estimate + np.linalg.solve(standing, noise.std * spread)
        arms.append(int(np.argmax(x @ draw)))
        v += np.outer(x[arms[-1]], x[arms[-1]])
        total += x[arms[-1]] * world.rewards[t, arms[-1]]
        if np.linalg.slogdet(v)[1] > np.linalg.slogdet(standing)[1] + math.log(1 + growth):
            standing, estimate = v.copy(), np.linalg.solve(v, total + noise.values[k])
            k += 1
    return np.array(arms)


def rare_imed(world: Problem, noise: Noise, growth: float = 0.4, ridge: float = 1.0) -> np.ndarray:
    """The least index, with the estimate of the last time that det V had grown by 1 + growth, and
    the variance of a mean of which the noise of a release is a part.
    """
    v, total, k, arms = ridge * np.eye(world.contexts.shape[2]), 0.0, 0, []
    standing, estimate = v.copy(), np.zeros(len(v))
    for t, x in enumerate(world.contexts):
        turned = solved(v[np.newaxis], x)
        sampling = (x * turned).sum(axis=1) / 4
        released = noise.std**2 * (turned**2).sum(axis=1)
        rounds = paying(t, world)
        arm = int(np.argmin(divergences(x @ estimate, sampling, released, rounds, 1.0, 1.8, 2.5)))
        arms.append(arm)
        v = v + np.outer(x[arm], x[arm])
        total = total + x[arm] * world.rewards[t, arm]
        if np.linalg.slogdet(v)[1] > np.linalg.slogdet(standing)[1] + math.log(1 + growth):
            standing, estimate = v, np.linalg.solve(v, total + noise.values[k])
            k += 1
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
