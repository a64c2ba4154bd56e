"""Linear policies with private features, by the names of those who published them."""

from __future__ import annotations

from typing import Any

from ...policies import given, like, preset
from ..bases import errata
from ..bases.counter_choice import MOST_ROUNDS
from ..exploration import Divergence, Optimism, Sampling
from .joint import HiddenLinear
from .local import HiddenLinearLocal
from .policy import STATISTIC
from .shuffled import HiddenLinearShuffled

MODELS = given("models", "shared", quiet=True)
_BOUNDS = given("bounds", "published", quiet=True)
_USUAL: dict[str, Any] = {"models": MODELS, "bounds": "published"}  # where no paper has any
_BOUND = given("parameter_bound", 1.0)
_OPTIMISM = like(Optimism, "failure_probability", "radius_scale", parameter_bound=_BOUND)
_SAMPLING = like(Sampling, "inflation")

_MODEL = "ridge subgaussian context_bound"
_RADIUS = "parameter_bound failure_probability radius_scale"
_REPAIR = "repair switch"


def _divergence(alpha: float) -> Any:
    margin = given("margin", 2.0)
    return like(Divergence, alpha=given("alpha", alpha), margin=margin, parameter_bound=_BOUND)


def _source(explore: type[Any], more: str = "") -> dict[str, Any]:
    """Who published a way to explore, with the released sums of others."""
    return {"source": f"{explore.source}{STATISTIC}{more}"}


# Whoever runs the policy is trusted ---------------------------------------------------------------

LinUCBJDP = preset(
    "LinUCBJDP",
    HiddenLinear,
    f"n_arms dimension batch reward_weight bounds horizon counter models {_MODEL} {_RADIUS}"
    f" {_REPAIR}",
    """LinUCB with private features, joint DP (Shariff & Sheffet 2018; here with exact noise).""",
    about={
        "source": "Shariff & Sheffet (2018), Differentially Private Contextual Linear Bandits;"
        " running sums: module dpbandits.privacy.continual",
        "errata": (errata.JOINT,),
    },
    explore=_OPTIMISM,
    growth=0.0,
    models=MODELS,
    bounds=_BOUNDS,
)
AdaCOFULJDP = preset(
    "AdaCOFULJDP",
    HiddenLinear,
    f"n_arms dimension growth horizon counter models {_MODEL} {_RADIUS} {_REPAIR}",
    """Rarely switching OFUL with private features, joint DP, on a schedule fixed in advance:
    the determinant of V, which ``AdaCOFUL`` waits for, would tell of features.
    """,
    about={
        "title": "Rarely switching OFUL with private features, joint DP",
        "source": "Azize & Basu (2024), Concentrated Differential Privacy for Bandits, Algorithm 3,"
        " on a fixed schedule, with the released sums of Shariff & Sheffet (2018)",
        "errata": (errata.ADAC_OFUL,),
    },
    example={"n_arms": 3, "dimension": 2, "horizon": 30_000},
    explore=_OPTIMISM,
    batch=MOST_ROUNDS,
    reward_weight=1.0,
    **_USUAL,
)
LinearThompsonJDP = preset(
    "LinearThompsonJDP",
    HiddenLinear,
    f"n_arms dimension batch inflation horizon counter models {_MODEL} {_REPAIR}",
    """Linear Thompson sampling with private features, joint DP, with noise in the posterior.""",
    about=_source(Sampling),
    explore=_SAMPLING,
    growth=0.0,
    reward_weight=1.0,
    **_USUAL,
)
LinearIMEDJDP = preset(
    "LinearIMEDJDP",
    HiddenLinear,
    f"n_arms dimension batch growth alpha margin horizon counter models {_MODEL} {_REPAIR}"
    " parameter_bound",
    """Linear IMED with private features, joint DP: the default with private contexts.  Before
    anything is known, choices are random, and have no propensities in closed form.""",
    about=_source(Divergence),
    explore=_divergence(1.3),
    reward_weight=1.0,
    **_USUAL,
)

# Nobody is trusted --------------------------------------------------------------------------------

LinUCBLDP = preset(
    "LinUCBLDP",
    HiddenLinearLocal,
    f"n_arms dimension bounds models horizon batch reports {_MODEL} {_RADIUS} {_REPAIR}",
    """LinUCB on randomised reports (Zheng et al. 2020; here with exact noise).""",
    about={
        "source": "Zheng, Cai, Huang, Li & Wang (2020), Locally Differentially Private (Contextual)"
        " Bandits Learning",
        "errata": (errata.REPORTS,),
    },
    explore=_OPTIMISM,
    models=MODELS,
    bounds=_BOUNDS,
)
LinearThompsonLDP = preset(
    "LinearThompsonLDP",
    HiddenLinearLocal,
    f"n_arms dimension inflation models horizon batch reports {_MODEL} {_REPAIR}",
    """Linear Thompson sampling on randomised reports, with their noise in the posterior.""",
    about=_source(Sampling),
    explore=_SAMPLING,
    **_USUAL,
)
LinearIMEDLDP = preset(
    "LinearIMEDLDP",
    HiddenLinearLocal,
    f"n_arms dimension alpha margin models horizon batch reports {_MODEL} {_REPAIR}"
    " parameter_bound",
    """Linear IMED on randomised reports: ``HiddenLinearLocal`` with ``Divergence``.""",
    about=_source(Divergence),
    explore=_divergence(1.3),
    **_USUAL,
)

# A shuffler is trusted ----------------------------------------------------------------------------

_BATCHES = f"horizon batch protocol level levels dropout messages models {_MODEL}"
_SHUFFLED = " and Chowdhury & Zhou (2022), Algorithm 1"

LinUCBSDP = preset(
    "LinUCBSDP",
    HiddenLinearShuffled,
    f"n_arms dimension bounds {_BATCHES} {_RADIUS} {_REPAIR}",
    """LinUCB on sums from a shuffler (Chowdhury & Zhou 2022; here with exact noise).""",
    about={
        "source": "Chowdhury & Zhou (2022), Shuffle Private Linear Contextual Bandits, Algorithm 1",
        "errata": (errata.SHUFFLED_MESSAGES, errata.SHUFFLED_BITS, errata.SHUFFLED_THEOREMS),
    },
    explore=_OPTIMISM,
    models=MODELS,
)
LinearThompsonSDP = preset(
    "LinearThompsonSDP",
    HiddenLinearShuffled,
    f"n_arms dimension inflation {_BATCHES} {_REPAIR}",
    """Linear Thompson sampling on sums from a shuffler, with their noise in the posterior.""",
    about=_source(Sampling, _SHUFFLED),
    explore=_SAMPLING,
    bounds="exact",
    models=MODELS,
)
LinearIMEDSDP = preset(
    "LinearIMEDSDP",
    HiddenLinearShuffled,
    f"n_arms dimension alpha margin {_BATCHES} {_REPAIR} parameter_bound",
    """Linear IMED on sums from a shuffler: ``HiddenLinearShuffled`` with ``Divergence``.""",
    about=_source(Divergence, _SHUFFLED),
    explore=_divergence(1.5),
    bounds="exact",
    models=MODELS,
)
