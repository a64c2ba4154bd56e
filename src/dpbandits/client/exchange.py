"""Requests, their repetition, and errors, without a network.

A call on the service is a generator, ``Steps``.  It yields each step, a request to send or
a time to wait, and returns the result of the call.  Transports do the steps: see ``clients``.
"""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from time import monotonic
from typing import Any, NamedTuple, TypeAlias, TypeVar

import httpx
import msgspec

from ..errors import ArgumentError, DPBanditsError

_NOT_NOW, _GATEWAY = frozenset({429, 503}), frozenset({502, 504})
_UNSENT = httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout
_BROKEN = httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError
_SHORTEST = 1e-3  # seconds that a request has at least
T = TypeVar("T")


class Send(NamedTuple):
    """A request is to be sent."""

    request: httpx.Request


class Pause(NamedTuple):
    """Time is to pass."""

    seconds: float


Step = Send | Pause
Came = httpx.Response | httpx.RequestError | None  # None after a pause
Steps: TypeAlias = Generator[Step, Came, T]


class ServiceError(DPBanditsError):
    """The service has refused a request, or was not reached.

    Attributes:
        status: of HTTP; None without a reply.
        kind: a word, by which programs tell errors apart; "unreachable" without a reply.
        detail: a sentence.
        more: further members of the problem details, such as "errors".
    """

    def __init__(
        self, status: int | None, kind: str, detail: str, more: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(status, kind, detail, more)
        self.status, self.kind, self.detail, self.more = status, kind, detail, dict(more or {})

    def __str__(self) -> str:
        known = self.kind if self.status is None else f"{self.kind}, status {self.status}"
        return f"{self.detail} ({known})"

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind == "unreachable" or self.status in _NOT_NOW | _GATEWAY

    @classmethod
    def of(cls, problem: Any, status: int) -> ServiceError:
        """The error that problem details tell; a plain one for anything else."""
        told = dict(problem) if isinstance(problem, Mapping) else {}
        kind, detail = told.pop("type", None), told.pop("detail", None)
        if not isinstance(kind, str) or not isinstance(detail, str):
            return cls(status, "http", f"The reply has status {status}.")
        return cls(
            status, kind, detail, {k: v for k, v in told.items() if k not in ("title", "status")}
        )


@dataclass(frozen=True)
class Retries:
    """For how long a client tries.  All times are in seconds.

    Attributes:
        limit: for a call, with all repetitions.  The last repetition may take a little longer,
            because connecting, sending and receiving have a limit each.
        attempt: for each of connecting, sending and receiving, in one attempt.
        first: the longest pause before the first repetition; each later one may be twice as long.
        most: the longest pause.
    """

    limit: float = 30.0
    attempt: float = 10.0
    first: float = 0.1
    most: float = 5.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ArgumentError(f"{name} must be a positive number, got {value!r}", name)

    def pause(self, number: int) -> float:
        """The pause after some attempts, at random: clients that failed together come apart."""
        return random.uniform(0.0, min(self.most, self.first * 2.0 ** min(number, 64)))


class Endpoint:
    """Where a service is, with which key, and for how long a client tries."""

    def __init__(self, url: str, key: str | None, retries: Retries) -> None:
        self.url, self.retries = _checked(url), retries
        self._headers = httpx.Headers({"content-type": "application/json"})
        if key is not None:
            if not key.isascii() or not key.isprintable() or " " in key or not key:
                raise ArgumentError(
                    "key must be the text that `dpbandits keys add` showed when it made the key",
                    "key",
                )
            self._headers["authorization"] = f"Bearer {key}"  # which these headers do not print

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        repeatable: bool = True,
        within: float | None = None,
    ) -> Steps[httpx.Response]:
        """Send a request until it succeeds, fails for good, or the time is over.

        Args:
            repeatable: whether the service recognises repetitions.  Without it, a request is
                repeated only if it was not sent, or if the service says that it did nothing.
            within: instead of ``retries.limit``.

        Raises:
            ServiceError: it has not succeeded.
        """
        end = monotonic() + (self.retries.limit if within is None else within)
        for number in count():
            came = yield Send(self._request(method, path, body, end - monotonic()))
            assert came is not None
            if isinstance(came, httpx.Response) and came.is_success:
                return came
            pause = _retry_after(came) + self.retries.pause(number)
            if not _may_repeat(came, repeatable) or monotonic() + pause >= end:
                raise _error(came)
            yield Pause(pause)
        raise AssertionError  # count() does not end

    def _request(self, method: str, path: str, body: bytes, left: float) -> httpx.Request:
        timeout = httpx.Timeout(max(_SHORTEST, min(left, self.retries.attempt)))
        extensions = {"timeout": timeout.as_dict()}
        return httpx.Request(
            method, self.url + path, headers=self._headers, content=body, extensions=extensions
        )


def _checked(url: str) -> str:
    try:
        read = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        read = httpx.URL()
    if read.scheme not in ("http", "https") or not read.host or read.userinfo or read.query:
        raise ArgumentError(
            "url must be the address of a service, such as https://bandits.example", "url"
        )
    return str(read).rstrip("/")


def _may_repeat(came: httpx.Response | httpx.RequestError, repeatable: bool) -> bool:
    if isinstance(came, httpx.Response):
        status = came.status_code
        return status in _NOT_NOW or (repeatable and status in _GATEWAY)
    return isinstance(came, _UNSENT) or (repeatable and isinstance(came, _BROKEN))


def _retry_after(came: httpx.Response | httpx.RequestError) -> float:
    """For how many seconds the service wants no repetition."""
    told = came.headers.get("retry-after", "") if isinstance(came, httpx.Response) else ""
    if told.isdecimal():
        return float(told)
    with suppress(ValueError):
        when = parsedate_to_datetime(told)
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        return max(0.0, (when - datetime.fromtimestamp(time.time(), UTC)).total_seconds())
    return 0.0


def _error(came: httpx.Response | httpx.RequestError) -> ServiceError:
    if isinstance(came, httpx.Response):
        problem = None
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            problem = msgspec.json.decode(came.content)
        return ServiceError.of(problem, came.status_code)
    # Other errors than these may quote headers, where the key is.
    why = f": {came}" if isinstance(came, httpx.ConnectError) and str(came) else ""
    told = f"The service could not be reached: {type(came).__name__}{why}."
    return ServiceError(None, "unreachable", told)


def read(response: httpx.Response, kind: type[T]) -> T:
    """A reply of the service.

    Raises:
        ServiceError: something else has replied.
    """
    try:
        return msgspec.json.decode(response.content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise unexpected(response.status_code) from None


def unexpected(status: int) -> ServiceError:
    """The error of a reply that is not the service's."""
    told = "The reply does not come from a service of dpbandits. Is the address right?"
    return ServiceError(status, "unexpected", told)
