"""Figures 1 and 2, and their claims: regret, reward, errors, and the effect of one changed
reward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...algorithms.bases.contextual import ContextualPolicy
from ...environments import ContextTable
from ...plotting.numbers import number
from ...privacy import ZCDP, PureDP
from ...report.claims import Claim, Expectation
from ...report.exhibits import Exhibit, Panel, Series
from ...report.intervals import curve, mean, ratio
from ...report.means import Estimate
from ..plans import Results, largest, measured, ratios, spoken, steps
from . import comparisons as compare
from .comparisons import CLAIMED, DELTA, EPSILON, EQUAL, PAPER, SCALES, Comparison, World, cited

RISE = 0.01
CHANGE_HORIZON = 500  # of the synthetic part
STEP = 0.5  # by which a reward changes there
SIMILAR = 0.1  # of the rounds in which LinUCB plays another arm
LESS, MORE = Expectation(high=1.0, strict=True), Expectation(low=1.0, strict=True)


class Measured:
    """The results of one comparison in all instances of a world."""

    def __init__(self, comparisons: Sequence[Comparison], results: Results) -> None:
        self.one, self.world, self.results = comparisons[0], comparisons[0].world, results
        self.reading = self.one.reading
        self.loss = self.one.loss
        self.ratios = self.world.environment.parameter is None  # where only rewards tell them apart

    def curves(self, key: str, column: str = "regret") -> np.ndarray:
        return self.results.curves(f"{self.world.key}/{key}", column)

    @property
    def rounds(self) -> np.ndarray:
        return self.results.rounds(f"{self.world.key}/{self.one.dgs[0]}")

    def gain(self, key: str) -> np.ndarray:
        """Reward at the horizon, where the regret's reference is unknown to any policy."""
        return self.world.horizon - self._final(key)

    def _final(self, key: str, column: str = "regret") -> np.ndarray:
        return self.curves(key, column)[..., -1]

    @property
    def _after(self) -> str:
        return f"after {spoken(self.world.horizon)} rounds"

    def price(self) -> Claim:
        """The claim that privacy has a price."""
        private = [self.one.dgs[0], *self.one.rivals]
        title = (
            f"{self.world.title}: LinUCB, which is not private, plays better than its private"
            " relatives"
        )
        final = self.gain if self.ratios else self._final
        theirs, own = [final(key) for key in private], [final("linucb")] * len(private)
        what = "their rewards to its" if self.ratios else "its regret to theirs"
        found = largest([*theirs, *own] if self.ratios else [*own, *theirs], ratios)
        statement = f"{title}. Measured: the larger of the ratios of {what}, {self._after}."
        return self._claim(statement, f"Figure 1 ({'b' if self.ratios else 'a'})", found, LESS)

    @property
    def _contests(self) -> list[tuple[str, str, str, Callable[[str], np.ndarray], Expectation]]:
        """By figure: the claim, the measured ratio, the numbers compared, and the expectation."""
        if self.ratios:
            return [("1 (b)", "earns more", "the ratio of their rewards", self.gain, MORE)]
        distance = partial(self._final, column="distance")
        return [
            ("1 (a)", "has less regret", "the ratio", self._final, LESS),
            ("1 (c)", "has a smaller error of the parameter", "the ratio", distance, LESS),
        ]

    def compared(self) -> list[Claim]:
        """The claims that LinUCB-DGS is better than its rivals."""
        key, name = self.one.dgs
        return [
            self._claim(
                f"{self.world.title}: {name}{self._real(rival)} {better} than {other}. Measured:"
                f" {what} {self._after}.",
                f"Figure {figure}",
                measured([value(key), value(rival)], ratio),
                expected,
            )
            for rival, other in self.one.rivals.items()
            for figure, better, what, value, expected in self._contests
        ]

    def _real(self, rival: str) -> str:
        """The privacy loss of LinUCB-DGS, in the notion of a rival's budget."""
        if self.loss is None:
            return ""
        if isinstance(self.one.policies[rival].budget, ZCDP):
            return f" at its real ρ = {number(min(self.loss.rhos))} (zCDP)"
        return f" at its real ε = {number(min(self.loss.epsilons))} (pure DP)"

    def at_claimed_privacy(self) -> Claim:
        """The claim that a policy can keep the claimed privacy, at less regret."""
        _, better, what, value, expected = self._contests[0]
        statement = (
            f"{self.world.title}: Private LinUCB with correlated Gaussian noise, which really keeps"
            f" ({EPSILON:g}, {DELTA:g})-DP, {better} than LinUCB-DGS. Measured: {what}"
            f" {self._after}."
        )
        found = measured([value("claimed"), value(self.one.dgs[0])], ratio)
        return Claim(statement, "this package", CLAIMED, found, expected)

    def real_epsilon(self) -> Claim:
        """The claim that the privacy guarantee holds."""
        assert self.loss is not None
        return Claim(
            f"{self.world.title}: {self.one.dgs[1]} loses at most the ε that was asked for, on the"
            " features that it plays. Measured: the largest loss of a record.",
            f"{PAPER}, Theorem 1",
            EQUAL,
            measured([np.array([self.loss.epsilons])], mean),
            Expectation(high=EPSILON),
        )

    def _claim(self, statement: str, figure: str, found: Estimate, expected: Expectation) -> Claim:
        return Claim(statement, cited(self.reading, figure), self.reading, found, expected)

    def series(self, column: str) -> list[Series]:
        """A line for each policy: regret, distance, or "reward", in units of random play's."""
        key, name = self.one.dgs
        names = {"linucb": "LinUCB", "linucb-greedy": "LinUCB", key: name, **self.one.rivals}
        lines = []
        for key in self.one.policies:
            if column == "reward":  # 0 or 1 in a round: random play gets the share 1 / K
                arms = self.world.environment.n_arms
                values = arms * (1.0 - self.curves(key) / self.rounds)
            else:
                values = self.curves(key, column)
            found = np.array([self.rounds, *curve([values], mean)])
            x, y, low, high = found[:, (self.rounds >= 10) & np.isfinite(found[1])]
            lines.append(Series(names[key], x, y, low, high, dashed="linucb" in key))
        return lines

    @property
    def title(self) -> str:
        """The title, with the notion of privacy where the panels of a figure differ in it."""
        if self.reading == CLAIMED:
            return f"{self.reading}: ({EPSILON:g}, {DELTA:g})-DP"
        if self.loss is None:
            return self.reading
        epsilon, rho = (min(values) for values in self.loss)
        spent = (f"ε = {number(epsilon)}", f"ρ = {number(rho)}")
        # titles are wrapped
        pure, concentrated = (one.replace(" ", "\N{NO-BREAK SPACE}") for one in spent)
        return f"{self.reading}: pure DP with {pure}, zCDP with {concentrated}"


