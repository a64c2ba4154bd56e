"""The decorators for compiled code.

``@kernel`` compiles a function with numba for use by other compiled code.  It works on given arrays
and keeps no count of references to them.  This makes a loop of small kernels twice as fast, but a
kernel cannot allocate.  Three relatives differ in how callers use a function.  ``@inlined`` is
copied into each caller.  ``@outlined`` is called at its machine code, so shared code is compiled
once.  ``@entry`` is called from Python with a random generator. ``bind`` compiles one copy of a
template with other kernels as its globals.  A loop is compiled once per algorithm, and the next
process finds it again.  ``interpreted`` makes this copy in plain Python.

A kernel is known by a digest of its bytecode, its constants and every kernel it calls.
``kernel_cache`` keeps its machine code under this digest.  All that this package needs of numba's
private attributes stands here, in ``compiling``, in ``kernel_cache`` and in ``calls``.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import math
import sys
import types
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import numba
import numpy as np
from numba.core import config, event, sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from . import compiling
from .compiling import PartCompiler, WholeCompiler
from .kernel_cache import KERNELS, OUTLINED, KernelCache, cache_folder

_FORMAT = "dpbandits-kernel-7"
_PASSES = hashlib.sha256(Path(compiling.__file__).read_bytes()).hexdigest()

Kernel = Callable[..., Any]
# What kernels work on.
Vector = np.ndarray  # one axis
Matrix = np.ndarray  # two axes
Matrices = np.ndarray  # three axes
Generator = np.random.Generator


def kernel(function: Kernel) -> Kernel:
    """Compile ``function`` for other kernels; with ``NUMBA_DISABLE_JIT=1`` leave it as it is.

    A kernel may use other kernels, constants, NumPy and named tuples, all defined above it, and no
    closure.  It does not allocate arrays.  Python may call it, too.

    >>> @kernel
    ... def twice(x):
    ...     return 2 * x
    >>> twice(21)
    42
    """
    return _build(function, {}, _Linked)


def inlined(function: Kernel) -> Kernel:
    """A kernel, or a copy of one, that is compiled anew into each of its callers.

    For kernels that a loop calls in every round: passing the arrays of a state takes longer than a
    small kernel runs.
    """
    return _build(plain(function), {}, _Inlined)


def outlined(function: Kernel) -> Kernel:
    """A kernel, or a copy of one, that callers call without taking over any of its code.

    For large kernels that do not run in every round.  Other kernels are optimised and translated
    again within each of their callers.
    """
    return _build(plain(function), {}, _Outlined)


def entry(function: Kernel) -> Kernel:
    """Compile ``function`` as ``kernel`` does, for Python: with generators, and allocating."""
    return _build(function, {}, _Entry)


def bind(template: Kernel, **kernels: Kernel) -> Kernel:
    """Compile a copy of ``template`` whose global names ``kernels`` stand for the given kernels.

    Raises:
        ValueError: ``template`` does not use one of the names.
    """
    source = _with_places(template, kernels)
    return _build(source, kernels, template._kind)  # type: ignore[attr-defined]


def bind_places(template: Kernel, places: Mapping[str, Kernel]) -> Kernel:
    """``bind`` with those of ``places`` that the template has."""
    used = _global_names(plain(template).__code__)
    return bind(template, **{name: one for name, one in places.items() if name in used})


def interpreted(template: Kernel, **parts: Any) -> Kernel:
    """Copy a template like ``bind``, but in plain Python, with all that it calls.

    Returns:
        A Python function, whose places may hold any Python function.

    Raises:
        ValueError: ``template`` does not use one of the names.
    """
    source = _with_places(template, parts)
    used = _global_names(source.__code__) - set(parts) - set(dir(builtins))
    called = {name: _uncompiled(source.__globals__[name]) for name in used}
    # A look into a generator imports modules, which asks the calling frame for its builtins.
    scope = {"__builtins__": builtins, **called, **parts}
    return types.FunctionType(source.__code__, scope, source.__name__)


def unbound(*_: Any) -> Any:
    """Stand in a template until ``bind`` fills the place.

    Raises:
        TypeError: always.
    """
    raise TypeError("this kernel is a template: bind it first")


unbound._digest = "unbound"  # type: ignore[attr-defined]


def plain(function: Kernel) -> Kernel:
    """The Python function behind a kernel."""
    return getattr(function, "py_func", function)


# Kinds of kernels ------------------------------------------------------------------------------


class _Linked(CPUDispatcher):
    """A kernel without the wrappers for Python, which take as long to compile as a small kernel."""

    _options: ClassVar = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    _compiles: ClassVar[Any] = PartCompiler
    _digest: str

    def __init__(self, source: Any, digest: str) -> None:
        options = {"nopython": True, "nogil": True, **self._options}
        super().__init__(source, targetoptions=options, pipeline_class=self._compiles)
        self._digest = digest
        KERNELS.setdefault(digest, self)  # not a copy, which may soon be gone
        self._cache = KernelCache(cache_folder(), digest)

    @property
    def _kind(self) -> type:
        return type(self)

    @cached_property
    def _from_python(self) -> Kernel:
        # A wrapper that takes any arguments would take ten times as long to call.
        return _build(plain(self), {}, _Entry)

    def __call__(self, *arguments: Any) -> Any:
        return self._from_python(*arguments)

    def __reduce__(self) -> Any:
        return type(self), (self.py_func, self._digest)

    def compile(self, sig: Any) -> Any:
        """As numba does, but for timers, which every call of LLVM would tell of."""
        with global_compiler_lock, self._compiling_counter:
            arguments, returned = sigutils.normalize_signature(sig)
            if arguments in self.overloads:
                return self.overloads[arguments].entry_point
            result = self._cache.load_overload(arguments, self.targetctx)
            if result is not None:
                self._cache_hits[arguments] += 1
                self.targetctx.insert_user_function(
                    result.entry_point, result.fndesc, [result.library]
                )
                self.add_overload(result)
                return result.entry_point
            self._cache_misses[arguments] += 1
            about = {"dispatcher": self, "args": arguments, "return_type": returned}
            with event.trigger_event("numba:compile", data=about):
                result = self._compiler.compile(arguments, returned)
                self.add_overload(result)
            self._cache.save_overload(arguments, result)
            return result.entry_point


class _Inlined(_Linked):
    _options: ClassVar = {**_Linked._options, "forceinline": True}


class _Outlined(_Linked):
    """A kernel whose callers know its symbol only.

    One linker serves the whole process, so a symbol is found once its kernel is compiled or loaded.
    ``KernelCache`` compiles or loads it before any of its callers.
    """

    _compiles = WholeCompiler

    def add_overload(self, cres: Any) -> None:
        super().add_overload(cres)
        # Registered anew without its library, whose code callers would link.
        self.targetctx.remove_user_function(cres.entry_point)
        self.targetctx.insert_user_function(cres.entry_point, cres.fndesc, ())
        OUTLINED[cres.fndesc.mangled_name] = self._digest, cres.signature.args


class _Entry(_Linked):
    _options: ClassVar = {"_nrt": True, "no_cfunc_wrapper": True}
    _compiles = WholeCompiler
    __call__ = CPUDispatcher.__call__


def _build(function: Any, kernels: dict[str, Kernel], kind: type[_Linked]) -> Kernel:
    scope = _scope(function, {**function.__globals__, **kernels})
    digest = _digest(function, scope, kind)
    if config.DISABLE_JIT:
        copy = _copy(function, scope, function.__qualname__, digest)
        copy._kind = kind
        return copy
    # The digest in the name keeps apart the machine-code symbols of equally named functions that
    # different processes cached.
    return kind(_copy(function, scope, f"{function.__qualname__}_{digest[:16]}", digest), digest)


def _with_places(template: Kernel, parts: dict[str, Any]) -> Any:
    source = plain(template)
    unknown = set(parts) - _global_names(source.__code__)
    if unknown:
        raise ValueError(f"{source.__name__} has no place for {', '.join(sorted(unknown))}")
    return source


@cache
def _interpreted(function: Kernel) -> Kernel:
    return interpreted(function)


def _uncompiled(value: Any) -> Any:
    return _interpreted(value) if hasattr(value, "_digest") and value is not unbound else value


def _scope(function: Any, names: dict[str, Any]) -> dict[str, Any]:
    """The globals that a function uses, as its digest describes them: it is compiled later."""
    if function.__closure__:
        raise TypeError(
            f"{function.__qualname__} closes over variables: a kernel may use only globals and"
            " arguments"
        )
    scope = {}
    for name in sorted(_global_names(function.__code__)):
        if name not in names and not hasattr(builtins, name):
            raise NameError(f"{function.__qualname__} uses {name}, which is not defined above it")
        scope[name] = names.get(name, getattr(builtins, name, None))
    return scope


def _copy(function: Any, scope: dict[str, Any], qualname: str, digest: str) -> Any:
    name, defaults = function.__name__, function.__defaults__
    # NumPy imports the code of array methods at their first call, with these builtins.
    names = {"__builtins__": builtins, **scope}
    copy = types.FunctionType(function.__code__, names, name, defaults)
    copy.__module__, copy.__qualname__ = function.__module__, qualname
    copy.__doc__ = function.__doc__
    copy._digest = digest  # type: ignore[attr-defined]
    return copy


# Digests ---------------------------------------------------------------------------------------


def _digest(function: Any, scope: dict[str, Any], kind: type) -> str:
    versions = [
        _FORMAT,
        _PASSES,
        numba.__version__,
        np.__version__,
        sys.version,
        str(config.BOUNDSCHECK),
    ]
    names = [kind.__name__, function.__module__, function.__qualname__]
    code = [_describe(function.__defaults__, function), *_describe_code(function.__code__)]
    used = [f"{name}={_describe(value, function)}" for name, value in scope.items()]
    return hashlib.sha256("|".join([*versions, *names, *code, *used]).encode()).hexdigest()


def _describe_code(code: types.CodeType) -> list[str]:
    constants = [
        _describe_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts
    ]
    names = map(str, (constants, code.co_names, code.co_varnames, code.co_freevars))
    return [code.co_code.hex(), *names]


_LOAD_GLOBAL, _EXTENDED_ARG = dis.opmap["LOAD_GLOBAL"], dis.opmap["EXTENDED_ARG"]


@cache
def _global_names(code: types.CodeType) -> frozenset[str]:
    """As ``dis.get_instructions`` finds them, which would be a fifth of all that import takes."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    found, high = set(), 0
    for operation, low in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        argument = high | low
        high = argument << 8 if operation == _EXTENDED_ARG else 0
        if operation == _LOAD_GLOBAL:
            found.add(code.co_names[argument >> 1])  # the lowest bit asks for a NULL beside it
    return frozenset(found).union(*map(_global_names, inner))


def _describe(value: Any, function: Any) -> str:
    if hasattr(value, "_digest"):
        return str(value._digest)
    if value is np or value is math:
        return str(value.__name__)
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", ())
        items = ", ".join(_describe(item, function) for item in value)
        return f"{type(value).__qualname__}{fields}({items})"
    if isinstance(value, bool | int | float | str | np.generic | type(None)):
        return f"{type(value).__qualname__} {value!r}"
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        defaults: dict[str, Any] = vars(value).get("_field_defaults", {})
        given = _describe(tuple(defaults.values()), function)
        return f"{value.__module__}.{value.__qualname__}{value._fields}{given}"
    builtin = getattr(builtins, getattr(value, "__name__", ""), None) is value
    if builtin or getattr(value, "__module__", "") == "numpy":
        return str(value.__name__)
    raise TypeError(
        f"{function.__qualname__} uses {value!r}, and the kernel cache would not notice its"
        " changes: make the function a kernel"
    )
