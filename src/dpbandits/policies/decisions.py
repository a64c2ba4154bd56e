"""What a pull returns, and where a policy stands between two calls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np


class Decision:
    """One pull: the arm, and what is needed to answer it.  It works as an index:
        ``outcomes[decision]``.

    Attributes:
        arm: which arm to play, from 0.
        propensity: the probability with which it was chosen; None where it has no closed form.
        recorded: False if the policy will not learn from this round.
        number: the running number of the pull, from 0.
    """

    __slots__ = ("_owner", "arm", "number", "propensity", "recorded")

    def __init__(
        self, arm: int, propensity: float | None, number: int, recorded: bool, owner: str
    ) -> None:
        self.arm, self.propensity, self.number, self.recorded, self._owner = (
            arm,
            propensity,
            number,
            recorded,
            owner,
        )

    def __index__(self) -> int:
        return self.arm

    def __repr__(self) -> str:
        return (
            f"Decision(arm={self.arm}, propensity={self.propensity}, number={self.number},"
            f" recorded={self.recorded})"
        )


@dataclass
class Progress:
    """Where a policy stands between two calls.

    Who has answered and when (``pending``, ``dropped``) is not public: good answers may come sooner
    than bad ones.
    """

    rounds: int = 0  # recorded so far
    pulls: int = 0  # recorded or not
    closed: int = 0  # answers to pulls before this one come too late
    dropped: int = 0  # answers that were not used
    left: int = 0  # rounds for which the standing choice still stands
    waited: int = 0  # pulls since the episode ended
    release_due: bool = False  # a release is
    exhausted: bool = False  # the budget is
    standing: tuple[int, float] = (0, 1.0)  # arm and propensity
    pending: dict[int, int] = field(default_factory=dict)  # pull -> arm, for answers to come
    # arm -> rounds that no release has covered
    booked: dict[int, int] = field(default_factory=dict)
    # pull -> features: of its arm (1, d), or of all (K, d)
    contexts: dict[int, np.ndarray] = field(default_factory=dict)
    # (d,) sum of the features of all booked rounds
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def copy(self) -> Progress:
        """The same, with dictionaries of its own; arrays in it are never changed in place."""
        return replace(
            self, pending=dict(self.pending), booked=dict(self.booked), contexts=dict(self.contexts)
        )
