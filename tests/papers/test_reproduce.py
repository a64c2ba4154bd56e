"""Studies of papers: small versions from end to end, and results that were planted to make claims
fail.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dpbandits.environments import PoolContexts, Recommendations
from dpbandits.papers import plans
from dpbandits.papers.concentrated import plan as concentrated
from dpbandits.papers.concentrated.settings import fixed
from dpbandits.papers.dgs import comparisons
from dpbandits.papers.dgs import plan as dgs
from dpbandits.papers.dgs.figures import Changes
from dpbandits.papers.plans import Plan, Results, Size, recorded
from dpbandits.papers.reproduce import PAPERS, reproduce
from dpbandits.report.claims import FAILS, HOLDS, TIE, TOO_SHORT, UNDECIDED, Claim
from dpbandits.report.means import Estimate
from dpbandits.report.record import StudyRecord
from dpbandits.simulation import Result
from dpbandits.studies.cells import kept
from dpbandits.studies.engines import Processes, compute

pytestmark = pytest.mark.xdist_group("small studies of papers")  # which are made once
TINY = Size(quick=True, runs=3, horizon=400, seed=2)


def measured(plan: Plan, size: Size, beside: Path) -> StudyRecord:
    with kept(plan.cells, beside):
        return reproduce(plan, size, beside=beside, engine=Processes(1))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, StudyRecord]:
    plan = concentrated.plan(TINY)
    return plan, measured(plan, TINY, tmp_path_factory.mktemp("concentrated") / "out")


@pytest.fixture(scope="module")
def music(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, StudyRecord]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 5))
    features /= np.linalg.norm(features, axis=1).max()
    world = Recommendations(features, rng.integers(0, 9, 60), rng.integers(0, 40, 60), per_round=4)
    size = dataclasses.replace(TINY, data=Path("somewhere"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            comparisons, "lastfm", lambda folder: SimpleNamespace(environment=lambda: world)
        )
        plan = dgs.plan(size)
    return plan, measured(plan, size, tmp_path_factory.mktemp("dgs") / "out")


def parts(
    plan: Plan, record: StudyRecord, change: Callable[[str, np.ndarray], np.ndarray]
) -> Results:
    """The results of the cells with their regrets changed."""
    results = []
    for cell in plan.cells:
        whole = record.result
        keys = {
            "environment": repr(cell.environment),
            "policy": cell.policy.label,
            "budget": str(cell.policy.budget or "none"),
        }
        frame, runs = (
            table[(table[list(keys)] == list(keys.values())).all(axis=1)].reset_index(drop=True)
            for table in (whole.frame, whole.runs)
        )
        frame, runs = frame.assign(regret=change(cell.key, frame["regret"].to_numpy())), runs.copy()
        runs["regret"] = change(cell.key, runs["regret"].to_numpy())
        results.append(Result(frame, runs, whole.settings, whole.info))
    return Results(plan.cells, results)


def asked(claims: list[Claim], *words: str) -> Claim:
    (found,) = [
        claim for claim in claims if all(word in claim.statement + claim.reading for word in words)
    ]
    return found


def planted(
    study: tuple[Plan, StudyRecord], change: Callable[[str, np.ndarray], np.ndarray]
) -> list[Claim]:
    plan, record = study
    return list(plan.assess(parts(plan, record, change)).claims)


@pytest.mark.long
def test_every_setting_has_its_claims_and_figures(study: tuple[Plan, StudyRecord]) -> None:
    _, record = study
    assert len(record.claims) == 3 * 4 + 4 + 2 * 4 + 3
    assert {claim.reading for claim in record.claims} == {
        "As published",
        "With the guarantee that holds",
    }
    assert [one.name for one in record.exhibits] == [
        "figure-4-difference",
        "figure-4-price",
        "figure-5",
        "guarantee-difference",
        "guarantee-price",
        "tight",
    ]
    for exhibit in record.exhibits:
        for panel in exhibit.panels:
            assert all(
                len(one.x) == len(one.y) == len(one.low) == len(one.high) > 0
                for one in panel.series
            )


@pytest.mark.long
def test_unchanged_results_give_the_same_verdicts_again(study: tuple[Plan, StudyRecord]) -> None:
    found = planted(study, lambda key, regret: regret)
    assert [claim.measured for claim in found] == [claim.measured for claim in study[1].claims]


@pytest.mark.long
def test_a_tight_variant_that_loses_more_is_found_out(study: tuple[Plan, StudyRecord]) -> None:
    title = "AdaC-GOPE, tight has no more regret"
    worse = planted(study, lambda key, regret: 5.0 if "tight/0.05" in key else 1.0 + 0.0 * regret)
    assert asked(worse, title).measured.mean == 5.0  # at a single budget, of four
    assert asked(worse, title).verdict == FAILS
    same = planted(study, lambda key, regret: 1.0 + 0.0 * regret)
    assert asked(same, title).verdict == HOLDS


@pytest.mark.long
def test_a_cost_that_stays_at_large_budgets_is_found_out(study: tuple[Plan, StudyRecord]) -> None:
    title = ("Linear contextual, AdaC-OFUL: privacy is free", "As published")
    costly = planted(
        study, lambda key, regret: 1.5 if key == "contexts/published/10" else 1.0 + 0.0 * regret
    )
    assert asked(costly, *title).measured.mean == pytest.approx(0.5)
    assert asked(costly, *title).verdict == FAILS
    free = planted(
        study, lambda key, regret: 1.01 if key == "contexts/published/10" else 1.0 + 0.0 * regret
    )
    assert asked(free, *title).verdict == HOLDS


@pytest.mark.long
def test_a_cost_that_rises_with_the_budget_is_found_out(study: tuple[Plan, StudyRecord]) -> None:
    title = "Bernoulli arms, AdaC-UCB: private minus open regret falls"
    rising = planted(
        study, lambda key, regret: 1.2 if key == "arms/published/1" else 1.0 + 0.0 * regret
    )
    assert asked(rising, title).measured.mean == pytest.approx(0.2)
    assert asked(rising, title).verdict == FAILS


@pytest.mark.parametrize(("growth", "verdict"), [(0.5, FAILS), (-0.5, HOLDS), (0.0, TIE)])
@pytest.mark.long
def test_a_price_that_does_not_fall_is_found_out(
    study: tuple[Plan, StudyRecord], growth: float, verdict: str
) -> None:
    """A price that stays as it is does not fall either."""
    marks = np.array(recorded(400))
    price = 1.0 + growth * (marks - 4) / 396

    def change(key: str, regret: np.ndarray) -> np.ndarray:
        runs = len(regret) // marks.size
        private = key == "fixed/published/0.001"
        return (
            np.tile(1.0 + price * private, runs)
            if runs
            else 1.0 + (1.0 + growth) * private + 0.0 * regret
        )

    claim = asked(
        planted(study, change),
        "Linear, fixed arms, AdaC-GOPE: at ρ = 0.001 the price",
        "As published",
    )
    assert claim.measured.mean == pytest.approx(growth)
    # By two instances nobody knows whether learning has begun; the price alone decides if it has.
    assert claim.verdict == UNDECIDED
    begun = dataclasses.replace(claim, over_random=Estimate(0.01, 0.005, 0.02))
    assert begun.verdict == verdict
    assert dataclasses.replace(claim, over_random=Estimate(1.0, 0.95, 1.05)).verdict == TOO_SHORT


@pytest.mark.long
def test_who_loses_in_figure_5_decides_it(study: tuple[Plan, StudyRecord]) -> None:
    title = "AdaC-GOPE has less regret than AdaR-GOPE-Var at ρ = 0.001"
    for regret_of_sums, verdict in ((2.0, HOLDS), (1.0, TIE), (0.5, FAILS)):
        found = planted(
            study,
            lambda key, regret, r=regret_of_sums: (
                r if key == "fixed/sums/0.001" else 1.0 + 0.0 * regret
            ),
        )
        assert asked(found, title).verdict == verdict


@pytest.mark.long
def test_parts_on_music_are_left_out_without_the_data() -> None:
    plan = dgs.plan(TINY)
    assert not any("lastfm" in cell.key for cell in plan.cells)
    assert any("--data" in note for note in plan.notes)


@pytest.mark.long
def test_readings_of_dynamic_sensitivity(music: tuple[Plan, StudyRecord]) -> None:
    _, record = music
    readings = [comparisons.PUBLISHED, comparisons.CODED, comparisons.EQUAL, comparisons.CLAIMED]
    assert list(dict.fromkeys(claim.reading for claim in record.claims)) == readings
    assert {"figure-1a", "figure-1b", "figure-1c", "figure-2a", "figure-2b", "figure-2c"} == {
        one.name for one in record.exhibits
    }
    losses = [claim for claim in record.claims if "loses at most the ε" in claim.statement]
    # as published, and as coded
    assert [claim.verdict for claim in losses] == [
        HOLDS,
        FAILS,
        HOLDS,
        FAILS,
    ]


@pytest.mark.long
def test_rivals_spend_no_more_than_what_is_really_lost(music: tuple[Plan, StudyRecord]) -> None:
    plan, record = music
    loss = comparisons.real_loss(comparisons.pools("bounded", 400, 3, TINY.seed), "published")
    assert len(set(loss.epsilons)) == comparisons.LOSS_RUNS
    measured = asked(list(record.claims), "Synthetic pool: LinUCB-DGS loses").measured
    assert measured.mean == pytest.approx(np.mean(loss.epsilons))
    budgets = {cell.key: cell.policy.budget for cell in plan.cells}
    spent, least = budgets["pool-bounded/laplace-for-dgs"].epsilon, min(loss.epsilons)  # type: ignore[union-attr]
    assert 0.99 * least <= spent <= least
    pure = least**2 / 2  # epsilon-DP is epsilon^2/2-zCDP, and many small parts are less
    assert 0.0 < budgets["pool-bounded/buffered-for-dgs"].rho < pure  # type: ignore[union-attr]


@pytest.mark.long
def test_a_better_private_rival_is_found_out(music: tuple[Plan, StudyRecord]) -> None:
    title = ("Synthetic pool: LinUCB-DGS at its real", "less regret than Private LinUCB, buffered")
    for regret, verdict in ((2.0, HOLDS), (0.5, FAILS), (1.0, TIE)):
        found = planted(
            music,
            lambda key, old, r=regret: (
                r if key == "pool-bounded/buffered-for-dgs" else 1.0 + 0.0 * old
            ),
        )
        assert asked(found, *title).verdict == verdict


def test_a_table_keeps_the_rewards_of_all_arms() -> None:
    world = PoolContexts.uniform(30, 3, per_round=4, seed=1)
    table, again = (comparisons.tabulated(world, 25, seed) for seed in (5, 5))
    assert (table.horizon, table.n_arms, table.dimension) == (25, 4, 3)
    assert np.array_equal(table.state.rewards, again.state.rewards)
    means = table.state.contexts @ world.parameter
    # up to what is lost against the best
    assert np.ptp(means - table.state.means, axis=1) == pytest.approx(0.0)
    # 100 draws: 7 % of chance
    assert np.std(table.state.rewards - means) == pytest.approx(world.std, rel=0.3)


@pytest.mark.long
def test_a_changed_reward_changes_nothing_before_it(music: tuple[Plan, StudyRecord]) -> None:
    worlds = comparisons.pools("gaussian", 60, 2, 1)
    world, changes = worlds[0], Changes(worlds, 3, 5)
    assert changes.places == (0, 12, 24)
    table = comparisons.tabulated(world.environment, 60, 1)
    policy = world.dgs(2.0, "as_coded", 60)
    before, after = (
        comparisons.arms_of(policy, one, 1, 0) for one in (table, changes._with_change(table, 24))
    )
    assert np.array_equal(before[:25], after[:25])
    for counts in changes.changed.values():
        assert counts.shape == (3, 5, 3)
        assert (counts[..., 2] <= 35).all()


def test_budgets_are_rounded_down() -> None:
    assert comparisons.rounded_down(0.43479) == 0.434
    assert comparisons.rounded_down(901.9) == 901.0
    assert comparisons.rounded_down(0.00021999) == 0.000219


def test_the_papers_are_known_to_the_command() -> None:
    from dpbandits.cli import commands

    assert set(PAPERS) == set(commands.PAPERS)


@pytest.mark.long
def test_a_small_version_says_so(study):
    plan, record = study
    assert "--quick" in record.notes[0]
    assert list(record.notes[1:-1]) == list(plan.notes)
    assert "10-zCDP" in record.notes[-1]  # a budget of the paper that protects nobody


FLIPPED = [
    f"Linear, fixed arms, AdaC-GOPE: at ρ = {rho} the price of privacy falls"
    for rho in ("0.001", "1")
]


def verdicts_on_fixed_arms(seed: int) -> list[str]:
    """Of the small study, on what flipped when it had one instance, whose seed was the study's."""
    plan = concentrated.plan(Size(quick=True, seed=seed))
    cells = [cell for cell in plan.cells if cell.key.startswith("fixed/")]
    setting = fixed(concentrated.QUICK_HORIZON, seed)
    found = concentrated.Measured(
        setting, concentrated.QUICK_BUDGETS, Results(cells, compute(cells, engine=Processes(1)))
    ).free_privacy("As published")
    return [asked(found, title).verdict for title in FLIPPED]


@pytest.mark.long
def test_verdicts_that_hang_on_the_instance_are_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds 1 and 7 had opposite verdicts, on one instance each."""
    several = [verdict for seed in (1, 7) for verdict in verdicts_on_fixed_arms(seed)]
    assert not {HOLDS, FAILS} <= set(several)
    monkeypatch.setattr(plans, "INSTANCES", 1)
    alone = [verdicts_on_fixed_arms(seed) for seed in (1, 7)]
    assert alone == [[FAILS, FAILS], [HOLDS, HOLDS]]
