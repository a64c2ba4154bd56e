"""Clients and their experiments."""

from __future__ import annotations

from typing import Self

import httpx

from .exchange import Endpoint, Retries
from .methods import ClientMethods, ExperimentMethods
from .transports import Awaited, Blocking, certificates


class Client(ClientMethods, Blocking):
    """A client of a service.  Threads may share it.

    Args:
        url: the address of the service.
        key: which has the roles that the calls need; None for a service without keys.
        retries: for how long a call is tried.
        transport: of httpx, for certificates or proxies of your own.

    Use it in a ``with`` statement, or call ``close``.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        retries: Retries | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._endpoint = Endpoint(url, key, retries or Retries())
        self._http = httpx.Client(transport=transport, verify=certificates())

    def experiment(self, name: str) -> Experiment:
        """One experiment; this sends nothing."""
        return Experiment(self, name)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._endpoint.url!r})"


class Experiment(ExperimentMethods, Blocking):
    """An experiment of a ``Client``: ``client.experiment(name)``."""

    def __init__(self, client: Client, name: str) -> None:
        self.name, self._client = name, client
        self._endpoint, self._http = client._endpoint, client._http

    def __repr__(self) -> str:
        return f"Experiment({self.name!r}, {self._client!r})"


class AsyncClient(ClientMethods, Awaited):
    """A client of a service, for asyncio.  Its calls are awaited.

    Args:
        url: the address of the service.
        key: which has the roles that the calls need; None for a service without keys.
        retries: for how long a call is tried.
        transport: of httpx, for certificates or proxies of your own.

    Use it in an ``async with`` statement, or await ``close``.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        retries: Retries | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._endpoint = Endpoint(url, key, retries or Retries())
        self._http = httpx.AsyncClient(transport=transport, verify=certificates())

    def experiment(self, name: str) -> AsyncExperiment:
        """One experiment; this sends nothing."""
        return AsyncExperiment(self, name)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self._endpoint.url!r})"


class AsyncExperiment(ExperimentMethods, Awaited):
    """An experiment of an ``AsyncClient``: ``client.experiment(name)``."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name, self._client = name, client
        self._endpoint, self._http = client._endpoint, client._http

    def __repr__(self) -> str:
        return f"AsyncExperiment({self.name!r}, {self._client!r})"
