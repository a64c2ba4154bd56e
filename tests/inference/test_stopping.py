"""The evidence by which searches stop: a supermartingale, and equal to its definition."""

from __future__ import annotations

import dataclasses
import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import slow_evidence as definitions
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import binomtest

from dpbandits import ZCDP, ArgumentError, PureDP
from dpbandits.algorithms import LDPTopTwo, MergedTopTwo, MergedTopTwoSDP
from dpbandits.algorithms.search.evidence import (
    RELEASED,
    SIDE,
    TABLE,
    Evidence,
    evidence_at,
    guess_of,
    least_sum,
    level_of,
    no_evidence,
    take,
    tilt_table,
)
from dpbandits.algorithms.search.top_two import MEMO, TopTwo, publish
from dpbandits.inference import Noise
from dpbandits.kernel import kernel
from dpbandits.policies import Composition, Policy, load
from dpbandits.policies.sums import _ROUNDED, noise_of
from dpbandits.privacy import Budget
from dpbandits.privacy.channels import Gaussian, Laplace
from dpbandits.privacy.discrete import raised
from dpbandits.privacy.secure import DeviceNoise
from dpbandits.session.episodes import receive_sum

FAILURE, ARMS = 0.1, 4
MEANS = [0.3, 0.45, 0.6, 0.75]


class Batch:
    """A released batch, with tilts from what had been released when it began."""

    def __init__(
        self,
        n: int,
        total: float,
        seen: list[Batch],
        scale: float,
        *,
        laplace: bool,
        surplus: float = 1.0,
    ) -> None:
        """``surplus``: by how much there may be more noise than the scale says."""
        self.n, self.total = n, total
        variance = scale**2 * (2.0 if laplace else 1.0)
        known = [definitions.Batch(0, one.n, one.total, 0) for one in seen]
        whole, y = sum(one.rounds for one in known), sum(one.total for one in known)
        mean = min(max(y / whole, 0.0), 1.0) if whole else 0.0
        worth = whole**2 * 0.15 / (whole * 0.15 + variance * len(known)) if whole else 0.0
        guess = (0.75 + worth * mean * (1 - mean)) / (5 + worth)
        guess = min(max(guess, 0.25 / 32), 0.25)
        # n V / v, to the nearest power of the root of 2 within the table.
        worth = n * guess
        if variance:
            worth = variance * 2 ** (min(max(round(2 * math.log2(worth / variance)), -32), 15) / 2)
            worth /= surplus
        self.tilts = np.array(
            [definitions.tilt(u, 1, worth, scale, laplace) for u in definitions.U]
        )
        self.costs = np.array([definitions.cost(one, scale, laplace) for one in self.tilts])
        self.costs *= surplus


def logarithm(batches: list[Batch], q: np.ndarray, *, up: bool) -> np.ndarray:
    """ln M_up(q) or ln M_dn(q), of many q."""
    terms = np.full((len(q), 28), -math.log(28))
    for one in batches:
        y, p = (one.n - one.total, 1.0 - q) if up else (one.total, q)
        terms -= one.tilts * y + one.costs + one.n * np.log1p(np.outer(p, np.expm1(-one.tilts)))
    return logsumexp(terms, axis=1)


def least(b: list[Batch], c: list[Batch], gap: float = 0.0) -> float:
    """Z(b, c), by brute force."""

    def both(q: np.ndarray) -> np.ndarray:
        return logarithm(b, q, up=True) + logarithm(c, q + gap, up=False)

    grid = np.linspace(max(0.0, -gap), min(1.0, 1.0 - gap), 60)
    found = both(grid)
    near = int(np.argmin(found))
    ends = grid[max(near - 1, 0)], grid[min(near + 1, 59)]
    inside = minimize_scalar(
        lambda q: both(np.array([q]))[0], bounds=ends, method="bounded", options={"xatol": 1e-10}
    )
    return float(min(inside.fun, found[near]))


# What kernels keep -----------------------------------------------------------------------------

LAWS = [Noise(0.0, False), Noise(1.5, False), Noise(1.5, True), Noise(40.0, True)]


