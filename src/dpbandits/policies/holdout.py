"""The holdout of a policy: its gate, and releases of held-out people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from ..inference import Batches, Intervals, ReleasedSums, Verdict, asked
from ..privacy.budgets import Budget
from ..privacy.grids import drawn_scale
from ..privacy.guarantees import Guarantee
from ..privacy.ledger import Ledger, LedgerArrays
from ..privacy.noise import NoiseSource, key_from
from ..protocol import Card
from ..session.estimates import Estimates, standard_error
from ..session.gate import Gate
from ..session.holdout import CARD, KERNELS, Coin, Holdout, HoldoutParams, statistic_of
from ..session.holdout_targets import (
    KERNELS_WITH_TARGETS,
    statistic_with_targets,
    with_targets,
)
from ..session.open_arms import Arms
from ..session.options import Settings
from ..session.session import Session
from .sums import CHOSEN, DECIDING, Sum, noise_of_sums, rounding_of, sums_of, what_breaks_any
from .terms import Terms

if TYPE_CHECKING:
    import pandas as pd

Policy = Any  # whose module imports this one

_TOGETHER = (
    "They assume that an arm's mean stays the same. If the means of all arms move together,"
    " differences stay unbiased, but an interval is proved for one_sum=True alone.",
    "They assume that the difference of the two means stays the same. Both may move together.",
)
_TARGETS = (
    "They assume that the mean of each target stays the same: that of people to whom all arms were"
    " open, if they had got the target's arm. The target's arm must be fixed before the arm is"
    " drawn."
)
_JOINED = (
    "Releases of several workers are joined. This assumes that no person belongs to two workers,"
    " and that rewards are independent of those of other people."
)
_ONE_SUM = "one_sum=True releases one sum of both arms, which tells of their difference alone"


def refuse_misfit(card: Card, settings: Settings, takes_reports: bool) -> None:
    """Refuse a holdout beside a policy for which it has no proof."""
    wrong = [
        (card.trust_model not in ("central", "none") or takes_reports, "with central trust"),
        (
            card.hides_contexts and settings.holdout is not None and settings.holdout.targets,
            "without targets where contexts are private, because a target's arm depends on them",
        ),
        (not settings.clip, "with clip=True"),
        (settings.calibration != "exact", "with calibration='exact'"),
    ]
    for misfit, needed in wrong:
        if misfit:
            raise ArgumentError(
                f"holdout must be None here: held-out people are only possible {needed}, got"
                f" {settings.holdout!r}",
                "holdout",
            )


def holdout_terms(
    name: str, card: Card, budget: Budget | None, settings: Settings, noise: NoiseSource
) -> Terms:
    """The terms of the holdout of a policy with that card: the whole budget."""
    # Where the bandit learns answers as they come, the holdout waits for them.
    at_once = card.learns_at_once and not settings.answers_within
    within = None if at_once else settings.answers_within
    own = replace(settings, choices_public=False, answers_within=within)
    return Terms(f"{name} with a holdout", CARD, budget, own, False, noise, "")


def holdout_gate(terms: Terms, holdout: Holdout, arms: Arms) -> Gate:
    """The gate of held-out people's sums."""
    n_arms, q = arms.count, len(holdout.targets)
    if both := set(holdout.targets) & set(arms.names or ()):
        raise ArgumentError(
            f"targets of the holdout must not have names of arms, got {sorted(both)}", "holdout"
        )
    (lo, hi), noise = terms.settings.reward_range, terms.noise
    channel = terms.shared_channel(None)
    holdout.share_of(n_arms)  # which refuses to hold out everybody
    params = HoldoutParams(
        weights=holdout.weights_of(n_arms),
        batch=holdout.batch_for(channel, n_arms),
        one_sum=holdout.one_sum,
        turned=noise.to_grid(lo) + noise.to_grid(hi),
        width=hi - lo,
        targets=q,
    )
    statistic = statistic_of(params, (lo, hi))
    if q:
        moved = (hi - lo) * holdout.moved(channel.norm)
        statistic = statistic_with_targets(params, (lo, hi), moved)
    return Gate(
        kernels=KERNELS_WITH_TARGETS if q else KERNELS,
        params=params,
        statistic=statistic,
        channel=channel,
        noise=noise,
        meter=terms.meter(terms.growth(None, terms.settings.max_rounds)),
        ledger_family=terms.ledger_family(statistic),
        private=terms.budget is not None,
        reports=False,
    )


