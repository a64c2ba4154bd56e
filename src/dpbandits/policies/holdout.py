"""What held-out people of a policy tell: sums, estimates, intervals, verdicts and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from ..inference import Batches, Intervals, ReleasedSums, Verdict, asked
from ..privacy.grids import drawn_scale
from ..privacy.guarantees import Guarantee
from ..privacy.ledger import Ledger, LedgerArrays
from ..session.estimates import Estimates, standard_error
from ..session.holdout import Holdout
from ..session.holdout_targets import (
    with_targets,
)
from ..session.session import Session
from .sums import CHOSEN, DECIDING, Sum, noise_of_sums, rounding_of, sums_of, what_breaks_any

if TYPE_CHECKING:
    import pandas as pd

Policy = Any  # whose module imports this one

_TOGETHER = (
    "Intervals assume that an arm's mean stays the same. If the means of all arms move together,"
    " differences stay unbiased, but an interval is proved for one_sum=True alone.",
    "Intervals assume that the difference of the two means stays the same. Both means may move"
    " together.",
)
_TARGETS = (
    "Intervals assume that the mean of each target stays the same. This is the mean of people to"
    " whom all arms were open, had they got the target's arm. The target's arm must be fixed before"
    " the arm is drawn."
)
VALUE = (
    "A target's value is the mean reward, had everybody got the target's arm. Its interval comes"
    " from held-out people who got this arm by chance. The last column counts them."
)
_JOINED = (
    "Releases of several workers are joined. This assumes that no person belongs to two workers,"
    " and that rewards are independent of those of other people."
)
_ONE_SUM = "releases with one_sum=True show only the difference of the two arms"


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
                f" and of people who got the arm of {', '.join(map(repr, self.targets))}"
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
        (sums, releases), labels = self._joined(self._arms, others), self._policy.arm_names
        found = Intervals.of(
            sums,
            confidence,
            None if self.one_sum else pairs,
            method=method,
            labels=None if self.one_sum else labels,
            releases=releases,
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
            raise ArgumentError("decided() needs two arms or more")
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
        against = None if control is None else self._number(control)
        numbers = [self.n_arms + j for j in range(len(self.targets))]
        numbers = [one for one in numbers if one != against]
        if not numbers:
            none = "no targets" if not self.targets else "no other target than the control"
            raise ArgumentError(f"values() needs a holdout with targets, got {none}")
        asked_for = numbers if against is None else [*numbers, against]
        sums, releases = self._joined(asked_for, others)
        found = Intervals.of(
            sums,
            confidence,
            None,
            method="mixture",
            labels=[self._label(one) for one in asked_for],
            releases=releases,
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

    def _joined(
        self, numbers: Iterable[int], others: Sequence[HeldOut]
    ) -> tuple[ReleasedSums, int]:
        """What intervals are made of, with the releases of other workers, and their number.  One
        worker is read after the other, because two threads may join the same ones.
        """
        numbers, met = list(numbers), set[str]()
        parts, releases = list[ReleasedSums](), 0
        for one in (self, *others):
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
            with one._policy._lock:
                lives = {made.life for made in one.session.exchange.made}
                parts.append(one._read(numbers))
                releases += one.ledger.releases
            if met & lives:
                raise ArgumentError(
                    "others must not repeat a release, got one that is in two of the holdouts",
                    "others",
                )
            met |= lives
        return parts[0].joined(parts[1:]), releases

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
