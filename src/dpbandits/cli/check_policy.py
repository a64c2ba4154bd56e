"""The command ``dpbandits check-policy``: the suite's checks, for a policy of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from ..errors import ArgumentError
from .first_run import announce_compilation
from .inputs import AsJson, clear_errors, imported
from .tables import print_json

if TYPE_CHECKING:
    from ..policies import Policy

_BROKEN = 1


def check_policy(
    policy: Annotated[
        str,
        Argument(
            metavar="MODULE:CLASS",
            help="A module in this folder or on the Python path, and a class that it registers,"
            " such as my_policies:MyPolicy.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Test a policy that you wrote, and name the first requirement that it does not meet."""
    from ..testing import check_policy as check

    passed: list[str] = []

    def told(name: str) -> None:
        passed.append(name)
        typer.echo(f"passed: {name}", err=as_json)

    with clear_errors():
        cls = _found(policy)
        announce_compilation()
        try:
            check(cls, told=told)
        except AssertionError as error:
            lines = [str(error), *getattr(error, "__notes__", ())]
            if as_json:
                print_json({"policy": cls.__name__, "passed": passed, "broken": lines})
            else:
                typer.echo("\n".join(lines), err=True)
            raise typer.Exit(_BROKEN) from None
    if as_json:
        print_json({"policy": cls.__name__, "passed": passed, "broken": []})
    else:
        typer.echo(f"{cls.__name__} has passed {len(passed)} checks.")


def _found(policy: str) -> type[Policy]:
    from ..policies import registered
    from ..policies.parts import Part

    module, name, found = imported("the policy", policy, "MODULE:CLASS")
    if isinstance(found, type) and issubclass(found, Part):
        raise ArgumentError(
            f"{name} is a part, not a policy. Check a policy that has this part, with"
            " dpbandits.testing.check_policy in Python"
        )
    if registered().get(name) is not found or found is None:
        raise ArgumentError(f"{module} registers no policy {name!r}")
    cls: type[Policy] = found
    return cls
