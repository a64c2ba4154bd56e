"""Linear bandits: the compiled loops round by round, and other libraries at the same task.

The peers fit one model per arm to one feature vector per round.  Ours is one model of as many
features for all arms, and draws a feature vector per arm and round; given a vector with a block per
arm it is their model, which few arms with few features make a fair race.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import dpbandits as dpb
from dpbandits.environments import AnchoredContexts, ContextTable, GaussianContexts, LinearArms
from dpbandits.environments.simulated.normals import fill_normal
from dpbandits.kernel import entry
from dpbandits.papers.others import FixedLinUCB
from dpbandits.simulation.simulating import play

from .timing import Row, best, scaled

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


def rows(size: float) -> Iterator[Row]:
    rounds = scaled(ROUNDS, size, 100)
    yield from _draws(scaled(10**6, size, 1000))
    budget = dpb.ZCDP(1.0)
    small, large = (
        GaussianContexts.on_sphere(k, d, seed=0, std=0.1) for k, d in ((10, 3), (25, 25))
    )
    adac = dpb.algorithms.AdaCOFUL(10, 3, budget=budget, horizon=rounds, **LEARNERS)
    in_small = _round(adac, small, rounds)
    yield Row("AdaC-OFUL, d = 3, K = 10, fresh contexts", in_small, "us", "<= 0.25")
    ours = _round(dpb.algorithms.LinUCB(25, 25, **LEARNERS), large, rounds)
    yield Row("LinUCB, d = K = 25, fresh contexts", ours, "us", "<= 3")
    private = dpb.algorithms.PrivateLinUCB(25, 25, budget=budget, horizon=rounds, **LEARNERS)
    seconds = _round(private, large, rounds)
    yield Row("PrivateLinUCB, d = K = 25, fresh contexts", seconds, "us")
    yield Row("  against LinUCB", seconds / ours, "x", "<= 1.5")
    for k, d, target in ((100, 5, "<= 0.45"), (25, 25, "<= 0.35")):
        vectors = _on_sphere(k + 1, d)
        fixed = FixedLinUCB(vectors[1:], **LEARNERS)
        seconds = _round(fixed, LinearArms(vectors[1:], vectors[0], std=0.1), rounds)
        yield Row(f"FixedLinUCB, K = {k}, d = {d}", seconds, "us", target)
    yield from _releases([scaled(d, size, 5) for d in (100, 200)])
    yield _hidden_release(scaled(500, size, 5))
    yield from hidden(scaled(20_000, size, 100))
    yield from against_peers(ours, size)


def _releases(dimensions: Sequence[int]) -> Iterator[Row]:
    """What a release computes, against the eigenvalues of its matrix by LAPACK."""
    classes = (dpb.algorithms.RSLinearIMED, dpb.algorithms.AdaCOFUL)
    for d, cls in product(dict.fromkeys(dimensions), classes):
        policy = cls(2, d, budget=dpb.ZCDP(1.0), horizon=10**5)
        public, memo = policy.new_state().public, np.zeros(policy.statistic.memo)
        for x in _on_sphere(3 * d, d):
            policy.kernels.record_pull(policy.params, public, 0, x, 1)
        policy.kernels.close(policy.params, public, memo)
        publish = partial(policy.kernels.publish, policy.params, public, memo, np.ones(d))
        yield _against_eigenvalues(cls.name, publish, public.precision, "<= 3")


def _hidden_release(d: int) -> Row:
    """The same where noise is larger than what it hides, which takes longest."""
    policy = dpb.algorithms.LinUCBJDP(2, d, budget=dpb.ZCDP(1.0), horizon=10**5)
    public, memo = policy.new_state().public, np.zeros(policy.statistic.memo)
    noise = policy.noise_scale * np.random.default_rng(0).standard_normal(policy.statistic.size)
    publish = partial(policy.kernels.publish, policy.params, public, memo, noise)
    return _against_eigenvalues("LinUCBJDP", publish, public.precision[0], "<= 5")


def _against_eigenvalues(
    name: str, publish: Callable[[], object], precision: np.ndarray, target: str
) -> Row:
    publish()
    seconds = best(publish, repeats=5)
    with threadpool_limits(1):  # threads that wait count as processor time
        least = best(partial(np.linalg.eigvalsh, precision), repeats=5)
    name = f"release of {name}, d = {len(precision)}, against eigenvalues by LAPACK"
    return Row(name, seconds / least, "x", target, f"{1e3 * seconds:.2g} ms")


def hidden(rounds: int) -> Iterator[Row]:
    """One run where features are private, beyond what drawing them takes."""
    world = AnchoredContexts.random(100, 5, seed=1)
    view, rng = np.empty((100, 5)), np.random.default_rng(1)
    _filled(1, view, rng)
    drawing = best(lambda: _filled(rounds, view, rng))
    yield Row(f"drawing 100 x 5 features, {rounds} times", 1e3 * drawing, "ms")
    for cls in (
        dpb.algorithms.LinUCBJDP,
        dpb.algorithms.AdaCOFULJDP,
        dpb.algorithms.LinearThompsonJDP,
        dpb.algorithms.LinUCBLDP,
        dpb.algorithms.LinUCBSDP,
    ):
        policy = cls(100, 5, budget=dpb.ApproxDP(1.0, 0.1), horizon=rounds)
        seconds = 1e-6 * rounds * _round(policy, world, rounds)
        name = f"{cls.__name__}, K = 100, d = 5, {rounds} rounds, beyond drawing"
        yield Row(name, 1e3 * (seconds - drawing), "ms", "<= 100")


def _draws(count: int) -> Iterator[Row]:
    """What drawing contexts takes, which the rounds below include."""
    rng, view = np.random.default_rng(1), np.empty((25, 25))
    _normals(1, rng)
    _filled(1, view, rng)
    one = best(lambda: _normals(count, rng), 10) / count
    yield Row("one normal draw in compiled code", 1e9 * one, "ns", "", "K d + 1 of them a round")
    tables = -(-count // view.size)
    filled = best(lambda: _filled(tables, view, rng), 10) / tables / view.size
    yield Row("  as contexts draw them, 25 x 25", 1e9 * filled, "ns", "", "GaussianContexts")


def _round(policy: Any, environment: Any, rounds: int) -> float:
    """Microseconds per round of the fastest of several whole runs, everything included."""
    play(policy, environment, 100, 0, 1, np.array([100]))
    return 1e6 * best(lambda: _played(policy, environment, rounds), 5) / rounds


def _played(policy: Any, environment: Any, rounds: int) -> float:
    """The regret of one run."""
    return play(policy, environment, rounds, 0, 1, np.array([rounds])).tally.sums[0]


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


SMALL, LARGE = (1000, 5), (200, 25)  # rounds; arms, and as many features
INSTANCES = 12
REPEATS = 20


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

    def ours(self, repeats: int) -> tuple[float, float]:
        """The same of LinUCB, given a vector with a block per arm."""
        rounds, size = self.means.shape
        blocks = np.einsum("ab,ti->tabi", np.eye(size), self.features)
        world = ContextTable(blocks.reshape(rounds, size, -1), self.rewards, self.means)
        # With this radius, ALPHA.
        radius = {"subgaussian": 0.0, "parameter_bound": ALPHA}
        policy = dpb.algorithms.LinUCB(size, size * size, reward_range=RANGE, clip=False, **radius)
        run = partial(_played, policy, world, rounds)
        return run(), 1e6 * best(run, repeats) / rounds


def against_peers(ours: float, size: float) -> Iterator[Row]:
    """Speed at 25 arms and 25 features; regret where the models are the same."""
    rounds, arms = scaled(SMALL[0], size, 20), SMALL[1]
    instances = [Instance.drawn(rounds, arms, seed) for seed in range(scaled(INSTANCES, size, 2))]
    repeats = scaled(REPEATS, size, 2)
    regrets, times = zip(*(instance.ours(repeats) for instance in instances), strict=True)
    name = f"LinUCB, {arms} arms with {arms} features each as {arms * arms} features"
    yield Row(name, min(times), "us", "", _said(regrets, rounds))
    for name, peer in PEERS.items():
        try:
            theirs, small = zip(*(instance.race(peer) for instance in instances), strict=True)
        except ImportError as missing:
            yield Row.skipped(f"  {name}", missing)
            continue
        wide = (Instance.drawn(scaled(LARGE[0], size, 20), LARGE[1], seed) for seed in range(3))
        large = min(instance.race(peer)[1] for instance in wide)
        said = _said(theirs, rounds)
        yield Row(f"  {name}, the same rounds and rewards", min(small), "us", "", said)
        yield Row(f"  {name} against ours", min(small) / min(times), "x")
        yield Row(f"  {name}, 25 arms, 25 features", large, "us", "", "one model per arm")
        yield Row(
            f"  {name} against our LinUCB with d = K = 25",
            large / ours,
            "x",
            ">= 25 (fastest)",
            "ours draws its contexts, too",
        )


def _said(regrets: Sequence[float], rounds: int) -> str:
    error = np.std(regrets, ddof=1) / np.sqrt(len(regrets))
    return f"regret {np.mean(regrets):.1f} +- {error:.1f}, {rounds} rounds"
