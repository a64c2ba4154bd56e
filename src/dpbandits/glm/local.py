"""Private estimates of generalised linear models under local privacy.

Guarantee:

* Protected: features and outcome of one person, for any reports of others.
* Adjacency and sensitivity: two records that differ in everything, see ``scores``.
* Assumed: the channel is chosen before the report, and differs in theta only.

People are split into batches by their number, which is public.  For each batch the curator picks a
channel from past reports alone: a parameter theta, and the noise.  A device turns features and
outcome of its person into one report, [r x ; v svec(h x x^T)] at theta plus noise for the whole
budget.  ``Curator`` has no argument for other data.

So each report keeps the budget in the data of its person (local privacy with sequential
interaction, Duchi, Jordan & Wainwright 2013).

The first batch is a pilot: it finds the point at which the others linearise.  The estimate leaves
it out, unless noise is larger than the pilot's linearisation error.  With the identity link the
model is linear, and there is one batch: the protocol is non-interactive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from ..constraints import Constraints, Integer
from ..errors import ArgumentError, DPBanditsError
from ..privacy import Budget, Guarantee
from ..privacy.channels import OPEN, Calibration, Channel
from ..privacy.continual import smat
from ..privacy.randomiser import VectorRandomiser
from ..tables import TableLike, as_numbers, entries, nested
from ..validation import integer, real
from .estimator import MOST, TYPES_ARE_PUBLIC, Estimator
from .scores import Score, record_range, statistic_size
from .spending import Line, Spending
from .steps import Release, bending, coefficient_intervals, newton_step

_MOST_BATCHES = 100
_PILOT = 0.25  # share of the people in the first of two batches
_HESSIAN_WEIGHT = 0.5
_PROOF = "dpbandits.glm.local, sensitivity in dpbandits.glm.scores (docs/glm-estimation.md)"


@dataclass(frozen=True)
class Report:
    """The report of a device.

    Attributes:
        batch: of the channel that it was made with.
        values: (d + d (d + 1) / 2,) the noisy record.
    """

    batch: int
    values: np.ndarray


@dataclass(frozen=True)
class LocalChannel:
    """Program for every device of a batch, made by ``Curator.channel()``; it is public, and can be
    pickled and sent.

    Attributes:
        batch: its number, from 0.
        theta: (d,) at which reports are taken.
        score: the record of a person.
        weight: v.
        noise_channel: its noise, in units of the sensitivity.
        noise, grid, seed: as in ``LocalGLM``.
    """

    batch: int
    theta: np.ndarray
    score: Score
    weight: float
    noise_channel: Channel
    noise: str
    grid: float
    seed: int | None

    @property
    def sensitivity(self) -> float:
        """The largest distance of two records."""
        return self.score.sensitivity(self.weight, dimension=self.theta.size, grid=self._grid)

    @property
    def _grid(self) -> float:
        return self.grid if self.noise == "secure" else 0.0

    def device(self, person: int = 0) -> LocalDevice:
        """The device of one person; each number has simulated noise of its own."""
        return LocalDevice(self, person)

    def record(self, features: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
        """Add up the records of some people.

        Returns:
            The sum, without noise: private.  Its shape is that of ``Report.values``.
        """
        score, weight, grid = self.score, self.weight, self._grid
        return score.add_up(features, outcomes, self.theta, weight=weight, grid=grid)


class LocalDevice:
    """Turns one person's data into a report, once, and stores nothing of them.

    A device always reports, at a time that does not depend on the data.  Without data it sends
    ``report()``, because silence would reveal that.
    """

    def __init__(self, channel: LocalChannel, person: int = 0) -> None:
        self._channel, self._sent = channel, False
        bound = channel.score.context_bound
        hessian_weight = channel.weight * channel.score.largest_weight * bound
        self._randomise: Any = np.array
        if channel.noise_channel.family != OPEN:
            self._randomise = VectorRandomiser(
                channel.noise_channel,
                channel.sensitivity,
                record_range(bound, hessian_weight, channel.grid)[1],
                noise=channel.noise,
                grid=channel.grid,
                seed=channel.seed,
                number=integer("person", person, 0),
            )

    def report(self, x: TableLike | None = None, y: float | None = None) -> Report:
        """Report features of shape (d,) and an outcome, with noise.

        Returns:
            A ``Report`` for ``Curator.receive``.  It holds only noise if one is missing, or is no
            vector or no number.

        Raises:
            ArgumentError: the features have another length.
            DPBanditsError: this device has reported: another report would cost its person a second
                budget.
        """
        d, vector = self._channel.theta.size, nested([x], 2)
        features = np.zeros((1, d)) if vector is None else vector.values
        if features.shape != (1, d) or getattr(x, "ndim", 1) > 1:
            raise ArgumentError(f"x must have shape ({d},)", "x")
        if self._sent:
            raise DPBanditsError("a device reports only once, and this one has already reported")
        found = None if vector is None else entries(y)
        outcome = math.nan if found is None or found.values.ndim else float(found.values)
        # Before the noise is drawn: a report that is interrupted counts as sent.
        self._sent = True
        values = self._channel.record(features, np.array([outcome]))
        return Report(self._channel.batch, self._randomise(values))


class Curator:
    """Learns from reports only; ``LocalGLM.curator`` makes it.

    Attributes:
        estimate: (d,) after each full batch; zero before.
        sizes: of the batches.
    """

    def __init__(self, model: LocalGLM, sizes: list[int], dimension: int) -> None:
        self.sizes, self.estimate = sizes, np.zeros(dimension)
        self._model, self._noise_channel = model, model._spending().channels[0]
        self._score = score = model._score(bounded=model.budget is not None)
        self._weight = model.hessian_weight / (score.largest_weight * score.context_bound)
        self._total = np.zeros(statistic_size(dimension))
        self._received = 0
        self._releases: list[Release] = []

    @property
    def batch(self) -> int:
        """Number of finished batches."""
        return len(self._releases)

    @property
    def is_over(self) -> bool:
        """Whether all batches are over."""
        return self.batch == len(self.sizes)

    def channel(self) -> LocalChannel:
        """The channel of the open batch.

        Raises:
            DPBanditsError: all batches are over.

        See also: ``LocalChannel.device``, ``receive``.
        """
        if self.is_over:
            raise DPBanditsError("there is no open batch, because all batches have ended")
        model = self._model
        public = self.batch, self.estimate.copy(), self._score, self._weight, self._noise_channel
        return LocalChannel(*public, model.noise, model._step, model.seed)

    def receive(self, report: Report) -> None:
        """Take in a report of the open batch, whose last one makes the next channel.

        Raises:
            ArgumentError: it is no report, or that of another batch.
        """
        if not isinstance(report, Report) or report.batch != self.batch or self.is_over:
            raise ArgumentError("report must belong to the open batch", "report")
        values = as_numbers(report.values)
        if values.shape != self._total.shape or not np.all(np.abs(values) <= MOST):
            raise ArgumentError(
                f"report must hold {self._total.size} numbers between {-MOST:g} and {MOST:g}",
                "report",
            )
        self.receive_sum(values, 1)

    def receive_sum(self, values: np.ndarray, people: int) -> None:
        """Take in the sum of the reports of some people of the open batch.

        Raises:
            ArgumentError: these are no finite numbers of the shape of a report, or too many people.
        """
        values, left = as_numbers(values), 0 if self.is_over else self.sizes[self.batch]
        if values.shape != self._total.shape or not np.all(np.isfinite(values)):
            raise ArgumentError(f"values must hold {self._total.size} finite numbers", "values")
        people = integer("people", people, 1, left - self._received)
        self._total += values
        self._received += people
        if self._received == self.sizes[self.batch]:
            self._close()

    def _close(self) -> None:
        channel, d = self.channel(), self.estimate.size
        noise_channel, std = channel.noise_channel, 0.0
        if noise_channel.family != OPEN:
            std = noise_channel.scale(channel.sensitivity) * math.sqrt(self._received)
        gradient, curvature = self._total[:d].copy(), smat(self._total[d:]) / self._weight
        self._releases += [Release(channel.theta, gradient, std, curvature, std / self._weight)]
        self._total[:], self._received = 0.0, 0
        self.estimate = newton_step(self._used(), self._model.parameter_bound, self._model.ridge)

    def _used(self) -> list[Release]:
        """All reports but the pilot's; with those if they outweigh its linearisation error."""
        rest = self._releases[1:]
        if not rest:
            return self._releases
        bent = bending(self._releases[0], rest[-1].theta, self._score.context_bound)
        error_with = math.hypot(_noise(self._releases), bent) / _eigenvalue(self._releases)
        error_without = _noise(rest) / _eigenvalue(rest)
        return self._releases if error_with < error_without else rest

    def confidence_intervals(self, level: float = 0.95) -> np.ndarray:
        """Intervals for each coefficient, see ``PrivateGLM``.

        Returns:
            Shape (d, 2): lower and upper ends.

        Raises:
            ArgumentError: the level is outside of (0, 1).
            DPBanditsError: not all batches are over.
        """
        level = real("level", level, 0.0, 1.0, strict=True)
        if not self.is_over:
            raise DPBanditsError("there is no estimate yet: reports are missing")
        dispersion = self._score.dispersion(self._model.outcome_variance)
        return coefficient_intervals(self._used(), dispersion, self._model.parameter_bound, level)


