"""How wide an interval of an arm will be, for the share of people that the arm gets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..inference import Batches, Cells, Noise, ReleasedSums, reports
from ..policies import Policy
from ..policies.sums import no_intervals, noise_of
from ..protocol import no_arm
from ..session import episodes

CONFIDENCE = 0.95
_SHARES = (0.5, 0.1, 0.01)
_MOST_BATCHES = 100_000


class HalfWidth(NamedTuple):
    """The half width of a 95 % interval of an arm's mean, where all arms' intervals hold together.

    It is that of a mean in the middle of the reward range, where intervals are widest, if released
    sums are as expected.

    Attributes:
        share: of all people, who get the arm.
        people: so many are these.
        half_width: of the interval.
        without_noise: the half width without privacy noise.
    """

    share: float
    people: int
    half_width: float
    without_noise: float


def half_widths(policy: Policy, horizon: int) -> list[HalfWidth]:
    """For a half, a tenth and a hundredth of all people, and for an equal share, as far as an arm
    gets so many.  Empty where no interval is proved.

    Batches are those of an arm that always wins; of a search, those of equal arms.
    """
    if no_intervals(policy):
        return []
    shares = sorted({*_SHARES, 1.0 / policy.n_arms}, reverse=True)
    asked = {share: people for share in shares if (people := int(share * horizon)) > 0}
    noise, none = noise_of(policy), Noise(0.0, is_laplace=False)
    if policy.learns_means:
        return [
            HalfWidth(
                share, n, *(_half_width(policy, reports(n, n / 2.0), one) for one in (noise, none))
            )
            for share, n in asked.items()
        ]
    lengths, found = _batches(policy, horizon), []
    for share, people in asked.items():
        if people > lengths.sum():
            continue
        n = lengths[np.cumsum(lengths) <= people]
        batches = Batches(np.zeros(len(n)), n, n / 2.0, np.arange(len(n)))
        private = _half_width(policy, batches.cells(0, noise), noise)
        found.append(
            HalfWidth(
                share, people, private, _half_width(policy, reports(people, people / 2.0), none)
            )
        )
    return found


def _half_width(policy: Policy, cells: Cells, noise: Noise) -> float:
    """Of an arm with these releases, where the others have none and share the error."""
    lo, hi = policy.reward_range
    others = [reports(0, 0.0)] * (policy.n_arms - 1)
    low, high = ReleasedSums((cells, *others), noise, lo, hi - lo).ends(CONFIDENCE)
    return float(high[0] - low[0]) / 2.0


def _batches(policy: Policy, horizon: int) -> np.ndarray:
    """The lengths of the batches of the arm that gets most people."""
    (lo, hi), searching = policy.reward_range, policy.kernels.recommend is not no_arm
    rounds = horizon * (policy.n_arms if searching else 1)
    for _ in range(_MOST_BATCHES):
        choice, n = policy.session.coming()
        mean = (lo + hi) / 2.0 if searching else hi if choice.arm == 0 else lo
        if not episodes.receive_sum(policy.session, n * mean):
            break
        if policy.session.rounds.recorded >= rounds:
            break
    played = policy.released_sums
    best = played.groupby("arm")["rounds"].sum().idxmax() if len(played) else 0
    return played["rounds"][played["arm"] == best].to_numpy(float)
