"""Learning from batches: an arm is played for tau rounds, and the learner is then told the batch's
mean loss plus noise.

This is the conversion of Faster Rates for Private Adversarial Bandits (Algorithm 1) for any learner
that stands unbounded and negative losses.  A reward r in (lo, hi) is a loss (hi - r) / (hi - lo) in
[0, 1].

What crosses the wall: when a batch ends, the *sum* of its tau rewards.  One person contributes one
reward to one batch, so a record moves one sum by at most ``hi - lo``, and batches are disjoint sets
of records, cut by counting rounds: each sum may spend the whole budget (parallel composition;
Theorem 1 of the paper).  Laplace noise of scale (hi - lo) / epsilon on the sum is noise of scale 1
/ (tau epsilon) on the mean loss, which the learner forms after the wall.  Which arm a batch plays
is drawn from earlier releases and from exploration only.  A batch that the horizon cuts short is
played and never released.

The noise on a mean loss should be no larger than a loss: tau defaults to ceil(1 / epsilon), and to
1 for epsilon >= 1.  tau = 1 with epsilon < 1 is the unbatched baseline (Tossou & Dimitrakakis 2017,
Agarwal & Singh 2017): one noise draw per record, which would protect as well if every person added
it herself.  These policies see the reward before the noise, so what they promise is central.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...kernel import Kernel, bind, kernel, unbound
from ...policies import Kernels, Policy, Statistic
from ...policies.protocol import Row, Vector, nothing_to_prepare
from ...privacy.budgets import ZCDP, ApproxDP, Budget, PureDP
from ...privacy.channels import Channel, Gaussian, Laplace
from ...validation import integer
from ..bases.sums import accumulate, sensitivity, summarise

CHANNELS: dict[type[Budget], type[Channel]] = {PureDP: Laplace, ZCDP: Gaussian, ApproxDP: Gaussian}
_LONGEST = 2**62


class BatchedParams(NamedTuple):
    n_arms: int  # that the learner chooses from
    batch: int  # rounds of one arm: tau
    width: float  # hi - lo
    high: float
    noise: float  # on a mean loss: scale (Laplace) or standard deviation (Gaussian)
    batches: int  # to tune for; 0 where the horizon is unknown
    published: bool  # the published constants
    rate: float  # eta, where it is given; else nan
    mixing: float  # gamma, likewise
    tries: int  # M, where it is given; else 0
    sigma: float  # of HTINF: a bound on the root mean square of a noisy loss


class BatchedRaw(NamedTuple):
    total: np.ndarray  # (1,) sum of the rewards of the running batch


class BatchedPublic(NamedTuple):
    losses: np.ndarray  # (K,) estimates of the arms' cumulative losses, less the smallest of them
    probability: np.ndarray  # (K,) of the next choice, for learners that know it
    memory: np.ndarray  # (1,) tries of FTPL's resampling; normaliser of the Tsallis learners
    clock: np.ndarray  # (3,)


class Clock(NamedTuple):
    """Slots of ``BatchedPublic.clock``."""

    done: int = 0  # rounds booked in the running batch
    batches: int = 1  # learned from
    arm: int = 2


class Memo(NamedTuple):
    """Slots of what is noted of a batch: as things stood when its arm was drawn."""

    arm: int = 0
    probability: int = 1  # of that arm, for learners that know it
    tries: int = 2  # of FTPL's resampling


CLOCK, MEMO = Clock(), Memo()


class Learner(NamedTuple):
    """A learner from the losses of single batches; every loss may be any finite number, negative
    ones too.

    Attributes:
        choose: the arm of the next batch, as in the protocol.
        learn: ``learn(params, public, memo, loss)``: take in the loss of the batch that ended, the
            ``clock[CLOCK.batches]``-th.
        prepare: as in the protocol.
        bound: ``bound(params, moment, tuning, batches)``: what it loses at most over so many
            batches, in expectation, against its best choice in hindsight, if losses have at most
            the second moment ``moment``.  None where nothing is proved for noisy losses.
        tuning: ``tuning(params, public)``: its constants; None for a learner that needs none.
    """

    choose: Kernel
    learn: Kernel
    prepare: Kernel = nothing_to_prepare
    bound: Callable[..., float] | None = None
    tuning: Kernel | None = None


learn = unbound


def init(params: BatchedParams) -> tuple[BatchedRaw, BatchedPublic]:
    k = params.n_arms
    public = BatchedPublic(
        losses=np.zeros(k),
        probability=np.full(k, 1.0 / k),
        memory=np.zeros(1),
        clock=np.zeros(3, np.int64),
    )
    return BatchedRaw(np.zeros(1)), public


@kernel
def hold_rounds(params: BatchedParams, public: BatchedPublic, arm: int) -> int:
    return params.batch


@kernel
def record_pull(params: BatchedParams, public: BatchedPublic, arm: int, x: Row, n: int) -> None:
    public.clock[CLOCK.done] += n
    public.clock[CLOCK.arm] = arm


@kernel
def release_due(params: BatchedParams, public: BatchedPublic) -> bool:
    return public.clock[CLOCK.done] >= params.batch


@kernel
def close(params: BatchedParams, public: BatchedPublic, memo: Vector) -> None:
    arm = public.clock[CLOCK.arm]
    memo[MEMO.arm], memo[MEMO.probability] = arm, public.probability[arm]
    memo[MEMO.tries] = public.memory[0]
    public.clock[CLOCK.done] = 0


@kernel
def publish(params: BatchedParams, public: BatchedPublic, memo: Vector, release: Vector) -> None:
    public.clock[CLOCK.batches] += 1
    learn(params, public, memo, (params.high - release[0] / params.batch) / params.width)


def conversion(learner: Learner) -> Kernels:
    """The kernels of a policy that plays in batches and learns from their noisy losses (Algorithm
    1).
    """
    return Kernels(
        init=init,
        prepare=learner.prepare,
        choose=learner.choose,
        hold_rounds=hold_rounds,
        record_pull=record_pull,
        accumulate=accumulate,
        release_due=release_due,
        sensitivity=sensitivity,
        close=close,
        summarise=summarise,
        publish=bind(publish, learn=learner.learn),
    )


class BatchedPolicy(Policy):
    """The base of policies that learn from the noisy losses of batches."""

    _horizon: int | None = None
    _length: int | None = None
    _rate: float | None = None
    _mixing: float | None = None
    _tries: int | None = None
    _sigma: float | None = None
    _published_sigma: ClassVar[float] = math.sqrt(6.0)

    def _schedule(self, horizon: int | None, batch: int | None) -> dict[str, Any]:
        """The arguments about time, checked."""
        self._horizon = None if horizon is None else integer("horizon", horizon, 1)
        self._length = None if batch is None else integer("batch", batch, 1)
        return {"horizon": self._horizon, "batch": self._length}

    @property
    def _choices(self) -> int:
        """What the learner chooses from: arms."""
        return self.n_arms

    @property
    def batch(self) -> int:
        """For how many rounds a choice stands."""
        return int(self.params.batch)

    def _statistic(self) -> Statistic:
        return Statistic.of_rewards(self.reward_range, memo=len(MEMO))

    def _params(self) -> BatchedParams:
        lo, hi = self.reward_range
        # The multiplier of Laplace noise is 1 / epsilon.  The slack keeps 1 / (1 / 49) from
        # becoming 50.
        batch = self._length or int(
            min(max(math.ceil(self.channel.multiplier * (1.0 - 1e-12)), 1), _LONGEST)
        )
        noise = self.noise_scale / (hi - lo) / batch
        published = self.calibration == "paper"
        sigma = self._sigma or (
            self._published_sigma if published else self._root_mean_square(noise)
        )
        return BatchedParams(
            n_arms=self._choices,
            batch=batch,
            width=hi - lo,
            high=hi,
            noise=noise,
            batches=0 if self._horizon is None else max(self._horizon // batch, 1),
            published=published,
            rate=math.nan if self._rate is None else self._rate,
            mixing=math.nan if self._mixing is None else self._mixing,
            tries=self._tries or 0,
            sigma=sigma,
        )

    def _root_mean_square(self, noise: float) -> float:
        """At most that of a loss in [0, 1] plus noise."""
        variance = 2.0 * noise**2 if isinstance(self.channel, Laplace) else noise**2
        return math.sqrt(1.0 + variance)
