"""Budgets: the notions of differential privacy, with the costs and conversions of each.

A budget is a value, not an accountant: the ledger adds up costs and compares them with it.  Every
notion is counted in one of four currencies, in which adaptive composition and adaptive stopping (a
filter) are valid.  These are epsilon for pure DP, rho for zCDP, the divergence at one order for
RDP, and mu^2 for Gaussian DP.  An (epsilon, delta) budget is counted in mu^2.

All else that depends on the notion is in its class: noise, meaning, text.  So a notion is added by
one class that ``notion`` registers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, cast

from scipy.special import log_ndtr, ndtri

from ..errors import ArgumentError
from ..validation import real, shortest, shown, upward
from . import accounting

Currency = Literal["pure", "zcdp", "rdp", "gdp"]
_POSITIVE = 0.0, math.inf


class Limit(NamedTuple):
    """A currency, and how much of it may be spent."""

    currency: Currency
    amount: float


class Budget(ABC):
    """The base of the notions below; use one of them.  ``str`` has all digits.

    A notion of one's own is a frozen dataclass of positive numbers, with the attributes that follow
    and the methods ``kept_in`` and ``to_approx``.  Other methods have defaults, which hold for
    every notion and may be improved.

    Attributes:
        key: its name in study files and on the command line: ``zcdp = 0.5``.
        title: the notion in words; budgets under one title differ in one number.
        short: the notion as ``str`` has it, after its numbers.
        noises: names of the families of noise that keep it, the best one first.
        varies: the number that says how strict a budget is; comparisons vary it alone.
        symbol: of that number.
        example: the numbers of a small budget.
        is_epsilon: whether it has an epsilon of DP itself, and needs no ``to_approx``.
        decades: the powers of ten of ``varies`` between which a search may look.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    short: ClassVar[str]
    noises: ClassVar[tuple[str, ...]]
    varies: ClassVar[str] = "epsilon"
    symbol: ClassVar[str] = "ε"
    example: ClassVar[tuple[float, ...]] = (1.0,)
    is_epsilon: ClassVar[bool] = False
    decades: ClassVar[tuple[int, int]] = (-3, 2)
    _ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}  # of numbers that are not (0, inf)

    def __post_init__(self) -> None:
        numbers = vars(self)  # which may be written to, though the dataclass is frozen
        for name, value in numbers.items():
            low, high = self._ranges.get(name, _POSITIVE)
            numbers[name] = real(name, value, low, high, strict=True)

    # What a notion has to say ---------------------------------------------------------------------

    @abstractmethod
    def kept_in(self, *, gaussian: bool = True) -> Limit:
        """Name the currency of its ledger, and the limit.

        Args:
            gaussian: whether the noise keeps Gaussian DP, or counts as if it did.

        Returns:
            A ``Limit``: the currency, and the amount of it that may be spent.
        """

    @abstractmethod
    def to_approx(self, delta: float, *, gaussian: bool = False) -> ApproxDP:
        """Convert to (epsilon, delta)-DP at the given delta.

        With ``gaussian`` it may use that the noise of every release is Gaussian, be it continuous
        or the discrete noise of this package (``discrete``).

        Returns:
            An ``ApproxDP`` that follows from this budget.

        Raises:
            ArgumentError: ``delta`` is out of range.
        """

    # What follows, and may be improved on ---------------------------------------------------------

    @property
    def order(self) -> float:
        """The order of its Renyi divergence; NaN for notions that have none."""
        return math.nan

    @property
    def failure(self) -> float:
        """The probability with which a record may be revealed outright."""
        return 0.0

    def of(self, total: float, currency: Currency) -> Budget:
        """The budget of this notion that a total of the ledger keeps."""
        return self.at(total)

    def variation(self) -> float:
        """A bound on the total variation between the views under two values; see ``meaning``."""
        return min(_variation_of(self.to_approx(delta)) for delta in _DELTAS)

    def loss(self, rare: float) -> tuple[float, float]:
        """Bound the privacy loss, up to a rare event.

        Returns:
            A privacy loss, and how probably it may be exceeded: ``rare``, or 0 for never.
        """
        return self.to_approx(rare / 2).loss(rare)

    def panel(self, probability: Callable[[float], str]) -> str:
        """Its title, with the numbers that do not vary; ``probability`` puts one in words."""
        return self.title

    def _text(self, say: Callable[[float], str]) -> str:
        """The notion with its numbers, each written by ``say``."""
        numbers = ", ".join(map(say, vars(self).values()))
        return f"({numbers})-{self.short}" if len(vars(self)) > 1 else f"{numbers}-{self.short}"

    # What all have --------------------------------------------------------------------------------

    def __str__(self) -> str:
        return self._text(shortest)

    def shown(self) -> str:
        """As text for readers: at most six digits of each number, rounded up.

        >>> ZCDP(0.29999999999999993).shown(), ApproxDP(10.0, 0.4099112).shown()
        ('0.3-zCDP', '(10, 0.409912)-DP')
        """
        return self._text(lambda number: shortest(upward(number)))

    @property
    def value(self) -> float:
        """The number that varies."""
        return float(getattr(self, self.varies))

    def at(self, value: float) -> Budget:
        """The budget with that value, and the same other numbers.

        >>> RDP(4.0, 1.0).at(0.5)
        RDP(alpha=4.0, epsilon=0.5)
        """
        return replace(self, **{self.varies: value})  # type: ignore[type-var]

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
            message = f"data must be a budget of {', '.join(kinds)}, got {data}"
            raise ArgumentError(message) from error


