"""What a service has sealed in its store, opened with its keys.

It runs as a process of its own, because keys are found by the state folder of a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..policies.loading import opened, read
from ..policies.registry import arguments_of_today, find
from ..session.packing import parted
from ..stores.addresses import place_at


def opened_rows(service: Path, address: str) -> bytes:
    """All rows of a policy that nobody serves.

    Args:
        service: the folder of the service, with its state folder.
        address: of the policy, as ``load`` takes it.
    """
    return subprocess.run(
        [sys.executable, "-m", __name__, address],
        env={**os.environ, "DPBANDITS_STATE_DIR": str(service / "state")},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


def main(address: str) -> None:
    """Write the rows to standard output."""
    about, held = read(place_at(address))
    public, private = parted(held.head)
    policy: Any = find(about["class"])(**arguments_of_today(about["config"]))
    private, rows = opened(policy, about["policy"], private, held.rows)
    contents = [public, private, *(row.key + (row.content or b"") for row in rows)]
    sys.stdout.buffer.write(b"\0".join(contents))


if __name__ == "__main__":
    main(sys.argv[1])
