"""What the policies of a study promise, as cards: a promise that several budgets share stands once, with the list of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..privacy import budgets
from .html import Html, items, tag
from .labels import NO_PRIVACY, Look, level

_LISTED = "the budget listed below"

Entry = Mapping[str, Any]  # as in ``Result.info["policies"]``


def cards(policies: Sequence[Entry], looks_of: Mapping[str, Look]) -> Iterator[Html]:
    """One card per promise, whatever its budget."""
    groups: dict[str, list[Entry]] = {}
    for entry in policies:
        groups.setdefault(_promise(entry), []).append(entry)
    for entries in sorted(groups.values(), key=lambda entries: level(entries[0]["budget"]).order):
        yield _card(entries, looks_of)


def stamp() -> Html:
    """What nobody may overlook who reads about simulated noise."""
    return tag(
        "p",
        tag("strong", "Simulated noise protects nobody. "),
        "The noise in this study comes from a seeded generator that anyone can rerun and subtract. What follows shows how the policies "
        "would perform; it is no evidence that the data of real people were protected. "
        "With real people, policies have to run on secure noise.",
        class_="stamp",
    )


def simulated(entry: Entry) -> bool:
    """Whether the noise of a policy came from a seed."""
    return any(str(caveat).startswith("SIMULATION") for caveat in entry.get("guarantee", {}).get("caveats", ()))


def local(entry: Entry) -> bool:
    """Whether nobody is trusted with raw rewards."""
    return bool(entry.get("guarantee", {}).get("trust_model") == "local")


def _card(entries: Sequence[Entry], looks_of: Mapping[str, Look]) -> Html:
    bare = all(entry["budget"] == NO_PRIVACY for entry in entries)
    badge = "no privacy" if bare else "simulated noise: protects nobody" if any(map(simulated, entries)) else ""
    kinds: dict[str, list[Entry]] = {}
    for entry in entries:
        kinds.setdefault(entry["policy"], []).append(entry)
    alike: dict[tuple[str, ...], list[str]] = {}
    for policy, members in kinds.items():
        told = tuple(_budget(entry) for entry in sorted(members, key=lambda entry: level(entry["budget"]).order))
        alike.setdefault(told, []).append(looks_of[policy].label if policy in looks_of else policy)
    names = [label for labels in alike.values() for label in dict.fromkeys(labels)]
    title = tag("h3", ", ".join(names), *([tag("span", badge, class_="badge")] if badge else []))
    lines = [f"{', '.join(dict.fromkeys(labels))}: {', '.join(told)}" for told, labels in alike.items()]
    whole = entries[0]["sentence"] if len(entries) == 1 else _promise(entries[0])
    parts = [tag("p", whole)] + ([items(lines)] if not bare and len(entries) > 1 else [])
    return tag("div", title, *parts, class_="card open" if bare else "card")


def _promise(entry: Entry) -> str:
    """The sentences of a guarantee without the budget that holds."""
    holds = _held(entry)
    sentence = str(entry.get("sentence", ""))
    return sentence if holds is None else sentence.replace(f"with {holds} ", f"with {_LISTED} ")


def _held(entry: Entry) -> budgets.Budget | None:
    holds = entry.get("guarantee", {}).get("holds")
    if holds is None:
        return None
    notions = {kind.__name__: kind for kind in (budgets.PureDP, budgets.ApproxDP, budgets.ZCDP, budgets.RDP)}
    return notions[holds["notion"]](**{name: value for name, value in holds.items() if name != "notion"})


def _budget(entry: Entry) -> str:
    holds = _held(entry)
    shown = level(entry["budget"]).shown
    return shown if holds is None or str(holds) == entry["budget"] else f"{shown} asked for, {level(str(holds)).shown} holds"
