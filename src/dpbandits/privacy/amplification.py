"""Privacy amplification by shuffling: the guarantee of randomised reports without their order.

Guarantee:

* Protected: the record of one person, from anyone who sees the shuffled batch only.
* Adjacency: one person's record is changed from x to x'.
* Assumed: n people send one report each through the same eps0-DP local randomiser R.

*Clones.*  Fix the records x and x'.  Then

* R(x) and R(x') are mixtures of two laws U and V.  R(x) has weights q = e^eps0 / (e^eps0 + 1) and 1
  - q, and R(x') has them swapped (Kairouz, Oh & Viswanath 2015).
* Everybody else's report has law (U + V) / 2 with probability p = e^-eps0, because R(z) >= e^-eps0
  (R(x) + R(x')) / 2 for every z.  Such a report is a clone of the hidden one.

Among the hidden report and its C ~ Bin(n - 1, p) clones, some have law U and the others V.  The
shuffled batch is post-processing of these two counts (Feldman, McMillan & Talwar 2021, Theorem 3.2;
arXiv 2012.12803).  Their later paper (arXiv 2208.04591) has a larger p, 2 / (e^eps0 + 1), and an
erratum.  This module uses that p for randomised response only, where it is plain: a random answer
is a fair bit.

Let R be (eps0, delta0)-DP.  Then R(x) and R(x') are within delta0, in total variation, of two
eps0-DP laws Y and Y'. R(x) >= (1 - delta0) Y and R(x') >= (1 - delta0) Y' (same reference). And
R(z) lacks at most e^-eps0 delta0 of the mass of e^-eps0 (R(x) + R(x')) / 2.  So p = e^-eps0 (1
- delta0).  All reports are t = (1 + (n - 1) e^-eps0) delta0 apart, and delta grows by (1 + e^eps)
t.

Fewer clones hide less, since clones can be added afterwards: C may be rounded down, never up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ..errors import ArgumentError
from ..validation import choice, integer, real, shortest
from .accounting import gaussian_epsilon, solve_up

_MOST_REPORTS = 10**7
_ROWS = 256  # numbers of clones that are told apart
_TAIL = 1e-4  # of delta: what is left out of an enumeration at each of its ends
_LEAST_TAIL = 1e-40  # quantiles beyond are not computed reliably, and nothing is proved there
_ROUNDING = 1e-9  # relative, of an enumerated delta
_FFT_ERROR = 1e-12  # absolute, of a delta composed by fast Fourier transforms

Profile = Callable[[float], float]  # delta as a function of epsilon


@dataclass(frozen=True)
class Amplification:
    """The proved guarantee of shuffled reports; ``str`` gives it as a sentence.

    Attributes:
        epsilon: epsilon at ``delta``.
        delta: the delta that was asked for.
        amplified: whether that is less than the epsilon without a shuffler.
        reason: the theorem that was used, or why it does not apply.
    """

    epsilon: float
    delta: float
    amplified: bool
    reason: str

    def __str__(self) -> str:
        level = f"({shortest(self.epsilon)}, {shortest(self.delta)})-DP"
        if self.amplified:
            return f"{level} by shuffling: {self.reason}"
        return f"no amplification proved, {level} as without a shuffler: {self.reason}"


def shuffle_amplification(
    reports: int,
    local_epsilon: float,
    delta: float,
    *,
    local_delta: float = 0.0,
    method: str = "clones",
    batches: int = 1,
) -> Amplification:
    """The epsilon at which shuffled reports of a local randomiser are (epsilon, delta)-DP.

    Neighbours differ in the record of one person.  All numbers are rounded to the safe side.  Where
    nothing better is proved, the result is the local level, ``batches * local_epsilon``.

    Args:
        reports: the number of people who send one report each in a batch, from 1 to 10^7.  Do not
            count people who may be silent or in league with the adversary: their reports hide no
            one.
        local_epsilon: of the randomiser, in (0, 100).
        delta: in (0, 1).
        local_delta: of the randomiser, at most ``delta / batches``.
        method: "clones" enumerates the worst pair of batches, for any randomiser; "closed" is the
            published formula, which is much weaker and has a side condition; "binary" is exact, for
            randomised response with one bit: it takes the largest epsilon of all splits of the
            other people's bits (from 20,000 reports on, to within reports / 20,000 of them).
        batches: the number of batches a person may be in, once in each.  Reports of a later batch
            may depend on the results of earlier ones.

    Returns:
        An ``Amplification``: the epsilon, and the theorem behind it.

    Raises:
        ArgumentError: an argument is outside its range, or ``local_delta`` is given for "binary".

    See also: ``gaussian_shuffle_amplification``.

    Proofs: "closed" is Theorem 3.8 of Feldman, McMillan & Talwar (2021), with basic composition of
    batches.  Its terms for ``local_delta`` are as Chowdhury & Zhou (2022, Lemma B.4) quote them,
    and get half of delta.  "clones" is Theorem 3.2 of the former, with the smaller terms for
    ``local_delta`` that this module's docstring proves.  Batches are composed with
    ``dp_accounting``, from a pair that dominates every batch; for "binary" no single split does, so
    the pair of clones is used.

    >>> print(shuffle_amplification(10_000, 1.0, 1e-6, method="binary"))  # doctest: +ELLIPSIS
    (0.035..., 1e-06)-DP by shuffling: binary, for (1, 0)-DP reports
    >>> shuffle_amplification(20, 1.0, 0.1, method="closed").amplified
    False
    """
    n, k = integer("reports", reports, 1, _MOST_REPORTS), integer("batches", batches, 1, 10**4)
    local_epsilon = real("local_epsilon", local_epsilon, 0.0, 100.0, strict=True)
    delta = real("delta", delta, 0.0, 1.0, strict=True)
    local_delta = real("local_delta", local_delta, 0.0, delta / k)
    tail = max(_TAIL * delta / k, _LEAST_TAIL)
    method = choice("method", method, ("clones", "closed", "binary"))
    if method == "binary" and local_delta:
        raise ArgumentError(
            f"local_delta must be 0 for randomised response, got {local_delta!r}", "local_delta"
        )
    reason = f"{method}, for ({local_epsilon:.4g}, {local_delta:.4g})-DP reports"
    if method == "closed":
        epsilon, refusal = _closed(n, local_epsilon, delta, local_delta, k)
        reason = refusal or reason
    elif method == "binary" and k == 1:
        epsilon = _worst_split(n, local_epsilon, delta, tail)
    else:
        floor = math.exp(-local_epsilon)
        distance = k * (1.0 + (n - 1) * floor) * local_delta
        share = 2.0 * float(expit(-local_epsilon)) if method == "binary" else floor
        epsilon = math.inf
        if 2.0 * distance + (_FFT_ERROR if k > 1 else 0.0) < delta:
            losses = _clones(n, local_epsilon, share * (1.0 - local_delta), tail)
            epsilon = _least_epsilon(_composed(losses, k), delta, k * local_epsilon, distance)
    amplified = n > 1 and epsilon < k * local_epsilon
    return Amplification(epsilon if amplified else k * local_epsilon, delta, amplified, reason)


def gaussian_shuffle_amplification(
    reports: int, noise_multiplier: float, delta: float, *, method: str = "clones", batches: int = 1
) -> Amplification:
    """The epsilon at which shuffled messages with Gaussian noise are (epsilon, delta)-DP.

    A message alone has an exact level, the one of the analytic Gaussian mechanism, which holds
    without a shuffler.  Gaussian noise is (eps0, delta0)-DP for a whole curve of pairs.

    Args:
        reports, delta, batches: as in ``shuffle_amplification``.
        noise_multiplier: standard deviation of the noise of one message, per unit of the L2
            sensitivity of the message.
        method: "clones" or "closed", as there.

    Returns:
        An ``Amplification``.  Its epsilon is the least of that level and of the shuffled level for
        some points of the curve.

    Raises:
        ArgumentError: an argument is outside its range.

    See also: ``shuffle_amplification``.

    At delta = 0.1 the published condition fails for any batch of 20:

    >>> print(gaussian_shuffle_amplification(20, 1.0, 0.1, method="closed"))  # doctest: +ELLIPSIS
    no amplification proved, (1.16..., 0.1)-DP as without a shuffler: analytic Gaussian mechanism
    """
    n, k = integer("reports", reports, 1, _MOST_REPORTS), integer("batches", batches, 1, 10**4)
    multiplier = real("noise_multiplier", noise_multiplier, 0.0, strict=True)
    delta = real("delta", delta, 0.0, 1.0, strict=True)
    method = choice("method", method, ("clones", "closed"))
    local = gaussian_epsilon(math.sqrt(k) / multiplier, delta)
    best = Amplification(local, delta, False, "analytic Gaussian mechanism")
    local_delta = delta / (2 * k)
    while best.epsilon > 0.0 and local_delta > 1e-3 * delta / (n * k):
        local_epsilon = gaussian_epsilon(1.0 / multiplier, local_delta)
        if 0.0 < local_epsilon < 100.0:
            found = shuffle_amplification(
                n, local_epsilon, delta, local_delta=local_delta, method=method, batches=k
            )
            if found.amplified and found.epsilon < best.epsilon:
                best = found
        local_delta /= 2.0
    return best


class _Losses(NamedTuple):
    """The privacy loss log(P / Q): its values, their masses under P, and the omitted mass."""

    values: np.ndarray  # (m,)
    masses: np.ndarray  # (m,)
    lost: float

    def delta(self, epsilon: float) -> float:
        """The hockey-stick divergence of P from e^epsilon Q, rounded up."""
        # What was left out counts as lost, and the sum is raised: both only enlarge delta.
        above = self.values > epsilon
        excess = -np.expm1(epsilon - self.values[above])
        return self.lost + (1.0 + _ROUNDING) * float(self.masses[above] @ excess)


def _clones(n: int, local_epsilon: float, share: float, tail: float) -> _Losses:
    """The pair of Theorem 3.2 with clones of probability ``share``; it is its own mirror image."""
    from scipy.stats import binom  # takes longer to import than all else here

    # Numbers of clones: few are left out, many are rounded down.
    fewest, most = (int(binom.ppf(level, n - 1, share)) for level in (tail, 1.0 - 1e-9))
    rows = np.arange(0, most - fewest + 1, 1 + (most - fewest) // _ROWS)
    weights = np.add.reduceat(binom.pmf(np.arange(fewest, most + 1), n - 1, share), rows)
    weights[-1] += binom.sf(most, n - 1, share)
    clones = (fewest + rows)[:, np.newaxis]
    low, high = (np.asarray(end(tail, clones, 0.5)) for end in (binom.ppf, binom.isf))
    ours = low + np.arange(int((high - low).max()) + 2)  # of law U, the hidden report among them
    theirs = clones + 1 - ours
    q, rest = float(expit(local_epsilon)), float(expit(-local_epsilon))
    masses = q * binom.pmf(ours - 1, clones, 0.5) + rest * binom.pmf(ours, clones, 0.5)
    possible = theirs >= 0
    masses = (weights[:, np.newaxis] * masses)[possible]
    ours, theirs = ours[possible], theirs[possible]
    # From counts instead of probabilities, which have common factors and may underflow.
    losses = np.log(q * ours + rest * theirs) - np.log(rest * ours + q * theirs)
    return _Losses(losses, masses, 3.0 * tail)


def _worst_split(n: int, local_epsilon: float, delta: float, tail: float) -> float:
    """The epsilon of randomised response: the largest over all splits of the others' bits.

    The worst split is not at the ends.  A split and its mirror image have each other's directions:
    one direction over all splits stands for both.  Neighbouring splits are ruled out together,
    without the reports in which they differ: these can be added afterwards.
    """
    epsilon = 0.0
    blocks = [(0, n), *((ones, 1) for ones in range(0, n, 1 + n // 16))]  # the last come first
    while blocks and epsilon < local_epsilon:
        ones, size = blocks.pop()
        losses = _split(ones, n - ones - size, local_epsilon, tail)
        if losses.delta(epsilon) <= delta:
            continue
        if size <= 1 + n // 20_000:
            epsilon = _least_epsilon(losses.delta, delta, local_epsilon, low=epsilon)
        else:
            half = size // 2
            blocks += [(ones, half), (ones + half, size - half)]
    return epsilon


def _split(ones: int, zeros: int, local_epsilon: float, tail: float) -> _Losses:
    """The laws of the number of ones in shuffled randomised bits, for one person's 1 and 0 among
    others.
    """
    from scipy.stats import binom

    q, rest = float(expit(local_epsilon)), float(expit(-local_epsilon))

    def law(people: int, truth: float) -> np.ndarray:
        low, high = binom.ppf(tail, people, truth), binom.isf(tail, people, truth)
        return binom.pmf(np.arange(int(low), int(high) + 1), people, truth)

    others = np.convolve(law(ones, q), law(zeros, rest))
    one, zero = np.append(0.0, others), np.append(others, 0.0)  # what the hidden bit adds
    masses, against = q * one + rest * zero, rest * one + q * zero
    seen = against > 0.0  # what underflows adds up to less than a tail
    return _Losses(np.log(masses[seen] / against[seen]), masses[seen], 5.0 * tail)


def _composed(losses: _Losses, batches: int) -> Profile:
    """The profile of so many batches of a pair that is its own mirror image."""
    if batches == 1:
        gains = losses.values > 0.0
        return _Losses(losses.values[gains], losses.masses[gains], losses.lost).delta
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    interval = math.sqrt(float(losses.masses @ losses.values**2)) / (100.0 * math.sqrt(batches))
    # Losses are rounded up to a grid, hence never smaller than they are.
    cells = np.ceil(losses.values / interval).astype(np.int64)
    masses = np.bincount(cells - cells.min(), (1.0 + _ROUNDING) * losses.masses)
    rounded = {int(cell + cells.min()): masses[cell] for cell in np.flatnonzero(masses)}
    together = PrivacyLossDistribution.create_from_rounded_probability(
        rounded, losses.lost, interval
    ).self_compose(batches)
    return lambda epsilon: _FFT_ERROR + float(together.get_delta_for_epsilon(epsilon))


def _least_epsilon(
    profile: Profile, delta: float, high: float, distance: float = 0.0, low: float = 0.0
) -> float:
    """The least epsilon in [low, high] at which profile and distance cost delta; else infinite."""

    def excess(epsilon: float) -> float:
        return delta - profile(epsilon) - (1.0 + math.exp(min(epsilon, 700.0))) * distance

    if distance > 0.0:
        from scipy.optimize import minimize_scalar

        # Convex in e^epsilon: the cost falls, and then grows with what the distance costs.
        high = float(minimize_scalar(lambda e: -excess(e), bounds=(low, high), method="bounded").x)
    return solve_up(excess, low, high) if excess(high) >= 0.0 else math.inf


def _closed(
    n: int, local_epsilon: float, delta: float, local_delta: float, batches: int
) -> tuple[float, str]:
    """Theorem 3.8 with delta / batches for each batch; infinite where it says nothing, and why."""
    delta /= batches * (2.0 if local_delta else 1.0)
    limit = math.log(n / (16.0 * math.log(2.0 / delta)))
    if local_epsilon > limit:
        condition = f"at most log(reports / (16 log(2 / {delta:.4g}))) = {limit:.4g}"
        return math.inf, f"closed needs a local epsilon of {condition}, not {local_epsilon:.4g}"
    clones = n * math.exp(-local_epsilon)
    bracket = 8.0 * math.sqrt(math.log(4.0 / delta) / clones) + 8.0 / clones
    epsilon = math.log1p(math.tanh(local_epsilon / 2.0) * bracket) * (1.0 + _ROUNDING)
    lost = (math.exp(epsilon) + 1.0) * (1.0 + math.exp(-local_epsilon) / 2.0) * n * local_delta
    if lost > delta:
        return math.inf, f"closed has {delta:.4g} for local deltas, which cost {lost:.4g}"
    return batches * epsilon, ""
