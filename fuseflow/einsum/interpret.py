"""The dense meaning of an Einsum program, in NumPy. It is the oracle that every other representation is compared with.

Arrays have elements of float64. Floats of 32 bits are such numbers, to which a statement rounds what it computes (`precision`).

A value is an array with one name for each axis. Pointwise operators broadcast over the union of their operands' names, and reductions fold
the axes that they name. A sum of products of finite factors is computed by `np.einsum`, which never builds the product. Large arrays that
store little stay sparse where the program allows (`sparse_arrays`).
"""

from __future__ import annotations

import math
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Expr, Keep, Program, Reduce, accesses, free_indices, index_names
from fuseflow.einsum.rounding import converted, expression_precision, rounds, with_roundings
from fuseflow.einsum.selections import read_affine
from fuseflow.einsum.sparse_arrays import (
    Labeled,
    LabeledArray,
    LabeledSparse,
    Operand,
    SparseArray,
    dense,
    sparse_pointwise,
    sparse_product,
    to_operand,
    union,
)
from fuseflow.einsum.structures import outside_of, places_of_roots, restricted_to
from fuseflow.einsum.verify import extents, verify
from fuseflow.errors import ProgramError, did_you_mean
from fuseflow.keep_rules import kept, what_is_kept
from fuseflow.ops import Array, operator, reducer
from fuseflow.tensors import Tensor
from fuseflow.tensors.dtypes import DTYPES
from fuseflow.tensors.pack import is_scipy

if TYPE_CHECKING:
    from scipy import sparse

MAX_POINTS: Final = 1 << 22
"""The number of points of the index space that are materialized at once, at most (32 MB of float64)."""


InputArray: TypeAlias = "npt.ArrayLike | sparse.csr_array | SparseArray"
"""The types of inputs of the interpreter: anything that is an array, dense or sparse."""


def evaluate(
    program: Program, arrays: Mapping[str, InputArray], outputs_only: bool = False, wide: bool = False
) -> dict[str, Array]:
    """Return every result of the program, by name, in float64. With `outputs_only`, other results are dropped after their last use. With
    `wide`, nothing is rounded to 32-bit floats, as on a machine with `arithmetic: f64`.

    An input that stores little can be given as a scipy or a `SparseArray`; so is one whose stored zeros are places of other tensors
    (`fuseflow.einsum.structures`). Raises `ProgramError` for missing or misshapen inputs.

    >>> from fuseflow.einsum.parse import parse
    >>> evaluate(parse("tensor A[2, 2]\\n s = sum(i, j) A[i, j]\\n output s"), {"A": [[1, 2], [3, 4]]})["s"].item()
    10.0
    """
    return {name: dense(result) for name, result in evaluate_operands(program, arrays, outputs_only, wide).items()}


def evaluate_operands(
    program: Program, arrays: Mapping[str, InputArray], outputs_only: bool = False, wide: bool = False
) -> dict[str, Operand]:
    """Return what `evaluate` returns, but for large results that store little: these stay sparse."""
    verify(program)
    operands: dict[str, Operand] = {t.name: _input(t.name, t.shape, arrays) for t in program.inputs}
    places = places_of_roots(program, operands)
    for tensor in program.inputs:
        if tensor.like and (wrong := outside_of(operands[tensor.name], places[tensor.like])) is not None:
            message = f"input `{tensor.name}` has an entry at {wrong}, which is no place of `{tensor.like}`"
            raise ProgramError(message, hint="what is like another tensor is 0 at all other places")
    operands |= {name: dense(operands[name]) for name in places if operands[name].size <= MAX_POINTS}
    results, sizes, last = dict[str, Operand](), extents(program), _last_uses(program)
    precisions = {t.name: DTYPES[t.dtype].precision for t in program.inputs}
    for einsum in program.einsums:
        said = converted(einsum, program.declared, precisions)
        result = program.declared.get(einsum.name)
        precisions[einsum.name] = DTYPES[result.dtype].precision if result else expression_precision(said.body, precisions)
        said = said if wide else with_roundings(said, precisions)
        computed = evaluate_einsum(said, operands, sizes[einsum.name])
        if result and result.like:
            computed = restricted_to(computed, places[result.like])
        operands[einsum.name] = results[einsum.name] = computed
        for name in last[einsum.name] if outputs_only else ():
            operands.pop(name)
            results.pop(name, None)
    return results


def operands_of(program: Program, tensors: Mapping[str, Tensor]) -> dict[str, Operand]:
    """Return the numbers of tensors of single elements, for the interpreter. Tensors that others are like keep their places."""
    roots = {t.like for t in program.tensors}
    return {
        name: SparseArray.of_tensor(tensor) if name in roots else to_operand(tensor, MAX_POINTS)
        for name, tensor in tensors.items()
    }


def _last_uses(program: Program) -> dict[str, list[str]]:
    """Return, by Einsum, its operands that no later Einsum reads, and its result if nothing reads it, outputs of the program left out."""
    reader = {name: e.name for e in program.einsums for name in (e.name, *e.operands)}
    last: dict[str, list[str]] = {e.name: [] for e in program.einsums}
    for name, einsum in reader.items():
        if name not in program.outputs:
            last[einsum].append(name)
    return last


