"""What discrete Gaussian noise hides: the theorem of ``privacy.discrete``, against exact laws."""

import itertools
import math
import shutil
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri_exp

import dpbandits as dpb
from dpbandits.environments import Delay
from dpbandits.environments import Gaussian as NormalArms
from dpbandits.kernel import entry
from dpbandits.privacy import grids
from dpbandits.privacy.accounting import gaussian_delta
from dpbandits.privacy.continual import mechanism_from_python
from dpbandits.privacy.discrete import (
    hidden,
    longest_step,
    raised,
    simulated_gaussian,
    simulated_laplace,
)

STATES = Path(__file__).parent / "states"
ALPHA = 1e-4


def law(s, reach=None):
    """The integers -reach, ..., reach and their probabilities."""
    k = np.arange(-(reach or math.ceil(14 * s)), (reach or math.ceil(14 * s)) + 1)
    weight = np.exp(-0.5 * (k / s) ** 2)
    return k, weight / weight.sum()


# The steps of z ------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [1.0, 1.01, 1.1, 1.25, 1.5, 2.0, 2.7, 5.5, 16.0, 100.0])
def test_no_step_is_longer_than_the_theorem_says(s):
    """As far out as floats go, in the logarithm; with 1/13 in the place of 1/10 some step is."""
    k = np.arange(-math.ceil(36 * s) - 2, math.ceil(36 * s) + 3)
    log_tails = np.logaddexp.accumulate(-0.5 * (k[::-1] / s) ** 2)[::-1]
    z = -ndtri_exp((log_tails - log_tails[0])[k >= 1])  # z(0), z(1), ...
    longest = max(2 * z[0], np.diff(z)[: math.ceil(30 * s)].max())  # sums end 6 s farther out
    assert longest <= 1 / hidden(s) < 1.06 / s
    assert longest > 1 / math.sqrt(s * s - 1 / 13)


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628621")


def density(x):
    return (-x * x / 2).exp() / (2 * PI).sqrt()


def normal_tail(x):
    term = total = x
    n = 1
    while abs(term) > Decimal(10) ** -60:
        n += 2
        term = term * x * x / n
        total += term
    return Decimal("0.5") - density(x) * total


def discrete_tail(t, s):
    """P(X > t) by the rule of Euler and Maclaurin; what it leaves out is of order s^-8."""
    y = (t + Decimal("0.5")) / s
    corrections = (
        -y / (24 * s**2)
        + 7 * (y**3 - 3 * y) / (5760 * s**4)
        - 31 * (y**5 - 10 * y**3 + 15 * y) / (967680 * s**6)
    )
    return normal_tail(y) + corrections * density(y)


def quantile(tail, x):
    for _ in range(8):
        x += (normal_tail(x) - tail) / density(x)
    return x


@pytest.mark.parametrize("s", [2**10, 2**17, 10**6 + 1, 2**30])
def test_steps_of_wide_noise_in_eighty_digits(s):
    with localcontext() as context:
        context.prec = 80
        width = Decimal(s)
        for x in (0, 1, 2, 4, 6):
            t = Decimal(int(x * s) + 1)
            first, second = (quantile(discrete_tail(u, width), u / width) for u in (t - 1, t))
            square = 1 / (second - first) ** 2
            assert width**2 - Decimal("0.1") <= square
            assert square < width**2 - Decimal(1) / 13
            assert abs(square - width**2 + Decimal(1) / 12) < Decimal("0.001")


def test_the_rule_for_wide_noise_agrees_with_sums():
    k, p = law(20.0)
    for t in (0, 10, 40, 80):
        exact = math.fsum(p[k > t])
        assert float(discrete_tail(Decimal(t), Decimal(20))) == pytest.approx(exact, rel=1e-12)


# Deltas --------------------------------------------------------------------------------------


