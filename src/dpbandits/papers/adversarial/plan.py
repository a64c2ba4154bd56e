"""The bounds of Faster Rates for Private Adversarial Bandits, measured: its Table 1, the leak of
EXP3, and Lemma 15.

The paper has no experiments, so the settings are ours.  Its bounds are about the worst sequence of
losses, which is unknown.  So regret is measured on a family of instances, and the largest mean
counts.  Gaps of the family are the same at all sizes; else regret would grow as the gaps do, for
any policy.
"""

from __future__ import annotations

from ..plans import Findings, Plan, Results, Size
from .classifiers import classifiers
from .expert_growth import Experts
from .late_switch import late_switch
from .leakage import leak
from .real_rewards import real
from .scaling import Scaling
from .section import PAPER
from .small_epsilon import small_epsilon


def plan(size: Size) -> Plan:
    """Everything at the given size; the part on real rewards where data are."""
    parts = [Scaling(size).section(), small_epsilon(size), leak(size), late_switch(size)]
    parts += [real(size), Experts(size).section(), classifiers(size)]

    def assess(results: Results) -> Findings:
        found = [part.assess(results) for part in parts]
        return Findings(
            [claim for one in found for claim in one.claims],
            [exhibit for one in found for exhibit in one.exhibits],
        )

    return Plan(
        title="Private adversarial bandits: the bounds, measured",
        description=(
            f"The proofs of {PAPER}, beside runs of its algorithms: how regret grows with"
            " rounds, arms and privacy, how much batches save, how much EXP3 leaks without"
            " them, real rewards in the order of time, and expert advice."
        ),
        cells=[cell for part in parts for cell in part.cells],
        assess=assess,
        notes=[note for part in parts for note in part.notes],
        shown=[name for part in parts for name in part.shown],
    )
