"""How kernels are compiled: with few of numba's passes, and optimised once.

numba takes every function through 26 passes, and writes wrappers for Python around it.  Then it
links all callees, optimises everything twice, and makes machine code.  Callers repeat all of this.
Here a kernel stays a ``Part``: code for its callers alone.  A ``Whole`` has callers outside.  It
links its parts once, and optimises them.  The first simulation takes half the time.  If the few
passes fail, numba runs all of them, and reports the error.

``_simplify`` saves numba work.  Attributes of constants, such as ``CLOCK.rounds``, become their
values.  NumPy's functions of single numbers become those of ``math``, with the same machine code.
``min``, ``max`` and ``int`` become instructions.
"""

from __future__ import annotations

import gc
import hashlib
import math
import operator
import time
from collections.abc import Callable
from typing import Any, ClassVar

import llvmlite.binding as ll
import numba
import numpy as np
from numba import _dynfunc
from numba.core import bytecode, codegen, compiler, compiler_machinery, errors, ir, types
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.ir_utils import build_definitions
from numba.core.postproc import PostProcessor
from numba.core.runtime import rtsys
from numba.core.typed_passes import (
    InlineOverloads,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonRewrites,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    DeadBranchPrune,
    ExtractByteCode,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)
from numba.cpython.builtins import do_minmax
from numba.extending import intrinsic

# Code ------------------------------------------------------------------------------------------


