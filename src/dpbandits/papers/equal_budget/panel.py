"""The panel of the comparison: instances, budgets, and the policies that enter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import environments
from ...environments import ArmsEnvironment, Bernoulli, Beta, LinearArms, Piecewise, PoolContexts
from ...environments.base import World
from ...planning.candidates import Candidate, misfit, unsuited
from ...planning.setting import Setting
from ...policies import Default, Policy, default_for, registered
from ...policies.problem import written
from ...privacy import ZCDP, ApproxDP, Budget, PureDP

STRICT, LOOSE = 0.1414, 1.4142  # pure budgets that imply 0.01-zCDP and 1-zCDP
CENTRAL = (PureDP(STRICT), PureDP(LOOSE), ZCDP(0.01), ZCDP(1.0), ApproxDP(1.0, 1e-6))
SHUFFLED = (PureDP(STRICT), PureDP(LOOSE))
LOCAL = (PureDP(STRICT), PureDP(LOOSE), ZCDP(1.0))
LINEAR = (ZCDP(0.1), ZCDP(1.0))  # with features
MIXED = ApproxDP(1.0, 1e-5)  # what sums of contexts through a shuffler keep
NOT_QUICK = (PureDP(STRICT), ZCDP(0.01), ZCDP(0.1))

# Settings of arguments that change regret at the same budget; the conversion only wraps learners
# that enter by themselves.  Small radii have no theorem and mostly less regret.
_WITH_RADIUS = (
    *("PrivateLinUCB", "AdaCOFUL", "GLMUCB"),
    *("LinUCBJDP", "WishartLinUCBJDP", "AdaCOFULJDP", "GLMUCBJDP", "WeightedGLMJDP"),
    *("LinUCBSDP", "LinUCBLDP", "LDPGLOC", "WeightedGLMLDP"),
)
_WITH_ALPHA = ("AdaPUCB", "AdaPKLUCB", "AdaPUCBSDP", "AdaPKLUCBSDP")
_VARIANTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "AdaCUCB": ({}, {"forget": False}),
    "BatchConversion": (),
    **dict.fromkeys(_WITH_ALPHA, ({}, {"alpha": 1.0})),
    **dict.fromkeys(_WITH_RADIUS, ({}, {"radius_scale": 0.1})),
}
_TOLD_ALL = {"batch", "link"}  # whoever takes them: as long batches as the default has


# Instances -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Instance:
    """One world."""

    name: str  # in tables
    horizon: int  # rounds of a run
    world: Callable[[int], World]  # makes it for so many rounds


def _fixed(name: str, horizon: int, world: World) -> Instance:
    return Instance(name, horizon, lambda _: world)


TRIAL = _fixed("ACTG 175", 50_000, environments.DoctorBandit())

# Rewards with one law per arm.  The best arm is never the first, so that nobody wins by not moving.
PANEL = (
    _fixed("easy: .8, .9", 100_000, Bernoulli([0.8, 0.9])),
    _fixed("close: .5, nine .45", 1_000_000, Bernoulli(4 * [0.45] + [0.5] + 5 * [0.45])),
    _fixed("rare: .02, .01 x 3, .005", 1_000_000, Bernoulli([0.01, 0.01, 0.02, 0.01, 0.005])),
    TRIAL,
    _fixed("spread: .75 to .25", 100_000, Bernoulli([0.375, 0.625, 0.75, 0.5, 0.25])),
    _fixed("pair: .5, .52", 100_000, Bernoulli([0.5, 0.52])),
    _fixed("ties: .6 x 3, .4", 100_000, Bernoulli([0.4, 0.6, 0.6, 0.6])),
    _fixed("20 arms: .3, .1", 100_000, Bernoulli(9 * [0.1] + [0.3] + 10 * [0.1])),
    _fixed("50 arms: .6, .5", 100_000, Bernoulli(24 * [0.5] + [0.6] + 25 * [0.5])),
    _fixed("extreme: .05, .95", 100_000, Bernoulli([0.05, 0.95])),
    _fixed("sure: .5, .999", 100_000, Bernoulli([0.5, 0.999])),
    _fixed("rare failures: .99, .98, .96", 100_000, Bernoulli([0.98, 0.99, 0.96])),
    _fixed("short: .7, .5, .3", 10_000, Bernoulli([0.5, 0.7, 0.3])),
    _fixed("uniform: Beta of 2", 100_000, Beta([0.5, 0.6, 0.5, 0.4], concentration=2.0)),
    _fixed("narrow: Beta of 50", 100_000, Beta([0.5, 0.55, 0.45], concentration=50.0)),
    _fixed("skewed: Beta of .5", 100_000, Beta([0.07, 0.1, 0.05, 0.05], concentration=0.5)),
    _fixed("clipped normal", 100_000, environments.BoundedGaussian([0.7, 0.9, 0.5, 0.1], std=0.3)),
)


def _swinging(n_arms: int) -> Callable[[int], ArmsEnvironment]:
    """The last arm is better by .1 in every round.  The level of all arms jumps between low and
    high after times that double.  So means of arms mislead a policy that played them at different
    times (after Zimmert & Seldin 2021).
    """

    def world(horizon: int) -> ArmsEnvironment:
        starts = [0, *(10 * 2**i for i in range(40) if 10 * 2**i < horizon)]
        rows = np.zeros((len(starts), n_arms))
        rows[1::2] = 0.9
        rows[:, -1] += 0.1
        return Piecewise(rows, starts, horizon=horizon)

    return world


def _late(horizon: int) -> ArmsEnvironment:
    """Nothing to learn at first; after a fifth of the rounds one of three arms becomes better."""
    return Piecewise([[0.4, 0.4, 0.4], [0.4, 0.7, 0.4]], [0, horizon // 5], horizon=horizon)


def _falling(horizon: int) -> ArmsEnvironment:
    """All arms lose worth, in eight steps, and the second keeps ahead by less and less."""
    level = np.linspace(0.9, 0.1, 8)[:, np.newaxis]
    rows = level * np.array([0.8, 1.0, 0.8, 0.6])
    return Piecewise(rows, np.arange(8) * (horizon // 8), horizon=horizon)


def _turning(horizon: int) -> ArmsEnvironment:
    """The arm that was best for a quarter of the rounds is not so any more."""
    switches = [horizon // 4]
    return environments.SwitchingBest(3, best=[0, 1], switches=switches, horizon=horizon, gap=0.3)


def _hopeless(horizon: int) -> ArmsEnvironment:
    """The arm that never paid begins to pay always after three tenths of the rounds."""
    return environments.LateTurn(horizon=horizon, turn=3 * horizon // 10)


CHANGING = (
    Instance("swinging, 2 arms", 100_000, _swinging(2)),
    Instance("swinging, 8 arms", 100_000, _swinging(8)),
    Instance("late", 100_000, _late),
    Instance("falling", 100_000, _falling),
    Instance("turning", 100_000, _turning),
    Instance("hopeless at first", 100_000, _hopeless),
)


def _linear(*args: Any, **options: Any) -> World:
    """Fresh contexts for every arm in every round, with rewards 1 or -1 that are linear in them."""
    return environments.GLMContexts.random(*args, link="identity", **options)


def _shown(world: LinearArms) -> PoolContexts:
    """Arms with fixed features, which are shown in every round, in random order."""
    return PoolContexts(world.features, world.parameter, per_round=world.n_arms, rewards="bounded")


def _axes(*means: float) -> LinearArms:
    """Features that say nothing of other arms."""
    return LinearArms(np.eye(len(means)), means, rewards="bounded")


_EIGHT_AXES = _axes(0.3, 0.3, 0.5, 0.2, 0.1, 0.0, 0.3, -0.1)
_TWENTY = LinearArms.on_sphere(20, 4, seed=1, rewards="bounded")

# Contexts that show all directions by themselves, or do not.
DIVERSE = (
    _fixed("sphere, 20 arms, d 5", 30_000, _linear(20, 5, seed=1)),
    _fixed("sphere, 5 arms, d 10", 30_000, _linear(5, 10, seed=2)),
    _fixed("uneven, 20 arms, d 5", 30_000, _linear(20, 5, decay=2.0, seed=3)),
)
FEW = (
    _fixed("20 fixed, d 4", 30_000, _shown(_TWENTY)),
    _fixed("8 axes", 30_000, _shown(_EIGHT_AXES)),
    _fixed("2 axes", 30_000, _shown(_axes(0.3, 0.5))),
    # So close that noise has long become small when the arms can be told apart.
    _fixed("2 axes, close", 300_000, _shown(_axes(0.0, 0.05))),
)
FEATURES = (
    _fixed("200 arms, d 3", 30_000, LinearArms.on_sphere(200, 3, seed=2, rewards="bounded")),
    _fixed("20 arms, d 4", 30_000, _TWENTY),
    _fixed("50 arms, d 8", 30_000, LinearArms.on_sphere(50, 8, seed=3, rewards="bounded")),
    _fixed("8 arms on axes", 30_000, _EIGHT_AXES),
    _fixed(
        "an arm that informs",
        30_000,
        LinearArms([[0.0, 1.0], [1.0, 0.0], [0.9, 0.2]], [0.9, 0.0], rewards="bounded"),
    ),
)


# Policies --------------------------------------------------------------------------------------


class Entrant(Candidate):
    """A policy with its arguments, for any world and budget."""

    @property
    def title(self) -> str:
        """The title in tables, without arguments common to all."""
        own = {name: value for name, value in self.arguments.items() if name not in _TOLD_ALL}
        return written(self.cls.__name__, own)

    def policy(self, world: World, budget: Budget | None, horizon: int, **options: Any) -> Policy:
        """Make the policy, with the known facts of the world."""
        options |= {"reward_range": world.support}
        return self.build(Setting.of(world), budget, horizon, **options)


@dataclass(frozen=True)
class Contest:
    """Those of one budget and trust, on the same instances, maybe a family of their setting's."""

    default: Default
    budget: Budget
    instances: Sequence[Instance]
    family: str = ""

    @property
    def setting(self) -> str:
        """The decision problem, with its trust model."""
        return setting_of(self.default, self.family)

    @property
    def title(self) -> str:
        """Setting and budget."""
        return f"{self.setting}: {self.budget}"

    @property
    def champion(self) -> Entrant:
        """The default of the setting."""
        return champion_of(self.default)

    @property
    def entrants(self) -> list[Entrant]:
        """Every registered policy that serves setting, budget and trust, in all its variants.

        Learners for rewards without a law are left out where rewards have one, because they pay for
        needless protection.  All get the sizes of batches that the default gets, and the fact that
        means are linear.
        """
        setting = self._described
        return [
            Entrant(cls, {**self._told(cls), **given})
            for name, cls in registered().items()
            if cls.card.trust_model == setting.trust
            and not misfit(cls, setting, self.budget)
            and not (self.default.rewards == "law" and unsuited(cls, setting))
            for given in _VARIANTS.get(name, ({},))
        ]

    @property
    def _described(self) -> Setting:
        world = self.instances[0].world(self.instances[0].horizon)
        known: dict[str, Any] = {"trust": self.default.trust}
        if self.default.contexts == "private":
            known["protects"] = "contexts and rewards"
        return Setting.of(world, **known)

    def _told(self, cls: type[Policy]) -> dict[str, Any]:
        given = {**self.default.arguments, "link": "identity"}
        told = {name: given[name] for name in _TOLD_ALL & given.keys()}
        taken = inspect.signature(cls).parameters
        return {name: value for name, value in told.items() if name in taken}


