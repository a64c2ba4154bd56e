"""The application: what each address does.

A handler decodes and checks the body, asks the owner, and awaits the commit.  It never touches a
policy: these are the owner's, in its thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ..errors import DPBanditsError
from . import views
from .access import EVERYONE, Key
from .console.routes import routes_of
from .declaration import Declaration
from .experiment import ARCHIVED, PAUSED, RUNNING, Experiment
from .http import JSON, LARGEST_BATCH, NO_SUCH, body_of, covers, problem_of, read
from .http import refusal as _refusal
from .http import reply as _json
from .messages import (
    ArmChange,
    BatchRequest,
    Because,
    DecisionBatch,
    DecisionRequest,
    Erasure,
    Named,
    ReportRequest,
    RewardBatch,
    RewardRequest,
    encode,
)
from .metrics import metrics_of
from .openapi import document
from .owner import refuse_changes
from .parties import Parties
from .problems import Problem
from .results import Asked
from .service import Call, Service

Handler = Callable[[Request, Key], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]

_declared = msgspec.json.Decoder(dict[str, Any]).decode
_decision = msgspec.json.Decoder(DecisionRequest).decode
_decisions = msgspec.json.Decoder(DecisionBatch).decode
_reward = msgspec.json.Decoder(RewardRequest).decode
_rewards = msgspec.json.Decoder(RewardBatch).decode
_named = msgspec.json.Decoder(Named).decode
_because = msgspec.json.Decoder(Because).decode
_report = msgspec.json.Decoder(ReportRequest).decode
_batch = msgspec.json.Decoder(BatchRequest).decode
_arm = msgspec.json.Decoder(ArmChange).decode
_erasure = msgspec.json.Decoder(Erasure).decode


def make_app(
    service: Service, *, on_start: Callable[[], Coroutine[Any, Any, None]] | None = None
) -> Starlette:
    """The application of a service.

    Args:
        on_start: runs beside the first requests, until the service is ready.
    """
    calls = _Calls(service)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        service.owner.start()
        running = [asyncio.create_task(one()) for one in (service.keep_warm, on_start) if one]
        try:
            yield
        finally:
            for one in running:
                one.cancel()
            service.owner.stop()
            await asyncio.to_thread(service.owner.join)

    return Starlette(
        routes=[*_routes(service, calls), *routes_of(service)],
        lifespan=lifespan,
        exception_handlers=NO_SUCH,
    )


def _routes(service: Service, calls: _Calls) -> list[Route]:
    def route(path: str, method: str, role: str | None, handler: Any) -> Route:
        admit = partial(service.admit, role=role) if role else lambda _: EVERYONE
        return Route(path, _answering(service, admit, handler), methods=[method])

    one = "/v1/experiments/{name}"
    return [
        route(f"{one}/decisions", "POST", "decide", calls.decide),
        route(f"{one}/rewards", "POST", "reward", calls.reward),
        route(f"{one}/decisions/batch", "POST", "decide", calls.decide_many),
        route(f"{one}/rewards/batch", "POST", "reward", calls.reward_many),
        route(f"{one}/activate", "POST", "decide", calls.activate),
        route(f"{one}/cancel", "POST", "decide", calls.cancel),
        route("/v1/experiments", "GET", "read", calls.listed),
        route("/v1/experiments", "POST", "admin", calls.declare),
        route(one, "GET", "read", calls.summary),
        route(one, "DELETE", "admin", calls.delete),
        route(f"{one}/ledger", "GET", "read", calls.ledger),
        route(f"{one}/guarantee", "GET", "read", calls.shown(views.guarantee)),
        route(f"{one}/estimates", "GET", "read", calls.shown(views.estimates)),
        route(f"{one}/card", "GET", "read", calls.card),
        *_for_pages(service, calls),
        route(f"{one}/config", "GET", "read", calls.config),
        route(f"{one}/batches", "POST", "shuffle", calls.batch),
        route(f"{one}/trail", "GET", "admin", calls.trail),
        route(f"{one}/pause", "POST", "admin", calls.status(PAUSED)),
        route(f"{one}/resume", "POST", "admin", calls.status(RUNNING)),
        route(f"{one}/archive", "POST", "admin", calls.status(ARCHIVED)),
        route(f"{one}/retire", "POST", "admin", calls.retire),
        route(f"{one}/add", "POST", "admin", calls.add),
        route(f"{one}/erase", "POST", "admin", calls.erase),
        route("/healthz", "GET", None, calls.healthy),
        route("/readyz", "GET", None, calls.ready),
        route("/metrics", "GET", "read", calls.metrics),
        route("/openapi.json", "GET", None, calls.openapi),
    ]


def _for_pages(service: Service, calls: _Calls) -> list[Route]:
    """Addresses that pages of other origins may call, where an experiment allows it."""
    found = []
    for what, method, admit, handler in (
        ("chooser", "GET", service.admit_reader, calls.chooser),
        ("randomiser", "GET", service.admit_reader, calls.randomiser),
        ("reports", "POST", partial(service.admit, role="report"), calls.report),
    ):
        path, answering = f"/v1/experiments/{{name}}/{what}", _answering(service, admit, handler)
        found.append(Route(path, _sharing(service, answering), methods=[method]))
        found.append(Route(path, _sharing(service, _preflight(method)), methods=["OPTIONS"]))
    return found


def _sharing(service: Service, endpoint: Endpoint) -> Endpoint:
    """An endpoint whose replies pages of the declared origins may read (CORS)."""

    async def shared(request: Request) -> Response:
        request.state.for_pages = True
        response = await endpoint(request)
        response.headers["vary"] = "origin"
        origin = request.headers.get("origin")
        if origin is not None and origin in service.origins(request):
            response.headers["access-control-allow-origin"] = origin
        return response

    return shared


def _preflight(method: str) -> Endpoint:
    headers = {
        "access-control-allow-methods": method,
        "access-control-allow-headers": "authorization, content-type",
        "access-control-max-age": "600",
    }

    async def endpoint(request: Request) -> Response:
        return Response(status_code=204, headers=headers)

    return endpoint


class _Calls:
    """The handlers."""

    def __init__(self, service: Service) -> None:
        self._service = service

    # Decisions and rewards --------------------------------------------------------------------

    async def decide(self, request: Request, key: Key) -> Response:
        asked = _asked(read(_decision, await body_of(request)))
        made = await self._service.ask(
            request, key, lambda one, now: one.clients.decide(asked, now)
        )
        return _json(made._asdict())

    async def reward(self, request: Request, key: Key) -> Response:
        taking = _taking(read(_reward, await body_of(request)))
        taken = await self._service.ask(request, key, taking)
        return _json(taken._asdict(), 202)

    async def decide_many(self, request: Request, key: Key) -> Response:
        asked = [_asked(one) for one in read(_decisions, await body_of(request)).decisions]
        return await self._many(request, key, [_deciding(one) for one in asked], 200)

    async def reward_many(self, request: Request, key: Key) -> Response:
        rewards = read(_rewards, await body_of(request)).rewards
        return await self._many(request, key, [_taking(one) for one in rewards], 202)

    async def _many(self, request: Request, key: Key, calls: list[Call], status: int) -> Response:
        if self._service.keys is not None:
            self._service.keys.charge(key, len(calls) - 1)
        waiting = [self._service.ask(request, key, call) for call in calls]
        results = await asyncio.gather(*waiting, return_exceptions=True)
        first = results[0]
        if isinstance(first, Problem) and first.kind in ("unknown-experiment", "starting"):
            raise first
        return _json({"results": [_item(one, status) for one in results]})

    async def activate(self, request: Request, key: Key) -> Response:
        named = read(_named, await body_of(request))
        ids = named.decision_id, named.token
        taken = await self._service.ask(
            request, key, lambda one, now: one.clients.activate(*ids, now)
        )
        return _json(taken._asdict())

    async def cancel(self, request: Request, key: Key) -> Response:
        named = read(_named, await body_of(request))
        ids = named.decision_id, named.token
        taken = await self._service.ask(
            request, key, lambda one, now: one.clients.cancel(*ids, now)
        )
        return _json(taken._asdict())

    # Experiments ------------------------------------------------------------------------------

    async def listed(self, request: Request, key: Key) -> Response:
        owner = self._service.owner
        mine = [
            name
            for tenant, name in sorted(owner.experiments)
            if tenant == key.tenant and covers(key, name)
        ]
        view = _summary_for(key)
        found = [owner.ask((key.tenant, name), lambda one, _: view(one)) for name in mine]
        coming = [
            _absent(name, why)
            for name, why in self._service.absent(key.tenant).items()
            if covers(key, name)
        ]
        there = await asyncio.gather(*found, return_exceptions=True)
        told = [_listed(name, one) for name, one in zip(mine, there, strict=True)]
        return _json({"experiments": [*told, *coming]})

    async def declare(self, request: Request, key: Key) -> Response:
        declaration = Declaration.read(read(_declared, await body_of(request)))
        key.refuse_unless("admin", declaration.name)
        at = key.tenant, declaration.name
        await asyncio.to_thread(declaration.check)
        known = self._service.owner.experiments.get(at)
        if known is not None:
            refuse_changes(known.declaration, declaration)
            return _json({"name": declaration.name, "status": known.status}, 200)
        self._service.begin(key.tenant, declaration, key.id)
        return _json({"name": declaration.name, "status": "starting"}, 202)

    async def summary(self, request: Request, key: Key) -> Response:
        return await self.shown(_summary_for(key))(request, key)

    def shown(self, view: Callable[[Experiment], dict[str, Any]]) -> Handler:
        """A handler that shows an experiment."""

        async def show(request: Request, key: Key) -> Response:
            name, absent = request.path_params["name"], self._service.absent(key.tenant)
            if name in absent:
                return _json(_absent(name, absent[name]))
            return _json(await self._service.ask(request, key, lambda one, _: view(one)))

        return show

    async def ledger(self, request: Request, key: Key) -> Response:
        first = _count(request, "first", 0, 2**53)
        count = _count(request, "count", views.MOST_LINES, views.MOST_LINES)
        return await self.shown(lambda one: views.ledger(one, first, count))(request, key)

    async def delete(self, request: Request, key: Key) -> Response:
        name = request.path_params["name"]
        self._service.forget(key.tenant, name)
        return _json({"name": name, "status": "deleted"})

    async def card(self, request: Request, key: Key) -> Response:
        html = "text/html" in request.headers.get("accept", "")
        page = await self._service.ask(request, key, lambda one, _: one.policy.card_page())
        if html:
            return Response(page.html(), media_type="text/html")
        return Response(page.markdown(), media_type="text/markdown")

    async def chooser(self, request: Request, key: Key) -> Response:
        found = await self._devices(request, key, lambda devices, _: devices.chooser())
        return Response(found, media_type=JSON)

    async def randomiser(self, request: Request, key: Key) -> Response:
        return _json(
            await self._devices(request, key, lambda devices, _: devices.told(Parties.round))
        )

    async def config(self, request: Request, key: Key) -> Response:
        return _json(
            await self._devices(request, key, lambda devices, _: devices.told(Parties.config))
        )

    async def _devices(self, request: Request, key: Key, call: Callable[..., Any]) -> Any:
        return await self._service.ask(request, key, lambda one, now: call(one.devices, now))

    async def report(self, request: Request, key: Key) -> Response:
        sent = read(_report, await body_of(request))
        taken = await self._devices(request, key, lambda devices, now: devices.report(sent, now))
        return _json({"report_id": sent.report_id, **taken._asdict()}, 202)

    async def batch(self, request: Request, key: Key) -> Response:
        sent = read(_batch, await body_of(request, LARGEST_BATCH))
        opening = await self._devices(request, key, lambda devices, now: devices.opening(sent, now))
        opened = await asyncio.to_thread(opening)  # which takes long, for the owner
        taken = await self._devices(
            request, key, lambda devices, now: devices.batch(sent, opened, now)
        )
        return _json({"batch_id": sent.batch_id, **taken._asdict()}, 202)

    async def trail(self, request: Request, key: Key) -> Response:
        lines = await self._service.ask(request, key, lambda one, _: one.trail.lines)
        return _json({"lines": lines})

    def status(self, status: str) -> Handler:
        """A handler that pauses, resumes or archives."""

        async def change(request: Request, key: Key) -> Response:
            reason = read(_because, await body_of(request)).reason
            return await self._changed(
                request, key, lambda one, now: one.change_status(status, key.id, reason, now)
            )

        return change

    async def retire(self, request: Request, key: Key) -> Response:
        asked = read(_arm, await body_of(request))
        return await self._changed(
            request, key, lambda one, now: one.retire(asked.arm, key.id, asked.reason, now)
        )

    async def add(self, request: Request, key: Key) -> Response:
        asked = read(_arm, await body_of(request))
        return await self._changed(
            request, key, lambda one, now: one.add(asked.arm, key.id, asked.reason, now)
        )

    async def erase(self, request: Request, key: Key) -> Response:
        asked = read(_erasure, await body_of(request))
        erased = await self._service.ask(
            request, key, lambda one, now: one.erase(asked.unit, key.id, asked.reason, now)
        )
        return _json({"decisions": erased})

    async def _changed(self, request: Request, key: Key, call: Call) -> Response:
        def change(one: Experiment, now: float) -> dict[str, Any]:
            call(one, now)
            return views.for_admins(one)

        return _json(await self._service.ask(request, key, change))

    # The service itself -----------------------------------------------------------------------

    async def healthy(self, request: Request, key: Key) -> Response:
        alive = self._service.owner.is_alive()
        return _json({"alive": alive}, 200 if alive else 503)

    async def ready(self, request: Request, key: Key) -> Response:
        ready, missing = self._service.is_ready, self._service.missing
        return _json({"ready": ready, "missing": missing}, 200 if ready else 503)

    async def metrics(self, request: Request, key: Key) -> Response:
        owner = self._service.owner

        def gather(_: float) -> list[dict[str, Any]]:
            summaries = []
            for (tenant, name), one in owner.experiments.items():
                if tenant == key.tenant and covers(key, name):
                    with suppress(DPBanditsError):  # it cannot be written, so it is not shown
                        summaries.append({**views.summary(one), "tenant": tenant})
            return summaries

        text, kind = metrics_of(await owner.ask_alone(gather))
        return Response(text, headers={"content-type": kind})

    async def openapi(self, request: Request, key: Key) -> Response:
        return _json(document())


# Pieces ---------------------------------------------------------------------------------------


def _answering(service: Service, admit: Callable[[Request], Key], handler: Handler) -> Endpoint:
    """An endpoint that turns errors into problems, and asks for a key."""

    async def endpoint(request: Request) -> Response:
        try:
            key = admit(request)
            with service.bodies.counted(request, key.tenant):
                return await handler(request, key)
        except ClientDisconnect:  # nobody reads this
            return Response(status_code=400)
        except Exception as error:
            return _refusal(error)

    return endpoint


def _summary_for(key: Key) -> Callable[[Experiment], dict[str, Any]]:
    return views.for_admins if "admin" in key.roles else views.summary


def _count(request: Request, name: str, default: int, most: int) -> int:
    """A number in the query of an address."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdecimal() and len(given) < 17 and int(given) <= most):
        raise Problem(422, "invalid", f"{name} must be a whole number from 0 to {most:,}.")
    return int(given)


