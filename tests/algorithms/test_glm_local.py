"""Locally private generalised linear bandits: what devices send, and what servers make of it."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats
from sides import tireless

import dpbandits as dpb
from dpbandits import ZCDP, ApproxDP, ArgumentError, PureDP
from dpbandits.algorithms import LDPSGD
from dpbandits.algorithms.hidden.model import joint_sensitivity
from dpbandits.environments import ContextTable
from dpbandits.glm import link_of
from dpbandits.papers.others.gloc import LDPGLOC, published_sensitivity
from dpbandits.papers.others.gloc import look_with as look_at_record
from dpbandits.privacy import Hemisphere, accounting
from dpbandits.privacy.exact import hemisphere

ALPHA = 1e-4
FROM = {"public.estimate", "public.point"}
X = np.array([[0.6, 0.8], [1.0, 0.0]])


def sgd(**options) -> LDPSGD:
    return LDPSGD(2, 2, **{"budget": PureDP(1.0), "reports": True, "seed": 1} | options)


def gloc(**options) -> LDPGLOC:
    given = {"budget": ZCDP(0.5), "horizon": 4000, "reports": True, "seed": 1} | options
    return LDPGLOC(2, 2, **given)


# The l2-ball randomiser ------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3, 4, 10, 50])
def test_the_radius_undoes_what_half_spheres_shrink(d: int):
    """The first coordinate of a uniform direction has a density in proportion to (1 - u^2)^((d - 3)
    / 2); with u = sin(a), to cos(a)^(d - 2) da.
    """
    mass = integrate.quad(lambda a: np.cos(a) ** (d - 2), 0, np.pi / 2)[0]
    along = integrate.quad(lambda a: np.sin(a) * np.cos(a) ** (d - 2), 0, np.pi / 2)[0] / mass
    for epsilon in (0.1, 1.0, 8.0):
        kept = np.exp(epsilon) / (1 + np.exp(epsilon))
        assert Hemisphere(1 / epsilon).radius(d) * (2 * kept - 1) * along == pytest.approx(1.0)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_what_is_released_is_unbiased_and_always_as_long(d: int):
    rng, channel = np.random.default_rng(1), Hemisphere(1.0)
    vector = np.arange(1.0, d + 1) / (1.5 * np.linalg.norm(np.arange(1.0, d + 1)))
    seen = np.array([channel.release(vector, 2.0, rng) for _ in range(20_000)])
    assert np.linalg.norm(seen, axis=1) == pytest.approx(channel.radius(d))
    error = (seen.mean(axis=0) - vector) / (seen.std(axis=0) / np.sqrt(len(seen)))
    assert np.abs(error).max() < 5


def odds_of_the_same_side(release, vector: np.ndarray, n: int) -> tuple[float, float]:
    """Confidence bounds on the odds that a release has a positive product with the vector."""
    hits = sum(float(release(vector) @ vector) > 0 for _ in range(n))
    low, high = (
        stats.beta.ppf(ALPHA, hits, n - hits + 1),
        stats.beta.isf(ALPHA, hits + 1, n - hits),
    )
    return low / (1 - low), high / (1 - high)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("length", [1.0, 100.0])
def test_densities_have_a_quotient_of_e_to_the_epsilon_and_no_more(d: int, length: float):
    """The half sphere of v is the event that tells v from -v best.  Vectors that are too long show
    no more.
    """
    rng, channel = np.random.default_rng(2), Hemisphere(1 / 1.5)
    vector = length * np.eye(d)[0]
    low, high = odds_of_the_same_side(lambda v: channel.release(v, 2.0, rng), vector, 20_000)
    assert low < np.exp(1.5) < high
    assert high / low < 1.2


def test_integers_have_the_law_of_half_spheres():
    rng = np.random.default_rng(3)
    source, vector = np.random.default_rng(4).bytes, np.array([0.3, -0.4, 0.5])

    def exactly(v: np.ndarray) -> np.ndarray:
        drawn = np.array(hemisphere(v.tolist(), Fraction(3, 2), source), float)
        return drawn / np.linalg.norm(drawn)

    ours = np.array([exactly(vector) for _ in range(900)])
    theirs = np.array([Hemisphere(1 / 1.5).release(vector, 2.0, rng) for _ in range(6000)])
    theirs /= Hemisphere(1 / 1.5).radius(3)
    for direction in (vector, np.array([1.0, 2.0, -1.0])):
        assert stats.ks_2samp(ours @ direction, theirs @ direction).pvalue > ALPHA
    low, high = odds_of_the_same_side(exactly, np.array([0.0, 9.0, 0.0]), 900)
    assert low < np.exp(1.5) < high


def test_a_vector_of_nothing_goes_to_both_sides():
    source, rng = np.random.default_rng(5).bytes, np.random.default_rng(6)
    exact = [hemisphere([0.0], Fraction(5), source)[0] > 0 for _ in range(400)]
    drawn = [Hemisphere(0.2).release(np.zeros(1), 2.0, rng)[0] > 0 for _ in range(400)]
    assert 140 < sum(exact) < 260
    assert 140 < sum(drawn) < 260


# What a record can do to a report --------------------------------------------------------------


def test_the_published_report_moves_as_far_as_is_declared_and_no_farther():
    """Ascent from random records and points, by turns in one variable."""
    rng = np.random.default_rng(7)
    for residual, length, parameter in [(1.0, 1.0, 1.0), (0.7, 1.0, 3.0), (2.0, 0.5, 1.0)]:

        def report(v, residual=residual, length=length, parameter=parameter) -> float:
            p = parameter * np.array([np.cos(v[0]), np.sin(v[0])])
            rows = []
            for angle, size, r in (v[1:4], v[4:7]):
                x = length * abs(np.sin(size)) * np.array([np.cos(angle), np.sin(angle)])
                m = np.outer(x, x)
                rows.append(np.concatenate([residual * np.sin(r) * x, m.ravel(), m @ p]))
            return float(np.linalg.norm(rows[0] - rows[1]))

        best = 0.0
        for _ in range(12):
            v, found = rng.uniform(0, 2 * np.pi, 7), 0.0
            for _ in range(600):
                other = v + rng.standard_normal(7) * rng.choice([1.0, 0.1, 0.01])
                if (moved := report(other)) > found:
                    v, found = other, moved
            best = max(best, found)
        most = published_sensitivity(residual, length, parameter)
        assert 0.8 * most < best <= most * (1 + 1e-12)


@pytest.mark.parametrize("published", [False, True])
def test_reports_move_by_at_most_the_sensitivity_wherever_they_are_looked_at_from(published: bool):
    budget = ApproxDP(1.0, 0.1)
    policy = gloc(budget=budget, parameter_bound=2.0, calibration="paper" if published else "exact")
    rng, params, farthest = np.random.default_rng(8), policy.params, 0.0
    look, size = look_at_record(link_of("logistic")), policy.statistic.size
    assert size == (7 if published else 5)
    for _ in range(4000):
        p = rng.standard_normal(2)
        p *= 2.0 * rng.choice([1.0, rng.random()]) / np.linalg.norm(p)
        reports = np.zeros((2, size))
        for report in reports:
            x = rng.standard_normal(2)
            look(params, p, x / np.linalg.norm(x), float(rng.integers(0, 2)), report)
        farthest = max(farthest, float(np.linalg.norm(reports[0] - reports[1])))
    assert 0.7 * policy.statistic.max_sensitivity < farthest <= policy.statistic.max_sensitivity
    whatever = joint_sensitivity(1 / (1 + np.exp(-2.0)), 1.0)  # for any link
    assert published or policy.statistic.max_sensitivity < 0.95 * whatever


def exact_reports(server, people: list[tuple[np.ndarray, float]]) -> np.ndarray:
    """What devices would send, were it not randomised."""
    found = []
    for x, reward in people:
        device = server.device()
        device._randomise = np.copy
        device.choose(np.array([x, x]))
        found.append(device.report(reward))
    return np.array(found)


def test_a_gradient_stays_within_its_bound():
    rng = np.random.default_rng(9)
    for options in ({}, {"gradient_bound": 0.1}, {"link": "identity", "parameter_bound": 5.0}):
        people = [(3 * rng.standard_normal(2), 9 * rng.standard_normal()) for _ in range(100)]
        assert np.linalg.norm(exact_reports(sgd(**options), people), axis=1).max() <= 1.0
    one, other = exact_reports(
        sgd(gradient_bound=0.1), [(np.array([50.0, 0]), 7.0), (np.array([1.0, 0]), -7.0)]
    )
    assert np.linalg.norm(one - other) == pytest.approx(2.0)
    assert sgd().gradient_bound == pytest.approx(1 / (1 + np.exp(-1.0)))


def lying(server, point: list[float]):
    """A device with the chooser of somebody who says that this is the point."""
    data = json.loads(server.chooser().to_json())
    data["public"] |= dict.fromkeys(data["public"].keys() & FROM, point)
    device = tireless(server.device())
    device.use(json.dumps(data))
    return device


@pytest.mark.parametrize("make", [sgd, gloc])
@pytest.mark.parametrize("point", [[math.nan, 1e308], [math.inf, -math.inf], [1e99, 1e99]])
@pytest.mark.long
def test_no_point_makes_a_report_tell_more(make, point):
    """Zero times infinity would be no number, and no noise hides that."""
    server = make()
    for x in ([0.0, 1.0], [1.0, 0.0], [0.0, 0.0]):
        device = lying(server, point)
        device._randomise = np.copy
        device.choose(np.array([x, x]))
        report = device.report(1.0)
        assert np.isfinite(report).all()
        assert np.linalg.norm(report) <= server.statistic.max_sensitivity


@pytest.mark.parametrize("make", [sgd, gloc])
def test_a_device_takes_no_other_policys_chooser(make):
    with pytest.raises(ArgumentError, match=r"^chooser must come from the policy"):
        make().device().use(make(link="probit").chooser())
    data = json.loads(make().chooser().to_json())
    data["arguments"]["context_bound"] = 2.0
    with pytest.raises(ArgumentError, match=r"^chooser must come from the policy"):
        make().device().use(json.dumps(data))


# Devices and servers ---------------------------------------------------------------------------


def test_messages_show_what_epsilon_allows():
    """The most different gradients that there are at the first point, seen by whoever gets reports."""
    device = tireless(sgd(gradient_bound=0.5, budget=PureDP(1.5)).device())
    found = {}
    for reward in (0.0, 1.0):
        up = 0
        for _ in range(2500):
            device.choose(X[[1, 1]])
            up += device.report(reward)[0] > 0
        found[reward] = up / 2500
    loss = [np.log(found[0.0] / found[1.0]), np.log((1 - found[1.0]) / (1 - found[0.0]))]
    assert max(loss) == pytest.approx(1.5, abs=0.25)


@pytest.mark.parametrize("make", [sgd, gloc])
@pytest.mark.parametrize("d", [1, 3])
def test_devices_and_the_simulated_policy_are_one_algorithm(make, d: int):
    """Under hardly any noise arm by arm, and number by number."""
    rng = np.random.default_rng(10)
    contexts = rng.standard_normal((80, 2, d))
    rewards = (rng.random((80, 2)) < 0.5).astype(float)
    given = {"budget": ZCDP(1e13), "batch": 4, "seed": 1}
    given |= {} if make is sgd else {"horizon": 80}
    cls = LDPSGD if make is sgd else LDPGLOC
    alone, server = cls(2, d, **given), cls(2, d, reports=True, **given)
    device = tireless(server.device())
    for x, r in zip(contexts, rewards, strict=True):
        arm = alone.pull(x).arm
        alone.update(r[arm])
        device.use(server.chooser().to_json())
        assert device.choose(x) == arm
        assert server.receive(device.report(r[arm]))
        assert server.estimates.coefficients == pytest.approx(
            alone.estimates.coefficients, abs=1e-3
        )
    assert np.abs(alone.estimates.coefficients).max() > 0.01


@pytest.mark.long
@pytest.mark.parametrize("cls", [LDPSGD, LDPGLOC])
def test_devices_play_the_game_of_the_loops(cls):
    rng = np.random.default_rng(5)
    contexts = rng.normal(size=(60, 4, 2)) / 2
    means = 1 / (1 + np.exp(-4 * contexts[..., 0]))
    rewards = (rng.random((60, 4)) < means).astype(float)
    given = {"budget": PureDP(4.0)} if cls is LDPSGD else {"budget": ZCDP(50.0), "horizon": 60}

    def reported(seed: int) -> float:
        server = cls(4, 2, **given, reports=True, seed=seed)
        device, arms = tireless(server.device()), []
        for x, r in zip(contexts, rewards, strict=True):
            device.use(server.chooser())
            arms.append(device.choose(x))
            server.receive(device.report(r[arms[-1]]))
        return float((means.max(axis=1) - means[np.arange(60), arms]).sum())

    runs = dpb.simulate(
        cls(4, 2, **given),
        ContextTable(contexts, rewards, means),
        horizon=60,
        runs=500,
        seed=5,
        record=[60],
    ).runs
    ours = [reported(seed) for seed in range(100)]
    assert stats.ks_2samp(ours, runs["regret"].to_numpy()).pvalue > ALPHA


@pytest.mark.parametrize("make", [sgd, gloc])
def test_a_device_forgets_and_always_has_something_to_send(make):
    server = make(default_reward=0.25)
    device = pickle.loads(pickle.dumps(tireless(server.device())))
    assert server.receive(device.report())  # before any choice
    device.choose(np.full((2, 2), np.nan))  # counts as 0, and is not told
    assert server.receive(device.report(np.inf))
    device.choose(X)
    assert server.receive(device.report(-7.0))
    assert device._features is None
    with pytest.raises(ArgumentError, match=r"JavaScript" if make is gloc else r"^noise must be"):
        device.to_json()
    with pytest.raises(ArgumentError, match=r"^budget must not be None"):
        make(budget=None).device()
    with pytest.raises(ArgumentError, match=r"^reports must be False"):
        server.pull(X)


@pytest.mark.parametrize("make", [sgd, gloc])
@pytest.mark.parametrize("budget", [PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-5)])
@pytest.mark.long
def test_noise_of_devices_may_be_secure(make, budget, tmp_path):
    if make is gloc and isinstance(budget, PureDP):
        with pytest.raises(ArgumentError, match=r"^budget must be"):
            make(budget=budget)
        return
    server = make(noise="secure", seed=None, budget=budget)
    device = tireless(server.device())
    for _ in range(3):
        device.choose(X)
        report = device.report(1.0)
        assert server.receive(report)
        if isinstance(budget, PureDP):
            assert np.linalg.norm(report) == pytest.approx(server.channel.radius(2))
        else:
            assert (report / server.grid == np.rint(report / server.grid)).all()
    again = dpb.load(server.save(tmp_path / "server.dpb"))
    assert again.receive(report)
    assert again.rounds == 4


@pytest.mark.parametrize("make", [sgd, gloc])
@pytest.mark.long
def test_a_saved_server_goes_on(make, tmp_path):
    server = make()
    device = tireless(server.device())
    device.choose(X)
    server.receive(device.report(1.0))
    again = dpb.load(server.save(tmp_path / "server.dpb"))
    assert again.estimates.coefficients == pytest.approx(server.estimates.coefficients)
    device.use(again.chooser())
    device.choose(X)
    assert again.receive(device.report(1.0))
    assert again.rounds == 2


@pytest.mark.parametrize("report", [None, [1.0], [np.nan] * 2, [1e9] * 2, [4.0, 0.0], "much"])
def test_what_no_device_sends_is_refused(report):
    server = sgd()  # whose reports are 3.4 long
    with pytest.raises(ArgumentError, match=r"^report must hold 2 numbers"):
        server.receive(report)
    assert server.rounds == 0


def test_the_reports_of_one_person_share_a_budget():
    """Epsilons add up, where Gaussian noise would grow with the root of three."""
    pure, gaussian = sgd(max_rounds=3), sgd(max_rounds=3, budget=ZCDP(0.5))
    assert pure.channel.multiplier == pytest.approx(3.0)
    assert gaussian.channel.multiplier == pytest.approx(math.sqrt(3.0))
    device = pure.device()
    for _ in range(3):
        device.choose(X)
        pure.receive(device.report(1.0))
    assert device.left == 0
    assert pure.ledger.spent() == PureDP(1.0)
    assert "which sends 3 reports in all" in str(pure.guarantee)


@pytest.mark.parametrize("make", [sgd, gloc])
def test_guarantees_say_where_the_wall_stands(make):
    assert make().guarantee.trust_model == "local"
    assert make().guarantee.view == "joint"
    assert make(reports=False).guarantee.trust_model == "central"
    assert make().guarantee.protects == "contexts and rewards"
    assert make(clip=False).guarantee.holds is None


def test_bounds_that_no_link_has_are_refused():
    for make in (sgd, gloc):
        with pytest.raises(ArgumentError, match=r"^parameter_bound times context_bound"):
            make(parameter_bound=100.0)
    with pytest.raises(ArgumentError, match=r"^gradient_bound must be"):
        sgd(gradient_bound=0.0)
    with pytest.raises(ArgumentError, match=r"^step must be"):
        sgd(step=0.0)
    with pytest.raises(ArgumentError, match=r"^gradient_weight must be 1"):
        gloc(budget=ApproxDP(1.0, 0.1), calibration="paper", gradient_weight=2.0)


# What the published forms are ------------------------------------------------------------------


def test_the_published_step_is_five_over_t():
    policy = sgd(step=5.0, weight_decay=0.05, gradient_bound=1.0, parameter_bound=50.0)
    first, second = np.array([1.0, 2.0]), np.array([-2.0, 1.0])
    policy.receive(first)
    assert policy.estimates.coefficients == pytest.approx(-5 * first)
    policy.receive(second)
    assert policy.estimates.coefficients == pytest.approx(
        -5 * first - 2.5 * (second - 0.25 * first)
    )


def test_the_published_noise_keeps_more_than_it_was_asked_for():
    """Each number has the same noise; together they move by at most sqrt(6)."""
    policy = gloc(budget=ApproxDP(1.0, 0.1), calibration="paper")
    std = 6 * np.sqrt(2 * np.log(37.5))
    assert policy.noise_scale == pytest.approx(np.sqrt(2) * std)  # on sqrt(2) times the report
    delta = accounting.gaussian_delta(1.0, np.sqrt(6) / std)
    assert policy.guarantee.holds.delta == pytest.approx(delta, rel=1e-9)
    assert delta < 1e-9
    (report,) = exact_reports(policy, [(np.array([0.6, 0.8]), 1.0)])
    record = [-0.3, -0.4, 0.36, 0.64, 0.48, 0.0, 0.0]
    assert report == pytest.approx(np.sqrt(2) * np.array(record))
    assert policy.params.step == pytest.approx(1 / np.sqrt(4000))


# What is learned -------------------------------------------------------------------------------


def logistic(rounds: int, n_arms: int, d: int, size: float, seed: int) -> ContextTable:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rounds, n_arms, d))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    means = 1 / (1 + np.exp(-size * x[..., 0]))
    return ContextTable(x, (rng.random(means.shape) < means).astype(float), means)


@pytest.mark.parametrize(
    ("cls", "given", "share"),
    [
        (LDPSGD, {"budget": PureDP(2.0)}, 0.3),
        (LDPSGD, {"budget": ZCDP(0.5)}, 0.3),
        (LDPGLOC, {"budget": ZCDP(0.5), "horizon": 8000, "radius_scale": 0.01}, 0.4),
    ],
)
@pytest.mark.long
def test_regret_is_far_below_that_of_uniform_play(cls, given, share):
    world = logistic(8000, 5, 3, 3.0, seed=1)
    uniform = (world.state.means.max(axis=1) - world.state.means.mean(axis=1)).sum()
    policy = cls(5, 3, parameter_bound=3.0, **given)
    runs = dpb.simulate(policy, world, horizon=8000, runs=5, seed=1, record=[8000]).runs
    assert runs["regret"].mean() < share * uniform


@pytest.mark.long
def test_the_default_steps_have_less_regret_than_the_published_ones():
    world = logistic(20_000, 10, 5, 3.0, seed=2)
    given = {"budget": PureDP(1.0), "parameter_bound": 3.0}
    policies = [
        LDPSGD(10, 5, **given, name="ours"),
        LDPSGD(10, 5, **given, step=5.0, weight_decay=0.05, gradient_bound=1.0, name="published"),
    ]
    runs = dpb.simulate(policies, world, horizon=20_000, runs=20, seed=1, record=[20_000]).runs
    regret = runs.groupby("policy")["regret"].mean()
    assert regret["ours"] < 0.9 * regret["published"]


@pytest.mark.long
@pytest.mark.parametrize("budget", [None, ZCDP(0.5), ZCDP(500.0)])
def test_widths_of_confidence_sets_cover(budget):
    """In every direction, at every update of 20 runs; with a probability of 0.02 that one does not."""
    for seed in range(20):
        world = logistic(400, 3, 2, 1.0, seed)
        policy = LDPGLOC(3, 2, budget=budget, horizon=400, batch=10, seed=seed)
        for x, r in zip(world.state.contexts, world.state.rewards, strict=True):
            policy.update(r[policy.pull(x).arm])
            facts = policy.session.state.public.linear.facts[:, 0]
            error = policy.estimates.coefficients - np.array([1.0, 0.0])
            inverse = policy.session.state.public.linear.inverse[0]
            turn = np.linspace(0, np.pi, 16)
            for direction in np.stack([np.cos(turn), np.sin(turn)], axis=1):
                y = inverse @ direction
                width = facts[0] * np.sqrt(y @ direction + facts[1] * (y @ y))
                width += facts[2] * np.sqrt(y @ y)
                assert abs(direction @ error) <= width * (1 + 1e-12)
