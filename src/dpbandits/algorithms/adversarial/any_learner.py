"""The conversion of any learner (Faster Rates for Private Adversarial Bandits, Algorithm 1 and
Theorem 1): learners by their names, to which users may add, and the policy that takes one.
"""

from __future__ import annotations

from typing import Any, Unpack

from ...errors import ArgumentError
from ...policies import Card, Options, register
from ...privacy.budgets import Budget
from ...validation import choice
from ..bases.errata import ADVERSARIAL
from .conversion import BatchedPolicy, Learner, conversion
from .learners import EXP3_LEARNER, FTPL_LEARNER, HTINF_LEARNER

_LEARNERS = {"htinf": HTINF_LEARNER, "exp3": EXP3_LEARNER, "ftpl": FTPL_LEARNER}


def register_learner(name: str, learner: Learner) -> None:
    """Let ``BatchConversion`` and ``ExpertConversion`` take a learner by a name.

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


def learner_of(name: str, **constants: Any) -> Learner:
    """The learner of this name, which takes all constants that are not None."""
    learner = _LEARNERS[choice("learner", name, tuple(_LEARNERS))]
    for constant, value in constants.items():
        if value is not None and constant not in learner.constants:
            takers = [repr(one) for one in _LEARNERS if constant in _LEARNERS[one].constants]
            raise ArgumentError(
                f"{constant} must be None unless learner is {' or '.join(takers)}, got {value!r}"
                f" for learner={name!r}",
                constant,
            )
    return learner


@register(n_arms=3)
class BatchConversion(BatchedPolicy):
    """Any bandit learner for adversarial losses, on noisy batch losses (Theorem 1).

    Args:
        n_arms: number of arms.
        budget: ``PureDP`` (Laplace noise, as published) or another notion (Gaussian noise);
            None for the learner without privacy.
        learner: ``"htinf"``, ``"exp3"``, ``"ftpl"``, which have policies of their own, or one of
            ``register_learner``.
        horizon: rounds to tune for, which are no limit; None doubles the horizon of the tuning
            whenever it is reached.
        batch: rounds of one arm; by default the noise multiplier rounded up, which is ceil(1 /
            epsilon) for ``PureDP``.
        rate, mixing, tries, sigma, alpha: constants of learners that take them.
        **options: see ``Options``.

    When to choose: to make a learner of your own private.

    Example:
        >>> from dpbandits import PureDP
        >>> BatchConversion(3, learner="exp3", budget=PureDP(0.1), seed=1).batch
        10
    """

    card = Card(
        title="any bandit learner, on noisy batch losses",
        source="Faster Rates for Private Adversarial Bandits, Theorem 1",
        noise=("Laplace", "Gaussian"),
        randomised=True,
        errata=(ADVERSARIAL,),
    )
    _learner = HTINF_LEARNER
    kernels = conversion(_learner)

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        learner: str = "htinf",
        horizon: int | None = None,
        batch: int | None = None,
        rate: float | None = None,
        mixing: float | None = None,
        tries: int | None = None,
        sigma: float | None = None,
        alpha: float | None = None,
        **options: Unpack[Options],
    ) -> None:
        tuning = {"rate": rate, "mixing": mixing, "tries": tries, "sigma": sigma, "alpha": alpha}
        self._learner = learner_of(learner, **tuning)
        self.kernels = conversion(self._learner)
        own = self._tuned(horizon, batch, **tuning)
        super().__init__({"n_arms": n_arms, "learner": learner, **own}, budget=budget, **options)