def _asked(read: DecisionRequest) -> Asked:
    return Asked(
        read.decision_id,
        read.unit,
        read.contexts,
        read.advice,
        read.available,
        read.targets,
        read.deferred,
        encode(read),
    )


def _deciding(asked: Asked) -> Call:
    return lambda one, now: one.clients.decide(asked, now)


def _taking(read: RewardRequest) -> Call:
    return lambda one, now: one.clients.reward(
        read.reward, read.decision_id, read.token, read.arm, now
    )


def _item(result: Any, status: int) -> dict[str, Any]:
    if isinstance(result, BaseException):
        problem = problem_of(result)
        return {"status": problem.status, "problem": problem.to_dict()}
    return {"status": status, **result._asdict()}


def _listed(name: str, found: Any) -> dict[str, Any]:
    """An experiment in the list of all; one of them may be out of reach."""
    if isinstance(found, BaseException):
        return {"name": name, "status": "failed", "detail": problem_of(found).detail}
    told: dict[str, Any] = found
    return told


def _absent(name: str, why: Problem | None) -> dict[str, Any]:
    """An experiment that is being made, or could not be made."""
    if why is None:
        return {"name": name, "status": "starting", "detail": None}
    return {"name": name, "status": "failed", "detail": why.detail, "problem": why.to_dict()}
