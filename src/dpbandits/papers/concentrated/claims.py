"""Figures 4 and 5, the claims under them, and ours about the tighter variants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...plotting.numbers import number
from ...report.claims import Claim, Expectation
from ...report.exhibits import Exhibit, Panel, Series
from ...report.intervals import Statistic, curve, mean, price, ratio
from ..plans import Results, largest, measured, ratios, spoken, steps
from .settings import HONEST, PAPER, PUBLISHED, Setting, policy_key

# of the open regret: what "converges to zero" has to come down to at the largest budget
SMALL = 0.05
RISE = 0.01  # of the open regret: up to which a step upwards is none


class Measured:
    """The results of one setting."""

    def __init__(self, setting: Setting, budgets: Sequence[float], results: Results) -> None:
        self.setting, self.budgets, self.results = setting, budgets, results

    def key(self, policy: str, rho: float | None = None) -> str:
        """The key of a family at a budget, or of a policy without privacy."""
        return f"{self.setting.key}/{policy if rho is None else policy_key(policy, rho)}"

    def final(self, policy: str, rho: float | None = None) -> np.ndarray:
        return self.results.final(self.key(policy, rho))

    def finals(self, family: str) -> list[np.ndarray]:
        return [self.final(family, rho) for rho in self.budgets]

    def curves(self, policy: str, rho: float | None = None) -> np.ndarray:
        return self.results.curves(self.key(policy, rho))

    @property
    def rounds(self) -> np.ndarray:
        return self.results.rounds(self.key("open"))

    def name(self, family: str) -> str:
        return self.setting.families[family][0]

    def free_privacy(self, reading: str) -> list[Claim]:
        """The two conclusions under Figure 4."""
        name = f"{self.setting.title}, {self.name('published')}"
        source = f"{PAPER}, Figure 4" if reading == PUBLISHED else f"after {PAPER}, Figure 4"
        finals, without = self.finals("published"), self.final("open")
        claims = [
            Claim(
                f"{name}: privacy is free at a large budget. Measured: private minus open regret at"
                f" ρ = {self.budgets[-1]:g} after {spoken(self.setting.horizon)} rounds, as a share"
                " of the open one.",
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
        some = ends(self.budgets)[:2]
        return claims + [self._price_falls(name, source, reading, rho) for rho in some]

    def _price_falls(self, name: str, source: str, reading: str, rho: float) -> Claim:
        private, without = self.curves("published", rho), self.curves("open")
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
            over_random=self.results.over_random(self.key("published", rho)),
        )

    def against_sums(self) -> list[Claim]:
        """The claims that Figure 5 illustrates."""
        source = f"{PAPER}, Figure 5"
        ours, theirs = self.finals("published"), self.finals("sums")
        title = f"{self.setting.title}: AdaC-GOPE has less regret than AdaR-GOPE-Var"
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
                if rho in ends(self.budgets)
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
        """The claim that this package's variants lose no more, at any budget."""
        return Claim(
            f"{self.setting.title}: {self.name('tight')} has no more regret than"
            f" {self.name('published')} at any ρ. Measured: the largest ratio of their regrets"
            f" after {spoken(self.setting.horizon)} rounds.",
            "this package",
            HONEST,
            largest([*self.finals("tight"), *self.finals("published")], ratios),
            Expectation(high=1.0),
        )


def _fall(means: np.ndarray) -> np.ndarray:
    return price(means[..., :2]) - price(means[..., 2:])


