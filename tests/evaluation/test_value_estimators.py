"""Every estimator equals its formula, written out row by row, on synthetic logs and Open Bandit."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from dpbandits import ArgumentError, evaluate

N, K, C = 300, 3, 1.7
RNG = np.random.default_rng(1)
CONTEXTS = RNG.uniform(-1, 1, (N, 2))


def log_policy(x):
    score = np.exp([x[0], x[1], -x[0]])
    return score / score.sum()


def target(x):
    score = np.exp([-x[1], x[0] - x[1], 0.3])
    return score / score.sum()


def model(x, a):
    return 0.2 + 0.1 * a + 0.2 * x[0]


def model_of_all(contexts, a):
    return 0.2 + 0.1 * a + 0.2 * contexts[:, 0]


EVERY = np.array([log_policy(x) for x in CONTEXTS])
ARMS = np.array([RNG.choice(K, p=p) for p in EVERY])
REWARDS = (RNG.random(N) < 0.3 + 0.2 * ARMS).astype(float)
LOG = {
    "arm": ARMS,
    "reward": REWARDS,
    "propensity": EVERY[np.arange(N), ARMS],
    "x0": CONTEXTS[:, 0],
    "x1": CONTEXTS[:, 1],
}
GIVEN = {"features": ["x0", "x1"], "propensities": EVERY}


def textbook(estimator, rows, q, clip=None):
    """Each row: the arm, the reward, all propensities, the target's probabilities, q of all arms."""
    top = bottom = 0.0
    for (a, r, p, pi), predicted in zip(rows, q, strict=True):
        w = pi[a] / p[a]
        cut = w if clip is None else min(w, clip)
        direct = sum(pi[b] * predicted[b] for b in range(len(pi)))
        if estimator == "IPS":
            top, bottom = top + cut * r, bottom + 1
        elif estimator == "SNIPS":
            top, bottom = top + cut * r, bottom + cut
        elif estimator == "DM":
            top, bottom = top + direct, bottom + 1
        elif estimator == "DR":
            top, bottom = top + direct + cut * (r - predicted[a]), bottom + 1
        elif estimator == "switch-DR":
            top += direct + (w * (r - predicted[a]) if w <= clip else 0.0)
            bottom += 1
        else:  # CAB, as alpha * w * r plus (1 - alpha) * pi * q with alpha = min(1, M p / pi)
            alpha = [min(1.0, clip * p[b] / pi[b]) if pi[b] else 0.0 for b in range(len(pi))]
            filled = sum(pi[b] * (1 - alpha[b]) * predicted[b] for b in range(len(pi)))
            top, bottom = top + filled + alpha[a] * w * r, bottom + 1
    return top / bottom


ROWS = [
    (ARMS[i], REWARDS[i], EVERY[i], target(CONTEXTS[i])) for i in range(N)
]  # what the textbook takes
CASES = [
    *(("IPS", None), ("IPS", C), ("SNIPS", None), ("SNIPS", C), ("DM", None), ("DR", None)),
    *(("DR", C), ("switch-DR", C), ("CAB", C)),
]


@pytest.mark.parametrize(("estimator", "clip"), CASES)
def test_an_estimator_equals_its_formula(estimator, clip):
    given = {"q": model_of_all} if estimator not in ("IPS", "SNIPS") else {}
    found = evaluate(LOG, target, estimator=estimator, clip=clip, **GIVEN, **given)
    q = [[model(x, a) for a in range(K)] for x in CONTEXTS]
    assert found.value == pytest.approx(textbook(estimator, ROWS, q, clip), abs=1e-9)
    if clip is not None:  # clipping matters here
        assert found.value != pytest.approx(textbook(estimator, ROWS, q, 1e9), abs=1e-4)
        w = [pi[a] / p[a] for a, _, p, pi in ROWS]
        assert found.diagnostics.clipped == pytest.approx(np.mean(np.array(w) > C))


@pytest.mark.parametrize("estimator", ["DM", "DR", "CAB"])
def test_means_of_arms_are_those_of_the_other_half(estimator):
    clip = C if estimator == "CAB" else None
    found = evaluate(LOG, target, estimator=estimator, clip=clip, **GIVEN)
    means = [
        [
            np.mean([REWARDS[i] for i in range(N) if i % 2 != fold and ARMS[i] == a])
            for a in range(K)
        ]
        for fold in (0, 1)
    ]
    crossed = [means[i % 2] for i in range(N)]
    assert found.value == pytest.approx(textbook(estimator, ROWS, crossed, clip), abs=1e-9)
    same = [means[1 - i % 2] for i in range(N)]  # fitted to its own half
    assert found.value != pytest.approx(textbook(estimator, ROWS, same, clip), abs=1e-6)


