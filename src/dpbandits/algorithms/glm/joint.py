"""Generalised linear bandits under joint differential privacy: one noisy Newton step on each epoch.

Guarantee:

* Protected: the record (x, a, r) of one person, from all who see the arms of all later people.
  Arms up to and including that person's round may be any (anticipating joint privacy, below).
* Adjacency: any other record of that person, who is in one epoch.
* Sensitivity: ``newton`` describes the released sums, their sensitivity, and their use.

Epochs are fixed in advance, and grow.  ``hidden.joint`` proves joint privacy.

**Anticipating joint privacy** (Chen, Li, Rakhlin & Simchi-Levi 2025) is stronger.  It fixes any
arms up to and including a person's round.  Then the arms of all later people reveal no more of the
person's record (x, a, r) than the budget allows.  Here arms are inputs, which the adversary
overrides.  They are not conditioned on, since the arm a_t drawn by the policy reveals something of
the stored noise.  The proof is that of joint privacy.  For any arms, records are inputs to an
adaptive continual sum, and one increment holds the person's record.  Later arms are functions of
its releases, of fresh random numbers, and of later people's features, which may depend on those
releases in any way.  So the guarantee claims it; joint privacy is the case without overridden arms.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Unpack

from ...glm.links import Link, link_of
from ...glm.replacement import replacement_sensitivity
from ...policies import Card, Statistic, composed, like, preset
from ...policies.presets import Composition
from ...privacy.budgets import Budget
from ...privacy.randomiser import CHANNEL_GAUSSIAN
from ..bases.counter_choice import running_sum
from ..bases.errata import ANTICIPATING
from ..bases.linear import MODEL, LinearPolicy
from ..exploration import Optimism, Sampling
from ..hidden.policy import UNKNOWN, HiddenPolicy
from ..hidden.presets import MODELS
from .newton import NewtonParams, optimistic, sampled, score_sensitivity
from .public import EpochPolicy, LinkOptions

PROOF = (
    "sensitivity: module dpbandits.algorithms.glm.newton; anticipating joint privacy: module"
    " dpbandits.algorithms.glm.joint"
)
DEFINITION = (
    "Chen, Li, Rakhlin & Simchi-Levi (2025), Beyond Covariance Matrix: The Statistical Complexity"
    " of Private Linear Regression (definitions)"
)


class HiddenGLMOptions(LinkOptions, total=False):
    """Arguments of ``HiddenGLM`` and its kin, beside their own and those of ``LinkOptions``.

    repair: as in ``HiddenOptions``.
    """

    repair: str


def moved_by_replacement(policy: LinearPolicy, length: float, **record: Any) -> float | None:
    """``replacement_sensitivity`` within the policy's bounds on rewards and on points."""
    return replacement_sensitivity(
        policy._linked.link,
        policy.reward_range,
        length=length,
        parameter=policy._parameter_bound,
        **record,
    )


def bounds_on_records(policy: LinearPolicy, residual: float) -> dict[str, Any]:
    """Bounds on a record for the kernels of all these models, given the bound on its residual."""
    return {
        "n_arms": policy.n_arms,
        "dimension": policy.dimension,
        "context_bound": policy.effective_bound,
        "movement": policy.statistic.max_sensitivity,
        "reach": policy._linked.conditioning.reach,
        "residual": residual if policy.clip else math.inf,
    }


@cache
def _composition(explore: type, link: Link) -> Composition:
    draws = explore is Sampling
    how = "Thompson sampling" if draws else "UCB"
    card = Card(
        title=f"generalised linear {how} with private features, joint DP",
        source=f"{DEFINITION}{UNKNOWN}",
        proof=PROOF,
        noise=(CHANNEL_GAUSSIAN,),
        protects="contexts and rewards",
        view="anticipating joint",
        randomised=draws,
        errata=(ANTICIPATING,),
    )
    return Composition(sampled(link) if draws else optimistic(link), card)


