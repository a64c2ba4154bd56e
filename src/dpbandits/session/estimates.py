"""Results of a policy: public estimates of its arms, and diagnostics for its operator alone.

``Estimates`` are post-processing: they are computed from ``params`` and ``public``, and may be
shown to everyone who may see decisions.  ``Diagnostics`` depend on answers, and no guarantee covers
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..html import NONE, Html, glance
from ..inference import ReleasedSums
from .rounds import Rounds

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = "the algorithm keeps no estimates of the arms"
CONFIDENCE = 0.95  # of ``Estimates.low`` and ``high``
LOSSES_ALONE = "the algorithm weighs arms or experts by estimated losses, and estimates no means"


class ArmEstimates(NamedTuple):
    """An algorithm's estimates of the arms' mean rewards.  Each is an array of shape (K,)."""

    means: np.ndarray  # as rewards are measured; nan: nothing was released of the arm
    errors: np.ndarray | None = None  # at most their standard deviations, noise included
    rounds: np.ndarray | None = None  # that the released sums of the arm are made of
    alive: np.ndarray | None = None  # whether the arm is still played; None: all are
    own: np.ndarray | None = None  # means of the arm's own rewards, where ``means`` are a model's


def standard_error(n: np.ndarray, width: float, noise_variance: float | np.ndarray) -> np.ndarray:
    """An upper bound on the standard deviation of the mean of n rewards.  The rewards lie within a
    range of that width, and their sum has noise of that variance.  It is nan for no rewards.

    >>> standard_error(np.array([0, 25]), 1.0, 56.25)
    array([       nan, 0.31622777])
    """
    n = np.where(n > 0, n, np.nan)
    return np.sqrt(width**2 / (4.0 * n) + noise_variance / n**2)


@dataclass(frozen=True, eq=False, repr=False)
class Estimates:
    """Estimates of a policy's arms or of its model, from its releases so far.

    It uses releases and public counts alone.  Where the guarantee holds, it may be shown to anyone.
    Without a budget it uses exact rewards.

    Attributes:
        means: of the arms' rewards, shape (K,); nan where nothing was released.  None where the
            algorithm estimates none.
        errors: an upper bound on the standard deviation of each mean, for rewards in their range
            and the noise.  It assumes rounds planned beforehand, without losses in a crash or
            default rewards after retiring an arm.  None where the algorithm has none.
        low, high: the ends of intervals that hold at all releases together, for all arms, with 95 %
            confidence; see ``Policy.intervals``.  None where there are none.
        rounds: the rounds of each arm in episodes that are over, with those that still wait for
            answers.  None where they are not kept apart, and where contexts are private, because
            arms then are, too.
        alive: whether an arm is still played, neither dropped nor retired; None where all are.
        coefficients: of a linear model, shape (d,), or (K, d) with one for each arm; else None.
        releases: the number of releases so far.
        reason: why neither means nor coefficients are known; empty where they are.
        names: the names of the arms; None without names.

    Example:
        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(2, budget=ZCDP(1.0), seed=1)
        >>> policy.estimates
        <Estimates of 2 arms after 0 releases>
        >>> for _ in range(100):
        ...     decision = policy.pull()
        ...     _ = policy.update(float(decision.arm == 1))
        >>> policy.estimates.leader
        1
    """

    releases: int
    means: np.ndarray | None = None
    errors: np.ndarray | None = None
    rounds: np.ndarray | None = None
    alive: np.ndarray | None = None
    coefficients: np.ndarray | None = None
    reason: str = ""
    names: Sequence[str] | None = None
    read_sums: Callable[[], ReleasedSums] | None = None

    @cached_property
    def sums(self) -> ReleasedSums | None:
        """What ``low`` and ``high`` are made of; None where there are none."""
        return None if self.read_sums is None else self.read_sums()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "sums": self.sums, "read_sums": None}  # a function stays behind

    @property
    def low(self) -> np.ndarray | None:
        return None if self._ends is None else self._ends[0]

    @property
    def high(self) -> np.ndarray | None:
        return None if self._ends is None else self._ends[1]

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray] | None:
        return None if self.sums is None else self.sums.ends(CONFIDENCE)

    def without(self, retired: Sequence[int]) -> Estimates:
        """These estimates where some arms are retired."""
        if self.means is None or not retired:
            return self
        alive = np.full(self.means.shape, True) if self.alive is None else self.alive.copy()
        alive[list(retired)] = False
        return replace(self, alive=alive)

    def _called(self, arm: int) -> str:
        return str(arm) if self.names is None else self.names[arm]

    @property
    def leader(self) -> int | None:
        """The arm of highest mean among those that are still played, the first of equals; None
        before the first release, and where means are not known.
        """
        if self.means is None or self.releases == 0:
            return None
        means = np.where(np.isnan(self.means), -np.inf, self.means)
        if self.alive is not None:
            means = np.where(self.alive, means, -np.inf)
        best = int(means.argmax())
        return best if means[best] > -np.inf else None

    @property
    def frame(self) -> pd.DataFrame:
        """One row per arm, or per model: ``mean``, ``error``, ``low``, ``high``, ``rounds`` and
        ``alive`` as far as they are known, or the coefficients.
        """
        import pandas as pd  # takes longer to import than all else here

        if self.means is None:
            rows = np.atleast_2d([] if self.coefficients is None else self.coefficients)
            return pd.DataFrame(rows, self._index(len(rows)))
        names = {"means": "mean", "errors": "error"} | {
            name: name for name in ("low", "high", "rounds", "alive")
        }
        columns = {name: getattr(self, own) for own, name in names.items()}
        known = {name: column for name, column in columns.items() if column is not None}
        return pd.DataFrame(known, self._index(len(self.means))).rename_axis("arm")

    def _index(self, rows: int) -> list[str] | None:
        """Names of the arms in the rows of a table."""
        return list(self.names) if self.names is not None and rows == len(self.names) else None

    def __repr__(self) -> str:
        if self.reason:
            return f"<Estimates: none, because {self.reason}>"
        of, led = self._subject, self.leader
        leads = "" if led is None else f", arm {self._called(led)} leads with {self._found(led)}"
        return f"<Estimates of {of} after {self._count}{leads}>"

    def _repr_html_(self) -> Html:
        title = "Estimates" if self.reason else f"Estimates of {self._subject}"
        note = f"After {self._count}." if not self.reason else f"None: {self.reason}."
        if self.low is not None:
            note += (
                " Intervals hold at all releases together. intervals() tells when they do not hold."
            )
        return glance(title, *self.table(), note=note)

    @property
    def _count(self) -> str:
        return f"{self.releases:,} release" + "s" * (self.releases != 1)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The estimates, in words.

        Returns:
            Heads, and a row for each arm or model; both empty without estimates.
        """
        if self.means is None:
            models = np.atleast_2d([] if self.coefficients is None else self.coefficients)
            named = len(models) > 1
            heads = ["model"] * named + [f"coefficient {i}" for i in range(models.shape[1])]
            rows = [
                [self._called(m)] * named + [f"{x:.4g}" for x in row]
                for m, row in enumerate(models)
            ]
            return ([], []) if self.coefficients is None else (heads, rows)
        between = [] if self.low is None else [f"{100.0 * CONFIDENCE:g} % interval"]
        heads = ["arm", "mean", *between, *(["rounds"] if self.rounds is not None else []), ""]
        return heads, [self._row(arm) for arm in range(len(self.means))]

    def _row(self, arm: int) -> list[str]:
        row = [self._called(arm), self._mean(arm)]
        if self.low is not None:
            row.append(self._between(arm))
        if self.rounds is not None:
            row.append(f"{int(self.rounds[arm]):,}")
        dropped = self.alive is not None and not self.alive[arm]
        return [*row, "leader" if arm == self.leader else "dropped" if dropped else ""]

    def _mean(self, arm: int) -> str:
        assert self.means is not None
        if np.isnan(self.means[arm]):
            return NONE
        return f"{self.means[arm]:.4g}"

    def _between(self, arm: int) -> str:
        assert self.low is not None
        assert self.high is not None
        low, high = self.low[arm], self.high[arm]
        return NONE if np.isnan(low) else f"{low:.3g} to {high:.3g}"

    def _found(self, arm: int) -> str:
        between = "" if self.low is None else f" ({self._between(arm)})"
        return f"{self._mean(arm)}{between}"

    @property
    def _subject(self) -> str:
        if self.means is not None:
            return f"{len(self.means)} arms"
        models, size = np.atleast_2d([] if self.coefficients is None else self.coefficients).shape
        return f"{size} coefficients" + (f" of each of {models} models" if models > 1 else "")


