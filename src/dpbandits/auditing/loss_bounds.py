"""Lower confidence bounds on the privacy loss, from scores of two neighbouring worlds.

A rule says "world 1" of scores from ``high`` on, "world 0" of scores up to ``low``, and nothing of
those between.  The rule must be chosen without the scores that are counted.  Then, each at level 1
- alpha:

* **epsilon, pure DP.**  Each run's world is a fair coin.  Given the run's data, either world has
  probability at most e^epsilon / (1 + e^epsilon).  So of r guesses the right ones are at most
  binomial.  This gives one Clopper-Pearson bound on that probability, and abstaining is free.
* **epsilon at delta.**  P(S | 1) <= e^epsilon P(S | 0) + delta for every event S.  So epsilon is at
  least ln((P(S | 1) - delta) / P(S | 0)), with Clopper-Pearson bounds at alpha / 2 for both.
* **mu.** Against mu-GDP, a test with false-alarm rate q misses at least a share Phi(Phi^-1(1 - q) -
  mu).  So mu is at least Phi^-1(1 - q) - Phi^-1(missed).  It refutes claims of Gaussian noise (Nasr
  et al. 2023), and says nothing of epsilon and delta of any other.
* **Renyi divergences.**  The divergences of an event of two outcomes are at most those of the
  released values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import beta, norm

from ..errors import ArgumentError
from ..privacy.budgets import Budget, checked_budget
from ..validation import integer, real

_CANDIDATES = 80  # thresholds that are tried on either side
_CELLS = 1 << 14  # of the grid on which loss distributions are added up
_TAIL = 9.0  # standard deviations of a Gaussian loss that are looked at


class Counts(NamedTuple):
    """Counts of guesses by world, over so many runs of each; for several rules."""

    one_in_one: np.ndarray
    one_in_zero: np.ndarray
    zero_in_one: np.ndarray
    zero_in_zero: np.ndarray
    ones: float
    zeros: float


def _at_least(count: np.ndarray, n: np.ndarray | float, alpha: float) -> np.ndarray:
    """The Clopper-Pearson lower bound on a probability, one-sided."""
    some = np.maximum(count, 1e-9)
    return np.where(count > 0, beta.ppf(alpha, some, np.maximum(n - count + 1.0, 1e-9)), 0.0)


def _at_most(count: np.ndarray, n: np.ndarray | float, alpha: float) -> np.ndarray:
    return 1.0 - _at_least(n - count, n, alpha)


def pure_epsilon(counts: Counts, alpha: float) -> np.ndarray:
    """epsilon of pure DP, from guesses in runs whose world was a fair coin."""
    right = counts.one_in_one + counts.zero_in_zero
    share = _at_least(right, right + counts.one_in_zero + counts.zero_in_one, alpha)
    return np.log(np.maximum(share, 0.5)) - np.log1p(-np.maximum(share, 0.5))


def _rates(counts: Counts, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """A lower bound on the rate of guess 1 in world 1, and an upper bound on it in world 0."""
    found = _at_least(counts.one_in_one, counts.ones, alpha / 2)
    return found, _at_most(counts.one_in_zero, counts.zeros, alpha / 2)


def epsilon_at(delta: float, counts: Counts, alpha: float) -> np.ndarray:
    """epsilon at a delta."""
    found, false = _rates(counts, alpha)
    return np.log(np.maximum((found - delta) / false, 1.0))


def gaussian_mu(counts: Counts, alpha: float) -> np.ndarray:
    """mu of Gaussian DP."""
    found, false = _rates(counts, alpha)
    return np.maximum(norm.isf(false) + norm.ppf(found), 0.0)


def renyi(orders: np.ndarray, counts: Counts, alpha: float) -> np.ndarray:
    """The largest Renyi divergence by its order that the two outcomes prove, of these orders."""
    p, q = (rate[..., None] for rate in _rates(counts, alpha))
    with np.errstate(divide="ignore", invalid="ignore"):
        one = orders * np.log(p) + (1 - orders) * np.log(q)
        other = orders * np.log1p(-p) + (1 - orders) * np.log1p(-q)
        divergence = logsumexp([one, other], axis=0) / (orders - 1) / orders
    return np.where(p > q, divergence, 0.0).max(axis=-1)


@dataclass(frozen=True)
class Measure:
    """In which currency a loss is measured."""

    symbol: str
    lower: Callable[[Counts, float], np.ndarray]  # a bound at level 1 - alpha, for counts
    abstains: bool = False  # whether runs that are named neither world cost nothing


EPSILON = Measure("ε", pure_epsilon, abstains=True)
MU = Measure("μ", gaussian_mu)
RHO = Measure("ρ", lambda counts, alpha: renyi(np.geomspace(1e-3, 60.0, 60) + 1.0, counts, alpha))


class Claim(NamedTuple):
    """A number that is promised, and how it is refuted."""

    value: float
    measure: Measure


def claim_of(budget: Budget, *, gaussian: bool) -> Claim:
    """The claim of a budget; ``gaussian`` where all noise keeps GDP, continuous or discrete."""
    currency, limit = checked_budget(budget).kept_in(gaussian=gaussian)
    order, delta = budget.order, budget.failure
    if gaussian and currency != "pure":
        squared = {"gdp": limit, "zcdp": 2 * limit, "rdp": 2 * limit / order}[currency]
        return Claim(float(np.sqrt(squared)), MU)
    if delta > 0.0:
        at = Measure(f"ε at δ = {delta:g}", lambda counts, alpha: epsilon_at(delta, counts, alpha))
        return Claim(budget.value, at)
    if currency == "rdp":
        at = Measure(
            f"ε of order {order:g}",
            lambda counts, alpha: order * renyi(np.array([order]), counts, alpha),
        )
        return Claim(limit, at)
    if currency == "gdp":
        return Claim(float(np.sqrt(limit)), MU)
    return Claim(limit, RHO if currency == "zcdp" else EPSILON)


def exposed(moved: float, measure: Measure) -> float:
    """The loss of releases that move so far, in the currency of a claim; nan if it has none."""
    if measure is RHO:
        return moved * moved / 2
    return moved if measure in (EPSILON, MU) else float("nan")


# Rules ------------------------------------------------------------------------------------------


class Weights(NamedTuple):
    """Scores and how often each came up, in increasing order of the score."""

    score: np.ndarray
    in_one: np.ndarray
    in_zero: np.ndarray

    def of_runs(self, runs: float) -> Weights:
        """As often as in so many times as many runs of each world."""
        return Weights(self.score, runs * self.in_one, runs * self.in_zero)


class Rule(NamedTuple):
    """The scores from which on world 1 is guessed, and up to which world 0 is."""

    low: float
    high: float


def weigh(scores: np.ndarray, world: np.ndarray) -> Weights:
    """Bound the loss from the scores of runs; ``world`` has the world of each run."""
    values, place = np.unique(scores, return_inverse=True)
    ones = np.bincount(place, world, values.size)
    return Weights(values, ones, np.bincount(place, minlength=values.size) - ones)


def best_rule(seen: Weights, measure: Measure, alpha: float) -> tuple[Rule, float]:
    """The rule with the largest bound on such scores, and that bound."""
    below = [np.concatenate([[0.0], np.cumsum(part)]) for part in (seen.in_one, seen.in_zero)]
    share = (below[0] + below[1]) / max(below[0][-1] + below[1][-1], 1e-300)
    wanted = np.geomspace(1e-4, 0.5, _CANDIDATES)
    left, right = (
        np.unique(np.clip(np.searchsorted(share, tail) - 1, 0, seen.score.size - 1))
        for tail in (wanted, 1.0 - wanted)
    )
    if measure.abstains:
        low, high = (grid.ravel() for grid in np.meshgrid(left, right))
        low, high = low[low < high], high[low < high]
    else:
        high = np.union1d(left, right)
        low = high - 1
    if not low.size:
        return Rule(-np.inf, np.inf), 0.0
    in_one, in_zero = below
    above, under = [part[-1] - part[high] for part in below], [part[low + 1] for part in below]
    counts = Counts(above[0], above[1], under[0], under[1], in_one[-1], in_zero[-1])
    proved = measure.lower(counts, alpha)
    best = int(np.argmax(proved))
    lowest = seen.score[low[best]] if low[best] >= 0 else -np.inf
    return Rule(float(lowest), float(seen.score[high[best]])), float(proved[best])


def proved(
    scores: np.ndarray, world: np.ndarray, rule: Rule, measure: Measure, alpha: float
) -> float:
    """The lower bound that a rule proves of runs it was not chosen on."""
    one, zero = scores >= rule.high, scores <= rule.low
    said = np.array([np.sum(named & (world == b)) for named in (one, zero) for b in (1, 0)], float)
    ones = float(np.sum(world == 1))
    counts = Counts(said[0], said[1], said[2], said[3], ones, world.size - ones)
    return float(measure.lower(counts, alpha))


def lower_bound(
    scores: np.ndarray, world: np.ndarray, measure: Measure, alpha: float, fitted: int
) -> float:
    """A bound at level 1 - alpha: the first ``fitted`` runs choose rule and sign, others count."""
    counted = (world.size - fitted) / max(fitted, 1)
    options = []
    for sign in (1.0, -1.0):
        seen = weigh(sign * scores[:fitted], world[:fitted])
        rule, found = best_rule(seen.of_runs(counted), measure, alpha)
        options.append((found, sign, rule))
    _, sign, rule = max(options)
    return proved(sign * scores[fitted:], world[fitted:], rule, measure, alpha)


# What is possible -------------------------------------------------------------------------------


def laplace_losses(shifts: Sequence[float] | np.ndarray) -> Weights:
    """The distribution of the privacy loss of Laplace noises, when a record moves each by so many
    of its scales.  One loss is |u| - |u - a| with u = a + noise in world 1.
    """
    amounts = np.abs(np.asarray(shifts, float))
    amounts = amounts[amounts > 1e-12]
    total = max(float(amounts.sum()), 1e-12)
    step = 2 * total / (_CELLS // 2)
    grid = np.arange(-(_CELLS // 2), _CELLS // 2) * step
    law = np.ones(_CELLS // 2 + 1, complex)
    for a, times in zip(*np.unique(amounts, return_counts=True), strict=True):
        law *= np.fft.rfft(np.fft.ifftshift(_one_loss(a, grid, step))) ** times
    ones = np.maximum(np.fft.fftshift(np.fft.irfft(law, _CELLS)), 0.0)
    inside = np.abs(grid) <= total + amounts.size * step
    return _normal(grid[inside], ones[inside])


def _one_loss(a: float, grid: np.ndarray, step: float) -> np.ndarray:
    """In world 1 the loss is a with probability 1/2, at most l with e^((l - a) / 2) / 2 before."""
    law = np.zeros(grid.size)
    edges = np.clip(np.concatenate([grid - step / 2, grid[-1:] + step / 2]), -a, a)
    law += np.diff(0.5 * np.exp((edges - a) / 2))
    for place, mass in ((a, 0.5), (-a, 0.5 * np.exp(-a))):
        i, part = divmod((place - grid[0]) / step, 1.0)
        law[int(i)] += mass * (1 - part)
        law[int(i) + 1] += mass * part
    return law


def gaussian_losses(shifts: Sequence[float] | np.ndarray) -> Weights:
    """The distribution of the privacy loss of Gaussian noises: normal with mean mu^2 / 2 and
    variance mu^2 in world 1.
    """
    mu = max(float(np.linalg.norm(shifts)), 1e-12)
    edges = np.linspace(-_TAIL, _TAIL, 4001)
    centres = mu * mu / 2 + mu * (edges[1:] + edges[:-1]) / 2
    return _normal(centres, np.diff(norm.cdf(edges)))


def _normal(losses: np.ndarray, ones: np.ndarray) -> Weights:
    """In world 0 a loss of l is e^l times as rare as in world 1."""
    zeros = ones * np.exp(-losses)
    return Weights(losses, ones / ones.sum(), zeros / zeros.sum())


def _checked(shifts: Any) -> np.ndarray:
    moved = np.asarray(np.nan)
    with contextlib.suppress(TypeError, ValueError):
        moved = np.asarray(shifts, float)
    if moved.ndim != 1 or not np.isfinite(moved).all():
        raise ArgumentError(f"shifts must be a list of finite numbers, got {shifts!r}", "shifts")
    return moved


_LAWS = {"laplace": laplace_losses, "gaussian": gaussian_losses}


def best_possible(
    shifts: Sequence[float] | np.ndarray,
    *,
    noise: str = "laplace",
    runs: int = 20_000,
    alpha: float = 1e-4,
    measure: Measure | None = None,
) -> float:
    """The lower bound that the best attack on releases may expect of so many runs.

    The score of that attack is the exact likelihood ratio, and all its runs are counted.

    Args:
        shifts: the distance that the record moves each noise variable, in scales of that variable.
        noise: "laplace" or "gaussian".
        runs: per world.
        alpha: one minus the level of the bound.
        measure: of the loss; by default epsilon of Laplace noise, mu of Gaussian noise.

    Returns:
        The bound on the loss that ``measure`` names, at the level 1 - ``alpha``.

    Raises:
        ArgumentError: an argument is out of range.

    Example:
        >>> [round(best_possible([1 / levels] * levels), 2) for levels in (1, 6, 15)]
        [0.95, 0.74, 0.42]
    """
    if noise not in _LAWS:
        raise ArgumentError(f"noise must be laplace or gaussian, got {noise!r}", "noise")
    n = integer("runs", runs, 1)
    expected = _LAWS[noise](_checked(shifts)).of_runs(n)
    chosen = measure or (EPSILON if noise == "laplace" else MU)
    return best_rule(expected, chosen, real("alpha", alpha, 0.0, 1.0, strict=True))[1]
