"""Logs of other policies: whoever says that it learns from them does, privately or for nothing."""

from __future__ import annotations

import numpy as np
from suite import FIRST_OF_CLASS, Case, over

from dpbandits import DecisionLog, fit_logs
from dpbandits.testing.walk import contexts_of, shown

TAKING = [case for case in FIRST_OF_CLASS if case.cls.learns_off_policy]


def believed(policy, n):
    """What the model takes for the first n coefficients."""
    public = policy.session.state.public
    return np.array([policy.kernels.estimate(policy.params, public, i) for i in range(n)])


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
        assert case.budget is None or any(f"log of {n} records" in one for one in told)
        spent.append(policy.ledger.spent())
        for i in range(n, n + 20):  # and goes on
            policy.update(
                0.5, policy.pull(None if contexts is None else shown(policy, contexts[i]))
            )
        assert policy.diagnostics.dropped == 0
    if case.budget is not None:
        assert spent[0] is not None
        assert spent[1] is None


@over(TAKING, short=["MergedIMED"])
def test_what_it_learns_is_what_the_log_says_and_not_whom_the_log_chose(case: Case):
    """Without noise: a linear model is the regression on the log's arms, shrunk a little; of finite
    arms the best is played, though most records are of another.
    """
    n, rng = 600, np.random.default_rng(1)
    k = case.make().n_arms
    arms = np.where(rng.random(n) < 0.5, 0, rng.integers(0, k, n))
    for private in (True, False):
        if case.cls.sees == "contexts":
            policy = case.under(None).make(reward_range=(-1.0, 1.0))
            d = policy.dimension
            theta = np.linspace(0.8, -0.3, d) / np.sqrt(d)
            contexts = np.random.default_rng(2).uniform(-1, 1, (n, k, d)) / np.sqrt(d)
            log = {"arm": arms, "reward": contexts[np.arange(n), arms] @ theta}
            fit_logs(policy, log, private=private, features=contexts)
            assert np.abs(believed(policy, d) - theta).max() < 0.05
        else:
            policy = case.under(None).make()
            means = np.where(np.arange(k) == k - 1, 0.9, 0.3)
            log = {"arm": arms, "reward": (rng.random(n) < means[arms]).astype(float)}
            fit_logs(policy, log, private=private)
            played = []
            for _ in range(60):
                played.append(policy.pull().arm)
                policy.update(means[played[-1]])
            assert np.mean(np.array(played) == k - 1) > 0.8


@over(TAKING, short=["MergedIMED"])
def test_what_a_decision_log_holds_is_learned_as_if_it_were_told_directly(case: Case, tmp_path):
    """Rewards come by tokens, when other decisions are in files already."""
    policy, n = case.make(), 60
    contexts, hidden = contexts_of(policy), policy.card.hides_contexts
    given = [] if contexts is None else [shown(policy, contexts[i]) for i in range(n)]
    rng, waiting = np.random.default_rng(2), []
    arms, rewards = np.zeros(n, np.int64), rng.random(n)

    def answer():
        i, token = waiting.pop(rng.integers(len(waiting)))
        log.write(token, reward=rewards[i])

    with DecisionLog(
        tmp_path, policy, rewards=True, features=contexts is not None and not hidden, rows=7
    ) as log:
        for i in range(n):
            decision = policy.pull(*given[i : i + 1])
            arms[i] = decision.arm
            log.write(decision, contexts=given[i] if given and not hidden else None)
            waiting.append((i, decision.token))
            if i % 3:
                answer()
        while waiting:
            answer()
    direct, read = case.make(seed=1), case.make(seed=1)
    fits = fit_logs(direct, {"arm": arms, "reward": rewards}, features=given or None)
    told = (given if hidden else "features") if given else None
    again = fit_logs(read, tmp_path, features=told)
    assert fits.used.tolist() == again.used.tolist()
    sides = [(*one.session.state.public, *one.session.state.raw) for one in (direct, read)]
    for expected, found in zip(*sides, strict=True):
        np.testing.assert_array_equal(found, expected)
