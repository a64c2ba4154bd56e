"""Epsilon below one over the root of the rounds, where no locally private policy learns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...report.claims import Claim, Expectation
from ...report.exhibits import Exhibit, Panel
from ...report.means import Estimate
from ..plans import Findings, Results, Size, measured, spoken
from .section import EVERY, PAPER, Section, horizon_of, runs_of
from .worst_case import LEARNERS, Probe, Setting

WIDE = ((0.3, False), (0.9, False))  # gaps that few batches may find
GROWTH, QUICK_GROWTH = (0.01, 0.03, 0.1, 0.3), (0.01, 0.1, 0.3)
POWER = 0.6  # epsilon = 1 / rounds^0.6, which is below 1 / sqrt(rounds)
MORE_RUNS, QUICK_MORE_RUNS = 8, 4  # times as many: unbatched regret is all or nothing there

LINEAR = 0.95  # slope from which regret is called linear

SMALL_EPSILON = "ε below 1/√T"


def small_epsilon(size: Size) -> Section:
    """Slopes in the rounds, in batches and without."""
    shares = QUICK_GROWTH if size.quick else GROWTH
    rounds = [max(4, round(horizon_of(size) * share)) for share in shares]
    epsilons = [float(f"{t**-POWER:.3g}") for t in rounds]
    runs = runs_of(size) * (QUICK_MORE_RUNS if size.quick else MORE_RUNS)
    probe = Probe("small-epsilon", WIDE, runs, size.seed)
    batched = {
        name: [Setting(name, t, 2, e) for t, e in zip(rounds, epsilons, strict=True)]
        for name in LEARNERS
    }
    every = {name: [one._replace(batch=1) for one in batched[name]] for name in ("EXP3", "HTINF")}
    settings = [one for of in (batched, every) for each in of.values() for one in each]
    cells = probe.cells(dict.fromkeys(settings, SMALL_EPSILON))
    where = f"ε = 1/T^{POWER:g}, K = 2, T from {spoken(rounds[0])} to {spoken(rounds[-1])}"
    slope = probe.slope(rounds)

    def claim(statement: str, found: Estimate, expected: Expectation, **more: Any) -> Claim:
        source = f"{PAPER}, after Corollary 3"
        return Claim(f"{statement} ({where}).", source, SMALL_EPSILON, found, expected, **more)

    def assess(results: Results) -> Findings:
        claims = [
            claim(
                f"{name} in batches: regret is sublinear. Measured: the slope of log worst regret"
                " in log T",
                measured(probe.columns(results, settings), slope),
                Expectation(high=1.0, strict=True),
                over_random=probe.over_random(results, settings),
            )
            for name, settings in batched.items()
        ]
        for name, settings in every.items():
            both = [*probe.columns(results, batched[name]), *probe.columns(results, settings)]
            claims += [
                claim(
                    f"{name} with noise on every reward: regret is linear. Measured: the slope of"
                    " log worst regret in log T",
                    measured(probe.columns(results, settings), slope),
                    Expectation(low=LINEAR),
                ),
                claim(
                    f"{name}: regret grows more slowly in batches. Measured: the difference of the"
                    " two slopes",
                    measured(both, lambda m: np.subtract(*map(slope, np.split(m, 2, axis=-1)))),
                    Expectation(high=0.0, strict=True),
                    over_random=probe.over_random(results, batched[name]),
                ),
            ]
        return Findings(claims, [_per_round(probe, rounds, batched, every, results)])

    note = (
        f"Regret is called linear from a slope of {LINEAR:g}. That every locally private policy has"
        " linear regret below ε = 1/√T holds as T grows; at these sizes noise on every reward may"
        " still leave something to learn."
    )
    return Section(cells, assess, [note])


def _per_round(
    probe: Probe,
    rounds: Sequence[int],
    batched: dict[str, list[Setting]],
    every: dict[str, list[Setting]],
    results: Results,
) -> Exhibit:
    lines = [probe.series(name, rounds, results, settings) for name, settings in batched.items()]
    lines += [
        probe.series(EVERY.format(name), rounds, results, settings, dashed=True)
        for name, settings in every.items()
    ]
    t = np.array(rounds, float)
    shared = [replace(one, y=one.y / t, low=one.low / t, high=one.high / t) for one in lines]
    return Exhibit(
        "figure-small-epsilon",
        "ε below 1/√T: regret per round",
        f"Worst mean regret divided by rounds, with 95 % bars, at ε = 1/T^{POWER:g} and two"
        " arms; on a level line regret is linear.",
        "Worst regret per round against rounds, in batches and with noise on every reward.",
        [Panel("Two arms", "rounds T", "worst mean regret per round", shared)],
    )
