"""Products of stored matrices with dense ones: of matrices that can be read by rows without much work, and of blocks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from fuseflow.sparsity.dispatch.registry import register_conversion
from fuseflow.sparsity.entry_positions import known_places
from fuseflow.sparsity.layouts.layout import DenseTensor, MaskedSparseTensor
from fuseflow.sparsity.layouts.n_of_m import GroupedNMTensor, NMTensor
from fuseflow.sparsity.layouts.sparse import BcsrTensor, CooTensor, CscTensor, CsrTensor, EllTensor, majors, positions_of

_AT_ONCE = 1 << 20
"""How many elements of the dense matrix are copied at once, so that they stay near the processor."""


@dataclass(frozen=True, slots=True)
class ProductKernel:
    """The products of a stored matrix P, which is [m, k], with dense matrices.

    `multiply` returns P @ X for X [k, b], `multiply_transposed` returns P.T @ X for X [m, b], and `sample` the entries of A @ B.T at the
    places of P, in the shape of its values, for A [m, b] and B [k, b].
    """

    multiply: Callable[[Any, torch.Tensor], torch.Tensor]
    multiply_transposed: Callable[[Any, torch.Tensor], torch.Tensor]
    sample: Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]


def working_type(dtype: torch.dtype) -> torch.dtype:
    """Return the type that products of a type are computed in: numbers of 16 bits are added up as float32."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


@dataclass(frozen=True, slots=True)
class RowMatrix:
    """A matrix by rows: where each row begins, and the columns and values of its entries. If it is `flipped`, the stored matrix
    is its transpose."""

    positions: torch.Tensor
    columns: torch.Tensor
    values: torch.Tensor
    shape: tuple[int, int]
    flipped: bool = False


def row_kernel(rows: Callable[[Any], RowMatrix]) -> ProductKernel:
    """Return the products of a storage class. `rows` makes a matrix by rows of a storage. Values stay in order."""

    def multiply(storage: Any, dense: torch.Tensor) -> torch.Tensor:
        matrix = rows(storage)
        return _multiply(transposed(matrix) if matrix.flipped else matrix, dense)

    def multiply_transposed(storage: Any, dense: torch.Tensor) -> torch.Tensor:
        matrix = rows(storage)
        return _multiply(matrix if matrix.flipped else transposed(matrix), dense)

    def sample(storage: Any, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        matrix = rows(storage)
        values = _sample(matrix, right, left) if matrix.flipped else _sample(matrix, left, right)
        return values.view(storage.values.shape)

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


def csr_rows(storage: CsrTensor) -> RowMatrix:
    return RowMatrix(storage.positions, storage.columns, storage.values, _matrix_shape(storage.shape))


def csc_rows(storage: CscTensor) -> RowMatrix:
    return RowMatrix(storage.positions, storage.rows, storage.values, _matrix_shape(storage.shape, True), True)


def coo_rows(storage: CooTensor) -> RowMatrix:
    shape = _matrix_shape(storage.shape)
    counts = torch.bincount(storage.indices[0], minlength=shape[0])
    positions = positions_of(counts).to(storage.indices.dtype)
    return RowMatrix(positions, storage.indices[1].contiguous(), storage.values, shape)


def _ell_rows(storage: EllTensor) -> RowMatrix:
    rows, width = storage.values.shape
    positions, columns = _equal_rows(rows, width, storage.columns), storage.columns.reshape(-1)
    return RowMatrix(positions, columns, storage.values.reshape(-1), _matrix_shape(storage.shape))


def _equal_rows(rows: int, width: int, columns: torch.Tensor) -> torch.Tensor:
    return torch.arange(rows + 1, dtype=columns.dtype, device=columns.device) * width


with warnings.catch_warnings():  # A first matrix by rows uses up the notice of PyTorch that such matrices are new.
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0]), (1, 1))


def _block_multiply(storage: BcsrTensor, dense: torch.Tensor) -> torch.Tensor:
    if _has_library(storage, dense):
        return _library_product(storage.positions, storage.columns, storage.values, storage.shape, dense)
    return _sum_of_blocks(storage.values, storage.columns, _block_rows(storage), dense, storage.shape[0])


