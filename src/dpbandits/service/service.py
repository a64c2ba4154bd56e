"""What all handlers share: the owner, the keys, and experiments that are being made."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request

from ..errors import ClaimError
from .access import EVERYONE, Key, Keys, refuse_other_sites
from .declaration import Declaration
from .experiment import Experiment
from .log import log
from .owner import Owner, exists
from .problems import Problem

Call = Callable[[Experiment, float], Any]
_BEARER = re.compile(r"[Bb]earer +(\S+) *")


@dataclass
class Service:
    """What the handlers share.

    Attributes:
        owner: has all policies.
        keys: who may do what; None admits everyone as an admin.
        warm: compiles the code of a declaration in another process.
        ready: whether all declared experiments are there.
    """

    owner: Owner
    keys: Keys | None
    warm: Callable[[Declaration], Awaitable[None]]
    ready: bool = False
    creating: dict[tuple[str, str], str] = field(default_factory=dict)  # and what went wrong
    _making: dict[tuple[str, str], Declaration] = field(default_factory=dict)  # right now

    def admit(
        self, request: Request, role: str, secret_of: Callable[[Request], str] | None = None
    ) -> Key:
        """The key of a request, which must have a role; by default a Bearer token."""
        if self.keys is None:
            refuse_other_sites(request)
            key = EVERYONE
        else:
            key = self.keys.of((secret_of or bearer)(request))
        key.refuse_unless(role, request.path_params.get("name"))
        return key

    async def ask(self, request: Request, key: Key, call: Call) -> Any:
        """What the owner's call on the experiment of a request gives."""
        return await self.owner.ask((key.tenant, request.path_params["name"]), call)

    def begin(self, tenant: str, declaration: Declaration, who: str) -> None:
        """Let an experiment be made, unless that is under way.

        Raises:
            Problem: another one of that name is.
        """
        at = tenant, declaration.name
        if at not in self._making:
            self._making[at] = declaration
            _keep(asyncio.create_task(self.create(tenant, declaration, who)))
        elif self._making[at].given != declaration.given:
            raise exists()

    async def create(self, tenant: str, declaration: Declaration, who: str) -> Experiment:
        """Compile what an experiment needs, and make it."""
        at = tenant, declaration.name
        self._making[at], self.creating[at] = declaration, ""
        try:
            await self.warm(declaration)
            made: Experiment = await self.owner.ask_alone(
                lambda now: self.owner.create(tenant, declaration, who, now)
            )
        except Exception as error:
            detail = Problem.of(error).detail
            log("experiment failed", experiment=declaration.name, detail=detail)
            if isinstance(error, ClaimError):  # another process has made it
                del self.creating[at]
            else:
                self.creating[at] = detail
            raise
        finally:
            del self._making[at]
        del self.creating[at]
        log("experiment created", experiment=declaration.name)
        return made


def bearer(request: Request) -> str:
    """The key or ticket of a request."""
    match = _BEARER.fullmatch(request.headers.get("authorization", ""))
    if match is None:
        raise Problem(401, "unauthorized", "Send a key: Authorization: Bearer KEY.")
    return match[1]


_TASKS: set[asyncio.Task[Any]] = set()


def _keep(task: asyncio.Task[Any]) -> None:
    """Hold a task until it is done, and take its error, which was logged."""
    _TASKS.add(task)

    def done(task: asyncio.Task[Any]) -> None:
        _TASKS.discard(task)
        if not task.cancelled():
            task.exception()

    task.add_done_callback(done)
