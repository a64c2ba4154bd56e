"""How a policy's running sum is released: which counter, for how many releases, and how large its noise is."""

from __future__ import annotations

from ..errors import ArgumentError
from ..privacy.channels import Channel, Laplace, Open
from ..privacy.continual import BinaryTree, BufferedToeplitz, Counter, HonakerTree, HybridTree, Independent, SqrtToeplitz

COUNTERS: dict[str, type[Counter]] = {
    "tree": BinaryTree,
    "honaker": HonakerTree,
    "toeplitz": SqrtToeplitz,
    "buffered": BufferedToeplitz,
    "hybrid": HybridTree,
    "independent": Independent,
}


def counter_for(name: str | None, horizon: int | None, channel: Channel, *, secure: bool) -> Counter:
    """The counter that a policy's arguments ask for.

    By default a tree for Laplace noise, square-root Toeplitz noise under secure noise, and its approximation in constant memory
    otherwise.

    Raises:
        ArgumentError: the counter needs a horizon, or has no noise of the channel's family.
    """
    if isinstance(channel, Open):
        return Independent(None)
    if name is None:
        name = "tree" if isinstance(channel, Laplace) else "toeplitz" if secure else "buffered"
    if name == "hybrid":
        return HybridTree()
    if horizon is None:
        raise ArgumentError(f"horizon must be an upper bound on the number of rounds for counter={name!r}, got None", "horizon")
    counter = COUNTERS[name](horizon)
    counter.column_norm(channel.norm)  # refuses noise that does not fit
    return counter


def noise_std(counter: Counter, channel: Channel, movement: float, releases: int) -> float:
    """The largest standard deviation, over so many releases, of the noise on one coordinate of the running sum."""
    if isinstance(channel, Open):
        return 0.0
    return channel.scale(movement) * counter.max_variance(releases, norm=channel.norm) ** 0.5
