"""Constructor arguments that every policy takes, and their defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypedDict, cast

from ..constraints import (
    Choice,
    Constraints,
    Duration,
    Flag,
    Integer,
    Range,
    Real,
    Text,
    TimesOfDay,
    checked,
)
from ..errors import ArgumentError
from ..privacy.channels import Calibration
from ..privacy.grids import checked_grid, default_grid
from ..privacy.noise import NoiseSource
from ..privacy.secure import noise_source
from ..validation import printable, real
from .holdout import Holdout, HoldoutOf

# Of a reward range, and of a noise multiplier: their squares have to be numbers.
NARROWEST, WIDEST = 1e-100, 1e100
# In scales of noise: values farther out have a probability that no float tells from zero.
WILDEST = 1000.0
_FARTHEST = 1e6  # that a reward range may lie from zero, in units of its width
_LONGEST_NAME = 60
_MOST_ROUNDS = 10**6  # of one user

Noise = Literal["simulation", "secure"]


class Options(TypedDict, total=False):
    """Constructor arguments that every policy takes, beside its own.

    Attributes:
        reward_range: (lo, hi); rewards outside are clipped to it.  Default (0, 1).
        calibration: "exact" (default) or "paper", the published constants.
        clip: False leaves rewards as they are, to reproduce papers that do; it voids the guarantee.
        noise: "simulation" (default; seeded, fast, without protection) or "secure" (needs the extra
            ``secure``, unless devices draw it; takes no seed).
        grid: rewards are rounded to multiples of this power of two under secure noise.  That moves
            a reward, and a mean, by at most half of it.  If an end of the range is no multiple,
            rewards there move by less than one multiple.  Default None: 2**-20 for a range of width
            1, and in proportion to the width of others, which is less than one part in a million;
            coarser where a range, or the square of ``context_bound``, is far larger.
        seed: of the policy's own random numbers and of simulated noise; an integer or None.
        answers_within: pulls after an episode's end within which its rewards may come.  Or a time
            after a pull within which its reward may come: "6h", in s, min, h or d.  None waits for
            all rewards.  Default 0.
        finish_at: times of day, UTC, such as ("04:00",), at which episodes that are over are
            released, as by ``finish``.  Default None.
        default_reward: the reward that replaces a missing answer.  Default: the lower end of the
            range.
        choices_public: True if it is public when a person took another arm than the recommended
            one. Default False.
        max_rounds: the most recorded rounds of one user over the whole run, at most one in a
            release.  ``pull`` then needs a ``user``, and the guarantee protects all rounds of a
            user together.  Default None: a person contributes one round.
        name: the policy's label in figures, tables and results, of 1 to 60 printable characters.
            By default the label names its class, and the arguments that distinguish it within the
            class.
        arm_names: a printable and distinct name for each arm, shown in decisions and estimates.
            ``update``, ``available``, ``retire`` and ``add`` accept names, too.
        holdout: a share of people who get arms by chance instead of the bandit's choice, such as
            0.1, or a ``Holdout``.  Their rewards are released in sums of their own, and nothing is
            learned from them.  Default None.
    """

    reward_range: tuple[float, float]
    calibration: Calibration
    clip: bool
    noise: Noise
    grid: float | None
    seed: int | None
    answers_within: int | str | None
    finish_at: Sequence[str] | None
    default_reward: float | None
    choices_public: bool
    max_rounds: int | None
    name: str | None
    arm_names: Sequence[str] | None
    holdout: float | Holdout | None


@dataclass(frozen=True)
class Settings:
    """Options that were checked, with their defaults."""

    reward_range: tuple[float, float] = (0.0, 1.0)
    calibration: Calibration = "exact"
    clip: bool = True
    noise: Noise = "simulation"
    grid: float | None = None
    seed: int | None = None
    answers_within: int | str | None = 0
    finish_at: Sequence[str] | None = None
    default_reward: float | None = None
    choices_public: bool = False
    max_rounds: int | None = None
    name: str | None = None
    arm_names: Sequence[str] | None = None
    holdout: Holdout | None = None

    constraints: ClassVar[Constraints] = {
        "reward_range": Range(),
        "calibration": Choice("exact", "paper"),
        "clip": Flag(),
        "noise": Choice("simulation", "secure"),
        "seed": Integer(0) | None,
        "answers_within": Integer(0) | Duration("1s", "365d") | None,
        "finish_at": TimesOfDay() | None,
        "default_reward": Real() | None,
        "choices_public": Flag(),
        "max_rounds": Integer(1, _MOST_ROUNDS) | None,
        "name": Text(_LONGEST_NAME) | None,
        "holdout": HoldoutOf() | None,
    }

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in self.constraints}
        for name, value in checked(Settings, **given).items():
            object.__setattr__(self, name, value)
        lo, hi = self.reward_range
        if not NARROWEST <= hi - lo <= WIDEST:
            raise ArgumentError(
                f"reward_range must be between {NARROWEST:g} and {WIDEST:g} wide,"
                f" got {self.reward_range!r}",
                "reward_range",
            )
        if max(lo, -hi) > _FARTHEST * (hi - lo):
            raise ArgumentError(
                f"reward_range must lie no farther from zero than {_FARTHEST:g} times its width,"
                f" got {self.reward_range!r}: sums would lose their last digits",
                "reward_range",
            )
        grid = default_grid((lo, hi)) if self.grid is None else checked_grid(self.grid)
        object.__setattr__(self, "grid", grid)
        if self.default_reward is not None:
            real("default_reward", self.default_reward, lo, hi)
        if self.arm_names is not None:
            object.__setattr__(self, "arm_names", arm_names(self.arm_names))

    @property
    def uses_clock(self) -> bool:
        """Whether releases depend on times."""
        return isinstance(self.answers_within, str) or self.finish_at is not None

    def source(self, device: bool) -> NoiseSource:
        """The source of noise; ``device``: whether all of it is drawn on people's devices."""
        source = noise_source(
            self.noise,
            self.seed,
            grid=cast(float, self.grid),
            reward_range=self.reward_range,
            device=device,
        )
        if source.secure and not self.clip:
            raise ArgumentError("clip must be True with noise='secure', got False", "clip")
        return source


def arm_names(names: object, argument: str = "arm_names") -> tuple[str, ...]:
    """The names of arms, checked."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ArgumentError(f"{argument} must be a list of names, got {names!r}", argument)
    checked = tuple(printable(argument, name, _LONGEST_NAME) for name in names)
    if len(set(checked)) < len(checked):
        raise ArgumentError(f"{argument} must differ from each other, got {checked}", argument)
    return checked


# What only says how things are called, and tells no two policies apart.
NAMES = ("name", "arm_names")
# Options of the first version, and what they are called today.
RENAMED = {"patience": "answers_within"}
DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Settings)}


def of_today(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of this version or an earlier one, by the names of today."""
    return {
        name if RENAMED.get(name, name) in given else RENAMED.get(name, name): value
        for name, value in given.items()
    }


def settings_of(policy: str, options: dict[str, Any]) -> Settings:
    """The settings that a policy of that class was given, if it takes such arguments."""
    unknown = set(options) - set(DEFAULTS)
    if unknown:
        raise TypeError(f"{policy} takes no argument {', '.join(sorted(unknown))}")
    return Settings(**cast(Any, options))
