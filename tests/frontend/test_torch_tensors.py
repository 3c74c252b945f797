"""Packed tensors and PyTorch tensors: there and back."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FrontendError
from fuseflow.frontend import to_torch
from fuseflow.frontend.torch_tensors import from_torch, storage_of
from fuseflow.tensors import Format, pack
from fuseflow.tensors.blocks import to_blocks

LAYOUTS = {
    "csr": torch.sparse_csr,
    "csc": torch.sparse_csc,
    "coo": torch.sparse_coo,
    "dense": torch.strided,
    "dcsr": torch.sparse_coo,  # PyTorch has no such layout
    "(dense, dense) order (1, 0)": torch.strided,
}


@pytest.mark.parametrize("text", LAYOUTS)
@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (1, 1)])
def test_there_and_back(text: str, shape: tuple[int, int]) -> None:
    array = np.where(np.random.default_rng(0).random(shape) < 0.5, 7.0, 0.0).astype(np.float32)
    tensor = pack(array, Format.parse(text, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch: sparse CSR support is in beta
        found = to_torch(tensor)
    assert found.layout == LAYOUTS[text] and found.dtype == torch.float32
    np.testing.assert_array_equal(found.to_dense().numpy(), array)
    if shape != (1, 1):  # dimensions of extent 1 are dropped on the way in
        again = from_torch(found, TensorType("t", shape, tensor.format))
        np.testing.assert_array_equal(again.to_dense(), array)
        assert again.stored == tensor.stored


def test_explicit_zeros_stay() -> None:
    coo = torch.sparse_coo_tensor([[0, 1], [1, 0]], torch.tensor([0.0, 2.0]), (2, 2)).coalesce()
    tensor = from_torch(coo, TensorType("t", (2, 2), Format.parse("csr", 2)))
    assert to_torch(tensor).values().tolist() == [0.0, 2.0]


def test_another_implicit_value_is_refused() -> None:
    with pytest.raises(FrontendError, match="implicit value 0"):
        to_torch(pack(np.array([-np.inf, 1.0]), Format.parse("csf", 1), fill=-np.inf))


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize(("layout", "format"), [("to_sparse_bsr", "csr"), ("to_sparse_bsc", "csc")])
@pytest.mark.parametrize("blocks", [(2, 3), (4, 1), (1, 6), (8, 6)])
def test_the_stored_blocks_come_through(layout: str, format: str, blocks: tuple[int, int]) -> None:
    array = np.zeros((8, 12), np.float32)
    array[0, 4], array[5, 1:9], array[7, 11] = 1, 2, 3
    given = getattr(torch.from_numpy(array), layout)(blocks)
    tensor = from_torch(given, TensorType("t", (8, 12), Format.parse(format, 2), block=blocks))
    assert tensor.stored == given.values().numel() and tensor.tile == ()
    np.testing.assert_array_equal(tensor.to_dense(), array)
    tiles = to_blocks(tensor, blocks)
    np.testing.assert_array_equal(tiles.values, given.values().numpy())
    coordinates = (given.col_indices() if format == "csr" else given.row_indices()).numpy()
    np.testing.assert_array_equal(tiles.coordinates()[1 if format == "csr" else 0], coordinates)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_stored_block_of_zeros_stays() -> None:
    given = torch.sparse_bsr_tensor([0, 1, 2], [1, 0], torch.tensor([[[0.0, 0.0]], [[1.0, 0.0]]]), (2, 4))
    tensor = from_torch(given, TensorType("t", (2, 4), Format.parse("csr", 2), block=(1, 2)))
    assert tensor.stored == 4 and to_blocks(tensor, (1, 2)).values.tolist() == [[[0.0, 0.0]], [[1.0, 0.0]]]


def test_a_layout_that_is_not_known_is_refused() -> None:
    """Before, every unknown layout counted as dense."""
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    with pytest.raises(FrontendError, match=r"tensor `x` has the layout torch\.jagged"):
        storage_of({"x": nested}, {})


def test_entries_that_are_arrays() -> None:
    values = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])
    rows = torch.sparse_coo_tensor([[4, 1, 4]], values, (6, 2))
    ((format, _),) = storage_of({"x": rows}, {}).values()
    packed = from_torch(rows, TensorType("x", (6, 2), format))
    assert str(format) == "(compressed, dense)" and packed.entries()[1].tolist() == [0.0, 2.0, 4.0, 4.0]
    assert np.array_equal(packed.to_dense(), rows.to_dense().numpy())
    entries = torch.sparse_coo_tensor([[0, 2], [1, 0]], values[:2], (3, 3, 2))
    ((format, _),) = storage_of({"x": entries}, {}).values()
    assert str(format) == "(compressed(nonunique), singleton, dense)"


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([True, True], torch.bool),
        ([100, 100], torch.int8),
        ([200, 100], torch.uint8),
        ([2**15 - 1, 2], torch.int16),
        ([2**31 - 1, 2], torch.int32),
        ([2**62, 2**62], torch.int64),
        ([2048.0, 1.0, 1.0], torch.float16),
        ([256.0, 1.0, 1.0], torch.bfloat16),
    ],
)
@pytest.mark.parametrize("shape", [(2, 3), (1, 1)])
def test_entries_of_one_coordinate_are_those_that_pytorch_adds_up(values, dtype, shape) -> None:
    places = torch.zeros((2, len(values)), dtype=torch.int64)
    given = torch.sparse_coo_tensor(places, torch.tensor(values, dtype=dtype), shape)
    types = {torch.bool: "i32", torch.int8: "i8", torch.uint8: "u8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64"}
    type = types.get(dtype, "f16" if dtype == torch.float16 else "bf16")
    kept = tuple(size for size in shape if size != 1)
    packed = from_torch(given, TensorType("t", kept, Format.parse("csr", 2) if kept else Format.dense(0), type))
    dense = given.coalesce().to_dense()
    expected = (dense.float() if dtype == torch.bfloat16 else dense).numpy().astype(np.float64)
    np.testing.assert_array_equal(packed.to_dense().astype(np.float64), expected.reshape(kept))
