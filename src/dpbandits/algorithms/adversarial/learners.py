"""Learners from noisy losses of single batches; see ``Learner``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...calls import is_open
from ...errors import ArgumentError
from ...kernel import Generator, Vector, kernel, outlined
from ...protocol import Contexts
from ...rooms import papers
from ...validation import choice
from ..maths.simplex import draw, exponential_weights, recentre, tsallis
from .conversion import CLOCK, DRAWN, MEMO, BatchedParams, BatchedPublic, open_probability
from .learning import Learner

_ROUNDING = 1.0 + 1e-9


@kernel
def _planned(params: BatchedParams, public: BatchedPublic) -> float:
    """Number of batches to tune for: those of the horizon, or the next power of two.

    With an unknown horizon the tuning doubles its horizon and the estimates stay.  The bound has
    the penalty of the last rate: regret is at most the bound for restarts at powers of two.
    """
    if params.batches > 0:
        return float(params.batches)
    size = 1.0
    while size <= public.clock[CLOCK.batches]:
        size *= 2.0
    return size


# EXP3 ----------------------------------------------------------------------------------------


@kernel
def exp3_tuning(params: BatchedParams, public: BatchedPublic) -> tuple[float, float]:
    """eta and gamma for T batches and noise of scale s on a loss.

    With gamma = 2 eta s K ln(KT), no estimate is below -1 / eta unless one of T draws exceeds 2 s
    ln(KT).  Regret is at most ln K / eta + 2 eta K T E[loss^2] + gamma T with E[loss^2] <= 1 + 2
    s^2.  The eta below balances these three terms.  The published eta has max |loss|^2 instead of
    E[loss^2], which costs a logarithm (Corollary 1).  It is computed here with the proof's s, and
    with the number of batches instead of epsilon T, whose logarithm squared would vanish at epsilon
    K T = 1.
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


@outlined  # for it is seldom called
def choose_open(params: BatchedParams, public: BatchedPublic, uniform: float) -> tuple[int, float]:
    """A draw over open arms, never of one of probability zero."""
    share, arm = public.drawn[DRAWN.share], 0
    u = uniform * share
    for a in range(params.n_arms):
        probability = open_probability(public, a)
        if probability > 0.0:
            arm = a
            if u < probability:
                break
            u -= probability  # rounding may leave a little of it over
    return arm, open_probability(public, arm) / share


