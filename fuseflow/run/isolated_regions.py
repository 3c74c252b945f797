"""Runs in which every region reads dense random stand-ins for the results of other regions, as in published measurements without
fusion.

Nothing sparse passes from region to region then. The outputs of the model mean nothing, and each region is checked alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.blocks import tensors_to_elements
from fuseflow.einsum.interpret import evaluate_operands, operands_of
from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.lower.regions import CompiledRegion
from fuseflow.run.check import Check, check_program
from fuseflow.tensors import Tensor
from fuseflow.tensors.blocks import Block, split_into_tiles, tile_shape

EACH_REGION = "dense interpreter, each region by itself"
"""The reference of the checks of regions."""
ZERO_SHARE = 0.6
"""The share of the elements of a stand-in that are zero. They are stored like the others."""


def stand_in(type: TensorType, computed: Tensor, seed: int) -> Tensor:
    """Return a tensor of random elements that is stored at the same coordinates as the computed one. The elements depend on its
    name and the seed.

    The padding of blocks keeps its values, because readers rely on them (`einsum.blocks`).
    """
    rng, shape = np.random.default_rng([seed, zlib.crc32(type.name.encode())]), type.shape
    numbers = rng.integers(1, 255, shape) if computed.values.dtype.kind == "i" else 1 - rng.random(shape)
    numbers = np.where(rng.random(shape) < ZERO_SHARE, 0, numbers).astype(computed.values.dtype)
    inside = _stored(np.ones(shape, dtype=np.bool_), type.block, computed)
    return replace(computed, values=np.where(inside, _stored(numbers, type.block, computed), computed.values))


def _stored(elements: npt.NDArray[np.generic], block: Block, like: Tensor) -> npt.NDArray[np.generic]:
    """Return the elements of a dense array at the coordinates that the tensor `like` stores, as single elements or as tiles."""
    dense = split_into_tiles(elements, block, 0) if tile_shape(block) else elements
    stored: npt.NDArray[np.generic] = dense[tuple(like.coordinates())]
    return stored


def check_region(
    program: Program, region: CompiledRegion, memory: Mapping[str, Tensor], outputs: Mapping[str, Tensor], wide: bool = False
) -> Check | None:
    """Check the tensors that a region wrote (`outputs`) against the dense interpreter on the tensors in `memory`. None for a
    copy, whose readers are checked instead. If `wide`, all is computed in 64 bits."""
    einsums = tuple(e for e in program.einsums if e.name in region.einsums)
    if not einsums:
        return None
    results = {e.name for e in einsums}
    read = dict.fromkeys(name for e in einsums for name in e.operands if name not in results)
    read |= dict.fromkeys(t.like for t in program.tensors if t.like and (t.name in read or t.name in results))
    named = (*read, *(e.name for e in einsums))  # the declaration of a result may alone give a broadcast its extents
    declared = tuple(program.declared[name] for name in named)
    part = Program(declared, einsums, tuple(n for n in outputs if n in results))
    operands = tensors_to_elements(program.declared, {name: memory[name] for name in read})
    arrays = operands_of(part, operands)
    expected = evaluate_operands(part, arrays, wide=wide)
    written = tensors_to_elements(program.declared, outputs)
    return check_program(part, lambda: arrays, written, {name: expected[name] for name in part.outputs}, "")
