"""Fixed in advance: one row per round, for tests, audits and adversarial sequences."""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..kernel import Generator, Matrix, kernel
from . import base
from .arrays import content, distributions, finite_array

# Rewards -------------------------------------------------------------------------------------


class TableState(NamedTuple):
    """Prefix sums: the total reward of any window of rounds costs one subtraction."""

    prefix: np.ndarray  # (T + 1, K): sums of the rows before
    best: np.ndarray  # (1,): the arm of the largest column sum


@kernel
def _draw_table(state: TableState, arm: int, start: int, n: int, rng: Generator) -> float:
    return state.prefix[start + n, arm] - state.prefix[start, arm]


@kernel
def _table_regret(state: TableState, arm: int, start: int, n: int) -> float:
    best = state.best[0]
    return (state.prefix[start + n, best] - state.prefix[start, best]) - (
        state.prefix[start + n, arm] - state.prefix[start, arm]
    )


class RewardTable(base.KnownMeans):
    """A fixed table of potential rewards; regret is against the best column.

    Args:
        rewards: shape (T, K); an array, lists, or a pandas or Arrow table with a column per arm.
        arm_names: names of the arms, one each; numbers by default.
        name: name of the table in reports.

    Raises:
        ArgumentError: ``rewards`` is no table of finite numbers (the message gives the place of the
            first other entry), or the number of names differs from that of columns.

    >>> RewardTable([[0, 1], [1, 1]]).horizon
    2
    """

    holds_data = True
    kernels = base.ArmsKernels(_draw_table, _table_regret)

    def __init__(
        self, rewards: ArrayLike, *, arm_names: Sequence[str] | None = None, name: str | None = None
    ) -> None:
        table = finite_array("rewards", rewards, "T, K")
        self.horizon: int = table.shape[0]
        self.n_arms = table.shape[1]
        self._name = name
        self._name_arms("arm_names", arm_names, "column")
        self.support = (float(table.min()), float(table.max()))
        prefix = np.vstack([np.zeros(self.n_arms), np.cumsum(table, axis=0)])
        if not np.all(np.isfinite(prefix)):
            raise ArgumentError("rewards must have finite sums over rounds", "rewards")
        self.state = TableState(prefix, np.array([int(prefix[-1].argmax())]))
        self._means = table.mean(axis=0)
        self._digest = content(table)

    def _arguments(self) -> str:
        title = "" if self._name is None else f"{self._name}: "
        return f"{title}{self.horizon} rounds, {self.n_arms} arms, {self._content}"


# Files larger than memory --------------------------------------------------------------------

_BLOCK = 1024  # rows between two prefix sums that are kept in memory


class FileState(NamedTuple):
    rows: np.ndarray  # (T, K), mapped into memory
    blocks: np.ndarray  # (B + 1, K): sums of all the rows before a block
    best: np.ndarray  # (1,) int64: the arm of the largest column sum


@kernel
def _sum_rows(state: FileState, arm: int, start: int, n: int) -> float:
    """Sum of a window of rounds; reads at most two blocks of the file."""
    end = start + n
    # The whole blocks in the window, from ``first`` to before ``last``.
    first, last = (start + _BLOCK - 1) // _BLOCK, end // _BLOCK
    whole = first < last
    total = 0.0
    for t in range(start, first * _BLOCK if whole else end):
        total += state.rows[t, arm]
    for t in range(last * _BLOCK if whole else end, end):
        total += state.rows[t, arm]
    return total + state.blocks[last, arm] - state.blocks[first, arm] if whole else total


@kernel
def _draw_file(state: FileState, arm: int, start: int, n: int, rng: Generator) -> float:
    return _sum_rows(state, arm, start, n)


@kernel
def _file_regret(state: FileState, arm: int, start: int, n: int) -> float:
    return _sum_rows(state, state.best[0], start, n) - _sum_rows(state, arm, start, n)


