"""Pictures that are computed when the site is built."""

import io

import numpy as np
from matplotlib.figure import Figure

from dpbandits import ZCDP
from dpbandits.algorithms import MergedIMED
from dpbandits.plotting.dark import with_dark_colours
from dpbandits.testing.coverage import play

RUNS, ROUNDS, ARMS = 400, 5_000, 5


def bias() -> bytes:
    """Released means of equal arms: of the leader, and of the others."""
    leaders, others = [], []
    for seed in range(RUNS):
        policy = MergedIMED(ARMS, budget=ZCDP(0.5), seed=seed)
        found = play(policy, [0.5] * ARMS, ROUNDS, seed).estimates
        means = found.means[~np.isnan(found.means)]
        leaders.append(means.max())
        others += np.sort(means)[:-1].tolist()
    figure = Figure(figsize=(7.0, 2.8), layout="constrained")
    axes = figure.subplots()
    bins = np.linspace(0.2, 0.7, 51)
    for values, label in ((others, "other arms"), (leaders, "leader")):
        axes.hist(values, bins, density=True, alpha=0.6, label=f"{label}: {np.mean(values):.3f}")
    axes.axvline(0.5, color="black", linewidth=1.0)
    axes.set(xlabel="released mean (true mean of every arm: 0.5)", yticks=[])
    axes.legend(frameon=False, title="on average")
    drawn = io.BytesIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    return with_dark_colours(drawn.getvalue())
