"""Tensors as arrays, and masks as tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fuseflow.sparsity.numpy_arrays import mask_of, values_of


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.int64, torch.bool], ids=str)
def test_an_array_has_the_numbers_of_its_tensor(dtype):
    tensor = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype)
    assert torch.from_numpy(values_of(tensor)).dtype == dtype
    for view in (tensor, tensor.T, tensor[:, ::2], tensor[0, 1], tensor[:0], tensor[:1].expand(4, 3)):
        assert values_of(view).tolist() == view.tolist() and values_of(view).shape == view.shape


def test_every_bfloat16_is_exact_as_float32():
    tensor = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    array = values_of(tensor)
    assert array.dtype == np.float32
    assert (
        np.array_equal(array.view(np.uint32) >> 16, tensor.view(torch.int16).numpy().view(np.uint16))
        and not (array.view(np.uint32) & 0xFFFF).any()
    )


def test_a_parameter_and_what_was_computed_from_it_have_arrays():
    weight = torch.nn.Parameter(torch.ones(2))
    assert values_of(weight).tolist() == [1, 1] and values_of(weight * 2).tolist() == [2, 2]


@pytest.mark.parametrize(
    "array", [np.array([True, False]), np.ones((0, 3), dtype=bool), np.array(True), np.True_, True], ids=repr
)
def test_a_mask_is_a_tensor_of_truth_values(array):
    mask = mask_of(array, torch.zeros(2))
    assert mask.dtype == torch.bool and mask.shape == np.shape(array) and mask.tolist() == np.asarray(array).tolist()


def test_a_mask_stands_where_its_tensor_does():
    assert mask_of(np.ones(2, dtype=bool), torch.empty(2, device="meta")).device.type == "meta"
