"""Calls of compiled code from Python, where they are made in every round.

numba inspects all arguments of every call, which takes longer than a small kernel runs.  It
searches a named tuple for the types of its arrays, and takes a NumPy generator apart through
ctypes.  This module does both once.  A call with the same tuples as before has arguments of the
same types.  Of a generator, compiled code gets the addresses and builds the generator from them.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as ll
import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.imputils import impl_ret_borrowed, lower_builtin
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import models, register_model
from numba.np.random.generator_core import NumPyRandomGeneratorTypeModel
from numpy.random import _generator

from .kernel import Kernel, plain

_PARTS = ("state_address", "state", "next_uint64", "next_uint32", "next_double", "bit_generator")
_FIELDS = [part.replace("next", "fnptr_next") for part in _PARTS]  # of numba's structure
_MANY = 256  # generators whose addresses are kept at hand
_ALIKE = (int, float, type(None))  # whose values all have one type
# Of the flags of an array, those that are part of its type: order, alignment, and leave to write.
_FLAGS = 0x1 | 0x2 | 0x100 | 0x400

# Generators ----------------------------------------------------------------------------------


_BITS = types.NumPyRandomBitGeneratorType("addresses")


class _Drawing(types.NumPyRandomGeneratorType):
    """A generator, known by its addresses.  NumPy's own code draws its ``_DRAWS``: the same numbers
    as numba's copies, with a second less to compile.
    """

    def __init__(self) -> None:
        super().__init__("Drawing")
        self.name = f"Drawing {_DIGEST[:16]}"  # of the code that draws; not a NumPy generator's


register_model(_Drawing)(NumPyRandomGeneratorTypeModel)


class _Draw(NamedTuple):
    symbol: str  # of NumPy's function
    takes: tuple[types.Type, ...] = ()
    gives: types.Type = types.float64


_DRAWS = {
    "random": _Draw("random_standard_uniform"),
    "standard_normal": _Draw("random_standard_normal"),
    "standard_gamma": _Draw("random_standard_gamma", (types.float64,)),
    "laplace": _Draw("random_laplace", (types.float64, types.float64)),
    "beta": _Draw("random_beta", (types.float64, types.float64)),
    "binomial": _Draw("random_binomial", (types.int64, types.float64), types.int64),
}
_CACHE_WORDS = 32  # more than in NumPy's struct of what it keeps of binomial laws


def _found() -> list[str]:
    """The draws whose code NumPy's library shows, made known to compiled code."""
    library, found = ctypes.CDLL(_generator.__file__), []
    for name, draw in _DRAWS.items():
        code = getattr(library, draw.symbol, None)
        if code is not None:
            ll.add_symbol(f"numpy.{draw.symbol}", ctypes.cast(code, ctypes.c_void_p).value)
            found.append(name)
    return found


class _Method(types.BoundFunction):
    """A method of a generator: NumPy's code where it draws one number, and else numba's."""

    def __init__(self, name: str, numbas: Any) -> None:
        super().__init__(numbas.template, numbas.this)
        self._draw, self._key = _DRAWS[name], f"dpbandits.{name}"

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        numbers = all(isinstance(one, types.Number) for one in args)
        if numbers and len(args) == len(self._draw.takes) and not kws:
            return signature(self._draw.gives, *self._draw.takes, recvr=self.this)
        return super().get_call_type(context, args, kws)

    def get_impl_key(self, sig: Any) -> Any:
        ours = sig.args == (self.this, *self._draw.takes)
        return self._key if ours else super().get_impl_key(sig)


register_model(_Method)(models.OpaqueModel)


class _Methods(AttributeTemplate):
    key = _Drawing


