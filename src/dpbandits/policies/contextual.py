"""Policies that see features of every arm before they choose.

Contexts are public: only rewards are behind the wall.  Feature vectors longer than
``context_bound`` are scaled to it before anything else uses them, because a record moves sums of
``x * reward`` in proportion to the length of ``x``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..kernel import kernel
from ..privacy.budgets import Budget
from ..validation import integer, real
from .policy import Policy

MOST_FEATURES = 2048
# bounds on features: their squares have to be numbers, and to leave room for a regulariser
SHORTEST, LONGEST = (
    1e-50,
    1e12,
)


@kernel
def within_bound(params, contexts, seen, rng):
    """``preprocess_contexts``: vectors longer than ``params.context_bound`` are scaled to it.

    An infinite bound leaves all as they are.
    """
    for a in range(contexts.shape[0]):
        squared = 0.0
        for i in range(contexts.shape[1]):
            squared += contexts[a, i] * contexts[a, i]
        scale = 1.0
        if squared > params.context_bound * params.context_bound:
            # Rounded down, so that the scaled vector is not longer either.
            scale = params.context_bound / np.sqrt(squared) * (1.0 - 1e-15)
        for i in range(contexts.shape[1]):
            seen[a, i] = contexts[a, i] * scale


class ViewingPolicy(Policy):
    """The base of policies that see something of every arm before they choose: a matrix with a row
    of numbers for each.

    A subclass sets ``dimension``, the length of the rows, before this constructor runs, and gives
    ``_viewed``.
    """

    dimension: int

    def alters(self, context_bound: float) -> bool:
        """Whether ``preprocess_contexts`` may change what an environment with that bound shows."""
        return False

    def _row(self, contexts: np.ndarray, arm: int) -> np.ndarray:
        return contexts[arm]

    def _features(self, number: int, arm: int) -> np.ndarray:
        return self._progress.contexts[number][arm if self.choices_public else 0]

    def _standing(self, contexts: np.ndarray) -> tuple[int, float]:
        # Under new contexts the last arm means nothing.
        return self._steps.decide(self.params, self._public, contexts, self._choice_rng)[:2]

    def _settle(self, number: int) -> int:
        del self._progress.contexts[number]
        return super()._settle(number)

    def _decision(self, arm: int, propensity: float, recorded: bool, contexts: np.ndarray) -> Any:
        if recorded:
            # Of the other arms nothing is asked later, unless a person may openly take one.
            self._progress.contexts[self._progress.pulls] = (
                contexts if self.choices_public else contexts[int(arm) : int(arm) + 1].copy()
            )
        return super()._decision(arm, propensity, recorded, contexts)

    def _weights(self, arm: int, x: np.ndarray) -> np.ndarray:
        """By what the reward of a round enters the statistic: what is kept of a round in case its
        reward is lost.
        """
        raise TypeError(f"{type(self).__name__} does not say what a round weighs")

    def _start(self) -> None:
        super()._start()
        self._progress.weights = np.zeros(self._sizes()[0])

    def _book(self, arm: int, x: np.ndarray, n: int) -> None:
        super()._book(arm, x, n)
        self._progress.weights = self._progress.weights + n * self._weights(arm, x)

    def _unbook(self, which: int) -> None:
        super()._unbook(which)
        self._progress.weights = np.zeros(self._sizes()[0])

    def _take_back(self, arm: int, x: np.ndarray) -> None:
        super()._take_back(arm, x)
        self._progress.left = 0  # the next pull sees other contexts

    def _entries(self, given: Any, name: str, shape: tuple[int, int]) -> np.ndarray:
        """What a user shows, as a matrix of finite numbers of its own."""
        try:
            array = np.asarray(given)
        except ValueError:  # rows of different lengths
            array = np.array(None)
        # NumPy would read words as numbers, and drop imaginary parts
        if array.dtype.kind not in "biuf":
            raise ArgumentError(
                f"{name} must be an array of real numbers of shape {shape}, got {given!r}", name
            )
        entries = np.array(array, dtype=np.float64, order="C")
        if entries.shape != shape:
            raise ArgumentError(f"{name} must have shape {shape}, got {entries.shape}", name)
        if not np.all(np.abs(entries) < 1e100):
            raise ArgumentError(f"{name} must hold finite numbers below 1e100", name)
        return entries


class ContextualPolicy(ViewingPolicy):
    """The base of policies whose ``pull`` takes contexts.

    A subclass passes ``dimension`` and ``context_bound`` in its ``config``, and its ``params``
    carry ``context_bound``.
    """

    def __init__(self, config: dict[str, Any], *, budget: Budget | None, **options: Any) -> None:
        self.dimension: int = integer("dimension", config["dimension"], 1, MOST_FEATURES)
        self.context_bound: float = real(
            "context_bound", config["context_bound"], SHORTEST, LONGEST
        )
        super().__init__(
            {**config, "dimension": self.dimension, "context_bound": self.context_bound},
            budget=budget,
            **options,
        )

    @property
    def effective_bound(self) -> float:
        """The length to which feature vectors are scaled; infinite with ``clip=False``."""
        return self.context_bound if self.clip else math.inf

    def alters(self, context_bound: float) -> bool:
        return context_bound > self.effective_bound

    def _assumed(self) -> list[str]:
        return [
            f"contexts are public; feature vectors are at most {self.context_bound:g} long, which"
            " scaling enforces"
        ]

    def _extent(self) -> float:
        return super()._extent() * self.context_bound

    def _sizes(self) -> tuple[int, int]:
        return self.dimension, 0

    def _weights(self, arm: int, x: np.ndarray) -> np.ndarray:
        return x

    def _recollect(self) -> None:
        # ``accumulate`` is linear in x times the reward.
        booked = sum(self._progress.booked.values())
        if booked:
            self.kernels.accumulate(
                self.params,
                self._raw,
                self._public,
                0,
                self._progress.weights.copy(),
                self.default_reward,
                booked,
            )

    def _viewed(self, contexts: Any) -> np.ndarray:
        shape = (self.n_arms, self.dimension)
        seen = np.empty(shape)
        self._steps.preprocess_contexts(
            self.params, self._entries(contexts, "contexts", shape), seen, self._choice_rng
        )
        return seen
