"""Finite policies against the definitions, gone through by brute force."""

from __future__ import annotations

import math
import resource
import time
from fractions import Fraction
from functools import cache, partial
from itertools import product
from types import SimpleNamespace

import definitions as brute
import numpy as np
import pytest
from definitions import World
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from dpbandits import ArgumentError, ArmsLocal, PureDP
from dpbandits.algorithms import LDPIMED
from dpbandits.finite import EXAMPLES, FinitePolicy, views

VIEWS = {
    ("view", False): brute.view,
    ("table", False): brute.table,
    ("interactive", False): brute.interactive,
    ("adaptive", False): brute.adaptive,
    ("view", "others"): lambda world: brute.view(world, "others"),
    ("table", "others"): lambda world: brute.table(world, "others"),
    ("view", "later"): lambda world: brute.view(world, "later"),
    ("table", "later"): lambda world: brute.table(world, "later"),
    ("interactive", "others"): brute.joint_interactive,
    ("interactive", "later"): brute.joint_interactive,
    ("anticipating", "others"): brute.anticipating,
}
SMALL = [(2, 2, 1, 3), (2, 3, 1, 2), (3, 2, 1, 2), (2, 2, 2, 2)]  # arms, rewards, contexts, rounds


def drawn(arms, rewards, contexts, rounds, seed, exact=False):
    """A policy as a function, with zeros where it is exact, and as tables."""
    rng, known = np.random.default_rng(seed), {}

    def choose(told, x):
        if (told, x) not in known:
            parts = rng.integers(0, 6, arms) + (rng.integers(arms) == np.arange(arms))
            fractions = [Fraction(int(n), int(parts.sum())) for n in parts]
            known[told, x] = fractions if exact else rng.dirichlet(np.ones(arms)).tolist()
        return known[told, x]

    def choose_in_parts(played, answered, shown=None):
        shown = shown if contexts > 1 else (0,) * (len(played) + 1)
        return choose(tuple(zip(shown, played, answered, strict=False)), shown[-1])

    policy = FinitePolicy.from_function(
        arms,
        rounds,
        choose_in_parts,
        rewards=range(rewards),
        contexts=range(contexts) if contexts > 1 else (),
    )
    return World(choose, arms, rewards, contexts, rounds), policy


def cases():
    for (view, joint), pairs in VIEWS.items():
        for sizes in SMALL:
            large = sizes[3] == 3 and (view == "adaptive" or joint) and view != "view"
            yield pytest.param(
                *(view, joint, pairs, sizes),
                marks=[pytest.mark.long] if large else [],
                id=f"{view}-{joint}-{'x'.join(map(str, sizes))}",
            )


@pytest.mark.parametrize(("view", "joint", "pairs", "sizes"), list(cases()))
def test_everything_is_as_brute_force_finds_it(view, joint, pairs, sizes):
    world, policy = drawn(*sizes, seed=sum(sizes))
    every = brute.distinct(pairs(world))
    for epsilon in (0.0, 0.5, 2.0):
        expected = max(brute.hockey_stick(p, q, math.exp(epsilon)) for p, q in every)
        assert policy.delta(epsilon, view, joint=joint) == pytest.approx(expected, abs=1e-13)
    for order in (1.0, 1.5, 2.0, 30.0):
        expected = max(brute.renyi(p, q, order) for p, q in every)
        assert policy.renyi(order, view, joint=joint) == pytest.approx(expected, rel=1e-10)
    for delta in (0.0, 0.05):
        found = policy.epsilon(delta, view, joint=joint)
        above, below = (
            max(brute.hockey_stick(p, q, math.exp(found + shift)) for p, q in every)
            for shift in (1e-9, -1e-9)
        )
        assert above <= delta < below


