"""Study files: what is read, what is refused, and what a run leaves behind."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpbandits as dpb
import dpbandits.report
from dpbandits import environments, replay
from dpbandits.errors import ArgumentError, BudgetWarning, StudyError
from dpbandits.policies import Policy
from dpbandits.policies import registry as policies
from dpbandits.privacy import RDP, ZCDP, ApproxDP, Budget, PureDP
from dpbandits.report import write
from dpbandits.simulation import Result
from dpbandits.studies import DEMO, load_study, run_study
from dpbandits.studies.cautions import cautions
from dpbandits.studies.engines import Processes
from dpbandits.studies.output import final_table, result_folder, write_results

GOOD = """
title = "Two arms"
description = "For the tests."
seed = 3
runs = 4
horizon = 300
record = 5

[budgets]
zcdp = [0.5, 1]
approx = [[1.0, 1e-5]]
pure = [1.0]

[[environments]]
kind = "Bernoulli"
means = [0.9, 0.1]

[[environments]]
kind = "RewardTable"
path = "table.csv"

[[policies]]
kind = "AdaCUCB"

[[policies]]
kind = "AdaCUCB"
forget = false
budgets = { rdp = [[4.0, 1.0]], open = true }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.savetxt(
        tmp_path / "table.csv",
        np.tile([1.0, 0.0], (400, 1)),
        delimiter=",",
        header="a,b",
        comments="",
    )
    return tmp_path


