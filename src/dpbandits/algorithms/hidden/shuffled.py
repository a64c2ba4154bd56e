"""LinUCB in the shuffle model: devices report through a shuffler, and the server sees sums.

Guarantee:

* Protected: features, arm and reward of one person.  The wall stands around the shuffler.
* Adjacency: any other record of that person, who is in one batch.
* Sensitivity: the noisy sum of [x r ; svec(x x^T)] over every batch of B people crosses the wall.
  A protocol of ``dpbandits.shuffle`` adds the noise and proves its privacy.
* Assumed: nobody but the person's device learns the random bits that rounded their numbers, even
  where the person's noise is missing or known (``dropout``).

The policy adds up the sums of all batches; estimate, radius and V are post-processing.

**Why this is private.**  A person is in one batch.  Given all earlier releases, the shuffler's
output is (epsilon, delta)-DP for the person's record.  All later batches are functions of releases
and of other people's data.  So the record is in one release, even for an observer of all of them
(shuffle DP).  The person's arm is chosen on their device.  Hence the view of all others is
(epsilon, delta)-DP for the person, too (joint DP, by the billboard lemma, see ``joint``).  An
observer of the messages before the shuffler, or of the noise of all others, still faces the
person's own noise (``CertifiedProtocol.epsilon_at``).  A user in M batches enters M adaptive
releases; their noise is calibrated together (``certificates``, *Batches*).

**In loops** rewards and features are known, and the noise of a batch is drawn at once, from the law
of all its people's coins.  Rounding to the grid is drawn as normal noise of its largest possible
variance, a quarter of a squared step for every person.

**The radius** treats the noise of a sum, a hundred coins or more, as normal.  It treats published
noise as that of the orthogonal ensemble, which has more on the diagonal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Unpack

from ...constraints import Choice, Constraints, Flag, Integer
from ...errors import ArgumentError
from ...policies import Composition, composed
from ...privacy.budgets import ApproxDP, Budget
from ...privacy.continual import Counter, Independent, IndependentIntegers
from ...rooms import papers
from ...shuffle import Analyzer, BitSum, GaussianReports, Messages, ModularSum, Randomizer, Shuffler
from ...shuffle.certified import CertifiedProtocol, proved_delta, proved_epsilon
from ...shuffle.protocols import LEVELS
from ...shuffle.randomness import seed_of
from ...validation import integer
from ..bases.contextual import bounded_features, influence_through
from ..bases.counter_choice import MOST_ROUNDS
from ..bases.errata import SHUFFLED_BITS, SHUFFLED_MESSAGES
from ..bases.schedules import Schedule
from ..bases.shuffled import assumed_of_parties
from ..exploration import Divergence, Optimism, Sampling
from ..maths.confidence import gaussian_norm, symmetric_norm
from .choosing_devices import ShuffledDevice
from .kernels import of_batches
from .model import Params, statistic_size
from .policy import (
    HiddenOptions,
    HiddenPolicy,
    asks_for_published,
    composed_for,
    refuse_unpublished,
)

_PROTOCOLS: dict[str, type[CertifiedProtocol]] = {
    "bits": BitSum,
    "modular": ModularSum,
    "reports": GaussianReports,
}


@composed(n_arms=3, dimension=2, horizon=30_000, batch=4)
class HiddenLinearShuffled(HiddenPolicy):
    """A linear bandit on sums of batches, which leave a shuffler with the noise of all people of
    the batch.

    With ``messages=True`` this is the server, which has no ``pull``.  ``device()`` makes the
    program for a person's device, which chooses, and makes the messages for the ``shuffler()``.
    ``receive`` takes the shuffler's output.  With ``messages=False`` the caller of ``pull`` and
    ``update`` sees features and rewards, and is trusted with them.

    Args:
        n_arms, dimension, models: as in ``Linear``.
        budget: ``ApproxDP``, of a person, or with ``max_rounds`` of all rounds of a user; None for
            the non-private counterpart.
        horizon: an upper bound on the number of people; a generous one costs little.
            ``Divergence`` explores longer with a longer one.
        explore: as in ``HiddenLinear``; alpha and share of ``Divergence`` are higher by default, as
            noise changes slowly.
        batch: people in a batch, or "published" for the rule of the paper
            (``dpbandits.shuffle.published_batch``); without a budget for its non-private rule.
        protocol: "modular" (secure aggregation), "bits" (P_Vec) or "reports" (P_Amp), see
            ``dpbandits.shuffle``.
        level: "shuffle": the shuffler's output keeps the budget.  "local": a person's messages keep
            it by themselves; then the shuffler's output is more private.
        levels: steps of the protocol's grid; by default enough to lose little.
        dropout: people of a batch whose noise may be missing, or known to the server.
        messages: whether this is the server of devices.
        bounds: "exact" shift and radius (see ``hidden.model``).  Or for ``Optimism`` "published":
            those of Lemmas 3.9 and A.4, with the norms of the noise's law for constants that they
            leave open.
        **options: see ``HiddenOptions``.  ``calibration="paper"`` takes the noise of Theorems 3.2
            ("reports") and C.1 ("bits"), on the upper triangle of x x^T.  With ``max_rounds`` it
            takes that of their proofs for returning users (E.3, E.5), and at the local level that
            of Corollaries B.3 and C.3.  The policy's guarantee is the proved one.  They leave shift
            and radius open up to constants; here they are those of this package.

    When to choose: no party may be trusted with features, but one can be trusted to shuffle, or
    devices can sum by a protocol.  Regret is between that of the central and of the local model.

    Example:
        >>> from dpbandits import ApproxDP
        >>> options = {"horizon": 3000, "batch": 3, "messages": True, "noise": "simulation"}
        >>> server = HiddenLinearShuffled(2, 3, budget=ApproxDP(1.0, 1e-4), **options, seed=1)
        >>> shuffler = server.shuffler()
        >>> for person in range(3):
        ...     device = server.device()
        ...     arm = device.choose([[1, 0, 0], [0, 1, 0]])
        ...     shuffler.submit(device.report(1.0), person)
        >>> server.receive(shuffler.close(next_version=1))
        True
    """

    constraints: ClassVar[Constraints] = {
        "horizon": Integer(1, MOST_ROUNDS),
        "batch": Integer(1, 10**6) | Choice("published"),
        "protocol": Choice(*_PROTOCOLS),
        "level": Choice(*LEVELS),
        "levels": Integer(1, 2**20) | None,
        "dropout": Integer(0, 10**6 - 1),
        "messages": Flag(),
    }
    _constants: ClassVar[dict[str, Any]] = {**HiddenPolicy._constants, "alpha": 1.5}
    _triangular = True
    _share = 0.2  # the tail of 0.15 is above 1 run in 1,000 on close pairs
    _devices = _shufflers = 0

    @classmethod
    def composition(
        cls, *, explore: Optimism | Sampling | Divergence, messages: bool = False, **_: object
    ) -> Composition:
        """Kernels and card of an exploration, for records or messages."""
        return composed_for(
            type(explore),
            "shuffle model",
            of_batches if messages else None,
            proof=(
                "sensitivity: module dpbandits.algorithms.hidden.model; views: module"
                " dpbandits.algorithms.hidden.shuffled; noise: modules dpbandits.shuffle.protocols"
                " and certificates"
            ),
            noise=("certified",),
            trust_model="shuffle",
            view="shuffle",
            learns_at_once=messages,
            errata=(SHUFFLED_MESSAGES, SHUFFLED_BITS),
        )

    def __init__(
        self,
        n_arms: int,
        dimension: int,
        *,
        budget: ApproxDP | None,
        horizon: int,
        explore: Optimism | Sampling | Divergence = Divergence(),  # noqa: B008  (a value)
        batch: int | str = 20,
        protocol: str = "modular",
        level: str = "shuffle",
        levels: int | None = None,
        dropout: int = 0,
        messages: bool = False,
        bounds: str = "exact",
        models: str = "shared",
        **options: Unpack[HiddenOptions],
    ) -> None:
        explore, paper = self._explored(explore), asks_for_published(options, budget)
        own: dict[str, Any] = {
            "n_arms": n_arms,
            "dimension": dimension,
            "explore": explore,
            "horizon": horizon,
            "batch": batch,
            "protocol": protocol,
            "level": level,
            "levels": levels,
            "messages": messages,
            "bounds": bounds,
            "models": models,
        }
        returning = options.get("max_rounds") is not None
        people = _people(own, budget, returning=returning)
        own["dropout"] = integer("dropout", dropout, 0, people - 1)
        if bounds == "published":
            if not isinstance(explore, Optimism):
                raise ArgumentError(
                    f"bounds must be 'exact' for {explore!r}, got 'published':"
                    f" {type(explore).__name__} has no radius",
                    "bounds",
                )
            if budget is not None:
                refuse_unpublished(options, "bounds='published'")
        if paper and protocol == "modular":
            raise ArgumentError(
                f"protocol must be 'bits' or 'reports' with calibration='paper', got {protocol!r}",
                "protocol",
            )
        kernels, card = self.composition(explore=explore, messages=messages)
        if paper:
            published = papers("shuffle.published").AsPublished(self._kept)
            card = replace(card, noise=(published,))
        super().__init__(own, budget=budget, composition=Composition(kernels, card), **options)
        longest = max(self.context_bound, self._largest / self._weight)
        beyond = longest > 1.0 or dropout > 0 or self.n_models > 1 or levels is not None
        if beyond and self.calibration == "paper":
            raise ArgumentError(
                "calibration must be 'exact', got 'paper', which needs features and rewards of at"
                " most 1, dropout=0, models='shared' and levels=None",
                "calibration",
            )

    @property
    def _secure_needs(self) -> tuple[str, str]:
        if self.takes_reports:
            return super()._secure_needs
        return "messages=True", "only devices can draw this policy's secure noise"

    # The protocol ---------------------------------------------------------------------------------

    @property
    def level(self) -> str:
        """The level at which the budget holds: "shuffle" or "local"."""
        return str(self.config["level"])

    @cached_property
    def protocol(self) -> CertifiedProtocol | None:
        """Protocol of the shuffler, with its noise; None without a budget."""
        if self.budget is None:
            return None
        config, bound = self.config, self.context_bound
        assert isinstance(self.budget, ApproxDP)
        kind, batches = _PROTOCOLS[config["protocol"]], self.max_rounds or 1
        if self.calibration == "paper":
            assert issubclass(kind, BitSum | GaussianReports)
            shape = {"batch": self._batch, "features": self.dimension, "batches": batches}
            published = kind.published(self.budget, **shape, level=config["level"])
            moved = max(published.sensitivity, self._most_moved / self._diagonal)
            return replace(published, sensitivity=min(moved, 2.0 * published.bound))
        return kind.calibrated(
            self.budget,
            levels=config["levels"],
            batches=batches,
            level=config["level"],
            batch=self._batch,
            dimension=self.n_models * statistic_size(self.dimension),
            bound=bound * math.hypot(self._largest, bound),
            sensitivity=min(self._most_moved, 2.0 * bound * math.hypot(self._largest, bound)),
            largest=bound * max(self._largest, bound),
            dropout=config["dropout"],
        )

    def protocol_for(self, people: int) -> CertifiedProtocol:
        """Protocol of a batch of so many people; devices and shufflers refuse any other.

        Raises:
            ArgumentError: the policy has no budget, or batches of another size.
        """
        integer("people", people, self._batch, self._batch)
        return self._checked_protocol()

    @property
    def _largest_batch(self) -> int:
        return self._batch

    def _kept(self, budget: ApproxDP) -> float:
        """The delta that is proved of published noise."""
        assert self.protocol is not None
        return proved_delta(self.protocol, budget.epsilon, self.max_rounds or 1, self.level)

    @property
    def noise_scale(self) -> float:
        """The standard deviation of the noise on the sum of a batch, including rounding."""
        if self.protocol is None:
            return 0.0
        rounding = 0.5 * self.protocol.step * math.sqrt(self._batch)
        return self._diagonal * math.hypot(self.protocol.noise_std, rounding)

    @property
    def _noise_std(self) -> float:
        return self.noise_scale * math.sqrt(self._releases or 1)

    @cached_property
    def _counter(self) -> Counter:
        if self.protocol is None:
            return Independent(self._releases)
        amount, heads = self.protocol.noise_law
        step, rounding = self._diagonal * self.protocol.step, 0.5 * math.sqrt(self._batch)
        return IndependentIntegers(self._releases, amount, heads, step, rounding)

    @cached_property
    def _batch(self) -> int:
        """How many people are in a batch."""
        return _people(self.config, self.budget, returning=self.max_rounds is not None)

    @property
    def _schedule(self) -> Schedule:
        return Schedule(self._batch)

    @property
    def _releases(self) -> int:
        return self._schedule.releases(self.config["horizon"])

    @property
    def _noise_as_published(self) -> bool:
        return self._asks_for_published

    @property
    def _published(self) -> bool:
        return self.config["bounds"] == "published" and self.budget is not None

    # The three parties ------------------------------------------------------------------------

    def device(self) -> ShuffledDevice:
        """Program for a person's device, as ``HiddenLinearLocal.device``.

        Returns:
            A ``Device`` with the present chooser; its reports are ``Messages`` for ``shuffler``.

        Raises:
            ArgumentError: the policy has no budget, or ``messages`` is False.

        See also: ``shuffler``.
        """
        protocol = self._checked_protocol()
        self._devices += 1
        return ShuffledDevice(
            self.chooser(),
            self.params,
            Randomizer(protocol, **self._source(2 * self._devices)),
            self.reward_range,
            self.default_reward,
            self.max_rounds or 1,
        )

    def shuffler(self, *, short: str = "pad") -> Shuffler:
        """Program for the party that shuffles.

        Args:
            short: treatment of a batch with fewer people, see ``Shuffler``.

        Returns:
            A ``Shuffler``; its batches begin with the present chooser.

        Raises:
            ArgumentError: the policy has no budget, or ``messages`` is False.

        See also: ``device``.
        """
        protocol = self._checked_protocol()
        self._shufflers += 1
        source = self._source(2 * self._shufflers + 1)
        return Shuffler(protocol, version=self.ledger.releases, short=short, **source)

    def _round(self) -> tuple[int, dict[str, Any]]:
        protocol, chooser = self._checked_protocol(), json.loads(self.chooser().to_json())
        told = {"chooser": chooser, "protocol": protocol.to_dict(), "batch": protocol.batch}
        return self.ledger.releases, told

    def receive(self, messages: Messages | None) -> bool:
        """Take in the shuffler's output: the sum of a batch of people who chose with the present
        chooser.  None stands for a discarded batch, and teaches nothing.

        Returns:
            Whether the policy learned from it.

        Raises:
            ArgumentError: this policy takes no messages, or they do not come from a shuffler of its
                protocol, or have another version.
            BudgetExhausted: the planned number of batches has been taken.
            ClaimError: as in ``update`` of other policies.
        """
        protocol = self._checked_protocol()
        if messages is None:
            return False
        if messages.version != (version := self.ledger.releases):
            raise ArgumentError(
                f"messages must have version {version}, the version of the present chooser, got"
                f" {messages.version!r}",
                "messages",
            )
        return self._received(self._diagonal * Analyzer(protocol).aggregate(messages))

    def _checked_protocol(self) -> CertifiedProtocol:
        if not self.takes_reports:
            raise ArgumentError(
                "messages must be True for a policy that receives messages, got False", "messages"
            )
        if self.protocol is None:
            raise ArgumentError("budget must not be None for devices", "budget")
        return self.protocol

    def _source(self, number: int) -> dict[str, Any]:
        """Where randomness comes from; simulated, no two have the same."""
        noise, seed = self.config["noise"], self.config["seed"]
        if noise == "secure" or seed is None:
            return {"noise": noise}
        return {"noise": noise, "seed": seed_of(seed, number)}

    def _assumed(self) -> list[str]:
        if self.protocol is None or not self.takes_reports:
            return super()._assumed()
        levels = {level: self._shown_at(level) for level in LEVELS}
        missing = self.config["dropout"]
        adding = f"all but {missing} of them" if missing else "all of them"
        return [
            bounded_features(self.context_bound, "the device"),
            "the arm is carried out on the person's device, and nobody else sees it",
            influence_through("the messages that leave the shuffler"),
            f"a batch has {self._batch} people, and {adding} add their noise and keep it secret",
            "each device rounds every number with random bits of its own, which it uses once and"
            " keeps secret",
            "the shuffler lets a person into each batch at most once",
            *assumed_of_parties(),
            "nobody but the shuffler sees messages before they leave the shuffler",
            f"the messages that leave the shuffler are {levels['shuffle']} (joint DP)",
            f"before the shuffler, a person's messages alone are {levels['local']} (local DP)",
        ]

    def _shown_at(self, level: str) -> str:
        """The proved epsilon at a level, for the budget's delta."""
        assert self.protocol is not None
        assert isinstance(self.budget, ApproxDP)
        epsilon, delta, batches = self.budget.epsilon, self.budget.delta, self.max_rounds or 1
        if level != self.level or self.calibration == "paper":
            proved = proved_epsilon(self.protocol, delta, batches, level)
            # What leaves the shuffler says no more than messages did.
            keeps = level == "shuffle" and self.calibration == "exact"
            epsilon = min(epsilon, proved) if keeps else proved
        if math.isinf(epsilon):
            return "without a proved level"
        shown = f"{epsilon:.3g}"
        if float(shown) < epsilon:  # rounded up: what is said has to hold
            shown = f"{1.006 * epsilon:.3g}"
        return f"({shown}, {delta:g})-DP"

    def _with_published_bounds(self, params: Params) -> Params:
        """Lemma A.4: shift 2 S and radius of Shariff & Sheffet (2018), S for all batches."""
        d, std, releases = self.dimension, self._noise_std, self._releases or 1
        matrix_norm = symmetric_norm(d, std, releases, 0.5 * self._each_failure)
        alone = std / self._weight
        vector_norm = gaussian_norm(d, alone, releases, 0.5 * self._each_failure, alone)
        return params._replace(
            adds_up=False,
            matrix_norm=matrix_norm,
            vector_norm=vector_norm / math.sqrt(matrix_norm),
            log_odds=2.0 * math.log(2.0 / self._each_failure),
        )


def _people(config: Mapping[str, Any], budget: Budget | None, *, returning: bool) -> int:
    """How many people are in a batch."""
    batch = config["batch"]
    if not isinstance(batch, str):
        return int(batch)
    return papers("shuffle.published").published_batch(
        budget if isinstance(budget, ApproxDP) else None,
        features=config["dimension"],
        people=config["horizon"],
        protocol="reports" if config["protocol"] == "reports" else "bits",
        level=config["level"],
        returning=returning,
    )
