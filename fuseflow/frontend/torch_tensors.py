"""Conversion between PyTorch tensors and packed tensors. The format follows from the layout, unless the user names another one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
import numpy.typing as npt
import torch

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FrontendError, OverfullError, TensorError, did_you_mean
from fuseflow.frontend.linalg.sparse_encodings import Storage
from fuseflow.frontend.linalg.unit_dimensions import squeeze_shape, unsqueeze_format
from fuseflow.tensors import Format, Tensor, from_coordinates, pack
from fuseflow.tensors.blocks import Block, check_block
from fuseflow.tensors.dtypes import parse_dtype
from fuseflow.tensors.levels import Dense
from fuseflow.tensors.pack import pack_compressed

TORCH_DTYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "e4m3",
    torch.float8_e5m2: "e5m2",
    torch.float8_e8m0fnu: "e8m0",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.bool: "i32",
}
"""The element type of each PyTorch dtype that a packed tensor can have. Truth values are integers."""
HELD_TYPES = {dtype: name for dtype, name in TORCH_DTYPES.items() if name in ("bf16", "e4m3", "e5m2", "e8m0")}
"""The PyTorch dtypes that NumPy lacks, so that their numbers are kept in a wider holder. It has no integers of 4 bits."""
MAX_DENSE_ELEMENTS = 1 << 28
"""The greatest number of elements of a sparse output that is turned into a dense array."""

ROW_LAYOUTS = (torch.sparse_csr, torch.sparse_bsr)
COLUMN_LAYOUTS = (torch.sparse_csc, torch.sparse_bsc)
BLOCKED_LAYOUTS = (torch.sparse_bsr, torch.sparse_bsc)

_LAYOUTS = {
    torch.strided: "dense",
    torch.sparse_csr: "csr",
    torch.sparse_csc: "csc",
    torch.sparse_coo: "coo",
    torch.sparse_bsr: "csr",
    torch.sparse_bsc: "csc",
}
_LAYOUTS_OF_MATRICES = {Format.parse("csr", 2): torch.sparse_csr, Format.parse("csc", 2): torch.sparse_csc}


def sorted_entries(tensor: torch.Tensor) -> torch.Tensor:
    """Return a matrix in a compressed layout with ascending coordinates in each row or column, as PyTorch's own products do not leave them.
    Entries that are stored several times are added up. Any other tensor is returned as it is, also one whose indices are not valid."""
    if tensor.layout not in (*ROW_LAYOUTS, *COLUMN_LAYOUTS) or tensor.dim() != 2 or tensor.is_meta:
        return tensor
    positions, minor = (part.numpy() for part in compressed_indices(tensor))
    counts = np.diff(positions)
    if not len(positions) or positions[0] != 0 or positions[-1] != len(minor) or (counts < 0).any():
        return tensor
    major = np.repeat(np.arange(len(counts)), counts)
    rises = (np.diff(major) > 0) | (np.diff(minor) > 0)
    if rises.all():
        return tensor
    (major, minor), places = np.unique(np.stack((major, minor)), axis=1, return_inverse=True)
    values = tensor.values()
    values = values.new_zeros((len(major), *values.shape[1:])).index_add(0, torch.from_numpy(places.reshape(-1)), values)
    starts = np.searchsorted(major, np.arange(len(counts) + 1))
    above, below = (torch.from_numpy(part.astype(positions.dtype)) for part in (starts, minor))
    return torch.sparse_compressed_tensor(above, below, values, tensor.shape, layout=tensor.layout, check_invariants=False)


def unsigned_types(tensors: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """Return the element types of the tensors of unsigned integers, which MLIR's types of integers do not tell from signed ones."""
    return {name: TORCH_DTYPES[tensor.dtype] for name, tensor in tensors.items() if tensor.dtype == torch.uint8}


def storage_of(tensors: Mapping[str, torch.Tensor], annotated: Mapping[str, str]) -> dict[str, Storage]:
    """Return the format and the block of every tensor, by name. `annotated` overrides the format that follows from the layout.

    Raise `FrontendError` for an unknown tensor or format.
    """
    for name in annotated:
        if name not in tensors:
            raise FrontendError(f"format for an unknown tensor `{name}`", hint=did_you_mean(name, tensors))
    return {name: (_format(name, tensor, annotated.get(name)), _block(name, tensor)) for name, tensor in tensors.items()}


def ranks_of(tensors: Mapping[str, torch.Tensor]) -> dict[str, tuple[int, ...]]:
    """Return the ranks that a format of each tensor may have: with all its dimensions, and without those of extent 1."""
    return {name: tuple({t.dim(): None, len(squeeze_shape(tuple(t.shape))): None}) for name, t in tensors.items()}


