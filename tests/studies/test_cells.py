"""Cells: what is finished is found again, by the same command only, whatever happened in between."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpbandits import ZCDP, replay
from dpbandits.environments import Bernoulli, DoctorReplay
from dpbandits.errors import ArgumentError, StateFileError
from dpbandits.papers.concentrated import AdaCUCB
from dpbandits.papers.plans import Results
from dpbandits.simulation import ReplayResult, Result
from dpbandits.studies import cells
from dpbandits.studies.cells import Cell, folder_for, kept, stages
from dpbandits.studies.engines import Processes, compute


def cell(rho: float | None = 0.5, **changes: object) -> Cell:
    budget = None if rho is None else ZCDP(rho)
    policy = AdaCUCB(2, budget=budget)
    made = Cell(
        key=f"at {rho}",
        stage="arms",
        policy=policy,
        environment=Bernoulli([0.9, 0.1]),
        horizon=200,
        runs=3,
        seed=5,
        record=(1, 20, 200),
    )
    return dataclasses.replace(made, **changes)


@pytest.fixture
def work(tmp_path: Path) -> list[Cell]:
    return [cell(0.1), cell(0.5), cell(None, stage="open")]


def computed(work: list[Cell], beside: Path) -> Results:
    return Results(work, compute(work, beside, engine=Processes(1)))


def test_results_are_found_by_their_keys(work: list[Cell], tmp_path: Path) -> None:
    found = computed(work, tmp_path / "out")
    assert found.rounds("at 0.5").tolist() == [1, 20, 200]
    assert found.curves("at 0.5").shape == (1, 3, 3)
    assert found.curves("at 0.5")[..., -1] == pytest.approx(found.final("at 0.5"))


def test_instances_of_a_setting_stand_side_by_side(tmp_path: Path) -> None:
    work = [cell(seed=seed) for seed in (5, 6)]
    both = computed(work, tmp_path / "out")
    assert both.curves("at 0.5").shape == (2, 3, 3)
    alone = computed(work[1:], tmp_path / "out").final("at 0.5")
    assert both.final("at 0.5")[1:].tolist() == alone.tolist()


def test_what_is_finished_is_not_computed_again(
    work: list[Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = compute(work, tmp_path / "out", engine=Processes(1))
    missing = folder_for(work, tmp_path / "out") / f"{work[1].digest}.parquet"
    missing.unlink()
    simulated = []
    simulate = cells.simulate
    monkeypatch.setattr(
        cells,
        "simulate",
        lambda policy, *args, **kw: simulated.append(policy) or simulate(policy, *args, **kw),
    )
    again = compute(work, tmp_path / "out", engine=Processes(1))
    assert simulated == [work[1].policy]
    for one, other in zip(again, whole, strict=True):
        pd.testing.assert_frame_equal(one.frame, other.frame)
        pd.testing.assert_frame_equal(one.runs, other.runs)
        assert (one.settings, one.info) == (other.settings, other.info)


def test_a_replay_is_kept_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = DoctorReplay()
    work = [
        Cell(
            key=f"replay {rho}",
            stage="log",
            policy=AdaCUCB(4, budget=ZCDP(rho)),
            environment=log,
            horizon=None,
            runs=3,
            seed=5,
        )
        for rho in (0.1, 1.0)
    ]
    whole = compute(work, tmp_path / "out", engine=Processes(1))
    monkeypatch.setattr(cells, "replay", None)  # nothing is replayed again
    again = compute(work, tmp_path / "out", engine=Processes(1))
    both = [ReplayResult.combined(results) for results in (whole, again)]
    pd.testing.assert_frame_equal(both[0].runs, both[1].runs)
    assert (both[0].settings, both[0].info) == (both[1].settings, both[1].info)
    at_once = replay([cell.policy for cell in work], log, runs=3, seed=5)
    pd.testing.assert_frame_equal(both[0].runs, at_once.runs)
    assert (both[0].settings, both[0].info) == (at_once.settings, at_once.info)
    with pytest.raises(StateFileError, match="is not a saved result"):
        Result.load(folder_for(work, tmp_path / "out") / f"{work[0].digest}.parquet")


def test_without_a_place_nothing_is_kept(work: list[Cell], tmp_path: Path) -> None:
    assert len(compute(work, engine=Processes(1))) == 3
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_computed_again(work: list[Cell], tmp_path: Path) -> None:
    whole = computed(work, tmp_path / "out")
    path = folder_for(work, tmp_path / "out") / f"{work[0].digest}.parquet"
    path.write_bytes(path.read_bytes()[:200])
    assert (
        computed(work, tmp_path / "out").final("at 0.1").tolist() == whole.final("at 0.1").tolist()
    )
    assert isinstance(Result.load(path), Result)


@pytest.mark.parametrize(
    "change",
    [
        {"policy": AdaCUCB(2, budget=ZCDP(0.6))},
        {"policy": AdaCUCB(2, budget=ZCDP(0.5), beta=2.0)},
        {"policy": AdaCUCB(2, budget=ZCDP(0.5), name="ours")},
        {"environment": Bernoulli([0.9, 0.2])},
        {"horizon": 201},
        {"runs": 4},
        {"seed": 6},
        {"record": (1, 200)},
    ],
)
def test_all_that_decides_the_numbers_is_in_the_name(change: dict[str, object]) -> None:
    assert cell().digest == cell(key="other", stage="other").digest
    assert cell(**change).digest != cell().digest


def test_other_code_does_not_find_the_results_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = cell().digest
    monkeypatch.setattr(cells, "code_digest", lambda: "other")
    assert cell().digest != digest
    monkeypatch.undo()
    monkeypatch.setattr(cells, "__version__", "0.0.0")
    assert cell().digest != digest


def test_the_folder_goes_when_all_is_done_and_stays_when_not(
    work: list[Cell], tmp_path: Path
) -> None:
    def interrupted() -> None:
        with kept(work, tmp_path / "out"):
            computed(work, tmp_path / "out")
            raise KeyboardInterrupt

    folder = folder_for(work, tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(list(folder.iterdir())) == 3
    assert folder_for(work[:1], tmp_path / "out") != folder  # another study
    with kept(work, tmp_path / "out") as again:
        assert again == folder
    assert not folder.exists()


def test_where_nothing_was_finished_nothing_is_left(work: list[Cell], tmp_path: Path) -> None:
    with pytest.raises(ArgumentError), kept(work, tmp_path / "new" / "out"):
        raise ArgumentError("the output is in the way")
    assert list((tmp_path / "new").iterdir()) == []


def test_the_last_process_removes_the_folder(work: list[Cell], tmp_path: Path) -> None:
    with kept(work, tmp_path / "out") as folder:
        with kept(work, tmp_path / "out"):
            computed(work, tmp_path / "out")
        assert len(list(folder.iterdir())) == 3  # someone else is at work on it
    assert not folder.exists()


def test_progress_adds_up_over_the_cells_of_a_stage(work: list[Cell], tmp_path: Path) -> None:
    assert stages(work) == {"arms": 6, "open": 3}
    told: list[tuple[str, int, int]] = []
    compute(work, tmp_path / "out", engine=Processes(1), progress=lambda *told_: told.append(told_))
    assert told[-1] == ("open", 3, 3)
    counts = [done for stage, done, _ in told if stage == "arms"]
    assert counts == sorted(set(counts))
    assert counts[-1] == 6


def test_keys_name_one_cell_each(work: list[Cell], tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="different keys"):
        computed([work[0], work[0]], tmp_path / "out")


def test_results_of_several_policies_are_one_result(work: list[Cell], tmp_path: Path) -> None:
    found = compute(work, tmp_path / "out", engine=Processes(1))
    whole = Result.combined(
        [
            *found,
            cell(0.5, environment=Bernoulli([0.5, 0.2]), horizon=300, record=(300,)).compute(
                1, _ignored
            ),
        ]
    )
    assert [one.budget for one in whole.settings.values()] == [ZCDP(0.1), ZCDP(0.5), None]
    assert list(whole.info["environments"]) == ["Bernoulli(0.9, 0.1)", "Bernoulli(0.5, 0.2)"]
    assert (whole.info["horizon"], whole.info["runs"]) == (300, 3)
    assert len(whole.runs) == 12
    with pytest.raises(ArgumentError, match="once per environment"):
        Result.combined([found[0], found[0]])


def _ignored(done: int, total: int) -> None: ...


def test_runs_are_paired_across_policies(tmp_path: Path) -> None:
    """Open policies that differ in nothing but a name meet the same rewards, so that they lose the
    same.
    """
    one, other = (
        cell(None, key="a"),
        cell(None, key="b", policy=AdaCUCB(2, budget=None, answers_within=3)),
    )
    found = computed([one, other], tmp_path / "out")
    assert np.array_equal(found.final("a"), found.final("b"))
