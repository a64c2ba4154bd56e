"""Adversarial bandits: any learner that stands unbounded and negative losses, behind a wall that opens once per batch.

An arm is played for a batch of tau rounds; then the learner is told the batch's mean loss plus noise (Faster Rates for Private
Adversarial Bandits, Algorithm 1).  Nothing is assumed of the losses but that they do not react to what is played.
Policies here take rewards in ``reward_range`` = (lo, hi) as all others do; a reward r is a loss (hi - r) / (hi - lo) in [0, 1].

What crosses the wall: when a batch ends, the *sum* of its tau rewards.  One person contributes one reward to one batch, so a record
moves one sum by at most ``hi - lo``, and batches are disjoint sets of records, cut by counting rounds: each sum may spend the whole
budget (parallel composition; Theorem 1 of the paper).  Laplace noise of scale (hi - lo) / epsilon on the sum is noise of scale
1 / (tau epsilon) on the mean loss, which the learner forms after the wall.  Which arm a batch plays is drawn from earlier releases
and from exploration only.  A batch that the horizon cuts short is played and never released.

The noise on a mean loss should be no larger than a loss: tau defaults to ceil(1 / epsilon), and to 1 for epsilon >= 1.  tau = 1 with
epsilon < 1 is the unbatched baseline (Tossou & Dimitrakakis 2017, Agarwal & Singh 2017): one noise draw per record, which would
protect as well if every person added it herself.  These policies see the reward before the noise, so what they promise is central.

A learner is a few kernels, see ``Learner``; ``conversion`` makes a policy's kernels of it.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from ..kernel import Kernel, bind, entry, kernel, unbound
from ..policies import Card, Kernels, Options, Policy, register
from ..policies.protocol import nothing_to_remember
from ..privacy.budgets import ZCDP, ApproxDP, Budget, PureDP
from ..privacy.channels import Channel, Gaussian, Laplace
from ..validation import integer, real
from .learners.simplex import draw, exponential_weights, half_tsallis, recentre

DONE, BATCHES, ARM = range(3)
_THRESHOLD = 1.0 - 2.0 ** (-1.0 / 3.0)  # Theta_2 of HTINF: a loss above it, in units of sqrt(x) / eta, is skipped
_LONGEST = 2**62


class BatchedParams(NamedTuple):
    n_arms: int
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
    clock: np.ndarray  # (3,) rounds booked in the running batch; batches learned from; arm


class Learner(NamedTuple):
    """A learner from the losses of single batches; every loss may be any finite number, negative ones too.

    Attributes:
        choose: the arm of the next batch, as in the protocol.
        learn: ``learn(params, public, arm, loss)``: take in the loss of the batch that ended, the ``clock[BATCHES]``-th.
        remember: as in the protocol.
    """

    choose: Kernel
    learn: Kernel
    remember: Kernel = nothing_to_remember


# The conversion -----------------------------------------------------------------------------------------------------------

learn = unbound


@entry
def init(params):
    k = params.n_arms
    public = BatchedPublic(np.zeros(k), np.full(k, 1.0 / k), np.zeros(1), np.zeros(3, np.int64))
    return BatchedRaw(np.zeros(1)), public


@kernel
def hold(params, public, arm):
    return params.batch


@kernel
def note(params, public, arm, x, n):
    public.clock[DONE] += n
    public.clock[ARM] = arm


@kernel
def collect(params, raw, public, arm, x, reward, n):
    raw.total[0] += reward


@kernel
def due(params, public):
    return public.clock[DONE] >= params.batch


@kernel
def sensitivity(params, public, norm):
    return params.width


@kernel
def summarise(params, raw, public, statistic):
    statistic[0] = raw.total[0]
    raw.total[0] = 0.0


@kernel
def publish(params, public, release):
    public.clock[DONE] = 0
    public.clock[BATCHES] += 1
    learn(params, public, public.clock[ARM], (params.high - release[0] / params.batch) / params.width)


def conversion(learner: Learner) -> Kernels:
    """The kernels of a policy that plays in batches and learns from their noisy losses (Algorithm 1)."""
    return Kernels(
        init,
        learner.choose,
        note,
        collect,
        due,
        sensitivity,
        summarise,
        bind(publish, learn=learner.learn),
        hold,
        remember=learner.remember,
    )


@kernel
def _planned(params, public):
    """For how many batches to tune: those of the horizon, or the next power of two.

    With an unknown horizon the tuning doubles its horizon and the estimates stay.  The bound's penalty is then that of the last,
    smallest rate alone, so that regret is at most what starting anew at every power of two is proved to have.
    """
    if params.batches > 0:
        return float(params.batches)
    size = 1.0
    while size <= public.clock[BATCHES]:
        size *= 2.0
    return size


# EXP3 ---------------------------------------------------------------------------------------------------------------------


@kernel
def exp3_tuning(params, public):
    """eta and gamma for T batches and noise of scale s on a loss.

    With gamma = 2 eta s K ln(KT), no estimate is below -1 / eta unless one of T draws exceeds 2 s ln(KT), and regret is at most
    ln K / eta + 2 eta K T E[loss^2] + gamma T with E[loss^2] <= 1 + 2 s^2; the eta below balances the three.  The published one puts
    max |loss|^2 in the place of E[loss^2], which costs a logarithm (Corollary 1, with the proof's s and the number of batches in
    place of epsilon T, whose logarithm squared would vanish at epsilon K T = 1).
    """
    k, t, s = float(params.n_arms), _planned(params, public), params.noise
    log = np.log(k * t)
    if params.published:
        moment, factor = 1.0 + 10.0 * max(s, s * s) * log * log, 4.0
    else:
        moment, factor = 1.0 + 2.0 * s * s + s * log, 2.0
    rate = np.sqrt(np.log(k) / (2.0 * k * t * moment)) if np.isnan(params.rate) else params.rate
    mixing = min(factor * rate * s * k * log, 0.5) if np.isnan(params.mixing) else params.mixing
    return rate, mixing


@kernel
def choose_drawn(params, public, view, rng):
    """A draw from the learner's distribution."""
    arm = draw(public.probability, rng.random())
    return arm, public.probability[arm]


