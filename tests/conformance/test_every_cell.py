"""Every class with all parts that fit it, named or not: privacy is proved for the class, so that all
of its cells have to keep the wall.
"""

from __future__ import annotations

import itertools
import re
import typing
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpbandits  # noqa: F401  (registers the algorithms)
from dpbandits import ArgumentError
from dpbandits.parts import Part
from dpbandits.policies import parts, registered
from dpbandits.policies.registry import _COMPOSED
from dpbandits.testing import wall

registered()  # with parts of papers
KINDS = [kind for kind in parts._KINDS.values() if kind.__module__.startswith("dpbandits.")]
GIVEN = {"Registered": {"learner": "exp3"}, "Fixed": {"rounds": 7}}  # what parts need
# What their class needs with them.
BESIDE = {
    f"{name}-Halving": {"failure_probability": None, "horizon": 3000}
    for name in ("BestArm", "BestArmShuffled")
}


def places(cls: Any) -> dict[str, list[Part]]:
    """The arguments of a class that take parts, with one of every kind that fits."""
    hints = typing.get_type_hints(cls.__init__)
    found = {}
    for name, hint in hints.items():
        taken = [one for one in (*typing.get_args(hint), hint) if isinstance(one, type)]
        bases = tuple(one for one in taken if issubclass(one, Part))
        if bases:
            fitting = [kind for kind in KINDS if issubclass(kind, bases)]
            found[name] = [kind(**GIVEN.get(kind.__name__, {})) for kind in fitting]
    return found


def cells() -> list[Any]:
    found = []
    for cls in _COMPOSED.values():
        named = places(cls)
        for chosen in itertools.product(*named.values()):
            own = dict(zip(named, chosen, strict=True))
            label = "-".join([cls.__name__, *(type(one).__name__ for one in chosen)])
            mark = pytest.mark.xdist_group(cls.__name__)
            found.append(pytest.param(cls, own, id=label, marks=mark))
    return found


CELLS = cells()
# What means nothing, or has no budget, by name.
REFUSED = re.compile(
    r"(Adversarial|Experts)-(EXP3IX|TsallisINF)"
    r"|Arms-Thompson-(Forget|Discount|Add)-\w+"
    r"|Arms(Shuffled)?-AdaP(KL)?Index-(Merge|Discount|Add)-\w+"
    r"|ArmsShuffled-Thompson-\w+-\w+"
    r"|ArmsLocal-(Thompson|AdaPIndex|AdaPKLIndex|DPIMEDIndex|DPKLIndex)"
)


def test_there_are_cells_of_every_class():
    classes = [one.values[0] for one in CELLS]
    assert set(classes) == set(_COMPOSED.values())
    assert len(CELLS) > 150


@pytest.mark.parametrize(("cls", "own"), CELLS)
@pytest.mark.long
def test_a_cell_keeps_the_wall_or_is_refused_by_name(cls: Any, own: dict[str, Any], request):
    name = request.node.callspec.id
    refused, beside = bool(REFUSED.fullmatch(name)), BESIDE.get(name, {})
    norms = set()
    for budget in cls.example_budgets():
        make = partial(cls, **{**cls.example, **beside, **own, "budget": budget})
        found = made(make)
        if isinstance(found, ArgumentError):
            assert found.argument == "budget" or (found.argument in own and refused)
            continue
        assert not refused
        if found.channel.norm not in norms:
            norms.add(found.channel.norm)
            keeps_the_wall(make)
    assert norms or refused


def made(make: Any) -> Any:
    """A policy, or why there is none."""
    try:
        return make()
    except ArgumentError as error:
        return error


def keeps_the_wall(make: Any) -> None:
    """Forced releases, and one record that is another."""
    wall.sides_share_no_memory(make)
    wall.answers_leave_no_trace(make)
    wall.records_stay_within_the_bound(make, range(2))
    wall.releases_are_as_declared(make)
    policy = make()
    if policy.card.hides_contexts:
        wall.private_features_leave_no_trace(make)
        wall.features_stay_within_the_bound(policy, np.random.default_rng(3))