def add_holdout(session: Session, gate: Gate, terms: Terms, default_reward: float) -> None:
    """Give the session of a new policy its holdout, with random numbers of its own."""
    noise, holdout = terms.noise, terms.settings.holdout
    assert holdout is not None
    state = gate.new_state(simulated=gate.simulated).in_blocks()
    state.choice_rng = noise.generator("holdout") or noise.exploration()
    if gate.private:
        state.noise_rng = noise.generator("privacy of holdout")
    own = Session(CARD, terms.settings, session.arms, gate, default_reward, state)
    own.seal, session.holdout = session.seal, own
    share = holdout.share_of(session.arms.count)
    session.coin = Coin(key_from(state.choice_rng), share)


class HeldOut:
    """Releases of held-out people, and what they tell.  ``Policy.holdout`` returns it.

    Nothing here is learned from, and each held-out person's arm was drawn by chance.

    Attributes:
        share, weights, batch, one_sum, targets: as of the ``Holdout``, with the values that hold
            for None.

    Example:
        >>> import dpbandits as dpb
        >>> holdout = dpb.Holdout(0.5, batch=20)
        >>> policy = dpb.bandit(["old", "new"], budget=dpb.ZCDP(0.5), holdout=holdout, seed=1)
        >>> for person in range(1000):
        ...     decision = policy.pull()
        ...     _ = policy.update(float(decision.arm == 1), decision)
        >>> policy.holdout.intervals(difference=("new", "old"))
        <95 % intervals after 24 releases: new - old: 0.9055 to 1>
    """

    def __init__(self, policy: Policy) -> None:
        session: Session = policy.session.holdout
        self._policy, self.session, gate = policy, session, session.gate
        self.statistic, self.channel, self._params = gate.statistic, gate.channel, gate.params
        self.settings, self.reward_range = session.settings, policy.reward_range
        self.n_arms, self.grid, self.max_rounds = policy.n_arms, policy.grid, policy.max_rounds
        self.default_reward = policy.default_reward
        self._asked: Holdout = policy.settings.holdout
        self.share: float = self._asked.share_of(self.n_arms)
        self.weights: np.ndarray = self._params.weights.copy()
        self.batch: int = self._params.batch
        self.one_sum: bool = self._params.one_sum
        self.targets: Sequence[str] = policy.settings.holdout.targets

    def __repr__(self) -> str:
        return (
            f"<HeldOut: {self.rounds:,} of {self._policy.session.rounds.pulls:,} people,"
            f" {self.ledger.releases:,} releases>"
        )

    @property
    def rounds(self) -> int:
        """The number of recorded rounds of held-out people."""
        with self._policy._lock:
            return self.session.rounds.recorded

    @property
    def ledger(self) -> Ledger:
        """The releases of held-out people's sums, and their cost.  No person is in these and in
        ``Policy.ledger``, so the two costs do not add up.
        """
        with self._policy._lock:
            terms, most = self._policy._holdout_terms, self.session.rounds.users.most
        return Ledger(self._lines, terms.meter(terms.growth(None, most)))

    @property
    def guarantee(self) -> Guarantee:
        """That of the policy, which covers held-out people."""
        promise: Guarantee = self._policy.guarantee
        return promise

    def _lines(self) -> LedgerArrays:
        with self._policy._lock:  # which first makes durable what is not yet
            return self.session.state.wall.ledger

    def __str__(self) -> str:
        chances = ", ".join(f"{one:.4g}" for one in self.weights)
        arms = "" if np.ptp(self.weights) == 0.0 else f", with probabilities {chances}"
        of = "of both arms" if self.one_sum else "with one arm"
        released = f"The rewards of {self.batch:,} people {of} are released as one sum"
        if self.targets:
            released = (
                f"Of the rewards of {self.batch:,} people, sums are released together: of each arm,"
                f" and of people who got the arm of {', '.join(self.targets)}"
            )
        least = self._asked.min_share
        every = (
            "" if least is None else f". Every arm gets at least {100.0 * least:.6g} % of people"
        )
        return (
            f"{100.0 * self.share:.6g} % of people get an arm by chance{arms}{every}. {released}."
            " Nothing is learned from them"
        )

    @property
    def released_sums(self) -> pd.DataFrame:
        """The released sums, as of ``Policy.released_sums``.  With ``one_sum`` there is a row for
        each sum, of arm 1, and a reward r of arm 0 counts as lo + hi - r.  Targets have the numbers
        after those of arms.
        """
        import pandas as pd  # takes longer to import than all else here

        with self._policy._lock:
            return pd.DataFrame(self._sums(), columns=Sum._fields)

    def _sums(self) -> list[Sum]:
        made = self.session.exchange.made
        if self.one_sum:
            # A batch that a crash has filled with defaults has 0 rounds.
            made = [one._replace(batches=(_joined(one.batches),)) for one in made]
        elif self.targets:
            made = [with_targets(one, self.n_arms) for one in made]
        return sums_of(made, every=bool(self.targets))

    @property
    def estimates(self) -> Estimates:
        """The mean reward of held-out people with each arm; none with ``one_sum``."""
        with self._policy._lock:
            names, releases = self._policy.arm_names, self.ledger.releases
            if self.one_sum:
                return Estimates(releases, reason=_ONE_SUM, names=names)
            sums = self.sums
        (lo, hi), rounds = self.reward_range, sums.rounds
        batches = np.array([one.batches.sum() for one in sums.cells])
        variance = sums.noise.variance(np.ones(1))[0] * (hi - lo) ** 2
        errors = standard_error(rounds, hi - lo, batches * variance)
        arms = sums.means, errors, rounds
        found = Estimates(releases, *arms, names=names, read_sums=lambda: sums)
        return found.without(self._policy.retired)

    @property
    def sums(self) -> ReleasedSums:
        """What intervals of arms are made of."""
        return self._read(self._arms)

    @property
    def _arms(self) -> range:
        """The numbers of arms that have sums: with one sum, arm 1 alone."""
        return range(1, 2) if self.one_sum else range(self.n_arms)

    def _read(self, numbers: Iterable[int]) -> ReleasedSums:
        """What intervals of arms and targets of these numbers are made of."""
        (lo, hi), scale = self.reward_range, self.statistic.noise_scale(self.channel)
        if self.grid:
            scale = drawn_scale(self.channel.family, scale, self.grid)
        noise = noise_of_sums(self.channel, scale, self.grid, hi - lo)
        arm, rounds, total, known = np.array(self._sums(), float).reshape(-1, 4).T
        batches = Batches(arm, rounds, (total - rounds * lo) / (hi - lo), known)
        rounding = rounding_of(self.grid, lo, hi)
        if self.one_sum:  # half of the people have lo + hi, rounded, in their rewards
            rounding += 0.5 * abs(self._params.turned - lo - hi)
        cells = tuple(batches.cells(number, noise) for number in numbers)
        return ReleasedSums(cells, noise, lo, hi - lo, rounding)

    def intervals(
        self,
        confidence: float = 0.95,
        difference: tuple[int | str, int | str] | None = None,
        *,
        control: int | str | None = None,
        method: str = "mixture",
        others: Sequence[HeldOut] = (),
    ) -> Intervals:
        """Intervals of the mean rewards of held-out people, or of differences of arms, at all
        releases together.

        Args:
            confidence, difference, control, method: as of ``Policy.intervals``.  With ``one_sum`` a
                difference or a control is needed.
            others: holdouts of other workers, such as ``dpbandits.inspect(place).holdout``, whose
                releases are used, too.

        Returns:
            ``Intervals``, with sentences on what breaks them.

        Raises:
            ArgumentError: an argument is out of range, or ``difference`` is missing; or one of the
                others differs in more than its seed, or has releases of this one.
        """
        pairs = asked(difference, control, self.n_arms, self.session.arms.number)
        if self.one_sum and pairs is None:
            raise ArgumentError(f"difference must be given: {_ONE_SUM}", "difference")
        with self._policy._lock:
            sums, labels = self._joined(self._arms, others), self._policy.arm_names
            found = Intervals.of(
                sums,
                confidence,
                None if self.one_sum else pairs,
                method=method,
                labels=None if self.one_sum else labels,
                releases=sum(one.ledger.releases for one in (self, *others)),
                breaks=tuple(self._breaks(others)),
            )
        if pairs is None or not self.one_sum:
            return found
        ((b, c),) = pairs.pairs
        label = f"{labels[b]} - {labels[c]}" if labels else f"{b} - {c}"
        return _doubled(found, self.reward_range, label, 1.0 if b == 1 else -1.0)

    def decided(
        self, confidence: float = 0.95, *, gap: float = 0.0, control: int | str | None = None
    ) -> Verdict:
        """Whether it is decided which arm is best, from held-out people alone.

        Args:
            confidence, gap, control: as of ``Policy.decided``.

        Returns:
            A ``Verdict``, with its intervals, and sentences on what breaks it.

        Raises:
            ArgumentError: an argument is out of range, or there is one arm only.
        """
        if self.n_arms == 1:
            raise ArgumentError("decided must be asked of two arms or more")
        number = self.session.arms.number
        against = None if control is None else number("control", control)
        with self._policy._lock:
            leader, names = self._leader, self._policy.arm_names
            breaks = tuple(DECIDING if one == CHOSEN else one for one in self._breaks(()))
            told: dict[str, Any] = {"releases": self.ledger.releases, "breaks": breaks}
            if not self.one_sum:
                given = (self.sums, leader, confidence, gap, against)
                return Verdict.of(*given, labels=names, **told)
            other = 1 - leader if leader is not None and against is None else against or 0
            found = replace(self.intervals(confidence, control=other), **told)
        return Verdict.on(found, leader, names or ["0", "1"], against, gap)

    @property
    def _leader(self) -> int | None:
        """The arm of highest mean; None before the first release."""
        if not self.one_sum:
            return self.estimates.leader
        mean = self.sums.means[0]  # of arm 1, less half of the difference
        return None if np.isnan(mean) else int(mean > 0.5 * sum(self.reward_range))

    def values(
        self,
        confidence: float = 0.95,
        *,
        control: int | str | None = None,
        others: Sequence[HeldOut] = (),
    ) -> Intervals:
        """Intervals of what the targets would have earned, at all releases together: of the mean
        reward of people like the held-out ones, if each had got the target's arm.

        Args:
            confidence: the probability that no interval is ever wrong.
            control: an arm or a target, for the differences of all targets to it.  Choose it
                beforehand.
            others: as for ``intervals``.

        Returns:
            ``Intervals``, with sentences on what breaks them.

        Raises:
            ArgumentError: an argument is out of range, or does not fit; or the holdout has no
                targets, or no other than the control.

        Source: this package; the proof is in ``dpbandits.session.holdout_targets``.

        >>> import dpbandits as dpb
        >>> holdout = dpb.Holdout(0.5, batch=100, targets=["by age"])
        >>> policy = dpb.bandit(["old", "new"], budget=dpb.ZCDP(0.5), holdout=holdout, seed=1)
        >>> for person in range(2000):
        ...     best = person % 2  # the arm of people of this age
        ...     decision = policy.pull(targets={"by age": best})
        ...     _ = policy.update(float(decision.arm == best), decision)
        >>> policy.holdout.values()
        <95 % intervals after 9 releases: by age: 0.9345 to 1>
        """
        with self._policy._lock:
            against = None if control is None else self._number(control)
            numbers = [self.n_arms + j for j in range(len(self.targets))]
            numbers = [one for one in numbers if one != against]
            if not numbers:
                none = "no targets" if not self.targets else "no other target than the control"
                raise ArgumentError(f"values must not be asked of a holdout with {none}")
            asked_for = numbers if against is None else [*numbers, against]
            found = Intervals.of(
                self._joined(asked_for, others),
                confidence,
                None,
                method="mixture",
                labels=[self._label(one) for one in asked_for],
                releases=sum(one.ledger.releases for one in (self, *others)),
                breaks=(_TARGETS, *self._breaks_any(others)),
            )
        return found if against is None else _less_the_last(found)

    def _number(self, control: int | str) -> int:
        """The number of an arm, or of a target."""
        if control in self.targets:
            return self.n_arms + self.targets.index(str(control))
        return self.session.arms.number("control", control)

    def _label(self, number: int) -> str:
        if number >= self.n_arms:
            return self.targets[number - self.n_arms]
        return self.session.arms.name(number) or f"arm {number}"

    def _joined(self, numbers: Iterable[int], others: Sequence[HeldOut]) -> ReleasedSums:
        """What intervals are made of, with the releases of other workers."""
        numbers, met = list(numbers), set(self._lives)
        for one in others:
            if (
                not isinstance(one, HeldOut)
                or one._policy.exchange_key != self._policy.exchange_key
            ):
                raise ArgumentError(
                    "others must be holdouts of policies of the same class, arguments and budget,"
                    f" got {one!r}",
                    "others",
                )
            if (one.grid, one.session.arms.names) != (self.grid, self.session.arms.names):
                raise ArgumentError(
                    "others must have the same kind of noise and the same names of arms", "others"
                )
            if met & one._lives:
                raise ArgumentError("others must have no releases of this or another one", "others")
            met |= one._lives
        return self._read(numbers).joined(one._read(numbers) for one in others)

    @property
    def _lives(self) -> set[str]:
        """The lives that have made the releases."""
        return {one.life for one in self.session.exchange.made}

    def _breaks(self, others: Sequence[HeldOut]) -> Iterator[str]:
        yield _TOGETHER[self.one_sum]
        yield from self._breaks_any(others)

    def _breaks_any(self, others: Sequence[HeldOut]) -> Iterator[str]:
        if others:
            yield _JOINED
        lo, hi = self.reward_range
        yield (
            f"A missing answer counts as {self.default_reward:g}. So does that of a person who"
            f" takes another arm, and a cancelled decision. A reward outside {lo:g} to {hi:g}"
            " counts as the nearer end. The intervals cover the mean of such rewards."
        )
        yield CHOSEN
        yield from what_breaks_any(self)


