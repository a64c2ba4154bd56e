"""What may be spent: the four notions of differential privacy that the literature on bandits uses.

A budget is a value, not an accountant: the ledger adds up costs and compares them with it.  Every
notion is linear in one
currency in which adaptive composition and adaptive stopping (a filter) are valid: epsilon for pure
DP, rho for zCDP, the divergence at one order for RDP, and mu^2 for Gaussian DP, in which an
(epsilon, delta) budget is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import ArgumentError
from ..validation import real, shortest, upward
from . import accounting

Currency = Literal["pure", "zcdp", "rdp", "gdp"]


class Budget:
    """The base of the notions below; use one of them.  ``str`` has all digits."""

    def __str__(self) -> str:
        return self._text(shortest)

    def shown(self) -> str:
        """As text for readers: at most six digits of each number, rounded up.

        >>> ZCDP(0.29999999999999993).shown(), ApproxDP(10.0, 0.4099112).shown()
        ('0.3-zCDP', '(10, 0.409912)-DP')
        """
        return self._text(lambda number: shortest(upward(number)))

    def _text(self, say: Callable[[float], str]) -> str:
        """The notion with its numbers, each written by ``say``."""
        raise TypeError(f"{type(self).__name__} is no notion of privacy")

    def to_dict(self) -> dict[str, Any]:
        """The notion and its numbers, for files.

        >>> PureDP(1.0).to_dict()
        {'notion': 'PureDP', 'epsilon': 1.0}
        """
        return {"notion": type(self).__name__, **vars(self)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Budget:
        """The budget that ``to_dict`` wrote.

        Raises:
            ArgumentError: there is no such notion, or it does not have these numbers.

        >>> Budget.from_dict({"notion": "PureDP", "epsilon": 1.0})
        PureDP(epsilon=1.0)
        """
        numbers = dict(data)
        kinds = {kind.__name__: kind for kind in NOTIONS.values()}
        try:
            return kinds[numbers.pop("notion")](**numbers)
        except (KeyError, TypeError) as error:
            raise ArgumentError(
                f"data must be a budget of {', '.join(kinds)}, got {data}"
            ) from error


@dataclass(frozen=True)
class PureDP(Budget):
    """epsilon-differential privacy: no outcome becomes more than e^epsilon times as likely.

    >>> PureDP(1.0).to_zcdp()
    ZCDP(rho=0.5)
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", real("epsilon", self.epsilon, 0.0, math.inf, strict=True)
        )

    def to_zcdp(self) -> ZCDP:
        """(epsilon^2 / 2)-zCDP (Bun & Steinke 2016, Proposition 1.4)."""
        return ZCDP(self.epsilon * self.epsilon / 2)

    def to_approx(self, delta: float) -> ApproxDP:
        """The same epsilon at any delta."""
        return ApproxDP(self.epsilon, delta)

    def _text(self, say: Callable[[float], str]) -> str:
        return f"{say(self.epsilon)}-DP"


@dataclass(frozen=True)
class ApproxDP(Budget):
    """(epsilon, delta)-differential privacy.

    Keep delta far below one over the number of people: delta is the probability with which a record
    may be revealed outright.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", real("epsilon", self.epsilon, 0.0, math.inf, strict=True)
        )
        object.__setattr__(self, "delta", real("delta", self.delta, 0.0, 1.0, strict=True))

    @property
    def mu(self) -> float:
        """The mu of the Gaussian release that spends exactly this budget (analytic Gaussian
        mechanism).
        """
        return accounting.gaussian_mu(self.epsilon, self.delta)

    @property
    def rho(self) -> float:
        """The largest rho whose zCDP implies this budget; less than a Gaussian may spend, and valid
        for any mechanism.
        """
        return accounting.zcdp_rho(self.epsilon, self.delta)

    def _text(self, say: Callable[[float], str]) -> str:
        return f"({say(self.epsilon)}, {say(self.delta)})-DP"


@dataclass(frozen=True)
class ZCDP(Budget):
    """rho-zero-concentrated differential privacy: Renyi divergences at most rho * alpha, for every
    order alpha.

    >>> round(ZCDP(0.02).to_approx(1e-6).epsilon, 4)
    0.8999
    >>> round(ZCDP(0.02).to_approx(1e-6, gaussian=True).epsilon, 4)
    0.8341
    """

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", real("rho", self.rho, 0.0, math.inf, strict=True))

    def to_approx(self, delta: float, *, gaussian: bool = False) -> ApproxDP:
        """(epsilon, delta)-DP at the given delta.

        With ``gaussian`` the exact curve, valid when the noise of every release is Gaussian, be it
        continuous or the discrete noise of this package (``discrete``); else the best known bound
        for zCDP.
        """
        delta = real("delta", delta, 0.0, 1.0, strict=True)
        epsilon = (
            accounting.gaussian_epsilon(math.sqrt(2 * self.rho), delta)
            if gaussian
            else accounting.zcdp_epsilon(self.rho, delta)
        )
        return ApproxDP(max(epsilon, math.ulp(0.0)), delta)

    def delta_at(self, epsilon: float) -> float:
        """The least known delta for which (epsilon, delta)-DP follows.

        >>> round(ZCDP(0.02).delta_at(0.8999), 8)
        1e-06
        """
        return accounting.zcdp_delta(self.rho, real("epsilon", epsilon, 0.0))

    def to_rdp(self, alpha: float) -> RDP:
        """The bound at one order alpha > 1."""
        return RDP(alpha, self.rho * alpha)

    def _text(self, say: Callable[[float], str]) -> str:
        return f"{say(self.rho)}-zCDP"


@dataclass(frozen=True)
class RDP(Budget):
    """(alpha, epsilon)-Renyi differential privacy: the divergence of order alpha > 1 is at most
    epsilon.
    """

    alpha: float
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", real("alpha", self.alpha, 1.0, math.inf, strict=True))
        object.__setattr__(
            self, "epsilon", real("epsilon", self.epsilon, 0.0, math.inf, strict=True)
        )

    def to_approx(self, delta: float) -> ApproxDP:
        """(epsilon, delta)-DP by the conversion of Canonne, Kamath & Steinke (2020, Proposition
        12).
        """
        delta = real("delta", delta, 0.0, 1.0, strict=True)
        epsilon = (
            self.epsilon
            + math.log1p(-1 / self.alpha)
            - math.log(delta * self.alpha) / (self.alpha - 1)
        )
        return ApproxDP(max(epsilon, math.ulp(0.0)), delta)

    def _text(self, say: Callable[[float], str]) -> str:
        return f"({shortest(self.alpha)}, {say(self.epsilon)})-RDP"


# A small budget of every notion.
EXAMPLES: tuple[Budget, ...] = (PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-5), RDP(4.0, 1.0))
# What the notions are called in study files and on the command line.
NOTIONS: dict[str, type[Budget]] = {"pure": PureDP, "zcdp": ZCDP, "approx": ApproxDP, "rdp": RDP}
