"""Changing means and tables on disk: every window against its plain sum."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import chisquare

from dpbandits import ArgumentError, simulate
from dpbandits.algorithms import EXP3
from dpbandits.environments import (
    LateTurn,
    Piecewise,
    RewardFile,
    RewardTable,
    SineDrift,
    SwitchingBest,
)
from dpbandits.kernel import bind, entry, unbound

ALPHA = 1e-4
MEANS = [[0.9, 0.1, 0.5], [0.2, 0.2, 0.6], [0.0, 1.0, 0.3]]
STARTS = [0, 4, 5]

draw = unbound


@entry
def _sums(state, arm, start, n, rng, out):
    for i in range(out.size):
        out[i] = draw(state, arm, start, n, rng)


@cache
def bound_to(kernel):
    return bind(_sums, draw=kernel)


def sums(environment, arm, start, n, size, seed=0):
    out = np.empty(size)
    bound_to(environment.kernels.draw)(
        environment.state, arm, start, n, np.random.default_rng(seed), out
    )
    return out


def piecewise_rows(horizon=12):
    return np.array([MEANS[sum(t >= s for s in STARTS) - 1] for t in range(horizon)])


def sine_rows(environment, amplitude, period):
    t, k = np.arange(environment.horizon)[:, None], environment.n_arms
    return np.asarray(environment.state.centres) + amplitude * np.sin(
        2 * np.pi * (t / period + np.arange(k) / k)
    )


def held_against(environment, rows, *, dynamic=False):
    """Every window of sums and regret, where the rewards are the rows themselves."""
    best = rows.max(axis=1) if dynamic else rows[:, rows.sum(axis=0).argmax()]
    horizon, k = rows.shape
    for start in range(horizon):
        for n in range(horizon - start + 1):
            window = rows[start : start + n].sum(axis=0)
            for arm in range(k):
                assert sums(environment, arm, start, n, 1)[0] == pytest.approx(
                    window[arm], abs=1e-10
                )
                lost = environment.kernels.regret(environment.state, arm, start, n)
                due = best[start : start + n].sum() - window[arm]
                assert lost == pytest.approx(due, abs=1e-10)
    assert environment.means() == pytest.approx(rows.mean(axis=0))


@pytest.mark.parametrize("regret", ["static", "dynamic"])
def test_windows_of_pieces(regret):
    environment = Piecewise(MEANS, STARTS, horizon=12, random=False, regret=regret)
    held_against(environment, piecewise_rows(), dynamic=regret == "dynamic")


@pytest.mark.parametrize("regret", ["static", "dynamic"])
def test_windows_of_sine_waves(regret):
    # A period that does not divide the horizon, and one of two rounds.
    for period in (7, 2):
        environment = SineDrift(
            [0.5, 0.3, 0.35], amplitude=0.3, period=period, horizon=24, random=False, regret=regret
        )
        held_against(environment, sine_rows(environment, 0.3, period), dynamic=regret == "dynamic")


def test_sine_waves_lose_no_digits_late():
    environment = SineDrift([0.5, 0.3], amplitude=0.3, period=1009, horizon=10**9, random=False)
    start, n = 10**9 - 5000, 4321
    t = (start + np.arange(n)) % 1009
    for arm in range(2):
        exact = np.sum(
            environment.state.centres[arm] + 0.3 * np.sin(2 * np.pi * (t / 1009 + arm / 2))
        )
        assert sums(environment, arm, start, n, 1)[0] == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize(
    "environment",
    [
        Piecewise(MEANS, STARTS, horizon=12),
        SineDrift([0.5, 0.3, 0.35], amplitude=0.3, period=7, horizon=12),
    ],
    ids=["pieces", "sine"],
)
def test_random_sums_have_the_law_of_single_rounds(environment):
    # Power: a window moved by one round changes the mean by about 0.1, twenty standard errors.
    rows = (
        piecewise_rows() if isinstance(environment, Piecewise) else sine_rows(environment, 0.3, 7)
    )
    for arm in range(3):
        for start, n in [(0, 3), (2, 7), (4, 1), (3, 9)]:
            law = np.ones(1)
            for p in np.clip(rows[start : start + n, arm], 0, 1):
                law = np.convolve(law, [1 - p, p])
            counts = np.bincount(
                sums(environment, arm, start, n, 20_000, seed=n).astype(int), minlength=n + 1
            )
            assert counts[law == 0].sum() == 0
            likely = law * 20_000 >= 5
            seen, due = (
                np.append(counts[likely], counts[~likely].sum()),
                np.append(law[likely], law[~likely].sum()) * 20_000,
            )
            seen, due = seen[due > 0], due[due > 0]
            assert len(seen) == 1 or chisquare(seen, due).pvalue > ALPHA


def test_regret_may_be_negative_and_ends_against_the_best_fixed_arm():
    environment = SwitchingBest(2, best=[0, 1], switches=[30], horizon=100, gap=0.4, random=False)
    assert environment.means() == pytest.approx([0.3 + 0.4 * 0.3, 0.3 + 0.4 * 0.7])
    regret = environment.kernels.regret
    assert regret(environment.state, 0, 0, 30) == pytest.approx(-12.0)
    assert regret(environment.state, 0, 0, 100) == pytest.approx(16.0)
    assert regret(environment.state, 1, 0, 100) == 0.0


def test_the_late_turn_is_the_instance_of_the_lemma():
    turning, still = LateTurn(horizon=50, turn=20), LateTurn(horizon=50, turn=50)
    for t in range(50):
        losses = [1 - sums(turning, a, t, 1, 1)[0] for a in range(2)]
        assert losses == pytest.approx([0.5, 1.0 if t < 20 else 0.0])
        assert [1 - sums(still, a, t, 1, 1)[0] for a in range(2)] == pytest.approx([0.5, 1.0])
    assert (turning.state.best[0], still.state.best[0]) == (1, 0)


def test_descriptions_tell_environments_apart():
    worlds = [
        Piecewise(MEANS, STARTS, horizon=12),
        Piecewise(MEANS, STARTS, horizon=13),
        Piecewise(MEANS, STARTS, horizon=12, random=False),
        Piecewise(MEANS, [0, 4, 6], horizon=12),
        SineDrift([0.5, 0.3], amplitude=0.3, period=7, horizon=12),
        SineDrift([0.5, 0.3], amplitude=0.3, period=8, horizon=12),
        Piecewise(MEANS, STARTS, horizon=12, regret="dynamic"),
        SineDrift([0.5, 0.3], amplitude=0.3, period=7, horizon=12, regret="dynamic"),
        LateTurn(horizon=50, turn=20),
        LateTurn(horizon=50, turn=21),
    ]
    assert len({repr(world) for world in worlds}) == len(worlds)


# Files ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rewards():
    return np.random.default_rng(1).uniform(-1.0, 2.0, size=(5000, 3))


def test_windows_of_a_file_are_those_of_a_table(tmp_path, rewards):
    np.save(tmp_path / "rewards.npy", rewards)
    file, table = RewardFile(tmp_path / "rewards.npy"), RewardTable(rewards)
    rng = np.random.default_rng(2)
    edges = [0, 1, 1023, 1024, 1025, 2047, 2048, 4096, 4999, 5000]
    windows = [(a, b) for a in edges for b in edges if a <= b] + [
        tuple(sorted(rng.integers(0, 5001, 2))) for _ in range(200)
    ]
    for start, end in windows:
        for arm in range(3):
            for kernel in ("draw", "regret"):
                extra = (np.random.default_rng(0),) if kernel == "draw" else ()
                ours, theirs = (
                    getattr(world.kernels, kernel)(
                        world.state, arm, int(start), int(end - start), *extra
                    )
                    for world in (file, table)
                )
                assert ours == pytest.approx(theirs, abs=1e-8)
    assert file.means() == pytest.approx(table.means())
    assert (file.horizon, file.n_arms, file.support) == (table.horizon, table.n_arms, table.support)


@pytest.mark.long
@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.float32, np.float64])
def test_simulations_on_a_file_and_on_a_table_are_the_same(tmp_path, kind):
    rewards = (np.random.default_rng(1).random((3000, 3)) < [0.7, 0.5, 0.2]).astype(kind)
    np.save(tmp_path / "rewards.npy", rewards)
    policy = EXP3(3, budget=None)
    results = [
        simulate(policy, world, horizon=3000, runs=1, seed=1, record=1).runs["regret"][0]
        for world in (RewardFile(tmp_path / "rewards.npy"), RewardTable(rewards))
    ]
    assert results[0] == results[1]
    with open(tmp_path / "rewards.npy", "rb") as file:
        assert np.array_equal(np.load(file), rewards)


def test_a_file_is_mapped_and_not_read_into_memory(tmp_path, rewards):
    np.save(tmp_path / "rewards.npy", rewards)
    environment = RewardFile(tmp_path / "rewards.npy")
    owner = environment.state.rows
    while isinstance(owner, np.ndarray) and not isinstance(owner, np.memmap):
        owner = owner.base
    assert isinstance(owner, np.memmap)
    assert environment.state.blocks.size < rewards.size / 500


@pytest.mark.parametrize(
    "content",
    [
        np.zeros(3),
        np.zeros((0, 2)),
        np.array([[np.nan]]),
        np.array([[1j]]),
        np.array([["a"]]),
        np.zeros((2, 2), ">f8"),
    ],
    ids=repr,
)
def test_bad_files_are_refused(tmp_path, content):
    np.save(tmp_path / "bad.npy", content)
    with pytest.raises(ArgumentError, match=r"^path must name"):
        RewardFile(tmp_path / "bad.npy")


def test_what_is_no_file_of_numbers_is_refused(tmp_path):
    (tmp_path / "text.npy").write_text("no numbers")
    with pytest.raises(ArgumentError, match=r"^path must name"):
        RewardFile(tmp_path / "text.npy")
    with pytest.raises(OSError, match="missing"):
        RewardFile(tmp_path / "missing.npy")


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Piecewise([[0.5, 1.1]], [0], horizon=5), "means"),
        (lambda: Piecewise([0.5], [0], horizon=5), "means"),
        (lambda: Piecewise("ab", [0], horizon=5), "means"),
        (lambda: Piecewise(MEANS, [0, 5], horizon=9), "starts"),
        (lambda: Piecewise(MEANS, [1, 2, 3], horizon=9), "starts"),
        (lambda: Piecewise(MEANS, [0, 2, 2], horizon=9), "starts"),
        (lambda: Piecewise(MEANS, [0, 2, 9], horizon=9), "starts"),
        (lambda: Piecewise(MEANS, STARTS, horizon=0), "horizon"),
        (lambda: Piecewise(MEANS, STARTS, horizon=9, random=1), "random"),
        (lambda: Piecewise(MEANS, STARTS, horizon=9, regret="best"), "regret"),
        (lambda: SwitchingBest(2, best=[2], switches=[], horizon=9), "best"),
        (lambda: SwitchingBest(2, best=[0], switches=[], horizon=9, gap=1.5), "gap"),
        (lambda: SwitchingBest(2, best=[0, 1], switches=[], horizon=9), "starts"),
        (lambda: LateTurn(horizon=9, turn=10), "turn"),
        (lambda: SineDrift([0.2], amplitude=0.3, period=5, horizon=9), "centres"),
        (lambda: SineDrift([0.5], amplitude=0.6, period=5, horizon=9), "amplitude"),
        (lambda: SineDrift([0.5], amplitude=0.3, period=1, horizon=9), "period"),
    ],
)
def test_bad_arguments_are_refused(make, name):
    with pytest.raises(ArgumentError, match=f"^{name}"):
        make()
