"""Who meets whom: the worlds of the paper, LinUCB-DGS and its rivals in them, and what LinUCB-DGS
really loses there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ....algorithms import LinUCB, LinUCBDGS, PrivateLinUCB
from ....algorithms.bases import ContextualPolicy
from ....environments import ContextEnvironment, ContextTable, PoolContexts, lastfm
from ....privacy import ZCDP, ApproxDP, Budget, PureDP
from ....simulation.seeding import identity, stream
from ....simulation.simulating import play

EPSILON, DELTA = 2.0, 0.1  # "as default"
LOSS_RUNS = 3  # in which the real loss is computed; the smallest counts

PAPER = "Wang, Zhao & Wang (2022)"
PUBLISHED = "At the published constants"
CODED = "With the noise of the authors' code"
KEPT = "At the privacy that was claimed"
EQUAL = "At equal real privacy"

# What the paper leaves open.  At equal privacy all play nearly greedily: with these budgets, radii
# that cover everything only explore.
_OPTIONS: dict[str, Any] = {"ridge": 0.1, "failure_probability": DELTA}
SCALE = 0.05


@dataclass(frozen=True)
class World:
    """An environment, and what the policies in it have in common.

    Attributes:
        key, title: for cells, and for people.
        environment: of all.
        eigenvalue: lambda_0 of items drawn at random, which is public.
        options: of all policies, without a radius.
        horizon, runs, seed: as ``simulate`` takes them.
    """

    key: str
    title: str
    environment: ContextEnvironment
    eigenvalue: float
    options: dict[str, Any]
    horizon: int
    runs: int
    seed: int

    def linucb(self, **more: Any) -> ContextualPolicy:
        """Without privacy."""
        return LinUCB(self._k, self._d, **self.options, **more)

    def dgs(
        self,
        epsilon: float,
        sensitivity: str = "published",
        horizon: int | None = None,
        **more: Any,
    ) -> LinUCBDGS:
        """LinUCB-DGS."""
        own: dict[str, Any] = {"horizon": horizon or self.horizon, "sensitivity": sensitivity}
        if sensitivity == "published":
            own["smallest_eigenvalue"] = self.eigenvalue
        return LinUCBDGS(
            self._k, self._d, budget=ApproxDP(epsilon, DELTA), **own, **self.options, **more
        )

    def private(
        self, budget: Budget, counter: str, horizon: int | None = None, **more: Any
    ) -> ContextualPolicy:
        """Noise on the sum of x * reward."""
        own: dict[str, Any] = {"horizon": horizon or self.horizon, "counter": counter}
        return PrivateLinUCB(self._k, self._d, budget=budget, **own, **self.options, **more)

    @property
    def _k(self) -> int:
        return self.environment.n_arms

    @property
    def _d(self) -> int:
        return self.environment.dimension


class Loss(NamedTuple):
    """What LinUCB-DGS really loses: the smallest, mean and largest epsilon over some runs, and the
    smallest rho.
    """

    low: float
    mean: float
    high: float
    rho: float

    @property
    def pure(self) -> PureDP:
        """What is not more, in pure DP."""
        return PureDP(rounded_down(self.low))

    @property
    def concentrated(self) -> ZCDP:
        """What is not more, in zCDP."""
        return ZCDP(rounded_down(self.rho))


@dataclass(frozen=True)
class Bout:
    """LinUCB-DGS with one scale of noise against Private LinUCB, in one world.

    Attributes:
        reading: as of the claims.
        dgs: key and name of LinUCB-DGS.
        rivals: key -> name of the others that are private.
        policies: key -> policy of all of them, and of "linucb" without privacy.
        losses: what LinUCB-DGS really loses; None where it does not matter.
    """

    reading: str
    world: World
    dgs: tuple[str, str]
    rivals: dict[str, str]
    policies: dict[str, ContextualPolicy]
    losses: Loss | None = field(default=None)


def pool(rewards: str, horizon: int, runs: int, seed: int) -> World:
    """The paper's synthetic pool; with Gaussian rewards, as there, or with bounded ones, which can
    be protected.
    """
    world = PoolContexts.uniform(seed=seed, rewards=rewards)
    bounded = rewards == "bounded"
    options = {
        **_OPTIONS,
        "reward_range": (-1.0, 1.0),
        **({} if bounded else {"subgaussian": world.std, "clip": False}),
    }
    eigenvalue = LinUCBDGS.estimate_eigenvalue(world.features)
    return World(
        f"pool-{rewards}", "Synthetic pool", world, eigenvalue, options, horizon, runs, seed
    )


def music(folder: Path, horizon: int, runs: int, seed: int) -> World:
    """Last.fm, from the files in a folder."""
    world = lastfm(folder).environment()
    eigenvalue = LinUCBDGS.estimate_eigenvalue(world.features)
    return World("lastfm", "Last.fm", world, eigenvalue, _OPTIONS, horizon, runs, seed)


def published(world: World) -> Bout:
    """At the published constants."""
    policies = {
        "linucb": world.linucb(),
        "dgs": world.dgs(EPSILON),
        "tree": world.private(PureDP(EPSILON), "tree"),
    }
    return Bout(PUBLISHED, world, ("dgs", "LinUCB-DGS"), {"tree": "Private LinUCB"}, policies)


def coded(world: World) -> Bout:
    """With the noise of the authors' code."""
    policies = {
        "linucb": world.linucb(),
        "dgs-coded": world.dgs(EPSILON, "as_coded"),
        "tree": world.private(PureDP(EPSILON), "tree"),
    }
    return Bout(
        CODED, world, ("dgs-coded", "LinUCB-DGS as coded"), {"tree": "Private LinUCB"}, policies
    )


