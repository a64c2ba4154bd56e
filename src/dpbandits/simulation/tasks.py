"""Tasks as bytes, for other processes and machines."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ..environments.base import Environment
from ..errors import ArgumentError, DPBanditsError
from ..policies import Policy

Task = Callable[[int, int], Any]  # of a group, and the number of a unit in it

_FOLDERS: list[str] = []  # of modules that were imported from outside of the path


class Piece(NamedTuple):
    """Units of one group that are played together."""

    group: int
    units: range


def played(task: Task, piece: Piece) -> list[Any]:
    """The results of a piece."""
    return [task(piece.group, number) for number in piece.units]


@contextmanager
def importing_from(folder: Path) -> Iterator[None]:
    """Within it, modules are imported from a folder, too; helpers import them from there."""
    sys.path.insert(0, here := str(folder.resolve()))
    try:
        yield
    finally:
        sys.path.remove(here)
        if here not in _FOLDERS:
            _FOLDERS.insert(0, here)


def packed(task: Task) -> bytes:
    """What a helper reads with ``unpacked``."""
    return pickle.dumps((_FOLDERS, dumped(task)))


def dumped(what: Any, refuse: Callable[[Any], None] | None = None) -> bytes:
    """Pickle also functions and classes of ``__main__``, and policies as the calls that make them:
    they are templates here, and have no state.  ``refuse`` is called with objects within, where
    they are for other machines, whose processors and Python may differ a little.
    """
    from cloudpickle import CloudPickler

    class Pickler(CloudPickler):
        def reducer_override(self, one: Any) -> Any:
            if refuse is not None:
                refuse(one)
            if isinstance(one, Policy):
                code = _code_of(one) if refuse is None else None
                return _made, (type(one), dict(one.config), code)
            return super().reducer_override(one)

    written = io.BytesIO()
    Pickler(written).dump(what)
    return written.getvalue()


def dumped_for_others(task: Task) -> bytes:
    """Pickle a task for other machines, which are sent no data of people."""

    def refuse(one: Any) -> None:
        if isinstance(one, Environment) and one.holds_data:
            raise ArgumentError(
                f"environment must hold no data, got {one!r}: data are not sent to a cluster",
                "environment",
            )

    try:
        return dumped(task, refuse)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise ArgumentError(f"cluster cannot receive this policy or adversary: {error}") from None


def _made(policy_class: type[Policy], config: dict[str, Any], code: str | None) -> Policy:
    made = policy_class(**config)
    if code not in (None, _code_of(made)):
        name = policy_class.__name__
        raise DPBanditsError(
            f"the class {name} differs there, as when a file is changed after its import"
        )
    return made


def _code_of(policy: Policy) -> str:
    """A digest of kernels and parameters: runs of other code are not of the same policy."""
    kernels = [getattr(one, "_digest", "") for one in vars(policy.kernels).values()]
    return sha256(repr((kernels, policy.params)).encode()).hexdigest()


def unpacked(text: bytes) -> tuple[Any, str]:
    """A task, and why it cannot be loaded: nothing where it can."""
    folders, task = pickle.loads(text)
    sys.path[:0] = folders
    try:
        return pickle.loads(task), ""
    except Exception as error:  # of any object within
        return None, f"another process cannot load the work: {error}"
    finally:
        del sys.path[: len(folders)]
