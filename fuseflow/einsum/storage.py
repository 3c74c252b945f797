"""Storage of tensors: as memory has them, in the blocks of their types, and as single elements."""

from __future__ import annotations

from collections.abc import Mapping

from fuseflow.einsum.nodes import TensorType
from fuseflow.tensors import Tensor
from fuseflow.tensors.blocks import from_blocks, to_blocks


def in_blocks(types: Mapping[str, TensorType], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of single elements as they are stored."""
    return {name: to_blocks(tensor, types[name].block) if name in types else tensor for name, tensor in tensors.items()}


def in_elements(types: Mapping[str, TensorType], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as they are stored, as tensors of single elements: what is no data is left out."""
    return {
        name: from_blocks(tensor, types[name].shape, types[name].block) if name in types and types[name].block else tensor
        for name, tensor in tensors.items()
    }
