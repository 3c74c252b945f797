"""Tensors of PyTorch as arrays, for rules that are written on arrays, and how much of an array a mask keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fuseflow.errors import SparsityError

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


def energy(array: npt.ArrayLike, mask: npt.ArrayLike) -> float:
    """Return the share of the magnitudes of a tensor that a mask keeps: kept L1 over L1, added in float64.

    It is 1 for a tensor of zeros alone, and NaN for one with elements that are not finite. The padding of a layout does not
    count, since masks have the shape of the tensor.

    >>> energy([3.0, -1.0, 0.0, 4.0], [True, False, True, True])
    0.875
    """
    magnitudes, kept = np.abs(np.asarray(array, dtype=np.float64)), np.asarray(mask, dtype=bool)
    if magnitudes.shape != kept.shape:
        raise SparsityError(
            f"a mask of shape {kept.shape} does not say what is kept of a tensor of shape {magnitudes.shape}",
            hint="give a mask of the shape of the tensor",
        )
    largest = magnitudes.max(initial=0.0)
    if largest == 0:
        return 1.0
    if not np.isfinite(largest):
        return float("nan")
    relative: npt.NDArray[Any] = magnitudes / largest  # whose sum does not overflow
    return float(np.where(kept, relative, 0.0).sum() / relative.sum())
