"""What a policy publishes: releases, estimates, its ledger, its guarantee and its card."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from ..html import Html, glance
from ..inference import Intervals, Verdict, asked
from ..privacy.budgets import Budget
from ..privacy.channels import Certified
from ..privacy.guarantees import Guarantee
from ..privacy.ledger import Ledger, LedgerArrays
from ..protocol import NO_ARM, never, no_estimate, own_alone
from ..session.estimates import ArmEstimates, Diagnostics, Estimates
from ..session.exchange import ASSUMED as ASSUMED_OF_WORKERS
from ..session.exchange import Release, checked_release
from ..session.open_arms import ASSUMED
from ..session.options import WIDEST, WILDEST
from ..validation import integer, shown
from .holdout import HeldOut
from .kept import ASSUMED_OF_PLACES, Kept
from .privacy_card import PrivacyCard
from .sums import Sum, breaks_decisions, no_intervals, reader_of_sums, sums_of, what_breaks

if TYPE_CHECKING:
    import pandas as pd


class Publishing(Kept):
    """The base of policies, as far as they publish released values and their cost."""

    def releases(self, after: int = 0) -> list[Release]:
        """The policy's releases, without the first ``after``, for other workers to learn from.
        Empty for algorithms that learn from their own releases alone.  Without a budget these are
        sums of rewards as they are.

        Raises:
            ArgumentError: ``after`` is no whole number from 0.
        """
        first = integer("after", after, 0)
        with self._lock:
            # Others have kept theirs for intervals.
            made = [] if self.kernels.absorb is own_alone else self.session.exchange.made[first:]
            return [
                Release(one.life, i, self.exchange_key, one.memo, one.values)
                for i, one in enumerate(made, first)
            ]

    def learn_from(self, release: Release | Sequence[Any]) -> bool:
        """Learn from a release of another worker's policy.

        Returns:
            Whether it was new.  A policy takes each release once, and none of its own.

        Raises:
            ArgumentError: it is no release, or of a policy of another class, budget or other
                arguments; or the algorithm learns from its own releases alone.

        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> one, other = (MergedIMED(2, budget=ZCDP(1.0), seed=seed) for seed in (1, 2))
        >>> for _ in range(20):
        ...     decision = one.pull()
        ...     _ = one.update(float(decision.arm == 1))
        >>> all([other.learn_from(release) for release in one.releases()])
        True
        >>> other.pull().arm  # both arms are known
        1
        """
        if self.kernels.absorb is own_alone:
            raise ArgumentError(
                f"release must not be given to {self.preset}, which learns only from its own"
                " releases",
                "release",
            )
        memo, size = self.statistic.memo, self.statistic.size
        most = self.statistic.max_abs_contribution if self.clip else WIDEST
        most += WILDEST * self.noise_scale
        checked = checked_release(release, self.exchange_key, self.n_arms, memo, size, most)
        with self._lock.step:
            new = self.session.learn_from(checked)
            if new and ASSUMED_OF_WORKERS not in self.session.told:
                self.session.told = (*self.session.told, ASSUMED_OF_WORKERS)
            return new

    @property
    def estimates(self) -> Estimates:
        """Estimates of the arms or of the model, from released values.  Where the guarantee holds,
        they may be shown to anyone.
        """
        with self._lock:
            return self._estimated(self.session.state.public, self.ledger.releases)

    def intervals(
        self,
        confidence: float = 0.95,
        difference: tuple[int | str, int | str] | None = None,
        *,
        control: int | str | None = None,
        method: str = "mixture",
    ) -> Intervals:
        """Intervals of the arms' mean rewards that hold at all releases together.  They read
        released values alone, so they cost no privacy.

        Args:
            confidence: the probability that no interval is ever wrong.
            difference: two arms, by number or name, for the mean of the first, less that of the
                second.  None for the means of all arms.
            control: an arm, for the differences of all others to it, which hold together.  The
                union bound divides the error among them.  Choose it beforehand.
            method: "mixture", or "closed" for a closed form, which needs Gaussian noise or none.

        Returns:
            ``Intervals``, with sentences on what breaks them.

        Raises:
            ArgumentError: an argument is out of range, or no interval is proved for the policy.

        >>> from dpbandits import PureDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(2, budget=PureDP(1.0), arm_names=["old", "new"], seed=1)
        >>> for _ in range(400):
        ...     decision = policy.pull()
        ...     _ = policy.update(float(decision.arm == 1))
        >>> policy.intervals()
        <95 % intervals after 13 releases: old: 0 to 1; new: 0.932 to 1>
        """
        with self._lock:
            self._refuse_without("intervals")
            pairs = asked(difference, control, self.n_arms, self.session.arms.number)
            estimates = self.estimates
            assert estimates.sums is not None
            return Intervals.of(
                estimates.sums,
                confidence,
                pairs,
                method=method,
                labels=self.arm_names,
                releases=estimates.releases,
                breaks=tuple(what_breaks(self)),
            )

    def decided(
        self, confidence: float = 0.95, *, gap: float = 0.0, control: int | str | None = None
    ) -> Verdict:
        """Whether it is decided which arm is best, or whether one is better than a control.  Ask it
        as often as you like: it reads released values alone, and costs no privacy.

        Args:
            confidence: the probability that no answer is ever wrong, at all releases together.
            gap: an arm is good enough when no other mean is higher by so much, in the units of
                rewards.  You may ask with several gaps.
            control: an arm that was chosen beforehand.  The arm that leads is compared with it, and
                if the control leads, with all others.  Choose beforehand whether to ask with one:
                each answer has this probability, and both together have not.

        Returns:
            A ``Verdict``, with its intervals, and sentences on what breaks it.

        Raises:
            ArgumentError: an argument is out of range, there is one arm only, or no interval is
                proved for the policy.

        >>> from dpbandits import PureDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(2, budget=PureDP(1.0), arm_names=["old", "new"], seed=1)
        >>> for _ in range(1000):
        ...     decision = policy.pull()
        ...     _ = policy.update(float(decision.arm == 1))
        >>> policy.decided()
        <Decided at 95 %: new has the highest mean>
        """
        with self._lock:
            self._refuse_without("decided")
            if self.n_arms == 1:
                raise ArgumentError("decided() needs two arms or more")
            against = None if control is None else self.session.arms.number("control", control)
            estimates = self.estimates
            assert estimates.sums is not None
            return Verdict.of(
                estimates.sums,
                self._leader,
                confidence,
                gap,
                against,
                labels=self.arm_names,
                releases=estimates.releases,
                breaks=tuple(breaks_decisions(self)),
            )

    def _verdict(
        self, confidence: float = 0.95, control: int | str | None = None
    ) -> Verdict | None:
        """The verdict; None where there is none to give, and for searches that promise an error:
        these have a rule of their own.
        """
        promised = self.kernels.stop is not never and self.config.get("failure_probability")
        if promised or self.n_arms == 1 or no_intervals(self):
            return None
        return self.decided(confidence, control=control)

    def _refuse_without(self, asked: str) -> None:
        """Refuse a question that needs intervals."""
        why = no_intervals(self)
        if why:
            raise ArgumentError(f"{asked}() has no answer for {self.preset}: {why}")

    @property
    def _leader(self) -> int | None:
        """The arm that a search has found, or else that leads; None where unknown."""
        found = self.session.choices.found()
        return self.estimates.leader if found is None else found.arm

    @property
    def released_sums(self) -> pd.DataFrame:
        """The released sums that ``intervals`` reads.  A row has the arm, the rounds of a batch,
        their sum, and how many rows were ``known`` when the batch began.

        It has no rows for policies that learn each answer at once, such as those of local reports:
        every report is a release with noise of its own, and a policy keeps only their means.
        ``intervals`` reads these.
        """
        import pandas as pd  # takes longer to import than all else here

        with self._lock:
            made, every = self.session.exchange.made, self.statistic.sums_of == "arms"
            return pd.DataFrame(sums_of(made, every=every), columns=Sum._fields)

    @property
    def holdout(self) -> HeldOut | None:
        """Releases of held-out people, and what they tell; None without a holdout."""
        return None if self.settings.holdout is None else HeldOut(self)

    @property
    def rounds(self) -> int:
        """The number of recorded rounds of the bandit."""
        with self._lock:
            return self.session.rounds.recorded

    @property
    def diagnostics(self) -> Diagnostics:
        """Counts of how answers were processed, for the operator.  They depend on answers, and the
        guarantee does not cover them.
        """
        with self._lock:
            return Diagnostics.of(*(one.rounds for one in self.session.streams))

    @property
    def retired(self) -> tuple[int, ...]:
        """The arms that are retired."""
        return self.session.rounds.retired

    @property
    def recommendation(self) -> int | None:
        """The arm that a search for the best one recommends; None for policies that play for
        reward.
        """
        with self._lock:
            arm = int(self.kernels.recommend(self.params, self.session.state.public))
        return None if arm == NO_ARM else arm

    @property
    def ledger(self) -> Ledger:
        """All releases so far, and their privacy cost.  With ``max_rounds``, the cost is that of
        the user with most recorded rounds. Among reports it is the largest that a user may have.
        With certified noise it always covers all rounds of a user, because the proof does.
        Held-out people are in ``holdout.ledger`` instead.
        """
        at_most = self.takes_reports or isinstance(self.channel, Certified)
        with self._lock:
            most = self.max_rounds if at_most else self.session.rounds.users.most
        growth = self._terms.growth(self._counter, most)
        return Ledger(self._durable_lines, self._terms.meter(growth))

    @property
    def spent(self) -> Budget | None:
        """The largest privacy loss of any person by now, held out or not; None for nothing, or
        without a budget.
        """
        ledgers = [self.ledger] if self.holdout is None else [self.ledger, self.holdout.ledger]
        found = (one.spent() for one in ledgers)
        return max(filter(None, found), key=attrgetter("value"), default=None)

    def _durable_lines(self) -> LedgerArrays:
        with self._lock:  # which first makes durable what is not yet
            return self.session.state.wall.ledger

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee: its budget, the people it protects, and its assumptions."""
        own = [*self._assumed(), *self.session.told]
        if self.session.rounds.chosen_among and not self.card.hides_contexts:
            own.append(ASSUMED)
        if self.kept_in is not None:
            own.append(ASSUMED_OF_PLACES)
        promise = self._terms.guarantee(own, simulated=self.session.gate.simulated)
        return self._terms.restated(promise, self.session.restored)

    @property
    def guarantee_in_simulations(self) -> Guarantee:
        """The guarantee of a simulation: none, because simulated noise does not protect anyone."""
        return self._terms.guarantee(self._assumed(), simulated=True)

    def card_page(self, audit: Any = None) -> PrivacyCard:
        """Make the privacy card: one page with the guarantee, its assumptions, its enforcement and
        its limits.  It also lists the spent budget and the errata of the publication.

        Args:
            audit: the result of ``dpbandits.audit`` for such a policy, or another object with a
                ``sentence``.

        Returns:
            A ``PrivacyCard``.

        Raises:
            ArgumentError: ``audit`` has no ``sentence``.

        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> MergedIMED(2, budget=ZCDP(1.0), seed=1).card_page().claimed
        ZCDP(rho=1.0)
        """
        if audit is not None and not hasattr(audit, "sentence"):
            raise ArgumentError(
                f"audit must be a result of dpbandits.audit, got {shown(audit)}", "audit"
            )
        with self._lock:
            return PrivacyCard.of(self, audit)

    def _repr_html_(self) -> Html:
        promise = self.guarantee
        spent = "not counted" if promise.holds is None else self.spent or "nothing"
        simulated = "; simulated noise, which protects nobody" if promise.simulated else ""
        rows = [
            ["holds", f"{promise.holds or 'nothing'}{simulated}"],
            ["spent", str(spent)],
            ["rounds", f"{self.rounds:,} recorded"],
        ]
        title = self.name or self.heading
        return Html(glance(title, [], rows) + self.estimates._repr_html_())

    def _estimated(self, public: Any, releases: int) -> Estimates:
        """The estimates of a public side after so many releases."""
        arms = None if self.card.hides_contexts else self._arm_estimates(self.params, public)
        told = {} if arms is None else arms._asdict()
        shape = () if self.kernels.estimate is no_estimate else self._coefficients
        if shape:
            each = [self.kernels.estimate(self.params, public, i) for i in range(math.prod(shape))]
            told["coefficients"] = np.reshape(each, shape)
        copied: dict[str, Any] = {
            name: None if one is None else np.array(one) for name, one in told.items()
        }
        own = arms and ArmEstimates(*(copied[name] for name in ArmEstimates._fields))
        copied.pop("own", None)
        reason = "" if told else self._no_estimates
        estimates = Estimates(releases, **copied, reason=reason, names=self.arm_names)
        if own is not None:
            estimates = replace(estimates, read_sums=reader_of_sums(self, own))
        return estimates.without(self.retired)
