"""Experts who advise on arms: probabilities for every arm, from every expert, in every round."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError
from ...kernel import Generator, Matrix, bind, entry, kernel, unbound
from ...validation import integer
from ..arrays import content, distributions
from ..base import AdviceEnvironment, ArmsEnvironment, ContextKernels

draw = regret = unbound


class AdvisedState(NamedTuple):
    advice: np.ndarray  # (S, K, N): of one period after the other
    period: np.ndarray  # (1,) int64: rounds
    best: np.ndarray  # (1,) int64: the best expert
    world: Any  # the environment's state


@kernel
def _piece(state: AdvisedState, t: int) -> int:
    return (t // state.period[0]) % state.advice.shape[0]


@kernel
def _show_advised(state: AdvisedState, t: int, contexts: Matrix, rng: Generator) -> int:
    piece = _piece(state, t)
    for a in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            contexts[a, j] = state.advice[piece, a, j]
    return piece


@kernel
def _answer_advised(
    state: AdvisedState, t: int, contexts: Matrix, hidden: int, arm: int, rng: Generator
) -> tuple[float, float]:
    reward, lost = draw(state.world, arm, t, 1, rng), regret(state.world, arm, t, 1)
    for a in range(contexts.shape[0]):
        # Less what the best expert's advice loses: the rest is regret against that expert.
        lost -= state.advice[hidden, a, state.best[0]] * regret(state.world, a, t, 1)
    return reward, lost


@entry
def _losses(state: AdvisedState, horizon: int, losses: Matrix) -> None:
    """What every arm loses in the rounds of each piece, shape (S, K)."""
    start = 0
    while start < horizon:
        n = min(state.period[0], horizon - start)
        for a in range(losses.shape[1]):
            losses[_piece(state, start), a] += regret(state.world, a, start, n)
        start += n


class Advised(AdviceEnvironment):
    """Experts that follow a fixed plan, on any environment over arms.

    Args:
        environment: whose rewards are given.
        advice: shape (S, N, K): the advice of each expert in S consecutive periods, which then
            repeat from the start.
        horizon: number of rounds.
        period: rounds per period.  By default the horizon: with S = 1 advice never changes.

    Raises:
        ArgumentError: an argument is out of range, or advice does not fit the environment.

    >>> from dpbandits.environments import Bernoulli
    >>> Advised(Bernoulli([0.9, 0.1]), [[[1.0, 0.0], [0.5, 0.5]]], horizon=100).n_experts
    2
    """

    def __init__(
        self,
        environment: ArmsEnvironment,
        advice: ArrayLike,
        *,
        horizon: int,
        period: int | None = None,
    ) -> None:
        self.environment = _over_arms(environment)
        self.horizon = integer("horizon", horizon, 1, environment.horizon or 10**12)
        table = distributions("advice", advice, "S, N, K")
        _, self.n_arms, self.dimension = table.shape
        if self.n_arms != environment.n_arms:
            raise ArgumentError(
                f"advice must be for {environment.n_arms} arms, got {self.n_arms}", "advice"
            )
        self.support, self._digest = environment.support, content(table)
        length = self.horizon if period is None else integer("period", period, 1)
        self.state = AdvisedState(
            table, np.array([length], dtype=np.int64), np.zeros(1, np.int64), environment.state
        )
        own = environment.kernels
        answer = bind(_answer_advised, draw=own.draw, regret=own.regret)
        self.kernels = ContextKernels(_show_advised, answer)
        losses = np.zeros(table.shape[:2])
        bind(_losses, regret=own.regret)(self.state, self.horizon, losses)
        self.state.best[0] = np.einsum("sk,skn->n", losses, table).argmin()

    @property
    def arm_names(self) -> list[str]:
        return self.environment.arm_names

    @classmethod
    def constant(
        cls, environment: ArmsEnvironment, n_experts: int, *, horizon: int, seed: int = 0
    ) -> Advised:
        """Give constant advice: the first experts advise one arm each, the others uniformly random
        distributions.

        Returns:
            An ``Advised`` with ``n_experts`` experts.

        Raises:
            ArgumentError: an argument is out of range, or ``environment`` is no
                ``ArmsEnvironment``.

        See also: ``shifted``.

        >>> from dpbandits.environments import Bernoulli
        >>> Advised.constant(Bernoulli([0.9, 0.1]), 5, horizon=100).state.best.tolist()
        [0]
        """
        n, k = integer("n_experts", n_experts, 1), _over_arms(environment).n_arms
        rows = np.random.default_rng(integer("seed", seed, 0)).dirichlet(np.ones(k), n)
        rows[:k] = np.eye(k)[:n]
        return cls(environment, rows[None], horizon=horizon)._made(f"constant, seed={seed}")

    @classmethod
    def shifted(
        cls, environment: ArmsEnvironment, n_experts: int, *, period: int, horizon: int
    ) -> Advised:
        """Let experts advise one arm each, and move on after every period.  Expert j moves by j //
        K arms; the first K experts stay.

        Returns:
            An ``Advised`` with ``n_experts`` experts and K periods.

        Raises:
            ArgumentError: an argument is out of range, or ``environment`` is no
                ``ArmsEnvironment``.

        >>> from dpbandits.environments import Bernoulli
        >>> Advised.shifted(Bernoulli([0.9, 0.1]), 4, period=10, horizon=100).state.advice.shape
        (2, 2, 4)
        """
        n, k = integer("n_experts", n_experts, 1), _over_arms(environment).n_arms
        j, s = np.arange(n), np.arange(k)[:, None]
        return cls(environment, np.eye(k)[(j + s * (j // k)) % k], horizon=horizon, period=period)

    def _arguments(self) -> str:
        plan = f"{self.n_experts} experts, period={self.state.period[0]}, horizon={self.horizon}"
        return f"{self.environment!r}, {plan}, {self._content}"


def _over_arms(environment: Any) -> ArmsEnvironment:
    if not isinstance(environment, ArmsEnvironment):
        raise ArgumentError(
            f"environment must be an ArmsEnvironment, got {environment!r}", "environment"
        )
    return environment
