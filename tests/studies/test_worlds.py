"""Study files with contexts and with features of arms."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from dpbandits.environments import Advised, Bernoulli, GaussianContexts, LinearArms
from dpbandits.errors import StudyError
from dpbandits.papers.adversarial import classifier_advice
from dpbandits.studies import Study, load_study, run_study
from dpbandits.studies.engines import Processes

CONTEXTS = """
title = "Contexts"
horizon = 200
runs = 3
record = 3
budgets.zcdp = [0.5]

[[environments]]
kind = "GaussianContexts.on_sphere"
n_arms = 4
dimension = 3
seed = 2
rewards = "bounded"
project = true

[[environments]]
kind = "PoolContexts.uniform"
pool = 20
dimension = 3
per_round = 4

[[policies]]
kind = "LinUCB"

[[policies]]
kind = "AdaCOFUL"
ridge = 0.1
growth = 0.5
"""

ARMS = """
title = "Fixed arms"
horizon = 5000
runs = 2
record = 3
budgets.zcdp = [0.5]

[[environments]]
kind = "LinearArms.on_sphere"
n_arms = 4
dimension = 2
seed = 3
rewards = "bounded"

[[policies]]
kind = "AdaCGOPE"
reward_range = [-1.0, 1.0]
variant = "published"

[[policies]]
kind = "AdaCUCB"
"""


def loaded(folder: Path, text: str) -> Study:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return load_study(path)


def problems_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(StudyError) as caught:
        loaded(folder, text)
    return caught.value.problems


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


def test_policies_take_arms_and_dimension_from_the_contexts(tmp_path: Path) -> None:
    study = loaded(tmp_path, CONTEXTS)
    assert isinstance(study.environments[0], GaussianContexts)
    assert (study.environments[0].project, study.environments[0].rewards) == (True, "bounded")
    assert [(policy.n_arms, policy.dimension) for policy in study.policies] == [(4, 3), (4, 3)]  # type: ignore[attr-defined]
    assert "horizon=200" in study.policies[1].label
    assert "ridge=0.1" in study.policies[1].label


@pytest.mark.long
def test_a_study_of_contexts_runs(tmp_path: Path) -> None:
    record = run_study(loaded(tmp_path, CONTEXTS), engine=Processes(1))
    assert len(record.result.runs) == 2 * 2 * 3
    assert record.result.frame["distance"].notna().all()
    assert record.result.runs["regret"].gt(0).all()


def test_policies_take_features_from_the_arms(tmp_path: Path) -> None:
    study = loaded(tmp_path, ARMS)
    world = study.environments[0]
    assert isinstance(world, LinearArms)
    assert np.array_equal(study.policies[0]._arms, world.features)  # type: ignore[attr-defined]
    assert study.policies[1].n_arms == 4
    assert run_study(study, engine=Processes(1)).result.runs["regret"].gt(0).all()


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            changed(CONTEXTS, 'kind = "LinUCB"', 'kind = "AdaCUCB"'),
            ["policies[0]: AdaCUCB takes no contexts, and GaussianContexts("],
        ),
        (
            changed(ARMS, 'kind = "AdaCUCB"', 'kind = "LinUCB"'),
            ["policies[1]: LinUCB takes contexts, and LinearArms("],
        ),
        (
            changed(
                ARMS,
                '"LinearArms.on_sphere"\nn_arms = 4\ndimension = 2\nseed = 3\nrewards = "bounded"',
                '"Bernoulli"\nmeans = [0.1, 0.2]',
            ),
            ["policies[0]: AdaCGOPE needs the features of its arms: use the same LinearArms"],
        ),
        (
            changed(ARMS, 'variant = "published"', "arms = [[1.0], [2.0], [3.0]]"),
            ["policies[0].arms: must hold 4 arms, as many as the environments have, got 3"],
        ),
        (
            changed(CONTEXTS, "pool = 20\ndimension = 3", "pool = 20\ndimension = 2"),
            [
                "environments[1]: has contexts of dimension 2 where environments[0] has"
                " contexts of dimension 3"
            ],
        ),
        (
            changed(CONTEXTS, "per_round", "per_rond"),
            ["environments[1].per_rond: unknown argument; did you mean per_round?"],
        ),
        (
            changed(CONTEXTS, 'rewards = "bounded"', 'rewads = "bounded"'),
            ["environments[0].rewads: unknown argument; did you mean rewards?"],
        ),
        (
            changed(CONTEXTS, "growth", "groth"),
            ["policies[1].groth: unknown argument; did you mean growth?"],
        ),
        (
            changed(CONTEXTS, "ridge = 0.1", "ridge = -1.0"),
            ["policies[1].ridge: must be a number in (0, 1e+12)"],
        ),
        (
            changed(CONTEXTS, "ridge = 0.1", "ridg = 0.1"),
            ["policies[1].ridg: unknown argument; did you mean ridge?"],
        ),
        (
            changed(CONTEXTS, "ridge = 0.1", "dimension = 3"),
            ["policies[1].dimension: a study sets this itself"],
        ),
        (
            changed(ARMS, "reward_range", "ridge = 1.0\nreward_range"),
            ["policies[0].ridge: unknown argument"],
        ),
        (
            CONTEXTS + '\n[[environments]]\nkind = "lastfm"\nfolder = "nowhere"\n',
            ["environments[2].folder: must hold artists.dat, got "],
        ),
        (
            CONTEXTS + '\n[[environments]]\nkind = "ContextKernels"\n',
            ["environments[2].kind: there is no environment"],
        ),
        (
            CONTEXTS + '\n[[environments]]\nkind = "DoctorReplay"\n',
            [
                "environments: must fit the log: one has contexts of dimension 3, and the log has"
                " contexts of dimension 10"
            ],
        ),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: Path, text: str, problems: list[str]) -> None:
    found = problems_of(tmp_path, text)
    assert len(found) == len(problems), found
    for line, expected in zip(found, problems, strict=True):
        assert line.startswith(expected)


TABLES = """
title = "Patients"
horizon = 500
runs = 2
budgets.pure = [0.5]