def kept(noise: Noise, seed: int = 1) -> tuple[Evidence, list[list[Batch]], np.ndarray]:
    """Ten batches of each of two arms, in kernels and as they are defined."""
    rng, table = np.random.default_rng(seed), tilt_table(noise)
    variance = noise.variance(np.ones(1))[0]
    found, batches = no_evidence(2), [list[Batch](), list[Batch]()]
    for _ in range(10):
        for arm, mean in enumerate((0.3, 0.5)):
            n = int(rng.integers(5, 60))
            total = float(rng.binomial(n, mean) + noise.scale * rng.normal())
            one = Batch(n, total, batches[arm][:], noise.scale, laplace=noise.is_laplace)
            level = level_of(n * guess_of(found, arm, variance), variance)
            take(found, table, arm, float(n), total, level)
            batches[arm].append(one)
    return found, batches, table


@pytest.mark.parametrize("noise", LAWS)
def test_kernels_keep_what_is_defined(noise: Noise):
    found, batches, table = kept(noise)
    for arm, own in enumerate(batches):
        for side, up in ((SIDE.up, True), (SIDE.down, False)):
            parts = found.levels[arm], found.linear[side, arm], table[TABLE.shrunk]
            for q in (0.0, 1e-3, 0.4, 0.9, 1.0):
                value, slope, curve = evidence_at(*parts, 1.0 - q if up else q)
                exact = logarithm(own, np.array([q]), up=up)[0]
                assert value == pytest.approx(exact, abs=1e-8)
                if 0.0 < q < 1.0:
                    h, p = 1e-5, 1.0 - q if up else q
                    before, after = (evidence_at(*parts, p + d) for d in (-h, h))
                    assert slope == pytest.approx((after[0] - before[0]) / (2 * h), rel=1e-4)
                    assert curve == pytest.approx((after[1] - before[1]) / (2 * h), rel=1e-3)


@pytest.mark.parametrize("noise", LAWS)
@pytest.mark.parametrize("gap", [0.0, 0.1, 0.95, -0.2, -1.0])
def test_the_least_sum_is_that_of_brute_force_from_below(noise: Noise, gap: float):
    for seed in range(4):
        found, batches, table = kept(noise, seed)
        for b, c in ((0, 1), (1, 0)):
            exact = least(batches[b], batches[c], gap)
            for start in (-1.0, 0.4, 1.0):
                ours = least_sum(found, table, b, c, gap, start)
                assert exact - 2e-4 <= ours <= exact + 1e-9


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e9, 1e60])
def test_noise_of_any_size_leaves_evidence_a_number(laplace: bool, scale: float):
    noise = Noise(scale, laplace)
    table, found = tilt_table(noise), no_evidence(2)
    variance = noise.variance(np.ones(1))[0]
    for arm, total in ((0, scale + 30.0), (1, -scale), (0, 5.0)):
        take(found, table, arm, 40.0, total, level_of(40.0 * 0.15, variance))
    assert np.isfinite(table).all()
    assert all(math.isfinite(least_sum(found, table, *pair, 0.0, 0.5)) for pair in ((0, 1), (1, 0)))


# A supermartingale, by exact enumeration -------------------------------------------------------


class TwoBatches:
    """Length and tilts of the second batch of an arm depend on the first release."""

    def __init__(self, q: float, channel: Laplace | Gaussian, scale: float) -> None:
        self.q, self.laplace = q, isinstance(channel, Laplace)
        # As ``Policy.noise_scale`` has it.
        self.scale = (scale if self.laplace else raised(scale)) + _ROUNDED
        reach = math.ceil(25 * scale)
        law = DeviceNoise(1.0, (0.0, 1.0)).law(channel, scale, reach).tolist()
        self.law = dict(zip(range(-reach, reach + 1), law, strict=True))

    def growth(self, *, up: bool, believed: float = 1.0, sees: bool = False) -> float:
        """The largest mean of M after the second release, relative to M after the first."""
        noise = Noise(believed * self.scale, self.laplace)
        table, variance, found = tilt_table(noise), noise.variance(np.ones(1))[0], [0.0]
        for y, likely in definitions.laws(5, self.q, self.law).items():
            if likely < 1e-3:
                continue
            n = 12 if y < 2 else 3
            before, mean = self.value(table, variance, [(5, y)]), 0.0
            for z, p in definitions.laws(n, self.q, self.law).items():
                if p > 1e-16:
                    after = self.value(table, variance, [(5, y), (n, z)], sees=sees)
                    mean += p * math.exp(after[up] - before[up])
            found.append(mean)
        return max(found)

    def value(
        self, table: Any, variance: float, batches: list[tuple[int, int]], *, sees: bool = False
    ) -> tuple[float, float]:
        found = no_evidence(1)
        for n, y in batches:
            guess = guess_of(found, 0, variance)
            if sees:  # what it judges
                later = no_evidence(1)
                later.released[:] = found.released
                later.released[:, 0] += n, y, 1.0
                guess = guess_of(later, 0, variance)
            take(found, table, 0, float(n), float(y), level_of(n * guess, variance))
        sides = (SIDE.down, self.q), (SIDE.up, 1.0 - self.q)
        down, up = (
            evidence_at(found.levels[0], found.linear[side, 0], table[TABLE.shrunk], p)[0]
            for side, p in sides
        )
        return down, up


