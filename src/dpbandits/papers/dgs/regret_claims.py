"""The claims of the paper on regret, reward and the error of the parameter: Figures 1 and 2 (a)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...plotting.numbers import number
from ...privacy import ZCDP
from ...report.claims import Claim, Expectation
from ...report.estimates import Estimate
from ...report.exhibits import Exhibit, Panel, Series
from ...report.intervals import curve, mean, ratio
from ..plans import Results, largest, measured, ratios, spoken, steps
from .comparisons import CLAIMED, DELTA, EPSILON, EQUAL, PAPER, PUBLISHED, SCALES, Comparison, World

RISE = 0.01


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
        """Reward at the horizon, where regret is against what nobody can know."""
        return self.world.horizon - self._final(key)

    def _final(self, key: str, column: str = "regret") -> np.ndarray:
        return self.curves(key, column)[..., -1]

    @property
    def _after(self) -> str:
        return f"after {spoken(self.world.horizon)} rounds"

    def price(self) -> Claim:
        """That privacy has a price."""
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
        return self._claim(
            statement,
            f"Figure 1 ({'b' if self.ratios else 'a'})",
            found,
            Expectation(high=1.0, strict=True),
        )

    def compared(self) -> list[Claim]:
        """That LinUCB-DGS is better than its rivals."""
        key, name = self.one.dgs
        claims = []
        for rival, other in self.one.rivals.items():
            title = f"{self.world.title}: {name}{self._real(rival)}"
            if self.ratios:
                claims.append(
                    self._claim(
                        f"{title} earns more than {other}. Measured: the ratio of their rewards"
                        f" {self._after}.",
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
                        measured([self._final(one, column) for one in (key, rival)], ratio),
                        Expectation(high=1.0, strict=True),
                    )
                )
        return claims

    def _real(self, rival: str) -> str:
        """What LinUCB-DGS loses, in the notion in which a rival spends it."""
        if self.loss is None:
            return ""
        if isinstance(self.one.policies[rival].budget, ZCDP):
            return f" at its real ρ = {number(min(self.loss.rhos))} (zCDP)"
        return f" at its real ε = {number(min(self.loss.epsilons))} (pure DP)"

    def at_claimed_privacy(self) -> Claim:
        """That the privacy that was claimed can be had, at less regret."""
        title = (
            f"{self.world.title}: Private LinUCB with correlated Gaussian noise, which really keeps"
            f" ({EPSILON:g}, {DELTA:g})-DP,"
        )
        theirs = self.one.dgs[0]
        if self.ratios:
            statement = "earns more than LinUCB-DGS. Measured: the ratio of their rewards"
            final, better = self.gain, Expectation(low=1.0, strict=True)
        else:
            statement = "has less regret than LinUCB-DGS. Measured: the ratio"
            final, better = self._final, Expectation(high=1.0, strict=True)
        found = measured([final(key) for key in ("claimed", theirs)], ratio)
        return Claim(f"{title} {statement} {self._after}.", "this package", CLAIMED, found, better)

    def real_epsilon(self) -> Claim:
        """That the privacy is there."""
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
        whose = f"{PAPER}, {figure}" if self.reading == PUBLISHED else f"after {PAPER}, {figure}"
        return Claim(statement, whose, self.reading, found, expected)

    def series(self, column: str) -> list[Series]:
        """A line for each policy: regret, distance, or "reward", in units of what random play
        earns.
        """
        names = {
            "linucb": "LinUCB",
            "linucb-greedy": "LinUCB",
            self.one.dgs[0]: self.one.dgs[1],
            **self.one.rivals,
        }
        lines = []
        for key in self.one.policies:
            values = self._over_random(key) if column == "reward" else self.curves(key, column)
            found = np.array([self.rounds, *curve([values], mean)])
            x, y, low, high = found[:, (self.rounds >= 10) & np.isfinite(found[1])]
            lines.append(Series(names[key], x, y, low, high, dashed="linucb" in key))
        return lines

    def _over_random(self, key: str) -> np.ndarray:
        """Rewards of 0 and 1, one per round, of which random play gets the share 1 / K."""
        return self.world.environment.n_arms * (1.0 - self.curves(key) / self.rounds)

    @property
    def title(self) -> str:
        """With the notion of privacy, where all panels of a figure do not share it."""
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
        """That more privacy costs more."""
        key, name, _ = SCALES[reading]
        finals = self.finals(key)
        source = f"{'' if reading == PUBLISHED else 'after '}{PAPER}, Figure 2 (a)"
        strict, loose = self.epsilons[0], self.epsilons[-1]
        return [
            Claim(
                f"{self.world.title}: a stricter ε costs {name} more. Measured: its regret at ε ="
                f" {strict:g} over that at ε = {loose:g}.",
                source,
                reading,
                measured([finals[0], finals[-1]], ratio),
                Expectation(low=1.0, strict=True),
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
