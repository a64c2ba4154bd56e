"""Calls of compiled code from Python, where they are made in every round.

numba looks at all arguments of every call, which takes longer than a small kernel runs: a named
tuple is searched for the types of its arrays, and a generator of NumPy is taken apart by way of
ctypes.  Here both are done once: a call with the same tuples as before has arguments of the same
types, and of a generator the addresses are handed over, from which compiled code puts it together.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import cgutils, config, types
from numba.extending import intrinsic, overload

from .kernel import Kernel, plain

_PARTS = ("state_address", "state", "next_uint64", "next_uint32", "next_double", "bit_generator")
_FIELDS = [part.replace("next", "fnptr_next") for part in _PARTS]  # of numba's structure
_MANY = 256  # generators whose addresses are kept at hand
_ALIKE = (int, float, type(None))  # whose values all have one type

# Generators ----------------------------------------------------------------------------------


def generator_at(addresses: Any) -> Any:
    """The generator that ``called`` was given in this place; None as it is."""
    return addresses


generator_at._digest = f"generator_at {_FIELDS}"  # type: ignore[attr-defined]


@overload(generator_at)
def _generator_at(addresses):
    if isinstance(addresses, types.Array):
        return lambda addresses: _assembled(addresses)
    return lambda addresses: addresses


@intrinsic
def _assembled(typing_context, addresses):
    kind = types.NumPyRandomGeneratorType("addresses")
    bits = types.NumPyRandomBitGeneratorType("addresses")

    def codegen(context, builder, signature, arguments):
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
    """Where a generator keeps what it is made of."""
    made_of = rng.bit_generator.ctypes
    found = (getattr(made_of, part) for part in _PARTS)
    pointers = (
        part if isinstance(part, int) else ctypes.cast(part, ctypes.c_void_p).value
        for part in found
    )
    return np.array(list(pointers), np.uintp)


# Calls ---------------------------------------------------------------------------------------


class _Called:
    def __init__(self, entry: Any, draws: bool) -> None:
        self.py_func, self._entry, self._draws = plain(entry), entry, draws
        self._before: tuple[Any, ...] = ()
        self._code: Callable[..., Any] = entry

    def __call__(self, *arguments: Any) -> Any:
        if self._draws and (rng := arguments[-1]) is not None:
            arguments = (*arguments[:-1], _addresses(rng))
        before = self._before
        for i, argument in enumerate(arguments):
            if i >= len(before) or not (argument is before[i] or _are_alike(argument, before[i])):
                return self._look_at(arguments)
        return self._code(*arguments)

    def _look_at(self, arguments: tuple[Any, ...]) -> Any:
        answer = self._entry(*arguments)
        kinds = tuple(map(self._entry.typeof_pyval, arguments))
        self._before, self._code = arguments, self._entry.overloads[kinds].entry_point
        return answer


def _are_alike(one: Any, other: Any) -> bool:
    kind = type(one)
    if kind is not type(other):
        return False
    if kind is np.ndarray:
        return bool(
            one.dtype is other.dtype and one.ndim == other.ndim and one.flags == other.flags
        )
    return kind in _ALIKE


def called(entry: Kernel, *, draws: bool = False) -> Callable[..., Any]:
    """An entry as one caller calls it again and again; ``draws`` if its last argument is a
    generator or None, on which it calls ``generator_at`` before it draws.
    """
    return entry if config.DISABLE_JIT else _Called(entry, draws)
