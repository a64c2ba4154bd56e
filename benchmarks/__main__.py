"""Run all groups of benchmarks, or those named."""

from __future__ import annotations

import argparse
import os
import platform
import timeit
from collections.abc import Sequence
from typing import NamedTuple

import joblib
import numba
import numpy as np
from rich.console import Console
from rich.table import Table

from . import (
    adversarial,
    auditing,
    clusters,
    glm,
    horizon,
    javascript,
    keeping,
    linear,
    logs,
    noise,
    parties,
    ridges,
    searches,
    service,
    serving,
    shuffling,
    simulation,
    startup,
)
from .timing import Row

GROUPS = {
    "startup": startup,
    "serving": serving,
    "service": service,
    "keeping": keeping,
    "simulation": simulation,
    "linear": linear,
    "ridges": ridges,
    "logs": logs,
    "searches": searches,
    "horizon": horizon,
    "adversarial": adversarial,
    "shuffling": shuffling,
    "parties": parties,
    "javascript": javascript,
    "noise": noise,
    "glm": glm,
    "auditing": auditing,
    "clusters": clusters,
}

_YARDSTICK = "sum(range(10**6))"
_USUAL = 0.016  # seconds of it on the machine for which targets are set

_READING = f"""
Ratios are between figures of the same run, and the ones to trust.  What other figures are worth,
the first line and the titles tell: how many cores this process may use; before and after a group,
how many processes wanted one, averaged over the last minute (load), and how long {_YARDSTICK} takes
in plain Python (yardstick), by which runs on other machines or at other times compare.  Targets are
for size 1 on an idle machine.  Those in units of time are for a yardstick of {1e3 * _USUAL:g} ms,
and grow with it.  Rows that miss their targets are marked, and listed at the end.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    console = Console(width=150)
    console.print(machine(), highlight=False)
    targets, missed = 0, []
    for name in given.group or GROUPS:
        before = yardstick()
        rows = list(GROUPS[name].rows(given.size))
        after = yardstick()
        table = Table("measured", "value", "unit", "target", "remark")
        slowness = min(before.seconds, after.seconds) / _USUAL
        for row in rows:
            told, unmet = row.target, row.missed(slowness)
            table.add_row(
                row.name, _written(row), row.unit, f"{told}, missed" if unmet else told, row.remark
            )
            missed += [f"{name}: {row.name.strip()}"] if unmet else []
            targets += bool(told)
        table.title = f"{name}, size {given.size:g}: {before} before, {after} after"
        console.print(table)
    console.print(f"{len(missed)} of {targets} targets missed", *missed, sep="\n  ", markup=False)


def machine() -> str:
    versions = (
        f"Python {platform.python_version()}, NumPy {np.__version__}, numba {numba.__version__}"
    )
    return f"{joblib.cpu_count()} cores, {platform.machine()}, {versions}"


class Yardstick(NamedTuple):
    """How busy the machine is, and how fast."""

    load: str
    seconds: float

    def __str__(self) -> str:
        return f"load {self.load} and yardstick {1e3 * self.seconds:.1f} ms"


def yardstick() -> Yardstick:
    load = f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"
    return Yardstick(load, min(timeit.repeat(_YARDSTICK, number=1, repeat=5)))


def _parser() -> argparse.ArgumentParser:
    groups = "\n".join(f"{name}:\n{_indented(group.__doc__)}" for name, group in GROUPS.items())
    parser = argparse.ArgumentParser(
        "python -m benchmarks",
        description=f"{__doc__}\n\n{groups}\n{_READING}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = f"of {', '.join(GROUPS)}; by default all"
    parser.add_argument("group", nargs="*", type=_group, help=names)
    parser.add_argument(
        "--size",
        type=_size,
        default=1.0,
        help="by what rounds, runs and repetitions are multiplied; 0.001 tries out that all runs",
    )
    return parser


def _group(text: str) -> str:
    if text not in GROUPS:
        raise argparse.ArgumentTypeError(f"must be of {', '.join(GROUPS)}, got {text}")
    return text


def _size(text: str) -> float:
    size = float(text)
    if not 0.0 < size <= 1.0:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 1, got {text}")
    return size


def _indented(text: str | None) -> str:
    return "\n".join(f"  {line}".rstrip() for line in (text or "").strip().splitlines())


def _written(row: Row) -> str:
    return "-" if row.value is None else f"{row.value:,.4g}"


if __name__ == "__main__":
    main()
