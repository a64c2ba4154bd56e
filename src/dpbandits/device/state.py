"""What a device keeps between two runs: a file that is whole or not there, for one process alone.

Guarantee: a report leaves the device only after it is in the file with the count of those that are
left, and it leaves in these bytes alone.  So a crash never makes a device report a record twice
with fresh noise, nor more often than it may.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

from ..errors import ClaimError, StateFileError, StoreError
from ..stores.files import write_anew
from ..stores.locks import Lock


@dataclass(frozen=True)
class Kept:
    """The content of the file.

    Attributes:
        experiment: the name of the experiment.
        left: how many true reports the person may still send.
        label, round: of the round that the server described last; empty before the first.
        outbox: addresses and bodies of reports that have not arrived, in the order of their making.
    """

    experiment: str
    left: int
    label: str = ""
    round: str = ""
    outbox: tuple[tuple[str, str], ...] = ()


class StateFile:
    """The file of one device, locked until ``close``.

    Args:
        folder: of the file; it is made where there is none.
        new: what a device begins with.

    Attributes:
        kept: the content of the file.

    Raises:
        ClaimError: another process has the device.
        StateFileError: the file is not that of a device of the experiment, or cannot be used.
    """

    def __init__(self, folder: Path, new: Kept) -> None:
        self.path, self._process = folder / "device.json", os.getpid()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = Lock(folder / "device.lock", wait=False)
        except BlockingIOError:
            raise ClaimError(f"{folder} belongs to a device that another process runs") from None
        except OSError as error:
            raise StateFileError(f"{folder} cannot be used: {error.strerror}") from None
        try:
            self.kept = self._read(new)
        except BaseException:
            self.close()
            raise

    def change(self, **changes: Any) -> None:
        """Change the content durably.

        Raises:
            ClaimError: this process is a fork of the one that has the device.
            StoreError: the file cannot be written, and stays as it was.
        """
        if os.getpid() != self._process:
            raise ClaimError("a forked process cannot use a device of its parent process")
        kept = replace(self.kept, **changes)
        content = json.dumps(asdict(kept)).encode()
        try:
            write_anew(self.path, lambda file: _write(file, content))
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from None
        self.kept = kept
        with suppress(OSError):
            self._lock.write(b"begun", 0)

    def close(self) -> None:
        """Let another process have the device."""
        self._lock.release()

    def _read(self, new: Kept) -> Kept:
        try:
            read = json.loads(self.path.read_bytes())
            outbox = tuple((str(to), str(body)) for to, body in read.pop("outbox"))
            kept = Kept(**read, outbox=outbox)
            if kept.left < 0:
                raise ValueError
        except FileNotFoundError:
            if not self._lock.read():
                return new
            raise StateFileError(
                f"{self.path} was deleted. A new file would forget how many reports the person has"
                " sent"
            ) from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StateFileError(
                f"{self.path} cannot be read: {type(error).__name__}. A new file would forget how"
                " many reports the person has sent"
            ) from None
        if kept.experiment != new.experiment:
            raise StateFileError(
                f"{self.path} belongs to a device of the experiment {kept.experiment!r}, not of"
                f" {new.experiment!r}"
            )
        return kept


def _write(file: IO[bytes], content: bytes) -> None:
    file.write(content)
