"""The policy object by itself; what holds for every algorithm is in ``tests/conformance``."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from mpmath import mp

import dpbandits as dpb
from dpbandits.papers.dgs import LinUCBDGS
from dpbandits.papers.others import DPSE, LazyDPTS
from dpbandits.policies import registered


def adac(**options) -> dpb.papers.concentrated.AdaCUCB:
    return dpb.papers.concentrated.AdaCUCB(
        3, budget=options.pop("budget", dpb.ZCDP(0.5)), seed=1, **options
    )


# Decisions -----------------------------------------------------------------------------------


def test_a_decision_is_an_index():
    decision = adac().pull()
    assert ["a", "b", "c"][decision] == "a"
    assert np.array([7.0, 8.0, 9.0])[decision] == 7.0
    assert int(decision.__index__()) == decision.arm == 0


def test_decisions_are_numbered_and_cannot_grow_fields():
    policy = adac()
    assert [policy.pull().number for _ in range(3)] == [0, 1, 2]
    with pytest.raises(AttributeError):
        policy.pull().reward = 1.0  # type: ignore[attr-defined]


def test_propensity_is_one_where_the_choice_is_certain_and_none_where_unknown():
    assert adac().pull().propensity == 1.0
    sampling = dpb.algorithms.ThompsonSampling(2, seed=1)
    assert sampling.pull().propensity is None
    # Lazy-DP-TS plays arms without a release first, with certainty; afterwards it samples.
    lazy = LazyDPTS(2, budget=dpb.PureDP(1.0), seed=1)
    seen = []
    for _ in range(4):
        seen.append(lazy.pull().propensity)
        lazy.update(1.0)
    assert seen == [1.0, 1.0, None, None]


# Configuration -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        adac(),
        adac(
            beta=3.5,
            forget=False,
            reward_range=(-1.0, 2.0),
            answers_within=None,
            default_reward=0.5,
            choices_public=True,
        ),
        dpb.papers.concentrated.AdaCUCB(
            2, budget=dpb.ApproxDP(1.0, 1e-6), calibration="paper", clip=False, seed=1
        ),
        DPSE(4, horizon=1000, budget=None, failure_probability=0.1, seed=2),
        dpb.papers.others.LDPUCB(2, budget=dpb.RDP(4.0, 1.0), answers_within=3, seed=3),
        dpb.algorithms.KLUCB(2, c=3.0),
    ],
    ids=repr,
)
def test_repr_recreates_the_policy(policy: dpb.Policy):
    names = {
        **registered(),
        **{name: getattr(dpb, name) for name in dpb.__all__},
        **{name: getattr(dpb.parts, name) for name in dpb.parts.__all__},
        **{name: cls for name, cls in registered().items() if isinstance(cls, type)},
    }
    again = eval(repr(policy), {"__builtins__": {}}, names)
    assert type(again) is type(policy)
    assert again.config == policy.config
    assert repr(again) == repr(policy)
    assert [again.pull().arm for _ in range(3)] == [policy.pull().arm for _ in range(3)]


def test_labels_leave_out_what_a_comparison_varies():
    policy = adac(beta=2.0)
    assert policy.label == "AdaCUCB(n_arms=3, beta=2.0, forget=True)"
    assert "budget" in policy.stream_key
    assert "seed" not in policy.stream_key


def test_a_name_is_the_label_and_no_part_of_the_random_numbers():
    plain, named = adac(), adac(name="größer & besser")
    assert (plain.name, named.name) == (None, "größer & besser")
    assert named.label == "größer & besser"
    assert plain.label == "AdaCUCB(n_arms=3, beta=1.0, forget=True)"
    assert named.stream_key == plain.stream_key
    assert named.arguments == plain.arguments
    assert "name='größer & besser'" in repr(named)
    names = {one: getattr(dpb, one) for one in dpb.__all__}
    assert eval(repr(named), {**names, **vars(dpb.parts)}).config == named.config
    assert adac(name="x" * 60).name == "x" * 60


def test_one_seed_gives_one_history_and_another_seed_another():
    def releases(seed: int) -> bytes:
        policy = dpb.papers.concentrated.AdaCUCB(3, budget=dpb.ZCDP(0.5), seed=seed)
        for _ in range(50):
            policy.update(1.0, policy.pull())
        return policy.session.state.public.estimate.tobytes()

    assert releases(1) == releases(1) != releases(2)


def test_the_guarantee_says_what_the_options_undo():
    assert adac().guarantee.holds == dpb.ZCDP(0.5)
    void = dpb.papers.concentrated.AdaCUCB(3, budget=dpb.ZCDP(0.5), clip=False).guarantee
    assert void.holds is None
    assert "void" in str(void)
    assert "publicly known" in str(adac(choices_public=True).guarantee) or "public when" in str(
        adac(choices_public=True).guarantee
    )


# Answers -------------------------------------------------------------------------------------


def test_update_answers_the_last_pull_by_default():
    policy = adac(answers_within=5)
    first = policy.pull()
    assert policy.update(1.0) is True
    with pytest.raises(dpb.UpdateError, match="answered"):
        policy.update(1.0, first)


def test_expire_counts_as_the_default_reward():
    policy = adac(reward_range=(-2.0, 2.0), default_reward=1.5, budget=None)
    assert policy.expire(policy.pull()) is True
    policy.pull()
    assert policy.session.state.public.estimate[0] == 1.5


def test_a_private_deviation_counts_as_the_default_for_the_recommended_arm():
    policy = adac(budget=None, default_reward=0.25)
    assert policy.update(1.0, policy.pull(), arm=2) is True
    policy.pull()
    assert policy.session.state.public.estimate.tolist() == [0.25, 0.0, 0.0]
    assert policy.session.state.public.pulls.tolist() == [1, 0, 0]


def test_a_public_deviation_prolongs_the_episode():
    policy = adac(budget=None, choices_public=True)
    assert policy.update(1.0, policy.pull(), arm=2) is False
    again = policy.pull()
    assert again.arm == 0
    assert again.recorded
    assert policy.session.state.public.pulls.tolist() == [0, 0, 0]
    policy.update(0.5, again)
    policy.pull()
    assert policy.session.state.public.estimate.tolist() == [0.5, 0.0, 0.0]


def test_naming_the_recommended_arm_is_no_deviation():
    policy = adac(budget=None)
    assert policy.update(0.75, policy.pull(), arm=0) is True
    policy.pull()
    assert policy.session.state.public.estimate[0] == 0.75


@pytest.mark.parametrize(
    ("choices_public", "means"), [(True, [0.0, 0.0, 0.75]), (False, [0.25, 0.0, 0.0])]
)
def test_policies_that_learn_at_once_credit_a_public_deviation_to_the_arm_played(
    choices_public: bool, means: list[float]
):
    policy = dpb.algorithms.UCB1(3, choices_public=choices_public, default_reward=0.25)
    assert policy.update(0.75, policy.pull(), arm=2) is True
    assert policy.session.state.public.mean.tolist() == means


def test_rewards_may_come_as_numpy_numbers():
    policy = dpb.algorithms.UCB1(2)
    for reward in (np.float32(0.5), np.int64(1), np.bool_(True), 1, True, np.array(0.5)):
        assert policy.update(reward, policy.pull()) is True
    assert policy.rounds == 6


def test_unclipped_rewards_stay_as_they_are():
    policy = adac(budget=None, clip=False)
    policy.update(7.0, policy.pull())
    policy.pull()
    assert policy.session.state.public.estimate[0] == 7.0


# Threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [lambda: adac(answers_within=None), lambda: dpb.algorithms.UCB1(3, seed=1)],
    ids=["episodes", "at once"],
)
def test_threads_lose_no_round(make):
    policy, errors = make(), []
    numbers: list[int] = []

    def serve() -> None:
        try:
            for _ in range(500):
                decision = policy.pull()
                numbers.append(decision.number)
                policy.update(1.0, decision)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=serve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(numbers) == list(range(2000))
    assert policy.rounds + policy.diagnostics.dropped == 2000
    assert not policy.session.rounds.pending


@pytest.mark.parametrize("noise", ["simulation", "secure"])
@pytest.mark.parametrize("calibration", ["exact", "paper"])
@pytest.mark.parametrize(
    "budget",
    [dpb.ApproxDP(e, d) for e in (0.1, 1.0, 12.0, 40.0) for d in (1e-6, 0.1)]
    + [dpb.ZCDP(0.3), dpb.RDP(3.0, 0.4)],
    ids=str,
)
def test_what_is_spent_is_what_the_guarantee_says(budget, calibration, noise):
    policy = dpb.papers.concentrated.AdaCUCB(2, budget=budget, calibration=calibration, noise=noise)
    policy.pull()
    policy.update(1.0)
    policy.pull()
    holds, spent = policy.guarantee.holds, policy.ledger.spent()
    if holds is None:
        assert calibration == "paper"
        return
    assert type(spent) is type(holds)
    for name, value in vars(holds).items():
        assert getattr(spent, name) <= value * (1 + 1e-9)
    if isinstance(holds, dpb.ApproxDP) and calibration == "paper":
        # The curve of the noise that is really drawn, not of another one.
        multiplier, epsilon = policy.channel.multiplier, holds.epsilon
        curve = gaussian_delta(epsilon, 1.0 / multiplier)
        assert holds.delta == pytest.approx(curve, rel=1e-6, abs=1e-300)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The delta of mu-Gaussian DP (Dong, Roth & Su 2022, Corollary 2.13)."""
    with mp.workdps(50):
        epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
        return float(
            mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
        )