@pytest.mark.parametrize(
    ("view", "sizes"),
    [
        ("view", (2, 2, 1, 3)),
        ("table", (2, 2, 1, 3)),
        pytest.param("interactive", (2, 2, 1, 3), marks=pytest.mark.long),
        ("interactive", (2, 2, 2, 2)),
    ],
)
def test_fractions_are_computed_with_exactly(view, sizes):
    world, policy = drawn(*sizes, seed=5, exact=True)
    every = brute.distinct(VIEWS[view, False](world))
    expected = max(brute.hockey_stick(p, q, 1) for p, q in every)
    assert policy.delta(0.0, view) == float(expected)
    certain = max(sum(p[o] for o in p if q.get(o, 0) == 0) for p, q in every)
    assert policy.delta(math.inf, view) == float(certain) > 0.0  # what happens in one world only
    assert policy.epsilon(certain - Fraction(1, 10**9), view) == math.inf
    assert policy.renyi(2.0, view) == policy.rho(view) == math.inf
    enough = policy.epsilon(certain, view)
    s = math.exp(enough)
    assert max(brute.hockey_stick(p, q, Fraction(s * 1.000001)) for p, q in every) == certain
    assert max(brute.hockey_stick(p, q, Fraction(s * 0.999999)) for p, q in every) > certain


def test_the_hockey_stick_is_the_worst_event():
    world, policy = drawn(2, 2, 1, 3, seed=9)
    worst = max(brute.over_events(p, q, 2.0) for p, q in brute.distinct(brute.table(world)))
    assert policy.delta(math.log(2.0), "table") == pytest.approx(worst, abs=1e-13)


def test_rho_is_the_largest_divergence_over_its_order():
    for seed in range(3):
        _, policy = drawn(2, 2, 1, 3, seed=seed)
        orders = 1.0 + np.geomspace(1e-6, 1e4, 600)
        curve = policy.renyi(orders, "table") / orders
        best = int(curve.argmax())
        around = orders[max(best - 1, 0)], orders[min(best + 1, orders.size - 1)]
        finer = minimize_scalar(
            lambda a, policy=policy: -policy.renyi(a, "table") / a,
            bounds=around,
            method="bounded",
            options={"xatol": 1e-8},
        )
        assert -finer.fun <= policy.rho("table") * (1 + 1e-12)
        assert policy.rho("table") <= -finer.fun * (1 + 2e-6)


def test_rho_of_randomised_response():
    # Bun & Steinke (2016): epsilon^2 / 2 is enough; of a coin it is less, and known.
    for epsilon in (0.01, 1.0, 5.0):
        s = math.exp(epsilon)
        coin = [s / (1 + s), 1 / (1 + s)]
        answer = [[coin, coin[::-1]]] * 2
        policy = FinitePolicy([[0.5, 0.5], answer])
        orders = 1.0 + np.geomspace(1e-9, 1e4, 20_000)
        p, q = coin
        with np.errstate(over="ignore"):
            tilt = (orders - 1) * epsilon
            moments = np.log1p(p * np.expm1(tilt) + q * np.expm1(-tilt))
        curve = np.where(np.isfinite(moments), moments, tilt + math.log(p)) / (orders - 1) / orders
        assert policy.rho() == pytest.approx(curve.max(), rel=3e-6)
        assert policy.rho() <= epsilon**2 / 2
        assert policy.epsilon(0.0) == pytest.approx(epsilon, rel=1e-12)


# Published claims -------------------------------------------------------------------------------


def test_proposition_1_e():
    # The tables once more, as they are printed.
    printed = [
        [(2, 3)],
        [(1, 2), (1, 3), (1, 4), (1, 3)],
        [
            *[(1, 2), (1, 3), (1, 4), (1, 5), (1, 2), (2, 3), (1, 4), (0, 1)],
            *[(1, 3), (1, 7), (3, 4), (2, 5), (1, 2), (1, 1), (1, 4), (2, 3)],
        ],
    ]

    def choose(told, x):
        number = int("0" + "".join(f"{a}{r}" for _, a, r in told), 2)
        first = Fraction(*printed[len(told)][number])
        return [first, 1 - first]

    world, policy = World(choose, 2, 2, 1, 3), EXAMPLES["view-not-table"]()
    s, delta = Fraction(math.exp(0.95)), Fraction(17, 100)
    for view, private in (("view", True), ("table", False)):
        pairs = brute.distinct(VIEWS[view, False](world))
        worst = max(brute.over_events(p, q, s) for p, q in pairs)
        assert (worst <= delta) == private
        assert policy.delta(0.95, view) == float(worst)
        enough = policy.epsilon(delta, view)
        above, below = (
            max(brute.hockey_stick(p, q, Fraction(math.exp(enough + shift))) for p, q in pairs)
            for shift in (1e-12, -1e-12)
        )
        assert above <= delta < below
    assert f"{policy.epsilon(delta, 'table'):.2f}" == "0.98"
    assert policy.delta(0.98, "table") > delta  # 0.98 is rounded down: 0.98398 is enough


