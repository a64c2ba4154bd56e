"""A study: environments x policies x budgets, read from a TOML file in which every mistake is reported at once.

title = "Two treatments"
horizon = 10_000
runs = 50
imports = ["my_policies"]       # modules beside this file, or installed, that ``@register`` policies of your own

[budgets]                       # every policy runs with those of its notion
zcdp = [0.1, 1.0]
approx = [[1.0, 1e-5]]          # [epsilon, delta]; rdp = [[alpha, epsilon]]; pure = [epsilon, ...]
open = true                     # and once without privacy

[[environments]]
kind = "Bernoulli"
means = [0.6, 0.5]

[[policies]]
kind = "AdaCUCB"
forget = false
budgets.zcdp = [0.5]            # instead of the study's
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError

from .. import environments
from ..environments import ArmsEnvironment, LoggedTrial, RewardTable
from ..errors import ArgumentError, DPBanditsError, StudyError
from ..policies import Options, Policy, registered
from ..privacy import Budget
from .form import Budgets, Entry, Horizon, PolicyEntry, StudyForm, close_name, form_problems, notions_of, without_name

DEMO = Path(__file__).with_name("demo.toml")

# A study sets the first two itself; noise is always simulated, from the study's seed.
_NOT_IN_FILES = {"n_arms", "budget", "seed", "noise", "grid"}
_ANY_ARMS = 3
_ANY_HORIZON = 1000

M = TypeVar("M")


@dataclass(frozen=True)
class Study:
    """A comparison that is ready to run.

    Attributes:
        title, description: for people.
        seed, runs, horizon, record: as ``simulate`` takes them.
        environments: what the policies are simulated in; all have the same number of arms.
        log: a logged trial that the policies are replayed on; None without one.
        policies: one for every policy and budget that fit.
        config: all of this as it was declared; JSON data.
        folder: what paths in ``config`` are relative to.
    """

    title: str
    description: str
    seed: int
    runs: int
    horizon: int
    record: int | list[int]
    environments: tuple[ArmsEnvironment, ...]
    log: LoggedTrial | None
    policies: tuple[Policy, ...]
    config: dict[str, Any]
    folder: Path

    def altered(self, **changes: Any) -> Study:
        """The same study with some keys of the file changed.

        Raises:
            StudyError: a change is wrong.
        """
        return _parse({**self.config, **changes}, "the altered study", self.folder)

    def quick(self) -> Study:
        """A small version, to try a study out: 5 runs of at most 10,000 rounds."""
        horizon = min(self.horizon, 10_000)
        record = self.record if isinstance(self.record, int) else [r for r in self.record if r <= horizon]
        return self.altered(runs=min(self.runs, 5), horizon=horizon, record=record)


def load_study(path: str | Path, *, before_policies: Callable[[], None] = lambda: None) -> Study:
    """Read and check a study file, and run the modules that it imports.

    Args:
        path: of the file.
        before_policies: called before the policies are built, which takes seconds where nothing is compiled yet.

    Raises:
        StudyError: the file is missing, or anything in it is wrong; ``problems`` names everything that is.

    Example:
        >>> load_study(DEMO).title
        'DoctorBandit: choosing an HIV treatment in private'
    """
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(str(path), ["there is no such file"]) from None
    except OSError as error:
        raise StudyError(str(path), [f"cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise StudyError(str(path), [f"is not UTF-8 text: {error.reason} at byte {error.start}"]) from None
    except tomllib.TOMLDecodeError as error:
        raise StudyError(str(path), [f"is not TOML: {error}"]) from None
    return _parse(data, str(path), path.parent, before_policies)


def _parse(data: dict[str, Any], source: str, folder: Path, before_policies: Callable[[], None] = lambda: None) -> Study:
    problems = _Problems()
    try:
        form = StudyForm.model_validate(data)
    except ValidationError as error:
        form = None
        problems.extend(form_problems(error))
    # Whatever has the right form is built even where other parts do not, so that all mistakes are found in one go.
    horizon = _valid(Horizon, data.get("horizon"))
    worlds, log = _environments(_entries(Entry, data, "environments"), folder, horizon, problems)
    n_arms = worlds[0].n_arms if worlds else getattr(log, "n_arms", _ANY_ARMS)
    budgets = _valid(Budgets, data.get("budgets", {}))
    _import(_valid(list[str], data.get("imports", [])) or [], folder, problems)
    before_policies()
    policies = _policies(_entries(PolicyEntry, data, "policies"), budgets, n_arms, horizon, problems)
    if form is not None and isinstance(form.record, list) and (late := [r for r in form.record if r > form.horizon]):
        problems.add("record", f"must hold rounds up to the horizon {form.horizon}, got {late}")
    if problems or form is None:
        raise StudyError(source, problems)
    config = {name: data.get(name, getattr(form, name)) for name in StudyForm.model_fields if name != "budgets"}
    config["budgets"] = data.get("budgets", {})
    return Study(
        title=form.title,
        description=form.description,
        seed=form.seed,
        runs=form.runs,
        horizon=form.horizon,
        record=form.record,
        environments=tuple(worlds),
        log=log,
        policies=tuple(policies),
        config=config,
        folder=folder,
    )


class _Problems(list[str]):
    """What is wrong with a file, each thing once."""

    def add(self, place: str, message: str) -> None:
        line = f"{place}: {message}"
        if line not in self:
            self.append(line)


def _valid(form: Any, data: Any) -> Any:
    """``data`` in the given form; None where it does not fit, which has been reported with the whole file."""
    try:
        return TypeAdapter(form).validate_python(data, strict=True)
    except ValidationError:
        return None


def _entries(form: type[M], data: dict[str, Any], section: str) -> list[tuple[str, M]]:
    listed = data.get(section)
    checked = [(f"{section}[{i}]", _valid(form, raw)) for i, raw in enumerate(listed if isinstance(listed, list) else [])]
    return [(place, entry) for place, entry in checked if entry is not None]


def _import(modules: list[str], folder: Path, problems: _Problems) -> None:
    """Import modules from the study's folder or the path, so that what they register is known."""
    sys.path.insert(0, here := str(folder.resolve()))
    try:
        importlib.invalidate_caches()  # the file may be younger than the last look into the folder
        for i, module in enumerate(modules):
            try:
                importlib.import_module(module)
            except Exception as error:  # whatever the module does wrong is wrong with the file that names it
                problems.add(f"imports[{i}]", f"{module} cannot be imported: {type(error).__name__}: {error}")
    finally:
        sys.path.remove(here)


