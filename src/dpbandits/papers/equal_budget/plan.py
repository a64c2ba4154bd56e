"""Least regret at equal budget: every private policy for finite arms, with features or without, on
one panel of instances per setting.  The study tests whether any entered policy, with its entered
settings, has clearly less regret than the default.

A ranking contains only policies with equal trust and equal spent budget, which is read from their
ledgers.  Runs are paired: run i of all policies meets the same noise of the instance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...environments import ArmsEnvironment
from ...planning.setting import Setting
from ...planning.yardsticks import exploring, why_not_exploring
from ...privacy import Budget
from ...report.claims import Claim, Expectation
from ...report.intervals import ratio, share
from ...report.means import Estimate
from ...studies.cells import Cell
from ..plans import Findings, Plan, Results, Size, largest_of, recorded, spoken
from .panel import TRIAL, Contest, Entrant, Instance, champion_of, contests, setting_of
from .ranking import (
    CLOSE,
    LEAST_LOST,
    LOST,
    Regrets,
    ranking,
    who_keeps_tails,
)
from .tables import (
    beaten_table,
    defaults_table,
    open_key,
    profiles,
    ranks_table,
    worst_of,
    worst_ranks_table,
    yardstick_of,
)

RUNS, FULL_RUNS, QUICK_RUNS = 100, 1000, 10
QUICK_HORIZON = 2_000
SMALLEST = 100  # rounds, in which means have room to change
SHORT = 2000  # rounds
EQUAL = 1e-9  # relative difference of what was spent
SOURCE = "target of this package"
RANDOM, EXPLORING = "choosing at random", "exploring first"  # the yardsticks
READINGS = (
    "The default among those entered",
    "The default beside yardsticks",
    "Runs that are lost",
    "The budget is equal",
)


def plan(size: Size) -> Plan:
    """All contests at the given size, and the defaults without privacy beside them."""
    runs = size.runs or (FULL_RUNS if size.full else QUICK_RUNS if size.quick else RUNS)
    played = contests(size.quick)
    names = dict.fromkeys(one.name for contest in played for one in contest.instances)
    numbers = {name: i for i, name in enumerate(names)}
    opened = {
        open_key(contest, instance): (champion_of(contest.default.central), instance)
        for contest in played
        for instance in contest.instances
    }

    def cell(key: str, stage: str, who: Entrant, budget: Budget | None, where: Instance) -> Cell:
        horizon = _rounds(where, size)
        world = where.world(horizon)
        # Arguments differ from instance to instance; the page shows the trial, with plain names.
        name = who.title if where is TRIAL else f"{who.title}, no. {numbers[where.name]}"
        return Cell(
            key=key,
            stage=stage,
            policy=who.policy(world, budget, horizon, name=name),
            environment=world,
            horizon=horizon,
            runs=runs,
            seed=size.seed,
            record=recorded(horizon, 60) if where is TRIAL else (horizon,),
        )

    cells = [
        cell(_key(contest, who, where), contest.title, who, contest.budget, where)
        for contest in played
        for who in contest.entrants
        for where in contest.instances
    ]
    cells += [
        cell(key, "Without privacy", who, None, where) for key, (who, where) in opened.items()
    ]
    return Plan(
        title="Least regret at equal budget",
        description=(
            "Which of this package's private policies for finite arms, with features or"
            " without, has least regret among those that trust the same people and spend the"
            " same budget? Instances are easy, close, rare, many-armed, short and changing, and"
            " contexts are diverse or few."
        ),
        cells=cells,
        assess=partial(_assess, played, size),
        notes=[
            (
                f"{_counted(played)}. {runs} runs of {_horizons(played, size)} rounds. Means are"
                " compared within an instance and a contest, as factors of the least mean"
                " regret there. That flatters the winner where two are close. Verdicts compare"
                " pair by pair, with intervals that hold for all pairs together."
            ),
            (
                f"A run is lost if it has more than {LOST:g} times the regret of the median run"
                " of its policy on its instance, and more than so many times that of the"
                " default's median run there. A policy is unreliable if it demonstrably loses"
                f" more than 1 run in {1 / LEAST_LOST:,.0f}, on one instance or over all."
                " Unreliable policies are not the best anywhere: factors are of the least mean"
                " regret of reliable policies, and verdicts compare the default with these."
                " Learners for rewards that follow no law enter only where rewards have none."
            ),
            (
                "Policies are told the horizon if they take it; those that can do without it enter"
                " both ways. Those for arms with fixed features also enter where arms have none,"
                " with unit vectors. With linear means, d features and s, half the width of"
                " rewards, policies with public contexts or fixed features also enter with the"
                " ridge d s^2, and RSLinearIMED with half of it and with 1. Where contexts are"
                " private, Thompson sampling, LinUCB and the default also enter with batches four"
                " times as long. Not entered: other values of ridge with private contexts or a"
                " link. Verdicts say nothing of these."
            ),
            (
                "Yardsticks are choosing at random, and exploring first: every arm is played"
                " equally often, then the best one by a private release for good. It stands at its"
                " best length, which nobody knows beforehand, so it is no entrant. It has no row"
                " where the best arm changes from round to round, rewards follow no law, or trust"
                " is in a shuffler."
            ),
            (
                "With features all means are linear, and policies that take a link know that."
                " Policies that take a batch have the default's batch where their name has none."
                " Where contexts are few, noise explores for policies with a small radius, so"
                " families of contexts have claims of their own."
            ),
        ],
        shown=[repr(TRIAL.world(TRIAL.horizon))],
    )


def _rounds(instance: Instance, size: Size) -> int:
    most = size.horizon or (QUICK_HORIZON if size.quick else instance.horizon)
    return max(SMALLEST, min(instance.horizon, most))


def _horizons(played: Sequence[Contest], size: Size) -> str:
    found = sorted({_rounds(one, size) for contest in played for one in contest.instances})
    return " to ".join(dict.fromkeys(spoken(rounds) for rounds in (found[0], found[-1])))


def _counted(played: Sequence[Contest]) -> str:
    """The number of instances of every setting, for any trust."""
    counts = {}
    for contest in played:
        setting = setting_of(contest.default.central, contest.family)
        counts[setting.rpartition(",")[0]] = len(contest.instances)
    return "Instances: " + "; ".join(f"{count} of {words}" for words, count in counts.items())


def _instances(found: Sequence[object]) -> str:
    return f"{len(found)} instance{'' if len(found) == 1 else 's'}"


def _key(contest: Contest, entrant: Entrant, instance: Instance) -> str:
    return f"{contest.title}/{entrant.title}/{instance.name}"


# Claims ----------------------------------------------------------------------------------------


def _assess(played: Sequence[Contest], size: Size, results: Results) -> Findings:
    found = {contest.title: _regrets(contest, results) for contest in played}
    # Where rewards follow no law, promises are about the worst sequence, and regret may be negative
    # on others.
    counted = {
        contest.title: found[contest.title]
        if contest.default.rewards == "law"
        else {who: worst_of(own) for who, own in found[contest.title].items()}
        for contest in played
    }
    lawful = [contest for contest in played if contest.default.rewards == "law"]
    ranked = [contest for contest in lawful if len(contest.entrants) > 1]
    beside = {contest.title: _yardsticks(contest, size, results) for contest in played}
    claims = [claim for one in played for claim in _unbeaten(one, counted[one.title])]
    claims += [
        claim
        for one in lawful
        for claim in _worth_it(one, size, found[one.title], beside[one.title])
    ]
    claims += _tails(lawful, found)
    claims += [_spent_alike(contest, size, results) for contest in played]
    tables = [defaults_table(played, counted, results), beaten_table(ranked, found)]
    tables += [ranks_table(one, found[one.title], beside[one.title]) for one in ranked]
    tables += [
        worst_ranks_table(one, {**found[one.title], **beside[one.title]})
        for one in played
        if one not in lawful
    ]
    # three to five instances have no shares that are worth a curve
    curves = [contest for contest in ranked if contest.default.contexts == "none"]
    return Findings(claims, [profiles(curves, found)], tables)


def _regrets(contest: Contest, results: Results) -> Regrets:
    return {
        entrant.title: {
            instance.name: results.final(_key(contest, entrant, instance)).ravel()
            for instance in contest.instances
        }
        for entrant in contest.entrants
    }


def _unbeaten(contest: Contest, regrets: Regrets) -> list[Claim]:
    """The claim that no policy has much less regret than the default, except for policies with lost
    runs.
    """
    title = contest.champion.title
    own = regrets[title]
    keeping = who_keeps_tails(regrets, yardstick_of(contest))
    # Nobody is excused beside a default that loses runs itself, nor if nobody else is left.
    strict = title in keeping and len(keeping) > 1
    excused = [other for other in regrets if strict and other not in keeping]
    where = (
        f"nowhere worse than {CLOSE:g} times the best"
        if contest.default.rewards == "law"
        else f"at its worst no worse than {CLOSE:g} times the best of all"
    )
    pairs = [
        [own[name][np.newaxis], runs[np.newaxis]]
        for other, theirs in regrets.items()
        if other not in {title, *excused}
        for name, runs in theirs.items()
    ]
    if not pairs:
        return []
    return [
        Claim(
            f"{contest.title}: {title} is {where}. Measured: the largest ratio to"
            f" another policy's mean regret, over {_instances(contest.instances)} and"
            f" {len(regrets) - 1 - len(excused)} policies"
            + (f"; left out, for losing runs: {', '.join(sorted(excused))}." if excused else "."),
            SOURCE,
            READINGS[0],
            largest_of(pairs, ratio),
            Expectation(high=CLOSE),
        )
    ]


def _yardsticks(contest: Contest, size: Size, results: Results) -> Regrets:
    """The regret of choosing at random, and of exploring first at its best length, where that has
    a meaning.
    """
    random = {
        one.name: results.at_random(open_key(contest, one)).ravel() for one in contest.instances
    }
    runs = len(random[contest.instances[0].name])
    explored = {
        one.name: found
        for one in contest.instances
        if (found := _exploring(contest, one, size, runs)) is not None
    }
    return {RANDOM: random, EXPLORING: explored} if explored else {RANDOM: random}


def _exploring(contest: Contest, instance: Instance, size: Size, runs: int) -> np.ndarray | None:
    """The regrets of exploring first, as means of groups of runs, shape (runs,); None where it has
    no meaning.
    """
    horizon, trust = _rounds(instance, size), contest.default.trust
    world = instance.world(horizon)
    if not isinstance(world, ArmsEnvironment):
        return None
    if why_not_exploring(Setting.of(world, trust=trust), world.support):
        return None
    known: dict[str, Any] = {
        "trust_model": trust,
        "reward_range": world.support,
        "least_runs": runs,
    }
    found = exploring(world, horizon, contest.budget, seed=size.seed, **known)
    return np.array([part.mean() for part in np.array_split(found.regrets, runs)])


def _worth_it(contest: Contest, size: Size, regrets: Regrets, beside: Regrets) -> list[Claim]:
    """The claims that the default has less regret than each yardstick."""
    short = {one.name for one in contest.instances if _rounds(one, size) <= SHORT}
    groups = [(f"{RANDOM} on every instance", beside[RANDOM])]
    for words, is_short in (("at most", True), ("more than", False)):
        of_length = f"{EXPLORING} at its best length, on instances of {words} {SHORT:,} rounds"
        explored = beside.get(EXPLORING, {})
        found = {name: runs for name, runs in explored.items() if (name in short) == is_short}
        groups.append((of_length, found))
    title = contest.champion.title
    return [
        _less(f"{contest.title}: {title} has less regret than {words}", regrets[title], theirs)
        for words, theirs in groups
        if theirs
    ]


def _less(statement: str, own: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]) -> Claim:
    """The claim of less regret than a yardstick's on each of its instances."""
    pairs = [[own[name][np.newaxis], runs[np.newaxis]] for name, runs in theirs.items()]
    more = [name for name, runs in theirs.items() if own[name].mean() >= runs.mean()]
    return Claim(
        f"{statement}. Measured: the largest ratio of mean regrets, over {_instances(pairs)}"
        + (f"; it is not below 1 on {'; '.join(more)}." if more else "."),
        SOURCE,
        READINGS[1],
        largest_of(pairs, ratio),
        Expectation(high=1.0, strict=True),
    )


