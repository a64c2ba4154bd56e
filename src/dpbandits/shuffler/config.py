"""The shuffler's file: where the server is, and which experiments it shuffles."""

from __future__ import annotations

import json
import os
import tomllib
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..policies.registry import arguments_of_today, find
from ..service.declaration import name_of
from ..shuffle.sealing import refuse_unsealable, seal
from ..validation import choice, duration, integer, seconds_of, shown
from .batch import Pinned

_MOST_PEOPLE = 10**6
_WORDS = {"server", "key", "tickets", "store", "experiments"}
_OWN = {"name", "config", "least", "closes", "every"}


@dataclass(frozen=True)
class Config:
    """What the shuffler is told.

    Attributes:
        server: the address of the service.
        key: of the service, with the roles read and shuffle; None where it asks for none.
        tickets: the file of the secret of tickets.
        store: the file of records, which are deleted when a batch closes.
        experiments: what it shuffles, by name.
    """

    server: str
    key: str | None
    tickets: Path
    store: Path
    experiments: Mapping[str, Pinned]

    @classmethod
    def read(cls, path: Path) -> Config:
        """Read a TOML file; its paths are relative to it.

        Raises:
            ArgumentError: it cannot be read, or a word is wrong.
        """
        try:
            words = tomllib.loads(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ArgumentError(f"{path} cannot be read: {error}") from None
        _check(f"{path}", words, _WORDS, _WORDS - {"key"})
        listed = words["experiments"]
        if not isinstance(listed, list) or not listed:
            raise ArgumentError("experiments must be tables [[experiments]]", "experiments")
        pinned = [_pinned(path.parent, one) for one in listed]
        by_name = {one.name: one for one in pinned}
        if len(by_name) < len(pinned):
            raise ArgumentError("name must differ between experiments", "name")
        return cls(
            _text("server", words["server"]),
            _key(path.parent, words["key"]) if "key" in words else None,
            path.parent / _text("tickets", words["tickets"]),
            path.parent / _text("store", words["store"]),
            by_name,
        )


def _check(where: str, words: Any, known: set[str], needed: set[str]) -> None:
    if not isinstance(words, dict):
        raise ArgumentError(f"{where} must be a table, got {shown(words)}")
    for word in words:
        choice(f"a word of {where}", word, sorted(known))
    for word in sorted(needed - words.keys()):
        raise ArgumentError(f"{word} must be given in {where}", word)


def _text(word: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ArgumentError(f"{word} must be a text, got {shown(value)}", word)
    return value


def _key(folder: Path, given: Any) -> str:
    """The service's key, which is in the environment or in a file of its own."""
    if isinstance(given, dict) and given.keys() == {"env"}:
        found = os.environ.get(_text("key.env", given["env"]), "")
    elif isinstance(given, dict) and given.keys() == {"file"}:
        try:
            found = (folder / _text("key.file", given["file"])).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            found = ""
    else:
        raise ArgumentError(
            "key must be { env = NAME } or { file = PATH }, with the key of the service",
            "key",
        )
    if not found.strip():
        raise ArgumentError(
            "key must name an environment variable or a file that holds the key, got"
            f" {given}, which is missing or empty",
            "key",
        )
    return found.strip()


def _pinned(folder: Path, words: Any) -> Pinned:
    _check("experiments", words, _OWN, {"name", "config", "least"})
    if ("closes" in words) == ("every" in words):
        raise ArgumentError(
            'closes or every must be given, and not both: with closes = "full" a batch closes when'
            " it is full, with every after a time",
            "closes",
        )
    choice("closes", words.get("closes", "full"), ("full",))
    every = seconds_of(duration("every", words["every"], "1s", "30d")) if "every" in words else None
    path = folder / _text("config", words["config"])
    try:
        given = json.loads(path.read_bytes())
        name, policy = given["name"], _policy(arguments_of_today(given["chooser"]["arguments"]))
        public = b64decode(given["public_key"], validate=True)
        most = given.get("most", policy._largest_batch)
    except ArgumentError:
        raise
    except (OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"config must name a file that configures devices, got {path}: {error!r}", "config"
        ) from None
    if name != words["name"]:
        raise ArgumentError(
            f"name must equal the entry 'name' in {path}, got {shown(words['name'])}", "name"
        )
    seal(public, "", "", b"")  # which refuses anything but a key
    most = integer("most", most, 2, _MOST_PEOPLE)
    least = integer("least", words["least"], 2, most)
    return Pinned(name_of("name", name), public, policy, least, most, every)


def _policy(arguments: dict[str, Any]) -> Any:
    policy = find(arguments.pop("class"))(**arguments)
    if policy._serving != "messages" or policy.budget is None:
        raise ArgumentError("config must be of a policy with messages=True and a budget", "config")
    if policy.config["noise"] != "secure":
        raise ArgumentError("config must be of a policy with noise='secure'", "config")
    refuse_unsealable(policy.protocol)
    return policy
