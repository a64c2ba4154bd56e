"""Commands on policies in a place: ``inspect``, ``intervals``, ``decided``, ``conclude``,
``restore``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer
from typer import Argument, Option

from ..errors import ArgumentError
from .inputs import AsJson, clear_errors
from .tables import new_console, new_table, print_json, print_sections, with_rows

if TYPE_CHECKING:
    from ..inspection import Inspection
    from ..policies import HeldOut

Where = Annotated[
    str,
    Argument(
        metavar="PLACE",
        help=(
            "A file that `Policy.save` wrote, or a place in a database:"
            " sqlite:///policies.db#KEY, postgresql://user@host/database#KEY."
        ),
    ),
]

Holdout = Annotated[
    bool, Option("--holdout", help="Read held-out people's releases instead of the bandit's.")
]


def inspect(place: Where, as_json: AsJson = False) -> None:
    """Show the guarantee, spending and releases of a saved policy, which may be running elsewhere.

    The command only reads the place; the policy can still be loaded.
    """
    from ..inspection import inspect as look

    with clear_errors(), _something_saved():
        seen = look(place)
    if as_json:
        print_json(seen.to_dict())
        return
    console = new_console()
    facts = new_table(show_header=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    console.print(with_rows(facts, seen.facts.items()))
    heads, rows = seen.estimates.table()
    console.print(f"\n{seen.estimates!r}")
    if rows:
        console.print(with_rows(new_table(*heads), rows))
    if seen.estimates.low is not None:
        console.print("Intervals hold at all releases together: see `dpbandits intervals`.")


def intervals(
    place: Where,
    confidence: Annotated[
        float, Option(help="The probability that no interval is ever wrong.")
    ] = 0.95,
    difference: Annotated[
        tuple[str, str] | None,
        Option(metavar="ARM ARM", help="Show the mean of the first arm minus that of the second."),
    ] = None,
    control: Annotated[
        str | None,
        Option(metavar="ARM", help="Show the means of all other arms minus that of this one."),
    ] = None,
    method: Annotated[
        str,
        Option(help="mixture, for all noise; or closed, a formula for Gaussian noise or no noise."),
    ] = "mixture",
    holdout: Annotated[
        bool,
        Option("--holdout", help="Show intervals from held-out people instead of the bandit's."),
    ] = False,
    targets: Annotated[
        bool,
        Option("--targets", help="Show intervals of what the holdout's targets would have earned."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show intervals of the arms' means, or of differences, that hold whenever you look.

    They follow from released values, and cost no privacy. The command only reads the place.
    """
    from ..inspection import inspect as look

    with clear_errors(), _something_saved():
        kept = look(place)
        arm = _reader_of_arms(kept.estimates.names)
        pair = None if difference is None else (arm(difference[0]), arm(difference[1]))
        against = None if control is None else arm(control)
        if targets:
            if pair is not None or method != "mixture":
                raise ArgumentError("--targets must not be given with --difference or --method")
            found = _held_out(kept, "--targets").values(confidence, control=against)
        else:
            of = _held_out(kept, "--holdout") if holdout else kept
            found = of.intervals(confidence, pair, control=against, method=method)
    if as_json:
        print_json(found.to_dict())
        return
    console, (heads, rows) = new_console(), found.table()
    console.print(f"{found.title}. They hold at all releases together.")
    console.print(with_rows(new_table(*heads), rows))
    for one in found.breaks:
        console.print(f"* {one}")


