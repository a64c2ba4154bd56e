"""A study: environments x policies x budgets, read from a TOML file in which every mistake is
reported at once.

title = "Two treatments"
horizon = 10_000
runs = 50
bounds = true                   # draw what theory promises
decided = 0.95                  # after how many people it is decided which arm is best
imports = ["my_policies"]       # modules with ``@register``ed policies of your own

[budgets]                       # every policy runs with those of its notion
zcdp = [0.1, 1.0]
approx = [[1.0, 1e-6]]          # [epsilon, delta]; rdp = [[alpha, epsilon]]; pure = [epsilon, ...]
open = true                     # and once without privacy

[[environments]]
kind = "Bernoulli"
means = [0.6, 0.5]

[bandit]                        # the default of the setting, in the words of ``bandit``
trust = "central"

[[policies]]                    # a policy of ``dpbandits list``, or a class with its parts
kind = "Arms"
index = {kind = "UCB", alpha = 1.5}
budgets.zcdp = [0.5]            # instead of the study's
"""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from ..environments import ArmsEnvironment, ContextEnvironment, LoggedTrial
from ..errors import ArgumentError, BudgetWarning, StudyError
from ..policies import DecisionProblem, Policy, find
from ..privacy import Budget
from ..privacy.budgets import examples
from ..simulation.deciding import Question
from ..simulation.parallel import shared_name
from ..simulation.tasks import importing_from
from .cautions import cautions
from .schema import (
    Budgets,
    Horizon,
    PolicyEntry,
    Problems,
    Record,
    StudyForm,
    WorldEntry,
    build,
    form_problems,
    without_name,
)
from .worlds import Worlds, read_worlds

DEMO = Path(__file__).with_name("demo.toml")

# A study sets the first three itself; noise is always simulated, from the study's seed.
_NOT_IN_FILES = {"n_arms", "n_experts", "dimension", "budget", "seed", "noise", "grid"}
_ANY_HORIZON = 1000
_WORDS = {one.name for one in fields(DecisionProblem)} - {"arms"}

M = TypeVar("M")


@dataclass(frozen=True)
class Study:
    """A comparison that is ready to run.

    Attributes:
        title, description: for people.
        seed, runs, first_run, horizon, record: as ``simulate`` takes them.
        bounds: whether the report draws proved bounds beside measured regret.
        decided: the question that is asked at each recorded round; None for none.
        environments: the environments of the simulation; all have the same number of arms.
        log: a logged trial that the policies are replayed on; None without one.
        policies: one for every policy and budget that fit.
        config: all of this as it was declared; JSON data.
        folder: the folder that paths in ``config`` are relative to.
    """

    title: str
    description: str
    seed: int
    runs: int
    first_run: int
    horizon: int
    record: int | list[int]
    bounds: bool
    decided: Question | None
    environments: tuple[ArmsEnvironment | ContextEnvironment, ...]
    log: LoggedTrial | None
    policies: tuple[Policy, ...]
    config: dict[str, Any]
    folder: Path

    @property
    def cautions(self) -> list[str]:
        """Cautions on budgets that are valid but give little protection."""
        return cautions([policy.budget for policy in self.policies], self.horizon)

    def altered(self, **changes: Any) -> Study:
        """This study with some keys of the file changed.

        Raises:
            StudyError: a change is wrong.
        """
        return parse({**self.config, **changes}, "the altered study", self.folder)

    def quick(self) -> Study:
        """A small version, to try a study out: 5 runs of at most 10,000 rounds."""
        horizon = min(self.horizon, 10_000)
        rounds = self.record
        record = rounds if isinstance(rounds, int) else [r for r in rounds if r <= horizon]
        return self.altered(runs=min(self.runs, 5), horizon=horizon, record=record)


