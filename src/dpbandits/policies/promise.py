"""The guarantee of a policy, put together from its card and its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..privacy.guarantees import Guarantee
from ..privacy.noise import SimulationNoise

if TYPE_CHECKING:
    from .policy import Policy


def describe(policy: Policy, *, simulated: bool = False) -> Guarantee:
    """What the policy promises, under which assumptions, and what it does not.

    ``simulated`` describes a simulation of it, whose noise protects nobody even where the policy's own does.
    """
    card, holds = policy.card, policy._holds()
    lo, hi = policy.reward_range
    private = policy.budget is not None
    assumptions = []
    if private and policy.clip:
        assumptions.append(f"a person contributes one round, and rewards lie in [{lo:g}, {hi:g}], which clipping enforces")
        if card.trust_model == "local" and not policy._takes_reports:
            assumptions.append(
                "update() runs on the person's side; where it does not, use reports=True and randomise rewards there"
            )
        # With public choices, when a deviation is reported decides when the episode ends.
        if card.learns_at_once or policy.patience is None or policy.choices_public:
            assumptions.append("the time at which an answer arrives carries no private information")
    if private and policy.choices_public:
        assumptions.append("it is public when a person does something else than was recommended")
    noise = SimulationNoise if simulated else policy._noise
    caveats = list(noise.caveats) if private else []
    if private and not policy.clip:
        caveats.append("Rewards are not clipped, so that no sensitivity bound is true: the guarantee is void")
    if private and holds is None and policy.clip:
        caveats.append("The published calibration gives no (epsilon, delta) guarantee with delta below 1")
    if private and holds is not None and holds != policy.budget:
        caveats.append(f"The published calibration was asked for {policy.budget} and really gives what is stated here")
    return Guarantee(
        holds=holds if private else None,
        asked=policy.budget,
        trust_model=card.trust_model if private else "none",
        protects="rewards",
        view=card.view,
        unit="one round",
        assumptions=tuple(assumptions),
        source=card.source,
        caveats=tuple(caveats),
    )
