"""The bounds of Faster Rates for Private Adversarial Bandits, measured: its Table 1, the leak of EXP3, and Lemma 15.

The paper has no experiments, so that the settings are ours.  Its bounds are about the worst sequence of losses, which nobody can play:
regret is measured on a family of instances, and the largest mean counts.  Gaps of the family are the same at all sizes, or regret
would grow as the gaps do, whatever the policy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ...algorithms import EXP3, EXP3IX, FTPL, HTINF, TsallisINF
from ...environments import DoctorReplay, LateTurn, RewardTable, SwitchingBest, lastfm, movielens
from ...errors import ArgumentError
from ...policies import Policy
from ...privacy import PureDP
from ...report.claims import Claim, Expectation
from ...report.exhibits import Exhibit, Panel, Series
from ...report.labels import number
from ...report.scenes import Estimate
from ..cells import Cell, Results
from ..claims import Statistic, curve, mean, measured, ratio
from ..plans import Findings, Plan, Size, recorded, spoken

HORIZON, RUNS = 10**6, 30
QUICK_HORIZON, QUICK_RUNS = 10**5, 5
SMALLEST = 400  # rounds, below which there would be too few batches to fit anything

GROWTH, QUICK_GROWTH = (0.1, 0.3, 1.0, 3.0), (0.1, 0.3, 1.0)  # of rounds, in units of the horizon
LONGEST = 10.0  # likewise, in the full study
ARMS, QUICK_ARMS = (2, 4, 8, 16, 32), (2, 4, 8)
EPSILONS, QUICK_EPSILONS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0), (0.05, 0.2, 1.0)
SHORTER = 0.3  # of the horizon, where epsilon changes
USUAL_ARMS, USUAL_EPSILON = 4, 0.1

# (gap, whether the best arm changes after a quarter)
FAMILY = ((0.01, False), (0.03, False), (0.1, False), (0.3, False), (0.9, False), (0.03, True), (0.1, True))
QUICK_FAMILY = ((0.03, False), (0.1, False), (0.3, False), (0.9, False), (0.1, True))
WIDE = ((0.3, False), (0.9, False))  # gaps that few batches may find

STRICT_GROWTH, QUICK_STRICT_GROWTH = (0.01, 0.03, 0.1, 0.3), (0.01, 0.1, 0.3)
STRICT_POWER = 0.6  # epsilon = 1 / rounds^0.6, which is below 1 / sqrt(rounds)
STRICT_MORE = 8  # times as many runs: unbatched regret is all or nothing there

TURNS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.45, 1.0)  # of the rounds; 1 is never
QUICK_TURNS = (0.01, 0.1, 0.3, 1.0)
LATE_SHORTER = 0.1  # of the horizon

REAL_EPSILONS = (0.1, 1.0)

SLACK = 0.05  # of a slope: what chance and small sizes may add
LINEAR = 0.95  # slope from which regret is called linear

PAPER = "Faster Rates for Private Adversarial Bandits"
SCALING = "Table 1, with the tuning of this package"
PUBLISHED = "Table 1, at the published constants"
UNBATCHED = "Against noise on every reward"
STRICT = "ε below 1/√T"
LEAK = "What EXP3 leaks without noise"
LATE = "Lemma 15: an arm that turns good"
REAL = "Real rewards"

LEARNERS: dict[str, type[EXP3 | HTINF | FTPL]] = {"EXP3": EXP3, "HTINF": HTINF, "FTPL": FTPL}
_COROLLARIES = {"EXP3": "Corollary 1", "HTINF": "Corollary 2", "FTPL": "Corollary 3"}
_EVERY = "{}, noise on every reward"


@dataclass(frozen=True)
class Section:
    """One part of the report.

    Attributes:
        cells: what to simulate for it.
        assess: from the results of all cells to its claims and figures.
        notes: what a reader has to know.
        shown: environments whose results the page shows by themselves.
    """

    cells: Sequence[Cell]
    assess: Callable[[Results], Findings]
    notes: Sequence[str] = ()
    shown: Sequence[str] = ()


def sections(size: Size) -> list[Section]:
    """All parts of the report in their order."""
    scaling = _Scaling(size)
    return [scaling.section(), _strict(size), _leak(size), _late(size), _real(size)]


def plan(size: Size) -> Plan:
    """Everything at the given size; the part on real rewards where data are."""
    parts = sections(size)

    def assess(results: Results) -> Findings:
        found = [part.assess(results) for part in parts]
        return Findings([claim for one in found for claim in one.claims], [exhibit for one in found for exhibit in one.exhibits])

    return Plan(
        title="Private adversarial bandits: the bounds, measured",
        description=f"What {PAPER} proves, beside what its algorithms do: how regret grows with rounds, arms and privacy, what batches "
        "save, what EXP3 leaks without them, and real rewards in the order of time.",
        cells=[cell for part in parts for cell in part.cells],
        assess=assess,
        notes=[note for part in parts for note in part.notes],
        shown=[name for part in parts for name in part.shown],
    )


def _horizon(size: Size) -> int:
    return max(SMALLEST, size.horizon or (QUICK_HORIZON if size.quick else HORIZON))


def _runs(size: Size) -> int:
    return size.runs or (QUICK_RUNS if size.quick else RUNS)


# Worst regret over a family of instances ----------------------------------------------------------------------------------


class Setting(NamedTuple):
    """One policy at one size."""

    learner: str
    horizon: int
    n_arms: int
    epsilon: float
    batch: int | None = None  # 1 for noise on every reward
    calibration: Literal["exact", "paper"] = "exact"

    def policy(self) -> Policy:
        """The policy; tuned for the horizon where it takes one."""
        cls = LEARNERS[self.learner]
        options: dict[str, Any] = {} if cls is HTINF else {"horizon": self.horizon}
        return cls(
            self.n_arms,
            budget=PureDP(self.epsilon),
            batch=self.batch,
            calibration=self.calibration,
            noise="simulation",
            **options,
        )


@functools.cache
def _instance(horizon: int, n_arms: int, gap: float, changes: bool) -> SwitchingBest:
    best, switches = ([0, n_arms - 1], [horizon // 4]) if changes else ([n_arms // 2], [])
    return SwitchingBest(n_arms, best=best, switches=switches, horizon=horizon, gap=gap)


@dataclass(frozen=True)
class Probe:
    """How the worst mean regret over some instances is measured.

    Attributes:
        prefix: of the keys of its cells.
        family: (gap, whether the best arm changes) of every instance.
        runs, seed: as ``simulate`` takes them.
    """

    prefix: str
    family: Sequence[tuple[float, bool]]
    runs: int
    seed: int

    def cells(self, settings: Sequence[Setting], stage: str) -> list[Cell]:
        """One per setting and instance."""
        return [
            Cell(
                self._key(setting, *kind),
                stage,
                setting.policy(),
                _instance(setting.horizon, setting.n_arms, *kind),
                setting.horizon,
                self.runs,
                self.seed,
                (setting.horizon,),
            )
            for setting in settings
            for kind in self.family
        ]

    def columns(self, results: Results, settings: Sequence[Setting]) -> list[np.ndarray]:
        """Final regrets, all instances of a setting side by side."""
        return [results.final(self._key(setting, *kind)) for setting in settings for kind in self.family]

    def worst(self, means: np.ndarray) -> np.ndarray:
        """The largest mean of every setting, shape (..., settings), from means of ``columns``."""
        return means.reshape(*means.shape[:-1], -1, len(self.family)).max(axis=-1)

    def slope(self, x: Sequence[float]) -> Statistic:
        """Of log worst regret in log x, by least squares."""
        weights = _weights(x)
        return lambda means: np.log(self.worst(means)) @ weights

    def series(self, label: str, x: Sequence[float], results: Results, settings: Sequence[Setting], **looks: Any) -> Series:
        """Worst regret at every x."""
        data = [column[:, None] for column in self.columns(results, settings)]
        value, low, high = curve(data, lambda means: self.worst(means)[..., 0, :])
        return Series(label, np.array(x, float), value, low, high, marks=True, **looks)

    def _key(self, setting: Setting, gap: float, changes: bool) -> str:
        return "/".join(map(str, (self.prefix, *setting, gap, "changes" if changes else "stays")))


def _weights(x: Sequence[float]) -> np.ndarray:
    centred = np.log(x) - np.log(x).mean()
    return np.asarray(centred / (centred @ centred))


def bound(learner: str, horizon: float, n_arms: float, epsilon: float) -> float:
    """The bound of Table 1 for a learner, without its constant: the logarithms are those of the corollaries' proofs.

    >>> bound("HTINF", 10**6, 4, 0.25)
    4000.0
    """
    root = math.sqrt(n_arms * horizon / epsilon)
    return root if learner == "HTINF" else root * math.sqrt(math.log(n_arms)) * math.log(n_arms * horizon)


# Table 1 ------------------------------------------------------------------------------------------------------------------


class Sweep(NamedTuple):
    """What is varied, and in which settings."""

    symbol: str
    name: str
    values: Sequence[float]
    settings: Callable[[str], list[Setting]]
    held: str


class _Scaling:
    """Regret against rounds, arms and epsilon, and against the same learners with noise on every reward."""

    def __init__(self, size: Size) -> None:
        horizon, quick = _horizon(size), size.quick
        growth = (*(QUICK_GROWTH if quick else GROWTH), *([LONGEST] if size.full else []))
        rounds, arms = [round(horizon * share) for share in growth], QUICK_ARMS if quick else ARMS
        self.epsilons = QUICK_EPSILONS if quick else EPSILONS
        self.shorter = round(horizon * SHORTER)
        self.probe = Probe("scaling", QUICK_FAMILY if quick else FAMILY, _runs(size), size.seed)
        k, epsilon = USUAL_ARMS, USUAL_EPSILON
        self.sweeps = [
            Sweep(
                "T", "rounds", rounds, lambda name: [Setting(name, t, k, epsilon) for t in rounds], f"K = {k}, ε = {epsilon:g}"
            ),
            Sweep(
                "K",
                "arms",
                arms,
                lambda name: [Setting(name, horizon, arm, epsilon) for arm in arms],
                f"{spoken(horizon)} rounds, ε = {epsilon:g}",
            ),
            Sweep(
                "1/ε",
                "1/ε",
                [1.0 / e for e in self.epsilons],
                lambda name: [Setting(name, self.shorter, k, e) for e in self.epsilons],
                f"K = {k}, {spoken(self.shorter)} rounds",
            ),
        ]
        self.strict = [e for e in self.epsilons if e < 1.0]

    def section(self) -> Section:
        settings = {setting: SCALING for sweep in self.sweeps for name in LEARNERS for setting in sweep.settings(name)}
        settings |= {setting: PUBLISHED for name in LEARNERS for setting in self._published(name)}
        settings |= {setting: UNBATCHED for name in LEARNERS for setting in self._pairs(name)[1]}
        cells = [cell for setting, stage in settings.items() for cell in self.probe.cells([setting], stage)]
        kinds = ", ".join(f"{gap:g}{' (changing)' if changes else ''}" for gap, changes in self.probe.family)
        notes = [
            f"Worst regret is the largest mean over instances with rewards 0 or 1: one arm is better than the others by a gap of {kinds}; "
            "where it is changing, another arm is from a quarter of the rounds on. The true worst case may be worse.",
            "Bounds are proved with constants so large (36, 208 and 32) that at these sizes they are near the number of rounds, or above "
            "it. A slope says how regret grows there, and not whether the bound is true; up to "
            f"{SLACK:g} above the bound's own slope on the same points counts as within it.",
        ]
        return Section(cells, self._assess, notes)

    def _published(self, name: str) -> list[Setting]:
        return [setting._replace(calibration="paper") for setting in self.sweeps[0].settings(name)]

    def _pairs(self, name: str) -> tuple[list[Setting], list[Setting]]:
        """Batches, and noise on every reward, at every epsilon below 1."""
        batched = [Setting(name, self.shorter, USUAL_ARMS, epsilon) for epsilon in self.strict]
        return batched, [setting._replace(batch=1) for setting in batched]

    def _assess(self, results: Results) -> Findings:
        grown = [self._grows(name, sweep, sweep.settings(name), SCALING, results) for sweep in self.sweeps for name in LEARNERS]
        published = [self._grows(name, self.sweeps[0], self._published(name), PUBLISHED, results) for name in LEARNERS]
        compared = [claim for name in LEARNERS for claim in self._saves(name, results)]
        return Findings([*grown, *published, *compared], [self._table(results, grown), self._ratios(results)])

    def _grows(self, name: str, sweep: Sweep, settings: Sequence[Setting], reading: str, results: Results) -> Claim:
        proved = float(np.log([bound(name, s.horizon, s.n_arms, s.epsilon) for s in settings]) @ _weights(sweep.values))
        return Claim(
            f"{name}: worst regret grows with {sweep.symbol} no faster than the bound, whose slope is {proved:.2f} here. Measured: the "
            f"slope of log regret in log {sweep.symbol}, for {sweep.name} from {spoken_value(min(sweep.values))} to "
            f"{spoken_value(max(sweep.values))} ({sweep.held}).",
            f"{PAPER}, {_COROLLARIES[name]}",
            reading,
            measured(self.probe.columns(results, settings), self.probe.slope(sweep.values)),
            Expectation(high=proved + SLACK),
        )

    def _saves(self, name: str, results: Results) -> list[Claim]:
        """What batches are there for."""
        batched, every = self._pairs(name)
        columns = self.probe.columns(results, [*batched, *every])
        held, weights = f"K = {USUAL_ARMS}, {spoken(self.shorter)} rounds", _weights(self.strict)

        def ratios(means: np.ndarray) -> np.ndarray:
            one, other = np.split(self.probe.worst(means), 2, axis=-1)
            return one / other

        each = [
            Claim(
                f"{name}: batches of {batch.policy().batch} rounds have less regret than noise on every reward at ε = {epsilon:g}. "  # type: ignore[attr-defined]
                f"Measured: the ratio of their worst regrets ({held}).",
                f"{PAPER}, Table 1",
                UNBATCHED,
                measured(columns, lambda means, i=i: ratios(means)[..., i]),  # type: ignore[misc]
                Expectation(high=1.0, strict=True),
            )
            for i, (epsilon, batch) in enumerate(zip(self.strict, batched, strict=True))
        ]
        more = Claim(
            f"{name}: batches save the more the smaller ε is. Measured: the slope of the log ratio in log ε, for ε from "
            f"{self.strict[0]:g} to {self.strict[-1]:g}; without the logarithms the bounds have 0.5.",
            f"{PAPER}, Table 1",
            UNBATCHED,
            measured(columns, lambda means: np.log(ratios(means)) @ weights),
            Expectation(low=0.0, strict=True),
        )
        return [*each, more]

    def _table(self, results: Results, claims: Sequence[Claim]) -> Exhibit:
        panels = []
        for sweep in self.sweeps:
            lines = [self.probe.series(name, sweep.values, results, sweep.settings(name)) for name in LEARNERS]
            first = 0.7 * min(float(line.y[0]) for line in lines)
            x = np.array(sweep.values, float)
            nothing = np.full_like(x, np.nan)
            lines.append(Series("slope 1/2", x, first * np.sqrt(x / x[0]), nothing, nothing, dashed=True))
            panels.append(Panel(sweep.held, sweep.name, "worst mean regret", lines, y_scale="log"))
        return Exhibit(
            "figure-table-1",
            "Table 1: regret against rounds, arms and 1/ε",
            "Largest mean regret over the instances, with 95 % bars; both axes are logarithmic, and the dashed line has the exponent of "
            f"√(KT/ε). Fitted slopes with 95 % intervals: {self._slopes(claims)}",
            "Worst regret of EXP3, HTINF and FTPL against rounds, arms and one over epsilon on logarithmic axes.",
            panels,
        )

    def _slopes(self, claims: Sequence[Claim]) -> str:
        parts = []
        for i, sweep in enumerate(self.sweeps):
            of = zip(LEARNERS, claims[i * len(LEARNERS) :], strict=False)
            found = ", ".join(
                f"{name} {claim.measured.mean:.2f} {claim.range} (bound {_proved(claim):.2f})" for name, claim in of
            )
            parts.append(f"in {sweep.symbol}, {found}")
        return "; ".join(parts) + "."

    def _ratios(self, results: Results) -> Exhibit:
        lines = []
        for name in LEARNERS:
            batched, every = self._pairs(name)
            data = [column[:, None] for column in self.probe.columns(results, [*batched, *every])]

            def ratios(means: np.ndarray) -> np.ndarray:
                one, other = np.split(self.probe.worst(means)[..., 0, :], 2, axis=-1)
                return np.asarray(one / other)

            lines.append(Series(name, np.array(self.strict), *curve(data, ratios), marks=True))
        title = f"K = {USUAL_ARMS}, {spoken(self.shorter)} rounds"
        return Exhibit(
            "figure-unbatched",
            "What batches save",
            "Worst regret of the conversion, with batches of ⌈1/ε⌉ rounds, over that of the same learner with noise on every reward, which "
            "is what was known before; 95 % bars, below 1 is better.",
            "Ratio of worst regrets, batches over noise on every reward, against epsilon.",
            [Panel(title, "ε", "ratio of worst regrets", lines, line=1.0)],
        )


def _proved(claim: Claim) -> float:
    return claim.expected.high - SLACK


def spoken_value(value: float) -> str:
    """Rounds, arms or one over epsilon as one says them.

    >>> spoken_value(1_000_000), spoken_value(2.0), spoken_value(50.0)
    ('1M', '2', '50')
    """
    return spoken(round(value)) if value >= 1000 else f"{value:g}"


# Below 1 / sqrt(T) --------------------------------------------------------------------------------------------------------


def _strict(size: Size) -> Section:
    shares = QUICK_STRICT_GROWTH if size.quick else STRICT_GROWTH
    rounds = [max(4, round(_horizon(size) * share)) for share in shares]
    epsilons = [float(f"{t**-STRICT_POWER:.3g}") for t in rounds]
    probe = Probe("strict", WIDE, _runs(size) * STRICT_MORE, size.seed)
    batched = {name: [Setting(name, t, 2, e) for t, e in zip(rounds, epsilons, strict=True)] for name in LEARNERS}
    every = {name: [one._replace(batch=1) for one in batched[name]] for name in ("EXP3", "HTINF")}
    cells = [cell for of in (batched, every) for settings in of.values() for cell in probe.cells(settings, STRICT)]
    where = f"ε = 1/T^{STRICT_POWER:g}, K = 2, T from {spoken(rounds[0])} to {spoken(rounds[-1])}"
    slope = probe.slope(rounds)

    def claim(statement: str, found: Estimate, expected: Expectation) -> Claim:
        return Claim(f"{statement} ({where}).", f"{PAPER}, after Corollary 3", STRICT, found, expected)

    def assess(results: Results) -> Findings:
        claims = [
            claim(
                f"{name} in batches: regret is sublinear. Measured: the slope of log worst regret in log T",
                measured(probe.columns(results, settings), slope),
                Expectation(high=1.0, strict=True),
            )
            for name, settings in batched.items()
        ]
        for name, settings in every.items():
            both = [*probe.columns(results, batched[name]), *probe.columns(results, settings)]
            claims += [
                claim(
                    f"{name} with noise on every reward: regret is linear. Measured: the slope of log worst regret in log T",
                    measured(probe.columns(results, settings), slope),
                    Expectation(low=LINEAR),
                ),
                claim(
                    f"{name}: regret grows more slowly in batches. Measured: the difference of the two slopes",
                    measured(both, lambda means: np.subtract(*(slope(half) for half in np.split(means, 2, axis=-1)))),
                    Expectation(high=0.0, strict=True),
                ),
            ]
        return Findings(claims, [_per_round(probe, rounds, batched, every, results)])

    note = (
        f"Regret is called linear from a slope of {LINEAR:g}. That every locally private policy has linear regret below ε = 1/√T holds as "
        "T grows; at these sizes noise on every reward may still leave something to learn."
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
    lines += [probe.series(_EVERY.format(name), rounds, results, settings, dashed=True) for name, settings in every.items()]
    t = np.array(rounds, float)
    shared = [Series(one.label, t, one.y / t, one.low / t, one.high / t, True, one.dashed) for one in lines]
    return Exhibit(
        "figure-strict",
        "ε below 1/√T: regret per round",
        f"Worst mean regret divided by rounds, with 95 % bars, at ε = 1/T^{STRICT_POWER:g} and two arms; on a level line regret is linear.",
        "Worst regret per round against rounds, in batches and with noise on every reward.",
        [Panel("Two arms", "rounds T", "worst mean regret per round", shared)],
    )


# What EXP3 leaks ----------------------------------------------------------------------------------------------------------


def leaked(rate: float, rounds: int) -> np.ndarray:
    """P_t(2) of EXP3 without noise on two sequences of losses that differ in their first round; shape (2, rounds).

    Eta and gamma are ``rate``.  Both arms lose 1 in all rounds, but for arm 2 in the first round of the first sequence, which loses
    nothing.  The arms 2, 1, 2, 1, ... are played, whatever their probabilities (Appendix G.1).
    """
    found = np.empty((2, rounds))
    for row, first in zip(found, (0.0, 1.0), strict=True):
        lead, loss = 0.0, first  # log weight of arm 2 less that of arm 1; loss of arm 2
        for t in range(rounds):
            p = (1.0 - rate) * 0.5 * (1.0 + math.tanh(lead / 2.0)) + rate / 2.0
            row[t] = p
            if t % 2 == 0:
                lead -= rate * loss / p
                loss = 1.0
            else:
                lead += rate / (1.0 - p)
    return found


def _leak(size: Size) -> Section:
    rate = 1e-3 if size.quick else 1e-4
    rounds = round(100 / rate)

    def assess(results: Results) -> Findings:
        p = leaked(rate, rounds)
        loss = np.maximum(*(np.abs(np.log(q[0] / q[1])) for q in (p, 1.0 - p)))
        return Findings(_leaks(rate, rounds, p, loss), [_leak_figure(rate, rounds, p, loss)])

    return Section([], assess, ["What EXP3 leaks is computed and not simulated, so that its intervals have no width."])


def _leaks(rate: float, rounds: int, p: np.ndarray, loss: np.ndarray) -> list[Claim]:
    def claim(statement: str, value: float, expected: Expectation) -> Claim:
        return Claim(statement, f"{PAPER}, Appendix G.1", LEAK, Estimate(value, value, value), expected)

    end = f"after {spoken(rounds)} rounds with η = γ = {rate:g}"
    return [
        claim(
            f"P(2) tends to 1 − γ/2 where arm 2 lost nothing in round 1. Measured: P(2) {end}.",
            float(p[0, -1]),
            Expectation(low=0.99),
        ),
        claim(f"P(2) tends to γ/2 where it lost 1. Measured: P(2) {end}.", float(p[1, -1]), Expectation(high=0.01)),
        claim(
            "What a single choice reveals of round 1 is not bounded by 2η, as it is with full information. Measured: the largest log "
            "ratio of the probabilities of one choice, over 2η.",
            float(loss.max() / (2.0 * rate)),
            Expectation(low=1.0, strict=True),
        ),
        claim(
            f"What a single choice reveals grows with time. Measured: the log ratio after {spoken(rounds)} rounds over that after "
            f"{spoken(rounds // 100)}.",
            float(loss[-1] / loss[rounds // 100]),
            Expectation(low=1.0, strict=True),
        ),
    ]


def _leak_figure(rate: float, rounds: int, p: np.ndarray, loss: np.ndarray) -> Exhibit:
    t = np.unique(np.geomspace(2, rounds, 400).round().astype(int))
    nothing = np.full(t.size, np.nan)
    names = ("arm 2 lost nothing in round 1", "arm 2 lost 1 in round 1")
    chances = [
        Series(name, t, row[t - 1], nothing, nothing, dashed=bool(i)) for i, (name, row) in enumerate(zip(names, p, strict=True))
    ]
    ratios = [Series("log ratio", t, loss[t - 1], nothing, nothing)]
    return Exhibit(
        "figure-leak",
        "What one loss does to EXP3 without noise",
        f"Two sequences of losses differ in round 1 only; the same arms 2, 1, 2, 1, ... are played, η = γ = {rate:g}. Left: the "
        "probability of arm 2. Right: the larger of the two log ratios of probabilities; dotted: 2η. In the end a single choice tells the "
        f"two sequences apart with odds of e^{number(float(loss.max()))}: the loss of one round enters the probabilities by "
        "which all later losses are divided, so that EXP3's own randomness protects nobody, however small η. Noise has to be added before "
        "losses are divided; what is computed from noisy batches afterwards, probabilities among it, reveals no more than they do.",
        "Probability of arm 2 under two neighbouring sequences, and their log ratio, over rounds.",
        [
            Panel("Probability of arm 2", "round t", "P(2)", chances),
            Panel("Privacy loss of one choice", "round t", "log ratio", ratios, y_scale="log", line=2.0 * rate),
        ],
    )


# Lemma 15 -----------------------------------------------------------------------------------------------------------------


def _late(size: Size) -> Section:
    horizon, shares = max(SMALLEST, round(_horizon(size) * LATE_SHORTER)), QUICK_TURNS if size.quick else TURNS
    turns = [max(1, round(horizon * share)) for share in shares]
    epsilon, runs = USUAL_EPSILON, _runs(size) * 2
    policies = {name: Setting(name, horizon, 2, epsilon).policy() for name in LEARNERS}
    policies |= {"EXP3-IX, not private": EXP3IX(2), "Tsallis-INF, not private": TsallisINF(2)}
    worlds = {turn: LateTurn(horizon=horizon, turn=turn) for turn in turns}
    cells = [
        Cell(f"late/{name}/{turn}", LATE, policy, world, horizon, runs, size.seed, (horizon,))
        for name, policy in policies.items()
        for turn, world in worlds.items()
    ]
    visits = math.ceil(1.0 / (2.0 * epsilon))  # p of the lemma
    least = (1.0 - 0.5 * math.exp(epsilon * visits)) * math.sqrt(visits * horizon / 8.0)
    where = f"{spoken(horizon)} rounds, ε = {epsilon:g}"

    def claims(name: str, finals: list[np.ndarray], without: list[np.ndarray]) -> list[Claim]:
        return [
            Claim(
                f"{name}: at the worst place to turn, or without a turn, it loses at least the lower bound for policies that leave arm 2 "
                f"quickly, {number(least)}. Measured: the largest regret over the bound ({where}).",
                f"{PAPER}, Lemma 15",
                LATE,
                measured(finals, lambda means: means.max(axis=-1) / least),
                Expectation(low=1.0),
            ),
            Claim(
                f"{name} loses more than EXP3-IX does without privacy. Measured: the ratio of their regrets, each at its worst place to "
                f"turn ({where}).",
                f"after {PAPER}, Section 5.2",
                LATE,
                measured([*finals, *without], _worst_ratio),
                Expectation(low=1.0, strict=True),
            ),
        ]

    def assess(results: Results) -> Findings:
        finals = {name: [results.final(f"late/{name}/{turn}") for turn in turns] for name in policies}
        without = finals["EXP3-IX, not private"]
        lines = []
        for name, columns in finals.items():
            value, low, high = np.array([measured([column], mean) for column in columns]).T
            lines.append(Series(name, np.array(shares), value, low, high, marks=True, dashed=name not in LEARNERS))
        exhibit = Exhibit(
            "figure-late",
            "Lemma 15: an arm that turns good",
            "Arm 1 always loses 1/2; arm 2 loses 1 until it turns and nothing afterwards. Mean regret with 95 % bars against the share of "
            "the rounds after which it turns; 1 is never. Regret is against the better arm of all rounds together, so that a policy that "
            "follows a late turn has less than 0.",
            "Regret of private and non-private learners against the place of the turn.",
            [Panel(f"Two arms, {where}", "turn, as a share of rounds", "mean regret", lines, y_scale="symlog", threshold=100.0)],
        )
        return Findings([claim for name in LEARNERS for claim in claims(name, finals[name], without)], [exhibit])

    return Section(cells, assess)


def _worst_ratio(means: np.ndarray) -> np.ndarray:
    one, other = np.split(means, 2, axis=-1)
    return np.asarray(one.max(axis=-1) / other.max(axis=-1))


# Real rewards -------------------------------------------------------------------------------------------------------------


def _real(size: Size) -> Section:
    tables = _tables(size.data)
    policies = {name: _on_real(table) for name, table in tables.items()}
    horizons = {name: min(table.horizon, size.horizon or table.horizon) for name, table in tables.items()}
    cells = [
        Cell(f"real/{name}/{key}", REAL, policy, table, horizons[name], _runs(size), size.seed, recorded(horizons[name]))
        for name, table in tables.items()
        for key, policy in policies[name].items()
    ]

    def assess(results: Results) -> Findings:
        claims = [claim for name, table in tables.items() for claim in _real_claims(name, table, horizons[name], results)]
        return Findings(claims, [_real_figure(tables, results)])

    notes = []
    if size.data is None:
        notes.append(
            "MovieLens and Last.fm were left out: --data names a folder with their files, or one that holds such folders."
        )
    return Section(cells, assess, notes, [repr(table) for table in tables.values()])


def _tables(data: Path | None) -> dict[str, RewardTable]:
    """The trial, and what a folder holds."""
    tables = {"ACTG 175": DoctorReplay().reward_table()}
    if data is None:
        return tables
    folders = [data, *sorted(path for path in data.iterdir() if path.is_dir())] if data.is_dir() else []
    for name, file, read in (
        ("MovieLens", "u.data", lambda folder: movielens(folder).reward_table()),
        ("Last.fm", "user_taggedartists.dat", lambda folder: lastfm(folder).reward_table()),
    ):
        holding = [folder for folder in folders if (folder / file).is_file()]
        if holding:
            tables[name] = read(holding[0])
    if len(tables) == 1:
        raise ArgumentError(
            f"data must name a folder with the files of MovieLens or Last.fm, or one that holds such folders, got {data}"
        )
    return tables


def _on_real(table: RewardTable) -> dict[str, Policy]:
    def policy(name: str, epsilon: float, batch: int | None = None) -> Policy:
        return Setting(name, table.horizon, table.n_arms, epsilon, batch).policy()

    found = {f"{name}/{epsilon:g}": policy(name, epsilon) for name in LEARNERS for epsilon in REAL_EPSILONS}
    found |= {f"{name}/every": policy(name, REAL_EPSILONS[0], 1) for name in ("EXP3", "HTINF")}
    return {**found, "open": TsallisINF(table.n_arms)}


def _real_claims(name: str, table: RewardTable, horizon: int, results: Results) -> list[Claim]:
    strict = REAL_EPSILONS[0]

    def final(key: str) -> np.ndarray:
        return results.final(f"real/{name}/{key}")

    uniform = float(table.means().max() - table.means().mean()) * horizon
    after = f"after {spoken(horizon)} rounds"
    return [
        *(
            Claim(
                f"{name}: {learner} in batches has less regret than with noise on every reward at ε = {strict:g}. "
                f"Measured: the ratio {after}.",
                "this package",
                REAL,
                measured([final(f"{learner}/{strict:g}"), final(f"{learner}/every")], ratio),
                Expectation(high=1.0, strict=True),
            )
            for learner in ("EXP3", "HTINF")
        ),
        *(
            Claim(
                f"{name}: HTINF learns something at ε = {epsilon:g}. Measured: its regret over that of playing all arms alike {after}.",
                "this package",
                REAL,
                measured([final(f"HTINF/{epsilon:g}")], lambda means: means[..., 0] / uniform),
                Expectation(high=1.0, strict=True),
            )
            for epsilon in REAL_EPSILONS
        ),
    ]


def _real_figure(tables: dict[str, RewardTable], results: Results) -> Exhibit:
    strict, loose = REAL_EPSILONS
    shown = {name: f"{name}/{strict:g}" for name in LEARNERS}
    shown |= {_EVERY.format(name): f"{name}/every" for name in ("EXP3", "HTINF")}
    shown |= {f"HTINF, ε = {loose:g}": f"HTINF/{loose:g}", "Tsallis-INF, not private": "open"}
    panels = []
    for name, table in tables.items():
        rounds, lines = results.rounds(f"real/{name}/open"), []
        for label, key in shown.items():
            lines.append(Series(label, rounds, *curve([results.curves(f"real/{name}/{key}")], mean), dashed=key == "open"))
        panels.append(Panel(f"{name}, {table.n_arms} arms", "rounds", "mean regret", lines, x_scale="linear"))
    return Exhibit(
        "figure-real",
        "Real rewards in the order of time",
        f"Mean regret against the best arm of all rounds, with 95 % bands, at ε = {strict:g} unless said otherwise. ACTG 175: treatments, "
        "for patients in the order of their numbers. MovieLens: genres, for ratings in the order of time. Last.fm: artists, for visits in "
        "the order of time.",
        f"Regret over rounds on {', '.join(tables)}.",
        panels,
    )
