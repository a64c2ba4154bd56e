"""Linear IMED with private features, in the three models of trust.

The index is a function of a person's own features and of what was released, as the widths of
``joint``, ``local`` and ``shuffled`` are, which say why that is private; ``regression`` has the
index.  Before anything is known, people choose by coins of their own (``choose_divergent``).
"""

from __future__ import annotations

from typing import Unpack

from ...policies import Card, register
from ...privacy.budgets import ApproxDP, Budget
from ...validation import integer, real
from ..bases.counter_choice import MOST_ROUNDS, running_sum
from ..bases.errata import SHUFFLED_BITS, SHUFFLED_MESSAGES
from ..bases.linear import modelled
from ..bases.schedules import Schedule
from . import joint, local, shuffled
from .model import DIVERGENT, on_arrival
from .policy import IMEDPolicy, PrivateIMEDOptions

_SOURCE = (
    "after Bian & Tan (2024), Indexed Minimum Empirical Divergence-Based Algorithms for Linear"
    " Bandits; statistic: Shariff & Sheffet (2018)"
)


@register(n_arms=3, dimension=2, horizon=30_000, batch=4)
class LinearIMEDJDP(IMEDPolicy):
    """Indexed minimum empirical divergence for a linear model with private features and rewards
    under joint differential privacy: the default with private contexts.

    Plays arg min of ``D^2 / (2 w^2) - ln(w^2 / s^2) + ln margin``, without margin for the best,
    with ``D`` what an arm lacks to it, ``w`` the error of that in its own direction, as far as new
    noise does not undo it, and ``s`` how far rewards with such a mean may scatter.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion but ``PureDP``; None for the non-private counterpart.
        horizon: an upper bound on the number of rounds.  With a longer one exploration is
            longer, too.  None with the hybrid counter.
        batch: the most rounds between two releases.
        growth: a batch is this share of the rounds before it, until batches are ``batch`` long.
        counter: as in ``PrivateLinUCB``; by default the one with the least noise.
        alpha: as in ``LinearIMED``; lower, as a share of the noise is explored beside it.
        margin: as in ``LinearIMED``.
        models: as in ``LinUCB``.
        **options: see ``PrivateIMEDOptions``.

    When to choose: as ``LinUCBJDP``, for less regret, without a theorem.  Before anything is known,
    choices are random, and their propensities have no closed form.

    Example:
        >>> import numpy as np
        >>> policy = LinearIMEDJDP(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> policy.pull(np.eye(3)[:2]).arm in (0, 1)
        True
    """

    card = Card(
        title="linear IMED with private features, joint DP",
        source=_SOURCE,
        proof=joint.PROOF,
        noise=("Gaussian",),
        protects="contexts and rewards",
        view="joint",
        randomised=True,
    )

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int | None = None,
        batch: int = 1,
        growth: float = 0.1,
        counter: str | None = None,
        alpha: float = 1.3,
        margin: float = 2.0,
        models: str = "shared",
        **options: Unpack[PrivateIMEDOptions],
    ) -> None:
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "batch": integer("batch", batch, 1, MOST_ROUNDS),
            "growth": real("growth", growth, 0.01, 1e6),
            **self._weighed(alpha, margin),
            **running_sum(horizon, counter),
            **modelled(models),
        }
        super().__init__(own, budget=budget, **options)

    @property
    def _schedule(self) -> Schedule:
        return Schedule(1, self.config["growth"], float(self.config["batch"]))


