"""Forms of pages, and the check that one which comes back was sent from its page.

A browser sends the credentials of HTTP Basic with every request to the service, also where another
site made it.  So a form must come from a page of the service, by what the browser says of its
origin, and have the token that the page has.  Other sites can neither read nor make tokens.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from ...html import Html, tag, void
from ..access import Key
from ..experiment import ARCHIVED, PAUSED, RUNNING, Experiment
from ..http import body_of, read
from ..messages import ArmChange, Because, Erasure, Message, encode
from ..problems import Problem
from ..service import Call
from .facts import Facts

_DAY = 86_400.0
_MOST_FIELDS = 10
_NUMBER = re.compile(r"-?[0-9]{1,18}")
Fields = dict[str, Any]
M = TypeVar("M", bound=Message)


def password(request: Request) -> str:
    """The secret that a browser sends: the password of HTTP Basic, with any user name."""
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    with suppress(binascii.Error, UnicodeDecodeError):
        if scheme.lower() == "basic":
            return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    raise Problem(401, "unauthorized", "Sign in with any user name, and a key as the password.")


class Tokens:
    """Tokens of forms, which are good for the day on which they were made and the next.

    They end with the process.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._secret, self._clock = secrets.token_bytes(32), clock

    def make(self, key: Key, experiment: str, action: str) -> str:
        """The token for what a key may do to an experiment."""
        return self._of(key, experiment, action, self._today)

    def fits(self, token: str, key: Key, experiment: str, action: str) -> bool:
        """Whether a token was made for this."""
        good = [self._of(key, experiment, action, self._today - ago) for ago in (0, 1)]
        return any(hmac.compare_digest(one.encode(), token.encode()) for one in good)

    @property
    def _today(self) -> int:
        return int(self._clock() // _DAY)

    def _of(self, key: Key, experiment: str, action: str, day: int) -> str:
        about = json.dumps([key.digest, key.tenant, experiment, action, day]).encode()
        return hmac.new(self._secret, about, "sha256").hexdigest()


async def fields_of(request: Request, key: Key, tokens: Tokens) -> Fields:
    """The fields of a form that a page of the service has sent.

    Raises:
        Problem: 403 if it comes from elsewhere, or is too old.
    """
    if not _is_own(request):
        raise Problem(403, "foreign-form", "The form was not sent from a page of this service.")
    try:
        body = (await body_of(request)).decode()
        fields = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise Problem(422, "invalid", "The form cannot be read.") from None
    name, action = request.path_params["name"], request.path_params["action"]
    if not tokens.fits(fields.get("token", ""), key, name, action):
        raise Problem(
            403, "old-form", "The form is no longer valid. Load the page again, and send it anew."
        )
    return fields


def _is_own(request: Request) -> bool:
    """Whether a page of the service has sent a request, as its browser says."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    host = request.headers.get("host")
    return request.headers.get("origin") in (f"https://{host}", f"http://{host}")


# What an operator can do ----------------------------------------------------------------------


class Action(NamedTuple):
    """A form: its words, and what the owner does when it comes back."""

    title: str
    about: str
    done: str
    call: Callable[[Fields, str], Call]  # of the fields, and who sends them


def _message(kind: type[M], fields: Fields) -> M:
    """The fields as a body of the API, which is checked as such."""
    given = {name: fields[name] for name in kind.__struct_fields__ if name in fields}
    return read(partial(msgspec.json.decode, type=kind), encode(given))


def _to_status(status: str) -> Callable[[Fields, str], Call]:
    def asked(fields: Fields, who: str) -> Call:
        reason = _message(Because, fields).reason
        return lambda one, now: one.change_status(status, who, reason, now)

    return asked


def _archiving(fields: Fields, who: str) -> Call:
    archive = _to_status(ARCHIVED)(fields, who)

    def call(one: Experiment, now: float) -> None:
        if fields.get("confirmation") != one.name:
            raise Problem(422, "not-confirmed", "Type the name of the experiment to archive it.")
        archive(one, now)

    return call


def _retiring(fields: Fields, who: str) -> Call:
    asked = _message(ArmChange, fields)
    return lambda one, now: one.retire(_arm(one, asked.arm), who, asked.reason, now)


def _adding(fields: Fields, who: str) -> Call:
    asked = _message(ArmChange, fields)
    return lambda one, now: one.add(_arm(one, asked.arm), who, asked.reason, now)


def _arm(one: Experiment, given: str | int) -> str | int:
    """An arm of a form, which has texts only."""
    is_number = one.policy.arm_names is None and _NUMBER.fullmatch(str(given))
    return int(given) if is_number else given


def _erasing(fields: Fields, who: str) -> Call:
    if "is_number" in fields:
        if not _NUMBER.fullmatch(fields.get("unit", "")):
            raise Problem(422, "invalid", "unit must be a whole number.", word="unit")
        fields = {**fields, "unit": int(fields["unit"])}
    asked = _message(Erasure, fields)
    return lambda one, now: one.erase(asked.unit, who, asked.reason, now)


ACTIONS = {
    "pause": Action(
        "Pause",
        "Requests get the baseline. Without a baseline they are refused. Rewards of earlier"
        " decisions still count.",
        "The experiment is paused.",
        _to_status(PAUSED),
    ),
    "resume": Action(
        "Resume",
        "The policy chooses arms again. A breaker that has tripped is reset.",
        "The experiment runs again.",
        _to_status(RUNNING),
    ),
    "retire": Action(
        "Retire an arm",
        "The arm is served no more. Rewards of its earlier decisions still count.",
        "The arm is retired.",
        _retiring,
    ),
    "add": Action(
        "Add an arm", "A retired arm is served again.", "The arm is served again.", _adding
    ),
    "erase": Action(
        "Erase a person's pending data",
        "The service forgets those of the person's decisions whose rewards were not released. They"
        " count as unanswered. Released values stay.",
        "Decisions that were erased: {count}.",
        _erasing,
    ),
    "archive": Action(
        "Archive",
        "The experiment makes no more decisions, and takes rewards until their deadlines. Then it"
        " makes its last release, and destroys private data and keys. This cannot be undone.",
        "The experiment is archived.",
        _archiving,
    ),
}


def possible(facts: Facts) -> Iterator[str]:
    """The actions that an experiment allows."""
    if facts.summary["status"] == ARCHIVED:
        if not facts.summary["finished"]:
            yield "erase"
        return
    running = facts.summary["status"] == RUNNING
    if running:
        yield "pause"
    if not running or facts.summary["breaker_tripped"]:
        yield "resume"
    if facts.changes_arms:
        yield "retire"
        if facts.summary["retired"]:
            yield "add"
    yield "erase"
    yield "archive"


def form(facts: Facts, action: str, token: str) -> Html:
    """The form of an action."""
    about = ACTIONS[action]
    return tag(
        "form",
        tag("h3", about.title),
        tag("p", about.about),
        void("input", type="hidden", name="token", value=token),
        *_fields(facts, action),
        _input("Reason, for the audit trail", "reason", maxlength="500"),
        tag("button", about.title, type="submit", class_="grave" if action == "archive" else ""),
        method="post",
        action=f"/console/{facts.name}/{action}",
        class_="action",
    )


def _fields(facts: Facts, action: str) -> Iterator[Html]:
    """The fields that an action has beside its reason."""
    arms, retired = facts.summary["arms"], facts.summary["retired"]
    if action == "retire":
        kept = facts.declaration.baseline
        yield _arm_field(facts, [arm for arm in arms if arm not in retired and arm != kept])
        if kept is not None:
            yield tag("p", f"The baseline, {kept}, stays open.", class_="note")
    elif action == "add":
        yield _arm_field(facts, retired)
    elif action == "erase":
        yield _input("Person, as in requests (unit)", "unit")
        box = void("input", type="checkbox", name="is_number", value="yes")
        yield tag("label", box, " Requests give it as a number", class_="box")
    elif action == "archive":
        yield _input(f"Name of the experiment ({facts.name})", "confirmation")


def _arm_field(facts: Facts, arms: Iterable[str | int]) -> Html:
    """A choice of arms; with private contexts, pages list none."""
    if facts.summary["private_contexts"]:
        return _input("Arm, by name or number", "arm")
    options = [tag("option", str(arm), value=str(arm)) for arm in arms]
    return tag("label", "Arm", tag("select", *options, name="arm", required="required"))


def _input(label: str, name: str, **more: str) -> Html:
    field = void("input", type="text", name=name, required="required", autocomplete="off", **more)
    return tag("label", label, field)
