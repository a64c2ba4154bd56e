"""The experiments of Wang, Zhao & Wang (2022), Dynamic Global Sensitivity for Differentially Private Contextual Bandits: Figures 1 and 2.

LinUCB-DGS stands beside LinUCB and Private LinUCB three times: at the published constants; with the noise of the authors' code, which has
another scale; and at equal real privacy, where Private LinUCB may spend what LinUCB-DGS really loses on the features that it meets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...algorithms import LinUCB, LinUCBDGS, PrivateLinUCB
from ...environments import ContextEnvironment, ContextTable, PoolContexts, lastfm
from ...policies import ContextualPolicy
from ...privacy import ZCDP, ApproxDP, Budget, PureDP
from ...report.claims import Claim, Expectation
from ...report.exhibits import Exhibit, Panel, Series
from ...report.labels import number
from ...report.scenes import Estimate
from ...simulation.running import play
from ...simulation.seeding import identity, stream
from ..cells import Cell, Results
from ..claims import curve, largest, mean, measured, ratio, ratios, steps
from ..plans import Findings, Plan, Size, recorded, spoken

HORIZON, RUNS = 8192, 100
MUSIC_HORIZON, MUSIC_RUNS = 5000, 20
QUICK_HORIZON, QUICK_RUNS = 1500, 10
QUICK_MUSIC_HORIZON, QUICK_MUSIC_RUNS = 1000, 5

EPSILON, DELTA = 2.0, 0.1  # "as default"
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
QUICK_EPSILONS = (0.5, 2.0, 5.0)
LOSS_RUNS = 3  # in which the real loss is computed; the smallest counts
NOISE_SEEDS = 5
CHANGE_HORIZON = 500  # of the synthetic part of Figure 2
STEP = 0.5  # by which a reward changes there

SIMILAR = 0.1  # of the rounds in which LinUCB plays another arm
RISE = 0.01

PAPER = "Wang, Zhao & Wang (2022)"
PUBLISHED = "At the published constants"
CODED = "With the noise of the authors' code"
KEPT = "At the privacy that was claimed"
EQUAL = "At equal real privacy"

# What the paper leaves open.  At equal privacy all play nearly greedily: with these budgets, radii that cover everything only explore.
_OPTIONS: dict[str, Any] = {"ridge": 0.1, "failure_probability": DELTA}
_SCALE = 0.05


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

    def dgs(self, epsilon: float, sensitivity: str = "published", horizon: int | None = None, **more: Any) -> LinUCBDGS:
        """LinUCB-DGS."""
        own: dict[str, Any] = {"horizon": horizon or self.horizon, "sensitivity": sensitivity}
        if sensitivity == "published":
            own["smallest_eigenvalue"] = self.eigenvalue
        return LinUCBDGS(self._k, self._d, budget=ApproxDP(epsilon, DELTA), **own, **self.options, **more)

    def private(self, budget: Budget, counter: str, horizon: int | None = None, **more: Any) -> ContextualPolicy:
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
    """What LinUCB-DGS really loses: the smallest, mean and largest epsilon over some runs, and the smallest rho."""

    low: float
    mean: float
    high: float
    rho: float

    @property
    def pure(self) -> PureDP:
        """What is not more, in pure DP."""
        return PureDP(_rounded_down(self.low))

    @property
    def concentrated(self) -> ZCDP:
        """What is not more, in zCDP."""
        return ZCDP(_rounded_down(self.rho))


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


def plan(size: Size) -> Plan:
    """All of Figures 1 and 2, at the given size; the parts on Last.fm where its data are."""
    horizon = size.horizon or (QUICK_HORIZON if size.quick else HORIZON)
    runs = size.runs or (QUICK_RUNS if size.quick else RUNS)
    epsilons = QUICK_EPSILONS if size.quick else EPSILONS
    pool, bounded = (_pool(rewards, horizon, runs, size.seed) for rewards in ("gaussian", "bounded"))
    worlds = [pool, bounded]
    bouts = [_published(pool), _coded(pool), *_equal(bounded), _kept(bounded)]
    if size.data is not None:
        music = _music(size)
        worlds.append(music)
        bouts += [_published(music), _coded(music), *_equal(music), _kept(music)]
    cells = [cell for bout in bouts for cell in _cells(bout)] + _against_epsilon(pool, epsilons)
    notes = [
        "The privacy theorem of LinUCB-DGS is false: one reward moves all later increments of the estimate, not log2(T) of them. Its "
        "guarantee is void, and what it at most loses is computed for the features that it played, over 3 runs: exact for features "
        "that were fixed beforehand, an upper bound where the policy chose them. Budgets of rivals are made from that number: pure DP from "
        "its epsilon, zCDP from its rho.",
        f"At equal real privacy Private LinUCB may spend that loss, not the ε = {EPSILON:g} that was claimed: in pure DP with Laplace "
        f"noise, in zCDP with Gaussian noise. Rewards there are bounded, and all play with {_SCALE:g} times their radius.",
        "Constants that the paper leaves open: λ = 0.1, failure probability 0.1, radii as in its eq. (4) and in dpbandits.",
    ]
    if size.data is None:
        notes.append("The parts on Last.fm, Figures 1 (b) and 2 (c), were left out: --data names the folder with its files.")
    return Plan(
        title="Dynamic global sensitivity: the experiments, run again",
        description=f"Figures 1 and 2 of {PAPER}, their claims measured at the published constants, with the noise of the authors' code, "
        "and at the privacy that is really there.",
        cells=list({cell.key: cell for cell in reversed(cells)}.values())[::-1],
        assess=partial(_assess, bouts, epsilons),
        notes=notes,
    )


# Worlds and policies ------------------------------------------------------------------------------------------------------


def _pool(rewards: str, horizon: int, runs: int, seed: int) -> World:
    world = PoolContexts.uniform(seed=seed, rewards=rewards)
    bounded = rewards == "bounded"
    options = {**_OPTIONS, "reward_range": (-1.0, 1.0), **({} if bounded else {"subgaussian": world.std, "clip": False})}
    eigenvalue = LinUCBDGS.estimate_eigenvalue(world.features)
    return World(f"pool-{rewards}", "Synthetic pool", world, eigenvalue, options, horizon, runs, seed)


def _music(size: Size) -> World:
    assert size.data is not None
    world = lastfm(size.data).environment()
    horizon = size.horizon or (QUICK_MUSIC_HORIZON if size.quick else MUSIC_HORIZON)
    runs = size.runs or (QUICK_MUSIC_RUNS if size.quick else MUSIC_RUNS)
    eigenvalue = LinUCBDGS.estimate_eigenvalue(world.features)
    return World("lastfm", "Last.fm", world, eigenvalue, _OPTIONS, horizon, runs, size.seed)


def _published(world: World) -> Bout:
    policies = {"linucb": world.linucb(), "dgs": world.dgs(EPSILON), "tree": world.private(PureDP(EPSILON), "tree")}
    return Bout(PUBLISHED, world, ("dgs", "LinUCB-DGS"), {"tree": "Private LinUCB"}, policies)


def _coded(world: World) -> Bout:
    policies = {
        "linucb": world.linucb(),
        "dgs-coded": world.dgs(EPSILON, "as_coded"),
        "tree": world.private(PureDP(EPSILON), "tree"),
    }
    return Bout(CODED, world, ("dgs-coded", "LinUCB-DGS as coded"), {"tree": "Private LinUCB"}, policies)


def _equal(world: World) -> list[Bout]:
    bouts = []
    table = tabulated(world.environment, world.horizon, world.seed)
    for key, sensitivity, name in (("dgs", "published", "LinUCB-DGS"), ("dgs-coded", "as_coded", "LinUCB-DGS as coded")):
        policy = world.dgs(EPSILON, sensitivity, radius_scale=_SCALE)
        loss = real_loss(policy, table, world.seed)
        private = {
            "laplace": (loss.pure, "tree", "Private LinUCB, tree, Laplace"),
            "gaussian": (loss.concentrated, "tree", "Private LinUCB, tree, Gaussian"),
            "buffered": (loss.concentrated, "buffered", "Private LinUCB, buffered, Gaussian"),
        }
        rivals = {f"{kind}-for-{key}": rival for kind, (_, _, rival) in private.items()}
        policies = {"linucb-greedy": world.linucb(radius_scale=_SCALE), f"{key}-greedy": policy}
        policies |= {
            f"{kind}-for-{key}": world.private(budget, counter, radius_scale=_SCALE)
            for kind, (budget, counter, _) in private.items()
        }
        bouts.append(Bout(EQUAL, world, (f"{key}-greedy", name), rivals, policies, loss))
    return bouts


def _kept(world: World) -> Bout:
    budget = ApproxDP(EPSILON, DELTA)
    policies = {
        "linucb-greedy": world.linucb(radius_scale=_SCALE),
        "dgs-greedy": world.dgs(EPSILON, radius_scale=_SCALE),
        "kept": world.private(budget, "buffered", radius_scale=_SCALE),
    }
    return Bout(KEPT, world, ("dgs-greedy", "LinUCB-DGS"), {"kept": "Private LinUCB, buffered, Gaussian"}, policies)


def tabulated(environment: ContextEnvironment, horizon: int, seed: int) -> ContextTable:
    """The contexts of some rounds of an environment, with the rewards that all their arms would have brought."""
    rng = stream(seed, "environment", identity(f"table of {environment!r}"), 0)
    shape = (horizon, environment.n_arms)
    contexts, rewards, losses = np.zeros((*shape, environment.dimension)), np.zeros(shape), np.zeros(shape)
    show, answer, state = *environment.kernels, environment.state
    for t, view in enumerate(contexts):
        hidden = show(state, t, view, rng)
        for arm in range(environment.n_arms):
            rewards[t, arm], losses[t, arm] = answer(state, t, view, hidden, arm, rng)
    return ContextTable(contexts, rewards, -losses)


def arms_of(policy: ContextualPolicy, table: ContextTable, seed: int, run: int) -> np.ndarray:
    """Which arm the policy plays in every round of a table, shape (T,); seed and run fix its noise."""
    assert table.horizon is not None
    return play(policy, table, table.horizon, run, seed, np.array([table.horizon]), trace=True).tally.trace


def real_loss(policy: LinUCBDGS, table: ContextTable, seed: int) -> Loss:
    """What a policy really loses on the features that it plays in some runs on a table."""
    losses = []
    for run in range(LOSS_RUNS):
        arms = arms_of(policy, table, seed, run)
        losses.append(policy.exact_loss(table.state.contexts[np.arange(len(arms)), arms]))
    epsilons = [loss.epsilon for loss in losses]
    return Loss(min(epsilons), float(np.mean(epsilons)), max(epsilons), min(loss.rho for loss in losses))


def _rounded_down(value: float) -> float:
    """Three digits, and not more than the value."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.floor(value / unit) * unit:.3g}")


