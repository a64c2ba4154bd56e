"""EXP4 behind a wall: exponential weights on experts, from one loss per round.

Experts advise with a probability for every arm.  The arm is drawn from the mixture Q of their advice; its loss, divided by Q, estimates
what every expert would have lost.  A reward r in (lo, hi) is a loss (hi - r) / (hi - lo) in [0, 1].  Advice is public, and so are the
arms and Q, which come from earlier releases, advice and exploration.  What crosses the wall differs:

* ``LocalEXP4``: every reward by itself, before it is weighed.  A record moves it by at most ``hi - lo``.
* ``EXP4`` and ``BatchedEXP4``: when a batch of tau rounds ends, the sum of x loss / Q(a) over the batch, one number per expert, with x the
  probabilities that the experts gave the arm a that was played.  A record contributes to one batch; it moves that sum by at most
  (hi - lo) |x|_2 / Q(a), which is public, since x, a and Q are.  The largest of these in the batch, once it is over, is the
  sensitivity; it is at most sqrt(N) K / gamma.
* ``FrozenEXP4``: the same, but every expert's first advice in a batch stands for all of it.  Then the sums of loss / Q(a) over the rounds
  of each arm say as much, and there are only K: a record moves one of them, by at most (hi - lo) / Q(a) <= (hi - lo) K / gamma.

Batches are disjoint sets of records, cut by counting rounds, so that each release may spend the whole budget (parallel composition).
A batch that the horizon cuts short is played and never released.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Unpack

import numpy as np

from ..errors import ArgumentError
from ..kernel import Kernel, bind, entry, kernel, unbound
from ..policies import AdvicePolicy, Card, Kernels, Options, register
from ..privacy.budgets import ZCDP, ApproxDP, Budget, PureDP
from ..privacy.channels import Gaussian, Laplace, LaplaceVector
from ..validation import choice, integer, real
from .learners.local import LocalPolicy
from .learners.mixtures import Noise, Tuning, mixed, regret_bound, tune
from .learners.simplex import draw, exponential_weights, recentre

DONE = 0
LONGEST = 0
_MOST_ROUNDS = 10**12
_LEAST_MIXING = 1e-12  # where noise is in proportion to 1 / gamma
ROUNDED_UP = 1.0 + 2.0**-34  # more than rounding takes from a length of 10^5 numbers
_COMPOSED = 6.0 * (
    1.0 - math.sqrt(2.0 / 3.0)
)  # advanced composition with the constant 3 needs epsilon <= this times ln(1 / delta)


class EXP4Params(NamedTuple):
    n_arms: int
    n_experts: int
    batch: int  # tau
    rate: float  # eta
    mixing: float  # gamma
    width: float  # hi - lo
    high: float
    worst: float  # the most that any record can move the statistic
    slack: float  # by how much rounding to a grid moves it further
    grid: float  # to which increments are rounded; 0 for none


class EXP4Raw(NamedTuple):
    moment: np.ndarray  # (N,), (K,) or (1,): the statistic of the running batch


class EXP4Public(NamedTuple):
    losses: np.ndarray  # (N,) estimated cumulative losses of the experts, less the smallest of them
    probability: np.ndarray  # (N,) P, which stands for a batch
    reach: np.ndarray  # (N,) largest x / Q(a) of the running batch, by expert
    facts: np.ndarray  # (1,) largest |x|_2 / Q(a) of the running batch
    clock: np.ndarray  # (1,) int64: rounds booked in the running batch
    frozen: np.ndarray  # (K, N) the advice that stands, and
    mixture: np.ndarray  # (K,) Q from it; (0, 0) and (0,) where nothing is frozen
    scratch: np.ndarray  # (K,)


size = freeze = unbound


@entry
def _init(params):
    n, k = params.n_experts, params.n_arms
    frozen = k if freeze(params) else 0
    public = EXP4Public(
        np.zeros(n),
        np.full(n, 1.0 / n),
        np.zeros(n),
        np.zeros(1),
        np.zeros(1, np.int64),
        np.zeros((frozen, n)),
        np.full(frozen, 1.0 / k),
        np.zeros(k),
    )
    return EXP4Raw(np.zeros(size(params))), public


@kernel
def choose_mixed(params, public, view, rng):
    """A draw from Q."""
    for a in range(view.shape[0]):
        public.scratch[a] = mixed(public.probability, params.mixing, params.n_arms, view[a])
    arm = draw(public.scratch, rng.random())
    return arm, public.scratch[arm]


@kernel
def due(params, public):
    return public.clock[DONE] >= params.batch


@kernel
def note_reach(params, public, arm, x, n):
    """Count the round, and see how far a record of it moves the statistic; a round that is taken back leaves a bound behind."""
    public.clock[DONE] += n
    probability = mixed(public.probability, params.mixing, params.n_arms, x)
    squared = 0.0
    for j in range(x.size):
        weight = x[j] / probability
        squared += weight * weight
        public.reach[j] = max(public.reach[j], weight)
    public.facts[LONGEST] = max(public.facts[LONGEST], np.sqrt(squared))


@kernel
def on_grid(params, value):
    return np.rint(value / params.grid) * params.grid if params.grid > 0.0 else value


@kernel
def collect_weighed(params, raw, public, arm, x, reward, n):
    """Add x loss / Q(a), in units of rewards."""
    loss = (n * params.high - reward) / mixed(public.probability, params.mixing, params.n_arms, x)
    for j in range(x.size):
        raw.moment[j] += on_grid(params, x[j] * loss)


@kernel
def summarise(params, raw, public, statistic):
    for i in range(statistic.size):
        statistic[i] = raw.moment[i]
        raw.moment[i] = 0.0


@kernel
def sensitivity_realised(params, public, norm):
    return params.width * public.facts[LONGEST] * ROUNDED_UP + params.slack


@kernel
def sensitivity_worst(params, public, norm):
    return params.worst + params.slack


@kernel
def learn(params, public):
    """New weights for the batch to come."""
    recentre(public.losses)
    exponential_weights(public.losses, params.rate, public.probability)
    public.clock[DONE] = 0
    public.facts[LONGEST] = 0.0
    for j in range(public.reach.size):
        public.reach[j] = 0.0


@kernel
def publish_losses(params, public, release):
    for j in range(release.size):
        public.losses[j] += release[j] / (params.width * params.batch)
    learn(params, public)


# One release per expert ---------------------------------------------------------------------------------------------------


@kernel
def one_per_expert(params):
    return params.n_experts


@kernel
def nothing_frozen(params):
    return False


def _per_expert(sensitivity: Kernel, summarise: Kernel, publish: Kernel) -> Kernels:
    init = bind(_init, size=one_per_expert, freeze=nothing_frozen)
    return Kernels(init, choose_mixed, note_reach, collect_weighed, due, sensitivity, summarise, publish)


@kernel
def summarise_by_reach(params, raw, public, statistic):
    """Every coordinate in units of the most that a record of the batch can move it, so that it moves by at most 1."""
    for j in range(statistic.size):
        statistic[j] = raw.moment[j] / (params.width * public.reach[j]) if public.reach[j] > 0.0 else 0.0
        raw.moment[j] = 0.0


@kernel
def sensitivity_by_reach(params, public, norm):
    """At most 1 in each of N coordinates."""
    return np.sqrt(float(params.n_experts)) * ROUNDED_UP


@kernel
def publish_by_reach(params, public, release):
    for j in range(release.size):
        public.losses[j] += release[j] * public.reach[j] / params.batch
    learn(params, public)


# One release per arm, of frozen advice ------------------------------------------------------------------------------------


@kernel
def one_per_arm(params):
    return params.n_arms


@kernel
def advice_frozen(params):
    return True


@kernel
def prepare_frozen(params, public, view, rng):
    """At the start of a batch, keep the advice."""
    if public.clock[DONE] == 0:
        for a in range(view.shape[0]):
            for j in range(view.shape[1]):
                public.frozen[a, j] = view[a, j]
            public.mixture[a] = mixed(public.probability, params.mixing, params.n_arms, view[a])


@kernel
def choose_frozen(params, public, view, rng):
    arm = draw(public.mixture, rng.random())
    return arm, public.mixture[arm]


@kernel
def note_frozen(params, public, arm, x, n):
    public.clock[DONE] += n
    public.facts[LONGEST] = max(public.facts[LONGEST], 1.0 / public.mixture[arm])


@kernel
def collect_frozen(params, raw, public, arm, x, reward, n):
    raw.moment[arm] += on_grid(params, (n * params.high - reward) / public.mixture[arm])


@kernel
def publish_frozen(params, public, release):
    for a in range(release.size):
        loss = release[a] / (params.width * params.batch)
        for j in range(public.losses.size):
            public.losses[j] += public.frozen[a, j] * loss
    learn(params, public)


# One release per round ----------------------------------------------------------------------------------------------------


@kernel
def one_number(params):
    return 1


@kernel
def note_weights(params, public, arm, x, n):
    """Keep what the loss of this round, the only one of its batch, will be multiplied by."""
    public.clock[DONE] += n
    probability = mixed(public.probability, params.mixing, params.n_arms, x)
    for j in range(x.size):
        public.reach[j] = x[j] / probability


@kernel
def collect_reward(params, raw, public, arm, x, reward, n):
    raw.moment[0] += reward


@kernel
def publish_reward(params, public, release):
    for j in range(public.losses.size):
        public.losses[j] += public.reach[j] * (params.high - release[0]) / params.width
    learn(params, public)


# Policies -----------------------------------------------------------------------------------------------------------------


class _MixturePolicy(AdvicePolicy):
    """What the policies of this file share."""

    _batch: int | None = None
    _rate: float | None = None
    _mixing: float | None = None
    _tuning: Tuning

    def _tuned(self, horizon: int, batch: int | None, rate: float | None, mixing: float | None) -> dict[str, Any]:
        """The arguments about tuning, checked."""
        self._horizon = integer("horizon", horizon, 1, _MOST_ROUNDS)
        self._batch = None if batch is None else integer("batch", batch, 1, _MOST_ROUNDS)
        self._rate = None if rate is None else real("rate", rate, 0.0, strict=True)
        self._mixing = None if mixing is None else real("mixing", mixing, 0.0, 1.0)
        return {"horizon": self._horizon, "batch": self._batch, "rate": self._rate, "mixing": self._mixing}

    def _found(self) -> Tuning:
        """The tuning of least regret bound."""
        return tune(self.n_arms, self.n_experts, self._horizon, self._noise_at_most(), self._batch)

    def _bound(self, batch: int, rate: float, mixing: float) -> float:
        """On the regret of a given tuning."""
        return regret_bound(self.n_arms, self.n_experts, self._horizon, self._noise_at_most(), batch, rate, mixing)

    def _noise_at_most(self) -> Noise:
        """The noise on an expert's mean loss, at gamma = 1 and tau = 1, where records move the statistic farthest."""
        scale = self.channel.multiplier * self._reach()
        draws = float(self._sizes()[0]) * self._horizon
        if isinstance(self.channel, Gaussian):
            return Noise(scale, 1.0, math.sqrt(2.0 * math.log(self.n_experts * self._horizon * self._horizon)))
        return Noise(scale, 2.0, math.log(draws * self._horizon))

    def _reach(self) -> float:
        """The most that a loss can move the statistic at gamma = 1: sqrt(N) K in the L2 norm."""
        return math.sqrt(self.n_experts) * self.n_arms

    @property
    def _least_probability(self) -> float:
        """No arm is drawn with less; without uniform play, nothing is known."""
        return self._tuning.mixing / self.n_arms or 1e-12

    def _movement(self) -> float:
        lo, hi = self.reward_range
        return (hi - lo) * self._reach() / self.n_arms / self._least_probability * ROUNDED_UP + self._slack

    @property
    def _grid(self) -> float:
        return float(self._config["grid"]) if self._noise.secure else 0.0

    @property
    def _slack(self) -> float:
        # Rounding moves a coordinate of each record by half a step.
        return self._grid * math.sqrt(self._sizes()[0])

    def _magnification(self) -> float:
        return 2.0 / self._least_probability

    def _sizes(self) -> tuple[int, int]:
        return self.n_experts, 0

    def _params(self) -> EXP4Params:
        lo, hi = self.reward_range
        found = self._found()
        rate = found.rate if self._rate is None else self._rate
        mixing = found.mixing if self._mixing is None else self._mixing
        batch = self._batch or found.batch
        as_found = (batch, rate, mixing) == found[:3]
        self._tuning = Tuning(batch, rate, mixing, found.bound if as_found else self._bound(batch, rate, mixing))
        return EXP4Params(
            n_arms=self.n_arms,
            n_experts=self.n_experts,
            batch=batch,
            rate=rate,
            mixing=mixing,
            width=hi - lo,
            high=hi,
            worst=self._movement() - self._slack,
            slack=self._slack,
            grid=self._grid,
        )

    @property
    def batch(self) -> int:
        """How many rounds a release covers."""
        return self._tuning.batch

    @property
    def regret_bound(self) -> float:
        """What the policy loses at most over its horizon, in expectation, against the best expert, in units of the reward range.

        Above the horizon the bound says nothing.
        """
        return self._tuning.bound

    # After a crash the default reward stands for every reward that was lost.

    def _weights(self, arm: int, x: np.ndarray) -> np.ndarray:
        """By what the loss of a round of the arm enters the statistic."""
        return x / mixed(self._public.probability, self.params.mixing, self.n_arms, x)

    def _start(self) -> None:
        super()._start()
        self._progress.weights = np.zeros(self._sizes()[0])

    def _book(self, arm: int, x: np.ndarray, n: int) -> None:
        super()._book(arm, x, n)
        self._progress.weights = self._progress.weights + n * self._weights(arm, x)

    def _unbook(self, which: int) -> None:
        super()._unbook(which)
        self._progress.weights = np.zeros(self._sizes()[0])

    def _recollect(self) -> None:
        lost = (self.reward_range[1] - self.default_reward) * self._progress.weights
        self._raw.moment[:] = np.rint(lost / self._grid) * self._grid if self._grid > 0.0 else lost


