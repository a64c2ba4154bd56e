"""Guarantees: as sentences for people, as data for programs, and never more than what holds."""

import itertools
import json

import pytest

from dpbandits.papers.concentrated import AdaCUCB
from dpbandits.privacy import RDP, ZCDP, ApproxDP, Guarantee, PureDP, accounting

BUDGETS = [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.5), RDP(4.0, 1.0), None]


def guarantee(**changes) -> Guarantee:
    fields = {
        "holds": ZCDP(0.5),
        "asked": ZCDP(0.5),
        "trust_model": "central",
        "protects": "rewards",
        "view": "interactive",
        "unit": "round",
        "assumptions": ("rewards lie in [0, 1]", "time is public"),
        "source": "Theorem 12",
    }
    return Guarantee(**{**fields, **changes})


@pytest.mark.parametrize(
    ("holds", "asked", "trust", "view", "caveats"),
    list(
        itertools.product(
            BUDGETS,
            BUDGETS[::4],
            ["central", "local", "none"],
            ["interactive", "table", "view"],
            [(), ("Mind this",)],
        )
    ),
)
def test_every_guarantee_reads_as_sentences_and_survives_json(holds, asked, trust, view, caveats):
    promise = guarantee(holds=holds, asked=asked, trust_model=trust, view=view, caveats=caveats)
    text, data = str(promise), promise.to_dict()
    assert Guarantee.from_dict(json.loads(json.dumps(data))) == promise
    assert json.loads(json.dumps(data)) == {
        **data,
        "assumptions": list(data["assumptions"]),
        "caveats": list(caveats),
    }
    assert data["view"] == view
    assert text.endswith(".")
    assert ".." not in text
    assert "None" not in text
    for budget, name in ((holds, "holds"), (asked, "asked")):
        assert data[name] == (
            None if budget is None else {"notion": type(budget).__name__, **vars(budget)}
        )
    if holds is None:
        assert "no privacy guarantee" in text
        assert "Proof" not in text
        assert "protected" not in text
    else:
        assert f"protected with {holds} from" in text
        assert f" ({view} privacy). " in text
        assert "Proof: Theorem 12." in text
    assert all(caveat + "." in text for caveat in caveats)


def test_the_sentence_in_full():
    assert (
        str(guarantee())
        == "The rewards of one round are protected with 0.5-zCDP from anyone who sees every"
        " decision, and may even override decisions (interactive privacy). Suppose an adversary knows"
        " everything except the rewards of one round. The adversary considers two possible values of"
        " these rewards, and thinks both equally likely. After all observations, the adversary"
        " guesses right at most 74 % of the time (chance: 50 %). The adversary's belief in the true"
        " value rises above 99.7 % with a probability of at most 1 in"
        " 1,000,000. The party that runs the policy sees the true rewards and is trusted with them."
        " This assumes that (1) rewards lie in [0, 1]; (2) time is public. Proof: Theorem 12."
    )


def test_the_published_calibration_states_the_delta_that_really_holds():
    asked = ApproxDP(10.0, 0.1)
    policy = AdaCUCB(2, budget=asked, calibration="paper", seed=1)
    holds = policy.guarantee.holds
    assert holds.epsilon == 10.0
    assert holds.delta == pytest.approx(0.41, abs=0.005)
    assert holds.delta == accounting.gaussian_delta(10.0, 1 / policy.channel.multiplier)
    assert "asked for (10, 0.1)-DP, but provides the" in str(policy.guarantee)
    assert policy.guarantee.asked == asked
    exact = AdaCUCB(2, budget=asked, seed=1).guarantee
    assert exact.holds == asked
    assert "really gives" not in str(exact)


def test_a_published_calibration_without_any_guarantee_runs_and_says_so():
    policy = AdaCUCB(2, budget=ApproxDP(1000.0, 0.1), calibration="paper", seed=1)
    for _ in range(5):
        policy.update(policy.pull().arm)
    assert policy.guarantee.holds is None
    assert "gives no (epsilon, delta) guarantee" in str(policy.guarantee)
    assert policy.ledger.spent() is None


@pytest.mark.parametrize("epsilon", [0.5, 10.0, 30.0, 39.5, 42.5, 44.5])
def test_a_published_calibration_may_release_once_per_record(epsilon):
    policy = AdaCUCB(2, budget=ApproxDP(epsilon, 0.1), calibration="paper", seed=1)
    for _ in range(20):
        policy.update(policy.pull().arm)
    assert policy.ledger.releases > 3


@pytest.mark.parametrize("budget", [ApproxDP(1.0, 1e-6), ZCDP(0.5), RDP(4.0, 1.0)])
def test_without_clipping_the_guarantee_is_void(budget):
    promise = AdaCUCB(2, budget=budget, clip=False, seed=1).guarantee
    assert promise.holds is None
    assert promise.asked == budget
    assert "void" in str(promise)


def test_without_a_budget_nothing_is_promised():
    promise = AdaCUCB(2, budget=None, seed=1).guarantee
    assert (promise.holds, promise.asked, promise.trust_model) == (None, None, "none")
    assert "no privacy guarantee" in str(promise)
    assert "trusted" not in str(promise)


def test_simulated_noise_says_that_it_protects_nobody():
    promise = AdaCUCB(2, budget=ZCDP(0.5), seed=1).guarantee
    assert "SIMULATION" in str(promise)
    assert promise.to_dict()["simulated"] is True
    assert AdaCUCB(2, budget=None).guarantee.simulated is False


def test_assumptions_name_what_the_options_need():
    promise = AdaCUCB(
        2, budget=ZCDP(0.5), reward_range=(-1, 3), answers_within=None, choices_public=True, seed=1
    ).guarantee
    text = "; ".join(promise.assumptions)
    assert "[-1, 3], which clipping enforces" in text
    assert "arrives carries no private information" in text
    assert "public when a person does something else" in text
    assert len(AdaCUCB(2, budget=ZCDP(0.5), seed=1).guarantee.assumptions) == 2
