"""From regrets to ranks: who is within which factor of the best, and how often lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

CLOSE = 1.2  # times the least mean regret of an instance: as good as the best
LOST = 8.0  # times the median of its runs: a run that is lost


@dataclass(frozen=True)
class Rank:
    """What came of one policy in a contest.

    Attributes:
        title: of the policy.
        close: share of the instances on which it is within ``CLOSE`` of the best.
        won: share of those where it is the best.
        median, worst: of its mean regrets in units of the best.
        weakest: the instance of the worst.
        lost: how many of its runs are above ``LOST`` times the median run of their instance.
        runs: how many there are.
    """

    title: str
    close: float
    won: float
    median: float
    worst: float
    weakest: str
    lost: int
    runs: int


def relative(regrets: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The mean regret of every policy in units of the least one of the instance, shape
    (instances,).

    Args:
        regrets: policy -> instance -> final regrets of the runs.
    """
    means = {
        title: np.array([runs.mean() for runs in by_instance.values()])
        for title, by_instance in regrets.items()
    }
    least = np.min(list(means.values()), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {title: np.where(own > least, own / least, 1.0) for title, own in means.items()}


def ranking(regrets: Mapping[str, Mapping[str, np.ndarray]]) -> list[Rank]:
    """Every policy, by its worst ratio: who is first is the least bad everywhere.

    >>> one = np.ones(3)
    >>> ranks = ranking({"A": {"x": one, "y": one}, "B": {"x": one, "y": 2 * one}})
    >>> [(rank.title, rank.close, rank.worst, rank.weakest) for rank in ranks]
    [('A', 1.0, 1.0, 'x'), ('B', 0.5, 2.0, 'y')]
    """
    ranks = []
    for title, ratios in relative(regrets).items():
        own = regrets[title]
        ranks.append(
            Rank(
                title=title,
                close=float(np.mean(ratios <= CLOSE)),
                won=float(np.mean(ratios == 1.0)),
                median=float(np.median(ratios)),
                worst=float(ratios.max()),
                weakest=list(own)[int(ratios.argmax())],
                lost=sum(lost_runs(runs) for runs in own.values()),
                runs=sum(runs.size for runs in own.values()),
            )
        )
    return sorted(ranks, key=lambda rank: (rank.worst, rank.median))


def lost_runs(runs: np.ndarray) -> int:
    """How many are above ``LOST`` times their median.

    >>> lost_runs(np.array([1.0, 1.0, 1.0, 7.0, 9.0]))
    1
    """
    return int(np.sum(runs > LOST * np.median(runs)))
