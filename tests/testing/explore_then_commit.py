"""A small policy of two phases, which ``check_policy`` passes, and into which tests plant faults."""

from typing import ClassVar, NamedTuple

import numpy as np

from dpbandits.algorithms.bases.sums import accumulate, sensitivity, summarise
from dpbandits.constraints import Integer
from dpbandits.kernel import kernel
from dpbandits.policies import Card, Kernels, Policy, Statistic, register


class ETCParams(NamedTuple):  # public, and never changes
    n_arms: int
    batch: int
    width: float  # hi - lo


class ETCRaw(NamedTuple):  # the private side
    total: np.ndarray  # (1,) sum of the rewards of the running batch


class ETCPublic(NamedTuple):  # the public side
    mean: np.ndarray  # (K,) as released
    clock: np.ndarray  # (2,) rounds of the running batch, and the arm on trial


def init(params):
    k = params.n_arms
    return ETCRaw(np.zeros(1)), ETCPublic(np.full(k, -np.inf), np.zeros(2, np.int64))


@kernel
def choose(params, public, contexts, rng):
    on_trial = public.clock[1]
    return on_trial if on_trial < params.n_arms else public.mean.argmax(), 1.0


@kernel
def record_pull(params, public, arm, x, n):
    public.clock[0] += n


@kernel
def release_due(params, public):
    return public.clock[0] == params.batch and public.clock[1] < params.n_arms


@kernel
def close(params, public, memo):
    memo[0] = public.clock[1]  # whose batch it was
    public.clock[0] = 0
    public.clock[1] += 1


@kernel
def publish(params, public, memo, release):
    public.mean[int(memo[0])] = release[0] / params.batch


@register(n_arms=3, batch=20)  # a small instance, to be checked
class ExploreThenCommit(Policy):
    """Tries every arm on ``batch`` people, and then plays the best.

    Args:
        n_arms: number of arms.
        budget: of any notion, or None.
        batch: people who try an arm.
        **options: see ``Options``.

    When to choose: as an example.
    """

    card = Card(
        title="explore, then commit, on noisy sums",
        source="an example of the tests",
        proof="each record is in one sum, which it moves by at most hi - lo",
        noise=("Laplace", "Gaussian"),
    )
    kernels = Kernels(
        init=init,
        choose=choose,
        record_pull=record_pull,
        accumulate=accumulate,
        release_due=release_due,
        sensitivity=sensitivity,
        close=close,
        summarise=summarise,
        publish=publish,
    )

    constraints: ClassVar = {"batch": Integer(1)}  # checked before the constructor

    def __init__(self, n_arms, *, budget, batch=100, **options):
        super().__init__({"n_arms": n_arms, "batch": batch}, budget=budget, **options)

    def _params(self):
        lo, hi = self.reward_range
        return ETCParams(self.n_arms, self.config["batch"], hi - lo)

    def _statistic(self):
        return Statistic.of_rewards(self.reward_range, memo=1)
