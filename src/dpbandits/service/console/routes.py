"""Addresses of the console, and what every reply of it has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ..access import Key
from ..http import covers, refused
from ..problems import Problem
from ..service import Service
from . import pages
from .facts import Facts
from .forms import ACTIONS, Tokens, fields_of, password
from .pages import Absent

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src data:; form-action 'self';"
        " frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_ASK = 'Basic realm="dpbandits", charset="UTF-8"'
_STYLE = files(__package__).joinpath("style.css").read_text("utf-8")
Handler = Callable[[Request, Key], Awaitable[Response]]


def routes_of(service: Service) -> list[Route]:
    """The addresses of pages."""
    console = _Console(service)

    def page(path: str, handler: Handler, method: str = "GET") -> Route:
        return Route(f"/console{path}", console.answering(handler), methods=[method])

    return [
        Route("/console/style.css", _style),
        page("", console.overview),
        page("/{name}", console.experiment),
        page("/{name}/ledger", console.shown(pages.ledger)),
        page("/{name}/trail", console.shown(pages.trail)),
        page("/{name}/card", console.card),
        page("/{name}/{action}", console.act, "POST"),
    ]


class _Console:
    """The handlers."""

    def __init__(self, service: Service) -> None:
        self._service, self._tokens = service, Tokens()

    def answering(self, handler: Handler) -> Any:
        """An endpoint for admins, with errors as pages."""

        async def endpoint(request: Request) -> Response:
            try:
                key = self._service.admit(request, "admin", password)
                with self._service.bodies.counted(request, key.tenant):
                    response = await handler(request, key)
            except Exception as error:
                problem, headers = refused(error, _ASK)
                page = request.url.path.rpartition("/")[0] if request.method == "POST" else ""
                response = _html(pages.error(problem, page), problem.status)
                response.headers.update(headers)
            response.headers.update(HEADERS)
            return response

        return endpoint

    async def overview(self, request: Request, key: Key) -> Response:
        mine = [
            name
            for tenant, name in sorted(self._service.owner.experiments)
            if tenant == key.tenant and covers(key, name)
        ]
        asked = [self._service.owner.ask((key.tenant, name), Facts.of) for name in mine]
        found = await asyncio.gather(*asked, return_exceptions=True)
        listed = [
            one if isinstance(one, Facts) else Absent(name, "failed", Problem.of(one).detail)
            for name, one in zip(mine, found, strict=True)
        ]
        address = str(request.base_url)
        return _html(
            await asyncio.to_thread(pages.overview, [*listed, *self._absent(key)], address)
        )

    def _absent(self, key: Key) -> list[Absent]:
        """Experiments that are starting, have failed, or could not be taken from the store."""
        found = [
            Absent(name, "failed", why.detail) if why else Absent(name, "starting")
            for name, why in self._service.absent(key.tenant).items()
        ]
        for place, why in sorted(self._service.owner.missing.items()):
            tenant, _, name = place.partition(".")
            if tenant == key.tenant:
                found.append(Absent(name, "unavailable", why))
        return [one for one in found if covers(key, one.name)]

    async def experiment(self, request: Request, key: Key) -> Response:
        name = request.path_params["name"]
        if (key.tenant, name) not in self._service.owner.experiments:
            for one in self._absent(key):
                if one.name == name:
                    return _html(pages.absent(one))
        facts = await self._service.ask(request, key, Facts.of)
        notice = self._notice(request, key)

        def token_of(action: str) -> str:
            return self._tokens.make(key, name, action)

        return _html(await asyncio.to_thread(pages.experiment, facts, token_of, notice))

    def shown(self, view: Callable[[Facts], str]) -> Handler:
        """A handler that shows a view of an experiment."""

        async def show(request: Request, key: Key) -> Response:
            facts = await self._service.ask(request, key, Facts.of)
            return _html(await asyncio.to_thread(view, facts))

        return show

    async def card(self, request: Request, key: Key) -> Response:
        facts, card = await self._service.ask(
            request, key, lambda one, now: (Facts.of(one, now), one.policy.card_page())
        )
        return _html(pages.card(facts, card))

    async def act(self, request: Request, key: Key) -> Response:
        name, action = request.path_params["name"], request.path_params["action"]
        if action not in ACTIONS:
            raise Problem(404, "unknown-address", "There is nothing at this address.")
        fields = await fields_of(request, key, self._tokens)
        result = await self._service.ask(request, key, ACTIONS[action].call(fields, key.id))
        done = action if result is None else f"{action}-{result}"
        token = self._tokens.make(key, name, f"done {done}")
        return RedirectResponse(f"/console/{name}?done={done}&token={token}", 303)

    def _notice(self, request: Request, key: Key) -> str:
        """What was done, where the service itself has sent the browser here."""
        done = request.query_params.get("done", "")
        token = request.query_params.get("token", "")
        if not self._tokens.fits(token, key, request.path_params["name"], f"done {done}"):
            return ""
        action, _, count = done.partition("-")
        return ACTIONS[action].done.format(count=count)


async def _style(request: Request) -> Response:
    return Response(_STYLE, headers=HEADERS, media_type="text/css")


def _html(page: str, status: int = 200) -> Response:
    return Response(page, status, media_type="text/html")