def test_what_was_configured_cannot_be_changed():
    policy = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(1.0))
    for name in ("reward_range", "budget", "clip", "answers_within", "channel", "params"):
        with pytest.raises(AttributeError, match=name):
            setattr(policy, name, getattr(policy, name))


def test_a_ledger_grows_with_its_policy():
    policy = LazyDPTS(3, budget=dpb.PureDP(1.0), seed=1)
    ledger = policy.ledger
    for _ in range(200):
        for _ in range(100):
            policy.pull()
            policy.update(1.0)
    assert len(ledger) == len(policy.ledger) > 20


def test_extreme_budgets_and_ranges_are_refused_at_the_door():
    for budget in (dpb.ZCDP(5e-324), dpb.ZCDP(1e308), dpb.ApproxDP(1e-300, 1e-300)):
        with pytest.raises(dpb.ArgumentError, match="budget must be less extreme"):
            dpb.papers.concentrated.AdaCUCB(2, budget=budget)
    for width in (1e200, 1e-200):
        with pytest.raises(dpb.ArgumentError, match="reward_range must be between"):
            dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(1.0), reward_range=(0.0, width))


def test_a_public_deviation_assumes_that_answering_times_say_nothing():
    assert "arrives carries no private information" in str(
        dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(1.0), choices_public=True).guarantee
    )


