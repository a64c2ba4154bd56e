"""The kernels of linear models with private features; see ``model``."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np

from ...kernel import Generator, Matrix, Vector, kernel, outlined
from ...policies import Kernels
from ...protocol import Row, nothing_to_note
from ..bases.contextual import within_bound
from ..bases.linear import block_of, estimate, model_of, on_grid, sensitivity
from ..bases.schedules import next_release
from ..bases.sums import summarise
from ..maths.ridge import (
    dot,
    least_divergent_at_once,
    most_optimistic_at_once,
    prepare_normals,
    shape_draw,
)
from .model import CLOCK, FACTS, Params, Public, Raw, init, regress_all, statistic_size

_ROOT = math.sqrt(2.0)


@kernel
def add_record(params: Params, statistic: Vector, arm: int, x: Vector, reward: float) -> None:
    """Add [w x r ; svec(x x^T)] of one record, to the block of its model."""
    d, grid = x.size, params.grid
    total = statistic[block_of(model_of(params, arm), statistic_size(d))]
    k = 2 * d
    for i in range(d):
        total[i] += on_grid(params.weight * x[i] * reward, grid)
        total[d + i] += on_grid(params.diagonal * x[i] * x[i], grid)
        for j in range(i + 1, d):
            total[k] += on_grid(_ROOT * x[i] * x[j], grid)
            k += 1


@outlined
def accumulate(params: Params, raw: Raw, arm: int, x: Vector, reward: float, n: int) -> None:
    add_record(params, raw.total, arm, x, reward)


@kernel
def record_pull(params: Params, public: Public, arm: int, x: Row, n: int) -> None:
    public.clock[CLOCK.rounds] += n


@kernel
def record_batch(params: Params, public: Public, arm: int, x: Row, n: int) -> None:
    """``record_pull`` of a sum, which stands for all people of a batch: the clock counts people."""
    public.clock[CLOCK.rounds] += n * params.batch


@kernel
def release_due(params: Params, public: Public) -> bool:
    return public.clock[CLOCK.rounds] >= public.clock[CLOCK.next]


@kernel
def close(params: Params, public: Public, memo: Vector) -> None:
    clock = public.clock
    # From where it was planned, which is the number of rounds: what waits is not recorded.
    planned = clock[CLOCK.next]
    clock[CLOCK.next] = next_release(planned, params.batch, params.growth, params.longest)


@kernel
def publish(params: Params, public: Public, memo: Vector, release: Vector) -> None:
    clock = public.clock
    clock[CLOCK.releases] += 1
    noises = float(clock[CLOCK.releases]) if params.adds_up else 1.0
    regress_all(params, public, release, noises)


@kernel
def report_due(params: Params, public: Public) -> bool:
    """``release_due`` where every record arrives with noise of its own."""
    return public.clock[CLOCK.rounds] > public.clock[CLOCK.releases]


@kernel
def publish_reports(params: Params, public: Public, memo: Vector, release: Vector) -> None:
    """``publish`` for sums of noisy reports: regresses on them once in a batch."""
    clock = public.clock
    clock[CLOCK.releases] += 1
    if release_due(params, public):
        close(params, public, memo)
        regress_all(params, public, release, float(clock[CLOCK.releases]))


@kernel
def accumulate_report(params: Params, raw: Raw, arm: int, x: Vector, reward: float, n: int) -> None:
    """A report, or a sum of many, stands in the place of the features, and holds everything."""
    for i in range(raw.total.size):
        raw.total[i] += x[i]


@kernel
def choose_optimistic(
    params: Params, public: Public, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The arm of highest <x, estimate> + width.  Nothing of the contexts is written anywhere."""
    facts, believed, inverse = public.facts, public.estimate, public.inverse
    longest, radius, gap = facts[FACTS.longest], facts[FACTS.radius], facts[FACTS.gap]
    bias = facts[FACTS.bias]
    return most_optimistic_at_once(contexts, believed, inverse, longest, radius, gap, bias), 1.0


