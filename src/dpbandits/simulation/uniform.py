"""What choosing an arm at random in every round costs: what nobody has learned, loses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..environments import ArmsEnvironment, ContextEnvironment
from ..environments.base import ContextKernels
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


_bound: dict[ContextKernels, Kernel] = {}


def regret_at_random(
    environment: ArmsEnvironment | ContextEnvironment, horizon: int, *, runs: int, seed: int
) -> np.ndarray:
    """The regret of choosing at random, all arms alike.

    Without contexts it is exact: the mean over arms of what each would cost.  With contexts it is
    simulated, and run i meets the contexts that run i of ``simulate`` meets.

    Args:
        environment: what answers.
        horizon: number of rounds.
        runs: how many.
        seed: as ``simulate`` takes it.

    Returns:
        Regret of every run, shape (runs,).

    >>> from dpbandits.environments import Bernoulli
    >>> regret_at_random(Bernoulli([0.9, 0.5]), 100, runs=2, seed=0).round(9)
    array([20., 20.])
    """
    if isinstance(environment, ArmsEnvironment):
        cost = environment.kernels.regret
        lost = [cost(environment.state, arm, 0, horizon) for arm in range(environment.n_arms)]
        return np.full(runs, float(np.mean(lost)))
    kernels = environment.kernels
    if kernels not in _bound:
        steps = {name: inlined(step) for name, step in kernels._asdict().items()}
        _bound[kernels] = bind(_choose_at_random, **steps)
    contexts = np.zeros((environment.n_arms, environment.dimension))
    world, own = identity(environment.stream_key), identity(_NAME)
    return np.array(
        [
            _bound[kernels](
                environment.state,
                contexts,
                horizon,
                stream(seed, "environment", world, run),
                stream(seed, "policy", own, run),
            )
            for run in range(runs)
        ]
    )
