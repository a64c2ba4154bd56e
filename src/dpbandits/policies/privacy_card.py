"""The privacy card: one page on a policy for the people responsible for privacy.

The page quotes the policy's own objects.  Promises come from its guarantee, numbers from its
channel, statistic and ledger, and errata from its ``Card``.  All of these are public, so a card may
be shown to anyone where the guarantee holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Protocol

from ..html import Html, Section, page, tag
from ..privacy.budgets import ApproxDP, Budget
from ..privacy.channels import CERTIFIED, GAUSSIAN, OPEN
from ..privacy.continual import Independent
from ..privacy.guarantees import Guarantee
from ..privacy.ledger import Ledger
from ..validation import upward
from .card_numbers import CURRENCIES, constants_of, ledger_of, releases_in, unit_of
from .defaults import DEFAULTS
from .parts import Part
from .sums import at_the_end

Policy = Any  # whose module imports this one

DELTA = 1e-6  # at which notions without a delta are translated
NOT_AUDITED = "not audited (no attack was run)"
_SHOWN = {  # of ``Policy.sees``
    "contexts": "The contexts, which are public, and all that choices reveal about them",
    "advice": "The advice, which is public, and all that choices reveal about it",
}
_EPISODE = "episode (rounds whose answers are released together)"
_NEEDED = {"local": "reports=True", "shuffle": "messages=True"}  # else the operator is trusted


class Audited(Protocol):
    """The result of an audit."""

    @property
    def sentence(self) -> str: ...


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyCard:
    """A privacy card, from ``Policy.card_page``: a page as text, HTML or Markdown.

    Attributes:
        policy: the call that makes it: class, arguments and budget.
        title: a description in one line.
        claimed: the budget that was asked for.
        holds: the one that really holds; None where nothing does.
        derived: the largest privacy loss of any person by now, from the ledger; None for nothing.
        measured: the result of an attack, in a sentence.
        sections: all that the page says.
    """

    policy: str
    title: str
    claimed: Budget | None
    holds: Budget | None
    derived: Budget | None
    measured: str
    sections: tuple[Section, ...]

    def to_dict(self) -> dict[str, Any]:
        """The card as data: attributes by name, with dictionaries of budgets and sections."""
        budgets = {name: getattr(self, name) for name in ("claimed", "holds", "derived")}
        return {
            **vars(self),
            **{name: budget and budget.to_dict() for name, budget in budgets.items()},
            "sections": [section.to_dict() for section in self.sections],
        }

    @classmethod
    def of(cls, policy: Policy, audit: Audited | None = None) -> PrivacyCard:
        """The card of a policy as it stands; ``audit`` has a ``sentence``."""
        measured = NOT_AUDITED if audit is None else str(audit.sentence)
        promise, ledger = policy.guarantee, policy.ledger
        heads = ["claimed", "privacy loss so far, by the ledger", "measured by attack"]
        row = [_claimed(promise), _spent_in(promise, ledger), measured]
        sections = (
            Section("Three numbers", list(_words(policy)), heads, [row]),
            Section("Promise", rows=list(_promised(policy))),
            Section("Assumptions", points=promise.assumptions),
            Section("Enforcement", rows=list(_enforced(policy))),
            Section("Not protected", points=list(_unprotected(policy))),
            Section("Conclusions", points=[at_the_end(policy)]),
            Section("Constants", rows=list(constants_of(policy))),
            Section("Ledger", *ledger_of(policy)),
            *_of_holdout(policy),
            Section("Source", rows=_sources(policy)),
            Section("Known errata of the publication", points=list(_errata(policy))),
        )
        return cls(
            policy=policy.heading,
            title=policy.card.title,
            claimed=promise.asked,
            holds=promise.holds,
            derived=policy.spent,
            measured=measured,
            sections=tuple(one for one in sections if one.points or one.rows),
        )

    def __repr__(self) -> str:
        return f"<PrivacyCard of {self.policy}: claimed {self.claimed}, measured: {self.measured}>"

    def _repr_html_(self) -> Html:
        parts = (one.glance() for one in self.sections)
        return tag("div", tag("b", f"Privacy card: {self.policy}"), *parts)

    def html(self) -> str:
        """A page of its own, which needs nothing else, and prints."""
        heading = tag("h1", "Privacy card")
        return page(f"Privacy card of {self.policy}", heading, self.body())

    def body(self) -> Html:
        """What the page has below its heading, for pages with a style of their own."""
        heading = tag("p", f"{self.title}: ", tag("code", self.policy))
        return Html("".join([heading, *(one.html() for one in self.sections)]))

    def markdown(self, errata: str | None = None) -> str:
        """The page as Markdown.  ``errata`` is where a site has its page of errata, for links."""
        name = self.policy.partition("(")[0]
        lines = [f"# {name}", f"This privacy card describes `{self.policy}`: {self.title}."]
        lines += [one.markdown() for one in self.sections]
        found = "\n\n".join(lines) + "\n"
        if errata is None:
            return found
        return re.sub(r"docs/errata\.md#([\w-]+)", rf"[errata]({errata}#\1)", found)


def spent(promise: Guarantee, total: Budget | None) -> str:
    """The largest privacy loss of any person, in words."""
    if promise.holds is None:
        return "not computed, because no budget holds"
    return f"{total or 'nothing yet'} of at most {promise.holds.shown()}"


def as_approx(policy: Policy) -> ApproxDP | None:
    """The guarantee as (epsilon, delta)-DP, with the exact curve of Gaussian noise.  Secure noise
    keeps it, too (``privacy.discrete``), except that of earlier versions.  None where nothing
    holds, or the budget has an epsilon of DP itself.

    >>> from dpbandits import ZCDP
    >>> from dpbandits.papers.concentrated import AdaCUCB
    >>> round(as_approx(AdaCUCB(2, budget=ZCDP(0.02))).epsilon, 4)
    0.8341
    """
    holds = policy.effective_budget
    if holds is None or holds.is_epsilon:
        return None
    exact = policy.channel.family == GAUSSIAN and not policy.session.older_noise
    return holds.to_approx(DELTA, gaussian=exact)


# What the sections say ------------------------------------------------------------------------


def _words(policy: Policy) -> Iterator[str]:
    """The terms of a card, for readers who meet them here first."""
    yield (
        "A policy chooses one of several options, called arms, in each round. A reward, or"
        " answer, is a number that says how well the chosen arm did. A record is the data of one"
        " round."
    )
    if policy.card.hides_contexts or policy.sees == "contexts":
        yield (
            "Contexts, or features, are numbers that are known before a choice, about the person or"
            " the arms."
        )
    noisy = "" if policy.budget is None else "noisy "
    yield (
        f"A release is a {noisy}value, computed from records, that the policy learns from. The"
        " ledger lists all releases, and the privacy loss that they cause."
    )


def _claimed(promise: Guarantee) -> str:
    if promise.asked is None:
        return "nothing: there is no budget"
    if promise.holds is None:
        return f"{promise.asked} was asked for, but no guarantee holds"
    really = "" if promise.holds == promise.asked else f", but {promise.holds.shown()} holds"
    nobody = ". But the noise is simulated, and protects nobody" if promise.simulated else ""
    return f"{promise.asked}{really}{nobody}"


def _spent_in(promise: Guarantee, ledger: Ledger) -> str:
    who = unit_of(promise)
    holds = promise.holds
    limit = "" if holds is None else f". The limit for each {who} is {holds.shown()}"
    if not ledger.releases:
        return f"nothing yet, because no release was made{limit}"
    if holds is None:
        return f"{spent(promise, None)}. So far the policy has made {releases_in(ledger)}"
    total = ledger.spent()
    cost = "nothing" if total is None else total.shown()
    made = f"{releases_in(ledger)} so far"
    return f"{made}. The {who} that lost most privacy has lost {cost}{limit}"


def _promised(policy: Policy) -> Iterator[list[str]]:
    promise = policy.guarantee
    yield ["in a sentence", promise.promise(promise.holds.shown() if promise.holds else "")]
    yield ["who is trusted", promise.trust]
    if promise.holds is None:
        return
    differ = f"data sets that differ in the {promise.protects} of one {promise.unit}"
    yield ["neighbours", differ]
    adversary = f"{promise.view} privacy, from {promise.observers}"
    trust = f"{promise.trust_model} trust{_unmet(policy)}"
    yield ["privacy notion", f"{promise.holds.shown()} under {trust}: {adversary}"]
    found = as_approx(policy)
    if found is not None:
        pair = f"({upward(found.epsilon):.6g}, {found.delta:g})-DP"
        exact = policy.channel.family == GAUSSIAN and not policy.session.older_noise
        implied = "the promise and the Gaussian noise imply" if exact else "the promise implies"
        call = "to_approx(delta, gaussian=True)" if exact else "to_approx(delta)"
        other = f"In Python, policy.guarantee.holds.{call} does this for another delta"
        yield ["as (epsilon, delta)", f"{pair}: {implied} it. {other}"]
    yield ["in other words", promise.means]


def _of_holdout(policy: Policy) -> Iterator[Section]:
    """Held-out people, of whom each is in no line of the other ledger."""
    if (held := policy.holdout) is None:
        return
    notes, heads, rows = ledger_of(held)
    loss = f"Privacy loss so far, by the ledger: {_spent_in(policy.guarantee, held.ledger)}"
    apart = "No person is in releases of both bandit and holdout, so their losses do not add up"
    yield Section("Holdout", [f"{held}.", f"{loss}.", f"{apart}.", *notes], heads, rows)


def _enforced(policy: Policy) -> Iterator[list[str]]:
    settings, private = policy.settings, policy.budget is not None
    lo, hi = settings.reward_range
    where, before = "", "they are added up"
    if policy.channel.family != OPEN and policy.card.trust_model == "local":
        before = "noise is added"
    if policy.takes_reports:
        where, before = " on people's devices", "these add noise and send the result"
    clipped = f"clipped to [{lo:g}, {hi:g}]{where}, before {before}"
    yield ["rewards", clipped if settings.clip else "not clipped, hence no guarantee holds"]
    if settings.clip and "context_bound" in policy.config:
        bound = policy.config["context_bound"]
        yield ["features", f"scaled{where} to a length of at most {bound:g}"]
    yield ["when releases are made", schedule(policy)]
    if not private:  # releases are the true sums
        return
    yield ["decisions", "the code that chooses arms receives no reward without noise"]
    if policy.guarantee.holds is not None:
        yield [
            "the budget",
            f"a release is refused if it would cost any {unit_of(policy.guarantee)} more than the"
            " budget; the policy then goes on with earlier releases",
        ]
    yield ["noise", _noise(policy)]
    place = policy.kept_in
    kept = (
        "the effect of each call is on disk before the call returns, so a crash loses no release,"
        " decision or answer"
    )
    yield [
        "crashes",
        f"after the first save, {kept}. A crash before the first save loses policy and ledger"
        if place is None
        else f"in {PurePath(str(place)).name} {kept}",  # without its folder
    ]
    yield [
        "copies",
        "the code refuses to copy a policy (or to pickle it, in Python), and to continue from an"
        " older or second copy of a saved policy. It also refuses to make releases in a copy of the"
        " running process (a fork)",
    ]
    if settings.max_rounds is not None:
        most = f"{settings.max_rounds:,} recorded rounds"
        yield ["returning users", f"a user has at most {most}, no two in one release"]
    yield ["arms that are not offered", _closed(policy)]


def _closed(policy: Policy) -> str:
    if not policy.takes_masks:
        return "the policy always chooses among all arms; the code refuses to close one"
    if policy.card.hides_contexts and policy.takes_reports:
        return (
            "the party that runs the policy may close an arm for everybody, but not for one person."
            " Everyone may see which arms are open. Which arms are open must not depend on"
            " unreleased rewards"
        )
    if policy.card.hides_contexts:
        return (
            "the party that runs the policy may close arms for a person. The arms that are open to"
            " a person are part of their private contexts"
        )
    return (
        "the party that runs the policy may close arms for a person. Everyone may see which arms"
        " are open. Which arms are open must not depend on unreleased rewards"
    )


def schedule(policy: Policy) -> str:
    """When releases are made, and what becomes of late and missing answers."""
    settings, default = policy.settings, f"{policy.default_reward:g}"
    if policy.takes_reports and policy.budget is not None:
        default += ", with noise like that of any report"
    if policy._serving:
        came = "a report" if policy._serving == "reports" else "the shuffler's output for a batch"
        return (
            f"whenever the server receives {came}. An answer that is missing or not a number counts"
            f" as {default}"
        )
    within = policy.answers_within
    if within is None:
        return (
            f"when all answers of an {_EPISODE} have come. Hence the time of a release shows when"
            " the last answer came"
        )
    if policy.card.learns_at_once and not within:
        return (
            "at every answer, in order of arrival. The operator may declare an answer missing,"
            f" which then counts as {default}"
        )
    if isinstance(within, str):
        plus = f"later by at most the longer of 1 s and 1/60 of {within}"
        wait = f"{within} after the last decision of an {_EPISODE}, or {plus}"
    else:
        wait = f"{within:,} decisions" if within else "at the first decision"
        wait += f" after an {_EPISODE}"
    times = ", ".join(settings.finish_at or ())
    daily = f", and daily at {times} UTC" if times else ""
    return f"{wait}{daily}. An answer that is missing, late or not a number counts as {default}"


def _noise(policy: Policy) -> str:
    simulated = "SIMULATED: a seed makes this noise repeatable, and it protects nobody"
    if policy.takes_reports:
        drawn = "drawn on people's devices, before anything is sent"
        return drawn if policy.noise_source.secure else f"{simulated}. It is {drawn}"
    once = "Noise is never drawn again for the same release"
    if not policy.noise_source.secure:
        return f"{simulated}. {once}"
    return (
        f"secure: drawn by the randomness of the operating system, in multiples of"
        f" {policy.grid:.4g}. {once}"
    )


def _unprotected(policy: Policy) -> Iterator[str]:
    promise, settings = policy.guarantee, policy.settings
    if promise.holds is None:
        yield "Everything: no guarantee holds"
    yield from (caveat.rstrip(".") for caveat in promise.caveats)
    if promise.holds is None:
        return
    if not policy.noise_source.secure:  # of which a caveat says so
        yield "The duration of a call, which is not constant"
    yield "The fact that a person took part, and in which round"
    if settings.max_rounds is None:
        yield f"A person who returns loses more privacy: {_returning(policy)}"
    if policy.card.hides_contexts:
        yield "A person's own decision: anyone who sees it may learn something of their contexts"
    elif policy.sees:
        yield _SHOWN[policy.sees]
    if policy.card.trust_model == "central":  # a caveat says so of others
        yield f"The party that runs the policy sees the true {promise.protects}"
    if settings.answers_within is None or (
        policy.card.learns_at_once and not settings.answers_within
    ):
        yield "When an answer came, and whether one came at all: the times of releases show both"
    elif not policy.takes_reports:
        yield "Counts of late and clipped answers. They have no noise, so do not publish them"


def _returning(policy: Policy) -> str:
    """The cost of k rounds of one person, where they are protected as k people."""
    if policy.channel.family == CERTIFIED:
        return "the proof covers one round of each person, or M rounds with max_rounds=M"
    rounds, bounds = "rounds", ". The argument max_rounds limits the rounds of a person"
    if policy.takes_reports:
        rounds = "reports"
        bounds = "" if policy.card.trust_model == "shuffle" else bounds  # which it does not take
    meter = policy.ledger.meter
    currency, holds = meter.currency, meter.budget
    budget = "the budget"
    if not math.isclose(holds.of(2.0 * meter.limit, currency).value, 2.0 * holds.value):
        budget += f" (measured by {CURRENCIES[currency]})"
    if currency == "pure":
        return f"k {rounds} cost k times {budget}{bounds}"
    counter = policy.statistic.counter
    if not (counter is None or isinstance(counter, Independent)):
        return f"k {rounds} cost up to k^2 times {budget}{bounds}"
    if policy.takes_reports:
        return f"k {rounds} cost k times {budget}{bounds}"
    return (
        f"k {rounds} in k separate releases cost k times {budget}. In the same release, k"
        f" {rounds} cost up to k^2 times the budget{bounds}"
    )


def _with(trust: str) -> str:
    """The argument without which the operator sees raw data all the same."""
    needed = _NEEDED.get(trust)
    return f" (with {needed})" if needed else ""


def _unmet(policy: Policy) -> str:
    """The argument for the trust that a policy is made for, where it was not given."""
    trust, now = policy.card.trust_model, policy.guarantee.trust_model
    needed = _NEEDED.get(trust)
    return f" ({trust} trust needs {needed})" if needed and trust != now else ""


def _sources(policy: Policy) -> list[list[str]]:
    card = policy.card
    proof = [["proof", card.proof or "see the row 'algorithm'"]] if policy.effective_budget else []
    parts = [f"{name}={one!r}" for name, one in policy.config.items() if isinstance(one, Part)]
    made = (
        [["the same policy, in parts", f"{type(policy).__name__}({', '.join(parts)})"]]
        if parts
        else []
    )
    usual = [
        ["the default for", f"{one.setting}, {one.trust} trust{_with(one.trust)}. {one.why}"]
        for one in DEFAULTS
        if one.policy == policy.preset
    ]
    return [["algorithm", card.source], *proof, *made, *usual]


def _errata(policy: Policy) -> Iterator[str]:
    for erratum in policy.card.errata:
        yield " ".join(f"{point.rstrip('.')}." for point in erratum.points) + f" ({erratum.where})"
    if not policy.card.errata:
        yield "None is known."
