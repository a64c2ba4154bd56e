"""Engines: whatever computes a study, its files have the same bytes."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpbandits import ZCDP, audit, plan, replay, simulate
from dpbandits.algorithms import MergedIMED
from dpbandits.environments import Bernoulli
from dpbandits.errors import ArgumentError, ClusterWarning, DPBanditsError
from dpbandits.papers.plans import Size
from dpbandits.papers.reproduce import PAPERS
from dpbandits.policies import registry
from dpbandits.simulation import processes
from dpbandits.simulation.processes import shared_out
from dpbandits.studies import Study, engines, load_study, orders
from dpbandits.studies.cells import cells_of, folder_for
from dpbandits.studies.engines import Dask, Engine, Processes, compute
from dpbandits.studies.orders import carry_out, of_modules, of_paper, of_study, order

dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")

STUDY = """
title = "Two worlds"
seed = 3
runs = 7
horizon = 200
record = 5

[budgets]
zcdp = [0.5]

[[environments]]
kind = "Bernoulli"
means = [0.9, 0.1]

[[environments]]
kind = "LoggedTrial.read"
path = "trial.csv"

[[policies]]
kind = "MergedIMED"

[[policies]]
kind = "AdaCUCB"
"""
REWARDS = (0.8128376, 0.1732654)
OWN = """
from dpbandits import Arms
from dpbandits.parts import UCB, Growing, Merge
from dpbandits.policies import given, like, preset

