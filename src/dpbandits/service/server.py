"""Run the service: a store, an owner, and uvicorn in front."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from ..errors import ArgumentError, ClaimError
from ..stores.addresses import store_at
from .access import OWN_TENANT, Keys, is_local
from .app import make_app
from .connections import Connection
from .declaration import Declaration
from .log import log, take_all_over
from .owner import Owner
from .service import Service
from .warming import is_warm, warm

SWITCH = 5e-4  # seconds after which the owner's thread lets the event loop go on
MOST_CONNECTIONS = 4096  # beyond which requests are refused
_FILES = 2 * MOST_CONNECTIONS  # that may be open: connections, and some of each policy
_GRACE = 30  # seconds for requests that are under way at the end


@dataclass(frozen=True)
class Settings:
    """How to run the service.

    Attributes:
        store: the address of the store.
        host, port: where it listens.
        keys: the file of keys; None to admit everyone, on this machine only.
        declarations: experiments to begin, if they are not in the store yet.
        exports: the folder for decisions and rewards, as files; None to write none.
    """

    store: str
    host: str = "127.0.0.1"
    port: int = 8000
    keys: Path | None = None
    declarations: Sequence[Declaration] = ()
    exports: Path | None = None


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; then answer the requests under way, and let the store go.

    Raises:
        ArgumentError: ``host`` is open to others, and there are no keys.
        StoreError, StateFileError: the store cannot be used.
    """
    if settings.keys is None and not is_local(settings.host):
        raise ArgumentError(
            "host must be an address of this machine, such as 127.0.0.1, if there are no keys, got"
            f" {settings.host!r}: others could read and change everything",
            "host",
        )
    service = service_of(settings)
    app = make_app(service, on_start=lambda: begin(service, settings.declarations))
    run(app, settings.host, settings.port, experiments=len(service.owner.experiments))


def run(app: Starlette, host: str, port: int, **facts: int) -> None:
    """Serve an application until SIGTERM or SIGINT, and log that, with these facts."""
    tune()
    take_all_over()
    config = server_of(app, host, port)
    socket = config.bind_socket()
    log("started", host=host, port=socket.getsockname()[1], **facts)  # which may be given as 0
    with suppress(ValueError):  # not in the main thread
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, _handled)
    uvicorn.Server(config).run(sockets=[socket])
    log("stopped")


def server_of(app: Starlette, host: str, port: int) -> uvicorn.Config:
    """How uvicorn serves an application."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=Connection,
        ws="none",
        log_config=None,  # its lines have addresses of people
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=75,
        limit_concurrency=MOST_CONNECTIONS,
    )


def _handled(*_: object) -> None:
    """uvicorn raises a signal again that it has handled; then there is nothing left to do."""


def tune() -> None:
    """Set up the process for many short requests, and many connections."""
    sys.setswitchinterval(SWITCH)
    gc.set_threshold(50_000, 20, 100)  # to look for garbage takes longer than a request
    allow_files()


def allow_files() -> None:
    """Let the process open a file for each connection, as far as the system permits."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
        if resource.RLIM_INFINITY != soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def service_of(settings: Settings) -> Service:
    """The service, with all experiments of its store whose code is compiled."""
    declared = {(OWN_TENANT, one.name): one for one in settings.declarations}
    store = store_at(settings.store)
    owner = Owner(store, declared=declared, is_warm=is_warm, exports=settings.exports)
    keys = None if settings.keys is None else Keys(settings.keys)
    service = Service(owner, keys, warm)
    owner.take_over()
    return service


async def begin(service: Service, declarations: Sequence[Declaration]) -> None:
    """Compile, and begin the declared experiments; then the service is ready."""
    for one in declarations:
        there = (OWN_TENANT, one.name) in service.owner.experiments
        if there or f"{OWN_TENANT}.{one.name}" in service.owner.missing:
            continue  # also where another process has it
        try:
            await service.create(OWN_TENANT, one, "file")
        except ClaimError:  # another process was faster: the owner takes it over later
            continue
        except Exception:  # which was logged
            service.unmade.add((OWN_TENANT, one.name))
    service.ready = True
