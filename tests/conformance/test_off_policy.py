"""Logs of other policies: whoever says that it learns from them does, privately or for nothing."""

from __future__ import annotations

import numpy as np
from suite import FIRST_OF_CLASS, Case, contexts_of, over, shown

from dpbandits import fit_logs

TAKING = [case for case in FIRST_OF_CLASS if case.cls.learns_off_policy]


@over(TAKING, short=["MergedIMED"])
def test_whoever_learns_off_policy_takes_a_private_log_and_a_public_one(case: Case):
    n = 150
    rng, spent = np.random.default_rng(2), []
    for private in (True, False):
        policy = case.make()
        arms, contexts = rng.integers(0, policy.n_arms, n), contexts_of(policy)
        given = (
            None if contexts is None else np.array([shown(policy, contexts[i]) for i in range(n)])
        )
        log = {"arm": arms, "reward": rng.random(n)}
        fitted = fit_logs(policy, log, private=private, features=given)
        assert fitted.used.sum() > n / 10
        assert policy.rounds == (fitted.used.sum() if private else 0)
        assert (policy.ledger.releases > 0) == private
        told = policy.guarantee.assumptions
        assert case.budget is None or any(
            f"log of {fitted.used.sum()} records" in one for one in told
        )
        spent.append(policy.ledger.spent())
        for i in range(n, n + 20):  # and goes on
            policy.update(
                0.5, policy.pull(None if contexts is None else shown(policy, contexts[i]))
            )
        assert policy.dropped == 0
    if case.budget is not None:
        assert spent[0] is not None
        assert spent[1] is None