@kernel
def learn_exp3(params, public, arm, loss):
    """Exponential weights on importance-weighted losses, mixed with uniform play."""
    public.losses[arm] += loss / public.probability[arm]
    recentre(public.losses)
    rate, mixing = exp3_tuning(params, public)
    exponential_weights(public.losses, rate, public.probability)
    for a in range(params.n_arms):
        public.probability[a] = (1.0 - mixing) * public.probability[a] + mixing / params.n_arms


@kernel
def learn_exp3_ix(params, public, arm, loss):
    """Exponential weights with eta = sqrt(ln K / (K t)), on losses divided by p + eta / 2 (Neu 2015)."""
    k, t = float(params.n_arms), float(public.clock[BATCHES])
    public.losses[arm] += loss / (public.probability[arm] + 0.5 * np.sqrt(np.log(k) / (k * t)))
    recentre(public.losses)
    exponential_weights(public.losses, np.sqrt(np.log(k) / (k * (t + 1.0))), public.probability)


# Follow the regularised leader with Tsallis entropy -----------------------------------------------------------------------


@kernel
def _follow_tsallis(params, public):
    """The distribution for the next batch, the t-th, with eta = 1 / (sigma sqrt(t))."""
    recentre(public.losses)
    rate = 1.0 / (params.sigma * np.sqrt(public.clock[BATCHES] + 1.0))
    public.memory[0] = half_tsallis(public.losses, rate, public.memory[0], public.probability)


@kernel
def learn_htinf(params, public, arm, loss):
    """The importance-weighted loss, or nothing where |loss| > Theta sqrt(x) / eta (Huang, Dai & Huang 2022, Algorithm 1)."""
    x = public.probability[arm]
    if abs(loss) <= _THRESHOLD * params.sigma * np.sqrt(public.clock[BATCHES] * x):
        public.losses[arm] += loss / x
    _follow_tsallis(params, public)


