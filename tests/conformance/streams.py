"""The compiled loop and ``pull``/``update`` by hand on the same random streams; as a script, prints what both play as JSON."""

from __future__ import annotations

import json

import numpy as np
from suite import CASES, Case

from dpbandits.environments import RewardTable
from dpbandits.policies import Policy
from dpbandits.privacy.ledger import grown
from dpbandits.simulation.loops import DONE, LEDGER_FULL, arms_loop, new_tally
from dpbandits.simulation.seeding import identity, stream

ROUNDS = 3000
SEED = 11


def table(rounds: int = ROUNDS, n_arms: int = 3) -> RewardTable:
    """Rewards 0 or 1, so that sums are exact in any order."""
    return RewardTable((np.random.default_rng(1).random((rounds, n_arms)) < [0.7, 0.5, 0.3][:n_arms]).astype(float))


def looped(policy: Policy, world: RewardTable, max_hold: int = 1 << 62) -> list[int]:
    """The arms that the loop plays, read off the tally at every pause."""
    loop, owner = arms_loop(policy.kernels, world.kernels), identity(policy.stream_key)
    raw, public, wall = policy.new_state()
    tally = new_tally(np.array([world.horizon]), policy.n_arms)
    rngs = [stream(SEED, name, owner, 0) for name in ("environment", "policy", "privacy")]
    arms: list[int] = []
    status = -1
    while status != DONE:
        before = tally.counts.copy()
        until = int(tally.cursor[0]) + 1
        bounds = (False, *policy.reward_range)
        status = loop(policy.params, raw, public, wall, world.state, tally, bounds, world.horizon, until, max_hold, *rngs)
        if status == LEDGER_FULL:
            wall = wall._replace(ledger=grown(wall.ledger))
        played = tally.counts - before
        assert np.count_nonzero(played) <= 1
        arms += [int(played.argmax())] * int(played.sum())
    return arms


def by_hand(policy: Policy, world: RewardTable) -> list[int]:
    """The arms of ``pull`` and ``update`` with the loop's random streams."""
    owner = identity(policy.stream_key)
    if policy.budget is not None:
        policy._privacy_rng = stream(SEED, "privacy", owner, 0)
    if policy.card.randomised:
        policy._choice_rng = stream(SEED, "policy", owner, 0)
    rewards = np.diff(world.state.prefix, axis=0)
    arms = []
    for row in rewards:
        decision = policy.pull()
        policy.update(row[decision], decision)
        arms.append(decision.arm)
    return arms


def both(case: Case, rounds: int = ROUNDS) -> tuple[list[int], list[int]]:
    world = table(rounds)
    return looped(case.make(), world), by_hand(case.make(), world)


if __name__ == "__main__":
    print(json.dumps({str(case): both(case, 600 if case.cls.card.learns_at_once else ROUNDS) for case in CASES}))