def written(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(StudyError) as caught:
        load_study(written(folder, text))
    return caught.value.problems


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_the_default_of_a_setting_takes_parts_as_in_python(folder: Path) -> None:
    entry = (
        'kind = "bandit"\nindex = {kind = "KLUCB", alpha = 1.5}\ndrift = 400\nanswers_within = 3'
    )
    study = load_study(written(folder, GOOD.replace('kind = "AdaCUCB"', entry, 1)))
    policy = study.policies[0]
    made = dpb.bandit(
        2, policy.budget, drift=400, answers_within=3, index=dpb.parts.KLUCB(alpha=1.5)
    )
    assert policy.config == {**made.config, "seed": policy.config["seed"]}


@pytest.mark.parametrize("kind", ["bandit", "AdaCUCB"])
def test_a_study_of_the_first_version_says_patience(folder: Path, kind: str) -> None:
    made = []
    for word in ("patience", "answers_within"):
        entry = f'kind = "{kind}"\n{word} = 3'
        path = folder / f"{word}.toml"
        path.write_text(GOOD.replace('kind = "AdaCUCB"', entry, 1))
        made.append([str(policy) for policy in load_study(path).policies])
    assert made[0] == made[1]
    assert any("answers_within=3" in policy for policy in made[0])


def test_a_study_takes_a_holdout(folder: Path) -> None:
    entry = 'kind = "bandit"\nholdout = { share = 0.2, batch = 30 }'
    study = load_study(written(folder, GOOD.replace('kind = "AdaCUCB"', entry, 1)))
    assert json.loads(json.dumps(study.config)) == study.config
    policy = study.policies[0]
    played = dpb.simulate(policy, environments.Bernoulli([0.9, 0.1]), horizon=100)
    played.save(folder / "played.parquet")
    assert Result.load(folder / "played.parquet").settings == played.settings
    assert policy.holdout.batch == 30


def test_a_study_takes_minimum_shares_and_asks_whether_it_is_decided(folder: Path) -> None:
    entry = 'kind = "MergedIMED"\nholdout = { min_share = 0.2, batch = 20 }'
    text = GOOD.replace('kind = "AdaCUCB"', entry, 1)
    study = load_study(written(folder, f"decided = {{ confidence = 0.5, gap = 0.3 }}\n{text}"))
    assert study.decided == (0.5, 0.3)
    assert study.altered().decided == study.decided
    assert study.policies[0].holdout.share == pytest.approx(0.4)
    record = run_study(study.altered(runs=2), engine=Processes(1))
    table = final_table(record)
    able = table["policy"].str.startswith("MergedIMED")
    assert (table["decided"][able] > 0.0).any()
    write(folder, record)
    page = (folder / "report.html").read_text()
    assert "Is it decided which arm is best?" in page
    assert "held out" in page
    with pytest.raises(StudyError, match="decided"):
        load_study(written(folder, f"decided = 95\n{text}"))


def test_problems_stand_where_the_file_has_them(folder: Path) -> None:
    text = GOOD.replace('kind = "AdaCUCB"', 'kind = "AdaCUCB"\nbet = 1', 1)
    with pytest.raises(StudyError) as found:
        load_study(written(folder, text + "[bandit]\nindexx = 1\n"))
    told = str(found.value)
    assert "  bandit.indexx: unknown argument" in told
    assert "  policies[0].bet: unknown argument" in told
    assert "policies[1]" not in told


def test_a_study_is_environments_times_policies_times_fitting_budgets(folder: Path) -> None:
    study = load_study(written(folder, GOOD))
    assert (study.title, study.seed, study.runs, study.horizon, study.record) == (
        "Two arms",
        3,
        4,
        300,
        5,
    )
    assert [repr(world) for world in study.environments] == [
        "Bernoulli(0.9, 0.1)",
        "RewardTable(400 rounds, 2 arms, content 6c7b283c)",
    ]
    assert [(str(policy.budget), "forget=True" in policy.label) for policy in study.policies] == [
        ("0.5-zCDP", True),
        ("1-zCDP", True),
        ("(1, 1e-05)-DP", True),  # pure budgets do not fit, and are left out
        ("(4, 1)-RDP", False),  # the policy's own budgets instead of the study's
        ("None", False),
    ]
    assert json.loads(json.dumps(study.config)) == study.config


def test_run_is_what_simulate_gives_and_does_not_depend_on_the_workers(folder: Path) -> None:
    study = load_study(written(folder, GOOD))
    steps: list[tuple[str, int, int]] = []
    record = run_study(study, engine=Processes(1), progress=lambda *step: steps.append(step))
    again = run_study(study, engine=Processes(2))
    pd.testing.assert_frame_equal(record.result.frame, again.result.frame)
    pd.testing.assert_frame_equal(record.result.runs, again.result.runs)
    assert set(record.result.runs["environment"]) == {repr(world) for world in study.environments}
    assert len(record.result.runs) == 2 * 5 * 4
    assert record.replay is None
    assert record.config == study.config
    assert record.seed == 3
    assert record.versions["numba"]
    assert record.elapsed > 0
    assert {step[0] for step in steps} == set(record.result.titles.values())
    assert [step[1:] for step in steps][-1] == (20, 20)


def test_a_table_of_rewards_is_read_as_a_spreadsheet_writes_it(folder: Path) -> None:
    text = (folder / "table.csv").read_text(encoding="utf-8")
    local = "sep=;\r\n" + text.replace(",", ";").replace(".", ",").replace("\n", "\r\n")
    (folder / "local.csv").write_text(local, encoding="utf-16")
    plain = load_study(written(folder, GOOD)).environments[1]
    marks = '"local.csv"\nseparator = ";"\ndecimal = ","'
    other = load_study(written(folder, GOOD.replace('"table.csv"', marks))).environments[1]
    assert np.array_equal(other.state.prefix, plain.state.prefix)
    assert plain.n_arms == 2


def test_altered_and_quick(folder: Path) -> None:
    study = load_study(
        written(
            folder,
            changed("horizon = 300", "horizon = 390").replace("record = 5", "record = [10, 390]"),
        )
    )
    assert study.altered(seed=9).seed == 9
    assert study.altered(seed=9).environments[1].n_arms == 2  # the table is found again
    assert (study.quick().runs, study.quick().horizon) == (4, 390)
    long = written(
        folder,
        changed("horizon = 300", "horizon = 20_000")
        .replace('kind = "RewardTable"\npath = "table.csv"', 'kind = "Beta"\nmeans = [0.3, 0.2]')
        .replace("record = 5", "record = [10, 15000]"),
    )
    assert (load_study(long).quick().horizon, load_study(long).quick().record) == (10_000, [10])
    with pytest.raises(StudyError, match="runs: must be greater than or equal to 1, got 0"):
        study.altered(runs=0)


# What is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('title = "Two arms"\n', "", "title: is missing"),
        ('title = "Two arms"', 'title = " "', "title: must have at least 1 character, got ' '"),
        ('title = "Two arms"', "title = 3", "title: must be a string, got 3"),
        ("runs = 4", "runs = 0", "runs: must be greater than or equal to 1, got 0"),
        ("runs = 4", "runs = 2.5", "runs: must be an integer, got 2.5"),
        ("runs = 4", "runs = true", "runs: must be an integer, got True"),
        ("seed = 3", "seed = -1", "seed: must be greater than or equal to 0, got -1"),
        ("horizon = 300", "horizn = 300", "horizn: unknown key; did you mean horizon?"),
        ("horizon = 300", "horizn = 300", "horizon: is missing"),
        ("horizon = 300", "horizon = 0", "horizon: must be greater than or equal to 1, got 0"),
        (
            "horizon = 300",
            "horizon = 401",
            "horizon: must be at most 400, the length of environments[1], got 401",
        ),
        ("record = 5", "record = 0", "record: must be an integer at least 1, got 0"),
        ("record = 5", "record = [5, 'x']", "record[1]: must be an integer at least 1, got 'x'"),
        (
            "record = 5",
            "record = [5, 301]",
            "record: must hold rounds up to the horizon 300, got [301]",
        ),
        (
            "zcdp = [0.5, 1]",
            "zcdp = [0.5, -1]",
            "budgets.zcdp[1]: rho must be a number in (0, inf), got -1",
        ),
        ("zcdp = [0.5, 1]", "zcdp = 0.5", "budgets.zcdp: must be a list, got 0.5"),
        ("zcdp = [0.5, 1]", "zdcp = [0.5]", "budgets.zdcp: unknown key; did you mean zcdp?"),
        (
            "zcdp = [0.5, 1]",
            "zcdp = [inf]",
            "budgets.zcdp[0]: rho must be a number in (0, inf), got inf",
        ),
        (
            "approx = [[1.0, 1e-5]]",
            "approx = [1.0]",
            "budgets.approx[0]: must be a pair [epsilon, delta], got 1",
        ),
        (
            "approx = [[1.0, 1e-5]]",
            "approx = [[1.0, 2]]",
            "budgets.approx[0]: delta must be a number in (0, 1), got 2",
        ),
        ("zcdp = [0.5, 1]", "zcdp = [1, 1.0]", "policies[0]: is the same as policies[0]: AdaCUCB("),
        (
            '"Bernoulli"',
            '"Bernouli"',
            "environments[0].kind: there is no environment 'Bernouli'; did you mean Bernoulli?",
        ),
        ('kind = "Bernoulli"', "", "environments[0].kind: is missing"),
        (
            "means = [0.9, 0.1]",
            "means = [0.9, 1.1]",
            "environments[0].means: must hold numbers in [0, 1], got 1.1 in row 1",
        ),
        (
            "means = [0.9, 0.1]",
            "means = 'high'",
            "environments[0].means: must be an array of numbers of shape (n), and not empty, got none",
        ),
        ("means = [0.9, 0.1]", "", "environments[0].means: is missing"),
        (
            "means = [0.9, 0.1]",
            "means = [0.9, 0.1]\nstd = 1",
            "environments[0].std: unknown argument; known: means",
        ),
        (
            "means = [0.9, 0.1]",
            "means = [0.9, 0.1, 0.2]",
            "environments[1]: must have 3 arms, as environments[0] has, got 2",
        ),
        (
            '"table.csv"',
            '"tables.csv"',
            "environments[1].path: must be a file beside the study, got 'tables.csv'",
        ),
        (
            '"table.csv"',
            '"study.toml"',
            "environments[1].path: must have 1 cell in each row, as in the first; line ",
        ),
        ('"table.csv"', "3", "environments[1].path: must be a file beside the study, got 3"),
        (
            'kind = "AdaCUCB"',
            'kind = "adacucb"',
            "policies[0].kind: there is no policy 'adacucb'; did you mean AdaCUCB?",
        ),
        (
            'kind = "AdaCUCB"',
            'kind = "AdaCUCB"\nanswers_within = 3\npatience = 3',
            "policies[0].patience: unknown argument; ",
        ),
        (
            'kind = "AdaCUCB"',
            'kind = "bandit"\nindex = "KLUCB"\nalpha = 3.0',
            "policies[0].index: must not be given with alpha, got ",
        ),
        (
            'kind = "AdaCUCB"',
            'kind = "AdaCUCB"\nbeta = -1',
            "policies[0].beta: must be a number in (0, inf), got -1",
        ),
        (
            'kind = "AdaCUCB"',
            'kind = "AdaCUCB"\nbet = 1',
            "policies[0].bet: unknown argument; did you mean beta?",
        ),
        (
            'kind = "AdaCUCB"',
            'kind = "AdaCUCB"\nseed = 1',
            "policies[0].seed: a study sets this itself",
        ),
        (
            'kind = "AdaCUCB"',
            'kind = "AdaCUCB"\nnoise = "secure"',
            "policies[0].noise: a study sets this itself",
        ),
        (
            'kind = "AdaCUCB"',
            'kind = "AdaCUCB"\nbudget = 1.0',
            "policies[0].budget: belongs in budgets, as in budgets.zcdp = [0.5]",
        ),
        (
            'kind = "AdaCUCB"',
            'kind = "AdaCUCB"\nepsilon = 1.0',
            "policies[0].epsilon: belongs in budgets, as in budgets.zcdp = [0.5]",
        ),
        (
            'kind = "AdaCUCB"',
            'kind = "AdaCUCB"\nrho = 1.0',
            "policies[0].rho: belongs in budgets, as in budgets.zcdp = [0.5]",
        ),
        (
            'kind = "AdaCUCB"',
            'kind = "AdaCUCB"\nreward_range = [1, 0]',
            "policies[0].reward_range: must be a pair (lo, hi)",
        ),
        (
            'kind = "AdaCUCB"',
            'kind = "AdaCUCB"\nbudgets.pure = [1]',
            "policies[0].budgets.pure: not a notion of AdaCUCB; it takes zcdp",
        ),
        (
            'kind = "AdaCUCB"',
            'kind = "AdaCUCB"\nbudgets = {}',
            "policies[0]: none of its own budgets fits AdaCUCB, which takes zcdp",
        ),
        (
            "forget = false\nbudgets =",
            "forget = true\nbudgets.zcdp = [1]\n#",
            "policies[1]: is the same as policies[0]: AdaCUCB(",
        ),
        (
            'kind = "AdaCUCB"',
            'kind = "AdaCUCB"\nname = ""',
            "policies[0].name: must be a text of 1 to 60 printable characters, or None, got ''",
        ),
        ('title = "Two arms"', "title = ", "is not TOML: "),
    ],
)
def test_one_mistake_is_one_clear_problem(folder: Path, old: str, new: str, problem: str) -> None:
    found = problems_of(folder, changed(old, new))
    assert any(line.startswith(problem) for line in found), found
    assert not any("dpbandits." in line or "pydantic" in line for line in found)


