"""Format inference: which levels, dtype and implicit value the results of a program have.

An index of a result gets a `dense` level if its loop must visit every coordinate, else a `compressed` one. That follows from the
levels of the operands and from the operators' annihilators at the operands' implicit values (intersect, left, union or range).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, assert_never

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Program, Reduce, TensorType, accesses, index_names, walk
from fuseflow.einsum.text import show_einsum, show_number
from fuseflow.einsum.verify import shapes_and_extents, verify
from fuseflow.errors import ProgramError
from fuseflow.ops import OPERATORS, operator, reducer
from fuseflow.tensors import Format


class Presence(Enum):
    """Where along one index an operand is defined."""

    CONSTANT = "a number: no operand of the loop"
    PATTERN = "at stored coordinates; its implicit value elsewhere"
    TOTAL = "everywhere"


@dataclass(frozen=True, slots=True)
class Scope:
    """What the names in one Einsum mean: types of its operands, extents of its indices."""

    types: Mapping[str, TensorType]
    extents: Mapping[str, int]

    @property
    def fills(self) -> dict[str, float]:
        return {name: t.fill for name, t in self.types.items()}


@dataclass(frozen=True, slots=True)
class TypedProgram:
    """A program as it was `written`, and as `program`: the same with a declaration for every tensor (`infer`)."""

    source: Program
    program: Program

    @classmethod
    def of(cls, written: Program) -> TypedProgram:
        """The program with all formats inferred. Raises `ProgramError` unless it has a meaning."""
        verify(written)
        return cls(written, _typed(written, None))

    def rewritten(self, written: Program) -> TypedProgram:
        """The types of this program after it was rewritten. Only what the rewriting changed is verified and inferred again: statements
        and declarations that are new, and statements that read a tensor whose type is another now."""
        if written is self.source:
            return self
        verify(written, self.source)
        return TypedProgram(written, _typed(written, self))


def infer(program: Program) -> Program:
    """The program with a declaration for every tensor: format, dtype and implicit value of each result, `dense` for inputs
    without a format. What is declared stays; raises `ProgramError` if a declared implicit value is not the one the result has.
    A result that is defined everywhere has no implicit entries: its implicit value is the declared one, or 0.
    """
    return TypedProgram.of(program).program


def _typed(program: Program, before: TypedProgram | None) -> Program:
    """The program with the types of all its tensors; those that cannot have changed are taken from `before`."""
    shape, sizes = shapes_and_extents(program)
    declared, kept = program.declared, _Kept.of(before)
    types = {t.name: t if t.format else replace(t, format=Format.dense(len(t.shape))) for t in program.inputs}
    for einsum in program.einsums:
        statement = declared.get(einsum.name)
        known = kept.type_of(einsum, statement, types)
        if known is None:
            scope = Scope(types, sizes[einsum.name])
            undeclared = TensorType(einsum.name, shape[einsum.name], dtype=result_dtype(einsum, scope))
            known = _type_of(einsum, undeclared if statement is None else statement, scope)
        types[einsum.name] = known
    order = [*declared, *(e.name for e in program.einsums if e.name not in declared)]
    return replace(program, tensors=tuple(types[name] for name in order))


def _type_of(einsum: Einsum, declared: TensorType, scope: Scope) -> TensorType:
    """The type of a result, with what its declaration leaves open."""
    format = result_format(einsum, scope)
    fill = declared.fill if format.all_dense else fill_of(einsum.body, scope.fills, scope.extents)
    if declared.fill not in (0, fill) and not (math.isnan(declared.fill) and math.isnan(fill)):
        _refuse_fill(einsum, declared, fill)
    return replace(declared, format=declared.format or format, fill=fill)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was inferred before a program was rewritten, by name: statements, their declarations and the types that there were."""

    statements: Mapping[str, Einsum]
    declared: Mapping[str, TensorType]
    types: Mapping[str, TensorType]

    @classmethod
    def of(cls, before: TypedProgram | None) -> _Kept:
        if before is None:
            return cls({}, {}, {})
        return cls(before.source.defined, before.source.declared, before.program.declared)

    def type_of(self, einsum: Einsum, declared: TensorType | None, types: Mapping[str, TensorType]) -> TensorType | None:
        """The type that a result had, None if anything that it follows from is another now."""
        same = self.statements.get(einsum.name) == einsum and self.declared.get(einsum.name) == declared
        return self.types[einsum.name] if same and all(types[n] == self.types.get(n) for n in einsum.operands) else None


