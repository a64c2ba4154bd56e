"""Classifiers as experts: handwritten digits, each person with advice unlike that before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import MissingExtra
from ...report.claims import Claim, Expectation
from ...report.exhibits import Exhibit, Panel, Series
from ...report.intervals import Ratio, curve
from ..plans import Findings, Results, Size, cells_of, measured, spoken
from .classifier_experts import ClassifierAdvice, classifier_advice
from .expert_growth import IMPROVED, KINDS, QUICK_RUNS, RUNS, policy
from .section import Section, horizon_of

NAMES = tuple(name for name in KINDS if name != IMPROVED)  # which hardly differs from published
N_EXPERTS = 16
EPSILONS = (1.0, 0.1)
SHARE = 0.3  # of the horizon
SHOWN = 0.001  # of the rounds, from which rewards are shown

CLASSIFIERS = "Classifiers as experts"


def classifiers(size: Size) -> Section:
    """Reward per round on the digits, where scikit-learn is there."""
    try:
        world = classifier_advice("digits", N_EXPERTS)
    except MissingExtra as error:
        note = f"Classifiers as experts were left out: {error}."
        return Section([], lambda results: Findings([], []), [note])
    horizon = round(horizon_of(size) * SHARE)
    runs = size.runs or (QUICK_RUNS if size.quick else RUNS)
    policies = {
        _key(name, epsilon): policy(name, world.n_arms, N_EXPERTS, horizon, epsilon)
        for epsilon in EPSILONS
        for name in NAMES
    }
    cells = cells_of(str, CLASSIFIERS, policies, [(size.seed, world)], horizon=horizon, runs=runs)

    def assess(results: Results) -> Findings:
        uniform = _best(world) - 1.0 / world.n_arms
        claims = [
            _claim(name, epsilon, uniform, horizon, results)
            for epsilon in EPSILONS
            for name in NAMES
        ]
        return Findings(claims, [_figure(world, results)])

    return Section(cells, assess)


def _key(name: str, epsilon: float) -> str:
    return f"classifiers/{name}/{epsilon:g}"


def _best(world: ClassifierAdvice) -> float:
    return float(world.accuracies.max())


def _claim(name: str, epsilon: float, uniform: float, horizon: int, results: Results) -> Claim:
    at_random = uniform * horizon
    learns = (
        "learns something"
        if name != "FrozenEXP4"
        else "is no better than random play, as its advice is about somebody else,"
    )
    return Claim(
        f"Digits: {name} {learns} at ε = {epsilon:g}. Measured: its regret over that of random play"
        f" after {spoken(horizon)} rounds.",
        "this package",
        CLASSIFIERS,
        measured([results.final(_key(name, epsilon))], Ratio(lambda m: m[..., 0] / at_random)),
        Expectation(low=0.95) if name == "FrozenEXP4" else Expectation(high=1.0, strict=True),
    )


def _figure(world: ClassifierAdvice, results: Results) -> Exhibit:
    best = _best(world)
    return Exhibit(
        "figure-classifiers",
        "Classifiers as experts: handwritten digits",
        f"Share of digits that were named rightly so far, with 95 % bands: {N_EXPERTS}"
        " classifiers, each trained on a few dozen digits, advise on 10 classes, and policies"
        f" learn only whether the guess was right. Dashed: the best expert, {best:.2f}, and"
        " random play. The share is the best expert's minus regret per round, so easy and hard"
        " digits among the first do not matter.",
        f"Reward per round of {len(NAMES)} policies with expert advice, over rounds, at two"
        " budgets.",
        [_panel(epsilon, best, 1.0 / world.n_arms, results) for epsilon in EPSILONS],
    )


def _panel(epsilon: float, best: float, uniform: float, results: Results) -> Panel:
    rounds = results.rounds(_key(NAMES[0], epsilon))
    late = rounds >= SHOWN * rounds[-1]
    x = rounds[late]

    def reward(means: np.ndarray) -> np.ndarray:
        return np.asarray(best - means[..., 0] / x)

    def level(label: str, value: float) -> Series:
        nothing = np.full(x.shape, np.nan)
        return Series(label, x, np.full(x.shape, value), nothing, nothing, dashed=True)

    lines: Sequence[Series] = [
        *(
            Series(name, x, *curve([results.curves(_key(name, epsilon))[..., late]], reward))
            for name in NAMES
        ),
        level("best expert", best),
        level("random play", uniform),
    ]
    return Panel(f"ε = {epsilon:g}", "rounds", "rightly named so far", lines)
