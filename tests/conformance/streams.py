"""The compiled loop and ``pull``/``update`` by hand on the same random streams; as a script, prints
what both play as JSON.
"""

from __future__ import annotations

import json

import numpy as np
from suite import CASES, Case, contexts_of

from dpbandits.environments import AdviceTable, ContextTable, RewardTable
from dpbandits.kernel import Kernel
from dpbandits.policies import AdvicePolicy, Policy
from dpbandits.simulation.contexts import context_loop
from dpbandits.simulation.loops import arms_loop, new_tally
from dpbandits.simulation.running import play
from dpbandits.simulation.seeding import identity, stream

ROUNDS = 3000
SEED = 11
Table = RewardTable | ContextTable | AdviceTable


def table(policy: Policy, rounds: int = ROUNDS) -> Table:
    """Rewards 0 or 1 of a kind that the policy meets; sums of them are exact in any order."""
    rng, contexts = np.random.default_rng(1), contexts_of(policy)
    if contexts is None or isinstance(policy, AdvicePolicy):
        rewards = (rng.random((rounds, policy.n_arms)) < [0.7, 0.5, 0.3][: policy.n_arms]).astype(
            float
        )
        return (
            RewardTable(rewards)
            if contexts is None
            else AdviceTable(contexts[:rounds].swapaxes(1, 2), rewards)
        )
    contexts = contexts[:rounds]
    means = 0.5 + 0.5 * contexts[:, :, 0]
    return ContextTable(contexts, (rng.random(means.shape) < means).astype(float), means)


class Run:
    """The compiled loop in a table, from the start and in pieces; ``loop`` is another one than the
    policy's own.
    """

    def __init__(
        self,
        policy: Policy,
        world: Table,
        rngs: list[np.random.Generator],
        loop: Kernel | None = None,
    ) -> None:
        self.policy, self.world, self.rngs = policy, world, rngs
        self.raw, self.public, self.wall = policy.new_state()
        self.tally = new_tally(np.array([world.horizon]), policy.n_arms)
        self.loop = loop or loop_in(policy, type(world))

    def until(self, pause: int, horizon: int | None = None) -> int:
        """Go on to a round, or stop at the horizon; how the loop ended."""
        bounds, horizon = (False, *self.policy.reward_range), horizon or self.world.horizon
        state = (self.policy.params, self.raw, self.public, self.wall, self.world.state)
        if isinstance(self.world, RewardTable):
            return self.loop(*state, self.tally, bounds, horizon, pause, 1 << 62, *self.rngs)
        view = np.zeros((self.policy.n_arms, self.policy.dimension))
        seen = np.zeros_like(view)
        return self.loop(
            *state, np.zeros(0), self.tally, view, seen, True, bounds, horizon, pause, *self.rngs
        )

    @property
    def rounds(self) -> int:
        return int(self.tally.cursor[0])


def loop_in(policy: Policy, kind: type[Table]) -> Kernel:
    bound = arms_loop if kind is RewardTable else context_loop
    return bound(policy.kernels, kind.kernels)


def looped(policy: Policy, world: Table, *, round_by_round: bool = False) -> list[int]:
    """The arms that the loop plays."""
    horizon = world.horizon
    run = play(
        policy,
        world,
        horizon,
        0,
        SEED,
        np.array([horizon]),
        round_by_round=round_by_round,
        trace=True,
    )
    arms = run.tally.trace
    assert np.bincount(arms, minlength=policy.n_arms).tolist() == run.tally.counts.tolist()
    return arms.tolist()


def by_hand(policy: Policy, world: Table) -> list[int]:
    """The arms of ``pull`` and ``update`` with the loop's random streams."""
    owner = identity(policy.stream_key)
    if policy.budget is not None:
        policy._privacy_rng = stream(SEED, "privacy", owner, 0)
    if policy.card.randomised:
        policy._choice_rng = stream(SEED, "policy", owner, 0)
    if isinstance(world, AdviceTable):
        views, rewards = list(world.state.advice.swapaxes(1, 2)), world.state.rewards
    elif isinstance(world, ContextTable):
        views, rewards = list(world.state.contexts), world.state.rewards
    else:
        rewards = np.diff(world.state.prefix, axis=0)
        views = [None] * len(rewards)
    arms = []
    for view, row in zip(views, rewards, strict=True):
        decision = policy.pull(view)
        policy.update(row[decision], decision)
        arms.append(decision.arm)
    return arms


def both(case: Case, rounds: int = ROUNDS) -> tuple[list[int], list[int]]:
    world = table(case.make(), rounds)
    return looped(case.make(), world), by_hand(case.make(), world)


if __name__ == "__main__":
    print(
        json.dumps(
            {
                str(case): both(case, 600 if case.cls.card.learns_at_once else ROUNDS)
                for case in CASES
            }
        )
    )
