"""Door: what is wrong is refused with an error that names it, and everything is as before."""

from __future__ import annotations

import inspect
import math
import warnings
from dataclasses import fields
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from suite import (
    ADVISED,
    BY_CLASS,
    CONTEXTUAL,
    FIRST_OF_CLASS,
    FIRST_OF_NAME,
    INFORMED,
    OF_KINDS,
    Case,
    over,
)

import dpbandits
from dpbandits import ArgumentError, PureDP, UpdateError
from dpbandits.constraints import Constraint, constraints_of
from dpbandits.policies.parts import _KINDS
from dpbandits.privacy.budgets import examples
from dpbandits.rooms import papers
from dpbandits.session.options import DEFAULTS
from dpbandits.testing.playing import docstring_says_what_is_taken, refuses
from dpbandits.testing.walk import frozen, play, pull, snapshot

BAD_OPTIONS: list[tuple[str, Any]] = [
    *[
        ("arms", value)
        for value in (
            3,
            None,
            "ab",
            [],
            [1.0, 2.0],
            [[]],
            [[[1.0]]],
            [[1.0], [1.0, 2.0]],
            [["a"]],
            [[1j]],
            [[math.nan]],
            [[1e101]],
        )
    ],
    *[("reward_range", value) for value in ((0, 1e-101), (0, 1e101), (1e7, 1e7 + 1))],
    *[("default_reward", value) for value in (-0.1, 1.1)],
    *[("grid", value) for value in (0, -1.0, 0.3, math.nan, "fine", True)],
    *[
        ("arm_names", value)
        for value in ("abc", ["a"], ["a", "a", "b"], [1, 2, 3], ["", "b", "c"], 3)
    ],
]
# Their values are tables, names or budgets, and have tests of their own; which learners there are
# depends on the class of the one that is given.
WITHOUT_CONSTRAINTS = {"arms", "arm_names", "budget", "grid", "learner"}


def takes(case: Case, name: str) -> bool:
    return name in DEFAULTS or name in inspect.signature(case.cls).parameters


@over(BY_CLASS)
def test_a_bad_argument_is_named_with_its_value(case: Case):
    for name, value in BAD_OPTIONS:
        if takes(case, name):
            refuses(case.make, name, value)


@over(FIRST_OF_CLASS)
def test_every_argument_has_a_constraint(case: Case):
    arguments = inspect.signature(case.cls).parameters
    assert set(arguments) - set(constraints_of(case.cls)) <= WITHOUT_CONSTRAINTS


def test_every_argument_of_a_part_has_a_constraint():
    papers()
    parts = {kind for kind in _KINDS.values() if kind.__module__.startswith("dpbandits.")}
    assert len(parts) > 15
    for kind in parts:
        names = {one.name for one in fields(kind)}
        assert names - set(constraints_of(kind)) <= {"learner"}, kind


def constrained(case: Case) -> list[tuple[str, Constraint]]:
    """The constraints of the arguments that the policy takes."""
    arguments = set(inspect.signature(case.cls).parameters) - WITHOUT_CONSTRAINTS
    return [(name, one) for name, one in constraints_of(case.cls).items() if name in arguments]


@over(FIRST_OF_CLASS)
def test_values_outside_of_a_constraint_are_refused(case: Case):
    for name, constraint in constrained(case):
        for value in constraint.refused:
            refuses(case.make, name, value)


def told_of(case: Case, name: str, value: Any) -> str:
    """The error where a value is refused, else nothing."""
    try:
        case.make(**{name: value})
    except ArgumentError as error:
        return str(error)
    return ""


@over(FIRST_OF_CLASS)
def test_values_at_the_ends_of_a_constraint_are_not_refused_by_it(case: Case):
    """Other arguments, and memory, may allow less."""
    for name, constraint in constrained(case):
        for value in constraint.allowed:
            assert f"{name} must be {constraint}, got" not in told_of(case, name, value)


@over([case for case in FIRST_OF_CLASS if case in CONTEXTUAL])
def test_an_argument_of_other_policies_is_no_argument(case: Case):
    own = set(inspect.signature(case.cls).parameters)
    for name in {"failure_probability", "counter", "radius_scale"} - own:
        with pytest.raises(TypeError, match=f"takes no argument {name}"):
            case.make(**{name: 1.0})


