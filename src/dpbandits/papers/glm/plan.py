"""Generalised linear bandits under the definitions of Chen, Li, Rakhlin & Simchi-Levi (2025). The
study measures whether the price of joint privacy falls as a run grows, and how local privacy
depends on T and alpha.  It also measures the effects of ill-conditioned features and of a wrong
link.

The paper states such rates, sqrt(T) + 1 / alpha and sqrt(T) / alpha, for its own algorithms, and
has no experiments.  Worlds, sizes and policies are those of this package.  Thompson sampling and
stochastic gradients have no theorem here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import t as student

from ...algorithms import LDPSGD, GLMThompson, GLMThompsonJDP, LinearThompsonJDP
from ...environments import GLMContexts
from ...policies import Policy
from ...privacy import ApproxDP, PureDP
from ...report.claims import VERDICT_CONFIDENCE, Claim, Expectation
from ...report.intervals import price, ratio
from ...report.means import Estimate
from ...studies.cells import Cell
from ..plans import Findings, Plan, Results, Size, cells_of, figure, measured, recorded, spoken
from .weighted_regression import compare_with_ridge

PAPER = "Chen, Li, Rakhlin & Simchi-Levi (2025)"
ARMS, DIMENSION, BATCH, DELTA = 20, 10, 20, 1e-6
HORIZON, INSTANCES = 100_000, 20
QUICK_HORIZON, QUICK_INSTANCES = 4000, 6
EARLY = 16  # the early round is the horizon over this
ALPHAS = (0.5, 1.0, 2.0)
DECAYS = (0.0, 2.0, 4.0)  # of eigenvalues; 0 is the sphere
NORM = 1.0  # of theta
LINKS = ("logistic", "probit", "identity")

READINGS = JOINT, LOCAL, CONDITIONED, MISSPECIFIED, WEIGHTED = (
    "Joint privacy as the run grows",
    "Joint and local privacy",
    "Ill-conditioned features",
    "A wrong link",
    "Information weights beside ridge, where features are ill-conditioned",
)
PEOPLE, REPEATS = 50_000, 20  # of regressions
QUICK_PEOPLE, QUICK_REPEATS = 2000, 6
_OPEN, _PUBLIC, _JOINT, _LOCAL = "open", "public", "joint", "local"
_RIGHT, _LOGISTIC, _LINEAR = "right", "logistic", "linear"
_NAMES = {
    _OPEN: "logistic Thompson sampling",
    _PUBLIC: "the same with private rewards",
    _JOINT: "with private rewards and features, joint",
    _LOCAL: "LDP-SGD, local",
    _LINEAR: "linear Thompson sampling, joint",
}


@dataclass(frozen=True)
class Setting:
    """Policies that meet the same worlds."""

    reading: str  # what is asked
    title: str  # of the panel
    world: Mapping[str, Any]  # how its random instances are made
    policies: Mapping[str, Policy]  # by what is claimed of them

    def key(self, name: str) -> str:
        """The key of the results of a policy."""
        return f"{self.reading}/{self.title}/{name}"


def plan(size: Size) -> Plan:
    """All four questions at the given size."""
    quick = size.quick
    horizon = size.horizon or (QUICK_HORIZON if quick else HORIZON)
    count = size.runs or (QUICK_INSTANCES if quick else INSTANCES)
    settings = [
        *(_grown(alpha, horizon) for alpha in ALPHAS),
        *(_trusted(alpha, horizon) for alpha in ALPHAS),
        *(_conditioned(decay, horizon) for decay in DECAYS),
        *(_misspecified(link, horizon) for link in LINKS),
    ]
    people = (QUICK_PEOPLE, QUICK_REPEATS) if quick else (PEOPLE, REPEATS)
    seeds = [size.seed + 10**6 * i for i in range(count)]
    cells = [cell for setting in settings for cell in _cells(setting, seeds, horizon)]
    return Plan(
        title="Generalised linear bandits under joint and local privacy",
        description=(
            f"Policies under the definitions of {PAPER}, on random worlds: does the price of"
            " joint privacy fall as a run grows, and how much more does local privacy cost?"
        ),
        cells=cells,
        assess=partial(_assess, settings, horizon, people, size.seed),
        notes=[
            (
                f"{ARMS} arms with fresh features, d = {DIMENSION}, |θ| = {NORM:g}, {count} random"
                f" instances with one run each, {spoken(horizon)} rounds, δ = {DELTA:g}. Local"
                " policies keep alpha without a δ, and are greedy where the joint ones draw: they"
                " differ in more than trust."
            ),
            (
                "The paper states rates for algorithms of its own, and has no experiments: worlds,"
                " sizes and policies are those of this package."
            ),
            (
                "Information weights are a reconstruction of the paper's idea. Both they and"
                " ridge have the best of 18 settings, chosen by the true error, with (1, δ)-DP."
                " Intervals do not cover that choice."
            ),
        ],
        shown=[repr(cells[0].environment)],
    )


def _thompson(cls: Any, *, alpha: float | None, horizon: int, **others: Any) -> Policy:
    """Thompson sampling on ever longer epochs, without a budget where there is no alpha."""
    budget = None if alpha is None else ApproxDP(alpha, DELTA)
    policy: Policy = cls(ARMS, DIMENSION, budget=budget, horizon=horizon, batch=BATCH, **others)
    return policy


def _grown(alpha: float, horizon: int) -> Setting:
    each = (
        (_OPEN, GLMThompson, None),
        (_PUBLIC, GLMThompson, alpha),
        (_JOINT, GLMThompsonJDP, alpha),
    )
    policies = {
        kind: _thompson(cls, alpha=own, horizon=horizon, name=f"{_NAMES[kind]} ({alpha:g})")
        for kind, cls, own in each
    }
    return Setting(JOINT, f"alpha = {alpha:g}", {"link": "logistic"}, policies)


def _trusted(alpha: float, horizon: int) -> Setting:
    name = f"{_NAMES[_LOCAL]} ({alpha:g})"
    local = LDPSGD(ARMS, DIMENSION, budget=PureDP(alpha), name=name)
    name = f"{_NAMES[_JOINT]}, trusted ({alpha:g})"
    joint = _thompson(GLMThompsonJDP, alpha=alpha, horizon=horizon, name=name)
    return Setting(
        LOCAL, f"alpha = {alpha:g}", {"link": "logistic"}, {_JOINT: joint, _LOCAL: local}
    )


def _conditioned(decay: float, horizon: int) -> Setting:
    world = {"link": "logistic", "decay": decay}
    policies = {
        kind: _thompson(cls, alpha=own, horizon=horizon, name=f"{_NAMES[kind]}, decay {decay:g}")
        for kind, cls, own in ((_OPEN, GLMThompson, None), (_JOINT, GLMThompsonJDP, 1.0))
    }
    return Setting(CONDITIONED, f"eigenvalues fall like i^-{decay:g}", world, policies)


def _misspecified(link: str, horizon: int) -> Setting:
    """The right link, the logistic one, and a linear model, all with the same privacy."""
    extra: dict[str, Any] = {"reward_range": (-1.0, 1.0)} if link == "identity" else {}

    def make(cls: Any, **others: Any) -> Policy:
        return _thompson(cls, alpha=1.0, horizon=horizon, **extra, **others)

    policies = {_RIGHT: make(GLMThompsonJDP, link=link, name=f"{link}, where it holds")}
    if link != "logistic":
        policies[_LOGISTIC] = make(GLMThompsonJDP, name=f"logistic, where {link} holds")
    policies[_LINEAR] = make(LinearThompsonJDP, name=f"{_NAMES[_LINEAR]}, where {link} holds")
    return Setting(MISSPECIFIED, f"rewards are {link}", {"link": link}, policies)


def _cells(setting: Setting, seeds: Sequence[int], horizon: int) -> list[Cell]:
    rounds = tuple(sorted({*recorded(horizon, 60), max(1, horizon // EARLY)}))
    worlds = [
        (seed, GLMContexts.random(ARMS, DIMENSION, norm=NORM, seed=seed, **setting.world))
        for seed in seeds
    ]
    stage = f"{setting.reading}, {setting.title}"
    return cells_of(setting.key, stage, setting.policies, worlds, horizon, record=rounds)


# Claims ----------------------------------------------------------------------------------------


def _assess(
    settings: Sequence[Setting], horizon: int, people: tuple[int, int], seed: int, results: Results
) -> Findings:
    by_reading = {
        reading: [one for one in settings if one.reading == reading] for reading in READINGS
    }
    claims = [claim for one in by_reading[JOINT] for claim in _vanishing(one, horizon, results)]
    claims += _local(by_reading[LOCAL], horizon, results)
    claims += _spectra(by_reading[CONDITIONED], horizon, results)
    claims += [claim for one in by_reading[MISSPECIFIED] for claim in _wrong(one, results)]
    claims += _weighted(*people, seed)
    exhibits = []
    for i, reading in enumerate(READINGS, 1):
        if panels := {one.title: one for one in by_reading[reading]}:
            drawn = figure(f"figure-{i}", reading, panels, "setting", _NAMES, _OPEN, results)
            exhibits.append(drawn)
    return Findings(claims, exhibits)


def _early_and_late(
    setting: Setting, names: Sequence[str], horizon: int, results: Results
) -> list[np.ndarray]:
    """Regret of these policies early in the run, then at its end, shape (instances, runs) each."""
    found = []
    for at in (max(1, horizon // EARLY), horizon):
        for key in map(setting.key, names):
            place = int(np.searchsorted(results.rounds(key), at))
            found.append(results.curves(key)[..., place])
    return found


def _change(means: np.ndarray) -> np.ndarray:
    """The change of the price of privacy from early to late, from means (private, open) at both.

    A difference, because early on the price may be anything around 0.
    """
    return price(means[..., 2:]) - price(means[..., :2])


def _exponent(means: np.ndarray) -> np.ndarray:
    """The exponent of T with which regret grew from the first mean to the second."""
    return np.log(means[..., 1] / means[..., 0]) / math.log(EARLY)


def _vanishing(setting: Setting, horizon: int, results: Results) -> list[Claim]:
    source = f"after {PAPER}: regret of the order of sqrt(T) + 1/alpha"
    spans = f"from {spoken(max(1, horizon // EARLY))} to {spoken(horizon)} rounds"
    return [
        Claim(
            f"{setting.title}: {words} cost a share of regret that falls as the run grows."
            f" Measured: the change of the price, the share that is added, {spans}.",
            source,
            JOINT,
            measured(_early_and_late(setting, (name, _OPEN), horizon, results), _change),
            Expectation(high=0.0, strict=True),
            over_random=results.over_random(setting.key(name)),
        )
        for name, words in ((_PUBLIC, "private rewards"), (_JOINT, "private rewards and features"))
    ]


def _local(settings: Sequence[Setting], horizon: int, results: Results) -> list[Claim]:
    claims = [
        Claim(
            f"{one.title}: joint privacy has less regret than local privacy. Measured: the ratio"
            f" after {spoken(horizon)} rounds.",
            f"after {PAPER}: sqrt(T) + 1/alpha and sqrt(T)/alpha",
            LOCAL,
            measured([results.final(one.key(name)) for name in (_JOINT, _LOCAL)], ratio),
            Expectation(high=1.0, strict=True),
        )
        for one in settings
    ]
    claims += [
        Claim(
            f"{one.title}: regret under local privacy grows no faster than T^0.6. Measured: the"
            " exponent.",
            f"after {PAPER}: sqrt(T)/alpha",
            LOCAL,
            measured(_early_and_late(one, (_LOCAL,), horizon, results), _exponent),
            Expectation(high=0.6),
            over_random=results.over_random(one.key(_LOCAL)),
        )
        for one in settings
    ]
    claims += [
        Claim(
            f"From {strict.title} to {loose.title}: regret under local privacy falls by at most"
            " the ratio of both. Measured: the ratio of regrets.",
            f"after {PAPER}: sqrt(T)/alpha",
            LOCAL,
            measured([results.final(one.key(_LOCAL)) for one in (strict, loose)], ratio),
            Expectation(low=1.0, high=2.0),
        )
        for strict, loose in pairwise(settings)
    ]
    return claims


def _spectra(settings: Sequence[Setting], horizon: int, results: Results) -> list[Claim]:
    """The claim that the price of joint privacy vanishes for every covariance."""
    return [
        Claim(
            f"{one.title}: the price of joint privacy falls as the run grows. Measured: the change"
            " of the price.",
            f"after {PAPER}: rates that do not depend on the least eigenvalue",
            CONDITIONED,
            measured(_early_and_late(one, (_JOINT, _OPEN), horizon, results), _change),
            Expectation(high=0.0, strict=True),
            over_random=results.over_random(one.key(_JOINT)),
        )
        for one in settings
    ]


def _wrong(setting: Setting, results: Results) -> list[Claim]:
    words = {_LOGISTIC: "the logistic link", _LINEAR: "a linear model"}
    return [
        Claim(
            f"{setting.title}: {words[name]} has at most 1.2 times the regret of the right link."
            " Measured: the ratio.",
            "target of this package",
            MISSPECIFIED,
            measured([results.final(setting.key(one)) for one in (name, _RIGHT)], ratio),
            Expectation(high=1.2),
        )
        for name in setting.policies
        if name in words
    ]


def _weighted(people: int, repeats: int, seed: int) -> list[Claim]:
    """Both with the best of as many settings, chosen by the true error."""
    quantile = student.ppf(0.5 + VERDICT_CONFIDENCE / 2.0, repeats - 1)
    claims = []
    for trust_model in ("central", "local"):
        frame = compare_with_ridge(
            budget=ApproxDP(1.0, DELTA),
            people=people,
            trust_model=trust_model,
            runs=repeats,
            seed=seed,
        )
        for row in frame[frame["error"] == "absolute"].itertuples():
            # low and high are two standard errors of the logarithm away
            widened = 0.25 * quantile * math.log(row.high / row.low)
            ends = (row.ratio * math.exp(sign * widened) for sign in (0.0, -1.0, 1.0))
            claims.append(
                Claim(
                    f"{trust_model}, {row.design}: information weights have no more error than"
                    f" tuned ridge. Measured: the ratio of mean |<x, error>|, {people:,} people.",
                    f"after {PAPER}: error without the least eigenvalue",
                    WEIGHTED,
                    Estimate(*ends),
                    Expectation(high=1.0),
                )
            )
    return claims
