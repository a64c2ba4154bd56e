"""Work that is shared among processes: who plays what changes nothing."""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpbandits as dpb
from dpbandits import ZCDP, replay, simulate
from dpbandits.algorithms import UCB1, MergedIMED
from dpbandits.auditing import playing
from dpbandits.environments import Bernoulli, Delay, DoctorReplay, GaussianContexts
from dpbandits.errors import ArgumentError, JobsWarning
from dpbandits.kernel import kernel
from dpbandits.policies import registered
from dpbandits.simulation import processes
from dpbandits.simulation.processes import Piece, shared_out

UNITS = 30


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What helpers are asked.  They start at once, and after its first piece this process waits
    until one has answered, or has died.
    """
    told: list[Any] = []
    helped, ask, here = threading.Event(), processes._Helper.ask, processes.played

    def asking(self: Any, what: Any) -> Any:
        told.append(what)
        try:
            return ask(self, what)
        finally:
            if isinstance(what, Piece):
                helped.set()

    class Crew(processes._Crew):
        def __init__(self, *given: Any) -> None:
            helped.clear()
            super().__init__(*given)

    def played(task: Any, piece: Piece) -> list[Any]:
        assert piece == Piece(0, range(1)) or helped.wait(60)
        return here(task, piece)

    helped.set()  # where there is no crew
    monkeypatch.setattr(processes, "_Crew", Crew)
    for name in ("_SOON", "_STARTUP", "_JOINING"):
        monkeypatch.setattr(processes, name, 0.0)
    monkeypatch.setattr(processes, "played", played)
    monkeypatch.setattr(processes._Helper, "ask", asking)
    return told


def shared(task: Callable[[int, int], Any], *counts: int) -> list[list[Any]]:
    return shared_out(task, counts, 2, lambda piece: None)


# Helpers. Tasks are functions within tests, which are sent with their code, as from __main__ -----


def test_every_unit_is_played_once_whoever_plays_it(asked: list[Any]):
    def task(group: int, number: int) -> tuple[int, int, int]:
        time.sleep(0.001)
        return group, number, os.getpid()

    found = shared(task, UNITS, 1, 3 * UNITS)
    assert [[one[:2] for one in part] for part in found] == [
        [(group, number) for number in range(count)]
        for group, count in enumerate((UNITS, 1, 3 * UNITS))
    ]
    players = {one[2] for part in found for one in part}
    assert os.getpid() in players
    assert len(players) == 2


def test_helpers_find_modules_that_are_not_on_the_path(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    code = "import os, time\ndef task(group, number): time.sleep(0.001); return os.getpid()\n"
    (tmp_path / "far_away.py").write_text(code)
    monkeypatch.setattr(processes, "_FOLDERS", [])
    with processes.importing_from(tmp_path):
        module = importlib.import_module("far_away")
    assert str(tmp_path) not in sys.path
    (players,) = shared(module.task, UNITS)
    assert len(set(players)) == 2


def test_what_cannot_be_sent_is_played_here_and_named(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch
):
    lock = threading.Lock()

    def task(group: int, number: int) -> int:
        with lock:
            time.sleep(0.01)
            return number

    start = processes.played
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "played", lambda task, piece: [task(0, n) for n in piece.units])
        with pytest.warns(
            JobsWarning, match=r"n_jobs has no effect: .*cannot pickle '_thread.lock"
        ):
            assert shared(task, UNITS) == [list(range(UNITS))]
    assert processes.played is start
    assert not asked


def test_without_an_interpreter_all_is_played_here(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch
):
    def task(group: int, number: int) -> int:
        time.sleep(0.01)
        return number

    monkeypatch.setattr(processes, "_RESTING", [])
    monkeypatch.setattr(processes, "_LIVING", set())
    monkeypatch.setattr(processes, "played", lambda task, piece: [task(0, n) for n in piece.units])
    monkeypatch.setattr(processes.sys, "executable", "")
    with pytest.warns(JobsWarning, match="no process can be started: this program is no Python"):
        assert shared(task, UNITS) == [list(range(UNITS))]


def test_short_work_is_played_here_alone():
    before = set(processes._LIVING)
    simulate(UCB1(2), ARMS, horizon=100, runs=UNITS, n_jobs=2)
    assert before == processes._LIVING


def test_pieces_that_a_helper_is_late_with_are_played_again(monkeypatch: pytest.MonkeyPatch):
    schedule = processes._Schedule([4], 2)
    first, second = schedule.take(), schedule.take(first=True, sent=True)
    assert first == Piece(0, range(1))
    assert second == Piece(0, range(1, 2))
    assert schedule.late() is None  # nothing is known yet
    assert schedule.finish(first, 1e-4)
    time.sleep(0.03)
    assert schedule.late() == second
    assert schedule.finish(second, 1e-4)
    assert not schedule.finish(second)  # by the helper after all
    rest = schedule.take()
    assert schedule.left() == (1, pytest.approx(1e-4))
    schedule.give_back(rest)  # which no helper had
    assert schedule.left()[0] == 1


# What is sent ---------------------------------------------------------------------------------


def through(what: Any) -> Any:
    """An object as a helper gets it."""
    return pickle.loads(processes._dumped(what))


def test_policies_are_made_anew():
    for name, cls in registered().items():
        for budget in (*cls.example_budgets()[:1], None):
            policy = cls(**cls.example, budget=budget, name="ours", seed=3)
            other = through(policy)
            assert (repr(other), other.stream_key) == (repr(policy), policy.stream_key), name
            assert repr(other.params) == repr(policy.params)


@kernel
def twice(x: float) -> float:
    return 2.0 * x


@kernel
def thrice(x: float) -> float:
    return x + twice(x)


@pytest.mark.compiled
def test_kernels_are_sent_with_their_code():
    other = through(thrice)
    assert other is not thrice
    assert (other(2.0), other._digest) == (6.0, thrice._digest)


SIZE = {"horizon": 60, "runs": UNITS, "seed": 4}
ARMS = Bernoulli([0.9, 0.1])
LATE = ARMS.delayed(Delay("geometric", 3, rate=1.0))
GAMES = {
    "arms": lambda: partial(simulate, [MergedIMED(2, budget=ZCDP(1.0)), UCB1(2)], ARMS),
    "decided": lambda: partial(simulate, MergedIMED(2, budget=None), ARMS, decided=0.9),
    "late": lambda: partial(
        simulate, MergedIMED(2, budget=ZCDP(1.0), answers_within="8s", holdout=0.2), LATE
    ),
    "contexts": lambda: partial(
        simulate, dpb.Linear(3, 2, horizon=60, budget=ZCDP(1.0)), GaussianContexts(3, [0.6, 0.8])
    ),
    "replay": lambda: partial(replay, UCB1(4), DoctorReplay()),
}


@pytest.mark.parametrize("game", list(GAMES))
def test_simulations_and_replays_are_the_same(game: str, asked: list[Any]):
    play = GAMES[game]()
    one, two = (play(n_jobs=n, **SIZE) for n in (1, 2))
    assert any(isinstance(what, Piece) for what in asked)
    pd.testing.assert_frame_equal(one.runs, two.runs, check_exact=True)
    if game != "replay":
        pd.testing.assert_frame_equal(one.frame, two.frame, check_exact=True)


def test_audits_are_the_same(asked: list[Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(playing, "_LONGEST_BATCH", 20)
    policy = MergedIMED(2, budget=ZCDP(0.5))
    one, two = (dpb.audit(policy, runs=100, n_jobs=n, seed=5) for n in (1, 2))
    assert any(isinstance(what, Piece) for what in asked)
    assert one.scores.equals(two.scores)


# What goes wrong ------------------------------------------------------------------------------


def test_errors_and_warnings_of_helpers_are_raised_here(asked: list[Any]):
    here = os.getpid()

    def warn(group: int, number: int) -> None:
        if os.getpid() != here:
            warnings.warn("from afar", RuntimeWarning, stacklevel=1)

    with pytest.warns(RuntimeWarning, match="from afar"):
        shared(warn, UNITS)

    def fail(group: int, number: int) -> None:
        if os.getpid() != here:
            raise ArgumentError("n must be less", "n")

    with pytest.raises(ArgumentError, match="n must be less") as told:
        shared(fail, UNITS)
    assert "in fail" in told.value.__notes__[0]


def test_a_helper_that_dies_is_done_without(asked: list[Any]):
    here = os.getpid()

    def die(group: int, number: int) -> int:
        if os.getpid() != here:
            os._exit(1)
        return number

    assert shared(die, UNITS) == [list(range(UNITS))]
    assert any(isinstance(one, Piece) for one in asked)


def test_an_interruption_ends_helpers(asked: list[Any]):
    def task(group: int, number: int) -> int:
        return number

    def interrupt(piece: Piece) -> None:
        if any(isinstance(one, Piece) for one in asked):
            raise KeyboardInterrupt
        time.sleep(0.03)

    with pytest.raises(KeyboardInterrupt):
        shared_out(task, [UNITS], 2, interrupt)
    assert set(processes._RESTING) >= processes._LIVING
