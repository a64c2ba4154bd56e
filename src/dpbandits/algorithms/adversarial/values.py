"""Learners as values, by themselves or by a name, to which users may add; and what policies that
take one have in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ...errors import ArgumentError
from ...policies import Part, Policy, Statistic
from ...privacy.channels import Laplace
from ...session.estimates import LOSSES_ALONE
from ...validation import choice, integer, real
from .conversion import MEMO, BatchedParams, Learner, batch_conversion
from .learners import (
    EXP3_IX_LEARNER,
    EXP3_LEARNER,
    FTPL_LEARNER,
    HTINF_LEARNER,
    TSALLIS_INF_LEARNER,
)

_LONGEST = 2**62
_CHECKS: dict[str, Callable[[Any], float]] = {
    "rate": lambda rate: real("rate", rate, 0.0, strict=True),
    "mixing": lambda mixing: real("mixing", mixing, 0.0, 1.0),
    "tries": lambda tries: integer("tries", tries, 1, 10**9),
    "sigma": lambda sigma: real("sigma", sigma, 1e-9, 1e100),
    "alpha": lambda alpha: real("alpha", alpha, 1.01, 2.0),
}
_LEARNERS = {"htinf": HTINF_LEARNER, "exp3": EXP3_LEARNER, "ftpl": FTPL_LEARNER}


class LearningPolicy(Policy):
    """The base of policies that have a learner, which is a value.  It says what is released, with
    which numbers it learns, and what it loses at most.
    """

    _no_estimates = LOSSES_ALONE

    @property
    def _learner(self) -> Any:
        return self.config["learner"]

    @property
    def tuned_for(self) -> int | None:
        """The horizon that was given, to which constants are tuned."""
        horizon: int | None = self.config["horizon"]
        return horizon

    @property
    def batch(self) -> int:
        """How many rounds a release covers."""
        return int(self.params.batch)

    @property
    def regret_bound(self) -> float:
        """What the policy loses at most over its horizon, in expectation, against the best arm, or
        expert, in hindsight, in units of the reward range.

        Of ``FrozenEXP4``, against experts who keep to their advice for a batch.  Infinite without a
        horizon, and where constants are outside what the proof assumes; above the horizon it says
        nothing.
        """
        return float(self._learner.regret_bound(self))

    @property
    def bound_arguments(self) -> dict[str, Any]:
        """Those of the function in ``theory`` that has the bound, but for the horizon."""
        arguments: dict[str, Any] = self._learner.bound_arguments(self)
        return arguments

    def _params(self) -> Any:
        return self._learner.params(self)

    def _statistic(self) -> Statistic:
        statistic: Statistic = self._learner.statistic(self)
        return statistic


@dataclass(frozen=True, repr=False)
class LearnerPart(Part):
    """The base of learners from the noisy losses of batches, as values.  Constants that are None
    are found.
    """

    what: ClassVar[str] = "learner"
    rule: ClassVar[Learner]
    published_sigma: ClassVar[float] = math.sqrt(6.0)

    def __post_init__(self) -> None:
        self._set(**{name: _CHECKS[name](value) for name, value in self.constants.items()})

    @property
    def constants(self) -> dict[str, float]:
        """Those that are given."""
        return {name: one for name, one in self.given.items() if name in _CHECKS}

    def statistic(self, policy: LearningPolicy) -> Statistic:
        """One sum of rewards."""
        memo = MEMO.closed + _choices(policy)
        return Statistic.of_rewards(policy.reward_range, memo=memo)

    def params(self, policy: LearningPolicy) -> BatchedParams:
        """The numbers it learns with."""
        (lo, hi), horizon = policy.reward_range, policy.tuned_for
        # The multiplier of Laplace noise is 1 / epsilon.  The slack keeps 1 / (1 / 49) from
        # becoming 50.
        batch = policy.config["batch"] or int(
            min(max(math.ceil(policy.channel.multiplier * (1.0 - 1e-12)), 1), _LONGEST)
        )
        noise = policy.noise_scale / (hi - lo) / batch
        published = policy.calibration == "paper"
        sigma = self.published_sigma if published else _root_mean_square(policy, noise)
        given = self.constants.get
        return BatchedParams(
            n_arms=_choices(policy),
            batch=batch,
            width=hi - lo,
            high=hi,
            noise=noise,
            batches=0 if horizon is None else max(horizon // batch, 1),
            published=published,
            rate=given("rate", math.nan),
            mixing=given("mixing", math.nan),
            tries=int(given("tries", 0)),
            sigma=given("sigma", sigma),
            alpha=given("alpha", 2.0),
            memory=self.rule.memory(_choices(policy)),
        )

    def regret_bound(self, policy: LearningPolicy) -> float:
        """The learner's bound over as many batches, times their length, and a batch more (Theorem
        1).
        """
        if _choices(policy) == 1:
            return 0.0
        if policy.tuned_for is None:
            return math.inf
        return float(batch_conversion(policy.tuned_for, **self.bound_arguments(policy)))

    def bound_arguments(self, policy: LearningPolicy) -> dict[str, Any]:
        """Those of ``batch_conversion``."""

        def learner_regret(batches: float) -> float:
            return self._lost(policy, batches)

        rounding = policy.grid / policy.params.width  # to which secure noise rounds rewards
        return {"batch": policy.batch, "learner_regret": learner_regret, "rounding": rounding}

    def _lost(self, policy: LearningPolicy, batches: float) -> float:
        """At most, over so many batches; infinite beyond those for which it is tuned."""
        learner, params = self.rule, policy.params
        if params.n_arms == 1:
            return 0.0
        beyond = learner.tuning is not None and batches >= params.batches + 1
        if learner.bound is None or beyond:
            return math.inf
        _, fresh = policy.kernels.init(params)
        tuning = learner.tuning(params, fresh) if learner.tuning else ()
        moment = _root_mean_square(policy, params.noise) ** 2
        return float(learner.bound(params, moment, tuning, batches))


def _choices(policy: LearningPolicy) -> int:
    """What a learner chooses from: experts, or arms."""
    return int(policy.config.get("n_experts", policy.n_arms))


def _root_mean_square(policy: LearningPolicy, noise: float) -> float:
    """At most that of a loss in [0, 1] plus noise."""
    variance = 2.0 * noise**2 if isinstance(policy.channel, Laplace) else noise**2
    return math.sqrt(1.0 + variance)


@dataclass(frozen=True, repr=False)
class EXP3(LearnerPart):
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

    rule: ClassVar[Learner] = EXP3_LEARNER
    rate: float | None = None
    mixing: float | None = None


@dataclass(frozen=True, repr=False)
class HTINF(LearnerPart):
    """Follow the regularised leader with 1/2-Tsallis entropy and skipping (Corollary 2).

    HTINF of Huang, Dai & Huang (2022) for heavy tails: draws from the minimiser of ``eta <L, x> -
    alpha sum x^(1/alpha)`` with ``eta = 1 / (sigma t^(1/alpha))``, and skips a loss above ``Theta
    x^(1/alpha) / eta``, where Theta is 0.2063 for alpha = 2.  It needs no horizon.

    Args:
        sigma: a bound on E[|noisy loss|^alpha]^(1/alpha); by default the root mean square, sqrt(1 +
            2 / (epsilon tau)^2), sqrt(1 + its variance) for Gaussian noise, and sqrt(6) with
            ``calibration="paper"``.
        alpha: the moment that is bounded, in [1.01, 2]; 2 by default.

    When to choose: the default.  Regret at most ``30 sigma tau sqrt(K (T / tau + 1)) + tau``.  An
    alpha below 2 is for losses whose squares have no mean; here they have one, and 2 is best for
    many rounds.

    >>> HTINF()
    HTINF()
    """

    rule: ClassVar[Learner] = HTINF_LEARNER
    sigma: float | None = None
    alpha: float | None = None


@dataclass(frozen=True, repr=False)
class FTPL(LearnerPart):
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

    rule: ClassVar[Learner] = FTPL_LEARNER
    rate: float | None = None
    tries: int | None = None


@dataclass(frozen=True, repr=False)
class EXP3IX(LearnerPart):
    """EXP3-IX (Neu 2015): exponential weights on losses divided by ``p + eta / 2``, eta = sqrt(ln K
    / (K t)).  Implicit exploration is not made for negative losses: it takes no budget.

    >>> EXP3IX()
    EXP3IX()
    """

    rule: ClassVar[Learner] = EXP3_IX_LEARNER


@dataclass(frozen=True, repr=False)
class TsallisINF(LearnerPart):
    """1/2-Tsallis-INF (Zimmert & Seldin 2021), optimal for adversarial and for stochastic rewards:
    draws from the minimiser of ``<L, x> - 2 sqrt(t) sum sqrt(x)``.  It takes no budget; ``HTINF``
    is its private relative, which skips losses that are too large.

    >>> TsallisINF()
    TsallisINF()
    """

    rule: ClassVar[Learner] = TSALLIS_INF_LEARNER
    published_sigma: ClassVar[float] = 1.0


@dataclass(frozen=True, repr=False)
class Registered(LearnerPart):
    """A learner by its name.

    Args:
        learner: its name: ``"htinf"``, ``"exp3"``, ``"ftpl"``, or one of ``register_learner``.
        rate, mixing, tries, sigma, alpha: constants of learners that take them.

    When to choose: a learner of your own.

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
        self._set(rule=_LEARNERS[choice("learner", self.learner, tuple(_LEARNERS))])
        for constant, value in self.constants.items():
            if constant not in self.rule.constants:
                takers = [repr(one) for one in _LEARNERS if constant in _LEARNERS[one].constants]
                raise ArgumentError(
                    f"{constant} must be None unless learner is {' or '.join(takers)}, got"
                    f" {value!r} for learner={self.learner!r}",
                    constant,
                )
        super().__post_init__()


FOLLOWED = (HTINF, EXP3, FTPL, Registered)  # which stand noise
LEARNERS = (*FOLLOWED, TsallisINF, EXP3IX)


def register_learner(name: str, learner: Learner) -> None:
    """Let ``Registered``, ``BatchConversion`` and ``ExpertConversion`` take a learner by a name.

    The conversion is private whatever the learner does, because a learner sees released losses
    only.  Regret is small if it stands any finite loss: they are in [0, 1] but for the noise, which
    is symmetric, with heavy tails for ``PureDP``.

    Args:
        name: of the learner; registering it anew replaces it for policies that are made later.
        learner: see ``Learner``; an example is in CONTRIBUTING.

    Raises:
        ArgumentError: the name is no identifier.
    """
    if not (isinstance(name, str) and name.isidentifier()):
        raise ArgumentError(f"name must be an identifier, got {name!r}", "name")
    _LEARNERS[name] = learner