def test_all_mistakes_come_at_once(folder: Path) -> None:
    found = problems_of(
        folder,
        """
        runs = -4
        colour = "red"
        horizon = 100
        record = [5, 500]
        [budgets]
        zcdp = [0, 1]
        [[environments]]
        kind = "Gaussian"
        means = []
        std = -1
        [[environments]]
        kind = "Gausian"
        [[policies]]
        kind = "AdaCUCB"
        beta = -1
        forget = 3
        answers_within = -2
        gamma = 1
        [[policies]]
        kind = "AdaKUCB"
        """,
    )
    # of environments[0], means: without them nothing more can be tried
    places = {line.split(":")[0] for line in found}
    assert places == {
        *(
            "title",
            "runs",
            "colour",
            "record",
            "budgets.zcdp[0]",
            "environments[0].means",
            "environments[1].kind",
        ),
        *(
            "policies[0].beta",
            "policies[0].forget",
            "policies[0].answers_within",
            "policies[0].gamma",
            "policies[1].kind",
        ),
    }
    assert len(found) == len(set(found))


def test_sections_of_the_wrong_form(folder: Path) -> None:
    found = problems_of(
        folder, 'title = "x"\nhorizon = 10\nenvironments = 3\npolicies = ["UCB1"]\nbudgets = [1]'
    )
    assert {line.split(":")[0] for line in found} == {"environments", "policies[0]", "budgets"}
    found = problems_of(folder, 'title = "x"\nhorizon = 10\nenvironments = []\npolicies = []')
    assert {line.split(":")[0] for line in found} == {"environments", "policies"}


