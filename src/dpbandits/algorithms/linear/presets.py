"""Linear policies by the names of those who published them."""

from __future__ import annotations

from typing import Any

from ...policies import given, like, preset
from ..bases.errata import ADAC_OFUL, LINPRIV
from ..exploration import Divergence, Optimism, Sampling
from .policy import EveryAnswer, Linear, Switching

_MODEL = "ridge subgaussian context_bound"
_RADIUS = "parameter_bound failure_probability radius_scale"
_MODELS = given("models", "shared", quiet=True)
_OPEN = given("budget", None, values={None: None})
_NOT_PRIVATE = {"noise": (), "trust_model": "none"}
_COUNTERS = "; continual sums: dpbandits.privacy.continual"


def _published(source: str, **more: Any) -> dict[str, Any]:
    """What is said of a preset: who published it, and has the proof."""
    return {"source": source, "proof": "", **more}


def _optimism(**radius: Any) -> Any:
    bound = given("parameter_bound", 1.0)
    return like(Optimism, "failure_probability", "radius_scale", parameter_bound=bound, **radius)


def _divergence(alpha: float, margin: float, **more: Any) -> Any:
    return like(Divergence, alpha=given("alpha", alpha), margin=given("margin", margin), **more)


LinUCB = preset(
    "LinUCB",
    Linear,
    f"n_arms dimension models {_MODEL} {_RADIUS} budget",
    """LinUCB, also called OFUL, without privacy (Abbasi-Yadkori, Pál & Szepesvári 2011).

    ``Linear`` with ``Optimism()`` and ``EveryAnswer()``; the private relative is ``PrivateLinUCB``.
    """,
    about=_published(f"{Optimism.source}, Theorem 2", title="LinUCB, not private", **_NOT_PRIVATE),
    example={"n_arms": 3, "dimension": 2},
    explore=_optimism(radius="safe"),
    updates=EveryAnswer(),
    models=_MODELS,
    horizon=None,
    counter=None,
    budget=_OPEN,
)

PrivateLinUCB = preset(
    "PrivateLinUCB",
    Linear,
    f"n_arms dimension horizon counter radius models {_MODEL} {_RADIUS}",
    """LinUCB on a running sum that is released with the noise of a continual sum after every
    answer.  Under pure DP with the binary tree this is the mechanism of LinPriv (Neel & Roth 2018),
    which has ``models="disjoint"``.

    ``Linear`` with ``Optimism()`` and ``EveryAnswer()``.
    """,
    about=_published(
        "Neel & Roth (2018), Mitigating Bias in Adaptive Data Gathering via Differential Privacy"
        f"{_COUNTERS}",
        errata=(LINPRIV,),
    ),
    explore=_optimism(
        radius=given("radius", "safe", values={"safe": "safe", "heuristic": "heuristic"})
    ),
    updates=EveryAnswer(),
    models=_MODELS,
)

LinearThompson = preset(
    "LinearThompson",
    Linear,
    f"n_arms dimension horizon counter inflation models {_MODEL}",
    """Linear Thompson sampling on a released running sum, with the known law of its noise in the
    posterior.

    ``Linear`` with ``Sampling()`` and ``EveryAnswer()``.
    """,
    about=_published(
        f"{Sampling.source}{_COUNTERS}",
        title="linear Thompson sampling on a continual sum",
    ),
    explore=like(Sampling, "inflation"),
    updates=EveryAnswer(),
    models=_MODELS,
)

LinearIMED = preset(
    "LinearIMED",
    Linear,
    f"n_arms dimension horizon counter alpha margin models {_MODEL}",
    """Indexed minimum empirical divergence on a running sum that is released after every answer.

    ``Linear`` with ``Divergence()`` and ``EveryAnswer()``.
    """,
    about=_published(f"{Divergence.source}{_COUNTERS}"),
    explore=_divergence(1.5, 2.0),
    updates=EveryAnswer(),
    models=_MODELS,
)

RSOFUL = preset(
    "RSOFUL",
    Linear,
    f"n_arms dimension growth {_MODEL} {_RADIUS} budget",
    """Rarely switching OFUL, without privacy (Abbasi-Yadkori, Pál & Szepesvári 2011, Section 5.1).

    ``Linear`` with ``Optimism()`` and ``Switching()``; the private relative is ``AdaCOFUL``.
    """,
    about=_published(
        f"{Optimism.source}, Section 5.1",
        title="Rarely switching OFUL, not private",
        **_NOT_PRIVATE,
    ),
    example={"n_arms": 3, "dimension": 2},
    explore=_optimism(radius="safe"),
    updates=like(Switching, growth=given("growth", 1.0)),
    models="shared",
    horizon=None,
    counter=None,
    budget=_OPEN,
)

AdaCOFUL = preset(
    "AdaCOFUL",
    Linear,
    f"n_arms dimension horizon variant counter smallest_eigenvalue growth {_MODEL} {_RADIUS}",
    """Rarely switching OFUL on noisy sums (Azize & Basu 2024, Algorithm 3): ``variant="tight"`` has
    correlated noise and a radius that is proved to hold, "heuristic" one that claims no coverage,
    and "published" that of Appendix F, with independent noise in every episode.
    """,
    about=_published(
        "Azize & Basu (2024), Concentrated Differential Privacy for Bandits, Theorem 3; counters:"
        " dpbandits.privacy.continual",
        title="Rarely switching OFUL on noisy sums",
        errata=(ADAC_OFUL,),
    ),
    explore=_optimism(
        radius=given(
            "variant",
            "tight",
            values={"tight": "safe", "heuristic": "heuristic", "published": "published"},
        ),
        smallest_eigenvalue=given("smallest_eigenvalue", None),
    ),
    updates=like(Switching, growth=given("growth", 1.0)),
    models="shared",
    horizon=given("horizon"),
)

RSLinearIMED = preset(
    "RSLinearIMED",
    Linear,
    f"n_arms dimension horizon counter growth alpha margin share {_MODEL}",
    """Indexed minimum empirical divergence on rarely released sums, for a linear model: the default
    with public contexts.

    ``Linear`` with ``Divergence()`` and ``Switching()``.
    """,
    about=_published(
        f"{Divergence.source}; releases: Azize & Basu (2024), Concentrated Differential Privacy for"
        " Bandits, Theorem 3; counters: dpbandits.privacy.continual"
    ),
    explore=_divergence(1.8, 2.5, share=given("share", 1.0)),
    updates=like(Switching, growth=given("growth", 0.4)),
    models="shared",
    horizon=given("horizon"),
)
