"""Policies with private contexts in every kind of environment with contexts, from Python and from
study files.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.environments import ReturningUsers, classification, lastfm, movielens
from dpbandits.policies import registered
from dpbandits.policies.registry import home_of
from dpbandits.studies import load_study, run_study
from dpbandits.studies.engines import Processes

ROUNDS = 400
POLICIES = sorted(
    name
    for name, cls in registered().items()
    if cls.card.hides_contexts and cls.card.noise and home_of(cls).startswith("dpbandits.")
)

WORLDS = {
    "lastfm": lambda find: lastfm(find("hetrec2011-lastfm-2k")).environment(per_round=5),
    "movielens": lambda find: movielens(find("movielens-100k")).environment(per_round=5),
    "classification": lambda find: classification("breast_cancer", components=3),
    "ReturningUsers": lambda find: ReturningUsers(2, 2, users=100, visits=5, gap=10),
}
# As study files say the same.
ENTRIES = {
    "lastfm": 'folder = "hetrec2011-lastfm-2k"\nper_round = 5',
    "movielens": 'folder = "movielens-100k"\nper_round = 5',
    "classification": 'name = "breast_cancer"\ncomponents = 3',
    "ReturningUsers": "n_arms = 2\ndimension = 2\nusers = 100\nvisits = 5\ngap = 10",
}
FOLDERS = {"lastfm": "hetrec2011-lastfm-2k", "movielens": "movielens-100k"}
# A loop is compiled for every kind of policy in every kind of environment, from one source: every
# policy plays in one of the environments that need no data, and everywhere plays one that adds
# noise to sums and one that adds it to reports.
WITHOUT_DATA = ("classification", "ReturningUsers")
PAIRS = [(WITHOUT_DATA[n % 2], name) for n, name in enumerate(POLICIES)]
PAIRS += [(world, name) for world in WORLDS for name in ("GLMUCBJDP", "LinUCBLDP")]
PAIRS = sorted(set(PAIRS))


def test_there_are_some():
    assert {"AdaCOFULJDP", "LinUCBJDP", "LinUCBLDP", "LinearThompsonJDP"} <= set(POLICIES)
    assert {name for _, name in PAIRS} == set(POLICIES)


@pytest.mark.long
@pytest.mark.parametrize(("world", "name"), PAIRS)
def test_they_play(world, name, published):
    if world == "classification":
        pytest.importorskip("sklearn")
    environment = WORLDS[world](published)
    make = registered()[name]
    shape = (environment.n_arms, environment.dimension)
    own = {"horizon": ROUNDS, "batch": 10}
    own |= {"models": "disjoint"} if world == "ReturningUsers" else {}
    own = {key: value for key, value in own.items() if key in inspect.signature(make).parameters}
    policies = [
        make(*shape, budget=budget, reward_range=environment.support, **own)
        for budget in (make.example_budgets()[0], None)
    ]
    runs = dpb.simulate(policies, environment, horizon=ROUNDS, runs=2, seed=1).runs
    assert np.isfinite(runs["regret"]).all()
    assert (runs["releases"] > 0).all()
    assert (runs.filter(like="pulls_").sum(axis=1) == ROUNDS).all()


@pytest.mark.long
@pytest.mark.parametrize("world", WORLDS)
def test_study_files_say_the_same(world, published, tmp_path):
    if world == "classification":
        pytest.importorskip("sklearn")
    if world in FOLDERS:
        (tmp_path / FOLDERS[world]).symlink_to(published(FOLDERS[world]))
    environment, path = WORLDS[world](published), tmp_path / "study.toml"
    path.write_text(
        f"""
title = "Private contexts"
horizon = {ROUNDS}
runs = 1
budgets = {{zcdp = [0.5]}}
[[environments]]
kind = "{world}"
{ENTRIES[world]}
[[policies]]
kind = "LinUCBJDP"
batch = 10
reward_range = {list(environment.support)}
"""
    )
    study = load_study(path)
    assert repr(study.environments[0]) == repr(environment)
    runs = run_study(study, engine=Processes(1)).result.runs
    assert np.isfinite(runs["regret"]).all()
