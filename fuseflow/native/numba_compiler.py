"""This module compiles kernels to object code with numba. It is imported when a kernel must be compiled, which few runs need.

The module teaches numba the classes of `Instruction`, and the helpers of a kernel. The object code of a kernel has one symbol,
and needs only functions of the C library: a kernel raises no exception, allocates nothing and does not call Python.
"""

from __future__ import annotations

import dis
import inspect
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeAlias, assert_never

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, compiler, registry
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template
from numba.extending import register_jitable

from fuseflow.native.machine_code import target_machine
from fuseflow.native.records import (
    LANES,
    LINE,
    LONGEST,
    WORDS,
    AtMost,
    BitLength,
    Common,
    Equal,
    FetchAdd,
    Latest,
    Least,
    Load,
    LoadAcquire,
    Pointer,
    Prefetch,
    Put,
    RaiseBy,
    Scalar,
    Store,
    StoreRelease,
    TrailingZeros,
    YieldProcessor,
    is_inlined,
)
from fuseflow.native.signatures import Call, Function, Signature
from fuseflow.native.sources import Instruction, KernelError, parts_of

INT16, INT32, INT64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
Generator: TypeAlias = Callable[[Any, Any, Any, Any], Any]
"""A code generator takes numba's target context, an LLVM builder, a signature and the LLVM values of arguments."""

HELPER_OPTIONS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False, "error_model": "numpy"}
"""Helpers are called from kernels only."""
C_LIBRARY = re.compile(
    r"llvm\..*|mem(cpy|set|move)|sched_yield|(a?(sin|cos|tan)h?|atan2|exp|expm1|log|log1p|log2|log10|pow|sqrt|erfc?|fabs|floor|ceil|fmod)f?"
)
"""The names of functions that object code may refer to: every process has them."""


_known_instructions: dict[Instruction, None] = {}
_known_helpers: dict[FunctionType, None] = {}


@global_compiler_lock  # type: ignore[untyped-decorator]
def optimized_module(function: Function, signature: Signature, symbol: str) -> llvm.ModuleRef:
    """Compile a kernel to an LLVM module, whose one public function is called `symbol`. Raise `KernelError` if the kernel raises
    exceptions, allocates or calls Python."""
    _require_no_exceptions(function)
    _register(function)
    arguments, result = [_numba_type(scalar) for scalar in signature.arguments], _numba_type(signature.result)
    context = registry.cpu_target.target_context
    try:
        compiled = compiler.compile_extra(registry.cpu_target.typing_context, context, function, arguments, result, _flags(), {})
    except numba.core.errors.NumbaError as error:
        raise KernelError(f"the kernel `{function.__qualname__}` does not compile: {error}") from error
    library = compiled.library
    library.add_ir_module(_entry(context, compiled.fndesc, symbol, arguments, result))
    library.finalize()
    module = library._final_module.clone()
    _hide_all_but(module, symbol, function)
    return module


def object_code(module: llvm.ModuleRef, cpu: str, features: str = "") -> bytes:
    """Return the object file of an LLVM module for a processor."""
    code: bytes = target_machine(cpu, features).emit_object(module)
    return code


def _require_no_exceptions(function: Function) -> None:
    for part in parts_of(function).functions:
        if any(step.opname == "RAISE_VARARGS" for step in dis.get_instructions(part)):
            raise KernelError(
                f"the kernel `{function.__qualname__}` raises an exception, in `{part.__qualname__}`",
                hint="a kernel sets `node.fault`, and the engine raises the error",
            )


def _flags() -> Any:
    flags: Any = compiler.Flags()
    flags.error_model = "numpy"
    flags.nrt = False
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.no_compile = True  # until the entry is added
    return flags


def _entry(context: Any, description: Any, symbol: str, arguments: list[Any], result: Any) -> ir.Module:
    """Return a module with the function `symbol` that callers use. It calls numba's compiled function, which also returns whether
    it raised an exception; none does, so the process would end there."""
    module = ir.Module(symbol)
    native_type = context.call_conv.get_function_type(description.restype, description.argtypes)
    native = ir.Function(module, native_type, description.llvm_func_name)
    plain = ir.FunctionType(_plain_type(context, result), [_plain_type(context, argument) for argument in arguments])
    entry = ir.Function(module, plain, symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    status, value = context.call_conv.call_function(builder, native, description.restype, description.argtypes, entry.args)
    with builder.if_then(status.is_error, likely=False):
        builder.call(ir.Function(module, ir.FunctionType(ir.VoidType(), []), "llvm.trap"), [])
        builder.unreachable()
    if result == types.none:
        builder.ret_void()
    else:
        builder.ret(value)
    return module


def _plain_type(context: Any, numba_type: Any) -> Any:
    return ir.VoidType() if numba_type == types.none else context.get_value_type(numba_type)


def _hide_all_but(module: llvm.ModuleRef, symbol: str, function: Function) -> None:
    """Make all definitions but `symbol` private to the module, and remove unused ones. The others, whose names contain numba's
    counters, are renamed in order, so that equal kernels have equal object files. Raise `KernelError` if the module still needs
    more than the C library."""
    for item in _contents(module):
        if not item.is_declaration and item.name != symbol:
            item.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(target_machine(""), llvm.create_pipeline_tuning_options()))
    _require_self_contained(module, function)
    for k, item in enumerate(item for item in _contents(module) if not item.is_declaration and item.name != symbol):
        item.name = f"part{k}"
    module.name = symbol


