"""DP-SE: successive elimination on privately released sums (Sajed & Sheffet 2019).

In epoch e every surviving arm is played equally often, until arms that differ by 2^-e can be told
apart.  Then the clearly worse arms are dropped.

The end of an epoch releases the vector of the arms' reward sums, with independent noise in every
coordinate.  (Public code draws one scalar for all arms, which cancels in every comparison and
protects nothing.) One person contributes one reward to one coordinate of one epoch's vector.  So a
record moves it by at most ``hi - lo`` in the L1 norm, and epochs are disjoint sets of records. The
length of an epoch depends on which arms survived, hence on earlier releases only.

A best arm is dropped with a probability of at most ``failure_probability`` b.  In epoch e, by
Hoeffding's inequality, the sampling error of a mean exceeds h with probability at most b / (4 |S|
e^2).  The error of the noise exceeds c with at most the same probability.  Where no error does, a
best arm trails by at most 2 h + 2 c.  Over |S| arms and all epochs that adds up to b pi^2 / 12.  So
a search for the best arm may stop when one arm is left.

The rounds of an arm in an epoch are a batch of people who all play it.  So its sum may come from a
shuffler, with the noise that their devices have added (Chowdhury & Zhou 2023, Distributed
Differential Privacy in Multi-Armed Bandits).  Devices take no batch above some size, and an epoch
is then cut to it.  h and c follow from the rounds that an epoch really has, so the bound on the
probability of dropping a best arm stays, but arms that are closer than this epoch can tell stay,
too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from ...algorithms.bases.quotas import CLOCK, FOREVER, choose, hold_rounds, record_pull, release_due
from ...algorithms.bases.shuffled import ShuffledPolicy, shuffled_card
from ...algorithms.bases.sums import accumulate_by_arm, sensitivity, summarise
from ...constraints import Constraints, Integer, Real
from ...errors import ArgumentError
from ...kernel import Vector, kernel
from ...policies import ArmEstimates, Card, Erratum, Kernels, Options, Policy, Statistic, register
from ...privacy.budgets import PureDP

_ERRATUM = Erratum(
    "DP-SE",
    (
        "The noise must be independent for every arm.",
        "One public implementation draws a single Laplace variable for the whole vector, which"
        " cancels in every comparison of arms: it is not private.",
        "Here each coordinate has its own draw",
    ),
)


class EliminationParams(NamedTuple):
    n_arms: int
    failure_probability: float
    width: float  # hi - lo
    noise_scale: float  # of the Laplace noise on a sum
    longest: int  # rounds of an arm in an epoch


class EliminationRaw(NamedTuple):
    total: np.ndarray  # (K,) reward sums of the running epoch


class EliminationPublic(NamedTuple):
    alive: np.ndarray  # (K,) bool
    mean: np.ndarray  # (K,) released in the last epoch in which the arm was alive
    # (K,) rounds of each arm in the running epoch, the same for all that are alive
    goal: np.ndarray
    played: np.ndarray  # (K,) how many of them are over
    clock: np.ndarray  # (2,) of the epoch, see ``quotas``


@kernel
def _plan_epoch(params: EliminationParams, public: EliminationPublic) -> None:
    """Lay out the next epoch: ceil(1 + max(32 ln(8 |S| e^2 / b) / D^2, 8 s ln(4 |S| e^2 / b) / (w
    D))) rounds per arm, D = 2^-e, but at most ``longest``.
    """
    clock, alive = public.clock, 0
    clock[CLOCK.phase] += 1
    for a in range(params.n_arms):
        alive += public.alive[a]
    rounds = np.int64(FOREVER)
    if alive > 1:
        gap = 2.0 ** -clock[CLOCK.phase]
        crowd = alive * clock[CLOCK.phase] ** 2 / params.failure_probability
        sampling = 32.0 * np.log(8.0 * crowd) / gap**2
        privacy = 8.0 * np.log(4.0 * crowd) * params.noise_scale / (params.width * gap)
        rounds = np.int64(min(np.ceil(1.0 + max(sampling, privacy)), float(params.longest)))
    for a in range(params.n_arms):
        public.goal[a] = rounds if public.alive[a] else 0
        public.played[a] = 0
    clock[CLOCK.left] = alive * rounds


def init(params: EliminationParams) -> tuple[EliminationRaw, EliminationPublic]:
    k = params.n_arms
    public = EliminationPublic(
        alive=np.ones(k, np.bool_),
        mean=np.zeros(k),
        goal=np.zeros(k, np.int64),
        played=np.zeros(k, np.int64),
        clock=np.zeros(2, np.int64),
    )
    _plan_epoch(params, public)
    return EliminationRaw(np.zeros(k)), public


@kernel
def publish(
    params: EliminationParams, public: EliminationPublic, memo: Vector, release: Vector
) -> None:
    """Drop arms that trail the best by more than 2 h + 2 c, of sampling and Laplace error."""
    n, alive, best = 0, 0, -np.inf
    for a in range(params.n_arms):
        if public.alive[a]:
            alive += 1
            n = public.goal[a]
            public.mean[a] = release[a] / n
            best = max(best, public.mean[a])
    crowd = alive * public.clock[CLOCK.phase] ** 2 / params.failure_probability
    sampling = params.width * np.sqrt(np.log(8.0 * crowd) / (2.0 * n))
    privacy = params.noise_scale * np.log(4.0 * crowd) / n
    for a in range(params.n_arms):
        if best - public.mean[a] > 2.0 * (sampling + privacy):
            public.alive[a] = False
    _plan_epoch(params, public)


@kernel
def stop(params: EliminationParams, public: EliminationPublic) -> bool:
    """Whether one arm is left."""
    alive = 0
    for a in range(params.n_arms):
        alive += public.alive[a]
    return alive == 1


@kernel
def recommend(params: EliminationParams, public: EliminationPublic) -> int:
    """The arm of highest mean among those that are left, of equals the first."""
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        if public.alive[a] and public.mean[a] > best:
            best, arm = public.mean[a], a
    return arm


def _planned(horizon: int, failure_probability: float | None) -> dict[str, Any]:
    """The horizon of the policy, and its failure probability, where they are given."""
    planned: dict[str, Any] = {"horizon": horizon}
    return planned | ({} if failure_probability is None else _errs(failure_probability))


def _errs(failure_probability: float) -> dict[str, Any]:
    return {"failure_probability": failure_probability}


_FAILURE = Real(0.0, 1.0, strict=True)


class _Elimination(Policy):
    """The base of all elimination policies."""

    constraints: ClassVar[Constraints] = {
        "horizon": Integer(2),
        "failure_probability": _FAILURE | None,
    }

    @staticmethod
    def _arm_estimates(params: EliminationParams, public: EliminationPublic) -> ArmEstimates:
        released = public.clock[CLOCK.phase] > 1  # the first epoch
        return ArmEstimates(np.where(released, public.mean, np.nan), alive=public.alive)

    def _params(self) -> EliminationParams:
        (lo, hi), config = self.reward_range, self.config
        error = config.get("failure_probability") or 1.0 / config["horizon"]
        longest = FOREVER // self.n_arms  # the rounds of all arms together fit into an integer
        return EliminationParams(self.n_arms, error, hi - lo, self.noise_scale, longest)

    def _statistic(self) -> Statistic:
        return Statistic.of_rewards(self.reward_range, size=self.n_arms, sums_of="arms")


@register(n_arms=3, horizon=10_000)
class DPSE(_Elimination):
    """Successive elimination with Laplace noise on each arm's sum (Sajed & Sheffet 2019).

    Args:
        n_arms: number of arms.
        horizon: planned number of rounds; sets the failure probability, nothing else: it may be
            exceeded.
        budget: ``PureDP``; None for the non-private counterpart.
        failure_probability: of dropping the best arm; 1 / horizon unless given.
        **options: see ``Options``.

    When to choose: few decisions to switch arms matter more than regret; its epochs are long.

    Example:
        >>> policy = DPSE(3, horizon=10_000, budget=PureDP(1.0), seed=1)
        >>> policy.pull().arm
        0
    """

    card = Card(
        title="Successive elimination on noisy sums",
        source="Sajed & Sheffet (2019), DP-SE; parallel composition: Azize & Basu (2024),"
        " Appendix D",
        noise=("Laplace",),
        errata=(_ERRATUM,),
    )
    kernels = Kernels(
        init=init,
        choose=choose,
        hold_rounds=hold_rounds,
        record_pull=record_pull,
        accumulate=accumulate_by_arm,
        release_due=release_due,
        sensitivity=sensitivity,
        summarise=summarise,
        publish=publish,
    )

    def __init__(
        self,
        n_arms: int,
        *,
        horizon: int,
        budget: PureDP | None,
        failure_probability: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        own = {"n_arms": n_arms, **_planned(horizon, failure_probability)}
        super().__init__(own, budget=budget, **options)


@register(n_arms=3, horizon=10_000)
class DPSESDP(_Elimination, ShuffledPolicy):
    """The successive elimination of ``DPSE`` on sums from a shuffler (Chowdhury & Zhou 2023).

    With ``messages=True`` this is the server, as ``AdaPUCBSDP`` is.  A batch contains all rounds of
    an arm in an epoch.  The batches end when one arm is left.

    Args:
        n_arms, horizon, budget, failure_probability, **options: see ``DPSE``.
        messages: whether this is the server of a shuffler.  Batches then have at most 100,000
            people: devices and shufflers take no larger ones.  So arms whose means are closer than
            such an epoch can tell are all played on, and no bound on regret is proved.
        dropout: see ``AdaPUCBSDP``.

    When to choose: no party is trusted with rewards, and batches should be few and large.

    Example:
        >>> server = DPSESDP(3, horizon=10_000, budget=PureDP(1.0), messages=True, seed=1)
        >>> server.device().arm, server.protocol.batch
        (0, 1587)
    """

    card = shuffled_card(DPSE.card)
    kernels = DPSE.kernels

    def __init__(
        self,
        n_arms: int,
        *,
        horizon: int,
        budget: PureDP | None,
        failure_probability: float | None = None,
        messages: bool = False,
        dropout: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        own = {"n_arms": n_arms, **_planned(horizon, failure_probability)}
        own |= self._shuffled(messages, dropout, options)
        super().__init__(own, budget=budget, **options)
        _, public = init(super()._params())
        if messages and n_arms > 1 and (first := public.goal[0]) > self._largest_batch:
            raise ArgumentError(
                f"budget must be larger with messages=True, got {budget!r}: the first epoch would"
                f" have batches of {first} people, and devices take at most {self._largest_batch}",
                "budget",
            )

    def _params(self) -> EliminationParams:
        fitting: EliminationParams = self._fit_for_devices(super()._params())
        return fitting


@register(n_arms=3, failure_probability=0.1)
class DPSEBAI(_Elimination):
    """The best arm with few errors: the successive elimination of ``DPSE``, until one arm is left.

    Args:
        n_arms: number of arms.
        failure_probability: of recommending another than the best arm.
        budget: ``PureDP``; None for the non-private counterpart.
        **options: see ``Options``.

    When to choose: to compare with; ``MergedTopTwo`` stops sooner.

    Example:
        >>> search = DPSEBAI(2, failure_probability=0.05, budget=PureDP(1.0), seed=1)
        >>> while not search.stopped:
        ...     decision = search.pull()
        ...     _ = search.update(float(decision.arm == 1))
        >>> search.recommendation
        1
    """

    card = replace(DPSE.card, title="Best arm by successive elimination on noisy sums")
    kernels = replace(DPSE.kernels, stop=stop, recommend=recommend)
    constraints: ClassVar[Constraints] = {"failure_probability": _FAILURE}

    def __init__(
        self,
        n_arms: int,
        *,
        failure_probability: float,
        budget: PureDP | None,
        **options: Unpack[Options],
    ) -> None:
        own = {"n_arms": n_arms, **_errs(failure_probability)}
        super().__init__(own, budget=budget, **options)
