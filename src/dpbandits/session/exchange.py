"""Exchange of releases between several workers, each with a policy and people of its own.

A release has left another worker's wall with its noise.  To learn from it is post-processing, and
costs nothing.  Each record is in one release of one worker.  If each person belongs to one worker,
the workers compose in parallel.  A person met by several workers pays for each, as without any
exchange.  A worker's next batch may depend on other workers' releases, because batches may depend
on releases (see ``docs/privacy/proofs.md``).

A release is taken in once: by its worker and its number.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import ArgumentError

ASSUMED = (
    "no person belongs to two of the workers that learn from each other, and releases are as their"
    " workers made them"
)

_LONGEST = 2**53  # rounds of an episode: floats tell no more apart


class Release(NamedTuple):
    """A policy's release at the end of an episode.  It holds numbers and strings alone, so it can
    be stored as JSON: ``Release(*json.loads(text))``.

    Attributes:
        worker: the life of the policy that made it.
        number: the index among that policy's releases, from 0; ``worker`` and ``number`` identify
            the release.
        terms: a digest of the policy's class, arguments and budget, on which noise depends.
        memo: the episode's own note: an arm, and the number of rounds.
        values: the noisy statistic.
    """

    worker: str
    number: int
    terms: str
    memo: tuple[float, ...]
    values: tuple[float, ...]


class Made(NamedTuple):
    """A release of this policy.

    Attributes:
        life: of the policy when it was made.
        memo, values: as of ``Release``.
        batches: of each sum among the values the arm, its rounds, and how many releases had been
            made when the first of them was pulled.  Of batches that tell nothing of an arm, there
            are 0 rounds.
    """

    life: str
    memo: tuple[float, ...]
    values: tuple[float, ...]
    batches: tuple[tuple[int, int, int], ...]


@dataclass(repr=False)
class Exchange:
    """A policy's releases of sums, for other workers and for intervals, and the releases it has
    taken from others.
    """

    made: list[Made] = field(default_factory=list)
    older: bool = False  # whether an earlier version has made releases without ``batches``
    learned: dict[str, set[int]] = field(default_factory=dict)  # numbers of releases, by worker
    noted: list[tuple[str, int]] = field(default_factory=list)  # what was learned since a commit

    def is_new(self, release: Release, own: Container[str]) -> bool:
        """Whether it is another worker's, and was not learned."""
        worker, number = release.worker, int(release.number)
        return worker not in own and number not in self.learned.get(worker, ())

    def note(self, release: Release) -> None:
        self.learned.setdefault(release.worker, set()).add(int(release.number))
        self.noted.append((release.worker, int(release.number)))

    @classmethod
    def restored(cls, header: dict[str, Any]) -> Exchange:
        """That of an earlier version."""
        made = [Made(life, tuple(memo), tuple(one), ()) for life, memo, one in header["shared"]]
        learned = {worker: set(numbers) for worker, numbers in header["learned"].items()}
        return cls(made, learned=learned)


def checked_release(
    given: Sequence[Any], terms: str, n_arms: int, memo: int, size: int, most: float
) -> Release:
    """A release that these terms allow; no number exceeds ``most`` for each of its rounds."""
    try:
        release = Release(*given)
        numbers = [*map(float, release.memo), *map(float, release.values)]
        sound = isinstance(release.worker, str) and int(release.number) == release.number >= 0
        sound &= (len(release.memo), len(release.values)) == (memo, size)
        sound &= all(map(math.isfinite, numbers))
        sound &= 0 <= numbers[0] < n_arms and numbers[0] == int(numbers[0])
        sound &= 1 <= numbers[1] <= _LONGEST and numbers[1] == int(numbers[1])
        sound &= all(abs(value) <= most * numbers[1] for value in numbers[memo:])
    except (TypeError, ValueError, IndexError, OverflowError):
        sound = False
    if not sound:
        raise ArgumentError(
            "release must come from the method releases() of another worker's policy, got an"
            f" unsuitable {type(given).__name__}",
            "release",
        )
    if release.terms != terms:
        raise ArgumentError(
            "release must come from a policy of the same class, arguments and budget", "release"
        )
    return release
