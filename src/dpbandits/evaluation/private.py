"""Private values of other policies, from logged decisions, for publication.

Guarantee:

* Protected: the reward of one record; with ``protects="contexts and rewards"`` also its context,
  its arm, and with it its weight.  Of a user with several records: all that count, at most M.
* Adjacency and sensitivity: one record is replaced by another; see below.
* Assumed: the target policy, the cut of weights and the number of records do not depend on the
  protected records: they come from releases, from other people, or from nobody.

Record i has the weight w = min(pi / p, c) in [0, c]: the probability of its arm under the target,
over that under the logging policy.  Its reward is scaled to z = (r - mid) / half in [-1, 1].  The
values come from N = sum w z, and D = sum w.

**Rewards alone.**  Weights are public, so D needs no noise.  Another reward moves N by w |z - z'|,
at most twice the largest weight that occurs.

**Contexts and rewards.**  One release has both, D with noise that is smaller by the factor b: it
is a release of S = (b D, N) with equal noise in both entries.  A record moves S by

    b^2 (w - w')^2 + (w z - w' z')^2  <=  b^2 (w - w')^2 + (w + w')^2        in the square of L2,
    b |w - w'| + |w z - w' z'|        <=  b |w - w'| + (w + w')              in L1.

Both are convex in w and in w', hence largest where each is 0 or c: max{(1 + b^2) c^2, 4 c^2} and
max{(1 + b) c, 2 c}.  With b = sqrt(3) in L2, and b = 1 in L1, that is (2 c)^2 and 2 c, which N
alone would have: the denominator costs nothing.

**Several targets.**  Their sums are one vector.  In L2 a record moves it by the root of the sum of
squares, in L1 by the sum.

**Users.**  Of each user the first M records count, in the order of rows.  They move S by at most M
times as much as one, by the triangle inequality.

**Secure noise.**  Weights are rounded down to the grid, and terms w z to the nearest multiple.  The
rounded term is within [-w, w], where w is the rounded weight, so the bounds hold as they are.
Discrete noise costs as much coordinate by coordinate (``privacy.discrete``), with a scale of its
own in each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..constraints import Choice, Constraints, Integer, Range, Real, checked
from ..errors import ArgumentError
from ..html import Html, glance, items, tag
from ..privacy import Budget, Guarantee, Ledger
from ..privacy.budgets import checked_budget
from ..privacy.channels import FAMILIES, Channel, noise_for
from ..privacy.grids import default_grid, drawn_scale
from ..privacy.ledger import WHOLE, Meter, empty_arrays, write
from ..privacy.noise import NoiseSource
from ..privacy.secure import noise_source
from ..tables import TableLike, flat, manners, table
from .private_intervals import Noise, Sums, interval_of

if TYPE_CHECKING:
    import pandas as pd

REWARDS, RECORDS = "rewards", "contexts and rewards"
_LARGEST = 1e6  # weight
_NOISES = ("Gaussian", "Laplace")
DENOMINATOR = {1: 1.0, 2: math.sqrt(3.0)}  # b, by the norm
_PROOF = "dpbandits.evaluation.private"
_UP = 1.0 + 1e-9  # outweighs the rounding of a quotient


class _Terms(NamedTuple):
    """The records that count."""

    weights: np.ndarray  # (n, q), at most c
    rewards: np.ndarray  # (n,) in [-1, 1]


@dataclass(frozen=True, eq=False, repr=False)
class PrivateEvaluation:
    """Values of target policies, released with differential privacy.

    Attributes:
        targets: their names.
        sums: their noisy sums, and the laws of that noise: all that was released.
        reward_range: the ends of the rewards.
        independent: whether records are of one person each, which intervals assume.
        breaks: sentences on what the values and intervals do not cover.
        guarantee: of this release.
        ledger: its line.
    """

    targets: tuple[str, ...]
    sums: tuple[Sums, ...]
    reward_range: tuple[float, float]
    independent: bool
    breaks: Sequence[str]
    guarantee: Guarantee
    ledger: Ledger

    @property
    def values(self) -> np.ndarray:
        """(q,) the self-normalised values (SNIPS) in [lo, hi]; nan where no weight is left."""
        return self._on_scale([one.value for one in self.sums])

    def intervals(self, confidence: float = 0.95, estimator: str = "SNIPS") -> np.ndarray:
        """Intervals of the targets' values that include the noise, and hold together.

        They hold for independent records of a number that was fixed beforehand, such as those of a
        holdout.  Where weights are cut they are about the target with its lost probability left
        out.

        Args:
            confidence: the probability with which all of them hold, in (0, 1).
            estimator: "SNIPS", or "IPS", which divides by the number of records.

        Returns:
            Shape (q, 2): lower and upper ends.  nan where no value explains the release, and with
            several records of a user: their rewards may resemble each other.

        Raises:
            ArgumentError: an argument is out of range.
        """
        alpha = (1.0 - asked(confidence, estimator)) / len(self.sums)
        if not self.independent:
            return np.full((len(self.sums), 2), math.nan)
        ends = [interval_of(one, alpha, normalised=estimator == "SNIPS") for one in self.sums]
        return self._on_scale(np.array(ends))

    def _on_scale(self, z: Any) -> np.ndarray:
        lo, hi = self.reward_range
        return 0.5 * (lo + hi) + 0.5 * (hi - lo) * np.asarray(z)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each target: ``value``, ``low`` and ``high``, at 95 %."""
        import pandas as pd  # takes longer to import than all else here

        low, high = self.intervals().T
        columns = {"value": self.values, "low": low, "high": high}
        return pd.DataFrame(columns, pd.Index(self.targets, name="target"))

    def to_dict(self, confidence: float = 0.95, estimator: str = "SNIPS") -> dict[str, Any]:
        """Values, intervals and guarantee as data, with None for nan.

        Args:
            confidence, estimator: as for ``intervals``.
        """
        ends = self.intervals(confidence, estimator)
        rows = [
            {"target": name, "value": _known(value), "low": _known(low), "high": _known(high)}
            for name, value, (low, high) in zip(self.targets, self.values, ends, strict=True)
        ]
        return {
            "records": self.sums[0].count,
            "confidence": confidence,
            "estimator": estimator,
            "values": rows,
            "private": not self.guarantee.simulated,
            "breaks": list(self.breaks),
            "guarantee": self.guarantee.to_dict(),
        }

    def table(
        self, confidence: float = 0.95, estimator: str = "SNIPS"
    ) -> tuple[list[str], list[list[str]]]:
        """The values in words.

        Returns:
            Heads, and a row for each target.
        """
        rows = [
            [one["target"], *(_shown(one[name]) for name in ("value", "low", "high"))]
            for one in self.to_dict(confidence, estimator)["values"]
        ]
        return ["target", "value", "low", "high"], rows

    @property
    def title(self) -> str:
        """What this is, in words."""
        return f"values from {self.sums[0].count:,} records, with 95 % intervals"

    def __repr__(self) -> str:
        found = "; ".join(
            f"{name}: {value} ({low} to {high})" for name, value, low, high in self.table()[1]
        )
        return f"<{self.title}: {found}>"

    def __str__(self) -> str:
        listed = "\n".join(f"* {one}" for one in self.breaks)
        return f"{repr(self)[1:-1]}.\n{listed}\n{self.guarantee}"

    def _repr_html_(self) -> Html:
        said = items(self.breaks) + tag("p", str(self.guarantee))
        return Html(glance(self.title, *self.table()) + said)


