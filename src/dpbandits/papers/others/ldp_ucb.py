"""LDP-UCB-L (Ren, Zhou, Liu & Shroff 2020): UCB where every reward is private from the policy, too.

Each reward crosses the wall by itself.  The wall stands around the person: noise is added to the
reward before anyone sees it.  A record is one reward and moves it by at most ``hi - lo``, and every
reward may spend the whole budget.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np

from ...algorithms.bases.local import LocalPolicy
from ...algorithms.stepwise import (
    Stepwise,
    StepwiseParams,
    choose_highest,
    never_below,
    stepwise_kernels,
)
from ...constraints import Constraints, Flag
from ...kernel import bind, kernel
from ...policies import Card, Options, register
from ...privacy.budgets import Budget


@kernel
def local_terms(params: StepwiseParams, t: float) -> tuple[float, float]:
    """ln t; with Laplace noise an arm with N <= 4 ln(t + 1) goes first."""
    return np.log(max(t, 1.0)), 4.0 * np.log(t + 1.0) if params.heavy else 0.0


@kernel
def local_index(params: StepwiseParams, mean: float, n: float, pressure: float) -> float:
    """mean + w sqrt(2 ln t / N) + the noise's own width.

    For Laplace noise of scale s the width is s sqrt(32 ln t / N), as published.  A mean of N > 4 ln
    t such variables exceeds that with probability at most t^-4.  Gaussian noise of standard
    deviation s widens the variance proxy: sqrt((2 w^2 + 8 s^2) ln t / N).
    """
    w, s = params.width, params.noise_scale
    if params.heavy:
        return mean + (w * np.sqrt(2.0) + s * np.sqrt(32.0)) * np.sqrt(pressure / n)
    return mean + np.sqrt((2.0 * w * w + 8.0 * s * s) * pressure / n)


@register(n_arms=3)
class LDPUCB(Stepwise, LocalPolicy):
    """UCB on rewards that were randomised before anyone saw them (Ren et al. 2020, LDP-UCB-L).

    With ``reports=True`` it takes reports of devices, as ``ArmsLocal`` does, and sees no reward.

    Args:
        n_arms: number of arms.
        budget: ``PureDP`` (Laplace noise, as published) or another notion
            (Gaussian noise); None for UCB1.
        reports: whether ``update`` is given reports instead of rewards.
        **options: see ``Options``.

    When to choose: to compare with the published algorithm; ``ArmsLocal`` has less regret.

    Example:
        >>> from dpbandits import PureDP
        >>> policy = LDPUCB(3, budget=PureDP(1.0), reports=True, seed=1)
        >>> policy.update(policy.randomiser()(1.0), policy.pull())
        True
    """

    card = Card(
        title="UCB on rewards that are randomised one by one",
        source=(
            "Ren, Zhou, Liu & Shroff (2020), Multi-Armed Bandits with Local Differential Privacy,"
            " Algorithm LDP-UCB-L"
        ),
        noise=("Laplace", "Gaussian"),
        trust_model="local",
        learns_at_once=True,
    )
    kernels = stepwise_kernels(
        bind(choose_highest, terms=local_terms, index=local_index, is_below=never_below)
    )
    constraints: ClassVar[Constraints] = {"reports": Flag()}

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        reports: bool = False,
        **options: Unpack[Options],
    ) -> None:
        own = {"n_arms": n_arms, "reports": reports}
        super().__init__(own, budget=budget, **options)
