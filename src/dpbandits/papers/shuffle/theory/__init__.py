"""Chowdhury & Zhou (2022), *Shuffle Private Linear Contextual Bandits*, and results it cites.

Features x and the parameter are at most 1 long, rewards are in [0, 1], and estimates change after
every ``batch`` of rounds.  Bounds on regret hold with probability 1 - ``failure``.  Those of the
paper's theorems leave their constants open.  ``perturbed_linucb`` and ``noisy_linucb`` have
constants, for any noise of a policy.

Where a theorem has a largest epsilon, its value there stands for all above, because a smaller
epsilon implies them.  Bounds for noise on every report, which shuffling has to hide, do not extend
so.

``report_noise`` and ``bit_noise`` give the noise of the theorems, and ``calibration="paper"`` uses
it.
"""

from . import promises
from .bounds import (
    batched_joint,
    batched_local,
    bit_noise,
    bits_alone,
    contextual_minimax,
    diverse_local,
    divided_epsilon,
    noisy_linucb,
    perturbed_linucb,
    report_alone,
    report_noise,
    returning_bits,
    returning_joint,
    returning_reports,
    shuffled_bits,
    shuffled_bits_balanced,
    shuffled_epsilon,
    shuffled_reports,
    shuffled_reports_balanced,
)

__all__ = [
    "batched_joint",
    "batched_local",
    "bit_noise",
    "bits_alone",
    "contextual_minimax",
    "diverse_local",
    "divided_epsilon",
    "noisy_linucb",
    "perturbed_linucb",
    "promises",
    "report_alone",
    "report_noise",
    "returning_bits",
    "returning_joint",
    "returning_reports",
    "shuffled_bits",
    "shuffled_bits_balanced",
    "shuffled_epsilon",
    "shuffled_reports",
    "shuffled_reports_balanced",
]
