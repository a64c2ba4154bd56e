"""Work that is shared among processes: who plays what changes nothing."""

from __future__ import annotations

import importlib
import math
import os
import pickle
import queue
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpbandits as dpb
from dpbandits import ZCDP, replay, simulate
from dpbandits.algorithms import UCB1, MergedIMED
from dpbandits.auditing import playing
from dpbandits.environments import (
    Advised,
    Bernoulli,
    Classification,
    Delay,
    DoctorReplay,
    GaussianContexts,
    Recommendations,
    RewardTable,
    classification,
)
from dpbandits.errors import JobsWarning
from dpbandits.kernel import kernel
from dpbandits.policies import registered
from dpbandits.simulation import helpers, processes, tasks
from dpbandits.simulation.processes import shared_out
from dpbandits.simulation.tasks import Piece
from dpbandits.studies import engines
from dpbandits.studies.cells import Cell
from dpbandits.studies.engines import Processes, compute

UNITS = 30


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What helpers are asked.  They start at once, and after its first piece this process waits
    until one has answered, or has died.
    """
    told: list[Any] = []
    helped, ask, here = threading.Event(), helpers.Helper.ask, processes.played

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
    monkeypatch.setattr(helpers.Helper, "ask", asking)
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
    monkeypatch.setattr(tasks, "_FOLDERS", [])
    with tasks.importing_from(tmp_path):
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

    monkeypatch.setattr(helpers, "RESTING", [])
    monkeypatch.setattr(helpers, "LIVING", set())
    monkeypatch.setattr(processes, "played", lambda task, piece: [task(0, n) for n in piece.units])
    monkeypatch.setattr(helpers.sys, "executable", "")
    with pytest.warns(JobsWarning, match="no process can be started: this program is no Python"):
        assert shared(task, UNITS) == [list(range(UNITS))]


def test_short_work_is_played_here_alone():
    before = set(helpers.LIVING)
    simulate(UCB1(2), ARMS, horizon=100, runs=UNITS, n_jobs=2)
    assert before == helpers.LIVING


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


def test_a_helper_that_hangs_does_not_stop_work(monkeypatch: pytest.MonkeyPatch):
    """With a piece of a group that this process has never played."""
    monkeypatch.setattr(processes, "_PATIENCE", 0.1)
    schedule = processes._Schedule([1, 1], 2)
    own, sent = schedule.take(), schedule.take(first=True, sent=True)
    schedule.finish(own, 1e-4)
    assert schedule.late() is None
    time.sleep(0.13)
    assert schedule.late() == sent


# What is sent ---------------------------------------------------------------------------------


def through(what: Any) -> Any:
    """An object as a helper gets it."""
    return pickle.loads(tasks.dumped(what))


def test_policies_are_made_anew():
    for name, cls in registered().items():
        for budget in (*cls.example_budgets()[:1], None):
            policy = cls(**cls.example, budget=budget, name="ours", seed=3)
            other = through(policy)
            assert (repr(other), other.stream_key) == (repr(policy), policy.stream_key), name
            assert repr(other.params) == repr(policy.params)


HALVES = [[0.5, 0.25], [0.75, 0.5]]


@pytest.mark.parametrize(
    "world",
    [
        RewardTable(HALVES),
        Classification(HALVES, [0, 1]),
        Recommendations(HALVES, [0, 1], [0, 1], per_round=2),
        Advised(RewardTable(HALVES), [[[1.0, 0.0]]], horizon=2),
    ],
    ids=repr,
)
def test_other_machines_are_sent_no_data_of_people(world: Any):
    with pytest.raises(dpb.ArgumentError, match="environment must hold no data") as told:
        tasks.dumped_for_others(partial(simulate, environment=world))
    assert "0.25" not in str(told.value)
    for public in (classification("digits"), Bernoulli([0.25, 0.5])):
        assert tasks.dumped_for_others(partial(simulate, environment=public))


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


class Odd(UserWarning):
    """It cannot be unpickled."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(one + other)


def test_warnings_of_helpers_are_given_here(asked: list[Any]):
    here = os.getpid()

    def warn(group: int, number: int) -> None:
        if os.getpid() != here:
            warnings.warn("from afar", RuntimeWarning, stacklevel=1)

    with pytest.warns(RuntimeWarning, match="from afar"):
        shared(warn, UNITS)


class Refused(Exception):
    """Nor can this."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(one + other)


def test_what_fails_in_a_helper_is_raised_here_as_it_is(asked: list[Any]):
    def fail(group: int, number: int) -> int:
        time.sleep(0.01)
        if number:
            raise Refused("n", str(number))
        return number

    with pytest.raises(Refused, match=r"^n\d") as told:
        shared(fail, UNITS)
    assert any(isinstance(one, Piece) for one in asked)
    assert told.traceback[-1].name == "fail"  # with the frames of this process


@pytest.mark.parametrize("how", ["raises", "warns", "returns"])
def test_what_a_helper_alone_cannot_do_is_done_here(how: str, asked: list[Any]):
    here = os.getpid()

    def task(group: int, number: int) -> Any:
        if os.getpid() != here:
            if how == "raises":
                raise queue.Empty
            if how == "warns":
                warnings.warn(Odd("a", "b"), stacklevel=1)
        return threading.Lock() if how == "returns" else number

    with pytest.warns(JobsWarning, match="n_jobs has no effect: another process fails at the work"):
        (found,) = shared(task, UNITS)
    assert len(found) == UNITS
    assert all(one is not None for one in found)
    assert how == "returns" or found == list(range(UNITS))


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
    assert set(helpers.RESTING) >= helpers.LIVING


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_an_interruption_waits_for_no_heir_of_a_helper(asked: list[Any], tmp_path: Path):
    """A process that a task has forked has the helper's pipes, and keeps them open."""
    here, heir = os.getpid(), tmp_path / "heir"

    def task(group: int, number: int) -> int:
        if os.getpid() != here:
            pid = os.fork()
            if pid == 0:
                time.sleep(60)
                os._exit(0)
            heir.write_text(str(pid))
            time.sleep(60)
        return number

    def interrupt(piece: Piece) -> None:
        while not (heir.exists() and heir.read_text()):
            time.sleep(0.01)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shared_out(task, [UNITS], 2, interrupt)
    os.kill(int(heir.read_text()), signal.SIGKILL)  # it still lives