@register(n_arms=3, dimension=2, horizon=30_000)
class LinearIMEDLDP(IMEDPolicy, local.LocalPolicy):
    """Linear IMED on reports that every person's device has randomised.

    The index is that of ``LinearIMEDJDP``; devices and their server are those of ``LinUCBLDP``.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion but ``PureDP``, for each report; None for the non-private
            counterpart.
        horizon: an upper bound on the number of rounds.  With a longer one exploration is
            longer, too.
        batch: reports between two estimates.
        reports: whether this is the server of devices.
        alpha, margin: as in ``LinearIMEDJDP``.
        models: as in ``LinUCB``.
        **options: see ``PrivateIMEDOptions``.

    When to choose: as ``LinUCBLDP``; less regret, without a theorem.  Before anything is
    known, choices are random, and their propensities have no closed form.

    Example:
        >>> import numpy as np
        >>> server = LinearIMEDLDP(2, 3, budget=ZCDP(0.5), horizon=1000, reports=True, seed=1)
        >>> device = server.device()
        >>> device.choose(np.eye(3)[:2]) in (0, 1)
        True
        >>> server.receive(device.report(1.0))
        True
    """

    card = Card(
        title="linear IMED with private features, local DP",
        source=_SOURCE,
        proof=local.PROOF,
        noise=("Gaussian",),
        trust_model="local",
        protects="contexts and rewards",
        view="joint",
        learns_at_once=True,
        randomised=True,
    )
    kernels = on_arrival(DIVERGENT)

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        batch: int = 1,
        reports: bool = False,
        alpha: float = 1.3,
        margin: float = 2.0,
        models: str = "shared",
        **options: Unpack[PrivateIMEDOptions],
    ) -> None:
        super().__init__(
            {
                "n_arms": n_arms,
                "dimension": dimension,
                **self._weighed(alpha, margin),
                **modelled(models),
            },
            budget=budget,
            horizon=horizon,
            batch=batch,
            reports=reports,
            **options,
        )


@register(n_arms=3, dimension=2, horizon=30_000, batch=4)
class LinearIMEDSDP(IMEDPolicy, shuffled.ShuffledPolicy):
    """Linear IMED on sums of batches of people, which leave a shuffler with the noise of all of
    them.

    The index is that of ``LinearIMEDJDP``; devices, shuffler and server are those of
    ``LinUCBSDP``.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: ``ApproxDP``, of a person, or with ``max_rounds`` of all rounds of a user; None for
            the non-private counterpart.
        horizon: an upper bound on the number of people.  With a longer one exploration is
            longer, too.
        batch, protocol, level: as in ``LinUCBSDP``.
        levels: steps of the protocol's grid; by default many enough to lose little.
        dropout: people of a batch whose noise may be missing, or known to the server.
        messages: whether this is the server of devices.
        alpha, margin: as in ``LinearIMEDJDP``; alpha is higher, as noise changes slowly.
        models: as in ``LinUCB``.
        **options: see ``PrivateIMEDOptions``; ``calibration`` as in ``LinUCBSDP``.

    When to choose: as ``LinUCBSDP``; less regret, without a theorem.  Before anything is
    known, choices are random, and their propensities have no closed form.

    Example:
        >>> import numpy as np
        >>> budget = ApproxDP(1.0, 1e-4)
        >>> policy = LinearIMEDSDP(2, 3, budget=budget, horizon=3000, batch=3, seed=1)
        >>> policy.pull(np.eye(3)[:2]).arm in (0, 1)
        True
    """

    card = Card(
        title="linear IMED with private features, shuffle model",
        source=_SOURCE + " and Chowdhury & Zhou (2022), Algorithm 1",
        proof=shuffled.PROOF,
        noise=("certified",),
        trust_model="shuffle",
        protects="contexts and rewards",
        view="shuffle",
        randomised=True,
        errata=(SHUFFLED_MESSAGES, SHUFFLED_BITS),
    )
    _share_adding_up = 0.2  # the tail of 0.15 is above 1 run in 1,000 on close pairs

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: ApproxDP | None,
        horizon: int,
        batch: int | str = 20,
        protocol: str = "modular",
        level: str = "shuffle",
        levels: int | None = None,
        dropout: int = 0,
        messages: bool = False,
        alpha: float = 1.5,
        margin: float = 2.0,
        models: str = "shared",
        **options: Unpack[PrivateIMEDOptions],
    ) -> None:
        super().__init__(
            {"n_arms": n_arms, "dimension": dimension, **self._weighed(alpha, margin)},
            budget=budget,
            horizon=horizon,
            batch=batch,
            protocol=protocol,
            level=level,
            levels=levels,
            dropout=dropout,
            messages=messages,
            models=models,
            **options,
        )
