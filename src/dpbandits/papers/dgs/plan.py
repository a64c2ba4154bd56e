"""The experiments of Wang, Zhao & Wang (2022), Dynamic Global Sensitivity for Differentially
Private Contextual Bandits: Figures 1 and 2.

LinUCB-DGS is compared with LinUCB and Private LinUCB three times.  The first comparison uses the
published constants.  The second uses the noise of the authors' code, which has another scale.  The
third is at equal real privacy: Private LinUCB may spend the real privacy loss of LinUCB-DGS on its
features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ...algorithms.bases.contextual import ContextualPolicy
from ...privacy import PureDP
from ...report.claims import Claim
from ...studies.cells import Cell
from ..plans import Findings, Plan, Results, Size, cells_of
from . import comparisons as compare
from .comparisons import CLAIMED, EPSILON, EQUAL, PAPER, SCALES, Comparison, World
from .figures import Against, Changes, Measured, at, curves

HORIZON, RUNS = 8192, 100
MUSIC_HORIZON, MUSIC_RUNS = 5000, 20
QUICK_HORIZON, QUICK_RUNS = 1500, 10
QUICK_MUSIC_HORIZON, QUICK_MUSIC_RUNS = 1000, 5

# of Figures 2 (b) and (c): draws of contexts and rewards, each with as many noises; the paper has 5
# noises and one draw
TABLES, QUICK_TABLES, NOISES = 10, 5, 4

EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
QUICK_EPSILONS = (0.5, 2.0, 5.0)

Group = Sequence[Comparison]  # the same in all instances of a world


def plan(size: Size) -> Plan:
    """All of Figures 1 and 2, at the given size; the parts on Last.fm where its data are."""
    quick = size.quick
    horizon, runs = size.horizon or (QUICK_HORIZON if quick else HORIZON), size.runs
    gaussian, bounded = (
        compare.pools(rewards, horizon, runs or (QUICK_RUNS if quick else RUNS), size.seed)
        for rewards in ("gaussian", "bounded")
    )
    groups, places = _groups(gaussian, bounded), [gaussian]
    if size.data is not None:
        horizon = size.horizon or (QUICK_MUSIC_HORIZON if quick else MUSIC_HORIZON)
        runs = size.runs or (QUICK_MUSIC_RUNS if quick else MUSIC_RUNS)
        listeners = [compare.music(size.data, horizon, runs, size.seed)]
        groups, places = [*groups, *_groups(listeners, listeners)], [gaussian, listeners]
    epsilons = QUICK_EPSILONS if quick else EPSILONS
    compared = [one for group in groups for one in group]
    cells = [cell for one in compared for cell in _in(one.world, one.reading.lower(), one.policies)]
    cells += [cell for world in gaussian for cell in _against_epsilon(world, epsilons)]
    notes = [
        (
            "The privacy theorem of LinUCB-DGS is false: one reward moves all later increments"
            " of the estimate, not log2(T) of them. Its guarantee is void. Its largest loss is"
            f" computed for the features that it played, in {compare.LOSS_RUNS} runs on"
            " different rounds (and pools): exact for features that were fixed beforehand, an"
            " upper bound where the policy chose them. Budgets of rivals are made from the"
            " smallest of these numbers: pure DP from epsilon, zCDP from rho."
        ),
        (
            f"At equal real privacy Private LinUCB may spend that loss, not the ε = {EPSILON:g}"
            " that was claimed: in pure DP with Laplace noise, in zCDP with Gaussian noise."
            f" Rewards there are bounded, and all play with {compare.SCALE:g} times their radius."
        ),
        (
            "Constants that the paper leaves open: λ = 0.1, failure probability 0.1, radii as in"
            " its eq. (4) and in dpbandits."
        ),
        (
            f"The synthetic pool is random: numbers are means over {len(gaussian)} pools, and"
            " intervals cover what differs among them. Last.fm is one data set."
        ),
    ]
    if size.data is None:
        notes.append(
            "The parts on Last.fm, Figures 1 (b) and 2 (c), were left out: --data names the folder"
            " with its files."
        )
    return Plan(
        title="Dynamic global sensitivity: the experiments, run again",
        description=(
            f"Figures 1 and 2 of {PAPER}, their claims measured at the published constants, with"
            " the noise of the authors' code, and at the privacy that really holds."
        ),
        cells=list({(cell.key, cell.seed): cell for cell in reversed(cells)}.values())[::-1],
        assess=partial(_assess, groups, places, epsilons, QUICK_TABLES if quick else TABLES),
        notes=notes,
        shown=list(dict.fromkeys(repr(group[0].world.environment) for group in groups))[
            : 1 if quick else None
        ],
    )


def _groups(learned: Sequence[World], protected: Sequence[World]) -> list[Group]:
    """All comparisons: with rewards as in the paper, and with such as can be protected."""
    return [
        *([compare.as_read(reading, world) for world in learned] for reading in SCALES),
        *compare.at_equal_privacy(protected),
        [compare.at_claimed_privacy(world) for world in protected],
    ]


def _in(world: World, what: str, policies: Mapping[str, ContextualPolicy]) -> list[Cell]:
    key, place = f"{world.key}/{{}}".format, [(world.seed, world.environment)]
    return cells_of(key, f"{world.title}: {what}", policies, place, world.horizon, world.runs)


def _against_epsilon(world: World, epsilons: Sequence[float]) -> list[Cell]:
    policies: dict[str, ContextualPolicy] = {}
    for epsilon in epsilons:
        if epsilon != EPSILON:
            policies[at("dgs", epsilon)] = world.dgs(epsilon)
            policies[at("dgs-coded", epsilon)] = world.dgs(epsilon, "as_coded")
            policies[at("tree", epsilon)] = world.private(PureDP(epsilon), "tree")
    return _in(world, "regret against ε", policies)


def _assess(
    groups: Sequence[Group],
    places: Sequence[Sequence[World]],
    epsilons: Sequence[float],
    tables: int,
    results: Results,
) -> Findings:
    found = [Measured(group, results) for group in groups]
    synthetic = [one for one in found if not one.ratios]
    listeners = [one for one in found if one.ratios]
    against = Against(places[0][0], epsilons, results)
    changes = [Changes(worlds, tables, NOISES) for worlds in places]
    claims = [claim for reading in SCALES for claim in _read(reading, found, against, changes)]
    for one in found:
        if one.reading == EQUAL:
            claims += [one.real_epsilon(), *one.compared()]
    claims += [one.at_claimed_privacy() for one in found if one.reading == CLAIMED]
    heading = "Figure 1 (a): regret, synthetic"
    exhibits = [curves("figure-1a", heading, synthetic, "mean regret", "regret")]
    if listeners:
        heading = "Figure 1 (b): reward, Last.fm"
        exhibits.append(curves("figure-1b", heading, listeners, "reward / random", "reward"))
    heading = "Figure 1 (c): error of the parameter, synthetic"
    exhibits.append(curves("figure-1c", heading, synthetic, "|θ̂ − θ*|", "distance", "log"))
    exhibits += [against.exhibit(), *(one.exhibit() for one in changes)]
    return Findings(claims, exhibits)


def _read(
    reading: str, found: Sequence[Measured], against: Against, changes: Sequence[Changes]
) -> list[Claim]:
    """The claims of the paper, with one scale of noise."""
    claims = []
    for one in found:
        if one.reading == reading:
            claims += [one.price(), *one.compared()]
    claims += against.claims(reading)
    return claims + [claim for change in changes for claim in change.claims(reading)]
