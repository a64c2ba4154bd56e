"""The experiments of Azize & Basu (2024), Concentrated Differential Privacy for Bandits: Figures 4
and 5.

Every setting is run as published and, where that voids the guarantee, once more with rewards in
[-1, 1] and contexts in the unit ball, where it holds.  There the published algorithms stand beside
their tighter relatives of this package, at the same budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...algorithms import GOPE, RSOFUL, AdaCGOPE, AdaCOFUL, AdaCUCB, AdaRGOPEVar
from ...environments import (
    ArmsEnvironment,
    Bernoulli,
    ContextEnvironment,
    GaussianContexts,
    LinearArms,
)
from ...plotting.numbers import number
from ...policies import Policy
from ...privacy import ZCDP
from ...report.claims import Claim, Expectation
from ...report.exhibits import Exhibit, Panel, Series
from ..cells import Cell, Results
from ..intervals import Statistic, curve, largest, mean, measured, price, ratio, ratios, steps
from ..plans import Findings, Plan, Size, instances, recorded, spoken

HORIZON, RUNS = 10**7, 100
BUDGETS = (0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 3.0, 10.0)
QUICK_HORIZON, QUICK_RUNS = 50_000, 10
QUICK_BUDGETS = (0.001, 0.05, 1.0, 10.0)
SHORTER = 20  # by which contextual rounds beyond the figure are fewer, unless asked for in full

SMALL = (
    0.05  # of the open regret: what "converges to zero" has to come down to at the largest budget
)
RISE = 0.01  # of the open regret: up to which a step upwards is none

PAPER = "Azize & Basu (2024)"
PUBLISHED = "As published"
HONEST = "With the guarantee that holds"

MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
ARMS, DIMENSION, DELTA, RIDGE = 10, 3, 0.001, 0.1

Budgeted = Callable[[ZCDP | None], Policy]


@dataclass(frozen=True)
class Setting:
    """One environment, and the families of policies that run in it at every budget.

    Attributes:
        key, title: for cells, and for people.
        environment: of all.
        families: key -> (name, policy at a budget).
        opens: key of a family -> key of the policy without privacy that it is compared with.
        without: key -> policy without privacy.
        horizon: rounds.
    """

    key: str
    title: str
    environment: ArmsEnvironment | ContextEnvironment
    families: dict[str, tuple[str, Budgeted]]
    opens: dict[str, str]
    without: dict[str, Policy]
    horizon: int


class Placed(NamedTuple):
    """A setting with one instance, and its runs."""

    setting: Setting
    seed: int
    runs: int


def plan(size: Size) -> Plan:
    """All settings of Figures 4 and 5, at the given size."""
    horizon = size.horizon or (QUICK_HORIZON if size.quick else HORIZON)
    runs = size.runs or (QUICK_RUNS if size.quick else RUNS)
    budgets = QUICK_BUDGETS if size.quick else BUDGETS
    shorter = horizon if size.full or size.quick else max(1, horizon // SHORTER)
    drawn = instances(size.seed, runs)
    # Bernoulli arms cost next to nothing, and their regret scatters most.
    groups = [[Placed(_bernoulli(horizon), size.seed, size.runs or RUNS)]]
    for make, rounds in (
        (_fixed, horizon),
        (_contextual, horizon),
        (_fixed_bounded, horizon),
        (_contextual_bounded, shorter),
    ):
        groups.append([Placed(make(rounds, seed), seed, each) for seed, each in drawn])
    settings = [group[0].setting for group in groups]
    cells = [cell for group in groups for placed in group for cell in _cells(placed, budgets)]
    # what takes long comes last
    cells.sort(key=lambda cell: isinstance(cell.environment, ContextEnvironment))
    notes = [
        (
            "As published, rewards (and contexts) of the linear settings are normal variables: no"
            " range holds them, they are not clipped, and the guarantee is void. With the guarantee"
            " that holds, rewards are 1 or -1 with the same means and contexts are scaled into the"
            " unit ball, so that nothing has to be clipped."
        ),
        (
            "As published, AdaC-OFUL's radius has the least eigenvalue of the exact V in place of"
            " the bound on it, which is not positive for most of a run; and AdaC-GOPE's noise has"
            " the sensitivity of the realised design."
        ),
        (
            "The paper has one random instance of each linear setting, and does not say which. Here"
            f" all numbers are means over {len(drawn)} instances, and intervals cover what differs"
            " among them."
        ),
    ]
    if shorter < horizon:
        notes.append(
            f"The contextual comparison at equal privacy has {shorter:,} rounds; --full gives it"
            f" {horizon:,}."
        )
    return Plan(
        title="Concentrated differential privacy for bandits: the experiments, run again",
        description=(
            f"Figures 4 and 5 of {PAPER}, their claims measured, and the same at the guarantee that"
            " really holds beside this package's tighter variants."
        ),
        cells=cells,
        assess=partial(_assess, settings, budgets),
        notes=notes,
        shown=[repr(one.environment) for one in (settings[:1] if size.quick else settings)],
    )


# Settings ------------------------------------------------------------------------------------


def _bernoulli(horizon: int) -> Setting:
    def policy(budget: ZCDP | None, forget: bool) -> Policy:
        return AdaCUCB(len(MEANS), budget=budget, beta=1.0, forget=forget)

    return Setting(
        "arms",
        "Bernoulli arms",
        Bernoulli(MEANS),
        {
            "published": ("AdaC-UCB", lambda budget: policy(budget, True)),
            "tight": ("AdaC-UCB without forgetting", lambda budget: policy(budget, False)),
        },
        {"published": "open", "tight": "open-tight"},
        {"open": policy(None, True), "open-tight": policy(None, False)},
        horizon,
    )


def _fixed(horizon: int, seed: int) -> Setting:
    world = LinearArms.on_sphere(ARMS, DIMENSION, seed=seed)
    options: dict[str, Any] = {
        "failure_probability": DELTA,
        "subgaussian": 1.0,
        "reward_range": (-1.0, 1.0),
        "clip": False,
    }
    return Setting(
        "fixed",
        "Linear, fixed arms",
        world,
        {
            "published": (
                "AdaC-GOPE",
                lambda budget: AdaCGOPE(
                    world.features, budget=budget, variant="published", **options
                ),
            ),
            "sums": (
                "AdaR-GOPE-Var",
                lambda budget: AdaRGOPEVar(world.features, budget=budget, **options),
            ),
        },
        {"published": "open", "sums": "open"},
        {"open": AdaCGOPE(world.features, budget=None, variant="published", **options)},
        horizon,
    )


def _fixed_bounded(horizon: int, seed: int) -> Setting:
    world = LinearArms.on_sphere(ARMS, DIMENSION, seed=seed, rewards="bounded")
    options: dict[str, Any] = {"failure_probability": DELTA, "reward_range": (-1.0, 1.0)}
    return Setting(
        "fixed-bounded",
        "Linear, fixed arms",
        world,
        {
            "published": (
                "AdaC-GOPE",
                lambda budget: AdaCGOPE(
                    world.features, budget=budget, variant="published", **options
                ),
            ),
            "tight": (
                "AdaC-GOPE, tight",
                lambda budget: AdaCGOPE(world.features, budget=budget, **options),
            ),
        },
        {"published": "open", "tight": "open-tight"},
        {
            "open": AdaCGOPE(world.features, budget=None, variant="published", **options),
            "open-tight": GOPE(world.features, **options),
        },
        horizon,
    )


def _contextual(horizon: int, seed: int) -> Setting:
    world = GaussianContexts.on_sphere(ARMS, DIMENSION, seed=seed)
    options: dict[str, Any] = {**_OFUL, "subgaussian": 1.0, "clip": False}
    return Setting(
        "contexts",
        "Linear contextual",
        world,
        {"published": ("AdaC-OFUL", lambda budget: _oful(budget, horizon, "published", options))},
        {"published": "open"},
        {"open": RSOFUL(ARMS, DIMENSION, **options)},
        horizon,
    )


def _contextual_bounded(horizon: int, seed: int) -> Setting:
    world = GaussianContexts.on_sphere(ARMS, DIMENSION, seed=seed, rewards="bounded", project=True)
    return Setting(
        "contexts-bounded",
        "Linear contextual",
        world,
        {
            "published": ("AdaC-OFUL", lambda budget: _oful(budget, horizon, "published", _OFUL)),
            "tight": ("AdaC-OFUL, tight", lambda budget: _oful(budget, horizon, "tight", _OFUL)),
        },
        {"published": "open", "tight": "open"},
        {"open": RSOFUL(ARMS, DIMENSION, **_OFUL)},
        horizon,
    )


_OFUL: dict[str, Any] = {
    "growth": 1.0,
    "ridge": RIDGE,
    "failure_probability": DELTA,
    "reward_range": (-1.0, 1.0),
}


def _oful(budget: ZCDP | None, horizon: int, variant: str, options: dict[str, Any]) -> Policy:
    return AdaCOFUL(ARMS, DIMENSION, budget=budget, horizon=horizon, variant=variant, **options)


def _cells(placed: Placed, budgets: Sequence[float]) -> list[Cell]:
    setting = placed.setting
    policies = {
        _key(family, rho): make(ZCDP(rho))
        for family, (_, make) in setting.families.items()
        for rho in budgets
    }
    reading = PUBLISHED if _void(setting) else HONEST
    stage = f"{setting.title}: {reading.lower()}"
    return [
        Cell(
            key=f"{setting.key}/{key}",
            stage=stage,
            policy=policy,
            environment=setting.environment,
            horizon=setting.horizon,
            runs=placed.runs,
            seed=placed.seed,
            record=recorded(setting.horizon),
        )
        for key, policy in (policies | setting.without).items()
    ]


def _key(family: str, rho: float) -> str:
    return f"{family}/{rho:g}"


def _void(setting: Setting) -> bool:
    return not all(policy.clip for policy in setting.without.values())


# Findings ------------------------------------------------------------------------------------


def _assess(settings: Sequence[Setting], budgets: Sequence[float], results: Results) -> Findings:
    arms, fixed, contexts, fixed_bounded, contexts_bounded = (
        _Measured(setting, budgets, results) for setting in settings
    )
    figure4, honest = (arms, fixed, contexts), (fixed_bounded, contexts_bounded)
    claims = [claim for setting in figure4 for claim in setting.free_privacy(PUBLISHED)]
    claims += fixed.against_sums()
    claims += [claim for setting in honest for claim in setting.free_privacy(HONEST)]
    claims += [setting.tighter() for setting in (arms, *honest)]
    exhibits = [
        *_figure4(figure4, "figure-4", PUBLISHED),
        _figure5(fixed),
        *_figure4(honest, "guarantee", HONEST),
    ]
    return Findings(claims, [*exhibits, _ratios([arms, *honest])])


class _Measured:
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
        finals = [self.final(_key(families, rho)) for rho in self.budgets]
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
            for rho in (self.budgets[0], _middle(self.budgets))
        ]

    def _price_falls(self, name: str, source: str, reading: str, rho: float) -> Claim:
        private, without = self.curves(_key("published", rho)), self.curves("open")
        early = int(np.searchsorted(self.rounds, max(1, self.setting.horizon // 100)))
        return Claim(
            f"{name}: at ρ = {rho:g} the price of privacy falls towards 0 as rounds go by."
            f" Measured: the price after {spoken(int(self.rounds[-1]))} rounds minus that after"
            f" {spoken(int(self.rounds[early]))}.",
            source,
            reading,
            measured(
                [
                    private[..., -1],
                    without[..., -1],
                    private[..., early],
                    without[..., early],
                ],
                _fall,
            ),
            Expectation(high=0.0, strict=True),
            shares=True,
        )

    def against_sums(self) -> list[Claim]:
        """What Figure 5 is there to show."""
        source = f"{PAPER}, Figure 5"
        ours, theirs = (
            [self.final(_key(family, rho)) for rho in self.budgets]
            for family in ("published", "sums")
        )
        title = f"{self.setting.title}: AdaC-GOPE has less regret than AdaR-GOPE-Var"
        low = _ends(self.budgets)
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
            [self.final(_key(family, rho)) for rho in self.budgets]
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


def _middle(budgets: Sequence[float]) -> float:
    return budgets[len(budgets) // 2]


def _ends(budgets: Sequence[float]) -> tuple[float, ...]:
    return budgets[0], _middle(budgets), budgets[-1]


# Figures -------------------------------------------------------------------------------------


def _figure4(settings: Sequence[_Measured], name: str, reading: str) -> list[Exhibit]:
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


def _told(settings: Sequence[_Measured]) -> str:
    parts = []
    for one in settings:
        first, last = (
            float(np.mean(one.final(_key("published", rho)) - one.final("open")))
            for rho in (one.budgets[0], one.budgets[-1])
        )
        parts.append(
            f"{one.setting.title} from {number(first)} at ρ = {one.budgets[0]:g} to {number(last)}"
            f" at ρ = {one.budgets[-1]:g}"
        )
    return "; ".join(parts) + "."


def _difference(one: _Measured) -> Panel:
    series = []
    for family, (name, _) in one.setting.families.items():
        without = one.final(one.setting.opens[family])
        series.append(
            _by_budget(
                one, name, [[one.final(_key(family, rho)), without] for rho in one.budgets], _minus
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
    one: _Measured, label: str, columns: Sequence[list[np.ndarray]], statistic: Statistic
) -> Series:
    found = np.array([measured(pair, statistic) for pair in columns])
    return Series(label, np.array(one.budgets), found[:, 0], found[:, 1], found[:, 2], marks=True)


def _price_over_time(one: _Measured) -> Panel:
    without = one.curves("open")
    series = []
    for rho in one.budgets:
        shown = one.rounds >= max(10, one.setting.environment.n_arms)
        value, low, high = curve(
            [one.curves(_key("published", rho))[..., shown], without[..., shown]], price
        )
        series.append(Series(f"ρ = {rho:g}", one.rounds[shown], value, low, high))
    title = f"{one.setting.title}, {one.name('published')}"
    return Panel(
        title, "rounds", "price of privacy", series, y_scale="symlog", threshold=0.01, line=0.0
    )


def _figure5(fixed: _Measured) -> Exhibit:
    rounds, panels = fixed.rounds, []
    for rho in _ends(fixed.budgets):
        series = []
        for family in ("published", "sums"):
            value, low, high = curve([fixed.curves(_key(family, rho))], mean)
            series.append(
                Series(fixed.name(family), rounds, value, low, high, dashed=family == "sums")
            )
        panels.append(Panel(f"ρ = {rho:g}", "rounds", "mean regret", series))
    return Exhibit(
        "figure-5",
        "Figure 5: where to put the noise",
        "Mean regret with 95 % bands, over all instances of fixed arms. Phases are equally"
        " long for both; only the noise differs.",
        "Regret over rounds of AdaC-GOPE and AdaR-GOPE-Var, one panel per budget.",
        panels,
    )


def _ratios(settings: Sequence[_Measured]) -> Exhibit:
    panels = []
    for one in settings:
        pairs = [
            [one.final(_key("tight", rho)), one.final(_key("published", rho))]
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
