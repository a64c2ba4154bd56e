"""What the policies of a study promise, as cards: a promise that several budgets share stands once,
with the list of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .html import Html, items, tag
from .labels import NO_GUARANTEE, NO_PRIVACY, Look, level, promised

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
        "The noise in this study comes from a seeded generator that anyone can rerun and subtract."
        " What follows shows how the policies would perform; it is no evidence that the data of"
        " real people were protected. With real people, policies have to run on secure noise.",
        class_="stamp",
    )


def simulated(entry: Entry) -> bool:
    """Whether the noise of a policy came from a seed."""
    return bool(entry.get("guarantee", {}).get("simulated", False))


def marks(policies: Sequence[Entry]) -> dict[str, str]:
    """What legends say of a policy besides its name: that nothing it promises holds, or that it
    trusts nobody with raw rewards.
    """
    private = [entry for entry in policies if entry["budget"] != NO_PRIVACY]
    local = {entry["policy"] for entry in policies if entry["guarantee"]["trust_model"] == "local"}
    held = {entry["policy"] for entry in private if entry["holds"] != NO_PRIVACY}
    void = {entry["policy"] for entry in private} - held
    return {**dict.fromkeys(local, "local"), **dict.fromkeys(void, NO_GUARANTEE)}


def _card(entries: Sequence[Entry], looks_of: Mapping[str, Look]) -> Html:
    bare = all(entry["budget"] == NO_PRIVACY for entry in entries)
    badge = (
        "no privacy"
        if bare
        else "simulated noise: protects nobody"
        if any(map(simulated, entries))
        else ""
    )
    kinds: dict[str, list[Entry]] = {}
    for entry in entries:
        kinds.setdefault(entry["policy"], []).append(entry)
    alike: dict[tuple[str, ...], list[str]] = {}
    for policy, members in kinds.items():
        told = tuple(
            promised(entry["budget"], entry["holds"])
            for entry in sorted(members, key=lambda entry: level(entry["budget"]).order)
        )
        alike.setdefault(told, []).append(looks_of[policy].label if policy in looks_of else policy)
    names = [label for labels in alike.values() for label in dict.fromkeys(labels)]
    title = tag("h3", ", ".join(names), *([tag("span", badge, class_="badge")] if badge else []))
    lines = [
        f"{', '.join(dict.fromkeys(labels))}: {', '.join(told)}" for told, labels in alike.items()
    ]
    whole = entries[0]["sentence"] if len(entries) == 1 else _promise(entries[0])
    parts = [tag("p", whole)] + ([items(lines)] if not bare and len(entries) > 1 else [])
    return tag("div", title, *parts, class_="card open" if bare else "card")


def _promise(entry: Entry) -> str:
    """The sentences of a guarantee without the budget that holds."""
    return str(entry["sentence"]).replace(f"with {entry['holds']} ", f"with {_LISTED} ")
