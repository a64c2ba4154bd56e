"""Textbook implementations of the policies that take contexts: ``linear_walks`` of the algorithms'
tests, in one fixed table.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpbandits.privacy import ZCDP, Budget, PureDP

sys.path.append(str(Path(__file__).parents[1] / "algorithms"))

import dgs_walks
import glm_local_walks
import glm_walks
import glm_weighted_walks
import linear_walks as walks

HORIZON, DIMENSION = 200, 2
WORLD = walks.problem(HORIZON, 3, DIMENSION)
# One class for each set of kernels.
DISJOINT = [
    "GLMUCB",
    "GLMUCBJDP",
    "LinUCBJDP",
    "LinUCBLDP",
    "LinearIMED",
    "LinearIMEDJDP",
    "LinearThompson",
    "LinearThompsonJDP",
    "PrivateLinUCB",
]


class Table(NamedTuple):
    """How a policy is configured for its reference, and ``play(budget, rng)``, the regret of one
    run of that.
    """

    arguments: Callable[[Budget | None, int], dict[str, Any]]
    play: Callable[..., float]


def noise(budget: Budget | None, rng: np.random.Generator, n: int, models: int = 1) -> walks.Noise:
    """Of n running sums."""
    if budget is None:
        return walks.silence(n, models * DIMENSION)
    if isinstance(budget, PureDP):
        return walks.laplace_tree_noise(n, DIMENSION, budget.epsilon, rng, models)
    assert isinstance(budget, ZCDP)
    return walks.toeplitz_noise(n, DIMENSION, budget.rho, rng, models)


def failure(budget: Budget | None) -> float:
    return walks.DELTA if budget is None else walks.DELTA / 2


def none(budget: Budget | None, horizon: int) -> dict[str, Any]:
    return {}


def planned(budget: Budget | None, horizon: int) -> dict[str, Any]:
    return {"horizon": horizon, "counter": "tree" if isinstance(budget, PureDP) else None}


def unplanned(budget: Budget | None, horizon: int) -> dict[str, Any]:
    return {"horizon": horizon}


def linucb(budget: Budget | None, rng: np.random.Generator, models: int = 1) -> float:
    added = noise(budget, rng, HORIZON, models)
    return WORLD.regret(walks.linucb(WORLD, added, failure(budget), models))


def thompson(budget: Budget | None, rng: np.random.Generator, models: int = 1) -> float:
    added = noise(budget, rng, HORIZON, models)
    return WORLD.regret(walks.thompson(WORLD, added, rng, models))


def imed(budget: Budget | None, rng: np.random.Generator, models: int = 1) -> float:
    return WORLD.regret(walks.imed(WORLD, noise(budget, rng, HORIZON, models), models))


def oful(budget: Budget | None, rng: np.random.Generator) -> float:
    added = noise(budget, rng, walks.changes(HORIZON, DIMENSION))
    return WORLD.regret(
        walks.oful(WORLD, added.values, walks.tight_radius(added.norm, failure(budget)))
    )


def rare_imed(budget: Budget | None, rng: np.random.Generator) -> float:
    """Rewards in [0, 1]: s^2 / S^2 is a quarter, and the ridge d / 8 + (1 - 1 / d) v sqrt(d), or 1."""
    first = walks.changes(HORIZON, DIMENSION, 0.4, max(0.25 * DIMENSION, 1.0))
    noisy = noise(budget, rng, first).std * (DIMENSION - 1) / math.sqrt(DIMENSION)
    ridge = max(1.0, DIMENSION / 8 + noisy)
    added = noise(budget, rng, walks.changes(HORIZON, DIMENSION, 0.4, ridge))
    return WORLD.regret(walks.rare_imed(WORLD, added, ridge=ridge))


def rare_thompson(budget: Budget | None, rng: np.random.Generator) -> float:
    added = noise(budget, rng, walks.changes(HORIZON, DIMENSION))
    return WORLD.regret(walks.rare_thompson(WORLD, added, rng))


def dgs(budget: Budget | None, rng: np.random.Generator) -> float:
    epsilon = budget.epsilon if isinstance(budget, PureDP) else math.inf

    def radius(t: int) -> float:
        return dgs_walks.eq_4(
            t,
            horizon=HORIZON,
            epsilon=epsilon,
            d=DIMENSION,
            zeta=walks.DELTA,
            size=0.5,
            scatter=0.5,
        )

    arms, _ = dgs_walks.walk(
        WORLD.contexts,
        WORLD.rewards,
        epsilon=epsilon,
        draw=lambda d: rng.laplace(size=d),
        delta=lambda t, a: 32 * 0.5 / (0.1 * t),
        horizon=HORIZON,
        radius=radius,
    )
    return WORLD.regret(arms)


def published(budget: Budget | None, horizon: int) -> dict[str, Any]:
    return {"horizon": horizon, "smallest_eigenvalue": 0.1}


EVERY, EVERY_FOURTH = (list(range(step, HORIZON + 1, step)) for step in (1, 4))


def joint(
    schedule: list[int],
    *,
    sampling: bool = False,
    noise: Any = walks.joint_noise,
    walk: Any = walks.joint,
    **options: Any,
) -> Callable[..., float]:
    def play(budget: Budget | None, rng: np.random.Generator, models: int = 1) -> float:
        n = len(schedule)
        added = walks.joint_silence(n, DIMENSION, models)
        if budget is not None:
            assert isinstance(budget, ZCDP)
            added = noise(n, DIMENSION, budget.rho, rng, models)
        each = walks.DELTA if budget is None else 0.1 * walks.DELTA
        return WORLD.regret(
            walk(WORLD, added, schedule, each, rng if sampling else None, **options)
        )

    return play


def newton(*, sampling: bool = False) -> Callable[..., float]:
    schedule = walks.growing(HORIZON, 0.25, first=4)
    return joint(schedule, sampling=sampling, noise=glm_walks.joint_noise, walk=glm_walks.joint)


def generalised(*, sampling: bool = False) -> Callable[..., float]:
    schedule = walks.growing(HORIZON, 0.1, first=4)

    def play(budget: Budget | None, rng: np.random.Generator, models: int = 1) -> float:
        added, drawn = noise(budget, rng, len(schedule), models), rng if sampling else None
        arms = glm_walks.public(WORLD, added, schedule, failure(budget), models, drawn)
        return WORLD.regret(arms)

    return play


def descent(budget: Budget | None, rng: np.random.Generator) -> float:
    report = glm_local_walks.in_the_clear()
    if isinstance(budget, PureDP):
        report = glm_local_walks.ball(DIMENSION, budget.epsilon, rng)
    elif isinstance(budget, ZCDP):
        report = glm_local_walks.gaussian(DIMENSION, budget.rho, rng)
    return WORLD.regret(glm_local_walks.descent(WORLD, report))


def online(budget: Budget | None, rng: np.random.Generator) -> float:
    if budget is None:
        return WORLD.regret(glm_local_walks.to_confidence_sets(WORLD, None, None))
    assert isinstance(budget, ZCDP)
    return WORLD.regret(glm_local_walks.to_confidence_sets(WORLD, budget.rho, rng))


def narrowed(budget: Budget | None, horizon: int) -> dict[str, Any]:
    return {"horizon": horizon, "radius_scale": glm_weighted_walks.SCALE}


def weighted(first: int, *, local: bool = False) -> Callable[..., float]:
    schedule = walks.growing(HORIZON, 1.0, first=first)
    noises = HORIZON if local else len(schedule)

    def play(budget: Budget | None, rng: np.random.Generator) -> float:
        assert budget is None or isinstance(budget, ZCDP)
        rho, each = (None, walks.DELTA) if budget is None else (budget.rho, 0.1 * walks.DELTA)
        at = glm_weighted_walks.wall(rho, DIMENSION, noises, local=local)
        odds = math.log(noises / each)
        return WORLD.regret(glm_weighted_walks.walk(WORLD, schedule, at, odds, rng))

    return play


TABLES: dict[str, Table] = {
    "AdaCOFUL": Table(planned, oful),
    "AdaCOFULJDP": Table(planned, joint(walks.growing(HORIZON, 0.1))),
    "GLMThompson": Table(planned, generalised(sampling=True)),
    "GLMThompsonJDP": Table(planned, newton(sampling=True)),
    "GLMUCB": Table(planned, generalised()),
    "GLMUCBJDP": Table(planned, newton()),
    "WeightedGLMJDP": Table(narrowed, weighted(4)),
    "WeightedGLMLDP": Table(narrowed, weighted(1, local=True)),
    "LDPGLOC": Table(unplanned, online),
    "LDPSGD": Table(none, descent),
    "LinUCB": Table(none, linucb),
    "LinUCBDGS": Table(published, dgs),
    "LinUCBJDP": Table(planned, joint(EVERY_FOURTH)),
    "LinUCBLDP": Table(unplanned, joint(EVERY, noise=walks.independent_joint_noise)),
    # Only without a budget, where both walks are the same.
    "LinUCBSDP": Table(unplanned, joint(EVERY_FOURTH)),
    "Linear/Sampling": Table(planned, rare_thompson),
    "LinearIMED": Table(planned, imed),
    "LinearIMEDJDP": Table(
        planned,
        joint(walks.growing(HORIZON, 0.1, longest=4), sampling=True, divergent=True),
    ),
    "LinearIMEDLDP": Table(
        unplanned,
        joint(EVERY, sampling=True, divergent=True, noise=walks.independent_joint_noise),
    ),
    "LinearIMEDSDP": Table(
        unplanned, joint(EVERY_FOURTH, sampling=True, divergent=True, alpha=1.5)
    ),
    "LinearThompson": Table(planned, thompson),
    "LinearThompsonJDP": Table(planned, joint(EVERY_FOURTH, sampling=True)),
    "LinearThompsonLDP": Table(
        unplanned, joint(EVERY, sampling=True, noise=walks.independent_joint_noise)
    ),
    "LinearThompsonSDP": Table(unplanned, joint(EVERY_FOURTH, sampling=True)),
    "PrivateLinUCB": Table(planned, linucb),
    "RSLinearIMED": Table(planned, rare_imed),
    "RSOFUL": Table(none, oful),
    # Only without a budget, as above; the law of its noise: tests/papers/test_wishart_noise.py.
    "WishartLinUCBJDP": Table(unplanned, joint(EVERY_FOURTH)),
}


def disjoint(table: Table) -> Table:
    """The same with a model for each of the three arms."""
    return Table(table.arguments, lambda budget, rng: table.play(budget, rng, 3))


TABLES |= {f"{name}/disjoint": disjoint(TABLES[name]) for name in DISJOINT}