def _block_multiply_transposed(storage: BcsrTensor, dense: torch.Tensor) -> torch.Tensor:
    if _has_library(storage, dense):
        order = storage.columns.argsort(stable=True)
        counts = torch.bincount(storage.columns, minlength=storage.shape[1] // storage.values.shape[2])
        positions = positions_of(counts).to(storage.positions.dtype)
        columns = _block_rows(storage)[order].to(storage.columns.dtype)
        return _library_product(positions, columns, storage.values.mT[order], storage.shape[::-1], dense)
    return _sum_of_blocks(storage.values.mT, _block_rows(storage), storage.columns, dense, storage.shape[1])


def _has_library(storage: BcsrTensor, dense: torch.Tensor) -> bool:
    """Return whether PyTorch has a fast product for such blocks: square ones, with several columns."""
    rows, columns = storage.values.shape[1:]
    return rows == columns > 1 and dense.shape[1] > 1 and bool(len(storage.values)) and dense.device.type == "cpu"


def _library_product(
    positions: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, shape: tuple[int, ...], dense: torch.Tensor
) -> torch.Tensor:
    work = working_type(dense.dtype)
    matrix = torch.sparse_bsr_tensor(positions, columns, values.to(work).contiguous(), shape, check_invariants=False)
    product: torch.Tensor = matrix.matmul(dense.to(work))
    return product.to(dense.dtype)


def _sum_of_blocks(
    values: torch.Tensor, source: torch.Tensor, target: torch.Tensor, dense: torch.Tensor, size: int
) -> torch.Tensor:
    """Return the product of blocks, `values`, with a dense matrix; it has `size` rows. `source` is the row of blocks of the dense
    matrix that each block is multiplied with, and `target` the row of blocks of the result that the product is added to."""
    height, width = values.shape[1:]
    work, batch = working_type(dense.dtype), dense.shape[1]
    parts = dense.to(work).reshape(len(dense) // width, width, batch)
    result = parts.new_zeros(size // height, height, batch)
    for piece in _pieces(len(values), width * batch):
        result.index_add_(0, target[piece], torch.bmm(values[piece].to(work), parts[source[piece]]))
    return result.view(size, batch).to(dense.dtype)


def _block_sample(storage: BcsrTensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    rows, columns = storage.values.shape[1:]
    work, batch, block_rows = working_type(left.dtype), left.shape[1], _block_rows(storage)
    lefts = left.to(work).reshape(len(left) // rows, rows, batch)
    rights = right.to(work).reshape(len(right) // columns, columns, batch)
    result = torch.empty_like(storage.values)
    for piece in _pieces(len(result), max(rows, columns) * batch):
        result[piece] = torch.bmm(lefts[block_rows[piece]], rights[storage.columns[piece]].mT).to(left.dtype)
    return result


def _block_rows(storage: BcsrTensor) -> torch.Tensor:
    return majors(storage.positions, len(storage.values))


def _pieces(blocks: int, elements: int) -> Iterator[slice]:
    """Return slices of all `blocks`, so that a slice copies at most `_AT_ONCE` elements of the dense matrix, `elements` for each
    block."""
    step = max(1, _AT_ONCE // max(1, elements))
    return (slice(start, start + step) for start in range(0, blocks, step))


KERNELS: dict[type, ProductKernel] = {
    CsrTensor: row_kernel(csr_rows),
    CscTensor: row_kernel(csc_rows),
    CooTensor: row_kernel(coo_rows),
    EllTensor: row_kernel(_ell_rows),
    BcsrTensor: ProductKernel(_block_multiply, _block_multiply_transposed, _block_sample),
}
"""The products of each storage class."""


def flat_places(indices: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return the places of coordinates, [rank, stored], in a row of all elements of a tensor."""
    strides = torch.tensor([math.prod(shape[d + 1 :]) for d in range(len(shape))], device=indices.device)
    return (indices.long() * strides.view(-1, 1)).sum(0)


@register_conversion(torch.Tensor, DenseTensor)
def dense_to_wrapped(tensor: torch.Tensor) -> DenseTensor:
    return DenseTensor(tensor.detach())


@register_conversion(DenseTensor, torch.Tensor)
@register_conversion(MaskedSparseTensor, torch.Tensor)
def wrapped_to_dense(storage: DenseTensor | MaskedSparseTensor) -> torch.Tensor:
    return storage.data


@register_conversion(CsrTensor, CscTensor)
def csr_to_csc(storage: CsrTensor) -> CscTensor:
    matrix = transposed(csr_rows(storage))
    return CscTensor(matrix.positions, matrix.columns, matrix.values, storage.shape)


@register_conversion(CscTensor, CsrTensor)
def csc_to_csr(storage: CscTensor) -> CsrTensor:
    matrix = transposed(csc_rows(storage))
    return CsrTensor(matrix.positions, matrix.columns, matrix.values, storage.shape)


@register_conversion(BcsrTensor, CsrTensor)
@register_conversion(EllTensor, CsrTensor)
def matrix_to_csr(storage: BcsrTensor | EllTensor) -> CsrTensor:
    matrix = coo_rows(to_coo(storage))
    return CsrTensor(matrix.positions, matrix.columns, matrix.values, storage.shape)


@register_conversion(CsrTensor, CooTensor)
@register_conversion(CscTensor, CooTensor)
@register_conversion(BcsrTensor, CooTensor)
@register_conversion(EllTensor, CooTensor)
@register_conversion(NMTensor, CooTensor)
@register_conversion(GroupedNMTensor, CooTensor)
def to_coo(storage: Any) -> CooTensor:
    """Return the entries of a storage in ascending order of coordinates, without padding."""
    places, shape = known_places(storage), storage.shape
    values, stored = places.values(storage), places.stored(storage)
    indices = torch.stack([index.expand(values.shape).reshape(-1) for index in places.index(storage)])
    kept = slice(None) if stored is None else stored.expand(values.shape).reshape(-1).nonzero().squeeze(1)
    indices, values = indices[:, kept], values.reshape(-1)[kept]
    order = flat_places(indices, shape).argsort()
    return CooTensor(indices[:, order].to(torch.int32), values[order], tuple(shape))
