"""Whether a program computes its integers exactly: values are computed in floats, which round integers from some magnitude on.

An integer can be small although it was computed from large ones, as in `(a * b) - (a * c)`. So the bound is the result of the
same program on magnitudes, in which nothing cancels: no partial result of any fusion or loop order is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import TypeAlias, assert_never

import numpy as np

from fuseflow.einsum.format_inference import Scope, fill_of, is_integral
from fuseflow.einsum.index_names import underscored_name
from fuseflow.einsum.interpret import evaluate_operands
from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Program, Reduce, accesses, free_indices, walk
from fuseflow.einsum.sparse_arrays import Operand, SparseArray
from fuseflow.einsum.text import show_einsum
from fuseflow.einsum.verify import extents
from fuseflow.errors import ProgramError
from fuseflow.float32.operator_precision import COMPARISONS
from fuseflow.tensors.dtypes import DTYPES, EXACT_INTEGERS

ArrayOf: TypeAlias = Callable[[str], Operand | None]
"""Returns the array of an input, or None if it has none."""
SELECTIONS = ("max", "min", "relu", "abs", "neg", "copy")
"""Operators whose result is no larger than their largest operand."""


def refuse_rounded_integers(program: Program, arrays: Mapping[str, Operand]) -> None:
    """Raise `ProgramError` if an integer may have been rounded on the way, in 64-bit floats. All results must be declared."""
    for name, largest in rounded_integers(program, arrays.get, EXACT_INTEGERS - 1).items():
        einsum = program.defined[name]
        raise ProgramError(
            f"`{name}` may hold rounded integers: what it is computed from reaches {largest:.3g}, and "
            "values are computed in 64-bit floats, which round integers of 2^53 and more",
            hint="scale the inputs down, or declare them `f64` and accept the rounding",
            notes=[f"in `{show_einsum(einsum)}`"],
            span=einsum.location.span,
        )


def rounded_integers(program: Program, array_of: ArrayOf, exact: int) -> dict[str, float]:
    """Return the results in which an integer may have been rounded on the way, in floats that hold all integers up to `exact` in magnitude.
    Each has the largest magnitude that the integers in its expression reach. An input for which `array_of` has no array may hold
    all numbers of its type. All results must be declared.
    """
    integers = {t.name for t in program.tensors if DTYPES[t.dtype].is_integer}
    bounds = dict.fromkeys((t.name for t in program.inputs), inf)
    for tensor in program.inputs:
        if tensor.name in integers:
            array = array_of(tensor.name)
            bounds[tensor.name] = max(map(abs, DTYPES[tensor.dtype].range)) if array is None else _largest(array)
    sizes, largest_by_result = extents(program), dict[str, float]()
    for einsum in program.einsums:
        scope = Scope(program.declared, {}, sizes[einsum.name])
        parts = [node for node in walk(einsum.body) if accesses(node) and is_integral(node, scope)]
        magnitudes = [_magnitude(part, integers) for part in parts]
        doubtful = {each: bound for each in magnitudes if not (bound := fill_of(each, bounds, scope.extents)) <= exact}
        for magnitude, bound in doubtful.items():
            array = _evaluated(program, magnitude, array_of, integers)
            largest = bound if array is None else _largest(array)
            if not largest <= exact:
                largest_by_result[einsum.name] = max(largest, largest_by_result.get(einsum.name, 0.0))
        bound = fill_of(_magnitude(einsum.body, integers), bounds, scope.extents)
        type = DTYPES[program.declared[einsum.name].dtype]
        bounds[einsum.name] = min(bound, -type.range[0]) if type.narrow and type.is_integer else bound
    return largest_by_result


def _evaluated(program: Program, magnitude: Expr, array_of: ArrayOf, integers: Collection[str]) -> Operand | None:
    """Return the values of an expression of magnitudes, or None if it reads an input for which `array_of` has no array."""
    part = program.computing({access.tensor for access in accesses(magnitude)})
    absolute = {t.name: _absolute(array) for t in part.inputs if (array := array_of(t.name)) is not None}
    if len(absolute) < len(part.inputs):
        return None
    name = underscored_name("magnitude", part.declared)
    of_operands = (replace(e, body=_magnitude(e.body, integers)) for e in part.einsums)
    einsums = (*of_operands, Einsum(name, free_indices(magnitude), magnitude))
    return evaluate_operands(replace(part, einsums=einsums, outputs=(name,)), absolute, outputs_only=True)[name]


def _magnitude(node: Expr, integers: Collection[str]) -> Expr:
    """Return an expression on the magnitudes of the operands of this one that is at least as large as each of its partial results."""
    match node:
        case Const():
            return Const(abs(node.value))
        case Access():
            return node
        case Keep():
            body = _magnitude(node.body, integers)  # other entries may be kept of the magnitudes
            return _largest_of([_compared(body, integers), Const(1.0)]) if node.marks else body
        case Reduce():
            return Reduce({"min": "max"}.get(node.op, node.op), node.over, _magnitude(node.body, integers))
        case Apply():
            args = tuple(_magnitude(arg, integers) for arg in node.args)
            if node.op in COMPARISONS:
                return _largest_of([_compared(arg, integers) for arg in args])
            if node.op == "where":
                return _largest_of([_compared(args[0], integers), *args[1:]])
            if node.op in SELECTIONS:
                return _largest_of(args)
            return Apply({"sub": "add"}.get(node.op, node.op), args)
        case unknown:
            assert_never(unknown)


def _compared(arg: Expr, integers: Collection[str]) -> Expr:
    """Return the magnitude with which a condition, or a side of a comparison, counts: an integer's own, and 1 for other values."""
    if all(access.tensor in integers for access in accesses(arg)):
        return arg
    return Apply("max", (Apply("eq", (arg, arg)), Const(1.0)))  # in the dimensions of `arg`, which may be NaN


def _largest_of(args: Sequence[Expr]) -> Expr:
    return args[0] if len(args) == 1 else Apply("max", (args[0], _largest_of(args[1:])))


def _largest(array: Operand) -> float:
    """Return the largest magnitude of an array."""
    stored = array.values if isinstance(array, SparseArray) else array
    implicit = abs(array.fill) if isinstance(array, SparseArray) else 0.0
    return max(float(np.abs(stored).max(initial=0.0)), implicit)


def _absolute(array: Operand) -> Operand:
    """Return the magnitudes of an array."""
    if isinstance(array, SparseArray):
        return SparseArray(array.shape, array.positions, np.abs(array.values), abs(array.fill))
    return np.abs(array)
