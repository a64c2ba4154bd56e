"""Replaying a randomised trial: the same decisions as by hand, and the same law as being in charge."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import dpbandits
from dpbandits import ZCDP, ArgumentError, DPBanditsError, replay, simulate
from dpbandits.environments import Bernoulli, DoctorReplay, GLMContexts, LoggedTrial
from dpbandits.kernel import kernel
from dpbandits.papers.concentrated import AdaCUCB
from dpbandits.papers.others import LazyDPTS
from dpbandits.policies import Card, Kernels, Policy
from dpbandits.privacy.ledger import empty_arrays
from dpbandits.simulation import replaying
from dpbandits.simulation.seeding import identity, stream

ALPHA = 1e-4
MEANS = np.array([0.7, 0.4])


class ConstantParams(NamedTuple):
    arm: int
    bound: float


class ConstantState(NamedTuple):
    cell: np.ndarray


def _init(params):
    return ConstantState(np.zeros(1)), ConstantState(np.zeros(1))


@kernel
def _choose(params, public, contexts, rng):
    return params.arm, 1.0


@kernel
def _record_pull(params, public, arm, x, n):
    public.cell[0] += n


@kernel
def _accumulate(params, raw, arm, x, reward, n):
    raw.cell[0] += reward


@kernel
def _release_due(params, public):
    return public.cell[0] > 0


@kernel
def _sensitivity(params, public, norm):
    return params.bound


@kernel
def _summarise(params, raw, public, memo, statistic):
    statistic[0] = raw.cell[0]
    raw.cell[0] = 0.0


@kernel
def _publish(params, public, memo, release):
    public.cell[0] = 0


class Constant(Policy):
    """Plays one arm for ever, and releases every reward with the given sensitivity."""

    card = Card(title="one arm", source="none", learns_at_once=True)
    kernels = Kernels(
        init=_init,
        choose=_choose,
        record_pull=_record_pull,
        accumulate=_accumulate,
        release_due=_release_due,
        sensitivity=_sensitivity,
        summarise=_summarise,
        publish=_publish,
    )

    def __init__(self, n_arms, arm, bound=1.0):
        self._arm, self._bound = arm, bound
        super().__init__({"n_arms": n_arms, "arm": arm, "bound": bound}, budget=None)

    def _params(self):
        return ConstantParams(self._arm, self._bound)


def bernoulli_log(people, rng):
    """A log of people who each got an arm uniformly at random."""
    arms = rng.integers(0, MEANS.size, people)
    return LoggedTrial(arms, (rng.random(people) < MEANS[arms]).astype(float))


def played(policy, log, seed, horizon=None):
    """One run of ``replay``, without its tables."""
    return replaying._play(policy, 0, log=log, horizon=horizon, seed=seed)


def by_hand(policy, log, seed, run):
    """Drive the policy by ``pull`` and ``update``; who counted, in order."""
    owner = identity(policy.stream_key)
    state = policy.session.state
    if policy.card.randomised:
        state.choice_rng = stream(seed, "policy", owner, run)
    if policy.budget is not None:
        state.noise_rng = stream(seed, "privacy", owner, run)
    order = stream(seed, "environment", identity(log.stream_key), run).permutation(len(log))
    met, decision = [], policy.pull()
    for person in order:
        if log.arms[person] == decision.arm:
            policy.update(log.rewards[person])
            met.append(person)
            decision = policy.pull()  # at the end of an episode the release happens here
    return np.array(met)


# Half of the rewards lie outside of the policies' range, and their sums are as good as a list of
# those who counted.
_RNG = np.random.default_rng(11)
WIDE = LoggedTrial(_RNG.integers(0, 3, 600), _RNG.uniform(-0.5, 1.5, 600))


# Episodes, parts, drawn arms, and a release in every round.
KINDS = [
    (dpbandits.papers.concentrated.AdaCUCB, ZCDP(0.5)),
    (LazyDPTS, dpbandits.PureDP(1.0)),
    (dpbandits.algorithms.HTINF, dpbandits.PureDP(0.5)),
    (dpbandits.papers.concentrated.AdaPUCB, dpbandits.PureDP(1.0)),
    (dpbandits.papers.others.LDPUCB, ZCDP(0.5)),
    (dpbandits.algorithms.UCB1, None),
]


@pytest.mark.filterwarnings("ignore::dpbandits.ClippingWarning")
@pytest.mark.parametrize(
    ("kind", "budget"), KINDS, ids=lambda value: getattr(value, "__name__", "")
)
@pytest.mark.long
def test_the_same_decisions_as_by_hand(kind, budget):
    played = replay(kind(3, budget=budget), WIDE, runs=2, seed=3).runs
    for run in range(2):
        policy = kind(3, budget=budget)
        met = by_hand(policy, WIDE, 3, run)
        row = played.loc[run]
        assert row["rounds"] == met.size
        assert row["successes"] == WIDE.rewards[met].sum()
        assert (
            row[["pulls_0", "pulls_1", "pulls_2"]].tolist()
            == np.bincount(WIDE.arms[met], minlength=3).tolist()
        )
        assert (row["releases"], row["draws"]) == (policy.ledger.releases, policy.ledger.draws)
        assert row["spent"] == policy.ledger.total()


@pytest.mark.long
@pytest.mark.parametrize("arm", range(4))
def test_one_arm_for_ever_meets_exactly_its_patients(arm):
    trial = DoctorReplay()
    runs = replay(Constant(4, arm), trial, runs=3).runs
    assert (runs["rounds"] == trial.counts[arm]).all()
    assert runs["rate"].to_numpy() == pytest.approx(trial.means()[arm])
    assert (runs[f"pulls_{arm}"] == trial.counts[arm]).all()


@pytest.mark.long
def test_one_arm_for_ever_is_unbiased():
    """1,500 logs of 40 people: standard error .0027, so that a mean which is off by .02 is
    rejected; that of both arms is off by .15.
    """
    rng = np.random.default_rng(21)
    runs = [played(Constant(2, 0), bernoulli_log(40, rng), i) for i in range(1500)]
    rates = [run["successes"] / run["rounds"] for run in runs]
    error = (np.mean(rates) - MEANS[0]) / stats.sem(rates)
    assert abs(error) < stats.norm.isf(ALPHA / 2)


@pytest.mark.long
def test_a_learner_is_unbiased():
    """60 counted rounds of 300 people have the law of 60 rounds in charge.

    2,000 against 4,000: the mean reward, about 37 with a standard deviation of 5, is known to .13.
    A loop that counted everybody, or that took the neighbour's reward, would have 33.  The control
    is a log that gave arm 0 to those who fare worse.
    """
    policy, rng = AdaCUCB(2, budget=ZCDP(2.0)), np.random.default_rng(22)
    replayed = [played(policy, bernoulli_log(300, rng), i, horizon=60) for i in range(2000)]
    assert all(run["rounds"] == 60 for run in replayed)
    online = simulate(policy, Bernoulli(MEANS), horizon=60, runs=4000, seed=23).runs
    for sample, theirs in (
        ([run["successes"] for run in replayed], online["reward"]),
        ([run["pulls_0"] for run in replayed], online["pulls_0"]),
    ):
        assert stats.mannwhitneyu(sample, theirs).pvalue > ALPHA
        assert stats.ks_2samp(sample, theirs).pvalue > ALPHA

    unfair = []
    for i in range(300):
        frail = rng.random(300) < 0.5
        arms = np.where(rng.random(300) < 0.8, np.where(frail, 0, 1), rng.integers(0, 2, 300))
        rewards = (rng.random(300) < MEANS[arms] + np.where(frail, -0.2, 0.2)).astype(float)
        unfair.append(played(policy, LoggedTrial(arms, rewards), i, horizon=60)["successes"])
    assert stats.mannwhitneyu(unfair, online["reward"]).pvalue < ALPHA


@pytest.mark.long
def test_each_person_counts_with_probability_one_in_k_whatever_happened():
    """1,000 logs of 300 people: the number of counted rounds is binomial, and tells nothing about
    the rate.
    """
    policy, rng = AdaCUCB(2, budget=ZCDP(2.0)), np.random.default_rng(24)
    runs = [played(policy, bernoulli_log(300, rng), i) for i in range(1000)]
    rounds = np.array([run["rounds"] for run in runs])
    rates = np.array([run["successes"] for run in runs]) / rounds
    law = stats.binom(300, 0.5)
    edges = law.ppf(np.linspace(0.1, 0.9, 9))
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * rounds.size
    assert (
        stats.chisquare(np.bincount(np.searchsorted(edges, rounds), minlength=10), expected).pvalue
        > ALPHA
    )
    best = rates < np.median(rates)
    assert stats.mannwhitneyu(rounds[best], rounds[~best]).pvalue > ALPHA


# With contexts -------------------------------------------------------------------------------

WORLD = GLMContexts(2, [[6.0, 0.0], [0.0, 6.0]])


def contextual_log(people, rng, *, fair=True):
    """People of ``WORLD``; without ``fair`` most got what is best for them."""
    x = rng.standard_normal((people, 2))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    means = expit(x @ WORLD.parameter.T)
    arms = rng.integers(0, 2, people)
    if not fair:
        arms = np.where(rng.random(people) < 0.8, means.argmax(axis=1), arms)
    return LoggedTrial(arms, rng.random(people) < means[np.arange(people), arms], x)


def lin_ucb(log, order, scale=1.0, ridge=1.0, failure=0.001):
    """Whose rounds count under LinUCB with a model per arm, straight from the definitions (Li et
    al. 2011, Algorithm 3; Abbasi-Yadkori et al. 2011, Theorem 2).
    """
    d, met = log.dimension, []
    v, b = np.tile(ridge * np.eye(d), (log.n_arms, 1, 1)), np.zeros((log.n_arms, d))
    for person in order:
        index = []
        for a in range(log.n_arms):
            x, inverse = log.contexts[person, a], np.linalg.inv(v[a])
            radius = 0.5 * np.sqrt(
                2 * np.log(log.n_arms / failure) + np.log(np.linalg.det(v[a] / ridge))
            ) + np.sqrt(ridge)
            index.append(x @ inverse @ b[a] + scale * radius * np.sqrt(x @ inverse @ x))
        arm = int(np.argmax(index))
        if arm == log.arms[person]:
            v[arm] += np.outer(log.contexts[person, arm], log.contexts[person, arm])
            b[arm] += log.rewards[person] * log.contexts[person, arm]
            met.append(person)
    return np.array(met)


def test_contexts_lead_to_the_same_decisions_as_by_hand():
    log = contextual_log(400, np.random.default_rng(1))
    policy = dpbandits.algorithms.LinUCB(2, 2, models="disjoint", radius_scale=0.3)
    runs = replay(policy, log, runs=2, seed=3).runs
    for run in range(2):
        order = stream(3, "environment", identity(log.stream_key), run).permutation(len(log))
        met = lin_ucb(log, order, scale=0.3)
        assert runs.loc[run, "rounds"] == met.size
        assert runs.loc[run, "successes"] == log.rewards[met].sum()
        assert runs.loc[run, "pulls_1"] == log.arms[met].sum()


@pytest.mark.long
def test_a_learner_with_contexts_is_unbiased():
    """As ``test_a_learner_is_unbiased``; to play at random would have 30 successes, not 40."""
    policy, rng = (
        dpbandits.algorithms.LinUCB(2, 2, models="disjoint", radius_scale=0.3),
        np.random.default_rng(5),
    )
    replayed = [played(policy, contextual_log(240, rng), i, horizon=60) for i in range(1500)]
    assert all(run["rounds"] == 60 for run in replayed)
    online = simulate(policy, WORLD, horizon=60, runs=3000, seed=6).runs
    assert online["reward"].mean() > 34
    for sample, theirs in (
        ([run["successes"] for run in replayed], online["reward"]),
        ([run["pulls_0"] for run in replayed], online["pulls_0"]),
    ):
        assert stats.mannwhitneyu(sample, theirs).pvalue > ALPHA
        assert stats.ks_2samp(sample, theirs).pvalue > ALPHA
    unfair = [
        played(policy, contextual_log(240, rng, fair=False), i, horizon=60)["successes"]
        for i in range(300)
    ]
    assert stats.mannwhitneyu(unfair, online["reward"]).pvalue < ALPHA


@pytest.mark.long
def test_long_contexts_are_scaled_to_the_bound():
    """The same numbers as from a log whose contexts were scaled by hand."""
    log = contextual_log(300, np.random.default_rng(2))
    short = LoggedTrial(log.arms, log.rewards, 0.5 * log.contexts * (1.0 - 1e-15))
    log.origin = short.origin = "one"
    policy = dpbandits.algorithms.LinUCB(2, 2, models="disjoint", context_bound=0.5)
    one, other = (replay(policy, given, runs=3, seed=1).runs for given in (log, short))
    assert one["rate"].equals(other["rate"])
    loose = dpbandits.algorithms.LinUCB(2, 2, models="disjoint")
    assert not replay(loose, log, runs=3, seed=1).runs["rate"].equals(one["rate"])


@pytest.mark.parametrize(
    "policy",
    [
        dpbandits.algorithms.PrivateLinUCB(2, 2, budget=ZCDP(1.0), horizon=300, models="disjoint"),
        dpbandits.algorithms.LinearThompson(2, 2, budget=ZCDP(1.0), horizon=300, models="disjoint"),
        dpbandits.algorithms.LinUCBLDP(2, 2, budget=ZCDP(1.0), horizon=300),
    ],
    ids=lambda policy: policy.preset,
)
@pytest.mark.long
def test_private_policies_with_contexts_stay_within_the_budget(policy):
    runs = replay(policy, contextual_log(200, np.random.default_rng(3)), runs=2).runs
    assert (runs["releases"] == runs["rounds"]).all()
    assert (runs["spent"] <= 1.0 + 1e-9).all()
    assert runs["rounds"].between(60, 140).all()


def test_policies_without_contexts_ignore_those_of_a_log(monkeypatch):
    log = contextual_log(300, np.random.default_rng(4))
    bare = LoggedTrial(log.arms, log.rewards)
    monkeypatch.setattr(LoggedTrial, "stream_key", "the same order")
    one, other = (replay(AdaCUCB(2, budget=None), given, runs=3).runs for given in (log, bare))
    assert one["rate"].equals(other["rate"])
    with pytest.raises(
        ArgumentError, match=r"dimension 3, and the log has contexts of dimension 2"
    ):
        replay(dpbandits.algorithms.LinUCB(2, 3), log)


POLICIES = [AdaCUCB(4, budget=ZCDP(0.5)), AdaCUCB(4, budget=None)]


def test_threads_and_other_policies_change_nothing():
    one = replay(POLICIES, DoctorReplay(), runs=8, seed=5).runs
    assert one.equals(replay(POLICIES, DoctorReplay(), runs=8, seed=5, n_jobs=2).runs)
    alone = replay(POLICIES[0], DoctorReplay(), runs=8, seed=5).runs
    assert alone.equals(one[one["budget"] == "0.5-zCDP"].reset_index(drop=True))
    assert not alone["rate"].equals(
        replay(POLICIES[0], DoctorReplay(), runs=8, seed=6).runs["rate"]
    )
    assert alone["rate"].nunique() > 1
    assert POLICIES[0].rounds == POLICIES[0].ledger.releases == 0


def test_runs_add_up_and_stay_within_the_budget():
    runs = replay(POLICIES[0], DoctorReplay(), runs=10).runs
    assert (runs[[f"pulls_{a}" for a in range(4)]].sum(axis=1) == runs["rounds"]).all()
    assert runs["rate"].to_numpy() == pytest.approx(runs["successes"] / runs["rounds"])
    assert runs["spent"].tolist() == pytest.approx([0.5] * 10)
    assert (runs["draws"] == runs["releases"]).all()


def test_summary_stands_beside_the_trial():
    trial = DoctorReplay()
    result = replay(POLICIES, trial, runs=60, seed=1)
    summary = result.summary()
    assert summary["budget"].tolist() == ["0.5-zCDP", "none"]
    assert (summary["trial"] == trial.mean()).all()
    assert (summary["best"] == trial.means().max()).all()
    for budget, row in summary.set_index("budget").iterrows():
        mine = result.runs[result.runs["budget"] == budget]
        assert row[["mean", "rounds", "successes", "releases"]].tolist() == pytest.approx(
            mine[["rate", "rounds", "successes", "releases"]].mean().tolist()
        )
        # The percentile bootstrap of a mean of 60 runs is close to the normal interval.
        half = 1.96 * mine["rate"].std() / np.sqrt(60)
        assert (row["high"] - row["low"]) / 2 == pytest.approx(half, rel=0.15)
        assert row["low"] < row["mean"] < row["high"]
        assert row["runs"] == 60
    facts = result.info["environments"]["DoctorReplay()"]
    assert (facts["people"], facts["counts"]) == (2139, [532, 522, 524, 561])
    assert facts["title"] == "DoctorReplay, 4 arms"
    assert [one.budget for one in result.settings.values()] == [ZCDP(0.5), None]
    figure = result.plot(style="acm")
    *dots, own = (np.asarray(line.get_xdata()).tolist() for line in figure.axes[0].lines)
    assert own == [trial.mean()] * 2
    assert [x for one in dots for x in one] == summary["mean"].tolist()  # private ones first
    assert figure.get_figwidth() == pytest.approx(241.147 / 72.27)


def test_learning_helps_more_patients_than_the_trial_did():
    summary = replay(AdaCUCB(4, budget=ZCDP(0.5)), DoctorReplay(), runs=100).summary()
    assert summary["low"][0] > summary["trial"][0]


def test_a_full_ledger_interrupts_nothing(monkeypatch):
    whole = replay(POLICIES, DoctorReplay(), runs=2).runs
    new_state = Policy.new_state

    def cramped(self):
        state = new_state(self)
        state.wall = state.wall._replace(ledger=empty_arrays(1))
        return state

    monkeypatch.setattr(Policy, "new_state", cramped)
    assert whole.equals(replay(POLICIES, DoctorReplay(), runs=2).runs)


def test_a_horizon_ends_a_run():
    runs = replay(POLICIES, DoctorReplay(), horizon=100, runs=3).runs
    assert (runs["rounds"] == 100).all()
    assert (
        replay(Constant(4, 0), DoctorReplay(), horizon=10**6, runs=1).runs["rounds"] == 532
    ).all()


def test_progress_is_reported():
    seen = []
    replay(
        POLICIES, DoctorReplay(), runs=8, progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (16, 16)
    assert seen == sorted(seen)
    assert len(seen) > 2


def test_a_sensitivity_that_is_no_bound_is_an_error():
    with pytest.raises(DPBanditsError, match="by more than the declared sensitivity"):
        replay(Constant(4, 0, bound=-1.0), DoctorReplay(), runs=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"log": Bernoulli([0.5, 0.5])}, "log must be a LoggedTrial"),
        ({"policies": AdaCUCB(3, budget=None)}, "n_arms of .* must be 4"),
        ({"policies": []}, "policies must hold at least one"),
        (
            {"policies": [POLICIES[0], AdaCUCB(4, budget=ZCDP(0.5), seed=1)]},
            "policies must hold at least one",
        ),
        ({"policies": ["AdaCUCB"]}, "policies must hold policies"),
        ({"runs": 0}, "runs must be an integer at least 1"),
        ({"horizon": 0}, "horizon must be an integer at least 1"),
        ({"seed": -1}, "seed must be"),
        ({"n_jobs": 1.5}, "n_jobs must be"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        replay(**{"policies": POLICIES[0], "log": DoctorReplay(), **arguments})


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (dpbandits.algorithms.LinUCB(3, 2), "contexts of dimension 2, and the log has none"),
        (dpbandits.algorithms.EXP4(3, 2, budget=None, horizon=9), "advice, and the log has none"),
    ],
)
def test_policies_that_take_what_a_log_has_not_are_refused(policy, message):
    with pytest.raises(ArgumentError, match=rf"^policies must fit the log: .* takes {message}"):
        replay(policy, WIDE)


@pytest.mark.parametrize(
    "options", [{"confidence": 1.0}, {"confidence": 0.0}, {"resamples": 0}], ids=str
)
def test_wrong_arguments_of_the_summary_are_refused(options):
    with pytest.raises(ArgumentError, match=r"confidence|resamples"):
        replay(POLICIES, DoctorReplay(), runs=2).summary(**options)


def test_a_log_that_goes_beyond_the_range_is_warned_of():
    log = LoggedTrial([0, 1] * 20, [-1.0, 1.0] * 20)
    with pytest.warns(
        dpbandits.ClippingWarning,
        match=r"outside \[0, 1\] are clipped, and some of these data lie outside",
    ):
        replay(dpbandits.algorithms.UCB1(2), log, runs=1)


# Logs with times ------------------------------------------------------------------------------


def timed_log(people, wait, *, lost=0.0, seed=1, every=10.0):
    """One person in ten seconds, each answering after about ``wait`` seconds, if at all."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(0, 3, people)
    rewards = (rng.random(people) < np.array([0.3, 0.7, 0.5])[arms]).astype(float)
    asked = 1e9 + every * np.arange(people)
    answered = asked + rng.exponential(wait, people)
    answered[rng.random(people) < lost] = np.nan
    return LoggedTrial(arms, rewards, asked=asked, answered=answered)