@kernel
def choose_drawn(
    params: BatchedParams, public: BatchedPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """A draw from the learner's distribution over open arms."""
    if public.drawn[DRAWN.least] > 0.0:
        return choose_open(params, public, rng.random())
    arm = draw(public.probability, rng.random())
    return arm, float(public.probability[arm])


@kernel
def learn_exp3(params: BatchedParams, public: BatchedPublic, memo: Vector, loss: float) -> None:
    """Exponential weights on importance-weighted losses, mixed with uniform play."""
    public.losses[int(memo[MEMO.arm])] += loss / memo[MEMO.probability]
    recentre(public.losses)
    rate, mixing = exp3_tuning(params, public)
    exponential_weights(public.losses, rate, public.probability)
    for a in range(params.n_arms):
        public.probability[a] = (1.0 - mixing) * public.probability[a] + mixing / params.n_arms


# Follow the regularised leader with Tsallis entropy ------------------------------------------


@kernel
def _root(alpha: float, x: float) -> float:
    """x^(1/alpha)."""
    return np.sqrt(x) if alpha == 2.0 else x ** (1.0 / alpha)


@kernel
def _threshold(alpha: float) -> float:
    """Theta of HTINF: a loss above it, in units of x^(1/alpha) / eta, is skipped."""
    theta = 1.0 - 2.0 ** (-(alpha - 1.0) / (2.0 * alpha - 1.0))
    if alpha < 2.0:  # at 2 the other one is 1 / sqrt(e)
        theta = min(theta, (2.0 - 2.0 / alpha) ** (1.0 / (2.0 - alpha)))
    return theta


@kernel
def follow_tsallis(params: BatchedParams, public: BatchedPublic) -> None:
    """The distribution for the next batch, the t-th, with eta = 1 / (sigma t^(1/alpha))."""
    recentre(public.losses)
    alpha = params.alpha
    rate = 1.0 / (params.sigma * _root(alpha, public.clock[CLOCK.batches] + 1.0))
    public.memory[0] = tsallis(
        public.losses, rate, alpha / (alpha - 1.0), public.memory[0], public.probability
    )


@kernel
def learn_htinf(params: BatchedParams, public: BatchedPublic, memo: Vector, loss: float) -> None:
    """The weighted loss, or nothing where |loss| > Theta x^(1/alpha) / eta (Algorithm 1)."""
    x, alpha = memo[MEMO.probability], params.alpha
    # ``publish`` has already counted this batch, so the number is its own t.
    most = _threshold(alpha) * params.sigma * _root(alpha, public.clock[CLOCK.batches] * x)
    if abs(loss) <= most:
        public.losses[int(memo[MEMO.arm])] += loss / x
    follow_tsallis(params, public)


# Follow the perturbed leader -----------------------------------------------------------------


@kernel
def ftpl_tuning(params: BatchedParams, public: BatchedPublic) -> tuple[float, int]:
    """eta and M for T batches and noise of scale s on a loss.

    While eta M max |loss| <= 1, regret is at most 6 ln K / eta + 4 eta K T E[loss^2] + K T / (e M).
    With probability 1 - 1 / T no loss exceeds L = 1 + 2 s ln(KT); M = 1 / (eta L) and the eta below
    balance the three.  The published tuning has M = sqrt(KT) and max |loss|^2 in the place of
    E[loss^2] (Corollary 3 and Lemma 13, with M rounded up).
    """
    k, t, s = float(params.n_arms), _planned(params, public), params.noise
    log = np.log(k * t)
    if params.published:
        rounded = np.ceil(np.sqrt(k * t))
        rate = min(
            np.sqrt(np.log(k) / (k * t * (1.0 + 10.0 * s * s * log * log))),
            1.0 / (rounded * (1.0 + 4.0 * s * np.log(t))),
        )
    else:
        most = 1.0 + 2.0 * s * log
        rate = np.sqrt(6.0 * np.log(k) / (k * t * (4.0 + 8.0 * s * s + most / np.e)))
        given = rate if np.isnan(params.rate) else params.rate
        # Rounded down, since the bound needs eta M L <= 1; the limits keep M a finite whole number.
        rounded = np.floor(min(1.0 / max(given * most, 1e-9), 1e9))
    if not np.isnan(params.rate):
        rate = params.rate
    return rate, params.tries if params.tries > 0 else max(int(rounded), 1)


@kernel
def prepare_leader(
    params: BatchedParams, public: BatchedPublic, contexts: Contexts, rng: Generator
) -> None:
    """The arg min of loss + Laplace noise of scale 1 / eta, and geometric resampling of it.

    How many perturbations until the arm leads again, at most M; a try ends where one beats it.
    """
    # All of this uses released losses only, so its running time may depend on them.
    rate, tries = ftpl_tuning(params, public)
    best, arm = np.inf, 0
    for a in range(params.n_arms):
        if not is_open(contexts, a):
            continue
        value = rate * public.losses[a] + rng.laplace(0.0, 1.0)
        if value < best:
            best, arm = value, a
    public.clock[CLOCK.arm], public.memory[0] = arm, tries
    for i in range(1, tries):
        bar = rate * public.losses[arm] + rng.laplace(0.0, 1.0)
        leads = True
        for a in range(params.n_arms):
            if a == arm or not is_open(contexts, a):
                continue
            if rate * public.losses[a] + rng.laplace(0.0, 1.0) < bar:
                leads = False
                break
        if leads:
            public.memory[0] = i
            break


@kernel
def choose_leader(
    params: BatchedParams, public: BatchedPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    return public.clock[CLOCK.arm], np.nan


@kernel
def learn_ftpl(params: BatchedParams, public: BatchedPublic, memo: Vector, loss: float) -> None:
    """The loss times the tries: on average 1 / p of the arm, times 1 - (1 - p)^M."""
    public.losses[int(memo[MEMO.arm])] += loss * memo[MEMO.memory]
    recentre(public.losses)


# As values -----------------------------------------------------------------------------------


def _theory() -> Any:
    """Where bounds on regret are."""
    return papers("theories").adversarial


def _as_tuned(
    regret: Any, params: BatchedParams, moment: float, tuning: Sequence[float], batches: float
) -> float:
    """A bound on regret, for constants that are tuned to a number of batches."""
    most = max(params.batches, 1)
    return float(regret(batches, params.n_arms, *tuning, params.noise, moment, most))


@dataclass(frozen=True, repr=False)
class EXP3(Learner):
    """EXP3 with mixing (Corollary 1; Auer, Cesa-Bianchi, Freund & Schapire 2002).

    Draws from ``(1 - gamma) softmax(-eta L) + gamma / K`` with ``L`` the importance-weighted
    cumulative losses.

    Args:
        rate: eta; by default tuned to horizon and noise, with ``calibration="paper"`` as published.
        mixing: gamma in [0, 1]; by default what ``rate`` and the noise need.

    When to choose: propensities of at least gamma / K, in closed form, for later evaluation.
    ``HTINF`` has lower regret.

    >>> EXP3(rate=0.1)
    EXP3(rate=0.1)
    """

    choose, learn, tuning = choose_drawn, learn_exp3, exp3_tuning
    skips_closed = True

    rate: float | None = None
    mixing: float | None = None

    @staticmethod
    def bound(
        params: BatchedParams, moment: float, tuning: Sequence[float], batches: float
    ) -> float:
        """See ``exp3_tuning``."""
        return _as_tuned(_theory().exp3_regret, params, moment, tuning, batches)


@dataclass(frozen=True, repr=False)
class HTINF(Learner):
    """Follow the regularised leader with 1/2-Tsallis entropy and skipping (Corollary 2).

    HTINF (Huang, Dai & Huang 2022) is for heavy tails.  It draws from the minimiser of ``eta <L,
    x> - alpha sum x^(1/alpha)`` with ``eta = 1 / (sigma t^(1/alpha))``.  It skips a loss above
    ``Theta x^(1/alpha) / eta``, where Theta is 0.2063 for alpha = 2.  It needs no horizon.

    Args:
        sigma: a bound on E[|noisy loss|^alpha]^(1/alpha).  By default the root mean square:
            sqrt(1 + 2 / (epsilon tau)^2) for Laplace noise, sqrt(1 + its variance) for Gaussian
            noise, and sqrt(6) with ``calibration="paper"``.
        alpha: order of the bounded moment, in [1.01, 2]; 2 by default.

    When to choose: the default.  Regret at most ``30 sigma tau sqrt(K (T / tau + 1)) + tau``.  An
    alpha below 2 is for losses whose squares have no mean; here they have one, and 2 is best for
    many rounds.

    >>> HTINF()
    HTINF()
    """

    choose, learn = choose_drawn, learn_htinf
    skips_closed = True

    sigma: float | None = None
    alpha: float | None = None

    @staticmethod
    def bound(
        params: BatchedParams, moment: float, tuning: Sequence[float], batches: float
    ) -> float:
        """Huang, Dai & Huang (2022), Theorem 4.1; a root mean square bounds the other moments."""
        if moment > params.sigma**2 * _ROUNDING:
            return math.inf
        return float(_theory().htinf_regret(batches, params.n_arms, params.sigma, params.alpha))


@dataclass(frozen=True, repr=False)
class FTPL(Learner):
    """Follow the perturbed leader with geometric resampling (Corollary 3; Neu & Bartók 2016).

    Plays the arm of least ``L + Z`` with Laplace perturbations ``Z`` of scale ``1 / eta``.  A loss
    enters ``L`` times the number of fresh perturbations, at most M, that it took to have the same
    arm lead again.

    Args:
        rate: eta; by default tuned to horizon and noise, with ``calibration="paper"`` as published.
        tries: M, how often to resample at most; by default as ``rate`` and the noise allow.

    When to choose: many arms.  Its propensities have no closed form.

    >>> FTPL(tries=20)
    FTPL(tries=20)
    """

    prepare, choose, learn, tuning = prepare_leader, choose_leader, learn_ftpl, ftpl_tuning
    skips_closed = True

    rate: float | None = None
    tries: int | None = None

    @staticmethod
    def bound(
        params: BatchedParams, moment: float, tuning: Sequence[float], batches: float
    ) -> float:
        """See ``ftpl_tuning``."""
        return _as_tuned(_theory().ftpl_regret, params, moment, tuning, batches)


# By a name ------------------------------------------------------------------------------------

_LEARNERS: dict[str, type[Learner]] = {"htinf": HTINF, "exp3": EXP3, "ftpl": FTPL}


def register_learner(name: str, learner: type[Learner]) -> None:
    """Let ``Registered``, ``BatchConversion`` and ``ExpertConversion`` take a learner by a name.

    The conversion is private with any learner, because a learner sees released losses only.  Regret
    is small if the learner can handle any finite loss.  Losses are in [0, 1] plus symmetric noise,
    which has heavy tails for ``PureDP``.

    Args:
        name: of the learner; registering a name again replaces its learner for policies that are
            made later.
        learner: a class; an example is in CONTRIBUTING.

    Raises:
        ArgumentError: the name is no identifier.
    """
    if not (isinstance(name, str) and name.isidentifier()):
        raise ArgumentError(
            f"name must be a Python identifier, such as 'greedy', got {name!r}", "name"
        )
    _LEARNERS[name] = learner


@dataclass(frozen=True, repr=False)
class Registered(Learner):
    """A learner by its name.

    Args:
        learner: its name: ``"htinf"``, ``"exp3"``, ``"ftpl"``, or one of ``register_learner``.
        rate, mixing, tries, sigma, alpha: constants of learners that take them.

    When to choose: where there is a name and no value, as in results of earlier versions.

    >>> Registered("exp3", rate=0.1)
    Registered(learner='exp3', rate=0.1)
    """

    learner: str
    rate: float | None = None
    mixing: float | None = None
    tries: int | None = None
    sigma: float | None = None
    alpha: float | None = None

    def __post_init__(self) -> None:
        self._set(_kind=_LEARNERS[choice("learner", self.learner, tuple(_LEARNERS))])
        for constant, value in self.constants.items():
            if constant not in self.kind.__dataclass_fields__:
                known = _LEARNERS.items()
                takers = [repr(name) for name, one in known if constant in one.__dataclass_fields__]
                raise ArgumentError(
                    f"{constant} must be None for learner={self.learner!r}, got {value!r}: only"
                    f" {' or '.join(takers)} takes {constant}",
                    constant,
                )
        super().__post_init__()

    @property
    def kind(self) -> type[Learner]:
        return vars(self)["_kind"]