# Environments -------------------------------------------------------------------------------------------------------------


def _kinds(folder: Path) -> dict[str, Callable[..., Any]]:
    public = {name: getattr(environments, name) for name in environments.__all__}
    kinds = {name: kind for name, kind in public.items() if isinstance(kind, type) and kind is not ArmsEnvironment}
    return {**kinds, RewardTable.__name__: _table_reader(folder)}


def _table_reader(folder: Path) -> Callable[[Any], RewardTable]:
    def read(path: Any) -> RewardTable:
        if not isinstance(path, str) or not (folder / path).is_file():
            raise ArgumentError(f"path must be a file beside the study, got {path!r}", "path")
        try:
            text = (folder / path).read_text(encoding="utf-8").splitlines()
            header = bool(text) and not re.fullmatch(r"[\s\d.,eE+-]*", text[0])
            return RewardTable(np.loadtxt(text, delimiter=",", ndmin=2, skiprows=int(header)))
        except ValueError as error:
            raise ArgumentError(f"path must hold rows of numbers, one column per arm; {path}: {error}", "path") from None

    return read


def _is_log(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, LoggedTrial)


def _environments(
    entries: list[tuple[str, Entry]], folder: Path, horizon: int | None, problems: _Problems
) -> tuple[list[ArmsEnvironment], LoggedTrial | None]:
    kinds, worlds, log, first = _kinds(folder), [], None, ""
    names: dict[str, str] = {}
    n_arms = 0
    for place, entry in entries:
        if entry.kind not in kinds:
            problems.add(f"{place}.kind", f"there is no environment {entry.kind!r}; {close_name(entry.kind, kinds)}")
            continue
        build = kinds[entry.kind]
        built = _build(place, build, entry.arguments, {}, set(inspect.signature(build).parameters), problems)
        if built is None:
            continue
        if n_arms not in (0, built.n_arms):
            problems.add(place, f"has {built.n_arms} arms where {first} has {n_arms}; one study has one number of arms")
        if not n_arms:
            n_arms, first = built.n_arms, place
        if _is_log(build):
            if log is not None:
                problems.add(place, "a study replays one log only")
            log = built
            continue
        if repr(built) in names:
            problems.add(place, f"cannot be told from {names[repr(built)]}: both are {built!r}")
        names[repr(built)] = place
        if horizon is not None and built.horizon is not None and horizon > built.horizon:
            problems.add("horizon", f"must be at most {built.horizon}, the length of {place}, got {horizon}")
        worlds.append(built)
    if entries and all(_is_log(kinds.get(entry.kind)) for _, entry in entries):
        problems.add("environments", "must hold one that is simulated, beside the log that is replayed")
    return worlds, log


