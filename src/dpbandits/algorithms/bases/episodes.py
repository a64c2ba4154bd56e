"""Episodes of one arm, whose length is known when they begin; each is released at its end."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...kernel import Kernel, Vector, bind, kernel, unbound
from ...protocol import Row


class Clock(NamedTuple):  # slots of ``public.clock``
    rounds: int = 0  # booked
    arm: int = 1  # of the running episode
    size: int = 2  # its length; 0 before it begins
    done: int = 3  # its booked rounds


class Memo(NamedTuple):  # slots of what is noted of an episode
    arm: int = 0
    size: int = 1


CLOCK, MEMO = Clock(), Memo()


hold_rounds = unbound


@kernel
def _record_pull(params: Any, public: Any, arm: int, x: Row, n: int) -> None:
    """Book rounds of the running episode, whose arm and length stand from its first one on: a round
    may be taken back, and other episodes released, while the choice stands.
    """
    clock = public.clock
    if clock[CLOCK.size] == 0:
        clock[CLOCK.arm], clock[CLOCK.size] = arm, hold_rounds(params, public, arm)
    clock[CLOCK.rounds] += n
    clock[CLOCK.done] += n


def record_pull_of(hold_rounds: Kernel) -> Kernel:
    """``record_pull`` of an algorithm whose episodes are as long as its choices stand."""
    return bind(_record_pull, hold_rounds=hold_rounds)


@kernel
def release_due(params: Any, public: Any) -> bool:
    return public.clock[CLOCK.done] >= public.clock[CLOCK.size] > 0  # size 0: none has begun


@kernel
def close(params: Any, public: Any, memo: Vector) -> None:
    """Note the episode that is over, and count it among ``public.pulls`` of its arm."""
    clock = public.clock
    arm, n = clock[CLOCK.arm], clock[CLOCK.size]
    memo[MEMO.arm], memo[MEMO.size] = arm, n
    public.pulls[arm] += n
    clock[CLOCK.done] = clock[CLOCK.size] = 0


@kernel
def withdraw(params: Any, public: Any, memo: Vector) -> None:
    """Count an episode no more, as it is never released."""
    n = int(memo[MEMO.size])
    public.clock[CLOCK.rounds] -= n
    public.pulls[int(memo[MEMO.arm])] -= n


@kernel
def absorb_rounds(params: Any, public: Any, memo: Vector) -> None:
    """Count the rounds of an episode that another worker has played."""
    n = int(memo[MEMO.size])
    public.clock[CLOCK.rounds] += n
    public.pulls[int(memo[MEMO.arm])] += n
