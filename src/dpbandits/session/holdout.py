"""A holdout: a share of people whom the bandit does not serve, to tell what arms really do.

A coin decides who is held out.  A held-out person gets an arm that is drawn with fixed
probabilities, whatever is known of the arms.  So ``Decision.propensity`` is exact, and arms are
compared on people who came at the same times.  Nothing is learned from them.

Guarantee:

* Protected: one person's reward, or all of a user's with ``max_rounds``, as by the bandit; where it
  hides contexts, these, too.
* Adjacency: one record is another.
* Sensitivity: a held-out record enters one sum, of its arm or with ``one_sum`` of both, and moves
  it by at most ``hi - lo``.  With ``one_sum`` a reward r of arm 0 counts as lo + hi - r, which
  moves as far.  With ``targets`` it enters one vector (``holdout_targets``).

**Parallel composition.**  The coin is a keyed hash of the number of the pull, or with
``max_rounds`` of the user.  So it is a function of public facts and of a key that was drawn before
any record.  Fix the key, and let data sets differ in one person's records.  All of them are in one
stream, the bandit's or the holdout's, and in the same one in both data sets.  Each stream has
sums, noise, ledger and random numbers of its own.  Whom it records depends on public facts, and
on its own releases.  So given the transcript, the releases of the other stream have one law under
both data sets.  Hence the privacy loss is that of the person's stream alone, for every adversary
who sees both transcripts and chooses rewards.  Each stream may spend the whole budget.

**Private contexts.**  There a record is (x, r), and data sets differ in both.  The arm of a
held-out person is drawn among all arms that are not retired.  ``available``, and contexts without a
row for some arm, are refused, because a person's open arms are private.  So the arm, its
probability, and whether and when the person is recorded are functions of public facts and of coins.
They are equal in both data sets, and may be published.  A sum reads r alone, so x moves nothing,
and r moves one sum of the arm as above.  The bandit's session is not asked: it has the state and
the random numbers that it would have without the person.  Decisions of others are functions of
their own contexts and of releases.  Hence their joint law with both transcripts has the privacy
loss of the person's stream, and for records of the bandit its joint guarantee holds as it is.
Targets are refused, because a target's arm, and so the sum that r enters, would depend on x.

**Retired and closed arms.**  The draw is among open arms, with their weights divided by the sum of
these.  So no probability is smaller than the declared weight, and the coin stays as it is: no
larger share of people is held out than was declared.

**Minimum shares.**  A held-out person gets arm a with probability w_a, and is held out with
probability s.  So at least a share s w_a of people gets it, whatever the bandit plays.  With
``min_share`` m and K arms, s is K m, and each w_a is 1 / K.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..calls import is_open
from ..constraints import Constraint, Constraints, Flag, Integer, Real, checked
from ..errors import ArgumentError
from ..kernel import Generator, Vector, kernel
from ..privacy.channels import LAPLACE, Channel
from ..protocol import Card, Contexts, Kernels, Row, Statistic
from ..stores import User
from ..stores.tokens import named
from ..validation import printable, real, shown

_FLOOR = 0.01  # of a weight
_SHORTEST, _LONGEST = 50, 10**6  # batches: by default, and at all
_MOST_TARGETS, _LONGEST_NAME = 100, 60
_SIDES = 2.0**64  # of the coin

PROOF = "module dpbandits.session.holdout"
CARD = Card(
    title="held-out people",
    source="a randomised trial beside the bandit",
    proof=PROOF,
    noise=("Laplace", "Gaussian"),
    randomised=True,
)


@dataclass(frozen=True)
class Holdout:
    """A share of people to keep from the bandit; ``holdout=0.1`` is ``Holdout(0.1)``.

    Attributes:
        share: of people who are held out, on average; None where ``min_share`` is given.
        weights: the probability of each arm for held-out people, at least 0.01 each.  None: all
            arms have equal weights.
        batch: how many held-out people a released sum has.  None: at least 50, and so many that
            noise at most doubles the variance of a sum of rewards 0 and 1 of mean 1/2.
        one_sum: True to release one sum of both arms, for two arms with equal weights.  It tells of
            the difference of their means alone, with half the variance of noise.
        targets: names of other policies, such as a rule, whose mean rewards are to be known, too.
            All arms have equal weights, and ``pull`` needs each target's arm.  A batch then has
            people with all arms, by default so many more.
        min_share: in place of ``share`` and ``weights``: every arm gets at least this share of all
            people, on average.  With K arms, K times as many are held out, with equal weights.

    >>> Holdout(0.1, batch=50)
    Holdout(share=0.1, batch=50)
    >>> Holdout(min_share=0.05).share_of(n_arms=4)
    0.2
    """

    share: float | None = None
    weights: Sequence[float] | None = None
    batch: int | None = None
    one_sum: bool = False
    targets: Sequence[str] = ()
    min_share: float | None = None

    constraints: ClassVar[Constraints] = {
        "share": Real(0.0, 1.0, strict=True) | None,
        "batch": Integer(1, _LONGEST) | None,
        "one_sum": Flag(),
        "min_share": Real(0.0, 1.0, strict=True) | None,
    }

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in self.constraints}
        for name, value in checked(Holdout, **given).items():
            object.__setattr__(self, name, value)
        if self.weights is not None:
            object.__setattr__(self, "weights", _weights(self.weights))
        object.__setattr__(self, "targets", _names(self.targets))
        if self.targets and self.one_sum:
            raise ArgumentError("one_sum must be False with targets, got True", "one_sum")
        if (self.share is None) == (self.min_share is None):
            raise ArgumentError(
                "share or min_share must be given, and not both, got"
                f" share={self.share} and min_share={self.min_share}",
                "share",
            )
        if self.min_share is not None and self.weights is not None:
            raise ArgumentError(
                "weights must be None with min_share, which holds for every arm", "weights"
            )

    def to_dict(self) -> dict[str, Any]:
        """The arguments that are not at their default, for files."""
        return {
            one.name: value
            for one in fields(self)
            if (value := getattr(self, one.name)) != one.default
        }

    def __repr__(self) -> str:
        return f"Holdout({', '.join(f'{name}={one!r}' for name, one in self.to_dict().items())})"

    def moved(self, norm: int) -> float:
        """By how many widths of the reward range a record moves a release, in L1 or L2."""
        sums = 1.0 + len(self.targets)
        return sums if norm == 1 else math.sqrt(sums)

    def batch_for(self, channel: Channel, n_arms: int) -> int:
        """How many people a release has under that noise."""
        if self.batch is not None:
            return self.batch
        scale = channel.scale(self.moved(channel.norm))
        variance = scale * scale * (2.0 if channel.family == LAPLACE else 1.0)
        of_an_arm = max(math.ceil(4.0 * variance), _SHORTEST)
        return min(of_an_arm * (n_arms if self.targets else 1), _LONGEST)

    def share_of(self, n_arms: int) -> float:
        """The share of people who are held out where there are so many arms; an ``ArgumentError``
        where it would be all of them.
        """
        if self.share is not None:
            return self.share
        assert self.min_share is not None
        share = n_arms * self.min_share
        if share >= 1.0:
            raise ArgumentError(
                f"min_share of the holdout must be below 1 / {n_arms} with {n_arms} arms, got"
                f" {self.min_share:g}",
                "holdout",
            )
        return share

    def weights_of(self, n_arms: int) -> np.ndarray:
        """The probability of each arm, where there are so many; an ``ArgumentError`` where they do
        not fit.
        """
        weights = np.full(n_arms, 1.0 / n_arms) if self.weights is None else np.array(self.weights)
        if len(weights) != n_arms:
            raise ArgumentError(
                f"weights of the holdout must hold {n_arms} numbers, one for each arm, got"
                f" {len(weights)}",
                "holdout",
            )
        if self.one_sum and not np.array_equal(weights, [0.5, 0.5]):
            raise ArgumentError(
                "one_sum of the holdout must be False, got True: True needs exactly two arms with"
                " equal weights",
                "holdout",
            )
        if self.targets and np.ptp(weights) > 0.0:
            raise ArgumentError(
                "weights of the holdout must be equal for all arms if targets are given: with other"
                " weights sums would not be exact",
                "holdout",
            )
        return weights


def _weights(given: object) -> tuple[float, ...]:
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str):
        raise ArgumentError(f"weights must be a list of numbers, got {shown(given)}", "weights")
    weights = tuple(real("weights", one, _FLOOR, 1.0) for one in given)
    if not math.isclose(math.fsum(weights), 1.0, rel_tol=1e-9):
        raise ArgumentError(
            f"weights must add up to 1, got a sum of {math.fsum(weights):.6g}", "weights"
        )
    return weights


def _names(given: object) -> tuple[str, ...]:
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) > _MOST_TARGETS:
        raise ArgumentError(
            f"targets must be a list of at most {_MOST_TARGETS} names, got {shown(given)}",
            "targets",
        )
    names = tuple(printable("targets", one, _LONGEST_NAME) for one in given)
    if len(set(names)) < len(names):
        raise ArgumentError(f"targets must differ from each other, got {names}", "targets")
    return names


@dataclass(frozen=True)
class HoldoutOf(Constraint):
    """A share of people, a ``Holdout``, or its form in a file."""

    def __call__(self, name: str, value: object) -> Holdout:
        if isinstance(value, Holdout):
            return value
        known = {one.name for one in fields(Holdout)}
        if (
            isinstance(value, Mapping)
            and {"share", "min_share"} & set(value)
            and set(value) <= known
        ):
            return Holdout(**value)
        if isinstance(value, int | float) and Holdout.constraints["share"].takes(value):
            return Holdout(float(value))
        raise ArgumentError(f"{name} must be {self}, got {shown(value)}", name)

    def __str__(self) -> str:
        return "a number in (0, 1), or a Holdout()"

    @property
    def refused(self) -> tuple[object, ...]:
        return (True, "big", math.nan, 0.0, 1.0, [0.1], {}, {"share": 0.1, "arms": 2})


@dataclass(frozen=True)
class Coin:
    """The coin that decides who is held out."""

    key: bytes = field(repr=False)
    share: float

    def holds_out(self, user: User | None, number: int) -> bool:
        """Whether the person of a pull is held out: always so, or never, for a user."""
        who = b"pull:%d" % number if user is None else b"user:" + named(user)
        drawn = blake2b(who, digest_size=8, key=self.key).digest()
        return int.from_bytes(drawn, "big") < self.share * _SIDES


# The algorithm -------------------------------------------------------------------------------


class HoldoutParams(NamedTuple):
    """What never changes."""

    weights: np.ndarray  # (K,) probabilities of the arms
    batch: int
    one_sum: bool
    turned: float  # lo + hi, on the grid
    width: float  # hi - lo
    targets: int  # q


class HoldoutRaw(NamedTuple):
    """The private side."""

    total: np.ndarray  # (K,) sums of the running batches; (1,) with one sum


class HoldoutPublic(NamedTuple):
    """The public side."""

    fresh: np.ndarray  # likewise: people in the running batches
    clock: np.ndarray  # (1,) which of them the last person is in


def init(params: HoldoutParams) -> tuple[HoldoutRaw, HoldoutPublic]:
    """Both sides, empty."""
    n = 1 if params.one_sum else len(params.weights)
    return HoldoutRaw(np.zeros(n)), HoldoutPublic(np.zeros(n, np.int64), np.zeros(1, np.int64))


@kernel
def choose(
    params: HoldoutParams, public: HoldoutPublic, contexts: Contexts, rng: Generator
) -> tuple[int, float]:
    """An open arm, with a probability in proportion to its weight."""
    whole = 0.0
    for a in range(params.weights.size):
        if is_open(contexts, a):
            whole += params.weights[a]
    left, arm = whole * rng.random(), 0
    for a in range(params.weights.size):
        if is_open(contexts, a):
            arm = a
            left -= params.weights[a]
            if left < 0.0:
                break
    return arm, params.weights[arm] / whole


@kernel
def record_pull(params: HoldoutParams, public: HoldoutPublic, arm: int, x: Row, n: int) -> None:
    """Count a person in a batch."""
    public.clock[0] = 0 if params.one_sum else arm
    public.fresh[public.clock[0]] += n


@kernel
def accumulate(
    params: HoldoutParams, raw: HoldoutRaw, arm: int, x: Row, reward: float, n: int
) -> None:
    """The sum of rewards; with one sum, those of arm 0 count as lo + hi - r."""
    if not params.one_sum:
        raw.total[arm] += reward
    elif arm == 1:
        raw.total[0] += reward
    else:
        raw.total[0] += n * params.turned - reward


@kernel
def release_due(params: HoldoutParams, public: HoldoutPublic) -> bool:
    """Whether the batch of the last person is full."""
    return public.fresh[public.clock[0]] >= params.batch


@kernel
def partition(params: HoldoutParams, public: HoldoutPublic) -> int:
    """The arm of that batch; all arms with one sum."""
    return -1 if params.one_sum else public.clock[0]


@kernel
def sensitivity(params: HoldoutParams, public: HoldoutPublic, norm: int) -> float:
    """A record is in one sum, once."""
    return params.width


@kernel
def close(params: HoldoutParams, public: HoldoutPublic, memo: Vector) -> None:
    """Note which batch is full, and begin another."""
    memo[0] = public.clock[0]
    public.fresh[public.clock[0]] = 0


@kernel
def summarise(
    params: HoldoutParams, raw: HoldoutRaw, public: HoldoutPublic, memo: Vector, statistic: Vector
) -> None:
    """The sum of the full batch."""
    which = int(memo[0])
    statistic[0] = raw.total[which]
    raw.total[which] = 0.0


@kernel
def publish(params: HoldoutParams, public: HoldoutPublic, memo: Vector, release: Vector) -> None:
    """Nothing is learned: the session keeps every release for estimates."""


KERNELS = Kernels(
    init=init,
    choose=choose,
    record_pull=record_pull,
    accumulate=accumulate,
    release_due=release_due,
    partition=partition,
    sensitivity=sensitivity,
    close=close,
    summarise=summarise,
    publish=publish,
    skips_closed=True,
)


def statistic_of(params: HoldoutParams, reward_range: tuple[float, float]) -> Statistic:
    """One sum of a batch; each arm has batches of its own unless there is one sum."""
    parts = 0 if params.one_sum else len(params.weights)
    return Statistic.of_rewards(
        reward_range, memo=1, parts=parts, sums_of="arm", max_records=params.batch
    )
