"""Policy: an algorithm bound to a budget and its state, ready to ``pull`` and ``update``.

``configured`` holds a policy's arguments and the methods that an algorithm's author provides; its
terms hold its guarantee.  Its session runs the rounds, and the session's gate releases statistics.
``answering``, ``offering`` and ``publishing`` have methods that users call.  This module has the
constructor and decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from ..constraints import Choice, Constraints, Integer
from ..errors import ArgumentError, StoreError
from ..kernel import Kernel
from ..privacy.budgets import Budget
from ..privacy.exact import Source
from ..privacy.noise import key_from
from ..protocol import Kernels, blind
from ..session import arrivals
from ..session.decisions import Decision
from ..session.gate import Gate
from ..session.open_arms import Arms
from ..session.options import Settings, settings_of
from ..session.rounds import checked_user
from ..session.session import Session
from ..session.state import State
from ..stores import User
from ..validation import shown as brief
from .answering import Answering
from .chooser import Chooser, Decide
from .holding_out import add_holdout, holdout_gate, holdout_terms, refuse_misfit
from .making import PolicyClass, Signature
from .offering import Offering
from .presets import Composition
from .publishing import Publishing
from .registry import preset_of
from .terms import Terms
from .watch import Watch

_RAISE = "raise"
_ON_FAILURE = Choice(_RAISE, "serve")


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


class Policy(Answering, Offering, Publishing, metaclass=PolicyClass):
    """The base of all policies.

    A subclass gives ``card``, ``kernels`` and ``_params``.  If it releases more than one number at
    a time, it also gives ``_statistic``.  Its constructor stores the attributes that these use, and
    then calls this one.  The subclass registers itself with ``@register(...)``, which also sets
    ``example``.
    """

    example: ClassVar[dict[str, Any]] = {}
    constraints: ClassVar[Constraints] = {**Settings.constraints, "n_arms": Integer(1, 10**6)}
    learns_off_policy: ClassVar[bool] = False  # from arms that others have chosen: see ``logs``
    __signature__ = Signature()

    _holdout_gate: Gate | None = None
    _targets: Sequence[str] = ()  # of the holdout
    _lost: tuple[Decision, ...] = ()  # decisions that nobody got
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
        self.noise_source, (needs, why) = settings.source(self.takes_reports), self._secure_needs
        if needs and self.noise_source.secure:
            raise ArgumentError(f"noise='secure' needs {needs}: {why}", "noise")
        default = settings.default_reward
        self.default_reward = self.noise_source.to_grid(lo if default is None else default)
        self.settings, self._has_clock = settings, settings.uses_clock
        if self.card.hides_contexts and self.choices_public:
            raise ArgumentError(
                "choices_public must be False where contexts are private, got True: then arms are"
                " private, too",
                "choices_public",
            )
        self._terms = Terms(
            name, self.card, budget, settings, self.takes_reports, self.noise_source, needs
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
        if settings.holdout is not None:
            refuse_misfit(self.card, settings, self.takes_reports)
            self._targets = settings.holdout.targets
            self._holdout_terms = holdout_terms(
                name, self.card, budget, settings, self.noise_source
            )
            self._holdout_gate = holdout_gate(
                self._holdout_terms, settings.holdout, self._arms_by_name
            )
        self.watch = Watch(settings.name or name, settings.reward_range)
        self._begin_life()
        self._built = True

    # What users call --------------------------------------------------------------------------

    def pull(
        self,
        contexts: Any = None,
        *,
        user: User | None = None,
        available: Iterable[int | str] | None = None,
        at: float | None = None,
        on_store_failure: Literal["raise", "serve"] = "raise",
        targets: Mapping[str, int | str | Decision] | None = None,
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
            targets: for a ``Holdout`` with ``targets``: for each target's name, the arm that it
                would give to this person, or another policy's decision.  It may depend on contexts
                and on releases; if it depends on other rewards, the guarantee does not hold.

        Returns:
            A ``Decision``; it equals its arm, and serves as an index.

        Raises:
            ArgumentError: the policy cannot choose among some of its arms, or none is available.
                Or the contexts do not have the policy's shape, or hold a number that is not finite
                (private contexts count it as 0).  Or ``user`` or ``targets`` are missing,
                unexpected, or not valid.  Or this policy is the server of people's devices.  Or a
                due release has a sum that could be too large for exact secure noise; later pulls
                use public values alone.
            BudgetExhausted: a release is due that the budget does not allow.  Later pulls use
                public values alone.
            ClaimError: a release is due under a budget, and this process is a fork; or the policy
                was saved, and has been loaded elsewhere.
            StoreError: the policy was saved, and its place cannot be written.  Nothing is lost: the
                next call writes it first.
        """
        if self._serving:
            raise ArgumentError(
                f"{self._serving} must be False for pull(): this policy serves people's devices,"
                " which get their arm from device()",
                self._serving,
            )
        name = checked_user(user, self.max_rounds)
        wanted = () if targets is None and not self._targets else self._arms_of(targets)
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
                    seen = self.seen(contexts)
                    self._refuse_private_masks(seen, available)
                    shown, open_arms = self._offered(seen, available)
                except ArgumentError:  # after which nothing has happened
                    rounds.blanked, rounds.scaled = counted
                    raise
                if open_arms is not None:
                    rounds.chosen_among = True
                made = session.pull(shown, name, open_arms, now, wanted)
                return made
        except StoreError:
            if made is not None and made.recorded:
                self._lost = (*self._lost, made)
            if on_store_failure == "raise":
                raise
        return self._durable_choice(contexts, available)

    def _arms_of(self, targets: object) -> tuple[int, ...]:
        """The arms of the holdout's targets, in their order."""
        names = self._targets
        if not isinstance(targets, Mapping) or set(targets) != set(names):
            needed = f"have an arm for each of {', '.join(map(repr, names))}"
            raise ArgumentError(
                f"targets must {needed if names else 'be None if the holdout has no targets'}, got"
                f" {brief(targets)}",
                "targets",
            )
        return tuple(self._arms_by_name.number_of("targets", targets[name]) for name in names)

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

    def chooser(self) -> Chooser:
        """The public half of the policy, which chooses from all values released by now.  Where the
        guarantee holds, it may be given to anyone.
        """
        with self._lock:
            name, config = self._named
            _, public = self.public_half()
            given = {**config, "seed": None}
            return Chooser(name, given, public, self.ledger.releases, self.retired)

    def public_half(self) -> tuple[Decide, dict[str, np.ndarray]]:
        """A function that chooses an arm for contexts, and returns its features as the algorithm
        takes them.  Also returns the arrays of the public side that it uses, without a copy.
        """

        def decide(contexts: Any, take: Source) -> tuple[int, Any]:
            with self._lock.step:  # which may draw
                offered = self._offered(self.seen(contexts))
                return self.session.choose(*offered, lambda: self._draw(take))

        return decide, self.session.state.published

    def _draw(self, take: Source) -> bool:
        """Draw from bytes what a choice needs; False where a generator has to."""
        return False

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

    def _round(self) -> tuple[int, dict[str, Any]]:
        """The version of what devices send now, and what they need for it, for JSON.

        Raises:
            ArgumentError: the policy takes neither reports nor messages.
        """
        raise ArgumentError(
            "the policy has no devices: make the policy with reports=True or messages=True, if its"
            " class takes one of them"
        )

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

    def simulated(
        self,
        choices: np.random.Generator | None,
        noise: np.random.Generator,
        *of_holdout: np.random.Generator,
    ) -> Policy:
        """An empty policy of the same kind, for a simulation, that draws from these generators, in
        the law of its own noise, and gets rewards as they are.  A holdout needs two of its own.
        """
        policy = self.renewed(self.config["noise"])
        policy._gate = replace(policy._gate, simulated=True)
        if policy._holdout_gate is not None:
            policy._holdout_gate = replace(policy._holdout_gate, simulated=True)
        session = policy.session
        session.state.choice_rng, session.state.noise_rng = choices, noise
        if session.holdout is not None and session.coin is not None:
            draws, session.holdout.state.noise_rng = of_holdout
            session.holdout.state.choice_rng = draws
            session.coin = replace(session.coin, key=key_from(draws))
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

    def assume(self, assumption: str) -> None:
        """List an assumption in the guarantee from now on; it survives a crash."""
        with self._lock.step:
            self.session.told = (*self.session.told, assumption)

    def _received(self, report: np.ndarray) -> bool:
        """Take in a report that came without a pull."""
        with self._lock.step:
            return arrivals.receive(self.session, report)

    def preprocessed(self, contexts: np.ndarray) -> np.ndarray:
        """Contexts as the algorithm takes them."""
        seen, session = np.empty(contexts.shape), self.session
        rng = session.state.choice_rng
        session.gate.steps.preprocess_contexts(self.params, contexts, seen, rng)
        return seen

    def _new_session(self) -> Session:
        gate = self._gate
        state = gate.new_state(simulated=gate.simulated).in_blocks()
        if self.card.randomised:
            state.choice_rng = self.noise_source.exploration()
        if gate.private:
            state.noise_rng = self.noise_source.generator("reports" if gate.reports else "privacy")
        arms = self._arms_by_name
        whole = (self.card, self.settings, arms, gate, self.default_reward, state)
        session = Session(*whole, life=self._life, seal=self._seal)
        if self._holdout_gate is not None:
            terms = self._holdout_terms
            add_holdout(session, self._holdout_gate, terms, self.default_reward)
        return session
