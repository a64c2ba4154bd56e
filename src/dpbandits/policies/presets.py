"""Presets: names of policies that each stand for a class and its parts.

A preset has arguments of its own.  A template maps them to the arguments of the class.  Read
forwards, it makes the policy. Read backwards, it finds the preset's name for any policy with these
arguments.  Streams of random numbers, exchange between workers, results and saved states use the
name and its arguments, hence equal values draw equal numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property, reduce
from operator import or_
from typing import Any, NamedTuple

from ..constraints import Constraint, Constraints, Exactly, constraints_of, without_none
from ..errors import ArgumentError
from ..privacy.budgets import Budget
from ..protocol import Card, Kernels
from .making import misfit
from .parts import Part
from .terms import misfit_of_budget

_NEEDED = inspect.Parameter.empty


@dataclass(frozen=True)
class Given:
    """A place that an argument of a preset fills."""

    name: str  # of the argument
    default: Any = _NEEDED
    values: Mapping[Any, Any] | None = None  # what stands there for each; by default itself
    quiet: bool = False  # left out of names while it is at its default

    @property
    def takes_none(self) -> bool:
        """None may stand for a default of the part, for which nobody asks with None here."""
        return self.default is None or self.default is _NEEDED


@dataclass(frozen=True)
class Like:
    """A part with places in it."""

    kind: type[Part]
    values: Mapping[str, Any]


def given(
    name: str,
    default: object = _NEEDED,
    *,
    values: Mapping[Any, Any] | None = None,
    quiet: bool = False,
) -> Any:
    """A place in a template; see ``Given``."""
    return Given(name, default, values, quiet)


def like(kind: type[Part], *same: str, **values: Any) -> Like:
    """A part as a template.  Arguments in ``same`` are the preset's own, with their defaults.
    Those in ``values`` are fixed, or places with another name or default. Others keep their
    default.
    """
    defaults = {
        one.name: _NEEDED if one.default is MISSING else one.default for one in fields(kind)
    }
    own = {name: Given(name, defaults[name]) for name in same}
    return Like(kind, {**defaults, **own, **values})


class Composition(NamedTuple):
    """Properties of a policy that depend on its parts, and on no other argument."""

    kernels: Kernels
    card: Card


@dataclass(frozen=True, eq=False, repr=False)
class Preset:
    """A class of policies with its parts chosen; it is called like a class.

    Attributes:
        name: the name in lists, study files, saved policies and results.
        policy_class: the class of the instances that a call makes.
        template: arguments of the class that are fixed, or hold places for own arguments.
        order: the own arguments in the order in which names list them.
        about: fields of the card that differ from those of the class: title, source, errata and so
            on.
        example: arguments of a small instance, apart from the budget.
        doc: its description, in the form of a docstring.
        home: the module that has it.
    """

    name: str
    policy_class: type[Any]
    template: Mapping[str, Any]
    order: tuple[str, ...]
    about: Mapping[str, Any] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)
    doc: str = ""
    home: str = ""

    def __call__(self, *args: Any, **own: Any) -> Any:
        """The policy.

        Raises:
            TypeError: an argument is missing, or there is no such argument.
            ArgumentError: an argument is out of its range.
        """
        try:
            bound = self.__signature__.bind(*args, **own).arguments
        except TypeError as error:
            raise TypeError(misfit(self, args, own) or str(error)) from None
        budget = bound.get("budget")
        if budget is not None and not self.card.takes(budget):  # which others of the class may take
            raise misfit_of_budget(self.name, self.card, budget)
        try:
            return self.policy_class(**self.arguments_of_class(bound))
        except ArgumentError as error:
            raise self._in_own_words(error) from None

    def places_of(self, name: str) -> set[str]:
        """The own arguments that stand in an argument of the class."""
        return {one.name for one in _places_in(self.template.get(name))}

    def arguments_of_class(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the class that correspond to arguments of the preset."""
        whole = {**self._defaults, **own}
        passed = {name: value for name, value in own.items() if name not in self._placed}
        parts = {name: _filled(one, whole, self.name) for name, one in self.template.items()}
        return {**passed, **parts}

    def with_parts(
        self, parts: Mapping[str, Any], said: Mapping[str, Any], default: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Apply a call that chooses ``parts`` which the preset does not have.

        Parts that hold something that was ``said`` stay those of the preset; all others are the
        class's own.  A ``default`` yields to parts.

        Returns:
            Arguments of the class, by name.

        Raises:
            ArgumentError: a given argument belongs to a part that was replaced.
        """
        for name, one in parts.items():
            if lost := sorted(said.keys() & self.places_of(name)):
                raise ArgumentError(
                    f"{name} must not be given with {lost[0]}, got {one!r}: {lost[0]} sets the"
                    f" preset's own {name}; give {lost[0]} to your {name} instead",
                    name,
                )
        whole = self.arguments_of_class({**default, **said})
        others = {
            name
            for name in self.template
            if self.places_of(name) and not self.places_of(name) & said.keys()
        }
        return {**{name: one for name, one in whole.items() if name not in others}, **parts}

    def __repr__(self) -> str:
        return f"<Preset {self.name} of {self.policy_class.__name__}>"

    def __instancecheck__(self, policy: object) -> bool:
        return getattr(policy, "preset", None) == self.name

    def config_of(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """The own arguments of a policy with that configuration; None where it is another."""
        found: dict[str, Any] = {}
        for name, one in self.template.items():
            if not _matched(one, config[name], found):
                return None
        quiet = {one.name: one.default for one in self._places if one.quiet}
        own = {}
        for name in self.order:
            value = found[name] if name in found else config[name]
            if not (name in quiet and value == quiet[name]):
                own[name] = value
        rest = {name: one for name, one in config.items() if name not in self.template}
        return {**own, **{name: one for name, one in rest.items() if name not in self.order}}

    # What a class has, too ----------------------------------------------------------------------

    @cached_property
    def constraints(self) -> Constraints:
        """The constraints of its own arguments, by their names."""
        of_class = constraints_of(self.policy_class)
        kept = {name: one for name, one in of_class.items() if name not in self.template}
        return kept | dict(_constraints(self.template, of_class))

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return self.doc

    @cached_property
    def card(self) -> Card:
        """The card of its policies."""
        return replace(self._composition.card, **self.about)

    @property
    def kernels(self) -> Kernels:
        """Its functions."""
        return self._composition.kernels

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "policy_class":
            raise AttributeError(name)
        return getattr(self.policy_class, name)  # it answers for its class

    def example_budgets(self) -> list[Budget]:
        """One small budget of every notion that it accepts."""
        return [kind(*kind.example) for kind in self.card.notions]

    @cached_property
    def __signature__(self) -> inspect.Signature:
        taken = inspect.signature(self.policy_class).parameters
        kept = {name: one for name, one in taken.items() if name not in self.template}
        own = {
            one.name: inspect.Parameter(
                one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default
            )
            for one in self._places
        }
        first = [one for one in kept.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
        ordered = [{**kept, **own}[name] for name in self.order if name in {**kept, **own}]
        named = [one for one in ordered if one not in first]
        rest = [one for one in kept.values() if one not in first and one not in named]
        return inspect.Signature([*first, *named, *rest])

    # Pieces -------------------------------------------------------------------------------------

    @cached_property
    def _places(self) -> list[Given]:
        return [one for value in self.template.values() for one in _places_in(value)]

    @cached_property
    def _placed(self) -> set[str]:
        return {one.name for one in self._places}

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        return {one.name: one.default for one in self._places if one.default is not _NEEDED}

    @cached_property
    def _composition(self) -> Composition:
        """The composition with all places at their default."""
        whole = {**self.example, **self._defaults}
        parts = {name: _filled(one, whole, self.name) for name, one in self.template.items()}
        composition: Composition = self.policy_class.composition(**parts)
        return composition

    def _in_own_words(self, error: ArgumentError) -> ArgumentError:
        """An error about an argument of a part, by the name that it has here."""
        for there, here in _renamed(self.template):
            if error.argument == there and there not in self._placed:
                return ArgumentError(str(error).replace(there, here, 1), here)
        return error


def _constraints(
    template: Mapping[str, Any], table: Constraints
) -> Iterator[tuple[str, Constraint]]:
    """The constraint of every place in a template, by its name in the preset."""
    for name, value in template.items():
        if isinstance(value, Like):
            yield from _constraints(value.values, constraints_of(value.kind))
        elif isinstance(value, Given) and value.values is not None:
            yield value.name, reduce(or_, map(Exactly, value.values))
        elif isinstance(value, Given) and name in table:
            yield value.name, table[name] if value.takes_none else without_none(table[name])


def _places_in(value: Any) -> Iterator[Given]:
    if isinstance(value, Given):
        yield value
    elif isinstance(value, Like):
        for one in value.values.values():
            yield from _places_in(one)


def _renamed(template: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in template.items():
        if isinstance(value, Given):
            yield name, value.name
        elif isinstance(value, Like):
            yield from _renamed(value.values)


def _filled(template: Any, own: Mapping[str, Any], preset: str) -> Any:
    """A template with its places filled, of a preset of that name."""
    if isinstance(template, Given):
        value, name, default = own[template.name], template.name, template.default
        if value is None and not template.takes_none:
            raise ArgumentError(
                f"{name} must have the type of the default {default!r}, got None", name
            )
        if template.values is None:
            return value
        known = [key for key in template.values if key == value and type(key) is type(value)]
        if not known:
            allowed = " or ".join(repr(key) for key in template.values)
            raise ArgumentError(f"{name} must be {allowed} for {preset}, got {value!r}", name)
        return template.values[known[0]]
    if isinstance(template, Like):
        filled = {name: _filled(one, own, preset) for name, one in template.values.items()}
        return template.kind(**filled)
    return template


def _matched(template: Any, value: Any, found: dict[str, Any]) -> bool:
    """Whether a value has the form of a template; the values in its places go to ``found``."""
    if isinstance(template, Given):
        if template.values is None:
            found[template.name] = value
            return True
        for key, one in template.values.items():
            if one == value:
                found[template.name] = key
                return True
        return False
    if isinstance(template, Like):
        return type(value) is template.kind and all(
            _matched(one, getattr(value, name), found) for name, one in template.values.items()
        )
    return bool(type(template) is type(value) and template == value)
