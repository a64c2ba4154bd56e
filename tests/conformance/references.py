"""Textbook implementations in plain NumPy, written from the papers and apart from the package.
Rewards are Bernoulli.

``reference(budget, means, horizon, runs, rng)`` returns the regret of each run; ``budget`` = None
is the algorithm without noise. Policies that decide once per episode are played run by run, those
that decide in every round for all runs at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from functools import lru_cache, partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, logsumexp, rel_entr

from dpbandits.papers.concentrated.design import g_optimal
from dpbandits.privacy import ZCDP, Budget, PureDP

Reference = Callable[[Budget | None, np.ndarray, int, int, np.random.Generator], np.ndarray]
Index = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def gaussian_std(budget: Budget | None) -> float:
    """Of the noise on a sum of rewards in [0, 1] that is rho-zCDP."""
    assert budget is None or isinstance(budget, ZCDP)
    return 0.0 if budget is None else (1 / (2 * budget.rho)) ** 0.5


def laplace_scale(budget: Budget | None) -> float:
    """Of the noise on a sum of rewards in [0, 1] that is epsilon-DP."""
    assert budget is None or isinstance(budget, PureDP)
    return 0.0 if budget is None else 1 / budget.epsilon


def kl_index(p: np.ndarray, level: np.ndarray) -> np.ndarray:
    """The largest q with kl(p, q) <= level, by bisection."""
    low, high = p.copy(), np.ones_like(p)
    for _ in range(30):
        middle = (low + high) / 2
        inside = rel_entr(p, middle) + rel_entr(1 - p, 1 - middle) <= level
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low


# Doubling episodes with forgetting -----------------------------------------------------------


def _doubling(
    index: Index,
    noise: Callable[[], float],
    means: np.ndarray,
    horizon: int,
    rng: np.random.Generator,
) -> float:
    """Play each arm once, then always the best arm until its number of plays has doubled; means are
    of its last episode.

    Ties go to the shorter last episode.
    """
    arms = len(means)
    plays, last, mean = np.zeros(arms, int), np.zeros(arms, int), np.zeros(arms)
    t = 0
    while t < horizon:
        arm = t if t < arms else int(np.lexsort((last, -index(mean, last, float(t + 1))))[0])
        n = min(max(plays[arm], 1), horizon - t)
        mean[arm] = (rng.binomial(n, means[arm]) + noise()) / n
        plays[arm] += n
        last[arm] = n
        t += n
    return float((means.max() - means) @ plays)


def adac_ucb(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Azize & Basu (2024), eq. (14) with beta = 1 and true episode lengths."""
    std = gaussian_std(budget)

    def index(mean: np.ndarray, n: np.ndarray, t: float) -> np.ndarray:
        # N / 2 = n; the noise of a mean of n rewards has variance 1 / (2 rho n^2).
        return mean + np.sqrt((1 / (2 * n) + 2 * std**2 / n**2) * np.log(t))

    return np.array(
        [_doubling(index, lambda: std * rng.normal(), means, horizon, rng) for _ in range(runs)]
    )