def exact_delta(widths, shifts, epsilon):
    """Of independent discrete Gaussian noise on coordinates that move by the shifts: all outcomes
    are added up.
    """
    with_record, without = np.ones(1), np.ones(1)
    for s, shift in zip(widths, shifts, strict=True):
        k, p = law(s, math.ceil(9 * s) + abs(shift))
        _, moved = k, np.exp(-0.5 * ((k - shift) / s) ** 2)
        moved *= p[k == 0][0]
        with_record, without = np.outer(with_record, moved).ravel(), np.outer(without, p).ravel()
    return float(np.maximum(with_record - math.exp(epsilon) * without, 0.0).sum())


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0])
@pytest.mark.parametrize(
    ("widths", "shifts"),
    [
        ((1.0,), (1,)),
        ((1.0,), (2,)),
        ((1.3,), (-1,)),
        ((2.0,), (3,)),
        ((5.5,), (4,)),
        ((64.0,), (64,)),
        ((1000.5,), (700,)),
        ((1.0, 1.0), (1, 1)),
        ((2.5, 2.5), (3, -4)),
        ((9.0, 9.0), (4, 4)),
        ((3.0, 8.0), (2, 7)),  # two releases with noise of their own
        ((2.0, 2.0, 2.0), (1, 1, 1)),
    ],
)
def test_exact_deltas_are_no_larger_and_hardly_less(epsilon, widths, shifts):
    mu = math.sqrt(sum((v / hidden(s)) ** 2 for s, v in zip(widths, shifts, strict=True)))
    exact, bound = exact_delta(widths, shifts, epsilon), gaussian_delta(epsilon, mu)
    assert exact <= bound
    assert exact > gaussian_delta(epsilon, 0.85 * mu)
    if min(widths) >= 5.0:
        assert exact > 0.97 * bound


@pytest.mark.parametrize(("s", "shift"), [(1.0, 1), (1.3, 2), (2.0, 2)])
def test_without_what_is_added_it_would_hide_less(s, shift):
    """At some epsilon deltas are above those of Gaussian noise of that width."""
    over = [
        exact_delta([s], [shift], epsilon) / gaussian_delta(epsilon, shift / s)
        for epsilon in np.linspace(0.0, 4.0, 401)
    ]
    assert max(over) > 1.02


def test_raised_and_hidden_are_inverse():
    for steps in (1.0, 3.7, 64.0, 4096.0):
        assert hidden(raised(steps)) == pytest.approx(steps, rel=1e-14)
        assert hidden(raised(steps) * grids.UP) >= steps
    assert raised(0.3) == 1.0
    with pytest.raises(dpb.ArgumentError, match="parameter must be"):
        hidden(0.99)


# Simulations draw the law of secure noise -----------------------------------------------------


@entry
def _gaussians(parameter, drawn, rng):
    for i in range(drawn.size):
        drawn[i] = simulated_gaussian(parameter, rng)


@entry
def _laplaces(scale, drawn, rng):
    for i in range(drawn.size):
        drawn[i] = simulated_laplace(scale, rng)


def p_value(sample, k, p):
    """Chi-square, with cells of at least 20 expected draws."""
    edge = int(np.max(k[np.array([p[k >= i].sum() for i in k]) * sample.size >= 20]))
    cells = np.clip(sample, -edge, edge).astype(int) + edge
    expected = np.bincount(np.clip(k, -edge, edge) + edge, weights=p, minlength=2 * edge + 1)
    observed = np.bincount(cells, minlength=2 * edge + 1)
    return stats.chisquare(observed, expected / expected.sum() * sample.size).pvalue


@pytest.mark.parametrize("s", [1.0, 2.0, 7.5])
def test_simulated_gaussian_integers_have_the_exact_law(s):
    """Of 10^5 draws; a width that is 3 % off, or at 1 rounded without the 1/12, is seen."""
    drawn = np.empty(100_000)
    _gaussians(s, drawn, np.random.default_rng(1))
    assert p_value(drawn, *law(s)) > ALPHA
    assert p_value(drawn, *law(1.03 * s)) < ALPHA
    assert p_value(drawn, *law(0.97 * s)) < ALPHA
    if s == 1.0:
        plain = np.rint(s * np.random.default_rng(1).standard_normal(drawn.size))
        assert p_value(plain, *law(s)) < ALPHA


@pytest.mark.parametrize("s", [1.0, 2.0, 7.5])
def test_rounded_normal_variables_are_that_near(s):
    k, p = law(s)
    std = math.sqrt(s * s - 1 / 12)
    rounded = stats.norm.cdf((k + 0.5) / std) - stats.norm.cdf((k - 0.5) / std)
    assert 0.5 * np.abs(p - rounded).sum() < {1.0: 6e-4, 2.0: 4e-5, 7.5: 2e-6}[s]


@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_simulated_laplace_integers_have_the_exact_law(scale):
    drawn, k = np.empty(100_000), np.arange(-200, 201)
    _laplaces(scale, drawn, np.random.default_rng(2))

    def exact(b):
        return np.tanh(0.5 / b) * np.exp(-np.abs(k) / b)

    assert p_value(drawn, k, exact(scale)) > ALPHA
    for off in (0.96, 1.04):
        assert p_value(drawn, k, exact(off * scale)) < ALPHA


