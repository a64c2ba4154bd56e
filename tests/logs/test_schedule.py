"""The order in which a log is learned from, against the first version, which asked every arm."""

from __future__ import annotations

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits import ZCDP, PureDP, fit_logs
from dpbandits.logs.schedule import batches
from dpbandits.papers.others import LazyDPTS


def asked_one_by_one(policy, arms, whole):
    """Python asks every arm for its next batch, and takes the one that is complete first."""
    counts = np.bincount(arms, minlength=policy.n_arms)
    params = [policy.params_for(max(int(n), 1)) if whole else policy.params for n in counts]
    kernels, side = policy.driven, policy.session.state
    queues = [np.flatnonzero(arms == a).tolist() for a in range(policy.n_arms)]
    met = [0] * policy.n_arms
    while True:
        best = None
        for a, queue in enumerate(queues):
            n = int(kernels.hold_rounds(params[a], side.public, a)) if met[a] < len(queue) else 0
            if 0 < n <= len(queue) - met[a] and (best is None or queue[met[a] + n - 1] < best[0]):
                best = queue[met[a] + n - 1], a, n
        if best is None:
            return
        _, a, n = best
        yield a, queues[a][met[a] : met[a] + n]
        met[a] += n


def noted(batches, seen):
    for arm, records in batches:
        seen.append((arm, list(map(int, records))))
        yield arm, records


CASES = {  # of each kind of length: own rounds, decay, the leader's, variances, one round
    "MergedIMED": lambda: dpb.algorithms.MergedIMED(7, budget=ZCDP(0.5), seed=1),
    "MergedThompson": lambda: dpb.algorithms.MergedThompson(7, budget=ZCDP(0.5), seed=1),
    "DiscountedIMED": lambda: dpb.algorithms.DiscountedIMED(
        7, budget=ZCDP(0.5), seed=1, rounds_per_change=99
    ),
    "AdaCUCB": lambda: dpb.papers.concentrated.AdaCUCB(7, budget=ZCDP(0.5), seed=1),
    "MergedLinearIMED": lambda: dpb.algorithms.MergedLinearIMED(
        np.random.default_rng(1).normal(size=(7, 3)) / 3, budget=ZCDP(0.5), seed=1
    ),
    "UCB1": lambda: dpb.algorithms.UCB1(7),
    "LazyDPTS": lambda: LazyDPTS(7, budget=PureDP(0.5), seed=1),
}


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_order_of_batches_is_that_of_asking_every_arm(name, private, monkeypatch):
    rng = np.random.default_rng(3)
    arms = rng.choice(7, 900, p=rng.dirichlet(np.ones(7) / 2))  # some have few records, or none
    log = {"arm": arms, "reward": rng.random(900)}
    orders = []
    for schedule in (
        batches,
        lambda policy, arms, whole=False: asked_one_by_one(policy, arms, whole),
    ):
        policy, seen = CASES[name](), []

        def watched(policy, arms, *, whole=False, seen=seen, schedule=schedule):
            return noted(schedule(policy, arms, whole=whole), seen)

        monkeypatch.setattr("dpbandits.logs.fitting.batches", watched)
        fit_logs(policy, log, private=private)
        orders.append(seen)
    assert orders[0] == orders[1]
    assert len(orders[0]) > 3
    taken = [i for _, records in orders[0] for i in records]
    assert len(set(taken)) == len(taken)
