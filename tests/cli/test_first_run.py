"""A first run compiles on two cores: its helper, and when it is there."""

import multiprocessing
import time
from functools import partial
from pathlib import Path

import pytest
from numba.core import event

from dpbandits import ZCDP
from dpbandits.cli.compiling import _compile_backwards, compiling_ahead
from dpbandits.environments import Bernoulli
from dpbandits.papers.concentrated import AdaCUCB
from dpbandits.studies.cells import Cell

pytestmark = pytest.mark.compiled


def leave_a_mark(path):
    path.touch()
    time.sleep(600)


def found(path):
    for _ in range(600):
        if path.exists():
            return True
        time.sleep(0.1)
    return False


def test_a_helper_comes_with_the_first_compilation_and_goes_at_the_end(tmp_path):
    start, mark = time.monotonic(), tmp_path / "mark"
    with compiling_ahead(partial(leave_a_mark, mark), -1):
        for _ in range(3):
            with event.trigger_event("numba:compile"):
                pass
        assert found(mark)
    assert not multiprocessing.active_children()
    assert time.monotonic() - start < 300  # it was not waited for


def test_no_helper_comes_for_one_job_or_where_everything_is_compiled(tmp_path):
    for jobs, compiles in ((1, True), (-1, False)):
        with compiling_ahead(partial(leave_a_mark, tmp_path / "mark"), jobs):
            if compiles:
                with event.trigger_event("numba:compile"):
                    pass
            assert not multiprocessing.active_children()


def test_the_helper_plays_one_round_of_every_cell_from_the_last_to_the_first(monkeypatch):
    played = []

    def compute(self, n_jobs, progress):
        played.append((self.key, self.horizon, self.runs, n_jobs))
        if self.key == "b":
            raise ValueError("whatever")

    def cell(key):
        return Cell(
            key=key,
            stage="",
            policy=AdaCUCB(2, budget=ZCDP(1.0)),
            environment=Bernoulli([0.9, 0.1]),
            horizon=50,
            runs=7,
            seed=1,
            record=(50,),
        )

    monkeypatch.setattr(Cell, "compute", compute)
    _compile_backwards(lambda: [cell("a"), cell("b"), cell("c")])
    assert played == [("c", 1, 1, 1), ("b", 1, 1, 1)]  # and the other process meets the error
    _compile_backwards(lambda: [cell("a"), cell("c")])
    assert played[2:] == [("c", 1, 1, 1), ("a", 1, 1, 1)]
    _compile_backwards(partial(Path.read_bytes, Path("no such file")))
