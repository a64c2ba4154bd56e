"""``conclude``: the report of a trial, from released values and public facts alone."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..html import NONE, Html, Section, page, plot, tag, written
from ..inference import Differences, Intervals, ReleasedSums, asked
from ..inference.intervals import known
from ..inspection import inspect
from ..policies import Policy
from ..policies.card_numbers import unit_of
from ..policies.privacy_card import schedule, spent
from ..policies.sums import CHOSEN, COUNTED, counts_answers, no_intervals, returns, what_breaks
from ..privacy.budgets import Budget
from ..privacy.guarantees import Guarantee
from ..protocol import never
from ..stores import Place
from ..validation import real
from .checklist import SOURCE, Item, checklist

_OF_LEADER = (
    "The arm that leads was picked from the results. The intervals remain valid, because the"
    " probability of an error is divided among all pairs of arms."
)
_NO_EFFECT = (
    "No difference is called an effect: arms were chosen by earlier results, and played at"
    " different times. The trial has no randomised holdout."
)
_ELSEWHERE = (
    "These differences are not called effects: arms were chosen by earlier results, and played at"
    " different times. The holdout has effects."
)
_EFFECT = (
    "Arms of held-out people were drawn at random at all times. So these differences are effects of"
    " the arms, at the times of the trial. The bandit learned nothing from these people."
)
_BIASED = (
    "Earlier results decided which arms were played. So the means of arms are biased: that of a"
    " worse arm is too low on average. Report the intervals, and no mean without its interval."
)
_WIDTHS = (
    "The policy learns each answer when it comes, so this report shows no counts. But intervals"
    " depend on the number of answers. Anyone who also sees the decisions can compute from them"
    " about how many answers of each arm are missing. No noise hides this."
)
_UNCOUNTED = "their number is not shown, because it is that of the answers that came"
_LOSSES = (
    "their numbers are not in this report, because they depend on answers and have no noise:"
    " policy.diagnostics has them for the operator"
)
_APPROXIMATION = (
    "The column 'without noise' has the half width that as many people with the same mean would"
    " give if releases had no noise. It is an approximation: without noise the policy would have"
    " formed other batches, and made other choices."
)


@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """Intervals of means or of differences, and their width without noise.

    Attributes:
        intervals: as of ``Policy.intervals``.
        without_noise: the half widths if the same releases had no noise, shape (n,).
        among: how many intervals share the error.
        counted: whether the report may count rounds; widths without noise would tell these.
    """

    intervals: Intervals
    without_noise: np.ndarray
    among: int
    counted: bool

    @property
    def half_widths(self) -> np.ndarray:
        """Of the intervals, shape (n,)."""
        return (self.intervals.high - self.intervals.low) / 2.0

    @property
    def ends(self) -> str:
        """The intervals, in words."""
        return repr(self.intervals)[1:-1].partition(": ")[2]

    def to_dict(self) -> dict[str, Any]:
        """These intervals as data, with None for nan, and for counts that are not shown."""
        told = self.intervals.to_dict()
        if not self.counted:
            rows = [
                {**row, "rounds": None, "half_width": known(own), "half_width_without_noise": None}
                for row, own in zip(told["intervals"], self.half_widths, strict=True)
            ]
            return {"among": self.among, "intervals": rows}
        widths = zip(self.half_widths, self.without_noise, strict=True)
        rows = [
            {**row, "half_width": known(own), "half_width_without_noise": known(plain)}
            for row, (own, plain) in zip(told["intervals"], widths, strict=True)
        ]
        return {"among": self.among, "intervals": rows}

    def table(self, first: str, *, signs: bool = False) -> Section:
        """A row for each arm, or for each difference, which then says where its interval is."""
        ends = self.intervals
        rows = []
        for i, label in enumerate(ends.labels):
            low, high = float(ends.low[i]), float(ends.high[i])
            between = NONE if math.isnan(low) else f"{low:.4g} to {high:.4g}"
            row = [label, written(ends.means[i]), between, written(self.half_widths[i])]
            if self.counted:
                row.append(written(self.without_noise[i]))
            if signs or self.counted:
                row.append(_sign(low, high) if signs else f"{int(ends.rounds[i]):,}")
            rows.append(row)
        what = "difference" if signs else "mean"
        between = f"{100.0 * ends.confidence:.4g} % interval"
        heads = [first, what, between, "half width"]
        heads += ["without noise"] if self.counted else []
        heads += [""] if signs else ["rounds"] if self.counted else []
        lines = list(zip(ends.low, ends.means, ends.high, strict=True))
        drawn = plot(ends.labels, lines, "; ".join(f"{row[0]}: {row[2]}" for row in rows))
        return Section("", (), heads, rows, drawn)


@dataclass(frozen=True, eq=False, repr=False)
class Conclusion:
    """The report of a trial, from ``conclude``: as text, a page, or data.

    It has released values and public facts alone.  So its text, page and data may be shown to
    anyone where the guarantee holds.  They have no counts of late or missing answers, and no counts
    of arms where contexts are private.  If the policy learns each answer when it comes, its rounds
    and releases count answers, and the report does not show them.  There the report says what the
    widths of intervals tell of missing answers.

    Attributes:
        policy: the call that makes it.
        title: the policy, in a line.
        arms: their names.
        retired: the arms that were retired.
        rounds: the number of recorded rounds; None where it is that of answers.
        releases: how many there were; None likewise.
        guarantee: the privacy guarantee.
        spent: the largest privacy loss of any person; None for nothing, or without a budget.
        warning: that the place may lack later releases; empty where it has all.
        confidence: of each of the two families of intervals.
        means: of the arms; None where no interval is proved.
        differences: to the control, or of the leader to others; None where there are none.
        control: the declared control; None without one.
        leader: the arm with the highest mean of those still played, or which a search recommends;
            None where unknown.
        search: sentences on a search for the best arm; empty where there was none.
        failure_probability: that a search was asked for; None without one.
        reason: why there are no intervals; empty where there are.
        answers: when releases were made, and what became of late and missing answers.
        effects: whether a difference may be called an effect.
        holdout: differences of held-out people; None without a holdout.
        breaks: sentences on what breaks the intervals.
        checklist: the items of ACE, and where this report has them.
        sections: all that the report says.
    """

    policy: str
    title: str
    arms: Sequence[str]
    retired: Sequence[str]
    rounds: int | None
    releases: int | None
    guarantee: Guarantee
    spent: Budget | None
    warning: str
    confidence: float
    means: Found | None
    differences: Found | None
    control: str | None
    leader: str | None
    search: Sequence[str]
    failure_probability: float | None
    reason: str
    answers: str
    effects: str
    holdout: Intervals | None
    breaks: Sequence[str]
    checklist: Sequence[Item]
    sections: Sequence[Section]

    def __repr__(self) -> str:
        shown = self.differences or self.means
        level = f"{100.0 * self.confidence:.4g} % intervals"
        found = f"no intervals: {self.reason}" if shown is None else f"{level}: {shown.ends}"
        return f"<Conclusion of {self.policy}: {found}>"

    def __str__(self) -> str:
        return self.markdown()

    def _repr_html_(self) -> Html:
        parts = (one.glance() for one in self.sections)
        return tag("div", tag("b", f"Report of {self.policy}"), *parts)

    def html(self) -> str:
        """A page of its own, which needs nothing else, and prints."""
        heading = [tag("h1", "Report of a trial"), tag("p", tag("code", self.policy))]
        return page(f"Report of {self.policy}", *heading, *(one.html() for one in self.sections))

    def markdown(self) -> str:
        """The report as Markdown."""
        heading = ["# Report of a trial", f"`{self.policy}`"]
        return "\n\n".join([*heading, *(one.markdown() for one in self.sections)]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The report as data.

        Returns:
            Attributes by name, without ``sections``.  Intervals are lists of dictionaries, with
            None for nan.
        """
        plain = {name: value for name, value in vars(self).items() if name != "sections"}
        return {
            **{k: list(v) if isinstance(v, tuple | list) else v for k, v in plain.items()},
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent and self.spent.to_dict(),
            "means": self.means and self.means.to_dict(),
            "differences": self.differences and self.differences.to_dict(),
            "holdout": self.holdout and self.holdout.to_dict(),
            "checklist": [item._asdict() for item in self.checklist],
        }


