"""What a policy promises: its channel, the budget that really holds, and the guarantee, from its
card and its options.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

from ..errors import ArgumentError
from ..privacy import accounting
from ..privacy.budgets import ApproxDP, Budget
from ..privacy.channels import Channel, Laplace, LaplaceVector, Open
from ..privacy.guarantees import Guarantee
from ..privacy.noise import SimulationNoise

if TYPE_CHECKING:
    from .policy import Policy


# of a reward range, and of a noise multiplier: their squares have to be numbers
NARROWEST, WIDEST = (
    1e-100,
    1e100,
)


def calibrated_channel(policy: Policy) -> Channel:
    """The channel one release of which spends the policy's budget; open without a budget.

    Raises:
        ArgumentError: the algorithm has no noise for that notion, or the noise is too small or
            large for a number.
    """
    budget = policy.budget
    if budget is None:
        return Open()
    channels = policy.card.channels
    if type(budget) not in channels:
        allowed = " or ".join(["None", *sorted(kind.__name__ for kind in channels)])
        raise ArgumentError(
            f"budget must be {allowed} for {type(policy).__name__}, got {budget!r}", "budget"
        )
    kind = cast(Any, channels[type(budget)])
    try:
        channel: Channel = kind.calibrated(
            budget, calibration=policy.calibration, discrete=policy._noise.secure
        )
    except (ArgumentError, ArithmeticError) as error:
        raise ArgumentError(f"budget must be less extreme, got {budget!r}", "budget") from error
    if not NARROWEST <= channel.multiplier <= WIDEST:
        raise ArgumentError(f"budget must be less extreme, got {budget!r}", "budget")
    return channel


def obeys_gdp(policy: Policy) -> bool:
    """Whether the noise keeps a Gaussian-DP curve; discrete noise and Laplace noise keep a zCDP
    bound only.
    """
    return not (policy._noise.secure or isinstance(policy.channel, LaplaceVector))


def what_holds(policy: Policy) -> Budget | None:
    """The budget that one release, and by parallel composition the whole run, really spends; None
    where nothing holds.
    """
    budget, channel = policy.budget, policy.channel
    if policy.card.void or not policy.clip:
        return None
    if (
        policy.calibration == "paper"
        and isinstance(budget, ApproxDP)
        and not isinstance(channel, Laplace)
    ):
        if obeys_gdp(policy):
            delta = accounting.gaussian_delta(budget.epsilon, 1.0 / channel.multiplier)
        else:
            delta = accounting.zcdp_delta(0.5 / channel.multiplier**2, budget.epsilon)
        return ApproxDP(budget.epsilon, max(delta, math.ulp(0.0))) if delta < 1.0 else None
    return budget


def describe(policy: Policy, *, simulated: bool = False) -> Guarantee:
    """What the policy promises, under which assumptions, and what it does not.

    ``simulated`` describes a simulation of it, whose noise protects nobody even where the policy's
    own does.
    """
    card, holds = policy.card, what_holds(policy)
    lo, hi = policy.reward_range
    private = policy.budget is not None
    promised = private and not card.void
    assumptions = []
    if promised and policy.clip:
        assumptions.append(
            f"a person contributes one round, and rewards lie in [{lo:g}, {hi:g}], which clipping"
            " enforces"
        )
        assumptions += policy._assumed()
        # With public choices, when a deviation is reported decides when the episode ends.
        if card.learns_at_once or policy.patience is None or policy.choices_public:
            assumptions.append("the time at which an answer arrives carries no private information")
    if promised and policy.choices_public:
        assumptions.append("it is public when a person does something else than was recommended")
    # Who calls update() with a reward has seen it.
    trusting = card.trust_model == "local" and not policy._takes_reports and not simulated
    noise = SimulationNoise if simulated else policy._noise
    caveats = [] if not private else [card.void] if card.void else list(noise.caveats)
    if private and not policy.clip:
        caveats.append(
            "Rewards are not clipped, so that no sensitivity bound is true: the guarantee is void"
        )
    if promised and trusting:
        caveats.append(
            "Where nobody is to be trusted, use reports=True, and randomiser() on the person's"
            " device"
        )
    if promised and holds is None and policy.clip:
        caveats.append(
            "The published calibration gives no (epsilon, delta) guarantee with delta below 1"
        )
    if private and holds is not None and holds != policy.budget:
        caveats.append(
            f"The published calibration was asked for {policy.budget} and really gives what is"
            " stated here"
        )
    return Guarantee(
        holds=holds if private else None,
        asked=policy.budget,
        trust_model="none" if not private else "central" if trusting else card.trust_model,
        protects="rewards",
        view=card.view,
        unit="one round",
        assumptions=tuple(assumptions),
        source=card.source,
        caveats=tuple(caveats),
        simulated=private and (simulated or not policy._noise.secure),
    )