def _tails(played: Sequence[Contest], regrets: Mapping[str, Regrets]) -> list[Claim]:
    """The claim that hardly any run of a default is lost."""
    claims = []
    for setting in dict.fromkeys(contest.setting for contest in played):
        own = [contest for contest in played if contest.setting == setting]
        title = own[0].champion.title
        ranks = [
            rank
            for contest in own
            for rank in ranking(regrets[contest.title], yardstick_of(contest))
            if rank.title == title
        ]
        lost, runs = sum(rank.lost for rank in ranks), sum(rank.runs for rank in ranks)
        claims.append(
            Claim(
                f"{setting}: at most one run in {1 / LEAST_LOST:,.0f} of {title} is lost. Measured:"
                f" the share, over all instances and budgets, {runs:,} runs.",
                SOURCE,
                READINGS[2],
                share(lost, runs),
                Expectation(high=LEAST_LOST),
                shares=True,
            )
        )
    return claims


def _spent_alike(contest: Contest, size: Size, results: Results) -> Claim:
    """The claim that the ledgers of all policies agree."""
    worst = max(
        _deviation(contest, entrant, instance, size, results)
        for entrant in contest.entrants
        for instance in contest.instances
    )
    return Claim(
        f"{contest.title}: all {len(contest.entrants)} policies spend the same, the whole"
        " budget. Computed: the largest relative difference between the ledger of a run with"
        " releases and the budget that was asked for.",
        SOURCE,
        READINGS[3],
        Estimate(worst, worst, worst),
        Expectation(high=EQUAL),
    )


def _deviation(
    contest: Contest, entrant: Entrant, instance: Instance, size: Size, results: Results
) -> float:
    """The deviation of a policy's spent budget from its budget; infinite where it keeps another
    notion.
    """
    horizon = _rounds(instance, size)
    policy = entrant.policy(instance.world(horizon), contest.budget, horizon)
    meter = policy.meter
    if meter is None or policy.guarantee_in_simulations.holds != contest.budget:
        return np.inf
    key = _key(contest, entrant, instance)
    spent, releases = results.final(key, "spent"), results.final(key, "releases")
    apart = np.abs(spent[releases > 0] / meter.limit - 1.0)
    return float(apart.max(initial=0.0))
