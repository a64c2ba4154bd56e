"""The main findings of a study in sentences that stand on its numbers, with their uncertainty, and
say no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import pandas as pd

from ..privacy.budgets import RDP, ZCDP
from .labels import Level, Look, amount, chance, more_or_fewer, number, per_thousand
from .scenes import Estimate, Scene

_DELTA = 1e-6  # at which notions without a delta are translated
_REVEALED = 99.0  # percent: a budget under which a suspicion can rise to this is no headline
_STRICTEST, _LOOSEST = (
    ", the strictest budget",
    f", the loosest of those under which a suspicion of 50 % stays below {_REVEALED:.0f} %",
)


def in_people(scene: Scene, looks_of: Mapping[str, Look]) -> list[str]:
    """What a reader with one minute should know about one environment."""
    private = _private(scene)
    return [*_setting(scene), *_helped(scene, private, looks_of), *_spending(private)]


def in_regret(scene: Scene, looks_of: Mapping[str, Look]) -> list[str]:
    """The same for a reader who knows bandits: who had the lowest regret at the ends of every
    notion of privacy.
    """
    return [_lowest(scene, place, rows, looks_of) for place, rows in _ends(_private(scene))]


def on_clipping(scene: Scene, looks_of: Mapping[str, Look]) -> list[str]:
    """Which policies did not see all rewards as they are."""
    played = scene.runs["policy"].drop_duplicates()
    found: dict[str, list[str]] = {}
    for policy in played[played.isin(scene.clipped)]:
        found.setdefault(scene.clipped[policy], []).append(looks_of[policy].label)
    return [
        f"{what[:1].upper()}{what[1:]}. This biases what"
        f" {'all policies' if len(names) == len(played) else listed(names)} learnt."
        for what, names in found.items()
    ]


def _private(scene: Scene) -> pd.DataFrame:
    """The settings whose guarantee holds: one that is void, as without clipping, has no limit
    either.
    """
    return scene.table[
        scene.table["limit"].notna() & scene.table["level"].map(lambda kind: kind.private)
    ]


def interval(value: Estimate, show: Callable[[float], str] = number) -> str:
    """The interval alone, in brackets; empty where one run gives none."""
    return (
        "" if math.isnan(value.low) else f" (95 % interval {show(value.low)} to {show(value.high)})"
    )


def of_row(row: pd.Series, name: str) -> Estimate:
    """A mean of the table with its interval."""
    return Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"])


def meaning(kind: Level) -> str:
    """A budget in words."""
    if not kind.private:
        return "The policy learns from the true rewards; its decisions may reveal them."
    if math.isnan(kind.value):
        return "A notion of which this page has no description."
    if kind.notion == "Pure DP":
        return _odds(kind.value)
    epsilon, delta = _approximate(kind)
    translated = (
        ""
        if kind.notion.startswith("Approximate")
        else f"Implies ε = {number(_up(epsilon))} with δ = {chance(delta)}. "
    )
    return (
        f"{translated}Up to failures of a probability of about {chance(delta)}:"
        f" {_odds(epsilon)[0].lower()}{_odds(epsilon)[1:]}"
    )


def belief(kind: Level) -> float:
    """To how many percent a suspicion of 50 % about one person can rise at most; NaN for a notion
    without description.
    """
    if not kind.comparable:
        return math.nan
    factor = math.exp(min(_approximate(kind)[0], 700.0))
    return _up(100 * factor / (1 + factor))


def _approximate(kind: Level) -> tuple[float, float]:
    """Epsilon and delta that a budget implies."""
    if kind.notion == "Pure DP":
        return kind.value, 0.0
    if kind.notion.startswith("Approximate"):
        return kind.value, kind.fixed
    budget = ZCDP(kind.value) if kind.notion == "zCDP" else RDP(kind.fixed, kind.value)
    return budget.to_approx(_DELTA).epsilon, _DELTA


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


def _setting(scene: Scene) -> Iterator[str]:
    if scene.baseline is None or scene.means is None or scene.best is None:
        return
    name, baseline = scene.baseline
    best = 1000 * float(scene.means[scene.best])
    yield (
        f"The best arm, {scene.arms[scene.best]}, brings {per_thousand(best)} {scene.gained} per"
        f" 1,000 people on average; {name} would bring {per_thousand(baseline)}."
    )


def _ends(private: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The strictest budget of every notion, and the loosest that still protects."""
    notions = dict.fromkeys(
        kind.notion for kind in sorted(private["level"], key=lambda kind: kind.order)
    )
    for notion in notions:
        rows = private[[kind.notion == notion for kind in private["level"]]]
        values = sorted(
            {kind.value for kind in rows["level"] if belief(kind) < _REVEALED}
            or {kind.value for kind in rows["level"]}
        )
        ends = (
            [("", values[0])]
            if len(values) == 1
            else [(_STRICTEST, values[0]), (_LOOSEST, values[-1])]
        )
        for place, value in ends:
            chosen = rows[[kind.value == value for kind in rows["level"]]]
            if len(chosen):
                yield place, chosen


