"""Policy: an algorithm bound to a budget and its state, ready to ``pull`` and ``update``.

``configured`` holds a policy's arguments, and its terms hold its guarantee.  Its session runs the
rounds, and the session's gate releases statistics.  This module has the methods that users call,
and those that authors of algorithms provide.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from ..constraints import Choice, Constraints, Duration, Integer
from ..errors import ArgumentError, StoreError
from ..html import Html, glance
from ..kernel import Kernel
from ..privacy.budgets import Budget
from ..privacy.channels import Certified
from ..privacy.continual import Counter
from ..privacy.guarantees import Guarantee
from ..privacy.ledger import Ledger, LedgerArrays
from ..protocol import NO_ARM, Kernels, Statistic, blind, never, no_estimate, own_alone
from ..session import arrivals
from ..session.deadlines import ASSUMED as ASSUMED_OF_CLOCKS
from ..session.deadlines import ASSUMED_OF_CHANGES as ASSUMED_OF_DEADLINES
from ..session.decisions import Decision
from ..session.estimates import UNKNOWN, ArmEstimates, Diagnostics, Estimates
from ..session.exchange import ASSUMED as ASSUMED_OF_WORKERS
from ..session.exchange import Release, checked_release
from ..session.gate import Gate
from ..session.open_arms import ASSUMED, Arms
from ..session.options import WIDEST, WILDEST, Settings, settings_of
from ..session.rounds import checked_user
from ..session.session import Session
from ..session.state import State
from ..stores import User
from ..validation import integer, number, real, shown
from .chooser import Chooser
from .kept import ASSUMED_OF_PLACES, Kept
from .making import PolicyClass, Signature
from .presets import Composition
from .privacy_card import PrivacyCard
from .registry import preset_of
from .terms import Terms
from .watch import Watch

ASSUMED_OF_CANCELS = "which decisions are cancelled depends on rewards only through releases"
_DEADLINE = Integer(1) | Duration("1s", "365d")  # that a policy may be given later
_RAISE = "raise"
_ON_FAILURE = Choice(_RAISE, "serve")
_LAST_SECOND = 1e11  # since the epoch


class _Begun:
    """The session of a policy, which begins at its first use."""

    def __get__(self, policy: Any, _: Any) -> Session:
        if policy is None:
            return self  # type: ignore[return-value]
        # The policy's own lock, also within a step: ``cached_property`` has one for all policies.
        with policy._lock.lock:
            if "session" not in policy.__dict__:
                policy.__dict__["session"] = policy._new_session()
            return policy.__dict__["session"]


class Policy(Kept, metaclass=PolicyClass):
    """The base of all policies.

    A subclass gives ``card``, ``kernels`` and ``_params``.  If it releases more than one number at
    a time, it also gives ``_statistic``.  Its constructor stores the attributes that these use, and
    then calls this one.  The subclass registers itself with ``@register(...)``, which also sets
    ``example``.
    """

    kernels: Kernels
    sees: ClassVar[str] = ""  # what ``pull`` takes: "contexts", "advice", or nothing
    example: ClassVar[dict[str, Any]] = {}
    constraints: ClassVar[Constraints] = {**Settings.constraints, "n_arms": Integer(1, 10**6)}
    learns_off_policy: ClassVar[bool] = False  # from arms that others have chosen: see ``logs``
    __signature__ = Signature()

    _lost: tuple[Decision, ...] = ()  # decisions that nobody got
    takes_reports = False  # rewards arrive noisy, and the policy's own wall adds nothing
    _options: ClassVar[dict[str, Any]] = {}  # what ``**options`` takes beyond ``Options``: defaults

    def __init__(
        self,
        config: dict[str, Any],
        *,
        budget: Budget | None,
        n_arms: int | None = None,
        composition: Composition | None = None,
        **options: Any,
    ) -> None:
        name = type(self).__name__
        settings = settings_of(name, options)
        self.n_arms: int = config["n_arms"] if n_arms is None else n_arms
        self.budget = budget
        self.reward_range = lo, _ = settings.reward_range
        self.config = MappingProxyType({**config, "budget": budget, **vars(settings)})
        if composition is not None:
            self.kernels, self.card = composition
            if found := preset_of(type(self), self.config):
                name, self.card = found[0].name, replace(self.card, **found[0].about)
        if options.get("grid") is None and settings.grid != self._default_grid:
            settings = replace(settings, grid=self._default_grid)
            self.config = MappingProxyType({**self.config, "grid": settings.grid})
        self.calibration, self.clip = settings.calibration, settings.clip
        self.choices_public, self.max_rounds = settings.choices_public, settings.max_rounds
        self.name = settings.name
        self._arms_by_name = Arms(self.n_arms, settings.arm_names)
        self.arm_names = settings.arm_names
        sent = bool(config.get("reports") or config.get("messages"))
        self.takes_reports = sent or type(self).takes_reports
        self.noise_source = settings.source(self.takes_reports)
        default = settings.default_reward
        self.default_reward = self.noise_source.to_grid(lo if default is None else default)
        self.settings, self._has_clock = settings, settings.uses_clock
        if self.card.hides_contexts and self.choices_public:
            raise ArgumentError(
                "choices_public must be False where contexts are private, and with them arms, got"
                " True",
                "choices_public",
            )
        self._terms = Terms(
            name, self.card, budget, settings, self.takes_reports, self.noise_source
        )
        self.channel = self._terms.channel  # a counter depends on its family
        self.channel = self._terms.shared_channel(self._counter)
        self.statistic = self._statistic()
        self.params = self._params()
        self._gate = Gate(
            kernels=self.driven,
            params=self.params,
            statistic=self.statistic,
            channel=self.channel,
            noise=self.noise_source,
            meter=self.meter,
            ledger_family=self._terms.ledger_family(self.statistic),
            private=budget is not None,
            reports=self.takes_reports,
        )
        self.watch = Watch(settings.name or name, settings.reward_range)
        self._begin_life()
        self._built = True

    # What a subclass provides -----------------------------------------------------------------

    @abstractmethod
    def _params(self) -> Any:
        """The algorithm's ``params``, once the channel is calibrated."""

    def _statistic(self) -> Statistic:
        """The statistic that each release contains; by default one sum of rewards."""
        return Statistic.of_rewards(self.reward_range)

    @property
    def _counter(self) -> Counter | None:
        """The counter of running sums; None for statistics that are released by themselves."""
        return None

    def params_for(self, n: int) -> Any:
        """``params`` under which an arm's first batch has n rounds, where batches may be of any
        length: those of a public log tell most in one.  None where lengths are the algorithm's.
        """
        return None

    def _of_today(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Arrays that were saved, also of an earlier version, as this one has them."""
        return dict(arrays)

    def _assumed(self) -> Sequence[str]:
        """The assumptions of this guarantee, beside those of all guarantees."""
        return ()

    _no_estimates = UNKNOWN  # why there are neither means nor coefficients

    @staticmethod
    def _arm_estimates(params: Any, public: Any) -> ArmEstimates | None:
        """Estimates for every arm, from public quantities only; None where there are none."""
        return None

    @property
    def _coefficients(self) -> tuple[int, ...]:
        """The shape of the coefficients that the kernel ``estimate`` returns one by one."""
        return ()

    def seen(self, contexts: Any) -> Any:
        """The contexts for ``choose``: a matrix of its own, or 0 for nothing."""
        if contexts is not None:
            raise ArgumentError(
                f"contexts must not be given, because {self.preset} takes none",
                "contexts",
            )
        return 0

    @property
    def dimension(self) -> int:
        """The number of features of each arm; 0 for policies without contexts."""
        return 0

    def takes_shape(self, shape: tuple[int, ...], arm: int) -> bool:
        """Whether contexts of that shape may have led to the choice of an arm."""
        return bool(self.sees)

    def alters(self, context_bound: float) -> bool:
        """Whether ``preprocess_contexts`` may change the contexts of an environment with that
        bound.
        """
        return False

    # What users call --------------------------------------------------------------------------

    def pull(
        self,
        contexts: Any = None,
        *,
        user: User | None = None,
        available: Iterable[int | str] | None = None,
        at: float | None = None,
        on_store_failure: Literal["raise", "serve"] = "raise",
    ) -> Decision:
        """Choose the arm for the next person.

        Args:
            contexts: the information known before choosing. For policies that take contexts:
                features of every candidate or every arm, shape (k, d).  There may be fewer
                candidates than arms.  For policies with a model per arm: one vector, shape (d,), is
                enough.  For policies that take advice: each expert's probability for each arm,
                shape (N, K).  Pass an array, lists, or a pandas or Arrow table with the same rows.
            user: a string or an integer that always identifies this person; for policies with
                ``max_rounds``.  After that many recorded rounds, further rounds are not recorded.
                Nor is a second round of the person in one release.
            available: the arms, by name or number, that may be served to this person; by default
                all that are not retired.  The round is not recorded while an unavailable arm's
                episode runs.
            at: when this is, in seconds since the epoch, for policies with a clock.  By default
                now.  A time before that of an earlier call counts as that time.
            on_store_failure: "serve" chooses from the values that were durable last if the place
                of the policy cannot be written.  Such a round is not recorded.

        Returns:
            A ``Decision``; it equals its arm, and serves as an index.

        Raises:
            ArgumentError: the policy cannot choose among some of its arms, or none is available.
                Or the contexts do not have the policy's shape, or hold a number that is not finite
                (private contexts count it as 0).  Or ``user`` is missing, unexpected, or no valid
                name. Or this policy is the server of people's devices.  Or a due release has a sum
                that could be too large for exact secure noise; later pulls use public values alone.
            BudgetExhausted: a release is due that the budget does not allow.  Later pulls use
                public values alone.
            ClaimError: a release is due under a budget, and this process is a fork; or the policy
                was saved, and has been loaded elsewhere.
            StoreError: the policy was saved, and its place cannot be written.  Nothing is lost: the
                next call writes it first.
        """
        if self._serving:
            raise ArgumentError(
                f"{self._serving} must be False for pull(): this policy is the server of"
                " people's devices, and device() has the arm",
                self._serving,
            )
        name = checked_user(user, self.max_rounds)
        if on_store_failure is not _RAISE:
            _ON_FAILURE("on_store_failure", on_store_failure)
        made: Decision | None = None
        try:
            with self._lock.step:
                now, session = self._time(at), self.session
                if self._lost:
                    self._expire_lost(now)
                rounds = session.rounds
                counted = rounds.blanked, rounds.scaled
                try:
                    shown, open_arms = self._offered(self.seen(contexts), available)
                except ArgumentError:  # after which nothing has happened
                    rounds.blanked, rounds.scaled = counted
                    raise
                if open_arms is not None:
                    rounds.chosen_among = True
                made = session.pull(shown, name, open_arms, now)
                return made
        except StoreError:
            if made is not None and made.recorded:
                self._lost = (*self._lost, made)
            if on_store_failure == "raise":
                raise
        return self._durable_choice(contexts, available)

    def _expire_lost(self, at: float | None) -> None:
        """No answer will come to a decision that nobody got, because its commit failed."""
        while self._lost:
            first, *rest = self._lost
            self._lost = tuple(rest)
            self._took(None, first, None, at)

    def _durable_choice(self, contexts: Any, available: Iterable[int | str] | None) -> Decision:
        """The choice without a record from what was durable last."""
        with self._lock.aside, self._as_durable() as choice:
            shown, open_arms = self._offered(self.seen(contexts), available)
            return self.session.aside(choice, shown, open_arms)

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
            Whether the policy learns from it.  False for a round that was not recorded, or that a
            crash made the policy forget, and for an answer past its deadline.

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
            that is past its deadline.  False, too, if its episode is over or contexts are private:
            then it counts as ``default_reward``.

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
            return own.recorded and session.is_open(own.number, self._time(at))

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
                compare all of them.

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
    def retired(self) -> tuple[int, ...]:
        """The arms that are retired."""
        return self.session.rounds.retired

    def releases(self, after: int = 0) -> list[Release]:
        """The policy's releases, without the first ``after``, for other workers to learn from.
        Empty for algorithms that learn from their own releases alone.  Without a budget these are
        sums of rewards as they are.

        Raises:
            ArgumentError: ``after`` is no whole number from 0.
        """
        first = integer("after", after, 0)
        with self._lock:
            made = enumerate(self.session.exchange.shared)
            return [
                Release(life, i, self.exchange_key, memo, values)
                for i, (life, memo, values) in made
                if i >= first
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
                f"release must not be given to {self.preset}, which learns from its own only",
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

    def chooser(self) -> Chooser:
        """The public half of the policy, which chooses from all values released by now.  Where the
        guarantee holds, it may be given to anyone.
        """
        with self._lock:
            name, config = self._named
            _, public = self.public_half()
            given = {**config, "seed": None}
            return Chooser(name, given, public, self.ledger.releases, self.retired)

    def public_half(self) -> tuple[Callable[[Any], tuple[int, Any]], dict[str, np.ndarray]]:
        """A function that chooses an arm for contexts, and returns its features as the algorithm
        takes them.  Also returns the arrays of the public side that it uses, without a copy.
        """

        def decide(contexts: Any) -> tuple[int, Any]:
            with self._lock.step:  # which may draw
                return self.session.choose(*self._offered(self.seen(contexts)))

        return decide, self.session.state.published

    @property
    def estimates(self) -> Estimates:
        """Estimates of the arms or of the model, from released values.  Where the guarantee holds,
        they may be shown to anyone.
        """
        with self._lock:
            return self._estimated(self.session.state.public, self.ledger.releases)

    @property
    def diagnostics(self) -> Diagnostics:
        """Counts of how answers were processed, for the operator.  They depend on answers, and the
        guarantee does not cover them.
        """
        with self._lock:
            return Diagnostics.of(self.session.rounds)

    @property
    def rounds(self) -> int:
        """The number of recorded rounds."""
        with self._lock:
            return self.session.rounds.recorded

    @property
    def recommendation(self) -> int | None:
        """The arm that a search for the best one recommends; None for policies that play for
        reward.
        """
        with self._lock:
            arm = int(self.kernels.recommend(self.params, self.session.state.public))
        return None if arm == NO_ARM else arm

    def finish(self) -> bool:
        """Release an episode that is over, at the end of a study: otherwise the next ``pull`` does.

        Answers that have not come count as ``default_reward``.  Choose the time of this call
        independently of the answers.

        Returns:
            Whether there was such an episode.

        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import SequentialHalving
        >>> search = SequentialHalving(2, horizon=10, budget=ZCDP(1.0), seed=1)
        >>> for _ in range(10):
        ...     decision = search.pull()
        ...     _ = search.update(float(decision.arm == 1))
        >>> search.finish(), search.stopped
        (True, True)
        """
        with self._lock.step:
            return self.session.finish()

    def end(self) -> None:
        """End the policy for good: release an episode that is over, as ``finish`` does, and drop
        everything else that is private.

        Dropped are answers and decisions that wait, unreleased sums, keyed hashes of users, the
        key of tokens, and counts of answers.  A database loses its old rows, and the keys of
        sealed ones are destroyed.  Releases, ledger and estimates stay.  Later pulls choose from
        released values, without a record, and earlier decisions take no answers.  Choose the time
        of this call independently of the answers.

        >>> from dpbandits import ZCDP
        >>> from dpbandits.algorithms import MergedIMED
        >>> policy = MergedIMED(2, budget=ZCDP(1.0), seed=1)
        >>> _ = policy.update(1.0, policy.pull())
        >>> policy.end()
        >>> policy.pull().recorded, policy.ledger.releases
        (False, 1)
        """
        with self._lock.step:
            self.session.end()
            if self._keeper is not None:
                self._keeper.renew_all()

    @property
    def takes_each_reward(self) -> bool:
        """Whether simulations hand over every reward, instead of sums of those of one choice."""
        return False

    @property
    def stopped(self) -> bool:
        """Whether a search for the best arm is over; later pulls return the arm it found."""
        with self._lock:
            return bool(self.kernels.stop(self.params, self.session.state.public))

    @property
    def ledger(self) -> Ledger:
        """All releases so far, and their privacy cost.  With ``max_rounds``, the cost is that of
        the user with most recorded rounds. Among reports it is the largest that a user may have.
        With certified noise it always covers all rounds of a user, because the proof does.
        """
        at_most = self.takes_reports or isinstance(self.channel, Certified)
        with self._lock:
            most = self.max_rounds if at_most else self.session.rounds.users.most
        growth = self._terms.growth(self._counter, most)
        return Ledger(self._durable_lines, self._terms.meter(growth))

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
        promise, ledger = self.guarantee, self.ledger
        spent = "not counted" if promise.holds is None else ledger.spent() or "nothing"
        simulated = "; simulated noise, which protects nobody" if promise.simulated else ""
        rows = [
            ["holds", f"{promise.holds or 'nothing'}{simulated}"],
            ["spent", str(spent)],
            ["rounds", f"{self.rounds:,} recorded"],
        ]
        title = self.name or self.heading
        return Html(glance(title, [], rows) + self.estimates._repr_html_())

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a policy cannot be copied or pickled: two copies would draw different noise for the"
            " same data. Use save() and load()"
        )

    @cached_property
    def _serving(self) -> str:
        """The argument that makes this the server of devices; empty for policies that pull."""
        if self.config.get("messages"):
            return "messages"
        return "reports" if self.takes_reports and self.card.hides_contexts else ""

    # Arms -------------------------------------------------------------------------------------

    @property
    def takes_masks(self) -> bool:
        """Whether it can choose among some of its arms."""
        return self.kernels.skips_closed

    def _refuse_masks(self, argument: str, what: str) -> None:
        if not self.takes_masks:
            raise ArgumentError(
                f"{argument} must not be {what} with {self._call(self.arguments)}, which cannot"
                " choose among some of its arms",
                argument,
            )
        if argument == "arm" and self.kernels.stop is not never:
            raise ArgumentError(f"arm must not be {what} in a search, which compares all", "arm")

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
            # None of her candidates is open, which is private, as they are: a round of no features.
            self.session.rounds.blanked += 1
            return np.zeros((n, shown.shape[1])), among
        rows = np.full((n, shown.shape[1]), np.nan)
        rows[:few] = shown  # of the others nothing was shown
        return rows, arms.open(available, retired, few)

    # What drivers run -------------------------------------------------------------------------

    session = _Begun()

    @property
    def driven(self) -> Kernels:
        """The kernels as loops and objects run them: blind where contexts are private."""
        return blind(self.kernels) if self.card.hides_contexts else self.kernels

    @property
    def mechanism(self) -> Kernel:
        """The mechanism that releases statistics in simulations."""
        return self.session.gate.mechanism

    def simulated(self, choices: np.random.Generator | None, noise: np.random.Generator) -> Policy:
        """An empty policy of the same kind, for a simulation, that draws from these generators, in
        the law of its own noise, and gets rewards as they are.
        """
        policy = self.renewed(self.config["noise"])
        policy._gate = replace(policy._gate, simulated=True)
        policy.session.state.choice_rng = choices
        policy.session.state.noise_rng = noise
        return policy

    def renewed(self, noise: str) -> Policy:
        """An empty policy of the same kind, with this noise, that gets rewards as they are."""
        config: dict[str, Any] = {**self.config, "noise": noise, "seed": None}
        config |= {name: False for name in ("reports", "messages") if name in config}
        policy: Policy = type(self)(**config)
        policy.watch.silence()
        return policy

    def new_state(self) -> State:
        """An empty state, for a simulation."""
        return self._gate.new_state()

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
                f"{name} must not be {what} without a clock, as in a policy made with"
                " answers_within='6h'",
                name.removesuffix("()"),
            )

    def _took(
        self, value: float | None, decision: Decision, done: int | None, at: float | None
    ) -> bool:
        learned = self.session.take(value, decision, done, at)
        self.watch.look(self.session.rounds)
        return learned

    def assume(self, assumption: str) -> None:
        """List an assumption in the guarantee from now on; it survives a crash."""
        with self._lock.step:
            self.session.told = (*self.session.told, assumption)

    def _received(self, report: np.ndarray) -> bool:
        """Take in a report that came without a pull."""
        with self._lock.step:
            return arrivals.receive(self.session, report)

    def _estimated(self, public: Any, releases: int) -> Estimates:
        """The estimates of a public side after so many releases."""
        arms = None if self.card.hides_contexts else self._arm_estimates(self.params, public)
        told = {} if arms is None else arms._asdict()
        shape = () if self.kernels.estimate is no_estimate else self._coefficients
        if shape:
            each = [self.kernels.estimate(self.params, public, i) for i in range(math.prod(shape))]
            told["coefficients"] = np.reshape(each, shape)
        copied = {name: None if one is None else np.array(one) for name, one in told.items()}
        reason = "" if told else self._no_estimates
        estimates = Estimates(releases, **copied, reason=reason, names=self.arm_names)
        return estimates.without(self.retired)

    def preprocessed(self, contexts: np.ndarray) -> np.ndarray:
        """Contexts as the algorithm takes them."""
        seen, session = np.empty(contexts.shape), self.session
        rng = session.state.choice_rng
        session.gate.steps.preprocess_contexts(self.params, contexts, seen, rng)
        return seen

    def checked_reward(self, reward: Any) -> float:
        """A number; where nothing is clipped, or reports come, one that is no outlier."""
        if isinstance(reward, Decision):  # which would count as its arm
            raise ArgumentError(
                "reward must be a number, got a decision: it comes second, as in"
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

    def _new_session(self) -> Session:
        gate = self._gate
        state = gate.new_state(simulated=gate.simulated).in_blocks()
        if self.card.randomised:
            state.choice_rng = self.noise_source.exploration()
        if gate.private:
            state.noise_rng = self.noise_source.generator("reports" if gate.reports else "privacy")
        arms = self._arms_by_name
        whole = (self.card, self.settings, arms, gate, self.default_reward, state)
        return Session(*whole, life=self._life, seal=self._seal)
