"""The cache of machine code: compiled kernels in a folder, for the next process.

The cache is ours because numba's own goes stale when a callee in another file changes, and never
hits when functions travel as arguments.  An entry is addressed by the digest of its kernel.  Any
change of the kernel, or of what it calls, changes the address, so no entry has to be invalidated.
An entry that cannot be read is a miss; a folder that cannot be written means that nothing is
cached.  Entries are code that runs: if other users can change them, by the rule of ``folders``, the
cache is neither read nor written.

An entry names callees whose code it needs by their digests.  They are compiled or loaded with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import shlex
import stat
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import Any, ClassVar

import platformdirs
from numba.core import caching, compiler, serialize

from .compiling import Part, describe_type, handle
from .errors import CacheWarning
from .folders import Fault, fault_of, fault_of_folder, make_private

_CHECKSUM_BYTES = 32

# The kernels of this process by their digests.
KERNELS: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
# The outlined kernels that it has compiled or loaded: symbol -> digest and argument types.
OUTLINED: dict[str, tuple[str, Any]] = {}


def cache_folder() -> Path:
    """The folder of compiled kernels: ``$DPBANDITS_CACHE_DIR``, else the user's cache folder.

    It is used if it and all folders above it belong to this user or to root and only their owners
    may write to them, where sticky folders such as ``/tmp`` may stand above it.  Otherwise a
    ``CacheWarning`` says so once, and kernels are compiled in memory.
    """
    default = Path(platformdirs.user_cache_dir("dpbandits", appauthor=False)) / "kernels"
    return Path(os.environ.get("DPBANDITS_CACHE_DIR") or default)


def cache_refusal(folder: Path) -> str | None:
    """Why a folder is no cache of compiled code, and what to do; None if it may be one."""
    try:
        fault = fault_of_folder(folder)
    except OSError:  # it is still to be made, or cannot be used anyway
        return None
    return _refusal(folder, fault) if fault else None


class KernelCache(caching._Cache):
    """Compiled code under ``folder/digest/``, one checksummed file per signature."""

    # Cache folders that this process has looked at, and whether it uses them.
    _used: ClassVar[dict[Path, bool]] = {}

    def __init__(self, folder: Path, digest: str) -> None:
        self._root = folder
        self._folder = folder / digest[:2] / digest

    @property
    def cache_path(self) -> str:
        return str(self._folder)

    def enable(self) -> None: ...
    def disable(self) -> None: ...
    def flush(self) -> None: ...

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        content = self._read(self._file(sig, target_context.codegen()))
        if content is None:
            return None
        try:
            checksum, payload = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
            if hashlib.sha256(payload).digest() != checksum:
                return None
            symbols, parts = pickle.loads(payload)
            if not all(_is_linked(*symbol) for symbol in symbols):
                return None
            result = _rebuilt(target_context, *parts)
        except Exception:  # whatever is wrong with an entry, compiling anew is right
            return None
        # A named tuple that was defined in a notebook comes back as another class, and would match
        # no call.
        return result if result.signature.args == tuple(sig) else None

    def save_overload(self, sig: Any, data: Any) -> None:
        if data.library.has_dynamic_globals or any(not lifted.can_cache for lifted in data.lifted):
            return
        used = [f.name for f in data.library._final_module.functions if f.is_declaration]
        symbols = [(name, *OUTLINED[name]) for name in used if name in OUTLINED]
        if self._may_be_used() is False:
            return
        payload = serialize.dumps((symbols, data._reduce()))
        try:
            make_private(self._folder)
            if not self._safe():
                return
            handle, name = tempfile.mkstemp(dir=self._folder)
        except OSError:
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(payload).digest() + payload)
            os.replace(name, self._file(sig, data.codegen))
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)

    def _read(self, file: Path) -> bytes | None:
        """The content of an entry; None if there is none, or others could have written it."""
        try:
            if not self._safe():
                return None
            with file.open("rb") as opened:
                if fault := fault_of(file, os.fstat(opened.fileno())):
                    self._refuse(fault)
                    return None
                return opened.read()
        except OSError:
            return None

    def _safe(self) -> bool:
        """Whether the folder of entries is there, and only this user or root can change it.

        Raises:
            OSError: it is not there.
        """
        if not self._may_be_used():
            return False
        for folder in (self._folder.parent, self._folder):
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode):
                return False
            if fault := fault_of(folder, status):
                self._refuse(fault)
                return False
        return True

    def _may_be_used(self) -> bool | None:
        """Whether the cache folder keeps the rule, looked at once; None if there is no folder."""
        try:
            root = self._root.absolute()
            if root not in self._used:
                fault = fault_of_folder(root)
                self._used[root] = True
                if fault:
                    self._refuse(fault)
            return self._used[root]
        except OSError:
            return None

    def _refuse(self, fault: Fault) -> None:
        self._used[self._root.absolute()] = False
        warnings.warn(_refusal(self._root, fault), CacheWarning, stacklevel=2)

    def _file(self, sig: Any, codegen: Any) -> Path:
        key = repr(([describe_type(kind) for kind in sig], codegen.magic_tuple()))
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.kernel"


def _refusal(folder: Path, fault: Fault) -> str:
    remedy = ""
    if folder in fault.place.parents:
        remedy = "empty the cache folder, or "
    elif fault.closable:
        remedy = f"run `chmod go-w {shlex.quote(str(fault.place))}`, or "
    return (
        f"the cache folder {folder} is not used: {fault.place} {fault.reason}, and others may"
        f" have put code there. To use a cache, {remedy}set DPBANDITS_CACHE_DIR to a folder of"
        " your own"
    )


def _is_linked(symbol: str, digest: str, arguments: Any) -> bool:
    """Whether an outlined kernel stands under that symbol; compiles or loads it if need be."""
    if symbol not in OUTLINED:
        KERNELS[digest].compile(arguments)
    return symbol in OUTLINED


def _at_hand(digest: str, arguments: Any, symbol: str) -> Any:
    """The code of a part; compiles or loads it if need be.

    Raises:
        LookupError: it has another symbol, which numba also makes of the options of callers.
    """
    found = KERNELS[digest]
    found.compile(arguments)
    result = found.overloads[arguments]
    if result.fndesc.mangled_name != symbol:
        raise LookupError(symbol)
    return result.library


def _rebuilt(target: Any, library: Any, described: Any, environment: Any, *rest: Any) -> Any:
    """A compiled function, as it was before it was written."""
    if library[1] == "object":
        return compiler.CompileResult._rebuild(target, library, described, environment, *rest)
    part = Part.read(target, library, _at_hand)
    return compiler.compile_result(
        target_context=target,
        typing_context=target.typing_context,
        library=part,
        environment=environment,
        entry_point=handle(described, environment, part),
        fndesc=described,
        signature=rest[0],
        objectmode=rest[1],
        lifted=rest[2],
        reload_init=rest[4],
    )