def _lowest(scene: Scene, place: str, rows: pd.DataFrame, looks_of: Mapping[str, Look]) -> str:
    """Which policy had the lowest mean regret at one budget, and from which others the runs do not
    separate it.
    """
    ranked = rows.sort_values("regret", kind="stable")
    best = ranked.iloc[0]
    regret = f"{amount(best['regret'])}{interval(of_row(best, 'regret'), amount)}"
    label, at = looks_of[best["policy"]].label, f"At {best['level'].shown}{place}, "
    if len(ranked) == 1:
        return f"{at}{label} had a mean regret of {regret} after {scene.horizon:,} rounds."
    sentence = f"{at}{label} had the lowest mean regret of {len(ranked)} policies: {regret}. "
    if best["runs"] < 2:
        return sentence + "One run does not tell them apart."
    gaps = [
        (looks_of[row["policy"]].label, scene.paired("regret", row, best))
        for _, row in ranked.iloc[1:].iterrows()
    ]
    close = [name for name, gap in gaps if not gap.low > 0]
    if close:
        return sentence + f"The runs do not separate it from {listed(close)}."
    name, gap = gaps[0]
    return sentence + f"The next, {name}, lost {amount(gap.mean)} more{interval(gap, amount)}."


def _helped(scene: Scene, private: pd.DataFrame, looks_of: Mapping[str, Look]) -> Iterator[str]:
    """The best setting among those whose budget still protects, what its privacy cost, and how all
    settings compare.
    """
    known = private[[kind.comparable for kind in private["level"]]]
    if scene.baseline is None or known.empty:
        return
    name, unit = scene.baseline[0], f"{scene.gained} per 1,000 people"
    protecting = known[[belief(kind) < _REVEALED for kind in known["level"]]]
    if protecting.empty:
        yield (
            "Under every private budget of this study, a suspicion of 50 % about one person can"
            f" rise to {_REVEALED:.0f} % or more."
        )
    else:
        best = protecting.loc[protecting["gain"].idxmax()]
        gain, rise = of_row(best, "gain"), suspicion(belief(best["level"]))
        yield (
            f"With privacy, {_name(best, looks_of)} at {best['level'].shown} would bring"
            f" {per_thousand(best['helped'])} {unit},"
            f" {more_or_fewer(gain.mean)}{interval(gain, more_or_fewer)} compared with {name}. A"
            f" suspicion of 50 % about one person's answer can then rise to {rise}. Of all private"
            f" settings that keep it below {_REVEALED:.0f} %, this is the best."
        )
        yield from _price(scene, best, unit)
    if private["runs"].min() >= 2:
        more, fewer = int((private["gain_low"] > 0).sum()), int((private["gain_high"] < 0).sum())
        yield _split(name, unit, (more, fewer, len(private)))


def _price(scene: Scene, best: pd.Series, unit: str) -> Iterator[str]:
    without = scene.open_row(best)
    if without is None or best["runs"] < 2:
        return
    cost = scene.paired("helped", without, best)
    size = f"{per_thousand(cost.mean)} {unit}{interval(cost, per_thousand)}"
    if cost.low > 0:
        yield f"The price of its privacy: {size} fewer than the same policy without privacy."
    else:
        yield (
            f"The runs show no price of its privacy: the same policy without privacy brings {size}"
            " more."
        )


def _split(name: str, unit: str, counts: tuple[int, int, int]) -> str:
    """How many of all settings lie above, below or around what they are compared with, by their
    intervals.
    """
    more, fewer, total = counts
    settings = f"{total} private settings (policy and budget)"
    if total in (more, fewer):
        return f"All {settings} bring {'more' if more else 'fewer'} {unit} than {name}."
    parts = (
        (more, "bring more"),
        (fewer, "bring fewer"),
        (total - more - fewer, "cannot be told apart from it"),
    )
    return (
        f"Compared with {name}, of the {settings}"
        f" {listed([f'{count} {what}' for count, what in parts if count])} ({unit})."
    )


def _name(row: pd.Series, looks_of: Mapping[str, Look]) -> str:
    """A policy without its settings: the tables and figures give them."""
    name, settings, _ = looks_of[row["policy"]].label.partition(" (")
    family = {look.label for look in looks_of.values() if look.label.partition(" (")[0] == name}
    return f"a variant of {name}" if settings and len(family) > 1 else name


def _spending(private: pd.DataFrame) -> Iterator[str]:
    limited = private[private["limit"].notna()]
    runs, over = int(limited["runs"].sum()), int(limited["over"].sum())
    if over:
        yield (
            f"{over:,} of {runs:,} private runs spent more than their budget. Their guarantee does"
            " not hold."
        )
    elif runs:
        yield f"No private run spent more than its budget ({runs:,} checked)."


def listed(names: list[str]) -> str:
    """Names as one says them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
