"""The release of a running sum: its counter, its number of releases, and its noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...constraints import Choice, Constraints, Integer
from ...errors import ArgumentError
from ...privacy.channels import Channel, Laplace, Open
from ...privacy.continual import (
    BinaryTree,
    BufferedToeplitz,
    Counter,
    HonakerTree,
    HybridTree,
    Independent,
    SqrtToeplitz,
)
from ...privacy.continual.toeplitz import ROOM
from ...privacy.secure_sum import integer_counter

MOST_ROUNDS = 10**12
# Releases whose noise may be kept.  Secure square-root noise takes all exact summands, too, which a
# store writes at every release: 10 MB for 60,000 of five numbers.  Saved policies go by this rule,
# too, because they keep None: with another limit they would go on with another counter.
_FEW = 4096

COUNTERS: dict[str, Any] = {
    "tree": BinaryTree,
    "honaker": HonakerTree,
    "toeplitz": SqrtToeplitz,
    "buffered": BufferedToeplitz,
    "hybrid": HybridTree,
    "independent": Independent,
}

_IN_INTEGERS = ("tree", "toeplitz", "hybrid", "independent")


def counter_for(
    name: str | None, horizon: int | None, channel: Channel, *, secure: bool, size: int = 1
) -> Counter:
    """The counter that a policy's arguments ask for, for sums of ``size`` numbers.

    By default the one with the least noise.  For Gaussian noise that is square-root Toeplitz noise,
    or its approximation in constant memory for many releases or long sums; under secure noise a
    tree instead of that.  For Laplace noise it is the better of a tree and independent noise.

    Raises:
        ArgumentError: the arguments do not fit each other, or the memory of the counter is too
            large.
    """
    if isinstance(channel, Open):
        return Independent(None)
    if name is None and horizon is not None:
        name = _best(horizon, channel, secure, size)
    if name == "hybrid":
        return HybridTree()
    if horizon is None or name is None:
        raise ArgumentError(
            "horizon must be given as the largest number of rounds, unless counter='hybrid'",
            "horizon",
        )
    counter: Counter = COUNTERS[name](horizon)
    if channel.norm == 1 and not counter.pure:
        fitting = ", ".join(repr(other) for other, cls in COUNTERS.items() if cls.pure)
        raise ArgumentError(
            f"counter must be one of {fitting} with Laplace noise, got {name!r}", "counter"
        )
    if isinstance(counter, SqrtToeplitz):
        counter.require_room(size)
    return integer_counter(counter) if secure else counter


def secure_counter(name: str | None) -> tuple[str, str]:
    """The counter that secure noise needs instead, and why; empty where this one will do."""
    if name is None or name in _IN_INTEGERS:
        return "", ""
    only = ", ".join(map(repr, _IN_INTEGERS))
    return "counter='tree'", f"only the counters {only} add integers"


def _best(horizon: int, channel: Channel, secure: bool, size: int) -> str:
    if not isinstance(channel, Laplace):
        kept = horizon <= _FEW and horizon * size <= ROOM
        return "toeplitz" if kept else "tree" if secure else "buffered"
    # The refined tree has no form in integers.
    names = ("tree", "independent") if secure else ("honaker", "tree", "independent")
    return min(names, key=lambda name: COUNTERS[name](horizon).max_variance(horizon, channel.norm))


RUNNING_SUM: Constraints = {
    "horizon": Integer(1, MOST_ROUNDS) | None,
    "counter": Choice(*COUNTERS) | None,
}


def running_sum(horizon: int | None, counter: str | None) -> dict[str, Any]:
    """The arguments of a running sum, which have to fit each other."""
    if counter == "hybrid" and horizon is not None:
        raise ArgumentError(
            f"horizon must be None with counter='hybrid', got {horizon!r}: this counter never ends",
            "horizon",
        )
    return {"horizon": horizon, "counter": counter}


@dataclass(frozen=True)
class Plan:
    """How a running sum is released."""

    counter: Counter  # which makes its noise
    releases: int | None  # that are planned for; None for any number

    def noise_std(self, channel: Channel, sensitivity: float) -> float:
        """The largest standard deviation of the noise on a coordinate of the running sum."""
        if isinstance(channel, Open):
            return 0.0
        most = self.releases or MOST_ROUNDS
        variance = self.counter.max_variance(min(most, self.counter.horizon or most), channel.norm)
        return float(channel.scale(sensitivity) * variance**0.5)

    def widest(self, channel: Channel, scale: float) -> float:
        """The largest scale of a noise variable in any running sum, for that of one by itself."""
        return float(scale * self.counter.widening(self.releases or MOST_ROUNDS, channel.norm))