@kernel
def shape_sample(params: Params, public: Public, m: int) -> None:
    """Make a model's theta, from N(estimate, s^2 V^-1 + v^2 V^-2), of standard normal variates in
    its sample and in the working memory.
    """
    believed = public.estimate[block_of(m, params.dimension)]
    scatter = params.radius_scale * params.subgaussian
    spread = params.radius_scale * public.facts[FACTS.spread, m]
    sample, noise = public.sample[m], public.sample[params.n_models]
    shape_draw(believed, public.factor[m], public.inverse[m], scatter, spread, sample, noise)


@kernel
def prepare_sample(params: Params, public: Public, contexts: Row, rng: Generator) -> None:
    """``prepare``: every theta, before anything is seen; without a generator, ``drawing`` has drawn
    them.
    """
    if rng is not None:
        for m in range(params.n_models):
            prepare_normals(public.sample[m], public.sample[params.n_models], rng)
            shape_sample(params, public, m)


@kernel
def choose_sampled(
    params: Params, public: Public, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        index = dot(contexts[a], public.sample[model_of(params, a)])
        if index > best:
            best, arm = index, a
    return arm, np.nan


@kernel
def nothing_known(public: Public) -> bool:
    """Whether no release has yet given values for rewards, not even noise."""
    return not np.any(public.estimate)


@kernel
def prepare_coins(params: Params, public: Public, contexts: Row, rng: Generator) -> None:
    """``prepare`` while nothing is known: every theta from N(0, I), as in ``prepare_sample``."""
    if rng is not None and nothing_known(public):
        for m in range(params.n_models):
            for i in range(params.dimension):
                public.sample[m, i] = rng.standard_normal()


@kernel
def choose_divergent(
    params: Params, public: Public, contexts: Matrix, rng: Generator
) -> tuple[int, float]:
    """The arm of least index: see *IMED* in ``model``.  No context is written anywhere.

    Before the first release the index would send all people to one arm, for a batch or longer.
    Instead each gets the best arm for a random theta, drawn by coins that do not depend on any
    record.  Hence all directions are tried.
    """
    if nothing_known(public):
        return choose_sampled(params, public, contexts, rng)
    facts, believed, inverse = public.facts, public.estimate, public.inverse
    longest, scatter, noise = facts[FACTS.longest], facts[FACTS.radius], facts[FACTS.gap]
    bias, rounds = facts[FACTS.bias], float(public.clock[CLOCK.rounds])
    arm = least_divergent_at_once(
        params, contexts, believed, inverse, longest, scatter, noise, bias, rounds
    )
    return arm, 1.0


OPTIMISTIC = Kernels(
    init=init,
    preprocess_contexts=within_bound,
    choose=choose_optimistic,
    record_pull=record_pull,
    accumulate=accumulate,
    release_due=release_due,
    sensitivity=sensitivity,
    close=close,
    summarise=summarise,
    publish=publish,
    estimate=estimate,
)
DIVERGENT = replace(OPTIMISTIC, prepare=prepare_coins, choose=choose_divergent)
SAMPLED = replace(OPTIMISTIC, prepare=prepare_sample, choose=choose_sampled)


@cache
def on_arrival(kernels: Kernels) -> Kernels:
    """These kernels for records that arrive at the server with noise of their own."""
    return replace(kernels, release_due=report_due, close=nothing_to_note, publish=publish_reports)


@cache
def of_reports(kernels: Kernels) -> Kernels:
    """These kernels for a server that gets reports instead of records."""
    return replace(on_arrival(kernels), accumulate=accumulate_report)


@cache
def of_batches(kernels: Kernels) -> Kernels:
    """These kernels for a server that gets sums of whole batches instead of records."""
    return replace(kernels, record_pull=record_batch, accumulate=accumulate_report)
