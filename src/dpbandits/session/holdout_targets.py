"""Targets of a holdout: other policies, whose values held-out people tell.

``pull`` is told which arm each target would have given to a person.  Held-out people get each of
the K arms with probability 1 / K.  A batch is n held-out people to whom all arms were open.  Its
release is one vector: for each arm the sum of rewards of people who got it, and for each target the
sum of rewards of people who got its arm.

Guarantee:

* Protected: one person's reward, or all of a user's with ``max_rounds``; adjacency as in
  ``holdout``.
* Public, and equal for both neighbours: the arms that people got, and the arms of the targets.  The
  latter may depend on contexts and on releases.
* Sensitivity: a record enters the sum of its arm, and at most the q sums of the targets, each with
  the factor 1.  Another reward moves each of these by at most hi - lo.  That is

      (hi - lo) sqrt(1 + q)  in L2,        (hi - lo) (1 + q)  in L1,

  and as much where all targets agree with the arm.
* Composition: a record is in one release, so batches compose in parallel.  Of a user there is at
  most one record in a release, as in every policy.
* Secure noise: sums have multiples of the grid as they are.

**Values.**  A target's value v is the mean reward of people like those who came, if each gets the
target's arm.  The arm A of a held-out person is drawn when the context, all potential rewards and
the target's arm t are fixed.  So whether A = t has probability 1 / K, and is independent of these,
and of the same events of all other people.  Given these events of a whole batch, each reward of a
person with A = t has the conditional mean that it had without them, which is v.  So the people with
A = t are to the target what the people of an arm are to that arm: the lemma of
``inference.mixture`` holds, with the number of these people as the length of the batch.  The mean
of their rewards is the self-normalised estimate (SNIPS), because all weights are K or 0.

**Differences.**  A record may be in the sums of two targets, so their evidence is not multiplied.
The interval of a difference has the ends of both intervals, which hold together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..kernel import Vector, kernel
from ..protocol import Row, Statistic
from .exchange import Made
from .holdout import KERNELS, HoldoutParams


class TargetsRaw(NamedTuple):
    """The private side."""

    total: np.ndarray  # (K + q,) sums of the running batch: of arms, and of targets


class TargetsPublic(NamedTuple):
    """The public side."""

    fresh: np.ndarray  # (1,) people in the running batch
    matched: np.ndarray  # (q,) how many of them got the target's arm


def init(params: HoldoutParams) -> tuple[TargetsRaw, TargetsPublic]:
    """Both sides, empty."""
    q = params.targets
    raw = TargetsRaw(np.zeros(len(params.weights) + q))
    return raw, TargetsPublic(np.zeros(1, np.int64), np.zeros(q))


def matches(arms: Sequence[int], n_arms: int) -> np.ndarray:
    """For each arm that may be drawn, shape (K, q), whether it is a target's arm: 1 or 0."""
    found = np.zeros((n_arms, len(arms)))
    found[list(arms), range(len(arms))] = 1.0
    return found


@kernel
def record_pull(params: HoldoutParams, public: TargetsPublic, arm: int, x: Row, n: int) -> None:
    """Count a person in the batch, and for the targets with that arm."""
    public.fresh[0] += n
    for j in range(public.matched.size):
        public.matched[j] += n * x[j]


@kernel
def accumulate(
    params: HoldoutParams, raw: TargetsRaw, arm: int, x: Row, reward: float, n: int
) -> None:
    """The sums of the arm, and of the targets with that arm."""
    raw.total[arm] += reward
    for j in range(x.size):
        raw.total[params.weights.size + j] += x[j] * reward


@kernel
def release_due(params: HoldoutParams, public: TargetsPublic) -> bool:
    """Whether the batch is full."""
    return public.fresh[0] >= params.batch


@kernel
def partition(params: HoldoutParams, public: TargetsPublic) -> int:
    """All records."""
    return -1


@kernel
def sensitivity(params: HoldoutParams, public: TargetsPublic, norm: int) -> float:
    """A record is in the sum of its arm, and in at most all sums of targets."""
    sums = 1.0 + params.targets
    return params.width * (sums if norm == 1 else math.sqrt(sums))


@kernel
def close(params: HoldoutParams, public: TargetsPublic, memo: Vector) -> None:
    """Note how many people got each target's arm, and begin another batch."""
    for j in range(memo.size):
        memo[j] = public.matched[j]
    public.matched[:] = 0.0
    public.fresh[0] = 0


@kernel
def summarise(
    params: HoldoutParams, raw: TargetsRaw, public: TargetsPublic, memo: Vector, statistic: Vector
) -> None:
    """All sums."""
    for i in range(statistic.size):
        statistic[i] = raw.total[i]
    raw.total[:] = 0.0


@kernel
def restart(params: HoldoutParams, raw: TargetsRaw, public: TargetsPublic) -> None:
    """The batch whose rewards were lost begins anew."""
    public.fresh[0] = 0
    public.matched[:] = 0.0


KERNELS_WITH_TARGETS = replace(
    KERNELS,
    init=init,
    record_pull=record_pull,
    accumulate=accumulate,
    release_due=release_due,
    partition=partition,
    sensitivity=sensitivity,
    close=close,
    summarise=summarise,
    restart=restart,
)


def statistic_with_targets(
    params: HoldoutParams, reward_range: tuple[float, float], moved: float
) -> Statistic:
    """The vector of a batch, which a record moves by at most ``moved``."""
    lo, hi = reward_range
    return Statistic(
        max_sensitivity=moved,
        max_abs_contribution=max(-lo, hi),
        size=len(params.weights) + params.targets,
        memo=params.targets,
        max_records=params.batch,
        sums_of="arms",
    )


def with_targets(made: Made, n_arms: int) -> Made:
    """A release whose batches include those of the targets, numbered after the arms."""
    known = [known for _, rounds, known in made.batches if rounds]
    # Of a batch without rounds nothing is read.
    began = min(known, default=0)
    own = [(n_arms + j, int(n), began) for j, n in enumerate(made.memo)]
    return made._replace(batches=(*made.batches, *own))
