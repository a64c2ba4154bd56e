"""Many runs of one policy against one adversary, in batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..calls import addresses_of
from ..errors import DPBanditsError
from ..kernel import Kernel
from ..policies import Policy
from ..privacy.continual import is_spent
from ..privacy.ledger import empty_arrays
from ..simulation.parallel import ProgressCallback
from ..simulation.processes import shared_out
from ..simulation.tasks import Piece
from .adversary import Adversary
from .loop import BAD_SENSITIVITY, DONE, SLOTS, Game, Run, Slots, Taken, loop_of, twin_of
from .planting import Plant

_NUMBERS = 1 << 21  # that a batch takes down at most
_LONGEST_BATCH = 250


class Batch(NamedTuple):
    """The records of a number of runs."""

    world: np.ndarray  # (B,): that of each run
    zero: np.ndarray  # (B, R, n): what had been released in world 0 without noise
    one: np.ndarray  # (B, R, n): the same in world 1
    release: np.ndarray  # (B, R, n)
    bound: np.ndarray  # (B, R): the sensitivity of each release; 0 where there was none
    after: np.ndarray  # (B, R): the round after which it was made
    arms: np.ndarray  # (B, T)


@dataclass
class Play:
    """The configuration of an audit's runs."""

    policy: Policy  # as it is attacked; a fresh state is made of it for every run
    adversary: Adversary
    horizon: int  # rounds of a run
    plant: Plant = field(default_factory=Plant)
    seed: int = 0  # of everything but secure noise

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: vars(self)[one.name] for one in fields(self)}  # without compiled code

    @property
    def secure(self) -> bool:
        return self._gate.secure

    @property
    def _gate(self) -> Any:
        return self.policy.session.gate

    @cached_property
    def _loop(self) -> Kernel:
        mechanism = self.plant.mechanism or self.policy.mechanism
        show = self.adversary.show if self.policy.sees else None
        return loop_of(self.policy.driven, mechanism, self.adversary.answer, show)

    def batches(self, runs: int) -> list[tuple[int, int]]:
        """(number, runs) of batches that fit into memory."""
        numbers = self.horizon * self.policy.statistic.size
        size = max(1, min(_LONGEST_BATCH, _NUMBERS // numbers))
        return [(i, min(size, runs - i * size)) for i in range(-(-runs // size))]

    def batch(self, number: int, runs: int, *, pilot: bool = False) -> Batch:
        """Play so many runs; batches of other numbers, and pilots, draw other random numbers."""
        words = (self.seed, int(pilot), number)
        world_rng, choices, noise = (np.random.default_rng([*words, k]) for k in range(3))
        world = world_rng.integers(0, 2, runs)
        room = self._room(runs)
        for i in range(runs):
            taken = Taken(*(array[i] for array in room))
            taken.cursor[SLOTS.left] = self.policy.max_rounds or 1
            taken.cursor[SLOTS.repeats] = self.plant.repeats
            taken.cursor[SLOTS.delays] = self.plant.delays
            self._run(taken, int(world[i]), choices, noise)
        made = int(room.cursor[:, SLOTS.releases].max(initial=0))
        own, other = room.statistic[:, :made], room.other[:, :made]
        ones = (world == 1)[:, None, None]
        zero, one = np.where(ones, other, own), np.where(ones, own, other)
        if self.plant.nobody:
            world = world_rng.integers(0, 2, runs)
        release, bound, after = (part[:, :made] for part in (room.release, room.bound, room.after))
        return Batch(world, zero, one, release, bound, after, room.arms)

    def _room(self, runs: int) -> Taken:
        most, size = self.horizon, self.policy.statistic.size
        releases, whole = (runs, most, size), (runs, most)
        return Taken(
            statistic=np.zeros(releases),
            other=np.zeros(releases),
            release=np.zeros(releases),
            bound=np.zeros(whole),
            after=np.zeros(whole, np.int64),
            arms=np.zeros(whole, np.int64),
            cursor=np.zeros((runs, len(Slots())), np.int64),
            again=np.zeros((runs, size)),
        )

    def _run(self, taken: Taken, world: int, choices: Any, noise: Any) -> None:
        policy, gate = self.policy, self._gate
        state = gate.new_state(simulated=not self.secure)
        ledger = empty_arrays(self.horizon + 1)
        state.wall = state.wall._replace(
            ledger=ledger, multiplier=state.wall.multiplier * self.plant.noise
        )
        twin = policy.driven.init(policy.params)[0]
        sides = (policy.params, state.raw, twin, state.public, state.memo, state.wall, taken)
        run = Run(*sides, self._game, self.adversary.state, *self._blank())
        drawn = addresses_of(choices), addresses_of(noise)
        while (status := self._loop(run, world, *drawn)) != DONE:
            if status == BAD_SENSITIVITY:
                raise DPBanditsError(
                    f"{policy!r} has declared too small a sensitivity, which is a bug of the"
                    " algorithm"
                )
            if not self._release_securely(state, run, world):
                break

    def _blank(self) -> tuple[Any, Any, np.ndarray, np.ndarray]:
        """Arrays for the shown and the preprocessed contexts; rows of 0 where there are none."""
        policy = self.policy
        if not policy.sees:
            nothing = np.zeros(policy.n_arms, np.int64)
            return 0, 0, nothing, nothing
        shape = (policy.n_arms, policy.dimension)
        rows = np.zeros(shape)
        return np.zeros(shape), rows, rows, np.zeros(shape)

    def _release_securely(self, state: Any, run: Run, world: int) -> bool:
        """Make a release that is due, in Python; False when a search is over."""
        policy, gate, taken, cursor = self.policy, self._gate, run.taken, run.taken.cursor
        rounds = int(cursor[SLOTS.round])
        if not is_spent(state.wall.running):
            ended = gate.end(state, rounds)
            told = (ended.statistic, ended.sensitivity, rounds, world)
            twin_of(policy.driven)(run._replace(memo=ended.memo), *told)
            gate.cross(state, ended)
            taken.release[cursor[SLOTS.releases]] = state.wall.release
            cursor[SLOTS.releases] += 1
        if not policy.driven.stop(policy.params, state.public):
            return True
        taken.arms[rounds:] = policy.driven.recommend(policy.params, state.public)
        return False

    @cached_property
    def _game(self) -> Game:
        ends, grid = self.policy.reward_range, self._gate._grid if self.secure else 0.0
        hides_arms = self.policy.card.hides_contexts
        return Game(self.horizon, self.adversary.position, *ends, grid, hides_arms, self.secure)


@dataclass(frozen=True)
class _Batches:
    """The task of all batches: what ``look`` sees of them."""

    play: Play
    sizes: list[tuple[int, int]]
    look: Callable[[Batch], Any]

    def __call__(self, _: int, number: int) -> Any:
        return self.look(self.play.batch(*self.sizes[number]))


def played(
    play: Play, runs: int, look: Callable[[Batch], Any], n_jobs: int, report: ProgressCallback
) -> list[Any]:
    """The results of ``look`` for so many runs, batch by batch."""
    task, done = _Batches(play, play.batches(runs), look), 0

    def tell(piece: Piece) -> None:
        nonlocal done
        done += sum(task.sizes[number][1] for number in piece.units)
        report(done, runs)

    return shared_out(task, [len(task.sizes)], n_jobs, tell)[0]
