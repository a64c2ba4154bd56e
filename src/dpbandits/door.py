"""The front door: make a private bandit from known facts of the decision."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from numpy.typing import ArrayLike

from .errors import ArgumentError
from .policies import Policy
from .policies.making import unknown_argument
from .policies.problem import DecisionProblem
from .privacy.budgets import NOTIONS, Budget, examples, read_budget
from .validation import shown

if TYPE_CHECKING:
    from . import algorithms
    from .algorithms.bases.local import LocalPolicy

ASK: Any = object()  # a word that was not given
_Arms = int | Sequence[str]
_Budget = Budget | Mapping[str, object] | None  # or its form in a file
_Shuffle = Literal["shuffle"]
_Local = Literal["local"]
_Both = Literal["contexts and rewards"]
_Search = Literal["best arm"]


@overload
def bandit(
    arms: _Arms = ..., budget: _Budget = ..., *, trust: _Shuffle, goal: _Search, **words: Any
) -> algorithms.BestArmShuffled: ...
@overload
def bandit(
    arms: _Arms = ..., budget: _Budget = ..., *, trust: _Local, goal: _Search, **words: Any
) -> algorithms.LDPTopTwo: ...
@overload
def bandit(
    arms: _Arms = ..., budget: _Budget = ..., *, goal: _Search, **words: Any
) -> algorithms.BestArm: ...
@overload
def bandit(
    arms: _Arms = ..., budget: _Budget = ..., *, trust: _Shuffle, protects: _Both, **words: Any
) -> algorithms.HiddenLinearShuffled: ...
@overload
def bandit(
    arms: _Arms = ..., budget: _Budget = ..., *, trust: _Shuffle, **words: Any
) -> algorithms.ArmsShuffled: ...
@overload
def bandit(
    arms: _Arms = ..., budget: _Budget = ..., *, trust: _Local, protects: _Both, **words: Any
) -> algorithms.HiddenLinearLocal | algorithms.HiddenGLMLocal: ...
@overload
def bandit(
    arms: _Arms = ..., budget: _Budget = ..., *, trust: _Local, **words: Any
) -> LocalPolicy: ...
@overload
def bandit(arms: _Arms = ..., budget: _Budget = ..., **words: Any) -> Policy: ...


def bandit(
    arms: int | Sequence[str] = ASK,
    budget: Budget | Mapping[str, object] | None = ASK,
    *,
    features: int | ArrayLike | None = None,
    person: int | None = None,
    experts: int | None = None,
    link: str | None = None,
    protects: str = "rewards",
    trust: str = "central",
    horizon: int | None = None,
    max_rounds: int | None = None,
    answers_within: int | str | None = 0,
    goal: str = "regret",
    drift: int | str | None = None,
    **options: Any,
) -> Policy:
    """Make a private bandit: the default policy for a decision problem.

    Args:
        arms: their number, or their names.
        budget: limits how much anyone can learn about one person: ``PureDP(1.0)``, ``ZCDP(0.5)``,
            ``ApproxDP(1.0, 1e-6)`` and so on.  Files write ``{"zcdp": 0.5}``.  None means no
            privacy.
        features: a fixed matrix of shape (K, d) with a row for each arm; or the number of features
            that each arm has in every round.
        person: the number of features of a person: one vector for all arms.  Each arm has its own
            model.
        experts: the number of experts that give advice before each choice.
        link: how mean rewards follow from features: "logistic", "probit", "identity", or one of
            ``dpbandits.glm.register_link``; by default they are linear.
        protects: "rewards"; or "contexts and rewards" where features are private, too.
        trust: "central", where the operator of the policy sees raw data; or "shuffle" or "local".
            With "local" and ``reports=True`` only a person's own device sees them, and likewise
            with "shuffle" and ``messages=True``.  Without these the operator sees them.
        horizon: the largest number of rounds.  It is required with features of every round,
            ``person``, and ``experts`` under local trust.  With ``goal="best arm"``, the search has
            that many rounds; without a horizon it ends once it errs with a probability of at most
            ``failure_probability``, 0.05 by default.  For other goals, finite arms and fixed
            features need no horizon, and plan for a given one.
        max_rounds: the most rounds of one person; None where everyone comes once.
        answers_within: the most pulls after which an answer may come, or the longest time, such as
            "6h"; None waits for all.
        goal: "regret", to keep the total regret small; or "best arm", to identify the best arm.
        drift: roughly how many rounds pass between changes of the best arm; "any" where rewards
            follow no law; None where they follow a fixed one.
        **options: other arguments of policies: ``seed``, ``noise``, ``reward_range`` and so on; see
            ``Options``, and the class that is returned.

    Returns:
        An instance of the default class of the setting, ``Arms``, ``ArmsLocal``, ``ArmsShuffled``,
        ``BestArm``, ``BestArmShuffled``, ``LDPTopTwo``, ``Adversarial``, ``Experts``, ``Linear``,
        ``FixedLinear``, ``GLM`` or one of those that hide contexts.  Its ``repr`` is a call that
        makes it again.  Its card lists the choices, and ``Setting(...).default`` gives the reasons.

    Raises:
        ArgumentError: an argument is missing, out of range, or does not go with another.
        TypeError: there is no such argument or option.

    See also: ``plan``, ``default_for``.

    Example:
        >>> from dpbandits import ZCDP, bandit
        >>> policy = bandit(["blue", "green"], budget=ZCDP(0.5), seed=1)
        >>> decision = policy.pull()
        >>> decision.name, policy.update(1.0, decision)
        ('blue', True)
    """
    if arms is ASK:
        raise ArgumentError("arms must be given, as a number or a list of names", "arms")
    budget = budget_of(budget, options)
    if "failure_probability" in options and horizon is not None and goal == "best arm":
        raise ArgumentError(
            f"horizon must not be given with failure_probability, got {horizon}: a search ends"
            " either after horizon rounds or at that error probability",
            "horizon",
        )
    problem = DecisionProblem(
        arms, features, person, experts, link, protects, trust, goal, drift, horizon
    )
    found = problem.the_default()
    cls = found.policy_class
    _check_words(cls, options)
    _check_fit(cls, problem, budget, options)
    names = {} if problem.arm_names is None else {"arm_names": problem.arm_names}
    settings = {"budget": budget, "max_rounds": max_rounds, "answers_within": answers_within}
    try:
        cls, arguments = found.with_parts(problem.given, options)
        policy: Policy = cls(**arguments, **settings, **names)
    except ArgumentError as error:
        raise _in_words_of_the_door(error) from None
    return policy


def budget_of(given: object, options: Mapping[str, Any]) -> Budget | None:
    """A budget, or its form in a file; ``options`` may have its numbers by mistake."""
    written = ", ".join(map(repr, examples()))
    if given is ASK:
        for word in ("epsilon", "delta", "rho", "alpha", "mu"):
            if word in options:
                raise ArgumentError(
                    f"{word} must be part of a budget: give one of budget={written}",
                    word,
                )
        raise ArgumentError(
            f"budget must be given, as one of {written}, or None for no privacy"
            " (docs/privacy/budgets.md)",
            "budget",
        )
    if given is None or isinstance(given, Budget):
        return given
    if isinstance(given, Mapping) and len(given) == 1 and next(iter(given)) in NOTIONS:
        ((key, numbers),) = given.items()
        return read_budget(key, numbers)
    raise ArgumentError(
        f"budget must be one like {written}, or None, or a dict like {{'zcdp': 0.5}}, got"
        f" {shown(given)}",
        "budget",
    )


def _check_words(cls: Any, options: Mapping[str, Any]) -> None:
    """Options are those of the preset, or of the class behind it, as ``index=KLUCB()``."""
    words = inspect.signature(bandit).parameters
    of_policies = {
        **inspect.signature(cls).parameters,
        **inspect.signature(getattr(cls, "policy_class", cls)).parameters,
    }
    known = {**words, **of_policies}.keys() - {"options", *_SAID}
    for name in options:
        if name in _SAID:
            raise TypeError(f"bandit takes no argument {name}; did you mean {_SAID[name]}?")
        if name not in of_policies:
            hint = unknown_argument(cls, name, sorted(known))
            raise TypeError(f"bandit takes no argument {name} in this setting; {hint}")


def _check_fit(
    cls: Any, problem: DecisionProblem, budget: Budget | None, options: Mapping[str, Any]
) -> None:
    """Refuse a request that the setting's policy cannot fulfil, in words of the setting."""
    where = f"for {problem.title} under {problem.trust} trust"
    if budget is not None and not cls.card.takes(budget):
        able = " or ".join(repr(one) for one in cls.example_budgets())
        raise ArgumentError(f"budget must be of the kind {able} {where}, got {budget!r}", "budget")
    taken = inspect.signature(cls).parameters
    horizon = taken.get("horizon")
    # With noise in a tree of releases, which is planned ahead.
    counts = budget is not None and "counter" in taken and options.get("counter") != "hybrid"
    needed = horizon is not None and (counts or horizon.default is horizon.empty)
    if needed and problem.horizon is None:
        raise ArgumentError(
            f"horizon must be given {where}, as the largest number of rounds", "horizon"
        )


_SAID = {
    "n_arms": "arms",
    "arm_names": "arms",
    "rounds_per_change": "drift",
    "n_experts": "experts",
    "dimension": "features",
}


def _in_words_of_the_door(error: ArgumentError) -> ArgumentError:
    name = error.argument
    text = str(error)
    for theirs, ours in _SAID.items():
        text = text.replace(f"given with {theirs},", f"given with {ours},")
    if name in _SAID:
        text = text.replace(name, _SAID[name], 1)
    return ArgumentError(text, _SAID.get(name or "", name))
