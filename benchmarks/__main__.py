"""Run all benchmarks, or those named: ``python -m benchmarks [simulation] [linear] [adversarial]
[serving] [startup]``.
"""

from __future__ import annotations

import os
import platform
import sys

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

from . import adversarial, linear, serving, simulation, startup

GROUPS = {
    "simulation": simulation,
    "linear": linear,
    "adversarial": adversarial,
    "serving": serving,
    "startup": startup,
}


def main() -> None:
    chosen = sys.argv[1:] or list(GROUPS)
    console = Console(width=150)
    machine = (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}, numba"
        f" {numba.__version__}"
    )
    for name in chosen:
        table = Table("measured", "value", "unit", "target", "remark", title=f"{name}: {machine}")
        for row in GROUPS[name].rows():
            table.add_row(row.name, f"{row.value:,.4g}", row.unit, row.target, row.remark)
        console.print(table)


if __name__ == "__main__":
    main()
