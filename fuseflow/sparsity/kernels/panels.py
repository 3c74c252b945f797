"""Products of matrices n:m and n:m:g on a processor, panel by panel: a few vectors of columns of the dense matrices at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from fuseflow.errors import DispatchError
from fuseflow.sparsity.entry_positions import PLACES
from fuseflow.sparsity.kernels.matrix_kernels import ProductKernel, working_type
from fuseflow.sparsity.kernels.panel_code import Walk, grouped_code, lanes, nm_code, panel_widths, transpose_code
from fuseflow.sparsity.layouts.n_of_m import GroupedNMTensor, NMTensor

NEAR_ROWS = 128
"""How many rows of a panel stay in the nearest cache while the rows of the other panel pass by."""
LARGE_PAGES = 1 << 22
"""The bytes from which NumPy asks for large pages."""
COPIED_AT_ONCE = 1 << 15
"""The number of elements from which PyTorch starts threads of its own to copy, which threads here are not to do."""
ENTRIES_OF_A_THREAD = 1 << 20
"""How many products of numbers are worth a thread of their own."""


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a stored matrix [rows, columns] as code walks them. `held_rows` rows of the panel of dimension `held` (0 or
    1) stay in registers. `lengths` are the rows of the panels of both dimensions: those of the matrix, and rows of zeros that fill
    the last groups. The entries are in `parts`, each of which meets other rows of the dimension that is not held, or other held rows.
    `run(walk, panels, values, first, count)` walks that many parts from a first one on."""

    held: int
    held_rows: int
    lengths: tuple[int, int]
    shape: tuple[int, int]
    values: torch.Tensor
    parts: int
    run: Callable[[Walk, tuple[torch.Tensor, torch.Tensor], torch.Tensor, int, int], None]


