"""From Linalg on tensors to Einsums: one for each operation that computes something.

Rules: a reduction's body combines the accumulator with a value, and a fill with the identity is its start; what only renames, permutes,
broadcasts, fills or compares becomes part of what consumes it (`symbolic`); scalar constants are folded; results nobody uses are
dropped; a reshape that splits or merges dimensions is an Einsum with a `DimensionSplit` index; dimensions of extent 1 vanish.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch_mlir import ir

from fuseflow.einsum.indices import substitute
from fuseflow.einsum.nodes import Access, Const, Expr, Program, Reduce, TensorType, accesses, walk
from fuseflow.einsum.split_names import with_part_names
from fuseflow.errors import FrontendError, TensorError
from fuseflow.frontend import linalg_modules
from fuseflow.frontend.emitter import EinsumEmitter
from fuseflow.frontend.linalg_generic import IndexingMap, LoopNest, result_elements
from fuseflow.frontend.linalg_scalars import ScalarEvaluator, constant_value
from fuseflow.frontend.mlir_locations import Origin, from_location
from fuseflow.frontend.reshape import DimensionSplit, reshape_steps
from fuseflow.frontend.sparse_encodings import from_encoding
from fuseflow.frontend.symbolic_values import UNDEFINED, SymbolicValue, dimension_index, tensor_value, uses_undefined
from fuseflow.frontend.unit_dimensions import squeeze_block, squeeze_format, squeeze_shape
from fuseflow.tensors import Format

_DTYPES = {"f32": "f32", "f64": "f64", "i1": "i32", "i32": "i32", "i64": "i64"}
"""Truth values are numbers 0 and 1."""


def extract_program(module: Any, file: str = "") -> Program:
    """The program of a module's function, named like it; `file` is the name of the text that the module was read from.

    Raises `FrontendError` with the module path and line of the operation that has no Einsum form.
    """
    function = linalg_modules.only_function(module)
    builder = _Builder(function, file)
    for op in function.body.blocks[0].operations:
        builder.visit(op.operation)
    return builder.program()


class _Builder:
    """Walks the function once, from inputs to outputs, keeping the meaning of every tensor value."""

    def __init__(self, function: Any, file: str) -> None:
        self._function, self._file = function, file
        self._emitter = EinsumEmitter()
        self._values: dict[Any, SymbolicValue] = {}
        self._outputs: list[str] = []
        for position, argument in enumerate(function.body.blocks[0].arguments):
            name, format = (
                _attribute(function, position, key) for key in (linalg_modules.NAME_ATTRIBUTE, linalg_modules.FORMAT_ATTRIBUTE)
            )
            called = name or from_location(argument.location).path or f"arg{position}"
            name = self._emitter.declare(_declaration(called, argument.type, format))
            self._values[argument] = tensor_value(name, tuple(argument.type.shape))

    def visit(self, op: Any) -> None:
        origin = from_location(op.location, self._file)
        handler = _HANDLERS.get(op.name)
        try:
            if handler is not None:
                handler(self, op, origin)
            elif not _is_scalar(op.name):
                raise FrontendError(f"`{op.name}` has no Einsum form", hint="do it outside the model")
        except FrontendError as error:
            where = f" at module `{origin.path}`" if origin.path else ""
            raise FrontendError(error.message + where, hint=error.hint, span=error.span or origin.span) from None

    def program(self) -> Program:
        einsums = self._emitter.einsums
        used = {a.tensor for e in einsums for a in accesses(e.body)} | {e.name for e in einsums}
        tensors = tuple(t for t in self._emitter.declared.values() if t.name in used)
        name = ir.StringAttr(self._function.attributes["sym_name"]).value
        return with_part_names(Program(tensors, tuple(einsums), tuple(self._outputs), name))

    # Operations -------------------------------------------------------------------------------------------------------

    def generic(self, op: Any, origin: Origin) -> None:
        for result, expr, loops in result_elements(op, LoopNest.of(op), self._operand, self._element):
            back = {loop: dimension_index(p) for p, loop in enumerate(loops) if loop is not None}
            self._bind(result, SymbolicValue(tuple(result.type.shape), substitute(expr, back)), origin)

    def reshape(self, op: Any, origin: Origin) -> None:
        source, shape = self._values[op.operands[0]], tuple(op.results[0].type.shape)
        groups = [[ir.IntegerAttr(p).value for p in group] for group in op.attributes["reassociation"]]
        value, type = source.squeezed(), _declaration("", op.results[0].type)
        for step in reshape_steps(source.shape, shape, groups):
            match step:
                case DimensionSplit(at, size):
                    value = self._emitter.split(value, at, size, type, origin)
                case merge:
                    value = self._emitter.merge(value, merge.at, type, origin)
        self._values[op.results[0]] = value.unsqueezed(shape)

    def same(self, op: Any, origin: Origin) -> None:
        self._bind(op.results[0], SymbolicValue(tuple(op.results[0].type.shape), self._values[op.operands[0]].expr), origin)

    def empty(self, op: Any, origin: Origin) -> None:
        self._values[op.results[0]] = SymbolicValue(tuple(op.results[0].type.shape), UNDEFINED)

    def constant(self, op: Any, origin: Origin) -> None:
        result = op.results[0]
        if isinstance(result.type, ir.RankedTensorType):
            self._values[result] = SymbolicValue(tuple(result.type.shape), constant_value(op.attributes["value"]))

    def filled(self, op: Any, origin: Origin) -> None:
        """`tensor.splat`, and `tensor.from_elements` of one element."""
        if len(op.operands) != 1:
            raise FrontendError(
                f"`{op.name}` of several elements has no Einsum form", hint="make it a buffer of the module or an input"
            )
        self._values[op.results[0]] = SymbolicValue(tuple(op.results[0].type.shape), self._scalar(op.operands[0]))

    def returned(self, op: Any, origin: Origin) -> None:
        """An Einsum is an output as it is; anything else (an input, a transposed or broadcast tensor, a second mention) is copied."""
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

    def _bind(self, result: Any, value: SymbolicValue, origin: Origin) -> None:
        """The result is the value itself if that only renames something, or else a new Einsum."""
        encoded = result.type.encoding is not None
        if encoded or (not isinstance(value.expr, Access | Const) and not _is_truth(result.type, value.expr)):
            value = self._emitter.define(value, _declaration("", result.type), origin, force=encoded)
        self._values[result] = value

    def _whole_einsum(self, value: SymbolicValue) -> str:
        """The name of the Einsum that a value is, all of it and with its dimensions in order; '' if it is none."""
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
        """The element of a tensor that has only one."""
        return self._values[ssa].expr


_HANDLERS: dict[str, Callable[[_Builder, Any, Origin], None]] = {
    "linalg.generic": _Builder.generic,
    "tensor.expand_shape": _Builder.reshape,
    "tensor.collapse_shape": _Builder.reshape,
    "tensor.cast": _Builder.same,
    "sparse_tensor.convert": _Builder.same,
    "tensor.empty": _Builder.empty,
    "bufferization.alloc_tensor": _Builder.empty,
    "arith.constant": _Builder.constant,
    "tensor.splat": _Builder.filled,
    "tensor.from_elements": _Builder.filled,
    "func.return": _Builder.returned,
}


def _is_scalar(name: str) -> bool:
    """Scalars are evaluated where they are used, and checks not at all."""
    return name.startswith(("arith.", "math.")) or name in ("tensor.extract", "cf.assert")


def _attribute(function: Any, position: int, key: str) -> str:
    """What the attribute of an argument says; nothing if there is none."""
    if "arg_attrs" in function.attributes:
        attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[position])
        if key in attributes:
            return str(ir.StringAttr(attributes[key]).value)
    return ""


def _declaration(name: str, type: Any, format: str = "") -> TensorType:
    """The type without dimensions of extent 1. `format`: how it is stored, where its encoding does not say that. Raises `FrontendError`
    for unknown extents and element types."""
    if not isinstance(type, ir.RankedTensorType):
        raise FrontendError(f"`{name}` is a {type}", hint="the arguments and results of the function are tensors of known rank")
    if not type.has_static_shape:
        raise FrontendError(f"tensor `{name}` has an unknown extent: {type}", hint="give every extent as a number")
    dtype = str(type.element_type)
    if dtype not in _DTYPES:
        raise FrontendError(f"tensor `{name}` has elements of type {dtype}", hint="use f32, f64, i32 or i64")
    shape = tuple(type.shape)
    stored, block = (Format.dense(len(shape)), ()) if type.encoding is None else from_encoding(str(type.encoding))
    if format:
        try:
            stored = Format.parse(format, len(shape))
        except TensorError as error:
            raise FrontendError(
                f"tensor `{name}`, attribute `{linalg_modules.FORMAT_ATTRIBUTE}`: {error.message}", hint=error.hint
            ) from None
    return TensorType(
        name, squeeze_shape(shape), squeeze_format(stored, shape), _DTYPES[dtype], block=squeeze_block(block, shape)
    )


def _is_truth(type: Any, expr: Expr) -> bool:
    return str(type.element_type) == "i1" and not any(isinstance(node, Reduce) for node in walk(expr))
