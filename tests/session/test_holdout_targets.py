"""Targets of a holdout: their sums, privacy, intervals, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chi2
from test_holdout import LOUD, Scripted, held_out, merged, neighbours

import dpbandits as dpb
from dpbandits.session import session as sessions
from dpbandits.session.holdout_targets import matches

TWO = ["rule", "other"]
OWN = dpb.Holdout(0.5, batch=6, targets=TWO)


def arms_for(person: int) -> dict[str, int | str]:
    """The targets' arms: they agree, and differ, with each other."""
    return {"rule": person % 3, "other": person % 3 if person % 2 else 0}


def targeted(**options: Any) -> dpb.Policy:
    return merged(**({"n_arms": 3, "holdout": OWN, "budget": LOUD} | options))


# Sums ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("within", [0, 9, None])
def test_sums_are_those_of_people_who_got_the_targets_arm(within: int | None):
    policy = targeted(reward_range=(-1.0, 3.0), answers_within=within)
    rng, entered = np.random.default_rng(1), list[tuple[int, dict[str, Any], float]]()
    for person in range(300):
        reward = round(4.0 * rng.random() - 1.0, 3)
        decision = policy.pull(targets=arms_for(person))
        policy.update(reward, decision)
        if decision.held_out:
            assert decision.recorded
            assert decision.propensity == pytest.approx(1.0 / 3.0, rel=1e-12)
            entered.append((decision.arm, arms_for(person), reward))
    policy.finish()
    sums = policy.holdout.released_sums
    assert policy.holdout.ledger.releases == len(entered) // 6 > 15
    found = sums.groupby("arm")[["rounds", "sum"]].sum()
    counted = entered[: 6 * (len(entered) // 6)]
    groups = [[r for a, _, r in counted if a == arm] for arm in range(3)]
    groups += [[r for a, told, r in counted if told[name] == a] for name in TWO]
    for number, rewards in enumerate(groups):
        assert found["rounds"][number] == len(rewards)
        assert found["sum"][number] == pytest.approx(sum(rewards), abs=1e-6)
    means = [*policy.holdout.estimates.means, *policy.holdout.values().means]
    assert means == pytest.approx([np.mean(one) for one in groups], abs=1e-6)


def test_a_value_is_the_self_normalised_estimate():
    policy = targeted(holdout=dpb.Holdout(0.5, batch=1, targets=["rule"]))
    rng, rows = np.random.default_rng(2), list[tuple[int, float, float, int]]()
    for _ in range(400):
        best = int(rng.integers(3))
        decision = policy.pull(targets={"rule": best})
        reward = float(rng.random() < (0.7 if decision.arm == best else 0.3))
        policy.update(reward, decision)
        if decision.held_out:
            rows.append((decision.arm, reward, decision.propensity, best))
    policy.finish()
    arm, reward, propensity, best_arm = map(np.array, zip(*rows, strict=True))
    log = {"arm": arm, "reward": reward, "propensity": propensity}
    found = dpb.evaluate(log, np.eye(3)[best_arm])
    assert policy.holdout.values().means[0] == pytest.approx(found.value, abs=1e-6)


def test_people_to_whom_an_arm_is_closed_do_not_count():
    policy = targeted()
    decision = held_out(policy, available=[1, 2], targets=arms_for(0))
    assert not decision.recorded
    assert decision.arm != 0
    assert held_out(policy, available=[0, 1, 2], targets=arms_for(0)).recorded


def test_arms_of_targets_may_be_named():
    names = ["a", "b", "c"]
    one, other = targeted(arm_names=names), targeted(arm_names=names)
    for person in range(100):
        told = arms_for(person)
        for policy, targets in ((one, told), (other, {n: names[a] for n, a in told.items()})):  # type: ignore[index]
            policy.update(0.5, policy.pull(targets=targets))
    assert one.holdout.released_sums.equals(other.holdout.released_sums)
    assert one.holdout.values().labels == TWO


def test_another_policys_decision_stands_for_its_arm():
    own, names = dpb.Holdout(0.5, batch=6, targets=["rule"]), ["a", "b", "c"]
    for mine, theirs in ((names, names[::-1]), (names, None), (None, names)):
        one, other = (targeted(arm_names=mine, holdout=own) for _ in range(2))
        rule = merged(n_arms=3, holdout=None, arm_names=theirs, seed=2)
        for person in range(60):
            told = rule.pull()
            rule.update(float(person % 3 == told.arm), told)
            arm = mine.index(told.name) if mine and theirs else told.arm
            for policy, given in ((one, told), (other, arm)):
                policy.update(1.0, policy.pull(targets={"rule": given}))
        assert one.holdout.released_sums.equals(other.holdout.released_sums)
    with pytest.raises(dpb.ArgumentError, match="targets must be one of 'a', 'b', 'c', got 'x'"):
        targeted(arm_names=names, holdout=own).pull(
            targets={"rule": merged(holdout=None, arm_names=["x", "y"]).pull()}
        )


# Privacy -------------------------------------------------------------------------------------


def statistics(rewards: np.ndarray, **options: Any) -> Scripted:
    policy = targeted(noise="secure", seed=None, **({"budget": dpb.ZCDP(0.5)} | options))
    script = Scripted(policy)
    for person, reward in enumerate(rewards):
        user = {"user": person % 16} if policy.max_rounds else {}
        policy.update(reward, policy.pull(targets=arms_for(person), **user))
    policy.finish()
    return script


def distances(**options: Any) -> Iterator[tuple[str, list[float], list[float]]]:
    """Of each neighbour: its stream, and how far its releases move in L1 and in L2."""
    users = np.arange(48) % 16 if "max_rounds" in options else None
    for before, after in neighbours(48, users):
        one, other = statistics(before, **options), statistics(after, **options)
        assert len(one.statistics) == len(other.statistics)
        moved = [
            (name, a - b)
            for (name, a), (_, b) in zip(one.statistics, other.statistics, strict=True)
            if (a != b).any()
        ]
        streams = {name for name, _ in moved}
        assert len(streams) <= 1, "a record is in releases of both streams"
        if streams:
            vectors = [vector for _, vector in moved]
            norms = [[float(np.linalg.norm(one, p)) for one in vectors] for p in (1, 2)]
            yield streams.pop(), *norms


def check_sensitivity(most: int, **options: Any) -> None:
    """The worst neighbour moves a release of the holdout exactly as far as is declared."""
    worst = np.zeros(2)
    for stream, *norms in distances(**options):
        assert len(norms[0]) <= most
        if stream == "holdout":
            worst = np.maximum(worst, [max(norms[0]), max(norms[1])])
    declared = [1.0 + len(TWO), math.sqrt(1.0 + len(TWO))]
    assert worst == pytest.approx(declared, rel=1e-12), "the declared sensitivity is not met"
    policy = targeted(**options)
    held = policy.session.holdout.gate
    asked = held.kernels.sensitivity(held.params, policy.session.holdout.state.public, 1)
    assert (asked, held.statistic.max_sensitivity) == pytest.approx(
        (declared[0], declared[held.channel.norm - 1])
    )


@pytest.mark.parametrize("budget", [dpb.ZCDP(0.5), dpb.PureDP(1.0)])
def test_a_record_moves_one_vector_as_far_as_declared(budget: dpb.privacy.Budget):
    check_sensitivity(1, budget=budget)


def test_a_user_moves_one_vector_for_each_round():
    check_sensitivity(3, max_rounds=3)


def test_a_record_that_counts_twice_for_a_target_is_caught(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sessions, "matches", lambda *given: 2.0 * matches(*given))
    with pytest.raises(AssertionError, match="not met"):
        check_sensitivity(1)


@pytest.mark.parametrize("budget", [dpb.PureDP(0.3), dpb.ZCDP(0.2), dpb.ApproxDP(1.0, 1e-6)])
@pytest.mark.parametrize("most", [None, 4])
def test_the_vector_spends_the_budget_and_has_its_noise(
    budget: dpb.privacy.Budget, most: int | None
):
    policy = targeted(budget=budget, max_rounds=most)
    for person in range(4000):
        user = {} if most is None else {"user": person % 900}
        policy.update(0.0, policy.pull(targets=arms_for(person), **user))
    held = policy.holdout
    assert held.ledger.total() == pytest.approx(policy.ledger.meter.limit)
    (line,) = held.ledger.frame.itertuples()
    laplace = line.family == "Laplace"
    assert line.sensitivity == pytest.approx(3.0 if laplace else math.sqrt(3.0))
    # Every reward is 0, so a sum is its noise.
    noise = np.array([one.values for one in policy.session.holdout.exchange.made])
    assert len(noise) > 250
    if laplace:  # twice the sum of |noise| / scale is chi squared, 2 degrees for each
        found, degrees = 2.0 * np.abs(noise).sum() / line.noise_scale, 2 * noise.size
    else:
        found, degrees = (noise**2).sum() / line.noise_scale**2, noise.size
    assert chi2.cdf(found, degrees) == pytest.approx(0.5, abs=0.5 - 1e-5)
    correlation = np.corrcoef(noise.T)[np.triu_indices(noise.shape[1], 1)]
    assert np.abs(correlation).max() < 5.0 / math.sqrt(len(noise))


def test_secure_sums_are_on_the_grid():
    policy = targeted(noise="secure", seed=None, grid=2.0**-6, budget=dpb.ZCDP(0.5))
    for person in range(120):
        policy.update(0.3, policy.pull(targets=arms_for(person)))
    units = policy.holdout.released_sums["sum"].to_numpy() * 64.0
    assert len(units) > 20
    assert (units == np.rint(units)).all()
    assert any("multiples of 0.015625" in one for one in policy.holdout.values().breaks)


def test_guarantee_and_card_name_the_targets():
    policy = targeted(budget=dpb.ZCDP(0.5))
    assert any("the holdout's targets" in one for one in policy.guarantee.assumptions)
    assert policy.guarantee.holds == dpb.ZCDP(0.5)
    assert "the arm of 'rule', 'other'" in policy.card_page().markdown()


# Intervals -----------------------------------------------------------------------------------


def missed(run: int, people: int, **options: Any) -> tuple[bool, bool]:
    """Whether an interval of the target's value, or of its difference to an arm, ever misses.

    Half of the people are of each kind, whose arm earns 0.8; the other earns 0.3.
    """
    holdout = dpb.Holdout(0.9, batch=40, targets=["rule"])
    policy = merged(budget=dpb.ZCDP(0.5), seed=run, holdout=holdout, **options)
    rng, wrong = np.random.default_rng(run), [False, False]
    for _ in range(people):
        kind, before = int(rng.integers(2)), policy.holdout.ledger.releases
        decision = policy.pull(targets={"rule": kind})
        policy.update(float(rng.random() < (0.8 if decision.arm == kind else 0.3)), decision)
        if policy.holdout.ledger.releases == before:
            continue
        for i, (control, true) in enumerate(((None, 0.8), (0, 0.25))):
            found = policy.holdout.values(0.8, control=control)
            wrong[i] |= not found.low[0] <= true <= found.high[0]
    return wrong[0], wrong[1]


def test_intervals_cover_the_value_at_all_releases():
    runs = 60
    counts = np.array([missed(run, 300) for run in range(runs)]).sum(axis=0)
    assert (counts <= binom.ppf(1.0 - 1e-4, runs, 0.2)).all()


def test_a_rule_that_helps_is_found_better_than_each_arm():
    rng = np.random.default_rng(1)
    holdout = dpb.Holdout(0.9, batch=100, targets=["rule"])
    policy = merged(budget=dpb.ZCDP(0.5), holdout=holdout, arm_names=["old", "new"])
    for _ in range(2000):
        kind = int(rng.integers(2))
        decision = policy.pull(targets={"rule": kind})
        policy.update(float(rng.random() < (0.8 if decision.arm == kind else 0.3)), decision)
    for control in ("old", 1):
        found = policy.holdout.values(control=control)
        assert found.labels == [f"rule - {['old', 'new'][control == 1]}"]
        assert found.low[0] > 0.05
        assert found.low[0] < 0.25 < found.high[0]
    value = policy.holdout.values()
    assert value.high[0] - value.low[0] < 0.25
    assert value.rounds[0] == pytest.approx(900, rel=0.15)


def test_a_difference_has_the_ends_of_both_intervals():
    policy = targeted(budget=dpb.ZCDP(0.5))
    for person in range(300):
        policy.update(float(person % 3 == 0), policy.pull(targets=arms_for(person)))
    both = policy.holdout.values(0.9)
    found = policy.holdout.values(0.9, control="other")
    assert found.labels == ["rule - other"]
    assert found.low[0] == pytest.approx(both.low[0] - both.high[1])
    assert found.high[0] == pytest.approx(both.high[0] - both.low[1])


# What is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: dpb.Holdout(0.1, targets="rule"), "targets must be a list"),
        (lambda: dpb.Holdout(0.1, targets=["a", "a"]), "differ"),
        (lambda: dpb.Holdout(0.1, targets=[""]), "printable"),
        (lambda: dpb.Holdout(0.1, targets=["a"], one_sum=True), "one_sum"),
        (lambda: targeted(holdout=dpb.Holdout(0.1, (0.5, 0.3, 0.2), targets=["a"])), "equal"),
        (lambda: targeted(arm_names=["rule", "b", "c"]), "names of arms"),
        (lambda: targeted().pull(), "'rule', 'other'"),
        (lambda: targeted().pull(targets={"rule": 1}), "'rule', 'other'"),
        (lambda: targeted().pull(targets={"rule": 1, "other": 3}), "targets"),
        (lambda: targeted().pull(targets={"rule": 1, "other": 0, "third": 0}), "'rule', 'other'"),
        (lambda: merged().pull(targets={"rule": 1}), "has no targets"),
        (lambda: merged(holdout=None).pull(targets={"rule": 1}), "has no targets"),
        (lambda: targeted().retire(0), "targets"),
        (lambda: merged().holdout.values(), "no targets"),
        (lambda: targeted().holdout.values(control="third"), "control"),
        (
            lambda: dpb.simulate(
                targeted(), dpb.environments.Bernoulli([0.1, 0.2, 0.3]), horizon=10, runs=1
            ),
            "without targets",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make: Callable[[], Any], why: str):
    with pytest.raises(dpb.ArgumentError, match=why):
        make()


def test_a_refused_target_tosses_no_coin():
    one, other = targeted(), targeted()
    for person in range(50):
        with pytest.raises(dpb.ArgumentError):
            one.pull(targets={"rule": 7, "other": 0})
        told = arms_for(person)
        assert one.pull(targets=told).held_out == other.pull(targets=told).held_out


def test_a_batch_has_by_default_people_of_all_arms():
    plain = merged(n_arms=3, budget=dpb.ZCDP(0.5), holdout=0.5)
    found = targeted(budget=dpb.ZCDP(0.5), holdout=dpb.Holdout(0.5, targets=TWO))
    assert (plain.holdout.batch, found.holdout.batch) == (50, 150)
    # Noise has the variance 3 / (2 rho) then, and doubles that of a sum at most.
    quiet = targeted(budget=dpb.ZCDP(0.005), holdout=dpb.Holdout(0.5, targets=TWO))
    assert quiet.holdout.batch == 3 * 4 * 300
