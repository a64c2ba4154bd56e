"""The bounds of a policy in an environment.

Each rule is a function of a policy and the known facts of the environment.  It reads the policy's
own parameters, instead of a second description of an algorithm, and names bounds with arguments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from ..environments import ArmsEnvironment, Environment
from ..errors import ArgumentError
from ..policies import Policy
from .bounds import BOUNDS, Bound

_ROUNDING = 1e-9  # by which means may miss being linear, in units of the reward range


class World(NamedTuple):
    """The facts of an environment that bounds need; None where one is unknown, or does not
    exist.
    """

    gaps: np.ndarray | None = None  # (K,) of stationary arms, in units of rewards
    means: np.ndarray | None = None  # (K,)
    environment: Environment | None = None  # for whatever else

    @classmethod
    def of(cls, given: Environment | Sequence[float] | np.ndarray | None) -> Self:
        """The facts of an environment, or of the gaps of stationary arms."""
        if given is None:
            return cls()
        if not isinstance(given, Environment):
            return cls(gaps=_gaps(given))
        if not isinstance(given, ArmsEnvironment) or not hasattr(given.state, "gaps"):
            return cls(environment=given)
        return cls(given.state.gaps, given.means(), given)

    @property
    def is_stationary(self) -> bool:
        """Whether arms are the same in every round, as far as is known."""
        return self.environment is None or self.gaps is not None

    def is_linear(self, features: np.ndarray, width: float) -> bool:
        """Whether mean rewards of these arms are linear in their features, as far as is known."""
        if self.means is None:
            return True
        missed = features @ np.linalg.lstsq(features, self.means)[0] - self.means
        return bool(np.abs(missed).max() <= _ROUNDING * width)

    def is_as_assumed(self, policy: Policy) -> bool:
        """Whether the policy may play all arms and sees all rewards as they are, at once, and
        regret is against one arm, as upper bounds assume.
        """
        lo, hi = policy.reward_range
        too_far = self.gaps is not None and self.gaps.max() > hi - lo
        if policy.retired or policy.answers_within or too_far:
            return False
        if self.environment is None:
            return True
        lowest, highest = self.environment.support
        bounded = lo <= lowest <= highest <= hi and self.environment.delay is None
        return bounded and not getattr(self.environment, "regret_is_dynamic", False)


def _gaps(given: Any) -> np.ndarray:
    gaps = np.empty(0)
    with contextlib.suppress(TypeError, ValueError):
        gaps = np.asarray(given, float)
    if gaps.ndim != 1 or not gaps.size or not np.isfinite(gaps).all() or gaps.min() != 0.0:
        raise ArgumentError(
            f"world must be an environment, or gaps whose smallest is 0, got {given!r}",
            "world",
        )
    return gaps


@dataclass(frozen=True)
class Promise:
    """The values of a bound for a policy.

    Attributes:
        bound: which bound.
        arguments: those of its function, without the horizon.
        horizons: the horizons of its values, shape (n,).
        values: its values there, in the units of the environment's rewards.
    """

    bound: Bound
    arguments: dict[str, Any]
    horizons: np.ndarray
    values: np.ndarray

    @property
    def says_something(self) -> bool:
        """Whether some value is finite, and not zero."""
        return bool((np.isfinite(self.values) & (self.values != 0.0)).any())


# A bound's function, and its arguments but for the horizon.
Applied = tuple[Callable[..., Any], dict[str, Any]]
Rule = Callable[[Any, World], Iterator[Applied]]
_RULES: dict[str, list[Rule]] = {}  # by the name of a class or a preset


def promises_of(*policies: Any) -> Callable[[Rule], Rule]:
    """Enter a rule for policies of these classes and presets, and of classes derived from them."""

    def enter(rule: Rule) -> Rule:
        for one in policies:
            _RULES.setdefault(one.__name__, []).append(rule)
        return rule

    return enter


def promises(
    policy: Policy, world: Environment | Sequence[float] | None, horizons: Sequence[int]
) -> list[Promise]:
    """The proved bounds of a policy.

    Args:
        policy: any policy.
        world: the environment, or the gaps of its arms; None for bounds that need neither.
        horizons: the horizons at which to compute bounds on regret.

    There is no upper bound where an environment's rewards are outside of the policy's range or come
    late, or where its regret is against the best arm of every round.  Nor is there one where the
    policy waits for answers for some pulls (``answers_within``) or has retired arms.

    Returns:
        One ``Promise`` for each bound of the policy.

    Raises:
        ArgumentError: gaps are not those of the policy's arms, or horizons not numbers of rounds.

    Example:
        >>> from dpbandits import ZCDP
        >>> from dpbandits.papers.concentrated import AdaCUCB
        >>> policy = AdaCUCB(3, budget=ZCDP(0.1), beta=3.5)
        >>> one = promises(policy, [0.0, 0.2, 0.4], [10_000])[0]
        >>> one.bound.source, one.values.round().tolist()
        ('Azize & Basu (2024), Theorem 10', [2249.0])
    """
    known, rounds = World.of(world), np.asarray(horizons)
    if rounds.ndim != 1 or rounds.dtype.kind not in "iuf" or not (rounds >= 1).all():
        raise ArgumentError(f"horizons must hold numbers of rounds, got {horizons!r}", "horizons")
    if known.gaps is not None and known.gaps.size != policy.n_arms:
        raise ArgumentError(
            f"world must have {policy.n_arms} arms, as the policy has, got {known.gaps.size}",
            "world",
        )
    lo, hi = policy.reward_range
    # Lower bounds are from the environment alone, whatever the policy takes for its range.
    lowest, highest = known.environment.support if known.environment is not None else (lo, hi)
    units = {"upper": hi - lo, "lower": highest - lowest}
    found = []
    for name in dict.fromkeys([policy.preset, *(cls.__name__ for cls in type(policy).__mro__)]):
        for rule in _RULES.get(name, []):
            for function, arguments in rule(policy, known):
                bound = BOUNDS[function.__name__]
                if bound.kind == "upper" and not known.is_as_assumed(policy):
                    continue
                given = {"horizon": rounds} if "horizon" in bound.parameters else {}
                unit = units[bound.kind] if bound.of.endswith("regret") else 1.0
                values = unit * np.broadcast_to(function(**given, **arguments), rounds.shape)
                found.append(Promise(bound, arguments, rounds, values))
    return found
