"""Checks of a running policy: its schedule, its ledger, and complete saves."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BudgetExhausted
from ..policies import Decision, Policy, load
from ..privacy.continual import HonakerTree
from ..session.steps import cross_by, release_by
from .walk import ROUNDS, Make, play, pull, releases, require, snapshot, spans

_PATIENT = 2000  # pulls, at most, for further releases
_DRAWN = np.random.default_rng(8).random(ROUNDS)  # rewards in [0, 1]


# The schedule ---------------------------------------------------------------------------------


def with_fixed_releases(policy: Policy) -> Policy:
    """The policy with releases that no reward enters, so only timing can differ."""
    rng, gate = np.random.default_rng(10), policy.session.gate
    policy.watch.silence()

    def fixed(running: Any, _: int, scale: float, statistic: Any, release: Any, __: Any) -> None:
        release[:] = rng.normal(scale=5.0, size=release.size)

    def silent(*_: Any) -> None: ...

    cross = cross_by(gate.kernels, fixed, silent)
    gate.steps = gate.steps._replace(cross=cross, release=release_by(gate.steps.end, cross))
    return policy


def schedule_owes_nothing_to_answers(make: Make, answers_within: int = 0) -> None:
    """A policy that releases at the end of episodes must not depend on answers directly.  With
    equal released values, its releases and choices are the same for all answers and answer times.
    """

    def history(answer: bool, seed: int) -> tuple[list[Any], list[Any]]:
        policy = with_fixed_releases(make(answers_within=answers_within, seed=1))
        rng = np.random.default_rng(seed)
        pulled: list[tuple[int, bool, int]] = []
        open_ones: list[Decision] = []
        while releases(policy) < 6 and len(pulled) < 3_000:
            decision = pull(policy)
            pulled.append((decision.arm, decision.recorded, releases(policy)))
            open_ones.append(decision)
            if answer:
                policy.update(rng.random(), open_ones.pop())
            elif rng.random() < 0.3:  # some answers, late and in any order; the others never come
                policy.update(1.0, open_ones.pop(rng.integers(len(open_ones))))
        require(
            releases(policy) >= 1, "release_due: no release in 3,000 rounds; take smaller arguments"
        )
        return spans(policy), pulled

    first = history(True, 1)
    same = first == history(True, 2) and first == history(False, 3)
    require(same, "release_due: a release, or a choice, depends on answers that are not released")


def pulls_are_learned_from_in_order(make: Make) -> None:
    """A policy that learns at once, and waits for 3 pulls, learns from the t-th pull at the pull
    after three more, answered or not.
    """

    def history(answers: float, seed: int) -> list[Any]:
        policy = make(answers_within=3, seed=1)
        rng, waiting, seen = np.random.default_rng(seed), [], []
        for number in range(12):
            waiting.append(pull(policy))
            seen.append((waiting[-1].recorded, releases(policy), policy.rounds))
            require(policy.rounds == max(number - 3, 0), "record_pull: rounds are miscounted")
            while waiting and rng.random() < answers:
                late = waiting.pop(rng.integers(len(waiting)))
                in_time = late.number >= number - 3
                require(policy.update(rng.random(), late) is in_time, "a late answer is taken")
        return [*seen, spans(policy)]

    first = history(0.5, 1)
    same = first == history(0.7, 2) and first == history(0.0, 3)
    require(same, "release_due: the schedule depends on answers")


# The ledger -----------------------------------------------------------------------------------


def _reward(policy: Policy) -> Callable[[Decision], float]:
    """A reward for every decision, the same in each policy."""
    lo, hi = policy.reward_range
    return lambda decision: lo + (hi - lo) * float(_DRAWN[decision.number])


def budget_is_spent_once(make: Make) -> None:
    """The first release spends the budget, and later ones nothing more."""
    policy = make(seed=3)
    meter = policy.meter
    assert meter is not None
    require(policy.ledger.spent() is None, "something was released before any round")
    for k in (1, 2):
        try:
            play(policy, _reward(policy), until=k)
        except BudgetExhausted as error:
            raise AssertionError(
                f"the policy's sensitivity, partition or channel is wrong: {error}"
            ) from error
        total = policy.ledger.total()
        kept = math.isclose(total, meter.limit, rel_tol=1e-9) and meter.allows(total)
        require(
            kept,
            f"partition: after {k} releases a record has cost {total:g}, and the budget allows"
            f" {meter.limit:g}",
        )


def draws_belong_to_releases(make: Make) -> None:
    """Noise is drawn for every coordinate of a release, and only then."""
    policy = make(seed=4)
    length, counter, reward = policy.statistic.size, policy.statistic.counter, _reward(policy)
    source = policy.session.state.noise_rng
    require(source is not None, "the policy has a budget, and no noise")
    assert source is not None
    bits = source.bit_generator
    drawn, made, number = bits.state, 0, 0

    def looked() -> None:
        nonlocal drawn, made
        if releases(policy) > made:
            require(bits.state != drawn, "a release was made without noise")
        else:
            require(bits.state == drawn, "noise was drawn without a release")
        drawn, made = bits.state, releases(policy)

    while made < (4 if counter else 2):
        decision = pull(policy)
        looked()
        policy.update(reward(decision), decision)
        looked()
        number += 1
        require(number < ROUNDS, f"release_due: no release in {ROUNDS:,} rounds")
    # The refined tree has a noise of its own for every node: those of a full one, less what is not
    # full.
    nodes = 2 * made - made.bit_count() if isinstance(counter, HonakerTree) else made
    all_draws = policy.ledger.draws
    require(
        all_draws == length * nodes, f"{all_draws} draws for {made} releases of {length} numbers"
    )


# Saving ---------------------------------------------------------------------------------------


def _go_on(policy: Policy, further: int) -> None:
    """Play until so many further releases, or for as long as a search or a long episode lets us."""
    until, reward = releases(policy) + further, _reward(policy)
    for _ in range(_PATIENT if further else 0):
        decision = pull(policy)
        if releases(policy) == until:
            return
        policy.update(reward(decision), decision)


def _lost(policy: Policy, copy: Policy) -> str:
    """The names of what differs between a policy and what was read of it."""
    sides = zip(snapshot(policy).items(), snapshot(copy).values(), strict=True)
    return ", ".join(name for (name, mine), other in sides if mine != other)


def _came_back(policy: Policy, copy: Policy) -> None:
    require(repr(copy) == repr(policy), f"config: {policy!r} comes back as {copy!r}")
    lost = _lost(policy, copy)
    require(
        not lost,
        f"save: {lost} come back changed; a state is made of arrays, and all arguments belong into"
        " config",
    )


def saved_policies_go_on(make: Make, folder: Path) -> None:
    """A saved policy comes back bit by bit, and plays on as if nothing had happened."""
    policy = make(seed=1)
    play(policy, _reward(policy), until=1)
    copy = load(policy.save(folder / "saved"), simulation=True)
    for further in (0, 2):
        for one in (policy, copy):
            _go_on(one, further)
        _came_back(policy, copy)


def a_crash_loses_nothing(make: Make, folder: Path) -> None:
    """What happened after the save is in its place: after a pull, an answer, a release.  The policy
    that is read there goes on alike, and the budget still holds.
    """
    policy = make(seed=1)
    path, reward = policy.save(folder / "crashed"), _reward(policy)
    for until in (1, 2):
        play(policy, reward, until=until)
        _came_back(policy, load(path, simulation=True))
        decision = pull(policy)
        _came_back(policy, load(path, simulation=True))
        policy.update(reward(decision), decision)
        _came_back(policy, load(path, simulation=True))
        pull(policy)  # and this one's answer never comes
    survivor, meter = load(path, simulation=True), policy.meter
    for one in (policy, survivor):
        _go_on(one, 2)
    lost = _lost(policy, survivor)
    require(not lost, f"save: {lost} differ after a crash, once both go on")
    within = meter is None or meter.allows(survivor.ledger.total())
    require(within, "save: after a crash the budget is exceeded")
