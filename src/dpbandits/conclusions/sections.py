"""The sections of a report, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..html import Section
from ..inference import Intervals, Verdict
from ..policies import Policy
from ..policies.card_numbers import unit_of
from ..policies.holdout import VALUE
from ..policies.privacy_card import spent
from ..policies.sums import counts_answers, no_intervals, returns
from ..protocol import never
from ..validation import upward
from .checklist import SOURCE, Item, checklist
from .found import Found

OF_LEADER = (
    "The arm that leads was picked from the results. The intervals remain valid, because the"
    " probability of an error is divided among all pairs of arms."
)
_EFFECT = (
    "Arms of held-out people were drawn at random at all times. So these differences are effects of"
    " the arms, at the times of the trial. The bandit learned nothing from these people."
)
_BIASED = (
    "Earlier results decided which arms were played. So the means of arms are biased: that of a"
    " worse arm is too low on average. Report the intervals, and no mean without its interval."
)
_UNCOUNTED = "their number is not shown, because it equals the number of answers that came"
_LOSSES = (
    "their numbers are not in this report, because they depend on answers and have no noise:"
    " policy.diagnostics has them for the operator"
)
_APPROXIMATION = (
    "The column 'without noise' has the half width that as many people with the same mean would"
    " give if releases had no noise. It is an approximation: without noise the policy would have"
    " formed other batches, and made other choices."
)


def sections_of(policy: Policy, facts: dict[str, Any]) -> Iterator[Section]:
    """The sections, in their order; ``facts`` are the attributes of a ``Conclusion``."""
    yield Section("What was tried", rows=list(_tried(policy, facts)))
    yield Section("People", rows=list(_people(policy, facts)))
    means, differences = facts["means"], facts["differences"]
    if means is None:
        none = f"There are no confidence intervals of the arms' means: {facts['reason']}."
        yield Section("Means", [f"{none} So this report shows no means and no differences."])
    else:
        points = [
            _held(policy, means, f"for all {means.among} arms together"),
            _BIASED,
            *(_price(means, differences) if means.counted else ()),
            *_unreleased(facts),
        ]
        yield means.table("arm")._replace(title="Means", points=points)
    if differences is not None:
        points = [*_compared(policy, facts), facts["effects"]]
        table = differences.table("arms", signs=True)
        yield table._replace(title="Differences", points=points)
    if facts["decided"] is not None:
        yield Section("Is it decided?", list(_said(policy, facts)))
    if facts["holdout"] is not None:
        yield _effects(policy, facts)
    if facts["values"] is not None:
        yield _values(policy, facts)
    if facts["search"]:
        yield Section("Search for the best arm", facts["search"])
    yield Section("Privacy spent", rows=list(_spent(policy, facts)))
    if facts["breaks"]:
        yield Section("What breaks the intervals", facts["breaks"])
    heads = ["item", "asks for", "here"]
    yield Section("Checklist for reports", [SOURCE], heads, facts["checklist"])


def effects_of(policy: Policy, control: int | str | None, confidence: float) -> Intervals | None:
    """Differences to the control, or to the first arm."""
    if policy.holdout is None or policy.n_arms == 1:
        return None
    return policy.holdout.intervals(confidence, control=0 if control is None else control)


def values_of(policy: Policy, confidence: float) -> Intervals | None:
    """What the holdout's targets would have earned."""
    if policy.holdout is None or not policy.holdout.targets:
        return None
    return policy.holdout.values(confidence)


def _effects(policy: Policy, facts: dict[str, Any]) -> Section:
    found: Intervals = facts["holdout"]
    held = policy.holdout
    assert held is not None
    heads, rows = found.table()
    heads = ["arms", "difference", *heads[2:]]
    against = facts["control"] or facts["arms"][0]
    declared = "" if facts["control"] else ". No control was declared, so it is the first arm"
    points = [
        f"{held}.",
        _EFFECT,
        f"The mean of {against} is subtracted from those of other arms{declared}.",
        _with_all(policy, facts),
        f"{held.decided(found.confidence, control=facts['control']).words}.",
        *found.breaks,
    ]
    return Section("Effects, from the holdout", points, heads, rows)