def test_the_ledger_of_a_void_policy_exports_no_private_event():
    policy = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(1.0), clip=False, seed=1)
    for _ in range(4):
        policy.pull()
        policy.update(1.0)
    assert policy.ledger.releases > 0
    assert set(policy.ledger.frame["family"]) == {"open"}
    assert "NonPrivate" in str(policy.ledger.to_dp_event())
    assert "Gaussian" not in str(policy.ledger.to_dp_event())


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_policy_is_not_copied(duplicate):
    with pytest.raises(
        TypeError, match=r"different noise for the same data\. Use save\(\) and load\(\)"
    ):
        duplicate(dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(0.5)))


def test_sums_that_would_lose_their_last_digits_are_refused():
    with pytest.raises(
        dpb.ArgumentError,
        match=r"^reward_range must lie no farther from zero than 1e\+06 times its width",
    ):
        dpb.papers.concentrated.AdaCUCB(2, budget=None, reward_range=(1e7, 1e7 + 1.0))
    assert dpb.papers.concentrated.AdaCUCB(
        2, budget=None, reward_range=(9e5, 9e5 + 1.0)
    ).reward_range == (
        9e5,
        9e5 + 1.0,
    )


def test_what_promises_nothing_is_not_recommended_with_other_noise():
    void = str(
        LinUCBDGS(2, 2, budget=dpb.PureDP(1.0), horizon=10, smallest_eigenvalue=0.1).guarantee
    )
    assert "gives no privacy guarantee" in void
    assert "use noise='secure'" not in void


def test_no_repr_shows_what_was_answered():
    policy = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(1.0), seed=1)
    for _ in range(4):
        policy.update(0.123456789, policy.pull())
    session = policy.session
    for shown in (session, session.state, session.rounds, session.gate, session.state.wall.running):
        assert "0.123" not in repr(shown)