def _cells(bout: Bout) -> list[Cell]:
    return [
        _cell(bout.world, key, policy, f"{bout.world.title}: {bout.reading.lower()}") for key, policy in bout.policies.items()
    ]


def _cell(world: World, key: str, policy: ContextualPolicy, stage: str) -> Cell:
    marks = recorded(world.horizon)
    return Cell(f"{world.key}/{key}", stage, policy, world.environment, world.horizon, world.runs, world.seed, marks)


def _against_epsilon(world: World, epsilons: Sequence[float]) -> list[Cell]:
    found = []
    for epsilon in epsilons:
        if epsilon != EPSILON:
            made = {
                "dgs": world.dgs(epsilon),
                "dgs-coded": world.dgs(epsilon, "as_coded"),
                "tree": world.private(PureDP(epsilon), "tree"),
            }
            found += [_cell(world, _at(key, epsilon), policy, f"{world.title}: regret against ε") for key, policy in made.items()]
    return found


def _at(key: str, epsilon: float) -> str:
    return key if epsilon == EPSILON else f"{key}-{epsilon:g}"


# Findings -----------------------------------------------------------------------------------------------------------------


def _assess(bouts: Sequence[Bout], epsilons: Sequence[float], results: Results) -> Findings:
    found = [_Measured(bout, results) for bout in bouts]
    synthetic = [one for one in found if one.world.key.startswith("pool")]
    music = [one for one in found if not one.world.key.startswith("pool")]
    against = _Against(bouts[0].world, epsilons, results)
    changes = [_Changes(worlds[0].world) for worlds in (synthetic, music) if worlds]
    claims = [claim for reading in (PUBLISHED, CODED) for claim in _read(reading, found, against, changes)]
    claims += [claim for one in found if one.bout.reading == EQUAL for claim in (one.real_epsilon(), *one.compared())]
    claims += [claim for one in found if one.bout.reading == KEPT for claim in one.kept()]
    exhibits = [
        _curves("figure-1a", "Figure 1 (a): regret, synthetic", synthetic, "mean regret", "regret"),
        *([_curves("figure-1b", "Figure 1 (b): reward, Last.fm", music, "reward / random", "reward")] if music else []),
        _curves("figure-1c", "Figure 1 (c): error of the parameter, synthetic", synthetic, "|θ̂ − θ*|", "distance", "log"),
        against.exhibit(),
        *(one.exhibit() for one in changes),
    ]
    return Findings(claims, exhibits)