def _values(policy: Policy, facts: dict[str, Any]) -> Section:
    found: Intervals = facts["values"]
    heads, rows = found.table()
    heads = ["target", "value", *heads[2:-1], "people"]
    points = [VALUE, _with_all(policy, facts), *found.breaks]
    return Section("Values of targets, from the holdout", points, heads, rows)


def _with_all(policy: Policy, facts: dict[str, Any]) -> str:
    """How sure the intervals of a family are, and those of all families together."""
    confidence = facts["confidence"]
    families = ("means", "differences", "holdout", "values")
    wrong = sum(facts[name] is not None for name in families) * (1.0 - confidence)
    once = ", under the same condition" if returns(policy) else ""
    return (
        f"{_with_probability(policy, f'{100.0 * confidence:.4g} %')} All intervals of this report"
        f" hold together with at least {100.0 * max(1.0 - wrong, 0.0):.4g} % probability{once}."
    )


def _tried(policy: Policy, facts: dict[str, Any]) -> Iterator[list[str]]:
    yield ["policy", f"{facts['title']} ({policy.card.source})"]
    yield ["arms", ", ".join(facts["arms"])]
    if facts["control"] is not None:
        yield ["control", facts["control"]]
    if facts["retired"]:
        yield ["retired arms", ", ".join(facts["retired"])]
    drawn = "Arms were drawn at random" if policy.card.randomised else "No arm was drawn at random"
    by = f"earlier releases and {policy.sees}" if policy.sees else "earlier releases"
    yield ["choices", f"{by} decided them, without a fixed ratio. {drawn}"]
    promise = facts["guarantee"]
    yield ["privacy", promise.promise(promise.holds.shown() if promise.holds else "")]
    if promise.holds is not None:
        yield ["in other words", promise.means]
    yield ["who is trusted", promise.trust]


def _people(policy: Policy, facts: dict[str, Any]) -> Iterator[list[str]]:
    if policy.max_rounds is None:
        who = "one person each, unless people return"
    else:
        who = f"at most {policy.max_rounds:,} of a user"
    rounds = _UNCOUNTED if facts["rounds"] is None else f"{facts['rounds']:,} recorded"
    yield ["rounds", f"{rounds}; {who}"]
    if policy.holdout is not None:
        yield ["held-out people", f"{policy.holdout.rounds:,} recorded, beside these rounds"]
    if policy._serving == "messages":
        yield ["empty places", "a batch may have fewer people than rounds; nobody sees how many"]
    yield ["rounds of each arm", _counts(policy)]
    yield ["answers", f"releases are made {facts['answers']}"]
    yield ["late and missing answers", _LOSSES]


def _counts(policy: Policy) -> str:
    if policy.card.hides_contexts:
        return "none are shown: contexts are private, and so is who got which arm"
    if no_intervals(policy):
        return "none are shown, because no interval is"
    if counts_answers(policy):
        return "none are shown: they would tell how many answers are missing"
    return "see 'Means', which counts the rounds in released sums"


def _held(policy: Policy, found: Found, together: str) -> str:
    level = f"{100.0 * found.intervals.confidence:.4g} %"
    return (
        f"{_with_probability(policy, level)} They hold at all releases together, and {together},"
        " even if results decided when the trial ended."
    )


def _with_probability(policy: Policy, level: str) -> str:
    never_wrong = f"ith a probability of at least {level}, none of these intervals is ever wrong."
    if not returns(policy):
        return f"W{never_wrong}"
    return (
        f"If each user comes only once, then w{never_wrong} A user may have up to"
        f" {policy.max_rounds:,} rounds. If users return, the intervals are too narrow, and the"
        " probability is lower."
    )


def _unreleased(facts: dict[str, Any]) -> Iterator[str]:
    """How many recorded rounds 'Means' lacks."""
    if facts["rounds"] is None:
        return
    waiting = facts["rounds"] - int(facts["means"].intervals.rounds.sum())
    if waiting > 0:
        yield (
            f"{waiting:,} of the {facts['rounds']:,} recorded rounds are not in these means. They"
            " wait for a release, or their batch was left out."
        )


