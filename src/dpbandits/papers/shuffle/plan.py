"""The experiments of Chowdhury & Zhou (2022), Shuffle Private Linear Contextual Bandits: Figures 1
and 2, and the claims of Sections 4 and 6 on people who come back and on batches.

The three models of trust are compared four times.  The first comparison uses the published
constants, which keep very different privacy.  The second uses this noise and one radius for all,
because the theorems of the shuffle model state none and the others state wide ones.  The third is
at equal real privacy, each with the least proved noise.  The fourth repeats it with a delta of one
over the number of people; the paper's delta allows one record in ten to be revealed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ... import algorithms
from ...algorithms import LinUCB, LinUCBJDP, LinUCBLDP, LinUCBSDP
from ...algorithms.bases.contextual import ContextualPolicy
from ...environments import AnchoredContexts
from ...plotting.numbers import number
from ...privacy import ApproxDP
from ...report.claims import Claim, Expectation
from ...report.intervals import ratio
from ...report.means import Estimate
from ..plans import Findings, Plan, Results, Size, cells_of, figure, measured, recorded, spoken

PAPER = "Chowdhury & Zhou (2022)"
ARMS, BATCH, DELTA = 100, 20, 0.1
HORIZON, INSTANCES = 20_000, 50
QUICK_HORIZON, QUICK_INSTANCES = 2000, 8
PANELS = ((5, 0.2), (5, 1.0), (5, 10.0), (10, 1.0), (15, 1.0))  # dimension and epsilon
QUICK_PANELS = ((5, 1.0),)
VISITS = 16  # rounds of a user who comes back

READINGS = PUBLISHED, ONE_RADIUS, EQUAL, SENSIBLE, RANKED, BATCHED, RETURNING = (
    "At the published constants",
    "With the published noise, and one radius for all",
    "At equal real privacy",
    "At equal real privacy, with a sensible delta",
    "All policies at one budget, at equal real privacy",
    "Batches instead of single rounds, at equal real privacy",
    "People who come back, at equal real privacy",
)
_OPEN = "linucb"
_NAMES = {
    _OPEN: "LinUCB",
    "jdp": "LinUCB-JDP",
    "amp": "LinUCB-SDP-Amp",
    "vec": "LinUCB-SDP-Vec",
    "sum": "LinUCB-SDP, secure sum",
    "ldp": "LinUCB-LDP",
    "jdp-ours": "LinUCB-JDP, our radius",
    "ldp-ours": "LinUCB-LDP, our radius",
    "ada": "AdaC-OFUL-JDP",
    "ts-jdp": "Thompson-JDP",
    "ts-sum": "Thompson-SDP, secure sum",
    "ts-ldp": "Thompson-LDP",
}


@dataclass(frozen=True)
class Setting:
    """One panel: features of one dimension, one budget, one way to make noise for it."""

    reading: str  # how the noise was made
    dimension: int
    budget: ApproxDP
    policies: Mapping[str, ContextualPolicy]  # by what is claimed of them, by falling trust
    pairs: Sequence[tuple[str, str]]  # of which the first is claimed to have less regret
    played: Setting | None = None  # of the same budget, whose policies play there

    def key(self, name: str) -> str:
        """The key of the results of a policy; LinUCB is the same in all settings."""
        if self.played is not None and name in self.played.policies:
            return self.played.key(name)
        return f"d{self.dimension}/" + (name if name == _OPEN else f"{self.title}/{name}")

    @property
    def title(self) -> str:
        return f"{self.reading}: d = {self.dimension}, {self.budget}"


def plan(size: Size) -> Plan:
    """Figures 1 and 2, batches and people who come back, at the given size."""
    quick = size.quick
    horizon = size.horizon or (QUICK_HORIZON if quick else HORIZON)
    count = size.runs or (QUICK_INSTANCES if quick else INSTANCES)
    panels = QUICK_PANELS if quick else PANELS
    delta = min(DELTA, 1.0 / horizon)
    groups: list[Setting] = []
    for dimension, epsilon in panels:
        published = _published(dimension, ApproxDP(epsilon, DELTA), horizon)
        groups += [published, _one_radius(published, horizon)]
        groups.append(_equal(EQUAL, dimension, ApproxDP(epsilon, DELTA), horizon))
        groups.append(_equal(SENSIBLE, dimension, ApproxDP(epsilon, delta), horizon))
    groups += [_ranked(horizon), _batched(horizon)]
    groups.append(_returning(horizon, min(VISITS, horizon // BATCH)))
    seeds = [size.seed + 10**6 * i for i in range(count)]
    worlds = {
        dimension: [(seed, AnchoredContexts.random(ARMS, dimension, seed=seed)) for seed in seeds]
        for dimension in {dimension for dimension, _ in panels}
    }
    cells, marks = [], recorded(horizon, 60)
    for one in groups:
        places = worlds[one.dimension]
        cells += cells_of(one.key, one.title, one.policies, places, horizon, record=marks)
    return Plan(
        title="Shuffle private linear contextual bandits: the experiments, run again",
        description=(
            f"Figures 1 and 2 of {PAPER}, their claims measured at the published constants, which"
            " keep very different privacy, and at equal real privacy."
        ),
        cells=list({(cell.key, cell.seed): cell for cell in cells}.values()),
        assess=partial(_assess, groups, horizon),
        notes=[
            (
                f"{ARMS} arms, {count} random instances of each dimension with one run each,"
                f" {spoken(horizon)} rounds, batches of {BATCH}. Published constants are those"
                " of the theorems, on the upper triangle of x xᵀ; the authors' code has other,"
                " smaller ones. For the shuffle model the theorems give shift and radius only"
                " up to constants, so all policies have this package's constants in the second"
                " reading, and shuffle policies in both."
            ),
            (
                f"With δ = {DELTA:g} a mechanism may reveal one record in ten."
                f" The sensible δ is one over the number of people, {delta:g}."
            ),
        ],
        shown=[repr(worlds[5][0][1])],
    )


def _shape(dimension: int, budget: ApproxDP, horizon: int) -> dict[str, Any]:
    return {"n_arms": ARMS, "dimension": dimension, "budget": budget, "horizon": horizon}


def _published(dimension: int, budget: ApproxDP, horizon: int) -> Setting:
    """As in the theorems of the paper, and of those that it compares with."""
    shape = _shape(dimension, budget, horizon)
    paper = {**shape, "calibration": "paper"}
    made: dict[str, Any] = {
        "jdp": LinUCBJDP,
        "amp": partial(LinUCBSDP, batch=BATCH, protocol="reports"),
        "vec": partial(LinUCBSDP, batch=BATCH, protocol="bits"),
        "ldp": LinUCBLDP,
    }
    policies: dict[str, ContextualPolicy] = {_OPEN: LinUCB(ARMS, dimension)}
    for key, make in made.items():
        policies[key] = make(**paper, name=_named(f"{key}, published", dimension))
    pairs = [(_OPEN, "jdp"), ("jdp", "amp"), ("amp", "ldp"), ("jdp", "vec"), ("vec", "ldp")]
    return Setting(PUBLISHED, dimension, budget, policies, pairs)


def _one_radius(published: Setting, horizon: int) -> Setting:
    """The published noise with the radius and shift of this package for all policies.  The theorems
    of the shuffle model leave theirs open, and ``published`` has ours there already.
    """
    dimension = published.dimension
    shape = _shape(dimension, published.budget, horizon)
    paper = {**shape, "calibration": "paper", "bounds": "exact"}
    policies: dict[str, ContextualPolicy] = {
        **{name: published.policies[name] for name in (_OPEN, "amp", "vec")},
        "jdp-ours": LinUCBJDP(**paper, name=_named("jdp-ours, published noise", dimension)),
        "ldp-ours": LinUCBLDP(**paper, name=_named("ldp-ours, published noise", dimension)),
    }
    pairs = [(_OPEN, "jdp-ours"), ("jdp-ours", "amp"), ("amp", "ldp-ours"), ("jdp-ours", "vec")]
    pairs += [("vec", "ldp-ours")]
    return Setting(ONE_RADIUS, dimension, published.budget, policies, pairs, published)


def _equal(reading: str, dimension: int, budget: ApproxDP, horizon: int) -> Setting:
    """The least noise that is proved to keep the budget."""
    shape = _shape(dimension, budget, horizon)
    policies: dict[str, ContextualPolicy] = {
        _OPEN: LinUCB(ARMS, dimension),
        "jdp": LinUCBJDP(**shape, batch=BATCH, name=_named("jdp", dimension)),
        "sum": LinUCBSDP(**shape, batch=BATCH, name=_named("sum", dimension)),
        "vec": LinUCBSDP(**shape, batch=BATCH, protocol="bits", name=_named("vec", dimension)),
        "amp": LinUCBSDP(**shape, batch=BATCH, protocol="reports", name=_named("amp", dimension)),
        "ldp": LinUCBLDP(**shape, batch=BATCH, name=_named("ldp", dimension)),
    }
    pairs = [(_OPEN, "jdp"), ("jdp", "sum"), ("jdp", "vec"), ("vec", "ldp"), ("amp", "ldp")]
    return Setting(reading, dimension, budget, policies, pairs)


def _ranked(horizon: int) -> Setting:
    """Claims on other policies at the same budget: fewer releases, and draws instead of radii."""
    equal = _equal(EQUAL, 5, ApproxDP(1.0, DELTA), horizon)
    shape = _shape(5, equal.budget, horizon)
    policies: dict[str, ContextualPolicy] = {
        **{name: equal.policies[name] for name in (_OPEN, "jdp", "sum", "ldp")},
        "ada": algorithms.AdaCOFULJDP(**shape, name=_NAMES["ada"]),
        "ts-jdp": algorithms.LinearThompsonJDP(**shape, batch=BATCH, name=_NAMES["ts-jdp"]),
        "ts-sum": algorithms.LinearThompsonSDP(**shape, batch=BATCH, name=_NAMES["ts-sum"]),
        "ts-ldp": algorithms.LinearThompsonLDP(**shape, batch=BATCH, name=_NAMES["ts-ldp"]),
    }
    pairs = [("ada", "jdp"), ("ts-jdp", "ada"), ("ts-sum", "sum"), ("ts-ldp", "ldp")]
    return Setting(RANKED, 5, equal.budget, policies, pairs, equal)


def _batched(horizon: int) -> Setting:
    """Section 6 and Appendix F: how rarely the other models may update."""
    shape = _shape(5, ApproxDP(1.0, DELTA), horizon)
    central, local = math.isqrt(horizon), round(horizon**0.75)
    policies: dict[str, ContextualPolicy] = {
        _OPEN: LinUCB(ARMS, 5),
        "jdp-1": LinUCBJDP(**shape, batch=1, name=f"{_NAMES['jdp']}, every round"),
        "jdp-B": LinUCBJDP(**shape, batch=central, name=f"{_NAMES['jdp']}, batches of {central}"),
        "ldp-1": LinUCBLDP(**shape, batch=1, name=f"{_NAMES['ldp']}, every round"),
        "ldp-B": LinUCBLDP(**shape, batch=local, name=f"{_NAMES['ldp']}, batches of {local}"),
    }
    return Setting(BATCHED, 5, shape["budget"], policies, [])


def _returning(horizon: int, most: int) -> Setting:
    """Section 4: users with several rounds each."""
    shape = _shape(5, ApproxDP(1.0, DELTA), horizon)
    policies: dict[str, ContextualPolicy] = {_OPEN: LinUCB(ARMS, 5)}
    for visits in sorted({1, most}):
        users: dict[str, Any] = {"batch": BATCH, "max_rounds": visits, **shape}
        rounds = "a round" if visits == 1 else f"{visits} rounds"
        policies[f"jdp-{visits}"] = LinUCBJDP(**users, name=f"{_NAMES['jdp']}, {rounds} a user")
        policies[f"sum-{visits}"] = LinUCBSDP(**users, name=f"{_NAMES['sum']}, {rounds} a user")
    return Setting(RETURNING, 5, shape["budget"], policies, [])


def _named(key: str, dimension: int) -> str:
    """A name for tables, unique among the policies of all panels."""
    name, *rest = key.split(", ")
    return ", ".join([_NAMES[name], *rest, *([] if dimension == 5 else [f"d = {dimension}"])])


# Claims ----------------------------------------------------------------------------------------


def _assess(groups: Sequence[Setting], horizon: int, results: Results) -> Findings:
    claims = [claim for group in groups for claim in _order(group, horizon, results)]
    claims += [claim for group in groups if group.reading == PUBLISHED for claim in _kept(group)]
    by_reading = {group.reading: group for group in groups}
    claims += _gains(by_reading[RANKED], _published(5, ApproxDP(1.0, DELTA), horizon), results)
    claims += _batches(by_reading[BATCHED], horizon, results)
    claims += _visits(by_reading[RETURNING], min(VISITS, horizon // BATCH), horizon, results)
    exhibits, each = [], "dimension and budget"
    for i, reading in enumerate(READINGS, 1):
        read = [one for one in groups if one.reading == reading]
        panels = {f"d = {one.dimension}, {one.budget}": one for one in read}
        exhibits.append(figure(f"figure-{i}", reading, panels, each, _NAMES, _OPEN, results))
    return Findings(sorted(claims, key=lambda claim: READINGS.index(claim.reading)), exhibits)


def _order(setting: Setting, horizon: int, results: Results) -> list[Claim]:
    """The claim that less trust costs more regret."""
    figure = "Figure 1" if setting.dimension == 5 else "Figure 2"
    source = f"{PAPER}, {figure}" if setting.reading == PUBLISHED else f"after {PAPER}, {figure}"
    return [
        Claim(
            f"d = {setting.dimension}, {setting.budget}: {_NAMES[one]} has less regret than"
            f" {_NAMES[other]}. Measured: the ratio after {spoken(horizon)} rounds.",
            source,
            setting.reading,
            measured([results.final(setting.key(one)), results.final(setting.key(other))], ratio),
            Expectation(high=1.0, strict=True),
        )
        for one, other in setting.pairs
    ]


def _kept(setting: Setting) -> list[Claim]:
    """The claim that the noise keeps the requested budget."""
    claims, budget = [], setting.budget
    at, most = number(budget.epsilon), Expectation(high=budget.delta * (1.0 + 1e-9))
    for name, policy in setting.policies.items():
        if name != _OPEN:
            holds = policy.guarantee.holds
            real = holds.delta if isinstance(holds, ApproxDP) else 1.0
            told = (
                f"d = {setting.dimension}: {_NAMES[name]} keeps {budget}. Computed: the δ that is"
                f" proved at ε = {at}; 1 where there is none."
            )
            found = Estimate(real, real, real)
            claims.append(Claim(told, PAPER, setting.reading, found, most))
    return claims


def _share(means: np.ndarray) -> np.ndarray:
    """The first policy's private part of regret over the second's; the third is not private."""
    return (means[..., 0] - means[..., 2]) / (means[..., 1] - means[..., 2])


def _gains(setting: Setting, published: Setting, results: Results) -> list[Claim]:
    """The share of the private part of regret at the published constants that remains with exact
    noise.
    """
    compared = (("jdp", "jdp", 0.15), ("sum", "amp", 0.22), ("ts-sum", "amp", 0.22))
    free = results.final(setting.key(_OPEN))
    return [
        Claim(
            f"{_NAMES[ours]} has at most {most:g} of the private part of the regret of"
            f" {_NAMES[theirs]} at the published constants. Measured: this share.",
            "target of this package",
            RANKED,
            measured(
                [results.final(setting.key(ours)), results.final(published.key(theirs)), free],
                _share,
            ),
            Expectation(high=most),
        )
        for ours, theirs, most in compared
    ]


def _batches(setting: Setting, horizon: int, results: Results) -> list[Claim]:
    """The claim that rare updates cost nothing."""
    sources = {"jdp": "Proposition F.3", "ldp": "Proposition F.1"}
    return [
        Claim(
            f"{setting.policies[f'{name}-B'].name} has at most 1.1 times the regret of updates"
            f" after every round. Measured: the ratio after {spoken(horizon)} rounds.",
            f"after {PAPER}, {source}",
            setting.reading,
            measured(
                [results.final(setting.key(f"{name}-{every}")) for every in ("B", "1")], ratio
            ),
            Expectation(high=1.1),
        )
        for name, source in sources.items()
    ]


def _visits(setting: Setting, most: int, horizon: int, results: Results) -> list[Claim]:
    """The claim that protecting whole users costs the shuffle model no more than the central
    one.
    """

    def grown(name: str) -> list[np.ndarray]:
        return [results.final(setting.key(key)) for key in (f"{name}-{most}", f"{name}-1", _OPEN)]

    def quotient(means: np.ndarray) -> np.ndarray:
        return _share(means[..., :3]) / _share(means[..., 3:])

    source = f"after {PAPER}, Remark 4.4"
    after = f"after {spoken(horizon)} rounds"
    return [
        Claim(
            f"{most} rounds a user instead of one multiply the private part of regret of"
            f" {_NAMES['sum']} by at most {most**0.5:g}, the factor of the noise. Measured:"
            f" the factor, {after}.",
            source,
            setting.reading,
            measured(grown("sum"), _share),
            Expectation(high=most**0.5),
        ),
        Claim(
            f"They multiply it by no more than that of {_NAMES['jdp']}. Measured: the quotient of"
            f" both factors, {after}.",
            source,
            setting.reading,
            measured([*grown("sum"), *grown("jdp")], quotient),
            Expectation(high=1.0),
        ),
    ]
