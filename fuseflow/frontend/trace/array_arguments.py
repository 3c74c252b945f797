"""NumPy and scipy arrays as arguments of PyTorch models: each becomes the PyTorch tensor of the same layout and type."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from fuseflow.errors import UsageError
from fuseflow.frontend.foreign_errors import quiet
from fuseflow.tensors.pack import is_scipy

_LAYOUTS = {"csr": torch.sparse_csr, "csc": torch.sparse_csc, "bsr": torch.sparse_bsr}
"""The PyTorch layout of each format of scipy that PyTorch has as it is."""


def with_tensors(arguments: Any) -> Any:
    """Return arguments with PyTorch tensors in the place of NumPy and scipy arrays, in lists, tuples and dictionaries, too.

    CSR, CSC and BSR stay what they are, and any other sparse array becomes COO; entries at one place are added up. A dense array is
    copied, and a scalar of NumPy becomes a number. Types are kept: an array of 64-bit floats does not fit a layer of 32-bit ones.

    Raise `UsageError` for an array whose elements PyTorch does not have.
    """
    if not any(_is_array(leaf) for leaf in pytree.tree_leaves(arguments)):
        return arguments
    return pytree.tree_map(lambda leaf: _as_tensor(leaf) if _is_array(leaf) else leaf, arguments)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) or is_scipy(value)


def _as_tensor(array: Any) -> Any:
    if isinstance(array, np.generic):
        return array.item()
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:
        hint = "pass integers, truth values or real numbers of at most 64 bits"
        raise UsageError(f"an argument is an array with elements of type `{array.dtype}`", hint=hint)
    if isinstance(array, np.ndarray):
        return torch.from_numpy(np.array(array, order="C", subok=False))
    return _as_sparse_tensor(array)


def _as_sparse_tensor(array: Any) -> torch.Tensor:
    layout = _LAYOUTS.get(array.format) if array.ndim == 2 else None
    if layout is None:
        coo = array.tocoo()
        places = torch.from_numpy(np.stack(coo.coords).astype(np.int64))
        return torch.sparse_coo_tensor(places, torch.from_numpy(coo.data.copy()), coo.shape, check_invariants=True).coalesce()
    array = array.copy()
    array.sum_duplicates()
    above, below, values = (torch.from_numpy(part) for part in (array.indptr, array.indices, array.data))
    with quiet():
        return torch.sparse_compressed_tensor(above, below, values, array.shape, layout=layout, check_invariants=True)