class Part(codegen.JITCodeLibrary):
    """Code of a function for its callers, not optimised, and without machine code."""

    source: tuple[str, Any]  # digest and types of arguments of its kernel
    symbol: str

    def finalize(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def own(self) -> Any:
        """The code of the function alone."""
        return codegen.JITCodeLibrary._get_module_for_linking(self)

    def _get_module_for_linking(self) -> Any:
        """The code with that of all callees, for functions of numba, which link direct callees."""
        whole = self.own().clone()
        self.link_all_into(whole)
        return whole

    def link_all_into(self, module: Any) -> None:
        """Add the code of all callees, direct and indirect."""
        for one in self.all_linked():
            code = one.own() if isinstance(one, Part) else one._get_module_for_linking()
            module.link_in(code, preserve=True)

    def all_linked(self) -> list[Any]:
        """The libraries of all callees, direct and indirect."""
        found: dict[Any, None] = {}
        waiting = list(self._linking_libraries)
        while waiting:
            one = waiting.pop()
            if one not in found:
                found[one] = None
                waiting += one._linking_libraries if isinstance(one, Part) else []
        return list(found)

    def serialize_using_object_code(self) -> Any:
        linked = [one for one in self._linking_libraries if one is not rtsys.library]
        parts = [(*one.source, one.symbol) for one in linked if isinstance(one, Part)]
        others = [one._get_module_for_linking() for one in linked if not isinstance(one, Part)]
        modules = [self.own(), *others]
        return (
            self.name,
            (*self.source, self.symbol),
            parts,
            [module.as_bitcode() for module in modules],
        )

    @classmethod
    def read(cls, target: Any, data: Any, at_hand: Callable[[str, Any, str], Any]) -> Part:
        """Read the output of ``serialize_using_object_code``.  ``at_hand(digest, arguments,
        symbol)`` is the code of a callee.
        """
        name, source, parts, modules = data
        self = cls(target.codegen(), name)
        digest, arguments, self.symbol = source
        self.source = digest, arguments
        own, *others = map(ll.parse_bitcode, modules)
        for one in others:
            own.link_in(one)
        self._final_module = self._shared_module = own
        for one in (rtsys.library, *(at_hand(*part) for part in parts)):
            self.add_linking_library(one)
        return self


class Whole(Part):
    """Machine code of a function with all its callees, optimised here."""

    serialize_using_object_code = codegen.JITCodeLibrary.serialize_using_object_code
    _get_module_for_linking = codegen.JITCodeLibrary._get_module_for_linking

    def finalize(self) -> None:
        linked = self.all_linked()
        self.link_all_into(self._final_module)
        for one in linked:
            self._reload_init.update(one._reload_init)
        self._linking_libraries = []
        codegen.JITCodeLibrary.finalize(self)
        self._linking_libraries = linked
        # Parts have no addresses of their own, so nobody else tells their code where these are.
        for found in self._final_module.global_variables:
            known = lookup_environment(found.name) if "NumbaEnv" in found.name else None
            if known is not None:
                self._codegen.set_env(found.name, known)


def handle(described: Any, environment: Any, part: Part) -> Any:
    """What numba knows a part by.  It has no code: a call would crash.  ``_Linked.__call__`` makes
    none.
    """
    module, name = described.lookup_module(), described.qualname.split(".")[-1]
    return _dynfunc.make_function(module, name, "", 0, environment, (part,))


def describe_type(kind: Any) -> str:
    """A numba type in words, with the fields of named tuples, which numba's own words leave out."""
    if isinstance(kind, numba.types.BaseTuple):
        return f"{kind}{getattr(kind, 'fields', '')}({', '.join(map(describe_type, kind))})"
    return repr(kind)


# Passes ----------------------------------------------------------------------------------------


def _extreme(values: tuple[Any, ...], typing_context: Any, compare: Any) -> Any:
    """numba's minimum or maximum of several numbers."""
    if not all(isinstance(one, types.Number) for one in values):
        return None

    def lowered(context: Any, builder: Any, sig: Any, given: Any) -> Any:
        return do_minmax(context, builder, list(sig.args), list(given), compare)

    return typing_context.unify_types(*values)(*values), lowered


@intrinsic  # type: ignore[untyped-decorator]
def _least(typing_context: Any, a: Any, b: Any) -> Any:
    return _extreme((a, b), typing_context, operator.lt)


@intrinsic  # type: ignore[untyped-decorator]
def _least_of_three(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    return _extreme((a, b, c), typing_context, operator.lt)


@intrinsic  # type: ignore[untyped-decorator]
def _largest(typing_context: Any, a: Any, b: Any) -> Any:
    return _extreme((a, b), typing_context, operator.gt)


@intrinsic  # type: ignore[untyped-decorator]
def _cut(typing_context: Any, x: Any) -> Any:
    """A number without its fraction."""
    if not isinstance(x, types.Integer | types.Float):
        return None

    def lowered(context: Any, builder: Any, sig: Any, given: Any) -> Any:
        return context.cast(builder, given[0], sig.args[0], sig.return_type)

    return (x if isinstance(x, types.Integer) else types.intp)(x), lowered


def _of_number(function: Any) -> Any:
    """A function of ``math`` for those numbers of which NumPy's gives the same."""

    @intrinsic  # type: ignore[untyped-decorator]
    def typed(typing_context: Any, x: Any) -> Any:
        if x not in (types.float64, types.int64):
            return None
        found = typing_context.resolve_value_type(function)

        def lowered(context: Any, builder: Any, sig: Any, given: Any) -> Any:
            return context.get_function(found, sig)(builder, given)

        return found.get_call_type(typing_context, (x,), {}), lowered

    return typed


# By the function and the number of its arguments.
_BUILTINS = {(min, 2): _least, (min, 3): _least_of_three, (max, 2): _largest, (int, 1): _cut}
_OF_NUMBERS = {
    name: _of_number(getattr(math, name))
    for name in ("log", "exp", "log1p", "expm1", "sqrt", "isnan", "isinf")
}


def _simplify(code: Any) -> None:
    """Rewrite numba's form of a function; see above."""
    known: dict[str, Any] = {}
    for block in code.blocks.values():
        unused = []
        for line in block.find_insts(ir.Assign):
            value, name = line.value, line.target.name
            if isinstance(value, ir.Global):
                known[name] = line
            elif not isinstance(value, ir.Expr):
                continue
            elif value.op == "getattr" and value.value.name in known:
                of = known[value.value.name].value.value
                if of is np and value.attr in _OF_NUMBERS:
                    line.value = ir.Global(value.attr, _OF_NUMBERS[value.attr], value.loc)
                elif hasattr(of, "_fields") and value.attr in of._fields:
                    line.value = ir.Const(getattr(of, value.attr), value.loc)
                else:
                    continue
                unused.append(known[value.value.name])
            elif value.op == "call" and value.func.name in known and not value.kws:
                called = known[value.func.name]
                other = _BUILTINS.get((called.value.value, len(value.args)))
                if other is not None and value.vararg is None:
                    called.value = ir.Global(called.value.name, other, called.loc)
        for line in unused:
            if line in block.body and line.target.name.startswith("$"):
                block.body.remove(line)
    code._definitions = build_definitions(code.blocks)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    """Lowering without machine code."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        state.library.symbol = lowered.fndesc.mangled_name
        known = handle(lowered.fndesc, lowered.env, state.library)
        state.targetctx.insert_user_function(known, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=known)
        return True


class _Plain:
    """Texts as they are, in place of numba's colours."""

    def __getattr__(self, name: str) -> Callable[[Any], str]:
        return str


class WholeCompiler(compiler.Compiler):
    """Number functions by the types of their arguments.  The types include the fields of named
    tuples, which numba's names omit.  Processes find each other's code by these symbols.  So
    symbols must tell all code apart, and must not depend on earlier compilations.
    """

    library: ClassVar[type[Part]] = Whole
    lowering: ClassVar[Any] = NativeLowering

    def compile_extra(self, func: Any) -> Any:
        self.state.func_id = identity = bytecode.FunctionIdentity.from_function(func)
        kinds = repr([describe_type(kind) for kind in self.state.args])
        identity.unique_id = int(hashlib.sha256(kinds.encode()).hexdigest()[:15], 16)
        identity.unique_name = f"{identity.func_qualname}${identity.unique_id}"
        ExtractByteCode().run_pass(self.state)
        self.state.lifted, self.state.lifted_from = (), None
        # It makes millions of objects: to look for garbage on the way takes a tenth of its time.
        # What another thread says of collections meanwhile is lost, and its forks collect nothing.
        collects = gc.isenabled()
        try:
            gc.disable()
            with COMPILING:
                return self._compile_bytecode()
        finally:
            if collects:
                gc.enable()

    def _compile_core(self) -> Any:
        wanted = self.state.return_type
        try:
            return self._compile_simple()
        except Exception:  # whatever is wrong, numba does it or says so
            self.state.func_ir, self.state.return_type = None, wanted
            self._begin()
            return super()._compile_core()

    def _begin(self) -> None:
        state = self.state
        library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        library.source = state.func_id.func._digest, tuple(state.args)
        state.library = library

    def _compile_simple(self) -> Any:
        state = self.state
        self._begin()
        # numba colours hundreds of errors that it overcomes: a twentieth of its time.
        colours, errors._termcolor_inst = errors._termcolor_inst, _Plain()
        try:
            return self._run(state)
        finally:
            errors._termcolor_inst = colours

    def _run(self, state: Any) -> Any:
        with compiler.ConfigStack().enter(state.flags.copy()):
            for one in (*_UNTYPED, *_TYPED, self.lowering, NoPythonBackend):
                step = compiler_machinery._pass_registry.get(one).pass_inst
                step.analysis = {one: set()}
                step.run_initialization(state)
                changed = step.run_pass(state)
                if one is FixupArgs:
                    _simplify(state.func_ir)
                elif one is DeadBranchPrune and changed:
                    PostProcessor(state.func_ir).run()
        state.pipeline = None
        return state.cr

    def define_pipelines(self) -> Any:
        (pipeline,) = super().define_pipelines()
        pipeline.passes = [
            (self.lowering if one is NativeLowering else one, what) for one, what in pipeline.passes
        ]
        return [pipeline]


class PartCompiler(WholeCompiler):
    """Compiles kernels for compiled callers alone."""

    library = Part
    lowering = _Lowering


# Without the other passes some functions do not compile; then numba takes all of them.
_UNTYPED = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    RewriteSemanticConstants,
    DeadBranchPrune,
    GenericRewrites,
    ReconstructSSA,
    DeadBranchPrune,
)
_TYPED = (
    NopythonTypeInference,
    PreLowerStripPhis,
    InlineOverloads,
    NopythonRewrites,
    IRLegalization,
)


class _Stopwatch:
    """The time that this process compiles; numba lets one thread at a time."""

    def __init__(self) -> None:
        self._depth, self._before, self._since = 0, 0.0, 0.0

    @property
    def now(self) -> bool:
        """Whether it compiles now."""
        return self._depth > 0

    @property
    def seconds(self) -> float:
        """How long it has compiled."""
        return self._before + (time.perf_counter() - self._since if self.now else 0.0)

    def __enter__(self) -> None:
        self._since = self._since if self.now else time.perf_counter()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        before = self.seconds
        self._depth -= 1
        self._before = self._before if self.now else before


COMPILING = _Stopwatch()
