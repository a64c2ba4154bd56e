"""Declarations of experiments: what a file or ``POST /v1/experiments`` says of one.

The words are those of ``dpb.bandit``; with ``kind`` they are those of a policy in a study file.
The service adds a few of its own, which are fields of ``Declaration``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ..door import ASK, bandit, budget_of
from ..errors import ArgumentError
from ..policies import Policy
from ..policies.registry import find
from ..session.options import of_today
from ..shuffle.sealing import refuse_unsealable
from ..validation import duration, integer, number, printable, seconds_of, shown

NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:.]+\](:[0-9]{1,5})?")
LONGEST_NAME, LONGEST_TENANT = 40, 19  # with a dot between, a key of a store
_IN_WORDS = "small letters, digits, - and _, and begin with a letter or digit"
_DEFAULTS = {"answers_within": "1h"}
_SHORTEST, _LONGEST = "1s", "30d"  # for which a client may repeat a request
_MOST_RELEASES = 10**9
_NO_DEADLINE = (
    "answers_within must be a time such as '1h', or a number of decisions from 1: if a service"
    " waited for all rewards, its replies would show that rewards came"
)
_ABSENT = object()
T = TypeVar("T")


class DeclarationError(ArgumentError):
    """A declaration has mistakes.

    Attributes:
        problems: each mistake, as a pair of the word and a sentence.
    """

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(text for _, text in problems), problems[0][0])
        self.problems = problems


class Change(NamedTuple):
    """A word whose value differs between two declarations; None where it is not given."""

    word: str
    served: Any
    declared: Any

    def __str__(self) -> str:
        return f"{self.word} is {shown(self.served)}, declared is {shown(self.declared)}"


class Breaker(NamedTuple):
    """When to fall back to the baseline: no arm has a released mean of at least ``floor``.

    Attributes:
        floor: the mean reward that some arm has to have.
        releases: how many releases there must be before that is asked.
    """

    floor: float
    releases: int


@dataclass(frozen=True)
class Declaration:
    """One experiment.

    Attributes:
        name: its name in addresses.
        words: of the policy, as they were declared.
        title: what pages show.
        baseline: the arm that is served before the start, after the end, and while the experiment
            is paused; None without one.
        starts, ends: in seconds since the epoch; None for no such date.
        breaker: when to fall back to the baseline until an operator resumes; None for never.
        retries_for: for how many seconds a request is recognised when it is repeated.
        allow_simulation: whether the guarantee may be void.
        public: whether the public half of the policy, and what devices need, is for everyone.
        origins: of pages that may call the addresses of devices.
    """

    name: str
    words: Mapping[str, Any]
    title: str = ""
    baseline: str | int | None = None
    starts: float | None = None
    ends: float | None = None
    breaker: Breaker | None = None
    retries_for: int = 3600
    allow_simulation: bool = False
    public: bool = False
    origins: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)  # as it was declared

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Declaration:
        """Read a declaration.

        Args:
            given: the words, as JSON or TOML has them.

        Raises:
            DeclarationError: some are wrong.  It has all that are wrong by themselves.
        """
        if not isinstance(given, Mapping):
            raise DeclarationError([("name", f"an experiment must be a table, got {shown(given)}")])
        reader, own = _Reader(given), _OWN.items()
        read: dict[str, Any] = {word: reader.take(word, how) for word, how in own if word in given}
        if "name" not in given:
            reader.problems.append(("name", "name must be given"))
        words = {word: value for word, value in given.items() if word not in _OWN}
        starts, ends = read.get("starts"), read.get("ends")
        if starts is not None and ends is not None and starts >= ends:
            reader.problems.append(("ends", "ends must be after starts"))
        if read.get("breaker") is not None and read.get("baseline") is None:
            reader.problems.append(("baseline", "baseline must be given with breaker"))
        if words.get("answers_within", 1) in (0, None):
            reader.problems.append(("answers_within", _NO_DEADLINE))
        if words.get("clip") is False:
            reader.problems.append(("clip", "clip must be true in a service, got false"))
        if reader.problems:
            raise DeclarationError(reader.problems)
        # As a store gives it back: TOML has dates, and JSON has not.
        return cls(**read, words=words, given=json.loads(as_json(given)))

    def changes(self, other: Declaration) -> list[Change]:
        """The words that have other values in another declaration."""
        mine, theirs = self.given, other.given
        return [
            Change(word, mine.get(word), theirs.get(word))
            for word in sorted({*mine, *theirs})
            if mine.get(word, _ABSENT) != theirs.get(word, _ABSENT)
        ]

    def build(self) -> Policy:
        """Make the policy.

        Raises:
            DeclarationError: a word of the policy is wrong, or the policy cannot be served.
        """
        try:
            policy = self._policy()
            if self.baseline is not None:
                policy._arms_by_name.number("baseline", self.baseline)
            self._check(policy)
        except DeclarationError:
            raise
        except ArgumentError as error:
            raise DeclarationError([(error.argument or "", str(error))]) from None
        except (TypeError, ValueError) as error:
            raise DeclarationError([("", str(error))]) from None
        return policy

    def check(self) -> None:
        """Find out whether the policy can be made; raises as ``build``."""
        self.build()

    def _policy(self) -> Policy:
        made = self._made({**_DEFAULTS, **self.words})
        # Devices send what they have when they choose to, and nothing is awaited.
        return self._made(self.words) if made._serving else made

    @staticmethod
    def _made(words: Mapping[str, Any]) -> Policy:
        words = {**words}
        sends = words.get("reports") or words.get("messages")  # whose devices need no OpenDP
        if words.get("budget") is not None and (sends or find_spec("opendp")):
            words.setdefault("noise", "secure")
        kind = words.pop("kind", None)
        if kind is None:
            return bandit(**words)
        if not isinstance(kind, str):
            raise ArgumentError(f"kind must name a policy, got {shown(kind)}", "kind")
        budget = budget_of(words.pop("budget", ASK), words)
        made: Policy = find(kind)(**of_today(words), budget=budget)
        return made

    def _check(self, policy: Policy) -> None:
        promise = policy.guarantee
        if policy.takes_reports or self.public:
            self._check_parties(policy)
        if not self.allow_simulation and promise.holds is None:
            raise ArgumentError(
                "budget must be given if allow_simulation is false, got null: without a budget"
                " nobody is protected",
                "budget",
            )
        if not self.allow_simulation and promise.simulated:
            raise ArgumentError(
                "noise must be 'secure' (extra secure) if allow_simulation is false,"
                f" got {policy.config['noise']!r}: simulated noise protects nobody",
                "noise",
            )
        if self.breaker is not None and policy.estimates.means is None:
            raise ArgumentError(
                f"breaker must not be given with {policy.preset}, which estimates no means of arms",
                "breaker",
            )

    def _check_parties(self, policy: Any) -> None:
        """Refuse what devices and shufflers cannot have."""
        if policy.budget is None:
            word = (
                "public"
                if self.public
                else "reports"
                if policy.config.get("reports")
                else "messages"
            )
            raise ArgumentError(f"{word} must be false without a budget, got true", word)
        for word in ("baseline", "answers_within") if policy._serving else ():
            if getattr(self, word, None) is not None or word in self.words:
                raise ArgumentError(
                    f"{word} must not be given with {policy._serving}=true: people's devices choose"
                    " arms, and there is no deadline for what they send",
                    word,
                )
        if policy._serving == "messages":
            refuse_unsealable(policy.protocol)


class _Reader:
    """Reads words, and keeps all problems."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given, self.problems = given, list[tuple[str, str]]()

    def take(self, word: str, how: Callable[[str, Any], T]) -> T | None:
        try:
            return how(word, self._given[word])
        except ArgumentError as error:
            self.problems.append((word, str(error)))
            return None