def _price(means: Found, differences: Found | None) -> Iterator[str]:
    """By how much noise makes intervals wider."""
    yield _APPROXIMATION
    found = [one for one in (means, differences) if one is not None]
    own = np.concatenate([one.half_widths for one in found])
    plain = np.concatenate([one.without_noise for one in found])
    more = 100.0 * (own[plain > 0.0] / plain[plain > 0.0] - 1.0)
    more = more[~np.isnan(more)]
    if more.size and more.max() >= 0.5:
        yield f"Noise makes intervals wider by {max(more.min(), 0.0):.0f} to {more.max():.0f} %."


def _compared(policy: Policy, facts: dict[str, Any]) -> Iterator[str]:
    found: Found = facts["differences"]
    if facts["control"] is not None:
        yield f"The control is {facts['control']}. Its mean is subtracted from those of other arms."
        together = f"all {found.among} differences" if found.among > 1 else "the difference"
        yield _held(policy, found, f"for {together} to the control")
    else:
        yield (
            f"No control was declared. So {facts['leader']}, {_leads(policy)}, is compared with"
            f" each other arm. {OF_LEADER}"
        )
        together = f"all {found.among} pairs" if found.among > 1 else "the pair"
        yield _held(policy, found, f"for {together} of arms")
    both = 100.0 * max(2.0 * found.intervals.confidence - 1.0, 0.0)
    once = ", under the same condition" if returns(policy) else ""
    yield (
        "The intervals of means and of differences hold together with at least"
        f" {both:.4g} % probability{once}."
    )


def answer_of(found: Verdict) -> dict[str, Any]:
    """What the report says of the verdict as data: without counts, which it may have to hide."""
    told = found.to_dict()
    return {name: told[name] for name in ("decided", "words", "arm", "name", "least_gap")}


def _said(policy: Policy, facts: dict[str, Any]) -> Iterator[str]:
    found: Verdict = facts["decided"]
    yield f"{found.words}."
    if not found.decided and not math.isnan(found.least_gap):
        yield f"For differences of more than {upward(found.least_gap, 3):g} it is decided."
    if found.control is None and policy.n_arms > 2:
        yield (
            "The answer asks for less than the intervals of all differences do. So the answer may"
            " be sure where one of these intervals contains 0. It shares its error among"
            f" {policy.n_arms} bounds, and adds up to {100.0 * (1.0 - found.confidence):.4g} % to"
            " the error of this report."
        )


def _leads(policy: Policy) -> str:
    if policy.session.choices.found() is not None:
        return "which the search recommends"
    alive = policy.estimates.alive
    if alive is None or alive.all():
        return "which leads"
    if policy.retired and alive.sum() + len(policy.retired) == alive.size:
        return "which leads of the arms that were not retired"
    return "which leads of the arms that are still played"


def failure_probability_of(policy: Policy) -> float | None:
    """The probability of an error that a search was asked for."""
    if policy.kernels.stop is never:
        return None
    return policy.config.get("failure_probability")


def search_of(policy: Policy, found: str | None) -> Iterator[str]:
    """Sentences on a search for the best arm; none for other policies."""
    if policy.kernels.stop is never:
        return
    if found is None:
        yield "The search has not ended, so it recommends no arm yet."
    else:
        yield f"The search has ended, and recommends {found}."
    failure = failure_probability_of(policy)
    if failure is None:
        yield "The search had a fixed number of rounds, and promises no bound on its error."
    else:
        yield (
            "The probability that the search recommends an arm that is not best is at most"
            f" {failure:g}, if means stay the same ({policy.card.source})."
        )


def _spent(policy: Policy, facts: dict[str, Any]) -> Iterator[list[str]]:
    releases = facts["releases"]
    yield ["releases", _UNCOUNTED if releases is None else f"{releases:,}"]
    most = f"largest loss of a {unit_of(policy.guarantee)}"
    yield [most, spent(policy.guarantee, policy.spent)]
    if facts["warning"]:
        yield ["warning", facts["warning"]]
    yield ["this report", "costs nothing more: it reads released values and public facts alone"]


def checklist_of(policy: Policy, has_intervals: bool, ended: bool) -> list[Item]:
    """The checklist of ACE, with what the report says to each item."""
    return checklist(
        drawn=policy.card.randomised,
        releases=None if counts_answers(policy) else policy.ledger.releases,
        counts=_counts(policy),
        losses="add by hand; do not publish policy.diagnostics, which the guarantee does not cover",
        end="see 'Search for the best arm'" if ended else "add by hand",
        has_intervals=has_intervals,
    )
