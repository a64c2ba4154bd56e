"""Information-weighted regression for features with small or rare directions; experimental.

People are split into batches by their number, which is public.  The first batches find the
weighting A of ``weights``.  Each releases the sum of p p^T at the last A, and is twice as large as
the one before, because each batch halves the error of earlier ones.  The last of them does not
improve A, but measures B = E[w z z^T] at the final A.  The other batches regress.  Each releases g,
the sum of r u at the last theta, with the bounded residuals r of ``dpbandits.glm.scores``.  Then
theta goes to the least point within |theta| <= S of

    h |theta - theta'|_B^2 / 2 + <A^-1 g / n, theta - theta'> + b h |theta|_{A^-1}^2 / 2 ,

theta' and g averaged over the batches since the pilot, h the slope of residuals (at zero for the
first, the middle of its range for others), b the ridge.  Its gradient is A^-1 times h E[u z^T]
(theta - theta') + g / n + b h theta.

A person is in one batch, which has the whole budget.  The computation of a batch depends on
releases of earlier batches only.  So everybody has the guarantee of one Gaussian release (adaptive
parallel composition; local: each report has one person's data).

This is a reconstruction of the idea of Chen, Li, Rakhlin & Simchi-Levi (2025, "Beyond Covariance
Matrix: The Statistical Complexity of Private Linear Regression"), from the known results of the
paper.  It is not their text, and constants and steps are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from ...constraints import Choice, Constraints, Integer, Real
from ...errors import ArgumentError
from ...glm.estimator import TYPES_ARE_PUBLIC, Estimator
from ...glm.links import cut, link_of
from ...glm.scores import Score, record_range
from ...glm.spending import Line, Spending
from ...glm.steps import minimise_in_ball
from ...kernel import Matrix, Vector, bind, entry, unbound
from ...privacy import Budget, Guarantee
from ...privacy.channels import Channel
from ...privacy.continual import smat
from ...privacy.noise import NoiseSource
from ...privacy.randomiser import VectorRandomiser
from ...tables import TableLike
from .weights import Weighting, at_most_1, score_sensitivity, square_sensitivity, weighting_of

_MOST_STEPS = 100
_STEPS_WITHOUT_NOISE = 40
_RIDGE_WITHOUT_NOISE = 1e-6
_GROWTH = 2.0  # of the batches that find the weighting
_PILOT = 0.25  # share of those that regress in the first of two batches
_DAMPING = 10.0  # by default, in units of the noise on a mean times sqrt(n)
_CHUNK = 4096  # rows at a time
_LARGEST = 1e100  # features beyond it count as 0, as in scores
_PROOF = "sensitivity in dpbandits.papers.glm.weights, batches in dpbandits.papers.glm.estimator"

mean = unbound


@entry
def _residuals(
    features: Matrix, outcomes: Vector, theta: Vector, ends: Vector, bounded: bool, out: Vector
) -> None:
    """r of each row; 0 without an outcome.  ``bounded``: in [-1, 1], as bounded scores have it."""
    lo, hi, reach = ends
    for person in range(outcomes.size):
        y, t = outcomes[person], 0.0
        if math.isnan(y):
            out[person] = 0.0
            continue
        for i in range(theta.size):
            t += features[person, i] * theta[i]
        nu = mean(cut(t, -reach, reach))
        r = nu - min(max(y, lo), hi)
        out[person] = cut(r / max(nu - lo, hi - nu), -1.0, 1.0) if bounded else r


@dataclass
class _People:
    """The data; private.  All that leaves it are noisy means over a batch."""

    features: np.ndarray  # (n, d), at most 1 long, all zero where the outcome is missing
    outcomes: np.ndarray  # (n,)
    score: Score  # whose residuals are meant
    channel: Channel  # of every release
    source: NoiseSource | None  # of noise
    grid: float  # of secure noise, else 0
    randomise_each: bool  # whether every person adds noise, rather than somebody trusted
    releases: list[Line] = field(default_factory=list)

    def __post_init__(self) -> None:
        name = "reports" if self.randomise_each else "privacy"
        self._rng = self.source.generator(name) if self.source else None
        self._residuals = bind(_residuals, mean=link_of(self.score.link).mean)

    def mean_square(self, weighting: Weighting, batch: range) -> np.ndarray:
        """The noisy mean of p p^T / c over a batch, shape (d, d)."""
        d = self.features.shape[1]
        total = np.zeros(d * (d + 1) // 2)
        sensitivity = square_sensitivity(d, self.grid)
        for rows in _chunks(batch):
            total += self._reports(weighting.squares(self.features[rows]), sensitivity, rows)
        return smat(self._noisy(total, sensitivity, batch) / len(batch))

    def mean_score(self, weighting: Weighting, theta: np.ndarray, batch: range) -> np.ndarray:
        """The noisy mean of r u / c over a batch, shape (d,)."""
        reach = self.score.reach if self.score.bounded else math.inf
        total, ends = np.zeros(theta.size), np.array([*self.score.outcome_range, reach])
        sensitivity = score_sensitivity(theta.size, self.grid)
        for rows in _chunks(batch):
            features, residuals = self.features[rows], np.empty(rows.stop - rows.start)
            outcomes, bounded = self.outcomes[rows], self.score.bounded
            self._residuals(features, outcomes, theta, ends, bounded, residuals)
            records = residuals[:, None] * weighting.instruments(features)
            total += self._reports(records, sensitivity, rows)
        return self._noisy(total, sensitivity, batch) / len(batch)

    def _reports(self, records: np.ndarray, sensitivity: float, rows: slice) -> np.ndarray:
        """The sum of records, which secure devices have made noisy one by one."""
        if self.grid == 0.0:
            return np.asarray(records.sum(axis=0))
        records = np.floor(records / self.grid + 0.5) * self.grid
        if self.randomise_each:
            largest = record_range(1.0, 1.0, self.grid)[1]
            for i, record in enumerate(records):
                randomise = VectorRandomiser(
                    self.channel, sensitivity, largest, grid=self.grid, number=rows.start + i
                )
                records[i] = randomise(record)
        return np.asarray(records.sum(axis=0))

    def _noisy(self, total: np.ndarray, sensitivity: float, batch: range) -> np.ndarray:
        if self.source is None:
            return total
        reports = len(batch) if self.randomise_each else 1
        span, draws = (batch.start, batch.stop - 1), total.size * reports
        self.releases.append((span, self.channel, sensitivity, draws))
        if self.randomise_each and self.grid > 0.0:
            return total
        # The sum of so many normal numbers, which is all that the curator keeps of them.
        noisy, scale = np.empty_like(total), self.channel.scale(sensitivity) * math.sqrt(reports)
        self.source.add_noise(self.channel, scale, total, noisy, self._rng)
        return noisy


def _chunks(batch: range) -> list[slice]:
    return [
        slice(first, min(first + _CHUNK, batch.stop))
        for first in range(batch.start, batch.stop, _CHUNK)
    ]


class InformationWeightedGLM(Estimator):
    """A generalised linear model E[y | x] = nu(<x, theta>) for features with small or rare
    directions, fitted with differential privacy; experimental.

    Rather than sums of x y, it releases sums of u y.  u is x weighted by a matrix from earlier
    batches of people, in which every direction counts as much as bounded records allow.  This is a
    reconstruction of the idea of Chen, Li, Rakhlin & Simchi-Levi (2025), not their text.  See
    ``dpbandits.papers.glm.estimator``, and ``dpbandits.papers.glm.weights`` for the proof.

    Which data are private, and how features are treated: as for ``PrivateGLM``.

    Args:
        link, outcome_range, context_bound, parameter_bound, noise, grid, seed: as for
            ``PrivateGLM``.
        budget: of any notion but ``PureDP``, for each person; a person is in one batch. None for no
            noise, where all people are in all batches.
        trust_model: "central", one party is trusted with the data; "local", every person adds noise
            to their own report, and ``fit`` plays all parts on one machine.
        weight_batches: the number of batches that find the weighting, at least 2; each is twice as
            large as the one before.  Default 5, or 40 without noise.
        weight_share: share of the people in these batches.
        batches: the number of batches that regress.  Default 2, a quarter of the people in the
            first, or 1 with the identity link in the local model; without noise 40.
        ridge: b > 0, of the mean over people whose features have been divided by ``context_bound``.
            Default: a value that suits the noise.
        damping: g > 0, of the central model.  A smaller damping weights long features down less,
            and needs more noise.  Default: a value that suits the noise.

    Attributes:
        coef_: (d,) the estimate.
        weighting_: (d, d) A.
        ridge_: b.
        ledger: one line for each batch of the last ``fit``; empty without noise.

    Raises:
        ArgumentError: an argument is out of range, or two do not fit together.

    When to choose: where several directions are small *for everybody*, by about as much as noise,
    above all in the local model.  Where directions are rare, or noise is small, ``PrivateGLM`` and
    ``LocalGLM``, which use all people for everything, are better: docs/papers/glm.md.

    Example:
        >>> from dpbandits import ZCDP
        >>> from dpbandits.papers.glm import InformationWeightedGLM
        >>> rng = np.random.default_rng(1)
        >>> X = rng.uniform(-0.7, 0.7, size=(20_000, 2)) * [1.0, 0.05]
        >>> y = (rng.random(20_000) < 0.5 + 0.5 * X @ [0.3, 0.9]) * 2.0 - 1.0
        >>> model = InformationWeightedGLM(
        ...     "identity", budget=ZCDP(0.5), outcome_range=(-1.0, 1.0), seed=1
        ... ).fit(X, y)
        >>> model.coef_.shape, model.ledger.spent()
        ((2,), ZCDP(rho=0.5))
    """

    constraints: ClassVar[Constraints] = {
        "trust_model": Choice("central", "local"),
        "weight_batches": Integer(2, _MOST_STEPS) | None,
        "weight_share": Real(0.01, 0.99),
        "batches": Integer(1, _MOST_STEPS) | None,
        "ridge": Real(1e-9, 1e9) | None,
        "damping": Real(1e-9, 1e9) | None,
    }
    weighting_: np.ndarray
    ridge_: float

    def __init__(
        self,
        link: str = "logistic",
        *,
        budget: Budget | None,
        trust_model: str = "central",
        weight_batches: int | None = None,
        weight_share: float = 0.35,
        batches: int | None = None,
        outcome_range: tuple[float, float] = (0.0, 1.0),
        context_bound: float = 1.0,
        parameter_bound: float = 1.0,
        ridge: float | None = None,
        damping: float | None = None,
        noise: str = "simulation",
        grid: float = 2.0**-20,
        seed: int | None = None,
    ) -> None:
        self.link, self.budget, self.trust_model = link, budget, trust_model
        self.weight_batches, self.weight_share = weight_batches, weight_share
        self.batches = batches
        self.outcome_range = outcome_range
        self.context_bound, self.parameter_bound = context_bound, parameter_bound
        self.ridge, self.damping = ridge, damping
        self.noise, self.grid, self.seed = noise, grid, seed
        self._check()

    def _check(self) -> None:
        super()._check()
        if self._is_local and self.damping is not None:
            raise ArgumentError("damping must be None for trust_model='local'", "damping")
        self._score()
        self._source()
        self._spending()

    @property
    def _is_local(self) -> bool:  # type: ignore[override]
        return self.trust_model == "local"

    @property
    def _ends(self) -> tuple[float, float]:
        return record_range(1.0, 1.0, self._step)

    def _spending(self) -> Spending:
        return Spending.of(self.budget, [1.0])

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee for the people of one ``fit``; for people of several, losses add up."""
        assumed = [
            "a person is one row, and their data enter one fit",
            "in which batch a person is, and the number of people, are public",
            f"features have a length of at most {self.context_bound:g}, which scaling enforces",
            TYPES_ARE_PUBLIC,
        ]
        if self._is_local:
            assumed.append("`fit` plays devices and curator, and its caller sees all data")
        return self._spending().guarantee(self._source(), assumed, _PROOF, local=self._is_local)

    def fit(self, X: TableLike, y: TableLike) -> Self:  # noqa: N803
        """Estimate from features of shape (n, d) and outcomes of shape (n,).

        Raises:
            ArgumentError: the shapes are others, there are fewer people than batches, or, with
                secure noise, too many for exact sums on so fine a grid.
        """
        features, outcomes = self._read(X, y)
        people = self._people(features, outcomes)
        finding, regressing = self._batches(len(features))
        d = features.shape[1]
        self.ridge_, damping = self._tuning(sum(map(len, regressing)), d)
        weighting, moments = _find(people, finding, self.ridge_, damping)
        self.coef_ = self._regress(people, regressing, weighting, moments) / self.context_bound
        self.weighting_ = weighting.matrix
        self._note_columns(X, d)
        self.ledger = self._spending().ledger(people.releases)
        return self

    def _people(self, features: np.ndarray, outcomes: np.ndarray) -> _People:
        source = self._source_for(len(features))
        known = np.where(np.abs(features) <= _LARGEST, features, 0.0)
        known = at_most_1(known / self.context_bound)
        known[np.isnan(outcomes)] = 0.0
        score, channel = self._score(bounded=source is not None), self._spending().channels[0]
        return _People(known, outcomes, score, channel, source, self._rounded, self._is_local)

    def _batches(self, people: int) -> tuple[list[range], list[range]]:
        """The batches that find the weighting, and those that regress."""
        if self.budget is None:
            every = [range(people)]
            finding = self.weight_batches or _STEPS_WITHOUT_NOISE
            return every * finding, every * (self.batches or _STEPS_WITHOUT_NOISE)
        finding = self.weight_batches or 5
        one = self.link == "identity" and self._is_local  # noise hides what another could find
        regressing = self.batches or (1 if one else 2)
        growing = _GROWTH ** np.arange(finding)
        sizes = np.full(regressing, 1.0 / regressing)
        if regressing == 2:
            sizes = np.array([_PILOT, 1.0 - _PILOT])
        shares = np.concatenate(
            (self.weight_share * growing / growing.sum(), (1.0 - self.weight_share) * sizes)
        )
        ends = np.append(0, np.cumsum(shares) * people).round().astype(int)
        ranges = [range(a, b) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
        if not all(map(len, ranges)):
            raise ArgumentError(
                f"X must have at least one row for each of {len(ranges)} batches, got {people}", "X"
            )
        return ranges[:finding], ranges[finding:]

    def _tuning(self, people: int, dimension: int) -> tuple[float, float]:
        """The ridge and the damping."""
        level = 0.0
        if self.budget is not None:
            scale = self._spending().channels[0].scale(score_sensitivity(dimension))
            level = scale / (math.sqrt(people) if self._is_local else people)
            level = min(level, 1e6)
        damping = self.damping or max(_DAMPING * level * math.sqrt(people), 1e-9)
        damping = math.inf if self._is_local else damping
        if self.ridge is not None:
            return self.ridge, damping
        reach = self.context_bound * self.parameter_bound * self._slopes()[0]
        # b |theta| = sqrt(d) times the noise on one coordinate, level / (g + b).
        wanted = level * math.sqrt(dimension) / reach
        if math.isinf(damping):
            return max(wanted, _RIDGE_WITHOUT_NOISE), damping
        solved = math.sqrt(0.25 * damping**2 + wanted) - 0.5 * damping
        return max(solved, _RIDGE_WITHOUT_NOISE), damping

    def _slopes(self) -> tuple[float, float]:
        """The slope of residuals at zero, and the middle of its range."""
        score, link = self._score(bounded=self.budget is not None), link_of(self.link)
        nu, (lo, hi) = link.mean(0.0), self.outcome_range
        at_zero = link.slope(0.0) / (max(nu - lo, hi - nu) if score.bounded else 1.0)
        falls = 1.0 - float(score.path.weight.min()) / score.largest_weight
        return at_zero, score.largest_weight * (1.0 - 0.5 * falls)

    def _regress(
        self, people: _People, batches: list[range], weighting: Weighting, moments: np.ndarray
    ) -> np.ndarray:
        """The estimate for features that are at most 1 long."""
        radius = self.context_bound * self.parameter_bound
        inverse = np.linalg.inv(weighting.matrix)
        theta, slope = np.zeros(len(moments)), self._slopes()[0]
        used, size = np.zeros((2, theta.size)), 0
        for number, batch in enumerate(batches):
            gradient = weighting.bound * people.mean_score(weighting, theta, batch)
            if number <= 1 or self.budget is None:  # the pilot is left out
                used, size = np.zeros((2, theta.size)), 0
            used, size = used + len(batch) * np.array([theta, gradient]), size + len(batch)
            here, gradient = used / size
            matrix = slope * (moments + self.ridge_ * inverse)
            vector = slope * moments @ here - inverse @ gradient
            theta = minimise_in_ball(0.5 * (matrix + matrix.T), vector, radius)
            slope = self._slopes()[1]
        return theta


def _find(
    people: _People, batches: list[range], ridge: float, damping: float
) -> tuple[Weighting, np.ndarray]:
    """The weighting, and E[w z z^T] at it."""
    d = people.features.shape[1]
    weighting = Weighting(np.eye(d) / (1.0 + ridge), damping)
    for batch in batches[:-1]:
        moments = weighting.moments(people.mean_square(weighting, batch))
        weighting = Weighting(weighting_of(moments, ridge), damping)
    return weighting, weighting.moments(people.mean_square(weighting, batches[-1]))
