"""The dense meaning of an Einsum program, in float64 NumPy. It is the oracle that every other representation is compared with.

A value is an array with one name for each axis. Pointwise operators broadcast over the union of their operands' names, and reductions fold
the axes that they name. A sum of products of finite factors is computed by `np.einsum`, which never builds the product, or by scipy if one
of the factors is a scipy matrix.
"""

from __future__ import annotations

import math
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, assert_never

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Program, Reduce, Split, free_indices, index_names
from fuseflow.einsum.sparse_operands import Operand, sparse_product
from fuseflow.einsum.verify import extents, verify
from fuseflow.errors import ProgramError, did_you_mean
from fuseflow.ops import Array, operator, reducer

MAX_POINTS: Final = 1 << 22
"""The number of points of the index space that are materialized at once, at most (32 MB of float64)."""


@dataclass(frozen=True, slots=True, eq=False)
class LabeledArray:
    """An array with the index name of each of its axes."""

    array: Array
    names: tuple[str, ...]

    def over(self, names: tuple[str, ...]) -> Array:
        """Return the array with its axes in the order of `names`, and with an axis of length 1 for each name that it lacks."""
        axes = [self.names.index(n) for n in names if n in self.names]
        shape = iter(self.array.shape[a] for a in axes)
        return self.array.transpose(axes).reshape([next(shape) if n in self.names else 1 for n in names])


def evaluate(
    program: Program, arrays: Mapping[str, npt.ArrayLike | sparse.csr_array], outputs_only: bool = False
) -> dict[str, Array]:
    """Return every result of the program, by name, in float64. A sparse matrix can be given as a scipy array: its products with another
    matrix do not need its dense form. With `outputs_only`, other results are dropped after their last use.

    Raises `ProgramError` for missing or misshapen inputs.

    >>> from fuseflow.einsum.parse import parse
    >>> evaluate(parse("tensor A[2, 2]\\n s = sum(i, j) A[i, j]\\n output s"), {"A": [[1, 2], [3, 4]]})["s"].item()
    10.0
    """
    verify(program)
    operands: dict[str, Operand] = {t.name: _input(t.name, t.shape, arrays) for t in program.inputs}
    results, sizes, last = dict[str, Array](), extents(program), _last_uses(program)
    for einsum in program.einsums:
        operands[einsum.name] = results[einsum.name] = evaluate_einsum(einsum, operands, sizes[einsum.name])
        for name in last[einsum.name] if outputs_only else ():
            operands.pop(name)
            results.pop(name, None)
    return results


def _last_uses(program: Program) -> dict[str, list[str]]:
    """Return, by Einsum, the tensors that no later Einsum reads: its operands, and its own result if nothing reads it. Outputs of the
    program are left out.
    """
    reader = {name: e.name for e in program.einsums for name in (e.name, *e.operands)}
    last: dict[str, list[str]] = {e.name: [] for e in program.einsums}
    for name, einsum in reader.items():
        if name not in program.outputs:
            last[einsum].append(name)
    return last


def evaluate_einsum(einsum: Einsum, arrays: Mapping[str, Operand], sizes: Mapping[str, int]) -> Array:
    """Return the result of one Einsum, its dimensions as on the left side."""
    names = index_names(einsum.indices)
    value = evaluate_expr(einsum.body, arrays, sizes)
    full = np.broadcast_to(value.over(names), [sizes[n] for n in names])
    shape = [sizes[i.outer] * i.size if isinstance(i, Split) else sizes[i] for i in einsum.indices]
    return full.reshape(shape).copy()


def evaluate_expr(node: Expr, arrays: Mapping[str, Operand], sizes: Mapping[str, int]) -> LabeledArray:
    """Return the value of an expression; `sizes` holds the extent of every index in it."""
    return _evaluate(node, arrays, sizes, {})


Ranges = dict[str, slice]
"""A part of the index space. An index without a range runs over its whole extent."""


def _evaluate(node: Expr, arrays: Mapping[str, Operand], sizes: Mapping[str, int], part: Ranges) -> LabeledArray:
    match node:
        case Const():
            return LabeledArray(np.asarray(node.value, dtype=np.float64), ())
        case Access():
            return _read(node, arrays[node.tensor], sizes, part)
        case Apply():
            values = [_evaluate(arg, arrays, sizes, part) for arg in node.args]
            names = tuple(dict.fromkeys(n for v in values for n in v.names))
            return LabeledArray(operator(node.op)(*(v.over(names) for v in values)), names)
        case Reduce():
            return _reduce(node, arrays, sizes, part)
        case unknown:
            assert_never(unknown)


