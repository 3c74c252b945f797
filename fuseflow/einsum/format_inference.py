"""Format inference: the levels, dtype and implicit value of the results of a program.

An index of a result gets a `dense` level if its loop must visit every coordinate, and else a `compressed` one. That follows from the levels
of the operands and from the operators' annihilators at the operands' implicit values (intersect, left, union or range).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NoReturn, assert_never

from fuseflow.einsum.nodes import (
    Access,
    Apply,
    Const,
    Einsum,
    Expr,
    Keep,
    Program,
    Reduce,
    Split,
    TensorType,
    accesses,
    index_names,
    stored_index,
    walk,
)
from fuseflow.einsum.rounding import converted, expression_precision, with_roundings
from fuseflow.einsum.text import show_einsum
from fuseflow.einsum.verify import shapes_and_extents, verify, with_known_sizes
from fuseflow.errors import ProgramError
from fuseflow.float32.operator_precision import COMPARISONS
from fuseflow.float32.words import rounded
from fuseflow.keep_rules import Largest
from fuseflow.number_literals import show_number
from fuseflow.ops import OPERATORS, canonical, operator, reducer
from fuseflow.tensors import DTYPES, Format
from fuseflow.tensors.dtypes import ElementType
from fuseflow.tensors.levels import Level


class Presence(Enum):
    """Where an operand is defined along one index: everywhere, at stored coordinates, or as a constant."""

    CONSTANT = "a number: no operand of the loop"
    PATTERN = "at stored coordinates; its implicit value elsewhere"
    TOTAL = "everywhere"


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of one Einsum: the types of its operands, their implicit values, and the extents of its indices."""

    types: Mapping[str, TensorType]
    fills: Mapping[str, float]
    extents: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TypedProgram:
    """A program as it was written, `source`, together with `program`, which is the same with a declaration for every tensor (`infer`)."""

    source: Program
    program: Program

    @classmethod
    def of(cls, source: Program) -> TypedProgram:
        """Infer all formats of a program. Raises `ProgramError` unless it has a meaning."""
        verify(source)
        return cls(source, _typed(source, None))

    def rewritten(self, source: Program) -> TypedProgram:
        """Infer the formats of this program after it was rewritten. Only what the rewriting changed is verified and inferred again: new
        statements and declarations, and statements that read a tensor whose type changed.
        """
        if source is self.source:
            return self
        verify(source, self.source)
        return TypedProgram(source, _typed(source, self))


def infer(program: Program) -> Program:
    """Return the program with a declaration for every tensor: the format, dtype and implicit value of each result, and `dense` for inputs
    without a format.

    Declarations stay. Raises `ProgramError` if a declared implicit value is not the one that the result has. A result that is
    defined everywhere has no implicit entries: its implicit value is the declared one, or 0.
    """
    return TypedProgram.of(program).program


def _typed(program: Program, previous: TypedProgram | None) -> Program:
    """Return the program with the types of all its tensors; types that cannot have changed are taken from `previous`."""
    shape_by_tensor, sizes = shapes_and_extents(program)
    declared = program.declared
    types = {t.name: _input_type(t, declared) for t in program.inputs}
    for einsum in program.einsums:
        declaration = declared.get(einsum.name)
        type = _known_type(previous, einsum, declaration, types)
        if type is None:
            scope = Scope(types, {name: types[name].fill for name in einsum.operands}, sizes[einsum.name])
            undeclared = TensorType(einsum.name, shape_by_tensor[einsum.name], dtype=result_dtype(einsum, scope))
            type = _type_of(einsum, undeclared if declaration is None else declaration, scope)
        types[einsum.name] = type
    tensors = tuple(types[name] for name in dict.fromkeys((*declared, *program.defined)))
    return with_known_sizes(replace(program, tensors=tensors), (shape_by_tensor, sizes))


def _input_type(tensor: TensorType, declared: Mapping[str, TensorType]) -> TensorType:
    """Return the type of an input: it is dense without a format, and stored as the tensor that it is like."""
    if tensor.like:
        return replace(tensor, format=declared[tensor.like].format)
    return tensor if tensor.format else replace(tensor, format=Format.dense(len(tensor.shape)))


