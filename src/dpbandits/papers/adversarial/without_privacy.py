"""Learners without privacy, to measure the price of it: EXP3-IX and Tsallis-INF."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...algorithms.adversarial.conversion import CLOCK, MEMO, BatchedParams, BatchedPublic
from ...algorithms.adversarial.learners import choose_drawn, follow_tsallis
from ...algorithms.adversarial.learning import Learner
from ...algorithms.maths.simplex import exponential_weights, recentre
from ...kernel import Vector, kernel


@kernel
def learn_exp3_ix(params: BatchedParams, public: BatchedPublic, memo: Vector, loss: float) -> None:
    """Exponential weights with eta = sqrt(ln K / (K t)), on losses over p + eta / 2 (Neu 2015)."""
    k, t = float(params.n_arms), float(public.clock[CLOCK.batches])
    bias = 0.5 * np.sqrt(np.log(k) / (k * t))
    public.losses[int(memo[MEMO.arm])] += loss / (memo[MEMO.probability] + bias)
    recentre(public.losses)
    exponential_weights(public.losses, np.sqrt(np.log(k) / (k * (t + 1.0))), public.probability)


@kernel
def learn_tsallis_inf(
    params: BatchedParams, public: BatchedPublic, memo: Vector, loss: float
) -> None:
    """Learn from the importance-weighted loss, without a limit on its size."""
    public.losses[int(memo[MEMO.arm])] += loss / memo[MEMO.probability]
    follow_tsallis(params, public)


@dataclass(frozen=True, repr=False)
class EXP3IX(Learner):
    """EXP3-IX (Neu 2015): exponential weights on losses divided by ``p + eta / 2``, eta = sqrt(ln K
    / (K t)).  Implicit exploration is not made for negative losses: it takes no budget.

    >>> EXP3IX()
    EXP3IX()
    """

    choose, learn = choose_drawn, learn_exp3_ix
    skips_closed, private = True, False


@dataclass(frozen=True, repr=False)
class TsallisINF(Learner):
    """1/2-Tsallis-INF (Zimmert & Seldin 2021), optimal for adversarial and for stochastic rewards:
    draws from the minimiser of ``<L, x> - 2 sqrt(t) sum sqrt(x)``.  It takes no budget; ``HTINF``
    is its private relative, which skips losses that are too large.

    >>> TsallisINF()
    TsallisINF()
    """

    choose, learn = choose_drawn, learn_tsallis_inf
    skips_closed, private = True, False
    published_sigma = 1.0