def decided(
    place: Where,
    confidence: Annotated[
        float, Option(help="The probability that no answer is ever wrong.")
    ] = 0.95,
    gap: Annotated[
        float, Option(help="Accept an arm if no other mean is higher by this much or more.")
    ] = 0.0,
    control: Annotated[
        str | None,
        Option(metavar="ARM", help="Compare with this arm, which was chosen beforehand."),
    ] = None,
    holdout: Holdout = False,
    as_json: AsJson = False,
) -> None:
    """Tell whether the releases decide which arm is best. The answer holds whenever you look.

    It follows from released values, and costs no privacy. The command only reads the place.
    """
    from ..inspection import inspect as look

    with clear_errors(), _something_saved():
        kept = look(place)
        against = None if control is None else _reader_of_arms(kept.estimates.names)(control)
        of = _held_out(kept, "--holdout") if holdout else kept
        found = of.decided(confidence, gap=gap, control=against)
    if as_json:
        print_json(found.to_dict())
        return
    console, (heads, rows) = new_console(), found.intervals.table()
    console.print(f"{found.words}.")
    if rows:
        console.print(with_rows(new_table(*heads), rows))
    for one in found.breaks:
        console.print(f"* {one}")


def conclude(
    place: Where,
    control: Annotated[
        str | None,
        Option(metavar="ARM", help="The arm that all others are compared with, chosen beforehand."),
    ] = None,
    confidence: Annotated[
        float, Option(help="The probability that no interval is ever wrong.")
    ] = 0.95,
    html: Annotated[
        Path | None,
        Option(metavar="FILE", help="Also write the report to this file, as a page for printing."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Report the end of a trial: arms, intervals, differences, and the privacy that was spent.

    The report follows from released values, and costs no privacy. The command only reads the place.
    """
    from ..conclusions import conclude as report
    from ..inspection import inspect as look

    with clear_errors(), _something_saved():
        arm = _reader_of_arms(look(place).estimates.names)
        found = report(place, None if control is None else arm(control), confidence)
    if html is not None:  # first, for a pipe may be closed before all is said
        html.write_text(found.html(), encoding="utf-8")
    if as_json:
        print_json(found.to_dict())
        return
    console = new_console()
    console.print("Report of a trial", style="bold")
    console.print(found.policy, soft_wrap=True)
    print_sections(console, found.sections)
    if html is not None:
        typer.echo(f"Report: {html}")


def _held_out(kept: Inspection, option: str) -> HeldOut:
    """The holdout that an option asks for."""
    if kept.holdout is None:
        raise ArgumentError(f"{option} must not be given: the policy has no holdout")
    return kept.holdout


def _reader_of_arms(names: Sequence[str] | None) -> Callable[[str], int | str]:
    """What an option names: names may be digits, which are then no numbers of arms."""
    return str if names is not None else lambda text: int(text) if text.isdecimal() else text


def restore(
    place: Where,
    all_: Annotated[
        bool,
        Option(
            "--all", help="Restore all places of a database. Give its address without # and key."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Go on from a backup of a policy whose newest state is lost.

    The policy keeps its releases, ledger and estimates. It drops all records of the backup that
    were not released, and counts their cost as spent. It refuses tokens of earlier decisions.
    """
    from ..policies import restore as revive

    restored: list[dict[str, Any]] = []
    with clear_errors(), _something_saved():
        for one in _places(place, all_):
            policy = revive(one)
            served = any(kind == "service" for kind, _ in policy.notes)
            told = {"place": one, "policy": policy.heading, "guarantee": str(policy.guarantee)}
            restored.append({**told, "served": served})
            policy.close()
            if as_json:
                continue
            typer.echo(told["policy"])
            then = "Start dpbandits serve again." if served else "Load it there."
            typer.echo(f"Restored in {one}. {then}")
            typer.echo(f"Guarantee: {told['guarantee']}")
        if as_json:
            print_json(restored)


def _places(place: str, all_: bool) -> list[str]:
    """The place, or all those of a database."""
    if "://" not in place or "#" in place:
        return [place]
    from ..stores.addresses import store_at

    keys = store_at(place).keys()
    if all_ and keys:
        return [f"{place}#{quote(key)}" for key in keys]
    raise ArgumentError(
        "PLACE must name one place of the database: add # and its key, or give --all for all"
        f" places. Keys in the database: {', '.join(keys) or 'none'}"
    )


@contextmanager
def _something_saved() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ArgumentError(f"PLACE must hold a policy: {error}") from None
    except ArgumentError as error:
        if error.argument != "where":
            raise
        raise ArgumentError(f"{error}".replace("where must", "PLACE must", 1)) from None
