"""The worlds of the paper, LinUCB-DGS and its rivals in them, and its real privacy loss there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...algorithms import LinUCB, PrivateLinUCB
from ...algorithms.bases.contextual import ContextualPolicy
from ...environments import ContextEnvironment, ContextTable, PoolContexts, lastfm
from ...kernel import Generator, Matrix, bind, entry, unbound
from ...privacy import ZCDP, ApproxDP, Budget, PureDP
from ...simulation.seeding import identity, stream
from ...simulation.simulating import play
from ..plans import instances
from .policy import LinUCBDGS

EPSILON, DELTA = 2.0, 0.1  # "as default"
LOSS_RUNS = 8  # in which the real loss is computed; the smallest counts

PAPER = "Wang, Zhao & Wang (2022)"
PUBLISHED = "At the published constants"
CODED = "With the noise of the authors' code"
CLAIMED = "At the privacy that was claimed"
EQUAL = "At equal real privacy"


class Scale(NamedTuple):
    """The noise scale of LinUCB-DGS."""

    key: str
    name: str
    sensitivity: str


SCALES = {
    PUBLISHED: Scale("dgs", "LinUCB-DGS", "published"),
    CODED: Scale("dgs-coded", "LinUCB-DGS as coded", "as_coded"),
}

# What the paper leaves open.  At equal privacy all play nearly greedily: with these budgets, radii
# that cover everything only explore.
_OPTIONS: dict[str, Any] = {"ridge": 0.1, "failure_probability": DELTA}
SCALE = 0.05


@dataclass(frozen=True)
class World:
    """An environment, one of some instances, and the common arguments of the policies in it."""

    key: str  # of cells; that of all instances
    title: str  # for people; likewise
    environment: ContextEnvironment
    eigenvalue: float  # lambda_0 of items drawn at random, which is public
    options: dict[str, Any]  # of all policies, without a radius
    horizon: int
    runs: int
    seed: int

    def linucb(self, **more: Any) -> ContextualPolicy:
        return LinUCB(**self._shape, **self.options, **more)

    def dgs(
        self,
        epsilon: float,
        sensitivity: str = "published",
        horizon: int | None = None,
        **more: Any,
    ) -> LinUCBDGS:
        own: dict[str, Any] = {"horizon": horizon or self.horizon, "sensitivity": sensitivity}
        if sensitivity == "published":
            own["smallest_eigenvalue"] = self.eigenvalue
        budget = ApproxDP(epsilon, DELTA)
        return LinUCBDGS(**self._shape, budget=budget, **own, **self.options, **more)

    def private(
        self, budget: Budget, counter: str, horizon: int | None = None, **more: Any
    ) -> ContextualPolicy:
        """Noise on the sum of x * reward."""
        own: dict[str, Any] = {"horizon": horizon or self.horizon, "counter": counter}
        return PrivateLinUCB(**self._shape, budget=budget, **own, **self.options, **more)

    @property
    def _shape(self) -> dict[str, Any]:
        return {"n_arms": self.environment.n_arms, "dimension": self.environment.dimension}


def cited(reading: str, where: str) -> str:
    """The source of a claim."""
    return f"{'' if reading == PUBLISHED else 'after '}{PAPER}, {where}"


class Loss(NamedTuple):
    """The real privacy loss of LinUCB-DGS, in each of some runs."""

    epsilons: tuple[float, ...]
    rhos: tuple[float, ...]

    @property
    def pure(self) -> PureDP:
        """The least real privacy loss of all runs, in pure DP."""
        return PureDP(rounded_down(min(self.epsilons)))

    @property
    def concentrated(self) -> ZCDP:
        """The least real privacy loss of all runs, in zCDP."""
        return ZCDP(rounded_down(min(self.rhos)))


@dataclass(frozen=True)
class Comparison:
    """LinUCB-DGS with one scale of noise against Private LinUCB, in one world."""

    reading: str  # as of the claims
    world: World
    dgs: tuple[str, str]  # key and name of LinUCB-DGS
    rivals: dict[str, str]  # key -> name of the others that are private
    policies: dict[str, ContextualPolicy]  # by key: all of them, and "linucb" without privacy
    loss: Loss | None = None  # what LinUCB-DGS really loses, where it matters


def pools(rewards: str, horizon: int, runs: int, seed: int) -> list[World]:
    """Instances of the paper's pool, with Gaussian rewards as there or protectable bounded ones."""
    key, title, found = f"pool-{rewards}", "Synthetic pool", []
    for one, each in instances(seed, runs):
        world = PoolContexts.uniform(seed=one, rewards=rewards)
        options = {**_OPTIONS, "reward_range": (-1.0, 1.0)}
        if rewards != "bounded":
            options |= {"subgaussian": world.std, "clip": False}
        eigenvalue = _eigenvalue(world.features)
        found.append(World(key, title, world, eigenvalue, options, horizon, each, one))
    return found


def music(folder: Path, horizon: int, runs: int, seed: int) -> World:
    """Last.fm, from the files in a folder."""
    world = lastfm(folder).environment()
    eigenvalue = _eigenvalue(world.features)
    return World("lastfm", "Last.fm", world, eigenvalue, _OPTIONS, horizon, runs, seed)


