"""The compiled steps between a policy and its algorithm: templates that ``bind`` fills with one algorithm's kernels.

The simulation loops are made of the same steps, so that what was measured is what is deployed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernel import Kernel, bind, entry, kernel, unbound
from ..privacy.channels import pass_through, perturb
from ..privacy.ledger import write
from .protocol import Kernels

choose = hold = note = collect = due = part = sensitivity = summarise = publish = cross = unbound


@entry
def _decide(params, public, rng):
    """The next arm, its propensity, and for how many rounds it stands."""
    arm, propensity = choose(params, public, 0, rng)
    return arm, propensity, hold(params, public, arm)


@kernel
def _advance(params, public, arm, n):
    """Book n rounds of an arm; tell whether a release is due."""
    note(params, public, arm, 0, n)
    return due(params, public)


@kernel
def _cross(params, raw, public, wall, rounds, rng):
    """One release through a simulated channel, after ``rounds`` rounds; False, and no release, if its sensitivity is no bound."""
    bound = sensitivity(params, public, wall.norm)
    if not 0.0 <= bound < np.inf:
        return False
    which = part(params, public)
    summarise(params, raw, public, wall.statistic)
    perturb(wall.family, wall.multiplier * bound, wall.statistic, wall.release, rng)
    wall.statistic[:] = 0.0  # no exact sum outlasts its release
    draws = wall.statistic.size if wall.family > 0 else 0
    write(wall.ledger, wall.opened[which], rounds - 1, which, wall.family, bound, wall.multiplier, draws)
    wall.opened[which] = rounds
    publish(params, public, wall.release)
    return True


@entry
def _cross_from_python(params, raw, public, wall, rounds, rng):
    return cross(params, raw, public, wall, rounds, rng)


@kernel
def _answer(params, raw, public, arm, reward):
    """Take in the reward of one booked round."""
    collect(params, raw, public, arm, 0, reward, 1)


@kernel
def _absorb(params, raw, public, arm, reward):
    """Book one round and take in its reward at once; tell whether a release is due."""
    note(params, public, arm, 0, 1)
    collect(params, raw, public, arm, 0, reward, 1)
    return due(params, public)


@entry
def _absorb_and_cross(params, raw, public, wall, arm, reward, rounds, rng):
    """``absorb``, and the release where one is due; False if its sensitivity is no bound."""
    note(params, public, arm, 0, 1)
    collect(params, raw, public, arm, 0, reward, 1)
    if due(params, public):
        return cross(params, raw, public, wall, rounds, rng)
    return True


class Steps(NamedTuple):
    """The steps of one algorithm."""

    decide: Kernel
    advance: Kernel
    answer: Kernel
    absorb: Kernel
    absorb_and_cross: Kernel
    cross: Kernel
    cross_inside: Kernel  # the same, for compiled callers


_bound: dict[tuple[Kernels, bool], Steps] = {}


def steps_of(kernels: Kernels, *, noisy: bool = True) -> Steps:
    """The steps bound to an algorithm; compiled at their first call, once per algorithm.

    Those that are not ``noisy`` serve the open channel only, and take None for a generator, which spares some microseconds a call.
    """
    key = (kernels, noisy)
    if key not in _bound:
        k = kernels._asdict()

        def fill(template: Kernel, *names: str, **others: Kernel) -> Kernel:
            return bind(template, **{name: k[name] for name in names}, **others)

        channel = perturb if noisy else pass_through
        inside = fill(_cross, "sensitivity", "part", "summarise", "publish", perturb=channel)
        _bound[key] = Steps(
            decide=fill(_decide, "choose", "hold"),
            advance=fill(_advance, "note", "due"),
            answer=fill(_answer, "collect"),
            absorb=fill(_absorb, "note", "collect", "due"),
            absorb_and_cross=fill(_absorb_and_cross, "note", "collect", "due", cross=inside),
            cross=bind(_cross_from_python, cross=inside),
            cross_inside=inside,
        )
    return _bound[key]
