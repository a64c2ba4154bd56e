"""Learners by a name, to which users may add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError
from ...validation import choice
from .learners import EXP3, FTPL, HTINF
from .learning import Learner

_LEARNERS: dict[str, type[Learner]] = {"htinf": HTINF, "exp3": EXP3, "ftpl": FTPL}


def register_learner(name: str, learner: type[Learner]) -> None:
    """Let ``Registered``, ``BatchConversion`` and ``ExpertConversion`` take a learner by a name.

    The conversion is private whatever the learner does, because a learner sees released losses
    only.  Regret is small if it stands any finite loss: they are in [0, 1] but for the noise, which
    is symmetric, with heavy tails for ``PureDP``.

    Args:
        name: of the learner; registering it anew replaces it for policies that are made later.
        learner: a class; an example is in CONTRIBUTING.

    Raises:
        ArgumentError: the name is no identifier.
    """
    if not (isinstance(name, str) and name.isidentifier()):
        raise ArgumentError(f"name must be an identifier, got {name!r}", "name")
    _LEARNERS[name] = learner


@dataclass(frozen=True, repr=False)
class Registered(Learner):
    """A learner by its name.

    Args:
        learner: its name: ``"htinf"``, ``"exp3"``, ``"ftpl"``, or one of ``register_learner``.
        rate, mixing, tries, sigma, alpha: constants of learners that take them.

    When to choose: where there is a name and no value, as in results of earlier versions.

    >>> Registered("exp3", rate=0.1)
    Registered(learner='exp3', rate=0.1)
    """

    learner: str
    rate: float | None = None
    mixing: float | None = None
    tries: int | None = None
    sigma: float | None = None
    alpha: float | None = None

    def __post_init__(self) -> None:
        self._set(_kind=_LEARNERS[choice("learner", self.learner, tuple(_LEARNERS))])
        for constant, value in self.constants.items():
            takers = [
                repr(name)
                for name, one in _LEARNERS.items()
                if constant in one.__dataclass_fields__
            ]
            if constant not in self.kind.__dataclass_fields__:
                raise ArgumentError(
                    f"{constant} must be None unless learner is {' or '.join(takers)}, got"
                    f" {value!r} for learner={self.learner!r}",
                    constant,
                )
        super().__post_init__()

    @property
    def kind(self) -> Any:
        return vars(self)["_kind"]
