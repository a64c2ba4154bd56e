"""What the reference has: public names by what one does with them, and policies by their class."""

import inspect
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, NamedTuple

import dpbandits
import dpbandits.parts
from dpbandits.policies import Preset, registered
from dpbandits.policies.presets import Given, Like

# Rooms that users do not call.
INNER = {
    *("cli", "html", "plotting", "report", "demonstration", "validation", "calls", "session"),
    *("protocol", "rooms"),
}

ALGORITHMS, PARTS, POLICIES, PRIVACY = (
    f"dpbandits.{room}" for room in ("algorithms", "parts", "policies", "privacy")
)
# Classes whose methods are also in bases that no page shows.
INHERITS = {f"{POLICIES}.Policy"}


class Page(NamedTuple):
    """A page of the reference."""

    section: str
    title: str
    intro: str
    names: list[str]


# Pages that hold a part of a room: section, title, first words, room, and names.
PIECES = (
    ("The front door", "bandit", "", "dpbandits.door", "bandit"),
    (
        "The front door",
        "Options of every policy",
        "Keyword arguments that every policy takes beside its own, and so does `bandit`, which"
        " takes names of arms as `arms`.",
        POLICIES,
        "Options",
    ),
    (
        "The front door",
        "Defaults",
        "",
        POLICIES,
        "Default DEFAULTS default_for DecisionProblem",
    ),
    ("Classes", "A few arms", "", ALGORITHMS, "Arms ArmsShuffled ArmsLocal"),
    ("Classes", "The best arm", "", ALGORITHMS, "BestArm BestArmShuffled LDPTopTwo"),
    ("Classes", "Rewards that follow no law", "", ALGORITHMS, "Adversarial"),
    ("Classes", "Expert advice", "", ALGORITHMS, "Experts ExpertsLocal"),
    ("Classes", "Public features", "", ALGORITHMS, "Linear FixedLinear GLM"),
    (
        "Classes",
        "Private features",
        "",
        ALGORITHMS,
        "HiddenLinear HiddenLinearShuffled HiddenLinearLocal HiddenGLM HiddenGLMLocal Device",
    ),
    (
        "Classes",
        "Classes that take no parts",
        "",
        ALGORITHMS,
        "UCB1 KLUCB ThompsonSampling",
    ),
    ("Parts", "Indices", "`index` of `Arms` and its kin.", PARTS, "IMED KLUCB UCB Thompson Index"),
    ("Parts", "Memories", "`memory` of `Arms`.", PARTS, "Merge Forget Discount Memory"),
    ("Parts", "Batches", "`batches` of `Arms`.", PARTS, "Growing Fixed Batches"),
    (
        "Parts",
        "Exploration",
        "`explore` of policies with features.",
        PARTS,
        "Divergence Optimism Sampling",
    ),
    ("Parts", "Updates", "`updates` of `Linear`.", PARTS, "Switching EveryAnswer"),
    ("Parts", "Searches", "`rule` of `BestArm` and its kin.", PARTS, "TopTwo Halving"),
    (
        "Parts",
        "Learners",
        "`learner` of `Adversarial` and `Experts`.",
        PARTS,
        "HTINF EXP3 FTPL EXP4 FrozenEXP4 Registered",
    ),
    (
        "Parts",
        "Batched EXP4",
        "`learner` of `Experts`; in `dpbandits.parts`, too.",
        "dpbandits.papers.adversarial.exp4",
        "BatchedEXP4",
    ),
    (
        "Parts",
        "Learners without privacy",
        "`learner` of `Adversarial` and `Experts`; in `dpbandits.parts`, too.",
        "dpbandits.papers.adversarial.without_privacy",
        "EXP3IX TsallisINF",
    ),
    ("Parts", "Parts of your own", "", PARTS, "Part find"),
    ("Parts", "Learners of your own", "", ALGORITHMS, "Learner register_learner"),
    (
        "Policies at work",
        "Policies",
        "",
        POLICIES,
        "Policy Decision Estimates Diagnostics Release Chooser PrivacyCard Holdout HeldOut load",
    ),
    (
        "Budgets",
        "Budgets",
        "How much may leak, in five notions.",
        PRIVACY,
        "PureDP ZCDP ApproxDP RDP GDP Budget Meaning Guarantee Ledger notion",
    ),
)
# In which section a room stands, or what is left of it; the others are for authors.
SECTIONS = {
    "The front door": (),
    "Classes": (),
    "Parts": (),
    "Policies at work": ("inspection", "conclusions", "logs", "evaluation", "stores", "errors"),
    "Client of the service": ("client", "device"),
    "Budgets": ("privacy", "auditing", "finite"),
    "Simulating and planning": ("simulation", "environments", "planning", "studies", "theory"),
    "Sums and regressions": ("glm", "shuffle", "tables"),
    "For authors": (),
    "Papers": ("papers",),
}


def rooms() -> Iterator[Page]:
    """Every page, in order."""
    pages = [Page(*one[:3], [f"{one[3]}.{name}" for name in one[4].split()]) for one in PIECES]
    shown = {name for page in pages for name in page.names}
    pages += [page for info in iter_modules(dpbandits.__path__) for page in rest(info.name, shown)]
    order = list(SECTIONS)
    yield from sorted(pages, key=lambda page: order.index(page.section))