def test_files_that_are_no_studies(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no such file"):
        load_study(tmp_path / "none.toml")
    with pytest.raises(StudyError, match="cannot be read"):
        load_study(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match="is not UTF-8"):
        load_study(tmp_path / "binary.toml")


def test_a_policy_that_none_of_the_budgets_fits_is_reported(folder: Path) -> None:
    found = problems_of(folder, changed("zcdp = [0.5, 1]\napprox = [[1.0, 1e-5]]", ""))
    assert found == [
        "policies[0]: none of the study's budgets fits AdaCUCB, which takes zcdp, approx, rdp, gdp"
    ]


# Horizons and replays ------------------------------------------------------------------------


def test_the_study_passes_its_horizon_where_one_is_needed(folder: Path) -> None:
    study = load_study(written(folder, changed('kind = "AdaCUCB"', 'kind = "DPSE"')))
    assert ["horizon=300" in policy.label for policy in study.policies] == [True, False, False]
    study = load_study(written(folder, changed('kind = "AdaCUCB"', 'kind = "DPSE"\nhorizon = 500')))
    assert "horizon=500" in study.policies[0].label


WITH_LOG = GOOD.replace(
    'kind = "RewardTable"\npath = "table.csv"', 'kind = "DoctorReplay"'
).replace("[0.9, 0.1]", "[0.9, 0.1, 0.2, 0.3]")


def test_policies_have_names_of_their_own(folder: Path) -> None:
    text = changed('kind = "AdaCUCB"\nforget', 'kind = "AdaCUCB"\nname = "all of them"\nforget')
    study = load_study(written(folder, text))
    assert [policy.name for policy in study.policies] == [*[None] * 3, *["all of them"] * 2]
    again = text.replace('kind = "AdaCUCB"', 'kind = "AdaCUCB"\nname = "all of them"', 1)
    assert problems_of(folder, again) == [
        "policies[1].name: another policy is called 'all of them', too"
    ]


def test_policies_of_linear_arms_bring_as_many_as_the_environments_have(folder: Path) -> None:
    linear = '\n[[policies]]\nkind = "GOPE"\narms = {}\n'
    study = load_study(written(folder, GOOD + linear.format("[[1.0, 0.0], [0.5, 0.5]]")))
    assert study.policies[-1].n_arms == 2
    found = problems_of(folder, GOOD + linear.format("[[1.0], [2.0], [3.0]]"))
    assert found == ["policies[2].arms: must hold 2 arms, as many as the environments have, got 3"]


@pytest.mark.long
def test_a_report_shows_bounds_where_the_study_asks_for_them(folder: Path) -> None:
    study = load_study(written(folder, GOOD))
    assert run_study(study.altered(runs=1), engine=Processes(1)).bounds is None
    record = run_study(study.altered(runs=2, bounds=True), engine=Processes(1))
    assert record.bounds is not None
    coins = record.bounds[record.bounds["environment"] == "Bernoulli(0.9, 0.1)"]
    assert set(coins["bound"]) == {"lai_robbins"}  # beta = 1
    assert (coins["round"] == 300).sum() == len(study.policies)
    with result_folder(folder / "out") as hidden:
        write_results(hidden, record, started=datetime.now(UTC), n_jobs=1, command=[])
    page = (folder / "out" / "report.html").read_text("utf-8")
    assert page.count("Bounds of theory for 300 rounds") == 1  # a table has no bounds
    assert "Lai &amp; Robbins (1985) (lower; as T grows)" in page
    assert list((folder / "out" / "figures").glob("*regret-and-bounds.svg"))
    assert pd.read_csv(folder / "out" / "bounds.csv")["value"].gt(0).all()


def test_a_log_is_replayed_with_the_same_policies(folder: Path) -> None:
    study = load_study(written(folder, WITH_LOG))
    record = run_study(study, engine=Processes(1))
    assert [repr(world) for world in study.environments] == ["Bernoulli(0.9, 0.1, 0.2, 0.3)"]
    assert repr(study.log) == "DoctorReplay()"
    assert record.replay is not None
    direct = replay(study.policies, environments.DoctorReplay(), runs=4, seed=3, n_jobs=1)
    pd.testing.assert_frame_equal(record.replay.runs, direct.runs)


def test_a_log_with_times_is_read_beside_the_study_and_tries_a_deadline(folder: Path) -> None:
    rng = np.random.default_rng(1)
    arms = np.tile(np.arange(4), 100)
    waits = np.where(rng.random(400) < 0.1, np.nan, rng.exponential(600.0, 400))
    rows = np.column_stack([arms, arms == 1, 10.0 * np.arange(400), 10.0 * np.arange(400) + waits])
    table = pd.DataFrame(rows, columns=["arm", "reward", "asked", "answered"])
    table.to_csv(folder / "trial.csv", index=False)
    logged = 'kind = "LoggedTrial.read"\npath = "trial.csv"'
    text = WITH_LOG.replace('kind = "DoctorReplay"', logged)
    study = load_study(written(folder, text + '\nanswers_within = "1h"\n'))
    assert study.log is not None
    assert study.log.waits is not None
    assert np.isinf(study.log.waits).sum() == np.isnan(waits).sum() > 0
    replayed = replay(study.policies, study.log, runs=2, seed=3)
    assert any(policy.answers_within == "1h" for policy in study.policies)
    assert (replayed.runs["rounds"] > 50).all()
    (folder / "trial.csv").unlink()
    assert any("path: must be a file beside the study" in one for one in problems_of(folder, text))


def test_logs_that_a_study_cannot_take(folder: Path) -> None:
    two = WITH_LOG.replace(
        'kind = "Bernoulli"\nmeans = [0.9, 0.1, 0.2, 0.3]', 'kind = "DoctorReplay"'
    )
    assert problems_of(folder, two) == [
        "environments[1]: a study replays one log only",
        "environments: must hold an environment to simulate, beside the log to replay",
    ]


# Policies of one's own -----------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, type[Policy]]:
    """A copy of the registry, which the other tests do not see."""
    copy = policies.registered()
    monkeypatch.setattr(policies, "_REGISTRY", copy)
    return copy


def test_a_study_can_use_a_policy_of_a_file_beside_it(
    folder: Path, registry: dict[str, type[Policy]]
) -> None:
    (folder / "own_bandits.py").write_text(
        "from dpbandits import Arms\nfrom dpbandits.parts import UCB, Forget, Growing, Merge\n"
        "from dpbandits.policies import given, like, preset\n\n"
        "preset('OwnBandit', Arms, 'n_arms beta forget', 'Ours.',\n"
        "    index=like(UCB, alpha=given('beta', 1.0)), batches=Growing(ratio=2.0),\n"
        "    memory=given('forget', True, values={True: Forget(), False: Merge()}))\n"
    )
    own = changed("seed = 3", 'seed = 3\nimports = ["own_bandits"]').replace(
        'kind = "AdaCUCB"', 'kind = "OwnBandit"', 1
    )
    path, before = list(sys.path), set(registry)
    study = load_study(written(folder, own))
    assert sys.path == path
    assert set(registry) - before == {"OwnBandit"}
    assert study.config["imports"] == ["own_bandits"]
    record = run_study(study.altered(runs=1), engine=Processes(1))
    assert record.result.runs["policy"].str.startswith("OwnBandit(").any()


def test_imports_that_fail_are_problems_of_the_file(folder: Path) -> None:
    (folder / "own_broken.py").write_text("1 / 0")
    found = problems_of(
        folder, changed("seed = 3", 'seed = -3\nimports = ["own_missing", "own_broken", ".own"]')
    )
    assert [line.split(":")[0] for line in found] == [
        "seed",
        "imports[0]",
        "imports[1]",
        "imports[2]",
    ]
    assert (
        found[1]
        == "imports[0]: own_missing cannot be imported: ModuleNotFoundError: No module named"
        " 'own_missing'"
    )
    assert (
        found[2] == "imports[1]: own_broken cannot be imported: ZeroDivisionError: division by zero"
    )
    assert problems_of(folder, changed("seed = 3", "imports = 3")) == [
        "imports: must be a list, got 3"
    ]


# What a run leaves behind --------------------------------------------------------------------


def test_the_folder_holds_report_data_and_manifest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        dpbandits.report,
        "write",
        lambda into, record, _: (into / "report.html").write_text(record.title),
    )
    record = run_study(load_study(written(folder, GOOD)), engine=Processes(1))
    with result_folder(folder / "out") as hidden:
        write_results(
            hidden,
            record,
            started=datetime.now(UTC),
            n_jobs=1,
            command=["dpbandits", "run", "study.toml"],
        )
        assert not (folder / "out").exists()
    out = folder / "out"
    assert {path.name for path in out.iterdir()} == {
        "report.html",
        "results.parquet",
        "summary.csv",
        "manifest.json",
    }
    pd.testing.assert_frame_equal(Result.load(out / "results.parquet").frame, record.result.frame)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["study"] == record.config
    assert manifest["seed"] == 3
    assert manifest["command"] == ["dpbandits", "run", "study.toml"]
    assert set(manifest) >= {
        "versions",
        "python",
        "platform",
        "started",
        "ended",
        "elapsed_seconds",
        "n_jobs",
    }
    summary = pd.read_csv(out / "summary.csv")
    runs = record.result.runs.groupby(["environment", "policy", "budget"], sort=False)[
        "regret"
    ].mean()
    np.testing.assert_allclose(summary["regret"], runs.to_numpy())
    assert ((summary["low"] <= summary["regret"]) & (summary["regret"] <= summary["high"])).all()
    full = record.result.summary()
    at_the_end = full[full["round"] == 300].reset_index(drop=True)
    pd.testing.assert_frame_equal(final_table(record)[["low", "high"]], at_the_end[["low", "high"]])
    assert not list(folder.glob(".dpbandits-*"))


