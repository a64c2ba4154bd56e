"""Tables and figures of the comparison: defaults, ranks, and where a default was beaten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ...plotting.behind import slug
from ...plotting.numbers import number, percent, reward_amount
from ...privacy import Budget
from ...report.exhibits import Exhibit, Panel, Series, Table
from ..plans import Results
from .panel import Contest, Instance
from .ranking import (
    CLOSE,
    Regrets,
    factors,
    least,
    ranking,
    relative,
    who_keeps_tails,
)

WORST = "the worst one"


def worst_of(own: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The runs on the instance with most regret alone."""
    return {WORST: own[weakest_of(own)]}


def weakest_of(own: Mapping[str, np.ndarray]) -> str:
    """The instance with most mean regret."""
    return max(own, key=lambda name: float(own[name].mean()))


def open_key(contest: Contest, instance: Instance) -> str:
    """The key of the runs of the default without a budget."""
    return f"open/{contest.default.central.policy}/{instance.name}"


def defaults_table(
    played: Sequence[Contest], regrets: Mapping[str, Regrets], results: Results
) -> Table:
    """The default of every setting, and its regret."""
    central = {
        _asked(contest): regrets[contest.title][contest.champion.title]
        for contest in played
        if contest.default.trust == "central"
    }
    rows = []
    for contest in played:
        title = contest.champion.title
        own = regrets[contest.title][title]
        ranks = ranking(regrets[contest.title], yardstick_of(contest))
        (rank,) = [one for one in ranks if one.title == title]
        free = {
            one.name: results.final(open_key(contest, one)).ravel() for one in contest.instances
        }
        lawful = contest.default.rewards == "law"
        rows.append(
            {
                "setting": contest.setting,
                "budget": str(contest.budget),
                "default": title,
                "within 1.2": percent(rank.close) if lawful else "–",
                "best": percent(rank.won) if lawful and rank.tails_kept else "–",
                "worst factor": number(rank.worst),
                "lost": f"{rank.lost} of {rank.runs:,}" if lawful else "–",
                "beside no privacy": number(_typical(own, free if lawful else worst_of(free))),
                "beside central trust": number(_typical(own, central[_asked(contest)]))
                if lawful and _asked(contest) in central
                else "–",
            }
        )
    return Table(
        "defaults",
        "The default of each setting",
        f"For each default: the share of instances on which it is within {CLOSE:g} times the"
        " least mean regret of reliable policies, and on which it is the best; its worst"
        " factor, where rewards follow no law that of its worst regret; runs lost; medians over"
        " instances of its mean regret over that of the central default without a budget, and"
        " at the same budget.",
        pd.DataFrame(rows),
        words=["default"],
    )


def yardstick_of(contest: Contest) -> str | None:
    """The policy whose median run defines a lost run; None where promises are about means."""
    return contest.champion.title if contest.default.rewards == "law" else None


def _asked(contest: Contest) -> tuple[str, str, Budget]:
    """The instances that are compared under different trust."""
    return contest.default.setting, contest.family, contest.budget


def _typical(own: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray]) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.median([runs.mean() / others[name].mean() for name, runs in own.items()]))


def ranks_table(contest: Contest, regrets: Regrets, beside: Regrets) -> Table:
    """All entered policies, the best first, and the yardsticks."""
    ranks = ranking(regrets, yardstick_of(contest))
    rows = [
        {
            "policy": rank.title,
            "within 1.2": percent(rank.close),
            "best": percent(rank.won) if rank.tails_kept else "–",
            "median factor": number(rank.median),
            "worst factor": number(rank.worst),
            "where": rank.weakest,
            "lost": rank.lost,
        }
        for rank in ranks
    ]
    units = least(regrets, yardstick_of(contest))
    for name, own in beside.items():
        ratios = factors(own, units)
        rows.append(
            {
                "policy": name,
                "within 1.2": percent(float(np.mean(ratios <= CLOSE))),
                "best": "–",
                "median factor": number(float(np.median(ratios))),
                "worst factor": number(float(ratios.max())),
                "where": list(own)[int(ratios.argmax())],
                "lost": "–",
            }
        )
    return Table(
        f"ranks-{slug(contest.title)}",
        contest.title,
        "Mean regret as a factor of the least one of reliable policies on the instance: share"
        f" of the {len(contest.instances)} instances within {CLOSE:g}, share won, median, worst"
        f" and where. Lost runs are of {ranks[0].runs:,}. Unreliable policies come last, before"
        f" the yardsticks: {' and '.join(beside)}.",
        pd.DataFrame(rows),
        words=["where"],
    )


