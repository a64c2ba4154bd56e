"""The commands ``dpbandits serve`` and ``dpbandits keys``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from ..errors import ArgumentError, MissingExtra
from .inputs import AsJson, clear_errors
from .tables import new_console, new_table, print_json, with_rows

if TYPE_CHECKING:
    from ..service.access import Keys

keys = typer.Typer(no_args_is_help=True, help="Make, list and revoke keys of the service.")

_KEYS_FILE = (
    "Default: keys.json in $DPBANDITS_STATE_DIR, or in the user's state folder, such as"
    " ~/.local/state/dpbandits."
)
KeyFile = Annotated[
    Path | None,
    Option("--file", help=f"The file of keys. {_KEYS_FILE}"),
]


def serve(
    experiments: Annotated[
        Path | None,
        Argument(metavar="EXPERIMENTS.toml", help="A file that declares experiments."),
    ] = None,
    store: Annotated[
        str,
        Option(help="Where policies are kept: sqlite:///FILE or postgresql://USER@HOST/DB."),
    ] = "sqlite:///dpbandits.db",
    host: Annotated[str, Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="The port to listen on.")] = 8000,
    key_file: Annotated[
        Path | None,
        Option("--keys", help=f"The file of keys. {_KEYS_FILE}"),
    ] = None,
    log: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help="Write decisions, rewards and public contexts into this folder, for `dpbandits"
            " evaluate`. These files are raw data, which the guarantee does not cover.",
        ),
    ] = None,
    insecure: Annotated[
        bool, Option("--insecure", help="Admit everyone on this machine, without keys.")
    ] = False,
) -> None:
    """Serve decisions over HTTP, durably and within the budget.

    Stop it with SIGTERM or Ctrl+C: it answers requests that are under way, and loses nothing.
    """
    with clear_errors():
        _needs_extra()
        from ..service.declaration import read_file
        from ..service.server import Settings, serve

        path = None if insecure else key_file or _default_file()
        if path is not None and not path.exists():
            raise ArgumentError(
                f"there is no file of keys {path}: make a key with `dpbandits keys add --role admin"
                f" --file {path}`, or admit everyone on this machine with --insecure",
                "keys",
            )
        declared = [] if experiments is None else read_file(experiments)
        serve(Settings(store, host, port, path, declared, log))


@keys.command()
def add(
    role: Annotated[
        list[str],
        Option(
            help="What the key allows: decide, reward, read, report (for devices), shuffle (for a"
            " shuffler), or admin for everything. Repeat for several."
        ),
    ],
    tenant: Annotated[
        str,
        Option(help="The name of a tenant. The key may see only the experiments of this tenant."),
    ] = "default",
    experiment: Annotated[
        list[str] | None, Option(help="A name, or a pattern such as shop-*. Default: all.")
    ] = None,
    per_second: Annotated[
        float | None,
        Option(
            help=(
                "The largest number of requests per second, on average. Each item of a batch counts"
                " as a request. Default: no limit."
            )
        ),
    ] = None,
    file: KeyFile = None,
) -> None:
    """Make a key, and print its secret once."""
    with clear_errors():
        key, secret = _keys(file).add(
            tenant=tenant, roles=role, experiments=experiment or ["*"], per_second=per_second
        )
    typer.echo(f"id: {key.id}", err=True)
    typer.echo(secret)


@keys.command("list")
def list_keys(file: KeyFile = None, as_json: AsJson = False) -> None:
    """List keys, without their secrets."""
    with clear_errors():
        found = _keys(file).all()
    if as_json:
        shown = ("id", "tenant", "roles", "experiments", "per_second")
        print_json([{name: getattr(one, name) for name in shown} for one in found])
        return
    table = new_table("id", "tenant", "roles", "experiments", "per second")
    rows = [
        [
            one.id,
            one.tenant,
            ", ".join(one.roles),
            ", ".join(one.experiments),
            "" if one.per_second is None else f"{one.per_second:g}",
        ]
        for one in found
    ]
    new_console().print(with_rows(table, rows))


@keys.command()
def revoke(
    key: Annotated[str, Argument(metavar="ID", help="The id of the key.")],
    file: KeyFile = None,
) -> None:
    """Take a key away; a running service notices within two seconds."""
    with clear_errors():
        _keys(file).revoke(key)
    typer.echo(f"Revoked {key}.")


def _keys(file: Path | None) -> Keys:
    _needs_extra()
    from ..service.access import Keys

    return Keys(file or _default_file())


def _default_file() -> Path:
    from ..stores.witness import state_folder

    return state_folder() / "keys.json"


def _needs_extra() -> None:
    try:
        import msgspec  # noqa: F401
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"dpbandits serve needs {error.name}: pip install 'dpbandits[serve]'"
        ) from error
