"""Arguments that nobody means are refused by name, and nothing has changed."""

from __future__ import annotations

import inspect
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpbandits as dpb
import dpbandits.environments as worlds
from dpbandits.papers import adversarial
from dpbandits.policies.policy import Policy
from dpbandits.stores import FilePlace, FolderStore
from dpbandits.testing.walk import snapshot


class Odd:
    pass


ODD: list[Any] = [
    *(
        None,
        0,
        -1,
        1.5,
        True,
        1j,
        float("nan"),
        float("inf"),
        10**400,
        10**5000,
        b"x",
        Odd(),
        object,
    ),
    *([], (), {}, set(), {"a": 1}, [0, 1], [[0]], [None], ["x"], [1j], [[1], [1, 2]], range(3)),
    *(np.array([0, 1]), np.array(0), np.zeros((2, 2)), np.zeros((0, 2)), np.datetime64("2020")),
    *(pd.Timestamp("2020"), pd.DataFrame({"a": [1]}), np.ma.masked, lambda: 0),
]
ZCDP = dpb.ZCDP(0.5)
POLICIES: dict[str, Callable[[], Policy]] = {
    "named": lambda: dpb.algorithms.MergedIMED(3, budget=ZCDP, seed=1, arm_names=["a", "b", "c"]),
    "returning": lambda: dpb.algorithms.MergedIMED(3, budget=ZCDP, seed=1, max_rounds=2),
    "public": lambda: dpb.algorithms.LinUCB(3, 2, seed=1),
    "advised": lambda: dpb.algorithms.EXP4(2, 3, budget=ZCDP, horizon=9, seed=1),
    "private": lambda: dpb.algorithms.LinUCBJDP(3, 2, budget=ZCDP, horizon=100, seed=1),
    "server": lambda: dpb.algorithms.LinUCBLDP(
        3, 2, budget=ZCDP, horizon=100, seed=1, reports=True
    ),
}
SHOWN = {"public": np.eye(3)[:, :2], "advised": np.full((3, 2), 0.5), "private": np.eye(3)[:, :2]}
# What is not for users, or takes anything: state for drivers, sentences.
DRIVERS = {"alters", "assume", "new_state", "params_for", "preprocessed", "renewed", "simulated"}
DRIVERS |= {"takes_shape"}


def methods(policy: Policy) -> list[tuple[str, str]]:
    """Public methods, and each of their arguments."""
    return [
        (name, argument)
        for name, member in inspect.getmembers(type(policy), inspect.isfunction)
        if not name.startswith("_") and name not in DRIVERS
        for argument in list(inspect.signature(member).parameters)[1:]
    ]


OF_DECISIONS = ("cancel", "erase", "is_open")


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.filterwarnings("ignore::dpbandits.ClippingWarning")
def test_odd_arguments_of_policies_are_named_and_change_nothing(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for (name, argument), odd in itertools.product(methods(POLICIES[kind]()), ODD):
        policy = POLICIES[kind]()
        arguments = {argument: odd}
        if name == "pull" and argument != "contexts":
            arguments["contexts"] = SHOWN.get(kind)
        if name == "update" and argument != "reward":
            arguments["reward"] = 1.0
        if name in ("update", "expire", *OF_DECISIONS) and kind in ("named", "public"):
            policy.pull(SHOWN.get(kind))
        if name in OF_DECISIONS and argument != "decision":
            last = policy.session.last
            arguments["decision"] = "a token of nobody" if last is None else last
        if name == "save" and argument != "where":
            arguments["where"] = "policy"
        before = snapshot(policy)
        try:
            getattr(policy, name)(**arguments)
        except dpb.DPBanditsError:
            assert snapshot(policy) == before, (name, argument, odd)


def test_there_are_methods_to_try():
    assert {"pull", "update", "save", "learn_from"} <= {
        name for name, _ in methods(dpb.algorithms.UCB1(2))
    }


def test_odd_arguments_of_environments_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given: dict[str, dict[str, Any]] = {
        "Bernoulli": {"means": [0.1, 0.2]},
        "Gaussian": {"means": [0.1, 0.2], "std": 1.0},
        "RewardTable": {"rewards": np.zeros((4, 2))},
        "RewardFile": {"path": "rewards.npy"},
        "ContextTable": {"contexts": np.ones((4, 2, 2)), "rewards": np.zeros((4, 2))},
        "AdviceTable": {"advice": np.full((4, 3, 2), 0.5), "rewards": np.zeros((4, 2))},
        "LoggedTrial": {"arms": [0, 1, 0, 1], "rewards": [0, 1, 0, 1]},
        "Classification": {"features": np.eye(2), "labels": [0, 1]},
        "ClassifierAdvice": {"advice": np.full((2, 3, 2), 0.5), "labels": [0, 1]},
        "LinearArms": {"arms": np.eye(2), "theta": [0.1, 0.2]},
        "GLMContexts": {"n_arms": 2, "theta": [0.1, 0.2]},
        "PoolContexts": {"features": np.eye(2), "theta": [0.1, 0.2], "per_round": 2},
        "Piecewise": {"means": [[0.1, 0.2], [0.2, 0.1]], "starts": [0, 2], "horizon": 4},
        "SwitchingBest": {"n_arms": 2, "best": [0, 1], "switches": [2], "horizon": 4},
        "SineDrift": {"centres": [0.5, 0.5], "amplitude": 0.1, "period": 4, "horizon": 9},
    }
    np.save("rewards.npy", np.zeros((4, 2)))
    for name, arguments in given.items():
        made = getattr(adversarial if name == "ClassifierAdvice" else worlds, name)
        made(**arguments)
        for argument in list(inspect.signature(made.__init__).parameters)[1:]:
            for odd in ODD:
                try:
                    made(**{**arguments, argument: odd})
                except dpb.DPBanditsError:
                    pass
                except Exception as error:
                    raise AssertionError((name, argument, repr(odd)[:60])) from error


def test_what_is_no_place_is_no_store():
    for call, odd in itertools.product(
        (dpb.load, dpb.inspect, FilePlace, FolderStore, dpb.policies.Chooser.from_json), ODD
    ):
        with pytest.raises(dpb.ArgumentError):
            call(odd)


def test_many_available_arms_are_refused_at_once():
    policy = dpb.algorithms.MergedIMED(2, budget=ZCDP, seed=1)
    for many in (range(10**9), itertools.count(), itertools.repeat(0)):
        begun = time.perf_counter()
        with pytest.raises(dpb.ArgumentError, match="available must hold at most 2 arms"):
            policy.pull(available=many)
        assert time.perf_counter() - begun < 0.5


def test_releases_that_no_worker_makes_are_refused():
    one, other = (dpb.algorithms.MergedIMED(2, budget=ZCDP, seed=seed) for seed in (1, 2))
    for _ in range(6):
        one.update(1.0, one.pull())
    release = one.releases()[0]
    before = snapshot(other)
    arm, rounds = release.memo[:2]
    plausible = rounds + 3.0 * other.noise_scale
    for values, memo in (
        ((1e300,), release.memo),
        ((-1e9,), release.memo),
        (release.values, (arm, 2.0**60, *release.memo[2:])),
    ):
        with pytest.raises(dpb.ArgumentError, match=r"^release must come from the method"):
            other.learn_from(release._replace(values=values, memo=memo))
    assert snapshot(other) == before
    assert other.learn_from(release._replace(values=(plausible,)))
