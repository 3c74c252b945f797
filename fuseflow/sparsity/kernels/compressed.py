"""Products of matrices that are stored by rows, or that can be read by rows without much work."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from fuseflow.sparsity.kernels.product_kernel import ProductKernel, working_type
from fuseflow.sparsity.layouts.compressed import CscTensor, CsrTensor, majors, positions_of
from fuseflow.sparsity.layouts.coo import CooTensor
from fuseflow.sparsity.layouts.ell import EllTensor
from fuseflow.sparsity.layouts.n_of_m import NMTensor
from fuseflow.sparsity.places.listing import nm_coordinates


@dataclass(frozen=True, slots=True)
class RowMatrix:
    """A matrix by rows: where each row begins, and the columns and values of its entries. If it is `flipped`, the stored matrix
    is its transpose."""

    positions: torch.Tensor
    columns: torch.Tensor
    values: torch.Tensor
    shape: tuple[int, int]
    flipped: bool = False


def row_kernel(rows: Callable[[Any], RowMatrix], field: str = "values") -> ProductKernel:
    """Return the products of a storage class. `rows` makes a matrix by rows of a storage, and `field` names the field with its
    values. Values stay in order."""

    def multiply(storage: Any, dense: torch.Tensor) -> torch.Tensor:
        matrix = rows(storage)
        return _multiply(transposed(matrix) if matrix.flipped else matrix, dense)

    def multiply_transposed(storage: Any, dense: torch.Tensor) -> torch.Tensor:
        matrix = rows(storage)
        return _multiply(matrix if matrix.flipped else transposed(matrix), dense)

    def sample(storage: Any, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        matrix = rows(storage)
        values = _sample(matrix, right, left) if matrix.flipped else _sample(matrix, left, right)
        return values.view(getattr(storage, field).shape)

    return ProductKernel(multiply, multiply_transposed, sample)


def transposed(matrix: RowMatrix) -> RowMatrix:
    """Return the transpose of a matrix by rows."""
    small = max(matrix.shape) < 2**15  # Numbers of 16 bits are sorted faster.
    order = (matrix.columns.to(torch.int16) if small else matrix.columns).argsort(stable=True)
    counts = torch.bincount(matrix.columns, minlength=matrix.shape[1])
    positions = positions_of(counts).to(matrix.positions.dtype)
    columns = majors(matrix.positions, len(matrix.values)).to(matrix.columns.dtype)[order]
    return RowMatrix(positions, columns, matrix.values[order], matrix.shape[::-1], not matrix.flipped)


def _multiply(matrix: RowMatrix, dense: torch.Tensor) -> torch.Tensor:
    """Return the product of a matrix by rows, which is not transposed, with a dense matrix."""
    if not matrix.values.numel() or not dense.shape[1]:
        return dense.new_zeros(matrix.shape[0], dense.shape[1])
    work = working_type(dense.dtype)
    product: torch.Tensor = _csr(replace(matrix, values=matrix.values.to(work))).matmul(dense.to(work))
    return product.to(dense.dtype)


def _sample(matrix: RowMatrix, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the entries of `left @ right.T` at the places of a matrix by rows."""
    work = working_type(left.dtype)
    values = matrix.values.to(work)
    if not values.numel() or not left.shape[1]:
        return torch.zeros_like(matrix.values)
    places = _csr(replace(matrix, values=torch.zeros_like(values)))
    product: torch.Tensor = torch.sparse.sampled_addmm(
        places, left.to(work).contiguous(), right.to(work).contiguous().T, beta=0.0
    )
    sampled: torch.Tensor = product.values().to(left.dtype)
    return sampled


def _csr(matrix: RowMatrix) -> torch.Tensor:
    return torch.sparse_csr_tensor(matrix.positions, matrix.columns, matrix.values, matrix.shape, check_invariants=False)


def _matrix_shape(shape: tuple[int, ...], flipped: bool = False) -> tuple[int, int]:
    rows, columns = shape
    return (columns, rows) if flipped else (rows, columns)


def _csr_rows(storage: CsrTensor) -> RowMatrix:
    return RowMatrix(storage.positions, storage.columns, storage.values, _matrix_shape(storage.shape))


def _csc_rows(storage: CscTensor) -> RowMatrix:
    return RowMatrix(storage.positions, storage.rows, storage.values, _matrix_shape(storage.shape, True), True)


def _coo_rows(storage: CooTensor) -> RowMatrix:
    shape = _matrix_shape(storage.shape)
    counts = torch.bincount(storage.indices[0], minlength=shape[0])
    positions = positions_of(counts).to(storage.indices.dtype)
    return RowMatrix(positions, storage.indices[1].contiguous(), storage.values, shape)


def _ell_rows(storage: EllTensor) -> RowMatrix:
    rows, width = storage.values.shape
    return RowMatrix(
        _equal_rows(rows, width, storage.columns),
        storage.columns.reshape(-1),
        storage.values.reshape(-1),
        _matrix_shape(storage.shape),
    )


def _nm_rows(storage: NMTensor) -> RowMatrix:
    flipped = storage.dim == 0
    shape = _matrix_shape(storage.shape, flipped)
    coordinates = nm_coordinates(storage)
    columns = (coordinates.clamp_(max=max(0, shape[1] - 1)) if shape[1] % storage.m else coordinates).reshape(-1)
    positions = _equal_rows(shape[0], storage.values[0].numel() if shape[0] else 0, columns)
    return RowMatrix(positions, columns, storage.values.reshape(-1), shape, flipped)


def _equal_rows(rows: int, width: int, columns: torch.Tensor) -> torch.Tensor:
    return torch.arange(rows + 1, dtype=columns.dtype, device=columns.device) * width


def _without_notice() -> None:
    """Make a first matrix by rows, to use up the notice of PyTorch that such matrices are new. Users do not need it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0]), (1, 1))


_without_notice()

ROW_KERNELS: dict[type, ProductKernel] = {
    CsrTensor: row_kernel(_csr_rows),
    CscTensor: row_kernel(_csc_rows),
    CooTensor: row_kernel(_coo_rows),
    EllTensor: row_kernel(_ell_rows),
    NMTensor: row_kernel(_nm_rows),
}
"""The products of storage classes that have a form by rows."""
