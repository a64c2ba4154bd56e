"""Expert advice: what is shown, what is rewarded, and regret against the best expert by brute
force.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import stats
from sklearn import datasets

from dpbandits import ArgumentError, simulate
from dpbandits.algorithms import EXP4, ExpertConversion
from dpbandits.environments import AdviceTable, Advised, Bernoulli, RewardTable, SwitchingBest
from dpbandits.errors import ClippingWarning, MissingExtra
from dpbandits.papers.adversarial import ClassifierAdvice, classifier_advice

ALPHA = 1e-4

RNG = np.random.default_rng(1)
N, K, T = 4, 3, 30
ADVICE = RNG.dirichlet(np.ones(K), (T, N))  # (T, N, K)
REWARDS = RNG.uniform(-1.0, 2.0, (T, K))


def expected(advice, rewards):
    """What every expert's advice brings in every round, shape (T, N)."""
    return np.einsum("tnk,tk->tn", advice, rewards)


def held_against(play, environment, advice, rewards, arms, seed=0):
    """Contexts are the advice of each round, and regrets count against the best expert of all
    rounds.
    """
    rounds = play(environment, arms, seed)
    assert rounds.contexts == pytest.approx(np.swapaxes(advice, 1, 2))
    each = expected(advice, rewards)
    best = each.sum(axis=0).argmax()
    assert rounds.regrets == pytest.approx(each[:, best] - rewards[np.arange(len(arms)), arms])
    assert environment.state.best.tolist() == [best]
    return rounds


# On arms -------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("period", [None, 1, 4, 7, 100])
def test_regret_is_against_the_expert_who_is_best_over_the_whole_horizon(play, period):
    plan = ADVICE[:3]
    environment = Advised(RewardTable(REWARDS), plan, horizon=T, period=period)
    advice = plan[np.arange(T) // (period or T) % 3]
    assert (environment.n_arms, environment.n_experts, environment.horizon) == (K, N, T)
    arms = np.random.default_rng(2).integers(0, K, T)
    rounds = held_against(play, environment, advice, REWARDS, arms)
    assert rounds.rewards == pytest.approx(REWARDS[np.arange(T), arms])


@pytest.mark.long
def test_the_best_expert_of_all_rounds_need_not_be_that_of_the_first(play):
    """Expert 0 is right for four rounds and expert 1 for the six after; a horizon of four makes the
    other one best.
    """
    rewards = np.repeat([[1.0, 0.0], [0.0, 1.0]], [4, 6], axis=0)
    plan = np.eye(2)[None]
    long, short = (Advised(RewardTable(rewards), plan, horizon=horizon) for horizon in (10, 4))
    assert (long.state.best[0], short.state.best[0]) == (1, 0)
    assert play(long, np.zeros(10, int), 0).regrets.tolist() == [-1.0] * 4 + [1.0] * 6
    assert play(short, np.zeros(4, int), 0).regrets.tolist() == [0.0] * 4


@pytest.mark.long
def test_the_last_period_may_be_cut_short(play):
    """Ten rounds in periods of four: expert 0 is right in six, expert 2 in 5.5; without the last
    two, expert 2 would be ahead.
    """
    rewards = np.tile([[1.0, 0.0]], (10, 1))
    plan = [[[1.0, 0.0], [0.0, 1.0], [0.55, 0.45]], [[0.0, 1.0], [1.0, 0.0], [0.55, 0.45]]]
    environment = Advised(RewardTable(rewards), plan, horizon=10, period=4)
    assert environment.state.best.tolist() == [0]
    assert play(environment, np.zeros(10, int), 0).regrets.sum() == pytest.approx(6 - 10)


@pytest.mark.long
def test_mean_rewards_count_where_rewards_are_drawn(play):
    world = SwitchingBest(2, best=[0, 1], switches=[30], horizon=100, gap=0.4)
    environment = Advised(world, [[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]], horizon=100)
    means = np.array([[0.7, 0.3]] * 30 + [[0.3, 0.7]] * 70)
    rounds = play(environment, np.zeros(100, int), 3)
    assert set(rounds.rewards) == {0.0, 1.0}
    assert rounds.regrets == pytest.approx(means[:, 1] - means[:, 0])


@pytest.mark.long
def test_advice_does_not_touch_the_rewards(play):
    """The same draws as the arms themselves give, whatever the experts say."""
    arms = np.random.default_rng(4).integers(0, 2, 200)
    one, other = (
        play(Advised(Bernoulli([0.6, 0.3]), [advice], horizon=200), arms, 5).rewards
        for advice in ([[1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]])
    )
    assert one.tolist() == other.tolist()


def test_constant_experts(play):
    """The first K advise an arm each; the others draw from distributions that only the seed
    decides.
    """
    world = Bernoulli([0.2, 0.9, 0.4])
    one, same, other = (Advised.constant(world, 5, horizon=50, seed=seed) for seed in (1, 1, 2))
    shown = play(one, np.zeros(50, int), 0).contexts
    assert np.array_equal(shown, np.broadcast_to(shown[0], shown.shape))
    assert np.array_equal(shown[0][:, :3], np.eye(3))
    assert shown[0].sum(axis=0) == pytest.approx(1.0)
    assert one.state.best.tolist() == [1]
    assert repr(one) == repr(same)
    assert repr(one) != repr(other)
    few = Advised.constant(world, 2, horizon=50)
    assert few.state.advice[0].tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]