def worst_ranks_table(contest: Contest, regrets: Regrets) -> Table:
    """All entered policies and yardsticks, by their regret on the worst instance."""
    worst = {who: float(own[weakest_of(own)].mean()) for who, own in regrets.items()}
    rows = [
        {
            "policy": who,
            "worst mean regret": reward_amount(worst[who]),
            "factor": number(worst[who] / min(worst.values())),
            "where": weakest_of(regrets[who]),
        }
        for who in sorted(worst, key=worst.__getitem__)
    ]
    return Table(
        f"ranks-{slug(contest.title)}",
        contest.title,
        f"Mean regret on the worst of {len(contest.instances)} instances, as a factor of the"
        " least one, with the name of that instance.",
        pd.DataFrame(rows),
        words=["where"],
    )


def beaten_table(played: Sequence[Contest], regrets: Mapping[str, Regrets]) -> Table:
    """The instances where another policy had less regret than the default."""
    rows = []
    for contest in played:
        title, found = contest.champion.title, regrets[contest.title]
        entitled = who_keeps_tails(found, yardstick_of(contest)) or list(found)
        for name, own in found[title].items():
            best = min(entitled, key=lambda other: float(found[other][name].mean()))
            least = float(found[best][name].mean())
            if own.mean() > least:
                rows.append(
                    {
                        "contest": contest.title,
                        "instance": name,
                        "best": best,
                        "its regret": reward_amount(least),
                        "the default's": reward_amount(float(own.mean())),
                        "factor": number(float(own.mean()) / least) if least > 0 else "∞",
                    }
                )
    columns = ["contest", "instance", "best", "its regret", "the default's", "factor"]
    return Table(
        "beaten",
        "Where another policy had less regret than the default",
        "Mean regrets of reliable policies. Some of these differences are chance.",
        pd.DataFrame(rows, columns=columns),
        words=["best"],
    )


def profiles(played: Sequence[Contest], regrets: Mapping[str, Regrets]) -> Exhibit:
    """The share of instances on which a policy is within each factor of the least regret."""
    factors = np.geomspace(1.0, 30.0, 120)
    nothing = np.full(factors.size, np.nan)

    def line(title: str, ratios: np.ndarray) -> Series:
        within = (ratios[:, np.newaxis] <= factors).mean(axis=0)
        return Series(title, factors, within, nothing, nothing)

    panels, axes = [], ("factor of the least mean regret", "share of instances")
    for contest in played:
        shown = _best_variants(_entitled(contest, regrets))
        lines = [line(title, ratios) for title, ratios in shown.items()]
        panels.append(Panel(contest.title, *axes, lines))
    return Exhibit(
        "profiles",
        "How far from the best, and how often",
        "Left and high is good: a curve shows on which share of the instances the mean regret"
        " of a policy is at most so many times the least one there. Only reliable policies are"
        " shown. A policy that no other beats is at 1 from the left on. Of a policy's variants"
        " the one with the least worst factor is shown.",
        "Rising curves, one per policy, in one panel per contest: the share of instances on which a"
        " policy is within a factor of the least mean regret.",
        panels,
    )


def _entitled(contest: Contest, regrets: Mapping[str, Regrets]) -> dict[str, np.ndarray]:
    """The factors of policies that keep tails, or of all if none does."""
    found, yardstick = regrets[contest.title], yardstick_of(contest)
    keeping = who_keeps_tails(found, yardstick) or list(found)
    return {who: ratios for who, ratios in relative(found, yardstick).items() if who in keeping}


def _best_variants(ratios: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The variant of every class with the least worst factor."""
    best: dict[str, str] = {}
    for title in sorted(ratios, key=lambda title: float(ratios[title].max())):
        best.setdefault(title.partition("(")[0], title)
    return {title: own for title, own in ratios.items() if title in best.values()}