def rest(room: str, shown: set[str]) -> Iterator[Page]:
    """What a room has that stands on no other page; presets stand beside their classes."""
    if room in INNER or room.startswith("_"):
        return
    module = import_module(f"dpbandits.{room}")
    homes = (section for section, members in SECTIONS.items() if room in members)
    section = next(homes, "For authors")
    if room == "papers":
        yield from (paper(section, name) for name in module.__all__)
        return
    names = [
        name
        for one in public_names(module)
        if (name := f"{home_of(module, one)}.{one}") not in shown
        and not isinstance(getattr(module, one), Preset)
        and one not in dpbandits.parts.__all__  # which stand among the pieces
    ]
    if names:
        yield Page(section, module.__name__, inspect.getdoc(module) or "", names)


def home_of(module: ModuleType, name: str) -> str:
    """Where a name is found without running code: the core loads rooms of papers by name."""
    home = str(getattr(getattr(module, name), "__module__", ""))
    return home if home.startswith("dpbandits.papers.") else module.__name__


def paper(section: str, room: str) -> Page:
    """The page of a paper's room: what is its own, and not of the core."""
    module = import_module(f"dpbandits.papers.{room}")
    own = [
        f"{module.__name__}.{name}"
        for name in module.__all__
        if getattr(module, name).__module__.startswith(module.__name__)
    ]
    return Page(section, module.__name__, inspect.getdoc(module) or "", own)


def public_names(module: ModuleType) -> list[str]:
    """What a room offers: its ``__all__``, or what is defined in it."""
    own = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
    return list(getattr(module, "__all__", own))


# Names of policies -------------------------------------------------------------------------------


def presets(policy_class: str) -> dict[str, Preset]:
    """The names that stand for a class and its parts, those with default parts first."""
    found = {
        name: one
        for name, one in registered().items()
        if isinstance(one, Preset) and one.policy_class.__name__ == policy_class
    }
    return dict(sorted(found.items(), key=lambda item: bool(parts_of(item[1]))))


def parts_of(preset: Preset) -> dict[str, str]:
    """Which arguments of its class a name gives, as one writes them, where they are not the usual
    ones; own arguments of the name are left out.
    """
    usual = inspect.signature(preset.policy_class).parameters
    given = {name: shape_of(one) for name, one in preset.template.items()}
    return {name: one for name, one in given.items() if one not in ("", repr(usual[name].default))}


def shape_of(template: Any) -> str:
    """A template without the places in it."""
    if isinstance(template, Given):
        return ""
    if not isinstance(template, Like):
        return repr(template)
    usual = {one.name: one.default for one in fields(template.kind)}
    shapes = {name: shape_of(one) for name, one in template.values.items()}
    own = [f"{name}={one}" for name, one in shapes.items() if one not in ("", repr(usual[name]))]
    return f"{template.kind.__name__}({', '.join(own)})"


def table_of_presets(policy_class: str, cards: str) -> str:
    """A table of the names of a class, with links to their cards in that folder."""
    rows = [f"| `{policy_class}` by name | parts other than the default | |", "|---|---|---|"]
    for name, one in presets(policy_class).items():
        parts = ", ".join(f"`{key}={value}`" for key, value in parts_of(one).items())
        rows.append(f"| [`{name}`]({cards}/{name}.md) | {parts} | {one.card.title} |")
    return "\n".join(rows) + "\n"


def table_of_others(cards: str) -> str:
    """A table of the policies that are classes of their own."""
    rows = ["| class | from | |", "|---|---|---|"]
    for name, one in registered().items():
        if not isinstance(one, Preset):
            home = public_home(name, one)
            rows.append(f"| [`{name}`]({cards}/{name}.md) | `{home}` | {one.card.title} |")
    return "\n".join(rows) + "\n"


def table_of_names() -> str:
    """Where names of the top level come from, and where those that moved are."""
    rows = ["| `dpbandits.` | home |", "|---|---|"]
    for name in dpbandits.__all__:
        one = getattr(dpbandits, name)
        home = one.__name__ if inspect.ismodule(one) else public_home(name, one)
        rows.append(f"| `{name}` | `{home}` |")
    moved = "\n".join(
        f"| `{name}` | `dpbandits.{home}` |" for name, home in sorted(dpbandits._MOVED.items())
    )
    return (
        "\n".join(rows)
        + "\n\n## Names that moved\n\nThey work at the top level, too, with a `DeprecationWarning`."
        " Policies by name are in `dpbandits.algorithms` and in the rooms of papers.\n\n"
        "| `dpbandits.` | now in |\n|---|---|\n" + moved + "\n"
    )


def public_home(name: str, value: Any) -> str:
    """The shortest module that offers a name."""
    parts = value.__module__.split(".")
    for depth in range(2, len(parts) + 1):
        module = import_module(".".join(parts[:depth]))
        if getattr(module, name, None) is value:
            return module.__name__
    return value.__module__
