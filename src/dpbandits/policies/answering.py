"""Answers to decisions: rewards, deadlines, and decisions that are taken back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..constraints import Duration, Integer
from ..errors import ArgumentError
from ..session.deadlines import ASSUMED as ASSUMED_OF_CLOCKS
from ..session.deadlines import ASSUMED_OF_CHANGES as ASSUMED_OF_DEADLINES
from ..session.decisions import Decision
from ..session.options import WIDEST, WILDEST
from ..validation import number, real
from .kept import Kept

if TYPE_CHECKING:
    from ..session.open_arms import Arms
    from .watch import Watch

ASSUMED_OF_CANCELS = "which decisions are cancelled depends on rewards only through releases"
_DEADLINE = Integer(1) | Duration("1s", "365d")  # that a policy may be given later
_LAST_SECOND = 1e11  # since the epoch


class Answering(Kept):
    """The base of policies, as far as they take answers."""

    watch: Watch
    _has_clock: bool
    _arms_by_name: Arms

    def update(
        self,
        reward: float,
        decision: Decision | str | None = None,
        *,
        arm: int | str | None = None,
        at: float | None = None,
    ) -> bool:
        """Take in a reward.

        Args:
            reward: a number; clipped to ``reward_range``, and taken for ``default_reward`` if it is
                missing: NaN, None, ``pandas.NA``, or masked.  A policy that takes reports accepts
                only values that the randomiser can produce.  With ``clip=False``, the reward has to
                be a number within 1e100.
            decision: the value that ``pull`` returned, or its ``token``; by default the last pull.
            arm: the name or number of the arm that the person took, if not the recommended one.
            at: when the reward came, as in ``pull``.

        Returns:
            Whether the policy learns from it, or counts it in the holdout.  False for a round that
            was not recorded, or that a crash made the policy forget, and for an answer past its
            deadline.

        Raises:
            UpdateError: nothing was pulled, the decision is another policy's, it has been
                answered, or its token has expired.
            ArgumentError: the reward is text, a date, complex, an array with axes, or something
                else that is no number; or there is no such arm.  The message does not show the
                value.
            BudgetExhausted, ClaimError: as in ``pull``, for policies that learn from every answer.
        """
        value = self.checked_reward(reward)
        done = None if arm is None else self._arms_by_name.number("arm", arm)
        with self._lock.step:
            return self._took(value, self.session.own(decision), done, self._time(at))

    def expire(self, decision: Decision | str | None = None, *, at: float | None = None) -> bool:
        """Say that no reward will come: it counts as ``default_reward``.  Returns and raises as
        ``update`` does.
        """
        with self._lock.step:
            return self._took(None, self.session.own(decision), None, self._time(at))

    def cancel(self, decision: Decision | str, *, at: float | None = None) -> bool:
        """Take back a decision whose arm was not carried out, before there is a reward.

        The episode lasts one round longer, and the arm stays due for another person.  A user's
        count stays.
        Which decisions are cancelled, and when, is public, and must depend on rewards only through
        releases: the guarantee lists this.

        Args:
            decision: the value that ``pull`` returned, or its ``token``.
            at: when this is, as in ``pull``.

        Returns:
            Whether it was taken back.  False for a round that was not recorded, and for one
            that is past its deadline.  False, too, if its episode is over, contexts are private, or
            the person is held out: then it counts as ``default_reward``.

        Raises:
            UpdateError: as in ``update``.

        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(2, budget=ZCDP(1.0), seed=1)
        >>> policy.cancel(policy.pull())
        True
        """
        with self._lock.step:
            cancelled = self.session.cancel(self.session.own(decision), self._time(at))
            if cancelled and ASSUMED_OF_CANCELS not in self.session.told:
                self.session.told = (*self.session.told, ASSUMED_OF_CANCELS)
            return cancelled

    def erase(self, decision: Decision | str, *, at: float | None = None) -> bool:
        """Forget the reward of a decision that waits for its turn, as its person may demand.

        The round counts as unanswered, with ``default_reward``, and an answer that comes later is
        refused.  A reward that has entered a sum stays there until a release.

        Args:
            decision: the value that ``pull`` returned, or its ``token``.
            at: when this is, as in ``pull``.

        Returns:
            Whether the decision still waited for its turn.

        Raises:
            UpdateError: the decision is another policy's, or its token has expired.

        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(2, budget=ZCDP(1.0), seed=1)
        >>> decision = policy.pull()
        >>> policy.erase(decision), policy.erase(decision)
        (True, False)
        """
        with self._lock.step:
            return self.session.erase(self.session.own(decision), self._time(at))

    def is_open(self, decision: Decision | str, *, at: float | None = None) -> bool:
        """Tell whether answers to a decision come in time.  Whether one has come makes no
        difference.

        Args:
            decision: the value that ``pull`` returned, or its ``token``.
            at: when this is, as in ``pull``.

        Returns:
            False once its deadline has passed, by the clock or by the number of pulls; once
            ``finish`` has released it; and if the round was not recorded.  Where each arm has
            episodes of its own, as in ``AdaPTT``, the deadline alone decides: after ``finish``,
            True may be said of a decision whose answer is late.

        Raises:
            UpdateError: the decision is another policy's, or its token has expired.

        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(2, budget=ZCDP(1.0), answers_within="6h")
        >>> decision = policy.pull(at=0.0)
        >>> policy.is_open(decision, at=60.0), policy.is_open(decision, at=22_000.0)
        (True, False)
        """
        with self._lock:
            own, session = self.session.own(decision), self.session
            return own.recorded and session.is_open(own, self._time(at))

    def tick(self, at: float | None = None) -> int:
        """Release all that is past its deadline by the clock, as ``pull`` does.  Call it in hours
        without a ``pull``, at times that do not depend on answers.

        Args:
            at: as in ``pull``.

        Returns:
            How many pulls have passed their deadline since the last tick or pull.

        Raises:
            ArgumentError: the policy has no clock: ``answers_within`` is no time, and there is no
                ``finish_at``.
            BudgetExhausted, ClaimError: as in ``pull``.

        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(2, budget=ZCDP(1.0), answers_within="6h", seed=1)
        >>> policy.update(1.0, policy.pull(at=0.0), at=60.0)
        True
        >>> policy.tick(at=21_000.0), policy.tick(at=22_000.0)
        (0, 1)
        """
        with self._lock.step:
            self._refuse_time("tick()", "called")
            return self.session.tick(self._time(at))

    def configure(self, *, answers_within: int | str) -> None:
        """Change the deadline of answers from the next episode on.  Policies that learn from every
        answer change it from the next pull on.

        Earlier pulls keep their deadlines, and no pull passes its own before an earlier one does.
        Choose the time of this call independently of unreleased rewards: the guarantee lists this
        as an assumption.

        Args:
            answers_within: a number of pulls, at least 1, or a time such as "6h".

        Raises:
            ArgumentError: it is neither.  Or the policy waits for all answers, or learns from each
                when it comes.

        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(2, budget=ZCDP(1.0), answers_within=20)
        >>> policy.configure(answers_within="6h")
        >>> policy.answers_within
        '6h'
        """
        within: Any = _DEADLINE("answers_within", answers_within)
        with self._lock.step:
            now = self.answers_within
            if now is None or (self.card.learns_at_once and not now):
                raise ArgumentError(
                    f"answers_within must stay {now!r} in a policy without deadlines, got"
                    f" {answers_within!r}",
                    "answers_within",
                )
            added = [ASSUMED_OF_DEADLINES]
            if isinstance(within, str) and not self.settings.uses_clock:
                added.append(ASSUMED_OF_CLOCKS)
            told = self.session.told
            # First: ``_uses_clock`` asks for it.
            self.session.told = (*told, *(one for one in added if one not in told))
            self.session.configure(within)

    @property
    def answers_within(self) -> int | str | None:
        """The deadline of answers, as the constructor or ``configure`` was told last."""
        return self.session.rounds.deadlines.latest

    def checked_reward(self, reward: Any) -> float:
        """A number; where nothing is clipped, or reports come, one that is no outlier."""
        if isinstance(reward, Decision):  # which would count as its arm
            raise ArgumentError(
                "reward must be a number, got a decision: the decision comes second, as in"
                " update(1.0, decision)",
                "reward",
            )
        value = number("reward", reward)
        if self.clip and not self.takes_reports:
            return value
        lo, hi = self.reward_range
        most = WILDEST * self.noise_scale if self.takes_reports else WIDEST
        low, high = (lo - most, hi + most) if self.takes_reports else (-most, most)
        if not low <= value <= high:
            raise ArgumentError(
                f"reward must be a number in [{low:g}, {high:g}], got another number", "reward"
            )
        return value

    def _took(
        self, value: float | None, decision: Decision, done: int | None, at: float | None
    ) -> bool:
        session = self.session
        learned = session.take(value, decision, done, at)
        held = session.holdout if decision.held_out else None  # without a call, in each round
        self.watch.look((session if held is None else held).rounds)
        return learned

    def _time(self, at: object) -> float | None:
        """The time of a call; None for policies without a clock."""
        if at is not None:
            self._refuse_time("at", "given")
            return real("at", at, 0.0, _LAST_SECOND)
        return time.time() if self._uses_clock else None

    @property
    def _uses_clock(self) -> bool:
        if self._has_clock:
            return True
        # From ``configure`` alone, which has told of it.
        return bool(self.session.told) and self.session.rounds.deadlines.uses_clock

    def _refuse_time(self, name: str, what: str) -> None:
        if not self._uses_clock:
            raise ArgumentError(
                f"{name} must not be {what}: this policy has no clock. A policy made with a time,"
                " such as answers_within='6h', has a clock",
                name.removesuffix("()"),
            )
