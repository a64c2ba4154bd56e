"""What one changed reward does to the choices: Figures 2 (b) and (c)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...algorithms.bases import ContextualPolicy
from ...environments import ContextTable
from ...privacy import PureDP
from ...report.claims import Claim, Expectation
from ...report.estimates import Estimate
from ...report.exhibits import Exhibit, Panel, Series
from ...report.intervals import mean, ratio
from ..plans import measured
from .comparisons import EPSILON, PAPER, PUBLISHED, SCALES, World, arms_of, draws, tabulated

CHANGE_HORIZON = 500  # of the synthetic part
STEP = 0.5  # by which a reward changes there
SIMILAR = 0.1  # of the rounds in which LinUCB plays another arm


class Changes:
    """Figures 2 (b) and (c): in how many rounds another arm is played after one reward has changed.

    Contexts, rewards of all arms and the noise of policies are fixed, so that nothing differs but
    that reward and what follows from it.  Which reward that is matters more than the noise: so
    there are several draws of contexts and rewards, from as many instances of the world as there
    are, each with several noises.
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
        counts = [self._counted(*drawn) for drawn in draws(worlds, tables)]
        # key -> shape (tables, noises, places)
        self.changed = {key: np.array([one[key] for one in counts]) for key in self.names}

    def _counted(self, world: World, seed: int) -> dict[str, np.ndarray]:
        """For every policy, shape (noises, places)."""
        table = tabulated(world.environment, self.horizon, seed)
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
                before = arms_of(policy, table, seed, run)
                changed[key][run] = [
                    np.count_nonzero(arms_of(policy, other, seed, run) != before)
                    for other in others
                ]
        return changed

    def _with_change(self, table: ContextTable, place: int) -> ContextTable:
        """The table with other rewards in one round; only that of the arm that is played there
        matters.
        """
        rewards = table.state.rewards.copy()
        rewards[place] = rewards[place] + STEP if self.synthetic else 1.0 - rewards[place]
        return ContextTable(table.state.contexts, rewards, table.state.means)

    def claims(self, reading: str) -> list[Claim]:
        """How sensitive the choice of arms is."""
        key = SCALES[reading].key
        name, figure = self.names[key], "2 (b)" if self.synthetic else "2 (c)"
        source = f"{'' if reading == PUBLISHED else 'after '}{PAPER}, Figure {figure}"
        totals = {which: counts.mean(axis=-1) for which, counts in self.changed.items()}
        after = (
            f"after one reward changes, over {self.horizon:,} rounds with each of {self.noises}"
            f" noises on {self.tables} draws of contexts and rewards"
        )

        def claim(
            statement: str, found: Estimate, expected: Expectation, shares: bool = False
        ) -> Claim:
            return Claim(
                f"{self.world.title}: {statement}", source, reading, found, expected, shares
            )

        return [
            claim(
                f"{name} plays another arm in fewer rounds than LinUCB {after}. Measured: the"
                " ratio, mean over where it changes.",
                # on the plain scale: counts may be 0, which has no logarithm
                measured([totals[key], totals["linucb"]], ratio.of),
                Expectation(high=1.0, strict=True),
            ),
            claim(
                f"Private LinUCB plays another arm about as often as {name} does. Measured: the"
                " difference, as a share of the rounds in which LinUCB does.",
                measured([totals["tree"], totals[key], totals["linucb"]], _gap),
                Expectation(-SIMILAR, SIMILAR),
                shares=True,
            ),
            claim(
                "that number varies more from one noise to the next with Private LinUCB than with"
                f" {name}. Measured: the difference of standard deviations over {self.noises}"
                f" noises, mean over {self.tables} draws.",
                measured(_moments(totals["tree"], totals[key]), _spread_gap),
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
            aside = (i - 1.5) * 0.012 * self.horizon
            lines.append(
                Series(
                    name,
                    np.array(self.places) + aside,
                    average,
                    average - spread,
                    average + spread,
                    marks=True,
                )
            )
        figure = "2 (b)" if self.synthetic else "2 (c)"
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
            [
                Panel(
                    self.world.title,
                    "round of the change",
                    "rounds with another arm",
                    lines,
                    x_scale="linear",
                )
            ],
        )


def _moments(one: np.ndarray, other: np.ndarray) -> list[np.ndarray]:
    return [one, one**2, other, other**2]


def _spread_gap(means: np.ndarray) -> np.ndarray:
    one, other = (np.sqrt(np.maximum(means[..., i + 1] - means[..., i] ** 2, 0.0)) for i in (0, 2))
    return one - other


def _gap(means: np.ndarray) -> np.ndarray:
    return (means[..., 0] - means[..., 1]) / means[..., 2]