parts = {"index": like(UCB, alpha=given("beta", 1.0)), "memory": Merge(), "batches": Growing()}
preset("Borrowed", Arms, "n_arms beta", "Ours.", **parts)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers on this machine."""
    shape = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(silence_logs=50, **shape) as local:
        yield local


def study_in(folder: Path, text: str = STUDY, rewards: tuple[float, ...] = REWARDS) -> Study:
    rows = "\n".join(f"{n % 2},{rewards[n % 3 == 0]}" for n in range(60))
    (folder / "trial.csv").write_text(f"arm,reward\n{rows}\n")
    (folder / "study.toml").write_text(text)
    return load_study(folder / "study.toml")


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return study_in(tmp_path)


def files(study: Study, engine: Engine, **options: Any) -> list[bytes]:
    """The files of its results."""
    results = compute(cells_of(study), engine=engine, **options)
    return [one.save(study.folder / "one.parquet").read_bytes() for one in results]


@pytest.fixture
def whole(study: Study) -> list[bytes]:
    return files(study, Processes(1))


# Splits ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Backwards(Processes):
    """Processes that compute the runs of a cell in parts, the last part first."""

    most_parts: int = 1

    def parts(self, cell):
        return cell.split(self.most_parts)

    def results(self, cells, told):
        return super().results(list(cells)[::-1], told)


@pytest.mark.parametrize("most_parts", [1, 3, 7, 100])
def test_splits_and_threads_change_no_byte(most_parts: int, study: Study, whole: list[bytes]):
    assert files(study, Backwards(2, most_parts)) == whole


def test_parts_are_all_runs_in_order(study: Study):
    cell = cells_of(study.altered(first_run=10))[0]
    parts = cell.split(3)
    assert [(one.first_run, one.runs) for one in parts] == [(10, 2), (12, 2), (14, 3)]
    assert len({one.digest for one in (cell, *parts)}) == 4


def test_a_study_of_later_runs_has_other_numbers(study: Study, whole: list[bytes]):
    assert files(study.altered(first_run=7), Processes(1)) != whole


# Orders ----------------------------------------------------------------------------------------


def test_an_order_makes_the_same_cell_and_holds_no_data(study: Study, whole: list[bytes]):
    for cell, expected in zip(cells_of(study), whole, strict=True):
        text = order(cell, of_study(study))
        assert not any(str(reward) in text for reward in REWARDS)
        result = carry_out(text)
        assert result.save(study.folder / "one.parquet").read_bytes() == expected


def test_data_within_a_study_file_are_not_sent(tmp_path: Path):
    inline = 'kind = "LoggedTrial"\narms = [0, 1, 0, 1]\nrewards = [0.25, 1.0, 0.5, 0.0]'
    study = study_in(
        tmp_path, STUDY.replace('kind = "LoggedTrial.read"\npath = "trial.csv"', inline)
    )
    with pytest.raises(ArgumentError, match=r"environments\[1\] must name a file") as told:
        of_study(study)
    assert "0.25" not in str(told.value)


def test_a_worker_reads_data_anew_and_refuses_others(tmp_path: Path):
    before, after = study_in(tmp_path), (0.5, 0.25)
    text = order(cells_of(before)[-1], of_study(before))
    expected = carry_out(text).runs
    now = study_in(tmp_path, rewards=after)
    assert not carry_out(order(cells_of(now)[-1], of_study(now))).runs.equals(expected)
    with pytest.raises(DPBanditsError, match="its data or features differ from those of the study"):
        carry_out(text)


def test_other_code_refuses_an_order(study: Study, monkeypatch: pytest.MonkeyPatch):
    text = order(cells_of(study)[0], of_study(study))
    monkeypatch.setattr(orders, "code_digest", lambda: "another")
    with pytest.raises(
        DPBanditsError, match=r"it has dpbandits .* with code another, and the study"
    ):
        carry_out(text)


@pytest.mark.long
@pytest.mark.parametrize("paper", ["concentrated", "shuffle"])
def test_an_order_makes_the_cells_of_a_paper(paper: str, tmp_path: Path):
    size = Size(quick=True, runs=2, horizon=300)
    cell = PAPERS[paper](size).cells[-1]
    part = cell.split(2)[-1]
    expected = part.compute(1, lambda done, total: None)
    result = carry_out(order(part, of_paper(paper, size)))
    one, other = (a.save(tmp_path / "one.parquet").read_bytes() for a in (expected, result))
    assert one == other


# The cluster -----------------------------------------------------------------------------------


@pytest.mark.parametrize("most_parts", [1, 3, 7])
def test_two_workers_compute_the_same_bytes(
    most_parts: int, cluster: Any, study: Study, whole: list[bytes]
):
    told: list[tuple[str, int, int]] = []
    engine = Dask(cluster.scheduler_address, of_study(study), most_parts)
    assert files(study, engine, progress=lambda *one: told.append(one)) == whole
    assert sorted(told)[-1] == ("LoggedTrial, 2 arms", 14, 14)
    assert len(told) == 4 * most_parts


@pytest.mark.long
def test_one_process_that_the_engine_starts_computes_the_same_bytes(
    study: Study, whole: list[bytes]
):
    assert files(study, Dask("local:1", of_study(study))) == whole


@pytest.mark.long
def test_workers_that_are_killed_are_replaced(cluster: Any, study: Study, whole: list[bytes]):
    with distributed.Client(cluster, set_as_default=False) as client:
        living = list(client.run(os.getpid).values())

        def kill(*told: object) -> None:  # with all results that it still has
            if living:
                os.kill(living.pop(), signal.SIGKILL)

        engine = Dask(cluster.scheduler_address, of_study(study), 3)
        assert files(study, engine, progress=kill) == whole
        assert not living
        client.wait_for_workers(2)


@pytest.mark.long
def test_a_part_beside_which_workers_die_again_and_again_is_named(tmp_path: Path):
    (tmp_path / "deadly_module.py").write_text(
        "import multiprocessing, os\n"
        "if multiprocessing.current_process().name != 'MainProcess':\n    os._exit(1)\n"
    )
    study = study_in(tmp_path, STUDY.replace("runs = 7", 'runs = 1\nimports = ["deadly_module"]'))
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        shape = {"n_workers": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
        with distributed.LocalCluster(**shape) as local:
            engine = Dask(local.scheduler_address, of_study(study))
            with pytest.raises(DPBanditsError, match=r"died again and again with .*, runs 0 to 0"):
                files(study, engine)


def test_a_client_that_was_interrupted_orders_what_is_missing(
    cluster: Any, study: Study, whole: list[bytes], monkeypatch: pytest.MonkeyPatch
):
    engine, beside = Dask(cluster.scheduler_address, of_study(study), 7), study.folder / "out"
    steps = []

    def interrupt(*told: object) -> None:
        steps.append(told)
        if len(steps) == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files(study, engine, beside=beside, progress=interrupt)
    assert len(list(folder_for(cells_of(study), beside).iterdir())) == 9
    ordered = []
    monkeypatch.setattr(engines, "order", lambda *one: ordered.append(one) or order(*one))
    assert files(study, engine, beside=beside) == whole
    assert len(ordered) == 4 * 7 - 9


def test_modules_of_the_study_are_uploaded_and_compared(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(registry, "_REGISTRY", registry.registered())
    (tmp_path / "borrowed_bandit.py").write_text(OWN)
    own = STUDY.replace("seed = 3", 'seed = 3\nimports = ["borrowed_bandit"]')
    study = study_in(tmp_path, own.replace('"AdaCUCB"', '"Borrowed"'))
    expected, origin = files(study, Processes(1)), of_study(study)

    def hidden_then_ordered(*given: Any) -> str:  # as where there is no shared disk
        (tmp_path / "borrowed_bandit.py").unlink(missing_ok=True)
        return order(*given)

    monkeypatch.setattr(engines, "order", hidden_then_ordered)
    assert files(study, Dask(cluster.scheduler_address, origin)) == expected
    (tmp_path / "borrowed_bandit.py").write_text(f"{OWN}\n# changed\n")
    changed = {**origin, "modules": {"borrowed_bandit": "0" * 64}}
    with pytest.raises(ArgumentError, match=r"worker tcp://\S+ refuses: it has imported another"):
        files(study, Dask(cluster.scheduler_address, changed))


def test_workers_with_other_code_are_refused_by_name(
    cluster: Any, study: Study, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(orders, "code_digest", lambda: "another")
    with pytest.raises(ArgumentError, match=r"worker tcp://127\S+ refuses: it has dpbandits"):
        files(study, Dask(cluster.scheduler_address, of_study(study)))


def test_other_processors_are_named(cluster: Any, study: Study, monkeypatch: pytest.MonkeyPatch):
    with warnings.catch_warnings(action="error"):
        files(study, Dask(cluster.scheduler_address, of_study(study)))
    monkeypatch.setattr(engines, "machine", lambda: "a Z80 with no BLAS")
    with pytest.warns(
        ClusterWarning, match=r"^worker tcp://\S+ has .*this machine has a Z80"
    ) as told:
        files(study, Dask(cluster.scheduler_address, of_study(study)))
    assert len(told) == 1


@pytest.mark.parametrize(
    ("address", "open_to_others"),
    [
        ("tcp://10.1.2.3:8786", True),
        ("tcp://head.example:8786", True),
        ("tcp://[2001:db8::1]:8786", True),
        ("tcp://127.0.0.1:8786", False),
        ("tcp://[::1]:8786", False),
        ("tcp://localhost:8786", False),
        ("tls://10.1.2.3:8786", False),
    ],
)
def test_a_scheduler_that_others_can_reach_is_warned_of(address: str, open_to_others: bool):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        Dask(address, {})
    assert [one.category for one in told] == [ClusterWarning] * open_to_others


@pytest.mark.parametrize("address", ["host:8786", "tcp://host", "local:0", "local:x", "udp://h:1"])
def test_other_addresses_are_refused(address: str):
    with pytest.raises(ArgumentError, match="cluster"):
        Dask(address, {})


def test_a_scheduler_that_does_not_answer_is_told(study: Study, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engines, "_PATIENCE", "1s")
    for scheme in ("tcp", "tls"):  # for which there are no certificates here
        with pytest.raises(ArgumentError, match="cluster must be a Dask scheduler that answers"):
            files(study, Dask(f"{scheme}://127.0.0.1:9", of_study(study)))


@pytest.mark.long
def test_certificates_are_those_of_dasks_settings(study: Study, whole: list[bytes], tmp_path: Path):
    made = distributed.Security.temporary()
    paths = {"ca-file": made.tls_ca_file}
    for role in ("scheduler", "worker", "client"):
        paths[f"{role}.key"] = getattr(made, f"tls_{role}_key")
        paths[f"{role}.cert"] = getattr(made, f"tls_{role}_cert")
    settings = {}
    for name, text in paths.items():
        (tmp_path / name).write_text(text)
        settings[f"distributed.comm.tls.{name}"] = str(tmp_path / name)
    with dask.config.set(settings):
        shape = {"n_workers": 1, "protocol": "tls://", "dashboard_address": "127.0.0.1:0"}
        security = distributed.Security()
        with distributed.LocalCluster(security=security, silence_logs=50, **shape) as local:
            assert local.scheduler_address.startswith("tls://")
            assert files(study, Dask(local.scheduler_address, of_study(study))) == whole


# Plans and audits ------------------------------------------------------------------------------


def test_plans_and_audits_on_a_cluster_are_those_of_one_process(cluster: Any):
    engine = Dask(cluster.scheduler_address, {"modules": {}})
    policy, world = MergedIMED(2, budget=ZCDP(0.5)), Bernoulli([0.9, 0.1])

    def both() -> tuple[Any, Any]:
        planned = plan(world, 200, ZCDP(0.5), runs=4, rounds=100)
        return planned.table, audit(policy, runs=100, seed=5, n_jobs=1).scores

    here, told = both(), []
    with engine.playing(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "played", lambda *one: told.append(one))
        there = both()
    assert not told
    for one, other in zip(here, there, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_errors_of_pieces_are_raised_and_data_are_not_sent(
    cluster: Any, study: Study, monkeypatch: pytest.MonkeyPatch
):
    engine = Dask(cluster.scheduler_address, of_modules(study.config["imports"], study.folder))
    log, policy = study.log, MergedIMED(2, budget=ZCDP(0.5))
    with engine.playing():
        with pytest.raises(ArgumentError, match="environment must hold no data"):
            replay(policy, log, runs=4)
        with pytest.raises(ArgumentError, match="cluster cannot receive"):
            shared_out(partial(divmod, threading.Lock()), [4], 1, lambda piece: None)
        with pytest.raises(ZeroDivisionError):
            shared_out(divmod, [4], 1, lambda piece: None)
        monkeypatch.setattr(engines, "code_digest", lambda: "another")
        with pytest.raises(ArgumentError, match=r"worker tcp://127\S+ refuses: it has dpbandits"):
            simulate(policy, Bernoulli([0.9, 0.1]), horizon=100, runs=4)