def _eigenvalue(features: np.ndarray) -> float:
    """The eigenvalue to six digits, in which all machines agree, because it is part of policies'
    keys.
    """
    return float(f"{LinUCBDGS.estimate_eigenvalue(features):.6g}")


def as_read(reading: str, world: World) -> Comparison:
    """The comparison with one of the ``SCALES`` of noise, at the requested budget."""
    key, name, sensitivity = SCALES[reading]
    policies = {
        "linucb": world.linucb(),
        key: world.dgs(EPSILON, sensitivity),
        "tree": world.private(PureDP(EPSILON), "tree"),
    }
    return Comparison(reading, world, (key, name), {"tree": "Private LinUCB"}, policies)


def at_equal_privacy(worlds: Sequence[World]) -> list[list[Comparison]]:
    """Both of these against rivals with a budget equal to their real privacy loss, in all
    instances.
    """
    found = []
    for scale in SCALES.values():
        loss = real_loss(worlds, scale.sensitivity)
        found.append([_at_equal_privacy(world, scale, loss) for world in worlds])
    return found


def _at_equal_privacy(world: World, scale: Scale, loss: Loss) -> Comparison:
    key, name, sensitivity = scale
    private = {
        "laplace": (loss.pure, "tree", "Private LinUCB, tree, Laplace"),
        "gaussian": (loss.concentrated, "tree", "Private LinUCB, tree, Gaussian"),
        "buffered": (loss.concentrated, "buffered", "Private LinUCB, buffered, Gaussian"),
    }
    policies = {
        "linucb-greedy": world.linucb(radius_scale=SCALE),
        f"{key}-greedy": world.dgs(EPSILON, sensitivity, radius_scale=SCALE),
    }
    policies |= {
        f"{kind}-for-{key}": world.private(budget, counter, radius_scale=SCALE)
        for kind, (budget, counter, _) in private.items()
    }
    rivals = {f"{kind}-for-{key}": rival for kind, (_, _, rival) in private.items()}
    return Comparison(EQUAL, world, (f"{key}-greedy", name), rivals, policies, loss)


def at_claimed_privacy(world: World) -> Comparison:
    """Against a rival that keeps the privacy that was claimed."""
    budget = ApproxDP(EPSILON, DELTA)
    policies = {
        "linucb-greedy": world.linucb(radius_scale=SCALE),
        "dgs-greedy": world.dgs(EPSILON, radius_scale=SCALE),
        "claimed": world.private(budget, "buffered", radius_scale=SCALE),
    }
    rivals = {"claimed": "Private LinUCB, buffered, Gaussian"}
    return Comparison(CLAIMED, world, ("dgs-greedy", "LinUCB-DGS"), rivals, policies)


# Tables of rounds ----------------------------------------------------------------------------

show = answer = unbound


@entry
def _fill_table(
    state: Any, rng: Generator, contexts: np.ndarray, rewards: Matrix, losses: Matrix
) -> None:
    for t in range(contexts.shape[0]):
        hidden = show(state, t, contexts[t], rng)
        for arm in range(contexts.shape[1]):
            rewards[t, arm], losses[t, arm] = answer(state, t, contexts[t], hidden, arm, rng)


def tabulated(environment: ContextEnvironment, horizon: int, seed: int) -> ContextTable:
    """The contexts of some rounds of an environment, with the rewards of all arms."""
    rng = stream(seed, "environment", identity(f"table of {environment.stream_key}"), 0)
    shape = (horizon, environment.n_arms)
    contexts = np.zeros((*shape, environment.dimension))
    rewards, losses = np.zeros(shape), np.zeros(shape)
    bind(_fill_table, **environment.kernels._asdict())(
        environment.state, rng, contexts, rewards, losses
    )
    table = ContextTable(contexts, rewards, -losses)
    table.origin = f"rounds of {environment!r}, seed={seed}"
    return table


def arms_of(policy: ContextualPolicy, table: ContextTable, seed: int, run: int) -> np.ndarray:
    """The arm that the policy plays in every round of a table, shape (T,)."""
    assert table.horizon is not None
    record = np.array([table.horizon])
    return play(policy, table, table.horizon, run, seed, record, trace=True).tally.trace


def draws(worlds: Sequence[World], count: int) -> list[tuple[World, int]]:
    """Worlds, each with the seed of a table: as many instances as there are, in turn."""
    seeds = [seed for seed, _ in instances(worlds[0].seed, count)]
    return list(zip(cycle(worlds), seeds, strict=False))


def real_loss(worlds: Sequence[World], sensitivity: str) -> Loss:
    """The real privacy loss of LinUCB-DGS on its played features, in each run on other rounds."""
    losses = []
    for world, seed in draws(worlds, LOSS_RUNS):
        policy = world.dgs(EPSILON, sensitivity, radius_scale=SCALE)
        table = tabulated(world.environment, world.horizon, seed)
        arms = arms_of(policy, table, seed, 0)
        losses.append(policy.exact_loss(table.state.contexts[np.arange(len(arms)), arms]))
    return Loss(tuple(loss.epsilon for loss in losses), tuple(loss.rho for loss in losses))


def rounded_down(value: float) -> float:
    """Three digits, and not more than the value."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.floor(value / unit) * unit:.3g}")
