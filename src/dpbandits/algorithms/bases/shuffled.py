"""Shuffle trust: the wall stands around the people of a batch, who together add its noise.

Guarantee:

* Protected: the reward of one person, from anyone who sees all messages that leave the shuffler.
* Adjacency: a person is in one batch.  Arm and number of people are public, and follow from earlier
  releases.
* Assumed: the shuffler takes away order and identity, and the people of a batch add their noise.

The rounds for which a choice of an arm stands are one batch.  Each person's device reports the
reward, a shuffler sums the reports, and the server learns the noisy sum.  The server releases it as
it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np

from ...constraints import Constraints, Flag, Real
from ...errors import ArgumentError
from ...policies import Card, Decision, Policy
from ...privacy.budgets import Budget
from ...session import episodes
from ...shuffle import Analyzer, LaplaceShares, Messages, Randomizer, Shuffler
from ...shuffle.randomness import seed_of
from ...stores import User
from ...tables import TableLike, flat
from ...tables.manners import PRIVATE
from ...validation import integer, number_or_nan

_MOST = 2**40  # people of a batch


@dataclass(frozen=True, eq=False, repr=False)
class RewardDevice:
    """Program for the device of a person in a batch: makes messages of their reward.

    ``ShuffledPolicy.device()`` makes one for all people of a batch.  It can be pickled, and keeps
    no reward.  A device always sends, ``report()`` if no reward came: silence would reveal that.
    """

    arm: int  # that the people of the batch play
    randomizer: Randomizer  # whose messages it sends
    reward_range: tuple[float, float]  # rewards outside are clipped to it
    default_reward: float  # what is sent where no reward came, or one that is not a number

    def __repr__(self) -> str:
        return f"<RewardDevice for a batch of arm {self.arm}>"

    def report(self, reward: float | None = None) -> Messages:
        """One person's messages; an entry that is no number counts as no reward: an error would
        reveal it.
        """
        return self._sent(np.array([number_or_nan(reward)]))

    def report_many(self, rewards: TableLike) -> Messages:
        """Messages of several people, for experiments; entries that are no numbers become
        ``default_reward``.

        Raises:
            ArgumentError: the shape is wrong, or there is no number at all.
        """
        return self._sent(flat("rewards", rewards, PRIVATE))

    def _sent(self, values: np.ndarray) -> Messages:
        lo, hi = self.reward_range
        values = np.clip(np.where(np.isnan(values), self.default_reward, values), lo, hi)
        return self.randomizer.encode_many((values - _middle(lo, hi))[:, None])


_ON_DEVICES = (  # arguments that only take one value with messages, and why
    ("max_rounds", None, "the server does not see who sent a message"),
    ("clip", True, "devices always clip rewards"),
    ("choices_public", False, "the server does not see what each person did"),
)


class ShuffledPolicy(Policy):
    """Base class of policies that learn sums of an arm's rewards through a shuffler; with
    ``messages`` they are servers only.
    """

    _parties = 0
    _largest_batch = 10**5  # people; whoever ships a config may lower it
    constraints: ClassVar[Constraints] = {"messages": Flag(), "dropout": Real(0.0, 0.99)}

    @staticmethod
    def _shuffled(messages: bool, dropout: float, options: Any) -> dict[str, Any]:
        """The arguments that say who adds noise."""
        for name, only, why in _ON_DEVICES:
            if messages and options.get(name, only) != only:
                raise ArgumentError(
                    f"{name} must be {only} with messages=True, got {options[name]!r}: {why}",
                    name,
                )
        return {"messages": messages, "dropout": dropout}

    def _fit_for_devices(self, params: Any) -> Any:
        """The parameters, whose ``longest`` batch with messages is one that devices take."""
        if not self.takes_reports:
            return params
        return params._replace(longest=min(params.longest, self._largest_batch))

    @property
    def _noise_of_sums(self) -> tuple[float, float]:
        if not self.takes_reports or self.budget is None:
            return super()._noise_of_sums
        lo, hi = self.reward_range
        shares = _protocol(self.budget, 2, 0.5 * (hi - lo), 0)
        return shares.noise * shares.step, self._dropout

    @property
    def _rounding(self) -> float:
        if not self.takes_reports or self.budget is None:
            return super()._rounding
        lo, hi = self.reward_range
        return super()._rounding + _protocol(self.budget, 2, 0.5 * (hi - lo), 0).bias

    @property
    def _dropout(self) -> float:
        return float(self.config["dropout"])

    @property
    def takes_masks(self) -> bool:
        # The devices of the coming batch have its arm already, so no mask can change it.
        return super().takes_masks and not self.takes_reports

    def pull(
        self,
        contexts: None = None,
        *,
        user: User | None = None,
        available: Iterable[int | str] | None = None,
        at: float | None = None,
        on_store_failure: Literal["raise", "serve"] = "raise",
        targets: Mapping[str, int | str | Decision] | None = None,
    ) -> Decision:
        if self.takes_reports:
            raise ArgumentError(
                "messages must be False for pull(). With messages=True, device().arm is the arm to"
                " play, and receive() takes the shuffler's output",
                "messages",
            )
        given: Any = {"user": user, "available": available, "at": at, "targets": targets}
        return super().pull(contexts, **given, on_store_failure=on_store_failure)

    @property
    def protocol(self) -> LaplaceShares:
        """Protocol of the coming batch; its ``batch`` is the number of people.

        Raises:
            ArgumentError: the policy has no budget, or has stopped learning.
        """
        with self._lock:
            return self._coming()

    def _coming(self) -> LaplaceShares:
        people = self.session.coming()[1]
        if self.budget is not None and (people > _MOST or self.session.choices.found() is not None):
            raise ArgumentError(
                "there is no next batch, because one arm is left and the policy has stopped"
                " learning"
            )
        return self.protocol_for(people)

    def protocol_for(self, people: int) -> LaplaceShares:
        """Protocol of a batch of so many people; devices and shufflers refuse any other.

        Raises:
            ArgumentError: the policy has no budget, or there is no such batch.
        """
        if self.budget is None:
            raise ArgumentError("budget must not be None for a shuffled batch", "budget")
        people = integer("people", people, 1, _MOST)
        lo, hi = self.reward_range
        return _protocol(self.budget, people, 0.5 * (hi - lo), math.floor(self._dropout * people))

    def device(self) -> RewardDevice:
        """Program for the devices of the coming batch.

        Raises:
            ArgumentError: the policy has no budget.
        """
        with self._lock:  # shares of noise suit the batch of this version alone
            arm = self.session.coming()[0].arm
            randomizer = Randomizer(
                self.protocol, version=self.session.rounds.recorded, **self._source()
            )
        return RewardDevice(arm, randomizer, self.reward_range, self.default_reward)

    def shuffler(self, *, short: str = "pad") -> Shuffler:
        """Shuffler between the people of the coming batch and the server.

        Args:
            short: see ``Shuffler``.  With "pad", people who do not come count as the middle of the
                reward range; of a batch that is discarded nothing is learned, and it comes again.

        Raises:
            ArgumentError: the policy has no budget, or ``short`` is another word.
        """
        with self._lock:
            protocol, version = self.protocol, self.session.rounds.recorded
            return Shuffler(protocol, version=version, short=short, **self._source())

    def _round(self) -> tuple[int, dict[str, Any]]:
        with self._lock:
            arm, protocol = self.session.coming()[0].arm, self._coming()
            told = {"arm": arm, "protocol": protocol.to_dict(), "batch": protocol.batch}
            return self.session.rounds.recorded, told

    def receive(self, messages: Messages | None) -> bool:
        """Take in the shuffler's output for the coming batch; None if the batch was discarded.

        Returns:
            Whether the policy learns from it.

        Raises:
            ArgumentError: the policy takes no messages, or these belong to another batch or do not
                come from a shuffler.
            ClaimError: as in ``update`` of other policies.
        """
        if not self.takes_reports:
            raise ArgumentError("messages must be True for receive(), got False", "messages")
        if messages is None:
            return False
        with self._lock.step:
            # Messages of another batch may have noise for more people, or be of another arm.
            version = self.session.rounds.recorded
            if messages.version != version:
                raise ArgumentError(
                    f"messages must have version {version}, the version of the coming batch, got"
                    f" {messages.version!r}",
                    "messages",
                )
            protocol = self._coming()
            total = float(Analyzer(protocol).aggregate(messages)[0])
            return episodes.receive_sum(
                self.session, total + protocol.batch * _middle(*self.reward_range)
            )

    def _source(self) -> dict[str, Any]:
        """Randomness that no other party of this policy has."""
        self._parties += 1
        seed = self.config["seed"]
        seed = seed if seed is None else seed_of(seed, self.session.rounds.recorded, self._parties)
        return {"noise": self.config["noise"], "seed": seed}

    def _assumed(self) -> list[str]:
        if not self.takes_reports:
            return []
        share = f"all but {100.0 * self._dropout:.3g} % of" if self._dropout else "all"
        return [
            "the shuffler makes each batch as large as the devices were told",
            f"{share} the people of a batch add their noise, and keep it secret",
            "a person is in one batch only, and the shuffler takes only one record from them",
            "the time at which a batch closes does not depend on its rewards",
            *assumed_of_parties(),
            "nobody but the shuffler sees messages before they leave the shuffler",
            "until the shuffler adds up a batch, a reward has no protection of its own, because a"
            " person's share of the noise may be zero",
        ]


def assumed_of_parties() -> list[str]:
    """What a guarantee with devices, a shuffler and a server assumes of these."""
    return [
        "the shuffler fills up shorter batches with messages of noise alone",
        "the shuffler knows this noise, so this noise does not protect rewards from the shuffler."
        " Against the shuffler it counts as if people had dropped out",
        "the server and the shuffler never share what they see, not even later",
        "the party that runs the server holds none of the tickets with which people send messages",
        "programs and configurations come from a source that people trust",
        "no older copy of a device or of the shuffler is used again",
        "the time of sending does not depend on what is sent",
    ]


@cache
def _protocol(budget: Budget, people: int, bound: float, dropout: int) -> LaplaceShares:
    return LaplaceShares.calibrated(budget, batch=people, dimension=1, bound=bound, dropout=dropout)


def _middle(lo: float, hi: float) -> float:
    """What messages count as zero."""
    return lo + 0.5 * (hi - lo)


def shuffled_card(of: Card) -> Card:
    """Card of the shuffled form of a policy: shares of noise add up to Laplace noise."""
    return replace(
        of,
        noise=("Laplace",),
        title=of.title.replace("sums", "sums from a shuffler"),
        source=f"{of.source}; shares of noise as in Chowdhury & Zhou (2023)",
        proof="module dpbandits.shuffle.laplace; parallel composition: Azize & Basu (2024)",
        trust_model="shuffle",
        view="shuffle",
    )
