"""What was compared comes back from JSON as it was, and the tables refer to it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

import dpbandits as dpb
from dpbandits.environments import Bernoulli, DoctorReplay
from dpbandits.policies import registered
from dpbandits.privacy import Budget
from dpbandits.simulation import PolicySetting, Result
from dpbandits.simulation.settings import policy_styles

WORLD = Bernoulli([0.9, 0.1])
POLICIES = [
    pytest.param(cls, budget, id=f"{name}-{budget}")
    for name, cls in registered().items()
    for budget in (*cls.example_budgets(), None)
]


HALF = dpb.ZCDP(0.5)


def ours(budget: Budget | None = HALF, **options) -> dpb.Policy:
    return dpb.papers.concentrated.AdaCUCB(2, budget=budget, **options)


@pytest.mark.parametrize(("cls", "budget"), POLICIES)
def test_every_setting_comes_back_from_json(cls, budget):
    policy = cls(**cls.example, budget=budget, name="ours", reward_range=(0, 2))
    setting = PolicySetting.of(policy)
    again = PolicySetting.from_dict(json.loads(json.dumps(setting.to_dict())))
    assert again == setting
    assert str(again.guarantee) == str(setting.guarantee)
    assert (again.budget, again.holds) == (policy.budget, setting.guarantee.holds)
    assert (again.name, again.class_name) == ("ours", policy.preset)
    assert again.arguments["reward_range"] == again.reward_range == (0.0, 2.0)
    if policy.meter is not None:
        assert (again.currency, again.limit) == (policy.meter.currency, policy.meter.limit)


def test_arguments_of_numpys_types_are_data():
    setting = PolicySetting.of(ours(beta=np.float64(2.0)))
    assert json.loads(json.dumps(setting.to_dict()))["arguments"]["beta"] == 2.0
    assert setting.configuration == "AdaCUCB(n_arms=2, beta=2.0, forget=True)"


def test_the_tables_join_to_the_settings():
    policies = [
        ours(),
        ours(None),
        ours(dpb.ApproxDP(5.0, 0.01), calibration="paper"),
        ours(dpb.ApproxDP(5.0, 0.01), clip=False, name="as published"),
    ]
    result = dpb.simulate(policies, WORLD, horizon=50, runs=2, record=3)
    replayed = dpb.replay(
        dpb.papers.concentrated.AdaCUCB(4, budget=dpb.ZCDP(0.5), name="ours"),
        DoctorReplay(),
        runs=2,
    )
    for found in (result.frame, result.runs, result.summary(), replayed.summary()):
        settings = (replayed if "rounds" in found else result).settings
        keys = found[["policy", "budget", "holds"]].drop_duplicates()
        assert [tuple(row) for row in keys.to_numpy()] == [
            tuple(setting.keys.values()) for setting in settings.values()
        ]
        assert list(settings) == list(keys[["policy", "budget"]].itertuples(index=False, name=None))
    assert [setting.holds for setting in result.settings.values()] == [
        policy.guarantee.holds for policy in policies
    ]
    assert [setting.reward_range for setting in result.settings.values()][2:] == [(0.0, 1.0), None]


def test_settings_are_saved_with_the_result(tmp_path):
    result = dpb.simulate([ours(name="ours"), ours(None)], WORLD, horizon=20, runs=2)
    again = Result.load(result.save(tmp_path / "result.parquet"))
    assert again.settings == result.settings
    assert [setting.budget for setting in again.settings.values()] == [dpb.ZCDP(0.5), None]
    assert again.titles == {"Bernoulli(0.9, 0.1)": "Bernoulli, 2 arms"}


@pytest.mark.parametrize("damage", ["older", "other notion", "no number"])
def test_results_of_other_versions_are_refused(tmp_path, damage):
    path = dpb.simulate(ours(), WORLD, horizon=20).save(tmp_path / "result.parquet")
    table = parquet.read_table(path)
    extra = json.loads(table.schema.metadata[b"dpbandits"])
    if damage == "older":
        del extra["format"]
    else:
        guarantee = extra["settings"][0]["guarantee"]
        guarantee["asked"] = (
            {"notion": "TrustMe"} if damage == "other notion" else {"notion": "ZCDP"}
        )
    parquet.write_table(table.replace_schema_metadata({"dpbandits": json.dumps(extra)}), path)
    message = (
        "another version" if damage == "older" else "not a saved result: data must be a budget"
    )
    with pytest.raises(dpb.errors.StateFileError, match=message):
        Result.load(path)


# Names ---------------------------------------------------------------------------------------


def test_a_name_changes_no_number_and_stands_in_every_table():
    plain, named = (
        dpb.simulate(ours(**options), WORLD, horizon=500, runs=3, seed=2)
        for options in ({}, {"name": "ours"})
    )
    assert set(named.runs["policy"]) == set(named.summary()["policy"]) == {"ours"}
    for table in ("frame", "runs"):
        pd.testing.assert_frame_equal(
            getattr(plain, table).drop(columns="policy"),
            getattr(named, table).drop(columns="policy"),
        )
    assert [style.label for style in policy_styles(named.settings).values()] == ["ours"]
    assert [text.get_text() for text in named.plot().legends[0].get_texts()] == ["ours"]


def test_one_name_is_for_one_policy_at_any_budgets():
    shared = [ours(name="ours"), ours(None, name="ours")]
    assert dpb.simulate(shared, WORLD, horizon=5).runs["policy"].tolist() == ["ours", "ours"]
    for other in (dpb.algorithms.UCB1(2, name="ours"), ours(None, forget=False, name="ours")):
        with pytest.raises(dpb.ArgumentError, match="policies must not share a name, got 'ours'"):
            dpb.simulate([ours(name="ours"), other], WORLD, horizon=5)
    with pytest.raises(dpb.ArgumentError, match="must not share a name"):
        dpb.simulate(
            [dpb.algorithms.UCB1(2), ours(name=dpb.algorithms.UCB1(2).label)], WORLD, horizon=5
        )
    with pytest.raises(dpb.ArgumentError, match=r"each policy once \(seed and name do not count\)"):
        dpb.simulate([ours(name="ours"), ours(name="again")], WORLD, horizon=5)


def test_results_with_different_policies_of_one_name_are_not_combined():
    worlds = [WORLD, Bernoulli([0.5, 0.2])]
    policies = [ours(None, name="ours"), dpb.algorithms.UCB1(2, name="ours")]
    one, other = (
        dpb.simulate(policy, world, horizon=5)
        for policy, world in zip(policies, worlds, strict=True)
    )
    with pytest.raises(
        dpb.ArgumentError, match="must not give different policies one name, got two called"
    ):
        Result.combined([one, other])


@pytest.mark.long
def test_policies_that_trust_nobody_or_promise_nothing_are_remarked_on():
    policies = [
        dpb.papers.others.LDPUCB(2, budget=dpb.PureDP(1.0), name="on the phone"),
        ours(clip=False),
        ours(None, clip=False),
    ]
    styles = policy_styles(dpb.simulate(policies, WORLD, horizon=5).settings)
    assert [style.label for style in styles.values()] == [
        "on the phone (local)",
        "AdaCUCB (no guarantee)",
    ]