def _less_the_last(found: Intervals) -> Intervals:
    """The differences of all to the last one, whose interval holds together with theirs."""
    last = found.labels[-1]
    return replace(
        found,
        low=found.low[:-1] - found.high[-1],
        high=found.high[:-1] - found.low[-1],
        means=found.means[:-1] - found.means[-1],
        rounds=found.rounds[:-1] + found.rounds[-1],
        labels=[f"{one} - {last}" for one in found.labels[:-1]],
    )


def _joined(batches: Sequence[tuple[int, int, int]]) -> tuple[int, int, int]:
    """The batches of two arms that are in one sum, as one."""
    known = min(known for _, _, known in batches)
    return 1, 0 if known < 0 else sum(rounds for _, rounds, _ in batches), max(known, 0)


def _doubled(
    found: Intervals, reward_range: tuple[float, float], label: str, sign: float
) -> Intervals:
    """The interval of the difference, whose half is in the mean of one sum above the middle of the
    range.
    """
    middle = 0.5 * sum(reward_range)
    ends = sorted(2.0 * sign * (end - middle) for end in (found.low[0], found.high[0]))
    low, high = (np.array([end]) for end in ends)
    return replace(
        found, low=low, high=high, means=2.0 * sign * (found.means - middle), labels=[label]
    )
