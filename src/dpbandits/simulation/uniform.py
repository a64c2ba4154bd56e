"""What choosing an arm at random in every round costs: what nobody has learned, loses."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..environments.base import ArmsEnvironment, ContextKernels, World
from ..kernel import Generator, Kernel, Matrix, bind, entry, inlined, unbound
from .seeding import identity, stream

show = answer = unbound

_NAME = "choosing at random"


@entry
def _choose_at_random(
    environment: Any, contexts: Matrix, horizon: int, world_rng: Generator, choice_rng: Generator
) -> float:
    lost = 0.0
    for t in range(horizon):
        hidden = show(environment, t, contexts, world_rng)
        arm = int(choice_rng.random() * contexts.shape[0])
        _, regret = answer(environment, t, contexts, hidden, arm, world_rng)
        lost += regret
    return lost


@cache
def _loop(environment: ContextKernels) -> Kernel:
    steps = {name: inlined(step) for name, step in environment._asdict().items()}
    return bind(_choose_at_random, **steps)


def regret_at_random(environment: World, horizon: int, *, runs: int, seed: int) -> np.ndarray:
    """The regret of choosing at random, all arms alike, in every run, shape (runs,).

    Without contexts it is exact: the mean over arms of what each would cost.  With contexts it is
    simulated, and run i meets the contexts that run i of ``simulate`` meets.

    >>> from dpbandits.environments import Bernoulli
    >>> regret_at_random(Bernoulli([0.9, 0.5]), 100, runs=2, seed=0).round(9)
    array([20., 20.])
    """
    if isinstance(environment, ArmsEnvironment):
        cost = environment.kernels.regret
        lost = [cost(environment.state, arm, 0, horizon) for arm in range(environment.n_arms)]
        return np.full(runs, float(np.mean(lost)))
    loop = _loop(environment.kernels)
    contexts = np.zeros((environment.n_arms, environment.dimension))
    owners = {"environment": identity(environment.stream_key), "policy": identity(_NAME)}
    lost = []
    for run in range(runs):
        rngs = [stream(seed, name, owner, run) for name, owner in owners.items()]
        lost.append(loop(environment.state, contexts, horizon, *rngs))
    return np.array(lost)
