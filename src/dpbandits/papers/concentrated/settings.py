"""The settings of Figures 4 and 5, as published and where the guarantee holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...algorithms import RSOFUL, AdaCOFUL
from ...environments import Bernoulli, GaussianContexts, LinearArms
from ...environments.base import World
from ...policies import Policy
from .episodes import AdaCUCB
from .gope import GOPE, AdaCGOPE, AdaRGOPEVar

PAPER = "Azize & Basu (2024)"
PUBLISHED = "As published"
HONEST = "With the guarantee that holds"

MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
ARMS, DIMENSION, DELTA, RIDGE = 10, 3, 0.001, 0.1

Budgeted = Callable[..., Policy]  # of a ``budget``


@dataclass(frozen=True)
class Setting:
    """One environment, and the families of policies that run in it at every budget."""

    key: str
    title: str
    environment: World
    families: dict[str, tuple[str, Budgeted]]  # by key: name, and policy at a budget
    # without privacy: "open", and "open-" with a family that has its own
    without: dict[str, Policy]
    horizon: int

    def open_of(self, family: str) -> str:
        """The key of the policy without privacy that a family is compared with."""
        own = f"open-{family}"
        return own if own in self.without else "open"


def bernoulli(horizon: int) -> Setting:
    """Bernoulli arms; the guarantee holds as published."""
    forgetting, keeping = (
        partial(AdaCUCB, len(MEANS), beta=1.0, forget=forget) for forget in (True, False)
    )
    return Setting(
        "arms",
        "Bernoulli arms",
        Bernoulli(MEANS),
        {"published": ("AdaC-UCB", forgetting), "tight": ("AdaC-UCB without forgetting", keeping)},
        {"open": forgetting(budget=None), "open-tight": keeping(budget=None)},
        horizon,
    )


_RANGED: dict[str, Any] = {"failure_probability": DELTA, "reward_range": (-1.0, 1.0)}
_NORMAL: dict[str, Any] = {**_RANGED, "subgaussian": 1.0, "clip": False}  # as published


def fixed(horizon: int, seed: int) -> Setting:
    """Linear bandits with fixed arms, as published."""
    world = LinearArms.on_sphere(ARMS, DIMENSION, seed=seed)
    published = partial(AdaCGOPE, world.features, variant="published", **_NORMAL)
    return Setting(
        "fixed",
        "Linear, fixed arms",
        world,
        {
            "published": ("AdaC-GOPE", published),
            "sums": ("AdaR-GOPE-Var", partial(AdaRGOPEVar, world.features, **_NORMAL)),
        },
        {"open": published(budget=None)},
        horizon,
    )


def fixed_bounded(horizon: int, seed: int) -> Setting:
    """Fixed arms with rewards within their range."""
    world = LinearArms.on_sphere(ARMS, DIMENSION, seed=seed, rewards="bounded")
    published, tight = (
        partial(AdaCGOPE, world.features, variant=variant, **_RANGED)
        for variant in ("published", "tight")
    )
    return Setting(
        "fixed-bounded",
        "Linear, fixed arms",
        world,
        {"published": ("AdaC-GOPE", published), "tight": ("AdaC-GOPE, tight", tight)},
        {"open": published(budget=None), "open-tight": GOPE(world.features, **_RANGED)},
        horizon,
    )


def contextual(horizon: int, seed: int) -> Setting:
    """Linear contextual bandits, as published."""
    world = GaussianContexts.on_sphere(ARMS, DIMENSION, seed=seed)
    return Setting(
        "contexts",
        "Linear contextual",
        world,
        {"published": ("AdaC-OFUL", _oful(horizon, "published", _NORMAL))},
        {"open": RSOFUL(ARMS, DIMENSION, **_OFUL, **_NORMAL)},
        horizon,
    )


def contextual_bounded(horizon: int, seed: int) -> Setting:
    """Contextual worlds with rewards and contexts within their bounds."""
    world = GaussianContexts.on_sphere(ARMS, DIMENSION, seed=seed, rewards="bounded", project=True)
    return Setting(
        "contexts-bounded",
        "Linear contextual",
        world,
        {
            "published": ("AdaC-OFUL", _oful(horizon, "published", _RANGED)),
            "tight": ("AdaC-OFUL, tight", _oful(horizon, "tight", _RANGED)),
        },
        {"open": RSOFUL(ARMS, DIMENSION, **_OFUL, **_RANGED)},
        horizon,
    )


LINEAR = (fixed, contextual, fixed_bounded, contextual_bounded)
_OFUL: dict[str, Any] = {"growth": 1.0, "ridge": RIDGE}


def _oful(horizon: int, variant: str, options: dict[str, Any]) -> Budgeted:
    return partial(AdaCOFUL, ARMS, DIMENSION, horizon=horizon, variant=variant, **_OFUL, **options)


def policy_key(family: str, rho: float) -> str:
    """The key of the cells and results of a policy at a budget."""
    return f"{family}/{rho:g}"


def is_void(setting: Setting) -> bool:
    """Whether the guarantee is void, since nothing is clipped."""
    return not all(policy.clip for policy in setting.without.values())
