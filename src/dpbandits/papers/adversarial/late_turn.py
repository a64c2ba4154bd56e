"""An environment whose best arm turns late, for the lower bound of the paper."""

from __future__ import annotations

from ...environments.simulated.nonstationary import Piecewise
from ...validation import integer


class LateTurn(Piecewise):
    """The instance of a lower bound for two arms (Faster Rates for Private Adversarial Bandits,
    Lemma 15), which draws nothing.

    Arm 0 always loses 1/2, that is 1 - reward.  Arm 1 loses 1 until round ``turn``, and nothing
    from then on; with ``turn`` = ``horizon`` it never turns.  An algorithm that has left arm 1 has
    to come back, and privacy makes it slow to notice.

    >>> LateTurn(horizon=1000, turn=100).means().tolist()
    [0.5, 0.9]
    """

    def __init__(self, *, horizon: int, turn: int) -> None:
        horizon = integer("horizon", horizon, 1)
        turn = integer("turn", turn, 1, horizon)
        pieces = 1 if turn == horizon else 2
        means, starts = [[0.5, 0.0], [0.5, 1.0]][:pieces], [0, turn][:pieces]
        super().__init__(means, starts, horizon=horizon, random=False)
