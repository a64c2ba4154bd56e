"""Logs of randomised trials: who got which arm, and how it went."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from ...errors import ArgumentError
from ...tables import TextTable, array, frozen, is_missing, listed, numbered, read_text_table
from ...tables.manners import TIMES, TIMES_OF_ANSWERS
from ..arrays import content, finite_array, longest, require_equally_long, whole_numbers
from ..base import Environment
from ..tabulated import RewardTable

_CLEARLY_UNEVEN = 1e-6


class LoggedTrial(Environment):
    """Records of an experiment that gave every person one of K arms uniformly at random, for
    ``dpbandits.replay``.

    Replay needs arms that were drawn uniformly, independently of the person and of all that came
    before.  The log can only show whether the arms are about equally frequent: a log whose arms
    clearly are not (chi-square test at 1e-6) is refused.

    Args:
        arms: the arm of each person, shape (N,); numbers 0 to K - 1, or names; every arm at least
            once.
        rewards: each person's reward under that arm, shape (N,).
        contexts: features of each person before the experiment, for policies with contexts: shape
            (N, d), shown alike to all arms, or (N, K, d).  The arms must not depend on them.
        arm_names: names of arms 0 to K - 1.  For arms given by name, their order, which is
            alphabetical by default.
        asked, answered: when each person was asked and answered, shape (N,), in seconds since
            1970 or a later moment; a missing time of an answer means that none came.  With them
            ``replay`` tries deadlines.

    Columns may be arrays, lists, or those of pandas and Arrow.  Leave out records without a reward
    first, or fill them in: the right choice depends on why it is missing.

    Attributes:
        arms: shape (N,) int64.
        rewards: shape (N,) float64.
        counts: number of people with each arm, shape (K,).
        contexts: shape (N, K, d), or None.
        dimension: of the contexts, d, or None.
        context_bound: bound on the length of contexts.
        times: when people were asked, in order, shape (N,), or None.
        waits: the seconds until each person's answer, shape (N,), infinite where none came; or
            None.

    Raises:
        ArgumentError: shapes do not fit, an arm is missing, an entry is no finite number, or the
            allocation is not uniform; or only one of the times is given, or an answer is before its
            question.  Messages contain rows and counts, and never a reward.

    >>> trial = LoggedTrial([0, 1, 1, 0], [1.0, 0.0, 1.0, 1.0])
    >>> trial.means().tolist(), trial.mean()
    ([1.0, 0.5], 0.75)
    >>> LoggedTrial(["drug", "placebo", "drug"], [1.0, 0.0, 1.0]).arm_names
    ['drug', 'placebo']
    """

    holds_data = True
    contexts: np.ndarray | None = None
    dimension: int | None = None
    context_bound: float = 0.0
    times: np.ndarray | None = None
    waits: np.ndarray | None = None

    def __init__(
        self,
        arms: ArrayLike,
        rewards: ArrayLike,
        contexts: ArrayLike | None = None,
        *,
        arm_names: Sequence[str] | None = None,
        asked: ArrayLike | None = None,
        answered: ArrayLike | None = None,
    ) -> None:
        arm_names = _names(arms) if arm_names is None else arm_names
        names = [str(name) for name in listed(arm_names)]
        by_name = numbered("arms", arms, names, source="arm_names") if names else None
        self.arms = whole_numbers("arms", arms) if by_name is None else frozen(by_name)
        self.rewards = finite_array("rewards", rewards, "N")
        require_equally_long("arms and rewards", self.arms, self.rewards)
        wanted = f"arms must hold every arm from 0 to {self.arms.max()}, got"
        # Some arm would be missing; said first because counting would fill the memory.
        if self.arms.max() >= self.arms.size:
            raise ArgumentError(f"{wanted} only {self.arms.size} records", "arms")
        self._digest = content(self.arms, self.rewards)
        self.support = (float(self.rewards.min()), float(self.rewards.max()))
        self.counts = np.bincount(self.arms)
        self.n_arms = self.counts.size
        if not self.counts.all():
            raise ArgumentError(f"{wanted} counts {self.counts.tolist()}", "arms")
        if self.n_arms > 1 and _evenness(self.counts) < _CLEARLY_UNEVEN:
            raise ArgumentError(
                f"arms must have been given uniformly at random, got counts {self.counts.tolist()}",
                "arms",
            )
        self._name_arms("arm_names", arm_names, "arm")
        if contexts is not None:
            self._keep(contexts)
        if asked is not None or answered is not None:
            self._time(asked, answered)

    @staticmethod
    def read(
        path: str | os.PathLike[str],
        *,
        separator: str = ",",
        decimal: str = ".",
        thousands: str = "",
    ) -> LoggedTrial:
        """Read a trial from a text file with the columns ``arm`` and ``reward``, and perhaps
        ``asked`` and ``answered``; other columns are left out.

        Args:
            path: of the file, whose first line has the names of columns.
            separator, decimal, thousands: marks between cells and within numbers.

        Raises:
            ArgumentError: the file cannot be read, lacks a column, or has a cell that is no number;
                or as ``LoggedTrial`` itself.
        """
        marks = {"separator": separator, "decimal": decimal, "thousands": thousands}
        text = read_text_table("path", path, header=True, **marks)
        for name in sorted({"arm", "reward"}.difference(text.names)):
            raise ArgumentError(f"path must have a column {name!r}: {path}", "path")
        arms = text.entries("arm")
        named = text.texts("arm") if arms.wrong.any() else arms.values
        asked, answered = (
            _numbers(text, name) if name in text.names else None for name in ("asked", "answered")
        )
        return LoggedTrial(named, _numbers(text, "reward"), asked=asked, answered=answered)

    def _keep(self, contexts: Any) -> None:
        given = finite_array("contexts", contexts, "N, d", "N, K, d")
        alike = given.ndim == 2
        self.dimension = given.shape[-1]
        self.context_bound = longest(given.reshape(-1, self.dimension))
        self._digest = content(self.arms, self.rewards, given)
        shape = (len(self), self.n_arms, self.dimension)
        if given.shape not in (shape, (shape[0], shape[2])):
            raise ArgumentError(
                f"contexts must have shape ({len(self)}, d) or ({len(self)}, {self.n_arms}, d), got"
                f" {given.shape}",
                "contexts",
            )
        self.contexts = np.broadcast_to(given[:, None] if alike else given, shape)

    def _time(self, asked: Any, answered: Any) -> None:
        if asked is None or answered is None:
            raise ArgumentError("asked and answered must be given together")
        begun = array("asked", asked, TIMES, "N")
        ended = array("answered", answered, TIMES_OF_ANSWERS, "N")
        require_equally_long("arms and asked", self.arms, begun)
        require_equally_long("arms and answered", self.arms, ended)
        if (early := ended < begun).any():
            raise ArgumentError(
                f"answered must not be before asked, got an earlier time in row {early.argmax()}",
                "answered",
            )
        self.times = frozen(np.sort(begun))
        self.waits = frozen(np.where(np.isnan(ended), np.inf, ended - begun))
        known = () if self.contexts is None else (self.contexts,)
        self._digest = content(self.arms, self.rewards, *known, begun, self.waits)

    def __len__(self) -> int:
        return self.arms.size

    def means(self) -> np.ndarray:
        """The mean reward of the people with each arm, shape (K,), in units of reward."""
        return np.bincount(self.arms, weights=self.rewards) / self.counts

    def mean(self) -> float:
        """Mean reward of all people, which is that of the trial's own allocation."""
        return float(self.rewards.mean())

    def reward_table(self) -> RewardTable:
        """Make a table whose t-th row holds the reward of the t-th record of every arm.

        For policies that play against fixed tables.  Each number is a real reward, and each arm's
        rewards keep their order.  A row joins K people: no trial can show one person under K arms.

        Returns:
            A ``RewardTable`` of shape (smallest count, K).  It leaves out records beyond that
            count.

        >>> LoggedTrial([0, 1, 1, 0, 1], [1.0, 0.0, 1.0, 1.0, 1.0]).reward_table().means().tolist()
        [1.0, 0.5]
        """
        rounds = self.counts.min()
        columns = [self.rewards[self.arms == a][:rounds] for a in range(self.n_arms)]
        return RewardTable(np.column_stack(columns), arm_names=self.arm_names, name=repr(self))

    def _arguments(self) -> str:
        features = f"dimension {self.dimension}, " if self.dimension else ""
        return f"{len(self)} records, {self.n_arms} arms, {features}{self._content}"


def _numbers(text: TextTable, name: str) -> np.ndarray:
    """A column of a file, in which missing cells are NaN."""
    found = text.entries(name)
    if found.wrong.any():
        line = text.lines[found.wrong.argmax()]
        raise ArgumentError(
            f"path must hold numbers, got none on line {line} of {text.path}, column {name!r}",
            "path",
        )
    return found.values


def _names(arms: Any) -> list[str] | None:
    """The names in a column that holds more text than numbers, in the order of the alphabet."""
    rows = [one for one in listed(arms) if not is_missing(one)]
    names = [one for one in rows if isinstance(one, str)]
    return sorted(set(names)) if 2 * len(names) > len(rows) else None


def _evenness(counts: np.ndarray) -> float:
    """The p-value of Pearson's chi-squared test that arms were given uniformly at random.

    ``scipy.stats``, which has it, takes a third of a second to import.
    """
    mean = counts.mean()
    return float(chdtrc(counts.size - 1, np.sum((counts - mean) ** 2) / mean))