class Against:
    """Figure 2 (a): regret against epsilon."""

    def __init__(self, world: World, epsilons: Sequence[float], results: Results) -> None:
        self.world, self.epsilons, self.results = world, epsilons, results

    def finals(self, key: str) -> list[np.ndarray]:
        return [
            self.results.final(f"{self.world.key}/{at(key, epsilon)}") for epsilon in self.epsilons
        ]

    def claims(self, reading: str) -> list[Claim]:
        """The claims that more privacy costs more."""
        key, name, _ = SCALES[reading]
        finals = self.finals(key)
        source = cited(reading, "Figure 2 (a)")
        strict, loose = self.epsilons[0], self.epsilons[-1]
        return [
            Claim(
                f"{self.world.title}: a stricter ε costs {name} more. Measured: its regret at ε ="
                f" {strict:g} over that at ε = {loose:g}.",
                source,
                reading,
                measured([finals[0], finals[-1]], ratio),
                MORE,
            ),
            Claim(
                f"{self.world.title}: the regret of {name} falls with every larger ε. Measured: the"
                f" largest rise from one to the next, as a share of the regret at ε = {loose:g}.",
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
        named = {key: name for key, name, _ in SCALES.values()} | {"tree": "Private LinUCB"}
        for key, name in named.items():
            y, low, high = np.array([measured([final], mean) for final in self.finals(key)]).T
            lines.append(Series(name, np.array(self.epsilons), y, low, high, marks=True))
        title = f"{self.world.title}, {spoken(self.world.horizon)} rounds"
        return Exhibit(
            "figure-2a",
            "Figure 2 (a): regret against ε",
            "Mean regret at the horizon with 95 % bars, against the ε that was asked for. It is not"
            " the ε that holds: see the claims.",
            "Regret of LinUCB-DGS, as published and as coded, and of Private LinUCB against"
            " epsilon.",
            [Panel(title, "ε asked for", "mean regret", lines, x_scale="linear")],
        )


def at(key: str, epsilon: float) -> str:
    """The key of a policy's cell in Figure 2 (a)."""
    return key if epsilon == EPSILON else f"{key}-{epsilon:g}"


def curves(
    name: str,
    heading: str,
    found: Sequence[Measured],
    label: str,
    column: str,
    scale: str = "linear",
) -> Exhibit:
    """A figure with a panel for each comparison."""
    return Exhibit(
        name,
        heading,
        "Mean over runs and pools with 95 % bands. In the panels at equal real privacy, rewards are"
        " bounded, Private LinUCB spends what LinUCB-DGS really loses, and all play nearly"
        " greedily.",
        f"{heading}: one panel per way of reading the paper.",
        [Panel(one.title, "rounds", label, one.series(column), y_scale=scale) for one in found],
    )


class Changes:
    """Figures 2 (b) and (c): the number of rounds with another arm after one reward has changed.

    Contexts, rewards of all arms and the noise of policies are fixed.  So only that reward and its
    consequences differ.  The choice of the reward matters more than the noise.  So there are
    several draws of contexts and rewards, from all instances of the world, each with several
    noises.
    """

    def __init__(self, worlds: Sequence[World], tables: int, noises: int) -> None:
        self.tables, self.noises = tables, noises
        self.world = world = worlds[0]
        self.synthetic = world.environment.parameter is not None
        self.horizon = min(world.horizon, CHANGE_HORIZON) if self.synthetic else world.horizon
        self.places = (0, self.horizon // 5, 2 * self.horizon // 5)
        self.names = {
            "linucb": "LinUCB",
            **{key: name for key, name, _ in SCALES.values()},
            "tree": "Private LinUCB",
        }
        counts = [self._counted(*drawn) for drawn in compare.draws(worlds, tables)]
        # key -> shape (tables, noises, places)
        self.changed = {key: np.array([one[key] for one in counts]) for key in self.names}

    def _counted(self, world: World, seed: int) -> dict[str, np.ndarray]:
        """The counts for every policy, shape (noises, places)."""
        table = compare.tabulated(world.environment, self.horizon, seed)
        others = [self._with_change(table, place) for place in self.places]
        policies: dict[str, ContextualPolicy] = {
            "linucb": world.linucb(),
            "dgs": world.dgs(EPSILON, horizon=self.horizon),
            "dgs-coded": world.dgs(EPSILON, "as_coded", self.horizon),
            "tree": world.private(PureDP(EPSILON), "tree", self.horizon),
        }
        changed = {key: np.zeros((self.noises, len(self.places))) for key in policies}
        for key, policy in policies.items():
            for run in range(self.noises):
                before = compare.arms_of(policy, table, seed, run)
                changed[key][run] = [
                    np.count_nonzero(compare.arms_of(policy, other, seed, run) != before)
                    for other in others
                ]
        return changed

    def _with_change(self, table: ContextTable, place: int) -> ContextTable:
        """The table with other rewards in one round; only that of the played arm matters."""
        rewards = table.state.rewards.copy()
        rewards[place] = rewards[place] + STEP if self.synthetic else 1.0 - rewards[place]
        return ContextTable(table.state.contexts, rewards, table.state.means)

    def claims(self, reading: str) -> list[Claim]:
        """The claims on the sensitivity of the choice of arms."""
        key = SCALES[reading].key
        name, figure = self.names[key], "2 (b)" if self.synthetic else "2 (c)"
        source = cited(reading, f"Figure {figure}")
        totals = {which: counts.mean(axis=-1) for which, counts in self.changed.items()}
        own, tree, free = totals[key], totals["tree"], totals["linucb"]
        after = (
            f"after one reward changes, over {self.horizon:,} rounds with each of {self.noises}"
            f" noises on {self.tables} draws of contexts and rewards"
        )

        def claim(statement: str, found: Estimate, *more: Any) -> Claim:
            return Claim(f"{self.world.title}: {statement}", source, reading, found, *more)

        return [
            claim(
                f"{name} plays another arm in fewer rounds than LinUCB {after}. Measured: the"
                " ratio, mean over where it changes.",
                # on the plain scale: counts may be 0, which has no logarithm
                measured([own, free], ratio.of),
                Expectation(high=1.0, strict=True),
            ),
            claim(
                f"Private LinUCB plays another arm about as often as {name} does. Measured: the"
                " difference, as a share of the rounds in which LinUCB does.",
                measured([tree, own, free], lambda m: (m[..., 0] - m[..., 1]) / m[..., 2]),
                Expectation(-SIMILAR, SIMILAR),
                True,  # shares
            ),
            claim(
                "that number varies more from one noise to the next with Private LinUCB than with"
                f" {name}. Measured: the difference of standard deviations over {self.noises}"
                f" noises, mean over {self.tables} draws.",
                measured([tree, tree**2, own, own**2], _spread_gap),
                Expectation(low=0.0, strict=True),
            ),
            claim(
                f"the later the reward, the fewer the rounds, for {name}. Measured: how many more"
                f" at round {self.places[0]} than at round {self.places[-1]:,}.",
                measured([self.changed[key][..., 0] - self.changed[key][..., -1]], mean),
                Expectation(low=0.0, strict=True),
            ),
        ]

    def exhibit(self) -> Exhibit:
        """Means and standard deviations, as the paper shows them."""
        lines = []
        for i, (key, name) in enumerate(self.names.items()):
            counts = self.changed[key].reshape(-1, len(self.places))
            average, spread = counts.mean(axis=0), counts.std(axis=0, ddof=1)
            places = np.array(self.places) + (i - 1.5) * 0.012 * self.horizon
            ends = average - spread, average + spread
            lines.append(Series(name, places, average, *ends, marks=True))
        figure = "2 (b)" if self.synthetic else "2 (c)"
        axes = "round of the change", "rounds with another arm"
        how = f"is raised by {STEP:g}" if self.synthetic else "is flipped"
        return Exhibit(
            "figure-2b" if self.synthetic else "figure-2c",
            f"Figure {figure}: other arms after one reward changes, {self.world.title}",
            f"In how many of {self.horizon:,} rounds another arm is played when the reward of one"
            f" round {how} and all else, noise included, is as before; mean and standard deviation"
            f" over {self.noises} noises on each of {self.tables} draws of contexts and rewards."
            " Marks are moved sideways to stay apart.",
            "Number of changed arms against the round in which a reward changes, for four"
            " policies.",
            [Panel(self.world.title, *axes, lines, x_scale="linear")],
        )


def _spread_gap(means: np.ndarray) -> np.ndarray:
    """The difference of two standard deviations, from means of each number and its square."""
    one, other = (np.sqrt(np.maximum(means[..., i + 1] - means[..., i] ** 2, 0.0)) for i in (0, 2))
    return one - other