@kernel
def learn_tsallis_inf(params, public, arm, loss):
    public.losses[arm] += loss / public.probability[arm]
    _follow_tsallis(params, public)


# Follow the perturbed leader ----------------------------------------------------------------------------------------------


@kernel
def ftpl_tuning(params, public):
    """eta and M for T batches and noise of scale s on a loss.

    While eta M max |loss| <= 1, regret is at most 6 ln K / eta + 4 eta K T E[loss^2] + K T / (e M).  With probability 1 - 1 / T no
    loss exceeds L = 1 + 2 s ln(KT); M = 1 / (eta L) and the eta below balance the three.  The published tuning has M = sqrt(KT) and
    max |loss|^2 in the place of E[loss^2] (Corollary 3 and Lemma 13, with M rounded up).
    """
    k, t, s = float(params.n_arms), _planned(params, public), params.noise
    log = np.log(k * t)
    if params.published:
        rounded = np.ceil(np.sqrt(k * t))
        rate = min(np.sqrt(np.log(k) / (k * t * (1.0 + 10.0 * s * s * log * log))), 1.0 / (rounded * (1.0 + 4.0 * s * np.log(t))))
    else:
        most = 1.0 + 2.0 * s * log
        rate = np.sqrt(6.0 * np.log(k) / (k * t * (4.0 + 8.0 * s * s + most / np.e)))
        given = rate if np.isnan(params.rate) else params.rate
        rounded = np.floor(min(1.0 / max(given * most, 1e-9), 1e9))
    if not np.isnan(params.rate):
        rate = params.rate
    return rate, params.tries if params.tries > 0 else max(int(rounded), 1)


@kernel
def choose_perturbed(params, public, view, rng):
    """Arg min of loss + Laplace noise of scale 1 / eta."""
    rate, _ = ftpl_tuning(params, public)
    best, arm = np.inf, 0
    for a in range(params.n_arms):
        value = rate * public.losses[a] + rng.laplace(0.0, 1.0)
        if value < best:
            best, arm = value, a
    return arm, np.nan


@kernel
def remember_tries(params, public, arm, rng):
    """Geometric resampling: how many fresh perturbations it takes until the same arm leads again, at most M.

    Once per choice, before anything is known of its loss.  A try ends at the first arm that beats the chosen one.
    """
    rate, tries = ftpl_tuning(params, public)
    public.memory[0] = tries
    for i in range(1, tries):
        bar = rate * public.losses[arm] + rng.laplace(0.0, 1.0)
        leads = True
        for a in range(params.n_arms):
            if a != arm and rate * public.losses[a] + rng.laplace(0.0, 1.0) < bar:
                leads = False
                break
        if leads:
            public.memory[0] = i
            break


@kernel
def learn_ftpl(params, public, arm, loss):
    """The loss times the number of tries, which is one over the arm's probability p on average, up to a factor 1 - (1 - p)^M."""
    public.losses[arm] += loss * public.memory[0]
    recentre(public.losses)


# Policies -----------------------------------------------------------------------------------------------------------------

EXP3_LEARNER = Learner(choose_drawn, learn_exp3)
EXP3_IX_LEARNER = Learner(choose_drawn, learn_exp3_ix)
HTINF_LEARNER = Learner(choose_drawn, learn_htinf)
TSALLIS_INF_LEARNER = Learner(choose_drawn, learn_tsallis_inf)
FTPL_LEARNER = Learner(choose_perturbed, learn_ftpl, remember_tries)

_CHANNELS: dict[type[Budget], type[Channel]] = {PureDP: Laplace, ZCDP: Gaussian, ApproxDP: Gaussian}


