"""The command ``dpbandits shuffle``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ..errors import MissingExtra
from .inputs import clear_errors


def shuffle(
    file: Annotated[
        Path,
        Argument(
            metavar="FILE.toml",
            help="A file that names the server, the experiments and other files.",
        ),
    ],
    host: Annotated[str, Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="The port to listen on.")] = 8001,
    ticket: Annotated[
        str | None,
        Option(metavar="USER", help="Print this user's ticket for each experiment, and exit."),
    ] = None,
) -> None:
    """Mix or add up sealed records of devices without reading them, and send them to the server.

    Run the shuffler on a machine of its own.  The people who run it must not share data with those
    who run the server.  Stop it with SIGTERM or Ctrl+C.
    """
    with clear_errors():
        needs_extras("shuffle")
        from ..shuffler.app import shuffle
        from ..shuffler.config import Config
        from ..shuffler.tickets import Tickets

        config = Config.read(file)
        if ticket is None:
            return shuffle(config, host, port)
        tickets = Tickets.at(config.tickets)
        for name in config.experiments:
            issued = tickets.issue(name, ticket)
            typer.echo(f"experiment: {name}", err=True)
            typer.echo(issued)


def needs_extras(command: str) -> None:
    """Refuse to go on without what services and devices need."""
    try:
        import apsw  # noqa: F401
        import httpx  # noqa: F401
        import msgspec  # noqa: F401
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"dpbandits {command} needs {error.name}: pip install 'dpbandits[client,serve]'"
        ) from error
