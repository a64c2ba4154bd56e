"""The experiments of Wang, Zhao & Wang (2022), Dynamic Global Sensitivity for Differentially
Private Contextual Bandits: Figures 1 and 2.

LinUCB-DGS stands beside LinUCB and Private LinUCB three times: at the published constants; with the
noise of the authors' code, which has another scale; and at equal real privacy, where Private LinUCB
may spend what LinUCB-DGS really loses on the features that it meets.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ....algorithms.bases import ContextualPolicy
from ....privacy import PureDP
from ....report.claims import Claim
from ...cells import Cell, Results
from ...plans import Findings, Plan, Size, recorded
from .bouts import (
    CODED,
    EPSILON,
    EQUAL,
    KEPT,
    PAPER,
    PUBLISHED,
    SCALE,
    Bout,
    World,
    coded,
    equal,
    kept,
    music,
    pool,
    published,
)
from .changes import Changes
from .findings import Against, Measured, at, curves

HORIZON, RUNS = 8192, 100
MUSIC_HORIZON, MUSIC_RUNS = 5000, 20
QUICK_HORIZON, QUICK_RUNS = 1500, 10
QUICK_MUSIC_HORIZON, QUICK_MUSIC_RUNS = 1000, 5

# of Figures 2 (b) and (c); the paper has 5, too few for a standard deviation
NOISES, QUICK_NOISES = (
    40,
    20,
)

EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
QUICK_EPSILONS = (0.5, 2.0, 5.0)


def plan(size: Size) -> Plan:
    """All of Figures 1 and 2, at the given size; the parts on Last.fm where its data are."""
    horizon = size.horizon or (QUICK_HORIZON if size.quick else HORIZON)
    runs = size.runs or (QUICK_RUNS if size.quick else RUNS)
    epsilons = QUICK_EPSILONS if size.quick else EPSILONS
    gaussian, bounded = (
        pool(rewards, horizon, runs, size.seed) for rewards in ("gaussian", "bounded")
    )
    bouts = [published(gaussian), coded(gaussian), *equal(bounded), kept(bounded)]
    if size.data is not None:
        horizon = size.horizon or (QUICK_MUSIC_HORIZON if size.quick else MUSIC_HORIZON)
        runs = size.runs or (QUICK_MUSIC_RUNS if size.quick else MUSIC_RUNS)
        listeners = music(size.data, horizon, runs, size.seed)
        bouts += [published(listeners), coded(listeners), *equal(listeners), kept(listeners)]
    cells = [cell for bout in bouts for cell in _cells(bout)] + _against_epsilon(gaussian, epsilons)
    notes = [
        (
            "The privacy theorem of LinUCB-DGS is false: one reward moves all later increments of"
            " the estimate, not log2(T) of them. Its guarantee is void, and what it at most loses"
            " is computed for the features that it played, over 3 runs: exact for features that"
            " were fixed beforehand, an upper bound where the policy chose them. Budgets of rivals"
            " are made from that number: pure DP from its epsilon, zCDP from its rho."
        ),
        (
            f"At equal real privacy Private LinUCB may spend that loss, not the ε = {EPSILON:g}"
            " that was claimed: in pure DP with Laplace noise, in zCDP with Gaussian noise."
            f" Rewards there are bounded, and all play with {SCALE:g} times their radius."
        ),
        (
            "Constants that the paper leaves open: λ = 0.1, failure probability 0.1, radii as in"
            " its eq. (4) and in dpbandits."
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
            " the noise of the authors' code, and at the privacy that is really there."
        ),
        cells=list({cell.key: cell for cell in reversed(cells)}.values())[::-1],
        assess=partial(_assess, bouts, epsilons, QUICK_NOISES if size.quick else NOISES),
        notes=notes,
    )


def _cells(bout: Bout) -> list[Cell]:
    return [
        _cell(bout.world, key, policy, f"{bout.world.title}: {bout.reading.lower()}")
        for key, policy in bout.policies.items()
    ]


def _cell(world: World, key: str, policy: ContextualPolicy, stage: str) -> Cell:
    marks = recorded(world.horizon)
    return Cell(
        f"{world.key}/{key}",
        stage,
        policy,
        world.environment,
        world.horizon,
        world.runs,
        world.seed,
        marks,
    )


def _against_epsilon(world: World, epsilons: Sequence[float]) -> list[Cell]:
    found = []
    for epsilon in epsilons:
        if epsilon != EPSILON:
            made = {
                "dgs": world.dgs(epsilon),
                "dgs-coded": world.dgs(epsilon, "as_coded"),
                "tree": world.private(PureDP(epsilon), "tree"),
            }
            found += [
                _cell(world, at(key, epsilon), policy, f"{world.title}: regret against ε")
                for key, policy in made.items()
            ]
    return found


def _assess(
    bouts: Sequence[Bout], epsilons: Sequence[float], noises: int, results: Results
) -> Findings:
    found = [Measured(bout, results) for bout in bouts]
    synthetic = [one for one in found if one.world.key.startswith("pool")]
    listeners = [one for one in found if not one.world.key.startswith("pool")]
    against = Against(bouts[0].world, epsilons, results)
    changes = [Changes(worlds[0].world, noises) for worlds in (synthetic, listeners) if worlds]
    claims = [
        claim for reading in (PUBLISHED, CODED) for claim in _read(reading, found, against, changes)
    ]
    claims += [
        claim
        for one in found
        if one.bout.reading == EQUAL
        for claim in (one.real_epsilon(), *one.compared())
    ]
    claims += [claim for one in found if one.bout.reading == KEPT for claim in one.kept()]
    exhibits = [
        curves("figure-1a", "Figure 1 (a): regret, synthetic", synthetic, "mean regret", "regret"),
        *(
            [
                curves(
                    "figure-1b",
                    "Figure 1 (b): reward, Last.fm",
                    listeners,
                    "reward / random",
                    "reward",
                )
            ]
            if listeners
            else []
        ),
        curves(
            "figure-1c",
            "Figure 1 (c): error of the parameter, synthetic",
            synthetic,
            "|θ̂ − θ*|",
            "distance",
            "log",
        ),
        against.exhibit(),
        *(one.exhibit() for one in changes),
    ]
    return Findings(claims, exhibits)


def _read(
    reading: str, found: Sequence[Measured], against: Against, changes: Sequence[Changes]
) -> list[Claim]:
    """The claims of the paper, with one scale of noise."""
    claims = []
    for one in found:
        if one.bout.reading == reading:
            claims += [one.price(), *one.compared()]
    return (
        claims
        + against.claims(reading)
        + [claim for change in changes for claim in change.claims(reading)]
    )