def test_a_failed_block_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with result_folder(tmp_path / "out") as hidden:
            (hidden / "half").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_the_way_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(target: Path, **options: bool) -> None:
        with result_folder(target, **options) as hidden:
            (hidden / "manifest.json").write_text("new")

    (tmp_path / "file").write_text("mine")
    with pytest.raises(ArgumentError, match="output must be a folder"):
        attempt(tmp_path / "file", force=True)
    mine = tmp_path / "mine"
    mine.mkdir()
    attempt(mine)  # an empty folder is free
    with pytest.raises(ArgumentError, match="output must be a new or empty folder"):
        attempt(mine)
    (mine / "manifest.json").write_text("old")
    attempt(mine, force=True)
    assert [path.name for path in mine.iterdir()] == ["manifest.json"]
    assert (mine / "manifest.json").read_text() == "new"
    (mine / "manifest.json").rename(mine / "letters.txt")
    with pytest.raises(ArgumentError, match=r"no manifest\.json"):
        attempt(mine, force=True)  # forcing replaces earlier results, not just anything
    monkeypatch.chdir(mine)
    with pytest.raises(ArgumentError, match="the folder that the command runs in"):
        attempt(tmp_path, force=True)
    assert (mine / "letters.txt").read_text() == "new"
    assert not list(tmp_path.glob(".dpbandits-*"))