def test_a_running_sum_needs_a_horizon_unless_its_counter_does_not():
    for cls in (dpbandits.algorithms.PrivateLinUCB, dpbandits.algorithms.LinearThompson):
        for counter in (None, "tree", "toeplitz", "buffered", "honaker", "independent"):
            with pytest.raises(
                ArgumentError, match=r"^horizon must be given .*, unless counter='hybrid'"
            ):
                cls(3, 2, budget=PureDP(1.0), counter=counter)
        assert cls(3, 2, budget=PureDP(1.0), counter="hybrid").planned_rounds is None
        assert cls(3, 2, budget=None).planned_rounds is None
    for counter in ("toeplitz", "buffered"):  # their noise is Gaussian
        for cls in (dpbandits.algorithms.PrivateLinUCB, dpbandits.algorithms.AdaCOFUL):
            with pytest.raises(
                ArgumentError, match=r"^counter must be one of .* with Laplace noise"
            ):
                cls(3, 2, budget=PureDP(1.0), counter=counter, horizon=100)
    with pytest.raises(
        ArgumentError, match=r"^variant must not be 'published' for a PureDP budget"
    ):
        dpbandits.algorithms.AdaCOFUL(3, 2, budget=PureDP(1.0), horizon=100, variant="published")


@over(BY_CLASS)
def test_docstrings_tell_of_every_argument_and_when_to_choose(case: Case):
    docstring_says_what_is_taken(case.policy_class)


@over(FIRST_OF_CLASS)
def test_an_unknown_argument_is_a_type_error(case: Case):
    with pytest.raises(TypeError, match="epsilon_budget"):
        case.make(epsilon_budget=1.0)


@over(FIRST_OF_CLASS)
def test_only_budgets_that_fit_are_taken(case: Case):
    given: list[Any] = [*examples(), 1.0, "1", PureDP]
    for budget in given:
        if type(budget) in case.cls.card.notions:
            assert case.under(budget).make().budget == budget
        else:
            with pytest.raises(ArgumentError, match=r"^budget"):
                case.under(budget).make()


@over(BY_CLASS, short=OF_KINDS)
def test_a_bad_reward_changes_nothing(case: Case):
    policy = case.make(seed=2)
    play(policy, lambda d: 0.5, until=1)
    decision = pull(policy)
    before = snapshot(policy)
    bad: list[Any] = ["1", b"1", [1.0, 2.0], 1j, np.zeros(2), np.zeros(1), {}, decision]
    bad += [np.datetime64("2020-01-01"), np.timedelta64(1), datetime(2020, 1, 1)]
    for reward in bad:
        for arguments in ((reward,), (reward, decision)):
            with pytest.raises(ArgumentError, match=r"^reward must be a number"):
                policy.update(*arguments)
        assert snapshot(policy) == before
    policy.update(0.5, decision)
    assert snapshot(policy) != before


@over(BY_CLASS, short=OF_KINDS)
def test_bad_decisions_and_arms_change_nothing(case: Case):
    policy, other = case.make(seed=2), case.make(seed=2)
    before = snapshot(policy)
    with pytest.raises(UpdateError, match="needs a call of pull"):
        policy.update(1.0)
    with pytest.raises(UpdateError, match="needs a call of pull"):
        policy.expire()
    assert snapshot(policy) == before
    decision, foreign = pull(policy), pull(other)
    before = snapshot(policy)
    for stranger in (foreign, 0, "0", (0, 1)):
        with pytest.raises(UpdateError, match="this policy's pull"):
            policy.update(1.0, stranger)  # type: ignore[arg-type]
    for arm in (-1, policy.n_arms, 0.5, True, "0", math.nan):
        with pytest.raises(ArgumentError, match=r"^arm must be"):
            policy.update(1.0, decision, arm=arm)  # type: ignore[arg-type]
    assert snapshot(policy) == before
    assert policy.update(1.0, decision) is True


BAD_CONTEXTS = [
    None,
    0,
    "contexts",
    [["a", "b"], ["c", "d"], ["e", "f"]],
    [["0", "1"], ["1", "0"], ["1", "1"]],
    [[b"0", b"1"], [b"1", b"0"], [b"1", b"1"]],
    [[0, 1], [1, None], [1, 1]],
    [[10**400, 1], [1, 0], [1, 1]],
    np.zeros(2),
    np.zeros((2, 3)),
    np.zeros((3, 3)),
    np.zeros((4, 2)),
    np.zeros((1, 3, 2)),
    [[0.0, 1.0], [1.0], [0.0, 0.0]],
    np.full((3, 2), 1j),
    np.full((3, 2), None),
    {"contexts": 1},
]
NO_NUMBERS = [math.nan, math.inf, -math.inf, 1e200]


