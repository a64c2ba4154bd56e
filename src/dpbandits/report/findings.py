"""The main findings of a study in sentences that stand on its numbers, with their uncertainty, and say no more."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import pandas as pd

from ..privacy.budgets import RDP, ZCDP
from .labels import Level, Look, amount, more_or_fewer, number, per_thousand
from .scenes import Estimate, Scene

_STRICTEST, _LOOSEST = ", the strictest budget", ", the loosest"
_DELTA = 1e-6  # at which notions without a delta are translated


def findings(scene: Scene, looks_of: Mapping[str, Look]) -> list[str]:
    """What a reader with one minute should know about one environment."""
    private = scene.table[[kind.private for kind in scene.table["level"]]]
    return [
        *_setting(scene),
        *_helped(scene, private, looks_of),
        *_price(scene, private, looks_of),
        *(_lowest(scene, place, rows, looks_of) for place, rows in _ends(private)),
        *_spending(private),
    ]


def interval(value: Estimate, show: Callable[[float], str] = number) -> str:
    """The interval alone, in brackets; empty where one run gives none."""
    return "" if math.isnan(value.low) else f" (95 % interval {show(value.low)} to {show(value.high)})"


def of_row(row: pd.Series, name: str) -> Estimate:
    """A mean of the table with its interval."""
    return Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"])


def meaning(kind: Level) -> str:
    """A budget in words."""
    if not kind.private:
        return "The policy learns from the true rewards; its decisions may reveal them."
    if math.isnan(kind.value):
        return "A notion of which this page has no description."
    epsilon, delta = kind.value, kind.fixed
    if kind.notion == "Pure DP":
        return _odds(epsilon)
    translated = ""
    if not kind.notion.startswith("Approximate"):
        budget = ZCDP(kind.value) if kind.notion == "zCDP" else RDP(kind.fixed, kind.value)
        epsilon, delta = budget.to_approx(_DELTA).epsilon, _DELTA
        translated = f"Implies ({number(_up(epsilon))}, {delta:g})-DP. "
    return f"{translated}Up to failures of probability about {delta:g}: {_odds(epsilon)[0].lower()}{_odds(epsilon)[1:]}"


def _odds(epsilon: float) -> str:
    factor = math.exp(min(epsilon, 700.0))
    belief = _up(100 * factor / (1 + factor))
    suspicion = "more than 99.9 %" if belief > 99.9 else f"{belief:.1f} %"
    times = f"{number(_up(factor))} times" if factor < 1e6 else f"e^{number(_up(epsilon))} times"
    return (
        f"One person's answer makes any outcome at most {times} as likely; a suspicion of 50 % can rise to {suspicion} at most."
    )


def _up(value: float) -> float:
    """Three digits, rounded up: an upper bound stays one."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return math.ceil(value / unit - 1e-9) * unit


def _setting(scene: Scene) -> Iterator[str]:
    if scene.baseline is None or scene.means is None or scene.best is None:
        return
    name, baseline = scene.baseline
    best = 1000 * float(scene.means[scene.best])
    yield (
        f"The best arm, {scene.arms[scene.best]}, brings {per_thousand(best)} {scene.gained} per 1,000 people on average; "
        f"{name} would bring {per_thousand(baseline)}."
    )