# The notions by their keys, in the order in which they are listed.
NOTIONS: dict[str, type[Budget]] = {}
_Kind = TypeVar("_Kind", bound=type[Budget])
_DELTAS = [10 ** (-k / 20) for k in range(1, 241)]


def notion(kind: _Kind) -> _Kind:
    """Register a notion, for everything that takes a budget: a decorator of its class.

    Raises:
        TypeError: another class has its key.
    """
    other = NOTIONS.setdefault(kind.key, kind)
    if other is not kind:
        raise TypeError(
            f"{kind.__name__} needs a key of its own: {other.__name__} already has {kind.key!r}"
        )
    return kind


def is_notion(kind: object) -> bool:
    """Whether a class is a notion that is registered."""
    return NOTIONS.get(getattr(kind, "key", "")) is kind


def checked_budget(budget: object) -> Budget:
    """The given budget; raises ArgumentError where it is no budget of a registered notion."""
    if is_notion(type(budget)):
        return cast(Budget, budget)
    kinds = " or ".join(kind.__name__ for kind in NOTIONS.values())
    raise ArgumentError(f"budget must be {kinds}, got {shown(budget)}", "budget")


def examples() -> list[Budget]:
    """A small budget of every notion."""
    return [kind(*kind.example) for kind in NOTIONS.values()]


def read_budget(key: str, value: object) -> Budget:
    """A budget as files have it: the key of its notion, and a number or a list of all numbers.

    >>> read_budget("zcdp", 0.5), read_budget("approx", [1.0, 1e-6])
    (ZCDP(rho=0.5), ApproxDP(epsilon=1.0, delta=1e-06))
    """
    if key not in NOTIONS:
        raise ArgumentError(
            f"the notion of a budget must be one of {', '.join(NOTIONS)}, got {key!r}"
        )
    kind: Any = NOTIONS[key]
    names = [field.name for field in fields(kind)]
    value = [value] if len(names) == 1 else value
    if not isinstance(value, list) or len(value) != len(names):
        what = "a pair" if len(names) == 2 else "a list"
        raise ArgumentError(f"must be {what} [{', '.join(names)}], got {value!r}")
    return cast(Budget, kind(*value))


@notion
@dataclass(frozen=True)
class PureDP(Budget):
    """epsilon-differential privacy: no outcome becomes more than e^epsilon times as likely.

    >>> PureDP(1.0).to_zcdp()
    ZCDP(rho=0.5)
    """

    epsilon: float

    key, title, short = "pure", "Pure DP", "DP"
    noises = ("Laplace", "hemisphere")
    is_epsilon = True

    def kept_in(self, *, gaussian: bool = True) -> Limit:
        return Limit("pure", self.epsilon)

    def to_zcdp(self) -> ZCDP:
        """(epsilon^2 / 2)-zCDP (Bun & Steinke 2016, Proposition 1.4)."""
        return ZCDP(self.epsilon * self.epsilon / 2)

    def to_approx(self, delta: float, *, gaussian: bool = False) -> ApproxDP:
        """Keep epsilon, which holds at any delta."""
        return ApproxDP(self.epsilon, delta)

    def variation(self) -> float:
        return math.tanh(self.epsilon / 2.0)

    def loss(self, rare: float) -> tuple[float, float]:
        return self.epsilon, 0.0


