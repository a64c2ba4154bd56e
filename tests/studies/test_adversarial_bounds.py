"""The study of private adversarial bandits: end to end when tiny, and with regrets that were planted to make claims fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dpbandits import EXP3, ArgumentError
from dpbandits.algorithms.learners.batches import init
from dpbandits.algorithms.learners.unbounded import learn_exp3
from dpbandits.environments import RewardTable
from dpbandits.report.claims import FAILS, HOLDS, Claim
from dpbandits.report.record import StudyRecord
from dpbandits.report.scenes import scenes
from dpbandits.studies.cells import Cell, Results, kept
from dpbandits.studies.papers import adversarial
from dpbandits.studies.papers.adversarial import bound, leaked, tables
from dpbandits.studies.plans import Plan, Size
from dpbandits.studies.reproduce import reproduce

TINY = Size(quick=True, runs=2, horizon=400, seed=2)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return adversarial.plan(Size(quick=True, runs=2))


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> StudyRecord:
    tiny, beside = adversarial.plan(TINY), tmp_path_factory.mktemp("adversarial") / "out"
    with kept(tiny.cells, beside):
        return reproduce(tiny, TINY, beside, n_jobs=1)


class Planted(Results):
    """Two equal runs per cell, of a regret that is a function of the cell."""

    def __init__(self, plan: Plan, regret: Callable[[Cell], float]) -> None:
        super().__init__({})
        self.values = {cell.key: regret(cell) for cell in plan.cells}

    def final(self, key: str) -> np.ndarray:
        return np.full(2, self.values[key])

    def curves(self, key: str, column: str = "regret") -> np.ndarray:
        return np.full((2, 3), self.values[key])

    def rounds(self, key: str) -> np.ndarray:
        return np.array([1, 10, 100])


def epsilon(cell: Cell) -> float:
    return cell.policy.budget.epsilon  # type: ignore[union-attr]


def unbatched(cell: Cell) -> bool:
    return cell.policy.budget is not None and epsilon(cell) < 1.0 and cell.policy.batch == 1  # type: ignore[attr-defined]


def as_proved(cell: Cell) -> float:
    if cell.policy.budget is None:
        return 1.0
    return 0.1 * bound(type(cell.policy).__name__, cell.horizon, cell.environment.n_arms, epsilon(cell))


def asked(plan: Plan, regret: Callable[[Cell], float], *words: str) -> Claim:
    found = [
        one for one in plan.assess(Planted(plan, regret)).claims if all(word in one.statement + one.reading for word in words)
    ]
    (claim,) = found
    return claim


def test_every_part_has_its_claims_and_figures(record: StudyRecord) -> None:
    assert list(dict.fromkeys(claim.reading for claim in record.claims)) == [
        adversarial.SCALING,
        adversarial.PUBLISHED,
        adversarial.UNBATCHED,
        adversarial.STRICT,
        adversarial.LEAK,
        adversarial.LATE,
        adversarial.REAL,
    ]
    assert len(record.claims) == 3 * 3 + 3 + 3 * 3 + 7 + 4 + 6 + 4
    names = ["figure-table-1", "figure-unbatched", "figure-strict", "figure-leak", "figure-late", "figure-real"]
    assert [one.name for one in record.exhibits] == names
    for exhibit in record.exhibits:
        for panel in exhibit.panels:
            assert all(len(one.x) == len(one.y) == len(one.low) == len(one.high) > 0 for one in panel.series)
    assert any("--data" in note for note in record.notes)


def test_the_page_shows_the_real_tables_by_themselves_and_the_files_hold_everything(record: StudyRecord) -> None:
    assert [scene.name for scene in scenes(record.detailed)] == [
        "RewardTable(DoctorReplay(): 522 rounds, 4 arms, content 5a77f253)"
    ]
    assert record.result.runs["environment"].nunique() > 20
    shown = record.detailed.runs
    assert {entry["policy"] for entry in record.detailed.info["policies"]} == set(shown["policy"])


@pytest.mark.parametrize(("learner", "symbol"), [(name, symbol) for name in adversarial.LEARNERS for symbol in ("T", "K", "1/ε")])
def test_regret_that_grows_faster_than_the_bound_is_found_out(plan: Plan, learner: str, symbol: str) -> None:
    words = (f"{learner}: worst regret grows with {symbol} no faster", adversarial.SCALING)
    exact = asked(plan, as_proved, *words)
    assert exact.verdict == HOLDS
    assert exact.expected.high - exact.measured.mean == pytest.approx(adversarial.SLACK)

    def faster(cell: Cell) -> float:
        more = {"T": cell.horizon, "K": cell.environment.n_arms, "1/ε": 1.0 / epsilon(cell) if cell.policy.budget else 1.0}
        return as_proved(cell) * more[symbol] ** 0.1

    found = asked(plan, faster, *words)
    assert found.measured.mean == pytest.approx(exact.measured.mean + 0.1)
    assert found.verdict == FAILS


def test_one_bad_instance_is_enough(plan: Plan) -> None:
    def regret(cell: Cell) -> float:
        return 10.0 * cell.horizon if "/0.9/" in cell.key else as_proved(cell)

    assert asked(plan, regret, "HTINF: worst regret grows with T", adversarial.SCALING).measured.mean == pytest.approx(1.0)
    assert asked(plan, regret, "HTINF: worst regret grows with T", adversarial.SCALING).verdict == FAILS


def test_slopes_of_the_bounds() -> None:
    assert bound("HTINF", 400, 9, 0.25) == pytest.approx(120.0)
    assert bound("EXP3", 400, 9, 0.25) == pytest.approx(120.0 * math.sqrt(math.log(9)) * math.log(3600))


def test_batches_that_save_nothing_are_found_out(plan: Plan) -> None:
    def half(cell: Cell) -> float:
        return as_proved(cell) * (epsilon(cell) ** -0.5 if unbatched(cell) else 1.0)

    words = ("EXP3: batches of 20 rounds", "at ε = 0.05")
    assert asked(plan, half, *words).measured.mean == pytest.approx(math.sqrt(0.05))
    assert asked(plan, half, *words).verdict == HOLDS
    assert asked(plan, as_proved, *words).verdict == FAILS
    more = "EXP3: batches save the more"
    assert asked(plan, half, more).measured.mean == pytest.approx(0.5)
    assert asked(plan, half, more).verdict == HOLDS
    assert asked(plan, lambda cell: as_proved(cell) * (epsilon(cell) ** 0.2 if unbatched(cell) else 1.0), more).verdict == FAILS


@pytest.mark.parametrize(
    ("batched", "every", "verdicts"),
    [(0.8, 1.0, (HOLDS, HOLDS, HOLDS)), (1.01, 1.0, (FAILS, HOLDS, FAILS)), (0.8, 0.9, (HOLDS, FAILS, HOLDS))],
)
def test_linear_regret_at_a_strict_epsilon_is_found_out(
    plan: Plan, batched: float, every: float, verdicts: tuple[str, str, str]
) -> None:
    def regret(cell: Cell) -> float:
        if cell.policy.budget is None or not cell.key.startswith("strict"):
            return 1.0
        return cell.horizon ** (every if unbatched(cell) else batched)

    words = (
        "HTINF in batches: regret is sublinear",
        "HTINF with noise on every reward: regret is linear",
        "HTINF: regret grows more",
    )
    assert tuple(asked(plan, regret, one).verdict for one in words) == verdicts


def test_budgets_are_below_one_over_the_root_of_rounds(plan: Plan) -> None:
    cells = [cell for cell in plan.cells if cell.key.startswith("strict")]
    assert cells
    assert all(epsilon(cell) < cell.horizon**-0.5 for cell in cells)


def test_the_lower_bound_of_lemma_15(plan: Plan) -> None:
    least = (1.0 - 0.5 * math.exp(0.5)) * math.sqrt(5 * 10_000 / 8)  # epsilon = 0.1, p = 5, 10,000 rounds

    def regret(cell: Cell) -> float:
        place = cell.key.split("/")
        return 2.0 * least if place[0] == "late" and place[2] == "1000" else 0.5 * least

    assert asked(plan, regret, "EXP3: at the worst place to turn").measured.mean == pytest.approx(2.0)
    assert asked(plan, lambda cell: 0.5 * least, "EXP3: at the worst place to turn").verdict == FAILS
    assert asked(plan, regret, "EXP3 loses more than EXP3-IX").measured.mean == pytest.approx(1.0)
    assert asked(plan, regret, "EXP3 loses more than EXP3-IX").verdict == FAILS


def test_what_leaks_is_what_exp3_does() -> None:
    """Against the learner of the package, along the same arms and losses."""
    rate, rounds = 0.05, 400
    policy = EXP3(2, budget=None, rate=rate, mixing=rate)
    for row, first in zip(leaked(rate, rounds), (0.0, 1.0), strict=True):
        _, public = init(policy.params)
        for t in range(rounds):
            assert public.probability[1] == pytest.approx(row[t], rel=1e-9)
            learn_exp3(policy.params, public, 1 - t % 2, first if t == 0 else 1.0)


def test_two_sequences_lead_to_opposite_ends() -> None:
    """As in Figure 1 of the paper, with another rate."""
    one, other = leaked(0.01, 10_000)
    assert one[0] == other[0] == 0.5
    assert other[1] == pytest.approx(0.99 / (1.0 + math.exp(0.02)) + 0.005)
    assert one[1] == pytest.approx(0.5)
    assert (one[-1], other[-1]) == (pytest.approx(0.995), pytest.approx(0.005))


def test_real_tables_are_found_in_a_folder_and_in_folders_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Data:
        def __init__(self, folder: Path) -> None:
            self.folder = folder

        def reward_table(self) -> RewardTable:
            return RewardTable([[1.0, 0.0]], name=self.folder.name)

    monkeypatch.setattr(tables, "movielens", Data)
    monkeypatch.setattr(tables, "lastfm", Data)
    (tmp_path / "ml").mkdir()
    (tmp_path / "music").mkdir()
    with pytest.raises(ArgumentError, match=r"data must name a folder with the files of MovieLens or Last\.fm"):
        adversarial.reward_tables(tmp_path)
    (tmp_path / "ml" / "u.data").touch()
    (tmp_path / "music" / "user_taggedartists.dat").touch()
    assert list(adversarial.reward_tables(tmp_path)) == ["ACTG 175", "MovieLens", "Last.fm"]
    assert repr(adversarial.reward_tables(tmp_path / "music")["Last.fm"]).startswith("RewardTable(music: ")
    assert list(adversarial.reward_tables(None)) == ["ACTG 175"]


def test_real_tables_that_teach_nothing_are_found_out(plan: Plan) -> None:
    table = adversarial.reward_tables(None)["ACTG 175"]
    uniform = 522 * (table.means().max() - table.means().mean())
    words = ("ACTG 175: HTINF learns something at ε = 1",)
    assert asked(plan, lambda cell: 0.5 * uniform, *words).measured.mean == pytest.approx(0.5)
    assert asked(plan, lambda cell: 1.01 * uniform, *words).verdict == FAILS
