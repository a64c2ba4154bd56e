"""Generalised linear bandits under joint differential privacy: one noisy Newton step on each epoch.

What crosses the wall, how far one person moves it, and what follows from it: ``newton``.  Epochs
are fixed in advance, and grow.  Why this is joint privacy: ``hidden.joint``.

**Anticipating joint privacy** (Chen, Li, Rakhlin & Simchi-Levi 2025) says more: whatever arms were
played up to and including the round of that person, the arms of all later people tell of her
record (x, a, r) no more than the budget allows.  Here arms are inputs, which the adversary
overrides; they are not conditioned on, since to know a_t as the policy drew it is to know something
of the noise that is stored.  It holds for the same reason: for any arms, records are inputs to an
adaptive continual sum, of which one increment holds hers; later arms are functions of its releases,
of random numbers that are fresh, and of later people's features, which may depend on those releases
in any way.  So the guarantee claims it; joint privacy is the case in which nothing is overridden.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Unpack

from ...glm.links import link_of
from ...glm.replacement import replacement_sensitivity
from ...policies import Card, Statistic, register
from ...privacy.budgets import Budget
from ...privacy.vector_channels import CHANNEL_GAUSSIAN
from ...validation import integer, real
from ..bases.counter_choice import MOST_ROUNDS, running_sum
from ..bases.errata import ANTICIPATING
from ..bases.linear import MODEL, RADIUS, LinearOptions, ModelOptions, modelled
from ..hidden.policy import PrivateContextPolicy
from .linked import LinkedPolicy
from .newton import optimistic, sampled, score_sensitivity
from .state import NewtonParams

PROOF = "dpbandits.algorithms.glm: sensitivity in newton, anticipating joint privacy in joint"
DEFINITION = (
    "Chen, Li, Rakhlin & Simchi-Levi (2025), Beyond Covariance Matrix: The Statistical Complexity"
    " of Private Linear Regression (definitions)"
)


class GLMOptions(LinearOptions, total=False):
    """Constructor arguments of generalised linear policies with private features, beside their own
    and those of ``LinearOptions``.

    repair: as in ``PrivateModelOptions``.
    """

    repair: str


class GLMThompsonOptions(ModelOptions, total=False):
    """The same where there is no radius.

    parameter_bound: on the norm of the unknown parameter.  Default 1.
    repair: as in ``PrivateModelOptions``.
    """

    parameter_bound: float
    repair: str


class JointGLMPolicy(LinkedPolicy, PrivateContextPolicy):
    """The base of policies that release scores and information of their epochs."""

    def __init__(
        self,
        config: dict[str, Any],
        *,
        horizon: int,
        reward_weight: float,
        counter: str | None,
        models: str,
        **options: Any,
    ) -> None:
        self._weight = real("reward_weight", reward_weight, 1e-6, 1e6)
        most = integer("horizon", horizon, 1, MOST_ROUNDS)
        own = {"reward_weight": self._weight, **running_sum(most, counter), **modelled(models)}
        super().__init__({**config, **own}, **options)

    @property
    def _largest(self) -> float:
        return self._weight * self._linked.residual

    def _moved(self, reward: float, length: float) -> float:
        steepest = self._linked.conditioning.largest_slope
        whatever = score_sensitivity(reward, steepest, length)
        found = replacement_sensitivity(
            self._linked.link,
            self.reward_range,
            length=length,
            parameter=self._parameter_bound,
            weight=self._weight,
            square="slope",
        )
        if found is None:
            return whatever
        if self.n_models > 1:  # a record may move to another block
            apart = math.sqrt(2.0) * math.hypot(reward, steepest * length) * length
            found = max(found, apart)
        return min(found, whatever)

    def _statistic(self) -> Statistic:
        bound, steepest = self.context_bound, self._linked.conditioning.largest_slope
        return replace(
            super()._statistic(),
            max_abs_contribution=bound * max(self._largest, math.sqrt(2.0) * steepest * bound),
            max_records=self._memory()["capacity"],
        )

    def _params(self) -> NewtonParams:
        model = super()._params()
        std = self.noise_scale if model.adds_up else self._noise_std  # of the first release
        return NewtonParams(
            **self._slopes(),
            **self._memory(),
            linear=model,
            n_arms=self.n_arms,
            dimension=self.dimension,
            context_bound=self.effective_bound,
            length=self.context_bound,
            movement=self.statistic.max_sensitivity,
            reach=self._linked.conditioning.reach,
            residual=self._linked.residual if self.clip else math.inf,
            std=std,
        )


@register(n_arms=3, dimension=2, horizon=30_000, batch=4)
class GLMUCBJDP(JointGLMPolicy):
    """Optimism in a generalised linear model with private features and rewards, under joint
    differential privacy: one noisy Newton step on each of ever longer epochs.

    Mean rewards are ``nu(<x, theta>)``.  Plays arg max of ``<x, estimate> + width``; estimate,
    information matrix and width change at the end of an epoch.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion but ``PureDP``; None for the non-private counterpart.
        horizon: an upper bound on the number of rounds.  After it nothing more is learned.  Memory
            and saved files have room for the records of the longest epoch, horizon * growth / (1 +
            growth) at most.
        link: nu: "logistic", "probit", "identity", or one of ``dpbandits.glm.register_link``.
        batch: rounds of the first epoch, and of the shortest.
        growth: by which the number of rounds grows between two estimates; 1 doubles it.
        reward_weight: how much more of the precision falls on scores than on information.
        counter: as in ``PrivateLinUCB``; by default the one with the least noise.
        models: as in ``LinUCB``.
        **options: see ``GLMOptions``.

    When to choose: rewards are yes or no, features are as private as rewards, and whoever runs the
    policy is trusted with both.

    Raises:
        ArgumentError: an argument is outside its range, or the link is flat, or not defined, for
            some <x, theta> that ``context_bound`` and ``parameter_bound`` allow.

    Example:
        >>> import numpy as np
        >>> policy = GLMUCBJDP(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> decision = policy.pull(np.eye(3)[:2])
        >>> policy.update(1.0)
        True
        >>> round(policy.condition_number, 3)
        1.272
    """

    card = Card(
        title="generalised linear UCB with private features, joint DP",
        source=f"{DEFINITION}; Li, Lu & Zhou (2017), Provably Optimal Algorithms for Generalized"
        " Linear Contextual Bandits; continual sums: dpbandits.privacy.continual",
        proof=PROOF,
        noise=(CHANNEL_GAUSSIAN,),
        protects="contexts and rewards",
        view="anticipating joint",
        errata=(ANTICIPATING,),
    )
    _kernels_of = staticmethod(optimistic)
    kernels = optimistic(link_of("logistic"))
    _options: ClassVar[dict[str, Any]] = {**MODEL, **RADIUS, "repair": "shift"}

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        link: str = "logistic",
        batch: int = 1,
        growth: float = 0.25,
        reward_weight: float = 1.0,
        counter: str | None = None,
        models: str = "shared",
        **options: Unpack[GLMOptions],
    ) -> None:
        super().__init__(
            {"n_arms": n_arms, "dimension": dimension},
            budget=budget,
            horizon=horizon,
            link=link,
            batch=batch,
            growth=growth,
            reward_weight=reward_weight,
            counter=counter,
            models=models,
            **options,
        )


@register(n_arms=3, dimension=2, horizon=30_000, batch=4)
class GLMThompsonJDP(JointGLMPolicy):
    """Thompson sampling in a generalised linear model with private features and rewards, under
    joint differential privacy.

    Plays the best arm for one draw of theta from ``N(estimate, s^2 V^-1 + v^2 V^-2)``, which is
    made before the features are seen, with ``V`` the information, ``s^2`` a bound on the variance
    of rewards over the slope of the link, and ``v`` the standard deviation of the noise on V theta.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion but ``PureDP``; None for the non-private counterpart.
        horizon, link, batch, growth, reward_weight, counter, models: as in ``GLMUCBJDP``.
        inflation: multiplies the spread of the draw.
        **options: see ``GLMThompsonOptions``.

    When to choose: as ``GLMUCBJDP``, when randomised choices are wanted; mostly lower regret,
    without a theorem.

    Example:
        >>> import numpy as np
        >>> policy = GLMThompsonJDP(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> policy.pull(np.eye(3)[:2]).arm in (0, 1)
        True
    """

    card = Card(
        title="generalised linear Thompson sampling with private features, joint DP",
        source=f"{DEFINITION}; Chapelle & Li (2011), An Empirical Evaluation of Thompson Sampling",
        proof=PROOF,
        noise=(CHANNEL_GAUSSIAN,),
        protects="contexts and rewards",
        view="anticipating joint",
        randomised=True,
        errata=(ANTICIPATING,),
    )
    _kernels_of = staticmethod(sampled)
    kernels = sampled(link_of("logistic"))
    _options: ClassVar[dict[str, Any]] = {**MODEL, "parameter_bound": 1.0, "repair": "shift"}

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        link: str = "logistic",
        batch: int = 1,
        growth: float = 0.25,
        reward_weight: float = 1.0,
        counter: str | None = None,
        inflation: float = 1.0,
        models: str = "shared",
        **options: Unpack[GLMThompsonOptions],
    ) -> None:
        self._inflation = real("inflation", inflation, 0.0, 1e12)
        super().__init__(
            {"n_arms": n_arms, "dimension": dimension, "inflation": self._inflation},
            budget=budget,
            horizon=horizon,
            link=link,
            batch=batch,
            growth=growth,
            reward_weight=reward_weight,
            counter=counter,
            models=models,
            **options,
        )

    def _params(self) -> NewtonParams:
        params = super()._params()
        drawn = params.linear._replace(radius_scale=self._inflation)
        return params._replace(linear=drawn)
