"""The main findings of a study in sentences that stand on its numbers, with their uncertainty, and
say no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from ..plotting.numbers import (
    number,
    per_thousand,
    probability_in_words,
    signed_per_thousand,
)
from ..plotting.styles import PlotStyle
from ..privacy.budgets import RDP, ZCDP, ApproxDP, Budget, PureDP
from .estimates import estimate_of, interval_in_words
from .summaries import EnvironmentSummary

_DELTA = 1e-6  # at which notions without a delta are translated
_REVEALED = 99.0  # percent: a budget under which a suspicion can rise to this is no headline


def findings_in_people(summary: EnvironmentSummary, styles: Mapping[str, PlotStyle]) -> list[str]:
    """What a reader with one minute should know about one environment that has an allocation of
    its own, such as a trial.
    """
    if summary.reference is None:
        return []
    return [*_setting(summary), *_helped(summary, _private(summary), styles)]


def findings_on_spending(summaries: Iterable[EnvironmentSummary]) -> list[str]:
    """Whether any run of a study spent more than its budget."""
    private = [_private(summary) for summary in summaries]
    runs, over = (sum(int(rows[name].sum()) for rows in private) for name in ("runs", "over"))
    if over:
        return [
            f"{over:,} of {runs:,} private runs spent more than their budget. Their guarantee does"
            " not hold."
        ]
    return [f"No private run spent more than its budget ({runs:,} checked)."] if runs else []


def findings_on_clipping(summary: EnvironmentSummary, styles: Mapping[str, PlotStyle]) -> list[str]:
    """Which policies did not see all rewards as they are."""
    played = summary.runs["policy"].drop_duplicates()
    found: dict[str, list[str]] = {}
    for policy in played[played.isin(summary.clipping)]:
        found.setdefault(summary.clipping[policy], []).append(styles[policy].phrase)
    return [
        f"{effect[:1].upper()}{effect[1:]}. This biases what"
        f" {'all policies' if len(names) == len(played) else enumeration(names)} learnt."
        for effect, names in found.items()
    ]


def _private(summary: EnvironmentSummary) -> pd.DataFrame:
    """The settings whose guarantee holds: one that is void, as without clipping, has no limit
    either.
    """
    holds = summary.table["setting"].map(lambda setting: setting.holds is not None)
    return summary.table[holds]


def meaning(budget: Budget | None) -> str:
    """A budget in words."""
    match budget:
        case None:
            return "The policy learns from the true rewards; its decisions may reveal them."
        case PureDP(epsilon):
            return _odds(epsilon)
    epsilon, delta = _epsilon(budget), _delta(budget)
    implied = f"Implies ε = {number(_up(epsilon))} with δ = {probability_in_words(delta)}. "
    odds = _odds(epsilon)
    return (
        f"{'' if isinstance(budget, ApproxDP) else implied}Up to failures of a probability of about"
        f" {probability_in_words(delta)}: {odds[0].lower()}{odds[1:]}"
    )


def belief(budget: Budget | None) -> float:
    """To how many percent a suspicion of 50 % about one person can rise at most."""
    if budget is None:
        return 100.0
    factor = math.exp(min(_epsilon(budget), 700.0))
    return _up(100 * factor / (1 + factor))


def _delta(budget: Budget) -> float:
    """At which delta a budget is read."""
    return budget.delta if isinstance(budget, ApproxDP) else _DELTA


def _epsilon(budget: Budget) -> float:
    """The epsilon that a budget implies at that delta."""
    match budget:
        case PureDP(epsilon) | ApproxDP(epsilon):
            return epsilon
        case ZCDP() | RDP():
            return budget.to_approx(_DELTA).epsilon
    raise TypeError(f"{budget!r} is no budget")


def _odds(epsilon: float) -> str:
    factor = math.exp(min(epsilon, 700.0))
    times = f"{number(_up(factor))} times" if factor < 1e6 else f"e^{number(_up(epsilon))} times"
    rise = suspicion(_up(100 * factor / (1 + factor)))
    return (
        f"One person's answer makes any outcome at most {times} as likely; a suspicion of 50 % can"
        f" rise to {rise}."
    )


def suspicion(percents: float) -> str:
    """A belief that a suspicion can rise to."""
    return "more than 99.9 %" if percents > 99.9 else f"{percents:.1f} % at most"


def _up(value: float) -> float:
    """Three digits, rounded up: an upper bound stays one."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return math.ceil(value / unit - 1e-9) * unit


