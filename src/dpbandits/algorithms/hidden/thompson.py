"""Linear Thompson sampling with private features, in the three models of trust.

The draw of theta is made before features are seen, from what was released: a person's arm is a
function of her own features, of releases and of random numbers, as in ``joint``, ``local`` and
``shuffled``, which say why that is private.
"""

from __future__ import annotations

from typing import Unpack

from ...policies import Card, register
from ...privacy.budgets import ApproxDP, Budget
from ...validation import integer
from ..bases.counter_choice import MOST_ROUNDS, running_sum
from ..bases.errata import SHUFFLED_BITS, SHUFFLED_MESSAGES
from ..bases.linear import modelled
from . import joint, local, shuffled
from .model import SAMPLED, on_arrival
from .policy import PrivateModelOptions, ThompsonPolicy

_SOURCE = (
    "Agrawal & Goyal (2013), Thompson Sampling for Contextual Bandits with Linear Payoffs;"
    " statistic: Shariff & Sheffet (2018)"
)


@register(n_arms=3, dimension=2, horizon=30_000, batch=4)
class LinearThompsonJDP(ThompsonPolicy):
    """Linear Thompson sampling with private features and rewards under joint differential privacy,
    with the law of the noise in the posterior.

    Plays the best arm for one draw of theta from ``N(estimate, s^2 V^-1 + v^2 V^-2)``, which is
    made before the features are seen, with ``s`` the scatter of rewards and ``v`` the standard
    deviation of the noise on V theta (0 without a budget).

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion but ``PureDP``; None for the non-private counterpart.
        horizon: an upper bound on the number of rounds; generous is fine.  None with the hybrid
            counter.
        batch: rounds between two releases.
        counter: as in ``PrivateLinUCB``; by default the one with the least noise.
        inflation: multiplies the spread of the draw.
        models: as in ``LinUCB``.
        **options: see ``PrivateModelOptions``.

    When to choose: as ``LinUCBJDP``, when randomised choices are wanted; mostly lower regret,
    without a theorem.

    Example:
        >>> import numpy as np
        >>> policy = LinearThompsonJDP(2, 3, budget=ZCDP(0.5), horizon=1000, seed=1)
        >>> policy.pull(np.eye(3)[:2]).arm in (0, 1)
        True
    """

    card = Card(
        title="linear Thompson sampling with private features, joint DP",
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
        counter: str | None = None,
        inflation: float = 1.0,
        models: str = "shared",
        **options: Unpack[PrivateModelOptions],
    ) -> None:
        own = {
            "n_arms": n_arms,
            "dimension": dimension,
            "batch": integer("batch", batch, 1, MOST_ROUNDS),
            **self._inflated(inflation),
            **running_sum(horizon, counter),
            **modelled(models),
        }
        super().__init__(own, budget=budget, **options)


@register(n_arms=3, dimension=2, horizon=30_000)
class LinearThompsonLDP(ThompsonPolicy, local.LocalPolicy):
    """Linear Thompson sampling on reports that every person's device has randomised, with the law
    of their noise in the posterior.

    The draw is that of ``LinearThompsonJDP``; devices and their server are those of ``LinUCBLDP``.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: of any notion but ``PureDP``, for each report; None for the non-private
            counterpart.
        horizon: an upper bound on the number of rounds; generous is fine.
        batch: reports between two estimates.
        reports: whether this is the server of devices.
        inflation: multiplies the spread of the draw.
        models: as in ``LinUCB``.
        **options: see ``PrivateModelOptions``.

    When to choose: as ``LinUCBLDP``; mostly lower regret, without a theorem.

    Example:
        >>> import numpy as np
        >>> server = LinearThompsonLDP(2, 3, budget=ZCDP(0.5), horizon=1000, reports=True, seed=1)
        >>> device = server.device()
        >>> device.choose(np.eye(3)[:2]) in (0, 1)
        True
        >>> server.receive(device.report(1.0))
        True
    """

    card = Card(
        title="linear Thompson sampling with private features, local DP",
        source=_SOURCE,
        proof=local.PROOF,
        noise=("Gaussian",),
        trust_model="local",
        protects="contexts and rewards",
        view="joint",
        learns_at_once=True,
        randomised=True,
    )
    kernels = on_arrival(SAMPLED)

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: Budget | None,
        horizon: int,
        batch: int = 1,
        reports: bool = False,
        inflation: float = 1.0,
        models: str = "shared",
        **options: Unpack[PrivateModelOptions],
    ) -> None:
        super().__init__(
            {
                "n_arms": n_arms,
                "dimension": dimension,
                **self._inflated(inflation),
                **modelled(models),
            },
            budget=budget,
            horizon=horizon,
            batch=batch,
            reports=reports,
            **options,
        )


@register(n_arms=3, dimension=2, horizon=30_000, batch=4)
class LinearThompsonSDP(ThompsonPolicy, shuffled.ShuffledPolicy):
    """Linear Thompson sampling on sums of batches of people, which leave a shuffler with the noise
    of all of them, and with the law of that noise in the posterior.

    The draw is that of ``LinearThompsonJDP``; devices, shuffler and server are those of
    ``LinUCBSDP``.

    Args:
        n_arms: number of arms in every round.
        dimension: of the features.
        budget: ``ApproxDP``, of a person, or with ``max_rounds`` of all rounds of a user; None for
            the non-private counterpart.
        horizon: an upper bound on the number of people; generous costs little.
        batch, protocol, level: as in ``LinUCBSDP``.
        levels: steps of the protocol's grid; by default many enough to lose little.
        dropout: people of a batch whose noise may be missing, or known to the server.
        messages: whether this is the server of devices.
        inflation: multiplies the spread of the draw.
        models: as in ``LinUCB``.
        **options: see ``PrivateModelOptions``; ``calibration`` as in ``LinUCBSDP``.

    When to choose: as ``LinUCBSDP``; mostly lower regret, without a theorem.

    Example:
        >>> import numpy as np
        >>> budget = ApproxDP(1.0, 1e-4)
        >>> policy = LinearThompsonSDP(2, 3, budget=budget, horizon=3000, batch=3, seed=1)
        >>> policy.pull(np.eye(3)[:2]).arm in (0, 1)
        True
    """

    card = Card(
        title="linear Thompson sampling with private features, shuffle model",
        source=_SOURCE + " and Chowdhury & Zhou (2022), Algorithm 1",
        proof=shuffled.PROOF,
        noise=("certified",),
        trust_model="shuffle",
        protects="contexts and rewards",
        view="shuffle",
        randomised=True,
        errata=(SHUFFLED_MESSAGES, SHUFFLED_BITS),
    )

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
        inflation: float = 1.0,
        models: str = "shared",
        **options: Unpack[PrivateModelOptions],
    ) -> None:
        super().__init__(
            {"n_arms": n_arms, "dimension": dimension, **self._inflated(inflation)},
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