class RewardFile(base.ArmsEnvironment):
    """A ``RewardTable`` in a ``.npy`` file, shape (T, K), which may be larger than memory.

    The constructor reads the file once and keeps one row of sums for every 1,024 rows in memory.
    Each window then reads at most 2,048 rows.  The file must not change meanwhile.

    Args:
        path: of a file that ``numpy.save`` wrote, of real numbers or truth values.

    Raises:
        ArgumentError: the file is no such table, or has numbers that are not finite.
        OSError: it cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rewards.npy", np.eye(3))
    ...     RewardFile(f"{folder}/rewards.npy").horizon
    3
    """

    holds_data = True
    kernels = base.ArmsKernels(_draw_file, _file_regret)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike):
            raise ArgumentError(f"path must name a file, got {type(path).__name__}", "path")
        self.path = Path(path)
        try:
            # "c" maps the file for reading with pages that could be written in memory, which is
            # what compiled code expects.
            rows = np.asarray(np.load(self.path, mmap_mode="c", allow_pickle=False))
        except ValueError:  # whose words may quote the file
            message = f"path must name a .npy file of numbers, got {str(path)!r}"
            raise ArgumentError(message, "path") from None
        readable = rows.dtype.kind in "biuf" and rows.dtype.isnative
        if rows.ndim != 2 or 0 in rows.shape or not readable:
            raise ArgumentError(
                f"path must name a table (rounds, arms) of real numbers, got {rows.dtype}"
                f" {rows.shape}",
                "path",
            )
        self.horizon, self.n_arms = rows.shape
        sums, low, high = np.zeros((-(-len(rows) // _BLOCK) + 1, self.n_arms)), np.inf, -np.inf
        digest = sha256()
        for b in range(len(sums) - 1):
            block = np.array(rows[b * _BLOCK : (b + 1) * _BLOCK])
            digest.update(block.tobytes())
            low, high = min(low, float(block.min())), max(high, float(block.max()))
            sums[b + 1] = sums[b] + block.sum(axis=0, dtype=np.float64)
        if not np.all(np.isfinite(sums)) or not np.isfinite(high - low):
            raise ArgumentError(
                f"path must name a table of finite numbers with finite sums, got {str(path)!r}",
                "path",
            )
        self.support = (low, high)
        self.state = FileState(rows, sums, np.array([int(sums[-1].argmax())]))
        self._digest = digest.hexdigest()[:8]

    def means(self) -> np.ndarray:
        return np.asarray(self.state.blocks[-1] / self.horizon)

    def _arguments(self) -> str:
        return f"{self.horizon} rounds, {self.n_arms} arms, {self._content}"


# With contexts -------------------------------------------------------------------------------


def _check_shape(name: str, table: np.ndarray, shown: np.ndarray, owner: str) -> None:
    """That there is a number for every round and arm."""
    if table.shape != shown.shape[:2]:
        raise ArgumentError(
            f"{name} must have shape {shown.shape[:2]} as the {owner}, got {table.shape}", name
        )


class ContextTableState(NamedTuple):
    contexts: np.ndarray  # (T, K, d)
    rewards: np.ndarray  # (T, K)
    means: np.ndarray  # (T, K)


@kernel
def _show_table(state: Any, t: int, contexts: Matrix, rng: Generator) -> int:
    for a in range(contexts.shape[0]):
        for i in range(contexts.shape[1]):
            contexts[a, i] = state.contexts[t, a, i]
    return 0


@kernel
def _answer_table(
    state: ContextTableState, t: int, contexts: Matrix, hidden: int, arm: int, rng: Generator
) -> tuple[float, float]:
    best = state.means[t, 0]
    for a in range(1, state.means.shape[1]):
        best = max(best, state.means[t, a])
    return state.rewards[t, arm], best - state.means[t, arm]


class ContextTable(base.ContextEnvironment):
    """Contexts and potential rewards fixed in advance: for tests, audits and adversarial sequences.

    Args:
        contexts: shape (T, K, d).
        rewards: shape (T, K).
        means: shape (T, K), by which regret is counted; by default the rewards themselves.

    >>> ContextTable(np.ones((5, 2, 3)), np.zeros((5, 2))).dimension
    3
    """

    holds_data = True
    kernels = base.ContextKernels(_show_table, _answer_table)

    def __init__(
        self, contexts: ArrayLike, rewards: ArrayLike, means: ArrayLike | None = None
    ) -> None:
        contexts = finite_array("contexts", contexts, "T, K, d")
        rewards = finite_array("rewards", rewards, "T, K")
        means = rewards if means is None else finite_array("means", means, "T, K")
        _check_shape("rewards", rewards, contexts, "contexts have")
        _check_shape("means", means, contexts, "contexts have")
        self.horizon, self.n_arms, self.dimension = contexts.shape
        self.support = (float(rewards.min()), float(rewards.max()))
        self.context_bound = float(np.linalg.norm(contexts, axis=2).max())
        self.state = ContextTableState(contexts, rewards, means)
        self._digest = content(*self.state)

    def _arguments(self) -> str:
        return f"{self.horizon} rounds, {self.n_arms} arms, {self._content}"


# With experts --------------------------------------------------------------------------------


class AdviceTableState(NamedTuple):
    contexts: np.ndarray  # (T, K, N): the advice
    rewards: np.ndarray  # (T, K)
    best: np.ndarray  # (1,) int64


@kernel
def _answer_advice(
    state: AdviceTableState, t: int, contexts: Matrix, hidden: int, arm: int, rng: Generator
) -> tuple[float, float]:
    expected = 0.0
    for a in range(contexts.shape[0]):
        expected += state.contexts[t, a, state.best[0]] * state.rewards[t, a]
    return state.rewards[t, arm], expected - state.rewards[t, arm]


class AdviceTable(base.AdviceEnvironment):
    """Advice and potential rewards fixed in advance: for tests, audits and adversarial sequences.

    Args:
        advice: shape (T, N, K).
        rewards: shape (T, K).

    >>> AdviceTable(np.full((5, 3, 2), 0.5), np.zeros((5, 2))).n_experts
    3
    """

    holds_data = True
    kernels = base.ContextKernels(_show_table, _answer_advice)

    def __init__(self, advice: ArrayLike, rewards: ArrayLike) -> None:
        table = distributions("advice", advice, "T, N, K")
        rewards = finite_array("rewards", rewards, "T, K")
        _check_shape("rewards", rewards, table, "advice has")
        self.horizon, self.n_arms, self.dimension = table.shape
        self.support = (float(rewards.min()), float(rewards.max()))
        best = np.einsum("tkn,tk->n", table, rewards).argmax()
        self.state = AdviceTableState(table, rewards, np.array([int(best)]))
        self._digest = content(table, rewards)

    def _arguments(self) -> str:
        shape = f"{self.horizon} rounds, {self.n_arms} arms, {self.n_experts} experts"
        return f"{shape}, {self._content}"