def _read(reading: str, found: Sequence[_Measured], against: _Against, changes: Sequence[_Changes]) -> list[Claim]:
    """The claims of the paper, with one scale of noise."""
    claims = []
    for one in found:
        if one.bout.reading == reading:
            claims += [one.price(), *one.compared()]
    return claims + against.claims(reading) + [claim for change in changes for claim in change.claims(reading)]


class _Measured:
    """The results of one bout."""

    def __init__(self, bout: Bout, results: Results) -> None:
        self.bout, self.world, self.results = bout, bout.world, results
        self.ratios = bout.world.environment.parameter is None  # where only rewards can be compared

    def curves(self, key: str, column: str = "regret") -> np.ndarray:
        return self.results.curves(f"{self.world.key}/{key}", column)

    @property
    def rounds(self) -> np.ndarray:
        return self.results.rounds(f"{self.world.key}/{self.bout.dgs[0]}")

    def gain(self, key: str) -> np.ndarray:
        """Reward at the horizon, per run, where regret is against what nobody can know."""
        return self.world.horizon - self.curves(key)[:, -1]

    @property
    def _after(self) -> str:
        return f"after {spoken(self.world.horizon)} rounds"

    def price(self) -> Claim:
        """That privacy has a price."""
        private = [self.bout.dgs[0], *self.bout.rivals]
        title = f"{self.world.title}: LinUCB, which is not private, plays better than its private relatives"
        if self.ratios:
            theirs, own, what = [self.gain(key) for key in private], self.gain("linucb"), "their rewards to its"
            found = largest([*theirs, *[own] * len(theirs)], ratios)
        else:
            theirs, own, what = [self.curves(key)[:, -1] for key in private], self.curves("linucb")[:, -1], "its regret to theirs"
            found = largest([*[own] * len(theirs), *theirs], ratios)
        statement = f"{title}. Measured: the larger of the ratios of {what}, {self._after}."
        return self._claim(statement, f"Figure 1 ({'b' if self.ratios else 'a'})", found, Expectation(high=1.0, strict=True))

    def compared(self) -> list[Claim]:
        """That LinUCB-DGS is better than its rivals."""
        key, name = self.bout.dgs
        claims = []
        for rival, other in self.bout.rivals.items():
            at = "" if self.bout.losses is None else f" at its real ε = {number(self.bout.losses.mean)}"
            title = f"{self.world.title}: {name}{at}"
            if self.ratios:
                claims.append(
                    self._claim(
                        f"{title} earns more than {other}. Measured: the ratio of their rewards {self._after}.",
                        "Figure 1 (b)",
                        measured([self.gain(key), self.gain(rival)], ratio),
                        Expectation(low=1.0, strict=True),
                    )
                )
                continue
            for column, figure, what in (
                ("regret", "1 (a)", "less regret"),
                ("distance", "1 (c)", "a smaller error of the parameter"),
            ):
                claims.append(
                    self._claim(
                        f"{title} has {what} than {other}. Measured: the ratio {self._after}.",
                        f"Figure {figure}",
                        measured([self.curves(key, column)[:, -1], self.curves(rival, column)[:, -1]], ratio),
                        Expectation(high=1.0, strict=True),
                    )
                )
        return claims

    def kept(self) -> list[Claim]:
        """That the privacy that was claimed can be had, at less regret."""
        title = (
            f"{self.world.title}: Private LinUCB with correlated Gaussian noise, which really keeps ({EPSILON:g}, {DELTA:g})-DP,"
        )
        theirs = self.bout.dgs[0]
        if self.ratios:
            statement, one, other = (
                "earns more than LinUCB-DGS. Measured: the ratio of their rewards",
                self.gain("kept"),
                self.gain(theirs),
            )
        else:
            one, other = (self.curves(key)[:, -1] for key in ("kept", theirs))
            statement = "has less regret than LinUCB-DGS. Measured: the ratio"
        better = Expectation(low=1.0, strict=True) if self.ratios else Expectation(high=1.0, strict=True)
        return [Claim(f"{title} {statement} {self._after}.", "this package", KEPT, measured([one, other], ratio), better)]

    def real_epsilon(self) -> Claim:
        """That the privacy is there."""
        loss = self.bout.losses
        assert loss is not None
        return Claim(
            f"{self.world.title}: {self.bout.dgs[1]} loses at most the ε that was asked for, on the features that it plays. "
            f"Measured: the largest loss of a record; the interval is the range over {LOSS_RUNS} runs.",
            f"{PAPER}, Theorem 1",
            EQUAL,
            Estimate(loss.mean, loss.low, loss.high),
            Expectation(high=EPSILON),
        )

    def _claim(self, statement: str, figure: str, found: Estimate, expected: Expectation) -> Claim:
        whose = f"{PAPER}, {figure}" if self.bout.reading == PUBLISHED else f"after {PAPER}, {figure}"
        return Claim(statement, whose, self.bout.reading, found, expected)

    def series(self, column: str) -> list[Series]:
        """A line for each policy: regret, distance, or "reward", in units of what random play earns."""
        names = {"linucb": "LinUCB", "linucb-greedy": "LinUCB", self.bout.dgs[0]: self.bout.dgs[1], **self.bout.rivals}
        lines = []
        for key in self.bout.policies:
            values = self._over_random(key) if column == "reward" else self.curves(key, column)
            value, low, high = curve([values], mean)
            shown = (self.rounds >= 10) & np.isfinite(value)
            lines.append(Series(names[key], self.rounds[shown], value[shown], low[shown], high[shown], dashed="linucb" in key))
        return lines

    def _over_random(self, key: str) -> np.ndarray:
        """Rewards of 0 and 1, one per round, of which random play gets the share 1 / K."""
        return self.world.environment.n_arms * (1.0 - self.curves(key) / self.rounds)

    @property
    def title(self) -> str:
        loss = self.bout.losses
        return self.bout.reading if loss is None else f"{self.bout.reading}, ε = {number(loss.mean)}"


