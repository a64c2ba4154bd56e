"""Shared by estimators of generalised linear models: arguments, predictions, and the door."""

from __future__ import annotations

import inspect
import logging
import math
import sys
from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from .. import tables
from ..constraints import Choice, Constraints, Integer, Range, Real, checked
from ..errors import ArgumentError, DPBanditsError
from ..privacy.budgets import Budget
from ..privacy.grids import default_grid
from ..privacy.ledger import Ledger
from ..privacy.noise import NoiseSource
from ..privacy.secure import noise_source
from ..tables import Manner, TableLike, manners
from ..validation import choice, interval
from .links import LINK_NAME
from .scores import Score, record_range

# What is taken for public of a private table.
TYPES_ARE_PUBLIC = "it is public which columns of features and outcomes hold any number"
NARROWEST, WIDEST = 1e-6, 1e6  # bounds on features and parameters
MOST = 1e100  # of other numbers
_MOST_FEATURES = 1000
_LOGGER = logging.getLogger("dpbandits")  # of the operator, which no guarantee covers


class Estimator(ABC):
    """Base class of estimators: a constructor that stores arguments, and predictions."""

    constraints: ClassVar[Constraints] = {
        "link": LINK_NAME,
        "outcome_range": Range(),
        "context_bound": Real(NARROWEST, WIDEST),
        "parameter_bound": Real(NARROWEST, WIDEST),
        "ridge": Real(0.0, MOST) | None,
        "hessian_weight": Real(1e-3, 1e3),
        "calibration": Choice("exact", "paper"),
        "noise": Choice("simulation", "secure"),
        "seed": Integer(0) | None,
        "outcome_variance": Real(0.0, MOST) | None,
    }
    _is_local = False  # whether every person adds noise, rather than somebody trusted
    link: str
    outcome_range: tuple[float, float]
    context_bound: float
    parameter_bound: float
    hessian_weight: float
    budget: Budget | None
    noise: str
    grid: float | None
    seed: int | None
    ledger: Ledger
    coef_: np.ndarray  # (d,)
    n_features_in_: int
    feature_names_in_: np.ndarray  # (d,) where ``fit`` was given a table with names

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of a regression: this works without that package installed."""
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True),
            regressor_tags=RegressorTags(poor_score=self.budget is not None),
            input_tags=InputTags(allow_nan=True),
            non_deterministic=self.budget is not None and self.seed is None,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **changes: Any) -> Self:
        """Change constructor arguments; the estimate is kept until the next ``fit``.

        Raises:
            ArgumentError: there is no such argument, or it is out of range.
        """
        params = self.get_params()
        for name in changes:
            choice("params", name, tuple(params))
        self.__init__(**{**params, **changes})  # type: ignore[misc]
        return self

    def __repr__(self) -> str:
        given = inspect.signature(type(self)).parameters
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value != given[name].default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def predict(self, X: TableLike) -> np.ndarray:  # noqa: N803
        """The mean outcomes for features of shape (n, d), shape (n,).

        Features are scaled, and entries that are no numbers count as 0, as in ``fit``.

        Raises:
            ArgumentError: the shape is another one.
            DPBanditsError: there is no estimate yet.
        """
        self._learnt()
        features = table(X, manners.PRIVATE_RECORD)
        if features.shape[1] != self.n_features_in_:
            # In scikit-learn's words, by which its pipelines know the error.
            expected = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            raise ArgumentError(f"X has {features.shape[1]} features, but {expected}", "X")
        names, known = names_of(X), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and names.tolist() != known.tolist():
            raise ArgumentError(
                f"X must have the columns that fit was given, in this order: {', '.join(known)}",
                "X",
            )
        return self._score().mean(features, self.coef_)

    def score(self, X: TableLike, y: TableLike) -> float:  # noqa: N803
        """The coefficient of determination R^2 of ``predict``, for outcomes of shape (n,); people
        without one do not count; NaN if all are without one.

        It is computed from the data as they are: it is not private.  A search over parameters by
        such scores spends the budget once for each ``fit``, and leaks more by its choice.

        Raises:
            ArgumentError: as for ``predict``; or ``y`` has another shape.
            DPBanditsError: there is no estimate yet.
        """
        means = self.predict(X)
        outcomes = column(y, means.size)
        known = np.isfinite(outcomes)
        if not known.any():
            return math.nan
        left = float(np.sum((outcomes[known] - means[known]) ** 2))
        spread = float(np.sum((outcomes[known] - outcomes[known].mean()) ** 2))
        return 1.0 - left / spread if spread > 0.0 else float(left == 0.0)

    @property
    def predict_proba(self) -> Callable[[Any], np.ndarray]:
        """The probabilities of outcomes 0 and 1: a function of features, whose result has shape (n,
        2).  The attribute does not exist, for ``hasattr`` either, if the link gives no
        probabilities.

        Raises:
            ArgumentError: as for ``predict``.
            DPBanditsError: there is no estimate yet, or the link does not give probabilities.
        """
        if self.link not in ("logistic", "probit") or tuple(self.outcome_range) != (0, 1):
            raise _NoProbabilities(
                "predict_proba needs the link 'logistic' or 'probit', and outcome_range=(0, 1), got"
                f" {self.link!r} and {self.outcome_range!r}"
            )
        return self._probabilities

    def _probabilities(self, X: Any) -> np.ndarray:  # noqa: N803
        ones = self.predict(X)
        return np.column_stack((1.0 - ones, ones))

    def _read(self, X: TableLike, y: TableLike) -> tuple[np.ndarray, np.ndarray]:  # noqa: N803
        """Features and outcomes of ``fit``; nothing changes here where one is refused."""
        if y is None:
            raise ArgumentError("y must be given: fit requires y to be passed", "y")
        features = table(X)
        outcomes = column(y, len(features))
        self._check()
        if words := changes(self, features, outcomes).words(self):
            _LOGGER.warning("%s: %s (docs/tables.md)", type(self).__name__, words)
        return features, outcomes

    def _note_columns(self, X: Any, dimension: int) -> None:  # noqa: N803
        self.n_features_in_ = dimension
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if (names := names_of(X)) is not None:
            self.feature_names_in_ = names

    def _check(self) -> None:
        """Refuse arguments that are out of range; estimators add what must fit together.

        Arguments stay as they were given, as scikit-learn asks.
        """
        checked(type(self), **self.get_params())

    def _learnt(self) -> None:
        if hasattr(self, "coef_"):
            return
        kind: Any = DPBanditsError
        if loaded := sys.modules.get("sklearn.exceptions"):  # which has an error of its own
            kind = type("NotFittedError", (DPBanditsError, loaded.NotFittedError), {})
        raise kind("there is no estimate yet: call fit first")

    @property
    def _step(self) -> float:
        """The grid, by default in proportion to the features."""
        return default_grid((0.0, self.context_bound)) if self.grid is None else self.grid

    @property
    def _rounded(self) -> float:
        """The grid of secure noise; 0 for none."""
        return self._step if self.budget is not None and self.noise == "secure" else 0.0

    @property
    def _ends(self) -> tuple[float, float]:
        """Between which multiples of the grid every number of a record lies."""
        return record_range(self.context_bound, self.hessian_weight, self._step)

    def _source(self) -> NoiseSource:
        return noise_source(
            self.noise, self.seed, grid=self._step, reward_range=self._ends, device=self._is_local
        )

    def _source_for(self, people: int) -> NoiseSource | None:
        """The noise on sums over so many people; None without a budget."""
        source = self._source() if self.budget is not None else None
        if source is not None and people > source.most_records and not self._is_local:
            raise ArgumentError(
                f"grid must be coarser, got {self._step!r}: sums over {people} people would not be"
                " exact",
                "grid",
            )
        return source

    def _score(self, bounded: bool = True) -> Score:
        """The sums, from arguments that are checked on the way."""
        lo, hi = interval("outcome_range", self.outcome_range)
        if max(hi - lo, -lo, hi) > WIDEST or hi - lo < NARROWEST:
            raise ArgumentError(
                f"outcome_range must have a width from {NARROWEST:g} to {WIDEST:g}, and both ends"
                f" in [{-WIDEST:g}, {WIDEST:g}], got {self.outcome_range!r}",
                "outcome_range",
            )
        length, radius = float(self.context_bound), float(self.parameter_bound)
        return Score(self.link, (lo, hi), length, radius, bounded)


class Changes(NamedTuple):
    """Changes of data by ``fit``, for the operator alone."""

    people: int  # n
    zeroed: int  # cells of features that count as 0
    empty: int  # features of which that holds for everybody
    scaled: int  # people whose features are longer than ``context_bound``
    unanswered: int  # people without an outcome
    clipped: int  # outcomes outside of ``outcome_range``

    def words(self, model: Estimator) -> str:
        """Positive counts, in a sentence; empty if all are 0."""
        if not any((self.zeroed, self.scaled, self.unanswered, self.clipped)):
            return ""
        lo, hi = model.outcome_range
        said = {
            f"{self.zeroed:,} cells are not numbers and count as 0": self.zeroed,
            f"{self.empty:,} columns hold no number": self.empty,
            f"the features of {self.scaled:,} people are longer than"
            f" context_bound={model.context_bound:g} and were scaled to it": self.scaled,
            f"{self.unanswered:,} people have no outcome and are left out": self.unanswered,
            f"{self.clipped:,} outcomes lie outside of outcome_range=({lo:g}, {hi:g}) and were"
            " clipped to it": self.clipped,
        }
        told = "; ".join(words for words, count in said.items() if count)
        return f"in the data of {self.people:,} people, {told}"


def changes(model: Estimator, features: np.ndarray, outcomes: np.ndarray) -> Changes:
    """Changes by ``fit`` of features (n, d) and outcomes (n,), NaN for entries that are no numbers;
    private.
    """
    lo, hi = model.outcome_range
    squares = np.einsum("ij,ij->i", features, features)
    odd = np.flatnonzero(~(squares <= manners.LARGEST**2))  # with an entry that counts as 0
    replaced = ~(np.abs(features[odd]) <= manners.LARGEST)
    squares[odd] = np.sum(np.where(replaced, 0.0, features[odd]) ** 2, axis=1)
    return Changes(
        people=len(outcomes),
        zeroed=int(np.count_nonzero(replaced)),
        empty=int(np.count_nonzero(replaced.all(axis=0))) if odd.size == len(outcomes) else 0,
        scaled=int(np.count_nonzero(squares > model.context_bound**2 * (1.0 + 1e-9))),
        unanswered=int(np.count_nonzero(np.isnan(outcomes))),
        clipped=int(np.count_nonzero((outcomes < lo) | (outcomes > hi))),
    )


class _NoProbabilities(DPBanditsError, AttributeError):
    """What ``hasattr`` takes for an answer."""


def table(given: TableLike, manner: Manner = manners.PRIVATE) -> np.ndarray:
    """Features as an (n, d) array, with NaN for entries that are no numbers; refusals depend on
    public properties only.
    """
    features = tables.table("X", given, manner)
    if features.shape[1] > _MOST_FEATURES:
        raise ArgumentError(
            f"X must have at most {_MOST_FEATURES} columns, got {features.shape[1]}", "X"
        )
    return features


def column(given: TableLike, people: int) -> np.ndarray:
    """Outcomes as an (n,) array, with NaN like ``table``, one for each row of the features."""
    return np.ascontiguousarray(tables.flat("y", given, manners.PRIVATE, rows=people))


def names_of(given: object) -> np.ndarray | None:
    """The names of columns, as scikit-learn keeps them: only if all of them are text."""
    names = getattr(given, "column_names", None) or getattr(given, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return np.array(list(names), dtype=object)