def _format(name: str, tensor: torch.Tensor, text: str | None) -> Format:
    if tensor.dtype not in TORCH_DTYPES:
        hint = "use a float of 16 to 64 bits, float8_e4m3fn, float8_e5m2, float8_e8m0fnu, an integer of 8 to 64, or bool"
        raise FrontendError(f"tensor `{name}` has the dtype {tensor.dtype}", hint=hint)
    if text is None:
        if tensor.layout not in _LAYOUTS:
            hint = "use a dense, COO, CSR, CSC, BSR or BSC tensor"
            raise FrontendError(f"tensor `{name}` has the layout {tensor.layout}", hint=hint)
        hybrid = tensor.layout != torch.strided and tensor.dense_dim() > 0
        if not hybrid:
            return Format.parse(_LAYOUTS[tensor.layout], tensor.dim())
        # The entries are dense arrays: coordinates for the sparse dimensions, and dense levels below.
        coordinates = Format.parse("coo" if tensor.sparse_dim() > 1 else "(compressed)", tensor.sparse_dim())
        return Format((*coordinates.levels, *(Dense(),) * tensor.dense_dim()), tuple(range(tensor.dim())))
    shape = tuple(tensor.shape)
    with suppress(TensorError):
        return Format.parse(text, len(shape))
    try:  # An example is `csr` for a mask of shape (1, 1, n, n).
        return unsqueeze_format(Format.parse(text, len(squeeze_shape(shape))), shape)
    except TensorError as error:
        raise FrontendError(f"format of tensor `{name}`: {error.message}", hint=error.hint) from None


def _block(name: str, tensor: torch.Tensor) -> Block:
    if tensor.layout not in BLOCKED_LAYOUTS:
        return ()
    try:
        return check_block(tuple(tensor.values().shape[1:]), 2)
    except TensorError as error:
        hint = error.hint or f"convert `{name}` to smaller blocks, such as `.to_sparse_bsr((16, 16))`"
        raise FrontendError(f"tensor `{name}`: {error.message}", hint=hint) from None


def from_torch(tensor: torch.Tensor, type: TensorType) -> Tensor:
    """Return a PyTorch tensor as a packed tensor of the declared type, without dimensions of extent 1.

    The entries of a sparse layout stay stored, even zeros, and a stored block stores all its elements. A dense tensor is not copied, nor
    one in CSR or CSC that is stored in the same order: the result shares PyTorch's memory and its values are read-only.
    """
    assert type.format is not None
    with OverfullError.naming(type.name):
        return _packed_as(tensor, type, type.format)


def _packed_as(tensor: torch.Tensor, type: TensorType, format: Format) -> Tensor:
    element_type = parse_dtype(type.dtype)
    if tensor.layout == torch.strided:
        array = _array(tensor)
        array.flags.writeable = False
        return pack(array.reshape(type.shape), format, type.fill, copy=False, type=element_type)
    in_its_holder = tensor.dtype not in HELD_TYPES and type.dtype == TORCH_DTYPES[tensor.dtype]
    if in_its_holder and tensor.layout in (torch.sparse_csr, torch.sparse_csc) and tuple(tensor.shape) == type.shape:
        packed = _packed(tensor, format)
        if packed is not None:
            return packed
    coordinates, values = _entries(tensor)
    if not type.shape:
        return pack(values.sum(keepdims=True).astype(values.dtype).reshape(()), format, type=element_type)
    dimensions = [d for d, size in enumerate(tensor.shape) if size != 1]
    return from_coordinates(type.shape, coordinates[dimensions], values, format, type=element_type)


def _packed(tensor: torch.Tensor, format: Format) -> Tensor | None:
    """Return a CSR or CSC tensor that is stored in the same order in its format, or None for another order."""
    by_row = tensor.layout in ROW_LAYOUTS
    if format.order != ((0, 1) if by_row else (1, 0)):
        return None
    positions, minor = (part.numpy() for part in compressed_indices(tensor))
    values = _array(tensor.values())
    values.flags.writeable = False
    return pack_compressed(tuple(tensor.shape), positions, minor, values, format)