def load_study(path: str | Path, *, before_policies: Callable[[], None] = lambda: None) -> Study:
    """Read and check a study file, and run the modules that it imports.

    Args:
        path: of the file.
        before_policies: called before the policies are built, which takes seconds where nothing is
            compiled yet.

    Returns:
        A ``Study``, ready to run.

    Raises:
        StudyError: the file is missing, or anything in it is wrong; ``problems`` names everything
            that is.

    Warns:
        BudgetWarning: budgets are so loose that they say little.

    Example:
        >>> load_study(DEMO).title
        'DoctorBandit: choosing an HIV treatment in private'
    """
    path = Path(path)
    try:
        data = _whole(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except FileNotFoundError:
        raise StudyError(str(path), ["there is no such file"]) from None
    except OSError as error:
        raise StudyError(str(path), [f"cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        said = f"is not UTF-8 text: {error.reason} at byte {error.start}"
        raise StudyError(str(path), [said]) from None
    except tomllib.TOMLDecodeError as error:
        raise StudyError(str(path), [f"is not TOML: {error}"]) from None
    study = parse(data, str(path), path.parent, before_policies)
    if found := study.cautions:
        warnings.warn(" ".join(found), BudgetWarning, stacklevel=2)
    return study


def _whole(value: Any) -> Any:
    """Turn whole floats into integers, because 1e6 is a number of rounds, too."""
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**63:
        return int(value)
    return value


def _place_in_file(problem: str) -> str:
    """A problem of a file that has ``[bandit]``, which was read as the first policy."""

    def place(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"policies[{number - 1}]" if number else "bandit"

    return re.sub(r"policies\[(\d+)\]", place, problem)


def parse(
    data: dict[str, Any],
    source: str,
    folder: Path,
    before_policies: Callable[[], None] = lambda: None,
) -> Study:
    """The study of a file's data, or of ``Study.config``; arguments as of ``load_study``, and
    ``source`` for messages.
    """
    problems = Problems()
    alone = data.get("bandit")
    if isinstance(alone, dict):  # which is one policy more
        others = {name: value for name, value in data.items() if name != "bandit"}
        data = {**others, "policies": [{"kind": "bandit", **alone}, *data.get("policies", [])]}
    try:
        form = StudyForm.model_validate(data)
    except ValidationError as error:
        form = None
        problems.extend(form_problems(error))
    # Whatever has the right form is built even where other parts do not, so that all mistakes are
    # found in one go.
    horizon = _valid(Horizon, data.get("horizon"))
    worlds = read_worlds(_entries(WorldEntry, data, "environments"), folder, horizon, problems)
    budgets = _valid(Budgets, data.get("budgets", {}))
    if modules := _valid(list[str], data.get("imports", [])):
        _import(modules, folder, problems)
    before_policies()
    entries = _entries(PolicyEntry, data, "policies")
    policies = _policies(entries, budgets, worlds, horizon, problems)
    record = _valid(Record, data.get("record"))
    rounds = record if isinstance(record, list) and horizon is not None else []
    if late := [one for one in rounds if one > horizon]:
        problems.add("record", f"must hold rounds up to the horizon {horizon}, got {late}")
    if problems or form is None:
        places = _place_in_file if isinstance(alone, dict) else str
        raise StudyError(source, list(map(places, problems)))
    config = {name: data.get(name, getattr(form, name)) for name in StudyForm.model_fields}
    config["budgets"] = data.get("budgets", {})
    sizes = ("seed", "runs", "first_run", "horizon", "record", "bounds", "decided")
    return Study(
        **{name: getattr(form, name) for name in ("title", "description", *sizes)},
        environments=tuple(worlds.simulated),
        log=worlds.log,
        policies=tuple(policies),
        config=config,
        folder=folder,
    )


def _valid(form: Any, data: Any) -> Any:
    """``data`` in the given form; None where it does not fit, which the whole file has reported."""
    try:
        return TypeAdapter(form).validate_python(data, strict=True)
    except ValidationError:
        return None


def _entries(form: type[M], data: dict[str, Any], section: str) -> list[tuple[str, M]]:
    listed = data.get(section)
    entries = enumerate(listed if isinstance(listed, list) else [])
    checked = [(f"{section}[{i}]", _valid(form, raw)) for i, raw in entries]
    return [(place, entry) for place, entry in checked if entry is not None]


def _import(modules: list[str], folder: Path, problems: Problems) -> None:
    """Import modules from the study's folder or the path, and with them their registered
    policies.
    """
    with importing_from(folder):
        importlib.invalidate_caches()  # the file may be younger than the last look into the folder
        for i, module in enumerate(modules):
            try:
                importlib.import_module(module)
            # whatever the module does wrong is wrong with the file that names it
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
                problems.add(f"imports[{i}]", f"{module} cannot be imported: {said}")


# Policies ------------------------------------------------------------------------------------


def _policies(
    entries: list[tuple[str, PolicyEntry]],
    budgets: Budgets | None,
    worlds: Worlds,
    horizon: int | None,
    problems: Problems,
) -> list[Policy]:
    seen: dict[str, str] = {}
    policies = []
    for place, entry in entries:
        try:
            cls, given = _asked(entry, worlds)
        except ArgumentError as error:
            name = error.argument or "kind"
            problems.add(f"{place}.{name}", without_name(error) if error.argument else str(error))
            continue
        known = set(inspect.signature(cls).parameters) - _NOT_IN_FILES
        for name in sorted(given.keys() & (_NOT_IN_FILES | (_of_budgets() - known))):
            problems.add(f"{place}.{name}", _elsewhere(name, cls))
            del given[name]
        if worlds.sound and (misfit := worlds.misfit(cls, given)):
            problems.add(place, misfit)
            continue
        seen_here = worlds.arguments_for(cls).items()
        fixed = {name: value for name, value in seen_here if name not in given}
        if "horizon" in known and "horizon" not in given:
            fixed["horizon"] = horizon or _ANY_HORIZON
        for budget in _budgets_for(place, entry, cls, budgets, problems):
            policy = build(place, cls, given, {**fixed, "budget": budget}, known, problems)
            if policy is None:
                continue
            if wrong := worlds.wrong_arms(policy):
                problems.add(f"{place}.arms", wrong)
                break
            if horizon is not None and (wrong := worlds.wrong_users(policy, horizon)):
                problems.add(place, wrong)
                break
            if policy.stream_key in seen:
                problems.add(place, f"is the same as {seen[policy.stream_key]}: {policy.heading}")
            seen[policy.stream_key] = place
            policies.append(policy)
            if shared_name(policies) == policy.label:
                problems.add(f"{place}.name", f"another policy is called {policy.label!r}, too")
    return policies


def _asked(entry: PolicyEntry, worlds: Worlds) -> tuple[Any, dict[str, Any]]:
    """The policy of an entry, and its arguments; ``kind = "bandit"`` is the default of a setting,
    in the words of ``bandit``. The environments determine some of these words.

    Raises:
        ArgumentError: there is no such policy, or a word is wrong.
    """
    given = entry.arguments
    if entry.kind != "bandit":
        return find(entry.kind), given
    words = {name: given.pop(name) for name in _WORDS & given.keys()}
    seen = {} if "person" in words else worlds.words
    problem = DecisionProblem(worlds.n_arms, **{**seen, **words})
    found = problem.the_default()
    unsaid = _NOT_IN_FILES | {"arms"}
    told = {name: one for name, one in problem.given.items() if name not in unsaid}
    return found.with_parts(told, given)


def _elsewhere(name: str, cls: type[Policy]) -> str:
    """The place in a file for a name that is no argument of a policy."""
    if name not in _of_budgets():
        return "a study sets this itself"
    taken = cls.example_budgets()
    if not taken:
        return f"{cls.__name__} has no privacy"
    numbers = list(vars(taken[0]).values())
    written = numbers if len(numbers) == 1 else [numbers]
    return f"belongs in budgets, as in budgets.{taken[0].key} = {written}"


def _of_budgets() -> set[str]:
    """The arguments that belong to a budget, and not to a policy."""
    return {"budget"} | {name for budget in examples() for name in vars(budget)}


def _budgets_for(
    place: str, entry: PolicyEntry, cls: type[Policy], study: Budgets | None, problems: Problems
) -> list[Budget | None]:
    accepted = [kind.key for kind in cls.card.notions]
    own = entry.budgets
    if own is not None:
        for notion in own.model_fields_set - {"open", *accepted}:
            takes = f"it takes {', '.join(accepted)}" if accepted else "it has no privacy"
            problems.add(f"{place}.budgets.{notion}", f"not a notion of {entry.kind}; {takes}")
    if not accepted:
        return [None]
    chosen = own if own is not None else study
    if chosen is None:  # the study's are wrong, which has been said
        return [None]
    fitting = chosen.accepted(cls.card)
    if not fitting and not (own is not None and own.model_fields_set - {"open"}):
        whose = "its own" if own is not None else "the study's"
        problems.add(
            place, f"none of {whose} budgets fits {entry.kind}, which takes {', '.join(accepted)}"
        )
    return fitting or [None]
