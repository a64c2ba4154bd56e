"""Secure noise has no seed, so the statistical gates here stand at alpha = 1e-6 each."""

import functools
import math
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats

import dpbandits as dpb
from dpbandits.privacy import BinaryTree, ContinualSum, Independent, grids, secure, secure_sum
from dpbandits.privacy.channels import LAPLACE, Gaussian, Laplace, Open
from dpbandits.privacy.secure import SecureNoise

ALPHA = 1e-8  # there is no seed
DRAWS = 40_000
CHANNELS = {"laplace": Laplace(1.0), "gaussian": Gaussian(1.0)}


@functools.cache
def draws(name, scale, grid):
    """(DRAWS,) independent noise variables, in grid units, from one release."""
    release = np.empty(DRAWS)
    source = SecureNoise(grid, (0.0, 4 * grid))
    source.add_noise(CHANNELS[name], scale * grid, np.zeros(DRAWS), release)
    return release / grid


def exact_pmf(channel, scale, reach):
    k = np.arange(-reach, reach + 1)
    if isinstance(channel, Laplace):
        return k, np.tanh(0.5 / scale) * np.exp(-np.abs(k) / scale)
    weight = np.exp(-(k**2) / (2 * scale**2))
    return k, weight / weight.sum()


def p_value(sample, channel, scale):
    """Chi-square of integer noise against the exact law, with both tails in one cell each of at
    least 20 expected draws.
    """
    k, pmf = exact_pmf(channel, scale, reach=int(60 * scale) + 10)
    edge = int(np.max(k[np.array([pmf[k >= i].sum() for i in k]) * sample.size >= 20]))
    cells = np.clip(sample, -edge, edge).astype(int) + edge
    observed = np.bincount(cells, minlength=2 * edge + 1)
    expected = np.bincount(np.clip(k, -edge, edge) + edge, weights=pmf, minlength=2 * edge + 1)
    return stats.chisquare(observed, expected / expected.sum() * sample.size).pvalue


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "scale", "grid"),
    [
        ("gaussian", 0.9, 1.0),
        ("laplace", 11.25, 2.0**-6),
        pytest.param("laplace", 0.7, 1.0, marks=pytest.mark.long),
        pytest.param("gaussian", 11.25, 2.0**-6, marks=pytest.mark.long),
    ],
)
def test_noise_follows_the_exact_discrete_law(name, scale, grid):
    noise = draws(name, scale, grid)
    scale = math.sqrt(max(1.0, scale**2 + 0.1)) if name == "gaussian" else scale
    assert p_value(noise, CHANNELS[name], scale) > ALPHA
    # Ten percent less or more noise would be seen: at 40,000 draws the non-centrality of the
    # chi-square is above 400, the threshold below 120.
    for off in (0.9, 1.1):
        assert p_value(noise, CHANNELS[name], scale * off) < ALPHA


def test_the_two_families_would_be_told_apart():
    laplace = draws("laplace", 11.25, 2.0**-6)
    assert p_value(laplace, Gaussian(1.0), 11.25 * math.sqrt(2)) < ALPHA


@pytest.mark.parametrize("name", CHANNELS)
def test_coordinates_are_independent(name):
    left, right = draws(name, 11.25, 2.0**-6).reshape(-1, 2).T
    for f in (lambda x: x, np.abs):
        # Under independence sqrt(n) times the correlation is normal; shared noise would give
        # sqrt(n) = 141.
        z = math.sqrt(left.size) * np.corrcoef(f(left), f(right))[0, 1]
        assert 2 * stats.norm.sf(abs(z)) > ALPHA


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("size", [1, 3])
def test_noise_is_added_to_the_statistic_on_the_grid(name, size):
    source, release = SecureNoise(2.0**-10, (0.0, 1.0)), np.zeros(size)
    statistic = np.arange(1, size + 1) * 2.0**30
    source.add_noise(CHANNELS[name], 4.0, statistic, release)
    assert np.all((release * 2.0**10) % 1 == 0)
    assert np.all(np.abs(release - statistic) < 4.0 * 60)  # beyond it with probability e^-60
    # Equal with probability below 1e-3 per coordinate and draw.
    again = np.array([_once(source, name, statistic) for _ in range(4)])
    assert np.any(again != statistic)
    assert len({tuple(row) for row in again}) > 1