def _type_of(einsum: Einsum, declared: TensorType, scope: Scope) -> TensorType:
    """Return the type of a result: its declaration, completed where that leaves something open."""
    if isinstance(einsum.body, Keep):
        _check_keep(einsum, einsum.body, declared, scope)
    if not declared.like:
        _check_padding(einsum, declared, scope)
    format = result_format(einsum, scope)
    dtype = DTYPES[declared.dtype]
    fill = (
        declared.fill
        if format.all_dense or declared.like
        else fill_of(_with_roundings(einsum, declared, scope), scope.fills, scope.extents)
    )
    if dtype.narrow:
        fill = dtype.nearest(fill)
    elif dtype.is_integer and not is_integral(einsum.body, scope):
        message = f"`{einsum.name}` is declared {declared.dtype}, and its values need not be integers"
        _refuse(einsum, message, f"declare it `{result_dtype(einsum, scope)}`", declared)
    said = canonical(rounded(declared.fill)) if dtype.precision == "f32" else declared.fill
    if said not in (0, canonical(fill)):
        numbers = show_number(declared.fill), show_number(fill)
        message = f"`{einsum.name}` is declared with the implicit value {numbers[0]}, it has {numbers[1]}"
        _refuse(einsum, message, "leave `fill` out: it follows from the operands", declared)
    shared = scope.types[declared.like].format if declared.like else None
    return replace(declared, format=shared or declared.format or format, fill=fill)


def _with_roundings(einsum: Einsum, declared: TensorType, scope: Scope) -> Expr:
    """Return the body of a statement with its roundings as operators. A body that only reads a tensor has none."""
    if isinstance(einsum.body, Access):
        return einsum.body
    types = {name: scope.types[name] for name in einsum.operands} | {einsum.name: declared}
    precisions = {name: DTYPES[type.dtype].precision for name, type in types.items()}
    return with_roundings(converted(einsum, types, precisions), precisions).body


def _known_type(
    previous: TypedProgram | None, einsum: Einsum, declared: TensorType | None, types: Mapping[str, TensorType]
) -> TensorType | None:
    """Return the type that a result had before the program was rewritten, or None if anything that decides it has changed."""
    if previous is None:
        return None
    source, known = previous.source, previous.program.declared
    unchanged = source.defined.get(einsum.name) == einsum and source.declared.get(einsum.name) == declared
    decisive = (*einsum.operands, declared.like) if declared is not None and declared.like else einsum.operands
    return known[einsum.name] if unchanged and all(types[n] == known.get(n) for n in decisive) else None


def result_format(einsum: Einsum, scope: Scope) -> Format:
    """Return the format of a result, its levels in the order of the left side's dimensions. A split dimension is dense only if both of its
    indices are. Without a sparse operand it is dense, unless the statement keeps entries.
    """
    formats = [scope.types[name].format for name in einsum.operands]
    if not isinstance(einsum.body, Keep) and all(format is not None and format.all_dense for format in formats):
        return Format.dense(len(einsum.indices))
    levels = []
    for index in einsum.indices:
        total = all(presence(einsum.body, name, scope) is not Presence.PATTERN for name in index_names((index,)))
        levels.append("dense" if total else "compressed")
    return Format.of(*levels)


def presence(node: Expr, index: str, scope: Scope) -> Presence:
    """Return where an expression is defined along `index`; elsewhere it has the value `fill_of`.

    A reduction is defined where any entry of its operand is: elsewhere it folds implicit values only.
    """
    match node:
        case Const():
            return Presence.CONSTANT
        case Access():
            format = scope.types[node.tensor].format
            assert format is not None, "operands are inferred before their users"
            along = [dimension for dimension, i in enumerate(node.indices) if index in index_names((i,))]
            is_total = all(format.levels[format.order.index(dimension)].full for dimension in along)
            return Presence.TOTAL if is_total else Presence.PATTERN
        case Apply():
            return _of_operator(node, index, scope)
        case Reduce():
            return presence(node.body, index, scope)
        case Keep():
            if not node.over or index in node.over:
                return Presence.PATTERN
            return Presence.TOTAL if node.keeps_zeros else presence(node.body, index, scope)
        case unknown:
            assert_never(unknown)


