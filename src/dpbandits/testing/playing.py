"""Checks of a policy's play: equal results in loops and by hand, open arms, clear errors,
documentation.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numba
import numpy as np

from ..constraints import constraints_of
from ..errors import ArgumentError
from ..policies import Decision, Policy
from ..policies.registry import find
from ..session.options import DEFAULTS
from . import streams
from .walk import ROUNDS, Make, Walk, contexts_of, require, shown

_DRAWS = 20_000  # of a choice, whose frequencies are compared with propensities
_FAR = 5.0  # standard deviations: by chance with a probability of 6e-7


# One truth ------------------------------------------------------------------------------------


def loop_and_hand_play_alike(make: Make, rounds: int = 0) -> list[int]:
    """The compiled loop, ``pull`` with ``update``, and both in plain Python play the same arms."""
    policy = make()
    world = streams.table(policy, rounds or (400 if policy.card.learns_at_once else streams.ROUNDS))
    played = {}
    for how, fast in product((streams.looped, streams.by_hand), (True, False)):
        name = f"{how.__name__}, {'compiled' if fast else 'interpreted'}"
        played[name] = how(make(), world, compiled=fast)
    first, *others = played.items()
    for name, arms in others:
        require(arms == first[1], f"{first[0]} and {name} play different arms")
    return first[1]


@contextlib.contextmanager
def culprits_named(make: Make) -> Iterator[None]:
    """Where code does not compile, say which kernel is to blame: those that allocate do not."""
    try:
        yield
    except numba.NumbaError as error:
        raise AssertionError(_culprit(make()) or str(error)) from error


def _culprit(policy: Policy) -> str:
    """The first kernel that does not compile for its arguments."""
    walk, seen = Walk(policy), dict[str, tuple[Any, ...]]()
    call = walk.call

    def noted(name: str, *arguments: Any) -> Any:
        seen.setdefault(name, arguments)
        return call(name, *arguments)

    walk.call = noted  # type: ignore[method-assign]
    walk.until(1, lambda first, arm, n: [0.0])
    for name, arguments in seen.items():
        given = [walk.rng if one is None else one for one in arguments]
        kernel = getattr(policy.driven, name)
        try:
            if name != "init" and hasattr(kernel, "compile"):
                kernel.compile(tuple(map(numba.typeof, given)))
        except numba.NumbaError as error:
            lines = str(error).splitlines()
            return f"{name} does not compile; kernels allocate nothing: {' '.join(lines[1:3])}"
    return ""


def propensities_are_frequencies(make: Make) -> None:
    """The propensities of ``choose`` equal the frequencies with which arms are drawn."""
    policy = make()
    draws = _DRAWS if policy.card.randomised else 2  # which have to agree
    walk, rng = Walk(policy, seed=2), np.random.default_rng(2)
    for number in range(21):
        if walk.rounds == ROUNDS:
            return
        walk.step(lambda first, arm, n: [float(rng.binomial(n, 0.5))])
        if number % 10 or walk.rounds == ROUNDS:
            continue
        seen = walk.seen(walk.rng)
        walk.call("prepare", walk.params, walk.public, seen, walk.rng)
        given = (walk.params, walk.public, seen, walk.rng)
        choices = [walk.read("choose", *given) for _ in range(draws)]
        for arm, told in set(choices):
            if math.isnan(told):
                continue
            count = sum(one[0] == arm for one in choices)
            error = math.sqrt(draws * max(told * (1 - told), 0.0))
            require(
                0.0 < told <= 1.0 + 1e-12 and abs(count - draws * told) <= _FAR * error + 0.5,
                f"choose: arm {arm} was drawn {count} times in {draws}, with propensity {told:g}",
            )


# Arms, arguments, words -----------------------------------------------------------------------


def pull_among(policy: Policy, rng: np.random.Generator) -> tuple[Decision, list[int]]:
    """A pull of one person, and the arms that were open to them, which often are only some."""
    count, contexts = policy.n_arms, contexts_of(policy)
    candidates = int(rng.integers(1, count + 1)) if contexts is not None else count
    there = [arm for arm in range(candidates) if arm not in policy.retired]
    asked = [arm for arm in range(count) if rng.random() < 0.6]
    available = asked if set(asked) & set(there) else None
    if not there:
        candidates, there = count, [arm for arm in range(count) if arm not in policy.retired]
    number = policy.session.rounds.pulls
    given = None if contexts is None else shown(policy, contexts[number])[:candidates]
    decision = policy.pull(given, available=available)
    return decision, there if available is None else [arm for arm in there if arm in asked]


def closed_arms_are_never_chosen(
    policy: Policy, rounds: int = 150, each: Callable[[int], None] = lambda number: None
) -> list[tuple[Decision, list[int]]]:
    """Where some arms are closed, the policy chooses an open one.  ``each`` may change the open
    arms.  Returns all decisions, with the arms that were open.
    """
    rng, seen = np.random.default_rng(1), []
    for number in range(rounds):
        each(number)
        decision, open_ones = pull_among(policy, rng)
        told = decision.propensity
        require(decision.arm in open_ones, f"choose: arm {decision.arm} is closed")
        require(told is None or 0.0 < told <= 1.0, f"choose: the propensity is {told}")
        policy.update(float(rng.random() < 0.5), decision)
        seen.append((decision, open_ones))
    return seen


def refuses(make: Make, name: str, value: object) -> None:
    """A bad argument is refused with an ArgumentError that begins with its name."""
    try:
        make(**{name: value})
    except ArgumentError as error:
        named = str(error).startswith(name)
        rule = f"{name}={value!r} is refused, but the message has to begin with {name}: {error}"
        require(named, rule)
    else:
        raise AssertionError(f"{name}={value!r} is not refused with an ArgumentError")


def bad_arguments_are_refused(make: Make) -> None:
    """Values outside of a constraint are refused, numbers without a constraint where they are NaN,
    and so are unknown arguments.
    """
    policy = make()
    kind = find(policy.preset)
    table = constraints_of(kind)
    for name in inspect.signature(kind).parameters:
        if name in table:
            values = table[name].refused
        else:
            given = policy.config.get(name)
            values = (math.nan,) if type(given) in (int, float) and name not in DEFAULTS else ()
        for value in values:
            refuses(make, name, value)
    try:
        make(no_such_argument=1)
    except TypeError as error:
        require("no_such_argument" in str(error), f"a TypeError has to name the argument: {error}")
    else:
        raise AssertionError("an unknown argument is not refused with a TypeError")


def docstring_says_what_is_taken(cls: type[Policy]) -> None:
    """A summary, every argument of its own, and when to choose it."""
    text = inspect.getdoc(cls) or ""
    for part in ("Args:", "When to choose:"):
        require(part in text, f"the docstring of {cls.__name__} has no {part!r}")
    for name, one in inspect.signature(cls.__init__).parameters.items():
        own = name != "self" and one.kind is not one.VAR_KEYWORD
        known = not own or re.search(rf"\b{name}\b", text) is not None
        require(known, f"the docstring of {cls.__name__} does not tell of {name}")