def test_hidden_folders_of_live_runs_stay_and_those_of_dead_ones_go(tmp_path: Path) -> None:
    dead = tmp_path / ".dpbandits-0123.partial"
    dead.mkdir()
    (dead / "half").write_text("half")
    with result_folder(tmp_path / "a") as live:
        assert not dead.exists()
        (live / "x").write_text("x")
        with result_folder(tmp_path / "b"):
            assert (live / "x").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_the_shipped_study_is_in_order() -> None:
    study = load_study(DEMO)
    assert study.log is not None
    assert {policy.preset for policy in study.policies} >= {
        "AdaCUCB",
        "AdaPUCB",
        "DPSE",
        "LDPIMED",
        "UCB1",
    }


# Files as people write them, and budgets as people choose them -------------------------------


def test_a_byte_order_mark_is_no_mistake(folder: Path) -> None:
    path = written(folder, GOOD)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_study(path).title == "Two arms"


def test_whole_floats_are_integers(folder: Path) -> None:
    text = changed("horizon = 300", "horizon = 3e2").replace("runs = 4", "runs = 4.0")
    study = load_study(written(folder, text.replace("record = 5", "record = [1e1, 300.0]")))
    assert (study.horizon, study.runs, study.record) == (300, 4, [10, 300])
    assert all(isinstance(number, int) for number in (study.horizon, study.runs, *study.record))
    experts = """
title = "Experts"
horizon = 1e3
[[environments]]
kind = "Advised.constant"
means = [0.6, 0.4]
n_experts = 3.0
horizon = 1e3
[[policies]]
kind = "EXP4"
batch = 2e1
budgets.zcdp = [1.0]
"""
    (policy,) = load_study(written(folder, experts)).policies
    assert policy.batch_size == 20  # type: ignore[attr-defined]


