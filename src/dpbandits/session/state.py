"""The state of a policy: both sides, the wall, and the states of its random generators.

Copying, saving and restoring follow from one list of fields.  In a running policy, all arrays
except those of the growing ledger lie in two blocks, a private and a public one.  A copy of these
blocks is enough to undo a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from ..privacy.channels import Channel
from ..privacy.continual import Independent, no_running_sum
from ..privacy.ledger import (
    HEAD,
    LedgerArrays,
    Line,
    cut_to,
    empty_arrays,
    ending_of,
    grown,
    write,
)
from ..privacy.secure_sum import SecureState
from ..protocol import Statistic, Wall


class Span(NamedTuple):
    """The records that a release covers: the first and the last recorded round, and their part."""

    first: int
    last: int
    part: int


@dataclass(repr=False)  # sums end up in logs by way of tracebacks
class Ended:
    """An episode that is over, and not released."""

    span: Span
    sensitivity: float  # how far one of its records moves the statistic
    memo: np.ndarray  # shape (m,), what it noted of itself
    statistic: np.ndarray  # shape (n,): exact, private; zero after the release

    def copied(self) -> Ended:
        return Ended(self.span, self.sensitivity, self.memo, self.statistic.copy())


class Copied(NamedTuple):
    """What a step may change of a state."""

    private: np.ndarray  # blocks
    public: np.ndarray
    ledger: LedgerArrays  # itself, which grows in other arrays
    ending: tuple[list[int], list[int]]  # of it


@dataclass(repr=False)
class State:
    """The state of one policy, or of one run."""

    raw: Any  # the private side
    public: Any
    memo: np.ndarray  # shape (m,), what the episode that was closed last noted of itself
    wall: Wall  # with the ledger and the running sum
    exact: SecureState | None = None  # the running sum in integers, under secure noise
    choice_rng: np.random.Generator | None = None  # None for algorithms that draw nothing
    noise_rng: np.random.Generator | None = None  # for simulated noise
    _blocks: tuple[np.ndarray, ...] = ()  # the private one and the public one

    def in_blocks(self) -> Self:
        """A copy of the state in blocks of memory, for a policy that has to undo releases."""
        rest = self.wall._replace(ledger=_NO_LEDGER)
        private, (self.raw, self.memo, rest, self.exact) = _in_one_block(
            (self.raw, self.memo, rest, self.exact)
        )
        public, (self.public,) = _in_one_block((self.public,))
        self.wall, self._blocks = rest._replace(ledger=self.wall.ledger), (private, public)
        return self

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by name."""
        return {
            name: array
            for side in _SIDES
            for name, array in named_arrays(side, getattr(self, side))
        }

    @property
    def sides(self) -> tuple[list[tuple[str, np.ndarray]], list[tuple[str, np.ndarray]]]:
        """The arrays of the private and of the public block, by name and in their order."""
        rest = self.wall._replace(ledger=_NO_LEDGER)
        private = {"raw": self.raw, "memo": self.memo, "wall": rest, "exact": self.exact}
        named = [pair for side, held in private.items() for pair in named_arrays(side, held)]
        return named, list(named_arrays("public", self.public))

    @property
    def blocks(self) -> tuple[np.ndarray, ...]:
        """The private block and the public one."""
        return self._blocks

    @property
    def published(self) -> dict[str, np.ndarray]:
        """The arrays of the public side by name."""
        return dict(named_arrays("public", self.public))

    def restorable_public(self) -> Callable[[], None]:
        """A function that restores the public side to its present state."""
        now = [(array, array.copy()) for array in self.published.values()]

        def restore() -> None:
            for array, before in now:
                array[...] = before

        return restore

    @property
    def streams(self) -> dict[str, np.random.Generator]:
        """The generators that there are, by name."""
        found = {name: getattr(self, name) for name in _STREAMS}
        return {name: rng for name, rng in found.items() if rng is not None}

    def copied(self) -> Copied:
        """All but the generators, of a state in blocks; for ``restore``."""
        private, public = self._blocks
        ledger = self.wall.ledger
        return Copied(private.copy(), public.copy(), ledger, ending_of(ledger))

    def restore(self, copied: Copied) -> None:
        """Go back to a copy: no value that was drawn since is ever used."""
        private, public = self._blocks
        private[:], public[:] = copied.private, copied.public
        cut_to(copied.ledger, copied.ending)
        self.wall = self.wall._replace(ledger=copied.ledger)

    def fill(self, arrays: dict[str, np.ndarray]) -> None:
        """Take in saved arrays, except those of the ledger; a ``ValueError`` where one has another
        shape or type, or is unknown, a ``KeyError`` where it is missing.
        """
        own = {name: array for name, array in self.arrays.items() if not _of_ledger(name)}
        unknown = [name for name in arrays if name not in own and not _of_ledger(name)]
        if unknown:
            raise ValueError(f"unknown arrays {', '.join(unknown)}")
        _fill(own, arrays)

    def fill_public(self, arrays: dict[str, np.ndarray]) -> None:
        """Take in saved arrays of the public side; errors as those of ``fill``."""
        _fill(self.published, arrays)

    def make_room(self, *, grow: bool = False) -> None:
        """Give the ledger room for one more line."""
        ledger = self.wall.ledger
        if grow or ledger.head[HEAD.lines] >= len(ledger.span):
            self.wall = self.wall._replace(ledger=grown(ledger))

    def charge(self, line: Line) -> None:
        """Write a line that was announced, made or not."""
        self.make_room()
        write(self.wall.ledger, *line)

    def lose(self, empty: State, past: int) -> None:
        """Forget the raw side, whose records may have been released, up to round ``past``."""
        if self.wall.earlier.size:
            # The noise of a running sum goes on in memory that has been lost: later records get a
            # running sum of their own, on top of what was last released.
            self.wall.earlier[:] = self.wall.release
        fresh = empty.arrays
        for name, array in self.arrays.items():
            if name.startswith(("raw", "exact", "wall.running")):
                array[...] = fresh[name]
        # No later release covers a record that an announced one may have covered.
        self.wall.first_unreleased[:] = past
        if self.noise_rng is not None:
            # Its next numbers may have been the noise of a lost release, so they are skipped.
            self.noise_rng.bit_generator.advance(1 << 64)  # type: ignore[attr-defined]


