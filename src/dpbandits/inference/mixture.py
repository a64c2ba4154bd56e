"""Evidence about the mean of an arm, at every release: a mixture of exponential martingales.

Guarantee:

* Covered: the arm's mean reward, in the range, at all releases together: with probability at least
  ``confidence`` no interval misses it, whenever somebody looks, stops, or changes arms.
* Read: released sums and public facts alone.  So intervals cost no privacy.
* Assumed: given all that came before its pull, each reward of an arm has that mean; and noise is
  independent of rewards and of other noise, of the scale of the policy.  Arms with features that
  never change have such means, whatever model chooses them.

Rewards are scaled to [0, 1].  Batch j of an arm has n_j rounds and the released sum Y_j, with noise
of scale s.  Its tilts l_ij >= 0, i = 1, ..., 28, are fixed when its first round is pulled, from
releases made by then.  Let psi_q(l) = ln(1 - q + q exp(-l)), and c(l) a bound on ln E[exp(-l
noise)]: l^2 s^2 / 2 for Gaussian noise, -ln(1 - l^2 s^2) with l < 1 / s for Laplace noise, 0
without noise.  With weights p_i that sum to one, the evidence is

    M_dn(q) = sum_i p_i exp( sum_j  -l_ij Y_j - n_j psi_q(l_ij) - c(l_ij) )    against mean >= q,
    M_up(q) = the same of n_j - Y_j and 1 - q                                  against mean <= q.

**Lemma.**  If rewards have conditional means of at least q, then E[M_dn(q)] <= 1 at every stopping
time of releases, and P(M_dn(q) ever reaches 1 / a) <= a.  *Proof.*  Order rewards by their pulls.
The tilt l of a batch is known at its first pull.  Let a reward r in [0, 1] have the mean m >= q,
given all before its pull.  A coin is the worst, because exp is convex: E[exp(-l r)] <= 1 - m + m
exp(-l) <= exp(psi_q(l)).  So over the n_j pulls the factor of a batch has a conditional mean of at
most 1.  Its noise is drawn later and independently, with E[exp(-l noise)] <= exp(c(l)).  Noise of
earlier releases may have been drawn between these pulls.  It is independent of the rewards pulled
before it, and later pulls may depend on it.  An arm's batches are pulled one after another, and
released in this order.  Hence, given all before the first pull of a batch and the noise of the
arm's earlier releases, its factor has a mean of at most 1.  So each term is a nonnegative
supermartingale in the arm's releases, and so is their mixture.  The rest is Ville's inequality.

So arm, length and tilts may depend on anything public, and no price is due for the number of
batches.  The length counts when the batch began; a batch without its release counts not at all.

**Intervals.**  The mean is in {q : M_dn(q) < 2 / a, M_up(q) < 2 / a} at all releases, with
probability 1 - a.  For all K arms together, a is divided by K.

**Several workers.**  Each has people of its own, and releases with noise of its own.  Rewards are
assumed to be independent of those of other people, given what was public at their pulls.  Tilts
follow from the worker's own releases.  Given all releases of the others, the factor of a batch then
has a mean of at most 1, as above.  So for each i the product of the workers' terms is a
supermartingale in all releases, in the order in which they are made; and so is the mixture of
products.

**Differences.**  If the mean of b is at most x and that of c at least y, M_up,b(x) M_dn,c(y) has
these properties, because a release changes one factor.  So with probability 1 - a / 2, at all
releases, the difference d of the means b - c has

    min over q of  ln M_up,b(q + d) + ln M_dn,c(q)  <  ln(2 / a) .

The least such d is the lower end; for the upper one b and c change places.  For this product,
batches of b and c have to be pulled one after another.  Where batches fill up side by side, rewards
are assumed to be independent of those of other people, given what was public at their pulls.

**Several differences.**  Each of m differences is taken with a / m.  It is ever missed with
probability at most a / m.  The probability that any of the m is ever missed is at most the sum of
theirs (union bound), which is a.  The differences to one control, declared beforehand, are m = K -
1.  Where releases name the arm that others are compared with, at each release anew, the comparisons
are among all pairs of arms: m = K (K - 1) / 2.

**Decisions.**  Let L_bc be the largest d up to which the minimum above is at least ln(K / a): a
lower bound on the difference b - c, which ever fails with probability at most a / K.  The *margin*
of an arm is its mean, less the highest mean of the others.  With probability 1 - a, at all
releases, the margin of each arm b is between min over c of L_bc, and max(0, min over c of -L_cb).
*Proof.*  Let * be an arm of highest mean, and s one of highest mean of the others.  The K bounds
L_b* of all b but *, and L_*s, never fail with probability 1 - a.  Then the margin of b, which is
the difference b - *, is at least L_b*; and that of * is at least L_*s.  The margin of b is at most
0.  That of * is at most the difference * - c to any c, hence at most -L_c*.

So an error shared by K bounds, instead of by all K (K - 1), covers that arm and gap are chosen by
looking: arm b is *decided* with gap g if its margin is above -g.  This is wrong if another mean is
higher by g or more; without a gap, if another one is as high.  Equal arms are covered, hence K and
not K - 1 bounds.  Two arms have L_bc at a / 2, as in the interval of their difference.  For one
look, these are comparisons with the best (Hsu, 1984, Annals of Statistics 12).

**Numbers.**  -psi_q is convex in q, and so is ln M.  Newton's method from q = 1 stays beyond the
end of an interval.  The minimum over q is bounded from below by the tangents at the two ends of a
short interval around it.  So errors of numbers only widen intervals.

**The closed form.**  Without noise, and with Gaussian noise, sums have sub-Gaussian errors.  Batch
j has the precision H_j, one over 1 / (4 n_j) + s^2 / n_j^2; H is the sum, and m the mean with these
weights.  Then exp(t H (m - mean) - t^2 H / 2) is a supermartingale, as above.  Mixed over normal t
of variance 1 / r it is a supermartingale, which with e^2 = 1 / H stays below 1 / a where

    (m - mean)^2  <  2 e^2 (1 + r e^2) (ln(1 / a) + ln(1 + 1 / (r e^2)) / 2) .

For the difference of two arms, multiply over both.  The largest difference where the product stays
below 1 / a is the extreme of an ellipsoid: the sum of e^2 (1 + r e^2) over both arms, times 2 (ln(1
/ a) + the sum of ln(1 + 1 / (r e^2)) / 2), is the square of the half width.  Laplace noise has no
such moments, and the form is refused for it.

**Not covered.**  Running sums: their noise is correlated.  Means that change: without noise all
tilts are equal, and by concavity of psi in q the bounds hold for the mean over an arm's people so
far.  With noise, or for differences, they do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

TILTS = np.geomspace(0.004, 4.0, 28)  # u, of which tilts are made
_LN_SHARE = -math.log(len(TILTS))  # ln p
PRIOR = 0.15  # variance of a reward, before anything is known of it
ROUNDS_OF_PRIOR = 5.0  # that it counts as
WIDEST = 0.25  # guesses are WIDEST / sqrt(2)^k, k = 0, ..., 10
_STEPS = 10
NARROWEST = WIDEST / math.sqrt(2.0) ** _STEPS
_HALVINGS = 50
_NEWTON = 200  # steps: a few are enough
_DIGITS = 34  # binary, of a difference
_FLAT = 1e-9  # nats
_RATIO = 500.0  # r


class Noise(NamedTuple):
    """The noise on a sum of rewards in [0, 1].

    Attributes:
        scale: of Laplace noise, or the standard deviation of Gaussian noise; 0 for none.
        is_laplace: whether it is Laplace's.
        dropout: a share of a batch's people.  If all of them add noise, there is by 1 / (1 -
            dropout) more of it than the scale says.
    """

    scale: float
    is_laplace: bool
    dropout: float = 0.0

    def surplus(self, n: np.ndarray) -> np.ndarray:
        """By how much there may be more noise on the sums of n people."""
        return n / (n - np.floor(self.dropout * n))

    def variance(self, n: np.ndarray) -> np.ndarray:
        """The largest variance of the noise on the sums of n people."""
        return self.scale**2 * (2.0 if self.is_laplace else 1.0) * self.surplus(n)

    def cost(self, tilt: np.ndarray, n: np.ndarray) -> np.ndarray:
        """c(l)."""
        squared = (self.scale * tilt) ** 2
        return self.surplus(n) * (-np.log1p(-squared) if self.is_laplace else 0.5 * squared)

    def tilts(self, n: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """l, shape (28, m), for batches of n rounds with rewards of that variance, each (m,): less
        than u, by the share of noise in the sum.
        """
        u, known = TILTS[:, None], n * variance
        if not self.is_laplace or self.scale == 0.0:
            return u * known / (known + self.variance(n))
        # The root of (u - l) n V = c'(l), by bisection below u and the pole.
        low, high = np.zeros((len(u), len(n))), np.minimum(u, 1.0 / self.scale) + 0.0 * known
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            # Equal to c', multiplied by what may be 0 at the pole.
            rest = np.maximum(1.0 - (self.scale * middle) ** 2, 0.0)
            more = (u - middle) * known * rest > self.variance(n) * middle
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        return low


class Cells(NamedTuple):
    """The batches of an arm, of which all with equal rounds and tilts are one cell."""

    rounds: np.ndarray  # (m,) of a batch
    variance: np.ndarray  # (m,) by which tilts are chosen
    batches: np.ndarray  # (m,) how many there are
    total: np.ndarray  # (m,) sum of their releases


class Batches(NamedTuple):
    """Released sums of batches, in the order of their releases; each is an array of shape (n,)."""

    arm: np.ndarray
    rounds: np.ndarray
    total: np.ndarray  # for rewards in [0, 1]
    known: np.ndarray  # how many of these releases had been made when the batch began

    def single(self, arm: int, noise: Noise) -> Cells:
        """Those of an arm, a cell for each, with variances that earlier releases suggest."""
        own = np.flatnonzero(self.arm == arm)
        rounds, total = self.rounds[own].astype(float), self.total[own]
        # Of each batch, how many of the arm's releases had been made when it began.
        before = np.searchsorted(own, np.minimum(self.known[own], own))
        step = _guess(rounds, total, noise)[before] if noise.scale > 0.0 else np.zeros(len(own))
        return Cells(rounds, WIDEST / math.sqrt(2.0) ** step, np.ones(len(own)), total)

    def cells(self, arm: int, noise: Noise) -> Cells:
        """Those of an arm, in as few cells as there can be."""
        each = self.single(arm, noise)
        kinds, which = np.unique(np.stack(each[:2]), axis=1, return_inverse=True)
        count, total = np.zeros(kinds.shape[1]), np.zeros(kinds.shape[1])
        np.add.at(count, which.ravel(), 1.0)
        np.add.at(total, which.ravel(), each.total)
        return Cells(kinds[0], kinds[1], count, total)


def reports(rounds: int, total: float) -> Cells:
    """The cells of an arm's reports: batches of one person, with the same tilts for all of them."""
    one = np.ones(min(int(rounds), 1))
    return Cells(one, PRIOR * one, rounds * one, total * one)


