"""The pages: what an operator sees, section by section."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...html import Html, document, items, tag, text, void
from ...inference import Intervals, Verdict
from ...policies.holdout import VALUE
from ...policies.privacy_card import PrivacyCard, spent
from ...privacy import Ledger
from ..problems import Problem
from . import charts, forms
from .facts import Facts, Held, moment

_LINES, _TRAIL = 500, 5  # of the ledger, and of the trail on the first page
_COUNTS = {
    "pending": "decisions that wait for a reward",
    "dropped": "rewards that were dropped",
    "late": "of these, rewards that came too late",
    "clipped": "rewards beyond their range",
    "missing": "rewards that were not a number",
    "scaled": "features that were scaled to their bound",
    "blanked": "private contexts that counted as 0",
}


@dataclass(frozen=True)
class Absent:
    """An experiment that this process does not serve: it starts, has failed, or is elsewhere."""

    name: str
    status: str
    detail: str = ""


# Pages ----------------------------------------------------------------------------------------


def overview(listed: Sequence[Facts | Absent], address: str) -> Html:
    """All experiments of a tenant."""
    if not listed:
        return _page("Experiments", _how_to_begin(address))
    heads = ["Experiment", "Status", "Budget spent", "Releases", "Decisions"]
    rows = [_absent_row(one) if isinstance(one, Absent) else _row(one) for one in listed]
    note = (
        "'Budget spent' is the most that any one person's records have paid. At 100 % an experiment"
        " may go on, because it may still release other people's records."
    )
    listed_ones = _table(heads, rows, "Experiments")
    return _page("Experiments", listed_ones, tag("p", note, class_="note"))


def experiment(facts: Facts, token_of: Callable[[str], str], notice: str = "") -> Html:
    """One experiment."""
    said = [tag("p", notice, class_="notice", role="status")] if notice else []
    return _page(
        facts.title,
        *said,
        tag("p", _badge(facts), " ", facts.serves),
        *_stamp(facts),
        *_changes(facts),
        _section("At a glance", _at_a_glance(facts)),
        tag("div", _spending(facts), _traffic(facts), class_="pair"),
        _section("Guarantee", *_guarantee(facts)),
        _section("Estimates", *_estimates(facts)),
        *_decided(facts),
        _operators_section(facts),
        _section("Actions", *_actions(facts, token_of)),
        _section("Audit trail", *_last_of_trail(facts)),
        within=facts,
    )


def ledger(facts: Facts) -> Html:
    """The lines of the ledger."""
    held = facts.holdout
    said = tag("p", f"Spent: {spent(facts.guarantee, facts.spent)}.")
    if held is None:
        return _page("Ledger", said, *_lines("Ledger", facts.ledger, facts), within=facts)
    ledgers = {"Bandit": facts.ledger, "Holdout": held.ledger}
    parts = [_section(name, *_lines(name, one, facts)) for name, one in ledgers.items()]
    return _page("Ledger", said, *parts, within=facts)


def _lines(name: str, ledger: Ledger, facts: Facts) -> Iterator[Html]:
    """The last lines of a ledger."""
    if not len(ledger):
        yield tag("p", "Nothing has been released yet.")
        return
    heads, rows = ledger.table(_LINES)
    if facts.summary["private_contexts"]:
        part = heads.index("part")
        heads, rows = _without(part, heads), [_without(part, row) for row in rows]
    if len(ledger) > _LINES:
        yield tag("p", f"The last {_LINES} of {len(ledger):,} lines.")
    yield _table(heads, rows, name)


def trail(facts: Facts) -> Html:
    """The audit trail."""
    return _page("Audit trail", _trail_table(facts.trail), within=facts)


def card(facts: Facts, shown: PrivacyCard) -> Html:
    """The privacy card."""
    return _page("Privacy card", tag("article", shown.body()), within=facts)


def absent(one: Absent) -> Html:
    """An experiment that this process does not serve, and why."""
    said = one.detail or "Its code is compiled. Load this page again in a minute."
    return _page(one.name, tag("p", tag("span", one.status, class_="badge"), " ", said))


def error(problem: Problem, back: str = "") -> Html:
    """What could not be done, and why; ``back`` is the page that asked for it."""
    told = problem.to_dict()
    words = [one["detail"] for one in told.get("errors", ())]
    detail = items(words) if words else tag("p", told["detail"])
    link = [tag("p", tag("a", "Back to the experiment", href=back))] if back else []
    return _page(f"{told['status']}: {told['title']}", detail, *link)


# Sections -------------------------------------------------------------------------------------


def _how_to_begin(address: str) -> Html:
    body = '{"name": "first", "arms": ["short", "long"], "budget": {"zcdp": 0.5}}'
    lines = [
        f"curl {address}v1/experiments \\",
        '  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\',
        f"  -d '{body}'",
    ]
    return tag(
        "section",
        tag("p", "There are no experiments yet. Declare the first with a key of the role admin:"),
        tag("pre", "\n".join(lines), tabindex="0"),
        tag("p", "It starts within a minute, and is then listed here."),
    )


def _row(one: Facts) -> list[str]:
    link = tag("a", one.title, href=f"/console/{one.name}")
    name = tag("span", one.name, class_="note") if one.title != one.name else Html("")
    counts = [f"{one.summary[word]:,}" for word in ("releases", "decisions")]
    return [Html(f"{link} {name}"), _badge(one), _share(one), *counts]


def _absent_row(one: Absent) -> list[str]:
    name = tag("a", one.name, href=f"/console/{one.name}")
    return [name, tag("span", one.status, class_="badge"), one.detail, "", ""]


def _share(one: Facts) -> Html:
    """The spent share of a budget; nothing is counted where none holds."""
    meter = one.ledger.meter
    if one.guarantee.holds is None or meter is None:
        return text("not counted")
    return charts.bar(one.ledger.shown_total() / meter.limit)


def _badge(one: Facts) -> Html:
    status = one.summary["status"]
    shown = [tag("span", status, class_=f"badge {status}")]
    if one.summary["breaker_tripped"]:
        shown.append(tag("span", "breaker tripped", class_="badge tripped"))
    if one.changes:
        shown.append(tag("span", "file differs", class_="badge tripped"))
    return Html(" ".join(shown))


def _stamp(facts: Facts) -> Iterator[Html]:
    promise = facts.guarantee
    if promise.holds is None:
        words = "No guarantee holds: ", "nothing on this page may be shown to others."
    elif promise.simulated:
        words = "Simulated noise protects nobody: ", "use it in trials without real people only."
    else:
        return
    yield tag("p", tag("strong", words[0]), words[1], class_="stamp")


def _changes(facts: Facts) -> Iterator[Html]:
    if not facts.changes:
        return
    said = "The file of experiments now declares other values, which were not taken. "
    how = " To serve them, declare an experiment under a new name."
    listed = "; ".join(map(str, facts.changes))
    yield tag("p", tag("strong", said), f"{listed}.", how, class_="stamp")


def _at_a_glance(facts: Facts) -> Html:
    one = facts.summary
    breaker = facts.declaration.breaker
    told = {
        "policy": one["policy"],
        "budget": one["budget"] or "none",
        "spent": spent(facts.guarantee, facts.spent),
        "releases": f"{one['releases']:,}",
        "decisions": f"{one['decisions']:,}",
        "recorded": f"{one['recorded']:,}",
        "starts": moment(one["starts"]) or "at once",
        "ends": moment(one["ends"]) or "never",
        "baseline": "none" if one["baseline"] is None else str(one["baseline"]),
        "breaker": "none",
        "rewards within": _wait(one["answers_within"]),
    }
    if breaker is not None:
        after = f"{breaker.releases:,} release{'s' * (breaker.releases != 1)}"
        tripped = moment(one["breaker_tripped"])
        state = f"tripped {tripped}" if tripped else "has not tripped"
        told["breaker"] = f"trips below a mean of {breaker.floor:g}, from {after} on; {state}"
    if one["recommendation"] is not None and not one["private_contexts"]:
        best = one["arms"][one["recommendation"]]
        told["best arm"] = f"{best}, {'final' if one['stopped'] else 'so far'}"
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in told.items()]
    return tag("dl", *pairs, class_="facts")


def _spending(facts: Facts) -> Html:
    if facts.guarantee.holds is None:
        said = [tag("p", "Costs are not computed, because no budget holds.")]
    elif not len(facts.ledger):
        said = [tag("p", "Nothing has been released yet.")]
    else:
        who = "user" if facts.guarantee.unit == "user" else "record"
        note = (
            f"The most that any one {who} has paid. The line stays level while releases cover"
            " records of other people. "
        )
        link = tag("a", "Ledger", href=f"/console/{facts.name}/ledger")
        said = [charts.spending(facts.ledger), tag("p", note, link, class_="note")]
    return _section("Budget spent over releases", *said)


def _traffic(facts: Facts) -> Html:
    if len(facts.traffic) < 2:
        said = [tag("p", "Two minutes after the service began, its traffic is shown here.")]
    elif facts.traffic[0].decisions == facts.traffic[-1].decisions:
        said = [tag("p", "The policy has made no decision lately.")]
    else:
        note = "Decisions of the policy. Those that got the baseline are not counted."
        said = [charts.traffic(facts.traffic), tag("p", note, class_="note")]
    return _section("Traffic", *said)


def _guarantee(facts: Facts) -> Iterator[Html]:
    promise = facts.guarantee
    holds = promise.holds
    yield tag("p", promise.promise("" if holds is None else holds.shown()))
    if holds is not None:
        yield tag("p", promise.means)
    yield tag("p", f"{promise.trust}.")
    for title, sentences in (("Assumptions", promise.assumptions), ("Limits", promise.caveats)):
        if sentences:
            yield tag("h3", title)
            yield items(_sentence(one) for one in sentences)
    link = tag("a", "Privacy card", href=f"/console/{facts.name}/card")
    yield tag("p", link, f" · Proof: {promise.source}" if holds is not None else "")


def _estimates(facts: Facts) -> Iterator[Html]:
    found = facts.estimates
    if found.reason:
        yield tag("p", f"None: {found.reason}.")
        return
    if facts.guarantee.holds is None:
        yield tag("p", "They use rewards as they are, and are for the operator only.")
    elif not found.releases:
        yield tag("p", "Nothing has been released yet.")
        return
    else:
        count = f"{found.releases:,} release{'s' * (found.releases != 1)}"
        yield tag("p", f"They are computed from the noisy values of {count} alone.")
    heads, rows = found.table()
    yield _table(heads, rows, "Estimates")
    if facts.breaks:
        yield tag("p", "Intervals hold at all releases together. What they do not cover:")
        yield items(facts.breaks)


def _decided(facts: Facts) -> Iterator[Html]:
    bandit, held_out = facts.verdicts
    if bandit is not None:
        also = "It does not cover what the intervals above do not cover. Besides:"
        own = [one for one in bandit.breaks if one not in facts.breaks]
        yield _section("Is it decided?", *_verdict(bandit), tag("p", also), items(own))
    if facts.holdout is None:
        return
    said = list(_holdout(facts.holdout))
    if held_out is not None:
        said += [*_verdict(held_out), tag("p", "What it does not cover:"), items(held_out.breaks)]
    if (values := facts.holdout.values) is not None and values.releases:
        said += _values(values)
    yield _section("Holdout", *said)


def _verdict(found: Verdict) -> Iterator[Html]:
    yield tag("p", tag("strong", f"{found.words}."))
    heads, rows = found.intervals.table()
    if rows:
        yield _table(heads, rows, "Difference")


def _holdout(held: Held) -> Iterator[Html]:
    yield tag("p", f"{held.words}.")
    if not held.ledger.releases:
        yield tag("p", "Nothing has been released yet.")
        return
    found = held.estimates if held.effect is None else held.effect
    yield _table(*found.table(), "Holdout")


def _values(found: Intervals) -> Iterator[Html]:
    yield tag("h3", "Targets")
    yield tag("p", VALUE)
    heads, rows = found.table()
    yield _table(["target", "value", *heads[2:-1], "people"], rows, "Targets")
    level = f"{100.0 * found.confidence:g} %"
    also = f"These {level} intervals hold at all releases together. What they do not cover:"
    yield tag("p", also)
    yield items(found.breaks)


def _operators_section(facts: Facts) -> Html:
    counts = vars(facts.diagnostics)
    told = [(words, counts[word]) for word, words in _COUNTS.items()]
    told.insert(1, ("repeated rewards, since the service began", facts.repeats))
    return tag(
        "section",
        tag("h2", "For the operator only: not public"),
        tag(
            "p",
            "These counts depend on rewards that were not released. The guarantee does not cover"
            " them. Do not show them to others, and do not change the experiment because of them.",
        ),
        _table(["What", "Count"], [[words, f"{count:,}"] for words, count in told], "Counts"),
        class_="private",
    )


def _actions(facts: Facts, token_of: Callable[[str], str]) -> Iterator[Html]:
    yield tag(
        "p",
        "Base an action on public facts. An action that depends on rewards that were not released"
        " breaks the guarantee.",
    )
    drawn = [forms.form(facts, one, token_of(one)) for one in forms.possible(facts)]
    yield tag("div", *drawn, class_="actions") if drawn else tag("p", "None is left.")


def _last_of_trail(facts: Facts) -> Iterator[Html]:
    yield _trail_table(facts.trail[-_TRAIL:])
    yield tag("p", tag("a", "Whole trail", href=f"/console/{facts.name}/trail"))


# Pieces ---------------------------------------------------------------------------------------


def _page(title: str, *content: Html, within: Facts | None = None) -> Html:
    """A page; those of an experiment lead back to it."""
    links = [tag("a", "Experiments", href="/console")]
    if within is not None and title != within.title:
        links.append(tag("a", within.title, href=f"/console/{within.name}"))
    style = void("link", rel="stylesheet", href="/console/style.css")
    icon = void("link", rel="icon", href="data:,")
    head = tag("header", tag("nav", *links, aria_label="Pages"), tag("h1", title))
    body = tag("body", head, tag("main", *content))
    return document(f"{title} – dpbandits", Html(style + icon), body)


def _section(title: str, *content: Html) -> Html:
    return tag("section", tag("h2", title), *content)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], label: str) -> Html:
    """A table that scrolls in its own box."""
    head = tag("thead", tag("tr", *(tag("th", one, scope="col") for one in heads)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    box = {"class_": "scroll", "role": "region", "aria_label": label, "tabindex": "0"}
    return tag("div", tag("table", head, body), **box)


def _trail_table(lines: Sequence[dict[str, Any]]) -> Html:
    """Lines of the audit trail, the newest first."""
    words = "what", "arm", "reason", "who"
    rows = [
        [moment(line["at"]), *(str(line.get(word, "")) for word in words)]
        for line in reversed(lines)
    ]
    return _table(["When", *map(str.capitalize, words)], rows, "Audit trail")


def _without(column: int, row: Sequence[str]) -> list[str]:
    return [*row[:column], *row[column + 1 :]]


def _wait(within: str | int | None) -> str:
    if within is None:
        return "any time"
    return within if isinstance(within, str) else f"{within:,} decisions"


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:].rstrip('.')}."
