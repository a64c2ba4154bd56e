"""The result of a plan: as a table, in sentences, as a figure, and as a policy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import ArgumentError
from ..html import Html, glance
from ..plotting.numbers import number, percent, reward_amount
from ..policies import Policy
from ..policies.sums import at_the_end
from ..privacy.budgets import Budget
from ..report.means import Estimate, interval_in_words
from ..simulation import simulate
from ..theory import BOUNDS, Promise, bound_curves, crossover, free_from
from ..theory.curves import label_of
from ..theory.regimes import Budget as Minimax
from ..validation import real
from .candidates import Candidate
from .holdouts import HoldoutPlan
from .measuring import Measured, paired_lead
from .setting import Setting, gaps_of
from .targets import Affordable, Paying, cheapest
from .widths import HalfWidth, half_widths
from .yardsticks import Yardsticks, in_reverse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OF_PRIVACY = ("rho", "epsilon", "noise")  # arguments of bounds that privacy decides
_OF_TUNING = ("tuned_for", "rate")  # of which others would be best without privacy, or for longer


def _with_interval(found: Estimate) -> str:
    """A regret as it is told; without an interval where it is exact."""
    ends = "" if found.low == found.high else interval_in_words(found, reward_amount)
    return f"{reward_amount(found.mean)}{ends}"


def _price_in_words(price: Estimate) -> str:
    """A price with its interval, as far as that carries it."""
    if math.isnan(price.mean):
        return ""
    mean, low, high = (percent(one).replace("-", "−") for one in price)
    said = "no difference seen" if not (price.low > 0.0 or price.high < 0.0) else mean
    return said if math.isnan(price.low) else f"{said} ({low} to {high})"


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The result of ``plan``.

    Attributes:
        setting: the decision problem.
        budget: None for no privacy.
        horizon: number of rounds.
        rounds: the number of simulated rounds; 0 where there was nothing to simulate.
        runs, seed, tolerance: as they were given.
        table: one row per policy that fits, best first: ``policy``, its title; whether it is the
            ``default``; ``promise``, the least proved bound on regret over the horizon (of a search
            on its rounds), and its ``source``, which also names a void bound; ``mean`` regret over
            the simulated rounds (rounds of a search) with the interval ``low`` to ``high``; the
            ``price`` of privacy as a share, with ``price_low`` and ``price_high``; ``free_from``,
            see there; and of searches ``wrong``, the share that erred.  NaN is unknown.
        left_out: every other policy, with the reason.
        fitting: the candidates behind the rows of the table.
        usual: the policy to take without a simulation: the default of the setting, or the one with
            the best promise.
        best: the policy to take: the usual one, unless another has significantly less measured
            regret.
        promises: the bound behind ``promise``, by policy, where there is one.
        floor: the largest lower bound on regret there, which holds as the horizon grows; None where
            none is known.
        measured: the simulation; None without one.
        yardsticks: regret of choosing at random over the simulated rounds, and of exploring first;
            None without a simulation, and of searches.
        saved: how much less regret than random choice the best policy has.  Where the order of the
            arms is arbitrary, this is the mean over both directions.  None without yardsticks.
        pays: the budget or the number of rounds from which on the best policy pays.  None where it
            already has less regret than random choice, and where nothing was simulated.
        options: the options that all policies get.
        holdout: the price and the use of a holdout; None without one.
    """

    setting: Setting
    budget: Budget | None
    horizon: int
    rounds: int
    runs: int
    seed: int
    tolerance: float
    table: pd.DataFrame
    left_out: Mapping[str, str]
    fitting: Mapping[str, Candidate]
    usual: str
    best: str
    promises: Mapping[str, Promise]
    floor: Promise | None
    measured: Measured | None
    yardsticks: Yardsticks | None
    saved: Estimate | None
    pays: Paying | None
    options: Mapping[str, Any]
    holdout: HoldoutPlan | None = None

    def __repr__(self) -> str:
        return "\n".join([self.heading, *self.findings])

    def policy(self, title: str | None = None, **options: Any) -> Policy:
        """A policy of the plan, ready to be used.

        Args:
            title: as the table writes it; by default the ``best`` one.
            **options: see ``Options``: ``seed``, ``noise="secure"``, ``reports=True``, ...

        Raises:
            ArgumentError: it is not in the table, or an option is wrong.
        """
        chosen = self._candidate(title)
        return chosen.build(self.setting, self.budget, self.horizon, **{**self.options, **options})

    @cached_property
    def free_from(self) -> int | None:
        """The round from which on privacy is free for the ``best`` policy.  Mean regret so far is
        then at most 1 + tolerance times that of the best policy without privacy, up to the last
        simulated round.  None where that fails at the last round, or nothing was simulated.
        """
        if self.measured is None or self.budget is None:
            return None
        return self.measured.free_from(self.best, self.tolerance)

    def budget_for(self, regret: float, title: str | None = None) -> Affordable:
        """The smallest budget of the same notion at which a policy's regret stays below a target.

        Every tried budget is simulated as the plan was, with the same seed.  All meet the same
        noise of the environment.  The search bisects a ladder of budgets, and assumes that regret
        never rises with the budget.

        Args:
            regret: the largest mean regret over the whole horizon.
            title: of the policy; by default the ``best`` one.

        Returns:
            An ``Affordable``: the smallest ``budget`` found, with its interval.

        Raises:
            ArgumentError: nothing was simulated over the whole horizon, there is no budget, or
                even the same policy without privacy has more regret.
        """
        target = real("regret", regret, 0.0, float("inf"), strict=True)
        world = self.setting.simulated
        if self.setting.best_arm:
            raise ArgumentError(
                "goal must be 'regret' to find a budget for a regret, got 'best arm'", "goal"
            )
        if world is None or self.rounds < self.horizon:
            raise ArgumentError(
                f"rounds must equal the horizon, {self.horizon}, to find a budget for a regret, got"
                f" {self.rounds}: the plan must simulate all rounds. Make the plan anew with"
                f" rounds={self.horizon} and an environment",
                "rounds",
            )
        if self.budget is None:
            raise ArgumentError("budget must be given, to name the notion of privacy", "budget")
        chosen = self._candidate(title)
        played: dict[str, Any] = {"horizon": self.rounds, "runs": self.runs, "seed": self.seed}

        def losses(budget: Budget | None) -> np.ndarray:
            options = {**self.options, "holdout": None}  # as the plan was simulated
            policy = chosen.build(self.setting, budget, self.horizon, **options)
            return simulate(policy, world, record=1, **played).runs["regret"].to_numpy()

        return cheapest(chosen.title, self.budget, target, losses)

    def _candidate(self, title: str | None) -> Candidate:
        title = self.best if title is None else title
        if title not in self.fitting:
            raise ArgumentError(
                f"title must be one of {', '.join(self.fitting)}, got {title!r}", "title"
            )
        return self.fitting[title]

    def plot(self, *titles: str, **options: Any) -> Figure:
        """Plot mean regret of some policies at the budget, their proved bounds, and the best policy
        without privacy.

        Args:
            *titles: the policies, as the table writes them; by default the first four.
            **options: as of ``Result.plot``; with ``ax`` no bounds are drawn.

        Returns:
            A matplotlib figure.

        Raises:
            ArgumentError: no regret was simulated, or a policy is not in the table.
        """
        world = self.setting.simulated
        if self.measured is None or world is None or self.setting.best_arm:
            raise ArgumentError("only a plan with simulated regret can be plotted")
        chosen = [self._candidate(title).title for title in titles] or self.table["policy"][:4]
        shown = self.measured.only(chosen)
        policies = [self.measured.policies[title] for title in chosen]
        bounds = bound_curves(policies, world, shown.frame["round"].unique())
        proved = bounds[bounds["bound"].map(lambda name: BOUNDS[name].is_binding)]
        return shown.plot(bounds=None if "ax" in options else proved, **options)

    @property
    def heading(self) -> str:
        """The setting and the budget of the plan, in a line."""
        asked = "no privacy" if self.budget is None else str(self.budget)
        return f"{self.setting.in_words}: {asked}, {self.horizon:,} rounds"

    @property
    def findings(self) -> list[str]:
        """The findings of the plan, in sentences."""
        held = [] if self.holdout is None else [str(self.holdout)]
        measured = [*self._advice(), *self._measurement(), *held]
        return [*measured, *self._theory(), self._conclusions()]

    @cached_property
    def half_widths(self) -> Sequence[HalfWidth]:
        """How wide the intervals of arms will be after the horizon, if the ``best`` policy plays
        it; empty where no interval is proved.
        """
        return half_widths(self.policy(noise="simulation", seed=self.seed), self.horizon)

    def _conclusions(self) -> str:
        """A sentence on what can be said of the arms at the end."""
        if not self.half_widths:
            return f"{at_the_end(self.policy())}."
        first, *others = self.half_widths
        shares = [f"{first.half_width:.3g} for {percent(first.share)} of people"]
        shares += [f"{one.half_width:.3g} for {percent(one.share)}" for one in others]
        free = ", ".join(f"{one.without_noise:.3g}" for one in self.half_widths)
        return (
            f"After {self.horizon:,} people, 95 % intervals of all arms' means have half widths of"
            f" {', '.join(shares)}. Without noise these are {free}. Near the ends of the range they"
            " are smaller."
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan as data.

        Returns:
            Its ``heading``, ``best``, ``table`` as a list of rows, ``findings``, ``half_widths``,
            ``holdout`` and ``left_out``.  NaN is None.
        """
        rows = self.table.astype(object).where(self.table.notna(), None).to_dict("records")
        return {
            "heading": self.heading,
            "best": self.best,
            "table": rows,
            "findings": self.findings,
            "half_widths": [one._asdict() for one in self.half_widths],
            "holdout": self.holdout and self.holdout.to_dict(),
            "left_out": dict(self.left_out),
        }

    def _advice(self) -> Iterator[str]:
        if self.pays is not None:
            yield self._nothing_learned()
            yield str(self.pays)
            return
        asked = self._why_usual()
        if self.best == self.usual:
            yield f"Take {self.best}: {asked}."
            return
        assert self.measured is not None
        lost = self._lost
        own, better = map(_with_interval, map(self.measured.cost_of, (self.usual, self.best)))
        yield (
            f"Take {self.best}, which {lost} {better} here, or {self.usual}, {asked}, which {lost}"
            f" {own}. The difference is beyond doubt, but {self.runs} runs do not show what goes"
            " wrong in one of a thousand."
        )

    def _nothing_learned(self) -> str:
        """A sentence: the best policy was not seen to lose less than choosing at random."""
        measured, beside, saved = self.measured, self.yardsticks, self.saved
        assert measured is not None
        assert beside is not None
        assert saved is not None
        open_ = measured.loss(measured.public[self.best])
        learns = self.budget is not None and paired_lead(beside.random, open_).low > 0.0
        who = "Privacy leaves" if learns else "So few rounds leave"
        shown = "" if saved.mean <= 0.0 else f" that {self.runs} runs could show"
        turned = in_reverse(self.setting) is not None
        order = ", in the mean over both orders of the arms" if turned else ""
        return (
            f"{who} nothing to learn here{shown}: choosing at random loses"
            f" {_with_interval(beside.at_random)}, and {self.best} saves"
            f" {_with_interval(saved)} of it{order}."
        )

    @property
    def _lost(self) -> str:
        return "took" if self.setting.best_arm else "lost"

    def _why_usual(self) -> str:
        row = self.table.set_index("policy").loc[self.usual]
        if row["default"]:
            return "the default"
        if len(self.table) == 1:
            return "the only one that fits"
        promised = row["promise"] < np.inf
        return "the one with the best promise" if promised else "one of those that fit"

    def _measurement(self) -> Iterator[str]:
        measured = self.measured
        if measured is None:
            is_log = self.setting.environment is not None and self.setting.simulated is None
            needed = "that needs an environment, or means or gaps of the arms"
            why = "a log is not simulated but replayed, by `replay`" if is_log else needed
            yield f"Nothing was measured: {why}."
            return
        rounds = "rounds until a search is over, or all where it is not"
        what = rounds if self.setting.best_arm else "regret"
        yield f"Measured: {what}, in {self.runs} runs of {self.rounds:,} rounds."
        if self.setting.rewards != "law" and gaps_of(self.setting.environment) is not None:
            yield "The simulated arms never change. The plan says nothing of arms that change."
        if self.rounds < self.horizon:
            yield f"The plan says nothing of later rounds, up to {self.horizon:,}."
        yield from self._beside()
        if self.budget is None:
            return
        own, rival = measured.cost_of(self.best), measured.cost_without_privacy
        times = ""
        if rival.low > 0.0:
            found = measured.times_public(self.best)
            times = f", {number(found.mean)} times as much{interval_in_words(found)}"
        yield (
            f"{self.best} {self._lost} {reward_amount(own.mean)}, and the best without privacy,"
            f" {measured.best_public}, {reward_amount(rival.mean)}{times}."
        )
        if self.setting.best_arm:
            return
        yield self._whether_free(measured.times_public(self.best))

    def _beside(self) -> Iterator[str]:
        """The regret of the yardsticks."""
        if (beside := self.yardsticks) is None:
            return
        lost = f"Choosing at random loses {_with_interval(beside.at_random)}"
        if beside.exploring is None:
            yield f"{lost}. Exploring first is not compared: {beside.why_not}."
        elif beside.exploring.length == 0:
            yield f"{lost}. Exploring first loses no less, however long it takes."
        else:
            noise = "" if self.budget is None else ", with the noise that spends the budget at once"
            yield (
                f"{lost}. Exploring first for {beside.exploring.length:,} rounds an arm, then"
                f" staying{noise}, loses {_with_interval(beside.exploring.cost)}, at its best"
                " length, which is unknown beforehand."
            )

    def _whether_free(self, times: Estimate) -> str:
        """A sentence on free privacy, as far as the interval of the ratio at the last round
        supports it.
        """
        free = 1.0 + self.tolerance
        within = f"at most {number(free)} times as much"
        if self.free_from is None:
            if times.low > free:
                return f"Privacy is not free within {self.rounds:,} rounds ({within})."
            return f"{self.runs} runs do not show whether privacy is free ({within})."
        if times.high <= free:
            return f"Privacy is free from round {self.free_from:,} on ({within}, to the last one)."
        return (
            f"By the means, privacy is free from round {self.free_from:,} on ({within}, to the last"
            f" one); {self.runs} runs do not show it."
        )

    def _theory(self) -> Iterator[str]:
        proved = self.promises.get(self.best)
        noise = [] if proved is None else [proved.arguments.get(name) for name in _OF_PRIVACY]
        told = any(isinstance(one, int | float) for one in noise)
        if proved is not None and told and not proved.arguments.keys() & set(_OF_TUNING):
            start = free_from(proved.bound, self.tolerance, **proved.arguments)
            when = f"free from {number(start)} rounds on" if np.isfinite(start) else "never free"
            yield f"By {label_of(proved.bound)} it is {when}."
        if self.floor is not None:
            yield (
                f"As T → ∞, no such policy loses less than {self.floor.bound.source} says:"
                f" {reward_amount(self.floor.values[0])} at {self.horizon:,} rounds. This bound is"
                " asymptotic, and short runs may cost more or less."
            )
        if (meet := self._crossover()) is not None:
            decides = f"privacy decides what must be lost up to round {meet:,}"
            leaves = f"bounds leave room for free privacy from round {meet:,} on"
            yield f"In the worst case {decides if meet > self.horizon else leaves}."
        if self.setting.experts and not (self.table["promise"] < self.horizon).any():
            yield (
                "All bounds are at least the horizon. So no bound says more than the range of"
                " rewards does."
            )

    def _crossover(self) -> int | None:
        """The round from which on privacy can be free on the worst of such arms; None if
        unknown.
        """
        known = self.setting
        central = known.shows == "no contexts" and known.trust == "central"
        plain = known.contexts == "none" and known.rewards == "law" and known.n_arms > 1
        if known.best_arm or not (central and plain and isinstance(self.budget, Minimax)):
            return None
        return max(1, math.ceil(crossover(self.budget, n_arms=known.n_arms)))

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """The table to be read, in words.

        Returns:
            Heads, and a row for each policy and yardstick.
        """
        named = zip(self.table["policy"], self.table["default"], strict=True)
        titles = [f"{title} *" if default else title for title, default in named]
        columns = {"policy": titles, "proved at most": self._promised()}
        if self.measured is not None:
            searching = self.setting.best_arm
            ends = zip(self._written("low"), self._written("high"), strict=True)
            columns["rounds" if searching else "regret"] = self._written("mean")
            columns["95 % interval"] = [f"{low} to {high}" for low, high in ends]
            if self.budget is not None:
                prices = self.table[["price", "price_low", "price_high"]]
                columns["price"] = [_price_in_words(Estimate(*row)) for row in prices.to_numpy()]
            if searching:
                columns["wrong"] = list(map(percent, self.table["wrong"]))
            elif self.budget is not None:
                starts = self.table["free_from"]
                columns["free from"] = ["" if pd.isna(one) else f"{one:,}" for one in starts]
        written = [list(row) for row in zip(*columns.values(), strict=True)]
        for name, cost in ({} if self.yardsticks is None else self.yardsticks.by_name).items():
            mean, low, high = map(reward_amount, cost)
            interval = "exact" if cost.low == cost.high else f"{low} to {high}"
            written.append([name, "", mean, interval, *[""] * (len(columns) - 4)])
        return list(columns), written

    def _promised(self) -> list[str]:
        """Bounds as numbers, or why there is none where one was published."""
        written = self._written("promise")
        for i, title in enumerate(self.table["policy"]):
            bound = self.promises[title].bound if title in self.promises else None
            if not written[i] and bound is not None and not bound.is_binding:
                written[i] = "void" if bound.holds == "void" else "order only"
        return written

    def _written(self, column: str) -> list[str]:
        return ["" if np.isnan(one) else reward_amount(one) for one in self.table[column]]

    def _repr_html_(self) -> Html:
        return glance(self.heading, *self.rows(), " ".join(self.findings))