def adap_ucb(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Azize & Basu (2022), AdaP-UCB with alpha = 3.1."""
    scale = laplace_scale(budget)

    def index(mean: np.ndarray, n: np.ndarray, t: float) -> np.ndarray:
        return mean + np.sqrt(3.1 * np.log(t) / (2 * n)) + 3.1 * np.log(t) * scale / n

    return np.array(
        [_doubling(index, lambda: scale * rng.laplace(), means, horizon, rng) for _ in range(runs)]
    )


def adap_klucb(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Azize & Basu (2022), AdaP-KLUCB with alpha = 3.1."""
    scale = laplace_scale(budget)

    def index(mean: np.ndarray, n: np.ndarray, t: float) -> np.ndarray:
        return kl_index(np.clip(mean + 3.1 * np.log(t) * scale / n, 0, 1), 3.1 * np.log(t) / n)

    return np.array(
        [_doubling(index, lambda: scale * rng.laplace(), means, horizon, rng) for _ in range(runs)]
    )


# Merged batches ------------------------------------------------------------------------------

TILTS = np.geomspace(1e-4, 60, 300)  # at which exponents are compared


def _tilted(weights: list[np.ndarray], plays: list[np.ndarray], scale: float, laplace: bool):
    """For each arm the rounds N that its merged value is worth, and the cost of every tilt, for
    means up to 1/2 and above.
    """
    rounds, costs = [], []
    for w, n in zip(weights, plays, strict=True):
        a = w / w.sum() / n
        worth = 1 / (n @ a**2)
        tilt = worth * TILTS
        if laplace:
            reach = np.minimum((scale * a.max() * tilt) ** 2, 1)
            with np.errstate(divide="ignore"):
                noise = -((a**2).sum() / a.max() ** 2) * np.log1p(-reach)
        else:
            noise = scale**2 * (a**2).sum() * tilt**2 / 2
        spread = (n @ a**3 - 1 / worth**2) / (36 * math.sqrt(3))
        bent = tilt**3 * spread
        rounds.append(worth)
        closer = (partial(_closer, a, worth, spread, scale),) if laplace else ()
        costs.append((noise, noise + bent, *closer))
    return np.array(rounds), costs


def _closer(
    a: np.ndarray, worth: float, spread: float, scale: float, x: float, target: float
) -> float:
    """What the tail of the largest Laplace noise says, less ln 4."""
    top, rest = a.max(), np.delete(a, a.argmax())
    second = rest.max() if rest.size else 0.0
    if scale == 0 or second > 0.9999 * top:
        return 0.0
    tilt, counted = 1 / (scale * top), 0.5 < target < 1.0

    def psi(u: np.ndarray | float) -> np.ndarray | float:
        return np.log1p(target * np.expm1(-u)) if target < 1.0 else -u

    first = -tilt * x - worth * psi(tilt / worth) - counted * spread * tilt**3
    if second > 0:
        count = (rest**2).sum() / second**2
        first += count * np.log1p(-((second / top) ** 2))
        reach = np.minimum((scale * second * worth * TILTS) ** 2, 1)
        with np.errstate(divide="ignore"):
            cost = -count * np.log1p(-reach) + counted * spread * (worth * TILTS) ** 3
        last = max((worth * (-TILTS * x - psi(TILTS)) - cost).max(), 0.0)
    elif x < 0:
        last = math.inf
    else:
        missed = rel_entr(1 - x, 1 - target) if target < 1 or x < 1 else 0.0
        last = worth * (rel_entr(x, target) + missed)
    return -np.logaddexp(-first - math.log(2), -last) - math.log(4)


def _imed(values: np.ndarray, weights: np.ndarray, rounds, costs, t: float) -> np.ndarray:
    target = min(max(values.max(), 0.0), 1.0)
    psi = np.log1p(target * np.expm1(-TILTS)) if target < 1.0 else -TILTS
    distances = [
        max(
            (n * (-TILTS * x - psi) - cost[int(0.5 < target < 1.0)]).max(),
            *(closer(x, target) for closer in cost[2:]),
            0.0,
        )
        if x < target
        else 0.0
        for x, n, cost in zip(values, rounds, costs, strict=True)
    ]
    return -(np.array(distances) + np.log(weights / 4))


_DOUBTS = np.array([0, 0.6, 1.8, 3.3, 4.5, 5.2, 5.9])  # h at 0 to 6, beyond which it rises like x


def _planned(distances: np.ndarray, weights: np.ndarray, most: float) -> np.ndarray:
    """The index of IMED with a horizon, whose weights are cut."""
    x = np.interp(distances, _DOUBTS, np.arange(7)) + np.maximum(distances - _DOUBTS[-1], 0)
    return x + np.log(np.minimum(weights, most))


def _largest(values: np.ndarray, weights: np.ndarray, rounds, costs, t: float) -> np.ndarray:
    found = []
    for x, n, cost in zip(values, rounds, costs, strict=True):
        low, high = (
            (np.expm1(-(math.log(t) / n + TILTS * x + one / n)) / np.expm1(-TILTS)).min()
            for one in cost[:2]
        )
        found.append(high if high > 0.5 else low)
    return np.clip(np.where(values >= 1, 1, found), 0, 1).round(7)


def _next_batch(total: float, variance: float) -> int:
    """A third of all rounds before, where noise rules half as many again, and between them."""
    ruled = variance / (variance + total / 10) if variance else 0.0
    return max(1, math.ceil((1 / 3 * (1 - ruled) + 3 / 2 * ruled) * total))


def _worth(sums: list, sizes: list, variance: float) -> tuple[np.ndarray, list, list]:
    """Merged values, the weights of batches, and their sizes."""
    n = [np.array(one, float) for one in sizes]
    w = [1 / (1 / (4 * one) + variance / one**2) for one in n]
    pairs = zip(w, sums, n, strict=True)
    return np.array([one @ (s / m) / one.sum() for one, s, m in pairs]), w, n


def _merging(index: Callable[..., np.ndarray], known: int = 0) -> Reference:
    """Batches merged by inverse variance; the horizon is ``known``."""

    def reference(
        budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
    ) -> np.ndarray:
        laplace = isinstance(budget, PureDP)
        scale = laplace_scale(budget) if laplace else gaussian_std(budget)
        variance = scale**2 * (2 if laplace else 1)

        def play() -> float:
            arms = range(len(means))
            sums, sizes = [[] for _ in arms], [[] for _ in arms]
            total, t = np.zeros(len(means), int), 0
            while t < horizon:
                arm = t
                if t >= len(means):
                    values, w, played = _worth(sums, sizes, variance)
                    whole = np.array([one.sum() for one in w])
                    rounds, costs = _tilted(w, played, scale, laplace)
                    if t < known:  # of the index that is the distance
                        apart = -index(values, np.full(len(means), 4.0), rounds, costs, float(t))
                        n = 3 * (known - t)
                        found = _planned(apart, whole, 1 / (1 / (4 * n) + variance / n**2))
                    else:
                        found = -index(values, whole, rounds, costs, float(t + 1))
                    order = (total, found)
                    arm = int(np.lexsort(order if index is _largest else order[1:])[0])
                size = min(_next_batch(total[arm], variance), horizon - t)
                noise = scale * (rng.laplace() if laplace else rng.normal())
                sums[arm] = np.append(sums[arm], rng.binomial(size, means[arm]) + noise)
                sizes[arm] = np.append(sizes[arm], size)
                total[arm], t = total[arm] + size, t + size
            return float((means.max() - means) @ total)

        return np.array([play() for _ in range(runs)])

    return reference


def discounted_imed(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """IMED on batches that weigh half as much after every half-life, for a change in 1,000 rounds."""
    laplace, arms = isinstance(budget, PureDP), range(len(means))
    scale = laplace_scale(budget) if laplace else gaussian_std(budget)
    variance = scale**2 * (2 if laplace else 1)
    half = min(14 * math.sqrt(1000 * len(means) * (1 + 0.3 * math.sqrt(variance))), 2000)
    longest = math.ceil(min(max(variance, half / 64), half / 16))

    def play() -> float:
        sums, sizes, ends = ([[] for _ in arms] for _ in range(3))
        total, t = np.zeros(len(means)), 0
        while t < horizon:
            left = [0.5 ** ((t - np.array(one)) / half) for one in ends]
            arm = t
            if t >= len(means):
                _, w, n = _worth(sums, sizes, variance)
                w = [one * g for one, g in zip(w, left, strict=True)]
                whole = np.array([one.sum() for one in w])
                freshness = np.array([one @ g for one, g in zip(w, left, strict=True)]) / whole
                values = np.array([w[a] @ (sums[a] / n[a]) / whole[a] for a in arms])
                worth, costs = _tilted(w, n, scale, laplace)
                if budget is None:  # the divergence of coins, and nothing for uneven weights
                    costs = [(cost[0], cost[0]) for cost in costs]
                seen = np.minimum(values, 1 - 1e-6)
                distance = -_imed(seen, np.full(len(means), 4.0), worth, costs, float(t))
                arm = int((freshness * distance + np.log(whole)).argmin())
            rounds = sizes[arm] @ left[arm] if len(sizes[arm]) else 0
            size = min(_next_batch(rounds, variance), longest)
            played = min(size, horizon - t)
            noise = scale * (rng.laplace() if laplace else rng.normal())
            sums[arm] = np.append(sums[arm], rng.binomial(played, means[arm]) + noise)
            sizes[arm], t = np.append(sizes[arm], size), t + played
            ends[arm] = np.append(ends[arm], t)
            total[arm] += played
        return float((means.max() - means) @ total)

    return np.array([play() for _ in range(runs)])


def _held(index: str, memory: str, size: int | None = None) -> Reference:
    """Batches under a memory: "merge", "forget", or "discount" with a half-life for a change in
    1,000 rounds; their sizes grow, but for a fixed ``size``.
    """

    def reference(
        budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
    ) -> np.ndarray:
        laplace, k = isinstance(budget, PureDP), len(means)
        scale = laplace_scale(budget) if laplace else gaussian_std(budget)
        variance = scale**2 * (2 if laplace else 1)
        half = min(14 * math.sqrt(1000 * k * (1 + 0.3 * math.sqrt(variance))), 2000)
        longest = math.ceil(min(max(variance, half / 64), half / 16))

        def play() -> float:
            sums, sizes, ends = ([np.empty(0) for _ in range(k)] for _ in range(3))
            total, t = np.zeros(k, int), 0
            while t < horizon:
                fades = [0.5 ** ((t - one) / half) if memory == "discount" else 1.0 for one in ends]
                arm = int((total == 0).argmax())
                if total.all():
                    values, w, n = _worth(sums, sizes, variance)
                    w = [one * left for one, left in zip(w, fades, strict=True)]
                    whole = np.array([one.sum() for one in w])
                    values = np.array([w[a] @ (sums[a] / n[a]) / whole[a] for a in range(k)])
                    share = np.array([np.sum(w[a] * fades[a]) / whole[a] for a in range(k)])
                    level = math.log(t + 1)
                    spread = [
                        one**2 @ (1 / (4 * m) + variance / m**2)
                        for one, m in zip(w, n, strict=True)
                    ]
                    if index == "ucb":
                        bound = values + np.sqrt(2 * level * np.array(spread) / whole**2 / share)
                    else:
                        worth, costs = _tilted(w, n, scale, laplace)
                        bound = _largest(values, whole, worth, costs, math.exp(level))
                    rounds = np.array(
                        [
                            m @ np.atleast_1d(f) if memory == "discount" else m.sum()
                            for m, f in zip(n, fades, strict=True)
                        ]
                    )
                    arm = int(np.lexsort((rounds, -bound))[0])
                grown = (
                    sizes[arm] @ np.atleast_1d(fades[arm]) if memory == "discount" else total[arm]
                )
                planned = size or _next_batch(grown, variance)
                planned = min(planned, longest) if memory == "discount" else planned
                played = min(planned, horizon - t)
                noise = scale * (rng.laplace() if laplace else rng.normal())
                kept = slice(None) if memory != "forget" else slice(0)
                t += played
                for held, one in (
                    (sums, rng.binomial(played, means[arm]) + noise),
                    (sizes, planned),
                    (ends, t),
                ):
                    held[arm] = np.append(held[arm][kept], one)
                total[arm] += played
            return float((means.max() - means) @ total)

        return np.array([play() for _ in range(runs)])

    return reference


def merged_thompson(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """A draw for every arm and round; the arm that has most rounds gets one, others the rest of
    their batch.
    """
    laplace = isinstance(budget, PureDP)
    scale = laplace_scale(budget) if laplace else gaussian_std(budget)
    variance = scale**2 * (2 if laplace else 1)

    def play() -> float:
        arms = range(len(means))
        sums, sizes = [[] for _ in arms], [[] for _ in arms]
        total, running, brought = (np.zeros(len(means)) for _ in range(3))
        values = rounds = np.zeros(len(means))
        costs: list = []
        t = 0
        while t < horizon:
            arm = t
            if t >= len(means):
                up = rng.random(len(means)) < 0.5
                level = np.exp(rng.exponential(size=len(means)))
                seen = np.where(up, values, 1 - values)
                drawn = [
                    _largest(seen[[a]], None, rounds[[a]], [costs[a]], level[a])[0] for a in arms
                ]
                arm = int(np.where(up, drawn, 1 - np.array(drawn)).argmax())
            batch = _next_batch(total[arm], variance)
            left = 1 if total[arm] == total.max() > 0 else int(batch - running[arm])
            left = min(left, horizon - t)
            brought[arm] += rng.binomial(left, means[arm])
            running[arm], t = running[arm] + left, t + left
            if running[arm] >= batch:
                noise = scale * (rng.laplace() if laplace else rng.normal())
                sums[arm] = np.append(sums[arm], brought[arm] + noise)
                sizes[arm] = np.append(sizes[arm], batch)
                total[arm], running[arm], brought[arm] = total[arm] + batch, 0, 0
                if total.min() > 0:
                    values, w, n = _worth(sums, sizes, variance)
                    rounds, costs = _tilted(w, n, scale, laplace)
        return float((means.max() - means) @ (total + running))

    return np.array([play() for _ in range(runs)])


def _adding(optimistic: bool) -> Reference:
    """Noisy sums added up, in batches of a tenth of all rounds of an arm before; the index of Azize
    et al. (2025).
    """

    def reference(
        budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
    ) -> np.ndarray:
        scale = laplace_scale(budget)
        price = 1 / scale if scale else 1e9

        def divergence(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            z = np.maximum(x, expit(logit(y) - price))
            at = rel_entr(z, y) + rel_entr(1 - z, 1 - y)
            return np.where(x < y, at + price * (z - x), 0.0)

        def play() -> float:
            sums, total, t = np.zeros(len(means)), np.zeros(len(means), int), 0
            while t < horizon:
                arm = t
                if t >= len(means):
                    x = np.clip(sums / total, 0, 1)
                    if optimistic:
                        low, high = x, np.ones_like(x)
                        for _ in range(28):
                            y = (low + high) / 2
                            fits = total * divergence(x, y) <= math.log(t + 1)
                            low, high = np.where(fits, y, low), np.where(fits, high, y)
                        arm = int(np.lexsort((total, -low.round(7)))[0])
                    else:
                        target = np.full_like(x, x.max())
                        arm = int((total * divergence(x, target) + np.log(total)).argmin())
                size = min(max(1, math.ceil(total[arm] / 10 - 1e-9)), horizon - t)
                sums[arm] += rng.binomial(size, means[arm]) + scale * rng.laplace()
                total[arm], t = total[arm] + size, t + size
            return float((means.max() - means) @ total)

        return np.array([play() for _ in range(runs)])

    return reference


def _by_bound(index: str) -> Reference:
    """Upper bounds on single reports, each of which stands for a tenth of its arm's reports."""

    def reference(
        budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
    ) -> np.ndarray:
        laplace = isinstance(budget, PureDP)
        scale = laplace_scale(budget) if laplace else gaussian_std(budget)
        variance = scale**2 * (2 if laplace else 1)
        with np.errstate(divide="ignore"):
            heavy = -np.log1p(-np.minimum((scale * TILTS) ** 2, 1))
        cost = heavy if laplace else scale**2 * TILTS**2 / 2

        def play() -> float:
            sums, total, t = np.zeros(len(means)), np.zeros(len(means), int), 0
            standing, left = 0, 1
            while t < horizon:
                added = scale * (rng.laplace() if laplace else rng.normal())
                sums[standing] += rng.binomial(1, means[standing]) + added
                total[standing] += 1
                t, left = t + 1, left - 1
                if left <= 0 and not total.all():
                    standing, left = int(total.argmin()), 1
                elif left <= 0:
                    values, level = sums / total, math.log(t + 1)
                    if index == "ucb":
                        bound = values + np.sqrt(2 * level * (0.25 + variance) / total)
                    else:
                        costs = [(n * cost, n * cost) for n in total]
                        bound = _largest(values, total, total, costs, math.exp(level))
                    standing = int(np.lexsort((total, -bound))[0])
                    left = max(1, total[standing] // 10)
            return float((means.max() - means) @ total)

        return np.array([play() for _ in range(runs)])

    return reference


def ldp_imed(
    budget: Budget | None,
    means: np.ndarray,
    horizon: int,
    runs: int,
    rng: np.random.Generator,
    known: int = 0,
) -> np.ndarray:
    """IMED on single reports, chosen for a tenth of an arm's reports before."""
    laplace = isinstance(budget, PureDP)
    scale = laplace_scale(budget) if laplace else gaussian_std(budget)
    with np.errstate(divide="ignore"):
        noise = -np.log1p(-np.minimum((scale * TILTS) ** 2, 1)) if laplace else None
    noise = scale**2 * TILTS**2 / 2 if noise is None else noise

    def play() -> float:
        sums, total, t = np.zeros(len(means)), np.zeros(len(means), int), 0
        while t < horizon:
            arm = t
            if t >= len(means):
                costs = [(n * noise, n * noise) for n in total]
                apart = -_imed(sums / total, np.full(len(means), 4.0), total, costs, float(t))
                plain = apart + np.log(total)
                index = _planned(apart, total, 3 * (known - t)) if t < known else plain
                arm = int(index.argmin())
            size = min(max(1, total[arm] // 10), horizon - t)
            added = scale * (rng.laplace(size=size) if laplace else rng.normal(size=size))
            sums[arm] += rng.binomial(size, means[arm]) + added.sum()
            total[arm], t = total[arm] + size, t + size
        return float((means.max() - means) @ total)

    return np.array([play() for _ in range(runs)])


# Searches for the best arm, after which what they found is played ------------------------------


def _price(j: int) -> float:
    return math.log((j + 19) * (j + 20) / 20)


def _exponential_tilts(n: int, guess: float, scale: float, laplace: bool) -> np.ndarray:
    """Those of a batch: the best for rewards of that variance, below 28 values."""
    u = np.geomspace(0.004, 4, 28)
    if not laplace or scale == 0:
        return u * n * guess / (n * guess + scale**2)
    low, high = np.zeros(28), np.minimum(u, 1 / scale)
    for _ in range(40):
        middle = (low + high) / 2
        more = (u - middle) * n * guess * (1 - (scale * middle) ** 2) > 2 * middle * scale**2
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return low


def merged_top_two(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Top Two by mixtures of 28 exponential martingales, on a grid of means, with failure
    probability 0.1, on batches after which the evidence should suffice.
    """
    laplace, k, grid = isinstance(budget, PureDP), len(means), np.linspace(0, 1, 401)
    scale = laplace_scale(budget) if laplace else gaussian_std(budget)
    variance, bar = scale**2 * (2 if laplace else 1), math.log((k - 1) / 0.1)

    def guess_of(batches: list) -> float:
        if not batches:
            return 0.15
        n, y = sum(size for size, *_ in batches), sum(total for _, total, _ in batches)
        mean, worth = np.clip(y / n, 0, 1), n * n * 0.15 / (n * 0.15 + variance * len(batches))
        guess = (5 * 0.15 + worth * mean * (1 - mean)) / (5 + worth)
        return float(np.clip(guess, 0.25 / 32, 0.25))

    def evidence(batches: list, p: np.ndarray, *, up: bool) -> np.ndarray:
        terms = np.zeros((28, len(p)))
        for n, total, tilts in batches:
            cost = (scale * tilts) ** 2 / 2 if not laplace else -np.log1p(-((scale * tilts) ** 2))
            terms -= (tilts * (n - total if up else total) + cost)[:, None]
            terms -= n * np.log1p(p * np.expm1(-tilts)[:, None])
        return logsumexp(terms, axis=0) - math.log(28)

    def play() -> float:
        arms = [[] for _ in means]
        total, t, arm, near = np.zeros(k, int), 0, 0, 0.0
        while t < horizon:
            guess = guess_of(arms[arm])
            noisy = variance / (variance + guess * total[arm]) if variance else 0
            growth = ((bar + 3) / max(near, 1e-9)) ** (1 / (1 + noisy)) - 1
            growth = np.clip(growth, 0.1 + 0.4 * noisy, 0.5 + 1.5 * noisy)
            size = max(10, math.ceil(4 * scale), math.ceil(growth * total[arm]))
            size = min(size, horizon - t)
            noise = scale * (rng.laplace() if laplace else rng.normal())
            tilts = _exponential_tilts(size, guess, scale, laplace)
            arms[arm].append((size, rng.binomial(size, means[arm]) + noise, tilts))
            total[arm], t = total[arm] + size, t + size
            if (total == 0).any():
                arm = int((total == 0).argmax())
                continue
            sizes = [np.array([n for n, *_ in one], float) for one in arms]
            w = [1 / (1 / (4 * n) + variance / n**2) for n in sizes]
            sums = [np.array([y for _, y, _ in one]) for one in arms]
            pairs = list(zip(w, sums, sizes, strict=True))
            values = np.array([one @ (y / n) / one.sum() for one, y, n in pairs])
            v = np.array(
                [
                    one**2 @ (guess_of(batches) / n + variance / n**2) / one.sum() ** 2
                    for (one, _, n), batches in zip(pairs, arms, strict=True)
                ]
            )
            best = int(values.argmax())
            others = [other for other in range(k) if other != best]
            up = evidence(arms[best], 1 - grid, up=True)
            z = [(up + evidence(arms[other], grid, up=False)).min() for other in others]
            if min(z) >= bar:
                total[best] += horizon - t
                break
            normal = (values[best] - values[others]) ** 2 / 2 / (v[best] + v[others])
            found = np.minimum(normal, np.maximum(z, 0) + 3)
            closest = int((found + np.log(total[others])).argmin())
            near, shares = found[closest], total[others] / total[best] * v[best] / v[others]
            arm = best if shares.sum() > 1 else others[closest]
        return float((means.max() - means) @ total)

    return np.array([play() for _ in range(runs)])


def ldp_top_two(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Top Two on single reports, with failure probability 0.1, on a grid of means."""
    laplace, k, grid = isinstance(budget, PureDP), len(means), np.linspace(0, 1, 401)
    scale = laplace_scale(budget) if laplace else gaussian_std(budget)
    variance, bar = scale**2 * (2 if laplace else 1), math.log((k - 1) / 0.1)
    tilts = _exponential_tilts(1, 0.15, scale, laplace)
    cost = -np.log1p(-((scale * tilts) ** 2)) if laplace else (scale * tilts) ** 2 / 2

    def evidence(n: int, total: float, p: np.ndarray) -> np.ndarray:
        psi = np.log1p(np.outer(p, np.expm1(-tilts)))
        return logsumexp(-tilts * total - n * (psi + cost), axis=1) - math.log(28)

    def play() -> float:
        n, y, t, arm, size = np.zeros(k, int), np.zeros(k), 0, 0, 10
        while t < horizon:
            size = min(size, horizon - t)
            noise = scale * (rng.laplace(size=size) if laplace else rng.normal(size=size))
            n[arm], y[arm] = n[arm] + size, y[arm] + rng.binomial(size, means[arm]) + noise.sum()
            t, near = t + size, 0.0
            if (n == 0).any():
                arm, size = int((n == 0).argmax()), 10
                continue
            values, worth = y / n, n * 0.15 / (0.15 + variance)
            mean = np.clip(values, 0, 1)
            guess = np.clip((0.75 + worth * mean * (1 - mean)) / (5 + worth), 0.25 / 32, 0.25)
            v, best = (guess + variance) / n, int(values.argmax())
            others = [other for other in range(k) if other != best]
            up = evidence(n[best], n[best] - y[best], 1 - grid)
            z = [(up + evidence(n[other], y[other], grid)).min() for other in others]
            if min(z) >= bar:
                n[best] += horizon - t
                break
            normal = (values[best] - values[others]) ** 2 / 2 / (v[best] + v[others])
            found = np.minimum(normal, np.maximum(z, 0) + 3)
            closest = int((found + np.log(n[others])).argmin())
            near, shares = found[closest], n[others] / n[best] * v[best] / v[others]
            arm = best if shares.sum() > 1 else others[closest]
            growth = np.clip((bar + 3) / max(near, 1e-9) - 1, 0.1, 0.5)
            size = max(10, math.ceil(growth * n[arm]))
        return float((means.max() - means) @ n)

    return np.array([play() for _ in range(runs)])


def adap_tt(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Azize, Jourdan, Al Marjani & Basu (2023), AdaP-TT, with failure probability 0.1 and the
    threshold of the package: all runs at a time, with those that have stopped.
    """
    k, scale, shape, every = len(means), laplace_scale(budget), (runs, len(means)), np.arange(runs)
    mean, size, fresh, total, led, own = (np.zeros(shape) for _ in range(6))
    plays, phase, over = np.zeros(shape), np.zeros(shape, int), np.full(runs, -1)
    log = np.array([_price(max(j, 1)) for j in range(60)])
    for t in range(horizon):
        with np.errstate(divide="ignore", invalid="ignore"):
            log_t = np.log((plays - fresh).sum(axis=1, keepdims=True))
            index = mean + np.sqrt(log_t / (2 * size)) + scale * log_t / size
            leader = index.argmax(axis=1)
            lead = mean[every, leader][:, None] - mean
            spread = 1 / plays[every, leader][:, None] + 1 / plays
            cost = lead / np.sqrt(spread)
        cost[every, leader] = np.inf
        leads = own[every, leader] <= 0.5 * (led[every, leader] + 1)
        arm = np.where(leads, leader, cost.argmin(axis=1))
        arm = np.where(over >= 0, over, arm) if t >= k else np.full(runs, t)
        led[every, leader] += t >= k
        own[every, leader] += (arm == leader) & (t >= k)
        total[every, arm] += rng.random(runs) < means[arm]
        fresh[every, arm] += 1
        plays[every, arm] += 1
        full = (fresh[every, arm] >= np.maximum(plays[every, arm] - fresh[every, arm], 1)) & (
            over < 0
        )
        who, which = every[full], arm[full]
        n = fresh[who, which]
        mean[who, which] = (total[who, which] + scale * rng.laplace(size=len(who))) / n
        size[who, which], total[who, which], fresh[who, which] = n, 0, 0
        phase[who, which] += 1
        if t + 1 < k:
            continue
        best = mean.argmax(axis=1)
        level = math.log(2 * (k - 1) / 0.1) + log[phase[every, best]][:, None] + log[phase]
        v = 1 / size[every, best][:, None] + 1 / size
        passed = mean[every, best][:, None] - mean >= np.sqrt(level * v / 2) + scale * v * level
        passed[every, best] = True
        over = np.where((over < 0) & full & passed.all(axis=1), best, over)
    return plays @ (means.max() - means)


def halving(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Karnin, Koren & Somekh (2013), Figure 1, with 1,000 rounds: in each of two phases 500 for
    three arms, and what is left for two; sums weighted by their precision.
    """
    laplace = isinstance(budget, PureDP)
    scale = laplace_scale(budget) if laplace else gaussian_std(budget)
    draw = rng.laplace if laplace else rng.standard_normal
    plays, value, weight = (np.zeros((runs, 3)) for _ in range(3))
    alive = np.ones((runs, 3), bool)
    for n in (166, 251):
        sums = rng.binomial(n, means, (runs, 3)) + scale * draw(size=(runs, 3))
        w = 1 / (1 / (4 * n) + scale**2 * (2 if laplace else 1) / n**2)
        value, weight = value + w * sums / n, weight + w
        plays += alive * n
        worst = np.where(alive, value / weight, np.inf)[:, ::-1].argmin(axis=1)
        alive[np.arange(runs), 2 - worst] = False
    plays += alive * (horizon - plays.sum(axis=1, keepdims=True))
    return plays @ (means.max() - means)


# Elimination ---------------------------------------------------------------------------------


def dp_se(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Sajed & Sheffet (2019), with failure probability 0.9 to keep epochs short."""
    scale, beta = laplace_scale(budget), 0.9

    def play() -> float:
        alive, t, epoch, regret = list(range(len(means))), 0, 1, 0.0
        gaps = means.max() - means
        while t < horizon:
            if len(alive) == 1:
                return regret + gaps[alive[0]] * (horizon - t)
            size, gap = len(alive), 2.0**-epoch
            wanted = max(
                32 * np.log(8 * size * epoch**2 / beta) / gap**2,
                8 * np.log(4 * size * epoch**2 / beta) * scale / gap,
            )
            n = int(np.ceil(1 + wanted))
            noisy = {}
            for arm in alive:
                played = min(n, horizon - t)
                t += played
                regret += gaps[arm] * played
                noisy[arm] = (rng.binomial(n, means[arm]) + scale * rng.laplace()) / n
            h = np.sqrt(np.log(8 * size * epoch**2 / beta) / (2 * n))
            c = np.log(4 * size * epoch**2 / beta) * scale / n
            best = max(noisy.values())
            alive = [arm for arm in alive if best - noisy[arm] <= 2 * h + 2 * c]
            epoch += 1
        return regret

    return np.array([play() for _ in range(runs)])


# Elimination on a design of linear arms ------------------------------------------------------

ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.8]])  # of the registered examples
FAILURE = 0.9  # to keep phases short

Variances = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[float, float]]


def widths(a: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.einsum("ai,ij,aj->a", a, np.linalg.inv(v), a)


def on_sums(a: np.ndarray, b: np.ndarray, v: np.ndarray) -> tuple[float, float]:
    """With unit noise on the sums of the played arms b: the largest variance of the mean of an arm
    a that is estimated, and the largest coefficient of one noise variable in it.
    """
    coefficients = a @ np.linalg.inv(v) @ b.T
    return float((coefficients**2).sum(axis=1).max()), float(np.abs(coefficients).max())


def on_phi(a: np.ndarray, b: np.ndarray, v: np.ndarray) -> tuple[float, float]:
    """With noise on V^-1/2 sum a r, of the standard deviation that one reward moves it."""
    return float(widths(a, v).max() * widths(b, v).max()), 0.0


def on_theta(a: np.ndarray, b: np.ndarray, v: np.ndarray) -> tuple[float, float]:
    """With noise on the estimate of theta."""
    return float((a**2).sum(axis=1).max() * ((b @ np.linalg.inv(v)) ** 2).sum(axis=1).max()), 0.0


def chernoff(g: float, q: float, w: float, noise: float, log: float) -> float:
    return float(np.sqrt(2 * log * (g / 4 + noise**2 * q)))


def heavy(g: float, q: float, w: float, noise: float, log: float) -> float:
    """The least L / t + t v / 2 over t up to 1 / (sqrt 2 noise w)."""
    v = g / 4 + 4 * np.log(2) * noise**2 * q
    t = min(np.sqrt(2 * log / v), 1 / max(np.sqrt(2) * noise * w, 1e-300))
    return float(log / t + t * v / 2)


def _phased(
    shape: Variances,
    error: Callable[..., float] | None,
    tolerance: float,
    scale: Callable[..., float],
) -> Reference:
    """Phases on a G-optimal design; without a bound on the error their lengths are those of Azize &
    Basu's eq. (4).
    """

    @lru_cache
    def plan(alive: tuple[int, ...], phase: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
        a, beta = ARMS[list(alive)], 0.5**phase
        pi = g_optimal(a, tolerance).weights
        log = np.log(2 * len(ARMS) * phase * (phase + 1) / FAILURE)

        def width(weights: np.ndarray) -> float:
            v = (a.T * weights) @ a
            assert error is not None
            return error(float(widths(a, v).max()), *shape(a, a[weights > 0], v), noise, log)

        if error is None:
            f = 2 + 2 * np.sqrt(2 * log) + 2 * log
            c = 4 / beta**2 * (log + np.log(2)) + 4 / beta * noise * np.sqrt(f)
        else:
            c = np.exp(brentq(lambda log_c: width(np.exp(log_c) * pi) - beta, -5, 30, xtol=1e-12))
        rounds = np.ceil(c * pi * (1 - 1e-9))
        while error is not None and width(rounds) > beta * (1 + 1e-9):
            c *= max(width(rounds) / beta, 1.001)
            rounds = np.ceil(c * pi)
        return rounds.astype(int), np.linalg.inv((a.T * rounds) @ a)

    def reference(
        budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
    ) -> np.ndarray:
        noise, gaps = scale(budget), means.max() - means

        def draw(size: int) -> np.ndarray:
            return noise * (rng.laplace(size=size) if error is heavy else rng.normal(size=size))

        def play() -> float:
            alive, t, phase, regret = tuple(range(len(ARMS))), 0, 1, 0.0
            while t < horizon:
                if len(alive) == 1:
                    return regret + gaps[alive[0]] * (horizon - t)
                rounds, inverse = plan(alive, phase, noise)
                a = ARMS[list(alive)]
                for arm, n in zip(alive, rounds, strict=True):
                    played = min(int(n), horizon - t)
                    t += played
                    regret += gaps[arm] * played
                sums = rng.binomial(rounds, means[list(alive)]).astype(float)
                if shape is on_sums:
                    theta = inverse @ a.T @ (sums + np.where(rounds > 0, draw(len(alive)), 0.0))
                else:
                    root = np.linalg.cholesky(inverse) if shape is on_phi else np.eye(2)
                    moves = np.linalg.norm(np.linalg.solve(root, inverse @ a[rounds > 0].T), axis=0)
                    theta = inverse @ a.T @ sums + moves.max() * root @ draw(2)
                estimates = a @ theta
                alive = tuple(
                    arm
                    for arm, x in zip(alive, estimates, strict=True)
                    if estimates.max() - x <= 2 * 0.5**phase
                )
                phase += 1
            return regret

        return np.array([play() for _ in range(runs)])

    return reference


# A decision in every round -------------------------------------------------------------------


def _every_round(
    index: Index,
    noise: Callable[[], np.ndarray],
    means: np.ndarray,
    horizon: int,
    runs: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """All runs at a time: learn each (noisy) reward as it comes; ``index(mean, plays, t)`` has
    shape (runs, arms).
    """
    plays, sums, every = np.zeros((runs, len(means))), np.zeros((runs, len(means))), np.arange(runs)
    for t in range(horizon):
        arm = np.argmax(index(sums / np.maximum(plays, 1), plays, float(t)), axis=1)
        sums[every, arm] += (rng.random(runs) < means[arm]) + noise()
        plays[every, arm] += 1
    return plays @ (means.max() - means)


def _silent() -> np.ndarray:
    return np.zeros(1)


def _first_untried(index: np.ndarray, untried: np.ndarray) -> np.ndarray:
    """Arms that have to be played come first, in their order."""
    return np.where(untried, 1e9 - np.arange(index.shape[1]), index)


def ucb1(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Auer, Cesa-Bianchi & Fischer (2002): mean + sqrt(2 ln t / N)."""

    def index(mean: np.ndarray, plays: np.ndarray, t: float) -> np.ndarray:
        bonus = np.sqrt(2 * np.log(max(t, 1.0)) / np.maximum(plays, 1))
        return _first_untried(mean + bonus, plays == 0)

    return _every_round(index, _silent, means, horizon, runs, rng)


def kl_ucb(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Garivier & Cappé (2011) with c = 0."""

    def index(mean: np.ndarray, plays: np.ndarray, t: float) -> np.ndarray:
        return _first_untried(
            kl_index(mean, np.log(max(t, 1.0)) / np.maximum(plays, 1)), plays == 0
        )

    return _every_round(index, _silent, means, horizon, runs, rng)


def thompson(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Agrawal & Goyal (2012): Beta posteriors from a uniform prior."""

    def index(mean: np.ndarray, plays: np.ndarray, t: float) -> np.ndarray:
        return rng.beta(1 + mean * plays, 1 + (1 - mean) * plays)

    return _every_round(index, _silent, means, horizon, runs, rng)


def ldp_ucb(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Ren et al. (2020), LDP-UCB-L; with Gaussian noise of standard deviation s, mean + sqrt((2 + 8
    s^2) ln t / N).
    """
    heavy = isinstance(budget, PureDP)
    scale = laplace_scale(budget) if heavy else gaussian_std(budget)

    def noise() -> np.ndarray:
        return scale * (rng.laplace(size=runs) if heavy else rng.normal(size=runs))

    def index(mean: np.ndarray, plays: np.ndarray, t: float) -> np.ndarray:
        pressure = np.log(max(t, 1.0)) / np.maximum(plays, 1)
        forced = (plays <= 4 * np.log(t + 1)) | (plays == 0) if heavy else plays == 0
        bonus = (
            np.sqrt(2 * pressure) + np.sqrt(32 * scale**2 * pressure)
            if heavy
            else np.sqrt((2 + 8 * scale**2) * pressure)
        )
        return _first_untried(mean + bonus, forced)

    return _every_round(index, noise, means, horizon, runs, rng)


def lazy_dp_ts(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Hu & Hegde (2022), Lazy-DP-TS: an arm's mean is replaced whenever it has twice as many fresh
    rewards as in its last batch.
    """
    scale, shape, every = laplace_scale(budget), (runs, len(means)), np.arange(runs)
    mean, batch, fresh, total, plays = (np.zeros(shape) for _ in range(5))
    for t in range(horizon):
        size = np.maximum(batch, 1)
        raised = np.clip(mean + 3 * np.log(max(t, 1)) * scale / size, 0, 1)
        arm = np.argmax(
            _first_untried(rng.beta(raised * batch + 1, (1 - raised) * batch + 1), batch == 0),
            axis=1,
        )
        total[every, arm] += rng.random(runs) < means[arm]
        fresh[every, arm] += 1
        plays[every, arm] += 1
        full = fresh >= np.maximum(2 * batch, 1)
        mean = np.where(
            full, (total + scale * rng.laplace(size=shape)) / np.maximum(fresh, 1), mean
        )
        batch = np.where(full, fresh, batch)
        total, fresh = np.where(full, 0, total), np.where(full, 0, fresh)
    return plays @ (means.max() - means)


def dp_ts(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Hu & Hegde (2022), DP-TS, on the registered example's tree over 30,000 vectors: 15 levels, of
    which a release sums up to 14 nodes.
    """
    heavy, shape, every = isinstance(budget, PureDP), (runs, len(means)), np.arange(runs)
    scale = 15 * laplace_scale(budget) if heavy else math.sqrt(15) * gaussian_std(budget)
    std, widest = math.sqrt(28 if heavy else 14) * scale, scale if heavy else 0.0
    plays, sums, noise, nodes = np.zeros(shape), np.zeros(shape), np.zeros(shape), {}
    for t in range(horizon):
        log = 3 * math.log(max(t, 1))
        raised = sums + noise + std * math.sqrt(2 * log) + widest * log
        mean = np.clip(raised / np.maximum(plays, 1), 0, 1)
        draws = rng.beta(1 + mean * plays, 1 + (1 - mean) * plays)
        arm = np.argmax(_first_untried(draws, plays == 0), axis=1)
        sums[every, arm] += rng.random(runs) < means[arm]
        plays[every, arm] += 1
        first = ((t + 1) & -(t + 1)).bit_length() - 1
        nodes[first] = scale * (rng.laplace(size=shape) if heavy else rng.normal(size=shape))
        noise = sum(nodes[level] for level in range(15) if (t + 1) >> level & 1)
    return plays @ (means.max() - means)


def fixed_linucb(
    budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Abbasi-Yadkori, Pál & Szepesvári (2011), Theorem 2, with lambda = |theta| = 1, on the
    registered example's arms.
    """
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.8]])
    v, b, regret = np.tile(np.eye(2), (runs, 1, 1)), np.zeros((runs, 2)), np.zeros(runs)
    for _ in range(horizon):
        inverse = np.linalg.inv(v)
        theta = np.einsum("rij,rj->ri", inverse, b)
        widths = np.sqrt(np.einsum("ki,rij,kj->rk", arms, inverse, arms))
        radius = 0.5 * np.sqrt(2 * np.log(1 / 0.001) + np.log(np.linalg.det(v))) + 1.0
        arm = (theta @ arms.T + radius[:, None] * widths).argmax(axis=1)
        reward = rng.random(runs) < means[arm]
        v += np.einsum("ri,rj->rij", arms[arm], arms[arm])
        b += arms[arm] * reward[:, None]
        regret += means.max() - means[arm]
    return regret


def merged_linear_imed(
    budget: Budget | None,
    means: np.ndarray,
    horizon: int,
    runs: int,
    rng: np.random.Generator,
    known: int = 0,
) -> np.ndarray:
    """IMED on a regression of batch means, each weighted by its inverse variance, on the registered
    example's arms; lambda = 1, growth 1/2, alpha 0.9.  That of rewards is the largest for means
    within two standard deviations, at least a thousandth of 1/4.
    """
    arms, laplace = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.8]]), isinstance(budget, PureDP)
    scale = laplace_scale(budget) if laplace else gaussian_std(budget)
    variance = scale**2 * (2 if laplace else 1)

    def play() -> float:
        v, b, t, regret = 4 * np.eye(2), np.zeros(2), 0, 0.0
        while t < horizon:
            values = arms @ np.linalg.solve(v, b)
            error = np.einsum("ki,ij,kj->k", arms, np.linalg.inv(v), arms)
            off = np.minimum(np.abs(values - 0.5), 0.5) - 2 * np.sqrt(error)
            scatter = np.maximum(0.25 - np.maximum(off, 0) ** 2, 0.25e-3)
            counted = np.minimum(scatter / error, t + 1)
            apart = (values.max() - values) ** 2 / (1.8 * error)
            plain = apart + np.log(counted)
            index = _planned(apart, counted, 3 * (known - t)) if t < known else plain
            arm = int(index.argmin())
            one, s = error[arm], scatter[arm]
            n = math.ceil((s + math.sqrt(s**2 + 8 * variance * one)) / (4 * one))
            if s / one >= t + 1:
                n = math.ceil((t + 1) / 2)
            played = min(n, horizon - t)
            noise = scale * (rng.laplace() if laplace else rng.normal())
            mean = (rng.binomial(played, means[arm]) + noise) / n
            weight = 1 / (s / n + variance / n**2)
            v += weight * np.outer(arms[arm], arms[arm])
            b += weight * mean * arms[arm]
            regret += played * (means.max() - means[arm])
            t += n
        return regret

    return np.array([play() for _ in range(runs)])


# Noisy batch losses --------------------------------------------------------------------------

# Yields the arms of all runs, shape (runs,), and is sent their losses; told K, runs, and scale and
# variance of a loss's noise.
Learner = Generator[np.ndarray, np.ndarray, None]


def _in_batches(learner: Callable[..., Learner]) -> Reference:
    """Faster Rates for Private Adversarial Bandits, Algorithm 1: one arm per batch, then its mean
    loss plus noise.
    """

    def play(
        budget: Budget | None, means: np.ndarray, horizon: int, runs: int, rng: np.random.Generator
    ) -> np.ndarray:
        gaussian = isinstance(budget, ZCDP)
        scale = gaussian_std(budget) if gaussian else laplace_scale(budget)
        size = max(int(np.ceil(scale - 1e-9)), 1)
        s = scale / size
        player = learner(len(means), runs, s, s**2 if gaussian else 2 * s**2, rng)
        arm, regret = next(player), np.zeros(runs)
        for t in range(0, horizon, size):
            n = min(size, horizon - t)
            regret += n * (means.max() - means[arm])
            noise = scale * (rng.normal(size=runs) if gaussian else rng.laplace(size=runs))
            if n == size:
                arm = player.send(1 - (rng.binomial(n, means[arm]) + noise) / n)
        return regret

    return play


def _drawn(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.minimum((rng.random((len(p), 1)) >= np.cumsum(p, axis=1)).sum(axis=1), p.shape[1] - 1)


def _softmax(x: np.ndarray) -> np.ndarray:
    w = np.exp(x - x.max(axis=1, keepdims=True))
    return w / w.sum(axis=1, keepdims=True)


def _tsallis_leader(x: np.ndarray) -> np.ndarray:
    """(x + nu)^-2 with sum one, by bisection."""
    x = x - x.min(axis=1, keepdims=True)
    low, high = np.ones((len(x), 1)), np.full((len(x), 1), x.shape[1] ** 0.5)
    for _ in range(45):
        nu = (low + high) / 2
        heavy = ((x + nu) ** -2.0).sum(axis=1, keepdims=True) > 1
        low, high = np.where(heavy, nu, low), np.where(heavy, high, nu)
    p = (x + low) ** -2.0
    return p / p.sum(axis=1, keepdims=True)


def _doubled(t: int) -> int:
    """The smallest power of two above t."""
    return 2 ** int(np.floor(np.log2(t)) + 1) if t else 1


def exp3(k: int, runs: int, s: float, variance: float, rng: np.random.Generator) -> Learner:
    """EXP3 with mixing, tuned to a doubling horizon."""
    losses, p, every = np.zeros((runs, k)), np.full((runs, k), 1 / k), np.arange(runs)
    t = 0
    while True:
        arm = _drawn(p, rng)
        losses[every, arm] += (yield arm) / p[every, arm]
        t += 1
        n = _doubled(t)
        eta = np.sqrt(np.log(k) / (2 * k * n * (1 + 2 * s**2 + s * np.log(k * n))))
        gamma = min(2 * eta * s * k * np.log(k * n), 0.5)
        p = (1 - gamma) * _softmax(-eta * losses) + gamma / k


def exp3_ix(k: int, runs: int, s: float, variance: float, rng: np.random.Generator) -> Learner:
    """Neu (2015), with eta_t = sqrt(ln K / (K t)) and gamma_t = eta_t / 2."""
    losses, every, t = np.zeros((runs, k)), np.arange(runs), 1
    while True:
        eta = np.sqrt(np.log(k) / (k * t))
        p = _softmax(-eta * losses)
        arm = _drawn(p, rng)
        losses[every, arm] += (yield arm) / (p[every, arm] + eta / 2)
        t += 1


def htinf(k: int, runs: int, s: float, variance: float, rng: np.random.Generator) -> Learner:
    """Huang, Dai & Huang (2022), Algorithm 1 with alpha = 2 and sigma^2 = 1 + the variance of the
    noise.
    """
    losses, every, t, sigma = np.zeros((runs, k)), np.arange(runs), 1, np.sqrt(1 + variance)
    while True:
        p = _tsallis_leader(losses / (sigma * np.sqrt(t)))
        arm = _drawn(p, rng)
        loss = yield arm
        mine = p[every, arm]
        kept = np.abs(loss) <= 0.20629947401590032 * sigma * np.sqrt(t * mine)
        losses[every, arm] += np.where(kept, loss / mine, 0)
        t += 1


def tsallis_inf(k: int, runs: int, s: float, variance: float, rng: np.random.Generator) -> Learner:
    """Zimmert & Seldin (2021), importance weighting: x_i = 4 / (eta_t (L_i + nu))^2 with eta_t = 2
    / sqrt(t).
    """
    losses, every, t = np.zeros((runs, k)), np.arange(runs), 1
    while True:
        p = _tsallis_leader(losses / np.sqrt(t))
        arm = _drawn(p, rng)
        losses[every, arm] += (yield arm) / p[every, arm]
        t += 1


def ftpl(k: int, runs: int, s: float, variance: float, rng: np.random.Generator) -> Learner:
    """Neu & Bartók (2016) with Laplace perturbations, tuned to a doubling horizon."""
    losses, every, t = np.zeros((runs, k)), np.arange(runs), 0
    while True:
        n = _doubled(t)
        most = 1 + 2 * s * np.log(k * n)
        eta = np.sqrt(6 * np.log(k) / (k * n * (4 + 8 * s**2 + most / np.e)))
        limit = max(int(1 / (eta * most)), 1)
        arm = np.argmin(losses + rng.laplace(scale=1 / eta, size=(runs, k)), axis=1)
        tries, open_ = np.full(runs, limit), np.ones(runs, bool)
        for i in range(1, limit):
            again = np.argmin(losses + rng.laplace(scale=1 / eta, size=(runs, k)), axis=1) == arm
            tries[open_ & again] = i
            open_ &= ~again
            if not open_.any():
                break
        losses[every, arm] += (yield arm) * tries
        t += 1


REFERENCES: dict[str, Reference] = {
    "AdaCUCB": adac_ucb,
    "AdaPUCB": adap_ucb,
    "AdaPKLUCB": adap_klucb,
    "AdaPUCBSDP": adap_ucb,
    "AdaPKLUCBSDP": adap_klucb,
    "DPSE": dp_se,
    "DPSESDP": dp_se,
    "DPSEBAI": dp_se,
    "AdaPTT": adap_tt,
    "MergedTopTwo": merged_top_two,
    "MergedTopTwoSDP": merged_top_two,
    "SequentialHalving": halving,
    "SequentialHalvingSDP": halving,
    "UCB1": ucb1,
    "KLUCB": kl_ucb,
    "ThompsonSampling": thompson,
    "LDPIMED": ldp_imed,
    "LDPIMED/1000": partial(ldp_imed, known=1000),
    "LDPUCB": ldp_ucb,
    "LDPTopTwo": ldp_top_two,
    "DPTS": dp_ts,
    "LazyDPTS": lazy_dp_ts,
    "DPIMED": _adding(optimistic=False),
    "DPKLUCB": _adding(optimistic=True),
    "MergedIMED": _merging(_imed),
    # what rewards of 0 and 1 leave between the ends is nothing, whatever is released of it
    "MergedIMED/released": _merging(_imed),
    "MergedIMED/2000": _merging(_imed, known=2000),
    "MergedIMEDSDP": _merging(_imed),
    "DiscountedIMED": discounted_imed,
    "MergedThompson": merged_thompson,
    "MergedThompson/released": merged_thompson,
    "MergedKLUCB": _merging(_largest),
    "FixedLinUCB": fixed_linucb,
    "Arms/UCB-Forget": _held("ucb", "forget", 40),
    "Arms/UCB-Discount": _held("ucb", "discount"),
    "Arms/KLUCB-Forget": _held("kl", "forget"),
    "ArmsShuffled/KLUCB": _held("kl", "merge"),
    "ArmsLocal/KLUCB": _by_bound("kl"),
    "ArmsLocal/UCB": _by_bound("ucb"),
    "MergedLinearIMED": merged_linear_imed,
    "MergedLinearIMED/2000": partial(merged_linear_imed, known=2000),
    "GOPE": _phased(on_sums, chernoff, 1e-6, gaussian_std),
    "AdaCGOPE": _phased(on_phi, chernoff, 1e-6, gaussian_std),
    "AdaCGOPE/published": _phased(on_phi, None, 1e-6, gaussian_std),
    "AdaRGOPEVar": _phased(on_sums, None, 1e-6, gaussian_std),
    "OutputGOPE": _phased(on_theta, chernoff, 1e-6, gaussian_std),
    "HannaGOPE": _phased(on_sums, heavy, 1.0, laplace_scale),
    "DPDPE": _phased(on_sums, chernoff, 1.0, gaussian_std),
    "EXP3": _in_batches(exp3),
    "EXP3IX": _in_batches(exp3_ix),
    "HTINF": _in_batches(htinf),
    "BatchConversion": _in_batches(htinf),
    "TsallisINF": _in_batches(tsallis_inf),
    "FTPL": _in_batches(ftpl),
}
