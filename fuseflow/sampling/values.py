"""The values of a region that is sampled: the interpreter computes them, and the counting estimate says where they are stored."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.blocked_storage import tensors_to_elements
from fuseflow.einsum.interpret import MAX_POINTS, evaluate_operands
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.sparse_arrays import Operand, SparseArray, flat_positions
from fuseflow.einsum.tensor_arrays import to_operand
from fuseflow.errors import SamplingError
from fuseflow.estimate.counted.patterns import Pattern
from fuseflow.fusion.region_program import as_program
from fuseflow.lower.regions import CompiledRegion
from fuseflow.samml.nodes import TensorDecl
from fuseflow.sampling.restriction import restrict_region
from fuseflow.tensors import DTYPES, Tensor, pack
from fuseflow.tensors.blocks import Block, split_into_tiles, to_blocks
from fuseflow.tensors.levels.base import Fibers, Ints


def values_refusal(region: CompiledRegion) -> str | None:
    """Return why the values of a region cannot be interpreted as they are stored, in words that follow its name; None if they can."""
    fused = region.fused
    for index, size in fused.blocks.items():
        if fused.sizes[index] % size:
            return f"pads its last block: `{index}` has {fused.sizes[index]} coordinates in blocks of {size}"
    return None


def interpret_results(region: CompiledRegion, memory: Mapping[str, Tensor], patterns: Mapping[str, Pattern]) -> dict[str, Tensor]:
    """Return the results of a region as it would store them. `patterns` says where, for each result whose streams could be counted.

    A result whose zeros are dropped stores what is not zero. Raises `SamplingError` for any other result without a pattern.
    """
    program = as_program(region.fused)
    computed = _evaluated(program, {t.name: memory[t.name] for t in program.inputs})
    results = {}
    for result in region.fused.results:
        decl, block = region.graph.declared[result.name], result.tensor.block
        if result.name in patterns:
            results[result.name] = _at_pattern(computed[result.name], decl, block, patterns[result.name])
        elif result.drop_zeros:
            type = DTYPES[decl.dtype]
            dense = type.hold(_dense(computed[result.name]))
            results[result.name] = to_blocks(pack(dense, decl.format, decl.fill, type=type), block)
        else:
            raise SamplingError(
                f"result `{result.name}` of region `{region.name}` is too large to be counted, so nobody knows where it is stored",
                hint="fuse less, or run it without a sample",
            )
    return results


def interpret_rows(region: CompiledRegion, memory: Mapping[str, Tensor], rows: Ints) -> dict[str, npt.NDArray[np.generic]]:
    """Return the results of a region without blocks at some coordinates of its sampled index, as dense arrays. What does not have that
    index is computed as a whole, but nothing that is as long as a result."""
    restricted = restrict_region(region.fused, len(rows))
    program = as_program(restricted.fused)
    computed = _evaluated(program, restricted.read([t.name for t in program.inputs], memory, rows))
    types = {r.name: DTYPES[region.graph.declared[r.name].dtype] for r in region.fused.results}
    return {name: type.hold(_dense(computed[name])) for name, type in types.items()}


def _evaluated(program: Program, read: Mapping[str, Tensor]) -> dict[str, Operand]:
    """Return the outputs of a program on what it reads."""
    elements = tensors_to_elements(program.declared, read)
    operands = {name: to_operand(tensor, MAX_POINTS) for name, tensor in elements.items()}
    return evaluate_operands(program, operands, outputs_only=True)


def _at_pattern(computed: Operand, decl: TensorDecl, block: Block, pattern: Pattern) -> Tensor:
    """Return the tensor that stores these values where a pattern says."""
    type = DTYPES[decl.dtype]
    if decl.format.all_dense and not block:  # every element is stored, and none has to be looked up
        return pack(type.hold(_dense(computed)), decl.format, decl.fill, type=type)
    levels, columns, fibers = list[Fibers](), list[npt.NDArray[np.int64]](), np.zeros(1, dtype=np.int64)
    for level, kind, below in zip(pattern.levels, decl.format.levels, pattern.below, strict=True):
        owner, at = level.expanded(fibers)
        ends = np.searchsorted(owner, np.arange(len(fibers) + 1)).astype(np.int64)
        levels.append(kind.append(level.size, len(fibers), ends, level.crd[at]))
        columns = [*(column[owner] for column in columns), level.crd[at]]
        fibers = np.zeros(len(at), dtype=np.int64) if below is None else below[at]
    points = np.zeros((len(decl.shape), len(fibers)), dtype=np.int64)
    for d, column in zip(decl.format.order, columns, strict=True):
        points[d] = column
    values = type.hold(_values_at(computed, points, block, decl.fill))
    return Tensor(decl.shape, decl.format, tuple(levels), values, decl.fill, type)


def _values_at(computed: Operand, points: npt.NDArray[np.int64], block: Block, fill: float) -> npt.NDArray[np.float64]:
    """Return the values, or the tiles of values, at these points."""
    if block:
        return np.asarray(split_into_tiles(_dense(computed), block, fill)[tuple(points)], dtype=np.float64)
    if isinstance(computed, SparseArray):
        return computed.at(flat_positions(computed.shape, points))
    return np.asarray(computed[tuple(points)], dtype=np.float64).reshape(points.shape[1])


def _dense(computed: Operand) -> npt.NDArray[np.float64]:
    return computed.toarray() if isinstance(computed, SparseArray) else computed