def panel_kernel(entries: Callable[[Any], Entries]) -> ProductKernel:
    """Return the products of a storage class by its entries. On other devices than the processor, and of numbers of 8 bits, they
    are dense products."""

    def multiply(storage: Any, dense: torch.Tensor) -> torch.Tensor:
        return _multiply(entries(storage), dense, 0) if _is_here(storage, dense) else storage.to_dense() @ dense

    def multiply_transposed(storage: Any, dense: torch.Tensor) -> torch.Tensor:
        return _multiply(entries(storage), dense, 1) if _is_here(storage, dense) else storage.to_dense().T @ dense

    def sample(storage: Any, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        if _is_here(storage, left):
            return _sample(entries(storage), left, right)
        products, index = left @ right.T, PLACES[type(storage)].index(storage)
        return products[tuple(index)].expand(storage.values.shape)

    return ProductKernel(multiply, multiply_transposed, sample)


def _is_here(storage: Any, dense: torch.Tensor) -> bool:
    on_processor = dense.device.type == storage.values.device.type == "cpu"
    return on_processor and working_type(dense.dtype) in (torch.float32, torch.float64)


def grouped_entries(storage: GroupedNMTensor) -> Entries:
    """Return the entries of a matrix n:m:g. A part has the chunks that meet the same columns of the grouped dimension."""
    grid, values = storage.grid, _plain(storage.values)
    columns, places = _plain(storage.columns.to("cpu", torch.int16)), _plain(storage.places.to("cpu", torch.int16))
    _require(values.dim() == 4, "sizes")
    (across, along), (patterns, g, n) = grid.extents, values.shape[1:]
    sizes = (grid.count, patterns, g), (patterns, n), grid.columns
    _require((columns.shape, places.shape, patterns * g) == sizes and len(values) == grid.count, "sizes")
    ascending = bool((places[:, 1:] > places[:, :-1]).all())
    _require(_is_below(storage.columns, grid.columns) and _is_below(storage.places, grid.m) and ascending, "columns or places")
    _require(grid.columns <= 1 << 15, "sizes")
    lengths = (along * grid.m, across * grid.columns)

    def run(walk: Walk, panels: tuple[torch.Tensor, torch.Tensor], values: torch.Tensor, first: int, count: int) -> None:
        sparse, grouped = panels[grid.sparse_dim], panels[grid.group_dim]
        code = grouped_code(walk, n, *_sizes(sparse, values))
        step = max(1, NEAR_ROWS // grid.m) if walk == "gather" else along
        for start in range(0, along, step):
            chunk = first * along + start
            rows = _row(sparse, start * grid.m), _row(grouped, first * grid.columns)
            stored = _row(values, chunk), _row(columns, chunk), places.data_ptr()
            code(*rows, *stored, count, along, min(step, along - start), patterns, g, grid.m)

    by_dim = lengths if grid.sparse_dim == 0 else lengths[::-1]
    return Entries(grid.sparse_dim, n, by_dim, _matrix(storage.shape), values, across, run)


def nm_entries(storage: NMTensor) -> Entries:
    """Return the entries of a matrix n:m. A part is a line of groups, all in one row, or column, of the matrix."""
    values, offsets = _plain(storage.values), _plain(storage.offsets.to("cpu", torch.uint8))
    dim, m = storage.dim % 2, storage.m
    _require(values.dim() == 3 and m <= 1 << 8, "sizes")
    lines, groups, n = values.shape
    sizes = storage.shape[1 - dim], -(-storage.shape[dim] // m)
    _require(offsets.shape == values.shape and (lines, groups) == sizes, "sizes")
    _require(_is_below(storage.offsets, m), "offsets")

    def run(walk: Walk, panels: tuple[torch.Tensor, torch.Tensor], values: torch.Tensor, first: int, count: int) -> None:
        sparse, other = panels[dim], panels[1 - dim]
        code = nm_code(walk, n, *_sizes(sparse, values))
        step = max(1, NEAR_ROWS // m)
        for start in range(0, groups, step):
            entry = (first * groups + start) * n
            stored = values.data_ptr() + entry * values.element_size(), offsets.data_ptr() + entry
            code(_row(sparse, start * m), _row(other, first), *stored, count, groups, min(step, groups - start), m)

    lengths = (lines, groups * m) if dim else (groups * m, lines)
    return Entries(1 - dim, 1, lengths, _matrix(storage.shape), values, lines, run)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose memory has its numbers one after the other."""
    return tensor.detach().resolve_neg().contiguous()


def _require(fits: bool, what: str) -> None:
    """Raise `DispatchError` for a storage that would lead the code out of its arrays."""
    if not fits:
        raise DispatchError(f"the {what} of a stored matrix do not fit together", hint="pack it with its layout")


def _is_below(numbers: torch.Tensor, end: int) -> bool:
    """Return whether all numbers are from 0 to `end` - 1."""
    if not numbers.numel():
        return True
    low, high = (int(number) for number in numbers.aminmax())
    return low >= 0 and high < end


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    rows, columns = shape
    return rows, columns


def _row(tensor: torch.Tensor, number: int) -> int:
    """Return the address of an element of the first dimension of a contiguous tensor."""
    return tensor.data_ptr() + number * tensor.stride(0) * tensor.element_size()


def _sizes(panel: torch.Tensor, values: torch.Tensor) -> tuple[int, int, int]:
    """Return how many vectors a row of a panel has, the bytes of its numbers, and the bits of values."""
    size = panel.element_size()
    return panel.shape[1] // lanes(size), size, 8 * values.element_size()


def _multiply(entries: Entries, dense: torch.Tensor, dim: int) -> torch.Tensor:
    """Return the product of a matrix (`dim` 0) or of its transpose (1) with a dense matrix. Where the columns of the dense matrix
    are contiguous, so are those of the result."""
    _require(entries.values.dtype == dense.dtype, "types")
    _require(dense.shape[0] == entries.shape[1 - dim], "sizes")
    dense = dense.detach().resolve_neg()
    count, length = dense.shape[1], entries.shape[dim]
    by_columns = dense.stride(0) == 1
    result = _empty(count, length, dense.dtype).T if by_columns else _empty(length, count, dense.dtype)
    if not count or not entries.values.numel():
        return result.zero_()
    work = working_type(dense.dtype)
    walk: Walk = "gather" if entries.held == dim else "spread"
    values = entries.values.float() if entries.values.dtype == torch.float16 else entries.values
    width = _panel_width(entries.held_rows, work, count)

    def run(starts: range) -> None:
        panels = _panels(entries, work, width)
        for start in starts:
            part = dense[:, start : start + width]
            _fill(panels[1 - dim], part)
            _clear(panels[dim])
            entries.run(walk, panels, values, 0, entries.parts)
            _read(panels[dim], result[:, start : start + width])

    panels = range(0, count, width)
    threads = _thread_count(values.numel() * count, len(panels))
    _in_threads(run, [panels[k::threads] for k in range(threads)])
    return result


def _sample(entries: Entries, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the entries of `left @ right.T` in the order of the stored values."""
    _require((left.shape[0], right.shape[0]) == entries.shape and left.shape[1] == right.shape[1], "sizes")
    left, right = left.detach().resolve_neg(), right.detach().resolve_neg()
    count, work = left.shape[1], working_type(left.dtype)
    values = torch.zeros(entries.values.shape, dtype=work, device="cpu")
    if count and values.numel():
        width = _panel_width(entries.held_rows, work, count)
        panels = _panels(entries, work, width)
        threads = _thread_count(values.numel() * count, entries.parts)
        borders = [entries.parts * k // threads for k in range(threads + 1)]
        for start in range(0, count, width):
            for panel, dense in zip(panels, (left, right), strict=True):
                part = dense[:, start : start + width]
                if part.shape[1] < width:
                    _clear(panel)
                _fill(panel, part)
            shares = [(first, after - first) for first, after in pairwise(borders)]
            _in_threads(lambda share: entries.run("sample", panels, values, *share), shares)
    return values.to(left.dtype)


def _empty(rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    """Return a new matrix. The memory of a large one is NumPy's, which asks for large pages: to touch new small ones takes longer
    than a product."""
    size = rows * columns * dtype.itemsize
    if size < LARGE_PAGES:
        return torch.empty((rows, columns), dtype=dtype, device="cpu")
    return torch.from_numpy(np.empty((rows, columns * dtype.itemsize), np.uint8)).view(dtype)


def _panel_width(rows: int, work: torch.dtype, count: int) -> int:
    """Return how many columns a panel has: the fewest that are enough for `count`, or as many as registers hold."""
    widths = [vectors * lanes(work.itemsize) for vectors in panel_widths(rows)]
    return next((width for width in widths if width >= count), widths[-1])


def _panels(entries: Entries, work: torch.dtype, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return empty panels of both dimensions of a matrix."""
    rows, columns = (torch.zeros((length, width), dtype=work, device="cpu") for length in entries.lengths)
    return rows, columns


def _thread_count(products: int, most: int) -> int:
    return max(1, min(torch.get_num_threads(), most, products // ENTRIES_OF_A_THREAD))


def _in_threads(run: Callable[[Any], None], shares: list[Any]) -> None:
    if len(shares) == 1:
        run(shares[0])
        return
    inference = torch.is_inference_mode_enabled()  # other threads have modes of their own

    def run_alike(share: Any) -> None:
        with torch.inference_mode(inference), torch.no_grad():
            run(share)

    with ThreadPoolExecutor(len(shares)) as pool:
        list(pool.map(run_alike, shares))


def _clear(panel: torch.Tensor) -> None:
    ctypes.memset(panel.data_ptr(), 0, panel.numel() * panel.element_size())


def _fill(panel: torch.Tensor, dense: torch.Tensor) -> None:
    """Copy a dense matrix to the first rows and columns of a panel."""
    part = panel[: dense.shape[0], : dense.shape[1]]
    if dense.stride(0) == 1:
        _transpose(part, _converted(dense.T, part.dtype))
    else:
        _copy(part, dense)


def _read(panel: torch.Tensor, dense: torch.Tensor) -> None:
    """Copy the first rows and columns of a panel to a dense matrix."""
    part = panel[: dense.shape[0], : dense.shape[1]]
    if dense.stride(0) != 1:
        _copy(dense, part)
    elif dense.dtype == part.dtype:
        _transpose(dense.T, part)
    else:
        turned = torch.empty(part.T.shape, dtype=part.dtype, device="cpu")
        _transpose(turned, part)
        _copy(dense.T, turned)


def _converted(dense: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a matrix of other numbers, row after row; the matrix itself if its numbers are these."""
    if dense.dtype == dtype:
        return dense
    converted = torch.empty(dense.shape, dtype=dtype, device="cpu")
    _copy(converted, dense)
    return converted


def _copy(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy a matrix, in pieces for which PyTorch starts no threads."""
    step = max(1, (COPIED_AT_ONCE - 1) // max(1, source.shape[1]))
    for start in range(0, source.shape[0], step):
        target[start : start + step].copy_(source[start : start + step])


def _transpose(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy the transpose of a matrix. The numbers of a row follow each other in both."""
    assert target.shape == source.T.shape
    side, size = lanes(source.element_size()), source.element_size()
    down, right = source.shape[0] // side, source.shape[1] // side
    if not down or not right:
        _copy(target, source.T)
        return
    transpose_code(size)(target.data_ptr(), target.stride(0) * size, source.data_ptr(), source.stride(0) * size, down, right)
    target[right * side :].copy_(source[:, right * side :].T)
    target[: right * side, down * side :].copy_(source[down * side :, : right * side].T)


PANEL_KERNELS: dict[type, ProductKernel] = {NMTensor: panel_kernel(nm_entries), GroupedNMTensor: panel_kernel(grouped_entries)}
"""The products of matrices n:m and n:m:g."""