[[environments]]
kind = "DoctorReplay.reward_table"

[[policies]]
kind = "HTINF"
"""


def test_logged_patients_may_be_a_table(tmp_path: Path) -> None:
    study = loaded(tmp_path, TABLES)
    assert study.environments[0].horizon == 522
    assert study.policies[0].n_arms == 4


COVARIATES = """
title = "Patients and what is known of them"
horizon = 300
runs = 2
record = 2
budgets.zcdp = [0.5]

[[environments]]
kind = "DoctorContexts"

[[environments]]
kind = "GLMContexts.random"
n_arms = 4
dimension = 10
models = "disjoint"
link = "probit"
norm = 2.0
decay = 1.0

[[environments]]
kind = "GLMContexts"
n_arms = 4
theta = [0.6, 0, 0, 0, 0, 0, 0, 0, 0, 0.8]
eigenvalues = [0.1, 0.1, 0.1, 0, 0, 0, 0, 0, 0, 0.001]
link = "identity"

[[environments]]
kind = "CovariateArms.random"
n_arms = 4
dimension = 10
link = "logistic"

[[environments]]
kind = "DoctorReplay"

[[policies]]
kind = "LinUCB"
models = "disjoint"
"""


@pytest.mark.long
def test_patients_with_covariates_are_simulated_and_replayed(tmp_path: Path) -> None:
    study = loaded(tmp_path, COVARIATES)
    assert [type(world).__name__ for world in study.environments] == [
        "DoctorContexts",
        "GLMContexts",
        "GLMContexts",
        "CovariateArms",
    ]
    assert "link='probit', decay=1, random, norm=2" in repr(study.environments[1])
    simulated = COVARIATES.index("[[environments]]", COVARIATES.index("DoctorContexts"))
    logged = COVARIATES.index('[[environments]]\nkind = "DoctorReplay"')
    record = run_study(
        loaded(tmp_path, COVARIATES[:simulated] + COVARIATES[logged:]), engine=Processes(1)
    )
    assert len(record.result.runs) == 2
    assert record.replay is not None
    assert record.replay.runs["rounds"].between(450, 620).all()
    problems = problems_of(tmp_path, changed(COVARIATES, "decay = 1.0", "decay = -1.0"))
    assert problems == ["environments[1].decay: must be a number in [0, 100], got -1"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            '"movielens.reward_table"\nfolder = "nowhere"\nliked_from = 9',
            "folder: must hold u.data, got ",
        ),
        ('"movielens.reward_table"\nfolder = "nowhere"\nartists = 9', "artists: unknown argument"),
        (
            '"lastfm.reward_table"\nfolder = "nowhere"\nartists = 9',
            "folder: must hold artists.dat, got ",
        ),
        ('"lastfm.reward_table"\nfolder = 3', "folder: must be the name of a folder, got 3"),
    ],
)
def test_tables_of_data_sets_take_their_arguments(
    tmp_path: Path, arguments: str, problem: str
) -> None:
    found = problems_of(tmp_path, changed(TABLES, '"DoctorReplay.reward_table"', arguments))
    assert any(line.startswith(f"environments[0].{problem}") for line in found), found


def test_features_that_differ_between_environments_fit_no_policy(tmp_path: Path) -> None:
    second = ARMS[ARMS.index("[[environments]]") : ARMS.index("[[policies]]")].replace(
        "seed = 3", "seed = 4"
    )
    assert "needs the features of its arms" in problems_of(tmp_path, ARMS + second)[0]


# With expert advice --------------------------------------------------------------------------

EXPERTS = """
title = "Experts"
horizon = 400
runs = 2
record = 3
budgets.pure = [1.0]

