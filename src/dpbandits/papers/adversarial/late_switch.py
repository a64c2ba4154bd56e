"""Lemma 15: a policy that no longer plays an arm is slow to notice that the arm has improved.

Of two arms the first always loses 1/2.  The second loses 1, for ever or until round tau, and
nothing afterwards.  A policy to which the lemma applies

1. plays arm 2 at least gamma T times, if it never turns, with probability 1/2 or more;
2. plays it at most p times in rounds tau + 1 to tau + p / gamma, likewise.

Such runs look the same to an epsilon-private policy, up to a factor e^(epsilon p), where arm 2
turns at tau.  So the worst of the two losses is at least ``late_notice``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ...environments import LateTurn
from ...plotting.numbers import number
from ...policies import Policy
from ...report.claims import Claim, Expectation
from ...report.exhibits import Exhibit, Panel, Series
from ...report.intervals import Ratio, curve, mean
from ...simulation.simulating import play
from ..plans import Findings, Results, Size, cells_of, measured, spoken
from .policies import EXP3IX, TsallisINF
from .section import PAPER, SMALLEST, Section, horizon_of, runs_of
from .theory import late_notice
from .worst_case import LEARNERS, USUAL_EPSILON, Setting

TURNS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.45, 1.0)  # of the rounds; 1 is never
QUICK_TURNS = (0.01, 0.1, 0.3, 1.0)
SHORTER = 0.1  # of the horizon
MORE_RUNS = 2  # times as many
OFTEN = 0.75  # of the runs have to show a condition, so that half of all do

LATE_SWITCH = "Lemma 15: an arm that turns good"
OPEN = ("EXP3-IX, not private", "Tsallis-INF, not private")


class Conditions(NamedTuple):
    """Numbers with which both conditions are met in most runs, and the runs that met them."""

    gamma: float
    tau: int
    p: int
    first: np.ndarray  # (runs,) bool: condition 1
    second: np.ndarray  # (runs,) bool: condition 2


def conditions(played: np.ndarray, epsilon: float, turns: Sequence[int]) -> Conditions | None:
    """The conditions with the largest bound, among the given tau, all p with e^(epsilon p) < 2, and
    all gamma.

    Condition 1 bounds gamma from above, and condition 2 from below: by p over the rounds until arm
    2 is played for the (p + 1)-th time.  The bound is largest at one of the two ends.

    ``played``, shape (runs, T), is True where arm 2 was played while it never turns.  ``turns``
    lists every tau to try; only those in the first half count.  None if no choice meets both
    conditions.
    """
    horizon = played.shape[1]
    shares = played.mean(axis=1)
    most = min(0.5, float(np.quantile(shares, 1.0 - OFTEN, method="lower")))
    found: list[tuple[float, Conditions]] = []
    for tau in (turn for turn in turns if 2 * turn < horizon):
        visits = played[:, tau:].cumsum(axis=1)
        for p in range(1, math.ceil(math.log(2.0) / epsilon)):
            quiet = (visits <= p).sum(axis=1)  # rounds without the (p + 1)-th visit
            length = int(np.quantile(quiet, 1.0 - OFTEN, method="lower"))
            least = p / length if length > 0 else math.inf
            for gamma in (least, most):
                if 0.0 < least <= gamma <= most:
                    proved = float(late_notice(horizon, epsilon, tau, p, gamma))
                    met = Conditions(gamma, tau, p, shares >= gamma, quiet >= p / gamma)
                    found.append((proved, met))
    return max(found, key=lambda one: one[0])[1] if found else None


def late_switch(size: Size) -> Section:
    """Regret against the place of the turn, beside the lemma's lower bound."""
    horizon = max(SMALLEST, round(horizon_of(size) * SHORTER))
    shares = QUICK_TURNS if size.quick else TURNS
    turns = [max(1, round(horizon * share)) for share in shares]
    epsilon, runs = USUAL_EPSILON, runs_of(size) * MORE_RUNS
    private = {name: Setting(name, horizon, 2, epsilon).policy() for name in LEARNERS}
    policies = private | dict(zip(OPEN, (EXP3IX(2), TsallisINF(2)), strict=True))
    worlds = {turn: LateTurn(horizon=horizon, turn=turn) for turn in turns}
    cells, last = [], (horizon,)
    for turn, world in worlds.items():
        key, place = partial(_key, turn=turn), [(size.seed, world)]
        cells += cells_of(key, LATE_SWITCH, policies, place, horizon, runs, last)
    where = f"{spoken(horizon)} rounds, ε = {epsilon:g}"

    def assess(results: Results) -> Findings:
        claims = []
        for name, policy in private.items():
            played = _visits(policy, worlds[horizon], runs, size.seed)
            if (met := conditions(played, epsilon, turns)) is not None:
                claims += _proved(name, met, horizon, where, results)
            claims.append(_price(name, turns, where, results))
        return Findings(claims, [_figure(policies, turns, shares, where, results)])

    return Section(cells, assess, [_note(horizon, epsilon)])


