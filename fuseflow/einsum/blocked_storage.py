"""The storage of tensors, either in the blocks of their types, as memory holds them, or as single elements."""

from __future__ import annotations

from collections.abc import Mapping

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import OverfullError
from fuseflow.tensors import Tensor
from fuseflow.tensors.blocks import from_blocks, to_blocks


def tensors_to_blocks(types: Mapping[str, TensorType], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors of single elements in the blocks in which they are stored."""

    def blocked(name: str, tensor: Tensor) -> Tensor:
        with OverfullError.naming(name):
            return to_blocks(tensor, types[name].block) if name in types else tensor

    return {name: blocked(name, tensor) for name, tensor in tensors.items()}


def tensors_to_elements(types: Mapping[str, TensorType], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors that are stored in blocks as tensors of single elements. The padding of blocks is left out."""
    return {
        name: from_blocks(tensor, types[name].shape, types[name].block) if name in types and types[name].block else tensor
        for name, tensor in tensors.items()
    }
