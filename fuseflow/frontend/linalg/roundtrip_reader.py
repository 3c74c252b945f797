"""Reading of Linalg modules that `writer` wrote: each operation with a name is an Einsum of this name, exactly as it stands there.

An operation without a name is a part of the operations that read it. Nothing is simplified, and dimensions of extent 1 stay. Each
function that the main one calls is a region, and each Einsum that stands in the main function is one, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch_mlir import ir

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.index_names import substitute
from fuseflow.einsum.nodes import (
    Access,
    Affine,
    Apply,
    Const,
    Einsum,
    Expr,
    Index,
    Location,
    Program,
    Reduce,
    Split,
    TensorType,
    walk,
)
from fuseflow.einsum.verify import verify
from fuseflow.errors import FrontendError
from fuseflow.frontend.linalg import module_io as names
from fuseflow.frontend.linalg.emitter import UNDEFINED, dimension_index, uses_undefined
from fuseflow.frontend.linalg.generic import linear_index, loop_extents
from fuseflow.frontend.linalg.locations import at_line_of, from_location
from fuseflow.frontend.linalg.scalars import (
    ACCUMULATOR,
    CONVERSIONS,
    OPERATORS,
    PREDICATES,
    REDUCTIONS,
    ROUNDINGS,
    constant_value,
    operands,
)
from fuseflow.frontend.linalg.sparse_encodings import from_encoding
from fuseflow.ops import REDUCERS
from fuseflow.tensors import Format
from fuseflow.tensors.dtypes import DTYPES, of_mlir

_HINT = f"an operation without `{names.NAME_ATTRIBUTE}` is a part of those that read it; without `{names.PROGRAM}` it is read as a model"


def read_module(module: Any, file: str) -> Program:
    """Return the program of a module that `write_program` wrote; `file` is the text that it was read from.

    Raise `FrontendError`, with the line, for an operation that cannot be a part of a program, and for types that differ from
    those of the program.
    """
    functions = names.functions_of(module)
    main = names.main_function(module, file)
    reader = _Reader(functions, file, {names.text_of(main.attributes, "sym_name")})
    reader.declare_inputs(main)
    reader.read(main, "")
    names.require_called(functions, reader.called, file)
    program = reader.program(names.text_of(module.operation.attributes, names.PROGRAM))
    verify(program)
    reader.refuse_other_types(infer(program))
    return program


@dataclass(slots=True)
class _Reader:
    """A reader of the operations of a module, in the order in which they run. `_values` has the element of each tensor at the
    indices `%0, %1, ...`, one for each dimension."""

    functions: Mapping[str, Any]
    file: str
    called: set[str]
    _values: dict[Any, Expr] = field(default_factory=dict)
    _declared: dict[str, TensorType] = field(default_factory=dict)
    _types: dict[str, tuple[TensorType, Any]] = field(default_factory=dict)
    _einsums: list[Einsum] = field(default_factory=list)
    _outputs: list[str] = field(default_factory=list)
    _orders: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def declare_inputs(self, main: Any) -> None:
        for argument, stated in names.arguments_of(main):
            with at_line_of(main, self.file):
                name = names.text_of(stated, names.NAME_ATTRIBUTE) or f"arg{argument.arg_number}"
                type = _type(name, argument.type, stated)
            self._declared[name] = type if type.format else replace(type, format=Format.dense(len(type.shape)))
            self._values[argument] = _whole(name, len(type.shape))

    def program(self, name: str) -> Program:
        orders = tuple(self._orders.items())
        return Program(tuple(self._declared.values()), tuple(self._einsums), tuple(self._outputs), name, orders)

    def refuse_other_types(self, inferred: Program) -> None:
        """Raise `FrontendError` for a result whose type in MLIR is not the one that its Einsum makes."""
        for name, (stated, location) in self._types.items():
            type = inferred.declared[name]
            if (stated.shape, stated.dtype) != (type.shape, type.dtype):
                sizes = [f"{t.dtype}[{', '.join(map(str, t.shape))}]" for t in (stated, type)]
                problem = f"`{name}` is {sizes[0]} here, and what it computes is {sizes[1]}"
                hint = f"`{names.DECLARED}` declares a result of another type"
                raise FrontendError(problem, hint=hint, span=from_location(location, self.file).span)

    def read(self, function: Any, region: str) -> None:
        for op in function.body.blocks[0].operations:
            with at_line_of(op, self.file):
                self._read(op.operation, region)

    def _read(self, op: Any, region: str) -> None:
        match op.name:
            case "linalg.generic":
                self._generic(op, region)
            case "linalg.fill":
                self._values[op.results[0]] = _Scalars({}).value(op.operands[0])
            case "tensor.empty":
                self._values[op.results[0]] = UNDEFINED
            case "tensor.pad":
                self._pad(op)
            case "tensor.collapse_shape":
                self._merge(op, region)
            case "func.call" if not region:
                self._call(op)
            case "func.call":
                raise FrontendError("a region calls a function", hint="a region is the operations of one function")
            case "func.return" if not region:
                self._outputs = [self._output(value) for value in op.operands]
            case "arith.constant" | "func.return":
                pass
            case other:
                raise FrontendError(f"`{other}` has no place in a module of named Einsums", hint=_HINT)

    def _call(self, op: Any) -> None:
        name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        function = self.functions[name]
        if name == names.MAIN:
            raise FrontendError(f"the function {name} calls itself", hint="a region is the operations of one function")
        names.require_read(op, name)
        self.called.add(name)
        block = function.body.blocks[0]
        self._values |= {a: self._values[value] for a, value in zip(block.arguments, op.operands, strict=True)}
        self.read(function, name)
        end = block.operations[len(block.operations) - 1].operation
        self._values |= {result: self._values[value] for result, value in zip(op.results, end.operands, strict=True)}
        if names.ORDER in function.attributes:
            self._orders[name] = names.words_of(function.attributes, names.ORDER)

    def _output(self, value: Any) -> str:
        expr = self._values[value]
        if isinstance(expr, Access) and any(e.name == expr.tensor for e in self._einsums):
            return expr.tensor
        raise FrontendError("a result of the program is no Einsum", hint="return what an operation with a name computes")

    # Einsums ----------------------------------------------------------------------------------------------------------

    def _generic(self, op: Any, region: str) -> None:
        loops = _loops(op)
        maps = [tuple(attribute.value.results) for attribute in op.attributes["indexing_maps"]]
        shapes = [tuple(value.type.shape) for value in op.operands]
        extents = {loops[position]: size for position, size in loop_extents(maps, shapes).items()}
        indices = [
            tuple(linear_index(e, size, extents, loops) for e, size in zip(expressions, shape, strict=True))
            for expressions, shape in zip(maps, shapes, strict=True)
        ]
        (body,) = op.regions[0].blocks
        elements = {a: self._at(v, i) for a, v, i in zip(body.arguments, op.operands, indices, strict=True)}
        accumulator = body.arguments[len(body.arguments) - 1]
        start = elements[accumulator]
        yielded = body.operations[len(body.operations) - 1].operation.operands
        if len(yielded) != 1:
            raise FrontendError("an operation has several results", hint="write one operation for each")
        expr = _Scalars({**elements, accumulator: ACCUMULATOR}).value(yielded[0])
        reduced = tuple(v for v, kind in zip(loops, op.attributes["iterator_types"], strict=True) if "reduction" in str(kind))
        if reduced:
            over = names.words_of(op.attributes, names.OVER) if names.OVER in op.attributes else reduced
            if sorted(over) != sorted(reduced):
                hint = f"name {', '.join(reduced)}"
                raise FrontendError(f"`{names.OVER}` has other loops than are reduced: {', '.join(over)}", hint=hint)
            expr = _folded(expr, start, over)
        free = indices[-1]
        if ACCUMULATOR in walk(expr) or uses_undefined(expr):
            raise FrontendError("an operation reads what it is to compute", hint="only a reduction does so")
        self._bind(op, expr, free, loops, region)

    def _merge(self, op: Any, region: str) -> None:
        """Read an Einsum whose result has dimensions that are put together."""
        loops = _loops(op)
        sizes = op.operands[0].type.shape
        groups = [[ir.IntegerAttr(p).value for p in group] for group in op.attributes["reassociation"]]
        if names.NAME_ATTRIBUTE not in op.attributes or any(len(group) > 2 for group in groups):
            raise FrontendError("dimensions are put together that are not two of an Einsum", hint=_HINT)
        free = tuple(loops[g[0]] if len(g) == 1 else Split(loops[g[0]], loops[g[1]], sizes[g[1]]) for g in groups)
        self._bind(op, self._at(op.operands[0], loops), free, loops, region)

    def _bind(self, op: Any, expr: Expr, free: tuple[Index, ...], loops: tuple[str, ...], region: str) -> None:
        """Bind the result of an operation: to a new Einsum if it has a name, else to the expression. `free` are its indices."""
        (result,) = op.results
        if names.NAME_ATTRIBUTE not in op.attributes:
            self._values[result] = substitute(expr, {str(v): dimension_index(p) for p, v in enumerate(free)})
            return
        name = names.text_of(op.attributes, names.NAME_ATTRIBUTE)
        path = names.text_of(op.attributes, names.PATH) if names.PATH in op.attributes else ""
        order = () if names.UNORDERED in op.attributes else loops
        order = names.words_of(op.attributes, names.ORDER) if names.ORDER in op.attributes else order
        if op.name == "linalg.generic" and [v for v in order if v in loops] != list(order and loops):
            problem = f"the loops of `{name}` run {','.join(loops)} here, and `{names.ORDER}` says {','.join(order)}"
            raise FrontendError(problem, hint="change both")
        type = _type(name, result.type, op.attributes)
        if type.format is not None or names.DECLARED in op.attributes:
            self._declared[name] = type
        self._types[name] = type, op.location
        location = Location(path, from_location(op.location, self.file).span, region or name)
        self._einsums.append(Einsum(name, free, expr, location, order))
        self._values[result] = _whole(name, len(free))

    def _pad(self, op: Any) -> None:
        low = list(ir.DenseI64ArrayAttr(op.attributes["static_low"]))
        high = list(ir.DenseI64ArrayAttr(op.attributes["static_high"]))
        yielded = op.regions[0].blocks[0].operations[0].operation.operands[0]
        if _Scalars({}).value(yielded) != Const(0.0) or min((*low, *high), default=0) < 0:
            hint = "outside of its dimensions a tensor is 0"
            raise FrontendError("a tensor has something else than zeros around it", hint=hint)
        moved: list[Index] = [
            Affine(((dimension_index(p), 1),), -before) if before or after else dimension_index(p)
            for p, (before, after) in enumerate(zip(low, high, strict=True))
        ]
        self._values[op.results[0]] = self._at(op.operands[0], moved)

    def _at(self, tensor: Any, indices: Sequence[Index]) -> Expr:
        return substitute(self._values[tensor], {dimension_index(p): index for p, index in enumerate(indices)})


@dataclass(slots=True)
class _Scalars:
    """The scalar values of a body as expressions, given the expressions of its arguments."""

    known: dict[Any, Expr]

    def value(self, ssa: Any) -> Expr:
        if ssa not in self.known:
            if isinstance(ssa.owner, ir.Block):
                raise FrontendError("a number from elsewhere is read", hint=_HINT)
            self.known[ssa] = self._result(getattr(ssa.owner, "operation", ssa.owner))
        return self.known[ssa]

    def _result(self, op: Any) -> Expr:
        if names.OPERATOR not in op.attributes:
            return self._plain(op)
        name = names.text_of(op.attributes, names.OPERATOR)
        if name in ROUNDINGS and op.name == "arith.truncf":
            parameters = DTYPES[of_mlir(str(op.results[0].type))].parameters
            return Apply(name, (self.value(op.operands[0]), *map(Const, parameters)))
        arguments = operands(name, self._plain(op))
        if arguments is None:
            raise FrontendError(f"these operations are not how `{name}` is composed", hint=f"leave `{names.OPERATOR}` out")
        return Apply(name, arguments)

    def _plain(self, op: Any) -> Expr:
        """Return the expression of an operation, by its kind alone, even if its attribute names another operator."""
        if op.name == "arith.constant":
            return constant_value(op.attributes["value"])
        if op.name == "arith.cmpf" and (predicate := ir.IntegerAttr(op.attributes["predicate"]).value) in PREDICATES:
            return Apply(PREDICATES[predicate], tuple(map(self.value, op.operands)))
        match op.name:
            case name if name in CONVERSIONS:
                return self.value(op.operands[0])
            case "arith.select":
                return Apply("where", tuple(map(self.value, op.operands)))
            case "math.roundeven":
                return Apply("saturate", (self.value(op.operands[0]), Const(-math.inf), Const(math.inf)))
            case name if name in OPERATORS:
                return Apply(OPERATORS[name], tuple(map(self.value, op.operands)))
        raise FrontendError(f"the scalar operation `{op.name}` has no place in a named Einsum", hint=_HINT)


def _folded(expr: Expr, start: Expr, over: tuple[str, ...]) -> Expr:
    """Return the reduction over `over` that a body describes: it folds the accumulator with a number, from `start` on."""
    match expr:
        case Apply(op, (accumulator, body)) if accumulator == ACCUMULATOR and op in REDUCTIONS:
            if start != Const(REDUCERS[REDUCTIONS[op]].identity):
                hint = "add the number behind it"
                raise FrontendError(f"a reduction by `{op}` starts with another number than its identity", hint=hint)
            return Reduce(REDUCTIONS[op], over, body)
    raise FrontendError("the body of a reduction is no fold of its result with a number", hint="yield `fold(result, number)`")


def _loops(op: Any) -> tuple[str, ...]:
    """Return the names of the loops of an operation."""
    count = len(op.attributes["iterator_types"]) if op.name == "linalg.generic" else len(op.operands[0].type.shape)
    loops = names.words_of(op.attributes, names.INDICES) if names.INDICES in op.attributes else ()
    if len(loops) != count or len(set(loops)) < count:
        raise FrontendError(f"`{names.INDICES}` does not name {count} loops: {', '.join(loops)}", hint="give each loop a name")
    return loops


def _whole(name: str, rank: int) -> Expr:
    return Access(name, tuple(map(dimension_index, range(rank))))


def _type(name: str, type: Any, attributes: Any) -> TensorType:
    """Return the declaration of a tensor. The format is None if neither its type nor an attribute says it."""
    if not isinstance(type, ir.RankedTensorType) or not type.has_static_shape:
        raise FrontendError(f"`{name}` is a {type}", hint="a tensor has known extents")
    shape = tuple(type.shape)
    format, block = (None, ()) if type.encoding is None else from_encoding(str(type.encoding))
    dtype = names.text_of(attributes, names.DTYPE_ATTRIBUTE) or of_mlir(str(type.element_type))
    fill = _fill(attributes[names.FILL]) if names.FILL in attributes else 0.0
    if dtype not in DTYPES:
        raise FrontendError(f"tensor `{name}` has elements of type {dtype}", hint=f"use {', '.join(DTYPES)}")
    if names.FORMAT_ATTRIBUTE in attributes:
        format = names.stated_format(name, names.text_of(attributes, names.FORMAT_ATTRIBUTE), len(shape))
    return TensorType(name, shape, format, dtype, fill, block=block)


def _fill(attribute: Any) -> float:
    try:
        return float(ir.FloatAttr(attribute).value)
    except ValueError:
        raise FrontendError(f"attribute `{names.FILL}` is {attribute}", hint="it is a number, as in `2.0 : f64`") from None
