"""What is computed from a tensor is known by its memory, whoever computes it."""

from __future__ import annotations

import torch
from torch.func import vmap

from fuseflow.frontend.trace.input_values import InputValues


def test_results_and_what_is_written_are_known() -> None:
    x, y, z, buffers = torch.rand(3), torch.rand(3), torch.zeros(3), [torch.ones(3)]
    values = InputValues()
    values.add([x])
    with values:
        results = [x * 2, x[1:], vmap(lambda a: a + 1)(x), x.to_sparse(), torch.where(x > 0, 1, 0), x.data]
        others = [y * 2, torch.zeros(3), torch.tensor([1.0])]
        z[0] = x.sum()
        torch._foreach_add_(buffers, [x])
    assert all(map(values.holds, [x, z, *buffers, *results]))
    assert not any(map(values.holds, [y, *others]))


def test_memory_that_is_used_again_is_another_one() -> None:
    x = torch.rand(1000)
    values = InputValues()
    values.add([x])
    with values:
        for _ in range(20):
            x * 2  # which is freed at once
    assert not any(values.holds(torch.rand(1000)) for _ in range(20))


def test_a_sparse_tensor_is_known_by_its_parts() -> None:
    x = torch.eye(3).to_sparse_csr()
    values = InputValues()
    values.add([x])
    with values:
        product = x @ torch.rand(3, 2)
    assert values.holds(x.values()) and values.holds(product)
