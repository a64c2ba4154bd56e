"""What a policy was configured as, and what follows from that alone, whatever it has met since."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from ..privacy.budgets import EXAMPLES, Budget
from ..privacy.channels import Channel
from ..privacy.continual import Counter
from ..privacy.ledger import Meter
from ..privacy.noise import NoiseSource
from ..protocol import Card, Statistic
from ..session.options import DEFAULTS, NAMES, Settings
from .terms import Terms


class Configured:
    """Arguments that stay as the constructor has checked them, and what they amount to."""

    card: Card
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
        """How running sums are released; None for statistics that are released by themselves."""

    def __setattr__(self, name: str, value: Any) -> None:
        # What has been promised cannot be changed afterwards.
        if self._built and not name.startswith("_"):
            raise AttributeError(f"{name} cannot be set: a policy is configured by its constructor")
        object.__setattr__(self, name, value)

    @property
    def effective_budget(self) -> Budget | None:
        """The budget that really holds; None without one, or where nothing holds."""
        return self._terms.effective_budget

    @property
    def meter(self) -> Meter | None:
        """How costs are counted, with ``max_rounds`` to a user who has had them all; None without a
        budget.
        """
        return self._terms.meter(self._terms.growth(self._counter, self.max_rounds))

    @property
    def noise_scale(self) -> float:
        """The scale of the noise on a sum of rewards; with a counter, that of each noise variable
        which ``Counter.decoder`` combines.

        Coefficients are at most ``Counter.widening``: 1 but for ``HybridTree``, whose nodes have
        more noise the deeper their tree is.
        """
        return self.statistic.noise_scale(self.channel)

    @property
    def grid(self) -> float:
        """Of what secure noise needs records to be multiples; 0 where they may be anything."""
        return float(self.config["grid"]) if self.noise_source.secure else 0.0

    @property
    def planned_rounds(self) -> int | None:
        """For how many rounds the running sum of a policy that releases in every round was planned;
        None for any number.
        """
        counter = self.statistic.counter
        return counter.horizon if counter is not None and self.card.learns_at_once else None

    @property
    def arguments(self) -> dict[str, Any]:
        """What was configured, apart from budget, seed and names: the policy's own arguments, and
        those options that are not at their default.
        """
        return self._given("budget", "seed", *NAMES)

    @property
    def label(self) -> str:
        """What results call the policy, whatever its budget: its name, or its class and
        ``arguments``.
        """
        return self.name or self._call(self.arguments)

    @property
    def stream_key(self) -> str:
        """What identifies the policy's random numbers in a study: all but its seed and names."""
        return self._call(self._given("seed", *NAMES))

    @property
    def heading(self) -> str:
        """As results name it, where a table of arms is a digest, and without its seed."""
        return self._call({**self.arguments, "budget": self.budget})

    @property
    def exchange_key(self) -> str:
        """A digest of what policies have to share whose workers learn from each other."""
        shared = self._call(self._given("seed", "name", "patience", "noise", "arm_names"))
        return hashlib.sha256(shared.encode()).hexdigest()[:16]

    def _given(self, *without: str) -> dict[str, Any]:
        return {
            name: value
            for name, value in self.config.items()
            if name not in without and (name not in DEFAULTS or value != DEFAULTS[name])
        }

    def _call(self, given: dict[str, Any]) -> str:
        written = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return f"{type(self).__name__}({written})"

    @classmethod
    def example_budgets(cls) -> list[Budget]:
        """One small budget of every notion that the class accepts."""
        return [budget for budget in EXAMPLES if type(budget) in cls.card.channels]

    def __repr__(self) -> str:
        return self._call(self._given())
