"""Policy: an algorithm bound to a budget and its state, ready to ``pull`` and ``update``.

When a release happens is public.  Most private algorithms release at the end of an episode; the
policy does so at the first pull after the episode's last round plus ``patience`` rounds, whether or
not all rewards have come, because waiting for the last one would show when it came, and good news
may come sooner than bad.  Algorithms that learn from every answer take records in order of arrival.
"""

from __future__ import annotations

import os
import threading
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from ..errors import ArgumentError, UpdateError
from ..privacy.budgets import ApproxDP, Budget
from ..privacy.channels import LAPLACE, OPEN, PURE, Calibration
from ..privacy.continual import Counter, Independent, single
from ..privacy.guarantees import Guarantee
from ..privacy.ledger import WHOLE, Meter, empty_arrays
from ..privacy.noise import NoiseSource, noise_source
from ..validation import choice, finite, flag, integer, interval, real
from .crossing import Crossing
from .decisions import Decision, Progress
from .options import SHARED
from .promise import NARROWEST, WIDEST, calibrated_channel, describe, obeys_gdp, what_holds
from .protocol import Card, Kernels, Wall
from .steps import steps_of

_FARTHEST = 1e6  # that a reward range may lie from zero, in units of its width
_WILDEST = 1000.0  # scales: noise beyond has a probability that no float can tell from zero