def test_an_adaptive_adversary_is_no_shuffling_one():
    # Remark 2 asks whether it might be.
    policy = EXAMPLES["interactive-not-adaptive"]()
    assert policy.delta(0.0, "interactive") == 1 / 2
    assert policy.delta(0.0, "adaptive") == 2 / 3


def test_views_of_the_example_that_never_plays_an_arm():
    policy = EXAMPLES["table-not-interactive"]()
    assert policy.delta(0.0, "table") == policy.rho("table") == 0.0
    assert policy.delta(100.0, "interactive") == 1.0


@given(seed=st.integers(0, 2**32 - 1), epsilon=st.floats(0.0, 4.0))
@settings(max_examples=25)
def test_propositions_1_and_2(seed, epsilon):
    _, policy = drawn(2, 2, 1, 3, seed)
    deltas = [policy.delta(epsilon, view) for view in views.VIEWS]
    assert (np.diff(deltas) >= -1e-14).all()  # from the weakest view to the strongest
    assert (np.diff([policy.rho(view) for view in views.VIEWS]) >= -1e-6).all()
    pure = [policy.epsilon(0.0, view) for view in views.VIEWS]
    assert pure[0] == pytest.approx(pure[1], rel=1e-12)  # Proposition 1(a)
    assert pure[2] == pytest.approx(pure[3], rel=1e-12)  # one path has one table
    # Proposition 1(d) has K^T; the last decision moves no reward.
    assert deltas[1] <= 2**2 * deltas[0] + 1e-14
    assert policy.delta(pure[3], "adaptive") <= 1e-14


@given(seed=st.integers(0, 2**32 - 1), epsilon=st.floats(0.0, 4.0))
@settings(max_examples=10)
def test_joint_views_from_the_weakest_to_the_strongest(seed, epsilon):
    _, policy = drawn(2, 2, 2, 2, seed) if seed % 2 else drawn(2, 2, 1, 4, seed)
    for joint, weaker in (("others", "others"), ("later", "later"), ("others", "later")):
        for chain in (
            ("view", "table", "interactive", "adaptive"),
            ("view", "anticipating", "interactive"),
        ):
            deltas = [policy.delta(epsilon, view, joint=joint) for view in chain]
            assert (np.diff(deltas) >= -1e-14).all()
            for view, delta in zip(chain, deltas, strict=True):
                assert policy.delta(epsilon, view, joint=weaker) <= delta + 1e-14