@notion
@dataclass(frozen=True)
class ZCDP(Budget):
    """rho-zero-concentrated differential privacy: Renyi divergences are at most rho * alpha, for
    every order alpha.

    >>> round(ZCDP(0.02).to_approx(1e-6).epsilon, 4)
    0.8999
    >>> round(ZCDP(0.02).to_approx(1e-6, gaussian=True).epsilon, 4)
    0.8341
    """

    rho: float

    key, title, short = "zcdp", "zCDP", "zCDP"
    noises = ("Gaussian", "Laplace vector")
    varies, symbol, example, decades = "rho", "ρ", (0.5,), (-6, 3)

    def kept_in(self, *, gaussian: bool = True) -> Limit:
        return Limit("zcdp", self.rho)

    def to_approx(self, delta: float, *, gaussian: bool = False) -> ApproxDP:
        """Convert to (epsilon, delta)-DP at the given delta.

        Returns:
            With ``gaussian`` by the exact curve of Gaussian noise, else by the best bound that is
            known for zCDP.

        Raises:
            ArgumentError: ``delta`` is not between 0 and 1.
        """
        delta = real("delta", delta, 0.0, 1.0, strict=True)
        if gaussian:
            return _approx(accounting.gaussian_epsilon(math.sqrt(2 * self.rho), delta), delta)
        return _approx(accounting.zcdp_epsilon(self.rho, delta), delta)

    def delta_at(self, epsilon: float) -> float:
        """Convert to (epsilon, delta)-DP at the given epsilon.

        Returns:
            The least known delta for which it follows.

        Raises:
            ArgumentError: ``epsilon`` is negative or no number.

        >>> round(ZCDP(0.02).delta_at(0.8999), 8)
        1e-06
        """
        return accounting.zcdp_delta(self.rho, real("epsilon", epsilon, 0.0))

    def to_rdp(self, alpha: float) -> RDP:
        """The bound at one order alpha > 1."""
        return RDP(alpha, self.rho * alpha)

    def variation(self) -> float:
        return min(super().variation(), accounting.variation_of(self.rho))

    def loss(self, rare: float) -> tuple[float, float]:
        return self.rho + 2.0 * math.sqrt(self.rho * math.log(1.0 / rare)), rare


@notion
@dataclass(frozen=True)
class ApproxDP(Budget):
    """(epsilon, delta)-differential privacy.

    Keep delta far below one over the number of people: delta is the probability with which a record
    may be revealed outright.
    """

    epsilon: float
    delta: float

    key, title, short = "approx", "Approximate DP", "DP"
    noises = ("Gaussian", "Laplace vector", "certified")
    example, is_epsilon = (1.0, 1e-5), True
    _ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"delta": (0.0, 1.0)}

    @property
    def mu(self) -> float:
        """The mu of a Gaussian release that spends all of it (analytic Gaussian mechanism)."""
        return accounting.gaussian_mu(self.epsilon, self.delta)

    @property
    def rho(self) -> float:
        """The largest rho whose zCDP implies this budget; Gaussian noise may spend more."""
        return accounting.zcdp_rho(self.epsilon, self.delta)

    def kept_in(self, *, gaussian: bool = True) -> Limit:
        return Limit("gdp", self.mu**2) if gaussian else Limit("zcdp", self.rho)

    def of(self, total: float, currency: Currency) -> Budget:
        kept = ZCDP(total) if currency == "zcdp" else GDP(math.sqrt(total))
        return kept.to_approx(self.delta)

    def to_approx(self, delta: float, *, gaussian: bool = False) -> ApproxDP:
        """Convert to (epsilon, delta)-DP at the given delta.

        Returns:
            The budget itself, at its own delta, which may be less.

        Raises:
            ArgumentError: less delta is asked for; the budget does not determine epsilon there.
        """
        real("delta", delta, self.delta, 1.0)
        return self

    @property
    def failure(self) -> float:
        return self.delta

    def variation(self) -> float:
        return _variation_of(self)

    def loss(self, rare: float) -> tuple[float, float]:
        exception = max(rare, 2.0 * self.delta)
        if exception >= 1.0:
            return math.inf, 0.0
        return self.epsilon - math.log1p(-self.delta / exception), exception

    def panel(self, probability: Callable[[float], str]) -> str:
        return f"{self.title}, δ = {probability(self.delta)}"


