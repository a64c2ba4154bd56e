"""Plain walks through a fixed table of rewards, to hold the kernels against.

Each is written from the paper's pseudo-code and shares nothing with the package; given the same
noise it has to play the same arms.
"""

import math

import numpy as np
from scipy.optimize import brentq


def table(rounds, means, seed=5):
    return (np.random.default_rng(seed).random((rounds, len(means))) < np.asarray(means)).astype(
        float
    )


def arms_played(policy, rewards):
    """The arms of a policy object in the same table."""
    arms = []
    for row in rewards.tolist():
        decision = policy.pull()
        arms.append(decision.arm)
        policy.update(row[decision])
    return arms


def doubling(rewards, index, noise, width=1.0, low=0.0):
    """Doubling episodes, ties to the shorter last one.

    ``index(episodes, t)`` sees the (length, noisy sum) pairs of one arm; ``noise()`` is one draw
    for a sum.
    """
    horizon, k = rewards.shape
    episodes, arms, t = [[] for _ in range(k)], [], 0
    while t < horizon:
        unplayed = [a for a in range(k) if not episodes[a]]
        arm = (
            unplayed[0]
            if unplayed
            else max(range(k), key=lambda a: (index(episodes[a], t + 1), -episodes[a][-1][0]))
        )
        length = sum(n for n, _ in episodes[arm]) or 1
        window = low + width * rewards[t : t + length, arm]
        arms += [arm] * len(window)
        t += length
        if len(window) == length:
            episodes[arm].append((length, window.sum() + noise()))
    return arms


def stepwise(rewards, index, noise, forced=lambda n, t: n == 0):
    """One decision and one noisy reward per round; running means, so that arms of equal mean tie to
    the last bit.
    """
    horizon, k = rewards.shape
    means, counts, arms = np.zeros(k), np.zeros(k), []
    for t in range(horizon):
        waiting = [a for a in range(k) if forced(counts[a], t)]
        arm = (
            waiting[0]
            if waiting
            else int(np.argmax([index(means[a], counts[a], t) for a in range(k)]))
        )
        arms.append(arm)
        counts[arm] += 1
        means[arm] += (rewards[t, arm] + noise() - means[arm]) / counts[arm]
    return arms


def elimination(rewards, failure, scale, noise):
    """Sajed & Sheffet's successive elimination; ``noise(k)`` draws one value per arm."""
    horizon, k = rewards.shape
    alive, arms, t, e = list(range(k)), [], 0, 0
    while t < horizon:
        if len(alive) == 1:
            return arms + alive * (horizon - t)
        e += 1
        gap, crowd = 2.0**-e, len(alive) * e * e / failure
        rounds = math.ceil(
            1 + max(32 * math.log(8 * crowd) / gap**2, 8 * math.log(4 * crowd) * scale / gap)
        )
        sums = np.zeros(k)
        for a in alive:
            window = rewards[t : t + rounds, a]
            arms += [a] * len(window)
            t += rounds
            sums[a] = window.sum()
        if t > horizon:
            return arms[:horizon]
        means = (sums + noise(k)) / rounds
        h = math.sqrt(math.log(8 * crowd) / (2 * rounds))
        c = math.log(4 * crowd) * scale / rounds
        best = max(means[a] for a in alive)
        alive = [a for a in alive if best - means[a] <= 2 * h + 2 * c]
    return arms[:horizon]


def kl_upper(p, level):
    def divergence(q):
        return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)

    top = 1 - 1e-16
    return (
        1.0
        if p >= 1
        else (
            top
            if divergence(top) <= level
            else brentq(lambda q: divergence(q) - level, p, top, xtol=1e-15)
        )
    )
