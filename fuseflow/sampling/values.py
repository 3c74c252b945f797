"""The values of a region that is sampled: the interpreter computes them, and the counting estimate says at which coordinates they
are stored."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.blocks import tensors_to_elements
from fuseflow.einsum.interpret import evaluate_operands, operands_of
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.sparse_arrays import Operand, SparseArray, dense, flat_positions
from fuseflow.errors import SamplingError
from fuseflow.estimate.counted.patterns import Pattern, outermost_part
from fuseflow.fusion.region import RegionOutput
from fuseflow.fusion.region_program import as_program
from fuseflow.fusion.tree import selections
from fuseflow.lower.regions import CompiledRegion
from fuseflow.samml.nodes import TensorDecl
from fuseflow.sampling.restriction import coordinate_count, refusal, restrict_region, sampled_index
from fuseflow.tensors import DTYPES, Tensor, pack
from fuseflow.tensors.blocks import Block, split_into_tiles, to_blocks
from fuseflow.tensors.levels.base import Fibers, Ints
from fuseflow.tensors.restriction import concatenate

PIECE_ELEMENTS = 1 << 23
"""The most elements of results and of operands that the interpreter handles at a time. It needs some ten words of memory for
each."""


def values_refusal(region: CompiledRegion) -> str | None:
    """Return why the values of a region cannot be interpreted as they are stored, in words that follow its name; None if they can."""
    fused = region.fused
    for index, size in fused.blocks.items():
        if fused.sizes[index] % size:
            return f"pads its last block: `{index}` has {fused.sizes[index]} coordinates in blocks of {size}"
    return None


def interpret_results(
    region: CompiledRegion, memory: Mapping[str, Tensor], patterns: Mapping[str, Pattern], wide: bool = False
) -> dict[str, Tensor]:
    """Return the results of a region in the form in which it would store them. `patterns` has the stored coordinates of each
    result whose streams could be counted. With `wide`, all is computed in 64 bits.

    A result whose zeros are dropped stores what is not zero. Raises `SamplingError` for any other result without a pattern.
    """
    for result in region.fused.results:
        if result.name not in patterns and not result.drop_zeros:
            raise _unknown_places(region, result.name)
    bounds = _piece_bounds(region, memory, patterns)
    if not bounds:
        program = as_program(region.fused)
        computed = _evaluated(program, {t.name: memory[t.name] for t in program.inputs}, {}, wide)
        return {r.name: _stored(region, r, computed[r.name], patterns.get(r.name)) for r in region.fused.results}
    parts: dict[str, list[Tensor]] = {result.name: [] for result in region.fused.results}
    whole: dict[str, Operand] = {}
    for low, high in itertools.pairwise(bounds):
        computed = _evaluated_rows(region, memory, np.arange(low, high), whole, wide)
        for result in region.fused.results:
            pattern = patterns.get(result.name)
            piece = None if pattern is None else outermost_part(pattern, low, high)
            parts[result.name].append(_stored(region, result, computed[result.name], piece))
    return {name: concatenate(parts.pop(name)) for name in list(parts)}


def _unknown_places(region: CompiledRegion, name: str) -> SamplingError:
    """Return the error for a result whose stored coordinates are not known before it is computed."""
    kept = [selection.label for selection in selections(*region.fused.trees)]
    why = f"`{kept[0]}` keeps entries by their values" if kept else "it is too large to be counted"
    return SamplingError(
        f"nobody knows where the result `{name}` of region `{region.name}` is stored before it is computed: {why}",
        hint="fuse less, or run it without a sample",
    )


def _piece_bounds(region: CompiledRegion, memory: Mapping[str, Tensor], patterns: Mapping[str, Pattern]) -> list[int]:
    """Return the bounds of the pieces of the sampled index that the interpreter handles one after the other, so that it has a
    small part of a large region in memory at a time. Empty for a region that is one piece: a small one, one that cannot be
    sampled, one with blocks, and one with a result that is not stored row by row."""
    fused = region.fused
    if fused.blocks or refusal(region) is not None:
        return []
    index, count = sampled_index(fused), coordinate_count(fused)
    outermost = all(r.tensor.format is not None and r.indices[r.tensor.format.order[0]] == index for r in fused.results)
    if not outermost:
        return []
    results = (patterns[r.name].elements if r.name in patterns else math.prod(r.tensor.shape) for r in fused.results)
    read = {view.tensor for view in fused.views if index in view.indices}
    elements = sum(results) + sum(memory[name].stored for name in read if name in memory)
    pieces = min(count, -(-elements // PIECE_ELEMENTS))
    return [count * k // pieces for k in range(pieces + 1)] if pieces > 1 else []


def _stored(region: CompiledRegion, result: RegionOutput, computed: Operand, pattern: Pattern | None) -> Tensor:
    """Return a result, or a piece of it, in the form in which the region stores it. `computed` has its values."""
    decl, block = region.graph.declared[result.name], result.tensor.block
    if pattern is not None:
        return _at_pattern(computed, decl, block, pattern)
    type = DTYPES[decl.dtype]
    return to_blocks(pack(type.hold(dense(computed)), decl.format, decl.fill, type=type), block)


def interpret_rows(
    region: CompiledRegion, memory: Mapping[str, Tensor], rows: Ints, wide: bool = False
) -> dict[str, npt.NDArray[np.generic]]:
    """Return the results of a region without blocks at some coordinates of its sampled index, as dense arrays. Operands without
    that index are computed whole, but no array is as long as a result."""
    computed = _evaluated_rows(region, memory, rows, {}, wide)
    types = {r.name: DTYPES[region.graph.declared[r.name].dtype] for r in region.fused.results}
    return {name: type.hold(dense(computed[name])) for name, type in types.items()}


def _evaluated_rows(
    region: CompiledRegion, memory: Mapping[str, Tensor], rows: Ints, whole: dict[str, Operand], wide: bool
) -> dict[str, Operand]:
    """Return the results of a region at some coordinates of its sampled index. Operands without it are kept in `whole`."""
    restricted = restrict_region(region.fused, len(rows))
    program = as_program(restricted.fused)
    names = [t.name for t in program.inputs]
    read = restricted.read([name for name in names if name not in whole], memory, rows)
    unrestricted = {name: tensor for name, tensor in read.items() if name not in restricted.tensors}
    whole |= _operands(program, unrestricted)
    return _evaluated(program, {name: tensor for name, tensor in read.items() if name in restricted.tensors}, whole, wide)


def _evaluated(program: Program, read: Mapping[str, Tensor], operands: Mapping[str, Operand], wide: bool) -> dict[str, Operand]:
    """Return the outputs of a program that reads some tensors, and others as `operands` of the interpreter."""
    return evaluate_operands(program, {**operands, **_operands(program, read)}, outputs_only=True, wide=wide)


def _operands(program: Program, read: Mapping[str, Tensor]) -> dict[str, Operand]:
    """Return tensors as operands of the interpreter."""
    elements = tensors_to_elements(program.declared, read)
    return operands_of(program, elements)


def _at_pattern(computed: Operand, decl: TensorDecl, block: Block, pattern: Pattern) -> Tensor:
    """Return the tensor that stores computed values at the coordinates of a pattern."""
    type = DTYPES[decl.dtype]
    if decl.format.all_dense and not block:  # every element is stored, and none has to be looked up
        return pack(type.hold(dense(computed)), decl.format, decl.fill, type=type)
    levels, columns, fibers = list[Fibers](), list[npt.NDArray[np.int64]](), np.zeros(1, dtype=np.int64)
    for level, kind, below in zip(pattern.levels, decl.format.levels, pattern.below, strict=True):
        owner, at = level.expanded(fibers)
        ends = np.searchsorted(owner, np.arange(len(fibers) + 1)).astype(np.int64)
        levels.append(kind.append(level.size, len(fibers), ends, level.crd[at]))
        columns = [*(column[owner] for column in columns), level.crd[at]]
        fibers = np.zeros(len(at), dtype=np.int64) if below is None else below[at]
    points = np.zeros((len(decl.shape), len(fibers)), dtype=np.int64)
    shape = list(decl.shape)  # of the pattern: it may be a part of what is declared
    for d, column, level in zip(decl.format.order, columns, pattern.levels, strict=True):
        points[d], shape[d] = column, level.size
    values = type.hold(_values_at(computed, points, block, decl.fill))
    return Tensor(tuple(shape), decl.format, tuple(levels), values, decl.fill, type)


def _values_at(computed: Operand, points: npt.NDArray[np.int64], block: Block, fill: float) -> npt.NDArray[np.float64]:
    """Return the values, or the tiles of values, at these points."""
    if block:
        return np.asarray(split_into_tiles(dense(computed), block, fill)[tuple(points)], dtype=np.float64)
    if isinstance(computed, SparseArray):
        return computed.at(flat_positions(computed.shape, points))
    return np.asarray(computed[tuple(points)], dtype=np.float64).reshape(points.shape[1])