def _read(access: Access, operand: Operand, sizes: Mapping[str, int], part: Ranges) -> LabeledArray:
    """Return the elements that an access reads in this part of the index space, with split dimensions taken apart and diagonals
    extracted.
    """
    array = operand.toarray() if isinstance(operand, sparse.csr_array) else operand
    shape = [size for i, n in zip(access.indices, array.shape, strict=True) for size in _axes(i, n)]
    array = np.reshape(array, shape)
    axes, names = access.names, tuple(dict.fromkeys(access.names))
    if len(names) < len(axes):
        array = np.einsum(f"{_letters(axes, names)}->{_letters(names, names)}", array)
    return LabeledArray(array[tuple(part.get(n, slice(None)) for n in names)], names)


def _axes(index: str | Split, size: int) -> tuple[int, ...]:
    return (size // index.size, index.size) if isinstance(index, Split) else (size,)


def _reduce(node: Reduce, arrays: Mapping[str, Operand], sizes: Mapping[str, int], part: Ranges) -> LabeledArray:
    factors = _factors(node.body) if node.op == "sum" else ()
    if not part and (contraction := sparse_product(factors, node.over, arrays)):
        return LabeledArray(*contraction)
    if len(factors) > 1:
        value = _sum_of_products(node, [_evaluate(f, arrays, sizes, part) for f in factors])
        if value is not None:
            return value
    kept = tuple(n for n in free_indices(node.body) if n not in node.over)
    space = (*kept, *node.over)
    lengths = [len(range(*part[n].indices(sizes[n]))) if n in part else sizes[n] for n in space]
    if math.prod(lengths) > MAX_POINTS:
        return _in_chunks(node, arrays, sizes, part, space, lengths)
    full = np.broadcast_to(_evaluate(node.body, arrays, sizes, part).over(space), lengths)
    row = reducer(node.op)
    with np.errstate(all="ignore"):
        return LabeledArray(row.array.reduce(full, axis=tuple(range(len(kept), len(space))), initial=row.identity), kept)


def _in_chunks(
    node: Reduce,
    arrays: Mapping[str, Operand],
    sizes: Mapping[str, int],
    part: Ranges,
    space: tuple[str, ...],
    lengths: list[int],
) -> LabeledArray:
    """Evaluate a reduction in two halves, cutting the first index of the space that can be halved. The halves are concatenated, or combined
    if the index is reduced.
    """
    axis = next(a for a, length in enumerate(lengths) if length > 1)
    index = space[axis]
    start = part[index].start if index in part else 0
    middle, stop = start + lengths[axis] // 2, start + lengths[axis]
    first, second = (_reduce(node, arrays, sizes, {**part, index: slice(*ends)}) for ends in ((start, middle), (middle, stop)))
    if index in node.over:
        with np.errstate(all="ignore"):
            return LabeledArray(reducer(node.op).array(first.array, second.over(first.names)), first.names)
    return LabeledArray(np.concatenate((first.array, second.over(first.names)), axis=first.names.index(index)), first.names)


def _factors(node: Expr) -> tuple[Expr, ...]:
    if isinstance(node, Apply) and node.op == "mul":
        return tuple(f for arg in node.args for f in _factors(arg))
    return (node,)


def _sum_of_products(node: Reduce, factors: list[LabeledArray]) -> LabeledArray | None:
    """Return the contraction of the factors, or None where an infinity or NaN appears: there the annihilators of the operator table
    decide.
    """
    names = tuple(dict.fromkeys(n for f in factors for n in f.names))
    kept = tuple(n for n in names if n not in node.over)
    subscripts = ",".join(_letters(f.names, names) for f in factors) + "->" + _letters(kept, names)
    with np.errstate(all="ignore"):
        result = np.asarray(np.einsum(subscripts, *(f.array for f in factors), optimize="greedy")) + 0.0  # no -0
    return LabeledArray(result, kept) if np.isfinite(result).all() else None


def _letters(names: tuple[str, ...], alphabet: tuple[str, ...]) -> str:
    """Return subscripts for `np.einsum`: a letter for each name."""
    return "".join(string.ascii_letters[alphabet.index(n)] for n in names)


def _input(name: str, shape: tuple[int, ...], arrays: Mapping[str, npt.ArrayLike | sparse.csr_array]) -> Operand:
    if name not in arrays:
        raise ProgramError(f"no array for input `{name}`", hint=did_you_mean(name, arrays))
    source = arrays[name]
    array = source.astype(np.float64) if isinstance(source, sparse.csr_array) else np.asarray(source, dtype=np.float64)
    if array.shape != shape:
        raise ProgramError(f"input `{name}` has the shape {list(shape)}, its array {list(array.shape)}")
    return array
