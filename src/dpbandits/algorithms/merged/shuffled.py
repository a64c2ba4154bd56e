"""IMED on merged batches whose people add the noise: ``merged`` with the wall of shuffle trust.

The sum of a batch, noise and all, is what leaves the shuffler, of the law of the central model.
"""

from __future__ import annotations

from typing import Unpack

from ...policies import Options, register
from ...privacy.budgets import PureDP
from ...validation import integer, real
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.shuffled import ShuffledPolicy, shuffled_card
from .merged import MergedIMED, MergedPolicy, growth_of


@register(n_arms=3)
class MergedIMEDSDP(MergedPolicy, ShuffledPolicy):
    """IMED on merged sums that a shuffler has added up, with the Laplace noise of the central model
    (shares of noise as in Chowdhury & Zhou 2023).

    With ``messages=True`` this is the server: all people of a batch play ``device().arm``, their
    devices report what came of it, and what left the ``shuffler()`` goes to ``receive``.  The
    server sees no reward; secure aggregation may stand in the shuffler's place.  Without, whoever
    calls ``pull`` and ``update`` sees rewards, and is trusted with them.

    Args:
        n_arms: number of arms.
        budget: ``PureDP``; None for the non-private counterpart.
        alpha, growth, first: as in ``MergedIMED``.
        messages: whether this is the server of a shuffler.
        dropout: of each batch this share of the people, at most, may leave out their noise, or
            tell the server what it was.  If nobody does, there is more noise than the index knows
            of, and than simulations draw.
        **options: see ``Options``.

    When to choose: nobody is to be trusted with rewards, and central regret is wanted all the same.

    Example:
        >>> from dpbandits import PureDP
        >>> server = MergedIMEDSDP(3, budget=PureDP(1.0), messages=True, seed=1)
        >>> server.device().arm, server.protocol.batch
        (0, 1)
    """

    card = shuffled_card(MergedIMED.card)
    kernels = MergedIMED.kernels

    def __init__(
        self,
        n_arms: int,
        *,
        budget: PureDP | None,
        alpha: float = 1.0,
        growth: float | None = None,
        first: int = 1,
        messages: bool = False,
        dropout: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        self._optimism = real("alpha", alpha, 1e-3, 1e3)
        self._growth = growth_of(growth)
        self._first = integer("first", first, 1, MOST_ROUNDS)
        own = {
            "n_arms": n_arms,
            "alpha": self._optimism,
            "growth": growth,
            "first": self._first,
        }
        own |= self._shuffled(messages, dropout, options)
        super().__init__(own, budget=budget, **options)