def _contents(module: llvm.ModuleRef) -> list[Any]:
    return [*module.functions, *module.global_variables]


def _require_self_contained(module: llvm.ModuleRef, function: Function) -> None:
    names = {item.name for item in _contents(module) if item.is_declaration}
    if foreign := sorted(name for name in names if not C_LIBRARY.fullmatch(name)):
        raise KernelError(
            f"the kernel `{function.__qualname__}` needs `{foreign[0]}`",
            hint="a kernel allocates nothing and does not call Python",
        )


def _numba_type(scalar: Scalar | None) -> Any:
    return types.none if scalar is None else getattr(types, scalar)


# What numba is taught about kernels


def _register(function: Function) -> None:
    """Register with numba all helpers and instructions of a kernel that are not registered yet."""
    parts = parts_of(function)
    for instruction in parts.instructions:
        if instruction not in _known_instructions:
            _known_instructions[instruction] = None
            template = make_intrinsic_template(instruction, _definition(instruction), type(instruction).__name__)
            infer(template)
            infer_global(instruction, types.Function(template))
    for helper in parts.functions:
        if helper not in _known_helpers and helper is not function:
            _known_helpers[helper] = None
            register_jitable(**HELPER_OPTIONS, forceinline=is_inlined(helper))(helper)


def _definition(instruction: Instruction) -> Callable[..., Any]:
    """Return a function from which numba gets the signature and the code generator of an instruction."""
    match instruction:
        case Pointer():
            record = numba.from_dtype(np.dtype(list(instruction.fields)))
            return lambda typing, address: (record(types.int64), _as_pointer)
        case Load():
            number = _numba_type(instruction.scalar)
            return lambda typing, address, i: (number(types.int64, types.int64), _load)
        case Store():
            number = _numba_type(instruction.scalar)
            return lambda typing, address, i, value: (types.void(types.int64, types.int64, number), _store)
        case Prefetch():
            return lambda typing, address: (types.void(types.int64), _prefetch)
        case TrailingZeros():
            return lambda typing, bits: (types.int64(types.int64), _trailing_zeros)
        case BitLength():
            return lambda typing, number: (types.int64(types.int64), _bit_length)
        case AtMost():
            return lambda typing, address, limit: (types.int64(types.int64, types.int64), _at_most)
        case Least():
            return lambda typing, address, indices, other, others: (types.int64(*[types.int64] * 4), _least)
        case RaiseBy():
            return lambda typing, address, others, added: (types.void(types.int64, types.int64, types.int64), _raise_by)
        case Latest():
            return lambda typing, address, others: (types.int64(types.int64, types.int64), _latest)
        case Equal():
            return lambda typing, address, number: (types.int64(types.int64, types.int64), _equal)
        case Common():
            return lambda typing, address, chosen: (types.int64(types.int64, types.int64), _common)
        case Put():
            return lambda typing, address, i, number: (types.void(types.int64, types.int64, types.int64), _put)
        case FetchAdd():
            return lambda typing, address, i, value: (types.int64(types.int64, types.int64, types.int64), _fetch_add)
        case LoadAcquire():
            return lambda typing, address, i: (types.int64(types.int64, types.int64), _load_acquire)
        case StoreRelease():
            return lambda typing, address, i, value: (types.void(types.int64, types.int64, types.int64), _store_release)
        case YieldProcessor():
            return lambda typing: (types.void(), _yield_processor)
        case Call():
            return _call_definition(instruction.signature)
        case _:
            assert_never(instruction)


def _call_definition(signature: Signature) -> Callable[..., Any]:
    result, arguments = _numba_type(signature.result), [_numba_type(scalar) for scalar in signature.arguments]

    def define(typing: Any, *given: Any) -> Any:
        return result(types.int64, *arguments), _call

    names = ["typing", "address", *(f"argument{k}" for k in range(len(arguments)))]
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    define.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return define


