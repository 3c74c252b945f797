"""The values of regions that repeat an earlier one (`sim.signature`). The dense interpreter computes them without a simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.verify import shapes
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.region_program import as_program
from fuseflow.tensors import Tensor

LARGEST_ARRAY = 1 << 27
"""The most elements of a dense array (1 GB) in which a repeated region may be computed. If more are needed, it is simulated."""


def interpret_repeat(
    region: FusedRegion, read: Mapping[str, Tensor], patterns: Mapping[str, Tensor], wide: bool
) -> dict[str, Tensor] | None:
    """Compute the results of a region with the dense interpreter. Each stores the coordinates of the tensor of its name in
    `patterns`. If `wide`, all is computed in 64 bits.

    None if that takes arrays that are too large, or if the region has blocks.
    """
    program = _program_over_memory(region)
    if _largest_array(program) > LARGEST_ARRAY or region.blocks:
        return None
    results = evaluate(program, {t.name: read[t.name].to_dense() for t in program.inputs}, wide=wide)
    tensors = {}
    for name, pattern in patterns.items():
        values = (
            results[name].transpose(pattern.format.order).ravel()
            if pattern.format.all_dense
            else results[name][tuple(pattern.coordinates())]
        )
        tensors[name] = Tensor(
            pattern.shape, pattern.format, pattern.levels, pattern.element_type.hold(values), pattern.fill, pattern.type
        )
    return tensors


def _program_over_memory(region: FusedRegion) -> Program:
    """Return the region as a program that reads the same tensors as its graph: permuted copies are in memory, and their sources
    need not be."""
    program, copies = as_program(region), {copy.name for copy in region.copies}
    einsums = tuple(e for e in program.einsums if e.name not in copies)
    used = {name for e in einsums for name in (e.name, *e.operands)}
    return replace(program, einsums=einsums, tensors=tuple(t for t in program.tensors if t.name in used))


def _largest_array(program: Program) -> int:
    """Return the number of elements of the largest array that the interpreter makes: a tensor, or an operand of a reduction."""
    return max(math.prod(shape) for shape in shapes(program).values())
