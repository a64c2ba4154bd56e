"""The numbers on a privacy card: constants of the noise, and the ledger."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..privacy.channels import CERTIFIED, GAUSSIAN, HEMISPHERE, OPEN
from ..privacy.continual import Independent
from ..privacy.guarantees import Guarantee
from ..privacy.ledger import Ledger
from ..validation import downward, upward

Policy = Any  # whose module imports this one

CURRENCIES = {  # of ledgers, in words
    "pure": "epsilon",
    "zcdp": "rho of zCDP",
    "rdp": "Renyi divergence",
    "gdp": "mu^2 of Gaussian DP",
}
_LAWS = {  # in the column 'noise'
    "certified": (
        "'certified' means noise whose law is the algorithm's own. No single scale describes it."
    ),
    "void": "'void' means noise for which no privacy is proved.",
    "pure": "'pure' means noise that keeps pure DP for all releases of the running sum together.",
}


def constants_of(policy: Policy) -> Iterator[list[str]]:
    """Rows with a name and a number in words."""
    channel, statistic, settings = policy.channel, policy.statistic, policy.settings
    lo, hi = settings.reward_range
    yield ["reward range", f"[{lo:g}, {hi:g}]"]
    void = policy.budget is not None and policy.effective_budget is None
    if policy.effective_budget is not None:
        meaning = f"the most that one record ever moves a release, in the L{channel.norm} norm"
        yield ["sensitivity", _rounded(upward, statistic.max_sensitivity, meaning)]
    yield ["numbers in a release", f"{statistic.size:,}"]
    law = {
        OPEN: "none: releases are exact",
        CERTIFIED: "the algorithm's own, which has its own proof (see 'proof')",
    }
    yield ["law of the noise", law.get(channel.family, channel.name)]
    if void:
        yield ["noise scale", "differs between releases"]
    elif channel.family != OPEN:
        kind = "standard deviation" if channel.family == GAUSSIAN else "scale"
        yield [
            "noise multiplier",
            _rounded(downward, channel.multiplier, _multiplier(policy, kind)),
        ]
    if not void and channel.family not in (OPEN, CERTIFIED, HEMISPHERE):
        yield [
            "noise scale",
            _rounded(downward, policy.noise_scale, _scaled(policy, kind)),
        ]
    ledger = policy.ledger
    yield ["releases so far", f"{ledger.releases:,}{_drawn(policy)}"]
    yield ["rounds recorded", f"{policy.rounds:,}"]
    horizon = policy.config.get("horizon") or policy.planned_rounds
    yield ["horizon", "none is needed" if horizon is None else f"at most {horizon:,} rounds"]
    if settings.max_rounds is not None:
        yield ["rounds of a user", f"at most {settings.max_rounds:,}"]


def _multiplier(policy: Policy, kind: str) -> str:
    """What the multiplier of a policy's noise is."""
    family = policy.channel.family
    if family == CERTIFIED:
        return (
            "Gaussian noise would cost as much privacy with a standard deviation of this number"
            " times the sensitivity"
        )
    if family == HEMISPHERE:
        return "1 / epsilon, for the epsilon that the device spends on one report"
    if (factor := _factor(policy)) == 1.0:
        return f"the {kind} of the noise divided by the sensitivity"
    return (
        f"the {kind} of a noise variable, divided by the sensitivity and by the factor"
        f" {factor:.6g} of the running sum (see 'noise scale')"
    )


def _drawn(policy: Policy) -> str:
    """How many noise variables the releases have, where a policy itself draws one at a time."""
    ledger, drawn = policy.ledger, policy.ledger.draws
    if not drawn or policy.takes_reports or policy.channel.family in (CERTIFIED, HEMISPHERE):
        return ""
    several = drawn > ledger.releases * policy.statistic.size
    why = " (a running sum may need several for each number)" if several else ""
    return f", for which {drawn:,} noise variables were drawn{why}"


