"""Linear bandits: the compiled loops round by round, and other libraries at the same task.

Times are processor times of this process, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import dpbandits as dpb
from dpbandits.environments import ContextTable, GaussianContexts, LinearArms
from dpbandits.environments.normals import fill_normal
from dpbandits.kernel import entry
from dpbandits.simulation.simulating import play

from .timing import Row

ROUNDS = 200_000
RANGE = (-3.0, 3.0)
LEARNERS = {"reward_range": RANGE, "subgaussian": 0.1, "clip": False}
ALPHA = 0.5


@entry
def _normals(n, rng):
    total = 0.0
    for _ in range(n):
        total += rng.standard_normal()
    return total


@entry
def _filled(n, view, rng):
    total = 0.0
    for _ in range(n):
        fill_normal(view, 0.0, 1.0, rng)
        total += view[0, 0]
    return total


def _on_sphere(count: int, dimension: int) -> np.ndarray:
    vectors = np.random.default_rng(0).standard_normal((count, dimension))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def rows() -> Iterator[Row]:
    _normals(1, np.random.default_rng(1))
    _filled(1, np.empty((25, 25)), np.random.default_rng(1))
    draw = _least(lambda: _normals(10**6, np.random.default_rng(1)), 10) / 1e6
    yield Row(
        "one normal draw in compiled code",
        1e9 * draw,
        "ns",
        "",
        "31 of them a round for d = 3, K = 10; 626 for d = K = 25",
    )
    filled = (
        _least(lambda: _filled(10**4, np.empty((25, 25)), np.random.default_rng(1)), 10) / 1e4 / 625
    )
    yield Row("  as contexts draw them, 25 x 25", 1e9 * filled, "ns", "", "GaussianContexts")
    budget = dpb.ZCDP(1.0)
    small, large = (
        GaussianContexts.on_sphere(k, d, seed=0, std=0.1) for k, d in ((10, 3), (25, 25))
    )
    adac = dpb.AdaCOFUL(10, 3, budget=budget, horizon=ROUNDS, **LEARNERS)
    yield Row("AdaC-OFUL, d = 3, K = 10, fresh contexts", _round(adac, small), "us", "<= 0.25")
    ours = _round(dpb.LinUCB(25, 25, **LEARNERS), large)
    yield Row("LinUCB, d = K = 25, fresh contexts", ours, "us", "<= 3")
    private = _round(dpb.PrivateLinUCB(25, 25, budget=budget, horizon=ROUNDS, **LEARNERS), large)
    yield Row("PrivateLinUCB, d = K = 25, fresh contexts", private, "us")
    yield Row("  against LinUCB", private / ours, "x", "<= 1.5")
    for k, d, target in ((100, 5, "<= 0.45"), (25, 25, "<= 0.35")):
        vectors = _on_sphere(k + 1, d)
        fixed = dpb.FixedLinUCB(vectors[1:], **LEARNERS)
        yield Row(
            f"FixedLinUCB, K = {k}, d = {d}",
            _round(fixed, LinearArms(vectors[1:], vectors[0], std=0.1)),
            "us",
            target,
        )
    yield from _against_peers(ours)


def _round(policy: Any, environment: Any) -> float:
    """Microseconds per round of the fastest of several whole runs, everything included."""
    play(policy, environment, 100, 0, 1, np.array([100]))
    return (
        1e6
        * _least(lambda: play(policy, environment, ROUNDS, 0, 1, np.array([ROUNDS])), 5)
        / ROUNDS
    )


def _least(work: Callable[[], Any], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


# Other libraries: one model per arm, and one feature vector per round ------------------------

Choose, Learn = Callable[[np.ndarray], int], Callable[[np.ndarray, int, float], Any]


def _pymab(n_arms: int, dimension: int) -> tuple[Choose, Learn]:
    from pymab.policies import LinUCBPolicy

    policy, rng = (
        LinUCBPolicy(n_arms=n_arms, n_features=dimension, alpha=ALPHA, l2=1.0),
        np.random.default_rng(1),
    )

    def view(x: np.ndarray) -> np.ndarray:
        return np.tile(x, (n_arms, 1))

    return (
        lambda x: policy.select_action(context=view(x), rng=rng),
        lambda x, arm, reward: policy.update(action=arm, reward=reward, context=view(x)),
    )


def _mabwiser(n_arms: int, dimension: int) -> tuple[Choose, Learn]:
    from mabwiser.mab import MAB, LearningPolicy

    policy = MAB(list(range(n_arms)), LearningPolicy.LinUCB(alpha=ALPHA, l2_lambda=1.0), seed=1)
    policy.fit([0], [0.0], np.zeros((1, dimension)))
    return lambda x: policy.predict([x]), lambda x, arm, reward: policy.partial_fit(
        [arm], [reward], [x]
    )


def _river(n_arms: int, dimension: int) -> tuple[Choose, Learn]:
    from river import bandit

    policy, arms = (
        bandit.LinUCBDisjoint(alpha=1.0, beta=1.0 / ALPHA**2, seed=1),
        list(range(n_arms)),
    )
    return (
        lambda x: policy.pull(arms, context=dict(enumerate(x))),
        lambda x, arm, reward: policy.update(arm, dict(enumerate(x)), reward),
    )


PEERS = {"pymab": _pymab, "MABWiser": _mabwiser, "river": _river}


SMALL, LARGE = (1000, 5), (200, 25)  # rounds; arms, and features
INSTANCES = 12


class Instance(NamedTuple):
    """Arms that have a parameter each."""

    features: np.ndarray  # (T, d)
    means: np.ndarray  # (T, K)
    rewards: np.ndarray  # (T, K)

    @classmethod
    def drawn(cls, rounds: int, size: int, seed: int) -> Instance:
        rng = np.random.default_rng(seed)
        features = 1.0 / np.sqrt(size) + 0.316 * rng.standard_normal((rounds, size))
        parameters = rng.standard_normal((size, size))
        means = features @ (parameters / np.linalg.norm(parameters, axis=1, keepdims=True)).T
        return cls(features, means, means + 0.1 * rng.standard_normal(means.shape))

    def race(self, peer: Callable[[int, int], tuple[Choose, Learn]]) -> tuple[float, float]:
        """Regret of a peer, and microseconds per round."""
        choose, learn = peer(self.means.shape[1], self.features.shape[1])
        start, regret = time.process_time(), 0.0
        for x, mean, row in zip(*self, strict=True):
            arm = choose(x)
            learn(x, arm, float(row[arm]))
            regret += mean.max() - mean[arm]
        return regret, 1e6 * (time.process_time() - start) / len(self.means)

    def ours(self) -> tuple[float, float]:
        """The same of LinUCB, given a vector with a block per arm."""
        rounds, size = self.means.shape
        blocks = np.einsum("ab,ti->tabi", np.eye(size), self.features).reshape(
            rounds, size, size * size
        )
        world = ContextTable(blocks, self.rewards, self.means)
        # With this radius, ALPHA.
        policy = dpb.LinUCB(
            size,
            size * size,
            reward_range=RANGE,
            subgaussian=0.0,
            parameter_bound=ALPHA,
            clip=False,
        )
        regret = play(policy, world, rounds, 0, 1, np.array([rounds])).tally.sums[0]
        return (
            regret,
            1e6
            * _least(lambda: play(policy, world, rounds, 0, 1, np.array([rounds])), 20)
            / rounds,
        )


def _against_peers(ours: float) -> Iterator[Row]:
    """Speed at 25 arms and 25 features; regret where the models are the same.

    The peers fit one model per arm to one feature vector per round.  Ours is one model of as many
    features for all arms, and draws 25 feature vectors per round; given a vector with a block per
    arm it is their model, which 5 arms with 5 features make a fair race.
    """
    instances = [Instance.drawn(*SMALL, seed) for seed in range(INSTANCES)]
    regrets, seconds = zip(*(instance.ours() for instance in instances), strict=True)
    yield Row(
        "LinUCB, 5 arms with 5 features each as 25 features", min(seconds), "us", "", _said(regrets)
    )
    for name, peer in PEERS.items():
        try:
            theirs, small = zip(*(instance.race(peer) for instance in instances), strict=True)
            large = min(Instance.drawn(*LARGE, seed).race(peer)[1] for seed in range(3))
        except ImportError:
            yield Row(f"  {name}", np.nan, "", "", "not installed")
            continue
        yield Row(f"  {name}, the same rounds and rewards", min(small), "us", "", _said(theirs))
        yield Row(f"  {name} against ours", min(small) / min(seconds), "x")
        yield Row(f"  {name}, 25 arms, 25 features", large, "us", "", "one model per arm")
        yield Row(
            f"  {name} against our LinUCB with d = K = 25",
            large / ours,
            "x",
            ">= 25 (fastest)",
            "ours draws its contexts, too",
        )


def _said(regrets: Sequence[float]) -> str:
    error = np.std(regrets, ddof=1) / np.sqrt(len(regrets))
    return f"regret {np.mean(regrets):.1f} +- {error:.1f}, {SMALL[0]} rounds"