def _guess(rounds: np.ndarray, total: np.ndarray, noise: Noise) -> np.ndarray:
    """The variance of a reward after 0, 1, ..., n releases of an arm, as its step k."""
    n, y = (np.concatenate(([0.0], np.cumsum(one))) for one in (rounds, total))
    noises = np.concatenate(([0.0], np.cumsum(noise.variance(rounds))))
    # So many rounds without noise would tell as much.
    worth = n * n * PRIOR / np.maximum(n * PRIOR + noises, 1e-300)
    mean = np.clip(y / np.maximum(n, 1.0), 0.0, 1.0)
    guess = (ROUNDS_OF_PRIOR * PRIOR + worth * mean * (1.0 - mean)) / (ROUNDS_OF_PRIOR + worth)
    return np.clip(np.rint(2.0 * np.log2(WIDEST / guess)), 0.0, _STEPS)


class Side(NamedTuple):
    """What the evidence against one side of an arm's means is computed from."""

    linear: np.ndarray  # (28,) of each tilt the sum of -l Y - c(l)
    shrunk: np.ndarray  # (28, m) 1 - exp(-l)
    rounds: np.ndarray  # (m,) of all batches of a cell

    def at(self, q: float) -> tuple[float, float]:
        """ln M_dn(q), and its slope, for releases Y; of n - Y it is ln M_up(1 - q)."""
        left = 1.0 - q * self.shrunk
        terms = self.linear - np.log1p(-q * self.shrunk) @ self.rounds
        largest = float(terms.max())
        weights = np.exp(terms - largest)
        total = float(weights.sum())
        slope = float(weights @ (self.shrunk / left @ self.rounds)) / total
        return largest + math.log(total) + _LN_SHARE, slope

    def largest(self, level: float) -> float:
        """The largest q in [0, 1] with ln M_dn(q) <= level, or a little more."""
        q = 1.0
        for _ in range(_NEWTON):
            value, slope = self.at(q)
            if value <= level + _FLAT or q <= 0.0:
                break
            # Below the chord, because the evidence is convex: the end is not overrun.
            q = max(q - (value - level) / slope, 0.0)
        return q