def _rounded(rounding: Callable[[float], float], number: float, meaning: str) -> str:
    """A number in six digits, and which way it was rounded: quotients of such are no others."""
    outward, meant = rounding(number), f": {meaning}" if meaning else ""
    if math.isclose(outward, number, rel_tol=1e-12):
        return f"{outward:.6g}{meant}"
    return f"{outward:.6g} (rounded {'up' if rounding is upward else 'down'}){meant}"


def _factor(policy: Policy) -> float:
    """By how much the noise of a running sum is larger than sensitivity times multiplier."""
    counter = policy.statistic.counter
    return 1.0 if counter is None else float(counter.column_norm(policy.channel.norm))


def _scaled(policy: Policy, kind: str) -> str:
    """What has noise of the scale of a policy, and how that scale comes about."""
    factor = _factor(policy)
    if factor == 1.0:
        return f"the {kind} of the noise on a number in a release"
    return (
        f"the {kind} of each independent noise variable in the running sum. It is the sensitivity"
        f" times the multiplier times {factor:.6g}. This last factor is needed because a record"
        " stays in all later releases of the running sum"
    )


def ledger_of(policy: Policy) -> tuple[list[str], Sequence[str], Sequence[Sequence[str]]]:
    """Sentences on the ledger, and the heads and the last rows of its table."""
    ledger = policy.ledger
    heads, rows = ledger.table()
    if not rows:
        return ["Nothing has been released yet."], (), ()
    shown = f"The table shows the last {len(rows)} of {len(ledger):,} lines"
    last = "" if len(rows) == len(ledger) else f"{shown}. A line may stand for several releases. "
    made = f"The policy has made {releases_in(ledger)}"
    factor = _factor(policy)
    if ledger.meter is None:
        notes = [f"{made}. {last}Costs are not computed, because no budget holds."]
        if factor != 1.0:
            notes.append("The column 'scale' omits the factor of the running sum.")
        return [*notes, *_laws(rows)], heads, rows
    meter = ledger.meter
    notes = [
        f"{made}. {last}Costs are measured by {CURRENCIES[meter.currency]}. The budget allows"
        f" {meter.limit:.6g} for each {unit_of(policy.guarantee)}.",
        _who_pays(policy),
    ]
    moved = ledger.frame["sensitivity"].min()
    if moved < policy.statistic.max_sensitivity * (1.0 - 1e-9):
        notes.append(
            "A release has less noise than stated above if a record moves it by less than the"
            " sensitivity."
        )
    if factor != 1.0 and ledger.frame["noise_scale"].notna().any():
        notes.append(f"The column 'scale' omits the factor {factor:.6g} of the running sum.")
    return [*notes, *_laws(rows)], heads, rows


def _laws(rows: Sequence[Sequence[str]]) -> list[str]:
    """What the names in the column 'noise' mean."""
    return [_LAWS[name] for name in sorted({row[3] for row in rows} & _LAWS.keys())]


def _who_pays(policy: Policy) -> str:
    """How lines of the ledger add up for the protected unit."""
    most, counter = policy.settings.max_rounds, policy.statistic.counter
    pays = (
        "A record pays for a line if the column 'rounds' covers the record's round, and the column"
        " 'part' has 'all' or the record's arm."
    )
    if most is not None:
        releases = f"{most:,} releases" if most > 1 else "1 release"
        return (
            f"The cost of a line is that of {releases} with rounds of one user. {pays} Add up what"
            " each record pays: a user pays at most the largest of these totals."
        )
    alone = counter is None or isinstance(counter, Independent)
    later = "" if alone else " This cost covers all later releases of the running sum, too."
    return f"The cost of a line is what all its releases together cost one record.{later} {pays}"


def unit_of(promise: Guarantee) -> str:
    """The unit whose cost is counted: a record stands for a person who contributes one round."""
    return "user" if promise.unit == "user" else "record"


def releases_in(ledger: Ledger) -> str:
    """How many releases a ledger has, in words."""
    return f"{ledger.releases:,} release{'s' * (ledger.releases != 1)}"


# Pieces of pages ------------------------------------------------------------------------------
