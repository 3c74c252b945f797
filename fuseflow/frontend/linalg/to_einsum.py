"""Translation of Linalg on tensors to Einsums: each operation that computes something becomes one Einsum.

The body of a reduction combines the accumulator with a value, and a fill with the identity is its start. An operation that only
renames, permutes, broadcasts, fills or compares becomes part of the operation that reads its result (see `symbolic_values`). Scalar
constants are folded, and unused results are dropped. A reshape that splits or merges dimensions is an Einsum with a `Split` index.
Dimensions of extent 1 vanish.

In a module of several functions each call in the main one is a fused region, named after the function. The order of the loops of a
generic operation in a text is the user's.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from itertools import count
from typing import Any

from torch_mlir import ir

from fuseflow.einsum.format_inference import Scope, is_integral, result_dtype
from fuseflow.einsum.index_names import name_split_indices, substitute
from fuseflow.einsum.nodes import Access, Affine, Apply, Const, Expr, Index, Program, Reduce, TensorType, accesses, walk
from fuseflow.einsum.verify import shapes_and_extents
from fuseflow.errors import FrontendError
from fuseflow.frontend.hints import HINT_OUTSIDE
from fuseflow.frontend.linalg import module_io
from fuseflow.frontend.linalg.emitter import (
    UNDEFINED,
    EinsumEmitter,
    SymbolicValue,
    dimension_index,
    nonunit_dimensions,
    tensor_value,
    uses_undefined,
)
from fuseflow.frontend.linalg.generic import IndexingMap, LoopNest, result_elements
from fuseflow.frontend.linalg.locations import Origin, at_line_of, from_location
from fuseflow.frontend.linalg.scalars import ScalarEvaluator, constant_value
from fuseflow.frontend.linalg.sparse_encodings import from_encoding
from fuseflow.frontend.linalg.unit_dimensions import squeeze_block, squeeze_format, squeeze_shape
from fuseflow.loop_progress import counted
from fuseflow.tensors import Format
from fuseflow.tensors.dtypes import DTYPES

_DYNAMIC = -(2**63)
"""How MLIR marks a number that is not known."""

MOST_INLINED = 20_000
"""The operations of functions that are called, each counted at each call, at most."""
MOST_NESTED = 50
"""The calls that stand inside of each other, at most."""

_DTYPES = {name: name for name in ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64")} | {"i1": "i32"}
_DTYPES |= {DTYPES[name].mlir: name for name in ("e4m3", "e5m2", "e8m0")}
"""The dtype of each element type of MLIR. Truth values are the numbers 0 and 1. Only an attribute of an argument says that its integers
have no sign."""


def extract_program(module: Any, file: str = "") -> Program:
    """Return the program of the main function of a module. It has the name of the function; `file` is the text that the module was read
    from.

    Raise `FrontendError` with the module path and the line of an operation that has no Einsum form, of a function that calls itself or
    that nobody calls, of a call with a result that nobody reads, and of one that makes the program too large.
    """
    function = module_io.main_function(module, file)
    builder = _Builder(function, module_io.functions_of(module), file)
    for op in counted(function.body.blocks[0].operations, "reading operators"):
        builder.visit(op.operation)
    return builder.program()


class _Builder:
    """A builder that visits the operations of a function once, from inputs to outputs, and keeps the symbolic value of every tensor. It
    visits a function that is called at each call."""

    def __init__(self, function: Any, functions: Mapping[str, Any], file: str) -> None:
        self._functions, self._file = functions, file
        self._name = module_io.text_of(function.attributes, "sym_name")
        self._called = {self._name}
        self._callers = [self._name]
        self._inlined = 0
        self._regions = set[str]()
        self._region = ""  # of the call that is visited
        self._emitter = EinsumEmitter()
        self._values: dict[Any, SymbolicValue] = {}
        self._outputs: list[str] = []
        module_io.refuse_ignored(self._functions.values(), file)
        for argument, stated in module_io.arguments_of(function):
            with at_line_of(function, file):
                name, format, dtype = (module_io.text_of(stated, key) for key in module_io.ARGUMENT_ATTRIBUTES)
            user_name = name or from_location(argument.location).path or f"arg{argument.arg_number}"
            name = self._emitter.declare(_declaration(user_name, argument.type, format, dtype))
            self._values[argument] = tensor_value(name, tuple(argument.type.shape))

    def visit(self, op: Any) -> None:
        origin = replace(from_location(op.location, self._file), region=self._region)
        handler = _HANDLERS.get(op.name)
        try:
            if handler is not None:
                handler(self, op, origin)
            elif not op.name.startswith(("arith.", "math.")) and op.name not in ("tensor.extract", "cf.assert"):
                raise FrontendError(f"`{op.name}` has no Einsum form", hint=HINT_OUTSIDE)
            elif any(isinstance(result.type, ir.RankedTensorType) for result in op.results):  # scalars wait until they are used
                hint = "write a `linalg.generic`, or a named operation such as `linalg.add`"
                raise FrontendError(f"`{op.name}` is of scalars, and these are tensors", hint=hint)
        except FrontendError as error:
            place = f" at module `{origin.path}`" if origin.path else ""
            hint = error.hint
            raise FrontendError(error.message.removesuffix(place) + place, hint=hint, span=error.span or origin.span) from None

    def program(self) -> Program:
        module_io.require_called(self._functions, self._called, self._file)
        einsums = self._emitter.einsums
        used = {a.tensor for e in einsums for a in accesses(e.body)} | {e.name for e in einsums}
        tensors = tuple(t for t in self._emitter.declared.values() if t.name in used)
        return with_integers(name_split_indices(Program(tensors, tuple(einsums), tuple(self._outputs), self._name)))

    # Operations -------------------------------------------------------------------------------------------------------

    def generic(self, op: Any, origin: Origin) -> None:
        nest = LoopNest.of(op)
        if nest.reduced:  # a reduced loop takes its extent from an operand, and a slice gives none
            for ssa in op.operands:
                value = self._values.get(ssa)
                if value is not None and any(isinstance(i, Affine) for access in accesses(value.expr) for i in access.indices):
                    self._values[ssa] = self._emitter.define(value, _declaration("", ssa.type), origin)
        for result, expr, loops in result_elements(op, nest, self._operand, self._element):
            dimensions = {str(loop): dimension_index(p) for p, loop in enumerate(loops) if loop is not None}
            order = tuple([dimensions.get(loop, loop) for loop in nest.order])
            self._bind(result, SymbolicValue(tuple(result.type.shape), substitute(expr, dimensions)), origin, order)

    def reshape(self, op: Any, origin: Origin) -> None:
        source, shape = self._values[op.operands[0]], tuple(op.results[0].type.shape)
        groups = [[ir.IntegerAttr(p).value for p in group] for group in op.attributes["reassociation"]]
        if isinstance(source.expr, Const):  # the same number everywhere
            self._values[op.results[0]] = SymbolicValue(shape, source.expr)
            return
        type = _declaration("", op.results[0].type)
        self._values[op.results[0]] = self._emitter.reshape(source, shape, groups, type, origin)

    def forward(self, op: Any, origin: Origin) -> None:
        self._bind(op.results[0], self._values[op.operands[0]], origin)  # its shape is known where a cast forgets it

    def extract_slice(self, op: Any, origin: Origin) -> None:
        """Bind a slice to the elements that it reads. A coordinate of the operand is `offset + stride * coordinate`."""
        source, shape = self._values[op.operands[0]], tuple(op.results[0].type.shape)
        kept = iter(nonunit_dimensions(shape))
        indices: dict[int, Index] = {}
        for dimension, (offset, size, stride) in enumerate(_slice_numbers(op)):
            name = dimension_index(next(kept)) if size != 1 else ""
            if (offset, size, stride) == (0, source.shape[dimension], 1):
                indices |= {dimension: name} if name else {}
            else:
                indices[dimension] = Affine(((name, stride),) if name else (), offset)
        self._bind(op.results[0], SymbolicValue(shape, source.at(indices)), origin)

    def insert_slice(self, op: Any, origin: Origin) -> None:
        """Bind a tensor with a slice written into it. The tensor that is written into must be 0."""
        source, target = (self._values[operand] for operand in op.operands[:2])
        shape, numbers = tuple(op.results[0].type.shape), _slice_numbers(op)
        if target.expr != Const(0.0) or any(stride != 1 for _, _, stride in numbers):
            hint = "use torch.cat"
            raise FrontendError("writing a slice into a tensor that is not 0, or with a stride, has no Einsum form", hint=hint)
        kept = iter(source.shape)
        spread = tuple(next(kept) if size != 1 or len(source.shape) == len(shape) else 1 for _, size, _ in numbers)
        value = source if source.shape == spread else source.squeezed().unsqueezed(spread)
        self._shifted(op, [(value, [offset for offset, _, _ in numbers])], origin)

    def concat(self, op: Any, origin: Origin) -> None:
        """Bind a concatenation to the sum of its parts, each shifted to its place: only one of them is not 0 at a coordinate."""
        axis = ir.IntegerAttr(op.attributes["dim"]).value
        parts, start = [], 0
        for operand in op.operands:
            value = self._values[operand]
            parts.append((value, [start if p == axis else 0 for p in range(len(value.shape))]))
            start += value.shape[axis]
        self._shifted(op, parts, origin)

    def pad(self, op: Any, origin: Origin) -> None:
        """Bind a tensor with zeros around it."""
        yielded = op.regions[0].blocks[0].operations[0].operation.operands[0]
        low = list(ir.DenseI64ArrayAttr(op.attributes["static_low"]))
        if self._scalar(yielded) != Const(0.0):
            raise FrontendError("padding with another value than 0 has no Einsum form", hint="pad with 0, and use `torch.where`")
        if _DYNAMIC in low:
            raise FrontendError("padding by a computed amount has no Einsum form", hint="pad by a constant")
        self._shifted(op, [(self._values[op.operands[0]], low)], origin)

    def _shifted(self, op: Any, parts: list[tuple[SymbolicValue, list[int]]], origin: Origin) -> None:
        """Bind the result to the sum of `parts`: values, each with the coordinates in the result where it begins. Elsewhere a
        part is 0, so a part of zeros is no term."""
        shape, type = tuple(op.results[0].type.shape), _declaration("", op.results[0].type)
        terms: list[Expr] = []
        for value, start in [(value, start) for value, start in parts if value.expr != Const(0.0)]:
            moved = [p for p, size in enumerate(shape) if (start[p], value.shape[p]) != (0, size)]
            access = self._emitter.whole(value, [p for p in moved if value.shape[p] == 1], type, origin)
            indices: dict[str, Index] = {
                dimension_index(p): Affine(((dimension_index(p), 1),) if shape[p] != 1 else (), -start[p]) for p in moved
            }
            terms.append(substitute(access, indices))
        total = reduce(lambda a, b: Apply("add", (a, b)), terms) if terms else Const(0.0)
        self._bind(op.results[0], SymbolicValue(shape, total), origin)

    def empty(self, op: Any, origin: Origin) -> None:
        self._values[op.results[0]] = SymbolicValue(tuple(op.results[0].type.shape), UNDEFINED)

    def constant(self, op: Any, origin: Origin) -> None:
        result = op.results[0]
        if isinstance(result.type, ir.RankedTensorType):
            self._values[result] = SymbolicValue(tuple(result.type.shape), constant_value(op.attributes["value"]))

    def fill(self, op: Any, origin: Origin) -> None:
        """Bind the result of a `tensor.splat`, or of a `tensor.from_elements` with one element."""
        if len(op.operands) != 1:
            hint = "make it a buffer of the module or an input"
            raise FrontendError(f"`{op.name}` of several elements has no Einsum form", hint=hint)
        self._values[op.results[0]] = SymbolicValue(tuple(op.results[0].type.shape), self._scalar(op.operands[0]))

    def call(self, op: Any, origin: Origin) -> None:
        """Bind the results of a call to the function's values for these operands. A call in the main function is a region."""
        name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        function = self._functions[name]
        if name in self._callers:
            hint = "a region computes once: write the steps one after the other"
            raise FrontendError(f"the function {name} calls itself", hint=hint)
        module_io.require_read(op, name)
        if not all(isinstance(value.type, ir.RankedTensorType) for value in (*op.operands, *op.results)):
            raise FrontendError(f"{name} takes or returns something else than tensors of known rank", hint="pass tensors")
        if len(self._callers) > MOST_NESTED:
            hint = "call fewer functions, with more in each"
            raise FrontendError(f"more than {MOST_NESTED} calls stand inside of each other", hint=hint)
        region = self._region
        self._region = region or self._new_region(name)
        self._called.add(name)
        self._callers.append(name)
        block = function.body.blocks[0]
        self._values |= {a: self._values[value] for a, value in zip(block.arguments, op.operands, strict=True)}
        (*body, end) = (inner.operation for inner in block.operations)
        self._inlined += len(body)
        if self._inlined > MOST_INLINED:
            problem = f"with this call of {name}, the functions that are called have more than {MOST_INLINED:,} operations"
            raise FrontendError(problem, hint="a function is written out at each call: call fewer times")
        for inner in body:
            self.visit(inner)
        self._values |= {result: self._values[value] for result, value in zip(op.results, end.operands, strict=True)}
        self._callers.pop()
        self._region = region

    def _new_region(self, function: str) -> str:
        """Return the name of the region of a call: the name of the function, from the second call on with a number."""
        name = re.sub(r"[^\w.-]", "_", function)
        region = next(r for n in count(1) if (r := name if n == 1 else f"{name}-{n}") not in self._regions)
        self._regions.add(region)
        return region

    def return_values(self, op: Any, origin: Origin) -> None:
        """Make every returned value an output. An Einsum is an output as it is. An input, a transposed or broadcast tensor, and an
        Einsum that is returned twice are copied."""
        for operand in op.operands:
            type, value = _declaration("output", operand.type), self._values[operand]
            if not accesses(value.expr) or uses_undefined(value.expr):
                raise FrontendError("an output of the model does not depend on its inputs", hint="leave it out")
            name = self._whole_einsum(value)
            if not name or name in self._outputs:
                copy = self._emitter.define(value, type, Origin(span=origin.span), name="output", full=True)
                name = self._whole_einsum(copy)
            self._outputs.append(name)

    # Values -----------------------------------------------------------------------------------------------------------

    def _bind(self, result: Any, value: SymbolicValue, origin: Origin, order: tuple[str, ...] = ()) -> None:
        """Bind a result to its value if the value is an access, a constant or a truth value, or else to a new Einsum."""
        encoded = result.type.encoding is not None
        if encoded or (not isinstance(value.expr, Access | Const) and not _is_truth_value(result.type, value.expr)):
            value = self._emitter.define(value, _declaration("", result.type), origin, force=encoded, order=order)
        self._values[result] = value

    def _whole_einsum(self, value: SymbolicValue) -> str:
        """Return the name of the Einsum whose result is the value, dimensions in the same order, or '' if there is none."""
        expr = value.expr
        if isinstance(expr, Access) and expr == tensor_value(expr.tensor, value.shape).expr:
            return next((e.name for e in self._emitter.einsums if e.name == expr.tensor), "")
        return ""

    def _operand(self, ssa: Any, loops: IndexingMap) -> Expr:
        if not isinstance(ssa.type, ir.RankedTensorType):
            return self._scalar(ssa)
        return self._values[ssa].at({p: loop for p, loop in enumerate(loops) if loop is not None})

    def _scalar(self, ssa: Any) -> Expr:
        return ScalarEvaluator({}, self._element).value(ssa)

    def _element(self, ssa: Any) -> Expr:
        """Return the element of a tensor that has only one."""
        return self._values[ssa].expr


