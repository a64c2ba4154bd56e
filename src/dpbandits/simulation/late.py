"""Simulations in which answers are late: the policy itself is played, pull by pull, as a service
would, at some ten microseconds a round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from heapq import heappop, heappush
from typing import Any

import numpy as np

from ..environments import LoggedTrial
from ..environments.base import ArmsEnvironment, World
from ..environments.delays import NEVER
from ..errors import BudgetExhausted
from ..policies import Decision, Policy
from .tally import CURSOR, Tally

Answering = Callable[[int], tuple[Any, Callable[[int], tuple[float, float]]]]


def play_late(
    policy: Policy,
    environment: World,
    tally: Tally,
    horizon: int,
    world: np.random.Generator,
    delays: np.ndarray,
    look: Callable[[int], None] | None = None,
) -> None:
    """Play to the horizon, with an answer ``delays[t]`` pulls late to the t-th pull.  A policy with
    a clock sees the time of each, by the rate of the environment's delay.  ``look`` is called with
    each recorded round.
    """
    show = _shown_by(environment, policy.sees == "advice", world)
    attendance = getattr(environment, "attendance", None)
    waiting: list[tuple[int, int, float, Decision]] = []
    rate = environment.delay.rate if environment.delay and policy.settings.uses_clock else None
    mark = 0
    for t in range(horizon):
        at = None if rate is None else t / rate
        while waiting and waiting[0][0] <= t:
            _, _, reward, asked = heappop(waiting)
            policy.update(reward, asked, at=at)
        contexts, answer = show(t)
        user = t if attendance is None else int(attendance[t])
        named = None if policy.max_rounds is None else user
        decision = policy.pull(contexts, user=named, at=at)
        reward, regret = answer(decision.arm)
        if policy.clip:
            reward = min(max(reward, policy.reward_range[0]), policy.reward_range[1])
        if delays[t] != NEVER:
            # The number of the pull decides between equal times: decisions cannot be compared.
            heappush(waiting, (t + 1 + int(delays[t]), t, reward, decision))
        tally.sums[0] += regret
        tally.sums[1] += reward
        tally.counts[decision.arm] += 1
        if tally.trace.size:
            tally.trace[t] = decision.arm
        if tally.marks[mark] == t + 1:
            tally.curve[mark] = tally.sums[0]
            mark += 1
            if look is not None:
                look(t + 1)
        if tally.cursor[CURSOR.stopped] == 0 and policy.stopped:
            tally.cursor[CURSOR.stopped] = t


def replay_late(policy: Policy, log: LoggedTrial, order: np.ndarray, limit: int) -> np.ndarray:
    """Replay a log with times: the people whose rounds counted.

    A policy in charge would have asked everybody.  So the n-th counted round is at the time of the
    log's n-th question, and its person answers as late after it as in the log.
    """
    assert log.times is not None
    assert log.waits is not None
    clock, (low, high) = policy.settings.uses_clock, policy.reward_range
    times, counted = log.times.tolist(), list[int]()
    waiting: list[tuple[float, int, float, Decision]] = []
    people = iter(order.tolist())
    while len(counted) < limit:
        now, number = times[len(counted)], len(counted)
        while waiting and waiting[0][0] <= now:
            at, _, reward, asked = heappop(waiting)
            with suppress(BudgetExhausted):  # nothing more is released
                policy.update(reward, asked, at=at if clock else None)
        user = None if policy.max_rounds is None else number
        try:
            decision = policy.pull(user=user, at=now if clock else None)
        except BudgetExhausted:
            decision = policy.pull(user=user, at=now if clock else None)
        person = next((one for one in people if log.arms[one] == decision.arm), None)
        if person is None:
            break
        counted.append(person)
        reward, wait = float(log.rewards[person]), float(log.waits[person])
        reward = min(max(reward, low), high) if policy.clip else reward
        if wait < math.inf:
            heappush(waiting, (now + wait, number, reward, decision))
    return np.array(counted, np.int64)


def _shown_by(environment: World, advice: bool, rng: np.random.Generator) -> Answering:
    """The contexts of a round, and its answer to an arm: the reward and the regret."""
    state = environment.state
    if isinstance(environment, ArmsEnvironment):
        draw, regret = environment.kernels

        def show_nothing(t: int) -> Any:
            return None, lambda arm: (draw(state, arm, t, 1, rng), regret(state, arm, t, 1))

        return show_nothing
    show, answer = environment.kernels
    contexts = np.zeros((environment.n_arms, environment.dimension))

    def show_contexts(t: int) -> Any:
        hidden = show(state, t, contexts, rng)
        seen = contexts.T if advice else contexts
        return seen, lambda arm: answer(state, t, contexts, hidden, arm, rng)

    return show_contexts