def test_a_log_whose_answers_come_at_once_is_replayed_as_one_without_times(monkeypatch):
    timed = timed_log(600, 1e-3)
    plain = LoggedTrial(timed.arms, timed.rewards)
    monkeypatch.setattr(LoggedTrial, "stream_key", "one log")
    for policy in (
        AdaCUCB(3, budget=ZCDP(0.5)),
        dpbandits.algorithms.HTINF(3, budget=dpbandits.PureDP(0.5)),
        dpbandits.papers.others.DPTS(3, horizon=50, budget=dpbandits.PureDP(1.0)),
    ):
        one, other = (replay(policy, log, runs=2, seed=3).runs for log in (timed, plain))
        # The release of an episode that ends with the log is made at the next pull.
        same = [name for name in one.columns if name not in ("environment", "releases", "spent")]
        assert one[same].equals(other[same])
        assert (one["releases"] - other["releases"]).isin([-1, 0, 1]).all()


def test_a_planned_deadline_is_tried_on_a_log_with_times():
    """By the clock as by the number of pulls that it is; and one that is too short is seen."""
    log = timed_log(12_000, 600.0, lost=0.05)
    budget = ZCDP(1.0)
    made = [
        dpbandits.algorithms.MergedIMED(3, budget=budget, answers_within=within)
        for within in ("1h", 360, "5s", "300d")
    ]
    result = replay(made, log, runs=4, seed=2)
    by_clock, by_pulls, hasty, never = result.runs.groupby("policy", sort=False).rate.mean()
    assert abs(by_clock - by_pulls) < 0.02
    assert by_clock > 0.6
    assert max(hasty, never) < 0.56  # .5 is that of the trial
    assert (result.runs[result.runs.policy.str.contains("300d")].releases == 0).all()