@notion
@dataclass(frozen=True)
class RDP(Budget):
    """(alpha, epsilon)-Renyi differential privacy: the divergence of order alpha > 1 is at most
    epsilon."""

    alpha: float
    epsilon: float

    key, title, short = "rdp", "Rényi DP", "RDP"
    noises = ("Gaussian",)
    example = (4.0, 1.0)
    _ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"alpha": (1.0, math.inf)}

    @property
    def order(self) -> float:
        return self.alpha

    def kept_in(self, *, gaussian: bool = True) -> Limit:
        return Limit("rdp", self.epsilon)

    def to_approx(self, delta: float, *, gaussian: bool = False) -> ApproxDP:
        """(epsilon, delta)-DP by Proposition 12 of Canonne, Kamath & Steinke (2020)."""
        delta = real("delta", delta, 0.0, 1.0, strict=True)
        more = math.log(delta * self.alpha) / (self.alpha - 1)
        return _approx(self.epsilon + math.log1p(-1 / self.alpha) - more, delta)

    def variation(self) -> float:
        return min(super().variation(), accounting.variation_of(self.epsilon))

    def loss(self, rare: float) -> tuple[float, float]:
        return self.epsilon + math.log(1.0 / rare) / (self.alpha - 1.0), rare

    def panel(self, probability: Callable[[float], str]) -> str:
        return f"{self.title}, order {self.alpha:.6g}"

    def _text(self, say: Callable[[float], str]) -> str:
        return f"({shortest(self.alpha)}, {say(self.epsilon)})-{self.short}"


@notion
@dataclass(frozen=True)
class GDP(Budget):
    """mu-Gaussian differential privacy (Dong, Roth & Su 2022, Gaussian Differential Privacy,
    Definition 4).  To tell two values apart is at least as hard as to tell N(0, 1) from N(mu, 1).

    Gaussian noise of standard deviation D / mu, for the L2 sensitivity D, keeps it exactly, and so
    does the discrete Gaussian noise of this package (``discrete``).

    >>> round(GDP(0.2).to_approx(1e-6).epsilon, 4), GDP(0.2).to_zcdp()
    (0.8341, ZCDP(rho=0.020000000000000004))
    """

    mu: float

    key, title, short = "gdp", "Gaussian DP", "GDP"
    noises = ("Gaussian",)
    varies, symbol = "mu", "μ"

    def kept_in(self, *, gaussian: bool = True) -> Limit:
        return Limit("gdp", self.mu * self.mu)

    def of(self, total: float, currency: Currency) -> Budget:
        return self.at(math.sqrt(total))

    def to_approx(self, delta: float, *, gaussian: bool = False) -> ApproxDP:
        """(epsilon, delta)-DP at the given delta, by the exact curve (their Corollary 1)."""
        delta = real("delta", delta, 0.0, 1.0, strict=True)
        return _approx(accounting.gaussian_epsilon(self.mu, delta), delta)

    def delta_at(self, epsilon: float) -> float:
        """Convert to (epsilon, delta)-DP at the given epsilon.

        Returns:
            The least delta for which it follows.

        Raises:
            ArgumentError: ``epsilon`` is negative or no number.

        >>> round(GDP(1.0).delta_at(1.0), 4)
        0.1269
        """
        return accounting.gaussian_delta(real("epsilon", epsilon, 0.0), self.mu)

    def to_zcdp(self) -> ZCDP:
        """(mu^2 / 2)-zCDP, a weaker guarantee.  Every mechanism that keeps mu-GDP post-processes
        one that tells N(0, 1) from N(mu, 1) (their Theorem 2).  That one has divergence alpha mu^2
        / 2 at order alpha.
        """
        return ZCDP(self.mu * self.mu / 2)

    def variation(self) -> float:
        return math.erf(self.mu / math.sqrt(8.0))

    def loss(self, rare: float) -> tuple[float, float]:
        return math.log(rare) - float(log_ndtr(ndtri(rare) - self.mu)), rare


def _approx(epsilon: float, delta: float) -> ApproxDP:
    return ApproxDP(max(epsilon, math.ulp(0.0)), delta)


def _variation_of(budget: ApproxDP) -> float:
    tangent = math.tanh(budget.epsilon / 2.0)
    # (e^epsilon - 1 + 2 delta) / (e^epsilon + 1), which does not overflow in this form.
    return tangent + budget.delta * (1.0 - tangent)