@dataclass(frozen=True)
class Diagnostics:
    """Counts of how answers were processed.  They are for the operator, because the operator sees
    the answers anyway. They depend on answers, and the guarantee does not cover them, so do not
    publish them.

    Attributes:
        clipped: answers that lay outside of the reward range.
        missing: answers that were not a number.
        dropped: answers that came too late, or to rounds that were not recorded.
        late: those of them that came too late, or to a round that a crash made the policy forget.
        blanked: private contexts with entries that were not finite, or above 1e100, and counted as
            0.
        scaled: feature vectors that were longer than ``context_bound``, and were scaled to it.
        pending: recorded rounds whose answer may still come.

    Example:
        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(2, budget=ZCDP(1.0), seed=1)
        >>> policy.update(7.0, policy.pull())
        True
        >>> policy.diagnostics  # doctest: +NORMALIZE_WHITESPACE
        <Diagnostics, for the operator alone: clipped=1, missing=0, dropped=0, late=0, blanked=0,
        scaled=0, pending=0>
    """

    clipped: int
    missing: int
    dropped: int
    late: int
    blanked: int
    scaled: int
    pending: int

    @classmethod
    def of(cls, *streams: Rounds) -> Diagnostics:
        """The diagnostics of a policy: of the bandit's rounds, and of those of its holdout."""
        names = ("clipped", "missing", "dropped", "late", "blanked", "scaled")
        waiting = sum(len(one.pending) - len(one.answers) + len(one.flown) for one in streams)
        counted = {name: sum(getattr(one, name) for one in streams) for name in names}
        return cls(**counted, pending=waiting)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={n}" for name, n in asdict(self).items())
        return f"<Diagnostics, for the operator alone: {counts}>"

    def _repr_html_(self) -> Html:
        rows = [[name, f"{n:,}"] for name, n in asdict(self).items()]
        note = (
            "These numbers depend on answers. The guarantee does not cover them, so do not publish"
            " them."
        )
        return glance("Diagnostics, for the operator alone", ["answers", ""], rows, note)
