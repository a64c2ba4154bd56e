"""Names of policies: batched EXP4, and learners without privacy."""

from __future__ import annotations

from ...algorithms import Adversarial, Experts
from ...policies import given, like, preset
from . import exp4, without_privacy

BatchedEXP4 = preset(
    "BatchedEXP4",
    Experts,
    "n_arms n_experts variant horizon batch rate mixing",
    """Exponential weights on experts, with Laplace noise as published.""",
    learner=like(exp4.BatchedEXP4, "rate", "mixing", "variant"),
    horizon=given("horizon"),
)
_OPEN = {"horizon": None, "batch": None, "budget": given("budget", None)}
EXP3IX = preset(
    "EXP3IX",
    Adversarial,
    "n_arms budget",
    """EXP3-IX, without privacy: to measure the price of it in ``EXP3``.""",
    about={
        "title": "EXP3-IX, not private",
        "source": (
            "Neu (2015), Explore no more: improved high-probability regret bounds for"
            " non-stochastic bandits"
        ),
    },
    learner=without_privacy.EXP3IX(),
    **_OPEN,
)
TsallisINF = preset(
    "TsallisINF",
    Adversarial,
    "n_arms budget",
    """Tsallis-INF, without privacy: to measure the price of it in ``HTINF``.""",
    about={
        "title": "Tsallis-INF, not private",
        "source": (
            "Zimmert & Seldin (2021), Tsallis-INF: an optimal algorithm for stochastic and"
            " adversarial bandits"
        ),
    },
    learner=without_privacy.TsallisINF(),
    **_OPEN,
)
