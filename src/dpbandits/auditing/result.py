"""The result of an audit: as data, a sentence, a table and a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..html import Html, glance
from ..plotting.numbers import number
from ..policies import Policy
from ..validation import downward, upward
from .loss_bounds import Claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Audit:
    """The result of the audit of one policy.

    Attributes:
        policy: the attacked policy.
        claim: the promised number, and how it is measured.
        measured: the largest lower bound on the loss that any score proved.
        possible: the bound that the best attack on the same releases can expect with so many runs;
            nan where the law of the releases is not known.
        exposed: the loss of the releases with the canary's record; nan where the claim has none.
        scores: columns score, bound, runs, level (of the bound), counted (in ``measured``).
        adversary: the adversary in the audit.
        horizon, runs, noise, alpha: as in ``audit``; runs per world.
        planted: the bug that was planted; empty without.
        controls: columns planted, bound, outcome: results of the same attack on planted bugs; None
            without.
        seconds: the duration of the audit.
    """

    policy: Policy
    claim: Claim
    measured: float
    possible: float
    exposed: float
    scores: pd.DataFrame
    adversary: str
    horizon: int
    runs: int
    noise: str
    alpha: float
    planted: str
    controls: pd.DataFrame | None
    seconds: float

    @property
    def claimed(self) -> float:
        """The number that is promised."""
        return self.claim.value

    @property
    def ratio(self) -> float:
        """The measured loss as a share of the claim; above 1 the claim is refuted."""
        return self.measured / self.claimed

    @property
    def refuted(self) -> bool:
        """Whether more is lost than is claimed."""
        return self.measured > self.claimed

    @property
    def verdict(self) -> str:
        """ "refuted" or "not refuted"."""
        return "refuted" if self.refuted else "not refuted"

    def to_dict(self) -> dict[str, Any]:
        """The result as data: numbers, the verdict, and a dictionary for each score and control."""
        names = ("claimed", "measured", "possible", "exposed", "ratio", "verdict", "adversary")
        sizes = ("horizon", "runs", "noise", "alpha", "planted", "seconds")
        tables = {"scores": self.scores, "controls": self.controls}
        rows = {
            name: table.to_dict("records") for name, table in tables.items() if table is not None
        }
        return {
            "policy": repr(self.policy),
            "measure": self.claim.measure.symbol,
            **{name: getattr(self, name) for name in (*names, *sizes)},
            **rows,
        }

    @property
    def _noise(self) -> str:
        return "simulated" if self.noise == "simulation" else self.noise

    @property
    def sentence(self) -> str:
        """The result in words, for a page about the policy."""
        symbol = self.claim.measure.symbol
        known = ", and known to be false" if self.policy.card.refuted_because else ""
        return (
            f"In {2 * self.runs:,} attacked runs of {self.horizon:,} rounds, with {self._noise}"
            f" noise, the privacy loss was at least {symbol} ="
            f" {number(downward(self.measured, 3))} (error probability {self.alpha:g}). The claim"
            f" of {number(upward(self.claimed, 3))} is {self.verdict}{known}"
        )

    @property
    def caveat(self) -> str:
        """The scope of the audit, and the limits of its conclusions."""
        noise = f"{self._noise} noise, and these {len(self.scores)} scores"
        tried = f"Tried: one adversary ({self.adversary}), {noise}."
        limits = (
            "Other people, other scores, longer runs, time on the clock and code outside of the"
            " policy were not tried. A bound below the claim does not prove privacy. Only the"
            " theorem does. The bound says that these attacks found no bug."
        )
        if known := self.policy.card.refuted_because:
            limits = f"The claim is known to be false, whatever these attacks found. {known}."
        elif self.refuted:
            limits = (
                "The claim is false for one of these pairs of data sets and scores, unless this is"
                " a rare accident."
            )
        if self.noise == "simulation":
            limits += (
                " The attacks do not use the last bits of floats, which may reveal more: simulated"
                " noise protects nobody."
            )
        return f"{tried} {limits}"

    def __str__(self) -> str:
        lines = [f"{self.policy!r}", f"{self.sentence}."]
        if self.planted:
            lines.insert(1, f"Planted: {self.planted}.")
        if self.possible == self.possible:
            lines.append(f"The best attack on these releases may expect {number(self.possible)}.")
        lines += [f"  {score:<32}{bound:>8}  {runs}" for score, bound, runs in self._rows()]
        rows = () if self.controls is None else self.controls.itertuples(index=False)
        lines += [f"  planted: {row.planted}: {number(row.bound)}, {row.outcome}" for row in rows]
        return "\n".join([*lines, self.caveat])

    def _rows(self) -> list[tuple[str, str, str]]:
        names = [name if counts else f"{name} (not counted)" for name, _, counts in self._bars()]
        runs = [f"{count:,} runs" for count in self.scores["runs"]]
        return list(zip(names, map(number, self.scores["bound"]), runs, strict=True))

    def _bars(self) -> list[tuple[str, float, bool]]:
        columns = (self.scores[name].tolist() for name in ("score", "bound", "counted"))
        return list(zip(*columns, strict=True))

    def _repr_html_(self) -> Html:
        heads = ["score", f"{self.claim.measure.symbol} at least", "from"]
        title = f"Audit: {self.verdict}"
        return glance(title, heads, self._rows(), f"{self.sentence}. {self.caveat}")

    def plot(self, *, width: float | None = None, style: str | None = None) -> Figure:
        """Plot the bounds of all scores beside the claimed and the possible loss.

        Args:
            width: in inches; by default 6.4, or the width of ``style``.
            style: "page" (the default) or a column of a paper, as of ``Result.plot``.

        Returns:
            A matplotlib figure that shows itself in a notebook.

        Raises:
            ArgumentError: there is no such style.
        """
        from ..plotting.audits import audit_bars  # brings matplotlib, which takes a while

        title = f"{self.policy.label}, {self.policy.budget}: {self.verdict}"
        symbol = self.claim.measure.symbol
        levels = {"claimed": self.claimed, "possible": self.possible}
        return audit_bars(self._bars(), symbol, **levels, title=title, width=width, style=style)
