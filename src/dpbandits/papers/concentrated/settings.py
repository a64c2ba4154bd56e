"""The settings of Figures 4 and 5, as published and where the guarantee holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...algorithms import RSOFUL, AdaCOFUL
from ...environments import (
    ArmsEnvironment,
    Bernoulli,
    ContextEnvironment,
    GaussianContexts,
    LinearArms,
)
from ...policies import Policy
from ...privacy import ZCDP
from .episodes import AdaCUCB
from .gope import GOPE, AdaCGOPE, AdaRGOPEVar

PAPER = "Azize & Basu (2024)"
PUBLISHED = "As published"
HONEST = "With the guarantee that holds"

MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
ARMS, DIMENSION, DELTA, RIDGE = 10, 3, 0.001, 0.1

Budgeted = Callable[[ZCDP | None], Policy]


@dataclass(frozen=True)
class Setting:
    """One environment, and the families of policies that run in it at every budget.

    Attributes:
        key, title: for cells, and for people.
        environment: of all.
        families: key -> (name, policy at a budget).
        without: key -> policy without privacy: "open", and "open-" with a family that has its own.
        horizon: rounds.
    """

    key: str
    title: str
    environment: ArmsEnvironment | ContextEnvironment
    families: dict[str, tuple[str, Budgeted]]
    without: dict[str, Policy]
    horizon: int

    def open_of(self, family: str) -> str:
        """The key of the policy without privacy that a family is compared with."""
        own = f"open-{family}"
        return own if own in self.without else "open"


def bernoulli(horizon: int) -> Setting:
    """Bernoulli arms; the guarantee holds as published."""

    def policy(budget: ZCDP | None, forget: bool) -> Policy:
        return AdaCUCB(len(MEANS), budget=budget, beta=1.0, forget=forget)

    return Setting(
        "arms",
        "Bernoulli arms",
        Bernoulli(MEANS),
        {
            "published": ("AdaC-UCB", lambda budget: policy(budget, True)),
            "tight": ("AdaC-UCB without forgetting", lambda budget: policy(budget, False)),
        },
        {"open": policy(None, True), "open-tight": policy(None, False)},
        horizon,
    )


def fixed(horizon: int, seed: int) -> Setting:
    """Linear bandits with fixed arms, as published."""
    world = LinearArms.on_sphere(ARMS, DIMENSION, seed=seed)
    options: dict[str, Any] = {**_GOPE, "subgaussian": 1.0, "clip": False}
    return Setting(
        "fixed",
        "Linear, fixed arms",
        world,
        {
            "published": ("AdaC-GOPE", partial(_gope, world, "published", options)),
            "sums": (
                "AdaR-GOPE-Var",
                lambda budget: AdaRGOPEVar(world.features, budget=budget, **options),
            ),
        },
        {"open": _gope(world, "published", options, None)},
        horizon,
    )


def fixed_bounded(horizon: int, seed: int) -> Setting:
    """The same with rewards within their range."""
    world = LinearArms.on_sphere(ARMS, DIMENSION, seed=seed, rewards="bounded")
    return Setting(
        "fixed-bounded",
        "Linear, fixed arms",
        world,
        {
            "published": ("AdaC-GOPE", partial(_gope, world, "published", _GOPE)),
            "tight": ("AdaC-GOPE, tight", partial(_gope, world, "tight", _GOPE)),
        },
        {
            "open": _gope(world, "published", _GOPE, None),
            "open-tight": GOPE(world.features, **_GOPE),
        },
        horizon,
    )


_GOPE: dict[str, Any] = {"failure_probability": DELTA, "reward_range": (-1.0, 1.0)}


def _gope(world: LinearArms, variant: str, options: dict[str, Any], budget: ZCDP | None) -> Policy:
    return AdaCGOPE(world.features, budget=budget, variant=variant, **options)


def contextual(horizon: int, seed: int) -> Setting:
    """Linear contextual bandits, as published."""
    world = GaussianContexts.on_sphere(ARMS, DIMENSION, seed=seed)
    options: dict[str, Any] = {**_OFUL, "subgaussian": 1.0, "clip": False}
    return Setting(
        "contexts",
        "Linear contextual",
        world,
        {"published": ("AdaC-OFUL", lambda budget: _oful(budget, horizon, "published", options))},
        {"open": RSOFUL(ARMS, DIMENSION, **options)},
        horizon,
    )


def contextual_bounded(horizon: int, seed: int) -> Setting:
    """The same with rewards and contexts within their bounds."""
    world = GaussianContexts.on_sphere(ARMS, DIMENSION, seed=seed, rewards="bounded", project=True)
    return Setting(
        "contexts-bounded",
        "Linear contextual",
        world,
        {
            "published": ("AdaC-OFUL", lambda budget: _oful(budget, horizon, "published", _OFUL)),
            "tight": ("AdaC-OFUL, tight", lambda budget: _oful(budget, horizon, "tight", _OFUL)),
        },
        {"open": RSOFUL(ARMS, DIMENSION, **_OFUL)},
        horizon,
    )


_OFUL: dict[str, Any] = {
    "growth": 1.0,
    "ridge": RIDGE,
    "failure_probability": DELTA,
    "reward_range": (-1.0, 1.0),
}


def _oful(budget: ZCDP | None, horizon: int, variant: str, options: dict[str, Any]) -> Policy:
    return AdaCOFUL(ARMS, DIMENSION, budget=budget, horizon=horizon, variant=variant, **options)


def policy_key(family: str, rho: float) -> str:
    """By which cells and results of a policy at a budget are found."""
    return f"{family}/{rho:g}"


def is_void(setting: Setting) -> bool:
    """Whether the guarantee is void, since nothing is clipped."""
    return not all(policy.clip for policy in setting.without.values())