[[environments]]
kind = "Advised.constant"
means = [0.2, 0.9, 0.4]
n_experts = 5
horizon = 400
seed = 3

[[environments]]
kind = "Advised.shifted"
means = [0.2, 0.9, 0.4]
n_experts = 5
period = 20
horizon = 500

[[policies]]
kind = "ExpertConversion"
learner = "exp3"

[[policies]]
kind = "LocalEXP4"
"""

TUMOURS = """
title = "Tumours"
horizon = 200
runs = 2
record = 3
budgets.approx = [[1.0, 1e-6]]

[[environments]]
kind = "classifier_advice"
name = "breast_cancer"
n_experts = 4
share = 0.2
once = true

[[policies]]
kind = "EXP4"
"""


def test_policies_take_arms_and_experts_from_the_advice(tmp_path: Path) -> None:
    study = loaded(tmp_path, EXPERTS)
    arms = Bernoulli([0.2, 0.9, 0.4])
    made = [
        Advised.constant(arms, 5, horizon=400, seed=3),
        Advised.shifted(arms, 5, period=20, horizon=500),
    ]
    assert list(map(repr, study.environments)) == list(map(repr, made))
    assert [(policy.n_arms, policy.n_experts) for policy in study.policies] == [(3, 5), (3, 5)]  # type: ignore[attr-defined]


def test_classifiers_take_their_arguments(tmp_path: Path) -> None:
    (world,) = loaded(tmp_path, TUMOURS).environments
    assert repr(world) == repr(classifier_advice("breast_cancer", 4, share=0.2, once=True))


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "rows"), [(EXPERTS, 2 * 2 * 2), (TUMOURS, 2)], ids=["experts", "tumours"]
)
def test_a_study_of_experts_runs(tmp_path: Path, text: str, rows: int) -> None:
    runs = run_study(loaded(tmp_path, text), engine=Processes(1)).result.runs
    assert len(runs) == rows
    assert runs["reward"].between(1, 400).all()


CONTEXTUAL = """
[[environments]]
kind = "GaussianContexts.on_sphere"
n_arms = 2
dimension = 4
"""


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            changed(EXPERTS, "n_experts", "n_expert"),
            [
                "environments[0].n_expert: unknown argument; did you mean n_experts?",
                "environments[0].n_experts: is missing",
            ],
        ),
        (
            changed(EXPERTS, "means = [0.2, 0.9, 0.4]", "means = [0.2, 1.9, 0.4]"),
            ["environments[0].means: must hold numbers in [0, 1], got 1.9 in row 1"],
        ),
        (changed(EXPERTS, "means = [0.2, 0.9, 0.4]\n", ""), ["environments[0].means: is missing"]),
        (
            changed(EXPERTS, "means = [0.2, 0.9, 0.4]", "environment = 3"),
            [
                "environments[0].environment: unknown argument; known: horizon, means,",
                "environments[0].means: is missing",
            ],
        ),
        (
            changed(EXPERTS, "n_experts = 5", "n_experts = 0"),
            ["environments[0].n_experts: must be an integer at least 1, got 0"],
        ),
        (
            changed(EXPERTS, "n_experts = 5", "n_experts = 6"),
            [
                "environments[1]: has advice of 5 experts where environments[0] has advice of 6"
                " experts"
            ],
        ),
        (
            changed(EXPERTS, "seed = 3", "seed = -1"),
            ["environments[0].seed: must be an integer at least 0, got -1"],
        ),
        (
            changed(EXPERTS, "seed = 3", "period = 3"),
            ["environments[0].period: unknown argument; known: horizon, means,"],
        ),
        (
            changed(EXPERTS, "horizon = 400\nseed = 3", "seed = 3"),
            ["environments[0].horizon: is missing"],
        ),
        (
            changed(EXPERTS, "horizon = 500", "horizon = 300"),
            ["horizon: must be at most 300, the length of environments[1], got 400"],
        ),
        (
            changed(EXPERTS, "period = 20", "period = 0"),
            ["environments[1].period: must be an integer at least 1, got 0"],
        ),
        (changed(EXPERTS, "period = 20\n", ""), ["environments[1].period: is missing"]),
        (
            changed(EXPERTS, '"Advised.constant"', '"Advised"'),
            ["environments[0].kind: there is no environment 'Advised'; did you mean Advised."],
        ),
        (
            changed(EXPERTS, '"LocalEXP4"', '"HTINF"'),
            ["policies[1]: HTINF takes no contexts, and Advised(Bernoulli("],
        ),
        (
            changed(EXPERTS, '"LocalEXP4"', '"LinUCB"'),
            ["policies[1]: LinUCB takes contexts, and Advised(Bernoulli("],
        ),
        (
            changed(EXPERTS, 'learner = "exp3"', "n_experts = 3"),
            ["policies[0].n_experts: a study sets this itself"],
        ),
        (
            changed(TUMOURS, '"breast_cancer"', '"iris"'),
            ["environments[0].name: must be one of 'breast_cancer', 'digits'"],
        ),
        (
            changed(TUMOURS, "share = 0.2", "share = 2.0"),
            ["environments[0].share: must be a number in [0.01, 1], got 2"],
        ),
        (
            changed(TUMOURS, "share", "shar"),
            ["environments[0].shar: unknown argument; did you mean share?"],
        ),
        (
            changed(TUMOURS, "once = true", "once = 1"),
            ["environments[0].once: must be True or False, got 1"],
        ),
        (
            changed(TUMOURS, "horizon = 200", "horizon = 286"),
            ["horizon: must be at most 285, the length of environments[0], got 286"],
        ),
        (
            TUMOURS + CONTEXTUAL,
            [
                "environments[1]: has contexts of dimension 4 where environments[0] has advice"
                " of 4 experts"
            ],
        ),
        (
            changed(CONTEXTS, 'kind = "LinUCB"', 'kind = "EXP4"'),
            ["policies[0]: EXP4 takes advice, and GaussianContexts("],
        ),
    ],
)
def test_what_does_not_fit_experts_is_said(tmp_path: Path, text: str, problems: list[str]) -> None:
    found = problems_of(tmp_path, text)
    assert len(found) == len(problems), found
    for line, expected in zip(found, problems, strict=True):
        assert line.startswith(expected)


def test_classifiers_without_scikit_learn_are_a_problem_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    (problem,) = problems_of(tmp_path, TUMOURS)
    assert (
        problem == "environments[0]: classifier_advice needs scikit-learn: pip install"
        " 'dpbandits[datasets]'"
    )
