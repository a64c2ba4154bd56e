"""The panel of the comparison: instances, budgets, and the policies that enter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ... import environments
from ...environments import ArmsEnvironment, Bernoulli, Beta, LinearArms, Piecewise, PoolContexts
from ...environments.base import World
from ...environments.simulated.linear_rewards import unit_vectors
from ...planning.candidates import Candidate, misfit, unsuited
from ...planning.setting import Setting
from ...policies import Default, Policy, default_for, registered
from ...privacy import ZCDP, ApproxDP, Budget, PureDP

STRICT, LOOSE = 0.1414, 1.4142  # pure budgets that imply 0.01-zCDP and 1-zCDP
CENTRAL = (PureDP(STRICT), PureDP(LOOSE), ZCDP(0.01), ZCDP(1.0), ApproxDP(1.0, 1e-6))
SHUFFLED = (PureDP(STRICT), PureDP(LOOSE))
LOCAL = (PureDP(STRICT), PureDP(LOOSE), ZCDP(1.0))
LINEAR = (ZCDP(0.1), ZCDP(1.0))  # with features
MIXED = ApproxDP(1.0, 1e-5)  # what sums of contexts through a shuffler keep
NOT_QUICK = (PureDP(STRICT), ZCDP(0.01), ZCDP(0.1))


class _OfWorld(NamedTuple):
    """An argument that depends on the world."""

    words: str
    value: Callable[[Any], Any]

    def __repr__(self) -> str:
        return self.words


def _prior(world: Any, part: float = 1.0) -> float:
    """d s^2 or a part of it, with s half the width of rewards."""
    lo, hi = world.support
    dimension: int = getattr(world, "dimension", world.n_arms)  # that of axes is the number of arms
    return part * dimension * ((hi - lo) / 2.0) ** 2


AXES = _OfWorld("axes", lambda world: np.eye(world.n_arms))  # features that say nothing of others
PRIOR = _OfWorld("d s^2", _prior)
HALF = _OfWorld("0.5 d s^2", lambda world: _prior(world, 0.5))

# Settings of arguments that change regret at the same budget; the conversion only wraps learners
# that enter by themselves.  Small radii have no theorem and mostly less regret.
_SMALL: Mapping[str, Any] = {"radius_scale": 0.1}
_WITH_RADIUS = (
    *("PrivateLinUCB", "AdaCOFUL", "GLMUCB"),
    *("LinUCBJDP", "WishartLinUCBJDP", "AdaCOFULJDP", "GLMUCBJDP", "WeightedGLMJDP"),
    *("LinUCBSDP", "LinUCBLDP", "LDPGLOC", "WeightedGLMLDP"),
)
_WITH_ALPHA = ("AdaPUCB", "AdaPKLUCB", "AdaPUCBSDP", "AdaPKLUCBSDP")
_LONGER = {"JDP": 200, "SDP": 2000, "LDP": 400}  # batches, four times as long as the default's
_VARIANTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "AdaCUCB": ({}, {"forget": False}),
    "BatchConversion": (),
    "RSLinearIMED": ({}, {"ridge": 1.0}, {"ridge": HALF}, {"ridge": PRIOR}),
    **dict.fromkeys(("MergedLinearIMED", "LinearIMED", "LinearThompson"), ({}, {"ridge": PRIOR})),
    **dict.fromkeys(_WITH_ALPHA, ({}, {"alpha": 1.0})),
    **dict.fromkeys(_WITH_RADIUS, ({}, _SMALL)),
    **dict.fromkeys(("PrivateLinUCB", "AdaCOFUL"), ({}, _SMALL, {**_SMALL, "ridge": PRIOR})),
    **{
        f"{name}{trust}": ({}, {"batch": batch})
        for name in ("LinearIMED", "LinearThompson")
        for trust, batch in _LONGER.items()
    },
    **{
        f"LinUCB{trust}": ({}, _SMALL, {**_SMALL, "batch": batch})
        for trust, batch in _LONGER.items()
    },
}
_TOLD_ALL = {"batch", "link"}  # whoever takes them: as long batches as the default has


# Instances -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Instance:
    """One world."""

    name: str  # in tables
    horizon: int  # rounds of a run
    world: Callable[[int], World]  # makes it for so many rounds
    quick: bool = True  # whether the small version has it: few kinds of worlds compile sooner


def _fixed(name: str, horizon: int, world: World, *, quick: bool = True) -> Instance:
    return Instance(name, horizon, lambda _: world, quick)


TRIAL = _fixed("ACTG 175", 50_000, environments.DoctorBandit())

# Rewards with one law per arm.  The best arm is never the first, so that nobody wins by not moving.
PANEL = (
    _fixed("easy: .8, .9", 100_000, Bernoulli([0.8, 0.9])),
    _fixed("close: .5, nine .45", 1_000_000, Bernoulli(4 * [0.45] + [0.5] + 5 * [0.45])),
    _fixed("rare: .02, .01 x 3, .005", 1_000_000, Bernoulli([0.01, 0.01, 0.02, 0.01, 0.005])),
    TRIAL,
    _fixed("spread: .75 to .25", 100_000, Bernoulli([0.375, 0.625, 0.75, 0.5, 0.25]), quick=False),
    _fixed("pair: .5, .52", 100_000, Bernoulli([0.5, 0.52])),
    _fixed("ties: .6 x 3, .4", 100_000, Bernoulli([0.4, 0.6, 0.6, 0.6]), quick=False),
    _fixed("20 arms: .3, .1", 100_000, Bernoulli(9 * [0.1] + [0.3] + 10 * [0.1]), quick=False),
    _fixed("50 arms: .6, .5", 100_000, Bernoulli(24 * [0.5] + [0.6] + 25 * [0.5]), quick=False),
    _fixed("extreme: .05, .95", 100_000, Bernoulli([0.05, 0.95]), quick=False),
    _fixed("sure: .5, .999", 100_000, Bernoulli([0.5, 0.999]), quick=False),
    _fixed("rare failures: .99, .98, .96", 100_000, Bernoulli([0.98, 0.99, 0.96]), quick=False),
    _fixed("short: .7, .5, .3", 10_000, Bernoulli([0.5, 0.7, 0.3])),
    _fixed(
        "uniform: Beta of 2", 100_000, Beta([0.5, 0.6, 0.5, 0.4], concentration=2.0), quick=False
    ),
    _fixed("narrow: Beta of 50", 100_000, Beta([0.5, 0.55, 0.45], concentration=50.0), quick=False),
    _fixed(
        "skewed: Beta of .5", 100_000, Beta([0.07, 0.1, 0.05, 0.05], concentration=0.5), quick=False
    ),
    _fixed(
        "clipped normal",
        100_000,
        environments.BoundedGaussian([0.7, 0.9, 0.5, 0.1], std=0.3),
        quick=False,
    ),
    # so long that the two can just be told apart
    _fixed("pair, 30,000 rounds", 30_000, Bernoulli([0.5, 0.52]), quick=False),
    *(
        _fixed(f"{len(means)} arms, {horizon:,} rounds", horizon, Bernoulli(means))
        for means in ([0.5, 0.6], [0.3, 0.4, 0.6, 0.5])
        for horizon in (200, 500, 2000)
    ),
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


def _correlated(seed: int) -> PoolContexts:
    """20 of 2,000 feature vectors of length 1 in every round.  Before they are divided by their
    length, features i and j have the correlation .9**|i - j|.
    """
    rng, places = np.random.default_rng(seed), np.arange(20)
    correlations = 0.9 ** np.abs(np.subtract.outer(places, places))
    features = unit_vectors(2000, 20, rng) @ np.linalg.cholesky(correlations).T
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    (theta,) = unit_vectors(1, 20, rng)
    return PoolContexts(features, theta, per_round=20, rewards="bounded")


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
    _fixed("sphere, 20 arms, d 5", 30_000, _linear(20, 5, seed=1), quick=False),
    _fixed("sphere, 5 arms, d 10", 30_000, _linear(5, 10, seed=2), quick=False),
    _fixed("uneven, 20 arms, d 5", 30_000, _linear(20, 5, decay=2.0, seed=3), quick=False),
    _fixed("correlated, d 20", 30_000, _correlated(4)),
    _fixed("correlated, d 20, again", 30_000, _correlated(5), quick=False),
)
FEW = (
    _fixed("20 fixed, d 4", 30_000, _shown(_TWENTY)),
    _fixed("8 axes", 30_000, _shown(_EIGHT_AXES)),
    _fixed("2 axes", 30_000, _shown(_axes(0.3, 0.5)), quick=False),
    # So close that noise has long become small when the arms can be told apart.
    _fixed("2 axes, close", 300_000, _shown(_axes(0.0, 0.05)), quick=False),
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


@dataclass(frozen=True)
class Entrant(Candidate):
    """A policy with its arguments, for any world and budget."""

    told: Mapping[str, Any] = field(default_factory=dict)  # what all are told; not in the title

    def policy(self, world: World, budget: Budget | None, horizon: int, **options: Any) -> Policy:
        """Make the policy, with the known facts of the world."""
        own = {
            name: one.value(world) if isinstance(one, _OfWorld) else one
            for name, one in self.arguments.items()
        }
        who = Candidate(self.cls, {**self.told, **own})
        options |= {"reward_range": world.support}
        return who.build(Setting.of(world), budget, horizon, **options)


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
        means are linear.  Policies for arms with fixed features take unit vectors where there are
        none.
        """
        setting = self._described
        return [
            Entrant(cls, given, self._told(cls))
            for name, cls in registered().items()
            if cls.card.trust_model == setting.trust
            and not misfit(cls, setting, self.budget)
            and not (self.default.rewards == "law" and unsuited(cls, setting))
            for given in self._variants(name, cls)
        ]

    @property
    def _described(self) -> Setting:
        world = self.instances[0].world(self.instances[0].horizon)
        known: dict[str, Any] = {"trust": self.default.trust}
        if self.default.contexts == "private":
            known["protects"] = "contexts and rewards"
        if self._on_axes:
            known["features"] = np.eye(world.n_arms)
        return Setting.of(world, **known)

    @property
    def _on_axes(self) -> bool:
        """Whether policies for arms with fixed features enter among those for arms without."""
        kind = (self.default.contexts, self.default.rewards, self.default.trust)
        return kind == ("none", "law", "central")

    def _variants(self, name: str, cls: Any) -> list[Mapping[str, Any]]:
        """The arguments with which a policy enters."""
        taken = inspect.signature(cls).parameters
        found = [*_VARIANTS.get(name, ({},))]
        may_know = "horizon" in taken and taken["horizon"].default is None
        if may_know and "counter" not in taken:  # which needs it for less noise, not to decide
            found += [{**one, "horizon": None} for one in found[:1]]
        axes: Mapping[str, Any] = {"arms": AXES} if self._on_axes and "arms" in taken else {}
        return [{**one, **axes} for one in found]

    def _told(self, cls: Any) -> dict[str, Any]:
        given = {**self.default.arguments, "link": "identity"}
        told = {name: given[name] for name in _TOLD_ALL & given.keys()}
        taken = inspect.signature(cls).parameters
        return {name: value for name, value in told.items() if name in taken}


def setting_of(default: Default, family: str = "") -> str:
    """A setting in words."""
    return f"{family} {default.setting}, {default.trust} trust".lstrip()


def champion_of(default: Default) -> Entrant:
    """The default as one that enters."""
    told = {name: one for name, one in default.arguments.items() if name in _TOLD_ALL}
    own = {name: one for name, one in default.arguments.items() if name not in told}
    return Entrant(default.policy_class, own, told)


def contests(quick: bool) -> list[Contest]:
    """All of them; the small version has the loose budgets only, and fewer instances."""
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
        Contest(default, budget, [one for one in instances if one.quick or not quick], family)
        for default, budgets, groups in settings
        for family, instances in groups
        for budget in budgets
        if not (quick and budget in NOT_QUICK)
    ]
