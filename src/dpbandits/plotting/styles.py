"""Labels, colours and markers of policies, in every figure and table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

# Dark enough on white, and told apart with the common kinds of colour blindness (after Okabe & Ito
# 2008, and Tol); the markers carry the same distinction once more.
COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#AA4499", "#332288", "#B8860B"),
    *("#56B4E9", "#882255", "#555555", "#7A9A01", "#E7298A", "#8C564B"),
)
_MARKERS = "osD^vPX<>*hp"

# arguments that the environment decides, so that they tell no two policies apart
_OF_THE_ENVIRONMENT = {"n_arms", "dimension", "arms"}


class PolicyFacts(NamedTuple):
    """The facts that a policy's label is made of."""

    class_name: str  # of the algorithm
    arguments: Mapping[str, Any]  # of its constructor
    name: str | None = None  # by which its user calls it; None for the class and the arguments
    remark: str = ""  # where the policy promises more or less than others at the same budget


class Mark(NamedTuple):
    """A colour and a marker of matplotlib."""

    colour: str
    marker: str


@dataclass(frozen=True)
class PlotStyle:
    """The label and the plot style of one policy."""

    label: str  # in legends and tables
    phrase: str  # the same in sentences, where names stand between quotation marks
    short_phrase: str  # in sentences that leave arguments to the tables
    colour: str  # of matplotlib, as the marker
    marker: str


Styles = Mapping[str, PlotStyle]  # by policy


def plot_styles(policies: Mapping[str, PolicyFacts]) -> dict[str, PlotStyle]:
    """A style for every policy of a comparison, under the same keys.

    A label is the policy's name, or else its class and, of its arguments, those in which it differs
    from others of its class.  Policies with equal labels, which differ in the size of their
    environments, look alike.

    >>> found = plot_styles({
    ...     "a": PolicyFacts("A", {"n_arms": 4, "b": 1.0, "c": True}),
    ...     "b": PolicyFacts("A", {"n_arms": 4, "b": 1.0, "c": False}),
    ...     "c": PolicyFacts("A", {"n_arms": 4, "b": 2.0, "c": False}, name="ours"),
    ...     "d": PolicyFacts("B", {"n_arms": 4}, remark="local"),
    ... })
    >>> [style.label for style in found.values()]
    ['A (b=1, c=True)', 'A (b=1, c=False)', 'ours', 'B (local)']
    >>> [style.short_phrase for style in found.values()]
    ['a variant of A', 'a variant of A', '“ours”', 'B']
    """
    texts = {key: _texts(facts, policies.values()) for key, facts in policies.items()}
    labels = dict.fromkeys(text.label for text in texts.values())
    places = {label: place for place, label in enumerate(labels)}
    return {key: PlotStyle(*text, *mark(places[text.label])) for key, text in texts.items()}


def mark(place: int) -> Mark:
    """The mark of a place: colour and marker both new for the first dozen, then in other pairs."""
    round_, i = divmod(place, len(COLOURS))
    return Mark(COLOURS[i], _MARKERS[(i + round_) % len(_MARKERS)])


class _Texts(NamedTuple):
    label: str
    phrase: str
    short_phrase: str


def _texts(facts: PolicyFacts, compared: Collection[PolicyFacts]) -> _Texts:
    remark = [facts.remark] if facts.remark else []
    if facts.name:
        quoted = f"“{facts.name}”"
        return _Texts(facts.name + _brackets(remark), quoted + _brackets(remark), quoted)
    differing = _differing(facts, compared)
    label = facts.class_name + _brackets([*_assignments(differing), *remark])
    if label in {other.name for other in compared}:  # then all arguments tell it from that one
        label = facts.class_name + _brackets([*_assignments(facts.arguments), *remark])
    return _Texts(label, label, f"{'a variant of ' if differing else ''}{facts.class_name}")


def _differing(facts: PolicyFacts, compared: Collection[PolicyFacts]) -> dict[str, Any]:
    """Those arguments in which a policy differs from others of its class."""
    family = [other.arguments for other in compared if other.class_name == facts.class_name]
    return {
        name: value
        for name, value in facts.arguments.items()
        if name not in _OF_THE_ENVIRONMENT and any(other.get(name) != value for other in family)
    }


def _assignments(arguments: Mapping[str, Any]) -> list[str]:
    return [f"{name}={_written(value)}" for name, value in arguments.items()]


def _brackets(parts: list[str]) -> str:
    return f" ({', '.join(parts)})" if parts else ""


def _written(value: Any) -> str:
    """A value as it is written in a study, without the ``.0`` of whole numbers."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_written, value))})"
    return repr(value).removesuffix(".0") if isinstance(value, float) else repr(value)
