"""First mistakes of newcomers: each is answered in one sentence that names what was called and says
what to write instead.
"""

import pickle

import pytest

import dpbandits as dpb
from dpbandits.environments import Bernoulli
from dpbandits.policies import Policy, registered
from dpbandits.policies.making import misfit

EVERY = pytest.mark.parametrize("cls", registered().values(), ids=registered())
BUDGET = dpb.ZCDP(0.5)


def told(call, kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert "__init__" not in message
    return message


def needed(cls) -> dict[str, object]:
    """What a small instance needs, and a budget that it takes."""
    return {**cls.example, "budget": next(iter(cls.example_budgets()), None)}


@EVERY
def test_a_missing_argument_is_named_with_the_class_that_was_called(cls):
    given = needed(cls)
    for name in given:
        rest = {one: value for one, value in given.items() if one != name}
        if misfit(cls, (), rest) is not None:
            message = told(lambda rest=rest: cls(**rest), TypeError)
            assert message.startswith(f"{cls.__name__} needs {name}")
    if cls.example_budgets():
        message = told(lambda: cls(**cls.example), TypeError)
        for budget in cls.example_budgets():
            assert repr(budget) in message
        assert "None for no privacy" in message


@EVERY
def test_what_is_shown_for_a_missing_budget_can_be_written(cls):
    """Each of the budgets in the message, and None."""
    for budget in [*cls.example_budgets(), None]:
        assert cls(**{**cls.example, "budget": budget}).budget == budget


@EVERY
@pytest.mark.parametrize("name", ["epsilon", "delta", "rho"])
def test_a_number_of_a_budget_is_sent_there(cls, name: str):
    message = told(lambda: cls(**needed(cls), **{name: 1.0}), TypeError)
    assert message.startswith(f"{cls.__name__} takes no argument {name}; {name} belongs to ")
    budgets = cls.example_budgets()
    assert "no privacy" in message if not budgets else "budget=" in message
    holders = [one for one in budgets if name in vars(one)] or budgets
    assert all((repr(one) in message) == (one in holders) for one in budgets)


@EVERY
def test_a_misspelt_argument_is_answered_with_the_one_that_was_meant(cls):
    message = told(lambda: cls(**needed(cls), reward_rnage=(0, 1)), TypeError)
    assert message == f"{cls.__name__} takes no argument reward_rnage; did you mean reward_range?"


@EVERY
@pytest.mark.parametrize("budget", [1.0, "zcdp=1", (1.0, 1e-5), dpb.PureDP])
def test_what_is_no_budget_is_answered_with_one(cls, budget: object):
    message = told(lambda: cls(**{**needed(cls), "budget": budget}), dpb.ArgumentError)
    assert message.startswith("budget must be None")
    assert message.endswith(f"got {budget!r}")
    assert cls.__name__ in message
    for example in cls.example_budgets()[:1]:
        assert f"as in budget={example!r}" in message


@EVERY
def test_too_many_by_position_are_told_which_go_by_name(cls):
    message = told(lambda: cls(*(20 * [1])), TypeError)
    assert message.startswith(f"{cls.__name__} takes ")
    assert "by position" in message


def test_names_of_arms_do_not_count_them_and_say_so():
    message = told(
        lambda: dpb.algorithms.MergedIMED(budget=BUDGET, arm_names=["a", "b"]), TypeError
    )
    assert message == "MergedIMED needs n_arms: n_arms=2"


def test_an_error_within_a_constructor_stays_what_it_is():
    class Broken(dpb.algorithms.UCB1):
        def __init__(self, n_arms: int) -> None:
            super().__init__(n_arms)
            raise TypeError("something within")

    with pytest.raises(TypeError, match=r"^something within$"):
        Broken(3)
    assert told(lambda: Broken(), TypeError) == "Broken needs n_arms: n_arms=3"


def test_a_constructor_that_takes_anything_is_left_alone():
    class Wide(dpb.algorithms.UCB1):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(3, **options)

    assert Wide(answers_within=2).answers_within == 2
    assert told(lambda: Wide(patient=2), TypeError) == "Wide takes no argument patient"


def test_patience_has_another_name():
    for make in (dpb.Arms, dpb.algorithms.MergedIMED, dpb.bandit):
        message = told(lambda make=make: make(3, budget=None, patience=2), TypeError)
        assert message.endswith("; the argument is now called answers_within")


def test_a_chooser_of_the_first_version_says_patience():
    policy = dpb.algorithms.MergedIMED(3, budget=None, answers_within=2)
    text = policy.chooser().to_json()
    old = text.replace('"answers_within"', '"patience"')
    assert old != text
    assert dpb.policies.Chooser.from_json(old).to_json() == text


@EVERY
def test_classes_and_policies_pickle_and_are_abstract_as_before(cls):
    assert pickle.loads(pickle.dumps(cls)) is cls
    with pytest.raises(TypeError, match="abstract"):
        Policy({"n_arms": 2}, budget=None)


# What is asked of the package, and of a living policy ----------------------------------------------


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("MergedImed", "MergedIMED"),
        ("mergedimed", "MergedIMED"),
        ("MergdIMED", "MergedIMED"),
        ("environment", "environments"),
        ("simulated", "simulate"),
    ],
)
def test_a_misspelt_name_of_the_package_is_answered_with_the_one_that_was_meant(name, meant):
    message = told(lambda: getattr(dpb, name), AttributeError)
    assert message == f"module 'dpbandits' has no attribute {name!r}; did you mean {meant}?"


def test_a_name_like_no_other_gets_no_guess():
    message = told(lambda: dpb.xyzzy, AttributeError)
    assert message == "module 'dpbandits' has no attribute 'xyzzy'"
    assert not hasattr(dpb, "_MergedImed")


@pytest.mark.parametrize("given", [dpb.algorithms.MergedIMED, [dpb.algorithms.MergedIMED]])
def test_a_class_in_the_place_of_a_policy_is_told_to_be_one(given):
    message = told(lambda: dpb.simulate(given, Bernoulli([0.1, 0.2]), horizon=10), ValueError)
    assert "the class MergedIMED: make a policy of it, MergedIMED(...)" in message


def test_a_name_in_the_place_of_policies_is_quoted_in_full():
    message = told(
        lambda: dpb.simulate("MergedIMED", Bernoulli([0.1, 0.2]), horizon=10), ValueError
    )
    assert message.endswith("got 'MergedIMED'")


@pytest.fixture
def policy() -> Policy:
    return dpb.algorithms.MergedIMED(2, budget=BUDGET, seed=1)


def test_an_arm_in_pull_is_told_that_the_policy_chooses(policy):
    message = told(lambda: policy.pull(1), dpb.ArgumentError)
    assert message == "contexts must not be given, because MergedIMED takes none"


@pytest.mark.parametrize("swapped", [True, False])
def test_a_decision_is_no_reward(policy, swapped: bool):
    decision = policy.pull()
    arguments = (decision, 1.0) if swapped else (decision,)
    message = told(lambda: policy.update(*arguments), dpb.ArgumentError)
    assert message.startswith("reward must be a number, got a decision: the decision comes second")
    assert policy.update(1.0, decision)  # nothing had changed


def test_no_reward_counts_as_a_missing_one(policy):
    policy.pull()
    assert policy.update(None)
    assert policy.diagnostics.missing == 1


def test_an_arm_in_the_place_of_a_decision_leads_to_arm(policy):
    policy.pull()
    message = told(lambda: policy.update(1.0, 0), dpb.UpdateError)
    wanted = "decision must come from this policy's pull(), got int. Give an arm as in arm=0"
    assert message == wanted
    assert policy.update(1.0, arm=0)
