"""The stream of held-out people beside a policy: what it needs, its gate and its coin."""

from __future__ import annotations

from dataclasses import replace

from ..errors import ArgumentError
from ..privacy.budgets import Budget
from ..privacy.noise import NoiseSource, key_from
from ..protocol import Card
from ..session.gate import Gate
from ..session.holdout import CARD, KERNELS, Coin, Holdout, HoldoutParams, statistic_of
from ..session.holdout_targets import (
    KERNELS_WITH_TARGETS,
    statistic_with_targets,
)
from ..session.open_arms import Arms
from ..session.options import Settings
from ..session.session import Session
from .terms import Terms


def refuse_misfit(card: Card, settings: Settings, takes_reports: bool) -> None:
    """Refuse a holdout beside a policy for which it has no proof."""
    wrong = [
        (card.trust_model not in ("central", "none") or takes_reports, "with central trust"),
        (
            card.hides_contexts and settings.holdout is not None and settings.holdout.targets,
            "without targets if contexts are private: a target's arm depends on contexts",
        ),
        (not settings.clip, "with clip=True"),
        (settings.calibration != "exact", "with calibration='exact'"),
    ]
    for misfit, needed in wrong:
        if misfit:
            raise ArgumentError(
                f"holdout must be None here, got {settings.holdout!r}. A holdout is only possible"
                f" {needed}",
                "holdout",
            )


def holdout_terms(
    name: str, card: Card, budget: Budget | None, settings: Settings, noise: NoiseSource
) -> Terms:
    """The terms of the holdout of a policy with that card: the whole budget."""
    # Where the bandit learns answers as they come, the holdout waits for them.
    at_once = card.learns_at_once and not settings.answers_within
    within = None if at_once else settings.answers_within
    own = replace(settings, choices_public=False, answers_within=within)
    return Terms(f"{name} with a holdout", CARD, budget, own, False, noise, "")


def holdout_gate(terms: Terms, holdout: Holdout, arms: Arms) -> Gate:
    """The gate of held-out people's sums."""
    n_arms, q = arms.count, len(holdout.targets)
    if both := set(holdout.targets) & set(arms.names or ()):
        raise ArgumentError(
            f"targets of the holdout must not have names of arms, got {sorted(both)}", "holdout"
        )
    (lo, hi), noise = terms.settings.reward_range, terms.noise
    channel = terms.shared_channel(None)
    holdout.share_of(n_arms)  # which refuses to hold out everybody
    params = HoldoutParams(
        weights=holdout.weights_of(n_arms),
        batch=holdout.batch_for(channel, n_arms),
        one_sum=holdout.one_sum,
        turned=noise.to_grid(lo) + noise.to_grid(hi),
        width=hi - lo,
        targets=q,
    )
    statistic = statistic_of(params, (lo, hi))
    if q:
        moved = (hi - lo) * holdout.moved(channel.norm)
        statistic = statistic_with_targets(params, (lo, hi), moved)
    return Gate(
        kernels=KERNELS_WITH_TARGETS if q else KERNELS,
        params=params,
        statistic=statistic,
        channel=channel,
        noise=noise,
        meter=terms.meter(terms.growth(None, terms.settings.max_rounds)),
        ledger_family=terms.ledger_family(statistic),
        private=terms.budget is not None,
        reports=False,
    )


def add_holdout(session: Session, gate: Gate, terms: Terms, default_reward: float) -> None:
    """Give the session of a new policy its holdout, with random numbers of its own."""
    noise, holdout = terms.noise, terms.settings.holdout
    assert holdout is not None
    state = gate.new_state(simulated=gate.simulated).in_blocks()
    state.choice_rng = noise.generator("holdout") or noise.exploration()
    if gate.private:
        state.noise_rng = noise.generator("privacy of holdout")
    own = Session(CARD, terms.settings, session.arms, gate, default_reward, state)
    own.seal, session.holdout = session.seal, own
    share = holdout.share_of(session.arms.count)
    session.coin = Coin(key_from(state.choice_rng), share)
