"""Gradients at the places of stored tensors."""

from __future__ import annotations

from typing import Any

import torch

from fuseflow.sparsity.dispatch.sparsification import dense_of, format_of
from fuseflow.sparsity.places.listing import known_places


def values_at(storage: Any, tensor: torch.Tensor) -> torch.Tensor:
    """Return the entries of a tensor, dense or stored, at the places of a storage, in the shape of its values."""
    places = known_places(storage)
    if format_of(tensor) is type(storage):
        other = tensor.wrapped_tensor  # type: ignore[attr-defined]
        if places.agree(storage, other):
            return places.values(other)
    return places.gather(storage, dense_of(tensor))