def asked(confidence: float, estimator: str) -> float:
    """The confidence, if it and the estimator can be asked of a release."""
    given = checked(_Asked, confidence=confidence, estimator=estimator)
    return float(given["confidence"])  # type: ignore[arg-type]  # which is a number


class _Asked:
    constraints: ClassVar[Constraints] = {
        "confidence": Real(0.0, 1.0, strict=True),
        "estimator": Choice("SNIPS", "IPS"),
    }


@dataclass(frozen=True)
class Release:
    """How values are released: the arguments of ``evaluate_privately``, checked.

    Attributes:
        budget: what the release costs.
        protects: "rewards", or "contexts and rewards".
        largest_weight: c, at which weights are cut: at least one over the least probability with
            which the log plays an arm, for no cut.
        reward_range: to which rewards are clipped.
        default_reward: counts for a missing reward; None for the lower end.
        records_per_user: M.
        noise, grid, seed: as in policies.
    """

    budget: Budget
    protects: str
    largest_weight: float
    reward_range: tuple[float, float] = (0.0, 1.0)
    default_reward: float | None = None
    records_per_user: int = 1
    noise: str = "simulation"
    grid: float | None = None
    seed: int | None = None

    constraints: ClassVar[Constraints] = {
        "protects": Choice(REWARDS, RECORDS),
        "largest_weight": Real(1.0, _LARGEST),
        "reward_range": Range(),
        "default_reward": Real() | None,
        "records_per_user": Integer(1, 10**6),
        "noise": Choice("simulation", "secure"),
        "seed": Integer(0) | None,
    }

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in self.constraints}
        for name, value in checked(type(self), **given).items():
            object.__setattr__(self, name, value)
        checked_budget(self.budget)
        lo, hi = self.reward_range
        if self.default_reward is not None and not lo <= self.default_reward <= hi:
            raise ArgumentError(
                f"default_reward must be in [{lo:g}, {hi:g}], got {self.default_reward!r}",
                "default_reward",
            )
        self.channel, self._source()  # which check the rest

    @property
    def channel(self) -> Channel:
        """The noise of one release for the whole budget."""
        kind = noise_for(self.budget, [FAMILIES[name] for name in _NOISES])
        if kind is None:
            names = " or ".join(_NOISES)
            raise ArgumentError(
                f"budget must be of a notion that suits {names} noise, got {self.budget!r}",
                "budget",
            )
        return kind.calibrated(self.budget)

    @property
    def step(self) -> float:
        """The grid of secure noise on weights and terms; 0 for none."""
        if self.noise != "secure":
            return 0.0
        return default_grid((0.0, self.largest_weight)) if self.grid is None else self.grid

    def _source(self) -> NoiseSource:
        """The noise on sums of weights and terms."""
        step = self.step or default_grid((0.0, self.largest_weight))
        ends = math.ceil(self.largest_weight / step) * step
        return noise_source(self.noise, self.seed, grid=step, reward_range=(-ends, ends))

    # Records ----------------------------------------------------------------------------------

    def of(
        self,
        rewards: TableLike,
        propensities: TableLike,
        chances: TableLike,
        targets: Sequence[str],
        users: np.ndarray | None = None,
        assumed: Sequence[str] = (),
    ) -> PrivateEvaluation:
        """Release the values of targets.

        Args:
            rewards: (n,) nan where missing.
            propensities: (n,) probabilities of the logged arms.
            chances: (n, q) the same under each target.
            targets: q names.
            users: (n,) numbers of the users; None where each record is a person.
            assumed: what else the guarantee assumes.

        Raises:
            ArgumentError: shapes do not fit; with ``protects="rewards"`` an entry of a public
                column is out of range, or no weight is above 0; or secure noise needs a coarser
                grid.
        """
        terms, cut = self._terms(rewards, propensities, chances, users)
        source = self._source()
        if len(terms.rewards) > source.most_records:
            raise ArgumentError(
                f"grid must be coarser, got {self.step!r}: sums over {len(terms.rewards)} records"
                " would not be exact",
                "grid",
            )
        moved = self.records_per_user * self._moved(terms)
        sums = self._released(terms, moved, source)
        return PrivateEvaluation(
            tuple(targets),
            tuple(sums),
            self.reward_range,
            self.records_per_user == 1,
            tuple(self._breaks(targets, sums, cut)),
            self._guarantee(source, assumed),
            self._ledger(len(rewards), moved, len(sums)),  # type: ignore[arg-type]
        )

    def _terms(
        self,
        rewards: TableLike,
        propensities: TableLike,
        chances: TableLike,
        users: np.ndarray | None,
    ) -> tuple[_Terms, bool]:
        """The terms, and whether a weight was cut."""
        known = flat("rewards", rewards, manners.PRIVATE_RECORD)
        public = self.protects == REWARDS
        manner = manners.PROPENSITIES if public else manners.PRIVATE_RECORD
        p = flat("propensities", propensities, manner, rows=len(known))
        pi = table("chances", chances, manners.CHANCES if public else manners.PRIVATE_RECORD)
        with np.errstate(all="ignore"):
            weights = np.where(p[:, None] > 0.0, pi / p[:, None], 0.0)
        weights = np.where(weights > 0.0, weights, 0.0)  # nan counts as 0
        cut = bool((weights > self.largest_weight * _UP).any())
        weights = np.minimum(weights, self.largest_weight)
        lo, hi = self.reward_range
        default = lo if self.default_reward is None else self.default_reward
        known = np.clip(np.where(np.isnan(known), default, known), lo, hi)
        kept = slice(None) if users is None else _first_of(users, self.records_per_user)
        z = np.clip((known - 0.5 * (lo + hi)) / (0.5 * (hi - lo)), -1.0, 1.0)
        return _Terms(weights[kept], z[kept]), cut

    def _moved(self, terms: _Terms) -> float:
        """By how much a record moves the release, in the norm of the noise."""
        norm, q = self.channel.norm, terms.weights.shape[1]
        if self.protects == RECORDS:
            return 2.0 * self.largest_weight * (math.sqrt(q) if norm == 2 else q)
        moved = 2.0 * float(np.linalg.norm(terms.weights, norm, axis=1).max(initial=0.0))
        if moved == 0.0:
            raise ArgumentError(
                "log must have records with arms that a target plays, got none", "log"
            )
        return moved

    def _released(self, terms: _Terms, moved: float, source: NoiseSource) -> list[Sums]:
        channel, step, rng = self.channel, self.step, source.generator("privacy")
        weights = _rounded(terms.weights, step, np.floor)
        scale, count, cut = channel.scale(moved), len(terms.rewards), self.largest_weight
        less = scale / DENOMINATOR[channel.norm]
        hidden = self.protects == RECORDS
        found = []
        for own in weights.T:
            rewarded = np.array([_rounded(own * terms.rewards, step, np.rint).sum()])
            weighed = np.array([own.sum()])
            source.add_noise(channel, scale, rewarded.copy(), rewarded, rng)
            if hidden:
                source.add_noise(channel, less, weighed.copy(), weighed, rng)
            noises = [
                Noise(channel.name == "Laplace", drawn_scale(channel.family, one, step or one))
                for one in (scale, less if hidden else 0.0)
            ]
            found.append(Sums(float(rewarded[0]), float(weighed[0]), count, cut, step, *noises))
        return found

    # What is said of it -----------------------------------------------------------------------

    def _breaks(self, targets: Sequence[str], sums: Sequence[Sums], cut: bool) -> Iterator[str]:
        yield "The values hold for people like those of the log, at the time of the log."
        if self.records_per_user > 1:
            yield "There are no intervals, because the records of a person may resemble each other."
        else:
            yield (
                "Intervals assume that records are independent, and that their number was fixed"
                " beforehand."
            )
        lo = self.reward_range[0] if self.default_reward is None else self.default_reward
        yield (
            f"A missing reward counts as {lo:g}. A reward outside the range counts as the nearer"
            " end."
        )
        if self.protects == RECORDS:  # where it must not be told whether that happened
            yield (
                f"If the log plays an arm with a probability below 1 / {self.largest_weight:g},"
                " weights may be cut. Values and intervals leave out the cut part."
            )
        elif cut:
            yield "Weights were cut. Values and intervals leave out the cut part."
        for name, one in zip(targets, sums, strict=True):
            if one.overlap_is_missing:
                yield (
                    f"{name}: the mean weight differs from 1. The log lacks rounds in which the"
                    " target's arm could be played, the log's propensities are wrong, or weights"
                    " were cut. The value leaves out what is missing or cut."
                )

    def _ledger(self, rows: int, moved: float, targets: int) -> Ledger:
        arrays, channel = empty_arrays(1), self.channel
        draws = targets * (2 if self.protects == RECORDS else 1)
        write(arrays, 0, rows - 1, WHOLE, channel.family, moved, channel.multiplier, draws)
        return Ledger(arrays, Meter.of(self.budget))

    def _guarantee(self, source: NoiseSource, assumed: Sequence[str]) -> Guarantee:
        many = self.records_per_user
        person = (
            "a person is one record of the log"
            if many == 1
            else f"of each user the first {many} records count, and it is public which these are"
        )
        public = (
            "arms, contexts and probabilities of the log are public, and so are its length and who"
            " has a record"
            if self.protects == REWARDS
            else "the length of the log is public, and who has a record"
        )
        fixed = (
            "the target policies, and the largest weight, were chosen without these records: they"
            " come from releases, or from other people"
        )
        return Guarantee(
            holds=self.budget,
            asked=self.budget,
            trust_model="central",
            protects=self.protects,  # type: ignore[arg-type]  # one of its words
            view="non-interactive",
            unit="person",
            assumptions=(person, public, fixed, *assumed),
            source=_PROOF,
            caveats=(
                *source.caveats,
                "A policy's releases from the same records cost a budget of their own: the two"
                " costs add up",
            ),
            simulated=not source.secure,
        )


def _first_of(users: np.ndarray, most: int) -> np.ndarray:
    """The rows of each user's first records, so many at most, in order."""
    order = np.argsort(users, kind="stable")
    starts = np.flatnonzero(np.r_[True, users[order][1:] != users[order][:-1]])
    rank = np.arange(len(users)) - np.repeat(starts, np.diff(np.r_[starts, len(users)]))
    return np.sort(order[rank < most])


def _rounded(values: np.ndarray, step: float, how: Any) -> np.ndarray:
    return how(values / step) * step if step else values


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
