"""Calls of compiled code from Python, where they are made in every round.

numba inspects all arguments of every call, which takes longer than a small kernel runs.  It
searches a named tuple for the types of its arrays, and takes a NumPy generator apart through
ctypes.  This module does both once.  A call with the same tuples as before has arguments of the
same types.  Of a generator, compiled code gets the addresses and builds the generator from them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import cgutils, config, types
from numba.extending import intrinsic, overload

from .kernel import Kernel, plain

_PARTS = ("state_address", "state", "next_uint64", "next_uint32", "next_double", "bit_generator")
_FIELDS = [part.replace("next", "fnptr_next") for part in _PARTS]  # of numba's structure
_MANY = 256  # generators whose addresses are kept at hand
_ALIKE = (int, float, type(None))  # whose values all have one type
# Of the flags of an array, those that are part of its type: order, alignment, and leave to write.
_FLAGS = 0x1 | 0x2 | 0x100 | 0x400

# Generators ----------------------------------------------------------------------------------


def generator_at(addresses: Any) -> Any:
    """The generator that ``called`` was given in this place; None as it is."""
    return addresses


# Of all of this file, which decides what compiled code does with addresses, and with masks.
_DIGEST = sha256(Path(__file__).read_bytes()).hexdigest()
generator_at._digest = _DIGEST  # type: ignore[attr-defined]


@overload(generator_at)
def _generator_at(addresses):  # type: ignore[no-untyped-def]  # as untyped as the lambdas
    if isinstance(addresses, types.Array):
        return lambda addresses: _assembled(addresses)
    return lambda addresses: addresses


@intrinsic  # type: ignore[untyped-decorator]
def _assembled(typing_context: Any, addresses: Any) -> Any:
    kind = types.NumPyRandomGeneratorType("addresses")
    bits = types.NumPyRandomBitGeneratorType("addresses")

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = context.make_array(addresses)(context, builder, arguments[0])
        inner = cgutils.create_struct_proxy(bits)(context, builder)
        for place, field in enumerate(_FIELDS):
            setattr(inner, field, builder.load(cgutils.gep_inbounds(builder, given.data, place)))
        whole = cgutils.create_struct_proxy(kind)(context, builder)
        # Of Python objects, and of a reference count, nothing is known, and nothing is asked.
        for struct, fields in ((inner, ("parent",)), (whole, ("parent", "meminfo"))):
            for field in fields:
                setattr(struct, field, cgutils.get_null_value(getattr(struct, field).type))
        whole.bit_generator = inner._getvalue()
        return whole._getvalue()

    return kind(addresses), codegen


@lru_cache(_MANY)
def _addresses(rng: np.random.Generator) -> np.ndarray:
    """The addresses of the parts of a generator."""
    made_of = rng.bit_generator.ctypes
    found = (getattr(made_of, part) for part in _PARTS)
    pointers = (
        part if isinstance(part, int) else ctypes.cast(part, ctypes.c_void_p).value
        for part in found
    )
    return np.array(list(pointers), np.uintp)


# Masks ---------------------------------------------------------------------------------------


def is_open(contexts: Any, arm: int) -> bool:
    """Whether an arm may be chosen.  ``contexts`` is the argument of ``choose``.  A mask, shape
    (K,), lists the open arms; under anything else all arms are open, and no code is compiled.
    """
    masked = isinstance(contexts, np.ndarray) and contexts.dtype == bool
    return bool(contexts[arm]) if masked else True


is_open._digest = _DIGEST  # type: ignore[attr-defined]


@overload(is_open)
def _is_open(contexts, arm):  # type: ignore[no-untyped-def]
    if isinstance(contexts, types.Array) and isinstance(contexts.dtype, types.Boolean):
        return lambda contexts, arm: contexts[arm]
    return lambda contexts, arm: True


# Calls ---------------------------------------------------------------------------------------


def _called(entry: Any, draws: bool) -> Callable[..., Any]:
    # The code for arguments of these kinds, and of arrays at these places; none is like the first.
    # In one variable, which an interrupt leaves as it was or as it should be.
    known: tuple[Callable[..., Any], list[Any], list[tuple[Any, ...]]] = entry, [object()], []

    def call(*arguments: Any) -> Any:
        if draws and (rng := arguments[-1]) is not None:
            arguments = (*arguments[:-1], _addresses(rng))
        code, kinds, arrays = known
        for argument, kind in zip(arguments, kinds):  # noqa: B905  # it takes time
            if argument is not kind and type(argument) is not kind:
                return look_at(arguments)
        for place, dtype, axes, flags in arrays:
            one = arguments[place]
            if one.dtype is not dtype or one.ndim != axes or one.flags.num & _FLAGS != flags:
                return look_at(arguments)
        return code(*arguments)

    def look_at(arguments: tuple[Any, ...]) -> Any:
        nonlocal known
        answer = entry(*arguments)
        types_of = tuple(map(entry.typeof_pyval, arguments))
        looked_at = enumerate(arguments[:-1] if draws else arguments)
        arrays = [
            (at, one.dtype, one.ndim, one.flags.num & _FLAGS)
            for at, one in looked_at
            if isinstance(one, np.ndarray)
        ]
        known = entry.overloads[types_of].entry_point, list(map(_kept, arguments)), arrays
        return answer

    call.py_func = plain(entry)  # type: ignore[attr-defined]
    return call


def _kept(argument: Any) -> Any:
    """A named tuple, whose types stay.  Anything else may be a person's answer, so only its
    class.
    """
    if isinstance(argument, tuple):
        return argument
    kind = type(argument)
    return kind if kind is np.ndarray or kind in _ALIKE else object()  # that nothing is like


def called(entry: Kernel, *, draws: bool = False) -> Callable[..., Any]:
    """An entry as one caller calls it again and again; ``draws`` if its last argument is a
    generator or None, on which it calls ``generator_at`` before it draws.

    Not for several threads at a time: a policy calls its own under its lock.
    """
    return entry if config.DISABLE_JIT else _called(entry, draws)
