"""The values of regions that repeat (`sim.signature`): the dense interpreter computes them, without a simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.verify import shapes
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.region_program import as_program
from fuseflow.tensors import Tensor

LARGEST_ARRAY = 1 << 27
"""Elements of a dense array in which a repeat may be computed (1 GB): where more are needed, it is simulated."""


def interpret_repeat(region: FusedRegion, read: Mapping[str, Tensor], patterns: Mapping[str, Tensor]) -> dict[str, Tensor] | None:
    """The results of a region, by the dense interpreter; `patterns` are tensors that store what they store. None if that takes arrays that
    are too large."""
    program = as_program(region)
    if _largest_array(program) > LARGEST_ARRAY or region.blocks:
        return None
    results = evaluate(program, {t.name: read[t.name].to_dense() for t in program.inputs})
    found = {}
    for name, like in patterns.items():
        stored = (
            results[name].transpose(like.format.order).ravel()
            if like.format.all_dense
            else results[name][tuple(like.coordinates())]
        )
        found[name] = Tensor(like.shape, like.format, like.levels, stored.astype(like.dtype), like.fill)
    return found


def _largest_array(program: Program) -> int:
    """Elements of the largest array that the interpreter makes: a tensor, or the operand of a reduction, which it takes in parts."""
    return max(math.prod(shape) for shape in shapes(program).values())