class Evidence(NamedTuple):
    """The evidence about an arm."""

    up: Side  # against small means, as a function of 1 - q
    down: Side  # against large means

    @classmethod
    def of(cls, cells: Cells, noise: Noise) -> Self:
        tilts = noise.tilts(cells.rounds, cells.variance)
        cost = noise.cost(tilts, cells.rounds) @ cells.batches
        shrunk, rounds = -np.expm1(-tilts), cells.rounds * cells.batches
        return cls(
            Side(-tilts @ (rounds - cells.total) - cost, shrunk, rounds),
            Side(-tilts @ cells.total - cost, shrunk, rounds),
        )

    def interval(self, a: float) -> tuple[float, float]:
        """The ends between which the mean is, but for probability a."""
        level = math.log(2.0 / a)
        return 1.0 - self.up.largest(level), self.down.largest(level)


class _Sum(NamedTuple):  # of the evidence against one mean and another, at q
    q: float
    value: float
    slope: float


def least_sum(b: Evidence, c: Evidence, d: float = 0.0) -> float:
    """The least ln M_up,b(q + d) + ln M_dn,c(q) over all q, from below."""

    def at(q: float) -> _Sum:
        above, falling = b.up.at(min(max(1.0 - q - d, 0.0), 1.0))
        below, rising = c.down.at(q)
        return _Sum(q, above + below, rising - falling)

    low, high = at(max(0.0, -d)), at(min(1.0, 1.0 - d))
    # The sum is convex: the slope at an end tells whether the least is there.
    if low.slope >= 0.0:
        return low.value
    if high.slope <= 0.0:
        return high.value
    for _ in range(_HALVINGS):
        # Where the tangents at both ends meet, they are below the least value.
        width, turn = high.q - low.q, high.slope - low.slope
        bound = low.value + low.slope * (low.value - high.value + high.slope * width) / turn
        if min(low.value, high.value) - bound <= _FLAT:
            break
        middle = at(0.5 * (low.q + high.q))
        low, high = (middle, high) if middle.slope < 0.0 else (low, middle)
    return bound