@given(seed=st.integers(0, 2**32 - 1), order=st.floats(1.0, 20.0))
@settings(max_examples=10)
def test_renyi_divergences_have_no_use_for_decisions(seed, order):
    # Of a policy that is a table, the worst adversary plans ahead: it sets arms and rewards, and
    # divergences of rounds add up. So Remark 2 has an answer for zCDP, and Proposition 2(b) holds.
    world, policy = drawn(2, 2, 1, 3, seed)
    records = list(product([0], range(2), range(2)))
    planned = max(
        sum(
            brute.renyi(*(dict(enumerate(world.choose(told[:t], 0))) for told in pair), order)
            for t in range(3)
        )
        for pair in product(product(records, repeat=2), repeat=2)
        if sum(one != other for one, other in zip(*pair, strict=True)) == 1
        and all(one[1] == other[1] for one, other in zip(*pair, strict=True))
    )
    for view in ("interactive", "adaptive"):
        assert policy.renyi(order, view) == pytest.approx(planned, rel=1e-10)
    behind = []
    for b in brute.adversaries(world, range(2)):

        def choose(arms, rewards, b=b):
            asked = (b[arms[: t + 1]] for t in range(len(arms)))
            return world.choose(tuple((0, *one) for one in zip(asked, rewards, strict=True)), 0)

        behind.append(FinitePolicy.from_function(2, 3, choose).renyi(order, "table"))
    assert max(behind) == pytest.approx(planned, rel=1e-10)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_group_privacy_of_theorem_1(seed):
    world, policy = drawn(2, 2, 1, 4, seed)
    rho, rng = policy.rho("interactive"), np.random.default_rng(seed)
    for _ in range(50):
        arms, one, other = rng.integers(0, 2, (3, 4))
        loss = sum(
            brute.renyi(
                *(
                    dict(enumerate(world.choose(told[:t], 0)))
                    for told in (
                        tuple((0, *r) for r in zip(arms, x, strict=True)) for x in (one, other)
                    )
                ),
                order=1.0,
            )
            for t in range(4)
        )
        changed = int((one[:3] != other[:3]).sum())  # the last one is never read
        assert loss <= rho * changed**2 + 1e-9


def test_joint_views_hide_a_persons_own_decision():
    # Everybody gets the arm that her context asks for: fine for others, everything for all.
    policy = FinitePolicy.from_function(
        2, 3, lambda arms, rewards, shown: [shown[-1] == "a", shown[-1] == "b"], contexts="ab"
    )
    assert all(policy.delta(0.0, view, joint=True) == 0.0 for view in views.JOINT_VIEWS)
    copied = FinitePolicy.from_function(
        2, 3, lambda arms, rewards, shown: [shown[0] == 0, shown[0] == 1], contexts=range(2)
    )
    assert all(copied.delta(9.0, view, joint=True) == 1.0 for view in views.JOINT_VIEWS)
    assert all(copied.delta(0.0, view) == 0.0 for view in views.VIEWS)  # contexts are public


def test_earlier_decisions_may_tell_later_ones_apart():
    # The third decision is the first one, or the other arm if the second reward was 1: by itself a
    # fair coin, and beside the first decision that reward.
    def choose(arms, rewards):
        if len(arms) < 2:
            return [0.5, 0.5]
        return [float(a == arms[0] ^ rewards[1]) for a in range(2)]

    policy = FinitePolicy.from_function(2, 3, choose)
    assert policy.delta(0.0, "view", joint="later") == 0.0
    assert policy.delta(0.0, "view", joint="others") == 1.0
    assert policy.delta(0.0, "anticipating", joint=True) == 1.0


# Planted faults ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("view", "joint", "planted"),
    [
        ("table", False, views._Rules("list", "list", "list")),
        ("table", False, views._Rules("table", "list", "table")),
        ("interactive", False, views._Rules("table", "table", "table")),
        ("interactive", False, views._Rules("list", "list", "list", queried=True)),
        ("adaptive", False, views._Rules("table", "table", "table", queried=True)),
        ("anticipating", True, views._Rules("list", "record", "list")),
        ("table", True, views._Rules("table", "record", "table")),
    ],
)
def test_other_definitions_are_told_apart(monkeypatch, view, joint, planted):
    policies = [drawn(2, 2, 1, 3, seed)[1] for seed in range(30)]
    policies.append(EXAMPLES["interactive-not-adaptive"]())

    def choose(arms, rewards):  # which arm tells more hangs on the hint, and so on its own reward
        second = 0.5
        if len(arms) == 1:
            second = (1 + rewards[0]) / 3
        elif len(arms) == 2 and arms[1] == rewards[1]:
            second = (rewards[0] ^ rewards[1]) / 2
        return [1 - second, second]

    policies.append(FinitePolicy.from_function(2, 3, choose))
    right = [policy.delta(0.2, view, joint=joint) for policy in policies]
    monkeypatch.setitem(views._RULES, (view, joint), planted)
    assert [policy.delta(0.2, view, joint=joint) for policy in policies] != pytest.approx(right)