@pytest.mark.parametrize("axes", [0, 2, 3])
def test_a_regressor_is_fitted_to_the_other_half(axes):
    linear_model = pytest.importorskip("sklearn.linear_model")
    q, log, each = linear_model.Ridge(alpha=1.0), LOG, np.tile(CONTEXTS[:, None], (1, K, 1))
    policy = [0.2, 0.3, 0.5]
    given = {"features": ["x0", "x1"]}
    if axes == 0:
        given, each = {}, each[:, :, :0]
    elif axes == 3:  # a row of features for each arm
        each = each * np.array([1.0, -0.5, 0.2])[:, None]
        given = {"features": each}
    found = evaluate(log, policy, estimator="DR", q=q, **given)
    assert not hasattr(q, "coef_")  # it is the caller's, and stays as it is
    crossed = np.empty((N, K))
    for fold in (0, 1):
        use, other = np.arange(N) % 2 != fold, np.arange(N) % 2 == fold
        design = np.hstack([each[np.arange(N), ARMS], np.eye(K)[ARMS]])
        fitted = linear_model.Ridge(alpha=1.0).fit(design[use], REWARDS[use])
        for a in range(K):
            shown = np.hstack([each[other, a], np.tile(np.eye(K)[a], (other.sum(), 1))])
            crossed[other, a] = np.clip(fitted.predict(shown), 0.0, 1.0)
    rows = [(a, r, p, policy) for a, r, p, _ in ROWS]
    assert found.value == pytest.approx(textbook("DR", rows, crossed), abs=1e-9)


def test_diagnostics_are_those_of_the_weights():
    told = evaluate(LOG, target, **GIVEN).diagnostics
    w = np.array([pi[a] / p[a] for a, _, p, pi in ROWS])
    assert told.n == told.episodes == N
    assert told.effective_sample_size == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert told.largest_weight == pytest.approx(w.max())
    assert told.overlap == pytest.approx(w.mean())
    assert told.overlap_low < 1.0 < told.overlap_high
    assert told.support == pytest.approx(1.0)


def test_rows_of_an_episode_add_up():
    draws = np.arange(N) // 5
    log = {**LOG, "draw": draws, "arm": np.repeat(ARMS[::5], 5), "propensity": 0.5 * np.ones(N)}
    told = evaluate(log, [0.2, 0.3, 0.5], episode="draw").diagnostics
    w = np.array([0.2, 0.3, 0.5])[np.repeat(ARMS[::5], 5)] / 0.5
    sums = w.reshape(-1, 5).sum(axis=1)
    assert (told.n, told.episodes) == (N, N // 5)
    assert told.effective_sample_size == pytest.approx(sums.sum() ** 2 / (sums**2).sum())


def test_a_model_is_refused_where_it_means_nothing():
    with pytest.raises(ArgumentError, match="q must not be given for SNIPS"):
        evaluate(LOG, 0, q=[0.5] * 3)
    with pytest.raises(ArgumentError, match="clip must not be given for DM"):
        evaluate(LOG, 0, estimator="DM", clip=2)
    with pytest.raises(ArgumentError, match="clip must be given for switch-DR"):
        evaluate(LOG, 0, estimator="switch-DR")
    with pytest.raises(ArgumentError, match="propensities must be given for CAB"):
        evaluate(LOG, 0, estimator="CAB", clip=2)
    with pytest.raises(ArgumentError, match=r"q must be a function or a table .* later rewards"):
        evaluate(LOG, 0, estimator="DR", interval="betting")
    found = evaluate(LOG, 0, estimator="DR", interval="betting", q=[0.3, 0.5, 0.7])
    assert found.low < found.value < found.high


# Open Bandit -------------------------------------------------------------------------------------


def read_plainly(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        (int(r["item_id"]), float(r["click"]), float(r["propensity_score"]), int(r["position"]))
        for r in rows
    ]


@pytest.mark.parametrize("estimator", ["SNIPS", "IPS", "DM", "DR", "switch-DR", "CAB"])
def test_estimates_on_open_bandit_equal_the_formula(estimator, published):
    path = published("open-bandit-dataset-small") / "random" / "men" / "men.csv"
    plain, items = read_plainly(path), 34
    by_position = np.random.default_rng(2).dirichlet(np.ones(items), 3).T[None]  # (1, K, positions)
    table = np.repeat(by_position, len(plain), axis=0)
    q = np.linspace(0.0, 0.1, items)
    rows = [
        (a, r, np.full(items, p), by_position[0, :, position - 1]) for a, r, p, position in plain
    ]
    clip = 3.0 if estimator in ("switch-DR", "CAB") else None
    given = {} if estimator in ("SNIPS", "IPS") else {"q": q}
    uniform = np.full(items, 1 / items)
    found = evaluate(path, table, estimator=estimator, clip=clip, propensities=uniform, **given)
    expected = textbook(estimator, rows, [q] * len(rows), clip)
    assert found.value == pytest.approx(expected, abs=1e-9)


def test_the_log_of_one_policy_tells_the_clicks_of_the_other(published):
    folder = published("open-bandit-dataset-small")
    truth = np.mean([r for _, r, _, _ in read_plainly(folder / "random" / "men" / "men.csv")])
    path = folder / "bts" / "men" / "men.csv"
    found = evaluate(path, np.full(34, 1 / 34), interval="bootstrap")
    assert found.low <= truth <= found.high
    logged = np.mean([r for _, r, _, _ in read_plainly(path)])
    assert not found.low <= logged <= found.high  # the mean of the log is another number
