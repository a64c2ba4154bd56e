"""The environments of a study file: their kinds, and the requirements on policies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import environments
from ..environments import Advised, ArmsEnvironment, ContextEnvironment, LoggedTrial, RewardTable
from ..environments.base import World
from ..errors import ArgumentError
from ..policies import Policy
from ..rooms import papers
from ..simulation.simulating import check_users, what_is_shown, what_is_taken
from ..tables import read_numbers
from ..validation import close_name
from .schema import Problems, WorldEntry, build

_ANY_ARMS, _ANY_DIMENSION = 3, 2
_LOGS = {"LoggedTrial", "LoggedTrial.read", "DoctorReplay"}


@dataclass(frozen=True)
class Worlds:
    """The worlds of a study: environments and perhaps a logged trial.  All environments have
    equally many arms, and contexts of one dimension, or none.
    """

    simulated: list[World] = field(default_factory=list)
    log: LoggedTrial | None = None
    sound: bool = True  # whether all entries could be built

    @property
    def n_arms(self) -> int:
        """Number of arms of all environments; any number where it is unknown."""
        return getattr(self.simulated[0] if self.simulated else self.log, "n_arms", _ANY_ARMS)

    @property
    def dimension(self) -> int | None:
        """The dimension of the contexts; None without any."""
        return getattr(self.simulated[0], "dimension", None) if self.simulated else None

    @property
    def features(self) -> np.ndarray | None:
        """The features of the arms, shape (K, d), if they are the same in every environment; else
        None.
        """
        found = [
            world.features for world in self.simulated if isinstance(world, environments.LinearArms)
        ]
        same = all(np.array_equal(one, found[0]) for one in found)
        return found[0] if found and same and len(found) == len(self.simulated) else None

    @property
    def words(self) -> dict[str, Any]:
        """The words of ``bandit`` that the environments determine."""
        if self.features is not None:
            return {"features": self.features}
        shown = what_is_shown(self.simulated[0]) if self.simulated else ""
        name = {"advice": "experts", "contexts": "features"}.get(shown)
        return {} if name is None else {name: self.dimension}

    def arguments_for(self, cls: type[Policy]) -> dict[str, Any]:
        """The arguments for building a policy of the class in these environments."""
        known = inspect.signature(cls).parameters
        size = _ANY_DIMENSION if self.dimension is None else self.dimension
        fitting: dict[str, Any] = {"n_arms": self.n_arms, "dimension": size, "n_experts": size}
        if self.features is not None:
            fitting["arms"] = self.features
        return {name: value for name, value in fitting.items() if name in known}

    def misfit(self, cls: type[Policy], given: Collection[str]) -> str | None:
        """Why no policy of the class can play here with these arguments; None where it can."""
        if not self.simulated:
            return None
        shown = what_is_shown(self.simulated[0])
        if (taken := what_is_taken(cls)) != shown:
            return f"{cls.__name__} takes {taken}, and {self.simulated[0]!r} has {shown}"
        needed = "arms" in inspect.signature(cls).parameters and "arms" not in given
        if needed and self.features is None:
            source = "use the same LinearArms everywhere, or set arms = [[...], ...]"
            return f"{cls.__name__} needs the features of its arms: {source}"
        return None

    def wrong_arms(self, policy: Policy) -> str | None:
        """The error in the arms that a policy was given; None where there is none."""
        if self.sound and policy.n_arms != self.n_arms:
            rule = f"must hold {self.n_arms} arms, as many as the environments have"
            return f"{rule}, got {policy.n_arms}"
        return None

    def wrong_users(self, policy: Policy, horizon: int) -> str | None:
        """Why the users who come back here are none for the policy; None where nothing is wrong."""
        try:
            for world in self.simulated:
                check_users(policy, world, horizon)
        except ArgumentError as error:
            return str(error)
        return None


def read_worlds(
    entries: list[tuple[str, WorldEntry]], folder: Path, horizon: int | None, problems: Problems
) -> Worlds:
    """Build the environments of a file, and note everything that is wrong with them."""
    kinds, log, first, before = environment_kinds(folder), None, "", len(problems)
    worlds: list[World] = []
    names: dict[str, str] = {}
    n_arms = 0
    for place, entry in entries:
        if entry.kind not in kinds:
            near = close_name(entry.kind, kinds)
            problems.add(f"{place}.kind", f"there is no environment {entry.kind!r}; {near}")
            continue
        make = kinds[entry.kind]
        made = build(place, make, entry.arguments, {}, _arguments(make), problems)
        if made is not None and entry.delay is not None:
            made = _delayed(f"{place}.delay", made, entry.delay, problems)
        if made is None:
            continue
        if n_arms not in (0, made.n_arms):
            problems.add(place, f"must have {n_arms} arms, as {first} has, got {made.n_arms}")
        if not n_arms:
            n_arms, first = made.n_arms, place
        if isinstance(made, LoggedTrial):
            if log is not None:
                problems.add(place, "a study replays one log only")
            log = made
            continue
        if repr(made) in names:
            problems.add(place, f"cannot be told from {names[repr(made)]}: both are {made!r}")
        names[repr(made)] = place
        if horizon is not None and made.horizon is not None and horizon > made.horizon:
            problems.add(
                "horizon", f"must be at most {made.horizon}, the length of {place}, got {horizon}"
            )
        if worlds and _shown(made) != _shown(worlds[0]):
            differs = f"{_shown(made)} where {names[repr(worlds[0])]} {_shown(worlds[0])}"
            problems.add(place, f"{differs}; all environments must show the same")
        worlds.append(made)
    if entries and {entry.kind for _, entry in entries} <= _LOGS:
        rule = "must hold an environment to simulate, beside the log to replay"
        problems.add("environments", rule)
    if log is not None and worlds and _dimension(worlds[0]) is not None:
        has = None if isinstance(worlds[0], environments.AdviceEnvironment) else log.dimension
        if has != _dimension(worlds[0]):
            known = f"contexts of dimension {log.dimension}" if log.dimension else "no contexts"
            found = f"one {_shown(worlds[0])}, and the log has {known}"
            problems.add("environments", f"must fit the log: {found}")
    return Worlds(worlds, log, sound=len(problems) == before)


def _delayed(place: str, world: Any, given: dict[str, Any], problems: Problems) -> Any:
    """The environment with late answers; None after noting an error in them."""
    if isinstance(world, LoggedTrial):
        problems.add(place, "must not be given for a log: its answers are replayed as they came")
        return None
    known = set(inspect.signature(environments.Delay).parameters)
    delay = build(place, environments.Delay, given, {}, known, problems)
    return None if delay is None else world.delayed(delay)


def environment_kinds(folder: Path) -> dict[str, Callable[..., Any]]:
    """The values of ``kind``: classes, other ways of making them, and readers of data."""
    adversarial, data = papers("adversarial"), _Data(folder)
    public = {name: getattr(environments, name) for name in environments.__all__}
    bases = (ArmsEnvironment, ContextEnvironment, LoggedTrial)
    classes = {name: kind for name, kind in public.items() if isinstance(kind, type)}
    worlds = {name: kind for name, kind in classes.items() if issubclass(kind, bases)}
    others = (*bases[:2], environments.AdviceEnvironment, Advised)
    return {
        **{name: kind for name, kind in worlds.items() if kind not in others},
        "LinearArms.on_sphere": environments.LinearArms.on_sphere,
        "AnchoredContexts.random": environments.AnchoredContexts.random,
        "CovariateArms.random": environments.CovariateArms.random,
        "GLMContexts.random": environments.GLMContexts.random,
        "GaussianContexts.on_sphere": environments.GaussianContexts.on_sphere,
        "PoolContexts.uniform": environments.PoolContexts.uniform,
        "LoggedTrial.read": data.trial,
        "RewardTable": data.table,
        "Advised.constant": _advised(Advised.constant),
        "Advised.shifted": _advised(Advised.shifted),
        "classification": environments.classification,
        "ClassifierAdvice": adversarial.ClassifierAdvice,
        "classifier_advice": adversarial.classifier_advice,
        "lastfm": data.lastfm,
        "lastfm.reward_table": data.artists,
        "movielens": data.movielens,
        "movielens.reward_table": data.genres,
        "DoctorReplay.reward_table": data.patients,
        "warfarin": data.warfarin,
    }


def _advised(make: Callable[..., Advised]) -> Callable[..., Advised]:
    """Experts on arms whose rewards are 0 or 1 with the given means, which a file can say."""

    def build(means: Any, n_experts: int, *, horizon: int, **others: Any) -> Advised:
        return make(environments.Bernoulli(means), n_experts, horizon=horizon, **others)

    said = ("environment", "n_experts", "horizon")
    own = [p for p in inspect.signature(make).parameters.values() if p.name not in said]
    first = [p for p in inspect.signature(build).parameters.values() if p.kind is not p.VAR_KEYWORD]
    build.__signature__ = inspect.Signature(first + own)  # type: ignore[attr-defined]
    return build


def _arguments(make: Callable[..., Any]) -> set[str]:
    """The argument names of a kind, with those of its class where it passes arguments on."""
    known = inspect.signature(make).parameters
    names = {name for name, one in known.items() if one.kind is not one.VAR_KEYWORD}
    if len(names) < len(known):
        names |= set(inspect.signature(make.__self__).parameters) - {"theta"}  # type: ignore[attr-defined]
    return names


def _dimension(world: World) -> int | None:
    return world.dimension if isinstance(world, ContextEnvironment) else None


def _shown(world: World) -> str:
    shown, dimension = what_is_shown(world), _dimension(world)
    sizes = {"advice": f" of {dimension} experts", "contexts": f" of dimension {dimension}"}
    return f"has {shown}{sizes.get(shown, '')}"


class _Data:
    """An environment or log that is read from data.  A study names the files relative to its
    folder.
    """

    def __init__(self, folder: Path) -> None:
        self._beside = folder

    def _inside(self, given: Any) -> Path:
        if not isinstance(given, str):
            raise ArgumentError(f"folder must be the name of a folder, got {given!r}", "folder")
        return self._beside / given

    def _file(self, path: Any) -> Path:
        if not isinstance(path, str) or not (self._beside / path).is_file():
            raise ArgumentError(f"path must be a file beside the study, got {path!r}", "path")
        return self._beside / path

    def table(
        self, path: Any, separator: str = ",", decimal: str = ".", thousands: str = ""
    ) -> RewardTable:
        marks = {"separator": separator, "decimal": decimal, "thousands": thousands}
        return RewardTable(read_numbers("path", self._file(path), **marks))

    def trial(
        self, path: Any, separator: str = ",", decimal: str = ".", thousands: str = ""
    ) -> LoggedTrial:
        marks = {"separator": separator, "decimal": decimal, "thousands": thousands}
        return LoggedTrial.read(self._file(path), **marks)

    def lastfm(
        self, folder: Any, components: int = 25, per_round: int = 25
    ) -> environments.Recommendations:
        data = environments.lastfm(self._inside(folder))
        return data.environment(components=components, per_round=per_round)

    def movielens(
        self, folder: Any, components: int = 20, per_round: int = 25, liked_from: int = 4
    ) -> environments.Recommendations:
        data = environments.movielens(self._inside(folder))
        return data.environment(components=components, per_round=per_round, liked_from=liked_from)

    def artists(self, folder: Any, artists: int = 20) -> RewardTable:
        return environments.lastfm(self._inside(folder)).reward_table(artists=artists)

    def genres(self, folder: Any, liked_from: int = 4) -> RewardTable:
        return environments.movielens(self._inside(folder)).reward_table(liked_from=liked_from)

    def warfarin(
        self,
        path: Any,
        ends: str = "medium",
        genotypes: bool = True,
        once: bool = False,
        seed: int = 0,
        blocks: bool = True,
    ) -> environments.Classification:
        if not isinstance(path, str):
            raise ArgumentError(f"path must be the name of a file, got {path!r}", "path")
        return environments.warfarin(self._beside / path, ends=ends).environment(
            genotypes=genotypes, once=once, seed=seed, blocks=blocks
        )

    def patients(self) -> RewardTable:
        return environments.DoctorReplay().reward_table()