@pytest.mark.parametrize("budget", [dpb.ApproxDP(1.0, 1e-3), dpb.ZCDP(0.5)])
def test_what_a_simulation_adds_is_the_noise_of_the_secure_policy(budget):
    policy = dpb.papers.concentrated.AdaCUCB(2, budget=budget, noise="secure", grid=0.5)
    wall, drawn = policy.new_state().wall, np.empty(40_000)
    release, rng = mechanism_from_python(wall.running.kind), np.random.default_rng(3)
    sides = (wall.running, wall.family, wall.multiplier, np.zeros(drawn.size), drawn)
    release(*sides, rng)
    safe = np.empty(40_000)
    scale = policy.channel.scale(1.0)
    policy.noise_source.add_noise(policy.channel, scale, np.zeros(safe.size), safe, None)
    k, p = law(policy.noise_scale / 0.5)
    assert p_value(drawn / 0.5, k, p) > ALPHA
    assert p_value(safe / 0.5, k, p) > 1e-8  # there is no seed
    for off in (0.97, 1.03):
        assert p_value(drawn / 0.5, *law(off * policy.noise_scale / 0.5)) < ALPHA


def test_running_sums_are_simulated_in_the_steps_of_their_rows():
    shape = {"horizon": 50, "budget": dpb.ApproxDP(1.0, 1e-3), "counter": "toeplitz"}
    safe = dpb.algorithms.LinUCBJDP(2, 2, noise="secure", grid=0.25, batch=10, **shape)
    assert safe.new_state().wall.running.grid == 0.25 / 2**10
    assert dpb.algorithms.LinUCBJDP(2, 2, batch=10, **shape).new_state().wall.running.grid == 0.0


def test_rewards_are_rounded_in_simulations_on_coarse_grids():
    world = NormalArms([0.3, 0.6], std=0.2)
    policies = [
        dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(0.5), noise=noise, grid=0.25)
        for noise in ("secure", "simulation")
    ]
    found = dpb.simulate(policies, world, horizon=200, runs=2, seed=1)
    rewards = found.runs["reward"].to_numpy() * 4 % 1 == 0
    assert rewards[:2].all()
    assert not rewards[2:].any()


def test_late_answers_are_simulated_with_that_noise_and_on_that_grid():
    policy = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(0.5), noise="secure", grid=0.25)
    played = policy.simulated(None, np.random.default_rng(4))
    for _ in range(60):
        played.update(0.3, played.pull())
    wall = played.session.state.wall
    assert played.ledger.releases > 4
    assert wall.running.grid == 0.25
    assert wall.release[0] * 4 % 1 == 0
    again = policy.simulated(None, np.random.default_rng(4))
    for _ in range(60):
        again.update(0.3, again.pull())
    assert again.session.state.wall.release.tolist() == wall.release.tolist()  # from the seed
    delayed = NormalArms([0.3, 0.6], std=0.2).delayed(Delay("fixed", 3))
    twice = [dpb.simulate(policy, delayed, horizon=90, runs=2, seed=1).runs for _ in range(2)]
    assert twice[0].equals(twice[1])


# Saved under zCDP -----------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "claims"))
    return lambda name: shutil.copy(STATES / f"{name}.dpb", tmp_path / name)


@pytest.mark.parametrize(("name", "releases"), [("merged", 13), ("coarse", 13), ("linear", 300)])
def test_states_of_the_version_before_go_on(name, releases, saved):
    """They were calibrated in zCDP, with 1.13 times the noise.  No line may cost less than noise
    of today does, and none more than the budget.
    """
    path = saved(name)
    before = dpb.inspect(path)
    policy = dpb.load(path)
    budget = dpb.ApproxDP(1.0, 1e-3)
    assert policy.budget == budget
    assert before.ledger.releases == policy.ledger.releases == releases
    assert before.ledger.spent() == policy.ledger.spent() == budget
    assert (policy.ledger.frame["multiplier"] == policy.channel.multiplier).all()
    assert policy.grid == (0.5 if name == "coarse" else 2.0**-20)
    contexts = (np.full((3, 2), 0.5),) if name == "linear" else ()
    for _ in range(90 if name == "linear" else 500):
        policy.update(1.0, policy.pull(*contexts))
    assert policy.ledger.releases > releases
    assert policy.ledger.spent() == budget


