"""What estimators of generalised linear models share: arguments, predictions, and the door."""

from __future__ import annotations

import inspect
import math
from typing import Any, Self

import numpy as np

from ..errors import ArgumentError, DPBanditsError
from ..validation import choice, integer, interval, real
from .links import link_of
from .scores import Score

NARROWEST, WIDEST = 1e-6, 1e6  # bounds on features and parameters
_MOST_FEATURES = 1000


class Estimator:
    """The base of both estimators: a constructor that stores, and predictions.

    Attributes:
        coef_: (d,) the estimate, after ``fit``.
        n_features_in_: d.
    """

    link: str
    outcome_range: tuple[float, float]
    context_bound: float
    parameter_bound: float
    coef_: np.ndarray
    n_features_in_: int

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, as scikit-learn asks for them."""
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in names}

    def set_params(self, **changes: Any) -> Self:
        """Change constructor arguments; what has been learnt is kept until the next ``fit``.

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

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The mean outcomes for features of shape (n, d), shape (n,).

        Features that are longer than ``context_bound`` are scaled to it, and entries that are no
        numbers count as 0, as in ``fit``.

        Raises:
            ArgumentError: the shape is another one.
            DPBanditsError: there is no estimate yet.
        """
        features = table(X)
        if features.shape[1] != self._learnt().size:
            raise ArgumentError(
                f"X must have {self.coef_.size} columns, got {features.shape[1]}", "X"
            )
        return self._score().mean(features, self.coef_)

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """The probabilities of outcomes 0 and 1, shape (n, 2).

        Raises:
            ArgumentError: as for ``predict``.
            DPBanditsError: there is no estimate yet, or the link does not give probabilities.
        """
        if self.link not in ("logistic", "probit") or tuple(self.outcome_range) != (0, 1):
            raise DPBanditsError(
                "probabilities need the link 'logistic' or 'probit', and outcomes in (0, 1)"
            )
        ones = self.predict(X)
        return np.column_stack((1.0 - ones, ones))

    def _learnt(self) -> np.ndarray:
        if not hasattr(self, "coef_"):
            raise DPBanditsError("there is no estimate yet: call fit first")
        return self.coef_

    def _score(self, bounded: bool = True) -> Score:
        """The sums, from arguments that are checked on the way."""
        lo, hi = interval("outcome_range", self.outcome_range)
        if max(hi - lo, -lo, hi) > WIDEST or hi - lo < NARROWEST:
            raise ArgumentError(
                f"outcome_range must be between {NARROWEST:g} and {WIDEST:g} wide and lie within"
                f" {WIDEST:g} of zero, got {self.outcome_range!r}",
                "outcome_range",
            )
        return Score(
            link_of(self.link).name,
            (lo, hi),
            real("context_bound", self.context_bound, NARROWEST, WIDEST),
            real("parameter_bound", self.parameter_bound, NARROWEST, WIDEST),
            bounded,
        )


def table(given: Any) -> np.ndarray:
    """Features as an (n, d) array; what is no number is NaN, and nothing else is looked at.

    Raises:
        ArgumentError: the shape is another one, which is public.
    """
    features = _numbers(given)
    if features is None or features.ndim != 2 or features.size == 0:
        shape = "rows of several lengths" if features is None else f"shape {features.shape}"
        raise ArgumentError(
            f"X must be a table of shape (n, d), n and d at least 1, got {shape}", "X"
        )
    if features.shape[1] > _MOST_FEATURES:
        raise ArgumentError(f"X must have at most {_MOST_FEATURES} columns", "X")
    return features


def column(given: Any, people: int) -> np.ndarray:
    """Outcomes as an (n,) array, likewise.

    Raises:
        ArgumentError: there is not one for each row of the features.
    """
    outcomes = _numbers(given)
    if outcomes is None or outcomes.shape not in ((people,), (people, 1)):
        shape = "a list of lists" if outcomes is None else f"shape {outcomes.shape}"
        raise ArgumentError(f"y must have shape ({people},), got {shape}", "y")
    return np.ascontiguousarray(outcomes.reshape(people))


def _numbers(given: Any) -> np.ndarray | None:
    """An array of floats; None for a ragged list.  An error would tell of what a person entered."""
    if isinstance(given, np.ndarray) and given.dtype.kind in "biuf":
        return np.ascontiguousarray(given, dtype=np.float64)
    try:
        entries = np.asarray(given, dtype=object)
    except ValueError:
        return None
    flat = [_number(entry) for entry in entries.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(entries.shape)


def _number(entry: Any) -> float:
    try:
        return math.nan if isinstance(entry, str | bytes) else float(entry)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def positive_or_none(name: str, value: Any) -> float | None:
    """A positive number, or None where it follows from other arguments."""
    return None if value is None else real(name, value, 0.0, 1e100)


def count_or_none(name: str, value: Any, most: int) -> int | None:
    """A whole number of at least 1, likewise."""
    return None if value is None else integer(name, value, 1, most)
