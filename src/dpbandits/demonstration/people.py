"""Simulated people, whose features and rewards are numbers that nobody else has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..environments import ContextTable

ARMS, FEATURES = 3, 2
REWARD_RANGE = (-1.0, 1.0)
_THETA = np.array([0.8, -0.6])
_LEAST = 0.9  # size of a reward; what is above it is drawn, and tells people apart
_LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


class People(NamedTuple):
    """People, in the order in which they come.

    Attributes:
        names: by which the shuffler knows them.
        contexts: of each person and arm, of shape (n, K, d).
        rewards: that each arm would have, of shape (n, K).
        means: expected rewards, of shape (n, K).
    """

    names: list[str]
    contexts: np.ndarray
    rewards: np.ndarray
    means: np.ndarray

    @classmethod
    def drawn(cls, count: int, seed: int) -> People:
        """People whose mean rewards are linear in features of a length of at most 1."""
        rng = np.random.default_rng(seed)
        contexts = rng.standard_normal((count, ARMS, FEATURES))
        contexts /= np.maximum(1.0, np.linalg.norm(contexts, axis=2, keepdims=True))
        means = contexts @ _THETA
        signs = np.where(2.0 * rng.random(means.shape) < 1.0 + means, 1.0, -1.0)
        rewards = signs * rng.uniform(_LEAST, 1.0, means.shape)
        letters = rng.choice(_LETTERS, (count, 12))
        names = [f"{''.join(one)}@people.example" for one in letters]
        return cls(names, contexts, rewards, 0.5 * (_LEAST + 1.0) * means)

    @property
    def table(self) -> ContextTable:
        """The people as an environment of simulations."""
        return ContextTable(self.contexts, self.rewards, self.means)

    def regrets(self, arms: np.ndarray) -> np.ndarray:
        """The expected regret of each person's arm."""
        played = np.take_along_axis(self.means, arms[:, None], axis=1)[:, 0]
        best: np.ndarray = self.means.max(axis=1)
        return best - played

    @property
    def regrets_of_chance(self) -> np.ndarray:
        """The expected regret of each person with an arm drawn at random."""
        regrets: np.ndarray = self.means.max(axis=1) - self.means.mean(axis=1)
        return regrets
