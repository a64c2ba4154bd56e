"""Bugs that are planted, to see whether an audit would notice them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import ArgumentError
from ..kernel import Generator, Kernel, Vector, kernel
from ..policies import Policy
from ..privacy.channels import CERTIFIED, HEMISPHERE, add_noise, draw_noise
from ..privacy.continual import SINGLE, RunningSum
from ..validation import real

READINGS = 4


@kernel
def _redrawn(
    running: RunningSum, family: int, scale: float, exact: Vector, release: Vector, rng: Generator
) -> None:
    """Noise of the right scale, drawn again at every reading.  A running sum gets it at each
    release.  Any other statistic gets it four times, and the policy learns the mean.
    """
    if running.kind != SINGLE:
        running.clock[0] += 1
        for i in range(exact.size):
            running.total[i] += exact[i]
        width = scale * running.column_norm
        add_noise(family, width, running.grid, running.total, release, rng)
        return
    for _ in range(READINGS):
        draw_noise(family, scale, running.grid, release, rng)
        for i in range(exact.size):
            exact[i] += release[i] / READINGS  # it is zeroed after the release
    for i in range(exact.size):
        release[i] = exact[i]


@dataclass(frozen=True)
class Plant:
    """A bug; by default none.

    Attributes:
        title: a description.
        noise: the part of the noise that is left.
        mechanism: releases in the place of the policy's own; None for that one.
        repeats: whether the canary's record is in every later release, too.
        delays: whether the release with it comes a round later in world 1.
        nobody: whether both worlds are the same.  Then there is nothing to find.
    """

    title: str = ""
    noise: float = 1.0
    mechanism: Kernel | None = None
    repeats: bool = False
    delays: bool = False
    nobody: bool = False

    def __post_init__(self) -> None:
        real("noise", self.noise, 0.0, 1e12)


def _add_or_remove(policy: Policy) -> float:
    """The ratio between the sensitivities for an added or removed record and for a replaced one."""
    lo, hi = policy.reward_range
    if not policy.card.hides_contexts:
        return max(abs(lo), abs(hi)) / (hi - lo)
    return 2.0 / 3.0  # sqrt(2) instead of sqrt(4.5): features and rewards of length one


PLANTS: dict[str, Callable[[Policy], Plant]] = {
    "null": lambda _: Plant("both worlds are the same", nobody=True),
    "half": lambda _: Plant("half the noise", noise=0.5),
    "redrawn": lambda _: Plant("noise anew at every reading", mechanism=_redrawn),
    "add-remove": lambda policy: Plant(
        "the sensitivity of adding or removing a record", noise=_add_or_remove(policy)
    ),
    "repeated": lambda _: Plant("a budget for each batch, and records in all", repeats=True),
    "timed": lambda _: Plant("releases come later after high answers", delays=True),
}


def planted(name: str | Plant, policy: Policy) -> Plant:
    """The plant of that name; raises ArgumentError where there is none, or it would be no bug."""
    if isinstance(name, Plant):
        return name
    if name not in PLANTS:
        raise ArgumentError(f"plant must be one of {', '.join(PLANTS)}, got {name!r}", "plant")
    plant = PLANTS[name](policy)
    if plant.noise == 1.0 and name == "add-remove":
        raise ArgumentError(
            f"plant must not be {name!r} with rewards in {policy.reward_range}: there,"
            " adding a record moves a sum as far as replacing one, and the bug changes nothing",
            "plant",
        )
    family = policy.channel.family
    if (plant.mechanism and family in (CERTIFIED, HEMISPHERE)) or (
        plant.noise < 1.0 and family == CERTIFIED
    ):
        raise ArgumentError(
            f"plant must not be {name!r} with {policy.channel.name} noise: the bug changes the"
            " scale of noise, but releases do not scale this noise",
            "plant",
        )
    return plant
