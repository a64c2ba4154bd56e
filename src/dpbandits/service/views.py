"""What readers may see of an experiment: everything here is public, where the guarantee holds.

It depends on decisions, public events and released values.  With private contexts, nothing here
tells arms, their counts or propensities.
"""

from __future__ import annotations

import math
from typing import Any

from ..inference import Intervals
from ..policies import Estimates, HeldOut
from ..policies.sums import what_breaks
from ..privacy.ledger import WHOLE, Ledger
from ..validation import upward
from .experiment import Experiment
from .results import written

MOST_LINES = 10_000  # of a ledger, in one reply


def summary(one: Experiment) -> dict[str, Any]:
    """An experiment at a glance."""
    policy, own = one.policy, one.declaration
    promise = policy.guarantee
    return {
        "name": one.name,
        "title": own.title,
        "status": one.status,
        "finishes": None if one.finishes is None else written(one.finishes),
        "finished": None if one.finished is None else written(one.finished),
        "breaker_tripped": None if one.tripped is None else written(one.tripped),
        "policy": policy.preset,
        "arms": list(policy.arm_names or range(policy.n_arms)),
        "retired": [policy._arms_by_name.name(arm) or arm for arm in policy.retired],
        "takes": policy._serving or policy.sees or None,
        "dimension": policy.dimension or None,
        "private_contexts": policy.card.hides_contexts,
        "baseline": own.baseline,
        "starts": None if own.starts is None else written(own.starts),
        "ends": None if own.ends is None else written(own.ends),
        "answers_within": None if policy._serving else policy.answers_within,
        "retries_for": own.retries_for,
        "budget": None if promise.holds is None else str(promise.holds),
        "simulated": promise.simulated,
        "spent": spent(one),
        "releases": policy.ledger.releases,
        "decisions": one.decisions,
        "recorded": one.recorded,
        "stopped": policy.stopped,
        "recommendation": None if policy.card.hides_contexts else policy.recommendation,
    }


def for_admins(one: Experiment) -> dict[str, Any]:
    """The summary, and the words that the file declares otherwise."""
    return {**summary(one), "changes": [change._asdict() for change in one.changes]}


def spent(one: Experiment) -> str | None:
    """The privacy loss so far, in words."""
    if one.policy.guarantee.holds is None:
        return None
    total = one.policy.spent
    return "nothing" if total is None else str(total)


def guarantee(one: Experiment) -> dict[str, Any]:
    """The guarantee, in parts and in sentences."""
    promise = one.policy.guarantee
    return {**promise.to_dict(), "in_words": str(promise)}


def ledger(one: Experiment, first: int = 0, count: int = MOST_LINES) -> dict[str, Any]:
    """So many lines of the ledger, from one on, and how many there are in all; with a holdout its
    own beside them.
    """
    told = {"spent": spent(one), **_part(one.policy.ledger, first, count)}
    held = one.policy.holdout
    return told if held is None else {**told, "holdout": _part(held.ledger, first, count)}


def _part(found: Ledger, first: int, count: int) -> dict[str, Any]:
    rows = found.frame.iloc[first : first + count]
    return {"total": len(found), "first": first, "lines": _lines(found, rows)}


def _lines(found: Ledger, rows: Any) -> list[dict[str, Any]]:
    rounded = found.meter.shown if found.meter else upward
    return [
        {
            "first": line.first,
            "last": line.last,
            "part": None if line.part == WHOLE else line.part,
            "releases": line.repeats,
            "noise": line.family,
            "sensitivity": line.sensitivity,
            "scale": _without_nan(line.noise_scale),
            "cost": rounded(line.cost) if math.isfinite(line.cost) else None,
        }
        for line in rows.itertuples()
    ]


def estimates(one: Experiment) -> dict[str, Any]:
    """Estimates from released values, with the ends of intervals that hold at all releases
    together, at 95 %, what breaks these, and whether it is decided which arm is best.
    """
    verdicts = one.verdicts
    told = {**_estimates(one.policy.estimates), "breaks": breaks(one)}
    told["decided"] = verdicts.bandit and verdicts.bandit.to_dict()
    told["arms"] = list(one.policy.arm_names or range(one.policy.n_arms))
    if (held := one.policy.holdout) is not None:
        told["holdout"] = {"says": str(held), "people": held.rounds, **_estimates(held.estimates)}
        told["holdout"]["difference"] = effect_of(held).to_dict() if held.one_sum else None
        told["holdout"]["values"] = held.values().to_dict() if held.targets else None
        told["holdout"]["decided"] = verdicts.holdout and verdicts.holdout.to_dict()
    return told


def effect_of(held: HeldOut) -> Intervals:
    """The difference of arm 1 and arm 0 among held-out people."""
    return held.intervals(difference=(1, 0))


def _estimates(found: Estimates) -> dict[str, Any]:
    told: dict[str, Any] = {"releases": found.releases, "reason": found.reason or None}
    for name in ("means", "errors", "low", "high", "rounds", "alive", "coefficients"):
        value = getattr(found, name)
        told[name] = None if value is None else _without_nan(value.tolist())
    return told


def breaks(one: Experiment) -> list[str]:
    """What the intervals of estimates do not cover; empty without intervals."""
    return [] if one.policy.estimates.sums is None else [*what_breaks(one.policy)]


def _without_nan(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
