"""Models of rewards: predictions q(x, a) for estimators that need them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..tables import array
from ..tables.manners import PUBLIC_FEATURES
from .rows import Rows


def predictions(
    q: Any, rows: Rows, n_arms: int, reward_range: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray | None]:
    """The predicted reward of each arm in each row, clipped to the range, and the fold of each row.

    ``q`` is a function of all contexts and of an arm, a table, a regressor with ``fit`` and
    ``predict``, or None for means of arms.  The latter two are fitted to one half of the episodes
    for the predictions of the other half: then there are folds, and else None.
    """
    folds = None
    if q is None or (hasattr(q, "fit") and hasattr(q, "predict")):
        folds = rows.episodes % 2
        if folds.max() == 0:
            raise ArgumentError("log must hold two episodes or more to fit q, got one", "log")
        found = np.empty((len(rows), n_arms))
        for fold in (0, 1):
            fitted, other = folds != fold, folds == fold
            fit = _means if q is None else _regression
            found[other] = fit(q, rows, fitted, other, n_arms)
    elif callable(q):
        found = np.column_stack([_column(q(rows.contexts, arm), rows) for arm in range(n_arms)])
    else:
        table = array("q", q, PUBLIC_FEATURES, "K", "n, K")
        if table.shape[-1] != n_arms:
            raise ArgumentError(
                f"q must have a number for each of {n_arms} arms, got shape {table.shape}", "q"
            )
        found = rows.of_each("q", table)
    return np.clip(found, *reward_range), folds


def _column(predicted: Any, rows: Rows) -> np.ndarray:
    column = array("q", predicted, PUBLIC_FEATURES, "n")
    if column.size != len(rows):
        raise ArgumentError(
            f"q must return a prediction for each of {len(rows):,} rows, got {column.size:,}", "q"
        )
    return column


def _means(_: None, rows: Rows, fitted: np.ndarray, other: np.ndarray, n_arms: int) -> np.ndarray:
    """The mean reward of each arm; of arms without a record that of all."""
    arms, rewards = rows.arms[fitted], rows.rewards[fitted]
    counts = np.bincount(arms, minlength=n_arms)
    totals = np.bincount(arms, rewards, minlength=n_arms)
    means = np.where(counts > 0, totals / np.maximum(counts, 1), rewards.mean())
    return np.broadcast_to(means, (int(other.sum()), means.size))


def _regression(
    q: Any, rows: Rows, fitted: np.ndarray, other: np.ndarray, n_arms: int
) -> np.ndarray:
    """Predictions of a copy of the regressor from contexts, and an indicator for each arm."""
    model = copy.deepcopy(q)
    model.fit(_design(rows, rows.arms[fitted], fitted, n_arms), rows.rewards[fitted])
    count = int(other.sum())
    columns = [
        model.predict(_design(rows, np.full(count, arm), other, n_arms)) for arm in range(n_arms)
    ]
    return np.column_stack(columns)


def _design(rows: Rows, arms: np.ndarray, which: np.ndarray, n_arms: int) -> np.ndarray:
    indicators = np.eye(n_arms)[arms]
    if rows.contexts is None:
        return indicators
    contexts = rows.contexts
    if not (isinstance(contexts, np.ndarray) and contexts.ndim in (2, 3)):
        raise ArgumentError(
            "q must be a function or a table, got a regressor: the contexts of this log are not"
            " vectors of equal length",
            "q",
        )
    shown = contexts[which]
    if shown.ndim == 3:  # a row for each arm
        shown = shown[np.arange(arms.size), arms % shown.shape[1]]
    return np.column_stack([shown, indicators])
