"""What all handlers share: the owner, the keys, and experiments that are being made."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.requests import Request

from ..errors import ClaimError
from .access import EVERYONE, OWN_TENANT, Key, Keys, refuse_other_sites
from .declaration import Declaration
from .experiment import Experiment
from .http import Bodies
from .log import log
from .owner import Owner, refuse_changes, starting, unknown_experiment
from .problems import Problem, busy

At = tuple[str, str]  # tenant and name
Call = Callable[[Experiment, float], Any]
MOST_MAKING, MOST_FAILED = 50, 100  # of one tenant, at once and remembered
_LONGEST = 1000  # letters of a failure
_LOOK = 0.2  # seconds between looks for code to compile
_BEARER = re.compile(r"[Bb]earer +(\S+) *")


@dataclass
class Service:
    """What the handlers share.

    Attributes:
        owner: has all policies.
        keys: who may do what; None admits everyone as an admin.
        warm: compiles the code of a declaration in another process.
        ready: whether those of the file were begun.
        unmade: those of the file that could not be made.
        making: those that are being made right now.
        failed: why others could not be made, the latest last.
        bodies: of the requests that have no reply yet.
    """

    owner: Owner
    keys: Keys | None
    warm: Callable[[Declaration], Awaitable[None]]
    ready: bool = False
    bodies: Bodies = field(default_factory=Bodies)
    unmade: set[At] = field(default_factory=set)
    making: dict[At, Declaration] = field(default_factory=dict)
    failed: dict[At, Problem] = field(default_factory=dict)

    @property
    def is_ready(self) -> bool:
        """Whether the service makes decisions in all experiments that it knows of."""
        there = self.owner.is_alive() and not self.owner.missing and not self.owner.stuck
        return self.ready and there and self.unmade <= self.owner.experiments.keys()

    @property
    def missing(self) -> int:
        """How many experiments of the store, or of the file, make no decisions here."""
        coming = {*self.unmade, *(() if self.ready else self.owner.declared)}
        absent = {".".join(at) for at in coming - self.owner.experiments.keys()}
        return len(absent | self.owner.missing.keys())

    def absent(self, tenant: str) -> dict[str, Problem | None]:
        """The experiments of a tenant that are being made, and those that could not be made, with
        the reason.
        """
        found: dict[At, Problem | None] = {**self.failed, **dict.fromkeys(self.making)}
        there = self.owner.experiments
        return {at[1]: found[at] for at in sorted(found) if at[0] == tenant and at not in there}

    def forget(self, tenant: str, name: str) -> None:
        """Forget an experiment that could not be made.

        Raises:
            Problem: it is there or being made, or there is none.
        """
        at = tenant, name
        if at in self.owner.experiments or at in self.making:
            raise Problem(409, "exists", "Only an experiment that failed to start can be deleted.")
        if self.failed.pop(at, None) is None:
            raise unknown_experiment()
        self.unmade.discard(at)

    def admit(
        self, request: Request, role: str, secret_of: Callable[[Request], str] | None = None
    ) -> Key:
        """The key of a request, which must have a role; by default a Bearer token."""
        if self.keys is None:
            refuse_other_sites(request, self.origins(request))
            key = EVERYONE
        else:
            key = self.keys.of((secret_of or bearer)(request))
        key.refuse_unless(role, request.path_params.get("name"))
        return key

    def admit_reader(self, request: Request) -> Key:
        """The key of a request for something that an experiment may give to everyone."""
        one = self._named(request)
        if one is None or not one.declaration.public or "authorization" in request.headers:
            return self.admit(request, "read")
        return Key("everyone", "", one.tenant, ("read",), (one.name,))

    def origins(self, request: Request) -> Collection[str]:
        """Of pages that may send this request: none but to addresses of devices."""
        one = self._named(request) if getattr(request.state, "for_pages", False) else None
        return () if one is None else one.declaration.origins

    def _named(self, request: Request) -> Experiment | None:
        """The experiment that the address alone names: of the tenant of a query, or the default."""
        at = request.query_params.get("tenant", OWN_TENANT), request.path_params.get("name", "")
        return self.owner.experiments.get(at)

    async def ask(self, request: Request, key: Key, call: Call) -> Any:
        """What the owner's call on the experiment of a request gives."""
        at = key.tenant, request.path_params["name"]
        if at in self.making and at not in self.owner.experiments:
            raise starting()
        return await self.owner.ask(at, call)

    def begin(self, tenant: str, declaration: Declaration, who: str) -> None:
        """Let an experiment be made, unless that is under way.

        Raises:
            Problem: another one of that name is, or too many are.
        """
        at = tenant, declaration.name
        if at not in self.making:
            if sum(own == tenant for own, _ in self.making) >= MOST_MAKING:
                raise busy()
            self.making[at] = declaration
            _keep(asyncio.create_task(self.create(tenant, declaration, who)))
        else:
            refuse_changes(self.making[at], declaration)

    async def create(self, tenant: str, declaration: Declaration, who: str) -> Experiment:
        """Compile what an experiment needs, and make it."""
        at = tenant, declaration.name
        self.making[at] = declaration
        self.failed.pop(at, None)
        try:
            await self.warm(declaration)
            made: Experiment = await self.owner.ask_alone(
                lambda now: self.owner.create(tenant, declaration, who, now)
            )
        except Exception as error:
            self._note_failure(at, Problem.of(error), isinstance(error, ClaimError))
            raise
        finally:
            self.making.pop(at, None)  # the file may declare what a request does, too
        log("experiment created", experiment=declaration.name)
        return made

    async def keep_warm(self) -> None:
        """Compile what the owner is to take over, while it serves others; runs for good."""
        while True:
            for place, declaration in [*self.owner.cold.items()]:
                try:
                    await self.warm(declaration)
                except Exception as error:  # then the owner compiles it
                    log("warming failed", place=place, error=type(error).__name__)
                with suppress(Exception):  # which the owner repeats, and logs
                    await self.owner.ask_alone(partial(self.owner.take_warm, place))
            await asyncio.sleep(_LOOK)

    def _note_failure(self, at: At, problem: Problem, is_elsewhere: bool) -> None:
        detail = problem.detail[:_LONGEST]
        log("experiment failed", experiment=at[1], detail=detail)
        if is_elsewhere:  # another process has made it
            return
        self.failed[at] = Problem(problem.status, problem.kind, detail)
        mine = [one for one in self.failed if one[0] == at[0]]
        for one in mine[:-MOST_FAILED]:
            del self.failed[one]


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