def _key(name: str, turn: int) -> str:
    return f"late-switch/{name}/{turn}"


def _visits(policy: Policy, world: LateTurn, runs: int, seed: int) -> np.ndarray:
    """In which rounds the second arm is played, shape (runs, T)."""
    assert world.horizon is not None
    marks = np.array([world.horizon])
    return np.array(
        [
            play(policy, world, world.horizon, run, seed, marks, trace=True).tally.trace == 1
            for run in range(runs)
        ]
    )


def _note(horizon: int, epsilon: float) -> str:
    return (
        "Lemma 15 has conditions on γ, τ and p, which are looked for in runs where arm 2 never"
        f" turns. They have to be met in {OFTEN:.0%} of these runs, to be sure that they are met"
        f" in half of all. p is below ln 2 / ε = {math.log(2.0) / epsilon:.1f}, because"
        " otherwise the lemma says nothing (its p = ⌈1/2ε⌉ is larger for some ε). The result of"
        " the proof replaces the printed lemma: τ/2 may be lost in all runs. A regret of"
        " Ω(√(T/ε)) is claimed for policies with τ = o(√(T/ε)), here"
        f" {math.sqrt(horizon / epsilon):,.0f} rounds."
    )


def _proved(name: str, met: Conditions, horizon: int, where: str, results: Results) -> list[Claim]:
    """The claim that the conditions are met, with its consequence."""
    gamma, tau, p, *both = met
    least = float(late_notice(horizon, USUAL_EPSILON, tau, p, gamma))
    numbers = f"γ = {gamma:.2g}, τ = {tau:,} and p = {p}"
    finals = [results.final(_key(name, turn)) for turn in (tau, horizon)]
    return [
        Claim(
            f"{name} meets both conditions of the lemma with {numbers}. Measured: the share of runs"
            f" that meet one, the lesser of the two ({where}).",
            f"{PAPER}, Lemma 15",
            LATE_SWITCH,
            measured([one[None].astype(float) for one in both], lambda means: means.min(axis=-1)),
            Expectation(low=0.5),
            shares=True,
        ),
        Claim(
            f"{name} then loses at least the lower bound with {numbers}, {number(least)}, where arm"
            " 2 turns after τ, or where it never does. Measured: the larger of the two regrets"
            f" over the bound ({where}).",
            f"{PAPER}, Lemma 15",
            LATE_SWITCH,
            measured(finals, Ratio(lambda means: means.max(axis=-1) / least)),
            Expectation(low=1.0),
        ),
    ]


def _price(name: str, turns: Sequence[int], where: str, results: Results) -> Claim:
    """The claim that privacy makes the policy slow."""
    columns = [results.final(_key(one, turn)) for one in (name, OPEN[0]) for turn in turns]
    return Claim(
        f"{name} loses more than EXP3-IX does without privacy. Measured: the ratio of their"
        f" regrets, each at its worst place to turn ({where}).",
        f"after {PAPER}, Section 5.2",
        LATE_SWITCH,
        measured(columns, Ratio(_worst_ratio)),
        Expectation(low=1.0, strict=True),
    )


def _worst_ratio(means: np.ndarray) -> np.ndarray:
    one, other = np.split(means, 2, axis=-1)
    return np.asarray(one.max(axis=-1) / other.max(axis=-1))


def _figure(
    names: Iterable[str],
    turns: Sequence[int],
    shares: Sequence[float],
    where: str,
    results: Results,
) -> Exhibit:
    lines = []
    for name in names:
        columns = np.stack([results.final(_key(name, turn)) for turn in turns], axis=-1)
        found = curve([columns], mean)
        lines.append(Series(name, np.array(shares), *found, marks=True, dashed=name in OPEN))
    title, x_label = f"Two arms, {where}", "turn, as a share of rounds"
    panel = Panel(title, x_label, "mean regret", lines, y_scale="symlog", threshold=100.0)
    return Exhibit(
        "figure-late-switch",
        LATE_SWITCH,
        "Arm 1 always loses 1/2; arm 2 loses 1 until it turns and nothing afterwards. Mean"
        " regret with 95 % bars against the share of the rounds after which it turns; 1 is"
        " never. Regret is against the better arm of all rounds together, so a policy that"
        " follows a late turn has less than 0.",
        "Regret of private and non-private learners against the place of the turn.",
        [panel],
    )
