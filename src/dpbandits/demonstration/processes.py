"""Processes of the demonstration: each has a folder, and ends with the block that it is for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import DPBanditsError
from ..folders import make_private

START, END = 120.0, 20.0  # seconds that a process may take; the first run compiles
_LOOK = 0.02  # seconds
_TOLD = 500  # letters of a log


class PartyError(DPBanditsError):
    """A process of the demonstration has ended too early, or does not go on."""


class Party:
    """A process that listens on the loopback address.

    Attributes:
        name: in messages.
        folder: of all that it stores; its log is the file ``log``.
        address: where it listens.
    """

    def __init__(self, name: str, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.name, self.folder, self.process = name, folder, process
        self.address = f"http://127.0.0.1:{self._port()}"

    def check(self) -> None:
        """Refuse to go on without it.

        Raises:
            PartyError: it has ended.
        """
        code = self.process.poll()
        if code is not None:
            raise PartyError(f"the {self.name} has ended with exit code {code}: {self._told()}")

    def _port(self) -> int:
        """The port that the system has given to it."""
        until = time.monotonic() + START
        while time.monotonic() < until:
            self.check()
            for line in self._log().splitlines():
                with suppress(ValueError):
                    if (event := json.loads(line))["event"] == "started":
                        return int(event["port"])
            time.sleep(_LOOK)
        raise PartyError(f"the {self.name} does not start: {self._told()}")

    def _log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")

    def _told(self) -> str:
        return self._log().strip()[-_TOLD:] or "it has said nothing"


@contextmanager
def running(name: str, folder: Path, command: Sequence[str]) -> Iterator[Party]:
    """A command of dpbandits as a process, which stores everything in a folder of its own."""
    make_private(folder)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "dpbandits", *command, "--port", "0"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl+C is for this process, which then ends the others
            env={**os.environ, "DPBANDITS_STATE_DIR": str(folder / "state")},
        )
    try:
        yield Party(name, folder, process)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, and kill one that does not."""
    process.terminate()
    try:
        process.wait(END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