def test_nothing_is_left_of_a_helper_that_has_rested_for_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(helpers, "_IDLE", -1.0)
    helper = helpers.Helper()
    helpers.rest(helper)
    assert helper._process.poll() is not None
    assert all(pipe.closed for pipe in helper._pipes)
    assert helper not in helpers.LIVING
    assert helper not in helpers.RESTING


def test_a_helper_starts_beside_what_others_print_and_close(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Standard error of this process may be closed, and its folder have modules of any name."""
    text = "import os\nprint('Welcome to the cluster!', flush=True)\nos.close(2)\n"
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(text)
    (tmp_path / "signal.py").write_text("raise SystemExit")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.chdir(tmp_path)

    def task(group: int, number: int) -> int:
        print("a task may print")
        return 2 * number

    helper = helpers.Helper()
    try:
        assert helper.ask(tasks.packed(task)) == b""
        assert pickle.loads(helper.ask(Piece(0, range(3)))) == ([0, 2, 4], [])
    finally:
        helper.end()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_helper_ends_with_its_parent_in_the_middle_of_a_piece(tmp_path: Path):
    """The parent ends as one that is killed; the helper holds a lock while it lives."""
    fcntl = importlib.import_module("fcntl")
    playing, over = tmp_path / "playing", tmp_path / "over"

    def task(group: int, number: int) -> None:
        with open(playing, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write("yes")
            file.flush()
            time.sleep(60)
            over.touch()

    if (parent := os.fork()) == 0:
        try:
            helper = helpers.Helper()
            helper.ask(tasks.packed(task))
            threading.Thread(target=helper.ask, args=(Piece(0, range(1)),), daemon=True).start()
            while not (playing.exists() and playing.read_text()):
                time.sleep(0.01)
        finally:
            os._exit(0)
    os.waitpid(parent, 0)
    with open(playing) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    assert not over.exists()


# Code that changes ----------------------------------------------------------------------------


MINE = """
from dpbandits.algorithms import UCB1


def task(group: int, number: int) -> int:
    return {}


class Mine(UCB1):
    def _params(self):
        return super()._params()._replace(optimism={}.5)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Path]]:
    """A module of a user, and its file."""
    file = tmp_path / "edited_by_a_user.py"
    file.write_text(MINE.format(1, 1))
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module(file.stem), file
    sys.modules.pop(file.stem)


def test_a_helper_has_no_older_code(module: tuple[Any, Path], asked: list[Any]):
    """A module that is imported anew after a change, between two calls; in one that rests, too."""
    mine, file = module
    assert shared(mine.task, UNITS) == [[1] * UNITS]
    resting = list(helpers.RESTING)
    file.write_text(MINE.format(22, 2))
    assert shared(importlib.reload(mine).task, UNITS) == [[22] * UNITS]
    assert any(isinstance(one, Piece) for one in asked)
    assert not any(one.is_of_today for one in resting)


def test_a_helper_has_no_newer_policies(module: tuple[Any, Path]):
    """As where a file is changed while a study runs."""
    mine, file = module
    policy = mine.Mine(2)
    sent = tasks.packed(policy)
    file.write_text(MINE.format(22, 2))
    importlib.reload(mine)
    assert tasks.unpacked(sent) == (
        None,
        "another process cannot load the work: the class Mine differs there, as when a file is"
        " changed after its import",
    )
    assert through(mine.Mine(2)).params == mine.Mine(2).params


def test_short_cells_of_a_study_are_shared(asked: list[Any], monkeypatch: pytest.MonkeyPatch):
    """Whole cells, of which each process plays some: a helper would be late for runs of one."""
    cells = [
        Cell(
            key=str(seed),
            stage="short",
            policy=UCB1(2),
            environment=ARMS,
            horizon=100,
            runs=3,
            seed=seed,
            record=(100,),
        )
        for seed in range(8)
    ]
    alone = compute(cells, engine=Processes(1))
    monkeypatch.setattr(engines, "_SHORT", math.inf)
    both = compute(cells, engine=Processes(2))
    for one, other in zip(alone, both, strict=True):
        pd.testing.assert_frame_equal(one.frame, other.frame)
    pieces = [what for what in asked if isinstance(what, Piece)]
    assert pieces
    assert {piece.units for piece in pieces} == {range(1)}
    assert len({piece.group for piece in pieces}) > 1
