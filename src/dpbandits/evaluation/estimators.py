"""Estimators of a target's value: each is a ratio of two sums over rounds.

With w = pi(a|x) / p, rewards r, predictions q and Q = sum_a pi(a|x) q(x, a), the terms are

| estimator | numerator | denominator |
|---|---|---|
| IPS | w r | 1 |
| SNIPS | w r | w |
| DM | Q | 1 |
| DR | Q + w (r - q(x, a)) | 1 |
| switch-DR | Q + w 1{w <= c} (r - q(x, a)) | 1 |
| CAB | min(w, c) r + sum_b (pi(b) - min(pi(b), c p(b))) q(x, b) | 1 |

With ``clip`` the first two and DR take min(w, c) for w.

Sources: Horvitz & Thompson (1952); Swaminathan & Joachims (2015); Dudik, Langford & Li (2011);
Wang, Agarwal & Dudik (2017); Su, Wang, Santacatterina & Joachims (2019).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import ArgumentError
from .rows import Rows, chosen

ESTIMATORS = ("SNIPS", "IPS", "DM", "DR", "switch-DR", "CAB")
WITH_MODEL = ("DM", "DR", "switch-DR", "CAB")
_CUT = ("switch-DR", "CAB")  # which need ``clip``


class Terms(NamedTuple):
    """The terms of the two sums, and their bounds.

    For every value v in the reward range, a term of the first less v times that of the second lies
    in [low - v scale, high - v scale].
    """

    first: np.ndarray
    second: np.ndarray
    low: float
    high: float
    scale: float = 1.0


class Weights(NamedTuple):
    """Importance weights.

    Attributes:
        raw: before clipping, shape (n,).
        used: after it.
        bound: on weights before clipping.
        largest: a bound on those that are used.
    """

    raw: np.ndarray
    used: np.ndarray
    bound: float
    largest: float


def weights(
    rows: Rows, target: np.ndarray, estimator: str, clip: float | None, largest: float | None
) -> Weights:
    """The weights of rows; ``largest`` is a bound that the caller knows."""
    if clip is None and estimator in _CUT:
        raise ArgumentError(f"clip must be given for {estimator}, such as clip=10", "clip")
    if clip is not None and estimator == "DM":
        raise ArgumentError("clip must not be given for DM, which takes no weights", "clip")
    raw = chosen(target, rows.arms) / rows.propensity
    met = float(raw.max())
    if largest is None and rows.propensities is not None:
        p = rows.propensities
        met = float(np.divide(target, p, where=p > 0.0, out=np.zeros(p.shape)).max())
    elif largest is not None and largest < met:
        raise ArgumentError(
            f"largest_weight must be at least the largest weight of the log, got {largest:g}",
            "largest_weight",
        )
    bound = met if largest is None else largest
    if clip is None:
        return Weights(raw, raw, bound, bound)
    used = np.where(raw <= clip, raw, 0.0) if estimator == "switch-DR" else np.minimum(raw, clip)
    return Weights(raw, used, bound, min(bound, clip))


def terms(
    estimator: str,
    rows: Rows,
    target: np.ndarray,
    weighed: Weights,
    q: np.ndarray | None,
    reward_range: tuple[float, float],
) -> Terms:
    """The terms of an estimator."""
    (lo, hi), w, most, r = reward_range, weighed.used, weighed.largest, rows.rewards
    one = np.ones(len(rows))
    if estimator == "SNIPS":
        return Terms(w * r, w, most * lo, most * hi, most)
    weighted = min(0.0, most * lo), max(0.0, most * hi)
    if q is None:
        return Terms(w * r, one, *weighted)
    if estimator == "CAB":
        lost = target - np.minimum(target, most * _propensities(rows))
        filled = w * r + (lost * q).sum(axis=1)
        return Terms(filled, one, weighted[0] + min(0.0, lo), weighted[1] + max(0.0, hi))
    model = (target * q).sum(axis=1)
    if estimator == "DM":
        return Terms(model, one, lo, hi)
    wide = most * (hi - lo)
    return Terms(model + w * (r - chosen(q, rows.arms)), one, lo - wide, hi + wide)


def _propensities(rows: Rows) -> np.ndarray:
    if rows.propensities is None:
        raise ArgumentError(
            "propensities must be given for CAB: the propensities of all arms in each row, such as"
            " [0.5, 0.5] for two arms drawn uniformly. If you have only the propensity of the drawn"
            " arm, use DR or switch-DR",
            "propensities",
        )
    return rows.propensities
