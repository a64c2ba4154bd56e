"""The rounds of policies that release when an episode is over: once its answers are there, or in
time for the next one, which begins at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..protocol import nothing_to_note
from ..stores import User
from .choices import serves
from .open_arms import Mask, row
from .rounds import Choice, Pending
from .running import AllOrNothing, Running


def pull(
    running: Running, shown: Any, user: User | None, open_arms: Mask
) -> tuple[Choice, Pending | None]:
    """A choice for a person, and its round, if that is recorded."""
    rounds = running.rounds
    waits = rounds.release_due and not rounds.exhausted and not _end_in_time(running)
    choice, left = rounds.current_choice, rounds.left
    closed = open_arms is not None and left > 0 and not serves(choice, open_arms)
    if waits or rounds.exhausted or closed:
        return running.choices.standing(choice, shown, open_arms), None
    if left == 0:
        choice, left = running.choices.fresh(shown, open_arms)
    arm = choice.arm
    if not running.counts(user, arm):
        return choice, None
    if rounds.left == 0:
        rounds.held, rounds.drawn = left, rounds.pulls
    # An interrupt may have left an episode that is full, but not due.
    rounds.current_choice, rounds.left = choice, max(left - 1, 0)
    x = row(shown, arm)
    rounds.release_due = running.advance(arm, x, 1)
    rounds.recorded += 1
    if not running.card.hides_contexts:
        rounds.book(arm, x, 1, len(running.exchange.made))
    return choice, running.pending(choice, x, shown)


def release_passed(running: Running) -> None:
    """Release the episodes that are past their deadlines."""
    if running.rounds.flights:
        _land(running, running.rounds.deadlines.passed)
    rounds = running.rounds
    if rounds.release_due and not rounds.exhausted and rounds.is_past_deadline():
        _end(running)


def is_over(running: Running, number: int) -> bool:
    """Whether ``finish`` would release a recorded pull.  Whether its answer has come makes no
    difference, so public numbers decide.
    """
    rounds = running.rounds
    return rounds.release_due or any(number < flight.before for flight in rounds.flights.values())


def finish(running: Running) -> bool:
    """Release all that is over; whether there was anything."""
    rounds = running.rounds
    due, waiting = rounds.release_due and not rounds.exhausted, bool(rounds.flights)
    _land(running, math.inf)
    if due and not running.rounds.exhausted:
        _end(running)
    return due or waiting


def take(
    running: Running, number: int, pending: Pending, value: float | None, done: int | None
) -> bool:
    """Take in the answer to a pull, where ``done`` is the arm that was openly taken instead."""
    rounds, intake = running.rounds, running.intake
    del rounds.pending[number]
    if done is not None:
        take_back(running, pending)
        return False
    intake.take(pending, intake.entering(value, rounds))
    return True


def receive_sum(running: Running, total: float) -> bool:
    """Take in the noisy sum of all rounds of the coming choice; whether it is learned from."""
    running.gate.refuse_fork()
    if running.rounds.exhausted:
        return False
    with AllOrNothing(running):
        choice, n = running.coming()
        due = running.advance(choice.arm, 0, n)
        running.rounds.recorded += n
        running.rounds.book(choice.arm, 0, n, len(running.exchange.made))
        running.intake.take(Pending(choice.arm), total, n)
        if due:
            _end(running)
    return True


def take_back(running: Running, pending: Pending) -> None:
    """It is public that the arm of a pull was not taken: the episode lasts one round longer."""
    arm, rounds, x = pending.arm, running.rounds, pending.weights
    rounds.release_due = running.advance(arm, x, -1)
    # The next pull of a policy with contexts sees other ones, and chooses anew.
    rounds.take_back(arm, pending.weights, anew=isinstance(x, np.ndarray))
    running.fill()


# Ends -----------------------------------------------------------------------------------------


def _end_in_time(running: Running) -> bool:
    """End the episode that is over, and return whether it is: it may wait for answers."""
    rounds, gate = running.rounds, running.gate
    if rounds.deadlines.within is None:
        if rounds.awaited(gate.part(running.state)):
            return False
        _end(running)
        return True
    if gate.kernels.close is nothing_to_note:
        return False  # until a tick finds it past its deadline
    _take_off(running)
    return True


def _end(running: Running) -> None:
    """End the episode, with the default for missing answers, and release it."""
    running.gate.refuse_fork()
    part, rounds = running.gate.part(running.state), running.rounds
    for number in rounds.awaited(part):
        # Taken out first: an interrupt may lose a default, and may not let one enter twice.
        running.intake.take(rounds.pending.pop(number), running.intake.substitute())
    rounds.close(rounds.pulls)
    with AllOrNothing(running):
        running.release()
        running.rounds.cover(part)


def _take_off(running: Running) -> None:
    """End the episode, and leave it open for answers."""
    running.gate.refuse_fork()
    with AllOrNothing(running):
        running.refuse_overspending()
        ended = running.gate.end(running.state, running.rounds.recorded)
        running.rounds.take_off(ended)


def _land(running: Running, passed: float) -> None:
    """Release the episodes that only cover pulls before this one."""
    rounds = running.rounds
    while (flight := rounds.next_flight) is not None and flight.before <= passed:
        running.gate.refuse_fork()
        rounds.close(flight.before)
        for number in reversed(flight.pulls):
            if number in rounds.flown:
                _, pending = rounds.take_out(number)
                running.intake.take_late(flight, pending, running.intake.substitute())
        with AllOrNothing(running):
            running.gate.cross(running.state, flight.ended)
            rounds.land()
            running.released(flight.ended.memo, flight.booked)
