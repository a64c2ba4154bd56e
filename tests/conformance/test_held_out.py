"""A holdout beside every policy: the bandit is as if held-out people had not come, or it is
refused.
"""

from __future__ import annotations

import numpy as np
import pytest
from suite import BY_CLASS, CASES, FIRST_OF_CLASS, OF_KINDS, Case, over

from dpbandits import ArgumentError, Holdout
from dpbandits.session.session import Session
from dpbandits.testing.walk import contexts_of, shown

HOLDOUT = Holdout(0.3, batch=5)
PEOPLE = 200


def takes_holdout(case: Case) -> bool:
    """Central trust, of which all here have the calibration that is proved."""
    card = case.cls.card
    return card.trust_model in ("central", "none")


def sides_of(session: Session) -> tuple[bytes, ...]:
    """All that a bandit knows and will draw."""
    state = session.state
    streams = [str(rng.bit_generator.state).encode() for rng in state.streams.values()]
    return (*(block.tobytes() for block in state.blocks), *streams)


@over([case for case in FIRST_OF_CLASS if takes_holdout(case)], short=OF_KINDS)
def test_the_bandit_is_as_if_held_out_people_had_not_come(case: Case):
    one, alone = case.make(seed=5, holdout=HOLDOUT), case.make(seed=5)
    contexts, rng, held_out = contexts_of(one), np.random.default_rng(2), 0
    for t in range(PEOPLE):
        seen = None if contexts is None else shown(one, contexts[t])
        reward, before = float(rng.random() < 0.5), sides_of(one.session)
        decision = one.pull(seen)
        if decision.held_out:
            assert decision.propensity == pytest.approx(1.0 / one.n_arms)
            assert one.update(reward, decision)
            assert sides_of(one.session) == before
            held_out += 1
            continue
        other = alone.pull(seen)
        assert (decision.arm, decision.recorded) == (other.arm, other.recorded)
        assert decision.propensity == other.propensity
        assert one.update(reward, decision) == alone.update(reward, other)
    assert 30 < held_out < 90
    assert one.ledger.frame.equals(alone.ledger.frame)
    assert sides_of(one.session) == sides_of(alone.session)
    assert one.holdout.rounds == held_out


@over([case for case in BY_CLASS if not takes_holdout(case)])
def test_without_a_proof_it_is_refused(case: Case):
    with pytest.raises(ArgumentError, match="holdout must be None here"):
        case.make(holdout=HOLDOUT)


def test_both_kinds_are_met():
    assert 40 < sum(map(takes_holdout, FIRST_OF_CLASS)) < len(FIRST_OF_CLASS) - 10
    assert not any(takes_holdout(case) for case in CASES if "LDP" in case.name)
