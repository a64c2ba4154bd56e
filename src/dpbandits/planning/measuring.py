"""Measure regret and the price of privacy in a short simulation of the setting.

Runs are paired: run i of every policy meets the same noise of the environment.  So numbers that
compare two policies have the jackknife's error, run by run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from ..policies import Policy
from ..report.claims import VERDICT_CONFIDENCE
from ..report.intervals import Statistic, curve, price, ratio
from ..report.means import CONFIDENCE, Estimate, estimate
from ..simulation import PolicySetting, Result
from ..simulation.settings import keyed


@dataclass(frozen=True)
class Measured:
    """A simulation, with the quantities that plans report."""

    result: Result
    policies: Mapping[str, Policy]  # private ones by their titles
    public: Mapping[str, Policy]  # without privacy, with the open counterpart of every private one
    searching: bool  # whether the rounds of a search are counted, and not regret

    def loss(self, policy: Policy) -> np.ndarray:
        """The cost of every run, shape (runs,): regret, or rounds until a search was over.  For a
        search that was not over, it is the number of simulated rounds.
        """
        rows = self._of(policy, "runs")
        if not self.searching:
            return rows["regret"].to_numpy()
        return rows["stopped"].fillna(self.result.info["horizon"]).to_numpy()

    def wrong(self, policy: Policy) -> np.ndarray:
        """Whether a search named another arm than the best, in every run."""
        return self._of(policy, "runs")["wrong"].to_numpy()

    def cost_of(self, title: str) -> Estimate:
        """The mean of the ``loss`` of a private policy."""
        return estimate(self.loss(self.policies[title]))

    @property
    def cost_without_privacy(self) -> Estimate:
        """The mean of the ``loss`` of the best one without privacy."""
        return estimate(self.loss(self.public[self.best_public]))

    def price(self, title: str) -> Estimate:
        """The additional regret of a private policy over its open counterpart, as a share, or
        NaN.
        """
        private, open_ = self.loss(self.policies[title]), self.loss(self.public[title])
        if open_.mean() <= 0.0:
            return Estimate(math.nan, math.nan, math.nan)
        return _paired([private, open_], price)

    @cached_property
    def best_public(self) -> str:
        """The policy with the least loss without privacy, among those that have learned
        anything.
        """
        learned = [title for title, policy in self.public.items() if self._learned(policy)]
        return min(learned or self.public, key=lambda title: self.loss(self.public[title]).mean())

    def times_public(self, title: str) -> Estimate:
        """The loss as a multiple of that of the best policy without privacy."""
        rival = self.public[self.best_public]
        return _paired([self.loss(self.policies[title]), self.loss(rival)], ratio)

    def free_from(self, title: str, tolerance: float) -> int | None:
        """The recorded round from which on privacy is free for it, as defined by
        ``Plan.free_from``.
        """
        if self.searching:
            return None
        private = self._curve(self.policies[title])
        rival = self._curve(self.public[self.best_public]).to_numpy()
        paid = np.flatnonzero(private.to_numpy() > rival + tolerance * np.abs(rival))
        rounds = private.index[paid[-1] + 1 :] if paid.size else private.index
        return int(rounds[0]) if len(rounds) else None

    def beaten(self, favourite: str, rivals: Iterable[str]) -> str | None:
        """The best rival among those with significantly less loss than the favourite.  Intervals of
        the differences of means hold for all rivals at once.

        A policy without a release has chosen blindly, and lost little if the first arm was a good
        one.
        """
        losses = {one: self.loss(self.policies[one]) for one in rivals if one != favourite}
        own = self.loss(self.policies[favourite])
        each = 1.0 - (1.0 - VERDICT_CONFIDENCE) / max(len(losses), 1)
        better = {
            title: loss.mean()
            for title, loss in losses.items()
            if self._learned(self.policies[title]) and paired_lead(own, loss, each).low > 0.0
        }
        return min(better, key=lambda title: better[title]) if better else None

    def only(self, titles: Iterable[str]) -> Result:
        """The simulation of these private policies, and of the best one without privacy."""
        chosen = [self.policies[title] for title in titles]
        shown = dict.fromkeys([*chosen, self.public[self.best_public]])
        settings = keyed(map(PolicySetting.of, shown))
        frame = pd.concat([self._of(policy, "frame") for policy in shown])
        runs = pd.concat([self._of(policy, "runs") for policy in shown])
        return replace(self.result, frame=frame, runs=runs, settings=settings)

    def _learned(self, policy: Policy) -> bool:
        return bool(self._of(policy, "runs")["releases"].any())

    def _curve(self, policy: Policy) -> pd.Series:
        return self._of(policy, "frame").groupby("round")["regret"].mean()

    def _of(self, policy: Policy, table: str) -> pd.DataFrame:
        keys, rows = PolicySetting.of(policy).keys, getattr(self.result, table)
        return rows[(rows["policy"] == keys["policy"]) & (rows["budget"] == keys["budget"])]


def _paired(
    columns: Sequence[np.ndarray], statistic: Statistic, confidence: float = CONFIDENCE
) -> Estimate:
    return Estimate(*map(float, curve([one[np.newaxis] for one in columns], statistic, confidence)))


def paired_lead(losses: np.ndarray, lower: np.ndarray, confidence: float = CONFIDENCE) -> Estimate:
    """The loss of the first less that of the second, run by run."""
    return _paired([losses, lower], lambda means: means[..., 0] - means[..., 1], confidence)