# Channels ---------------------------------------------------------------------------------------


def test_a_channel_is_summed_over():
    channel = [["3/5", "3/10", "1/10"], ["1/10", "1/5", "7/10"]]  # of two rewards three reports
    chances = [[Fraction(p) for p in row] for row in channel]
    world, policy = drawn(2, 3, 1, 3, seed=2, exact=True)

    @cache
    def law(rewards):
        mixed = {}
        for reports in product(range(3), repeat=2):
            weight = chances[rewards[0]][reports[0]] * chances[rewards[1]][reports[1]]
            of_reports = brute.play(world, (0, 0, 0), lambda t, seen, o: (o, (*reports, 0)[t]))  # noqa: B023
            for seen, p in of_reports.items():
                mixed[seen] = mixed.get(seen, 0) + weight * p
        return mixed

    pairs = list(brute.neighbours([0, 1], 2))
    behind = policy.behind(channel)
    for epsilon in (0.0, 0.3):
        s = Fraction(math.exp(epsilon))
        expected = max(brute.hockey_stick(law(d), law(e), s) for _, d, e in pairs)
        assert behind.delta(epsilon, "view") == float(expected)
    assert 0.0 < behind.delta(0.0, "view") < policy.delta(0.0, "view")
    # Nobody sees more of a reward than its report, whose law is that of the two rows.
    rows = (dict(enumerate(row)) for row in chances)
    one, other = rows
    for view in views.VIEWS:
        assert behind.delta(0.5, view) <= max(
            float(brute.hockey_stick(*pair, Fraction(math.exp(0.5))))
            for pair in ((one, other), (other, one))
        )


def test_an_open_channel_changes_nothing():
    _, policy = drawn(2, 2, 1, 3, seed=4)
    same = policy.behind([[1, 0], [0, 1]])
    for view in views.VIEWS:
        assert same.delta(0.3, view) == policy.delta(0.3, view)


