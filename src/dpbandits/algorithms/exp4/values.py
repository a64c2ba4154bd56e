"""EXP4 and its releases, as values: exponential weights on experts.

Experts advise with a probability for every arm.  The arm is drawn from the mixture Q of their
advice; its loss, divided by Q, estimates what every expert would have lost.  A reward r in (lo, hi)
is a loss (hi - r) / (hi - lo) in [0, 1].

Guarantee: the reward of one person is protected.  Advice is public, and so are the arms and Q,
which come from earlier releases, advice and exploration.  What crosses the wall, and its
sensitivity, differ:

* ``ExpertsLocal``: every reward by itself, unweighed.  A record moves it by at most ``hi - lo``.
* ``EXP4``: when a batch of tau rounds ends, the sum of x loss / Q(a) over the batch, one number per
  expert.  Here x are the probabilities that the experts gave the played arm a.  A record
  contributes to one batch.  It moves that sum by at most (hi - lo) |x|_2 / Q(a), which is public,
  since x, a and Q are.  The sensitivity is the largest of these in the batch, once it is over; it
  is at most sqrt(N) K / gamma.
* ``FrozenEXP4``: as ``EXP4``, but every expert's first advice in a batch stands for all of it.
  Then the K sums of loss / Q(a) over the rounds of each arm are enough.  A record moves one of
  them, by at most (hi - lo) / Q(a) <= (hi - lo) K / gamma.

Batches are disjoint sets of records, cut by counting rounds: each release may spend the whole
budget (parallel composition). A batch that the horizon cuts short is played and never released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...constraints import Constraints
from ...policies import Card, Part, Statistic
from ...privacy.channels import Gaussian
from ...rooms import papers
from ..adversarial.adversarial import PAPER
from ..adversarial.learning import LEARNER_CONSTRAINTS
from ..bases.errata import EXPERTS
from .weighing import PER_ARM, PER_EXPERT, ROUNDED_UP, EXP4Params

LARGEST_MIXING = 0.5  # of which the proofs of Theorems 6 and 8 speak
_GRID = 400  # values of eta, and of tau, among which the best ones are found


class Tuning(NamedTuple):  # how EXP4 is run
    batch: int  # tau
    rate: float  # eta
    mixing: float  # gamma
    bound: float = math.nan  # on regret, where it is not that of ``Mixture.regret``


class Noise(NamedTuple):
    """The noise on an expert's mean loss at gamma = 1 and tau = 1; it falls with both."""

    scale: float
    variance: float  # in units of scale^2
    tail: float  # how many scales none of the draws exceeds, but with probability 1 / T


@lru_cache(maxsize=256)  # a simulation makes a policy for each run
def tune(
    n_arms: int, n_experts: int, horizon: int, noise: Noise, batch: int | None = None
) -> Tuning:
    """The tau, eta and gamma <= 1/2 of least ``exp4_regret``.

    For given tau and eta the best gamma is (2 eta v)^(1/3) with v the variance at gamma = 1, or the
    least one that keeps losses above -1 / eta.  tau and eta are searched for on a grid.

    >>> tune(10, 100, 10**6, Noise(0.0, 1.0, 1.0)).batch
    1
    """
    grid = np.unique(np.geomspace(1, horizon, _GRID).astype(np.int64))
    lengths = grid if batch is None else np.array([batch])
    rates = np.geomspace(1e-9, 1.0, _GRID)
    tau, eta = lengths[:, None].astype(float), rates[None, :]
    scale = noise.scale / tau
    gamma = np.maximum(np.cbrt(2.0 * eta * noise.variance * scale**2), eta * noise.tail * scale)
    possible = eta * noise.tail * scale <= LARGEST_MIXING
    gamma = np.minimum(gamma, LARGEST_MIXING)
    spread = np.divide(scale, gamma, out=np.zeros_like(gamma), where=gamma > 0.0)
    moment = 1.0 + n_arms / ((1.0 - gamma) * tau) + noise.variance * spread**2
    log = math.log(max(n_experts, 2))
    bound = np.where(
        possible, tau * log / eta + gamma * horizon + eta * horizon * moment + tau + 1.0, np.inf
    )
    i, j = np.unravel_index(np.argmin(bound), bound.shape)
    return Tuning(int(lengths[i]), float(rates[j]), float(gamma[i, j]))


