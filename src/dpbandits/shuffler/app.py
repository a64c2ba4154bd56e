"""The shuffler's address for devices, and its life."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ..service.http import NO_SUCH, Bodies, body_of, read, refusal, reply
from ..service.problems import Problem
from ..service.server import run
from ..service.service import bearer
from .config import Config
from .experiment import Experiment, Submission
from .sending import Server
from .store import BatchStore
from .tickets import Tickets

_submission = msgspec.json.Decoder(Submission).decode


def shuffle(config: Config, host: str, port: int) -> None:
    """Shuffle until SIGTERM or SIGINT.

    Raises:
        ArgumentError: the address or key of the server is wrong, or there is no secret of tickets.
    """
    run(make_app(config), host, port, experiments=len(config.experiments))


def make_app(config: Config, transport: httpx.AsyncBaseTransport | None = None) -> Starlette:
    """The application of a shuffler.

    Args:
        transport: how the server is reached.
    """
    http = httpx.AsyncClient(transport=transport, follow_redirects=False)
    server, store = Server(config.server, config.key, http), BatchStore(config.store)
    experiments = {name: Experiment(one, store, server) for name, one in config.experiments.items()}
    calls = _Calls(experiments, Tickets(config.tickets))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        running = [asyncio.create_task(one.run()) for one in experiments.values()]
        calls.running = running
        try:
            yield
        finally:
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await http.aclose()
            store.close()

    # Devices may be pages of any origin: a ticket is no cookie, so no page can use another's.
    anywhere = Middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=["POST"],
        allow_headers=["authorization", "content-type"],
    )
    return Starlette(
        routes=[
            Route("/v1/experiments/{name}/messages", calls.take, methods=["POST"]),
            Route("/healthz", calls.healthy, methods=["GET"]),
        ],
        middleware=[anywhere],
        lifespan=lifespan,
        exception_handlers=NO_SUCH,
    )


class _Calls:
    """The handlers."""

    def __init__(self, experiments: Mapping[str, Experiment], tickets: Tickets) -> None:
        self._experiments, self._tickets, self._bodies = experiments, tickets, Bodies()
        self.running: list[asyncio.Task[None]] = []

    async def take(self, request: Request) -> Response:
        try:
            name = request.path_params["name"]
            one = self._experiments.get(name)
            if one is None:
                raise Problem(404, "unknown-experiment", "There is no such experiment.")
            user = self._tickets.user_of(name, bearer(request))
            if user is None:
                raise Problem(401, "unauthorized", "Send a ticket of this experiment.")
            with self._bodies.counted(request, ""):
                sent = read(_submission, await body_of(request))
                await one.take(user, sent)
            return reply({"label": sent.label}, 202)
        except ClientDisconnect:  # nobody reads this
            return Response(status_code=400)
        except Exception as error:
            return refusal(error)

    async def healthy(self, request: Request) -> Response:
        alive = all(not one.done() for one in self.running)
        return reply({"alive": alive}, 200 if alive else 503)