def ends(budgets: Sequence[float]) -> tuple[float, ...]:
    """The least, the middle and the largest budget."""
    return budgets[0], budgets[len(budgets) // 2], budgets[-1]


# Figures ---------------------------------------------------------------------------------------


def figure4(settings: Sequence[Measured], name: str, reading: str) -> list[Exhibit]:
    """Claims on the cost of privacy, by budget and over rounds."""
    heading = "Figure 4" if reading == PUBLISHED else "The same with the guarantee that holds"
    return [
        Exhibit(
            f"{name}-difference",
            f"{heading}: what privacy costs at each budget",
            "Private minus open regret at the horizon, mean of paired differences with 95 % bars;"
            " linear around 0, logarithmic beyond.",
            "Differences between private and open regret against the budget, one panel per"
            " setting: " + _told(settings),
            [_difference(one) for one in settings],
        ),
        Exhibit(
            f"{name}-price",
            f"{heading}: the price of privacy as rounds go by",
            "Private minus open regret over open regret, with 95 % bands; linear below 1 %,"
            " logarithmic beyond.",
            "The price of privacy over rounds for each budget, one panel per setting.",
            [_price_over_time(one) for one in settings],
        ),
    ]


def _told(settings: Sequence[Measured]) -> str:
    parts = []
    for one in settings:
        first, *_, last = (
            float(np.mean(private - one.final("open"))) for private in one.finals("published")
        )
        parts.append(
            f"{one.setting.title} from {number(first)} at ρ = {one.budgets[0]:g} to {number(last)}"
            f" at ρ = {one.budgets[-1]:g}"
        )
    return "; ".join(parts) + "."


def _difference(one: Measured) -> Panel:
    series = []
    for family, (name, _) in one.setting.families.items():
        without = one.final(one.setting.open_of(family))
        pairs = [[private, without] for private in one.finals(family)]
        series.append(_by_budget(one, name, pairs, lambda means: means[..., 0] - means[..., 1]))
    threshold = max(1.0, 0.01 * float(one.final("open").mean()))
    title = f"{one.setting.title}, {spoken(one.setting.horizon)} rounds"
    axes = "budget ρ", "private − open regret"
    return Panel(title, *axes, series, y_scale="symlog", threshold=threshold, line=0.0)


def _by_budget(
    one: Measured, label: str, columns: Sequence[Sequence[np.ndarray]], statistic: Statistic
) -> Series:
    y, low, high = np.array([measured(pair, statistic) for pair in columns]).T
    return Series(label, np.array(one.budgets), y, low, high, marks=True)


def _price_over_time(one: Measured) -> Panel:
    without = one.curves("open")
    series = []
    for rho in one.budgets:
        shown = one.rounds >= max(10, one.setting.environment.n_arms)
        both = [one.curves("published", rho)[..., shown], without[..., shown]]
        series.append(Series(f"ρ = {rho:g}", one.rounds[shown], *curve(both, price)))
    title, axes = f"{one.setting.title}, {one.name('published')}", ("rounds", "price of privacy")
    return Panel(title, *axes, series, y_scale="symlog", threshold=0.01, line=0.0)


def figure5(fixed: Measured) -> Exhibit:
    """Regret with noise on estimates and on sums."""
    rounds, panels = fixed.rounds, []
    for rho in ends(fixed.budgets):
        series = []
        for family in ("published", "sums"):
            found = curve([fixed.curves(family, rho)], mean)
            series.append(Series(fixed.name(family), rounds, *found, dashed=family == "sums"))
        panels.append(Panel(f"ρ = {rho:g}", "rounds", "mean regret", series))
    return Exhibit(
        "figure-5",
        "Figure 5: where to put the noise",
        "Mean regret with 95 % bands, over all instances of fixed arms. Phases are equally"
        " long for both; only the noise differs.",
        "Regret over rounds of AdaC-GOPE and AdaR-GOPE-Var, one panel per budget.",
        panels,
    )


def tighter_ratios(settings: Sequence[Measured]) -> Exhibit:
    """The gain of the tighter variants."""
    panels = []
    for one in settings:
        pairs = list(zip(one.finals("tight"), one.finals("published"), strict=True))
        line = _by_budget(one, "tight over published", pairs, ratio)
        title = f"{one.setting.title}: {one.name('tight')}"
        panels.append(Panel(title, "budget ρ", "ratio of regrets", [line], line=1.0))
    return Exhibit(
        "tight",
        "Tighter variants at equal privacy",
        "Regret of the tight variant over that of the published one at the same budget and"
        " guarantee, with 95 % bars; below 1 is better.",
        "Ratios of regret, tight over published, against the budget, one panel per setting.",
        panels,
    )
