"""The terms of a policy: its channel, the budget that really holds, and its guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..errors import ArgumentError
from ..privacy import accounting
from ..privacy.budgets import NOTIONS, ApproxDP, Budget
from ..privacy.channels import LAPLACE, OPEN, PURE, Channel, Open, noise_for
from ..privacy.continual import Counter, Independent
from ..privacy.guarantees import Guarantee, View
from ..privacy.ledger import Meter
from ..privacy.noise import SECURE, NoiseSource, SimulationNoise
from ..protocol import Card, Statistic
from ..session.deadlines import ASSUMED as ASSUMED_OF_CLOCKS
from ..session.holdout import PROOF
from ..session.options import NARROWEST, WIDEST, Settings
from ..validation import shown

_PROOF_OF_HOLDOUT = f"for held-out people, and for both together: {PROOF}"
_PROOF_FOR_USERS = "for all rounds of a user: see docs/privacy/returning.md"


def misfit_of_budget(policy: str, card: Card, budget: object) -> ArgumentError:
    """The message for a budget for which a policy has no noise."""
    kinds = card.notions
    allowed = " or ".join(["None", *sorted(kind.__name__ for kind in kinds)])
    example = f", as in budget={kinds[0](*kinds[0].example)!r}" if kinds else ""
    return ArgumentError(
        f"budget must be {allowed} for {policy}{example}, got {shown(budget)}", "budget"
    )


@dataclass(frozen=True)
class Terms:
    """The terms of a policy, derived from its algorithm's card and its configuration.

    Reading ``channel`` raises an ``ArgumentError`` where the algorithm has no noise for that kind
    of budget, or the noise is too small or large for a number.
    """

    policy: str  # the name of its class
    card: Card
    budget: Budget | None
    settings: Settings
    reports: bool  # whether rewards arrive randomised
    noise: NoiseSource
    secure_needs: str  # what else secure noise needs; empty where nothing

    @cached_property
    def channel(self) -> Channel:
        """Channel calibrated so one release spends the whole budget; open without a budget."""
        if self.budget is None:
            return Open()
        known = type(self.budget) in NOTIONS.values()
        kind = noise_for(self.budget, self.card.noise) if known else None
        if kind is None:
            raise misfit_of_budget(self.policy, self.card, self.budget)
        try:
            channel: Channel = kind.calibrated(self.budget, calibration=self.settings.calibration)
        except (ArgumentError, ArithmeticError) as error:
            raise self._too_extreme() from error
        if not NARROWEST <= channel.multiplier <= WIDEST:
            raise self._too_extreme()
        return channel

    def _too_extreme(self) -> ArgumentError:
        return ArgumentError(
            f"budget must be less extreme, got {self.budget!r}: its noise multiplier must be"
            f" between {NARROWEST:g} and {WIDEST:g}",
            "budget",
        )

    def growth(self, counter: Counter | None, rounds: int | None) -> float:
        """The ratio of two distances: so many rounds of one user, each in its own release, against
        one round.  A distance is that of all releases together.  It is 1 where the unit is the
        round.  The counter must support that many releases.
        """
        if rounds is None:
            return 1.0
        counter = Independent() if counter is None else counter
        if counter.horizon is not None and rounds > counter.horizon:
            raise ArgumentError(
                f"max_rounds must be at most {counter.horizon}, the number of releases that the"
                f" running sum is planned for, got {rounds}",
                "max_rounds",
            )
        return counter.growth(rounds, self.channel.composition_norm)

    def shared_channel(self, counter: Counter | None) -> Channel:
        """The channel such that all releases with a user's rounds together spend the budget."""
        growth = self.growth(counter, self.settings.max_rounds)
        shared = replace(self.channel, multiplier=self.channel.multiplier * growth)
        if self.budget is not None and shared.multiplier > WIDEST:
            raise self._too_extreme()
        return shared

    @cached_property
    def effective_budget(self) -> Budget | None:
        """The budget that a release, and in parallel the run, really spends; None if none holds."""
        budget, multiplier = self.budget, self.channel.multiplier
        if self.card.refuted_because or not self.settings.clip:
            return None
        if self.settings.calibration == "exact" or not isinstance(budget, ApproxDP):
            return budget
        if self.channel.family == LAPLACE:
            return budget
        if self.channel.keeps_gdp:
            delta = accounting.gaussian_delta(budget.epsilon, 1.0 / multiplier)
        else:
            delta = accounting.zcdp_delta(0.5 / multiplier**2, budget.epsilon)
        return ApproxDP(budget.epsilon, max(delta, math.ulp(0.0))) if delta < 1.0 else None

    def meter(self, growth: float) -> Meter | None:
        """The meter that counts costs; None where nothing holds."""
        return self._meter and replace(self._meter, growth=growth)

    @cached_property
    def _meter(self) -> Meter | None:
        holds = self.effective_budget
        if holds is None:
            return None
        meter = Meter.of(holds, gaussian=self.channel.keeps_gdp)
        # Near delta = 1 the way back from delta to the noise has no digits left.
        exact = holds == self.budget
        return meter if exact else replace(meter, limit=self.channel.cost(meter.currency))

    def ledger_family(self, statistic: Statistic) -> int:
        """The family in ledger lines; open where no sensitivity is true, and nothing adds up."""
        if self.card.refuted_because or not self.settings.clip:
            return OPEN
        rows = statistic.counter is not None and self.channel.family == LAPLACE
        return PURE if rows else self.channel.family

    def guarantee(self, assumptions: Sequence[str] = (), *, simulated: bool = False) -> Guarantee:
        """The policy's guarantee, with its assumptions and its limits.

        ``simulated`` describes a simulation of it.  Simulated noise does not protect anyone, even
        where the policy's own noise does.
        """
        card, private = self.card, self.budget is not None
        by_user = self.settings.max_rounds is not None
        # Whoever calls ``update`` with a reward has seen it.
        spread = card.trust_model in ("local", "shuffle")
        local = spread and (self.reports or simulated)
        central = spread and not local
        unshuffled: View = "joint" if card.hides_contexts else "interactive"
        return Guarantee(
            holds=self.effective_budget if private else None,
            asked=self.budget,
            trust_model="none" if not private else "central" if central else card.trust_model,
            protects=card.protects,
            view=unshuffled if central and card.view == "shuffle" else card.view,
            unit="user" if by_user else "round",
            assumptions=tuple(self._assumed(assumptions, local)),
            source="; ".join(self._proofs),
            caveats=tuple(self._caveats(simulated)),
            simulated=private and (simulated or not self.noise.secure),
            secure_needs=self.secure_needs,
        )

    @property
    def _proofs(self) -> Iterator[str]:
        yield self.card.proof or self.card.source
        if self.settings.max_rounds is not None:
            yield _PROOF_FOR_USERS
        if self.settings.holdout is not None:
            yield _PROOF_OF_HOLDOUT

    def restated(self, promise: Guarantee, restored: int) -> Guarantee:
        """The guarantee of a policy that was restored so often from a copy; see ``restoring``."""
        if not restored or promise.holds is None:
            return promise
        times = "once" if restored == 1 else f"{restored} times"
        told = (
            f"the policy was restored {times} from a copy, and dropped the unreleased records of"
            " that copy"
        )
        if self.settings.max_rounds is None:
            assumed = f"{told}; a person contributes one round to all lives of the policy together"
            return replace(promise, assumptions=(*promise.assumptions, assumed))
        limit = promise.holds.kept_in(gaussian=self.channel.keeps_gdp)
        holds = promise.holds.of((restored + 1) * limit.amount, limit.currency)
        caveat = (
            f"The policy was restored {times} from a copy, which does not tell who came later. A"
            f" user may have up to {self.settings.max_rounds} recorded rounds in each of the"
            f" policy's {restored + 1} lives. Hence only {restored + 1} times the budget holds"
        )
        own = tuple(
            one.replace("over the whole run", "in each life of the policy")
            for one in promise.assumptions
        )
        return replace(promise, holds=holds, assumptions=own, caveats=(*promise.caveats, caveat))

    def _assumed(self, own: Sequence[str], local: bool) -> Iterator[str]:
        if self.budget is None or self.card.refuted_because:
            return
        lo, hi = self.settings.reward_range
        if self.settings.clip:
            most = self.settings.max_rounds
            if most is None:
                yield "a person contributes one round"
            yield f"rewards lie in [{lo:g}, {hi:g}], which clipping enforces"
            if most is not None:
                yield from self._assumed_of_users(most, local)
            if self.settings.holdout is not None:
                decides = "rewards do not"
                if self.card.hides_contexts:
                    decides = "neither contexts nor rewards do"
                yield f"chance decides who is held out, and {decides}"
                yield "nobody is in releases of both bandit and holdout, which the policy enforces"
                if self.settings.holdout.targets:
                    yield "arms of the holdout's targets depend on rewards only through releases"
            yield from own
            if self.settings.uses_clock:
                yield ASSUMED_OF_CLOCKS
            # With public choices, when a deviation is reported decides when the episode ends.
            if (
                (self.card.learns_at_once and not self.settings.answers_within)
                or self.settings.answers_within is None
                or self.settings.choices_public
            ):
                yield "the time at which an answer arrives carries no private information"
        if self.settings.choices_public:
            yield "it is public when a person does something else than was recommended"

    @staticmethod
    def _assumed_of_users(most: int, local: bool) -> Iterator[str]:
        rounds = "1 round" if most == 1 else f"{most} rounds"
        yield "a person always comes under the same name"
        yield (
            f"a user reports at most {rounds} over the whole run, which their device must enforce,"
            " because the policy's own count protects nobody from the party that runs the policy"
            if local
            else f"a user has at most {rounds} recorded over the whole run, and at most one in a"
            " release, which the policy enforces"
        )
        yield (
            "participation is public: whether and when a person returns is not protected, even if"
            " it depends on earlier rewards"
        )

    def _caveats(self, simulated: bool) -> Iterator[str]:
        if self.budget is None:
            return
        if self.card.refuted_because:
            yield self.card.refuted_because
            return
        needs = f"{self.secure_needs} and " if self.secure_needs else ""
        for caveat in (SimulationNoise if simulated else self.noise).caveats:
            yield caveat.replace(SECURE, f"{needs}{SECURE}")
        if not self.settings.clip:
            yield (
                "Rewards are not clipped, so one reward may move a release by any amount. Hence the"
                " guarantee is void"
            )
        if self.card.trust_model == "local" and not simulated:
            yield (
                "The party that runs the policy sees whether a report came. A device without a"
                " reward can send a randomised default instead"
                if self.reports
                else f"The party that runs the policy sees true {self.card.protects}, because"
                " reports=True was not given. With reports=True people's devices randomise them"
                " first"
            )
        if self.card.trust_model == "shuffle" and not (simulated or self.reports):
            yield (
                f"The party that runs the policy sees true {self.card.protects}, because"
                " messages=True was not given. With messages=True people's devices add noise, and"
                " the party sees only shuffled messages"
            )
        if self.settings.clip and self.effective_budget is None:
            yield "The published calibration gives no (epsilon, delta) guarantee with delta below 1"
        if self.effective_budget not in (None, self.budget):
            yield (
                f"The published calibration was asked for {self.budget}, but provides the"
                " guarantee that is stated here"
            )