def _fill(own: dict[str, np.ndarray], arrays: dict[str, np.ndarray]) -> None:
    for name, array in own.items():
        saved = arrays[name]
        if saved.shape != array.shape or saved.dtype != array.dtype:
            given, wanted = f"{saved.dtype} {saved.shape}", f"{array.dtype} {array.shape}"
            raise ValueError(f"{name} is {given} and should be {wanted}")
        array[...] = saved


def _of_ledger(name: str) -> bool:
    return name.startswith("wall.ledger.")


_SIDES = ("raw", "public", "memo", "wall", "exact")
_STREAMS = ("choice_rng", "noise_rng")
_NO_LEDGER = empty_arrays(0)
_ALIGNED = 8  # bytes, to which arrays begin


def wall_of(
    statistic: Statistic,
    channel: Channel,
    ledger_family: int,
    *,
    in_integers: bool = False,  # whether the running sum is kept elsewhere
    grid: float = 0.0,  # of which simulated noise has multiples
) -> Wall:
    """A wall with an empty ledger."""
    counter, n = statistic.counter, statistic.size
    running = no_running_sum()
    if counter is not None:
        # What stands for a sum in integers only counts the releases.
        kept = Independent(counter.horizon) if in_integers else counter
        running = kept.start(n, channel.norm)
    return Wall(
        family=channel.family,
        multiplier=channel.multiplier,
        norm=channel.norm,
        ledger_family=ledger_family,
        statistic=np.zeros(n),
        release=np.zeros(n),
        first_unreleased=np.zeros(statistic.parts + 1, np.int64),
        ledger=empty_arrays(),
        running=running._replace(grid=grid),
        earlier=np.zeros(0 if counter is None else n),
    )


def named_arrays(name: str, held: object) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of a side, but for a ``cache``, by where they stand in it."""
    if isinstance(held, np.ndarray):
        yield name, held
    for field in getattr(held, "_fields", ()):
        if field != "cache":
            yield from named_arrays(f"{name}.{field}", getattr(held, field))


def _in_one_block(sides: tuple[Any, ...]) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Copies of the sides whose arrays are parts of one block of memory, and the block."""
    arrays = [array for side in sides for _, array in named_arrays("", side)]
    ends = np.cumsum([0] + [-(-array.nbytes // _ALIGNED) * _ALIGNED for array in arrays])
    block = np.zeros(int(ends[-1]), np.uint8)
    parts = iter([_part(block, int(at), array) for at, array in zip(ends, arrays, strict=False)])

    def moved(held: Any) -> Any:
        if isinstance(held, np.ndarray):
            return next(parts)
        if not isinstance(held, tuple):
            return held
        fields = zip(getattr(held, "_fields", ()), held, strict=True)
        return type(held)(*(one if name == "cache" else moved(one) for name, one in fields))

    return block, tuple(map(moved, sides))


def _part(block: np.ndarray, at: int, array: np.ndarray) -> np.ndarray:
    """A copy of the array, of the same type for compiled code, within the block."""
    order: Any = "C" if array.flags.c_contiguous else "F"
    part = block[at : at + array.nbytes].view(array.dtype).reshape(array.shape, order=order)
    part[...] = array
    return part
