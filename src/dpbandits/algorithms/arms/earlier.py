"""States of finite arms that versions before 0.2 have saved, whose arrays were others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...policies import Policy
from .batches import weight_of
from .law import MERGED, await_batch
from .memories import AGED, ROWS


def as_of_today(policy: Policy, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays as this version has them."""
    found = dict(arrays)
    if "public.fresh" in found and "public.quantiles" not in found:
        _from_discounted(found)
    elif "public.weight" in found:
        _from_doubling(policy, found)
    elif "public.merged" in found and "public.quantiles" not in found:
        _from_merged(found)
    return found


def _rows(old: np.ndarray) -> np.ndarray:
    """Columns with room for all that is kept today."""
    return np.vstack([old, np.zeros((ROWS - len(old), old.shape[1]))])


def _from_merged(found: dict[str, np.ndarray]) -> None:
    pulls = found["public.pulls"]
    found.setdefault("public.ended", np.zeros(len(pulls), np.int64))
    for name in ("public.merged", "public.awaited"):
        if len(found[name]) < ROWS:
            found[name] = _rows(found[name])
            found[name][AGED.rounds] = pulls


def _from_discounted(found: dict[str, np.ndarray]) -> None:
    merged = _rows(found["public.merged"])
    merged[AGED.fresh], merged[AGED.rounds] = found.pop("public.fresh"), found.pop("public.rounds")
    awaited = np.zeros_like(merged)
    awaited[AGED.rounds] = found["public.awaited"]
    found |= {"public.merged": merged, "public.awaited": awaited}


def _from_doubling(policy: Policy, found: dict[str, np.ndarray]) -> None:
    """Convert an arm's earlier state: an estimate, one over its variance, and the length of the
    last episode, of released episodes and of all that ended.  A single batch of that variance
    replaces them.
    """
    lo, width = policy.params.low, policy.params.width
    last = found.pop("public.length").astype(float)
    weight, (waiting, awaited_last) = found.pop("public.weight"), found.pop("public.awaited")
    merged, awaited = (np.zeros((ROWS, len(last))) for _ in range(2))
    for column, proxy, n in ((merged, weight, last), (awaited, waiting, awaited_last)):
        for arm in np.flatnonzero(n):
            size = n[arm] if policy.config["memory"].forgets else _size_of(policy, proxy[arm])
            await_batch(column[:, arm], size, weight_of(policy.params, size))
        column[AGED.rounds] = n if policy.config["memory"].forgets else found["public.pulls"]
    merged[MERGED.value] = np.where(last > 0, (found["public.estimate"] - lo) / width, 0.0)
    found |= {
        "public.merged": merged,
        "public.awaited": awaited,
        "public.ended": np.zeros(len(last), np.int64),
    }


def _size_of(policy: Policy, weight: float) -> float:
    """Rounds of a batch whose mean has a variance of 1 / weight: the root of a square equation."""
    low, high = 1e-6, 1e18
    scale = policy.params.noise_scale * policy.params.width
    noise = (2.0 if policy.params.laplace else 1.0) * scale * scale
    for _ in range(200):
        n = (low * high) ** 0.5
        if policy.params.width**2 / (4.0 * n) + noise / (n * n) > 1.0 / weight:
            low = n
        else:
            high = n
    return high
