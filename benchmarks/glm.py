"""Logistic bandits, seconds a run; and private logistic regression on a million people with 20
features: seconds, and excess risk beside other ways to spend the same (epsilon, delta), each at the
best of several settings.

The settings of the others are chosen by the true risk, which nobody who has to protect people
could look at; ours are the defaults.  Neighbours replace one person everywhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.special import expit

import dpbandits as dpb
from dpbandits.algorithms.bases.linear import Linked
from dpbandits.environments import GLMContexts
from dpbandits.glm import LocalGLM, PrivateGLM
from dpbandits.glm.links import link_of
from dpbandits.glm.replacement import replacement_sensitivity
from dpbandits.papers.glm import WeightedGLMJDP, WeightedGLMLDP

from .timing import Row, best, scaled

ROUNDS = 100_000
PEOPLE, FEATURES, SEEDS, DELTA = 10**6, 20, 5, 1e-6
EPSILONS = (1.0, 0.1)


def of_bandits(rounds: int) -> Iterator[Row]:
    """20 arms with fresh features, d = 10; epochs that double, where there are epochs."""
    world = GLMContexts.random(20, 10, seed=0)
    shape = {"n_arms": 20, "dimension": 10}
    doubling = {**shape, "horizon": rounds, "growth": 1.0}
    budget = dpb.ApproxDP(1.0, DELTA)
    policies = [
        dpb.algorithms.GLMUCB(budget=None, **doubling),
        dpb.algorithms.GLMThompson(budget=budget, **doubling),
        dpb.algorithms.GLMUCBJDP(budget=budget, **doubling),
        dpb.algorithms.GLMThompsonJDP(budget=budget, **doubling),
        WeightedGLMJDP(budget=budget, **doubling),
        dpb.algorithms.LDPSGD(budget=dpb.PureDP(1.0), **shape),
        dpb.papers.others.LDPGLOC(budget=budget, horizon=rounds, batch=20, **shape),
        WeightedGLMLDP(budget=budget, **doubling),
    ]
    for policy in policies:
        seconds = best(partial(_play, policy, world, rounds), 3)
        name = policy.preset
        local = policy.card.trust_model == "local"
        yield Row(f"{name}, a run of {rounds} rounds", seconds, "s", "" if local else "<= 1.5")
        if local:
            limit = "<= 5" if name == "LDPSGD" else ""
            yield Row(f"{name}, a round", 1e6 * seconds / rounds, "us", limit)


def _play(policy: dpb.Policy, world: GLMContexts, rounds: int) -> None:
    dpb.simulate(policy, world, horizon=rounds, runs=1, seed=1, n_jobs=1, record=[rounds])


def of_sensitivities() -> Iterator[Row]:
    """How far a replaced record moves a score, beside what residuals of any sign would allow."""
    for name in ("logistic", "probit", "identity"):
        link = link_of(name)
        for parameter in (1.0, 3.0):
            bound = replacement_sensitivity(link, (0.0, 1.0), length=1.0, parameter=parameter)
            anchor = 2.0 * Linked(link, 1.0, parameter, (0.0, 1.0)).residual
            yield Row(f"{name}, |p| <= {parameter:g}: sensitivity", bound / anchor, "x", "< 1")


class World:
    """Features on the unit sphere, outcomes of a logistic model with a parameter of length 1."""

    def __init__(self, people: int) -> None:
        rng = np.random.default_rng(0)
        directions = rng.standard_normal((people, FEATURES))
        self.X = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        self.truth = rng.standard_normal(FEATURES)
        self.truth /= np.linalg.norm(self.truth)
        self.means = expit(self.X @ self.truth)
        self.y = (rng.random(people) < self.means).astype(float)
        self.least = self._loss(self.truth)

    def _loss(self, theta: np.ndarray) -> float:
        t = self.X @ theta
        return float(np.mean(np.logaddexp(0.0, t) - self.means * t))

    def excess(self, theta: np.ndarray) -> float:
        return self._loss(theta) - self.least


Peer = Callable[[World, float], float]


def rows(size: float) -> Iterator[Row]:
    yield from of_sensitivities()
    yield from of_bandits(scaled(ROUNDS, size, 100))
    world = World(scaled(PEOPLE, size, 200))
    ordinary = PrivateGLM(budget=None, steps=8, parameter_bound=10.0).fit(world.X, world.y)
    yield Row("excess risk without noise", world.excess(ordinary.coef_), "nats")
    for method in ("newton", "gradient"):
        model = PrivateGLM(budget=dpb.ApproxDP(1.0, DELTA), method=method, seed=1)
        seconds = best(lambda model=model: model.fit(world.X, world.y), 1)
        yield Row(f"fit, method={method}", seconds, "s", "<= 5" if method == "newton" else "")
    local = LocalGLM(budget=dpb.ApproxDP(1.0, DELTA), seed=1)
    yield Row("fit, LocalGLM", best(lambda: local.fit(world.X, world.y), 1), "s")
    for epsilon in EPSILONS:
        yield from against_peers(world, epsilon)


def against_peers(world: World, epsilon: float) -> Iterator[Row]:
    ours = _mean_excess(world, lambda seed: _ours(world, epsilon, seed, "newton"))
    yield Row(f"excess risk, PrivateGLM, epsilon = {epsilon:g}", ours, "nats")
    risks = {}
    for name, peer in PEERS.items():
        row = f"excess risk, {name}, epsilon = {epsilon:g}"
        try:
            risks[name] = peer(world, epsilon)
        except ImportError as error:
            yield Row.skipped(row, error)
            continue
        yield Row(row, risks[name], "nats")
        yield Row(f"  ours, epsilon = {epsilon:g}, against {name}", ours / risks[name], "x")
    ratio = ours / min(risks.values())
    yield Row(f"  ours, epsilon = {epsilon:g}, against the best", ratio, "x", "<= 1.05")


def _mean_excess(world: World, estimate: Callable[[int], np.ndarray]) -> float:
    return float(np.mean([world.excess(estimate(seed)) for seed in range(SEEDS)]))


def _ours(world: World, epsilon: float, seed: int, method: str) -> np.ndarray:
    model = PrivateGLM(budget=dpb.ApproxDP(epsilon, DELTA), method=method, seed=seed)
    return model.fit(world.X, world.y).coef_


# Others -----------------------------------------------------------------------------------------


def objective_perturbation(world: World, epsilon: float) -> float:
    """Redberg, Koskela & Wang (2023), as in ``method="objective"``."""
    return _mean_excess(world, lambda seed: _ours(world, epsilon, seed, "objective"))


def output_perturbation(world: World, epsilon: float) -> float:
    """Chaudhuri, Monteleoni & Sarwate (2011), with Gaussian noise: the minimum of a loss with a
    ridge moves by at most 2 / ridge.
    """
    mu, risks = dpb.ApproxDP(epsilon, DELTA).mu, []
    for ridge in np.geomspace(1e-4, 1e-1, 7) * len(world.y):
        model = PrivateGLM(budget=None, ridge=float(ridge), steps=8, parameter_bound=10.0)
        exact = model.fit(world.X, world.y).coef_
        rng, std = np.random.default_rng(1), 2.0 / (ridge * mu)
        noise = std * rng.standard_normal((SEEDS, exact.size))
        risks.append(np.mean([world.excess(_within(exact + one)) for one in noise]))
    return float(min(risks))


def gradient_descent(world: World, epsilon: float) -> float:
    """Full-batch DP-SGD (Abadi et al. 2016): clipped gradients, the mean of the later iterates."""
    settings = itertools.product((5, 20), (20.0, 60.0), (0.6, 1.0))
    return min(
        _mean_excess(world, lambda seed, s=setting: _descend(world, epsilon, seed, *s))
        for setting in settings
    )


def _descend(
    world: World, epsilon: float, seed: int, steps: int, rate: float, clip: float
) -> np.ndarray:
    rng, people = np.random.default_rng(seed), len(world.y)
    std = 2.0 * clip * np.sqrt(steps) / dpb.ApproxDP(epsilon, DELTA).mu
    theta, path = np.zeros(FEATURES), []
    for _ in range(steps):
        residuals = np.clip(expit(world.X @ theta) - world.y, -clip, clip)  # |x| = 1
        gradient = residuals @ world.X + std * rng.standard_normal(FEATURES)
        theta = _within(theta - rate / people * gradient)
        path.append(theta)
    return np.mean(path[steps // 2 :], axis=0)


def diffprivlib(world: World, epsilon: float) -> float:
    """IBM's objective perturbation, which is epsilon-DP: more than is asked of the others."""
    from diffprivlib.models import LogisticRegression

    def fitted(seed: int, strength: float) -> np.ndarray:
        model = LogisticRegression(
            epsilon=epsilon, data_norm=1.0, C=strength, fit_intercept=False, random_state=seed
        )
        return _within(model.fit(world.X, world.y).coef_[0])

    return min(
        _mean_excess(world, lambda seed, c=strength: fitted(seed, c))
        for strength in (1.0, 1e-2, 1e-4)
    )


def _within(theta: np.ndarray) -> np.ndarray:
    return theta / max(1.0, float(np.linalg.norm(theta)))


PEERS: dict[str, Peer] = {
    "objective perturbation": objective_perturbation,
    "output perturbation": output_perturbation,
    "noisy gradient descent": gradient_descent,
    "diffprivlib": diffprivlib,
}