@pytest.mark.parametrize("grid", [2.0**-20, 0.25, 1.0])
def test_older_noise_is_charged_for_what_it_hides(grid, tmp_path, monkeypatch):
    """With published constants its multiplier is that of today, and less was drawn for it."""
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "claims"))
    kind = {"budget": dpb.ApproxDP(5.0, 0.01), "calibration": "paper", "noise": "secure"}
    policy = dpb.papers.concentrated.AdaCUCB(2, grid=grid, **kind)
    path = Path(shutil.copy(STATES / f"paper-{grid!r}.dpb", tmp_path / "now"))
    old, multiplier = dpb.inspect(path).ledger, policy.channel.multiplier
    delta, steps = policy.effective_budget.delta, multiplier / grid
    if steps < 1.0:  # 0.62
        expected = multiplier / (steps * longest_step(steps))
        assert old.frame["multiplier"].to_numpy() == pytest.approx(expected, rel=1e-12)
        assert old.spent().epsilon > dpb.ZCDP(0.5 / multiplier**2).to_approx(delta).epsilon > 5.0
    else:
        expected = multiplier * math.sqrt(1.0 - 0.1 / steps**2)
        assert old.frame["multiplier"].to_numpy() == pytest.approx(expected, rel=1e-13)
        assert old.total() == pytest.approx(expected**-2, rel=1e-12)
    again = dpb.load(path)
    assert again.ledger.total() == old.total()
    assert dpb.inspect(again.save(path)).ledger.total() == old.total()  # and not once more


@pytest.mark.parametrize("s", [0.1, 0.3, 0.5, 0.8, 0.999])
def test_the_longest_step_of_narrow_noise_is_no_shorter_than_any(s):
    weights = [math.exp(-0.5 * (k / s) ** 2) for k in range(40)]
    whole = weights[0] + 2 * math.fsum(weights[1:])

    def quantile(tail: float) -> float:
        low, high = 0.0, 40.0
        while high - low > 1e-12:
            middle = (low + high) / 2
            low, high = (low, middle) if math.erfc(middle / 2**0.5) / 2 < tail else (middle, high)
        return low

    tails = [math.fsum(weights[t + 1 :]) / whole for t in range(8)]
    z = [quantile(tail) for tail in tails if tail > 1e-290]
    steps = [2 * z[0], *(b - a for a, b in itertools.pairwise(z))]
    assert max(*steps, 1 / s) <= longest_step(s) + 1e-9
    assert longest_step(s) <= max(*steps, 1 / s) * (1 + 1e-6)


def test_a_simulation_of_a_secure_policy_says_so_and_is_not_saved(tmp_path):
    policy = dpb.algorithms.MergedIMED(2, budget=dpb.ZCDP(0.5), noise="secure")
    twin = policy.simulated(None, np.random.default_rng(1))
    assert twin.guarantee.simulated
    assert "SIMULATION" in str(twin.guarantee)
    with pytest.raises(dpb.ClaimError, match="simulation"):
        twin.save(tmp_path / "twin.dpb")
    assert not list(tmp_path.iterdir())


def test_older_noise_is_remembered_and_charged_once(tmp_path, monkeypatch):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "claims"))
    path = tmp_path / "merged.dpb"
    shutil.copy(Path(__file__).parent / "states" / "merged.dpb", path)
    policy = dpb.load(path)
    assert policy.session.older_noise
    spent = policy.ledger.total()
    policy.save(path)
    again = dpb.load(path)
    assert again.session.older_noise
    assert again.ledger.total() == spent


def test_a_default_grid_that_is_too_coarse_for_features_is_refused():
    made = {"budget": dpb.ZCDP(0.5), "noise": "secure"}
    with pytest.raises(dpb.ArgumentError, match="reward_range must be narrower"):
        dpb.algorithms.LDPSGD(2, 3, reward_range=(0.0, 1e9), **made)


def test_a_default_grid_follows_features_as_well():
    made = {"budget": dpb.ZCDP(0.5), "noise": "secure"}
    assert dpb.algorithms.LDPSGD(2, 3, reward_range=(0.0, 1e6), **made).grid == 2.0**-12
    assert dpb.algorithms.LDPSGD(2, 3, **made).grid == 2.0**-20
    joint = {**made, "horizon": 100}
    assert dpb.algorithms.LinUCBJDP(2, 3, context_bound=0.5, **joint).grid == 2.0**-22
    assert dpb.algorithms.LinUCBJDP(2, 3, **joint).grid == 2.0**-20
