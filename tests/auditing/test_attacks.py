"""``audit`` as a whole: how near it comes to what is possible, what it refuses, and what it sees of
bugs that nobody told it of.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits import ZCDP, ArgumentError, Arms, PureDP, audit
from dpbandits.auditing import ANYBODY, Adversary, Plant, canaries
from dpbandits.cli import app
from dpbandits.kernel import kernel
from dpbandits.papers.concentrated import AdaCUCB, AdaPUCB
from dpbandits.papers.dgs import LinUCBDGS
from dpbandits.papers.others import DPSE, DPTS
from dpbandits.parts import UCB, Forget, Growing

PLANTED = ["half", "redrawn", "repeated", "timed"]


def laplace(runs: int = 1000, **options) -> dpb.auditing.Audit:
    return audit(AdaPUCB(2, budget=PureDP(1.0)), runs=runs, n_jobs=1, **options)


@pytest.mark.long
@pytest.mark.parametrize(("horizon", "levels"), [(1, 1), (63, 6)])
def test_white_box_audits_reach_nine_tenths_of_what_is_possible(horizon: int, levels: int):
    policy = DPTS(1, horizon=horizon, counter="tree", budget=PureDP(1.0))
    found = audit(policy, n_jobs=1, seed=3)
    best = dpb.auditing.best_possible([1.0 / levels] * levels)
    assert found.possible == pytest.approx(best, rel=0.03)
    assert 0.9 * best < found.measured < 1.0


@pytest.mark.long
def test_bugs_are_refuted_and_nothing_is_found_where_there_is_nothing():
    found = laplace(4000, controls=True)
    assert found.verdict == "not refuted"
    outcomes = found.controls.set_index("planted")["outcome"]
    assert (outcomes == "as expected").sum() == 1 + len(PLANTED)
    assert "adding a record moves a sum as far" in outcomes["add-remove"]
    assert "planted: half the noise" in str(found)


@pytest.mark.long
def test_the_wrong_notion_of_neighbours_is_refuted_where_they_differ():
    policy = AdaPUCB(2, budget=PureDP(1.0), reward_range=(-1, 1))
    assert audit(policy, plant="add-remove", runs=1000, n_jobs=1).refuted


@pytest.mark.long
def test_no_audit_of_equal_worlds_finds_a_loss():
    for seed in range(100):
        assert laplace(200, plant="null", seed=seed).measured == 0.0


@pytest.mark.long
def test_true_claims_are_refuted_as_seldom_as_alpha_says():
    # 300 audits at alpha = 0.05 fail more than 34 times with probability below 1e-5.
    found = [laplace(100, alpha=0.05, seed=seed).refuted for seed in range(300)]
    assert sum(found) <= 34


# Bugs that were not planted by us -------------------------------------------------------------


@kernel
def half_the_sensitivity(params, public, norm):
    return 0.5


@kernel
def remembers(params, raw, public, memo, statistic):
    statistic[0] = raw.total[0]


@kernel
def noise_from_nowhere(running, family, scale, statistic, release, rng):
    for i in range(statistic.size):
        release[i] = statistic[i]


def with_bug(**changed) -> dpb.Policy:
    class Buggy(Arms):
        @classmethod
        def composition(cls, **parts):
            made = Arms.composition(**parts)
            return made._replace(kernels=replace(made.kernels, **changed))

    return Buggy(2, budget=ZCDP(0.5), index=UCB(), memory=Forget(), batches=Growing(ratio=1.0))


@pytest.mark.parametrize(
    "policy",
    [
        lambda: with_bug(sensitivity=half_the_sensitivity),
        pytest.param(lambda: with_bug(summarise=remembers), marks=pytest.mark.long),
    ],
)
def test_bugs_of_an_algorithm_are_refuted(policy):
    found = audit(policy(), runs=1000, n_jobs=1)
    assert found.refuted
    assert found.exposed > found.claimed


@pytest.mark.long
def test_no_noise_is_refuted_by_everything_that_sees_releases():
    found = audit(
        AdaCUCB(2, budget=ZCDP(0.5)),
        plant=Plant("no noise", mechanism=noise_from_nowhere),
        runs=1000,
        n_jobs=1,
    )
    rows = found.scores.set_index("score")["bound"]
    assert (rows[["likelihood ratio", "releases"]] > 3.0).all()


@pytest.mark.long
def test_bits_of_simulated_noise_leak_and_are_not_counted():
    # In world 0 all sums are 0, and floats of noise alone are finer than those of noise and a number.
    policy = dpb.algorithms.PrivateLinUCB(2, 2, horizon=63, counter="tree", budget=PureDP(0.2))
    found = audit(policy, runs=1000, n_jobs=1)
    assert not found.refuted
    rows = found.scores.set_index("score")
    assert rows["bound"]["finest bits"] > 5 * found.claimed
    assert not rows["counted"]["finest bits"]
    assert "protects nobody" in found.caveat


@pytest.mark.long
def test_secure_noise_is_audited_and_its_bits_betray_nothing():
    policy = dpb.algorithms.AdaCOFUL(2, 2, horizon=16, growth=0.5, counter="tree", budget=ZCDP(0.5))
    shape = {"noise": "secure", "alpha": 1e-7, "n_jobs": 1}  # there is no seed
    found = audit(policy, runs=500, horizon=20, **shape)
    assert found.scores["counted"].all()
    assert found.scores.set_index("score")["bound"]["finest bits"] == 0.0
    assert not found.refuted
    plain = audit(AdaPUCB(2, budget=PureDP(1.0)), runs=2000, horizon=4, **shape)
    assert plain.measured > 0.55
    assert not plain.refuted


# Adversaries ----------------------------------------------------------------------------------


@kernel
def answer_against_the_last(state, t, arms, arm, who):
    """The canary aside, nobody likes what the last one was given."""
    if who != ANYBODY:
        return float(who)
    return 0.0 if t > 0 and arm == arms[t - 1] else 1.0


@pytest.mark.long
def test_an_adversary_may_answer_by_what_was_played():
    mine = Adversary("contrary", answer_against_the_last, position=5)
    policy = AdaPUCB(3, budget=PureDP(1.0))
    found = audit(policy, adversary=mine, runs=1000, horizon=200, n_jobs=1)
    assert found.adversary == "contrary"
    assert not found.refuted
    assert found.measured > 0.6
    assert audit(policy, adversary=mine, runs=1000, horizon=200, plant="half", n_jobs=1).refuted


@pytest.mark.parametrize("echo", [False, True])
def test_canaries_fit_what_a_policy_sees(echo: bool):
    policies = [
        AdaCUCB(2, budget=ZCDP(0.5)),
        dpb.algorithms.PrivateLinUCB(2, 3, horizon=15, budget=ZCDP(0.5)),
        dpb.algorithms.EXP4(2, 3, horizon=64, batch=4, budget=ZCDP(0.5)),
        dpb.algorithms.LinUCBJDP(2, 3, horizon=16, batch=2, budget=ZCDP(0.5)),
    ]
    assert [len(list(canaries(policy, echo=echo))) for policy in policies] == [1, 1, 1, 3]


@pytest.mark.long
def test_decisions_of_the_canary_are_hidden_where_arms_are_private():
    # Her features alone say which arm she is given; everybody else's are the same in both worlds,
    # and no release comes within the horizon.
    from dpbandits.auditing.playing import Play

    policy = dpb.algorithms.LinUCBJDP(2, 2, horizon=64, batch=16, budget=ZCDP(0.5))
    adversary = next(canaries(policy, position=3))
    seen = Play(policy, adversary, 8).batch(0, 50)
    assert (seen.arms[:, 3] == -1).all()
    assert (np.delete(seen.arms, 3, axis=1) >= 0).all()


@pytest.mark.long
def test_all_rounds_of_a_user_are_the_canarys():
    from dpbandits.auditing.playing import Play

    policy = AdaPUCB(2, budget=PureDP(1.0), max_rounds=3)
    seen = Play(policy, next(canaries(policy)), 255).batch(0, 20)
    moved = np.any(seen.one != seen.zero, axis=2).sum(axis=1)
    assert (moved == 3).all()
    found = audit(policy, runs=1000, n_jobs=1)
    assert found.exposed == pytest.approx(1.0)
    assert 0.3 < found.measured < 1.0


# The result -----------------------------------------------------------------------------------


def test_audits_are_the_same_whatever_the_number_of_threads_and_leave_the_policy_alone():
    policy = AdaCUCB(2, budget=ZCDP(0.5))
    calls: list[tuple[int, int]] = []
    one, two = (
        audit(policy, runs=600, n_jobs=n, seed=5, progress=lambda *done: calls.append(done))
        for n in (1, 2)
    )
    assert one.scores.equals(two.scores)
    assert not audit(policy, runs=600, n_jobs=1, seed=6).scores.equals(one.scores)
    assert policy.rounds == 0
    assert calls[-1] == (1200, 1200)


def test_an_audit_shows_itself():
    found = laplace()
    assert found.sentence.startswith("In 2,000 attacked runs of 255 rounds, with")
    assert found.sentence in str(found)
    page = found._repr_html_()
    assert "likelihood ratio" in page
    assert "does not prove privacy" in page
    figure = found.plot()
    assert {text.get_text() for text in figure.axes[0].get_yticklabels()} >= {"decisions"}
    assert found.ratio == found.measured / found.claimed
    assert "is false" in laplace(plant="half").caveat


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"runs": 3}, "runs"),
        ({"alpha": 0.7}, "alpha"),
        ({"noise": "quiet"}, "noise"),
        ({"plant": "roses"}, "plant must be one of"),
        ({"horizon": 0}, "horizon"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"progress": 3}, "progress"),
    ],
)
def test_wrong_arguments_are_refused(arguments, complaint):
    with pytest.raises(ArgumentError, match=complaint):
        audit(AdaPUCB(2, budget=PureDP(1.0)), **arguments)


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        (lambda: dpb.algorithms.UCB1(2), "an audit tests what the budget claims"),
        (lambda: "AdaPUCB", "must be a Policy"),
        (lambda: AdaPUCB(2, budget=PureDP(1.0), clip=False), "must have clip=True"),
    ],
)
def test_what_cannot_be_audited_is_said(policy, complaint):
    with pytest.raises(ArgumentError, match=complaint):
        audit(policy())


def test_a_planted_mechanism_is_refused_where_secure_noise_would_take_its_place():
    policy = AdaPUCB(2, budget=PureDP(1.0))
    with pytest.raises(ArgumentError, match="with secure noise"):
        audit(policy, runs=50, noise="secure", plant="redrawn")
    # 75 games a world and control: it is missed in fewer than 1 of 10^8 runs.
    controls = audit(policy, runs=300, noise="secure", controls=True).controls
    told = controls.set_index("planted")["outcome"]
    assert "with secure noise" in told["redrawn"]
    assert told["a budget for each batch, and records in all"] == "as expected"


@pytest.mark.long
def test_of_a_claim_that_is_known_to_be_false_that_is_said():
    policy = LinUCBDGS(3, 2, horizon=31, smallest_eigenvalue=0.1, budget=PureDP(1.0))
    found = audit(policy, runs=50)
    assert found.verdict == "not refuted"
    assert "known to be false" in found.caveat
    assert found.sentence.endswith("known to be false")  # on cards, which have no caveat
    assert "docs/errata.md" in str(found)


@pytest.mark.parametrize("noise", [-1.0, math.nan, math.inf, "half"])
def test_a_plant_leaves_some_part_of_the_noise(noise):
    with pytest.raises(ArgumentError, match="noise must be"):
        Plant("a bug", noise=noise)


def test_a_horizon_without_a_release_is_refused():
    with pytest.raises(ArgumentError, match="does not release their rewards"):
        audit(DPSE(2, horizon=1000, budget=PureDP(0.1)), horizon=20)
    with pytest.raises(ArgumentError, match="must be at most 31"):
        audit(DPTS(2, horizon=31, budget=ZCDP(0.5)), horizon=32)


# The command ----------------------------------------------------------------------------------

STUDY = """
title = "Two policies"
horizon = 100
runs = 2
seed = 1
[budgets]
pure = [1.0]
[[environments]]
kind = "Bernoulli"
means = [0.5, 0.4]
[[policies]]
kind = "AdaPUCB"
[[policies]]
kind = "UCB1"
"""


def run(*words: str):
    return CliRunner().invoke(app, ["audit", *words, "--jobs", "1"])


def test_the_command_ends_with_1_where_a_claim_is_refuted(tmp_path):
    figure = tmp_path / "audit.png"
    fine = run("AdaPUCB", "--budget", "pure=1", "--runs", "500", "--figure", str(figure))
    assert fine.exit_code == 0, fine.output
    assert "not refuted" in fine.output
    assert figure.stat().st_size > 5000
    wrong = run("AdaPUCB", "--runs", "500", "--plant", "half")
    assert wrong.exit_code == 1
    assert "Planted: half the noise" in wrong.output
    assert run("UCB1").exit_code == 2
    nameless = run("AdaPUCB", "--runs", "50", "--figure", str(tmp_path / "audit.txt"))
    assert nameless.exit_code == 2
    assert "must end in" in nameless.output


def test_the_command_audits_all_policies_of_a_study(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    found = run(str(study), "--runs", "500")
    assert found.exit_code == 0, found.output
    assert "Not audited: policy must have a budget" in found.output
    assert found.output.count("attacked runs") == 1
    assert run(str(study), "--budget", "pure=1").exit_code == 2
