"""The compiled steps between a policy and its algorithm: templates that ``bind`` fills with one
algorithm's kernels.

The simulation loops are made of the same steps, so that what was measured is what is deployed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernel import Kernel, bind, entry, inlined, kernel, unbound
from ..privacy.continual import disclose, draws_of, is_spent, pass_on
from ..privacy.ledger import write
from .protocol import Kernels

choose = hold = note = collect = due = part = sensitivity = summarise = publish = cross = see = (
    prepare
) = unbound


@entry
def _decide(params, public, view, rng):
    """The next arm, its propensity, and for how many rounds it stands."""
    prepare(params, public, view, rng)
    arm, propensity = choose(params, public, view, rng)
    return arm, propensity, hold(params, public, arm)


@kernel
def _advance(params, public, arm, x, n):
    """Book n rounds of an arm; tell whether a release is due."""
    note(params, public, arm, x, n)
    return due(params, public)


@kernel
def _cross(params, raw, public, wall, rounds, rng):
    """One release through a simulated channel, after ``rounds`` rounds; False, and no release, if
    its sensitivity is no bound.

    A running sum that has made all the releases it was planned for makes no more: what is public
        stays as it is.
    """
    if is_spent(wall.running):
        return True
    bound = sensitivity(params, public, wall.norm)
    if not 0.0 <= bound < np.inf:
        return False
    which = part(params, public)
    draws = wall.statistic.size * draws_of(wall.running) if wall.family > 0 else 0
    summarise(params, raw, public, wall.statistic)
    disclose(wall.running, wall.family, wall.multiplier * bound, wall.statistic, wall.release, rng)
    wall.statistic[:] = 0.0  # no exact sum outlasts its release
    for i in range(wall.base.size):
        wall.release[i] += wall.base[i]
    write(
        wall.ledger,
        wall.opened[which],
        rounds - 1,
        which,
        wall.charged,
        bound,
        wall.multiplier,
        draws,
    )
    wall.opened[which] = rounds
    publish(params, public, wall.release)
    return True


@entry
def _cross_from_python(params, raw, public, wall, rounds, rng):
    return cross(params, raw, public, wall, rounds, rng)


@kernel
def _answer(params, raw, public, arm, x, reward):
    """Take in the reward of one booked round."""
    collect(params, raw, public, arm, x, reward, 1)


@kernel
def _absorb(params, raw, public, arm, x, reward):
    """Book one round and take in its reward at once; tell whether a release is due."""
    note(params, public, arm, x, 1)
    collect(params, raw, public, arm, x, reward, 1)
    return due(params, public)


@entry
def _absorb_and_cross(params, raw, public, wall, arm, x, reward, rounds, rng):
    """``absorb``, and the release where one is due; False if its sensitivity is no bound."""
    note(params, public, arm, x, 1)
    collect(params, raw, public, arm, x, reward, 1)
    if due(params, public):
        return cross(params, raw, public, wall, rounds, rng)
    return True


@entry
def _disclose_from_python(running, family, scale, statistic, release, rng):
    disclose(running, family, scale, statistic, release, rng)


@entry
def _see(params, view, seen, rng):
    see(params, view, seen, rng)


class Steps(NamedTuple):
    """The steps of one algorithm."""

    decide: Kernel
    advance: Kernel
    answer: Kernel
    absorb: Kernel
    absorb_and_cross: Kernel
    cross: Kernel
    cross_inside: Kernel  # the same, compiled into the loops that call it
    see: Kernel
    disclose: Kernel  # the channel alone


_bound: dict[tuple[Kernels, bool], Steps] = {}


def steps_of(kernels: Kernels, *, noisy: bool = True) -> Steps:
    """The steps bound to an algorithm; compiled at their first call, once per algorithm.

    Those that are not ``noisy`` serve the open channel only, and take None for a generator, which
    spares some microseconds a call.
    """
    key = (kernels, noisy)
    if key not in _bound:
        k = kernels._asdict()

        def fill(template: Kernel, *names: str, **others: Kernel) -> Kernel:
            return bind(template, **{name: k[name] for name in names}, **others)

        channel = disclose if noisy else pass_on
        parts = ("sensitivity", "part", "summarise", "publish")
        inside = fill(_cross, *parts, disclose=channel)
        _bound[key] = Steps(
            decide=fill(_decide, "prepare", "choose", "hold"),
            advance=fill(_advance, "note", "due"),
            answer=fill(_answer, "collect"),
            absorb=fill(_absorb, "note", "collect", "due"),
            absorb_and_cross=fill(_absorb_and_cross, "note", "collect", "due", cross=inside),
            cross=bind(_cross_from_python, cross=inside),
            cross_inside=inlined(
                bind(_cross, **{name: inlined(k[name]) for name in parts}, disclose=channel)
            ),
            see=fill(_see, "see"),
            disclose=bind(_disclose_from_python, disclose=channel),
        )
    return _bound[key]
