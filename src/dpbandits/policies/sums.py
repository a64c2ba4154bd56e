"""The released sums of a policy's arms, for intervals; and what breaks these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..inference import Batches, Noise, ReleasedSums, reports
from ..privacy.channels import GAUSSIAN, LAPLACE, OPEN, VECTOR, Channel
from ..protocol import never, no_estimate
from ..session.estimates import ArmEstimates
from ..session.exchange import Made

Policy = Any  # whose module imports this one

# Integers of secure noise are drawn with a parameter that is rounded up by less, in grid steps.
_ROUNDED = 2.0**-19
CHOSEN = (
    "Intervals hold for one method, and one difference or one control, that were chosen beforehand."
    " They do not cover differences that are picked afterwards."
)
DECIDING = (
    "The answer may be asked at any time, and with several gaps. A control has to be chosen"
    " beforehand. All arms count, also retired ones."
)
_SEARCHES = (
    "The search has a rule of its own. The search may end sooner, because it accepts any of several"
    " arms that are equally good."
)
COUNTED = (
    "Rounds and releases count the answers that came. Anyone who also sees the decisions can"
    " compute how many answers of each arm are missing. No noise hides this."
)
BREAK_ALL = (
    "Intervals assume that an arm's mean stays the same. Where means change over time, the"
    " difference of two arms may be far off.",
    "People may decline an arm, or take another one. Each mean is that of the people who took the"
    " arm, so a difference may compare different people.",
    CHOSEN,
)
OF_A_TABLE = (
    "Intervals assume that the table has all releases, and that the noise of each sum has exactly"
    " the given law. Missing answers count as they do in the table."
)


class Sum(NamedTuple):
    """A released sum of the rewards of a batch."""

    arm: int
    rounds: int
    sum: float
    known: int  # how many of these sums had been released when the batch began


def no_intervals(policy: Policy) -> str:
    """Why there are none; empty where there are."""
    if policy.card.hides_contexts:
        return "contexts are private, and so is who got which arm"
    if policy.statistic.counter is not None:
        noise = "the noise in the policy's running sums is correlated"
        return f"{noise}, and no interval is proved for such noise"
    if not (policy.statistic.sums_of or policy.learns_means):
        if policy.kernels.estimate is not no_estimate:
            return "no interval is proved for coefficients after adaptive choices"
        return "the package computes no intervals from this policy's kind of release"
    if policy.channel.family not in (OPEN, GAUSSIAN, LAPLACE, VECTOR):
        return "the policy's noise is neither Gaussian nor Laplace noise"
    if not policy.clip:
        return "with clip=False rewards may lie anywhere"
    if policy.session.exchange.older and policy.statistic.sums_of:
        return "an earlier version has made releases, and kept less of them than intervals need"
    return str(policy._no_intervals)


def counts_answers(policy: Policy) -> bool:
    """Whether rounds and releases count answers that came, instead of decisions."""
    return bool(policy.card.learns_at_once and not policy.settings.answers_within)


def at_the_end(policy: Policy) -> str:
    """What can be said of the arms at the end."""
    why = no_intervals(policy)
    if why:
        return f"There are no confidence intervals of the arms' means: {why}"
    return (
        "Confidence intervals of the arms' means and of their differences hold at all releases"
        " together, however often you look. They follow from released values, and cost no privacy."
        " In Python, dpb.conclude(policy) computes them"
    )


def sums_of(made: Sequence[Made], *, every: bool) -> list[Sum]:
    """The released sums of batches, in the order of their releases; ``every``: each release has a
    sum for every arm.
    """
    found, firsts = list[Sum](), [0]
    for one in made:
        for i, (arm, rounds, known) in enumerate(one.batches):
            if rounds > 0:
                # All sums of the releases that were known.
                found.append(Sum(arm, rounds, one.values[arm if every else i], firsts[known]))
        firsts.append(len(found))
    return found


def reader_of_sums(policy: Policy, estimates: ArmEstimates) -> Callable[[], ReleasedSums] | None:
    """A function that reads what intervals are made of, as it is now; None where there is none.
    ``estimates`` are copies.
    """
    if no_intervals(policy):
        return None
    lo, hi = policy.reward_range
    width, count = hi - lo, policy.n_arms
    noise = noise_of(policy)
    rounding = policy._rounding
    made, every = policy.session.exchange.made[:], policy.statistic.sums_of == "arms"

    def from_batches() -> ReleasedSums:
        arm, rounds, total, known = np.array(sums_of(made, every=every), float).reshape(-1, 4).T
        batches = Batches(arm, rounds, (total - rounds * lo) / width, known)
        cells = tuple(batches.cells(a, noise) for a in range(count))
        return ReleasedSums(cells, noise, lo, width, rounding)

    def from_reports() -> ReleasedSums:
        assert estimates.rounds is not None
        means = estimates.means if estimates.own is None else estimates.own
        total = np.nan_to_num((means - lo) / width) * estimates.rounds
        cells = tuple(map(reports, estimates.rounds.tolist(), total.tolist()))
        return ReleasedSums(cells, noise, lo, width, rounding)

    return from_reports if policy.learns_means else from_batches


def noise_of(policy: Policy) -> Noise:
    """The noise on a sum of rewards in [0, 1]."""
    (lo, hi), (scale, dropout) = policy.reward_range, policy._noise_of_sums
    return noise_of_sums(policy.channel, scale, policy.grid, hi - lo)._replace(dropout=dropout)


def noise_of_sums(channel: Channel, scale: float, grid: float, width: float) -> Noise:
    """The noise on a sum of rewards from a range of that width, scaled to [0, 1]."""
    if scale > 0.0:
        scale += _ROUNDED * grid
    return Noise(scale / width, channel.family in (LAPLACE, VECTOR))


def rounding_of(grid: float, lo: float, hi: float) -> float:
    """By how much rounding to a grid moves a reward between lo and hi, at most."""
    # An end of the range that is no multiple of the grid is replaced by the next one within.
    return 0.5 * grid if not grid or lo % grid == hi % grid == 0.0 else grid


def what_breaks(policy: Policy) -> Iterator[str]:
    """What intervals do not cover, in sentences."""
    lo, hi = policy.reward_range
    yield from BREAK_ALL
    at_once = counts_answers(policy)
    missing = (
        "is not counted. The intervals are wrong if rewards influence whether people answer"
        if at_once
        else f"counts as {policy.default_reward:g}"
    )
    yield (
        f"A missing answer {missing}. A reward outside {lo:g} to {hi:g} counts as the nearer end."
        " The intervals cover the mean of such rewards."
    )
    if policy._serving == "messages":
        yield (
            f"A person who does not come counts as {0.5 * (lo + hi):g}, the middle of the range,"
            " where the shuffler fills up a batch."
        )
    yield (
        "If an arm was retired and added again, the interrupted batch is left out. The intervals"
        " are wrong if unreleased rewards decided when the arm was retired or added."
    )
    yield "A cancelled decision has no reward. Means are those of all other decisions."
    if at_once:
        yield (
            "Answers are learned in order of arrival. If good answers come sooner than bad ones,"
            " the intervals are wrong."
        )
        yield COUNTED
    yield from what_breaks_any(policy)
    if policy.session.exchange.learned:
        yield "Intervals use this policy's own releases, and not those of other workers."


def breaks_decisions(policy: Policy) -> Iterator[str]:
    """What a verdict does not cover, in sentences."""
    yield from (DECIDING if one == CHOSEN else one for one in what_breaks(policy))
    if policy.kernels.stop is not never:
        yield _SEARCHES


def returns(policy: Policy) -> bool:
    """Whether a user may have several rounds."""
    return policy.max_rounds is not None and policy.max_rounds > 1


def what_breaks_any(policy: Policy) -> Iterator[str]:
    """What intervals of sums do not cover, whoever is in them; and how rounding is covered."""
    lo, hi = policy.reward_range
    if policy.grid:
        wider = "half a step" if rounding_of(policy.grid, lo, hi) < policy.grid else "a step"
        yield (
            f"Rewards are rounded to multiples of {policy.grid:g}. Each interval is {wider} wider"
            " at both ends, which covers the rounding."
        )
    if policy.statistic.parts:
        yield (
            "Batches of several arms fill up side by side. A difference assumes that people's"
            " rewards are independent of each other."
        )
    if returns(policy):
        yield (
            "The same user may return. Rewards of one user resemble each other, and the intervals"
            " are then too narrow."
        )
    if policy.session.rounds.chosen_among:
        yield (
            "Arms were closed for some people. Each mean is that of the people who could get the"
            " arm, so a difference may compare different people."
        )
