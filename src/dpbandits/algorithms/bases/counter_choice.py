"""How a policy's running sum is released: which counter, for how many releases, and how large its
noise is.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NoReturn

from ...errors import ArgumentError
from ...policies import Policy
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
from ...privacy.secure import integer_counter
from ...validation import choice, integer

MOST_ROUNDS = 10**12
_FEW = 4096  # releases whose noise may be kept

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
    name: str | None, horizon: int | None, channel: Channel, *, secure: bool
) -> Counter:
    """The counter that a policy's arguments ask for.

    By default the one with the least noise: square-root Toeplitz noise, or its approximation in
    constant memory for many releases, where noise is Gaussian (a tree under secure noise); the
    better of a tree and independent noise where it is Laplace.

    Raises:
        ArgumentError: the counter needs a horizon, or has no noise of the channel's family.
    """
    if isinstance(channel, Open):
        return Independent(None)
    if name is None and horizon is not None:
        name = _best(horizon, channel, secure)
    if name == "hybrid":
        return HybridTree()
    if horizon is None or name is None:
        raise ArgumentError(
            "horizon must be an upper bound on the number of rounds unless counter is 'hybrid', got"
            " None",
            "horizon",
        )
    counter: Counter = COUNTERS[name](horizon)
    if channel.norm == 1 and not counter.pure:
        _refuse(name, [other for other, cls in COUNTERS.items() if cls.pure], "with Laplace noise")
    if secure and name not in _IN_INTEGERS:
        _refuse(name, _IN_INTEGERS, "with secure noise, whose sums are integers")
    return integer_counter(counter) if secure else counter


def _refuse(name: str, fitting: Iterable[str], where: str) -> NoReturn:
    raise ArgumentError(
        f"counter must be one of {', '.join(map(repr, fitting))} {where}, got {name!r}", "counter"
    )


def _best(horizon: int, channel: Channel, secure: bool) -> str:
    if not isinstance(channel, Laplace):
        return "toeplitz" if horizon <= _FEW else "tree" if secure else "buffered"
    # The refined tree has no form in integers.
    names = ("tree", "independent") if secure else ("honaker", "tree", "independent")
    return min(names, key=lambda name: COUNTERS[name](horizon).max_variance(horizon, channel.norm))


def noise_std(counter: Counter, channel: Channel, releases: int) -> float:
    """The largest standard deviation, over so many releases, of the noise on one coordinate of the
    running sum, in units of the scale of a release by itself.
    """
    if isinstance(channel, Open):
        return 0.0
    most = min(releases, counter.horizon or releases)
    return counter.max_variance(most, channel.norm) ** 0.5


class RunningSumPolicy(Policy):
    """The base of policies that release a running sum with a counter."""

    _horizon: int | None = None
    _counting: str | None = None

    def _released(self, horizon: int | None, counter: str | None) -> dict[str, Any]:
        """Check and keep the arguments of the running sum."""
        self._horizon = None if horizon is None else integer("horizon", horizon, 1, MOST_ROUNDS)
        self._counting = None if counter is None else choice("counter", counter, tuple(COUNTERS))
        if self._counting == "hybrid" and horizon is not None:
            raise ArgumentError(
                f"horizon must be None with counter='hybrid', which never ends, got {horizon!r}",
                "horizon",
            )
        return {"horizon": self._horizon, "counter": self._counting}

    @property
    def _releases(self) -> int | None:
        """How many releases are planned for; None for any number."""
        return self._horizon

    @cached_property
    def _counter(self) -> Counter:
        return counter_for(self._counting, self._releases, self.channel, secure=self.grid > 0.0)

    @property
    def _noise_std(self) -> float:
        """The largest standard deviation of the noise on a coordinate of the running sum."""
        scale = self.channel.scale(self.statistic.max_sensitivity)
        return scale * noise_std(self._counter, self.channel, self._releases or MOST_ROUNDS)

    @property
    def _widest(self) -> float:
        """The largest scale of a noise variable in any running sum."""
        releases = self._releases or MOST_ROUNDS
        return self.noise_scale * self._counter.widening(releases, self.channel.norm)
