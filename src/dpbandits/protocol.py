"""The kernel protocol: the functions that make up an algorithm.

An algorithm is a handful of compiled functions over two sides: ``raw`` (private) and ``public``,
named tuples of arrays, and ``params``, a public named tuple that never changes.  Kernels that
decide or publish have no ``raw`` argument, so they cannot leak it by accident.  No kernel adds
noise, and none raises.

``init(params) -> (raw, public)``
    the empty state; plain Python, because it allocates
``prepare(params, public, contexts, rng)``
    draw random values that a choice needs and the public side keeps (a leader, an expert, how often
    to resample); runs before every ``choose``
``choose(params, public, contexts, rng) -> (arm, propensity)``
    the arm, and the probability with which it was drawn (nan: unknown); ``contexts`` holds the
    arms' features, shape (K, d), experts' advice, shape (K, N), or 0. It may also be a mask of open
    arms, shape (K,); ``calls.is_open`` reads it
``hold_rounds(params, public, arm) -> rounds``
    for how many rounds that choice stands
``preprocess_contexts(params, contexts, seen, rng)``
    the contexts as the algorithm takes them: within its norm bound, or perturbed
``record_pull(params, public, arm, x, n)``
    public bookkeeping of n rounds of the arm; linear in n, and n = -1 takes one round back
``weigh(params, public, arm, x)``
    turn the arm's row into the factor that multiplies its reward; by default the row stays as it is
``accumulate(params, raw, arm, x, reward, n)``
    add the (sum of the) rewards of n rounds; the order of calls is irrelevant
``release_due(params, public) -> bool``
    whether an episode is over, from public quantities only
``partition(params, public) -> int``
    whose records its release covers: ``WHOLE``, or those of one arm
``sensitivity(params, public, norm) -> float``
    the most one record moves the statistic, in the L1 or L2 norm
``close(params, public, memo)``
    end the episode, and note in ``memo`` the values that ``summarise`` and ``publish`` need; with
    this kernel the next episode begins before the release
``summarise(params, raw, public, memo, statistic)``
    fill in the statistic, and clear the data that it was made of; after ``close``, statistics of
    parts of an episode add up to that of the whole
``publish(params, public, memo, release)``
    take in the noisy statistic, or the noisy running sum of all statistics where the policy has a
    counter (``privacy.continual``)
``estimate(params, public, i) -> float``
    the estimate of the i-th coefficient of mean rewards; nan: there is none
``absorb(params, public, memo, release)``
    take in a release of another worker, with the rounds of its episode; without this kernel the
    algorithm learns from its own releases alone
``withdraw(params, public, memo)``
    an episode that was closed is never released, because its rewards were lost: undo what ``close``
    did to the public side; runs for all such episodes, the last one first
``restart(params, raw, public)``
    prepare a raw side that is empty because it was lost; by default it stays so
``rebase(params, public, release)``
    after a loss, replace the last running sum by the one from which the estimates would follow if
    each lost reward had been as estimated; for algorithms whose ``record_pull`` counts features
``stop(params, public) -> bool``
    whether a search for the best arm is over; asked after each release
``recommend(params, public) -> int``
    the arm that such a search takes for the best; -1: it is none

``choose``, ``hold_rounds``, ``weigh``, ``release_due``, ``partition``, ``sensitivity``,
``estimate``, ``stop`` and ``recommend`` do not change the public side, except for two arrays on
which no result depends: ``scratch``, working memory, and ``cache``, values that are checked before
they are used.  A state is saved, and undone, without its ``cache``.  ``record_pull`` and
``weigh`` run when an arm is pulled, ``accumulate`` when its reward is known.  ``x`` is the arm's
row of the contexts of that round, and 0 where nothing is seen.

Where contexts are private (``Card.protects``), kernels that may write to the public side or set the
schedule get no data of the round: see ``blind``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from .errors import ArgumentError
from .kernel import Generator, Kernel, Matrix, Vector, bind, kernel, unbound
from .privacy.budgets import NOTIONS, Budget, is_notion
from .privacy.channels import FAMILIES, Channel, noise_for
from .privacy.continual import Counter, RunningSum
from .privacy.guarantees import Protects, TrustModel, View
from .privacy.ledger import WHOLE, LedgerArrays

Contexts = Any  # a matrix with a row for each arm, or 0
Row = Any  # of contexts: a vector, or 0

NO_ARM = -1


@kernel
def one_round(params: Any, public: Any, arm: int) -> int:
    """``hold_rounds`` of an algorithm that chooses anew in every round."""
    return 1


@kernel
def whole(params: Any, public: Any) -> int:
    """``partition`` of an algorithm whose release covers every record of its span."""
    return WHOLE


@kernel
def as_shown(params: Any, contexts: Matrix, seen: Matrix, rng: Generator) -> None:
    """``preprocess_contexts`` of an algorithm that takes contexts as they are, or has none."""
    for a in range(contexts.shape[0]):
        for i in range(contexts.shape[1]):
            seen[a, i] = contexts[a, i]


@kernel
def nothing_to_prepare(params: Any, public: Any, contexts: Contexts, rng: Generator) -> None:
    """``prepare`` of an algorithm that draws its arm alone, or nothing."""


@kernel
def as_it_is(params: Any, public: Any, arm: int, x: Row) -> None:
    """``weigh`` of an algorithm whose rewards are multiplied by features, or by nothing."""


@kernel
def nothing_to_note(params: Any, public: Any, memo: Vector) -> None:
    """``close`` of an algorithm whose public side stays as it is until the release."""


@kernel
def no_estimate(params: Any, public: Any, i: int) -> float:
    """``estimate`` of an algorithm without a linear model."""
    return np.nan


@kernel
def stays_empty(params: Any, raw: Any, public: Any) -> None:
    """``restart`` of an algorithm whose sums begin anew after every release."""


@kernel
def nothing_to_undo(params: Any, public: Any, memo: Vector) -> None:
    """``withdraw`` of an algorithm that counts an episode only at its release."""


@kernel
def stands(params: Any, public: Any, release: Vector) -> None:
    """``rebase`` of an algorithm without features that count before their rewards."""


@kernel
def own_alone(params: Any, public: Any, memo: Vector, release: Vector) -> None:
    """``absorb`` of an algorithm that learns from its own releases alone."""


@kernel
def never(params: Any, public: Any) -> bool:
    """``stop`` of an algorithm that never ends."""
    return False


@kernel
def no_arm(params: Any, public: Any) -> int:
    """``recommend`` of an algorithm that plays for reward."""
    return NO_ARM


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """One algorithm's functions, by their names in the protocol.

    Attributes:
        skips_closed: whether ``prepare`` and ``choose``, of an algorithm without contexts, choose
            among the arms that ``calls.is_open`` says are open.
    """

    init: Kernel
    choose: Kernel
    record_pull: Kernel
    accumulate: Kernel
    release_due: Kernel
    sensitivity: Kernel
    summarise: Kernel
    publish: Kernel
    prepare: Kernel = nothing_to_prepare
    hold_rounds: Kernel = one_round
    preprocess_contexts: Kernel = as_shown
    weigh: Kernel = as_it_is
    partition: Kernel = whole
    close: Kernel = nothing_to_note
    estimate: Kernel = no_estimate
    absorb: Kernel = own_alone
    withdraw: Kernel = nothing_to_undo
    restart: Kernel = stays_empty
    rebase: Kernel = stands
    stop: Kernel = never
    recommend: Kernel = no_arm
    skips_closed: bool = False

    def fill(self, template: Kernel, *names: str, **others: Kernel) -> Kernel:
        """``template`` with this algorithm's functions of these names in its places."""
        return bind(template, **{name: getattr(self, name) for name in names}, **others)


