"""Every group of benchmarks runs, at a size at which its figures mean nothing, and reports what it
promises.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import rel_entr

from benchmarks import __main__ as command
from benchmarks import glm, horizon, linear, searches, simulation, startup
from benchmarks.timing import Row, scaled
from dpbandits.environments import Bernoulli
from dpbandits.kernel_cache import cache_folder
from dpbandits.policies import registered
from dpbandits.privacy import PureDP

SIZE = 0.001
PACKAGES = {"pymab": "pymab", "MABWiser": "mabwiser", "river": "river"}


def measured(group: str) -> dict[str, Row]:
    """The rows of a group by name; each has a positive number, or a reason why it has none."""
    rows = list(command.GROUPS[group].rows(SIZE))
    for row in rows:
        if row.value is None:
            assert re.fullmatch(r"skipped: .*\S.*", row.remark), row
        else:
            assert np.isfinite(row.value), row
            assert row.value > 0.0, row
    assert len({row.name for row in rows}) == len(rows)
    return {row.name: row for row in rows}


def test_keeping():
    rows = measured("keeping")
    batches = [row for name, row in rows.items() if ", batches in " in name]
    assert len(batches) == 4
    assert all(row.unit == "x in memory" for row in batches)
    assert rows["fsyncs of a call, without a release"].value == 1.0
    assert rows["fsyncs of a call that releases"].value == 2.0
    assert "1,000 recorded rounds" in rows["load, after many decisions"].remark


@pytest.mark.long
def test_searches_are_compared_with_what_any_search_needs():
    rows = measured("searches")
    assert len(rows) == 4 * (5 + 2) + 4 + 5  # two budgets through a shuffler, too
    private, free = (rows[f"even, {budget}"] for budget in ("0.1-DP", "no budget"))
    assert 1.0 < free.value < private.value < 20.0
    assert all(0.0 < row.value < 0.5 for name, row in rows.items() if name.startswith("two"))


def test_a_horizon_is_compared_with_none():
    rows = measured("horizon")
    assert len(rows) == (len(horizon.CANDIDATES) - 1) * (len(horizon.WORLDS) + 1)
    assert "without a horizon" in rows["taken: pair, 3e4"].remark


@pytest.mark.parametrize("epsilon", [None, 0.1, 1.0])
def test_the_least_that_a_search_needs_is_that_of_a_grid(epsilon: float | None):
    means, q, z = (0.8, 0.7, 0.5), np.linspace(0.5, 0.8, 121), np.linspace(0.001, 0.999, 999)

    def divergence(p: float) -> np.ndarray:  # by moving coins
        moved = rel_entr(z, q[:, None]) + rel_entr(1 - z, 1 - q[:, None])
        if epsilon is None:
            return rel_entr(p, q) + rel_entr(1 - p, 1 - q)
        return (moved + epsilon * np.abs(z - p)).min(axis=1)

    best, *others = map(divergence, means)
    shares = [(x, y) for x in np.linspace(0.3, 0.6, 61) for y in np.linspace(0.02, 0.2, 37)]
    found = max(
        min((x * best + w * d).min() for w, d in zip((1 - x - y, y), others, strict=True))
        for x, y in shares
    )
    budget = epsilon and PureDP(epsilon)
    assert searches.characteristic_time(means, budget) == pytest.approx(1 / found, rel=0.02)


def assert_compared(rows: Iterable[Row], peers: Iterable[str]) -> None:
    """Every peer has a ratio, or a reason."""
    for peer in peers:
        own = [row for row in rows if peer in row.name]
        assert any(row.unit == "x" or row.value is None for row in own), peer


@pytest.mark.long
def test_every_registered_policy_is_served():
    rows = measured("serving")
    rounds = {name: row for name, row in rows.items() if name.startswith("pull + update")}
    served = {
        name.split(", ")[1]: row
        for name, row in rounds.items()
        if "secure" not in name and "masks" not in name
    }
    assert set(registered()) <= set(served)
    assert all(served[name].unit == "us" for name in registered())
    # local policies take reports, those that learn at once release in every round
    assert served["LocalEXP4"].value is not None
    assert "every round releases" in served["LinearThompson"].remark
    secure = [row for name, row in rounds.items() if "secure" in name]
    assert {row.name.split(", ")[1] for row in secure} == {"AdaPUCB", "AdaCUCB"}


@pytest.mark.long
def test_a_service_is_compared_with_one_that_does_nothing():
    rows = measured("service")
    for case in ("finite arms", "RSLinearIMED, 10 x 5"):
        assert rows[f"  {case}, time"].value > 1.0
        assert rows[f"  {case}, rate"].value < 1.0
        assert rows[f"{case}, p99 at half load"].value > 1.0
    assert " a second" in rows["free"].remark
    assert "import" in rows["first decision of a process, beyond its import"].remark


@pytest.mark.long
def test_parties_are_compared_with_one_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path))
    rows = measured("parties")
    assert {row.unit for row in rows.values()} == {"s", "x one process"}
    assert "modular sums of 100 people in one process" in rows


@pytest.mark.long
def test_devices_in_javascript_choose_and_report():
    rows = measured("javascript")
    choices = [row for row in rows.values() if row.target == "<= 5"]
    assert [row.unit for row in choices] == ["ms"] * 3 or len(rows) == 1


def test_secure_noise_is_compared_with_simulated_noise():
    rows = [row for name, row in measured("noise").items() if name.startswith("secure over")]
    assert len(rows) == 9
    assert all(1.0 <= row.value < 1.02 for row in rows)


@pytest.mark.long
def test_simulations_are_compared_with_pull_and_update_and_with_peers():
    rows = measured("simulation")
    assert rows["exact sums against pull + update of every round"].unit == "x"
    assert_compared(rows.values(), simulation.PEERS)
    assert len([row for row in rows.values() if row.unit == "rounds/s"]) >= 1


@pytest.mark.long
def test_linear_policies_are_compared_with_peers():
    rows = measured("linear")
    assert rows["  against LinUCB"].unit == "x"
    assert_compared(rows.values(), linear.PEERS)


@pytest.mark.long
def test_logs_are_learned_from_written_and_read():
    rows = measured("logs")
    named = {name.split(",")[0] for name in rows}
    assert {"fit_logs", "DecisionLog.write", "read_logs", "evaluate"} <= named
    assert rows["  bernstein, against pandas.read_csv of the file"].unit == "x"


@pytest.mark.long
def test_adversarial_policies_run_with_and_without_advice():
    rows = measured("adversarial")
    named = {name.split(",")[0] for name in rows}
    assert named >= {"EXP3", "HTINF", "FTPL", "EXP4", "LocalEXP4", "ExpertConversion"}
    timed = [row for row in rows.values() if row.unit == "s"]
    assert all(re.match(r"[\d,]+ releases", row.remark) for row in timed)
    compared = [row for name, row in rows.items() if " over EXP4, " in name]
    assert len(compared) == 3 * 3 * 2 * 3
    assert len(timed) + len(compared) + 1 == len(rows)  # and the weights of experts


@pytest.mark.long
def test_ridges_are_compared_with_the_former_one():
    rows = measured("ridges")
    private = {name for name in rows if name.startswith("private contexts")}
    assert len(private) == 3 * 3 * 2
    assert len(rows) == 6 * 3 * 3 + len(private)
    lost = re.compile(r", \d+ of \d+ runs lost$")
    assert all(lost.search(row.remark) for name, row in rows.items() if name not in private)


@pytest.mark.long
def test_audits_are_timed_and_say_what_they_proved():
    rows = measured("auditing")
    assert len(rows) >= 5
    assert all("possible" in row.remark for row in rows.values())


@pytest.mark.long
def test_a_part_of_a_study_costs_more_on_a_cluster():
    (row,) = measured("clusters").values()
    assert row.unit == "ms"


@pytest.mark.long
def test_private_regression_is_compared_with_peers():
    rows = measured("glm")
    assert_compared(rows.values(), glm.PEERS)
    assert rows["  ours, epsilon = 1, against the best"].unit == "x"


@pytest.mark.long
def test_processes_start_from_cold_kernels(monkeypatch: pytest.MonkeyPatch):
    # The first row's do; for the others kernels that some test has compiled are as good.
    cold, warm = startup.nothing_compiled(), nullcontext(str(cache_folder()))
    folders = itertools.chain([cold], itertools.repeat(warm))
    monkeypatch.setattr(startup, "nothing_compiled", lambda: next(folders))
    rows = measured("startup")
    first = next(iter(startup.FIRST))
    assert rows[f"  first {first}, cold against second"].value > 1.0
    for name in startup.FIRST:
        assert {f"first {name}, cold kernels", f"first {name}, second process"} <= set(rows)
    assert "dpbandits demo, cold kernels" in rows


def test_every_group_is_among_these():
    assert set(command.GROUPS) == {
        "startup",
        "serving",
        "service",
        "keeping",
        "simulation",
        "linear",
        "ridges",
        "logs",
        "adversarial",
        "searches",
        "horizon",
        "shuffling",
        "parties",
        "javascript",
        "noise",
        "glm",
        "auditing",
        "clusters",
    }


@pytest.mark.parametrize("peer", PACKAGES)
@pytest.mark.long
def test_a_peer_that_is_not_installed_is_skipped_with_the_reason(
    peer: str, monkeypatch: pytest.MonkeyPatch
):
    package = PACKAGES[peer]
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    for module in (simulation, linear):
        monkeypatch.setattr(module, "PEERS", {peer: module.PEERS[peer]})
    rows = [
        *simulation.against_peers(Bernoulli(simulation.MEANS), SIZE),
        *linear.against_peers(1.0, SIZE),
    ]
    skipped = [row for row in rows if row.value is None]
    assert [row.name.strip() for row in skipped] == [peer, peer]
    assert all(package in row.remark for row in skipped)


@pytest.mark.long
def test_ratios_are_how_many_times_ours_is_as_fast(monkeypatch: pytest.MonkeyPatch):
    def slow(means: list[float], horizon: int, seeds: int) -> tuple[int, np.ndarray, float]:
        return seeds, np.zeros(20), 1e6

    def patient(n_arms: int, dimension: int) -> tuple[linear.Choose, linear.Learn]:
        return lambda x: n_arms - 1, lambda x, arm, reward: None

    monkeypatch.setattr(simulation, "PEERS", {"slow": slow})
    monkeypatch.setattr(linear, "PEERS", {"patient": patient})
    ours, theirs, ratio, law = simulation.against_peers(Bernoulli(simulation.MEANS), SIZE)
    assert ratio.value == ours.value / theirs.value > 1.0
    assert law.value < 1e-4  # without regret it is not the same law
    first, small, narrow, large, wide = linear.against_peers(2.0, SIZE)
    assert narrow.value == small.value / first.value
    assert wide.value == large.value / 2.0


def test_numbers_shrink_with_the_size_down_to_the_least():
    assert [scaled(1000, size, 20) for size in (1.0, 0.5, 1e-9)] == [1000, 500, 20]


def test_the_command_prints_figures_reasons_and_what_to_judge_them_by(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def rows(size: float) -> list[Row]:
        return [
            Row("a round", 10 * size, "us", "<= 20"),
            Row("a rate", 3e6, "rounds/s", ">= 10,000,000"),
            Row("a ratio", 4.5, "x", "<= 4"),
            Row("an equal", 1.0, "", "< 1"),
            Row("no target", 1.0, "s"),
            Row.skipped("a peer", ImportError("not here")),
        ]

    monkeypatch.setattr(command, "GROUPS", {"few": SimpleNamespace(rows=rows, __doc__="Of few.")})
    monkeypatch.setattr(command.os, "getloadavg", lambda: (1.25, 0.0, 0.0), raising=False)
    monkeypatch.setattr(command.timeit, "repeat", lambda *_, **options: [4 * 0.016])
    command.main(["few", "--size", "0.5"])
    printed = capsys.readouterr().out
    assert re.search(r"a round .* 5 .* us .* <= 20", printed)
    assert re.search(r"a peer .* - .* skipped: not here", printed)
    assert re.search(r"\d+ cores", printed)
    said = r"load 1\.25 and yardstick [\d.]+ ms"
    assert printed.endswith("2 of 4 targets missed\n  few: a ratio\n  few: an equal\n")
    assert printed.count(", missed") == 2
    assert re.search(rf"few, size 0\.5: {said} before, {said} after", " ".join(printed.split()))


def test_help_says_what_every_group_measures(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stopped:
        command.main(["--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    for name, group in command.GROUPS.items():
        assert f"{name}:\n  {group.__doc__.splitlines()[0]}" in printed
    assert "cores" in printed


@pytest.mark.parametrize("wrong", [["unknown"], ["--size", "0"], ["--size", "2"]])
def test_the_command_refuses_what_it_does_not_know(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stopped:
        command.main(wrong)
    assert stopped.value.code == 2
    assert "must be" in capsys.readouterr().err
