"""An attacker's scores of a run: numbers that tell the worlds apart.

* **likelihood ratio** of all noised releases, exact: both statistics that may have made a release
  are known, so it needs only the law of the noise.  Running sums are taken apart first, into as
  many numbers as there are noise variables.  It is rounded to 1e-9, as in exact arithmetic.
* **raw ratio**: that ratio from floats as they are, and **finest bits**: the grid on which they
  lie.  A difference that shows only here is in the last bits: the implementation leaks, not the
  algorithm.
* **releases**, **decisions**, **times**, finest bits: linear scores, learned from runs not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ..policies import Policy
from ..privacy.channels import CERTIFIED, GAUSSIAN, HEMISPHERE, LAPLACE, VECTOR
from ..privacy.continual import Counter, IndependentIntegers
from .loss_bounds import Weights, gaussian_losses, laplace_losses
from .playing import Batch

_DIGITS = 9
_LEARNED = 64  # numbers of releases, and rounds, that linear scores see
_TIMES = 8  # releases whose rounds they see


class Seen(NamedTuple):
    """The public data of a batch: a row for each run."""

    world: np.ndarray
    ratio: np.ndarray
    raw: np.ndarray  # the same before it was rounded
    bits: np.ndarray
    releases: np.ndarray
    decisions: np.ndarray
    times: np.ndarray


@dataclass
class Scores:
    """The scores of a policy's runs."""

    policy: Policy  # whose channel is what noise is taken for

    def of(self, batch: Batch) -> Seen:
        """The public data that the runs of a batch show."""
        ratio = self._ratio(batch)
        return Seen(
            batch.world,
            ratio.round(_DIGITS),
            ratio,
            self._first(_finest_bits(batch.release), batch.bound),
            self._first(batch.release, batch.bound),
            self._decisions(batch.arms),
            _padded(batch.after, _TIMES),
        )

    # The likelihood ratio -------------------------------------------------------------------

    @property
    def is_exact(self) -> bool:
        """Whether the ratio is that of the noise, and not of normal noise in its place."""
        family, counter = self.policy.channel.family, self.policy.statistic.counter
        if family == CERTIFIED:
            return False
        if family == GAUSSIAN or counter is None:
            return True
        few = min(8, counter.horizon or 8)
        return _is_square(counter.decoder(few, self.policy.channel.norm))

    def losses(self, batch: Batch) -> Weights | None:
        """The law of the ratio over the runs of a batch; None where it is not known."""
        family = self.policy.channel.family
        if not self.is_exact or family == HEMISPHERE:
            return None
        law = gaussian_losses if family == GAUSSIAN else laplace_losses
        kinds, counts = np.unique(self._shifts(batch).round(_DIGITS), axis=0, return_counts=True)
        laws = [law(shifts) for shifts in kinds]
        shares = counts / counts.sum()
        score, ones, zeros = (np.concatenate(parts) for parts in zip(*laws, strict=True))
        weights = np.repeat(shares, [len(one.score) for one in laws])
        order = np.argsort(score, kind="stable")
        return Weights(score[order], (weights * ones)[order], (weights * zeros)[order])

    def moved(self, batch: Batch) -> np.ndarray:
        """The distance that the canary moves all releases of a run, in scales of noise, as losses
        add up.
        """
        order = self.policy.channel.composition_norm
        return np.linalg.norm(self._shifts(batch), ord=order, axis=1)

    def _shifts(self, batch: Batch) -> np.ndarray:
        """The distance that the canary moves each noise variable, in scales; a row for each run."""
        shifts = self._rows(self._sums(batch.one - batch.zero)) / self._scales(batch)
        return np.abs(shifts).reshape(len(shifts), -1)

    def _ratio(self, batch: Batch) -> np.ndarray:
        family = self.policy.channel.family
        if family == HEMISPHERE:
            return self._hemispheres(batch)
        scale = self._scales(batch)
        zero, one = (
            self._rows(batch.release - self._sums(world)) for world in (batch.zero, batch.one)
        )
        if family in (LAPLACE, VECTOR) and self.is_exact:
            return ((np.abs(zero) - np.abs(one)) / scale).sum(axis=(1, 2))
        return ((zero * zero - one * one) / (2.0 * scale * scale)).sum(axis=(1, 2))

    def _hemispheres(self, batch: Batch) -> np.ndarray:
        """Log-likelihood ratios of directions: on the vector's side with probability q, else on the
        other.
        """
        logs = []
        for vector in (batch.zero, batch.one):
            length = np.minimum(np.linalg.norm(vector, axis=2), 1.0)
            most = np.tanh(0.5 / self.policy.channel.multiplier)
            side = np.sign((vector * batch.release).sum(axis=2))
            logs.append(np.log(0.5 + 0.5 * most * length * side))
        return (logs[1] - logs[0]).sum(axis=1)

    def _scales(self, batch: Batch) -> np.ndarray:
        """The scales of the noise, shape (B, R, 1); 1 where there was no release."""
        counter, channel = self.policy.statistic.counter, self.policy.channel
        column = 1.0 if counter is None else counter.column_norm(channel.norm)
        width = channel.multiplier * column * batch.bound
        if isinstance(counter, IndependentIntegers):
            coins = counter.amount * counter.heads * (1.0 - counter.heads)
            variance = (coins if counter.heads > 0.0 else counter.amount**2) + counter.rounding**2
            width = counter.step * np.sqrt(variance) * (batch.bound > 0)
        return np.where(width > 0.0, width, 1.0)[:, :, None]

    def _rows(self, values: np.ndarray) -> np.ndarray:
        """Releases of a running sum as the rows that noise was added to; others as they are."""
        counter = self.policy.statistic.counter
        if counter is None:
            return values
        whitener = _whitener(counter, values.shape[1], self.policy.channel.norm)
        return np.einsum("tr,brn->btn", whitener, values, optimize=True)

    def _sums(self, statistics: np.ndarray) -> np.ndarray:
        """The released values of statistics, without noise."""
        adds_up = self.policy.statistic.counter is not None
        return np.cumsum(statistics, axis=1) if adds_up else statistics

    # What is learned from -------------------------------------------------------------------

    def _first(self, release: np.ndarray, bound: np.ndarray) -> np.ndarray:
        """Numbers of the first releases, and the mean of all."""
        size = self.policy.statistic.size
        few, made = max(1, _LEARNED // size), np.maximum((bound > 0).sum(axis=1), 1)
        first = _padded(release[:, :few].reshape(len(release), -1), few * size)
        return np.column_stack([first, release.sum(axis=1) / made[:, None]])

    def _decisions(self, arms: np.ndarray) -> np.ndarray:
        """The arm of each of the first rounds, and the total count of each arm."""
        k = self.policy.n_arms
        first = arms[:, : max(1, _LEARNED // k)]
        each = (first[:, :, None] == np.arange(k)).reshape(len(arms), -1)
        counts = (arms[:, :, None] == np.arange(k)).sum(axis=1)
        return np.column_stack([each, counts]).astype(np.float32)


@lru_cache(4)
def _whitener(counter: Counter, made: int, norm: int) -> np.ndarray:
    """The inverse of the decoder where it is square, else of a matrix of the same covariance."""
    decoder = counter.decoder(made, norm)
    root = decoder if _is_square(decoder) else np.linalg.cholesky(decoder @ decoder.T)
    return solve_triangular(root, np.eye(made), lower=True)


def _is_square(matrix: np.ndarray) -> bool:
    return matrix.shape[0] == matrix.shape[1]


def _padded(values: np.ndarray, columns: int) -> np.ndarray:
    """The first columns, and zeros where there are fewer."""
    found = np.zeros((len(values), columns), np.float32)
    found[:, : values.shape[1]] = values[:, :columns]
    return found


def _finest_bits(values: np.ndarray) -> np.ndarray:
    """The place of the last one among the binary digits of every float."""
    part, exponent = np.frexp(np.abs(values))
    whole = (part * 2.0**53).astype(np.int64)
    return np.where(whole > 0, np.log2(np.maximum(whole & -whole, 1)) + exponent, 0.0)


def discriminant(features: np.ndarray, world: np.ndarray) -> np.ndarray:
    """The direction that tells the worlds apart best (Fisher 1936)."""
    groups = [features[world == b].astype(float) for b in (0, 1)]
    centred = np.vstack([group - group.mean(axis=0) for group in groups])
    spread = centred.T @ centred / len(centred)
    ridge = (1e-6 * np.trace(spread) / len(spread) + 1e-12) * np.eye(len(spread))
    return np.linalg.solve(spread + ridge, groups[1].mean(axis=0) - groups[0].mean(axis=0))