def _once(source, name, statistic):
    release = np.zeros(statistic.size)
    source.add_noise(CHANNELS[name], 4.0, statistic, release)
    return release


def test_nothing_is_added_in_an_open_channel_or_to_what_no_record_moves():
    source, release = SecureNoise(0.5, (0.0, 1.0)), np.zeros(2)
    source.add_noise(Open(), 0.0, np.array([0.3, 7.0]), release)
    assert release.tolist() == [0.3, 7.0]
    source.add_noise(Gaussian(1.0), 0.0, np.array([0.5, 7.0]), release)
    assert release.tolist() == [0.5, 7.0]


# The door ------------------------------------------------------------------------------------


@st.composite
def doors(draw):
    """A grid, and a range of 1.0 to 2**12 grid units whose ends are anywhere."""
    grid = 2.0 ** draw(st.integers(-40, 20))
    lo = draw(st.floats(-(2.0**20), 2.0**20)) * grid
    hi = lo + draw(st.floats(1.0, 2.0**12)) * grid
    try:
        return SecureNoise(grid, (lo, hi)), lo, hi
    except dpb.ArgumentError:  # less than two grid points
        assume(False)


@given(doors(), st.lists(st.floats(0, 1), min_size=2, max_size=2))
@example((SecureNoise(2.0, (5e-324, 4.0)), 5e-324, 4.0), [0.0, 1.0])
def test_rounding_at_the_door_costs_no_sensitivity(door, places):
    source, lo, hi = door
    grid = source.grid
    rewards = [min(max(lo + place * (hi - lo), lo), hi) for place in places]
    one, other = map(source.to_grid, rewards)
    for reward, rounded in zip(rewards, (one, other), strict=True):
        assert lo <= rounded <= hi
        assert (rounded / grid).is_integer()
        below = math.floor(reward / grid) * grid
        nearest = min(
            (m for m in (below, below + grid) if lo <= m <= hi), key=lambda m: abs(m - reward)
        )
        assert abs(Fraction(rounded) - Fraction(reward)) == abs(
            Fraction(nearest) - Fraction(reward)
        )
    # hi - lo in floating point is what policies declare.
    assert abs(Fraction(one) - Fraction(other)) <= Fraction(hi - lo)


@given(doors(), st.lists(st.floats(0, 1), min_size=1, max_size=40), st.data())
def test_a_sum_moves_by_at_most_the_sensitivity_whatever_the_order(door, places, data):
    source, lo, hi = door
    rewards = [source.to_grid(min(max(lo + place * (hi - lo), lo), hi)) for place in places]
    changed = list(rewards)
    changed[data.draw(st.integers(0, len(rewards) - 1))] = source.to_grid(
        data.draw(st.floats(lo, hi))
    )
    total, neighbour = sum(rewards), sum(reversed(changed))
    assert Fraction(total) == sum(map(Fraction, rewards))
    assert abs(Fraction(total) - Fraction(neighbour)) <= Fraction(hi - lo)


def test_a_range_whose_ends_are_off_the_grid():
    source = SecureNoise(2.0**-3, (0.1, 0.7))
    assert [source.to_grid(r) for r in (0.1, 0.18, 0.19, 0.3, 0.7)] == [
        0.125,
        0.125,
        0.25,
        0.25,
        0.625,
    ]


@pytest.mark.parametrize(
    "grid", [0.0, -0.5, 0.3, 3, 2.0**-401, 2.0**401, math.nan, math.inf, True, "fine", None]
)
def test_a_grid_that_is_no_power_of_two_in_range_is_refused(grid):
    with pytest.raises(dpb.ArgumentError, match="grid must be a power of two"):
        SecureNoise(grid, (0.0, 1.0))


@pytest.mark.parametrize(
    ("grid", "reward_range"), [(1.0, (0.1, 0.7)), (1.0, (0.1, 1.7)), (0.5, (0.2, 0.9)), (2, (0, 1))]
)
def test_a_range_with_less_than_two_grid_points_is_refused(grid, reward_range):
    with pytest.raises(dpb.ArgumentError, match="grid must be finer, such that at least two"):
        SecureNoise(grid, reward_range)


def test_rewards_too_large_for_exact_sums_are_refused():
    assert SecureNoise(2.0**-20, (0.0, 2.0**12)).most_records == 2**21 - 1
    with pytest.raises(dpb.ArgumentError, match="grid must be at least"):
        SecureNoise(2.0**-20, (-(2.0**12) - 1, 0.0))


