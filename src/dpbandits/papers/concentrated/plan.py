"""The experiments of Azize & Basu (2024), Concentrated Differential Privacy for Bandits: Figures 4
and 5.

Every setting is run as published and, where that voids the guarantee, once more with rewards in
[-1, 1] and contexts in the unit ball, where it holds.  There the published algorithms stand beside
their tighter relatives of this package, at the same budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...environments import ContextEnvironment
from ...privacy import ZCDP
from ...studies.cells import Cell
from ..plans import Findings, Plan, Results, Size, cells_of, instances
from . import settings as made
from .claims import Measured, figure4, figure5, tighter_ratios
from .settings import HONEST, PAPER, PUBLISHED, Setting, bernoulli, is_void, policy_key

HORIZON, RUNS = 10**7, 100
BUDGETS = (0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 3.0, 10.0)
QUICK_HORIZON, QUICK_RUNS = 50_000, 10
QUICK_BUDGETS = (0.001, 0.05, 1.0, 10.0)
SHORTER = 20  # by which contextual rounds beyond the figure are fewer, unless asked for in full


def plan(size: Size) -> Plan:
    """All settings of Figures 4 and 5, at the given size."""
    horizon = size.horizon or (QUICK_HORIZON if size.quick else HORIZON)
    runs = size.runs or (QUICK_RUNS if size.quick else RUNS)
    budgets = QUICK_BUDGETS if size.quick else BUDGETS
    shorter = horizon if size.full or size.quick else max(1, horizon // SHORTER)
    drawn = instances(size.seed, runs)
    # Bernoulli arms cost next to nothing, and their regret scatters most.
    groups = [[(bernoulli(horizon), size.seed, size.runs or RUNS)]]
    for make in made.LINEAR:
        rounds = shorter if make is made.contextual_bounded else horizon
        groups.append([(make(rounds, seed), seed, each) for seed, each in drawn])
    settings = [group[0][0] for group in groups]
    cells = [cell for group in groups for one in group for cell in _cells(*one, budgets)]
    # what takes long comes last
    cells.sort(key=lambda cell: isinstance(cell.environment, ContextEnvironment))
    notes = [
        (
            "As published, rewards (and contexts) of the linear settings are normal variables:"
            " they have no range and are not clipped, and the guarantee is void. With the"
            " guarantee that holds, rewards are 1 or -1 with the same means and contexts are"
            " scaled into the unit ball, so nothing has to be clipped."
        ),
        (
            "As published, AdaC-OFUL's radius has the least eigenvalue of the exact V in place of"
            " the bound on it, which is not positive for most of a run; and AdaC-GOPE's noise is"
            " scaled to the rounds that are played, not to the design before rounding."
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


def _cells(setting: Setting, seed: int, runs: int, budgets: Sequence[float]) -> list[Cell]:
    policies = {
        policy_key(family, rho): make(budget=ZCDP(rho))
        for family, (_, make) in setting.families.items()
        for rho in budgets
    }
    policies |= setting.without
    reading = PUBLISHED if is_void(setting) else HONEST
    stage = f"{setting.title}: {reading.lower()}"
    key, place = f"{setting.key}/{{}}".format, [(seed, setting.environment)]
    return cells_of(key, stage, policies, place, setting.horizon, runs)


def _assess(settings: Sequence[Setting], budgets: Sequence[float], results: Results) -> Findings:
    arms, fixed, contexts, fixed_bounded, contexts_bounded = (
        Measured(setting, budgets, results) for setting in settings
    )
    as_published, honest = (arms, fixed, contexts), (fixed_bounded, contexts_bounded)
    claims = [claim for setting in as_published for claim in setting.free_privacy(PUBLISHED)]
    claims += fixed.against_sums()
    claims += [claim for setting in honest for claim in setting.free_privacy(HONEST)]
    claims += [setting.tighter() for setting in (arms, *honest)]
    exhibits = [
        *figure4(as_published, "figure-4", PUBLISHED),
        figure5(fixed),
        *figure4(honest, "guarantee", HONEST),
    ]
    return Findings(claims, [*exhibits, tighter_ratios([arms, *honest])])