def _noise(releases: Sequence[Release]) -> float:
    """The standard deviation of the noise on their gradients together."""
    return math.sqrt(sum(release.std**2 for release in releases))


def _eigenvalue(releases: Sequence[Release]) -> float:
    """The mean one of their curvature, as far as it is above zero."""
    d = releases[0].theta.size
    return max(float(sum(np.trace(release.curvature) for release in releases)) / d, 1e-9)


class LocalGLM(Estimator):
    """A generalised linear model E[y | x] = nu(<x, theta>), from reports that devices randomise.

    ``curator`` is what runs where reports arrive, its ``channel().device().report(x, y)`` what runs
    where data are.  ``fit`` plays all parts on one machine.  Where ``PrivateGLM`` adds noise once,
    here everybody does: it takes very many people, and ``hessian_weight`` matters more.

    Args:
        link, outcome_range, context_bound, parameter_bound, ridge, hessian_weight, calibration,
            noise, grid, seed, outcome_variance: as for ``PrivateGLM``.
        budget: of any notion but ``PureDP``: of each report; None for no noise.
        batches: how many; a person is in one of them.  Default: 1 with the identity link, else 2,
            the first with a quarter of the people.  More than 2 have equal sizes.

    Attributes:
        coef_: (d,) the estimate, after ``fit``.
        ledger: one line for each batch of the last ``fit``.

    Raises:
        ArgumentError: an argument is out of range, or two do not fit together.

    Example:
        >>> from dpbandits import ApproxDP
        >>> from dpbandits.glm import LocalGLM
        >>> model = LocalGLM(budget=ApproxDP(1.0, 1e-6), seed=1)
        >>> curator = model.curator(people=40, dimension=2)
        >>> for person in range(40):
        ...     device = curator.channel().device(person)
        ...     curator.receive(device.report([0.5, -0.5], 1.0))
        >>> curator.is_over, curator.estimate.shape
        (True, (2,))
    """

    constraints: ClassVar[Constraints] = {"batches": Integer(1, _MOST_BATCHES) | None}
    _is_local = True

    def __init__(
        self,
        link: str = "logistic",
        *,
        budget: Budget | None,
        batches: int | None = None,
        outcome_range: tuple[float, float] = (0.0, 1.0),
        context_bound: float = 1.0,
        parameter_bound: float = 1.0,
        ridge: float | None = None,
        hessian_weight: float = _HESSIAN_WEIGHT,
        calibration: Calibration = "exact",
        noise: str = "simulation",
        grid: float | None = None,
        seed: int | None = None,
        outcome_variance: float | None = None,
    ) -> None:
        self.link, self.budget, self.batches = link, budget, batches
        self.outcome_range = outcome_range
        self.context_bound, self.parameter_bound = context_bound, parameter_bound
        self.ridge, self.hessian_weight = ridge, hessian_weight
        self.calibration, self.noise, self.grid, self.seed = calibration, noise, grid, seed
        self.outcome_variance = outcome_variance
        self._check()

    def _check(self) -> None:
        super()._check()
        self._score()
        self._source()
        self._spending()

    def _spending(self) -> Spending:
        return Spending.of(self.budget, [1.0], calibration=self.calibration)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee for a person and their one report."""
        assumed = [
            "a person sends one report, which their device has to enforce, at a time that does not"
            " depend on their data",
            "the batch of a person, and the number of people, are public",
            "the question to a batch follows from reports of earlier batches (sequential"
            " interaction)",
            f"features have a length of at most {self.context_bound:g}, which scaling enforces",
            TYPES_ARE_PUBLIC,
            "a device runs only a channel that its own copy of this model `accepts`, because noise,"
            " its source and all bounds come with the channel",
            "devices and curator are separate parties, as `channel`, `report` and `receive` are;"
            " the caller of `fit` plays all of them, and sees all data",
        ]
        return self._spending().guarantee(self._source(), assumed, _PROOF, local=True)

    def accepts(self, channel: LocalChannel) -> bool:
        """Check a curator's channel.  A device calls this on a model made from arguments that it
        trusts.

        Returns:
            Whether the channel belongs to this model.  Theta may be any finite vector within its
            bound.
        """
        expected = self.curator(_MOST_BATCHES, max(channel.theta.size, 1)).channel()
        same = replace(expected, batch=channel.batch, theta=channel.theta) == channel
        return same and bool(np.linalg.norm(channel.theta) <= self.parameter_bound * (1.0 + 1e-9))

    def curator(self, people: int, dimension: int) -> Curator:
        """The side that receives reports, for the given number of people with features of shape
        (dimension,).

        Raises:
            ArgumentError: there are fewer people than batches.
        """
        people = integer("people", people, 1)
        batches = self.batches or (1 if self.link == "identity" else 2)
        batches = min(batches, people) if self.batches is None else batches
        if people < batches:
            raise ArgumentError(f"people must be at least {batches}, got {people}", "people")
        ends = np.linspace(0, people, batches + 1).round().astype(int)
        if batches == 2:
            ends[1] = max(1, round(_PILOT * people))
        return Curator(self, np.diff(ends).tolist(), integer("dimension", dimension, 1))

    def fit(self, X: TableLike, y: TableLike) -> Self:  # noqa: N803
        """Play the protocol for features of shape (n, d) and outcomes of shape (n,).

        With simulated noise the sum of a batch's reports is drawn at once, with the same law; the
        curator keeps only the sum.  With secure noise reports are drawn one by one.

        Raises:
            ArgumentError: the shapes are wrong, or there are fewer rows than batches.

        See also: ``curator``, for people with devices of their own.
        """
        features, outcomes = self._read(X, y)
        curator = self.curator(*features.shape)
        size, first, source = statistic_size(features.shape[1]), 0, self._source()
        lines: list[Line] = []
        rng = source.generator("reports")
        for people in curator.sizes:
            channel, batch = curator.channel(), slice(first, first + people)
            noise, moved = channel.noise_channel, channel.sensitivity
            if source.secure and self.budget is not None:
                for x, outcome in zip(features[batch], outcomes[batch], strict=True):
                    curator.receive(channel.device().report(x, outcome))
            else:
                scale = 0.0 if self.budget is None else noise.scale(moved) * math.sqrt(people)
                total = np.empty(size)
                records = channel.record(features[batch], outcomes[batch])
                source.add_noise(noise, scale, records, total, rng)
                curator.receive_sum(total, people)
            lines.append(((first, first + people - 1), noise, moved, size * people))
            first += people
        self.coef_ = curator.estimate
        self._note_columns(X, features.shape[1])
        self.ledger, self._curator = self._spending().ledger(lines), curator
        return self

    def confidence_intervals(self, level: float = 0.95) -> np.ndarray:
        """Intervals for each coefficient, see ``PrivateGLM``.

        Returns:
            Shape (d, 2): lower and upper ends.

        Raises:
            ArgumentError: the level is outside of (0, 1).
            DPBanditsError: there is no estimate yet.
        """
        self._learnt()
        return self._curator.confidence_intervals(level)
