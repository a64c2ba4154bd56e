"""From regrets to ranks: who is within which factor of the best, and how often lost.

Who loses runs pays for a low mean with the few that never come back, and is not the best however
low it is.  So factors are of the least mean regret of those whose tails may be as short as asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...report.intervals import share

CLOSE = 1.2  # times the least mean regret of an instance: as good as the best
LOST = 8.0  # times the median of its runs: a run that is lost
LEAST_LOST = 0.001  # share of the runs on an instance: more are too many


Regrets = Mapping[str, Mapping[str, np.ndarray]]  # policy -> instance -> regrets of the runs


@dataclass(frozen=True)
class Rank:
    """What came of one policy in a contest.

    Attributes:
        title: of the policy.
        tails_kept: see ``tails_kept``.
        close: share of the instances on which it is within ``CLOSE`` of the best.
        won: share of those where nobody who keeps tails has less.
        median, worst: of its mean regrets in units of the best.
        weakest: the instance of the worst.
        lost: how many of its runs are above ``LOST`` times the median run of their instance.
        runs: how many there are.
    """

    title: str
    tails_kept: bool
    close: float
    won: float
    median: float
    worst: float
    weakest: str
    lost: int
    runs: int


def relative(regrets: Regrets, tails: bool = True) -> dict[str, np.ndarray]:
    """The mean regret of every policy in units of the least one of the instance, shape
    (instances,): where tails count, of those who keep them, if anybody does.
    """
    means = {
        title: np.array([runs.mean() for runs in by_instance.values()])
        for title, by_instance in regrets.items()
    }
    entitled = [own for title, own in means.items() if not tails or tails_kept(regrets[title])]
    least = np.min(entitled or list(means.values()), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {title: np.where(own == least, 1.0, own / least) for title, own in means.items()}


def ranking(regrets: Regrets, tails: bool = True) -> list[Rank]:
    """Every policy, by its worst ratio: who is first is the least bad everywhere.  Where tails
    count, who does not keep them comes last.

    >>> one = np.ones(3)
    >>> ranks = ranking({"A": {"x": one, "y": one}, "B": {"x": one, "y": 2 * one}})
    >>> [(rank.title, rank.close, rank.worst, rank.weakest) for rank in ranks]
    [('A', 1.0, 1.0, 'x'), ('B', 0.5, 2.0, 'y')]
    """
    ranks = []
    for title, ratios in relative(regrets, tails).items():
        own = regrets[title]
        ranks.append(
            Rank(
                title=title,
                tails_kept=not tails or tails_kept(own),
                close=float(np.mean(ratios <= CLOSE)),
                won=float(np.mean(ratios <= 1.0)),
                median=float(np.median(ratios)),
                worst=float(ratios.max()),
                weakest=list(own)[int(ratios.argmax())],
                lost=sum(lost_runs(runs) for runs in own.values()),
                runs=sum(runs.size for runs in own.values()),
            )
        )
    return sorted(ranks, key=lambda rank: (not rank.tails_kept, rank.worst, rank.median))


def tails_kept(own: Mapping[str, np.ndarray]) -> bool:
    """Whether on no instance more than one run in 1,000 is lost, or not demonstrably.

    >>> runs = np.append(np.ones(24), 9.0)
    >>> tails_kept({"x": runs, "y": runs}), tails_kept({"x": np.append(runs, 9.0)})
    (True, False)
    """
    return all(share(lost_runs(runs), runs.size).low <= LEAST_LOST for runs in own.values())


def lost_runs(runs: np.ndarray) -> int:
    """How many are above ``LOST`` times their median.

    >>> lost_runs(np.array([1.0, 1.0, 1.0, 7.0, 9.0]))
    1
    """
    return int(np.sum(runs > LOST * np.median(runs)))