def refused(case: Case, name: str, given: Any) -> None:
    """A view that is refused leaves the policy as it was, and what waits for its answer goes on
    waiting.
    """
    policy = case.make(seed=2)
    play(policy, lambda d: 0.5, until=1)
    waiting = pull(policy)
    before = snapshot(policy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ArgumentError, match=rf"^{name} must") as caught:
            policy.pull(given)
    assert caught.value.argument == name
    assert snapshot(policy) == before
    assert policy.update(0.5, waiting) is True


@over([case for case in BY_CLASS if case in CONTEXTUAL], short=OF_KINDS)
def test_bad_contexts_change_nothing(case: Case):
    for contexts in BAD_CONTEXTS:
        # How many candidates a person has is her own, too.
        if case.cls.card.hides_contexts and shape_of(contexts) in ((3, 2), (4, 2)):
            policy = case.make(seed=2)
            assert policy.pull(contexts).recorded  # type: ignore[arg-type]
            assert policy.diagnostics.blanked == 1
        else:
            refused(case, "contexts", contexts)


def shape_of(contexts: Any) -> tuple[int, ...]:
    try:
        return np.shape(contexts)
    except ValueError:  # rows of different lengths
        return ()


@over([case for case in BY_CLASS if case in CONTEXTUAL], short=OF_KINDS)
@pytest.mark.parametrize("entry", NO_NUMBERS)
def test_entries_that_are_no_numbers_are_refused_or_blank_where_an_error_would_tell(
    case: Case, entry: float
):
    contexts = np.array([[0.0, entry], [0.0, 1.0], [1.0, 0.0]])
    if not case.cls.card.hides_contexts:
        refused(case, "contexts", contexts)
        return
    one, other = case.make(seed=2), case.make(seed=2)
    blank = np.where(contexts == entry, 0.0, contexts)
    assert one.pull(contexts).arm == other.pull(np.nan_to_num(blank, nan=0.0)).arm
    assert frozen(one.session.state.raw) == frozen(other.session.state.raw)
    assert (one.diagnostics.blanked, other.diagnostics.blanked) == (1, 0)
    assert one.update(0.5) is True


HALVES = [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
BAD_ADVICE = [
    None,
    0,
    "advice",
    {"advice": 1},
    np.zeros(3),
    HALVES,
    np.full((3, 4), 0.25),
    np.full((1, 4, 3), 1 / 3),
    [*HALVES, [1.0]],
    [*HALVES, ["0", "0", "1"]],
    [*HALVES, [0.0, 0.0, None]],
    [*HALVES, [1j, 0.0, 0.0]],
    [*HALVES, [0.5, 0.6, -0.1]],
    [*HALVES, [0.0, 0.0, 0.0]],
    [*HALVES, [0.5, 0.5, 0.5]],
    [*HALVES, [0.5, 0.5, 1e-5]],
    [*HALVES, [math.nan, 0.5, 0.5]],
    [*HALVES, [math.inf, 0.0, 0.0]],
    np.full((4, 3), 1e200),
]


@over([case for case in BY_CLASS if case in ADVISED], short=OF_KINDS)
def test_bad_advice_changes_nothing(case: Case):
    for advice in BAD_ADVICE:
        refused(case, "advice", advice)


@over([case for case in BY_CLASS if case in ADVISED], short=OF_KINDS)
@pytest.mark.parametrize("kind", [np.float32, np.int64, np.bool_, list, np.asfortranarray])
def test_advice_of_any_numeric_kind_is_taken_and_left_alone(case: Case, kind: Any):
    views = np.eye(3)[np.random.default_rng(1).integers(0, 3, (40, 4))]
    one, other = case.make(seed=2), case.make(seed=2)
    for view in views:
        given = view.tolist() if kind is list else kind(view)
        decision = one.pull(given)
        assert decision.arm == other.pull(view).arm
        assert np.array_equal(given, view)
        if not isinstance(given, list):
            given[...] = 0
        assert one.update(0.5, decision)
        assert other.update(0.5)
    assert frozen(one.session.state.public) == frozen(other.session.state.public)


@over([case for case in BY_CLASS if case in ADVISED], short=OF_KINDS)
def test_advice_that_misses_one_by_rounding_is_made_to_sum_to_one(case: Case):
    policy = case.make(seed=2, choices_public=True)
    decision = policy.pull(np.full((4, 3), 0.3333333))
    assert policy.session.rounds.pending[decision.number].contexts == pytest.approx(
        np.full((3, 4), 1 / 3), rel=1e-15
    )


@over([case for case in FIRST_OF_CLASS if case in ADVISED])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "4", None, math.nan, 10**6], ids=str)
def test_a_bad_number_of_experts_is_named(case: Case, value: Any):
    with pytest.raises(ArgumentError, match=r"^n_experts must be .* got"):
        case.make(n_experts=value)


