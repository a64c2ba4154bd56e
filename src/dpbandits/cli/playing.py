"""Short plays of any policy: what compiles its kernels, and what makes an example of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..policies import Policy

_MOST_ROUNDS = 20_000  # until a release


def play(policy: Policy, rounds: int = 1) -> None:
    """Answer so many pulls, and further ones until there is a release; with ``patience`` a pull
    late.
    """
    contexts, waiting = _contexts(policy), []
    for played in range(_MOST_ROUNDS):
        if played >= rounds and policy.ledger.releases:
            return
        waiting.append(policy.pull(contexts))
        if len(waiting) > bool(policy.patience):
            policy.update(policy.reward_range[played % 2], waiting.pop(0))


def _contexts(policy: Policy) -> Any:
    """What ``pull`` takes."""
    if policy.sees == "advice":
        return np.full((policy.dimension, policy.n_arms), 1.0 / policy.n_arms)
    if policy.sees:
        return np.full((policy.n_arms, policy.dimension), policy.dimension**-0.5)
    return None