@composed(n_arms=3, dimension=2, horizon=30_000, batch=4)
class HiddenGLM(EpochPolicy, HiddenPolicy):
    """A generalised linear bandit with private features and rewards, under joint differential
    privacy: one noisy Newton step on each of ever longer epochs.

    Mean rewards are ``nu(<x, theta>)``.  Estimate, information matrix V and width change at the end
    of an epoch.  ``Optimism`` plays arg max of ``<x, estimate> + width``.  ``Sampling`` plays the
    best arm for one draw of theta as in ``GLM``, where ``v`` is the standard deviation of the noise
    on V theta.  The draw is made before the features are seen.

    Args:
        n_arms, dimension, counter, models: as in ``Linear``.
        budget: of any notion but ``PureDP``; None for the non-private counterpart.
        horizon: an upper bound on the number of rounds.  After it the policy stops learning.
            Memory and saved files have room for the records of the longest epoch, at most horizon *
            growth / (1 + growth).
        explore: ``Sampling()`` (default) or ``Optimism()``.
        link, batch, growth: as in ``GLM``.
        reward_weight: precision of scores, relative to that of information.
        **options: see ``HiddenGLMOptions``.

    When to choose: rewards are yes or no, features are as private as rewards, and the operator of
    the policy is trusted with both.  ``Sampling`` mostly has lower regret, without a theorem.

    Raises:
        ArgumentError: as for ``GLM``.

    Example:
        >>> from dpbandits import ZCDP
        >>> policy = HiddenGLM(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> policy.update(1.0, policy.pull([[1, 0, 0], [0, 1, 0]]))
        True
        >>> round(policy.condition_number, 3)
        1.272
    """

    _options: ClassVar[dict[str, Any]] = {**MODEL, "parameter_bound": 1.0, "repair": "shift"}
    _constants: ClassVar[dict[str, Any]] = {}

    @classmethod
    def composition(
        cls, *, explore: Optimism | Sampling, link: str = "logistic", **_: object
    ) -> Composition:
        """Kernels and card of an exploration and a link."""
        kind: Any = type(explore)  # which mypy does not take for a key
        return _composition(kind, link_of(link))

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        explore: Optimism | Sampling = Sampling(),  # noqa: B008  (a value)
        link: str = "logistic",
        batch: int = 1,
        growth: float = 0.25,
        reward_weight: float = 1.0,
        counter: str | None = None,
        models: str = "shared",
        **options: Unpack[HiddenGLMOptions],
    ) -> None:
        explore = self._explored(explore)
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "explore": explore,
            "link": link,
            "batch": batch,
            "growth": growth,
            "reward_weight": reward_weight,
            **running_sum(horizon, counter),
            "models": models,
        }
        composition = self.composition(explore=explore, link=link)
        super().__init__(own, budget=budget, composition=composition, **options)

    @property
    def _largest(self) -> float:
        return self._weight * self._linked.residual

    def _moved(self, reward: float, length: float) -> float:
        steepest = self._linked.conditioning.largest_slope
        whatever = score_sensitivity(reward, steepest, length)
        found = moved_by_replacement(self, length, weight=self._weight, square="slope")
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
            max_records=self._memory["capacity"],
        )

    def _params(self) -> NewtonParams:
        model = super()._params()
        return NewtonParams(
            **bounds_on_records(self, self._linked.residual),
            **self._linked.slopes,
            **self._memory,
            linear=model,
            length=self.context_bound,
            std=self.noise_scale if model.adds_up else self._noise_std,  # of the first release
        )


# By name ----------------------------------------------------------------------------------------

_ORDER = (
    "n_arms dimension reward_weight link batch growth horizon counter models ridge subgaussian"
    " context_bound parameter_bound"
)

GLMUCBJDP = preset(
    "GLMUCBJDP",
    HiddenGLM,
    f"{_ORDER} failure_probability radius_scale repair",
    """Optimism in a generalised linear model with private features, joint DP.""",
    about={
        "source": f"{DEFINITION}; Li, Lu & Zhou (2017), Provably Optimal Algorithms for Generalized"
        " Linear Contextual Bandits; running sums: module dpbandits.privacy.continual"
    },
    explore=like(Optimism, "failure_probability", "radius_scale"),
    models=MODELS,
)
GLMThompsonJDP = preset(
    "GLMThompsonJDP",
    HiddenGLM,
    f"n_arms dimension inflation {_ORDER.removeprefix('n_arms dimension ')} repair",
    """Thompson sampling in a generalised linear model with private features, joint DP.""",
    about={
        "source": f"{DEFINITION}; Chapelle & Li (2011), An Empirical Evaluation of Thompson"
        " Sampling"
    },
    explore=like(Sampling, "inflation"),
    models=MODELS,
)