def _setting(summary: EnvironmentSummary) -> Iterator[str]:
    if summary.baseline is None or summary.means is None or summary.best is None:
        return
    best = 1000 * float(summary.means[summary.best])
    yield (
        f"The best arm, {summary.arms[summary.best]}, brings {per_thousand(best)} {summary.gained}"
        f" per 1,000 people on average; {summary.baseline.name} would bring"
        f" {per_thousand(summary.baseline.helped)}."
    )


def _helped(
    summary: EnvironmentSummary, private: pd.DataFrame, styles: Mapping[str, PlotStyle]
) -> Iterator[str]:
    """The best setting among those whose budget still protects, what its privacy cost, and how all
    settings compare.
    """
    if summary.baseline is None or private.empty:
        return
    name, unit = summary.baseline.name, f"{summary.gained} per 1,000 people"
    beliefs = private["setting"].map(lambda setting: belief(setting.holds))
    protecting = private[beliefs < _REVEALED]
    if protecting.empty:
        yield (
            "Under every private budget of this study, a suspicion of 50 % about one person can"
            f" rise to {_REVEALED:.0f} % or more."
        )
    elif not (learned := protecting[protecting["releases"] > 0]).empty:
        best = learned.loc[learned["gain"].idxmax()]
        gain = estimate_of(best, "gain")
        yield (
            f"With privacy, {styles[best['policy']].short_phrase} at {best['budget_label'].text}"
            f" would bring {per_thousand(best['helped'])} {unit}, {signed_per_thousand(gain.mean)}"
            f"{interval_in_words(gain, signed_per_thousand)} compared with {name}. A suspicion of"
            f" 50 % about one person's answer can then rise to {suspicion(beliefs[best.name])}. Of"
            f" all private settings that released anything and keep it below {_REVEALED:.0f} %,"
            " this is the best."
        )
        yield from _price(summary, best, unit)
    if private["runs"].min() >= 2:
        more, fewer = int((private["gain_low"] > 0).sum()), int((private["gain_high"] < 0).sum())
        yield _split(name, unit, more=more, fewer=fewer, total=len(private))


def _price(summary: EnvironmentSummary, best: pd.Series, unit: str) -> Iterator[str]:
    without = summary.without_privacy(best)
    if without is None or best["runs"] < 2:
        return
    cost = summary.paired_difference("helped", without, best)
    size = f"{per_thousand(cost.mean)} {unit}{interval_in_words(cost, per_thousand)}"
    if cost.low > 0:
        yield f"The price of its privacy: {size} fewer than the same policy without privacy."
    else:
        yield (
            f"The runs show no price of its privacy: the same policy without privacy brings {size}"
            " more."
        )


def _split(name: str, unit: str, *, more: int, fewer: int, total: int) -> str:
    """How many of all settings lie above, below or around what they are compared with, by their
    intervals.
    """
    settings = f"{total} private settings (policy and budget)"
    if total in (more, fewer):
        return f"All {settings} bring {'more' if more else 'fewer'} {unit} than {name}."
    parts = {
        "bring more": more,
        "bring fewer": fewer,
        "cannot be told apart from it": total - more - fewer,
    }
    counted = enumeration([f"{count} {what}" for what, count in parts.items() if count])
    return f"Compared with {name}, of the {settings} {counted} ({unit})."


def enumeration(names: list[str]) -> str:
    """Names as one says them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
