"""Simulations in context: common worlds, pauses, distances, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import dpbandits as dpb
from dpbandits.environments import Bernoulli, ContextEnvironment, ContextKernels, ContextTable
from dpbandits.kernel import kernel
from dpbandits.privacy.ledger import HEAD, empty_arrays
from dpbandits.session.steps import release_of
from dpbandits.simulation import simulate
from dpbandits.simulation.clipping import Entering
from dpbandits.simulation.loops import context_loop
from dpbandits.simulation.simulating import play, recorded_rounds
from dpbandits.simulation.tally import DONE, LEDGER_FULL, PAUSED, new_tally

RNG = np.random.default_rng(6)
THETA = np.array([0.8, 0.4])
CONTEXTS = RNG.uniform(0.0, 0.7, (2000, 3, 2))
MEANS = CONTEXTS @ THETA
TABLE = ContextTable(CONTEXTS, (RNG.random(MEANS.shape) < MEANS).astype(float), MEANS)


@kernel
def _show(state, t, view, rng):
    for a in range(view.shape[0]):
        for i in range(view.shape[1]):
            view[a, i] = state[1] * rng.random()
    return 0


@kernel
def _answer(state, t, view, hidden, arm, rng):
    best = chosen = 0.0
    for a in range(view.shape[0]):
        mean = 0.0
        for i in range(view.shape[1]):
            mean += state[0][i] * view[a, i]
        best = max(best, mean)
        if a == arm:
            chosen = mean
    return chosen + 0.1 * rng.standard_normal(), best - chosen


class Fresh(ContextEnvironment):
    """New features in every round, and a linear truth."""

    kernels = ContextKernels(_show, _answer)

    def __init__(self, length=0.7):
        self.n_arms, self.dimension, self.parameter = 3, 2, THETA
        self.support, self.context_bound, self.state = (
            (-np.inf, np.inf),
            length * 2**0.5,
            (THETA, length),
        )

    def _arguments(self):
        return f"{self.state[1]}"


def policies(**options):
    return [
        dpb.algorithms.LinUCB(3, 2, **options),
        dpb.algorithms.RSOFUL(3, 2, **options),
        dpb.algorithms.PrivateLinUCB(3, 2, budget=dpb.ZCDP(1.0), horizon=2000, **options),
        dpb.algorithms.AdaCOFUL(3, 2, budget=dpb.ZCDP(1.0), horizon=2000, **options),
        dpb.algorithms.LinearThompson(3, 2, budget=dpb.PureDP(5.0), horizon=2000, **options),
    ]


def two_policies():
    """One that learns at once and one of episodes, for worlds whose loops are compiled here only."""
    return [policies()[0], policies()[3]]


def run(chosen, world=None, **options):
    return simulate(
        chosen, world or Fresh(), **{"horizon": 800, "runs": 6, "seed": 3, "record": 8, **options}
    )


@pytest.mark.long
@pytest.mark.parametrize("world", [TABLE, Fresh()], ids=["table", "fresh"])
def test_workers_and_company_change_nothing(world):
    chosen = two_policies()
    together, alone = run(chosen, world, n_jobs=2), run(chosen[1], world)
    mine = together.runs[together.runs["policy"] == chosen[1].label]
    pd.testing.assert_frame_equal(mine.reset_index(drop=True), alone.runs)
    pd.testing.assert_frame_equal(together.frame, run(chosen, world).frame)


@pytest.mark.long
def test_all_policies_meet_the_same_contexts_and_noise():
    """With one arm there is nothing to choose, so that equal rewards mean equal contexts and equal
    noise.
    """

    class Single(Fresh):
        def __init__(self):
            super().__init__()
            self.n_arms = 1

    chosen = [
        dpb.algorithms.LinUCB(1, 2),
        dpb.algorithms.AdaCOFUL(1, 2, budget=dpb.ZCDP(0.1), horizon=800),
        dpb.algorithms.AdaCOFUL(1, 2, budget=None, horizon=900),
    ]
    runs = (
        run(chosen, Single()).runs.pivot(index="run", columns="policy", values="reward").to_numpy()
    )
    assert (runs == runs[:, :1]).all()
    assert np.unique(runs[:, 0]).size == 6


@pytest.mark.long
def test_a_policys_choices_do_not_change_later_contexts():
    """Regret at uniform play and at the best arm differ by what was lost in each round alone."""
    both = run([dpb.algorithms.LinUCB(3, 2), dpb.algorithms.LinUCB(3, 2, radius_scale=0.0)]).runs
    paired = both.pivot(index="run", columns="policy", values=["reward", "regret"])
    best = paired["reward"].to_numpy() + paired["regret"].to_numpy()
    # The sum of the best means and of the noise is the same for both, up to clipping of rewards at
    # the range.
    assert best[:, 0] == pytest.approx(best[:, 1], abs=3.0)
    assert np.ptp(best[:, 0]) > 3.0


@pytest.mark.long
def test_the_distance_is_that_of_the_estimate():
    result = run(two_policies())
    assert np.isfinite(result.frame["distance"]).all()
    first, last = (
        result.frame[result.frame["round"] == t].groupby("policy")["distance"].mean()
        for t in (1, 800)
    )
    assert (last < first).all()
    # nothing is known before the first change
    assert first[policies()[3].label] == pytest.approx(np.linalg.norm(THETA))
    assert last[dpb.algorithms.LinUCB(3, 2).label] < 0.1
    assert "distance" not in run(policies()[0], TABLE).frame
    assert (
        "distance" not in simulate(dpb.algorithms.UCB1(2), Bernoulli([0.5, 0.4]), horizon=10).frame
    )


@pytest.mark.long
def test_results_with_distances_come_back_from_a_file(tmp_path):
    result = run(policies()[:2])
    loaded = type(result).load(result.save(tmp_path / "a"))
    pd.testing.assert_frame_equal(loaded.frame, result.frame)


def driven(policy, every, room=64, altered=False):
    state = policy.new_state()
    state.wall = state.wall._replace(ledger=empty_arrays(room))
    tally = new_tally(recorded_rounds(800, 20), 3, trace=800)
    contexts = np.zeros((3, 2))
    taken = np.zeros((3, 2)) if altered else contexts
    rngs = [np.random.default_rng([5, k]) for k in range(3)]
    crossing = release_of(policy.driven, policy.mechanism, inside=policy.card.learns_at_once)
    loop, until, seen = context_loop(policy.driven, crossing, TABLE.kernels), every, []
    sides = (policy.params, state.raw, state.public, state.memo)
    world = (
        TABLE.state,
        np.zeros(0),
        tally,
        contexts,
        taken,
        altered,
        Entering(False, 0.0, 1.0),
        800,
    )
    while not seen or seen[-1] != DONE:
        seen.append(loop((*sides, state.wall), (*world, until), *rngs))
        if seen[-1] == LEDGER_FULL:
            state.make_room()
        else:
            until += every
    assert tally.counts.sum() == 800
    used, lines = state.wall.ledger, state.wall.ledger.head[HEAD.lines]
    arrays = (*state.raw, *state.public, *tally[1:], used.span[:lines], state.wall.release)
    return seen, [array.tobytes() for array in arrays]


@pytest.mark.long
@pytest.mark.parametrize("policy", policies(), ids=repr)
def test_pauses_full_ledgers_and_idle_scaling_do_not_change_a_run(policy):
    straight, end = driven(policy, 800, room=4096)
    assert straight == [DONE]
    paused, other = driven(policy, 1)
    assert PAUSED in paused
    assert other == end
    _, other = driven(policy, 7, room=1, altered=True)  # no context is longer than the bound
    assert other == end


@pytest.mark.long
@pytest.mark.parametrize("policy", policies(context_bound=0.9), ids=repr)
def test_contexts_beyond_the_bound_are_scaled(policy):
    """One arm of three is too long.  At equal lengths ties, and at length one the doubling of det
    V, would hang on rounding.
    """
    long = CONTEXTS[:300] * [[5.0], [1.0], [1.0]]
    scaled = long * np.minimum(1.0, 0.9 / np.linalg.norm(long, axis=2, keepdims=True))
    runs = []
    for x in (long, scaled):
        table = ContextTable(x, TABLE.state.rewards[:300], MEANS[:300])
        runs.append(
            play(policy, table, 300, 0, 2, np.array([300]), trace=True).tally.trace.tolist()
        )
        # What the streams of the environment are keyed by differs, but a table draws nothing.
    assert policy.alters(np.linalg.norm(long, axis=2).max())
    assert runs[0] == runs[1]
    assert 0 in runs[0]


@pytest.mark.filterwarnings("ignore::dpbandits.ClippingWarning")
@pytest.mark.long
def test_rewards_outside_the_range_are_clipped():
    contexts, rewards = np.ones((3, 1, 1)), np.array([[-5.0], [0.5], [7.0]])
    assert (
        simulate(dpb.algorithms.LinUCB(1, 1), ContextTable(contexts, rewards), horizon=3)
        .runs["reward"]
        .item()
        == 1.5
    )
    loose = simulate(
        dpb.algorithms.LinUCB(1, 1, clip=False), ContextTable(contexts, rewards), horizon=3
    )
    assert loose.runs["reward"].item() == 2.5


@pytest.mark.parametrize(
    ("chosen", "world", "message"),
    [
        (
            dpb.algorithms.UCB1(3),
            TABLE,
            (
                r"^policies must fit the environment: UCB1.* takes no contexts, and ContextTable.*"
                r" has contexts"
            ),
        ),
        (
            dpb.algorithms.LinUCB(3, 2),
            Bernoulli([0.5, 0.4, 0.3]),
            (
                r"^policies must fit the environment: Linear\(.* takes contexts, and Bernoulli.*"
                r" has no contexts"
            ),
        ),
        (dpb.algorithms.LinUCB(2, 2), TABLE, r"^n_arms of Linear\(.* must be 3"),
        (dpb.algorithms.LinUCB(3, 4), TABLE, r"^dimension of Linear\(.* must be 2"),
        (
            dpb.algorithms.PrivateLinUCB(3, 2, budget=dpb.ZCDP(1.0), horizon=799),
            TABLE,
            r"^horizon must be at most 799, the rounds that",
        ),
        ([dpb.algorithms.LinUCB(3, 2), dpb.algorithms.UCB1(3)], TABLE, r"takes no contexts"),
        (dpb.algorithms.LinUCB(3, 2), "contexts", r"^environment must be"),
    ],
)
def test_policies_and_environments_that_do_not_fit_are_refused(chosen, world, message):
    with pytest.raises(dpb.ArgumentError, match=message):
        run(chosen, world)


def test_a_table_has_so_many_rounds():
    with pytest.raises(
        dpb.ArgumentError, match=r"^horizon must be at most 2000, the environment's"
    ):
        run(policies()[0], TABLE, horizon=2001)


@pytest.mark.long
@pytest.mark.parametrize(
    "budget", [None, dpb.ZCDP(1e-8), dpb.ZCDP(1e8), dpb.PureDP(1e-6), dpb.PureDP(1e6)], ids=str
)
def test_extreme_budgets_and_sizes_stay_finite(budget):
    for n_arms, dimension, horizon in (
        (1, 1, 1),
        (1, 1, 300),
        (2, 1, 300),
        (1, 7, 300),
        (3, 40, 60),
    ):
        x = np.random.default_rng(1).standard_normal((horizon, n_arms, dimension))
        table = ContextTable(x, np.full((horizon, n_arms), 0.5))
        for make in (
            dpb.algorithms.PrivateLinUCB,
            dpb.algorithms.LinearThompson,
            dpb.algorithms.AdaCOFUL,
        ):
            result = simulate(
                make(n_arms, dimension, budget=budget, horizon=horizon),
                table,
                horizon=horizon,
                runs=2,
            )
            assert result.runs["reward"].tolist() == [0.5 * horizon] * 2
            assert np.isfinite(result.frame["regret"]).all()
