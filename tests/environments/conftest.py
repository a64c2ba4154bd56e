"""What several tests of environments use: every round as it was shown and answered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from dpbandits.kernel import bind, entry, unbound


class Rounds(NamedTuple):
    contexts: np.ndarray  # (T, K, d)
    hidden: np.ndarray  # (T,)
    rewards: np.ndarray  # (T,)
    regrets: np.ndarray  # (T,)


show = answer = unbound


@entry
def _play(state, view, arms, rng, contexts, hidden, rewards, regrets):
    for t in range(arms.size):
        hidden[t] = show(state, t, view, rng)
        for arm, features in enumerate(view):  # whole slices would take seconds to compile
            for i, value in enumerate(features):
                contexts[t, arm, i] = value
        rewards[t], regrets[t] = answer(state, t, view, hidden[t], arms[t], rng)


@pytest.fixture(scope="session")
def play():
    """``play(environment, arms, seed)``: those arms in turn."""

    def run(environment, arms, seed):
        arms = np.asarray(arms, dtype=np.int64)
        shape = (environment.n_arms, environment.dimension)
        rounds = Rounds(
            np.empty((arms.size, *shape)),
            np.empty(arms.size, dtype=np.int64),
            np.empty(arms.size),
            np.empty(arms.size),
        )
        compiled = bind(_play, show=environment.kernels.show, answer=environment.kernels.answer)
        # What a view held before must not matter.
        compiled(
            environment.state, np.full(shape, np.nan), arms, np.random.default_rng(seed), *rounds
        )
        return rounds

    return run
