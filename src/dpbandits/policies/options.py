"""Constructor arguments that every policy takes, and their defaults."""

from __future__ import annotations

from typing import Any, TypedDict

from ..privacy.channels import Calibration

SHARED: dict[str, Any] = {
    "reward_range": (0.0, 1.0),
    "calibration": "exact",
    "clip": True,
    "noise": "simulation",
    "grid": 2.0**-20,
    "seed": None,
    "patience": 0,
    "default_reward": None,
    "choices_public": False,
}


class Options(TypedDict, total=False):
    """Constructor arguments that every policy takes, beside its own.

    reward_range: (lo, hi); rewards outside are clipped to it.  Default (0, 1).
    calibration: "exact" (default) or "paper", the published constants.
    clip: False leaves rewards as they are, to reproduce papers that do; it voids the guarantee.
    noise: "simulation" (default; seeded, fast, protects nobody) or "secure" (needs the extra
        ``secure``; takes no seed).
    grid: rewards are rounded to multiples of this power of two under secure noise.  Default 2**-20.
    seed: of the policy's own random numbers and of simulated noise; an integer or None.
    patience: rounds to wait for late rewards after an episode's end; None waits for all of them.
        Default 0.
    default_reward: what an answer that never came counts as.  Default: the lower end of the range.
    choices_public: True if it is public when a person did something else than was recommended.
        Default False.
    """

    reward_range: tuple[float, float]
    calibration: Calibration
    clip: bool
    noise: str
    grid: float
    seed: int | None
    patience: int | None
    default_reward: float | None
    choices_public: bool