CASES = [
    TwoBatches(q, channel, scale)
    for channel, scale in ((Laplace(1.0), 1.0), (Gaussian(1.0), 1.5))
    for q in (0.05, 0.5)
]


@pytest.mark.parametrize("i", range(len(CASES)))
def test_evidence_is_a_supermartingale_in_releases(i: int):
    assert all(CASES[i].growth(up=up) <= 1.0 + 1e-9 for up in (True, False))


def test_wrong_evidence_is_none():
    def most(**wrong: Any) -> float:
        return max(one.growth(up=up, **wrong) for one in CASES for up in (True, False))

    assert most(believed=0.0) > 1.001
    assert most(believed=0.9) > 1.001
    assert most(sees=True) > 1.001


# When searches stop ----------------------------------------------------------------------------


@kernel
def publish_seeing(params, public, memo, release):
    """With tilts from the batch that they judge."""
    arm, n, found = int(memo[MEMO.arm]), memo[MEMO.size], public.evidence
    noise = params.noise_scale**2 * (2.0 if params.laplace else 1.0)
    found.released[RELEASED.rounds, arm] += n
    found.released[RELEASED.total, arm] += release[0]
    found.released[RELEASED.batches, arm] += 1.0
    memo[MEMO.level] = level_of(n * guess_of(found, arm, noise), noise)
    found.released[RELEASED.rounds, arm] -= n
    found.released[RELEASED.total, arm] -= release[0]
    found.released[RELEASED.batches, arm] -= 1.0
    publish(params, public, memo, release)


class Seeing(MergedTopTwo.policy_class):
    @classmethod
    def composition(cls, *, rule: TopTwo, **_: object) -> Composition:
        return Composition(dataclasses.replace(rule.kernels, publish=publish_seeing), rule.card)


class OneRival(MergedTopTwo.policy_class):
    """Without K - 1 in the threshold."""

    def _params(self) -> Any:
        return super()._params()._replace(threshold=math.log(1.0 / FAILURE))


class Noiseless(MergedTopTwo.policy_class):
    def _params(self) -> Any:
        return super()._params()._replace(table=tilt_table(Noise(0.0, is_laplace=False)))


def stops_as_defined(search: Policy, seed: int, gap: float = 0.0, lost: int = 0) -> bool:
    """Whether a search whose answers come late keeps the evidence of the definition, and stops at
    the first of its last three releases by which an arm refutes all others.  Every so many pulls it
    may have ``lost`` what was not released.
    """
    rng, waiting, pulls = np.random.default_rng(seed), list[Any](), 0
    while not search.stopped:
        waiting.append(search.pull())
        pulls += 1
        if lost and pulls % lost == 0:
            search.session.give_up()
        if len(waiting) > 6:
            late = waiting.pop(int(rng.integers(6)))
            search.update(float(rng.random() < MEANS[late.arm]), late)
    return stopped_as_defined(search, gap)


def stopped_as_defined(search: Policy, gap: float = 0.0, surplus: float = 1.0) -> bool:
    made, batches = search.session.exchange.made, list[tuple[int, Batch]]()
    law: Any = {"laplace": search.budget is not None, "surplus": surplus}
    for one in made:
        ((arm, n, known),) = one.batches
        seen = [batch for a, batch in batches[:known] if a == arm]
        batches.append((arm, Batch(n, one.values[0], seen, search.noise_scale, **law)))
    public, table = search.session.state.public, search.params.table
    found, leader = public.evidence, search.recommendation
    for past in (0, 1, 2):
        arms = [[batch for a, batch in batches[: len(made) - past] if a == b] for b in range(ARMS)]
        z = {
            (b, c): least(arms[b], arms[c], gap) for b, c in itertools.permutations(range(ARMS), 2)
        }
        weakest = [min(z[b, c] for c in range(ARMS) if c != b) for b in range(ARMS)]
        if (max(weakest) >= math.log((ARMS - 1) / FAILURE)) != (past == 0):
            return False
        if past == 0 and any(
            abs(least_sum(found, table, b, c, gap, 0.5) - exact) > 1e-3
            or (b == leader and abs(public.against[c] - exact) > 1e-3)
            for (b, c), exact in z.items()
        ):
            return False
    return True