@pytest.mark.parametrize("bad", ["1.5", "inf", "nan", "1e300", "-1e3", "0.0"])
def test_other_numbers_of_rounds_are_refused(folder: Path, bad: str) -> None:
    (problem,) = problems_of(folder, changed("horizon = 300", f"horizon = {bad}"))
    assert problem.startswith("horizon: must be ")


LOOSE = """
title = "Loose"
runs = 2
horizon = 5_000
budgets.approx = [[1.0, 1e-3], [1.0, 1e-6]]
budgets.zcdp = [0.5, 4.0]
[[environments]]
kind = "Bernoulli"
means = [0.9, 0.1]
[[policies]]
kind = "AdaCUCB"
"""


@pytest.mark.long
def test_loose_budgets_are_warned_of_once_with_their_numbers(folder: Path) -> None:
    with pytest.warns(BudgetWarning) as caught:
        study = load_study(written(folder, LOOSE))
    assert len(caught) == 1
    told = str(caught[0].message)
    assert "The delta of (1, 0.001)-DP is not far below 1 / people" in told
    assert "5,000 people" in told
    assert f"probability {1 - 0.999**5000:.2g}." in told
    assert "4-zCDP promises next to nothing. The meaning of 4-zCDP: Suppose an adversary" in told
    record = run_study(study, engine=Processes(1))
    assert " ".join(record.notes) == told
    write(folder, record)
    page = (folder / "report.html").read_text("utf-8")
    assert page.count("4-zCDP promises next to nothing") == 1