@pytest.mark.parametrize("value", [0.3, 2.0**54, math.nan, math.inf])
def test_a_statistic_off_the_grid_is_never_released(value):
    release = np.zeros(2)
    with pytest.raises(dpb.DPBanditsError, match="not a sum of rewards on the grid"):
        SecureNoise(0.5, (0.0, 1.0)).add_noise(Laplace(1.0), 1.0, np.array([1.0, value]), release)
    assert release.tolist() == [0.0, 0.0]


# No less than claimed ------------------------------------------------------------------------

RANGES = st.sampled_from([(0.0, 1.0), (0.1, 0.7), (-3.3, 1e3 / 7)])


def mechanism_of(policy, monkeypatch):
    """The mechanism that a release of the policy goes through, and its scale."""
    seen = []
    build = secure._mechanism

    def spy(family, scale):
        seen.append((build(family, scale), scale))
        return seen[-1][0]

    with monkeypatch.context() as patch:
        patch.setattr(secure, "_mechanism", spy)
        lo, hi = policy.reward_range
        policy.noise_source.add_noise(
            policy.channel, policy.channel.scale(hi - lo), np.zeros(1), np.zeros(1)
        )
    return seen[0]


@given(rho=st.floats(1e-6, 1e3), reward_range=RANGES, power=st.integers(-24, -3))
def test_gaussian_noise_is_never_smaller_than_claimed(rho, reward_range, power):
    policy = dpb.papers.concentrated.AdaCUCB(
        2, budget=dpb.ZCDP(rho), reward_range=reward_range, noise="secure", grid=2.0**power
    )
    with pytest.MonkeyPatch.context() as patch:
        mechanism, scale = mechanism_of(policy, patch)
    width = Fraction(reward_range[1] - reward_range[0]) / Fraction(2) ** power
    claimed = max(width**2 / (2 * Fraction(rho)) + Fraction(1, 10), Fraction(1))
    assert claimed <= Fraction(scale) ** 2 <= claimed * (1 + Fraction(1, 10**12))
    assert mechanism.map(float(width)) <= rho  # OpenDP's own bound, rounded up


@given(epsilon=st.floats(1e-4, 30.0), reward_range=RANGES, power=st.integers(-24, -3))
def test_laplace_noise_is_never_smaller_than_claimed(epsilon, reward_range, power):
    source, grid = SecureNoise(2.0**power, reward_range), 2.0**power
    width, channel = reward_range[1] - reward_range[0], Laplace.calibrated(dpb.PureDP(epsilon))
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            secure, "_mechanism", lambda family, scale: seen.append(scale) or (lambda units: units)
        )
        source.add_noise(channel, channel.scale(width), np.zeros(1), np.zeros(1))
    assert Fraction(width) / Fraction(grid) <= Fraction(epsilon) * Fraction(seen[0])
    assert Fraction(epsilon) * Fraction(seen[0]) <= Fraction(width) / Fraction(grid) * (
        1 + Fraction(1, 10**12)
    )
    bound = int((source.to_grid(reward_range[1]) - source.to_grid(reward_range[0])) / grid)
    assert secure._mechanism(LAPLACE, seen[0]).map(bound) <= epsilon


@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-6])
def test_an_epsilon_delta_budget_costs_no_more_noise_than_in_simulations(delta):
    """From 64 steps in a standard deviation on at most 2 %; it is 13 millionths at 62."""
    budget = dpb.ApproxDP(1.0, delta)
    simulated = dpb.papers.concentrated.AdaCUCB(2, budget=budget)
    for grid in (None, 2.0**-12, 2.0**-6):
        safe = dpb.papers.concentrated.AdaCUCB(2, budget=budget, noise="secure", grid=grid)
        assert safe.meter == simulated.meter
        assert safe.channel == simulated.channel
        width = grids.in_steps(safe.channel.family, safe.channel.scale(1.0), safe.grid)
        assert 1.0 < width * safe.grid / simulated.noise_scale < 1.0 + 1.3e-5
        assert safe.noise_scale == pytest.approx(width * safe.grid, rel=1e-12)


# What it refuses -----------------------------------------------------------------------------


def test_there_is_no_seed():
    with pytest.raises(dpb.ArgumentError, match="seed must be None"):
        dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(1.0), noise="secure", seed=1)