def name_of(word: str, value: object, longest: int = LONGEST_NAME) -> str:
    """The name of an experiment or a tenant; an ``ArgumentError`` for anything else."""
    if isinstance(value, str) and NAME.fullmatch(value) and len(value) <= longest:
        return value
    raise ArgumentError(f"{word} must have 1 to {longest} {_IN_WORDS}, got {shown(value)}", word)


def _baseline(word: str, value: object) -> str | int | None:
    if value is None or isinstance(value, str):
        return value
    return integer(word, value, 0)


def _date(word: str, value: object) -> float | None:
    if value is None:
        return None
    try:
        when = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        raise ArgumentError(
            f"{word} must be a date and time such as 2026-12-01T08:00:00Z, got {shown(value)}", word
        ) from None


def _breaker(word: str, value: object) -> Breaker | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not {"floor"} <= value.keys() <= {"floor", "releases"}:
        raise ArgumentError(
            f"{word} must be a table with the key 'floor' and, optionally, 'releases', got"
            f" {shown(value)}",
            word,
        )
    floor = number(f"{word}.floor", value["floor"])
    return Breaker(floor, integer(f"{word}.releases", value.get("releases", 1), 1, _MOST_RELEASES))


def _retries(word: str, value: object) -> int:
    return seconds_of(duration(word, value, _SHORTEST, _LONGEST))


def _flag(word: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ArgumentError(f"{word} must be true or false, got {shown(value)}", word)


def _origins(word: str, value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [None]
    if all(isinstance(one, str) and _ORIGIN.fullmatch(one) for one in listed):
        return tuple(listed)
    raise ArgumentError(
        f"{word} must list origins such as https://shop.example, got {shown(value)}", word
    )


_OWN: dict[str, Callable[[str, Any], Any]] = {
    "name": name_of,
    "title": lambda word, value: printable(word, value, 200),
    "baseline": _baseline,
    "starts": _date,
    "ends": _date,
    "breaker": _breaker,
    "retries_for": _retries,
    "allow_simulation": _flag,
    "public": _flag,
    "origins": _origins,
}


def read_file(path: Path) -> list[Declaration]:
    """Read the experiments of a TOML file, which has a table ``[[experiments]]`` for each.

    Raises:
        DeclarationError: the file cannot be read, or some declarations are wrong; it has all
            mistakes of all of them.
    """
    try:
        whole = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DeclarationError([("experiments", f"{path} cannot be read: {error}")]) from None
    listed = whole.get("experiments")
    if not isinstance(listed, list) or whole.keys() != {"experiments"}:
        raise DeclarationError(
            [("experiments", f"{path} must have tables [[experiments]] and nothing else")]
        )
    found, problems = [], []
    for i, one in enumerate(listed):
        try:
            found.append(Declaration.read(one))
        except DeclarationError as error:
            problems += [(f"experiments[{i}].{word}", text) for word, text in error.problems]
    if problems:
        raise DeclarationError(problems)
    return found


def as_json(given: Mapping[str, Any]) -> bytes:
    """A declaration as JSON."""
    return json.dumps(given, default=lambda one: one.isoformat()).encode()