def evaluate_einsum(einsum: Einsum, arrays: Mapping[str, Operand], sizes: Mapping[str, int]) -> Operand:
    """Return the result of one Einsum, its dimensions as on the left side. It is sparse if it is large and stores little."""
    names, evaluator = index_names(einsum.indices), _Evaluator(arrays, sizes)
    shape = [math.prod(sizes[name] for name in index_names((index,))) for index in einsum.indices]
    value = evaluator.sparse_value(einsum.body) if evaluator.reads_sparse(einsum.body) else None
    if value is None:
        value = evaluator.dense_value(einsum.body, {})
    if isinstance(value, LabeledSparse) and set(value.names) == set(names) and value.array.size > MAX_POINTS:
        return value.over(names).array.reshape(shape)
    array = _labeled_dense(value).over(names)
    full = np.broadcast_to(array, [sizes[n] for n in names]).reshape(shape)
    operands = (operand for operand in arrays.values() if not isinstance(operand, SparseArray))
    if full.size > array.size or any(np.may_share_memory(full, operand) for operand in operands):
        return full.copy()
    return np.asarray(full, order="C")  # which leaves a scalar without dimensions


def _labeled_dense(value: Labeled) -> LabeledArray:
    return LabeledArray(value.array.toarray(), value.names) if isinstance(value, LabeledSparse) else value


Ranges = dict[str, slice]
"""A part of the index space. An index without a range runs over its whole extent."""


@dataclass(frozen=True, slots=True)
class _Evaluator:
    """Evaluates the expressions of one Einsum, given the arrays of tensors and the extents of indices."""

    arrays: Mapping[str, Operand]
    sizes: Mapping[str, int]

    def reads_sparse(self, node: Expr) -> bool:
        return any(isinstance(self.arrays[access.tensor], SparseArray) for access in accesses(node))

    def sparse_value(self, node: Expr) -> Labeled | None:
        """Return the value of an expression without the dense form of a sparse operand, or None if the program does not allow that."""
        match node:
            case Const():
                return self.dense_value(node, {})
            case Access():
                return self.read(node, {})
            case Reduce():
                return self.reduction(node, {})
            case Apply():
                return self.sparse_operator(node)
            case Keep():
                value = self.sparse_value(node.body)
                if isinstance(value, LabeledSparse) and value.array.fill == 0 and not node.keeps_zeros:
                    return value.keep(node.rule, node.over)
                return None  # the rule may keep elements that are not stored
            case unknown:
                assert_never(unknown)

    def sparse_operator(self, node: Apply) -> Labeled | None:
        """Return the value of an operator: dense if that is not larger than its largest dense operand, else sparse or None."""
        size = math.prod(self.sizes[n] for n in free_indices(node))
        if size <= MAX_POINTS and not self.reads_sparse(node):
            return self.dense_value(node, {})
        values = [value for arg in node.args if (value := self.sparse_value(arg)) is not None]
        if len(values) < len(node.args):
            return None
        row = operator(node.op)
        if any(isinstance(value, LabeledSparse) for value in values):
            constants = [arg.value if isinstance(arg, Const) else None for arg in node.args]
            result = sparse_pointwise(row, values, constants)
            if result is not None:
                return result
        if size > max([MAX_POINTS, *(value.array.size for value in values if isinstance(value, LabeledArray))]):
            return None
        names = union(*values)
        return LabeledArray(row(*(_labeled_dense(value).over(names) for value in values)), names)

    def dense_value(self, node: Expr, part: Ranges) -> LabeledArray:
        """Return the value of an expression in this part of the index space."""
        match node:
            case Const():
                return LabeledArray(np.asarray(node.value, dtype=np.float64))
            case Access():
                return _labeled_dense(self.read(node, part))
            case Apply():
                values = [self.dense_value(arg, part) for arg in node.args]
                names = union(*values)
                return LabeledArray(operator(node.op)(*(v.over(names) for v in values)), names)
            case Reduce():
                return _labeled_dense(self.reduction(node, part))
            case Keep():
                value = self.dense_value(node.body, part)  # of a whole statement, so that it is whole along every index
                mask = kept(node.rule, value.array, [value.names.index(name) for name in node.over])
                return LabeledArray(np.where(mask, what_is_kept(node.rule, value.array), 0.0), value.names)
            case unknown:
                assert_never(unknown)

    def read(self, access: Access, part: Ranges) -> Labeled:
        """Return what an access reads in this part of the index space, with split dimensions taken apart and diagonals extracted."""
        operand, shape = self.arrays[access.tensor], [self.sizes[name] for name in access.names]
        if isinstance(operand, SparseArray) and not access.is_affine:
            elements = operand if access.is_plain else operand.reshape(shape)
            whole = LabeledSparse(elements, access.names).diagonal()
            return whole.part(part) if part else whole
        array = np.reshape(read_affine(dense(operand), access.indices, self.sizes), shape)
        axes, names = access.names, tuple(dict.fromkeys(access.names))
        if len(names) < len(axes):
            array = np.einsum(f"{_letters(axes, names)}->{_letters(names, names)}", array)
        return LabeledArray(array[tuple(part.get(n, slice(None)) for n in names)], names)

    def reduction(self, node: Reduce, part: Ranges) -> Labeled:
        factors = _factors(node.body) if node.op == "sum" else ()
        if not part and self.reads_sparse(node.body):
            contraction = self.product_with_sparse(factors, node.over)
            if contraction is not None:
                return contraction
            body = self.sparse_value(node.body)
            if isinstance(body, LabeledSparse):
                folded = body.fold(reducer(node.op), node.over)
                return folded if folded.array.size > MAX_POINTS else _labeled_dense(folded)
        if len(factors) > 1:
            value = _sum_of_products(node, [self.dense_value(f, part) for f in factors])
            if value is not None:
                return value
        kept = tuple(n for n in free_indices(node.body) if n not in node.over)
        space = (*kept, *node.over)
        lengths = [len(range(*part[n].indices(self.sizes[n]))) if n in part else self.sizes[n] for n in space]
        if math.prod(lengths) > MAX_POINTS:
            return self.in_chunks(node, part, dict(zip(space, lengths, strict=True)))
        full = np.broadcast_to(self.dense_value(node.body, part).over(space), lengths)
        row = reducer(node.op)
        with np.errstate(all="ignore"):
            return LabeledArray(row.array.reduce(full, axis=tuple(range(len(kept), len(space))), initial=row.identity), kept)

    def product_with_sparse(self, factors: tuple[Expr, ...], over: tuple[str, ...]) -> Labeled | None:
        """Return the sum of the product of two factors over one index, where one is an access of a large sparse matrix and the other
        is of any form; None where `sparse_product` returns None."""
        if len(factors) != 2 or len(over) != 1 or set(free_indices(factors[0])) & set(free_indices(factors[1])) != set(over):
            return None
        if not any(isinstance(f, Access) and f.is_plain and self.reads_sparse(f) for f in factors):
            return None
        known = [value for factor in factors if (value := self.sparse_value(factor)) is not None]
        return sparse_product(known, over[0], MAX_POINTS) if len(known) == len(factors) else None

    def in_chunks(self, node: Reduce, part: Ranges, lengths: Mapping[str, int]) -> LabeledArray:
        """Evaluate a reduction in two halves of the first index with more than one coordinate, and put these together."""
        index, length = next((index, length) for index, length in lengths.items() if length > 1)
        start = part[index].start if index in part else 0
        middle, stop = start + length // 2, start + length
        halves = ({**part, index: slice(*ends)} for ends in ((start, middle), (middle, stop)))
        first, second = (_labeled_dense(self.reduction(node, half)) for half in halves)
        if index in node.over:
            with np.errstate(all="ignore"):
                return LabeledArray(reducer(node.op).array(first.array, second.over(first.names)), first.names)
        return LabeledArray(np.concatenate((first.array, second.over(first.names)), axis=first.names.index(index)), first.names)