@pytest.mark.parametrize("budget", [None, PureDP(4.0), ZCDP(2.0)])
def test_searches_under_local_trust_keep_the_evidence_of_reports(budget: Budget | None):
    class Noiseless(LDPTopTwo):
        def _params(self) -> Any:
            return super()._params()._replace(table=tilt_table(Noise(0.0, is_laplace=False)))

    found = [
        refutes(cls(ARMS, failure_probability=FAILURE, budget=budget, answers_within=None, seed=1))
        for cls in (LDPTopTwo, Noiseless)
    ]
    assert found == [True, budget is None]


def refutes(search: Policy) -> bool:
    """Whether the arm that a search names refutes all others, and the search knows by how much."""
    rng, waiting = np.random.default_rng(3), list[Any]()
    while not search.stopped:
        waiting.append(search.pull())
        if len(waiting) > 6:
            late = waiting.pop(int(rng.integers(6)))
            search.update(float(rng.random() < MEANS[late.arm]), late)
    told, leader = search.estimates, search.recommendation
    report = Batch(1, 0.0, [], search.noise_scale, laplace=isinstance(search.budget, PureDP))
    arms = [
        [SimpleNamespace(n=n, total=n * mean, tilts=report.tilts, costs=n * report.costs)]
        for n, mean in zip(told.rounds, told.means, strict=True)
    ]
    exact = [least(arms[leader], arms[c]) for c in range(ARMS) if c != leader]
    kept = np.delete(search.session.state.public.against, leader)
    agreed = np.abs(kept - exact).max() < 1e-3
    return bool(agreed and min(exact) >= math.log((ARMS - 1) / FAILURE) - 1e-3)


def search_of(cls: Any, budget: Budget | None, **options: Any) -> Policy:
    given = {"failure_probability": FAILURE, "answers_within": 40, "seed": 1} | options
    return cls(ARMS, budget=budget, **given)


@pytest.mark.parametrize("budget", [None, PureDP(1.0), PureDP(0.2)])
def test_searches_stop_as_soon_as_all_rivals_are_refuted(budget: Budget | None):
    assert all(stops_as_defined(search_of(MergedTopTwo, budget), seed) for seed in range(2))
    assert stops_as_defined(search_of(MergedTopTwo, budget, gap=0.2), 1, 0.2)


@pytest.mark.parametrize("grid", [2.0**-10, 2.0**-4])
def test_evidence_covers_the_rounding_of_both_arms(grid: float):
    options = {"noise": "secure", "grid": grid, "seed": None}
    assert stops_as_defined(search_of(MergedTopTwo, PureDP(4.0), **options), 1, -grid)
    assert stops_as_defined(search_of(MergedTopTwo, PureDP(4.0), gap=0.1, **options), 1, 0.1 - grid)


@pytest.mark.parametrize("lost", [150, 411])
def test_lost_batches_are_no_evidence(lost: int):
    assert all(
        stops_as_defined(search_of(MergedTopTwo, None), seed, lost=lost) for seed in range(2)
    )


# Under shuffle trust ----------------------------------------------------------------------------


def play_with_devices(search: Policy, means: list[float], rng: np.random.Generator) -> Policy:
    """Batches of devices and a shuffler, until the search has stopped."""
    while not search.stopped:
        device, shuffler = search.device(), search.shuffler()
        rewards = rng.random(search.protocol.batch) < means[device.arm]
        assert search.receive(shuffler.shuffle([device.report_many(rewards.astype(float))]))
    return search


def server(cls: Any = MergedTopTwoSDP, n_arms: int = ARMS, **options: Any) -> Policy:
    given = {"failure_probability": FAILURE, "budget": PureDP(0.5), "messages": True, "seed": 1}
    return cls(n_arms, **{**given, **options})


class AllPresent(MergedTopTwoSDP.policy_class):
    """As if the noise of nobody could be missing, where a quarter's may be."""

    def _params(self) -> Any:
        table = tilt_table(noise_of(self)._replace(dropout=0.0))
        return super()._params()._replace(table=table)


