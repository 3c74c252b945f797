"""Conversion of scipy and NumPy matrices to PyTorch tensors in f32."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from fuseflow.frontend.datasets.graph_data import Matrix

if TYPE_CHECKING:
    import torch


def torch_matrix(matrix: Matrix) -> torch.Tensor:
    """Return a matrix as a PyTorch tensor in f32, in CSR layout or dense as the matrix is."""
    import torch

    if not isinstance(matrix, sparse.csr_array):
        return torch.from_numpy(np.ascontiguousarray(matrix, dtype=np.float32))

    def index(array: Any) -> torch.Tensor:
        return torch.from_numpy(array.astype(np.int64))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # PyTorch warns that its support of CSR is in beta state.
        return torch.sparse_csr_tensor(
            index(matrix.indptr),
            index(matrix.indices),
            torch.from_numpy(matrix.data),
            size=matrix.shape,
            dtype=torch.float32,
            check_invariants=False,
        )
