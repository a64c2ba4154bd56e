"""How policies, budgets and numbers are written, and which colour a policy has, in every figure and
table of a report.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

# Dark enough on white, and told apart with the common kinds of colour blindness (after Okabe & Ito
# 2008, and Tol); the markers carry the same distinction once more.
_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#AA4499", "#332288", "#B8860B"),
    *("#56B4E9", "#882255", "#555555", "#7A9A01", "#E7298A", "#8C564B"),
)
_MARKERS = "osD^vPX<>*hp"

# How the strings of privacy.budgets end, and how many numbers they have: in the order of the page.
_NOTIONS = {
    ("zCDP", 1): ("zCDP", "ρ"),
    ("DP", 1): ("Pure DP", "ε"),
    ("DP", 2): ("Approximate DP, δ = {}", "ε"),
    ("RDP", 2): ("Rényi DP, order {}", "ε"),
}
NO_PRIVACY = "none"
NO_GUARANTEE = "no guarantee"


class Level(NamedTuple):
    """A budget as a place on an axis."""

    rank: int
    notion: str
    value: float
    symbol: str
    text: str  # as in the frames
    shown: str  # as on the page
    fixed: float = math.nan  # delta or the order, where the notion has one

    @property
    def order(self) -> tuple[int, str, float]:
        """What levels are sorted by: from strict to loose within a notion, without privacy last."""
        return self.rank, self.notion, self.value

    @property
    def private(self) -> bool:
        return self.text != NO_PRIVACY

    @property
    def comparable(self) -> bool:
        """Whether it has a place among the budgets of its notion."""
        return self.private and not math.isnan(self.value)


def level(budget: str) -> Level:
    """Read a budget back from its string.

    >>> level("0.123456789-zCDP").shown, level("(1, 1e-06)-DP").notion
    ('0.123457-zCDP', 'Approximate DP, δ = one in a million')
    """
    if budget == NO_PRIVACY:
        return Level(len(_NOTIONS) + 1, "No privacy", math.inf, "", budget, "no privacy")
    numbers, _, ending = budget.rpartition("-")
    try:
        values = [float(part) for part in numbers.strip("()").split(",")]
        notion, symbol = _NOTIONS[ending, len(values)]
    except (ValueError, KeyError):
        return Level(len(_NOTIONS), budget, math.nan, "", budget, budget)
    rank, written = (
        list(_NOTIONS).index((ending, len(values))),
        [f"{value:.6g}" for value in values],
    )
    if len(values) == 1:
        return Level(rank, notion, values[0], symbol, budget, f"{written[0]}-{ending}")
    at = 0 if ending == "RDP" else 1  # (order, epsilon), but (epsilon, delta)
    fixed = written[at] if ending == "RDP" else chance(values[at])
    shown = f"({written[0]}, {written[1]})-{ending}"
    return Level(rank, notion.format(fixed), values[1 - at], symbol, budget, shown, values[at])


def promised(budget: str, holds: str) -> str:
    """A budget that was asked for, as on the page, and what holds in its place where that differs.

    >>> promised("1-DP", "1-DP"), promised("1-DP", "none"), promised("none", "none")
    ('1-DP', '1-DP, no guarantee', 'no privacy')
    """
    shown = level(budget).shown
    if budget in (NO_PRIVACY, holds):
        return shown
    return (
        f"{shown}, {NO_GUARANTEE}"
        if holds == NO_PRIVACY
        else f"{shown} asked for, {level(holds).shown} holds"
    )


class Look(NamedTuple):
    """How one policy is written and drawn."""

    label: str
    colour: str
    marker: str


def looks(policies: Iterable[str], marks: Mapping[str, str] | None = None) -> dict[str, Look]:
    """A look for every policy of a study: the class, and of its arguments those that tell it from
    others of its class.

    ``marks`` has what to say of a policy besides, because it promises more or less than others at
    the same budget.

    >>> policies = ["A(n_arms=4, b=1.0, c=True)", "A(n_arms=4, b=1.0, c=False)", "B(n_arms=4)"]
    >>> [look.label for look in looks(policies).values()]
    ['A (c=True)', 'A (c=False)', 'B']
    """
    parsed = {policy: _parsed(policy) for policy in policies}
    labels = {policy: _compact(policy, parsed, (marks or {}).get(policy)) for policy in parsed}
    places = {label: i for i, label in enumerate(dict.fromkeys(labels.values()))}
    return {policy: Look(label, *drawn(places[label])) for policy, label in labels.items()}


def drawn(place: int) -> tuple[str, str]:
    """Colour and marker: both new for the first dozen, then in other pairs."""
    again, i = divmod(place, len(_COLOURS))
    return _COLOURS[i], _MARKERS[(i + again) % len(_MARKERS)]


def _parsed(policy: str) -> tuple[str, dict[str, str]]:
    try:
        call = ast.parse(policy, mode="eval").body
    except (SyntaxError, ValueError):
        return policy, {}
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        return policy, {}
    arguments = {k.arg: re.sub(r"\.0$", "", ast.unparse(k.value)) for k in call.keywords if k.arg}
    for name in ("n_arms", "dimension", "arms"):  # the environment's, not the policy's
        arguments.pop(name, None)
    return call.func.id, arguments


def _compact(policy: str, parsed: dict[str, tuple[str, dict[str, str]]], mark: str | None) -> str:
    name, arguments = parsed[policy]
    family = [others for other, others in parsed.values() if other == name]
    varying = [
        key for key in arguments if any(others.get(key) != arguments[key] for others in family)
    ]
    said = [f"{key}={arguments[key]}" for key in varying] + ([mark] if mark else [])
    return f"{name} ({', '.join(said)})" if said else name


def number(value: float, digits: int = 3) -> str:
    """About ``digits`` significant digits, with thousands separators.

    >>> number(12345.6), number(0.05678), number(-3.0), number(float("nan"))
    ('12,346', '0.0568', '−3', '–')
    """
    if not math.isfinite(value):
        return "∞" if value == math.inf else "–"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    if places > 6:
        return f"{value:.{digits}g}".replace("-", "−")
    text = f"{value:,.{places}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")


def close_up(value: float) -> str:
    """As ``number``, but near 1 with three digits of the distance from 1: a ratio of 0.9962 is not
    1.

    >>> close_up(0.99621), close_up(1.000123), close_up(1.0), close_up(1.25), close_up(-0.05678)
    ('0.99621', '1.000123', '1', '1.25', '−0.0568')
    """
    distance = abs(value - 1.0)
    if not 1e-9 < distance < 0.1:
        return number(value)
    return f"{value:.{2 - math.floor(math.log10(distance))}f}".rstrip("0").rstrip(".")


def short(value: float) -> str:
    """A round number on an axis.

    >>> short(100), short(20_000), short(1e7)
    ('100', '20k', '10M')
    """
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{sign}"
    return f"{value:g}"


def per_thousand(value: float) -> str:
    """A count of people out of 1,000, to one decimal."""
    return f"{value:,.1f}".replace("-", "−")


def amount(value: float) -> str:
    """A sum of rewards, such as a regret: whole from ten on."""
    return number(value, 2) if abs(value) < 10 else f"{value:,.0f}".replace("-", "−")


def more_or_fewer(value: float) -> str:
    """A difference in people out of 1,000, with its sign."""
    return ("+" if value > 0 else "") + per_thousand(value)


def percent(share: float, places: int = 0) -> str:
    """A share in percent."""
    return f"{100 * share:.{places}f} %"


def chance(probability: float) -> str:
    """A small probability in words.

    >>> chance(1e-6), chance(0.02)
    ('one in a million', 'one in 50')
    """
    words = {1e3: "a thousand", 1e6: "a million", 1e9: "a billion"}
    whole = float(f"{1 / probability:.3g}")
    return f"one in {words.get(whole) or number(whole)}"


def seconds(elapsed: float) -> str:
    """A duration as people say it."""
    if elapsed < 90:
        return f"{number(elapsed, 2)} s"
    return f"{elapsed / 60:.1f} min" if elapsed < 5400 else f"{elapsed / 3600:.1f} h"