def conclude(
    of: Policy | str | os.PathLike[str] | Place,
    control: int | str | None = None,
    confidence: float = 0.95,
) -> Conclusion:
    """Report the end of a trial, or its present state, from released values alone.

    With a control, all other arms are compared with it, and the error is divided among these
    differences.  Without one, the arm that leads is compared with all others.  Then the releases
    choose the comparison, and the error is divided among all pairs of arms.

    Args:
        of: a policy, or a place that keeps one, which is only read.
        control: an arm, by number or name, that was chosen before the trial.
        confidence: the probability that none of the arms' intervals is ever wrong, and that none of
            those of the differences is.

    Returns:
        A ``Conclusion``.

    Raises:
        ArgumentError: an argument is out of range.
        StateFileError, FileNotFoundError, StoreError: as of ``inspect``.

    See also: ``Policy.intervals``, ``inspect``.

    Example:
        >>> import dpbandits as dpb
        >>> policy = dpb.bandit(["old", "new"], budget=dpb.ZCDP(0.5), seed=1)
        >>> for person in range(2000):
        ...     decision = policy.pull()
        ...     _ = policy.update(float(decision.name == "new"), decision)
        >>> dpb.conclude(policy, control="old").differences.intervals
        <95 % intervals after 20 releases: new - old: 0.1089 to 1>
    """
    if isinstance(of, Policy):
        return _concluded(of, control, confidence, "")
    seen = inspect(of)
    return _concluded(seen._policy, control, confidence, seen.facts.get("warning", ""))