def _factors(node: Expr) -> tuple[Expr, ...]:
    """Return the factors of a product that is summed up. It is not rounded before, as in a product of tiles."""
    product = node.args[0] if rounds(node, "f32") else node
    if isinstance(product, Apply) and product.op == "mul":
        return tuple(f for arg in product.args for f in _factors(arg))
    return (node,)


def _sum_of_products(node: Reduce, factors: list[LabeledArray]) -> LabeledArray | None:
    """Return the contraction of the factors, or None where an infinity or NaN appears: there the annihilators of the table decide."""
    names = union(*factors)
    kept = tuple(n for n in names if n not in node.over)
    subscripts = ",".join(_letters(f.names, names) for f in factors) + "->" + _letters(kept, names)
    with np.errstate(all="ignore"):
        result = np.asarray(np.einsum(subscripts, *(f.array for f in factors), optimize="greedy")) + 0.0  # no -0
    return LabeledArray(result, kept) if np.isfinite(result).all() else None


def _letters(names: tuple[str, ...], alphabet: tuple[str, ...]) -> str:
    """Return subscripts for `np.einsum`: for each name the letter at its position in `alphabet`."""
    return "".join(string.ascii_letters[alphabet.index(n)] for n in names)


def _input(name: str, shape: tuple[int, ...], arrays: Mapping[str, InputArray]) -> Operand:
    if name not in arrays:
        raise ProgramError(f"no array for input `{name}`", hint=did_you_mean(name, arrays))
    source = arrays[name]
    operand: Operand
    if isinstance(source, SparseArray):
        operand = source
    else:
        operand = SparseArray.of_scipy(source) if is_scipy(source) else np.asarray(source, dtype=np.float64)
    if operand.shape != shape:
        raise ProgramError(f"input `{name}` has the shape {list(shape)}, its array {list(operand.shape)}")
    return operand
