"""Division of a budget among several Gaussian releases on the same people.

Gaussian releases compose exactly, and each may depend on those before it.  In Gaussian DP the
squares of mu add up, in zCDP rho, in Renyi DP the divergence at the order (Dong, Roth & Su 2022,
Corollary 3.3; Bun & Steinke 2016, Lemma 2.3; Mironov 2017, Proposition 1).  A release with the
share s of the budget has the noise of a single release, times s^(-1/2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import ArgumentError
from ..privacy import accounting
from ..privacy.budgets import ApproxDP, Budget
from ..privacy.channels import Calibration, Channel, Gaussian, Open
from ..privacy.guarantees import Guarantee
from ..privacy.ledger import WHOLE, Ledger, Meter, empty_arrays, write
from ..privacy.noise import NoiseSource
from ..privacy.randomiser import published_multiplier

# A release: of which people, first and last, its channel, sensitivity, and scalar draws of noise.
Line = tuple[tuple[int, int], Channel, float, int]

_NARROWEST, _WIDEST = 1e-100, 1e100  # multipliers whose squares are numbers


@dataclass(frozen=True)
class Spending:
    """The channels of all releases, and their total cost."""

    budget: Budget | None  # what was asked for
    channels: tuple[Channel, ...]  # of the releases, in order
    holds: Budget | None  # what they really spend; None where nothing holds
    meter: Meter | None  # by which a ledger counts it

    @classmethod
    def of(
        cls, budget: Budget | None, shares: Sequence[float], *, calibration: Calibration = "exact"
    ) -> Spending:
        """Spending with the given shares of a budget, one per release; they add up to 1.

        ``calibration="paper"`` gives each of k releases (epsilon / k, delta / k) with the noise
        2 sqrt(ln(1.25 k / delta)) k / epsilon, and ``holds`` what that comes to.
        """
        if budget is None:
            return cls(None, (Open(),) * len(shares), None, None)
        published = budget if calibration == "paper" and isinstance(budget, ApproxDP) else None
        try:
            if published:
                multipliers = [published_multiplier(published, len(shares))] * len(shares)
            else:
                whole = Gaussian.calibrated(budget).multiplier
                multipliers = [whole / math.sqrt(share) for share in shares]
        except ArithmeticError:
            multipliers = [math.inf]
        if not all(_NARROWEST <= multiplier <= _WIDEST for multiplier in multipliers):
            raise ArgumentError(
                f"budget must be less extreme for {len(shares)} releases, got {budget!r}: each"
                f" noise multiplier must be between {_NARROWEST:g} and {_WIDEST:g}",
                "budget",
            )
        channels = tuple(Gaussian(multiplier) for multiplier in multipliers)
        if not published:
            return cls(budget, channels, budget, Meter.of(budget))
        holds = _really(published, channels)
        if holds is None:
            return cls(budget, channels, None, None)
        meter = Meter.of(holds)
        total = sum(channel.cost(meter.currency) for channel in channels)
        return cls(budget, channels, holds, replace(meter, limit=total))

    def ledger(self, releases: Sequence[Line]) -> Ledger:
        """The ledger of these releases."""
        arrays = empty_arrays(max(1, len(releases)))
        for (first, last), channel, moved, draws in releases:
            write(arrays, first, last, WHOLE, channel.family, moved, channel.multiplier, draws)
        return Ledger(arrays, self.meter)

    def guarantee(
        self, source: NoiseSource, assumptions: Sequence[str], proof: str, *, local: bool = False
    ) -> Guarantee:
        """The joint guarantee of the releases."""
        private = self.budget is not None
        caveats = list(source.caveats) if private else []
        if private and self.holds is None:
            caveats.append(
                "The published calibration gives no (epsilon, delta) guarantee with delta below 1"
            )
        elif self.holds != self.budget:
            caveats.append(
                f"The published calibration was asked for {self.budget}, but provides the"
                " guarantee that is stated here"
            )
        return Guarantee(
            holds=self.holds,
            asked=self.budget,
            trust_model="none" if not private else "local" if local else "central",
            protects="features and outcomes",
            view="non-interactive",
            unit="person",
            assumptions=tuple(assumptions) if private else (),
            source=proof,
            caveats=tuple(caveats),
            simulated=private and not source.secure,
        )


def _really(budget: ApproxDP, channels: Sequence[Channel]) -> ApproxDP | None:
    mu = math.sqrt(sum(channel.cost("gdp") for channel in channels))
    delta = accounting.gaussian_delta(budget.epsilon, mu)
    return ApproxDP(budget.epsilon, max(delta, math.ulp(0.0))) if delta < 1.0 else None