def to_torch(tensor: Tensor) -> torch.Tensor:
    """Return a packed tensor as a PyTorch tensor with the same stored entries.

    Formats of the layouts CSR and CSC get these layouts, a tensor of dense levels is dense, and any other format becomes COO. Raise
    `FrontendError` for a tensor that PyTorch cannot hold because its implicit value is not 0.
    """
    if tensor.format.all_dense:
        return _with_dtype(torch.from_numpy(np.ascontiguousarray(tensor.to_dense())), tensor)
    if tensor.fill != 0:
        message = f"PyTorch's sparse tensors have the implicit value 0, this one has {tensor.fill:g}"
        raise FrontendError(message, hint="take its `to_dense()`")
    if tensor.tile:
        raise ValueError("PyTorch's sparse tensors have no tiles")
    coordinates, values = tensor.entries()
    indices = torch.from_numpy(np.ascontiguousarray(coordinates))
    held = torch.from_numpy(values.copy())
    held = held if tensor.element_bits < 16 else _with_dtype(held, tensor)  # PyTorch's sparse tensors have no floats of 8 bits
    coo = torch.sparse_coo_tensor(indices, held, tensor.shape)
    coo = coo.coalesce()  # the form of every format that is no layout of PyTorch
    return coo.to_sparse(layout=_LAYOUTS_OF_MATRICES[tensor.format]) if tensor.format in _LAYOUTS_OF_MATRICES else coo


def _with_dtype(values: torch.Tensor, tensor: Tensor) -> torch.Tensor:
    """Return values of a tensor in the PyTorch dtype of its elements, if there is one beside the dtype of their holder."""
    named = (dtype for dtype, name in HELD_TYPES.items() if tensor.type is not None and tensor.type.name == name)
    return values.to(next(named, values.dtype))


def dense_array(tensor: torch.Tensor, name: str) -> npt.NDArray[np.generic]:
    """Return an output of a model as an array, without dimensions of extent 1. Raise `FrontendError` if it is too large, or a sparse tensor
    that PyTorch cannot make dense."""
    if tensor.layout != torch.strided:
        if tensor.numel() > MAX_DENSE_ELEMENTS:
            shape = " x ".join(map(str, tensor.shape))
            message = f"the sparse output `{name}` ({shape}) is too large to check as an array"
            raise FrontendError(message, hint="return a dense or smaller result")
        try:
            tensor = tensor.to_dense()
        except Exception as error:  # whatever PyTorch raises for a tensor that it made itself
            message = f"the model fails in PyTorch itself: its sparse output `{name}` cannot be made dense there"
            reason = f"PyTorch says: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
            hint = "compute it of a dense tensor, as in `x.to_dense().sum(...)`"
            raise FrontendError(message, hint=hint, notes=(reason,)) from error
    return _array(tensor).reshape(squeeze_shape(tuple(tensor.shape)))


def _array(tensor: torch.Tensor) -> npt.NDArray[np.generic]:
    held = tensor.detach().cpu().resolve_conj().resolve_neg()
    array: npt.NDArray[np.generic] = (held.float() if held.dtype in HELD_TYPES else held).numpy()
    return array.astype(np.int32) if array.dtype == np.bool_ else array


def _entries(tensor: torch.Tensor) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.generic]]:
    """Return the coordinates [rank, stored] and the values [stored] of a sparse tensor. PyTorch itself adds up entries of one coordinate:
    its truth values add up to their disjunction, and its small integers wrap around."""
    if tensor.layout == torch.sparse_coo:
        tensor = tensor.coalesce()
        coordinates, values = tensor._indices().numpy().astype(np.int64), _array(tensor._values())
        if tensor.dense_dim() == 0:
            return coordinates, values
        inside = np.indices(values.shape[1:]).reshape(tensor.dense_dim(), -1)
        stored = np.repeat(coordinates, inside.shape[1], axis=1), np.tile(inside, (1, len(values)))
        return np.concatenate(stored), values.reshape(-1)
    by_row = tensor.layout in ROW_LAYOUTS
    positions, minor = (part.numpy() for part in compressed_indices(tensor))
    major = np.repeat(np.arange(len(positions) - 1, dtype=np.int64), np.diff(positions))
    coordinates, values = np.stack((major, minor) if by_row else (minor, major)).astype(np.int64), _array(tensor.values())
    if tensor.layout in BLOCKED_LAYOUTS:
        rows, columns = values.shape[1:]
        corners = coordinates * np.array([[rows], [columns]])
        coordinates = (corners[:, :, None] + np.indices((rows, columns)).reshape(2, 1, -1)).reshape(2, -1)
    return coordinates, values.reshape(-1)


def compressed_indices(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the positions and the coordinates of a tensor in a compressed layout."""
    if tensor.layout in ROW_LAYOUTS:
        return tensor.crow_indices(), tensor.col_indices()
    return tensor.ccol_indices(), tensor.row_indices()
