"""Textbook implementations of the policies that hear experts, in plain NumPy, on one fixed table of
advice and rewards.

``PLAYS[name](budget, runs, rng)`` returns the regret of each run against the best expert; all runs
are played at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from references import Learner, _drawn, _softmax, exp3, ftpl, gaussian_std, htinf, laplace_scale

from dpbandits.privacy import ZCDP, Budget

HORIZON, ARMS, EXPERTS = 400, 3, 4
_table = np.random.default_rng(20)
ADVICE = _table.dirichlet(np.full(ARMS, 0.4), (HORIZON, EXPERTS))
ADVICE[:, 1, 0] += 2.0  # this one has learned something
ADVICE /= ADVICE.sum(axis=2, keepdims=True)
REWARDS = (_table.random((HORIZON, ARMS)) < [0.8, 0.5, 0.2]).astype(float)
BEST = np.einsum("tnk,tk->n", ADVICE, REWARDS).max()
BATCH, RATE, MIXING = 8, 0.2, 0.1


def _arguments(name: str) -> dict[str, Any]:
    if name == "LocalEXP4":
        return {"horizon": HORIZON, "rate": RATE, "mixing": MIXING}
    return (
        {"horizon": HORIZON, "rate": RATE, "mixing": MIXING, "batch": BATCH}
        if "EXP4" in name
        else {}
    )


def _std(budget: Budget | None) -> tuple[float, Callable[..., np.ndarray]]:
    """The noise of a release of sensitivity one: its scale, and how to draw it."""
    gaussian = isinstance(budget, ZCDP)
    scale = gaussian_std(budget) if gaussian else laplace_scale(budget)
    return scale, lambda rng, size: rng.normal(size=size) if gaussian else rng.laplace(size=size)


def _exp4(kind: str, budget: Budget | None, runs: int, rng: np.random.Generator) -> np.ndarray:
    """EXP4 (Auer et al. 2002, Figure 4.1) with batches as in Algorithms 2, 6 and 7 of Faster Rates
    for Private Adversarial Bandits.
    """
    every, reward = np.arange(runs), np.zeros(runs)
    losses = np.zeros((runs, EXPERTS))
    batch = 1 if kind == "local" else BATCH
    scale, noise = _std(budget)
    if kind in ("published", "improved"):
        noise = lambda rng, size: rng.laplace(size=size)  # noqa: E731
    for start in range(0, HORIZON, batch):
        p = _softmax(-RATE * losses)
        total, by_arm = np.zeros((runs, EXPERTS)), np.zeros((runs, ARMS))
        far, farthest = np.zeros((runs, EXPERTS)), np.zeros((runs, 1))
        for t in range(start, start + batch):
            advice = ADVICE[start if kind == "frozen" else t]
            q = (1 - MIXING) * p @ advice + MIXING / ARMS
            arm = _drawn(q, rng)
            weight = advice.T[arm] / q[every, arm, None]
            loss = 1 - REWARDS[t, arm]
            reward += REWARDS[t, arm]
            if kind == "local":
                loss = loss + scale * noise(rng, runs)
            total += weight * loss[:, None]
            by_arm[every, arm] += loss / q[every, arm]
            far = np.maximum(far, weight)
            size = 1 / q[every, arm] if kind == "frozen" else np.sqrt((weight**2).sum(axis=1))
            farthest = np.maximum(farthest, size[:, None])
        if kind == "realised":
            total = total + scale * farthest * noise(rng, total.shape)
        if kind == "published":
            total = total + scale * EXPERTS**0.5 * ARMS / MIXING * noise(rng, total.shape)
        if kind == "improved":
            total = total + scale * EXPERTS**0.5 * far * noise(rng, total.shape)
        if kind == "frozen":
            total = (by_arm + scale * farthest * noise(rng, by_arm.shape)) @ ADVICE[start].T
        losses += total / batch
    return BEST - reward


def _over_experts(
    learner: Callable[..., Learner], budget: Budget | None, runs: int, rng: np.random.Generator
) -> np.ndarray:
    """Algorithms 1 and 5: follow one expert per batch, and tell the learner the batch's mean loss
    plus noise.
    """
    scale, noise = _std(budget)
    variance = 1 if isinstance(budget, ZCDP) else 2
    size = max(int(np.ceil(scale - 1e-9)), 1)
    player = learner(EXPERTS, runs, scale / size, variance * (scale / size) ** 2, rng)
    expert, reward = next(player), np.zeros(runs)
    for start in range(0, HORIZON, size):
        total = np.zeros(runs)
        for t in range(start, min(start + size, HORIZON)):
            total += REWARDS[t, _drawn(ADVICE[t, expert], rng)]
        reward += total
        if start + size <= HORIZON:
            expert = player.send(1 - (total + scale * noise(rng, runs)) / size)
    return BEST - reward


PLAYS: dict[str, Callable[[Budget | None, int, np.random.Generator], np.ndarray]] = {
    "EXP4": partial(_exp4, "realised"),
    "BatchedEXP4": partial(_exp4, "published"),
    "BatchedEXP4/improved": partial(_exp4, "improved"),
    "FrozenEXP4": partial(_exp4, "frozen"),
    "LocalEXP4": partial(_exp4, "local"),
    "ExpertConversion": partial(_over_experts, htinf),
    "ExpertConversion/exp3": partial(_over_experts, exp3),
    "ExpertConversion/ftpl": partial(_over_experts, ftpl),
}
ARGUMENTS = {name: _arguments(name) for name in PLAYS}
