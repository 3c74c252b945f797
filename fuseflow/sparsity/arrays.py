"""Tensors of PyTorch as arrays, for rules that are written on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import torch


def values_of(tensor: torch.Tensor) -> npt.NDArray[Any]:
    """Return the elements of a dense tensor as an array. NumPy has no bfloat16, so that its numbers become float32, which is exact."""
    import torch

    held = tensor.detach().cpu()
    return (held.float() if held.dtype is torch.bfloat16 else held).numpy()


def mask_of(array: npt.ArrayLike, tensor: torch.Tensor) -> torch.Tensor:
    """Return an array of truth values, or a single truth value, as a tensor on the device of `tensor`."""
    import torch

    return torch.from_numpy(np.asarray(array)).to(tensor.device)