def _concluded(
    policy: Policy, control: int | str | None, confidence: float, warning: str
) -> Conclusion:
    confidence = real("confidence", confidence, 0.0, 1.0, strict=True)
    with policy._lock:
        arms = policy.arm_names or [str(a) for a in range(policy.n_arms)]
        number = policy.session.arms.number
        pairs = asked(None, control, policy.n_arms, number)
        against = None if control is None else arms[number("control", control)]
        estimates, ended = policy.estimates, policy.session.choices.found()
        leader = estimates.leader if ended is None else ended.arm
        if pairs is None and leader is not None and policy.n_arms > 1:
            pairs = Differences.of_leader(leader, policy.n_arms)
        breaks, means, differences = list(what_breaks(policy)), None, None
        counted = not counts_answers(policy)
        if not counted:
            breaks[breaks.index(COUNTED)] = _WIDTHS
        if estimates.sums is not None:
            given = (estimates.sums, confidence, arms, estimates.releases, counted)
            means = _found(*given, None)
            differences = None if pairs is None else _found(*given, pairs)
            if differences and control is None:
                breaks[breaks.index(CHOSEN)] = _OF_LEADER
            for one in (means, differences):
                breaks += one.intervals.breaks if one else []
        facts: dict[str, Any] = {
            "policy": policy.heading,
            "title": policy.card.title,
            "arms": tuple(arms),
            "retired": tuple(arms[a] for a in policy.retired),
            "rounds": policy.rounds if counted else None,
            "releases": policy.ledger.releases if counted else None,
            "guarantee": policy.guarantee,
            "spent": policy.spent,
            "warning": warning,
            "confidence": confidence,
            "means": means,
            "differences": differences,
            "control": against,
            "leader": None if leader is None else arms[leader],
            "search": tuple(_search(policy, ended and arms[ended.arm])),
            "failure_probability": _failure(policy),
            "reason": no_intervals(policy),
            "answers": schedule(policy),
            "effects": _NO_EFFECT if policy.holdout is None else _ELSEWHERE,
            "holdout": _of_holdout(policy, control, confidence),
            "breaks": tuple(breaks) if means else (),
            "checklist": tuple(_items(policy, bool(means), bool(ended))),
        }
        return Conclusion(**facts, sections=tuple(_sections(policy, facts)))


def _found(
    sums: ReleasedSums,
    confidence: float,
    arms: Sequence[str],
    releases: int,
    counted: bool,
    pairs: Differences | None,
) -> Found:
    told: dict[str, Any] = {"method": "mixture", "labels": arms, "releases": releases, "breaks": ()}
    own = Intervals.of(sums, confidence, pairs, **told)
    plain = Intervals.of(sums.without_noise(), confidence, pairs, **told)
    among = len(arms) if pairs is None else pairs.among
    return Found(own, (plain.high - plain.low) / 2.0, among, counted)


