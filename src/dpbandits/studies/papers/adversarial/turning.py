"""Lemma 15: an arm that turns good."""

from __future__ import annotations

import math

import numpy as np

from ....algorithms import EXP3IX, TsallisINF
from ....environments import LateTurn
from ....plotting.numbers import number
from ....report.claims import Claim, Expectation
from ....report.exhibits import Exhibit, Panel, Series
from ...cells import Cell, Results
from ...claims import mean, measured
from ...plans import Findings, Size, spoken
from .parts import PAPER, SMALLEST, Section, horizon_of, runs_of
from .worst import LEARNERS, USUAL_EPSILON, Setting

TURNS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.45, 1.0)  # of the rounds; 1 is never
QUICK_TURNS = (0.01, 0.1, 0.3, 1.0)
LATE_SHORTER = 0.1  # of the horizon

LATE = "Lemma 15: an arm that turns good"


def late(size: Size) -> Section:
    """Regret against the place of the turn."""
    horizon, shares = (
        max(SMALLEST, round(horizon_of(size) * LATE_SHORTER)),
        QUICK_TURNS if size.quick else TURNS,
    )
    turns = [max(1, round(horizon * share)) for share in shares]
    epsilon, runs = USUAL_EPSILON, runs_of(size) * 2
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
                f"{name}: at the worst place to turn, or without a turn, it loses at least the"
                f" lower bound for policies that leave arm 2 quickly, {number(least)}. Measured:"
                f" the largest regret over the bound ({where}).",
                f"{PAPER}, Lemma 15",
                LATE,
                measured(finals, lambda means: means.max(axis=-1) / least),
                Expectation(low=1.0),
            ),
            Claim(
                f"{name} loses more than EXP3-IX does without privacy. Measured: the ratio of their"
                f" regrets, each at its worst place to turn ({where}).",
                f"after {PAPER}, Section 5.2",
                LATE,
                measured([*finals, *without], _worst_ratio),
                Expectation(low=1.0, strict=True),
            ),
        ]

    def assess(results: Results) -> Findings:
        finals = {
            name: [results.final(f"late/{name}/{turn}") for turn in turns] for name in policies
        }
        without = finals["EXP3-IX, not private"]
        lines = []
        for name, columns in finals.items():
            value, low, high = np.array([measured([column], mean) for column in columns]).T
            lines.append(
                Series(
                    name,
                    np.array(shares),
                    value,
                    low,
                    high,
                    marks=True,
                    dashed=name not in LEARNERS,
                )
            )
        exhibit = Exhibit(
            "figure-late",
            "Lemma 15: an arm that turns good",
            "Arm 1 always loses 1/2; arm 2 loses 1 until it turns and nothing afterwards. Mean"
            " regret with 95 % bars against the share of the rounds after which it turns; 1 is"
            " never. Regret is against the better arm of all rounds together, so that a policy that"
            " follows a late turn has less than 0.",
            "Regret of private and non-private learners against the place of the turn.",
            [
                Panel(
                    f"Two arms, {where}",
                    "turn, as a share of rounds",
                    "mean regret",
                    lines,
                    y_scale="symlog",
                    threshold=100.0,
                )
            ],
        )
        return Findings(
            [claim for name in LEARNERS for claim in claims(name, finals[name], without)], [exhibit]
        )

    return Section(cells, assess)


def _worst_ratio(means: np.ndarray) -> np.ndarray:
    one, other = np.split(means, 2, axis=-1)
    return np.asarray(one.max(axis=-1) / other.max(axis=-1))
