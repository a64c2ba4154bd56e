"""The compiled loop and ``pull``/``update`` by hand on the same random streams."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..calls import addresses_of
from ..environments import AdviceTable, ContextTable, RewardTable
from ..kernel import Kernel, interpreted
from ..policies import Policy
from ..session.steps import Steps, release_of
from ..simulation.clipping import Entering
from ..simulation.loops import arms_loop, context_loop
from ..simulation.seeding import identity, stream
from ..simulation.tally import DONE, LEDGER_FULL, new_tally
from .walk import contexts_of, require

ROUNDS = 3000
SEED = 11
Table = RewardTable | ContextTable | AdviceTable


def table(policy: Policy, rounds: int = ROUNDS) -> Table:
    """Rewards 0 or 1 of a kind that the policy meets; sums of them are exact in any order."""
    rng, contexts = np.random.default_rng(1), contexts_of(policy)
    if contexts is None or policy.sees == "advice":
        means = np.linspace(0.7, 0.3, policy.n_arms)
        rewards = (rng.random((rounds, policy.n_arms)) < means).astype(float)
        if contexts is None:
            return RewardTable(rewards)
        return AdviceTable(contexts[:rounds].swapaxes(1, 2), rewards)
    contexts = contexts[:rounds]
    means = 0.5 + 0.5 * contexts[:, :, 0]
    return ContextTable(contexts, (rng.random(means.shape) < means).astype(float), means)


def looped(policy: Policy, world: Table, *, compiled: bool = True) -> list[int]:
    """The arms that the loop plays."""
    template: Any = arms_loop if isinstance(world, RewardTable) else context_loop
    own = release_of(policy.driven, policy.mechanism, inside=policy.card.learns_at_once)
    loop: Kernel = template(policy.driven, own, world.kernels)
    run = loop if compiled else interpreted(loop)
    horizon, rngs, state = int(world.horizon or 0), streams_of(policy), policy.new_state()
    drawn = [addresses_of(rng) for rng in rngs] if compiled else rngs
    tally = new_tally(np.array([horizon]), policy.n_arms, trace=horizon)
    bounds = Entering(False, *policy.reward_range)

    def go_on() -> int:
        sides = (policy.params, state.raw, state.public, state.memo, state.wall)
        if isinstance(world, RewardTable):
            longest = 1 if policy.takes_each_reward else 1 << 62
            return run(sides, (world.state, tally, bounds, horizon, longest, horizon), *drawn)
        contexts = np.zeros((policy.n_arms, policy.dimension))
        shown = (np.zeros(0), tally, contexts, np.zeros_like(contexts), True)
        return run(sides, (world.state, *shown, bounds, horizon, horizon), *drawn)

    while (status := go_on()) != DONE:
        require(status == LEDGER_FULL, "sensitivity: it is no positive number")
        state.make_room()
    arms = tally.trace
    counts = np.bincount(arms, minlength=policy.n_arms).tolist()
    require(counts == tally.counts.tolist(), "the loop has counted other arms than it played")
    return arms.tolist()


def streams_of(policy: Policy) -> list[np.random.Generator | None]:
    """The streams for the environment, for choices and for noise, as in ``simulate``."""
    owner = identity(policy.stream_key)
    choices = stream(SEED, "policy", owner, 0) if policy.card.randomised else None
    return [stream(SEED, "environment", 0, 0), choices, stream(SEED, "privacy", owner, 0)]


def by_hand(policy: Policy, world: Table, *, compiled: bool = True) -> list[int]:
    """The arms of ``pull`` and ``update`` with the loop's random streams."""
    session = policy.session
    _, session.state.choice_rng, noise = streams_of(policy)
    if policy.budget is not None:
        session.state.noise_rng = noise
    if not compiled:
        session.gate.steps = Steps(*map(interpreted, session.gate.steps))
    if isinstance(world, AdviceTable):
        shown, rewards = list(world.state.contexts.swapaxes(1, 2)), world.state.rewards
    elif isinstance(world, ContextTable):
        shown, rewards = list(world.state.contexts), world.state.rewards
    else:
        rewards = np.diff(world.state.prefix, axis=0)
        shown = [None] * len(rewards)
    arms = []
    for contexts, row in zip(shown, rewards, strict=True):
        decision = policy.pull(contexts)
        policy.update(row[decision], decision)
        arms.append(decision.arm)
    return arms
