"""Bodies and problems over HTTP, for programs and for pages."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from .access import Key
from .log import log
from .messages import encode
from .problems import Problem

LARGEST_BODY = 4 * 2**20  # bytes
SLOWEST_BODY = 20.0  # seconds
JSON, PROBLEM = "application/json", "application/problem+json"
T = TypeVar("T")


def problem_of(error: BaseException) -> Problem:
    """The problem of an error; a defect is logged."""
    problem = Problem.of(error)
    if problem.status == 500:
        log("error", error=type(error).__name__)
    return problem


def refused(error: Exception, scheme: str) -> tuple[Problem, dict[str, str]]:
    """The problem that an error is, and headers of its reply; ``scheme`` asks for a key."""
    problem, headers = problem_of(error), dict[str, str]()
    if problem.status in (429, 503):
        wait = problem.more.get("retry_after", 1.0)
        headers["retry-after"] = str(math.ceil(wait))
    if problem.status == 401:
        headers["www-authenticate"] = scheme
    return problem, headers


async def body_of(request: Request) -> bytes:
    """The body, which must be short and come soon."""
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > LARGEST_BODY:
        raise _too_large()
    chunks, size = [], 0
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            async for chunk in request.stream():
                size += len(chunk)
                if size > LARGEST_BODY:
                    raise _too_large()
                chunks.append(chunk)
    except TimeoutError:
        raise Problem(408, "too-slow", "The body did not come in time.") from None
    return b"".join(chunks)


def _too_large() -> Problem:
    return Problem(413, "too-large", f"A body must have at most {LARGEST_BODY:,} bytes.")


def read(decode: Callable[[bytes], T], body: bytes) -> T:
    """A message; the problem does not repeat values, which may be rewards."""
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid", f"The body is not as expected: {error}.") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Problem(422, "not-json", "The body is not JSON.") from None


def covers(key: Key, name: str) -> bool:
    """Whether a key is for an experiment."""
    try:
        key.refuse_unless("read", name)
    except Problem:
        return False
    return True


def reply(content: Mapping[str, Any], status: int = 200) -> Response:
    """A reply in JSON."""
    return Response(encode(content), status, media_type=JSON)


def refusal(error: Exception) -> Response:
    """The reply that tells a program of an error."""
    problem, headers = refused(error, "Bearer")
    headers["content-type"] = PROBLEM
    return Response(encode(problem.to_dict()), problem.status, headers)


async def _no_such_address(request: Request, _: Exception) -> Response:
    return refusal(Problem(404, "unknown-address", "There is nothing at this address."))


async def _no_such_method(request: Request, error: Any) -> Response:
    response = refusal(Problem(405, "method", "This address does not take this method."))
    response.headers.update(error.headers or {})
    return response


NO_SUCH: Any = {404: _no_such_address, 405: _no_such_method}  # of ``Starlette``
