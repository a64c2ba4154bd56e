"""What several commands read, and how a mistake of the user's ends."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from ..errors import ArgumentError, DPBanditsError

if TYPE_CHECKING:
    from ..privacy import Budget
    from ..studies import Study

WRONG_INPUT, INTERRUPTED = 2, 130


Separator = Annotated[
    str, Option(help="The character between cells of a text table. Write tab for a tab.")
]
Decimal = Annotated[str, Option(help="The decimal mark: a dot or a comma.")]
Thousands = Annotated[str, Option(help="The mark between groups of three digits, as in 1,234.")]
Header = Annotated[
    bool | None,
    Option(
        "--header/--no-header",
        help=(
            "Whether the first line names the columns. By default it does, and no cell of it may be"
            " a number."
            " With --no-header, columns are called 0, 1, ..."
        ),
    ),
]


Cluster = Annotated[
    str | None,
    Option(
        metavar="ADDRESS",
        help="Compute on a Dask cluster: tcp://host:8786, tls://host:8786, or local:4 for four"
        " processes on this machine.",
    ),
]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]


class Noise(StrEnum):
    """The values of ``--noise``."""

    secure = "secure"
    simulation = "simulation"


def dated(name: str) -> Path:
    """A new folder here, named after the time."""
    return Path(f"{name}-{datetime.now():%Y%m%d-%H%M%S}")


def pair(texts: tuple[str, str]) -> tuple[str, str]:
    """The two texts of a pair of numbers, which are parsed later."""
    try:
        [float(text) for text in texts]
    except ValueError:
        raise typer.BadParameter("give two numbers with a space between, as in 0 100") from None
    return texts


@contextlib.contextmanager
def on_cluster(
    cluster: str | None, study: Study | None, modules: Sequence[str] = ()
) -> Iterator[None]:
    """Have a cluster play the runs of ``plan`` and ``audit``, with modules of a study or of this
    folder.
    """
    if cluster is None:
        yield
        return
    from ..studies.engines import Dask
    from ..studies.orders import of_modules

    names, folder = (modules, Path()) if study is None else (study.config["imports"], study.folder)
    with Dask(cluster, of_modules(names, folder)).playing():
        yield


@contextlib.contextmanager
def clear_errors(interrupted: str = "Interrupted: nothing was written.") -> Iterator[None]:
    """Show the user's mistakes, and warnings, as a sentence instead of a traceback."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: typer.echo(f"Warning: {message}", err=True)
            yield
    except DPBanditsError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(WRONG_INPUT) from None
    except KeyboardInterrupt:
        typer.echo(interrupted, err=True)
        raise typer.Exit(INTERRUPTED) from None


def imported(what: str, text: str, form: str) -> tuple[str, str, Any]:
    """The module and the name in a text such as MODULE:NAME, and the object; None without one."""
    module, _, name = text.partition(":")
    if not (module and name):
        raise ArgumentError(f"{what} must be written {form}, got {text!r}")
    return module, name, getattr(module_called(module), name, None)


def module_called(name: str) -> ModuleType:
    """A module in this folder, or on the Python path."""
    from ..simulation.tasks import importing_from

    try:
        with importing_from(Path()):
            return import_module(name)
    except ImportError as error:
        raise ArgumentError(f"{name} cannot be imported: {error}") from error


def budget_of(text: str) -> Budget:
    """A budget as the option ``--budget`` takes it: notion=number[,number]."""
    from ..privacy.budgets import NOTIONS, read_budget

    notion, _, written = text.partition("=")
    try:
        numbers = [float(part) for part in written.split(",")]
    except ValueError:
        numbers = []
    if notion not in NOTIONS or not numbers:
        raise ArgumentError(
            f"--budget must look like zcdp=0.1, with one of {', '.join(NOTIONS)} before the =, got"
            f" {text!r}"
        )
    try:
        return read_budget(notion, numbers[0] if len(numbers) == 1 else numbers)
    except ArgumentError as error:
        raise ArgumentError(f"--budget {text}: {error}") from None
