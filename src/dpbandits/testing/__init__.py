"""Checks for policies of one's own: the suite of this package runs them on every policy, and
further compares it with a textbook version.  And tests for places and stores of one's own
(``places``, ``stores``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..policies import Policy, find
from ..policies.parts import Part
from ..policies.watch import LOGGER
from . import living, playing, wall
from .places import PlaceConformance
from .stores import StoreConformance
from .walk import Make, require

__all__ = ["PlaceConformance", "StoreConformance", "check_policy"]

Check = Callable[[Make], Any]


def check_policy(
    policy: Policy | type[Policy],
    *,
    told: Callable[[str], None] = lambda check: None,
    **arguments: Any,
) -> list[str]:
    """Check a policy in all situations that often show errors, and stop at the first broken rule.

    A class is checked with a budget of every notion that it takes, and without; an object as it was
    configured.  Both should be small, and release within a few thousand rounds.

    These checks do not test whether the algorithm is the intended one, or how much an attack can
    measure.  For these, write a walk by hand, and audit the policy.

    Args:
        policy: registered with ``@register``, whose ``example`` arguments make the instance.
        told: called with the name of each passed check.
        **arguments: arguments of the constructor, in the place of those.

    Returns:
        The names of all checks.

    Raises:
        AssertionError: the policy breaks a rule, which the message names, with the kernel.
        TypeError: it is a part, as an index; a policy that has it can be checked.

    >>> from dpbandits.algorithms import UCB1
    >>> "saved policies go on" in check_policy(UCB1)
    True
    """
    _refuse_parts(policy)
    cls: Any = type(policy) if isinstance(policy, Policy) else policy
    require(_is_registered(cls), f"{cls.__name__} is not registered: @register")
    done: list[str] = []
    LOGGER.disabled = True  # answers are dropped on purpose
    try:
        for make, check in _planned(policy, cls, arguments):
            name = getattr(check, "func", check).__name__.strip("_").replace("_", " ")
            _named(check, make, name)
            if name not in done:
                done.append(name)
                told(name)
    finally:
        LOGGER.disabled = False
    return done


def _refuse_parts(given: Any) -> None:
    kind = given if isinstance(given, type) else type(given)
    if issubclass(kind, Part):
        raise TypeError(
            f"{kind.__name__} is a part: check a policy that has this part, as in"
            f" check_policy(Arms(3, budget=ZCDP(0.5), index={kind.__name__}()))"
        )


def _is_registered(policy: Any) -> bool:
    """Whether it is found by its name: a class, also one that takes parts, or a preset."""
    try:
        return find(policy.__name__) is policy
    except ArgumentError:
        return False


def _named(check: Check, make: Make, name: str) -> None:
    try:
        with playing.culprits_named(make):
            check(make)
    except AssertionError as error:
        error.add_note(f"Check: {name}, of {make()!r}")
        raise


def _planned(
    policy: Policy | type[Policy], cls: type[Policy], arguments: dict[str, Any]
) -> Iterator[tuple[Make, Check]]:
    """Each check, with its policies and environments."""
    made = list(_instances(policy, cls, arguments))
    yield made[0], _kernels_take_their_arguments
    yield made[0], _docstring_says_what_is_taken
    with tempfile.TemporaryDirectory() as folder:
        for make in made:
            yield from ((make, check) for check in _applicable(make(), Path(folder)))


def _kernels_take_their_arguments(make: Make) -> None:
    wall.kernels_take_their_arguments(make().kernels)


def _docstring_says_what_is_taken(make: Make) -> None:
    playing.docstring_says_what_is_taken(type(make()))


def _instances(
    policy: Policy | type[Policy], cls: type[Policy], arguments: dict[str, Any]
) -> Iterator[Make]:
    if isinstance(policy, Policy):
        own = {**policy.config, "noise": "simulation", "seed": None, **arguments}
        yield partial(cls, **own)
        return
    for budget in (*cls.example_budgets(), None):
        yield partial(cls, **{**cls.example, "budget": budget, **arguments})


def _applicable(policy: Policy, folder: Path) -> Iterator[Check]:
    """The checks for a policy of its kind."""
    card, private = policy.card, policy.budget is not None
    yield playing.bad_arguments_are_refused
    yield wall.sides_share_no_memory
    yield wall.deciding_changes_nothing
    yield wall.randomness_comes_from_rng
    yield wall.nobody_reads_old_scratch
    yield wall.answers_leave_no_trace
    if not card.refuted_because:
        yield wall.records_stay_within_the_bound
        yield wall.releases_are_as_declared
        if card.hides_contexts:
            yield _features_stay_within_the_bound
            yield wall.private_features_leave_no_trace
        if private:
            yield living.budget_is_spent_once
            yield living.draws_belong_to_releases
    yield playing.loop_and_hand_play_alike
    if card.learns_at_once:
        yield living.pulls_are_learned_from_in_order
    else:
        yield living.schedule_owes_nothing_to_answers
        yield partial(living.schedule_owes_nothing_to_answers, answers_within=3)
    yield playing.propensities_are_frequencies
    if policy.takes_masks:
        yield _closed_arms_are_never_chosen
    yield partial(living.saved_policies_go_on, folder=folder)
    yield partial(living.a_crash_loses_nothing, folder=folder)


def _features_stay_within_the_bound(make: Make) -> None:
    wall.features_stay_within_the_bound(make(), np.random.default_rng(1))  # type: ignore[arg-type]


def _closed_arms_are_never_chosen(make: Make) -> None:
    playing.closed_arms_are_never_chosen(make(seed=1))
