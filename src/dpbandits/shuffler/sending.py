"""Requests to the server, whose replies are not trusted: they are bounded in time and length."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import httpx
import msgspec

from ..client.exchange import Came, Endpoint, Pause, Retries, ServiceError, Step, read, unexpected
from ..client.transports import Awaited

LONGEST = 16 * 2**20  # bytes of a reply
SLOWEST = 60.0  # seconds for a request
RETRIES = Retries(limit=60.0, attempt=SLOWEST)
T = TypeVar("T")


class Server(Awaited):
    """The service, as the shuffler asks it.

    Args:
        url: its address.
        key: with the roles read and shuffle; None where it asks for none.
        http: how requests are sent.

    Raises:
        ArgumentError: the address or the key is wrong.
    """

    def __init__(self, url: str, key: str | None, http: httpx.AsyncClient) -> None:
        self._endpoint, self._http = Endpoint(url, key, RETRIES), http

    async def round(self, name: str) -> Any:
        """What the server says of its present batch.

        Raises:
            ServiceError: it says nothing, or nothing in JSON.
        """
        at = f"/v1/experiments/{name}/randomiser"
        return read(await self._run(self._endpoint.ask("GET", at)), dict[str, Any])

    async def deliver(self, name: str, body: bytes) -> bool:
        """Send an output; whether the server has taken it.  It may be sent again only if this
        raises.

        Raises:
            ServiceError: the server does not say whether it has.
        """
        at = f"/v1/experiments/{name}/batches"
        try:
            reply = await self._run(self._endpoint.ask("POST", at, body))
        except ServiceError as error:
            if _is_final(error):
                return False  # it has gone on without this batch, or will never take it
            raise
        sent = msgspec.json.decode(body)["batch_id"]
        if read(reply, dict[str, Any]).get("batch_id") != sent:  # that of a proxy, or a portal
            raise unexpected(reply.status_code)
        return True

    async def _do(self, step: Step) -> Came:
        if isinstance(step, Pause):
            return await super()._do(step)
        try:
            async with asyncio.timeout(SLOWEST):
                return await self._bounded(step.request)
        except TimeoutError:
            return httpx.ReadTimeout("the reply did not come in time")
        except httpx.RequestError as error:
            return error

    async def _bounded(self, request: httpx.Request) -> httpx.Response:
        """The reply as it came: a short compressed one may be long."""
        request.headers["accept-encoding"] = "identity"
        response, content = await self._http.send(request, stream=True), b""
        try:
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > LONGEST:
                    raise httpx.ReadError("the reply is too long")
        finally:
            await response.aclose()
        return httpx.Response(response.status_code, headers=_kept(response), content=content)


def _is_final(error: ServiceError) -> bool:
    """Whether the service has refused an output for good; a proxy may do so only for now."""
    by_service = error.kind not in ("http", "paused", "not-started")
    return error.status == 410 or (error.status in (404, 409, 413, 422) and by_service)


def _kept(response: httpx.Response) -> dict[str, str]:
    """The headers that say how long to wait."""
    return {k: v for k, v in response.headers.items() if k == "retry-after"}