def setting_of(default: Default, family: str = "") -> str:
    """A setting in words."""
    return f"{family} {default.setting}, {default.trust} trust".lstrip()


def champion_of(default: Default) -> Entrant:
    """The default as one that enters."""
    return Entrant(default.policy_class, default.arguments)


def contests(quick: bool) -> list[Contest]:
    """All of them; the small version has the loose budgets only."""
    hidden: dict[str, Any] = {"features": 1, "protects": "contexts and rewards"}
    joint, mixed, alone = (
        default_for(trust=trust, **hidden) for trust in ("central", "shuffle", "local")
    )
    families = (("diverse", DIVERSE), ("few", FEW))
    settings: list[tuple[Default, Sequence[Budget], Sequence[tuple[str, Sequence[Instance]]]]] = [
        (default_for(), CENTRAL, [("", PANEL)]),
        (default_for(drift="any"), CENTRAL, [("", CHANGING)]),
        (default_for(trust="shuffle"), SHUFFLED, [("", PANEL)]),
        (default_for(trust="local"), LOCAL, [("", PANEL)]),
        (default_for(features=np.eye(2)), LINEAR, [("", FEATURES)]),
        (default_for(features=1), LINEAR, families),
        (joint, (*LINEAR, MIXED), families),
        (mixed, (MIXED,), families),
        (alone, LINEAR[1:], families),
    ]
    return [
        Contest(default, budget, instances, family)
        for default, budgets, groups in settings
        for family, instances in groups
        for budget in budgets
        if not (quick and budget in NOT_QUICK)
    ]
