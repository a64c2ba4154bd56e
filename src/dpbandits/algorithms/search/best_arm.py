"""Searches for the best arm: at a confidence, or with a number of rounds.

What crosses the wall, and why a budget covers it, stands with the rules: ``top_two``, ``halving``.

**A shuffler.**  With ``messages`` the rounds for which an arm is held are one batch of
``bases.shuffled``, and the server learns its noisy sum.  So a record still enters one sum once.
The proof on errors needs three facts.

* Devices round rewards at random, within the range, and move their mean by at most 2^-32 of a step
  (``Protocol.bias``).  The rule counts this for both arms.
* Discrete Laplace noise of scale b steps obeys c of ``inference.mixture`` for that scale:
  E[exp(z k)] is one over 1 - (cosh z - 1) / (cosh(1 / b) - 1) for |z| < 1 / b.  (cosh z - 1) / z^2
  rises with |z|, so this is at most one over 1 - (z b)^2.
* If m of n people may leave out their noise, and nobody does, the noise is that of n / (n - m)
  such laws, so c is that many times as large.  As m <= ``dropout`` n, it is at most 1 / (1 -
  ``dropout``) times as large, and the rule takes that for every batch.  If some do leave it out,
  there is less noise, and c is smaller.

A person who does not come counts as the middle of the range.  The arm with the best mean is that of
such values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from ...constraints import Constraints, Integer, Real
from ...errors import ArgumentError, StateFileError
from ...policies import (
    ArmEstimates,
    Composition,
    Options,
    Policy,
    Statistic,
    composed,
    given,
    like,
    preset,
)
from ...policies.parts import PartOf
from ...privacy.budgets import Budget
from ..bases.shuffled import ShuffledPolicy, shuffled_card
from .halving import Halving, HalvingPublic
from .top_two import TopTwo, TopTwoParams, refuse_unproved

_PROBABILITY = Real(0.0, 1.0, strict=True)
_ROUNDS = Integer(1)


class _Search(Policy):
    """What ``BestArm`` and ``BestArmShuffled`` share."""

    constraints: ClassVar[Constraints] = {
        "failure_probability": _PROBABILITY | None,
        "gap": Real(0.0, strict=True) | None,
        "horizon": _ROUNDS | None,
        "rule": PartOf(TopTwo, Halving, exactly=True) | None,
    }

    @classmethod
    def composition(cls, *, rule: TopTwo | Halving, **_: object) -> Composition:
        """The kernels and the card of a rule."""
        return Composition(rule.kernels, rule.card)

    def _params(self) -> Any:
        return self.config["rule"].params(self)

    def _statistic(self) -> Statistic:
        statistic: Statistic = self.config["rule"].statistic(self)
        return statistic

    @staticmethod
    def _arm_estimates(params: Any, public: Any) -> ArmEstimates:
        rule = Halving if isinstance(public, HalvingPublic) else TopTwo
        return rule.estimates(params, public)


@composed(n_arms=3, failure_probability=0.1)
class BestArm(_Search):
    """Search for the best arm: with few errors, or in a given number of rounds.

    With ``failure_probability`` it stops when releases refute every other arm.  At most this share
    of searches recommends a wrong arm, if each arm's mean reward stays the same.  With ``horizon``
    it stops after that many rounds, without a bound on errors.

    Args:
        n_arms: number of arms.
        budget: of any notion; None for the non-private counterpart.
        failure_probability: probability of recommending another arm than the best.
        gap: in units of rewards.  An arm that is worse by at most so much counts as best, too, so
            the search stops sooner, and also where arms are equally good.  Default: no gap.
        horizon: number of rounds; afterwards the policy serves the remaining arm and stops
            learning.  The last phase is released at the next ``pull``, or by ``finish`` if no
            person comes.
        rule: ``TopTwo()`` with a failure probability, ``Halving()`` with a horizon; None for the
            fitting one.
        **options: see ``Options``.  With ``failure_probability``, ``clip`` has to be True.

    When to choose: you want to know the best arm, and rewards of the search do not matter; under
    any notion.  Batches whose rewards were lost begin anew, and are no evidence: after ``restore``,
    or a release that was interrupted.

    Example:
        >>> from dpbandits import PureDP
        >>> search = BestArm(2, failure_probability=0.05, budget=PureDP(1.0), seed=1)
        >>> while not search.stopped:
        ...     decision = search.pull()
        ...     _ = search.update(float(decision.arm == 1))
        >>> search.recommendation
        1
    """

    card = TopTwo.card

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        failure_probability: float | None = None,
        gap: float | None = None,
        horizon: int | None = None,
        rule: TopTwo | Halving | None = None,
        **options: Unpack[Options],
    ) -> None:
        own = {"n_arms": n_arms, **_asked(failure_probability, gap, horizon, rule)}
        composition = self.composition(rule=own["rule"])
        super().__init__(own, budget=budget, composition=composition, **options)
        if horizon is None:
            refuse_unproved(self)

    def _of_today(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        if "public.batches" in arrays:
            raise StateFileError(
                "an earlier version of dpbandits began this search, and kept too little for the"
                " present stopping rule. Use the earlier version to end the search"
            )
        return dict(arrays)


@composed(n_arms=3, failure_probability=0.1)
class BestArmShuffled(_Search, ShuffledPolicy):
    """Search for the best arm where people add the noise and a shuffler sums, with the Laplace
    noise of the central model (shares of noise as in Chowdhury & Zhou 2023).

    With ``messages=True`` this is the server: all people of a batch play ``device().arm``, and
    their devices report the rewards.  ``receive`` takes the output of the ``shuffler()``, until the
    search has ``stopped``; then no batch is coming.  With ``messages=False`` the caller of ``pull``
    and ``update`` sees rewards, and is trusted with them.

    Args:
        n_arms: number of arms.
        budget: ``PureDP``; None for the non-private counterpart.
        failure_probability, gap, horizon, rule: as in ``BestArm``.
        messages: whether this is the server of a shuffler.  Batches then have at most 100,000
            people, and a longer ``horizon`` is refused: devices and shufflers take no larger ones.
        dropout: maximal share of a batch's people that leave out their noise or reveal it to the
            server.  If all people add noise, there is more of it than simulations draw.  The bound
            on errors covers this.
        **options: see ``Options``.  With ``failure_probability``, ``clip`` has to be True.

    When to choose: you want to know the best arm, and no party may be trusted with rewards.  It
    needs as many people as ``BestArm``, and far fewer than ``LDPTopTwo``.

    Example:
        >>> from dpbandits import PureDP
        >>> search = BestArmShuffled(
        ...     2, failure_probability=0.05, budget=PureDP(1.0), messages=True, seed=1
        ... )
        >>> while not search.stopped:
        ...     device, shuffler, people = search.device(), search.shuffler(), search.protocol.batch
        ...     rewards = people * [float(device.arm == 1)]
        ...     _ = search.receive(shuffler.shuffle([device.report_many(rewards)]))
        >>> search.recommendation
        1
    """

    card = shuffled_card(TopTwo.card)

    @classmethod
    def composition(cls, *, rule: TopTwo | Halving, **_: object) -> Composition:
        """The kernels and the card of a rule."""
        return Composition(rule.kernels, shuffled_card(rule.card))

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        failure_probability: float | None = None,
        gap: float | None = None,
        horizon: int | None = None,
        rule: TopTwo | Halving | None = None,
        messages: bool = False,
        dropout: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        own = {"n_arms": n_arms, **_asked(failure_probability, gap, horizon, rule)}
        own |= self._shuffled(messages, dropout, options)
        if messages and horizon is not None:
            _refuse_large_batches(n_arms, horizon, self._largest_batch)
        composition = self.composition(rule=own["rule"])
        super().__init__(own, budget=budget, composition=composition, **options)
        if horizon is None:
            refuse_unproved(self)

    def _params(self) -> Any:
        params = super()._params()
        return self._fit_for_devices(params) if isinstance(params, TopTwoParams) else params


def _asked(
    failure_probability: float | None,
    gap: float | None,
    horizon: int | None,
    rule: TopTwo | Halving | None,
) -> dict[str, Any]:
    """The arguments of a search, of which a failure probability goes with ``TopTwo``, and a horizon
    with ``Halving``.
    """
    if rule is None and failure_probability is None and horizon is None:
        raise ArgumentError(
            "failure_probability or horizon must be given, got None for both",
            "failure_probability",
        )
    fitting = Halving() if failure_probability is None else TopTwo()
    chosen = fitting if rule is None else rule
    if isinstance(chosen, Halving):
        _refuse("failure_probability", failure_probability, chosen)
        _refuse("gap", gap, chosen)
        horizon = _ROUNDS("horizon", horizon)  # which it needs
    else:
        _refuse("horizon", horizon, chosen)
        failure_probability = _PROBABILITY("failure_probability", failure_probability)
    found = {"failure_probability": failure_probability, "gap": gap, "horizon": horizon}
    return {**found, "rule": chosen}


def _refuse_large_batches(n_arms: int, horizon: int, largest: int) -> None:
    """Refuse a horizon of ``Halving`` whose last phase, of two arms, has larger batches."""
    phases = max((n_arms - 1).bit_length(), 1)
    most = 2 * phases * (largest - n_arms)  # phases hand on fewer than n_arms rounds
    if horizon > most:
        raise ArgumentError(
            f"horizon must be at most {most} with messages=True, got {horizon}: devices take"
            f" batches of at most {largest} people",
            "horizon",
        )


def _refuse(name: str, value: Any, rule: Any) -> None:
    if value is not None:
        raise ArgumentError(f"{name} must be None for rule={rule!r}, got {value!r}", name)


_AT_A_CONFIDENCE: dict[str, Any] = {
    "rule": like(TopTwo, "growth", "first"),
    "failure_probability": given("failure_probability"),
    "gap": given("gap", None, quiet=True),
    "horizon": None,
}
_IN_SO_MANY_ROUNDS: dict[str, Any] = {
    "rule": Halving(),
    "failure_probability": None,
    "gap": None,
    "horizon": given("horizon"),
}
MergedTopTwo = preset(
    "MergedTopTwo",
    BestArm,
    "n_arms failure_probability gap growth first",
    """The best arm at a confidence, by Top Two on merged noisy sums.""",
    **_AT_A_CONFIDENCE,
)
SequentialHalving = preset(
    "SequentialHalving",
    BestArm,
    "n_arms horizon",
    """The best arm with a number of rounds, by sequential halving.""",
    example={"n_arms": 3, "horizon": 1000},
    **_IN_SO_MANY_ROUNDS,
)
MergedTopTwoSDP = preset(
    "MergedTopTwoSDP",
    BestArmShuffled,
    "n_arms failure_probability gap growth first messages dropout",
    """The best arm at a confidence, by Top Two on merged sums that a shuffler has added up.""",
    **_AT_A_CONFIDENCE,
)
SequentialHalvingSDP = preset(
    "SequentialHalvingSDP",
    BestArmShuffled,
    "n_arms horizon messages dropout",
    """The best arm with a number of rounds, by sequential halving on sums from a shuffler.""",
    example={"n_arms": 3, "horizon": 1000},
    **_IN_SO_MANY_ROUNDS,
)
