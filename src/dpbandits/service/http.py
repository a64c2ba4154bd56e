"""Bodies and problems over HTTP, for programs and for pages."""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from .access import Key
from .log import log
from .messages import encode
from .problems import Problem, busy

LARGEST_BODY = 4 * 2**20  # bytes
MOST_BYTES = 32 * 2**20  # of all bodies that are held at once
MOST_OF_ONE = MOST_BYTES // 2  # of one tenant
LARGEST_BATCH = MOST_OF_ONE  # of a shuffler: about 100,000 people
SLOWEST_BODY = 20.0  # seconds
JSON, PROBLEM = "application/json", "application/problem+json"
T = TypeVar("T")
_NO_NUMBER = re.compile(rb"\b(NaN|Infinity|nan|inf)\b")
_NAMES = {"float": "number", "int": "integer", "str": "string", "bool": "boolean"}
_TYPES = re.compile(rf"(?<![$.\w])({'|'.join(_NAMES)})(?!\w)")


class Bodies:
    """Counts the bytes of bodies from their arrival until the reply: also while they wait for the
    owner.  The objects that JSON stands for may take 25 times as much memory.
    """

    def __init__(self) -> None:
        self._all, self._by_tenant = 0, Counter[str]()

    @contextmanager
    def counted(self, request: Request, tenant: str) -> Iterator[None]:
        """Count the body of a request in this block, in which it gets its reply."""
        size = 0

        def count(more: int) -> None:
            nonlocal size
            mine = self._by_tenant[tenant] + more
            if self._all + more > MOST_BYTES or mine > MOST_OF_ONE:
                raise busy()
            self._all, self._by_tenant[tenant], size = self._all + more, mine, size + more

        request.state.count = count
        try:
            yield
        finally:
            self._all, self._by_tenant[tenant] = self._all - size, self._by_tenant[tenant] - size


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


async def body_of(request: Request, most: int = LARGEST_BODY) -> bytes:
    """The body, which must be short and come soon, when ``Bodies`` have room for it."""
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > most:
        raise _too_large(most)
    chunks, size = [], 0
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            async for chunk in request.stream():
                size += len(chunk)
                if size > most:
                    raise _too_large(most)
                request.state.count(len(chunk))
                chunks.append(chunk)
    except TimeoutError:
        raise Problem(408, "too-slow", "The body did not come in time.") from None
    return b"".join(chunks)


def _too_large(most: int) -> Problem:
    return Problem(413, "too-large", f"A body must have at most {most:,} bytes.")


def read(decode: Callable[[bytes], T], body: bytes) -> T:
    """A message; the problem does not repeat values, which may be rewards."""
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid", f"The body is not as expected: {_in_json(error)}.") from None
    except RecursionError:
        raise Problem(422, "not-json", "The body has too many levels of brackets.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        hint = " JSON has neither NaN nor Infinity." if _NO_NUMBER.search(body) else ""
        raise Problem(422, "not-json", f"The body is not JSON.{hint}") from None


def _in_json(error: msgspec.ValidationError) -> str:
    """What an error says, with the names that JSON has for types."""
    return _TYPES.sub(lambda found: _NAMES[found[0]], str(error))


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
