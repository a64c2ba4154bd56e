"""The claims under Figures 4 and 5, and ours about the tighter variants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...report.claims import Claim, Expectation
from ...report.intervals import price, ratio
from ..plans import Results, largest, measured, ratios, spoken, steps
from .settings import HONEST, PAPER, PUBLISHED, Setting, policy_key

SMALL = (
    0.05  # of the open regret: what "converges to zero" has to come down to at the largest budget
)
RISE = 0.01  # of the open regret: up to which a step upwards is none


class Measured:
    """The results of one setting."""

    def __init__(self, setting: Setting, budgets: Sequence[float], results: Results) -> None:
        self.setting, self.budgets, self.results = setting, budgets, results

    def final(self, key: str) -> np.ndarray:
        return self.results.final(f"{self.setting.key}/{key}")

    def curves(self, key: str) -> np.ndarray:
        return self.results.curves(f"{self.setting.key}/{key}")

    @property
    def rounds(self) -> np.ndarray:
        return self.results.rounds(f"{self.setting.key}/open")

    def name(self, family: str) -> str:
        return self.setting.families[family][0]

    def free_privacy(self, reading: str) -> list[Claim]:
        """The two conclusions under Figure 4."""
        name, families = f"{self.setting.title}, {self.name('published')}", "published"
        source = f"{PAPER}, Figure 4" if reading == PUBLISHED else f"after {PAPER}, Figure 4"
        finals = [self.final(policy_key(families, rho)) for rho in self.budgets]
        without, horizon = self.final("open"), self.setting.horizon
        claims = [
            Claim(
                f"{name}: privacy is free at a large budget. Measured: private minus open regret at"
                f" ρ = {self.budgets[-1]:g} after {spoken(horizon)} rounds, as a share of the open"
                " one.",
                source,
                reading,
                measured([finals[-1], without], price),
                Expectation(-SMALL, SMALL),
                shares=True,
            ),
            Claim(
                f"{name}: private minus open regret falls with every larger budget. "
                "Measured: the largest rise from one to the next, as a share of the open regret.",
                source,
                reading,
                largest([*finals, without], steps),
                Expectation(high=RISE),
                shares=True,
            ),
        ]
        return claims + [
            self._price_falls(name, source, reading, rho)
            for rho in (self.budgets[0], middle(self.budgets))
        ]

    def _price_falls(self, name: str, source: str, reading: str, rho: float) -> Claim:
        private, without = self.curves(policy_key("published", rho)), self.curves("open")
        early = int(np.searchsorted(self.rounds, max(1, self.setting.horizon // 100)))
        return Claim(
            f"{name}: at ρ = {rho:g} the price of privacy falls towards 0 as rounds go by."
            f" Measured: the price after {spoken(int(self.rounds[-1]))} rounds minus that after"
            f" {spoken(int(self.rounds[early]))}.",
            source,
            reading,
            measured(
                [private[..., -1], without[..., -1], private[..., early], without[..., early]],
                _fall,
            ),
            Expectation(high=0.0, strict=True),
            shares=True,
            over_random=self.results.over_random(
                f"{self.setting.key}/{policy_key('published', rho)}"
            ),
        )

    def against_sums(self) -> list[Claim]:
        """What Figure 5 is there to show."""
        source = f"{PAPER}, Figure 5"
        ours, theirs = (
            [self.final(policy_key(family, rho)) for rho in self.budgets]
            for family in ("published", "sums")
        )
        title = f"{self.setting.title}: AdaC-GOPE has less regret than AdaR-GOPE-Var"
        low = ends(self.budgets)
        return [
            *(
                Claim(
                    f"{title} at ρ = {rho:g}. Measured: the ratio of their regrets after"
                    f" {spoken(self.setting.horizon)} rounds.",
                    source,
                    PUBLISHED,
                    measured([a, b], ratio),
                    Expectation(high=1.0, strict=True),
                )
                for rho, a, b in zip(self.budgets, ours, theirs, strict=True)
                if rho in low
            ),
            Claim(
                f"{title}, most at small ρ. Measured: how much more AdaR-GOPE-Var loses at ρ ="
                f" {self.budgets[0]:g} than at ρ = {self.budgets[-1]:g}, as a share of AdaC-GOPE's"
                " regret.",
                source,
                PUBLISHED,
                measured([theirs[0], ours[0], theirs[-1], ours[-1]], _fall),
                Expectation(low=0.0, strict=True),
                shares=True,
            ),
        ]

    def tighter(self) -> Claim:
        """That the relatives of this package lose no more, at any budget."""
        tight, published = (
            [self.final(policy_key(family, rho)) for rho in self.budgets]
            for family in ("tight", "published")
        )
        return Claim(
            f"{self.setting.title}: {self.name('tight')} has no more regret than"
            f" {self.name('published')} at any ρ. Measured: the largest ratio of their regrets"
            f" after {spoken(self.setting.horizon)} rounds.",
            "this package",
            HONEST,
            largest([*tight, *published], ratios),
            Expectation(high=1.0),
        )


def _fall(means: np.ndarray) -> np.ndarray:
    return price(means[..., :2]) - price(means[..., 2:])


def middle(budgets: Sequence[float]) -> float:
    """The budget in the middle."""
    return budgets[len(budgets) // 2]


def ends(budgets: Sequence[float]) -> tuple[float, ...]:
    """The least, the middle and the largest budget."""
    return budgets[0], middle(budgets), budgets[-1]
