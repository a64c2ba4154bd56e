"""The main findings of a study, in sentences that stand on its numbers and say no more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd

from ..plotting.numbers import per_thousand, percent, probability_in_words, signed_per_thousand
from ..plotting.styles import Styles
from ..privacy.budgets import Budget
from ..privacy.meaning import Meaning
from ..validation import upward
from .means import estimate_of, interval_in_words
from .summaries import EnvironmentSummary

_DELTA = 1e-6  # at which notions without a delta are translated
_REVEALED = 0.99  # a budget under which a belief can rise to this is no headline


def findings_in_people(summary: EnvironmentSummary, styles: Styles) -> list[str]:
    """The first findings on an environment with an allocation of its own, such as a trial."""
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


def findings_on_clipping(summary: EnvironmentSummary, styles: Styles) -> list[str]:
    """The policies that clipped some rewards."""
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
    """The settings whose guarantee holds; one that is void has no limit either."""
    holds = summary.table["setting"].map(lambda setting: setting.holds is not None)
    return summary.table[holds]


def meaning(budget: Budget | None) -> str:
    """A budget in words."""
    if budget is None:
        return "The policy learns from the true rewards; its decisions may reveal them."
    implied = ""
    if not budget.is_epsilon:
        at = budget.to_approx(_DELTA)
        implied = (
            f"It implies ε = {upward(at.epsilon, 3):g} with δ = {probability_in_words(_DELTA)}. "
        )
    return implied + Meaning.of(budget).sentence("answers")


def _setting(summary: EnvironmentSummary) -> Iterator[str]:
    if summary.baseline is None or summary.means is None or summary.best is None:
        return
    best = 1000 * float(summary.means[summary.best])
    yield (
        f"The best arm, {summary.arms[summary.best]}, brings {per_thousand(best)} {summary.gained}"
        f" per 1,000 people on average; {summary.baseline.name} would bring"
        f" {per_thousand(summary.baseline.helped)}."
    )


def _helped(summary: EnvironmentSummary, private: pd.DataFrame, styles: Styles) -> Iterator[str]:
    """The best setting whose budget still protects, its price, and how all settings compare."""
    if summary.baseline is None or private.empty:
        return
    name, unit = summary.baseline.name, f"{summary.gained} per 1,000 people"
    beliefs = private["setting"].map(lambda setting: Meaning.of(setting.holds).belief)
    protecting = private[beliefs < _REVEALED]
    if protecting.empty:
        yield (
            "Under every private budget of this study, an adversary's belief in a person's true"
            f" answer can rise from 50 % to {percent(_REVEALED)} or more."
        )
    elif not (learned := protecting[protecting["releases"] > 0]).empty:
        best = learned.loc[learned["gain"].idxmax()]
        gain = estimate_of(best, "gain")
        yield (
            f"With privacy, {styles[best['policy']].short_phrase} at {best['budget_label'].text}"
            f" would bring {per_thousand(best['helped'])} {unit}, {signed_per_thousand(gain.mean)}"
            f"{interval_in_words(gain, signed_per_thousand)} compared with {name}."
            " No other private setting that learned does better at a budget that keeps an"
            f" adversary's belief below {percent(_REVEALED)}."
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
    yield (
        f"The price of its privacy: {size} fewer than the same policy without privacy."
        if cost.low > 0
        else "The runs show no price of its privacy: the same policy without privacy brings"
        f" {size} more."
    )


def _split(name: str, unit: str, *, more: int, fewer: int, total: int) -> str:
    """Count the settings above, below or around their reference value."""
    settings = f"{total} private settings (policy and budget)"
    if total in (more, fewer):
        return f"All {settings} bring {'more' if more else 'fewer'} {unit} than {name}."
    parts = {"bring more": more, "bring fewer": fewer}
    parts["cannot be told apart from it"] = total - more - fewer
    counted = enumeration([f"{count} {what}" for what, count in parts.items() if count])
    return f"Compared with {name}, of the {settings} {counted} ({unit})."


def enumeration(names: list[str]) -> str:
    """Names joined in words."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