def test_a_round_is_at_the_time_of_the_log_and_its_answer_as_late_as_there(monkeypatch):
    seen = []
    for name in ("pull", "update"):
        method = getattr(Policy, name)

        def noting(self, *given, method=method, name=name, **options):
            seen.append((name, options["at"]))
            return method(self, *given, **options)

        monkeypatch.setattr(Policy, name, noting)
    log = LoggedTrial(
        [0] * 5, np.ones(5), asked=[50, 10, 20, 30, 40], answered=[62, 22, 32, 42, 52]
    )
    policy = AdaCUCB(1, budget=ZCDP(0.5), answers_within="20s")
    assert replay(policy, log, runs=1).runs.loc[0, "rounds"] == 5
    times = [("pull", 10.0), ("pull", 20.0), ("update", 22.0), ("pull", 30.0), ("update", 32.0)]
    assert seen[:5] == times


def test_times_are_checked():
    arms, rewards = [0, 1, 0], [1.0, 0.0, 1.0]
    for times, message in (
        ({"asked": [1, 2, 3]}, "given together"),
        ({"answered": [1, 2, 3]}, "given together"),
        ({"asked": [1, 2], "answered": [1, 2, 3]}, "arms and asked must be equally long"),
        (
            {"asked": [1, 2, 3], "answered": [1, 2, 2]},
            "not be before asked, got an earlier time in row 2",
        ),
        ({"asked": [1, np.nan, 3], "answered": [1, 2, 4]}, "asked"),
        ({"asked": [1, 2, 3], "answered": [1, np.inf, 4]}, "answered"),
        ({"asked": [-1, 2, 3], "answered": [1, 2, 4]}, "asked"),
    ):
        with pytest.raises(ArgumentError, match=message):
            LoggedTrial(arms, rewards, **times)
    log = LoggedTrial(arms, rewards, np.ones((3, 2)), asked=[3, 1, 2], answered=[4, np.nan, 2])
    assert (log.times.tolist(), log.waits.tolist()) == ([1, 2, 3], [1, np.inf, 0])
    assert repr(log) != repr(LoggedTrial(arms, rewards, np.ones((3, 2))))
    policy = dpbandits.algorithms.LinUCB(2, 2)
    with pytest.raises(ArgumentError, match="no contexts if the log has times"):
        replay(policy, log)


def test_a_trial_is_read_from_a_file(tmp_path):
    path = tmp_path / "trial.csv"
    path.write_text("arm;answered;note;reward;asked\ndrug;12,5;a;1;10\nnone;;b;0;11\n")
    log = LoggedTrial.read(path, separator=";", decimal=",")
    assert (log.arm_names, log.arms.tolist(), log.rewards.tolist()) == (
        ["drug", "none"],
        [0, 1],
        [1.0, 0.0],
    )
    assert (log.times.tolist(), log.waits.tolist()) == ([10, 11], [2.5, np.inf])
    path.write_text("arm,reward\n0,1\n1,0\n")
    assert LoggedTrial.read(path).times is None
    for text, message in (
        ("arm,asked\n0,1\n", "must have a column 'reward'"),
        ("arm,reward\n0,good\n", "got none on line 2 of .*, column 'reward'"),
        ("arm,reward,asked,answered\n0,1,1,soon\n", "got none on line 2 of .*'answered'"),
    ):
        path.write_text(text)
        with pytest.raises(ArgumentError, match=message):
            LoggedTrial.read(path)