def test_distributions_of_constant_experts_are_uniform():
    """Of the marginal of a uniform distribution over the simplex; one over arms that add to one
    otherwise would fail.
    """
    weights = Advised.constant(Bernoulli([0.5] * 4), 4004, horizon=1).state.advice[0, :, 4:]
    for marginal in weights:
        assert stats.kstest(marginal, stats.beta(1, 3).cdf).pvalue > ALPHA


@pytest.mark.parametrize("n_experts", [1, 3, 8])
@pytest.mark.long
def test_shifted_experts_move_on_at_their_pace(play, n_experts):
    period, horizon = 5, 70
    rewards = np.random.default_rng(6).random((horizon, 3))
    environment = Advised.shifted(RewardTable(rewards), n_experts, period=period, horizon=horizon)
    advice = np.zeros((horizon, n_experts, 3))
    for t in range(horizon):
        for j in range(n_experts):
            advice[t, j, (j + (t // period) * (j // 3)) % 3] = 1.0
    held_against(play, environment, advice, rewards, np.zeros(horizon, int))


def test_generated_advice_needs_no_memory_for_rounds():
    world = SwitchingBest(2, best=[0, 1], switches=[10**8], horizon=10**9, gap=0.3)
    for environment in (
        Advised.constant(world, 10, horizon=10**9),
        Advised.shifted(world, 10, period=10**7, horizon=10**9),
    ):
        held = [part for part in environment.state if isinstance(part, np.ndarray)] + list(
            environment.environment.state
        )
        assert sum(part.nbytes for part in held) < 2000


# Tables --------------------------------------------------------------------------------------


def test_a_table_shows_and_gives_what_it_holds(play):
    environment = AdviceTable(ADVICE, REWARDS)
    assert (environment.horizon, environment.n_arms, environment.n_experts) == (T, K, N)
    assert environment.state.contexts.shape == (T, K, N)
    assert environment.support == (REWARDS.min(), REWARDS.max())
    arms = np.random.default_rng(7).integers(0, K, T)
    rounds = held_against(play, environment, ADVICE, REWARDS, arms)
    assert rounds.rewards == pytest.approx(REWARDS[np.arange(T), arms])


def test_nearly_distributions_are_made_to_add_to_one():
    advice = ADVICE * (1.0 + 5e-7)
    assert AdviceTable(advice, REWARDS).state.contexts.sum(axis=1) == pytest.approx(1.0, abs=1e-14)


def test_the_given_arrays_are_copied():
    advice, rewards = ADVICE.copy(), REWARDS.copy()
    environment = AdviceTable(advice, rewards)
    before = repr(environment)
    advice[:], rewards[:] = 0.0, 0.0
    assert repr(environment) == before == repr(AdviceTable(ADVICE, REWARDS))


# Classifiers ---------------------------------------------------------------------------------

LABELS = np.array([0, 2, 1, 1, 0, 2])
PERSONS = RNG.dirichlet(np.ones(K), (len(LABELS), N))


def test_only_the_class_of_the_person_is_rewarded(play):
    environment = ClassifierAdvice(PERSONS, LABELS)
    arms = np.random.default_rng(8).integers(0, K, 500)
    rounds = play(environment, arms, 9)
    assert rounds.contexts == pytest.approx(np.swapaxes(PERSONS, 1, 2)[rounds.hidden])
    assert rounds.rewards.tolist() == (arms == LABELS[rounds.hidden]).astype(float).tolist()
    right = PERSONS[np.arange(len(LABELS)), :, LABELS]
    best = right.mean(axis=0).argmax()
    assert rounds.regrets == pytest.approx(right[rounds.hidden, best] - rounds.rewards)
    assert environment.accuracies == pytest.approx(right.mean(axis=0))


def test_anyone_may_come_in_any_round(play):
    environment = ClassifierAdvice(PERSONS, LABELS)
    rounds = play(environment, np.zeros(6000, int), 10)
    assert stats.chisquare(np.bincount(rounds.hidden, minlength=6)).pvalue > ALPHA
    assert environment.horizon is None


def test_everybody_comes_once_in_the_order_given(play):
    environment = ClassifierAdvice(PERSONS, LABELS, once=True)
    assert environment.horizon == 6
    assert play(environment, np.zeros(6, int), 11).hidden.tolist() == list(range(6))


def test_classes_have_names():
    assert ClassifierAdvice(PERSONS, LABELS).arm_names == ["arm 0", "arm 1", "arm 2"]
    assert ClassifierAdvice(PERSONS, LABELS, names=["a", "b", "c"]).arm_names == ["a", "b", "c"]
    assert classifier_advice("digits", 1).arm_names == list("0123456789")


@pytest.fixture
def learned(monkeypatch):
    """The rows that every classifier of scikit-learn is trained on, and those that it is asked
    about.
    """
    from dpbandits.papers.adversarial import classifier_experts as module

    seen, make = [], module._classifier

    class Watched:
        def __init__(self, inner):
            self.inner = inner

        def fit(self, rows, labels):
            self.trained = rows
            self.inner.fit(rows, labels)
            self.classes_ = self.inner.classes_
            return self

        def predict_proba(self, rows):
            seen.append((self.trained, rows))
            return self.inner.predict_proba(rows)

    monkeypatch.setattr(module, "_classifier", lambda j, size: Watched(make(j, size)))
    return seen


def test_nobody_comes_of_the_half_that_experts_learn_from(learned):
    environment = classifier_advice("breast_cancer", 8, share=0.5, seed=3)
    data = datasets.load_breast_cancer()
    rows = {row.tobytes(): label for row, label in zip(data.data, data.target, strict=True)}
    assert len(rows) == 569  # no two tumours are alike, so that a row is a person
    trained = {row.tobytes() for half, _ in learned for row in half}
    ((met, *others),) = {tuple(row.tobytes() for row in asked) for _, asked in learned}
    assert len(learned) == 8
    assert all(len(half) == 142 for half, _ in learned)
    assert len({half.tobytes() for half, _ in learned}) == 8  # everybody learns from other persons
    assert {met, *others}.isdisjoint(trained)
    assert len({met, *others}) == 285
    assert len(trained) > 270  # of 284, so that few of the half teach nobody
    assert [rows[row] for row in (met, *others)] == environment.state.labels.tolist()


def test_classifiers_say_what_they_think_of_the_person_who_comes():
    """Better than by lot, and everyone is somewhat wrong; about somebody else they would be right
    by chance only.
    """
    environment = classifier_advice("digits", 16)
    assert environment.state.advice.shape == (899, 10, 16)
    assert environment.state.advice.min() >= 0.0
    assert environment.state.advice.sum(axis=1) == pytest.approx(1.0)
    assert environment.accuracies.min() > 0.3
    assert 0.6 < environment.accuracies.max() < 0.95
    others = np.roll(environment.state.labels, 1)
    assert environment.state.advice[np.arange(899), others].mean() < 0.15


def test_classes_that_a_slice_does_not_hold_get_no_probability():
    """Of two persons, many slices hold one class only, and nobody is sure of another."""
    environment = classifier_advice("breast_cancer", 40, share=0.01)
    sure = (environment.state.advice[:, 1] == 1.0).all(axis=0)
    assert 0 < sure.sum() < 40
    assert environment.state.advice.sum(axis=1) == pytest.approx(1.0)


def test_a_seed_decides_everything():
    one, same, other = (
        classifier_advice("breast_cancer", 5, once=True, seed=seed) for seed in (1, 1, 2)
    )
    assert repr(one) == repr(same) != repr(other)
    for ours, theirs in zip(one.state, same.state, strict=True):
        assert np.array_equal(ours, theirs)
    assert one.horizon == 285


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtra, match=r"dpbandits\[datasets\]"):
        classifier_advice("digits")


# All -----------------------------------------------------------------------------------------

ARMS = Bernoulli([0.2, 0.9, 0.4])


def kinds():
    return [
        Advised(ARMS, ADVICE[:2], horizon=500, period=3),
        Advised.constant(ARMS, N, horizon=500),
        Advised.shifted(ARMS, N, period=20, horizon=500),
        AdviceTable(ADVICE, np.clip(REWARDS, 0.0, 1.0)),
        ClassifierAdvice(PERSONS, LABELS),
        ClassifierAdvice(PERSONS, LABELS, once=True),
        classifier_advice("breast_cancer", N),
    ]


@pytest.mark.long
@pytest.mark.parametrize("environment", kinds(), ids=lambda one: type(one).__name__)
def test_simulations_are_the_same_whatever_the_number_of_threads(environment):
    horizon = environment.horizon or 500
    policies = [
        EXP4(environment.n_arms, N, budget=None, horizon=horizon),
        ExpertConversion(environment.n_arms, N, budget=None),
    ]
    for policy in policies:
        one, two = (
            simulate(
                policy, environment, horizon=horizon, runs=2, seed=1, record=[horizon], n_jobs=jobs
            )
            for jobs in (1, 2)
        )
        assert one.runs["regret"].tolist() == two.runs["regret"].tolist()
        assert one.runs["regret"].between(-horizon, horizon).all()
        assert one.runs["reward"].between(0, horizon).all()


def test_descriptions_tell_environments_apart():
    variants = [
        *kinds(),
        Advised(ARMS, ADVICE[:2], horizon=500, period=4),
        Advised(ARMS, ADVICE[:2], horizon=501, period=3),
        Advised(ARMS, ADVICE[1:3], horizon=500, period=3),
        Advised(Bernoulli([0.2, 0.9, 0.5]), ADVICE[:2], horizon=500, period=3),
        AdviceTable(ADVICE, REWARDS),
        ClassifierAdvice(PERSONS, np.roll(LABELS, 1)),
    ]
    assert len({repr(one) for one in variants}) == len(variants)
    assert repr(variants[0]).startswith(
        "Advised(Bernoulli(0.2, 0.9, 0.4), 4 experts, period=3, horizon=500, content "
    )
    assert repr(variants[3]).startswith("AdviceTable(30 rounds, 3 arms, 4 experts, content ")
    assert repr(variants[5]).startswith(
        "ClassifierAdvice(6 persons, 3 classes, 4 experts, once, content "
    )
    for one in variants:
        assert type(one).__name__ in one.title
        assert f"{one.n_arms} arms" in one.title


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Advised(None, ADVICE[:1], horizon=5), "environment must be an ArmsEnvironment"),
        (
            lambda: Advised(AdviceTable(ADVICE, REWARDS), ADVICE[:1], horizon=5),
            "environment must be an ArmsEnvironment",
        ),
        (
            lambda: Advised(ARMS, ADVICE[0], horizon=5),
            r"advice must be an array of numbers of shape \(S, N, K\)",
        ),
        (
            lambda: Advised(ARMS, ADVICE[:1, :, :2] * 0 + 0.5, horizon=5),
            "advice must be for 3 arms, got 2",
        ),
        (
            lambda: Advised(ARMS, ADVICE[:1] * 1.01, horizon=5),
            "advice must hold a probability for every arm",
        ),
        (
            lambda: Advised(ARMS, [[[1.5, -0.5, 0.0]]], horizon=5),
            "advice must hold a probability for every arm",
        ),
        (
            lambda: Advised(ARMS, [[[np.nan, 0.5, 0.5]]], horizon=5),
            "advice must hold finite numbers, got NaN or nothing in entry",
        ),
        (
            lambda: Advised(ARMS, np.zeros((0, 1, 3)), horizon=5),
            "advice must be an array of numbers",
        ),
        (lambda: Advised(ARMS, ADVICE[:1], horizon=0), "horizon must be an integer"),
        (
            lambda: Advised(RewardTable(REWARDS), ADVICE[:1], horizon=31),
            "horizon must be an integer between 1 and 30",
        ),
        (
            lambda: Advised(ARMS, ADVICE[:1], horizon=5, period=0),
            "period must be an integer at least 1",
        ),
        (lambda: Advised.constant(ARMS, 0, horizon=5), "n_experts must be an integer at least 1"),
        (lambda: Advised.constant(ARMS, 2, horizon=5, seed=-1), "seed must be an integer"),
        (lambda: Advised.constant(None, 2, horizon=5), "environment must be an ArmsEnvironment"),
        (
            lambda: Advised.shifted(None, 2, horizon=5, period=1),
            "environment must be an ArmsEnvironment",
        ),
        (
            lambda: Advised.shifted(ARMS, 2.5, horizon=5, period=1),
            "n_experts must be an integer at least 1",
        ),
        (
            lambda: Advised.shifted(ARMS, 2, horizon=5, period=0.5),
            "period must be an integer at least 1",
        ),
        (
            lambda: AdviceTable(ADVICE[0], REWARDS),
            r"advice must be an array of numbers of shape \(T, N, K\)",
        ),
        (lambda: AdviceTable(ADVICE, REWARDS[1:]), r"rewards must have shape \(30, 3\)"),
        (lambda: AdviceTable(ADVICE, REWARDS[0]), "rewards must be an array of numbers"),
        (lambda: AdviceTable(ADVICE, "abc"), "rewards must be an array of numbers"),
        (
            lambda: ClassifierAdvice(PERSONS, LABELS[1:]),
            "labels must hold 6 classes, one per person, got 5",
        ),
        (
            lambda: ClassifierAdvice(PERSONS, LABELS + 1),
            "labels must be whole numbers from 0 to 2, got another number in row",
        ),
        (
            lambda: ClassifierAdvice(PERSONS, LABELS - 1),
            r"labels must hold whole numbers in \[0, ",
        ),
        (
            lambda: ClassifierAdvice(PERSONS, LABELS / 2),
            r"labels must hold whole numbers in \[0, ",
        ),
        (
            lambda: ClassifierAdvice(PERSONS, 3),
            r"labels must be an array of numbers of shape \(n\)",
        ),
        (lambda: ClassifierAdvice(PERSONS, LABELS, once=1), "once must be True or False"),
        (lambda: ClassifierAdvice(PERSONS, LABELS, names=["a"]), "names must hold 3 names"),
        (lambda: classifier_advice("iris"), "name must be one of 'breast_cancer', 'digits'"),
        (
            lambda: classifier_advice(n_experts=0),
            "n_experts must be an integer between 1 and 1,000",
        ),
        (lambda: classifier_advice(share=0.0), r"share must be a number in \[0.01, 1\]"),
        (lambda: classifier_advice("breast_cancer", 1, once="no"), "once must be True or False"),
        (lambda: classifier_advice(seed=-1), "seed must be an integer"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ArgumentError, match=f"^{message}") as caught:
        make()
    assert caught.value.argument == message.split(" ")[0]


def test_messages_do_not_show_the_ends_of_rewards_that_may_be_data():
    """They are the rewards of two people, also where experts advise on a table of them."""
    plan = np.eye(2)[None]
    advised = Advised(RewardTable([[7919.73, 0.5], [-2.25, 0.5]]), plan, horizon=2)
    with pytest.warns(ClippingWarning, match="some of these data lie outside") as told:
        simulate(EXP4(2, 2, horizon=2, budget=None), advised, horizon=2)
    assert not any("7919" in str(one.message) or "2.25" in str(one.message) for one in told)
    assert not Advised(Bernoulli([0.1, 0.2]), plan, horizon=2).holds_data