told = unbound


@kernel
def _prepare_blind(params: Any, public: Any, contexts: Contexts, rng: Generator) -> None:
    told(params, public, 0, rng)


@kernel
def _hold_blind(params: Any, public: Any, arm: int) -> int:
    return told(params, public, NO_ARM)


@kernel
def _record_blind(params: Any, public: Any, arm: int, x: Row, n: int) -> None:
    told(params, public, NO_ARM, 0, n)


@kernel
def _weigh_blind(params: Any, public: Any, arm: int, x: Row) -> None:
    told(params, 0, arm, x)


@cache
def blind(kernels: Kernels) -> Kernels:
    """The kernels of an algorithm with private contexts, as drivers run them.

    A private arm is a function of private features.  So kernels that may write to the public side,
    or that set how long a choice stands, learn only that there was a round.  They get -1 for the
    arm, and 0 for features and contexts. Code that indexes these zeros does not compile. ``weigh``,
    which works on the record itself, gets everything but the public side.
    """
    return replace(
        kernels,
        prepare=bind(_prepare_blind, told=kernels.prepare),
        hold_rounds=bind(_hold_blind, told=kernels.hold_rounds),
        record_pull=bind(_record_blind, told=kernels.record_pull),
        weigh=bind(_weigh_blind, told=kernels.weigh),
    )


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """The statistic that an algorithm releases repeatedly.

    Attributes:
        max_sensitivity: the largest distance that one record moves it, in the channel's norm.
        max_abs_contribution: how far from zero a record can move a coordinate.
        size: its length.
        parts: the number of parts that records are divided into; a release covers one part.
        memo: how many numbers ``close`` notes.
        max_records: the most rounds in one release; 0 where that is not known.
        max_weight: the largest factor by which a coordinate weighs a reward; a plain sum has 1.
        counter: how the running sum of all statistics is released; None for algorithms that
            release each statistic by itself.
        sums_of: "arm" if a release begins with the sum of all rewards of one arm's batch, "arms"
            if it has such a sum for every arm; "" for anything else.  Intervals need it.
    """

    max_sensitivity: float
    max_abs_contribution: float
    size: int = 1
    parts: int = 0
    memo: int = 0
    max_records: int = 0
    max_weight: float = 1.0
    counter: Counter | None = None
    sums_of: Literal["", "arm", "arms"] = ""

    @classmethod
    def of_rewards(cls, reward_range: tuple[float, float], **others: Any) -> Statistic:
        """A statistic of sums of rewards, with the other attributes.  Each record enters one sum,
        once.
        """
        lo, hi = reward_range
        return cls(max_sensitivity=hi - lo, max_abs_contribution=max(-lo, hi), **others)

    def noise_scale(self, channel: Channel) -> float:
        """The scale of the channel's noise variables."""
        columns = 1.0 if self.counter is None else self.counter.column_norm(channel.norm)
        return channel.scale(self.max_sensitivity) * columns