def least_difference(b: Evidence, c: Evidence, a: float) -> float:
    """The difference of the means b - c, from below but for probability a."""
    level, low, high = math.log(1.0 / a), -1.0, 1.0
    for _ in range(_DIGITS):
        d = 0.5 * (low + high)
        low, high = (d, high) if least_sum(b, c, d) >= level else (low, d)
    return low


def weighted_mean(cells: Cells, noise: Noise) -> tuple[float, float]:
    """m and H of the closed form: the mean of batches, each with its precision as weight, and the
    sum of these; nan and 0 without batches.
    """
    n = cells.rounds
    each = 1.0 / (0.25 / n + noise.variance(n) / (n * n))  # H_j
    precision = float(each @ cells.batches)
    return (float(each / n @ cells.total) / precision if precision else math.nan), precision


def closed_form(
    cells: Sequence[Cells], signs: Sequence[float], noise: Noise, a: float
) -> tuple[float, float]:
    """The ends between which a sum of means with these signs is, but for probability a: by the
    closed form, which is proved for Gaussian noise and for none.
    """
    middle, length, pull = 0.0, 0.0, math.log(1.0 / a)
    for one, sign in zip(cells, signs, strict=True):
        mean, precision = weighted_mean(one, noise)
        if precision == 0.0:
            return -np.inf, np.inf
        middle += sign * mean
        pull += 0.5 * math.log1p(precision / _RATIO)
        length += (1.0 + _RATIO / precision) / precision
    reach = math.sqrt(2.0 * pull * length)
    return middle - reach, middle + reach