def test_there_is_no_secure_noise_without_clipping():
    with pytest.raises(dpb.ArgumentError, match="clip must be True"):
        dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(1.0), noise="secure", clip=False)


def test_there_is_no_generator_for_noise():
    source = SecureNoise(0.5, (0.0, 1.0))
    assert source.generator("privacy") is source.generator("reports") is None
    assert source.exploration().random() != source.exploration().random()


def test_without_opendp_the_way_to_install_it_is_named(monkeypatch):
    secure._opendp.cache_clear()
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(dpb.errors.MissingExtra, match=r"pip install 'dpbandits\[secure\]'"):
        dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(1.0), noise="secure")


# End to end ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reward_range", [(0.0, 1.0), (0.1, 0.7), (-5.0, 3.3)])
def test_a_policy_releases_on_the_grid_once_per_episode(reward_range, monkeypatch):
    policy = dpb.papers.concentrated.AdaCUCB(
        3,
        budget=dpb.ZCDP(0.5),
        reward_range=reward_range,
        noise="secure",
        grid=2.0**-8,
        answers_within=2,
    )
    released = []
    add_noise = policy.noise_source.add_noise

    def watched(channel, scale, statistic, release, rng):
        add_noise(channel, scale, statistic, release, rng)
        assert scale == policy.channel.scale(policy.statistic.max_sensitivity)
        released.append(float(release[0]))

    monkeypatch.setattr(policy.noise_source, "add_noise", watched)
    rng = np.random.default_rng(0)
    for i in range(400):
        decision = policy.pull()
        if i % 7:  # the others are never answered: the default counts, rounded as well
            policy.update(rng.uniform(*reward_range), decision)
    assert len(released) >= 8
    assert policy.ledger.draws == policy.ledger.releases == len(released)
    assert all((value * 2.0**8).is_integer() for value in released)
    assert policy.ledger.total() == pytest.approx(0.5)


def test_an_open_channel_plays_as_in_simulation():
    policies = [
        dpb.papers.concentrated.AdaCUCB(3, budget=None, noise=noise)
        for noise in ("simulation", "secure")
    ]
    rewards = np.random.default_rng(1).integers(0, 2, size=(300, 3)).astype(float)
    arms = [[play(policy, row) for row in rewards] for policy in policies]
    assert arms[0] == arms[1]
    assert policies[1].ledger.draws == 0


def play(policy, row):
    decision = policy.pull()
    policy.update(row[decision], decision)
    return decision.arm


def play_on(policy, rounds):
    for _ in range(rounds):
        policy.update(0.5, policy.pull())


def test_a_release_over_more_records_than_sum_exactly_is_refused_and_the_policy_serves_on():
    policy = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(0.5), noise="secure")
    policy.session.gate.most_records = 2
    with pytest.raises(dpb.ArgumentError, match="grid must be coarser than"):
        play_on(policy, 50)
    lines = len(policy.ledger)
    # two episodes of two rounds fold into a line
    assert max(policy.ledger.frame["last"] - policy.ledger.frame["first"] + 1) <= 4
    assert not policy.pull().recorded
    assert len(policy.ledger) == lines


def test_the_guarantee_speaks_of_timing_and_not_of_simulation():
    guarantee = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(0.5), noise="secure").guarantee
    assert "timing" in str(guarantee)
    assert "SIMULATION" not in str(guarantee)
    assert guarantee.simulated is False


def test_noise_drawn_ahead_is_given_out_once_and_never_copied():
    """With a scale of 2**40 grid units, two equal draws among 400 would be a replay."""
    import copy
    import pickle

    source, channel = SecureNoise(2.0**-20, (0.0, 1.0)), Laplace(2.0**20)
    release = np.empty(1)

    def draw(noise):
        noise.add_noise(channel, 2.0**20, np.zeros(1), release)
        return float(release[0])

    seen = [draw(source)]
    copies = [source, pickle.loads(pickle.dumps(source)), copy.deepcopy(source), copy.copy(source)]
    seen += [draw(noise) for noise in copies for _ in range(100)]
    assert len(set(seen)) == len(seen)


def test_a_forked_process_does_not_give_out_its_parents_noise():
    source, channel = SecureNoise(2.0**-20, (0.0, 1.0)), Laplace(2.0**20)
    release = np.empty(40)
    source.add_noise(channel, 2.0**20, np.zeros(40), release)  # leaves some drawn ahead
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        source.add_noise(channel, 2.0**20, np.zeros(40), release)
        os.write(write, release.tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(read, 320))
    source.add_noise(channel, 2.0**20, np.zeros(40), release)
    assert not set(theirs) & set(release)


