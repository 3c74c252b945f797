"""Products of matrices n:m and n:m:g in vectors, against PyTorch's dense products in float64."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fuseflow.sparsity as sp
from fuseflow.errors import DispatchError
from fuseflow.sparsity.kernels.matrix_kernels import ProductKernel
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
PLAIN = ["nm:2:4", "nm:1:10", "nm:5:8", "nm:2:4:dim=0", "nm:3:7:dim=0", "nm:3:200", "nm:2:256", "nm:2:200:dim=0"]


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
    shape=st.tuples(*[st.one_of(st.integers(1, 70), st.sampled_from([199, 256, 300]))] * 2),
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


FIRST = """
import torch
import fuseflow.sparsity as sp
torch.set_num_threads(2)
weight = torch.randn(256, 256)
rule = sp.parse_sparsifier("nm:2:4")
packed = sp.PackedTensor.wrapped_from_dense(rule.layout.pack(weight, rule.select(weight)), weight)
x = torch.randn(1024, 256)
with torch.inference_mode():
    y = torch.nn.functional.linear(x, packed)
torch.testing.assert_close(y, x @ packed.stored_dense().T, atol=1e-3, rtol=1e-3)
"""


def test_the_first_product_of_a_process_may_have_threads():
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("way", ["rows", "columns"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_threads_have_the_mode_and_the_device_of_the_caller(way, dtype, monkeypatch):
    monkeypatch.setattr("fuseflow.sparsity.kernels.panels.ENTRIES_OF_A_THREAD", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    storage, _, kernel = stored("nm:2:4", 64, 64, dtype)
    x = dense_matrix(64, 700, dtype, way)
    expected = kernel.multiply(storage, x)
    with torch.inference_mode():
        assert torch.equal(kernel.multiply(storage, x), expected)
    with torch.device("meta"):
        assert torch.equal(kernel.multiply(storage, x), expected)
        assert kernel.sample(storage, x, x).device.type == "cpu"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_windows_that_overlap(dtype):
    storage, _, kernel = stored("nm:2:4", 16, 128, dtype)
    windows = torch.randn(160).to(dtype).unfold(0, 128, 1)
    torch.testing.assert_close(kernel.multiply(storage, windows.T), kernel.multiply(storage, windows.contiguous().T))


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
        ("nmg:2:4:4", "places", 2),
        ("nm:2:4", "offsets", 4),
    ],
)
def test_a_storage_that_points_outside_is_refused(rule, field, value):
    storage, _, kernel = stored(rule, 24, 24, torch.float32)
    numbers = getattr(storage, field).clone()
    numbers.view(-1)[-1] = value
    wrong, x = dataclasses.replace(storage, **{field: numbers}), torch.randn(24, 5)
    for product in (kernel.multiply, kernel.multiply_transposed, lambda p, x: kernel.sample(p, x, x)):
        with pytest.raises(DispatchError, match=field):
            product(wrong, x)


def test_wider_positions_are_read_as_such():
    storage, _, kernel = stored("nmg:2:4:4", 24, 48, torch.float32)
    wide = dataclasses.replace(storage, columns=storage.columns.long(), places=storage.places.t().contiguous().t().int())
    x = torch.randn(48, 5)
    assert torch.equal(kernel.multiply(wide, x), kernel.multiply(storage, x))


def test_a_negated_view_is_negative():
    storage, _, kernel = stored("nm:2:4", 24, 24, torch.float32)
    numbers = torch.randn(7, 24, dtype=torch.complex64)
    negated = numbers.conj().imag
    assert negated.is_neg()
    torch.testing.assert_close(kernel.multiply(storage, negated.T), -(storage.to_dense() @ numbers.imag.T))


def test_matrices_of_other_sizes_are_refused():
    storage, _, kernel = stored("nm:2:4", 24, 24, torch.float32)
    for product in (
        lambda: kernel.multiply(storage, torch.randn(4096, 5)),
        lambda: kernel.multiply_transposed(storage, torch.randn(20, 5)),
        lambda: kernel.sample(storage, torch.randn(24, 5), torch.randn(24, 6)),
        lambda: kernel.sample(storage, torch.randn(30, 5), torch.randn(24, 5)),
    ):
        with pytest.raises(DispatchError, match="sizes"):
            product()


def test_a_storage_of_other_numbers_is_refused():
    storage, _, kernel = stored("nm:2:4", 24, 24, torch.float32)
    with pytest.raises(DispatchError, match="types"):
        kernel.multiply(storage, torch.randn(24, 5, dtype=torch.float64))


def test_many_threads_may_ask_for_the_same_code():
    storage, _, kernel = stored("nm:3:5", 20, 20, torch.float64)  # nothing else asks for three of doubles
    x = torch.randn(20, 9, dtype=torch.float64)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: kernel.multiply(storage, x), range(8)))
    assert all(torch.equal(result, results[0]) for result in results)


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
