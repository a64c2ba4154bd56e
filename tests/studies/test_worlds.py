"""Study files with contexts and with features of arms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpbandits.environments import GaussianContexts, LinearArms
from dpbandits.errors import StudyError
from dpbandits.studies import Study, load_study, run_study

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


def test_a_study_of_contexts_runs(tmp_path: Path) -> None:
    record = run_study(loaded(tmp_path, CONTEXTS), n_jobs=1)
    assert len(record.result.runs) == 2 * 2 * 3
    assert record.result.frame["distance"].notna().all()
    assert record.result.runs["regret"].gt(0).all()


def test_policies_take_features_from_the_arms(tmp_path: Path) -> None:
    study = loaded(tmp_path, ARMS)
    world = study.environments[0]
    assert isinstance(world, LinearArms)
    assert np.array_equal(study.policies[0]._arms, world.features)  # type: ignore[attr-defined]
    assert study.policies[1].n_arms == 4
    assert run_study(study, n_jobs=1).result.runs["regret"].gt(0).all()


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
            ["policies[0]: AdaCGOPE needs the features of its arms: from LinearArms"],
        ),
        (
            changed(ARMS, 'variant = "published"', "arms = [[1.0], [2.0], [3.0]]"),
            ["policies[0].arms: must hold 4 arms, as many as the environments have, got 3"],
        ),
        (
            changed(CONTEXTS, "pool = 20\ndimension = 3", "pool = 20\ndimension = 2"),
            ["environments[1]: shows contexts of dimension 2 where environments[0] shows contexts of dimension 3"],
        ),
        (changed(CONTEXTS, "per_round", "per_rond"), ["environments[1].per_rond: unknown argument; did you mean per_round?"]),
        (
            changed(CONTEXTS, 'rewards = "bounded"', 'rewads = "bounded"'),
            ["environments[0].rewads: unknown argument; did you mean rewards?"],
        ),
        (changed(CONTEXTS, "growth", "groth"), ["policies[1].groth: unknown argument; did you mean growth?"]),
        (changed(CONTEXTS, "ridge = 0.1", "ridge = -1.0"), ["policies[1].ridge: must be a number in (0, 1e+12)"]),
        (changed(CONTEXTS, "ridge = 0.1", "ridg = 0.1"), ["policies[1].ridg: unknown argument; did you mean ridge?"]),
        (changed(CONTEXTS, "ridge = 0.1", "dimension = 3"), ["policies[1].dimension: a study sets this itself"]),
        (changed(ARMS, "reward_range", "ridge = 1.0\nreward_range"), ["policies[0].ridge: unknown argument"]),
        (
            CONTEXTS + '\n[[environments]]\nkind = "lastfm"\nfolder = "nowhere"\n',
            ["environments[2].folder: must hold artists.dat, got "],
        ),
        (CONTEXTS + '\n[[environments]]\nkind = "ContextKernels"\n', ["environments[2].kind: there is no environment"]),
        (
            CONTEXTS + '\n[[environments]]\nkind = "DoctorReplay"\n',
            ["environments: must not show contexts beside a log, which has none"],
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


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('"movielens.reward_table"\nfolder = "nowhere"\nliked_from = 9', "folder: must hold u.data, got "),
        ('"movielens.reward_table"\nfolder = "nowhere"\nartists = 9', "artists: unknown argument"),
        ('"lastfm.reward_table"\nfolder = "nowhere"\nartists = 9', "folder: must hold artists.dat, got "),
        ('"lastfm.reward_table"\nfolder = 3', "folder: must be the name of a folder, got 3"),
    ],
)
def test_tables_of_data_sets_take_their_arguments(tmp_path: Path, arguments: str, problem: str) -> None:
    found = problems_of(tmp_path, changed(TABLES, '"DoctorReplay.reward_table"', arguments))
    assert any(line.startswith(f"environments[0].{problem}") for line in found), found


def test_features_that_differ_between_environments_fit_no_policy(tmp_path: Path) -> None:
    second = ARMS[ARMS.index("[[environments]]") : ARMS.index("[[policies]]")].replace("seed = 3", "seed = 4")
    assert "needs the features of its arms" in problems_of(tmp_path, ARMS + second)[0]
