"""Bodies and problems over HTTP, for programs and for pages."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import TypeVar

import msgspec
from starlette.requests import Request

from .access import Key
from .log import log
from .problems import Problem

LARGEST_BODY = 4 * 2**20  # bytes
SLOWEST_BODY = 20.0  # seconds
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