def equal(world: World) -> list[Bout]:
    """Both of these against rivals that may spend what they really lose."""
    bouts = []
    table = tabulated(world.environment, world.horizon, world.seed)
    for key, sensitivity, name in (
        ("dgs", "published", "LinUCB-DGS"),
        ("dgs-coded", "as_coded", "LinUCB-DGS as coded"),
    ):
        policy = world.dgs(EPSILON, sensitivity, radius_scale=SCALE)
        loss = real_loss(policy, table, world.seed)
        private = {
            "laplace": (loss.pure, "tree", "Private LinUCB, tree, Laplace"),
            "gaussian": (loss.concentrated, "tree", "Private LinUCB, tree, Gaussian"),
            "buffered": (loss.concentrated, "buffered", "Private LinUCB, buffered, Gaussian"),
        }
        rivals = {f"{kind}-for-{key}": rival for kind, (_, _, rival) in private.items()}
        policies = {"linucb-greedy": world.linucb(radius_scale=SCALE), f"{key}-greedy": policy}
        policies |= {
            f"{kind}-for-{key}": world.private(budget, counter, radius_scale=SCALE)
            for kind, (budget, counter, _) in private.items()
        }
        bouts.append(Bout(EQUAL, world, (f"{key}-greedy", name), rivals, policies, loss))
    return bouts


def kept(world: World) -> Bout:
    """Against a rival that keeps the privacy that was claimed."""
    budget = ApproxDP(EPSILON, DELTA)
    policies = {
        "linucb-greedy": world.linucb(radius_scale=SCALE),
        "dgs-greedy": world.dgs(EPSILON, radius_scale=SCALE),
        "kept": world.private(budget, "buffered", radius_scale=SCALE),
    }
    return Bout(
        KEPT,
        world,
        ("dgs-greedy", "LinUCB-DGS"),
        {"kept": "Private LinUCB, buffered, Gaussian"},
        policies,
    )


def tabulated(environment: ContextEnvironment, horizon: int, seed: int) -> ContextTable:
    """The contexts of some rounds of an environment, with the rewards that all their arms would
    have brought.
    """
    rng = stream(seed, "environment", identity(f"table of {environment!r}"), 0)
    shape = (horizon, environment.n_arms)
    contexts, rewards, losses = (
        np.zeros((*shape, environment.dimension)),
        np.zeros(shape),
        np.zeros(shape),
    )
    show, answer, state = *environment.kernels, environment.state
    for t, view in enumerate(contexts):
        hidden = show(state, t, view, rng)
        for arm in range(environment.n_arms):
            rewards[t, arm], losses[t, arm] = answer(state, t, view, hidden, arm, rng)
    return ContextTable(contexts, rewards, -losses)


def arms_of(policy: ContextualPolicy, table: ContextTable, seed: int, run: int) -> np.ndarray:
    """Which arm the policy plays in every round of a table, shape (T,)."""
    assert table.horizon is not None
    return play(
        policy, table, table.horizon, run, seed, np.array([table.horizon]), trace=True
    ).tally.trace


def real_loss(policy: LinUCBDGS, table: ContextTable, seed: int) -> Loss:
    """What a policy really loses on the features that it plays in some runs on a table."""
    losses = []
    for run in range(LOSS_RUNS):
        arms = arms_of(policy, table, seed, run)
        losses.append(policy.exact_loss(table.state.contexts[np.arange(len(arms)), arms]))
    epsilons = [loss.epsilon for loss in losses]
    return Loss(
        min(epsilons), float(np.mean(epsilons)), max(epsilons), min(loss.rho for loss in losses)
    )


def rounded_down(value: float) -> float:
    """Three digits, and not more than the value."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.floor(value / unit) * unit:.3g}")
