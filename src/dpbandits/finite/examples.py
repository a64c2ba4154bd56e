"""Small policies that tell definitions of privacy apart, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from .policy import FinitePolicy


def view_not_table() -> FinitePolicy:
    """Azize & Basu (2024), Concentrated Differential Privacy for Bandits, Proposition 1(e): (0.95,
    0.17)-private in the view, and not in the table.

    >>> policy = view_not_table()
    >>> [round(policy.delta(0.95, view), 4) for view in ("view", "table")]
    [0.1688, 0.1777]
    """
    first_arm = [
        "2/3",
        "1/2 1/3 1/4 1/3",
        "1/2 1/3 1/4 1/5 1/2 2/3 1/4 0 1/3 1/7 3/4 2/5 1/2 1 1/4 2/3",
    ]
    return FinitePolicy([[[p, 1 - p] for p in map(Fraction, table.split())] for table in first_arm])


def table_not_interactive() -> FinitePolicy:
    """It never plays arm 1, so arm 1's column of a table stays hidden.  If the adversary makes a
    person play arm 1, the policy publishes that person's reward.

    >>> table_not_interactive().epsilon(0.0, "table"), table_not_interactive().epsilon(0.0)
    (0.0, inf)
    """

    def choose(arms: Sequence[int], rewards: Sequence[int]) -> Sequence[int]:
        return [0, 1] if (1, 1) in zip(arms, rewards, strict=True) else [1, 0]

    return FinitePolicy.from_function(2, 3, choose)


def interactive_not_adaptive() -> FinitePolicy:
    """An adversary that chooses rewards during the run sees more than one that only picks arms of a
    table.  This answers a question of Remark 2 of the same paper.

    The second decision is a hint at the first reward.  The third one, after arm 0, is arm 1 with
    probability 1/2 if first and second reward differ, and never if not.  The hint decides which
    second reward reveals more.  A table has one for arm 0; arm 1 tells nothing.

    >>> policy = interactive_not_adaptive()
    >>> policy.delta(0.0, "interactive"), round(policy.delta(0.0, "adaptive"), 4)
    (0.5, 0.6667)
    """

    def choose(arms: Sequence[int], rewards: Sequence[int]) -> Sequence[Fraction]:
        second = Fraction(1, 2)
        if len(arms) == 1:
            second = Fraction(1 + rewards[0], 3)
        elif len(arms) == 2 and arms[1] == 0:
            second = Fraction(rewards[0] ^ rewards[1], 2)
        return [1 - second, second]

    return FinitePolicy.from_function(2, 3, choose)


EXAMPLES: dict[str, Callable[[], FinitePolicy]] = {
    "view-not-table": view_not_table,
    "table-not-interactive": table_not_interactive,
    "interactive-not-adaptive": interactive_not_adaptive,
}
