"""Booking rounds: ``record_pull`` is linear, and what is taken back has never been."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from suite import EPISODIC, Case, over

from dpbandits.kernel import kernel
from dpbandits.policies import Kernels
from dpbandits.testing.walk import ROUNDS, Release, Walk

RELEASES = 8
BY_NAME = {case.name: case for case in EPISODIC}

record_pull = BY_NAME["AdaCUCB"].cls.kernels.record_pull


class Detour(Walk):
    """Takes back the last round of every choice, and books it again: as a person does who got
    another arm than she was meant to.
    """

    def call(self, name: str, *arguments: Any) -> Any:
        answer = super().call(name, *arguments)
        if name == "record_pull":
            for n in (-1, 1):
                super().call(name, *arguments[:-1], n)
        return answer


def played(
    kind: type[Walk], case: Case, kernels: Kernels | None = None
) -> tuple[list[int], list[Release], Any]:
    sums = np.concatenate([[0.0], np.cumsum(np.random.default_rng(1).random(ROUNDS))])
    walk = kind(case.make(), seed=3, kernels=kernels)
    releases = walk.until(RELEASES, lambda first, arm, n: [float(sums[first + n] - sums[first])])
    return walk.arms.tolist(), releases, walk.public


def numbers(side: Any) -> np.ndarray:
    """Everything in nested tuples of arrays, but for working memory."""
    named = zip(getattr(side, "_fields", [""] * len(side)), side, strict=True)
    parts = [
        numbers(held) if isinstance(held, tuple) else np.ravel(held).astype(float)
        for name, held in named
        if name not in ("scratch", "cache")
    ]
    return np.concatenate(parts)


def same(case: Case, kernels: Kernels | None = None) -> bool:
    (arms, straight, public), (others, detoured, detour) = (
        played(kind, case, kernels) for kind in (Walk, Detour)
    )
    return (
        arms == others
        and all(one[:-1] == other[:-1] for one, other in zip(straight, detoured, strict=True))
        and np.allclose(numbers(public), numbers(detour), rtol=1e-9, atol=1e-9)
    )


# Policies that learn at once book a round when its answer comes, and take none back.
@over(EPISODIC, short=BY_NAME)
def test_a_round_that_is_taken_back_has_never_been(case: Case):
    assert same(case)


@kernel
def counts_what_is_taken_back(params, public, arm, x, n):
    record_pull(params, public, arm, x, abs(n))


def test_a_kernel_that_counts_what_is_taken_back_is_caught():
    case = BY_NAME["AdaCUCB"]
    planted = replace(case.make().kernels, record_pull=counts_what_is_taken_back)
    assert not same(case, planted)