class Policy(Crossing):
    """The base of all policies.  A subclass gives ``card`` and ``kernels``, a constructor,
    ``_params`` and, if need be, ``_sizes``.

    Subclasses register themselves with ``@register(...)``, which also sets ``example``.
    """

    card: ClassVar[Card]
    kernels: ClassVar[Kernels]
    example: ClassVar[dict[str, Any]] = {}

    _built = False
    _takes_reports = False  # rewards arrive noisy, and the policy's own wall adds nothing

    _last: Decision | None
    _living: Any = None  # lets go of the file that ``load`` has written

    def __init__(self, config: dict[str, Any], *, budget: Budget | None, **options: Any) -> None:
        unknown = set(options) - set(SHARED)
        if unknown:
            raise TypeError(f"{type(self).__name__} takes no argument {', '.join(sorted(unknown))}")
        chosen = {**SHARED, **options}
        self.n_arms: int = integer("n_arms", config["n_arms"], 1, 10**6)
        self.budget = budget
        self.reward_range = lo, hi = interval("reward_range", chosen["reward_range"])
        if not NARROWEST <= hi - lo <= WIDEST:
            raise ArgumentError(
                f"reward_range must be between {NARROWEST:g} and {WIDEST:g} wide, got"
                f" {chosen['reward_range']!r}"
            )
        if max(-lo, hi) > _FARTHEST * (hi - lo):
            raise ArgumentError(
                f"reward_range must lie no farther from zero than {_FARTHEST:g} times its width, or"
                f" sums lose their last digits, got {chosen['reward_range']!r}"
            )
        self.calibration = cast(
            Calibration, choice("calibration", chosen["calibration"], ("exact", "paper"))
        )
        self.clip = flag("clip", chosen["clip"])
        self.choices_public = flag("choices_public", chosen["choices_public"])
        self.patience = (
            None if chosen["patience"] is None else integer("patience", chosen["patience"], 0)
        )
        self._noise: NoiseSource = noise_source(
            chosen["noise"], chosen["seed"], grid=chosen["grid"], reward_range=self.reward_range
        )
        if self._noise.secure and not self.clip:
            raise ArgumentError("clip must be True with noise='secure', got False")
        given = (
            None
            if chosen["default_reward"] is None
            else real("default_reward", chosen["default_reward"], lo, hi)
        )
        self.default_reward = self._noise.to_grid(lo if given is None else given)
        chosen.update(reward_range=self.reward_range, patience=self.patience, default_reward=given)
        self._config = {**config, "n_arms": self.n_arms, "budget": budget, **chosen}
        self.channel = calibrated_channel(self)
        holds = what_holds(self)
        self._meter = None if holds is None else Meter.of(holds, gaussian=obeys_gdp(self))
        if self._meter is not None and holds != budget:
            # Near delta = 1 the way back from delta to the noise has no digits left.
            self._meter = replace(self._meter, limit=self.channel.cost(self._meter.currency))
        self.params = self._params()
        self._start()
        self._refuse_wide_noise()
        self._built = True

    def __setattr__(self, name: str, value: Any) -> None:
        # What has been promised cannot be changed afterwards.
        if self._built and not name.startswith("_"):
            raise AttributeError(f"{name} cannot be set: a policy is configured by its constructor")
        object.__setattr__(self, name, value)

    # What a subclass provides ----------------------------------------------------------------

    def _params(self) -> Any:
        """The algorithm's ``params``, once the channel is calibrated."""
        raise TypeError(f"{type(self).__name__} does not say what its parameters are")

    def _sizes(self) -> tuple[int, int]:
        """How long the statistic is, and into how many parts records fall."""
        return 1, 0

    def _assumed(self) -> list[str]:
        """What the guarantee assumes beside what all guarantees do."""
        return []

    def _movement(self) -> float:
        """The most that one record moves a statistic, in the channel's norm."""
        lo, hi = self.reward_range
        return hi - lo

    def _extent(self) -> float:
        return max(map(abs, self.reward_range))

    @property
    def planned_rounds(self) -> int | None:
        """For how many rounds the running sum of a policy that releases in every round was planned;
        None for any number.
        """
        counter = self._counter()
        return counter.horizon if counter is not None and self.card.learns_at_once else None

    def _counter(self) -> Counter | None:
        """How the running sum of the statistics is released; None for algorithms that release each
        statistic by itself.
        """
        return None

    # What users call -------------------------------------------------------------------------

    def pull(self, contexts: Any = None) -> Decision:
        """The arm for the next person.

        Args:
            contexts: what is known of her before choosing: features of every arm, shape (K, d), for
                policies that take contexts; the advice of every expert, shape (N, K), a probability
                for each arm, for policies that take advice.

        Raises:
            ArgumentError: the contexts do not have the policy's shape, or hold a number that is not
                finite.
            BudgetExhausted: a release is due that the budget does not allow.  Later pulls answer
                from what is public.
            ArgumentError: a release is due whose sum could be too large for exact secure noise.
                Later pulls do the same.
            ClaimError: a release is due under a budget, and this process is a fork, or a save of
                the policy has been loaded.
        """
        with self._lock:
            view = self._viewed(contexts)
            return (
                self._pull_at_once(view)
                if self.card.learns_at_once
                else self._pull_in_episode(view)
            )

    def update(
        self, reward: float, decision: Decision | None = None, *, arm: int | None = None
    ) -> bool:
        """Take in a reward.

        Args:
            reward: a finite number; clipped to ``reward_range``.  A report, where the policy takes
                them, has to be one that the randomiser may have made; with ``clip=False`` a number
                within 1e100.
            decision: what ``pull`` returned; by default the last pull.
            arm: what the person did, if not what was recommended.

        Returns:
            Whether the policy learns from it.  False for a round that was not recorded, or an
            answer past its deadline.

        Raises:
            UpdateError: nothing was pulled, the decision is another policy's, or it has been
                answered.
            ArgumentError: the reward is not a finite number, or there is no such arm.
            BudgetExhausted, ClaimError: as in ``pull``, for policies that learn from every answer.
        """
        value = self._checked_reward(reward)
        done = None if arm is None else integer("arm", arm, 0, self.n_arms - 1)
        with self._lock:
            number, recommended = self._answered(decision)
            if recommended is None:
                self._progress.dropped += 1
                return False
            deviates = done is not None and done != recommended
            if self.card.learns_at_once:
                return self._learn(
                    number,
                    cast(int, done) if deviates and self.choices_public else recommended,
                    deviates,
                    value,
                )
            x = self._features(number, recommended)
            self._settle(number)
            if deviates and self.choices_public:
                self._take_back(recommended, x)
                return False
            self._steps.answer(
                self.params,
                self._raw,
                self._public,
                recommended,
                x,
                self.default_reward if deviates else value,
            )
            return True

    def expire(self, decision: Decision | None = None) -> bool:
        """No reward will come: it counts as ``default_reward``.  Returns and raises as ``update``
        does.
        """
        return self.update(self.default_reward, decision)

    @property
    def dropped(self) -> int:
        """How many answers came too late, or to rounds that were not recorded."""
        return self._progress.dropped

    @property
    def rounds(self) -> int:
        """How many rounds have been recorded."""
        return self._progress.rounds

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, to whom, and what has to be true for it."""
        return describe(self)

    @property
    def meter(self) -> Meter | None:
        """How costs are counted; None without a budget."""
        return self._meter

    @property
    def label(self) -> str:
        """The class and what was configured about it, apart from budget and seed: the name of a
        line in a figure.
        """
        return self._written("budget", "seed")

    @property
    def stream_key(self) -> str:
        """What identifies the policy's random numbers in a study: everything but its seed."""
        return self._written("seed")

    def save(self, path: str | Path) -> Path:
        """Write the whole state, pending decisions included, to a file that ``dpbandits.load`` can
        claim once.

        Raises:
            ArgumentError: ``path`` does not name a file.
            StateFileError: the state folder cannot be used.
            ClaimError: an earlier save has been loaded, or this process is a fork of the one that
                made the policy.
            OSError: the file cannot be written.
        """
        from .persistence import save

        with self._lock:
            return save(self, path)

    def __repr__(self) -> str:
        return self._written()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a policy is neither copied nor pickled, or its raw data would be released twice: use"
            " save() and load()"
        )

    def _written(self, *without: str) -> str:
        given = {
            k: v
            for k, v in self._config.items()
            if k not in without and (k not in SHARED or v != SHARED[k])
        }
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})"

    @classmethod
    def example_budgets(cls) -> list[Budget]:
        """One small budget of every notion that the class accepts."""
        from ..privacy.budgets import RDP, ZCDP, PureDP

        examples: list[Budget] = [PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-5), RDP(4.0, 1.0)]
        return [budget for budget in examples if type(budget) in cls.card.channels]

    # Pulls -----------------------------------------------------------------------------------

    def _viewed(self, contexts: Any) -> Any:
        """What ``choose`` sees: nothing."""
        if contexts is not None:
            raise ArgumentError(
                f"contexts must not be given to {type(self).__name__}, which takes none", "contexts"
            )
        return 0

    def _row(self, view: Any, arm: int) -> Any:
        """The features of an arm: none."""
        return 0

    def _features(self, number: int, arm: int) -> Any:
        """The features of an arm in the round of a pending pull: none."""
        return 0

    def _standing(self, view: Any) -> tuple[int, float]:
        """What to answer while nothing is recorded: arm and propensity."""
        return self._progress.standing

    def _settle(self, number: int) -> int:
        """A pending pull is answered; its arm."""
        return self._progress.pending.pop(number)

    def _pull_at_once(self, view: Any) -> Decision:
        arm, propensity, _ = self._steps.decide(self.params, self._public, view, self._choice_rng)
        return self._decision(arm, propensity, not self._progress.exhausted, view)

    def _pull_in_episode(self, view: Any) -> Decision:
        if self._progress.release_due and not self._progress.exhausted:
            if self._is_waiting():
                return self._decision(*self._standing(view), False, view)
            self._close_episode()
        if self._progress.exhausted:
            return self._decision(*self._standing(view), False, view)
        if self._progress.left == 0:
            arm, propensity, self._progress.left = self._steps.decide(
                self.params, self._public, view, self._choice_rng
            )
            self._progress.standing = (arm, propensity)
        self._progress.left -= 1
        arm = self._progress.standing[0]
        self._progress.release_due = self._steps.advance(
            self.params, self._public, arm, self._row(view, arm), 1
        )
        self._progress.rounds += 1
        self._book(arm, self._row(view, arm), 1)
        return self._decision(*self._progress.standing, True, view)

    def _book(self, arm: int, x: Any, n: int) -> None:
        booked = self._progress.booked
        booked[int(arm)] = booked.get(arm, 0) + n

    def _unbook(self, which: int) -> None:
        """A release has covered the rounds of a part."""
        for arm in list(self._progress.booked) if which == WHOLE else [which]:
            self._progress.booked.pop(arm, None)

    def _recollect(self) -> None:
        """Take in the default reward for every booked round, when the raw side has been lost."""
        for arm, n in self._progress.booked.items():
            self.kernels.accumulate(
                self.params, self._raw, self._public, arm, 0, n * self.default_reward, n
            )

    def _decision(self, arm: int, propensity: float, recorded: bool, view: Any) -> Decision:
        # Without numba an arm may come as a NumPy integer, which is no index.
        decision = Decision(
            int(arm),
            propensity if propensity == propensity else None,
            self._progress.pulls,
            recorded,
            self._id,
        )
        if recorded:
            self._progress.pending[self._progress.pulls] = arm
        self._last = decision
        self._progress.pulls += 1
        return decision

    def _is_waiting(self) -> bool:
        if self.patience is None:
            return bool(self._awaited())
        self._progress.waited += 1
        return self._progress.waited <= self.patience

    def _awaited(self) -> list[int]:
        """The unanswered pulls that the coming release covers."""
        which = int(self.kernels.partition(self.params, self._public))
        return [number for number, arm in self._progress.pending.items() if which in (WHOLE, arm)]

    def _close_episode(self) -> None:
        self._refuse_fork()
        progress = self._progress
        for number in self._awaited():
            x = self._features(number, progress.pending[number])
            self._steps.answer(
                self.params, self._raw, self._public, self._settle(number), x, self.default_reward
            )
        progress.closed = progress.pulls
        with self._all_or_nothing():
            which = int(self.kernels.partition(self.params, self._public))
            self._release()
            self._unbook(which)
            self._progress.waited = 0

    # Answers ---------------------------------------------------------------------------------

    def _checked_reward(self, reward: float) -> float:
        value, (lo, hi) = finite("reward", reward), self.reward_range
        if self._takes_reports:
            most = _WILDEST * self.noise_scale
            return real("reward", value, lo - most, hi + most)
        if not self.clip:
            return real("reward", value, -WIDEST, WIDEST)
        value = min(max(value, lo), hi)
        return self._noise.to_grid(value)

    def _answered(self, decision: Decision | None) -> tuple[int, int | None]:
        """The number of the decision and its arm, or None if the answer is to be dropped."""
        if decision is None:
            decision = self._last
        if decision is None:
            raise UpdateError("update needs a pull before it")
        if not isinstance(decision, Decision) or not self._made(decision):
            raise UpdateError(f"decision must come from this policy's pull(), got {decision!r}")
        if decision.recorded and decision.number in self._progress.pending:
            return decision.number, self._progress.pending[decision.number]
        if not decision.recorded or decision.number < self._progress.closed:
            return decision.number, None
        raise UpdateError(f"{decision!r} has been answered")

    def _made(self, decision: Decision) -> bool:
        """Whether the decision is this policy's own, or was made before the policy was saved."""
        return decision._owner == self._id or decision.number < self._former.get(decision._owner, 0)

    def _learn(self, number: int, arm: int, deviates: bool, value: float) -> bool:
        self._refuse_fork()
        x = self._features(number, arm)
        if self._progress.exhausted:
            self._settle(number)
            return False
        if deviates and not self.choices_public:
            value = self.default_reward
        if self._is_secure or not self._always_fits or self._journal is not None or self._is_spent:
            with self._all_or_nothing():
                self._settle(number)
                self._progress.rounds += 1
                if self._steps.absorb(self.params, self._raw, self._public, arm, x, value):
                    self._release()
            return True
        self._make_room()
        self._settle(number)
        self._progress.rounds += 1
        self._steps.absorb_and_cross(
            self.params,
            self._raw,
            self._public,
            self._wall,
            arm,
            x,
            value,
            self._progress.rounds,
            self._privacy_rng,
        )
        return True

    def _take_back(self, arm: int, x: Any) -> None:
        """The person publicly did something else: the episode lasts one round longer."""
        self._progress.release_due = self._steps.advance(self.params, self._public, arm, x, -1)
        self._book(arm, x, -1)
        if not self._progress.release_due:
            self._progress.waited = 0
        if self._progress.standing[0] == arm:
            self._progress.left = min(
                self._progress.left + 1, self.kernels.hold_rounds(self.params, self._public, arm)
            )

    # Construction ----------------------------------------------------------------------------

    @property
    def noise_scale(self) -> float:
        """The scale of the noise on a sum of rewards; with a counter, that of each noise variable
        which ``Counter.decoder`` combines.

        Coefficients are at most ``Counter.widening``: 1 but for ``HybridTree``, whose nodes have
        more noise the deeper their tree is.
        """
        counter = self._counter()
        return self.channel.scale(self._movement()) * (
            1.0 if counter is None else counter.column_norm(self.channel.norm)
        )

    def new_state(self) -> tuple[Any, Any, Wall]:
        """Empty raw and public state, and a wall with an empty ledger."""
        raw, public = self.kernels.init(self.params)
        length, parts = self._sizes()
        channel, counter = self.channel, self._counter()
        wall = Wall(
            channel.family,
            channel.multiplier,
            channel.norm,
            np.zeros(length),
            np.zeros(length),
            np.zeros(parts + 1, np.int64),
            empty_arrays(),
            self._charged(counter),
            single() if counter is None else counter.start(length, channel.norm),
            np.zeros(0 if counter is None else length),
        )
        return raw, public, wall

    def _charged(self, counter: Counter | None) -> int:
        """The family that ledger lines name; open where no sensitivity is true, so that nothing can
        be added up.
        """
        if self.card.void or not self.clip:
            return OPEN
        return (
            PURE if counter is not None and self.channel.family == LAPLACE else self.channel.family
        )

    def _restart_sum(self) -> None:
        """Give a policy with secure noise a running sum in integers."""
        counter = self._counter()
        self._exactly = None
        if counter is None or not self._is_secure:
            return
        from ..privacy.secure import SecureNoise, SecureSum

        size = self._wall.statistic.size
        self._exactly = SecureSum(
            counter, size, self._config["grid"], cast(SecureNoise, self._noise)
        )
        # which only counts the releases
        light = Independent(counter.horizon).start(size, self.channel.norm)
        self._wall = self._wall._replace(running=light)

    def _refuse_wide_noise(self) -> None:
        """At once, and not at the first release."""
        if not self._is_secure:
            return
        from ..privacy.secure import refuse_wide_noise

        if self._exactly is None:
            refuse_wide_noise(self.noise_scale, self._config["grid"])
        else:
            self._exactly.refuse_wide_noise(self.channel, self.channel.scale(self._movement()))

    def _start(self) -> None:
        noisy = self.budget is not None and not self._takes_reports
        self._steps = steps_of(self.kernels, noisy=noisy)
        self._raw, self._public, self._wall = self.new_state()
        self._restart_sum()
        self._choice_rng = self._noise.stream("policy") if self.card.randomised else None
        self._privacy_rng = (
            self._noise.stream("privacy") if noisy and not self._noise.secure else None
        )
        # Without parts, each release covers the rounds since the last one: no two lines meet, and
        # one alone decides.
        self._always_fits = self._meter is None or (
            self._sizes()[1] == 0
            and self._meter.allows(self._meter.cost(self._wall.charged, self.channel.multiplier))
        )
        self._id = uuid.uuid4().hex
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._progress = Progress()
        self._last = None
        # lives of the policy before it was saved and loaded: how many pulls they knew
        self._former: dict[str, int] = {}
        self._serial = 0  # of its last save
        self._journal = None