def test_hidden_reports_make_earlier_decisions_tell():
    """The second decision is a coin that came with the first report; the fourth one is the third
    reward, hidden by that coin: a fair one for whoever does not know the second.
    """

    def choose(arms, reports):
        coin = reports[0] % 2 if reports else 0
        bit = coin ^ reports[2] // 2 if len(arms) == 3 else coin * (len(arms) == 1)
        return [1 - bit, bit]

    policy = FinitePolicy.from_function(2, 4, choose, rewards=range(4))
    # A reward is the high bit of a report, a fair coin the low one.
    tossed = policy.behind([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    for view in ("view", "table", "interactive"):
        assert tossed.delta(0.0, view, joint="others") == 1.0
        assert tossed.delta(0.0, view, joint="later") == 0.0


def xor_with_a_coin(chance):
    """The second decision is a coin that came with the first report; the third one compares it with
    the second reward, and equal ones have ``chance`` to be shown.
    """

    def choose(arms, reports):
        second = reports[0] % 2 if len(arms) == 1 else 0
        if len(arms) == 2 and reports[0] % 2 == reports[1] // 2:
            second = chance
        return [1 - second, second]

    policy = FinitePolicy.from_function(2, 3, choose, rewards=range(4))
    return policy.behind([["1/2", "1/2", 0, 0], [0, 0, "1/2", "1/2"]])


@pytest.mark.parametrize("epsilon", [0.0, 0.3, math.inf])
def test_an_adaptive_adversary_makes_up_the_challenge_on_the_way(epsilon):
    # A table of (1, 0) against (0, 1) lets it choose the direction by the coin.
    policy = xor_with_a_coin(Fraction(1, 2))
    for view in ("interactive", "adaptive"):
        assert policy.delta(epsilon, view) == 0.5


@pytest.mark.parametrize("joint", ["others", "later"])
def test_hidden_reports_make_a_persons_own_decision_tell(joint):
    # Her arm is the coin, and in her table reward and arm are alike, or opposite.
    policy = xor_with_a_coin(1)
    assert policy.delta(0.0, "view", joint=joint) == 0.0
    for view in ("table", "interactive", "adaptive"):
        assert policy.delta(0.0, view, joint=joint) == 1.0


def test_views_behind_a_channel_from_the_weakest_to_the_strongest():
    rng = np.random.default_rng(7)
    for seed in range(8):
        policy = drawn(2, 3, 1, 3, seed)[1].behind(rng.dirichlet(np.full(3, 0.3), 2))
        for joint in (False, "others"):
            chain = [policy.delta(0.2, v, joint=joint) for v in views.VIEWS]
            assert (np.diff(chain) >= -1e-14).all()


def test_large_epsilons_have_a_delta():
    policy = EXAMPLES["table-not-interactive"]()
    assert policy.delta(1000.0) == policy.delta(math.inf) == 1.0
    assert policy.delta(1e308, "table") == 0.0


# Policies that are shipped ----------------------------------------------------------------------


def test_the_exact_epsilon_of_a_shipped_policy_is_the_claimed_one():
    # The second report decides between two arms, which is all that Laplace noise keeps.
    claimed = PureDP(1.0)
    policy = FinitePolicy.from_reports(partial(LDPIMED, 2, budget=claimed), 3, reach=6)
    for view in views.VIEWS:
        assert claimed.epsilon - 1e-5 < policy.epsilon(0.0, view) <= claimed.epsilon


def test_a_shipped_policy_is_asked_after_every_history():
    # By hand: arms 0 and 1 have one report each, and the third arm follows the larger one.
    make = partial(LDPIMED, 2, budget=PureDP(2.0))
    policy = FinitePolicy.from_reports(make, 3, reach=3)
    reports, chances = make(reports=True, noise="secure", grid=1.0).randomiser().law([0, 1], 3)
    third = np.empty((reports.size, reports.size))
    for (i, first), (k, second) in product(enumerate(reports), repeat=2):
        run = make(reports=True, noise="secure", grid=1.0)
        for report in (first, second):
            run.pull()
            run.update(report)
        third[i, k] = run.pull().arm
    law = {r: chances[r[0]] @ third @ chances[r[1]] for r in product(range(2), repeat=2)}
    pairs = brute.neighbours([0, 1], 2)
    expected = max(abs(law[d] - law[e]) for _, d, e in pairs)
    assert policy.delta(0.0, "view") == pytest.approx(expected, abs=1e-14)


def test_noise_below_the_claimed_one_is_noticed():
    # Half the noise: of 1 epsilon is claimed, and 2 are lost.
    weak = partial(LDPIMED, 2, budget=PureDP(2.0))
    policy = FinitePolicy.from_reports(weak, 3, reach=6)
    assert policy.epsilon(0.0, "view") > 1.9


def test_policies_that_choose_by_chance_are_refused():
    class Tossing(ArmsLocal):
        def pull(self):
            return SimpleNamespace(arm=super().pull().arm, propensity=0.5)

    with pytest.raises(ArgumentError, match="chooses deterministically"):
        FinitePolicy.from_reports(partial(Tossing, 2, budget=PureDP(2.0)), 2, reach=1)


# The door ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([[]], r"probabilities must be a table for each round"),
        ([[[0.5, 0.5]], [[0.5, 0.5]]], r"probabilities\[1\] must have 4 rows"),
        ([[[0.5, 0.5]], [[[0.5, 0.5], [1.0]]]], "must be numbers"),
        ([[[0.5, 0.6]]], r"probabilities\[0\] must have rows .* sum to 1, got .* in row 0"),
        ([[["1/3", "2/3"]], [[1, 0]] * 3 + [["1/3", "1/3"]]], r"in row 3"),
        ([[[1.5, -0.5]]], "not negative"),
        ([[[math.nan, 1.0]]], "not negative"),
        ([[["one", "1/2"]]], "got 'one'"),
        ([[["1/0", "1/2"]]], "got '1/0'"),
        ([[[True, False]], [[None, 1]] * 4], "got None"),
        ([[[1e-200, 1.0]], [[0.5, 0.5]] * 4], "only zeros and numbers of at least"),
        ([], "a table for each round"),
        (3, "a table for each round"),
    ],
)
def test_tables_that_are_none(arguments, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        FinitePolicy(arguments)
    assert caught.value.argument == "probabilities"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda policy: policy.delta(-0.1), "epsilon must be at least 0, got -0.1"),
        (lambda policy: policy.delta(math.nan), "epsilon must be at least 0"),
        (lambda policy: policy.epsilon(-1e-9), "delta must be from 0 to 1"),
        (lambda policy: policy.epsilon(1.5), "delta must be from 0 to 1"),
        (lambda policy: policy.delta([0.1, [0.2, "x"]]), "epsilon must be"),
        (lambda policy: FinitePolicy([[[0.5, 0.5]]], rewards=3), "rewards must be a sequence"),
        (lambda policy: FinitePolicy([[[0.5, 0.5]]], contexts=None), "contexts must be a sequence"),
        (lambda policy: policy.renyi(0.9), "order must be at least 1"),
        (lambda policy: policy.delta(1.0, "tabel"), "view must be one of"),
        (lambda policy: policy.delta(1.0, "anticipating"), "joint must be True"),
        (lambda policy: policy.delta(1.0, joint="all"), "joint must be"),
        (lambda policy: policy.behind([[1.0]]), "channel must have 2 columns"),
        (lambda policy: policy.behind([[0.5, 0.6]]), "sum to 1"),
    ],
)
def test_questions_that_are_none(call, message):
    with pytest.raises(ArgumentError, match=message):
        call(FinitePolicy([[[0.5, 0.5]]]))