def _ends(private: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The strictest and the loosest budget of every notion."""
    notions = dict.fromkeys(kind.notion for kind in sorted(private["level"], key=lambda kind: kind.order))
    for notion in notions:
        rows = private[[kind.notion == notion for kind in private["level"]]]
        values = sorted({kind.value for kind in rows["level"]})
        ends = [("", values[0])] if len(values) == 1 else [(_STRICTEST, values[0]), (_LOOSEST, values[-1])]
        for place, value in ends:
            chosen = rows[[kind.value == value for kind in rows["level"]]]
            if len(chosen):
                yield place, chosen


def _lowest(scene: Scene, place: str, rows: pd.DataFrame, looks_of: Mapping[str, Look]) -> str:
    """Which policy had the lowest mean regret at one budget, and from which others the runs do not separate it."""
    ranked = rows.sort_values("regret", kind="stable")
    best = ranked.iloc[0]
    regret = f"{amount(best['regret'])}{interval(of_row(best, 'regret'), amount)}"
    label, at = looks_of[best["policy"]].label, f"At {best['budget']}{place}, "
    if len(ranked) == 1:
        return f"{at}{label} had a mean regret of {regret} after {scene.horizon:,} rounds."
    sentence = f"{at}{label} had the lowest mean regret of {len(ranked)} policies: {regret}. "
    if best["runs"] < 2:
        return sentence + "One run does not tell them apart."
    gaps = [(looks_of[row["policy"]].label, scene.paired("regret", row, best)) for _, row in ranked.iloc[1:].iterrows()]
    close = [name for name, gap in gaps if not gap.low > 0]
    if close:
        return sentence + f"The runs do not separate it from {_listed(close)}."
    name, gap = gaps[0]
    return sentence + f"The next, {name}, lost {amount(gap.mean)} more{interval(gap, amount)}."


def _helped(scene: Scene, private: pd.DataFrame, looks_of: Mapping[str, Look]) -> Iterator[str]:
    if scene.baseline is None or private.empty:
        return

    def told(row: pd.Series) -> str:
        gain = of_row(row, "gain")
        return f"{more_or_fewer(gain.mean)}{interval(gain, more_or_fewer)} for {_setting_of(row, looks_of)}"

    least, most = private.loc[private["gain"].idxmin()], private.loc[private["gain"].idxmax()]
    reach = told(most) if len(private) == 1 else f"from {told(least)} to {told(most)}"
    counted = ""
    if private["runs"].min() >= 2:
        more, fewer = int((private["gain_low"] > 0).sum()), int((private["gain_high"] < 0).sum())
        counted = f" {_split(more, fewer, len(private))}"
    yield f"Compared with {scene.baseline[0]}, {scene.gained} per 1,000 people: {reach}.{counted}"


def _split(more: int, fewer: int, total: int) -> str:
    """How many of all settings lie above, below or around what they are compared with, by their intervals."""
    settings = f"{total} private settings (policy and budget)"
    if total in (more, fewer):
        return f"All {settings} bring {'more' if more else 'fewer'}."
    counts = ((more, "bring more"), (fewer, "bring fewer"), (total - more - fewer, "cannot be told from it"))
    return f"Of the {settings}, {_listed([f'{count} {what}' for count, what in counts if count])}."


def _price(scene: Scene, private: pd.DataFrame, looks_of: Mapping[str, Look]) -> Iterator[str]:
    """What privacy costs at the strictest budget of every notion, for the policy of lowest regret there."""
    if scene.means is None:
        return
    for place, rows in _ends(private):
        row = rows.loc[rows["regret"].idxmin()]
        without = scene.open_row(row)
        if place == _LOOSEST or without is None or row["runs"] < 2:
            continue
        cost = scene.paired("helped", without, row)
        size = f"{per_thousand(cost.mean)} {scene.gained} per 1,000 people{interval(cost, per_thousand)}"
        who = _setting_of(row, looks_of)
        if cost.low > 0:
            yield f"The price of privacy for {who}: {size} fewer than the same policy without privacy."
        else:
            yield f"For {who}, the runs show no price of privacy: {size} against the same policy without privacy."


def _setting_of(row: pd.Series, looks_of: Mapping[str, Look]) -> str:
    return f"{looks_of[row['policy']].label} at {row['budget']}"


def _spending(private: pd.DataFrame) -> Iterator[str]:
    limited = private[private["limit"].notna()]
    runs, over = int(limited["runs"].sum()), int(limited["over"].sum())
    if over:
        yield f"{over:,} of {runs:,} private runs spent more than their budget. Their guarantee does not hold."
    elif runs:
        yield f"No private run spent more than its budget ({runs:,} checked)."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
