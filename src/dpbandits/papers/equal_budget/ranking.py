"""Turn regrets into ranks: the factor of each policy over the best, and its number of lost runs.

A policy with lost runs has a low mean at the price of a few runs that never recover. It is not the
best, for any mean.  So factors refer to the least mean regret among policies whose tails are as
short as required.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

CLOSE = 1.2  # times the least mean regret of an instance: as good as the best
LOST = 8.0  # times the median run: a run that is lost
LEAST_LOST = 0.001  # share of the runs on an instance: more are too many
DOUBT = 0.001  # probability with which chance alone makes somebody lose too many somewhere


Regrets = Mapping[str, Mapping[str, np.ndarray]]  # policy -> instance -> regrets of the runs


@dataclass(frozen=True)
class Rank:
    """The result of one policy in a contest."""

    title: str  # of the policy
    tails_kept: bool  # see ``who_keeps_tails``
    close: float  # share of the instances on which it is within ``CLOSE`` of the best
    won: float  # share of those where nobody who keeps tails has less
    median: float  # of its mean regrets in units of the best
    worst: float  # of these
    weakest: str  # the instance of the worst
    lost: int  # how many of its runs are lost, see ``lost_runs``
    runs: int  # how many there are


def relative(regrets: Regrets, default: str | None) -> dict[str, np.ndarray]:
    """The mean regret of every policy in units of the instance's least one, shape (instances,). The
    least is among policies that keep tails, if there are any.  The median run of ``default`` is a
    yardstick of tails; None where tails do not count.
    """
    found = least(regrets, default)
    return {title: factors(own, found) for title, own in regrets.items()}


def least(regrets: Regrets, default: str | None) -> dict[str, float]:
    """The least mean regret on every instance, as in ``relative``."""
    entitled = who_keeps_tails(regrets, default) or list(regrets)
    names = regrets[entitled[0]]
    return {name: min(float(regrets[who][name].mean()) for who in entitled) for name in names}


def factors(own: Mapping[str, np.ndarray], least: Mapping[str, float]) -> np.ndarray:
    """The mean regrets on some instances, in units of the least ones, shape (instances,)."""
    means = np.array([runs.mean() for runs in own.values()])
    found = np.array([least[name] for name in own])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(means == found, 1.0, means / found)


def ranking(regrets: Regrets, default: str | None) -> list[Rank]:
    """Every policy, by its worst ratio: the first has the smallest one.  Policies that do not keep
    tails come last.  Arguments are those of ``relative``.

    >>> one = np.ones(3)
    >>> ranks = ranking({"A": {"x": one, "y": one}, "B": {"x": one, "y": 2 * one}}, "A")
    >>> [(rank.title, rank.close, rank.worst, rank.weakest) for rank in ranks]
    [('A', 1.0, 1.0, 'x'), ('B', 0.5, 2.0, 'y')]
    """
    ranks, keeping, usual = [], who_keeps_tails(regrets, default), _medians(regrets, default)
    for title, ratios in relative(regrets, default).items():
        own = regrets[title]
        ranks.append(
            Rank(
                title=title,
                tails_kept=title in keeping,
                close=float(np.mean(ratios <= CLOSE)),
                won=float(np.mean(ratios <= 1.0)),
                median=float(np.median(ratios)),
                worst=float(ratios.max()),
                weakest=list(own)[int(ratios.argmax())],
                lost=sum(lost_runs(runs, usual.get(name, 0.0)) for name, runs in own.items()),
                runs=sum(runs.size for runs in own.values()),
            )
        )
    return sorted(ranks, key=lambda rank: (not rank.tails_kept, rank.worst, rank.median))


def who_keeps_tails(regrets: Regrets, default: str | None) -> list[str]:
    """The policies that may lose at most one run in 1,000, on every instance and over all of them;
    all policies where tails do not count.

    >>> steady, runs = np.ones(25), np.append(np.ones(23), [9.0, 9.0])
    >>> who_keeps_tails({"A": {"x": steady, "y": steady}, "B": {"x": steady, "y": runs}}, "A")
    ['A']
    """
    if default is None:
        return list(regrets)
    usual = _medians(regrets, default)
    return [title for title, own in regrets.items() if _keeps_tails(own, usual)]


def _medians(regrets: Regrets, default: str | None) -> dict[str, float]:
    if default is None:
        return {}
    return {name: float(np.median(runs)) for name, runs in regrets[default].items()}


def _keeps_tails(own: Mapping[str, np.ndarray], usual: Mapping[str, float]) -> bool:
    counts = [(lost_runs(runs, usual[name]), runs.size) for name, runs in own.items()]
    lost, runs = zip(*counts, strict=True)
    counts.append((sum(lost), sum(runs)))
    chances = [binomtest(k, n, LEAST_LOST, alternative="greater").pvalue for k, n in counts]
    return min(chances) > DOUBT / len(chances)


def lost_runs(runs: np.ndarray, usual: float = 0.0) -> int:
    """The number of runs above ``LOST`` times their median and the ``usual`` regret.  So a run that
    would be good for the default is not lost.

    >>> runs = np.array([1.0, 1.0, 1.0, 7.0, 9.0])
    >>> lost_runs(runs), lost_runs(runs, usual=2.0)
    (1, 0)
    """
    return int(np.sum(runs > LOST * max(float(np.median(runs)), usual)))
