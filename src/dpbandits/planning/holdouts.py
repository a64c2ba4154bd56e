"""What a holdout costs, and what it can tell after so many people."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..environments import ArmsEnvironment
from ..environments.base import World
from ..inference import Batches, ReleasedSums
from ..inference.intervals import known
from ..plotting.numbers import reward_amount
from ..policies import HeldOut, Policy

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class HoldoutPlan:
    """The price and the use of a holdout.

    Attributes:
        share: of people.
        least: the share of all people whom every arm gets at least, on average.
        people: who are held out of all on average.
        rounds: for which ``regret`` stands.
        regret: of held-out people in so many rounds, on average; None where nothing is known of the
            arms, or arms depend on contexts.
        half_width: of the 95 % interval of the difference of two arms, after so many people, as
            rewards are measured.  It is that of sums that equal their means, for rewards at the two
            ends of their range, equally often.
    """

    share: float
    least: float
    people: int
    rounds: int
    regret: float | None
    half_width: float

    @classmethod
    def of(
        cls, policy: Policy, environment: World | None, rounds: int, horizon: int
    ) -> HoldoutPlan:
        """That of the holdout of a policy, over its horizon."""
        held = policy.holdout
        assert held is not None
        people = round(held.share * horizon)
        least, regret = held.share * held.weights.min(), _regret(held, environment, rounds)
        return cls(held.share, float(least), people, rounds, regret, half_width(held, people))

    def to_dict(self) -> dict[str, float | None]:
        """The attributes, with None for nan."""
        return {**vars(self), "half_width": known(self.half_width)}

    def __str__(self) -> str:
        told = f"A holdout of {100.0 * self.share:.3g} % has {self.people:,} people"
        if self.regret is not None:
            told += f", and loses {reward_amount(self.regret)} in {self.rounds:,} rounds by chance"
        wide = (
            "cannot tell two arms apart"
            if np.isnan(self.half_width)
            else (f"tells the difference of two arms within about ± {self.half_width:.2g}")
        )
        every = f"Every arm gets at least {100.0 * self.least:.3g} % of all people"
        return f"{told}. {every}. At the end, it {wide}."


def _regret(held: HeldOut, environment: World | None, rounds: int) -> float | None:
    """The mean regret of held-out people."""
    if not isinstance(environment, ArmsEnvironment) or not rounds:
        return None
    cost = environment.kernels.regret
    arms = range(environment.n_arms)
    lost = [float(cost(environment.state, arm, 0, rounds)) for arm in arms]
    return held.share * float(held.weights @ lost)


def half_width(held: HeldOut, people: int) -> float:
    """The half width of the interval of the difference of the two rarest arms after so many
    held-out people; nan before both have a release.
    """
    sums, (lo, hi) = held.sums, held.reward_range
    rare = [0] if held.one_sum else np.argsort(held.weights)[:2].tolist()
    weights = [1.0] if held.one_sum else held.weights[rare].tolist()
    counts, size = [int(people * weight) // held.batch for weight in weights], float(held.batch)
    if held.targets:  # a batch has people with all arms
        counts, size = [people // held.batch] * 2, held.batch * weights[0]
    if min(counts) == 0:
        return float("nan")
    arm = np.repeat(np.arange(len(counts)), counts)
    before = np.arange(arm.size)  # a batch begins when the one before it is released
    each = np.full(arm.size, size)
    batches = Batches(arm, each, 0.5 * each, before)
    cells = tuple(batches.cells(a, sums.noise) for a in range(len(counts)))
    found = ReleasedSums(cells, sums.noise, lo, hi - lo)
    if held.one_sum:
        low, high = found.ends(_CONFIDENCE)
        return float(high[0] - low[0])
    low_, high_ = found.difference(0, 1, _CONFIDENCE)
    return 0.5 * (high_ - low_)
