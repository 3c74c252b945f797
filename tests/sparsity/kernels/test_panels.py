"""Products of matrices n:m and n:m:g in vectors, against PyTorch's dense products in float64."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fuseflow.sparsity as sp
from fuseflow.errors import DispatchError
from fuseflow.sparsity.kernels.matrices import ProductKernel
from fuseflow.sparsity.kernels.panel_code import lanes, transpose_code
from fuseflow.sparsity.kernels.panels import PANEL_KERNELS

TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
GROUPED = [
    "nmg:2:4:1",
    "nmg:1:4:3",
    "nmg:3:6:2",
    "nmg:1:10:4",
    "nmg:4:5:2:sparse_dim=-1:group_dim=-2",
    "nmg:2:4:4:sparse_dim=-1:group_dim=-2",
]
PLAIN = ["nm:2:4", "nm:1:10", "nm:5:8", "nm:2:4:dim=0", "nm:3:7:dim=0"]


def stored(rule: str, rows: int, columns: int, dtype: torch.dtype) -> tuple[Any, torch.Tensor, ProductKernel]:
    """Return a random matrix that a rule prunes as its layout stores it, the mask, and its products."""
    sparsifier = sp.parse_sparsifier(f"{rule}:method=greedy" if rule.startswith("nmg") else rule)
    weight = torch.randn(rows, columns).to(dtype)
    mask = sparsifier.select(weight)
    storage = sparsifier.layout.pack(weight, mask)
    return storage, mask, PANEL_KERNELS[type(storage)]


def dense_matrix(length: int, count: int, dtype: torch.dtype, way: str) -> torch.Tensor:
    """Return a random matrix whose rows follow each other, or whose columns do, or with gaps in both."""
    if way == "columns":
        return torch.randn(count, length).to(dtype).T
    return torch.randn(length, 3 * count).to(dtype)[:, ::3] if way == "gaps" else torch.randn(length, count).to(dtype)


@settings(max_examples=150, deadline=None)
@given(
    rule=st.sampled_from(GROUPED + PLAIN),
    shape=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    count=st.one_of(st.integers(0, 40), st.sampled_from([127, 128, 129, 300])),
    dtype=st.sampled_from(list(TOLERANCE)),
    way=st.sampled_from(["rows", "columns", "gaps"]),
    seed=st.integers(0, 99),
)
def test_products_are_those_of_the_dense_matrix(rule, shape, count, dtype, way, seed):
    torch.manual_seed(seed)
    storage, mask, kernel = stored(rule, *shape, dtype)
    p = storage.to_dense().double()
    left, right = dense_matrix(shape[0], count, dtype, way), dense_matrix(shape[1], count, dtype, way)
    scale = 1 + count + max(shape)
    for got, expected in (
        (kernel.multiply(storage, right), p @ right.double()),
        (kernel.multiply_transposed(storage, left), p.T @ left.double()),
    ):
        assert got.dtype == dtype and got.shape == expected.shape
        torch.testing.assert_close(got.double(), expected, atol=TOLERANCE[dtype] * scale**0.5, rtol=TOLERANCE[dtype])
    sampled = kernel.sample(storage, left, right)
    assert sampled.dtype == dtype and sampled.shape == storage.values.shape
    gradients = dataclasses.replace(storage, values=sampled).to_dense().double()
    expected = (left.double() @ right.double().T)[mask]
    torch.testing.assert_close(gradients[mask], expected, atol=TOLERANCE[dtype] * scale**0.5, rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("rule", ["nmg:2:4:4", "nm:2:4"])
def test_the_result_does_not_depend_on_the_number_of_threads(rule, monkeypatch):
    monkeypatch.setattr("fuseflow.sparsity.kernels.panels.ENTRIES_OF_A_THREAD", 1)
    torch.manual_seed(0)
    storage, _, kernel = stored(rule, 96, 100, torch.float32)
    x, y = torch.randn(1000, 100).T, torch.randn(1000, 96).T
    results = []
    for threads in (1, 2, 3, 8):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        results.append((kernel.multiply(storage, x), kernel.multiply_transposed(storage, y), kernel.sample(storage, y, x)))
    assert all(torch.equal(a, b) for result in results[1:] for a, b in zip(result, results[0], strict=True))


def test_an_infinite_number_reaches_its_own_column_alone():
    storage, _, kernel = stored("nmg:2:4:2", 30, 30, torch.float32)
    x = torch.randn(30, 200)
    x[3, 7] = torch.inf
    assert kernel.multiply(storage, x).isfinite().all(dim=0).logical_not().nonzero().tolist() == [[7]]


@pytest.mark.parametrize(
    ("rule", "field", "value"),
    [
        ("nmg:2:4:4", "columns", 24),
        ("nmg:2:4:4", "columns", -1),
        ("nmg:2:4:4", "places", 4),
        ("nm:2:4", "offsets", 4),
    ],
)
def test_a_storage_that_points_outside_is_refused(rule, field, value):
    storage, _, kernel = stored(rule, 24, 24, torch.float32)
    numbers = getattr(storage, field).clone()
    numbers.view(-1)[-1] = value
    for product in (kernel.multiply, kernel.multiply_transposed):
        with pytest.raises(DispatchError, match=field):
            product(dataclasses.replace(storage, **{field: numbers}), torch.randn(24, 5))


@pytest.mark.parametrize("field", ["columns", "places", "values"])
def test_a_storage_whose_arrays_do_not_fit_is_refused(field):
    storage, _, kernel = stored("nmg:2:4:4", 24, 24, torch.float32)
    with pytest.raises(DispatchError, match="sizes"):
        kernel.multiply(dataclasses.replace(storage, **{field: getattr(storage, field)[:-1]}), torch.randn(24, 5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_squares_are_transposed(dtype):
    side = lanes(dtype.itemsize)
    source, target = torch.randn(2 * side, 3 * side + 5, dtype=dtype), torch.zeros(3 * side, 2 * side + 1, dtype=dtype)
    strides = (target.stride(0) * dtype.itemsize, source.stride(0) * dtype.itemsize)
    transpose_code(dtype.itemsize)(target.data_ptr(), strides[0], source.data_ptr(), strides[1], 2, 3)
    assert torch.equal(target[:, :-1], source[:, :-5].T) and not target[:, -1].any()
