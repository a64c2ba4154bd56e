"""The arms that a policy offers: which are open to a person, and which are retired."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from ..protocol import never
from .kept import Kept

if TYPE_CHECKING:
    from ..session.open_arms import Arms


class Offering(Kept):
    """Methods of policies that open and close arms."""

    _arms_by_name: Arms

    def retire(self, arm: int | str) -> None:
        """Serve an arm no more, until it is added again.

        Answers that are on their way are still taken.  An episode of the arm that runs is filled
        with default rewards, which contain no person's data.  Choose the time of this call
        independently of unreleased rewards.

        Args:
            arm: its name or number.

        Raises:
            ArgumentError: there is no such arm, no other is left, or the policy cannot choose among
                some of its arms: ``available`` is refused then, too.  Searches for the best arm
                compare all of them, and so does a holdout with ``one_sum`` or ``targets``.

        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(3, budget=ZCDP(1.0), arm_names=["a", "b", "c"], seed=1)
        >>> policy.retire("a")
        >>> policy.pull().name
        'b'
        """
        number = self._arms_by_name.number("arm", arm)
        with self._lock.step:
            self._refuse_masks("arm", "retired")
            self._refuse_comparison()
            self.session.retire(number)

    def add(self, arm: int | str) -> None:
        """Serve a retired arm again.  ``n_arms`` is the largest number of arms there may ever be,
        so retire future arms at the start.

        Args and errors are those of ``retire``.
        """
        number = self._arms_by_name.number("arm", arm)
        with self._lock.step:
            self._refuse_masks("arm", "added")
            self.session.add(number)

    @property
    def takes_masks(self) -> bool:
        """Whether it can choose among some of its arms."""
        return self.kernels.skips_closed

    def _refuse_masks(self, argument: str, what: str) -> None:
        if not self.takes_masks:
            raise ArgumentError(
                f"{argument} must not be {what} with {self._call(self.arguments)}: this policy"
                " always chooses among all arms",
                argument,
            )
        if argument == "arm" and self.kernels.stop is not never:
            raise ArgumentError(
                f"arm must not be {what} in a search, which compares all arms", "arm"
            )

    def _refuse_comparison(self) -> None:
        holdout = self.settings.holdout
        if holdout is not None and (holdout.one_sum or holdout.targets):
            what = "one_sum" if holdout.one_sum else "targets"
            raise ArgumentError(
                f"arm must not be retired: with {what} the holdout compares all arms", "arm"
            )

    def _refuse_private_masks(self, seen: Any, available: object) -> None:
        """Where contexts are private, so are a person's open arms, and a held-out person's arm must
        not depend on them.
        """
        if not self.card.hides_contexts or self.settings.holdout is None:
            return
        if available is not None:
            raise ArgumentError(
                "available must not be given: with a holdout and private contexts all arms are open"
                " to everybody",
                "available",
            )
        if len(seen) < self.n_arms:
            raise ArgumentError(
                f"contexts must have a row for each of the {self.n_arms} arms: with a holdout and"
                " private contexts all arms are open to everybody",
                "contexts",
            )

    def _offered(
        self, shown: Any, available: Iterable[int | str] | None = None
    ) -> tuple[Any, np.ndarray | None]:
        """The contexts, with rows for all arms, and the mask of open arms; None if all are open."""
        arms, retired, n = self._arms_by_name, self.session.rounds.retired, self.n_arms
        if available is not None:
            self._refuse_masks("available", "given")
        if not isinstance(shown, np.ndarray) or len(shown) == n:
            every = available is None and not retired
            return shown, None if every else arms.open(available, retired, n)
        few, among = len(shown), arms.open(available, retired, n)
        if self.card.hides_contexts and among is not None and not among[:few].any():
            # No candidate of this person is open.  That is as private as the candidates are, so the
            # round has no features.
            self.session.rounds.blanked += 1
            return np.zeros((n, shown.shape[1])), among
        rows = np.full((n, shown.shape[1]), np.nan)
        rows[:few] = shown  # of the others nothing was shown
        return rows, arms.open(available, retired, few)