@over([case for case in BY_CLASS if case not in INFORMED], short=OF_KINDS)
def test_contexts_for_a_policy_without_any_change_nothing(case: Case):
    policy = case.make(seed=2)
    before = snapshot(policy)
    strangers: list[Any] = [0, np.zeros((3, 2)), [], "contexts"]
    for contexts in strangers:
        with pytest.raises(ArgumentError, match=r"^contexts must not be given"):
            policy.pull(contexts)
        assert snapshot(policy) == before


@over([case for case in BY_CLASS if case in CONTEXTUAL], short=OF_KINDS)
@pytest.mark.parametrize("kind", [np.float32, np.int64, np.bool_, list, np.asfortranarray])
def test_contexts_of_any_numeric_kind_are_taken_and_left_alone(case: Case, kind: Any):
    views = np.random.default_rng(1).integers(0, 2, (40, 3, 2)).astype(float)
    one, other = case.make(seed=2), case.make(seed=2)
    for view in views:
        given = view.tolist() if kind is list else kind(view)
        decision = one.pull(given)
        assert decision.arm == other.pull(view).arm
        assert np.array_equal(given, view)
        if not isinstance(given, list):
            given[...] = 0  # what the caller does with its own array afterwards does not matter
        assert one.update(0.5, decision)
        assert other.update(0.5)
    assert frozen(one.session.state.public) == frozen(other.session.state.public)


@over([case for case in FIRST_OF_NAME if case in CONTEXTUAL], short=OF_KINDS)
def test_long_contexts_are_scaled_and_short_ones_are_not(case: Case):
    policy, directions = (
        case.make(seed=2, context_bound=2.0),
        np.array([[0.6, 0.8], [-1.0, 0.0], [0.0, 1.0]]),
    )
    for length in (0.0, 1.0, 2.0, 2.5, 1e99):
        kept = policy.seen(length * directions)
        assert np.linalg.norm(kept, axis=1).max() <= 2.0
        assert kept == pytest.approx(min(length, 2.0) * directions, rel=1e-14)
        pulled = policy.pull(length * directions)
        assert policy.session.rounds.pending[pulled.number].weights == pytest.approx(
            kept[pulled.arm]
        )
        policy.update(0.5, pulled)


@over(CONTEXTUAL)
def test_without_clipping_contexts_stay_long_and_the_guarantee_is_void(case: Case):
    policy = case.make(seed=2, clip=False)
    assert policy.seen(3.0 * np.eye(3)[:, :2]).max() == 3.0
    assert policy.guarantee.holds is None


@over(BY_CLASS, short=OF_KINDS)
def test_rewards_outside_the_range_are_clipped(case: Case):
    def released(reward: float) -> tuple[bytes, int, int]:
        policy = case.make(seed=2, reward_range=(-1.0, 2.0), default_reward=0.5)
        play(policy, lambda d: reward, until=1)
        return (
            policy.session.state.wall.release.tobytes(),
            policy.diagnostics.clipped,
            policy.diagnostics.missing,
        )

    # A clipped reward is the end of the range, through the same noise; the operator knows of it.
    for outside, end in ((1e9, 2.0), (-1e9, -1.0), (math.inf, 2.0), (-math.inf, -1.0)):
        (one, clipped, missing), (other, *counts) = released(outside), released(end)
        assert one == other
        assert clipped > 0
        assert missing == 0
        assert counts == [0, 0]
    (one, clipped, missing), (other, *counts) = released(math.nan), released(0.5)
    assert one == other
    assert (clipped, missing > 0, counts) == (0, True, [0, 0])