def _teach(name: str, draw: _Draw) -> None:
    """Let compiled code draw by NumPy's function."""
    key = f"dpbandits.{name}"

    def resolve(ours: Any, this: Any) -> Any:
        known = ours.context._get_attribute_templates(this)
        found = (one.resolve(this, name) for one in known if one is not ours)
        return _Method(name, next(one for one in found if one is not None))

    def lowered(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        whole = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=arguments[0])
        inner = cgutils.create_struct_proxy(_BITS)(context, builder, value=whole.bit_generator)
        given = [builder.inttoptr(inner.bit_generator, cgutils.voidptr_t), *arguments[1:]]
        if name == "binomial":  # NumPy takes p, n, and what it keeps of a law: none yet
            kept = cgutils.alloca_once(builder, cgutils.intp_t, _CACHE_WORDS)
            builder.store(cgutils.intp_t(0), kept)
            given[1:] = [given[2], given[1], builder.bitcast(kept, cgutils.voidptr_t)]
        kind = ir.FunctionType(context.get_value_type(draw.gives), [one.type for one in given])
        code = cgutils.get_or_insert_function(builder.module, kind, f"numpy.{draw.symbol}")
        return builder.call(code, given)

    setattr(_Methods, f"resolve_{name}", resolve)
    lower_builtin(key, _Drawing, *draw.takes)(lowered)


_KNOWN = _found()
for _name in _KNOWN:
    _teach(_name, _DRAWS[_name])
infer_getattr(_Methods)


def generator_at(addresses: Any) -> Any:
    """The generator that ``called`` was given in this place; None as it is."""
    return addresses


# Of all of this file, which decides what compiled code does with addresses, and with masks.
_DIGEST = sha256(Path(__file__).read_bytes() + repr(_KNOWN).encode()).hexdigest()
generator_at._digest = _DIGEST  # type: ignore[attr-defined]


@infer_global(generator_at)
class _GeneratorAt(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(_Drawing() if isinstance(args[0], types.Array) else args[0], *args)


@lower_builtin(generator_at, types.Any)  # type: ignore[untyped-decorator]
def _lower_generator_at(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    if not isinstance(sig.args[0], types.Array):
        return impl_ret_borrowed(context, builder, sig.return_type, arguments[0])
    given = context.make_array(sig.args[0])(context, builder, arguments[0])
    inner = cgutils.create_struct_proxy(_BITS)(context, builder)
    for place, field in enumerate(_FIELDS):
        setattr(inner, field, builder.load(cgutils.gep_inbounds(builder, given.data, place)))
    whole = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    # Of Python objects, and of a reference count, nothing is known, and nothing is asked.
    for struct, fields in ((inner, ("parent",)), (whole, ("parent", "meminfo"))):
        for field in fields:
            setattr(struct, field, cgutils.get_null_value(getattr(struct, field).type))
    whole.bit_generator = inner._getvalue()
    return whole._getvalue()


@lru_cache(_MANY)
def _addresses(rng: np.random.Generator) -> np.ndarray:
    made_of = rng.bit_generator.ctypes
    found = (getattr(made_of, part) for part in _PARTS)
    pointers = (
        part if isinstance(part, int) else ctypes.cast(part, ctypes.c_void_p).value
        for part in found
    )
    return np.array(list(pointers), np.uintp)


def addresses_of(rng: np.random.Generator | None) -> Any:
    """What compiled code takes for a generator: the addresses of its parts.  None, and everything
    without a compiler, stays as it is.
    """
    return rng if rng is None or config.DISABLE_JIT else _addresses(rng)


# Masks ---------------------------------------------------------------------------------------


def is_open(contexts: Any, arm: int) -> bool:
    """Whether an arm may be chosen.  ``contexts`` is the argument of ``choose``.  A mask, shape
    (K,), lists the open arms; under anything else all arms are open, and no code is compiled.
    """
    masked = isinstance(contexts, np.ndarray) and contexts.dtype == bool
    return bool(contexts[arm]) if masked else True


is_open._digest = _DIGEST  # type: ignore[attr-defined]


def _masks(contexts: types.Type) -> bool:
    return isinstance(contexts, types.Array) and isinstance(contexts.dtype, types.Boolean)


@infer_global(is_open)
class _IsOpen(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.boolean, args[0], types.intp if _masks(args[0]) else args[1])


@lower_builtin(is_open, types.Any, types.Any)  # type: ignore[untyped-decorator]
def _lower_is_open(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    if _masks(sig.args[0]):
        return context.get_function(operator.getitem, sig)(builder, arguments)
    return context.get_constant(types.boolean, True)


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
