"""Private contexts: what writes to the public side, or sets the schedule, is told the round alone,
in a toy and in every registered policy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numba
import numpy as np
import pytest
from suite import BY_NORM, Case, over

from dpbandits import ZCDP, ArgumentError
from dpbandits.algorithms.bases.contextual import ContextualPolicy
from dpbandits.environments import ContextTable
from dpbandits.kernel import kernel
from dpbandits.policies import Card, Kernels, Statistic
from dpbandits.testing.streams import by_hand, looped, table
from dpbandits.testing.walk import Walk, contexts_of, scratch_of
from dpbandits.testing.wall import private_features_leave_no_trace

pytestmark = pytest.mark.compiled

BATCH, ROUNDS = 5, 60


class Params(NamedTuple):
    n_arms: int


class Raw(NamedTuple):
    total: np.ndarray  # (d,) sum of x * reward


class Public(NamedTuple):
    direction: np.ndarray  # (d,) released
    clock: np.ndarray  # (2,) rounds of the batch, and a copy of what ``record_pull`` was told


def init(params: Params) -> tuple[Raw, Public]:
    return Raw(np.zeros(2)), Public(np.array([1.0, 0.0]), np.zeros(2))


@kernel
def choose(params, public, contexts, rng):
    best, arm = -np.inf, 0
    for a in range(params.n_arms):
        value = contexts[a, 0] * public.direction[0] + contexts[a, 1] * public.direction[1]
        if value > best:
            best, arm = value, a
    return arm, 1.0


@kernel
def record_pull(params, public, arm, x, n):
    public.clock[0] += n
    public.clock[1] = arm


@kernel
def peeking(params, public, arm, x, n):
    public.clock[0] += n
    public.direction[0] += x[0]


@kernel
def accumulate(params, raw, arm, x, reward, n):
    for i in range(x.size):
        raw.total[i] += x[i] * reward


@kernel
def release_due(params, public):
    return public.clock[0] >= BATCH


@kernel
def sensitivity(params, public, norm):
    return 2.0  # another person has other features: x r and x' r' are of length one


@kernel
def summarise(params, raw, public, memo, statistic):
    for i in range(statistic.size):
        statistic[i] = raw.total[i]
        raw.total[i] = 0.0


@kernel
def publish(params, public, memo, release):
    for i in range(release.size):
        public.direction[i] = release[i]
    public.clock[0] = 0.0


KERNELS = Kernels(
    init=init,
    choose=choose,
    record_pull=record_pull,
    accumulate=accumulate,
    release_due=release_due,
    sensitivity=sensitivity,
    summarise=summarise,
    publish=publish,
)


class Hiding(ContextualPolicy):
    card = Card(
        title="a toy with private contexts",
        source="this file",
        noise=("Gaussian",),
        protects="contexts and rewards",
        view="joint",
    )
    kernels = KERNELS
    example: ClassVar = {"n_arms": 3, "dimension": 2}

    def __init__(self, n_arms: int = 3, dimension: int = 2, **options: Any) -> None:
        super().__init__(
            {"n_arms": n_arms, "dimension": dimension, "context_bound": 1.0}, **options
        )

    def _params(self) -> Params:
        return Params(self.n_arms)

    def _statistic(self) -> Statistic:
        return Statistic(max_sensitivity=2.0, max_abs_contribution=1.0, size=2, max_records=BATCH)


def hiding(**options: Any) -> Hiding:
    return Hiding(budget=ZCDP(0.5), seed=1, **options)


@pytest.mark.long
def test_loop_and_hand_tell_the_round_alone_and_play_the_same():
    world = table(hiding(), ROUNDS)
    one = hiding()
    assert looped(hiding(), world) == by_hand(one, world)
    assert one.session.state.public.clock[1] == -1.0
    assert "joint" in str(one.guarantee) or "everything but the decisions" in str(one.guarantee)


@pytest.mark.parametrize("way", [looped, by_hand])
def test_a_kernel_that_looks_at_the_features_does_not_run(way, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Hiding, "kernels", replace(KERNELS, record_pull=peeking))
    with pytest.raises((numba.TypingError, TypeError, ArgumentError)):
        way(hiding(), table(hiding(), ROUNDS))


def test_the_public_side_is_the_same_in_neighbouring_worlds_until_a_release():
    world = table(hiding(), ROUNDS)
    contexts = world.state.contexts.copy()
    contexts[2] = -contexts[2]
    other = ContextTable(contexts, 1.0 - world.state.rewards)
    sides = []
    for one in (world, other):
        subject = hiding()
        by_hand(
            subject, ContextTable(one.state.contexts[: BATCH - 1], one.state.rewards[: BATCH - 1])
        )
        sides.append([part.tobytes() for part in subject.session.state.public])
    assert sides[0] == sides[1]


# Registered policies -------------------------------------------------------------------------

HIDDEN = [case for case in BY_NORM if case.cls.card.hides_contexts]


@over(HIDDEN)
def test_other_features_and_rewards_leave_the_public_side_and_the_schedule_alone(case: Case):
    private_features_leave_no_trace(case.make)


@over(HIDDEN)
def test_no_working_memory_keeps_what_a_choice_was_made_of(case: Case):
    # ``frozen`` leaves it out.
    assert scratch_of(case.make().new_state().public) == []


@over(HIDDEN)
def test_a_choice_that_is_remembered_is_noticed(case: Case):
    honest = case.cls.kernels.choose

    def remembering(params, public, contexts, rng):
        arm, propensity = honest.py_func(params, public, contexts, rng)
        public.estimate[0] = arm + 1.0
        return arm, propensity

    walk = Walk(case.make())
    walk.kernels = replace(walk.kernels, choose=remembering)
    with pytest.raises(AssertionError, match="choose changes the public side"):
        walk.read("choose", walk.params, walk.public, walk.seen(walk.rng), walk.rng)


@over(HIDDEN)
def test_open_deviations_are_refused(case: Case):
    with pytest.raises(ArgumentError, match=r"^choices_public must be False"):
        case.make(choices_public=True)


@over(HIDDEN)
@pytest.mark.long
def test_a_record_that_was_lost_adds_nothing(case: Case):
    """Lost records with public contexts count as the default; with private ones as nothing."""
    policy = case.make(seed=1)

    def holds_something() -> bool:
        return bool(np.concatenate([part.ravel() for part in policy.session.state.raw]).any())

    for number, contexts in enumerate(contexts_of(policy)):
        if number >= 30 and holds_something():  # and was not released just now
            break
        policy.pull(contexts)
        policy.update(1.0)
    assert holds_something() or policy.ledger.releases == policy.rounds  # each by itself
    policy.session.give_up()
    assert not holds_something()
    assert policy.session.rounds.unreleased == {}
