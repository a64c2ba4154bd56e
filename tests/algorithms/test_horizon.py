"""IMED with a horizon: the rule, what it is without one, and what follows after it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest
from sides import public_of

import dpbandits as dpb
from benchmarks.horizon import CANDIDATES, LOST, WORLDS, regrets
from dpbandits import ZCDP, ArgumentError, PureDP
from dpbandits.algorithms import LDPIMED, FixedLinear, MergedIMED, MergedLinearIMED
from dpbandits.algorithms.arms.law import MERGED, divergence_of
from dpbandits.algorithms.bases.episodes import CLOCK
from dpbandits.algorithms.bases.horizon import KNOTS, SHARE, doubt_of
from dpbandits.environments import Bernoulli
from dpbandits.parts import IMED, KLUCB
from dpbandits.planning import Setting
from dpbandits.planning.candidates import candidates
from dpbandits.policies import load

X, H = np.array(KNOTS).T


def asked(x: float) -> float:
    """h(x)."""
    return float(np.interp(x, X, H) + max(x - X[-1], 0.0))


def worth(n: float, v: float) -> float:
    """The weight of a batch, in batches of one round."""
    return (0.25 + v) / (0.25 / n + v / n**2)


def test_the_inverse_takes_back_what_is_asked_for():
    assert (np.diff(X) > 0).all()
    assert (np.diff(H) > 0).all()
    for x in np.linspace(0.0, 20.0, 101):
        assert doubt_of(asked(x)) == pytest.approx(x, abs=1e-9)


@pytest.mark.parametrize("budget", [ZCDP(1.0), PureDP(0.5), None], ids=str)
def test_of_two_arms_the_worse_is_tried_while_its_distance_is_below_what_is_asked_for(budget):
    """After the horizon as without one."""
    horizon, rng, tried = 400, np.random.default_rng(3), 0
    policy = MergedIMED(2, budget=budget, horizon=horizon, seed=2)
    v = policy.params.noise_scale**2 * (2 if policy.params.laplace else 1)
    public = public_of(policy)
    for _ in range(1000):
        decision = policy.pull()
        t = int(public.clock[CLOCK.rounds]) - 1
        if public.clock[CLOCK.done] == 1 and public.pulls.all():  # a batch has begun
            values, weights = public.merged[MERGED.value], public.merged[MERGED.weight]
            lead = int(values.argmax())
            target = min(max(float(values[lead]), 0.0), 1.0)
            apart = [
                divergence_of(policy.params, public.merged[:, a], public.merged[:, a], m, target)
                for a, m in enumerate(values)
            ]
            most = worth(SHARE * (horizon - t), v) if t < horizon else math.inf
            cut = np.minimum(weights, most)
            if max(apart) == 0.0:  # both lead: the lighter, of equals the first
                expected = int(cut.argmin())
            else:
                x = math.log(cut[lead] / cut[1 - lead])
                distance = apart[1 - lead]
                wanted = distance < (asked(x) if t < horizon else x) and x > 0.0
                expected = 1 - lead if wanted else lead
            assert decision.arm == expected, t
            tried += expected != lead
        policy.update(float(rng.random() < (0.5, 0.6)[decision.arm]))
    assert tried >= 3


def test_without_a_horizon_names_and_streams_stay():
    for made in (
        dpb.bandit(2, budget=PureDP(1.0)),
        dpb.bandit(2, budget=PureDP(1.0), trust="local"),
        dpb.bandit(2, budget=PureDP(1.0), trust="shuffle"),
        dpb.bandit(2, budget=PureDP(1.0), features=np.eye(2)),
    ):
        assert "horizon" not in made.stream_key
        assert made.params.horizon == 0
    assert IMED(horizon=None) == IMED()
    assert "horizon" not in IMED().to_dict()


def test_the_front_door_and_plans_tell_the_horizon():
    words = ({}, {"trust": "local"}, {"trust": "shuffle"}, {"features": np.eye(2)})
    for one in words:
        policy = dpb.bandit(2, budget=PureDP(1.0), horizon=700, **one)
        assert policy.params.horizon == 700
        assert "horizon=700" in policy.stream_key
    chosen = dpb.bandit(2, budget=ZCDP(1.0), horizon=700, index=KLUCB())
    assert chosen.params.horizon == 0
    setting = Setting(2)
    fitting = {one.title: one for one in candidates(setting, ZCDP(1.0))[0]}
    assert fitting["MergedIMED"].build(setting, ZCDP(1.0), 300).params.horizon == 300


@pytest.mark.parametrize("horizon", [0, -1, 1.5, "10", True])
def test_a_horizon_is_a_number_of_rounds(horizon: object):
    for make in (
        lambda: IMED(horizon=horizon),
        lambda: MergedIMED(2, budget=None, horizon=horizon),
        lambda: LDPIMED(2, budget=None, horizon=horizon),
        lambda: MergedLinearIMED(np.eye(2), budget=None, horizon=horizon),
    ):
        with pytest.raises(ArgumentError, match=r"^horizon must be an integer"):
            make()


def test_a_saved_policy_goes_on_with_its_horizon(tmp_path):
    policy = FixedLinear(np.eye(2), budget=ZCDP(1.0), horizon=50, seed=1)
    other = MergedIMED(2, budget=ZCDP(1.0), horizon=50, seed=1)
    for number, one in enumerate((policy, other)):
        for _ in range(30):
            one.pull()
            one.update(0.5)
        one.save(tmp_path / f"{number}.dpb")
        again = load(tmp_path / f"{number}.dpb")
        assert again.params.horizon == 50
        assert again.config["arms" if number == 0 else "index"] is not None


@pytest.mark.compiled
def test_the_search_for_the_constants_plays_the_same_rule():
    """Its runs have the mean regret of the package's."""
    world, runs = "two arms, 500", 4000
    means, horizon, _ = WORLDS[world]
    assert CANDIDATES["taken"] == (SHARE, tuple(H))
    for candidate, told in (("taken", horizon), ("none", None)):
        policy = MergedIMED(2, budget=ZCDP(1.0), horizon=told)
        ours = dpb.simulate(
            policy, Bernoulli(means), horizon=horizon, runs=runs, seed=11, record=[horizon]
        ).runs["regret"]
        theirs = regrets(candidate, world, runs)
        error = math.sqrt((ours.var() + theirs.var()) / runs)
        assert abs(ours.mean() - theirs.mean()) < 4.5 * error


@pytest.mark.long
@pytest.mark.compiled
def test_a_horizon_lowers_regret_and_loses_no_more_runs():
    means, horizon, runs = (0.5, 0.52), 30_000, 10_000
    found = [
        dpb.simulate(
            MergedIMED(2, budget=ZCDP(1.0), horizon=told),
            Bernoulli(means),
            horizon=horizon,
            runs=runs,
            seed=12,
            record=[horizon],
        ).runs["regret"]
        for told in (None, horizon)
    ]
    before, after = found
    error = math.sqrt((before.var() + after.var()) / runs)
    assert after.mean() + 4 * error < before.mean()
    lost = int((after > LOST * before.median()).sum())
    # 1.2 of 1,000 runs are lost without a horizon; twice as many would be noticed.
    assert binomtest(lost, runs, 1.2e-3, alternative="greater").pvalue > 1e-4