class _Batched(Policy):
    """What the policies of this file share."""

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
    def batch(self) -> int:
        """For how many rounds a choice stands."""
        return int(self.params.batch)

    def _params(self) -> BatchedParams:
        lo, hi = self.reward_range
        # The multiplier of Laplace noise is 1 / epsilon.  The slack keeps 1 / (1 / 49) from becoming 50.
        batch = self._length or int(min(max(math.ceil(self.channel.multiplier * (1.0 - 1e-12)), 1), _LONGEST))
        noise = self.noise_scale / (hi - lo) / batch
        published = self.calibration == "paper"
        sigma = self._sigma or (self._published_sigma if published else self._root_mean_square(noise))
        return BatchedParams(
            n_arms=self.n_arms,
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


@register(n_arms=3)
class EXP3(_Batched):
    """EXP3 with mixing, on noisy batch losses (Corollary 1; Auer, Cesa-Bianchi, Freund & Schapire 2002).

    Draws from ``(1 - gamma) softmax(-eta L) + gamma / K`` with ``L`` the importance-weighted cumulative losses.

    Args:
        n_arms: number of arms.
        budget: ``PureDP`` (Laplace noise, as published), ``ZCDP`` or ``ApproxDP`` (Gaussian noise); None for EXP3 without privacy.
        horizon: rounds to tune for, which are no limit; None doubles the horizon of the tuning whenever it is reached.
        batch: rounds of one arm; by default the noise multiplier rounded up, which is ceil(1 / epsilon) for ``PureDP``.
        rate: eta; by default tuned to horizon and noise, with ``calibration="paper"`` as published.
        mixing: gamma in [0, 1]; by default what ``rate`` and the noise need.
        **options: see ``Options``.

    When to choose: rewards that follow no law, propensities bounded away from zero for later evaluation.  ``HTINF`` has lower regret.

    Example:
        >>> policy = EXP3(3, budget=PureDP(0.1), seed=1)
        >>> policy.batch, round(policy.pull().propensity, 3)
        (10, 0.333)
    """

    card = Card(
        title="EXP3 on noisy batch losses",
        source="Auer et al. (2002), EXP3; Faster Rates for Private Adversarial Bandits, Theorem 1 and Corollary 1",
        channels=_CHANNELS,
        randomised=True,
    )
    kernels = conversion(EXP3_LEARNER)

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        horizon: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        mixing: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._rate = None if rate is None else real("rate", rate, 0.0, strict=True)
        self._mixing = None if mixing is None else real("mixing", mixing, 0.0, 1.0)
        config = {"n_arms": n_arms, **self._schedule(horizon, batch), "rate": self._rate, "mixing": self._mixing}
        super().__init__(config, budget=budget, **options)


@register(n_arms=3)
class HTINF(_Batched):
    """Follow the regularised leader with 1/2-Tsallis entropy and skipping, on noisy batch losses (Corollary 2).

    HTINF of Huang, Dai & Huang (2022) for heavy tails: draws from the minimiser of ``eta <L, x> - 2 sum sqrt(x)`` with
    ``eta = 1 / (sigma sqrt(t))``, and skips a loss above ``0.2063 sqrt(x) / eta``.  It needs no horizon.

    Args:
        n_arms: number of arms.
        budget: ``PureDP`` (Laplace noise, as published), ``ZCDP`` or ``ApproxDP`` (Gaussian noise); None for HTINF without privacy.
        batch: rounds of one arm; by default the noise multiplier rounded up, which is ceil(1 / epsilon) for ``PureDP``.
        sigma: the root mean square of a noisy loss; by default sqrt(1 + 2 / (epsilon tau)^2), sqrt(1 + its variance) for Gaussian
            noise, and sqrt(6) with ``calibration="paper"``.
        **options: see ``Options``.

    When to choose: the default for rewards that follow no law.  Regret at most ``30 sigma tau sqrt(K (T / tau + 1)) + tau``.

    Example:
        >>> policy = HTINF(3, budget=PureDP(0.1), seed=1)
        >>> policy.batch, round(policy.pull().propensity, 3)
        (10, 0.333)
    """

    card = Card(
        title="Tsallis-entropy leader with skipping on noisy batch losses",
        source="Huang, Dai & Huang (2022), HTINF; Faster Rates for Private Adversarial Bandits, Theorem 1 and Corollary 2",
        channels=_CHANNELS,
        randomised=True,
    )
    kernels = conversion(HTINF_LEARNER)

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        batch: int | None = None,
        sigma: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._sigma = None if sigma is None else real("sigma", sigma, 1e-9, 1e100)
        config = {"n_arms": n_arms, "batch": self._schedule(None, batch)["batch"], "sigma": self._sigma}
        super().__init__(config, budget=budget, **options)


@register(n_arms=3)
class FTPL(_Batched):
    """Follow the perturbed leader with geometric resampling, on noisy batch losses (Corollary 3; Neu & Bartók 2016).

    Plays the arm of least ``L + Z`` with Laplace perturbations ``Z`` of scale ``1 / eta``.  A loss enters ``L`` times the number of
    fresh perturbations, at most M, that it took to have the same arm lead again.

    Args:
        n_arms: number of arms.
        budget: ``PureDP`` (Laplace noise, as published), ``ZCDP`` or ``ApproxDP`` (Gaussian noise); None for FTPL without privacy.
        horizon: rounds to tune for, which are no limit; None doubles the horizon of the tuning whenever it is reached.
        batch: rounds of one arm; by default the noise multiplier rounded up, which is ceil(1 / epsilon) for ``PureDP``.
        rate: eta; by default tuned to horizon and noise, with ``calibration="paper"`` as published.
        tries: M, how often to resample at most; by default as ``rate`` and the noise allow.
        **options: see ``Options``.

    When to choose: many arms.  Its propensities have no closed form.

    Example:
        >>> policy = FTPL(3, budget=PureDP(0.1), seed=1)
        >>> policy.batch, policy.pull().propensity is None
        (10, True)
    """

    card = Card(
        title="perturbed leader on noisy batch losses",
        source="Neu & Bartók (2016), FTPL; Faster Rates for Private Adversarial Bandits, Theorem 1 and Corollary 3",
        channels=_CHANNELS,
        randomised=True,
    )
    kernels = conversion(FTPL_LEARNER)

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        horizon: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        tries: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._rate = None if rate is None else real("rate", rate, 0.0, strict=True)
        self._tries = None if tries is None else integer("tries", tries, 1, 10**9)
        config = {"n_arms": n_arms, **self._schedule(horizon, batch), "rate": self._rate, "tries": self._tries}
        super().__init__(config, budget=budget, **options)


@register(n_arms=3)
class EXP3IX(_Batched):
    """EXP3-IX, without privacy (Neu 2015): exponential weights on losses divided by ``p + eta / 2``, eta = sqrt(ln K / (K t)).

    Args:
        n_arms: number of arms.
        budget: None; implicit exploration is not made for negative losses.  The private relative is ``EXP3``.
        **options: see ``Options``.

    Example:
        >>> EXP3IX(3, seed=1).guarantee.holds is None
        True
    """

    card = Card(
        title="EXP3-IX, not private",
        source="Neu (2015), Explore no more: improved high-probability regret bounds for non-stochastic bandits",
        channels={},
        trust_model="none",
        randomised=True,
    )
    kernels = conversion(EXP3_IX_LEARNER)

    def __init__(self, n_arms: int, *, budget: None = None, **options: Unpack[Options]) -> None:
        super().__init__({"n_arms": n_arms}, budget=budget, **options)


@register(n_arms=3)
class TsallisINF(_Batched):
    """1/2-Tsallis-INF, without privacy (Zimmert & Seldin 2021): optimal for adversarial and for stochastic rewards.

    Draws from the minimiser of ``<L, x> - 2 sqrt(t) sum sqrt(x)``.

    Args:
        n_arms: number of arms.
        budget: None; the private relative is ``HTINF``, which skips losses that are too large.
        **options: see ``Options``.

    Example:
        >>> TsallisINF(3, seed=1).guarantee.holds is None
        True
    """

    card = Card(
        title="Tsallis-INF, not private",
        source="Zimmert & Seldin (2021), Tsallis-INF: an optimal algorithm for stochastic and adversarial bandits",
        channels={},
        trust_model="none",
        randomised=True,
    )
    kernels = conversion(TSALLIS_INF_LEARNER)
    _published_sigma = 1.0

    def __init__(self, n_arms: int, *, budget: None = None, **options: Unpack[Options]) -> None:
        super().__init__({"n_arms": n_arms}, budget=budget, **options)
