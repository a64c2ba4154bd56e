"""The rounds of policies that learn from every answer, and release it: in the order in which
answers come, or with ``answers_within`` in that of pulls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..protocol import NO_ARM
from ..stores import User
from .open_arms import Mask, row
from .rounds import Choice, Pending
from .running import AllOrNothing, Running


def pull(
    running: Running, shown: Any, user: User | None, open_arms: Mask
) -> tuple[Choice, Pending | None]:
    """A choice for a person, and its round, if that is recorded."""
    rounds, found = running.rounds, running.choices.found()
    if found is not None:
        return running.choices.standing(found, shown, open_arms), None
    choice, _ = running.choices.fresh(shown, open_arms)
    if rounds.exhausted or not running.counts(user, choice.arm):
        return choice, None
    return choice, running.pending(choice, row(shown, choice.arm), shown)


def release_passed(running: Running) -> None:
    """Learn from the pulls that are past their deadline."""
    if running.rounds.deadlines.within:
        _take_in(running, running.rounds.deadlines.passed)


def is_over(running: Running, number: int) -> bool:
    """Whether ``finish`` would take in a recorded pull, whether its answer has come or not."""
    return bool(running.rounds.deadlines.within)


def finish(running: Running) -> bool:
    """Wait for no other pull; whether there was anything to learn."""
    if not (running.rounds.deadlines.within and running.rounds.pending):
        return False
    _take_in(running, running.rounds.pulls)
    return True


def take(
    running: Running, number: int, pending: Pending, value: float | None, done: int | None
) -> bool:
    """Take in the answer to a pull, where ``done`` is the arm that was openly taken instead."""
    if done is not None:
        pending = pending._replace(arm=done, weights=row(pending.contexts, done))
    if not running.rounds.deadlines.within:
        return _learn(running, number, pending, value)
    rounds = running.rounds
    rounds.pending[number] = pending
    rounds.answers[number] = running.intake.entering(value, rounds)
    return not rounds.exhausted


def take_back(running: Running, pending: Pending) -> None:
    """It is public that the arm of a pull was not taken: nothing was counted yet."""


def receive(running: Running, report: np.ndarray) -> bool:
    """Take in a report from the device of a person without a pull.  Returns whether the policy
    learns from it.
    """
    rounds = running.rounds
    number, pending = rounds.pulls, Pending(NO_ARM, report)
    rounds.pulls += 1
    rounds.pending[number] = pending
    try:
        return _learn(running, number, pending, 0.0)
    finally:
        running.rounds.pending.pop(number, None)  # which a refused one would stay in


def _take_in(running: Running, before: int) -> None:
    """Learn from pulls before this one, in their order, with answer or default."""
    rounds = running.rounds
    while rounds.pending and (number := next(iter(rounds.pending))) < before:
        rounds.close(number + 1)
        # As it entered when it came: to clip and round it once more changes nothing.
        _learn(running, number, rounds.pending[number], rounds.answers.get(number))
        rounds.answers.pop(number, None)


def _learn(running: Running, number: int, pending: Pending, value: float | None) -> bool:
    rounds, state, gate = running.rounds, running.state, running.gate
    gate.refuse_fork()
    if rounds.exhausted:
        del rounds.pending[number]
        return False
    if gate.needs_care(state):
        with AllOrNothing(running):
            _absorb(running, number, pending, value)
    else:
        del rounds.pending[number]
        rounds.recorded += 1
        answer = (*pending[:2], running.intake.entering(value, rounds))
        gate.absorb_and_release(state, answer, rounds.recorded)
        running.end_search()
    return True


def _absorb(running: Running, number: int, pending: Pending, value: float | None) -> None:
    gate, rounds, state = running.gate, running.rounds, running.state
    del rounds.pending[number]
    rounds.recorded += 1
    x = pending.weights
    x = x.copy() if isinstance(x, np.ndarray) else x  # which ``weigh`` may change
    value = running.intake.entering(value, rounds)
    if gate.steps.absorb(gate.params, state.raw, state.public, pending.arm, x, value):
        running.release()
