"""What policies tell of what they have released: from public quantities only, and as far off as they
say.
"""

import inspect

import numpy as np
import pytest
from suite import FIRST_OF_CLASS, OF_KINDS, Case, over

from dpbandits import ZCDP, PureDP
from dpbandits.algorithms import LDPIMED, MergedIMED, MergedTopTwo, SequentialHalving
from dpbandits.papers.concentrated import AdaCUCB, AdaPUCB
from dpbandits.papers.others import DPIMED, DPTS, LDPUCB, AdaPTT, LazyDPTS
from dpbandits.testing.walk import Walk, frozen


@over(FIRST_OF_CLASS, short=OF_KINDS)
def test_estimates_are_made_of_what_is_public_and_say_what_they_are(case: Case):
    given = inspect.getattr_static(case.policy_class, "_arm_estimates")
    assert isinstance(given, staticmethod)  # with no way to the private side
    assert list(inspect.signature(given.__func__).parameters) == ["params", "public"]
    policy = case.make()
    fixed, fresh = hasattr(policy, "_arms"), policy.estimates  # fixed features have a prior
    assert fresh.leader is None
    assert fixed or fresh.means is None or np.isnan(fresh.means).all()
    walk, rng = Walk(policy), np.random.default_rng(6)
    releases = 70 if case.cls.card.learns_at_once else 5  # FixedLinUCB solves anew now and then
    walk.until(releases, lambda first, arm, n: [float(rng.binomial(n, 0.5))])
    told = policy._estimated(walk.public, releases)
    assert (told.means is None and told.coefficients is None) == bool(told.reason)
    assert told.reason or "<table" in told._repr_html_()
    if case.cls.card.hides_contexts:  # and with them arms, and how often they were played
        assert told.means is told.rounds is None
    if told.means is not None:
        assert told.means.shape == (policy.n_arms,) == told.frame.index.shape
        assert told.alive is None or told.alive[told.leader]
        released = ~np.isnan(told.means)
        assert released.any()
        assert told.errors is None or (told.errors[released] > 0.0).all()
        assert told.rounds is None or fixed or (told.rounds[released] > 0).all()
    assert told.coefficients is None or np.abs(told.coefficients).max() > 0.0
    before = frozen(walk.public)
    for name in ("means", "errors", "rounds", "alive", "coefficients"):
        if getattr(told, name) is not None:
            getattr(told, name)[...] = 0  # copies
    assert frozen(walk.public) == before


SINGLE = [
    (MergedIMED, {"budget": PureDP(0.3)}),
    (MergedIMED, {"budget": ZCDP(0.05), "reward_range": (-2.0, 3.0)}),
    (DPIMED, {"budget": PureDP(0.3)}),
    (AdaCUCB, {"budget": ZCDP(0.05)}),
    (AdaCUCB, {"budget": ZCDP(0.05), "forget": False}),
    (AdaPUCB, {"budget": PureDP(0.3)}),
    (LazyDPTS, {"budget": PureDP(0.3), "reward_range": (-2.0, 3.0)}),
    (LDPUCB, {"budget": PureDP(0.3)}),
    (LDPIMED, {"budget": ZCDP(0.05), "reward_range": (-2.0, 3.0)}),
    (DPTS, {"budget": PureDP(0.3), "horizon": 64, "counter": "independent"}),
    (MergedTopTwo, {"budget": PureDP(0.3), "n_arms": 2, "failure_probability": 1e-9}),
    (AdaPTT, {"budget": PureDP(0.3), "n_arms": 2, "failure_probability": 1e-9}),
    (SequentialHalving, {"budget": PureDP(0.3), "n_arms": 2, "horizon": 60}),
]


@pytest.mark.parametrize(
    ("cls", "given"),
    [
        pytest.param(
            cls,
            given,
            marks=[pytest.mark.xdist_group(cls.__name__)] + [pytest.mark.long] * (i != 0),
            id=f"{cls.__name__}-{i}",
        )
        for i, (cls, given) in enumerate(SINGLE)
    ],
)
def test_means_are_as_far_off_as_their_errors_say(cls, given):
    # Coins have the largest variance, which the errors are bounds for, and one arm, or the first of
    # two that are alike, is played whatever came of it: so the error is the standard deviation.
    # 600 runs; a factor of 2 in the variance of the noise would be one of 1.7 or more here.
    (lo, hi), off = given.get("reward_range", (0.0, 1.0)), []
    for run in range(600):
        policy = cls(**{"n_arms": 1, **given}, seed=run)
        coins = np.random.default_rng([7, run]).integers(0, 2, 60)
        for coin in coins:
            policy.update(hi if coin else lo, policy.pull())
        policy.finish()
        told = policy.estimates
        off.append((told.means[0] - (lo + hi) / 2) / told.errors[0])
    assert abs(np.mean(off)) < 0.25
    assert 0.7 < np.var(off) < 1.4
