"""A few arms: ``Arms`` under central trust, ``ArmsShuffled`` where a shuffler adds up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Unpack

import numpy as np

from ...constraints import Constraints
from ...errors import ArgumentError
from ...policies import (
    ArmEstimates,
    Card,
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
from ...privacy.channels import Laplace
from ..bases.horizon import HORIZON
from ..bases.shuffled import ShuffledPolicy, shuffled_card
from .batches import Batches, Growing, Plan
from .earlier import as_of_today
from .held import ArmsParams, held_kernels
from .indices import IMED, KLUCB, Index, Thompson
from .interleaved import INTERLEAVED
from .law import merged_estimates
from .memories import AGED, Discount, Memory, Merge

PROOF = (
    "module dpbandits.algorithms.arms.held; parallel composition by Azize & Basu (2024, Theorem 12,"
    " and Appendix D for pure DP)"
)
PARALLEL = (
    "parallel composition: Azize & Basu (2024), Concentrated Differential Privacy for Bandits,"
    " Theorem 12"
)


def composed_card(card: Card, index: Index, memory: Memory | None = None) -> Card:
    """Card for parts that no preset combines: privacy is proved for any parts, regret is not."""
    on = [] if memory is None else [memory]
    sources = [index.source, *(one.source for one in on), card.source]
    return replace(
        card,
        title=f"{index.title} on {on[0].title}" if on else f"{index.title}, {card.title}",
        source="; ".join(dict.fromkeys(sources))
        + "; no theorem on the regret of this combination is known",
        randomised=index.randomised,
        errata=index.errata,
    )


class _HeldArms(Policy):
    """What ``Arms`` and ``ArmsShuffled`` share."""

    learns_off_policy = True
    constraints: ClassVar[Constraints] = {
        "index": PartOf(Index),
        "memory": PartOf(Memory),
        "batches": PartOf(Batches),
    }

    def _statistic(self) -> Statistic:
        (lo, hi), index = self.reward_range, self.config["index"]
        # Rounding r (1 - r) moves it by half a step, before and after.
        rounding = self.grid if index.learns_variance else 0.0
        return Statistic(
            max_sensitivity=float(hi - lo + rounding),
            max_abs_contribution=max(-lo, hi),
            size=2 if index.learns_variance else 1,
            memo=self.config["memory"].memo,
            parts=self.n_arms if isinstance(index, Thompson) else 0,
            sums_of="arm",
        )

    def _params(self) -> ArmsParams:
        index, memory = self.config["index"], self.config["memory"]
        plan: Plan = self.config["batches"].plan
        (lo, hi), laplace = self.reward_range, isinstance(self.channel, Laplace)
        scale = self.noise_scale / (hi - lo)
        noise = scale * scale * (2.0 if laplace else 1.0)
        return ArmsParams(
            n_arms=self.n_arms,
            constant=index.constant,
            horizon=index.known_horizon,
            highest=memory.highest,
            decay=memory.decay(self.n_arms, noise),
            forgets=memory.forgets,
            growth=plan.growth,
            growth_in_noise=plan.growth_in_noise,
            first=plan.first,
            longest=plan.longest or memory.longest(self.n_arms, noise),
            noise_scale=scale,
            laplace=laplace,
            curved=index.learns_variance,
            low=lo,
            width=hi - lo,
            movement=self.statistic.max_sensitivity,
            grid=self.grid if index.learns_variance else 0.0,
        )

    def params_for(self, n: int) -> Any:
        if isinstance(self.config["memory"], Discount):
            return None
        return self.params._replace(first=n, longest=max(n, self.params.longest))

    @property
    def _no_intervals(self) -> str:  # type: ignore[override]
        changing = isinstance(self.config["memory"], Discount)
        return "the policy expects that means change" if changing else ""

    @property
    def takes_each_reward(self) -> bool:
        return bool(self.config["index"].learns_variance)

    @staticmethod
    def _arm_estimates(params: Any, public: Any) -> ArmEstimates:
        found = merged_estimates(params, public)
        if not params.forgets:
            return found
        return found._replace(rounds=public.merged[AGED.rounds].astype(np.int64))

    def _of_today(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return as_of_today(self, arrays)


@composed(n_arms=3)
class Arms(_HeldArms):
    """Bandit with a finite number of arms: plays one arm for a batch and releases its noisy sum.

    Args:
        n_arms: number of arms.
        budget: of any notion; None for the non-private counterpart.
        index: which arm to play: ``IMED()``, ``KLUCB()``, ``UCB()`` or ``Thompson()``.
        memory: how old sums are weighed: ``Merge()``, ``Forget()`` or, if arms change,
            ``Discount(rounds_per_change)``.
        batches: number of rounds for which an arm is played: ``Growing()`` or ``Fixed(rounds)``.
        **options: see ``Options``.

    Raises:
        ArgumentError: an argument is out of range, or two parts do not fit together.

    When to choose: there are finitely many arms, and the operator of the policy is trusted with
    rewards.

    Example:
        >>> from dpbandits import PureDP
        >>> from dpbandits.parts import KLUCB, Fixed
        >>> policy = Arms(3, budget=PureDP(1.0), index=KLUCB(), batches=Fixed(50), seed=1)
        >>> policy.update(1.0, policy.pull())
        True
    """

    card = Card(title="a few arms", source=PARALLEL, proof=PROOF, noise=("Laplace", "Gaussian"))

    @classmethod
    def composition(cls, index: Index, memory: Memory, batches: Batches) -> Composition:
        """Kernels and card of parts.

        Raises:
            ArgumentError: two do not go together.
        """
        card = composed_card(cls.card, index, memory)
        if isinstance(index, Thompson) and type(index) is not Thompson:
            raise ArgumentError(
                f"index must be of a class derived from Index, not from Thompson, got {index!r}",
                "index",
            )
        if not isinstance(index, Thompson):
            return Composition(held_kernels(index, memory), card)
        card = replace(card, proof=PROOF.replace("arms.held", "arms.interleaved"))
        return Composition(INTERLEAVED, card)

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        index: Index | str = IMED(),  # noqa: B008  (a value)
        memory: Memory | str = Merge(),  # noqa: B008
        batches: Batches | str = Growing(),  # noqa: B008
        **options: Unpack[Options],
    ) -> None:
        parts = _parts(index, memory, batches)
        composition = self.composition(**parts)
        super().__init__(
            {"n_arms": n_arms, **parts}, budget=budget, composition=composition, **options
        )

    @property
    def half_life(self) -> float:
        """Number of rounds after which a sum counts half; infinite for memories without fading."""
        decay = float(self.params.decay)
        return math.log(2.0) / decay if decay > 0.0 else math.inf


@composed(n_arms=3)
class ArmsShuffled(_HeldArms, ShuffledPolicy):
    """Bandit with a finite number of arms, where people add the noise and a shuffler sums: the
    Laplace noise of the central model (shares of noise as in Chowdhury & Zhou 2023).

    With ``messages=True`` this is the server: all people of a batch play ``device().arm``, and
    their devices report the rewards.  ``receive`` takes the output of the ``shuffler()``.  The
    server sees no reward; secure aggregation may replace the shuffler.  With ``messages=False`` the
    caller of ``pull`` and ``update`` sees rewards, and is trusted with them.

    Args:
        n_arms: number of arms.
        budget: ``PureDP``; None for the non-private counterpart.
        index, memory, batches: as in ``Arms``; the index must be deterministic.  It must not learn
            the variance of rewards, which needs a second sum.
        messages: whether this is the server of a shuffler.  Batches then have at most 100,000
            people: devices and shufflers take no larger ones.
        dropout: maximal share of a batch's people that leave out their noise or reveal it to the
            server.  If all people add noise, there is more of it than the index assumes and
            simulations draw.
        **options: see ``Options``.

    When to choose: no party may be trusted with rewards, but regret must be close to the central
    model's.

    Example:
        >>> from dpbandits import PureDP
        >>> server = ArmsShuffled(3, budget=PureDP(1.0), messages=True, seed=1)
        >>> server.device().arm, server.protocol.batch
        (0, 1)
    """

    card = shuffled_card(replace(Arms.card, title="a few arms on sums"))

    @classmethod
    def composition(cls, index: Index, memory: Memory, batches: Batches) -> Composition:
        """Kernels and card of parts.

        Raises:
            ArgumentError: one does not go with a shuffler.
        """
        if index.randomised or index.learns_variance:
            raise ArgumentError(
                "index must not draw random numbers or learn the variance of rewards under shuffle"
                f" trust, got {index!r}",
                "index",
            )
        return Composition(held_kernels(index, memory), composed_card(cls.card, index, memory))

    def __init__(
        self,
        n_arms: int,
        *,
        budget: Budget | None,
        index: Index | str = IMED(),  # noqa: B008  (a value)
        memory: Memory | str = Merge(),  # noqa: B008
        batches: Batches | str = Growing(),  # noqa: B008
        messages: bool = False,
        dropout: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        parts = _parts(index, memory, batches)
        shuffled = self._shuffled(messages, dropout, options)
        if messages and (shortest := parts["batches"].plan.first) > self._largest_batch:
            raise ArgumentError(
                f"batches must have at most {self._largest_batch} rounds with messages=True, got"
                f" {shortest}: devices refuse larger batches",
                "batches",
            )
        composition = self.composition(**parts)
        super().__init__(
            {"n_arms": n_arms, **parts, **shuffled},
            budget=budget,
            composition=composition,
            **options,
        )

    def _params(self) -> ArmsParams:
        fitting: ArmsParams = self._fit_for_devices(super()._params())
        return fitting


def _parts(index: Any, memory: Any, batches: Any) -> dict[str, Any]:
    if index.memory is not None and not isinstance(memory, index.memory):
        raise ArgumentError(
            f"memory must be {index.memory.__name__}() with index={index!r}, got {memory!r}:"
            f" {index.because}",
            "memory",
        )
    return {"index": index, "memory": memory, "batches": batches}


# Names -----------------------------------------------------------------------------------------

GROWING = like(Growing, "first", ratio=given("growth", None))


def _merged(index: type[Index], doc: str, **own: Any) -> Any:
    return preset(
        f"Merged{index.__name__}",
        Arms,
        " ".join(["n_arms alpha growth first variance", *own]),
        doc,
        about={
            "title": f"{index.title} on merged noisy sums",
            "source": f"{index.source}; {Memory.source}; {PARALLEL}",
        },
        index=like(index, "alpha", "variance", **own),
        memory=Merge(),
        batches=GROWING,
    )


MergedIMED = _merged(
    IMED, "IMED on all noisy sums that were released of an arm: the default.", horizon=HORIZON
)
MergedKLUCB = _merged(KLUCB, "KL-UCB on all noisy sums that were released of an arm.")
MergedThompson = _merged(Thompson, "Thompson sampling on all noisy sums that were released.")
DiscountedIMED = preset(
    "DiscountedIMED",
    Arms,
    "n_arms rounds_per_change half_life longest alpha",
    """IMED on noisy discounted sums: the default for rewards that change.""",
    about={
        "title": "IMED on noisy discounted sums",
        "source": f"index after Honda & Takemura (2015), {Discount.source}",
    },
    example={"n_arms": 3, "rounds_per_change": 1000},
    index=like(IMED, "alpha"),
    memory=like(Discount, "rounds_per_change", "half_life"),
    batches=like(Growing, "longest"),
)
MergedIMEDSDP = preset(
    "MergedIMEDSDP",
    ArmsShuffled,
    "n_arms alpha growth first messages dropout horizon",
    """IMED on merged sums that a shuffler has added up: the default under shuffle trust.""",
    about={name: getattr(shuffled_card(MergedIMED.card), name) for name in ("title", "source")},
    index=like(IMED, "alpha", horizon=HORIZON),
    memory=Merge(),
    batches=GROWING,
)