def _as_pointer(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.inttoptr(values[0], context.get_value_type(signature.return_type))


def _load(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.load(_element(builder, context.get_value_type(signature.return_type), *values))


def _store(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    address, i, value = values
    builder.store(value, _element(builder, context.get_value_type(signature.args[2]), address, i))
    return context.get_dummy_value()


def _element(builder: Any, kind: Any, address: Any, i: Any) -> Any:
    """Return the LLVM pointer to the i-th number, of the LLVM type `kind`, of the array at an address."""
    return builder.gep(builder.inttoptr(address, kind.as_pointer()), [i])


def _fetch_add(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    address, i, value = values
    return builder.atomic_rmw("add", _element(builder, INT64, address, i), value, "acq_rel")


def _load_acquire(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.load_atomic(_element(builder, INT64, *values), "acquire", align=8)


def _store_release(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    address, i, value = values
    builder.store_atomic(value, _element(builder, INT64, address, i), "release", align=8)
    return context.get_dummy_value()


def _yield_processor(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(INT32, []), "sched_yield"), [])
    return context.get_dummy_value()


def _prefetch(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    word, byte = ir.IntType(32), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    builder.call(function, [builder.inttoptr(values[0], byte), word(0), word(3), word(1)])
    return context.get_dummy_value()


def _trailing_zeros(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.cttz(values[0], ir.IntType(1)(1))


def _bit_length(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.sub(ir.IntType(64)(64), builder.ctlz(values[0], ir.IntType(1)(1)))


def _at_most(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    address, limit = values
    numbers = builder.load(_lanes(builder, INT16, LANES, address), align=2)
    limits = _in_all_lanes(builder, builder.trunc(limit, INT16), LANES)
    return _as_set(builder, builder.icmp_signed("<=", numbers, limits))


def _least(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    chosen = []
    for address, indices in (values[:2], values[2:]):
        numbers = builder.load(_lanes(builder, INT16, LANES, address), align=2)
        chosen.append(builder.select(_as_lanes(builder, indices), numbers, ir.Constant(numbers.type, [LONGEST] * LANES)))
    least = builder.select(builder.icmp_unsigned("<", *chosen), *chosen)
    name = f"llvm.vector.reduce.umin.v{LANES}i16"  # of numbers that are not negative: some processors have an instruction for it
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(INT16, [least.type]), name)
    return builder.zext(builder.call(function, [least]), ir.IntType(64))


def _raise_by(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    address, others, added = values
    at = _lanes(builder, INT16, LANES, address)
    numbers, other = builder.load(at, align=2), builder.load(_lanes(builder, INT16, LANES, others), align=2)
    limits = builder.add(other, _in_all_lanes(builder, builder.trunc(added, INT16), LANES))
    builder.store(builder.select(builder.icmp_signed(">", numbers, limits), numbers, limits), at, align=2)
    return context.get_dummy_value()


def _latest(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    numbers, others = (builder.load(_lanes(builder, INT16, LANES, address), align=2) for address in values)
    name = f"llvm.vector.reduce.smax.v{LANES}i16"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(INT16, [numbers.type]), name)
    return builder.sext(builder.call(function, [builder.add(numbers, others)]), ir.IntType(64))


def _equal(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    address, number = values
    numbers = builder.load(_lanes(builder, INT32, WORDS, address), align=4)
    return _as_set(builder, builder.icmp_signed("==", numbers, _in_all_lanes(builder, builder.trunc(number, INT32), WORDS)))


def _common(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    address, chosen = values
    numbers = builder.load(_lanes(builder, INT32, WORDS, address), align=4)
    common = builder.and_(numbers, _in_all_lanes(builder, builder.trunc(chosen, INT32), WORDS))
    return _as_set(builder, builder.icmp_signed("!=", common, ir.Constant(numbers.type, [0] * WORDS)))


def _put(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    address, i, number = values
    count = 8 * LINE // INT32.width
    line = builder.and_(i, ir.IntType(64)(-count))
    at = _lanes(builder, INT32, count, builder.add(address, builder.shl(line, ir.IntType(64)(2))))
    numbers = builder.load(at, align=4)
    in_line = _in_all_lanes(builder, builder.trunc(builder.sub(i, line), INT32), count)
    chosen = builder.icmp_signed("==", ir.Constant(numbers.type, list(range(count))), in_line)
    builder.store(builder.select(chosen, _in_all_lanes(builder, builder.trunc(number, INT32), count), numbers), at, align=4)
    return context.get_dummy_value()


def _as_set(builder: Any, lanes: Any) -> Any:
    """Return a vector of bits as an integer."""
    bits = builder.bitcast(lanes, ir.IntType(lanes.type.count))
    return bits if lanes.type.count == 64 else builder.zext(bits, ir.IntType(64))


def _as_lanes(builder: Any, indices: Any) -> Any:
    """Return a set of the numbers below `LANES` as a vector of bits."""
    return builder.bitcast(builder.trunc(indices, ir.IntType(LANES)), ir.VectorType(ir.IntType(1), LANES))


def _lanes(builder: Any, kind: Any, count: int, address: Any) -> Any:
    """Return the LLVM pointer to the `count` numbers of type `kind` at an address, as one vector."""
    return builder.inttoptr(address, ir.VectorType(kind, count).as_pointer())


def _in_all_lanes(builder: Any, number: Any, count: int) -> Any:
    vector = builder.insert_element(ir.Constant(ir.VectorType(number.type, count), ir.Undefined), number, ir.IntType(32)(0))
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), count), [0] * count))


def _call(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kinds = [context.get_value_type(argument) for argument in signature.args[1:]]
    function = ir.FunctionType(context.get_value_type(signature.return_type), kinds)
    return builder.call(builder.inttoptr(values[0], function.as_pointer()), values[1:])