def _of_operator(node: Apply, index: str, scope: Scope) -> Presence:
    """Return where an operator is defined along `index`, by the annihilators of its row. Without a total operand the join is an
    intersection, a left join or a union, and so sparse. With one, the result is sparse only if some sparse operand
    annihilates."""
    presences = [presence(arg, index, scope) for arg in node.args]
    if Presence.PATTERN not in presences:
        return Presence.TOTAL if Presence.TOTAL in presences else Presence.CONSTANT
    if Presence.TOTAL not in presences:
        return Presence.PATTERN
    fills = [fill_of(arg, scope.fills, scope.extents) for arg in node.args]
    constants = _constants(node)
    for position, fill in enumerate(fills):
        if presences[position] is Presence.PATTERN and operator(node.op).annihilated(position, fill, constants) is not None:
            return Presence.PATTERN
    return Presence.TOTAL


def fill_of(node: Expr, fills: Mapping[str, float], sizes: Mapping[str, int]) -> float:
    """Return the implicit value of an expression: its value where no operand stores anything.

    `fills` holds the implicit values of the tensors, and `sizes` the extents of the reduced indices.

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
        case Keep():
            return 0.0
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
    """Return the value of each operand that holds no tensor, and None for the others."""
    return [None if accesses(arg) else fill_of(arg, {}, {}) for arg in node.args]


def is_integral(node: Expr, scope: Scope) -> bool:
    """Return whether all values of an expression are integers, whatever its operands store.

    A comparison is 0 or 1. A power of integers is an integer if the exponent is a constant that is a natural number.
    """
    match node:
        case Const():
            return float(node.value).is_integer()
        case Access():
            return DTYPES[scope.types[node.tensor].dtype].is_integer
        case Apply():
            if node.op in (*COMPARISONS, "saturate"):
                return True
            if node.op == "pow" and isinstance(node.args[1], Const):
                return node.args[1].value >= 0 and all(is_integral(arg, scope) for arg in node.args)
            values = node.args[1:] if node.op == "where" else node.args
            return OPERATORS[node.op].keeps_integers and all(is_integral(arg, scope) for arg in values)
        case Keep():
            return node.marks or is_integral(node.body, scope)
        case Reduce():
            return is_integral(node.body, scope) and not _is_fractional(node, scope)
        case unknown:
            assert_never(unknown)


_PROMOTION: Final = ("i32", "i64", "f32", "f64")


def result_dtype(einsum: Einsum, scope: Scope) -> str:
    """Return the dtype of the numbers that an expression computes: the float that it gives, or, for an integer, the widest dtype
    of its operands. A fractional operator, or an infinity, makes integers floats, unless these are rounded.

    A result that is computed from narrow operands has the wide type to which they are promoted. A view of a tensor keeps its type.
    """
    if not einsum.operands:
        return "f32"
    if isinstance(einsum.body, Access):
        return scope.types[einsum.body.tensor].dtype
    types = {name: DTYPES[scope.types[name].dtype] for name in einsum.operands}
    widest = max((type.promoted for type in types.values()), key=_PROMOTION.index)
    precision = expression_precision(einsum.body, {name: type.precision for name, type in types.items()})
    if precision != "integer":
        return precision
    if widest in ("f32", "f64"):
        widest = _integer_dtype(einsum.body, types)
    fractional = any(_is_fractional(node, scope) for node in walk(einsum.body)) and not is_integral(einsum.body, scope)
    return max(widest, "f32", key=_PROMOTION.index) if fractional else widest


def _integer_dtype(node: Expr, types: Mapping[str, ElementType]) -> str:
    """Return the dtype of an expression whose values are integers. Floats end in conditions, in comparisons, which give 0 or 1, and in
    roundings to integers."""
    match node:
        case Const():
            return _PROMOTION[0]
        case Access():
            return types[node.tensor].promoted
        case Keep() if node.marks:
            return "f32"
        case Keep() | Reduce():
            return _integer_dtype(node.body, types)
        case Apply():
            chosen = node.args[1:] if node.op == "where" else ()
            values = (
                node.args if all(isinstance(value, Const) for value in chosen) else chosen
            )  # numbers have no type of their own
            args = [_integer_dtype(arg, types) for arg in values]
            widest = max(args, key=_PROMOTION.index)
            if widest == "f64" and (node.op in COMPARISONS or node.op == "saturate"):
                return "i64" if node.op == "saturate" else "f32"
            return widest
        case unknown:
            assert_never(unknown)


def _is_fractional(node: Expr, scope: Scope) -> bool:
    match node:
        case Const():
            return not float(node.value).is_integer()
        case Access() | Keep():
            return False
        case Apply():
            return not OPERATORS[node.op].keeps_integers
        case Reduce():
            empty = math.prod(scope.extents[name] for name in node.over) == 0
            return empty and math.isinf(reducer(node.op).identity)
        case unknown:
            assert_never(unknown)


def _check_keep(einsum: Einsum, keep: Keep, declared: TensorType, scope: Scope) -> None:
    """Refuse a `keep` by magnitude of an operand with implicit entries other than 0, which it would have to compare, and one in blocks."""
    fill = fill_of(keep.body, scope.fills, scope.extents)
    implicit = any(presence(keep.body, v, scope) is Presence.PATTERN for v in index_names(einsum.indices))
    if implicit and fill != 0 and not keep.keeps_zeros:
        message = f"`{keep}` keeps entries beside the implicit value 0, and that of its operand is {show_number(fill)}"
        _refuse(einsum, message, "store the operand dense, or keep before the operator that makes the implicit value another")
    tensors = ((einsum.name, declared), *((name, scope.types[name]) for name in einsum.operands))
    blocked = next((name for name, tensor in tensors if tensor.block), None)
    if blocked is not None:
        message = f"`{keep}` compares single elements, and `{blocked}` is stored in blocks"
        _refuse(einsum, message, f"leave the block of `{blocked}` out")


def _check_padding(einsum: Einsum, declared: TensorType, scope: Scope) -> None:
    """Refuse a result with a level for the entries that a `keep` leaves, such as `nm(2:4)`, unless that `keep` makes it."""
    if declared.format is None:
        return
    for level, dimension in zip(declared.format.levels, declared.format.order, strict=True):
        if level.rule is None:
            continue
        index, keep = stored_index(einsum.indices[dimension]), einsum.body
        wanted = Keep(level.rule, index_names((index,)), keep.body if isinstance(keep, Keep) else keep)
        stored = f"`{einsum.name}` is stored {level.text} along `{index}`"
        if isinstance(index, Split):
            why, hint = f"{stored}, which are two indices: a `keep` is over one of them", "store it `compressed`"
        elif dimension != declared.format.order[-1]:
            why, hint = f"{stored}, and has a level below that", f"store `{index}` innermost, or `compressed`"
        elif _counted(keep) != wanted and not _sees_groups(einsum, index, level, scope):
            other = (
                f"`{keep}` may leave other entries in its groups"
                if isinstance(keep, Keep)
                else "no `keep` says what its groups hold"
            )
            why = f"{stored}, and {other}"
            hint = f"`{show_einsum(replace(einsum, body=wanted))}`, or store it `compressed`"
        else:
            continue
        _refuse(einsum, why, hint, declared)


def _counted(body: Expr) -> Expr:
    """Return a `keep` by magnitude that leaves as many entries in each group as this one; other expressions as they are."""
    if not isinstance(body, Keep) or not isinstance(body.rule, Largest):
        return body
    return replace(body, rule=Largest(body.rule.count, body.rule.every))


def _sees_groups(einsum: Einsum, index: str, level: Level, scope: Scope) -> bool:
    """Return whether a statement is a reshape of an operand that has `index` in its innermost level, of the format `level`."""
    view = einsum.body
    if not isinstance(view, Access) or index_names(einsum.indices) != view.names or index not in view.indices:
        return False
    format = scope.types[view.tensor].format
    is_reshape = any(isinstance(i, Split) for i in (*einsum.indices, *view.indices))
    return is_reshape and format is not None and (format.levels[-1], format.order[-1]) == (level, view.indices.index(index))


def _refuse(einsum: Einsum, message: str, hint: str, declared: TensorType | None = None) -> NoReturn:
    """Raise `ProgramError` for a statement, at the declaration of its result if that is at fault and has a place."""
    span = declared.span if declared is not None else None
    raise ProgramError(message, hint=hint, notes=[f"in `{show_einsum(einsum)}`"], span=span or einsum.location.span)
