"""Products of matrices that are stored in blocks: the products of PyTorch, or a small dense product for each block."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from fuseflow.sparsity.kernels.product_kernel import ProductKernel, working_type
from fuseflow.sparsity.layouts.blocked import BcsrTensor
from fuseflow.sparsity.layouts.compressed import majors, positions_of

_AT_ONCE = 1 << 20
"""How many elements of the dense matrix are copied at once, so that they stay near the processor."""


def _multiply(storage: BcsrTensor, dense: torch.Tensor) -> torch.Tensor:
    if _has_library(storage, dense):
        return _library_product(storage.positions, storage.columns, storage.values, storage.shape, dense)
    return _sum_of_blocks(storage.values, storage.columns, _block_rows(storage), dense, storage.shape[0])


def _multiply_transposed(storage: BcsrTensor, dense: torch.Tensor) -> torch.Tensor:
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


def _sample(storage: BcsrTensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
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


BLOCK_KERNEL = ProductKernel(_multiply, _multiply_transposed, _sample)
"""The products of matrices in blocks."""
