"""The configuration of a policy, and the values that follow from the configuration alone."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ..errors import ArgumentError
from ..privacy.budgets import Budget
from ..privacy.channels import Channel
from ..privacy.continual import Counter
from ..privacy.grids import default_grid, drawn_scale, finest_grid
from ..privacy.ledger import Meter
from ..privacy.noise import NoiseSource
from ..privacy.secure_sum import row_scale
from ..protocol import Card, Statistic
from ..session.options import DEFAULTS, NAMES, RENAMED, Settings
from .registry import preset_of
from .terms import Terms

# Arguments in which workers that learn from each other may differ.
_EACH_ITS_OWN = ("name", "answers_within", "finish_at", "noise", "arm_names")


class Configured:
    """Arguments as the constructor has checked them, and the values derived from them."""

    card: Card
    reward_range: tuple[float, float]
    name: str | None
    max_rounds: int | None
    budget: Budget | None
    default_reward: float
    channel: Channel
    statistic: Statistic

    _built = False
    config: Mapping[str, Any]
    noise_source: NoiseSource
    settings: Settings
    _terms: Terms

    @property
    @abstractmethod
    def _counter(self) -> Counter | None:
        """The counter of running sums; None for statistics that are released by themselves."""

    def __setattr__(self, name: str, value: Any) -> None:
        # What has been promised cannot be changed afterwards.
        if self._built and not name.startswith("_"):
            raise AttributeError(f"{name} cannot be set: a policy is configured by its constructor")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        # Another session would begin, with the whole budget.
        raise AttributeError(f"{name} cannot be deleted: a policy is configured by its constructor")

    @property
    def effective_budget(self) -> Budget | None:
        """The budget that really holds; None without one, or where nothing holds."""
        return self._terms.effective_budget

    @property
    def meter(self) -> Meter | None:
        """How to count the cost of a user with ``max_rounds`` rounds; None without a budget."""
        return self._terms.meter(self._terms.growth(self._counter, self.max_rounds))

    @property
    def noise_scale(self) -> float:
        """The scale of the noise on a sum of rewards; with a counter, that of each noise variable
        which ``Counter.decoder`` combines.  Discrete Gaussian noise has it as its parameter, with
        the 1/10 of a squared grid step that it takes more (``privacy.discrete``).

        Coefficients are at most ``Counter.widening``: 1 except for ``HybridTree``, whose nodes have
        more noise the deeper their tree is.
        """
        scale = self.statistic.noise_scale(self.channel)
        if self.grid == 0.0:
            return scale
        return drawn_scale(self.channel.family, scale, self.grid / row_scale(self._counter))

    @property
    def grid(self) -> float:
        """The grid that secure noise requires of records; 0 where they may be anything."""
        return float(self.config["grid"]) if self.noise_source.secure else 0.0

    @property
    def _largest_entry(self) -> float:
        """The largest number that a record has in a statistic."""
        return max(map(abs, self.reward_range))

    @property
    def _smallest_range(self) -> float:
        """The range of the smallest number that a record has in a statistic."""
        lo, hi = self.reward_range
        return hi - lo

    @property
    def _default_grid(self) -> float:
        lo, hi = self.reward_range
        wanted = min(default_grid((lo, hi)), default_grid((0.0, self._smallest_range)))
        return max(wanted, finest_grid(max(abs(lo), abs(hi), self._largest_entry)))

    def _refuse_rounding(self, added: float, moved: float) -> None:
        """Refuse a default grid that suits rewards but is too coarse for the other released values:
        it adds more than a twentieth to the sensitivity.  ``moved`` is the sensitivity without it.
        """
        if added > 0.05 * moved and self.grid == self._default_grid:
            raise ArgumentError(
                f"reward_range must be narrower with noise='secure': its default grid of"
                f" {self.grid:g} is too coarse for features, got {self.reward_range!r}; divide"
                " rewards by a constant",
                "reward_range",
            )

    @property
    def planned_rounds(self) -> int | None:
        """The number of rounds planned for the running sum of a policy that releases in every
        round; None for any number.
        """
        counter = self.statistic.counter
        return counter.horizon if counter is not None and self.card.learns_at_once else None

    @cached_property
    def _named(self) -> tuple[str, Mapping[str, Any]]:
        """The name of the policy, and all arguments of that name."""
        found = preset_of(type(self), self.config)
        return (type(self).__name__, self.config) if found is None else (found[0].name, found[1])

    @property
    def preset(self) -> str:
        """The name in studies, saved states and results: that of the class where no preset fits."""
        return self._named[0]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of ``preset``, and options that are not at their default; without budget,
        seed and names.
        """
        return self._given("budget", "seed", *NAMES)

    @property
    def label(self) -> str:
        """The policy's label in results: its name, or ``preset`` and ``arguments``, without the
        budget.
        """
        return self.name or self._call(self.arguments)

    @property
    def stream_key(self) -> str:
        """The key of the policy's random numbers in a study: all but its seed and names.  It has
        the words of the first version, because other words draw other numbers.
        """
        given, first = self._given("seed", *NAMES), {ours: name for name, ours in RENAMED.items()}
        return self._call({first.get(name, name): value for name, value in given.items()})

    @property
    def heading(self) -> str:
        """As results name it, where a table of arms is a digest, and without its seed."""
        return self._call({**self.arguments, "budget": self.budget})

    @property
    def exchange_key(self) -> str:
        """A digest of the arguments that policies must share to learn from each other."""
        shared = self._call(self._given("seed", *_EACH_ITS_OWN))
        return hashlib.sha256(shared.encode()).hexdigest()[:16]

    def _given(self, *without: str) -> dict[str, Any]:
        return {
            name: value
            for name, value in self._named[1].items()
            if name not in without and not self._is_default(name, value)
        }

    def _is_default(self, name: str, value: Any) -> bool:
        if name == "grid":
            # To simulated noise it makes no difference; there saved policies have 2**-20, whatever
            # their range.
            unused = value == 2.0**-20 and self.settings.noise == "simulation"
            return unused or value == self._default_grid
        return name in DEFAULTS and value == DEFAULTS[name]

    def _call(self, given: Mapping[str, Any]) -> str:
        return call(self.preset, given)

    @classmethod
    def example_budgets(cls) -> list[Budget]:
        """One small budget of every notion that the class accepts."""
        return [kind(*kind.example) for kind in cls.card.notions]

    def __repr__(self) -> str:
        given = {
            name: value for name, value in self.config.items() if not self._is_default(name, value)
        }
        return call(type(self).__name__, given)


def call(name: str, given: Mapping[str, Any]) -> str:
    """The call that makes the policy, in Python."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})"
