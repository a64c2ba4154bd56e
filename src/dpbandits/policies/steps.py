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

choose = hold_rounds = record_pull = accumulate = release_due = partition = sensitivity = (
    summarise
) = publish = cross = preprocess_contexts = prepare = unbound


@entry
def _decide(params, public, contexts, rng):
    """The next arm, its propensity, and for how many rounds it stands."""
    prepare(params, public, contexts, rng)
    arm, propensity = choose(params, public, contexts, rng)
    return arm, propensity, hold_rounds(params, public, arm)


@kernel
def _advance(params, public, arm, x, n):
    """Book n rounds of an arm; tell whether a release is due."""
    record_pull(params, public, arm, x, n)
    return release_due(params, public)


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
    which = partition(params, public)
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
    accumulate(params, raw, public, arm, x, reward, 1)


@kernel
def _absorb(params, raw, public, arm, x, reward):
    """Book one round and take in its reward at once; tell whether a release is due."""
    record_pull(params, public, arm, x, 1)
    accumulate(params, raw, public, arm, x, reward, 1)
    return release_due(params, public)


@entry
def _absorb_and_cross(params, raw, public, wall, arm, x, reward, rounds, rng):
    """``absorb``, and the release where one is due; False if its sensitivity is no bound."""
    record_pull(params, public, arm, x, 1)
    accumulate(params, raw, public, arm, x, reward, 1)
    if release_due(params, public):
        return cross(params, raw, public, wall, rounds, rng)
    return True


@entry
def _disclose_from_python(running, family, scale, statistic, release, rng):
    disclose(running, family, scale, statistic, release, rng)


@entry
def _see(params, contexts, seen, rng):
    preprocess_contexts(params, contexts, seen, rng)


class Steps(NamedTuple):
    """The steps of one algorithm."""

    decide: Kernel
    advance: Kernel
    answer: Kernel
    absorb: Kernel
    absorb_and_cross: Kernel
    cross: Kernel
    cross_inside: Kernel  # the same, compiled into the loops that call it
    preprocess_contexts: Kernel
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
        parts = ("sensitivity", "partition", "summarise", "publish")
        inside = fill(_cross, *parts, disclose=channel)
        _bound[key] = Steps(
            decide=fill(_decide, "prepare", "choose", "hold_rounds"),
            advance=fill(_advance, "record_pull", "release_due"),
            answer=fill(_answer, "accumulate"),
            absorb=fill(_absorb, "record_pull", "accumulate", "release_due"),
            absorb_and_cross=fill(
                _absorb_and_cross, "record_pull", "accumulate", "release_due", cross=inside
            ),
            cross=bind(_cross_from_python, cross=inside),
            cross_inside=inlined(
                bind(_cross, **{name: inlined(k[name]) for name in parts}, disclose=channel)
            ),
            preprocess_contexts=fill(_see, "preprocess_contexts"),
            disclose=bind(_disclose_from_python, disclose=channel),
        )
    return _bound[key]
