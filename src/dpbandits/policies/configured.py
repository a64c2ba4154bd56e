"""The configuration of a policy, what its class provides, and the values that follow from both."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..errors import ArgumentError
from ..privacy.budgets import Budget
from ..privacy.channels import Channel
from ..privacy.continual import Counter
from ..privacy.grids import default_grid, drawn_scale, finest_grid
from ..privacy.ledger import Meter
from ..privacy.noise import NoiseSource
from ..privacy.secure_sum import row_scale
from ..protocol import Card, Kernels, Statistic
from ..session.estimates import UNKNOWN, ArmEstimates
from ..session.options import DEFAULTS, NAMES, RENAMED, Settings
from .registry import preset_of
from .sums import rounding_of
from .terms import Terms

# Arguments in which workers that learn from each other may differ.
_EACH_ITS_OWN = ("name", "answers_within", "finish_at", "noise", "arm_names")


class Configured(ABC):
    """Arguments as the constructor has checked them, and the values derived from them."""

    card: Card
    kernels: Kernels
    params: Any
    learns_means: ClassVar[bool] = False  # its estimates are means of all rewards or reports
    sees: ClassVar[str] = ""  # what ``pull`` takes: "contexts", "advice", or nothing
    takes_reports = False  # rewards arrive noisy, and the policy's own wall adds nothing
    n_arms: int
    arm_names: Sequence[str] | None
    clip: bool
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

    # What a subclass provides -----------------------------------------------------------------

    _no_intervals = ""  # why there are no intervals of means, where releases alone would allow them
    _no_estimates = UNKNOWN  # why there are neither means nor coefficients

    @abstractmethod
    def _params(self) -> Any:
        """The algorithm's ``params``, once the channel is calibrated."""

    def _statistic(self) -> Statistic:
        """The statistic that each release contains; by default one sum of rewards."""
        return Statistic.of_rewards(self.reward_range)

    @property
    def _counter(self) -> Counter | None:
        """The counter of running sums; None for statistics that are released by themselves."""
        return None

    @property
    def _noise_of_sums(self) -> tuple[float, float]:
        """The scale of the noise on a released sum, and a share of people without whose noise it
        has that scale.
        """
        return self.noise_scale, 0.0

    @property
    def _rounding(self) -> float:
        """By how much rounding moves the mean of rewards, at most."""
        return rounding_of(self.grid, *self.reward_range)

    def params_for(self, n: int) -> Any:
        """``params`` under which an arm's first batch has n rounds, where batches may be of any
        length: those of a public log tell most in one.  None where lengths are the algorithm's.
        """
        return None

    def _of_today(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Arrays that were saved, also of an earlier version, as this one has them."""
        return dict(arrays)

    def _assumed(self) -> Sequence[str]:
        """The assumptions of this guarantee, beside those of all guarantees."""
        return ()

    @staticmethod
    def _arm_estimates(params: Any, public: Any) -> ArmEstimates | None:
        """Estimates for every arm, from public quantities only; None where there are none."""
        return None

    @property
    def _coefficients(self) -> tuple[int, ...]:
        """The shape of the coefficients that the kernel ``estimate`` returns one by one."""
        return ()

    def seen(self, contexts: Any) -> Any:
        """The contexts for ``choose``: a matrix of its own, or 0 for nothing."""
        if contexts is not None:
            raise ArgumentError(
                f"contexts must not be given, because {self.preset} takes none",
                "contexts",
            )
        return 0

    @property
    def dimension(self) -> int:
        """The number of features of each arm; 0 for policies without contexts."""
        return 0

    def takes_shape(self, shape: tuple[int, ...], arm: int) -> bool:
        """Whether contexts of that shape may have led to the choice of an arm."""
        return bool(self.sees)

    def alters(self, context_bound: float) -> bool:
        """Whether ``preprocess_contexts`` may change the contexts of an environment with that
        bound.
        """
        return False

    # What follows from the configuration ------------------------------------------------------

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
    def _secure_needs(self) -> tuple[str, str]:
        """What else ``noise="secure"`` needs, and why; empty where nothing."""
        return "", ""

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
                f"reward_range must be narrower with noise='secure', got {self.reward_range!r}: its"
                f" default grid of {self.grid:g} is too coarse for features; divide rewards by a"
                " constant",
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
