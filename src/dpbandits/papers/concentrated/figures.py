"""Figures 4 and 5, and one of the tighter variants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...plotting.numbers import number
from ...report.exhibits import Exhibit, Panel, Series
from ...report.intervals import Statistic, curve, mean, price, ratio
from ..plans import measured, spoken
from .claims import Measured, ends
from .settings import PUBLISHED, policy_key


def figure4(settings: Sequence[Measured], name: str, reading: str) -> list[Exhibit]:
    """What privacy costs, by budget and over rounds."""
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
        first, last = (
            float(np.mean(one.final(policy_key("published", rho)) - one.final("open")))
            for rho in (one.budgets[0], one.budgets[-1])
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
        series.append(
            _by_budget(
                one,
                name,
                [[one.final(policy_key(family, rho)), without] for rho in one.budgets],
                _minus,
            )
        )
    threshold = max(1.0, 0.01 * float(one.final("open").mean()))
    title = f"{one.setting.title}, {spoken(one.setting.horizon)} rounds"
    return Panel(
        title,
        "budget ρ",
        "private − open regret",
        series,
        y_scale="symlog",
        threshold=threshold,
        line=0.0,
    )


def _minus(means: np.ndarray) -> np.ndarray:
    return means[..., 0] - means[..., 1]


def _by_budget(
    one: Measured, label: str, columns: Sequence[list[np.ndarray]], statistic: Statistic
) -> Series:
    y, low, high = np.array([measured(pair, statistic) for pair in columns]).T
    return Series(label, np.array(one.budgets), y, low, high, marks=True)


def _price_over_time(one: Measured) -> Panel:
    without = one.curves("open")
    series = []
    for rho in one.budgets:
        shown = one.rounds >= max(10, one.setting.environment.n_arms)
        both = [one.curves(policy_key("published", rho))[..., shown], without[..., shown]]
        series.append(Series(f"ρ = {rho:g}", one.rounds[shown], *curve(both, price)))
    title = f"{one.setting.title}, {one.name('published')}"
    return Panel(
        title, "rounds", "price of privacy", series, y_scale="symlog", threshold=0.01, line=0.0
    )


def figure5(fixed: Measured) -> Exhibit:
    """Regret with noise on estimates and on sums."""
    rounds, panels = fixed.rounds, []
    for rho in ends(fixed.budgets):
        series = []
        for family in ("published", "sums"):
            found = curve([fixed.curves(policy_key(family, rho))], mean)
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
    """What the tighter variants gain."""
    panels = []
    for one in settings:
        pairs = [
            [one.final(policy_key("tight", rho)), one.final(policy_key("published", rho))]
            for rho in one.budgets
        ]
        title = f"{one.setting.title}: {one.name('tight')}"
        panels.append(
            Panel(
                title,
                "budget ρ",
                "ratio of regrets",
                [_by_budget(one, "tight over published", pairs, ratio)],
                line=1.0,
            )
        )
    return Exhibit(
        "tight",
        "Tighter variants at equal privacy",
        "Regret of the tight variant over that of the published one at the same budget and"
        " guarantee, with 95 % bars; below 1 is better.",
        "Ratios of regret, tight over published, against the budget, one panel per setting.",
        panels,
    )
