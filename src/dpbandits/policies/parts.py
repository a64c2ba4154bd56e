"""Parts: values that choose how a policy computes.

An index, a memory, a schedule of batches, a way to explore: each is a small frozen value with its
own arguments.  A class of policies says which parts it takes; the parts choose its kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, TypeVar

from ..constraints import Constraint, Constraints, checked, constraints_of
from ..errors import ArgumentError
from ..rooms import papers
from ..validation import close_name, shown

_KINDS: dict[str, type[Part]] = {}
P = TypeVar("P", bound="Part")


@dataclass(frozen=True)
class Part:
    """Base class of all parts.  A subclass is a frozen dataclass; study files and saved policies
    know it by its name.

    Equal parts make equal policies: they compare by value, and can be keys.

    Attributes:
        what: the word for such parts in messages.
        constraints: the values that each argument may have, checked when a part is made.
    """

    what: ClassVar[str] = "part"
    constraints: ClassVar[Constraints] = {}

    def __post_init__(self) -> None:
        table = constraints_of(type(self))
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name in table}
        self._set(**checked(type(self), **given))

    def __init_subclass__(cls, base: bool = False) -> None:
        if base:  # not a part by itself: only its subclasses are
            return
        known = _KINDS.get(cls.__name__)
        if known and known.__module__.startswith("dpbandits.") and _place(known) != _place(cls):
            raise TypeError(
                f"{cls.__name__} is already the name of a part of this package: take another name"
            )
        _KINDS[cls.__name__] = cls

    def _set(self, **checked: Any) -> None:
        """Keep arguments as their checks return them."""
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def given(self) -> dict[str, Any]:
        """The arguments that are not at their default."""
        return {
            one.name: value
            for one in fields(self)
            if (value := getattr(self, one.name)) != one.default or one.default is MISSING
        }

    def to_dict(self) -> dict[str, Any]:
        """The kind and those arguments that are not at their default, for files.

        >>> from dpbandits.parts import IMED
        >>> IMED(alpha=1.3).to_dict()
        {'kind': 'IMED', 'alpha': 1.3}
        """
        return {"kind": type(self).__name__, **self.given}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Part:
        """The part that ``to_dict`` wrote.

        Raises:
            ArgumentError: there is no such kind, or it does not take these arguments.

        >>> Part.from_dict({"kind": "IMED", "alpha": 1.3})
        IMED(alpha=1.3)
        """
        own = dict(data)
        kind = own.pop("kind", None)
        if kind not in _KINDS:
            papers()  # which have parts, too
        if kind not in _KINDS:
            raise ArgumentError(
                f"kind must be the name of a part; {close_name(kind, _KINDS)}", "kind"
            )
        return _made(_KINDS[kind], own)

    def __repr__(self) -> str:
        own = ", ".join(f"{name}={value!r}" for name, value in self.given.items())
        return f"{type(self).__name__}({own})"


def _place(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__  # which a class keeps that a notebook makes again


def part(name: str, value: object, kinds: tuple[type[Part], ...], *, exactly: bool = False) -> Part:
    """``value`` as one of the given kinds of parts.

    Args:
        name: of the argument.
        value: a part; its name; or its form in a file, ``{"kind": "UCB", "alpha": 2.0}``.
        kinds: the classes it may have; known subclasses fit as well, unless ``exactly``.

    Raises:
        ArgumentError: it is something else; the message lists what fits.
    """
    fitting = _fitting(kinds, exactly)
    if isinstance(value, Part) and type(value) in fitting.values():
        return value
    written = {"kind": value} if isinstance(value, str) else value
    if isinstance(written, Mapping) and not exactly and str(written.get("kind")) not in fitting:
        papers()  # which have parts, too
        fitting = _fitting(kinds, exactly)
    if isinstance(written, Mapping) and str(written.get("kind")) in fitting:
        own = dict(written)
        return _made(fitting[str(own.pop("kind"))], own)
    raise ArgumentError(f"{name} must be one of {_listed(fitting)}, got {shown(value)}", name)


@dataclass(frozen=True)
class PartOf(Constraint):
    """A part of one of the given kinds, its name, or its form in a file; see ``part``."""

    kinds: tuple[type[Part], ...]
    exactly: bool

    def __init__(self, *kinds: type[Part], exactly: bool = False) -> None:
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "exactly", exactly)

    def __call__(self, name: str, value: object) -> Part:
        return part(name, value, self.kinds, exactly=self.exactly)

    def __str__(self) -> str:
        return f"one of {_listed(_fitting(self.kinds, self.exactly))}"

    @property
    def allowed(self) -> tuple[str, ...]:
        fitting = _fitting(self.kinds, self.exactly).items()
        return tuple(
            name
            for name, kind in fitting
            if all(one.default is not MISSING for one in fields(kind))
        )

    @property
    def refused(self) -> tuple[object, ...]:
        return (None, True, 3, "best", "", {"kind": "best"}, {}, [self.kinds[0].__name__])


def _fitting(kinds: tuple[type[Part], ...], exactly: bool) -> dict[str, type[Part]]:
    """The known kinds of parts that are of the given ones, by their names."""
    return {
        key: kind
        for key, kind in _KINDS.items()
        if (kind in kinds if exactly else issubclass(kind, kinds))
    }


def _listed(fitting: Mapping[str, type[Part]]) -> str:
    return ", ".join(f"{kind}()" for kind in fitting)


def _made(kind: type[P], own: Mapping[str, Any]) -> P:
    known = [one.name for one in fields(kind)]
    for name in own:
        if name not in known:
            raise ArgumentError(
                f"{name} is no argument of {kind.__name__}; {close_name(name, known)}", name
            )
    for one in fields(kind):
        if one.default is MISSING and one.name not in own:
            raise ArgumentError(f"{one.name} must be given for {kind.__name__}", one.name)
    return kind(**{name: _restored(value) for name, value in own.items()})


def _restored(value: Any) -> Any:
    """A value as it was before it became JSON or TOML."""
    if isinstance(value, Mapping) and "kind" in value:
        return Part.from_dict(value)
    return tuple(map(_restored, value)) if isinstance(value, list) else value
