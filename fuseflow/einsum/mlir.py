"""An Einsum program as MLIR text in the `einsum` dialect, and back. It needs torch-mlir (but not torch), so `fuseflow.einsum` does not
import it.

Everything of the program is in the text, places in files too: `from_mlir(to_mlir(program)) == program`. Every call has a context of its
own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from torch_mlir import ir

from fuseflow.dialects import attributes as a
from fuseflow.dialects import module as m
from fuseflow.einsum.nodes import (
    Access,
    Affine,
    Apply,
    Const,
    Einsum,
    Expr,
    Index,
    Keep,
    Location,
    Program,
    Reduce,
    Split,
    TensorType,
)
from fuseflow.einsum.parse import MAX_DEPTH
from fuseflow.einsum.verify import shapes, verify
from fuseflow.errors import ProgramError, Span, TensorError, did_you_mean
from fuseflow.keep_rules import Rule, parse_rule
from fuseflow.tensors import Format
from fuseflow.tensors.blocks import Block, check_block
from fuseflow.tensors.dtypes import DTYPES, of_mlir

PROGRAM, INPUT, DECLARE, LIKE = (f"einsum.{name}" for name in ("program", "input", "declare", "like"))
DEFINE, OUTPUT = (f"einsum.{name}" for name in ("define", "output"))
ACCESS, CONSTANT, APPLY, REDUCE, KEEP = (f"einsum.{name}" for name in ("access", "constant", "apply", "reduce", "keep"))
OPERATIONS: Final = (PROGRAM, INPUT, DECLARE, LIKE, DEFINE, OUTPUT, ACCESS, CONSTANT, APPLY, REDUCE, KEEP)
FORMAT, SPLIT, AFFINE, SPAN, ELEMENT = (f"einsum.{name}" for name in ("format", "split", "affine", "span", "element"))


def to_mlir(program: Program) -> str:
    """Return the module that holds the program, in generic form. Raises `ProgramError` if the program does not verify."""
    verify(program)
    with m.context("einsum", error=ProgramError):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            _write(program)
        return m.show(module)


def from_mlir(text: str, file: str = "<mlir>") -> Program:
    """Return the program that a module holds; `file` is its name in errors. Raises `ProgramError` if it does not parse or verify."""
    with m.context("einsum", error=ProgramError, file=file):
        module = m.parse(text, file, ("einsum",), ProgramError)
        head = module.only(PROGRAM)
        reader = _Reader()
        for op in module.operations:
            reader.read(op)
        program = reader.program(head.string("name"))
        try:
            verify(program)
        except ProgramError as error:
            raise _placed(error, reader, head) from None
        _check_types(program, reader)
    return program


# Program to MLIR ------------------------------------------------------------------------------------------------------------


def _write(program: Program) -> None:
    ir.Operation.create(PROGRAM, attributes={"name": a.string(program.name)})
    defined, declared, sizes = program.defined, program.declared, shapes(program)
    tensors: dict[str, ir.Value] = {}
    for tensor in program.tensors:
        values = {"name": a.string(tensor.name), "fill": a.real(tensor.fill), "span": _span_attribute(tensor.span)}
        if tensor.name in defined:
            ir.Operation.create(DECLARE, attributes={**values, "type": ir.TypeAttr.get(_tensor_type(tensor))})
        else:
            tensors[tensor.name] = ir.Operation.create(INPUT, [_tensor_type(tensor)], attributes=values).result
        if tensor.like:
            ir.Operation.create(LIKE, attributes={"tensor": a.string(tensor.name), "structure": a.string(tensor.like)})
    for einsum in program.einsums:
        body = _write_expr(einsum.body, tensors)
        type = _result_type(declared.get(einsum.name), sizes[einsum.name])
        values = {
            "name": a.string(einsum.name),
            "indices": a.array(map(_index_attribute, einsum.indices)),
            "path": a.string(einsum.location.path),
            "span": _span_attribute(einsum.location.span),
        }
        tensors[einsum.name] = ir.Operation.create(DEFINE, [type], [body], values).result
    for name in program.outputs:
        ir.Operation.create(OUTPUT, operands=[tensors[name]])


def _write_expr(expr: Expr, tensors: dict[str, ir.Value]) -> ir.Value:
    """Write the operations of an expression, operands first, and return the value of the last."""
    match expr:
        case Access(tensor, indices):
            operands, name = [tensors[tensor]], ACCESS
            values = {"indices": a.array(map(_index_attribute, indices))}
        case Const(value):
            operands, name, values = [], CONSTANT, {"value": a.real(value)}
        case Apply(op, args):
            operands, name, values = [_write_expr(arg, tensors) for arg in args], APPLY, {"operator": a.string(op)}
        case Reduce(op, over, body):
            operands, name = [_write_expr(body, tensors)], REDUCE
            values = {"reduction": a.string(op), "over": a.strings(over)}
        case Keep(rule, over, body):
            operands, name = [_write_expr(body, tensors)], KEEP
            values = {"rule": a.string(str(rule)), "over": a.strings(over)}
        case _:
            assert_never(expr)
    return ir.Operation.create(name, [a.declared_type(ELEMENT)], operands, values).result


def _tensor_type(tensor: TensorType) -> ir.Type:
    encoding, format = None, tensor.format
    if format is not None or tensor.block:
        levels, order = (a.unit(), ()) if format is None else (a.strings(format.words), format.order)
        encoding = a.declared(FORMAT, levels, a.integers(order), a.integers(tensor.block))
    return ir.RankedTensorType.get(tensor.shape, ir.Type.parse(DTYPES[tensor.dtype].mlir), encoding)


def _result_type(declared: TensorType | None, shape: tuple[int, ...]) -> ir.Type:
    """Return the type of a declared tensor. Without a declaration, its dtype and format are left to inference."""
    return _tensor_type(declared) if declared is not None else ir.RankedTensorType.get(shape, a.declared_type(ELEMENT))


def _index_attribute(index: Index) -> ir.Attribute:
    if isinstance(index, Split):
        return a.declared(SPLIT, a.string(index.outer), a.string(index.inner), a.integer(index.size))
    if isinstance(index, Affine):
        names, factors = [name for name, _ in index.terms], [factor for _, factor in index.terms]
        return a.declared(AFFINE, a.strings(names), a.integers(factors), a.integer(index.offset))
    return a.string(index)


def _span_attribute(span: Span | None) -> ir.Attribute:
    if span is None:
        return a.unit()
    column = a.unit() if span.column is None else a.integer(span.column)
    return a.declared(SPAN, a.string(span.file), a.integer(span.line), column)


# MLIR to program ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tree:
    """An expression that no operation has read yet."""

    expr: Expr
    depth: int
    op: m.Operation


@dataclass(slots=True)
class _Reader:
    """The reader of a module. It holds the tensors, Einsums and expressions of the operations so far."""

    tensors: list[tuple[m.Operation, TensorType]] = field(default_factory=list)
    einsums: list[tuple[m.Operation, Einsum]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    likes: dict[str, m.Operation] = field(default_factory=dict)
    names: dict[ir.Value, str] = field(default_factory=dict)
    trees: dict[ir.Value, _Tree] = field(default_factory=dict)

    def read(self, op: m.Operation) -> None:
        match op.name:
            case "einsum.program":
                pass
            case "einsum.input":
                self.tensors.append((op, _tensor(op, op.results[0].type)))
                self.names[op.results[0]] = op.string("name")
            case "einsum.declare":
                self.tensors.append((op, _tensor(op, ir.TypeAttr(op.op.attributes["type"]).value)))
            case "einsum.like":
                self.likes[op.string("tensor")] = op
            case "einsum.define":
                self.einsums.append((op, self.einsum(op)))
                self.names[op.results[0]] = op.string("name")
            case "einsum.output":
                self.outputs.append(op.operand(0, self.names))
            case _:
                self.expression(op)

    def einsum(self, op: m.Operation) -> Einsum:
        body = self.take(op, op.operands[0])
        return Einsum(op.string("name"), _indices(op), body.expr, Location(op.string("path"), _span_of(op)))

    def expression(self, op: m.Operation) -> None:
        args: list[_Tree] = []
        expr: Expr
        match op.name:
            case "einsum.access":
                expr = Access(op.operand(0, self.names), _indices(op))
            case "einsum.constant":
                expr = Const(op.real("value"))
            case "einsum.apply":
                args = [self.take(op, value) for value in op.operands]
                expr = Apply(op.string("operator"), tuple(arg.expr for arg in args))
            case "einsum.reduce":
                args = [self.take(op, op.operands[0])]
                expr = Reduce(op.string("reduction"), op.strings("over"), args[0].expr)
            case "einsum.keep":
                args = [self.take(op, op.operands[0])]
                expr = Keep(_rule(op), op.strings("over"), args[0].expr)
            case _:
                op.refuse("is no operation of a program", did_you_mean(op.name, OPERATIONS))
        depth = 1 + max((arg.depth for arg in args), default=0)
        if depth > MAX_DEPTH:
            hint = "split the expression into several `einsum.define`"
            op.refuse(f"stands above {MAX_DEPTH} operators one inside the other", hint)
        self.trees[op.results[0]] = _Tree(expr, depth, op)

    def take(self, op: m.Operation, value: ir.Value) -> _Tree:
        """Return the expression of the operand `value`, and remove it. It has one reader, since an expression is a tree."""
        if value not in self.trees:
            hint = "an expression is a tree, operands first; repeat what stands in it twice"
            op.refuse("reads an element that another operation has read, or that is made later", hint)
        return self.trees.pop(value)

    def program(self, name: str) -> Program:
        for tree in self.trees.values():
            tree.op.refuse("is read by nothing", "every expression ends in an `einsum.define`")
        defined = {einsum.name for _, einsum in self.einsums}
        for op, tensor in self.tensors:
            if op.name == DECLARE and tensor.name not in defined:
                op.refuse(f"declares `{tensor.name}`, which nothing defines", "a tensor from outside is an `einsum.input`")
            if op.name == INPUT and tensor.name in defined:
                op.refuse(f"takes `{tensor.name}` from outside, which is defined here too", "an `einsum.declare` gives its type")
        declared = [tensor.name for _, tensor in self.tensors]
        for other, op in self.likes.items():
            if other not in declared:
                op.refuse(f"names the tensor `{other}`, which is not declared", did_you_mean(other, declared))
        structures = {other: op.string("structure") for other, op in self.likes.items()}
        return Program(
            tuple(replace(tensor, like=structures.get(tensor.name, "")) for _, tensor in self.tensors),
            tuple(einsum for _, einsum in self.einsums),
            tuple(self.outputs),
            name,
        )

    def place(self, name: str) -> Span | None:
        """Return where a tensor is defined, or else declared."""
        defined = ((op, einsum.name) for op, einsum in self.einsums)
        declared = ((op, tensor.name) for op, tensor in self.tensors)
        return next((op.place for op, tensor_name in (*defined, *declared) if tensor_name == name), None)


def _tensor(op: m.Operation, type: ir.Type) -> TensorType:
    tensor = ir.RankedTensorType(type)
    if not tensor.has_static_shape:
        op.refuse(f"has the type {type}, with a size that is not known", "every size is a number")
    levels, order, block = _storage(op, tensor.encoding)
    rank = tensor.rank
    try:
        format = None if levels is None else Format.of(*levels, order=order)
        if block and check_block(block, rank) != block:
            op.refuse(f"has blocks of {list(block)}, which are single elements", "leave the list of sizes empty")
    except TensorError as error:
        op.refuse(f"has no format: {error.message}", error.hint)
    return TensorType(
        op.string("name"),
        tuple(tensor.shape),
        format,
        of_mlir(str(tensor.element_type)),
        op.real("fill"),
        _span_of(op),
        block,
    )


def _storage(op: m.Operation, encoding: ir.Attribute | None) -> tuple[tuple[str, ...] | None, tuple[int, ...], Block]:
    """Return the levels, order and block of an encoding; the levels are None if the format is left to inference."""
    if encoding is None:
        return None, (), ()
    try:
        levels, order, block = m.parameters(encoding, FORMAT)
        return m.optional(m.strings)(levels), m.integers(order), m.integers(block)
    except (ValueError, TypeError, RuntimeError):
        op.refuse(
            f"has the encoding {encoding}",
            'it should be as `#einsum.format<["dense", "compressed"], array<i64: 0, 1>, array<i64>>`: levels, their dimensions, block',
        )


def _rule(op: m.Operation) -> Rule:
    rule = parse_rule(op.string("rule"))
    if rule is None:
        op.refuse(f"has the rule `{op.string('rule')}`", "a rule is `nonzero`, `threshold 0.1`, `8` or `2 of 4`")
    return rule


def _indices(op: m.Operation) -> tuple[Index, ...]:
    return op.read(
        "indices",
        lambda attribute: tuple(map(_index, ir.ArrayAttr(attribute))),
        "a list of strings, `#einsum.split` and `#einsum.affine`",
    )


def _index(attribute: ir.Attribute) -> Index:
    if isinstance(attribute.maybe_downcast(), ir.StringAttr):
        return m.string(attribute)
    if str(attribute).startswith(f"#{AFFINE}"):
        names, factors, offset = m.parameters(attribute, AFFINE)
        return Affine(tuple(zip(m.strings(names), m.integers(factors), strict=True)), m.integer(offset))
    outer, inner, size = m.parameters(attribute, SPLIT)
    return Split(m.string(outer), m.string(inner), m.integer(size))


def _span_of(op: m.Operation) -> Span | None:
    return op.read("span", m.optional(_span), "`unit` or a `#einsum.span`")


def _span(attribute: ir.Attribute) -> Span:
    file, line, column = m.parameters(attribute, SPAN)
    return Span(m.string(file), m.integer(line), m.optional(m.integer)(column))


def _check_types(program: Program, reader: _Reader) -> None:
    """Raise `ProgramError` for a definition whose result in MLIR has another type than in the program."""
    declared, sizes = program.declared, shapes(program)
    for op, einsum in reader.einsums:
        wanted = _result_type(declared.get(einsum.name), sizes[einsum.name])
        if op.results[0].type != wanted:
            op.refuse(f"gives `{einsum.name}` the type {op.results[0].type}; it is {wanted}")


def _placed(error: ProgramError, reader: _Reader, head: m.Operation) -> ProgramError:
    """Return the same error with the place of the first statement or tensor that it names, or else of the program, `head`."""
    quoted_names = re.findall(r"`([^`\[ ]+)", " ".join([*error.notes, error.message]))
    error.span = next((span for name in quoted_names if (span := reader.place(name))), head.place)
    return error
