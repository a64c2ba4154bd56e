"""A plain walk of generalised linear bandits on noisy Newton steps, through the table of
``linear_walks``: NumPy and SciPy alone, nothing of the package.

The link is logistic, |x| <= 1 and |theta| <= 1, lambda = 1, rewards are 0 or 1, and each epoch is
looked at from the estimate before it.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from linear_walks import DELTA, JointNoise, Noise, Problem, shift_of, solved, toeplitz
from linear_walks import symmetric_noise as _linear_noise
from scipy import stats
from scipy.spatial import distance


def mean(t: np.ndarray | float) -> np.ndarray:
    return 1 / (1 + np.exp(-np.asarray(t)))


def slope(t: np.ndarray | float) -> np.ndarray:
    return mean(t) * (1 - mean(t))


FLATTEST = float(slope(1.0))
# |nu''| is largest at the end; 1 % more than on the last of 2,000 steps.
CURVATURE = 1.01 * float(slope(0.999) - slope(1.0)) / 0.001


@cache
def farthest(block: str) -> float:
    """How far two records of unit features and outcomes 0 or 1 are apart, looked at from one point
    that is at most 1 long: by trying all of a plane.  Beside the gradient they have ``block`` times
    x x^T: "slope", "one", or "none".
    """
    turns = np.linspace(0, 2 * np.pi, 361)
    x = np.column_stack((np.cos(turns), np.sin(turns)))
    most = 0.0
    for length in (0.0, 0.5, 0.8, 0.9, 1.0):
        t = length * x[:, 0]
        h = {"slope": slope(t), "one": np.ones_like(t), "none": np.zeros_like(t)}[block]
        squares = np.column_stack((x[:, 0] ** 2, np.sqrt(2) * x[:, 0] * x[:, 1], x[:, 1] ** 2))
        records = np.concatenate(
            [
                np.hstack(((mean(t) - outcome)[:, None] * x, h[:, None] * squares))
                for outcome in (0.0, 1.0)
            ]
        )
        most = max(most, float(distance.pdist(records).max()))
    return most


def joint_noise(
    n: int, d: int, rho: float, rng: np.random.Generator, models: int = 1
) -> JointNoise:
    """A record moves score and information by ``farthest``, where the linear sums move by
    sqrt(4.5).  Theta does not multiply the noise.
    """
    moved = farthest("slope")
    linear, ratio = _linear_noise(n, d, rho, rng, toeplitz(n), models), moved / math.sqrt(4.5)
    stds = ratio * linear.stds
    norms = stds * math.sqrt(stats.chi2.isf(0.8 * DELTA / models / n, d))
    matrix_norms = ratio * linear.matrix_norms
    return JointNoise(
        ratio * linear.vectors,
        ratio * linear.matrices,
        norms,
        matrix_norms,
        1 + matrix_norms[0],
        stds,
    )


def joint(
    world: Problem,
    noise: JointNoise,
    schedule: list[int],
    failure: float,
    sampling: np.random.Generator | None = None,
) -> np.ndarray:
    (k, d), models = world.contexts.shape[1:], noise.vectors.shape[1]
    own, each, made, arms = np.arange(k) % models, failure / models, 0, []
    score, information = np.zeros((models, d)), np.zeros((models, d, d))
    seen = score.copy(), information.copy()
    u, point = np.zeros((models, d)), np.zeros((models, d))
    miss, step, path, remainder = (np.full(models, value) for value in (1.0, 1.0, 0.0, 0.0))
    due = True
    for t, x in enumerate(world.contexts):
        if due:
            norm, v = noise.matrix_norms[made], seen[1]
            shift = np.array([shift_of(one, norm) for one in v])
            v = v + shift[:, np.newaxis, np.newaxis] * np.eye(d)
            inverse, root = np.linalg.inv(v), np.linalg.cholesky(v)
            estimate = solved(v, u)
            gap = np.maximum(noise.base + norm - shift, 0)
            size = np.linalg.norm(inverse, axis=(1, 2))
            log_det = np.linalg.slogdet(v)[1] + d * np.log((1 + gap * size) / noise.base)
            scatter = 0.5 / math.sqrt(FLATTEST)
            radius = scatter * np.sqrt(2 * math.log(1 / each) + np.maximum(log_det, 0))
            if made:
                epoch = schedule[made - 1] - (schedule[made - 2] if made > 1 else 0)
                remainder = remainder + epoch * (CURVATURE * miss**2 / 2) ** 2 / FLATTEST
            radius = radius + np.sqrt(remainder)
            bias = noise.vector_norms[made] + shift + norm * (miss + path)
            spread = noise.stds[made] * np.hypot(1, step)
            if made:
                length = np.maximum(np.linalg.norm(estimate, axis=1), 1)
                step = np.linalg.norm(estimate / length[:, np.newaxis] - point, axis=1)
                point, path = estimate / length[:, np.newaxis], path + step
                miss = np.minimum(radius * np.sqrt(size + gap * size**2) + bias * size, 2)
            due = False
        if sampling is None:
            turned = np.einsum("kij,kj->ki", inverse[own], x)
            squares = (turned**2).sum(axis=1)
            width = radius[own] * np.sqrt((turned * x).sum(axis=1) + gap[own] * squares)
            index = (x * estimate[own]).sum(axis=1) + width + bias[own] * np.sqrt(squares)
        else:
            z, other = np.moveaxis(sampling.standard_normal((models, d, 2)), 2, 0)
            draw = estimate + solved(root.transpose(0, 2, 1), scatter * z)
            draw = draw + solved(v, spread[:, np.newaxis] * other)
            index = (x * draw[own]).sum(axis=1)
        arm = int(np.argmax(index))
        arms.append(arm)
        m, row = own[arm], x[arm]
        at = float(row @ point[m])
        score[m] += (world.rewards[t, arm] - mean(at)) * row
        information[m] += slope(at) * np.outer(row, row)
        if made < len(schedule) and t + 1 == schedule[made]:
            release = score + noise.vectors[made], information + noise.matrices[made]
            u += release[0] - seen[0] + np.einsum("mij,mj->mi", release[1] - seen[1], point)
            seen, due, made = release, True, made + 1
    return np.array(arms)


def public(
    world: Problem,
    noise: Noise,
    schedule: list[int],
    failure: float,
    models: int = 1,
    sampling: np.random.Generator | None = None,
) -> np.ndarray:
    """The same where features are public: information and offset are exact, and every width is
    known of every row.
    """
    k, d = world.contexts.shape[1:]
    own, each, made, arms = np.arange(k) % models, failure / models, 0, []
    information, offset = np.tile(np.eye(d), (models, 1, 1)), np.zeros((models, d))
    total, released = np.zeros((models, d)), np.zeros((models, d))
    point, cut = np.zeros((models, d)), np.zeros(models, bool)
    miss, remainder, due = np.ones(models), np.zeros(models), True
    for t, x in enumerate(world.contexts):
        if due:
            v = information.copy()
            inverse, root = np.linalg.inv(v), np.linalg.cholesky(v)
            scatter = 0.5 / math.sqrt(FLATTEST)
            radius = scatter * np.sqrt(2 * math.log(1 / each) + np.linalg.slogdet(v)[1])
            radius = radius + np.sqrt(remainder) + 1.0
            estimate = solved(v, released - offset)
            if made:
                length = np.maximum(np.linalg.norm(estimate, axis=1), 1)
                point, cut = estimate / length[:, np.newaxis], length > 1
                least = np.maximum(1 / np.linalg.norm(inverse, axis=(1, 2)), 1)
                miss = np.minimum(radius / np.sqrt(least) + noise.norm / least, 2)
            due = False
        turned = np.einsum("kij,kj->ki", inverse[own], x)
        width = radius[own] * np.sqrt((turned * x).sum(axis=1))
        width += noise.norm * np.linalg.norm(turned, axis=1)
        if sampling is None:
            index = (x * estimate[own]).sum(axis=1) + width
        else:
            z, other = np.moveaxis(sampling.standard_normal((models, d, 2)), 2, 0)
            draw = estimate + solved(root.transpose(0, 2, 1), scatter * z)
            index = (x * (draw + solved(v, noise.std * other))[own]).sum(axis=1)
        arm = int(np.argmax(index))
        arms.append(arm)
        m, row = own[arm], x[arm]
        at = float(row @ point[m])
        widest = miss[m] * float(np.linalg.norm(row))
        width = widest if cut[m] else min(widest, width[arm])
        h = max(float(slope(at)), FLATTEST)
        remainder[m] += (CURVATURE * width**2 / 2) ** 2 / h
        offset[m] += (mean(at) - h * at) * row
        information[m] += h * np.outer(row, row)
        total[m] += row * world.rewards[t, arm]
        if made < len(schedule) and t + 1 == schedule[made]:
            released, due = total + noise.values[made].reshape(models, d), True
            made += 1
    return np.array(arms)