@pytest.mark.parametrize(
    ("kind", "budget"),
    [
        (dpb.papers.concentrated.AdaPUCB, dpb.PureDP(1e-14)),
        (dpb.papers.concentrated.AdaCUCB, dpb.ZCDP(1e-40)),
    ],
)
def test_noise_that_would_end_at_64_bits_is_refused(kind, budget):
    # OpenDP's integers saturate: noise of +-2^63, nearly always, would show the sum.
    with pytest.raises(dpb.ArgumentError, match=r"^grid must be coarser"):
        kind(2, budget=budget, noise="secure")
    source, release = SecureNoise(2.0**-20, (0.0, 1.0)), np.zeros(1)
    with pytest.raises(dpb.ArgumentError, match=r"^grid must be coarser"):
        source.add_noise(Laplace(1.0), 1e12, np.zeros(1), release)
    assert release[0] == 0.0


@pytest.mark.parametrize("horizon", [4, None])
def test_noise_whose_sum_would_end_at_64_bits_is_refused(horizon):
    # 2^30 noises of 2^50 units each add up to some 2^65.
    running = secure_sum.SecureSum(Independent(horizon), 1, 2.0**-20, secure.Sampler())
    widest = 2.0**50 / math.sqrt(horizon or 2**30) * 2.0**-20
    state = running.start()
    running.refuse_wide_noise(Gaussian(1.0), widest)
    with pytest.raises(dpb.ArgumentError, match=r"^grid must be coarser.* fit into 64 bits"):
        running.refuse_wide_noise(Gaussian(1.0), widest * 1.01)
    with pytest.raises(dpb.ArgumentError, match=r"^grid must be coarser"):
        running.add(state, np.zeros(1), Gaussian(1.0), widest * 1.01)
    assert state.clock[0] == 0
    with pytest.raises(dpb.ArgumentError, match=r"^grid must be coarser"):
        ContinualSum(
            Independent(horizon),
            dpb.ZCDP(0.5),
            sensitivity=widest * 1.01,
            noise="secure",
            grid=2.0**-20,
        )


def test_representations_show_no_sums():
    exact, simulated = (
        secure_sum.SecureSum(BinaryTree(4), 1, 1.0, secure.Sampler()),
        BinaryTree(4).start(1),
    )
    state = exact.start()
    exact.add(state, np.array([123457.0]), Open(), 1.0)
    simulated.total[0] = 123457.0
    for held in (state, simulated):
        assert 123457.0 in np.concatenate([np.ravel(part) for part in held])
        assert "12345" not in f"{held!r} {held}"
        assert "contents not shown" in repr(held)


def test_an_increment_that_is_scaled_to_the_bound_stays_within_it():
    """On the grid, in exact arithmetic: sqrt(13) rounds to less than the length of (2, 3)."""
    step = 2.0**-10
    bound = math.sqrt(13.0) * step
    total = ContinualSum(
        BinaryTree(10),
        dpb.ZCDP(0.5),
        sensitivity=2 * bound,
        shape=(2,),
        bound=bound,
        noise="secure",
    )
    for x in ([2.0, 3.0], [20.0, 30.0], [2 * step, 3 * step]):
        squares = [Fraction(float(entry)) ** 2 for entry in total._checked(x)]
        assert sum(squares) <= Fraction(bound) ** 2


def test_noise_that_is_ready_is_given_out_once(monkeypatch):
    drawn = iter(range(10**6))
    monkeypatch.setattr(secure, "_mechanism", lambda *_: lambda zeros: [next(drawn) for _ in zeros])
    source = secure.Sampler()
    drawn_by_call = [source._draw(1, 2.0, count) for count in (1, 25, 0, 3, 500, 120, 7)]
    assert [len(one) for one in drawn_by_call] == [1, 25, 0, 3, 500, 120, 7]
    every = [value for one in drawn_by_call for value in one]
    assert len(set(every)) == len(every)


def test_secure_noise_imports_no_more_of_opendp_than_it_needs():
    code = (
        "import dpbandits.privacy.secure as s, sys; s.Sampler(); sys.exit('sklearn' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