def result_format(einsum: Einsum, scope: Scope) -> Format:
    """Levels in the order of the left side's dimensions. A split dimension is dense only if both of its indices are."""
    levels = []
    for index in einsum.indices:
        total = all(presence(einsum.body, name, scope) is not Presence.PATTERN for name in index_names((index,)))
        levels.append("dense" if total else "compressed")
    return Format.of(*levels)


def presence(node: Expr, index: str, scope: Scope) -> Presence:
    """Where an expression is defined along `index`; elsewhere it has the value `fill_of`.

    A reduction is defined where any entry of its operand is: elsewhere it folds implicit values only.
    """
    match node:
        case Const():
            return Presence.CONSTANT
        case Access():
            return _of_access(node, index, scope)
        case Apply():
            return _of_operator(node, index, scope)
        case Reduce():
            return presence(node.body, index, scope)
        case unknown:
            assert_never(unknown)


def _of_access(node: Access, index: str, scope: Scope) -> Presence:
    format = scope.types[node.tensor].format
    assert format is not None, "operands are inferred before their users"
    for dimension, i in enumerate(node.indices):
        if index in index_names((i,)) and not format.levels[format.order.index(dimension)].full:
            return Presence.PATTERN
    return Presence.TOTAL


def _of_operator(node: Apply, index: str, scope: Scope) -> Presence:
    """The table of joins: without a total operand intersect, left or union; with one, the pattern of one that annihilates."""
    of = [presence(arg, index, scope) for arg in node.args]
    if Presence.PATTERN not in of:
        return Presence.TOTAL if Presence.TOTAL in of else Presence.CONSTANT
    if Presence.TOTAL not in of:
        return Presence.PATTERN
    fills = [fill_of(arg, scope.fills, scope.extents) for arg in node.args]
    constants = _constants(node)
    for position, fill in enumerate(fills):
        if of[position] is Presence.PATTERN and operator(node.op).annihilated(position, fill, constants) is not None:
            return Presence.PATTERN
    return Presence.TOTAL


def fill_of(node: Expr, fills: Mapping[str, float], sizes: Mapping[str, int]) -> float:
    """The implicit value of an expression: its value where no operand stores anything.

    `fills` are the implicit values of the tensors, `sizes` the extents of the reduced indices.

    >>> from fuseflow.einsum.parse import parse_expr
    >>> fill_of(parse_expr("sum(k) exp(A[i, k])"), {"A": 0.0}, {"k": 3})
    3.0
    """
    match node:
        case Const():
            return node.value
        case Access():
            return fills[node.tensor]
        case Reduce():
            count = math.prod(sizes[name] for name in node.over)
            return reducer(node.op).repeated(fill_of(node.body, fills, sizes), count)
        case Apply():
            row, constants = operator(node.op), _constants(node)
            values = [fill_of(arg, fills, sizes) for arg in node.args]
            for position, value in enumerate(values):
                fixed = row.annihilated(position, value, constants)
                if fixed is not None:
                    return fixed
            return row.scalar(*values)
        case unknown:
            assert_never(unknown)


def _constants(node: Apply) -> list[float | None]:
    """The value of each operand that holds no tensor, None for the others."""
    return [None if accesses(arg) else fill_of(arg, {}, {}) for arg in node.args]


_PROMOTION: Final = ("i32", "i64", "f32", "f64")
_INTEGRAL: Final = frozenset(row.name for row in OPERATORS.values() if row.unit in ("add", "mul", "logic"))
"""Operators whose results are integers if their operands are."""


def result_dtype(einsum: Einsum, scope: Scope) -> str:
    """The widest dtype of the operands; a fractional number or operator, or an infinity, makes it a float."""
    if not einsum.operands:
        return "f32"
    dtypes = [scope.types[name].dtype for name in einsum.operands]
    if any(_is_fractional(node, scope) for node in walk(einsum.body)):
        dtypes.append("f32")
    return max(dtypes, key=_PROMOTION.index)


def _is_fractional(node: Expr, scope: Scope) -> bool:
    match node:
        case Const():
            return not float(node.value).is_integer()
        case Access():
            return False
        case Apply():
            return node.op not in _INTEGRAL
        case Reduce():
            empty = math.prod(scope.extents[name] for name in node.over) == 0
            return empty and math.isinf(reducer(node.op).identity)
        case unknown:
            assert_never(unknown)


def _refuse_fill(einsum: Einsum, declared: TensorType, fill: float) -> None:
    message = f"`{einsum.name}` is declared with the implicit value {show_number(declared.fill)}, it has {show_number(fill)}"
    hint = "leave `fill` out: it follows from the operands"
    raise ProgramError(message, hint=hint, notes=[f"in `{show_einsum(einsum)}`"], span=declared.span or einsum.location.span)