_HANDLERS: dict[str, Callable[[_Builder, Any, Origin], None]] = {
    "linalg.generic": _Builder.generic,
    "tensor.expand_shape": _Builder.reshape,
    "tensor.collapse_shape": _Builder.reshape,
    "tensor.cast": _Builder.forward,
    "sparse_tensor.convert": _Builder.forward,
    "tensor.extract_slice": _Builder.extract_slice,
    "tensor.insert_slice": _Builder.insert_slice,
    "tensor.concat": _Builder.concat,
    "tensor.pad": _Builder.pad,
    "tensor.empty": _Builder.empty,
    "bufferization.alloc_tensor": _Builder.empty,
    "arith.constant": _Builder.constant,
    "tensor.splat": _Builder.fill,
    "tensor.from_elements": _Builder.fill,
    "func.call": _Builder.call,
    "func.return": _Builder.return_values,
}


def _slice_numbers(op: Any) -> list[tuple[int, int, int]]:
    """Return offset, size and stride of a slice along each dimension. Raise `FrontendError` for computed ones."""
    columns = [list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")]
    if any(_DYNAMIC in column for column in columns):
        raise FrontendError("a slice whose place is computed has no Einsum form", hint="slice at constant places")
    return list(zip(*columns, strict=True))


def _declaration(name: str, type: Any, format: str = "", dtype: str = "") -> TensorType:
    """Return the declaration of a tensor, without its dimensions of extent 1. `format` is its storage format where the encoding of its
    type does not have it, and `dtype` its element type where MLIR has none. Raise `FrontendError` for unknown extents and element types."""
    if not isinstance(type, ir.RankedTensorType):
        raise FrontendError(f"`{name}` is a {type}", hint="the arguments and results of the function are tensors of known rank")
    if not type.has_static_shape:
        raise FrontendError(f"tensor `{name}` has an unknown extent: {type}", hint="give every extent as a number")
    element_type = str(type.element_type)
    if element_type not in _DTYPES or dtype not in ("", *DTYPES):
        raise FrontendError(f"tensor `{name}` has elements of type {dtype or element_type}", hint=f"use {', '.join(_DTYPES)}")
    shape = tuple(type.shape)
    stored, block = (Format.dense(len(shape)), ()) if type.encoding is None else from_encoding(str(type.encoding))
    if format:
        stored = module_io.stated_format(name, format, len(shape))
    stored, block = squeeze_format(stored, shape), squeeze_block(block, shape)
    return TensorType(name, squeeze_shape(shape), stored, dtype or _DTYPES[element_type], block=block)


def _is_truth_value(type: Any, expr: Expr) -> bool:
    return str(type.element_type) == "i1" and not any(isinstance(node, Reduce) for node in walk(expr))


def with_integers(program: Program) -> Program:
    """Return a program that declares a result as integers if a result that is declared as integers needs it, and if all of its values
    are integers."""
    if not any(tensor.name in program.defined and DTYPES[tensor.dtype].is_integer for tensor in program.tensors):
        return program
    shapes, extents = shapes_and_extents(program)
    types, whole, wanted = dict(program.declared), dict[str, TensorType](), set[str]()
    for einsum in program.einsums:
        name, declared = einsum.name, program.declared.get(einsum.name)
        scope, wider = (Scope(known, {}, extents[name]) for known in (types, ChainMap(whole, types)))
        if declared is None:
            types[name] = TensorType(name, shapes[name], dtype=result_dtype(einsum, scope))
            if not DTYPES[types[name].dtype].is_integer and is_integral(einsum.body, wider):
                whole[name] = replace(types[name], dtype="i64")
        elif DTYPES[declared.dtype].is_integer and not is_integral(einsum.body, scope) and is_integral(einsum.body, wider):
            wanted.update(einsum.operands)
    for einsum in reversed(program.einsums):
        if einsum.name in wanted & set(whole) and not is_integral(einsum.body, Scope(types, {}, extents[einsum.name])):
            wanted.update(einsum.operands)
    return replace(program, tensors=(*program.tensors, *(whole[name] for name in whole if name in wanted)))