@dataclass(frozen=True, repr=False)
class Mixture(Part, base=True):
    """Base class of EXP4's variants; constants that are None are tuned to horizon and noise."""

    card: ClassVar[Card]
    kernels: ClassVar[Any] = PER_EXPERT
    freezes: ClassVar[bool] = False  # whether advice stands for a batch
    regret: ClassVar[str] = "exp4_regret"  # in the paper's theory

    rate: float | None = None
    mixing: float | None = None

    constraints: ClassVar[Constraints] = {
        name: LEARNER_CONSTRAINTS[name] for name in ("rate", "mixing")
    }

    @property
    def secure_needs(self) -> tuple[str, str]:
        """What else ``noise="secure"`` needs, and why; empty where nothing."""
        return "", ""

    def tuning(self, policy: Any) -> Tuning:
        """The given constants, and others of least bound."""
        found = self._found(policy)
        rate = found.rate if self.rate is None else self.rate
        mixing = found.mixing if self.mixing is None else self.mixing
        batch = policy.config.get("batch") or found.batch
        return found if (batch, rate, mixing) == found[:3] else Tuning(batch, rate, mixing)

    def params(self, policy: Any) -> EXP4Params:
        """The numbers it learns with."""
        (lo, hi), tuning, slack = policy.reward_range, self.tuning(policy), self._slack(policy)
        return EXP4Params(
            n_arms=policy.n_arms,
            n_experts=policy.n_experts,
            batch=tuning.batch,
            rate=tuning.rate,
            mixing=tuning.mixing,
            width=hi - lo,
            high=hi,
            worst=policy.statistic.max_sensitivity - slack,
            slack=slack,
            grid=policy.grid if slack else 0.0,
            size=policy.statistic.size,
            held=policy.n_arms if self.freezes else 0,
        )

    def statistic(self, policy: Any) -> Statistic:
        """Sums of losses that are divided by Q."""
        (lo, hi), size = policy.reward_range, self._size(policy)
        # The least probability of an arm, by uniform play; without that there is no bound on it.
        least = self.tuning(policy).mixing / policy.n_arms or 1e-12
        worst = (hi - lo) * self._reach(policy) / policy.n_arms / least * ROUNDED_UP
        return Statistic(
            size=size,
            max_sensitivity=worst + self._slack(policy),
            max_abs_contribution=max(-lo, hi) / least,
            max_weight=2.0 / least,
        )

    def regret_bound(self, policy: Any) -> float:
        """Regret bound of the tuning, plus the cost of rounding to a grid."""
        batch, rate, mixing, bound = self.tuning(policy)
        if math.isnan(bound):
            regret = getattr(papers("theories").adversarial, self.regret)
            own = self._arguments(policy, batch, rate, mixing)
            bound = float(regret(policy.tuned_for, **own))
        return bound + self._rounding(policy) * policy.config["horizon"]

    def bound_arguments(self, policy: Any) -> dict[str, Any]:
        """Those of the regret bound, but for the horizon."""
        params, tuned_for = policy.params, policy.tuned_for
        own = self._arguments(policy, params.batch, params.rate, params.mixing)
        return {**own, "tuned_for": tuned_for, "rounding": self._rounding(policy)}

    def _arguments(self, policy: Any, batch: int, rate: float, mixing: float) -> dict[str, Any]:
        sizes = {"n_arms": policy.n_arms, "n_experts": policy.n_experts}
        tuned = {"batch": batch, "rate": rate, "mixing": mixing}
        return {**sizes, "noise": self._noise(policy), **tuned}

    def _found(self, policy: Any) -> Tuning:
        """The tuning of least regret bound."""
        sizes = policy.n_arms, policy.n_experts, policy.tuned_for
        return tune(*sizes, self._noise(policy), policy.config["batch"])

    def _noise(self, policy: Any) -> Any:
        """On an expert's mean loss at gamma = tau = 1, where records move sums farthest."""
        scale, horizon = policy.channel.multiplier * self._reach(policy), policy.tuned_for
        if isinstance(policy.channel, Gaussian):
            draws = policy.n_experts * horizon * horizon
            return Noise(scale, 1.0, math.sqrt(2.0 * math.log(draws)))
        return Noise(scale, 2.0, math.log(float(self._size(policy)) * horizon * horizon))

    def _size(self, policy: Any) -> int:
        """Of the statistic: a number for every expert."""
        return int(policy.n_experts)

    def _reach(self, policy: Any) -> float:
        """The most that a loss can move the statistic at gamma = 1: sqrt(N) K in the L2 norm."""
        return math.sqrt(policy.n_experts) * policy.n_arms

    def _slack(self, policy: Any) -> float:
        """How far rounding moves two neighbours apart: half a step each, per coordinate."""
        return policy.grid * math.sqrt(self._size(policy))

    def _rounding(self, policy: Any) -> float:
        """Loss per round from rounding rewards to the grid of secure noise."""
        lo, hi = policy.reward_range
        return (2.0 if self._slack(policy) else 1.0) * policy.grid / (hi - lo)


