"""A digest of the package's code; results computed by it are stored under this key."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable

_LIBRARIES = ("numpy", "numba", "scipy", "scikit-learn")  # which decide numbers, too


@functools.cache
def code_digest() -> str:
    """A digest of all files of this package, and of the versions of the libraries below it, in 64
    hexadecimal digits: results of other code are no results.

    Read once in a process, from a folder or a zip file.
    """
    digest = digest_of_files(files("dpbandits"))
    return sha256(repr((digest, *map(_version, _LIBRARIES))).encode()).hexdigest()


def digest_of_files(folder: Traversable) -> str:
    """A digest of the names and bytes of all files in a folder, except compiled ones."""
    digest = sha256()
    for name, file in _files(folder, ""):
        content = file.read_bytes()
        # With its length, or one file could pass for two.
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _files(folder: Traversable, above: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files(entry, f"{above}{entry.name}/")
        elif not entry.name.endswith(".pyc"):
            yield above + entry.name, entry


def _version(name: str) -> str | None:
    with contextlib.suppress(PackageNotFoundError):
        return version(name)
    return None
