"""Table 1 as measured scaling, and the saving of batches against noise on every reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...plotting.numbers import percent
from ...report.claims import VERDICT_CONFIDENCE, Claim, Expectation
from ...report.exhibits import Exhibit, Panel, Series
from ...report.intervals import Ratio
from ..plans import Findings, Results, Size, measured, spoken
from . import worst_case
from .section import PAPER, SLACK, Section, horizon_of, runs_of
from .worst_case import LEARNERS, USUAL_ARMS, USUAL_EPSILON, Probe, Setting, Sweep, settings_of

GROWTH, QUICK_GROWTH = (0.1, 0.3, 1.0, 3.0), (0.1, 0.3, 1.0)  # of rounds, in units of the horizon
LONGEST = 10.0  # likewise, in the full study
ARMS, QUICK_ARMS = (2, 4, 8, 16, 32), (2, 4, 8)
EPSILONS, QUICK_EPSILONS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0), (0.05, 0.2, 1.0)
SHORTER = 0.3  # of the horizon, where epsilon changes

# (gap, whether the best arm changes after a quarter)
FAMILY = (*((gap, False) for gap in (0.01, 0.03, 0.1, 0.3, 0.9)), (0.03, True), (0.1, True))
QUICK_FAMILY = ((0.03, False), (0.3, False), (0.1, True))

SCALING = "Table 1, with the tuning of this package"
PUBLISHED = "Table 1, at the published constants"
UNBATCHED = "Against noise on every reward"

_COROLLARIES = {"EXP3": "Corollary 1", "HTINF": "Corollary 2", "FTPL": "Corollary 3"}


class Scaling:
    """Regret against rounds, arms and epsilon, and against noise on every reward."""

    def __init__(self, size: Size) -> None:
        horizon, quick = horizon_of(size), size.quick
        growth = (*(QUICK_GROWTH if quick else GROWTH), *([LONGEST] if size.full else []))
        rounds, arms = [round(horizon * share) for share in growth], QUICK_ARMS if quick else ARMS
        self.epsilons = QUICK_EPSILONS if quick else EPSILONS
        self.shorter = round(horizon * SHORTER)
        self.probe = Probe("scaling", QUICK_FAMILY if quick else FAMILY, runs_of(size), size.seed)
        self.sweeps = worst_case.sweeps(
            Setting,
            rounds,
            arms,
            self.epsilons,
            counted=("K", "arms"),
            usual=(USUAL_ARMS, USUAL_EPSILON),
            horizons=(horizon, self.shorter),
        )
        self.strict = [e for e in self.epsilons if e < 1.0]

    def section(self) -> Section:
        settings = settings_of(self.sweeps, LEARNERS, SCALING)
        settings |= {setting: PUBLISHED for name in LEARNERS for setting in self._published(name)}
        settings |= {setting: UNBATCHED for name in LEARNERS for setting in self._pairs(name)[1]}
        notes = [
            (
                "Worst regret is the largest mean over instances with rewards 0 or 1: one arm is"
                f" better than the others by a gap of {self.probe.gaps}; where it is changing,"
                " another arm is from a quarter of the rounds on. The true worst case may be worse."
            ),
            (
                "Bounds are proved with constants so large (36, 208 and 32) that at these sizes"
                " they are near the number of rounds, or above it. A slope says how regret grows"
                f" there, and not whether the bound is true; up to {SLACK:g} above the bound's own"
                " slope on the same points counts as within it."
            ),
        ]
        return Section(self.probe.cells(settings), self._assess, notes)

    def _published(self, name: str) -> list[Setting]:
        return [setting._replace(calibration="paper") for setting in self.sweeps[0].settings(name)]

    def _pairs(self, name: str) -> tuple[list[Setting], list[Setting]]:
        """Batches, and noise on every reward, at every epsilon below 1."""
        batched = [Setting(name, self.shorter, USUAL_ARMS, epsilon) for epsilon in self.strict]
        return batched, [setting._replace(batch=1) for setting in batched]

    def _assess(self, results: Results) -> Findings:
        grown = [
            self._grows(name, sweep, sweep.settings(name), SCALING, results)
            for sweep in self.sweeps
            for name in LEARNERS
        ]
        published = [
            self._grows(name, self.sweeps[0], self._published(name), PUBLISHED, results)
            for name in LEARNERS
        ]
        compared = [claim for name in LEARNERS for claim in self._saves(name, results)]
        return Findings(
            [*grown, *published, *compared], [self._table(results, grown), self._ratios(results)]
        )

    def _grows(
        self,
        name: str,
        sweep: Sweep[Any],
        settings: Sequence[Setting],
        reading: str,
        results: Results,
    ) -> Claim:
        bounds = [worst_case.bound(name, *one[1:4]) for one in settings]
        source = f"{PAPER}, {_COROLLARIES[name]}"
        return worst_case.grows(name, sweep, self.probe, results, settings, bounds, source, reading)

    def _saves(self, name: str, results: Results) -> list[Claim]:
        """The claim on the benefit of batches."""
        batched, every = self._pairs(name)
        columns = self.probe.columns(results, [*batched, *every])
        held = f"K = {USUAL_ARMS}, {spoken(self.shorter)} rounds"
        weights = worst_case.log_weights(self.strict)
        ratios = self.probe.worst_ratios
        each = [
            Claim(
                f"{name}: batches of {_rounds(batch)} rounds have less regret than noise on every"
                f" reward at ε = {epsilon:g}. "
                f"Measured: the ratio of their worst regrets ({held}).",
                f"{PAPER}, Table 1",
                UNBATCHED,
                measured(columns, Ratio(lambda means, i=i: ratios(means)[..., i])),  # type: ignore[misc]
                Expectation(high=1.0, strict=True),
            )
            for i, (epsilon, batch) in enumerate(zip(self.strict, batched, strict=True))
        ]
        more = Claim(
            f"{name}: batches save the more the smaller ε is. Measured: the slope of the log ratio"
            f" in log ε, for ε from {self.strict[0]:g} to {self.strict[-1]:g}; without the"
            " logarithms the bounds have 0.5.",
            f"{PAPER}, Table 1",
            UNBATCHED,
            measured(columns, lambda means: np.log(ratios(means)) @ weights),
            Expectation(low=0.0, strict=True),
            over_random=self.probe.over_random(results, batched),
        )
        return [*each, more]

    def _table(self, results: Results, claims: Sequence[Claim]) -> Exhibit:
        panels = []
        for sweep in self.sweeps:
            drawn = worst_case.panel(sweep, self.probe, LEARNERS, results)
            x, first = np.array(sweep.values, float), min(float(one.y[0]) for one in drawn.series)
            nothing, y = np.full_like(x, np.nan), 0.7 * first * np.sqrt(x / x[0])
            slope = Series("slope 1/2", x, y, nothing, nothing, dashed=True)
            panels.append(replace(drawn, series=[*drawn.series, slope]))
        fitted = worst_case.slopes(LEARNERS, self.sweeps, claims)
        return Exhibit(
            "figure-table-1",
            "Table 1: regret against rounds, arms and 1/ε",
            "Largest mean regret over the instances, with 95 % bars; both axes are logarithmic,"
            " and the dashed line has the exponent of √(KT/ε). Fitted slopes with"
            f" {percent(VERDICT_CONFIDENCE, 1)} intervals: {fitted}",
            "Worst regret of EXP3, HTINF and FTPL against rounds, arms and one over epsilon on"
            " logarithmic axes.",
            panels,
        )

    def _ratios(self, results: Results) -> Exhibit:
        lines = [
            self.probe.series(name, self.strict, results, *self._pairs(name)) for name in LEARNERS
        ]
        title = f"K = {USUAL_ARMS}, {spoken(self.shorter)} rounds"
        return Exhibit(
            "figure-unbatched",
            "What batches save",
            "Worst regret of the conversion, with batches of ⌈1/ε⌉ rounds, over that of the"
            " same learner with noise on every reward, the method known before; 95 % bars,"
            " below 1 is better.",
            "Ratio of worst regrets, batches over noise on every reward, against epsilon.",
            [Panel(title, "ε", "ratio of worst regrets", lines, line=1.0)],
        )


def _rounds(setting: Setting) -> int:
    """The number of rounds that a release of the setting's policy covers."""
    return int(setting.policy().batch_size)  # type: ignore[attr-defined]