@dataclass(frozen=True, repr=False)
class EXP4(Mixture):
    """EXP4 on sums of batches: one release per batch, with Gaussian noise scaled to the most that
    one record of the batch can change.

    Draws from ``(1 - gamma) sum_j P_j advice_j + gamma / K`` with ``P = softmax(-eta L)``.

    Args:
        rate: eta; by default of the least regret bound.
        mixing: gamma in [0, 1]; likewise.

    When to choose: many experts whose advice changes from round to round.  Privacy costs a third of
    the power of the horizon in regret: see ``regret_bound``.

    >>> EXP4(rate=0.01)
    EXP4(rate=0.01)
    """

    card: ClassVar[Card] = Card(
        title=(
            "EXP4 on sums of batches, with noise scaled to the most that one record of the batch"
            " can change"
        ),
        source=(
            f"{PAPER}, Theorem 6, with Gaussian noise scaled to the most that one record of the"
            " batch can change"
        ),
        proof="module dpbandits.algorithms.exp4.values",
        noise=("Gaussian",),
        randomised=True,
        errata=(EXPERTS,),
    )


@dataclass(frozen=True, repr=False)
class FrozenEXP4(Mixture):
    """EXP4 with one advice per batch, on one noisy sum per arm: noise does not grow with the number
    of experts.

    The advice of the first round of a batch stands for the whole batch, and later advice in it is
    not looked at.  Regret is bounded against experts who would do the same; where advice hardly
    changes within a batch, or not at all, that is no loss.

    Args:
        rate, mixing: as of ``EXP4``.

    When to choose: many experts whose advice changes slowly, or pure differential privacy.  Rounds
    that are not recorded, because a batch waits for answers, follow the advice of their own.

    >>> FrozenEXP4(mixing=0.1)
    FrozenEXP4(mixing=0.1)
    """

    card: ClassVar[Card] = Card(
        title="EXP4 on one noisy sum per arm, with advice that stands for a batch",
        source="Auer et al. (2002), EXP4, with Laplace or Gaussian noise on one sum per arm,"
        " scaled to the most that one record of the batch can change",
        proof="module dpbandits.algorithms.exp4.values",
        noise=("Laplace", "Gaussian"),
        randomised=True,
    )
    kernels = PER_ARM
    freezes = True

    def statistic(self, policy: Any) -> Statistic:
        return replace(super().statistic(policy), memo=policy.n_arms * policy.n_experts)

    def _size(self, policy: Any) -> int:
        return policy.n_arms

    def _reach(self, policy: Any) -> float:
        return float(policy.n_arms)


class LocalEXP4(Mixture, base=True):
    """EXP4 on rewards that were randomised one by one: the learner of ``ExpertsLocal``."""

    regret = "local_exp4_regret"

    def statistic(self, policy: Any) -> Statistic:
        return Statistic.of_rewards(policy.reward_range, memo=policy.n_experts)

    def _arguments(self, policy: Any, batch: int, rate: float, mixing: float) -> dict[str, Any]:
        given = super()._arguments(policy, batch, rate, mixing)
        return {name: one for name, one in given.items() if name != "batch"}

    def _found(self, policy: Any) -> Tuning:
        """As of EXP3 with as many arms, with ln N in the place of ln K; or of Theorem 5."""
        n, horizon = policy.n_experts, policy.tuned_for
        k, t, s = float(policy.n_arms), float(horizon), self._noise(policy)
        if policy.calibration == "paper":
            found: Tuning = papers("adversarial.exp4").theorem_5(policy.n_arms, n, horizon, s)
            return found
        log, few = math.log(k * t), math.log(max(n, 2))
        rate = math.sqrt(few / (2.0 * k * t * (1.0 + 2.0 * s * s + s * log)))
        mixing = min(2.0 * rate * s * k * log, 0.5)
        bound = few / rate + 2.0 * rate * k * t * (1.0 + 2.0 * s * s) + mixing * t + 1.0
        return Tuning(1, rate, mixing, bound)

    def _slack(self, policy: Any) -> float:
        return 0.0

    def _noise(self, policy: Any) -> float:
        """The scale of the noise on a loss in [0, 1]."""
        lo, hi = policy.reward_range
        return float(policy.channel.scale(hi - lo) / (hi - lo))