@register(n_arms=3, n_experts=4, horizon=2000, batch=16)
class EXP4(_MixturePolicy):
    """EXP4 on noisy sums of batches, one Gaussian release with the public sensitivity of the batch that was played.

    Draws from ``(1 - gamma) sum_j P_j advice_j + gamma / K`` with ``P = softmax(-eta L)``.  ``pull`` takes the advice of every expert,
    shape (N, K): a probability for each arm.

    Args:
        n_arms: number of arms, K.
        n_experts: number of experts, N.
        budget: ``ZCDP`` or ``ApproxDP``; None for EXP4 without privacy (Auer, Cesa-Bianchi, Freund & Schapire 2002).
        horizon: rounds to tune for, which are no limit.
        batch: rounds of a batch, tau; by default of the least regret bound.
        rate: eta; likewise.
        mixing: gamma in [0, 1]; likewise.
        **options: see ``Options``.

    When to choose: many experts whose advice changes from round to round.  Privacy costs a third of the power of the horizon in regret:
    see ``regret_bound``, which says nothing where it is above the horizon.

    Example:
        >>> policy = EXP4(2, 3, budget=ZCDP(0.5), horizon=10_000, seed=1)
        >>> round(policy.pull([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]).propensity, 12)
        0.5
    """

    card = Card(
        title="EXP4 on noisy sums of batches, with the sensitivity of the batch",
        source="Faster Rates for Private Adversarial Bandits, Theorem 6; here with Gaussian noise and the realised sensitivity",
        channels={ZCDP: Gaussian, ApproxDP: Gaussian},
        randomised=True,
    )
    kernels = _per_expert(sensitivity_realised, summarise, publish_losses)

    def __init__(
        self,
        n_arms: int,
        n_experts: int,
        *,
        budget: Budget | None,
        horizon: int,
        batch: int | None = None,
        rate: float | None = None,
        mixing: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        own = {"n_arms": n_arms, "n_experts": n_experts, **self._tuned(horizon, batch, rate, mixing)}
        super().__init__(own, budget=budget, **options)


@register(n_arms=3, n_experts=4, horizon=2000, batch=16)
class BatchedEXP4(_MixturePolicy):
    """EXP4 on noisy sums of batches as published, with Laplace noise on every expert's sum (Algorithms 2 and 7).

    Args:
        n_arms: number of arms, K.
        n_experts: number of experts, N.
        budget: ``ZCDP`` or ``ApproxDP``; None for no noise.
        horizon: rounds to tune for, which are no limit.
        variant: ``"published"``, noise for the worst case, sqrt(N) K / gamma (Algorithm 2); or ``"improved"``, noise of its own for every
            expert, in proportion to the most that a record of the batch moves that expert's sum (Algorithm 7).
        batch: rounds of a batch, tau; by default of the least regret bound, with ``calibration="paper"`` of Theorem 6.
        rate: eta; likewise.
        mixing: gamma in [1e-12, 1]; likewise.
        **options: see ``Options``.  With ``calibration="paper"`` the noise is that of advanced composition, 3 sqrt(ln(1 / delta)) /
            epsilon; the default is the exact zCDP of independent Laplace noise, and less noise for the same guarantee.

    Raises:
        ArgumentError: with ``calibration="paper"``, outside the range where Theorem 6 is proved: epsilon > 1.10 ln(1 / delta), or gamma
            > 1/2 because the horizon is too short.

    When to choose: to reproduce the paper.  ``EXP4`` has less noise for the same guarantee.

    Example:
        >>> BatchedEXP4(2, 3, budget=ApproxDP(1.0, 1e-5), horizon=10_000, variant="improved", seed=1).guarantee.holds
        ApproxDP(epsilon=1.0, delta=1e-05)
    """

    card = Card(
        title="EXP4 on noisy sums of batches, as published",
        source="Faster Rates for Private Adversarial Bandits, Theorems 6 and 8",
        channels={ZCDP: LaplaceVector, ApproxDP: LaplaceVector},
        randomised=True,
    )
    kernels = _per_expert(sensitivity_worst, summarise, publish_losses)

    def __init__(
        self,
        n_arms: int,
        n_experts: int,
        *,
        budget: Budget | None,
        horizon: int,
        variant: str = "published",
        batch: int | None = None,
        rate: float | None = None,
        mixing: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._variant = choice("variant", variant, ("published", "improved"))
        if self._variant == "improved":
            self.kernels = _IMPROVED  # type: ignore[misc]
            if options.get("noise") == "secure":
                raise ArgumentError("noise must be 'simulation' for variant='improved', whose statistic is on no grid", "noise")
        if mixing is not None:
            real("mixing", mixing, _LEAST_MIXING, 1.0)
        own = {"n_arms": n_arms, "n_experts": n_experts, "variant": self._variant, **self._tuned(horizon, batch, rate, mixing)}
        super().__init__(own, budget=budget, **options)

    def _found(self) -> Tuning:
        if self.calibration != "paper" or not isinstance(self.budget, ApproxDP):
            return super()._found()
        epsilon, log = self.budget.epsilon, -math.log(self.budget.delta)
        if epsilon > _COMPOSED * log:
            raise ArgumentError(
                f"budget must have epsilon <= {_COMPOSED:.4g} ln(1 / delta) = {_COMPOSED * log:.4g} with calibration='paper', "
                f"got {self.budget!r}",
                "budget",
            )
        found = _theorem_6(self.n_arms, self.n_experts, self._horizon, epsilon, log)
        if found.mixing > 0.5 and self._mixing is None:
            least = _least_horizon(self.n_arms, self.n_experts, epsilon, log)
            raise ArgumentError(
                f"horizon must be at least {least} for gamma <= 1/2 with calibration='paper', got {self._horizon}", "horizon"
            )
        return found

    def _movement(self) -> float:
        if self._variant == "improved":
            return math.sqrt(self.n_experts) * ROUNDED_UP
        return super()._movement()


def _theorem_6(n_arms: int, n_experts: int, horizon: int, epsilon: float, log: float) -> Tuning:
    """The published tau, eta and gamma, and bound; ``log`` is ln(1 / delta).

    gamma has ln(1 / delta)^(1/3), as the proof uses and the theorem leaves out.
    """
    n, k, t = float(max(n_experts, 2)), float(n_arms), float(horizon)
    nt, few = math.log(n * t), math.log(n)
    rate = (n * log) ** (1 / 6) * (nt * few) ** (1 / 3) / (t ** (1 / 3) * k**0.5 * epsilon ** (1 / 3))
    batch = math.ceil((n * log) ** (1 / 3) * nt ** (2 / 3) * t ** (1 / 3) / (epsilon ** (2 / 3) * few ** (1 / 3)))
    first = (rate * n * log) ** (1 / 3) * (k * nt) ** (2 / 3) / (epsilon * batch) ** (2 / 3)
    second = 12.0 * rate * k * math.sqrt(n * log) * nt / (epsilon * batch)
    bound = 100.0 * n ** (1 / 6) * k**0.5 * t ** (2 / 3) * log ** (1 / 6) * (nt * few) ** (1 / 3) / epsilon ** (1 / 3)
    return Tuning(batch, rate, max(first, second), bound + math.sqrt(n * log) * nt * few / epsilon)


def _least_horizon(n_arms: int, n_experts: int, epsilon: float, log: float) -> int:
    """The shortest horizon with gamma <= 1/2, which falls with the horizon."""
    low, high = 1, 2
    while _theorem_6(n_arms, n_experts, high, epsilon, log).mixing > 0.5:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _theorem_6(n_arms, n_experts, middle, epsilon, log).mixing > 0.5:
            low = middle
        else:
            high = middle
    return high


_IMPROVED = _per_expert(sensitivity_by_reach, summarise_by_reach, publish_by_reach)


@register(n_arms=3, n_experts=4, horizon=2000, batch=16)
class FrozenEXP4(_MixturePolicy):
    """EXP4 that hears its experts once per batch, on one noisy sum per arm: no price for the number of experts in the noise.

    The advice of the first round of a batch stands for the whole batch, and later advice in it is not looked at.  Regret is bounded
    against experts who would do the same; where advice hardly changes within a batch, or not at all, that is no loss.

    Args:
        n_arms: number of arms, K.
        n_experts: number of experts, N.
        budget: ``PureDP`` (Laplace noise), ``ZCDP`` or ``ApproxDP`` (Gaussian noise); None for no noise.
        horizon: rounds to tune for, which are no limit.
        batch: rounds of a batch, tau; by default of the least regret bound.
        rate: eta; likewise.
        mixing: gamma in [0, 1]; likewise.
        **options: see ``Options``.

    When to choose: many experts whose advice changes slowly, or pure differential privacy.

    Example:
        >>> policy = FrozenEXP4(2, 3, budget=PureDP(1.0), horizon=10_000, seed=1)
        >>> round(policy.pull([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]).propensity, 12)
        0.5
    """

    card = Card(
        title="EXP4 on one noisy sum per arm, with advice that stands for a batch",
        source="Auer et al. (2002), EXP4; the release per arm instead of per expert is this library's",
        channels={PureDP: Laplace, ZCDP: Gaussian, ApproxDP: Gaussian},
        randomised=True,
    )
    kernels = Kernels(
        bind(_init, size=one_per_arm, freeze=advice_frozen),
        choose_frozen,
        note_frozen,
        collect_frozen,
        due,
        sensitivity_realised,
        summarise,
        publish_frozen,
        prepare=prepare_frozen,
    )

    def __init__(
        self,
        n_arms: int,
        n_experts: int,
        *,
        budget: Budget | None,
        horizon: int,
        batch: int | None = None,
        rate: float | None = None,
        mixing: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        own = {"n_arms": n_arms, "n_experts": n_experts, **self._tuned(horizon, batch, rate, mixing)}
        super().__init__(own, budget=budget, **options)

    def _reach(self) -> float:
        return float(self.n_arms)

    def _sizes(self) -> tuple[int, int]:
        return self.n_arms, 0

    def _weights(self, arm: int, x: np.ndarray) -> np.ndarray:
        weights = np.zeros(self.n_arms)
        weights[arm] = 1.0 / self._public.mixture[arm]
        return weights


@register(n_arms=3, n_experts=4, horizon=2000)
class LocalEXP4(_MixturePolicy, LocalPolicy):
    """EXP4 on rewards that were randomised before anyone saw them (Theorem 5, Algorithm 6).

    Args:
        n_arms: number of arms, K.
        n_experts: number of experts, N.
        budget: ``PureDP`` (Laplace noise, as published), ``ZCDP`` or ``ApproxDP`` (Gaussian noise); None for EXP4 without privacy.
        horizon: rounds to tune for, which are no limit.
        reports: whether ``update`` is given reports, which ``randomiser()`` makes on the person's device, instead of rewards.
        rate: eta; by default tuned to horizon and noise, with ``calibration="paper"`` as published.
        mixing: gamma in [0, 1]; likewise.
        **options: see ``Options``.

    When to choose: nobody may be trusted with raw rewards; or epsilon is near one and experts are many.

    Example:
        >>> policy = LocalEXP4(2, 2, budget=PureDP(1.0), horizon=10_000, reports=True, seed=1)
        >>> decision = policy.pull([[1.0, 0.0], [0.0, 1.0]])
        >>> policy.update(policy.randomiser()(1.0))
        True
    """

    card = Card(
        title="EXP4 on locally randomised rewards",
        source="Faster Rates for Private Adversarial Bandits, Theorem 5",
        channels={PureDP: Laplace, ZCDP: Gaussian, ApproxDP: Gaussian},
        trust_model="local",
        randomised=True,
    )
    kernels = Kernels(
        bind(_init, size=one_number, freeze=nothing_frozen),
        choose_mixed,
        note_weights,
        collect_reward,
        due,
        sensitivity_worst,
        summarise,
        publish_reward,
    )

    def __init__(
        self,
        n_arms: int,
        n_experts: int,
        *,
        budget: Budget | None,
        horizon: int,
        reports: bool = False,
        rate: float | None = None,
        mixing: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        own = {"n_arms": n_arms, "n_experts": n_experts, **self._tuned(horizon, 1, rate, mixing), **self._reported(reports)}
        del own["batch"]
        super().__init__(own, budget=budget, **options)

    def _found(self) -> Tuning:
        """eta and gamma as for EXP3 with as many arms, with ln N in the place of ln K; or those of Theorem 5, which has s >= 1."""
        k, t, s, log, few = self._sizes_of_theorem_5()
        if self.calibration == "paper":
            rate = math.sqrt(few / (3.0 * t * k * (1.0 + 10.0 * s * s * log * log)))
            return Tuning(1, rate, min(4.0 * rate * k * s * log, 1.0), 16.0 * math.sqrt(t * k * few) * log * max(s, 1.0) + 1.0)
        rate = math.sqrt(few / (2.0 * k * t * (1.0 + 2.0 * s * s + s * log)))
        mixing = min(2.0 * rate * s * k * log, 0.5)
        return Tuning(1, rate, mixing, few / rate + 2.0 * rate * k * t * (1.0 + 2.0 * s * s) + mixing * t + 1.0)

    def _bound(self, batch: int, rate: float, mixing: float) -> float:
        """Regret is at most ln N / eta + eta K T E[loss^2] / (1 - gamma) + gamma T + 1, with E[loss^2] <= 1 + 2 s^2 for noise of scale s.

        No loss is below -1 / eta where eta K 2 s ln(KT) <= gamma, but with probability 1 / T.
        """
        k, t, s, log, few = self._sizes_of_theorem_5()
        if mixing == 1.0 or 2.0 * rate * s * k * log > mixing * (1.0 + 1e-9):
            return math.inf
        return few / rate + rate * k * t * (1.0 + 2.0 * s * s) / (1.0 - mixing) + mixing * t + 1.0

    def _sizes_of_theorem_5(self) -> tuple[float, float, float, float, float]:
        """K, T, the scale of the noise on a loss, ln(KT) and ln N."""
        lo, hi = self.reward_range
        k, t = float(self.n_arms), float(self._horizon)
        return k, t, self.noise_scale / (hi - lo), math.log(k * t), math.log(max(self.n_experts, 2))

    def _movement(self) -> float:
        lo, hi = self.reward_range
        return hi - lo

    def _magnification(self) -> float:
        return 1.0

    @property
    def _slack(self) -> float:
        return 0.0

    def _sizes(self) -> tuple[int, int]:
        return 1, 0

    def _weights(self, arm: int, x: np.ndarray) -> np.ndarray:
        return np.ones(1)

    def _recollect(self) -> None:
        self._raw.moment[:] = self.default_reward * self._progress.weights
