"""Base classes of all environments, and the kernels that simulation loops call.

An environment is a named tuple of arrays and two kernels.  One compiled loop serves every instance
of a kind.  Without contexts (``ArmsKernels``):

* ``draw(state, arm, start, n, rng) -> float``: the sum of the rewards of n rounds of an arm,
  exactly distributed;
* ``regret(state, arm, start, n) -> float``: the expected regret of those rounds against the best
  arm.

With contexts (``ContextKernels``) every round shows one feature vector per arm, the policy chooses
an arm, and the arm's reward is drawn:

* ``show(state, t, contexts, rng) -> hidden``: fill in the features of round t, shape (K, d);
* ``answer(state, t, contexts, hidden, arm, rng) -> (reward, regret)``: the reward of the arm, and
  its expected regret against the best arm.

The integer ``hidden`` carries further facts of the round to ``answer``, such as a label; no policy
sees it.  Both draw the same number of random numbers for every arm.  Hence all policies of a study
meet the same contexts and the same noise.

Rounds count from 0.  No kernel changes the state, which threads share.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ..errors import ArgumentError
from ..kernel import Kernel, kernel
from ..validation import shortest
from .delays import Delay


class Environment(ABC):
    """Base class of all environments, simulated, tabulated or logged.

    Attributes:
        n_arms: number of arms, K.
        support: (lo, hi), an interval that holds every reward; infinite if rewards are not bounded.
        horizon: number of rounds; None for no limit.
        origin: how its arrays were made, such as "seed=1"; None to identify them by a digest.  Set
            it for computed features: their last digits differ between machines.
        delay: the delay of answers; None if every answer comes at once.
        holds_data: whether it may hold data of people, which are not public: messages do not show
            them, and no cluster is sent them.
    """

    n_arms: int
    support: tuple[float, float]
    horizon: int | None = None
    origin: str | None = None
    delay: Delay | None = None
    holds_data: bool = False
    _digest: str = ""  # of the arrays that were given
    _names: Sequence[str] | None = None

    @property
    def arm_names(self) -> list[str]:
        """Names of the arms in tables and figures."""
        return list(self._names or [f"arm {a}" for a in range(self.n_arms)])

    def delayed(self, delay: Delay) -> Self:
        """This environment, with answers that come late.

        Raises:
            ArgumentError: ``delay`` is no ``Delay``.

        >>> from dpbandits.environments import Bernoulli
        >>> Bernoulli([0.9, 0.8]).delayed(Delay("fixed", 30))
        Bernoulli(0.9, 0.8).delayed(Delay('fixed', 30))
        """
        if not isinstance(delay, Delay):
            raise ArgumentError(f"delay must be a Delay, got {delay!r}", "delay")
        late = copy.copy(self)
        late.delay = delay
        return late

    @property
    def title(self) -> str:
        """Name of the environment in headings; ``repr`` distinguishes it from others."""
        arms = "1 arm" if self.n_arms == 1 else f"{self.n_arms} arms"
        late = "" if self.delay is None else f", answers late: {self.delay.words}"
        return f"{type(self).__name__}, {arms}{late}"

    @property
    def stream_key(self) -> str:
        """Key of its random stream on every machine: all arguments but the delay, and no computed
        values.
        """
        return f"{type(self).__name__}({self._arguments()})"

    @abstractmethod
    def _arguments(self) -> str:
        """Arguments of the constructor, in the words of a ``repr``."""

    def __repr__(self) -> str:
        late = "" if self.delay is None else f".delayed({self.delay!r})"
        return f"{self.stream_key}{late}"

    @property
    def _content(self) -> str:
        """What tells its arrays from others."""
        return f"content {self._digest}" if self.origin is None else self.origin

    def _made(self, how: str) -> Self:
        """This environment with an ``origin``."""
        self.origin = how
        return self

    def _name_arms(self, argument: str, names: Sequence[object] | None, what: str) -> None:
        """Name the arms.  There must be one name for each; ``what`` is the plural for arms in
        messages.
        """
        if names is None:
            return
        if not isinstance(names, Iterable) or getattr(names, "ndim", 1) != 1:
            raise ArgumentError(
                f"{argument} must be a list of names, got {type(names).__name__}", argument
            )
        self._names = [str(name) for name in names]
        if len(self._names) != self.n_arms:
            raise ArgumentError(
                f"{argument} must hold {self.n_arms} names, one per {what}, got {len(self._names)}",
                argument,
            )


# Without contexts ----------------------------------------------------------------------------


class ArmsKernels(NamedTuple):
    """The two kernels of a kind of environment without contexts."""

    draw: Kernel
    regret: Kernel


class ArmsEnvironment(Environment):
    """Base class of environments without contexts.

    Attributes:
        state: the arrays that kernels read.
        reference: name of an allocation to compare with, and its shares of the arms, shape (K,);
            None for no such allocation.
        regret_is_dynamic: whether regret is against the best arm of every round, instead of one
            fixed arm.
    """

    kernels: ClassVar[ArmsKernels]
    state: Any
    regret_is_dynamic: bool = False
    reference: tuple[str, np.ndarray] | None = None

    @abstractmethod
    def means(self) -> np.ndarray:
        """The mean reward of every arm; over the whole table for tables.

        Returns:
            Shape (K,), in units of reward.
        """

    def _arguments(self) -> str:
        return ", ".join(map(shortest, self.means()))


class KnownMeans(ArmsEnvironment):
    """Base class of environments without contexts whose means are known from the start."""

    _means: np.ndarray

    def means(self) -> np.ndarray:
        return self._means


class StationaryState(NamedTuple):
    """Arms that do not change: up to two parameters each, and the regret of one round."""

    first: np.ndarray  # (K,)
    second: np.ndarray  # (K,)
    gaps: np.ndarray  # (K,)


@kernel
def stationary_regret(state: StationaryState, arm: int, start: int, n: int) -> float:
    return state.gaps[arm] * n


def stationary(first: np.ndarray, second: np.ndarray, means: np.ndarray) -> StationaryState:
    """The state of a stationary environment."""
    return StationaryState(
        np.ascontiguousarray(first), np.ascontiguousarray(second), means.max() - means
    )


# With contexts -------------------------------------------------------------------------------


class ContextKernels(NamedTuple):
    """The two kernels of a kind of environment with contexts."""

    show: Kernel
    answer: Kernel


class ContextEnvironment(Environment):
    """Base class of environments with contexts.

    Attributes:
        dimension: of the features, d.
        state: the arrays that kernels read.
        context_bound: bound on the length of feature vectors; infinite if there is none.
        parameter: theta, if mean rewards are a function of <x, theta>; None otherwise.  Shape (d,),
            or (K, d) for one parameter per arm.
        attendance: the user of each round, shape (horizon,), if users return; None if every round
            belongs to another person.
    """

    kernels: ContextKernels
    state: Any
    dimension: int
    context_bound: float
    parameter: np.ndarray | None = None
    attendance: np.ndarray | None = None

    @property
    def title(self) -> str:
        return f"{super().title}, dimension {self.dimension}"


World = ArmsEnvironment | ContextEnvironment  # what can be simulated


class AdviceEnvironment(ContextEnvironment):
    """Base class of environments with experts.  Advice is shown like contexts: a row for each arm,
    with the probabilities that the experts give it.

    Regret is against the best expert in hindsight, the one whose advice would have brought most
    over all of ``horizon``; a single round may have negative regret.
    """

    context_bound = np.inf

    @property
    def n_experts(self) -> int:
        """Number of experts, N."""
        return self.dimension