# What the sections say ------------------------------------------------------------------------


def _sections(policy: Policy, facts: dict[str, Any]) -> Iterator[Section]:
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
    if facts["holdout"] is not None:
        yield _effects(policy, facts)
    if facts["search"]:
        yield Section("Search for the best arm", facts["search"])
    yield Section("Privacy spent", rows=list(_spent(policy, facts)))
    if facts["breaks"]:
        yield Section("What breaks the intervals", facts["breaks"])
    heads = ["item", "asks for", "here"]
    yield Section("Checklist for reports", [SOURCE], heads, facts["checklist"])


def _of_holdout(policy: Policy, control: int | str | None, confidence: float) -> Intervals | None:
    """Differences to the control, or to the first arm."""
    if policy.holdout is None or policy.n_arms == 1:
        return None
    return policy.holdout.intervals(confidence, control=0 if control is None else control)


def _effects(policy: Policy, facts: dict[str, Any]) -> Section:
    found: Intervals = facts["holdout"]
    heads, rows = found.table()
    heads = ["arms", "difference", *heads[2:]]
    against = facts["control"] or facts["arms"][0]
    declared = "" if facts["control"] else ". No control was declared, so it is the first arm"
    level = f"{100.0 * found.confidence:.4g} %"
    families = 1 + sum(facts[name] is not None for name in ("means", "differences"))
    every = f"{100.0 * max(1.0 - families * (1.0 - found.confidence), 0.0):.4g} %"
    once = ", under the same condition" if returns(policy) else ""
    points = [
        f"{policy.holdout}.",
        _EFFECT,
        f"The mean of {against} is subtracted from those of other arms{declared}.",
        f"{_with_probability(policy, level)} All intervals of this report hold together with at"
        f" least {every} probability{once}.",
        *found.breaks,
    ]
    return Section("Effects, from the holdout", points, heads, rows)


def _tried(policy: Policy, facts: dict[str, Any]) -> Iterator[list[str]]:
    yield ["policy", f"{facts['title']} ({policy.card.source})"]
    yield ["arms", ", ".join(facts["arms"])]
    if facts["control"] is not None:
        yield ["control", facts["control"]]
    if facts["retired"]:
        yield ["retired arms", ", ".join(facts["retired"])]
    drawn = "They were drawn at random" if policy.card.randomised else "None was drawn at random"
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
            f" each other arm. {_OF_LEADER}"
        )
        together = f"all {found.among} pairs" if found.among > 1 else "the pair"
        yield _held(policy, found, f"for {together} of arms")
    both = 100.0 * max(2.0 * found.intervals.confidence - 1.0, 0.0)
    once = ", under the same condition" if returns(policy) else ""
    yield (
        "The intervals of means and of differences hold together with at least"
        f" {both:.4g} % probability{once}."
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


def _failure(policy: Policy) -> float | None:
    """The probability of an error that a search was asked for."""
    if policy.kernels.stop is never:
        return None
    return policy.config.get("failure_probability")


def _search(policy: Policy, found: str | None) -> Iterator[str]:
    if policy.kernels.stop is never:
        return
    if found is None:
        yield "The search has not ended, so it recommends no arm yet."
    else:
        yield f"The search has ended, and recommends {found}."
    failure = _failure(policy)
    if failure is None:
        yield "The search had a fixed number of rounds, and promises no bound on its error."
    else:
        yield (
            "The probability that it recommends an arm that is not best is at most"
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


def _items(policy: Policy, has_intervals: bool, ended: bool) -> list[Item]:
    return checklist(
        drawn=policy.card.randomised,
        releases=None if counts_answers(policy) else policy.ledger.releases,
        counts=_counts(policy),
        losses="add by hand; do not publish policy.diagnostics, which the guarantee does not cover",
        end="see 'Search for the best arm'" if ended else "add by hand",
        has_intervals=has_intervals,
    )


def _sign(low: float, high: float) -> str:
    if math.isnan(low):
        return ""
    return "above 0" if low > 0.0 else "below 0" if high < 0.0 else "contains 0"