class _Against:
    """Figure 2 (a): regret against epsilon."""

    def __init__(self, world: World, epsilons: Sequence[float], results: Results) -> None:
        self.world, self.epsilons, self.results = world, epsilons, results

    def finals(self, key: str) -> list[np.ndarray]:
        return [self.results.final(f"{self.world.key}/{_at(key, epsilon)}") for epsilon in self.epsilons]

    def claims(self, reading: str) -> list[Claim]:
        """That more privacy costs more."""
        key, name = {PUBLISHED: ("dgs", "LinUCB-DGS"), CODED: ("dgs-coded", "LinUCB-DGS as coded")}[reading]
        finals, source = self.finals(key), f"{'' if reading == PUBLISHED else 'after '}{PAPER}, Figure 2 (a)"
        strict, loose = self.epsilons[0], self.epsilons[-1]
        return [
            Claim(
                f"{self.world.title}: a stricter ε costs {name} more. Measured: its regret at ε = {strict:g} over that at ε = {loose:g}.",
                source,
                reading,
                measured([finals[0], finals[-1]], ratio),
                Expectation(low=1.0, strict=True),
            ),
            Claim(
                f"{self.world.title}: the regret of {name} falls with every larger ε. Measured: the largest rise from one to the next, "
                f"as a share of the regret at ε = {loose:g}.",
                source,
                reading,
                largest([*finals, finals[-1]], steps),
                Expectation(high=RISE),
                shares=True,
            ),
        ]

    def exhibit(self) -> Exhibit:
        """Regret of all at every epsilon."""
        lines = []
        for key, name in (("dgs", "LinUCB-DGS"), ("dgs-coded", "LinUCB-DGS as coded"), ("tree", "Private LinUCB")):
            found = np.array([measured([final], mean) for final in self.finals(key)])
            lines.append(Series(name, np.array(self.epsilons), found[:, 0], found[:, 1], found[:, 2], marks=True))
        title = f"{self.world.title}, {spoken(self.world.horizon)} rounds"
        return Exhibit(
            "figure-2a",
            "Figure 2 (a): regret against ε",
            "Mean regret at the horizon with 95 % bars, against the ε that was asked for. It is not the ε that holds: see the claims.",
            "Regret of LinUCB-DGS, as published and as coded, and of Private LinUCB against epsilon.",
            [Panel(title, "ε asked for", "mean regret", lines, x_scale="linear")],
        )


