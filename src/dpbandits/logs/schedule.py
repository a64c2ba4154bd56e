"""In which order a log is learned from: batch by batch, always the one that is complete first.

Which records an arm's next batch takes follows from the arms of the log and from the public side.
After each batch the lengths of all others may have changed: memories decay with time, and
variances fall with other arms' releases.  So all arms are asked again, in compiled code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..kernel import Vector, entry, unbound
from ..policies import Policy
from ..protocol import one_round

Batch = tuple[int, np.ndarray]  # an arm, and its records

hold_rounds = unbound


def batches(policy: Policy, arms: np.ndarray, *, whole: bool = False) -> Iterator[Batch]:
    """Yields arms and the records of their next batch, in the order of their last records.  The
    caller plays a batch before the next one.  Records that do not fill a batch are left out.

    ``whole`` puts all records of each arm into one batch.
    """
    if whole:
        records = np.argsort(arms, kind="stable")
        present, starts = np.unique(arms[records], return_index=True)
        by_arm = zip(present.tolist(), np.split(records, starts)[1:], strict=True)
        yield from sorted(by_arm, key=lambda batch: batch[1][-1])
    elif policy.driven.hold_rounds is one_round or policy.card.hides_contexts:
        yield from ((arm, np.array([i])) for i, arm in enumerate(arms.tolist()))
    else:
        yield from _first_complete(policy, arms)


def _first_complete(policy: Policy, arms: np.ndarray) -> Iterator[Batch]:
    find = policy.driven.fill(_find_first, "hold_rounds")
    records, counts = np.argsort(arms, kind="stable"), np.bincount(arms, minlength=policy.n_arms)
    ends = np.cumsum(counts)
    met = ends - counts  # where each arm's next batch begins
    while True:
        arm, n = find(policy.params, policy.session.state.public, records, met, ends)
        if n == 0:
            return
        yield arm, records[met[arm] : met[arm] + n]
        met[arm] += n


@entry
def _find_first(
    params: Any, public: Any, records: Vector, met: Vector, ends: Vector
) -> tuple[int, int]:
    """The arm whose next batch is complete first, of equals the first, and its length, or 0."""
    arm, length, last = 0, 0, records.size
    for a in range(met.size):
        if met[a] == ends[a]:
            continue
        n = int(hold_rounds(params, public, a))
        if 0 < n <= ends[a] - met[a] and records[met[a] + n - 1] < last:
            arm, length, last = a, n, records[met[a] + n - 1]
    return arm, length