def test_tight_budgets_are_not_warned_of(folder: Path, recwarn: pytest.WarningsRecorder) -> None:
    text = LOOSE.replace("[1.0, 1e-3], ", "").replace(", 4.0", "")
    study = load_study(written(folder, text))
    assert not [one for one in recwarn if issubclass(one.category, BudgetWarning)]
    assert study.cautions == []
    assert load_study(DEMO).cautions == []


@pytest.mark.parametrize(
    ("budget", "people", "told"),
    [
        (ApproxDP(1.0, 1e-5), 9_999, 0),
        (ApproxDP(1.0, 1e-5), 10_000, 1),  # one in ten that somebody is exposed
        (PureDP(10.0), 100, 0),
        (PureDP(10.1), 100, 1),
        (ZCDP(2.0), 100, 1),
        (ZCDP(1.0), 100, 0),  # (7.8, 1e-6)-DP
        (RDP(4.0, 6.5), 100, 1),
        (RDP(4.0, 5.0), 100, 0),  # (8.9, 1e-6)-DP
        (ApproxDP(11.0, 1e-2), 100, 2),
        (None, 10**9, 0),
    ],
)
def test_where_budgets_begin_to_say_little(budget: Budget | None, people: int, told: int) -> None:
    assert len(cautions([budget, budget], people)) == told