# Policies -----------------------------------------------------------------------------------------------------------------


def _policies(
    entries: list[tuple[str, PolicyEntry]], budgets: Budgets | None, n_arms: int, horizon: int | None, problems: _Problems
) -> list[Policy]:
    kinds = registered()
    sound = len(problems) == 0  # where an environment is wrong, nobody knows how many arms it has
    seen: dict[str, str] = {}
    policies = []
    for place, entry in entries:
        if entry.kind not in kinds:
            problems.add(f"{place}.kind", f"there is no policy {entry.kind!r}; {close_name(entry.kind, kinds)}")
            continue
        cls = kinds[entry.kind]
        known, given = _policy_arguments(cls), entry.arguments
        for name in sorted(given.keys() & _NOT_IN_FILES):
            problems.add(f"{place}.{name}", "a study sets this itself")
            del given[name]
        fixed: dict[str, Any] = {"n_arms": n_arms} if "n_arms" in inspect.signature(cls).parameters else {}
        if "horizon" in known and "horizon" not in given:
            fixed["horizon"] = horizon or _ANY_HORIZON
        for budget in _budgets_for(place, entry, cls, budgets, problems):
            policy = _build(place, cls, given, {**fixed, "budget": budget}, known, problems)
            if policy is None:
                continue
            if sound and policy.n_arms != n_arms:
                problems.add(f"{place}.arms", f"must hold {n_arms} arms, as many as the environments have, got {policy.n_arms}")
                break
            if policy.stream_key in seen:
                problems.add(place, f"is the same as {seen[policy.stream_key]}: {policy!r}")
            seen[policy.stream_key] = place
            policies.append(policy)
    return policies


def _policy_arguments(cls: type[Policy]) -> set[str]:
    own = inspect.signature(cls).parameters
    return ({name for name in own if name != "options"} | set(Options.__annotations__)) - _NOT_IN_FILES


def _budgets_for(
    place: str, entry: PolicyEntry, cls: type[Policy], study: Budgets | None, problems: _Problems
) -> list[Budget | None]:
    accepted = notions_of(cls.card.channels)
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
    fitting = chosen.accepted(cls.card.channels)
    if not fitting and not (own is not None and own.model_fields_set - {"open"}):
        whose = "its own" if own is not None else "the study's"
        problems.add(place, f"none of {whose} budgets fits {entry.kind}, which takes {', '.join(accepted)}")
    return fitting or [None]


# Constructors -------------------------------------------------------------------------------------------------------------


def _build(
    place: str, make: Callable[..., Any], given: dict[str, Any], fixed: dict[str, Any], known: set[str], problems: _Problems
) -> Any:
    """``make(**given, **fixed)``, or None after noting everything that is wrong with the arguments."""
    before = len(problems)
    usable = {}
    for name, value in given.items():
        if name in known:
            usable[name] = value
        else:
            problems.add(f"{place}.{name}", f"unknown argument; {close_name(name, sorted(known))}")
    needed = {name for name, p in inspect.signature(make).parameters.items() if p.default is p.empty and p.kind != p.VAR_KEYWORD}
    missing = needed - usable.keys() - fixed.keys()
    for name in sorted(missing):
        problems.add(f"{place}.{name}", "is missing")
    while not missing:
        try:
            built = make(**usable, **fixed)
        except (DPBanditsError, TypeError, ValueError) as error:
            argument = getattr(error, "argument", None) or ""
            name = argument.partition("[")[0]
            if name not in usable:
                problems.add(place, str(error))
                break
            problems.add(f"{place}.{argument}", without_name(error))
            # A constructor reports one argument at a time: leave that one at its default, and see what else is wrong.
            del usable[name]
            missing = needed & {name}
        else:
            return built if len(problems) == before else None
    return None
