"""Both sides of an algorithm as its tests look at them: the public side of a policy, single
episodes by kernels alone, and whole runs in the compiled loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpbandits.algorithms import MergedIMED
from dpbandits.policies import Policy
from dpbandits.privacy.ledger import WHOLE, Line
from dpbandits.session.state import State
from dpbandits.simulation.seeding import identity, stream
from dpbandits.simulation.simulating import play


def public_of(policy: Policy) -> Any:
    """What the policy's decisions are made of."""
    return policy.session.state.public


def release_of(policy: Policy) -> np.ndarray:
    """What left the wall last."""
    return policy.session.state.wall.release


def summarised(policy: Policy, state: State) -> np.ndarray:
    """End the episode; its exact statistic."""
    policy.kernels.close(policy.params, state.public, state.memo)
    statistic = np.zeros_like(state.wall.statistic)
    policy.kernels.summarise(policy.params, state.raw, state.public, state.memo, statistic)
    return statistic


def published(policy: Policy, state: State, release: np.ndarray) -> None:
    """The public side takes in what was released of the episode that was ended last."""
    policy.kernels.publish(policy.params, state.public, state.memo, release)


def take_in(params: Any, public: Any, size: int, release: np.ndarray) -> None:
    """A batch of the first arm in the merged values of a policy."""
    MergedIMED.kernels.publish(params, public, np.array([0.0, size]), release)


def crossed(policy: Policy, state: State, rounds: int, rng: np.random.Generator) -> np.ndarray:
    """The release that is due after so many rounds, with noise."""
    steps, wall, public = policy.session.gate.steps, state.wall, state.public
    sides = (policy.params, state.raw, public, state.memo, wall, wall.statistic)
    first, part, bound = steps.end(*sides, rounds)
    assert bound >= 0.0
    ended = (policy.params, public, state.memo, wall, wall.statistic)
    steps.cross(*ended, first, rounds - 1, part, bound, rng)
    return wall.release


def lose_raw_side(policy: Policy) -> None:
    """What becomes of a policy whose release of its first round failed after the draw."""
    line = Line(0, 0, WHOLE, policy.channel.family, 1.0, 1.0, 1)
    policy.session.give_up(line)


def in_the_loop(policy: Policy, world: Any) -> list[int]:
    """The arms that the compiled loop plays in a whole table."""
    marks = np.array([world.horizon])
    return play(policy, world, world.horizon, 0, 0, marks, trace=True).tally.trace.tolist()


def stream_of_the_loop(policy: Policy, name: str) -> np.random.Generator:
    """The random numbers of such a run: "policy" or "privacy"."""
    return stream(0, name, identity(policy.stream_key), 0)


def tireless(device: Any) -> Any:
    """The device, which plays many people here, and would count their reports as those of one."""
    device.left = 10**6
    return device
