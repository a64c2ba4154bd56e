"""Claims about generalised linear bandits, on results that were planted to make them hold or
fail.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from dpbandits.papers.glm import plan as glm
from dpbandits.papers.plans import Size, recorded
from dpbandits.report.claims import FAILS, HOLDS, Claim
from dpbandits.report.means import Estimate

pytestmark = pytest.mark.xdist_group("the plan of the study of generalised linear bandits")
HORIZON = 1600
ROUNDS = np.array(sorted({*recorded(HORIZON, 60), HORIZON // glm.EARLY}))
# Regret at the end, and the exponent with which it grew.
GOOD = {
    "open": (10.0, 0.5),
    "public": (12.0, 0.4),
    "joint": (15.0, 0.4),
    "local": (40.0, 0.5),
    "right": (15.0, 0.5),
    "logistic": (15.5, 0.5),
    "linear": (16.0, 0.5),
}


@pytest.fixture(scope="module")
def plan():
    return glm.plan(Size(runs=5, horizon=HORIZON))


def compared(ratio: float):
    """Regressions with that ratio of errors, in the place of real ones."""

    def compare(**_):
        row = {"design": "narrow", "error": "absolute"}
        return pd.DataFrame([{**row, "ratio": ratio, "low": ratio / 1.02, "high": ratio * 1.02}])

    return compare


@pytest.fixture(autouse=True)
def _without_regressions(monkeypatch):
    monkeypatch.setattr(glm, "compare_with_ridge", compared(0.9))


LEARNED = Estimate(0.5, 0.4, 0.6)  # of the regret of choosing at random


class Planted:
    """Five instances of every policy, whose regret is what its name says."""

    def __init__(self, laws: Mapping[str, tuple[float, float]]) -> None:
        self.laws = laws

    def final(self, key: str) -> np.ndarray:
        return self.curves(key)[..., -1]

    def curves(self, key: str, column: str = "regret") -> np.ndarray:
        name = key.rsplit("/", 1)[1]
        end, exponent = self.laws.get(key, self.laws[name])
        instances = end * (1.0 + 0.01 * np.arange(5.0))
        return instances[:, np.newaxis, np.newaxis] * (ROUNDS / HORIZON) ** exponent

    def rounds(self, key: str) -> np.ndarray:
        return ROUNDS

    def over_random(self, key: str) -> Estimate:
        return LEARNED


def asked(plan, words: str, **changes: tuple[float, float]) -> list[str]:
    """Verdicts of the claims with these words; local regret falls with alpha."""
    local = {
        f"{glm.LOCAL}/alpha = {alpha:g}/local": (end, GOOD["local"][1])
        for alpha, end in zip(glm.ALPHAS, (40.0, 30.0, 25.0), strict=True)
    }
    laws = {**GOOD, **local} if "local" not in changes else GOOD
    claims: list[Claim] = list(plan.assess(Planted({**laws, **changes})).claims)
    found = [claim.verdict for claim in claims if words in f"{claim.reading} | {claim.statement}"]
    assert found
    return found


def test_every_question_has_its_claims_and_figure(plan):
    findings = plan.assess(Planted(GOOD))
    assert {claim.reading for claim in findings.claims} == set(glm.READINGS)
    assert [exhibit.name for exhibit in findings.exhibits] == [f"figure-{i}" for i in range(1, 5)]
    assert len({cell.key for cell in plan.cells}) == 3 * 3 + 3 * 2 + 3 * 2 + 2 + 3 + 3


def test_a_price_that_grows_is_found_out(plan):
    assert asked(plan, glm.JOINT) == 6 * [HOLDS]
    assert asked(plan, "rewards and features cost", joint=(15.0, 0.6)) == 3 * [FAILS]
    assert asked(plan, "private rewards cost", public=(12.0, 0.6)) == 3 * [FAILS]
    assert asked(plan, glm.CONDITIONED) == 3 * [HOLDS]
    assert asked(plan, glm.CONDITIONED, joint=(15.0, 0.6)) == 3 * [FAILS]


def test_local_regret_that_grows_too_fast_is_found_out(plan):
    assert asked(plan, glm.LOCAL) == 8 * [HOLDS]
    assert asked(plan, "grows no faster", local=(40.0, 0.7)) == 3 * [FAILS]
    assert asked(plan, "less regret than local", local=(14.0, 0.5)) == 3 * [FAILS]
    steep = {f"{glm.LOCAL}/alpha = 0.5/local": (90.0, 0.5)}
    assert asked(plan, "From alpha = 0.5 to alpha = 1:", **steep) == [FAILS]


def test_a_wrong_link_that_costs_is_found_out(plan):
    assert asked(plan, glm.MISSPECIFIED) == 5 * [HOLDS]
    assert asked(plan, "a linear model", linear=(20.0, 0.5)) == 3 * [FAILS]
    assert asked(plan, "the logistic link", logistic=(20.0, 0.5)) == 2 * [FAILS]


def test_weights_that_cost_are_found_out(plan, monkeypatch):
    assert asked(plan, glm.WEIGHTED) == 2 * [HOLDS]
    monkeypatch.setattr(glm, "compare_with_ridge", compared(1.2))
    assert asked(plan, glm.WEIGHTED) == 2 * [FAILS]
