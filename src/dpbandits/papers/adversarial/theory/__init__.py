"""*Faster Rates for Private Adversarial Bandits* (anonymous, under review), and results that it
cites.

Losses are in [0, 1] and independent of the played arms.  Regret is against the best arm, or the
best expert, in hindsight.  Algorithms tune themselves by most of these functions.  T is the
horizon, K the number of arms, N that of experts, eta the ``rate``, and gamma the ``mixing``.  tau
is the ``batch``, M the ``tries``, and s the scale of the ``noise`` on a loss.  ``moment`` bounds
E[loss^2], by default 1 + 2 s^2.  ``rounding`` is the additional loss of a round because rewards are
rounded to a grid.

Theorems about an algorithm that is tuned to a horizon have an argument ``tuned_for``.  Fewer rounds
lose at most as much as all of them, since losses may be zero from then on.  For more rounds there
is no proof.  Without it the algorithm is one that was tuned to the horizon asked for.

Where a theorem has epsilon <= 1, its value at 1 stands for all above, because 1-DP implies these.
"""

from . import promises
from .lower_bounds import (
    adversarial_minimax,
    experts_minimax,
    few_and_private,
    hidden_arm,
    hidden_expert,
    late_notice,
    locally_private,
)
from .upper_bounds import (
    approximate_leader,
    batch_conversion,
    batched_exp4,
    composed_epsilon,
    exp3_conversion,
    exp3_free,
    exp3_regret,
    exp4_regret,
    expert_conversion,
    ftpl_conversion,
    ftpl_regret,
    htinf_conversion,
    htinf_regret,
    improved_exp4,
    local_exp4,
    local_exp4_regret,
    noise_every_round,
)

__all__ = [
    "adversarial_minimax",
    "approximate_leader",
    "batch_conversion",
    "batched_exp4",
    "composed_epsilon",
    "exp3_conversion",
    "exp3_free",
    "exp3_regret",
    "exp4_regret",
    "expert_conversion",
    "experts_minimax",
    "few_and_private",
    "ftpl_conversion",
    "ftpl_regret",
    "hidden_arm",
    "hidden_expert",
    "htinf_conversion",
    "htinf_regret",
    "improved_exp4",
    "late_notice",
    "local_exp4",
    "local_exp4_regret",
    "locally_private",
    "noise_every_round",
    "promises",
]