class _Changes:
    """Figures 2 (b) and (c): in how many rounds another arm is played after one reward has changed.

    Contexts, rewards of all arms and the noise of policies are fixed, so that nothing differs but that reward and what follows from it.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.synthetic = world.environment.parameter is not None
        self.horizon = min(world.horizon, CHANGE_HORIZON) if self.synthetic else world.horizon
        self.places = (0, self.horizon // 5, 2 * self.horizon // 5)
        self.names = {"linucb": "LinUCB", "dgs": "LinUCB-DGS", "dgs-coded": "LinUCB-DGS as coded", "tree": "Private LinUCB"}
        self.changed = self._count()

    def _count(self) -> dict[str, np.ndarray]:
        world, table = self.world, tabulated(self.world.environment, self.horizon, self.world.seed)
        policies: dict[str, ContextualPolicy] = {
            "linucb": world.linucb(),
            "dgs": world.dgs(EPSILON, horizon=self.horizon),
            "dgs-coded": world.dgs(EPSILON, "as_coded", self.horizon),
            "tree": world.private(PureDP(EPSILON), "tree", self.horizon),
        }
        changed = {}
        others = [self._with_change(table, place) for place in self.places]
        for key, policy in policies.items():
            counts = np.zeros((NOISE_SEEDS, len(self.places)))
            for run in range(NOISE_SEEDS):
                before = arms_of(policy, table, world.seed, run)
                for i, other in enumerate(others):
                    counts[run, i] = np.count_nonzero(arms_of(policy, other, world.seed, run) != before)
            changed[key] = counts
        return changed

    def _with_change(self, table: ContextTable, place: int) -> ContextTable:
        """The table with other rewards in one round; only that of the arm that is played there matters."""
        rewards = table.state.rewards.copy()
        rewards[place] = rewards[place] + STEP if self.synthetic else 1.0 - rewards[place]
        return ContextTable(table.state.contexts, rewards, table.state.means)

    def claims(self, reading: str) -> list[Claim]:
        """How sensitive the choice of arms is."""
        key = {PUBLISHED: "dgs", CODED: "dgs-coded"}[reading]
        name, figure = self.names[key], "2 (b)" if self.synthetic else "2 (c)"
        source = f"{'' if reading == PUBLISHED else 'after '}{PAPER}, Figure {figure}"
        totals = {which: counts.mean(axis=1) for which, counts in self.changed.items()}
        after = f"after one reward changes, over {self.horizon:,} rounds"

        def claim(statement: str, found: Estimate, expected: Expectation, shares: bool = False) -> Claim:
            return Claim(f"{self.world.title}: {statement}", source, reading, found, expected, shares)

        return [
            claim(
                f"{name} plays another arm in fewer rounds than LinUCB {after}. Measured: the ratio, mean over where it changes.",
                measured([totals[key], totals["linucb"]], ratio),
                Expectation(high=1.0, strict=True),
            ),
            claim(
                f"Private LinUCB plays another arm about as often as {name} does. Measured: the difference, as a share of the rounds in "
                "which LinUCB does.",
                measured([totals["tree"], totals[key], totals["linucb"]], _gap),
                Expectation(-SIMILAR, SIMILAR),
                shares=True,
            ),
            claim(
                f"that number varies more from one noise to the next with Private LinUCB than with {name}. Measured: the difference of "
                f"standard deviations over {NOISE_SEEDS} seeds.",
                measured(_moments(totals["tree"], totals[key]), _spread_gap),
                Expectation(low=0.0, strict=True),
            ),
            claim(
                f"the later the reward, the fewer the rounds, for {name}. Measured: how many more at round {self.places[0]} than at "
                f"round {self.places[-1]:,}.",
                measured([self.changed[key][:, 0] - self.changed[key][:, -1]], mean),
                Expectation(low=0.0, strict=True),
            ),
        ]

    def exhibit(self) -> Exhibit:
        """Means and standard deviations, as the paper shows them."""
        lines = []
        for i, (key, name) in enumerate(self.names.items()):
            counts = self.changed[key]
            average, spread = counts.mean(axis=0), counts.std(axis=0, ddof=1)
            aside = (i - 1.5) * 0.012 * self.horizon
            lines.append(Series(name, np.array(self.places) + aside, average, average - spread, average + spread, marks=True))
        figure = "2 (b)" if self.synthetic else "2 (c)"
        how = f"is raised by {STEP:g}" if self.synthetic else "is flipped"
        return Exhibit(
            "figure-2b" if self.synthetic else "figure-2c",
            f"Figure {figure}: other arms after one reward changes, {self.world.title}",
            f"In how many of {self.horizon:,} rounds another arm is played when the reward of one round {how} and all else, noise "
            f"included, is as before; mean and standard deviation over {NOISE_SEEDS} noises. Marks are moved sideways to stay apart.",
            "Number of changed arms against the round in which a reward changes, for four policies.",
            [Panel(self.world.title, "round of the change", "rounds with another arm", lines, x_scale="linear")],
        )


def _moments(one: np.ndarray, other: np.ndarray) -> list[np.ndarray]:
    return [one, one**2, other, other**2]


def _spread_gap(means: np.ndarray) -> np.ndarray:
    one, other = (np.sqrt(np.maximum(means[..., i + 1] - means[..., i] ** 2, 0.0)) for i in (0, 2))
    return one - other


def _gap(means: np.ndarray) -> np.ndarray:
    return (means[..., 0] - means[..., 1]) / means[..., 2]


# Figures ------------------------------------------------------------------------------------------------------------------


def _curves(name: str, heading: str, found: Sequence[_Measured], label: str, column: str, scale: str = "linear") -> Exhibit:
    return Exhibit(
        name,
        heading,
        "Mean over runs with 95 % bands. In the panels at equal real privacy, rewards are bounded, Private LinUCB spends what LinUCB-DGS "
        "really loses, and all play nearly greedily.",
        f"{heading}: one panel per way of reading the paper.",
        [Panel(one.title, "rounds", label, one.series(column), y_scale=scale) for one in found],
    )