def test_what_is_too_large_is_refused_before_anything_is_allocated():
    def never(arms, rewards):
        raise AssertionError("asked")

    with pytest.raises(ArgumentError, match="at most 16,777,216 are feasible"):
        FinitePolicy.from_function(2, 30, never)
    with pytest.raises(ArgumentError, match="at most 16,777,216 are feasible"):
        FinitePolicy.from_function(10**6, 10**9, never)
    uniform = FinitePolicy.from_function(3, 6, lambda arms, rewards: [1 / 3] * 3)
    for view in ("interactive", "table"):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(ArgumentError, match=f"view '{view}' of 3 arms, .* at most 16,777,216"):
            uniform.delta(1.0, view)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
    assert uniform.delta(0.0, "view") == 0.0
    with pytest.raises(ArgumentError, match="histories, and at most 100,000"):
        FinitePolicy.from_reports(partial(LDPIMED, 2, budget=PureDP(1.0)), 4)


def test_sequences_of_questions_have_arrays_of_answers():
    _, policy = drawn(2, 2, 1, 2, seed=1)
    assert policy.delta([0.0, 1.0]).tolist() == [policy.delta(0.0), policy.delta(1.0)]
    assert policy.renyi((2, math.inf)).tolist() == [policy.renyi(2), policy.epsilon(0.0)]


def test_nothing_private_is_kept_by_one_round_or_one_reward():
    one_round = FinitePolicy([[[0.5, 0.5]]])
    one_reward = FinitePolicy([[[0.5, 0.5]], [[0.1, 0.9]] * 2], rewards=[0])
    for policy, view in product((one_round, one_reward), views.VIEWS):
        assert policy.delta(0.0, view) == policy.epsilon(0.0, view) == policy.rho(view) == 0.0


@pytest.mark.long
def test_two_arms_and_four_rounds_take_seconds():
    _, policy = drawn(2, 2, 1, 4, seed=1, exact=True)
    started = time.process_time()
    for view in views.VIEWS:
        policy.delta(1.0, view), policy.epsilon(0.1, view), policy.renyi(2.0, view)
    assert time.process_time() - started < 20.0
