"""The promises of a study's policies as cards: one that several budgets share stands once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from ..html import Html, items, tag
from ..plotting.labels import budget_label, promise
from ..plotting.styles import Styles
from ..simulation.settings import PolicySetting


def cards(settings: Iterable[PolicySetting], styles: Styles) -> Iterator[Html]:
    """One card per promise, for all its budgets."""
    groups: dict[str, list[PolicySetting]] = {}
    for setting in settings:
        groups.setdefault(_whatever_the_budget(setting), []).append(setting)
    for group in sorted(groups.values(), key=lambda group: _order(group[0])):
        yield _card(group, styles)


def stamp() -> Html:
    """The warning that readers of results with simulated noise must see."""
    return tag(
        "p",
        tag("strong", "Simulated noise protects nobody. "),
        "The noise in this study comes from a seeded generator. Anyone can run it again, and"
        " subtract the noise."
        " What follows shows how the policies would perform; it is no evidence that the data of"
        " real people were protected. With real people, policies have to run on secure noise.",
        class_="stamp",
    )


def any_simulated(settings: Collection[PolicySetting]) -> bool:
    """Whether the noise of a policy came from a seed."""
    return any(setting.guarantee.simulated for setting in settings)


def _card(settings: Sequence[PolicySetting], styles: Styles) -> Html:
    private = any(setting.budget is not None for setting in settings)
    badge = "" if private else "no privacy"
    if any_simulated(settings):
        badge = "simulated noise: protects nobody"
    lines = _promises(settings, styles)
    names = dict.fromkeys(name for group in lines.values() for name in group)
    title = tag("h3", " · ".join(names), *([tag("span", badge, class_="badge")] if badge else []))
    single = len(settings) == 1
    words = str(settings[0].guarantee) if single else _whatever_the_budget(settings[0])
    listed = [f"{' · '.join(group)}: {promises}" for promises, group in lines.items()]
    parts = [tag("p", words)] + ([items(listed)] if private and not single else [])
    return tag("div", title, *parts, class_="card" if private else "card open")


def _promises(settings: Sequence[PolicySetting], styles: Styles) -> dict[str, list[str]]:
    """Lists of budgets, and the policies that have them."""
    by_policy: dict[str, list[PolicySetting]] = {}
    for setting in settings:
        by_policy.setdefault(styles[setting.policy].label, []).append(setting)
    alike: dict[str, list[str]] = {}
    for name, group in by_policy.items():
        promises = [str(promise(one.budget, one.holds)) for one in sorted(group, key=_order)]
        alike.setdefault(", ".join(dict.fromkeys(promises)), []).append(name)
    return alike


def _order(setting: PolicySetting) -> tuple[int, str, float]:
    return budget_label(setting.budget).order


def _whatever_the_budget(setting: PolicySetting) -> str:
    """The sentences of a guarantee without the budget that holds."""
    return setting.guarantee.in_words("the budget listed below")
