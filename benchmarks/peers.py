"""The same simulation in other libraries: each returns (seeds run, final regrets, seconds)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import numpy as np

Outcome = tuple[int, np.ndarray, float]


def pymab(means: list[float], horizon: int, seeds: int) -> Outcome:
    from pymab import BanditEnvironment, BernoulliReward, Experiment, ExperimentConfig
    from pymab.policies import UCBPolicy

    experiment = Experiment(
        environment=BanditEnvironment(means=np.array(means), reward_model=BernoulliReward()),
        policies={"ucb": UCBPolicy(n_arms=len(means))},
        config=ExperimentConfig(horizon=horizon, n_replicates=seeds, seed=1),
    )
    start = time.process_time()
    result = experiment.run()
    elapsed = time.process_time() - start
    return (
        seeds,
        np.asarray(result.cumulative_regret_by_replicate)[..., -1, :].ravel()[:seeds],
        elapsed,
    )


def river(means: list[float], horizon: int, seeds: int) -> Outcome:
    from river import bandit

    arms, regrets = list(range(len(means))), []
    start = time.process_time()
    for seed in range(seeds):
        rng, policy = random.Random(seed), bandit.UCB(delta=1, seed=seed)
        regret, curve = 0.0, np.zeros(horizon)
        for t in range(horizon):
            arm = policy.pull(arms)
            policy.update(arm, float(rng.random() < means[arm]))
            regret += max(means) - means[arm]
            curve[t] = regret
        regrets.append(regret)
    return seeds, np.array(regrets), time.process_time() - start


def mabwiser(means: list[float], horizon: int, seeds: int) -> Outcome:
    from mabwiser.mab import MAB, LearningPolicy

    seeds, regrets = min(seeds, 3), []
    arms = list(range(len(means)))
    start = time.process_time()
    for seed in range(seeds):
        rng = random.Random(seed)
        policy = MAB(arms, LearningPolicy.UCB1(alpha=1.0), seed=seed)
        policy.fit(arms, [float(rng.random() < mean) for mean in means])
        regret, curve = sum(max(means) - mean for mean in means), np.zeros(horizon)
        for t in range(len(means), horizon):
            arm = policy.predict()
            policy.partial_fit([arm], [float(rng.random() < means[arm])])
            regret += max(means) - means[arm]
            curve[t] = regret
        regrets.append(regret)
    return seeds, np.array(regrets), time.process_time() - start


PEERS: dict[str, Callable[[list[float], int, int], Outcome]] = {
    "pymab": pymab,
    "river": river,
    "MABWiser": mabwiser,
}