@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_searches_with_a_shuffler_keep_the_evidence_of_its_sums(dropout: float):
    def as_defined(cls: Any, gap: float) -> bool:
        search = server(cls, dropout=dropout, gap=gap or None)
        play_with_devices(search, MEANS, np.random.default_rng(2))
        return stopped_as_defined(search, gap, 1.0 / (1.0 - dropout))

    assert as_defined(MergedTopTwoSDP, 0.0)
    assert as_defined(MergedTopTwoSDP, 0.1)
    assert as_defined(AllPresent, 0.0) == (dropout == 0.0)


@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.3])
def test_the_noise_of_devices_costs_no_more_than_searches_take(dropout: float):
    """Moments of the exact law of a batch: the difference of two negative binomial variables."""
    search = server(dropout=dropout)
    tilt, cost = search.params.table[[TABLE.tilt, TABLE.cost]]
    of_one = -np.log1p(-((search._noise_of_sums[0] * tilt) ** 2))  # where all noise may be needed
    missed, numerical = False, 1e-11
    for people in (3, 10, 37, 400):
        protocol = search.protocol_for(people)
        left = people - protocol.dropout
        p = -math.expm1(-1.0 / protocol.noise)
        # E exp(z k) of each, from its definition: (p / (1 - (1 - p) exp(z)))^r.
        z = tilt * protocol.step
        logarithm = 2.0 * math.log(p) - sum(np.log(1 - (1 - p) * np.exp(w)) for w in (z, -z))
        exact = people / left * logarithm
        assert (exact <= cost + numerical).all()
        missed |= bool((exact > of_one + numerical).any())
    assert missed == (dropout > 0.0)


def test_devices_move_the_mean_by_no_more_than_searches_take():
    search = server(reward_range=(0.0, 3.0), gap=0.3)
    protocol = search.protocol
    assert search.params.gap == pytest.approx(0.1 - 2.0 * protocol.bias / 3.0, abs=1e-15)
    x = np.random.default_rng(1).uniform(-1.5, 1.5, (1000, 1))
    # From which of 2^32 equally likely words on a number is rounded up, by bisection.
    low, high = np.zeros(x.shape, np.int64), np.full(x.shape, 2**32)
    least = protocol.rounded(x, low)
    for _ in range(33):
        middle = (low + high) // 2
        up = protocol.rounded(x, middle) > least
        low, high = np.where(up, low, middle + 1), np.where(up, middle, high)
        low = np.minimum(low, high)
    mean = protocol.step * (least + (2**32 - high) / 2**32)
    assert 0.1 * protocol.bias < np.abs(mean - x).max() <= protocol.bias


def test_a_discarded_batch_is_no_evidence_and_comes_again():
    search = server()
    before = search.protocol, search.device().arm
    shuffler = search.shuffler(short="discard")
    shuffler.submit(search.device().report(1.0), sender=1)
    assert not search.receive(shuffler.close())
    assert (search.protocol, search.device().arm) == before
    assert not search.session.state.public.evidence.released.any()


def test_after_the_end_no_batch_is_coming(tmp_path):
    search = play_with_devices(server(n_arms=2), [0.1, 0.9], np.random.default_rng(1))
    assert search.recommendation == 1
    device = search.chooser()
    again = load(search.save(tmp_path / "server.dpb"))
    for one in (search, again):
        with pytest.raises(ArgumentError, match="there is no next batch, because one arm is left"):
            one.device()
        assert not one.ledger.frame["cost"].gt(0.5).any()
    assert device.choose() == 1


@pytest.mark.long
@pytest.mark.parametrize(("mean", "dropout"), [(0.5, 0.25), (0.05, 0.0)])
def test_of_two_equal_arms_a_shuffler_names_each_no_more_often_than_asked(mean, dropout):
    """Sums in the law of the protocol, for at most 3,000 people."""
    rng, runs, named = np.random.default_rng(4), 1000, np.zeros(2, int)
    for run in range(runs):
        search = server(n_arms=2, failure_probability=0.4, dropout=dropout, seed=run)
        while not search.stopped and search.rounds < 3_000:
            _, people = search.session.coming()
            noise = search.protocol.step * search.protocol._noise_of_sums((), rng)
            receive_sum(search.session, rng.binomial(people, mean) + float(noise))
        named[search.recommendation] += search.stopped
    for count in named:
        assert binomtest(int(count), runs, 0.4, alternative="greater").pvalue > 1e-4
    assert named.sum() > 0.02 * runs  # which says something


@pytest.mark.parametrize("cls", [Seeing, OneRival, Noiseless])
def test_wrong_searches_stop_at_other_releases(cls: type[Policy]):
    assert not all(stops_as_defined(search_of(cls, PureDP(0.5)), seed) for seed in range(4))