class Wall(NamedTuple):
    """The opening in the wall, as compiled code sees it."""

    family: int
    multiplier: float
    norm: int  # of the sensitivity: 1 or 2
    ledger_family: int  # that ledger lines name
    statistic: np.ndarray  # (n,) float64: exact, private; zero after every release
    release: np.ndarray  # (n,) float64
    # (parts + 1,) int64: the first round that a part's next release covers; the last is WHOLE's
    first_unreleased: np.ndarray
    ledger: LedgerArrays
    running: RunningSum  # of the statistics, for policies with a counter
    # (n,) float64, or (0,) without a counter: what running sums before a crash had released
    earlier: np.ndarray


@dataclass(frozen=True)
class Erratum:
    """An error in a publication.

    Attributes:
        section: the section of ``docs/errata.md`` that gives the details.
        points: its sentences that people responsible for privacy should know, quoted from there.
    """

    section: str
    points: tuple[str, ...]

    @property
    def where(self) -> str:
        """Its place in the documentation.

        >>> Erratum("DP-KLUCB and DP-IMED", ()).where
        'docs/errata.md#dp-klucb-and-dp-imed'
        """
        slug = re.sub(r"[^\w\s-]", "", self.section).lower().replace(" ", "-")
        return f"docs/errata.md#{slug}"


@dataclass(frozen=True, kw_only=True)
class Card:
    """A summary of an algorithm, for lists of policies.

    Attributes:
        title: one line.
        source: the authors and the publication of the algorithm.
        noise: the families of noise that it may have, by name, or channels of one's own; empty
            where only the open channel fits.  A budget takes the one that suits it best.
        proof: where the privacy claim is proved; by default in ``source``.
        trust_model: the kind of trust that it is made for; "none" for policies without privacy.
            Without ``reports=True`` the operator of a "local" policy sees raw data, and so does
            that of a "shuffle" policy without ``messages=True``.
        protects: the data of a person that stay behind the wall.
        view: from which view the guarantee holds.
        learns_at_once: whether each answer is released when it arrives, instead of at the end of an
            episode.
        randomised: whether ``prepare``, ``choose`` or ``preprocess_contexts`` draws random numbers.
        refuted_because: why the published claim is false, for algorithms that only reproduce a
            paper; empty for all others.
        errata: the errors in the publication; an algorithm may correct them, or follow the
            publication.
    """

    title: str
    source: str
    noise: tuple[Any, ...] = ()
    proof: str = ""
    trust_model: TrustModel = "central"
    protects: Protects = "rewards"
    view: View = "interactive"
    learns_at_once: bool = False
    randomised: bool = False
    refuted_because: str = ""
    errata: tuple[Erratum, ...] = ()

    def __str__(self) -> str:
        proof = f" Proof: {self.proof}." if self.proof else ""
        said = f"{self.title}. Source: {self.source}.{proof}"
        return f"{said} Use policy.card_page() for the full card."

    def __post_init__(self) -> None:
        if any(isinstance(one, str) and one not in FAMILIES for one in self.noise):
            raise ArgumentError(
                "noise must be a tuple of channels, or of names among"
                f" {', '.join(map(repr, FAMILIES))}, got {self.noise!r}",
                "noise",
            )

    def takes(self, notion: Budget | type[Budget]) -> bool:
        """Whether the algorithm has noise for a budget, or a notion; False for anything else.

        >>> from dpbandits import PureDP, ZCDP
        >>> from dpbandits.papers.concentrated import AdaCUCB
        >>> AdaCUCB.card.takes(ZCDP(1.0)), AdaCUCB.card.takes(PureDP)
        (True, False)
        """
        kind = notion if isinstance(notion, type) else type(notion)
        return is_notion(kind) and noise_for(kind, self.noise) is not None

    @property
    def notions(self) -> list[type[Budget]]:
        """The notions that the algorithm has noise for."""
        return [kind for kind in NOTIONS.values() if self.takes(kind)]

    @cached_property
    def hides_contexts(self) -> bool:
        """Whether contexts, and with them arms, are behind the wall."""
        return self.protects != "rewards"
