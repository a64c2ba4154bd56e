"""Inspect a saved policy without loading it to continue.

The result uses the public arrays, the ledger, and the largest count of rounds of a user.  No
private data are read from the file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .constraints import Range
from .errors import ArgumentError
from .html import Html, glance
from .inference import Batches, Intervals, Noise, ReleasedSums, Verdict, asked
from .policies.chooser import Chooser
from .policies.holdout import HeldOut
from .policies.loading import read
from .policies.policy import Policy
from .policies.privacy_card import PrivacyCard, spent
from .policies.registry import arguments_of_today, find, of_this_version
from .policies.sums import BREAK_ALL, OF_A_TABLE, rounding_of
from .privacy.budgets import Budget
from .privacy.guarantees import Guarantee
from .privacy.ledger import Ledger
from .session import format5
from .session.estimates import Estimates
from .session.packing import parted
from .session.saved_head import Layout, filled_public, public_arrays
from .session.saved_rows import fill_releases
from .stores import FilePlace, Place
from .stores.addresses import place_at
from .stores.format5 import is_format5, is_superseded5, read5
from .stores.witness import Witness
from .tables.columns import Frame, column, column_names, flat
from .tables.manners import PUBLIC, WHOLE_NUMBERS, Manner, arms
from .validation import choice, integer, real

_MOST_ARMS = 10**6


@dataclass(frozen=True, eq=False, repr=False)
class Inspection:
    """The public facts of a saved policy, as ``inspect`` returns them.

    Attributes:
        policy: the call that makes it: class, arguments and budget.
        guarantee: its privacy guarantee.
        ledger: its releases.  A file of an earlier version may have announced more since its save;
            each is charged, made or not.
        estimates: estimates from the released values.
        rounds: the number of recorded rounds.
        superseded: whether the state folder knows that the policy goes on elsewhere, or has made
            more than is here; the ledger then lacks later releases.
        card: its privacy card.
    """

    policy: str
    guarantee: Guarantee
    ledger: Ledger
    estimates: Estimates
    rounds: int
    superseded: bool
    card: PrivacyCard
    _policy: Policy

    def intervals(
        self,
        confidence: float = 0.95,
        difference: tuple[int | str, int | str] | None = None,
        *,
        control: int | str | None = None,
        method: str = "mixture",
    ) -> Intervals:
        """Intervals of the arms' means, as ``Policy.intervals`` gives them."""
        return self._policy.intervals(confidence, difference, control=control, method=method)

    def decided(
        self, confidence: float = 0.95, *, gap: float = 0.0, control: int | str | None = None
    ) -> Verdict:
        """Whether it is decided which arm is best, as ``Policy.decided`` tells."""
        return self._policy.decided(confidence, gap=gap, control=control)

    def chooser(self) -> Chooser:
        """The public half of the policy, as it was saved: see ``Policy.chooser``."""
        return self._policy.chooser()

    @property
    def spent(self) -> Budget | None:
        """The largest privacy loss of any person by now; None for nothing, or without a budget."""
        return self._policy.spent

    @property
    def holdout(self) -> HeldOut | None:
        """Releases of held-out people, and what they tell; None without a holdout."""
        return self._policy.holdout

    @property
    def facts(self) -> dict[str, str]:
        """All but the estimates, in words."""
        found = {
            "policy": self.policy,
            "guarantee": str(self.guarantee),
            "spent": spent(self.guarantee, self.spent),
            "releases": f"{self.ledger.releases:,}",
            "rounds": f"{self.rounds:,} recorded",
        }
        if self.holdout is not None:
            found["holdout"] = f"{self.holdout}. {self.holdout.ledger.releases:,} releases"
        if self.superseded:
            found["warning"] = (
                "This is a copy, or an older save: the policy goes on elsewhere, and may have spent"
                " more than is said here."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """The facts as data.

        Returns:
            policy, guarantee, spent, releases, rounds, superseded, and arms: a dictionary for each,
            with None for unknown numbers.
        """
        estimates, columns = self.estimates, ("means", "low", "high")
        found = {name: getattr(estimates, name) for name in columns}
        given = {name: column.tolist() for name, column in found.items() if column is not None}
        arms = [dict(zip(given, row, strict=True)) for row in zip(*given.values(), strict=True)]
        return {
            "policy": self.policy,
            "guarantee": self.guarantee.to_dict(),
            "spent": self.spent and self.spent.to_dict(),
            "releases": self.ledger.releases,
            "rounds": self.rounds,
            "superseded": self.superseded,
            "arms": [
                {"arm": i, "name": estimates.names[i] if estimates.names else None, **one}
                for i, one in enumerate(arms)
            ],
        }

    def __repr__(self) -> str:
        return f"<Inspection of {self.policy}: spent {spent(self.guarantee, self.spent)}>"

    def _repr_html_(self) -> Html:
        facts = glance("Inspection", [], [list(fact) for fact in self.facts.items()])
        return Html(facts + self.estimates._repr_html_())


def inspect(where: str | os.PathLike[str] | Place) -> Inspection:
    """Look at a saved policy without loading it, as often as needed.

    The policy may be running in another process, or have secure noise.  This call writes and claims
    nothing, and makes no policy that could release anything.

    Args:
        where: the place or file that ``Policy.save`` wrote; a file has its journal beside it.

    Returns:
        An ``Inspection``: the ledger, the estimates and the privacy card.

    Raises:
        ArgumentError: ``where`` is neither a place nor the path of a file.
        StateFileError: the file or its journal is damaged, not ours, or from another version.
        FileNotFoundError: there is no policy in that place.
        StoreError: the place cannot be read.
        MissingExtra: the policy has secure noise, and the extra ``secure`` is not installed.

    Example:
        >>> import tempfile, dpbandits as dpb
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     policy = dpb.papers.concentrated.AdaCUCB(2, budget=dpb.ZCDP(1.0), seed=1)
        ...     path = policy.save(folder + "/trial.dpb")
        ...     policy.update(1.0, policy.pull())
        ...     _ = policy.pull()  # which releases
        ...     dpb.inspect(path).spent
        True
        ZCDP(rho=1.0)
    """
    place = place_at(where)
    if isinstance(place, FilePlace) and is_format5(place.path):
        policy, superseded = _shown5(place)
    else:
        policy, superseded = _shown(place)
    policy._inspected = place  # which the card names
    return Inspection(
        policy=policy.heading,
        guarantee=policy.guarantee,
        ledger=policy.ledger,
        estimates=policy.estimates,
        rounds=policy.rounds,
        superseded=superseded,
        card=policy.card_page(),
        _policy=policy,
    )


def intervals(
    of: Policy | str | os.PathLike[str] | Place | Frame,
    confidence: float = 0.95,
    difference: tuple[int | str, int | str] | None = None,
    *,
    control: int | str | None = None,
    method: str = "mixture",
    noise: Literal["Gaussian", "Laplace"] | None = None,
    scale: float = 0.0,
    reward_range: tuple[float, float] = (0.0, 1.0),
    n_arms: int | None = None,
    grid: float = 0.0,
) -> Intervals:
    """Intervals of arms' means that hold at all releases together.

    Args:
        of: a policy; a place that keeps one, which is only read; or a table of released sums, in
            the order of their releases.  Its columns are those of ``Policy.released_sums``.
            Without ``known``, each batch began after the row before.
        confidence, difference, control, method: as of ``Policy.intervals``.
        noise: for a table, the noise on each sum; None for none.
        scale: for a table, that of Laplace noise, or the standard deviation of Gaussian noise.
        reward_range: for a table, that of the rewards.
        n_arms: for a table, how many arms there were; by default those up to its last one.  All
            of them share the error, also those without a row.
        grid: for a table of secure noise, the grid to which rewards were rounded.

    Returns:
        ``Intervals``.

    Raises:
        ArgumentError: an argument is out of range, or no interval is proved for the policy.
        StateFileError, FileNotFoundError, StoreError: as of ``inspect``.

    Example:
        >>> import dpbandits as dpb
        >>> sums = {"arm": [0, 1], "rounds": [500, 500], "sum": [251.3, 390.9]}
        >>> dpb.intervals(sums, difference=(1, 0), noise="Laplace", scale=1.0)
        <95 % intervals after 2 releases: 1 - 0: 0.1656 to 0.3883>
    """
    if isinstance(of, Policy):
        return of.intervals(confidence, difference, control=control, method=method)
    if isinstance(of, str | os.PathLike | Place):
        return inspect(of).intervals(confidence, difference, control=control, method=method)
    lo, hi = Range()("reward_range", reward_range)
    if noise is not None:
        choice("noise", noise, ("Gaussian", "Laplace"))
        scale = real("scale", scale, 0.0, strict=True)
    arm, rounds, total, known = _released(of)
    law = Noise(scale / (hi - lo) if noise else 0.0, noise == "Laplace")
    batches = Batches(arm, rounds, (total - rounds * lo) / (hi - lo), known)
    least = int(arm.max()) + 1
    count = least if n_arms is None else integer("n_arms", n_arms, least, _MOST_ARMS)
    rounding = rounding_of(real("grid", grid, 0.0), lo, hi)
    cells = tuple(batches.cells(a, law) for a in range(count))
    sums = ReleasedSums(cells, law, lo, hi - lo, rounding)
    return Intervals.of(
        sums,
        confidence,
        asked(difference, control, count, lambda name, one: integer(name, one, 0, count - 1)),
        method=method,
        labels=None,
        releases=len(arm),
        breaks=(*BREAK_ALL, OF_A_TABLE),
    )


def _released(frame: Frame) -> tuple[np.ndarray, ...]:
    """Arms, rounds, sums, and how many rows were known when each batch began."""

    def read(name: str, manner: Manner) -> np.ndarray:
        found = column(frame, name, argument="of")
        return flat("of", found, manner, at=f"column {name!r}")

    arm, rounds = read("arm", arms(_MOST_ARMS)), read("rounds", WHOLE_NUMBERS)
    total, order = read("sum", PUBLIC), np.arange(len(arm))
    known = read("known", WHOLE_NUMBERS) if "known" in (column_names(frame) or ()) else order
    if not (len(arm) and (rounds >= 1).all()):
        raise ArgumentError(
            "of must have at least one row, and each row at least one round. If the policy learns"
            " from each answer at once, its table lists no sums: pass the policy itself",
            "of",
        )
    if not (known <= order).all():
        raise ArgumentError(
            "of (column 'known') must be at most the number of earlier rows, in each row",
            "of",
        )
    return arm, rounds, total, known


def _shown(place: Place) -> tuple[Policy, bool]:
    """The public side of a policy, and whether it goes on elsewhere."""
    about, (mark, head, rows) = read(place)
    with of_this_version(place):
        policy = find(about["class"])(**arguments_of_today(about["config"]))
        public, _ = parted(head)
        layout = Layout(**about["layout"])
        block = filled_public(policy.session, layout, public)
        fill_releases(policy.session, list(rows))
        policy.session.state.fill_public(policy._of_today(public_arrays(layout, block)))
    return policy, Witness(about["policy"]).is_behind(mark)


def _shown5(place: FilePlace) -> tuple[Policy, bool]:
    header, arrays, announced = read5(place.path)
    with of_this_version(place):
        life, saves = header["life"]
        policy = find(header["class"])(**arguments_of_today(header["config"]))
        format5.show(policy.session, header, policy._of_today(arrays))
    format5.charge(policy.session, announced)
    format5.charge_older_noise(policy.session, header)
    return policy, is_superseded5(life, saves)
