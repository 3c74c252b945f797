"""Whether a program computes its integers exactly: values are computed in 64-bit floats, which round integers of 2^53 and more.

An integer can be small although what it was computed from was not, as in `(a * b) - (a * c)`. So the bound is that of the same program on
magnitudes, in which nothing cancels: no partial result of any fusion or loop order is larger.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np

from fuseflow.einsum.format_inference import fill_of
from fuseflow.einsum.interpret import evaluate_operands
from fuseflow.einsum.nodes import Access, Apply, Const, Expr, Keep, Program, Reduce, accesses
from fuseflow.einsum.sparse_arrays import Operand, SparseArray
from fuseflow.einsum.text import show_einsum
from fuseflow.einsum.verify import extents
from fuseflow.errors import ProgramError
from fuseflow.tensors.dtypes import DTYPES, EXACT_INTEGERS, ElementType

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
SELECTIONS = ("max", "min", "relu", "abs", "neg", "copy", "where")
"""Operators whose result is no larger than their largest operand."""


def refuse_rounded_integers(program: Program, arrays: Mapping[str, Operand]) -> None:
    """Raise `ProgramError` if a result that is declared integer may have been rounded on the way. All results must be declared.

    A narrow integer type has no numbers that large: what is too large for it saturates.
    """
    integers = {t.name for t in program.tensors if DTYPES[t.dtype].is_integer}
    results = [e for e in program.einsums if e.name in integers and not DTYPES[program.declared[e.name].dtype].narrow]
    if not results:
        return
    bounds = {name: _largest(array) for name, array in arrays.items()}
    sizes = extents(program)
    for einsum in program.einsums:
        bound = fill_of(_magnitude(einsum.body, integers), bounds, sizes[einsum.name])
        bounds[einsum.name] = _saturated(bound, DTYPES[program.declared[einsum.name].dtype])
    if all(bounds[e.name] < EXACT_INTEGERS for e in results):
        return
    magnitudes = replace(program, einsums=tuple(replace(e, body=_magnitude(e.body, integers)) for e in program.einsums))
    largest = evaluate_operands(magnitudes, {name: _absolute(array) for name, array in arrays.items()})
    for einsum in results:
        if not _largest(largest[einsum.name]) < EXACT_INTEGERS:
            raise ProgramError(
                f"`{einsum.name}` may hold rounded integers: what it is computed from reaches {_largest(largest[einsum.name]):.3g}, and "
                "values are computed in 64-bit floats, which round integers of 2^53 and more",
                hint="scale the inputs down, or declare them `f64` and accept the rounding",
                notes=[f"in `{show_einsum(einsum)}`"],
                span=einsum.location.span,
            )


def _saturated(bound: float, type: ElementType) -> float:
    """Return the largest magnitude of a result of this type that is no larger than `bound` before it is stored."""
    return min(bound, -type.range[0]) if type.narrow and type.is_integer else bound


def _magnitude(node: Expr, integers: Collection[str]) -> Expr:
    """Return an expression on the magnitudes of its operands that is at least as large as each partial result of this one. A comparison
    counts with the integers that it compares.
    """
    match node:
        case Const():
            return Const(abs(node.value))
        case Access():
            return node
        case Keep():
            return _magnitude(node.body, integers)  # other entries may be kept of the magnitudes
        case Reduce():
            return Reduce({"min": "max"}.get(node.op, node.op), node.over, _magnitude(node.body, integers))
        case Apply():
            args = tuple(_magnitude(arg, integers) for arg in node.args)
            if node.op in COMPARISONS:
                exact = [all(access.tensor in integers for access in accesses(arg)) for arg in args]
                return _largest_of([arg if kept else Apply("eq", (arg, arg)) for arg, kept in zip(args, exact, strict=True)])
            if node.op in SELECTIONS:
                return _largest_of(args)
            return Apply({"sub": "add"}.get(node.op, node.op), args)
        case unknown:
            assert_never(unknown)


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
        return replace(array, values=np.abs(array.values), fill=abs(array.fill))
    return np.abs(array)
